"""What sums of many rounds tell: equation (5) asks something only of disjoint sets, and then it asks for classes.

Statement. A log has sets of users; its combinations are the vectors sum_t z_t p_t, where p_t is 1 for the users of
set t.
(a) From the sums over {1, 2}, {2, 3} and {1, 3} each single model follows, x_1 = (s_1 + s_3 - s_2)/2 among them.
(b) With sets that may overlap, equation (5) holds for each vector when N > T >= 2, so that the log of (a) satisfies
    it.
(c) With disjoint sets it holds exactly when each class, the users in the same sets and at least one, has T users or
    more.
(d) The weak notion of remark 1, that each combination but 0 is about T users or more, never asks for more, and may
    ask for less. A log of weak privacy 2 can tell a x_0 + b x_1 for any a and b but 0 whose ratio is rational, and
    for no others; with 2 k + 3 users it can tell 2^k x - y.
(e) In a log that satisfies (5) the sets are unions of disjoint classes of at least T users, and not always of batches
    of T: the smallest case in which T divides N and K, and K <= N/2, is N = 12, K = 6, T = 2, with classes of three.
(f) If each x_j of each round is within delta of x_j, in any norm, sum_t z_t s_t is off sum_t z_t sum_{j in S_t} x_j by
    at most delta sum_t |z_t| |S_t|, and that is attained.
(g) T(t) of section 6, the least number of users in z^T P(t) that is not 0, has z in R^J. As P(t) has t rows, z must be
    in R^t; and without any user in the rounds so far there is no such z.

(b) and (d) hold for all numbers of users, by what follows; so do (c), (e) and (f). All logs of independent sets of up
to four users are run, those of two sets of five, and 300 of twelve users from a fixed stream; ratios up to 6, k up to
20.

Idea. (b) e_0 = (sum_{j=1..T} 1_{{0..T} without j} - (T - 1) 1_{1..T})/T, and so for each user. (c) Combinations are
equal on a class. With z_t = 2^t different columns have different values, and only the column of zeros has 0: the sets
of the form that have a user of a class are within the class. Whether this is so depends on the space of combinations
alone, so all logs of four users are decided by the logs of linearly independent sets. (e) Batches are necessary: each
set is a union of classes, as users of a class are in the same sets; classes are disjoint, and by (c) have T users or
more. (d) The N - 1 sets below are independent, so their combinations are all that one functional phi sends to 0. It is
0 at no user, so no combination is about one, and phi_1 x_0 - phi_0 x_1 is one about two. Combinations about users 0 and
1 alone are a space with a basis of fractions: if no user is told its dimension is 1, and its ratio is rational. phi is
(a, -b) at users 0 and 1, 1 at b others and -1 at a others, for positive a and b, and (a, b) with signs turned; or, for
2 k + 3 users, it doubles from pair to pair. (f) The triangle inequality; for signs of the drifts it is attained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import shake_256
from itertools import combinations, pairwise, product
from math import gcd
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package, rank_of_flint

CLAIMS = {
    "MRS-EX0": "matrices",
    "MRS-EQ5": "enumeration",
    "MRS-REM1": "matrices",
    "MRS-REM1B": "matrices",
    "MRS-REM6A": "enumeration",
    "MRS-TT": "readings",
    "UNI-DRIFT": "enumeration",
}
Log: TypeAlias = tuple[tuple[int, ...], ...]
TRIANGLE: Log = ((0, 1), (1, 2), (0, 2))
BOX = range(-2, 3)
RATIOS = [(a, b) for a in range(1, 7) for b in (*range(-6, 0), *range(1, 7)) if gcd(a, b) == 1]
LEVELS = 20
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


def logs() -> Iterator[tuple[int, Log]]:
    """Yield the logs of independent sets of up to four users, and those of two sets of five users."""
    for N in range(1, SHORT_LOGS + 1):
        sets = [users for size in range(1, N + 1) for users in combinations(range(N), size)]
        for count in range(1, min(N, ALL_LOGS if N <= ALL_LOGS else 2) + 1):
            for log in combinations(sets, count):
                if rank_of_flint(matrix(log, N)) == count:
                    yield N, log


def vectors(log: Log, N: int) -> np.ndarray:
    """Return the combinations with factors from -2 to 2, and those with 2^t."""
    z = np.array([*product(BOX, repeat=len(log)), [2**t for t in range(len(log))]])
    return np.asarray(z @ np.array(matrix(log, N)))


def by_definition(log: Log, N: int) -> int:
    """Return the largest T for which these combinations satisfy (5) with disjoint sets."""
    found = vectors(log, N)
    alike = (found[:, :, None] == found[:, None, :]).sum(axis=2)
    return int(alike[found != 0].min())


def fewest(log: Log, N: int) -> int:
    """Return the least number of users in these combinations: exact for four sets, as minors of three are up to 2."""
    weights = (vectors(log, N) != 0).sum(axis=1)
    return int(weights[weights > 0].min())


def strong(log: Log) -> int:
    """Return the least number of users in a class."""
    return min(map(len, classes(log)))


def classes(log: Log) -> list[frozenset[int]]:
    """Return the users of the log, those together who are in the same sets."""
    return participation_classes([frozenset(members) for members in log])


def weak(log: Log, N: int) -> int:
    """Return the least number of users in a combination that is not 0: those that vanish outside lower the rank."""
    rows = matrix(log, N)
    for size in range(1, N):
        for kept in combinations(range(N), size):
            if rank_of_flint([[0, *(row[j] for j in range(N) if j not in kept)] for row in rows]) < rank_of_flint(rows):
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
    protects, weaker = {"overlap": Tally(), "disjoint": Tally()}, Tally()
    for N, log in logs():
        T, least = strong(log), weak(log, N)
        case = {"users": N, "sets": [list(members) for members in log]}
        report.check(by_definition(log, N) == T, f"(c) definition and classes agree: {log}")
        report.check(least >= T, f"(d) weak privacy is not below strong privacy: {log}")
        report.agree("MRS-REM1", "enumeration", fewest(log, N) == least, f"the same weak privacy by factors: {log}")
        weaker.add({**case, "weak": least, "strong": T}, least == T)
        if N > 2 and min(map(len, log)) > 1:
            case |= {"T": 2, "users in a combination": least}
            protects["overlap"].add(case, least > 1)
            if T > 1:
                protects["disjoint"].add(case, least > 1)
    report.say(f"{weaker.cases} logs: definition and classes agree; weak privacy is larger in {weaker.breaches}")
    larger_logs(report)
    identity(report)
    larger = {"logs": weaker.cases, "larger": weaker.breaches, "first": weaker.against}
    return {
        "MRS-EX0": example(report),
        "MRS-EQ5": Finding(
            by_reading(protects.values()),
            "the sets must be disjoint",
            protects["overlap"].against,
            {"logs": weaker.cases},
        ),
        "MRS-REM1": Finding("confirmed" if weaker.against else "refuted", "it is weaker in some logs", numbers=larger),
        "MRS-REM1B": ratios(report),
        "MRS-TT": measured(),
        "MRS-REM6A": batches(report),
        "UNI-DRIFT": drift(report),
    }


def batches(report: Report) -> Finding:
    """Decide (e) where T divides N and K, and K <= N/2: two rounds of K users, of which some are in both."""
    tally = Tally()
    for N, K, T in product(range(2, 13), range(2, 7), range(2, 7)):
        if 2 * K <= N and divmod(N, T)[1] == divmod(K, T)[1] == 0:
            for both in range(K):
                log = tuple(range(K)), (*range(both), *range(K, 2 * K - both))
                sizes = [len(found) for found in classes(log)]
                if min(sizes) >= T:
                    case = {"N": N, "K": K, "T": T, "sets": [list(users) for users in log]}
                    tally.add(case, all(divmod(size, T)[1] == 0 for size in sizes))
                    report.agree(
                        "MRS-REM6A", "matrices", by_definition(log, N) >= T, f"(5) holds by definition: {case}"
                    )
    return Finding("imprecise" if tally.against else "confirmed", "classes of at least T users", tally.against)


def larger_logs(report: Report) -> None:
    """Check (c) on logs of twelve users and up to eight sets, from fixed bits."""
    bits = np.unpackbits(np.frombuffer(shake_256(b"logs").digest(12 * 8 * 300 // 8), np.uint8)).reshape(-1, 8, 12)
    for at, rows in enumerate(bits):
        log = tuple(tuple(np.flatnonzero(row).tolist()) for row in rows[: at & 7] if row.any())
        if log:
            values = [sum(2**t for t, members in enumerate(log) if user in members) for user in range(12)]
            least = min(values.count(value) for value in values if value)
            report.agree("MRS-EQ5", "samples", least == strong(log), f"(c) one combination decides: {log}")


def example(report: Report) -> Finding:
    """Decide (a)."""
    found = [solved(TRIANGLE, 3, user) for user in range(3)]
    right = found[0] == [Fraction(1, 2), Fraction(-1, 2), Fraction(1, 2)] and None not in found
    x = package("sympy").symbols("x:3")
    first, second, third = (sum(x[user] for user in members) for members in TRIANGLE)
    same = ((first + third - second) / 2 - x[0]).expand() == 0
    report.agree("MRS-EX0", "symbolic", same, "the printed combination is x_1, for all models")
    return Finding("confirmed" if right else "refuted", "all three models, with the coefficients 1/2 and -1/2")


def identity(report: Report) -> None:
    """Check (b): e_0 is a combination of sets of T users that overlap."""
    for T, N in combinations(range(2, 13), 2):
        rows = [[Fraction(int(j <= T and j != left), T) for j in range(N)] for left in range(1, T + 1)]
        rows.append([Fraction(-(T - 1), T) * (1 <= j <= T) for j in range(N)])
        total = [sum(column) for column in zip(*rows, strict=True)]
        report.check(total == [int(j == 0) for j in range(N)], f"(b) N = {N}, T = {T}")


def ratios(report: Report) -> Finding:
    """Decide the second sentence of (d)."""
    tally = Tally()
    for a, b in RATIOS:
        log = of_ratio(a, b)
        tally.add({"a": a, "b": b}, tells(log, a, b))
        if a + abs(b) <= 4:
            report.agree("MRS-REM1B", "library", by_sympy(log, a, b), f"what the log does not see, by sympy: {a}, {b}")
    private = [log for N, log in logs() if N == 3 and weak(log, N) == 2]
    report.check(not any(tells_root(log) for log in private), "(d) the ratio sqrt(2) is told by none")
    doubled = all(tells(doubling(k), (-2) ** k, -1) for k in range(1, LEVELS + 1))
    report.check(doubled, "(d) 2^k x_0 and x_1, or 2^k x_0 less x_1, of 2 k + 3 users")
    numbers = {"ratios": len(RATIOS), "users": 2 * LEVELS + 3, "largest ratio": 2**LEVELS}
    return Finding(tally.verdict, "any ratio that is rational, so any as nearly as one likes", tally.against, numbers)


def tells(log: Log, a: int, b: int) -> bool:
    """Return whether a log of weak privacy 2 has the combination a x_0 + b x_1."""
    N = len(log) + 1
    rows = matrix(log, N)
    return rank_of_flint([*rows, [a, b, *[0] * (N - 2)]]) == rank_of_flint(rows) == N - 1 and weak(log, N) == 2


def by_sympy(log: Log, a: int, b: int) -> bool:
    """Return the same from the space of models that all sums of the log are 0 for."""
    unseen = package("sympy").Matrix(matrix(log, len(log) + 1)).nullspace()
    return len(unseen) == 1 and a * unseen[0][0] + b * unseen[0][1] == 0 and 0 not in [*unseen[0]]


def tells_root(log: Log) -> bool:
    """Return whether a log of independent sets of three users has the combination sqrt(2) x_0 + x_1."""
    sympy = package("sympy")
    return bool(sympy.Matrix([*matrix(log, 3), [sympy.sqrt(2), 1, 0]]).rank() == len(log))


def of_ratio(a: int, b: int) -> Log:
    """Return N - 1 sets, the combinations of which are what phi = (-b, a, 1, ..., 1, -1, ..., -1) sends to 0."""
    m = a + abs(b)
    plus, minus = tuple(range(2, 2 + m)), tuple(range(2 + m, 2 + 2 * m))
    pairs = (*zip(plus, minus, strict=True), *zip(plus[1:], minus, strict=False))
    return (*pairs, (0, *(plus if b > 0 else minus)[: abs(b)]), (1, *minus[:a]))


def doubling(k: int) -> Log:
    """Return 2 k + 2 sets of 2 k + 3 users, where phi is 1 at user 0 and (-2)^k at user 1."""
    levels = [(0, 2), *((2 + 2 * level, 3 + 2 * level) for level in range(1, k)), (1, 2 * k + 2)]
    return ((0, 3), (2, 3), *((*low, user) for low, high in pairwise(levels) for user in high))


def measured() -> Finding:
    """Decide (g) on the log of (a) behind a round without users."""
    log = ((), *TRIANGLE)
    rows = np.array(matrix(log, 3))
    fitting = [t for t in range(1, 5) if rows[:t].T.shape[1] == len(log)]
    found = [fewest(log[:t], 3) if rows[:t].any() else "none" for t in range(1, 5)]
    case = {"sets": [list(members) for members in log], "z in R^J fits": fitting, "z in R^t": found}
    return Finding("imprecise" if fitting != [1, 2, 3, 4] else "confirmed", "z has t entries", case)


def drift(report: Report) -> Finding:
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
        drawn = drawn_drifts([float(one) for one, _ in terms])
        report.agree("UNI-DRIFT", "samples", drawn <= bound * (1 + 1e-12), "vectors of length 1 in three dimensions")
    return Finding(tally.verdict, "the bound is the largest error", tally.against, {"combinations": tally.cases})


def drawn_drifts(factors: Sequence[float]) -> float:
    """Return the length of the largest of 200 combinations of drifts, which are vectors of length 1, or less."""
    count = 200 * len(factors) * 3
    bits = np.frombuffer(shake_256(f"drifts {factors}".encode()).digest(4 * count), "<i4").reshape(200, -1, 3) / 2.0**31
    drifts = bits / np.maximum(1, np.linalg.norm(bits, axis=2, keepdims=True))
    return float(np.linalg.norm(np.einsum("t,std->sd", np.array(factors), drifts), axis=1).max())
