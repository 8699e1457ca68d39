"""How many requests it takes to tell few users from the others in HeteroSAg, and which threshold stops them.

Statement, for requests that break HSA-27 in a cell of n users: over them some user has fewer than T + 2 companions.
(a) Some 1 + floor((n - 1)/(T + 2)) of them, or fewer, break it already. There are cells of n users in which no fewer
    do.
(b) So no session of a server that asks all users alike breaks HSA-27 where M(N - t) < N - T, for the M of (a) and the
    largest cell: some honest user answered all of these requests but the last, and refuses that one.
(c) 2(N - t) < N - T does not do. With N = 20, T = 1, t = 11 and two subgroups of ten, three requests that users answer
    tell the input of user 6. There M = 7, and t = 18 is the least that (b) takes.

Idea. Take requests that break HSA-27 of which no fewer do; there are m. A user's class is the users in the same ones
of them; classes are corners of a cube with m dimensions, and to leave out request k joins the two ends of each edge in
direction k. Each joined class is empty or has s = T + 2 users, but for users in no request, who do not count. Say some
class v has at least one and fewer than s users.
First, let also those in no request count. Then there are ms users, by induction. A direction k splits the cube into
halves. The half of v has (m - 1)s. In the other half the neighbour of v has a user, since the two together have s. If
it has fewer than s that half has (m - 1)s users too, if not it has s.
Now they do not count. If v is in request k and in another one, the half of k has (m - 1)s users as before, and the
neighbour of v outside k, which counts, has one more. If v is in k alone and there is a user outside k, the same holds.
If nobody is outside k, the m - 1 neighbours of v have s users each, since what they are joined with is empty, and v
has one more. So n >= (m - 1)s + 1. Attained: one user, and m - 1 blocks of s; a request for all, and one for each
block.
For (b), m sets of t users have N - m(N - t) users in common.

All families in small cells are tried for (a). For (c) users look back as the protocol's steps do, each on what it
answered, and the view of the three rounds is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.participation_classes import small_class
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.heterosag import RULES, Plan, Rounds, refusal
from secagg_spec.privacy.lies import answered_by_one, holds_session, requests_needed
from secagg_spec.protocols.heterosag.plan import Parameters

CLAIMS = {
    "UNI-REQUESTS": "enumeration",
}
Users = tuple[int, ...]
TRIED = ((1, 2, 7), (1, 3, 9), (1, 4, 7), (2, 2, 8), (2, 3, 10))
"""T, how many requests, and up to how many users of the cell."""
OTHERS = tuple(range(10, 20))
A, B = (0, 1, 2), (3, 4, 5)
THREE = ((*A, *OTHERS), (*B, *OTHERS), (*A, *B, 6, *OTHERS))


def parameters(t: int) -> Parameters:
    """Return twenty users in two subgroups, T = 1."""
    return Parameters(20, 0, 1, t, 2, (10, 10), (1, 1), (2, 2), Range(-1.0, 1.0))


def sizes(parts: int, users: int) -> Iterator[Users]:
    """Yield every way to spread users over classes, some of them perhaps nowhere."""
    for cuts in combinations(range(users + parts), parts):
        yield tuple(cut - before - 1 for before, cut in zip((-1, *cuts), cuts, strict=False))


def minimal(classes: Mapping[Users, int], T: int, count: int) -> bool:
    """Return whether requests break HSA-27, and no fewer of them do."""

    def breaks(kept: Collection[int]) -> bool:
        joined: dict[Users, int] = {}
        for pattern, users in classes.items():
            left = tuple(pattern[at] for at in kept)
            joined[left] = joined.get(left, 0) + users * any(left)
        return any(0 < users < T + 2 for users in joined.values())

    every = range(count)
    return breaks(every) and not any(breaks([at for at in every if at != dropped]) for dropped in every)


def fewest(T: int, count: int, most: int) -> int | None:
    """Return the fewest users of a cell in which so many requests are needed; None when they are more than `most`."""
    patterns = [pattern for pattern in product((0, 1), repeat=count) if any(pattern)]
    found = [
        sum(chosen)
        for chosen in sizes(len(patterns), most)
        if any(0 < users < T + 2 for users in chosen) and minimal(dict(zip(patterns, chosen, strict=True)), T, count)
    ]
    return min(found, default=None)


def blocks(T: int, count: int) -> list[frozenset[int]]:
    """Return the requests that attain (a): one for everybody, and one for each block of T + 2 users without user 0."""
    size = T + 2
    each = [frozenset(range(1 + at * size, 1 + (at + 1) * size)) for at in range(count - 1)]
    return [frozenset({0}).union(*each), *each]


def needs_all(T: int, count: int) -> bool:
    """Return whether these requests break HSA-27, and no fewer of them do."""
    sets = blocks(T, count)
    parts = [[one for one in sets if one is not dropped] for dropped in sets]
    return small_class(sets, T + 2) is not None and not any(small_class(part, T + 2) for part in parts)


def asked(t: int, requests: Sequence[Users]) -> list[Users]:
    """Return who answers each request, for a server that spreads the N - t users whom it does not need.

    User 19 colludes. A user that answered all the requests before is not asked for the last one, while others are left.
    """
    spare = [20 - t - (20 - len(chosen)) for chosen in requests]
    always = [user for user in range(19) if all(user in chosen for chosen in requests)]
    dropped = []
    for at in range(len(requests)):
        start = sum(spare[:at])
        dropped.append(always[start : start + spare[at]])
    return [tuple(u for u in chosen if u not in out) for chosen, out in zip(requests, dropped, strict=True)]


def answers(t: int, requests: Sequence[Users]) -> list[int]:
    """Return how many of those who are asked answer each request; user 19 answers all."""
    given = []
    past: dict[int, list[frozenset[int]]] = {user: [] for user in range(19)}
    for chosen, users in zip(requests, asked(t, requests), strict=True):
        willing = [u for u in users if u == 19 or refusal(parameters(t), chosen, past[u]) is None]
        for user in set(willing) - {19}:
            past[user].append(frozenset(chosen))
        given.append(len(willing))
    return given


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    tally = Tally()
    for T, count, most in TRIED:
        found = fewest(T, count, most)
        fits = [users for users in range(1, most + 1) if requests_needed(users, T) >= count]
        tally.add({"T": T, "requests": count}, found == min(fits, default=None))
    for T, count in product(range(1, 5), range(1, 7)):
        users = (count - 1) * (T + 2) + 1
        attained = needs_all(T, count) and requests_needed(users, T) == count
        report.check(attained, f"(a) {count} requests are needed for {users} users, T = {T}")
    common = all(
        answered_by_one(N, T, t, m) == (N - m * (N - t) > T)
        for N in range(3, 40)
        for T in range(1, 4)
        for t in range(T + 1, N + 1)
        if t > 1
        for m in range(1, 8)
    )
    report.agree("UNI-REQUESTS", "arithmetic", common, "(b) so many sets of t users share more than T")
    three_requests(report)
    report.say(
        f"{tally.held} of {tally.cases} kinds of families need as many users as said; t = 11 of 20 stops no triple"
    )
    return {"UNI-REQUESTS": Finding(tally.verdict, "so many requests can be needed, and no more", tally.against)}


def three_requests(report: Report) -> None:
    """Check (c)."""
    report.check(answered_by_one(20, 1, 11, 2) and not answered_by_one(20, 1, 11, 3), "(c) pairs, and not triples")
    report.check(min(answers(11, THREE)) >= 11, f"(c) all three requests are answered: {answers(11, THREE)}")
    p = parameters(11)
    [cell] = [cell for cell in p.parts if cell.subgroups == (0,)]
    rounds = Rounds(Plan(p, RULES["none"]), THREE)
    found = rounds.combination(cell, range(3))
    alone = found is not None and set(found.users) == {6} and rounds.learned(found, answered=(True,) * 3)
    report.agree("UNI-REQUESTS", "matrices", alone, "(c) the input of user 6 is learned")
    least = min(t for t in range(3, 21) if holds_session(parameters(t)))
    report.check(least == 18 and requests_needed(20, 1) == 7, f"(b) for twenty users t = {least}")
