"""Which rules a step breaks besides the one that the reference names: a refusal may carry a code of any.

The rules are asked one by one (spec/adapter.md, section 5). Each message is given to the reference's party by itself;
one that the network made, with the honest ones too, and with a header that fits; where the step was taken before, in
the state in which it was taken. A message that nobody altered may break a rule as well: its sender was misled before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call, Party
from secagg_spec.errors import InconsistentSets, ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols.codec import Message, encode, field_codecs
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, role_of

_STAMPED = ("basecagg", "basa")
"""The protocols whose messages name rounds of their own."""
_ABSENT = (TooFewSurvivors, InconsistentSets)
"""What a few messages of an inbox are refused for since the others are not there."""


@dataclass(frozen=True)
class Expected:
    """The header that messages to a party have: session, round (None where any may come), the party, N users."""

    session: bytes
    round: int | None
    party: int
    N: int

    def fits(self, message: Message) -> bool:
        """Return whether a message is for this party, in this round of this session, and from a party of it."""
        known = message.sender < self.N or message.sender in (SERVER, AUTHORITY)
        return known and message.session == self.session and self._is_ours(message)

    def _is_ours(self, message: Message) -> bool:
        return message.receiver == self.party and self.round in (None, message.round)

    def addressed(self, data: bytes) -> bytes:
        """Return a message with the header that fits, but for its sender; anything else as it is."""
        message = _read(data)
        if message is None:
            return data
        number = message.round if self.round is None else self.round
        return encode(replace(message, session=self.session, round=number, receiver=self.party))

    def codes(self, inbox: Sequence[bytes]) -> frozenset[str]:
        """Return the codes of a reader that opens and verifies messages with what their own headers say (SEA-02)."""
        found: set[str] = set()
        for message in filter(None, map(_read, inbox)):
            names = field_codecs(type(message))
            if not self.fits(message) and "payload" in names and role_of(self.party) is Role.USER:
                found.add("bad_ciphertext")
            if not self.fits(message) and {"signature", "signatures"} & set(names):
                found.add("bad_signature")
        return frozenset(found)


def _read(data: bytes) -> Message | None:
    try:
        return parse(data)
    except ProtocolError:
        return None


def expected(op: str, params: Mapping[str, Any]) -> Expected:
    """Return what messages to the party of a request are headed by: of a script, or of a session that is opened."""
    protocol, _, role = op.partition(".")
    numbers = params.get("numbers", params)
    party = {"server": SERVER, "authority": AUTHORITY}.get(role)
    party = params.get("setup", params)["user"] if party is None else party
    round = None if protocol in _STAMPED else int(params["round"])
    return Expected(bytes.fromhex(params["session"]), round, party, numbers["N"])


def refusals(
    party: Party, call: Call, header: Expected, suspects: Sequence[int], before: Any = None
) -> Iterator[ParameterError | ProtocolError]:
    """Yield how a step that is refused would be refused for one reason at a time.

    Parameters
    ----------
    party : Party
        The reference's party, in the state in which it refuses the step.
    call : Call
        The step.
    header : Expected
        What its messages should be headed by.
    suspects : sequence of int
        The places in the inbox of the messages that the network made.
    before : object
        The state in which the party took the step before, if it did.
    """
    states = [party.state] if before is None else [party.state, before]
    for at, data in enumerate(call.inbox):
        inboxes: list[tuple[bytes, ...]] = [(data,)]
        if at in suspects:
            rest = [
                other for place, other in enumerate(call.inbox) if place not in suspects and not _alike(other, data)
            ]
            fitting = header.addressed(data)
            inboxes = list(dict.fromkeys([(data,), (*rest, data), (fitting,), (*rest, fitting)]))
        for inbox in inboxes:
            found = (party.refusal(Call(call.phase, inbox), state) for state in states)
            yield from (error for error in found if error is not None and not isinstance(error, _ABSENT))


def _alike(one: bytes, other: bytes) -> bool:
    """Return whether two messages are of one type from one sender to one receiver (MSG-04)."""
    mine, right = _read(one), _read(other)
    return (
        mine is not None
        and right is not None
        and (mine.TYPE, mine.sender, mine.receiver) == (right.TYPE, right.sender, right.receiver)
    )
