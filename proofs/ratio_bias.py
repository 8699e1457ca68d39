"""A quotient of weighted sums with rounded weights is biased, by about 1/c_g^2.

Statement. Let w_i be floor(c s_i) or floor(c s_i) + 1, the latter with probability f_i = c s_i - floor(c s_i), each on
its own; S = sum s_i, W = sum w_i, v_i = f_i (1 - f_i), v = sum v_i, and let no w_i be 0. For all numbers x_i
    E[sum w_i x_i / W] - sum s_i x_i / S = sum r_i x_i  with  r_i = E[w_i / W] - s_i / S, and
(a) r_i = (s_i v - S v_i) / (c^2 S^3) + e_i  with  |e_i| <= K^2 (S + K s_i) / (c^2 S^3 W0), where W0 = sum floor(c s_i).
(b) So the bias is of order 1/c^2: W0 > c S - K makes e_i of order 1/c^3, and v_i <= 1/4. The order is sharp: for two
    users with the delays 0 and 2 and c = 2^k, c^2 r_i tends to 3/32 and -3/32.
(c) The sum of the |r_i| is the largest bias over all x_i from -1 to 1. The table gives it for s = 1/(1 + delay).

Idea. With e = W - c S, w_i/W - s_i/S is N_i/(S W), where N_i = S (w_i - c s_i) - s_i e has mean 0. Write 1/W as 1/(c S)
- e/(c S)^2 + e^2/((c S)^2 W). The first summand gives 0; the second -E[N_i e]/(c^2 S^3), with E[N_i e] = S v_i - s_i v
since the roundings are independent; the third e_i, since |N_i| <= S + K s_i, |e| <= K and W >= W0. The r_i are computed
exactly, over all 2^K ways to round; the steps for (a) and the limit in (b) are checked with computer algebra besides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from math import floor, lcm, prod

from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "UNI-RATIO": "expectation",
}
LEVEL = 2**6
Delays = tuple[int, ...]


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) for every buffer of two to five users with delays up to 10, (b) by levels, and print the tables."""
    tally, largest = Tally(), {}
    report.say(f"c_g = {LEVEL}, all buffers with delays 0 to 10: the largest bias for entries from -1 to 1")
    for users in (2, 3, 4, 5):
        cases = [(size(shares(delays, LEVEL)), delays) for delays in combinations_with_replacement(range(11), users)]
        for _, delays in cases:
            tally.add(*within(delays, LEVEL))
        bias, delays = max(cases, key=lambda case: case[0])
        mean = sum(value for value, _ in cases) / len(cases)
        largest[f"{users} users"] = str(bias)
        report.say(f"  K = {users}: {float(bias):.1e} for the delays {list(delays)}; on average {float(mean):.1e}")
    ten(report)
    decay(report, tally)
    with_symbols(report)
    report.say(f"(a) holds in {tally.held} of {tally.cases} buffers and levels")
    return {"UNI-RATIO": Finding(tally.verdict, "the bias is of order 1/c_g^2", tally.against, largest)}


def staleness(delays: Delays) -> list[Fraction]:
    """Return s for each delay."""
    return [Fraction(1, 1 + tau) for tau in delays]


