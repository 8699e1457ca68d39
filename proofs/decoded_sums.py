"""What the server of HeteroSAg decodes: the sum of each cell, hence that of all users, and of each group somewhere.

Statement.
(a) The cells of each segment are a partition of the groups. So the server has the sum over all users, and its mean of
    the cells, weighted with their users, is the mean of all quantised inputs.
(b) It does not have only that: from two cells on it has more sums than one. For all G >= 2 some segment has two cells.
(c) When each group runs SecAgg by itself, every segment of every group is decoded: the inference robustness is 0.
(d) The median of the decoded sums of a segment, coordinate by coordinate, lies between two benign ones whenever more of
    them are benign than faulty, whatever the faulty ones are. With as many faulty as benign ones it need not.

Idea. (a) to (c) are counted for 2 to 16 groups. (a) holds for all since l + 1 - a is an involution; (b) since a group
is alone in some segment; (c) by definition. The means of (a) are computed by the reference for inputs from a fixed
stream, and (b) is decided on masked segments as well. (d) If more than half of the numbers lie in an interval then so
do the one or two in the middle; run for up to seven sums, benign ones of three values and faulty ones of three others.
"""

from __future__ import annotations

import statistics
from itertools import product

import numpy as np

from secagg_spec.arithmetic import averages, segments
from secagg_spec.arithmetic.levels import Range
from secagg_spec.ledger.proofs import Finding, Report, Tally, rank_of_flint
from secagg_spec.privacy.heterosag import Plan, situation
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.averages import combine, quantize_update
from secagg_spec.protocols.heterosag.plan import Parameters, cells_of

CLAIMS = {
    "HET-ALL": "enumeration",
    "HET-NAIVE": "enumeration",
    "HET-MED": "enumeration",
}
GROUPS = range(2, 17)
BENIGN, FAULTY = (0.0, 1.0, 2.0), (-9.0, 1.0, 9.0)


def plan_of(G: int, matrix: str) -> Parameters:
    """Return a plan of groups of three users with rising levels."""
    return Parameters(3 * G, 1, 1, 3, 2 * G, (3,) * G, (1,) * G, tuple(range(2, G + 2)), Range(-1.0, 1.0), matrix)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    whole, naive = Tally(), Tally()
    for G in GROUPS:
        for row, cells in enumerate(segments.cyclic(G)):
            whole.add({"G": G, "segment": row}, sorted(g for cell in cells for g in cell) == list(range(G)))
        report.check(any(len(cells) > 1 for cells in segments.cyclic(G)), f"(b) a segment with two sums: {G}")
        shown = {len(segments.decodable(segments.separate(G), (g,))) for g in range(G)}
        rows = [[[int(g in cell) for g in range(G)] for cell in cells] for cells in segments.separate(G)]
        told = all(rank_of_flint(sums) == G for sums in rows)
        report.agree("HET-NAIVE", "matrices", told, f"(c) the sums of each segment have the rank G = {G}")
        naive.add({"G": G}, segments.inference_robustness(segments.separate(G)).value == 0 and shown == {G})
    for G, matrix in product((2, 3, 5), ("cyclic", "perfect")):
        report.agree(
            "HET-ALL", "samples", has_the_mean(plan_of(G, matrix)), f"(a) the mean over all users: {G}, {matrix}"
        )
        report.check(shows_cells(plan_of(G, matrix)), f"(b) the sums of cells, no fewer: {G}, {matrix}")
    return {
        "HET-ALL": Finding(whole.verdict, "the sum over all users is that of its cells", whole.against),
        "HET-NAIVE": Finding(naive.verdict, "delta is 0", naive.against),
        "HET-MED": median(report),
    }


def has_the_mean(p: Parameters) -> bool:
    """Return whether the reference makes the mean of all quantised inputs from the sums of cells."""
    draw = np.random.default_rng(3)
    levels = [quantize_update(p, user, draw.random(p.d), rounding=draw.random(p.d)) for user in range(p.N)]
    totals = [np.sum([levels[user][cell.start : cell.stop] for user in cell.members], axis=0) for cell in p.parts]
    found = combine(p, heterosag.cell_sums(p, range(p.N), totals))
    real = [
        np.concatenate([p.range.value(numbers[c.start : c.stop].astype(float), c.levels) for c in cells_of(p, user)])
        for user, numbers in enumerate(levels)
    ]
    return bool(np.allclose(found, np.mean(real, axis=0), rtol=0, atol=2.0**-40))


def shows_cells(p: Parameters) -> bool:
    """Return whether the masked segments and answers of a round show exactly the sums of the cells."""
    return Plan(p).rows_shown(situation(p)) == p.plan


def median(report: Report) -> Finding:
    """Decide (d), with the median of the reference."""
    tally = Tally()
    for count in range(1, 8):
        for faulty in range((count + 1) // 2):
            for benign in product(BENIGN, repeat=count - faulty):
                for wrong in product(FAULTY, repeat=faulty):
                    found = middle((*benign, *wrong))
                    case = {"benign": list(benign), "faulty": list(wrong), "median": found}
                    tally.add(case, min(benign) <= found <= max(benign))
                    alike = found == statistics.median((*benign, *wrong))
                    report.agree("HET-MED", "library", alike, f"the median of Python: {case}")
    outside = middle((0.0, 9.0))
    report.check(outside > 0, "(d) with one faulty of two sums the median is neither")
    report.say(f"the median lies between benign sums in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "between two benign ones", tally.against)


def middle(values: tuple[float, ...]) -> float:
    """Return the median of the reference."""
    return float(averages.combined(np.array(values)[:, None], [1] * len(values), "median")[0])
