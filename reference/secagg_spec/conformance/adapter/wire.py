"""Requests, answers and encodings of the adapter protocol (spec/adapter.md, sections 1 and 3)."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.arithmetic.wide import objects
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.sdk.secagg_adapter import element_bytes
from secagg_spec.documents import Limit, NotJSON, TooDeep, loads, too_deep

Kind = Literal["result", "reject", "error", "unsupported"]
BrokenVerdict = Literal["crash", "timeout", "protocol"]

_KINDS = ("result", "reject", "error", "unsupported")
DEEPEST = 100
"""The most levels of objects and lists in each other in a line."""
_NOT_HEX = re.compile("[^0-9a-f]")


class AdapterBroken(Exception):
    """There is no valid answer. `verdict` says whether the adapter crashed, hung, or wrote something else.

    `out_of_step` means that the next line may not answer the next request, which only a fresh process repairs.
    """

    def __init__(self, verdict: BrokenVerdict, message: str, *, out_of_step: bool = False) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.out_of_step = out_of_step


class AdapterUnusable(Exception):
    """The adapter cannot be started, or its `hello` cannot be used; the middle of a long message is left out."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 1000 else f"{message[:700]} … {message[-297:]}")


@dataclass(frozen=True)
class Request:
    """One request, without its id; `raw` asks for what the implementation gave as well (ADP-55)."""

    op: str
    params: dict[str, Any]
    rand: dict[str, Any] | None = None
    raw: bool = False

    def line(self, number: int) -> str:
        """Return the request as a line of JSON."""
        body: dict[str, Any] = {"id": number, "op": self.op, "params": self.params}
        if self.rand:
            body["rand"] = self.rand
        if self.raw:
            body["raw"] = True
        return json.dumps(body) + "\n"


@dataclass(frozen=True)
class RawLine(Request):
    """A line that is sent unchanged because it is not a valid request; its answer has this `id`, or null."""

    op: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    data: bytes = b""
    id: int | None = None

    def line(self, number: int) -> str:
        """Return the line; surrogates stand for bytes that are not UTF-8."""
        return self.data.decode(errors="surrogateescape") + "\n"


@dataclass(frozen=True)
class Answer:
    """One of the four kinds of answer."""

    kind: Kind
    value: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    message: str = ""
    blamed: Any = None
    """The parties that a rejection blames, as it names them; None if it names none."""

    @property
    def said(self) -> str:
        """The answer that is no result, for a message: the code or the kind, and the words of the adapter."""
        return (" " if self.code else ": ").join(part for part in (self.code or self.kind, self.message) if part)

    def as_json(self) -> dict[str, Any]:
        """Return the answer in the form that reports use."""
        if self.kind == "result":
            return {"result": self.value}
        if self.kind == "unsupported":
            return {"unsupported": True}
        blamed = {} if self.blamed is None else {"blamed": self.blamed}
        code = {"code": self.code} if self.code else {}
        return {self.kind: {**code, "message": self.message, **blamed}}


def parse_answer(line: bytes, number: int | None) -> Answer:
    """Parse the answer in a line, which ends in a line feed (ADP-01).

    Raises
    ------
    AdapterBroken
        The verdict is ``protocol``. The line is not an answer to request `number`. Or, if `number` is None, it is not
        an answer with the id null, as a line that is not a request must get (ADP-10).
    """
    body = _object(line)
    if number is None and body.get("id", 0) is not None:
        message = "the answer to a line that is not a request must have the id null"
        raise AdapterBroken("protocol", f"{message}: {quoted(line)}")
    if number is not None and (type(body.get("id")) is not int or body["id"] != number):
        _refuse(_wrong_id(body.get("id"), number, line))
    kinds = [kind for kind in _KINDS if kind in body]
    if len(kinds) != 1:
        raise AdapterBroken("protocol", f"an answer has one of {', '.join(_KINDS)}; this one has {kinds}")
    others = sorted(set(body) - {"id", *_KINDS})
    if others:
        raise AdapterBroken("protocol", f"an answer has an id and one of {', '.join(_KINDS)}; not {others[0][:80]!r}")
    return _answer(kinds[0], body[kinds[0]])


def is_json(line: bytes) -> bool:
    """Return whether a line is JSON of any kind, or an object that is refused; other noise before hello is neither."""
    try:
        _load(line)
    except TooDeep:
        return True
    except (NotJSON, UnicodeDecodeError):
        return False
    except ValueError:  # as two members of one name
        return line.lstrip().startswith(b"{")
    return True


def quoted(line: bytes, limit: int = 120) -> str:
    """Return the beginning of a line, for a message."""
    text = line[: 4 * limit].decode(errors="replace").strip()
    return repr(text[:limit]) + (" …" if len(text) > limit or len(line) > 4 * limit else "")


