"""What coalitions learn in LightSecAgg: every coalition at `tiny`, whole joint distributions, and mutants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import comb, isclose
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import InconsistentSets, ParameterError, TooFewSurvivors, UnknownUser
from secagg_spec.privacy import lightsecagg as model
from secagg_spec.privacy.echelon import rank
from secagg_spec.privacy.lightsecagg import Case, Column, Situation, Users, least, most
from secagg_spec.privacy.probe import NotAffine, probe
from secagg_spec.privacy.views import Drawn, Forms, Secret, Space, View, join
from secagg_spec.protocols.lightsecagg import round as protocol
from secagg_spec.protocols.lightsecagg.round import PRESETS, Parameters
from secagg_spec.protocols.steps import run_synchronous
from tests.privacy.enumeration import codes, conditional_information, every_vector
from tests.quick import part
from tests.strategies import codes as mask_codes
from tests.strategies import fixed_round, subsets

TINY = PRESETS["tiny"]
EVERYONE = tuple(range(5))
NO_POINT_0 = tuple(range(1, 6))
CLAIMED = [(5, 3, 2, 1), (5, 4, 2, 1), (5, 4, 3, 1), (7, 4, 3, 2), (7, 5, 3, 2)]


def parameters(q: int, N: int, U: int, T: int, d: int | None = None) -> Parameters:
    """Parameters without dropouts, by default with one column and no padding."""
    return Parameters(q=q, N=N, D=0, U=U, T=T, d=U - T if d is None else d)


@cache
def whole_audit(p: Parameters) -> tuple[Case, ...]:
    """Every coalition and every surviving set."""
    return tuple(model.audit(p, p.code, list(model.every_coalition(p)), list(model.every_surviving_set(p))))


# ------------------------------------------------------------------------------------------------ what is learned


@pytest.mark.slow
@pytest.mark.requirement("MDS-10")
def test_at_tiny_up_to_T_users_learn_exactly_the_sum() -> None:
    cases = [case for case in whole_audit(TINY) if len(case.coalition) <= TINY.T]
    assert len(cases) == 6 * 16 * 2
    assert all(case.verdict.private and case.verdict.withheld == 1 for case in cases)


@pytest.mark.requirement("MDS-10")
@pytest.mark.parametrize(("q", "N", "U", "T"), CLAIMED)
def test_up_to_T_users_learn_exactly_the_sum(q: int, N: int, U: int, T: int) -> None:
    cases = [case for case in whole_audit(parameters(q, N, U, T)) if len(case.coalition) <= T]
    assert cases
    assert all(case.verdict.private and case.verdict.withheld == 1 for case in cases)


@pytest.mark.slow
@pytest.mark.parametrize("p", [TINY, *(parameters(*numbers) for numbers in CLAIMED)], ids=repr)
def test_in_a_full_column_larger_coalitions_learn_what_the_figure_says(p: Parameters) -> None:
    full = [case for case in whole_audit(p) if len(case.elements) == p.U - p.T]
    larger = [case for case in full if len(case.coalition) > p.T]
    over = {case: min(len(case.coalition) - p.T, p.U - p.T) for case in larger}
    assert all(case.excess == model.expected_excess(p, case) for case in larger)
    assert all(case.verdict.dimension == case.excess + over[case] * case.late(p.N) for case in larger)


def test_in_a_full_column_coalitions_of_any_size_learn_what_the_figure_says() -> None:
    """Also where the figure is 0: T users or fewer, and one honest survivor or none."""
    coalitions = [tuple(range(size)) for size in range(TINY.N + 1)]
    cases = [case for case in model.audit(TINY, TINY.code, coalitions, [(0, 1, 2), EVERYONE]) if len(case.elements) > 1]
    assert {case.honest for case in cases} == set(range(TINY.N + 1))
    assert all(case.excess == model.expected_excess(TINY, case) for case in cases)


@pytest.mark.slow
@pytest.mark.parametrize("p", [TINY, *(parameters(*numbers) for numbers in CLAIMED)], ids=repr)
def test_one_user_more_than_T_learns_more_where_two_honest_users_contribute(p: Parameters) -> None:
    full = [case for case in whole_audit(p) if len(case.elements) == p.U - p.T and len(case.coalition) == p.T + 1]
    assert any(case.honest >= 2 for case in full) == (p.N >= p.T + 3)
    for case in full:
        assert (case.excess > 0) == (case.honest >= 2)
        assert case.excess == min(p.U - p.T, 1) * max(case.honest - 1, 0)


@pytest.mark.slow
def test_a_column_that_ends_in_padding_can_tell_T_plus_1_users_less() -> None:
    """With one real element, points a and 7 - a give two shares whose noise-free combination misses it."""
    short = [case for case in whole_audit(TINY) if case.elements == (1,) and len(case.coalition) == 2]
    fewer = Counter(case.coalition for case in short if case.excess < model.expected_excess(TINY, case))
    assert set(fewer) == {(1, 4), (2, 3)}
    assert all(sum(NO_POINT_0[user] for user in coalition) == 7 for coalition in fewer)
    assert all(case.excess == 0 for case in short if case.coalition in fewer)
    assert all(case.excess <= model.expected_excess(TINY, case) for case in short)


@pytest.mark.slow
def test_whoever_answers_and_whatever_comes_late_nothing_lies_outside_the_two_bounds() -> None:
    """Every set of answers at `tiny`: a member's own answer adds nothing, so honest ones decide."""
    column = Column(TINY, TINY.code, model.columns(TINY)[0])
    bounds = {(c.coalition, c.surviving): c for c in whole_audit(TINY) if c.elements == column.elements}
    decided = 0
    for (coalition, surviving), case in bounds.items():
        honest = [user for user in surviving if user not in coalition]
        for answering in subsets(honest, at_least=0):
            situation = Situation(surviving, surviving, dict.fromkeys(answering, surviving))
            assert column.decide(coalition, situation).dimension == case.excess
            decided += 1
    assert decided == sum(comb(5, size) * 3**size * 2 ** (5 - size) for size in (3, 4, 5))


