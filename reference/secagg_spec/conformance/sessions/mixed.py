"""Rounds in which each party may be a different implementation, and the first fault is located.

A party that an adapter plays has a *shadow*: the reference's party in the same state, with the same messages. Each step
is compared with the shadow's step, which locates the first difference: party, phase, message, field, element. If an
implementation draws its own values or uses another code, steps are not compared bit for bit. Then the reference plays
the round alone too: the same messages must be sent, and only values may differ. They are passed on; the other parties
must accept them, and the sum must be correct.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, repeat
from typing import Any, Protocol

from secagg_spec.conformance.adapter import generators, results
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.conformance.adapter.plain import differing
from secagg_spec.conformance.adapter.wire import AdapterBroken, Answer, Request, octets, pack
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES
from secagg_spec.conformance.sessions.inputs import NOBODY, Dropouts, SessionInputs, called
from secagg_spec.conformance.targets.reference.messages import named, parse
from secagg_spec.crypto import prg
from secagg_spec.errors import ProtocolError, TooFewSurvivors
from secagg_spec.protocols.codec import Message, OpaqueBytes, encode, field_codecs
from secagg_spec.protocols.steps import SERVER, Event, Inbox, Network, Outbox, Role, Step, run_synchronous

END_CODES = frozenset({"below_threshold", "inconsistent_sets", "other"})
"""The codes with which a step may report that too few users remain."""
CODED = ("lightsecagg", "basecagg")
"""The name prefixes of the protocols that share masks with the code."""
_MASKED = ("upload", "masked_input")
_DRAWN = frozenset({"masked", "share", "weight", "weights"})
"""The numbers and vectors of messages that depend on what a party draws, or on its code; opaque bytes do as well."""
_handles = count(1)


class Asked(Protocol):
    """The interface that a party needs of an adapter."""

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request."""
        ...


@dataclass(frozen=True)
class Spot:
    """Where two outboxes differ: the message's number and type, its field and element, and both values."""

    number: int
    type: str
    field: str
    element: int | None
    got: object
    wanted: object

    def __str__(self) -> str:
        at = "" if self.element is None else f"[{self.element}]"
        return f"message {self.number} ({self.type}), {self.field}{at}: got {self.got}, must be {self.wanted}"


class Difference(Exception):
    """The first fault of a mixed round: the party, the phase, the place, and the kind (a verdict of the kit)."""

    def __init__(self, verdict: str, party: int, phase: str, what: str, spot: Spot | None = None) -> None:
        super().__init__(differing(f"{called(party)}, step {phase}: {what}{'' if spot is None else str(spot)}"))
        self.verdict, self.party, self.phase, self.spot = verdict, party, phase, spot
        self.dropouts: Dropouts | None = None
        """The users that drop out before each phase, if a whole round was played."""


@dataclass(frozen=True, eq=False)
class Player:
    """An adapter that plays parties, and its declaration."""

    adapter: Asked
    caps: Capabilities

    def exact(self, inputs: SessionInputs, party: int) -> bool:
        """Return whether a party's messages are determined bit for bit."""
        own_code = inputs.protocol.startswith(CODED) and self.caps.policy("mds.code") != "vandermonde"
        own_stream = inputs.protocol in generators.STREAMED and generators.own(self.caps) and not prg.is_exchanged()
        return not (own_code or own_stream) and (
            not PARTIES[inputs.named(party)][1] or self.caps.grade("session.new") == "explicit"
        )

    def open(self, inputs: SessionInputs, party: int, handle: str | None = None) -> Remote:
        """Open a session for a party; without a given handle, use a new one."""
        handle = f"party {next(_handles)}" if handle is None else handle
        params = {"handle": handle, **inputs.opening(party)}
        answer = self.asked(Request("session.new", params, self.rand(inputs, party)), party, "session.new")
        if answer.kind != "result":
            raise Difference(_verdict(answer), party, "session.new", f"not opened: {answer.said}")
        return Remote(self, inputs, party, handle)

    def asked(self, request: Request, party: int, phase: str) -> Answer:
        """Return the answer to a request; a missing answer raises a difference."""
        try:
            return self.adapter.ask(request)
        except AdapterBroken as broken:
            raise Difference(broken.verdict, party, phase, str(broken)) from None

    def rand(self, inputs: SessionInputs, party: int) -> dict[str, Any] | None:
        """Return a party's ``rand`` for the adapter's randomness grade."""
        values, grade = inputs.rand(party), self.caps.grade("session.new")
        if not values or grade == "none":
            return None
        return {"seed": (party + 1).to_bytes(32, "little").hex()} if grade == "seeded" else dict(values)


