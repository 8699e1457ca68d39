"""The reference's arithmetic with moduli above 2**32, as an adapter that tests the kit (spec/adapter.md, section 2)."""

from collections.abc import Mapping
from hashlib import shake_256
from typing import Any

import numpy as np

from secagg_spec import __version__
from secagg_spec.arithmetic import validate, wide
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import elements, pack
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter, readers
from secagg_spec.errors import LengthMismatch

PRIMES = (2**61 - 1, 2**255 - 19, 2**521 - 1)
_ANY = {"values": [str(q) for q in (97, 2**64, *PRIMES)]}
_PRIME = {"values": [str(q) for q in (97, *PRIMES)]}
_LEVELS = {"max": str(wide.MAX_WIDE)}


def build() -> Adapter:
    """Return an adapter of the operations whose moduli may be above 2**32."""
    built = Adapter("secagg-spec reference, wide", __version__, policy={"prg.stream": "other"})
    for method in ("add", "subtract", "multiply"):
        built.operation(f"field.{method}", ranges={"q": _ANY})(adapter.refusing(_elementwise(method)))
    built.operation("field.matmul", ranges={"q": _ANY})(adapter.refusing(_matmul))
    built.operation("field.inverse", ranges={"q": _PRIME})(adapter.refusing(_inverse))
    built.operation("mds.encode", ranges={"q": _PRIME})(adapter.refusing(_encode))
    built.operation("mds.decode", ranges={"q": _PRIME})(adapter.refusing(_decode))
    both = {"q": _ANY, "level": _LEVELS}
    built.operation("quantizer.quantize", ranges=both)(adapter.refusing(_quantize))
    built.operation("quantizer.dequantize", ranges=both)(adapter.refusing(_dequantize))
    built.operation("prg.expand", ranges={"q": _ANY})(adapter.refusing(_expand))
    return built


def _vector(text: str, q: str) -> UintArray:
    """Return a vector of elements as the ring of a modulus has them; the modulus is checked first."""
    wide.ring(int(q))
    return elements(text, int(q))


def _shaped(name: str, text: str, q: str, rows: int, columns: int) -> UintArray:
    values = _vector(text, q)
    if values.size != rows * columns:
        raise LengthMismatch(name, f"{values.size} elements", f"{rows} rows of {columns} elements")
    return values.reshape(rows, columns)


def _elementwise(method: str) -> adapter.Handler:
    def call(q: str, a: str, b: str) -> dict[str, Any]:
        return {"value": pack(getattr(wide.ring(int(q)), method)(_vector(a, q), _vector(b, q)), int(q))}

    return call


def _inverse(q: str, a: str) -> dict[str, Any]:
    return {"value": pack(wide.field(int(q)).inverse(_vector(a, q)), int(q))}


def _matmul(q: str, rows: int, inner: int, columns: int, a: str, b: str) -> dict[str, Any]:
    left = _shaped("a", a, q, validate.integer("rows", rows, 0), validate.integer("inner", inner, 0))
    right = _shaped("b", b, q, inner, validate.integer("columns", columns, 0))
    return {"value": pack(wide.ring(int(q)).matmul(left, right).reshape(-1), int(q))}


def _encode(q: str, N: int, U: int, T: int, mask: str, rand: Mapping[str, Any]) -> dict[str, Any]:
    code = MaskCode(wide.field(int(q)), N, U, T)
    vector = _vector(mask, q)
    noise = _shaped("noise", rand["noise"], q, code.T, code.share_length(vector.size))
    return {"shares": [pack(share, int(q)) for share in code.encode(vector, noise)]}


def _decode(q: str, N: int, U: int, T: int, d: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    code = MaskCode(wide.field(int(q)), N, U, T)
    chosen = validate.users("users", users, code.N)
    if len(shares) != len(chosen):
        raise LengthMismatch("shares", f"{len(shares)} vectors", f"{len(chosen)} vectors")
    rows = [_shaped(f"shares[{at}]", text, q, 1, code.share_length(d)) for at, text in enumerate(shares)]
    given = np.concatenate(rows) if rows else code.field.zeros(0).reshape(0, code.share_length(d))
    return {"mask": pack(code.decode(chosen, given, d), int(q))}


def _quantize(q: str, level: str, weight: int, x: str, rand: Mapping[str, Any]) -> dict[str, Any]:
    values = wide.quantize(
        readers.reals("x", x),
        level=int(level),
        ring=wide.ring(int(q)),
        weight=weight,
        rounding=readers.reals("rounding", rand["rounding"]),
    )
    return {"value": pack(values, int(q))}


def _dequantize(q: str, level: str, format: Any, value: str) -> dict[str, Any]:
    numbers = wide.dequantize(_vector(value, q), level=int(level), ring=wide.ring(int(q)), format=format)
    return {"x": numbers.astype(numbers.dtype.newbyteorder("<")).tobytes().hex()}


def _expand(q: str, key: str, n: int) -> dict[str, Any]:
    """Expand a key by SHAKE-256: a number of 64 bits more than the modulus has, modulo it, for each element."""
    modulus, data = wide.ring(int(q)).modulus, readers.octets("key", key)
    if len(data) != 32:
        raise LengthMismatch("key", f"{len(data)} bytes", "32 bytes")
    size = (modulus.bit_length() + 71) // 8
    stream = shake_256(data + bytes([size])).digest(size * validate.integer("n", n, 0))
    values = [int.from_bytes(stream[at : at + size], "little") % modulus for at in range(0, len(stream), size)]
    return {"value": pack(wide.objects(values), modulus)}
