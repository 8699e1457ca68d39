"""What masking in HeteroSAg costs a user beside SecAgg.

Masking is what grows with the input: deriving the key of each mask, expanding it, and adding it up. Agreements, shares
and seals are the same in both, and are left out, but for whole steps. SecAgg is on the complete graph, modulo the
number that just holds the sum of all N users at the same levels, as the cells of HeteroSAg do for their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tests.benchmarks.record import Benchmark, Sides, counted, processor

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import masks
from secagg_spec.crypto.caches import forget
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import stream
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.costs import masked_bits, secagg_bits, secagg_user_masks, sum_modulus, user_masks
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import Round
from secagg_spec.protocols.steps import Network, Step, run_synchronous

N, GROUPS, D, USER = 100, 20, 79_510, 50
LEVELS = (2, 16, 2**16)
UNIT = Range(-1.0, 1.0)


def parameters(groups: int, levels: int, d: int = D, users: int = N) -> Parameters:
    """Return those of users in groups as equal as they can be, all with the same levels."""
    sizes = tuple(len(part) for part in np.array_split(np.empty(users, bool), groups))
    return Parameters(users, users // 5, 1, users // 2 + 1, d, sizes, (1,) * groups, (levels,) * groups, UNIT)


def plain(levels: int, d: int = D, users: int = N) -> secagg.Parameters:
    """Return those of SecAgg among the same users, modulo the number that holds the sum of all."""
    R = sum_modulus(users, levels)
    return secagg.Parameters(R=R, N=users, D=users // 5, T=1, t=users // 2 + 1, k=users - 1, d=d)


@dataclass(frozen=True)
class Masking:
    """What one user masks: its part of a round, and what it agreed on with everybody."""

    round: Round
    user: int
    secrets: dict[int, bytes]
    public: dict[int, bytes]
    update: UintArray

    def take(self) -> UintArray:
        """Derive the keys, as the step share_keys does; expand the masks and add them up, as masked_input does."""
        parts = self.round.parts_of(self.user)
        keys = [self._keys(part) for part in parts]
        return np.concatenate([self._masked(part, each) for part, each in zip(parts, keys, strict=True)])

    def _keys(self, part: secagg.Part) -> dict[int, bytes]:
        context, at = self.round.context(), part.segment
        found = {self.user: masks.self_key(context, self.secrets[self.user], self.user, at)}
        for peer in sorted(part.members - {self.user}):
            pair = {user: self.public[user] for user in (self.user, peer)}
            found[peer] = masks.pairwise_key(context, self.secrets[peer], pair, at)
        return found

    def _masked(self, part: secagg.Part, keys: dict[int, bytes]) -> UintArray:
        streams = {user: stream(key, part.ring, part.length) for user, key in keys.items()}
        own = streams.pop(self.user)
        return secagg.mask_update(part.ring, self.user, part.of(self.update), own, streams.items())


def masking_of(p: Parameters | secagg.Parameters, user: int) -> Masking:
    """Return what a user masks under parameters of either protocol."""
    round = heterosag.agreed(p, bytes(16), 0) if isinstance(p, Parameters) else Round(p, p.graph(), bytes(16), 0)
    source = SeededSource(b"bench", "masking")
    secrets, public = ({peer: source.take(32) for peer in range(p.N)} for _ in range(2))
    return Masking(round, user, secrets, public, np.zeros(p.d, np.uint64))


# --------------------------------------------------------------------------------------------------- benchmarks


def masking(N: int, G: int, d: int, K: int, user: int) -> Sides:
    """Mask one input among all users, and in groups."""
    return Sides.of(processor(masking_of(p, user).take, forget) for p in (plain(K, d, N), parameters(G, K, d, N)))


def beginning(N: int, G: int, d: int, K: int, user: int) -> Sides:
    """Mask an input of one element a segment, where nearly all is to begin the streams, and a whole one."""
    return Sides.of(processor(masking_of(parameters(G, K, length, N), user).take, forget) for length in (G, d))


def expanded(N: int, G: int, d: int, user: int) -> Sides:
    """Count the elements of all masks of a user, by the formulas."""
    mine = user_masks(parameters(G, 2, d, N), user).elements
    return Sides(counted(secagg_user_masks(d, N).elements), counted(mine))


def whole_step(N: int, G: int, d: int, K: int, user: int) -> Sides:
    """Do all that a user does when its masked input is due, packing and opening shares included."""
    theirs = _step(secagg.open_round, plain(K, d, N), user)
    ours = _step(heterosag.open_round, parameters(G, K, d, N), user)
    return Sides(processor(theirs, forget), processor(ours, forget))


def _step(open_round: Callable[..., Network], p: Parameters | secagg.Parameters, user: int) -> Callable[[], object]:
    """Return the step of one user, with all shares in its mail."""
    network = open_round(p, np.zeros((p.N, p.d), np.uint64), session=bytes(16), round=0)
    step: Step[Any] = network.table[4]
    network.table = network.table[:4]
    sources = {user: SeededSource(b"bench", f"user {user}") for user in range(p.N)}
    run_synchronous(network, {}, secagg.draw_randomness(p, sources))
    return partial(step.take, network.states[user], network.mail(step, user), randomness={})


def packing(N: int, G: int, d: int, K: int, user: int) -> Sides:
    """Pack a masked input, beside the whole step."""
    p = parameters(G, K, d, N)
    cells, vector = heterosag.agreed(p, bytes(16), 0).parts_of(user), np.zeros(d, np.uint64)
    packed = partial(heterosag.pack_segments, cells, vector)
    return Sides(processor(packed), processor(_step(heterosag.open_round, p, user), forget))


def bits(N: int, G: int, d: int, K: int, user: int) -> Sides:
    """Count the bits of a masked input, by the formulas."""
    return Sides(counted(secagg_bits(d, N, K)), counted(masked_bits(parameters(G, K, d, N), user)))


SIZES = {"N": N, "G": GROUPS, "d": D}
TINY = {"N": 15, "G": 3, "d": 30}
BEGINS = (
    "At least 5 times, half of what heterosag-masks counts: a tenth of the elements. But the user derives a key and "
    "begins a stream for each mask of each segment, 195 instead of 100 (2 n in each of G - 1 segments and n in one, "
    "with groups of n = 5, beside N), and heterosag-begins says how much of its time that is. The rest is paid by the "
    "element, as nearly all is in SecAgg; that became twice as fast where moduli are small, so the ratio fell."
)
AT, NEAR = {"user": USER}, {"user": 7}
BENCHMARKS = (
    *(
        Benchmark(
            id=f"heterosag-masking-{levels}",
            what="a user masks an input in SecAgg",
            beside="a user masks it in HeteroSAg",
            sizes={**SIZES, "K": levels, **AT},
            tiny={**TINY, "K": levels, **NEAR},
            sides=masking,
            withdrawn=BEGINS,
            turns=9,
        )
        for levels in LEVELS
    ),
    Benchmark(
        id="heterosag-begins",
        what="a user masks one element of each segment in HeteroSAg",
        beside="it masks the whole input",
        sizes={**SIZES, "K": 16, **AT},
        tiny={**TINY, "K": 16, **NEAR},
        sides=beginning,
        turns=9,
    ),
    Benchmark(
        id="heterosag-masks",
        what="elements of masks that a user expands in SecAgg",
        beside="those that it expands in HeteroSAg",
        sizes={**SIZES, **AT},
        tiny={**TINY, **NEAR},
        sides=expanded,
        measures="count",
        turns=1,
    ),
    Benchmark(
        id="heterosag-step",
        what="a user's whole step masked_input in SecAgg",
        beside="the same step in HeteroSAg",
        sizes={**SIZES, "K": 2**16, **AT},
        tiny={**TINY, "K": 2**16, **NEAR},
        sides=whole_step,
    ),
    Benchmark(
        id="heterosag-packing",
        what="the masked segments are packed, which the messages of SecAgg here do not do",
        beside="the whole step masked_input of HeteroSAg",
        sizes={**SIZES, "K": 2**16, **AT},
        tiny={**TINY, "K": 2**16, **NEAR},
        sides=packing,
    ),
    *(
        Benchmark(
            id=f"heterosag-bits-{levels}",
            what="bits of a masked input in SecAgg, packed",
            beside="those in HeteroSAg",
            sizes={**SIZES, "K": levels, **AT},
            tiny={**TINY, "K": levels, **NEAR},
            sides=bits,
            measures="size",
            turns=1,
        )
        for levels in LEVELS
    ),
)
