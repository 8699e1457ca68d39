"""Spoils a right input: bytes, lines of text, and JSON with its structure kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = (
    "0", "1", "-1", "2", "7", "255", "256", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296",
    "9007199254740993", "9223372036854775808", "18446744073709551616", "1e400", "-0.0", "0.5", "1e-320", "9" * 60,
    "1_0", "0x10", " 1", "\u0661",
)  # fmt: skip
WORDS = (
    "", "null", "true", "NaN", "Infinity", "[]", "{}", '""', "\\u0000", "\ud7ff", "a" * 300, "\t", "é", "__class__",
    "../..", "user", "server", "\x1b[31m", "\u202e", ",", ":", "\r\n",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**32, 2**63, 2**64, 10**30, 0.5, 1e308, float("nan"), "", "0", "00", "ff" * 16,
    "-1", "007", "x" * 300, "\u0661", [], [[]], {}, {"": 0}, [0, 0], ["0"], [None],
)  # fmt: skip
"""Values that stand in place of a value of JSON."""


def spoiled(seed: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Return a seed after one to four changes; JSON mostly stays JSON."""
    data = seed
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = _structure(data, random) if random.random() < 0.6 else _bytes(data, others, random)
    return data


def _bytes(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice((1, 1, 2, 4, 16, len(data))))
    changes: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at],
        lambda: data[:at] + data[end:],
        lambda: data[:end] + data[at:],
        lambda: data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
        lambda: data[:at] + random.randbytes(random.choice((1, 4, 16))) + data[at:],
        lambda: (
            data[:at]
            + random.choice((b"\xff" * 4, bytes(4), b"\xff" * 8, bytes(8), b"\x00\x00\x00\x80"))
            + data[at + 4 :]
        ),
        lambda: data[:at] + random.choice((*NUMBERS, *WORDS)).encode("utf-8", "surrogatepass") + data[end:],
        lambda: data[:at] + _from(random.choice(others), random),
    )
    return random.choice(changes)()


def _from(other: bytes, random: Random) -> bytes:
    return other[random.randrange(len(other) + 1) :]


def _structure(data: bytes, random: Random) -> bytes:
    """Change one place of a JSON document; text that is no JSON has one of its words changed."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _word(data, random)
    places = list(_places(document))
    if not places:
        return json.dumps(random.choice(VALUES)).encode()
    holder, key = random.choice(places)
    _change(holder, key, places, random)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _change(holder: Any, key: Any, places: list[tuple[Any, Any]], random: Random) -> None:
    old = holder[key]
    act = random.randrange(7)
    if act == 0:
        del holder[key]
    elif act == 1 and isinstance(holder, list):
        holder.insert(key, old)
    elif act == 1:
        holder[random.choice(("extra", str(key).upper(), ""))] = old
    elif act == 2:
        other, name = random.choice(places)
        holder[key] = json.loads(json.dumps(other[name]))
    elif act == 3 and isinstance(old, int):
        holder[key] = random.choice((old + 1, old - 1, -old, old * 2**32, str(old), float(old)))
    elif act == 4 and isinstance(old, str) and old:
        at = random.randrange(len(old))
        holder[key] = old[:at] + random.choice((old[at:][::-1], "", "0", "f", "é")) + old[at + random.randrange(2) :]
    else:
        holder[key] = random.choice(VALUES)


def _word(data: bytes, random: Random) -> bytes:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _bytes(data, [data], random)
    words = text.split(" ")
    lines = text.split("\n")
    if random.random() < 0.4 and len(lines) > 1:
        at = random.randrange(len(lines))
        lines[at : at + 1] = random.choice(([], [lines[at]] * 2, [random.choice(lines)], [""]))
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    at = random.randrange(len(words))
    words[at] = random.choice((*NUMBERS, *WORDS, random.choice(words)))
    return " ".join(words).encode("utf-8", "surrogatepass")