def outcomes(s: Sequence[Fraction], c: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the weights of every way to round, with the numerator of its probability over prod of denominators."""
    ups = [(floor(c * x), c * x - floor(c * x)) for x in s]
    choices = [[(low, up.denominator - up.numerator), (low + 1, up.numerator)] if up else [(low, 1)] for low, up in ups]
    for chosen in product(*choices):
        yield prod(chance for _, chance in chosen), [weight for weight, _ in chosen]


@cache
def shares(delays: Delays, c: int) -> tuple[Fraction, ...]:
    """Return r_i, by enumeration of all ways to round."""
    s = staleness(delays)
    by_total: dict[int, list[int]] = defaultdict(lambda: [0] * len(s))
    for chance, weights in outcomes(s, c):
        sums = by_total[sum(weights)]
        for i, weight in enumerate(weights):
            sums[i] += chance * weight
    whole, common = prod((c * x).denominator for x in s), lcm(*by_total)
    means = [sum(sums[i] * (common // total) for total, sums in by_total.items()) for i in range(len(s))]
    return tuple(Fraction(mean, whole * common) - x / sum(s) for mean, x in zip(means, s, strict=True))


def size(off: Sequence[Fraction]) -> Fraction:
    """Return the sum of the magnitudes."""
    return sum(map(abs, off), Fraction(0))


def within(delays: Delays, c: int) -> tuple[dict[str, object], bool]:
    """Return the case, and whether (a) holds for all its users."""
    s = staleness(delays)
    S, K, W0 = sum(s), len(s), sum(floor(c * x) for x in s)
    v = [(c * x - floor(c * x)) * (1 - c * x + floor(c * x)) for x in s]
    leading = [(x * sum(v) - S * own) / (c**2 * S**3) for x, own in zip(s, v, strict=True)]
    bounds = [K**2 * (S + K * x) / (c**2 * S**3 * W0) for x in s]
    off = shares(delays, c)
    close = [abs(r - lead) <= bound for r, lead, bound in zip(off, leading, bounds, strict=True)]
    return {"c_g": c, "delays": list(delays)}, all(close)


def ten(report: Report) -> None:
    """Show buffers of ten users, as in the paper's experiments."""
    for delays in (tuple(range(10)), tuple(range(1, 11)), (0, *(10,) * 9)):
        report.say(f"  K = 10, delays {list(delays)}: {float(size(shares(delays, LEVEL))):.1e}")


def decay(report: Report, tally: Tally) -> None:
    """Decide (b) for the delays 0 and 2: c^2 r comes closer to 3/32 with each doubling of c."""
    limit, gaps = Fraction(3, 32), []
    report.say("delays 0 and 2, c_g = 2^k: the share of the first user is off by r")
    for k in range(2, 15):
        c = 2**k
        tally.add(*within((0, 2), c))
        off = shares((0, 2), c)[0]
        gaps.append(abs(c**2 * off - limit))
        if k % 2 == 0:
            report.say(f"  k = {k:2}: r = {off!s:>22} = {float(off):.2e}, r c_g^2 = {float(c**2 * off):.6f}")
    report.check(all(later < sooner for sooner, later in pairwise(gaps)), "r c^2 tends to 3/32")
    report.check(gaps[-1] * 2**12 < 1, "(b) r c^2 is within 2^-12 of 3/32 at c = 2^14")


def with_symbols(report: Report) -> None:
    """Check what (a) splits the quotient into, the mean of its second summand for three users, and the limit in (b)."""
    sympy = package("sympy")
    c, S, e, w, s = sympy.symbols("c S e w s")
    W, N = c * S + e, S * (w - c * s) - s * e
    split = 1 / (c * S) - e / (c * S) ** 2 + e**2 / ((c * S) ** 2 * W)
    exact = sympy.simplify(w / W - s / S - N / (S * W)) == 0 == sympy.simplify(1 / W - split)
    f, x = sympy.symbols("f1:4"), sympy.symbols("s1:4")
    product_mean = 0
    for up in product((0, 1), repeat=3):
        chance = prod(p if k else 1 - p for k, p in zip(up, f, strict=True))
        errors = [k - p for k, p in zip(up, f, strict=True)]
        product_mean += chance * (sum(x) * errors[0] - x[0] * sum(errors)) * sum(errors)
    v = [p * (1 - p) for p in f]
    second = sympy.expand(product_mean - sum(x) * v[0] + x[0] * sum(v)) == 0
    third = sympy.Rational(1, 3)
    limit = {p * (1 - p) / (1 + third) ** 3 for p in (third, 2 * third)}
    shown = "the quotient splits as stated, its second summand has the mean S v_i - s_i v, and both limits are 3/32"
    report.agree("UNI-RATIO", "symbolic", exact and second and limit == {sympy.Rational(3, 32)}, shown)
