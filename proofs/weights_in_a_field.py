"""A real staleness weight can't multiply an element of a field. An integer can, and a real update can be weighted.

Statement. Let Delta_k = v_k / c_l be updates whose quantised integers are v_k, as elements of F_q, and let the weights
alpha_k = s(tau_k) be real. The alpha_k Delta_k of equation (6) is one of these, and the server decodes the sum:
(a) alpha times the representative in [0, q), rounded down: wrong already for alpha = 1/2 and v = -1.
(b) the element p/r of the field for alpha = p/r: right only when the sum of the alpha_k v_k is an integer, wrong for
    alpha = 1/2 and v = 1; for s(tau) = (1 + tau)^(-1/2) most alpha are irrational and no element at all.
(c) alpha times the real update, before it is quantised: the sum is off by less than 1/c_l for each update.
(d) an integer weight w_k, the sum divided by c_g: exact for the weights w_k / c_g. Since these are off by less than
    1/c_g from the alpha_k, the sum is off by less than the sum of the |v_k| / (c_g c_l), and by nothing where every
    c_g alpha_k is an integer.
As printed, with Delta_k in the field and alpha_k real, it has no meaning; two of the four readings serve.

Idea. (a), (b) by counterexample, on one update. (c), (d) run the reference: quantiser, masks, recovery and decoder, for
all buffers of three updates from -2 to 2 with delays up to 2, and both ways to round. Each bound adds up errors, which
is an argument for all buffers. FLINT computes the fractions of (b) as well. The field is F_101.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor, isqrt

import numpy as np

from secagg_spec.arithmetic.staleness import Staleness, admissible_weights
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks, Parameters

CLAIMS = {
    "BASA-EQ6": "readings",
}
Q, K, DELAYS, VALUES = 101, 3, (0, 1, 2), range(-2, 3)
S = Staleness.polynomial(1)
BUFFERS = np.array(list(product(VALUES, repeat=K)), dtype=np.int64).T
SMALL_MASKS = {
    pair: np.full(BUFFERS.shape[1], 17 + 5 * at, dtype=np.uint64) for at, pair in enumerate([(0, 1), (0, 2), (1, 2)])
}


def parameters(c_g: int) -> Parameters:
    """Return a buffer of three positions over F_101, with all buffers of small updates side by side."""
    return Parameters(
        R=Q, N=K, T=1, d=BUFFERS.shape[1], K=K, S=0, c_l=1, c_g=c_g, tau_max=max(DELAYS) if c_g > 2 else 0,
        staleness=S, timeouts="void",
    )  # fmt: skip


def alpha(tau: int) -> Fraction:
    """Return s(tau)."""
    n, d, _ = S.power(tau)
    return Fraction(n, d)


def decoded(y: int) -> int:
    """Return the integer of smallest magnitude with the residue y."""
    return y % Q if 2 * (y % Q) < Q else y % Q - Q


def prove(report: Report) -> dict[str, Finding]:
    """Run the four readings."""
    on_residues, fractions = Tally(), Tally()
    for tau, v in product(DELAYS, sorted(VALUES, key=abs)):
        a, y = alpha(tau), v % Q
        case = {"q": Q, "alpha": str(a), "update": v, "residue": y}
        rounded = floor(a * y)
        on_residues.add(case | {"product": rounded, "decoded": decoded(rounded)}, abs(decoded(rounded) - a * v) < 1)
        element = a.numerator * pow(a.denominator, -1, Q) * y % Q
        fractions.add(case | {"product": element, "decoded": decoded(element)}, decoded(element) == a * v)
        report.check((decoded(element) == a * v) == ((a * v).denominator == 1), f"(b) alpha = {a}, v = {v}")
    report.agree(
        "BASA-EQ6", "library", all(same_in_flint(tau, v) for tau, v in product(DELAYS, VALUES)), "(b) by FLINT"
    )
    report.check(irrational(Staleness.polynomial("1/2"), 1), "(b) 2^(-1/2) is irrational")
    readings = {"on representatives": on_residues, "as elements of the field": fractions}
    readings |= {"before quantising": before_quantising(), "as integers": integers(report)}
    for name, tally in readings.items():
        report.say(f"{name}: the weighted sum in {tally.held} of {tally.cases} cases")
    verdicts = {name: tally.verdict for name, tally in readings.items()}
    serve = [name for name, verdict in verdicts.items() if verdict == "confirmed"]
    verdict = by_reading(readings.values())
    return {"BASA-EQ6": Finding(verdict, f"it holds {' and '.join(serve)}", on_residues.against, verdicts)}


def same_in_flint(tau: int, v: int) -> bool:
    """Return whether an element of the field, by another library, is alpha v exactly when that is an integer."""
    flint, a = package("flint"), alpha(tau)
    element = flint.nmod(a.numerator, Q) / flint.nmod(a.denominator, Q) * flint.nmod(v, Q)
    return (decoded(int(element)) == a * v) == ((a * v).denominator == 1)


def irrational(s: Staleness, tau: int) -> bool:
    """Whether s(tau), a square root, is none of a fraction."""
    n, d, r = s.power(tau)
    return r == 2 and isqrt(n * d) ** 2 != n * d


def weighted_sum(c_g: int, updates: Sequence[UintArray], weights: Sequence[int]) -> Sequence[int]:
    """Return what the server decodes of three masked updates."""
    p, sent = parameters(c_g), []
    for k, (update, weight) in enumerate(zip(updates, weights, strict=True)):
        masks = Masks([SMALL_MASKS[i, k] for i in range(k)], [SMALL_MASKS[k, j] for j in range(k + 1, K)])
        sent.append(basa_cores.mask_update(p, update, weight, masks))
    total: list[int] = p.ring.decode_signed(basa_cores.recover(p, sent, (), ())).tolist()
    return total


def exact(weights: Sequence[Fraction]) -> list[Fraction]:
    """Return the weighted sum of each buffer."""
    return [sum((a * v for a, v in zip(weights, column, strict=True)), Fraction(0)) for column in BUFFERS.T.tolist()]


def before_quantising() -> Tally:
    """Decide (c), with draws that round down and draws that round up."""
    tally, p = Tally(), parameters(1)
    for delays, draw in product(product(DELAYS, repeat=K), (0.0, 1 - 2.0**-53)):
        a = [alpha(tau) for tau in delays]
        reals = [np.array([float(a[k] * v) for v in BUFFERS[k].tolist()]) for k in range(K)]
        updates = [basa_cores.encode_update(p, x, np.full(p.d, draw)) for x in reals]
        got = weighted_sum(1, updates, [1] * K)
        errors = [abs(x - y) for x, y in zip(got, exact(a), strict=True)]
        tally.add({"delays": list(delays), "draw": draw, "error": str(max(errors))}, max(errors) < K)
    return tally


def integers(report: Report) -> Tally:
    """Decide (d), for c_g = 6, with which all weights are integers, and c_g = 4."""
    tally = Tally()
    for c_g, delays in product((6, 4), product(DELAYS, repeat=K)):
        a = [alpha(tau) for tau in delays]
        updates = [parameters(c_g).ring.encode_signed(row) for row in BUFFERS]
        for weights in product(*(admissible_weights(S, c_g, tau) for tau in delays)):
            got = [Fraction(x, c_g) for x in weighted_sum(c_g, updates, weights)]
            same = got == exact([Fraction(w, c_g) for w in weights])
            report.check(
                all(abs(Fraction(w, c_g) - x) < Fraction(1, c_g) for w, x in zip(weights, a, strict=True)), "(d)"
            )
            sizes = np.abs(BUFFERS).sum(axis=0).tolist()
            errors = [abs(x - y) for x, y in zip(got, exact(a), strict=True)]
            bounds = [Fraction(size, c_g) for size in sizes]
            close = all(e < bound or e == bound == 0 for e, bound in zip(errors, bounds, strict=True))
            nothing = c_g == 4 or not any(errors)
            tally.add({"c_g": c_g, "delays": list(delays), "weights": list(weights)}, same and close and nothing)
    return tally
