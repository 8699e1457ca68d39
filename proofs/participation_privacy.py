"""What sums of many rounds tell: equation (5) asks something only of disjoint sets, and then it asks for classes.

Statement. A log has sets of users; its combinations are the vectors sum_t z_t p_t, where p_t is 1 for the users of
set t.
(a) From the sums over {1, 2}, {2, 3} and {1, 3} each single model follows, x_1 = (s_1 + s_3 - s_2)/2 among them.
(b) With sets that may overlap, equation (5) holds for each vector when N > T >= 2, so that the log of (a) satisfies
    it.
(c) With disjoint sets it holds exactly when each class, the users in the same sets and at least one, has T users or
    more.
(d) The weak notion of remark 1, that each combination but 0 is about T users or more, never asks for more, and may
    ask for less. A log of weak privacy 2 can tell m x_0 - x_1, for any m.
(e) In a log that satisfies (5) the sets are unions of disjoint classes of at least T users, and not always of exactly
    T.
(f) If each x_j of each round is within delta of x_j, sum_t z_t s_t is off sum_t z_t sum_{j in S_t} x_j by at most
    delta sum_t |z_t| |S_t|, and that is attained.

Idea. (b) e_0 = (sum_{j=1..T} 1_{{0..T} without j} - (T - 1) 1_{1..T})/T, and so for each user. (c) Combinations are
equal on a class. With z_t = 2^t different columns have different values, and only the column of zeros has 0: the sets
of the form that have a user of a class are within the class. Whether this is so depends on the space of combinations
alone, so all logs of four users are decided by the logs of linearly independent sets. (d) The sets {0, y} for m users
y, and the set of 1 and all y, have as combinations the kernel of one functional, which is 0 at no user. (f) The
triangle inequality.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import shake_256
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.arithmetic.companions import companions
from secagg_spec.ledger import Finding, Report, Tally, package

CLAIMS = {
    "MRS-EX0": "matrices",
    "MRS-EQ5": "matrices",
    "MRS-REM1": "matrices",
    "MRS-REM6A": "matrices",
    "UNI-DRIFT": "matrices",
}
Log: TypeAlias = tuple[tuple[int, ...], ...]
TRIANGLE: Log = ((0, 1), (1, 2), (0, 2))
BOX = range(-2, 3)
ALL_LOGS, SHORT_LOGS = 4, 5
DRIFTS: tuple[Log, ...] = (
    TRIANGLE,
    ((0, 1, 2), (0, 3), (1, 2, 3)),
    ((0, 1, 2), (1, 2)),
    ((0, 1), (2, 3), (1, 3), (2,)),
)


def matrix(log: Log, N: int) -> list[list[int]]:
    """Return the log as a matrix, with a row for each set."""
    return [[int(user in members) for user in range(N)] for members in log]


def rank(rows: Sequence[Sequence[int]]) -> int:
    """Return the rank over the rationals."""
    return int(package("flint").fmpz_mat([list(row) for row in rows]).rank())


def logs() -> Iterator[tuple[int, Log]]:
    """Yield the logs of independent sets of up to four users, and those of two sets of five users."""
    for N in range(1, SHORT_LOGS + 1):
        sets = [users for size in range(1, N + 1) for users in combinations(range(N), size)]
        for count in range(1, min(N, ALL_LOGS if N <= ALL_LOGS else 2) + 1):
            for log in combinations(sets, count):
                if rank(matrix(log, N)) == count:
                    yield N, log


def by_definition(log: Log, N: int) -> int:
    """Return the largest T for which combinations satisfy (5) with disjoint sets, by those from -2 to 2 and 2^t."""
    z = np.array([*product(BOX, repeat=len(log)), [2**t for t in range(len(log))]])
    vectors = z @ np.array(matrix(log, N))
    alike = (vectors[:, :, None] == vectors[:, None, :]).sum(axis=2)
    return int(alike[vectors != 0].min())


def strong(log: Log) -> int:
    """Return the least number of users in a class."""
    return min(map(len, classes(log)))


def classes(log: Log) -> list[frozenset[int]]:
    """Return the users of the log, those together who are in the same sets."""
    return companions([frozenset(members) for members in log])


def weak(log: Log, N: int) -> int:
    """Return the least number of users in a combination that is not 0: those that vanish outside lower the rank."""
    rows = matrix(log, N)
    for size in range(1, N):
        for kept in combinations(range(N), size):
            if rank([[0, *(row[j] for j in range(N) if j not in kept)] for row in rows]) < rank(rows):
                return size
    return N


def solved(log: Log, N: int, user: int) -> list[Fraction] | None:
    """Return a combination of independent sets that is 1 for one user and 0 for the others, if there is one."""
    flint: Any = package("flint")
    columns = [list(column) for column in zip(*matrix(log, N), strict=True)]
    table = flint.fmpq_mat([[*column, int(j == user)] for j, column in enumerate(columns)]).rref()[0]
    if any(table[row, len(log)] != 0 for row in range(len(log), N)):
        return None
    return [Fraction(int(table[row, len(log)].p), int(table[row, len(log)].q)) for row in range(len(log))]


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (f)."""
    protects, weaker, structure = Tally(), Tally(), Tally()
    for N, log in logs():
        T, least = strong(log), weak(log, N)
        case = {"users": N, "sets": [list(members) for members in log]}
        report.check(by_definition(log, N) == T, f"(c) definition and classes agree: {log}")
        report.check(least >= T, f"(d) weak privacy is not below strong privacy: {log}")
        weaker.add({**case, "weak": least, "strong": T}, least == T)
        if N > 2 and min(map(len, log)) > 1:
            protects.add({**case, "T": 2, "weak": least}, least > 1, condition=T > 1)
        for asked in range(2, T + 1):
            structure.add({**case, "T": asked}, all(len(found) == asked for found in classes(log)))
    report.say(f"{weaker.cases} logs: definition and classes agree; weak privacy is larger in {weaker.breaches}")
    larger_logs(report)
    identity(report)
    ratios(report)
    larger = {"logs": weaker.cases, "larger": weaker.breaches, "first": weaker.against}
    return {
        "MRS-EX0": example(),
        "MRS-EQ5": Finding(protects.verdict, "the sets must be disjoint", protects.against, {"logs": weaker.cases}),
        "MRS-REM1": Finding("confirmed" if weaker.against else "refuted", "it is weaker in some logs", numbers=larger),
        "MRS-REM6A": Finding(
            "imprecise" if structure.against else "confirmed", "classes of at least T users", structure.against
        ),
        "UNI-DRIFT": drift(),
    }


