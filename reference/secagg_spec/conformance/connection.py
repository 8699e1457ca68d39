"""Connections to adapters: a process behind a pipe, or a Python object in this process."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import signal
import statistics
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from secagg_spec.conformance.wire import AdapterBroken, AdapterUnusable, Answer, Request, parse_answer

_NOISE_LINES = 50
_HELLO_SECONDS = 60.0
_STDERR_BYTES = 65_536
_PIPE_BYTES = 4096  # a write of more than this can block while the adapter does not read


class Connection(Protocol):
    """What the runner needs of an adapter."""

    def ask(self, request: Request) -> Answer:
        """Return the answer; raise `AdapterBroken` when there is none."""
        ...

    def restart(self) -> None:
        """Begin again with a fresh adapter."""
        ...

    def close(self) -> None:
        """End the adapter."""
        ...

    def expect_hang(self, hanging: bool) -> None:
        """Say whether a hang was seen and is being shrunk, so that time-outs may be short."""
        ...


class ProcessConnection:
    """An adapter in a process of its own, started from a command line.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    timeout : float
        Seconds allowed for an answer; a microsecond for each byte of the request is added.
    start_timeout : float
        Seconds allowed for the answer to `hello`, in which libraries are loaded.
    """

    def __init__(self, command: Sequence[str], timeout: float = 10.0, start_timeout: float = _HELLO_SECONDS) -> None:
        self.command = list(command)
        self.timeout = timeout
        self.start_timeout = start_timeout
        self._times: deque[float] = deque(maxlen=50)
        self._hanging = False
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0

    def ask(self, request: Request) -> Answer:
        """Send one request and wait for its answer (ADP-01)."""
        process = self._running()
        self._number += 1
        line = request.line(self._number).encode()
        hello = request.op == "hello"
        start = time.monotonic()
        self._send(process, line)
        for _ in range(_NOISE_LINES if hello else 1):
            text = self._receive(self.start_timeout if hello else self._allowance(len(line)))
            if not hello or text.lstrip().startswith("{"):
                break
        self._times.append(time.monotonic() - start)
        return parse_answer(text, self._number)

    def restart(self) -> None:
        """End the process; the next request starts another."""
        self.close()

    def close(self) -> None:
        """End the process and whatever it started."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            _kill(process)
        self._join(process)

    def expect_hang(self, hanging: bool) -> None:
        """Shorten time-outs to twenty times the median answer, and at least 0.1 s, while a hang is being shrunk."""
        self._hanging = hanging

    def stderr_tail(self) -> str:
        """Return the end of what the adapter wrote to standard error."""
        return b"".join(self._stderr).decode(errors="replace")[-2000:]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = self._start()
            self._number = 0
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            reason = error.strerror or error
            raise AdapterUnusable(f"cannot start {shlex.join(self.command)}: {reason}") from None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr: deque[bytes] = deque(maxlen=64)
        self._threads = [
            threading.Thread(target=_read_lines, args=(process, self._lines), daemon=True),
            threading.Thread(target=_drain, args=(process, self._stderr), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return process

    def _send(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        assert process.stdin is not None
        watchdog = threading.Timer(self._allowance(len(line)), _kill, (process,)) if len(line) > _PIPE_BYTES else None
        try:
            if watchdog:
                watchdog.start()
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            self._crashed(process)
        finally:
            if watchdog:
                watchdog.cancel()

    def _receive(self, seconds: float) -> str:
        assert self._process is not None
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            _kill(self._process)
            self.close()
            raise AdapterBroken("timeout", f"no answer within {seconds:.1f} s") from None
        if line is None:
            self._crashed(self._process)
        assert line is not None
        return line.decode(errors="replace")

    def _crashed(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1.0)
        status = process.returncode
        self.close()
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        tail = self.stderr_tail().strip().splitlines()
        raise AdapterBroken("crash", f"the adapter ended without an answer ({how}){': ' + tail[-1] if tail else ''}")

    def _allowance(self, size: int) -> float:
        if self._hanging and self._times:
            return max(0.1, 20 * statistics.median(self._times))
        return self.timeout + 1e-6 * size

    def _join(self, process: subprocess.Popen[bytes]) -> None:
        for thread in self._threads:
            thread.join(timeout=1.0)
        for stream in (process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()


class DirectConnection:
    """An adapter that is a function from request to answer, in this process; JSON on both sides all the same."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._answer = answer

    def ask(self, request: Request) -> Answer:
        """Return the answer."""
        return parse_answer(json.dumps(self._answer(json.loads(request.line(1)))), 1)

    def restart(self) -> None:
        """Do nothing: there is no process."""

    def close(self) -> None:
        """Do nothing: there is no process."""

    def expect_hang(self, hanging: bool) -> None:
        """Do nothing: a function cannot be interrupted."""


def _read_lines(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(OSError, ValueError):
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _drain(process: subprocess.Popen[bytes], kept: deque[bytes]) -> None:
    assert process.stderr is not None
    with contextlib.suppress(OSError, ValueError):
        for line in process.stderr:
            kept.append(line[-_STDERR_BYTES:])


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
