"""Checks of masks made from seeds: who must collude with the server to remove them (any generator).

A seed hides an input if the masked input changes with it. After a round the server has the own seed of every
contributor, and anyone who shares a seed with a user may reveal it. If an input changes with the seeds of only a few
others, they and the server can unmask it. If it does not change with its own seed, the server alone can unmask it when
it comes late.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NoReturn, TypeAlias

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.cases import basa_functions, heterosag_rounds, strategies
from secagg_spec.conformance.cases.heterosag_masking import masked
from secagg_spec.conformance.checks import basa
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail
from secagg_spec.conformance.checks.heterosag_masks import segments_of, unpacked
from secagg_spec.conformance.checks.streams import standard
from secagg_spec.conformance.outside import chance, leaks, spread
from secagg_spec.conformance.sessions.basa_positions import MASK as POSITION
from secagg_spec.conformance.sessions.basa_positions import Buffer
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.heterosag_cells import MASK as SEGMENTS
from secagg_spec.protocols.heterosag.plan import cells_of

_BLOCKS = (20, 33, 70)
"""Lengths beyond the blocks of a generator."""
_STREAMS = 3
"""The most seeds that are redrawn in a case. Residues are counted while the first of them is redrawn."""
_LIMIT = (
    f"while one seed was drawn again and again, each combination of elements moved, and modulo at most {spread.SMALL} "
    "each element and each combination of two neighbours went through all residues, above it each element through the "
    "even and the odd numbers of each quarter, or half, of [0, R); how often is not judged here, and "
    "a leak of a single round, position or pair of users is out of reach; "
    f"false alarm at most 2**-{chance.SPREAD_BITS}"
)


def demand_hidden(operation: str, user: int, hiding: Sequence[int], own: bool, T: int, where: str = "") -> None:
    """Fail when the server and at most T users can remove the masks from an input.

    Parameters
    ----------
    operation : str
    user : int
        Whose input it is.
    hiding : sequence of int
        The other users whose masks with `user` are on the input.
    own : bool
        Whether the user's own mask is on it, or the protocol has none.
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
        raise CheckFailed("leaked", message, leaks.details(what, [*seen, f"the pairwise masks of user {user}"]))
    if len(hiding) <= T:
        who = f"the server with {leaks.named(sorted(hiding))}" if hiding else "the server alone"
        message = (
            f"{operation}: of the masks that user {user} shares with others, only those with {sorted(hiding)} are on "
            f"its masked input{where}: {who} learns {what}, as the own masks of contributors are removed"
        )
        pairs = [f"what user {peer} shares with user {user}" for peer in sorted(hiding)]
        details = leaks.details(what, [*seen, *pairs, f"the own mask of user {user}"], sorted(hiding))
        raise CheckFailed("leaked", message, details)


@check("privacy/basa.mask", "BAA-26", examples=12, grows=True)
def position(draw: Any, call: Caller) -> None:
    """Each element of a masked update, and each combination, changes with the own seed and each position's seed."""
    chosen = _buffer(draw)
    p, k = chosen.parameters, _end_or_any(draw, chosen.accepted)
    others = [*chosen.before(k), *range(k + 1, p.positions)]
    picked, bits = _picked(draw, call, others, _STREAMS)
    call.by_relation |= not standard(call.caps)

    def drawn(other: int | None, number: int) -> UintArray:
        i, j = (k, k) if other is None else (min(other, k), max(other, k))
        return basa.masked_update(call, _exchanged(chosen, i, j, number), k)

    whole = [(p.R, slice(0, p.d), "")]
    Moving(call, POSITION, k, p.T, others, p.settle, bits).judge(picked, drawn, lambda other: whole)


def _buffer(draw: Any) -> Buffer:
    """Draw uploads: a third with the smallest modulus, and half of those that can be so with the last position."""
    p, d = basa_functions.parameters(draw), draw(st.integers(1, 8) | st.sampled_from(_BLOCKS))
    if draw(st.integers(0, 2)) == 0:
        p = replace(p, N=3 + p.S, K=3, T=1, R=7, c_l=1, c_g=1, tau_max=0, staleness=Staleness.constant())
    last = (*range(p.K - 1), p.positions - 1) if p.settle and draw(st.booleans()) else ()
    return basa_functions.buffer(draw, replace(p, d=d), accepted=last)


def _end_or_any(draw: Any, users: Sequence[int]) -> int:
    """Draw the last of some users, the first, or any."""
    return int(draw(among((users[-1], users[-1], users[0])) | st.sampled_from(users)))


def _picked(draw: Any, call: Caller, others: Sequence[int], most: int) -> tuple[list[int | None], int]:
    """Draw the seeds to redraw, the own one (None) or those of others, and the bits of a false alarm."""
    bits = chance.shared_bits(draw(st.just(call.cases)) * _STREAMS)
    own = draw(among([[None], []]))
    return [*own, *strategies.subset(draw, others, most - 1, most - 1), *([] if own else [None])], bits


