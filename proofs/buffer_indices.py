"""The masks of BASA cancel when each user masks to all positions after its own, and unmasks from all before it.

Statement. n users hold the positions f, f + 1, ... of a buffer of size K. The user at k adds the masks s_kj to some j
and subtracts the masks s_ik from some i; the server adds up the n uploads.
(a) A reading of equation (5) says where i starts, 0 or 1, whether i may be k, whether j may be k, and whether j may be
    K; and f is 0 or 1, and n is K - 1, K or K + 1. For K >= 2 the masks cancel exactly when i starts at f, the largest
    j is the last position, and i may be k exactly when j may be k.
(b) Equation (5) as printed, 0 < i < k < j < K, has two readings with n = K users, f = 0 and f = 1, and cancels in
    neither, whatever K >= 2: f = 0 leaves s_01 + ... + s_0(K-1), and f = 1 leaves -s_1K - ... - s_(K-1)K. It cancels
    for f = 1 and n = K - 1, whose indices fit the print; but algorithm 1 counts from 0 and ends with K uploads.
(c) Algorithm 2, `for i = 1 to k` and `for j = k + 1 to K`, opens a box in the first loop, seals one in the second, and
    sends the c_kj with k < j < K. Each `to` may include its end or not. With n = K users no reading cancels, whatever
    K >= 2: masks are left, or a user has no box to open. With n = K - 1 users one does: f = 1, both without the end.
    Two changes of what is printed let K users cancel. If c_kK is sent as well: for f = 1, the first `to` without its
    end, the second with it. If users skip boxes that are not there: for f = 1, the second `to` without its end; but
    then the last user sends its update bare.
(d) The rule of the text, all before and all after, cancels for K = 1 to 12.
(e) Equation (7), "the server has accepted k updates", sums over i <= k and has the masks s_ij with k < j < K. It holds
for all k < K with positions from 0 and the masks of (d), and i <= k are k + 1 updates then; and with positions from 1
and the masks of (5) as printed, where i <= k are k updates, but no K of them cancel. It fails with positions from 0 and
the masks as printed, and with positions from 1 and all masks, where those for position K are missing.

Idea. The masking function of the reference runs on coefficients, so that a residue is a sum of symbols, and holds for
all masks. Each reading is a choice of the masks that the function is given. All K up to 12.

For all K: s_ij is added when i is a position and j in its second range, and taken away when j is a position and i in
its first range. So all cancel exactly when these are the same pairs, which is how (a) is counted again. The messages
of algorithms 1 and 2 are passed on as well, with boxes that are there or not, and masks counted pair by pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np

from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.privacy.verdict import readable
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks, Parameters

CLAIMS = {
    "BASA-EQ5": "readings",
    "BASA-ALG2": "readings",
    "BASA-EQ7I": "readings",
}
LAST_K, NOTHING = 12, "0"
SIZES = range(1, LAST_K + 1)
PAIRS = list(combinations_with_replacement(range(LAST_K + 2), 2))
NAMES = [f"s_{i},{j}" if j > 9 else f"s_{i}{j}" for i, j in PAIRS]
UNITS = dict(zip(PAIRS, np.eye(len(PAIRS), dtype=np.uint64), strict=True))
P = Parameters(
    R=DEFAULT_PRIME, N=LAST_K, T=1, d=len(PAIRS), K=LAST_K, S=0, c_l=1, c_g=1, tau_max=0,
    staleness=Staleness.constant(), timeouts="void",
)  # fmt: skip
Loop = tuple[int, ...]


@cache
def masked(k: int, before: Loop, after: Loop) -> UintArray:
    """Return what the reference sends at position k for the update 0, as coefficients of the masks."""
    masks = Masks(before=[UNITS[i, k] for i in before], after=[UNITS[k, j] for j in after])
    return basa_cores.mask_update(P, P.ring.zeros(P.d), 1, masks)


def residue(positions: range, before: Callable[[int], Iterable[int]], after: Callable[[int], Iterable[int]]) -> str:
    """Return what is left of the masks in the sum of the uploads, "0" when they cancel."""
    rows = [masked(k, tuple(before(k)), tuple(after(k))) for k in positions]
    return readable(P.ring.sum(np.stack(rows)), NAMES, P.R) if rows else NOTHING


class Reading(NamedTuple):
    """Where the indices of equation (5) start and end; `more` is n - K."""

    f: int
    more: int
    low: int
    i_to_k: bool
    j_from_k: bool
    j_to_end: bool

    def positions(self, K: int) -> range:
        """Return the positions that are held."""
        return range(self.f, self.f + K + self.more)

    def left(self, K: int) -> str:
        """Return the masks that are left."""
        return residue(
            self.positions(K),
            lambda k: range(self.low, k + self.i_to_k),
            lambda k: range(k + 1 - self.j_from_k, K + self.j_to_end),
        )

    def matched(self, K: int) -> bool:
        """Whether the condition of (a) holds."""
        last, largest = self.f + K + self.more - 1, K - 1 + self.j_to_end
        return self.low == self.f and largest == last and self.i_to_k == self.j_from_k

    def __str__(self) -> str:
        i = f"{self.low} <= i {'<=' if self.i_to_k else '<'} k"
        j = f"k {'<=' if self.j_from_k else '<'} j {'<=' if self.j_to_end else '<'} K"
        return f"{i}, {j}, K{f'{self.more:+}' if self.more else ''} users, positions from {self.f}"

    @property
    def printed(self) -> bool:
        """Whether it is 0 < i < k < j < K."""
        return self.low == 1 and not (self.i_to_k or self.j_from_k or self.j_to_end)


BOTH = (False, True)
READINGS = [Reading(*choice) for choice in product((0, 1), (-1, 0, 1), (0, 1), BOTH, BOTH, BOTH)]


def after_all(K: int) -> Callable[[int], range]:
    """Return the rule of the text: all positions after k."""
    return lambda k: range(k + 1, K)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b) with all readings of equation (5), (c) with those of algorithm 2, and (d)."""
    for K in SIZES:
        report.check(residue(range(K), range, after_all(K)) == NOTHING, f"(d) K = {K}")
    report.say(f"all before and all after: the masks cancel for K = 1 to {LAST_K}")
    return {"BASA-EQ5": equation(report), "BASA-ALG2": algorithm(report), "BASA-EQ7I": prefix(report)}


