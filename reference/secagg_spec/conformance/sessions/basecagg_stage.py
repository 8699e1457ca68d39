"""Sessions of BASecAgg, turn by turn, in which each party may be a different implementation.

Parties do not go through common phases: a *turn* says which party takes which step, and on which messages. A session
that the reference played can therefore be replayed by other implementations, which make their own messages. A party
that an adapter plays has a shadow, as in `mixed`, and the first difference is located in the same way. If an adapter
draws its own values, the reference plays the session alone as well, turn by turn.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from secagg_spec.arithmetic.staleness import Staleness, admissible_weights
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.sessions.inputs import SessionInputs, called
from secagg_spec.conformance.sessions.mixed import Difference, Player, Remote, compare, compare_frame, opened
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call, Party
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.basecagg.round import BufferedSet, StampedUpdate
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import SERVER, Event, Network


class Key(NamedTuple):
    """A message of a session: the number of the turn in which it was sent, its sender, and its receiver."""

    turn: int
    sender: int
    receiver: int


@dataclass(frozen=True)
class Turn:
    """A party's step on messages that were sent earlier."""

    party: int
    phase: str
    inbox: tuple[Key, ...] = ()


@dataclass(eq=False)
class Stage:
    """The parties of a session and every message sent so far; `remotes` are the parties that an adapter plays.

    `alone` is the session that the reference plays alone, up to the same turn, if an adapter draws its own values.
    """

    inputs: SessionInputs
    parties: dict[int, Party]
    remotes: Mapping[int, Remote] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    sent: dict[Key, Message] = field(default_factory=dict)
    transcript: list[Event] = field(default_factory=list)
    updates: dict[tuple[int, int], UintArray] = field(default_factory=dict)
    announced: BufferedSet | None = None
    aggregates: list[UintArray] = field(default_factory=list)
    alone: Self | None = None

    @classmethod
    def of(cls, inputs: SessionInputs, remotes: Mapping[int, Remote] | None = None) -> Self:
        """Return the stage of a session before its first turn."""
        return cls(inputs, {party: inputs.open(party) for party in inputs.setups}, remotes or {})

    @classmethod
    def played(cls, inputs: SessionInputs, players: Mapping[int, Player], turns: Sequence[Turn]) -> Self:
        """Play a session: adapters play the parties that `players` names, and the reference plays the others.

        The turns come from a session that the reference played, so every step must be taken.

        Raises
        ------
        Difference
            The first fault: a wrong step or sum, or the refusal of a correct step.
        """
        with ExitStack() as stack:
            remotes = {party: stack.enter_context(opened(player, inputs, party)) for party, player in players.items()}
            stage = cls.of(inputs, remotes)
            stage.alone = None if all(remote.exact for remote in remotes.values()) else cls.of(inputs)
            for turn in turns:
                if stage.alone is not None:
                    stage.alone.take(turn)
                stage.take(turn)
        return stage

    def take(self, turn: Turn) -> list[Key]:
        """Let a party take its step, and return the keys of the messages that it sends.

        Raises
        ------
        Difference
            A party other than the reference's takes a wrong step, or the reference's party refuses a message from
            another implementation.
        ProtocolError
            The reference refuses the step, and no other implementation was involved.
        """
        received = tuple(self.sent[key] for key in turn.inbox)
        entry = self._entry(turn, Call(turn.phase, tuple(encode(message) for message in received)))
        outbox = tuple(parse(bytes.fromhex(text)) for text in entry["outbox"])
        party = self.parties[turn.party]
        self.transcript.append(Event(party.step(turn.phase), turn.party, received, outbox, party.state))
        keys = [Key(len(self.turns), message.sender, message.receiver) for message in outbox]
        self.sent.update(zip(keys, outbox, strict=True))
        self.turns.append(turn)
        self._note(turn, outbox, entry)
        return keys

    def network(self) -> Network:
        """Return the session so far as a network."""
        network = Network(self.inputs.table, {party: actor.state for party, actor in self.parties.items()})
        network.transcript = list(self.transcript)
        return network

    def _entry(self, turn: Turn, call: Call) -> dict[str, Any]:
        remote, party = self.remotes.get(turn.party), self.parties[turn.party]
        if remote is None:
            return self._own(party, turn, call)
        answer = remote.step(turn.phase, call.inbox)
        if not remote.exact:
            assert self.alone is not None
            right, twin = self.alone.transcript[-1], self.alone.parties[turn.party]
            aggregate = twin.shown(right.step).get("aggregate")
            outbox = compare_frame(answer, turn.party, turn.phase, right.sent, aggregate)
            return {**answer.value, "outbox": [encode(message).hex() for message in outbox]}
        entry = self._own(party, turn, call)
        wanted = [parse(bytes.fromhex(text)) for text in entry["outbox"]]
        compare(answer, turn.party, turn.phase, wanted, entry.get("aggregate"))
        return entry

    def _own(self, party: Party, turn: Turn, call: Call) -> dict[str, Any]:
        """Return the entry of a reference party; if it refuses, the sender of the message is at fault."""
        try:
            return party.take(call)
        except ProtocolError as error:
            if not self.remotes:
                raise
            senders = {parse(data).sender for data in call.inbox}
            blamed = min((set(error.blamed) | senders) & set(self.remotes) or senders or {turn.party})
            what = f"{called(turn.party)} refuses what it sent: {error}"
            raise Difference("wrong_value", blamed, turn.phase, what) from error

    def _note(self, turn: Turn, outbox: Sequence[Message], entry: Mapping[str, Any]) -> None:
        """Record the data for judging the sum of a buffer, and judge the sum."""
        for message in outbox:
            if isinstance(message, StampedUpdate):
                given = self.inputs.setups[turn.party]["updates"]
                number = sum(user == turn.party for user, _ in self.updates)
                self.updates[turn.party, message.round] = unpack(given[number]).astype(np.uint64)
            if isinstance(message, BufferedSet):
                self.announced = message
        if turn.phase == "close":
            self._judge_weights()
        if (turn.party, turn.phase) == (SERVER, "recover"):
            self._judge_sum(entry)

    def _judge_weights(self) -> None:
        """Check that the weights are a possible result of a draw, since a server may draw them itself (BSA-23)."""
        assert self.announced is not None
        numbers, announced = self.inputs.numbers, self.announced
        function = staleness_of(numbers)
        if len(announced.weights) != len(announced.users):
            what = f"{len(announced.weights)} weights are announced, must be {len(announced.users)}"
            raise Difference("wrong_value", SERVER, "close", what)
        for user, stamp, weight in zip(announced.users, announced.stamps, announced.weights, strict=True):
            allowed = admissible_weights(function, int(numbers["c_g"]), announced.round - int(stamp))
            if int(weight) not in allowed:
                what = f"the weight of user {user} is {int(weight)}, must be {' or '.join(map(str, allowed))}"
                raise Difference("wrong_value", SERVER, "close", what)

    def _judge_sum(self, entry: Mapping[str, Any]) -> None:
        """Compare the aggregate with the weighted sum of the updates, regardless of who computed it (BSA-29)."""
        assert self.announced is not None
        announced = self.announced
        total = weighted_sum(
            int(self.inputs.numbers["q"]),
            announced.weights.tolist(),
            [self.updates[user, int(stamp)] for user, stamp in zip(announced.users, announced.stamps, strict=True)],
        )
        self._judge(entry, total)

    def _judge(self, entry: Mapping[str, Any], total: UintArray) -> None:
        if entry.get("aggregate") != pack(total):
            what = f"aggregate: got {entry.get('aggregate')}, must be {pack(total)}"
            raise Difference("wrong_value", SERVER, "recover", what)
        self.aggregates.append(total)


def weighted_sum(q: int, weights: Sequence[int], rows: Sequence[UintArray]) -> UintArray:
    """Return the sum modulo q of vectors of elements, each multiplied by its weight."""
    columns = zip(*(row.tolist() for row in rows), strict=True)
    sums = [sum(w * v for w, v in zip(weights, column, strict=True)) % q for column in columns]
    return np.array(sums, dtype=np.uint64)


def answering(inputs: SessionInputs) -> str:
    """Return the step in which a user receives a buffer: `recover`, or `confirm` in the active profile."""
    return "confirm" if "W" in inputs.numbers else "recover"


def staleness_of(numbers: Mapping[str, Any]) -> Staleness:
    """Return the staleness function of a session."""
    return Staleness(numbers["kind"], numbers["numerator"], numbers["denominator"], int(numbers["start"]))
