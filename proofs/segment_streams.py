"""The masks of two segments have to come from different streams: else a late user gives away how its segments differ.

Statement, for three groups of three users, whose masked segments all reach the server, those of one maybe late, and at
most one colluder. HeteroSAg expands each seed "to segments in Z_R" for each segment, and does not say from where on.
(a) When each segment has a stream of its own, nothing is learned but the sums of cells and what the colluder knows.
(b) When each segment takes the stream of a seed from its start, segments with one modulus have one self mask. Of a
    late user, whose pairwise masks are known, the difference of two such segments is learned. Without a late user
    nothing is.
(c) So the self mask, which hides a late user in SecAgg, hides one segment of it for each modulus.

Idea. The views are decided with the masking function that runs, for all late users and colluders but for their names
within a group: streams of equal derivations are one symbol. Why nothing is learned without a late user: two groups
share a cell in one segment only, so that the masks between them are used once, and hide everything but the sum of the
cell. The difference in (b) holds for all plans with two cells of one modulus for a user. It is counted for one user
and two segments as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from secagg_spec.arithmetic.levels import Range
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.privacy.heterosag import RULES, Plan, Rule, situation
from secagg_spec.privacy.secagg import Users
from secagg_spec.protocols.heterosag.plan import Parameters

CLAIMS = {
    "HET-SEG": "matrices",
}
SIZE, GROUPS = 3, 3
LEVELS = ((2, 2, 2), (2, 3, 4))
ONE_STREAM = {"own": RULES["cells"], "one": RULES["one-stream"]}


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b)."""
    readings = {streams: Tally() for streams in ONE_STREAM}
    for levels, (streams, rule), (late, coalition) in product(LEVELS, ONE_STREAM.items(), happenings()):
        learned = beyond(levels, rule, late, coalition)
        case = {
            "K": list(levels),
            "streams": streams,
            "late": list(late),
            "colluders": list(coalition),
            "learned": learned,
        }
        readings[streams].add(case, not learned)
        report.check(not learned or (streams == "one" and bool(late)), f"(a) and (b): {case}")
        shown = any(name.startswith(f"x_{user}[") for user in late for name in learned)
        report.check(shown == bool(learned), f"(b) what is learned is about the late user: {case}")
    for streams, tally in readings.items():
        report.say(f"{streams} stream for each segment: nothing is learned in {tally.held} of {tally.cases} cases")
    report.agree(
        "HET-SEG", "enumeration", [differences(shared) for shared in (False, True)] == [3, 1], "one user, counted"
    )
    found = "each segment needs its own stream, or its own part of one"
    return {"HET-SEG": Finding(by_reading(readings.values()), found, readings["one"].against)}


def happenings() -> Iterator[tuple[Users, Users]]:
    """Yield who is late and who colludes, but for names within a group."""
    first = [group * SIZE for group in range(GROUPS)]
    for late in ((), *((user,) for user in first)):
        for coalition in ((), *((user + 1,) for user in first)):
            yield late, coalition


def beyond(levels: tuple[int, ...], rule: Rule, late: Users, coalition: Users) -> list[str]:
    """Return what is learned beyond the sums of cells, over all cells that may share symbols."""
    sizes = (SIZE,) * GROUPS
    plan = Plan(
        Parameters(SIZE * GROUPS, 1, 1, 3, GROUPS, sizes, (1,) * GROUPS, levels, Range(-1.0, 1.0), "cyclic"), rule
    )
    happened = situation(plan.parameters, late=late)
    return [name for cells in plan.together() for name in plan.decide(cells, happened, coalition).verdict.functionals]


def differences(shared: bool) -> int:
    """Return how many differences of two segments modulo 3 fit what is sent, under self masks alone."""
    cases = product(range(3), repeat=4)
    sent = [(x, divmod(x + b, 3)[1], y, divmod(y + (b if shared else c), 3)[1]) for x, y, b, c in cases]
    return len({divmod(x - y, 3)[1] for x, first, y, second in sent if (first, second) == (0, 0)})
