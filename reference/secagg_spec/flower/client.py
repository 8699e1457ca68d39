"""A client of a round: packets in, packets out, and a memory that its engine keeps in between.

Source: spec/flower.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.crypto.entropy import Source, SystemSource, taken
from secagg_spec.crypto.keys import SESSION_BYTES, public_key
from secagg_spec.crypto.prg import check_key
from secagg_spec.crypto.signatures import sign, verification_key, verify
from secagg_spec.errors import InconsistentSets, Malformed, ParameterError, ProtocolError, WrongPhase
from secagg_spec.flower import plan as plans
from secagg_spec.flower.journal import Journal
from secagg_spec.flower.kinds import KINDS, Kind, Private
from secagg_spec.flower.packing import pack, unpack
from secagg_spec.flower.plan import VERSION, Packet, Plan, of_this_version, other_version
from secagg_spec.protocols import codec, steps
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.steps import SERVER
from secagg_spec.selection.batches import Parameters as Batches

JOIN = "join"
"""The phase before the plan, in which users send keys, in the protocols in which they have any."""
_PHASES = frozenset(phase for kind in KINDS.values() for phase in kind.phases)
Memory = Sequence[bytes]
"""What the engine keeps of a client between two packets; empty at first."""
Produce = Callable[[Plan], validate.UintArray]
"""Trains and returns the input of the user; called only in the step that masks it."""


@dataclass(frozen=True)
class Policy(validate.Plain):
    """What a client demands of every plan, whatever the server says (FLW-04).

    Parameters
    ----------
    protocols : collection of str
        The protocols that it takes part in.
    least : int
        The smallest number of users in a sum, at least 3.
    colluding : int
        The smallest T: so many users may pool what they know with the server.
    signing : bytes
        The private signing key, 32 bytes, in the active profiles.
    trusted : collection of bytes
        The verification keys of all users that may take part, in the active profiles. They come from outside.
    batch : int, optional
        The T of Multi-RoundSecAgg, at least 3: each sum must be over whole batches of T users with consecutive numbers
        (FLW-25). In the semi-honest profiles.
    most_users, most_elements : int
        The most users of a round; the most elements of an input, the weight included, and of the N shares of its mask
        together (FLW-27). Memory and time of a step grow with these: 8 bytes for each element, and in LightSecAgg
        for each pair of users.

    Raises
    ------
    ParameterError
        A value is out of range, no plan can satisfy them all, or a profile needs keys that are not given.
    """

    protocols: Collection[str]
    least: int = 3
    colluding: int = 1
    signing: bytes = field(default=b"", repr=False)
    trusted: frozenset[bytes] = frozenset()
    batch: int | None = None
    most_users: int = 1000
    most_elements: int = 10**8

    def __post_init__(self) -> None:
        super().__post_init__()
        trusted = [*validate.collection("trusted", self.trusted, "keys")]
        for key in trusted:
            check_key("trusted", key)
        object.__setattr__(self, "trusted", frozenset(trusted))
        protocols = validate.collection("protocols", self.protocols, "some of " + ", ".join(plans.PROTOCOLS))
        if not len(protocols):
            raise ParameterError("protocols", "none", "one or more of " + ", ".join(plans.PROTOCOLS))
        for protocol in protocols:
            validate.one_of("protocols", protocol, plans.PROTOCOLS)
            if KINDS[protocol].signs:
                check_key("signing", self.signing)
                if verification_key(self.signing) not in self.trusted:
                    raise ParameterError("trusted", "a set without the client's own key", "the keys of all users")
        object.__setattr__(self, "protocols", tuple(protocols))
        validate.integer("most_users", self.most_users, 3)
        validate.integer("most_elements", self.most_elements, 2)
        validate.integer("least", self.least, 3, self.most_users)
        validate.integer("colluding", self.colluding, 1, self.most_users - 2)
        if self.batch is not None:
            validate.integer("batch", self.batch, 3, self.most_users)
            for protocol in protocols:
                if KINDS[protocol].signs:
                    raise ParameterError("protocols", protocol, "in a semi-honest profile where batches are demanded")

    def kind(self, protocol: object) -> Kind:
        """Return a protocol if the client takes part in it."""
        if not isinstance(protocol, str) or protocol not in self.protocols:
            raise ParameterError("protocol", protocol, "one of " + ", ".join(sorted(self.protocols)))
        return KINDS[protocol]

    def check(self, plan: Plan) -> Kind:
        """Return the protocol of a plan that the client accepts.

        Raises
        ------
        ParameterError
            The client does not accept the plan (FLW-04, FLW-27).
        """
        kind = self.kind(plan.protocol)
        shares = ("elements of all shares", kind.shared(plan), self.most_elements)
        for name, given, most in (("N", plan.N, self.most_users), ("d", plan.d, self.most_elements), shares):
            if given > most:
                raise ParameterError(name, given, f"at most {most}, the most that the client's policy allows")
        colluding = kind.parameters(plan).T
        if kind.enough(plan) < self.least:
            raise ParameterError("plan", f"of sums over {kind.enough(plan)} users", f"of at least {self.least}")
        if colluding < self.colluding:
            raise ParameterError("T", colluding, f"at least {self.colluding}")
        for name in ("sealing", "verification", "signature"):
            given, wanted = len(getattr(plan, name)), plan.N if name in kind.joining else 0
            if given != wanted:
                raise ParameterError(f"len({name})", given, str(wanted))
        if not self.trusted.issuperset(plan.verification):
            raise ParameterError("verification", "with a stranger's key", "keys of trusted users")
        for user, signature in enumerate(plan.signature):
            signed = plans.sealing_key_fields(plan.nonce, plan.sealing[user])
            verify(plan.verification[user], signed, signature, (user, SERVER))
        if self.batch is not None:
            multi_round.Parameters(Batches(plan.N, plan.N, self.batch), kind.parameters(plan))
        return kind

    def look(self, plan: Plan, phase: str, inbox: Sequence[codec.Message]) -> None:
        """Refuse survivors that are not whole batches, before anything is released (FLW-25).

        Raises
        ------
        InconsistentSets
            They are not; the server is blamed.
        """
        if self.batch is None:
            return
        base = multi_round.BASES[type(KINDS[plan.protocol].parameters(plan))]
        for request in inbox if phase == base.releases else ():
            multi_round.check_survivors(Batches(plan.N, plan.N, self.batch), getattr(request, base.named))


class Handled(NamedTuple):
    """What a client sends back, what its engine has to keep, and why the packet was refused, if it was."""

    reply: Packet
    memory: Memory
    refused: Exception | None = None

    def __repr__(self) -> str:
        return f"Handled(reply with {sorted(self.reply)}, memory of {len(self.memory)} parts, refused={self.refused!r})"


@dataclass(frozen=True)
class Client:
    """A client: its policy, its journal, and the source of what it draws."""

    policy: Policy
    journal: Journal
    source: Source = field(default_factory=SystemSource)

    def handle(self, packet: Packet, memory: Memory, produce: Produce) -> Handled:
        """Take the step that a packet asks for; refuse with the memory unchanged (ERR-01).

        The reply to a refused packet names the kind of failure alone, since the text of an error may show a value of
        the input (FLW-08). What is returned as memory must be kept.

        `produce` may raise `ParameterError`: the packet is refused then. Whatever else it raises goes through.
        """
        try:
            if not of_this_version(packet):
                raise Malformed(other_version(packet), (SERVER,))
            answer, memory = self._join(packet) if packet.get("phase") == JOIN else self._step(packet, memory, produce)
        except (ProtocolError, ParameterError) as error:
            return Handled({"version": VERSION, "refused": _code(error)}, memory, error)
        return Handled({"version": VERSION, "phase": packet["phase"], **answer}, memory)

    def _join(self, packet: Packet) -> tuple[Packet, Memory]:
        """Send a fresh sealing key and the verification key, as the protocol needs them (FLW-05)."""
        kind, nonce = self.policy.kind(packet.get("protocol")), _session(packet, "nonce")
        if not kind.joining:
            raise WrongPhase(f"{JOIN!r} is no phase of {packet['protocol']}, whose users send no keys", (SERVER,))
        if "messages" in packet:
            raise Malformed(f"messages have no place in the phase {JOIN!r}", (SERVER,))
        self.journal.refuse(nonce, JOIN)
        answer: dict[str, Any] = {"nonce": nonce}
        sealing = taken(self.source, 32) if kind.seals else b""
        if kind.seals:
            answer["sealing"] = public_key(sealing)
        if kind.signs:
            answer["verification"] = verification_key(self.policy.signing)
        if "signature" in kind.joining:
            answer["signature"] = sign(self.policy.signing, plans.sealing_key_fields(nonce, answer["sealing"]))
        self.journal.take(nonce, JOIN)
        return answer, pack({"nonce": nonce, "sealing": sealing})

    def _step(self, packet: Packet, memory: Memory, produce: Produce) -> tuple[Packet, Memory]:
        """Take a step of the protocol, and write it into the journal before anything leaves (FLW-06, FLW-07)."""
        phase, session = packet.get("phase"), _session(packet, "session")
        if not isinstance(phase, str) or phase not in _PHASES:
            named = repr(phase[:40]) if isinstance(phase, str) else validate.class_of(phase)
            raise WrongPhase(f"{named} is no phase", (SERVER,))
        self.journal.refuse(session, phase)
        known = _known(memory)
        if "plan" in packet:
            plan = plans.read(packet["plan"])
            kind = self.policy.check(plan)
            user = validate.integer("user", packet.get("user"), 0, plan.N - 1)
            sealing, state = self._check_own(kind, plan, user, known), None
        else:
            plan, user, sealing, state = self._kept(session, known)
            kind = KINDS[plan.protocol]
        if plan.session != session:
            raise InconsistentSets("the session id is not that of the plan", (SERVER,))
        if phase not in kind.phases or ("plan" in packet) != (phase == kind.phases[0]):
            raise WrongPhase(f"{phase!r} is not a phase that comes here", (SERVER,))
        if state is None:
            state = kind.user(plan, user, Private(sealing, self.policy.signing))
        step = kind.step(phase, steps.Role.USER)
        inbox = read_messages(step.receives, packet, SERVER)
        self.policy.look(plan, phase, inbox)
        steps.require_phase(state.phases, state.phase, phase)
        if phase == kind.masking:
            state = kind.filled(plan, state, produce(plan))
        state, outbox = step.take(state, inbox, randomness=kind.sampled(plan, step, self.source))
        self.journal.take(session, phase)
        sealing = b"" if phase == kind.phases[-1] else sealing
        kept = {"session": session, "plan": plan.octets, "user": user, "sealing": sealing, "state": kind.store(state)}
        return write_messages(session, outbox), pack(kept)

    def _kept(self, session: bytes, known: dict[str, Any]) -> tuple[Plan, int, bytes, Any]:
        """Return plan, number, sealing key and state of the round that was kept, if they have the layout of `_step`."""
        if known.get("session") == session:
            with suppress(ProtocolError, ValueError, KeyError, TypeError, AttributeError):
                plan, user, sealing = plans.read(known["plan"]), known["user"], known["sealing"]
                kind = KINDS[plan.protocol]
                state = kind.restore(plan, user, Private(sealing, self.policy.signing), known["state"])
                if state.phase in (*state.phases, "done"):
                    return plan, user, sealing, state
        raise WrongPhase(
            f"no round of session {session.hex()} was begun here, or its state was lost or damaged", (SERVER,)
        )

    def _check_own(self, kind: Kind, plan: Plan, user: int, known: dict[str, Any]) -> bytes:
        """Return the private sealing key for a plan that has the client's own keys in its place (FLW-05)."""
        if kind.signs and plan.verification[user] != verification_key(self.policy.signing):
            raise ParameterError("verification", "another key", f"the client's own for user {user}")
        if not kind.joining:
            return b""
        if known.get("nonce") != plan.nonce or not isinstance(known.get("sealing"), bytes):
            raise WrongPhase(
                "the plan is for keys that the client does not have, or that were lost or damaged", (SERVER,)
            )
        sealing: bytes = known["sealing"]
        if kind.seals and plan.sealing[user] != public_key(sealing):
            raise ParameterError("sealing", "another key", f"the client's own for user {user}")
        return sealing


