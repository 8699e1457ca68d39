"""Play one round act by act, with the network as the adversary.

An adapter plays some parties, and the reference plays the others. Each party of the adapter has a shadow: the
reference's party in the same state, which receives the same messages. The party's answer must equal the shadow's. An
*act* is plain data, a list whose first entry is its name (`ACTS`). Its effect depends only on the round so far.

A refused step leaves its party unchanged (ERR-01) and removes the messages that the network made; the original messages
wait again. A party that refuses a bad message can therefore take the correct step afterwards, and must do so.

If an adapter draws its own values, its shadow has different ones. Then a second round, played only by the reference,
runs alongside with the same acts. A step that is refused there must be refused here, and likewise if it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

from secagg_spec.conformance.sessions import adversary_demands, adversary_paces, mixed
from secagg_spec.conformance.sessions.adversary_letters import Letter, announcing, changed
from secagg_spec.conformance.sessions.adversary_round import Round, Taken
from secagg_spec.conformance.sessions.inputs import SessionInputs, called
from secagg_spec.conformance.sessions.mixed import Difference, Player, Remote
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import SERVER, Role, role_of

Act: TypeAlias = Sequence[Any]
_NOTHING: Mapping[str, Any] = MappingProxyType({"result": {}})


class Found(Exception):
    """The first difference of a round, and the number of its act, counted from 1; `wanted` is the correct result."""

    def __init__(self, number: int, act: Act, difference: Difference, wanted: Any) -> None:
        super().__init__(f"act {number} ({described(act)}): {difference}")
        self.number, self.difference, self.wanted = number, difference, wanted


@dataclass(eq=False)
class Engine(Round):
    """A round, and the code that performs its next act.

    Parameters
    ----------
    twin : Engine or None
        The round that runs alongside if the adapter draws its own values.
    player : Player or None
        The adapter; None in a round that only the reference plays.
    """

    twin: Engine | None = None
    player: Player | None = None
    held: dict[int, list[Letter]] = field(default_factory=dict)
    archive: list[bytes] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    wanted: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def pace(self) -> adversary_paces.Pace:
        """How the honest parties of the protocol proceed."""
        return adversary_paces.PACES[self.inputs.protocol]

    @cached_property
    def foreign(self) -> tuple[bytes, ...]:
        """The messages of another round of the same parties, without interference."""
        network = replace(self.inputs, round=self.inputs.round ^ 1, rounds={}).played()
        return tuple(encode(message) for event in network.transcript for message in event.sent)

    def do(self, act: Act) -> None:
        """Perform an act.

        Raises
        ------
        Found
            A party of the adapter violates the text.
        LookupError
            The round lacks something that the act names.
        """
        self.acts.append(act)
        before = len(self.log)
        if self.twin is not None:
            self.twin.do(act)
        try:
            ACTS[act[0]](self, *act[1:])
            adversary_demands.check_end(self, self.log[before:])
        except Difference as difference:
            raise Found(len(self.acts), act, difference, self.wanted) from difference

    def step(self, party: int, phase: str, *, turned: bool = False) -> Taken:
        """Let a party take a step on its waiting letters, in reverse order if `turned`."""
        step = self.parties[party].step(phase)
        chosen = self.pace.chosen(self, step, party)[:: -1 if turned else 1]
        event = self.ask(party, phase, chosen)
        lost = {id(letter) for letter in chosen if event.error is None or letter.made}
        back = {id(letter): letter.original for letter in chosen if event.error is not None}
        kept = [back.get(id(letter)) if id(letter) in lost else letter for letter in self.waiting(party)]
        self.mail[party] = [letter for letter in kept if letter is not None]
        return event

    def ask(self, party: int, phase: str, letters: Sequence[Letter]) -> Taken:
        """Let a party take a step on some letters, compare the result, and send its messages."""
        call = Call(phase, tuple(letter.data for letter in letters))
        right = None if self.twin is None else self.twin.log[len(self.log)]
        remote = self.remotes.get(party)
        if remote is not None and right is not None and not remote.exact:
            event = self._believed(remote, call, right, letters)
        else:
            event = self._shadowed(party, call, letters)
            if remote is not None:
                self._compare(remote, call, event)
            elif right is not None:
                adversary_demands.check_agreed(self, event, right)
        self.log.append(event)
        for data in event.sent:
            self._send(data)
        return event

    def _shadowed(self, party: int, call: Call, letters: Sequence[Letter]) -> Taken:
        """Let a party of the reference take a step."""
        taken = [event.before for event in self.taken(party) if event.phase == call.phase]
        event = Taken(party, self.lives[party], call.phase, tuple(letters), before=self.parties[party].state)
        try:
            entry = self.parties[party].take(call)
        except (ParameterError, ProtocolError) as error:
            return replace(event, error=error, before=taken[-1] if taken else None)
        sent = tuple(bytes.fromhex(text) for text in entry["outbox"])
        return replace(event, sent=sent, aggregate=entry.get("aggregate"))

    def _compare(self, remote: Remote, call: Call, event: Taken) -> None:
        """Let a party of the adapter take the shadow's step, and compare the answer."""
        if event.error is not None:
            self._refused(remote, call, event, adversary_demands.fitting(self, event))
            return
        sent = {"outbox": [data.hex() for data in event.sent]}
        self.wanted = {"result": sent if event.aggregate is None else {**sent, "aggregate": event.aggregate}}
        answer = remote.step(call.phase, call.inbox)
        mixed.compare(answer, event.party, event.phase, [parse(data) for data in event.sent], event.aggregate)

    def _believed(self, remote: Remote, call: Call, right: Taken, letters: Sequence[Letter]) -> Taken:
        """If a party draws its own values, return its step after checking that it is taken or refused as required."""
        event = replace(right, letters=tuple(letters), sent=(), aggregate=None)
        if right.error is not None:
            assert self.twin is not None
            self._refused(remote, call, event, adversary_demands.fitting(self.twin, right))
            return event
        self.wanted = {"result": {"outbox": f"{len(right.sent)} messages"}}
        answer = remote.step(call.phase, call.inbox)
        wanted = [parse(data) for data in right.sent]
        sent = mixed.compare_frame(answer, event.party, event.phase, wanted, right.aggregate)
        sent.sort(key=mixed.key)
        return replace(event, sent=tuple(encode(message) for message in sent), aggregate=answer.value.get("aggregate"))

    def _refused(self, remote: Remote, call: Call, event: Taken, codes: frozenset[str]) -> None:
        """Ask an adapter for a step that must be refused, and judge the answer."""
        self.wanted = {"reject": sorted(codes)}
        adversary_demands.check_refused(remote.step(call.phase, call.inbox), event, codes)

    def _send(self, data: bytes) -> None:
        """Put a message into the mail; if it arrives twice, the copy is lost with the step that refuses it."""
        message = parse(data)
        between_users = role_of(message.sender) is role_of(message.receiver) is Role.USER
        to = SERVER if between_users and self.log[-1].party != SERVER else message.receiver
        again = any(_same(letter.message, message) for letter in self.waiting(to))
        self.waiting(to).append(Letter(data, made=again))
        self.archive.append(data)

    def start_again(self, party: int, round: int) -> None:
        """Restart a party, in some round, and end its predecessor, whose knowledge is lost."""
        if round != self.inputs.round_of(party):
            self.inputs = replace(self.inputs, rounds={**self.inputs.rounds, party: round})
        self.lives[party] += 1
        self.parties[party] = self.inputs.open(party)
        if party in self.remotes:
            assert self.player is not None
            before, self.wanted = self.remotes[party], _NOTHING
            self.remotes[party] = self.player.open(self.inputs, party, _handle(party, self.lives[party]))
            before.free()


