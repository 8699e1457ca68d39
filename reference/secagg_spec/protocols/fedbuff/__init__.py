"""FedBuff: the server averages the updates in a buffer, with less weight for late ones, and updates the model.

====================  ==========================================
paper                 here
====================  ==========================================
x^(t), x^(t_i)        `x`, `downloaded` by user i
x_i^(E), Delta_i      `trained` and `delta` of user i
t, t_i                `t`, `stamp` of user i
s(t - t_i)            `w` of user i, times c_g, with the draw `v`
Q_{c_l}               with the draws `u`
S(t)                  the users of `trained`
====================  ==========================================

Source: BASecAgg, section 2.
"""

from collections.abc import Mapping
from functools import reduce

import numpy as np

from secagg_spec.arithmetic.quantizer import stochastic_round
from secagg_spec.arithmetic.staleness import realised_weight
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.protocols.fedbuff.round import Parameters


def fedbuff_step(
    p: Parameters,
    x: RealArray,
    t: int,
    stamp: Mapping[int, int],
    downloaded: Mapping[int, RealArray],
    trained: Mapping[int, RealArray],
    u: Mapping[int, RealArray],
    v: Mapping[int, float],
) -> RealArray:
    """Return the model of round t + 1, d real numbers."""
    S = sorted(trained)

    # Each user of S sends the change of its model by training, as integers if there is a level c_l.
    delta = {i: downloaded[i] - trained[i] for i in S}  # eq. (2)
    sent = [stochastic_round(p.c_l * delta[i], u[i]) if p.c_l else delta[i] for i in S]  # eq. (7), times c_l

    # With K updates the buffer is full. The later an update is, the less it weighs.
    w = [realised_weight(p.staleness, p.c_g, t - stamp[i], v[i]) for i in S]  # eq. (12)
    total = reduce(np.add, [w_i * sent_i for w_i, sent_i in zip(w, sent, strict=True)])
    average = total / ((p.c_l or 1) * sum(w))

    return x - p.eta_g * average  # eq. (4), and eq. (15) with integers
