"""What coalitions learn from buffers of BASecAgg: every coalition at `tiny`, rules left out, and mutants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import InconsistentSets, LengthMismatch, OutOfRange, ParameterError, Replay, UnknownUser
from secagg_spec.privacy import basecagg as model
from secagg_spec.privacy.basecagg import Buffer, Case, Column, Situation, Unchecked, least, most
from secagg_spec.privacy.lightsecagg import UncheckedCode, Users
from secagg_spec.privacy.probe import NotAffine
from secagg_spec.privacy.views import Drawn, Forms, Secret
from secagg_spec.protocols.basecagg import round as protocol
from secagg_spec.protocols.basecagg.round import (
    PRESETS,
    Entry,
    Held,
    Parameters,
    StampedShare,
    StampedUpdate,
    WeightedShare,
)
from secagg_spec.protocols.basecagg.runs import Recover, Start, Turn, Upload, draw_randomness, run_schedule
from secagg_spec.protocols.codec import vector_from_bytes
from tests.privacy.test_lightsecagg import value_of
from tests.quick import exhaustive, part
from tests.strategies import subsets

TINY = PRESETS["tiny"]
FULL, SHORT = (0, 2), (1,)
SOME_WEIGHTS = ((3, 3, 3), (3, 2, 1), (1, 1, 2))
SETS = tuple(model.every_user_set(TINY))


def parameters(q: int, N: int, U: int, T: int, K: int, c_g: int = 1, d: int | None = None) -> Parameters:
    """Parameters without users that are away, by default with one column and no padding."""
    s = Staleness.polynomial(1)
    size = U - T if d is None else d
    return Parameters(q=q, N=N, D=0, U=U, T=T, d=size, K=K, c_l=1, c_g=c_g, tau_max=c_g - 1, staleness=s)


def buffer(weights: tuple[int, ...], users: Users = (0, 1, 2), p: Parameters = TINY) -> Buffer:
    """A buffer of the given users with the given weights."""
    return model.weighed(p, users, weights)


def column(elements: Users = FULL, kind: type[Column] = Column, p: Parameters = TINY) -> Column:
    """The column of some elements."""
    return kind(p, p.code, elements)


@cache
def whole_audit() -> tuple[Case, ...]:
    """Every coalition and every set of users in the buffer, with different weights."""
    buffers = [model.varied(TINY, users) for users in SETS]
    return tuple(model.audit(TINY, TINY.code, list(model.every_coalition(TINY, TINY.N)), buffers))


# ------------------------------------------------------------------------------------------------ what is learned


@pytest.mark.slow
@pytest.mark.requirement("BSA-24", "BSA-27", "MDS-10")
def test_at_tiny_up_to_T_users_learn_exactly_the_weighted_sum() -> None:
    buffers = [buffer(weights, users) for users in SETS for weights in SOME_WEIGHTS]
    coalitions = list(model.every_coalition(TINY, TINY.T))
    cases = list(model.audit(TINY, TINY.code, coalitions, buffers))
    assert len(cases) == 6 * 30 * 2
    assert all(case.verdict.private and case.verdict.withheld == 1 for case in cases)
    assert all(case.handed_over is None for case in cases)


@pytest.mark.slow
@pytest.mark.parametrize("users", [SETS[0], *(pytest.param(users, marks=exhaustive) for users in SETS[1:])])
def test_at_tiny_all_weights_give_the_same_dimensions(users: Users) -> None:
    """Up to T + 1 users, every buffer, every weights that some stamps admit; 640 buffers come down to 270 weights.

    ``make test`` takes the buffers of the first users, and every fourth of their weights.
    """
    coalitions = list(model.every_coalition(TINY, TINY.T + 1))
    one = {(c.coalition, c.buffer.users, c.elements): (c.excess, c.verdict.dimension) for c in whole_audit()}
    buffers = [buffer(weights, users) for weights in part(4, model.every_weighting(TINY))]
    cases = 0
    for case in model.audit(TINY, TINY.code, coalitions, buffers):
        assert (case.excess, case.verdict.dimension) == one[case.coalition, case.buffer.users, case.elements]
        assert case.verdict.withheld == 1
        cases += 1
    assert cases == len(part(4, range(27))) * 16 * 2


@pytest.mark.requirement("BSA-27")
@pytest.mark.parametrize("users", [SETS[0], *(pytest.param(users, marks=pytest.mark.slow) for users in SETS[1:])])
def test_answers_are_shares_times_weights_for_all_stamps_and_weights(users: Users) -> None:
    buffers = [chosen for chosen in model.every_buffer(TINY) if chosen.users == users]
    assert len(buffers) == 4**3
    assert {chosen.weights for chosen in buffers} == set(model.every_weighting(TINY))
    assert all(model.scales(TINY, chosen) for chosen in buffers)


@pytest.mark.slow
def test_T_plus_1_users_learn_more_exactly_where_two_honest_users_contribute() -> None:
    larger = [case for case in whole_audit() if len(case.coalition) == TINY.T + 1]
    assert len(larger) == 10 * 10 * 2
    for case in larger:
        assert (case.excess > 0) == (len(case.contributors) >= 2)
        assert case.excess == model.expected_excess(TINY, case)
        assert case.verdict.dimension == case.excess + case.besides


def test_in_a_full_column_coalitions_of_any_size_learn_what_the_figure_says() -> None:
    """Also where the figure is 0: T users or fewer, and one honest contributor or none."""
    coalitions = [tuple(range(size)) for size in range(TINY.N + 1)]
    buffers = [buffer((1, 1, 2)), buffer((3, 2, 1), (0, 3, 4))]
    cases = [case for case in model.audit(TINY, TINY.code, coalitions, buffers) if case.elements == FULL]
    assert {len(case.contributors) for case in cases} == {0, 1, 2, 3}
    assert all(case.excess == model.expected_excess(TINY, case) for case in cases)


@pytest.mark.slow
def test_in_a_full_column_larger_coalitions_learn_what_the_figure_says() -> None:
    full = [case for case in whole_audit() if case.elements == FULL and len(case.coalition) > TINY.T]
    over = {case: min(len(case.coalition) - TINY.T, TINY.U - TINY.T) for case in full}
    assert all(case.excess == model.expected_excess(TINY, case) for case in full)
    assert all(case.verdict.dimension == case.excess + over[case] * case.besides for case in full)


@pytest.mark.slow
def test_a_column_that_ends_in_padding_holds_less() -> None:
    """Three users would learn two dimensions of each honest update, and there is one element to learn."""
    short = [case for case in whole_audit() if case.elements == SHORT and len(case.coalition) == 3]
    fewer = [case for case in short if case.excess < model.expected_excess(TINY, case)]
    assert {len(case.contributors) for case in fewer} == {2}
    assert {case.excess for case in fewer} == {1}


def test_one_update_outside_the_buffer_stands_for_all() -> None:
    coalitions, buffers = list(model.every_coalition(TINY, TINY.N)), [model.varied(TINY, (0, 1, 2))]
    some = {(c.coalition, c.elements): c for c in model.audit(TINY, TINY.code, coalitions, buffers, outside=1)}
    assert {case.besides for case in some.values()} == {0, 1}
    for case in model.audit(TINY, TINY.code, coalitions, buffers):
        fewer = some[case.coalition, case.elements]
        assert case.excess == fewer.excess
        if case.besides:
            added = fewer.verdict.dimension - fewer.excess
            assert case.verdict.dimension - case.excess == case.besides * added


def responders(coalition: Users) -> Iterator[Users]:
    """Every set of honest users that may answer."""
    yield from subsets([user for user in range(TINY.N) if user not in coalition], at_least=0)


@pytest.mark.requirement("BSA-29")
@pytest.mark.parametrize("users", [SETS[0], *(pytest.param(users, marks=pytest.mark.slow) for users in SETS[1:])])
def test_whoever_answers_up_to_T_users_learn_the_sum_when_U_shares_are_there_and_else_nothing(users: Users) -> None:
    """In a column with padding fewer are enough: one for each element, and T."""
    columns, announced = [column(FULL), column(SHORT)], buffer((3, 2, 1), users)
    for coalition in ((), *((user,) for user in range(TINY.N))):
        for answering in responders(coalition):
            situation = Situation((announced,), announced.updates, tuple((j, announced) for j in answering))
            for one in columns:
                verdict = one.decide(coalition, situation)
                assert verdict.private
                assert (verdict.withheld == 1) == (len(answering) + len(coalition) >= len(one.elements) + TINY.T)


@pytest.mark.slow
def test_whoever_answers_nothing_lies_outside_the_two_bounds() -> None:
    """Every coalition, every buffer, every set of answers at `tiny`: what is learned beyond the sum is that of no
    answer, and an update besides is all that adds to it."""
    part = column(FULL)
    for case in whole_audit():
        if case.elements == FULL:
            for answering in responders(case.coalition):
                answered = tuple((j, case.buffer) for j in answering)
                situation = Situation((case.buffer,), case.buffer.updates, answered)
                assert part.decide(case.coalition, situation).dimension == case.excess
                upper = Situation((case.buffer,), most(TINY, case.buffer).uploaded, answered)
                assert part.decide(case.coalition, upper).dimension == case.verdict.dimension


def test_a_members_own_answer_adds_nothing() -> None:
    part, announced = column(), buffer((3, 1, 2))
    for coalition in ((0,), (1, 3)):
        for situation in (least(announced), most(TINY, announced)):
            before, after = (part.view(coalition, situation) for _ in range(2))
            after.see(*(part.answer(user, announced) for user in coalition))
            assert before.decide().leak == after.decide().leak


@st.composite
def drawn_parameters(draw: st.DrawFn) -> Parameters:
    """Parameters with up to 6 users."""
    N = draw(st.integers(3, 6))
    T = draw(st.integers(1, N - 2))
    U, K, c_g = draw(st.integers(T + 1, N)), draw(st.integers(T + 2, N)), draw(st.integers(1, 3))
    q = draw(st.sampled_from([prime for prime in (7, 11, 13, 19, 37, 2**32 - 5) if prime >= 2 * K * c_g + 1]))
    return parameters(q, N, U, T, K, c_g, d=draw(st.integers(1, 5)))


@pytest.mark.slow
@given(st.data())
def test_drawn_parameters_keep_T_users_out(data: st.DataObject) -> None:
    p = data.draw(drawn_parameters())
    coalition = data.draw(st.sampled_from(list(combinations(range(p.N), p.T))))
    users = data.draw(st.sampled_from(list(model.every_user_set(p))))
    weights = data.draw(st.sampled_from(model.every_weighting(p)))
    announced = model.weighed(p, users, weights)
    assert model.scales(p, announced)
    for case in model.audit(p, p.code, [coalition], [announced]):
        assert case.verdict.private
        assert case.verdict.withheld == 1
        assert case.handed_over is None


# -------------------------------------------------------------------------------------- against counting every case


def views(p: Parameters, weights: tuple[int, ...], updates: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The view of user 0 and the server for each value of the honest masks and noise, sorted. U - T is 1, and T is 1.

    The cores run on all these values at once, as columns.
    """
    q, honest = p.q, [1, 2]
    grid = np.array(np.unravel_index(np.arange(q**4), (q,) * 4), dtype=np.uint64).reshape(4, -1)
    width = grid.shape[1]
    masks = {0: np.full(width, 3, dtype=np.uint64), 1: grid[0], 2: grid[1]}
    noise = {0: np.full(width, 5, dtype=np.uint64), 1: grid[2], 2: grid[3]}
    announced = model.weighed(p, (0, 1, 2), weights)
    inputs = {i: np.full(width, x % q, dtype=np.uint64) for i, x in zip(honest, updates, strict=True)}
    uploads = [protocol.mask_update(p.field, p.total_weight, inputs[i], masks[i]) for i in honest]
    shares = {i: p.code.encode(masks[i], noise[i].reshape(1, -1)) for i in range(3)}
    stamps = dict(announced.updates)
    held = [{i: Held(stamps[i], shares[i][j]) for i in range(3)} for j in range(3)]
    answers = [protocol.combine_shares(p, announced.round, announced.entries, held[j]) for j in honest]
    rows = np.stack([*uploads, *(held[0][i].share for i in honest), *answers]).astype(np.int64)
    code = np.zeros(width, dtype=np.int64)
    for row in rows:
        code = code * q + row
    result: list[Any] = np.sort(code).tolist()
    return result


