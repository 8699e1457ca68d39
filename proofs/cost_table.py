"""Table 4 of HeteroSAg is not what its formula gives; the shapes of tables 5 and 6 fit.

Statement. Figure 2 with n = 5, levels 2, 6, 8, 10, 12, m = 79510 elements, 200 rounds; costs are in Mb for each user.
(a) The formula, sum_l |x^l| ceil(log2(|S|(K - 1) + 1)), gives 19, 27, 30, 30, 30 bits for five elements of a user of
    group 0 to 4, 19 with K = 2 and 179 with K = 2^32: 60.4, 85.9, 95.4, 95.4, 95.4; 60.4; 569.3 Mb. A global model of
    32 bits an element, in each round, adds 508.9.
(b) So the printed 53, 90 and 279 are less than the masked models alone, whatever a global model takes; 279 is less than
    32 bits an element are, which is 508.9 Mb, or 485.3 in units of 2^20.
(c) No reading, of logarithms rounded up or not, units of 10^6 or 2^20, 200 or 100 rounds, a global model of no bits, 32
    bits, 32 bits once or as large as the masked model, cut off, rounded or rounded up, gives all seven, or more than
    two. With logarithms not rounded up the masked models take 52.2 Mb in 200 rounds for K = 2 (53 when rounded up), and
    279.2 in 100 rounds for K = 2^32: each of the two comes out, under other readings. 101 is 1.9 times 53, and 30 bits
    are 1.6 times 19: no unit, number of rounds or global model that is the same for all gives both.
(d) The group with 1 Mb/s needs the longest when all others have 2 Mb/s or more: 53 s of 53 Mb, above 101/2; also for
    (a).
(e) 279/53 = 5.26 is 5.2 cut off. By (a) the ratio is 9.4, and 1.9 with the global model: 5.2 in no reading of (c).
(f) 784 x 100 x 10 with biases are 79510 numbers. A picture of 32 x 32 goes 30, 10, 7, 1 through table 6, which leaves
    64 features, the input of fc1; with biases they are 117706 numbers.
(g) 75 groups of 4 are 300 users, and 18 = ceil(75/4) - 1.
(h) y - 9 is a label for y = 9 only. 9 - y is a permutation of the labels.
(i) "No quantisation" is numbers of 32 bits in section 5.1 and K = 2^32 in appendix J.1. Of the numbers of 32 bits from
    -1 to 1 two are among 2^32 equally spaced ones, -1 and 1: with n steps (2k - n)/n has a power of 2 below the line
    when n/gcd(n, 2^149) divides 2k - n, for gcd(n, 2^149) + 1 of all k, and 2^32 - 1 is odd. And K = 2^32 takes 36 bits
    under the masks of 10 users, and 35 under those of 5.
(j) Group 0 has K_0 in each segment, whatever the other groups have, so that it sends as many bits as with K_0 for all.
(k) 0.02/(1 + 0.02 t) is 1/201 for t = 151, a quarter of the 0.02 of round 150; counted from round 150 it goes down by
    two per cent.
(l) With 20 users in each group, as for CIFAR-10, the ratio of (e) is 189/29 = 6.5, and 1.85 with a global model; in no
    reading of (c) is it 5.4: for that a user would receive 1.3 to 1.6 bits an element.

Idea. The reference counts the bits of (a) for its own plan. The readings are run through, with exact bits and, where
the logarithm is not rounded up, with binary64, none of whose results is near the edge of a rounding. (j) is run for 2
to 12 groups and both matrices. All else is about the numbers of the paper alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import ceil, floor, gcd, log2

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.segments import cyclic
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.protocols.heterosag import costs
from secagg_spec.protocols.heterosag.plan import Parameters

CLAIMS = {
    "HET-TAB4": "readings",
    "HET-TAB4B": "arithmetic",
    "HET-52X": "readings",
    "HET-54X": "readings",
    "HET-TAB5": "arithmetic",
    "HET-TAB6": "arithmetic",
    "HET-EXP2C": "arithmetic",
    "HET-EXP2L": "enumeration",
    "HET-NOQ": "readings",
    "HET-SAME": "enumeration",
    "HET-LR": "arithmetic",
}
GROUPS, N_GROUP, ROUNDS = 5, 5, 200
HETEROGENEOUS = (2, 6, 8, 10, 12)
PRINTED = (53, 87, 90, 97, 101, 53, 279)
NAMES = ("group 0", "group 1", "group 2", "group 3", "group 4", "K = 2", "K = 2^32")
ROUNDINGS: Mapping[str, Callable[[float], int]] = {"cut off": floor, "rounded": round, "rounded up": ceil}
MNIST = ((784, 100), (100, 10))
CIFAR_CONV, CIFAR_FULL = ((3, 16, 3, 3), (16, 64, 4, 4)), ((64, 384), (384, 192), (192, 10))
POOLS, PICTURE = (3, 4), 32


def dense(shapes: tuple[tuple[int, int], ...]) -> int:
    """Return the numbers of fully connected layers, biases included."""
    return sum(before * after + after for before, after in shapes)


ELEMENTS = dense(MNIST)


def moduli(levels: tuple[int, ...], group: int, n: int = N_GROUP) -> list[int]:
    """Return the modulus of each segment of a user of a group of n users, with figure 2."""
    cells = [next(cell for cell in row if group in cell) for row in cyclic(GROUPS)]
    return [n * len(cell) * (levels[cell[0]] - 1) + 1 for cell in cells]


def rows() -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield levels and group of each number of the table."""
    yield from ((HETEROGENEOUS, group) for group in range(GROUPS))
    yield from (((K,) * GROUPS, 0) for K in (2, 2**32))