@dataclass(frozen=True, eq=False)
class Remote:
    """One party that an adapter plays."""

    player: Player
    inputs: SessionInputs
    party: int
    handle: str

    @property
    def exact(self) -> bool:
        """Whether the party's messages are determined bit for bit."""
        return self.player.exact(self.inputs, self.party)

    def step(self, phase: str, inbox: Sequence[bytes]) -> Answer:
        """Let the party take a step; the answer is a result in the form of the text (ADP-15), or a rejection."""
        params = {"handle": self.handle, "phase": phase, "inbox": [data.hex() for data in inbox]}
        answer = self._told(Request("session.step", params), phase)
        if answer.kind == "result" and (wrong := _fault(answer.value)):
            raise Difference("protocol", self.party, phase, wrong)
        return answer

    def again(self, inputs: SessionInputs) -> Answer:
        """Ask the party to continue with the inputs of another round; the answer is a result or a rejection."""
        params, phase = {"handle": self.handle, **inputs.going_on(self.party)}, "session.again"
        return self._told(Request(phase, params, self.player.rand(inputs, self.party)), phase)

    def _told(self, request: Request, phase: str) -> Answer:
        answer = self.player.asked(request, self.party, phase)
        if answer.kind not in ("result", "reject"):
            raise Difference(_verdict(answer), self.party, phase, answer.said)
        return answer

    def free(self) -> None:
        """End the session."""
        answer = self.player.asked(Request("session.free", {"handle": self.handle}), self.party, "session.free")
        if answer.kind != "result":
            raise Difference(_verdict(answer), self.party, "session.free", f"refused: {answer.said}")
        if answer.value:
            raise Difference("wrong_value", self.party, "session.free", f"the result is {answer.value}, must be empty")


@contextmanager
def opened(player: Player, inputs: SessionInputs, party: int) -> Iterator[Remote]:
    """Open a session for a party, and free it at the end; a failure leaves it open, so that its step is the last."""
    remote = player.open(inputs, party)
    try:
        yield remote
    except TooFewSurvivors:
        remote.free()
        raise
    remote.free()


def _fault(result: Mapping[str, Any]) -> str:
    """Return what is wrong with the form of a step's result, or an empty string."""
    outbox = result.get("outbox")
    try:
        for text in outbox if isinstance(outbox, list) else ():
            octets(text)
    except ValueError as error:
        return f"a message of the outbox is not bytes: {error}"
    return results.fault("session.step", result)


def _verdict(answer: Answer) -> str:
    return "error" if answer.kind == "error" else "rejected_valid"


@dataclass(frozen=True, eq=False)
class Seat:
    """A place in a round: the state of the reference's party, and the remote party that plays it, if any."""

    party: int
    state: Any
    end: Callable[[Any], dict[str, Any]]
    remote: Remote | None = None
    aggregate: str | None = None
    alone: Mapping[tuple[int, str], Event | ProtocolError] = field(default_factory=dict)

    def take(self, step: Step[Any], inbox: Inbox, randomness: Any) -> tuple[Seat, Outbox]:
        """Take the reference's step and compare the remote party with it; or take only the remote party's step."""
        if self.remote is None:
            return self._shadowed(step, inbox, randomness)
        answer = self.remote.step(step.phase, [encode(message) for message in inbox])
        if not self.remote.exact:
            right = self.alone[self.party, step.phase]
            if isinstance(right, ProtocolError):
                refused(answer, self.party, step.phase, right)
                raise right
            sent = compare_frame(answer, self.party, step.phase, right.sent, right.state.aggregate)
            _demand_unchanged(sent, inbox, self.party, step.phase)
            return replace(self, aggregate=answer.value.get("aggregate")), tuple(sent)
        try:
            after, outbox = self._shadowed(step, inbox, randomness)
        except ProtocolError as error:
            refused(answer, self.party, step.phase, error)
            raise
        compare(answer, self.party, step.phase, outbox, after.aggregate)
        return after, outbox

    def _shadowed(self, step: Step[Any], inbox: Inbox, randomness: Any) -> tuple[Seat, Outbox]:
        state, outbox = step.take(self.state, inbox, randomness=randomness)
        return replace(self, state=state, aggregate=self.end(state).get("aggregate")), outbox


