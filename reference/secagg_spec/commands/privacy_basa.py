"""``secagg-spec privacy basa``: what the server and a coalition learn beyond the sum over an epoch."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType

from secagg_spec.commands.privacy_report import DECIDING, Found, Report, add_all, learned, show
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import basa as model
from secagg_spec.privacy import wording
from secagg_spec.privacy.basa import GONE, LATE, Case, Epoch, Situation, Timeouts, Users
from secagg_spec.protocols.basa.cores import PRESETS, Parameters
from secagg_spec.terminal import working

_RULES: Mapping[str, Timeouts] = MappingProxyType({**model.RULES, **model.WEAKER})
_SAYS = MappingProxyType(
    {
        "settle": "a position whose user times out with a key is skipped; self masks; one key per position is released",
        "void": "a user that times out with a key ends the epoch",
        "paper": "a position whose user times out goes to the next user; no self masks",
        "again": "WEAKER than settle: a position whose user times out goes to the next user",
        "bare": "WEAKER than settle: no self masks",
        "both-skipped": "WEAKER than settle: for skipped positions the self key is released too",
        "both-accepted": "WEAKER than settle: for accepted positions the pair key is released too",
    }
)
_WHEN: Mapping[str, str | None] = MappingProxyType({"keyed": GONE, "before": None})
_EXHAUSTIVE = 4
_FEW = 6
Arrival = tuple[Situation, Users]
"""What happens, and the users that got keys."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this protocol."""
    rules = f"what a timeout leads to: {', '.join(_RULES)} (that of the preset)"
    parser.add_argument("--preset", choices=list(PRESETS), default="tiny", help="the parameters (tiny)")
    parser.add_argument("--rule", choices=list(_RULES), metavar="RULE", help=rules)
    parser.add_argument("--collude", metavar="USERS", help="decide one coalition only: 1,3; or '' for the server alone")
    parser.add_argument(
        "--timeout",
        metavar="USER:WHEN",
        help="users that time out, with a key or before they get one: 2:keyed,4:before; or '' for nobody",
    )
    parser.add_argument("--late", metavar="USERS", help="users whose upload comes after the timeout: 3; or ''")
    add_all(parser)
    parser.set_defaults(run=main)


