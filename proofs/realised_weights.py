"""All users must use the same realised weights: rounding them on their own breaks the recovery.

Statement, with weights w_i = c_g Q_{c_g}(s(tau_i)), s(tau) = (tau + 1)^(-alpha) (eq. 12).
(a) Each w_i is an integer, floor or floor + 1 of c_g s(tau_i), at most c_g, hence an element of F_q when q > c_g.
(b) w_i can be 0 exactly when c_g s(tau_i) < 1.
(c) When the server uses weights w and user j answers with weights w^(j), the decoded sum of masks is the one that the
    server must remove, for all masks, exactly when w^(j) = w for every user j that answers.
(d) So what the paper broadcasts, S, the rounds t_i and c_g, is enough where eq. (12) leaves nothing to chance, since
    each c_g s(tau_i) is an integer, and elsewhere only when all happen to round alike. For c_g = 64 and alpha = 1 these
    are the delays 0, 1, 3 and 7 of 0 to 10.
(e) Of the paper's alpha, with c_g = 64 and delays up to 10, only 2 lets a weight be 0; for any alpha up to the
    logarithm of 64 to the base 11 none can be. With ten independent delays that are uniform on 0 to 10 the chances
    that all weights of a buffer are 0, that only one is not, and that some are, are fractions that are computed.

Idea. (c) is an equality of matrices, decided by running the decoder on the answers' coefficients. The first sub-mask
gets every answer with a non-zero coefficient, since the points are not 0, so that one wrong weight shows. For the
smaller code all masks and all noise are counted besides, with the code and its decoding written down for two answers.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import floor

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, PrimeField, Ring
from secagg_spec.arithmetic.quantizer import stochastic_round
from secagg_spec.arithmetic.staleness import Staleness, admissible_weights
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.probe import probe

CLAIMS = {
    "BAS-EQ12": "enumeration",
    "BAS-BCAST": "matrices",
    "BAS-SWEEP": "arithmetic",
}
LEVEL, DELAYS = 64, range(11)
SWEPT = ("0.1", "0.5", "1", "1.5", "2")
DRAWS = np.arange(2**10) / 2**10
BUFFERS = tuple((Fraction(1), Fraction(eighths, 8)) for eighths in (3, 2, 4, 6, 8))
"""The s of the two users in a buffer; with c_g = 4 the first leaves something to chance, and the others nothing."""


def staleness(tau: int, alpha: int = 1) -> Fraction:
    """Return s(tau)."""
    return Fraction(1, (tau + 1) ** alpha)


def possible_weights(level: int, s: Fraction) -> set[int]:
    """Return the integers that eq. (12) can give: floor(c_g s), and the next one unless c_g s is an integer."""
    below = floor(level * s)
    return {below} if level * s == below else {below, below + 1}


def prove(report: Report) -> dict[str, Finding]:
    """Prove (a) and (b) for all levels up to 64, (c) exhaustively for two small codes, (d) by counting."""
    found = {"BAS-EQ12": weights(report), "BAS-BCAST": broadcast(report), "BAS-SWEEP": sweep(report)}
    every_mask(report)
    return found


def weights(report: Report) -> Finding:
    """Decide (a) and (b) with the code that rounds."""
    tally = Tally()
    for level in range(1, LEVEL + 1):
        for tau, alpha in product(DELAYS, (0, 1, 2)):
            s = staleness(tau, alpha)
            rounded = set(stochastic_round(np.full(DRAWS.shape, float(level * s)), DRAWS).tolist())
            case = {"c_g": level, "tau": tau, "alpha": alpha}
            fits = rounded <= possible_weights(level, s) and all(0 <= w <= level < DEFAULT_PRIME for w in rounded)
            tally.add(case, fits)
            report.check((0 in possible_weights(level, s)) == (level * s < 1), f"0 is possible iff c_g s < 1: {case}")
    never_zero = all(0 not in possible_weights(LEVEL, staleness(tau)) for tau in DELAYS)
    report.check(never_zero, "for c_g = 64, alpha = 1 and delays up to 10 no weight is 0")
    report.check(0 in possible_weights(LEVEL, staleness(10, 2)), "for alpha = 2 and the delay 10 a weight can be 0")
    report.say(f"eq. (12): {tally.held} of {tally.cases} levels and delays give integers between 0 and c_g")
    return Finding(tally.verdict, "it is an integer from 0 to c_g; 0 is possible when c_g s < 1", tally.against)


def answers_decode(code: MaskCode, server: tuple[int, ...], users: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the first U users, user j with the weights ``users[j]``, let the server remove the mask it must."""
    shares, mask = _encoder(code), np.eye(code.U, dtype=np.uint64)[: code.U - code.T]
    rows = [_weighted(code.field, users[j], shares[j : j + 1]) for j in range(code.U)]
    wanted = _weighted(code.field, server, mask)
    decoded = code.decode(range(code.U), np.concatenate(rows), wanted.size)
    return np.array_equal(decoded.reshape(wanted.shape), wanted)