@pytest.mark.requirement("BSA-27")
@pytest.mark.parametrize("weights", [(2, 2, 1), (1, 1, 2), (2, 1, 1)])
def test_two_pairs_of_updates_look_the_same_to_T_users_exactly_when_their_weighted_sums_are_equal(
    weights: tuple[int, ...],
) -> None:
    """All values of masks and noise over F_13 are counted, for every two updates that a buffer can carry."""
    p = parameters(13, 3, 2, 1, 3, c_g=2)
    assert p.budget == 1
    seen = {pair: views(p, weights, pair) for pair in product((-1, 0, 1), repeat=2)}
    sums = {pair: weights[1] * pair[0] + weights[2] * pair[1] for pair in seen}
    for one, other in combinations(seen, 2):
        assert (seen[one] == seen[other]) == (sums[one] == sums[other])


def test_the_range_check_changes_no_update() -> None:
    """The core is probed with the total weight 1, which carries every element."""
    mask = np.arange(3, dtype=np.uint64)
    for x in (0, 1, 18):
        update = np.full(3, x, dtype=np.uint64)
        masked = [protocol.mask_update(TINY.field, weight, update, mask).tolist() for weight in (1, TINY.total_weight)]
        assert masked[0] == masked[1]
    with pytest.raises(OutOfRange):
        protocol.mask_update(TINY.field, TINY.total_weight, np.full(3, 2, dtype=np.uint64), mask)


