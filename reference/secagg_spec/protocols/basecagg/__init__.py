"""BASecAgg: the weighted sum over a buffer of updates that start from models of different rounds.

====================  ==========================================
paper                 here
====================  ==========================================
t, t_i                `t`, `stamp` of user i
Delta_i, z_i          `delta` and `z` of user i
[n_i]_k, [z~_i]_j     `n` of user i, the row j of its `share`
Q_{c_l}, s_{c_g}      with the draws `u`, with the draws `v`
S(t), U_2             the users of `delta`, `U2`
====================  ==========================================

Source: BASecAgg, section 2.2.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.staleness import realised_weight
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.protocols.basecagg.round import Parameters


def basecagg_buffer(
    p: Parameters,
    t: int,
    stamp: Mapping[int, int],
    delta: Mapping[int, RealArray],
    u: Mapping[int, RealArray],
    z: Mapping[int, UintArray],
    n: Mapping[int, UintArray],
    U2: Sequence[int],
    v: Mapping[int, float],
) -> tuple[UintArray, RealArray]:
    """Return the weighted sum of the buffer of round t, d elements, and its average g^(t), d real numbers."""
    field, code, S = p.field, p.code, sorted(delta)

    # 2.2.1: each user i shares its mask of round t_i among all users.
    share = {i: code.encode(z[i], n[i]) for i in S}  # eq. (6)

    # 2.2.2: user i quantises its update by eq. (7) and eq. (9), masks it, and sends it with t_i to the server's buffer.
    whole = {i: quantize(delta[i], level=p.c_l, ring=field, weight=p.total_weight, rounding=u[i]) for i in S}  # eq. (8)
    y = [field.add(whole[i], z[i]) for i in S]  # eq. (10)

    # 2.2.3: with K updates the buffer is full. The later an update is, the less it weighs.
    w = np.array([realised_weight(p.staleness, p.c_g, t - stamp[i], v[i]) for i in S], np.uint64)  # eq. (12)

    # Each user j of U2 sends the weighted sum of its shares of S. The server decodes the weighted sum of the masks.
    answer = [field.weighted_sum(w, [share[i][j] for i in S]) for j in U2]
    masks = code.decode(U2, np.stack(answer), p.d)
    total = field.subtract(field.weighted_sum(w, y), masks)  # eq. (11), with integers for weights
    return total, field.decode_signed(total) / (p.c_l * int(w.sum()))  # eq. (13), eq. (14), both repaired
