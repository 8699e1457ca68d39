"""Of a secret shared with threshold t, t - 1 shares say nothing and t say all.

Statement, for a polynomial over F_q of degree below t whose value at 0 is the secret, whose other coefficients are
uniform, and whose values at distinct points are the shares.
(a) Any t - 1 shares are uniform whatever the secret is exactly when none of their points is 0.
(b) Any t shares determine the secret.
(c) When the leading coefficient is never zero, any t - 1 shares rule out exactly one secret each time.
(d) With one coefficient fewer, t - 1 shares determine the secret.
(e) 2**521 - 1 is prime, and with the points j + 1 of the users j in [0, 2**32 - 2] the shares of the reference are as
in (a): they depend on the coefficients by a matrix that is invertible.

Idea. Given the secret, the shares at x_1 ... x_(t-1) are an affine function of the coefficients with the matrix
(x_i^k), whose determinant is the product of the points and of their differences: not zero for distinct points other
than 0. (a) to (d) by counting every polynomial over small fields. For (e), the test of Lucas and Lehmer, and the matrix
that `share` has, found by sharing with one coefficient at a time; each factor of its determinant is an integer between
0 and p.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

from secagg_spec.arithmetic import shamir
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "UNI-SHAMIR": "enumeration",
}
SMALL = ((3, 2), (5, 2), (5, 3), (5, 4), (7, 2), (7, 3), (7, 4))
"""(q, t) of which all polynomials are counted."""
HOLDERS = ((0, 1), (1, 2**32 - 2), (5, 0, 2**31), (0, 1, 2, 3, 4, 5), (2**32 - 2, 2**32 - 3, 7, 65535, 65536, 99, 4))
"""Users, t - 1 of them, whose shares of the reference are looked at."""
Views = dict[int, Counter[tuple[int, ...]]]


def views(q: int, points: Sequence[int], degree: int, *, leading_zero: bool = True) -> Views:
    """Return, for each secret, how often each tuple of shares comes up over all polynomials up to a degree."""
    found: Views = {}
    for secret in range(q):
        polynomials = [c for c in product(range(q), repeat=degree) if leading_zero or c[-1]]
        shares = [tuple(value(q, secret, c, x) for x in points) for c in polynomials]
        found[secret] = Counter(shares)
    return found


def value(q: int, secret: int, coefficients: Sequence[int], x: int) -> int:
    """Return the value of the polynomial at x."""
    total: int = secret + sum(c * x**k for k, c in enumerate(coefficients, 1))
    return total % q


def uniform(found: Views, q: int, points: Sequence[int]) -> bool:
    """Return whether every tuple of shares comes up once, whatever the secret is."""
    every = Counter(product(range(q), repeat=len(points)))
    return all(counted == every for counted in found.values())


def determined(found: Views) -> bool:
    """Return whether no tuple of shares comes up for two secrets."""
    seen = [shares for counted in found.values() for shares in counted]
    return len(seen) == len(set(seen))


def prove(report: Report) -> dict[str, Finding]:
    """Count over small fields, and look at the shares of the reference."""
    tally = Tally()
    for q, t in SMALL:
        for points in combinations(range(q), t - 1):
            hidden = uniform(views(q, points, t - 1), q, points)
            report.check(hidden == (0 not in points), f"(a) uniform exactly without the point 0: q = {q}, {points}")
            if 0 not in points:
                tally.add({"q": q, "t": t, "points": list(points)}, hidden)
                leading(report, q, points)
        for points in combinations(range(q), t):
            report.check(determined(views(q, points, t - 1)), f"(b) t shares determine: q = {q}, points {points}")
        report.say(f"q = {q}, t = {t}: every t - 1 shares uniform without the point 0, every t determine the secret")
    invertible(report)
    excluded = report_example(report)
    own_shares(report)
    numbers = {"point-sets": tally.cases, "shares-5-with-c1-not-0-rule-out": excluded}
    return {"UNI-SHAMIR": Finding(tally.verdict, "t - 1 shares fit every secret once", tally.against, numbers)}


def leading(report: Report, q: int, points: Sequence[int]) -> None:
    """Decide (c) and (d) for the points of t - 1 shares."""
    t = len(points) + 1
    biased = views(q, points, t - 1, leading_zero=False)
    for shares in product(range(q), repeat=t - 1):
        out = [secret for secret, counted in biased.items() if not counted[shares]]
        report.check(len(out) == 1, f"(c) one secret is ruled out: q = {q}, points {points}, shares {shares}")
    report.check(determined(views(q, points, t - 2)), f"(d) one coefficient fewer: q = {q}, points {points}")


def invertible(report: Report) -> None:
    """Decide (a) by the determinant of (x_i^k), k = 1 to t - 1, instead of counting."""
    same = True
    for q, t in SMALL:
        for points in combinations(range(q), t - 1):
            matrix = package("sympy").Matrix(t - 1, t - 1, lambda row, power, points=points: points[row] ** (power + 1))
            same &= bool(divmod(int(matrix.det()), q)[1]) == (0 not in points)
    report.agree("UNI-SHAMIR", "matrices", same, "the determinant is not 0 exactly when no point is")


def report_example(report: Report) -> int:
    """Return the secret that a share of 5 rules out over F_7, with t = 2 and a coefficient that is never zero."""
    biased = views(7, (1,), 1, leading_zero=False)
    (secret,) = (secret for secret, counted in biased.items() if not counted[5,])
    report.say(f"q = 7, t = 2, coefficient never zero: the holder of the share 5 knows that the secret is not {secret}")
    return secret


def own_shares(report: Report) -> None:
    """Decide (e)."""
    report.check(lucas_lehmer(521), "(e) 2**521 - 1 is prime")
    report.check(shamir.PRIME == 2**521 - 1, "(e) the field of the reference")
    for users in HOLDERS:
        matrix = probed(users)
        points = [user + 1 for user in users]
        determinant = int(package("sympy").Matrix(matrix).det(method="bareiss")) % shamir.PRIME
        factors = [*points, *(abs(one - other) for one, other in combinations(points, 2))]
        report.check(all(0 < factor < shamir.PRIME for factor in factors), f"(e) points and differences: {users}")
        report.check(determinant != 0, f"(e) the shares of users {users} are a one-to-one function of coefficients")
    report.say(f"2**521 - 1 is prime; {len(HOLDERS)} matrices of the reference's shares are invertible")


def probed(users: Sequence[int]) -> list[list[int]]:
    """Return how the shares of t - 1 users depend on the t - 1 coefficients, by sharing zero with each alone."""
    t = len(users) + 1
    everybody = (*users, next(user for user in range(t) if user not in users))
    columns = [shamir.share(bytes(32), [int(at == k) for at in range(t - 1)], everybody) for k in range(t - 1)]
    return [list(row) for row in zip(*columns, strict=True)][: t - 1]


def lucas_lehmer(exponent: int) -> bool:
    """Return whether 2**exponent - 1 is prime, for a prime exponent above 2."""
    number, term = 2**exponent - 1, 4
    for _ in range(exponent - 2):
        term = (term * term - 2) % number
    return term == 0
