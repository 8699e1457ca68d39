"""The average number of users in a round: the formula of theorem 1 is right, and does not grow with T.

Statement. A round of K users takes place when K/T of N/T batches are complete.
(a) If users drop out independently with the probability p, the mean number of users is C of theorem 1, as a
    polynomial in p, for all strategies that never skip such a round.
(b) C does not grow as T grows, among the divisors of N and K, for any p. It does not fall either for K = N.
(c) The numbers behind figure 3 depend on p, which is not said in the text.
(d) For N = 120, K = 12 and rates .1 to .5, user i having the rate of place i modulo 5, T = 3 has 99.99 of 100, and T
    = 4 98 of 100, of the users that random selection has. With users of one rate in one batch C is larger. When all
    rates are 1/2, T = 4 has less than 30.
(e) No log with a set of K users has more privacy than K, and groups that never mix have K. Their C is the least in
    (d).
(f) No way to choose K available users, or nobody, has a larger C than random selection, whatever the rates. It is K
    exactly when K users or more never drop out, and else less.

Idea. (a) A round takes place unless more than N/T - K/T batches lack somebody, and each of them does so with the
probability q: that is the formula. All sets of available users are counted, by their number, for N up to 12;
polynomials of degree N that agree at N + 1 points are equal. By sympy the law of the number of such batches, as a
product, sums to the formula for all q, for up to 12 batches. (b) If T divides T', this is clear, since a complete batch
of T' users is a union of complete ones of T. Else C is K times a sum of n_a (1 - p)^a p^(N - a), where n_a of the sets
of a available users let a round take place: for each a there are as many or more for T as for T'. That is counted for N
up to 40 and some larger ones, and holds then for all p, and for all laws in which only the number of available users
counts. (d) The number of complete batches is a sum of independent bits, whose law is computed batch by batch. (e) The
set itself has K users, and disjoint sets have no combination about fewer. (f) A round takes place only when K users
are available, and random selection skips none of these. All families of sets are run for N up to 4, and for N = 5 and
K = 2, and all rates 0 and 1/2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from hashlib import shake_256
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import comb, prod

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.selection import weights

CLAIMS = {
    "MRS-EQ7": "enumeration",
    "MRS-THM1C": "enumeration",
    "MRS-REM5": "symbolic",
    "MRS-MAXC": "enumeration",
    "MRS-CMAX": "expectation",
    "MRS-FIG3": "arithmetic",
    "MRS-OBS1": "expectation",
    "MRS-OBS2": "expectation",
}
GRID = tuple(Fraction(j, 100) for j in (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99))
LARGE = ((120, 12), (120, 60), (60, 12), (120, 96))
LARGEST, BATCHES, ROUNDS = 40, 12, 2000
N, K = 120, 12
PAPER = (1, 3, 4, 6, 12)
GROUPS = ((4, 2), (6, 3), (8, 4), (8, 2), (9, 3))


def formula(users: int, chosen: int, T: int, p: Fraction) -> Fraction:
    """Return C as theorem 1 has it."""
    M, k, q = users // T, chosen // T, 1 - (1 - p) ** T
    skipped = (comb(M, i) * q**i * (1 - q) ** (M - i) for i in range(M - k + 1, M + 1))
    return chosen * (1 - sum(skipped, Fraction(0)))


def sizes(users: int, chosen: int) -> Iterator[int]:
    """Yield the numbers that divide both."""
    return (T for T in range(1, chosen + 1) if users % T == chosen % T == 0)


def counted(users: int, chosen: int, T: int) -> list[int]:
    """Return, for each number of available users, how many sets of so many let a round take place."""
    available = (np.arange(1 << users)[:, None] >> np.arange(users)) & 1
    takes_place = available.reshape(len(available), -1, T).all(axis=2).sum(axis=1) >= chosen // T
    return [int(count) for count in np.bincount(available.sum(axis=1)[takes_place], minlength=users + 1)]


def polynomial(users: int, chosen: int, T: int) -> list[int]:
    """Return the same from a product of polynomials, whose variable stands for an available user."""
    flint, M = package("flint"), users // T
    whole = flint.fmpz_poly([*[0] * T, 1])
    part = flint.fmpz_poly([1, 1]) ** T - whole
    ways = (comb(M, j) * whole**j * part ** (M - j) for j in range(chosen // T, M + 1))
    counts = [int(count) for count in sum(ways, start=flint.fmpz_poly([0]))]
    return counts + [0] * (users + 1 - len(counts))


def at_least(chances: Iterable[Fraction], k: int) -> Fraction:
    """Return the probability that k or more of independent events happen."""
    law = [Fraction(1)]
    for c in chances:
        law = [low * c + high * (1 - c) for low, high in zip([Fraction(0), *law], [*law, Fraction(0)], strict=True)]
    return sum(law[k:], Fraction(0))


def cardinality(rates: Sequence[Fraction], T: int) -> Fraction:
    """Return the mean number of users of the paper's N and K, with batches in the order of users."""
    chances = (Fraction(prod(1 - p for p in rates[b : b + T])) for b in range(0, N, T))
    return K * at_least(chances, K // T)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (f)."""
    return {
        **theorem(report),
        "MRS-REM5": falls(report),
        "MRS-FIG3": figure(report),
        **observations(report),
        **largest(report),
    }


def theorem(report: Report) -> dict[str, Finding]:
    """Decide (a)."""
    tally = Tally()
    for chosen, users in combinations_with_replacement(range(1, 13), 2):
        for T in sizes(users, chosen):
            counts = counted(users, chosen, T)
            points = [Fraction(j, users + 2) for j in range(1, users + 2)]
            exact = [sum(n * (1 - p) ** a * p ** (users - a) for a, n in enumerate(counts)) for p in points]
            holds = all(chosen * each == formula(users, chosen, T, p) for each, p in zip(exact, points, strict=True))
            tally.add({"N": users, "K": chosen, "T": T}, holds)
            report.agree("MRS-EQ7", "symbolic", counts == polynomial(users, chosen, T), f"(b) {users, chosen, T}")
    for k, M in combinations_with_replacement(range(1, BATCHES + 1), 2):
        report.agree("MRS-THM1C", "symbolic", in_all_q(M, k), f"as polynomials in q, for {k} of {M} batches")
    return {
        "MRS-EQ7": Finding(tally.verdict, "K times the probability that a round takes place"),
        "MRS-THM1C": Finding(tally.verdict, "equal for all p", tally.against, {"parameters": tally.cases}),
    }


def in_all_q(M: int, k: int) -> bool:
    """Return whether at most M - k of M batches lack somebody with the probability of the formula, for all q."""
    sympy = package("sympy")
    q, x = sympy.symbols("q x")
    law = sympy.Poly((1 - q + q * x) ** M, x).all_coeffs()[::-1]
    skipped = sum(comb(M, i) * q**i * (1 - q) ** (M - i) for i in range(M - k + 1, M + 1))
    return bool(sympy.expand(sum(law[: M - k + 1]) - (1 - skipped)) == 0)


def falls(report: Report) -> Finding:
    """Decide (b)."""
    tally = Tally()
    small = [(users, chosen) for users in range(1, LARGEST + 1) for chosen in range(1, users + 1)]
    for users, chosen in (*small, *LARGE):
        for T, after in pairwise(sizes(users, chosen)):
            low, high = polynomial(users, chosen, after), polynomial(users, chosen, T)
            no_more = all(a <= b for a, b in zip(low, high, strict=True))
            tally.add({"N": users, "K": chosen, "T": [T, after]}, no_more)
            report.check((low == high) == (chosen == users), f"(b) equal for K = N alone: {users, chosen, T, after}")
            if users <= 12 or (users, chosen) in LARGE:
                values = [(formula(users, chosen, after, p), formula(users, chosen, T, p)) for p in GRID]
                down = all(a < b or (a == b and chosen == users) for a, b in values)
                report.agree("MRS-REM5", "arithmetic", down, f"exact values: {users, chosen, T, after}")
    report.say(f"C does not grow with T in {tally.held} of {tally.cases} cases, whatever p is")
    return Finding(tally.verdict, "it stays for K = N", tally.against, {"cases": tally.cases})


def largest(report: Report) -> dict[str, Finding]:
    """Decide (f)."""
    most, full = Tally(), Tally()
    for users, chosen in ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3), (4, 4), (5, 2)):
        sets = [sum(1 << u for u in some) for some in combinations(range(users), chosen)]
        enough = {here for here in range(1 << users) if here.bit_count() >= chosen}
        for family in range(1, 1 << len(sets)):
            rows = [row for at, row in enumerate(sets) if family >> at & 1]
            fits = {here for here in range(1 << users) if any(row & here == row for row in rows)}
            case = {"N": users, "K": chosen, "sets": len(rows)}
            most.add(case, fits <= enough and (fits == enough or len(rows) < len(sets)))
        for rates in product((Fraction(1, 2), Fraction(0)), repeat=users):
            mean = chosen * at_least((1 - p for p in rates), chosen)
            always = rates.count(Fraction(0)) >= chosen
            full.add({"N": users, "K": chosen, "rates": [str(p) for p in rates], "C": str(mean)}, mean <= chosen)
            report.check((mean == chosen) == always, f"(f) K exactly when K users never drop out: {rates}")
            here = sum((chance(rates, u) for u in enough), Fraction(0))
            report.agree("MRS-CMAX", "enumeration", chosen * here == mean, f"all sets of available users: {rates}")
    return {
        "MRS-MAXC": Finding(most.verdict, "no family has more rounds", most.against, {"families": most.cases}),
        "MRS-CMAX": Finding(full.verdict, "reached when K users never drop out", full.against),
    }


