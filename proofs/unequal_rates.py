"""With unequal dropout rates training may end at a wrong model, and with biased choices it may end at the right one.

Statement. Four users in two batches, of which one is chosen, K = T = 2. The losses are (x - b)^2/2, with b = 1 in the
first batch and b = -1 in the second, so that the optimum is 0. A round t with the first batch goes from x to x -
eta_t (x - 1), with eta_t = 2/(8 + t), and with the second one to x - eta_t (x + 1). Training begins at 0.
(a) Rates 0, 0, 1/2, 1/2. Whatever way the server chooses, as long as it skips no round that could take place, the
    mean loss tends to 1/8 or more above the optimum. The right side of (8) goes to 0, and is below the loss from some
    round on, with the printed beta and with that of whole batches.
(b) Rates 0, 1/2, 0, 1/2, with the rule of least frequency: the least gap of UNI-FAIR is 0, and the mean loss stays
    below (8) and goes to 0. So it is for two more choices of rates with the least gap 0.
(c) Rates 0. In every second round the choice by least frequency is known before, so that it is no unbiased one; the
    mean loss stays below (8) all the same, and goes to 0.
(d) So training converges to some model in all five settings, in that the mean loss after 300 rounds is within 0.01 of
    that after 150; to the optimum, below 0.01 and never above (8), it converges in the four with the least gap 0.

Idea. (a) The first batch is always complete, and in 3/4 of all rounds the second is not. So given the rounds before
the next b is 1 with the probability 3/4 or more, and 1/2 or more in the mean. So the mean model is at least 1/2 (1 -
prod_t (1 - eta_t)), where the product is 42/((6 + J) (7 + J)), and the mean of x^2/2 at least half the square of
that. It is computed by fractions, and for the rule of least frequency exactly as well: the rounds of one batch less
those of the other are a chain, and with each state go the mean of x and of x^2. All constants of (8) are there: rho =
mu = 1, gamma = 8, Gamma = 1/2, sigma = 0, and G = 2, since models stay between -1 and 1. (b), (c) The same chain; in
(c) two rounds have each batch once, in either order, and all orders of ten rounds are run by fractions as well.
Twenty runs of rounds that the code chooses end where the chain does. 300 rounds are run; in (a) the bounds only come
nearer to their limits afterwards, and (b) to (d) say nothing of more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import shake_256
from itertools import chain, product
from typing import TypeAlias

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.selection import metrics, strategies
from secagg_spec.selection.batches import Parameters

CLAIMS = {
    "MRS-REM10B": "readings",
    "UNI-UNEQUAL": "expectation",
    "MRS-REM10C": "expectation",
}
Rates: TypeAlias = tuple[Fraction, ...]
ZERO, HALF = Fraction(0), Fraction(1, 2)
SESSION = Parameters(4, 2, 2)
ROUNDS, RUNS = 300, 20
PRINTED, OF_BATCHES = Fraction(16, 3), Fraction(16)
"""beta of theorem 2, 4 (N - K) G^2/(K (N - 1)), and with batches in the places of users."""


def rate(t: int) -> Fraction:
    """Return the learning rate of a round."""
    return Fraction(2, 8 + t)


def bound(J: int, share: Fraction, beta: Fraction) -> Fraction:
    """Return the right side of (8) after J rounds, of which a share takes place."""
    alpha = 6 * HALF
    return 2 * (alpha + beta) / (8 + share * J - 1)


def at_least(J: int) -> Fraction:
    """Return the lower bound of (a) on the mean loss after J rounds."""
    return (HALF * (1 - Fraction(42, (6 + J) * (7 + J)))) ** 2 / 2


def losses(rates: Rates) -> Iterator[float]:
    """Yield the mean loss above the optimum after 0, 1, 2, ... rounds by the rule of least frequency."""
    first, second = float((1 - rates[0]) * (1 - rates[1])), float((1 - rates[2]) * (1 - rates[3]))
    ahead = np.sign(np.arange(-ROUNDS, ROUNDS + 1))
    takes_first = first * (1 - second) + first * second * (1 - ahead) / 2
    takes_second = second * (1 - first) + first * second * (1 + ahead) / 2
    state = np.zeros((3, 2 * ROUNDS + 1))
    state[0, ROUNDS] = 1.0
    for t in range(ROUNDS):
        yield float(state[2].sum()) / 2
        up, down = moved(state * takes_first, rate(t), 1), moved(state * takes_second, rate(t), -1)
        state = state * (1 - takes_first - takes_second) + np.roll(up, 1, axis=1) + np.roll(down, -1, axis=1)
    yield float(state[2].sum()) / 2


def moved(state: np.ndarray, eta: Fraction, b: int) -> np.ndarray:
    """Return, by state, the probability and the means of x and x^2 after x goes to x - eta (x - b)."""
    left, step = float(1 - eta), float(eta) * b
    chance, mean, square = state
    return np.stack([chance, left * mean + step * chance, left**2 * square + 2 * left * step * mean + step**2 * chance])


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    optimum, settled = Tally(), Tally()
    for rates in cases():
        share = metrics.expected_cardinality(SESSION, rates) / SESSION.K
        found, gap = list(losses(rates)), metrics.least_gap(SESSION, rates)
        right = [float(bound(J, share, PRINTED)) for J in range(ROUNDS + 1)]
        over = [J for J in range(ROUNDS + 1) if found[J] > right[J]]
        report.say(f"rates {[str(p) for p in rates]}: least gap {gap}, loss after {ROUNDS} rounds {found[-1]:.5f}")
        case: dict[str, object] = {"rates": [str(p) for p in rates], "least gap": str(gap)}
        case["first round with the loss above (8)"] = min(over, default=0)
        reading = {"reading": "to the optimum", **case, "loss after 300 rounds": f"{found[-1]:.3f}"}
        optimum.add(reading, not over and found[-1] < 0.01)
        settled.add(case, abs(found[-1] - found[ROUNDS // 2]) < 0.01)
        report.check((gap == 0) == (not over), f"(a), (b) {case}")
    return {
        "MRS-REM10B": convergence(settled, optimum),
        "UNI-UNEQUAL": wrong(report),
        "MRS-REM10C": in_turn(report),
    }


def convergence(settled: Tally, optimum: Tally) -> Finding:
    """Decide remark 10, by readings: to some model, or to the optimum."""
    verdict = by_reading((settled, optimum))
    numbers = {"settled": settled.held, "at the optimum": optimum.held, "of": optimum.cases}
    return Finding(verdict, "to some model, and to the optimum when the least gap is 0", optimum.against, numbers)


def cases() -> Iterator[Rates]:
    """Yield the rates of the users: those of (b) and (c), others with the least gap 0, and those of (a)."""
    tenth = Fraction(1, 10)
    yield from ((ZERO,) * 4, (ZERO, HALF, ZERO, HALF), (tenth, HALF, HALF, tenth), (tenth, tenth, tenth, 2 * tenth))
    yield (ZERO, ZERO, HALF, HALF)


def wrong(report: Report) -> Finding:
    """Decide (a), and from which round on (8) is below the loss, whatever way the server chooses."""
    exact = list(losses((ZERO, ZERO, HALF, HALF)))
    low = [float(at_least(J)) for J in range(ROUNDS + 1)]
    below = all(a <= b + 1e-12 for a, b in zip(low, exact, strict=True))
    report.check(abs(exact[-1] - 0.125) < 0.01, "(a) the rule of least frequency ends there")
    for rates, mean in (((ZERO, ZERO, HALF, HALF), exact[-1]), ((ZERO, HALF, ZERO, HALF), 0.0)):
        found = drawn(rates)
        both, near = ("MRS-REM10B", "UNI-UNEQUAL"), abs(found - mean) < 0.02
        report.agree(both, "samples", near, f"{RUNS} runs of the code end at {found:.4f}")
    model = ZERO
    for t in range(ROUNDS):
        model += rate(t) * (HALF - model)
        report.check(model**2 / 2 == at_least(t + 1), "(a) the product")
    after = {
        name: next((J for J in range(ROUNDS + 1) if at_least(J) > bound(J, Fraction(1), beta)), -1)
        for name, beta in (("J, printed beta", PRINTED), ("J, beta of batches", OF_BATCHES))
    }
    apart = 0 <= HALF**2 / 2 - at_least(ROUNDS) < Fraction(1, 1000)
    return Finding("confirmed" if below and apart else "refuted", "1/8 or more above the optimum", None, after)


def drawn(rates: Rates) -> float:
    """Return the mean loss above the optimum after rounds that the code chooses, from fixed bits."""
    bits = np.frombuffer(shake_256(str(rates).encode()).digest(4 * 5 * RUNS * ROUNDS), "<u4") / 2.0**32
    models = np.zeros(RUNS)
    for run, rounds in enumerate(bits.reshape(RUNS, ROUNDS, 5)):
        seen = np.zeros(4, dtype=np.int64)
        for t, row in enumerate(rounds):
            here = row[:4] >= np.array(rates, dtype=float)
            ranges = strategies.ranges(SESSION, "fair", seen, here)
            if ranges is not None:
                chosen = strategies.choose(SESSION, "fair", seen, here, [int(row[4] * ranges[0])]) or ()
                seen[[*chosen]] += 1
                models[run] -= float(rate(t)) * (models[run] - (1 if 0 in chosen else -1))
    return float((models**2).mean() / 2)


def in_turn(report: Report) -> Finding:
    """Decide (c)."""
    found, orders = list(losses((ZERO,) * 4)), list(product(((1, -1), (-1, 1)), repeat=5))
    for J in (2, 4, 6, 8, 10):
        mean = sum((ended(order[: J // 2]) ** 2 / 2 for order in orders), ZERO) / len(orders)
        below = mean <= bound(J, Fraction(1), PRINTED)
        same = below and abs(float(mean) - found[J]) < 1e-12
        report.agree("MRS-REM10C", "enumeration", same, f"all orders of {J} rounds have the loss {mean}")
    below = all(loss <= bound(J, Fraction(1), PRINTED) for J, loss in enumerate(found))
    against = {"rates": [0, 0, 0, 0], "known before": "each second round", "loss after 300 rounds": f"{found[-1]:.1e}"}
    return Finding("imprecise" if below and found[-1] < 0.001 else "confirmed", "only the argument needs it", against)


def ended(order: Sequence[Sequence[int]]) -> Fraction:
    """Return the model after rounds in some order."""
    model = ZERO
    for t, b in enumerate(chain.from_iterable(order)):
        model -= rate(t) * (model - b)
    return model
