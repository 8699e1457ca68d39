"""Decide what a linear view determines of the secrets, beyond what is allowed.

====================  ======================================================================
notation              here
====================  ======================================================================
v = A s + B r         the view; s are the secrets, r is uniform
L = {wA : wB = 0}     the functionals of the secrets that the view determines, a module
F                     the functionals that are allowed to be known, as rows
(L + F) / F           what is learned beyond them: `excess`
====================  ======================================================================

For uniform secrets I(s; v) = log |L| = log(|im [A|B]| / |im B|), and I(s; v | F s) = log(|L + F| / |F|). Over a field
these are ranks; over Z_R with a composite R they are not: v = 2 s modulo 4 reveals one bit, and v = s + 3 r modulo 6
reveals log2(3) bits; a rank modulo a prime shows neither. For composite R the sizes come from Howell's form.

Source: docs/explanation/privacy-verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, log2

import flint
import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch
from secagg_spec.privacy.echelon import eliminate, independent_rows, rank, reduced_basis
from secagg_spec.privacy.howell import Row, RowModule

_MANY_SECRETS = 64


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a view determines beyond what is allowed.

    Parameters
    ----------
    modulus : int
        R.
    secrets : tuple of str
        The names of the secrets, one for each column of `excess`.
    excess : array (k, secrets)
        Functionals that generate, modulo the allowed ones, what is learned beyond; none of them follows from the
        others. Over a field they are a basis.
    dimension : int
        The least number of functionals that generate it; over a field its dimension. `excess` can have more, for
        example 2 s[0] and 3 s[1] modulo 6, which follow from 2 s[0] + 3 s[1].
    index : int
        The number of values that they take together, given the allowed functionals: |L + F| / |F|.
    leak : int
        The number of values of everything that the view determines: |L|.
    withheld : int
        |L + F| / |L|: 1 when everything that is allowed is learned.
    several : bool
        Whether R is a common multiple of several moduli; then each functional is printed with its own modulus.
    """

    modulus: int
    secrets: tuple[str, ...]
    excess: UintArray
    dimension: int
    index: int
    leak: int
    withheld: int
    several: bool = False

    @property
    def private(self) -> bool:
        """Whether nothing is learned beyond what is allowed."""
        return self.index == 1

    @property
    def bits(self) -> float:
        """The information about uniform secrets beyond what is allowed, in bits."""
        return log2(self.index)

    @cached_property
    def functionals(self) -> tuple[str, ...]:
        """The functionals in readable form, such as ``x_2[0] + x_3[0]``."""
        if not self.several:
            return tuple(readable(row, self.secrets, self.modulus) for row in self.excess)
        rows = ((row, gcd(self.modulus, *map(int, row))) for row in self.excess)
        reduced = ((row // common, self.modulus // common) for row, common in rows)
        return tuple(f"{readable(row, self.secrets, modulus)} modulo {modulus}" for row, modulus in reduced)


def decide(ring: Ring, A: UintArray, B: UintArray, allowed: UintArray, secrets: Sequence[str] | None = None) -> Verdict:
    """Decide what the view A s + B r determines beyond the functionals `allowed`.

    Parameters
    ----------
    ring : Ring
        The integers modulo R. A `PrimeField` is decided by ranks, any other ring by Howell's form.
    A : array (m, n)
        The coefficients of the n secrets in the m entries of the view.
    B : array (m, k)
        The coefficients of the k uniform symbols.
    allowed : array (f, n)
        Functionals that are allowed to be known; f may be 0.
    secrets : sequence of str, optional
        The names of the secrets; ``s[0]``, ``s[1]``, … when left out.

    Raises
    ------
    ParameterError
        A name is no text.
    LengthMismatch, NonCanonical
        The shapes of the arrays do not match, there is not one name for each secret, or an array holds numbers outside
        ``[0, R)``.
    """
    A = ring.check("A", A, (None, None))
    B = ring.check("B", B, (A.shape[0], None))
    allowed = ring.check("allowed", allowed, (None, A.shape[1]))
    names = tuple(f"s[{i}]" for i in range(A.shape[1]))
    if secrets is not None:
        names = _names("secrets", secrets)
        if len(names) != A.shape[1]:
            raise LengthMismatch("len(secrets)", len(names), f"{A.shape[1]}, one name for each secret")
    if isinstance(ring, PrimeField):
        return _over_field(ring, A, B, allowed, names)
    rows = np.concatenate([B, A], axis=1).tolist()
    return decide_rows(ring.modulus, rows, B.shape[1], allowed.tolist(), names)


def readable(row: UintArray, names: Sequence[str], modulus: int) -> str:
    """Return a functional as a sum, with coefficients of the smallest magnitude.

    Raises
    ------
    ParameterError
        The row is no array of integers in [0, modulus) with one axis, or a name is no text.
    LengthMismatch
        There is not one name for each coefficient.
    """
    validate.array_shape("row", validate.array("row", row, None), (None,))
    modulus, names = validate.integer("modulus", modulus, 1), _names("names", names)
    entries = [validate.integer("row", entry, 0, modulus - 1) for entry in row.tolist()]
    if len(row) != len(names):
        raise LengthMismatch("len(names)", len(names), f"{len(row)}, one name for each coefficient")
    text = ""
    for coefficient, name in zip(entries, names, strict=True):
        if coefficient:
            signed = coefficient if coefficient <= modulus // 2 else coefficient - modulus
            sign = "-" if signed < 0 else "+"
            term = name if abs(signed) == 1 else f"{abs(signed)}*{name}"
            text += f" {sign} {term}" if text else f"{'-' if signed < 0 else ''}{term}"
    return text or "0"


# ------------------------------------------------------------------------------------------------ prime fields


def _over_field(field: PrimeField, A: UintArray, B: UintArray, allowed: UintArray, names: tuple[str, ...]) -> Verdict:
    leak = eliminate(field, np.concatenate([B, A], axis=1), B.shape[1]).rest[:, B.shape[1] :]
    both = np.concatenate([allowed, leak])
    base, learned, joined = rank(field, allowed), rank(field, leak), rank(field, both)
    excess = _sparse_basis(field, leak, allowed, names) if joined > base else leak[:0]
    assert len(excess) == joined - base
    q = field.modulus
    return Verdict(q, names, excess, joined - base, q ** (joined - base), q**learned, q ** (joined - learned))


def _sparse_basis(field: PrimeField, leak: UintArray, allowed: UintArray, names: tuple[str, ...]) -> UintArray:
    """Return functionals with few terms that extend a basis of the allowed ones to a basis of all that is learned.

    Among functionals with equally many terms, those that mention fewer users come first.
    """
    candidates = np.concatenate(list(_candidates(field, leak, allowed)))
    order = sorted(range(len(candidates)), key=lambda row: _complexity(candidates[row].tolist(), names))
    ordered = np.concatenate([allowed, candidates[order]])
    chosen = [row for row in independent_rows(field, ordered) if row >= len(allowed)]
    return ordered[chosen]


def _complexity(row: Sequence[int], names: tuple[str, ...]) -> tuple[int, int]:
    mentioned = [name for name, entry in zip(names, row, strict=True) if entry]
    return len(mentioned), len({name.partition("[")[0] for name in mentioned})


def _candidates(field: PrimeField, leak: UintArray, allowed: UintArray) -> Iterator[UintArray]:
    """Yield reduced bases of what is learned, for several orders of the secrets."""
    together, width = np.concatenate([leak, allowed]), leak.shape[1]
    yield reduced_basis(field, together)
    if width <= _MANY_SECRETS:
        yield _monic(field, reduced_basis(field, together[:, ::-1])[:, ::-1])


def _monic(field: PrimeField, rows: UintArray) -> UintArray:
    """Scale nonzero rows such that their first nonzero entry is 1."""
    first = rows[np.arange(len(rows)), (rows != 0).argmax(axis=1)]
    factors = field.inverse(np.ascontiguousarray(first))
    return field.multiply(np.ascontiguousarray(rows), np.broadcast_to(factors[:, np.newaxis], rows.shape))


# ---------------------------------------------------------------------------------------------- composite moduli


def _names(argument: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return names of secrets when each is text."""
    given = tuple(validate.sequence(argument, names, "names"))
    return tuple(validate.instance(f"{argument}[{at}]", name, str) for at, name in enumerate(given))


def decide_rows(
    R: int,
    rows: Iterable[Sequence[int]],
    noise: int,
    allowed: Iterable[Sequence[int]],
    names: tuple[str, ...],
    *,
    several: bool = False,
) -> Verdict:
    """Decide modulo any R >= 2 what rows reveal; the first `noise` entries of each belong to uniform symbols.

    If something is learned, a divisor of R is factored, which takes long if two of its prime factors are large.

    Raises
    ------
    ParameterError
        R is no integer of at least 2, `noise` none of at least 0, a name is no text, or a row has no integers.
    LengthMismatch
        A row has another length than `noise` and the names say.
    """
    R, names = validate.integer("R", R, 2), _names("names", names)
    noise = validate.integer("noise", noise, 0, validate.MAX_COUNT)
    width = len(names)
    free = RowModule(R, noise + width, rows).vanishing(noise)
    leak, base = RowModule(R, width, free), RowModule(R, width, allowed, name="allowed")
    joined = RowModule(R, width, [*base.rows, *leak.rows])
    index, withheld = joined.size // base.size, joined.size // leak.size
    excess = _generators(joined, base, names)
    matrix = np.array(excess, dtype=object if several or R > 2**64 else np.uint64).reshape(len(excess), width)
    return Verdict(R, names, matrix, _fewest(joined, base), index, leak.size, withheld, several)


def _fewest(joined: RowModule, base: RowModule) -> int:
    """Return the least number of rows that generate `joined` together with `base`.

    It is the largest dimension of their quotient modulo a prime p.
    """
    R, width, index = joined.modulus, joined.width, joined.size // base.size
    found = 0
    for p in (int(prime) for prime, _ in flint.fmpz(gcd(R, index)).factor()):
        multiples = ([p * entry for entry in row] for row in joined.rows)
        left = joined.size // RowModule(R, width, [*base.rows, *multiples]).size
        found = max(found, next(k for k in range(left.bit_length()) if p**k == left))
    return found


def _generators(joined: RowModule, base: RowModule, names: tuple[str, ...]) -> list[Row]:
    """Return rows with few terms that generate `joined` together with `base`; none of them follows from the others.

    They are rows of Howell's form; combinations of them may have fewer terms.
    """
    R, width = base.modulus, base.width
    covered = RowModule(R, width, base.rows)
    chosen: list[Row] = []
    for row in sorted(joined.rows, key=lambda row: _complexity(row, names)):
        if row not in covered:
            covered.add(row)
            chosen.append(row)
    assert covered.size == joined.size
    if joined.size < base.size * R ** len(chosen):
        for row in chosen[::-1]:
            others = [other for other in chosen if other is not row]
            chosen = others if row in RowModule(R, width, [*base.rows, *others]) else chosen
    return chosen


guard(__name__)
