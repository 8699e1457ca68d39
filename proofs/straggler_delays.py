"""How much a delay costs who waits for the slowest, and when buffers fill faster than rounds end.

Statement. Each of n users trains for c and is delayed besides, by an amount from an exponential distribution of scale
beta = 1/lambda, whose mean is beta. H_n is 1 + 1/2 + ... + 1/n.
(a) The slowest of n users takes c + beta H_n on average, and a user c + beta. The difference grows with beta for
    n >= 2; the quotient does for c > 0, from 1 to H_n, and is H_n whatever beta is for c = 0.
(b) Let each user start anew when it has finished, with visits that take no time. Then buffers of K updates come every
    K (c + beta)/n on average, and rounds every c + beta H_n: buffers come more often for all beta when K < n, at least
    n/K times as often and at most n H_n/K times.
(c) Let visits take the time v each, one user at a time, as in BASA, and nobody be delayed. A buffer of K < n updates
    then comes every K max((c + v)/n, v), a round every c + v. So buffers come more often exactly when (K - 1) v < c.
(d) With B buffers side by side, as many users visit at a time, and updates come at the rate min(n/(c + v), B/v). So
    several buffers are never slower, and faster than one exactly when users queue before one, n v > c + v, and n > 1.
(e) Let users connect at a constant rate, one after each time a, and wait while M train. Then M train at all times, once
    the first have come, exactly when c >= M a, and else c/a of them at the least, rounded down. So a rate of M/c or
    more lets both sentences of the paper hold.

Idea. (a) The mean of the slowest is the integral of 1 - (1 - exp(-x/beta))^n, done for n = 1 to 8 by algebra; for all n
the times between one user and the next are exponential with the scales beta/n, ..., beta. Samples from a fixed stream
agree for 32 users. (b) A user finishes every c + beta on average, whatever the others do; the rest is algebra. (c) The
queue is run step by step with integers: n = 2 to 8, K < n, c from 1 to 12 and v from 1 to 6; (d) likewise, with n up to
6, c and v up to 6 and up to 4 buffers, and (e) for M up to 8, a up to 6 and c up to 40.
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heapreplace
from itertools import product

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "BASA-BETA": "symbolic",
    "BASA-FREQ": "enumeration",
    "BASA-BUF": "enumeration",
    "BASA-RATE": "enumeration",
}
USERS, LARGE, K = 32, 200, 10
"""The paper's: users at once in table 1 and in figure 2, and the buffer."""


def harmonic(n: int) -> Fraction:
    """Return H_n."""
    return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    return {
        "BASA-BETA": slowest(report),
        "BASA-FREQ": frequency(report),
        "BASA-BUF": side_by_side(report),
        "BASA-RATE": connecting(report),
    }


def slowest(report: Report) -> Finding:
    """Decide (a)."""
    sympy = package("sympy")
    x, beta, c = sympy.symbols("x beta c", positive=True)
    tally = Tally()
    for n in range(1, 9):
        late = sympy.expand(1 - (1 - sympy.exp(-x / beta)) ** n)
        mean = sympy.simplify(sympy.integrate(late, (x, 0, sympy.oo)))
        H = sympy.Rational(harmonic(n).numerator, harmonic(n).denominator)
        ratio = (c + beta * H) / (c + beta)
        rise = sympy.simplify(sympy.diff(ratio, beta) * (c + beta) ** 2)
        ends = [sympy.limit(ratio, beta, 0), sympy.limit(ratio, beta, sympy.oo), sympy.simplify(ratio.subs(c, 0))]
        report.check(rise == sympy.simplify(c * (H - 1)), f"(a) the quotient grows when H_n > 1: n = {n}")
        report.check(ends == [1, H, H], f"(a) from 1 to H_n, and H_n for c = 0: n = {n}")
        tally.add({"n": n, "mean": str(mean)}, sympy.simplify(mean - beta * H) == 0)
    drawn = np.random.default_rng(11).exponential(1.0, (20_000, USERS)).max(axis=1)
    error = 5 * float(drawn.std()) / len(drawn) ** 0.5
    near = abs(float(drawn.mean()) - float(harmonic(USERS))) < error
    report.agree("BASA-BETA", "samples", near, f"{USERS} users wait for {drawn.mean():.3f} beta, up to {error:.3f}")
    numbers = {f"H_{n}": f"{float(harmonic(n)):.4f}" for n in (USERS, LARGE)}
    report.say(f"the slowest of {USERS} users is delayed by {numbers[f'H_{USERS}']} beta on average, a user by beta")
    return Finding(tally.verdict, "the slowest is delayed H_n times as long", tally.against, numbers)


def rate(n: int, servers: int, c: int, v: int, visits: int) -> Fraction:
    """Run the queue before some buffers, and return the visits for each unit of time, after the first half of them."""
    ready, free, ends = [c] * n, [0] * servers, list[int]()
    for _ in range(visits):
        end = max(free[0], ready[0]) + v
        heapreplace(free, end)
        heapreplace(ready, end + c)
        ends.append(end)
    half = len(ends) // 2
    return Fraction(half, ends[-1] - ends[half - 1])


