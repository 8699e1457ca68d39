"""A sign beside a magnitude is no obstacle to adding in a field; a scale for each user is.

Statement. Let a quantiser send for each entry a sign, a level l from 0 to s, and one scale r > 0 for the vector; the
entry is sign r l / s. QSGD, which BASecAgg sets aside for its signs, is of this form, with the norm of the vector as r.
(a) The sum of the signs, as bits, and that of the levels, modulo whatever, do not determine the sum.
(b) The integer sign l, mapped by phi, is added without error: with one scale for all users the sum of the entries is
    the sum of these integers times r/s, exactly as with eq. (8).
(c) With a scale of each user's own, the sum of the integers does not determine the sum of the entries.
So QSGD, in which each user divides by its own norm, cannot be used as it is: the conclusion of the paper stands. Its
reason, separate signs, falls; that scales differ is the reason.

Idea. All signs and levels of two users, over the map and the sum of the reference. The conclusion stands when (c)
holds, and its reason falls when (b) holds; neither is taken for granted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BAS-QSGD": "enumeration",
}
Sent = tuple[int, int]
"""A sign, 1 or -1, and a level."""


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c) for two users with up to three levels."""
    reason = signs()
    report.check(not parts_decide(), "(a) the sums of the parts do not determine the sum")
    shown = "with one scale the sum of entries is r/s times that of integers; else it changes while that does not"
    report.agree("BAS-QSGD", "symbolic", scale_decides(), shown)
    report.say(f"sign and level as one integer: a wrong sum in {reason.held} of {reason.cases} cases with a minus")
    works = reason.verdict == "refuted" and one_scale_decides(Fraction(3))
    verdict = "refuted" if scales_decide() else "imprecise" if works else "confirmed"
    return {"BAS-QSGD": Finding(verdict, "own scales forbid it, and not signs", reason.against)}


def signs() -> Tally:
    """Count the sums with a negative number that go wrong when sign and level are sent as one integer."""
    wrong = Tally()
    for s in (1, 2, 3):
        for first, second in product(entries(s), repeat=2):
            exact = first[0] * first[1] + second[0] * second[1]
            own = decoded(first, second)
            case = {"levels": s, "sent (sign, level)": [list(first), list(second)], "sum": exact, "decoded": own}
            if first[0] < 0:
                wrong.add(case, own != exact)
    return wrong


def entries(s: int) -> Iterator[Sent]:
    """Yield what can be sent of an entry: a sign and a level; 0 has one sign."""
    yield (1, 0)
    yield from product((1, -1), range(1, s + 1))


def parts_decide() -> bool:
    """Return whether the sums of sign bits and of levels determine the sum, for s = 2."""
    found = defaultdict(set)
    for first, second in product(entries(2), repeat=2):
        parts = ((first[0] < 0) + (second[0] < 0), first[1] + second[1])
        found[parts].add(first[0] * first[1] + second[0] * second[1])
    return all(len(totals) == 1 for totals in found.values())


def decoded(first: Sent, second: Sent) -> int:
    """Return what the field of 13 elements gives for the sum of both integers."""
    field = PrimeField(13)
    residues = field.encode_signed(np.array([[sign * level] for sign, level in (first, second)], dtype=np.int64))
    return int(field.decode_signed(field.sum(residues))[0])


def sums(scales: tuple[Fraction, Fraction]) -> dict[int, set[Fraction]]:
    """Return, for each sum of the integers, the sums of the entries that go with it, for s = 2."""
    found: dict[int, set[Fraction]] = defaultdict(set)
    for both in product(entries(2), repeat=2):
        values = [r * sign * level / 2 for r, (sign, level) in zip(scales, both, strict=True)]
        found[decoded(*both)].add(sum(values, Fraction(0)))
    return found


def one_scale_decides(r: Fraction) -> bool:
    """Return whether each sum of integers stands for r/2 times itself."""
    return all(values == {r * total / 2} for total, values in sums((r, r)).items())


def scales_decide() -> bool:
    """Return whether the sum of integers determines the sum of entries when the scales are 1 and 2."""
    return all(len(values) == 1 for values in sums((Fraction(1), Fraction(2))).values())


def scale_decides() -> bool:
    """Return whether (b) and (c) hold for all integers a and b - a that sum to b, and all scales."""
    sympy = package("sympy")
    a, b, r, other, s = sympy.symbols("a b r other s", positive=True)
    entries_sum = r * a / s + other * (b - a) / s
    same = sympy.simplify(entries_sum.subs(other, r) - r * b / s) == 0
    moves = sympy.simplify(sympy.diff(entries_sum, a) - (r - other) / s) == 0
    return bool(same and moves)
