"""HeteroSAg: SecAgg on segments, each quantised and masked by a cell of one or two subgroups.

====================  ==========================================
paper                 here
====================  ==========================================
x_i^l                 `x` of user i, in the `segment` of a cell
B(l, g)               `p.parts`: the cells of all segments
S, R, K_g             `S`, `ring` and `levels` of a cell
b_i, s_i^SK, s_i^PK   `b`, `sk` and `pk` of user i
PRG(b_i), PRG(s_ij)   ``own[i]``, ``pair[i, j]``
U, D                  `U`, ``S - U``
====================  ==========================================

Source: HeteroSAg, section 4.1, with the steps of section 2.
"""

from collections.abc import Mapping

from secagg_spec.arithmetic.levels import quantize_levels
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.crypto import keys, masks, prg
from secagg_spec.protocols.heterosag.averages import CellSum, combine
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.heterosag.round import agreed


def heterosag_round(
    p: Parameters,
    session: bytes,
    number: int,
    x: Mapping[int, RealArray],
    u: Mapping[int, RealArray],
    sk: Mapping[int, bytes],
    b: Mapping[int, bytes],
    U2: frozenset[int],
    U3: frozenset[int],
) -> tuple[list[CellSum], RealArray]:
    """Return the sum of each cell with survivors, and the average of the updates of U3, d real numbers."""
    # Step 1: any two users i and j agree on s_ij. Step 2: each shares its key and its seed, as in SecAgg.
    context = agreed(p, session, number).context()
    pk = {i: keys.public_key(sk[i]) for i in U2}
    s = {(i, j): keys.agree(sk[i], pk[j]) for i in U2 for j in U2 - {i}}

    # The users S of a cell, of which U survive, have separate masks for the segment of this row of B.
    y, sums = {}, []
    for cell in (cell for cell in p.parts if cell.members & U3):
        ring, length, row, segment = cell.ring, cell.length, cell.segment, slice(cell.start, cell.stop)
        S, U = cell.members & U2, cell.members & U3
        own = {i: prg.expand(masks.self_key(context, b[i], i, row), ring, length) for i in U}
        pair = {
            (i, j): prg.expand(masks.pairwise_key(context, s[i, j], {i: pk[i], j: pk[j]}, row), ring, length)
            for i in S
            for j in S - {i}
        }

        # Steps 3 and 4: each survivor quantises the segment with the levels of the cell, and masks it.
        for i in U:
            whole = quantize_levels(x[i][segment], levels=cell.levels, range=p.range, rounding=u[i][segment])  # eq. (3)
            y[i, row] = ring.signed_sum(whole, [(True, own[i])], [(i < j, pair[i, j]) for j in S - {i}])  # eq. (9)

        # Step 5: the server recovers b_i of the survivors and s_i^SK of the others, and removes the masks.
        came = [(True, y[i, row]) for i in U]
        selves = [(False, own[i]) for i in U]
        left = [(i < j, pair[i, j]) for i in S - U for j in U]
        total = ring.signed_sum(ring.zeros(length), came, selves, left)  # eq. (10), its sign repaired
        sums.append(CellSum(cell, tuple(sorted(U)), total))

    # Section 4.1: the mean of each segment over its cells; then the segments are concatenated.
    return sums, combine(p, sums)
