"""Buffered training for a person to follow: BASecAgg by messages or by its cores, next to plain FedBuff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.entropy import Source, draw_elements, draw_rounding
from secagg_spec.events import DOWNLOAD, TIMEOUT, UPLOAD, Agenda, Event, Schedule
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.basecagg.cores import CoreRun
from secagg_spec.protocols.basecagg.round import Parameters, Recovered
from secagg_spec.protocols.basecagg.runs import Abandon, Play, Recover, Start, Supplies, Upload
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.steps import SERVER, Follow, Network, Step, sizes
from secagg_spec.simulate.asynchronous import Training


class Engine(Protocol):
    """Runs the turns, with messages or with the pure cores."""

    def start(self, user: int) -> None:
        """Let a user take its stamp and share a mask."""

    def upload(self, user: int, update: UintArray) -> None:
        """Let a user upload."""

    def abandon(self, user: int) -> None:
        """Let a user give up."""

    def recover(self, users: Sequence[int], draws: RealArray, follow: Follow) -> Recovered:
        """Close the buffer, let users answer, and recover. `follow` may show who answers."""
        ...


@dataclass(eq=False)
class ByMessages:
    """All parties exchange and seal their messages."""

    network: Network
    trained: Any
    source: Source
    parameters: Parameters
    sent: Counter[str] = field(default_factory=Counter)
    sent_bytes: Counter[str] = field(default_factory=Counter)
    held: int = 0

    def start(self, user: int) -> None:
        """Let a user take its stamp and share a mask."""
        p = self.parameters
        masks = draw_elements(self.source, p.field, (p.d,)), draw_elements(self.source, p.field, (p.T, p.share_length))
        self._take(Start(user), masks=[masks[0]], noises=[masks[1]])

    def upload(self, user: int, update: UintArray) -> None:
        """Let a user upload."""
        self._take(Upload(user), updates=[update])

    def abandon(self, user: int) -> None:
        """Let a user give up."""
        self._take(Abandon(user))

    def recover(self, users: Sequence[int], draws: RealArray, follow: Follow) -> Recovered:
        """Close the buffer, let users answer, and recover."""
        self._take(Recover(tuple(users)), follow, roundings=[draws])
        recovered: Recovered = self.network.states[SERVER].recovered
        return recovered

    def _take(self, turn: basecagg_runs.Turn, follow: Follow = lambda step, users: users, **given: Any) -> None:
        lists = [iter(given.get(name, ())) for name in ("updates", "masks", "noises", "roundings")]
        Play(self.network, Supplies(*lists), self.trained, follow).take(turn)
        for event in self.network.transcript:
            for message in event.sent:
                self.sent[type(message).__name__] += 1
                self.sent_bytes[type(message).__name__] += sizes([message])
        self.network.transcript.clear()
        states = [state for party, state in self.network.states.items() if party != SERVER]
        self.held = max(self.held, *(len(getattr(state, "base", state).held) for state in states))


@dataclass(eq=False)
class ByCores:
    """The pure cores alone."""

    run: CoreRun
    source: Source

    def start(self, user: int) -> None:
        """Let a user take its stamp and share a mask."""
        p = self.run.parameters
        mask = draw_elements(self.source, p.field, (p.d,))
        self.run.start(user, mask, draw_elements(self.source, p.field, (p.T, p.share_length)))

    def upload(self, user: int, update: UintArray) -> None:
        """Let a user upload."""
        self.run.upload(user, update)

    def abandon(self, user: int) -> None:
        """Let a user give up."""
        self.run.abandon(user)

    def recover(self, users: Sequence[int], draws: RealArray, follow: Follow) -> Recovered:
        """Close the buffer, let users answer, and recover, which is soon done."""
        return self.run.recover(users, draws)


@dataclass(frozen=True)
class Arrival:
    """An upload or a request at the server: time, user and stamp; `refused` says why it was not accepted."""

    time: float
    user: int
    stamp: int | None = None
    staleness: int | None = None
    refused: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """The events of a round; `equal` is the number of elements in which the model equals that of plain FedBuff."""

    time: float
    arrivals: tuple[Arrival, ...]
    away: tuple[int, ...]
    recovered: Recovered
    real: RealArray
    model: RealArray
    equal: int
    distance: float


@dataclass(eq=False)
class Simulation:
    """Users that come, train and upload; the model, and that of plain FedBuff on the same quantised updates.

    `log` holds the downloads, uploads and timeouts. Without a log, the seed determines them, and users begin again as
    soon as they may. `follow` gets what happens next, how many updates the buffer has, and which share of the users
    of a recovery have answered.
    """

    parameters: Parameters
    engine: Engine
    training: Training
    plain: fedbuff.ServerState
    source: Source
    log: Schedule | None = None
    follow: Callable[[str, int, float], None] = lambda what, filled, answered: None
    staleness: Counter[int] = field(default_factory=Counter)
    late: int = 0

    def __post_init__(self) -> None:
        self.model: RealArray = self.plain.model
        self.first = self.distance = self.training.distance(self.model)
        self.round = 0
        self.done: list[Event] = []
        self._downloads: dict[int, tuple[int, RealArray]] = {}
        self._newest: dict[int, int] = {}
        self._reals: dict[int, RealArray] = {}
        self._agenda = Agenda(self.log or Schedule(self.parameters.N, ()))
        for user in range(self.parameters.N):
            self._add(self.training.delay(user), DOWNLOAD, user)
        self._events = iter(self._agenda)

    def next_round(self) -> Report | None:
        """Run until the next buffer is recovered; return None if the log ends before."""
        self.waiting: list[Arrival] = []
        for event in self._events:
            self.follow(f"{event.kind} of user {event.user}", len(self._reals), 0.0)
            self.done.append(event)
            self.waiting += self._happen(event)
            if len(self._reals) == self.parameters.K:
                return self._recover(tuple(self.waiting))
        return None

    def _add(self, delay: float, kind: str, user: int) -> None:
        """Schedule a consequence of an event, unless there is a log."""
        if self.log is None:
            self._agenda.add(Event(self._agenda.now + delay, kind, user))

    def _happen(self, event: Event) -> list[Arrival]:
        """Run an event, and return its arrivals at the server that concern a buffer."""
        user = event.user
        if event.kind == DOWNLOAD:
            why = self._why_not(user)
            if why:
                return [Arrival(event.time, user, refused=why)]
            self._start(user)
            return []
        if user not in self._downloads:
            return [Arrival(event.time, user, refused=f"{event.kind} of a user that does not train")]
        return [self._arrive(event.time, user, event.kind == TIMEOUT)]

    def _why_not(self, user: int) -> str:
        """Say why a user that asks gets no model now (BSA-12)."""
        if user in self._reals:
            return "asks for a model, and its update waits in the buffer"
        if self._newest.get(user) == self.round:
            return "asks for a model, and has the newest"
        return ""

    def _start(self, user: int) -> None:
        if user in self._downloads:
            self.engine.abandon(user)
        self.engine.start(user)
        self._downloads[user] = self.round, self.model
        self._newest[user] = self.round
        self._add(self.training.delay(user), UPLOAD, user)

    def _arrive(self, time: float, user: int, timeout: bool) -> Arrival:
        """Accept an update, or let the user give up if it timed out or is too late."""
        stamp, model = self._downloads.pop(user)
        tau, most = self.round - stamp, self.parameters.tau_max
        if timeout or tau > most:
            self.engine.abandon(user)
            self.late += not timeout
            self._add(0.0, DOWNLOAD, user)
            return Arrival(time, user, stamp, tau, "timed out" if timeout else f"refused: staleness above {most}")
        self._upload(user, stamp, fedbuff.local_update(model, self.training.trained(user, model)))
        self.staleness[tau] += 1
        return Arrival(time, user, stamp, tau)

    def _upload(self, user: int, stamp: int, real: RealArray) -> None:
        p = self.parameters
        update = basecagg.encode_update(p, real, draw_rounding(self.source, p.d))
        self.engine.upload(user, update)
        self.plain = fedbuff.receive(self.plain, user, stamp, p.field.decode_signed(update))
        self._reals[user] = real

    def _answering(self, step: Step[Any], users: Sequence[int]) -> Iterator[int]:
        for done, user in enumerate(users):
            self.follow(f"{step.phase}: user {user}, of {len(users):,}", len(self._reals), done / len(users))
            yield user

    def _recover(self, arrivals: tuple[Arrival, ...]) -> Report:
        p = self.parameters
        order = np.argsort(draw_rounding(self.source, p.N)).tolist()
        away, answering = tuple(sorted(order[: p.D])), tuple(sorted(order[p.D :]))
        draws = draw_rounding(self.source, p.K)
        recovered = self.engine.recover(answering, draws, self._answering)
        weights, users = [e.weight for e in recovered.entries], [e.user for e in recovered.entries]
        real = fedbuff.average_reals(weights, [self._reals[user] for user in users])
        self.model = fedbuff.moved(self.model, recovered.average, self.plain.parameters.eta_g)
        self.plain = fedbuff.step(self.plain, rounding=draws)
        self.distance = self.training.distance(self.model)
        for user in users:
            self._add(0.0, DOWNLOAD, user)
        self._reals, self.round = {}, self.round + 1
        equal = int(np.count_nonzero(self.model.view(np.uint64) == self.plain.model.view(np.uint64)))
        return Report(self._agenda.now, arrivals, away, recovered, real, self.model, equal, self.distance)
