"""Make text from an adapter safe for terminals, JSON and XML."""

import math
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_SHOWN = 1000
MESSAGE = 2000
"""The most characters of a message in a file."""
KEPT = 100_000
"""The most characters, in a file, of all answers of a failure, or of a hello."""
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e0fff]"
)
_OTHER_SIGNS = str.maketrans({"●": "P", "◐": "R", "✕": "F", "·": ".", "…": "...", "≤": "<=", "≥": ">="})
_SIDES = re.compile("(?P<head>.*(?:got|is|are) )(?P<got>.+), must be (?P<want>.+)", re.DOTALL)
_SIDE = 64
"""The longest side of a difference that is shown in full."""
_AROUND = 24
_FIRST = "first difference"
_HEX = re.compile("(?:[0-9a-f]{2})*")
_SURROGATES = re.compile("[\ud800-\udfff]")


def shown(text: str, limit: int = _SHOWN) -> str:
    """Return text on one line, without terminal control characters and characters invalid in XML, cut at `limit`.

    Control characters (C0, DEL, C1), direction marks, invisible characters and lone surrogates become escapes.
    """
    return clip(_UNSAFE.sub(_escape, text[: limit + 1]), limit)


def visible(text: str) -> str:
    """Return text for a terminal or a page: uncut, with its line feeds, and otherwise with the escapes of `shown`."""
    return "\n".join(_UNSAFE.sub(_escape, line) for line in text.split("\n"))


def for_encoding(text: str, encoding: str) -> str:
    """Return text for printing: `visible`, with substitutes for report symbols that the encoding lacks."""
    return in_encoding(visible(text), encoding)


def in_encoding(text: str, encoding: str) -> str:
    """Return text with substitutes for report symbols that the encoding lacks."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_OTHER_SIGNS)
    return text


def differing(message: str) -> str:
    """Return a message of the form "… is A, must be B" with long A and B cut, and with their first difference."""
    sides = _SIDES.fullmatch(message)
    if not sides or _FIRST in message or max(len(sides["got"]), len(sides["want"])) <= _SIDE:
        return message
    got, want = sides["got"], sides["want"]
    at = next((at for at, (mine, right) in enumerate(zip(got, want, strict=False)) if mine != right), -1)
    at = min(len(got), len(want)) if at < 0 else at
    short = f"{sides['head']}{clip(got, _AROUND)}, must be {clip(want, _AROUND)}"
    return f"{short}; {_FIRST} at {_spot(got, want, at)}"


def _spot(got: str, want: str, at: int) -> str:
    """Return where two texts first differ, and how: the byte of hex digits, and in a list also the entry."""
    quotes = got[:at].count("'")
    start = got.rfind("'", 0, at) + 1 if quotes % 2 else 0
    mine, right = (text[start:].partition("'")[0] for text in (got, want))
    if not _HEX.fullmatch(mine) or not _HEX.fullmatch(right):
        return f"character {at}: {got[at : at + _AROUND]!r} in place of {want[at : at + _AROUND]!r}"
    first, among = (at - start) // 8 * 8, f" in entry {quotes // 2}" if start else ""
    where = f"byte {(at - start) // 2} of {len(right) // 2}{among}"
    return f"{where}: {mine[first : first + 8]!r} in place of {right[first : first + 8]!r}"


def pasted(words: Iterable[str]) -> str:
    """Return words quoted for a shell; words with characters that a terminal interprets are written as $'…'."""
    return " ".join(_in_dollars(word) if _UNSAFE.search(word) else shlex.quote(word) for word in words)


def relative(command: Iterable[str]) -> str:
    """Return a command quoted for a shell; absolute paths inside the current folder become relative."""
    here = f"{Path.cwd()}{os.sep}"
    inside = ((word, word.removeprefix(here).lstrip(os.sep) if word.startswith(here) else "") for word in command)
    return pasted(as_file(rest) if rest else word for word, rest in inside)


def as_file(path: str) -> str:
    """Return a path as one that is taken for a file: neither for an option, nor for a command that PATH leads to."""
    return path if os.sep in path and not path.startswith("-") else f"./{path}"


def _octets(char: str) -> bytes:
    """Return the bytes of a character on a command line; surrogates stand for bytes that are not UTF-8."""
    return char.encode("utf-8", "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass")


def _in_dollars(word: str) -> str:
    plain = (char if char.isascii() and char.isprintable() and char not in "\\'" else "" for char in word)
    pairs = zip(word, plain, strict=True)
    return "$'" + "".join(kept or "".join(f"\\x{byte:02x}" for byte in _octets(char)) for char, kept in pairs) + "'"


def clip(text: str, limit: int) -> str:
    """Return text of at most `limit` characters, ending in … if some were left out."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


class Room:
    """A character limit for the adapter's text in a report; text beyond the limit is replaced by its size (CNF-71)."""

    def __init__(self, left: int) -> None:
        self._left = left

    def fit(self, value: Any) -> Any:
        """Return the data, cut to the room that is left; the beginning has priority."""
        if isinstance(value, str):
            room = max(self._left, 0)
            self._left -= min(len(value), room) + 2
            return value if len(value) <= room else f"{value[:room]}… ({len(value):,} characters)"
        if isinstance(value, dict):
            members = list(value.items())
            kept = {self.fit(name): self.fit(item) for name, item in members if self._left > 0}
            return kept if len(kept) == len(members) else {**kept, "…": {"left out": len(members) - len(kept)}}
        if isinstance(value, (list, tuple)):
            items = [self.fit(item) for item in value if self._left > 0]
            return items if len(items) == len(value) else [*items, f"… ({len(value) - len(items):,} more)"]
        self._left -= len(str(value)) + 2
        return value


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with the noun that it counts; unless a plural is given, the plural adds an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def fit_for_json(value: Any) -> Any:
    """Return data that every JSON reader accepts: lone surrogates are escaped, and non-finite numbers become text."""
    if isinstance(value, str):
        return _SURROGATES.sub(_escape, value)
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {fit_for_json(str(key)): fit_for_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [fit_for_json(item) for item in value]
    return value


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape", "surrogatepass").decode("ascii")
