"""``secagg-spec privacy heterosag``: what the server and a coalition learn of segments, in one round or several."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType

from secagg_spec.arithmetic import numerals, validate
from secagg_spec.arithmetic.segments import Robustness, inference_robustness
from secagg_spec.commands.privacy_report import Found, Report, add_all, learned, show
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import heterosag as model
from secagg_spec.privacy import heterosag_odds as odds
from secagg_spec.privacy import wording
from secagg_spec.privacy.heterosag import RULES, Case, Combination, Kind, Plan, Rounds
from secagg_spec.privacy.secagg import Situation, Users
from secagg_spec.protocols.heterosag.plan import MATRICES, PRESETS, Cell, Parameters
from secagg_spec.terminal import Progress

_SAYS = MappingProxyType(
    {
        "cells": "a round is refused if a cell would have 1 to T + 1 survivors, alone or combined with past rounds",
        "none": "WEAKER than cells: users and server do not look at cells",
        "one-stream": "WEAKER than cells: all segments of a user take their masks from one stream",
    }
)
_EXHAUSTIVE = 30
_CELLS_DECIDED = 30
_MOST_DROPPED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this protocol."""
    users = "as in 0,2,4-7; or '' for nobody"
    parser.add_argument("--preset", choices=list(PRESETS), default="tiny", help="the parameters (tiny)")
    parser.add_argument("--matrix", choices=list(MATRICES), help="the matrix instead of the preset's")
    parser.add_argument("--rule", choices=list(RULES), default="cells", help="the checks of users, and streams (cells)")
    parser.add_argument("--collude", metavar="USERS", help=f"decide one coalition only: {users}")
    parser.add_argument("--absent", metavar="USERS", help=f"users who drop out before share_keys: {users}")
    parser.add_argument("--drop", metavar="USERS", help=f"users who drop out before masked_input: {users}")
    parser.add_argument("--late", metavar="USERS", help=f"users whose masked segments come too late: {users}")
    parser.add_argument(
        "--rounds", metavar="SURVIVORS", help="the survivors of each round, with constant inputs: 0-11;0-10"
    )
    parser.add_argument("--odds", metavar="P", help="the probability that a user drops out: 0.1 or 1/10 (1/10)")
    add_all(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: no decided coalition of up to T users learns more than it may; else 1."""
    plan, p = _plan(options), numerals.probability("--odds", "1/10" if options.odds is None else options.odds)
    given = any(getattr(options, name) is not None for name in ("collude", "absent", "drop", "late"))
    if options.rounds is not None:
        if given or options.odds is not None:
            raise ParameterError("--rounds", options.rounds, "without --collude, --absent, --drop, --late and --odds")
        report = _rounds(plan, _survivors(options.rounds, plan.parameters))
    elif given or plan.rule.one_stream:
        if options.odds is not None:
            allowed = "left out with --collude, --absent, --drop, --late and with --rule one-stream: nothing is drawn"
            raise ParameterError("--odds", options.odds, allowed)
        report = _situations(plan, options, given)
    else:
        report = _audit(plan, p)
    parameters = list(_parameters(options.preset, plan))
    return show(replace(report, parameters=parameters, scope=[*report.scope, *_heading(plan)]), options.all)


# ------------------------------------------------------------------------------------------------------- options


def _plan(options: argparse.Namespace) -> Plan:
    parameters = PRESETS[options.preset]
    if options.matrix is not None:
        parameters = replace(parameters, matrix=options.matrix)
    rule = RULES[options.rule]
    if rule.one_stream and parameters.N > _EXHAUSTIVE:
        raise ParameterError("--rule", options.rule, f"one-stream only where N is at most {_EXHAUSTIVE}")
    return Plan(parameters, rule)


def _users(option: str, text: str | None, parameters: Parameters) -> Users:
    """Parse the users of an option, with ranges such as 4-7."""
    found: list[int] = []
    for part in text.split(",") if text and text.strip() else []:
        pieces = part.split("-")
        ends = [number for end in pieces for number in wording.numbers(option, end)]
        if len(ends) != len(pieces) or len(ends) > 2 or ends != sorted(ends):
            raise ParameterError(option, part, "a user, or a range of users such as 4-7")
        validate.users(option, ends[-1:], parameters.N)
        found += range(ends[0], ends[-1] + 1)
    return tuple(sorted(validate.users(option, found, parameters.N)))


def _survivors(text: str, parameters: Parameters) -> tuple[Users, ...]:
    found = tuple(_users("--rounds", part, parameters) for part in text.split(";"))
    for chosen in found:
        if len(chosen) < parameters.enough:
            least = f"rounds with max(t, T + 2) = {parameters.enough} survivors or more"
            raise ParameterError("--rounds", list(chosen), least)
    return found


# --------------------------------------------------------------------------------------------------------- words


def _parameters(preset: str, plan: Plan) -> Iterator[str]:
    p = plan.parameters
    numbers = ", ".join(f"{name} = {getattr(p, name)}" for name in ("N", "D", "T", "t", "d"))
    yield f"HeteroSAg, preset {preset}: {numbers}, matrix {p.matrix}"
    yield f"rule {plan.rule.name}: {_SAYS[plan.rule.name]}"


def _heading(plan: Plan) -> Iterator[str]:
    """Say how the users are divided, and how it was decided."""
    p = plan.parameters
    subgroups = "; ".join(f"{z}: {wording.runs(users)}" for z, users in enumerate(p.members))
    yield f"subgroups: {wording.clipped(subgroups, wording.WIDTH)}"
    rows = ("; ".join(_short(cell) for cell in p.parts if cell.segment == row) for row in range(p.count))
    for row, cells in list(enumerate(rows))[:6]:
        yield f"segment {row}, cells: {wording.clipped(cells, wording.WIDTH)}"
    if p.count > 6:
        yield f"… and {_segments(range(6, p.count))}"
    yield "decided exactly, on the cores that run: mask_update, unmask; one element a segment, modulo the R of its cell"
    if plan.rule.one_stream:
        yield "a word of a stream counts as uniform modulo every R: that it is below 2**32 is NOT decided here"


def _short(cell: Cell) -> str:
    return f"{wording.runs(cell.subgroups)} mod {cell.ring.modulus}"


def _cell(cell: Cell) -> str:
    word = "subgroup" if len(cell.subgroups) == 1 else "subgroups"
    return f"segment {cell.segment}, {word} {wording.runs(cell.subgroups)}"


def _segments(numbers: Sequence[int]) -> str:
    return f"segment{'' if len(numbers) == 1 else 's'} {wording.runs(numbers)}"


def _amount(case: Case) -> str:
    verdict = case.verdict
    if verdict.index == verdict.modulus**verdict.dimension:
        return f"{wording.dimensions(verdict.dimension)} modulo {verdict.modulus}"
    return f"{verdict.bits:g} bits"


def _worst(cases: Sequence[Case]) -> Case:
    """Return the case that reveals most; among equals the smallest coalition, then the most survivors."""
    return max(cases, key=lambda case: (case.verdict.index, -len(case.coalition), len(case.situation.survivors)))


def _when(case: Case) -> str:
    """Say which users of the cells survive, and whose segments come late."""
    survivors = sorted({user for cell in case.cells for user in case.survivors(cell)})
    left = f"{wording.users(survivors)} survive{'s' if len(survivors) == 1 else ''}" if survivors else "nobody survives"
    return left + (f" and {wording.users(case.late)} came late" if case.late else "")


def _leak(case: Case) -> str:
    return f"{_amount(case)} when {_when(case)}: {wording.first(case.verdict.functionals)}"


# --------------------------------------------------------------------------------------------------- whole audit


def _audit(plan: Plan, p: Fraction) -> Report:
    """Decide one cell of each kind: in every situation for few users, in some situations for many."""
    few = plan.parameters.N <= _EXHAUSTIVE
    kinds = Progress().follow([*model.kinds(plan.parameters).items()], lambda item: f"cells of {_kind(item[0], 1)}")
    cases = {kind: tuple(_decided(plan, cells[0], few)) for kind, cells in kinds}
    every = [case for group in cases.values() for case in group]
    notes = [*_conclusions(plan, every), "", *_robustness(plan), "", *_odds(plan.parameters, p)]
    return replace(
        _decided_all(plan, every, few), notes=notes, scope=[*_scope(plan, few)], listing=[*_table(plan, cases)]
    )


def _decided_all(plan: Plan, cases: Sequence[Case], whole: bool, *, answered: bool = True) -> Report:
    """Return a report of what each coalition learns, without its details."""
    T, found = plan.parameters.T, list[Found]()
    of: dict[Users, list[Case]] = {}
    for case in cases:
        of.setdefault(case.coalition, []).append(case)
    for coalition, group in sorted(of.items(), key=lambda item: (len(item[0]), item[0])):
        worst, bare = _worst(group), [case.bare[0] for case in group if case.bare]
        more = "" if worst.verdict.private else learned(worst.verdict.functionals)
        if not more and bare and answered and len(coalition) <= T:
            user, cell = bare[0]
            more = f"x_{user}[{cell.segment}]: the sum of a cell is just that"
        found.append(Found(coalition, "", more))
    return Report(T, whole, "the sum over the survivors of each cell", (), found, ())


def _colluders(plan: Plan) -> tuple[int, ...]:
    T, t = plan.parameters.T, plan.parameters.t
    return (*range(T + 2), t)


def _decided(plan: Plan, cell: Cell, few: bool) -> Iterator[Case]:
    chosen = model.every_case(plan, cell, _colluders(plan)) if few else _some(plan, cell)
    for happened, coalition in chosen:
        yield plan.decide((cell,), happened, coalition)


def _some(plan: Plan, cell: Cell) -> Iterator[tuple[Situation, Users]]:
    """Yield situations where all, T + 2 or no users of a cell survive and the rest are late; T or T + 1 collude."""
    members, T = sorted(cell.members), plan.parameters.T
    for staying in dict.fromkeys((len(members), 0, 1 if not plan.rule.checked else T + 2)):
        happened = model.situation(plan.parameters, late=members[staying:])
        for count in (0, T, T + 1):
            yield happened, tuple(members[:count])


def _scope(plan: Plan, few: bool) -> Iterator[str]:
    T, t = plan.parameters.T, plan.parameters.t
    if few:
        yield "of each cell: every number of absent, surviving and late users with which a round goes on"
        yield f"coalitions: every number of users in the cell and outside, for 0 to T + 1 = {T + 1} and t = {t} users"
    else:
        yield "of each cell: all, T + 2 or no users survive, the others come late (others are NOT decided here)"
        yield f"coalitions: none, T = {T} and T + 1 = {T + 1} users (others are NOT decided here)"


def _table(plan: Plan, cases: Mapping[Kind, Sequence[Case]]) -> Iterator[str]:
    T, counts = plan.parameters.T, {kind: len(cells) for kind, cells in model.kinds(plan.parameters).items()}
    yield f"what the server and up to T = {T} users learn of a cell beyond the sum over its survivors and their own:"
    names = {kind: _kind(kind, counts[kind]) for kind in cases}
    width = max(map(len, names.values()))
    for kind, group in cases.items():
        small = [case for case in group if len(case.coalition) <= T]
        worst = _worst(small)
        result = f"nothing, in {len(small)} cases" if worst.verdict.private else _leak(worst)
        yield f"  {names[kind]:<{width}}  {result}"


def _kind(kind: Kind, count: int) -> str:
    users = " + ".join(map(str, kind.sizes))
    return f"{users} users, K = {kind.levels}, R = {kind.modulus} ({count} cell{'s' if count > 1 else ''})"


def _conclusions(plan: Plan, cases: Sequence[Case]) -> Iterator[str]:
    small = [case for case in cases if len(case.coalition) <= plan.parameters.T]
    bare = [case for case in small if case.bare]
    if bare:
        yield "the sum of a cell can be the segment of one honest user:"
        yield from (f"  {_bare(case)}" for case in _smallest_and_largest(bare))
    elif small:
        yield f"each of these sums is over at least two honest users, or nobody: in all {len(small)} cases"
    if all(case.exact and case.verdict.withheld == 1 for case in cases):
        yield "the permitted sums are learned in every case, and unmask returns the sum over the survivors of the cell"
    yield from _tightness(plan, cases)


def _smallest_and_largest(bare: Sequence[Case]) -> list[Case]:
    """Return a case with the smallest coalition and, if it differs, a case with the most survivors in the cell."""
    few = min(bare, key=lambda case: len(case.coalition))
    many = max(bare, key=lambda case: len(case.survivors(case.cells[0])))
    return [few] if len(many.coalition) == len(few.coalition) else [few, many]


def _bare(case: Case) -> str:
    user, cell = case.bare[0]
    who, where = wording.users(case.coalition), _cell(cell)
    return f"{where}: x_{user}[{cell.segment}] for {who}, when of the cell {_when(case)}"


def _tightness(plan: Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Say what T + 1 users and t users learn."""
    T, t = plan.parameters.T, plan.parameters.t
    next_ = [case for case in cases if len(case.coalition) == T + 1]
    if next_:
        more = [case for case in next_ if not case.verdict.private]
        yield f"tightness: T + 1 = {T + 1} users learn {'MORE' if more else 'no more'} than the sums, and"
        bare = [case for case in next_ if case.bare]
        yield f"  the sum can be one segment: {_bare(bare[0])}" if bare else "  no sum is one segment"
    many = [case for case in cases if len(case.coalition) == t]
    if many:
        worst = _worst(many)
        found = "nothing more" if worst.verdict.private else _leak(worst)
        yield f"  t = {t} users learn, {_cell(worst.cells[0])}: {found}"


# ---------------------------------------------------------------------------------------------- unions and odds


def _robustness(plan: Plan) -> Iterator[str]:
    """Say how much is known about a union of subgroups, when none, one or two subgroups dropped out."""
    p, decided = plan.parameters, len(plan.parameters.parts) <= _CELLS_DECIDED
    how = "decided cell by cell, for every union" if decided else "from the matrix alone"
    yield f"for which sets of subgroups, neither empty nor all, a segment of the sum is known: {how}"
    most = _MOST_DROPPED if decided else 1
    for count in range(min(most, p.count - 2) + 1):
        choices = [dropped for dropped in combinations(range(p.count), count) if _left(p, dropped) >= p.enough]
        if choices:
            dropped, worst = min(
                ((dropped, _share(plan, dropped)) for dropped in choices), key=lambda pair: pair[1].value
            )
            if decided:
                worst = _share_decided(plan, dropped)
            named = (
                f"subgroup{'s' if count > 1 else ''} {wording.runs(dropped)} dropped" if dropped else "nobody dropped"
            )
            several = "s" if len(worst.subgroups) > 1 else ""
            sets = f"of subgroup{several} {wording.runs(worst.subgroups)} in {_segments(worst.rows)}"
            yield f"  {named}: a share of {1 - worst.value} at most, {sets}; inference robustness {worst.value}"


def _left(parameters: Parameters, dropped: Users) -> int:
    return parameters.N - sum(len(parameters.members[z]) for z in dropped)


def _share(plan: Plan, dropped: Users) -> Robustness:
    """Return the inference robustness of the matrix after whole subgroups dropped out."""
    return inference_robustness(plan.parameters.plan, dropped)


def _share_decided(plan: Plan, dropped: Users) -> Robustness:
    """Return the inference robustness from the sums that are learned, cell by cell."""
    users = [user for z in dropped for user in plan.parameters.members[z]]
    return inference_robustness(plan.rows_shown(model.situation(plan.parameters, dropped=users)))


def _odds(parameters: Parameters, p: Fraction) -> Iterator[str]:
    sizes, T = [len(users) for users in parameters.members], parameters.T
    one, few = ([odds.few(size, below, p) for size in sizes] for below in (2, T + 2))
    yield f"each user drops out with probability {p}, exactly:"
    yield f"  one survivor in subgroup 0, which has {sizes[0]} users: {_exactly(one[0])}"
    yield f"  one survivor in any of the {len(sizes)} subgroups: {_exactly(odds.any_of(one))}"
    yield f"  a round fails by HSA-17, with 1 to T + 1 = {T + 1} survivors in a subgroup:"
    yield f"    {_exactly(odds.any_of(few))}"


def _exactly(chance: Fraction) -> str:
    text = str(chance)
    return f"{text} = {float(chance):.3g}" if len(text) <= 40 else f"{float(chance):.6g}"


# -------------------------------------------------------------------------------------------- given situations


def _situations(plan: Plan, options: argparse.Namespace, given: bool) -> Report:
    """Decide every cell in the named situation; with one stream, in a few situations."""
    p = plan.parameters
    if given:
        sets = {name: _users(f"--{name}", getattr(options, name), p) for name in ("absent", "drop", "late")}
        chosen: Mapping[str, Situation] = {"": _given(p, sets)}
    else:
        chosen = _typical(p)
    refused = {name: model.refusal(p, s.survivors) for name, s in chosen.items()} if plan.rule.checked else {}
    if options.collude is None:
        coalitions = tuple(tuple(range(count)) for count in (0, p.T, p.T + 1))
    else:
        coalitions = (_users("--collude", options.collude, p),)
    scope = f"coalitions: {'; '.join(map(wording.users, coalitions))} (others are NOT decided here)"
    lines, reports = list[str](), list[Report]()
    for name, whole in chosen.items():
        lines += [""] if lines else []
        lines.append(f"{_happened(whole, p)} (others are NOT decided here)")
        why = refused.get(name)
        lines += [f"REFUSED by HSA-17 and HSA-18: {why}"] if why else []
        happened = replace(whole, answers=MappingProxyType({})) if why else whole
        cases = [plan.decide(cells, happened, c) for cells in plan.together() for c in coalitions]
        lines += _learned(plan, cases, answered=not why)
        reports.append(_decided_all(plan, cases, whole=False, answered=not why))
    worst = next((report for report in reports if report.broken), reports[0])
    return replace(worst, notes=lines, scope=[scope])


def _given(parameters: Parameters, sets: Mapping[str, Users]) -> Situation:
    """Return the situation of some sets of users, each named as its option is."""
    try:
        return model.situation(parameters, absent=sets["absent"], dropped=sets["drop"], late=sets["late"])
    except ParameterError as error:
        named = " and ".join(f"--{name}" for name, users in sets.items() if users)
        raise ParameterError(named, error.value, error.allowed) from None


def _typical(parameters: Parameters) -> Mapping[str, Situation]:
    """Return the situations for one stream: nobody drops out, one user is late, one or two subgroups drop out."""
    found = {"nobody": model.situation(parameters), "late": model.situation(parameters, late=(0,))}
    for count in range(1, _MOST_DROPPED + 1):
        dropped = [user for z in range(1, count + 1) if z < parameters.count for user in parameters.members[z]]
        if parameters.N - len(dropped) >= parameters.enough:
            found[f"dropped {count}"] = model.situation(parameters, dropped=dropped)
    return found


def _happened(happened: Situation, parameters: Parameters) -> str:
    absent = [user for user in range(parameters.N) if user not in happened.sharers]
    dropped = [user for user in happened.sharers if user not in happened.uploaded]
    parts = ((absent, "absent"), (dropped, "dropped out"), (sorted(happened.delayed), "late"))
    return "; ".join(f"{wording.users(users)} {word}" for users, word in parts if users) or "nobody drops out"


def _learned(plan: Plan, cases: Sequence[Case], *, answered: bool) -> Iterator[str]:
    beyond = "the sums over survivors and their own" if answered else "their own"
    coalitions = dict.fromkeys(case.coalition for case in cases)
    width = max(len(wording.users(coalition)) for coalition in coalitions)
    yield f"what the server and these users learn beyond {beyond}:"
    for coalition in coalitions:
        group = [case for case in cases if case.coalition == coalition]
        more = [case for case in group if not case.verdict.private]
        name = f"  {wording.users(coalition):<{width}}  "
        if not more:
            yield f"{name}nothing, of all {sum(len(case.cells) for case in group)} cells"
        for case in more[: wording.LINES]:
            segments = _segments(sorted({cell.segment for cell in case.cells}))
            yield f"{name}{_amount(case)}, {segments}: {wording.first(case.verdict.functionals)}"
        if len(more) > wording.LINES:
            yield f"{name}and {len(more) - wording.LINES} more cells"
        bare = [case for case in group if case.bare]
        if answered and bare:
            yield f"{name}a sum is one segment: {_bare(bare[0])}"


# ------------------------------------------------------------------------------------------------ several rounds


def _rounds(plan: Plan, survivors: Sequence[Users]) -> Report:
    """Say which requests are answered over rounds with constant inputs, and which users the sums tell apart.

    The sums are those of all rounds, or of the answered ones.
    """
    rounds = Rounds(plan, survivors)
    answered = [why is None for why in rounds.refused]
    lines = ["inputs stay the same from round to round; keys and seeds are new in each"]
    for number, (chosen, why) in enumerate(zip(survivors, rounds.refused, strict=True)):
        said = "answered" if why is None else f"REFUSED by HSA-18 or HSA-27: {why}"
        lines.append(f"  round {number}: {wording.users(chosen)} survive: {said}")
    numbers = [r for r, yes in enumerate(answered) if yes]
    kept = list(_too_few(rounds, numbers, answered))
    lines.append("")
    if not kept:
        lines.append("in each cell, users who were in the same answered sums are T + 2 or more")
        every = list(_too_few(rounds, range(len(survivors)), [True] * len(survivors)))
        lines += ["if all requests had been answered:", *every] if every else []
        found = _isolated(rounds, range(len(survivors)))
        if found is not None and not rounds.learned(found, answered=answered):
            lines.append("  since a request was refused, the server does not learn that")
    more = "sums that tell fewer than T + 2 users of a cell from the others" if kept else ""
    may = "sums that keep T + 2 users of a cell together"
    return Report(plan.parameters.T, False, may, (), [Found((), "", more)], [*lines, *kept])


def _too_few(rounds: Rounds, numbers: Sequence[int], answered: Sequence[bool]) -> Iterator[str]:
    """Show the smallest set of companions, and a combination about few users if one exists; nothing if HSA-27 holds."""
    classes = ((cell, rounds.too_few(cell, numbers)) for cell in rounds.plan.parameters.parts)
    small = [(cell, sorted(users)) for cell, users in classes if users]
    if not small:
        return
    cell, users = min(small, key=lambda pair: len(pair[1]))
    least = f"T + 2 = {rounds.plan.parameters.T + 2}"
    yield f"  {_cell(cell)}: too few companions: {wording.users(users)}; at least {least} are needed"
    found = _isolated(rounds, numbers)
    if found is not None:
        yield from _shown(rounds, found, numbers, answered)
    else:
        yield "  no combination of these sums is about fewer than T + 2 users; inputs of few levels may reveal more"


def _isolated(rounds: Rounds, numbers: Sequence[int]) -> Combination | None:
    found = (rounds.combination(cell, numbers) for cell in rounds.plan.parameters.parts)
    return min((one for one in found if one), key=lambda one: len(one.users), default=None)


def _shown(rounds: Rounds, found: Combination, numbers: Sequence[int], answered: Sequence[bool]) -> Iterator[str]:
    """Show the combination, and that it is decided to be known modulo R."""
    cell = found.cell
    users = _terms((weight, f"x_{user}[{cell.segment}]") for user, weight in found.users.items())
    pairs = zip(found.coefficients, numbers, strict=True)
    sums = _terms((weight, f"(sum of round {number})") for weight, number in pairs if weight)
    modulo = f", modulo {found.modulus}" if found.modulus else ""
    yield f"  {_cell(cell)}: {users} = {sums}{modulo}"
    if rounds.learned(found, answered=answered):
        yield f"  decided on the masked segments of these rounds, modulo {cell.ring.modulus}: the server learns it"


def _terms(terms: Iterator[tuple[int | Fraction, str]]) -> str:
    """Return a sum with coefficients as text."""
    text = ""
    for weight, name in terms:
        sign = "-" if weight < 0 else "+"
        term = name if abs(weight) == 1 else f"{abs(weight)}*{name}"
        text += f" {sign} {term}" if text else f"{'-' if weight < 0 else ''}{term}"
    return text