def _encoder(code: MaskCode) -> UintArray:
    size = code.U - code.T
    return probe(code.field, lambda v: code.encode(v[:size], v[size:].reshape(code.T, 1))[:, 0], code.U).matrix


def _weighted(field: PrimeField, weights: tuple[int, ...], block: UintArray) -> UintArray:
    return np.concatenate([field.multiply(block, np.full_like(block, w)) for w in weights], axis=1)


def broadcast(report: Report) -> Finding:
    """Decide (c) and (d): two users in the buffer, each weight one of the two that eq. (12) can give."""
    level, alike, claim = 4, Tally(), Tally()
    for (q, N, U, T), s in product(((7, 3, 2, 1), (7, 4, 3, 1)), BUFFERS):
        code = MaskCode(PrimeField(q), N, U, T)
        choices = list(product(*(sorted(possible_weights(level, value)) for value in s)))
        for server, *users in product(choices, repeat=U + 1):
            same = all(chosen == server for chosen in users)
            case = {"q": q, "N": N, "U": U, "T": T, "c_g": level, "s": [str(value) for value in s]}
            case |= {"server": list(server), "users": [list(chosen) for chosen in users]}
            recovered = answers_decode(code, server, tuple(users))
            alike.add(case, recovered, condition=same)
            claim.add(case, recovered, condition=all((level * value).denominator == 1 for value in s))
    report.check(alike.exact, "the sum is recovered exactly when everyone uses the same realised weights")
    report.say(f"{alike.cases} ways to round: the sum is recovered in the {alike.held} in which all weights agree")
    fixed = [tau for tau in DELAYS if len(possible_weights(LEVEL, staleness(tau))) == 1]
    report.say(f"c_g = {LEVEL}, alpha = 1: eq. (12) leaves nothing to chance only for the delays {fixed}")
    found = "with users that round on their own the server removes another mask than it must"
    return Finding(claim.verdict, found, claim.against, {"delays without chance": fixed})


def sweep(report: Report) -> Finding:
    """Decide (e) with the integers that decide the reference's weights, and for alpha = 2 the chances."""
    tally = Tally()
    for alpha in SWEPT:
        for tau in DELAYS:
            possible = admissible_weights(Staleness.polynomial(alpha), LEVEL, tau)
            case = {"c_g": LEVEL, "alpha": alpha, "tau": tau, "weights": list(possible)}
            tally.add(case, (min(possible) > 0) == (Fraction(alpha) <= Fraction(3, 2) or tau < 8))
    report.check(11**17 < 64**10 < 11**18, "the logarithm of 64 to the base 11 is between 1.7 and 1.8")
    zero = sum((max(Fraction(0), 1 - LEVEL * staleness(tau, 2)) for tau in DELAYS), Fraction(0)) / len(DELAYS)
    chances = {
        "all weights 0": zero**10,
        "one weight not 0": 10 * zero**9 * (1 - zero),
        "some weight 0": 1 - (1 - zero) ** 10,
    }
    shown = {name: f"{float(chance):.1e}" for name, chance in chances.items()}
    report.say(f"alpha = 2, ten delays: {', '.join(f'{name} with {chance}' for name, chance in shown.items())}")
    outcomes = [drawn_zero(number) for number in range(2000)]
    seen = Fraction(sum(outcomes), len(outcomes))
    report.agree("BAS-SWEEP", "samples", abs(seen - (1 - (1 - zero) ** 10)) < Fraction(1, 20), "2000 drawn buffers")
    return Finding(tally.verdict, "with alpha = 2 a delay from 8 on can have the weight 0", tally.against, shown)


def drawn_zero(number: int) -> bool:
    """Return whether a drawn buffer of ten, with alpha = 2, has a weight that the code rounds to 0."""
    source = SeededSource(b"realised weights", f"{number}")
    delays = draw_elements(source, Ring(len(DELAYS)), (10,))
    draws = draw_elements(source, Ring(2**20), (10,)) / 2**20
    return not stochastic_round(LEVEL / (1.0 + delays) ** 2, draws).all()


def every_mask(report: Report) -> None:
    """Count, for U = 2, T = 1 and q = 7, the masks and noise of two users for which the decoded sum is right."""
    choices = list(product((4,), (1, 2)))
    z = np.array(list(product(range(7), repeat=4)))
    always = {}
    for server, first, second in product(choices, repeat=3):
        answers = [
            w[0] * (z[:, 0] + j * z[:, 2]) + w[1] * (z[:, 1] + j * z[:, 3]) for j, w in ((1, first), (2, second))
        ]
        off = 2 * answers[0] - answers[1] - server[0] * z[:, 0] - server[1] * z[:, 1]
        always[server, first, second] = not np.divmod(off, 7)[1].any()
    right = all(holds == (server == first == second) for (server, first, second), holds in always.items())
    report.agree(
        "BAS-BCAST", "enumeration", right, f"right for all {len(z)} masks and noise exactly with one choice of weights"
    )
