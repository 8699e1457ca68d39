"""The family of all unions of batches has privacy T exactly, whatever is computed from sums of the same models.

Statement. N users in batches of T, which divides N and K; the family has all unions of K/T batches.
(a) It has C(N/T, K/T) sets: all sets of K users for T = 1, N/K disjoint ones for T = K; six for N = 8, K = 4, T = 2.
(b) Its strong and weak privacy are T when K < N. With K = N there is one set, and both are N.
(c) For N = 120, K = 12: C(120, 12), about 10^16, for T = 1; 10 for T = 12, 190 for T = 6, 4060 for T = 4, and 91390
    for T = 3, where the table has no number.
(d) For models that do not change, all sums of the family tell the sums over batches, and nothing else: two inputs
    give the same sums exactly when they have the same sums over batches. So no computation on the sums splits a
    batch. What the sum of a batch says by itself remains: if entries are bounded, a sum at the bound tells each of
    them.
(e) When models change the guarantee need not become stronger. If all models of all rounds are unknowns of their own,
    each combination is about K users or more. If one user of a batch changes alone, the difference of two sums over
    this batch is his change; if a model is multiplied by a number that is known, two sums tell it.

For all N, K and T: (a) a set is a choice of K/T of N/T batches. (b) Users of one batch are in the same sets. With K < N
two batches are apart: some choice has the one and not the other. So batches are the classes, and any log of sets of the
family has the strong privacy T or more. (d) With k = K/T of M = N/T batches, 1 <= k < M, the difference of two choices
that differ in one batch is the difference of two batches, and with these and one choice each batch's sum follows; a sum
over whole batches, on the other hand, follows from them by adding.

Idea. Run for all N up to 9, all K and T. (b) Ranks, and for the example all combinations with factors from -2 to 2, and
logs of 200 rounds with the paper's N and K, as the code chooses them. (d) All inputs with three values are listed, for
eight families of up to 8 users. (e) The sums are linear in the unknowns; unit vectors in their span are what
is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import comb
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.ledger.proofs import Finding, Report, Tally, package, rank_of_flint
from secagg_spec.selection import batches, metrics, strategies

CLAIMS = {
    "MRS-RBP": "enumeration",
    "MRS-EX1": "matrices",
    "MRS-THM1P": "matrices",
    "MRS-TAB1": "arithmetic",
    "MRS-REM3": "matrices",
    "MRS-REM7": "enumeration",
}
Rows: TypeAlias = list[list[int]]
TABLE = {12: 10, 6: 190, 4: 4060}
CUBES = ((4, 2, 2), (4, 4, 2), (6, 2, 2), (6, 4, 2), (6, 3, 3), (8, 4, 4), (8, 4, 2), (6, 3, 1))


def cases(largest: int) -> Iterator[tuple[int, int, int]]:
    """Yield N, K and T, where T divides both."""
    for N in range(1, largest + 1):
        for K in range(1, N + 1):
            yield from ((N, K, T) for T in range(1, K + 1) if N % T == K % T == 0)


def family(N: int, K: int, T: int) -> Rows:
    """Return the sets as rows: those of K users in which each batch is whole or missing."""
    some = (chosen for chosen in combinations(range(N), K))
    whole = (chosen for chosen in some if all(u // T * T + v in chosen for u in chosen for v in range(T)))
    return [[int(user in chosen) for user in range(N)] for chosen in whole]


def strong(rows: Rows) -> int:
    """Return the least number of users in a class."""
    return min(map(len, participation_classes([frozenset(u for u, bit in enumerate(row) if bit) for row in rows])))


def weak(rows: Rows) -> int:
    """Return the least number of users in a combination that is not 0: those that vanish outside lower the rank."""
    N, full = len(rows[0]), rank_of_flint(rows)
    for size in range(1, N):
        for kept in combinations(range(N), size):
            if rank_of_flint([[row[j] for j in range(N) if j not in kept] for row in rows]) < full:
                return size
    return N


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (e)."""
    counts, privacy = Tally(), Tally()
    for N, K, T in cases(9):
        rows, case = family(N, K, T), {"N": N, "K": K, "T": T}
        counts.add(case, len(rows) == comb(N // T, K // T))
        coefficient = package("flint").fmpz_poly([1, *[0] * (T - 1), 1]) ** (N // T)
        report.agree(
            "MRS-RBP", "library", coefficient[K] == len(rows), f"the coefficient of x^K of (1 + x^T)^(N/T): {case}"
        )
        listed = [members(row) for row in rows] == [[*users] for users in batches.family(batches.Parameters(N, K, T))]
        report.check(listed, f"(a) the family of the code: {case}")
        found = (strong(rows), weak(rows))
        report.check(found == ((T, T) if K < N else (N, N)), f"(b) {case}: strong and weak privacy are {found}")
        privacy.add({**case, "privacy": found}, min(found) >= T)
    report.check(
        all(comb(N, K) == comb(N // 1, K // 1) and comb(N // K, 1) == N // K for N, K, _ in cases(9)), "(a) extremes"
    )
    report.say(f"{privacy.cases} families of up to 9 users: strong and weak privacy are T, or N when K = N")
    example = family(8, 4, 2)
    as_stated = len(example) == 6 and strong(example) == weak(example) == 2
    report.agree("MRS-EX1", "enumeration", lightest(example) == 2, "all combinations with factors from -2 to 2")
    for T in TABLE:
        report.agree("MRS-THM1P", "samples", drawn(T) == (T, T), f"200 rounds, N = 120, K = 12, T = {T}")
    return {
        "MRS-RBP": Finding(counts.verdict, "C(N/T, K/T) sets", counts.against, {"families": counts.cases}),
        "MRS-EX1": Finding("confirmed" if as_stated else "refuted", "6 sets, privacy 2"),
        "MRS-THM1P": Finding(privacy.verdict, "T exactly when K < N", privacy.against),
        "MRS-TAB1": table(report),
        "MRS-REM3": changing(report),
        "MRS-REM7": nothing_else(report),
    }


def lightest(rows: Rows) -> int:
    """Return the least number of users in a combination with factors from -2 to 2."""
    weights = (np.array(list(product(range(-2, 3), repeat=len(rows)))) @ np.array(rows) != 0).sum(axis=1)
    return int(weights[weights > 0].min())


def drawn(T: int) -> tuple[int, int]:
    """Return the strong privacy of 200 rounds of the paper, and how many users are alike in a drawn combination."""
    p, bits = batches.Parameters(120, 12, T), np.random.default_rng(T)
    log, everybody = np.zeros((200, 120), dtype=bool), np.ones(120, dtype=bool)
    for row in log:
        bounds = strategies.ranges(p, "uniform", log.sum(axis=0), everybody) or ()
        chosen = strategies.choose(p, "uniform", log.sum(axis=0), everybody, [int(bits.integers(n)) for n in bounds])
        row[[*(chosen or ())]] = True
    values = bits.integers(-(2**40), 2**40, size=200) @ log.astype(np.int64)
    return metrics.strong_privacy(log), min(Counter(values.tolist()).values())


def table(report: Report) -> Finding:
    """Decide (c)."""
    for T, stated in TABLE.items():
        listed = len({*batches.family(batches.Parameters(120, 12, T))})
        report.agree("MRS-TAB1", "enumeration", listed == stated, f"the sets are listed for T = {T}")
    sizes = {T: comb(120 // T, 12 // T) for T in (1, 3, 4, 6, 12)}
    right = all(sizes[T] == stated for T, stated in TABLE.items()) and round(sizes[1], -16) == 10**16
    numbers = {f"T = {T}": str(size) for T, size in sizes.items()}
    return Finding("confirmed" if right else "refuted", "right; T = 3 is not in the text that was read", None, numbers)


def nothing_else(report: Report) -> Finding:
    """Decide (d)."""
    tally = Tally()
    for N, K, T in CUBES:
        inputs = np.array(list(product(range(3), repeat=N)))
        seen = inputs @ np.array(family(N, K, T)).T
        batches = inputs.reshape(len(inputs), -1, T).sum(axis=2)
        shown = batches if K < N else batches.sum(axis=1, keepdims=True)
        tally.add({"N": N, "K": K, "T": T}, groups(seen) == groups(shown))
        sums = np.kron(np.eye(N // T, dtype=int), np.ones(T, dtype=int)).tolist() if K < N else [[1] * N]
        spans = rank_of_flint([*family(N, K, T), *sums]) == rank_of_flint(family(N, K, T)) == len(sums)
        report.agree("MRS-REM7", "matrices", spans, f"the sums span those over batches, and nothing else: {N, K, T}")
        ways = Counter(sum(values) for values in product(range(3), repeat=T))
        single = [total for total, count in ways.items() if count == 1]
        report.check(T == 1 or single == [0, 2 * T], "(d) the sums at the bounds, and no others, tell each entry")
    report.say("inputs of three values with equal sums over the family have equal sums over batches, and the reverse")
    return Finding(tally.verdict, "two inputs are told apart exactly by sums over batches", tally.against)


def groups(rows: np.ndarray) -> list[list[int]]:
    """Return the places of equal rows."""
    found: dict[bytes, list[int]] = {}
    for at, row in enumerate(rows):
        found.setdefault(row.tobytes(), []).append(at)
    return list(found.values())


def changing(report: Report) -> Finding:
    """Decide (e) for batches of T users: what the sums of two rounds tell, as rows over the unknowns."""
    tally = Tally()
    for M, k, T in ((2, 1, 2), (3, 2, 2), (2, 1, 3), (3, 1, 3)):
        N = M * T
        rows = family(N, k * T, T)
        for first, second in product(rows, repeat=2):
            apart = [first + [0] * N, [0] * N + second]
            case = {"users": N, "T": T, "sets": [members(first), members(second)]}
            tally.add({**case, "told": "the sums"}, weak(apart) >= k * T)
            changed = [[*first, 0], [*second, second[0]]]
            tally.add({**case, "told": "the change of x_0"}, not unit(changed, N), condition=False)
            doubled = [first, [2 * second[0], *second[1:]]]
            tally.add({**case, "told": "x_0, which is doubled"}, not unit(doubled, 0), condition=False)
    x = np.array(list(product(range(3), repeat=5)))
    for what, first, second, shown in (
        ("the change of x_0", x[:, :2].sum(axis=1), x[:, :2].sum(axis=1) + x[:, 4], x[:, 4]),
        ("x_0, which is doubled", x[:, :2].sum(axis=1), x[:, :2].sum(axis=1) + x[:, 0], x[:, 0]),
    ):
        looks = np.column_stack([first, second])
        known = groups(looks) == groups(np.column_stack([looks, shown]))
        report.agree("MRS-REM3", "enumeration", known, f"two sums over a batch of two tell {what}: all inputs")
    return Finding(tally.verdict, "stronger only if models of different rounds are unrelated", tally.against)


def members(row: Sequence[int]) -> list[int]:
    """Return the users of a row."""
    return [user for user, bit in enumerate(row) if bit]


def unit(rows: Rows, place: int) -> bool:
    """Return whether a combination is 1 at one unknown and 0 at the others."""
    return rank_of_flint([*rows, [int(j == place) for j in range(len(rows[0]))]]) == rank_of_flint(rows)
