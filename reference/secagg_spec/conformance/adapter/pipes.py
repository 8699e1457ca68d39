"""The pipes of an adapter's process: threads with bounded buffers read the two outputs, and `write` fills the input."""

import contextlib
import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import IO

from secagg_spec.conformance.sdk.secagg_adapter import MAX_LINE

TOO_LONG = b""
_WAITING = 2  # lines that are buffered; an adapter that writes more blocks on its pipe
_CHUNK = 65_536
_TAIL_BYTES = 65_536
_POLL_SECONDS = 0.1
_POSIX = os.name == "posix"


class _Reader(threading.Thread):
    """Read one output of a process until it is stopped."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._stopped = threading.Event()


class Lines(_Reader):
    """Read the lines of standard output, each of at most `MAX_LINE` bytes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process)
        self._queue: queue.Queue[bytes | None] = queue.Queue(maxsize=_WAITING)

    def get(self, seconds: float) -> bytes | None:
        """Return the next line with its line feed, or None at the end; raise `queue.Empty` after `seconds`.

        A line that is too long is returned as empty bytes; the last line may lack its line feed.
        """
        return self._queue.get(timeout=max(0.0, seconds))

    def stop(self) -> None:
        """End the thread, even if lines are waiting."""
        self._stopped.set()

    def run(self) -> None:
        """Read until the end."""
        assert self._process.stdout is not None
        for line in _split(_chunks(self._process, self._process.stdout, self._stopped)):
            self._put(line)
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(line, timeout=_POLL_SECONDS)
                return


class Tail(_Reader):
    """Read standard error and keep the end of it."""

    _kept = b""

    def stop(self) -> None:
        """End the thread, after a moment in which it can read the rest."""
        self.join(timeout=2 * _POLL_SECONDS)
        self._stopped.set()

    def run(self) -> None:
        """Read until the end."""
        assert self._process.stderr is not None
        for chunk in _chunks(self._process, self._process.stderr, self._stopped):
            self._kept = (self._kept + chunk)[-_TAIL_BYTES:]

    def text(self) -> str:
        """Return the end of the text that was written."""
        return self._kept.decode(errors="replace")


def write(pipe: IO[bytes], data: bytes, deadline: float) -> bool:
    """Write data to a pipe; return False if the pipe does not accept all of it before the deadline.

    On systems other than POSIX, there is no way to wait for a pipe, and the call blocks.
    """
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(pipe.fileno(), left) :]
        except BlockingIOError:
            seconds = deadline - time.monotonic()
            if seconds <= 0 or not select.select([], [pipe], [], seconds)[1]:
                return False
    return True


def prepare(pipe: IO[bytes]) -> None:
    """Make the pipe non-blocking, so that `write` can give up."""
    if _POSIX:
        os.set_blocking(pipe.fileno(), False)


def _chunks(process: subprocess.Popen[bytes], pipe: IO[bytes], stopped: threading.Event) -> Iterator[bytes]:
    """Yield the output of a pipe until the pipe is closed, or until nothing arrives and the process has ended.

    A child process that the adapter left behind can keep the pipe open indefinitely.
    """
    ended = False
    with contextlib.suppress(OSError, ValueError):
        while not stopped.is_set():
            if _POSIX and not select.select([pipe], [], [], _POLL_SECONDS)[0]:
                if ended:
                    return
                ended = process.poll() is not None
                continue
            chunk = os.read(pipe.fileno(), _CHUNK)
            if not chunk:
                return
            yield chunk


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines with their line feeds; end after a line that is too long."""
    buffer = bytearray()
    for chunk in chunks:
        searched = len(buffer)
        buffer += chunk
        while (at := buffer.find(b"\n", searched, MAX_LINE)) >= 0:
            yield bytes(buffer[: at + 1])
            del buffer[: at + 1]
            searched = 0
        if len(buffer) > MAX_LINE:
            yield TOO_LONG
            return
    if buffer:
        yield bytes(buffer)
