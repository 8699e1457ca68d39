"""Text that an adapter gave, made fit for terminals, JSON and XML."""

from __future__ import annotations

import math
import re
from typing import Any

_SHOWN = 1000
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e0fff]"
)
_OTHER_SIGNS = str.maketrans({"●": "P", "◐": "R", "✕": "F", "·": ".", "…": "...", "≤": "<=", "≥": ">="})
_SURROGATES = re.compile("[\ud800-\udfff]")


def shown(text: str, limit: int = _SHOWN) -> str:
    """Return text on one line, without characters that a terminal obeys or XML cannot carry, cut at `limit`.

    Control characters (C0, DEL, C1), marks of direction, invisible characters and lone surrogates become escapes.
    """
    return clip(_UNSAFE.sub(_escape, text[: limit + 1]), limit)


def for_encoding(text: str, encoding: str) -> str:
    """Return text with other signs where an encoding lacks those of the reports."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_OTHER_SIGNS)
    return text


def clip(text: str, limit: int) -> str:
    """Return text of at most `limit` characters, the last of them … when some were left out."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with the word for what is counted; its plural has an s at the end where none is given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def fit_for_json(value: Any) -> Any:
    """Return data that every JSON reader accepts: lone surrogates escaped, numbers that are not finite as text."""
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
