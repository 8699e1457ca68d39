"""Draws one party of BASecAgg and what arrives at it (spec/basecagg.md, sections 4 and 5).

A server is taken from a session that the reference played. A user is drawn alone: its server and the other users are
invented. Anything that the user cannot distinguish from honest behaviour may be drawn, so that stamps, shares and
buffers arrive in every order that a user must tolerate.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.conformance.cases import basecagg_sessions, requests, strategies
from secagg_spec.conformance.cases.lightsecagg_active_parties import signature_of
from secagg_spec.conformance.sessions.basecagg_stage import Stage, answering, staleness_of
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.session import Played, base_of
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call, Party
from secagg_spec.crypto.sealing import Context
from secagg_spec.crypto.signatures import signed_fields
from secagg_spec.protocols.agreement import Ballot, Proposal
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg.active import BufferQuorum
from secagg_spec.protocols.basecagg.round import BufferedSet, Entry, ModelStamp, StampedShare
from secagg_spec.protocols.codec import Message, encode, vector_bytes
from secagg_spec.protocols.steps import SERVER, Event, Network

USER, SERVED = "basecagg.user", "basecagg.server"
ACTIVE_USER, ACTIVE_SERVED = "basecagg_active.user", "basecagg_active.server"
Entries = Sequence[tuple[int, int, int]]
"""The entries of a buffer: user, stamp, weight."""


@dataclass(eq=False)
class Lone:
    """A user of the reference, the steps it took, and the numbers of its session."""

    inputs: SessionInputs
    party: Party
    user: int
    transcript: list[Event] = field(default_factory=list)

    @property
    def state(self) -> Any:
        """The state of the user, as the semi-honest profile has it."""
        return base_of(self.party.state)

    def take(self, phase: str, *messages: Message) -> None:
        """Let the user take a step, which must be right."""
        entry = self.party.take(Call(phase, tuple(encode(message) for message in messages)))
        outbox = tuple(parse(bytes.fromhex(text)) for text in entry["outbox"])
        self.transcript.append(Event(self.party.step(phase), self.user, messages, outbox, self.party.state))

    def scene(self) -> Played:
        """Return the user and what arrived at it."""
        network = Network(self.inputs.table, {self.user: self.party.state})
        network.transcript = list(self.transcript)
        return Played(self.inputs, self.user, network)


def stamp(scene: Played | Lone, round: int) -> ModelStamp:
    """Return the message that gives the user a stamp."""
    return ModelStamp(scene.inputs.session, round, SERVER, scene.party if isinstance(scene, Played) else scene.user)


def share(draw: Any, inputs: SessionInputs, user: int, sender: int, round: int) -> StampedShare:
    """Draw the share of a sender under a stamp, sealed by the sender's channel."""
    numbers = inputs.numbers
    length = -(-numbers["d"] // (numbers["U"] - numbers["T"]))
    values = vector_bytes(strategies.vector(draw, int(numbers["q"]), length))
    payload = base_of(inputs.open(sender).state).channel.close(round, sender, user, values)
    return StampedShare(inputs.session, round, sender, user, payload)


@dataclass(frozen=True)
class Signing:
    """The signatures of a session of the active profile, by the users' private signing keys."""

    inputs: SessionInputs

    @cached_property
    def server(self) -> basecagg_active.ServerState:
        """The server before its first step, which knows all public keys."""
        state: basecagg_active.ServerState = self.inputs.open(SERVER).state
        return state

    def ballot(self, round: int) -> Ballot:
        """Return what the signatures on the buffer of a round are bound to."""
        return basecagg_active.ballot_of(self.server.base.parameters, self.inputs.session, round, self.server.roster)

    def proposal(self, entries: Entries) -> Proposal:
        """Return what a user signs for a buffer."""
        return basecagg_active.proposal_of(self.server.base.parameters, [Entry(*entry) for entry in entries])

    def signature(self, user: int, round: int, entries: Entries, context: Context | None = None) -> bytes:
        """Return a user's signature on a buffer, optionally in another context (BSA-38)."""
        ballot = self.ballot(round)
        data = signed_fields(context or ballot.context, ballot.purpose, user, self.proposal(entries).content())
        return signature_of(bytes.fromhex(self.inputs.setups[min(user, len(self.inputs.users) - 1)]["signing"]), data)


def quorum(
    inputs: SessionInputs, user: int, round: int, signers: Sequence[int], signatures: Sequence[bytes]
) -> BufferQuorum:
    """Return the message that shows a user who signed."""
    return BufferQuorum(inputs.session, round, SERVER, user, tuple(signers), b"".join(signatures))


def announced(inputs: SessionInputs, user: int, round: int, entries: Entries) -> BufferedSet:
    """Return the announcement of a buffer."""
    columns = [np.array([entry[at] for entry in entries], dtype=np.uint64) for at in (1, 2)]
    return BufferedSet(inputs.session, round, SERVER, user, tuple(entry[0] for entry in entries), *columns)


def entries_of(message: BufferedSet) -> list[tuple[int, int, int]]:
    """Return the entries of an announcement."""
    return list(zip(message.users, message.stamps.tolist(), message.weights.tolist(), strict=True))


def allowed(inputs: SessionInputs, round: int, stamp: int) -> tuple[int, ...]:
    """Return the weights that an update with this stamp may have in a buffer of this round."""
    return admissible_weights(staleness_of(inputs.numbers), int(inputs.numbers["c_g"]), round - stamp)


def weighed(draw: Any, inputs: SessionInputs, round: int, stamps: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Draw the entries of a buffer with the given stamp for each user, by user in ascending order."""
    return [(user, held, int(draw(among(allowed(inputs, round, held))))) for user, held in sorted(stamps.items())]


def user_scene(
    draw: Any, *, channel: str | None = None, least: int = 1, latest: Sequence[int] = (2, 0, 1, 3), active: bool = False
) -> Played:
    """Draw a user that answers one or two buffers, and at least `least`."""
    count = draw(st.integers(least, 2))
    chosen = basecagg_sessions.numbers(draw, latest=latest, active=active)
    inputs = basecagg_sessions.inputs(draw, chosen, count=count + draw(st.integers(0, 1)), channel=channel)
    user = int(draw(among(inputs.users)))
    lone = Lone(inputs, inputs.open(user), user)
    before = inputs.round - 1
    for number in range(count):
        before = _answer(draw, lone, before, last=number == count - 1)
    return lone.scene()


def replaced_scene(draw: Any) -> Played:
    """Draw a user that holds a newer share of one user in place of an older one, and answers a buffer with it.

    Its shares of the other users have the stamp of the older share, so that a buffer of that stamp lacks only the
    replaced share.
    """
    chosen = basecagg_sessions.numbers(draw, latest=(1, 2, 3))
    chosen = {**chosen, "N": chosen["N"] + 1} if chosen["K"] == chosen["N"] else chosen
    if (int(chosen["q"]) - 1) // 2 < chosen["K"] or int(chosen["q"]) <= chosen["N"]:
        chosen["q"] = str(2**31 - 1)
    inputs = basecagg_sessions.inputs(draw, chosen, count=1)
    user, *others = strategies.shuffled(draw, inputs.users)
    lone, old = Lone(inputs, inputs.open(user), user), inputs.round
    entries = others[: chosen["K"]]
    _keep(draw, lone, dict.fromkeys(entries, old))
    lone.take("hold", share(draw, inputs, user, entries[0], old + 1))
    stamps = {entry: old + (entry == entries[0]) for entry in entries}
    _show(draw, lone, old + 1, weighed(draw, inputs, old + 1, stamps), last=True)
    return lone.scene()


def _answer(draw: Any, lone: Lone, before: int, *, last: bool) -> int:
    """Draw everything up to the answer to a buffer of a round after `before`, and return that round."""
    numbers, users = lone.inputs.numbers, lone.inputs.users
    round = before + 1 + int(draw(st.integers(0, 2)))
    stamps = {user: _newer(draw, lone, user, round) for user in users}
    takes_part = numbers["K"] == len(users) or draw(st.booleans())
    if takes_part:
        _start(draw, lone, stamps[lone.user])
    _keep(draw, lone, {user: held for user, held in stamps.items() if user != lone.user})
    early = draw(st.booleans())
    if early:
        _finish(draw, lone)
    known = [user for user in users if takes_part or user != lone.user]
    chosen = strategies.subset(draw, known, numbers["K"], numbers["K"])
    entries = weighed(draw, lone.inputs, round, {user: stamps[user] for user in chosen})
    _show(draw, lone, round, entries, last=last)
    if not early:
        _finish(draw, lone)
    return round


def _show(draw: Any, lone: Lone, round: int, entries: Entries, *, last: bool) -> None:
    """Show the user a buffer; in the active profile, also the signatures of W users or more on it.

    No signatures may come for a buffer that is not the last.
    """
    lone.take(answering(lone.inputs), announced(lone.inputs, lone.user, round, entries))
    if "W" in lone.inputs.numbers and (last or draw(st.booleans())):
        signers = strategies.subset(draw, lone.inputs.users, lone.inputs.numbers["W"])
        signing = Signing(lone.inputs)
        signatures = [signing.signature(user, round, entries) for user in sorted(signers)]
        lone.take("recover", quorum(lone.inputs, lone.user, round, sorted(signers), signatures))


def _newer(draw: Any, lone: Lone, user: int, round: int) -> int:
    """Draw a stamp of a user for a buffer of this round, newer than all of its stamps seen so far."""
    state = lone.state
    seen = state.stamp if user == lone.user else state.newest.get(user)
    oldest = max(lone.inputs.round, round - lone.inputs.numbers["tau_max"], -1 if seen is None else seen + 1)
    return int(draw(among((round, oldest)) | st.integers(oldest, round)))


def _start(draw: Any, lone: Lone, round: int) -> None:
    for _ in range(draw(st.integers(1, 2))):
        lone.take("request")
    lone.take("share", stamp(lone, round))


def _keep(draw: Any, lone: Lone, stamps: Mapping[int, int]) -> None:
    """Let the user hold the shares of others, in one or two steps."""
    order = strategies.shuffled(draw, sorted(stamps))
    cut = draw(st.integers(0, len(order)))
    for senders in (order[:cut], order[cut:]):
        if senders:
            lone.take("hold", *(share(draw, lone.inputs, lone.user, sender, stamps[sender]) for sender in senders))


def _finish(draw: Any, lone: Lone) -> None:
    """Let a user that is training upload or abandon."""
    if lone.state.phase == "training":
        lone.take(draw(among(("upload", "abandon"))))


def server_scene(draw: Any, *, session: Callable[..., Stage] = basecagg_sessions.played, **given: Any) -> Played:
    """Draw a server and what arrives at it in a session of some kind."""
    played = session(draw, **given)
    return Played(basecagg_sessions.trimmed(draw, played), SERVER, played.network())


SCENES: Mapping[str, Callable[..., Played]] = {
    USER: user_scene,
    SERVED: server_scene,
    ACTIVE_USER: partial(user_scene, active=True),
    ACTIVE_SERVED: partial(server_scene, active=True),
}
begun = partial(requests.begun, SCENES)
VALID = requests.scripts(SCENES)
