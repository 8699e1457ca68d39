"""What tests of the kit share."""

from __future__ import annotations

import pytest

from secagg_spec.conformance.running import runner


@pytest.fixture
def unshrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """End each check at its first failing case: for tests that ask which checks fail, and not for the smallest case.

    To make a case small takes up to a hundred times the requests of finding it; test_runner.py and test_seen.py judge
    how small it becomes.
    """
    monkeypatch.setattr(runner, "_MOST_SHRINKING", 0)
