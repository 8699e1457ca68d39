"""Compute row modules over Z_R for any R >= 2, by Howell's normal form, in exact Python integers.

The rows of a matrix generate a submodule of Z_R^n. If R is composite, the usual echelon form does not describe this
module: modulo 4, twice the row (2, 1) is (0, 2), a row with a later leading entry that is in no row of the echelon
form. Howell's form contains such rows too. So its rows whose first k entries are 0 generate *all* members of the module
whose first k entries are 0, and the product of R / pivot over all rows is the number of members.

Source: Howell, "Spans in the module (Z_m)^s" (1986); Storjohann, "Algorithms for matrix canonical forms" (2000),
chapter 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import LengthMismatch, ParameterError

Row: TypeAlias = tuple[int, ...]


class RowModule:
    """The submodule of Z_R^width that rows generate, kept in Howell form.

    Parameters
    ----------
    modulus : int
        R >= 2.
    width : int
        The length n of a row.
    rows : iterable of sequences of int
        Generators; entries are taken modulo R.
    name : str
        What errors call the rows.

    Raises
    ------
    ParameterError
        R is below 2, the width is negative, or a row is no sequence of integers; all methods that take a row refuse it.
    LengthMismatch
        A row has another length; they refuse that, too.
    """

    def __init__(self, modulus: int, width: int, rows: Iterable[Sequence[int]] = (), *, name: str = "rows") -> None:
        self.modulus = validate.integer("modulus", modulus, 2)
        self.width = validate.integer("width", width, 0)
        self._pivots: dict[int, Row] = {}
        if not isinstance(rows, Iterable):
            raise ParameterError(name, validate.class_of(rows), "rows of integers")
        for at, row in enumerate(rows):
            self._add(self._taken(f"{name}[{at}]", row))

    @property
    def size(self) -> int:
        """The number of members."""
        return prod(self.modulus // row[column] for column, row in self._pivots.items())

    @property
    def rows(self) -> tuple[Row, ...]:
        """The Howell form: pivots divide R, and each entry above a pivot is smaller than the pivot."""
        reduced: list[tuple[int, Row]] = []
        for column in sorted(self._pivots):
            pivot = self._pivots[column]
            reduced = [(c, self._less(row, column, pivot)) for c, row in reduced]
            reduced.append((column, pivot))
        return tuple(row for _, row in reduced)

    def add(self, row: Sequence[int]) -> None:
        """Add a generator."""
        self._add(self._taken("row", row))

    def _add(self, row: Row) -> None:
        waiting = [row]
        while waiting:
            self._insert(waiting.pop(), waiting)

    def reduce(self, row: Sequence[int]) -> Row:
        """Return the remainder of a row: 0 exactly for the members of the module."""
        rest = self._taken("row", row)
        for column in sorted(self._pivots):
            rest = self._less(rest, column, self._pivots[column])
        return rest

    def __contains__(self, row: Sequence[int]) -> bool:
        return not any(self.reduce(row))

    def vanishing(self, columns: int) -> tuple[Row, ...]:
        """Return generators of the members whose first `columns` entries are 0, without these columns.

        Raises `ParameterError` for a number of columns that is not in [0, width].
        """
        columns = validate.integer("columns", columns, 0, self.width)
        return tuple(row[columns:] for row in self.rows if not any(row[:columns]))

    def _taken(self, name: str, row: Sequence[int]) -> Row:
        """Return a row of the caller modulo R."""
        entries = validate.sequence(name, row, "integers")
        if len(entries) != self.width:
            raise LengthMismatch(f"len({name})", len(entries), f"the width, {self.width}")
        whole = [
            entry if type(entry) is int else validate.secret_integer(f"{name}[{at}]", entry, "an integer")
            for at, entry in enumerate(entries)
        ]
        return self._combine(1, whole, 0, whole)

    def _insert(self, row: Row, waiting: list[Row]) -> None:
        """Insert one row into the form; add rows that follow from changed pivots to `waiting`."""
        for column in range(self.width):
            if not row[column]:
                continue
            pivot = self._pivots.get(column)
            if pivot is None:
                self._set(column, self._monic(row, column), waiting)
                return
            factor, rest = divmod(row[column], pivot[column])
            if rest:
                divisor, s, t = _bezout(pivot[column], row[column])
                self._set(column, self._combine(s, pivot, t, row), waiting)
                row = self._combine(pivot[column] // divisor, row, -(row[column] // divisor), pivot)
            else:
                row = self._combine(1, row, -factor, pivot)

    def _set(self, column: int, row: Row, waiting: list[Row]) -> None:
        self._pivots[column] = row
        if row[column] > 1:  # else R times the row follows, which is 0
            waiting.append(self._combine(self.modulus // row[column], row, 0, row))

    def _monic(self, row: Row, column: int) -> Row:
        """Multiply by a unit such that the entry in `column` becomes a divisor of R."""
        divisor = gcd(row[column], self.modulus)
        unit = pow(row[column] // divisor, -1, self.modulus // divisor) if divisor < self.modulus else 1
        while gcd(unit, self.modulus) > 1:
            unit += self.modulus // divisor
        return self._combine(unit, row, 0, row)

    def _less(self, row: Row, column: int, pivot: Row) -> Row:
        """Subtract the pivot row as many times as the pivot fits into the entry in `column`; usually 0 times."""
        if row[column] < pivot[column]:
            return row
        return self._combine(1, row, -(row[column] // pivot[column]), pivot)

    def _combine(self, a: int, left: Sequence[int], b: int, right: Sequence[int]) -> Row:
        """Return a * left + b * right modulo R; the remainder of Python's divmod is never negative."""
        return tuple(divmod(a * x + b * y, self.modulus)[1] for x, y in zip(left, right, strict=True))


def _bezout(a: int, b: int) -> tuple[int, int, int]:
    """Return (g, s, t) with g = gcd(a, b) = s * a + t * b."""
    s, next_s, t, next_t = 1, 0, 0, 1
    while b:
        quotient = a // b
        a, b = b, a - quotient * b
        s, next_s = next_s, s - quotient * next_s
        t, next_t = next_t, t - quotient * next_t
    return a, s, t


guard(__name__)
