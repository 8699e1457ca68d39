"""The convergence bound counts rounds that take place, and sampling whole batches is noisier than sampling users.

Statement. Let c = C/K be the share of rounds that take place, and A = rho (2 (alpha + beta)/mu^2 + gamma/2 D_0), so
that (8) is A/(gamma + c E J - 1). Its learning rate is not stated; that of the work it rests on is 2/(mu (gamma +
t)).
(a) If t counts the steps of rounds that take place, the expected loss is at most A/(gamma + c E (J + 1) - E). For E =
    1 that is below (8); for E > 1 it has E (1 - c) in the place of 1.
(b) If t counts all rounds, as "round index t" has it, (8) fails: one user, L = x^2/2, no noise, E = 1, gamma = 8, c =
    1/20, after 146 rounds.
(c) beta = 4 (N - K) E^2 G^2/(K (N - 1)) comes from the variance of the mean of K users drawn one by one. K/T of N/T
    batches have up to T (N - 1)/(N - T) times as much: with M = N/T and k = K/T, (M - k)/(k (M - 1)) in the place of
    (N - K)/(K (N - 1)). For E = 1 the step with beta holds when T (N - 1) <= 4 (N - T), as for T <= 2. It can fail for
    every T >= 4, and of T = 3 for N = 6 and K = 3 only. The 4 is for rates that fall to a half within a round, E > 1.
(d) The noise of the mean of N gradients is at most the mean of the sigma_i^2, as alpha has it: it is a Nth of that, so
    that alpha is N times as large as it need be there.
(e) Gamma must be L* minus the *mean* of the L_i*. As printed, with their sum, the right side can be negative.
(f) With C = K, (8) is theorem 3 of the work it rests on, as it is often quoted, with E J in the place of its number of
    steps.
(g) (8) falls as C grows, and is with C after (K/C) J rounds what it is with C = K after J.
(h) Assumptions 2 and 4 hold together at the models of a run, of which 4 is, as when each model is between the start and
    the optima of the users; G is then as large as these are apart. On the whole space no loss that is strongly convex
    has gradients of bounded length.

Idea. (a) Let D_n be the expected squared distance after n rounds that take place, s = gamma + n E. From D' <= (1 -
2/s) D + 4 B/(mu s)^2 in each step, D_n <= v/s with v = max(4 B/mu^2, gamma D_0), and rho v/2 <= A. The number of
rounds that take place is binomial, and E[1/(a + n)] <= 1/(a - 1 + c (J + 1)) for a >= 1: with w = 1 - c + c u it is
the integral I of u^(a-1) w^J from 0 to 1; as w >= u, integrating the derivative of u^(a-1) w^(J+1) gives 1 >= (a - 1
+ c (J + 1)) I. (b) All ways that J rounds can go, as a product: E D_J = D_0 prod_t (1 - c + c (1 - eta_t)^2).
(c) All choices are listed, for N up to 20; for all values of up to four batches by sympy. (d) All signs of the noise
are listed, for up to four users, and for all sigma of three by sympy. (e) Adding h to all losses changes neither
models nor the left side of (8), and Gamma by h (1 - N). (g) (8) depends on C and J by C J alone. (h) With a at the
distance r of the optimum the gradient has the length mu r or more. In a step of a rate below 1/rho, for losses rho/2
(x - b_i)^2, the next model is between the last one and the mean of some b_i.

By the argument (a) holds for all c, J, E, rho and mu; its two steps are decided by sympy for all values, and the
recursion is run for five c, E up to 5 and J up to 60. (b) is exact. (e), (f) and (g) hold for all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "MRS-THM2": "expectation",
    "MRS-THM2B": "expectation",
    "MRS-THM2C": "expectation",
    "MRS-GAMMA": "arithmetic",
    "MRS-RATE": "symbolic",
    "MRS-A4": "enumeration",
}
SHARES = (Fraction(1, 20), Fraction(1, 8), Fraction(1, 2), Fraction(9, 10), Fraction(1))
LONGEST = 400
ONE = Fraction(1)


def bound(A: Fraction, gamma: int, c: Fraction, E: int, J: int) -> Fraction:
    """Return the right side of (8)."""
    return A / (gamma + c * E * J - 1)


def scale(rho: Fraction, mu: Fraction, noise: Fraction, gamma: int, distance: Fraction) -> Fraction:
    """Return A, where noise is alpha + beta."""
    return rho * (2 * noise / mu**2 + Fraction(gamma, 2) * distance)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (h)."""
    lemma(report)
    steps(report)
    recursion(report)
    all_rounds(report)
    return {
        "MRS-THM2": counted(report),
        "MRS-THM2B": sampling(report),
        "MRS-THM2C": noise_of_mean(report),
        "MRS-GAMMA": optima(report),
        "MRS-RATE": slower(report),
        "MRS-A4": together(report),
    }