def bits_of(modulus: int) -> int:
    """Return the bits of a number below a modulus, which may be above 2**32: the paper's K = 2^32 makes it so."""
    return (modulus - 1).bit_length()


def up(rounded_up: bool, n: int = N_GROUP) -> list[float]:
    """Return the bits of a masked model, for each number of the table, with groups of n users."""
    length = ELEMENTS // GROUPS
    width: Callable[[int], float] = bits_of if rounded_up else log2
    return [length * sum(width(R) for R in moduli(levels, group, n)) for levels, group in rows()]


def readings(n: int = N_GROUP, all_rounds: int = ROUNDS) -> Iterator[tuple[dict[str, object], list[float]]]:
    """Yield each reading with its costs in Mb, not rounded."""
    for rounded_up, unit, rounds, model in product(
        (True, False), (10**6, 2**20), (all_rounds, all_rounds // 2), ("none", "32 bits", "once", "as masked")
    ):
        once = 32 * ELEMENTS if model == "once" else 0
        down = 32 * ELEMENTS if model == "32 bits" else 0
        both = 2 if model == "as masked" else 1
        found = [(rounds * (both * bits + down) + once) / unit for bits in up(rounded_up, n)]
        yield {"logarithm rounded up": rounded_up, "unit": unit, "rounds": rounds, "global model": model}, found


def prove(report: Report) -> dict[str, Finding]:
    """Decide all of it."""
    formula(report)
    return {
        "HET-TAB4": table(report),
        "HET-TAB4B": time(report),
        "HET-52X": ratio(report),
        "HET-54X": cifar_ratio(report),
        "HET-TAB5": mnist(report),
        "HET-TAB6": cifar(report),
        "HET-EXP2C": byzantine(report),
        "HET-EXP2L": labels(report),
        "HET-NOQ": floats(report),
        "HET-SAME": same_bits(report),
        "HET-LR": rate(report),
    }


def formula(report: Report) -> None:
    """Check (a), against the reference where K is one that it takes."""
    length, bits = ELEMENTS // GROUPS, up(True)
    report.check([b // length for b in bits] == [19, 27, 30, 30, 30, 19, 179], "(a) bits of five elements")
    for levels in (HETEROGENEOUS, (2,) * GROUPS):
        p = Parameters(25, 5, 1, 13, ELEMENTS, (5,) * 5, (1,) * 5, levels, Range(-1.0, 1.0), "cyclic")
        wanted = [b for b, (of, _) in zip(bits, rows(), strict=True) if of == levels]
        report.check([costs.masked_bits(p, 5 * g) for g in range(len(wanted))] == wanted, "(a) as the reference counts")
    report.say("the formula, Mb: " + ", ".join(f"{ROUNDS * b / 10**6:.1f}" for b in bits))


def table(report: Report) -> Finding:
    """Decide (b) and (c)."""
    least = Fraction(PRINTED[4] - 1, PRINTED[0] + 1)
    most = max(bits[4] / bits[0] for bits in (up(True), up(False)))
    report.agree("HET-TAB4", "arithmetic", most < least, "(c) 101/53 is more than bits, and what all receive, can give")
    masked = dict(zip(NAMES, (ROUNDS * b / 10**6 for b in up(True)), strict=True))
    report.check(all(masked[name] > 53 for name in ("group 0", "K = 2")), "(b) 53 is less than the masked models")
    report.check(ROUNDS * 32 * ELEMENTS / 2**20 > 279, "(b) 279 is less than 32 bits an element")
    most = 0
    seen: set[str] = set()
    for reading, found in readings():
        for way, rounding in ROUNDINGS.items():
            report.check(all(abs(x - round(2 * x) / 2) > 1e-6 for x in found), f"no edge of a rounding: {reading}")
            hits = [name for name, x, p in zip(NAMES, found, PRINTED, strict=True) if rounding(x) == p]
            most, seen = max(most, len(hits)), seen | set(hits)
            if hits:
                report.say(f"{', '.join(hits)}: {reading}, {way}")
    report.check(most <= 2, "(c) no reading gives more than two of the seven")
    numbers = {
        "formula": [f"{x:.1f}" for x in masked.values()],
        "global model of 32 bits": f"{ROUNDS * 32 * ELEMENTS / 10**6:.1f}",
        "most in one reading": most,
        "in no reading": [f"{name}: {p}" for name, p in zip(NAMES, PRINTED, strict=True) if name not in seen],
    }
    case = {"K": "2^32", "printed": 279, "32 bits an element": "508.9", "masked models": f"{masked['K = 2^32']:.1f}"}
    below = [name for name, p in zip(NAMES, PRINTED, strict=True) if p < floor(masked[name])]
    report.check(below == ["group 0", "group 2", "K = 2", "K = 2^32"], "(b) less than the masked models alone")
    verdict = "refuted" if below else "confirmed" if most == len(PRINTED) else "imprecise"
    return Finding(verdict, "less than the masked models alone, whatever the global model takes", case, numbers)


def time(report: Report) -> Finding:
    """Decide (d): a cost over a rate is at most the cost over the least rate."""
    computed = [ROUNDS * b / 10**6 for b in up(True)]
    holds = [max(of[1:5]) / 2 < of[0] for of in (PRINTED, computed)]
    slow = all(max(found[1:5]) / 2 <= found[0] for _, found in readings())
    report.agree("HET-TAB4B", "readings", slow, "(d) in each reading of the formula, with the global model or without")
    report.say(f"group 0 takes {PRINTED[0]} s, the others at most {max(PRINTED[1:5]) / 2} s")
    return Finding("confirmed" if all(holds) else "refuted", "group 0 takes the longest")


def ratio(report: Report) -> Finding:
    """Decide (e)."""
    printed = Fraction(PRINTED[6], PRINTED[0])
    found = {str(reading): costs[6] / costs[0] for reading, costs in readings()}
    near = [reading for reading, value in found.items() if Fraction(515, 100) <= value < Fraction(53, 10)]
    ways = [way for way, rounding in ROUNDINGS.items() if rounding(float(10 * printed)) == 52]
    masked, both = up(True), [b + 32 * ELEMENTS for b in up(True)]
    numbers = {
        "printed": f"{float(printed):.3f}",
        "masked models": f"{masked[6] / masked[0]:.2f}",
        "with a global model": f"{both[6] / both[0]:.2f}",
    }
    report.say(
        f"279/53 = {float(printed):.3f}, 5.2 when {ways}; ratios near it in {len(near)} of {len(found)} readings"
    )
    report.check(ways == ["cut off"], "(e) it is 5.2 cut off")
    limits = (Fraction(515, 100), Fraction(53, 10))
    solved = any(gives(limits, rounded_up, N_GROUP, ROUNDS) for rounded_up in (True, False))
    report.agree("HET-52X", "arithmetic", solved == bool(near), "(e) what would have to be received")
    return Finding("confirmed" if near else "imprecise", "of the printed numbers, cut off", None, numbers)


def cifar_ratio(report: Report) -> Finding:
    """Decide (l): the quotient of two times does not depend on how many numbers a model has."""
    found = [costs[6] / costs[0] for _, costs in readings(20, 250)]
    near = [value for value in found if Fraction(535, 100) <= value < Fraction(55, 10)]
    masked, both = up(True, 20), [b + 32 * ELEMENTS for b in up(True, 20)]
    ratios = {
        "masked models": f"{masked[6] / masked[0]:.2f}",
        "with a global model": f"{both[6] / both[0]:.2f}",
    }
    report.say(f"100 users in five groups: {ratios}; near 5.4 in {len(near)} of {len(found)} readings")
    limits = (Fraction(535, 100), Fraction(55, 10))
    solved = any(gives(limits, rounded_up, 20, 250) for rounded_up in (True, False))
    report.agree("HET-54X", "arithmetic", not solved, "(l) what would have to be received")
    return Finding("confirmed" if near else "imprecise", "6.5 times by the formula", None, ratios)


def gives(limits: tuple[Fraction, Fraction], rounded_up: bool, n: int, rounds: int) -> bool:
    """Return whether a reading has the bits received by which the ratio would be within limits, solved for them."""
    bits = up(rounded_up, n)
    wanted = [float(bits[6] - r * bits[0]) / float(r - 1) / ELEMENTS for r in reversed(limits)]
    return any(wanted[0] < received <= wanted[1] for received in (0, 32 / rounds, 64 / rounds, 32))


def mnist(report: Report) -> Finding:
    """Decide the first half of (f)."""
    weights = sum(before * after for before, after in MNIST)
    report.say(f"table 5: {ELEMENTS} numbers, {weights} without biases")
    report.check(ELEMENTS % GROUPS == 0, "five equal segments")
    return Finding("confirmed" if ELEMENTS == 79510 else "refuted", "with biases", None, {"d": ELEMENTS})


def cifar(report: Report) -> Finding:
    """Decide the second half of (f)."""
    sides, channels, count = [PICTURE], CIFAR_CONV[0][0], dense(CIFAR_FULL)
    for (before, after, height, width), pool in zip(CIFAR_CONV, POOLS, strict=True):
        report.check((before, height) == (channels, width), "(f) channels follow on each other")
        sides += [sides[-1] - height + 1, (sides[-1] - height + 1 - pool) // pool + 1]
        channels, count = after, count + before * after * height * width + after
    report.say(f"table 6: sides {sides}, {count} numbers")
    fits = channels * sides[-1] ** 2 == CIFAR_FULL[0][0] and sides == [32, 30, 10, 7, 1]
    return Finding("confirmed" if fits else "refuted", "the shapes fit", None, {"sides": sides, "d": count})


def byzantine(report: Report) -> Finding:
    """Decide (g)."""
    G, n, B, N = 75, 4, 18, 300
    report.say(f"{G} groups of {n}: {G * n} users; ceil({G}/4) - 1 = {ceil(Fraction(G, 4)) - 1}")
    sums = min(len(row) for row in cyclic(G))
    most = max(b for b in range(G) if sums - b > b)
    report.agree(
        "HET-EXP2C", "enumeration", most == B, f"(g) {sums} sums in the rows of the matrix: 18 faulty are fewer"
    )
    holds = G * n == N and ceil(Fraction(G, 4)) - 1 == B
    return Finding("confirmed" if holds else "refuted", "the most that the bound allows")


def floats(report: Report) -> Finding:
    """Decide (i): whether the numbers of one reading are those of the other, and as long."""
    intervals = 2**32 - 1
    counted = [sum(is_float(Fraction(2 * k - n, n)) for k in range(n + 1)) for n in range(1, 200)]
    right = counted == [gcd(n, 2**149) + 1 for n in range(1, 200)]
    report.agree("HET-NOQ", "enumeration", right, "(i) gcd(n, 2^149) + 1 of n + 1 levels are numbers of 32 bits")
    levels = gcd(intervals, 2**149) + 1
    values = 2 * (127 * 2**23) + 1
    bits = [bits_of(users * intervals + 1) for users in (2 * N_GROUP, N_GROUP)]
    report.say(f"of {values} numbers of 32 bits from -1 to 1, {levels} are levels; under masks a level has {bits} bits")
    one = values == levels and bits == [32, 32]
    numbers = {"numbers of 32 bits": values, "that are levels": levels, "bits": bits}
    return Finding("confirmed" if one else "imprecise", "two different things", None, numbers)


def is_float(x: Fraction) -> bool:
    """Return whether binary32 has a number: its denominator is a power of 2, and its numerator has 24 bits."""
    return x.denominator & (x.denominator - 1) == 0 and abs(x.numerator) < 2**24


def same_bits(report: Report) -> Finding:
    """Decide (j), with levels of the paper and beyond."""
    tally = Tally()
    for G, name in product(range(2, 13), ("cyclic", "perfect")):
        different, alike = (
            costs.masked_bits(Parameters(5 * G, 1, 1, 3, 4 * G, (5,) * G, (1,) * G, K, Range(-1.0, 1.0), name), 0)
            for K in (tuple(range(2, 2 + 2 * G, 2)), (2,) * G)
        )
        tally.add({"G": G, "matrix": name, "bits": [different, alike]}, different == alike)
    report.check(PRINTED[0] == PRINTED[5], "(j) in the table as well")
    one = moduli(HETEROGENEOUS, 0) == moduli((HETEROGENEOUS[0],) * GROUPS, 0)
    report.agree("HET-SAME", "arithmetic", one, "(j) the moduli of group 0, from figure 2")
    report.say(f"group 0 sends as many bits as with K = 2 for all, in {tally.held} of {tally.cases} plans")
    return Finding(tally.verdict, "group 0 has K_0 in each segment", tally.against)


def rate(report: Report) -> Finding:
    """Decide (k): the rate of round 151 over that of round 150."""
    start = Fraction(2, 100)
    printed, shifted = (start / (1 + start * t) for t in (151, 151 - 150))
    falls = {"printed": f"{float(printed / start):.3f}", "from round 150": f"{float(shifted / start):.3f}"}
    report.say(f"the learning rate of round 151 over that of round 150: {falls}")
    report.check(shifted / start > Fraction(97, 100), "(k) gradual, counted from round 150")
    t = package("sympy").Symbol("t", positive=True)
    tenth = package("sympy").solve(1 / (1 + t / 50) - package("sympy").Rational(9, 10), t)
    report.agree("HET-LR", "symbolic", bool(tenth[0] < 6), "(k) the rule is below 9/10 of the rate from t = 50/9 on")
    gradual = printed / start > Fraction(9, 10)
    return Finding("confirmed" if gradual else "imprecise", "it falls to a quarter at once", None, falls)


def labels(report: Report) -> Finding:
    """Decide (h)."""
    digits = range(10)
    kept = [y for y in digits if y - 9 in digits]
    report.check(sorted(9 - y for y in digits) == list(digits), "(h) 9 - y is a permutation")
    report.say(f"y - 9 is a label for y in {kept} only")
    literal = kept == list(digits)
    return Finding("confirmed" if literal else "imprecise", "9 - y", None, {"labels that y - 9 leaves": kept})
