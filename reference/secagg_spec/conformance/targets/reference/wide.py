"""The reference's arithmetic with moduli above 2**32, as an adapter that tests the kit (spec/adapter.md, section 2)."""

from hashlib import shake_256
from typing import Any

from secagg_spec import __version__
from secagg_spec.arithmetic import validate, wide
from secagg_spec.conformance.adapter.wire import elements, pack
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter, readers
from secagg_spec.conformance.targets.reference.arithmetic import Arithmetic
from secagg_spec.errors import LengthMismatch

PRIMES = (2**61 - 1, 2**255 - 19, 2**521 - 1)
_ANY = {"values": [str(q) for q in (97, 2**64, *PRIMES)]}
_PRIME = {"values": [str(q) for q in (97, *PRIMES)]}
_LEVELS = {"max": str(wide.MAX_WIDE)}


def build() -> Adapter:
    """Return an adapter of the operations whose moduli may be above 2**32."""
    built = Adapter("secagg-spec reference, wide", __version__, policy={"prg.stream": "other"})
    handlers = {**Arithmetic(wide.ring, wide.field, _reader, wide).handlers(), "prg.expand": _expand}
    for name, handler in handlers.items():
        ranges = {"q": _PRIME if name == "field.inverse" or name.startswith("mds.") else _ANY}
        levels = {"level": _LEVELS} if name.startswith("quantizer.") else {}
        built.operation(name, ranges={**ranges, **levels})(adapter.refusing(handler))
    return built


def _reader(modulus: int) -> readers.Reader:
    """Return what reads vectors of elements as the ring of a modulus has them; the modulus is checked first."""
    wide.ring(modulus)
    return lambda name, text: elements(text, modulus)


def _expand(q: str, key: str, n: int) -> dict[str, Any]:
    """Expand a key by SHAKE-256: a number of 64 bits more than the modulus has, modulo it, for each element."""
    modulus, data = wide.ring(int(q)).modulus, readers.octets("key", key)
    if len(data) != 32:
        raise LengthMismatch("key", f"{len(data)} bytes", "32 bytes")
    size = (modulus.bit_length() + 71) // 8
    stream = shake_256(data + bytes([size])).digest(size * validate.integer("n", n, 0))
    values = [int.from_bytes(stream[at : at + size], "little") % modulus for at in range(0, len(stream), size)]
    return {"value": pack(wide.objects(values), modulus)}
