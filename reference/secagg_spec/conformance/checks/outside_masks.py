"""Checks of masks that are made of seeds: who has to be on the server's side to take them off (any generator).

A seed hides an input when the masked input moves with it. After a round the server has the own seed of whoever
contributed, and whoever shares a seed with a user may tell it. So an input that moves with the seeds of few others is
theirs and the server's, and one that does not move with its own seed is the server's alone when it comes late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.checks import basa, basa_scenes, heterosag_deals
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check
from secagg_spec.conformance.checks.heterosag_masking import masked
from secagg_spec.conformance.checks.heterosag_masks import segments_of, tells, unpacked
from secagg_spec.conformance.checks.streams import standard
from secagg_spec.conformance.heterosag_cells import MASK as SEGMENTS
from secagg_spec.conformance.heterosag_cells import Masked
from secagg_spec.conformance.outside import leaks
from secagg_spec.conformance.positions import MASK as POSITION
from secagg_spec.conformance.positions import Buffer
from secagg_spec.protocols.heterosag_plan import cells_of

_TELLING = 40
"""So many elements for each user make all segments long enough to tell masks apart."""


def demand_hidden(operation: str, user: int, hiding: Sequence[int], own: bool, T: int, where: str = "") -> None:
    """Fail when the server and at most T users can take the masks off an input.

    Parameters
    ----------
    operation : str
    user : int
        Whose input it is.
    hiding : sequence of int
        The others whose masks with the user are on it.
    own : bool
        Whether its own mask is on it, or there is none in this protocol.
    T : int
        How many users may collude.
    where : str
        Which part of the input it is, for the message.
    """
    what, seen = f"update_{user}{where}", [f"masked_{user}{where}"]
    if not own:
        message = (
            f"{operation}: the masked input of user {user}{where} has no mask of its own: the server alone learns "
            f"{what} when it comes late, since the masks that a user shares with others are removed once it dropped out"
        )
        raise CheckFailed("leaked", message, leaks.told(what, [*seen, f"the pairwise masks of user {user}"]))
    if len(hiding) <= T:
        who = f"the server with {leaks.named(sorted(hiding))}" if hiding else "the server alone"
        message = (
            f"{operation}: of the masks that user {user} shares with others, only those with {sorted(hiding)} are on "
            f"its masked input{where}: {who} learns {what}, as the own masks of contributors are removed"
        )
        pairs = [f"what user {peer} shares with user {user}" for peer in sorted(hiding)]
        told = leaks.told(what, [*seen, *pairs, f"the own mask of user {user}"], sorted(hiding))
        raise CheckFailed("leaked", message, told)


# ---------------------------------------------------------------------------------------------------------------- BASA


@check("privacy/basa.mask", "BAA-26", operations=(POSITION,), examples=12)
def position(draw: Any, call: Caller) -> None:
    """A masked update moves with the own seed and with that of each position it shares a mask with."""
    chosen = basa_scenes.buffer(draw, replace(basa_scenes.parameters(draw), R=2**32, d=8))
    p, k = chosen.parameters, int(draw(st.sampled_from(chosen.accepted)))
    others = [*chosen.before(k), *range(k + 1, p.positions)]
    call.by_relation |= not standard(call.caps)
    right = basa.masked_update(call, chosen, k)

    def moves(i: int, j: int) -> bool:
        return not np.array_equal(basa.masked_update(call, _exchanged(chosen, i, j), k), right)

    hiding = [other for other in others if moves(min(other, k), max(other, k))]
    demand_hidden(POSITION, k, hiding, not p.settle or moves(k, k), p.T)


def _exchanged(chosen: Buffer, i: int, j: int) -> Buffer:
    """Return the uploads with another seed from one position to another."""
    row = chosen.seeds[i]
    return replace(chosen, seeds={**chosen.seeds, i: (*row[:j], _other(row[j]), *row[j + 1 :])})


def _other(seed: bytes) -> bytes:
    return bytes([seed[0] ^ 1]) + seed[1:]


# ----------------------------------------------------------------------------------------------------------- HeteroSAg


@check("privacy/heterosag.mask", "HSA-14", operations=(SEGMENTS,), examples=12)
def segments(draw: Any, call: Caller) -> None:
    """Each masked segment moves with the own seed and with what was agreed on with each user of its cell."""
    drawn = heterosag_deals.parameters(draw)
    chosen = masked(draw, replace(drawn, d=_TELLING * drawn.N))
    p, user = chosen.parameters, int(draw(st.integers(0, chosen.parameters.N - 1)))
    others = [peer for peer in range(p.N) if peer != user]
    cells = [cell for cell in cells_of(p, user) if tells(cell)]
    call.by_relation |= not standard(call.caps)

    def sent(scene: Masked) -> Any:
        return unpacked(scene, user, segments_of(call, scene, user, others))

    right = sent(chosen)
    own = sent(replace(chosen, seeds=tuple(_other(s) if at == user else s for at, s in enumerate(chosen.seeds))))
    peers = {peer: sent(_agreed_otherwise(chosen, user, peer)) for peer in others}
    for cell in cells:
        hiding = [peer for peer in sorted(cell.members & set(others)) if _moved(cell.of(peers[peer]), cell.of(right))]
        demand_hidden(SEGMENTS, user, hiding, _moved(cell.of(own), cell.of(right)), p.T, f"[segment {cell.segment}]")


def _moved(one: Any, other: Any) -> bool:
    return not np.array_equal(one, other)


def _agreed_otherwise(chosen: Masked, user: int, peer: int) -> Masked:
    """Return the round in which two users agreed on another secret."""
    pair = frozenset((user, peer))
    return replace(chosen, secrets={**chosen.secrets, pair: _other(chosen.secrets[pair])})
