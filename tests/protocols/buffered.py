"""A session of BASecAgg under a test's hand, in either profile, and parameters to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness, floor_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg.round import Entry, Parameters, Recovered
from secagg_spec.protocols.basecagg.runs import open_session
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg.active import PrivateKeys
from secagg_spec.protocols.steps import SERVER, Event, Network, Randomness, Role, Step
from tests.strategies import primes, pseudorandom, snapshot

FUNCTIONS = (
    Staleness.constant(),
    Staleness.polynomial(1),
    Staleness.polynomial("1/2"),
    Staleness.polynomial(2),
    Staleness.hinge(1, 1),
    Staleness.hinge("1/2", 0),
)
KEYS = {user: PrivateKeys(bytes([user + 1]) * 32, bytes([user + 101]) * 32) for user in range(10)}


@st.composite
def sessions(draw: st.DrawFn, max_users: int = 6) -> Parameters:
    """Parameters that BSA-01 and BSA-02 allow, small."""
    T = draw(st.integers(1, max_users - 2))
    K = draw(st.integers(T + 2, max_users))
    U = draw(st.integers(T + 1, max_users))
    N = draw(st.integers(max(K, U), max_users))
    s, tau_max = draw(st.sampled_from(FUNCTIONS)), draw(st.integers(0, 4))
    c_g = draw(st.sampled_from([c for c in (1, 2, 3, 7, 25, 64) if floor_weight(s, c, tau_max)]))
    q = draw(primes(above=max(N, 2 * K * c_g)))
    c_l = draw(st.sampled_from((1, 2, 1000, 65536)))
    return Parameters(q, N, draw(st.integers(0, N - U)), U, T, draw(st.integers(1, 5)), K, c_l, c_g, tau_max, s)


class Scene:
    """A network, the updates that were uploaded, and sampled values from a seed."""

    def __init__(self, parameters: Parameters, seed: int = 1, round: int = 0, network: Network | None = None) -> None:
        self.parameters, self.seed, self.drawn = parameters, seed, 0
        self.active = isinstance(parameters, basecagg_active.Parameters)
        self.network = network or self.opened(round)
        self.table: dict[tuple[str, Role], Step[Any]] = {(step.phase, step.role): step for step in self.network.table}
        self.updates: dict[tuple[int, int], UintArray] = {}

    def opened(self, round: int) -> Network:
        """The network before its first step."""
        if isinstance(self.parameters, basecagg_active.Parameters):
            keys = {user: KEYS[user] for user in range(self.parameters.N)}
            return basecagg_active.open_session(self.parameters, keys=keys, round=round, session=bytes(16))
        return open_session(self.parameters, round=round, session=bytes(16))

    @property
    def server(self) -> Any:
        """The state of the server that both profiles have."""
        return base_of(self.network.states[SERVER])

    def user(self, user: int) -> Any:
        """The state of a user that both profiles have."""
        return base_of(self.network.states[user])

    def step(self, phase: str, party: int) -> Step[Any]:
        """The row of the table."""
        return self.table[phase, Role.SERVER if party == SERVER else Role.USER]

    def sampled(self, step: Step[Any]) -> Randomness:
        """Fresh sampled values for a step."""
        p = self.parameters
        self.drawn += 1
        at = 1000 * self.seed + self.drawn
        values = {
            "mask": pseudorandom(at, p.q, p.d),
            "noise": pseudorandom(at + 500_000, p.q, p.T, p.share_length),
            "rounding": pseudorandom(at, 2**53, p.K) * 2.0**-53,
        }
        return {name: values[name] for name in step.randomness}

    def mail(self, phase: str, party: int) -> tuple[Message, ...]:
        """What waits for a step."""
        return self.network.mail(self.step(phase, party), party)

    def take(self, phase: str, party: int, inbox: Sequence[Message] | None = None) -> Event:
        """Take a step, on all that waits for it or on an inbox."""
        step = self.step(phase, party)
        chosen = self.network.mail(step, party) if inbox is None else tuple(inbox)
        return self.network.take_on(chosen, step, party, self.sampled(step))

    def stamp(self, user: int) -> None:
        """A user asks, and shares a mask under the stamp that it gets."""
        for phase, party in (("request", user), ("request", SERVER), ("share", user)):
            self.take(phase, party)

    def start(self, *users: int, holders: Sequence[int] | None = None) -> None:
        """Users start, and their shares are relayed, and held by all or by some."""
        for user in users:
            self.stamp(user)
            self.take("share", SERVER)
            for other in range(self.parameters.N) if holders is None else holders:
                if other != user:
                    self.take("hold", other)

    def train(self, user: int, update: UintArray | None = None) -> UintArray:
        """A user gets its update."""
        state, p = self.network.states[user], self.parameters
        self.drawn += 1
        chosen = self.drawn_update() if update is None else update
        self.network.states[user] = (basecagg_active if self.active else basecagg).user_trained(state, chosen)
        assert p.budget >= 1
        return chosen

    def drawn_update(self) -> UintArray:
        """An update that the buffer carries."""
        p = self.parameters
        values = pseudorandom(77 * self.seed + self.drawn, 2 * p.budget + 1, p.d).astype(np.int64) - p.budget
        return p.field.encode_signed(values)

    def upload(self, *users: int) -> None:
        """Users upload, and the server takes what they sent."""
        for user in users:
            update = self.train(user)
            self.take("upload", user)
            self.take("upload", SERVER)
            self.updates[user, self.user(user).stamp] = update

    def fill(self, users: Sequence[int] | None = None) -> tuple[Entry, ...]:
        """Users start and upload, and the server announces its buffer."""
        chosen = range(self.parameters.K) if users is None else users
        self.start(*chosen)
        self.upload(*chosen)
        return self.close()

    def close(self) -> tuple[Entry, ...]:
        """The server announces its buffer."""
        self.take("close", SERVER)
        entries: tuple[Entry, ...] = self.server.entries
        return entries

    def answer(self, users: Sequence[int]) -> None:
        """Users answer the buffer; in the active profile, all of these confirm it first."""
        now = self.server.round
        for phase in ("confirm", "recover") if self.active else ("recover",):
            for user in users:
                self.take(phase, user, [m for m in self.mail(phase, user) if m.round == now])
            if phase == "confirm":
                self.take("confirm", SERVER)

    def recover(self, users: Sequence[int] | None = None) -> Recovered:
        """Users answer, and the server recovers."""
        self.answer(range(self.parameters.N) if users is None else users)
        self.take("recover", SERVER)
        recovered: Recovered = self.server.recovered
        return recovered

    def plain_sum(self, entries: Sequence[Entry]) -> list[int]:
        """The weighted sum modulo q of the updates of a buffer, by Python integers."""
        return [value % self.parameters.q for value in self.signed_sum(entries)]

    def signed_sum(self, entries: Sequence[Entry]) -> list[int]:
        """The weighted sum of the decoded updates of a buffer, by Python integers."""
        q = self.parameters.q
        rows = [[entry.weight * signed(int(v), q) for v in self.updates[entry.user, entry.stamp]] for entry in entries]
        return [sum(column) for column in zip(*rows, strict=True)]

    def refused(
        self,
        phase: str,
        party: int,
        error: type[Exception],
        inbox: Sequence[Message] | None = None,
        blamed: Sequence[int] | None = None,
    ) -> Any:
        """The refusal of a step, which leaves everything as it was."""
        before = snapshot([self.network.states, self.network.waiting, len(self.network.transcript)])
        with pytest.raises(error) as caught:
            self.take(phase, party, inbox)
        assert type(caught.value) is error, repr(caught.value)
        assert snapshot([self.network.states, self.network.waiting, len(self.network.transcript)]) == before
        if blamed is not None:
            assert caught.value.blamed == set(blamed)  # type: ignore[attr-defined]
        return caught.value


def base_of(state: Any) -> Any:
    """The state that both profiles have."""
    return getattr(state, "base", state)


def signed(value: int, q: int) -> int:
    """The integer that an element stands for."""
    return value if value <= (q - 1) // 2 else value - q


def altered(message: Any, q: int, at: int = 0, delta: int = 1) -> Any:
    """An answer with another element at one place."""
    share = message.share.copy()
    share[at] = (int(share[at]) + delta) % q
    return replace(message, share=share)


def aged(parameters: Parameters, ages: Sequence[int], seed: int = 1, make: Callable[..., Any] = Scene) -> Any:
    """A scene whose buffer is about to be closed, with the users 0 … K - 1 at these ages.

    Before, the server recovered as many buffers as the greatest age; in each of them are the users that have yet to
    start last, or others. All N users hold all shares.
    """
    p = parameters
    scene = make(p, seed)
    for now in range(max(ages), 0, -1):
        scene.start(*[user for user, age in enumerate(ages) if age == now])
        scene.network.states[SERVER] = advanced(scene.network.states[SERVER])
    scene.start(*[user for user, age in enumerate(ages) if age == 0])
    scene.upload(*range(len(ages)))
    return scene


def advanced(state: Any) -> Any:
    """The server one round later, as after a buffer of others."""
    if hasattr(state, "base"):
        return replace(state, base=advanced(state.base))
    return replace(state, round=state.round + 1)