def equation(report: Report) -> Finding:
    """Decide (a) and (b)."""
    tally = Tally()
    for reading, K in product(READINGS, SIZES[1:]):
        left = reading.left(K)
        report.check((left == NOTHING) == reading.matched(K), f"(a) {reading}, K = {K}: {left}")
        if reading.printed and not reading.more:
            tally.add({"K": K, "first position": reading.f, "left": left}, left == NOTHING)
            report.check(left == expected(reading.f, K), f"(b) K = {K}, positions from {reading.f}: {left}")
    same = all((one.left(K) == NOTHING) == same_pairs(one, K) for one, K in product(READINGS, SIZES[1:]))
    report.agree("BASA-EQ5", "enumeration", same, "pair by pair, the same readings cancel")
    cancel = [reading for reading in READINGS if all(reading.left(K) == NOTHING for K in SIZES[1:])]
    fit = [reading for reading in cancel if reading.printed]
    report.check(fit == [Reading(1, -1, 1, False, False, False)], "(b) as printed, only K - 1 users cancel")
    for reading in cancel:
        report.say(f"equation (5) cancels: {reading}")
    numbers = {"readings": len(READINGS), "cancel": len(cancel), "of K users": sum(not r.more for r in cancel)}
    numbers |= {"as printed, of K users": sum(r.printed and not r.more for r in cancel)}
    report.say(f"equation (5): {numbers}")
    return Finding(tally.verdict, "the first position is not unmasked, or the last not masked", tally.against, numbers)