def test_the_sum_is_learned_exactly_when_U_shares_of_it_are_there() -> None:
    column = Column(TINY, TINY.code, model.columns(TINY)[0])
    for coalition in ((), (0,), (4,)):
        for answering in subsets(EVERYONE, at_least=0):
            situation = Situation(EVERYONE, EVERYONE, dict.fromkeys(answering, EVERYONE))
            verdict = column.decide(coalition, situation)
            assert verdict.private
            assert (verdict.withheld == 1) == (len({*answering, *coalition}) >= TINY.U)


def test_a_members_own_answer_adds_nothing() -> None:
    column = Column(TINY, TINY.code, model.columns(TINY)[0])
    for coalition in ((0,), (1, 3)):
        for situation in (least((1, 2, 3)), most(TINY, (1, 2, 3)), least(EVERYONE)):
            before = column.view(coalition, situation)
            after = column.view(coalition, situation)
            after.see(*(column.answer(user, situation.surviving) for user in coalition))
            assert before.decide().leak == after.decide().leak


@given(st.data())
def test_drawn_parameters_keep_T_users_out(data: st.DataObject) -> None:
    code = data.draw(mask_codes(max_users=7).filter(lambda code: max(code.U, code.T + 2) <= code.N))
    p = Parameters(q=code.field.modulus, N=code.N, D=0, U=code.U, T=code.T, d=data.draw(st.integers(1, 9)))
    coalition = data.draw(st.sampled_from(list(combinations(range(p.N), p.T))))
    sets = data.draw(st.lists(st.sampled_from(list(model.every_surviving_set(p))), min_size=1, max_size=2))
    for case in model.audit(p, code, [coalition], sets):
        assert case.verdict.private
        assert case.verdict.withheld == 1


@pytest.mark.requirement("MDS-10")
@given(mask_codes())
def test_the_noise_of_any_T_shares_has_full_rank(code: MaskCode) -> None:
    """The shares of T users are then uniform whatever the mask is."""
    for size in range(1, code.U - code.T + 1):
        noise = model.encoding(code, size).matrix[:, size:]
        for users in combinations(range(code.N), code.T):
            assert rank(code.field, noise[list(users)]) == code.T


