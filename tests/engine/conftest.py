"""These tests need Flower: `make engine` runs them in an environment that has it; elsewhere they are not collected."""

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("flwr") else ["test_*.py"]


class Clock:
    """A clock that goes on when somebody sleeps, and not otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds that were slept."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Sleep, in no time."""
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let a workflow wait in no time for replies that never come."""
    clock = Clock()
    monkeypatch.setattr("secagg_spec.flower.workflow.time", clock)
    return clock


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the journals of clients in the folder of a test."""
    monkeypatch.setenv("SECAGG_SPEC_HOME", str(tmp_path / "home"))
