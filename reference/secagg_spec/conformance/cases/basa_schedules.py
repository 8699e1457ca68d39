"""Draws schedules of BASA: who uploads, times out, or comes too late, and the buffers that result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import admissible_weights, realised_weight
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import basa_functions as scenes
from secagg_spec.conformance.cases import lightsecagg_parties, strategies
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.basa_positions import members
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.protocols.basa.cores import Parameters

EPOCHS = "basa.epochs"
_FIRST = (0, 1, 255, 256, 2**31, 2**32 - 20)
_MOST_USERS = 12
_MOST_EPOCHS = 4


@dataclass
class Opened:
    """An epoch that was opened: its number, its accepted uploads, and its state.

    An upload is its position, its user, its stamp, and the number of its update.
    """

    number: int
    uploads: list[tuple[int, int, int, int]] = field(default_factory=list)
    place: int = 0
    barred: set[int] = field(default_factory=set)
    ended: bool = False
    closed: bool = False


@dataclass(eq=False)
class Plan:
    """Draws a schedule and knows what has happened in it. `used` counts the updates that users started to upload."""

    draw: Any
    parameters: Parameters
    epochs: list[Opened]
    events: list[dict[str, Any]] = field(default_factory=list)
    used: int = 0

    @property
    def epoch(self) -> Opened:
        """The epoch of the next event."""
        last = self.epochs[-1]
        return Opened(last.number + 1) if last.ended else last

    def open(self) -> Opened:
        """Open the next epoch, unless one is open."""
        if self.epochs[-1].ended:
            self.epochs.append(self.epoch)
        return self.epochs[-1]

    def able(self) -> list[int]:
        """Return the users that can be offered a position.

        There are none if the buffer is full or no position is left.
        """
        now, p = self.epoch, self.parameters
        full = len(now.uploads) == p.K or now.place == p.positions
        return [] if full else [user for user in range(p.N) if user not in now.barred]

    def stamp(self) -> int:
        """Draw the stamp of an update that is not too old."""
        now = self.epoch.number
        oldest = max(now - self.parameters.tau_max, 0)
        return int(self.draw(among((now, oldest)) | st.integers(oldest, now)))

    def can_close(self) -> bool:
        """Whether the authority would let the epoch be closed."""
        now, p = self.epoch, self.parameters
        return len(now.uploads) == p.K or (now.place == p.positions and len(now.uploads) >= p.T + 2)

    def can_skip(self) -> bool:
        """Whether a position can be skipped so that the epoch can still be closed, or ends in the profile void."""
        now, p = self.epoch, self.parameters
        left = p.positions - now.place - 1
        return len(now.uploads) + left >= p.T + 2 if p.settle else len(self.epochs) < _MOST_EPOCHS

    def upload(self, user: int) -> None:
        """Let a user upload."""
        stamp, now = self.stamp(), self.open()
        self.events.append({"event": "upload", "user": user, "stamp": str(stamp)})
        now.uploads.append((now.place, user, stamp, self.used))
        now.place, self.used = now.place + 1, self.used + 1
        now.barred.add(user)

    def expire(self, user: int) -> None:
        """Let a user time out before it has its key."""
        stamp = self.stamp()
        self.open()
        self.events.append({"event": "expire", "user": user, "stamp": str(stamp), "keyed": False})

    def skip(self, user: int) -> None:
        """Let a user get its key and then come too late or not at all."""
        late = self.draw(st.booleans())
        stamp, now = self.stamp(), self.open()
        kind = {"event": "late"} if late else {"event": "expire", "keyed": True}
        self.events.append({**kind, "user": user, "stamp": str(stamp)})
        self.used += late
        now.place, now.ended = now.place + 1, not self.parameters.settle
        now.barred.add(user)

    def close(self) -> None:
        """Let the server close its buffer."""
        now = self.open()
        self.events.append({"event": "close"})
        now.ended = now.closed = True

    def bustle(self, most: int) -> None:
        """Draw some events."""
        for _ in range(self.draw(st.integers(0, most))):
            users = self.able()
            acts: list[Callable[[int], None]] = [self.upload, self.expire, *([self.skip] if self.can_skip() else [])]
            if users:
                acts[self.draw(st.integers(0, len(acts) - 1))](self.draw(among(users)))

    def fill(self) -> None:
        """Let users come until the epoch can be closed, with the largest number of updates or with the smallest."""
        few = self.draw(st.booleans())
        while not self.can_close():
            left, users = self.parameters.positions - self.epoch.place, self.able()
            lacking = self.parameters.T + 2 - len(self.epoch.uploads)
            skips = few and self.parameters.settle and left > max(lacking, 0)
            (self.skip if skips else self.upload)(self.draw(among(users)))

    def whole(self) -> None:
        """Draw all events of a buffer, up to its end."""
        self.bustle(6)
        self.fill()
        self.close()


@dataclass(frozen=True)
class Session:
    """A schedule, and what its parties are given."""

    plan: Plan
    updates: list[UintArray]
    roundings: RealArray
    params: dict[str, Any]

    @property
    def rand(self) -> dict[str, Any]:
        """The sampled values."""
        return {"roundings": pack_reals(self.roundings)}

    def with_events(self, events: Sequence[Any]) -> dict[str, Any]:
        """Return the ``params`` with other events."""
        return {**self.params, "schedule": list(events)}

    def weights(self, upload: tuple[int, int, int, int], now: int, *, drawn: bool) -> tuple[int, ...]:
        """Return the possible weights of an upload. There is only one if its rounding is `drawn` here."""
        _, _, stamp, number = upload
        p = self.plan.parameters
        if drawn:
            return (realised_weight(p.staleness, p.c_g, now - stamp, float(self.roundings[number])),)
        return admissible_weights(p.staleness, p.c_g, now - stamp)


def plan(draw: Any, **wanted: Any) -> Plan:
    """Draw the numbers of a session with few users, and its first epoch."""
    p = scenes.parameters(draw, large=False, **wanted)
    N = min(p.N, max(_MOST_USERS, p.positions))
    return Plan(draw, replace(p, N=N), [Opened(int(draw(among(_FIRST))))])


def session(drawn: Plan) -> Session:
    """Draw what the parties of a schedule are given.

    In half of the cases, they are given a little more than they need.
    """
    draw, p = drawn.draw, drawn.parameters
    count = drawn.used + draw(st.integers(0, 1))
    updates, roundings = scenes.carried(draw, p, count), strategies.rounding(draw, count)
    params = {
        **members(p),
        "session": lightsecagg_parties.session_id(draw).hex(),
        "round": str(drawn.epochs[0].number),
        "updates": [pack(row) for row in updates],
        "schedule": drawn.events,
    }
    return Session(drawn, updates, roundings, params)


def valid(draw: Any, count: int = 2, **wanted: Any) -> Session:
    """Draw a session of one or two buffers in which nothing is refused."""
    drawn = plan(draw, **wanted)
    for _ in range(draw(st.integers(1, count))):
        drawn.whole()
    drawn.bustle(2)
    return session(drawn)


def _valid(draw: Any, caps: Capabilities) -> Valid:
    made = valid(draw, 1)
    return Valid(made.params, made.rand)


VALID: dict[str, Make] = {EPOCHS: _valid}
