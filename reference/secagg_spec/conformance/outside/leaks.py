"""Find who learns what from entries that are affine in secrets and uniform draws, and the combination that shows it.

==========================  ============================================================================
notation                    here
==========================  ============================================================================
v = A s + B r + c           the entries that a coalition sees: `Entry.secrets`, `Entry.drawn`, `constant`
{w : wB = 0}                combinations that cancel all draws: `weights`
wA                          what they reveal about the secrets: `learned`
==========================  ============================================================================

Draws are uniform, so a coalition learns the functionals wA and nothing else, both over a field and modulo any integer R
(docs/explanation/privacy-verdicts.md). A list of allowed functionals says what the coalition may learn.
"""

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
"""The minimum and maximum number of coalitions decided per size, and the work that limits it in between."""
_FEW_TOGETHER, _TOGETHER, _WORK_TOGETHER, _PIECE = 8, 4096, 2 * 10**8, 256
"""The same for coalitions decided together over a field; and how many of them share one array."""


@dataclass(frozen=True)
class Entry:
    """One number that somebody sees: its name, and who sees it (`EVERYBODY` is the server and thus every coalition)."""

    name: str
    holder: int | None
    secrets: tuple[int, ...]
    drawn: tuple[int, ...]
    constant: int = 0


@dataclass(frozen=True)
class Leak:
    """What a coalition learns: the sum of `weights` times the entries, minus `constant`, is the sum given by `learned`.

    `weights` refers to `names` and `learned` to `secrets`; all numbers are modulo `modulus`.
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
        """The coalition, in words."""
        users = named(self.coalition)
        return f"the server with {users}" if self.server and users else users or "the server alone"

    @property
    def text(self) -> str:
        """The leak in one sentence."""
        seen = readable(_row(self.weights), self.names, self.modulus)
        offset = f" - {self.constant}" if self.constant else ""
        combination = readable(_row(self.learned), self.secrets, self.modulus)
        learns = "learn" if len(self.coalition) > 1 and not self.server else "learns"
        return f"{self.who} {learns} {combination} = {seen}{offset} modulo {self.modulus}"

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


def details(what: str, seen: Sequence[str], coalition: Sequence[int] = ()) -> dict[str, Any]:
    """Return report data: the server and a coalition learn a number from the named entries that they see."""
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
    """Return what entries reveal beyond the allowed functionals, from entries that are all needed; None if nothing.

    Other combinations may have fewer terms. The minimum would be a shortest-codeword problem.

    Parameters
    ----------
    modulus : int
        Any R >= 2, prime or not.
    entries : sequence of Entry
        What the coalition sees; all entries have the same numbers of secrets and draws.
    secrets : sequence of str
        The names of the secrets.
    allowed : iterable of rows
        Functionals of the secrets that the coalition may know.
    coalition, server
        The owner of the view, for messages.
    """
    known = RowModule(modulus, len(secrets), [list(row) for row in allowed])
    seen = dict(enumerate(entries))
    found = _revealed(modulus, seen, known)
    if found is None:
        return None
    for at in sorted(found[1]):
        found = _revealed(modulus, {place: seen[place] for place in found[1] if place != at}, known) or found
    learned, used = found
    weights = tuple(used.get(at, 0) for at in seen)
    constant = reduced(sum(w * e.constant for w, e in zip(weights, entries, strict=True)), modulus)
    names = tuple(e.name for e in entries)
    return Leak(modulus, tuple(coalition), server, names, tuple(secrets), weights, learned, constant)


def _revealed(modulus: int, seen: Mapping[int, Entry], known: RowModule) -> tuple[Row, dict[int, int]] | None:
    """Return what entries reveal beyond what is known, and the nonzero weights; None if they reveal nothing."""
    if not seen:
        return None
    draws, size = len(next(iter(seen.values())).drawn), len(seen)
    rows = [(*e.drawn, *e.secrets, *(int(at == other) for other in seen)) for at, e in seen.items()]
    free = RowModule(modulus, draws + known.width + size, rows).vanishing(draws)
    learned = [row for row in free if row[: known.width] not in known]
    if not learned:
        return None
    best = min(learned, key=lambda row: sum(map(bool, row)))
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
    """Return a leak to a smallest coalition of at most `most` users; None if there is none.

    A coalition learns what its parts learn. If all coalitions of the largest size can be decided, they therefore decide
    all smaller ones; over a field, up to 4096 of them are decided together, fewer if they are large. Otherwise all
    coalitions of the `exhausted` sizes are decided, and random ones of the largest size. A leaking random coalition is
    reduced until each member is needed, but smaller ones may exist.
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
    """Return the leak to the first coalition that has one, without its unnecessary members; or None."""
    found = next(filter(None, map(leak_to, sets)), None)
    if found is None:
        return None
    for user in found.coalition:
        found = leak_to(tuple(other for other in found.coalition if other != user)) or found
    return found


def _field(modulus: int) -> bool:
    return modulus <= MAX_MODULUS and is_prime(modulus)


def _together(users: Sequence[int], entries: Sequence[Entry], most: int) -> tuple[int, int]:
    """Return the size up to which all coalitions are decided together over a field, and the number of one size."""
    rows = -(-len(entries) * most // max(len(users), 1))
    each = rows**2 * sum(len(part) for part in (entries[0].drawn, entries[0].secrets)) if entries else 1
    count = max(_FEW_TOGETHER, min(_TOGETHER, _WORK_TOGETHER // max(each, 1)))
    return (most if comb(len(users), most) <= count else exhausted(len(users), most, count)), count


def _learning(p: int, entries: Sequence[Entry], sets: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the first coalition that learns something, modulo a prime; None if none does.

    The entries of many coalitions are eliminated together: a combination without draws must not contain a secret.
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
    """Return for each matrix whether some combination of its rows has a secret but no draw; modifies the matrices."""
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
    """Return whether some coalitions are skipped because there are too many."""
    if modulus and _field(modulus):
        return _together(users, entries, most)[0] < most
    return exhausted(len(users), most, _limit(entries)) < most


def exhausted(users: int, most: int, limit: int) -> int:
    """Return the size, at most `most`, up to which all coalitions are decided, with at most `limit` of each size."""
    return next((size - 1 for size in range(most + 1) if comb(users, size) > limit), most)


def _limit(entries: Sequence[Entry]) -> int:
    """Return the number of coalitions of one size to decide: fewer if each takes longer."""
    each = len(entries) ** 2 * sum(len(part) for part in (entries[0].drawn, entries[0].secrets)) if entries else 1
    return max(_FEWEST, min(_MOST, _WORK // each))


def coalitions(users: Sequence[int], most: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of at most `most` users, smallest first: all of the exhausted sizes, then random ones of `most`."""
    most = min(most, len(users))
    complete = exhausted(len(users), most, limit)
    for size in range(complete + 1):
        yield from combinations(users, size)
    if complete < most:
        yield from subsets(users, most, limit)


def subsets(users: Sequence[int], size: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Yield all sets of this size or, if there are more than `limit`, `limit` random ones."""
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