@dataclass(frozen=True, eq=False)
class _Plan:
    """The cases to decide, and whether they are all cases."""

    parameters: Parameters
    rule: Timeouts
    positions: int
    arrivals: tuple[Arrival, ...]
    coalition: Users | None
    every_arrival: bool
    every_coalition: bool

    @property
    def everything(self) -> bool:
        return self.every_arrival and self.every_coalition

    @property
    def may_be_known(self) -> str:
        return "the sum over its uploads" if self.rule.ends else "the sum over the accepted updates"


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: no decided coalition of up to T users learns more than it may; else 1."""
    plan = _plan(options)
    with working(DECIDING):
        cases, before = tuple(_cases(plan, plan.arrivals)), tuple(_cases(plan, _open(plan)))
    return show(_report(options.preset, plan, cases, before), options.all)


def _report(preset: str, plan: _Plan, cases: Sequence[Case], before: Sequence[Case]) -> Report:
    ends = any(case.situation.closed or plan.rule.ends for case in cases)
    return Report(
        plan.parameters.T,
        plan.everything,
        plan.may_be_known if ends else "its own data: no epoch is closed",
        list(_parameters(preset, plan)),
        list(_found(plan, cases, before)),
        list(_conclusions(plan, cases, before)),
        list(_scope(plan)),
        f"what the server and these users learn of an epoch beyond {plan.may_be_known} and their own",
    )


# -------------------------------------------------------------------------------------------------------- plan


def _plan(options: argparse.Namespace) -> _Plan:
    parameters = PRESETS[options.preset]
    rule = _RULES[options.rule or parameters.timeouts]
    positions = parameters.positions if rule.releases and not rule.again else parameters.K
    given = options.timeout is not None or options.late is not None
    few = positions <= _EXHAUSTIVE
    if given:
        arrivals: tuple[Arrival, ...] = (_arrival(parameters, rule, positions, _fates(options)),)
    elif few:
        arrivals = tuple((found, tuple(found.users)) for found in _every(parameters, rule, positions))
    else:
        chosen: list[dict[int, str | None]] = [{}, {0: GONE}, {parameters.K - 1: LATE}]
        arrivals = tuple(_arrival(parameters, rule, positions, fates) for fates in chosen)
    coalition = None if options.collude is None else _coalition(options.collude, arrivals)
    if coalition is not None:
        arrivals = tuple(found for found in arrivals if set(coalition) <= set(found[1]))
    most = max(len(people) for _, people in arrivals)
    every_coalition = coalition is None and most <= (2 * _EXHAUSTIVE if few else _FEW)
    return _Plan(parameters, rule, positions, arrivals, coalition, few and not given, every_coalition)


def _every(parameters: Parameters, rule: Timeouts, positions: int) -> Iterator[Situation]:
    if rule.again:
        return model.every_repeat(positions)
    if rule.ends:
        return model.every_stop(positions)
    return model.every_settled(parameters.K, positions, parameters.T + 2)


def _arrival(parameters: Parameters, rule: Timeouts, positions: int, fates: Mapping[int, str | None]) -> Arrival:
    situation, people = model.arrivals(rule, parameters.K, positions, parameters.T + 2, fates)
    never = [user for user in fates if user > people[-1]]
    if never:
        allowed = f"users that arrive before the epoch ends: 0 to {people[-1]}"
        raise ParameterError("--timeout and --late", never[0], allowed)
    return situation, people


def _fates(options: argparse.Namespace) -> dict[int, str | None]:
    """Return the fates of the users that --timeout and --late name."""
    fates: dict[int, str | None] = {}
    for part in (options.timeout or "").split(",") if options.timeout else []:
        user, _, when = part.strip().partition(":")
        if when not in _WHEN or not user.strip():
            raise ParameterError("--timeout", part, "a user with :keyed or :before, as in 2:keyed,4:before")
        _name(fates, "--timeout", wording.numbers("--timeout", user), _WHEN[when])
    for user in wording.numbers("--late", options.late or ""):
        _name(fates, "--late", (user,), LATE)
    return fates


def _name(fates: dict[int, str | None], option: str, users: Users, fate: str | None) -> None:
    if len(users) != 1 or users[0] in fates:
        raise ParameterError(option, list(users), "users that appear once, in --timeout or in --late")
    fates[users[0]] = fate


def _coalition(text: str, arrivals: Sequence[Arrival]) -> Users:
    members = wording.numbers("--collude", text)
    known = {user for _, people in arrivals for user in people}
    if len(set(members)) < len(members) or not set(members) <= known:
        allowed = f"users that get a key, each named once: {wording.runs(sorted(known))}"
        raise ParameterError("--collude", list(members), allowed)
    return tuple(sorted(members))


def _open(plan: _Plan) -> list[Arrival]:
    """Return the views before the end: all but the release, or, without release, each prefix without timeouts."""
    closed = [(found, people) for found, people in plan.arrivals if found.closed]
    if plan.rule.releases:
        return [(replace(found, closed=False), people) for found, people in closed]
    whole = [(found, people) for found, people in closed if len(found.accepted) == len(found.users)]
    return [(found.until(user), people) for found, people in whole for user in found.users]


def _cases(plan: _Plan, arrivals: Sequence[Arrival]) -> Iterator[Case]:
    for situation, people in arrivals:
        epoch = Epoch(plan.parameters.ring, plan.rule, situation, people=people)
        for coalition in _coalitions(plan, people):
            yield Case(epoch, coalition, epoch.decide(coalition))


def _coalitions(plan: _Plan, people: Users) -> Iterator[Users]:
    if plan.coalition is not None:
        yield plan.coalition
    elif plan.every_coalition:
        yield from model.every_coalition(people)
    else:
        T = plan.parameters.T
        yield from dict.fromkeys([(), people[:T], people[-T:], people[: T + 1], people[-T - 1 :]])


# -------------------------------------------------------------------------------------------------------- text


def _parameters(preset: str, plan: _Plan) -> Iterator[str]:
    p = plan.parameters
    numbers = ", ".join(f"{name} = {getattr(p, name)}" for name in ("R", "T", "K"))
    yield f"BASA, preset {preset}: {numbers}, {plan.positions} positions, d = {p.d}"
    yield f"rule {plan.rule.name}: {_SAYS[plan.rule.name]}"


def _scope(plan: _Plan) -> Iterator[str]:
    """Say what was decided, and how."""
    yield "decided exactly, on the cores that run: mask_update (its add_masks), recover; one element stands for all"
    yield "users are numbered as they arrive; users without a key change nothing"
    if plan.every_arrival:
        more = " (at most one timeout for each position)" if plan.rule.again else ""
        yield f"ends of an epoch: all {len(plan.arrivals)}{more}"
    else:
        yield f"ends of an epoch: {len(plan.arrivals)} (others are NOT decided here)"
        for situation, people in plan.arrivals:
            yield f"  {_happened(situation, people)}"
    if plan.every_coalition:
        yield "coalitions: all, of users that get a key"
    elif plan.coalition is not None:
        yield f"coalitions: {wording.users(plan.coalition)} (others are NOT decided here)"
    else:
        yield "coalitions: none, the first and the last T and T + 1 users (others are NOT decided here)"


def _happened(situation: Situation, people: Users) -> str:
    """Say what happened at each position."""
    parts = []
    for position, group in groupby(situation.users, key=situation.at):
        words = ", then ".join(f"user {people[user]} {situation.holders[user].fate}" for user in group)
        parts.append(f"{position}: {words}")
    end = "closed" if situation.closed else "not closed"
    return f"{'; '.join(parts)}; {end}"


def _found(plan: _Plan, cases: Sequence[Case], before: Sequence[Case]) -> Iterator[Found]:
    """Yield what each coalition learns at the end, or before it where that is more than it may learn."""
    for coalition in sorted({case.coalition for case in cases}, key=lambda users: (len(users), users)):
        ended, open_ = ([case for case in some if case.coalition == coalition] for some in (cases, before))
        worst = _worst(ended)
        if worst.verdict.private and any(not case.verdict.private for case in open_):
            worst = _worst(open_)
        yield Found(coalition, _beyond(worst), "" if worst.verdict.private else learned(_functionals(worst)))


def _worst(cases: Sequence[Case]) -> Case:
    """Return the case that reveals most; among equals the one with the fewest timeouts."""
    return max(cases, key=lambda case: (case.verdict.index, -len(case.situation.users)))


def _beyond(case: Case) -> str:
    if case.verdict.private:
        return "nothing"
    what, when = wording.first(_functionals(case)), "" if case.situation.closed else ", before the end,"
    return f"{wording.dimensions(case.verdict.dimension)} an element{when} when {_timeouts(case)}: {what}"


def _functionals(case: Case) -> list[str]:
    return [text.replace("[0]", "") for text in case.verdict.functionals]


def _timeouts(case: Case) -> str:
    """Say who timed out."""
    situation, people = case.situation, case.epoch.people
    words = []
    for fate, text in ((LATE, "came late"), (GONE, "left with a key")):
        found = [people[user] for user in situation.users if situation.holders[user].fate == fate]
        words += [f"{wording.users(found)} {text}"] if found else []
    return " and ".join(words) if words else "nobody timed out"


def _conclusions(plan: _Plan, cases: Sequence[Case], before: Sequence[Case]) -> Iterator[str]:
    scope = "" if plan.everything else ", among the cases decided here"
    yield from _counts(plan, cases, before)
    yield from _single(plan, cases)
    more = [case for case in cases if not case.verdict.private]
    if more:
        fewest = min(len(case.coalition) for case in more)
        yield from _smallest(plan, _worst([case for case in more if len(case.coalition) == fewest]), scope)
    else:
        yield f"no coalition of any size learns more{scope}"


def _counts(plan: _Plan, cases: Sequence[Case], before: Sequence[Case]) -> Iterator[str]:
    closed = [case for case in cases if case.situation.closed]
    private, open_ = (sum(case.verdict.private for case in group) for group in (closed, before))
    if closed:
        yield f"closed epochs: the sum and no more in {private} of {len(closed)} cases"
    if before:
        yield f"before the end: no more than is permitted at that time in {open_} of {len(before)} cases"
    rest = [case for case in cases if not case.situation.closed]
    if rest:
        some = sum(case.verdict.leak > 1 for case in rest)
        nothing = sum(case.verdict.leak == 1 for case in rest)
        yield f"epochs that end without a sum: nothing is learned in {nothing} of {len(rest)} cases"
        if some and plan.rule.ends:
            yield f"  in {some} the sum over all their uploads is learned: the last one came late, or its key was known"
    epochs = {id(case.epoch): case.epoch for case in closed}.values()
    if epochs and all(model.recovers(epoch) for epoch in epochs):
        yield f"the server gets the sum, and recover returns it, in every closed epoch ({len(epochs)})"


def _single(plan: _Plan, cases: Sequence[Case]) -> Iterator[str]:
    """Say how many users are needed before the sum is one honest update."""
    alone = [case for case in cases if len(case.contributors) == 1]
    if alone:
        case = min(alone, key=lambda case: len(case.coalition))
        user, who = case.epoch.people[case.contributors[0]], wording.users(case.coalition)
        size = wording.size(plan.parameters.T, len(case.coalition))
        yield f"the sum itself can be one honest update: of user {user}, for {who} ({size})"


def _smallest(plan: _Plan, case: Case, scope: str) -> Iterator[str]:
    """Show the smallest coalition that learns more, and how."""
    size = wording.size(plan.parameters.T, len(case.coalition))
    yield f"smallest coalition that learns more{scope}: {wording.users(case.coalition)} ({size})"
    yield f"  {_happened(case.situation, case.epoch.people)}"
    yield "  from the masked updates y, minus known masks, for each element:"
    yield from wording.listed([f"{text} = {text.replace('x_', 'y_')} - …" for text in _functionals(case)])
