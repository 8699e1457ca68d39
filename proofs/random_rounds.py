"""Random selection tells all models after about N rounds; the probabilities that are stated need more than is said.

Statement. In each round K of N users are drawn, and the server has the sums. All models are told when the rank is N.
(a) For N up to 6 the probability after N rounds is counted. It is 1/2 or less there, but for N = 1.
(b) K of the *available* users are drawn, and rounds with fewer are skipped. If all rounds are counted, then for the
    dropout rate 1/2 and K = 3N/4 all models are told after N rounds with a probability of at most 2^-N, although
    min(N - K, K) = N/4. So 1 - 2 e^(-c' N) is no lower bound for N >= max(4, 0.76/c') in fours, whatever c' > 0 is, and
    on whatever else but N it depends. If rounds with a selection are counted, this is a statement on random matrices,
    which no finite number of cases decides, as c' is not given; with c' = 7/50 it is right for N = 4 to 6 and c = 1/4.
(c) If each available user takes part with the probability K/(N(1 - p)), each user does so with K/N, and all models
    are told after N rounds with a probability of at most (1 - (1 - K/N)^N)^N. For K = 2 that goes to 0: for N = 120
    it is below 10^-7. So K has to grow; and the probability is one only for K <= N(1 - p).
(d) The same bound holds for rounds of K users exactly. For N = 120, K = 12 and rates .1 to .5 the rank is 120 after
    120 or a few more rounds, in all samples.
(e) For N = 24 and K = 12 all models are told after 24 rounds, in all samples; for K = 4 the first one after 21 to 25,
    and all after 24 to 47.
(f) Weighted selection, by ascending frequency, has the rank N - K + 1 or less after N rounds when nobody drops out and
    K divides N: it is not N for K > 1. For N = 120 and K = 12 the rank is 120 after 132 rounds then, in all samples,
    and after 123 or 124 for the dropout rate 1/10. For K = 12 and 24, and the rates 1/5, 3/10, 2/5 and 1/2, or .1 to .5
    in turn, it is 120 after 120 rounds in all samples.

Idea. (a) A matrix of N different rows has N! orders. (b) Each of N rounds has to take place. With the rate 1/2 as many
users are available with the same probability as are not, so that 3N/4 or more are with at most 1/2. From N = 4 on 1 - 2
e^-0.76 is above 2^-N. (c), (d) Each user has to take part once. Users who take part or not are independent in (c), and
negatively associated in (d), so that the product bounds the probability; for fixed K it goes to 0, as (1 - K/N)^N tends
to e^-K. (f) Without dropouts N/K rounds
have each user once, so that they sum to 1 for all: K such runs of rounds have the rank 1 + K (N/K - 1) at most. All
ways are listed for N = 4 and 6. (b), (c) and the first half of (f) hold for all N by these arguments, and are computed
for N = 4 to 80, and for K = 2 up to N = 120; the rest says nothing of other sizes. (d), (e), (f) Rounds are drawn with
bits of SHAKE-256, so that each run is the same. A rank modulo a prime is never above the one over the rationals. User i
is told when the reduced form has the row e_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from hashlib import shake_256
from itertools import chain, combinations, product
from math import comb, exp, factorial, prod
from typing import Any

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, package, rank_of_flint
from secagg_spec.privacy.multiround import audit
from secagg_spec.selection import strategies
from secagg_spec.selection.batches import Parameters

CLAIMS = {
    "MRS-REM11": "samples",
    "MRS-REM11W": "samples",
}
PRIME = 2**31 - 1
CONSTANTS, SELECTED = (1.0, 0.5, 0.1, 0.01), 0.14
"""c' of (b), for all rounds and for those with a selection."""
SAMPLES, WEIGHTED_SAMPLES = 20, 5


def fixed(N: int, K: int) -> Fraction:
    """Return the probability that N rounds of K users have the rank N."""
    rows = np.array([[int(user in some) for user in range(N)] for some in combinations(range(N), K)])
    chosen = np.array(list(combinations(range(len(rows)), N)), dtype=int).reshape(-1, N)
    regular = int((np.abs(np.linalg.det(rows[chosen])) > 0.5).sum()) if len(chosen) else 0
    return Fraction(factorial(N) * regular, comb(N, K) ** N)


def independent(N: int) -> Fraction:
    """Return the same when each user takes part with the probability 1/2: all matrices of zeros and ones."""
    matrices = np.array(list(product((0, 1), repeat=N * N))).reshape(-1, N, N)
    return Fraction(int((np.abs(np.linalg.det(matrices)) > 0.5).sum()), len(matrices))


def takes_place(N: int, K: int, p: Fraction) -> Fraction:
    """Return the probability that K or more of N users are available."""
    return sum((comb(N, i) * (1 - p) ** i * p ** (N - i) for i in range(K, N + 1)), Fraction(0))