# -------------------------------------------------------------------------------------- against counting every case


def joint_view(p: Parameters, coalition: Users, values: dict[tuple[str, int], UintArray]) -> list[UintArray]:
    """The view of a round, many rounds at once: one for each column of the values. Runs the cores themselves."""
    field, everyone = p.field, range(p.N)
    uploads = [protocol.mask_update(field, values["x", i].ravel(), values["z", i].ravel()) for i in everyone]
    shares = [p.code.encode(values["z", i].ravel(), values["n", i]) for i in everyone]
    held = [{i: shares[i][j] for i in everyone} for j in everyone]
    answers = [protocol.aggregate_shares(field, p.N, p.T, tuple(everyone), held[j]) for j in everyone]
    width = shares[0].shape[1]
    rows = [row for upload in uploads for row in upload.reshape(-1, width)]
    rows += [held[j][i] for j in coalition for i in everyone] + [answers[j] for j in everyone if j not in coalition]
    return rows


def excess_by_counting(p: Parameters, coalition: Users, fixed: int | None = None) -> float:
    """I(x; view | sum, the coalition's inputs) in bits over all values, or with the coalition's values fixed."""
    honest = [user for user in range(p.N) if user not in coalition]
    free = honest if fixed is not None else list(range(p.N))
    parts, T = p.U - p.T, p.T
    cases = every_vector(p.q, len(free) * (2 * parts + T))
    width = cases.shape[1]
    rows = iter(cases)
    values: dict[tuple[str, int], UintArray] = {}
    for user in range(p.N):
        for name, size in (("x", parts), ("z", parts), ("n", T)):
            if user in free:
                values[name, user] = np.stack([next(rows) for _ in range(size)])
            else:
                assert fixed is not None
                values[name, user] = np.full((size, width), (fixed + user) % p.q, dtype=np.uint64)
    own = [row for user in coalition for name in ("x", "z", "n") for row in values[name, user]]
    secrets = [row for user in range(p.N) for row in values["x", user]]
    total = p.field.sum(np.stack([values["x", user].ravel() for user in range(p.N)])).reshape(parts, width)
    allowed = [*total, *(row for user in coalition for row in values["x", user])]
    return conditional_information(
        codes(p.q, secrets), codes(p.q, [*joint_view(p, coalition, values), *own]), codes(p.q, allowed)
    )


def excess_by_program(p: Parameters, coalition: Users) -> float:
    """The same, decided by the program."""
    [case] = model.audit(p, p.code, [coalition], [tuple(range(p.N))])
    return case.verdict.bits


@pytest.mark.slow
@pytest.mark.requirement("MDS-10")
@pytest.mark.parametrize("coalition", part(3, [(), (0,), (2,), (0, 1)]))
def test_over_F_5_all_values_of_all_users_are_counted(coalition: Users) -> None:
    p = parameters(5, 3, 2, 1)
    counted = excess_by_counting(p, coalition)
    assert isclose(counted, excess_by_program(p, coalition), abs_tol=1e-9)
    assert isclose(counted, 0.0, abs_tol=1e-9)


@pytest.mark.slow
@pytest.mark.requirement("MDS-10")
@pytest.mark.parametrize("fixed", [0, 3])
@pytest.mark.parametrize(
    ("q", "N", "U", "T", "coalition"),
    [
        (7, 3, 2, 1, (0,)),
        (7, 3, 2, 1, (1,)),
        (7, 4, 2, 1, (0, 1)),
        (7, 4, 2, 1, (1, 3)),
        (5, 4, 2, 1, (0, 3)),
        (5, 4, 3, 2, (0, 1)),
        (5, 4, 3, 2, (0, 1, 2)),
    ],
)
def test_over_F_5_and_F_7_all_values_of_honest_users_are_counted(
    q: int, N: int, U: int, T: int, coalition: Users, fixed: int
) -> None:
    p = parameters(q, N, U, T)
    counted = excess_by_counting(p, coalition, fixed)
    assert isclose(counted, excess_by_program(p, coalition), abs_tol=1e-9)
    assert (counted > 1e-9) == (len(coalition) > T and N - len(coalition) > 1)


