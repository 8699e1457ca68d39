"""Rounds of each protocol at one setting, with what they send and compute counted while they run."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.crypto import keys, prg, signatures
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.basa import round as basa
from secagg_spec.protocols.basa import runs as basa_runs
from secagg_spec.protocols.basa.cores import Parameters as BasaParameters
from secagg_spec.protocols.basa.messages import PositionUpload
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters as HeteroParameters
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.active import PrivateKeys
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.graph import draw_order
from secagg_spec.protocols.steps import SERVER, Event, Network, Role, Step, Table, run_synchronous, sizes
from secagg_spec.selection import batches
from secagg_spec.simulate import lightsecagg as simulated_lightsecagg
from secagg_spec.simulate import secagg as simulated_secagg

Users: TypeAlias = tuple[int, ...]
SEED = bytes(32)


@dataclass(frozen=True)
class Setting:
    """N users of whom D drop out before they upload, T colluders, d elements."""

    N: int
    D: int
    T: int
    d: int


COMMON = Setting(20, 4, 3, 1000)
SMALL = replace(COMMON, d=20)


@dataclass(frozen=True, eq=False)
class Played:
    """A round that was run: all steps, and whose updates are in the sum."""

    transcript: Sequence[Event]
    contributors: Users


@dataclass(frozen=True)
class Entrant:
    """A protocol in a profile: how its rounds are run, and who drops out of the round that is counted.

    `play` takes parameters and, for each phase, the users that drop out before it; `spread` is the order in which
    users drop out when the fewest are sought that end a round.
    """

    key: str
    title: str
    page: str
    table: Table
    upload: type[Message]
    parameters: Callable[[Setting], Any]
    play: Callable[[Any, Mapping[str, Users]], Played]
    spread: Users
    lost: Users
    active: bool = False

    @functools.cached_property
    def uploads(self) -> str:
        """The phase in which users send their masked updates."""
        (phase,) = {step.phase for step in self.table if self.upload in step.sends}
        return phase

    @functools.cached_property
    def answers(self) -> tuple[str, ...]:
        """The phases in which users send something after their masked updates."""
        rows = [step for step in self.table if step.role is Role.USER and step.sends]
        at = next(at for at, step in enumerate(rows) if self.upload in step.sends)
        return tuple(step.phase for step in rows[at + 1 :])


# ------------------------------------------------------------------------------------------------------ counting


@dataclass
class Work:
    """What one party did: mask elements expanded, pairs of keys agreed on, and so on."""

    mask_elements: int = 0
    products: int = 0
    shares: int = 0
    recovered: int = 0
    signed: int = 0
    verified: int = 0
    agreed: set[tuple[bytes, bytes]] = field(default_factory=set)

    @property
    def agreements(self) -> int:
        """How many different pairs of keys were agreed on."""
        return len(self.agreed)


@contextlib.contextmanager
def counting() -> Iterator[Mapping[int, Work]]:
    """Count, by party, what the steps of all networks compute while this lasts."""
    done: dict[int, Work] = defaultdict(Work)
    turn = [SERVER]
    takes, multiplies, weighs = Network.take_on, Ring.matmul, Ring.weighted_sum

    def take_on(network: Network, received: Any, step: Step[Any], party: int, randomness: Any = None) -> Event:
        turn[0] = party
        return takes(network, received, step, party, randomness)

    def matmul(ring: Ring, a: Any, b: Any) -> Any:
        done[turn[0]].products += a.size * (b.size // b.shape[0])
        return multiplies(ring, a, b)

    def weighted_sum(ring: Ring, weights: Any, rows: Any, **named: Any) -> Any:
        before, result = done[turn[0]].products, weighs(ring, weights, rows, **named)
        done[turn[0]].products = before + len(weights) * len(result)
        return result

    def note(name: str, count: Callable[..., int]) -> Callable[..., None]:
        def add(*given: Any, **named: Any) -> None:
            work = done[turn[0]]
            setattr(work, name, getattr(work, name) + count(*given, **named))

        return add

    def agree(private: bytes, public: bytes) -> None:
        done[turn[0]].agreed.add((private, public))

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(Network, "take_on", take_on))
        stack.enter_context(patch.object(Ring, "matmul", matmul))
        stack.enter_context(patch.object(Ring, "weighted_sum", weighted_sum))
        for function, note_of in (
            (prg.stream, note("mask_elements", lambda key, ring, n: n)),
            (keys.agree, agree),
            (signatures.sign, note("signed", lambda *given: 1)),
            (signatures.verify, note("verified", lambda *given: 1)),
            (shamir.share, note("shares", lambda secret, coefficients, users: len(users))),
            (shamir.reconstruct, note("recovered", lambda t, users, shares: 1)),
        ):
            for module in _users_of(function):
                stack.enter_context(patch.object(module, function.__name__, _telling(function, note_of)))
        yield done


_BY_MODULE = (shamir.__name__, prg.__name__, signatures.__name__)
"""Modules of which no function calls another one that is counted; protocols call theirs by module."""


def _users_of(function: Callable[..., Any]) -> list[Any]:
    """Return the modules of the package that call a function by this name; one that is called by its module, too."""
    name, home = function.__name__, function.__module__
    loaded = [module for path, module in sorted(sys.modules.items()) if path.startswith("secagg_spec.")]
    named = [module for module in loaded if vars(module).get(name) is function]
    return [module for module in named if module.__name__ != home or home in _BY_MODULE]


def _telling(function: Callable[..., Any], note_of: Callable[..., None]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        note_of(*given, **named)
        return function(*given, **named)

    return call


@dataclass(frozen=True, eq=False)
class Counted:
    """What a round cost: bytes by party and way, work by party, and who contributed."""

    played: Played
    sent: Counter[int]
    received: Counter[int]
    work: Mapping[int, Work]

    def most(self, count: Callable[[int], int]) -> int:
        """Return the largest of a number over the contributors."""
        return max(count(user) for user in self.played.contributors)


@functools.cache
def counted(entrant: Entrant, setting: Setting = COMMON) -> Counted:
    """Run a round in which `entrant.lost` drop out before they upload, and count."""
    with counting() as work:
        played = entrant.play(entrant.parameters(setting), {entrant.uploads: entrant.lost})
    sent, received = Counter[int](), Counter[int]()
    for event in played.transcript:
        sent[event.party] += sizes(event.sent)
        received[event.party] += sizes(event.received)
    return Counted(played, sent, received, dict(work))


def tolerated(entrant: Entrant, phase: str, guess: int = 0) -> int:
    """Return how many users may drop out before a phase, in the order of `spread`, and the round still gives a sum.

    A guess shortens the search.
    """
    low, high, middle = 0, len(entrant.spread), guess or len(entrant.spread) // 2
    while low + 1 < high:
        ended = summed(entrant, entrant.spread[:middle], phase) is None
        low, high = (low, middle) if ended else (middle, high)
        middle = low + 1 if middle == guess and not ended else (low + high) // 2
    return low


@functools.cache
def summed(entrant: Entrant, lost: Users, phase: str | None = None) -> frozenset[int] | None:
    """Return whose updates are in the sum of a round out of which some drop, before they upload or before a phase."""
    try:
        played = entrant.play(entrant.parameters(SMALL), {phase or entrant.uploads: lost})
    except TooFewSurvivors:
        return None
    return frozenset(played.contributors)


# ---------------------------------------------------------------------------------------------------- the rounds


def _sources(N: int) -> dict[int, SeededSource]:
    return {user: SeededSource(SEED, f"user {user}") for user in range(N)}


def _updates(N: int, d: int) -> Any:
    """Return updates that fit every ring: zeros and ones."""
    return draw_elements(SeededSource(SEED, "updates"), Ring(2), (N, d))


def _base(state: Any) -> Any:
    return getattr(state, "base", state)


def _secagg(p: Any, lost: Mapping[str, Users]) -> Played:
    order = None if p.complete else draw_order(SeededSource(SEED, "order"), p.N)
    network = simulated_secagg.network_of(p, _updates(p.N, p.d), order, SEED)
    run_synchronous(network, lost, secagg.draw_randomness(p, _sources(p.N)))
    return Played(network.transcript, _base(network.states[SERVER]).survivors)


def _heterosag(p: Any, lost: Mapping[str, Users]) -> Played:
    network = heterosag.open_round(p, _updates(p.N, p.d), session=bytes(16), round=0)
    run_synchronous(network, lost, secagg.draw_randomness(p, _sources(p.N)))
    return Played(network.transcript, network.states[SERVER].base.survivors)


def _multi_round(p: Any, lost: Mapping[str, Users]) -> Played:
    chosen = tuple(range(p.selection.K))
    network = multi_round.open_round(p, chosen, _updates(len(chosen), p.round.d), session=bytes(16), round=0)
    run_synchronous(network, lost, multi_round.draw_randomness(p, _sources(len(chosen))))
    return Played(network.transcript, network.states[SERVER].survivors)


def _lightsecagg(p: Any, lost: Mapping[str, Users]) -> Played:
    network = simulated_lightsecagg.network_of(p, _updates(p.N, p.d), SEED)
    run_synchronous(network, lost, lightsecagg.draw_randomness(p, _sources(p.N)))
    return Played(network.transcript, _base(network.states[SERVER]).surviving)


def _basecagg(p: Any, lost: Mapping[str, Users]) -> Played:
    """Let all users share masks, and those that are left upload until the buffer is full, and answer."""
    dropped = set(lost.get("upload", ()))
    away = dropped | set(lost.get("recover", ())) | set(lost.get("confirm", ()))
    left = [user for user in range(p.N) if user not in dropped][: p.K]
    if len(left) < p.K:
        raise TooFewSurvivors(f"{len(left)} updates do not fill a buffer of K = {p.K}")
    turns: list[Any] = [basecagg_runs.Start(user) for user in range(p.N)]
    turns += [basecagg_runs.Upload(user) for user in left]
    turns += [basecagg_runs.Recover(tuple(user for user in range(p.N) if user not in away))]
    drawn = basecagg_runs.draw_randomness(p, SeededSource(SEED, "masks"), turns)
    supplies = basecagg_runs.supplies(p, list(_updates(p.K, p.d)), drawn)
    network, trained = _basecagg_network(p)
    result = basecagg_runs.run_turns(basecagg_runs.Play(network, supplies, trained), turns)
    return Played(result.transcript, tuple(entry.user for entry in result.buffers[0].entries))


def _basecagg_network(p: Any) -> tuple[Network, Callable[..., Any]]:
    privates = {user: SeededSource(SEED, f"key {user}").take(KEY_BYTES) for user in range(p.N)}
    if isinstance(p, basecagg_active.Parameters):
        signing = {user: SeededSource(SEED, f"signing key {user}").take(KEY_BYTES) for user in range(p.N)}
        pairs = {user: PrivateKeys(privates[user], signing[user]) for user in range(p.N)}
        return basecagg_active.open_session(p, keys=pairs, session=bytes(16), round=0), basecagg_active.user_trained
    channels = basecagg_runs.sealed_channels(basecagg.sealing_context(p, bytes(16)), privates)
    return basecagg_runs.open_session(p, channels=channels, session=bytes(16), round=0), basecagg.user_trained


def _basa(p: Any, lost: Mapping[str, Users]) -> Played:
    """Let users come one after another until the buffer is full; those that are lost time out with their keys."""
    dropped, run = (
        set(lost.get("upload", ())),
        basa_runs.Run(p, SeededSource(SEED, "session"), session=bytes(16), round=0),
    )
    update = _updates(p.N, p.d)
    taken: list[int] = []
    for user in range(p.N):
        if len(taken) == p.K or len(run.server.places) == p.positions:
            break
        if user in dropped:
            run.expire(user, 0, keyed=True)
        else:
            run.upload(user, update[user], 0, 0.5)
            taken.append(user)
    recovered = run.close()
    return Played(run.transcript, tuple(entry.user for entry in recovered.entries))


# ------------------------------------------------------------------------------------------------- the parameters


def _secagg_numbers(s: Setting) -> dict[str, int]:
    return {"R": 2**32, "N": s.N, "D": s.D, "T": s.T, "d": s.d}


def secagg_parameters(s: Setting) -> secagg.Parameters:
    """Return SecAgg's, with a threshold of more than half."""
    return secagg.Parameters(**_secagg_numbers(s), t=s.N // 2 + 1, k=s.N - 1)


def _secagg_active(s: Setting) -> secagg_active.Parameters:
    return secagg_active.Parameters(**_secagg_numbers(s), t=(s.N + s.T) // 2 + 1, k=s.N - 1)


def secagg_plus_parameters(s: Setting) -> secagg.Parameters:
    """Return SecAgg+'s, with 2 log2(N) neighbours, and a threshold of more than half of them."""
    k = 2 * (s.N - 1).bit_length()
    return secagg.Parameters(**_secagg_numbers(s), t=k // 2 + 1, k=k)


def _coded(s: Setting) -> dict[str, Any]:
    return {"q": DEFAULT_PRIME, "N": s.N, "D": s.D, "U": s.N - s.D, "T": s.T, "d": s.d}


def lightsecagg_parameters(s: Setting) -> lightsecagg.Parameters:
    """Return LightSecAgg's, with as many answers as are left."""
    return lightsecagg.Parameters(**_coded(s))


def _lightsecagg_active(s: Setting) -> lightsecagg_active.Parameters:
    return lightsecagg_active.Parameters(**_coded(s), W=(s.N + s.T) // 2 + 1)


def basecagg_parameters(s: Setting) -> basecagg.Parameters:
    """Return BASecAgg's, with a buffer of those that are left."""
    levels: dict[str, Any] = {"c_l": 2**16, "c_g": 64, "tau_max": 10, "staleness": Staleness.polynomial(1)}
    return basecagg.Parameters(**_coded(s), K=s.N - s.D, **levels)


def _basecagg_active(s: Setting) -> basecagg_active.Parameters:
    return basecagg_active.with_signatures(basecagg_parameters(s), max((s.N + s.T) // 2 + 1, s.N - s.D))


def basa_parameters(s: Setting) -> BasaParameters:
    """Return BASA's, with a buffer of those that are left and a spare position for each that times out."""
    levels: dict[str, Any] = {"c_l": 2**16, "c_g": 64, "tau_max": 10, "staleness": Staleness.polynomial(1)}
    return BasaParameters(R=DEFAULT_PRIME, N=s.N, T=s.T, d=s.d, K=s.N - s.D, S=s.D, **levels)


def heterosag_parameters(s: Setting) -> HeteroParameters:
    """Return HeteroSAg's, with three groups, of 2, 4 and 8 bits."""
    sizes = tuple(len(part) for part in np.array_split(range(s.N), 3))
    return HeteroParameters(s.N, s.D, s.T, s.N // 2 + 1, s.d, sizes, (1, 1, 1), (4, 16, 256), Range(-1.0, 1.0))


def heterosag_lost(s: Setting) -> Users:
    """Return D users, as evenly from the groups as they come, so that no group is left with too few."""
    each = -(-s.D // 3)
    return tuple(user for part in heterosag_parameters(s).members for user in part[:each])[: s.D]


def multi_round_parameters(s: Setting) -> multi_round.Parameters:
    """Return those of Multi-RoundSecAgg: N of 2 N users in a round of SecAgg, in batches of T + 2."""
    size = s.T + 2
    base = secagg.Parameters(**_secagg_numbers(s), t=s.N // 2 + 1, k=s.N - 1)
    return multi_round.Parameters(batches.Parameters(2 * s.N, s.N, size), base)


_EVERYBODY = tuple(range(COMMON.N))


def _entrants() -> Iterator[Entrant]:
    first = tuple(range(COMMON.D))
    common: dict[str, Any] = {"spread": _EVERYBODY, "lost": first}
    pairs = (secagg.TABLE, secagg.MaskedInput)
    signed = (secagg_active.TABLE, secagg.MaskedInput)
    coded = (lightsecagg.TABLE, lightsecagg.MaskedUpdate)
    confirmed = (lightsecagg_active.TABLE, lightsecagg.MaskedUpdate)
    stamped = basecagg.StampedUpdate
    yield Entrant("secagg", "SecAgg", "secagg.md", *pairs, secagg_parameters, _secagg, **common)
    yield Entrant("secagg-active", "SecAgg", "secagg.md", *signed, _secagg_active, _secagg, **common, active=True)
    yield Entrant("secagg-plus", "SecAgg+", "secagg.md", *pairs, secagg_plus_parameters, _secagg, **common)
    yield Entrant(
        "lightsecagg", "LightSecAgg", "lightsecagg.md", *coded, lightsecagg_parameters, _lightsecagg, **common
    )
    yield Entrant(
        "lightsecagg-active", "LightSecAgg", "lightsecagg.md", *confirmed, _lightsecagg_active, _lightsecagg,
        **common, active=True,
    )  # fmt: skip
    yield Entrant(
        "basecagg", "BASecAgg", "basecagg.md", basecagg.TABLE, stamped, basecagg_parameters, _basecagg, **common
    )
    yield Entrant(
        "basecagg-active", "BASecAgg", "basecagg.md", basecagg_active.TABLE, stamped, _basecagg_active, _basecagg,
        **common, active=True,
    )  # fmt: skip
    yield Entrant("basa", "BASA", "basa.md", basa.TABLE, PositionUpload, basa_parameters, _basa, **common)
    yield Entrant(
        "heterosag", "HeteroSAg", "heterosag.md", heterosag.TABLE, heterosag.MaskedSegments, heterosag_parameters,
        _heterosag, spread=tuple(reversed(_EVERYBODY)), lost=heterosag_lost(COMMON),
    )  # fmt: skip
    yield Entrant(
        "multi-round", "Multi-RoundSecAgg", "multi-round.md", *pairs, multi_round_parameters, _multi_round,
        spread=tuple(user for start in range(5) for user in range(start, COMMON.N, 5)), lost=first,
    )  # fmt: skip


ENTRANTS: Mapping[str, Entrant] = MappingProxyType({entrant.key: entrant for entrant in _entrants()})
"""The protocols that are compared, in the order of the page."""
