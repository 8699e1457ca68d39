"""Three assumptions of BASecAgg do not say what their names do.

Statement, for functions on the real line; F = m x^2/2 has the gradient m x.
(a) Assumption 2 as printed, |F'(a) - F'(b)|^2 <= L |a - b|^2, holds for F = m x^2/2 exactly when m^2 <= L. L-smoothness
    is |F'(a) - F'(b)| <= L |a - b|, and holds exactly when m <= L; so does what the proof of Theorem 1 needs, that
    F(b) <= F(a) + F'(a) (b - a) + (L/2) (b - a)^2. So what is printed implies L-smoothness exactly when L >= 1, and
    eq. (17) fails with it for F = x^2/8 and L = 1/16.
(b) Assumption 3 compares the gradient of g_i with that of F_i. For g(x; xi) = x + xi, with xi = 1 or -1, and F = x^2/2,
    E|g - F'|^2 = 1 at each x, and E|g' - F'|^2 = (1 - x)^2 has no bound.
(c) Assumption 4, |F_i' - F'|^2 <= G, bounds how far users differ and not gradients: for users that are equal it holds
    with G = 0, however large their gradients are. It implies the second half of Assumption 3, with sigma_g^2 = G.

Idea. All of it is decided on fractions, and with symbols for all points. In (a) the worst case for L is m with m^2 = L:
m <= m^2 means m >= 1.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "BAS-A2": "enumeration",
    "BAS-A3": "readings",
    "BAS-A4": "enumeration",
}
POINTS = [Fraction(k, 2) for k in range(-6, 7)]
SLOPES = [Fraction(k, 4) for k in range(1, 13)]


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c)."""
    found = {"BAS-A2": smoothness(report), "BAS-A3": variance(report), "BAS-A4": bounded(report)}
    for_all_points(report)
    return found


def for_all_points(report: Report) -> None:
    """Check (a), (b) and (c) with symbols for slopes, constants and points."""
    sympy = package("sympy")
    L, m = sympy.symbols("L m", positive=True)
    x, b, c = sympy.symbols("x b c", real=True)
    implied = sympy.solveset(sympy.sqrt(L) <= L, L, sympy.Interval.open(0, sympy.oo))
    report.agree(
        "BAS-A2", "symbolic", implied == sympy.Interval(1, sympy.oo), "the steepest m, sqrt(L), is at most L for L >= 1"
    )
    with_g = ((x + 1 - x) ** 2 + (x - 1 - x) ** 2) / 2
    with_slope = ((1 - x) ** 2 + (1 - x) ** 2) / 2
    differ = sympy.expand(with_g) == 1 and sympy.limit(with_slope, x, sympy.oo) == sympy.oo
    report.agree(
        "BAS-A3", "symbolic", differ, "with g it is 1 everywhere, and with the gradient of g it grows without end"
    )
    off = sympy.expand((m * x + b - (m * x + b + m * x + c) / 2) ** 2)
    grows = sympy.limit((m * x + b) ** 2, x, sympy.oo) == sympy.oo
    free = x not in off.free_symbols and m not in off.free_symbols
    report.agree("BAS-A4", "symbolic", free and grows, "users are equally far apart at all points, and gradients grow")


def assumed(m: Fraction, L: Fraction) -> bool:
    """Whether F = m x^2/2 meets Assumption 2 as printed, at all pairs of points."""
    return all((m * a - m * b) ** 2 <= L * (a - b) ** 2 for a, b in product(POINTS, repeat=2))


def smooth(m: Fraction, L: Fraction) -> bool:
    """Whether the gradient of F = m x^2/2 is L-Lipschitz, at all pairs of points."""
    return all(abs(m * a - m * b) <= L * abs(a - b) for a, b in product(POINTS, repeat=2))


def below_parabola(m: Fraction, L: Fraction) -> bool:
    """Whether F(b) <= F(a) + F'(a) (b - a) + (L/2) (b - a)^2 for F = m x^2/2, at all pairs of points."""
    return all(
        m * b**2 / 2 <= m * a**2 / 2 + m * a * (b - a) + L * (b - a) ** 2 / 2 for a, b in product(POINTS, repeat=2)
    )


