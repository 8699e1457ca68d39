"""Operations of rings, fields, codes and the quantiser, by the reference (spec/conventions.md, sections 1 to 4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from secagg_spec.arithmetic import mds, modular, quantizer, validate
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.targets.reference import readers

Result = dict[str, Any]


@dataclass(frozen=True)
class Arithmetic:
    """The operations for moduli of some size.

    `ring` and `field` take a modulus. `reader` returns the function that reads vectors of elements modulo it.
    `rounding` is the module of the quantiser.
    """

    ring: Callable[[int], Any] = modular.Ring
    field: Callable[[int], Any] = modular.PrimeField
    reader: Callable[[int], readers.Reader] = lambda modulus: readers.vector
    rounding: Any = quantizer

    def handlers(self) -> dict[str, Callable[..., Result]]:
        """Return the operations by name."""
        return {
            **{f"field.{method}": partial(self.elementwise, method) for method in ("add", "subtract", "multiply")},
            "field.inverse": self.inverse,
            "field.matmul": self.matmul,
            "mds.encode": self.encode,
            "mds.decode": self.decode,
            "quantizer.quantize": self.quantize,
            "quantizer.dequantize": self.dequantize,
        }

    def elementwise(self, method: str, q: Any, a: Any, b: Any) -> Result:
        """Return the sum, the difference or the products of two vectors."""
        modulus = readers.number("q", q)
        ring, read = self.ring(modulus), self.reader(modulus)
        return {"value": pack(getattr(ring, method)(read("a", a), read("b", b)), modulus)}

    def inverse(self, q: Any, a: Any) -> Result:
        """Return the inverses of elements."""
        modulus = readers.number("q", q)
        return {"value": pack(self.field(modulus).inverse(self.reader(modulus)("a", a)), modulus)}

    def matmul(self, q: Any, rows: Any, inner: Any, columns: Any, a: Any, b: Any) -> Result:
        """Return the product of two matrices."""
        modulus = readers.number("q", q)
        read = self.reader(modulus)
        sizes = {"rows": rows, "inner": inner, "columns": columns}
        rows, inner, columns = (validate.integer(name, size, 0, validate.MAX_COUNT) for name, size in sizes.items())
        left, right = readers.shaped("a", a, rows, inner, read=read), readers.shaped("b", b, inner, columns, read=read)
        return {"value": pack(self.ring(modulus).matmul(left, right).reshape(-1), modulus)}

    def encode(self, q: Any, N: Any, U: Any, T: Any, mask: Any, rand: Mapping[str, Any]) -> Result:
        """Return the shares of a mask."""
        modulus = readers.number("q", q)
        code, read = mds.MaskCode(self.field(modulus), N, U, T), self.reader(modulus)
        vector = read("mask", mask)
        noise = readers.shaped("noise", rand["noise"], code.T, code.share_length(vector.size), read=read)
        return {"shares": [pack(share, modulus) for share in code.encode(vector, noise)]}

    def decode(self, q: Any, N: Any, U: Any, T: Any, d: Any, users: Any, shares: Any) -> Result:
        """Return the mask of some shares."""
        modulus = readers.number("q", q)
        code = mds.MaskCode(self.field(modulus), N, U, T)
        chosen = validate.users("users", users, code.N)
        rows = readers.rows("shares", shares, len(chosen), code.share_length(d), read=self.reader(modulus))
        return {"mask": pack(code.decode(chosen, rows, d), modulus)}

    def quantize(self, q: Any, level: Any, weight: Any, x: Any, rand: Mapping[str, Any]) -> Result:
        """Return the elements of real numbers."""
        modulus, draws = readers.number("q", q), readers.reals("rounding", rand["rounding"])
        given = {"level": readers.number("level", level), "ring": self.ring(modulus), "weight": weight}
        return {"value": pack(self.rounding.quantize(readers.reals("x", x), rounding=draws, **given), modulus)}

    def dequantize(self, q: Any, level: Any, format: Any, value: Any) -> Result:
        """Return the real numbers of elements."""
        modulus = readers.number("q", q)
        ring, vector = self.ring(modulus), self.reader(modulus)("value", value)
        numbers = self.rounding.dequantize(vector, level=readers.number("level", level), ring=ring, format=format)
        return {"x": numbers.astype(numbers.dtype.newbyteorder("<")).tobytes().hex()}


HANDLERS = Arithmetic().handlers()
