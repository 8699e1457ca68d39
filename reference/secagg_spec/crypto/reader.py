"""A reader of bytes from front to back, for the messages of a peer."""

from __future__ import annotations

from dataclasses import dataclass

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import Malformed


@dataclass
class Reader:
    """Bytes and a place in them; `what` says in the error message what the bytes should be.

    Raises `ParameterError` for what is no bytes, or no place in them.
    """

    what: str
    data: bytes
    at: int = 0

    def __post_init__(self) -> None:
        validate.integer("at", self.at, 0, len(validate.octets("data", self.data)))

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes.

        Raises
        ------
        ParameterError
            The count is below 0.
        Malformed
            Fewer bytes are left.
        """
        count = validate.integer("count", count, 0)
        if self.at + count > len(self.data):
            raise Malformed(f"{self.what} of {len(self.data)} bytes ends early: {count} are needed from {self.at} on")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int) -> int:
        """Return the next `count` bytes as a little-endian integer.

        Raises
        ------
        ParameterError
            The count is below 0.
        Malformed
            Fewer bytes are left.
        """
        return int.from_bytes(self.take(count), "little")

    def end(self) -> None:
        """Refuse remaining bytes.

        Raises
        ------
        Malformed
            There are bytes left.
        """
        if self.at != len(self.data):
            raise Malformed(f"{self.what} goes on after its end: {len(self.data) - self.at} more bytes")


guard(__name__)
