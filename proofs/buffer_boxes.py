"""The server of BASA needs one set of boxes for each position, and a user sends the seeds that it made.

Statement. Algorithm 1 counts positions from 0 to K - 1; user k sends the boxes c_kj with k < j < K (line 14).
(a) Read without their ends, `for i = 0 to K` and `for j = k + 1 to K` make the sets C_0 to C_(K-1). Each is sent to one
    user, holds by then exactly the c_ik with 0 <= i < k, and no box is asked for that was not sent.
(b) Read with their ends they make a set C_K besides, which is sent to none of the K users, and ask for K boxes c_kK,
    which nobody sends.
(c) The text beside it has only the c_ik with 0 < i < k in C_k: it leaves out the K - 1 boxes of position 0.
(d) In the example of three users the second sends y_2 and s_23. It can't send s_13, as printed, for it has not seen
    s_13; and without s_23 the third user can't mask.

Idea. The server of algorithm 1 is run, and the example with each seed that the second user could send. (a) to (c) for
K = 1 to 12; for all K, since box c_kj is put into C_j, which is made exactly when j < K, or j <= K with the ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks

CLAIMS = {
    "BASA-ALG1": "readings",
    "BASA-FIG1B": "enumeration",
}
SIZES = range(1, 13)
RING = Ring(16)
Box = tuple[int, int]


class Run(NamedTuple):
    """What became of the boxes: the sets that were made, those that were sent, and the boxes that nobody sent."""

    made: list[int]
    sent: dict[int, set[Box]]
    lacking: list[Box]


def server(K: int, with_end: bool) -> Run:
    """Run algorithm 1 for K uploads."""
    sets: dict[int, set[Box]] = {i: set() for i in range(K + with_end)}
    sent, lacking = {}, []
    for k in range(K):
        sent[k] = set(sets[k])
        received = {(k, j) for j in range(k + 1, K)}
        for j in range(k + 1, K + with_end):
            sets[j] |= {(k, j)} & received
            lacking += [(k, j)] if (k, j) not in received else []
    return Run(list(sets), sent, lacking)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c) by running the server, and (d) by trying each seed."""
    return {"BASA-ALG1": loops(report), "BASA-FIG1B": example(report)}


def loops(report: Report) -> Finding:
    """Decide (a), (b) and (c)."""
    readings = {False: Tally(), True: Tally()}
    for K in SIZES:
        for with_end, tally in readings.items():
            run = server(K, with_end)
            unread = [i for i in run.made if i not in run.sent]
            case = {"K": K, "sets that nobody reads": unread, "boxes that nobody sends": len(run.lacking)}
            tally.add(case, not unread and not run.lacking)
            whole = {k: {(i, k) for i in range(k)} for k in range(K)}
            report.agree("BASA-ALG1", "arithmetic", run.sent == whole, f"(a) C_k has all boxes before k: K = {K}")
            left_out = sum((0, k) in boxes for k, boxes in run.sent.items())
            report.check(left_out == K - 1, f"(c) 0 < i < k leaves out a box for each later position: K = {K}")
        with_ends = server(K, True)
        report.check(set(with_ends.made) - set(with_ends.sent) == {K}, f"(b) the set C_K has no reader: K = {K}")
        report.check(with_ends.lacking == [(k, K) for k in range(K)], f"(b) the boxes c_kK: K = {K}")
    for with_end, tally in readings.items():
        report.say(f"loops {'with' if with_end else 'without'} their ends: right for {tally.held} of {tally.cases} K")
    numbers = {"K without the ends": readings[False].held, "K with the ends": readings[True].held}
    return Finding(by_reading(readings.values()), "right when the loops end before K", readings[True].against, numbers)


def left(received: set[str]) -> UintArray:
    """Return the masks in the sum of three users, s_12, s_13 and s_23, when the third one received some seeds."""
    units = dict(zip(("s_12", "s_13", "s_23"), np.eye(3, dtype=np.uint64), strict=True))
    ways = (("", "12 13"), ("12", "23"), (" ".join(s[2:] for s in sorted(received & {"s_13", "s_23"})), ""))
    both = [[[units[f"s_{pair}"] for pair in side.split()] for side in way] for way in ways]
    masks = (Masks(iter(before), iter(after)) for before, after in both)
    return RING.sum(np.stack([basa_cores.add_masks(RING, RING.zeros(3), one) for one in masks]))


def example(report: Report) -> Finding:
    """Decide (d)."""
    seeds = ("s_12", "s_13", "s_23")
    first, known, needed = ({seed for seed in seeds if user in seed} for user in "123")
    possible = []
    for seed in seeds:
        fits = needed <= first | {seed}
        report.say(f"the second user sends {seed}: knows it: {seed in known}; the third user can mask: {fits}")
        possible += [seed] if seed in known and fits else []
    report.check(possible == ["s_23"], "(d) s_23 is the seed to send")
    printed = "s_13"
    cancels = [seed for seed in seeds if not left(first | {seed}).any()]
    report.agree("BASA-FIG1B", "matrices", cancels == ["s_23"], "(d) the masks cancel in the sum with one seed only")
    lacks = sorted(needed - first - {printed})
    case = {"sends": printed, "knows": sorted(known), "the third user lacks": lacks}
    return Finding("confirmed" if printed in possible else "imprecise", f"it sends {possible[0]}", case)
