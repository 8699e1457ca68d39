"""The two kinds of errors that the reference raises.

`ParameterError` and its subclasses: the *caller* is wrong, and no correct caller gives such a value. `ProtocolError`
and its subclasses: *other parties* dropped out or misbehaved. Impossible states are an ``assert``.

`UsageError` belongs to the command line: the command cannot do what the user asked for.

Source: spec/conventions.md, section 7 (ERR-01, ERR-02).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final


class ParameterError(ValueError):
    """A parameter breaks its constraint.

    Parameters
    ----------
    parameter : str
        The name of the parameter, as the caller wrote it.
    value : object
        The value that was given.
    allowed : str
        What is allowed, in words or as a bound.
    """

    def __init__(self, parameter: str, value: object, allowed: str) -> None:
        self.parameter: Final = parameter
        self.value: Final = value
        self.allowed: Final = allowed
        super().__init__(f"{_cut(parameter, 200)} = {_shorten(value)}: must be {_cut(allowed, 1500)}")

    def __reduce__(self) -> tuple[object, ...]:
        """Return what a copy, or another process, makes the same error of; the message alone is not enough."""
        return type(self), (self.parameter, self.value, self.allowed), vars(self)


class OutOfRange(ParameterError):
    """A number is outside the range that this call can carry, or is not finite."""


class NonCanonical(ParameterError):
    """A number that should be a ring element is not in ``[0, R)``."""


class LengthMismatch(ParameterError):
    """A length or shape does not fit the parameters or another input."""


class DuplicateUser(ParameterError):
    """A list of users names a user twice."""


class UnknownUser(ParameterError):
    """A user outside the roster is named."""


class ProtocolError(Exception):
    """A failure that a protocol expects.

    Parameters
    ----------
    message : str
        What happened, with the numbers that matter.
    blamed : iterable of int
        Parties of whom at least one is at fault; empty when possibly nobody is.
    """

    def __init__(self, message: str, blamed: Iterable[int] = ()) -> None:
        self.blamed: Final = frozenset(blamed)
        super().__init__(message)


class Malformed(ProtocolError):
    """Bytes or fields are not a message of the expected type. Proves a fault of the sender or of the channel."""


class WrongPhase(ProtocolError):
    """A message or call that does not belong to this phase.

    If the sender is blamed, it is at fault. In BASecAgg a blamed sender may only be slow, or have asked twice (BSA-12
    to BSA-16).
    """


class Replay(ProtocolError):
    """A one-time answer was asked for again. Proves a fault of the sender or of the caller."""


class InconsistentSets(ProtocolError):
    """An impossible set of users. Proves a fault of the party that announced it."""


class BadShare(ProtocolError):
    """The shares lie on no codeword, or give no secret. Proves that at least one blamed party sent a wrong share."""


class DecryptionFailed(ProtocolError):
    """A ciphertext does not decrypt. Proves that the sender or the server deviated, or that the rosters differ."""


class WeakKey(ProtocolError):
    """A public key gives an all-zero shared secret. Proves a fault of the party that advertised the key."""


class BadSignature(ProtocolError):
    """A signature is not valid for the expected content. Proves a fault of the party that sent or relayed it."""


class TooFewSurvivors(ProtocolError):
    """Too few users are left. Proves no fault: users drop out."""


_SHOWN_BITS = 120
"""A longer integer may be a key, a seed or a share, and is not shown (ERR-03)."""
_SHOWN_BYTES = 8
"""So may more bytes."""


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _hidden(value: Any) -> str:
    """Return what is said in place of a value that may be a secret, or holds one; nothing for any other."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (bytes, bytearray)) and len(value) > _SHOWN_BYTES:
        return f"{len(value)} bytes"
    entries: Any = value.tolist() if getattr(getattr(value, "dtype", None), "kind", "") == "O" else value
    if isinstance(value, Mapping):
        entries = itertools.chain(value, value.values())
    elif not isinstance(entries, (list, tuple, set, frozenset)):
        return ""
    held = next(filter(None, map(_hidden, entries)), "")
    return held and f"a {type(value).__name__} that holds {held.rpartition(' that holds ')[2]}"


def _shorten(value: object, limit: int = 60) -> str:
    try:
        hidden = _hidden(value)
        words = hidden or " ".join(repr(value).split())
    except ValueError:  # Python writes no integer of more than 4300 digits, even inside another object
        return f"a {type(value).__name__} that holds an integer of thousands of digits"
    except Exception:
        return f"a {type(value).__name__} that cannot be written"
    text = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in words[: limit + 1])
    return _cut(text, limit)


class UsageError(Exception):
    """The command line cannot be carried out; the message says why, in one line."""
