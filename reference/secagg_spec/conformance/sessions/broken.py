"""Find all rules that a step breaks, not only the one that the reference names; a refusal may carry any of the codes.

The rules are tested one by one (spec/adapter.md, section 5). Each message is given to the reference's party alone. A
message that the network made is also tested with the honest ones, and with a matching header. If the step was taken
earlier, it is tested in that earlier state. An unaltered message may break a rule too, if its sender was misled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from secagg_spec.conformance.sessions.mixed import key
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call, Party
from secagg_spec.errors import InconsistentSets, ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols.codec import Message, encode, field_codecs
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, role_of

_STAMPED = ("basecagg", "basa")
"""The protocols whose messages carry round numbers of their own."""
_ABSENT = (TooFewSurvivors, InconsistentSets)
"""The refusals of an incomplete inbox that are caused by the missing messages."""


@dataclass(frozen=True)
class Expected:
    """The header of messages to a party: session, round (None if any round is allowed), the party, N users."""

    session: bytes
    round: int | None
    party: int
    N: int

    def fits(self, message: Message) -> bool:
        """Return whether a message is for this party, in this round and session, and from a party of the session."""
        known = message.sender < self.N or message.sender in (SERVER, AUTHORITY)
        return known and message.session == self.session and self._is_ours(message)

    def _is_ours(self, message: Message) -> bool:
        return message.receiver == self.party and self.round in (None, message.round)

    def addressed(self, data: bytes) -> bytes:
        """Return a message with a matching header, except for its sender; return anything else unchanged."""
        message = _read(data)
        if message is None:
            return data
        number = message.round if self.round is None else self.round
        return encode(replace(message, session=self.session, round=number, receiver=self.party))

    def codes(self, inbox: Sequence[bytes]) -> frozenset[str]:
        """Return the codes of a reader that opens and verifies messages by their own headers (SEA-02)."""
        misfits = [message for message in filter(None, map(_read, inbox)) if not self.fits(message)]
        return frozenset().union(*(by_header(message, self.party) for message in misfits))


def by_header(message: Message, party: int) -> frozenset[str]:
    """Return the codes of a reader that opens or verifies a message by a header not its own (SEA-02, SIG-02)."""
    names = set(field_codecs(type(message)))
    sealed = "payload" in names and role_of(party) is Role.USER
    signed = bool({"signature", "signatures"} & names)
    return frozenset(["bad_ciphertext"] * sealed + ["bad_signature"] * signed)


def _read(data: bytes) -> Message | None:
    try:
        return parse(data)
    except ProtocolError:
        return None


def expected(op: str, params: Mapping[str, Any]) -> Expected:
    """Return the header of messages to the party of a request, for a script or for a session that is opened."""
    protocol, _, role = op.partition(".")
    numbers = params.get("numbers", params)
    party = {"server": SERVER, "authority": AUTHORITY}.get(role)
    party = params.get("setup", params)["user"] if party is None else party
    round = None if protocol.startswith(_STAMPED) else int(params["round"])
    return Expected(bytes.fromhex(params["session"]), round, party, numbers["N"])


def refusals(
    party: Party, call: Call, header: Expected, suspects: Sequence[int], before: Any = None
) -> Iterator[ParameterError | ProtocolError]:
    """Yield how a refused step would be refused for each reason alone.

    Parameters
    ----------
    party : Party
        The reference's party, in the state in which it refuses the step.
    call : Call
        The step.
    header : Expected
        The header that its messages should have.
    suspects : sequence of int
        The places in the inbox of messages that the network made.
    before : object
        The state in which the party took the step earlier, if it did.
    """
    states = [party.state] if before is None else [party.state, before]
    for at, data in enumerate(call.inbox):
        inboxes: list[tuple[bytes, ...]] = [(data,)]
        if at in suspects:
            honest = (other for place, other in enumerate(call.inbox) if place not in suspects)
            rest = [other for other in honest if not _alike(other, data)]
            fitting = header.addressed(data)
            inboxes = list(dict.fromkeys([(data,), (*rest, data), (fitting,), (*rest, fitting)]))
        for inbox in inboxes:
            found = (party.refusal(Call(call.phase, inbox), state) for state in states)
            yield from (error for error in found if error is not None and not isinstance(error, _ABSENT))


def _alike(one: bytes, other: bytes) -> bool:
    """Return whether two messages have the same type, sender and receiver (MSG-04)."""
    mine, right = _read(one), _read(other)
    return mine is not None and right is not None and key(mine) == key(right)
