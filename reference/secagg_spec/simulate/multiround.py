"""``secagg-spec simulate multiround``: a session of Multi-RoundSecAgg, batch by batch, and a server that lies."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lgamma, log
from textwrap import wrap
from typing import Any

import numpy as np

from secagg_spec.arithmetic import numerals, validate
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, Ring
from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding
from secagg_spec.errors import InconsistentSets, ParameterError
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round.round import BASES, BaseParameters, Parameters
from secagg_spec.protocols.multi_round.runs import Outcome, Turn, run_session
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Event, Network, Role
from secagg_spec.selection import batches, strategies
from secagg_spec.simulate.inputs import BOX_ELEMENTS, colluders, refuse_large, seed_bytes
from secagg_spec.simulate.narration import counted, shown, users_in_words
from secagg_spec.terminal import painted

DEFAULTS = {"users": "24"}
_PROTOCOLS = {base.name: kind for kind, base in BASES.items()}
_TITLES = {"secagg": "SecAgg", "lightsecagg": "LightSecAgg"}
_STRATEGIES = [name for name in strategies.STRATEGIES if name not in {"random", "weighted"}]
"""The strategies with batches: without batches a user has nothing to check (MRA-17)."""
_FINEST = Fraction(1, 2**53)
_LEAST = 3
"""The fewest users of a batch, and so of a round and of a session: c + 2, with one colluder."""
_NAMED = 12
"""The most absent users that are listed by name; beyond that, only their number is printed."""


def add_options(parser: Any) -> None:
    """Add the options that only this protocol has."""
    add = parser.add_argument
    add("--chosen", type=int, default=12, metavar="K", help="users of one round (12)")
    add("--batch", type=int, default=4, metavar="T", help="users of a batch (4)")
    add(
        "--colluders",
        type=int,
        metavar="c",
        help="users that may collude with the server (2, or 1 if a batch has 3 users)",
    )
    add("--rounds", type=int, default=6, metavar="J", help="rounds of the session (6)")
    add(
        "--strategy",
        choices=_STRATEGIES,
        default="fair",
        metavar="NAME",
        help=f"how users are chosen: {', '.join(_STRATEGIES)} (fair)",
    )
    add("--protocol", dest="base", choices=[*_PROTOCOLS], default="secagg", help="the protocol of a round (secagg)")
    add("--away", default="0.03", metavar="p", help="probability that a user is unavailable in a round (0.03)")
    add("--lost", default="0.03", metavar="p", help="probability that a chosen user drops out (0.03)")
    parser.set_defaults(users=24)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: all sums were right and users refused the lie; 1: no round had a sum."""
    p, seed = _parameters(options), seed_bytes(options.seed)
    chances = {name: _chance(name, getattr(options, name)) for name in ("away", "lost")}
    rounds = options.rounds
    turns = [_turn(p, SeededSource(seed, f"round {number}"), chances) for number in range(rounds)]
    source = SeededSource(seed, "session")
    outcomes = run_session(p, turns, strategy=options.strategy, source=source, session=bytes(16))
    print("\n".join(_heading(p, options.strategy)), end="\n\n")
    for number, (turn, outcome) in enumerate(zip(turns, outcomes, strict=True)):
        print("\n".join(_lines(p, number, turn, outcome)))
    print("\n" + "\n".join(_log(p, outcomes)))
    summed = [outcome for outcome in outcomes if outcome.aggregate is not None]
    if not summed:
        print("\n" + painted(f"None of {counted(rounds, 'round')} has a sum.", "bad"))
        return 1
    print("\n" + "\n".join(_lie(p, summed[-1].chosen, rounds, turns[-1], source)))
    right = (
        f"{len(summed)} of {counted(rounds, 'round')} {'has' if len(summed) == 1 else 'have'} a sum, and it is right"
    )
    print("\n" + painted(f"{right}: the plain sum of its users; all users refused the server that lied.", "good"))
    print("What the sums of a log reveal together: secagg-spec audit-participation LOG")
    return 0


# ------------------------------------------------------------------------------------------------- parameters


