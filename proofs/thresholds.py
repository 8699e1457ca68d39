"""LightSecAgg works exactly for N - D >= U > T: the printed U >= T lets one case too many in.

Statement, for T >= 1 and the default points. A mask can be shared so that (a) it has at least one sub-mask to be put
in, (b) any T users know nothing of it, (c) the users that are left when D have dropped out can give it back, exactly
when N - D >= U > T.

Idea. For all numbers with N <= 6 the three are decided by ranks over F_7, without the condition; once with the
reference, once with FLINT. For all others (b) and (c) follow from the determinants of proofs/vandermonde_code.py, and U
> T is (a).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from secagg_spec.arithmetic.mds import default_points
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import ParameterError
from secagg_spec.ledger import Finding, Report, Tally, package
from secagg_spec.protocols.lightsecagg import Parameters

CLAIMS = {
    "BAS-UT": "matrices",
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


def rank_of_flint(matrix: UintArray) -> int:
    """Return the rank over F_7 that FLINT finds."""
    return int(package("flint").nmod_mat(*matrix.shape, matrix.ravel().tolist(), Q).rank())


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
                    agreed &= fine == works(N, D, U, T, rank_of_flint)
                    case = {"N": N, "D": D, "U": U, "T": T, "sub-masks": U - T}
                    paper.add(case, fine == printed(N, D, U, T))
                    report.check(fine == repaired(N, D, U, T), f"it works exactly when N - D >= U > T: {case}")
                    report.check(accepted(N, D, U, T) == (fine and N - D >= T + 2), f"the code accepts it: {case}")
    report.agree("BAS-UT", "library", agreed, "FLINT's ranks say the same of all numbers")
    wrong = paper.cases - paper.held
    report.say(f"{paper.cases} sets of numbers: the printed condition is wrong in {wrong}, the one of the text in none")
    verdict = "refuted" if wrong else "confirmed"
    return {"BAS-UT": Finding(verdict, "with U = T there is no sub-mask to put the mask in", paper.against)}


def accepted(N: int, D: int, U: int, T: int) -> bool:
    """Return whether the reference accepts the numbers; it demands N - D >= T + 2 besides."""
    try:
        Parameters(q=Q, N=N, D=D, U=U, T=T, d=1)
    except ParameterError:
        return False
    return True
