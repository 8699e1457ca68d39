"""Multi-RoundSecAgg: rounds of SecAgg or LightSecAgg among chosen users, whose sums are over whole batches.

====================  ==========================================
paper                 here
====================  ==========================================
N, K, T               `p`
G_1, G_2, ...         the rows of `G`
U^(t), x^(t)          `available` and `x` of a round
f^(t), S^(t)          `f`, `S`
====================  ==========================================

The users are chosen as in the paper for users with different dropout rates. A round is a SecAgg or LightSecAgg round.

Source: Multi-RoundSecAgg, sections 3 and 4.
"""

from collections.abc import Iterable, Sequence, Set

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.strategies import draw


def multi_round_session(
    p: Parameters, ring: Ring, rounds: Iterable[tuple[UintArray, Set[int], Set[int], Sequence[int]]]
) -> list[tuple[tuple[int, ...], UintArray | None]]:
    """Return, for each round, the users in the sum and the sum, d elements; no users and None if it is skipped."""
    # A round has all users' updates, the available users, the users whose masked input arrives if chosen, and draws.

    # Component 1: the users of a batch take part together or not at all.
    G = np.arange(p.N).reshape(-1, p.T)

    f, sums = np.zeros(p.N, np.int64), list[tuple[tuple[int, ...], UintArray | None]]()
    for x, available, came, draws in rounds:
        # Component 2: among batches with all users available, choose one of the least frequency, then any others.
        whole = np.flatnonzero(np.isin(G, list(available)).all(axis=1))
        if len(whole) < p.K // p.T:
            sums.append(((), None))
            continue
        frequency = f[G[whole]].min(axis=1)
        first = draw(whole[frequency == frequency.min()], draws[:1])
        others = draw(whole[whole != first], draws[1:])
        chosen = G[np.sort([*first, *others])]  # eq. (3)

        # The round among these users: the server adds the inputs of each batch whose inputs all arrive.
        S = chosen[np.isin(chosen, list(came)).all(axis=1)].ravel()
        sums.append((tuple(S.tolist()), ring.sum(x[S])))  # eq. (2)
        f[S] += 1
    return sums