# ------------------------------------------------------------------------------- the sum of the paper's definition


@pytest.mark.slow
def test_the_papers_definition_does_not_hold_with_weights_that_differ() -> None:
    """Given the sum without weights, the weighted sum is news exactly when two honest users have two weights."""
    for elements in (FULL, SHORT):
        part = column(elements)
        for weights in model.every_weighting(TINY):
            announced = buffer(weights)
            for coalition in ((), (2,), (4,)):
                view = part.view(coalition, least(announced))
                view.see(*(part.answer(j, announced) for j in range(TINY.N)))
                verdict = view.decide(part.total(announced, (1, 1, 1)))
                honest = {weight for user, weight in enumerate(weights) if user not in coalition}
                assert verdict.private == (len(honest) == 1)
                assert verdict.dimension == (0 if verdict.private else len(elements))


def test_with_one_weight_apart_the_two_sums_hand_over_an_update() -> None:
    """Whoever knew the sum without weights would get user 1's update from the weighted one."""
    part, announced = column(), buffer((1, 2, 1))
    view = part.view((), most(TINY, announced))
    view.see(part.total(announced, (1, 1, 1)))
    assert view.about(1).dimension == len(FULL)
    assert view.about(0).private
    assert set(view.decide(part.total(announced)).functionals) == {"x(1)_1[0]", "x(1)_1[2]"}


# ------------------------------------------------------------------------------------------------- rules left out


def views_of(kind: type[Column], coalition: Users, *buffers: Buffer) -> Iterator[Any]:
    """The view of a coalition for each kind of column when all users answer all buffers."""
    for elements in (FULL, SHORT):
        yield column(elements, kind).view(coalition, most(TINY, *buffers))


@pytest.mark.requirement("BSA-24", "BSA-23")
@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 3, 0)])
def test_with_one_weight_that_is_not_0_the_sum_is_an_update_and_users_refuse_it(weights: tuple[int, ...]) -> None:
    announced = buffer(weights)
    user = weights.index(max(weights))
    for view in views_of(Unchecked, (), announced):
        assert view.about(user).dimension == len(view.about(user).secrets)
        assert all(view.about(other).private for other in range(TINY.N) if other != user)
    [case, _] = model.audit(TINY, TINY.code, [()], [announced], Unchecked)
    assert case.verdict.private
    assert case.handed_over == user
    for refuse in (lambda: model.combining(TINY, announced), lambda: model.accepts(TINY, 0, (announced,))):
        with pytest.raises(InconsistentSets, match="may weigh"):
            refuse()