# ----------------------------------------------------------------------------------------- the model and the round


def value_of(forms: Forms, space: Space, values: dict[Any, int], field: PrimeField) -> list[int]:
    """The values of forms when the symbols have the given values."""
    symbols = np.array([values[space.symbols[n]] for n in forms.symbols], dtype=np.uint64)
    result: list[int] = field.matmul(forms.matrix, symbols.reshape(-1, 1))[:, 0].tolist()
    return result


@pytest.mark.parametrize("p", [TINY, PRESETS["default"], parameters(11, 6, 5, 1, d=9)], ids=repr)
def test_the_forms_are_the_messages_of_a_round(p: Parameters) -> None:
    """Shell and core: with the same inputs and sampled values, every message has the value of its form."""
    drawn = fixed_round(p)
    network = protocol.open_round(p, drawn.updates, session=bytes(16), round=0)
    dropped = (p.N - 1,) if p.D else ()
    run_synchronous(network, {"upload": dropped}, drawn.randomness)
    surviving = tuple(user for user in range(p.N) if user not in dropped)
    uploads, shares, answers = messages(network.transcript)
    L = p.share_length
    for place in range(L):
        elements = tuple(range(place, p.d, L))
        column = Column(p, p.code, elements)
        values: dict[Any, int] = {}
        for user in range(p.N):
            noise, mask = drawn.randomness[user]["noise"], drawn.randomness[user]["mask"]
            values |= {Secret("x", user, e): int(drawn.updates[user, e]) for e in elements}
            values |= {Drawn("mask", user, k): int(mask[e]) for k, e in enumerate(elements)}
            values |= {Drawn("noise", user, k): int(noise[k, place]) for k in range(p.T)}
        for user in surviving:
            forms = [column.uploads[user], column.answer(user, surviving)]
            forms += [column.shares[sender].row(user) for sender in range(p.N)]
            seen = [int(uploads[user][e]) for e in elements] + [int(answers[user][place])]
            seen += [int(shares[user][sender][place]) for sender in range(p.N)]
            assert value_of(join(forms), column.space, values, p.field) == seen


def messages(transcript: Any) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:
    """The masked updates, the shares that users hold, and the answers, from the transcript of a round."""
    uploads = {m.sender: m.masked for e in transcript for m in e.sent if isinstance(m, protocol.MaskedUpdate)}
    answers = {m.sender: m.share for e in transcript for m in e.sent if isinstance(m, protocol.AggregatedShare)}
    shares = {e.party: e.state.held for e in transcript if e.step is protocol.user_upload}
    return uploads, shares, answers


@pytest.mark.slow
@pytest.mark.parametrize(("N", "U", "T", "d"), [(4, 3, 1, 3), (4, 3, 1, 4), (4, 3, 1, 1), (5, 4, 2, 5), (6, 5, 1, 5)])
def test_columns_one_at_a_time_say_what_the_whole_round_says(N: int, U: int, T: int, d: int) -> None:
    p = parameters(7, N, U, T, d)
    L, everyone = p.share_length, tuple(range(N))
    by_length = {len(elements): elements for elements in model.columns(p)}
    counts = Counter(len(range(place, d, L)) for place in range(L))
    assert set(counts) == set(by_length)
    for coalition in (everyone[:T], everyone[: T + 1], everyone[:-2]):
        whole = whole_round(p, coalition)
        excess, leak = 0, 1
        for size, elements in by_length.items():
            verdict = Column(p, p.code, elements).decide(coalition, most(p, everyone))
            excess += counts[size] * verdict.dimension
            leak *= verdict.leak ** counts[size]
        assert whole.dimension == excess
        assert whole.leak == leak


