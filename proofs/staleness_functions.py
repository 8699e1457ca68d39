"""Staleness functions, and the set-up of the paper's experiments.

Statement.
(a) The polynomial (1 + tau)^(-alpha), the hinge and the constant function have s(0) = 1 and never increase. Only the
    polynomial with alpha > 0, and the hinge with a slope above 0 beyond its start, decrease; the constant function,
    which Theorem 1 and the experiments use, does not.
(b) The numbers of the experiments, N = 100, K = 10 and delays from 0 to 10, fit each other: all such delays are taken
    and no larger one, and with c_g = 64 and alpha = 1 no weight is 0. A delay cannot be larger than the round, so that
    in the first ten rounds it is not uniform on 0 to 10.

Idea. s(tau) is given by integers n, d and r with s(tau)^r = n/d; r does not depend on tau, so that values are compared
by products of integers; for alpha > 0 the derivative is negative, for all delays. (b) is counted with the server of the
reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from secagg_spec.arithmetic.staleness import Staleness, admissible_weights
from secagg_spec.errors import WrongPhase
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.protocols.fedbuff.round import PRESETS, receive, start

CLAIMS = {
    "BAS-S": "readings",
    "BAS-SETUP": "enumeration",
}
LONGEST = 30
ALPHAS = ("0", "0.1", "0.5", "1", "1.5", "2")
LAST_DELAY = 10


def prove(report: Report) -> dict[str, Finding]:
    """Compare every function at each two neighbouring delays, and count what the set-up allows."""
    return {"BAS-S": functions(report), "BAS-SETUP": setting(report)}


def candidates() -> Iterator[tuple[str, Staleness, bool]]:
    """Yield functions with their names, and whether they decrease all the way."""
    yield "constant", Staleness.constant(), False
    for alpha in ALPHAS:
        yield f"polynomial, alpha = {alpha}", Staleness.polynomial(alpha), alpha != "0"
    for a in ("0", "1/2", "10"):
        for b in (0, 4):
            yield f"hinge, a = {a}, b = {b}", Staleness.hinge(a, b), a != "0" and b == 0


def functions(report: Report) -> Finding:
    """Decide (a)."""
    weak, strict = Tally(), Tally()
    for name, s, decreases in candidates():
        n, d, _ = s.power(0)
        report.check(n == d, f"s(0) = 1: {name}")
        steps = [(s.power(tau), s.power(tau + 1)) for tau in range(LONGEST)]
        weak.add({"function": name}, all(n * e >= m * d for (n, d, _), (m, e, _) in steps))
        falls = all(n * e > m * d for (n, d, _), (m, e, _) in steps)
        strict.add({"function": name, "delays": [0, 1], "s": ["1", "1"]}, falls)
        report.check(falls == decreases, f"it decreases all the way exactly when it should: {name}")
    report.check(strict.held < weak.cases, "the constant function and others do not fall all the way")
    report.agree(
        "BAS-S", "symbolic", falls_everywhere(), "the derivative of (1 + tau)^(-alpha) is below 0 for alpha > 0"
    )
    report.say(f"{weak.held} of {weak.cases} functions never increase, and {strict.held} of them decrease all the way")
    return Finding(weak.verdict, "s(0) = 1, and s never increases", weak.against)


def falls_everywhere() -> bool:
    """Return whether the derivative of the polynomial function is negative for alpha > 0, and zero for alpha = 0."""
    sympy = package("sympy")
    tau, alpha = sympy.Symbol("tau", nonnegative=True), sympy.Symbol("alpha", positive=True)
    slope = sympy.diff((1 + tau) ** (-alpha), tau)
    return bool(slope.is_negative) and sympy.diff((1 + tau) ** (-sympy.Integer(0)), tau) == 0


def setting(report: Report) -> Finding:
    """Decide (b)."""
    p, tally = replace(PRESETS["paper"], d=1), Tally()
    report.check((p.N, p.K, p.tau_max) == (100, 10, LAST_DELAY), "the preset has the numbers of the paper")
    weights = [admissible_weights(p.staleness, p.c_g, delay) for delay in range(LAST_DELAY + 1)]
    report.check(min(weight for pair in weights for weight in pair) > 0, "no weight is 0")
    for t in range(2 * LAST_DELAY):
        for delay in range(LAST_DELAY + 3):
            possible = delay <= LAST_DELAY and delay <= t
            tally.add({"t": t, "delay": delay}, taken(t, delay) == possible)
    report.say(f"the set-up: {tally.held} of {tally.cases} delays are taken or refused as they should")
    numbers = {"first round with every delay": LAST_DELAY}
    report.check(
        all(taken(LAST_DELAY, delay) for delay in range(LAST_DELAY + 1)), "every delay is possible in round 10"
    )
    report.check(not taken(LAST_DELAY - 1, LAST_DELAY), "and not in round 9")
    return Finding(tally.verdict, "its numbers fit each other, from round 10 on", tally.against, numbers)


def taken(t: int, delay: int) -> bool:
    """Return whether the server takes an update that is so late, in round t; there is no round before 0."""
    if delay > t:
        return False
    state = replace(start(replace(PRESETS["paper"], d=1), np.zeros(1)), round=t)
    try:
        return bool(receive(state, 0, t - delay, np.ones(1)).buffer)
    except WrongPhase:
        return False