@pytest.mark.requirement("BSA-24")
def test_with_two_weights_that_are_not_0_one_colluder_has_the_update_of_the_other() -> None:
    announced = buffer((1, 1, 0))
    for view in views_of(Unchecked, (0,), announced):
        assert not view.about(1).private
    for view in views_of(Unchecked, (), announced):
        assert all(view.about(user).private for user in range(TINY.N))
    with pytest.raises(InconsistentSets):
        model.combining(TINY, announced)


@pytest.mark.requirement("BSA-28", "BSA-21")
def test_recoveries_over_two_nested_sets_hand_over_the_user_between_them_and_users_refuse_the_second() -> None:
    first = buffer((1, 1, 1))
    second = Buffer(first.round + 1, first.entries[:2])
    for view, elements in zip(views_of(Unchecked, (), first, second), (FULL, SHORT), strict=True):
        assert view.about(2).functionals == tuple(f"x(1)_2[{element}]" for element in elements)
    for user in range(TINY.N):
        with pytest.raises(InconsistentSets, match="has 2 entries and K is 3"):
            model.accepts(TINY, user, (first, second))


@pytest.mark.requirement("BSA-28", "BSA-25")
def test_recoveries_over_two_sets_that_overlap_tell_a_difference_and_users_refuse_the_second() -> None:
    first = buffer((1, 1, 1))
    second = Buffer(first.round + 1, (*first.entries[:2], Entry(3, first.round, 2)))
    assert model.scales(TINY, second)
    uploaded = most(TINY, first, second).uploaded
    answered = tuple((user, one) for user in range(TINY.N) for one in (first, second))
    functionals = column().decide((), Situation((first,), uploaded, answered)).functionals
    assert len(functionals) == 2
    assert all("_2[" in text and "_3[" in text and "_0[" not in text for text in functionals)
    for user in range(TINY.N):
        with pytest.raises(InconsistentSets, match=r"\[0, 1\], whose shares are not held"):
            model.accepts(TINY, user, (first, second))


@pytest.mark.requirement("BSA-28", "BSA-23", "BSA-26")
def test_two_weightings_of_one_buffer_hand_over_an_update_and_users_answer_one_of_them() -> None:
    """Staleness 1 weighs 1 or 2, and users accept either: the difference of the two sums is user 1's update."""
    assert all(model.scales(TINY, one) for one in WEIGHTINGS)
    for view in views_of(Column, (), *WEIGHTINGS):
        assert view.about(1).dimension == len(view.about(1).secrets)
    for user in range(TINY.N):
        for one in WEIGHTINGS:
            model.accepts(TINY, user, (one,))
        with pytest.raises(Replay):
            model.accepts(TINY, user, WEIGHTINGS)
        with pytest.raises(InconsistentSets, match="not held"):
            model.accepts(TINY, user, NEXT_ROUND)


@pytest.mark.requirement("BSA-01")
def test_a_buffer_with_K_of_T_plus_1_is_refused_since_colluders_may_fill_it_but_for_one() -> None:
    with pytest.raises(ParameterError, match="K"):
        replace(TINY, K=TINY.T + 1)
    small = Buffer(TINY.tau_max, buffer((1, 1, 1)).entries[:2])
    for colluder, other in ((0, 1), (1, 0)):
        for view in views_of(Unchecked, (colluder,), small):
            assert view.about(other).dimension == len(view.about(other).secrets)
    with pytest.raises(InconsistentSets):
        model.combining(TINY, small)


class SameMask(Column):
    """A user takes its mask and noise for all stamps from one stamp."""

    def mask(self, user: int, stamp: int) -> Forms:
        """Return the same symbols for each stamp."""
        return super().mask(user, 0)

    def noise(self, user: int, stamp: int) -> Forms:
        """Return the same symbols for each stamp."""
        return super().noise(user, 0)


class SameNoise(Column):
    """A user takes its noise for all stamps from one stamp."""

    def noise(self, user: int, stamp: int) -> Forms:
        """Return the same symbols for each stamp."""
        return super().noise(user, 0)


@pytest.mark.requirement("BSA-07", "BSA-08")
def test_two_uploads_under_one_mask_tell_their_difference() -> None:
    part, uploads = column(FULL, SameMask), ((0, 0), (0, 1))
    functionals = part.decide((), Situation((), uploads, ())).functionals
    assert functionals == ("x(0)_0[0] - x(1)_0[0]", "x(0)_0[2] - x(1)_0[2]")
    assert column().decide((), Situation((), uploads, ())).private


# ------------------------------------------------------------------------------------------------- several rounds


def entry(user: int, round: int, age: int) -> Entry:
    """An entry with the least weight of its staleness."""
    return Entry(user, round - age, {0: 3, 1: 1, 2: 1}[age])


def rounds() -> tuple[Buffer, ...]:
    """Buffers of three rounds, in which users come again with fresh masks, and some updates are late."""
    ages = ({0: 0, 1: 1, 2: 2}, {0: 0, 1: 0, 3: 2}, {1: 0, 3: 1, 4: 2})
    return tuple(Buffer(r, tuple(entry(i, r, age) for i, age in ages[r - 2].items())) for r in (2, 3, 4))


@pytest.mark.requirement("BSA-27", "BSA-28")
def test_over_several_rounds_up_to_T_users_learn_exactly_the_list_of_weighted_sums() -> None:
    buffers = rounds()
    assert len({update for one in buffers for update in one.updates}) == 9
    for user in range(TINY.N):
        model.accepts(TINY, user, buffers)
    for elements in (FULL, SHORT):
        part = column(elements)
        for coalition in ((), *((user,) for user in range(TINY.N))):
            verdict = part.decide(coalition, most(TINY, *buffers))
            assert verdict.private
            assert verdict.withheld == 1
            assert verdict.leak == TINY.q ** (len(elements) * len(buffers))


