"""Whole rounds of many users: what the server costs beside one user, and what it holds.

Parameters are those that the planner finds (`secagg-spec plan`). Users drop out evenly spread over the roster, after
they have shared their secrets or masks, which is the dearest moment for the server. Each step is taken alone, in order,
and timed. In SecAgg+ all users compute. In LightSecAgg that takes minutes, so user 0 computes alone; all others send
what its step, the sums and the decoding need, and letters of the right length that nobody opens.

Memory of the server is the most that a step holds, with the state that it leaves, counted by tracemalloc. Three things
are apart: the letters that come and go, the public keys of others that the server writes into letters, and the caches
of the process (`caches.SHARED`), which serve all its parties. A vector is d elements of 8 bytes.
"""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from tests.benchmarks.record import Aim, Benchmark, Sides, counted

from secagg_spec.crypto import caches
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import SealedLinks, sealed_links
from secagg_spec.experiments import costs
from secagg_spec.protocols import codec
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Event, Network, Outbox, Randomness, Role, Step, run_synchronous

SESSION, SEED, FEW = bytes(16), b"rounds", 100


@dataclass(frozen=True)
class Cost:
    """Seconds of the server and of a user, and the bytes that the server holds in each phase."""

    server: float
    user: float
    held: Mapping[str, float]


class _Forgotten(list[Event]):
    """A transcript that keeps nothing: whole rounds of many users do not fit into memory."""

    def append(self, event: Event) -> None:
        """Let the event go."""


@dataclass(eq=False)
class Weighed(costs.Timed):
    """A network that also weighs the steps of the server: each is taken twice, and the first time changes nothing."""

    transcript: list[Event] = field(default_factory=_Forgotten)
    held: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, network: Network) -> Weighed:
        """Return such a network in the place of another one."""
        caches.forget()
        return cls(network.table, network.states, network.waiting)

    def take_on(self, received: Outbox, step: Step[Any], party: int, randomness: Randomness | None = None) -> Event:
        """Let `party` take `step`."""
        if step.role is Role.SERVER:
            self.held[step.phase] = weighed(partial(step.take, self.states[party], received, randomness={}))
        return super().take_on(received, step, party, randomness)

    def cost(self, users: range) -> Cost:
        """Return the median over users that are left, and the sum of the server's steps."""
        spent: dict[int, float] = {}
        for one in self.spent:
            spent[one.party] = spent.get(one.party, 0.0) + one.seconds
        return Cost(spent[SERVER], statistics.median(spent[user] for user in users if user in spent), self.held)


def weighed(action: Callable[[], object]) -> float:
    """Return the most bytes that an action holds, without what it leaves in the caches of the process."""
    caches.forget_shared()
    tracemalloc.start()
    try:
        action()
        most, before = tracemalloc.get_traced_memory()[1], tracemalloc.get_traced_memory()[0]
        caches.forget_shared()
        return float(most - before + tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()


class _Drawn(Mapping[int, Randomness]):
    """What each user samples, drawn when it is looked up, so that it need not be kept."""

    def __init__(self, draw: Callable[..., dict[int, Randomness]], parameters: Any) -> None:
        self._draw, self._parameters = draw, parameters

    def __getitem__(self, user: int) -> Randomness:
        return self._draw(self._parameters, {user: SeededSource(SEED, f"user {user}")})[user]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._parameters.N))

    def __len__(self) -> int:
        return int(self._parameters.N)


