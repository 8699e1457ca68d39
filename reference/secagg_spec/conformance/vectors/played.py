"""Rounds that the reference plays, scripts that show one party of them, and faults that are inserted into these.

Each protocol has its own `Scene`, which says how a round is opened and what a party is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases.lightsecagg_parties import exchanged
from secagg_spec.conformance.cases.requests import shares_length
from secagg_spec.conformance.sessions.scenes import written
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.vectors.base import VectorFile, drawn, drawn_bytes
from secagg_spec.conformance.vectors.code import VANDERMONDE
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import SERVER, Network, Role

Change = Callable[[Any], Any]
"""A change of a message. It returns another message or bytes."""


@dataclass(frozen=True, eq=False)
class Scene(ABC):
    """A round that the reference played, with everything that each party received and sent in it.

    `drop` names, by phase, the users that drop out just before their step of that phase. `lost` holds the shares that
    do not reach the server, as pairs of sender and receiver.
    """

    of_user: ClassVar[str]
    of_server: ClassVar[str]
    phases: ClassVar[tuple[str, ...]]
    policy: ClassVar[Mapping[str, str]] = VANDERMONDE

    id: str
    numbers: dict[str, Any]
    drop: Mapping[str, Sequence[int]] = field(default_factory=dict)
    lost: tuple[tuple[int, int], ...] = ()
    received: dict[tuple[int, str], tuple[Message, ...]] = field(init=False, default_factory=dict)
    sent: dict[tuple[int, str], tuple[Message, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Play the round."""
        network = self.opened()
        for step in network.table:
            if (step.role, step.phase) == (Role.SERVER, "share"):
                kept = [m for m in network.waiting[SERVER] if (m.sender, m.receiver) not in self.lost]
                network.waiting[SERVER] = kept
            for party in self._parties(step.role, step.phase):
                event = network.take(step, party, {name: self.sampled(party)[name] for name in step.randomness})
                self.received[party, step.phase] = tuple(event.received)
                self.sent[party, step.phase] = tuple(event.sent)

    def _parties(self, role: Role, phase: str) -> list[int]:
        dropped = {
            user for earlier in self.phases[: self.phases.index(phase) + 1] for user in self.drop.get(earlier, ())
        }
        return [SERVER] if role is Role.SERVER else [user for user in range(self.numbers["N"]) if user not in dropped]

    @abstractmethod
    def opened(self) -> Network:
        """Return the network of the round before its first step."""

    @abstractmethod
    def given(self, party: int) -> dict[str, Any]:
        """Return the keys, or the channel, that a party is given."""

    @property
    def session(self) -> bytes:
        """The session id."""
        return drawn_bytes(self.id, "session", 16)

    @property
    def round(self) -> int:
        """The round number."""
        return int.from_bytes(drawn_bytes(self.id, "round", 4), "little")

    def privates(self, purpose: str = "private") -> list[bytes]:
        """Return a private key for each user."""
        return [drawn_bytes(self.id, f"{purpose} of user {user}", 32) for user in range(self.numbers["N"])]

    def updates(self) -> UintArray:
        """Return the update of each user."""
        return drawn(self.id, "updates", self.numbers["q"], self.numbers["N"], self.numbers["d"])

    def sampled(self, party: int) -> dict[str, Any]:
        """Return the mask and the noise of a user."""
        q, T, d = (self.numbers[name] for name in ("q", "T", "d"))
        mask = drawn(self.id, f"mask of user {party}", q, d)
        return {"mask": mask, "noise": drawn(self.id, f"noise of user {party}", q, T, shares_length(self.numbers, d))}

    def operation(self, party: int) -> str:
        """Return the operation of a party's script."""
        return self.of_server if party == SERVER else self.of_user

    def calls(self, party: int) -> list[Call]:
        """Return the steps that a party took."""
        taken = [phase for phase in self.phases if (party, phase) in self.received]
        return [Call(phase, tuple(encode(message) for message in self.received[party, phase])) for phase in taken]

    def params(self, party: int, calls: list[Call]) -> dict[str, Any]:
        """Return the ``params`` of a script."""
        shown: dict[str, Any] = {**self.numbers, "session": self.session.hex(), "round": str(self.round)}
        given = self.given(party)
        if party != SERVER:
            given = {"user": party, **given, "update": pack(self.updates()[party])}
        return {**shown, **given, "steps": written(calls)}

    def rand(self, party: int) -> dict[str, Any]:
        """Return the sampled values of a script."""
        return {} if party == SERVER else {name: pack(value.reshape(-1)) for name, value in self.sampled(party).items()}

    def operations(self, party: int) -> list[dict[str, Any]]:
        """Return the steps of a party in the form that vectors of whole rounds list."""
        actor = "server" if party == SERVER else f"user {party}"
        return [
            {
                "actor": actor,
                "step": call.phase,
                "success": True,
                "sends": [encode(message).hex() for message in self.sent[party, call.phase]],
            }
            for call in self.calls(party)
        ]