def answered_by_all(*buffers: Buffer) -> Situation:
    """The situation in which nothing came besides what is in the buffers."""
    uploaded = tuple(update for one in buffers for update in one.updates)
    return Situation(buffers, uploaded, most(TINY, *buffers).answered)


def test_over_several_rounds_what_T_plus_1_users_learn_adds_up() -> None:
    buffers, part = rounds(), column()
    for coalition in combinations(range(TINY.N), TINY.T + 1):
        parts = [part.decide(coalition, answered_by_all(one)).dimension for one in buffers]
        assert part.decide(coalition, answered_by_all(*buffers)).dimension == sum(parts)


@pytest.mark.requirement("BSA-08")
@pytest.mark.parametrize(("kind", "coalition"), [(SameMask, ()), (SameNoise, (4,))])
def test_a_mask_or_noise_that_is_used_for_two_stamps_is_seen(kind: type[Column], coalition: Users) -> None:
    """Users 0 and 1 come in rounds 2 and 3."""
    first, second, _ = rounds()
    verdict = column(FULL, kind).decide(coalition, most(TINY, first, second))
    assert not verdict.private
    assert any("x(2)_0[" in text and "x(3)_0[" in text for text in verdict.functionals)
    assert column().decide(coalition, most(TINY, first, second)).private


# ----------------------------------------------------------------------------------------------- a server that lies


def lies(pair: tuple[Buffer, Buffer], coalition: Users) -> Iterator[dict[int, tuple[Buffer, ...]]]:
    """Every way to tell each honest user one of two buffers."""
    honest = [user for user in range(TINY.N) if user not in coalition]
    for received in product(pair, repeat=len(honest)):
        yield {user: (one,) for user, one in zip(honest, received, strict=True)}


ONE, OTHER = (model.announced(TINY, (0, 1, 2), (0, 1, 2), weights) for weights in ((3, 1, 1), (3, 2, 1)))
WEIGHTINGS = (ONE, OTHER)
SETS_APART = (ONE, Buffer(2, (*ONE.entries[:2], Entry(3, 0, 1))))
NEXT_ROUND = (
    Buffer(2, (Entry(0, 2, 3), Entry(1, 1, 2), Entry(2, 1, 1))),
    Buffer(3, (Entry(0, 2, 1), Entry(1, 1, 1), Entry(2, 1, 1))),
)
PAIRS = {"two weightings": WEIGHTINGS, "two sets": SETS_APART, "two rounds": NEXT_ROUND}


KINDS = model.every_column(TINY)
COALITIONS = [(), (0,), *(pytest.param((user,), marks=pytest.mark.slow) for user in range(1, 5))]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("coalition", COALITIONS)
def test_a_server_that_names_two_buffers_learns_more_than_one_sum(name: str, coalition: Users) -> None:
    """Each user answers once. With a colluder all 14 ways to tell both buffers leak, and without one the 20 with two
    answers to each. If only the colluder's own weight differs, nothing is to be learned."""
    nothing = name == "two weightings" and coalition == (1,)
    verdicts = [model.equivocation(KINDS, coalition, asked) for asked in lies(PAIRS[name], coalition)]
    leaking = sum(any(not verdict.private for verdict in both) for both in verdicts)
    assert leaking == (0 if nothing else 14 if coalition else 20)


def test_two_answers_to_each_of_two_weightings_and_a_colluder_hand_over_an_update() -> None:
    asked = {user: (WEIGHTINGS[user % 2],) for user in range(1, 5)}
    full, short = model.equivocation(KINDS, (0,), asked)
    assert full.functionals == ("x(1)_1[0]", "x(1)_1[2]")
    assert short.functionals == ("x(1)_1[1]",)


def test_without_a_colluder_the_server_gets_a_combination_of_two_elements_and_the_one_next_to_padding() -> None:
    asked = {user: (WEIGHTINGS[user % 2],) for user in range(5)}
    full, short = model.equivocation(KINDS, (), asked)
    assert full.dimension == 1
    assert short.functionals == ("x(1)_1[1]",)


def test_with_2U_above_N_plus_T_single_answers_still_tell_parts_of_an_update() -> None:
    """At `default` with T colluders: each honest user who is told the other weights gives one of four dimensions."""
    p = PRESETS["default"]
    assert 2 * p.U > p.N + p.T
    users, ages, kinds = (5, 6, 7, 8, 9), (0, 1, 2, 3, 0), model.every_column(p)
    one, other = (model.announced(p, users, ages, (64, 32, weight, 16, 64)) for weight in (21, 22))
    for count in range(p.N - p.U + 1):
        asked = {user: (other if user < p.T + count else one,) for user in range(p.T, p.N)}
        [verdict] = model.equivocation(kinds, tuple(range(p.T)), asked)
        assert verdict.withheld == 1
        assert verdict.dimension == count
        assert all("x(8)_7[" in text and "_6[" not in text for text in verdict.functionals)


def test_one_buffer_for_all_is_no_lie() -> None:
    for coalition in ((), (0,)):
        honest = [user for user in range(TINY.N) if user not in coalition]
        verdicts = model.equivocation(KINDS, coalition, dict.fromkeys(honest, (ONE,)))
        assert all(verdict.private and verdict.withheld == 1 for verdict in verdicts)


