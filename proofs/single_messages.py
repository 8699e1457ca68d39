"""That each message alone says nothing of its input is true of uniform masks only, and is not enough for privacy.

Statement.
(a) A masked input x + Z modulo R, with Z drawn from S different vectors, is independent of x exactly when Z is
    uniform, so that S = R^m. Masks that are expanded from seeds that are shorter than they are do not make the mutual
    information zero.
(b) A scheme in which all users add one mask has messages that say nothing of their inputs, one by one, and that
    together tell all differences of inputs. So "the mutual information of each user's clear and masked model is zero"
    does not keep inputs private. What does is that all messages together say nothing but the sums that may be known;
    HeteroSAg has that.
(c) In example 2 each message alone is independent of its input. All three together are not: the messages (0, 1, 4) of
    the paper's own example fit one input only, (1, 0, 0). Messages 2 and 3 tell the mask of user 1 in one case of nine.

Idea. (a) The law of x + Z is the same for all x in {0, ..., K - 1}^m exactly when that of Z does not change under
translation by a difference of two x, and with K >= 2 these generate all vectors modulo R. Run for all sets of masks
with R^m up to 9. (b) is decided on coefficients, for two to four users modulo 2 to 7, and counted for two users modulo
3; the messages of HeteroSAg are those of proofs/segment_streams.py. (c) All inputs and masks of the example are
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from math import gcd

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.heterosag import Plan, situation
from secagg_spec.privacy.secagg import Element
from secagg_spec.privacy.verdict import decide
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg.graph import Graph

CLAIMS = {
    "HET-MI": "enumeration",
    "HET-JOINT": "readings",
    "HET-EX2P": "enumeration",
}
Vector = tuple[int, ...]
MODULI, LEVELS, D = (2, 6, 6), (2, 3, 3), 6


def added(x: Sequence[int], masks: Sequence[int], moduli: Sequence[int]) -> Vector:
    """Return x + Z, each entry modulo its own number."""
    return tuple(divmod(a + z, R)[1] for a, z, R in zip(x, masks, moduli, strict=True))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c)."""
    return {"HET-MI": one_message(report), "HET-JOINT": together(report), "HET-EX2P": example(report)}


def one_message(report: Report) -> Finding:
    """Decide (a) for all sets of at least two masks."""
    tally = Tally()
    for R, m, K in ((2, 2, 2), (2, 3, 2), (3, 1, 2), (3, 2, 2), (5, 1, 2), (5, 1, 3)):
        vectors = list(product(range(R), repeat=m))
        for masks in (chosen for S in range(2, len(vectors) + 1) for chosen in combinations(vectors, S)):
            laws = {frozenset(added(x, Z, (R,) * m) for Z in masks) for x in product(range(K), repeat=m)}
            case = {"R": R, "K": K, "masks": [list(Z) for Z in masks]}
            tally.add(case, len(laws) == 1, condition=len(masks) == R**m)
    report.check(tally.exact, "(a) exactly when all masks are drawn")
    report.say(f"a message says nothing of its input for {tally.held} of {tally.cases} sets of masks: the whole ones")
    for N in (3, 4, 5):
        element = Element(Ring(2 * N + 1), Graph(tuple(range(N)), N - 1), 2, tuple(range(N)))
        for user in range(N):
            view = element.view(())
            view.see(element.masked[user])
            report.agree("HET-MI", "matrices", view.decide().private, f"(a) the reference, uniform masks: {N}, {user}")
    return Finding(tally.verdict, "uniform masks only", tally.against)


def together(report: Report) -> Finding:
    """Decide (b), by readings of which messages say nothing: each alone, or all together."""
    alone, joint, case = True, True, None
    for N, R in ((N, R) for N, R in product((3, 4), range(2, 8)) if gcd(N - 1, R) == 1):
        ring, inputs = Ring(R), np.eye(N, dtype=np.uint64)
        masks = np.array([[1]] * (N - 1) + [[divmod(1 - N, R)[1]]], dtype=np.uint64)
        each = [decide(ring, inputs[i : i + 1], masks[i : i + 1], inputs[:0]).private for i in range(N)]
        learned = decide(ring, inputs, masks, np.ones((1, N), dtype=np.uint64))
        report.check(not ring.sum(masks).any() and learned.withheld == 1, f"(b) the sum is decoded: N = {N}, R = {R}")
        alone, joint = alone and all(each), joint and learned.private
        case = case or {"N": N, "R": R, "masks": masks[:, 0].tolist(), "learned": list(learned.functionals)}
    views = [{added(x, (z, z, -2 * z), (3, 3, 3)) for z in range(3)} for x in ((0, 1, 0), (1, 0, 0))]
    report.agree("HET-JOINT", "enumeration", not views[0] & views[1], "(b) two inputs with one sum share no view")
    report.check(heterosag_is_private(), "(b) all messages of HeteroSAg together tell the sums of cells only")
    report.say(f"one mask for all: each message alone says nothing: {alone}; all together only the sum: {joint}")
    return Finding("imprecise" if alone and not joint else "confirmed", "all messages together count", case)


def heterosag_is_private() -> bool:
    """Return whether a round of two groups of three users tells nothing but the sums of cells."""
    plan = Plan(Parameters(6, 1, 1, 3, 2, (3, 3), (1, 1), (2, 3), Range(-1.0, 1.0), "cyclic"))
    happened = situation(plan.parameters)
    return all(plan.decide(cells, happened, ()).verdict.private for cells in plan.together())


def example(report: Report) -> Finding:
    """Decide (c)."""
    drawn = [Z for Z in product(*map(range, MODULI)) if divmod(sum(Z), D)[1] == 0]
    inputs = list(product(*map(range, LEVELS)))
    views = [(x, added(x, Z, MODULI)) for x in inputs for Z in drawn]
    seen = [Counter((x[i], y[i]) for x, y in views) for i in range(3)]
    alone = all(
        len(count) == K * R and len(set(count.values())) == 1 for count, K, R in zip(seen, LEVELS, MODULI, strict=True)
    )
    fitting = {x for x, y in views if y == (0, 1, 4)}
    same_sum = [x for x in inputs if sum(x) == 1]
    bare = sum(len({x for x, sent in views if sent == y}) == 1 for y in {y for _, y in views})
    alike = [(a, b) for a, b in product(range(3), repeat=2) if divmod(a + b - 5, 6)[1] < 2]
    report.check(alike == [(0, 0)], "(c) Z_1 = x_2 + x_3 - 5 modulo 6 is below 2 for 0 and 0")
    one_in_nine = 9 * sum(divmod(y[1] + y[2], D)[1] > 3 for _, y in views) == len(views)
    report.check(one_in_nine, "(c) in one case of nine messages 2 and 3 add up to 4 or 5, which tells Z_1")
    report.say(
        f"(0, 1, 4) fits {sorted(fitting)}, of {len(same_sum)} inputs with that sum; {bare} such messages fit one input"
    )
    report.check(fitting == {(1, 0, 0)} < set(same_sum), "(c) (0, 1, 4) fits one input, and not all with that sum")
    verdict = "confirmed" if alone else "refuted"
    return Finding(verdict, "each message alone, and not all together", None, {"messages that fit one input": bare})
