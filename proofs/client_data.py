"""How the experiments of Multi-RoundSecAgg share out their data: one sentence says less than it needs to.

Statement.
(a) 50000 samples are partitioned uniformly across 120 users, as nearly as can be, when 80 have 417 and 40 have 416.
(b) "d_c, which specifies the prior class distribution over 100 classes" cannot give user i a portion d_(c,i) of class
    c. If d_c has an entry for each user, it is no distribution over classes. If each user draws a distribution over
    classes and takes that portion of each class, the portions of a class sum to 120/100 of it in the mean.
(c) As beta goes to infinity, the portions of users from Dir(beta) tend to equal ones, and data alike for all users.

Idea. (a) Division with remainder. (b) The parts of Dir(beta) over n have the mean 1/n each; the portions of a class
sum to 1 for all draws in one reading alone. Draws from a fixed stream show the same. (c) A part has the variance (n -
1)/(n^2 (n beta + 1)), by the moments of the Beta distribution with beta and (n - 1) beta; its limit is 0, and the mean
is 1/n, for all n from 2 on. Run for n = 100 and 120, and by sympy for all n and beta.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, package

CLAIMS = {
    "MRS-IID": "arithmetic",
    "MRS-DIRICHLET": "readings",
    "MRS-DIRLIMIT": "symbolic",
}
SAMPLES, USERS, CLASSES, BETA = 50_000, 120, 100, Fraction(1, 2)
DRAWS = 200


def parts(n: int, beta: float, count: int) -> Any:
    """Return draws from Dir(beta) over n, one in each row, of a fixed stream."""
    return np.random.default_rng(7).dirichlet(np.full(n, beta), size=count)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    return {"MRS-IID": equal_shares(report), "MRS-DIRICHLET": portions(report), "MRS-DIRLIMIT": limit(report)}


def equal_shares(report: Report) -> Finding:
    """Decide (a)."""
    least, over = divmod(SAMPLES, USERS)
    shared = [len(share) for share in np.array_split(np.arange(SAMPLES), USERS)]
    same = (shared.count(least + 1), shared.count(least)) == (over, USERS - over)
    report.agree("MRS-IID", "enumeration", same, "the samples are shared out")
    uniform = max(shared) - min(shared) <= 1
    numbers = {"least": least, "users with one more": over}
    return Finding("confirmed" if uniform else "refuted", "417 or 416 samples", numbers=numbers)


def portions(report: Report) -> Finding:
    """Decide (b): what the portions of one class sum to, in both readings."""
    readings = {
        "for each class, over users": USERS * Fraction(1, USERS),
        "for each user, over classes": USERS * Fraction(1, CLASSES),
    }
    by_class = parts(USERS, float(BETA), CLASSES).sum(axis=1)
    by_user = np.array([parts(CLASSES, float(BETA), USERS * DRAWS)[:, 0].reshape(DRAWS, USERS).sum(axis=1)])
    drawn = np.allclose(by_class, 1) and abs(by_user.mean() - 1.2) < 0.05 and by_user.std() > 0.01
    report.agree("MRS-DIRICHLET", "samples", bool(drawn), "sums of portions of a class, in both readings")
    whole = [name for name, total in readings.items() if total == 1]
    report.say(f"the portions of a class sum to {readings}; each class is shared out in: {whole}")
    printed = "for each user, over classes"
    case = {"reading": printed, "portions of a class sum to, in the mean": str(readings[printed])}
    return Finding("imprecise" if printed not in whole else "confirmed", "over users, for each class", case)


def limit(report: Report) -> Finding:
    """Decide (c)."""
    sympy = package("sympy")
    n, beta = sympy.symbols("n beta", positive=True)
    a, b = beta, (n - 1) * beta
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    right = sympy.simplify(variance - (n - 1) / (n**2 * (n * beta + 1))) == 0
    equal = sympy.simplify(mean - 1 / n) == 0 and sympy.limit(variance, beta, sympy.oo) == 0
    spreads = [float(parts(USERS, size, DRAWS).var()) for size in (0.5, 50.0, 5000.0)]
    stated = [float(variance.subs({n: USERS, beta: size})) for size in (0.5, 50.0, 5000.0)]
    near = all(abs(one / other - 1) < 0.1 for one, other in zip(spreads, stated, strict=True))
    report.agree("MRS-DIRLIMIT", "samples", near, f"variances of parts for beta = .5, 50, 5000: {spreads}")
    return Finding("confirmed" if right and equal else "refuted", "the variance goes to 0")
