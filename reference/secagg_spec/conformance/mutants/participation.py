"""Planted bugs of the reading of logs, which its tests find."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.errors import ParameterError
from secagg_spec.selection import logs
from secagg_spec.selection.participation import Roster

Function = Callable[..., Any]
_TABLE = "secagg_spec.selection.participation:Table"
_TESTS = "tests/selection/test_participation.py::"


def _reading(text: str, users: int = 4) -> Callable[[], object]:
    """Return a function that reads a log of some text, and says how it ends."""

    def witness() -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            path.write_text(text, encoding="utf-8")
            try:
                return [sums.sets.tolist() for sums in logs.read(path, Roster(users)).segments]
            except ParameterError as error:
                return str(error)

    return witness


def _nothing(*arguments: object) -> None:
    """Check nothing."""


@mutant(
    "missing-rounds-are-rounds-without-a-sum",
    "MRA-24",
    "privacy: the round that is not in the log may be the one that tells a model",
    f"{_TABLE}._check_gaps",
    _reading("round,users\n0,1\n2,1\n"),
    _TESTS + "test_a_log_is_refused_exactly_when_a_round_between_is_missing",
    kind="privacy",
    source="clause left out",
)
def _gaps(right: Function) -> Function:
    return _nothing


@mutant(
    "missing-segments-are-segments-without-a-sum",
    "MRA-24",
    "privacy: the segment that is not in the log may be the one that tells a model",
    f"{_TABLE}._check_segments",
    _reading("round,segment,users\n0,0,1 2\n0,1,1 2\n1,1,1 3\n"),
    _TESTS + "test_all_segments_have_to_be_in_all_rounds",
    kind="privacy",
    source="clause left out",
)
def _segments(right: Function) -> Function:
    return _nothing


@mutant(
    "two-lines-of-a-round-are-one-set",
    "MRA-25",
    "privacy: two sums over few users pass for one over many",
    f"{_TABLE}._check_empty",
    _reading("round,users\n0,0 1\n0,2 3\n"),
    _TESTS + "test_lines_that_repeat_are_refused",
    kind="privacy",
    source="clause left out",
)
def _lines(right: Function) -> Function:
    return _nothing


@mutant(
    "users-named-twice-count-once",
    "MRA-25",
    "privacy: a log that contradicts itself is audited as if it did not",
    f"{_TABLE}._check_users",
    _reading("round,user\n0,0\n0,0\n"),
    _TESTS + "test_lines_that_repeat_are_refused",
    kind="privacy",
    source="clause left out",
)
def _twins(right: Function) -> Function:
    return _nothing


@mutant(
    "unknown-users-are-left-out",
    "MRA-26",
    "privacy: a sum seems to be over fewer users than it is, or the roster is wrong and nobody notices",
    "secagg_spec.selection.logs:_Seats.numbers",
    _reading("round,users\n0,0 7\n"),
    _TESTS + "test_a_log_is_refused_exactly_when_a_user_is_not_on_the_roster",
    kind="privacy",
    source="silent repair",
)
def _unknown(right: Function) -> Function:
    def numbers(self: Any, names: Any, at: Any) -> Any:
        found = []
        for name in names:
            try:
                found += right(self, [name], at)
            except ParameterError:
                continue
        return found

    return numbers
