"""``secagg-spec privacy basecagg``: what the server and a coalition of users learn beyond the weighted sum."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.commands.privacy_report import DECIDING, Found, Report, add_all, learned, show
from secagg_spec.errors import InconsistentSets
from secagg_spec.privacy import basecagg as model
from secagg_spec.privacy import lightsecagg, wording
from secagg_spec.privacy.basecagg import Buffer, Case
from secagg_spec.privacy.lightsecagg import Users
from secagg_spec.protocols.basecagg.round import PRESETS, Parameters
from secagg_spec.terminal import working

_EXHAUSTIVE = 2000
_AGES = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this protocol."""
    parser.add_argument("--preset", choices=list(PRESETS), default="tiny", help="the parameters (tiny)")
    parser.add_argument(
        "--weights",
        metavar="A,B,…",
        help="the weights of the K entries of each buffer, by user in ascending order; weights that users refuse are "
        "allowed here, to see their effect",
    )
    parser.add_argument(
        "--points", metavar="A,B,…", help="the users' points instead of 1,2,…; 0 is allowed here, to see its effect"
    )
    parser.add_argument("--coalition", metavar="USERS", help="decide one coalition only: 0,3; or '' for no user")
    add_all(parser)
    parser.set_defaults(run=main)


@dataclass(frozen=True, eq=False)
class _Plan:
    """The cases to decide, and whether they are all cases; `refused` says why users refuse the buffers, if they do.

    `few` says whether the users are few enough to decide all their sets, `given` whether weights were given.
    """

    parameters: Parameters
    code: MaskCode
    coalitions: tuple[Users, ...]
    buffers: tuple[Buffer, ...]
    few: bool
    every_coalition: bool
    given: bool
    refused: str | None

    @property
    def everything(self) -> bool:
        return self.few and self.every_coalition


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: no decided coalition of up to T users learns more than it may; else 1.

    A weighted sum that equals the update of one honest user is more than they may learn.
    """
    plan = _plan(options)
    users = model.Unchecked if plan.refused else model.Column
    outside = None if plan.few else 1
    with working(DECIDING):
        cases = tuple(model.audit(plan.parameters, plan.code, plan.coalitions, plan.buffers, users, outside))
    return show(_report(options.preset, plan, cases), options.all)


def _report(preset: str, plan: _Plan, cases: Sequence[Case]) -> Report:
    return Report(
        plan.parameters.T,
        plan.everything,
        "the weighted sum",
        list(_parameters(preset, plan)),
        list(_found(plan, cases)),
        [*_alarms(plan), *_conclusions(plan, cases)],
        list(_scope(plan)),
        "what the server and these users learn beyond the weighted sum over the buffer and their own data",
    )


# -------------------------------------------------------------------------------------------------------- plan


def _plan(options: argparse.Namespace) -> _Plan:
    parameters = PRESETS[options.preset]
    code = parameters.code
    if options.points is not None:
        points = wording.numbers("--points", options.points)
        code = lightsecagg.UncheckedCode(parameters.field, parameters.N, parameters.U, parameters.T, points)
    few = 2**parameters.N * comb(parameters.N, parameters.K) <= _EXHAUSTIVE
    if options.coalition is not None:
        chosen = validate.users("--coalition", wording.numbers("--coalition", options.coalition), parameters.N)
        coalitions: tuple[Users, ...] = (tuple(sorted(chosen)),)
    elif few:
        coalitions = tuple(model.every_coalition(parameters, parameters.N))
    else:
        coalitions = _first_coalitions(parameters, code)
    buffers = _buffers(parameters, options.weights, few)
    every_coalition, given = options.coalition is None, options.weights is not None
    return _Plan(parameters, code, coalitions, buffers, few, every_coalition, given, _refusal(parameters, buffers[0]))


def _first_coalitions(parameters: Parameters, code: MaskCode) -> tuple[Users, ...]:
    """Return each user whose share is in clear, the first T users, and the first T + 1."""
    alone = [(user,) for user in lightsecagg.open_shares(code)]
    return tuple(dict.fromkeys([*alone, *(tuple(range(size)) for size in (parameters.T, parameters.T + 1))]))


def _buffers(parameters: Parameters, weights: str | None, few: bool) -> tuple[Buffer, ...]:
    """Return a buffer for every set of users, or for the first and the last K users."""
    everyone = tuple(range(parameters.N))
    sets = model.every_user_set(parameters) if few else (everyone[: parameters.K], everyone[-parameters.K :])
    distinct = tuple(dict.fromkeys(sets))
    if weights is None:
        return tuple(model.varied(parameters, users) for users in distinct)
    chosen = wording.numbers("--weights", weights)
    return tuple(model.weighed(parameters, users, chosen) for users in distinct)


def _refusal(parameters: Parameters, buffer: Buffer) -> str | None:
    """Return why users refuse a buffer; None when they answer it."""
    try:
        model.combining(parameters, buffer)
    except InconsistentSets as error:
        return str(error)
    return None


# -------------------------------------------------------------------------------------------------------- text


def _parameters(preset: str, plan: _Plan) -> Iterator[str]:
    p = plan.parameters
    numbers = ", ".join(f"{name} = {getattr(p, name)}" for name in ("N", "U", "T", "D", "K", "q", "d"))
    yield f"BASecAgg, preset {preset}: {numbers}"
    yield f"points: {wording.runs([int(point) for point in plan.code.points])}"


def _alarms(plan: _Plan) -> Iterator[str]:
    """Say whether users refuse the buffers, and whose share is in clear."""
    p = plan.parameters
    if plan.refused:
        yield f"REFUSED: no user answers such a buffer: {plan.refused}"
        yield "  here: what users would reveal if they answered"
    for user, coefficients in lightsecagg.open_shares(plan.code).items():
        yield wording.in_clear(user, int(plan.code.points[user]), coefficients.tolist(), p.share_length, p.d)


def _scope(plan: _Plan) -> Iterator[str]:
    """Say what was decided, and how."""
    p = plan.parameters
    yield f"weights that users accept: {_accepted(p)}"
    yield "decided exactly, on the matrices of the cores that run: mask_update, encode, combine_shares"
    if plan.every_coalition and plan.few:
        yield f"coalitions: all {len(plan.coalitions)}"
    else:
        yield f"coalitions: {'; '.join(map(wording.users, plan.coalitions))} (others are NOT decided here)"
    weights = f"with the weights {_joined(plan.buffers[0].weights)}"
    if plan.few:
        yield f"buffers: all {len(plan.buffers)} sets of K = {p.K} users, {weights}"
    else:
        sets = "; ".join(wording.users(buffer.users) for buffer in plan.buffers)
        yield f"buffers: {sets} (others are NOT decided here), {weights}"
    yield _for_each(plan)
    kinds = lightsecagg.columns(p)
    more = "" if len(kinds) == 1 else " (two kinds: one ends in padding)"
    yield f"columns of the code: {'; '.join(wording.elements(kind) for kind in kinds)}{more}"


def _accepted(p: Parameters) -> str:
    """Say which weights users accept, by staleness."""
    ages = range(min(p.tau_max + 1, _AGES))
    listed = ", ".join(f"{_either(p, age)} at {age}" for age in ages)
    if p.tau_max >= _AGES:
        listed += f", … {_either(p, p.tau_max)} at tau_max = {p.tau_max}"
    return f"{listed}, by staleness"


def _either(p: Parameters, age: int) -> str:
    return " or ".join(map(str, admissible_weights(p.staleness, p.c_g, age)))


def _joined(weights: Sequence[int]) -> str:
    return ", ".join(map(str, weights))


def _for_each(plan: _Plan) -> str:
    if plan.few:
        return "in each case, any other updates may have come, and any users may answer"
    return "in each case, any users may answer; one other update stands for all others that came"


def _found(plan: _Plan, cases: Sequence[Case]) -> Iterator[Found]:
    for coalition, some in groupby(cases, key=lambda case: case.coalition):
        group = tuple(some)
        worst, alone = _worst(group), [case for case in group if case.handed_over is not None]
        if not worst.verdict.private:
            more = learned(_functionals(worst))
        elif alone and len(coalition) <= plan.parameters.T:
            more = f"{_single(alone[0])}: the weighted sum is just that"
        else:
            more = ""
        yield Found(coalition, _beyond(plan, worst), more)


def _worst(cases: Sequence[Case]) -> Case:
    """Return the case that reveals most; among equals the one with the most in the buffer, or one update."""
    return max(cases, key=lambda case: (case.verdict.dimension, case.excess, case.handed_over is not None))


def _beyond(plan: _Plan, case: Case) -> str:
    if case.verdict.private:
        if case.handed_over is not None:
            return f"nothing; but the weighted sum over {wording.users(case.buffer.users)} is {_single(case)}"
        everyone = len(case.coalition) == plan.parameters.N
        return "nothing (all updates are its own)" if everyone else "nothing"
    count, n = case.verdict.dimension, case.besides
    added = f" and {n} other honest update{'s' if n > 1 else ''} came" if n else ""
    what = wording.first(_functionals(case))
    return f"{wording.dimensions(count)} a column when {wording.users(case.buffer.users)} are buffered{added}: {what}"


def _single(case: Case) -> str:
    return f"the update of user {case.handed_over}"


def _functionals(case: Case) -> list[str]:
    """Return what is learned. Stamps are left out, since each user has one update here."""
    return [re.sub(r"x\(\d+\)_", "x_", text) for text in case.verdict.functionals]


def _conclusions(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    T, scope = plan.parameters.T, "" if plan.everything else ", among the cases decided here"
    small, large = ([case for case in cases if (len(case.coalition) <= T) == few] for few in (True, False))
    yield from _one_update(plan, small, "HANDED OVER: the weighted sum is")
    yield from _one_update(plan, large, "the weighted sum can be one honest update:")
    if all(case.verdict.withheld == 1 for case in cases):
        yield "the weighted sum itself is learned in every case"
    yield from _other_weights(plan)
    more = [case for case in cases if not case.verdict.private]
    if more:
        fewest = len(more[0].coalition)
        smallest = _worst([case for case in more if case.coalition == more[0].coalition])
        who = f"{wording.users(smallest.coalition)} ({wording.size(T, fewest)})"
        yield f"smallest coalition that learns more{scope}: {who}"
        yield f"  when {wording.users(smallest.buffer.users)} are buffered, {wording.elements(smallest.elements)}:"
        yield from wording.listed(_functionals(smallest))
    else:
        yield f"no coalition learns more{scope}"
    yield from _tightness(plan, [case for case in cases if len(case.coalition) == T + 1])


def _one_update(plan: _Plan, cases: Sequence[Case], words: str) -> Iterator[str]:
    """Say how few colluders make the weighted sum one honest update."""
    alone = [case for case in cases if case.handed_over is not None]
    if alone:
        case = min(alone, key=lambda case: len(case.coalition))
        size = f" ({wording.size(plan.parameters.T, len(case.coalition))})" if case.coalition else ""
        who = f"for {wording.users(case.coalition)}{size}"
        yield f"{words} {_single(case)}, {who}, when {wording.users(case.buffer.users)} are buffered"


def _other_weights(plan: _Plan) -> Iterator[str]:
    """Say why one choice of weights stands for all, and how many buffers were checked for it."""
    if plan.refused:
        return
    every = plan.everything and not plan.given
    buffers = list(model.every_buffer(plan.parameters)) if every else list(plan.buffers)
    scaled = sum(model.scales(plan.parameters, buffer) for buffer in buffers)
    what = "buffers, all that users accept" if every else "buffers, those decided here"
    scope = f"answers are shares times weights in {scaled} of {len(buffers)} {what}"
    if scaled == len(buffers):
        yield f"other weights change no dimension: {scope}"
    else:
        yield f"OTHER WEIGHTS ARE NOT DECIDED: {scope}"


def _tightness(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Compare T + 1 users with the figure min(U - T, 1) * (honest contributors - 1), column by column."""
    if cases:
        yield "tightness: T + 1 users, against min(U - T, 1) * (honest contributors - 1) dimensions a column:"
    for elements in dict.fromkeys(case.elements for case in cases):
        group = [case for case in cases if case.elements == elements]
        right = [case for case in group if case.excess == model.expected_excess(plan.parameters, case)]
        fewer = [case for case in group if case.excess < model.expected_excess(plan.parameters, case)]
        text = f"exactly that in {len(right)} of {len(group)} cases"
        for count, word in ((len(fewer), "less"), (len(group) - len(right) - len(fewer), "more")):
            text += f", {word} in {count}" if count else ""
        yield f"  {wording.elements(elements)}: {text}"
    besides = [case for case in cases if case.besides]
    if besides:
        added = sum(case.verdict.dimension - case.excess == case.besides for case in besides)
        yield f"  each other honest update adds one more: in {added} of {len(besides)} cases"
