"""What coalitions learn in SecAgg: every coalition and dropout at `tiny`, sparse graphs, what each rule prevents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import isclose
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import agree, public_key
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import DuplicateUser, ParameterError, UnknownUser
from secagg_spec.privacy import secagg as model
from secagg_spec.privacy.probe import NotAffine
from secagg_spec.privacy.secagg import (
    Answer,
    Case,
    Element,
    Requests,
    Situation,
    Streams,
    Users,
    honest_answer,
    least,
    most,
)
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Derived, Forms, Secret, Space, View, join
from secagg_spec.protocols.secagg import round as protocol
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import PRESETS, Parameters
from tests.privacy.enumeration import codes, conditional_information, every_vector
from tests.quick import part
from tests.strategies import subsets

TINY = PRESETS["tiny"]
EVERYONE = tuple(range(5))
RING = Ring(8)


def complete(N: int) -> Graph:
    """The complete graph."""
    return Graph(tuple(range(N)), N - 1)


def tiny_element(**changed: Any) -> Element:
    """A round at `tiny` in which all five users share their secrets."""
    return Element(**{"ring": TINY.ring, "graph": TINY.graph(), "t": TINY.t, "sharers": EVERYONE, **changed})


@cache
def whole_audit(p: Parameters) -> tuple[Case, ...]:
    """Every coalition and every dropout, on the order of the roster."""
    graph = p.graph()
    return tuple(model.audit(p, graph, list(model.every_coalition(p.N)), list(model.every_dropout(p, graph))))


# ------------------------------------------------------------------------------------------------ what is learned


@pytest.mark.slow
def test_at_tiny_up_to_T_users_learn_exactly_the_sum() -> None:
    cases = [case for case in whole_audit(TINY) if len(case.coalition) <= TINY.T]
    assert len(cases) == 6 * (16 + 5 * 5 + 10)
    assert all(case.verdict.private and case.verdict.withheld == 1 and case.exact for case in cases)


@pytest.mark.slow
def test_at_tiny_the_bound_is_t_and_not_T_plus_1() -> None:
    """Fewer than t users learn nothing more; t users learn each honest input, however it came."""
    for case in whole_audit(TINY):
        honest = len(set(case.survivors) - set(case.coalition))
        more = max(honest - 1, 0) + case.delayed if len(case.coalition) >= TINY.t else 0
        assert case.verdict.dimension == more
        assert case.verdict.index == TINY.R**more
        assert case.excess == (max(honest - 1, 0) if more else 0)
    assert {len(case.coalition) for case in whole_audit(TINY) if not case.verdict.private} == {3, 4}


SPARSE = [
    Parameters(R=8, N=5, D=1, T=1, t=2, k=2, d=1),
    Parameters(R=8, N=6, D=1, T=1, t=4, k=4, d=1),
]
LARGER = [
    Parameters(R=6, N=6, D=1, T=1, t=2, k=3, d=1),
    Parameters(R=6, N=7, D=1, T=1, t=3, k=2, d=1),
    Parameters(R=4, N=7, D=2, T=1, t=4, k=4, d=1),
    Parameters(R=8, N=8, D=1, T=1, t=3, k=3, d=1),
    Parameters(R=12, N=8, D=1, T=1, t=5, k=4, d=1),
]


def check(case: Case, graph: Graph, t: int) -> None:
    """What is learned is the sums over the components, and besides only of users with t colluding neighbours."""
    assert case.exact
    assert case.verdict.withheld == 1
    assert case.verdict.dimension == model.expected_excess(graph, t, case)
    bare = model.exposed(graph, t, case.coalition, case.sharers)
    assert case.verdict.private or bare


@pytest.mark.slow
@pytest.mark.parametrize("p", SPARSE, ids=repr)
def test_on_small_sparse_graphs_the_sums_over_components_are_learned(p: Parameters) -> None:
    cases = whole_audit(p)
    for case in cases:
        check(case, p.graph(), p.t)
    apart = [case for case in cases if len(case.parts) > 1]
    assert apart
    assert any(case.verdict.private for case in apart)


@pytest.mark.slow
@pytest.mark.parametrize("p", part(2, LARGER), ids=repr)
def test_on_sparse_graphs_of_seven_and_eight_users_too(p: Parameters) -> None:
    dropouts = list(model.every_dropout(p, p.graph()))
    coalitions = [users for users in model.every_coalition(p.N) if len(users) <= p.t]
    for case in model.audit(p, p.graph(), coalitions, dropouts):
        check(case, p.graph(), p.t)


@st.composite
def drawn_rounds(draw: st.DrawFn) -> tuple[Parameters, Graph, Users, Users, Users]:
    """Parameters, a graph on a drawn order, a coalition, U_2 and U_3."""
    N = draw(st.integers(4, 8))
    k = draw(st.sampled_from([k for k in range(2, N) if k == N - 1 or k * N % 2 == 0]))
    t = draw(st.integers(3, N) if k == N - 1 else st.integers(2, k + 1))
    p = Parameters(R=draw(st.sampled_from([2, 3, 4, 6, 2**32])), N=N, D=0, T=1, t=t, k=k, d=1)
    graph = p.graph(draw(st.permutations(range(N))))
    members = st.sets(st.sampled_from(range(N)), max_size=3)
    sharers = graph.core(set(range(N)) - draw(members), t)
    survivors = tuple(sorted(set(sharers) - draw(members)))
    if not model.goes_on(p, graph, sharers, survivors):
        sharers = survivors = tuple(range(N))
    return p, graph, tuple(sorted(draw(st.sets(st.sampled_from(range(N)))))), sharers, survivors


@pytest.mark.slow
@given(drawn_rounds())
def test_drawn_orders_and_dropouts(drawn: tuple[Parameters, Graph, Users, Users, Users]) -> None:
    p, graph, coalition, sharers, survivors = drawn
    [case] = model.audit(p, graph, [coalition], [(sharers, survivors)])
    check(case, graph, p.t)


def test_the_sum_falls_apart_where_the_server_and_one_user_stand_between() -> None:
    """On a circle of six, users 0 and 3 part users 1, 2 from 4, 5; without a coalition the sum is one."""
    p = Parameters(R=8, N=6, D=1, T=2, t=2, k=2, d=1)
    element = Element(p.ring, p.graph(), p.t, tuple(range(6)))
    everybody = most(p.graph(), element.sharers, element.sharers)
    verdict = element.view((0, 3), everybody).decide(element.total(range(6)))
    assert verdict.functionals in {("x_1[0] + x_2[0]",), ("x_4[0] + x_5[0]",)}
    assert element.decide((0, 3), everybody).private
    assert element.view((), everybody).decide(element.total(range(6))).private


# ------------------------------------------------------------------------------------------------------- dropouts


def every_answering_set(survivors: Users, sharers: Users) -> Iterator[Situation]:
    """Every U_5, with all masked inputs."""
    dropped = set(sharers) - set(survivors)
    for answering in subsets(survivors, at_least=0):
        answers = {j: model.honest_answer(TINY.graph(), j, survivors, dropped) for j in answering}
        yield Situation(sharers, survivors, sharers, answers)


@pytest.mark.parametrize("survivors", [EVERYONE, (0, 1, 3, 4), (1, 2, 4)])
def test_whoever_answers_nothing_more_is_learned_and_the_sum_exactly_with_t_answers(survivors: Users) -> None:
    element = tiny_element()
    for coalition in ((), (0,), (2,), (1, 4)):
        for situation in every_answering_set(survivors, EVERYONE):
            verdict = element.decide(coalition, situation)
            assert verdict.private
            learned = len({*situation.answers, *coalition}) >= TINY.t
            assert (verdict.withheld == 1) == (learned or len(set(survivors) - set(coalition)) == 0)


def test_a_delayed_user_whose_key_was_opened_stays_hidden() -> None:
    element, graph = tiny_element(), TINY.graph()
    for late in EVERYONE:
        survivors = tuple(user for user in EVERYONE if user != late)
        situation = most(graph, EVERYONE, survivors)
        assert situation.delayed == {late}
        for coalition in [(), *((user,) for user in survivors)]:
            verdict = element.decide(coalition, situation)
            assert verdict.private
            assert verdict.withheld == 1


def test_less_is_seen_between_the_two_bounds() -> None:
    element, survivors = tiny_element(), (0, 1, 2, 3)
    for coalition in model.every_coalition(5):
        low = element.decide(coalition, least(EVERYONE, survivors)).index
        high = element.decide(coalition, most(TINY.graph(), EVERYONE, survivors)).index
        for situation in every_answering_set(survivors, EVERYONE):
            assert low <= element.decide(coalition, situation).index <= high


# ---------------------------------------------------------------------------------- against counting every case


def masked_values(graph: Graph, R: int, values: dict[Any, UintArray]) -> dict[int, UintArray]:
    """All masked inputs, many rounds at once: one for each column. Runs the core itself."""
    ring, found = Ring(R), {}
    for i in graph.order:
        shared = [(j, values["s", min(i, j), max(i, j)]) for j in sorted(graph.neighbours(i))]
        found[i] = protocol.mask_update(ring, i, values["x", i], values["b", i], shared)
    return found


def excess_by_counting(graph: Graph, R: int, coalition: Users, survivors: Users) -> float:
    """I(x; view | what is allowed) in bits, over all values; every dropped user's input comes late."""
    users = graph.order
    pairs = [(i, j) for i in users for j in users if i < j and j in graph.neighbours(i)]
    names = [*(("x", i) for i in users), *(("b", i) for i in users), *(("s", *pair) for pair in pairs)]
    values: dict[Any, UintArray] = dict(zip(names, every_vector(R, len(names)), strict=True))
    opened = set(coalition) | (set(users) - set(survivors))
    seen = list(masked_values(graph, R, values).values())
    seen += [values["b", i] for i in users if i in coalition or i in survivors]
    seen += [values["s", i, j] for i, j in pairs if {i, j} & opened]
    own = [values["x", i] for i in coalition]
    sums = [
        Ring(R).sum(np.stack([values["x", i] for i in part]))
        for part in model.components(graph, set(survivors) - set(coalition))
    ]
    secrets, allowed = [values["x", i] for i in users], [*own, *sums, np.zeros_like(values["x", users[0]])]
    return conditional_information(codes(R, secrets), codes(R, [*seen, *own]), codes(R, allowed))