def _same(one: Message | None, other: Message) -> bool:
    return one is not None and (*mixed.key(one), one.round) == (*mixed.key(other), other.round)


def _handle(party: int, life: int) -> str:
    return called(party) if not life else f"{called(party)}, started again ({life})"


@contextmanager
def opened(inputs: SessionInputs, player: Player | None = None, played: Sequence[int] = ()) -> Iterator[Engine]:
    """Open a round before its first act, and free the adapter's sessions at the end.

    Parameters
    ----------
    inputs : SessionInputs
        The inputs of every party.
    player : Player or None
        The adapter that plays some of the parties.
    played : sequence of int
        The parties that it plays.

    Raises
    ------
    Found
        A session of the adapter cannot be opened or freed.
    """
    engine = _before(inputs)
    engine.player = player
    if player is not None and not all(player.exact(inputs, party) for party in played):
        engine.twin = _before(inputs)
    at = "begin"
    try:
        for party in played:
            assert player is not None
            engine.remotes[party] = player.open(inputs, party, _handle(party, 0))
        at = "end"
        yield engine
        for party in list(engine.remotes):
            engine.remotes[party].free()
    except Difference as failure:
        raise Found(len(engine.acts), [at], failure, _NOTHING) from failure


def _before(inputs: SessionInputs) -> Engine:
    return Engine(inputs, {party: inputs.open(party) for party in (*inputs.users, SERVER)})


