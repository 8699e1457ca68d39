"""A session of BASA under a test's hand, and parameters to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import floor_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.boxes import KeyRing
from secagg_spec.crypto.entropy import SeededSource, draw_rounding
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.basa.authority import AuthorityState
from secagg_spec.protocols.basa.cores import PRESETS, VOID, Parameters
from secagg_spec.protocols.basa.messages import PositionUpload
from secagg_spec.protocols.basa.runs import draw_hidden, draw_signing_keys, open_session
from secagg_spec.protocols.basa.server import Entry, Recovered, ServerState
from secagg_spec.protocols.basa.user import UserState, user_trained
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Event, Network, Role, Step, role_of
from tests.protocols.buffered import FUNCTIONS
from tests.strategies import integers_of, pseudorandom, snapshot

TINY = PRESETS["tiny"]
CLOSED = replace(TINY, S=0, timeouts=VOID)
"""The smallest session of the profile *void*."""
PROFILES = (TINY, CLOSED)
SESSION = bytes(16)


@st.composite
def sessions(draw: st.DrawFn, most: int = 12) -> Parameters:
    """Parameters that BAA-01 and BAA-02 allow, with at most `most` positions."""
    T = draw(st.integers(1, 3))
    K = draw(st.integers(T + 2, max(T + 2, most - 2)))
    settle = draw(st.booleans())
    S = draw(st.integers(0, max(0, most - K))) if settle else 0
    s, tau_max = draw(st.sampled_from(FUNCTIONS)), draw(st.integers(0, 4))
    c_g = draw(st.sampled_from([c for c in (1, 2, 3, 7, 25, 64) if floor_weight(s, c, tau_max)]))
    R = draw(st.sampled_from([R for R in (16, 2**16, 2**32, 2**32 - 5, 3**20) if K * c_g <= (R - 1) // 2]))
    d, c_l = draw(st.integers(1, 5)), draw(st.sampled_from((1, 2, 65536)))
    numbers: dict[str, Any] = {"R": R, "N": K + S + draw(st.integers(0, 3)), "T": T, "d": d, "K": K, "S": S}
    levels: dict[str, Any] = {"c_l": c_l, "c_g": c_g, "tau_max": tau_max, "staleness": s}
    return Parameters(**numbers, **levels, timeouts="settle" if settle else "void")


class Scene:
    """A network, the updates in hand and uploaded, and sampled values from a seed."""

    def __init__(self, parameters: Parameters, seed: int = 1, round: int = 0, ring: KeyRing | None = None) -> None:
        self.parameters, self.seed, self.drawn = parameters, seed, 0
        self.source = SeededSource(seed.to_bytes(4, "little"), "basa")
        self.keys = draw_signing_keys(parameters, self.source)
        self.network: Network = open_session(parameters, self.keys, session=SESSION, round=round, ring=ring)
        self.table: dict[tuple[str, Role], Step[Any]] = {(step.phase, step.role): step for step in self.network.table}
        self.updates: dict[int, UintArray] = {}
        self.uploads: dict[tuple[int, int], tuple[UintArray, PositionUpload]] = {}
        self.sampled: list[dict[str, Any]] = []

    # ------------------------------------------------------------------------------------------------- states

    @property
    def server(self) -> ServerState:
        """The state of the server."""
        state: ServerState = self.network.states[SERVER]
        return state

    @property
    def authority(self) -> AuthorityState:
        """The state of the authority."""
        state: AuthorityState = self.network.states[AUTHORITY]
        return state

    def user(self, user: int) -> UserState:
        """The state of a user."""
        state: UserState = self.network.states[user]
        return state

    @property
    def epoch(self) -> int:
        """The epoch of the server."""
        assert self.server.epoch is not None
        return self.server.epoch

    # -------------------------------------------------------------------------------------------------- steps

    def step(self, phase: str, party: int) -> Step[Any]:
        """The row of the table."""
        return self.table[phase, role_of(party)]

    def draw(self, step: Step[Any], given: dict[str, Any]) -> dict[str, Any]:
        """Sampled values for a step: those that are given, and fresh ones."""
        hidden = {
            **draw_hidden(self.parameters, step, self.source),
            "rounding": float(draw_rounding(self.source, 1)[0]),
        }
        values = {name: given.get(name, hidden.get(name)) for name in step.randomness}
        self.sampled.append(values)
        return values

    def mail(self, phase: str, party: int) -> tuple[Message, ...]:
        """What waits for a step."""
        return self.network.mail(self.step(phase, party), party)

    def take(self, phase: str, party: int, inbox: Sequence[Message] | None = None, **given: Any) -> Event:
        """Take a step, on all that waits for it or on an inbox."""
        step = self.step(phase, party)
        chosen = self.network.mail(step, party) if inbox is None else tuple(inbox)
        return self.network.take_on(chosen, step, party, self.draw(step, given))

    def refuse(
        self,
        error: type[Exception],
        blamed: Sequence[int] | None,
        phase: str,
        party: int,
        inbox: Sequence[Message] | None = None,
        **given: Any,
    ) -> None:
        """Have a step refused, by exactly this error, with exactly this blame, and without a trace (ERR-01)."""
        before = snapshot([self.network.states[party], self.network.waiting, len(self.network.transcript)])
        with pytest.raises(error) as refused:
            self.take(phase, party, inbox, **given)
        assert type(refused.value) is error
        if blamed is not None:
            assert isinstance(refused.value, ProtocolError)
            assert refused.value.blamed == frozenset(blamed)
        after = snapshot([self.network.states[party], self.network.waiting, len(self.network.transcript)])
        assert after == before

    # -------------------------------------------------------------------------------------------------- turns

    def open(self) -> None:
        """Open the next epoch."""
        self.take("open", AUTHORITY)
        self.take("open", SERVER)

    def train(self, user: int, update: UintArray | None = None, stamp: int | None = None) -> UintArray:
        """A user gets an update, of the present epoch when nothing is said."""
        chosen = self.drawn_update() if update is None else update
        newest = self.server.epoch or 0
        self.network.states[user] = user_trained(self.user(user), chosen, newest if stamp is None else stamp)
        self.updates[user] = chosen
        return chosen

    def drawn_update(self) -> UintArray:
        """An update that the buffer can carry."""
        self.drawn += 1
        p = self.parameters
        ints = pseudorandom(1000 * self.seed + self.drawn, 2 * p.budget + 1, p.d).astype(np.int64) - p.budget
        return (ints % p.R).astype(np.uint64)

    def offer(self, user: int, update: UintArray | None = None, stamp: int | None = None) -> None:
        """A user gets an update and is offered the position, and the authority knows."""
        self.train(user, update, stamp)
        for phase, party in (("request", user), ("offer", SERVER), ("assign", AUTHORITY)):
            self.take(phase, party)

    def key(self, user: int) -> None:
        """A user fetches the key that it was offered; it waits for the user."""
        self.take("fetch", user)
        self.take("issue", AUTHORITY)

    def keyed(self, user: int, update: UintArray | None = None, stamp: int | None = None) -> None:
        """A user is offered the position and gets its key."""
        self.offer(user, update, stamp)
        self.key(user)

    def send(self, user: int, **given: Any) -> PositionUpload:
        """A user that has its key uploads."""
        (message,) = self.take("upload", user, **given).sent
        assert isinstance(message, PositionUpload)
        self.uploads[message.round, message.position] = self.updates[user], message
        return message

    def settle(self) -> None:
        """The authority settles what it was told, and the server follows."""
        self.take("settle", AUTHORITY)
        self.take("settle", SERVER)

    def upload(self, *users: int, stamp: int | None = None, **given: Any) -> None:
        """Users upload one after another, and all is settled."""
        for user in users:
            self.keyed(user, stamp=stamp)
            self.send(user, **given)
            self.take("take", SERVER)
            self.settle()

    def expire(self, user: int, *, keyed: bool) -> None:
        """A user is offered the position, has its key or not, and times out; what waits for it is lost."""
        self.offer(user)
        if keyed:
            self.key(user)
        self.take("expire", SERVER)
        self.settle()
        self.network.waiting[user] = []

    def close(self) -> Recovered:
        """The server closes and recovers."""
        self.take("close", SERVER)
        self.take("close", AUTHORITY)
        self.take("recover", SERVER)
        assert self.server.recovered is not None
        return self.server.recovered

    def lose(self) -> None:
        """All that waits is lost."""
        self.network.waiting.clear()

    def recover_rightly(self) -> None:
        """The server closes, and recovers the sum of what was uploaded."""
        recovered = self.close()
        assert integers_of(recovered.sum) == self.plain_sum(recovered.epoch, recovered.entries)

    def abandon(self) -> None:
        """The server gives the epoch up."""
        self.take("abandon", SERVER)
        self.take("abandon", AUTHORITY)

    # --------------------------------------------------------------------------------------------------- sums

    def plain_sum(self, epoch: int, entries: Sequence[Entry]) -> list[int]:
        """The weighted sum of the updates as they were trained, with integers of Python."""
        rows = [[e.weight * int(x) for x in self.uploads[epoch, e.position][0]] for e in entries]
        return [sum(column) % self.parameters.R for column in zip(*rows, strict=True)]


def opened(parameters: Parameters = TINY, seed: int = 1, round: int = 0) -> Scene:
    """A session with its first epoch open."""
    scene = Scene(parameters, seed, round)
    scene.open()
    return scene


def changed(message: Message, **values: Any) -> Message:
    """A message with other fields."""
    return replace(message, **values)


def flipped(data: bytes, at: int = 0, bit: int = 0) -> bytes:
    """Bytes of which one bit is another."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


Change = Callable[[Any], Any]
