"""Shares of cells, and what is shown of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from secagg_spec.experiments import progress
from secagg_spec.experiments.progress import Progress, Share


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_share_is_written_once_a_second_and_removed(tmp_path: Path, clock: list[float]) -> None:
    path = tmp_path / "x.share"
    share = Share(path)
    share(0.1)
    assert not path.exists()
    clock[0] = 1.0
    share(0.25)
    share(0.5)
    assert progress.total([path, tmp_path / "absent"]) == 0.25
    share.end()
    share.end()
    assert not path.exists()


def test_a_share_that_cannot_be_written_stops_nothing(tmp_path: Path, clock: list[float]) -> None:
    share = Share(tmp_path / "absent" / "x.share")
    clock[0] = 9.0
    share(0.5)
    share.end()


def test_what_is_no_share_counts_as_none(tmp_path: Path) -> None:
    paths = []
    for at, text in enumerate(("", "x", "7", "-1", "0.5")):
        paths.append(tmp_path / str(at))
        paths[-1].write_text(text, encoding="utf-8")
    assert progress.total(paths) == 1.5


def test_lines_come_every_ten_seconds_and_later_less_often(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    shares = [0.5]
    shown = Progress("name")
    shown.begin(4, 1, lambda: shares[0])
    for now in range(2, 401, 2):
        clock[0] = now
        shown._show()
    shown.end()
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "name: 1 of 4 cells are kept from before"
    assert lines[0] == "name: 1.5 of 4 cells, about 50 s left"
    assert lines[1] == "name: 1.5 of 4 cells, about 100 s left".replace("100 s", "2 min")
    assert 15 < len(lines) < 30


def test_nothing_is_estimated_before_anything_is_done(capsys: pytest.CaptureFixture[str], clock: list[float]) -> None:
    shown = Progress("name")
    shown.begin(4, 0, lambda: 0.0)
    clock[0] = 10.0
    shown._show()
    shown.end()
    assert capsys.readouterr().err == "name: 0.0 of 4 cells\n"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (5999, "100 min"), (6000, "1.7 h")]
)
def test_times_are_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert progress.duration(seconds) == said