def lemma(report: Report) -> None:
    """Check E[1/(a + n)] <= 1/(a - 1 + c (J + 1)) of (a) for binomial n."""
    for c, J, a in product(SHARES, (1, 2, 5, 20, 60), (Fraction(1), Fraction(3, 2), Fraction(8), Fraction(40))):
        mean = sum(comb(J, n) * c**n * (1 - c) ** (J - n) / (a + n) for n in range(J + 1))
        report.check(mean <= 1 / (a - 1 + c * (J + 1)), f"(a) the mean of 1/(a + n): c = {c}, J = {J}, a = {a}")


def steps(report: Report) -> None:
    """Check the two steps of (a) for all values: what is left over is never negative."""
    sympy = package("sympy")
    s, v, a, c, u, J = sympy.symbols("s v a c u J", positive=True)
    left = v / (s + 1) - ((1 - 2 / s) * v / s + v / s**2)
    induction = sympy.simplify(left - v / (s**2 * (s + 1))) == 0
    w = 1 - c + c * u
    slope = sympy.diff(u ** (a - 1) * w ** (J + 1), u) - (a - 1 + c * (J + 1)) * u ** (a - 1) * w**J
    spare = (a - 1) * (1 - c) * (1 - u) * u ** (a - 2) * w**J
    integral = sympy.simplify((slope - spare) / (u ** (a - 2) * w**J)) == 0
    report.agree("MRS-THM2", "symbolic", induction and integral, "(a) the step from n to n + 1, and under the integral")


def recursion(report: Report) -> None:
    """Check (a) on the recursion with equality, for noise B and distance D_0, mu = rho = 1."""
    for c, E, B, D_0, J in product(SHARES, (1, 2, 5), (0, 1, 20), (1, 4), (1, 10, 60)):
        gamma, D, found = max(8, E), float(D_0), 0.0
        for n in range(J + 1):
            report.check(max(4 * B, gamma * D_0) / (gamma + n * E) * (1 + 1e-12) >= D, "(a) D_n <= v/(gamma + n E)")
            found += comb(J, n) * float(c) ** n * float(1 - c) ** (J - n) * D / 2
            for s in range(gamma + n * E, gamma + (n + 1) * E):
                D = (1 - 2 / s) * D + 4 * B / s**2
        A = 2 * B + gamma * D_0 / 2
        report.check(found <= A / (gamma + c * E * (J + 1) - E) * (1 + 1e-12), f"(a) the loss: {c, E, B, D_0, J}")
        report.check(E > 1 or found <= A / (gamma + c * J - 1) * (1 + 1e-12), f"(a) as printed: {c, E, B, D_0, J}")


def counted(report: Report) -> Finding:
    """Decide (b): one user, L = x^2/2, x_0 = 1, with both ways to count."""
    readings, gamma = {"rounds that take place": Tally(), "all rounds": Tally()}, 8
    A = scale(Fraction(1), Fraction(1), Fraction(0), gamma, Fraction(1))
    factors = (1 - 2 / (gamma + np.arange(LONGEST))) ** 2
    after = np.concatenate([[1.0], np.cumprod(factors)])
    for c in SHARES:
        right = np.array([float(bound(A, gamma, c, 1, J)) for J in range(LONGEST + 1)])
        every = np.concatenate([[1.0], np.cumprod(float(1 - c) + float(c) * factors)]) / 2
        J = int(np.argmax(every > right))
        case = {"C/K": str(c), "J": J, "loss": f"{every[J]:.5f}", "bound": f"{right[J]:.5f}"}
        readings["rounds that take place"].add({"c": str(c)}, bool((expected(after, c) / 2 <= right).all()))
        readings["all rounds"].add({"t counts": "all rounds", **case}, not (every > right).any())
    against = readings["all rounds"].against
    report.say(f"counting all rounds the bound first fails so: {against}")
    loss, c, J = Fraction(1, 2), SHARES[0], 146
    for t in range(J):
        loss *= 1 - c + c * (1 - Fraction(2, gamma + t)) ** 2
    report.agree("MRS-THM2", "arithmetic", loss > bound(A, gamma, c, 1, J), f"(b) by fractions, after {J} rounds")
    return Finding(by_reading(readings.values()), "when t counts the rounds that take place", against)


def expected(values: Any, c: Fraction) -> Any:
    """Return the mean of values[n] for n of J rounds, for each J: by the first round, values are one step on or not."""
    means, left = [values[0]], values
    while len(left) > 1:
        left = float(1 - c) * left[:-1] + float(c) * left[1:]
        means.append(left[0])
    return np.array(means)