@pytest.mark.slow
@pytest.mark.parametrize(("N", "k", "R", "t"), [(3, 2, 4, 2), (4, 2, 2, 2), (4, 2, 2, 3), (4, 3, 2, 3)])
def test_all_values_of_all_users_are_counted(N: int, k: int, R: int, t: int) -> None:
    """With fewer than t colluding neighbours, what is counted is what the program says: nothing beyond."""
    graph = Graph(tuple(range(N)), k)
    element = Element(Ring(R), graph, t, tuple(range(N)))
    for coalition in [(), (0,), (1,)]:
        for survivors in (tuple(range(N)), tuple(range(1, N))):
            situation = most(graph, element.sharers, survivors)
            counted = excess_by_counting(graph, R, coalition, survivors)
            assert isclose(counted, element.decide(coalition, situation).bits, abs_tol=1e-9)
            assert isclose(counted, 0.0, abs_tol=1e-9)


# ----------------------------------------------------------------------------------------- the model and the round

SHELL = [
    (TINY, None, ()),
    (TINY, None, (2,)),
    (PRESETS["default"], None, (0, 9)),
    (Parameters(R=6, N=7, D=1, T=1, t=3, k=4, d=4), (3, 0, 5, 1, 6, 2, 4), (5,)),
    (Parameters(R=2**32, N=8, D=1, T=1, t=2, k=3, d=2), None, (1,)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("p", "order", "left_out"), SHELL)
def test_the_forms_are_the_messages_of_a_round(p: Parameters, order: Users | None, left_out: Users) -> None:
    """Shell and core: with the same inputs and seeds, the messages have the values of their forms."""
    randomness = protocol.draw_randomness(p, {i: SeededSource(b"round", str(i)) for i in range(p.N)})
    updates = np.arange(p.N * p.d, dtype=np.uint64).reshape(p.N, p.d) * np.uint64(7) % np.uint64(p.R)
    session, number = bytes(range(16)), 5
    result = protocol.run_round(
        p,
        updates,
        randomness=randomness,
        dropouts={"masked_input": left_out},
        order=order,
        session=session,
        round=number,
    )
    survivors = tuple(user for user in range(p.N) if user not in left_out)
    assert result.contributors == survivors
    graph = p.graph(order)
    streams = Streams(session=session, round=number)
    element = Element(p.ring, graph, p.t, tuple(range(p.N)), indices=range(p.d), streams=streams)
    values = value_of(p, graph, randomness, updates, session, number, element.space)
    sent = {m.sender: m.masked for e in result.transcript for m in e.sent if isinstance(m, protocol.MaskedInput)}
    assert set(sent) == set(survivors)
    for user in survivors:
        assert computed(element.masked[user], values, p.ring).tolist() == sent[user].tolist()
    assert computed(element.recovered(survivors), values, p.ring).tolist() == result.aggregate.tolist()
    given = {m.sender: m for e in result.transcript for m in e.sent if isinstance(m, protocol.UnmaskShares)}
    situation = most(graph, element.sharers, survivors)
    assert situation.answers == {j: Answer(m.survivors, m.dropped) for j, m in given.items()}


def value_of(
    p: Parameters, graph: Graph, randomness: Any, updates: UintArray, session: bytes, number: int, space: Space
) -> UintArray:
    """The value of each symbol in a round: inputs, and the streams of the keys that the text derives."""
    context = protocol.Round(p, graph, session, number).context()
    private = {i: randomness[i]["masking_key"] for i in range(p.N)}
    public = {i: public_key(key) for i, key in private.items()}

    @cache
    def stream(seed: Any) -> UintArray:
        if seed[0] == "self seed":
            key = masks.self_key(context, randomness[seed[2]]["self_seed"], seed[2])
        else:
            _, _, i, j = seed
            key = masks.pairwise_key(context, agree(private[i], public[j]), {i: public[i], j: public[j]})
        return expand(key, p.ring, p.d)

    def value(symbol: Any) -> int:
        if isinstance(symbol, Secret):
            return int(updates[symbol.user, symbol.index])
        assert isinstance(symbol, Derived)
        assert (symbol.derivation.session, symbol.derivation.round) == (session, number)
        seed: Any = symbol.derivation.seed
        assert symbol.derivation.purpose == {"self seed": "self-mask", "agreed": "pairwise-mask"}[seed[0]]
        return int(stream(seed)[symbol.index])

    return np.array([value(symbol) for symbol in space.symbols], dtype=np.uint64)


def computed(forms: Forms, values: UintArray, ring: Ring) -> UintArray:
    """The values of forms."""
    return ring.matmul(forms.matrix, values[forms.symbols].reshape(-1, 1))[:, 0]


@pytest.mark.parametrize("coalition", [(), (1,), (0, 2), (0, 1, 2)])
def test_several_elements_say_what_one_says_of_each(coalition: Users) -> None:
    three, one = tiny_element(indices=range(3)), tiny_element()
    for survivors in (EVERYONE, (0, 1, 3, 4)):
        situation = most(TINY.graph(), EVERYONE, survivors)
        whole, single = three.decide(coalition, situation), one.decide(coalition, situation)
        assert (whole.index, whole.leak) == (single.index**3, single.leak**3)


def test_equal_derivations_are_one_symbol_and_others_are_not() -> None:
    space = Space(RING)
    base = Streams()
    changed = [
        Streams(session=b"1" * 16),
        Streams(protocol="secagg-active"),
        Streams(round=1),
        Streams(segment=1),
    ]
    streams = [base.derivation("seed", "self-mask"), base.derivation("seed", "pairwise-mask")]
    streams += [base.derivation("another seed", "self-mask")]
    streams += [other.derivation("seed", "self-mask") for other in changed]
    forms = [space.derived(stream, 2) for stream in streams]
    assert len(space.symbols) == 2 * len(streams)
    again = space.derived(Streams().derivation("seed", "self-mask"), 2)
    assert again.symbols.tolist() == forms[0].symbols.tolist()


# ------------------------------------------------------------------------------------- the breaks that rules prevent


def everybody(element: Element) -> Situation:
    """All masked inputs arrive in time, and all users answer."""
    return most(element.graph, element.sharers, element.sharers)


def test_both_secrets_of_one_user_give_its_input() -> None:
    """SAG-20, SAG-24 and SAG-25: of each user one secret only is given."""
    element = tiny_element()
    view = element.view((), everybody(element))
    assert view.decide(*element.allowed((), EVERYONE)).private
    view.reveal(element.tokens.masking_key(2))
    assert view.decide(*element.allowed((), EVERYONE)).functionals == ("x_2[0]",)


def test_one_answer_with_both_shares_is_enough_when_t_users_give_it() -> None:
    element = tiny_element()
    for count in range(6):
        both = {j: Answer(EVERYONE, (2,) if j < count else ()) for j in EVERYONE}
        verdict = element.decide((), Situation(EVERYONE, EVERYONE, EVERYONE, both))
        assert verdict.functionals == (("x_2[0]",) if count >= TINY.t else ())


def test_without_a_self_mask_a_delayed_user_is_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step 5: why there are two masks."""
    real = protocol.mask_update

    def bare(ring: Ring, user: int, update: UintArray, self_mask: UintArray, pairwise: Any) -> UintArray:
        return real(ring, user, update, np.zeros_like(self_mask), pairwise)

    monkeypatch.setattr(protocol, "mask_update", bare)
    element = tiny_element()
    assert element.decide((), everybody(element)).private
    late = most(TINY.graph(), EVERYONE, (0, 1, 3, 4))
    assert element.decide((), late).functionals == ("x_2[0]",)


def test_with_fewer_than_T_plus_2_survivors_the_sum_is_an_input() -> None:
    """SAG-22: T colluders and one honest user."""
    element = Element(RING, TINY.graph(), 2, EVERYONE)
    situation = most(TINY.graph(), EVERYONE, (0, 1))
    assert element.decide((0,), situation).private
    assert element.view((0,), situation).decide().functionals == ("x_1[0]",)
    three = most(TINY.graph(), EVERYONE, (0, 1, 2))
    assert tiny_element().view((0,), three).decide().functionals == ("x_1[0] + x_2[0]",)
    requests = Requests(TINY)
    assert requests.answer(1, (0, 1)) is None
    assert requests.answer(1, (0, 1, 2)) == Answer((0, 1, 2), (3, 4))


def two_vectors(second: Streams, survivors: Users = EVERYONE, coalition: Users = ()) -> Verdict:
    """What is learned beyond the sums of two vectors, the second masked by the given streams."""
    space = Space(RING)
    one = tiny_element(space=space)
    two = tiny_element(space=space, streams=second, name="w")
    view = View(space, coalition, [*one.rules, *two.rules])
    one.show(view, everybody(one))
    two.show(view, most(two.graph, EVERYONE, survivors))
    return view.decide(*one.allowed(coalition, EVERYONE), *two.allowed(coalition, survivors))


@pytest.mark.parametrize("second", [Streams(round=1), Streams(segment=1), Streams(session=b"1" * 16)])
def test_streams_of_their_own_keep_two_vectors_apart(second: Streams) -> None:
    assert two_vectors(second).private
    assert two_vectors(second, coalition=(3,)).private


def test_one_stream_for_two_rounds_or_two_vectors_gives_every_difference() -> None:
    """Conventions, section 12: round and segment are in the key of a mask."""
    verdict = two_vectors(Streams())
    assert verdict.dimension == 4
    assert all("x_" in functional and "w_" in functional for functional in verdict.functionals)


def test_seeds_that_are_kept_for_another_round_open_who_drops_out_there() -> None:
    """Step 3 draws them anew: the self seed comes out in one round, the masking key in the other."""
    survivors = (0, 1, 3, 4)
    assert two_vectors(Streams(round=1, drawing=1), survivors).private
    assert set(two_vectors(Streams(round=1), survivors).functionals) == {"x_2[0]", "w_2[0]"}


# ------------------------------------------------------------------------------------------- a server that lies

WITHOUT_1 = (0, 2, 3, 4)


def test_a_server_that_names_different_survivors_gets_both_secrets_of_one_user() -> None:
    """The smallest case on a complete graph: five users, t = 3, one colluder."""
    received = {1: EVERYONE, 2: EVERYONE, 3: WITHOUT_1, 4: WITHOUT_1}
    verdict = model.equivocation(Requests(TINY), (0,), received)
    assert verdict.functionals == ("x_1[0]",)
    assert model.equivocation(Requests(TINY), (0,), dict.fromkeys((1, 2, 3, 4), EVERYONE)).private


def lies(p: Parameters, coalition: Users) -> Iterator[dict[int, Users]]:
    """Every way to tell each honest user a set that it accepts."""
    honest = [user for user in range(p.N) if user not in coalition]
    sets = list(subsets(range(p.N), at_least=p.enough))
    for received in product(*([users for users in sets if user in users] for user in honest)):
        yield dict(zip(honest, received, strict=True))


def opened(requests: Requests, coalition: Users, received: dict[int, Users]) -> set[int]:
    """The users of whom a lying server gets t shares of both secrets; counted, not decided."""
    answers = {user: requests.answer(user, chosen) for user, chosen in received.items()}
    graph, t, found = requests.element.graph, requests.parameters.t, set()
    for user in set(range(requests.parameters.N)) - set(coalition):
        own = len(graph.neighbours(user) & set(coalition))
        seeds, keys = (sum(user in answer[kind] for answer in answers.values() if answer) for kind in (0, 1))
        if own + seeds >= t and own + keys >= t:
            found.add(user)
    return found


@pytest.mark.parametrize(
    ("p", "coalition", "most_opened"),
    [
        (Parameters(R=8, N=4, D=0, T=1, t=3, k=3, d=1), (), 0),
        (Parameters(R=8, N=4, D=0, T=1, t=3, k=3, d=1), (0,), 0),
        (Parameters(R=8, N=5, D=0, T=1, t=4, k=4, d=1), (0,), 0),
        (TINY, (0,), 4),
        (Parameters(R=8, N=4, D=0, T=1, t=2, k=2, d=1), (), 0),
        (Parameters(R=8, N=4, D=0, T=1, t=2, k=2, d=1), (0,), 1),
    ],
    ids=["4 users", "4 users, 1 colluder", "t = 4", "tiny, 1 colluder", "circle of 4", "circle of 4, 1 colluder"],
)
def test_all_lies_at_the_smallest_sizes(p: Parameters, coalition: Users, most_opened: int) -> None:
    requests, worst = Requests(p), 0
    decided: dict[frozenset[int], dict[int, Users]] = {}
    for received in lies(p, coalition):
        found = opened(requests, coalition, received)
        worst = max(worst, len(found))
        decided.setdefault(frozenset(found), received)
    assert worst == most_opened
    for users, received in decided.items():
        assert bool(users) == (not model.equivocation(requests, coalition, received).private)


def test_the_server_alone_needs_six_users_for_a_threshold_of_three() -> None:
    """2t <= N + c, with c colluders: 6 <= 5 fails at `tiny`, 6 <= 6 holds here."""
    for sets in product((EVERYONE, WITHOUT_1), repeat=4):
        received = {1: EVERYONE, **dict(zip((0, 2, 3, 4), sets, strict=True))}
        assert model.equivocation(waiting_at_tiny(), (), received).private
    p = Parameters(R=8, N=6, D=0, T=1, t=3, k=5, d=1)
    six, without = tuple(range(6)), (0, 2, 3, 4, 5)
    told_six = {0: six, 1: six, 2: six, 3: without, 4: without, 5: without}
    assert model.equivocation(Requests(p), (), told_six).functionals[0] == "x_1[0]"


@cache
def waiting_at_tiny() -> Requests:
    """The users of `tiny`, once."""
    return Requests(TINY)


def test_bad_lies_are_refused() -> None:
    requests = waiting_at_tiny()
    with pytest.raises(ParameterError, match="honest users"):
        model.equivocation(requests, (0,), {0: EVERYONE})
    with pytest.raises(ParameterError, match="at least one"):
        model.equivocation(requests, (0,), {})
    with pytest.raises(UnknownUser):
        model.equivocation(requests, (5,), {0: EVERYONE})


# --------------------------------------------------------------------------------------------------- mutants


def test_a_mask_that_both_users_add_hides_the_sum_too(monkeypatch: pytest.MonkeyPatch) -> None:
    real = protocol.mask_update
    monkeypatch.setattr(protocol, "mask_update", lambda ring, user, *rest: real(ring, -1, *rest))
    [case] = model.audit(TINY, TINY.graph(), [()], [(EVERYONE, EVERYONE)])
    assert not case.exact
    assert case.verdict.withheld > 1


def test_the_printed_sign_leaves_masks_in_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    real = protocol.unmask

    def printed(ring: Ring, total: UintArray, own: Any, left: Any) -> UintArray:
        return real(ring, total, own, [(j, i, mask) for i, j, mask in left])

    monkeypatch.setattr(protocol, "unmask", printed)
    dropouts = [(EVERYONE, EVERYONE), (EVERYONE, (0, 1, 2))]
    assert [case.exact for case in model.audit(TINY, TINY.graph(), [()], dropouts)] == [True, False]


def test_forgotten_pairwise_masks_leak_to_the_server_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    real = protocol.mask_update
    monkeypatch.setattr(protocol, "mask_update", lambda ring, user, x, own, pairwise: real(ring, user, x, own, ()))
    element = tiny_element()
    assert element.decide((), everybody(element)).dimension == 4


def test_a_core_that_is_not_affine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "mask_update", lambda ring, user, x, own, pairwise: ring.multiply(x, x))
    with pytest.raises(NotAffine, match="mask_update"):
        tiny_element()


def test_an_answer_lists_users_in_order() -> None:
    answer = honest_answer(complete(12), 0, (11, 9, 8, 1), (10, 3, 2, 0))
    assert (answer.seeds, answer.keys) == ((1, 8, 9, 11), (0, 2, 3, 10))


@pytest.mark.parametrize("survivors", [(), (0, 1, 2, 3), (4,)])
def test_survivors_are_users_who_shared_at_least_one(survivors: Users) -> None:
    with pytest.raises(
        ParameterError, match=r"^dropouts = .*: must be U_2 and U_3, where U_3 is one user of U_2 or more$"
    ):
        next(model.audit(TINY, TINY.graph(), [(0,)], [(EVERYONE, EVERYONE), ((0, 1, 2), survivors)]))


def test_users_outside_the_roster_are_refused() -> None:
    with pytest.raises(UnknownUser):
        list(model.audit(TINY, TINY.graph(), [(5,)], [(EVERYONE, EVERYONE)]))


def test_forms_of_a_view_are_joined_over_their_symbols() -> None:
    element = tiny_element()
    assert join([element.masked[0], element.masked[1]]).symbols.size == 2 + 2 + 4 + 3


def test_every_dropout_is_one_with_which_a_round_goes_on() -> None:
    graph = TINY.graph()
    expected = {
        (sharers, survivors) for sharers in subsets(EVERYONE, at_least=3) for survivors in subsets(sharers, at_least=3)
    }
    assert set(model.every_dropout(TINY, graph)) == expected


@pytest.mark.parametrize(
    ("coalition", "bare", "learned"), [((0, 2), 2, 2), ((0, 3), 4, 3), ((0, 1), 2, 2), ((0,), 0, 0)]
)
def test_the_least_that_is_seen_shows_users_with_t_colluding_neighbours(
    coalition: Users, bare: int, learned: int
) -> None:
    """On a circle of six, with all neighbours but the one across, the inputs of these users and the rest come out.

    Each is a functional, and so is the sum over the rest if there is one; the sum over all honest users is allowed.
    """
    p = Parameters(R=8, N=6, D=1, T=1, t=2, k=4, d=1)
    everyone = tuple(range(6))
    [case] = model.audit(p, p.graph(), [coalition], [(everyone, everyone)])
    assert len(model.exposed(p.graph(), p.t, coalition, everyone)) == bare
    assert (case.excess, case.verdict.private) == (learned, not learned)


def test_an_audit_refuses_users_that_are_not_there_or_are_named_twice() -> None:
    for error, wrong in ((UnknownUser, (0, 5)), (DuplicateUser, (1, 1))):
        for coalition, sharers, survivors in (
            (wrong, EVERYONE, EVERYONE),
            ((), wrong, EVERYONE),
            ((), EVERYONE, wrong),
        ):
            with pytest.raises(error, match="^coalitions = " if coalition else "^dropouts = "):
                list(model.audit(TINY, TINY.graph(), [coalition], [(sharers, survivors)]))


@pytest.mark.parametrize("strange", [-1, 5, 99])
def test_users_that_are_not_of_the_graph_are_refused(strange: int) -> None:
    element = tiny_element()
    happened = most(TINY.graph(), EVERYONE, EVERYONE)
    call: Any
    for call in (element.total, element.masked_sum, element.recovered, lambda users: element.allowed((), users)):
        with pytest.raises(UnknownUser, match=rf"^(users|survivors) = {strange}: must be a user in \[0, 5\)$"):
            call((0, strange))
    for call in (lambda users: element.decide(users, happened), lambda users: element.allowed(users, EVERYONE)):
        with pytest.raises(UnknownUser, match=rf"^coalition = {strange}: must be a user in \[0, 5\)$"):
            call({strange})
    for name in ("sharers", "members"):
        with pytest.raises(UnknownUser, match=rf"^{name} = {strange}: must be a user in \[0, 5\)$"):
            tiny_element(**{name: (0, strange)})
    with pytest.raises(UnknownUser, match=r"^users = 4: must be a user that masks this element$"):
        tiny_element(members=(0, 1, 2)).total((0, 4))


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"t": t}, "t = .*: must be an integer >= 1") for t in (0, -1, True, 2.0, "3", None)]
    + [({"indices": one}, "indices = ") for one in ((-1,), (0.0,), (True,), "0", None)]
    + [({"members": one}, "members = ") for one in ((True,), "01", 3, (0, 0))],
)
def test_an_element_of_what_is_no_number_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        tiny_element(**changed)


SEVEN = Graph(tuple(range(7)), 6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: list(model.every_coalition(-1)), r"N = -1: must be an integer in \[0, 65536\]"),
        (lambda: list(model.every_coalition("3")), r"N = '3': must be an integer in \[0, 65536\]"),  # type: ignore[arg-type]
        (lambda: list(model.audit(TINY, SEVEN, [()], [])), r"len\(graph.order\) = 7: must be N = 5"),
        (lambda: list(model.every_dropout(TINY, SEVEN)), r"len\(graph.order\) = 7: must be N = 5"),
        (lambda: model.exposed(TINY.graph(), 2, (9,), (0, 1)), r"coalition = 9: must be a user in \[0, 5\)"),
        (lambda: model.exposed(TINY.graph(), 2, (), (0, -1)), r"sharers = -1: must be a user in \[0, 5\)"),
        (
            lambda: tiny_element(sharers=(0, 1, 2)).decide((), least((0, 1, 2), (0, 4))),
            r"survivors = 4: must be a user of U_2, which is \(0, 1, 2\)",
        ),
        (
            lambda: tiny_element(sharers=(0, 1, 2)).decide((), least(EVERYONE, (0, 1))),
            r"sharers = \(0, 1, 2, 3, 4\): must be U_2 of the element, \(0, 1, 2\)",
        ),
        (lambda: Situation((0, 1), (0,), (2,), {}), r"uploaded = 2: must be a user of U_2, which is \(0, 1\)"),
        (lambda: Situation((0, 1), cast(Any, "01"), (), {}), "survivors = 'str': must be a sequence of users"),
        (lambda: Situation((0, 1), (0,), (0,), cast(Any, [])), "answers = 'tuple': must be a mapping"),
        (lambda: Situation((0, 1), (0,), (0,), {0: cast(Any, ())}), "answers = 'tuple': must be of the class Answer"),
        (
            lambda: tiny_element().decide((), Situation(EVERYONE, EVERYONE, EVERYONE, {9: Answer((), ())})),
            r"answers = 9: must be a user in \[0, 5\)",
        ),
        (lambda: most(TINY.graph(), EVERYONE, (9,)), r"survivors = 9: must be a user in \[0, 5\)"),
        (lambda: model.components(TINY.graph(), (9,)), r"users = 9: must be a user in \[0, 5\)"),
        (lambda: model.components(TINY.graph(), cast(Any, ("0",))), "users = 'str': must be an integer, .*"),
        (lambda: model.goes_on(TINY, TINY.graph(), EVERYONE, (9,)), r"survivors = 9: must be a user in \[0, 5\)"),
        (
            lambda: model.goes_on(TINY, TINY.graph(), (0, 1, 2), (0, 1, 3)),
            r"survivors = 3: must be a user of U_2, which is \(0, 1, 2\)",
        ),
        (lambda: model.exposed(TINY.graph(), 0, (1,), (0, 1)), "t = 0: must be an integer >= 1"),
        (lambda: model.exposed(TINY.graph(), cast(Any, "2"), (1,), (0, 1)), "t = '2': must be an integer >= 1"),
        (lambda: Streams(session=cast(Any, "00")), "session = 'str': must be bytes"),
        (lambda: Streams(drawing=cast(Any, "a")), "drawing = 'a': must be an integer >= 0"),
        (lambda: Streams(round=-1), "round = -1: must be an integer >= 0"),
        (lambda: tiny_element(indices=()), r"len\(indices\) = 0: must be 1 or more"),
        (lambda: tiny_element(space=Space(Ring(7))), "space = 'one modulo 7': must be one modulo 8"),
        (lambda: tiny_element(arrived={9: (0,)}), r"arrived = 9: must be a user in \[0, 5\)"),
        (lambda: tiny_element(arrived={0: (9,)}), r"arrived = 9: must be a user in \[0, 5\)"),
        (lambda: Requests(replace(TINY, d=2**31)), r"d = 2147483648: must be at most 2\^24 / N = 3355443: .*"),
        (lambda: Requests(TINY, arrived={0: (9,)}), r"arrived = 9: must be a user in \[0, 5\)"),
        (
            lambda: model.equivocation(Requests(TINY), (0,), cast(Any, {1: EVERYONE, "zz": ()})),
            "announced = 'str': must be an integer, .*",
        ),
        (
            lambda: model.equivocation(Requests(TINY), (0,), {1: (0, 9)}),
            r"announced = 9: must be a user in \[0, 5\)",
        ),
        (
            lambda: list(model.audit(TINY, TINY.graph(), [], [cast(Any, (EVERYONE,))])),
            "dropouts = '1 sets': must be .*",
        ),
    ],
)
def test_cases_that_there_are_not_are_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        call()


def test_elements_of_several_spaces_are_not_seen_together() -> None:
    first, second = tiny_element(), tiny_element(name="z")
    with pytest.raises(ParameterError, match=r"^view = 'of several spaces': must be of one space"):
        second.show(first.view(()), least(EVERYONE, EVERYONE))


def test_lists_make_the_same_situation() -> None:
    lists = [*EVERYONE]
    given = Situation(lists, lists, lists, most(TINY.graph(), EVERYONE, EVERYONE).answers)  # type: ignore[arg-type]
    assert given == most(TINY.graph(), lists, lists)  # type: ignore[arg-type]
    assert tiny_element(sharers=lists).decide((), given).private
    cases = model.audit(TINY, TINY.graph(), [[0]], [(lists, lists)])  # type: ignore[list-item]
    assert [(case.coalition, case.sharers, case.survivors) for case in cases] == [((0,), EVERYONE, EVERYONE)]
