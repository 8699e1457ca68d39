"""Requests, answers and encodings of the adapter protocol (spec/adapter.md, sections 1 and 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.codes import ALL_CODES

Kind = Literal["result", "reject", "error", "unsupported"]
BrokenVerdict = Literal["crash", "timeout", "protocol"]


class AdapterBroken(Exception):
    """The fifth answer: none. `verdict` says whether the adapter crashed, hung, or wrote something else."""

    def __init__(self, verdict: BrokenVerdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class UsageError(Exception):
    """The command line cannot be carried out; the message says why, in one line."""


class AdapterUnusable(Exception):
    """The adapter cannot be started, or its `hello` cannot be used."""


@dataclass(frozen=True)
class Request:
    """One request, without its id."""

    op: str
    params: dict[str, Any]
    rand: dict[str, Any] | None = None

    def line(self, number: int) -> str:
        """Return the request as a line of JSON."""
        body: dict[str, Any] = {"id": number, "op": self.op, "params": self.params}
        if self.rand:
            body["rand"] = self.rand
        return json.dumps(body) + "\n"


@dataclass(frozen=True)
class Answer:
    """One of the four answers that are given."""

    kind: Kind
    value: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the answer as it stands in reports."""
        if self.kind == "result":
            return {"result": self.value}
        if self.kind == "unsupported":
            return {"unsupported": True}
        return {self.kind: {"code": self.code, "message": self.message} if self.code else {"message": self.message}}


def parse_answer(line: str, number: int) -> Answer:
    """Return the answer in a line.

    Raises
    ------
    AdapterBroken
        The line is not an answer to request `number`, with verdict ``protocol``.
    """
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        raise AdapterBroken("protocol", f"this line is not JSON, or too deep: {line.strip()[:120]!r}") from None
    if not isinstance(body, dict) or body.get("id") != number:
        raise AdapterBroken("protocol", f"the answer to request {number} lacks its id: {line.strip()[:120]!r}")
    kinds = [kind for kind in ("result", "reject", "error", "unsupported") if kind in body]
    if len(kinds) != 1:
        raise AdapterBroken("protocol", f"an answer has one of result, reject, error, unsupported; this one {kinds}")
    return _answer(kinds[0], body[kinds[0]])


def _answer(kind: str, content: Any) -> Answer:
    if kind == "unsupported":
        return Answer("unsupported")
    if not isinstance(content, dict):
        raise AdapterBroken("protocol", f"{kind} is not an object: {str(content)[:80]}")
    if kind == "result":
        return Answer("result", value=content)
    message = str(content.get("message", ""))
    if kind == "error":
        return Answer("error", message=message)
    code = content.get("code")
    if not isinstance(code, str) or code not in ALL_CODES:
        raise AdapterBroken("protocol", f"reject code {code!r} is not one of the protocol's (ADP-09)")
    return Answer("reject", code=str(code), message=message)


def pack(vector: UintArray) -> str:
    """Return elements as hex digits, 4 bytes each."""
    return vector.astype("<u4").tobytes().hex()


def pack_reals(x: RealArray) -> str:
    """Return binary64 numbers as hex digits."""
    return x.astype("<f8").tobytes().hex()


def unpack(text: object, dtype: str = "<u4") -> NDArray[Any]:
    """Return the entries of a string of hex digits as an array of `dtype`.

    Raises
    ------
    ValueError
        Not a string of hex digits, or not whole entries.
    """
    if not isinstance(text, str):
        raise ValueError(f"a vector is a string of hex digits, not {type(text).__name__}")
    return np.frombuffer(bytes.fromhex(text), dtype=dtype)