def _object(line: bytes) -> dict[str, Any]:
    """Return the object in a line; any other content leaves the adapter out of step."""
    try:
        body = _load(line)
    except UnicodeDecodeError:
        _refuse(f"this line is not UTF-8: {quoted(line)}")
    except TooDeep:
        _refuse(f"this line is nested deeper than {DEEPEST} levels: {quoted(line)}")
    except Limit as limit:
        _refuse(f"this line {limit}: {quoted(line)}")
    except ValueError:
        _refuse(f"this line is not JSON: {quoted(line)}")
    if not isinstance(body, dict):
        _refuse(f"an answer is a JSON object; this line is not: {quoted(line)}")
    if not line.endswith(b"\n"):
        _refuse(f"this line does not end in a line feed: {quoted(line)}")
    if too_deep(body, DEEPEST):
        _refuse(f"this line is nested deeper than {DEEPEST} levels: {quoted(line)}")
    return body


def _load(line: bytes) -> Any:
    text = line.decode()
    if text.startswith("\ufeff"):
        raise Limit("begins with a byte order mark")
    return loads(text)


def _wrong_id(given: Any, number: int, line: bytes) -> str:
    if type(given) is int and 0 < given < number:
        return f"request {number} meets another answer to request {given}; each has exactly one line: {quoted(line)}"
    return f"the answer to request {number} does not have its id: {quoted(line)}"


def _refuse(message: str) -> NoReturn:
    raise AdapterBroken("protocol", message, out_of_step=True)


def _answer(kind: str, content: Any) -> Answer:
    if kind == "unsupported":
        if content is not True:
            raise AdapterBroken("protocol", f"unsupported is {str(content)[:80]}; it must be true")
        return Answer("unsupported")
    if not isinstance(content, dict):
        raise AdapterBroken("protocol", f"{kind} is not an object: {str(content)[:80]}")
    if kind == "result":
        return Answer("result", value=content)
    message = content.get("message", "")
    if not isinstance(message, str):
        raise AdapterBroken("protocol", f"the message of {kind} is not text: {str(message)[:80]}")
    if kind == "error":
        return Answer("error", message=message)
    code = content.get("code")
    if not isinstance(code, str) or code not in ALL_CODES:
        said = (
            f"reject code {code!r:.80} is not one of the protocol's" if "code" in content else "the reject has no code"
        )
        raise AdapterBroken("protocol", f"{said} (ADP-09)")
    return Answer("reject", code=code, message=message, blamed=content.get("blamed"))


def pack(vector: UintArray, q: int = 2**32) -> str:
    """Return elements modulo q as hex digits, 4 bytes each, or above 2**32 as many as they need."""
    width = element_bytes(q)
    return vector.astype("<u4").tobytes().hex() if width == 4 else secagg_adapter.pack(vector.tolist(), width)


def pack_reals(x: RealArray) -> str:
    """Return binary64 numbers as hex digits."""
    return x.astype("<f8").tobytes().hex()


def holds(format: str, text: str) -> bool:
    """Return whether binary64 numbers in hex digits are exact in a format, ``binary64`` or ``binary32``."""
    try:
        numbers = unpack(text, "<f8")
    except ValueError:
        return False
    with np.errstate(over="ignore"):
        kept = numbers.astype("<f4" if format == "binary32" else "<f8").astype("<f8")
    return np.array_equal(kept, numbers, equal_nan=True)


def elements(text: object, q: int) -> UintArray:
    """Return the elements modulo q of a string that `pack` writes; above 2**32 as an array of Python integers.

    Raises
    ------
    ValueError
        As `unpack`.
    """
    width = element_bytes(q)
    if width == 4:
        return unpack(text).astype(np.uint64)
    if len(unpack(text, "u1")) % width:
        raise ValueError(f"{len(str(text))} hex digits do not fill whole entries of {2 * width}")
    return objects(secagg_adapter.unpack(str(text), width))


def unpack(text: object, dtype: str = "<u4") -> NDArray[Any]:
    """Return the entries of a string of lowercase hex digits as an array of `dtype`.

    Raises
    ------
    ValueError
        The text is not lowercase hex digits, or does not contain a whole number of entries.
    """
    return np.frombuffer(octets(text, np.dtype(dtype).itemsize), dtype=dtype)


def octets(text: object, width: int = 1) -> bytes:
    """Return the bytes of a string of lowercase hex digits, two for each, without spaces (ADP-15).

    Raises
    ------
    ValueError
        The text is no string of lowercase hex digits, or does not contain a whole number of entries of `width` bytes.
    """
    if not isinstance(text, str):
        raise ValueError(f"{type(text).__name__} is not a string of hex digits")
    wrong = _NOT_HEX.search(text)
    if wrong:
        raise ValueError(f"{wrong.group()!r} at position {wrong.start()} is not a lowercase hex digit")
    if len(text) % (2 * width):
        raise ValueError(f"{len(text)} hex digits do not fill whole entries of {2 * width}")
    return bytes.fromhex(text)
