"""BASA: the weighted sum over a buffer that users fill one after another; later users remove the masks of earlier ones.

====================  ==========================================
paper                 here
====================  ==========================================
k, K                  `k` and `j`, positions from 0; `P` of them
Delta_k               `delta` of position k, elements
alpha_k, t, tau_k     `alpha`, `epoch.number`, `stamp`
s_kj, PRG(s_kj)       ``seeds[k][j]``, ``mask[k, j]``
(none)                ``mask[k, k]``, the self mask
====================  ==========================================

Source: BASA, sections 3.2 and 3.3, repaired.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from secagg_spec.arithmetic.staleness import realised_weight
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.boxes import Epoch, mask_key
from secagg_spec.crypto.prg import expand
from secagg_spec.protocols.basa.cores import Parameters


def basa_epoch(
    p: Parameters,
    epoch: Epoch,
    stamp: Mapping[int, int],
    delta: Mapping[int, UintArray],
    seeds: Mapping[int, Sequence[bytes]],
    v: Mapping[int, float],
) -> tuple[UintArray, RealArray]:
    """Return the weighted sum of an epoch, d elements, and its average, d real numbers."""
    # At a position that is not accepted, the user timed out or no user came.
    ring, P, accepted = p.ring, range(p.positions), sorted(delta)
    own = accepted if p.settle else []

    # The user at position k weighs its update, and makes a seed for each later position and one for its self mask.
    alpha = {k: realised_weight(p.staleness, p.c_g, epoch.number - stamp[k], v[k]) for k in accepted}  # section 3.3
    mask = {(k, j): expand(mask_key(epoch, seeds[k][j], k, j), ring, p.d) for k in accepted for j in P if k < j}
    mask |= {(k, k): expand(mask_key(epoch, seeds[k][k], k), ring, p.d) for k in own}

    # The user opens the seeds that were sealed to its position, and sends its masked update.
    y = []
    for k in accepted:
        weighted = ring.weighted_sum(np.array([alpha[k]], np.uint64), [delta[k]])
        before = [(False, mask[i, k]) for i in accepted if i < k]
        after = [(True, mask[k, j]) for j in P if (k, j) in mask]
        y.append(ring.signed_sum(weighted, before, after))  # eq. (6), over all positions before and after

    # The authority releases the keys that open the other seeds: of self masks, and to positions without an update.
    left = [(False, mask[k, j]) for k, j in mask if j == k or j not in accepted]
    total = ring.signed_sum(ring.sum(np.stack(y)), left)  # algorithm 1, line 18
    return total, ring.decode_signed(total) / (p.c_l * sum(alpha.values()))  # section 3.3