def smoothness(report: Report) -> Finding:
    """Decide (a): a case is a constant L, with all F that meet the assumption."""
    tally, meant = Tally(), Tally()
    for L in (m**2 for m in SLOPES):
        met = [m for m in SLOPES if assumed(m, L)]
        report.check(met == [m for m in SLOPES if m**2 <= L], f"(a) it holds for m^2 <= L: L = {L}")
        report.check(all(smooth(m, L) == (m <= L) == below_parabola(m, L) for m in SLOPES), f"(a) smooth, L = {L}")
        tally.add({"L": str(L), "F": f"{max(met) / 2} x^2"}, all(smooth(m, L) for m in met))
        meant.add({"L": str(L)}, all(below_parabola(m, L) for m in SLOPES if smooth(m, L)))
        report.check(all(smooth(m, L) for m in met) == (L >= 1), f"(a) what is printed is enough for L >= 1 only: {L}")
    report.check(tally.held > 0, "the printed inequality implies L-smoothness for some L")
    report.say(
        f"Assumption 2 as printed implies L-smoothness for {tally.held} of {tally.cases} constants L: those >= 1"
    )
    left, right = unstable(Fraction(1, 4), Fraction(1, 16))
    report.check(left > right, "(17) fails with the printed Assumption 2")
    report.say(
        "F = x^2/8, L = 1/16, eta = 1/L = 16, J = 3: the models are 1, -3, 9, and so on; (17) says that the mean of"
    )
    report.say(f"the squared gradients, {left}, is at most {float(right):.3f}")
    return Finding(
        by_reading((tally, meant)), "the constant of the squared inequality is the square of L", tally.against
    )


def unstable(m: Fraction, L: Fraction) -> tuple[Fraction, Fraction]:
    """Return both sides of (17) for F = m x^2/2, x(0) = K = E = eta_g = 1, eta_l = 1/L, c_l = 2^10 and J = 3.

    For m/L = 4 the updates are integers, which are rounded without error.
    """
    eta, c_l, x, total = 1 / L, 2**10, Fraction(1), Fraction(0)
    for _ in range(3):
        total, x = total + (m * x) ** 2, x - eta * m * x
    return total / 3, 2 * (m / 2) / (eta * 3) + L * eta / (2 * 4 * c_l**2)


def variance(report: Report) -> Finding:
    """Decide (b), by readings: which of them is bounded by one number at all points."""
    wide = [Fraction(10**k) for k in range(6)]
    read = {"g": [spread(x, x + 1, x - 1) for x in wide], "grad g": [spread(x, Fraction(1), Fraction(1)) for x in wide]}
    for name, values in read.items():
        report.say(f"Assumption 3 read with {name}: at x = 1, 10, ..., 10^5 it is {', '.join(map(str, values))}")
    constant, growing = len(set(read["g"])) == 1, read["grad g"] == [(1 - x) ** 2 for x in wide]
    report.check(growing, "(b) with the gradient of g it is (1 - x)^2")
    against = {
        "g": "x + xi, xi = 1 or -1",
        "x": "100",
        "with g": str(read["g"][2]),
        "with grad g": str(read["grad g"][2]),
    }
    held = [constant, len(set(read["grad g"])) == 1]
    return Finding(by_reading(held), "g_i is the gradient already", against)


def spread(centre: Fraction, *values: Fraction) -> Fraction:
    """Return the mean squared distance of values from a centre."""
    return sum(((value - centre) ** 2 for value in values), Fraction(0)) / len(values)


def bounded(report: Report) -> Finding:
    """Decide (c) for pairs of users with gradients m x + b_1 and m x + b_2, at points that grow."""
    tally, meant, points = Tally(), Tally(), (1, 10, 100, 1000)
    for m, shifts in product((1, 0, 2), product((0, 1, -1), repeat=2)):
        gradients = [[m * x + b for b in shifts] for x in points]
        off = [max((g - Fraction(sum(both), 2)) ** 2 for g in both) for both in gradients]
        G, steep = Fraction(shifts[0] - shifts[1]) ** 2 / 4, [max(g**2 for g in both) for both in gradients]
        report.check(set(off) == {G}, f"(c) Assumption 4 holds with G at each x: {m, shifts}")
        grows = all(later > sooner for sooner, later in pairwise(steep))
        report.check(grows == (m != 0), f"(c) gradients are bounded for m = 0 only: {m, shifts}")
        case = {"slope": m, "constants": list(shifts), "G": str(G), "x": points[-1], "squared gradient": steep[-1]}
        tally.add(case, not grows)
        if max(steep) <= 1:
            meant.add(case, not grows)
    report.say(
        f"{tally.cases} pairs of users meet Assumption 4 for all x; in {tally.held} of them gradients are bounded"
    )
    return Finding(
        by_reading((tally, meant)), "it holds with G = 0 for equal users, whatever their gradients", tally.against
    )
