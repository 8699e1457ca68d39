"""The selection rule as printed may name a user whom no set of the family can have; the least complete batch exists.

Statement. Batches of T users, of which K/T are chosen from those that are complete, as users are available.
(a) K users cannot always be selected when K or more are available, as beside (3), unless T = 1 or K = N: no batch need
    be complete.
(b) The printed rule takes a row of B(t) with an available user of the least frequency. There is one exactly when K/T
    batches are complete and one of these has an available user of the least frequency of all available users.
(c) With complete batches in the place of available users there is a row whenever B(t) has one.
(d) For N = 120, K = 12 and rates .1 to .5, user i having the rate of place i modulo 5, the printed rule names nobody
    who can be chosen in two of five rounds that could take place, or more, for T = 3, 4, 6, 12, and in none for T =
    1.
(e) The frequencies f^(t) count the rounds before t. The rule takes f^(t-1), which leaves out round t - 1, and is not
    defined in round 0: two batches that are always complete are then chosen in runs, and not in turn.
(f) "K users at random from the available users with the minimum frequency" do not exist when these are fewer than K,
    which happens in the second round for N = 3 and K = 2, and for no fewer users.
(g) For equal rates the rule is uniform, and then T = 1 is random selection and T = K is not user partitioning, which
    goes by frequencies. For different rates the rule goes by frequencies, and then T = K is partitioning and T = 1 is
    not random selection. So one of the two is no extreme case of the rule, whatever the rates.
(h) The weights w'_i of (2) sum to 1 when somebody takes part. In a round that is skipped the right side of (2) is 0,
    which would be the next model.

Idea. (a) If T > 1 and K < N, let K/T - 1 batches be complete, T - 1 users of another one available, and one of a third:
that are K users, and no set. (b), (c): if K/T batches are complete, one of these with a user whom the rule names is in
a row, and there is none otherwise; complete batches have a least frequency among them. All frequencies up to 2 and all
sets of available users are run, for all N, K and T up to four users and six settings of six; what the rule can take is
listed row by row. (d) Rounds are drawn, with bits of SHAKE-256, so that each run is the same; in rounds where the
rule is not defined the one of (c) goes on. (e) Both readings are run. (f), (g), (h): all states of up to four users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from hashlib import shake_256
from itertools import combinations, product
from math import gcd
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "MRS-EQ3": "enumeration",
    "MRS-EQ2": "enumeration",
    "MRS-COMP2": "enumeration",
    "MRS-FREQ": "readings",
    "MRS-WEIGHTED": "enumeration",
    "MRS-EXTREME": "enumeration",
}
Users: TypeAlias = frozenset[int]
N, K, ROUNDS = 120, 12, 400
PAPER = (1, 3, 4, 6, 12)
SIX = ((6, 2, 1), (6, 4, 1), (6, 2, 2), (6, 4, 2), (6, 3, 3), (6, 6, 2))


def family(users: int, chosen: int, T: int) -> list[Users]:
    """Return all unions of batches with so many users."""
    batches = [range(b, b + T) for b in range(0, users, T)]
    return [Users(u for batch in some for u in batch) for some in combinations(batches, chosen // T)]


def fitting(rows: Iterable[Users], available: Users) -> list[Users]:
    """Return B(t): the sets whose users are all available."""
    return [row for row in rows if row <= available]


def named(frequencies: Sequence[int], users: Iterable[int]) -> Users:
    """Return those of the users who have the least frequency among them."""
    among = list(users)
    return Users(u for u in among if frequencies[u] == min(frequencies[each] for each in among))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (f)."""
    skip, whole, rule = Tally(), Tally(), Tally()
    for users, chosen, T in (*sessions(4), *SIX):
        rows = family(users, chosen, T)
        for available, by_batch in product(everybody(users), product(range(3), repeat=users // T)):
            left = fitting(rows, available)
            case = {"N": users, "K": chosen, "T": T, "available": sorted(available), "frequencies": list(by_batch)}
            frequencies = [f for f in by_batch for _ in range(T)]
            if len(available) >= chosen:
                some = {name: case[name] for name in ("N", "K", "T", "available")}
                skip.add(some, bool(left))
                report.check(
                    bool(left) or (T > 1 and chosen < users), f"(a) for T = 1 and K = N they are the same: {some}"
                )
            batches = sum({*range(b, b + T)} <= available for b in range(0, users, T))
            whole.add(case, bool(left) == (batches >= chosen // T))
            if left:
                some_row = defined(report, frequencies, available, T, left)
                least = {u for u in available if frequencies[u] == min(frequencies[other] for other in available)}
                whole_batch = any({*range(u // T * T, u // T * T + T)} <= available for u in least)
                rule.add(case, some_row[0], condition=whole_batch)
                report.check(some_row[1], f"(c) of complete batches there is always one: {case}")
                report.check(some_row[0] or T > 1, f"(b) always for T = 1: {case}")
    for users, chosen, T in (session for session in sessions(12) if session[2] > 1 and session[1] < session[0]):
        none = not fitting(family(users, chosen, T), Users({*range(chosen - 1), chosen}))
        report.agree("MRS-EQ3", "arithmetic", none, f"(a) users 0 to K - 2 and K are no set: {users, chosen, T}")
    report.say(f"a set with the user of the rule exists in {rule.held} of {rule.cases} cases in which there is a set")
    return {
        "MRS-EQ3": Finding(by_reading((skip, whole)), "K/T complete batches are needed", skip.against),
        "MRS-EQ2": nobody(report),
        "MRS-COMP2": Finding(rule.verdict, "the user's batch may lack one", rule.against, often(report)),
        "MRS-FREQ": lagging(),
        "MRS-WEIGHTED": too_few(report),
        "MRS-EXTREME": extremes(report),
    }


def sessions(largest: int) -> Iterator[tuple[int, int, int]]:
    """Yield N, K and T, where T divides both."""
    for users in range(1, largest + 1):
        for chosen in range(1, users + 1):
            yield from ((users, chosen, T) for T in range(1, chosen + 1) if divmod(gcd(users, chosen), T)[1] == 0)


def everybody(users: int) -> list[Users]:
    """Return all sets of users."""
    return [Users(some) for size in range(users + 1) for some in combinations(range(users), size)]


def defined(
    report: Report, frequencies: Sequence[int], available: Users, T: int, left: list[Users]
) -> tuple[bool, bool]:
    """Return whether a row has a user that the rule names, of those available or in complete batches; check (b)."""
    complete = [u for u in available if {*range(u // T * T, u // T * T + T)} <= available]
    found = any(row & named(frequencies, available) for row in left)
    report.check(found == bool(named(frequencies, available) & {*complete}), f"(b) {sorted(available)}, {frequencies}")
    return found, any(row & named(frequencies, complete) for row in left)


class Bits:
    """A stream of 32-bit numbers that is the same in each run."""

    def __init__(self, name: str) -> None:
        self.name, self.block, self.left = name, 0, np.zeros(0, np.uint32)

    def below_one(self, count: int) -> np.ndarray:
        """Return the next numbers, from 0 up to 1."""
        while len(self.left) < count:
            drawn = np.frombuffer(shake_256(f"{self.name} {self.block}".encode()).digest(1 << 14), "<u4")
            self.left, self.block = np.concatenate([self.left, drawn]), self.block + 1
        taken, self.left = self.left[:count], self.left[count:]
        return np.asarray(taken / 2.0**32)


def often(report: Report) -> dict[str, list[int]]:
    """Decide (d): for each T the rounds that could take place, and those of them in which the rule is not defined."""
    rates = np.array([(1 + user % 5) / 10 for user in range(N)])
    counts = {}
    for T in PAPER:
        bits, frequency = Bits(f"selection {T}"), np.zeros(N // T)
        could, undefined = 0, 0
        for _ in range(ROUNDS):
            available = (bits.below_one(N) >= rates).reshape(-1, T)
            complete = available.all(axis=1)
            if complete.sum() < K // T:
                continue
            least = frequency[available.any(axis=1)].min()
            could += 1
            undefined += not (frequency[complete] == least).any()
            frequency[chosen(frequency, complete, bits, K // T)] += 1
        counts[f"T = {T}"] = [could, undefined]
    report.say(f"of {ROUNDS} rounds: could take place, and of these the printed rule is not defined: {counts}")
    report.check(counts.pop("T = 1")[1] == 0, "(d) always defined for T = 1")
    two_of_five = all(5 * bad > 2 * could for could, bad in counts.values())
    report.agree("MRS-COMP2", "samples", two_of_five, "(d) it is not defined in two of five rounds or more")
    return counts


def chosen(frequency: np.ndarray, complete: Any, bits: Bits, count: int) -> np.ndarray:
    """Return one complete batch of the least frequency and others at random."""
    order = bits.below_one(len(complete)) + 2.0 * ~complete
    low = np.flatnonzero(complete & (frequency == frequency[complete].min()))
    order[low[np.argmin(order[low])]] = -1.0
    return np.argsort(order)[:count]


def lagging() -> Finding:
    """Decide (e): two batches, both complete; what is chosen with the round before counted, and without."""
    runs = {}
    for name, lag in (("f(t)", 0), ("f(t-1)", 1)):
        history = [0]
        for t in range(1, 9):
            known = history[: t - lag]
            history.append(min((0, 1), key=known.count))
        runs[name] = "".join(map(str, history))
    return Finding(by_reading(run == "01" * 4 + "0" for run in runs.values()), f"batches by round: {runs}", runs)


def too_few(report: Report) -> Finding:
    """Decide (f): all that two rounds can be when everybody is available."""
    tally, ascending = Tally(), Tally()
    for users, chosen, _ in (session for session in sessions(4) if session[2] == 1):
        for first in (Users(), *map(Users, combinations(range(users), chosen))):
            frequencies = [int(user in first) for user in range(users)]
            low = sorted(named(frequencies, range(users)))
            left = users - len(first) if len(first) < users else users
            report.agree("MRS-WEIGHTED", "arithmetic", len(low) == left, f"(f) N - K after a round: {users}, {chosen}")
            case = {"N": users, "K": chosen, "frequencies": frequencies, "least": low}
            tally.add(case, len(low) >= chosen)
            order = sorted(range(users), key=frequencies.__getitem__)
            ascending.add(case, {*order[:chosen]} <= {*low} or {*low} <= {*order[:chosen]})
    return Finding(by_reading((tally, ascending)), "too few have the least frequency", tally.against)


Law: TypeAlias = dict[Users, Fraction]


def uniform(rows: Sequence[Users]) -> Law:
    """Return the probability of each row: all alike."""
    return dict.fromkeys(rows, Fraction(1, max(1, len(rows))))


def by_frequency(rows: Sequence[Users], frequencies: Sequence[int]) -> Law:
    """Return the same when a row is drawn of those that have the user, or one of those, of the least frequency."""
    low = named(frequencies, Users().union(*rows)) if rows else Users()
    return uniform([row for row in rows if row & low])


def extremes(report: Report) -> Finding:
    """Decide (g) on all states of up to four users, with frequencies up to 2."""
    apart: dict[str, dict[str, Any]] = {}
    for users, chosen, _ in (session for session in sessions(4) if session[2] == 1):
        for available, frequencies in product(everybody(users), product(range(3), repeat=users)):
            one = fitting(family(users, chosen, 1), available)
            case = {"N": users, "K": chosen, "available": sorted(available), "frequencies": list(frequencies)}
            if uniform(one) != by_frequency(one, frequencies):
                apart.setdefault("T = 1, different rates", case)
            by_group = [frequencies[user // chosen] for user in range(users)]
            groups = fitting(family(users, chosen, chosen), available) if not divmod(users, chosen)[1] else []
            if uniform(groups) != by_frequency(groups, by_group):
                apart.setdefault("T = K, equal rates", {**case, "frequencies": by_group})
    report.say(f"where the rule is not random selection, and not partitioning: {apart}")
    both = len(apart) == 2
    return Finding("imprecise" if both else "confirmed", "one of the two is no extreme case", apart or None)


def nobody(report: Report) -> Finding:
    """Decide (h): all users have the model 1, so that each mean of models is 1."""
    tally, sympy = Tally(), package("sympy")
    w = sympy.symbols("w:4", positive=True)
    ones = all(sympy.cancel(sum(one / sum(w[:k]) for one in w[:k]) - 1) == 0 for k in range(1, 5))
    report.agree("MRS-EQ2", "symbolic", ones, "(h) the weights of one to four users sum to 1")
    for users, chosen, _ in (session for session in sessions(4) if session[2] == 1):
        for some in ((), *combinations(range(users), chosen)):
            for weights in product((1, 2, 3), repeat=users):
                total = sum(weights[user] for user in some)
                model = sum((Fraction(weights[user], total) for user in some), Fraction(0))
                if some:
                    tally.add({"N": users, "K": chosen, "S(t)": list(some), "x(t+1)": int(model)}, model == 1)
                report.check((model == 1) == bool(some), f"(h) 0 when nobody takes part: {some}")
    return Finding(tally.verdict, "when somebody takes part", tally.against)
