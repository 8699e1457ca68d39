"""Reads documents in JSON and TOML: any text that cannot be used raises `ValueError` with one line that says why.

Beside what is no JSON or TOML, a text is refused that Python would change or could not handle: of two members with one
name Python keeps the last, it reads 1e400 as infinite, and it neither reads nor writes integers of thousands of
digits. A number is rounded to binary64, so 1e-400 is 0.

The message continues a sentence whose subject is the text, such as "it is not JSON".
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from secagg_spec import system
from secagg_spec.errors import ParameterError

DEEPEST = 128
"""The most levels of objects and lists in each other in a file; an answer of 100 levels has room in it."""
MOST_DIGITS = 4300
_DOTTED = re.compile(
    rf"""(?:^|[{{,])[ \t]*\[{{0,2}}[ \t]*(?:(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEEPEST}}}""",
    re.MULTILINE | re.ASCII,
)
"""Where a key of TOML with too many parts begins, which Python reads in quadratic time."""
_LONG = f"holds an integer of more than {MOST_DIGITS:,} digits"
TOO_LONG = 10**MOST_DIGITS
"""The smallest integer that Python does not write."""


class Limit(ValueError):
    """A text is beyond a limit, although it may be JSON or TOML (CNF-50, CNF-51)."""


class NotText(ValueError):
    """The bytes of a file are no text in UTF-8."""


class TooDeep(Limit):
    """A text has more levels of objects and lists in each other than are read."""

    def __init__(self, most: str = f"{DEEPEST} levels") -> None:
        super().__init__(f"is nested deeper than {most}")


def read_json(path: Path, most: int = 1 << 29) -> Any:
    """Return the value in a file of JSON, of at most `most` bytes; a byte order mark at its beginning is skipped.

    Raises
    ------
    OSError
        The file cannot be read, or is longer (see `system.regular`).
    ValueError
        See `from_json`; or, as `NotText`, the file is not UTF-8.
    """
    return from_json(read_text(path, most))


def read_toml(path: Path, most: int = 1 << 29) -> dict[str, Any]:
    """Return the table in a file of TOML, of at most `most` bytes; a byte order mark at its beginning is skipped.

    Raises
    ------
    OSError
        The file cannot be read, or is longer (see `system.regular`).
    ValueError
        See `from_toml`; or, as `NotText`, the file is not UTF-8.
    """
    return from_toml(_read(path, most))


def read_text(path: Path, most: int = 1 << 29) -> str:
    """Return the text in a file of at most `most` bytes; a byte order mark is skipped, and each line ends in LF.

    Raises
    ------
    OSError
        The file cannot be read, or is longer (see `system.regular`).
    NotText
        The file is not UTF-8.
    ParameterError
        The path is no text and no `Path`, or `most` is no integer of at least 0; so it is for the functions above.
    """
    return _read(path, most).replace("\r\n", "\n").replace("\r", "\n")


def _read(path: Path, most: int) -> str:
    """Return the text in a file with its line ends: in TOML a lone CR is none."""
    if not isinstance(path, (str, Path)):
        raise ParameterError("path", type(path).__name__, "a path of the file system, as text or Path")
    if type(most) is not int or most < 0:
        raise ParameterError("most", most, "a number of bytes, at least 0")
    try:
        return system.regular(Path(path), most).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise NotText(f"is not UTF-8 in line {line}") from None


def from_json(text: str) -> Any:
    """Parse a text as JSON of at most `DEEPEST` levels.

    Raises
    ------
    ValueError
        The text is not JSON, as `NotJSON` with a line in most cases; or, as `Limit`, it is beyond a limit.
    """
    try:
        value = loads(text)
    except TooDeep:
        raise TooDeep from None
    if too_deep(value, DEEPEST):
        raise TooDeep
    return value


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(f"is no text, but of the class {type(text).__name__}")
    return text


class NotJSON(ValueError):
    """A text is not JSON; `fault` says why, and `line` where."""

    def __init__(self, fault: str, line: int) -> None:
        self.fault, self.line = fault, line
        super().__init__(f"is not JSON: {fault} in line {line}")


def loads(text: str) -> Any:
    """Parse a text as JSON of any number of levels that Python reads.

    Raises
    ------
    ValueError
        See `from_json`.
    """
    try:
        return _DECODER.decode(_text(text))
    except json.JSONDecodeError as error:
        raise NotJSON(error.msg, error.lineno) from None
    except RecursionError:
        raise TooDeep("Python reads") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"has {name}, which is no JSON")


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        _refuse_long(digits)
    return int(digits)


def _real(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        _refuse_infinite(number)
    return value


def _toml_real(number: str) -> float:
    return float(number) if number.lstrip("+-") in ("inf", "nan") else _real(number)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        _refuse_twice([name for name, _ in pairs])
    return members


def _refuse_long(digits: str) -> None:
    if len(digits.removeprefix("-")) > MOST_DIGITS:
        raise Limit(_LONG)


def _refuse_infinite(number: str) -> None:
    raise Limit(f"holds a number beyond binary64, {number[:20]}")


def _refuse_twice(names: list[str]) -> None:
    seen = set[str]()
    twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    raise Limit(f"holds an object with two members {twice[:80]!r}")


_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_int=_integer, parse_float=_real, object_pairs_hook=_members
)
"""Created once, since creating it costs as much as reading a line."""


def too_deep(value: Any, most: int) -> bool:
    """Return whether objects and lists are nested deeper than a limit, for checked arguments."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        inner = [entry.values() if isinstance(entry, dict) else entry for entry in level]
        level = [item for entry in inner for item in entry if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def from_toml(text: str) -> dict[str, Any]:
    """Parse a text as TOML of at most `DEEPEST` levels.

    Raises
    ------
    ValueError
        The text is not TOML, as `tomllib.TOMLDecodeError`; or, as `Limit`, it is beyond a limit. More than
        `DEEPEST` words with dots between them at the beginning of a line, or behind a comma or a brace, are beyond it.
    """
    given = _text(text)
    if _DOTTED.search(given):
        raise TooDeep
    try:
        content = tomllib.loads(given, parse_float=_toml_real)
    except (tomllib.TOMLDecodeError, Limit):
        raise
    except RecursionError:
        raise TooDeep from None
    except ValueError:
        raise Limit(_LONG) from None
    if too_deep(content, DEEPEST):
        raise TooDeep
    if any(isinstance(item, int) and abs(item) >= TOO_LONG for item in _all(content)):
        raise Limit(_LONG)
    return content


def _all(value: Any) -> Iterator[Any]:
    """Yield a value, and what it holds at any depth."""
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _all(inner)
