"""Signals that ask a command to end, raised as exceptions that are not lost."""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

_LATER = 0.01
"""Seconds after which a signal is sent again, so that the callback in which it was dropped can end."""
_PATIENCE = 0.1
"""Seconds after which a signal that was sent again and not raised is sent once more."""
_unheeded = set[object]()
"""The tokens of what was raised and not heeded yet, nor sent again."""
_sent = set[object]()
"""The tokens of what was sent again and not raised yet."""


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end. Handled like a keyboard interrupt, to close connections on the way out.

    Python drops what a handler raises while it runs a callback, such as one of the garbage collector. An exception
    that is destroyed before anybody heeded its signal sends the signal again a moment later.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self._token = object()
        _unheeded.add(self._token)

    def __del__(self) -> None:
        """Send the signal again. One that comes in here makes an exception that is dropped in turn."""
        self.again()

    def again(self) -> None:
        """Send the signal again a moment later, if nobody heeded it."""
        if self._token in _unheeded:
            _thread.start_new_thread(_send, (self.number, self._token))


def heed() -> None:
    """Say that all signals until now were handled, so that none of them is sent again."""
    _unheeded.clear()
    _sent.clear()


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, SIGHUP and SIGINT inside this context, where they are not ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
    given = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in given.items() if handler not in (signal.SIG_IGN, None)}
    dropped = sys.unraisablehook
    for number in before:
        signal.signal(number, _terminate)
    sys.unraisablehook = lambda met: met.exc_value.again() if isinstance(met.exc_value, Terminated) else dropped(met)
    try:
        yield
    finally:
        heed()
        sys.unraisablehook = dropped
        for number, handler in before.items():
            signal.signal(number, handler)


def _send(number: int, token: object) -> None:
    """Send a signal to the main thread, in place of all that were dropped, until it is raised.

    A call that is about to wait when the signal comes waits on, and the signal is raised only after it.
    """
    time.sleep(_LATER)
    if token not in _unheeded:
        return
    _unheeded.clear()
    _sent.add(token)
    main = threading.main_thread().ident
    while token in _sent:
        if hasattr(signal, "pthread_kill") and main is not None:
            signal.pthread_kill(main, number)
        else:
            signal.raise_signal(number)
        time.sleep(_PATIENCE)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    _sent.clear()
    raise Terminated(number)
