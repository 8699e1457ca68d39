"""BASecAgg on a network that misbehaves, round after round: the right weighted sum or an error, and no share twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.crypto.channels import PlainStampedChannel
from secagg_spec.errors import BadShare, ProtocolError, TooFewSurvivors
from secagg_spec.protocols.agreement import sign_proposal
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import store as basecagg_store
from secagg_spec.protocols.basecagg.active import BufferQuorum, SignedBuffer, ballot_of, proposal_of
from secagg_spec.protocols.basecagg.round import (
    BufferedSet,
    Entry,
    Parameters,
    WeightedShare,
    entries_of,
    sealing_context,
)
from secagg_spec.protocols.basecagg.runs import sealed_channels
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import SERVER, Event
from tests.protocols.buffered import KEYS, Scene, altered
from tests.strategies import integers_of, snapshot, vector

HEADERS: dict[str, Any] = {"session": b"s" * 16, "receiver": 99, "sender": 98}
BAD: tuple[list[int], ...] = ([], [1], [1, 2, 3, 4], [19, 0], [1, 2, 19])
USERS = range(5)
PLAIN = PlainStampedChannel()
Box = list[tuple[int, Message]]


class Misbehaving(RuleBasedStateMachine):
    """Messages are dropped, delayed, duplicated, reordered and altered, and the server is killed and restored."""

    parameters: ClassVar[Parameters] = basecagg.PRESETS["tiny"]

    @initialize(seed=st.integers(1, 9), rounds=st.sampled_from((0, 1, 2)), filled=st.integers(0, 3))
    def begin(self, seed: int, rounds: int, filled: int) -> None:
        """Start with some rounds that went well, and some updates in the buffer."""
        self.scene = Scene(self.parameters, seed)
        self.seal()
        self.late: Box = []
        self.failures = 0
        for _ in range(rounds):
            self.scene.fill()
            self.scene.recover()
        self.scene.start(*USERS)
        self.scene.upload(*range(filled))
        self.judged = len(self.scene.network.transcript)

    def seal(self) -> None:
        """Let the users seal; in the active profile they do."""
        context = sealing_context(self.parameters, bytes(16))
        links = sealed_channels(context, {user: KEYS[user].sealing for user in USERS})
        for user in USERS:
            self.scene.network.states[user] = replace(self.scene.network.states[user], channel=links[user])

    # ------------------------------------------------------------------------------------------ what parties do

    @rule(users=st.permutations(USERS), absent=st.sets(st.sampled_from(USERS), max_size=2))
    def users_step(self, users: list[int], absent: set[int]) -> None:
        """Users take what waits for them, one message after the other, and do what comes next."""
        for user in users:
            if user not in absent:
                for phase in ("hold", "share", *self.answering()):
                    for message in self.scene.mail(phase, user):
                        self.take(phase, user, [message])
                self.next_of(user)

    def answering(self) -> tuple[str, ...]:
        """The phases in which users hear of buffers."""
        return ("confirm", "recover") if self.scene.active else ("recover",)

    def next_of(self, user: int) -> None:
        """An idle user asks, one that trains uploads."""
        state = self.scene.user(user)
        if state.phase == "training":
            update = self.scene.train(user)
            self.scene.updates[user, state.stamp] = update
            self.take("upload", user, ())
        elif state.stamp is None or state.stamp < self.scene.server.round:
            self.take("request", user, ())

    @rule(
        user=st.sampled_from(USERS), phase=st.sampled_from(("request", "upload", "abandon", "share", "hold", "recover"))
    )
    def user_step(self, user: int, phase: str) -> None:
        """A user takes some step on all that waits for it."""
        if phase == "upload" and self.scene.user(user).phase == "training":
            self.scene.updates[user, self.scene.user(user).stamp] = self.scene.train(user)
        self.take(phase, user, self.scene.mail(phase, user))

    @rule()
    def server_steps(self) -> None:
        """The server takes what waits for it; what it refuses is dropped."""
        for phase in ("request", "upload"):
            for message in self.scene.mail(phase, SERVER):
                self.take(phase, SERVER, [message])
        batches = defaultdict[tuple[int, int], list[Message]](list)
        for message in self.scene.mail("share", SERVER):
            batches[message.sender, message.round].append(message)
        for batch in batches.values():
            self.take("share", SERVER, batch)
        if self.scene.server.phase == "filling" and len(self.scene.server.buffer) == self.parameters.K:
            self.take("close", SERVER, ())
        for phase in self.answering() if self.scene.server.entries else ():
            self.take(phase, SERVER, [m for m in self.scene.mail(phase, SERVER) if m.round == self.scene.server.round])

    @rule()
    def server_is_restored(self) -> None:
        """The server is killed, and comes back from what it stored."""
        states = self.scene.network.states
        before = snapshot(states[SERVER])
        states[SERVER] = self.restored(states[SERVER])
        assert snapshot(states[SERVER]) == before

    def restored(self, state: Any) -> Any:
        """The server as it comes back."""
        return basecagg_store.restore(basecagg_store.store(state))

    def take(self, phase: str, party: int, inbox: Sequence[Message]) -> None:
        """Take a step; a refusal changes nothing, and what was refused is dropped."""
        network = self.scene.network
        before = snapshot([core(network.states[party]), network.waiting, len(network.transcript)])
        try:
            event = self.scene.take(phase, party, inbox)
        except ProtocolError as error:
            assert snapshot([core(network.states[party]), network.waiting, len(network.transcript)]) == before
            self.failures += 1
            self.drop(party, self.culprits(inbox, error))
        else:
            self.finished(event)

    def culprits(self, inbox: Sequence[Message], error: ProtocolError) -> list[Message]:
        """What of a refused inbox is not tried again."""
        if isinstance(error, TooFewSurvivors):
            return []
        if isinstance(error, BadShare):
            wrong = self.wrong(inbox)
            assert {m.sender for m in wrong} & error.blamed
            return wrong
        return [m for m in inbox if m.sender in error.blamed] or list(inbox)

    def drop(self, party: int, messages: Sequence[Message]) -> None:
        """Take messages out of the mail."""
        dropped = {id(message) for message in messages}
        box = self.scene.network.waiting.get(party, [])
        self.scene.network.waiting[party] = [m for m in box if id(m) not in dropped]

    def finished(self, event: Event) -> None:
        """Judge a sum that was recovered: right, or there were so many wrong answers that nobody can see it."""
        if event.step.phase != "recover" or event.party != SERVER:
            return
        recovered = self.scene.server.recovered
        wrong = {m.sender for m in self.wrong(event.received)}
        if wrong:
            assert len(wrong) > len(event.received) - self.parameters.U
        else:
            assert integers_of(recovered.sum) == self.scene.plain_sum(recovered.entries)
            total = self.parameters.c_l * sum(entry.weight for entry in recovered.entries)
            assert integers_of(recovered.average) == [v / total for v in self.scene.signed_sum(recovered.entries)]

    def wrong(self, answers: Sequence[Message]) -> list[Message]:
        """The answers that are not those that their users sent."""
        sent = {encode(m) for e in self.scene.network.transcript for m in e.sent if isinstance(m, WeightedShare)}
        return [message for message in answers if encode(message) not in sent]

    # -------------------------------------------------------------------------------------- what the network does

    @rule(data=st.data())
    def misbehave(self, data: st.DataObject) -> None:
        """Some faults of the network, of senders, or of the server."""
        for fault in data.draw(st.lists(st.sampled_from(self.faults()), min_size=1, max_size=3)):
            fault(data)

    def faults(self) -> list[Any]:
        """What can go wrong."""
        return [
            self.remove, self.delay, self.deliver, self.duplicate, self.reorder, self.alter_header, self.restamp,
            self.spoil, self.lie, self.replay,
        ]  # fmt: skip

    def pick(self, data: st.DataObject) -> list[tuple[int, int]]:
        """The place of some waiting message, where there is one."""
        waiting = self.scene.network.waiting
        boxes = [(party, at) for party, box in waiting.items() for at in range(len(box))]
        return [data.draw(st.sampled_from(boxes))] if boxes else []

    def remove(self, data: st.DataObject) -> Box:
        """Take some waiting message out."""
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

    def replay(self, data: st.DataObject) -> None:
        """Deliver something that was sent before, maybe rounds ago."""
        sent = [message for event in self.scene.network.transcript for message in event.sent]
        if sent:
            message = data.draw(st.sampled_from(sent[-40:]))
            party = message.receiver if message.sender == SERVER or data.draw(st.booleans()) else SERVER
            self.scene.network.waiting.setdefault(party, []).append(replace(message))

    def reorder(self, data: st.DataObject) -> None:
        """Deliver in another order."""
        for box in self.scene.network.waiting.values():
            data.draw(st.randoms(use_true_random=False)).shuffle(box)

    def change(self, data: st.DataObject, make: Any) -> None:
        """Replace some waiting message."""
        for party, at in self.pick(data):
            box = self.scene.network.waiting[party]
            box[at] = make(box[at])

    def alter_header(self, data: st.DataObject) -> None:
        """Make a message one from elsewhere."""
        name = data.draw(st.sampled_from(sorted(HEADERS)))
        self.change(data, lambda message: replace(message, **{name: HEADERS[name]}))

    def restamp(self, data: st.DataObject) -> None:
        """Move a share to another stamp, or a request or an update to a later one."""
        by = data.draw(st.sampled_from((1, 2, 7)))
        plain = (BufferedSet, BufferQuorum, SignedBuffer, WeightedShare, basecagg.ModelStamp)
        self.change(data, lambda m: m if isinstance(m, plain) else replace(m, round=m.round + by))

    def spoil(self, data: st.DataObject) -> None:
        """Replace a vector by one that does not fit, and flip a bit of bytes."""
        bad = vector(data.draw(st.sampled_from(BAD)))
        self.change(data, lambda message: spoiled(message, bad))

    def lie(self, data: st.DataObject) -> None:
        """Replace an answer by another vector of elements."""
        delta = data.draw(st.integers(1, 18))
        box = self.scene.network.waiting.get(SERVER, [])
        places = [at for at, m in enumerate(box) if isinstance(m, WeightedShare) and m.share.size == 2]
        if places:
            at = data.draw(st.sampled_from(places))
            if max(integers_of(box[at].share)) < 19:  # type: ignore[attr-defined]
                box[at] = altered(box[at], 19, data.draw(st.integers(0, 1)), delta)

    # ------------------------------------------------------------------------------------------------ what holds

    def events(self, phase: str) -> list[Event]:
        """The steps of users in a phase."""
        transcript = self.scene.network.transcript if hasattr(self, "scene") else []
        return [event for event in transcript if event.step.phase == phase and event.party != SERVER]

    def bound(self) -> str:
        """The phase in which a user gives a share away for good."""
        return "recover"

    @invariant()
    def no_share_is_used_twice(self) -> None:
        """A user answers, or signs, for one buffer with the share of one update, and once in a round."""
        used, rounds = defaultdict[int, set[tuple[int, int]]](set), set[tuple[int, int]]()
        for event in self.events(self.bound()):
            [message] = event.received
            assert isinstance(message, BufferedSet)
            mine = {(e.user, e.stamp) for e in entries_of(message.users, message.stamps, message.weights)}
            assert not mine & used[event.party]
            used[event.party] |= mine
            assert (event.party, message.round) not in rounds
            rounds.add((event.party, message.round))

    @invariant()
    def no_stamp_is_used_twice(self) -> None:
        """A user shares one mask, and uploads one update, under a stamp, and stamps grow."""
        for phase in ("share", "upload"):
            stamps = defaultdict[int, list[int]](list)
            for event in self.events(phase):
                stamps[event.party].append(event.sent[0].round)
            assert all(sorted(set(seen)) == seen for seen in stamps.values())

    @invariant()
    def the_store_of_a_user_is_bounded(self) -> None:
        """A user holds N shares of L elements at most, each the newest of its sender; and one vector set aside."""
        p = self.parameters
        for user in USERS if hasattr(self, "scene") else ():
            state = self.scene.user(user)
            assert set(state.held) <= set(USERS)
            assert sum(held.share.size for held in state.held.values()) <= p.N * p.share_length
            assert all(held.stamp == state.newest[j] for j, held in state.held.items() if j != user)
            pending = getattr(self.scene.network.states[user], "pending", None)
            assert pending is None or pending.answer.share.size == p.share_length

    def teardown(self) -> None:
        """Whatever happened, let the session go on."""
        for _ in range(6 if hasattr(self, "scene") else 0):
            self.users_step(list(USERS), set())
            self.server_steps()
        if hasattr(self, "scene"):
            self.no_share_is_used_twice()


def core(state: Any) -> Any:
    """A state without its channel, which remembers shared secrets."""
    inner = getattr(state, "base", state)
    return [inner and replace(inner, channel=PLAIN) if hasattr(inner, "channel") else inner,
            getattr(state, "pending", None), getattr(state, "signers", None)]  # fmt: skip


def spoiled(message: Any, bad: Any) -> Message:
    """A message whose vector does not fit, or whose bytes have another first bit."""
    for field in fields(message):
        value = getattr(message, field.name)
        if field.name in ("payload", "signature", "signatures") and value:
            return replace(message, **{field.name: bytes([value[0] ^ 1]) + value[1:]})  # type: ignore[no-any-return]
        if field.name in ("masked", "share", "weights"):
            return replace(message, **{field.name: bad})  # type: ignore[no-any-return]
    return message  # type: ignore[no-any-return]


class MisbehavingActive(Misbehaving):
    """The same in the active profile: the server equivocates as well, over rounds too, and user 0 is with it."""

    parameters: ClassVar[Parameters] = basecagg_active.PRESETS["tiny"]

    def seal(self) -> None:
        """Users of this profile seal already."""
        self.signed: dict[tuple[int, int, tuple[Entry, ...]], bytes] = {}

    def bound(self) -> str:
        """A share is gone once its buffer was signed."""
        return "confirm"

    def restored(self, state: Any) -> Any:
        """The server as it comes back."""
        return basecagg_active.restore(basecagg_active.store(state), state.roster)

    def faults(self) -> list[Any]:
        """What can go wrong, and what a server can do."""
        return [*super().faults(), self.equivocate, self.equivocate, self.equivocate, self.show, self.show]

    def buffer(self, data: st.DataObject) -> tuple[int, tuple[Entry, ...]]:
        """Some buffer of shares that somebody holds, in a round near the server's."""
        now = self.scene.server.round + data.draw(st.integers(0, 2))
        held = self.scene.user(data.draw(st.sampled_from(USERS))).held
        recent = {j: h.stamp for j, h in held.items() if 0 <= now - h.stamp <= self.parameters.tau_max}
        p = self.parameters
        chosen = sorted(data.draw(st.permutations(sorted(recent)))[: p.K])
        weights = [data.draw(st.sampled_from(admissible_weights(p.staleness, p.c_g, now - recent[j]))) for j in chosen]
        return now, tuple(Entry(j, recent[j], w) for j, w in zip(chosen, weights, strict=True))

    def equivocate(self, data: st.DataObject) -> None:
        """Tell some users of a buffer, and keep what they sign."""
        now, entries = self.buffer(data)
        columns = [vector([getattr(e, name) for e in entries]) for name in ("stamp", "weight")]
        for user in data.draw(st.lists(st.sampled_from(USERS), unique=True, min_size=1)):
            users = tuple(e.user for e in entries)
            announced = BufferedSet(bytes(16), now, SERVER, user, users, columns[0], columns[1])
            self.take("confirm", user, [announced])

    def show(self, data: st.DataObject) -> None:
        """Show users the signatures on what they signed last, with those that user 0 makes up."""
        for user in data.draw(st.permutations(USERS)):
            pending = self.scene.network.states[user].pending
            if pending is not None:
                self.show_to(user, pending.answer.round, pending.proposal)

    def show_to(self, user: int, now: int, proposal: Any) -> None:
        """Show one user all signatures that there are on a buffer."""
        seen = self.signatures()
        ballot = ballot_of(self.parameters, bytes(16), now, self.scene.network.states[SERVER].roster)
        mine = {0: sign_proposal(ballot, KEYS[0].signing, 0, proposal)}
        mine |= {
            j: signature for (j, t, content), signature in seen.items() if (t, content) == (now, proposal.content())
        }
        signers = tuple(sorted(mine))
        quorum = BufferQuorum(bytes(16), now, SERVER, user, signers, b"".join(mine[j] for j in signers))
        self.take("recover", user, [quorum])

    def signatures(self) -> dict[tuple[int, int, Any], bytes]:
        """All signatures that users gave: by user, round and content."""
        found = {}
        for event in self.events("confirm"):
            [announced], [sent] = event.received, event.sent
            assert isinstance(announced, BufferedSet)
            assert isinstance(sent, SignedBuffer)
            proposal = proposal_of(self.parameters, entries_of(announced.users, announced.stamps, announced.weights))
            found[event.party, announced.round, proposal.content()] = sent.signature
        return found

    @invariant()
    def no_update_is_in_two_buffers_that_honest_users_answer(self) -> None:
        """All answers of honest users for buffers with one update are for one buffer, in one round."""
        answered = defaultdict[tuple[int, int], set[tuple[int, tuple[Entry, ...]]]](set)
        announced: dict[int, tuple[int, tuple[Entry, ...]]] = {}
        transcript = self.scene.network.transcript if hasattr(self, "scene") else []
        for event in transcript:
            if event.step.phase == "confirm" and event.party != SERVER:
                [message] = event.received
                assert isinstance(message, BufferedSet)
                announced[event.party] = message.round, entries_of(message.users, message.stamps, message.weights)
            if event.step.phase == "recover" and event.party not in (SERVER, 0):
                now, entries = announced[event.party]
                assert event.sent[0].round == now
                for entry in entries:
                    answered[entry.user, entry.stamp].add((now, entries))
        assert all(len(buffers) == 1 for buffers in answered.values())


Misbehaving.TestCase.settings = settings(stateful_step_count=20)
MisbehavingActive.TestCase.settings = settings(stateful_step_count=20)
TestMisbehaving = pytest.mark.requirement(
    "BSA-07", "BSA-08", "BSA-09", "BSA-10", "BSA-14", "BSA-15", "BSA-25", "BSA-28", "BSA-29", "BSA-30", "BSA-31",
    "BSA-35", "MSG-03", "MSG-04", "ERR-01",
)(Misbehaving.TestCase)  # fmt: skip
TestMisbehavingActive = pytest.mark.requirement(
    "BSA-28", "BSA-29", "BSA-35", "BSA-39", "BSA-41", "BSA-43", "BSA-44", "BSA-46", "ERR-01"
)(MisbehavingActive.TestCase)
