"""Record an epoch of BASA: users arrive one after another, and some of them time out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.crypto.boxes import mask_key
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.prg import KEY_BYTES, expand
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.privacy.basa import ACCEPTED, GONE, LATE, SETTLE, Epoch, Holder, Situation
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.messages import PositionKey, PositionUpload
from secagg_spec.protocols.basa.runs import Run, draw_hidden
from secagg_spec.protocols.steps import Event, Role, role_of
from secagg_spec.recording.knowledge import Knowledge, known
from secagg_spec.recording.record import Addition, Moment, Recording, Term, numbers, sendings

PARAMETERS = Parameters(
    R=97, N=6, T=1, d=2, K=3, S=1, c_l=1, c_g=2, tau_max=1, staleness=Staleness.polynomial(1)
)  # fmt: skip
EPOCH = 1
_STALE = 3
"""The user whose update started from the model of the previous epoch."""
UPLOAD, FREE, SKIP, LATELY = "upload", "free", "skip", "late"
_OFFERING = ("request", "offer", "assign", "fetch", "issue")
RUNS: Mapping[str, tuple[tuple[int, str], ...]] = {
    "nobody": ((2, UPLOAD), (0, UPLOAD), (3, UPLOAD)),
    "free": ((2, UPLOAD), (0, FREE), (5, UPLOAD), (3, UPLOAD)),
    "skipped": ((2, UPLOAD), (0, SKIP), (5, UPLOAD), (3, UPLOAD)),
    "late": ((2, UPLOAD), (0, LATELY), (5, UPLOAD), (3, UPLOAD)),
    "few": ((2, UPLOAD), (0, SKIP), (5, SKIP), (3, UPLOAD)),
}


class _Watched(Run):
    """A run that keeps the seeds that users draw, which in a real run only these users know."""

    def __init__(self, parameters: Parameters, source: SeededSource) -> None:
        self.seeds: dict[int, list[bytes]] = {}
        super().__init__(parameters, source, session=bytes(16), round=EPOCH)

    def _step(self, phase: str, party: int, **given: Any) -> None:
        step = self._rows[phase, role_of(party)]
        sampled = draw_hidden(self.parameters, step, self.source)
        if "seeds" in sampled:
            drawn = sampled["seeds"]
            self.seeds[party] = [drawn[at : at + KEY_BYTES] for at in range(0, len(drawn), KEY_BYTES)]
        self.network.take(step, party, {**sampled, **given})


class BASA:
    """An epoch of BASA with the updates of the users."""

    def __init__(self, seed: bytes, run: str) -> None:
        self.name, self.parameters, self.turns = run, PARAMETERS, RUNS[validate.one_of("run", run, [*RUNS])]
        p = self.parameters
        self.updates = draw_elements(SeededSource(seed, "updates"), Ring(p.budget + 1), (p.N, p.d))
        self.run = _Watched(p, SeededSource(seed, "epoch"))
        self.dropped: set[int] = set()
        self.done = 0

    def record(self, colluder: int) -> Recording:
        """Let all users take their turns, close the epoch, and return the recording."""
        (colluder,) = validate.users("colluder", (colluder,), self.parameters.N)
        moments, ended = [*self._since(0, "open", colluder)], ""
        for user, what in self.turns:
            before = len(self.run.transcript)
            self._pass(user, what)
            self.done += 1
            self.dropped |= {user} if what in (FREE, SKIP) else set()
            moments += self._since(before, what, colluder)
        before = len(self.run.transcript)
        try:
            self.run.close()
        except TooFewSurvivors as failed:
            ended = str(failed)
            self.run.abandon()
        moments += self._since(before, "close", colluder, ended)
        inputs = tuple(Term(f"x_{user}", numbers(self.updates[user])) for user, _ in self.turns)
        summed = () if ended else (self._recovery().result,)
        shown = {name: getattr(self.parameters, name) for name in ("R", "K", "S", "T", "c_g")}
        return Recording("basa", self.name, shown, self.parameters.N, colluder, inputs, tuple(moments), summed, ended)

    def _pass(self, user: int, what: str) -> None:
        stamp, update = EPOCH - (user == _STALE), self.updates[user]
        if what == UPLOAD:
            self.run.upload(user, update, stamp, 0.5)
        elif what == LATELY:
            self.run.late(user, update, stamp, 0.5)
        else:
            self.run.expire(user, stamp, keyed=what == SKIP)

    # Moments.

    def _since(self, before: int, what: str, colluder: int, ended: str = "") -> Iterator[Moment]:
        """Yield the moments since a step."""
        at = before
        for key, taken in _parts(what, list(self.run.transcript[before:]), bool(ended)):
            at += len(taken)
            moment = self._moment(key, taken, self.run.transcript[:at], colluder)
            yield replace(moment, happened=("ended",)) if ended else moment

    def _moment(self, key: str, events: Sequence[Event], seen: Sequence[Event], colluder: int) -> Moment:
        here = [event.party for event in events if event.step.role is Role.USER]
        visitor = [self.turns[self.done - 1][0]] if key in (FREE, SKIP) else here
        additions = tuple(self._additions(key, events))
        return Moment(
            key,
            self._title(key, visitor),
            tuple(user for user in range(self.parameters.N) if user not in self.dropped),
            tuple(dict.fromkeys(here)),
            sendings(events),
            additions,
            server=self._knowledge(seen, ()),
            colluding=self._knowledge(seen, (colluder,)),
        )

    def _title(self, key: str, here: Sequence[int]) -> str:
        return f"{key}, user {here[0]}" if here else key

    # What is added.

    def _additions(self, key: str, events: Sequence[Event]) -> Iterator[Addition]:
        yield from (self._masking(e.sent[0]) for e in events if e.sent and isinstance(e.sent[0], PositionUpload))
        if key == "recover":
            yield self._recovery()

    def _masking(self, upload: Any) -> Addition:
        user, at, p = upload.sender, upload.position, self.parameters
        before = [other for other in self._accepted() if other.position < at]
        after = range(at + 1, p.positions)
        terms = (
            Term(f"x_{user}", numbers(self.updates[user]), upload.weight),
            Term(f"b_{at}", self._mask(user, at)),
            *(Term(f"m_{at},{j}", self._mask(user, at, j)) for j in after),
            *(Term(f"m_{o.position},{at}", self._mask(o.user, o.position, at), -1) for o in before),
        )
        return Addition(p.R, terms, Term(f"y_{at}", numbers(upload.masked)))

    def _mask(self, user: int, at: int, to: int | None = None) -> tuple[int, ...]:
        """Return the mask from one position to another, or the self mask of a position if `to` is None."""
        p, epoch = self.parameters, self.run.server.session.epoch(EPOCH)
        seed = self.run.seeds[user][at if to is None else to]
        return numbers(expand(mask_key(epoch, seed, at, to), p.ring, p.d))

    def _accepted(self) -> Sequence[Any]:
        """Return the entries of the current buffer, or of the recovered one."""
        return self.run.outcomes[-1].entries

    def _left(self) -> list[tuple[Any, int]]:
        """Return the accepted entries, each with the later positions without an accepted update."""
        taken = {entry.position for entry in self._accepted()}
        others = [at for at in range(self.parameters.positions) if at not in taken]
        return [(entry, at) for entry in self._accepted() for at in others if at > entry.position]

    def _recovery(self) -> Addition:
        entries, recovered = self._accepted(), self.run.server.recovered
        assert recovered is not None
        uploads = {m.position: m for e in self.run.transcript for m in e.sent if isinstance(m, PositionUpload)}
        terms = (
            *(Term(f"y_{e.position}", numbers(uploads[e.position].masked)) for e in entries),
            *(Term(f"b_{e.position}", self._mask(e.user, e.position), -1) for e in entries),
            *(Term(f"m_{e.position},{at}", self._mask(e.user, e.position, at), -1) for e, at in self._left()),
        )
        name = " + ".join(f"{e.weight}·x_{e.user}" if e.weight > 1 else f"x_{e.user}" for e in entries)
        return Addition(self.parameters.R, terms, Term(name, numbers(recovered.sum)))

    # What is known.

    def _knowledge(self, seen: Sequence[Event], coalition: Collection[int]) -> Knowledge:
        epoch = epoch_of(self.parameters, seen, self._settled(seen))
        present = [user for user, _ in self.turns if user not in coalition]
        found = known([epoch.view(coalition)], present, 1)
        d = self.parameters.d
        return replace(found, unknown=found.unknown * d, dimension=found.dimension * d)

    def _settled(self, seen: Sequence[Event]) -> Mapping[int, str]:
        """Return the fates of the users whose uploads arrived: late or accepted; pending uploads count as accepted."""
        late = {user for user, what in self.turns if what == LATELY}
        senders = [m.sender for e in seen for m in e.sent if isinstance(m, PositionUpload)]
        return {user: LATE if user in late else ACCEPTED for user in senders}


def _parts(what: str, events: Sequence[Event], ended: bool) -> list[tuple[str, Sequence[Event]]]:
    """Split the steps of a visit after the offer of the key, and the steps of a close before the recovery."""
    if what == "close":
        return [("close", events)] if ended else [("close", events[:-1]), ("recover", events[-1:])]
    offered = [event for event in events if event.step.phase in _OFFERING]
    return [("offer", offered), (what, events[len(offered) :])] if offered else [(what, events)]


def epoch_of(p: Parameters, seen: Sequence[Event], fates: Mapping[int, str]) -> Epoch:
    """Return some steps as an epoch for the privacy verdicts: which user held which key, and the user's fate."""
    keys = [m for e in seen for m in e.sent if isinstance(m, PositionKey)]
    weights = {m.sender: m.weight for e in seen for m in e.sent if isinstance(m, PositionUpload)}
    holders = tuple(Holder(m.position, fates.get(m.receiver, GONE)) for m in keys)
    closed = any(e.step.phase == "close" and e.step.role is Role.AUTHORITY for e in seen)
    people = [m.receiver for m in keys]
    happened = Situation(p.positions, holders, closed)
    return Epoch(p.ring, SETTLE, happened, weights=[weights.get(user, 1) for user in people], people=people)


guard(__name__)
