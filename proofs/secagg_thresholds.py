"""SecAgg can be private against T users and withstand D that drop out exactly when N > D + T.

Statement, for 1 <= T < N, 0 <= D < N and the complete graph: there is a threshold t with which
(a) the server and any T users learn the sum over the survivors and their own data only, when up to D users are late,
(b) the sum is learned when any D users drop out, before they send a masked input or after,
exactly when N > D + T. The thresholds that do are T < t <= N - D, and all when nobody is late and one user is honest.
(c) A late user, who counts as dropped and whose masked input arrives, stays hidden by its self mask when T < t: in (a)
all pairwise masks of late users are known. Without the self mask its input is learned.

Idea. Both are decided by the views of the masking function that runs, with no condition on t put in: (a) for each
coalition and each set of late users, (b) for each set of users that answer. Users are alike but for signs, so for N = 5
coalitions of the first users stand for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.errors import ParameterError
from secagg_spec.ledger import Finding, Report, Tally
from secagg_spec.privacy.secagg import Element, Situation, honest_answer, most
from secagg_spec.protocols.graph import Graph
from secagg_spec.protocols.secagg import Parameters

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
    tally = Tally()
    for N in range(2, 6):
        for D in range(N):
            for T in range(1, N):
                works = [t for t in range(1, N + 1) if robust(N, t, D) and private(N, t, D, T)]
                case = {"N": N, "D": D, "T": T, "thresholds": works}
                tally.add(case, bool(works) == bound(N, D, T))
                expected = range(T + 1, N - D + 1) if D or T < N - 1 else range(1, N + 1)
                report.check(works == list(expected), f"the thresholds that work: {case}")
                report.check(set(accepted(N, D, T)) <= set(works), f"what the code accepts works: {case}")
    report.say(f"{tally.cases} sets of numbers: some threshold works exactly when N > D + T in {tally.held}")
    return {
        "BAS-SECAGG": Finding(tally.verdict, "the thresholds that work are T < t <= N - D", tally.against),
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
