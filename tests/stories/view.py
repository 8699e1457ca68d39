"""What an adversary saw, as linear equations over a prime field, and what follows from them about the inputs.

A symbol is an unknown number: an element of an input, a mask or noise. The adversary's equations are rows over the
symbols. Each row comes with the number that was really sent, and is compared with it: a view that says something else
than the messages do is an error of these tests, not a leak.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from flint import nmod_mat

Row: TypeAlias = dict[int, int]
"""Coefficients by symbol."""


@dataclass
class View:
    """The equations of an adversary modulo a prime."""

    prime: int
    values: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    _names: dict[Hashable, int] = field(default_factory=dict)

    def symbol(self, name: Hashable, value: int) -> int:
        """Return the number of the symbol with a name, which is made at its first use."""
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = len(self.values)
            self.values.append(value)
        assert self.values[found] == value, f"{name!r} has two values"
        return found

    def number(self, name: Hashable) -> int:
        """Return the number of a symbol that was made before."""
        return self._names[name]

    def names(self) -> Iterable[tuple[Hashable, int]]:
        """Return all symbols with their names."""
        return self._names.items()

    def saw(self, row: Row, value: int) -> None:
        """Take an equation: the adversary knows what the combination of symbols is."""
        total = sum(factor * self.values[symbol] for symbol, factor in row.items())
        assert (total - value) % self.prime == 0, "a row is not what was sent"
        self.rows.append(row)

    def learned(self, inputs: Sequence[int], known: Collection[int]) -> list[Row]:
        """Return a basis of the combinations of `inputs` that the equations determine, where `known` are known."""
        return consequences(self.prime, self.rows, inputs, known)


def consequences(prime: int, rows: Sequence[Row], inputs: Sequence[int], known: Collection[int] = ()) -> list[Row]:
    """Return the reduced basis of the combinations of `inputs` in the span of rows, modulo the known symbols."""
    wanted = set(inputs)
    skipped = set(known)
    hidden = sorted({s for row in rows for s in row if s not in wanted and s not in skipped})
    place = {symbol: at for at, symbol in enumerate([*hidden, *inputs])}
    if not rows or not inputs:
        return []
    entries = [0] * (len(rows) * len(place))
    for at, row in enumerate(rows):
        start = at * len(place)
        for symbol, factor in row.items():
            if symbol in place:
                entries[start + place[symbol]] = factor % prime
    reduced, rank = nmod_mat(len(rows), len(place), entries, prime).rref()
    found: list[Row] = []
    for at in range(rank - 1, -1, -1):
        numbers = [int(reduced[at, column]) for column in range(len(place))]
        if any(numbers[: len(hidden)]):
            break
        tail = numbers[len(hidden) :]
        found.append({symbol: factor for symbol, factor in zip(inputs, tail, strict=True) if factor})
    return found[::-1]


def beyond(prime: int, learned: Sequence[Row], allowed: Sequence[Row]) -> list[Row]:
    """Return the rows of `learned` that are no combination of `allowed`, the shortest first."""
    symbols = sorted({symbol for row in (*learned, *allowed) for symbol in row})
    base = _rank(prime, allowed, symbols)
    outside = [row for row in learned if _rank(prime, [*allowed, row], symbols) > base]
    return sorted(outside, key=len)


def _rank(prime: int, rows: Sequence[Row], symbols: Sequence[int]) -> int:
    if not rows or not symbols:
        return 0
    entries = [row.get(symbol, 0) % prime for row in rows for symbol in symbols]
    return int(nmod_mat(len(rows), len(symbols), entries, prime).rank())


def words(prime: int, row: Mapping[int, int], names: Mapping[int, str]) -> str:
    """Return a combination in words, with its first coefficient made 1, and small fractions where there are any."""
    first = next(iter(row.values()))
    inverse = pow(first, -1, prime)
    parts = []
    for symbol, factor in row.items():
        over, under = _fraction(prime, factor * inverse % prime)
        size = "" if abs(over) == under == 1 else f"{abs(over)} " if under == 1 else f"{abs(over)}/{under} "
        parts.append(f"{'-' if over < 0 else '+'} {size}{names[symbol]}")
    return " ".join(parts).removeprefix("+ ")


def _fraction(prime: int, factor: int) -> tuple[int, int]:
    """Return a small fraction that is equal to a number modulo the prime, where there is one."""
    for under in range(1, 100):
        over = factor * under % prime
        signed = over if over <= prime // 2 else over - prime
        if abs(signed) < 1000:
            return signed, under
    return factor, 1
