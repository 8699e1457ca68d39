"""What table 1 of BASA says, and what the text says of it.

Statement. Below are the times of table 1, in seconds, means and spreads.
(a) The largest speedups over another secure aggregation are 4.7612 for beta = 6 and 4.5482 for beta = 3, both over
    LightSecAgg in asynchronous learning, on CIFAR-10: 4.7 and 4.5 when digits are cut off, 4.8 and 4.5 when rounded.
(b) The largest extra costs over no secure aggregation are 22.31 % for beta = 6 and 62.96 % for beta = 3. So 62 is cut
    off, and 23 larger than need be; rounded they are 22 and 63.
(c) The largest extra cost falls with beta. The cost on MNIST does not: it is 9.57 % for beta = 3, 22.31 % for beta = 6.
    The spreads do not settle it: with them the costs reach from -2 % to 22.2 %, and from 12.8 % to 32.6 %.
(d) For beta = 0 BASA takes longer than LightSecAgg in synchronous learning on each data set, and longer than SecAgg on
    MNIST only: SecAgg takes 1.47 times as long on FEMNIST and on CIFAR-10.
(e) For beta > 0 BASA is the fastest of the four secure aggregations on each data set, even with the spreads.
(f) A logistic regression of 28 * 28 inputs and 10 classes has 7850 numbers.
(g) Each of the 15 pairs of a protocol and a data set takes longer for beta = 3 than for 0, and for 6 than for 3. In one
    of the 30 comparisons the spreads overlap: BASA on FEMNIST takes 1.04 % longer for beta = 3 than for 0.

Idea. Fractions of the printed decimals. By rule 5 of spec/ledger.md a number after "up to" holds when it is the value
cut off, or rounded, or larger than it.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import floor

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading

CLAIMS = {
    "BASA-TAB1A": "arithmetic",
    "BASA-TAB1B": "arithmetic",
    "BASA-TAB1C": "readings",
    "BASA-TAB1D": "readings",
    "BASA-TAB1E": "arithmetic",
    "BASA-7850": "arithmetic",
    "BASA-TAB1F": "arithmetic",
}
COLUMNS = ("no SA, AFL", "BASA, AFL", "SecAgg, SFL", "LSA, SFL", "LSA, AFL")
PRINTED = """
MNIST    0   9.97 0.18   22.62 0.23    7.85  0.31    7.73  1.02   16.95  0.35
MNIST    3  36.66 1.56   40.17 2.71  129.04 10.12  128.93  9.29  116.58  6.51
MNIST    6  46.61 1.93   57.01 2.24  164.52 23.69  152.12 12.26  149.25  8.81
FEMNIST  0  54.63 0.95  248.51 5.05  366.45 14.62  199.88 10.13  361.85  4.84
FEMNIST  3 154.08 2.16  251.09 3.92  849.12 20.02  691.20  8.05 1005.86 27.13
FEMNIST  6 421.51 1.92  475.89 7.41 1434.01 31.14 1229.09 33.56 2055.27 37.85
CIFAR-10 0  85.34 0.43  107.39 1.02  158.58  6.93   90.67  3.20  326.56  1.41
CIFAR-10 3 250.98 2.33  256.52 2.26  737.05 21.73  683.15 19.41 1166.71 15.74
CIFAR-10 6 477.96 8.34  479.03 5.02 1248.39 29.84 1143.12 56.92 2280.76 43.79
"""


def read() -> dict[tuple[str, int], dict[str, tuple[Fraction, Fraction]]]:
    """Return mean and spread, by data set and beta, and by column."""
    rows = [line.split() for line in PRINTED.strip().splitlines()]
    pairs = {(name, int(beta)): [Fraction(Decimal(x)) for x in cells] for name, beta, *cells in rows}
    return {at: dict(zip(COLUMNS, zip(x[::2], x[1::2], strict=True), strict=True)) for at, x in pairs.items()}


TABLE = read()
DATA = ("MNIST", "FEMNIST", "CIFAR-10")
NONE, BASA, *OTHERS = COLUMNS


def mean(data: str, beta: int, column: str) -> Fraction:
    """Return a time of the table."""
    return TABLE[data, beta][column][0]


def cost(data: str, beta: int) -> Fraction:
    """Return what BASA takes more than no secure aggregation, as a part of the latter."""
    return mean(data, beta, BASA) / mean(data, beta, NONE) - 1


def most(beta: int) -> Fraction:
    """Return the largest extra cost."""
    return max(cost(data, beta) for data in DATA)


def how(value: Fraction, printed: int) -> list[str]:
    """Return the ways in which a number after "up to" is that of a value, in units of its last digit."""
    ways = {"cut off": floor(value), "rounded": floor(value + Fraction(1, 2))}
    return [name for name, found in ways.items() if found == printed] or ["a larger bound"] * (printed >= value)


def prove(report: Report) -> dict[str, Finding]:
    """Compute (a) to (f)."""
    report.check(
        len(TABLE) == 9 and all(len(row) == 5 for row in TABLE.values()), "the table has nine rows of five times"
    )
    return {
        "BASA-TAB1A": speedup(report),
        "BASA-TAB1B": extra(report),
        "BASA-TAB1C": trend(report),
        "BASA-TAB1D": without_stragglers(report),
        "BASA-TAB1E": with_stragglers(report),
        "BASA-7850": dimension(),
        "BASA-TAB1F": longer(report),
    }


def speedup(report: Report) -> Finding:
    """Decide (a): tenths are what is rounded."""
    ratios = {
        beta: max((mean(data, beta, other) / mean(data, beta, BASA), data, other) for data in DATA for other in OTHERS)
        for beta in (6, 3)
    }
    report.check(all(ratio[1:] == ("CIFAR-10", "LSA, AFL") for ratio in ratios.values()), "(a) over which, and where")
    ways = {beta: how(10 * ratios[beta][0], printed) for beta, printed in ((6, 47), (3, 45))}
    report.check(ways == {6: ["cut off"], 3: ["cut off", "rounded"]}, f"(a) tenths: {ways}")
    numbers = {f"beta {beta}": f"{float(ratio[0]):.4f}: {', '.join(ways[beta])}" for beta, ratio in ratios.items()}
    holds = all(ways.values())
    return Finding("confirmed" if holds else "refuted", f"{ways}", None if holds else numbers, numbers)


def extra(report: Report) -> Finding:
    """Decide (b): per cents are what is rounded."""
    ways = {beta: how(100 * most(beta), printed) for beta, printed in ((6, 23), (3, 62))}
    report.check(ways == {6: ["a larger bound"], 3: ["cut off"]}, f"(b) per cent: {ways}")
    report.check(how(100 * most(6), 22) == [*how(100 * most(3), 62), "rounded"], "(b) rounded it is 22 for beta = 6")
    report.check(how(100 * most(3), 63) == ["rounded"] and not how(100 * most(3), 61), "(b) and 63 for beta = 3")
    numbers = {f"beta {beta}": f"{float(100 * most(beta)):.2f} %: {', '.join(ways[beta])}" for beta in (6, 3)}
    holds = all(ways.values())
    return Finding("confirmed" if holds else "refuted", f"{ways}", None if holds else numbers, numbers)


def trend(report: Report) -> Finding:
    """Decide (c), by readings: the largest cost, and the cost on each data set."""
    costs = {data: [cost(data, beta) for beta in (0, 3, 6)] for data in DATA}
    falls = {data: sorted(row, reverse=True) == row for data, row in costs.items()}
    numbers: dict[str, object] = {data: [f"{float(100 * x):.2f} %" for x in row] for data, row in costs.items()}
    for data in DATA:
        report.say(f"extra cost on {data}, for beta 0, 3, 6: {numbers[data]}")
    largest = [most(beta) for beta in (0, 3, 6)]
    readings = {"the largest cost": sorted(largest, reverse=True) == largest, "each cost": all(falls.values())}
    report.check([data for data in DATA if not falls[data]] == ["MNIST"], "(c) on MNIST it rises")
    high, low = bounds("MNIST", 3)[1], bounds("MNIST", 6)[0]
    report.check(low < high, "(c) the spreads overlap")
    report.say(
        f"on MNIST the spreads allow up to {float(high):.3f} for beta = 3, down to {float(low):.3f} for beta = 6"
    )
    case = {"data": "MNIST", "beta": [3, 6], "costs": numbers["MNIST"][1:]}  # type: ignore[index]
    return Finding(by_reading(readings.values()), "the largest falls, that on MNIST rises", case, numbers)


def bounds(data: str, beta: int) -> tuple[Fraction, Fraction]:
    """Return the least and the largest extra cost within the spreads."""
    (plain, around), (basa, by) = TABLE[data, beta][NONE], TABLE[data, beta][BASA]
    return (basa - by) / (plain + around) - 1, (basa + by) / (plain - around) - 1


def without_stragglers(report: Report) -> Finding:
    """Decide (d), by readings: slower than the faster protocol of synchronous learning, or in most comparisons."""
    synchronous = ("SecAgg, SFL", "LSA, SFL")
    slower = {(d, other): mean(d, 0, BASA) > mean(d, 0, other) for d, other in product(DATA, synchronous)}
    for (data, other), holds in slower.items():
        ratio = float(mean(data, 0, other) / mean(data, 0, BASA))
        report.say(f"beta = 0, {data}: {other} takes {ratio:.3f} of the time of BASA; BASA is slower: {holds}")
    readings = {"than the fastest": all(any(slower[d, other] for other in synchronous) for d in DATA)}
    readings["in most comparisons"] = 2 * sum(slower.values()) > len(slower)
    faster = [at for at, holds in slower.items() if not holds]
    report.check(faster == [("FEMNIST", "SecAgg, SFL"), ("CIFAR-10", "SecAgg, SFL")], "(d) BASA is faster in two")
    numbers = {"slower": sum(slower.values()), "of": len(slower)}
    return Finding(by_reading(readings.values()), "slower than the faster one, and in most", None, numbers)


def with_stragglers(report: Report) -> Finding:
    """Decide (e)."""
    tally, apart = Tally(), 0
    for data, beta, other in product(DATA, (3, 6), OTHERS):
        (basa, by), (time, around) = TABLE[data, beta][BASA], TABLE[data, beta][other]
        tally.add({"data": data, "beta": beta, "faster": other}, basa < time)
        apart += basa + by < time - around
    report.say(
        f"beta > 0: the fastest in {tally.held} of {tally.cases} comparisons, {apart} of them beyond the spreads"
    )
    return Finding(
        tally.verdict, "the fastest", tally.against, {"comparisons": tally.cases, "beyond the spreads": apart}
    )


def dimension() -> Finding:
    """Decide (f)."""
    pixels, classes = 28 * 28, 10
    numbers = {"weights": pixels * classes, "biases": classes, "d": pixels * classes + classes}
    verdict = "confirmed" if numbers["d"] == 7850 else "refuted"
    return Finding(verdict, f"{numbers['d']} = 784 * 10 + 10", None, numbers)


def longer(report: Report) -> Finding:
    """Decide (g)."""
    tally, close = Tally(), []
    for data, column, (low, high) in product(DATA, COLUMNS, ((0, 3), (3, 6))):
        (before, around), (after, by) = TABLE[data, low][column], TABLE[data, high][column]
        tally.add({"data": data, "protocol": column, "beta": [low, high]}, before < after)
        close += [(data, column, low, high)] if before + around >= after - by else []
    report.check(close == [("FEMNIST", BASA, 0, 3)], f"(g) the spreads overlap in one comparison: {close}")
    more = f"{float(100 * (mean('FEMNIST', 3, BASA) / mean('FEMNIST', 0, BASA) - 1)):.2f} %"
    report.say(f"a larger beta takes longer in {tally.held} of {tally.cases} comparisons; BASA on FEMNIST by {more}")
    numbers = {"comparisons": tally.cases, "beyond the spreads": tally.cases - len(close), "BASA on FEMNIST": more}
    return Finding(tally.verdict, "longer with each beta", tally.against, numbers)
