"""Who learns what from entries that are affine in secrets and in uniform draws, with the combination that shows it.

==========================  ============================================================================
notation                    here
==========================  ============================================================================
v = A s + B r + c           the entries that a coalition sees: `Entry.secrets`, `Entry.drawn`, `constant`
{w : wB = 0}                combinations in which no draw is left: `weights`
wA                          what they tell of the secrets: `learned`
==========================  ============================================================================

Draws are uniform, so a coalition learns the functionals wA and nothing else, over a field and over the integers modulo
any R alike (docs/explanation/privacy-verdicts.md). What it may learn is a list of functionals that are allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from secagg_spec.conformance.outside.probing import reduced
from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.privacy.howell import RowModule
from secagg_spec.privacy.verdict import readable

EVERYBODY = None
_FEWEST, _MOST, _WORK = 16, 256, 10**7
"""How many coalitions of one size are decided: between the first two, as many as the work allows."""


@dataclass(frozen=True)
class Entry:
    """One number that somebody sees: its name, who sees it (`EVERYBODY` is the server and so every coalition)."""

    name: str
    holder: int | None
    secrets: tuple[int, ...]
    drawn: tuple[int, ...]
    constant: int = 0


@dataclass(frozen=True)
class Leak:
    """What a coalition learns: the sum of `weights` times the entries, less `constant`, is that of `learned`.

    `weights` goes over `names` and `learned` over `secrets`; all numbers are modulo `modulus`.
    """

    modulus: int
    coalition: tuple[int, ...]
    server: bool
    names: tuple[str, ...]
    secrets: tuple[str, ...]
    weights: tuple[int, ...]
    learned: tuple[int, ...]
    constant: int

    @property
    def who(self) -> str:
        """The coalition in words."""
        users = named(self.coalition)
        return f"the server with {users}" if self.server and users else users or "the server alone"

    @property
    def text(self) -> str:
        """The leak in one sentence."""
        seen = readable(_row(self.weights), self.names, self.modulus)
        offset = f" - {self.constant}" if self.constant else ""
        told = readable(_row(self.learned), self.secrets, self.modulus)
        learns = "learn" if len(self.coalition) > 1 and not self.server else "learns"
        return f"{self.who} {learns} {told} = {seen}{offset} modulo {self.modulus}"

    def as_json(self) -> dict[str, Any]:
        """Return the leak for a report: coefficients by name as decimal strings."""
        return {
            "coalition": list(self.coalition),
            "server": self.server,
            "modulus": str(self.modulus),
            "learns": _terms(self.secrets, self.learned),
            "from": _terms(self.names, self.weights),
            "less": str(self.constant),
        }


def told(what: str, seen: Sequence[str], coalition: Sequence[int] = ()) -> dict[str, Any]:
    """Return for a report that the server and a coalition learn a number from what they see, each by its name."""
    return {"coalition": list(coalition), "server": True, "learns": {what: "1"}, "from": list(seen)}


def named(users: Sequence[int]) -> str:
    """Return users in words: "user 2", "users 0 and 3"."""
    if not users:
        return ""
    *others, last = map(str, users)
    return f"users {', '.join(others)} and {last}" if others else f"user {last}"


def _row(values: Sequence[int]) -> Any:
    return np.array(values, dtype=object)


def _terms(names: Sequence[str], values: Sequence[int]) -> dict[str, str]:
    return {name: str(value) for name, value in zip(names, values, strict=True) if value}


def find(
    modulus: int,
    entries: Sequence[Entry],
    secrets: Sequence[str],
    allowed: Iterable[Sequence[int]] = (),
    coalition: Sequence[int] = (),
    *,
    server: bool = False,
) -> Leak | None:
    """Return what some entries tell beyond the allowed functionals, by the fewest terms; None when nothing.

    Parameters
    ----------
    modulus : int
        Any R >= 2: a prime, or not.
    entries : sequence of Entry
        What the coalition sees, all of equally many secrets and draws.
    secrets : sequence of str
        The names of the secrets.
    allowed : iterable of rows
        Functionals of the secrets that may be known.
    coalition, server
        Whose view it is: for the words.
    """
    if not entries:
        return None
    draws, size = len(entries[0].drawn), len(entries)
    rows = [(*e.drawn, *e.secrets, *(int(at == other) for other in range(size))) for at, e in enumerate(entries)]
    free = RowModule(modulus, draws + len(secrets) + size, rows).vanishing(draws)
    known = RowModule(modulus, len(secrets), [list(row) for row in allowed])
    told = [row for row in free if row[: len(secrets)] not in known]
    if not told:
        return None
    best = min(told, key=lambda row: sum(map(bool, row)))
    learned, weights = best[: len(secrets)], best[len(secrets) :]
    constant = reduced(sum(w * e.constant for w, e in zip(weights, entries, strict=True)), modulus)
    names = tuple(e.name for e in entries)
    return Leak(modulus, tuple(coalition), server, names, tuple(secrets), tuple(weights), tuple(learned), constant)


def smallest(
    modulus: int,
    entries: Sequence[Entry],
    secrets: Sequence[str],
    users: Sequence[int],
    most: int,
    allowed: Iterable[Sequence[int]] = (),
    *,
    server: bool = False,
) -> Leak | None:
    """Return the leak to a smallest coalition of at most `most` of some users; None when there is none.

    A coalition learns what its parts learn, so where all coalitions of the largest size can be decided, they decide
    for all others. Else those of `exhausted` sizes are all decided, and drawn ones of the largest size.
    """
    allowed = [list(row) for row in allowed]

    def leak_to(coalition: tuple[int, ...]) -> Leak | None:
        view = [entry for entry in entries if entry.holder is EVERYBODY or entry.holder in coalition]
        return find(modulus, view, secrets, allowed, coalition, server=server)

    limit = _limit(entries)
    if exhausted(len(users), most, limit) == most and not any(map(leak_to, combinations(users, most))):
        return None
    return next(filter(None, map(leak_to, coalitions(users, most, limit))), None)


def sampled(users: Sequence[int], entries: Sequence[Entry], most: int) -> bool:
    """Return whether some coalitions are left out because there are too many of them."""
    return exhausted(len(users), most, _limit(entries)) < most


def exhausted(users: int, most: int, limit: int) -> int:
    """Return up to which size, at most `most`, all coalitions are decided: `limit` of each size at most."""
    return next((size - 1 for size in range(most + 1) if comb(users, size) > limit), most)


def _limit(entries: Sequence[Entry]) -> int:
    """Return how many coalitions of a size are decided: fewer where each takes longer."""
    each = len(entries) ** 2 * sum(len(part) for part in (entries[0].drawn, entries[0].secrets)) if entries else 1
    return max(_FEWEST, min(_MOST, _WORK // each))


def coalitions(users: Sequence[int], most: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of at most `most` users, the smallest first: all of the exhausted sizes, then drawn ones of `most`."""
    complete = exhausted(len(users), most, limit)
    for size in range(complete + 1):
        yield from combinations(users, size)
    if complete < most:
        yield from subsets(users, most, limit)


def subsets(users: Sequence[int], size: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Yield all sets of so many users, or where there are more than `limit`, as many drawn ones."""
    if comb(len(users), size) <= limit:
        yield from combinations(users, size)
    else:
        yield from islice(_drawn(users, size), limit)


def _drawn(users: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    source = SeededSource(size.to_bytes(4, "little"), "coalitions")
    while True:
        left = list(users)
        places = draw_below(source, range(len(left), len(left) - size, -1))
        yield tuple(sorted(left.pop(place) for place in places))
