"""The cost of protocols: the steps of users, server and authority, timed one by one while a protocol runs.

========================  ==========================================================
papers                    here
========================  ==========================================================
N, K, d                   `users`, `buffer`, `length`
(none)                    `sending`, `after`, `visits`, as in `learning.clock.Costs`
========================  ==========================================================

Times are seconds of processor time, so other programs on the machine do not count. Each is the minimum over several
runs; a user's time is the median over users. Messages arrive at once: network costs are not included. Users communicate
through sealed channels.

Source: spec/experiments.md, section 5 (EXP-20, EXP-32).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.crypto import caches
from secagg_spec.crypto.attribute_boxes import key_ring
from secagg_spec.crypto.boxes import KeyRing, PositionKeys
from secagg_spec.crypto.entropy import SeededSource, draw_scalars
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa import runs as basa_runs
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Event, Network, Outbox, Randomness, Role, Step, run_synchronous

if TYPE_CHECKING:
    from secagg_spec.learning.clock import Costs

Times: TypeAlias = dict[str, Any]
_SESSION, _SEED = bytes(16), b"costs"
_C_L, _C_G, _TAU_MAX, _SLOWLY = 2**16, 64, 10, Staleness.polynomial(1)


@dataclass(frozen=True)
class Setting:
    """The measured case: a protocol with N users in all, K of them in a sum, and d numbers in an update.

    Raises
    ------
    ParameterError
        The protocol is unknown.
    """

    protocol: str
    users: int
    buffer: int
    length: int

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ParameterError("protocol", self.protocol, f"one of {', '.join(PROTOCOLS)}")


def measure(setting: Setting, repeats: int = 3) -> Times:
    """Return the time that the parties of a protocol spend, as plain data (EXP-20).

    Parameters
    ----------
    setting : Setting
    repeats : int
        The number of runs, at least 1; the result is their minimum.

    Returns
    -------
    dict
        ``protocol``, ``users``, ``buffer``, ``length`` and ``repeats``; ``user``: the time of a user for one update;
        ``server`` and ``authority``: their time for one sum; ``sending``, ``after`` and ``visits`` as in `Costs`.
    """
    validate.integer("repeats", repeats, 1)
    return dict(_measured(setting, repeats))


def costs(times: Mapping[str, Any]) -> Costs:
    """Convert the result of `measure` to the costs that a clock counts."""
    from secagg_spec.learning.clock import Costs  # noqa: PLC0415 - of the extra "train", which a plan does without

    return Costs(times["sending"], times["after"], tuple(times["visits"]))


@lru_cache(maxsize=64)
def _measured(setting: Setting, repeats: int) -> Mapping[str, Any]:
    """Measure once in a process: cells with the same setting share their costs."""
    runs = [_run(setting) for _ in range(repeats)]
    named = {"protocol": setting.protocol, "users": setting.users, "buffer": setting.buffer, "length": setting.length}
    return {**named, "repeats": repeats, **{name: _least([run[name] for run in runs]) for name in runs[0]}}


def _run(setting: Setting) -> Times:
    """Return the times of one run; it starts with cold caches (EXP-32)."""
    caches.forget()
    return PROTOCOLS[setting.protocol](setting)


def _least(values: Sequence[Any]) -> Any:
    """Return the minimum of numbers, or the elementwise minimum of lists."""
    return [min(at) for at in zip(*values, strict=True)] if isinstance(values[0], list) else min(values)


# ----------------------------------------------------------------------------------------------------- timed steps


@dataclass(frozen=True)
class Spent:
    """One step: its phase, its party, and the seconds of processor time."""

    phase: str
    party: int
    role: Role
    seconds: float


@dataclass(eq=False)
class Timed(Network):
    """A network that times its steps.

    Before each step it clears cached values that a party would only find because another party of the same process
    computed them.
    """

    spent: list[Spent] = field(default_factory=list)

    def take_on(self, received: Outbox, step: Step[Any], party: int, randomness: Randomness | None = None) -> Event:
        """Let `party` take `step`, and record the time."""

        def timed(*state_and_inbox: Any, **sampled: Any) -> Any:
            begun = time.process_time()
            result = step.take(*state_and_inbox, **sampled)
            self.spent.append(Spent(step.phase, party, step.role, time.process_time() - begun))
            return result

        caches.forget_shared()
        return super().take_on(received, step.taken_by(timed), party, randomness)


def timed(network: Network) -> Timed:
    """Return a timed network in the same state as another one, which must not be used any more."""
    return Timed(network.table, network.states, network.waiting, network.transcript)


def _total(spent: Iterable[Spent], role: Role, *phases: str) -> float:
    """Return the time of a role in some phases, or in all phases if none is named."""
    return sum(one.seconds for one in spent if one.role is role and (not phases or one.phase in phases))


def _each(spent: Iterable[Spent], *phases: str) -> float:
    """Return the time of a user in some phases, each taken once: the sum of the medians over users."""
    times: dict[str, list[float]] = {phase: [] for phase in phases}
    for one in spent:
        if one.role is Role.USER and one.phase in times:
            times[one.phase].append(one.seconds)
    return sum(statistics.median(of_phase) for of_phase in times.values())


# ---------------------------------------------------------------------------------------------------- synchronous


def _none(setting: Setting) -> Times:
    """Return the times without a protocol: the server averages."""
    updates = list(np.zeros((setting.buffer, setting.length)))
    begun = time.process_time()
    fedbuff.average_reals([1] * setting.buffer, updates)
    spent = time.process_time() - begun
    return {"user": 0.0, "server": spent, "authority": 0.0, "sending": 0.0, "after": spent, "visits": []}


def _secagg(setting: Setting) -> Times:
    """Return the times of a round of SecAgg among the K users of a sum, all of them neighbours."""
    K = setting.buffer
    p = secagg.Parameters(R=2**32, N=K, D=0, T=max(1, K // 3), t=max(3, 2 * K // 3), k=K - 1, d=setting.length)
    network = timed(secagg.open_round(p, p.ring.zeros(K * p.d).reshape(K, -1), session=_SESSION, round=0))
    run_synchronous(network, {}, secagg.draw_randomness(p, _sources(K)))
    return _of_round(network, ("advertise_keys", "share_keys", "masked_input"), ("unmasking",))


def _lightsecagg(setting: Setting) -> Times:
    """Return the times of a round of LightSecAgg among the K users of a sum; two thirds of their shares suffice."""
    K = setting.buffer
    p = lightsecagg.Parameters(DEFAULT_PRIME, K, 0, max(2, 2 * K // 3), max(1, K // 3), setting.length)
    link = sealed_links(lightsecagg.sealing_context(p, _SESSION, 0), _privates(K))
    updates = p.field.zeros(K * p.d).reshape(K, -1)
    network = timed(lightsecagg.open_round(p, updates, session=_SESSION, channel=link, round=0))
    run_synchronous(network, {}, lightsecagg.draw_randomness(p, _sources(K)))
    return _of_round(network, ("share", "upload"), ("recover",))


def _of_round(network: Timed, before: tuple[str, ...], later: tuple[str, ...]) -> Times:
    """Return the times of a round whose users send their updates in the last phase of `before`."""
    sending, server = _each(network.spent, *before), _total(network.spent, Role.SERVER)
    answering = _each(network.spent, *later)
    return {
        "user": sending + answering,
        "server": server,
        "authority": 0.0,
        "sending": sending,
        "after": server + answering,
        "visits": [],
    }


def _privates(count: int) -> dict[int, bytes]:
    source = SeededSource(_SEED, "private keys")
    return {user: source.take(KEY_BYTES) for user in range(count)}


def _sources(count: int) -> dict[int, SeededSource]:
    return {user: SeededSource(_SEED, f"user {user}") for user in range(count)}


# --------------------------------------------------------------------------------------------------- asynchronous


def buffered_parameters(N: int, K: int, d: int) -> basecagg.Parameters:
    """Return parameters of BASecAgg: K - 2 users may collude, and the shares of 70 % of the users suffice."""
    T = max(1, min(K - 2, N // 2))
    U = max(T + 1, 7 * N // 10)
    return basecagg.Parameters(DEFAULT_PRIME, N, N - U, U, T, d, K, _C_L, _weight_level(K), _TAU_MAX, _SLOWLY)


def _weight_level(K: int) -> int:
    return _C_G if K <= 20 else 16


def _basecagg(setting: Setting) -> Times:
    """Return the times of a buffer of BASecAgg, which is LightSecAgg in asynchronous learning.

    While a user computes, it also stores the shares of others; nobody waits for that. The buffer is the second one of a
    session, so the users already share keys.
    """
    p = buffered_parameters(setting.users, setting.buffer, setting.length)
    links = basecagg_runs.sealed_channels(basecagg.sealing_context(p, _SESSION), _privates(p.N))
    network = timed(basecagg_runs.open_session(p, session=_SESSION, channels=links, round=0))
    turns: list[basecagg_runs.Turn] = [
        *map(basecagg_runs.Start, range(p.K)),
        *map(basecagg_runs.Upload, range(p.K)),
        basecagg_runs.Recover(tuple(range(p.U))),
    ]
    drawn = basecagg_runs.draw_randomness(p, SeededSource(_SEED, "basecagg"), [*turns, *turns])
    supplies = basecagg_runs.supplies(p, [p.field.zeros(p.d)] * (2 * p.K), drawn)
    play = basecagg_runs.Play(network, supplies, basecagg.user_trained)
    basecagg_runs.run_turns(play, turns)
    already = len(network.spent)
    basecagg_runs.run_turns(play, turns)
    return _of_buffer(network.spent[already:], p.K)


def _of_buffer(spent: Sequence[Spent], K: int) -> Times:
    own, answer = _each(spent, "request", "share", "upload"), _each(spent, "recover")
    handling = _total(spent, Role.SERVER, "request", "share", "upload") / K
    after = _total(spent, Role.SERVER, "close", "recover") + answer
    return {
        "user": own + (K - 1) * _each(spent, "hold") + answer,
        "server": _total(spent, Role.SERVER),
        "authority": 0.0,
        "sending": own + handling,
        "after": after,
        "visits": [],
    }


def position_parameters(N: int, K: int, d: int) -> basa_cores.Parameters:
    """Return parameters of BASA as in the paper: no spare positions, and a timeout ends the epoch."""
    return replace(basa_cores.PRESETS["paper"], N=max(N, K), T=1, d=d, K=K, c_g=_weight_level(K))


def _by_position(setting: Setting) -> Times:
    return _basa(setting, PositionKeys())


def _by_attributes(setting: Setting) -> Times:
    return _basa(setting, attribute_ring())


def attribute_ring() -> KeyRing:
    """Return the keys of an authority that encrypts by attributes."""
    alpha, beta = draw_scalars(SeededSource(_SEED, "master"), 2)
    return key_ring(alpha=alpha, beta=beta)


def _basa(setting: Setting, ring: KeyRing) -> Times:
    """Return the times of an epoch of BASA, including the opening of the next one.

    A visit lasts from the request until the authority and the server have settled it.
    """
    p = position_parameters(setting.users, setting.buffer, setting.length)
    run = basa_runs.Run(p, SeededSource(_SEED, "basa"), session=_SESSION, ring=ring, round=0)
    run.network = network = timed(run.network)
    visits, users = [], []
    for user in range(p.K):
        already = len(network.spent)
        run.upload(user, p.ring.zeros(p.d), 0, 0.5)
        visits.append(sum(one.seconds for one in network.spent[already:]))
        users.append(_total(network.spent[already:], Role.USER))
    already = len(network.spent)
    run.close()
    run.upload(0, p.ring.zeros(p.d), 1, 0.5)
    after = [one for one in network.spent[already:] if one.phase in {"close", "recover", "open"}]
    steps = [*network.spent[:already], *after]
    return {
        "user": statistics.fmean(users),
        "server": _total(steps, Role.SERVER),
        "authority": _total(steps, Role.AUTHORITY),
        "sending": 0.0,
        "after": sum(one.seconds for one in after),
        "visits": visits,
    }


PROTOCOLS: Mapping[str, Callable[[Setting], Times]] = {
    "none": _none,
    "secagg": _secagg,
    "lightsecagg": _lightsecagg,
    "basecagg": _basecagg,
    "basa": _by_position,
    "basa by attributes": _by_attributes,
}
