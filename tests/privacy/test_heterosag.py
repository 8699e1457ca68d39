"""What coalitions learn of segments in HeteroSAg: every situation of a cell, variants, several rounds, mutants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from math import gcd, nan
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.segments import MATRICES, Matrix, cyclic, decodable, inference_robustness
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import agree, public_key
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import DuplicateUser, ParameterError, UnknownUser
from secagg_spec.privacy import heterosag as model
from secagg_spec.privacy import heterosag_odds as odds
from secagg_spec.privacy.heterosag import RULES, Plan, Rounds, refusal, situation
from secagg_spec.privacy.heterosag_unions import Unions
from secagg_spec.privacy.secagg import Element, Situation, Streams, Users
from secagg_spec.privacy.views import Forms, Secret, Space, View
from secagg_spec.protocols.heterosag import round as protocol
from secagg_spec.protocols.heterosag.plan import PRESETS, Cell, Parameters, cells_of
from secagg_spec.protocols.heterosag.round import MaskedSegments
from secagg_spec.protocols.secagg import round as secagg
from tests.quick import some

TINY, DEFAULT = PRESETS["tiny"], PRESETS["default"]
FOUR = Parameters(12, 1, 1, 3, 4, (3, 3, 3, 3), (1, 1, 1, 1), (2, 3, 4, 4), Range(-1.0, 1.0))
"""Four subgroups of three users; K = 4 twice gives cells of several segments with one R."""


def cell_of(parameters: Parameters, segment: int, subgroup: int) -> Cell:
    [cell] = [cell for cell in parameters.parts if cell.segment == segment and subgroup in cell.subgroups]
    return cell


def beyond(plan: Plan, happened: Situation, *coalition: int) -> set[str]:
    """What is learned beyond the sums, of all cells."""
    cases = [plan.decide(cells, happened, coalition) for cells in plan.together()]
    return {text for case in cases for text in case.verdict.functionals}


# -------------------------------------------------------------------------------------------------------- a cell


def roles(cell: Cell) -> Iterator[tuple[Users, Users, Users]]:
    """Who of a cell is absent, who is late, and who colludes: every choice."""
    members = sorted(cell.members)
    for fates in product("sla", repeat=len(members)):
        absent, late = (tuple(u for u, f in zip(members, fates, strict=True) if f == fate) for fate in "al")
        present = [user for user in members if user not in absent]
        for size in range(len(present) + 1):
            yield from ((absent, late, coalition) for coalition in combinations(present, size))


@pytest.mark.requirement("HSA-14", "HSA-18", "HSA-19")
@pytest.mark.parametrize("subgroup", [0, 2])
def test_cells_of_one_subgroup_in_every_situation(subgroup: int) -> None:
    """Every role of four users: the sum and no more below t colluders, and the sum is of two honest users or more."""
    cell = next(c for c in TINY.parts if c.subgroups == (subgroup,))
    plan = Plan(TINY)
    for absent, late, coalition in some(17, list(roles(cell))):
        happened = situation(TINY, absent=absent, late=late)
        if RULES["cells"].admits(TINY, happened.survivors):
            case = plan.decide((cell,), happened, coalition)
            assert case.exact
            assert case.verdict.withheld == 1
            if len(coalition) < TINY.t:
                assert case.verdict.private
            if len(coalition) <= TINY.T:
                assert len(case.contributors(cell)) != 1
            if len(coalition) >= TINY.t:
                honest = set(cell.members) - set(absent) - set(coalition)
                assert case.verdict.leak == cell.ring.modulus ** len(honest)


@given(st.data())
def test_a_kind_says_what_each_of_its_cells_does_with_users_exchanged(data: st.DataObject) -> None:
    """The representative of a class of situations has the verdict of any other member."""
    cell = data.draw(st.sampled_from(TINY.parts))
    members = data.draw(st.permutations(sorted(cell.members)))
    present = data.draw(st.integers(0, len(members)))
    staying = data.draw(st.integers(0, present))
    among, behind = data.draw(st.integers(0, staying)), data.draw(st.integers(0, present - staying))
    if staying + TINY.N - len(members) < TINY.enough:
        return

    def verdict(order: list[int], where: Cell) -> tuple[int, int, int]:
        happened = situation(TINY, absent=order[present:], late=order[staying:present])
        coalition = (*order[:among], *order[staying : staying + behind])
        found = Plan(TINY, RULES["none"]).decide((where,), happened, coalition).verdict
        return found.index, found.leak, found.withheld

    [kind] = [cells for cells in model.kinds(TINY).values() if cell in cells]
    assert verdict(members, cell) == verdict(sorted(kind[0].members), kind[0])


def test_every_case_of_a_kind_is_one_of_each_class() -> None:
    cell = next(c for c in TINY.parts if c.subgroups == (2,))
    plan, classes = Plan(TINY, RULES["none"]), set()
    for happened, coalition in model.every_case(plan, cell, range(5)):
        inside = set(coalition) & cell.members
        staying, late = set(happened.survivors) & cell.members, set(happened.delayed)
        classes.add((len(staying), len(late), len(inside & staying), len(inside & late), len(coalition)))
    wanted = {
        (s, m, a, b, count)
        for s, m, count in product(range(5), range(5), range(5))
        if s + m <= 4
        for a, b in product(range(s + 1), range(m + 1))
        if a + b <= count
    }
    assert classes == wanted


@pytest.mark.requirement("HSA-17")
def test_users_who_look_at_cells_go_on_with_nobody_or_T_plus_2_of_a_cell() -> None:
    cell = next(c for c in TINY.parts if c.subgroups == (2,))
    counts = {len(set(s.survivors) & cell.members) for s, _ in model.every_case(Plan(TINY), cell, (0,))}
    assert counts == {0, *range(TINY.T + 2, len(cell.members) + 1)}


@pytest.mark.slow
@pytest.mark.requirement("HSA-14", "HSA-19")
@pytest.mark.parametrize("parameters", [TINY, FOUR, replace(FOUR, matrix="cyclic")])
def test_each_kind_tells_its_sum_and_nothing_more(parameters: Parameters) -> None:
    plan = Plan(parameters)
    for cells in model.kinds(parameters).values():
        for happened, coalition in some(7, list(model.every_case(plan, cells[0], range(parameters.T + 2)))):
            case = plan.decide((cells[0],), happened, coalition)
            assert case.exact
            assert case.verdict.private
            assert case.verdict.withheld == 1
            assert len(coalition) > parameters.T or not case.bare


@pytest.mark.requirement("HSA-18")
def test_with_T_plus_1_colluders_the_sum_is_one_segment_and_with_one_survivor_fewer_T_are_enough() -> None:
    cell = cell_of(TINY, 0, 2)
    three, two = (situation(TINY, dropped=range(8 + left, 12)) for left in (3, 2))
    plan = Plan(TINY)
    assert plan.decide((cell,), three, (8, 9)).bare == ((10, cell),)
    assert plan.decide((cell,), three, (8,)).bare == ()
    assert plan.decide((cell,), two, (8,)).bare == ((9, cell),)
    assert not RULES["cells"].admits(TINY, two.survivors)
    assert RULES["cells"].admits(TINY, three.survivors)


@pytest.mark.requirement("HSA-17", "HSA-18")
def test_one_survivor_of_a_cell_shows_its_segment_unless_users_look_at_cells() -> None:
    alone = situation(TINY, dropped=(1, 2, 3))
    plan, cell = Plan(TINY, RULES["none"]), cell_of(TINY, 2, 0)
    assert plan.decide((cell,), alone, ()).bare == ((0, cell),)
    view = model.seen(plan.elements((cell,), alone.sharers), alone, ())
    assert view.about(0).leak == cell.ring.modulus
    assert "in segment 2" in str(model.refusal(TINY, alone.survivors))
    unanswered = situation(TINY, dropped=(1, 2, 3), answered=False)
    assert plan.decide((cell,), unanswered, ()).verdict.leak == 1


# ---------------------------------------------------------------------------------------------- unions of subgroups

PAIRS = ("cyclic", "perfect", "separate")
"""The matrices whose cells have two subgroups at most."""


@pytest.mark.requirement("HSA-11", "HSA-19")
@pytest.mark.parametrize("matrix", PAIRS)
@pytest.mark.parametrize("parameters", [TINY, FOUR])
def test_of_a_union_of_subgroups_exactly_the_decodable_segments_are_known(parameters: Parameters, matrix: str) -> None:
    parameters = replace(parameters, matrix=matrix)
    plan = Plan(parameters)
    for count in range(parameters.count - 1):
        for left_out in combinations(range(parameters.count), count):
            dropped = [user for z in left_out for user in parameters.members[z]]
            rows = plan.rows_shown(situation(parameters, dropped=dropped))
            left = [z for z in range(parameters.count) if z not in left_out]
            for size in range(1, len(left) + 1):
                for union in combinations(left, size):
                    assert decodable(rows, union) == decodable(parameters.plan, union, left_out)
            assert inference_robustness(rows).value == inference_robustness(parameters.plan, left_out).value


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("matrix", [*(MATRICES[name](4) for name in PAIRS), (((0, 2), (1, 3)),) * 4])
def test_all_unions_are_counted_in_the_segments_that_show_them(matrix: Matrix) -> None:
    found = Unions(matrix)
    for left_out in ((), (0,), (2,), (1, 3)):
        left = [z for z in range(4) if z not in left_out]
        counts = {
            union: len(decodable(matrix, union, left_out))
            for size in range(1, len(left) + 1)
            for union in combinations(left, size)
        }
        shown = found.counts(left_out).tolist()
        assert {found.members(at): count for at, count in enumerate(shown) if at and count >= 0} == counts
        del counts[tuple(left)]
        most, union = found.most(left_out)
        assert most == max(counts.values()) == counts[union]
        assert found.share(left_out) == 1 - inference_robustness(matrix, left_out).value


@pytest.mark.parametrize("left_out", [(0, 1, 2), (3, 1, 0), range(4)])
def test_where_at_most_one_subgroup_is_left_no_union_is_shown(left_out: Sequence[int]) -> None:
    found = Unions(MATRICES["cyclic"](4))
    assert found.most(left_out) == (0, ())
    assert found.share(left_out) == 1 - inference_robustness(found.matrix, left_out).value == 0


@pytest.mark.parametrize("matrix", [(), (((0, 1, 2),),) * 3, (tuple((z,) for z in range(21)),) * 21])
def test_unions_of_large_cells_and_of_no_or_too_many_subgroups_are_refused(matrix: Matrix) -> None:
    with pytest.raises(ParameterError, match="of 1 to 20 subgroups, one or two in each cell"):
        Unions(matrix)


@pytest.mark.parametrize("matrix", [5, (((0,), (0,)), ((0,), (1,))), (((0,), (2,)), ((0,), (1,))), ((0, 1), (0, 1))])
def test_unions_of_what_is_no_matrix_are_refused(matrix: Any) -> None:
    with pytest.raises(ParameterError, match=r"^matrix"):
        Unions(matrix)


@pytest.mark.parametrize("strange", [9, 4, -1, 0.5])
def test_unions_know_the_dropped_subgroups(strange: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^dropped = {strange}"):
        Unions(cyclic(4)).share([strange])


# -------------------------------------------------------------------------------------------------------- streams


@pytest.mark.requirement("HSA-14")
@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_each_cell_is_decided_once_with_all_whose_moduli_share_a_divisor(rule: model.Rule) -> None:
    groups = list(Plan(TINY, rule).together())
    if not rule.one_stream:
        assert groups == [(cell,) for cell in TINY.parts]
        return
    cells = [cell for group in groups for cell in group]
    assert len(cells) == len(TINY.parts)
    assert set(cells) == set(TINY.parts)
    assert 1 < len(groups) < len(cells)
    for one, other in combinations([{cell.ring.modulus for cell in group} for group in groups], 2):
        assert all(gcd(m, n) == 1 for m, n in product(one, other))


@pytest.mark.requirement("HSA-14")
@pytest.mark.parametrize("parameters", [TINY, FOUR])
def test_streams_of_their_own_share_no_symbol_and_tell_nothing_together(parameters: Parameters) -> None:
    """All cells of one modulus in one space."""
    plan, happened = Plan(parameters), situation(parameters, late=(0,), dropped=(11,))
    for modulus in {cell.ring.modulus for cell in parameters.parts}:
        cells = [cell for cell in parameters.parts if cell.ring.modulus == modulus]
        space = Space(Ring(modulus))
        elements = [plan.build(cell, happened.sharers, space) for cell in cells]
        used = [{s for form in element.masked.values() for s in form.symbols.tolist()} for element in elements]
        assert all(not first & second for first, second in combinations(used, 2))
        allowed = [form for element in elements for form in element.allowed((1,), happened.survivors)]
        assert model.seen(elements, happened, (1,)).decide(*allowed).private


@pytest.mark.requirement("HSA-14")
def test_one_stream_for_all_segments_gives_differences_of_segments() -> None:
    plan = Plan(TINY, RULES["one-stream"])
    assert beyond(plan, situation(TINY)) == set()
    assert beyond(plan, situation(TINY, late=(0,))) == {"x_0[0] - x_0[1]"}
    dropped = beyond(plan, situation(TINY, dropped=range(4, 8)))
    assert dropped == {f"x_{user}[0] - x_{user}[2]" for user in (9, 10, 11)}
    assert all(beyond(Plan(TINY), situation(TINY, late=late)) == set() for late in ((0,), range(4, 8)))


# ----------------------------------------------------------------------------------------------------------- rounds


def test_a_user_that_is_missing_in_one_round_is_isolated_and_users_refuse_it() -> None:
    everyone, without = tuple(range(12)), tuple(range(11))
    for order in ((everyone, without), (without, everyone)):
        weak, kept = Rounds(Plan(TINY, RULES["none"]), order), Rounds(Plan(TINY), order)
        found = weak.combination(cell_of(TINY, 0, 2), (0, 1))
        assert found is not None
        assert dict(found.users) == {11: 1}
        assert list(map(int, found.coefficients)) == ([1, -1] if order[0] == everyone else [-1, 1])
        assert weak.refused == (None, None)
        assert weak.learned(found, answered=(True, True))
        assert "tell users [11] from the others" in str(kept.refused[1])
        assert kept.refused[0] is None
        assert not kept.learned(found, answered=(True, False))


@pytest.mark.requirement("HSA-27")
def test_a_combination_of_three_rounds_isolates_whom_no_two_do() -> None:
    """{0,1,2}, {0,3,4} and {1,2,3,4,5}: the first two less the third are 2 x_0 - x_5, and that is x_5 modulo 2."""
    wide = Parameters(12, 1, 1, 3, 2, (6, 6), (1, 1), (2, 2), Range(-1.0, 1.0))
    other = tuple(range(6, 12))
    sets = ((0, 1, 2, *other), (0, 3, 4, *other), (1, 2, 3, 4, 5, *other))
    assert [why is None for why in Rounds(Plan(wide), sets).refused] == [True, False, False]
    found = Rounds(Plan(wide, RULES["none"]), sets).combination(cell_of(wide, 1, 0), (0, 1, 2))
    assert found is not None
    assert (dict(found.users), found.modulus) == ({5: 1}, 2)
    assert Rounds(Plan(wide, RULES["none"]), sets).learned(found, answered=(True,) * 3)


@pytest.mark.requirement("HSA-27")
def test_sums_are_known_modulo_two_as_well() -> None:
    """{0,1,2}, {0,3,4} and {1,2,3,5} add up to x_4 + x_5 modulo 2; no rational combination is about so few users."""
    wide = Parameters(12, 1, 1, 3, 2, (6, 6), (1, 1), (2, 2), Range(-1.0, 1.0))
    other = tuple(range(6, 12))
    sets = ((0, 1, 2, *other), (0, 3, 4, *other), (1, 2, 3, 5, *other))
    assert [why is None for why in Rounds(Plan(wide), sets).refused] == [True, False, False]
    rounds = Rounds(Plan(wide, RULES["none"]), sets)
    found = rounds.combination(cell_of(wide, 1, 0), (0, 1, 2))
    assert found is not None
    assert found.modulus == 2
    assert len(found.users) == 2
    total = [sum(c * (u in s) for c, s in zip(found.coefficients, sets, strict=True)) for u in range(6)]
    assert {u: int(t) % 2 for u, t in enumerate(total) if int(t) % 2} == dict(found.users)
    assert rounds.learned(found, answered=(True,) * 3)
    assert not rounds.learned(found, answered=(True, True, False))
    longer = Rounds(Plan(wide, RULES["none"]), (*sets, tuple(range(12))))
    unused = replace(found, coefficients=(*found.coefficients, Fraction(0)))
    assert longer.learned(unused, answered=(True, True, True, False)), "a round with the factor 0 needs no answer"


def test_rounds_that_end_before_the_survivors_answer_show_nothing() -> None:
    rounds = Rounds(Plan(TINY, RULES["none"]), [tuple(range(TINY.N)), (0, 1)])
    said = r"^survivors\[1\] = \(0, 1\): must be max\(t, T \+ 2\) = 3 users or more$"
    with pytest.raises(ParameterError, match=said):
        rounds.view(TINY.parts[0], (), answered=(True, True))
    wrong: Any = {True, False}
    with pytest.raises(ParameterError, match=r"^answered = 'set': must be a sequence of truth values$"):
        rounds.view(TINY.parts[0], (), answered=wrong)


@pytest.mark.requirement("HSA-27")
def test_companions_may_be_too_few_though_no_combination_is_about_so_few() -> None:
    """The example of the page: five sums that tell one input of two levels, and no combination is about two users."""
    wide = Parameters(14, 1, 1, 3, 2, (9, 5), (1, 1), (2, 2), Range(-1.0, 1.0))
    named = ((0, 1, 4, 5, 6, 7, 8), (1, 4, 6, 8), (0, 1, 8), (1, 2, 3, 5, 6, 7, 8), (0, 1, 2, 3, 4, 5, 6))
    sets = [(*chosen, *range(9, 14)) for chosen in named]
    assert [why is None for why in Rounds(Plan(wide), sets).refused] == [True, True, *[False] * 3]
    weak, cell = Rounds(Plan(wide, RULES["none"]), sets), cell_of(wide, 1, 0)
    assert weak.combination(cell, range(5)) is None
    users = weak.too_few(cell, range(5))
    assert users is not None
    assert len(users) == 1
    assert weak.too_few(cell, (0,)) is None


@pytest.mark.requirement("HSA-27")
@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=4))
def test_a_combination_is_about_the_fewest_users_there_are(drawn: list[set[int]]) -> None:
    """Against all combinations with small coefficients, as they are and modulo 2 and 3."""
    wide = Parameters(12, 1, 1, 3, 2, (7, 5), (1, 1), (2, 2), Range(-1.0, 1.0))
    rounds, cell = Rounds(Plan(wide, RULES["none"]), [(*sorted(s), *range(7, 12)) for s in drawn]), cell_of(wide, 1, 0)
    found = rounds.combination(cell, range(len(drawn)))
    rows = np.array([[int(user in chosen) for user in range(7)] for chosen in drawn])
    entries = np.array(list(product((-2, -1, 0, 1, 2), repeat=len(drawn)))) @ rows
    weights = np.concatenate([((entries % m if m else entries) != 0).sum(axis=1) for m in (0, 2, 3)])
    fewest = int(weights[weights > 0].min(initial=7))
    if found is None:
        assert fewest >= wide.T + 2
        return
    assert len(found.users) <= fewest
    assert (rounds.too_few(cell, range(len(drawn))) or set()) != set()
    total = [sum(c * (u in s) for c, s in zip(found.coefficients, drawn, strict=True)) for u in range(7)]
    left = {u: t % found.modulus if found.modulus else t for u, t in enumerate(total)}
    assert {u for u, t in left.items() if t} == set(found.users)


@pytest.mark.slow
@pytest.mark.requirement("HSA-27")
@given(st.lists(st.sets(st.integers(0, 11), min_size=3), min_size=2, max_size=3))
def test_whatever_is_answered_isolates_nobody(drawn: list[set[int]]) -> None:
    """Rounds of every kind: the answered ones tell exactly their sums, and no input of fewer than T + 2 users."""
    rounds = Rounds(Plan(TINY), [tuple(sorted(chosen)) for chosen in drawn])
    answered = [why is None for why in rounds.refused]
    for cell in TINY.parts[::2]:
        assert rounds.combination(cell, [r for r, yes in enumerate(answered) if yes]) is None
        assert rounds.too_few(cell, [r for r, yes in enumerate(answered) if yes]) is None
        view, elements = rounds.view(cell, (), answered=answered)
        kept = [(e, cell.members & s) for e, s, yes in zip(elements, drawn, answered, strict=True) if yes]
        sums = [element.total(chosen) for element, chosen in kept if chosen]
        verdict = view.decide(*sums)
        assert verdict.private
        assert verdict.withheld == 1


# --------------------------------------------------------------------------------------------------- shell and core


@pytest.mark.requirement("HSA-14", "HSA-19")
@pytest.mark.parametrize(
    ("parameters", "left_out"), [(TINY, ()), (TINY, (3, 8)), (TINY, (4, 5, 6, 7)), (FOUR, (0, 1, 2))]
)
def test_the_forms_are_the_masked_segments_of_a_round(parameters: Parameters, left_out: Users) -> None:
    """With the same inputs and seeds, each segment has the value of its form, and each sum that of its own."""
    p = parameters
    randomness = secagg.draw_randomness(cast(Any, p), {i: SeededSource(b"segments", str(i)) for i in range(p.N)})
    levels = np.stack([[c.levels for c in cells_of(p, i) for _ in range(c.length)] for i in range(p.N)])
    updates = np.arange(p.N * p.d, dtype=np.uint64).reshape(p.N, p.d) * np.uint64(7) % levels.astype(np.uint64)
    session, number = bytes(range(16)), 5
    result = protocol.run_round(
        p, updates, randomness=randomness, dropouts={"masked_input": left_out}, session=session, round=number
    )
    sent = {m.sender: m for e in result.transcript for m in e.sent if isinstance(m, MaskedSegments)}
    unpacked = {i: protocol.unpack_segments(cells_of(p, i), message.segments) for i, message in sent.items()}
    sums = {(found.cell.segment, found.cell.subgroups): found.total for found in result.sums}
    for cell in p.parts:
        element = Element(
            *(cell.ring, p.graph(), p.t, tuple(range(p.N))),
            indices=range(cell.start, cell.stop),
            streams=Streams(session, protocol.PROTOCOL, number, cell.segment),
            members=cell.members,
        )
        values = value_of(p, cell, randomness, updates, element.space, session, number)
        survivors = tuple(user for user in element.members if user not in left_out)
        for user in survivors:
            got = unpacked[user][cell.start : cell.stop]
            assert computed(element.masked[user], values, cell.ring).tolist() == got.tolist()
        if survivors:
            total = computed(element.recovered(survivors), values, cell.ring)
            assert total.tolist() == sums[cell.segment, cell.subgroups].tolist()


def value_of(
    p: Parameters, cell: Cell, randomness: Any, updates: Any, space: Space, session: bytes, number: int
) -> Any:
    """The value of each symbol: inputs, and the streams of the keys that the text derives for the segment."""
    context = protocol.agreed(p, session, number).context()
    private = {i: randomness[i]["masking_key"] for i in range(p.N)}
    public = {i: public_key(key) for i, key in private.items()}

    @cache
    def stream(seed: Any) -> Any:
        if seed[0] == "self seed":
            key = masks.self_key(context, randomness[seed[2]]["self_seed"], seed[2], cell.segment)
        else:
            _, _, i, j = seed
            pair = {i: public[i], j: public[j]}
            key = masks.pairwise_key(context, agree(private[i], public[j]), pair, cell.segment)
        return expand(key, cell.ring, cell.length)

    def value(symbol: Any) -> int:
        if isinstance(symbol, Secret):
            return int(updates[symbol.user, symbol.index])
        assert symbol.derivation.segment == cell.segment
        return int(stream(symbol.derivation.seed)[symbol.index])

    return np.array([value(symbol) for symbol in space.symbols], dtype=np.uint64)


def computed(forms: Forms, values: Any, ring: Ring) -> Any:
    return ring.matmul(forms.matrix, values[forms.symbols].reshape(-1, 1))[:, 0]


# ----------------------------------------------------------------------------------------------------------- planted


def no_self_mask(ring: Ring, user: int, update: Any, self_mask: Any, pairwise: Any) -> Any:
    return ring.signed_sum(update, ((user < peer, mask) for peer, mask in pairwise))


def both_add(ring: Ring, user: int, update: Any, self_mask: Any, pairwise: Any) -> Any:
    return ring.signed_sum(update, [(True, self_mask)], ((True, mask) for _, mask in pairwise))


def twice_the_own(ring: Ring, user: int, update: Any, self_mask: Any, pairwise: Any) -> Any:
    return ring.signed_sum(
        update, [(True, self_mask)] * 3, ((user < p, m) for p, mask in pairwise for m in (mask, mask, mask))
    )


@pytest.mark.requirement("HSA-14")
def test_without_a_self_mask_a_late_user_is_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secagg, "mask_update", no_self_mask)
    assert beyond(Plan(TINY), situation(TINY, late=(0,))) == {f"x_0[{segment}]" for segment in range(3)}


@pytest.mark.requirement("HSA-14", "HSA-19")
def test_masks_that_do_not_cancel_hide_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secagg, "mask_update", both_add)
    assert not Plan(TINY).decide((TINY.parts[0],), situation(TINY), ()).exact


def test_masks_times_three_are_seen_modulo_nine_and_not_modulo_five(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor that is no unit modulo a composite R: what a rank modulo a prime does not see."""
    monkeypatch.setattr(secagg, "mask_update", twice_the_own)
    happened = situation(TINY, answered=False)
    nine = Plan(TINY).decide((cell_of(TINY, 0, 2),), happened, ())
    assert cell_of(TINY, 0, 2).ring.modulus == 9
    assert nine.verdict.leak == 3**4
    assert nine.verdict.functionals == tuple(f"3*x_{user}[0]" for user in (9, 10, 11))
    five = Plan(TINY).decide((cell_of(TINY, 2, 0),), happened, ())
    assert (cell_of(TINY, 2, 0).ring.modulus, five.verdict.leak) == (5, 1)


