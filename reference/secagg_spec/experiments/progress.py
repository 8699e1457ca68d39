"""Shows the progress of a run, and how long the rest will take.

A cell runs in another process, so it writes its finished share to a file. On a terminal a bar moves once a second;
elsewhere lines are printed, less often the longer a run takes. Both go to standard error.

Source: spec/experiments.md, section 7.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from secagg_spec.system import write_whole

_SECONDS = 1.0
_LINE_SECONDS = 10.0
_RARER = 10
_BAR = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f} of {total} cells [{elapsed}<{remaining}]"


class Share:
    """Writes the finished share of a cell to a file, at most once a second; ignores a file that cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = time.monotonic()

    def __call__(self, share: float) -> None:
        """Write a share in [0, 1]."""
        if time.monotonic() - self._last >= _SECONDS:
            self._last = time.monotonic()
            with contextlib.suppress(OSError):
                write_whole(self.path, f"{share:.4f}")

    def end(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def total(paths: Sequence[Path]) -> float:
    """Return the sum of the shares in those files that exist."""
    return sum(map(_share, paths))


def _share(path: Path) -> float:
    try:
        return min(1.0, max(0.0, float(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError):
        return 0.0


class Progress:
    """Shows the progress of a run; `done` counts the finished cells."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cells = self.kept = self.done = 0
        self._under_way: Callable[[], float] = float
        self._bar: Any = None
        self._ended = threading.Event()
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        self._start = self._last = time.monotonic()

    def begin(self, cells: int, kept: int, under_way: Callable[[], float]) -> None:
        """Show that a run begins; `under_way` returns the sum of the shares of the unfinished cells."""
        self.cells, self.kept, self.done, self._under_way = cells, kept, kept, under_way
        if kept:
            self._say(f"{kept} of {cells} cells are kept from before")
        if kept == cells:
            return
        if sys.stderr.isatty():
            from tqdm import tqdm  # noqa: PLC0415

            options = {"initial": kept, "dynamic_ncols": True, "leave": False, "bar_format": _BAR}
            self._bar = tqdm(total=cells, desc=self.name, file=sys.stderr, mininterval=0, **options)
        self._start = self._last = time.monotonic()
        self._ticking.start()

    def finished(self) -> None:
        """Show that one more cell is finished."""
        self.done += 1
        self._show()

    def damaged(self, path: Path) -> None:
        """Say that a stored cell is run again."""
        self._say(f"{path} is damaged: its cell is run again")

    def end(self) -> None:
        """Remove the bar."""
        self._ended.set()
        if self._ticking.is_alive():
            self._ticking.join()
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _tick(self) -> None:
        while not self._ended.wait(_SECONDS):
            self._show()

    def _show(self) -> None:
        through = min(float(self.cells), self.done + self._under_way())
        bar = self._bar
        if bar is not None:
            bar.n = max(bar.n, through)
            bar.refresh()
        elif self.done < self.cells and self._is_due():
            self._last = time.monotonic()
            left = (self._last - self._start) / max(through - self.kept, 1e-9) * (self.cells - through)
            estimate = f", about {duration(left)} left" if through > self.kept else ""
            self._say(f"{through:.1f} of {self.cells} cells{estimate}")

    def _is_due(self) -> bool:
        """Return whether a line is due: every ten seconds, later every tenth of the elapsed time."""
        now = time.monotonic()
        return now - self._last >= max(_LINE_SECONDS, (self._last - self._start) / _RARER)

    def _say(self, what: str) -> None:
        print(f"{self.name}: {what}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time in the unit that fits."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
