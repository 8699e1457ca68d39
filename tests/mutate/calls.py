"""Which tests run which functions of the package: an edit is tried with those tests only, the nearest ones first.

What a test calls is recorded once for each state of the source and of the tests. That run is the control as well: it
makes no edit, so that it must pass.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

from secagg_spec.conformance.mutants import catalogue as mutants
from tests.mutate.drawn import PACKAGE, PACKAGES, Drawn

ROOT = Path(__file__).parents[2]
LEFT_OUT = tuple(f"tests/{name}" for name in ("site", "mutate", "hidden", "benchmarks", "proofs", "stories"))
"""Tests of what the source does not compute, that run it in other processes, or that take minutes."""
ARGUMENTS = (
    "-c",
    str(ROOT / "pyproject.toml"),
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--assert=plain",
    "-m",
    "not slow",
)
FOLDERS = (str(ROOT / "tests"), *(f"--ignore={ROOT / name}" for name in LEFT_OUT))


class ControlError(Exception):
    """Tests fail without any edit."""


@dataclass(frozen=True)
class Calls:
    """Which functions are called, as ``file:name``, by each test, or in the making of each file of tests.

    `seconds` is how long each of these took, while it was recorded.
    """

    tests: Mapping[str, frozenset[str]]
    seconds: Mapping[str, float]

    def running(self, edit: Drawn) -> list[str]:
        """Return the tests that run the function of an edit: of its module first, of its package, and the rest."""
        wanted = f"{edit.edit.file}:{edit.edit.scope}"
        files = {id for id, called in self.tests.items() if "::" not in id and wanted in called}
        found = [id for id, called in self.tests.items() if "::" in id and (wanted in called or _file(id) in files)]
        stem, folder = Path(edit.edit.file).stem, f"tests/{edit.package}/"
        return sorted(found, key=lambda name: (not name.startswith(folder), stem not in Path(_file(name)).name))

    def limit(self, tests: Collection[str]) -> int:
        """Return how many seconds some tests may take: much more than they took, so that only what hangs is ended."""
        return 60 + int(3 * sum(self.seconds.get(id, 0) for id in {*tests, *map(_file, tests)}))

    def within(self, tests: Collection[str], seconds: float) -> list[str]:
        """Return as many of some tests as take so long together, the shortest first."""
        chosen = sorted(tests, key=lambda name: self.seconds.get(name, 0))
        spent = accumulate(self.seconds.get(id, 0) for id in chosen)
        return [id for id, sum_ in zip(chosen, spent, strict=True) if sum_ <= seconds]


def near(edit: Drawn, tests: Sequence[str]) -> list[str]:
    """Return those tests that stand in the folder of the package."""
    return [id for id in tests if id.startswith(f"tests/{edit.package}/")]


def passes(tests: Collection[str]) -> bool:
    """Run some tests, without their parameters in the name, and return whether none of them fails.

    Raises
    ------
    ControlError
        Pytest ran none of them.
    """
    files = list(dict.fromkeys(map(_file, tests)))
    if not files:
        return True
    code = pytest.main([*ARGUMENTS, *(str(ROOT / file) for file in files)], [_Only(tests)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        raise ControlError(f"pytest ended with {code!r}")
    return code == pytest.ExitCode.OK


def recorded(folder: Path) -> Calls:
    """Return what all fast tests call; a file in the folder keeps it for this state of the source and the tests.

    Raises
    ------
    ControlError
        A test fails.
    """
    path = folder / f"calls-{_state()}.json"
    if not path.exists():
        _apart(path)
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Calls({id: frozenset(called) for id, called in kept["tests"].items()}, kept["seconds"])


def _apart(path: Path) -> None:
    """Run all tests in a fork, which alone imports them, and write what they call."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _write(path)
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise ControlError("tests fail without any edit: mend them first")


def _write(path: Path) -> int:
    os.environ["HYPOTHESIS_PROFILE"] = "quick"
    recorder = _Recorder()
    if pytest.main([*ARGUMENTS, *FOLDERS], [recorder]) != pytest.ExitCode.OK:
        return 1
    found = {"tests": {id: sorted(called) for id, called in recorder.found.items()}, "seconds": recorder.seconds}
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps(found), encoding="utf-8")
    aside.replace(path)
    return 0


def _state() -> str:
    """Return a digest of all that decides what a test calls."""
    found = sha256()
    for top in (PACKAGE, ROOT / "tests", ROOT / "spec"):
        for path in sorted(path for path in top.glob("**/*") if path.suffix in (".py", ".json", ".toml")):
            if _relative(path).startswith(LEFT_OUT):
                continue
            found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _file(id: str) -> str:
    return id.partition("::")[0]


class _Recorder:
    """A plugin of pytest that records which functions of the five packages run, and in which test."""

    def __init__(self) -> None:
        self.found: dict[str, set[str]] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def _recording(self, id: str) -> Iterator[None]:
        mutants.forget()
        outer, called = sys.gettrace(), self.found.setdefault(id, set())
        codes = set[CodeType]()

        def trace(frame: FrameType, event: str, argument: Any) -> None:
            codes.add(frame.f_code)

        began = time.monotonic()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(outer)
            self.seconds[id] += time.monotonic() - began
            called.update(filter(None, map(self._named, codes)))

    @staticmethod
    @cache
    def _named(code: CodeType) -> str:
        """Return the file and the function outside of all others; nothing for code of other packages."""
        path = Path(code.co_filename)
        if not path.is_relative_to(PACKAGE) or path.relative_to(PACKAGE).parts[0] not in PACKAGES:
            return ""
        return f"{path.relative_to(PACKAGE).as_posix()}:{code.co_qualname.partition('.<locals>')[0]}"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        with self._recording(_relative(collector.path)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        if fixturedef.scope == "function":
            return (yield)
        with self._recording(_relative(request._pyfuncitem.path)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        with self._recording(_plain(item)):
            return (yield)


class _Only:
    """A plugin of pytest that takes some tests alone, in their order, and shrinks no failure."""

    def __init__(self, tests: Collection[str]) -> None:
        self._order = {id: at for at, id in enumerate(tests)}

    @pytest.hookimpl
    def pytest_configure(self) -> None:
        settings.register_profile("mutated", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutated")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if _plain(item) in self._order), key=lambda item: self._order[_plain(item)]
        )


def _plain(item: pytest.Item) -> str:
    """Return the file and the name of a test, without its parameters."""
    return f"{_relative(item.path)}::{item.nodeid.partition('::')[2].partition('[')[0]}"


def _relative(path: Path) -> str:
    return os.path.relpath(path, ROOT)
