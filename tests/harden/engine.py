"""Tries spoiled inputs on a surface, and keeps each defect once with the shortest input that shows it."""

from __future__ import annotations

import gc
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from tests.harden.spoil import spoiled
from tests.harden.surfaces import Surface

SECONDS = 5
"""What one input may take at most."""
MOST = 4096
"""Bytes of a spoiled input at most, beyond those of its seed."""


class TooLongError(Exception):
    """An input took longer than `SECONDS`."""


@dataclass
class Tally:
    """What came of the inputs of a surface: how many were read and refused, and the defects by where they arise."""

    surface: str
    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    slowest_input: bytes = b""
    defects: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """How many inputs were tried."""
        return self.read + self.refused

    def take(self, read: Callable[[], object], data: bytes, errors: tuple[type[Exception], ...]) -> None:
        """Try one input, which `data` shows: it is read, or refused by one of `errors` with a sentence."""
        began = time.process_time()
        try:
            with bounded():
                read()
        except errors as error:
            self.refused += 1
            self._check_said(error, data)
        except Exception as error:
            self.refused += 1
            self.keep(place(error), f"{type(error).__name__}: {error}"[:300], data)
        else:
            self.read += 1
        took = time.process_time() - began
        if took > self.slowest:
            self.slowest, self.slowest_input = took, data

    def _check_said(self, error: Exception, data: bytes) -> None:
        said = str(error)
        if not isinstance(error, MemoryError) and (not said.strip() or len(said) > 2000):
            self.keep(place(error), f"{type(error).__name__} says {len(said)} characters", data)

    def keep(self, where: str, said: str, data: bytes) -> None:
        """Keep a defect, if the input is the shortest that shows it."""
        if where not in self.defects or len(data) < len(self.defects[where][1]):
            self.defects[where] = (said, data)


def place(error: BaseException) -> str:
    """Return the innermost line of the project that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "secagg_spec" in frame.filename or "harden" in frame.filename]
    last = (own or frames)[-1]
    return f"{last.filename.rsplit('secagg_spec/', 1)[-1]}:{last.lineno} {type(error).__name__}"


@contextmanager
def bounded(seconds: int | None = None) -> Iterator[None]:
    """Raise `TooLongError` when the block takes longer than some seconds, by default `SECONDS`."""
    seconds = SECONDS if seconds is None else seconds

    def ring(*_: Any) -> None:
        raise TooLongError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tried(surface: Surface, inputs: int, seed: int) -> Tally:
    """Return what came of so many spoiled inputs; the same seed tries the same ones."""
    tally, random, seeds = Tally(surface.name), Random(f"{surface.name} {seed}"), surface.seeds()
    assert seeds, f"{surface.name}: there is no right input"
    for seed_of in seeds:
        surface.read(seed_of)
    gc.collect()
    for at in range(inputs):
        data = spoiled(seeds[at % len(seeds)], seeds, random)
        tally.take(partial(surface.read, data), data, surface.errors)
    return tally
