"""Write an adapter in about 20 lines of Python. One file, standard library only, so that it can be copied anywhere.

    from secagg_adapter import Adapter, Reject, pack, unpack

    adapter = Adapter("my-library", "1.2.3")

    @adapter.operation("field.add")
    def add(q, a, b):
        return {"value": pack([(x + y) % int(q) for x, y in zip(unpack(a), unpack(b))])}

    if __name__ == "__main__":
        adapter.run()

A handler receives the members of ``params`` by name, and of ``rand`` as ``rand`` when its operation takes randomness.
It returns the members of ``result``, raises `Reject`, or raises anything else, which becomes an ``error``.
Whatever the implementation prints goes to standard error.

Source: spec/adapter.md.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

PROTOCOL: Final = (1, 0)
MAX_LINE: Final = 67_108_864

_SESSION: Final = ("q", "N", "D", "U", "T", "d", "session", "round")
OPERATIONS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "echo": (("data",), ()),
    "field.add": (("q", "a", "b"), ()),
    "field.subtract": (("q", "a", "b"), ()),
    "field.multiply": (("q", "a", "b"), ()),
    "field.inverse": (("q", "a"), ()),
    "field.matmul": (("q", "rows", "inner", "columns", "a", "b"), ()),
    "sample.field": (("q", "n", "bytes"), ()),
    "mds.encode": (("q", "N", "U", "T", "mask"), ("noise",)),
    "mds.decode": (("q", "N", "U", "T", "d", "users", "shares"), ()),
    "quantizer.quantize": (("q", "level", "weight", "x"), ("rounding",)),
    "quantizer.dequantize": (("q", "level", "format", "value"), ()),
    "lightsecagg.mask": (("q", "update", "mask"), ()),
    "lightsecagg.aggregate_shares": (("q", "N", "T", "surviving", "held"), ()),
    "lightsecagg.recover": (("q", "N", "D", "U", "T", "d", "surviving", "masked", "users", "shares"), ()),
    "lightsecagg.round": (("q", "N", "D", "U", "T", "d", "updates", "drop"), ("masks", "noises")),
    "prg.expand": (("q", "key", "n"), ()),
    "key.agree": (("private", "public"), ()),
    "key.derive": (
        ("protocol", "parameters", "secret", "session", "round", "sender", "receiver", "sender_key", "receiver_key"),
        (),
    ),
    "seal.close": ((*_SESSION, "sender", "private", "roster", "type", "plaintexts"), ()),
    "seal.open": ((*_SESSION, "sender", "receiver", "private", "roster", "type", "payload"), ()),
    "message.encode": (("type", "session", "round", "sender", "receiver", "fields"), ()),
    "message.decode": (("type", "bytes"), ()),
    "lightsecagg.user": ((*_SESSION, "user", "channel", "update", "steps"), ("mask", "noise")),
    "lightsecagg.server": ((*_SESSION, "steps"), ()),
}
"""Each operation of the adapter protocol: the members of ``params``, and the names of its sampled values."""


class Reject(Exception):
    """The implementation refuses, on purpose. `code` is one of the reject codes of the adapter protocol."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.code = code


class Unsupported(Exception):
    """These parameters are outside what the adapter declares."""


class Adapter:
    """The operations of one implementation, and the loop that offers them.

    Parameters
    ----------
    name, version, language : str
        What is under test.
    randomness : {"explicit", "seeded", "none"}
        The grade of randomness of operations that take any.
    policy, reject_map : dict, optional
        As in the adapter protocol, section 2.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        language: str = "python",
        randomness: str = "explicit",
        policy: dict[str, str] | None = None,
        reject_map: dict[str, str] | None = None,
    ) -> None:
        self.hello: dict[str, Any] = {
            "protocol": list(PROTOCOL),
            "implementation": {"name": name, "version": version, "language": language},
            "randomness": randomness,
            "operations": {},
            "policy": policy or {},
            "reject_map": reject_map or {},
        }
        self._handlers: dict[str, Callable[..., dict[str, Any]]] = {}

    def operation(self, name: str, **declaration: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare an operation; `declaration` may hold ``ranges``, ``parameter_sets``, ``randomness``, ``composed``."""
        if name not in OPERATIONS:
            raise ValueError(f"{name!r} is not an operation of the adapter protocol: {', '.join(OPERATIONS)}")

        def declare(handler: Callable[..., Any]) -> Callable[..., Any]:
            self.hello["operations"][name] = declaration
            self._handlers[name] = handler
            return handler

        return declare

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request."""
        operation = request.get("op")
        if operation == "hello":
            return {"id": request.get("id"), "result": self.hello}
        if operation not in self._handlers:
            return {"id": request.get("id"), "unsupported": True}
        try:
            result = self._handlers[operation](**self._arguments(operation, request))
            return {"id": request["id"], "result": result}
        except Reject as reject:
            return {"id": request["id"], "reject": {"code": reject.code, "message": str(reject)}}
        except Unsupported:
            return {"id": request["id"], "unsupported": True}
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            return {"id": request["id"], "error": {"message": message, "trace": traceback.format_exc()}}

    def _arguments(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        params, rand = request.get("params"), request.get("rand") or {}
        names, drawn = OPERATIONS[operation]
        if not isinstance(params, dict) or set(params) != set(names):
            raise Reject("malformed", f"params of {operation} are {', '.join(names)}")
        grade = self.hello["operations"][operation].get("randomness", self.hello["randomness"])
        expected = {"explicit": set(drawn), "seeded": {"seed"} if drawn else set(), "none": set()}[grade]
        if set(rand) != expected:
            raise Reject("malformed", f"rand of {operation} has the names {sorted(expected)}")
        return {**params, "rand": rand} if drawn else dict(params)

    def run(self, stdin: BinaryIO | None = None) -> None:
        """Answer requests until the end of input. Standard output of the process is kept for answers alone."""
        source = stdin or sys.stdin.buffer
        with os.fdopen(os.dup(1), "wb", buffering=0) as out:
            os.dup2(2, 1)
            for line in source:
                out.write(json.dumps(self.answer(_parse(line))).encode() + b"\n")


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    return request if isinstance(request, dict) else {"id": None, "op": None}


def unpack(text: str, width: int = 4) -> list[int]:
    """Return the unsigned integers of `width` bytes in a string of hex digits."""
    data = _unhex(text, width)
    return list(struct.unpack(f"<{len(data) // width}{'I' if width == 4 else 'Q'}", data))


def pack(values: Sequence[int]) -> str:
    """Return a vector of elements as hex digits."""
    return struct.pack(f"<{len(values)}I", *values).hex()


def unpack_reals(text: str) -> list[float]:
    """Return the binary64 numbers in a string of hex digits."""
    data = _unhex(text, 8)
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def pack_reals(values: Sequence[float], format: str = "binary64") -> str:
    """Return numbers as hex digits, each in 8 bytes (``binary64``) or 4 (``binary32``)."""
    return struct.pack(f"<{len(values)}{'d' if format == 'binary64' else 'f'}", *values).hex()


def _unhex(text: Any, width: int) -> bytes:
    try:
        data = bytes.fromhex(text)
    except (TypeError, ValueError):
        raise Reject("malformed", "a vector is a string of hex digits") from None
    if len(data) % width:
        raise Reject("malformed", f"a vector has {width} bytes for each entry")
    return data
