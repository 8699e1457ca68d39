"""Interrupts from the keyboard, which reach every process of a command at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Block interrupts of this thread until the context ends.

    Processes that start in the context inherit the block, so only the process that started them handles an interrupt,
    and it ends them. The first start of Python's resource tracker, which comes before the first process that Python
    spawns, removes the block; start it before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