def same_pairs(reading: Reading, K: int) -> bool:
    """Return whether the pairs whose mask is added are those whose mask is taken away."""
    held, last = reading.positions(K), K if reading.j_to_end else K - 1
    pairs = list(combinations_with_replacement(range(K + 2), 2))
    added = {(i, j) for i, j in pairs if i in held and j <= last and (i < j or reading.j_from_k)}
    taken = {(i, j) for i, j in pairs if j in held and i >= reading.low and (i < j or reading.i_to_k)}
    return added == taken


def expected(f: int, K: int) -> str:
    """Return what (b) says is left."""
    rows = [UNITS[0, j] for j in range(1, K)] if f == 0 else [UNITS[i, K] for i in range(1, K)]
    total = P.ring.sum(np.stack(rows))
    return readable(total if f == 0 else P.ring.subtract(P.ring.zeros(P.d), total), NAMES, P.R)


class Loops(NamedTuple):
    """How algorithm 2 is read: whether each `to` includes its end, and what becomes of boxes that were not sent."""

    f: int
    more: int
    i_to_k: bool
    j_to_end: bool
    all_sent: bool
    skip: bool

    def __str__(self) -> str:
        return f"i {'to' if self.i_to_k else 'below'} k, j {'to' if self.j_to_end else 'below'} K"

    def after(self, K: int, k: int) -> range:
        """Return the positions that the second loop masks to."""
        return range(k + 1, K + self.j_to_end)

    def opened(self, K: int, k: int) -> tuple[Loop, Loop]:
        """Return the senders of the boxes that the first loop opens at k, and those whose boxes are not there."""
        senders = range(self.f, k)
        there = {i for i in senders if k in self.after(K, i) and (self.all_sent or k < K)}
        wanted = range(1, k + self.i_to_k)
        return tuple(i for i in wanted if i in there), tuple(i for i in wanted if i not in there)

    def left(self, K: int) -> str:
        """Return the masks that are left, or the first box that a user lacks."""
        positions = range(self.f, self.f + K + self.more)
        lacking = [f"no box c_{i},{k}" for k in positions for i in self.opened(K, k)[1]]
        if lacking and not self.skip:
            return lacking[0]
        return residue(positions, lambda k: self.opened(K, k)[0], lambda k: self.after(K, k))

    def bare(self, K: int) -> list[int]:
        """Return the positions whose uploads have no mask."""
        positions = range(self.f, self.f + K + self.more)
        return [k for k in positions if not masked(k, self.opened(K, k)[0], tuple(self.after(K, k))).any()]


