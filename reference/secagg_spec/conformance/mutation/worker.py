"""Run tests on mutants, each in a fork of one process that has loaded pytest and the library.

``python -m secagg_spec.conformance.mutation.worker`` reads lines with the name of a mutant and a test, and answers each
with the exit status of pytest. A mutant replaces the code of a function, which modules that are loaded already see, so
the process loads the module of each test before it forks. With ``--bare`` it loads only what `pytest_plugin` loads and
third-party libraries: then modules that call the function while they are imported see the mutant too.
"""

import contextlib
import gc
import os
import sys
from importlib import import_module
from typing import NoReturn

import pytest

from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation import pytest_plugin

ARGUMENTS = ("-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "-p", pytest_plugin.__name__)
"""Arguments of pytest for a run on a mutant."""
_BROKEN = 70
_loaded: set[str] = set()
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
    bare = sys.argv[1:] == ["--bare"]
    gc.freeze()
    for line in sys.stdin:
        name, test = line.split()
        if not bare:
            _load(test)
        sys.stdout.write(f"{status(name, test)}\n")
        sys.stdout.flush()


def _load(test: str) -> None:
    """Import the module of a test, in the profile in which it runs on a mutant."""
    path = test.partition("::")[0]
    if path in _loaded:
        return
    _loaded.add(path)
    with contextlib.suppress(Exception, pytest.skip.Exception):
        import_module(f"{path.partition('/')[0]}.conftest")
        pytest_plugin.hurry()
        import_module(path.removesuffix(".py").replace("/", "."))
    gc.freeze()


def status(name: str, test: str) -> int:
    """Return the exit status of pytest for a test on a mutant."""
    child = os.fork()
    if not child:
        _become_pytest([*ARGUMENTS, "--mutant", name, test])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become_pytest(arguments: list[str]) -> NoReturn:
    """Run pytest silently in a new session, and end this process."""
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        os._exit(pytest.main(arguments))
    finally:
        os._exit(_BROKEN)


if __name__ == "__main__":
    main()
