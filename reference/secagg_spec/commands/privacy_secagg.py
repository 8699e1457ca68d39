"""``secagg-spec privacy secagg``: what the server and a coalition learn beyond the sums over components."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from secagg_spec.arithmetic import validate
from secagg_spec.commands.privacy_report import DECIDING, Found, Report, add_all, learned, show
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import secagg as model
from secagg_spec.privacy import wording
from secagg_spec.privacy.secagg import Case, Users
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import PRESETS, Parameters
from secagg_spec.terminal import working

_EXHAUSTIVE = 5
Dropout = tuple[Users, Users]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this protocol."""
    parser.add_argument("--preset", choices=list(PRESETS), default="tiny", help="the parameters (tiny)")
    parser.add_argument("--neighbours", metavar="k", help="the degree k of the graph (that of the preset)")
    parser.add_argument("--threshold", metavar="t", help="the threshold t (that of the preset)")
    parser.add_argument("--order", metavar="USERS", help="all users in the order of the circle: 0,3,1,… (0,1,2,…)")
    parser.add_argument("--coalition", metavar="USERS", help="decide one coalition only: 0,3; or '' for no user")
    parser.add_argument(
        "--drop", metavar="USERS", help="decide one dropout only: users who drop out before masked_input; or ''"
    )
    add_all(parser)
    parser.set_defaults(run=main)


