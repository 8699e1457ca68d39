"""What a terminal is shown beside plain text: colours, and a line of progress that is taken away at the end."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import TextIO, TypeVar

_T = TypeVar("_T")
WIDTH = 80
"""The columns of a line where there is no terminal."""
_STYLES = {"good": 32, "known": 33, "bad": 31, "strong": 1, "faint": 2}
_PATIENCE = 5.0
"""Seconds after which the time that is left is estimated."""


def colours(stream: TextIO) -> bool:
    """Return whether a stream is shown in colours: it is a terminal, and ``NO_COLOR`` is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, style: str) -> str:
    """Return text in a style for standard output; plain if that shows no colours."""
    if not text or not colours(sys.stdout):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def width(most: int = 120) -> int:
    """Return the columns of a line: those of the terminal, at most so many, or `WIDTH` where there is none."""
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, most) if sys.stdout.isatty() else WIDTH


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question whether the closest known name is meant, in any case, and a space; empty if none is close."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1)
    return f"did you mean {names[close[0]]}? " if close else ""


class Progress:
    """One line on standard error that says what is done and how long the rest may take; nothing without a terminal."""

    def __init__(self) -> None:
        self._there = sys.stderr.isatty()
        self._start = time.monotonic()

    def __call__(self, what: str, share: float) -> None:
        """Show what is being done, and which share of all is done, from 0 to 1."""
        if self._there:
            line = f"{share:4.0%}  {self._left(share)}{what}"
            print(f"\r\x1b[2K{line[: max(width() - 1, 20)]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._there:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)

    def follow(self, items: Sequence[_T], name: Callable[[_T], str] = str) -> Generator[_T, None, None]:
        """Yield items, and show which one is at work and how many are done; take the line away at the end."""
        try:
            for done, item in enumerate(items):
                self(name(item), done / len(items))
                yield item
        finally:
            self.end()

    def _left(self, share: float) -> str:
        gone = time.monotonic() - self._start
        if gone < _PATIENCE or share <= 0:
            return ""
        left = gone * (1 - share) / share
        return f"about {f'{left:.0f} s' if left < 100 else f'{left / 60:.0f} min'} left  "


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what is being done while it is done; nothing else may be printed meanwhile."""
    progress = Progress()
    progress(f"{what} ...", 0)
    try:
        yield
    finally:
        progress.end()


def load(name: str, what: str = "") -> ModuleType:
    """Return a module. No garbage is collected while it loads, and what is there then is never looked at for it again.

    Parameters
    ----------
    name : str
        The module.
    what : str
        What takes so long to load that a terminal says it; empty for nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with working(f"loading {what}") if what else nullcontext():
            known = name in sys.modules
            module = import_module(name)
            if not known:
                gc.freeze()
            return module
    finally:
        if collecting:
            gc.enable()
