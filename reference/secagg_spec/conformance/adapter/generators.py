"""Adapters with their own generator (policy ``prg.stream``): while the kit judges one, the reference uses its streams.

Whatever a check draws and whatever a party of the reference sends is therefore masked as the adapter masks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    params: Mapping[str, Any] = {"q": q, "key": key.hex(), "n": n}
    if not call.caps.offers(EXPAND) or not call.caps.declares(EXPAND, params):
        raise NoStream
    call.by_relation = True
    return call.vector(EXPAND, params, "value", n)
