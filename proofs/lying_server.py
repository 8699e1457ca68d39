"""A server that names different survivors gets both secrets of a user exactly when 2t <= N + c.

Statement, for SecAgg on the complete graph of N users with threshold t, its semi-honest profile, and c < t colluders.
(a) A server that tells some users that user i survives and others that it dropped out gets t shares of both secrets of
    i, and so its input, for some way to tell them exactly when 2t <= N + c. Otherwise nothing but sums is learned.
(b) With c = 0, as HeteroSAg has it, the threshold ceil(N/2) + 1 is safe; floor(N/2) + 1 is the smallest that is.

Idea. Each user gives one share of i, of the one secret or the other, and i itself gives that of its self seed; each
colluder has one of both. So N - c + 2c shares must suffice for 2t. The program runs the step in which users answer,
for every way to tell them one of the two sets, and decides the views, for N from 4 to 7. The shares are counted
besides. With c = 0 the count gives (b) for all N: N shares are enough for 2t exactly when 2t <= N.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from secagg_spec.ledger import Finding, Report, Tally
from secagg_spec.privacy.secagg import Requests, equivocation
from secagg_spec.protocols.secagg import Parameters

CLAIMS = {
    "HET-STEP2": "matrices",
    "UNI-LIES": "matrices",
}
Users = tuple[int, ...]


def attackable(N: int, t: int, c: int) -> bool:
    """Return whether (a) says that a lie succeeds."""
    return 2 * t <= N + c


def of_the_paper(N: int) -> int:
    """Return ceil(N/2) + 1."""
    return (N + 1) // 2 + 1


def tellings(N: int, c: int) -> Iterator[dict[int, Users]]:
    """Yield every way to tell honest users that all survive, or all but user c, who is told that it survives."""
    everyone, without = tuple(range(N)), tuple(user for user in range(N) if user != c)
    for told in product((everyone, without), repeat=N - c - 1):
        yield {c: everyone, **dict(zip(range(c + 1, N), told, strict=True))}


def succeeds(requests: Requests, c: int) -> tuple[bool, bool]:
    """Return whether some lie of the server and the first c users wins, and whether each win is user c's input."""
    verdicts = [equivocation(requests, tuple(range(c)), told) for told in tellings(requests.parameters.N, c)]
    won = [verdict for verdict in verdicts if not verdict.private]
    return bool(won), all(verdict.dimension == 1 for verdict in won)


def enough_shares(N: int, t: int, c: int) -> bool:
    """Return whether some lie gives t shares of both secrets of user c, whose own share is that of its self seed."""
    counts = [sum(len(users) == N for users in told.values()) for told in tellings(N, c)]
    return any(surviving + c >= t and N - c - surviving + c >= t for surviving in counts)


def prove(report: Report) -> dict[str, Finding]:
    """Decide all numbers up to N = 7."""
    lies, paper, counted = Tally(), Tally(), True
    least: dict[int, int] = {}
    for N in range(4, 8):
        for t in range(3, N):
            requests = Requests(Parameters(R=8, N=N, D=0, T=1, t=t, k=N - 1, d=1))
            for c in range(min(t - 1, 3)):
                won, one = succeeds(requests, c)
                lies.add({"N": N, "t": t, "c": c}, won == attackable(N, t, c))
                counted &= won == enough_shares(N, t, c)
                report.check(one, f"what is won is one input: N = {N}, t = {t}, c = {c}")
                if not c and not won:
                    least.setdefault(N, t)
                if not c and t == of_the_paper(N):
                    paper.add({"N": N, "t": t}, not won)
    report.agree("UNI-LIES", "enumeration", counted, "a lie wins exactly when it gives t shares of both secrets")
    smallest = {N: t for N, t in least.items() if N >= 6}
    report.check(smallest == {N: N // 2 + 1 for N in smallest}, f"(b) floor(N/2) + 1 is the smallest: {smallest}")
    needs = [
        (2 * of_the_paper(N) > N, min(t for t in range(1, N + 1) if 2 * t > N) == N // 2 + 1) for N in range(4, 200)
    ]
    report.agree("HET-STEP2", "arithmetic", all(map(all, needs)), "(b) N shares are not enough for both secrets")
    report.say(f"some lie succeeds exactly when 2t <= N + c, in {lies.held} of {lies.cases} sets of numbers")
    report.say(f"ceil(N/2) + 1 is safe against the server alone in {paper.held} of {paper.cases}; smallest: {smallest}")
    return {
        "HET-STEP2": Finding(paper.verdict, "it is safe, and one more than needed for odd N", paper.against),
        "UNI-LIES": Finding(lies.verdict, "a lie gets both secrets of a user exactly then", lies.against),
    }
