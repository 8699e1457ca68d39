"""Stored failures: write, read, refuse and replay a failing case."""

import contextlib
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import schemas, system
from secagg_spec.conformance.adapter import files
from secagg_spec.conformance.adapter.capabilities import Capabilities, greet
from secagg_spec.conformance.adapter.connection import Connection
from secagg_spec.conformance.adapter.generators import NoStream
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Request
from secagg_spec.conformance.checks.base import NO_CASE, Caller, Check, CheckFailed, Declined
from secagg_spec.conformance.running import suite
from secagg_spec.errors import UsageError

SCHEMA_NAME = "secagg-spec-repro/"
SCHEMA = f"{SCHEMA_NAME}1"
ENDS = (".jsonl", ".expected.json")
"""The ends of the names of a stored failure: of its requests, and of what is expected."""
_REQUESTS, _EXPECTED = ENDS


def load(path: Path) -> dict[str, Any]:
    """Return a stored failure.

    Raises
    ------
    UsageError
        The file has another name than a run gives it, is not JSON, is of another version, lacks a member, names an
        unknown check, or is not of one case with that of the requests; or one of both is absent.
    """
    asked, beside = both(path)
    lines = _lines(asked)
    stored = files.with_schema(beside, files.read_json(beside), SCHEMA, "replays")
    missing = [name for name in ("check", "message", "draws", "seal") if name not in stored]
    if missing:
        raise UsageError(f"{beside}: the member {missing[0]!r} is missing")
    if not isinstance(stored["check"], str) or stored["check"] not in suite.everything():
        raise UsageError(f"{beside}: there is no check {schemas.shown(stored['check'])} in this kit")
    if stored["seal"] != seal(lines, stored):
        raise UsageError(f"{asked} and {beside.name} are not of one case: one of them was changed since the run")
    if not isinstance(stored.setdefault("answers_seen", []), list):
        raise UsageError(f"{beside}: 'answers_seen' is not a list of answers as a run writes them")
    try:
        stored["draws"] = [restored(value) for value in _listed(stored["draws"])]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UsageError(f"{beside}: 'draws' is not a list of drawn values as a run writes them") from None
    return stored


def both(path: Path) -> tuple[Path, Path]:
    """Return the file of the requests of a stored failure, and the one of what is expected, given one of them.

    Raises
    ------
    UsageError
        The path is a folder, or names neither.
    """
    for end in (_REQUESTS, _EXPECTED):
        if path.name.endswith(end) and not path.is_dir():
            stem = path.name.removesuffix(end)
            return path.with_name(f"{stem}{_REQUESTS}"), path.with_name(f"{stem}{_EXPECTED}")
    folder = "is a folder; " if path.is_dir() else ""
    raise UsageError(f"{path}: {folder}a stored failure is a {_REQUESTS} file, or its {_EXPECTED}")


def seal(lines: bytes, expected: Mapping[str, Any]) -> str:
    """Return the SHA-256 that ties a case's requests to what is expected, to reveal any change of either (CNF-74).

    All members of ``expected`` count but its ``seal``.
    """
    meant = {name: value for name, value in expected.items() if name != "seal"}
    text = json.dumps(meant, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(hashlib.sha256(lines).digest() + text).hexdigest()


def _lines(path: Path) -> bytes:
    """Return the requests of a case."""
    try:
        return system.regular(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


class _Passed(Exception):
    """The stored case is over without a failure: its check would go on with values that were never drawn."""


def judge(connection: Connection, check: str, draws: Sequence[Any], least: int = 1) -> CheckFailed | None:
    """Judge a case that is given by the values its check drew; return the failure, or None if the case passes.

    A check that draws while it asks drew nothing more once it had failed. Where the values end after the `least`
    requests of the stored case, all of which were answered rightly, the case passes.

    Raises
    ------
    AdapterUnusable
        The adapter cannot be started, or no longer declares the operations that the check needs.
    Declined
        No answer decides the case, or nothing was asked, as where it lies outside the declared ranges.
    UsageError
        The check draws values other than the stored ones.
    """
    caps = greet(connection.ask)
    chosen = suite.find(check)
    if not caps.offers(*chosen.operations):
        raise AdapterUnusable("the adapter does not declare the operations of this check")
    if obstacle := chosen.obstacle(caps):
        raise Declined(obstacle)
    left, caller, failed = iter(draws), Caller(connection, caps, shuffles=not chosen.fixed), None

    def draw(strategy: object) -> Any:
        for value in left:
            return value
        if caller.asked >= max(1, least):
            raise _Passed
        raise UsageError(f"the stored case does not fit {check} of this kit: it has too few drawn values")

    try:
        with contextlib.suppress(_Passed):
            chosen.judge(draw, caller)
    except CheckFailed as failure:
        failed = failure
    except Declined as declined:
        raise Declined(str(declined) or suite.OUTSIDE) from None
    except NoStream:
        raise Declined(NO_CASE) from None
    except (AdapterUnusable, UsageError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"the stored case does not fit {check} of this kit: {shown(what, 200)}") from None
    if not caller.asked:
        raise Declined(NO_CASE)
    if _undecided(chosen, caller, caps, failed):
        raise Declined(suite.OUTSIDE)
    return failed


def _undecided(chosen: Check, caller: Caller, caps: Capabilities, failed: CheckFailed | None) -> bool:
    """Return whether the last answer declines a request outside the declared ranges, which decides nothing (ADP-06).

    A run draws no such request, but in the checks of ADP-06 itself, where it may be declined.
    """
    if not caller.transcript:  # a check that asks much keeps what shows a fault
        return False
    asked, answer = caller.transcript[-1].request, caller.transcript[-1].answer
    kind = "" if answer is None else answer.kind
    verdicts = ("rejected_valid", *(["wrong_reason"] if kind == "reject" else []))
    refused = failed is not None and failed.verdict in verdicts
    declined = failed is None and kind == "unsupported" and "ADP-06" not in chosen.clauses
    return (refused or declined) and caps.offers(asked.op) and not inside(caps, asked)


def inside(caps: Capabilities, request: Request) -> bool:
    """Return whether the numbers of a request lie inside the declared ranges of its operation."""
    try:
        return caps.declares(request.op, request.params)
    except (TypeError, ValueError):
        return False


def plain(value: Any) -> Any:
    """Convert a drawn value for JSON: floating-point numbers and bytes become text, and tuples become lists."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float):
        return {"float": value.hex() if math.isfinite(value) else repr(value)}
    if isinstance(value, Mapping):
        return {"map": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def restored(value: Any) -> Any:
    """Invert `plain`: return the drawn value."""
    if isinstance(value, list):
        return [restored(item) for item in value]
    if isinstance(value, dict) and "bytes" in value:
        return bytes.fromhex(value["bytes"])
    if isinstance(value, dict) and "float" in value:
        return float.fromhex(value["float"])
    if isinstance(value, dict):
        return {restored(key): restored(item) for key, item in value["map"]}
    return value
