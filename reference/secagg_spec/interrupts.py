"""Interrupts from the keyboard, which reach every process of a command at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Block interrupts of this thread until the context ends.

    Processes that start in the context inherit the block, so only the process that started them handles an interrupt,
    and it ends them. Python's resource tracker, which comes before the first process that Python spawns, removes the
    block when it starts; so it starts before the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415 - few commands start processes

    with ignored():
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ignored() -> Iterator[None]:
    """Ignore interrupts; programs started in this context ignore them from their first moment on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
