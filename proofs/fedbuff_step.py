"""FedBuff: what its users send, what its server does with it, and what it minimises: equations (1) to (4), and (16).

Statement.
(a) Eq. (1): with weights w_i >= 0 that sum to 1, F lies between the smallest and the largest F_i at every x. The w_i do
    not occur in eq. (4): with all users in the buffer and one local step, it rests where the objective with *equal*
    weights does.
(b) Eq. (2) and (3): the update of a user is eta_l times the sum of the gradients of its E steps, and the model that it
    downloaded minus the update is the model that it trained.
(c) Eq. (4) is what the server computes, in every buffer in which all c_g s(tau) are integers.
(d) Eq. (16) is what the server computes from quantised updates when s is constant: then all weights are c_g, whatever
    the draws are.
(e) Appendix A: the server sends x^(t) and then takes the mean of the users' models as x^(t) again. With one and the
    same x^(t) that holds only where the gradients of the users sum to 0; with x^(t+1) on the left it is eq. (4) without
    delays, for eta_g = 1 and equal weights.

Idea. The functions of the reference run on numbers that binary64 holds exactly: halves of halves, and buffers in which
the sum of the s(tau) is a power of two. So their results are compared with fractions, for equality. Other buffers are
drawn, and compared up to the rounding of binary64. (a), (b) and (d) are identities besides, for all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import stochastic_round
from secagg_spec.arithmetic.staleness import Staleness, admissible_weights
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.protocols.fedbuff.round import Parameters, ServerState, local_update, receive, start, step

CLAIMS = {
    "BAS-EQ1": "enumeration",
    "BAS-EQ2": "enumeration",
    "BAS-EQ4": "enumeration",
    "BAS-EQ16": "enumeration",
    "BAS-MEAN": "readings",
}
ROUND, DELAYS = 7, (0, 1, 3, 7)
RECIPROCAL = Parameters(N=4, d=1, K=4, tau_max=ROUND, eta_g=0.5, staleness=Staleness.polynomial(1), c_g=64)


def prove(report: Report) -> dict[str, Finding]:
    """Compare the equations with the reference on every case of a grid."""
    found = {
        "BAS-EQ1": objective(report),
        "BAS-EQ2": updates(report),
        "BAS-EQ4": weighted_step(report),
        "BAS-EQ16": constant_step(report),
        "BAS-MEAN": mean_of_models(report),
    }
    drawn_buffers(report)
    by_algebra(report)
    return found


def served(parameters: Parameters, model: float, updates: Sequence[float | int], delays: Sequence[int]) -> ServerState:
    """Return the server after a step with the updates of the users 0, 1, … and these delays, in round 7."""
    p = replace(parameters, N=max(parameters.N, len(updates)), K=len(updates))
    state = replace(start(p, np.array([model])), round=ROUND)
    kind = np.float64 if p.c_l is None else np.int64
    for user, (update, delay) in enumerate(zip(updates, delays, strict=True)):
        state = receive(state, user, ROUND - delay, np.array([update], dtype=kind))
    return step(state, rounding=np.full(p.K, 0.5))


def value(state: ServerState) -> Fraction:
    """Return the one number of the model."""
    return Fraction(float(state.model[0]))


# ---------------------------------------------------------------------------------------------------------- (a)


def objective(report: Report) -> Finding:
    """Decide (a) for the losses (x - b_i)^2 / 2."""
    tally, grid = Tally(), [Fraction(k, 4) for k in range(-4, 9)]
    for b, weight, x in product(product((-1, 0, 1, 2), repeat=2), range(5), grid):
        w = (Fraction(weight, 4), 1 - Fraction(weight, 4))
        losses = [(x - center) ** 2 / 2 for center in b]
        F = sum(share * loss for share, loss in zip(w, losses, strict=True))
        tally.add({"b": list(b), "w": [str(share) for share in w], "x": str(x)}, min(losses) <= F <= max(losses))
    wanted = Fraction(1, 4)
    rest = [x for x in grid if moves(x) == 0]
    report.check(rest == [Fraction(1, 2)], "with the centres 0 and 1, eq. (4) rests at 1/2 alone")
    report.check(
        wanted not in rest, "the minimum with the weights 3/4 and 1/4 is at 1/4, and eq. (4) does not rest there"
    )
    scaled = [x for x in grid if moves(x, (Fraction(3, 2), Fraction(1, 2))) == 0]
    report.check(scaled == [wanted], "with updates times N w_i it does")
    report.say(f"eq. (1): {tally.held} of {tally.cases} sums lie between the losses; eq. (4) rests at {rest[0]}")
    numbers = {"minimum with the weights 3/4, 1/4": str(wanted), "rest of eq. (4)": str(rest[0])}
    return Finding(
        tally.verdict, "it is a mean of the losses; its weights do not occur in eq. (4)", tally.against, numbers
    )


def moves(x: Fraction, factors: Sequence[Fraction] = (Fraction(1), Fraction(1))) -> Fraction:
    """Return how far a step moves x, when two users make one local step each, with the centres 0 and 1."""
    sent = [float(factor * (x - center) / 2) for center, factor in zip((0, 1), factors, strict=True)]
    return value(served(RECIPROCAL, float(x), sent, (0, 0))) - x


# ---------------------------------------------------------------------------------------------------------- (b)


def updates(report: Report) -> Finding:
    """Decide (b) for gradients a (x - xi), up to four steps, and samples xi from 0, 1 and 3."""
    tally = Tally()
    for E, a, eta in product(range(1, 5), (1, 2), (Fraction(1, 2), Fraction(1, 4))):
        for samples in product((0, 1, 3), repeat=E):
            x, gradients = Fraction(5, 2), []
            for xi in samples:
                gradients.append(a * (x - xi))
                x -= eta * gradients[-1]
            sent = Fraction(float(local_update(np.array([2.5]), np.array([float(x)]))[0]))
            case = {"E": E, "a": a, "eta_l": str(eta), "samples": list(samples)}
            tally.add(case, sent == eta * sum(gradients) and Fraction(5, 2) - sent == x)
            alone = replace(RECIPROCAL, eta_g=1.0)
            report.check(value(served(alone, 2.5, [float(sent)], [0])) == x, f"one user alone is followed: {case}")
    report.say(f"eq. (2), (3): in {tally.held} of {tally.cases} runs the update is the sum of the local steps")
    return Finding(tally.verdict, "the update is eta_l times the sum of the gradients", tally.against)


# ---------------------------------------------------------------------------------------------------- (c) and (d)


def weighted_step(report: Report) -> Finding:
    """Decide (c) for buffers of up to four users whose weights sum to a power of two."""
    tally = Tally()
    for delays in (d for K in range(1, 5) for d in combinations_with_replacement(DELAYS, K)):
        s = [Fraction(1, 1 + tau) for tau in delays]
        if not power_of_two(sum(s)):
            continue
        for sent in product((-2, 1, 3), repeat=len(delays)):
            wanted = 5 - Fraction(1, 2) * sum(a * b for a, b in zip(s, sent, strict=True)) / sum(s)
            got = value(served(RECIPROCAL, 5.0, [float(number) for number in sent], delays))
            tally.add({"delays": list(delays), "updates": list(sent)}, got == wanted)
    report.say(f"eq. (4): {tally.held} of {tally.cases} steps are the formula")
    return Finding(tally.verdict, "it is what the server computes", tally.against)


def power_of_two(x: Fraction | int) -> bool:
    """Return whether a number is a power of two."""
    return all(n.bit_count() == 1 for n in (x.numerator, x.denominator))


def constant_step(report: Report) -> Finding:
    """Decide (d): the weights are c_g, and the step is eq. (16), for buffers of one, two and four users."""
    constant = Staleness.constant()
    for c_g, tau in product(range(1, 65), range(11)):
        report.check(admissible_weights(constant, c_g, tau) == (c_g,), f"c_g Q(1) = c_g: {c_g}, {tau}")
    tally = Tally()
    for K, c_l, c_g in product((1, 2, 4), (1, 8, 2**16), (1, 64)):
        p = replace(RECIPROCAL, staleness=constant, c_l=c_l, c_g=c_g)
        for delays, draw in product(((0, 1, 3, 7), (7, 7, 0, 5)), (0.0, 0.5, 0.75)):
            quantised = stochastic_round(np.array([0.3, -1.7, 2.5, -0.1])[:K] * c_l, np.full(K, draw)).tolist()
            wanted = 5 - Fraction(1, 2) / K * sum(Fraction(number, c_l) for number in quantised)
            case = {"K": K, "c_l": c_l, "c_g": c_g, "delays": list(delays[:K]), "quantised": quantised}
            tally.add(case, value(served(p, 5.0, quantised, delays[:K])) == wanted)
    report.say(f"eq. (16): {tally.held} of {tally.cases} steps are the formula")
    return Finding(tally.verdict, "with s = 1 the step is the mean of the quantised updates", tally.against)


# ---------------------------------------------------------------------------------------------- by second methods


def drawn_buffers(report: Report) -> None:
    """Compare (c) with the server on drawn buffers, whose weights need not sum to a power of two."""
    worst = Fraction(0)
    for number in range(300):
        draws = draw_elements(SeededSource(b"fedbuff step", f"{number}"), Ring(101), (9,)).tolist()
        K, delays, sent = 1 + draws[0] // 26, [DELAYS[x // 26] for x in draws[1:5]], [x - 50 for x in draws[5:]]
        s = [Fraction(1, 1 + tau) for tau in delays[:K]]
        wanted = 5 - Fraction(1, 2) * sum(a * b for a, b in zip(s, sent[:K], strict=True)) / sum(s)
        got = value(served(RECIPROCAL, 5.0, [float(x) for x in sent[:K]], delays[:K]))
        worst = max(worst, abs(got - wanted))
    report.agree("BAS-EQ4", "samples", worst < Fraction(1, 2**45), "300 drawn steps are eq. (4) up to 2^-45")


def by_algebra(report: Report) -> None:
    """Check (a), (b) and (d) as identities."""
    sympy = package("sympy")
    x, w, eta, c_g, c_l = sympy.symbols("x w eta c_g c_l", positive=True)
    F = w * x**2 / 2 + (1 - w) * (x - 1) ** 2 / 2
    lowest, rest = sympy.solve(sympy.diff(F, x), x), sympy.solve(x + (x - 1), x)
    differ = lowest == [1 - w] and rest == [sympy.Rational(1, 2)]
    report.agree("BAS-EQ1", "symbolic", differ, "the minimum is at 1 - w for every w, and eq. (4) rests at 1/2")
    g1, g2 = sympy.symbols("g1:3")
    moved = sympy.expand(((x - eta * g1) + (x - eta * g2)) / 2 - x)
    stays = sympy.solve(moved, g1) == [-g2]
    report.agree("BAS-MEAN", "symbolic", stays, "the mean of two models is x exactly when their gradients sum to 0")
    gradients = sympy.symbols("g1:5")
    trained = x
    for gradient in gradients:
        trained -= eta * gradient
    follows = sympy.expand(x - trained - eta * sum(gradients)) == 0
    report.agree("BAS-EQ2", "symbolic", follows, "x minus the model after four steps is eta times their sum")
    v = sympy.symbols("v1:5")
    quotient = sum(c_g * each / (c_g * c_l) for each in v) / sum(c_g / c_g for _ in v)
    plain = sympy.simplify(quotient - sum(v) / (len(v) * c_l)) == 0
    report.agree("BAS-EQ16", "symbolic", plain, "with all weights c_g, eq. (15) is eq. (16)")


# ---------------------------------------------------------------------------------------------------------------- (e)


def mean_of_models(report: Report) -> Finding:
    """Decide (e) for two users with the losses (x - b_i)^2 / 2, one local step with eta_l = 1/2 and eta_g = 1."""
    readings = {"x^(t)": Tally(), "x^(t+1)": Tally()}
    p = replace(RECIPROCAL, eta_g=1.0)
    for b, quarters in product(product((0, 1, 2), repeat=2), range(9)):
        x = Fraction(quarters, 4)
        models = [x - (x - centre) / 2 for centre in b]
        mean, still = sum(models) / 2, sum(x - centre for centre in b) == 0
        after = value(served(p, float(x), [float(x - model) for model in models], (0, 0)))
        case = {"centres": list(b), "eta_l": "1/2", "x": str(x), "mean of the models": str(mean)}
        readings["x^(t)"].add(case, mean == x)
        readings["x^(t+1)"].add(case, mean == after)
        report.check((mean == x) == still, f"(e) the mean is x exactly where the gradients sum to 0: {case}")
    for name, tally in readings.items():
        report.say(f"appendix A, the mean as {name}: in {tally.held} of {tally.cases} cases")
    return Finding(by_reading(readings.values()), "the mean is the next model", readings["x^(t)"].against)
