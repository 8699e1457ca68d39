"""Several BASA buffers side by side: independent sessions, and a dispatcher that sends users to them.

Source: BASA, section 4.2 (future work); spec/basa.md, section 9 (BAA-47, BAA-48).
"""

from __future__ import annotations

from collections.abc import Sequence

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import LABEL, SESSION_BYTES, fields, sha256
from secagg_spec.errors import ParameterError, WrongPhase


def sessions(base: bytes, count: int) -> tuple[bytes, ...]:
    """Return `count` different session ids derived from one, 16 bytes each (BAA-47).

    Raises
    ------
    LengthMismatch
        The base is not 16 bytes long.
    """
    validate.octets("base", base, SESSION_BYTES)
    numbers = range(validate.integer("count", count, 1, 2**16))
    return tuple(sha256(fields(LABEL, "basa-buffer", base, number))[:SESSION_BYTES] for number in numbers)


class Dispatcher:
    """A dispatcher that sends each user to the buffer with the fewest users, and on a tie to the first of these.

    Parameters
    ----------
    sessions : sequence of bytes
        The session ids of the buffers.

    Raises
    ------
    LengthMismatch
        A session id is not 16 bytes long.
    ParameterError
        There is no session id, or two are equal (BAA-47).
    """

    def __init__(self, sessions: Sequence[bytes]) -> None:
        self.sessions = tuple(validate.sequence("sessions", sessions, "session ids"))
        for session in self.sessions:
            validate.octets("sessions", session, SESSION_BYTES)
        if not self.sessions or len(set(self.sessions)) < len(self.sessions):
            raise ParameterError("sessions", [s.hex() for s in self.sessions], "one at least, and all different")
        self._at: dict[int, int] = {}

    def send(self, user: int) -> int:
        """Return the number of the buffer for a user.

        Raises
        ------
        WrongPhase
            The user is already at a buffer (BAA-48).
        """
        user = validate.integer("user", user, 0, validate.MAX_COUNT)
        if user in self._at:
            raise WrongPhase(f"user {user} is at buffer {self._at[user]} already")
        busy = list(self._at.values())
        self._at[user] = min(range(len(self.sessions)), key=busy.count)
        return self._at[user]

    def leave(self, user: int) -> None:
        """Let a user leave its buffer, whether or not its update was accepted.

        Raises
        ------
        WrongPhase
            The user is not at a buffer.
        """
        user = validate.integer("user", user, 0, validate.MAX_COUNT)
        if user not in self._at:
            raise WrongPhase(f"user {user} is at no buffer")
        del self._at[user]


guard(__name__)