@pytest.mark.parametrize("named", [{"absent": (1,), "late": (1,)}, {"dropped": range(10)}])
def test_nonsense_is_no_situation(named: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        situation(TINY, **named)


@pytest.mark.parametrize("strange", [99, 12, -1])
def test_users_that_do_not_exist_are_refused(strange: int) -> None:
    for name in ("absent", "dropped", "late"):
        named: dict[str, Any] = {name: [strange]}
        with pytest.raises(UnknownUser, match=f"{name}.* = {strange}: must be a user in"):
            situation(TINY, **named)
    with pytest.raises(UnknownUser, match=f"^survivors = {strange}"):
        refusal(TINY, {strange})


@pytest.mark.parametrize("strange", [-1, 2, True, 0.0, "0", None])
def test_rounds_that_do_not_exist_are_refused(strange: Any) -> None:
    rounds, cell = Rounds(Plan(TINY, RULES["none"]), (tuple(range(12)), tuple(range(11)))), cell_of(TINY, 0, 2)
    for call in (rounds.sets, rounds.too_few, rounds.combination):
        with pytest.raises(ParameterError, match=r"^rounds = .*: must be an integer in \[0, 1\]$"):
            call(cell, (0, strange))
    for users, error in (((0, 12), UnknownUser), ((0, 0), DuplicateUser), ((0, True), ParameterError)):
        with pytest.raises(error, match=r"^survivors\[1\] = "):
            Rounds(rounds.plan, (tuple(range(12)), users))


def test_a_union_that_does_not_exist_has_no_members() -> None:
    unions = Unions(((((0, 1),)), ((0,), (1,))))
    number: Any
    for number in (-1, 4, True, 1.0, None):
        with pytest.raises(ParameterError, match=rf"^number = {number}: must be an integer in \[0, 3\]$"):
            unions.members(number)


def test_users_that_are_named_twice_are_listed_in_order() -> None:
    with pytest.raises(ParameterError, match=r"absent, dropped and late = \[1, 3, 3, 5\]"):
        situation(TINY, absent=(5, 3), late=(3, 1))


def test_a_view_without_answers_tells_nothing() -> None:
    plan, happened = Plan(TINY), situation(TINY, answered=False)
    for cells in plan.together():
        view: View = model.seen(plan.elements(cells, happened.sharers), happened, (0,))
        assert view.decide().leak == 1


# -------------------------------------------------------------------------------------------------------------- odds


def by_hand(sizes: Users, p: Fraction, bad: Any) -> Fraction:
    """The probability of an event, with every set of survivors counted."""
    total = Fraction(0)
    for fates in product((0, 1), repeat=sum(sizes)):
        counts = [sum(fates[sum(sizes[:z]) : sum(sizes[: z + 1])]) for z in range(len(sizes))]
        alive = sum(fates)
        total += bad(counts) * (1 - p) ** alive * p ** (len(fates) - alive)
    return total


@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (4, 2, 3), (4, 4, 4)])
@pytest.mark.parametrize("p", [Fraction(1, 10), Fraction(2, 3), Fraction(0), Fraction(1)])
def test_the_odds_are_those_of_counting(sizes: Users, p: Fraction) -> None:
    one = [odds.few(size, 2, p) for size in sizes]
    assert one == [odds.survivors(size, 1, p) for size in sizes]
    assert odds.any_of(one) == by_hand(sizes, p, lambda counts: 1 in counts)
    assert one[0] == by_hand(sizes, p, lambda counts: counts[0] == 1)
    few = odds.any_of(odds.few(size, 3, p) for size in sizes)
    assert few == by_hand(sizes, p, lambda counts: any(0 < count < 3 for count in counts))


