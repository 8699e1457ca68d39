"""A plugin of pytest that applies a mutant for a whole run: ``pytest -p THIS --mutant NAME TEST``.

The test that kills the mutant must then fail (exit status 1). The run stops at the first failure without shrinking it.
"""

from contextlib import ExitStack
from typing import Any

from hypothesis import Phase, settings

from secagg_spec.conformance.mutants import catalogue as mutants


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    parser.addoption("--mutant", metavar="NAME", required=True, help="the mutant to test")


def pytest_configure(config: Any) -> None:
    """Apply the mutant before any test module is imported, and undo it at the end."""
    hurry()
    stack = ExitStack()
    stack.enter_context(mutants.planted(config.getoption("--mutant")))
    config.add_cleanup(stack.close)


def hurry() -> None:
    """Let Hypothesis stop at the first failure; tests that are imported from now on heed it."""
    settings.register_profile("mutant", settings.default, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutant")