def everybody(N: int, K: int) -> Fraction:
    """Return the bound of (c)."""
    return (1 - (1 - Fraction(K, N)) ** N) ** N


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (f)."""
    table = {(N, K): fixed(N, K) for N in range(1, 7) for K in range(1, N + 1)}
    report.say(f"all are told after N rounds: { {f'{N}, {K}': f'{float(p):.3f}' for (N, K), p in table.items()} }")
    report.check(all(2 * p <= 1 + (N == 1) for (N, _), p in table.items()), "(a)")
    report.check([independent(N) * 2 ** (N * N) for N in (2, 3, 4)] == [6, 174, 22560], "regular matrices of 0 and 1")
    thresholds(report)
    available(report, table)
    bernoulli(report)
    return {
        "MRS-REM11": full_rank(report),
        "MRS-REM11W": in_turn(report),
    }


def lower(c: float, N: int) -> float:
    """Return the lower bound that is claimed."""
    return 1 - 2 * exp(-c * N)


def all_rounds(N: int) -> Fraction:
    """Return the probability that N rounds take place, for the dropout rate 1/2 and K = 3N/4."""
    return takes_place(N, 3 * N // 4, Fraction(1, 2)) ** N


def available(report: Report, table: Mapping[tuple[int, int], Fraction]) -> None:
    """Check (b): "N rounds" read as all of them, and, for some N, as those with a selection."""
    for N in range(4, 81, 4):
        report.check(all_rounds(N) <= Fraction(1, 2**N) < lower(0.76, 1), f"(b) N = {N}")
    first = {c: next((N for N in range(4, 81, 4) if lower(c, N) > all_rounds(N)), 0) for c in CONSTANTS}
    report.check(all(0 < N < max(4, 0.76 / c) + 4 for c, N in first.items()), f"(b) where it fails: {first}")
    alike = {(N, K): float(p) for (N, K), p in table.items() if 4 * min(K, N - K) >= N > 3}
    report.check(all(lower(SELECTED, N) <= p for (N, _), p in alike.items()), f"(b) c' = {SELECTED} for N = 4 to 6")
    report.check(four_rounds() == all_rounds(4) * fixed(4, 3) <= Fraction(1, 2**4), "(b) N = 4 and K = 3, counted")


def four_rounds() -> Fraction:
    """Return the probability that four rounds of three of four users have the rank 4, for the dropout rate 1/2."""
    law: dict[tuple[int, ...], Fraction] = {}
    for here in product((0, 1), repeat=4):
        rows = [tuple(int(u in some) for u in range(4)) for some in combinations(np.flatnonzero(here), 3)] or [(0,) * 4]
        for row in rows:
            law[row] = law.get(row, Fraction(0)) + Fraction(1, 16 * len(rows))
    full = (way for way in product(law, repeat=4) if rank_of_flint(way, PRIME) == 4)
    return sum((prod((law[row] for row in way), start=Fraction(1)) for way in full), Fraction(0))


def bernoulli(report: Report) -> None:
    """Check (c)."""
    bounds = [everybody(N, 2) for N in (10, 20, 40, 80, 120)]
    report.check(bounds == sorted(bounds, reverse=True) and bounds[-1] < Fraction(1, 10**7), "(c) K = 2")
    for N in (2, 3, 4):
        below = independent(N) <= (1 - Fraction(1, 2**N)) ** N
        report.check(below, f"(c) of all matrices, for N = {N} and K = N/2")


class Bits:
    """A stream of numbers from 0 up to 1 that is the same in each run."""

    def __init__(self, name: str) -> None:
        self.name, self.block, self.left = name, 0, np.zeros(0)

    def draw(self, count: int) -> Any:
        """Return the next numbers."""
        while len(self.left) < count:
            drawn = np.frombuffer(shake_256(f"{self.name} {self.block}".encode()).digest(1 << 14), "<u4") / 2.0**32
            self.left, self.block = np.concatenate([self.left, drawn]), self.block + 1
        taken, self.left = self.left[:count], self.left[count:]
        return taken


def in_five(N: int) -> Any:
    """Return the rates .1 to .5 in turn."""
    return np.array([(1 + divmod(user, 5)[1]) / 10 for user in range(N)])


def rounds(bits: Bits, count: int, N: int, K: int) -> list[list[int]]:
    """Return rounds of K users drawn from the available ones, with rates from .1 to .5, as rows."""
    rates = in_five(N)
    found: list[list[int]] = []
    while len(found) < count:
        here = bits.draw(N) >= rates
        order = np.argsort(bits.draw(N) + 2.0 * ~here)
        if here.sum() >= K:
            found.append(np.isin(np.arange(N), order[:K]).astype(int).tolist())
    return found


def full_rank(report: Report) -> Finding:
    """Decide (d)."""
    tally, latest = Tally(), 0
    for sample in range(SAMPLES):
        rows = rounds(Bits(f"rank {sample}"), 140, 120, 12)
        first = next((t for t in range(120, 141) if rank_of_flint(rows[:t], PRIME) == 120), 141)
        latest = max(first, latest)
        tally.add({"N": 120, "K": 12, "rank 120 after": first}, first <= 140)
    by_auditor = audit(np.array(rounds(Bits("rank 0"), 140, 120, 12), dtype=bool)).recoveries
    latest_told = max(found.rounds for found in by_auditor.values())
    everybody_told = len(by_auditor) == 120 and latest_told == latest
    report.agree("MRS-REM11", "matrices", everybody_told, f"the auditor finds each model after {latest_told} rounds")
    report.say(f"N = 120, K = 12: the rank is 120 after at most {latest} rounds that take place, in {SAMPLES} samples")
    bound = everybody(120, 2)
    report.check(bound < Fraction(1, 10**7), "(d) K = 2 is too few for 120 rounds")
    return Finding(tally.verdict, "right for K = 12", tally.against, {"latest": latest, "samples": SAMPLES})


def weighted(bits: Bits, count: int, N: int, K: int, rates: Any) -> list[list[int]]:
    """Return rounds of weighted selection, as rows."""
    parameters, frequencies = Parameters(N, K, 1), np.zeros(N, np.int64)
    found: list[list[int]] = []
    while len(found) < count:
        here = bits.draw(N) >= rates
        bounds = strategies.ranges(parameters, "weighted", frequencies, here)
        if bounds is not None:
            draws = [int(one * bound) for one, bound in zip(bits.draw(len(bounds)), bounds, strict=True)]
            chosen = strategies.choose(parameters, "weighted", frequencies, here, draws) or ()
            row = np.isin(np.arange(N), chosen)
            frequencies += row
            found.append(row.astype(int).tolist())
    return found


OFTEN = {f"p = {p}": float(p) for p in (Fraction(1, 5), Fraction(3, 10), Fraction(2, 5), Fraction(1, 2))}
OFTEN |= {"rates .1 to .5": in_five(120)}
"""Dropout rates with which users drop out often."""


def in_turn(report: Report) -> Finding:
    """Decide (f)."""
    tally, after = Tally(), {}
    for N, K in ((4, 2), (6, 2), (6, 3)):
        most = max(rank_of_flint([*chain(*runs)], PRIME) for runs in product(rounds_of_all(N, K), repeat=K))
        report.agree("MRS-REM11W", "enumeration", most == N - K + 1, f"(f) N = {N}, K = {K}, nobody drops out")
    for name, rates in (("p = 0", 0.0), ("p = 1/10", 0.1)):
        after[name] = full_after(name, rates, 12)
        report.check(after[name][0] > 120, f"(f) later than N when users hardly ever drop out: {name}")
    for K, (name, rates) in product((12, 24), OFTEN.items()):
        after[f"{name}, K = {K}"] = found = full_after(name, rates, K)
        tally.add({"rates": name, "K": K}, found[1] == 120)
    report.say(f"weighted selection, N = 120: the rank is 120 after, at least and at most: {after}")
    return Finding(tally.verdict, "with dropout rates of 1/5 to 1/2", tally.against, after)


def full_after(name: str, rates: Any, K: int) -> list[int]:
    """Return after how many rounds of weighted selection with N = 120 the rank is 120, at least and at most."""
    found = []
    for sample in range(WEIGHTED_SAMPLES):
        rows = weighted(Bits(f"weighted {name} {sample}"), 140, 120, K, rates)
        found.append(next(t for t in range(120, 141) if rank_of_flint(rows[:t], PRIME) == 120))
    return [min(found), max(found)]


def rounds_of_all(N: int, K: int) -> list[list[list[int]]]:
    """Return the ways in which N/K rounds have each user once, but for their order."""
    rows = [[int(user in some) for user in range(N)] for some in combinations(range(N), K)]
    ways = combinations(rows, N // K)
    return [[*some] for some in ways if all(sum(column) == 1 for column in zip(*some, strict=True))]


def shown(rows: list[list[int]]) -> int:
    """Return how many users are told."""
    reduced, rank = package("flint").fmpq_mat(package("flint").fmpz_mat(rows)).rref()
    return sum(sum(reduced[row, user] != 0 for user in range(len(rows[0]))) == 1 for row in range(rank))


def thresholds(report: Report) -> None:
    """Decide (e)."""
    found = {}
    for K in (4, 12):
        some, every = [], []
        for sample in range(SAMPLES):
            rows = rounds(Bits(f"told {K} {sample}"), 60, 24, K)
            counts = [shown(rows[:t]) for t in range(1, 61)]
            some.append(1 + next(at for at, count in enumerate(counts) if count))
            every.append(1 + counts.index(24))
        found[K] = (min(some), max(some), min(every), max(every))
    report.say(f"N = 24: the first user is told after, and all users after, at least and at most: {found}")
    report.check(found == {4: (21, 25, 24, 47), 12: (23, 24, 24, 24)}, "(e)")