@pytest.mark.requirement("HSA-17", "ERR-02")
@pytest.mark.parametrize("strange", [Fraction(3, 2), Fraction(-1, 2), 0.5, nan, 1, None, "1/2"])
def test_the_odds_take_probabilities_alone(strange: Any) -> None:
    calls = partial(odds.survivors, 5, 2, strange), partial(odds.few, 5, 0, strange), partial(odds.any_of, [strange])
    for call in calls:
        with pytest.raises(ParameterError, match=r"a fraction in \[0, 1\]"):
            call()


@pytest.mark.requirement("HSA-17", "ERR-02")
@pytest.mark.parametrize("strange", [-1, 2.0, True, "5", None])
@pytest.mark.parametrize(("call", "second"), [(odds.survivors, "count"), (odds.few, "below")])
def test_the_odds_take_numbers_of_users_alone(call: Any, second: str, strange: Any) -> None:
    for name in ("users", second):
        with pytest.raises(ParameterError, match=rf"^{name} = "):
            call(**{"users": 5, second: 2, "p": Fraction(1, 2), name: strange})


@pytest.mark.requirement("HSA-17")
def test_a_round_fails_for_its_cells_exactly_when_a_subgroup_keeps_few() -> None:
    for fates in some(31, list(product((0, 1), repeat=12))):
        survivors = {user for user, stays in enumerate(fates) if stays}
        counts = [len(survivors & set(members)) for members in TINY.members]
        few = any(0 < count < TINY.T + 2 for count in counts)
        assert RULES["cells"].admits(TINY, survivors) == (not few)


