"""Of a Multi-Round round of SecAgg a lying server gets sums over whole batches only, where 3t >= 2K + c.

Statement, for K users in batches of T, threshold t, c < t colluders, and honest keys. The server names to each user
survivors of its choice, unions of batches (MRA-21), and relays to each user shares of its choice. Let D = t - c,
r = K - t and H = K - c, so that H = D + r.
(a) Where 3t >= 2K + c, that is D >= 2r, each sum that it gets is over all honest users of some batches.
(b) 2t > K + c is not enough. With K = 15, T = 3, c = 1 and t = 9 the input of user 0 comes out of one round.
(c) For T = 3 and c = 1 some lie succeeds with t = 9 of 15 users, 15 of 24, 27 of 42 and 39 of 60. That is two below the
    least t of (a) each time.

Idea. Let W be the honest users whose masked inputs make a sum, and P those whose masking keys are known. Each of W is
named a survivor by D honest users, each of P dropped by D; no user is in both, as 2D > H. If one of W shares a mask
with an honest user, this one is in W or in P. Let W have user i and not user i' of its batch. The D users who name i
name i' too, so i' is not in P, and not in W: user i holds no share of i', and can never answer. None of these D users
is in W, since each shares a mask with i'. So W has w <= r members. User i has t holders, D of them honest and all in W
or P. So P has D - w + e members for some e >= 0, and a member of W names e users dropped at most. All others name r at
most, and i nobody. So D(D - w + e) <= (H - w) r + (w - 1) e. As D > w - 1 this is easiest for e = 0. There each of P
is named by D others outside W, so w <= r - 1. At w = r - 1 it says D(D + 1) <= r (2D + 1), at smaller w more, and D >=
2r denies it. With w = r some e > 0 is needed, and D >= 2r denies that too.

The program checks for all K up to 90 that these inequalities deny all lies exactly where 3t >= 2K + c. Without them it
tries all lies for small K: users in the same place are alike, and answers are added up one user after the other. The
lies of (b) and (c) are built. Up to 24 users the steps that run answer them, and ranks decide what is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.lies import Lie, keeps_batches
from secagg_spec.privacy.secagg import Requests, Situation
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg.round import Parameters
from secagg_spec.selection.batches import Parameters as Batches

CLAIMS = {
    "UNI-BATCHLIES": "enumeration",
}
Vector = tuple[int, ...]
TRIED = ((6, 2, 0), (8, 2, 0), (10, 2, 0), (10, 2, 1), (6, 3, 0), (6, 3, 1), (9, 3, 1), (12, 3, 1))
BUILT = ((15, 9, 3, 1), (24, 15, 4, 2), (42, 27, 6, 8), (60, 39, 8, 14))


def bounded(K: int, t: int, c: int) -> bool:
    """Return whether the inequalities of the idea leave no w and e."""
    D, r, H = t - c, K - t, K - c
    for w, e in product(range(1, r + 1), range(r + 1)):
        others = D - w + e
        named = (H - w) * r + (w - 1) * e
        reached = H - w - 1 + (w - 1 if e else 0) >= D
        if others <= 0 or (D * others <= named and reached):
            return False
    return 2 * D > H


# ------------------------------------------------------------------------------------------------ all lies, tried


def succeeds(K: int, T: int, t: int, c: int) -> bool:
    """Return whether some lie gets a sum that takes one honest user of a batch and leaves out another."""
    honest = [T - c if not b else T for b in range(K // T)]
    first, other = ([(w, p) for w in range(h + 1) for p in range(h + 1 - w)] for h in honest[:2])
    for one, rest in product(first, combinations_with_replacement(other, len(honest) - 1)):
        parts = (one, *rest)
        cut = any(0 < w < h for (w, _), h in zip(parts, honest, strict=True))
        if cut and sum(w + p for w, p in parts) + c >= t and reached(T, t, c, honest, parts):
            return True
    return False


def reached(T: int, t: int, c: int, honest: list[int], parts: tuple[tuple[int, int], ...]) -> bool:
    """Return whether answers can name each user of W a survivor, and each of P dropped, t - c times.

    `parts` has for each batch how many users are in W, and how many in P. A vector counts for each batch with users in
    W how often it was named to survive, and for each with users in P how often to have dropped out; up to t - c.
    """
    D, some = t - c, [(bool(w), bool(p)) for w, p in parts]
    wanted = tuple(D if has else 0 for pair in some for has in pair)
    found, left = {(0,) * len(wanted)}, sum(honest)
    for batch, ((w, _), h) in enumerate(zip(parts, honest, strict=True)):
        for inside in (True,) * w + (False,) * (h - w):
            left -= 1
            given = set(answers(T, t, honest, parts, batch, inside))
            after = (map(sum, zip(vector, new, strict=True)) for vector in found for new in given)
            capped = {tuple(map(min, vector, wanted)) for vector in after}
            found = {v for v in capped if all(have + left >= want for have, want in zip(v, wanted, strict=True))}
    return wanted in found


def answers(
    T: int, t: int, honest: list[int], parts: tuple[tuple[int, int], ...], own: int, inside: bool
) -> Iterator[Vector]:
    """Yield what a user of a batch, in W or not, can add: nothing, or its own batch and others survive."""
    yield (0,) * (2 * len(parts))
    whole = [w + p == h for (w, p), h in zip(parts, honest, strict=True)]
    others = [b for b in range(len(parts)) if b != own]
    for size in range(len(parts)):
        for chosen in combinations(others, size):
            survive = {own, *chosen}
            if len(survive) * T >= t and not (inside and not all(whole[b] for b in survive)):
                yield tuple(int((b in survive) == kept) for b in range(len(parts)) for kept in (True, False))


# ------------------------------------------------------------------------------------------------- lies that are built


def built(K: int, t: int, batches: int, size: int) -> Lie | None:
    """Return a lie for T = 3, with user 1 as the colluder, or None when too few answers name a user dropped.

    Isolated are user 0 and users of the last batches, `size` in all. Users of the batches 1, 2, … are named dropped.
    """
    isolated = (0, *range(K - size + 1, K))
    dropped = {b: tuple(range(3 * b, 3 * b + 3)) for b in range(1, batches + 1)}
    targets = [user for users in dropped.values() for user in users][: t - 1 - size]
    near = tuple(sorted((1, *isolated, *targets)))
    named, announced = dict.fromkeys(dropped, 0), {}
    for user in range(K):
        if user != 1 and user not in isolated:
            rare = sorted((b for b in dropped if b != user // 3), key=lambda b: named[b])[: (K - t) // 3]
            named.update({b: named[b] + 1 for b in rare})
            announced[user] = tuple(u for u in range(K) if u // 3 not in rare)
    if min(named.values()) < t - 1 or len(near) < t or len(announced) < t - 1:
        return None
    return Lie(isolated, announced, dict.fromkeys(isolated, near))


def shown(K: int, t: int, lie: Lie) -> bool:
    """Return whether users answer the lie, so that the sum over the isolated ones is learned, and nothing else."""
    requests, selection = Requests(Parameters(8, K, 0, 1, t, K - 1, 1), arrived=lie.arrived), Batches(K, K, 3)
    answered = {}
    for user, survivors in lie.announced.items():
        multi_round.check_survivors(selection, survivors)
        given = requests.answer(user, survivors)
        if given is None:
            return False
        answered[user] = given
    element = requests.element
    view = element.view((1,), Situation(element.sharers, element.sharers, element.sharers, answered))
    verdict = view.decide(element.total(lie.isolated))
    return verdict.private and verdict.withheld == 1


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    tally, lost = Tally(), []
    for K, T, c in TRIED:
        for t in range((K + c) // 2 + 1, K + 1):
            safe = not succeeds(K, T, t, c)
            tally.add({"K": K, "T": T, "c": c, "t": t}, safe or not keeps_batches(K, t, c))
            lost += [] if safe else [(K, T, c, t)]
    report.check(lost == [(10, 2, 0, 6), (10, 2, 1, 6)], f"(b) the lies tried with 2t > K + c: {lost}")
    numbers = [(K, t, c) for K in range(4, 91) for c in range(4) for t in range(c + 2, K + 1)]
    proved = all(bounded(K, t, c) == keeps_batches(K, t, c) for K, t, c in numbers)
    report.agree("UNI-BATCHLIES", "arithmetic", proved, "(a) the inequalities leave no lie exactly there")
    for K, t, batches, size in BUILT:
        lie = built(K, t, batches, size)
        report.check(lie is not None and 2 * t > K + 1 and not keeps_batches(K, t, 1), f"(c) a lie for {K, t}")
        report.check(keeps_batches(K, t + 2, 1) and not keeps_batches(K, t + 1, 1), f"(c) {K, t} is two below")
        if lie is not None and K < 25:
            report.agree("UNI-BATCHLIES", "matrices", shown(K, t, lie), f"(b) the sum over {lie.isolated} comes out")
    report.say(f"{tally.cases} sets of numbers tried; with 2t > K + c lies succeed at {lost} and at {BUILT}")
    return {"UNI-BATCHLIES": Finding(tally.verdict, "no lie cuts a batch where 3t >= 2K + c", tally.against)}
