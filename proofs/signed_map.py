"""Which integers survive the map phi into F_q and back.

Statement, for an odd prime q, with phi(x) = x for x >= 0 and q + x for x < 0, and phi^-1(y) = y for y < (q - 1)/2 and
y - q otherwise, as printed:
(a) c Q_c(x) is an integer; phi takes it to its residue modulo q as long as it is in the range that is decoded.
(b) phi(x) is an element of F_q exactly for the integers -q <= x < q.
(c) phi^-1(phi(x)) = x exactly for -(q + 1)/2 <= x <= (q - 3)/2: the range is not symmetric, and (q - 1)/2 comes back as
    -(q + 1)/2.
(d) With y <= (q - 1)/2 instead of y < (q - 1)/2 the range is -(q - 1)/2 ... (q - 1)/2, which is what the text decides.
(e) phi(x) for x < 0 is not the two's complement of x in the b bits that hold q, which is 2^b + x: it is smaller by
    2^b - q, which is 0 for no odd q. The decoding of the reference undoes phi, and not the two's complement. So the
    word is right when it means the complement modulo q, and wrong when it means what it means for words of bits.

Idea. All integers and half integers around 0 are tried for every odd prime up to 47, and the ends of the ranges for the
prime of the paper. For every q, (c) is two inequalities: x >= 0 comes back exactly when x < (q - 1)/2, and x < 0
exactly when q + x >= (q - 1)/2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

import numpy as np

from secagg_spec.arithmetic.modular import DEFAULT_PRIME, Ring
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.errors import OutOfRange
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BAS-EQ8": "enumeration",
    "BAS-EQ9": "enumeration",
    "BAS-EQ14": "enumeration",
    "BAS-TWOS": "readings",
}
PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def phi(x: Fraction | int, q: int) -> Fraction | int:
    """Return phi(x), eq. (9), as printed."""
    return x if x >= 0 else q + x


def phi_inverse(y: Fraction | int, q: int) -> Fraction | int:
    """Return phi^-1(y), eq. (14), as printed."""
    return y if y < Fraction(q - 1, 2) else y - q


def decoded_range(q: int) -> tuple[int, int]:
    """Return the first and the last integer that survive, as (c) says."""
    return -(q + 1) // 2, (q - 3) // 2


def is_element(y: Fraction | int, q: int) -> bool:
    """Whether a number is an element of F_q."""
    return Fraction(y).denominator == 1 and 0 <= y < q


def prove(report: Report) -> dict[str, Finding]:
    """Try all numbers in question."""
    return {
        "BAS-EQ8": quantised(report),
        "BAS-EQ9": into_the_field(report),
        "BAS-EQ14": round_trip(report),
        "BAS-TWOS": twos_complement(report),
    }


def quantised(report: Report) -> Finding:
    """Decide (a) with the code that quantises, and check that it refuses what is out of range."""
    tally, draws = Tally(), np.array([0.0, 0.3125, 0.5, 0.97])
    for q in PRIMES:
        ring, last = Ring(q), (q - 1) // 2
        for level in (1, 2, 4):
            for eighths in range(-8 * last // level, 8 * last // level + 1):
                x = Fraction(eighths, 8)
                beside = {floor(level * x), ceil(level * x)}
                if all(abs(n) <= last for n in beside):
                    got = {_quantised(float(x), level, ring, draw) for draw in draws}
                    tally.add({"q": q, "c": level, "x": str(x)}, got <= {phi(n, q) for n in beside})
    report.check(_quantised(3.0, 1, Ring(5), 0.5) is None, "the code refuses 3 at q = 5")
    report.say(
        f"phi(c Q_c(x)): {tally.held} of {tally.cases} numbers go to a residue of one of the integers beside c x"
    )
    return Finding(tally.verdict, "an integer in the range is carried as its residue", tally.against)


def _quantised(x: float, level: int, ring: Ring, draw: float) -> int | None:
    """Return what the code makes of a number; None where it refuses."""
    try:
        return int(quantize(np.array([x]), level=level, ring=ring, weight=1, rounding=np.array([draw]))[0])
    except OutOfRange:
        return None


def numbers(q: int) -> Iterator[Fraction]:
    """Yield the integers and half integers around 0; for the large prime those at the ends of the ranges."""
    if q < 100:
        yield from (Fraction(k, 2) for k in range(6 * q + 1))
        yield from (Fraction(-k, 2) for k in range(1, 6 * q + 1))
    else:
        ends = (-q, -(q + 1) // 2, 0, (q - 1) // 2, q)
        yield from (Fraction(2 * end + k, 2) for end in ends for k in range(-6, 7))


def into_the_field(report: Report) -> Finding:
    """Decide (b)."""
    tally = Tally()
    for q in (*PRIMES, DEFAULT_PRIME):
        for x in numbers(q):
            condition = x.denominator == 1 and -q <= x < q
            if condition:
                tally.add({"q": q, "x": str(x), "phi": str(phi(x, q))}, is_element(phi(x, q), q))
            report.check(is_element(phi(x, q), q) == condition, f"in F_q exactly for -q <= x < q: {x}, {q}")
    sympy = package("sympy")
    q_, x_ = sympy.symbols("q x", integer=True)
    ends = (sympy.solve(q_ + x_, x_), sympy.solve(q_ + x_ - (q_ - 1), x_)) == ([-q_], [-1])
    report.agree("BAS-EQ9", "symbolic", bool(ends), "q + x runs from 0 to q - 1 as x runs from -q to -1")
    report.say(f"phi: it lands in F_q for the {tally.held} integers from -q to q - 1, and for no other number")
    return Finding(tally.verdict, "the rounded numbers of eq. (8) that do not wrap are carried", tally.against)


def round_trip(report: Report) -> Finding:
    """Decide (c) and (d) for the integers -q <= x < q."""
    tally = Tally()
    for q in (*PRIMES, DEFAULT_PRIME):
        first, last = decoded_range(q)
        for x in (int(x) for x in numbers(q) if x.denominator == 1 and -q <= x < q):
            back = phi_inverse(phi(x, q), q)
            if first <= x <= last:
                tally.add({"q": q, "x": x, "decoded": int(back)}, back == x)
            report.check((back == x) == (first <= x <= last), f"(c) exactly in the range: {x}, {q}")
            own = int(Ring(q).decode_signed(np.array([phi(x, q)], dtype=np.uint64))[0])
            report.check((own == x) == (2 * abs(x) <= q - 1), f"the decoder of the text on {x} for q = {q}")
            report.check(
                (own == back) == (phi(x, q) != (q - 1) // 2), f"the decoders differ only at (q - 1)/2: {x}, {q}"
            )
        report.check(last - first + 1 == q, "the range has q integers")
    report.say(f"phi^-1 after phi: {tally.held} integers survive, -(q + 1)/2 ... (q - 3)/2, and no others")
    report.agree("BAS-EQ14", "symbolic", solved(), "the borders of both inequalities are the ends of (c)")
    first, last = decoded_range(DEFAULT_PRIME)
    numbers_found = {"first": first, "last": last}
    found = "the range is not symmetric: (q - 1)/2 is decoded as -(q + 1)/2"
    return Finding(tally.verdict, found, tally.against, numbers_found)


def solved() -> bool:
    """Return whether the borders of both inequalities are, for every q, the ends that (c) states."""
    sympy = package("sympy")
    q, x = sympy.symbols("q x")
    limit = (q - 1) / 2
    (first,), (beyond,) = sympy.solve(q + x - limit, x), sympy.solve(x - limit, x)
    return bool(sympy.expand(first + (q + 1) / 2) == 0 and sympy.expand(beyond - 1 - (q - 3) / 2) == 0)


def twos_complement(report: Report) -> Finding:
    """Decide (e) for the negative integers down to -q/2, with both readings of the word."""
    words, residues = Tally(), Tally()
    apart: dict[int, set[int]] = defaultdict(set)
    for q in (*PRIMES, DEFAULT_PRIME):
        bits = q.bit_length()
        for x in (int(x) for x in numbers(q) if x.denominator == 1 and -q < 2 * x < 0):
            written = int.from_bytes(x.to_bytes(8, "little", signed=True), "little") & (2**bits - 1)
            case = {"q": q, "x": x, "phi": int(phi(x, q)), "two's complement": written}
            words.add(case, phi(x, q) == written)
            back = int(Ring(q).decode_signed(np.array([phi(x, q)], dtype=np.uint64))[0])
            residues.add(case | {"decoded": back}, back == x)
            apart[q].add(written - int(phi(x, q)))
    (off,) = unsigned()
    shown = "words of 32 bits, read as unsigned, are 2^32 - q off"
    report.agree("BAS-TWOS", "arithmetic", apart[DEFAULT_PRIME] == {off}, shown)
    report.check(words.held == 0, "(e) for odd q it is never the word of b bits")
    report.say(f"phi is the word of b bits for {words.held} of {words.cases} negative integers,")
    report.say(f"and the residue that is decoded as x for {residues.held}")
    return Finding(residues.verdict, "the complement modulo q", residues.against, {"words of 32 bits are off by": off})


def unsigned() -> set[int]:
    """Return by how much signed words of 32 bits, read as unsigned ones, are larger than x + q."""
    words = np.arange(-1000, 0, dtype=np.int32)
    return set((words.view(np.uint32).astype(np.int64) - (words.astype(np.int64) + DEFAULT_PRIME)).tolist())
