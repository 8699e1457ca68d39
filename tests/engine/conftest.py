"""These tests need Flower: `make engine` runs them in an environment that has it; elsewhere they are not collected."""

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("flwr") else ["test_*.py"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the journals of clients in the folder of a test."""
    monkeypatch.setenv("SECAGG_SPEC_HOME", str(tmp_path / "home"))