def whole_round(p: Parameters, coalition: Users) -> Any:
    """The verdict on all columns of a round together, with the encoder probed on whole vectors."""
    field, space, everyone = p.field, Space(p.field), tuple(range(p.N))
    d, shape = p.d, (p.T, p.share_length)
    encode = probe(field, lambda v: p.code.encode(v[:d], v[d:].reshape(shape)).ravel(), d + shape[0] * shape[1])
    mask = probe(field, lambda v: protocol.mask_update(field, v[:d], v[d:]), 2 * d)
    add = probe(field, lambda v: field.sum(v.reshape(p.N, -1)), p.N * d)
    collect = probe(field, lambda v: field.sum(v.reshape(p.N, -1)), p.N * p.share_length)
    updates = [space.secret("x", i, range(d)) for i in everyone]
    masks = [space.drawn("mask", i, d) for i in everyone]
    shares = [space.apply(encode, masks[i], space.drawn("noise", i, shape[0] * shape[1])) for i in everyone]
    part = [[rows(shares[i], slice(j * shape[1], (j + 1) * shape[1])) for i in everyone] for j in everyone]
    view = View(space, coalition)
    view.see(*(space.apply(mask, updates[i], masks[i]) for i in everyone))
    view.see(*(part[j][i] for j in coalition for i in everyone))
    view.see(*(space.apply(collect, *part[j]) for j in everyone))
    return view.decide(space.apply(add, *updates))


def rows(forms: Forms, which: slice) -> Forms:
    """Some of the forms."""
    return Forms(forms.symbols, forms.matrix[which])


# --------------------------------------------------------------------------------------------------- mutants


def excess_of(column: Column, coalition: Users) -> tuple[str, ...]:
    """What a coalition learns beyond the sum over everyone."""
    return column.decide(coalition, most(column.parameters, tuple(range(column.parameters.N)))).functionals


@pytest.mark.requirement("MDS-02", "MDS-10")
@pytest.mark.parametrize("holder", range(5))
def test_the_point_0_is_found_with_the_user_who_has_it(holder: int) -> None:
    points = [*range(1, holder + 1), 0, *range(holder + 1, 5)]
    code = model.UncheckedCode(TINY.field, TINY.N, TINY.U, TINY.T, points)
    assert {user: row.tolist() for user, row in model.open_shares(code).items()} == {holder: [1, 0]}
    assert not model.open_shares(TINY.code)
    column = Column(TINY, code, (0, 2))
    others = [user for user in EVERYONE if user != holder]
    assert excess_of(column, (holder,)) == tuple(f"x_{user}[0]" for user in others[:-1])
    assert not any(excess_of(column, (user,)) for user in others)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ((1, 2, 2, 3, 4), "2 for users 1 and 2"),
        ((0, 1, 2, 3, 0), "0 for users 0 and 4"),
        ((0, 1, 2, 3), "N = 5 points"),
        ((7, 1, 2, 3, 4), r"\[0, 6\]"),
        ((-1, 1, 2, 3, 4), r"\[0, 6\]"),
    ],
)
def test_points_that_are_equal_or_no_elements_are_refused_here_too(points: tuple[int, ...], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        model.UncheckedCode(TINY.field, TINY.N, TINY.U, TINY.T, points)


def test_a_list_of_too_few_points_is_quoted_like_a_tuple() -> None:
    with pytest.raises(ParameterError, match=r"points = \(1, 2\)"):
        model.UncheckedCode(TINY.field, TINY.N, TINY.U, TINY.T, [1, 2])


class ReusedNoise(Column):
    """User 1 uses the noise of user 0."""

    def noise(self, user: int) -> Forms:
        """Return the same symbols for both."""
        return super().noise(0 if user == 1 else user)


class ReusedMask(Column):
    """User 1 uses the mask of user 0."""

    def mask(self, user: int) -> Forms:
        """Return the same symbols for both."""
        return super().mask(0 if user == 1 else user)


def test_noise_that_two_users_share_leaks_to_T_users() -> None:
    column = ReusedNoise(TINY, TINY.code, (0, 2))
    assert excess_of(column, ()) == ()
    for holder, point in ((2, 3), (3, 4), (4, 5)):
        [functional] = excess_of(column, (holder,))
        signed = point if point <= 3 else point - 7
        term = {1: "", -1: ""}.get(signed, f"{abs(signed)}*")
        signs = ("+", "-") if signed > 0 else ("-", "+")
        assert functional == f"x_0[0] {signs[0]} {term}x_0[2] - x_1[0] {signs[1]} {term}x_1[2]"


def test_a_mask_that_two_users_share_leaks_to_the_server_alone() -> None:
    column = ReusedMask(TINY, TINY.code, (0, 2))
    assert set(excess_of(column, ())) == {"x_0[0] - x_1[0]", "x_0[2] - x_1[2]"}


def test_missing_noise_puts_every_share_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = MaskCode.encode
    monkeypatch.setattr(MaskCode, "encode", lambda self, mask, noise: encode(self, mask, np.zeros_like(noise)))
    assert list(model.open_shares(TINY.code)) == [0, 1, 2, 3, 4]
    column = Column(TINY, TINY.code, (0, 2))
    assert [len(excess_of(column, (user,))) for user in EVERYONE] == [3] * 5


def test_noise_that_enters_only_half_of_the_shares_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = MaskCode.encode

    def half(self: MaskCode, mask: UintArray, noise: UintArray) -> UintArray:
        shares = encode(self, mask, noise)
        shares[:2] = encode(self, mask, np.zeros_like(noise))[:2]
        return shares

    monkeypatch.setattr(MaskCode, "encode", half)
    assert list(model.open_shares(TINY.code)) == [0, 1]
    column = Column(TINY, TINY.code, (0, 2))
    assert [bool(excess_of(column, (user,))) for user in EVERYONE] == [True, True, False, False, False]


def test_a_forgotten_mask_leaks_to_the_server_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "mask_update", lambda field, update, mask: update)
    assert len(excess_of(Column(TINY, TINY.code, (0, 2)), ())) == 8