def test_what_no_user_could_be_asked_is_refused() -> None:
    for asked in ({}, {0: (ONE,)}):
        with pytest.raises(ParameterError, match="asked"):
            model.equivocation(KINDS, (0,), asked)
    with pytest.raises(UnknownUser):
        model.equivocation(KINDS, (0,), {5: (ONE,)})
    with pytest.raises(Replay):
        model.equivocation(KINDS, (0,), {1: WEIGHTINGS})
    with pytest.raises(InconsistentSets, match="not held"):
        model.equivocation(KINDS, (0,), {1: NEXT_ROUND})


# ----------------------------------------------------------------------------------------- the model and the rounds

SCHEDULE: tuple[Turn, ...] = (
    *(Start(user) for user in range(5)),
    *(Upload(user) for user in (0, 4, 2)),
    Recover((0, 1, 2, 3)),
    *(Start(user) for user in (0, 2)),
    *(Upload(user) for user in (2, 0, 1)),
    Recover((4, 3, 2, 1, 0)),
)
STARTS = [(user, 0) for user in range(5)] + [(0, 1), (2, 1)]
"""The updates in the order in which their users start, with the round as the stamp."""
UPLOADS = [(0, 0), (4, 0), (2, 0), (2, 1), (0, 1), (1, 0)]


def test_the_forms_are_the_messages_of_two_rounds() -> None:
    """Shell and core: with the same inputs and sampled values, every message has the value of its form."""
    p = TINY
    randomness = draw_randomness(p, SeededSource(b"basecagg", "two rounds"), SCHEDULE)
    updates = [np.array([at % 2, 18, 1 - at % 2], dtype=np.uint64) for at in range(len(UPLOADS))]
    result = run_schedule(p, updates, SCHEDULE, randomness=randomness, session=bytes(16), round=0)
    buffers = {one.round: Buffer(one.round, one.entries) for one in result.buffers}
    assert [set(one.updates) for one in buffers.values()] == [set(UPLOADS[:3]), set(UPLOADS[3:])]
    assert len(set(buffers[1].weights)) > 1
    sent = [message for event in result.transcript for message in event.sent]
    for place in range(p.share_length):
        part = column(tuple(range(place, p.d, p.share_length)))
        values = symbol_values(part, place, updates, randomness)
        forms = [(form, seen) for message in sent for form, seen in tied(part, place, message, buffers)]
        assert len(forms) == len(UPLOADS) + 2 * 4 * len(STARTS) + 9
        for form, seen in forms:
            assert value_of(form, part.space, values, p.field) == seen


def tied(part: Column, place: int, message: Any, buffers: dict[int, Buffer]) -> Iterator[tuple[Forms, list[int]]]:
    """The form of a message in a column, with what the message says there."""
    match message:
        case StampedUpdate():
            seen = [int(message.masked[e]) for e in part.elements]
            yield part.upload(message.sender, message.round), seen
        case StampedShare():
            share = vector_from_bytes(message.payload)
            yield part.shares(message.sender, message.round).row(message.receiver), [int(share[place])]
        case WeightedShare():
            yield part.answer(message.sender, buffers[message.round]), [int(message.share[place])]


def symbol_values(part: Column, place: int, updates: list[UintArray], randomness: Any) -> dict[Any, int]:
    """The value of each symbol of a column; updates that are never uploaded, and shares never asked for, are 0."""
    values: dict[Any, int] = defaultdict(int)
    for (user, stamp), mask, noise in zip(STARTS, randomness["masks"], randomness["noises"], strict=True):
        values |= {Drawn(f"mask({stamp})", user, k): int(mask[e]) for k, e in enumerate(part.elements)}
        values |= {Drawn(f"noise({stamp})", user, k): int(noise[k, place]) for k in range(TINY.T)}
    for (user, stamp), update in zip(UPLOADS, updates, strict=True):
        values |= {Secret(f"x({stamp})", user, e): int(update[e]) for e in part.elements}
    return values


# --------------------------------------------------------------------------------------------------- mutants


def excess_of(part: Column, coalition: Users) -> tuple[str, ...]:
    """What a coalition learns beyond the weighted sum of one buffer."""
    return part.decide(coalition, most(part.parameters, buffer((3, 1, 2)))).functionals


@pytest.mark.requirement("MDS-02", "MDS-10")
@pytest.mark.parametrize("holder", range(5))
def test_the_point_0_is_found_with_the_user_who_has_it(holder: int) -> None:
    points = [*range(1, holder + 1), 0, *range(holder + 1, 5)]
    part = Column(TINY, UncheckedCode(TINY.field, TINY.N, TINY.U, TINY.T, points), FULL)
    assert all(bool(excess_of(part, (user,))) == (user == holder) for user in range(TINY.N))


def test_a_code_that_withstands_fewer_users_than_T_says_is_found() -> None:
    p = parameters(37, 5, 4, 2, 4, c_g=3)
    announced = model.weighed(p, (0, 1, 2, 3), (3, 1, 2, 1))
    weak = MaskCode(p.field, p.N, p.U, 1)
    for code, private in ((p.code, True), (weak, False)):
        cases = model.audit(p, code, [(0, 4), (3, 4)], [announced])
        assert all(case.verdict.private == private for case in cases)


def test_missing_noise_puts_every_share_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = MaskCode.encode
    monkeypatch.setattr(MaskCode, "encode", lambda self, mask, noise: encode(self, mask, np.zeros_like(noise)))
    part = column()
    assert all(excess_of(part, (user,)) for user in range(TINY.N))


