"""Any U aggregated shares give the weighted sum of the masks.

Statement. For every buffer S, all weights w_i in F_q, and every set R of at least U users that answer with the sum over
S of w_i times the share of mask i, decoding gives the sum over S of w_i z_i.
So each user has to give a share to each other user, as section 2.2.1 has it, with its own; with one share for one other
user, as section 2.2 says, a mask is recovered only when these two users answer, and only for U = 2.

Idea. Encoding and decoding are linear. So the code is run on the matrix of the answers itself: its columns are the
coefficients of every element of every mask and noise row. The result must be the matrix of the weighted sum. Nothing is
sampled: equality of matrices is equality for all masks and all noise. Where U users answer, the columns of their points
are inverted with FLINT besides, and the answers multiplied with the inverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package, rank_of_flint
from secagg_spec.privacy.probe import probe

CLAIMS = {
    "BAS-ONESHOT": "matrices",
    "BAS-SHARE1": "readings",
}

PARAMETERS = ((5, 3, 2, 1), (5, 4, 2, 1), (5, 4, 3, 1), (7, 4, 3, 2), (7, 4, 4, 3), (7, 5, 3, 2))
"""(q, N, U, T), with the points 1 to N."""

ALL_WEIGHTS = 1000


def all_weights(q: int, N: int) -> Iterator[tuple[int, ...]]:
    """Yield weights for N users, 0 outside the buffer: all of them, or where these are many, 0, 1 and 2 only."""
    yield from product(range(q if q**N <= ALL_WEIGHTS else 3), repeat=N)


def encoder(code: MaskCode) -> UintArray:
    """Return the (N, U) matrix of the encoder that runs, from U - T mask elements and T noise elements."""
    size = code.U - code.T
    run = probe(code.field, lambda v: code.encode(v[:size], v[size:].reshape(code.T, 1))[:, 0], code.U, name="encode")
    assert run.linear
    return run.matrix


def side_by_side(code: MaskCode, weights: Sequence[int], block: UintArray) -> UintArray:
    """Return the matrix of a weighted sum: each user's block times its weight."""
    blocks = [code.field.multiply(block, np.full_like(block, weight)) for weight in weights]
    return np.concatenate(blocks, axis=1)


def prove(report: Report) -> dict[str, Finding]:
    """Run the decoder on the matrix of the answers, for all buffers, weights and answering sets."""
    tally = Tally()
    for q, N, U, T in PARAMETERS:
        code = MaskCode(PrimeField(q), N, U, T)
        shares, mask = encoder(code), np.eye(U, dtype=np.uint64)[: U - T]
        answering = [users for size in range(U, N + 1) for users in combinations(range(N), size)]
        before = tally.cases
        for weights in all_weights(q, N):
            answers, wanted = side_by_side(code, weights, shares), side_by_side(code, weights, mask)
            for users in answering:
                decoded = code.decode(users, answers[list(users)], wanted.size).reshape(wanted.shape)
                case = {"q": q, "N": N, "U": U, "T": T, "weights": list(weights), "answering": list(users)}
                tally.add(case, np.array_equal(decoded, wanted))
        report.say(f"q = {q}, (N, U, T) = ({N}, {U}, {T}): {tally.cases - before} cases of weights and answering users")
    report.check(tally.cases > 0, "there are cases")
    inverted = [by_flint(*code, users) for code in PARAMETERS for users in combinations(range(code[1]), code[2])]
    report.agree("BAS-ONESHOT", "library", all(inverted), "FLINT recovers the weighted sum from any U answers")
    return {
        "BAS-ONESHOT": Finding(tally.verdict, f"it held in {tally.held} of {tally.cases} cases", tally.against),
        "BAS-SHARE1": sharing(report),
    }


def sharing(report: Report) -> Finding:
    """Decide, for each reading, whether the mask of user 0 follows from the shares that any U users hold of it."""
    readings = {"one to each other user": Tally(), "one to one other user": Tally()}
    for q, N, U, T in PARAMETERS:
        holders = {"one to each other user": set(range(N)), "one to one other user": {0, 1}}
        for (name, tally), users in product(readings.items(), combinations(range(N), U)):
            case = {"q": q, "N": N, "U": U, "T": T, "holders": sorted(holders[name]), "answering": list(users)}
            held = [user for user in users if user in holders[name]]
            found = determined(MaskCode(PrimeField(q), N, U, T), held)
            tally.add(case, found)
            report.check(found == (len(held) == U), f"it takes U shares: {case}")
    for name, tally in readings.items():
        report.say(f"{name}: the mask follows in {tally.held} of {tally.cases} cases")
    counted = [rank_of_columns(code, range(held)) == held for code in PARAMETERS for held in range(1, code[2] + 1)]
    report.agree(
        "BAS-SHARE1", "library", all(counted), "FLINT: the shares of fewer than U users have a smaller rank than U"
    )
    return Finding(
        by_reading(readings.values()), "only one share to each works", readings["one to one other user"].against
    )


def rank_of_columns(code: tuple[int, int, int, int], users: Sequence[int]) -> int:
    """Return the rank of the columns of some users, as FLINT finds it."""
    q, _, U, _ = code
    return rank_of_flint([[(j + 1) ** power for power in range(U)] for j in users], q)


def determined(code: MaskCode, holders: Sequence[int]) -> bool:
    """Return whether the shares of some users determine the sub-masks."""
    if not holders:
        return False
    shares, mask = encoder(code)[list(holders)], np.eye(code.U, dtype=np.uint64)[: code.U - code.T]
    return code.field.rank(np.concatenate([shares, mask])) == code.field.rank(shares)


def by_flint(q: int, N: int, U: int, T: int, users: Sequence[int]) -> bool:
    """Return whether the inverse of the columns of U users takes their answers to the weighted sum of the rows."""
    matrix, weights = package("flint").nmod_mat, [divmod(3 * i + 1, q)[1] for i in range(N)]
    columns = matrix(U, U, [(j + 1) ** power for power in range(U) for j in users], q)
    rows = matrix(U, N * U, [int(row == column) * w for row in range(U) for w in weights for column in range(U)], q)
    shares = MaskCode(PrimeField(q), N, U, T)
    answers = side_by_side(shares, weights, encoder(shares))[list(users)]
    sent = matrix(U, N * U, answers.ravel().tolist(), q)
    return bool(columns.transpose().inv() * sent == rows)