def taken(
    made: VectorFile,
    id: str,
    scene: Scene,
    party: int,
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
    *,
    operations: bool = False,
    calls: list[Call] | None = None,
) -> None:
    """Add a script in which every step is taken: a party's own steps, or given ones."""
    made.script(
        id,
        scene.operation(party),
        scene.params(party, scene.calls(party) if calls is None else calls),
        scene.rand(party),
        refused={},
        clauses=[*clauses, "MSG-01", "ADP-20"],
        flags=flags,
        comment=comment,
        policy=scene.policy,
        operations=scene.operations(party) if operations else (),
    )


# --------------------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True)
class Fault:
    """A step that is refused, inserted before one of the right steps or after them all."""

    before: int
    call: Call
    refusal: Refusal
    clauses: tuple[str, ...]
    flags: tuple[str, ...]
    comment: str


def faulty(made: VectorFile, scene: Scene, party: int, fault: Fault) -> None:
    """Add a party's script with a step that is refused, followed by the right step."""
    calls = scene.calls(party)
    after = calls[fault.before : fault.before + 1]
    made.script(
        scene.id,
        scene.operation(party),
        scene.params(party, [*calls[: fault.before], fault.call, *after]),
        scene.rand(party),
        refused={fault.before: fault.refusal},
        clauses=[*fault.clauses, "ERR-01"],
        flags=fault.flags,
        comment=fault.comment,
        policy=scene.policy,
    )


def no_party(
    made: VectorFile,
    scene: Scene,
    party: int,
    params: Mapping[str, Any],
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
    rand: Mapping[str, Any] | None = None,
) -> None:
    """Add a script that is refused as a whole."""
    made.invalid(
        scene.id,
        scene.operation(party),
        params,
        scene.rand(party) if rand is None else rand,
        codes=codes,
        clauses=[clause],
        flags=[flag],
        comment=comment,
    )


def altered(scene: Scene, party: int, at: int, place: int, change: Change) -> Call:
    """Return a step of a party with one of its messages changed; the change may give a message or bytes."""
    call = scene.calls(party)[at]
    changed = change(scene.received[party, call.phase][place])
    return exchanged(call, place, changed if isinstance(changed, bytes) else encode(changed))


def besides(scene: Scene, party: int, at: int, place: int, change: Change) -> Call:
    """Return a step of a party with an additional, changed copy of one of its messages."""
    call = scene.calls(party)[at]
    return replace(call, inbox=(*call.inbox, encode(change(scene.received[party, call.phase][place]))))


def other_session(message: Any) -> Any:
    """Return a message with another session."""
    return replace(message, session=bytes([message.session[0] ^ 1]) + message.session[1:])


def other_round(message: Any) -> Any:
    """Return a message with another round."""
    return replace(message, round=message.round ^ 1)


def having(**fields: Any) -> Change:
    """Return a change of some fields of a message."""
    return lambda message: replace(message, **fields)


def to(receiver: int) -> Change:
    """Return a change of the receiver of a message."""
    return having(receiver=receiver)


def by(sender: int) -> Change:
    """Return a change of the sender of a message."""
    return having(sender=sender)


def longer(message: Any) -> bytes:
    """Return the bytes of a message, and one more."""
    return encode(message) + b"\0"


def shorter(message: Any) -> bytes:
    """Return the bytes of a message without the last one."""
    return encode(message)[:-1]


def same(message: Any) -> Any:
    """Return the message."""
    return message


HEADER_FAULTS: tuple[tuple[str, Change, str, str], ...] = (
    ("session", other_session, "AnotherSession", "a message of another session"),
    ("round", other_round, "AnotherRound", "a message of another round"),
)
"""Changes of a header: their name in ids, the flag, and the comment."""
