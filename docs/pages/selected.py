"""What Multi-RoundSecAgg changes in a session of SecAgg whose users are drawn at random: rounds of each are run.

What can be chosen, what all sums together tell, what is sent, and whose sum a round with a dropout gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from docs.pages.differences import Cells, Row, compared, rendered
from docs.pages.sparse import sources, tally, traffic_cells
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import RoundResult
from secagg_spec.selection import batches, metrics

PAGE, BEHIND = "multi-round.md", "Source: So, Ali, Guler"
TITLES = ("random selection", "Multi-RoundSecAgg")
ROUND = secagg.Parameters(R=2**32, N=6, D=3, T=1, t=3, k=5, d=16)
ALONE, BATCHES = batches.Parameters(9, 6, 1), batches.Parameters(9, 6, 3)
LOST = {"masked_input": (5,)}
"""The last user of a round drops out before it sends its masked input."""


def block() -> str:
    """Return the comparison as a block that can be opened, in HTML."""
    numbers = f"N = {BATCHES.N}, K = {BATCHES.K}, T = {BATCHES.T}, c = {ROUND.T}"
    return (
        '<details class="info difference" id="from-random-selection-to-multi-round">\n'
        "<summary>What changes from random selection to Multi-RoundSecAgg</summary>\n"
        "<p>Both choose the users of each round of a protocol below, here SecAgg: any K users, or whole batches. "
        f"Measured in rounds of the reference, with {numbers}.</p>\n"
        f"{rendered('Quantities', rows(), TITLES, numbers=True)}\n</details>"
    )


def rows() -> list[Row]:
    """Return what differs between the two sessions, and what does not."""
    return compared(measured(ALONE), measured(BATCHES), {})


def measured(selection: batches.Parameters) -> Cells:
    """Return what is told of sessions with such a selection."""
    chosen = next(batches.family(selection))
    summed = run(selection, chosen, LOST).contributors
    sent = tally(run(selection, chosen, {}).transcript)
    return {
        "sets of users that may be chosen": (str(batches.family_size(selection)),),
        "users that no combination of all these sums parts": (str(together(selection)),),
        "users in the sum when the last one drops out before its input": (str(len(summed)),),
        **{f"messages and bytes in {name}": cells for name, cells in traffic_cells(sent).items()},
    }


def together(selection: batches.Parameters) -> int:
    """Return how many users always stay together when the sums over all sets that may be chosen are known."""
    log = np.zeros((batches.family_size(selection), selection.N), dtype=np.bool_)
    for row, users in enumerate(batches.family(selection)):
        log[row, list(users)] = True
    return metrics.strong_privacy(log)


def run(selection: batches.Parameters, chosen: Sequence[int], lost: Mapping[str, Sequence[int]]) -> RoundResult:
    """Run one round of SecAgg among the chosen users, by the rules of Multi-RoundSecAgg where there are batches."""
    updates = np.zeros((selection.K, ROUND.d), dtype=np.uint64)
    randomness = secagg.draw_randomness(ROUND, sources(selection.K))
    if selection.T == 1:
        return secagg.run_round(ROUND, updates, randomness=randomness, dropouts=lost, session=bytes(16), round=0)
    both = multi_round.Parameters(selection, ROUND)
    return multi_round.run_round(
        both, chosen, updates, randomness=randomness, dropouts=lost, session=bytes(16), round=0
    )
