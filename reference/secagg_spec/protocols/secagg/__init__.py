"""SecAgg and SecAgg+: pairwise masks that cancel, self masks, and secret sharing in case users drop out.

====================  ==========================================
papers                here
====================  ==========================================
x_i, y_i              `x` and `y` of user i
b_i, a_ij             `b` of user i, its self seed; `a` in `pair`
s_i^SK, s_i^PK        `sk` and `pk` of user i, for its masks
PRG(b_i), PRG(a_ij)   ``own(i, …)`` and ``pair(i, j, …)``
U, D                  `U3`, ``U2 - U3``
====================  ==========================================

On the complete graph this is SecAgg, and on any other graph SecAgg+.

Source: BASecAgg, appendix A.1, in the steps of HeteroSAg, section 2.
"""

from collections.abc import Mapping, Set

import numpy as np

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import keys, masks, prg
from secagg_spec.protocols.secagg.round import Round
from secagg_spec.protocols.steps import Randomness


def secagg_round(
    round: Round,
    x: Mapping[int, UintArray],
    sampled: Mapping[int, Randomness],
    U2: Set[int],
    U3: Set[int],
    U5: Set[int],
) -> UintArray:
    """Return the sum of the updates of U3, d elements; the users of U2 share their secrets and those of U5 answer."""
    (part,), t, context = round.parameters.parts, round.parameters.t, round.context()
    near = {i: round.graph.neighbours(i) & U2 for i in U2}

    # Step 1: each user has a key pair and a self seed, and any two neighbours i and j agree on a_ij = a_ji.
    sk, b = ({i: sampled[i][name] for i in U2} for name in ("masking_key", "self_seed"))
    pk = {i: keys.public_key(sk[i]) for i in U2}

    def own(i: int, seed: bytes) -> UintArray:
        return prg.expand(masks.self_key(context, seed, i), part.ring, part.length)

    def pair(i: int, j: int, private: bytes) -> UintArray:
        a = masks.pairwise_key(context, keys.agree(private, pk[j]), {i: pk[i], j: pk[j]})
        return prg.expand(a, part.ring, part.length)

    # Step 2: each user shares its private key and its seed among its holders. Any t holders can recover them.
    holders = {i: sorted(near[i] | {i}) for i in U2}
    sk_shares = {i: shamir.share(sk[i], sampled[i]["key_coefficients"], holders[i]) for i in U2}
    b_shares = {i: shamir.share(b[i], sampled[i]["seed_coefficients"], holders[i]) for i in U2}

    # Step 4: each user of U3 sends its masked update.
    y = []
    for i in U3:
        pairwise = [(i < j, pair(i, j, sk[i])) for j in near[i]]
        y.append(part.ring.signed_sum(x[i], [(True, own(i, b[i]))], pairwise))  # eq. (19)

    # Step 5: the users of U5 send their shares of the seeds of U3 and of the keys of the users that dropped out.
    def recovered(i: int, shares: tuple[int, ...]) -> bytes:
        given = {j: share for j, share in zip(holders[i], shares, strict=True) if j in U5}
        return shamir.reconstruct(t, list(given), list(given.values()))

    selves = [(False, own(i, recovered(i, b_shares[i]))) for i in U3]
    left = [(i < j, pair(i, j, recovered(i, sk_shares[i]))) for i in U2 - U3 for j in near[i] & U3]
    return part.ring.signed_sum(part.ring.sum(np.stack(y)), selves, left)  # eq. (20)