def test_an_answer_over_all_users_tells_the_server_about_late_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant sums every share that is held; the server then learns another sum than it announced."""

    def over_all(field: PrimeField, N: int, T: int, surviving: Users, held: dict[int, UintArray]) -> UintArray:
        return field.sum(np.stack(list(held.values())))

    monkeypatch.setattr(protocol, "aggregate_shares", over_all)
    verdict = Column(TINY, TINY.code, (0, 2)).decide((), most(TINY, (0, 1, 2)))
    assert not verdict.private
    assert verdict.withheld > 1


@pytest.mark.parametrize("name", ["mask_update", "encode", "aggregate_shares"])
def test_a_core_that_is_not_affine_has_no_verdict_and_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner: Any = MaskCode if name == "encode" else protocol
    right = getattr(owner, name)

    def wrong(*arguments: Any) -> UintArray:
        value = right(*arguments)
        return TINY.field.multiply(value, value)

    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(NotAffine, match=name):
        list(model.audit(TINY, TINY.code, [()], [EVERYONE]))


@pytest.mark.requirement("LSA-12")
def test_a_second_answer_for_another_set_hands_over_a_user() -> None:
    column = Column(TINY, TINY.code, (0, 2))
    view = column.view((), most(TINY, (0, 1, 2, 3)))
    view.see(*(column.answer(user, (0, 1, 2)) for user in (0, 1, 2)))
    verdict = view.decide(column.total((0, 1, 2, 3)))
    assert set(verdict.functionals) == {"x_3[0]", "x_3[2]"}


# ----------------------------------------------------------------------------------------------- a server that lies

SIX = parameters(7, 6, 5, 1)
ALL_SIX = tuple(range(6))


def test_a_server_that_tells_users_different_sets_learns_one_of_four_dimensions_of_one_input() -> None:
    """(N, U, T) = (6, 5, 1), although 2U > N + T: four honest answers and the colluder's give the sum."""
    assert 2 * SIX.U > SIX.N + SIX.T
    without_1 = tuple(user for user in ALL_SIX if user != 1)
    asked = dict.fromkeys((1, 2, 3, 4), ALL_SIX) | {5: without_1}
    [verdict] = model.equivocation(SIX, (0,), asked)
    assert verdict.dimension == 1
    [functional] = verdict.functionals
    assert {term.partition("[")[0] for term in functional.split() if "x_" in term} <= {"x_1", *multiples("x_1")}
    assert verdict.withheld == 1