def variance(values: Sequence[int], chosen: int, T: int) -> Fraction:
    """Return the variance of the mean over chosen users, drawn as whole batches of T."""
    batches = [values[b : b + T] for b in range(0, len(values), T)]
    means = [Fraction(sum(map(sum, some)), chosen) for some in combinations(batches, chosen // T)]
    centre = Fraction(sum(values), len(values))
    return sum(((each - centre) ** 2 for each in means), Fraction(0)) / len(means)


def sampling(report: Report) -> Finding:
    """Decide (c): E = 1, eta = 1, gradients of 1 and -1, so that G = 1."""
    tally = Tally()
    for N, K, T in (
        *((users, chosen, 1) for users in (4, 5, 6, 7) for chosen in range(1, users)),
        (12, 4, 1),
        (16, 8, 1),
        (4, 2, 2),
        (6, 3, 3),
        (8, 4, 1),
        (8, 4, 2),
        (8, 4, 4),
        (8, 2, 2),
        (12, 6, 3),
        (10, 5, 5),
        (12, 4, 4),
        (16, 8, 4),
        (20, 10, 5),
    ):
        values, M, k = [1] * (N // T // 2 * T) + [-1] * (N - N // T // 2 * T), N // T, K // T
        spread = variance(values, N, N) + 1 - Fraction(sum(values), N) ** 2
        found = variance(values, K, T)
        report.check(found == spread * Fraction(M - k, k * (M - 1)), f"(c) whole batches: {N, K, T}")
        report.check(variance(values, K, 1) == spread * Fraction(N - K, K * (N - 1)), f"(c) one by one: {N, K}")
        stated = Fraction(4 * (N - K), K * (N - 1))
        ratio = Fraction(T * (N - 1), N - T) if N > T else Fraction(1)
        report.check(found == ratio * variance(values, K, 1), f"(c) the ratio: {N, K, T}")
        tally.add(
            {"N": N, "K": K, "T": T, "variance": str(found), "stated": str(stated)},
            found <= stated,
            condition=T * (N - 1) <= 4 * (N - T),
        )
    for M, k in ((2, 1), (3, 1), (3, 2), (4, 2)):
        report.agree("MRS-THM2B", "symbolic", of_all_values(M, k), f"(c) {k} of {M} batches, for all values")
    first = {"first": tally.against}
    report.say(f"the step with the printed beta fails first so: {first}")
    enough = tally.verdict == "conditional"
    return Finding("confirmed" if enough else "refuted", "it is that of users drawn one by one", None, first)


def of_all_values(M: int, k: int) -> bool:
    """Return whether the mean of k of M values has (M - k)/(k (M - 1)) of their variance, whatever they are."""
    sympy = package("sympy")
    x = sympy.symbols(f"x:{M}")
    centre = sum(x) / M
    spread = sum((each - centre) ** 2 for each in x) / M
    means = [sum(some) / k for some in combinations(x, k)]
    found = sum((mean - centre) ** 2 for mean in means) / len(means)
    return bool(sympy.expand(found - spread * sympy.Rational(M - k, k * (M - 1))) == 0)


def noise_of_mean(report: Report) -> Finding:
    """Decide (d)."""
    sympy = package("sympy")
    s = sympy.symbols("s:3")
    ways = [sum(one * sign for one, sign in zip(s, signs, strict=True)) / 3 for signs in product((1, -1), repeat=3)]
    left = sympy.expand(sum(way**2 for way in ways) / 8 - sum(one**2 for one in s) / 9)
    report.agree("MRS-THM2C", "symbolic", left == 0, "(d) for all sigma of three users")
    tally = Tally()
    for sigmas in ((1,), (1, 2), (1, 2, 3), (2, 2, 2, 2)):
        N = len(sigmas)
        means = [
            Fraction(sum(s * sign for s, sign in zip(sigmas, signs, strict=True)), N)
            for signs in product((1, -1), repeat=N)
        ]
        found = sum((m**2 for m in means), Fraction(0)) / len(means)
        printed = Fraction(sum(s**2 for s in sigmas), N)
        tally.add({"sigma": list(sigmas), "noise": str(found), "printed": str(printed)}, found <= printed)
        report.check(found * N == printed, f"(d) N times as large as it need be: {sigmas}")
    return Finding(tally.verdict, "it is 1/N of the mean of the sigma_i^2", tally.against)


def optima(report: Report) -> Finding:
    """Decide (e): N equal losses x^2/2 + 1, started at the optimum, K = N and no noise."""
    sympy = package("sympy")
    N, h, rho, mu, rest, below = sympy.symbols("N h rho mu rest below", positive=True)
    Gammas = {"sum": (1 + h) - N * (1 + h), "mean": (1 + h) - (1 + h)}
    slopes = {how: sympy.diff(rho / below * (12 * rho * Gamma / mu**2 + rest), h) for how, Gamma in Gammas.items()}
    falls = slopes["mean"] == 0 and sympy.simplify(slopes["sum"] - 12 * rho**2 * (1 - N) / (below * mu**2)) == 0
    report.agree("MRS-GAMMA", "symbolic", falls, "(e) adding h to all losses lowers the right side without end")
    readings = {True: Tally(), False: Tally()}
    for N, mean in product((2, 5), (True, False)):
        smallest = [Fraction(1)] * N
        Gamma = 1 - sum(smallest, Fraction(0)) / (N if mean else 1)
        right = bound(scale(Fraction(1), Fraction(1), 6 * Gamma, 8, Fraction(0)), 8, Fraction(1), 1, 1)
        case = {"N": N, "L_i": "x^2/2 + 1", "x_0": 0, "Gamma": str(Gamma), "bound": str(right)}
        readings[mean].add(case, right >= 0)
    return Finding(by_reading(readings.values()), "the mean of the L_i*", readings[False].against)


def all_rounds(report: Report) -> None:
    """Check (f), where kappa = rho/mu, and the bound of the other work, as often quoted, is for steps from 1 on."""
    sympy = package("sympy")
    rho, mu, B, D, E, J, gamma = sympy.symbols("rho mu B D E J gamma", positive=True)
    ours = rho / (gamma + E * J - 1) * (2 * B / mu**2 + gamma / 2 * D)
    theirs = (rho / mu) / (gamma + E * J - 1) * (2 * B / mu + mu * gamma / 2 * D)
    for r, m, noise, distance, e, rounds in product((1, 2), (1, 2), (0, 3), (1, 5), (1, 4), (1, 9)):
        g = max(8 * r // m, e)
        other = Fraction(r, m) / (g + e * rounds - 1) * (Fraction(2 * noise, m) + Fraction(m * g, 2) * distance)
        A = scale(Fraction(r), Fraction(m), Fraction(noise), g, Fraction(distance))
        report.check(bound(A, g, Fraction(1), e, rounds) == other, "(f) by fractions")
    report.check(sympy.simplify(ours - theirs) == 0, "(f) one formula")


def slower(report: Report) -> Finding:
    """Decide (g), where gamma - 1 is 7 or more."""
    sympy = package("sympy")
    A, C, K, E, J, more = sympy.symbols("A C K E J more", positive=True)
    right = A / (7 + more + C / K * E * J)
    falls = sympy.diff(right, C).is_negative and sympy.simplify(right.subs(J, K / C * J) - right.subs(C, K)) == 0
    for c, e, rounds in product(SHARES, (1, 5), (9, 90)):
        longer = Fraction(rounds) / c
        same = bound(ONE, 8, c, e, int(longer)) == bound(ONE, 8, ONE, e, rounds) and longer.denominator == 1
        least = bound(ONE, 8, c, e, rounds) >= bound(ONE, 8, ONE, e, rounds)
        report.agree("MRS-RATE", "arithmetic", same and least, f"(g) by fractions: c = {c}, E = {e}, J = {rounds}")
    return Finding("confirmed" if falls else "refuted", "K/C times as many rounds")


def together(report: Report) -> Finding:
    """Decide (h) for losses (x - b)^2/2 with b = 1 and -1, from 3 on, of which one is taken in each of ten rounds."""
    sympy = package("sympy")
    x, mu, G = sympy.symbols("x mu G", positive=True)
    outside = sympy.diff(mu * x**2 / 2, x).subs(x, 2 * G / mu) ** 2 - G**2
    report.agree("MRS-A4", "symbolic", bool(outside.is_positive), "(h) mu x^2/2 has a longer gradient than G at 2 G/mu")
    tally = Tally()
    for length in (1, 2, 3):
        report.check((2 * length) ** 2 > length**2, f"(h) x^2/2 has a longer gradient than G = {length} at x = 2 G")
    for users in product((1, -1), repeat=10):
        model, longest = Fraction(3), Fraction(0)
        for t, b in enumerate(users):
            longest = max(longest, (model - 1) ** 2, (model + 1) ** 2)
            model -= Fraction(2, 8 + t) * (model - b)
        tally.add({"users": list(users), "squared gradient": str(longest)}, longest <= 16)
    return Finding(tally.verdict, "at the models of a run; nowhere on the whole space", tally.against)
