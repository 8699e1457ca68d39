"""The sessions and rounds that a party has begun, so that no round number is ever used twice.

A party that runs two rounds under the same number answers for two sets, masks two inputs with one mask, or signs two
ballots. So the party counts a round as begun before it sends anything, even if the round fails later, and stores this.

Source: spec/conventions.md, section 13 (SES-01, SES-02).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import SESSION_BYTES
from secagg_spec.errors import ParameterError

LAST_ROUND = 2**32 - 1


def later_round(last: int, number: int, name: str = "number") -> int:
    """Return the number of a round if it is above the number of the party's last round (SES-01).

    Raises
    ------
    ParameterError
        The number is not above the last one, or above 2^32 - 1; the message calls the number `name`. Or the last one is
        no round.
    """
    last = validate.integer("last", last, 0, LAST_ROUND)
    if last == LAST_ROUND:
        raise ParameterError(name, number, f"of another session: round {LAST_ROUND} was the last of this one")
    return validate.integer(name, number, last + 1, LAST_ROUND)


@dataclass(frozen=True)
class Begun:
    """The memory that a party must never lose: the last round that it began in each session.

    Store the result of `begin` or `go_on` before the first message of that round is sent. A party that loses its memory
    takes no further part in its sessions.

    Parameters
    ----------
    last : mapping from bytes to int
        The number of the last round, in ``[0, 2**32)``, by session id (16 bytes).

    Raises
    ------
    LengthMismatch, ParameterError
        A session id or a round number is not valid.
    """

    last: Mapping[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = validate.mapping("last", self.last).items()
        last = {session_id(session): validate.integer("round", round, 0, LAST_ROUND) for session, round in given}
        object.__setattr__(self, "last", MappingProxyType(last))

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
            The party never began the session, or the number is not above the number of its last round there, or above
        2^32 - 1.
        LengthMismatch
            The id is not 16 bytes long.
        """
        if session_id(session) not in self.last:
            raise ParameterError("session", session.hex(), "a session that this party has begun")
        return Begun({**self.last, session: later_round(self.last[session], round, "round")})

    def __hash__(self) -> int:
        return hash(frozenset(self.last.items()))

    def __reduce__(self) -> tuple[type[Begun], tuple[dict[bytes, int]]]:
        return Begun, (dict(self.last),)

    def store(self) -> dict[str, int]:
        """Return this memory as JSON data: round numbers by session id, in hex digits."""
        return {session.hex(): round for session, round in self.last.items()}


def restore(data: Mapping[str, int]) -> Begun:
    """Return the memory that `Begun.store` wrote.

    Raises
    ------
    LengthMismatch, ParameterError
        The data is not what `Begun.store` writes: a session id in other digits is another spelling of the same
        session, and of two rounds the older might stay.
    """
    given = validate.mapping("data", data).items()
    return Begun({validate.from_hex("session", session): round for session, round in given})


def session_id(session: bytes) -> bytes:
    """Return a session id; refuse it with `LengthMismatch` if it does not have 16 bytes."""
    return validate.octets("session", session, SESSION_BYTES)


guard(__name__)