def larger_logs(report: Report) -> None:
    """Check (c) on logs of twelve users and up to eight sets, from fixed bits."""
    bits = np.unpackbits(np.frombuffer(shake_256(b"logs").digest(12 * 8 * 300 // 8), np.uint8)).reshape(-1, 8, 12)
    for at, rows in enumerate(bits):
        log = tuple(tuple(np.flatnonzero(row).tolist()) for row in rows[: at & 7] if row.any())
        if log:
            values = [sum(2**t for t, members in enumerate(log) if user in members) for user in range(12)]
            least = min(values.count(value) for value in values if value)
            report.check(least == strong(log), f"(c) one combination decides: {log}")


def example() -> Finding:
    """Decide (a)."""
    found = [solved(TRIANGLE, 3, user) for user in range(3)]
    right = found[0] == [Fraction(1, 2), Fraction(-1, 2), Fraction(1, 2)] and None not in found
    return Finding("confirmed" if right else "refuted", "all three models, with the coefficients 1/2 and -1/2")


def identity(report: Report) -> None:
    """Check (b): e_0 is a combination of sets of T users that overlap."""
    for T, N in combinations(range(2, 13), 2):
        rows = [[Fraction(int(j <= T and j != left), T) for j in range(N)] for left in range(1, T + 1)]
        rows.append([Fraction(-(T - 1), T) * (1 <= j <= T) for j in range(N)])
        total = [sum(column) for column in zip(*rows, strict=True)]
        report.check(total == [int(j == 0) for j in range(N)], f"(b) N = {N}, T = {T}")


def ratios(report: Report) -> None:
    """Check the last sentence of (d)."""
    for m in range(2, 9):
        others = tuple(range(2, m + 2))
        log: Log = (*((0, y) for y in others), (1, *others))
        *pairs, last = matrix(log, m + 2)
        told = [sum(column) - minus for *column, minus in zip(*pairs, last, strict=True)]
        report.check(told == [m, -1, *[0] * m] and weak(log, m + 2) == 2, f"(d) m x_0 - x_1, weak privacy 2: m = {m}")


def drift() -> Finding:
    """Decide (f): all drifts of 1 or -1, for each user that is recoverable."""
    tally = Tally()
    for log, user in ((log, user) for log in DRIFTS for user in range(4)):
        z = solved(log, 4, user)
        if z is None:
            continue
        terms = [(each, -each) for each, members in zip(z, log, strict=True) for _ in members]
        worst = max(abs(sum(drifts, Fraction(0))) for drifts in product(*terms))
        bound = sum(abs(each) * len(members) for each, members in zip(z, log, strict=True))
        tally.add({"sets": [list(members) for members in log], "user": user}, worst == bound)
    return Finding(tally.verdict, "the bound is the largest error", tally.against, {"combinations": tally.cases})
