"""LightSecAgg works exactly for N - D >= U > T: the printed U >= T lets one case too many in.

Statement, for T >= 1 and the default points. A mask can be shared so that (a) it has at least one sub-mask to be put
in, (b) any T users know nothing of it, (c) the users that are left when D have dropped out can give it back, exactly
when N - D >= U > T.
(d) A mask of d elements has U - T parts of equal length, as shares need, exactly when U - T divides d: for other d the
sub-masks of the reference have zeros behind the mask, up to the next multiple. With these its code shares the mask for
all d: any U shares give it back, and T shares say nothing.

Idea. For all numbers with N <= 6 the three are decided by ranks over F_7, without the condition; once with the
reference, once with FLINT. For all others (b) and (c) follow from the determinants of proofs/vandermonde_code.py, and U
> T is (a).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode, default_points
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import ParameterError
from secagg_spec.ledger.proofs import Finding, Report, Tally, rank_of_flint
from secagg_spec.privacy.probe import probe
from secagg_spec.protocols.lightsecagg.round import Parameters

CLAIMS = {
    "BAS-UT": "matrices",
    "BAS-SPLIT": "enumeration",
}
Q = 7
FIELD = PrimeField(Q)
Rank = Callable[[UintArray], int]


def printed(N: int, D: int, U: int, T: int) -> bool:
    """Return whether the condition of the paper holds."""
    return N - D >= U >= T


def repaired(N: int, D: int, U: int, T: int) -> bool:
    """Return whether the condition of the text holds."""
    return N - D >= U > T


def works(N: int, D: int, U: int, T: int, rank: Rank = FIELD.rank) -> bool:
    """Return whether (a), (b) and (c) hold."""
    rows = np.ascontiguousarray(FIELD.powers(np.array(default_points(N), dtype=np.uint64), U).T)
    noise = np.ascontiguousarray(rows[:, max(U - T, 0) :])
    hidden = all(rank(noise[list(some)]) == rank(rows[list(some)]) for some in combinations(range(N), T))
    left = all(rank(rows[list(some)]) == U for some in combinations(range(N), N - D))
    return U - T >= 1 and hidden and left


def prove(report: Report) -> dict[str, Finding]:
    """Compare both conditions with what works, for all numbers up to N = 6."""
    paper, agreed = Tally(), True
    for N in range(2, 7):
        for D in range(N):
            for U in range(1, N + 1):
                for T in range(1, N + 1):
                    fine = works(N, D, U, T)
                    agreed &= fine == works(N, D, U, T, lambda matrix: rank_of_flint(matrix, Q))
                    case = {"N": N, "D": D, "U": U, "T": T, "sub-masks": U - T}
                    paper.add(case, fine == printed(N, D, U, T))
                    report.check(fine == repaired(N, D, U, T), f"it works exactly when N - D >= U > T: {case}")
                    report.check(accepted(N, D, U, T) == (fine and N - D >= T + 2), f"the code accepts it: {case}")
    report.agree("BAS-UT", "library", agreed, "FLINT's ranks say the same of all numbers")
    wrong = paper.cases - paper.held
    report.say(f"{paper.cases} sets of numbers: the printed condition is wrong in {wrong}, the one of the text in none")
    verdict = "refuted" if wrong else "confirmed"
    return {
        "BAS-UT": Finding(verdict, "with U = T there is no sub-mask to put the mask in", paper.against),
        "BAS-SPLIT": lengths(report),
    }


def lengths(report: Report) -> Finding:
    """Decide (d) for all codes with N = 5 and all lengths up to 8."""
    tally = Tally()
    for d, U, T in product(range(1, 9), range(2, 6), range(1, 5)):
        if T >= U:
            continue
        case = {"d": d, "U": U, "T": T, "sub-masks": U - T}
        tally.add(case, partitioned(d, U, T), condition=divmod(d, U - T)[1] == 0)
        report.check(shared(d, U, T), f"(d) with zeros behind it the mask is shared: d = {d}, U = {U}, T = {T}")
    report.check(tally.exact, "(d) the sub-masks of the code are a partition exactly when U - T divides d")
    report.say(f"{tally.cases} lengths and codes: the sub-masks are a partition of the mask in {tally.held}")
    return Finding(tally.verdict, "U - T must divide d, or zeros must be added", tally.against)


def partitioned(d: int, U: int, T: int) -> bool:
    """Return whether the sub-masks that the code makes of a mask are its elements, and no others."""
    mask = np.full(d, Q - 1, dtype=np.uint64)
    return np.array_equal(MaskCode(FIELD, 5, U, T).sub_masks(mask).ravel(), mask)


def shared(d: int, U: int, T: int) -> bool:
    """Return whether any U users can decode a mask of d elements, and the noise alone fills the shares of any T."""
    code = MaskCode(FIELD, 5, U, T)
    L = code.share_length(d)
    encoding = probe(FIELD, lambda v: code.encode(v[:d], v[d:].reshape(T, L)).ravel(), d + T * L)
    rows = encoding.matrix.reshape(5, L, -1)
    mask = np.eye(d, d + T * L, dtype=np.uint64)
    for users in combinations(range(5), U):
        columns = [code.decode(users, np.ascontiguousarray(rows[list(users), :, at]), d) for at in range(rows.shape[2])]
        if not np.array_equal(np.stack(columns, axis=1), mask):
            return False
    return all(FIELD.rank(rows[list(some), :, d:].reshape(T * L, -1)) == T * L for some in combinations(range(5), T))


def accepted(N: int, D: int, U: int, T: int) -> bool:
    """Return whether the reference accepts the numbers; it demands N - D >= T + 2 besides."""
    try:
        Parameters(q=Q, N=N, D=D, U=U, T=T, d=1)
    except ParameterError:
        return False
    return True
