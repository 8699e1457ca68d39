"""Checks of what a log of many rounds reveals, ``audit.privacy`` (spec/multi-round.md, section 4)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import multi_round_logs as logs
from secagg_spec.conformance.cases.multi_round_logs import AUDIT, FEW_USERS, Log
from secagg_spec.conformance.cases.requests import inserted
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, equal, fail
from secagg_spec.conformance.checks.multi_round_choices import USERS
from secagg_spec.conformance.sessions.choices import among

_INTEGER, _ABOVE_ZERO = re.compile("0|-?[1-9][0-9]*"), re.compile("[1-9][0-9]*")


@dataclass(frozen=True)
class Recovered:
    """What an audit says about a recoverable user."""

    user: int
    rounds: int
    combination: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Found:
    """The findings of an audit."""

    recoverable: tuple[Recovered, ...]
    strong: int
    weak: tuple[int, int]
    gap: Fraction
    cardinality: Fraction


@check(f"{AUDIT}/first", "MRA-10")
def first(draw: Any, call: Caller) -> None:
    """The audit names exactly the recoverable users, ascending, each with the number of rounds that made it so."""
    log = logs.log(draw)
    got = [(entry.user, entry.rounds) for entry in _found(call, log).recoverable]
    want = sorted(log.recoverable().items())
    equal(f"recoverable users, and after how many rounds, of {log} are", got, want)


@check(f"{AUDIT}/combination", "MRA-11")
def combination(draw: Any, call: Caller) -> None:
    """The combination for a recoverable user gives exactly that user, and uses no later round than necessary."""
    log = logs.log(draw)
    known = log.recoverable()
    for entry in _found(call, log).recoverable:
        judge_combination(log, entry, known)


@check(f"{AUDIT}/large-factors", "MRA-10", "MRA-11", examples=4)
def large_factors(draw: Any, call: Caller) -> None:
    """A user that is recoverable only from many rounds has factors that no binary64 number can represent."""
    log, user = logs.growing(draw)
    known = {user: len(log.rounds)}
    found = _found(call, log).recoverable
    if {entry.user: entry.rounds for entry in found} != known:
        fail(f"recoverable users of {log}, and after how many rounds, must be {known}", sorted(known.items()))
    judge_combination(log, found[0], known)


def judge_combination(log: Log, entry: Recovered, known: Mapping[int, int]) -> None:
    """Fail if a combination is not the user's, or uses rounds after the first after which the user is recoverable."""
    used = [at for at, _ in entry.combination]
    which = f"the combination for user {entry.user} of {log}"
    if used != sorted(set(used)) or not all(factor for _, factor in entry.combination):
        fail(f"{which} has the rounds {used}; they must ascend, and have no zeros")
    if entry.user in known and used and not 0 <= used[0] <= used[-1] < known[entry.user]:
        fail(f"{which} has the rounds {used}; the first {known[entry.user]} rounds suffice")
    total = [Fraction(0)] * log.N
    for at, factor in entry.combination:
        for user in log.rounds[at] if 0 <= at < len(log.rounds) else ():
            total[user] += factor
    if total != [Fraction(user == entry.user) for user in range(log.N)]:
        fail(f"{which} is {list(map(str, total))}, must be 1 for the user, and 0 for all others")


@check(f"{AUDIT}/strong", "MRA-12")
def strong(draw: Any, call: Caller) -> None:
    """The strong privacy is the size of the smallest class."""
    log = logs.log(draw)
    got, want = _found(call, log).strong, log.strong()
    equal(f"the strong privacy of {log} is", got, want)


@check(f"{AUDIT}/weak", "MRA-13", "MRA-14")
def weak(draw: Any, call: Caller) -> None:
    """The weak privacy is between the two bounds. For few users they are equal and at least the strong privacy."""
    _judge_weak(call, logs.log(draw))


@check(f"{AUDIT}/weak-large", "MRA-13", examples=40)
def weak_large(draw: Any, call: Caller) -> None:
    """For many users who come in batches, the weak privacy is between the two bounds."""
    _judge_weak(call, logs.large(draw))


def _judge_weak(call: Caller, log: Log) -> None:
    (low, high), want, least = _found(call, log).weak, log.weak(), log.strong()
    if not low <= want <= high:
        fail(f"the weak privacy of {log} is said to be from {low} to {high}; it is {want}", [want, want])
    if low < least:
        fail(f"the weak privacy of {log} is said to be {low} at least; the strong privacy is {least} already")
    if low != high and len(log.users()) <= FEW_USERS:
        fail(f"the weak privacy of {log}, which has few users, is said to be from {low} to {high}", [want, want])


@check(f"{AUDIT}/figures", "MRA-16")
def figures(draw: Any, call: Caller) -> None:
    """The fairness gap is over all users of the roster, and the cardinality is over all rounds."""
    log = logs.log(draw)
    found = _found(call, log)
    for name, got, want in (("gap", found.gap, log.gap()), ("cardinality", found.cardinality, log.cardinality())):
        if got != want:
            fail(f"the {name} of {log} is {got}, must be {want}", [str(want.numerator), str(want.denominator)])


@check(f"{AUDIT}/users", "MRA-15", examples=60)
def users(draw: Any, call: Caller) -> None:
    """A log is refused if a set names a user twice or a user outside the roster."""
    log = logs.log(draw)
    full = [t for t, members in enumerate(log.rounds) if members]
    if full and draw(st.booleans()):
        t = draw(among(full))
        twice = draw(among(log.rounds[t]))
        wrong, why = sorted([*log.rounds[t], twice]), f"round {t} names user {twice} twice"
        rounds = [*log.rounds[:t], wrong, *log.rounds[t + 1 :]]
    else:
        stranger = draw(among((log.N, -1, log.N + 5, 2**31 - 1)))
        rounds = inserted(draw, log.rounds, (stranger,))
        why = f"a round names user {stranger}, of {log.N} users"
    call.refused(AUDIT, log.params(rounds=[list(members) for members in rounds]), USERS, why)


def _found(call: Caller, log: Log) -> Found:
    """Ask for an audit and read it."""
    body = call.result(AUDIT, log.params())
    try:
        return _read(body)
    except (TypeError, ValueError, KeyError) as error:
        raise CheckFailed("protocol", f"{AUDIT}: the result has another form than the text says: {error}") from None


def _read(body: Mapping[str, Any]) -> Found:
    recoverable = [
        Recovered(_integer(entry["user"]), _integer(entry["round"]), _combination(entry["combination"]))
        for entry in _listed(body["recoverable"])
    ]
    low, high = map(_integer, _listed(body["weak"]))
    gap, cardinality = fraction(body["gap"]), fraction(body["cardinality"])
    return Found(tuple(recoverable), _integer(body["strong"]), (low, high), gap, cardinality)


def _combination(value: Any) -> tuple[tuple[int, Fraction], ...]:
    pairs = [_listed(pair) for pair in _listed(value)]
    return tuple((_integer(at), fraction(factor)) for at, factor in pairs)


def fraction(value: Any) -> Fraction:
    """Return the number in a list of two decimal strings.

    Raises
    ------
    ValueError
        The list is not a fraction, or not in lowest terms.
    """
    over, under = map(str, _listed(value))
    if not _INTEGER.fullmatch(over) or not _ABOVE_ZERO.fullmatch(under) or gcd(int(over), int(under)) != 1:
        raise ValueError(f"{str(value)[:80]} is no fraction in lowest terms")
    return Fraction(int(over), int(under))


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{str(value)[:80]} is no JSON integer")
    return value


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{str(value)[:80]} is no list")
    return value
