"""Which sessions and rounds a party has begun, so that no number is ever used twice.

A party that runs a round a second time under one number answers for two sets, masks two inputs with one mask, or signs
two ballots. So it counts a round as begun before it sends anything, also when the round fails, and stores that.

Source: spec/conventions.md, section 13 (SES-01, SES-02).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from secagg_spec.arithmetic import validate
from secagg_spec.crypto.keys import SESSION_BYTES
from secagg_spec.errors import LengthMismatch, ParameterError

LAST_ROUND = 2**32 - 1


def later_round(last: int, number: int, name: str = "number") -> int:
    """Return the number of a round that comes after the last one that a party began (SES-01).

    Raises
    ------
    ParameterError
        The number is not above the last one; `name` is what the caller calls it.
    """
    return validate.integer(name, number, last + 1)


@dataclass(frozen=True)
class Begun:
    """What a party must never forget: the last round that it began in each session.

    Store what `begin` and `go_on` return before the first message of that round leaves. A party that lost it takes no
    further part in its sessions.

    Parameters
    ----------
    last : mapping from bytes to int
        By session id (16 bytes), the number of the last round in ``[0, 2**32)``.

    Raises
    ------
    LengthMismatch, ParameterError
        A session id or a round is none.
    """

    last: Mapping[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for session, round in validate.mapping("last", self.last).items():
            session_id(session)
            validate.integer("round", round, 0, LAST_ROUND)
        object.__setattr__(self, "last", MappingProxyType(dict(self.last)))

    def begin(self, session: bytes, round: int = 0) -> Begun:
        """Return the memory of a party that begins a session with a round (SES-02).

        Raises
        ------
        ParameterError
            The party has begun a session with this id before.
        LengthMismatch
            The id is not 16 bytes long.
        """
        if session_id(session) in self.last:
            raise ParameterError("session", session.hex(), "an id that this party has never begun a session with")
        return Begun({**self.last, session: validate.integer("round", round, 0, LAST_ROUND)})

    def go_on(self, session: bytes, round: int) -> Begun:
        """Return the memory of a party that begins another round of a session (SES-01).

        Raises
        ------
        ParameterError
            The session was never begun, or the number is not above that of the last round that the party began there.
        LengthMismatch
            The id is not 16 bytes long.
        """
        if session_id(session) not in self.last:
            raise ParameterError("session", session.hex(), "a session that this party has begun")
        return Begun({**self.last, session: later_round(self.last[session], round, "round")})

    def store(self) -> dict[str, int]:
        """Return this memory as data that JSON holds: session ids in hex digits, and rounds."""
        return {session.hex(): round for session, round in self.last.items()}


def restore(data: Mapping[str, int]) -> Begun:
    """Return the memory that `Begun.store` gave.

    Raises
    ------
    ParameterError
        It is not what `Begun.store` gives.
    """
    try:
        return Begun({bytes.fromhex(session): round for session, round in validate.mapping("data", data).items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise ParameterError("data", repr(error), "session ids in hex digits, each with a round") from error


def session_id(session: bytes) -> bytes:
    """Return a session id; refuse with `LengthMismatch` what is not 16 bytes."""
    if not isinstance(session, bytes) or len(session) != SESSION_BYTES:
        raise LengthMismatch("session", session, f"{SESSION_BYTES} bytes")
    return session