@pytest.mark.requirement("HSA-14")
def test_one_stream_is_that_of_one_of_the_segments() -> None:
    segments = {rule.name: [rule.segment(cell) for cell in TINY.parts] for rule in RULES.values()}
    assert segments["cells"] == segments["none"] == [cell.segment for cell in TINY.parts]
    [one] = set(segments["one-stream"])
    assert one in segments["cells"]


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_case_is_exact_when_all_of_its_cells_are(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, happened = Plan(TINY, RULES["one-stream"]), situation(TINY)
    cells = next(group for group in plan.together() if len(group) > 1)
    assert plan.decide(cells, happened, ()).exact
    exact = plan.exact
    monkeypatch.setattr(plan, "exact", lambda e, s: exact(e, s) and set(e.members) != cells[wrong].members)
    assert len({cell.members for cell in cells}) > 1
    assert not plan.decide(cells, happened, ()).exact


@pytest.mark.parametrize("answered", ["no", 0, None])
def test_whether_survivors_answer_is_a_truth_value(answered: Any) -> None:
    with pytest.raises(ParameterError, match=r"^answered = .*must be of the class bool$"):
        situation(PRESETS["tiny"], answered=answered)


def test_odds_are_for_2_to_the_16_users_at_most() -> None:
    with pytest.raises(ParameterError, match=r"^users = 65537: must be an integer in \[0, 65536\]$"):
        odds.few(2**16 + 1, 2, Fraction(1, 2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda plan, cell: plan.decide((), situation(TINY), ()), r"len\(cells\) = 0: must be 1 or more"),
        (lambda plan, cell: model.seen([], situation(TINY), ()), r"len\(elements\) = 0: must be 1 or more"),
        (
            lambda plan, cell: Rounds(plan, [tuple(range(TINY.N))]).view(cell, (), answered=()),
            r"len\(answered\) = 0: must be 1, one for each round",
        ),
        (
            lambda plan, cell: list(model.every_case(plan, cell, (-1,))),
            r"colluders = -1: must be an integer in \[0, 12\]",
        ),
        (
            lambda plan, cell: list(model.every_case(plan, cell, (13,))),
            r"colluders = 13: must be an integer in \[0, 12\]",
        ),
        (lambda plan, cell: plan.elements((), tuple(range(12))), r"len\(cells\) = 0: must be 1 or more"),
        (
            lambda plan, cell: plan.elements((None,), tuple(range(12))),
            r"cells\[0\] = 'NoneType': must be of the class Cell",
        ),
        (lambda plan, cell: plan.elements((cell,), (0, 12)), r"sharers = 12: must be a user in \[0, 12\)"),
        (
            lambda plan, cell: plan.build(cell, tuple(range(12)), Space(Ring(6))),
            r"space = 'one modulo 6': must be one modulo \d+",
        ),
        (lambda plan, cell: plan.build(cell, (0, 1), Space(cell.ring), -1), "drawing = -1: must be an integer >= 0"),
        (
            lambda plan, cell: plan.build(replace(cell, start=1), (0, 1), Space(cell.ring)),
            r"cell = Cell\(.*: must be a cell of the parameters of the plan",
        ),
        (
            lambda plan, cell: list(model.every_case(plan, replace(cell, members=frozenset({0, 99})), (0,))),
            r"cell = Cell\(.*: must be a cell of the parameters of the plan",
        ),
        (
            lambda plan, cell: Rounds(plan, [tuple(range(12))]).sets(replace(cell, segment=9), (0,)),
            r"cell = Cell\(.*: must be a cell of the parameters of the plan",
        ),
        (
            lambda plan, cell: Rounds(plan, [tuple(range(12))]).view(cell, (12,), answered=(True,)),
            r"coalition = 12: must be a user in \[0, 12\)",
        ),
        (
            lambda plan, cell: Rounds(plan, []).learned(model.Combination(cell, (Fraction(1),), {0: 1}), answered=()),
            r"len\(coefficients\) = 1: must be 0, one for each round",
        ),
        (
            lambda plan, cell: plan.decide((cell,), situation(TINY), (12,)),
            r"coalition = 12: must be a user in \[0, 12\)",
        ),
        (
            lambda plan, cell: model.seen(
                [*map(plan.build, 2 * [cell], 2 * [tuple(range(12))], map(Space, 2 * [cell.ring]))], situation(TINY), ()
            ),
            "elements = 'of several spaces': must be of one space: .*",
        ),
        (lambda plan, cell: model.Rule("a", checked=cast(bool, 1)), "checked = 'int': must be of the class bool"),
        (
            lambda plan, cell: model.Rule("a", one_stream=cast(bool, None)),
            "one_stream = 'NoneType': must be of the class bool",
        ),
    ],
)
def test_what_is_no_part_of_a_plan_is_refused(call: Any, said: str) -> None:
    plan = Plan(TINY)
    with pytest.raises(ParameterError, match=f"^{said}$"):
        call(plan, TINY.parts[0])
