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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.modular import MAX_MODULUS, PrimeField, is_prime
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.outside.probing import reduced
from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.privacy.howell import Row, RowModule
from secagg_spec.privacy.verdict import readable

EVERYBODY = None
_FEWEST, _MOST, _WORK = 16, 256, 10**7
"""How many coalitions of one size are decided: between the first two, as many as the work allows."""
_FEW_TOGETHER, _TOGETHER, _WORK_TOGETHER, _PIECE = 8, 4096, 2 * 10**8, 256
"""How many are decided together over a field: between the first two, as the work allows; and how many in one array."""


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
    """Return what entries tell beyond the allowed functionals, by some of which none can be spared; None when nothing.

    Other combinations may have fewer terms: the fewest of all would be those of a shortest word of a code.

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
    known = RowModule(modulus, len(secrets), [list(row) for row in allowed])
    seen = dict(enumerate(entries))
    told = _told(modulus, seen, known)
    if told is None:
        return None
    for at in sorted(told[1]):
        told = _told(modulus, {place: seen[place] for place in told[1] if place != at}, known) or told
    learned, used = told
    weights = tuple(used.get(at, 0) for at in seen)
    constant = reduced(sum(w * e.constant for w, e in zip(weights, entries, strict=True)), modulus)
    names = tuple(e.name for e in entries)
    return Leak(modulus, tuple(coalition), server, names, tuple(secrets), weights, learned, constant)


def _told(modulus: int, seen: Mapping[int, Entry], known: RowModule) -> tuple[Row, dict[int, int]] | None:
    """Return what some entries tell beyond what is known, and their weights, those of 0 left out; None when nothing."""
    if not seen:
        return None
    draws, size = len(next(iter(seen.values())).drawn), len(seen)
    rows = [(*e.drawn, *e.secrets, *(int(at == other) for other in seen)) for at, e in seen.items()]
    free = RowModule(modulus, draws + known.width + size, rows).vanishing(draws)
    told = [row for row in free if row[: known.width] not in known]
    if not told:
        return None
    best = min(told, key=lambda row: sum(map(bool, row)))
    return best[: known.width], {at: w for at, w in zip(seen, best[known.width :], strict=True) if w}


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
    for all others; over a field up to 4096 of them are decided together, fewer where they are large. Else those of
    `exhausted` sizes are all decided, and drawn ones of the largest size; of a drawn one no member can be spared, but
    others may be smaller.
    """
    allowed, most = [list(row) for row in allowed], min(most, len(users))

    def leak_to(coalition: tuple[int, ...]) -> Leak | None:
        view = [entry for entry in entries if entry.holder is EVERYBODY or entry.holder in coalition]
        return find(modulus, view, secrets, allowed, coalition, server=server)

    limit = _limit(entries)
    if not allowed and _field(modulus):
        complete, count = _together(users, entries, most)
        drawn = () if complete == most else subsets(users, most, count)
        found = _learning(modulus, entries, [*combinations(users, complete), *drawn])
        if found is None:
            return None
        smaller = coalitions(users, complete, limit) if len(found) == complete else ()
        return first_leak(leak_to, smaller) or first_leak(leak_to, [found])
    if exhausted(len(users), most, limit) == most and not any(map(leak_to, combinations(users, most))):
        return None
    return first_leak(leak_to, coalitions(users, most, limit))


def first_leak(leak_to: Callable[[tuple[int, ...]], Leak | None], sets: Iterable[tuple[int, ...]]) -> Leak | None:
    """Return the leak to the first coalition that has one, without the members that can be spared; or None."""
    found = next(filter(None, map(leak_to, sets)), None)
    if found is None:
        return None
    for user in found.coalition:
        found = leak_to(tuple(other for other in found.coalition if other != user)) or found
    return found


def _field(modulus: int) -> bool:
    return modulus <= MAX_MODULUS and is_prime(modulus)


def _together(users: Sequence[int], entries: Sequence[Entry], most: int) -> tuple[int, int]:
    """Return up to which size all coalitions are decided together over a field, and how many of one size are."""
    rows = -(-len(entries) * most // max(len(users), 1))
    each = rows**2 * sum(len(part) for part in (entries[0].drawn, entries[0].secrets)) if entries else 1
    count = max(_FEW_TOGETHER, min(_TOGETHER, _WORK_TOGETHER // max(each, 1)))
    return (most if comb(len(users), most) <= count else exhausted(len(users), most, count)), count


def _learning(p: int, entries: Sequence[Entry], sets: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the first of some coalitions that learns something, over the integers modulo a prime.

    The entries of many coalitions are eliminated together: what is left without a draw must tell no secret.
    """
    holders = [[at for at, e in enumerate(entries) if e.holder is EVERYBODY or e.holder in users] for users in sets]
    field, size = PrimeField(p), max(map(len, holders), default=0)
    if size == 0:
        return None
    table, draws = np.array([(*e.drawn, *e.secrets) for e in entries], dtype=np.uint64), len(entries[0].drawn)
    for start in range(0, len(sets), _PIECE):
        piece = holders[start : start + _PIECE]
        work = np.zeros((len(piece), size, table.shape[1]), dtype=np.uint64)
        for at, rows in enumerate(piece):
            work[at, : len(rows)] = table[rows]
        bare = _without_draws(field, work, draws)
        if bare.any():
            return sets[start + int(bare.argmax())]
    return None


def _without_draws(field: PrimeField, work: UintArray, draws: int) -> NDArray[np.bool_]:
    """Return of each matrix whether a combination of its rows has no draw and some secret; the matrices change."""
    every, free = np.arange(len(work)), np.ones(work.shape[:2], dtype=bool)
    for column in range(draws):
        hits = (work[:, :, column] != 0) & free
        if not hits.any():
            continue
        has, pivot = hits.any(axis=1), hits.argmax(axis=1)
        row = work[every, pivot]
        inverse = field.inverse(np.where(has, row[:, column], 1).astype(np.uint64))
        free[every[has], pivot[has]] = False
        factors = np.where(hits & free, work[:, :, column], 0).astype(np.uint64)
        monic = field.multiply(row, np.broadcast_to(inverse[:, np.newaxis], row.shape).copy())
        moved = field.multiply(
            np.broadcast_to(factors[:, :, np.newaxis], work.shape).copy(),
            np.broadcast_to(monic[:, np.newaxis, :], work.shape).copy(),
        )
        work = field.subtract(work, moved)
    left: NDArray[np.bool_] = ((work[:, :, draws:] != 0).any(axis=2) & free).any(axis=1)
    return left


def sampled(users: Sequence[int], entries: Sequence[Entry], most: int, modulus: int = 0) -> bool:
    """Return whether some coalitions are left out because there are too many of them."""
    if modulus and _field(modulus):
        return _together(users, entries, most)[0] < most
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
    most = min(most, len(users))
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