def spread(N: int, dropped: int) -> tuple[int, ...]:
    """Return so many of the users, evenly spread, and not user 0."""
    return tuple(N * at // dropped + 1 for at in range(dropped))


def of_secagg(p: secagg.Parameters, dropped: int) -> Cost:
    """Play a round of SecAgg or SecAgg+, out of which some users drop before they upload."""
    ones = p.ring.zeros(p.N * p.d).reshape(p.N, -1) + 1
    network = Weighed.of(secagg.open_round(p, ones, session=SESSION, round=0))
    away = spread(p.N, dropped)
    run_synchronous(network, {"masked_input": away}, _Drawn(secagg.draw_randomness, p))
    assert (network.states[SERVER].aggregate == p.N - dropped).all()
    return network.cost(range(0, p.N, max(1, p.N // 100)))


# --------------------------------------------------------------------------------------------------- LightSecAgg


def of_lightsecagg(p: lightsecagg.Parameters, dropped: int) -> Cost:
    """Play a round of LightSecAgg for user 0 and the server; the others send what these two need."""
    privates = {user: SeededSource(SEED, f"key {user}").take(KEY_BYTES) for user in range(p.N)}
    links = sealed_links(lightsecagg.sealing_context(p, SESSION, 0), privates)
    others = _Others(p, links, spread(p.N, dropped))
    opened = lightsecagg.open_round(
        p, p.field.zeros(p.N * p.d).reshape(p.N, -1), session=SESSION, round=0, channel=links
    )
    network = Weighed.of(opened)
    rows = {(step.phase, step.role): step for step in network.table}
    sampled = [others.sampled(0), {}, {}]
    for phase, values, send in zip(lightsecagg.PHASES, sampled, others.sending, strict=True):
        network.take(rows[phase, Role.USER], 0, values)
        network.waiting.setdefault(SERVER, []).extend(send())
        network.take(rows[phase, Role.SERVER], SERVER)
        network.waiting = {party: letters for party, letters in network.waiting.items() if party in {0, SERVER}}
    assert not network.states[SERVER].aggregate.any()
    return network.cost(range(1))


class _Others:
    """The users of a round but for user 0, in what user 0 and the server see of them: their updates are zeros."""

    def __init__(self, p: lightsecagg.Parameters, links: SealedLinks, away: tuple[int, ...]) -> None:
        self._p, self._links = p, links
        self._left = [user for user in range(1, p.N) if user not in set(away)]
        self._drawn = _Drawn(lightsecagg.draw_randomness, p)
        zeros = p.field.zeros
        self._masks, self._noise = zeros(p.d), zeros(p.T * p.share_length).reshape(p.T, -1)
        self.sending = (self._shares, self._updates, self._answers)

    def sampled(self, user: int) -> Randomness:
        """Return what a user samples."""
        return self._drawn[user]

    def _shares(self) -> Iterator[codec.Message]:
        p = self._p
        first = p.code.columns[:, :1].T.copy()
        for user in range(1, p.N):
            sampled = self.sampled(user)
            rows = [*p.code.sub_masks(sampled["mask"]), *sampled["noise"]]
            share = p.field.matmul(first, np.stack(rows))[0]
            payload = self._links.close(user, 0, codec.vector_bytes(share))
            for receiver in sorted(set(range(p.N)) - {user}):
                yield lightsecagg.MaskShare(SESSION, 0, user, receiver, payload)

    def _updates(self) -> Iterator[codec.Message]:
        for user in (0, *self._left):
            sampled = self.sampled(user)
            self._masks = self._p.field.add(self._masks, sampled["mask"])
            self._noise = self._p.field.add(self._noise, sampled["noise"])
            if user:
                yield lightsecagg.MaskedUpdate(SESSION, 0, user, SERVER, sampled["mask"])

    def _answers(self) -> Iterator[codec.Message]:
        """Yield the shares of the sum of masks: the code is linear."""
        shares = self._p.code.encode(self._masks, self._noise)
        return (lightsecagg.AggregatedShare(SESSION, 0, user, SERVER, shares[user]) for user in self._left)


# ---------------------------------------------------------------------------------------------------- benchmarks

RELAYS = {"advertise_keys", "share_keys", "share"}
"""The phases in which the server relays letters, and computes nothing of the length of an update."""


@cache
def played(protocol: str, p: secagg.Parameters | lightsecagg.Parameters, dropped: int) -> Cost:
    """Play a round once, a large one in a process of its own: what it held would count for programs started later."""
    play: Callable[..., Cost] = of_secagg if protocol == "secagg" else of_lightsecagg
    if p.N < FEW:
        return play(p, dropped)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(play, p, dropped).result()


def _seconds(cost: Cost) -> Sides:
    return Sides(counted(cost.server), counted(cost.user))


def _memory(cost: Cost, d: int) -> Sides:
    return Sides(counted(max(cost.held[phase] for phase in set(cost.held) - RELAYS)), counted(8 * d))


def secagg_seconds(R: int, N: int, D: int, T: int, t: int, k: int, d: int, dropped: int) -> Sides:
    """Take the server of a round of SecAgg+, beside the median user."""
    return _seconds(played("secagg", secagg.Parameters(R, N, D, T, t, k, d), dropped))


def secagg_memory(R: int, N: int, D: int, T: int, t: int, k: int, d: int, dropped: int) -> Sides:
    """Take what the server of SecAgg+ holds in the phases in which it computes, beside a vector of d elements."""
    return _memory(played("secagg", secagg.Parameters(R, N, D, T, t, k, d), dropped), d)


def lightsecagg_seconds(q: int, N: int, D: int, U: int, T: int, d: int, dropped: int) -> Sides:
    """Take the server of a round of LightSecAgg, beside user 0."""
    return _seconds(played("lightsecagg", lightsecagg.Parameters(q, N, D, U, T, d), dropped))


def lightsecagg_memory(q: int, N: int, D: int, U: int, T: int, d: int, dropped: int) -> Sides:
    """Take what the server of LightSecAgg holds in the phases in which it computes, beside a vector."""
    return _memory(played("lightsecagg", lightsecagg.Parameters(q, N, D, U, T, d), dropped), d)


def lightsecagg_relay(q: int, N: int, D: int, U: int, T: int, d: int, dropped: int) -> Sides:
    """Take what the server holds while it relays shares, beside one reference of 8 bytes to each of them."""
    cost = played("lightsecagg", lightsecagg.Parameters(q, N, D, U, T, d), dropped)
    return Sides(counted(cost.held["share"]), counted(8 * N * (N - 1)))


PAIRS = {"R": 2**32, "N": 1000, "D": 149, "T": 100, "t": 29, "k": 56, "d": 100_000}
CODED = {"q": 2**32 - 5, "N": 1000, "D": 148, "U": 852, "T": 100, "d": 100_000}
"""What the planner finds for 1,000 users, of whom a tenth drop out and a tenth collude."""
FEW_PAIRS = {"R": 2**32, "N": 12, "D": 2, "T": 1, "t": 3, "k": 6, "d": 9, "dropped": 1}
FEW_CODED = {"q": 2**32 - 5, "N": 12, "D": 2, "U": 9, "T": 2, "d": 9, "dropped": 2}
_SIDES: Sequence[tuple[str, str, Mapping[str, int], Mapping[str, int], Callable[..., Sides], Callable[..., Sides]]] = (
    ("secagg-plus", "SecAgg+", PAIRS, FEW_PAIRS, secagg_seconds, secagg_memory),
    ("lightsecagg", "LightSecAgg", CODED, FEW_CODED, lightsecagg_seconds, lightsecagg_memory),
)
BENCHMARKS = (
    *(
        benchmark
        for name, words, sizes, few, time, memory in _SIDES
        for benchmark in (
            Benchmark(
                id=f"rounds-{name}",
                what=f"the server computes in a whole round of {words}",
                beside="one of its users computes",
                sizes={**sizes, "dropped": 100},
                tiny=few,
                sides=time,
                turns=1,
                warm=False,
            ),
            Benchmark(
                id=f"rounds-{name}-memory",
                what=f"what the server of {words} holds while it adds up and unmasks, letters apart",
                beside="one vector of d elements, of 8 bytes each",
                sizes={**sizes, "dropped": 100},
                tiny=few,
                sides=memory,
                measures="memory",
                aim=Aim("at most", 6),
                turns=1,
                warm=False,
            ),
        )
    ),
    Benchmark(
        id="rounds-lightsecagg-relay",
        what="what the server of LightSecAgg holds while it relays shares, letters apart",
        beside="one reference of 8 bytes to each letter",
        sizes={**CODED, "dropped": 100},
        tiny=FEW_CODED,
        sides=lightsecagg_relay,
        measures="memory",
        turns=1,
        warm=False,
    ),
)
