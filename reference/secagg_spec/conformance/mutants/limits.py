"""Planted bugs of the kit itself: limits that nobody looks at, files that end it, and what is kept for ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from hypothesis.internal.conjecture import data

from secagg_spec.conformance import files
from secagg_spec.conformance.connection import DirectConnection
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import AdapterBroken, Answer, Request, UsageError, parse_answer

Function = Callable[..., Any]
_WIRE = "secagg_spec.conformance.wire"
_RUNNER = "secagg_spec.conformance.runner"
_TESTS = "tests/conformance/test_limits.py"
_NAMED = f"{_TESTS}::test_what_is_beyond_a_limit_is_named"


def _verdict(line: bytes) -> str:
    try:
        return parse_answer(line, 1).kind
    except AdapterBroken as broken:
        return broken.verdict


@mutant(
    "infinite-number-is-read",
    "CNF-50",
    "acceptance: a number beyond binary64 is read as an infinity",
    f"{_WIRE}:_refuse_infinite",
    lambda: _verdict(b'{"id": 1, "result": {"value": 1e999}}\n'),
    reach=_NAMED,
    kind="acceptance",
    source="clause in part",
)
def _infinite(right: Function) -> Function:
    return lambda number: None


@mutant(
    "depth-is-not-counted",
    "CNF-50",
    "acceptance: an answer is nested as deep as the reader of JSON goes",
    f"{_WIRE}:too_deep",
    lambda: _verdict(b'{"id": 1, "result": {"value": ' + b"[" * 200 + b"]" * 200 + b"}}\n"),
    reach=_NAMED,
    kind="acceptance",
    source="clause left out",
)
def _deep(right: Function) -> Function:
    return lambda value, most=0: False


@mutant(
    "last-of-two-members-counts",
    "CNF-51",
    "acceptance: of two members of one name the last is taken",
    f"{_WIRE}:_refuse_twice",
    lambda: _verdict(b'{"id": 2, "unsupported": true, "id": 1}\n'),
    reach=f"{_TESTS}::test_an_object_with_a_member_twice_is_refused",
    kind="acceptance",
    source="silent repair",
)
def _twice(right: Function) -> Function:
    return lambda names: None


@mutant(
    "byte-order-mark-is-skipped",
    "CNF-52",
    "acceptance: a byte order mark before an answer is passed over",
    f"{_WIRE}:_load",
    lambda: _verdict(b'\xef\xbb\xbf{"id": 1, "unsupported": true}\n'),
    reach=f"{_TESTS}::test_a_carriage_return_is_white_space_and_a_byte_order_mark_is_not",
    kind="acceptance",
    source="silent repair",
)
def _marked(right: Function) -> Function:
    return lambda line: right(line.removeprefix(b"\xef\xbb\xbf"))


def _told() -> object:
    """Return what is told of a file that is no JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(b"\xff")
        try:
            return files.read_json(path)
        except (UsageError, ValueError) as error:
            return type(error).__name__


@mutant(
    "file-ends-the-kit",
    "CNF-53",
    "refusal: a file that is no JSON ends the command with a traceback",
    "secagg_spec.conformance.files:read_json",
    _told,
    reach=f"{_TESTS}::test_a_file_that_cannot_be_used_is_told_in_one_line",
    kind="refusal",
    source="clause left out",
)
def _traceback(right: Function) -> Function:
    return lambda path, otherwise="": json.loads(path.read_text(encoding="utf-8"))


def _leak() -> str:
    """Return the verdict on an answer that no fresh process gives."""
    runner, connection = import_module(_RUNNER), DirectConnection(reference.build().answer)
    exchange = SimpleNamespace(request=Request("echo", {"data": 1}), answer=Answer("result", value={"data": 2}))
    failure = runner.Failure("wrong_value", "echo gave something else", (exchange,))
    return str(runner._confirm(connection, runner.begin(connection), failure).verdict)


@mutant(
    "no-fresh-process",
    "CNF-54",
    "refusal: a failure is reported without a look at whether it comes again",
    f"{_RUNNER}:_confirm",
    _leak,
    reach="tests/conformance/test_runner.py::test_a_failure_that_no_fresh_process_gives_is_inconsistent",
    kind="refusal",
    source="clause left out",
)
def _unconfirmed(right: Function) -> Function:
    return lambda connection, caps, failure: failure


def _left() -> int:
    """Return how much is left of a note about a strategy."""
    data.STRUCTURAL_COVERAGE_CACHE[0] = data.StructuralCoverageTag(0)
    import_module(_RUNNER)._forget()
    return len(data.STRUCTURAL_COVERAGE_CACHE)


@mutant(
    "strategies-are-remembered",
    "CNF-55",
    "form: what is noted of strategies is kept for as long as the process lives",
    f"{_RUNNER}:_forget",
    _left,
    reach=f"{_TESTS}::test_what_is_kept_does_not_grow_with_the_cases",
    kind="form",
    source="kept too long",
)
def _remembered(right: Function) -> Function:
    return lambda: None
