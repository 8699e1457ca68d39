"""Prints a round of HeteroSAg: the plan, bits, what the server can decode, and averages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from secagg_spec.arithmetic import packing
from secagg_spec.arithmetic.segments import decodable, inference_robustness
from secagg_spec.protocols.heterosag.averages import CellSum
from secagg_spec.protocols.heterosag.costs import secagg_bits, secagg_user_masks, segment_costs, sum_modulus, user_masks
from secagg_spec.protocols.heterosag.plan import Cell, Parameters
from secagg_spec.simulate.heterosag_inputs import ATTACKS, Aggregate, Inputs, aggregates
from secagg_spec.simulate.inputs import told_dropouts
from secagg_spec.simulate.matrices import Look, legend, number, table, things, witness
from secagg_spec.simulate.narration import counted, shown, users_in_words

_FEW, _WIDTH = 8, 110
_PLANS = {
    "cyclic": "algorithm 1 of the paper",
    "perfect": "from a perfect one-factorisation, as the text recommends",
    "separate": "the naive scheme: SecAgg in each group by itself",
}


def unit(p: Parameters) -> str:
    """Return the word for a column of the matrix."""
    return "group" if max(p.subgroups) == 1 else "subgroup"


# ------------------------------------------------------------------------------------------------- before the round


def heading(p: Parameters, dropouts: Mapping[str, Sequence[int]]) -> list[str]:
    """Describe the parameters of the round."""
    groups = counted(len(p.sizes), "group") + ("" if unit(p) == "group" else f" with {p.count} subgroups")
    promised = f"t = {p.t} shares needed, T = {p.T} may collude, D = {p.D} may drop out"
    return [
        f"HeteroSAg: N = {p.N} users in {groups}, {promised}",
        f"inputs of d = {p.d} elements in [{p.range.low:g}, {p.range.high:g}], in Z = {p.count} segments",
        f"matrix {p.matrix}: {_PLANS[p.matrix]}",
        f"drops out: {told_dropouts(dropouts)}; keys, seeds, polynomials and inputs from the seed",
    ]


def matrix(p: Parameters, look: Look) -> list[str]:
    """Draw the matrix, and list who masks each segment with whom."""
    one = unit(p)
    lines = ["who masks which segment with whom:", *table(p.plan, group_of=_group_of(p), look=look)]
    lines += [f"  {line}" for line in legend(one, ())] + [""]
    return [*lines, *_cells(p)]


def _cells(p: Parameters) -> list[str]:
    """List the cells of each segment; if there are many segments, only of the first and the last."""
    rows, few = _rows(p), p.count <= _FEW
    shown_rows = range(p.count) if few else (0, p.count - 1)
    width, number_width = max(len(_cell(cell)) for cell in p.parts) + 3, len(str(p.count - 1))
    each = max(1, (_WIDTH - number_width - 4) // width)
    which = "each segment" if few else "the first and the last segment"
    lines = [f"the cells of {which}: {unit(p)}s, users, K, modulus R"]
    for at in shown_rows:
        cells = [f"{_cell(cell):{width}}" for cell in rows[at]]
        cut = ["".join(cells[left : left + each]).rstrip() for left in range(0, len(cells), each)]
        lines += [f"  {at if not row else '':>{number_width}}  {line}" for row, line in enumerate(cut)]
    return lines


def _group_of(p: Parameters) -> tuple[int, ...] | None:
    return None if unit(p) == "group" else p.group_of


def _cell(cell: Cell) -> str:
    among = "+".join(map(str, cell.subgroups))
    return f"{among}: {len(cell.members)} users, K = {cell.levels}, R = {cell.ring.modulus}"


def bits(p: Parameters) -> list[str]:
    """Compare what users send and expand with what SecAgg among all of them would need."""
    width = max(len(str(number)) for number in (p.count - 1, *(packing.bits_of(cell.ring.modulus) for cell in p.parts)))
    names = "".join(f"{at:>{width + 1}}" for at in range(p.count))
    users = max(5, *(len(_users(members)) for members in p.members))
    return [
        "bits of each element that a user sends, by segment, and over all elements; next to it what SecAgg among all",
        f"{p.N} users would take, with the levels of this group for everybody; and the elements of masks to expand",
        f"  {unit(p):>8}  {'users':>{users}}  {'K':>5} {names}   of all   SecAgg   of all   ratio    masks   SecAgg",
        *(_bits_of(p, at, width + 1, users) for at in range(p.count)),
    ]


def _bits_of(p: Parameters, subgroup: int, width: int, users: int) -> str:
    members, K = p.members[subgroup], p.levels[p.group_of[subgroup]]
    costs = segment_costs(p, members[0])
    own, other = sum(cost.bits for cost in costs), secagg_bits(p.d, p.N, K)
    each = "".join(f"{cost.width:>{width}}" for cost in costs)
    plain = packing.bits_of(sum_modulus(p.N, K))
    expanded, everybody = user_masks(p, members[0]).elements, secagg_user_masks(p.d, p.N).elements
    return (
        f"  {subgroup:>8}  {_users(members):>{users}}  {K:>5} {each}  {own:>7,}  {plain:>7}  {other:>7,}"
        f"  {own / other:>6.2f}  {expanded:>7,}  {everybody:>7,}"
    )


def _users(members: Sequence[int]) -> str:
    return users_in_words(members).removeprefix("users ")


# ------------------------------------------------------------------------------------------------- after the round


def sums(found: Sequence[CellSum]) -> list[str]:
    """Say which sums the server has, and show one."""
    first = found[0]
    return [
        f"the server has the sums of {counted(len(found), 'cell')}",
        f"  e.g. segment {first.cell.segment}, {users_in_words(first.survivors)}: {shown(first.total)}",
    ]


def decodable_segments(p: Parameters, survivors: Collection[int]) -> list[str]:
    """Say for each subgroup, and for the worst set, in which segments the server knows the sum."""
    one = unit(p)
    dropped = tuple(at for at, members in enumerate(p.members) if not set(members) & set(survivors))
    best = inference_robustness(p.plan, dropped)
    lines = [f"segments in which the server knows the sum of one {one} by itself, and the set of which it knows most:"]
    lines += [_known(p, at, dropped) for at in range(p.count)]
    lines.append(f"  the most: {witness(best, one)}; inference robustness {number(best.value)}")
    if not dropped:
        return [*lines, f"  no {one} is lost as a whole, so the dropouts add nothing to this"]
    before = inference_robustness(p.plan)
    were = "were" if len(dropped) > 1 else "was"
    return [*lines, f"  before {things(one, dropped)} {were} lost: {witness(before, one)}; {number(before.value)}"]


def _known(p: Parameters, subgroup: int, dropped: Collection[int]) -> str:
    name = f"  {unit(p)} {subgroup:>{len(str(p.count - 1))}}"
    if subgroup in dropped:
        return f"{name}: lost as a whole"
    now, before = decodable(p.plan, (subgroup,), dropped), decodable(p.plan, (subgroup,))
    more = f"; before others were lost, {things('segment', before)}" if now != before else ""
    return f"{name}: {things('segment', now)}, {len(now)} of {p.count}{more}"


def attack(inputs: Inputs, name: str, survivors: Collection[int]) -> list[str]:
    """Say who attacks, how, and within what bounds."""
    if not inputs.byzantine:
        return ["no user is Byzantine (--byzantine B makes B users attack)"]
    low, high = inputs.parameters.range.low, inputs.parameters.range.high
    return [
        f"Byzantine: {users_in_words(inputs.byzantine)}, {name}: {ATTACKS[name]},",
        f"  clipped to [{low:g}, {high:g}] before it is quantised: the quantiser carries nothing else, and",
        "  no cell mean leaves this range, whatever its users send",
        f"  {_against_bound(inputs, survivors)}",
    ]


def _against_bound(inputs: Inputs, survivors: Collection[int]) -> str:
    """Say whether the Byzantine users are few enough for the median, and where they do most harm."""
    p, there, count = inputs.parameters, set(inputs.byzantine) & set(survivors), len(inputs.byzantine)
    rows = _rows(p, survivors)
    spoiled = [sum(bool(cell.members & there) for cell in row) for row in rows]
    worst = max(range(p.count), key=lambda segment: spoiled[segment] / max(1, len(rows[segment])))
    bound = -(-p.count // 4) - 1
    within = "within" if count <= bound else "beyond"
    where = f"in segment {worst} they are in {spoiled[worst]} of {counted(len(rows[worst]), 'cell')}"
    return f"B = {count} is {within} the bound ceil(Z/4) - 1 = {bound}; {where}"


def _rows(p: Parameters, survivors: Collection[int] | None = None) -> list[list[Cell]]:
    """Return the cells of each segment that have survivors."""
    left = range(p.N) if survivors is None else survivors
    there = [cell for cell in p.parts if cell.members & set(left)]
    return [[cell for cell in there if cell.segment == segment] for segment in range(p.count)]


def averages(inputs: Inputs, found: Sequence[CellSum], survivors: Collection[int], trim: int | None) -> list[str]:
    """Compare mean, median and trimmed mean with the plain mean of the honest users."""
    honest = set(survivors) - set(inputs.byzantine)
    if not honest:
        return ["no honest user survives, so there is nothing to compare the aggregate with"]
    fewest = min(len(row) for row in _rows(inputs.parameters, survivors))
    if trim is not None and 2 * trim >= fewest:
        return [f"a segment has only {counted(fewest, 'cell')} left, too few to trim b = {trim} from either end"]
    wanted = f"plain mean of the {counted(len(honest), 'honest user')}"
    done, width = aggregates(inputs, found, survivors, trim), len(wanted)
    return [
        "the aggregate, next to what it should be:",
        f"  {wanted}  {shown(inputs.mean(survivors))}",
        *(f"  {one.name:{width}}  {shown(one.vector)}" for one in done),
        *_errors(done, attacked=bool(inputs.byzantine)),
    ]


def _errors(done: Sequence[Aggregate], attacked: bool) -> list[str]:
    if not attacked:
        return [f"  root mean square error: {', '.join(f'{one.name} {one.attacked:.4f}' for one in done)}"]
    rows = [f"  {one.name:22}{one.attacked:>8.4f}{one.unharmed:>24.4f}{one.moved:>22.4f}" for one in done]
    return [
        f"  {'root mean square':22}{'error':>8}{'if all were honest':>24}{'moved by the attack':>22}",
        *rows,
        "  without the attack, the error comes from the quantiser and, for the median, from the users' differences",
    ]