def chance(rates: Sequence[Fraction], here: int) -> Fraction:
    """Return the probability that exactly the users whose bits are set are available."""
    return Fraction(prod((1 - p if here >> user & 1 else p for user, p in enumerate(rates)), start=Fraction(1)))


def figure(report: Report) -> Finding:
    """Decide (c)."""
    table = {f"p = {p}": [f"{float(formula(N, K, T, p)):.3f}" for T in sizes(N, K)] for p in GRID[1:6]}
    tally = Tally()
    for p in GRID[1:6]:
        exact = [formula(N, K, T, p) for T in sizes(N, K)]
        falls = all(later < sooner for sooner, later in pairwise(exact))
        tally.add({"p": str(p), "C": [str(C) for C in exact]}, falls and f"{float(exact[0]):.3f}" == "12.000")
    for p, T in product(GRID[1:6], sizes(N, K)):
        same = cardinality([p] * N, T) == formula(N, K, T, p)
        report.agree("MRS-FIG3", "expectation", same, f"(c) the mean over complete batches: p = {p}, T = {T}")
    return Finding(tally.verdict, "C for T = 1, 2, 3, 4, 6, 12", tally.against, table)


def observations(report: Report) -> dict[str, Finding]:
    """Decide (d) and (e)."""
    mixed = [Fraction(1 + user % 5, 10) for user in range(N)]
    C = {T: cardinality(mixed, T) for T in PAPER}
    report.check(all(cardinality([p] * N, T) == formula(N, K, T, p) for T in PAPER for p in GRID[1:6]), "equal rates")
    report.say(f"C for rates .1 to .5 in turn: { {T: round(float(c), 3) for T, c in C.items()} }")
    half = {T: formula(N, K, T, Fraction(1, 2)) for T in PAPER}
    report.check(half[4] < Fraction(3, 10) * half[1], "(d) not so when all rates are 1/2")
    close = C[3] > Fraction(999, 1000) * C[1] and C[4] > Fraction(97, 100) * C[1]
    numbers = {f"T = {T}": f"{float(c):.3f}" for T, c in C.items()}
    by_rate = {f"T = {T}, by rate": f"{float(cardinality(sorted(mixed), T)):.3f}" for T in (6, 12)}
    all_half = {f"T = {T}, rates 1/2": f"{float(c):.3f}" for T, c in half.items()}
    least = min(C, key=lambda T: C[T]) == K and all(
        disjoint_weight(users, chosen) == chosen for users, chosen in GROUPS
    )
    there = drawn()
    for T in PAPER:
        near = abs(there[T] - float(C[T])) < 0.4
        report.agree(("MRS-OBS1", "MRS-OBS2"), "samples", near, f"C of {ROUNDS} drawn rounds: {there}")
    groups = np.kron(np.eye(N // K, dtype=bool), np.ones(K, dtype=bool))
    report.check(weights.least_weight(groups).low == K, "(e) the auditor finds the privacy 12 of ten groups")
    return {
        "MRS-OBS1": Finding(
            "confirmed" if close else "refuted", "for rates that differ", None, {**numbers, **by_rate, **all_half}
        ),
        "MRS-OBS2": Finding("confirmed" if least else "refuted", "privacy 12, and the least C"),
    }


def drawn() -> dict[int, float]:
    """Return the mean number of users in rounds that are drawn, by T."""
    rates = np.array([(1 + divmod(user, 5)[1]) / 10 for user in range(N)])
    bits = np.frombuffer(shake_256(b"cardinality").digest(4 * ROUNDS * N), "<u4").reshape(ROUNDS, N) / 2.0**32
    complete = {T: (bits >= rates).reshape(ROUNDS, -1, T).all(axis=2).sum(axis=1) for T in PAPER}
    return {T: K * float((complete[T] >= K // T).mean()) for T in PAPER}


def disjoint_weight(users: int, chosen: int) -> int:
    """Return the least number of users in a combination of disjoint groups, with coefficients from -2 to 2."""
    M = users // chosen
    z = np.stack(np.meshgrid(*[np.arange(-2, 3)] * M), axis=-1).reshape(-1, M)
    weights = (z @ np.kron(np.eye(M, dtype=int), np.ones(chosen, dtype=int)) != 0).sum(axis=1)
    return int(weights[weights > 0].min())
