"""The command ``secagg-spec privacy``: what the server and a coalition of users learn beyond the sum."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import lightsecagg as model
from secagg_spec.privacy.lightsecagg import Case, Users
from secagg_spec.protocols.lightsecagg import PRESETS, Parameters

_EXHAUSTIVE = 2000
_LINE = 60
_LINES = 4
_WIDTH = 110
_EPILOG = """exit codes:
  0  no decided coalition of up to T users learns more than the sum
  1  one does
  2  wrong usage"""


def add_parser(commands: Any) -> None:
    """Add ``privacy`` to the commands."""
    parser = commands.add_parser(
        "privacy",
        help="decide what a coalition learns beyond the sum",
        description="Decide exactly, on the matrices of the code that runs, what the server and each coalition of "
        "users learn beyond the sum and their own data. Small presets are decided exhaustively; for the others name a "
        "coalition, or let the first T and the first T + 1 users be taken.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("protocol", choices=["lightsecagg"], help="the protocol")
    parser.add_argument("--preset", choices=list(PRESETS), default="tiny", help="the parameters (tiny)")
    parser.add_argument(
        "--points", metavar="A,B,…", help="the users' points instead of 1,2,…; 0 is allowed here, to see what it breaks"
    )
    parser.add_argument("--coalition", metavar="USERS", help="decide one coalition only: 0,3; or '' for no user")
    parser.set_defaults(run=main)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is decided, and whether that is everything."""

    parameters: Parameters
    code: MaskCode
    coalitions: tuple[Users, ...]
    surviving: tuple[Users, ...]
    every_coalition: bool
    every_set: bool


def main(options: argparse.Namespace) -> int:
    """Run the command; 0 when no decided coalition of up to T users learns more than the sum, else 1."""
    plan = _plan(options)
    for line in _heading(options.preset, plan):
        print(line)
    cases = tuple(model.audit(plan.parameters, plan.code, plan.coalitions, plan.surviving))
    for line in _table(plan, cases):
        print(line)
    print()
    for line in _conclusions(plan, cases):
        print(line)
    return int(any(not case.verdict.private for case in cases if len(case.coalition) <= plan.parameters.T))


# -------------------------------------------------------------------------------------------------------- plan


def _plan(options: argparse.Namespace) -> _Plan:
    parameters = PRESETS[options.preset]
    code = parameters.code
    if options.points is not None:
        points = _numbers("--points", options.points)
        code = model.UncheckedCode(parameters.field, parameters.N, parameters.U, parameters.T, points)
    few = 2**parameters.N * _count_surviving(parameters) <= _EXHAUSTIVE
    if options.coalition is None:
        coalitions = tuple(model.every_coalition(parameters)) if few else _first_coalitions(parameters, code)
    else:
        chosen = validate.users("--coalition", _numbers("--coalition", options.coalition), parameters.N)
        coalitions = (tuple(sorted(chosen)),)
    sets = tuple(model.every_surviving_set(parameters)) if few else _extreme_sets(parameters)
    return _Plan(parameters, code, coalitions, sets, few and options.coalition is None, few)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) <= 20):
            raise ParameterError(option, part, "whole numbers with commas between, as in 0,1,2")
    return tuple(int(part) for part in parts)


def _count_surviving(parameters: Parameters) -> int:
    enough = max(parameters.U, parameters.T + 2)
    return sum(comb(parameters.N, size) for size in range(enough, parameters.N + 1))


def _first_coalitions(parameters: Parameters, code: MaskCode) -> tuple[Users, ...]:
    """Return each user whose share is in clear, the first T users, and the first T + 1."""
    alone = [(user,) for user in model.open_shares(code)]
    return tuple(dict.fromkeys([*alone, *(tuple(range(size)) for size in (parameters.T, parameters.T + 1))]))


def _extreme_sets(parameters: Parameters) -> tuple[Users, ...]:
    """Return two surviving sets: everyone, and the last users of the smallest set that is allowed."""
    everyone = tuple(range(parameters.N))
    smallest = everyone[-max(parameters.U, parameters.T + 2) :]
    return tuple(dict.fromkeys((everyone, smallest)))


# -------------------------------------------------------------------------------------------------------- text


def _heading(preset: str, plan: _Plan) -> Iterator[str]:
    p = plan.parameters
    yield f"LightSecAgg, preset {preset}: N = {p.N}, U = {p.U}, T = {p.T}, D = {p.D}, q = {p.q}, d = {p.d}"
    yield f"points: {_runs([int(point) for point in plan.code.points])}"
    yield "decided exactly, on the matrices of the cores that run: mask_update, encode, aggregate_shares"
    if plan.every_coalition:
        yield f"coalitions: all {len(plan.coalitions)}"
    else:
        yield f"coalitions: {'; '.join(map(_users, plan.coalitions))} (others are NOT decided here)"
    if plan.every_set:
        yield f"surviving sets: all {len(plan.surviving)} that may be announced"
    else:
        yield f"surviving sets: {'; '.join(map(_users, plan.surviving))} (others are NOT decided here)"
    yield "for each of them: whatever masked updates came too late, and whoever answers"
    kinds = model.columns(p)
    more = "" if len(kinds) == 1 else " (two kinds: one ends in padding)"
    yield f"columns of the code: {'; '.join(_elements(kind) for kind in kinds)}{more}"
    for user, coefficients in model.open_shares(plan.code).items():
        yield f"\n{_open_share(plan, user, coefficients.tolist())}"


