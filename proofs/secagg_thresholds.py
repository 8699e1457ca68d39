"""SecAgg can be private against T users and withstand D that drop out exactly when N > D + T.

Statement, for 1 <= T < N, 0 <= D < N and the complete graph: there is a threshold t with which
(a) the server and any T users learn the sum over the survivors and their own data only, when up to D users are late,
(b) the sum is learned when any D users drop out, before they send a masked input or after,
exactly when N > D + T. The thresholds that do are T < t <= N - D, and all when nobody is late and one user is honest.
(c) A late user, who counts as dropped and whose masked input arrives, stays hidden by its self mask when T < t: in (a)
all pairwise masks of late users are known. Without the self mask its input is learned.
(d) The paper has "resiliency against D colluding workers". Of D workers who collude and send what they should, the
condition is not needed: with N <= D + T, too, there are thresholds with (a) and (b) for nobody who drops out. So D
counts users that drop out, as appendix A says of it.

Idea. Both are decided by the views of the masking function that runs, with no condition on t put in: (a) for each
coalition and each set of late users, (b) for each set of users that answer. Users are alike but for signs, so for N = 5
coalitions of the first users stand for all. For N = 3 and 4 all inputs and masks modulo 2 are counted besides, with the
masks written down: who has t shares has both secrets of a survivor, or one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.errors import ParameterError
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.privacy.secagg import Element, Situation, honest_answer, most
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import Parameters

CLAIMS = {
    "BAS-SECAGG": "matrices",
    "BAS-DELAY": "matrices",
}
Users = tuple[int, ...]


def bound(N: int, D: int, T: int) -> bool:
    """Return whether the condition of the paper holds."""
    return N > D + T


@cache
def element(N: int, t: int) -> Element:
    """Return one element of a round of N users."""
    everyone = tuple(range(N))
    return Element(Ring(8), Graph(everyone, N - 1), t, everyone)


def coalitions(N: int, T: int) -> Iterator[Users]:
    """Yield coalitions of T users."""
    yield from combinations(range(N), T) if N < 5 else [tuple(range(T))]


@cache
def hides(N: int, t: int, coalition: Users, survivors: Users) -> bool:
    """Return whether a coalition learns no more than the sum when the other users are late."""
    round = element(N, t)
    return round.decide(coalition, most(round.graph, round.sharers, survivors)).private


@cache
def recovers(N: int, t: int, survivors: Users, answering: Users) -> bool:
    """Return whether the server learns the sum over the survivors from some answers."""
    round = element(N, t)
    dropped = set(round.sharers) - set(survivors)
    answers = {user: honest_answer(round.graph, user, survivors, dropped) for user in answering}
    return round.decide((), Situation(round.sharers, survivors, survivors, answers)).withheld == 1


def private(N: int, t: int, D: int, T: int) -> bool:
    """Return whether (a) holds."""
    sets = [users for late in range(D + 1) for users in combinations(range(N), N - late)]
    return all(hides(N, t, coalition, survivors) for coalition in coalitions(N, T) for survivors in sets)


def robust(N: int, t: int, D: int) -> bool:
    """Return whether (b) holds."""
    for answering in combinations(range(N), N - D):
        for more in range(D + 1):
            for others in combinations([user for user in range(N) if user not in answering], more):
                if not recovers(N, t, tuple(sorted(answering + others)), answering):
                    return False
    return True


def prove(report: Report) -> dict[str, Finding]:
    """Compare the condition with what works, for all numbers up to N = 5."""
    tally, colluding = Tally(), Tally()
    for N in range(2, 6):
        for D in range(N):
            for T in range(1, N):
                works = [t for t in range(1, N + 1) if robust(N, t, D) and private(N, t, D, T)]
                case = {"N": N, "D": D, "T": T, "thresholds": works}
                tally.add(case, bool(works) == bound(N, D, T))
                others = [t for t in range(1, N + 1) if robust(N, t, 0) and private(N, t, 0, T)]
                colluding.add({**case, "thresholds, D collude": others}, bool(others) == bound(N, D, T))
                expected = range(T + 1, N - D + 1) if D or T < N - 1 else range(1, N + 1)
                report.check(works == list(expected), f"the thresholds that work: {case}")
                report.check(set(accepted(N, D, T)) <= set(works), f"what the code accepts works: {case}")
    counting(report)
    report.say(f"{tally.cases} sets of numbers: some threshold works exactly when N > D + T in {tally.held}")
    return {
        "BAS-SECAGG": Finding(
            by_reading((tally, colluding)), "the thresholds that work are T < t <= N - D", colluding.against
        ),
        "BAS-DELAY": late_users(report),
    }


def late_users(report: Report) -> Finding:
    """Decide (c) for N = 3 to 5, coalitions of t - 1 survivors, and every set of late users that leaves t answers."""
    tally = Tally()
    for N in range(3, 6):
        for t in range(2, N):
            for survivors in (users for left in range(t, N) for users in combinations(range(N), left)):
                coalition = survivors[: t - 1]
                case = {"N": N, "t": t, "survivors": list(survivors), "coalition": list(coalition)}
                tally.add(case, hides(N, t, coalition, survivors))
                report.check(bare(N, t, coalition, survivors), f"(c) without the self mask it is learned: {case}")
    report.say(f"late users stay hidden in {tally.held} of {tally.cases} views, and in none without self masks")
    return Finding(tally.verdict, "the self mask alone hides a late input", tally.against)


def bare(N: int, t: int, coalition: Users, survivors: Users) -> bool:
    """Return whether the input of a late user is learned as soon as its self seed is known."""
    round = element(N, t)
    late = next(user for user in range(N) if user not in survivors)
    view = round.view(coalition, most(round.graph, round.sharers, survivors))
    view.reveal(round.tokens.self_seed(late))
    return view.decide(*round.allowed(coalition, survivors)).functionals == (f"x_{late}[0]",)


def accepted(N: int, D: int, T: int) -> list[int]:
    """Return the thresholds that the reference accepts; it demands T + 2 <= t."""
    found = []
    for t in range(1, N + 1):
        try:
            Parameters(R=8, N=N, D=D, T=T, t=t, k=N - 1, d=1)
        except ParameterError:
            continue
        found.append(t)
    return found


# ------------------------------------------------------------------------------------- by counting, without the code


class Bits:
    """All inputs x, self masks b and pairwise masks s of N users, one bit each; modulo 2 signs do not matter."""

    def __init__(self, N: int) -> None:
        self.N, self.pairs = N, list(combinations(range(N), 2))
        rows = np.indices((2,) * (2 * N + len(self.pairs)), dtype=np.int64).reshape(2 * N + len(self.pairs), -1)
        self.x, self.b, self.s = rows[:N], rows[N : 2 * N], dict(zip(self.pairs, rows[2 * N :], strict=True))

    def masked(self, i: int) -> np.ndarray:
        """Return what user i uploads."""
        pairwise = np.bitwise_xor.reduce([s for pair, s in self.s.items() if i in pair])
        return np.asarray(self.x[i] ^ self.b[i] ^ pairwise)

    def opened(self, survivors: Users) -> list[np.ndarray]:
        """Return what t answers open: self masks of survivors, and pairwise masks of the others."""
        late = [s for pair, s in self.s.items() if not set(pair) <= set(survivors)]
        return [*self.b[list(survivors)], *late]

    def own(self, coalition: Users) -> list[np.ndarray]:
        """Return what a coalition has itself."""
        shared = [s for pair, s in self.s.items() if set(pair) & set(coalition)]
        return [*self.x[list(coalition)], *self.b[list(coalition)], *shared]

    def tells_nothing(self, seen: list[np.ndarray], known: list[np.ndarray]) -> bool:
        """Return whether what is seen fits equally often every x that has the same known sums."""
        view, secret, allowed = (number(rows) for rows in (seen, list(self.x), known))
        pairs, often = np.unique(view * 2**self.N + secret, return_counts=True)
        whose = allowed[np.unique(secret, return_index=True)[1]]
        views, secrets = np.divmod(pairs, 2**self.N)
        fitting = np.unique(views * 2 ** (self.N + 1) + whose[secrets], return_counts=True)[1]
        return bool((often == often[0]).all() and (fitting * np.unique(whose).size == 2**self.N).all())


def number(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return one number for the bits in each column."""
    return np.asarray(sum(row << at for at, row in enumerate(rows)))