@dataclass(frozen=True, eq=False)
class _Plan:
    """The cases to decide, and whether they are all cases. A dropout is the pair U_2, U_3."""

    parameters: Parameters
    graph: Graph
    coalitions: tuple[Users, ...]
    dropouts: tuple[Dropout, ...]
    every_coalition: bool
    every_dropout: bool

    @property
    def everything(self) -> bool:
        return self.every_coalition and self.every_dropout


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: no coalition of up to T users decided here learns too much or one input; else 1."""
    plan = _plan(options)
    with working(DECIDING):
        cases = tuple(model.audit(plan.parameters, plan.graph, plan.coalitions, plan.dropouts))
    return show(_report(options.preset, plan, cases), options.all)


def _report(preset: str, plan: _Plan, cases: Sequence[Case]) -> Report:
    return Report(
        plan.parameters.T,
        plan.everything,
        _sums(plan, cases),
        list(_heading(preset, plan)),
        list(_found(plan, cases)),
        list(_conclusions(plan, cases)),
        list(_scope(plan)),
        f"what the server and these users learn beyond {_allowed(plan)}",
        exposed=_exposed([case for case in cases if len(case.coalition) <= plan.parameters.T]),
    )


# -------------------------------------------------------------------------------------------------------- plan


def _plan(options: argparse.Namespace) -> _Plan:
    parameters = _parameters(options)
    graph = parameters.graph(_order(options.order, parameters))
    few = parameters.N <= _EXHAUSTIVE
    coalitions = tuple(model.every_coalition(parameters.N)) if few else _some_coalitions(parameters, graph)
    if options.coalition is not None:
        coalitions = (_set("--coalition", options.coalition, parameters),)
    dropouts = tuple(model.every_dropout(parameters, graph)) if few else _some_dropouts(parameters, graph)
    if options.drop is not None:
        dropouts = (_dropout(_set("--drop", options.drop, parameters), parameters, graph),)
    if not dropouts:
        raise ParameterError("--threshold", parameters.t, "a threshold with which a round can end")
    every_coalition, every_dropout = few and options.coalition is None, few and options.drop is None
    return _Plan(parameters, graph, coalitions, dropouts, every_coalition, every_dropout)


def _parameters(options: argparse.Namespace) -> Parameters:
    parameters = PRESETS[options.preset]
    degree = parameters.k if options.neighbours is None else _number("--neighbours", options.neighbours)
    threshold = parameters.t if options.threshold is None else _number("--threshold", options.threshold)
    return replace(parameters, k=degree, t=threshold)


def _number(option: str, text: str) -> int:
    found = wording.numbers(option, text)
    if len(found) != 1:
        raise ParameterError(option, text, "one whole number")
    return found[0]


def _order(text: str | None, parameters: Parameters) -> Users | None:
    if text is None:
        return None
    order = wording.numbers("--order", text)
    if len(order) != parameters.N:
        raise ParameterError("--order", list(order), f"all N = {parameters.N} users, each of them once")
    return order


def _set(option: str, text: str, parameters: Parameters) -> Users:
    return tuple(sorted(validate.users(option, wording.numbers(option, text), parameters.N)))


def _dropout(dropped: Users, parameters: Parameters, graph: Graph) -> Dropout:
    everyone = tuple(range(parameters.N))
    survivors = tuple(user for user in everyone if user not in dropped)
    if not model.goes_on(parameters, graph, everyone, survivors):
        least = f"max(t, T + 2) = {parameters.enough} survivors and t = {parameters.t} of each user's holders"
        raise ParameterError("--drop", list(dropped), f"a dropout that leaves enough users: a round needs {least}")
    return everyone, survivors


def _some_coalitions(parameters: Parameters, graph: Graph) -> tuple[Users, ...]:
    """Return the first T users, the first T + 1, and t neighbours of the first user on the circle."""
    surrounding = sorted(graph.neighbours(graph.order[0]))[: parameters.t]
    first = (tuple(range(count)) for count in (parameters.T, parameters.T + 1))
    return tuple(dict.fromkeys([*first, tuple(surrounding)]))


def _some_dropouts(parameters: Parameters, graph: Graph) -> tuple[Dropout, ...]:
    """Return two dropouts: nobody, and D users spread over the circle; only those that leave enough users."""
    N, D, everyone = parameters.N, parameters.D, tuple(range(parameters.N))
    spread = {graph.order[N - 1 - number * N // max(D, 1)] for number in range(D)}
    survivors = tuple(user for user in everyone if user not in spread)
    both = ((everyone, everyone), (everyone, survivors))
    return tuple(dict.fromkeys(pair for pair in both if model.goes_on(parameters, graph, *pair)))


# -------------------------------------------------------------------------------------------------------- text


def _heading(preset: str, plan: _Plan) -> Iterator[str]:
    p = plan.parameters
    numbers = ", ".join(f"{name} = {getattr(p, name)}" for name in ("R", "N", "D", "T", "t", "k", "d"))
    yield f"SecAgg, preset {preset}: {numbers}"
    if p.complete:
        yield "graph: complete, so the order changes nothing"
    else:
        yield f"graph: sparse, order {wording.runs(plan.graph.order, most=20)}"


def _scope(plan: _Plan) -> Iterator[str]:
    """Say what was decided, and how."""
    yield "decided exactly, on the cores that run: mask_update, unmask; one element stands for all"
    if plan.every_coalition:
        yield f"coalitions: all {len(plan.coalitions)}"
    else:
        yield f"coalitions: {'; '.join(map(wording.users, plan.coalitions))} (others are NOT decided here)"
    if plan.every_dropout:
        yield f"dropouts: every pair of U_2 and U_3 with which a round goes on, {len(plan.dropouts)} in all"
    else:
        listed = "; ".join(_dropped(sharers, survivors) for sharers, survivors in plan.dropouts)
        yield f"dropouts: {listed} (others are NOT decided here)"
    yield "in each case, any masked inputs may be late, and any users may answer"


def _dropped(sharers: Users, survivors: Users) -> str:
    dropped = [user for user in sharers if user not in survivors]
    return f"{wording.users(dropped)} before masked_input" if dropped else "nobody"


def _sums(plan: _Plan, cases: Sequence[Case]) -> str:
    """Say what up to T users may learn: one sum, or several where the honest survivors fall into components."""
    if all(len(case.parts) < 2 for case in cases if len(case.coalition) <= plan.parameters.T):
        return "the sum"
    return "the sums over components of the honest survivors"


def _exposed(cases: Sequence[Case]) -> str:
    """Say how a permitted sum is one honest input, in the smallest case; nothing where none is (SAG-02, section 9)."""
    if not (alone := _alone(cases)):
        return ""
    user, case = alone
    why = f"it is the only honest user of its component when {wording.users(case.survivors)} survive"
    return f"{Found(case.coalition, '').who} the input of user {user}, for {why}"


def _alone(cases: Sequence[Case]) -> tuple[int, Case] | None:
    """Return the smallest case in which a permitted sum is one honest input, with its user."""
    alone = [case for case in cases if case.verdict.private and any(len(part) == 1 for part in case.parts)]
    if not alone:
        return None
    case = min(alone, key=lambda case: (len(case.coalition), len(case.survivors)))
    return next(part for part in case.parts if len(part) == 1)[0], case


def _allowed(plan: _Plan) -> str:
    sums = "sum over the survivors" if plan.parameters.complete else "sums over the components of the honest survivors"
    return f"the {sums} and their own data"


def _found(plan: _Plan, cases: Sequence[Case]) -> Iterator[Found]:
    for coalition, group in groupby(cases, key=lambda case: case.coalition):
        worst = _worst(tuple(group))
        more = "" if worst.verdict.private else learned(worst.verdict.functionals)
        yield Found(coalition, _beyond(plan, worst), more)


def _worst(cases: Sequence[Case]) -> Case:
    """Return the case that reveals most; among equals the most components, then the most survivors."""
    return max(cases, key=lambda case: (case.verdict.index, len(case.parts), len(case.survivors)))


def _beyond(plan: _Plan, case: Case) -> str:
    if not case.verdict.private:
        late = case.delayed
        added = f" and {late} honest input{'s' if late > 1 else ''} came late" if late else ""
        what = wording.first(case.verdict.functionals)
        return f"{_amount(case)} when {wording.users(case.survivors)} survive{added}: {what}"
    if len(case.coalition) == plan.parameters.N:
        return "nothing (all inputs are its own)"
    if len(case.parts) > 1:
        return f"nothing; when {wording.users(case.survivors)} survive, {_parts(case)}"
    return "nothing"


def _amount(case: Case) -> str:
    count = case.verdict.dimension
    free = case.verdict.index == case.verdict.modulus**count
    return f"{wording.dimensions(count)} an element" if free else f"{case.verdict.bits:g} bits an element"


def _parts(case: Case) -> str:
    """Say which sums are learned instead of one."""
    found = " | ".join(wording.runs(part) for part in case.parts)
    return f"{len(case.parts)} sums: {wording.clipped(found, wording.LINE)}"


def _conclusions(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    T, scope = plan.parameters.T, "" if plan.everything else ", among the cases decided here"
    small = [case for case in cases if len(case.coalition) <= T]
    yield from _components(plan, small)
    yield from _single(cases)
    wrong = [case for case in cases if not case.exact]
    if not wrong and all(case.verdict.withheld == 1 for case in cases):
        yield "the permitted sums are learned in every case, and unmask returns the sum over the survivors"
    more = [case for case in cases if not case.verdict.private]
    if more:
        fewest = min(len(case.coalition) for case in more)
        smallest = _worst([case for case in more if len(case.coalition) == fewest])
        yield f"smallest coalition that learns more{scope}: {wording.users(smallest.coalition)} ({_size(plan, fewest)})"
        yield f"  when {wording.users(smallest.survivors)} survive, for each element:"
        yield from wording.listed(smallest.verdict.functionals)
    else:
        yield f"no coalition learns more{scope}"
    yield from _tightness(plan, cases)


def _components(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Say whether the sum splits into components for coalitions of up to T users."""
    if plan.parameters.complete or not cases:
        return
    apart = [case for case in cases if len(case.parts) > 1]
    if not apart:
        yield f"the honest survivors are connected in all {len(cases)} of these cases: only their sum is learned"
        return
    case = min(apart, key=lambda case: (len(case.coalition), -len(case.parts)))
    yield f"NOT CONNECTED in {len(apart)} of these {len(cases)} cases: more is learned than the sum over the survivors"
    yield f"  {wording.users(case.coalition)}, when {wording.users(case.survivors)} survive: {_parts(case)}"


def _single(cases: Sequence[Case]) -> Iterator[str]:
    """Say how many users are needed before a permitted sum is one honest input."""
    if alone := _alone(cases):
        user, case = alone
        who, when = wording.users(case.coalition), wording.users(case.survivors)
        yield f"a permitted sum can be one honest input: of user {user}, for {who}, when {when} survive"


def _size(plan: _Plan, count: int) -> str:
    of_t = f", t = {plan.parameters.t}" if count >= plan.parameters.t else ""
    return wording.size(plan.parameters.T, count) + of_t


def _tightness(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Compare with section 9: an honest user with t colluding neighbours counts as dropped."""
    t = plan.parameters.t
    right = [case for case in cases if case.verdict.dimension == model.expected_excess(plan.graph, t, case)]
    yield "tightness: more is learned exactly about honest users with t colluding neighbours, who count as dropped:"
    yield f"  true in {len(right)} of {len(cases)} cases"
