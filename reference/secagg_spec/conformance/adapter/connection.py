"""Connections to adapters: a process behind pipes, or a Python function in this process."""

import contextlib
import json
import os
import queue
import re
import shlex
import signal
import statistics
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from secagg_spec.conformance.adapter import pipes, wire
from secagg_spec.conformance.adapter.capabilities import HELLO
from secagg_spec.conformance.adapter.limits import START_SECONDS
from secagg_spec.conformance.adapter.plain import clip
from secagg_spec.conformance.sdk.secagg_adapter import MAX_LINE
from secagg_spec.crypto import prg

_NOISE_LINES = 50
_END_SECONDS = 0.5
_KILLED_SECONDS = 5.0
_TAIL_LINES = 4
_TAIL_CHARACTERS = 300
_TOO_LONG = f"a line of the answer is longer than {MAX_LINE:,} bytes"


_SHORT = " (smaller cases get less time)"
WAITED = re.compile(rf"within [0-9.e-]+ s({re.escape(_SHORT)})?")
"""The time that was waited, in the message of a time-out."""


class Connection(Protocol):
    """The interface that the runner needs of an adapter."""

    def ask(self, request: wire.Request) -> wire.Answer:
        """Return the answer; raise `AdapterBroken` if there is none."""
        ...

    def ask_raw(self, line: bytes, id: int | None) -> wire.Answer:
        """Send a line unchanged and return the answer with this `id`; raise `AdapterBroken` if there is none."""
        ...

    def restart(self) -> None:
        """Start over with a fresh adapter."""
        ...

    def close(self) -> None:
        """End the adapter."""
        ...

    def expect_hang(self, hanging: bool) -> None:
        """Say whether a hang is being shrunk, in which case time-outs may be short."""
        ...