def read_messages(kinds: Sequence[type[codec.Message]], packet: Packet, sender: int) -> list[codec.Message]:
    """Return the messages of a packet, each of one of `kinds` by its type number.

    Raises
    ------
    Malformed
        One is not; `sender` is blamed.
    """
    numbers = {kind.TYPE: kind for kind in kinds}
    found: list[codec.Message] = []
    messages = packet.get("messages", [])
    for data in messages if isinstance(messages, list) else [None]:
        if not isinstance(data, bytes) or int.from_bytes(data[:2], "little") not in numbers:
            raise Malformed("a message that has no place in this phase", (sender,))
        try:
            found.append(codec.decode(numbers[int.from_bytes(data[:2], "little")], data))
        except Malformed as error:
            raise Malformed(f"a message cannot be read: {error}", (sender,)) from error
    return found


def write_messages(session: bytes, outbox: Sequence[codec.Message]) -> dict[str, Any]:
    """Return the part of a packet that carries messages."""
    messages = [codec.encode(message) for message in outbox]
    return {"session": session, **({"messages": messages} if messages else {})}


def _known(memory: Memory) -> dict[str, Any]:
    """Return what a client keeps between two packets; nothing if that is lost or damaged (FLW-26)."""
    try:
        known = unpack(memory)
    except ParameterError:
        return {}
    return known if isinstance(known, dict) else {}


def _session(packet: Packet, name: str) -> bytes:
    value = packet.get(name)
    if not isinstance(value, bytes) or len(value) != SESSION_BYTES:
        raise Malformed(f"{name} must be {SESSION_BYTES} bytes", (SERVER,))
    return value


def _code(error: Exception) -> str:
    """Return the reject code of an error, or that of its base class."""
    return "other" if type(error) is ProtocolError else reject_code(error)


guard(__name__)
