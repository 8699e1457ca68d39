"""What BASA's boxes have to hide, and why keys of one buffer must not open those of the next.

Statement, for K positions, each with one update, and masks as in the paper.
(a) Let the server see some of the seeds s_ij. Take the graph on the positions whose edges are the pairs with an unseen
seed. Then the server learns exactly the sums of the updates over its connected components. So with all seeds in clear
each update is told, and with all of them hidden the sum alone.
(b) A user keeps the key of its position when the buffer is full, and later colludes. If the attributes are made anew,
nothing is learned of the next buffer but its sum, and so of both buffers two sums. If they are the same, so that the
key opens boxes of both buffers, more is learned exactly when a colluder of one of them held the position of the last
honest user of the other, with two honest users in this one at least.

Idea. (a) Along an edge two updates share a mask that nobody knows, and that no third one has: what is learned has one
coefficient for both. Within a component all unknown masks cancel. That holds for all K; every graph on 2 to 5 positions
is decided with the masking function that runs, modulo 16, and those on 2 and 3 again by trying every mask, modulo 3.
(b) An old key for a position is what a user has that got the key in this buffer and left: basa_timeouts.py says of
these what is learned. Two buffers of K = 2 to 4 are decided together, with all coalitions, and the second one of K = 2
and 3 again by trying every update and mask, modulo 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.basa import (
    ACCEPTED,
    GONE,
    PAPER,
    Epoch,
    Holder,
    Situation,
    Users,
    every_coalition,
    exactly,
    together,
)
from secagg_spec.privacy.basa_counting import Sum, counted
from secagg_spec.privacy.views import Space, Token

CLAIMS = {
    "BASA-SEAL": "matrices",
    "BASA-REGEN": "matrices",
}
RING = Ring(16)
Pair = tuple[int, int]


class OldAttributes(Epoch):
    """A buffer whose keys are those of all others."""

    def pair_key(self, position: int) -> Token:
        """Return the key of a position, the same in each buffer."""
        return ("pair key", 0, position)


def full(K: int) -> Situation:
    """Return the epoch in which nobody times out."""
    return Situation(K, tuple(Holder(at, ACCEPTED) for at in range(K)))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) for all graphs, and (b) for all coalitions."""
    return {"BASA-SEAL": in_clear(report), "BASA-REGEN": kept(report)}


def in_clear(report: Report) -> Finding:
    """Decide (a)."""
    tally = Tally()
    for K in range(2, 6):
        pairs = list(combinations(range(K), 2))
        for seen in chain.from_iterable(combinations(pairs, size) for size in range(len(pairs) + 1)):
            parts = components(K, {*pairs} - {*seen})
            epoch = Epoch(RING, PAPER, full(K))
            view = epoch.view(())
            view.reveal(*(epoch.seed(i, j) for i, j in seen))
            tally.add({"K": K, "seen": list(seen)}, exactly(view, [epoch.total(part) for part in parts]))
            if K < 4:
                same = tried(K, seen) == {frozenset(part) for part in parts}
                report.agree("BASA-SEAL", "enumeration", same, f"K = {K}: modulo 3, seeds {list(seen)} in clear")
    report.say(f"seeds in clear: the sums over the components in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "every update, when all seeds are seen", tally.against, {"graphs": tally.cases})


def components(K: int, edges: set[Pair]) -> list[Users]:
    """Return the connected components of a graph."""
    label = list(range(K))
    for _ in range(K):
        for i, j in edges:
            label[i] = label[j] = min(label[i], label[j])
    return [tuple(at for at in range(K) if label[at] == first) for first in sorted(set(label))]


def tried(K: int, seen: Users | tuple[Pair, ...]) -> set[frozenset[int]]:
    """Return the smallest sets of positions whose uploads always add up to their updates, once seen masks are out."""
    pairs = list(combinations(range(K), 2))
    masks = np.indices((3,) * len(pairs)).reshape(len(pairs), -1)
    hidden = [row * (pair not in seen) for pair, row in zip(pairs, masks, strict=True)]
    uploads = [
        sum((int(k == i) - int(k == j)) * row for (i, j), row in zip(pairs, hidden, strict=True)) for k in range(K)
    ]
    sets = [set(users) for size in range(1, K + 1) for users in combinations(range(K), size)]
    clear = [users for users in sets if not np.mod(sum(uploads[k] for k in users), 3).any()]
    return {frozenset(users) for users in clear if not any(other < users for other in clear)}


def buffers(K: int) -> Iterator[tuple[Users, Users]]:
    """Yield the colluders of the first buffer, and those of the second, with two honest users in each."""
    for before, after in product(every_coalition(range(K)), every_coalition(range(K))):
        if max(len(before), len(after)) <= K - 2:
            yield before, after


def kept(report: Report) -> Finding:
    """Decide (b): users 0 to K - 1 fill the first buffer, and K to 2K - 1 the second."""
    anew, same = Tally(), Tally()
    for K in range(2, 5):
        for before, after in buffers(K):
            case = {"K": K, "colluding before": list(before), "colluding": [K + at for at in after]}
            anew.add(case, two_sums(Epoch, K, before, after))
            first, second = (max({*range(K)} - {*colluding}) for colluding in (before, after))
            safe = first not in after and second not in before
            same.add(case, two_sums(OldAttributes, K, before, after) == safe)
            if K < 4:
                alike = no_more(K, before, after) == (second not in before)
                report.agree("BASA-REGEN", "enumeration", alike, f"the old keys, by trying all: {case}")
    report.check(same.verdict == "confirmed", f"(b) with the same attributes: {same.against}")
    report.say(f"attributes made anew: two sums in {anew.held} of {anew.cases} views")
    report.say(f"the same attributes: the last honest position decides in {same.held} of {same.cases} views")
    return Finding(anew.verdict, "two sums", anew.against, {"views": anew.cases})


def two_sums(kind: type[Epoch], K: int, before: Users, after: Users) -> bool:
    """Return whether exactly the sums over the honest updates of the two buffers are learned."""
    space = Space(RING)
    people = (range(K), range(K, 2 * K))
    first, second = (kind(RING, PAPER, full(K), people=p, number=n, space=space) for n, p in enumerate(people))
    colluding = (*before, *(K + at for at in after))
    honest = [epoch.honest(colluding, range(K)) for epoch in (first, second)]
    sums = [epoch.total(users) for epoch, users in zip((first, second), honest, strict=True) if users]
    return exactly(together([first, second], colluding), sums)


def no_more(K: int, before: Users, after: Users) -> bool:
    """Return whether the second buffer tells no more than its sum to holders of old keys, who left as they came."""
    holders = [Holder(at, fate) for at in range(K) for fate in ((GONE,) if at in before else ()) + (ACCEPTED,)]
    accepted = [user for user, holder in enumerate(holders) if holder.fate == ACCEPTED]
    old = [user for user, holder in enumerate(holders) if holder.fate == GONE]
    honest: Sum = {accepted[at]: 1 for at in range(K) if at not in after}
    coalition = [*old, *(accepted[at] for at in after)]
    return counted(2, PAPER, Situation(K, tuple(holders)), coalition, [honest]).no_more
