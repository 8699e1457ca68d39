"""How long the parties of a round compute: a round of few users, measured here, and scaled as stored rounds grew.

====================  ==============================================================
section 6             here
====================  ==============================================================
e                     `DEGREES`: of the work that does not depend on d, and of that which grows with d
stored rounds         `stored`, from `FILE`
c_0, c_1              in `Curve`: through the two largest stored rounds
====================  ==============================================================

A round with two lengths of updates is timed, with the shares of colluders and dropouts of the wish. Times are of one
processor, and of this implementation.

Source: spec/planning.md, section 6 (PLN-13).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.crypto import caches
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.errors import LengthMismatch, OutOfRange
from secagg_spec.experiments import costs
from secagg_spec.planning.choices import Choice, threshold
from secagg_spec.planning.wishes import MOST_USERS, Wish
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, run_synchronous

USERS, LENGTHS = 28, (1_000, 40_000)
"""The sizes that are measured."""
FAR_APART, DROPOUT = (1_000, 160_000), 0.1
"""The lengths and the share of dropouts of stored rounds that are scaled by."""
DEGREES: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = MappingProxyType(
    {
        "secagg": ((2, 1), (2, 2)),
        "lightsecagg": ((1, 1), (2, 1)),
        "basecagg": ((1, 1), (2, 1)),
        "basa": ((1, 1), (2, 1)),
    }
)
"""For each protocol that is measured the degrees e, of a user and of the server, by its section of costs."""
FILE = Path(__file__).with_name("growth.json")
"""How costs grew in rounds of up to 256 users, as `tests.benchmarks.growth` stores it."""
_SEED = b"plan"
_MOST_REPEATS = 1000
_MOST_DEGREE = 8


@dataclass(frozen=True)
class Times:
    """The seconds of processor time of a user and of the server for one sum."""

    user: float
    server: float


Points: TypeAlias = tuple[tuple[int, float], ...]
"""Numbers of users, ascending, each with the seconds of a part of the work; all above 0."""


@dataclass(frozen=True)
class Curve:
    """A part of the work: its seconds for some users here, how it grew in stored rounds, and its degree e.

    Raises
    ------
    ParameterError
        The users are no integer above 0, e is none in [0, 8], or the points no pairs with ascending users.
    OutOfRange
        The seconds are no finite number of at least 0, or those of a point not above 0.
    """

    users: int
    seconds: float
    points: Points
    e: int

    def __post_init__(self) -> None:
        validate.integer("users", self.users, 1, validate.MAX_COUNT)
        validate.integer("e", self.e, 0, _MOST_DEGREE)
        if not validate.finite(self.seconds) or self.seconds < 0:
            raise OutOfRange("seconds", self.seconds, "a finite number of at least 0")
        least = 1
        for at, point in enumerate(validate.sequence("points", self.points, "pairs of users and seconds")):
            n, seconds = validate.parts(f"points[{at}]", point, 2, "a number of users and its seconds")
            least = validate.integer(f"points[{at}][0]", n, least, validate.MAX_COUNT) + 1
            if not validate.finite(seconds) or seconds <= 0:
                raise OutOfRange(f"points[{at}][1]", seconds, "a finite number above 0")

    def at(self, n: int) -> float:
        """Return the seconds for n users.

        Raises `ParameterError` where n is no integer in [1, 2^32 - 1], and `OutOfRange` where they are beyond binary64.
        """
        n = validate.integer("n", n, 1, validate.MAX_COUNT)
        with np.errstate(all="ignore"):
            found = float(np.float64(self.seconds) * self._stored(n) / self._stored(self.users))
        if not validate.finite(found):
            raise OutOfRange("n", n, "users for which the points give finite seconds")
        return found

    def _stored(self, n: int) -> float:
        if not self.points:
            return float(n**self.e)
        users, times = zip(*self.points, strict=True)
        if n < users[0] and len(users) > 1:
            power = np.log(times[1] / times[0]) / np.log(users[1] / users[0])
            return float(times[0] * (n / users[0]) ** power)
        if n <= users[-1] or len(users) == 1:
            return float(np.exp(np.interp(np.log(n), np.log(users), np.log(times))))
        (few, first), (many, last) = ((n, seconds / n ** (self.e - 1)) for n, seconds in self.points[-2:])
        c_1 = min(max((last - first) / (many - few), 0.0), last / many)
        return float((last + c_1 * (n - many)) * n ** (self.e - 1))


@dataclass(frozen=True)
class Growth:
    """Seconds of a party: what does not depend on the length of updates, and what grows with each of their numbers."""

    fixed: Curve
    each: Curve

    def seconds(self, n: int, length: float) -> float:
        """Return the seconds for n users and so many numbers of an update, for checked arguments."""
        return self.fixed.at(n) + self.each.at(n) * length


def parts(times: Mapping[int, float]) -> tuple[float, float]:
    """Return the seconds that do not depend on the length, and those for each number, from those of two lengths.

    Raises `LengthMismatch` for another number of lengths, and `ParameterError` for lengths that are no integers, or
    seconds that are no finite numbers.
    """
    if len(times) != 2:
        raise LengthMismatch("len(times)", len(times), "2, one for each of two lengths")
    for length, seconds in times.items():
        validate.integer("a length in times", length, 0, validate.MAX_COUNT)
        if not validate.finite(seconds):
            raise OutOfRange("seconds in times", seconds, "a finite number")
    (short, first), (long, last) = sorted(times.items())
    each = max(last - first, 0.0) / (long - short)
    return max(first - each * short, 0.0), each


@cache
def stored() -> tuple[Mapping[str, Any], ...]:
    """Return the rows of stored rounds: kind, role, N, d, dropout, seconds, and where it was measured bytes."""
    return tuple(json.loads(FILE.read_text(encoding="utf-8"))["rows"])


def grown(kind: str, role: str) -> tuple[Points, Points]:
    """Return how what does not depend on the length grew in stored rounds, and what does.

    Raises `ParameterError` for a kind or a role that there is not.
    """
    validate.one_of("kind", kind, sorted({row["kind"] for row in stored()}))
    return _grown(kind, validate.one_of("role", role, ["user", "server"]))


@cache
def _grown(kind: str, role: str) -> tuple[Points, Points]:
    """Return the result of `grown` for checked arguments."""
    found: dict[int, dict[int, float]] = {}
    for row in stored():
        if (row["kind"], row["role"], row["dropout"]) == (kind, role, DROPOUT) and row["d"] in FAR_APART:
            found.setdefault(row["N"], {})[row["d"]] = row["seconds"]
    both = [(n, parts(times)) for n, times in sorted(found.items()) if len(times) == 2]
    fixed, each = (tuple((n, pair[at]) for n, pair in both if pair[at] > 0) for at in (0, 1))
    return fixed, each


def scaled(choice: Choice, wish: Wish) -> Times:
    """Return the times of a choice, scaled from measured ones (PLN-13)."""
    work = choice.work
    user, server = growth(work.kind, *shares(wish))
    d, n = wish.dimension, work.users
    return Times(user.seconds(n, d * float(work.user)), server.seconds(n, d * float(work.server)) * float(work.times))


def shares(wish: Wish) -> tuple[float, float]:
    """Return the shares of users that drop out and that collude, which measured rounds have too."""
    return float(wish.dropout), wish.colluding / wish.users


@cache
def growth(kind: str, dropout: float, colluders: float) -> tuple[Growth, Growth]:
    """Measure rounds of a protocol, and return how the times of a user and of the server grow.

    It is for checked arguments.
    """
    found = {d: measured(kind, USERS, d, dropout, colluders, 2) for d in LENGTHS}

    def of_role(role: str, degrees: tuple[int, int]) -> Growth:
        here = parts({d: getattr(one, role) for d, one in found.items()})
        curves = zip(here, grown(kind, role), degrees, strict=True)
        return Growth(*(Curve(USERS, seconds, points, e) for seconds, points, e in curves))

    user, server = DEGREES[kind]
    return of_role("user", user), of_role("server", server)


def measured(kind: str, n: int, d: int, dropout: float, colluders: float, repeats: int = 1) -> Times:
    """Return the least times of some rounds of n users with d numbers.

    Raises `ParameterError` for a kind that is none of `DEGREES`, a number of rounds below 1 or above 1000, of users
    below 3 or above 10^6, or of numbers below 1, or shares that are none. It takes the time of the rounds. In those of
    BASecAgg and BASA nobody drops out.
    """
    validate.one_of("kind", kind, [*DEGREES])
    repeats = validate.integer("repeats", repeats, 1, _MOST_REPEATS)
    n, d = validate.integer("n", n, 3, MOST_USERS), validate.integer("d", d, 1, validate.MAX_COUNT)
    for name, share in (("dropout", dropout), ("colluders", colluders)):
        if not validate.finite(share) or not 0 <= share <= 1:
            raise OutOfRange(name, share, "a number in [0, 1]")
    if kind in {"basecagg", "basa"}:
        K = n if kind == "basa" else min(n, max(3, round(colluders * n) + 2))
        times = costs.measure(costs.Setting(kind, n, K, d), repeats)
        return Times(times["user"], times["server"])
    run = _secagg if kind == "secagg" else _lightsecagg
    T = max(1, min(round(colluders * n), n // 2))
    D = max(0, min(round(dropout * n), n - T - 2))
    runs = [run(n, T, D, d) for _ in range(repeats)]
    return Times(min(one.user for one in runs), min(one.server for one in runs))


def _secagg(n: int, T: int, D: int, d: int) -> Times:
    """Return the times of a round of SecAgg on the complete graph out of which D users drop before they upload."""
    p = secagg.Parameters(R=2**32, N=n, D=D, T=T, t=threshold(n, T, n - D), k=n - 1, d=d)
    network = costs.timed(secagg.open_round(p, p.ring.zeros(n * d).reshape(n, -1), session=bytes(16), round=0))
    run_synchronous(network, {"masked_input": range(n - D, n)}, secagg.draw_randomness(p, sources(n)))
    return of(network, range(n - D))


def _lightsecagg(n: int, T: int, D: int, d: int) -> Times:
    """Return the times of a round of LightSecAgg out of which D users drop before they upload."""
    p = lightsecagg.Parameters(DEFAULT_PRIME, n, D, n - D, T, d)
    privates = {user: SeededSource(_SEED, f"key {user}").take(KEY_BYTES) for user in range(n)}
    links = sealed_links(lightsecagg.sealing_context(p, bytes(16), 0), privates)
    updates = p.field.zeros(n * d).reshape(n, -1)
    network = costs.timed(lightsecagg.open_round(p, updates, session=bytes(16), channel=links, round=0))
    run_synchronous(network, {"upload": range(n - D, n)}, lightsecagg.draw_randomness(p, sources(n)))
    return of(network, range(n - D))


def sources(n: int) -> dict[int, SeededSource]:
    """Return a source for each user, and forget what earlier rounds left in caches.

    Raises `ParameterError` for what is no number of users.
    """
    users = range(validate.integer("n", n, 0, MOST_USERS))
    caches.forget()
    return {user: SeededSource(_SEED, f"user {user}") for user in users}


def of(network: costs.Timed, left: Sequence[int]) -> Times:
    """Return the median time of the users that are left, and the time of the server."""
    spent = dict.fromkeys([*left, SERVER], 0.0)
    for one in network.spent:
        if one.party in spent:
            spent[one.party] += one.seconds
    return Times(statistics.median(spent[user] for user in left), spent[SERVER])


guard(__name__)
