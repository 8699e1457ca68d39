"""JSON Schemas of the files in ``spec/``, and the messages for a file that breaks one. Uses the library jsonschema."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

Where: TypeAlias = tuple[str | int, ...]
_RIGHT = set[bytes]()
"""Digests of valid documents, each with its schema: a file is read more often than it changes."""


def load(path: Path) -> dict[str, Any]:
    """Return the schema in a file."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def faults(document: object, schema: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    """Yield where and how a document breaks a schema, in the order of the schema's keywords.

    No integer of the document has more than `documents.MOST_DIGITS` digits.
    """
    digest = hashlib.sha256(repr((document, schema)).encode()).digest()
    if digest in _RIGHT:
        return
    fault = None
    for fault in broken(document, validators()(schema)):
        yield fault
    if fault is None:
        _RIGHT.add(digest)


@cache
def validators() -> type[Draft202012Validator]:
    """Return the class of validators whose patterns are those of JSON Schema: ``$`` is the end of a text.

    In Python's expressions it is the place before a last line feed, too. Lists of many items of several types are
    searched for equal ones in little time.
    """
    from jsonschema import Draft202012Validator, ValidationError  # noqa: PLC0415 - most commands judge no file
    from jsonschema.validators import extend  # noqa: PLC0415

    def pattern(_: Any, expression: str, text: object, schema: object) -> Iterator[ValidationError]:
        if isinstance(text, str) and not _expression(expression).search(text):
            yield ValidationError(f"{text!r} does not match {expression!r}")

    def unique(_: Any, wanted: bool, items: object, schema: object) -> Iterator[ValidationError]:
        if wanted and isinstance(items, list) and len(set(map(_key, items))) < len(items):
            yield ValidationError(f"{shown(items)} has non-unique elements")

    found: type[Draft202012Validator] = extend(Draft202012Validator, {"pattern": pattern, "uniqueItems": unique})
    return found


def _key(value: Any) -> Hashable:
    """Return what two values have in common exactly when they are the same for JSON Schema, where 1.0 is 1."""
    if isinstance(value, list):
        return (list, tuple(map(_key, value)))
    if isinstance(value, dict):
        return (dict, frozenset((name, _key(member)) for name, member in value.items()))
    return (isinstance(value, bool), value)


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the expression of Python for a pattern, in which no dollar sign is escaped or stands in brackets."""
    return re.compile(pattern.replace("$", r"\Z"))


def broken(document: object, validator: Draft202012Validator) -> Iterator[tuple[Where, str]]:
    """Yield what `faults` yields, for the schema of a validator; nothing is remembered."""
    for error in validator.iter_errors(document):
        yield (*error.absolute_path, *_named(error)), _said(error)


def _named(error: ValidationError) -> Where:
    """Return the member that a fault of an object concerns, where the path of the fault does not name it."""
    if error.validator == "required":
        return (next(name for name in error.validator_value if error.message.startswith(repr(name))),)
    if error.validator == "additionalProperties":
        return (next(name for name in error.instance if name not in error.schema["properties"]),)
    return ()


def _said(error: ValidationError) -> str:
    phrase = _PHRASES.get(str(error.validator))
    return phrase(error) if phrase else " ".join(error.message.split())


def _pattern(error: ValidationError) -> str:
    if error.validator_value == r"\S":
        return "must not be empty"
    return f"{shown(error.instance)} does not fit the pattern {error.validator_value}"


def _count(error: ValidationError) -> str:
    least, most = error.schema.get("minProperties", 0), error.schema.get("maxProperties", "any number")
    return f"has {len(error.instance)} fields; at least {least} and at most {most} are allowed"


def _one_of(error: ValidationError) -> str:
    """Say which members exclude each other, or what is wrong under the choice that fits best."""
    if all("required" in choice for choice in error.validator_value):
        names = ", ".join(choice["required"][0] for choice in error.validator_value)
        return f"must have exactly one of the members {names}"
    if not error.context:
        return f"fits several forms, and is {shown(error.instance)}"
    mistyped = {one.schema_path[0] for one in error.context if one.validator == "type"}
    errors = [one for one in error.context if one.schema_path[0] not in mistyped] or error.context
    closest = max(errors, key=lambda one: len(one.absolute_path))
    if not closest.relative_path:
        faults = Counter(one.schema_path[0] for one in errors)
        errors = [one for one in errors if faults[one.schema_path[0]] == min(faults.values())]
        if len(errors) > 1:
            return " or ".join(dict.fromkeys(map(_said, errors)))
        closest = errors[0]
    inside = "".join(f"[{part!r}]" for part in (*closest.relative_path, *_named(closest)))
    return f"{inside} {_said(closest)}" if inside else _said(closest)


_PHRASES: Mapping[str, Callable[[ValidationError], str]] = {
    "type": lambda error: f"must be of type {error.validator_value}, and is {shown(error.instance)}",
    "enum": lambda error: f"{shown(error.instance)} is not one of {', '.join(map(str, error.validator_value))}",
    "const": lambda error: f"must be {error.validator_value}, and is {shown(error.instance)}",
    "pattern": _pattern,
    "required": lambda error: "is missing",
    "additionalProperties": lambda error: (
        f"there is no such field; the fields are {', '.join(error.schema['properties']) or 'none'}"
    ),
    "minProperties": _count,
    "maxProperties": _count,
    "minimum": lambda error: f"{shown(error.instance)} is less than the minimum of {error.validator_value}",
    "maximum": lambda error: f"{shown(error.instance)} is greater than the maximum of {error.validator_value}",
    "minItems": lambda error: "must not be empty",
    "not": lambda error: "must not be given here",
    "oneOf": _one_of,
    "minLength": lambda error: "must not be empty",
    "uniqueItems": lambda error: "names something twice",
}


def shown(value: object) -> str:
    """Return a value in one short line."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"a long {type(value).__name__}"
    return text if len(text) <= 40 else text[:39] + "…"