Part: TypeAlias = tuple[int, slice, str]
"""A modulus, the places of its elements, and their name for messages."""


@dataclass(frozen=True)
class Moving:
    """A masked vector that is observed while one seed after the other is redrawn.

    `others` are all users whose seeds may be on the vector; `own` says whether its own seed is. A seed is named by the
    other user, the own one by None. `drawn` returns the vector under a seed's draw with some number, and `parts` says
    which parts of the vector the seed must change.
    """

    call: Caller
    operation: str
    user: int
    T: int
    others: Sequence[int]
    own: bool
    bits: int

    def judge(
        self,
        picked: Sequence[int | None],
        drawn: Callable[[int | None, int], UintArray],
        parts: Callable[[int | None], list[Part]],
    ) -> None:
        """Fail when some element or combination does not vary with one of the picked seeds."""
        start = len(self.call.transcript)
        for at, other in enumerate(picked):
            mine = parts(other) if other is not None or self.own else []
            bits, residues = self.bits + max(len(mine) - 1, 0).bit_length(), at == 0
            needed = [spread.enough(R, where.stop - where.start, bits, residues=residues) for R, where, _ in mine]
            rows = np.array([drawn(other, number) for number in range(max(needed, default=0))])
            for n, (R, where, name) in zip(needed, mine, strict=True):
                found = spread.blind(R, rows[:n, where], residues=residues)
                if found is not None:
                    self._fail(found, other, n, drawn, parts, name)
            del self.call.transcript[start:]
        self.call.limits.append(_LIMIT)

    def _fail(
        self,
        found: spread.Blind,
        other: int | None,
        n: int,
        drawn: Callable[[int | None, int], UintArray],
        parts: Callable[[int | None], list[Part]],
        where: str,
    ) -> NoReturn:
        """Fail, and say whose masks are missing from a combination of elements and who learns it."""
        kept = list(self.call.transcript)

        def hides(one: int | None) -> bool:
            places = next((at for _, at, name in parts(one) if name == where), None)
            rows = [drawn(one, number)[places] for number in range(n)] if places is not None else []
            return bool(rows) and one != other and not found.holds(np.array(rows))

        hiding = [one for one in self.others if hides(one)]
        own = not self.own or hides(None)
        self.call.transcript[:] = kept
        demand_hidden(self.operation, self.user, hiding, own, self.T, f"{where} {found.text}")
        which = "of its own" if other is None else f"that it shares with {other}"
        fail(
            f"{self.operation}: while the seed of the mask {which} is drawn {n} times, {where} {found.text} of the "
            f"masked input of user {self.user} {found.how}"
        )


def _exchanged(chosen: Buffer, i: int, j: int, number: int) -> Buffer:
    """Return the uploads with another seed from one position to another."""
    row = chosen.seeds[i]
    return replace(chosen, seeds={**chosen.seeds, i: (*row[:j], _other(row[j], number), *row[j + 1 :])})


def _other(seed: bytes, number: int) -> bytes:
    return sha256(seed + number.to_bytes(4, "little")).digest()


@check("privacy/heterosag.mask", "HSA-14", examples=8, grows=True)
def segments(draw: Any, call: Caller) -> None:
    """Each element of a masked segment, and each combination, changes with the own seed and with its cell's seeds."""
    p = heterosag_rounds.parameters(draw)
    length = draw(st.integers(1, 8) | st.sampled_from(_BLOCKS))
    p = replace(p, d=length * p.count, levels=p.levels if draw(st.booleans()) else (2,) * len(p.levels))
    chosen, user = masked(draw, p), _end_or_any(draw, range(p.N))
    others = [peer for peer in range(p.N) if peer != user]
    picked, bits = _picked(draw, call, others, 2)
    call.by_relation |= not standard(call.caps)

    def drawn(other: int | None, number: int) -> UintArray:
        if other is None:
            seeds = tuple(_other(seed, number) if at == user else seed for at, seed in enumerate(chosen.seeds))
            moved = replace(chosen, seeds=seeds)
        else:
            pair = frozenset((user, other))
            moved = replace(chosen, secrets={**chosen.secrets, pair: _other(chosen.secrets[pair], number)})
        return np.asarray(unpacked(chosen, user, segments_of(call, moved, user, others)))

    def parts(other: int | None) -> list[Part]:
        cells = [cell for cell in cells_of(p, user) if other is None or other in cell.members]
        return [(cell.ring.modulus, slice(cell.start, cell.stop), f"[segment {cell.segment}]") for cell in cells]

    Moving(call, SEGMENTS, user, p.T, others, True, bits).judge(picked, drawn, parts)
