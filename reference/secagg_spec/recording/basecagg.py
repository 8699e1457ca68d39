"""Record two buffers of BASecAgg; the second one contains an update that is one round old."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.privacy.basecagg import Buffer, Column, Situation
from secagg_spec.privacy.views import View
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.basecagg.round import BufferedSet, Entry, Parameters, StampedUpdate, WeightedShare
from secagg_spec.protocols.basecagg.runs import Abandon, Play, Recover, Start, Turn, Upload
from secagg_spec.protocols.steps import SERVER, Event, Role
from secagg_spec.recording.knowledge import Knowledge, known
from secagg_spec.recording.record import Addition, Moment, Recording, Term, numbers, sendings

PARAMETERS = Parameters(
    q=97, N=5, D=2, U=3, T=1, d=2, K=3, c_l=1, c_g=3, tau_max=2, staleness=Staleness.polynomial(1)
)  # fmt: skip
_EVERYBODY = (0, 1, 2, 3, 4)
_FIRST: tuple[Turn, ...] = (
    *(Start(user) for user in (0, 1, 2, 3)), Upload(0), Upload(1), Upload(2), Recover(_EVERYBODY),
)  # fmt: skip
_SECOND: tuple[Turn, ...] = (Start(0), Start(1), Upload(0), Upload(3), Upload(1))
_GIVEN_UP: tuple[Turn, ...] = (Start(0), Start(1), Start(4), Upload(0), Abandon(1), Upload(3), Upload(4))
RUNS: Mapping[str, tuple[Turn, ...]] = {
    "nobody": (*_FIRST, *_SECOND, Recover(_EVERYBODY)),
    "abandon": (*_FIRST, *_GIVEN_UP, Recover(_EVERYBODY)),
    "away": (*_FIRST, *_SECOND, Recover((0, 2, 4))),
    "few": (*_FIRST, *_SECOND, Recover((0, 2))),
}
_KEYS: Mapping[type[object], str] = {Start: "start", Upload: "upload", Abandon: "abandon"}


class BASecAgg:
    """A session of BASecAgg with the updates, and the user that trained each of them."""

    def __init__(self, seed: bytes, run: str) -> None:
        self.run, self.parameters, self.turns = run, PARAMETERS, RUNS[validate.one_of("run", run, [*RUNS])]
        p = self.parameters
        privates = {user: SeededSource(seed, f"key of user {user}").take(KEY_BYTES) for user in range(p.N)}
        channels = basecagg_runs.sealed_channels(basecagg.sealing_context(p, bytes(16)), privates)
        self.network = basecagg_runs.open_session(p, channels=channels, session=bytes(16), round=0)
        uploads = [turn.user for turn in self.turns if isinstance(turn, Upload)]
        self.updates = draw_elements(SeededSource(seed, "updates"), Ring(p.budget + 1), (len(uploads), p.d))
        self.sampled = basecagg_runs.draw_randomness(p, SeededSource(seed, "masks"), self.turns)
        supplied = basecagg_runs.supplies(p, list(self.updates), self.sampled)
        self.play = Play(self.network, supplied, basecagg.user_trained)
        self.masks = iter(zip(self.sampled["masks"], self.sampled["noises"], strict=True))
        self.waiting = iter(self.updates)
        self.drawn: dict[tuple[int, int], Term] = {}
        self.trained: dict[tuple[int, int], Term] = {}
        self._known: dict[tuple[Situation, tuple[int, ...]], Knowledge] = {}

    # Moments.

    def record(self, colluder: int) -> Recording:
        """Take all turns and return the recording."""
        (colluder,) = validate.users("colluder", (colluder,), self.parameters.N)
        moments, ended = list[Moment](), ""
        for kind, turns in groupby(self.turns, type):
            before = len(self.network.transcript)
            try:
                for turn in turns:
                    self.play.take(turn)
            except TooFewSurvivors as failed:
                ended = str(failed)
            events = self.network.transcript[before:]
            moments += self._moments(_KEYS.get(kind, ""), events, before, colluder, ended)
        p = self.parameters
        shown = {name: getattr(p, name) for name in ("q", "N", "K", "U", "T", "c_g")}
        summed = tuple(add.result for moment in moments if moment.key == "recover.server" for add in moment.additions)
        inputs = tuple(self.trained.values())
        return Recording("basecagg", self.run, shown, p.N, colluder, inputs, tuple(moments), summed, ended)

    def _moments(self, key: str, events: Sequence[Event], before: int, colluder: int, ended: str) -> Iterator[Moment]:
        """Yield the moment of some turns; a recovery has three moments: close, answers, recovery."""
        parts = [(key, events)] if key else [(f"{e[0]}.{e[1]}", list(g)) for e, g in groupby(events, _row)]
        if ended:
            parts.append(("recover.server", []))
        at = before
        for name, taken in parts:
            at += len(taken)
            yield self._moment(name, taken, self.network.transcript[:at], colluder, bool(ended) and not taken)

    def _moment(self, key: str, events: Sequence[Event], seen: Sequence[Event], colluder: int, ended: bool) -> Moment:
        acting = tuple(dict.fromkeys(e.party for e in events if e.party != SERVER and e.step.phase != "hold"))
        away = key.startswith("recover") and len(_answers(seen)) < self.parameters.N
        present = _answers(seen) if away else tuple(range(self.parameters.N))
        additions, values = tuple(self._additions(key, events)), tuple(self._values(events))
        title = f"{key.partition('.')[0]}, round {self._round(seen)}"
        return Moment(
            key, title, present, acting, sendings(events), additions, values,
            self._knowledge(seen, ()), self._knowledge(seen, (colluder,)),
            ("ended",) if ended else ("dropped",) if away else (),
        )  # fmt: skip

    def _round(self, seen: Sequence[Event]) -> int:
        """Return the round of the server at the last of its steps."""
        rounds = [e.state.round - (e.step.phase == "recover") for e in seen if e.party == SERVER]
        return int(rounds[-1])

    # What is added.

    def _values(self, events: Sequence[Event]) -> Iterator[Term]:
        """Yield the masks that are drawn and their shares, in the order of their holders."""
        for event in events:
            if (event.step.phase, event.step.role) == ("share", Role.USER):
                mask, noise = next(self.masks)
                name = f"z({event.sent[0].round})_{event.party}"
                self.drawn[event.party, event.sent[0].round] = Term(name, numbers(mask))
                yield Term(name, numbers(mask))
                shares = self.parameters.code.encode(mask, noise)
                yield Term(f"shares of {name}, for users 0, 1, …", numbers(shares.reshape(-1)))

    def _additions(self, key: str, events: Sequence[Event]) -> Iterator[Addition]:
        if key == "upload":
            yield from (self._masking(e) for e in events if e.step.role is Role.USER)
        if key == "close.server":
            yield from (self._weighted(events[0]),)
        if key == "recover.user":
            yield from map(self._answer, events)
        if key == "recover.server" and events:
            yield self._recovery(events[0])

    def _masking(self, event: Event) -> Addition:
        (message,) = event.sent
        assert isinstance(message, StampedUpdate)
        at = (event.party, message.round)
        self.trained[at] = Term(f"x({at[1]})_{at[0]}", numbers(next(self.waiting)))
        result = Term(f"y({at[1]})_{at[0]}", numbers(message.masked))
        return Addition(self.parameters.q, (self.trained[at], self.drawn[at]), result)

    def _entries(self) -> tuple[Entry, ...]:
        """Return the entries of the buffer that was closed last."""
        return next(reversed(_buffers(self.network.transcript).values())).entries

    def _weighted(self, event: Event) -> Addition:
        uploads = {(m.sender, m.round): m.masked for m in _sent(self.network.transcript, StampedUpdate)}
        terms = tuple(
            Term(f"y({e.stamp})_{e.user}", numbers(uploads[e.user, e.stamp]), e.weight) for e in self._entries()
        )
        field = self.parameters.field
        rows = np.array([term.vector for term in terms], dtype=np.uint64)
        weights = np.array([[term.factor for term in terms]], dtype=np.uint64)
        return Addition(self.parameters.q, terms, Term(self._plus("y"), numbers(field.matmul(weights, rows)[0])))

    def _plus(self, name: str) -> str:
        return " + ".join(f"{e.weight}·{name}({e.stamp})_{e.user}" for e in self._entries())

    def _answer(self, event: Event) -> Addition:
        (message,) = event.sent
        assert isinstance(message, WeightedShare)
        terms = tuple(self._share(entry, event.party) for entry in self._entries())
        return Addition(self.parameters.q, terms, Term(f"answer of user {event.party}", numbers(message.share)))

    def _share(self, entry: Entry, holder: int) -> Term:
        """Return the share of a mask that a user holds, with its weight, from the last state that contains it."""
        states = (e.state for e in reversed(self.network.transcript) if e.party == holder)
        held = next(
            s.held[entry.user] for s in states if entry.user in s.held and s.held[entry.user].stamp == entry.stamp
        )
        return Term(f"share of z({entry.stamp})_{entry.user}", numbers(held.share), entry.weight)

    def _recovery(self, event: Event) -> Addition:
        field, total = self.parameters.field, event.state.recovered.sum
        (masked,) = [self._weighted(event).result]
        masks = field.subtract(np.array(masked.vector, dtype=np.uint64), total)
        terms = (masked, Term(f"{self._plus('z')}, decoded", numbers(masks), -1))
        return Addition(field.modulus, terms, Term(self._plus("x"), numbers(total)))

    # What is known.

    def _knowledge(self, seen: Sequence[Event], coalition: Collection[int]) -> Knowledge:
        asked = situation(seen), tuple(coalition)
        if asked not in self._known:
            self._known[asked] = self._decided(*asked)
        return self._known[asked]

    def _decided(self, happened: Situation, coalition: Collection[int]) -> Knowledge:
        p, L = self.parameters, self.parameters.share_length
        columns = [Column(p, p.code, range(at, p.d, L)) for at in range(L)]
        views: list[View] = [column.view(coalition, happened) for column in columns]
        found = known(views, [user for user in range(p.N) if user not in coalition], p.d)
        updates = [turn.user for turn in self.turns if isinstance(turn, Upload) and turn.user not in coalition]
        return replace(found, unknown=len(updates) * p.d)


def situation(seen: Sequence[Event]) -> Situation:
    """Return what the server got in some steps; no sum is allowed in advance."""
    buffers = _buffers(seen)
    uploaded = tuple((m.sender, m.round) for m in _sent(seen, StampedUpdate))
    answered = tuple((m.sender, buffers[m.round]) for m in _sent(seen, WeightedShare))
    return Situation((), uploaded, answered)


def _buffers(seen: Sequence[Event]) -> dict[int, Buffer]:
    """Return the buffers that were announced, by round."""
    found: dict[int, Buffer] = {}
    for message in _sent(seen, BufferedSet):
        given = zip(message.users, message.stamps.tolist(), message.weights.tolist(), strict=True)
        found[message.round] = Buffer(message.round, tuple(Entry(*entry) for entry in given))
    return found


def _sent(seen: Sequence[Event], kind: type[Any]) -> list[Any]:
    return [message for event in seen for message in event.sent if isinstance(message, kind)]


def _answers(seen: Sequence[Event]) -> tuple[int, ...]:
    """Return the users that answered the buffer that was announced last."""
    answers = _sent(seen, WeightedShare)
    return tuple(m.sender for m in answers if m.round == max(_buffers(seen)))


def _row(event: Event) -> tuple[str, str]:
    return event.step.phase, event.step.role.value


guard(__name__)
