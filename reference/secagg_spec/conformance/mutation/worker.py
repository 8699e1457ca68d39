"""Run tests on mutants, each in a fork of one process that has loaded pytest and the library.

``python -m secagg_spec.conformance.mutation.worker`` reads lines with the name of a mutant and a test, and answers each
with the exit status of pytest. Test modules and their imports must see the mutant, so the process preloads only what
`pytest_plugin` loads. Third-party libraries contain no mutants, so those that many tests load are preloaded too.
"""

from __future__ import annotations

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
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(f"{status(*line.split())}\n")
        sys.stdout.flush()


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
