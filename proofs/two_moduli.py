"""Masks that cancel modulo one number do not cancel modulo two, and an overflow is not always what spoils the sum.

Statement, on examples 1 and 2 of HeteroSAg. A message is y_i = x_i + Z_i modulo R_i, and its overflow is what the
modulus took away, R_i or 0.
(a) Two users with 2 levels, Z_1 = -Z_2 and R = 3: y_1 + y_2 is x_1 + x_2 modulo 3 in all 12 cases, and y_i is
    independent of x_i. With R = 2 one case fails. It is not indistinguishable from x_i: it can be 2, and no input is.
(b) With R_1 = 2, R_2 = 4, x = (1, 3) and the mask 1, which user 2 subtracts, the messages add up to 2 and not to 4.
(c) The mask 3 is one that a generator of user 2 gives, and none of user 1. Reduced modulo 2 and 4,
    one Z below 4 is a pair of masks that cancel modulo 4 only for Z = 0 and Z = 1.
(d) Table 1 is all triples of masks below 2, 6 and 6 with a sum of 0 modulo 6; each mask of a drawn triple is uniform.
(e) Masks (1, 1, 4) and inputs (1, 0, 0) give the sum 5 modulo 6, and not 1.
(f) Modulo 6 the sum is off by minus the overflows. Those of users 2 and 3 are 6 and vanish: the sum is distorted
    exactly when user 1 overflows. Of 216 cases 108 have an overflow, and 54 of them a distorted sum.
(g) In general it is distorted exactly when the overflows do not add up to 0 modulo D; where each R_i is a multiple of D
    it never is. So the failure comes from a modulus that D does not divide, and not from overflows.

Idea. All cases are counted, with fractions of the modulus as they are. (g) holds in general: each message is x_i + Z_i
less its overflow, and the masks add up to 0. It is run for three users with two levels, moduli from 2 to 6, and D
from 4 to 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.privacy.verdict import decide

CLAIMS = {
    "HET-EX1A": "enumeration",
    "HET-EX1B": "arithmetic",
    "HET-EX1C": "arithmetic",
    "HET-EX2A": "enumeration",
    "HET-EX2B": "arithmetic",
    "HET-EX2C": "enumeration",
}
MODULI, LEVELS, D = (2, 6, 6), (2, 3, 3), 6
TABLE_1 = {
    *((0, 1, 5), (0, 2, 4), (0, 3, 3), (0, 4, 2), (0, 5, 1), (0, 0, 0)),
    *((1, 1, 4), (1, 2, 3), (1, 3, 2), (1, 4, 1), (1, 5, 0), (1, 0, 5)),
}


def sent(inputs: Sequence[int], masks: Sequence[int], moduli: Sequence[int]) -> list[int]:
    """Return the messages."""
    return [(x + mask) % R for x, mask, R in zip(inputs, masks, moduli, strict=True)]


def overflows(inputs: Sequence[int], masks: Sequence[int], moduli: Sequence[int]) -> list[int]:
    """Return what each modulus took away."""
    plain = [x + mask for x, mask in zip(inputs, masks, strict=True)]
    return [value - y for value, y in zip(plain, sent(inputs, masks, moduli), strict=True)]


def tuples(moduli: Sequence[int], modulus: int) -> set[tuple[int, ...]]:
    """Return the masks, each below its modulus, with a sum of 0."""
    return {masks for masks in product(*map(range, moduli)) if sum(masks) % modulus == 0}


def prove(report: Report) -> dict[str, Finding]:
    """Decide all of it."""
    return {
        "HET-EX1A": one_modulus(report),
        "HET-EX1B": two_moduli(report),
        "HET-EX1C": impossible(report),
        "HET-EX2A": table(report),
        "HET-EX2B": distorted_example(report),
        "HET-EX2C": overflow(report),
    }


def one_modulus(report: Report) -> Finding:
    """Decide (a)."""
    exact, says_nothing = {}, {}
    for R in (2, 3):
        cases = [(x, sent(x, (Z, -Z), (R, R))) for x in product(range(2), repeat=2) for Z in range(R)]
        exact[R] = [sum(y) % R == sum(x) for x, y in cases]
        seen = [Counter((x[i], y[i]) for x, y in cases) for i in range(2)]
        says_nothing[R] = all(len(counted) == 2 * R and len(set(counted.values())) == 1 for counted in seen)
    report.say(f"one modulus: exact in {sum(exact[3])} of {len(exact[3])} cases with R = 3")
    report.check(exact[2].count(False) == 2, "(a) modulo 2 the inputs (1, 1) have a wrong sum, with each mask")
    ring = Ring(3)
    messages = np.array([[1, 0, 1], [0, 1, 2]], dtype=np.uint64)
    hidden = all(decide(ring, row[None, :2], row[None, 2:], messages[:0, :2]).private for row in messages)
    cancel = ring.sum(messages).tolist() == [1, 1, 0]
    report.agree("HET-EX1A", "matrices", hidden and cancel, "x_1 + Z and x_2 - Z: Z cancels, and hides each message")
    alike = {sent((x, 0), (Z, -Z), (3, 3))[0] for x, Z in product(range(2), range(3))}
    readings = {"independent": all(exact[3]) and says_nothing[3], "indistinguishable": alike == set(range(2))}
    case = {"inputs": list(range(2)), "messages": sorted(alike)}
    return Finding(by_reading(readings.values()), "R = 3 holds all sums", case, {"cases": len(exact[3])})


def two_moduli(report: Report) -> Finding:
    """Decide (b)."""
    messages = sent((1, 3), (1, -1), (2, 4))
    report.say(f"moduli 2 and 4: messages {messages}, the sum {sum(messages)} for 4")
    wrong = sum(messages) == 2 != 1 + 3
    sums = {Z: sum(sent((1, 3), (Z, -Z), (2, 4))) for Z in range(4)}
    report.agree("HET-EX1B", "enumeration", sums == {0: 4, 1: 2, 2: 2, 3: 0}, "(b) of all masks only 0 gives 4")
    return Finding("confirmed" if wrong else "refuted", "2 and not 4", None, {"messages": messages})


def impossible(report: Report) -> Finding:
    """Decide (c)."""
    cancel = [Z for Z in range(4) if (Z % 2 - Z % 4) % 4 == 0]
    report.agree("HET-EX1C", "enumeration", cancel == [0, 1], "(c) one number modulo 2 and 4 for Z = 0 and 1 only")
    holds = 3 not in range(2) and 3 in range(4)
    return Finding("confirmed" if holds else "refuted", "3 is below 4 and not below 2")


def table(report: Report) -> Finding:
    """Decide (d)."""
    found = tuples(MODULI, D)
    counts = [Counter(masks[i] for masks in found) for i in range(3)]
    uniform = all(len(count) == R and len(set(count.values())) == 1 for count, R in zip(counts, MODULI, strict=True))
    report.say(f"table 1: {len(found)} triples, uniform in each place: {uniform}")
    expected = [{Z: completions(place, Z) for Z in range(R)} for place, R in enumerate(MODULI)]
    printed = [Counter(masks[place] for masks in TABLE_1) for place in range(3)]
    report.agree("HET-EX2A", "symbolic", printed == expected, "the table has each mask as often as a polynomial says")
    verdict = "confirmed" if found == TABLE_1 and uniform else "refuted"
    return Finding(verdict, "all triples with the sum 0 modulo 6", None, {"triples": len(found)})


def completions(place: int, mask: int) -> int:
    """Return how many masks of the others give the sum 0: a coefficient of a product modulo x^D - 1."""
    sympy = package("sympy")
    x = sympy.Symbol("x")
    others = [sum(x**k for k in range(R)) for R in MODULI[:place] + MODULI[place + 1 :]]
    return int(sympy.rem(sympy.expand(x**mask * sympy.prod(others)), x**D - 1, x).subs(x, 0))


def distorted_example(report: Report) -> Finding:
    """Decide (e)."""
    total = sum(sent((1, 0, 0), (1, 1, 4), MODULI)) % D
    others = {sum(sent((1, 0, 0), masks, MODULI)) % D for masks in TABLE_1 if masks[0] == 1}
    report.agree("HET-EX2B", "enumeration", others == {5}, "(e) each of the six masks with 1 for user 1 gives 5")
    report.say(f"inputs (1, 0, 0), masks (1, 1, 4): the sum {total} for 1")
    return Finding("confirmed" if total == 5 else "refuted", "5 for 1", None, {"sum": total})


def overflow(report: Report) -> Finding:
    """Decide (f) and (g)."""
    tally, wrong, over = Tally(), 0, 0
    for inputs, masks in cases(LEVELS, MODULI):
        lost, distorted = overflows(inputs, masks, MODULI), is_distorted(inputs, masks, MODULI, D)
        wrong, over = wrong + distorted, over + any(lost)
        case = {"inputs": list(inputs), "masks": list(masks), "overflows": lost}
        tally.add(case, distorted == any(lost))
        report.check(distorted == (lost[0] > 0), f"(f) distorted exactly when user 1 overflows: {case}")
    report.say(f"{tally.cases} cases: an overflow in {over}, a distorted sum in {wrong}")
    others(report)
    numbers = {"cases": tally.cases, "with an overflow": over, "distorted": wrong}
    one_in_four = wrong == 2 * 3 * 3 * len(TABLE_1) // 4
    report.agree("HET-EX2C", "arithmetic", one_in_four, "x_1 = Z_1 = 1, a quarter of all, are distorted")
    return Finding(tally.verdict, "only an overflow of user 1 distorts", tally.against, numbers)


def others(report: Report) -> None:
    """Check (g) for three users, all moduli up to 6 and two levels each, without a sum above D - 1."""
    for moduli, modulus in product(product(range(2, 7), repeat=3), (4, 5, 6)):
        for inputs, masks in cases((2, 2, 2), moduli, modulus):
            lost, distorted = overflows(inputs, masks, moduli), is_distorted(inputs, masks, moduli, modulus)
            case = {"moduli": moduli, "D": modulus, "inputs": inputs, "masks": masks}
            report.check(distorted == (sum(lost) % modulus != 0), f"(g) the overflows decide: {case}")
            multiples = all(R % modulus == 0 for R in moduli)
            report.check(not (multiples and distorted), f"(g) multiples of D are not distorted: {case}")


def cases(
    levels: Sequence[int], moduli: Sequence[int], modulus: int = D
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield all inputs with all masks that cancel."""
    drawn = sorted(tuples(moduli, modulus))
    yield from product(product(*map(range, levels)), drawn)


def is_distorted(inputs: Sequence[int], masks: Sequence[int], moduli: Sequence[int], modulus: int) -> bool:
    """Return whether the messages have another sum than the inputs."""
    return (sum(sent(inputs, masks, moduli)) - sum(inputs)) % modulus != 0
