"""The failures of the reference, in the two kinds that a caller can meet.

`ParameterError` and its subclasses say that the *caller* gave something that no correct caller gives. `ProtocolError`
and its subclasses say that *other parties* dropped out or misbehaved. What is impossible is an ``assert``.

`UsageError` is that of the commands: what a person gave them cannot be carried out.

Source: spec/conventions.md, section 7 (ERR-01, ERR-02).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class ParameterError(ValueError):
    """A parameter breaks its constraint.

    Parameters
    ----------
    parameter : str
        The name of the parameter, as the caller wrote it.
    value : object
        What was given.
    allowed : str
        What is allowed, in words or as a bound.
    """

    def __init__(self, parameter: str, value: object, allowed: str) -> None:
        self.parameter: Final = parameter
        self.value: Final = value
        self.allowed: Final = allowed
        super().__init__(f"{parameter} = {_shorten(value)}: must be {allowed}")


class OutOfRange(ParameterError):
    """A number is outside the range that this call can carry, or is not finite."""


class NonCanonical(ParameterError):
    """A number stands for an element of a ring and is not in ``[0, R)``."""


class LengthMismatch(ParameterError):
    """A length or shape does not fit the parameters or another input."""


class DuplicateUser(ParameterError):
    """A list of users names a user twice."""


class UnknownUser(ParameterError):
    """A user outside the roster is named."""


class ProtocolError(Exception):
    """An expected outcome of a protocol that is not success.

    Parameters
    ----------
    message : str
        What happened, with the numbers that matter.
    blamed : iterable of int
        Parties of whom at least one is at fault; empty when nobody need be.
    """

    def __init__(self, message: str, blamed: Iterable[int] = ()) -> None:
        self.blamed: Final = frozenset(blamed)
        super().__init__(message)


class Malformed(ProtocolError):
    """Bytes or fields are not a message of the expected type. Proves a fault of the sender or of the channel."""


class WrongPhase(ProtocolError):
    """A message or call that this phase does not take.

    Proves a fault of the sender when one is blamed; in BASecAgg it may only be slow, or have asked twice (BSA-12 to
    BSA-16).
    """


class Replay(ProtocolError):
    """Something that is given once was asked for again. Proves a fault of the sender or of the caller."""


class InconsistentSets(ProtocolError):
    """A set of users that cannot be right. Proves a fault of the party that announced it."""


class BadShare(ProtocolError):
    """Shares on no codeword, or that give no secret. Proves that at least one of the blamed sent a wrong one."""


class DecryptionFailed(ProtocolError):
    """A payload does not open. Proves that the sender or the server deviated, or that the rosters differ."""


class WeakKey(ProtocolError):
    """A public key gives an all-zero shared secret. Proves a fault of whoever advertised the key."""


class BadSignature(ProtocolError):
    """A signature is not valid for what it should be on. Proves a fault of whoever sent or relayed it."""


class TooFewSurvivors(ProtocolError):
    """Too few users are left. Proves nothing about anybody: users drop out."""


_SHOWN_BITS = 256


def _shorten(value: object, limit: int = 60) -> str:
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integer of more than 4300 digits, inside a container either
        return f"a {type(value).__name__} that holds an integer of thousands of digits"
    return text if len(text) <= limit else text[: limit - 1] + "…"


class UsageError(Exception):
    """The command line cannot be carried out; the message says why, in one line."""