def _open_share(plan: _Plan, user: int, coefficients: Sequence[int]) -> str:
    """Say what a user holds of every mask in clear."""
    p, parts = plan.parameters, [k for k, c in enumerate(coefficients) if c]
    what = f"a combination of the sub-masks {_runs(parts)}"
    if len(parts) == 1:
        first = parts[0] * p.share_length
        what = f"sub-mask {parts[0]}, {_elements(range(first, min(first + p.share_length, p.d)))},"
    return (
        f"IN CLEAR: user {user}, whose point is {int(plan.code.points[user])}, holds {what} of every mask in clear:\n"
        f"  no noise reaches its share, so that with the masked updates it knows that part of every update"
    )


def _table(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    yield "\nwhat the server and these users learn beyond the sum over the survivors and their own data:"
    names = {coalition: _users(coalition) for coalition in plan.coalitions}
    width = min(max(map(len, names.values())), 40)
    for coalition, group in groupby(cases, key=lambda case: case.coalition):
        worst = _worst(tuple(group))
        yield f"  {names[coalition]:<{width}}  {_beyond(plan, worst)}"


def _worst(cases: Sequence[Case]) -> Case:
    """Return the case in which most is learned; among equals the one with the most survivors."""
    return max(cases, key=lambda case: (case.verdict.dimension, len(case.surviving)))


def _beyond(plan: _Plan, case: Case) -> str:
    if case.verdict.private:
        everyone = len(case.coalition) == plan.parameters.N
        return "nothing (all inputs are its own)" if everyone else "nothing"
    late = case.late(plan.parameters.N)
    count = case.verdict.dimension
    added = f" and {late} honest upload{'s' if late > 1 else ''} came late" if late else ""
    return f"{_dimensions(count)} a column when {_users(case.surviving)} survive{added}: {_first(case)}"


def _first(case: Case) -> str:
    """Return as many functionals as one line holds, and how many there are besides."""
    functionals = case.verdict.functionals
    shown = [_clipped(functionals[0], _LINE)]
    for text in functionals[1:]:
        if len("; ".join([*shown, text])) > _LINE:
            break
        shown.append(text)
    rest = len(functionals) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")


def _conclusions(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    T = plan.parameters.T
    small = [case for case in cases if len(case.coalition) <= T]
    broken = [case for case in small if not case.verdict.private]
    scope = "" if plan.every_coalition and plan.every_set else ", as far as decided here"
    if broken:
        yield f"PRIVACY BROKEN: a coalition of at most T = {T} learns more than the sum"
    elif small:
        yield f"up to T = {T}: exactly the sum over the survivors and the coalition's own data{scope}"
    if all(case.verdict.withheld == 1 for case in cases):
        yield "the sum itself is learned in every case"
    more = [case for case in cases if not case.verdict.private]
    if more:
        first = len(more[0].coalition)
        smallest = _worst([case for case in more if case.coalition == more[0].coalition])
        yield f"smallest coalition that learns more{scope}: {_users(smallest.coalition)} ({_size(plan, first)})"
        yield from _functionals(smallest)
    else:
        yield f"no coalition learns more{scope}"
    yield from _tightness(plan, [case for case in cases if len(case.coalition) == T + 1])
    yield (
        "what this proves, and what not: docs/explanation/privacy-verdicts.md\n"
        "  (private channels, uniform masks and noise, everyone follows the protocol)"
    )


def _functionals(case: Case) -> Iterator[str]:
    functionals = case.verdict.functionals
    yield f"  when {_users(case.surviving)} survive, in the column of {_elements(case.elements)}:"
    yield from (f"    {_clipped(text, _WIDTH)}" for text in functionals[:_LINES])
    if len(functionals) > _LINES:
        yield f"    and {len(functionals) - _LINES} more"


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
                text += f", {word} in {len(count)} ({_users(count[0].coalition)}, for one)"
        yield f"  {_elements(elements)}: {text}"
    if cases:
        yield from _lateness(plan, cases)


def _lateness(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Say what masked updates of honest users outside the surviving set add."""
    N = plan.parameters.N
    late = [case for case in cases if case.late(N)]
    added = [case for case in late if case.verdict.dimension - case.excess == case.late(N)]
    if late:
        yield f"  each honest masked update that came too late adds one more: in {len(added)} of {len(late)} cases"


# ----------------------------------------------------------------------------------------------------- helpers


def _size(plan: _Plan, count: int) -> str:
    T = plan.parameters.T
    users = "user" if count == 1 else "users"
    return f"T + {count - T} = {count} {users}" if count > T else f"{count} {users}, T = {T}"


def _dimensions(count: int) -> str:
    return f"{count} dimension{'' if count == 1 else 's'}"


def _elements(elements: Sequence[int]) -> str:
    return f"element{'' if len(elements) == 1 else 's'} {_runs(elements, most=4)}"


def _users(users: Sequence[int]) -> str:
    if not users:
        return "the server alone"
    return f"{'user' if len(users) == 1 else 'users'} {_runs(users)}"


def _runs(numbers: Sequence[int], most: int = 12) -> str:
    """Return numbers in words, runs of three and more joined: ``0 to 3, 5``; long lists are cut."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words: list[str] = []
    for run in runs:
        words.extend([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))
    return ", ".join(words[:most]) + (f", … ({len(numbers)} in all)" if len(words) > most else "")


def _clipped(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + " …"
