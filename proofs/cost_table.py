"""Table 4 of HeteroSAg is not what its formula gives; the shapes of tables 5 and 6 fit.

Statement. Figure 2 with n = 5, levels 2, 6, 8, 10, 12, m = 79510 elements, 200 rounds; costs are in Mb for each user.
(a) The formula, sum_l |x^l| ceil(log2(|S|(K - 1) + 1)), gives 19, 27, 30, 30, 30 bits for five elements of a user of
    group 0 to 4, 19 with K = 2 and 179 with K = 2^32: 60.4, 85.9, 95.4, 95.4, 95.4; 60.4; 569.3 Mb. A global model of
    32 bits an element, in each round, adds 508.9.
(b) So the printed 53 and 279 are less than the masked models alone, before any global model is added; 279 is less than
    32 bits an element are, which is 508.9 Mb, or 485.3 in units of 2^20.
(c) No reading, of logarithms rounded up or not, units of 10^6 or 2^20, 200 or 100 rounds, a global model of no bits, 32
    bits, 32 bits once or as large as the masked model, cut off, rounded or rounded up, gives all seven, or more than
    two. With logarithms not rounded up the masked models take 52.2 Mb in 200 rounds for K = 2 (53 when rounded up), and
    279.2 in 100 rounds for K = 2^32: each of the two comes out, under other readings.
(d) The group with 1 Mb/s needs the longest when all others have 2 Mb/s or more: 53 s of 53 Mb, above 101/2; also for
    (a).
(e) 279/53 = 5.26 is 5.2 cut off. By (a) the ratio is 9.4, and 1.9 with the global model: 5.2 in no reading of (c).
(f) 784 x 100 x 10 with biases are 79510 numbers. A picture of 32 x 32 goes 30, 10, 7, 1 through table 6, which leaves
    64 features, the input of fc1; with biases they are 117706 numbers.
(g) 75 groups of 4 are 300 users, and 18 = ceil(75/4) - 1.
(h) y - 9 is a label for y = 9 only. 9 - y is a permutation of the labels.

Idea. The reference counts the bits of (a) for its own plan. The readings are run through, with exact bits and, where
the logarithm is not rounded up, with binary64, none of whose results is near the edge of a rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import ceil, floor, log2

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.segments import cyclic
from secagg_spec.ledger import Finding, Report
from secagg_spec.protocols import heterosag_costs as costs
from secagg_spec.protocols.heterosag_plan import Parameters

CLAIMS = {
    "HET-TAB4": "readings",
    "HET-TAB4B": "arithmetic",
    "HET-52X": "readings",
    "HET-TAB5": "arithmetic",
    "HET-TAB6": "arithmetic",
    "HET-EXP2C": "arithmetic",
    "HET-EXP2L": "enumeration",
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


def moduli(levels: tuple[int, ...], group: int) -> list[int]:
    """Return the modulus of each segment of a user of a group, with figure 2."""
    cells = [next(cell for cell in row if group in cell) for row in cyclic(GROUPS)]
    return [N_GROUP * len(cell) * (levels[cell[0]] - 1) + 1 for cell in cells]


def rows() -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield levels and group of each number of the table."""
    yield from ((HETEROGENEOUS, group) for group in range(GROUPS))
    yield from (((K,) * GROUPS, 0) for K in (2, 2**32))


def bits_of(modulus: int) -> int:
    """Return the bits of a number below a modulus, which may be above 2**32: the paper's K = 2^32 makes it so."""
    return (modulus - 1).bit_length()


def up(rounded_up: bool) -> list[float]:
    """Return the bits of a masked model, for each number of the table."""
    length = ELEMENTS // GROUPS
    width: Callable[[int], float] = bits_of if rounded_up else log2
    return [length * sum(width(R) for R in moduli(levels, group)) for levels, group in rows()]


def readings() -> Iterator[tuple[dict[str, object], list[float]]]:
    """Yield each reading with its costs in Mb, not rounded."""
    for rounded_up, unit, rounds, model in product(
        (True, False), (10**6, 2**20), (200, 100), ("none", "32 bits", "once", "as masked")
    ):
        once = 32 * ELEMENTS if model == "once" else 0
        down = 32 * ELEMENTS if model == "32 bits" else 0
        both = 2 if model == "as masked" else 1
        found = [(rounds * (both * bits + down) + once) / unit for bits in up(rounded_up)]
        yield {"logarithm rounded up": rounded_up, "unit": unit, "rounds": rounds, "global model": model}, found


def prove(report: Report) -> dict[str, Finding]:
    """Decide all of it."""
    formula(report)
    return {
        "HET-TAB4": table(report),
        "HET-TAB4B": time(report),
        "HET-52X": ratio(report),
        "HET-TAB5": mnist(report),
        "HET-TAB6": cifar(report),
        "HET-EXP2C": byzantine(report),
        "HET-EXP2L": labels(report),
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
    return Finding("confirmed" if most == len(PRINTED) else "refuted", "the formula gives more", case, numbers)


def time(report: Report) -> Finding:
    """Decide (d): a cost over a rate is at most the cost over the least rate."""
    computed = [ROUNDS * b / 10**6 for b in up(True)]
    holds = [max(of[1:5]) / 2 < of[0] for of in (PRINTED, computed)]
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
    return Finding("confirmed" if near else "imprecise", "of the printed numbers, cut off", None, numbers)


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
    holds = G * n == N and ceil(Fraction(G, 4)) - 1 == B
    return Finding("confirmed" if holds else "refuted", "the most that the bound allows")


def labels(report: Report) -> Finding:
    """Decide (h)."""
    digits = range(10)
    kept = [y for y in digits if y - 9 in digits]
    report.check(sorted(9 - y for y in digits) == list(digits), "(h) 9 - y is a permutation")
    report.say(f"y - 9 is a label for y in {kept} only")
    literal = kept == list(digits)
    return Finding("confirmed" if literal else "imprecise", "9 - y", None, {"labels that y - 9 leaves": kept})