def taken(answer: Answer, party: int, phase: str) -> list[Any]:
    """Return the messages of a step that must have succeeded."""
    if answer.kind == "reject":
        what = f"the step is right, and was refused as {answer.code}: {answer.message}"
        raise Difference("rejected_valid", party, phase, what)
    try:
        return [parse(bytes.fromhex(text)) for text in answer.value["outbox"]]
    except (ValueError, ProtocolError) as error:
        raise Difference("wrong_value", party, phase, f"it sends something that is no message: {error}") from None


def refused(answer: Answer, party: int, phase: str, error: ProtocolError) -> None:
    """Judge the answer to a step that the shadow refuses."""
    if answer.kind != "reject":
        raise Difference("accepted_invalid", party, phase, f"taken, and it must be refused: {error}")
    codes = END_CODES if isinstance(error, TooFewSurvivors) else {reject_code(error), "other"}
    if answer.code not in codes:
        raise Difference("wrong_reason", party, phase, f"refused as {answer.code}: {error}")


def compare(answer: Answer, party: int, phase: str, outbox: Sequence[Message], aggregate: str | None) -> None:
    """Raise the first difference between the answer to a step and the reference's step."""
    spot = first_spot(taken(answer, party, phase), outbox)
    if spot is not None:
        raise Difference("wrong_value", party, phase, "", spot)
    if answer.value.get("aggregate") != aggregate:
        what = f"aggregate: got {answer.value.get('aggregate')}, must be {aggregate}"
        raise Difference("wrong_value", party, phase, what)


def compare_frame(
    answer: Answer, party: int, phase: str, outbox: Sequence[Message], aggregate: str | None
) -> list[Message]:
    """Do what `compare` does for a party that draws its own values, which may differ; return its messages."""
    sent = taken(answer, party, phase)
    spot = first_spot(sent, outbox, frame)
    if spot is not None:
        raise Difference("wrong_value", party, phase, "", spot)
    if ("aggregate" in answer.value) != (aggregate is not None):
        what = f"aggregate: got {answer.value.get('aggregate')}, must be {'None' if aggregate is None else 'a vector'}"
        raise Difference("wrong_value", party, phase, what)
    return sent


def _demand_unchanged(sent: Sequence[Message], inbox: Inbox, party: int, phase: str) -> None:
    """Raise the first difference between a message that a party passes on, and the same one as it came."""
    came = {key(message): message for message in inbox}
    for number, message in enumerate(sent):
        right = came.get(key(message), message)
        spot = _message_spot(number, message, right, field_codecs(type(right)))
        if spot is not None:
            raise Difference("wrong_value", party, phase, "", spot)


def frame(kind: type[Message]) -> list[str]:
    """Return the fields of a message that do not depend on what its sender draws."""
    return [name for name, codec in field_codecs(kind).items() if codec != OpaqueBytes() and name not in _DRAWN]


def first_spot(
    got: Sequence[Message],
    wanted: Sequence[Message],
    fields: Callable[[type[Message]], Iterable[str]] = field_codecs,
) -> Spot | None:
    """Return where an outbox first differs from the correct one, ignoring message order; None if it does not differ."""
    mine: dict[tuple[int, int, int], list[Message]] = {}
    for message in got:
        mine.setdefault(key(message), []).append(message)
    for number, right in enumerate(wanted):
        found = mine.get(key(right))
        if not found:
            return Spot(number, type(right).__name__, "receiver", None, "no such message", named(right.receiver))
        spot = _message_spot(number, found.pop(0), right, fields(type(right)))
        if spot is not None:
            return spot
    more = [message for left in mine.values() for message in left]
    if more:
        return Spot(len(wanted), type(more[0]).__name__, "receiver", None, named(more[0].receiver), "no such message")
    return None


def key(message: Message) -> tuple[int, int, int]:
    """Return the type, the sender and the receiver of a message (MSG-04)."""
    return message.TYPE, message.sender, message.receiver


