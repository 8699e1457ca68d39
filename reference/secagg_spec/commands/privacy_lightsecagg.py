"""``secagg-spec privacy lightsecagg``: what the server and a coalition of users learn beyond the sum."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.commands.privacy_report import DECIDING, Found, Report, add_all, learned, show
from secagg_spec.privacy import lightsecagg as model
from secagg_spec.privacy import wording
from secagg_spec.privacy.lightsecagg import Case, Users
from secagg_spec.protocols.lightsecagg.round import PRESETS, Parameters
from secagg_spec.terminal import working

_EXHAUSTIVE = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this protocol."""
    parser.add_argument("--preset", choices=list(PRESETS), default="tiny", help="the parameters (tiny)")
    parser.add_argument(
        "--points", metavar="A,B,…", help="the users' points instead of 1,2,…; 0 is allowed here, to see its effect"
    )
    parser.add_argument("--coalition", metavar="USERS", help="decide one coalition only: 0,3; or '' for no user")
    add_all(parser)
    parser.set_defaults(run=main)


@dataclass(frozen=True, eq=False)
class _Plan:
    """The cases to decide, and whether they are all cases."""

    parameters: Parameters
    code: MaskCode
    coalitions: tuple[Users, ...]
    surviving: tuple[Users, ...]
    every_coalition: bool
    every_set: bool


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: no decided coalition of up to T users learns more than the sum; else 1."""
    plan = _plan(options)
    with working(DECIDING):
        cases = tuple(model.audit(plan.parameters, plan.code, plan.coalitions, plan.surviving))
    return show(_report(options.preset, plan, cases), options.all)


def _report(preset: str, plan: _Plan, cases: Sequence[Case]) -> Report:
    return Report(
        plan.parameters.T,
        plan.every_coalition and plan.every_set,
        "the sum",
        list(_parameters(preset, plan)),
        list(_found(plan, cases)),
        [*_open(plan), *_conclusions(plan, cases)],
        list(_scope(plan)),
        "what the server and these users learn beyond the sum over the survivors and their own data",
    )


# -------------------------------------------------------------------------------------------------------- plan


def _plan(options: argparse.Namespace) -> _Plan:
    parameters = PRESETS[options.preset]
    code = parameters.code
    if options.points is not None:
        points = wording.numbers("--points", options.points)
        code = model.UncheckedCode(parameters.field, parameters.N, parameters.U, parameters.T, points)
    few = 2**parameters.N * _count_surviving(parameters) <= _EXHAUSTIVE
    if options.coalition is None:
        coalitions = tuple(model.every_coalition(parameters)) if few else _first_coalitions(parameters, code)
    else:
        chosen = validate.users("--coalition", wording.numbers("--coalition", options.coalition), parameters.N)
        coalitions = (tuple(sorted(chosen)),)
    sets = tuple(model.every_surviving_set(parameters)) if few else _extreme_sets(parameters)
    return _Plan(parameters, code, coalitions, sets, few and options.coalition is None, few)


def _count_surviving(parameters: Parameters) -> int:
    enough = max(parameters.U, parameters.T + 2)
    return sum(comb(parameters.N, size) for size in range(enough, parameters.N + 1))


def _first_coalitions(parameters: Parameters, code: MaskCode) -> tuple[Users, ...]:
    """Return each user whose share is in clear, the first T users, and the first T + 1."""
    alone = [(user,) for user in model.open_shares(code)]
    return tuple(dict.fromkeys([*alone, *(tuple(range(size)) for size in (parameters.T, parameters.T + 1))]))


def _extreme_sets(parameters: Parameters) -> tuple[Users, ...]:
    """Return two surviving sets: all users, and the last users, as few as are allowed."""
    everyone = tuple(range(parameters.N))
    smallest = everyone[-max(parameters.U, parameters.T + 2) :]
    return tuple(dict.fromkeys((everyone, smallest)))


# -------------------------------------------------------------------------------------------------------- text


def _parameters(preset: str, plan: _Plan) -> Iterator[str]:
    p = plan.parameters
    yield f"LightSecAgg, preset {preset}: N = {p.N}, U = {p.U}, T = {p.T}, D = {p.D}, q = {p.q}, d = {p.d}"
    yield f"points: {wording.runs([int(point) for point in plan.code.points])}"


def _open(plan: _Plan) -> Iterator[str]:
    """Say whose share is in clear."""
    p = plan.parameters
    for user, coefficients in model.open_shares(plan.code).items():
        yield wording.in_clear(user, int(plan.code.points[user]), coefficients.tolist(), p.share_length, p.d)


def _scope(plan: _Plan) -> Iterator[str]:
    """Say what was decided, and how."""
    yield "decided exactly, on the matrices of the cores that run: mask_update, encode, aggregate_shares"
    if plan.every_coalition:
        yield f"coalitions: all {len(plan.coalitions)}"
    else:
        yield f"coalitions: {'; '.join(map(wording.users, plan.coalitions))} (others are NOT decided here)"
    if plan.every_set:
        yield f"surviving sets: all {len(plan.surviving)} that may be announced"
    else:
        yield f"surviving sets: {'; '.join(map(wording.users, plan.surviving))} (others are NOT decided here)"
    yield "in each case, any masked updates may be late, and any users may answer"
    kinds = model.columns(plan.parameters)
    more = "" if len(kinds) == 1 else " (two kinds: one ends in padding)"
    yield f"columns of the code: {'; '.join(wording.elements(kind) for kind in kinds)}{more}"


def _found(plan: _Plan, cases: Sequence[Case]) -> Iterator[Found]:
    for coalition, group in groupby(cases, key=lambda case: case.coalition):
        worst = _worst(tuple(group))
        more = "" if worst.verdict.private else learned(worst.verdict.functionals)
        yield Found(coalition, _beyond(plan, worst), more)


def _worst(cases: Sequence[Case]) -> Case:
    """Return the case that reveals most; among equals the one with the most survivors."""
    return max(cases, key=lambda case: (case.verdict.dimension, len(case.surviving)))


def _beyond(plan: _Plan, case: Case) -> str:
    if case.verdict.private:
        everyone = len(case.coalition) == plan.parameters.N
        return "nothing (all inputs are its own)" if everyone else "nothing"
    late = case.late(plan.parameters.N)
    count = case.verdict.dimension
    added = f" and {late} honest upload{'s' if late > 1 else ''} came late" if late else ""
    what = wording.first(case.verdict.functionals)
    return f"{wording.dimensions(count)} a column when {wording.users(case.surviving)} survive{added}: {what}"


def _conclusions(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    T = plan.parameters.T
    scope = "" if plan.every_coalition and plan.every_set else ", among the cases decided here"
    if all(case.verdict.withheld == 1 for case in cases):
        yield "the sum itself is learned in every case"
    more = [case for case in cases if not case.verdict.private]
    if more:
        first = len(more[0].coalition)
        smallest = _worst([case for case in more if case.coalition == more[0].coalition])
        who = f"{wording.users(smallest.coalition)} ({wording.size(T, first)})"
        yield f"smallest coalition that learns more{scope}: {who}"
        yield from _functionals(smallest)
    else:
        yield f"no coalition learns more{scope}"
    yield from _tightness(plan, [case for case in cases if len(case.coalition) == T + 1])


def _functionals(case: Case) -> Iterator[str]:
    yield f"  when {wording.users(case.surviving)} survive, in the column of {wording.elements(case.elements)}:"
    yield from wording.listed(case.verdict.functionals)


def _tightness(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Compare T + 1 users with the figure min(U - T, 1) * (honest contributors - 1), column by column."""
    if cases:
        yield "tightness: T + 1 users, against min(U - T, 1) * (honest contributors - 1) dimensions a column:"
    for elements in dict.fromkeys(case.elements for case in cases):
        group = [case for case in cases if case.elements == elements]
        fewer = [case for case in group if case.excess < model.expected_excess(plan.parameters, case)]
        other = [case for case in group if case.excess > model.expected_excess(plan.parameters, case)]
        text = f"exactly that in {len(group) - len(fewer) - len(other)} of {len(group)} cases"
        for count, word in ((fewer, "less"), (other, "more")):
            if count:
                text += f", {word} in {len(count)} (for example {wording.users(count[0].coalition)})"
        yield f"  {wording.elements(elements)}: {text}"
    if cases:
        yield from _lateness(plan, cases)


def _lateness(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Say what late masked updates of honest users add."""
    N = plan.parameters.N
    late = [case for case in cases if case.late(N)]
    added = [case for case in late if case.verdict.dimension - case.excess == case.late(N)]
    if late:
        yield f"  each honest masked update that came too late adds one more: in {len(added)} of {len(late)} cases"
