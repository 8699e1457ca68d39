"""Checks of any generator, by relations between streams (spec/conventions.md, section 8)."""

import math
from hashlib import sha256, shake_256
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.generators import expanded, fitted
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.valid import VALID, key
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail, same
from secagg_spec.conformance.checks.counting import demand_shares
from secagg_spec.conformance.sessions.choices import among

_EXPAND = "prg.expand"
_SMALL = 64
"""The largest modulus for which residues are counted one by one."""
_BIASED = 3 * 2**30
"""A modulus for which reduction without rejection makes a quarter of the residues twice as frequent as the others."""
_MISSING_BITS, _EQUAL_BITS = 100, 128
_BUCKETS, _COUNTED, _LEAST = 8, 4096, 1024


def standard(caps: Capabilities) -> bool:
    """Return whether the adapter's generator is the one of the text."""
    return caps.policy("prg.stream") == "aes-ctr"


def other(caps: Capabilities) -> bool:
    """Return whether the adapter declares another generator."""
    return not standard(caps)


def stream(call: Caller, q: int, key: bytes, n: int) -> UintArray:
    """Return n elements of the adapter's stream for a key."""
    call.by_relation = True
    return expanded(call, q, key, n)


def _random_key(draw: Any) -> bytes:
    """Draw a key without structure, from a number that shrinks to 0."""
    return sha256(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little")).digest()


def _telling(q: int) -> int:
    """Return a number of elements modulo q that two uniform streams share with probability at most 2**-128."""
    return math.ceil(_EQUAL_BITS / math.log2(q))


@check("prg.expand/again", "PRG-06", examples=20, wide=True)
def again(draw: Any, call: Caller) -> None:
    """A key gives the same stream when asked again, after a stream of another key."""
    params = VALID[_EXPAND](draw, call.caps).params
    q, first, n = params["q"], bytes.fromhex(params["key"]), params["n"]
    second = _random_key(draw)
    before = stream(call, q, first, n)
    stream(call, q, second, n)
    same("the stream of one key, asked for twice", stream(call, q, first, n), before)


@check("prg.expand/distinct", "PRG-05", examples=60, wide=True)
def distinct(draw: Any, call: Caller) -> None:
    """Different keys give different streams, even when the keys are similar."""
    q = draw(among(sorted(strategies.moduli(call.caps.range(_EXPAND, "q"), prime=False))[-3:]))
    first, second, how = _alike(draw, len(fitted(call.caps, bytes(32))))
    n = _telling(q)
    if np.array_equal(stream(call, q, first, n), stream(call, q, second, n)):
        keys = f"{first.hex()} and {second.hex()}; an adapter that cuts or folds keys does the same"
        fail(f"two keys, {how}, have the same first {n} elements modulo {q}: {keys}")


def _alike(draw: Any, size: int) -> tuple[bytes, bytes, str]:
    """Draw two different keys of `size` bytes and say how they differ."""
    first, kind = (key(draw) + bytes(size))[:size], draw(among(("order", "bit", "two words", "fresh")))
    count = size // 4
    words, rest = np.frombuffer(first[: 4 * count], "<u4"), first[4 * count :]
    if kind == "order":
        second = words[list(draw(st.permutations(range(count))))].tobytes() + rest
    elif kind == "two words" and count > 1:
        places, added = strategies.subset(draw, range(count), 2, 2), draw(st.integers(1, 2**32 - 1))
        second = np.bitwise_xor(words, np.isin(np.arange(count), places) * np.uint32(added)).astype("<u4").tobytes()
        second += rest
    else:
        second = shake_256(_random_key(draw)).digest(size) if kind == "fresh" else first
    if second == first:
        kind, second = "bit", flipped(draw, first)
    return first, second, _HOW[kind]


def flipped(draw: Any, data: bytes) -> bytes:
    """Draw bytes with one bit flipped."""
    at, bit = draw(st.integers(0, len(data) - 1)), draw(st.integers(0, 7))
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


_HOW = {
    "order": "which differ in the order of their 4-byte words",
    "bit": "which differ in one bit",
    "two words": "which differ by the same bits in two 4-byte words",
    "fresh": "drawn independently",
}


@check("prg.expand/other-length", "PRG-02", applies=other, examples=20, wide=True)
def other_length(draw: Any, call: Caller) -> None:
    """A key of another length is either refused or expanded."""
    params = VALID[_EXPAND](draw, call.caps).params
    text = draw(among((params["key"][:-2], params["key"] + "00", "", params["key"][:32])))
    answer = call.ask(_EXPAND, {**params, "key": text})
    call.by_relation = True
    if answer.kind == "error":
        raise CheckFailed("error", f"a key of {len(text) // 2} bytes broke {_EXPAND}: {answer.message}")
    if answer.kind == "reject":
        call.fits(_EXPAND, answer, reject.LENGTH | {"bad_param"}, f"the key has {len(text) // 2} bytes")


def _few(caps: Capabilities) -> list[int]:
    return sorted(q for q in strategies.moduli(caps.range(_EXPAND, "q"), prime=False) if q <= _SMALL)


def _many(caps: Capabilities) -> list[int]:
    allowed = caps.range(_EXPAND, "q")
    biased = [_BIASED] if _BIASED in allowed else []
    return biased + [q for q in strategies.moduli(allowed, prime=False) if q > _SMALL]


@check("prg.expand/residues", "PRG-04", applies=lambda caps: bool(_few(caps)), examples=20)
def residues(draw: Any, call: Caller) -> None:
    """Modulo a small number, each residue occurs, and about equally often."""
    q, drawn = draw(among(_few(call.caps))), _random_key(draw)
    n = max(_LEAST, _enough(q))
    counts = np.bincount(stream(call, q, drawn, n).astype(np.int64), minlength=q)
    demand_shares(counts.tolist(), [1 / q] * q, f"modulo {q} the element {{}}")


def _enough(q: int) -> int:
    """Return how many uniform elements miss one of q residues with probability below 2**-100."""
    return math.ceil((_MISSING_BITS * math.log(2) + math.log(q)) / -math.log1p(-1 / q))


@check("prg.expand/intervals", "PRG-04", applies=lambda caps: bool(_many(caps)), examples=20, wide=True)
def intervals(draw: Any, call: Caller) -> None:
    """Modulo a large number, each eighth of the residues and each remainder modulo 8 is as frequent as it should be."""
    allowed = _many(call.caps)
    q, drawn = draw(among(allowed[:1]) | st.sampled_from(allowed)), _random_key(draw)
    values = stream(call, q, drawn, _COUNTED).astype(object)
    eighths = np.bincount((values * _BUCKETS // q).astype(np.int64), minlength=_BUCKETS)
    ends = [-(-at * q // _BUCKETS) for at in range(_BUCKETS + 1)]
    shares = [(end - start) / q for start, end in pairwise(ends)]
    demand_shares(eighths.tolist(), shares, f"modulo {q} eighth {{}} of the elements")
    low = np.bincount((values & (_BUCKETS - 1)).astype(np.int64), minlength=_BUCKETS)
    shares = [-((rest - q) // _BUCKETS) / q for rest in range(_BUCKETS)]
    demand_shares(low.tolist(), shares, f"modulo {q} an element with the remainder {{}} by {_BUCKETS}")