def multiples(name: str) -> set[str]:
    """A name with each coefficient before it."""
    return {f"{factor}*{name}" for factor in range(2, 7)}


@pytest.mark.slow
def test_a_set_that_users_accept_but_is_too_small_to_recover_tells_T_users_nothing_more() -> None:
    """A lying server may announce any one set of T + 2 users; what it learns lies in the sum over that set."""
    sets = list(model.every_surviving_set(SIX, SIX.T + 2))
    assert min(map(len, sets)) == 3
    coalitions = [c for c in model.every_coalition(SIX) if len(c) <= SIX.T]
    assert all(case.verdict.private for case in model.audit(SIX, SIX.code, coalitions, sets))


def test_without_a_colluder_or_with_one_set_nothing_more_is_learned() -> None:
    without_1 = tuple(user for user in ALL_SIX if user != 1)
    [alone] = model.equivocation(SIX, (), dict.fromkeys(range(5), ALL_SIX) | {5: without_1})
    [honest] = model.equivocation(SIX, (0,), dict.fromkeys((1, 2, 3, 4, 5), ALL_SIX))
    assert alone.private
    assert honest.private


def test_every_further_user_that_is_told_another_set_costs_one_dimension_until_the_sum_is_gone() -> None:
    """With T = 1 the colluder and r answers for a second set give r combinations without noise."""
    p = parameters(7, 6, 3, 1)
    without_1 = (0, 2, 3, 4, 5)
    found = []
    for received in range(4):
        asked = dict.fromkeys((1, 2, 3, 4, 5)[: 5 - received], ALL_SIX) | dict.fromkeys((5, 4, 3)[:received], without_1)
        found.append([(v.dimension, v.withheld) for v in model.equivocation(p, (0,), asked)])
    assert found == [[(0, 1)], [(1, 1)], [(2, 1)], [(2, 1)]]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({}, ParameterError),
        ({0: ALL_SIX}, ParameterError),
        ({6: ALL_SIX}, ParameterError),
        ({1: (0, 1)}, TooFewSurvivors),
        ({1: (0, 1, 6)}, InconsistentSets),
    ],
)
def test_what_no_user_would_answer_is_refused(asked: dict[int, Users], error: type[Exception]) -> None:
    with pytest.raises(error):
        model.equivocation(SIX, (0,), MappingProxyType(asked))