def _parameters(options: argparse.Namespace) -> Parameters:
    """Return the parameters; one batch is enough for a sum."""
    users = validate.integer("users", options.users, _LEAST, batches.MAX_USERS)
    chosen = validate.integer("chosen", options.chosen, _LEAST, users)
    selection = batches.Parameters(users, chosen, validate.integer("batch", options.batch, _LEAST, chosen))
    c = colluders(options.colluders, min(2, selection.T - 2), selection.T - 2)
    numbers = multi_round.Numbers(selection.N, selection.K, selection.T, c)
    d, K, D = validate.integer("length", options.length, 1), numbers.K, numbers.K - numbers.T
    rounds = validate.integer("rounds", options.rounds, 1, 1000)
    each = numbers.N * d + K * K * BOX_ELEMENTS
    fewer = "fewer --rounds or --chosen, "
    refuse_large("rounds * (users * length + chosen * chosen * shares)", rounds * each, fewer)
    base: BaseParameters
    if options.base == "secagg":
        base = secagg.Parameters(R=2**32, N=K, D=D, T=numbers.c, t=numbers.c + 2, k=K - 1, d=d)
    else:
        base = lightsecagg.Parameters(q=DEFAULT_PRIME, N=K, D=D, U=numbers.c + 1, T=numbers.c, d=d)
    strategies.STRATEGIES[options.strategy].check(selection)
    return Parameters(selection, base)


def _chance(name: str, text: str) -> float:
    """Parse a probability that draws of 53 bits can have."""
    value = numerals.number(name, text)
    if not 0 <= value < 1:
        raise ParameterError(name, text, "at least 0 and below 1")
    if value and not _FINEST <= value <= 1 - _FINEST:
        raise ParameterError(name, text, "0, or from 2^-53 to 1 - 2^-53: a draw has 53 bits")
    return float(value)


def _ring(p: Parameters) -> Ring:
    return p.round.ring if isinstance(p.round, secagg.Parameters) else p.round.field


def _turn(p: Parameters, source: SeededSource, chances: Mapping[str, float]) -> Turn:
    """Draw the inputs of a round, the available users, and the dropouts of each phase."""
    N, phases = p.selection.N, p.base.phases
    updates = draw_elements(source, _ring(p), (N, p.round.d))
    away, lost, when = (draw_rounding(source, N) for _ in range(3))
    available = np.flatnonzero(away >= chances["away"]).tolist()
    fates = {user: phases[int(when[user] * len(phases))] for user in np.flatnonzero(lost < chances["lost"]).tolist()}
    return Turn(updates, available, {name: [user for user in fates if fates[user] == name] for name in phases})


# ------------------------------------------------------------------------------------------------- printed text


def _heading(p: Parameters, strategy: str) -> list[str]:
    s, c = p.selection, p.numbers.c
    among = f"N = {s.N} users in {_count(s.batches)} of T = {s.T}, K = {s.K} of them in a round"
    return [
        f"Multi-RoundSecAgg: {among}, c = {c} may collude",
        f"strategy {strategy}; the family has {_family(s)} of {_count(s.per_round)}",
        f"rounds of {_TITLES[p.base.name]} among the chosen users; draws, inputs and dropouts from the seed",
    ]


def _count(number: int) -> str:
    return "1 batch" if number == 1 else f"{number} batches"


def _family(s: batches.Parameters) -> str:
    """Return the number of sets; if large, as a power of ten."""
    if s.batches <= 100:
        size = batches.family_size(s)
        return "1 set" if size == 1 else f"{size:,} sets"
    n, m = s.batches, s.per_round
    return f"about 10**{round((lgamma(n + 1) - lgamma(m + 1) - lgamma(n - m + 1)) / log(10))} sets"


def _lines(p: Parameters, number: int, turn: Turn, outcome: Outcome) -> list[str]:
    """Describe one round: the absent, the chosen, the dropouts, and the users in the sum."""
    away = sorted(set(range(p.selection.N)) - set(turn.available))
    missing = users_in_words(away) if len(away) <= _NAMED else f"{len(away)} users"
    lines = [f"round {number}: {f'not available: {missing}' if away else 'everybody is available'}"]
    if not outcome.chosen:
        return [*lines, f"  fewer than {_count(p.selection.per_round)} complete: no round"]
    lines.append(f"  chosen: {_batches(p, outcome.chosen)}")
    for phase, users in turn.dropouts.items():
        dropped = sorted(set(users) & set(outcome.chosen))
        lines += [f"  dropped out before {phase}: {users_in_words(dropped)}"] if dropped else []
    if outcome.aggregate is None:
        few = "  too few users are left: no sum"
        kept = f"{few}; {_batches(p, outcome.survivors)} had been announced and are in the log"
        return [*lines, kept if outcome.survivors else few]
    left = sorted(set(outcome.chosen) - set(outcome.survivors))
    lines += [f"  left out: {_batches(p, left)}"] if left else []
    _compare(p, turn, outcome)
    total = shown(outcome.aggregate, most=3)
    return [*lines, f"  in the sum: {_batches(p, outcome.survivors)}; {total} is the plain sum"]


