"""Adapters with their own generator (policy ``prg.stream``): while the kit judges one, the reference uses its streams.

Whatever a check draws and whatever a party of the reference sends is therefore masked as the adapter masks it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import shake_256
from typing import Any, Protocol

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.sampling import Words
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.crypto import prg

EXPAND = "prg.expand"
STREAMED = ("secagg", "secagg-active", "heterosag", "basa")
"""The protocols whose masks are generator streams."""


class NoStream(Exception):
    """A case needs a stream of the adapter's generator, and the adapter does not offer it."""


class Caller(Protocol):
    """The part of a caller that is needed to get streams."""

    caps: Capabilities
    by_relation: bool

    def vector(self, op: str, params: Mapping[str, Any], member: str, size: int, /) -> UintArray:
        """Return one vector from the result of a request."""


def own(caps: Capabilities) -> bool:
    """Return whether an adapter declares its own generator."""
    return caps.policy("prg.stream") != "aes-ctr"


@contextmanager
def borrowed(call: Caller) -> Iterator[None]:
    """If an adapter declares its own generator, let the reference use the adapter's streams.

    Raises
    ------
    NoStream
        A stream is needed, and the adapter does not offer streams for this modulus.
    """
    if not own(call.caps):
        yield
        return
    kept: dict[tuple[bytes, int], UintArray] = {}

    def pieces(key: bytes, ring: Ring, n: int) -> Iterator[Words]:
        at = key, ring.modulus
        if n > kept.get(at, np.zeros(0)).size:
            kept[at] = _asked(call, key, ring.modulus, n)
        if n:
            yield kept[at][:n].astype(np.uint32)

    with prg.generator(pieces):
        yield


def _asked(call: Caller, key: bytes, q: int, n: int) -> UintArray:
    if not call.caps.offers(EXPAND) or not call.caps.declares(EXPAND, {"q": str(q), "key": key.hex()}):
        raise NoStream
    call.by_relation = True
    return expanded(call, q, key, n)


def expanded(call: Caller, q: int, key: bytes, n: int) -> UintArray:
    """Return the first n elements of the adapter's stream for a key, of as many as it gives.

    Raises
    ------
    NoStream
        The adapter does not give so many elements.
    """
    count = granted(call.caps, n)
    return call.vector(EXPAND, {"q": q, "key": fitted(call.caps, key).hex(), "n": count}, "value", count)[:n]


def granted(caps: Capabilities, n: int) -> int:
    """Return the smallest number of elements, from n on, that the adapter gives."""
    allowed = caps.range(EXPAND, "n")
    if allowed.values is not None:
        found = min((value for value in allowed.values if value >= n), default=None)
    else:
        found = -(-max(n, allowed.low or 0) // allowed.multiple) * allowed.multiple
    if found is None or found not in allowed:
        raise NoStream
    return int(found)


def fitted(caps: Capabilities, key: bytes) -> bytes:
    """Return a key of a length that the adapter takes: the key itself, or one that follows from it."""
    allowed = caps.range(EXPAND, "key")
    if len(key) in allowed:
        return key
    lengths = allowed.values if allowed.values is not None else (allowed.low, allowed.high)
    return shake_256(key).digest(next(length for length in lengths if length is not None))
