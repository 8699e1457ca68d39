"""The graph of neighbours: which degrees there are, who is a neighbour, and that it holds together."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, UnknownUser
from secagg_spec.protocols.secagg.graph import Graph, draw_order


def degrees(N: int) -> list[int]:
    """The degrees of which there is a graph."""
    return [k for k in range(1, N) if k == N - 1 or (k >= 2 and k * N % 2 == 0)]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs of 3 to 9 users, of every degree and order."""
    N = draw(st.integers(3, 9))
    return Graph(tuple(draw(st.permutations(range(N)))), draw(st.sampled_from(degrees(N))))


def connected(graph: Graph, users: set[int]) -> bool:
    """Whether every user is reached from every other one."""
    reached = {min(users)}
    while more := {peer for user in reached for peer in graph.neighbours(user) & users} - reached:
        reached |= more
    return reached == users


@pytest.mark.requirement("SAG-03")
@given(graphs())
def test_everybody_has_k_neighbours_and_is_a_neighbour_of_them(graph: Graph) -> None:
    for user in graph.order:
        neighbours = graph.neighbours(user)
        assert len(neighbours) == graph.k
        assert user not in neighbours
        assert all(user in graph.neighbours(peer) for peer in neighbours)
        assert graph.holders(user) == neighbours | {user}


@pytest.mark.requirement("SAG-03")
@given(graphs())
def test_neighbours_are_the_nearest_on_the_circle(graph: Graph) -> None:
    N, place = len(graph.order), {user: at for at, user in enumerate(graph.order)}
    for user in graph.order:
        for peer in set(graph.order) - {user}:
            ahead = abs(place[user] - place[peer])
            distance = min(ahead, N - ahead)
            near = graph.k == N - 1 or distance <= graph.k // 2 or (graph.k % 2 == 1 and 2 * distance == N)
            assert (peer in graph.neighbours(user)) == near


@pytest.mark.requirement("SAG-03")
@pytest.mark.parametrize(("N", "k"), [(N, k) for N in range(3, 9) for k in degrees(N)])
def test_without_any_k_minus_1_users_the_others_are_connected(N: int, k: int) -> None:
    graph, everybody = Graph(tuple(range(N)), k), set(range(N))
    assert all(connected(graph, everybody - set(dropped)) for dropped in combinations(range(N), k - 1))
    if k < N - 1:
        assert not connected(graph, everybody - graph.neighbours(0))


@pytest.mark.requirement("SAG-04")
@pytest.mark.parametrize("order", [(0, 1, 1), (0, 1, 3), (1, 2, 3), (0, -1, 1), (0, 1, "2"), "012", 3])
def test_an_order_that_is_no_permutation_is_refused(order: object) -> None:
    with pytest.raises(ParameterError, match=r"^order = .*: must be (a permutation|a sequence|an integer)"):
        Graph(order, 2)  # type: ignore[arg-type]


@pytest.mark.requirement("SAG-01")
@pytest.mark.parametrize("N", range(3, 10))
def test_only_degrees_of_which_there_is_a_graph_are_taken(N: int) -> None:
    for k in range(-1, N + 2):
        if k in degrees(N):
            assert Graph(tuple(range(N)), k).k == k
        else:
            with pytest.raises(ParameterError, match="k = "):
                Graph(tuple(range(N)), k)


@given(graphs(), st.data())
def test_the_core_is_the_largest_set_in_which_each_has_enough_holders(graph: Graph, data: st.DataObject) -> None:
    users = data.draw(st.sets(st.sampled_from(graph.order)))
    least = data.draw(st.integers(1, graph.k + 1))

    def holds(chosen: tuple[int, ...]) -> bool:
        return all(len(graph.holders(user) & set(chosen)) >= least for user in chosen)

    good = [
        set(chosen) for size in range(len(users) + 1) for chosen in combinations(sorted(users), size) if holds(chosen)
    ]
    assert set(graph.core(users, least)) == max(good, key=len) == set().union(*good)


def test_a_user_outside_the_roster_has_no_neighbours() -> None:
    with pytest.raises(UnknownUser, match="user = 4"):
        Graph((0, 1, 2, 3), 2).neighbours(4)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    ("N", "k", "text"),
    [
        (0, 2, r"order = \[\]: must be that of two users or more"),
        (1, 1, r"order = \[0\]: must be that of two users or more"),
        (3, 5, "k = 5: must be N - 1 = 2"),
        (6, 6, r"k = 6: must be N - 1 = 5, or in \[2, 4\]"),
        (7, 5, r"k = 5: must be N - 1 = 6, or even and in \[2, 4\]"),
        (6, 0, r"k = 0: must be N - 1 = 5, or in \[2, 4\]"),
        (6, -(2**40), r"k = -1099511627776: must be N - 1 = 5, or in \[2, 4\]"),
        (3, 2.0, "k = 2.0: must be N - 1 = 2"),
        (3, True, "k = True: must be N - 1 = 2"),
    ],
)
def test_a_degree_is_refused_with_those_that_there_are(N: int, k: Any, text: str) -> None:
    with pytest.raises(ParameterError, match=f"^{text}$"):
        Graph(tuple(range(N)), k)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(("users", "least"), [(None, 1), ("ab", 1), ([9], 1), ([0], "1"), ([0], -1), ([0], True)])
def test_the_core_of_what_are_no_users_is_refused(users: Any, least: Any) -> None:
    with pytest.raises(ParameterError, match=r"^(user|users|least) = "):
        Graph((0, 1, 2, 3), 2).core(users, least)


@pytest.mark.parametrize("N", [-2, -1, True, 1.0, 2**32])
def test_an_order_of_no_number_of_users_is_refused(N: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^N = {N}: must be an integer in \[0, {2**32 - 1}\]$"):
        draw_order(SeededSource(b"orders", "test"), N)
    assert draw_order(SeededSource(b"orders", "test"), 0) == ()


def test_orders_are_drawn_uniformly() -> None:
    source = SeededSource(b"orders", "test")
    counts = Counter(draw_order(source, 3) for _ in range(6000))
    assert len(counts) == 6
    assert all(850 <= count <= 1150 for count in counts.values()), counts  # five standard deviations of 29
