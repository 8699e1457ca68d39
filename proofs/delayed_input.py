"""A user that is late stays hidden by its self mask, even when all its pairwise masks are known.

Statement. Let users count as dropped whose masked inputs arrive late, after their masking keys were opened. As long as
fewer than t of the others collude, the server and the colluders learn nothing of the late inputs, and of the others
their sum only. When the self seed of a late user is known too, its input is.

Idea. The views are decided exactly, with the masking function that runs: for N from 3 to 5, modulo 8, every set of
late users, every threshold, and every coalition of fewer than t users. For all N: the self mask of a late user is
uniform and in no other message. For three users modulo 3 all inputs and masks are counted as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.secagg import Element, most
from secagg_spec.protocols.secagg.graph import Graph

CLAIMS = {
    "HET-DELAY": "matrices",
}


def prove(report: Report) -> dict[str, Finding]:
    """Decide all late users, thresholds and coalitions."""
    tally, bare = Tally(), 0
    for N in (3, 4, 5):
        everyone = tuple(range(N))
        for t in range(2, N):
            element = Element(Ring(8), Graph(everyone, N - 1), t, everyone)
            for late in range(1, N - t + 1):
                for survivors in combinations(everyone, N - late):
                    for coalition in combinations(survivors, t - 1):
                        held, leaked = decided(element, coalition, survivors)
                        case = {"N": N, "t": t, "survivors": list(survivors), "coalition": list(coalition)}
                        tally.add(case, held)
                        report.check(leaked, f"with the self seed the input is learned: {case}")
                        bare += leaked
    report.agree("HET-DELAY", "enumeration", counted(3), "three users modulo 3, one of them late")
    report.say(f"late inputs stay hidden in {tally.held} of {tally.cases} views; without self masks in none of {bare}")
    return {"HET-DELAY": Finding(tally.verdict, "the self mask alone hides a late input", tally.against)}


def counted(R: int) -> bool:
    """Return whether, of three users of whom the last is late, all that the server sees depends on x_0 + x_1 alone."""
    seen: dict[int, Counter[tuple[int, ...]]] = {}
    for x in product(range(R), repeat=3):
        views = Counter(view(x, masks, R) for masks in product(range(R), repeat=6))
        if seen.setdefault(divmod(x[0] + x[1], R)[1], views) != views:
            return False
    return len({frozenset(views.items()) for views in seen.values()}) == R


def view(x: Sequence[int], masks: Sequence[int], R: int) -> tuple[int, ...]:
    """Return the three masked inputs, the self masks of the survivors, and the late user's pairwise masks."""
    b_0, b_1, b_2, s_01, s_02, s_12 = masks
    sent = (x[0] + b_0 + s_01 + s_02, x[1] + b_1 - s_01 + s_12, x[2] + b_2 - s_02 - s_12)
    return (*(divmod(y, R)[1] for y in sent), b_0, b_1, s_02, s_12)


def decided(element: Element, coalition: tuple[int, ...], survivors: tuple[int, ...]) -> tuple[bool, bool]:
    """Return whether nothing is learned beyond the sum, and whether the self seed of a late user gives its input."""
    view = element.view(coalition, most(element.graph, element.sharers, survivors))
    late = next(user for user in element.sharers if user not in survivors)
    for user in element.sharers:
        if user not in survivors:
            view.reveal(element.tokens.masking_key(user))
    allowed = element.allowed(coalition, survivors)
    hidden = view.decide(*allowed).private
    view.reveal(element.tokens.self_seed(late))
    return hidden, view.decide(*allowed).functionals == (f"x_{late}[0]",)