class ProcessConnection:
    """An adapter in its own process, started from a command line.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    timeout : float
        Seconds allowed for an answer, plus a microsecond for each byte of the request.
    start_timeout : float
        Seconds allowed for the answer to `hello`, which includes the time to load libraries.
    """

    def __init__(self, command: Sequence[str], timeout: float = 10.0, start_timeout: float = START_SECONDS) -> None:
        self.command = list(command)
        self.timeout = timeout
        self.start_timeout = start_timeout
        self._times: deque[float] = deque(maxlen=50)
        self._hanging = False
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self.declared = ""
        """The declaration of the first process, as text; set it to require what another connection saw."""

    def ask(self, request: wire.Request) -> wire.Answer:
        """Send one request and wait for its answer (ADP-01); if the process has ended, start it again with `hello`.

        Raises
        ------
        AdapterBroken
            There is no answer; the process has ended unless it is certainly in step.
        AdapterUnusable
            The adapter cannot be started, or a restarted adapter does not answer `hello`.
        """
        if self._process is None and request.op != HELLO.op:
            self._greet()
        try:
            return self._exchange(request)
        except wire.AdapterBroken as broken:
            if broken.out_of_step:
                self.close()
            raise

    def ask_raw(self, line: bytes, id: int | None) -> wire.Answer:
        """Send a line unchanged, followed by a line feed, and return the answer with this `id` (ADP-10, ADP-11)."""
        if self._process is None:
            self._greet()
        try:
            return wire.parse_answer(self._answered(line + b"\n"), id)
        except wire.AdapterBroken as broken:
            if broken.out_of_step:
                self.close()
            raise

    def restart(self) -> None:
        """End the process; the next request starts a new one."""
        self.close()

    def close(self) -> None:
        """End the process and all processes that it started."""
        process = self._process
        if process is None:
            return
        _end_input(process, _END_SECONDS)
        _kill(process)
        self._process = None  # only now: a signal that interrupts the wait closes it again
        self._join(process)

    def finish(self, seconds: float) -> bool:
        """Close the input, and return whether the process exits on its own within some seconds."""
        process = self._process
        if process is None:
            return True
        _end_input(process, seconds)
        ended = process.poll() is not None
        self.close()
        return ended

    def expect_hang(self, hanging: bool) -> None:
        """While a hang is being shrunk, shorten time-outs to 20 times the median answer time, but at least 0.1 s."""
        self._hanging = hanging

    def _greet(self) -> None:
        try:
            self._exchange(HELLO)
        except wire.AdapterBroken as broken:
            self.close()
            raise wire.AdapterUnusable(f"no answer to hello ({broken.verdict}): {broken}") from None

    def _exchange(self, request: wire.Request) -> wire.Answer:
        if self._process is None:
            self._process = self._start()
            self._number = 0
        self._number += 1
        line = request.line(self._number).encode()
        answer = wire.parse_answer(self._answered(line, request.op == HELLO.op), self._number)
        if request.op == HELLO.op and self._number == 1:
            self._refuse_another(answer)
        return answer

    def _refuse_another(self, answer: wire.Answer) -> None:
        """Refuse a first `hello` whose declaration differs from that of an earlier process."""
        found = declaration(answer.value)
        self.declared = self.declared or found
        if found != self.declared:
            self.close()
            raise wire.AdapterUnusable("its hello does not declare what that of an earlier process did")

    def _answered(self, line: bytes, hello: bool = False) -> bytes:
        """Send a line and return the line that answers it."""
        assert self._process is not None
        start = time.monotonic()
        self._allowed = self.start_timeout if hello else self._allowance(len(line))
        self._deadline = start + self._allowed
        self._send(self._process, line)
        text = self._after_noise() if hello and self._number == 1 else self._receive()
        if not hello:
            self._times.append(time.monotonic() - start)
        return text

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                self.command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise wire.AdapterUnusable(f"cannot start {shlex.join(self.command)}: {reason}") from None
        assert process.stdin is not None
        pipes.prepare(process.stdin)
        self._lines, self._stderr = pipes.Lines(process), pipes.Tail(process)
        self._lines.start()
        self._stderr.start()
        return process

    def _send(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        assert process.stdin is not None
        watchdog = None if os.name == "posix" else threading.Timer(self._allowed, _kill, (process,))
        try:
            if watchdog:
                watchdog.start()
            taken = pipes.write(process.stdin, line, self._deadline)
        except OSError:
            raise self._ended(process) from None
        finally:
            if watchdog:
                watchdog.cancel()
        if not taken:
            raise self._given_up("timeout", f"the request was not read {self._within()}")

    def _receive(self) -> bytes:
        assert self._process is not None
        try:
            line = self._lines.get(self._deadline - time.monotonic())
        except queue.Empty:
            raise self._given_up("timeout", f"no answer {self._within()}") from None
        if line is None:
            raise self._ended(self._process)
        if line == pipes.TOO_LONG:
            raise self._given_up("protocol", _TOO_LONG)
        if not line.endswith(b"\n"):
            raise self._ended(self._process, f"in the middle of a line, {wire.quoted(line)}")
        return line

    def _after_noise(self) -> bytes:
        """Return the first line of a process that is JSON, since libraries print banners when they load."""
        noise = b""
        for _ in range(_NOISE_LINES + 1):
            try:
                line = self._receive()
            except wire.AdapterBroken as broken:
                said = f"; before, it wrote a line that is not JSON: {wire.quoted(noise)}" if noise else ""
                raise wire.AdapterBroken(broken.verdict, f"{broken}{said}") from None
            if wire.is_json(line):
                return line
            noise = line
        last = wire.quoted(noise)
        said = f"more than {_NOISE_LINES} lines that are not JSON before the answer to hello, the last {last}"
        raise self._given_up("protocol", said)

    def _given_up(self, verdict: wire.BrokenVerdict, message: str) -> wire.AdapterBroken:
        """Kill the process and return the error to raise."""
        assert self._process is not None
        _kill(self._process)
        self.close()
        return wire.AdapterBroken(verdict, message + self._said())

    def _ended(self, process: subprocess.Popen[bytes], where: str = "without an answer") -> wire.AdapterBroken:
        """Return the error to raise when the process will send nothing more."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_END_SECONDS)
        status = process.returncode
        if status is None:
            _kill(process)
        self.close()
        verdict: wire.BrokenVerdict = "protocol" if where.startswith("in") and not status else "crash"
        if status is None:
            how = f"closed its input or output {where}, and ran on"
            return wire.AdapterBroken(verdict, f"the adapter {how}{self._said()}")
        return wire.AdapterBroken(verdict, f"the adapter ended {where} ({_status(status)}){self._said()}")

    def _said(self) -> str:
        """Return the last lines of standard error, for a message."""
        lines = [line.strip() for line in self._stderr.text().splitlines() if line.strip()]
        tail = " | ".join(lines[-_TAIL_LINES:])
        return f"; its standard error ends: {tail[-_TAIL_CHARACTERS:]}" if tail else ""

    def _allowance(self, size: int) -> float:
        whole = self.timeout + 1e-6 * size
        if self._hanging and self._times:
            return min(whole, max(0.1, 20 * statistics.median(self._times)))
        return whole

    def _within(self) -> str:
        """Return the time that was waited, for a message (`WAITED`)."""
        waited = format(self._allowed, ".1f" if self._allowed >= 1 else ".2g")
        return f"within {waited} s{_SHORT if self._hanging and self._allowed < self.timeout else ''}"

    def _join(self, process: subprocess.Popen[bytes]) -> None:
        self._lines.stop()
        self._stderr.stop()
        for thread, stream in ((self._lines, process.stdout), (self._stderr, process.stderr)):
            thread.join(timeout=1.0)
            if stream and not thread.is_alive():
                with contextlib.suppress(OSError):
                    stream.close()


class DirectConnection:
    """An adapter that is a function from request to answer, in this process; both still pass through JSON.

    A function that raises has crashed, and one that returns no JSON breaks the protocol.

    The function uses the generator of the text, regardless of the generator that the kit uses (`generators.borrowed`).
    """

    def __init__(self, answer: Callable[[Any], dict[str, Any]]) -> None:
        self._answer = answer

    def ask(self, request: wire.Request) -> wire.Answer:
        """Return the answer."""
        return wire.parse_answer(self._line(json.loads(request.line(1))), 1)

    def ask_raw(self, line: bytes, id: int | None) -> wire.Answer:
        """Return the answer to a line; if the line is not JSON, the function gets ``None``."""
        try:
            value = json.loads(line.decode(), parse_constant=_no_constant)
        except ValueError:
            value = None
        return wire.parse_answer(self._line(value), id)

    def _line(self, request: Any) -> bytes:
        try:
            with prg.generator(None):
                answer = self._answer(request)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as CancelledError, and that of pytest.fail
            said = clip(f"the function raised {type(error).__name__}: {error}", _TAIL_CHARACTERS)
            raise wire.AdapterBroken("crash", said) from error
        try:
            line = json.dumps(answer).encode() + b"\n"
        except RecursionError as error:
            deep = f"the function returned what is nested deeper than {wire.DEEPEST} levels"
            raise wire.AdapterBroken("protocol", deep) from error
        except (TypeError, ValueError) as error:
            raise wire.AdapterBroken("protocol", f"the function returned what is not JSON: {error}") from error
        if len(line) > MAX_LINE:
            raise wire.AdapterBroken("protocol", _TOO_LONG)
        return line

    def restart(self) -> None:
        """Do nothing: there is no process."""

    def close(self) -> None:
        """Do nothing: there is no process."""

    def expect_hang(self, hanging: bool) -> None:
        """Do nothing: a function cannot be interrupted."""


def declaration(hello: Mapping[str, Any]) -> str:
    """Return the declaration in a `hello`, without the names of the implementation, as text for comparison."""
    meant = ("protocol", "randomness", "operations", "policy", "reject_map")
    return json.dumps({name: _in_order(hello.get(name)) for name in meant}, sort_keys=True)


def _in_order(value: Any) -> Any:
    """Return a value with its lists in one order: sets and values in another order are the same ones."""
    if isinstance(value, dict):
        return {name: _in_order(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted((_in_order(inner) for inner in value), key=lambda inner: json.dumps(inner, sort_keys=True))
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _end_input(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Close the input of a process, and wait some seconds for its end."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and, on POSIX, its process group: all its children, unless they left the group."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_KILLED_SECONDS)


def _status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"signal {-status}, {signal.Signals(-status).name}"
    return f"signal {-status}"
