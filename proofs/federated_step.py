"""The mean of equal users is the mean of their examples; the sign of the step depends on what users send.

Statement.
(a) Equation (1): F = sum_i (n_i/n) F_i is the mean over all examples. With equal n_i it is the plain mean of the F_i;
    with others the plain mean is another function.
(b) Equation (2), theta + (1/N) sum_i x_i, is a step down when x_i = theta_i - theta is an update, -eta g_i for one step
    of learning rate eta. With x_i = g_i, as in Assumption 1 and Theorem 2, it is a step up: these have theta - eta p'.
(c) Assumption 1, E x_i = grad F for each user, allows no differing users: with F_i that differ, as in experiment 1
    with its sorted labels, the E x_i differ, and only their mean is grad F.

Idea. Losses (theta - c)^2/2 of single examples, whose gradient is theta - c; fractions. All data of two users with up
to three examples each, of three values, are tried; for any values the same follows by algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "HET-EQ1": "enumeration",
    "HET-EQ2": "readings",
    "HET-A1": "enumeration",
}
Users = Sequence[Sequence[Fraction]]
"""The c of each example of each user."""
CENTRES = tuple(Fraction(c) for c in (-1, 0, 2))


def mean(values: Sequence[Fraction]) -> Fraction:
    """Return the plain mean."""
    return sum(values, Fraction(0)) / len(values)


def loss(examples: Sequence[Fraction], theta: Fraction) -> Fraction:
    """Return the mean loss of examples."""
    return mean([(theta - c) ** 2 / 2 for c in examples])


def gradient(examples: Sequence[Fraction], theta: Fraction) -> Fraction:
    """Return its gradient."""
    return mean([theta - c for c in examples])


def users(counts: Sequence[int]) -> list[Users]:
    """Return all users with so many examples each."""
    return [
        [drawn[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(len(counts))]
        for drawn in product(CENTRES, repeat=sum(counts))
    ]


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c)."""
    algebra(report)
    return {"HET-EQ1": objective(report), "HET-EQ2": step(report), "HET-A1": assumption(report)}


def algebra(report: Report) -> None:
    """Decide the same for two users with any numbers of examples, whose losses are A and B in all."""
    sympy = package("sympy")
    A, B, n, k, a, b, theta, eta = sympy.symbols("A B n k a b theta eta", positive=True)
    weighted = n / (n + k) * (A / n) + k / (n + k) * (B / k)
    plain = (A / n + B / k) / 2
    report.agree(
        "HET-EQ1",
        "symbolic",
        sympy.simplify(weighted - (A + B) / (n + k)) == 0
        and sympy.simplify(plain - weighted) != 0
        and sympy.simplify((plain - weighted).subs(k, n)) == 0,
        "the weighted mean is that of all examples, and the plain one is with equal numbers only",
    )
    slope = ((theta - a) + (theta - b)) / 2
    change = {sign: ((theta + sign * slope - (a + b) / 2) ** 2 - (theta - (a + b) / 2) ** 2) / 2 for sign in (1, -eta)}
    distance = (theta - (a + b) / 2) ** 2
    report.agree(
        "HET-EQ2",
        "symbolic",
        sympy.expand(change[1] - 3 * distance / 2) == 0
        and sympy.expand(change[-eta] + eta * (2 - eta) / 2 * distance) == 0,
        "gradients that are added raise the loss, updates with a rate below 2 lower it",
    )
    off = (theta - a) - slope
    report.agree(
        "HET-A1",
        "symbolic",
        sympy.expand(off - (b - a) / 2) == 0,
        "a user's gradient is off by half of the difference of the two means, and by nothing for equal ones only",
    )


def objective(report: Report) -> Finding:
    """Decide (a)."""
    tally, differ = Tally(), 0
    for counts in ((1, 1), (2, 2), (1, 2), (1, 3)):
        for data, theta in product(users(counts), (Fraction(0), Fraction(1, 2))):
            pooled = loss([c for own in data for c in own], theta)
            weighted = sum((Fraction(len(own), sum(counts)) * loss(own, theta) for own in data), Fraction(0))
            plain = mean([loss(own, theta) for own in data])
            tally.add({"examples": list(counts)}, weighted == pooled)
            differ += plain != pooled
            report.check(len(set(counts)) > 1 or plain == pooled, "(a) equal users: the plain mean")
    report.check(differ > 0, "(a) users of different sizes: the plain mean is another function")
    report.say(f"equation (1): the mean over all examples in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "the mean over all examples", tally.against)


def step(report: Report) -> Finding:
    """Decide (b), by readings of x_i."""
    down = {"updates": True, "gradients": True}
    for data, theta, eta in product(users((2, 2)), (Fraction(0), Fraction(3)), (Fraction(1, 4), Fraction(1))):
        g = [gradient(own, theta) for own in data]
        pooled = [c for own in data for c in own]
        for kind, x in (("updates", [-eta * each for each in g]), ("gradients", g)):
            moved = theta + mean(x)
            down[kind] = down[kind] and loss(pooled, moved) <= loss(pooled, theta)
        report.check(
            theta + mean([-eta * each for each in g]) == theta - eta * mean(g), "(b) one step in two notations"
        )
    alone = [Fraction(0)]
    report.check(Fraction(3) + gradient(alone, Fraction(3)) == 6, "(b) one user, F = theta^2/2: from 3 to 6")
    report.say(f"equation (2) goes down: {down}")
    return Finding(
        by_reading(down.values()),
        "for updates, not for gradients",
        {"x_i": "g_i", "F": "theta^2/2", "theta": "3", "next": "6"},
    )


def assumption(report: Report) -> Finding:
    """Decide (c)."""
    tally = Tally()
    for data, theta in product(users((1, 1)), (Fraction(0), Fraction(1, 2))):
        g, whole = [gradient(own, theta) for own in data], gradient([c for own in data for c in own], theta)
        alike = data[0] == data[1]
        case = {"examples": [str(own[0]) for own in data], "gradients": [str(x) for x in g], "grad F": str(whole)}
        tally.add(case, all(x == whole for x in g), condition=alike)
        report.check(mean(g) == whole, "(c) the mean is grad F")
    report.say(f"E x_i = grad F for each user in {tally.held} of {tally.cases} cases: for users that are alike")
    return Finding(tally.verdict, "only the mean is grad F", tally.against)
