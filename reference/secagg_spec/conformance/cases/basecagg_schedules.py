"""Draws schedules of BASecAgg: who starts, uploads and abandons when, and the buffers that result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import basecagg_sessions, strategies
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto.entropy import SeededSource, draw_elements

ROUNDS = "basecagg.rounds"
_MOST = 10


@dataclass(frozen=True)
class Buffer:
    """A recovered buffer: its round, and for each entry the user, the stamp, and the number of its update."""

    round: int
    entries: tuple[tuple[int, int, int], ...]


@dataclass(eq=False)
class Plan:
    """Draws a schedule and knows what has happened in it: who trains under which stamp, and which updates wait.

    `taken` counts the updates that the server accepted. `buffers` are the recovered ones.
    """

    draw: Any
    numbers: Mapping[str, Any]
    round: int
    events: list[dict[str, Any]] = field(default_factory=list)
    stamps: dict[int, int] = field(default_factory=dict)
    training: set[int] = field(default_factory=set)
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)
    taken: int = 0
    buffers: list[Buffer] = field(default_factory=list)

    @property
    def users(self) -> range:
        """The users."""
        return range(self.numbers["N"])

    def can_start(self, user: int) -> bool:
        """Whether the server gives a stamp to a user that asks."""
        return user not in self.training and user not in self.waiting and self.stamps.get(user) != self.round

    def is_fresh(self, user: int) -> bool:
        """Whether a training user's update is not too old."""
        return user in self.training and self.round - self.stamps[user] <= int(self.numbers["tau_max"])

    def has_room(self) -> bool:
        """Whether the buffer has room."""
        return len(self.waiting) < int(self.numbers["K"])

    def start(self, user: int) -> None:
        """Let a user start."""
        self.events.append({"event": "start", "user": user})
        self.stamps[user] = self.round
        self.training.add(user)

    def upload(self, user: int) -> None:
        """Let a user upload."""
        self.events.append({"event": "upload", "user": user})
        self.training.remove(user)
        self.waiting[user] = self.stamps[user], self.taken
        self.taken += 1

    def abandon(self, user: int) -> None:
        """Let a user abandon its training."""
        self.events.append({"event": "abandon", "user": user})
        self.training.remove(user)

    def recover(self, users: Sequence[int]) -> None:
        """Let the buffer be recovered from the answers of some users."""
        self.events.append({"event": "recover", "users": list(users)})
        self.buffers.append(Buffer(self.round, tuple((u, *entry) for u, entry in sorted(self.waiting.items()))))
        self.round += 1
        self.waiting = {}

    def can_abandon(self, user: int) -> bool:
        """Whether a user trains and the others can still fill the buffer."""
        lost = [u for u in self.users if self.stamps.get(u) == self.round and not self._is_busy(u)]
        return user in self.training and (
            self.stamps[user] != self.round or len(self.users) - len(lost) > self.numbers["K"]
        )

    def _is_busy(self, user: int) -> bool:
        return user in self.training or user in self.waiting

    def bustle(self) -> None:
        """Draw some events."""
        for _ in range(self.draw(st.integers(0, _MOST))):
            choices: list[tuple[Callable[[int], None], list[int]]] = [
                (self.start, [user for user in self.users if self.can_start(user)]),
                (self.upload, [user for user in self.users if self.is_fresh(user) and self.has_room()]),
                (self.abandon, [user for user in self.users if self.can_abandon(user)]),
            ]
            act, able = choices[self.draw(st.integers(0, len(choices) - 1))]
            if able:
                act(self.draw(among(able)))

    def fill(self, without: int | None = None) -> None:
        """Let users except `without` come until the buffer is full. Users that train come first."""
        order = strategies.shuffled(self.draw, [user for user in self.users if user != without])
        for user in sorted(order, key=lambda user: not self.is_fresh(user)):
            if user in self.training and not self.is_fresh(user):
                self.abandon(user)
            if self.has_room() and self.can_start(user):
                self.start(user)
            if self.has_room() and self.is_fresh(user):
                self.upload(user)

    def whole(self) -> None:
        """Draw all events of a buffer, and its recovery."""
        self.bustle()
        self.fill()
        self.recover(strategies.subset(self.draw, self.users, self.numbers["U"]))


@dataclass(frozen=True)
class Session:
    """A schedule, and what its parties are given."""

    plan: Plan
    updates: list[UintArray]
    roundings: list[RealArray]
    params: dict[str, Any]
    rand: dict[str, Any]

    def with_events(self, events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the ``params`` with other events."""
        return {**self.params, "schedule": [dict(event) for event in events]}


def plan(draw: Any, caps: Capabilities, latest: Sequence[int] = (2, 0, 1, 3)) -> Plan:
    """Draw the numbers of a session that the operation declares, and its first round."""
    chosen = strategies.session(draw, caps, ROUNDS)
    N, T, q = chosen["N"], chosen["T"], chosen["q"]
    K = draw(st.integers(T + 2, min(N, (q - 1) // 2, T + 6)))
    numbers = {**chosen, **basecagg_sessions.levels(draw, N, T, (q,), latest, K)}
    return Plan(draw, numbers, int(draw(among(basecagg_sessions.FIRST_ROUNDS))))


def session(draw: Any, drawn: Plan, first: int) -> Session:
    """Draw what the parties of a schedule are given.

    In half of the cases, they are given a little more than they need.
    """
    numbers, more = drawn.numbers, draw(st.integers(0, 1))
    q, d, T, K = (int(numbers[name]) for name in ("q", "d", "T", "K"))
    starts = sum(event["event"] == "start" for event in drawn.events) + more
    recovers = sum(event["event"] == "recover" for event in drawn.events) + more
    uploads = sum(event["event"] == "upload" for event in drawn.events) + more
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "basecagg.rounds")
    rows = T * -(-d // (numbers["U"] - T))
    updates = basecagg_sessions.updates(draw, numbers, uploads)
    roundings = [strategies.rounding(draw, K) for _ in range(recovers)]
    rand = {
        "masks": [pack(draw_elements(source, Ring(q), (d,))) for _ in range(starts)],
        "noises": [pack(draw_elements(source, Ring(q), (rows,))) for _ in range(starts)],
        "roundings": [pack_reals(row) for row in roundings],
    }
    shown = {"round": str(first), "updates": [pack(row) for row in updates], "schedule": drawn.events}
    return Session(drawn, updates, roundings, {**numbers, **shown}, rand)


def valid(draw: Any, caps: Capabilities, count: int = 2) -> Session:
    """Draw a session of one or two buffers in which nothing is refused."""
    drawn = plan(draw, caps)
    first = drawn.round
    if draw(st.booleans()):
        for user in drawn.users:
            drawn.start(user)
    for _ in range(draw(st.integers(1, count))):
        drawn.whole()
    drawn.bustle()
    return session(draw, drawn, first)


def _valid(draw: Any, caps: Capabilities) -> Valid:
    made = valid(draw, caps, 1)
    return Valid(made.params, made.rand)


VALID: dict[str, Make] = {ROUNDS: _valid}
