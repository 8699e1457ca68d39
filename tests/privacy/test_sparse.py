"""Section 9 of the text on SecAgg: exact probabilities against every set of users, and the numbers in its table."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import sparse
from secagg_spec.privacy.secagg import components
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import PRESETS

GRAPHS = [(N, k) for N in range(4, 10) for k in range(2, N - 1) if k * N % 2 == 0]


def circle(N: int, k: int) -> Graph:
    """The graph on the order of the roster; a random order is a random choice of users on it."""
    return Graph(tuple(range(N)), k)


def gaps(N: int, vanished: set[int]) -> list[int]:
    """The runs of vanished users between one user that is left and the next."""
    left = [user for user in range(N) if user not in vanished]
    return [(after - user - 1) % N for user, after in zip(left, left[1:] + left[:1], strict=True)]


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.uint16])
@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (sparse.tail, (83, 71, 30, 11)),
        (sparse.tail, (1000, 300, 50, 10)),
        (sparse.surrounded, (200, 30, 11, 60)),
        (sparse.any_surrounded, (200, 30, 11, 60)),
        (sparse.disconnected, (1000, 60, 300)),
        (sparse.disconnected_at_most, (1000, 60, 300)),
        (sparse.cut_at_most, (1000, 60, 300)),
        (sparse.stuck, (200, 30, 25, 60)),
        (sparse.stuck, (200, 30, 35, 60)),
    ],
)
def test_integers_of_numpy_do_not_wrap(
    function: Callable[..., Fraction], numbers: tuple[int, ...], kind: Callable[[int], int]
) -> None:
    assert function(*map(kind, numbers)) == function(*numbers)


@pytest.mark.parametrize(("N", "k"), GRAPHS)
def test_how_often_a_graph_is_cut_is_what_the_formula_says(N: int, k: int) -> None:
    graph, h = circle(N, k), k // 2
    for m in range(N):
        cut = 0
        for vanished in combinations(range(N), m):
            apart = len(components(graph, set(range(N)) - set(vanished))) > 1
            long = sum(gap >= h for gap in gaps(N, set(vanished)))
            assert long >= 2 or not apart
            assert apart == (long >= 2) or k % 2
            cut += apart
        counted, formula = Fraction(cut, comb(N, m)), sparse.disconnected(N, k, m)
        assert counted == formula if k % 2 == 0 else counted <= formula
        if k == 2 and m:
            assert formula == 1 - Fraction(N, comb(N, m))
    assert sparse.disconnected(N, k, N) == 0


def test_the_first_term_bounds_how_often_a_graph_is_cut() -> None:
    for N, k in GRAPHS:
        for m in range(N + 1):
            exact, bound = sparse.disconnected(N, k, m), sparse.disconnected_at_most(N, k, m)
            assert exact <= bound <= 1
            assert (exact == bound) or m // (k // 2) > 2
    rare = [of(1000, 60, 300) for of in (sparse.disconnected, sparse.disconnected_at_most)]
    assert rare[0] < rare[1] < rare[0] * (1 + Fraction(1, 10**12))
    assert sparse.disconnected_at_most(1000, 999, 900) == 0


def test_a_cut_is_bounded_for_every_number_of_vanished_users_up_to_the_largest() -> None:
    for N in range(3, 40):
        for k in range(2, N):
            if N % 2 == 0 or k % 2 == 0:
                each = [sparse.disconnected_at_most(N, k, m) for m in range(N + 1)]
                assert [sparse.cut_at_most(N, k, m) for m in range(N + 1)] == [max(each[: m + 1]) for m in range(N + 1)]


def test_on_the_complete_graph_nothing_is_cut() -> None:
    assert all(sparse.disconnected(N, N - 1, m) == 0 for N in range(3, 9) for m in range(N + 1))


@pytest.mark.parametrize(("N", "k"), [(N, k) for N, k in GRAPHS if N <= 8])
def test_how_often_a_user_is_surrounded_is_what_the_formula_says(N: int, k: int) -> None:
    graph = circle(N, k)
    for c in range(N):
        for t in range(1, k + 2):
            one = some = 0
            for coalition in combinations(range(N), c):
                honest = set(range(N)) - set(coalition)
                caught = {user for user in honest if len(graph.neighbours(user) & set(coalition)) >= t}
                one += len(caught)
                some += bool(caught)
            assert Fraction(one, comb(N, c) * (N - c)) == sparse.surrounded(N, k, t, c)
            assert Fraction(some, comb(N, c)) <= sparse.any_surrounded(N, k, t, c)


@pytest.mark.parametrize(("N", "k"), [(6, 2), (6, 3), (7, 4), (8, 4)])
def test_how_often_a_round_lacks_holders_is_bounded_by_the_formula(N: int, k: int) -> None:
    graph = circle(N, k)
    for dropped in range(N - 1):
        for t in range(2, k + 2):
            lacking = 0
            for left_out in combinations(range(N), dropped):
                left = set(range(N)) - set(left_out)
                lacking += any(len(graph.holders(user) & left) < t for user in range(N))
            assert Fraction(lacking, comb(N, dropped)) <= sparse.stuck(N, k, t, dropped)
            assert (lacking == 0) == (sparse.stuck(N, k, t, dropped) == 0)


@given(st.integers(0, 30), st.data())
def test_a_tail_is_a_probability_that_falls(population: int, data: st.DataObject) -> None:
    marked, drawn = data.draw(st.integers(0, population)), data.draw(st.integers(0, population))
    tails = [sparse.tail(population, marked, drawn, least) for least in range(-1, population + 2)]
    assert tails[0] == tails[1] == 1
    assert tails[-1] == 0
    assert tails == sorted(tails, reverse=True)
    assert sum(tails[2:]) == Fraction(marked * drawn, population or 1)


@given(st.integers(1, 50), st.integers(0, 1000))
def test_the_exponent_is_the_largest(power: int, more: int) -> None:
    probability = Fraction(2**power + more % 2**power, 2 ** (2 * power))
    e = sparse.exponent(probability)
    assert probability <= Fraction(1, 2**e)
    assert probability > Fraction(1, 2 ** (e + 1))


# -------------------------------------------------------------------------------------------- the numbers in the text


def section() -> str:
    """Section 9 of the page."""
    page = (resources.root("spec") / "secagg.md").read_text(encoding="utf-8")
    return page.split("## 9. A sparse graph")[1].split("\n## ")[0]


def stated(probability: Fraction) -> str:
    """A bound on a probability as the text writes it."""
    e = sparse.exponent(probability) if probability else 0
    return "0" if not probability else f"2^-{e}" if e else "1"


def test_the_table_of_probabilities_is_right() -> None:
    p = PRESETS["sparse"]
    lines = re.findall(r"^\| (\d+) \| (\S+) \| (\S+) \|$", section(), re.M)
    assert [int(colluding) for colluding, _, _ in lines] == [10, 20, 30, 40]
    assert int(lines[0][0]) == p.T
    for colluding, surrounded, cut in lines:
        c = int(colluding)
        assert surrounded == stated(sparse.any_surrounded(p.N, p.k, p.t, c))
        assert cut == stated(sparse.disconnected(p.N, p.k, c + p.D))


def test_the_numbers_beside_the_table_are_right() -> None:
    p, text = PRESETS["sparse"], " ".join(section().split())
    [bound] = re.findall(r"for want of holders with a probability of at most (2\^-\d+)", text)
    assert bound == stated(sparse.stuck(p.N, p.k, p.t, p.D))
    assert f"At `sparse`, with its {p.D} dropped users" in text
    assert f"With T = {p.T} no user can be surrounded" in text
    assert p.t > p.T


@pytest.mark.parametrize(
    "call",
    [
        lambda: sparse.disconnected(6, 7, 1),
        lambda: sparse.disconnected(7, 3, 1),
        lambda: sparse.disconnected(6, 2, 7),
        lambda: sparse.disconnected(6, 2, -1),
        lambda: sparse.surrounded(6, 2, 2, 6),
        lambda: sparse.tail(3, 4, 1, 0),
        lambda: sparse.tail(3, 1, 4, 0),
        lambda: sparse.tail(3, -1, 1, 0),
        lambda: sparse.tail(3, 1, -1, 0),
        lambda: sparse.stuck(6, 2, 2, 6),
    ],
)
def test_numbers_that_do_not_fit_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ParameterError):
        call()


def test_a_population_below_nothing_is_named() -> None:
    assert sparse.tail(0, 0, 0, 0) == 1
    with pytest.raises(ParameterError, match=r"^population = -1: "):
        sparse.tail(-1, 0, 0, 0)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("call", [sparse.surrounded, sparse.any_surrounded, sparse.stuck])
@pytest.mark.parametrize("t", [-1, "2", None, 2.0, 2**33])
def test_a_wrong_threshold_is_named(call: Callable[..., Fraction], t: Any) -> None:
    with pytest.raises(ParameterError, match=r"^t = .*: must be an integer in \[0, 4294967295\]"):
        call(10, 4, t, 3)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("strange", [Fraction(0), Fraction(2), Fraction(-1, 2), 0.5, 1, None, "1/2"])
def test_what_is_no_probability_has_no_exponent(strange: Any) -> None:
    with pytest.raises(ParameterError, match=r"^probability = .*above 0"):
        sparse.exponent(strange)
