"""Planted bugs of starters: what `init` writes over or leaves behind, and what looks written or passed and is not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from secagg_spec.conformance import init
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.wire import UsageError

Function = Callable[..., Any]
_INIT = "secagg_spec.conformance.init"
_TESTS = "tests/conformance/test_init.py::"


def _left(files: Mapping[str, bytes], *, before: str = "") -> dict[str, bytes]:
    """Return what a folder holds after files were written into it, one of which may have been there before."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if before:
            (folder / before).write_bytes(b"mine")
        with suppress(UsageError):
            init.write_all(folder, {Path(path): content for path, content in files.items()})
        return {path.name: path.read_bytes() for path in folder.iterdir()}


@mutant(
    "starter-around-what-is-there",
    "CNF-41",
    "a file that is there is kept, and the rest of the starter is written around it, which may not fit it",
    f"{_INIT}:write_all",
    lambda: _left({"a": b"1", "b": b"2"}, before="a"),
    f"{_TESTS}test_nothing_is_written_over",
    kind="acceptance",
    source="silent repair",
)
def _around(right: Function) -> Function:
    def wrong(folder: Path, files: Mapping[Path, bytes]) -> None:
        right(folder, {place: content for place, content in files.items() if not (folder / place).exists()})

    return wrong


@mutant(
    "starter-over-what-is-there",
    "CNF-41",
    "a file that is there is replaced, so that an adapter that somebody has written is lost",
    f"{_INIT}:write_all",
    lambda: _left({"a": b"1"}, before="a"),
    f"{_TESTS}test_nothing_is_written_over",
    kind="acceptance",
    source="clause left out",
)
def _over(right: Function) -> Function:
    def wrong(folder: Path, files: Mapping[Path, bytes]) -> None:
        for place in files:
            (folder / place).unlink(missing_ok=True)
        right(folder, files)

    return wrong


@mutant(
    "half-a-starter-is-left",
    "CNF-41",
    "when a file cannot be written, those before it stay, and the next attempt stumbles over them",
    f"{_INIT}:_write",
    lambda: _left({"a": b"1", "b" * 300: b"2"}),
    f"{_TESTS}test_files_that_are_written_before_one_fails_are_gone_again",
    kind="acceptance",
    source="trace of a refusal",
)
def _half(right: Function) -> Function:
    return lambda path, content, undo: right(path, content, ExitStack())


@mutant(
    "unwritten-operation-refuses",
    "CNF-42",
    "an operation that is not written yet refuses, so that every check of a refusal passes",
    f"{_INIT}:Starter.files",
    lambda: init.starter("python").files()[Path("adapter.py")],
    f"{_TESTS}test_an_operation_that_is_not_written_breaks_and_says_so",
    kind="refusal",
    source="other rule: a refusal for want of an answer",
)
def _refuses(right: Function) -> Function:
    def wrong(self: init.Starter) -> dict[Path, bytes]:
        files: dict[Path, bytes] = right(self)
        return {path: text.replace(b"NotImplementedError(", b'Reject("other", ') for path, text in files.items()}

    return wrong


def _job_with(name: str, effect: str, before: str, after: str) -> None:
    @mutant(
        name,
        "CNF-43",
        effect,
        f"{_INIT}:Starter._job",
        lambda: init.starter("python")._job(),
        f"{_TESTS}test_the_job_installs_builds_judges_and_keeps_the_reports",
        kind="acceptance",
        source="clause left out",
    )
    def build(right: Function) -> Function:
        return lambda self: right(self).replace(before, after)


_job_with(
    "job-goes-on",
    "the job is green whatever the run found",
    "      - name: conform\n",
    "      - name: conform\n        continue-on-error: true\n",
)
_job_with("job-keeps-what-is-right", "the reports of a run that fails are not kept", "        if: always()\n", "")