def _message_spot(number: int, got: Message, wanted: Message, fields: Iterable[str]) -> Spot | None:
    for name in fields:
        spot = _field_spot(getattr(got, name), getattr(wanted, name))
        if spot is not None:
            return Spot(number, type(wanted).__name__, name, *spot)
    return None


def _field_spot(got: Any, wanted: Any) -> tuple[int | None, object, object] | None:
    if isinstance(wanted, int):
        return None if got == wanted else (None, got, wanted)
    for at, (mine, right) in enumerate(zip(got, wanted, strict=False)):
        if mine != right:
            return at, int(mine), int(right)
    return None if len(got) == len(wanted) else (None, f"length {len(got)}", f"length {len(wanted)}")


def play(inputs: SessionInputs, players: Mapping[int, Player], dropouts: Dropouts = NOBODY) -> Network:
    """Play a round: adapters play the parties that `players` names, and the reference plays the others.

    Returns the network after the last step; its states are `Seat`.

    Raises
    ------
    Difference
        The first fault: a wrong step or sum, or the refusal of a correct step.
    TooFewSurvivors
        Too few users remain, and the party that noticed has reported it correctly.
    """
    with ExitStack() as stack:
        remotes = {party: stack.enter_context(opened(player, inputs, party)) for party, player in players.items()}
        network = seated(inputs, remotes, dropouts)
        run_seated(inputs, network, dropouts)
    return network


def seated(inputs: SessionInputs, remotes: Mapping[int, Remote], dropouts: Dropouts) -> Network:
    """Return the network of a round before its first step; open sessions play some of its parties."""
    alone = {} if all(remote.exact for remote in remotes.values()) else _played_alone(inputs, dropouts)
    table = tuple(step.taken_by(_seated(step)) for step in inputs.table)
    parties = {party: inputs.open(party) for party in (*inputs.users, SERVER)}
    seats = {who: Seat(who, p.state, p.end, remotes.get(who), alone=alone) for who, p in parties.items()}
    return Network(table, seats)


def _played_alone(inputs: SessionInputs, dropouts: Dropouts) -> Mapping[tuple[int, str], Event | ProtocolError]:
    """Let the reference play a round alone, and return each party's steps by phase; any other step is refused."""
    network, steps = seated(inputs, {}, dropouts), defaultdict[tuple[int, str], Event | ProtocolError]()
    try:
        run_synchronous(network, dropouts, inputs.randomness())
    except ProtocolError as error:
        steps.default_factory = repeat(error).__next__
    steps.update({(event.party, event.step.phase): event for event in network.transcript})
    return steps


def run_seated(inputs: SessionInputs, network: Network, dropouts: Dropouts) -> None:
    """Play the round of `seated`, and judge its sum; raise the same errors as `play`."""
    try:
        _run(inputs, network, dropouts)
        _judge_sum(inputs, network)
    except Difference as difference:
        difference.dropouts = dropouts
        raise


def _seated(step: Step[Any]) -> Callable[..., tuple[Seat, Outbox]]:
    def run(seat: Seat, inbox: Inbox, *, randomness: Any) -> tuple[Seat, Outbox]:
        return seat.take(step, inbox, randomness)

    return run


def _run(inputs: SessionInputs, network: Network, dropouts: Dropouts) -> None:
    try:
        run_synchronous(network, dropouts, inputs.randomness())
    except TooFewSurvivors:
        raise
    except ProtocolError as error:
        blamed = min(error.blamed - {SERVER}, default=SERVER)
        phase = network.transcript[-1].step.phase if network.transcript else "?"
        raise Difference("wrong_value", blamed, phase, f"the next party refuses what it sent: {error}") from error


def _judge_sum(inputs: SessionInputs, network: Network) -> None:
    """Compare the aggregate with the sum of the updates, regardless of who computed it."""
    [step] = [event for event in network.transcript if event.step.role is Role.SERVER and event.step.phase in _MASKED]
    wanted = pack(inputs.total([message.sender for message in step.received]))
    last = network.transcript[-1]
    got = network.states[SERVER].aggregate
    if got != wanted:
        raise Difference("wrong_value", SERVER, last.step.phase, f"aggregate: got {got}, must be {wanted}")