def _batches(p: Parameters, users: Collection[int]) -> str:
    named = sorted({user // p.selection.T for user in users})
    return ("batch " if len(named) == 1 else "batches ") + ", ".join(map(str, named))


def _compare(p: Parameters, turn: Turn, outcome: Outcome) -> None:
    assert outcome.aggregate is not None
    plain = _ring(p).sum(turn.updates[list(outcome.survivors)])
    if not np.array_equal(plain, outcome.aggregate):
        raise AssertionError("the round did not give the plain sum")


def _log(p: Parameters, outcomes: Sequence[Outcome]) -> list[str]:
    """Say what all sums reveal together; a round that failed after announcing its survivors counts (MRA-27)."""
    sets = [frozenset(outcome.survivors) for outcome in outcomes]
    failed = sum(bool(outcome.survivors) and outcome.aggregate is None for outcome in outcomes)
    together = participation_classes(sets)
    counts = np.array([sum(user in members for members in sets) for user in range(p.selection.N)])
    rounds = f"{sum(map(bool, sets)) - failed} of {counted(len(sets), 'round')} with a sum"
    rounds += f", {failed} that failed after survivors were announced" if failed else ""
    names = ("set of survivors", "sets of survivors") if failed else ("sum", "sums")
    least, most = counts.min(), counts.max()
    often = f"{least} to {counted(most, *names)}" if least < most else counted(most, *names)
    one = [f"the log: {rounds}", f"each user is in {often}"]
    lines = one if failed else ["; ".join(one)]
    if not together:
        return lines
    fewest = min(map(len, together))
    return [
        *lines,
        f"however the server combines the sums, at least {fewest} users are always together (T = {p.selection.T});",
        f"with {p.numbers.c} of them on its side, {fewest - p.numbers.c} are",
    ]


# ------------------------------------------------------------------------------------------- a server that lies


@dataclass(frozen=True)
class _Lie:
    """A round in which the server asks for all survivors but one."""

    p: Parameters
    network: Network

    def take(self, row: int, party: int, sampled: Mapping[int, Any]) -> Event:
        """Let a party take a row."""
        step = self.network.table[row]
        return self.network.take(step, party, {name: sampled[party][name] for name in step.randomness})

    def refusals(self, row: int) -> list[str]:
        """Return the refusal of each user that is asked for all but user 0 of the round, or for all but user 1."""
        found = []
        for user in range(self.p.selection.K):
            [request] = self.network.mail(self.network.table[row], user)
            found += self._refusal(row, user, request, missing=int(user == 0))
        return found

    def _refusal(self, row: int, user: int, request: Any, missing: int) -> list[str]:
        named = tuple(other for other in range(self.p.selection.K) if other != missing)
        changed: dict[str, Any] = {self.p.base.named: named}
        if isinstance(request, secagg.UnmaskRequest):
            changed["dropped"] = (missing,)
        step = self.network.table[row]
        try:
            step.take(self.network.states[user], (replace(request, **changed),), randomness={})
        except InconsistentSets as error:
            return [str(error)]
        return []


def _lie(p: Parameters, chosen: tuple[int, ...], number: int, turn: Turn, source: SeededSource) -> list[str]:
    """Play one more round: all users take part, and the server leaves one user out of its request."""
    lie = _Lie(p, multi_round.open_round(p, chosen, turn.updates[list(chosen)], round=number, session=bytes(16)))
    sampled = multi_round.draw_randomness(p, dict.fromkeys(range(len(chosen)), source))
    rows = [(step.phase, step.role) for step in p.base.table].index((p.base.releases, Role.USER))
    for row, step in enumerate(p.base.table[:rows]):
        for party in (SERVER,) if step.role is Role.SERVER else range(len(chosen)):
            lie.take(row, party, sampled)
    said = lie.refusals(rows)
    if len(said) != len(chosen):
        raise AssertionError("a user answered for part of a batch")
    first, second = chosen[:2]
    refused = f"{len(said)} of {len(chosen)} users refuse and blame the server."
    return [
        f"one more round, of {_batches(p, chosen)}: all inputs come, and the server asks for the sum without one user,",
        f"user {first} (and this one for the sum without user {second}); with the sum of all, that reveals a model:",
        *wrap(
            f"{refused} User {chosen[-1]}, in numbers of the round: {said[-1]}",
            110,
            initial_indent="  ",
            subsequent_indent="  ",
        ),
    ]
