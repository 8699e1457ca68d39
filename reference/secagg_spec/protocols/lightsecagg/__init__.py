"""LightSecAgg: masks shared by a T-private MDS code and removed all at once.

====================  ==========================================
paper                 here
====================  ==========================================
x_i, z_i, y_i         `x`, `z` and `y` of user i
[n_i]_k               `n` of user i, T rows
[z~_i]_j              the row j of `share` of user i
U_1, U_2              `U1`, `U2`
====================  ==========================================

Source: BASecAgg, appendix A.2.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.protocols.lightsecagg.round import Parameters


def lightsecagg_round(
    p: Parameters,
    x: Mapping[int, UintArray],
    z: Mapping[int, UintArray],
    n: Mapping[int, UintArray],
    U1: Sequence[int],
    U2: Sequence[int],
) -> UintArray:
    """Return the sum of the updates of U1, d elements, recovered from the answers of U2."""
    field, code = p.field, p.code

    # Each user i shares its mask among all users, before it has an update.
    share = {i: code.encode(z[i], n[i]) for i in z}  # eq. (21)

    # Each user of U1 sends its masked update.
    y = [field.add(x[i], z[i]) for i in U1]  # A.2: y_i = x_i + z_i

    # Each user j of U2 sends the sum of its shares of the masks of U1.
    # The server decodes the sum of the masks.
    answer = [field.sum(np.stack([share[i][j] for i in U1])) for j in U2]  # A.2: sum of [z~_i]_j
    z_sum = code.decode(U2, np.stack(answer), p.d)  # A.2: sum of z_i

    return field.subtract(field.sum(np.stack(y)), z_sum)  # A.2: sum of x_i = sum of y_i - sum of z_i