def algorithm(report: Report) -> Finding:
    """Decide (c): for each way to read the loops the masks cancel for all K from 2 on, or for none."""
    tally, cancel = Tally(), []
    for loops in (Loops(*choice) for choice in product((0, 1), (-1, 0), BOTH, BOTH, BOTH, BOTH)):
        lefts = {K: loops.left(K) for K in SIZES[1:]}
        report.check(len({left == NOTHING for left in lefts.values()}) == 1, f"(c) alike for all K: {loops}")
        cancel += [loops] if lefts[LAST_K] == NOTHING else []
        same = all((left == NOTHING) == by_messages(loops, K) for K, left in lefts.items())
        report.agree("BASA-ALG2", "enumeration", same, f"passing messages on: {loops}")
        if not (loops.all_sent or loops.more or loops.skip):
            report.say(f"algorithm 2, K = 3, positions from {loops.f}, {loops}: {lefts[3]}")
            for K, left in lefts.items():
                case = {"K": K, "first position": loops.f, "up to i = k": loops.i_to_k, "up to j = K": loops.j_to_end}
                tally.add(case | {"left": left}, left == NOTHING)
    of_K = [loops for loops in cancel if not loops.more]
    whole = [loops for loops in of_K if not loops.skip]
    report.check(whole == [Loops(1, 0, False, True, True, False)], "(c) one reading, with a box that is not sent")
    skipped = [loops for loops in of_K if not loops.all_sent]
    last_bare = all(K in loops.bare(K) for loops in skipped for K in SIZES[1:])
    report.check(
        last_bare and {loops[:1] + loops[3:4] for loops in skipped} == {(1, False)}, "(c) the last update is bare"
    )
    fewer = [loops for loops in cancel if loops.more and not (loops.all_sent or loops.skip)]
    report.check(fewer == [Loops(1, -1, False, False, False, False)], "(c) K - 1 users")
    for loops in (*whole, *skipped):
        how = "boxes that are not there are skipped, the last update bare" if loops.skip else "c_kK sent as well"
        report.say(f"algorithm 2 cancels: {how}, positions from {loops.f}, {loops}")
    numbers = {"readings": tally.cases // len(SIZES[1:]), "cancel": tally.held, "with c_kK sent": len(whole)}
    numbers |= {"with boxes skipped and the last update bare": len(skipped)}
    return Finding(tally.verdict, "masks are left, or a box to open was not sent", tally.against, numbers)


def by_messages(loops: Loops, K: int) -> bool:
    """Run algorithms 1 and 2, message by message; return whether all boxes are there and all masks cancel."""
    boxes, count = {j: set[int]() for j in range(K + 2)}, Counter[tuple[int, int]]()
    for k in range(loops.f, loops.f + K + loops.more):
        for i in range(1, k + loops.i_to_k):
            if i not in boxes[k] and not loops.skip:
                return False
            count[i, k] -= i in boxes[k]
        for j in range(k + 1, K + loops.j_to_end):
            count[k, j] += 1
            boxes[j] |= {k} if loops.all_sent or j < K else set()
    return not any(count.values())


def prefix(report: Report) -> Finding:
    """Decide (e)."""
    readings, against = {}, None
    for f, printed in product((0, 1), BOTH):
        tally = Tally()
        for K, k in ((size, k) for size in SIZES[1:] for k in range(f, size)):
            left = beyond(f, printed, K, k)
            same = (left == NOTHING) == pairs_beyond(f, printed, K, k)
            report.agree("BASA-EQ7I", "enumeration", same, f"pair by pair: positions from {f}, K = {K}, k = {k}")
            tally.add({"K": K, "k": k, "first position": f, "left": left}, left == NOTHING)
        name = f"positions from {f}, masks {'as printed' if printed else 'of all'}"
        readings[name], against = tally.verdict == "confirmed", against or tally.against
        report.say(f"equation (7), {name}: holds in {tally.held} of {tally.cases} cases")
    wanted = {"positions from 0, masks of all", "positions from 1, masks as printed"}
    report.check({name for name, holds in readings.items() if holds} == wanted, "(e) two of the four readings")
    verdict = by_reading(readings.values())
    return Finding(
        verdict, "it holds of k + 1 updates, or of fewer than K", against, {"readings": 4, "hold": len(wanted)}
    )


def beyond(f: int, printed: bool, K: int, k: int) -> str:
    """Return what the masks of the positions f to k add up to, less those that equation (7) has."""
    first, end = (1, K) if printed else (f, K + f)
    rows = [masked(i, tuple(range(first, i)), tuple(range(i + 1, end))) for i in range(f, k + 1)]
    named = [UNITS[i, j] for i in range(f, k + 1) for j in range(k + 1, K)]
    shown = P.ring.sum(np.stack(named)) if named else P.ring.zeros(P.d)
    return readable(P.ring.subtract(P.ring.sum(np.stack(rows)), shown), NAMES, P.R)


def pairs_beyond(f: int, printed: bool, K: int, k: int) -> bool:
    """Return whether the pairs that the positions f to k leave are those of equation (7)."""
    low, end = (1, K - 1) if printed else (f, f + K - 1)
    pairs = list(combinations_with_replacement(range(K + 2), 2))
    added = {(i, j) for i, j in pairs if f <= i <= k and i < j <= end}
    taken = {(i, j) for i, j in pairs if f <= j <= k and low <= i < j}
    named = {(i, j) for i, j in pairs if f <= i <= k < j < K}
    return added - taken == named and taken <= added
