"""How long the parties of a round compute: rounds of smaller sizes, measured here, and scaled as the text's costs grow.

====================  ==============================================================
section 6             here
====================  ==============================================================
e                     `DEGREES`: of the work that does not depend on d, and of that which grows with d
c_0, c_1              fitted to the times of two numbers of users
====================  ==============================================================

Rounds of two numbers of users and two lengths of updates are timed. They have the shares of colluders and dropouts of
the wish. Times are of one processor, and of this implementation.

Source: spec/planning.md, section 6 (PLN-13).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.crypto import caches
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.experiments import costs
from secagg_spec.planning.choices import Choice, threshold
from secagg_spec.planning.wishes import Wish
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Role, run_synchronous

USERS, LENGTHS = (10, 28), (1_000, 40_000)
"""The sizes that are measured."""
DEGREES: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = MappingProxyType(
    {
        "secagg": ((2, 1), (2, 2)),
        "lightsecagg": ((1, 1), (2, 1)),
        "basecagg": ((1, 1), (2, 1)),
        "basa": ((1, 1), (2, 1)),
    }
)
"""For each protocol that is measured the degrees e, of a user and of the server, by its section of costs."""
_SEED = b"plan"


@dataclass(frozen=True)
class Times:
    """The seconds of processor time of a user and of the server for one sum."""

    user: float
    server: float


@dataclass(frozen=True)
class Term:
    """Seconds that grow with the number of users n as c_0 n^(e - 1) + c_1 n^e."""

    c_0: float
    c_1: float
    e: int

    def at(self, n: int) -> float:
        """Return the seconds for n users."""
        return float((self.c_0 + self.c_1 * n) * n ** (self.e - 1))


@dataclass(frozen=True)
class Growth:
    """Seconds of a party: what does not depend on the length of updates, and what grows with each of their numbers."""

    fixed: Term
    each: Term

    def seconds(self, n: int, length: float) -> float:
        """Return the seconds for n users and so many numbers of an update."""
        return self.fixed.at(n) + self.each.at(n) * length


def term(times: Mapping[int, float], e: int) -> Term:
    """Return the term of degree e through the times of two numbers of users; no coefficient is negative."""
    (few, first), (many, last) = sorted((n, max(seconds, 0.0) / n ** (e - 1)) for n, seconds in times.items())
    slope = min(max((last - first) / (many - few), 0.0), last / many)
    return Term(last - slope * many, slope, e)


def fitted(times: Mapping[tuple[int, int], float], degrees: tuple[int, int]) -> Growth:
    """Return the growth through the times of two numbers of users, each with two lengths.

    Parameters
    ----------
    times : mapping
        Seconds by users and length.
    degrees : pair of int
        e of what does not depend on the length, and of what does.
    """
    short, long = sorted({length for _, length in times})
    users = {n for n, _ in times}
    slopes = {n: max(times[n, long] - times[n, short], 0.0) / (long - short) for n in users}
    rests = {n: times[n, short] - slopes[n] * short for n in users}
    return Growth(term(rests, degrees[0]), term(slopes, degrees[1]))


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
    """Measure rounds of a protocol, and return how the times of a user and of the server grow."""
    sizes = [(n, d) for n in USERS for d in LENGTHS]
    found = {(n, d): measured(kind, n, d, dropout, colluders, 2 if n == USERS[0] else 1) for n, d in sizes}
    user, server = DEGREES[kind]
    return (
        fitted({at: one.user for at, one in found.items()}, user),
        fitted({at: one.server for at, one in found.items()}, server),
    )


def measured(kind: str, n: int, d: int, dropout: float, colluders: float, repeats: int = 1) -> Times:
    """Return the least times of some rounds of n users with d numbers."""
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
    run_synchronous(network, {"masked_input": range(n - D, n)}, secagg.draw_randomness(p, _sources(n)))
    return _of(network, n - D)


def _lightsecagg(n: int, T: int, D: int, d: int) -> Times:
    """Return the times of a round of LightSecAgg out of which D users drop before they upload."""
    p = lightsecagg.Parameters(DEFAULT_PRIME, n, D, n - D, T, d)
    privates = {user: SeededSource(_SEED, f"key {user}").take(KEY_BYTES) for user in range(n)}
    links = sealed_links(lightsecagg.sealing_context(p, bytes(16), 0), privates)
    updates = p.field.zeros(n * d).reshape(n, -1)
    network = costs.timed(lightsecagg.open_round(p, updates, session=bytes(16), channel=links, round=0))
    lightsecagg.run_network(network, {"upload": range(n - D, n)}, lightsecagg.draw_randomness(p, _sources(n)))
    return _of(network, n - D)


def _sources(n: int) -> dict[int, SeededSource]:
    caches.forget()
    return {user: SeededSource(_SEED, f"user {user}") for user in range(n)}


def _of(network: costs.Timed, left: int) -> Times:
    """Return the median time of the users that are left, and the time of the server."""
    users = [
        sum(one.seconds for one in network.spent if one.role is Role.USER and one.party == user) for user in range(left)
    ]
    return Times(statistics.median(users), sum(one.seconds for one in network.spent if one.role is Role.SERVER))
