"""BASA on a network that misbehaves, epoch after epoch: the right sum or none, one key and one upload a position."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.messages import (
    KeyRequest,
    PositionKey,
    PositionOffer,
    PositionRequest,
    PositionUpload,
    Release,
)
from secagg_spec.protocols.basa.store import restore_authority, restore_server, store_authority, store_server
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Event
from tests.protocols.positions import CLOSED, TINY, Scene
from tests.strategies import integers_of, snapshot, vector

USERS = range(6)
Box = list[tuple[int, Message]]
HEADERS: dict[str, Any] = {"session": b"s" * 16, "receiver": 99, "sender": 98}
FIELDS = ("position", "stamp", "weight", "boxes", "keys", "signature", "masked")
PRIVATE = (KeyRequest, PositionKey)
"""What goes between users and the authority: lost, late or twice, but not altered."""


class Misbehaving(RuleBasedStateMachine):
    """Messages of users are dropped, delayed, duplicated, reordered and altered; server and authority are killed."""

    parameters: ClassVar[Parameters] = TINY

    @initialize(seed=st.integers(1, 9), filled=st.integers(0, 2))
    def begin(self, seed: int, filled: int) -> None:
        """Start with some updates in the buffer."""
        self.scene = Scene(self.parameters, seed)
        self.late: Box = []
        self.trained: dict[int, list[int]] = {}
        self.sums = 0
        self.scene.open()
        for user in range(filled):
            for _ in range(3):
                self.users_turn([user], set())
                self.serve()

    # ---------------------------------------------------------------------------------------------- what parties do

    def train(self, user: int) -> None:
        """A user without an update gets one."""
        if self.scene.user(user).update is None:
            self.trained[user] = integers_of(self.scene.train(user))

    @rule(users=st.permutations(USERS), absent=st.sets(st.sampled_from(USERS), max_size=4))
    def users_turn(self, users: list[int], absent: set[int]) -> None:
        """Users take what waits for them, and ask for a position, also once more."""
        for user in users:
            if user not in absent:
                self.train(user)
                for phase in ("fetch", "upload"):
                    for message in self.scene.mail(phase, user):
                        self.take(phase, user, [message])
                if self.scene.user(user).update is not None and self.scene.user(user).phase != "fetched":
                    self.take("request", user, ())

    @rule(user=st.sampled_from(USERS))
    def lose_patience(self, user: int) -> None:
        """A user gives up its position, and asks for one."""
        self.train(user)
        self.take("request", user, ())

    @rule(rounds=st.integers(1, 12))
    def go_well(self, rounds: int) -> None:
        """For a while, nothing goes wrong."""
        for _ in range(rounds):
            self.users_turn(list(USERS), set())
            self.serve()
            self.close()

    @rule()
    def serve(self) -> None:
        """The server and the authority take what waits for them."""
        self.consult()
        for phase in ("take", "offer"):
            for message in self.scene.mail(phase, SERVER):
                self.take(phase, SERVER, [message])
                self.consult()

    def consult(self) -> None:
        """The authority takes all that waits, and the server hears of it."""
        for phase in ("assign", "settle", "issue", "close", "abandon"):
            for message in self.scene.mail(phase, AUTHORITY):
                self.take(phase, AUTHORITY, [message])
        for phase in ("settle", "recover"):
            for message in self.scene.mail(phase, SERVER):
                self.take(phase, SERVER, [message])

    @rule()
    def expire(self) -> None:
        """The server gives up who it serves."""
        if self.scene.server.phase == "serving":
            self.take("expire", SERVER, ())
            self.consult()

    @rule()
    def close(self) -> None:
        """The server closes when it can, and a next epoch is opened."""
        state, p = self.scene.server, self.parameters
        n = len(state.entries)
        full = n == p.K or (len(state.places) == p.positions and n >= p.T + 2)
        if state.phase == "filling" and full:
            self.take("close", SERVER, ())
            self.consult()
        self.reopen()

    @rule(unlucky=st.integers(0, 5))
    def abandon(self, unlucky: int) -> None:
        """The server gives up the epoch, now and then."""
        if unlucky == 0 and self.scene.server.phase != "idle":
            self.take("abandon", SERVER, ())
            self.consult()
        self.reopen()

    def reopen(self) -> None:
        """Open an epoch, where none is."""
        if self.scene.server.phase == "idle":
            self.scene.open()

    @rule()
    def killed(self) -> None:
        """The server and the authority are killed, and come back from what they stored."""
        states = self.scene.network.states
        before = snapshot([states[SERVER], states[AUTHORITY]])
        states[SERVER] = restore_server(json.loads(json.dumps(store_server(states[SERVER]))))
        states[AUTHORITY] = restore_authority(json.loads(json.dumps(store_authority(states[AUTHORITY]))))
        assert snapshot([states[SERVER], states[AUTHORITY]]) == before

    def take(self, phase: str, party: int, inbox: Sequence[Message]) -> None:
        """Take a step; a refusal changes nothing, and what was refused is dropped."""
        network = self.scene.network
        before = snapshot([network.states[party], network.waiting, len(network.transcript)])
        try:
            event = self.scene.take(phase, party, inbox)
        except ProtocolError:
            assert snapshot([network.states[party], network.waiting, len(network.transcript)]) == before
            dropped = {id(message) for message in inbox}
            network.waiting[party] = [m for m in network.waiting.get(party, []) if id(m) not in dropped]
        else:
            self.finished(event)

    def finished(self, event: Event) -> None:
        """Keep what was uploaded; judge a sum that was recovered."""
        if (event.step.phase, event.party) == ("upload", event.party) and event.party in USERS:
            (message,) = event.sent
            assert isinstance(message, PositionUpload)
            key = message.round, message.position
            assert key not in self.scene.uploads, "two users upload at one position"
            self.scene.uploads[key] = vector(self.trained[event.party]), message
        if event.step.phase == "recover":
            self.sums += 1
            recovered = self.scene.server.recovered
            assert recovered is not None
            expected = self.scene.plain_sum(recovered.epoch, recovered.entries)
            wrong = self.tampered(recovered.epoch)
            assert integers_of(recovered.sum) == [(a + b) % 16 for a, b in zip(expected, wrong, strict=True)]

    def tampered(self, epoch: int) -> list[int]:
        """By how much the masked updates that were accepted differ from those that were sent; nothing protects them."""
        total = [0] * self.parameters.d
        for event in self.scene.network.transcript:
            if event.step.phase == "take" and event.received[0].round == epoch:
                (taken,) = event.received
                assert isinstance(taken, PositionUpload)
                kept = self.outcomes.get((epoch, taken.position)) == 1
                if kept:
                    sent = self.scene.uploads[epoch, taken.position][1]
                    difference = zip(integers_of(taken.masked), integers_of(sent.masked), strict=True)
                    total = [t + a - b for t, (a, b) in zip(total, difference, strict=True)]
        return total

    @property
    def outcomes(self) -> dict[tuple[int, int], int]:
        """What became of each position, as the authority settled it last."""
        states: dict[tuple[int, int], int] = {}
        for event in self.scene.network.transcript:
            if (event.step.phase, event.party) == ("settle", AUTHORITY):
                (said,) = event.sent
                states[said.round, said.position] = said.state  # type: ignore[attr-defined]
        return states

    # -------------------------------------------------------------------------------------- what the network does

    @rule(data=st.data())
    def misbehave(self, data: st.DataObject) -> None:
        """Some faults of the network."""
        faults = (
            self.remove, self.delay, self.deliver, self.duplicate, self.reorder, self.header, self.tamper, self.replay,
        )  # fmt: skip
        for fault in data.draw(st.lists(st.sampled_from(faults), min_size=1, max_size=3)):
            fault(data)

    def places(self, *, altering: bool) -> list[tuple[int, int]]:
        """Where the messages of users are; those with the authority are not altered."""
        boxes = self.scene.network.waiting
        found = [(party, at) for party, box in boxes.items() for at in range(len(box))]
        kinds = (PositionRequest, PositionOffer, PositionUpload)
        return [(p, at) for p, at in found if isinstance(boxes[p][at], kinds if altering else (*kinds, *PRIVATE))]

    def pick(self, data: st.DataObject, *, altering: bool = False) -> list[tuple[int, int]]:
        """The place of some message, where there is one."""
        places = self.places(altering=altering)
        return [data.draw(st.sampled_from(places))] if places else []

    def remove(self, data: st.DataObject) -> Box:
        """Lose a message."""
        return [(party, self.scene.network.waiting[party].pop(at)) for party, at in self.pick(data)]

    def delay(self, data: st.DataObject) -> None:
        """Hold a message back."""
        self.late += self.remove(data)

    def deliver(self, data: st.DataObject) -> None:
        """Deliver what was held back."""
        for party, message in self.late:
            self.scene.network.waiting.setdefault(party, []).append(message)
        self.late = []

    def duplicate(self, data: st.DataObject) -> None:
        """Deliver a message twice."""
        for party, at in self.pick(data):
            box = self.scene.network.waiting[party]
            box.append(replace(box[at]))

    def reorder(self, data: st.DataObject) -> None:
        """Deliver to users in another order."""
        for party, box in self.scene.network.waiting.items():
            if party not in (SERVER, AUTHORITY):
                data.draw(st.randoms(use_true_random=False)).shuffle(box)

    def replay(self, data: st.DataObject) -> None:
        """Deliver something that was sent before, maybe epochs ago."""
        kinds = (PositionRequest, PositionOffer, PositionUpload, *PRIVATE)
        sent = [m for event in self.scene.network.transcript for m in event.sent if isinstance(m, kinds)]
        if sent:
            message = data.draw(st.sampled_from(sent[-30:]))
            self.scene.network.waiting.setdefault(message.receiver, []).append(replace(message))

    def header(self, data: st.DataObject) -> None:
        """Make a message one from elsewhere."""
        name, by = data.draw(st.sampled_from([*sorted(HEADERS), "round"])), data.draw(st.sampled_from((1, 2, 7)))
        for party, at in self.pick(data, altering=True):
            box = self.scene.network.waiting[party]
            value: Any = box[at].round + by if name == "round" else HEADERS[name]
            box[at] = replace(box[at], **{name: value})

    def tamper(self, data: st.DataObject) -> None:
        """Alter a field: a bit of bytes, a number, an element, or the length."""
        for party, at in self.pick(data, altering=True):
            box = self.scene.network.waiting[party]
            message = box[at]
            present = [name for name in FIELDS if hasattr(message, name)]
            if present:
                name = data.draw(st.sampled_from(present))
                box[at] = replace(message, **{name: other(getattr(message, name), data)})

    # ------------------------------------------------------------------------------------------------ what holds

    def events(self, phase: str, party: int | None = None) -> list[Event]:
        """The steps of a phase."""
        transcript = self.scene.network.transcript if hasattr(self, "scene") else []
        return [e for e in transcript if e.step.phase == phase and (party is None or e.party == party)]

    @invariant()
    def one_key_for_each_position_and_user(self) -> None:
        """The key of a position goes to one user, once; and a user has one key of an epoch (BAA-10 to BAA-12)."""
        given = [event.sent[0] for event in self.events("issue")]
        assert len({(m.round, m.position) for m in given}) == len(given)  # type: ignore[attr-defined]
        assert len({(m.round, m.receiver) for m in given}) == len(given)

    @invariant()
    def one_upload_for_each_position(self) -> None:
        """At a position there is one masked update at most, and its seeds are in no other (BAA-12, BAA-27)."""
        sent = [event.sent[0] for event in self.events("upload")]
        assert len({(m.round, m.position) for m in sent}) == len(sent)  # type: ignore[attr-defined]

    @invariant()
    def one_secret_key_of_each_position_is_released(self) -> None:
        """The self key of the accepted positions, and the pair key of no accepted one, once an epoch (BAA-20)."""
        released: dict[int, Release] = {}
        for event in self.events("close", AUTHORITY):
            (message,) = event.sent
            assert isinstance(message, Release)
            assert message.round not in released
            released[message.round] = message
        for epoch, message in released.items():
            if not self.parameters.settle:
                assert message.keys == b""
                continue
            states = self.outcomes
            for position in range(self.parameters.positions):
                key = message.keys[32 * position :][:32]
                accepted = states.get((epoch, position)) == 1
                pair, own = self.private(epoch, position)
                assert key == (own if accepted else pair)

    def private(self, epoch: int, position: int) -> tuple[bytes, bytes]:
        """The two secret keys of a position."""
        opened = [values for values in self.scene.sampled if "pair_keys" in values][epoch]
        at = slice(32 * position, 32 * position + 32)
        return opened["pair_keys"][at], opened["self_keys"][at]

    @invariant()
    def only_what_the_authority_settled_is_in_the_buffer(self) -> None:
        """The accepted positions of the server are those of the authority (BAA-40)."""
        if hasattr(self, "scene") and self.scene.server.phase not in ("idle", "closing"):
            assert self.scene.server.epoch == self.scene.authority.epoch
            mine = [entry.position for entry in self.scene.server.entries]
            if self.scene.server.phase != "settling":
                assert mine == list(self.scene.authority.accepted)

    def teardown(self) -> None:
        """Whatever happened, let the next epoch go well."""
        if not hasattr(self, "scene"):
            return
        self.scene.lose()
        if self.scene.server.phase != "idle":
            self.scene.abandon() if self.scene.authority.is_open else self.take("abandon", SERVER, ())
        self.scene.lose()
        self.scene.open()
        self.scene.upload(*range(self.parameters.K))
        self.scene.recover_rightly()


def other(value: Any, data: st.DataObject) -> Any:
    """Another value of the same field."""
    if isinstance(value, int):
        return data.draw(st.sampled_from((0, 1, 2, 3, 4, 2**32 - 1)))
    if isinstance(value, bytes):
        if not value or data.draw(st.booleans()):
            return value[: data.draw(st.integers(0, 80))] if value else bytes(80)
        at = data.draw(st.integers(0, len(value) - 1))
        return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    return vector(data.draw(st.sampled_from(([], [1], [1, 2], [15, 0], [16, 0], [1, 2, 3]))))


class Voiding(Misbehaving):
    """The same where timeouts end the epoch."""

    parameters = CLOSED


STEPS = settings(stateful_step_count=30)
TestSettle = pytest.mark.requirement("BAA-12", "BAA-20", "BAA-40", "BAA-44", "BAA-45", "MSG-03", "MSG-04")(
    Misbehaving.TestCase
)
TestVoid = pytest.mark.requirement("BAA-12", "BAA-17", "BAA-21", "BAA-45")(Voiding.TestCase)
TestSettle.settings = TestVoid.settings = STEPS


def test_the_machine_reaches_sums() -> None:
    """Left alone, a session of the machine recovers epochs one after another."""
    machine = Misbehaving()
    machine.begin(1, 2)
    for _ in range(30):
        machine.users_turn(list(USERS), set())
        machine.serve()
        machine.killed()
        machine.close()
    assert machine.sums >= 2