def counting(report: Report) -> None:
    """Compare what the views say with counts, for every threshold, coalition and set of survivors."""
    same, late = [], []
    for N in (3, 4):
        bits = Bits(N)
        for t, size in product(range(1, N + 1), range(1, N + 1)):
            for survivors, T in product(combinations(range(N), size), range(1, N)):
                coalition = tuple(range(T))
                counted = counted_hides(bits, t, coalition, survivors)
                same.append(counted == hides(N, t, coalition, survivors))
                late.append(counted or t <= T or size == N)
            same += [counted_recovers(bits, t, users) == (size >= t) for users in combinations(range(N), size)]
    report.agree("BAS-SECAGG", "enumeration", all(same), f"{len(same)} views and sums, counted, are as the ranks say")
    report.agree("BAS-DELAY", "enumeration", all(late), "late inputs stay hidden from fewer than t, counted")


def counted_hides(bits: Bits, t: int, coalition: Users, survivors: Users) -> bool:
    """Return whether a coalition and the server learn no more than the sum over the survivors, by counting."""
    opened = bits.opened(survivors) if len(survivors) >= t else []
    everything = [*bits.b, *bits.s.values()] if len(coalition) >= t else []
    seen = [bits.masked(i) for i in range(bits.N)] + opened + everything + bits.own(coalition)
    total = np.bitwise_xor.reduce(bits.x[list(survivors)])
    return bits.tells_nothing(seen, [total, *bits.x[list(coalition)]])


def counted_recovers(bits: Bits, t: int, survivors: Users) -> bool:
    """Return whether what the survivors open gives the sum of their inputs, by counting."""
    opened = bits.opened(survivors) if len(survivors) >= t else []
    view = number([bits.masked(i) for i in survivors] + opened)
    total = np.bitwise_xor.reduce(bits.x[list(survivors)])
    return bool(np.unique(view * 2 + total).size == np.unique(view).size)