def test_a_forgotten_mask_leaks_to_the_server_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "mask_update", lambda field, weight, update, mask: update)
    assert len(excess_of(column(), ())) == 8


@pytest.mark.parametrize("bug", ["no weights", "own weights", "all held"])
def test_answers_that_are_not_the_announced_sum_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(p: Parameters, round: int, entries: tuple[Entry, ...], held: dict[int, Held]) -> UintArray:
        weights = {entry.user: entry.weight for entry in entries}
        if bug == "no weights":
            weights = dict.fromkeys(weights, 1)
        elif bug == "own weights":
            weights[1] = 2
        else:
            weights = {user: weights.get(user, 1) for user in held}
        rows = [held[user].share for user in weights]
        return p.field.weighted_sum(np.array(list(weights.values()), dtype=np.uint64), rows)

    monkeypatch.setattr(protocol, "combine_shares", wrong)
    announced = buffer((3, 1, 2))
    assert not model.scales(TINY, announced)
    verdict = column().decide((), most(TINY, announced))
    assert not verdict.private
    assert verdict.withheld > 1


@pytest.mark.parametrize("name", ["mask_update", "encode", "combine_shares"])
def test_a_core_that_is_not_affine_has_no_verdict_and_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner: Any = MaskCode if name == "encode" else protocol
    right = getattr(owner, name)

    def wrong(*arguments: Any) -> UintArray:
        value = right(*arguments)
        return TINY.field.multiply(value, value)

    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(NotAffine, match=name):
        list(model.audit(TINY, TINY.code, [()], [buffer((3, 1, 2))]))


def test_weights_that_no_buffer_has_are_refused() -> None:
    for weights in ((3, 1), (3, 1, 1, 1)):
        with pytest.raises(LengthMismatch, match=r"^len\(weights\) = .*: must be 3, one for each user$"):
            buffer(weights)
    for weight in (19, -1):
        with pytest.raises(OutOfRange, match=r"\[0, 18\]"):
            buffer((3, 1, weight))


def test_without_checks_answers_are_the_same_where_users_check() -> None:
    checked, unchecked = column(), column(FULL, Unchecked)
    for weights in SOME_WEIGHTS:
        one, other = checked.combining(buffer(weights)), unchecked.combining(buffer(weights))
        assert np.array_equal(one.matrix, other.matrix)


def test_every_coalition_is_every_set_of_users_up_to_a_size() -> None:
    for largest in range(TINY.N + 1):
        sets = {users for users in subsets_of(TINY.N) if len(users) <= largest}
        found = list(model.every_coalition(TINY, largest))
        assert len(found) == len(sets)
        assert set(found) == sets
        assert [len(users) for users in found] == sorted(len(users) for users in found)


def subsets_of(N: int) -> Iterator[Users]:
    """The users whose bits are set in each number below 2**N."""
    return (tuple(user for user in range(N) if bits >> user & 1) for bits in range(2**N))