def frequency(report: Report) -> Finding:
    """Decide (b) and (c)."""
    sympy = package("sympy")
    n, size, c, beta, H = sympy.symbols("n K c beta H", positive=True)
    longer = n * (c + beta * H) - size * (c + beta)
    parts = c * (n - size) + beta * (n * H - size)
    report.check(sympy.expand(longer - parts) == 0, "(b) both parts are positive for K < n, since H >= 1")
    readings = {"visits of no time": Tally(), "visits one at a time": Tally()}
    for users, full, c_, beta_ in product((*range(2, 9), USERS, LARGE), range(1, 11), (1, 12), (0, 1, 6)):
        if full < users:
            case = {"n": users, "K": full, "training": c_, "beta": beta_}
            sooner = Fraction(full * (c_ + beta_), users) < c_ + beta_ * harmonic(users)
            readings["visits of no time"].add(case, sooner)
    tally = readings["visits one at a time"]
    for users, c_, v in ((LARGE, 8, 1), *product(range(2, 9), range(1, 13), range(1, 7))):
        for full in (K,) if users == LARGE else range(1, users):
            got, rounds = full / rate(users, 1, c_, v, 24 * users), c_ + v
            formula = full * max(Fraction(c_ + v, users), Fraction(v))
            report.check(got == formula, f"(c) the queue: n = {users}, K = {full}, c = {c_}, v = {v}: {got}")
            case = {"n": users, "K": full, "training": c_, "visit": v, "buffer": str(got), "round": rounds}
            tally.add(case, got < rounds)
            report.check((got < rounds) == ((full - 1) * v < c_), f"(c) more often exactly when (K - 1) v < c: {case}")
    c, v = sympy.symbols("c v", positive=True)
    slack, fills = c + v - size * v, (c + v) - size * (c + v) / n
    same = sympy.expand(slack - (c - (size - 1) * v)) == 0 and sympy.cancel(fills - (c + v) * (n - size) / n) == 0
    report.agree("BASA-FREQ", "symbolic", bool(same), "(c) both times of the formula are below a round, or not")
    often = {f"n = {users}": f"{users / K} to {users * float(harmonic(users)) / K:.1f}" for users in (USERS, LARGE)}
    report.say(f"visits that take no time, K = {K}: so many buffers for each round: {often}")
    report.say(f"visits one at a time: buffers come more often in {tally.held} of {tally.cases} cases")
    return Finding(by_reading(readings.values()), "as long as users need not queue", tally.against, often)


def side_by_side(report: Report) -> Finding:
    """Decide (d)."""
    tally, faster = Tally(), 0
    for n, B, c, v in product(range(1, 7), range(2, 5), range(1, 7), range(1, 7)):
        one, several = (rate(n, servers, c, v, 24 * n * servers) for servers in (1, B))
        stated = several == min(Fraction(n, c + v), Fraction(B, v)) and one == min(Fraction(n, c + v), Fraction(1, v))
        report.agree("BASA-BUF", "arithmetic", stated, f"(d) the lesser of n/(c + v) and B/v: {n}, {B}, {c}, {v}")
        report.check((several > one) == (n * v > c + v), f"(d) faster when users queue: {n}, {B}, {c}, {v}")
        tally.add({"n": n, "buffers": B, "training": c, "visit": v}, several >= one)
        faster += several > one
    report.say(f"several buffers: never slower in {tally.held} of {tally.cases} cases, faster in {faster}")
    return Finding(tally.verdict, "faster when users queue", tally.against, {"cases": tally.cases, "faster": faster})


def training(M: int, a: int, c: int) -> int:
    """Let users connect, and wait while M train; return how many train at least, once the first have ended."""
    ends, waiting, least, settled = list[int](), 0, M, 2 * (c + a * M)
    for now in range(3 * settled):  # all that happens does at whole numbers
        ends, waiting = [end for end in ends if end > now], waiting + (now % a == 0)
        begun = min(waiting, M - len(ends))
        ends, waiting = [*ends, *[now + c] * begun], waiting - begun
        least = min(least, len(ends)) if now > settled else least
    return least


def connecting(report: Report) -> Finding:
    """Decide (e)."""
    tally = Tally()
    grid = [*product(range(2, 9), range(1, 7), range(1, 41)), (USERS, 1, USERS - 1), (USERS, 1, USERS), (USERS, 2, 65)]
    for M, a, c in grid:
        found, case = training(M, a, c), {"at most": M, "one after": a, "training": c}
        report.agree("BASA-RATE", "arithmetic", found == min(M, c // a), f"(e) c/a train, rounded down: {case}")
        tally.add(case | {"train": found}, found == M, condition=c >= M * a)
    report.check(tally.exact, "(e) exactly when c >= M a")
    report.say(f"users at a constant rate: as many train as may in {tally.held} of {tally.cases} cases")
    often, rarer = (training(USERS, 1, c) for c in (USERS, USERS - 1))
    numbers = {f"of {USERS} train, c = {USERS - 1} a": rarer, f"of {USERS} train, c = {USERS} a": often}
    return Finding("confirmed" if often == USERS else "refuted", "with users who connect often enough", numbers=numbers)
