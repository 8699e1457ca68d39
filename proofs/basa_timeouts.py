"""When a position that timed out is given again, its old holder, and its late upload, break BASA.

Statement, for K positions in a row, each with one accepted update, and masks as in the paper, without self masks.
(a) When no user times out that had a key, the server and any colluding users learn before the end, as long as an honest
user is to come, nothing of the honest updates, and else their sum only; so no honest update is revealed unless it is
the only one.
(b) Let users that had a key time out, and their positions be given again. Call k the last position whose key no
colluding user ever held. Then exactly this is learned: each honest update, late or not, at a position after k; the
difference of the accepted update at k and each late one there; and the sum over the others that were accepted.
(c) So when no upload comes late, it is more than the sum exactly when a colluding user that timed out held the key of
the last honest position; and when nobody colludes, exactly when an upload comes late at the last position.

Idea. An upload has an unknown mask for each later position whose key is unknown. It is removed only by what is uploaded
at that position. So every upload before k is tied to those at k, and uploads at k are tied to each other by the masks
of all those before, which both remove. This argument is for all K and all numbers of holders.

Views are decided with the masking function that runs, modulo 16: (a) for K = 2 to 7, all prefixes and coalitions; (b)
for K = 2 with up to two earlier holders of each position, and K = 3 with up to one; (c) for K = 2 to 6, every set of
positions whose colluding holder left; with two honest accepted updates at least, since one is the sum. Buffers of two
and three are decided again by counting: every update and mask modulo 3, or 2, is tried, and what is seen is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.basa import (
    GONE,
    LATE,
    PAPER,
    Epoch,
    Situation,
    Users,
    every_coalition,
    every_repeat,
    exactly,
    learned,
    witness,
)
from secagg_spec.privacy.basa_counting import Sum, counted
from secagg_spec.privacy.views import join

CLAIMS = {
    "BASA-EQ7": "matrices",
    "BASA-EQ8": "matrices",
    "BASA-THM31": "matrices",
    "BASA-K2": "matrices",
    "BASA-TO": "matrices",
    "UNI-BASA": "matrices",
    "UNI-BASALATE": "matrices",
}
RING = Ring(16)
SIZES = range(2, 8)


def full(K: int) -> Situation:
    """Return the epoch in which nobody times out."""
    return next(every_repeat(K, [()]))


def revealed(epoch: Epoch, coalition: Users) -> bool:
    """Return whether a single honest update is learned."""
    view = epoch.view(coalition)
    honest = epoch.honest(coalition, epoch.situation.uploaded)
    return any(view.decide(epoch.total([user])).withheld == 1 for user in honest)


def described(epoch: Epoch, coalition: Users) -> dict[str, Any]:
    """Return a case as data."""
    holders = enumerate(epoch.situation.holders)
    happened = [f"user {user} at position {position}: {fate}" for user, (position, fate) in holders]
    more = epoch.view(coalition).decide(*epoch.allowed(coalition)).functionals
    beyond = [text.replace("[0]", "") for text in more]
    return {"users": happened, "colluding": [f"user {user}" for user in coalition], "learned beyond the sum": beyond}


def timeouts() -> Iterator[tuple[Epoch, Users]]:
    """Yield the epochs of two and three positions with one timeout at least, and each coalition, the smallest first."""
    for K in (2, 3):
        found = {one.holders: one for fate in (GONE, LATE) for one in every_repeat(K, [(), (fate,)])}
        for situation in sorted(found.values(), key=lambda one: len(one.holders)):
            epoch = Epoch(RING, PAPER, situation)
            for coalition in every_coalition(situation.users):
                if len(situation.users) > K and len(epoch.contributors(coalition)) > 1:
                    yield epoch, coalition


def without_timeouts(report: Report, theorem: Tally, single: Tally) -> tuple[Tally, Tally]:
    """Decide (a): every prefix of K = 2 to 7 positions, every coalition; return the tallies of eq. (7) and (8)."""
    identity, prefixes = Tally(), Tally()
    for K in SIZES:
        for k in range(K + 1):
            epoch = Epoch(RING, PAPER, full(K).until(k))
            if k:
                identity.add({"K": K, "k": k}, tied(epoch, k, K))
                report.check(identity.verdict == "confirmed", f"these masks are left: K = {K}, k = {k}")
            for coalition in every_coalition(range(K)):
                honest = epoch.honest(coalition, range(k))
                to_come = bool(epoch.honest(coalition, range(k, K)))
                sums_learned = () if to_come or not honest else (epoch.total(honest),)
                case = {"K": K, "k": k, "colluding": list(coalition)}
                held = exactly(epoch.view(coalition), sums_learned)
                prefixes.add(case, held)
                theorem.add(case, held)
                if k == K and len(coalition) < K:
                    single.add(case, revealed(epoch, coalition) == (len(coalition) == K - 1))
    report.check(single.verdict == prefixes.verdict == "confirmed", f"(a): {single.against or prefixes.against}")
    report.say(f"nobody times out: {prefixes.held} of {prefixes.cases} views tell nothing, or the sum at the end")
    return identity, prefixes


def tied(epoch: Epoch, k: int, K: int) -> bool:
    """Return whether the first k masked updates add up to their updates and their masks for later positions."""
    left = [epoch.mask(i, j) for i in range(k) for j in range(k, K)]
    got, wanted = witness(epoch, dict.fromkeys(range(k), 1)), join([epoch.total(range(k)), *left])
    joined = join([got, wanted]).matrix
    return np.array_equal(joined[0], RING.sum(joined[1:]))


def opened(epoch: Epoch, coalition: Users) -> bool:
    """Return whether something is learned while an honest user is to come whose update will be accepted."""
    situation = epoch.situation
    for come in range(1, len(situation.holders)):
        if any(user >= come and user not in coalition for user in situation.accepted):
            view = Epoch(RING, PAPER, situation.until(come)).view(tuple(user for user in coalition if user < come))
            if not exactly(view, ()):
                return True
    return False


def with_timeouts(report: Report, theorem: Tally, single: Tally, prefixes: Tally) -> Tally:
    """Decide what timeouts break in buffers of two and three; return the tally of the rule itself."""
    again = Tally()
    for epoch, coalition in timeouts():
        held, case = epoch.decide(coalition).private, described(epoch, coalition)
        again.add(case, held)
        theorem.add(case, held, condition=False)
        prefixes.add(case, not opened(epoch, coalition), condition=False)
        if len(coalition) <= epoch.situation.positions - 2:
            single.add(case, not revealed(epoch, coalition), condition=False)
    report.say(f"a timeout or more at K = 2 and 3: no more than the sum in {again.held} of {again.cases} views; first:")
    report.say(f"  {again.against}")
    return again


def last_key(report: Report) -> Tally:
    """Decide (c): colluding users time out, every set of them at K = 2 to 6; return the tally, exact or not."""
    tally = Tally()
    for K in range(2, 7):
        for situation in every_repeat(K, [(), (GONE,)]):
            epoch = Epoch(RING, PAPER, situation)
            dropped = tuple(user for user in situation.users if user not in situation.accepted)
            for size in range(K - 1):
                for members in combinations(situation.accepted, size):
                    coalition = (*dropped, *members)
                    last = situation.at(epoch.contributors(coalition)[-1])
                    secure = last not in {situation.at(user) for user in dropped}
                    case = {"K": K, "timed out": [situation.at(user) for user in dropped]}
                    tally.add(case | {"colluding": list(coalition)}, epoch.decide(coalition).private == secure)
    report.check(tally.verdict == "confirmed", f"(c): {tally.against}")
    report.say(f"colluding users time out: the last honest position decides in {tally.held} of {tally.cases} views")
    return tally


def late(report: Report) -> tuple[Tally, int]:
    """Decide (b): late uploads and holders that left, up to one for each position, and at K = 2 up to two."""
    tally, alone = Tally(), 0
    more = [(), (LATE,), (GONE,), (LATE, LATE), (LATE, GONE)]
    for situation in (*every_repeat(2, more), *every_repeat(3)):
        epoch = Epoch(RING, PAPER, situation)
        last = [fate for position, fate in situation.holders if position == situation.positions - 1]
        alone += not epoch.decide(()).private
        report.check(
            epoch.decide(()).private == (LATE not in last), f"what the server learns alone: {situation.holders}"
        )
        for coalition in every_coalition(situation.users):
            sums_learned = learned(epoch, coalition)
            tally.add(
                {"users": list(map(list, situation.holders)), "colluding": list(coalition)},
                exactly(epoch.view(coalition), sums_learned),
            )
    report.check(tally.verdict == "confirmed", f"(b): {tally.against}")
    report.say(f"late uploads: exactly what (b) says is learned in {tally.held} of {tally.cases} views")
    report.say(f"  the server alone learns a difference in {alone} of them")
    return tally, alone


def sums_learned(situation: Situation, coalition: Users) -> list[Sum]:
    """Return what (b) says is learned, as combinations of updates."""
    held = {situation.at(user) for user in coalition}
    last = max((position for position in range(situation.positions) if position not in held), default=-1)
    honest = [user for user in situation.uploaded if user not in coalition]
    bare: list[Sum] = [{user: 1} for user in honest if situation.at(user) > last]
    tied = [user for user in situation.accepted if user not in coalition and situation.at(user) <= last]
    missed = [user for user in honest if situation.at(user) == last and user not in tied]
    return [*bare, *({user: 1, tied[-1]: -1} for user in missed), *([dict.fromkeys(tied, 1)] if tied else [])]


def by_counting(report: Report) -> None:
    """Decide small buffers again: every update and every mask is tried."""
    pairs = all(pairs_left(k, K) for K in SIZES for k in range(1, K + 1))
    report.agree("BASA-EQ7", "enumeration", pairs, "the pairs that are left are those of i < k <= j < K")
    prefixes = all(counted_prefix(K, k, c) for K in (2, 3) for k in range(K + 1) for c in every_coalition(range(K)))
    report.agree("BASA-EQ8", "enumeration", prefixes, "the same of K = 2 and 3, modulo 3")
    late = all(
        counted(R, PAPER, situation, coalition, sums_learned(situation, coalition)) == (True, True)
        for K, R in ((2, 3), (3, 2))
        for situation in every_repeat(K)
        for coalition in every_coalition(situation.users)
    )
    report.agree("UNI-BASALATE", "enumeration", late, "the same of K = 2, modulo 3, and of K = 3, modulo 2")


def timeouts_by_counting(report: Report) -> None:
    """Decide the epochs with timeouts again, modulo 2."""
    cases = list(timeouts())
    same = all(hidden(epoch, coalition) == epoch.decide(coalition).private for epoch, coalition in cases)
    report.agree(("BASA-THM31", "BASA-TO"), "enumeration", same, "more than the sum in the same views")
    few = [(epoch, coalition) for epoch, coalition in cases if len(coalition) <= epoch.situation.positions - 2]
    alone = all(shown(epoch, coalition) == revealed(epoch, coalition) for epoch, coalition in few)
    report.agree("BASA-K2", "enumeration", alone, "an honest update in the same views")
    left = [(epoch, coalition) for epoch, coalition in cases if all_left(epoch.situation, coalition)]
    keys = all(hidden(epoch, coalition) == last_is_secret(epoch, coalition) for epoch, coalition in left)
    report.agree("UNI-BASA", "enumeration", keys, "the last honest position decides, for K = 2 and 3")
    report.say(f"by counting, modulo 2: the same in {len(cases)} views with timeouts")


def all_left(situation: Situation, coalition: Users) -> bool:
    """Return whether those who timed out are colluding users that uploaded nothing."""
    out = {*situation.users} - {*situation.accepted}
    return situation.uploaded == situation.accepted and out <= {*coalition}


def counted_prefix(K: int, k: int, coalition: Users) -> bool:
    """Return whether the first k uploads tell nothing, or the sum when no honest user is to come."""
    honest = [user for user in range(k) if user not in coalition]
    over = {*range(k, K)} <= {*coalition}
    sums: list[Sum] = [dict.fromkeys(honest, 1)] if honest and over else []
    return counted(3, PAPER, full(K).until(k), coalition, sums) == (True, True)


def hidden(epoch: Epoch, coalition: Users) -> bool:
    """Return whether the view tells no more than the sum over the honest accepted updates."""
    honest = [user for user in epoch.situation.accepted if user not in coalition]
    return counted(2, PAPER, epoch.situation, coalition, [dict.fromkeys(honest, 1)]).no_more


def shown(epoch: Epoch, coalition: Users) -> bool:
    """Return whether the view tells an honest update."""
    honest = [user for user in epoch.situation.uploaded if user not in coalition]
    return any(counted(2, PAPER, epoch.situation, coalition, [{user: 1}]).no_less for user in honest)


def last_is_secret(epoch: Epoch, coalition: Users) -> bool:
    """Return whether no colluding user that left held the key of the last honest position."""
    situation = epoch.situation
    last = max(situation.at(user) for user in situation.accepted if user not in coalition)
    return last not in {situation.at(user) for user in coalition}


def pairs_left(k: int, K: int) -> bool:
    """Return whether adding s_ij at i, and taking it away at j, for i < j < K and the first k users, leaves eq. (7)."""
    count = Counter[tuple[int, int]]()
    for user in range(k):
        count.update((user, j) for j in range(user + 1, K))
        count.subtract((i, user) for i in range(user))
    left = {pair: times for pair, times in count.items() if times}
    return left == dict.fromkeys(product(range(k), range(k, K)), 1)


def prove(report: Report) -> dict[str, Finding]:
    """Decide all views."""
    theorem, single = Tally(), Tally()
    identity, prefixes = without_timeouts(report, theorem, single)
    views = {"views without timeouts": prefixes.cases}
    again = with_timeouts(report, theorem, single, prefixes)
    by_counting(report)
    timeouts_by_counting(report)
    (lates, alone), key = late(report), last_key(report)
    held = "it held without timeouts, and not with them"
    numbers = {"views": lates.cases, "the server alone": alone}
    return {
        "BASA-EQ7": Finding(identity.verdict, "these masks are left", identity.against),
        "BASA-EQ8": Finding(prefixes.verdict, held, prefixes.against, views),
        "BASA-THM31": Finding(theorem.verdict, held, theorem.against, views),
        "BASA-K2": Finding(single.verdict, held, single.against),
        "BASA-TO": Finding(again.verdict, "one user that left is enough", again.against),
        "UNI-BASA": Finding(key.verdict, "as stated", key.against, {"views": key.cases}),
        "UNI-BASALATE": Finding(lates.verdict, "as stated", lates.against, numbers),
    }
