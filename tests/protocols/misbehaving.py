"""A network that misbehaves, for the protocols that mask in pairs: whatever it does, no user loses both its masks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg.round import UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER, Event, Network, Role, Step
from tests.strategies import snapshot

HEADERS: dict[str, Any] = {"session": b"s" * 16, "round": 1, "receiver": 99, "sender": 98}
KEPT = {"session", "round", "sender", "receiver"}
USERS = st.runner().flatmap(lambda machine: st.integers(0, machine.parameters.N - 1))
ABSENT = st.runner().flatmap(lambda machine: st.sets(st.integers(0, machine.parameters.N - 1), max_size=2))


class Misbehaving(RuleBasedStateMachine):
    """Messages are dropped, delayed, duplicated, reordered and altered; the server may tell users different sets.

    A protocol names its module, the parameters of its rounds, where `case_of` and `stage` are, and the message of its
    masked inputs, and judges its sums. `keys_may_change` says whether public keys are altered on their way, which the
    semi-honest profile rules out.
    """

    protocol: ClassVar[Any]
    parameters: ClassVar[Any]
    cases: ClassVar[Any]
    masked: ClassVar[type[Message]]
    keys_may_change: ClassVar[bool] = False

    def judge(self, server: Any) -> None:
        """Judge the sums of a round that has ended."""
        raise NotImplementedError

    @initialize(seed=st.integers(1, 9), rows=st.sampled_from((5, 3, 6, 7, 0, 1, 2, 4)))
    def begin(self, seed: int, rows: int) -> None:
        """Start with a round of which some rows went well."""
        self.case = self.cases.case_of(self.parameters, seed)
        self.network: Network = self.cases.stage(self.case, rows)
        self.table: Sequence[Step[Any]] = self.protocol.TABLE
        self.late: list[tuple[int, Message]] = []
        self.failures = 0

    def row_of(self, party: int) -> int:
        """The next row of a party; beyond the table when it has none."""
        phases = (*self.protocol.PHASES, "done")
        return 2 * phases.index(self.network.states[party].phase) + (party == SERVER)

    def boxes(self) -> list[tuple[int, int]]:
        """Where messages wait: (party, position)."""
        return [(party, at) for party, box in self.network.waiting.items() for at in range(len(box))]

    @rule(absent=ABSENT)
    def users_step(self, absent: set[int]) -> None:
        """Users take their next step when something waits for them."""
        for user in set(range(self.parameters.N)) - absent:
            row = self.row_of(user)
            if row == 0 or (row < len(self.table) and self.network.mail(self.table[row], user)):
                self.take(user)

    @rule(user=USERS)
    def user_step(self, user: int) -> None:
        """A user takes its next step, whatever waits for it."""
        if self.row_of(user) < len(self.table):
            self.take(user)

    @rule()
    @precondition(lambda self: self.row_of(SERVER) < len(self.table))
    def server_step(self) -> None:
        """The server takes its next step; what it refuses it drops, and tries again."""
        row = self.row_of(SERVER)
        for _ in range(6):
            if self.row_of(SERVER) == row and self.network.mail(self.table[row], SERVER):
                self.take(SERVER)

    @rule(data=st.data())
    @precondition(lambda self: self.boxes())
    def misbehave(self, data: st.DataObject) -> None:
        """Some faults of the network, of senders, or of the server."""
        faults = (
            self.remove, self.delay, self.deliver, self.duplicate, self.reorder, self.alter_header, self.tamper,
            self.equivocate, self.equivocate,
        )  # fmt: skip
        for fault in data.draw(st.lists(st.sampled_from(faults), min_size=1, max_size=3)):
            fault(data)

    def pick(self, data: st.DataObject) -> list[tuple[int, int]]:
        """The place of some waiting message, where there is one."""
        boxes = self.boxes()
        return [data.draw(st.sampled_from(boxes))] if boxes else []

    def remove(self, data: st.DataObject) -> list[tuple[int, Message]]:
        """Take some waiting message out."""
        return [(party, self.network.waiting[party].pop(at)) for party, at in self.pick(data)]

    def delay(self, data: st.DataObject) -> None:
        """Hold a message back."""
        self.late += self.remove(data)

    def deliver(self, data: st.DataObject) -> None:
        """Deliver what was held back."""
        for party, message in self.late:
            self.network.waiting.setdefault(party, []).append(message)
        self.late = []

    def duplicate(self, data: st.DataObject) -> None:
        """Deliver a message twice."""
        for party, at in self.pick(data):
            self.network.waiting[party].append(self.network.waiting[party][at])

    def reorder(self, data: st.DataObject) -> None:
        """Deliver in another order."""
        for box in self.network.waiting.values():
            data.draw(st.randoms(use_true_random=False)).shuffle(box)

    def alter_header(self, data: st.DataObject) -> None:
        """Make a message one from elsewhere."""
        name = data.draw(st.sampled_from(sorted(HEADERS)))
        for party, at in self.pick(data):
            box = self.network.waiting[party]
            box[at] = replace(box[at], **{name: HEADERS[name]})

    def tamper(self, data: st.DataObject) -> None:
        """Alter, cut or lengthen bytes of a message."""
        for party, at in self.pick(data):
            box = self.network.waiting[party]
            names = [f.name for f in fields(box[at]) if f.name not in KEPT and self.may_change(box[at], f.name)]
            for name in names[:1] and [data.draw(st.sampled_from(names))]:
                place = data.draw(st.integers(0, 65))
                message: Any = box[at]
                box[at] = replace(message, **{name: altered(getattr(message, name), place)})

    def may_change(self, message: Message, name: str) -> bool:
        """Whether a field is bytes, and no public key where channels are said to be authentic."""
        return isinstance(getattr(message, name), bytes) and (
            self.keys_may_change or name not in ("sealing", "masking")
        )

    def equivocate(self, data: st.DataObject) -> None:
        """Tell one user that a survivor has dropped, or the other way round."""
        for user in range(self.parameters.N):
            box = self.network.waiting.get(user, [])
            for at, message in enumerate(box):
                if isinstance(message, UnmaskRequest) and data.draw(st.booleans()):
                    moved = self.moved(data)
                    survivors, dropped = (set(users) ^ moved for users in (message.survivors, message.dropped))
                    box[at] = replace(message, survivors=tuple(sorted(survivors)), dropped=tuple(sorted(dropped)))

    def moved(self, data: st.DataObject) -> set[int]:
        """Whom the server lies about."""
        return {data.draw(st.integers(0, self.parameters.N - 1))}

    def take(self, party: int) -> None:
        """Take the next step; a refusal changes nothing, and the mail of the blamed is dropped."""
        step = self.table[self.row_of(party)]
        sampled = {name: self.case.randomness[party][name] for name in step.randomness}
        before = snapshot([self.network.states[party], self.network.waiting])
        try:
            event = self.network.take(step, party, sampled)
        except ProtocolError as error:
            assert snapshot([self.network.states[party], self.network.waiting]) == before
            self.failures += 1
            box = self.network.waiting.get(party, [])
            self.network.waiting[party] = [m for m in box if m.sender not in error.blamed]
        else:
            self.finished(event)

    def finished(self, event: Event) -> None:
        """Judge the sum."""
        if event.step is not self.table[-1]:
            return
        self.judge(event.state)

    @invariant()
    def no_holder_gives_both_secrets_of_a_user(self) -> None:
        """Of each user, a holder gives a share of one secret, once; all of them, in the active profile, of the same."""
        seeds, keys = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
        for event in getattr(self, "network", Network((), {})).transcript:
            for message in event.sent:
                if isinstance(message, UnmaskShares):
                    for given, owners in ((seeds, message.survivors), (keys, message.dropped)):
                        for owner in owners:
                            assert event.party not in given[owner]
                            given[owner].add(event.party)
        for owner in range(self.parameters.N):
            assert not seeds[owner] & keys[owner]
            assert not (self.keys_may_change and seeds[owner] and keys[owner])

    @invariant()
    def every_step_is_taken_once(self) -> None:
        """No user has sent a second masked input, or a second answer."""
        taken = [(e.step.phase, e.party) for e in getattr(self, "network", Network((), {})).transcript]
        assert len(taken) == len(set(taken))
        inputs = [e for e in getattr(self, "network", Network((), {})).transcript if e.step.role is Role.USER]
        assert all(sum(isinstance(m, self.masked) for m in event.sent) <= 1 for event in inputs)

    def teardown(self) -> None:
        """Whatever happened, let the round go on in order to its end."""
        for _ in range(5 if hasattr(self, "network") else 0):
            self.users_step(set())
            if self.row_of(SERVER) < len(self.table):
                self.server_step()


def altered(data: bytes, place: int) -> bytes:
    """Bytes with a bit flipped at a place, or one byte longer when they end before it."""
    return data[:place] + bytes([data[place] ^ 2]) + data[place + 1 :] if place < len(data) else data + b"\0"
