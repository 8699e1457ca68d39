"""Hypothesis profiles: `HYPOTHESIS_PROFILE` is ``quick``, ``default`` or ``thorough``.

The first two draw the same cases in every run, so that a run is green for everyone or for nobody, and ``make whole``
draws more of them; ``thorough`` draws new ones each time.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.quick import QUICK, WHOLE

EXAMPLES = {"quick": 4, "default": 100 if WHOLE else 25, "thorough": 1000}
_PATIENCE = 15 * 60
"""Seconds after which a test counts as hanging."""
_EACH = 60
"""``make quick`` takes one of so many cases of a parametrized test."""
_DATABASE = Path(__file__).parents[1] / ".hypothesis" / "examples"

for _name, _count in EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_count,
        deadline=None,
        print_blob=True,
        derandomize=_name != "thorough",
        database=DirectoryBasedExampleDatabase(_DATABASE) if _name == "thorough" else None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Heed interrupts, and let the programs that tests start heed them, where this run was started to ignore them.

    A shell without job control starts what runs in its background so; what a handler was set for begins as usual in
    programs that are started from here.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import modules whose tests are all marked slow, where slow tests are left out: it takes seconds."""
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make in ``make quick`` no case of a parametrized test but the first and each sixtieth after it."""
    yield
    if QUICK:
        metafunc._calls[:] = metafunc._calls[::_EACH]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while modules and tests are collected: all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave modules and collected tests, which stay to the end, out of every later collection of garbage."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """End the process of a test that takes 15 minutes: pytest-xdist names the test, and goes on with the others."""
    hurried = "PYTEST_XDIST_WORKER" in os.environ and not signal.getitimer(signal.ITIMER_REAL)[0]
    if hurried:
        signal.alarm(_PATIENCE)
    try:
        return (yield)
    finally:
        if hurried:
            signal.alarm(0)
