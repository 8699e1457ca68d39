"""Run tests on mutants, each in a fork of one process that has loaded pytest and the library.

``python -m secagg_spec.conformance.mutation.worker`` reads lines with the name of a mutant and a test, and answers each
with the exit status of pytest. A mutant replaces the code of a function, which modules that are loaded already see, so
the process collects the tests of a module once, before it forks for each mutant. With ``--bare`` it loads only what
`pytest_plugin` loads and third-party libraries, and each fork runs pytest from the start: then modules that call the
function while they are imported see the mutant too.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

import pytest

from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation import pytest_plugin

ARGUMENTS = ("-q", "-x", "-p", "no:cacheprovider", "--assert=plain")
"""Arguments of pytest for a run on a mutant."""
_BARE = "-p", pytest_plugin.__name__, "--mutant"
_BROKEN = 70
_LIBRARIES = (
    *("cryptography.hazmat.primitives.ciphers.aead", "flint", "hypothesis.extra.numpy", "jsonschema", "numpy.typing"),
    *("_pytest.monkeypatch", "_pytest.capture", "_pytest.tmpdir", "_pytest.assertion", "_pytest.fixtures"),
)


def main() -> None:
    """Answer each line of the standard input."""
    mutants.load()
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            import_module(name)
    if sys.argv[1:] == ["--bare"]:
        gc.freeze()
        _serve(lambda name, test: pytest.main([*ARGUMENTS, *_BARE, name, test]))
    else:
        pytest.main([*ARGUMENTS, "-s"], [_Collected()])


def _serve(run: Callable[[str, str], int], prepare: Callable[[str], object] = bool) -> None:
    """Answer each line with what a test on a mutant gives in a fork; what prepares a test runs before the fork."""
    for line in sys.stdin:
        name, test = line.split()
        prepare(test)
        sys.stdout.write(f"{_forked(run, name, test)}\n")
        sys.stdout.flush()


class _Collected:
    """A plugin of pytest that answers the standard input in place of a run; each module is collected once."""

    def __init__(self) -> None:
        self._items: dict[str, list[pytest.Item]] = {}
        self._modules = set[str]()

    def pytest_configure(self) -> None:
        """Let tests that are imported from now on stop at the first failure."""
        pytest_plugin.hurry()

    def pytest_collection(self) -> bool:
        """Collect nothing before a test is asked for."""
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer the lines."""
        _serve(lambda name, test: self._run(name, self._items.get(test, [])), lambda test: self._collect(session, test))
        return True

    def _collect(self, session: pytest.Session, test: str) -> None:
        """Collect all tests of the module of a test."""
        module = test.partition("::")[0]
        if module in self._modules:
            return
        self._modules.add(module)
        with contextlib.suppress(pytest.UsageError):
            for item in session.perform_collect([module]):
                self._items.setdefault(item.nodeid.partition("[")[0], []).append(item)
        gc.freeze()

    def _run(self, name: str, items: list[pytest.Item]) -> int:
        """Run tests on a mutant up to the first failure, and return the exit status."""
        with mutants.planted(name):
            for item in items:
                item.session.shouldfail = False
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if item.session.testsfailed:
                    return int(pytest.ExitCode.TESTS_FAILED)
        return int(pytest.ExitCode.OK if items else pytest.ExitCode.NO_TESTS_COLLECTED)


def _forked(run: Callable[[str, str], int], name: str, test: str) -> int:
    """Return the exit status of a test on a mutant."""
    child = os.fork()
    if not child:
        _alone(run, name, test)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _alone(run: Callable[[str, str], int], name: str, test: str) -> NoReturn:
    """Run a test silently in a new session, and end this process."""
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        os._exit(run(name, test))
    finally:
        os._exit(_BROKEN)


if __name__ == "__main__":
    main()
