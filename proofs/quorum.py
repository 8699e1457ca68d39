"""More than half of N + T signatures: two different sets cannot both have them.

Statement, for N users of whom at most T sign more than one set, and sets that need W <= N signatures of members each.
(a) Two different sets can both be signed W times exactly when 2W <= N + T, for 1 <= T < W.
(b) Sets that a user accepts have at least T + 2 members. With them the same holds for N >= T + 3; for N = T + 2 there
is one such set only. The smallest numbers with 2W = N + T at which two sets are signed are (N, T, W) = (5, 1, 3).
(c) In the steps of the active profile of LightSecAgg at `tiny`, with W = 4, no server that works with T users, and
tells each honest user one of two sets, gets the shares of honest users for both. The same server does get them with
W = 3, which 2W > N + T refuses.

Idea. Two groups of W signers out of N have at least 2W - N members in common. (a) and (b) by trying who signs what, for
all N <= 7; (c) by running the steps for every pair of sets, coalition and way to tell them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from secagg_spec.errors import ParameterError
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.protocols import agreement
from secagg_spec.protocols.lightsecagg.active import PRESETS, Parameters

CLAIMS = {
    "UNI-QUORUM": "enumeration",
}
Users = tuple[int, ...]


def sets(N: int, smallest: int) -> list[Users]:
    """Return every set of at least `smallest` users."""
    return [chosen for size in range(smallest, N + 1) for chosen in combinations(range(N), size)]


def both_signed(N: int, T: int, W: int, smallest: int) -> bool:
    """Return whether two different sets can both be signed by W of their members, T of the users signing both.

    Users are alike, so that only numbers matter: how many members the sets share and have alone, how many of the shared
    ones sign both, and how many sign the first. Who is in one set alone signs it.
    """
    for shared, first, second in product(range(N + 1), repeat=3):
        fits = shared + first + second <= N and shared + min(first, second) >= smallest
        if fits and first + second > 0:
            for twice in range(min(T, shared) + 1):
                for once in range(shared - twice + 1):
                    if twice + once + first >= W and shared - once + second >= W:
                        return True
    return False


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b) for all numbers up to N = 7, and (c) at `tiny`."""
    tally, lost = Tally(), []
    for N, T in product(range(2, 8), range(1, 6)):
        for W in range(T + 1, N + 1):
            safe = not both_signed(N, T, W, smallest=1)
            case = {"N": N, "T": T, "W": W}
            tally.add(case, safe == (2 * W > N + T))
            accepted = not both_signed(N, T, W, smallest=T + 2)
            report.check(accepted == (2 * W > N + T or N <= T + 2), f"sets of T + 2 or more: {case}")
            if not accepted and 2 * W == N + T:
                lost.append((N, T, W))
    report.check(min(lost) == (5, 1, 3), "the smallest loss is at (5, 1, 3)")
    report.say(f"{tally.cases} sets of numbers: in {tally.held} two sets are both signed exactly when 2W <= N + T")
    strong, weak = released_for_two_sets(PRESETS["tiny"]), released_for_two_sets(weakened())
    report.say(f"tiny: shares for two sets in {strong[0]} of {strong[1]} lies with W = 4, in {weak[0]} with W = 3")
    report.check(strong[0] == 0 < weak[0], "the steps release for one set with W = 4, and for two with W = 3")
    refused = not accepted_by_the_code(5, 1, 3)
    report.check(refused, "the code refuses (5, 1, 3)")
    numbers = {"first-loss": list(min(lost)), "lies": strong[1], "won-with-3": weak[0]}
    return {"UNI-QUORUM": Finding(tally.verdict, "two quorums share an honest user", tally.against, numbers)}


def weakened() -> Parameters:
    """Return the parameters of `tiny` with W = 3, which `Parameters` refuses."""
    parameters = Parameters(q=7, N=5, D=1, U=3, T=1, d=3, W=4)
    object.__setattr__(parameters, "W", 3)
    return parameters


def released_for_two_sets(parameters: Parameters) -> tuple[int, int]:
    """Return how many lies get the shares of honest users for two sets, and how many lies there are."""
    users, wins, lies = Confirmations(parameters), 0, 0
    for pair in combinations(sets(parameters.N, parameters.T + 2), 2):
        for coalition in combinations(range(parameters.N), parameters.T):
            for asked in tellings(parameters.N, coalition, pair):
                lies += 1
                wins += len(set(users.released(coalition, asked).values())) > 1
    return wins, lies


def tellings(N: int, coalition: Users, pair: tuple[Users, Users]) -> Iterator[dict[int, Users]]:
    """Yield every way to tell each honest user one of two sets."""
    honest = [user for user in range(N) if user not in coalition]
    for shown in product(pair, repeat=len(honest)):
        yield dict(zip(honest, shown, strict=True))


def accepted_by_the_code(N: int, T: int, W: int) -> bool:
    """Return whether the reference accepts W."""
    try:
        agreement.check_threshold(W, N, 0, T)
    except ParameterError:
        return False
    return True