def _all(engine: Engine, order: str = "") -> None:
    """Let every party take the next row of the table if it can; a party that refuses the network's messages retries."""
    step = engine.inputs.table[engine.row]
    for party in engine.pace.takers(engine, step):
        event = engine.step(party, step.phase, turned=order == TURNED)
        if event.error is not None and any(letter.made for letter in event.letters):
            event = engine.step(party, step.phase)
        if event.error is not None and party == SERVER:
            engine.pace.refused(engine, event)
    engine.pace.turn(engine)


def _again(engine: Engine, party: int, number: int, times: int, *change: Any) -> None:
    """Ask a party several times to repeat a step on the same letters, or with one of them changed."""
    event = engine.steps(party)[number]
    letters = [Letter(letter.data, True, None, letter.changed) for letter in event.letters]
    if change:
        how, place, *rest = change
        data = (announcing if how == "told" else changed)(letters[place].data, rest)
        letters[place] = Letter(data, True, None, True)
    for _ in range(times):
        engine.ask(party, event.phase, letters)


def _release(engine: Engine, party: int, place: int) -> None:
    late = engine.held[party].pop(place)
    _add(engine, party, late, late)


def _add(engine: Engine, party: int, letter: Letter, original: Letter | None = None) -> None:
    engine.waiting(party).append(replace(letter, made=True, original=original))


def _bring(engine: Engine, party: int, data: bytes) -> None:
    engine.waiting(party).append(Letter(data, made=True, changed=True))


def _hold(engine: Engine, party: int, place: int) -> None:
    engine.held.setdefault(party, []).append(engine.waiting(party).pop(place))


def _swap(engine: Engine, party: int, place: int, other: int) -> None:
    letters = engine.waiting(party)
    letters[place], letters[other] = letters[other], letters[place]


def _tell(engine: Engine, party: int, place: int, phase: str, times: int, *change: Any) -> None:
    """Tell a party about other users and ask it for its step at once; repeat as long as it refuses."""
    letter = engine.waiting(party)[place]
    for _ in range(times):
        _exchange(engine, party, engine.waiting(party).index(letter), announcing, change)
        if engine.step(party, phase).error is None:
            return


def _exchange(engine: Engine, party: int, place: int, how: Callable[..., bytes], change: Sequence[Any]) -> None:
    letters = engine.waiting(party)
    letters[place] = Letter(how(letters[place].data, change), True, letters[place], True)


ACTS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "all": _all,
        "step": Engine.step,
        "again": _again,
        "leave": lambda engine, party: engine.dropped.add(party),
        "drop": lambda engine, party, place: engine.waiting(party).pop(place),
        "hold": _hold,
        "release": _release,
        "repeat": lambda engine, party, place: _add(engine, party, engine.waiting(party)[place]),
        "swap": _swap,
        "alter": lambda engine, party, place, *change: _exchange(engine, party, place, changed, change),
        "tell": _tell,
        "recall": lambda engine, party, number: _bring(engine, party, engine.archive[number]),
        "foreign": lambda engine, party, number: _bring(engine, party, engine.foreign[number]),
        "restart": Engine.start_again,
    }
)
"""The function for each act, by name. Places count from 0 among the letters that wait for a party."""
TURNED = "turned"
"""The argument of the act `all` that reverses the order of every party's messages."""
_SAID: Mapping[str, str] = MappingProxyType(
    {
        "all": "all go on",
        TURNED: "all go on, and what waits for them comes in reverse order",
        "step": "{0} is asked for its step {1}",
        "again": "{0} is asked for step {1} that it took, {2} times more",
        "leave": "{0} drops out",
        "drop": "message {1} to {0} is lost",
        "hold": "message {1} to {0} is delayed",
        "release": "message {1} of those delayed to {0} comes",
        "repeat": "message {1} to {0} comes twice",
        "swap": "messages {1} and {2} to {0} change places",
        "alter": "message {1} to {0} is altered",
        "tell": "message {1} to {0} names other users, and {0} is asked for its step {2}, {3} times at most",
        "recall": "{0} is sent message {1} of this round",
        "foreign": "{0} is sent message {1} of another round",
        "restart": "{0} is ended and started again in round {1}",
        "begin": "the beginning",
        "end": "the end",
    }
)


def described(act: Act) -> str:
    """Return an act in words."""
    if act[1:] == [TURNED]:
        return _SAID[TURNED]
    word, *rest = act
    named = [called(rest[0]), *rest[1:]] if rest else rest
    more = {"alter": 2, "tell": 4, "again": 3}.get(word, len(named))
    text = _SAID[word].format(*named)
    return f"{text}: {' '.join(str(part) for part in named[more:])}" if named[more:] else text
