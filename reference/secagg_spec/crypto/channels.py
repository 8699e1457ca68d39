"""Channels between users, through the server.

A protocol takes its channel as an argument and never looks inside a payload that is not addressed to it.
"""

from __future__ import annotations

from typing import Protocol

from secagg_spec.arithmetic.guard import guard


class Channel(Protocol):
    """A channel that closes a payload for one receiver, and opens it there."""

    def close(self, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return the payload that carries `plaintext` from `sender` to `receiver`."""
        ...

    def open(self, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return the plaintext of a payload that `sender` closed for `receiver`."""
        ...


class PlainChannel:
    """A channel whose payload is the plaintext, for tests and demonstrations only: the server can read every share."""

    def close(self, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return `plaintext`."""
        return plaintext

    def open(self, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return `payload`."""
        return payload


class StampedChannel(Protocol):
    """The channel of one user in a protocol without common rounds: every payload belongs to a stamp of its sender."""

    def close(self, stamp: int, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return the payload that carries `plaintext` from `sender` to `receiver` under a stamp of the sender."""
        ...

    def open(self, stamp: int, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return the plaintext of a payload that `sender` closed for `receiver` under `stamp`."""
        ...


class PlainStampedChannel:
    """A channel whose payload is the plaintext, for tests and demonstrations only: the server can read every share."""

    def close(self, stamp: int, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return `plaintext`."""
        return plaintext

    def open(self, stamp: int, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return `payload`."""
        return payload


guard(__name__)
