"""Where the loops of BASA's algorithms 1 and 3 go on, and what they do with a user that timed out.

Statement, for a buffer of K positions from 0, with all masks as they are meant.
(a) Algorithm 1 puts out the sum when k = K and goes on with its loop, and never sets k, the sum and the boxes back.
Read so, it puts out the first buffer and no other, however many users come. It puts out every buffer when the loop ends
with the output and is started anew, or when it sets back what algorithm 3 does (lines 23 to 27).
(b) On a timeout both algorithms abort the connection, close the `if`, and go on with the line that takes the upload of
this user, and with k <- k + 1. Read so, a position counts that has no upload. Then masks are left in the sum exactly
when some position without an upload comes after one with an upload; else the sum is right, but over fewer than K
updates, and when only the last one is there it is this update. If the pass of the loop ends with the abort, the
position is given again, and the sum is that of K updates, for each timeout.

Idea. Both loops are run, with masks counted pair by pair. For all K: the mask of a pair is added by its first position
and taken away by its second one, if that one uploads. (a) for K = 1 to 12 and three buffers, (b) for K = 1 to 8 and
every set of positions that time out once, and again with the masking function that runs, modulo 16.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import combinations

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks

CLAIMS = {
    "BASA-ALG1L": "readings",
    "BASA-ABORT": "readings",
}
RING = Ring(16)
Users = tuple[int, ...]
Uploads = list[tuple[int, Collection[int]]]


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b)."""
    return {"BASA-ALG1L": endless(report), "BASA-ABORT": aborted(report)}


def put_out(K: int, users: int, *, ends: bool, back: bool) -> list[Users]:
    """Return the users in each sum that the loop puts out; with `ends` it is started anew after each."""
    found, k, inside = list[Users](), 0, list[int]()
    for user in range(users):
        inside.append(user)
        k += 1
        if k == K:
            found.append(tuple(inside))
            if ends or back:
                k, inside = 0, []
    return found


def endless(report: Report) -> Finding:
    """Decide (a)."""
    readings = {"goes on": Tally(), "ends": Tally(), "sets back": Tally()}
    for K in range(1, 13):
        wanted = [tuple(range(first, first + K)) for first in range(0, 3 * K, K)]
        for name, tally in readings.items():
            got = put_out(K, 3 * K, ends=name == "ends", back=name == "sets back")
            tally.add({"K": K, "users": 3 * K, "sums": len(got)}, got == wanted)
        once = put_out(K, 3 * K, ends=False, back=False)
        report.check(once == wanted[:1], f"(a) as printed, only the first buffer is put out: K = {K}")
    for name, tally in readings.items():
        report.say(f"the loop {name}: all buffers are put out for {tally.held} of {tally.cases} K")
    report.check(readings["ends"].verdict == readings["sets back"].verdict == "confirmed", "(a) the two that serve")
    found = "with its end, or when k is set back, each buffer; as printed the first one"
    return Finding(by_reading(readings.values()), found, readings["goes on"].against)


def counted(K: int, out: Collection[int]) -> tuple[Uploads, bool]:
    """Let positions count that time out: return the uploads, with the boxes that each user got."""
    there = [k for k in range(K) if k not in out]
    return [(k, [i for i in there if i < k]) for k in there], not out


def given_again(K: int, out: Collection[int]) -> tuple[Uploads, bool]:
    """Give each position that times out to the next user."""
    return [(k, range(k)) for k in range(K)], True


def left(K: int, uploads: Uploads) -> dict[tuple[int, int], int]:
    """Return the masks that are left in the sum, and how often."""
    count = Counter[tuple[int, int]]()
    for k, before in uploads:
        count.update((k, j) for j in range(k + 1, K))
        count.subtract((i, k) for i in before)
    return {pair: times for pair, times in count.items() if times}


def cancelled(K: int, uploads: Uploads) -> bool:
    """Return whether all masks cancel that the reference adds and takes away, as coefficients."""
    pairs = list(combinations(range(K), 2))
    units = dict(zip(pairs, np.eye(len(pairs), dtype=np.uint64), strict=True))
    rows = [
        basa_cores.add_masks(
            RING,
            RING.zeros(len(pairs)),
            Masks([units[i, k] for i in before], [units[k, j] for j in range(k + 1, K)]),
        )
        for k, before in uploads
    ]
    return not RING.sum(np.stack(rows)).any()


def every_timeout(K: int) -> Iterator[Users]:
    """Yield every set of positions that time out, the smallest first; not all of them."""
    for size in range(K):
        yield from combinations(range(K), size)


def aborted(report: Report) -> Finding:
    """Decide (b)."""
    ways: dict[str, Callable[[int, Collection[int]], tuple[Uploads, bool]]]
    ways = {"goes on": counted, "ends": given_again}
    readings, alone = {name: Tally() for name in ways}, 0
    for K in range(1, 9):
        for out in every_timeout(K):
            for name, way in ways.items():
                uploads, whole = way(K, out)
                masks = left(K, uploads)
                case = {"K": K, "timed out": list(out), "updates": len(uploads)}
                case |= {"masks left": [f"s_{i}{j}" for i, j in masks]}
                readings[name].add(case, whole and not masks)
                report.agree(
                    "BASA-ABORT", "matrices", cancelled(K, uploads) == (not masks), f"as the reference masks: {case}"
                )
            uploads, _ = counted(K, out)
            first = {*out} == {*range(len(out))}
            report.check((not left(K, uploads)) == first, f"(b) masks are left: K = {K}, {out}")
            alone += first and bool(out) and len(uploads) == 1
    for name, tally in readings.items():
        report.say(f"after an abort the pass {name}: the sum of K updates in {tally.held} of {tally.cases} cases")
    report.check(alone == len(range(2, 9)), "(b) for each K from 2 on, one case shows the last update")
    numbers = {name: f"{tally.held} of {tally.cases}" for name, tally in readings.items()}
    found = "right when the pass ends with the abort"
    return Finding(by_reading(readings.values()), found, readings["goes on"].against, numbers)
