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
    (N - K)/(K (N - 1)). For E = 1 and T >= 4 the step with beta fails.
(d) alpha has the mean of the sigma_i^2; the noise of the mean of N gradients has it divided by N, so that alpha is N
    times as large as it need be there, and the bound holds all the same.
(e) Gamma must be L* minus the *mean* of the L_i*. As printed, with their sum, the right side can be negative.
(f) With C = K, (8) is theorem 3 of the work it rests on with E J in the place of its number of steps.

Idea. (a) Let D_n be the expected squared distance after n rounds that take place, s = gamma + n E. From D' <= (1 -
2/s) D + 4 B/(mu s)^2 in each step, D_n <= v/s with v = max(4 B/mu^2, gamma D_0), and rho v/2 <= A. The number of
rounds that take place is binomial, and E[1/(a + n)] <= 1/(a - 1 + c (J + 1)) for a >= 1: with w = 1 - c + c u it is
the integral I of u^(a-1) w^J from 0 to 1; as w >= u, integrating the derivative of u^(a-1) w^(J+1) gives 1 >= (a - 1
+ c (J + 1)) I. (b) All ways that J rounds can go, as a product: E D_J = D_0 prod_t (1 - c + c (1 - eta_t)^2).
(c) All choices are listed. (d) All signs of the noise are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np

from secagg_spec.ledger import Finding, Report, Tally

CLAIMS = {
    "MRS-THM2": "expectation",
    "MRS-THM2B": "expectation",
    "MRS-THM2C": "expectation",
    "MRS-GAMMA": "expectation",
    "MRS-REM8": "expectation",
}
SHARES = (Fraction(1, 20), Fraction(1, 8), Fraction(1, 2), Fraction(9, 10), Fraction(1))
LONGEST = 400


def bound(A: Fraction, gamma: int, c: Fraction, E: int, J: int) -> Fraction:
    """Return the right side of (8)."""
    return A / (gamma + c * E * J - 1)


def scale(rho: Fraction, mu: Fraction, noise: Fraction, gamma: int, distance: Fraction) -> Fraction:
    """Return A, where noise is alpha + beta."""
    return rho * (2 * noise / mu**2 + Fraction(gamma, 2) * distance)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (f)."""
    lemma(report)
    recursion(report)
    return {
        "MRS-THM2": counted(report),
        "MRS-THM2B": sampling(report),
        "MRS-THM2C": noise_of_mean(),
        "MRS-GAMMA": optima(),
        "MRS-REM8": all_rounds(),
    }


def lemma(report: Report) -> None:
    """Check E[1/(a + n)] <= 1/(a - 1 + c (J + 1)) of (a) for binomial n."""
    for c, J, a in product(SHARES, (1, 2, 5, 20, 60), (Fraction(1), Fraction(3, 2), Fraction(8), Fraction(40))):
        mean = sum(comb(J, n) * c**n * (1 - c) ** (J - n) / (a + n) for n in range(J + 1))
        report.check(mean <= 1 / (a - 1 + c * (J + 1)), f"(a) the mean of 1/(a + n): c = {c}, J = {J}, a = {a}")


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
    tally, gamma = Tally(), 8
    A = scale(Fraction(1), Fraction(1), Fraction(0), gamma, Fraction(1))
    factors = (1 - 2 / (gamma + np.arange(LONGEST))) ** 2
    after = np.concatenate([[1.0], np.cumprod(factors)])
    for c in SHARES:
        right = np.array([float(bound(A, gamma, c, 1, J)) for J in range(LONGEST + 1)])
        every = np.concatenate([[1.0], np.cumprod(float(1 - c) + float(c) * factors)]) / 2
        J = int(np.argmax(every > right))
        case = {"c": str(c), "J": J, "loss": f"{every[J]:.5f}", "bound": f"{right[J]:.5f}"}
        tally.add({"t counts": "rounds that take place", "c": str(c)}, bool((expected(after, c) / 2 <= right).all()))
        tally.add({"t counts": "all rounds", **case}, not (every > right).any(), condition=False)
    report.say(f"counting all rounds the bound first fails so: {tally.against}")
    return Finding(tally.verdict, "when t counts the rounds that take place", tally.against)


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
            {"N": N, "K": K, "T": T, "variance": str(found), "stated": str(stated)}, found <= stated, condition=T == 1
        )
    return Finding(tally.verdict, "for users drawn one by one", tally.against)


def noise_of_mean() -> Finding:
    """Decide (d)."""
    exact = Tally()
    for sigmas in ((1,), (1, 2), (1, 2, 3), (2, 2, 2, 2)):
        N = len(sigmas)
        means = [
            Fraction(sum(s * sign for s, sign in zip(sigmas, signs, strict=True)), N)
            for signs in product((1, -1), repeat=N)
        ]
        found = sum((m**2 for m in means), Fraction(0)) / len(means)
        printed = Fraction(sum(s**2 for s in sigmas), N)
        exact.add({"sigma": list(sigmas), "noise": str(found), "printed": str(printed)}, found == printed)
        if found * N != printed:
            return Finding("refuted", "not 1/N of the mean", exact.against)
    return Finding("imprecise" if exact.against else "confirmed", "1/N of the mean of the sigma_i^2", exact.against)


def optima() -> Finding:
    """Decide (e): N equal losses x^2/2 + 1, started at the optimum, K = N and no noise."""
    tally = Tally()
    for N, mean in product((2, 5), (True, False)):
        smallest = [Fraction(1)] * N
        Gamma = 1 - sum(smallest, Fraction(0)) / (N if mean else 1)
        right = bound(scale(Fraction(1), Fraction(1), 6 * Gamma, 8, Fraction(0)), 8, Fraction(1), 1, 1)
        case = {"N": N, "L_i": "x^2/2 + 1", "x_0": 0, "Gamma": str(Gamma), "bound": str(right)}
        tally.add(case, right >= 0, condition=mean)
    return Finding(
        "refuted" if tally.verdict == "conditional" else tally.verdict, "the mean of the L_i*", tally.against
    )


def all_rounds() -> Finding:
    """Decide (f), where kappa = rho/mu, and the bound of the other work is for steps from 1 on."""
    tally = Tally()
    for rho, mu, B, D, E, J in product((1, 2), (1, 2), (0, 3), (1, 5), (1, 4), (1, 9)):
        gamma, kappa = max(8 * rho // mu, E), Fraction(rho, mu)
        theirs = kappa / (gamma + E * J - 1) * (Fraction(2 * B, mu) + Fraction(mu * gamma, 2) * D)
        ours = bound(scale(Fraction(rho), Fraction(mu), Fraction(B), gamma, Fraction(D)), gamma, Fraction(1), E, J)
        tally.add({"rho": rho, "mu": mu, "E": E, "J": J}, ours == theirs)
    return Finding(tally.verdict, "one formula", tally.against)