@pytest.mark.parametrize("strange", [-1, 5, 99])
def test_a_coalition_with_users_that_do_not_exist_is_refused(strange: int) -> None:
    happened = model.most(TINY, (0, 1, 2))
    for column in model.columns(TINY):
        part = Column(TINY, TINY.code, column)
        assert part.decide((), happened).private
        with pytest.raises(UnknownUser, match=rf"^coalition = {strange}: must be a user in \[0, 5\)$"):
            part.decide({strange}, happened)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: Column(p, p.code, (0, 1, 2)), r"elements = \(0, 1, 2\): must be 1 to U - T = 2 different integers"),
        (lambda p: Column(p, p.code, (1, 1)), r"elements = \(1, 1\): must be 1 to U - T = 2 different integers"),
        (lambda p: Column(p, p.code, ()), r"elements = \(\): must be 1 to U - T = 2 different integers"),
        (lambda p: Column(p, p.code, (-1,)), r"elements = -1: must be an integer in \[0, 2\]"),
        (lambda p: Column(p, p.code, (10**9,)), r"elements = 1000000000: must be an integer in \[0, 2\]"),
        (lambda p: model.encoding(p.code, 3), r"size = 3: must be an integer in \[1, 2\]"),
        (lambda p: model.most(p, (0, 5)), r"surviving = 5: must be a user in \[0, 5\)"),
        (lambda p: list(model.every_surviving_set(p, -1)), r"smallest = -1: must be an integer in \[0, 5\]"),
        (
            lambda p: model.column_elements(p.code, cast(Any, "3"), (0,)),
            r"d = '3': must be an integer in \[1, 4294967295\]",
        ),
        (
            lambda p: Column(p, parameters(p.q, 4, 3, 1).code, (0,)),
            "code = 'one for 4 users, U - T = 2, modulo .*': must be one for N = 5 users, U - T = 2 or more, .*",
        ),
        (
            lambda p: list(model.audit(p, MaskCode(p.field, p.N, p.T + 1, p.T), [()], [(0, 1, 2)])),
            "code = 'one for 5 users, U - T = 1, modulo .*': must be one for N = 5 users, U - T = 2 or more, .*",
        ),
        (
            lambda p: Column(p, p.code, (0,), space=Space(PrimeField(11))),
            "space = 'one modulo 11': must be one modulo .*",
        ),
        (lambda p: Column(p, p.code, (0,), drawing=-1), "drawing = -1: must be an integer >= 0"),
        (lambda p: list(model.audit(p, p.code, [(5,)], [])), r"coalitions = 5: must be a user in \[0, 5\)"),
        (lambda p: list(model.audit(p, p.code, [], [(5,)])), r"surviving = 5: must be a user in \[0, 5\)"),
        (lambda p: Column(p, p.code, (0,)).mask(5), r"user = 5: must be a user in \[0, 5\)"),
        (lambda p: Column(p, p.code, (0,)).noise(-1), r"user = -1: must be a user in \[0, 5\)"),
        (lambda p: Column(p, p.code, (0,)).answer(-1, (0, 1, 2)), r"user = -1: must be a user in \[0, 5\)"),
        (lambda p: Column(p, p.code, (0,)).total((0, 5)), r"surviving = 5: must be a user in \[0, 5\)"),
        (lambda p: Column(p, p.code, (0,)).total((0, 0)), "surviving = 0: must be a user that is named once"),
        (lambda p: Column(p, p.code, (0,)).decide((), Situation((0,), (9,), {})), "uploaded = 9: must be a user in .*"),
        (
            lambda p: Column(p, p.code, (0,)).decide((), Situation((0,), (), {-1: (0,)})),
            "asked = -1: must be a user .*",
        ),
        (lambda p: Situation((0,), cast(Any, "abc"), {}), "uploaded = 'str': must be a sequence of users"),
        (lambda p: Situation((0,), (), cast(Any, {"zz": (0,)})), "asked = 'str': must be an integer, .*"),
        (lambda p: Situation((0,), (), cast(Any, [])), "asked = 'tuple': must be a mapping"),
        (lambda p: Situation((0,), (), cast(Any, {1: 1})), "asked = 'int': must be a sequence of users"),
        (lambda p: case_of((0, 1, 4)).late(4), "N = 4: must be an integer >= 5"),
    ],
)
def test_columns_and_sets_that_there_are_not_are_refused(call: Callable[[Parameters], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        call(TINY)


def test_rounds_of_several_spaces_are_not_seen_together() -> None:
    first, second = (Column(TINY, TINY.code, (0,), drawing=drawing) for drawing in (0, 1))
    with pytest.raises(ParameterError, match=r"^view = 'of several spaces': must be of one space"):
        second.show(first.view((), model.least((0, 1, 2))), model.least((0, 1, 2)))


def test_lists_are_taken_as_tuples_are() -> None:
    part = Column(TINY, TINY.code, (0,))
    surviving = [0, 1, 2]
    lists = Situation(surviving, [*range(5)], dict.fromkeys(surviving, surviving))  # type: ignore[arg-type]
    assert lists == model.most(TINY, (0, 1, 2))
    assert part.decide((), lists) is not None
    assert part.answer(0, surviving) is part.answer(0, (0, 1, 2))  # type: ignore[arg-type]
    assert case_of((0, 1, 4)).late(2**31) == 2**31 - 3


def case_of(surviving: Users) -> model.Case:
    """A case of the server alone."""
    return next(iter(model.audit(TINY, TINY.code, [()], [surviving])))
