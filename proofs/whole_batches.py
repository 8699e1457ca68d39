"""A session keeps the privacy of its batches exactly when sums are over whole batches; c colluders take c off.

Statement. N users in batches of T. The server asks for the sum over any set of users in each round, and users answer
when the set is a union of batches, or, without this rule, always.
(a) Without the rule, sums over {0, 1, 2} and {0, 1} tell the model of user 2, though both were asked within one
    batch.
(b) With it the strong privacy is T or more for all logs, and with any c users of the server's side at least T - c of
    each class are left; exactly T - c for some. So with T >= c + 2 no honest user is told, and with T = c + 1 some
    are.
(c) After one set that is no union the privacy is below T, if all unions have been asked for before.
(d) The union of the batches whose masked inputs have all come is the largest union of batches among those who came.

Idea. For all N, T and logs: users of one batch are in the same sets, so that classes are unions of batches, and a
coalition of c takes at most c users off each. With two honest users in a class their models can change in opposite
directions, and nothing that is seen does. (c) A set that is no union has some users of a batch and not the others;
when all unions were asked for before, these two parts are classes, and both have fewer than T users. (d) A union of
batches among those who came has only batches that came whole. Run for (N, T) = (6, 2), (6, 3), (8, 4) and (9, 3): all
logs of up to three sets, all sets of fewer than T colluders, and all single sets in (c) and (d). Whoever is told is
found by ranks, with the colluders' own models as further rows; classes are those of `participation_classes`. For six
users and logs of up to two sets it is found again from all inputs of 0, 1 and 2: a model is not told when two inputs
that look the same differ in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, product
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "UNI-BATCHES": "matrices",
}
Users: TypeAlias = frozenset[int]
NOBODY = Users()
SESSIONS = ((6, 2), (6, 3), (8, 4), (9, 3))


def subsets(users: Sequence[int]) -> Iterator[Users]:
    """Yield the sets of users that are not empty."""
    for size in range(1, len(users) + 1):
        yield from map(Users, combinations(users, size))


def batches(N: int, T: int) -> list[Users]:
    """Return the batches."""
    return [Users(range(b, b + T)) for b in range(0, N, T)]


def unions(N: int, T: int) -> list[Users]:
    """Return the unions of one batch or more."""
    every = batches(N, T)
    return [Users().union(*(every[b] for b in some)) for some in subsets(range(N // T))]


def shown(sets: Sequence[Users], N: int, coalition: Users) -> list[int]:
    """Return the honest users whose models the sums tell, to a server that has the models of a coalition."""
    flint = package("flint")
    rows = [[int(u in members) for u in range(N)] for members in [*sets, *(Users({c}) for c in coalition)]]
    reduced, rank = flint.fmpq_mat(flint.fmpz_mat(rows)).rref()
    single = [[u for u in range(N) if reduced[row, u] != 0] for row in range(rank)]
    return [users[0] for users in single if len(users) == 1 and users[0] not in coalition]


def least(sets: Sequence[Users], coalition: Users = NOBODY) -> int:
    """Return the least number of honest users in a class that has any."""
    return min((len(found - coalition) for found in participation_classes(sets) if found - coalition), default=0)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    tally = Tally()
    report.check(shown([Users({0, 1, 2}), Users({0, 1})], 6, NOBODY) == [2], "(a) user 2 is told")
    for N, T in SESSIONS:
        lowest = dict.fromkeys(range(T), T)
        for log in (log for count in (1, 2, 3) for log in combinations_with_replacement(unions(N, T), count)):
            report.check(least(log) >= T, f"(b) strong privacy: {log}")
            for c in range(T):
                for coalition in map(Users, combinations(range(N), c)):
                    left = least(log, coalition)
                    lowest[c] = min(lowest[c], left or T)
                    if c <= T - 2:
                        case = {"N": N, "T": T, "log": [sorted(s) for s in log], "coalition": sorted(coalition)}
                        tally.add(case, not shown(log, N, coalition))
        report.check(lowest == {c: T - c for c in range(T)}, f"(b) T - c exactly: {N, T, lowest}")
        report.check(bool(shown(batches(N, T), N, Users(range(T - 1)))), "(b) one user is told when T = c + 1")
        if N == 6:
            from_inputs(report, N, T)
        broken(report, N, T)
        left_out(report, N, T)
    report.say(f"{tally.cases} logs and coalitions: nobody is told in {tally.held}")
    return {"UNI-BATCHES": Finding(tally.verdict, "whole batches hold", tally.against, {"cases": tally.cases})}


def from_inputs(report: Report, N: int, T: int) -> None:
    """Check (b) on all inputs of 0, 1 and 2, for logs of up to two sets and up to T - 1 colluders."""
    inputs = np.array(list(product(range(3), repeat=N)))
    for log in (log for count in (1, 2) for log in combinations_with_replacement(unions(N, T), count)):
        sums = np.stack([inputs[:, sorted(members)].sum(axis=1) for members in log], axis=1)
        for coalition in (Users(some) for c in range(T) for some in combinations(range(N), c)):
            seen = np.column_stack([sums, inputs[:, sorted(coalition)]])
            looks = np.unique(seen, axis=0, return_inverse=True)[1].ravel()
            known = [u for u in range(N) if u not in coalition and depends(looks, inputs[:, u])]
            same = known == shown(log, N, coalition)
            report.agree("UNI-BATCHES", "enumeration", same, f"inputs that look the same: {log}, {sorted(coalition)}")


def depends(looks: np.ndarray, model: np.ndarray) -> bool:
    """Return whether all inputs that look the same have the same model."""
    return len(np.unique(looks)) == len(np.unique(looks * 3 + model))


def broken(report: Report, N: int, T: int) -> None:
    """Check (c)."""
    whole = unions(N, T)
    for asked in subsets(range(N)):
        report.check((least([*whole, asked]) >= T) == (asked in whole), f"(c) {sorted(asked)} of {N, T}")


def left_out(report: Report, N: int, T: int) -> None:
    """Check (d)."""
    for came in subsets(range(N)):
        kept = Users().union(*(batch for batch in batches(N, T) if batch <= came))
        inside = [users for users in unions(N, T) if users <= came]
        report.check(kept == max(inside, key=len, default=NOBODY), f"(d) {sorted(came)} of {N, T}")