@pytest.mark.parametrize("strange", [-1, 5, 99])
def test_a_coalition_with_users_that_do_not_exist_is_refused(strange: int) -> None:
    happened = model.most(TINY, PAIRS["two weightings"][0])
    for column in model.every_column(TINY):
        part = column
        assert part.decide((), happened).private
        with pytest.raises(UnknownUser, match=rf"^coalition = {strange}: must be a user in \[0, 5\)$"):
            part.decide({strange}, happened)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: model.announced(TINY, (0, 1, 2), cast(Any, {0, 1, 2}), [1] * 3),
            "ages = 'set': must be a sequence of .*",
        ),
        (lambda: model.announced(TINY, (0, 1, 2), [0], [1] * 3), r"len\(ages\) = 1: must be 3, one for each user"),
        (lambda: model.announced(TINY, (0, 1, 2), [0] * 3, [1]), r"len\(weights\) = 1: must be 3, one for each user"),
        (lambda: model.announced(TINY, (0, 1, 2), [0, 0, 99], [1] * 3), r"ages = 99: must be an integer in \[0, 2\]"),
        (lambda: model.announced(TINY, (0, 1, 9), [0] * 3, [1] * 3), r"users = 9: must be a user in \[0, 5\)"),
        (lambda: model.announced(TINY, (0, 2, 1), [0] * 3, [1] * 3), r"users = \(0, 2, 1\): must be ascending"),
        (lambda: model.announced(TINY, (0, 1, 2), [0] * 3, [1, 1, 19]), r"weights = 19: must be in \[0, 18\]"),
        (lambda: buffer((1, 1, 1.0)), "weights = 'float': must be integers"),  # type: ignore[arg-type]
        (lambda: most(TINY, ONE, outside=(9,)), r"outside = 9: must be a user in \[0, 5\)"),
        (lambda: list(model.every_coalition(TINY, -1)), "largest = -1: must be an integer >= 0"),
        (lambda: list(model.audit(TINY, TINY.code, [()], [ONE], outside=-1)), "outside = -1: must be an integer >= 0"),
        (lambda: model.every_column(TINY, model=int), "model = 'int': must be Column or Unchecked"),  # type: ignore[arg-type]
        (lambda: model.equivocation([], (0,), {1: [ONE]}), r"len\(kinds\) = 0: must be 1 or more"),
        (lambda: model.equivocation([0], (0,), {1: [ONE]}), r"kinds\[0\] = 'int': must be of the class Column"),  # type: ignore[list-item]
        (
            lambda: model.equivocation([KINDS[0], column((0,), p=parameters(19, 4, 3, 1, 3))], (0,), {1: [ONE]}),
            "kinds = 'columns of different parameters': must be columns of the same parameters",
        ),
        (lambda: model.equivocation(KINDS, ("0",), {1: [ONE]}), "coalition = 'str': must be an integer, .*"),  # type: ignore[arg-type]
        (lambda: model.equivocation(KINDS, (0,), {1: [ONE], "zz": ()}), "asked = 'str': must be an integer, .*"),  # type: ignore[dict-item]
        (lambda: model.equivocation(KINDS, (0,), {1: [0]}), "asked = 'int': must be of the class Buffer"),  # type: ignore[list-item]
        (lambda: model.check_lie("5", (), {1: [ONE]}), "N = '5': must be an integer in .*"),  # type: ignore[arg-type]
        (
            lambda: model.decide_answers(KINDS, (0,), {1: [ONE]}, {99: [ONE]}),
            r"answers = 99: must be a user in \[0, 5\)",
        ),
        (lambda: model.decide_answers(KINDS, (0,), {-1: [ONE]}, {}), r"asked = -1: must be a user in \[0, 5\)"),
        (lambda: Buffer(-1, ()), r"round = -1: must be an integer in \[0, 4294967295\]"),
        (lambda: Buffer(2, (Entry(0, 2, -1),)), r"weight = -1: must be an integer in \[0, \d+\]"),
        (lambda: Buffer(2, (0,)), "entries = 'int': must be of the class Entry"),  # type: ignore[arg-type]
        (lambda: Buffer(2, "abc"), "entries = 'str': must be a sequence of Entry"),  # type: ignore[arg-type]
        (lambda: Situation((), (5,), ()), "uploaded = 'int': must be pairs of a user and a stamp"),  # type: ignore[arg-type]
        (lambda: Situation((5,), (), ()), "allowed = 'int': must be of the class Buffer"),  # type: ignore[arg-type]
        (lambda: Situation((), (), ((0, 1),)), "answered = 'int': must be of the class Buffer"),  # type: ignore[arg-type]
        (lambda: Situation((), (), (5,)), "answered = 'int': must be pairs of a user and a buffer"),  # type: ignore[arg-type]
        (lambda: column().answer(-1, ONE), r"user = -1: must be a user in \[0, 5\)"),
        (lambda: column().upload(5, 0), r"user = 5: must be a user in \[0, 5\)"),
        (lambda: column().shares(0, -1), r"stamp = -1: must be an integer in \[0, 4294967295\]"),
        (lambda: column().total(ONE, (1, 1)), r"len\(weights\) = 2: must be that of the entries, one or more"),
        (lambda: column().total(Buffer(2, ())), r"len\(weights\) = 0: must be that of the entries, one or more"),
        (lambda: column().total(ONE, (255, 1, 1)), r"weights = 255: must be in \[0, 18\]"),
        (lambda: column().total(ONE, (-1, 1, 1)), r"weights = -1: must be in \[0, 18\]"),
        (lambda: model.factors(TINY, Buffer(2, (Entry(5, 2, 1),))), r"buffer = 5: must be a user in \[0, 5\)"),
        (
            lambda: model.factors(TINY, Buffer(2, 2 * (Entry(0, 2, 1),))),
            "buffer = 0: must be a user that is named once",
        ),
        (
            lambda: model.holding(model.listening(TINY, 0), {99}),  # type: ignore[arg-type]
            "updates = 'int': must be pairs of a user and a stamp",
        ),
        (lambda: model.holding(model.listening(TINY, 0), {(5, 1)}), r"updates = 5: must be a user in \[0, 5\)"),
        (
            lambda: model.every_column(TINY, parameters(19, 4, 3, 1, 3).code),
            "code = 'one for 4 users, .*': must be one for N = 5 users, U - T = 2 or more, modulo q = 19",
        ),
        (lambda: list(model.audit(TINY, TINY.code, [()], [0])), r"buffers\[0\] = 'int': must be of the class Buffer"),  # type: ignore[list-item]
        (lambda: model.accepts(TINY, 1, (0,)), r"buffers\[0\] = 'int': must be of the class Buffer"),  # type: ignore[arg-type]
        (
            lambda: model.accepts(replace(TINY, d=2**31), 1, (ONE,)),
            "d = 2147483648: must be such that a share has at most 2\\^24 = 16777216 elements",
        ),
        (lambda: least(0), "buffers = 'int': must be of the class Buffer"),  # type: ignore[arg-type]
        (
            lambda: Column(TINY, TINY.code, (0, 0)),
            r"elements = \(0, 0\): must be 1 to U - T = 2 different integers",
        ),
    ],
)
def test_buffers_and_columns_that_there_are_not_are_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        call()


def test_a_largest_size_above_all_users_is_that_of_all_users() -> None:
    assert len(list(model.every_coalition(TINY, 10**30))) == 2**TINY.N


def test_a_buffer_with_a_user_that_does_not_exist_is_refused_by_users() -> None:
    with pytest.raises(InconsistentSets):
        model.combining(TINY, Buffer(2, (*ONE.entries[:2], Entry(5, 2, 1))))


def test_lists_and_integers_of_numpy_make_the_same_buffer() -> None:
    again = Buffer(np.int64(2), [*ONE.entries])  # type: ignore[arg-type]
    assert again == ONE
    assert column().answer(0, again).matrix.tolist() == column().answer(0, ONE).matrix.tolist()
    users: Any = tuple(np.arange(3))
    assert str(model.announced(TINY, users, (0, 1, 2), (3, 1, 1))) == str(ONE)
