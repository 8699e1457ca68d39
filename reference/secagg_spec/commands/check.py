"""The command ``secagg-spec check``: can an adapter be judged at all, and if not, what to do about it."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any

from secagg_spec.conformance.adapter.capabilities import HELLO, Capabilities, greet, shake_hands
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import counted, for_encoding, shown
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, Answer, Request
from secagg_spec.conformance.cases import drawn_rounds
from secagg_spec.conformance.cases.requests import can_request
from secagg_spec.conformance.cases.strategies import decimal, refuse_impossible
from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks import REGISTRY, Check, playing
from secagg_spec.conformance.checks.base import Caller
from secagg_spec.conformance.running.runner import Failure, Settings, run_check
from secagg_spec.conformance.sdk.secagg_adapter import DRAWING, OPERATIONS, WIDE
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.mixed import Difference
from secagg_spec.protocols.steps import SERVER

OK, FAIL, SKIP = "OK", "FAIL", "skip"
_REQUESTS = 40
"""The total number of valid requests; each operation gets at least one."""
_MEBIBYTE = 2**20
_PAUSE_SECONDS = 0.02
_END_SECONDS = 2.0
_AT_END_SECONDS = 5.0
_SHOWN = 5
_READ = "read a whole line, answer it, and flush standard output after each answer"
_DECLARE = (
    "declare the operations that the implementation has; a session needs session.new, session.step and session.free"
)
_ONE_LINE = "write the answer as one line of JSON, without a byte order mark, and all else to standard error"
_NOT_JSON = "is not JSON"
_HINTS = (
    ("not JSON: '{", "the answer is not one whole JSON object: write it with a JSON library, on one line"),
    (_NOT_JSON, "something is printed to standard output after hello: print to standard error instead"),
    ("is not UTF-8", "something is printed to standard output after hello: print to standard error instead"),
    ("is a JSON object; this line is not", _ONE_LINE),
    ("does not have its id", "copy the id of the request into its answer"),
    ("meets another answer", "write exactly one line for each request"),
    ("and ran on", "keep standard input and standard output open until the input ends"),
    ("line feed", "end every answer with one line feed"),
    ("an answer has", "an answer has the id and one of result, reject, error, unsupported, and nothing else"),
    ("reject code", "use one of the codes of spec/adapter.md, section 5"),
)
_HINTS_BY_VERDICT = {
    "timeout": _READ,
    "crash": "catch what the implementation raises and answer with an error; the end of standard error says where",
    "error": "the implementation failed: fix it, or declare the ranges in which it works",
    "inconsistent": "an answer must not depend on earlier requests: keep no state between requests except sessions",
    "rejected_valid": "declare the ranges in which the implementation works, or do not declare the operation; where a "
    "request is called malformed, compare the adapter's members and forms with spec/adapter.md, section 4",
    "protocol": "see spec/adapter.md, section 1",
}


class Unusable(Exception):
    """The adapter fails before `hello` succeeds; `hint` says what to do."""

    def __init__(self, step: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.step, self.hint = step, hint


class Failed(Exception):
    """A step failed; `hint` says what to do, and `hung` whether it timed out."""

    def __init__(self, message: str, hint: str, *, hung: bool = False) -> None:
        super().__init__(message)
        self.hint, self.hung = hint, hung


class Skipped(Exception):
    """A step cannot be run; the message says why."""


@dataclass(frozen=True)
class Step:
    """One line of what the command prints."""

    name: str
    verdict: str
    said: str
    hint: str = ""

    def __str__(self) -> str:
        lines = [f"{self.verdict:<5} {self.name:<16} {shown(self.said, 400)}"]
        return "\n".join([*lines, f"      {'what to do':<16} {self.hint}"] if self.hint else lines)


@dataclass
class Trial:
    """An adapter on trial: two processes of it, its capabilities, and the requests with their answers."""

    connection: ProcessConnection
    fresh: ProcessConnection
    caps: Capabilities
    results: list[tuple[Request, Answer]] = field(default_factory=list)


class _InPieces(ProcessConnection):
    """Sends each line in two pieces, with a pause between them."""

    def _send(self, process: Popen[bytes], line: bytes) -> None:
        half = len(line) // 2
        super()._send(process, line[:half])
        time.sleep(_PAUSE_SECONDS)
        super()._send(process, line[half:])


class _ThenEnd(ProcessConnection):
    """Sends one line and closes the input."""

    def _send(self, process: Popen[bytes], line: bytes) -> None:
        super()._send(process, line)
        assert process.stdin is not None
        process.stdin.close()


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    taken = []
    for step in steps(given.adapter, given.timeout, given.start_timeout):
        print(for_encoding(str(step), sys.stdout.encoding or "utf-8"), flush=True)
        taken.append(step)
    print(conclusion(taken, given.adapter))
    return exit_code(taken)


def conclusion(taken: Sequence[Step], command: Sequence[str]) -> str:
    """Return the last line: how many steps failed, or what to run next."""
    if exit_code(taken) == 3:
        return "the adapter cannot be judged"
    failed = sum(step.verdict == FAIL for step in taken)
    if failed:
        return f"{failed} of {len(taken)} steps failed"
    return f"the adapter can be judged: secagg-spec conform -- {shlex.join(command)}"


def exit_code(taken: Sequence[Step]) -> int:
    """Return 0, 1 or 3; 3 if the adapter could not be started, did not answer hello, or could not be restarted."""
    passed = {step.name for step in taken if step.verdict == OK}
    if not {"start", "hello"} <= passed or any(step.said.startswith(_GONE) for step in taken):
        return 3
    return 1 if any(step.verdict == FAIL for step in taken) else 0


_GONE = "the adapter could not be started again"


def steps(command: Sequence[str], timeout: float, start_timeout: float) -> Iterator[Step]:
    """Yield the result of each step as soon as it is known: first the handshake, then the rest if it succeeds."""
    connection = ProcessConnection(command, timeout, start_timeout)
    fresh = _InPieces(command, timeout, start_timeout)
    try:
        refuse_unstartable(command)
        begin = time.monotonic()
        caps = _handshake(connection)
        yield Step("start", OK, shlex.join(command))
        yield Step("hello", OK, _about(caps, time.monotonic() - begin))
        yield from _trial(Trial(connection, fresh, caps))
    except Unusable as unusable:
        if unusable.step != "start":
            yield Step("start", OK, shlex.join(command))
        yield Step(unusable.step, FAIL, str(unusable), unusable.hint)
    finally:
        connection.close()
        fresh.close()


def _about(caps: Capabilities, seconds: float) -> str:
    number = len(caps.operations)
    plural = "" if number == 1 else "s"
    return (
        f"{caps.name} {caps.version} ({caps.language}): {number} operation{plural}, "
        f"randomness {caps.randomness}; {seconds:.1f} s"
    )


# ------------------------------------------------------------------------------------------------------- handshake


def refuse_unstartable(command: Sequence[str]) -> None:
    """Raise `Unusable` if the command is absent or not executable, or if its #! line has Windows line ends."""
    program = command[0]
    found = shutil.which(program)
    if found is None:
        raise Unusable("start", *_why_not_found(program))
    line = _first_line(Path(found))
    if line.startswith(b"#!") and line.endswith(b"\r\n"):
        said = f"the first line of {program} ends as on Windows: no program has the name after #!"
        raise Unusable("start", said, f"write the file with plain line feeds: sed -i 's/\\r$//' {shlex.quote(program)}")


def _why_not_found(program: str) -> tuple[str, str]:
    path = Path(program)
    if path.is_dir():
        return f"{program} is a folder", "give the command that starts the adapter, such as: -- node adapter.js"
    if path.is_file() and path.name == program:
        return f"{program} is not found on the PATH", f"write ./{program} if you mean the file in this folder"
    if path.is_file():
        return f"{program} is not executable", f"chmod +x {shlex.quote(program)}, or name its interpreter before it"
    return f"there is no command {program}", "check the name and the folder; the current folder is " + str(Path.cwd())


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(256)
    except OSError:
        return b""


def _handshake(connection: ProcessConnection) -> Capabilities:
    """Say hello; raise `Unusable` with a hint for every failure."""
    try:
        answer = connection.ask(HELLO)
    except AdapterUnusable as unusable:
        hint = "a script needs a first line such as #!/usr/bin/env python3, or its interpreter before it"
        raise Unusable("start", str(unusable), hint) from None
    except AdapterBroken as broken:
        raise Unusable("hello", str(broken), _hello_hint(connection, broken)) from None
    try:
        caps = shake_hands(answer)
        refuse_impossible(caps)
    except AdapterUnusable as unusable:
        raise Unusable("hello", str(unusable), "see spec/adapter.md, section 2, for the contents of hello") from None
    return caps


def _hello_hint(connection: ProcessConnection, broken: AdapterBroken) -> str:
    if broken.verdict == "timeout":
        return _silence_hint(connection, str(broken))
    if broken.verdict == "crash" and "and ran on" not in str(broken):
        by_hand = f"echo '{HELLO.line(1).strip()}' | {shlex.join(connection.command)}"
        return f"the program ends at once; to see why, run it by hand: {by_hand}"
    if "not JSON" in str(broken):
        return "something is printed to standard output: print to standard error instead"
    return _hint(broken.verdict, str(broken))


def _silence_hint(connection: ProcessConnection, said: str) -> str:
    """Return what to do about a missing answer. An adapter that answers when its input ends reads or writes late."""
    seconds = min(_AT_END_SECONDS, connection.start_timeout)
    ending = _ThenEnd(connection.command, seconds, seconds)
    try:
        ending.ask(HELLO)
    except (AdapterBroken, AdapterUnusable):
        return f"{_ONE_LINE if _NOT_JSON in said else _READ}; if it needs longer to load, raise --start-timeout"
    finally:
        ending.close()
    return "the answer comes only when the input ends: flush standard output after each line, and read line by line"


# ------------------------------------------------------------------------------------------------------ other steps


def _trial(trial: Trial) -> Iterator[Step]:
    stopped = ""
    for name, act in _STEPS.items():
        if stopped:
            yield Step(name, SKIP, stopped)
            continue
        try:
            yield Step(name, OK, act(trial))
        except Skipped as skipped:
            yield Step(name, SKIP, str(skipped))
        except Failed as failed:
            yield Step(name, FAIL, str(failed), failed.hint)
            stopped = "not tried after a time-out" if failed.hung else ""
        except AdapterBroken as broken:
            yield Step(name, FAIL, str(broken), _hint(broken.verdict, str(broken)))
            stopped = "not tried after a time-out" if broken.verdict == "timeout" else ""
        except AdapterUnusable as unusable:
            yield Step(name, FAIL, f"{_GONE}: {unusable}", _READ)
            stopped = "not tried: it could not be started again"


def _hint(verdict: str, message: str) -> str:
    known = next((hint for part, hint in _HINTS if part in message), None)
    return known or _HINTS_BY_VERDICT.get(verdict, "see spec/adapter.md")


def _demand(ok: bool, message: str, hint: str) -> None:
    if not ok:
        raise Failed(message, hint)


def _hello_again(trial: Trial) -> str:
    again = shake_hands(trial.connection.ask(HELLO))
    _demand(again == trial.caps, "a second hello declares something else", "hello must always give the same answer")
    return "a second hello declares the same"


def _unknown(trial: Trial) -> str:
    undeclared = [name for name in OPERATIONS if not trial.caps.offers(name)]
    names = ["xq.never-heard-of", *undeclared[:1]]
    for name in names:
        answer = trial.connection.ask(Request(name, {}))
        hint = 'answer {"unsupported": true} to every operation that hello does not declare'
        _demand(answer.kind == "unsupported", f"{name} is not declared, and was answered by {answer.kind}", hint)
    return f"{' and '.join(names)}: unsupported, as {'they' if undeclared else 'it'} must be"


def _not_a_request(trial: Trial) -> str:
    answer = trial.connection.ask_raw(b"hello", None)
    hint = 'answer {"id": null, "reject": {"code": "malformed"}} to a line that is not a request'
    good = answer.kind == "reject" and answer.code == "malformed"
    _demand(good, f"a line that is not JSON was answered by {answer.kind} {answer.code}".rstrip(), hint)
    return "a line that is not JSON is rejected as malformed"


def _refusal(trial: Trial) -> str:
    names = [name for name in trial.caps.operations if name in VALID and OPERATIONS[name][0]]
    if not names:
        raise Skipped("no declared operation takes parameters that can be drawn")
    answer = trial.connection.ask(Request(names[0], {}))
    hint = 'answer {"reject": {"code": "malformed", "message": "…"}} when params lack a member'
    message = f"{names[0]} without its params was answered by {answer.kind} {answer.code}".rstrip()
    _demand(answer.kind == "reject" and answer.code == "malformed", message, hint)
    return f"{names[0]} without its params is rejected as malformed"


def _outside(trial: Trial) -> str:
    checks = [check for check in REGISTRY.values() if check.id.endswith("/outside-range")]
    ready = [check for check in checks if check.runs_on(trial.caps)]
    if not ready:
        raise Skipped("the declared moduli leave no others to try")
    _judged(trial, ready, 1)
    return f"moduli outside the declared ones, in {counted(len(ready), 'operation')}: refused, or answered correctly"


def _long_line(trial: Trial) -> str:
    if not trial.caps.offers("echo"):
        raise Skipped("declare echo to test a long line")
    data = "x" * _MEBIBYTE
    answer = trial.connection.ask(Request("echo", {"data": data}))
    hint = "read and write lines of up to 64 MiB: some libraries cut lines at 64 KiB"
    _demand(answer.value.get("data") == data, "a line of 1 MiB did not come back whole", hint)
    return "1 MiB there and back"


def _carriage_return(trial: Trial) -> str:
    line = HELLO.line(7).encode().rstrip(b"\n") + b"\r"
    answer = trial.connection.ask_raw(line, 7)
    hint = "a carriage return before the line feed is white space in JSON: leave it to the JSON library"
    _demand(answer.kind == "result", f"a line with a Windows line end was answered by {answer.kind}", hint)
    return "a carriage return before the line feed does no harm"


def _in_pieces(trial: Trial) -> str:
    caps = greet(trial.fresh.ask)
    _demand(caps == trial.caps, "a fresh process declares something else", "hello must always give the same answer")
    return "a line that arrives in two pieces is read as one line"


def _operations(trial: Trial) -> str:
    checks = [check for check in map(_first_request, OPERATIONS) if check is not None]
    ready = [check for check in checks if check.runs_on(trial.caps)]
    if not ready and all(name.startswith("session.") for name in trial.caps.operations):
        listed = ", ".join(trial.caps.operations) or "nothing"
        raise Failed(f"hello declares {listed}, of which nothing can be asked", _DECLARE)
    if not ready:
        raise Skipped("no request can be drawn for any declared operation")
    trial.results.clear()
    _judged(trial, ready, max(1, _REQUESTS // len(ready)), trial.results)
    left = len([name for name in trial.caps.operations if name not in _ASKED_ELSEWHERE])
    rest = f" (no request can be drawn for {left - len(ready)} more)" if left > len(ready) else ""
    return f"{counted(len(ready), 'declared operation')} of {left} answered valid requests{rest}"


_ASKED_ELSEWHERE = ("echo", "session.step", "session.again", "session.free")


def _first_request(operation: str) -> Check | None:
    """Return a check that asks one valid request; None for operations that another step tests."""
    if operation == "session.new":
        needed = ("session.new", "session.step", "session.free")
        return Check("session.new/first", (), needed, _open_sessions, lambda caps: True, "")
    if operation not in VALID:
        return None

    def judge(draw: Any, call: Caller) -> None:
        valid = VALID[operation](draw, call.caps)
        call.result(operation, valid.params, call.randomness(operation, valid.rand))

    wide, possible = operation.startswith(WIDE), partial(can_request, operation)
    return Check(f"{operation}/first", (), (operation,), judge, possible, "", wide=wide)


def _open_sessions(draw: Any, call: Caller) -> None:
    """Open and free a session for each declared party."""
    for name in call.caps.parties:
        protocol, _, role = name.partition(".")
        if role == "authority":
            continue
        inputs = drawn_rounds.inputs(draw, protocol)
        try:
            with mixed.opened(playing.player(call), inputs, SERVER if role == "server" else inputs.users[0]):
                pass
        except Difference as difference:
            raise playing.failed(difference) from None


def _judged(
    trial: Trial, checks: Sequence[Check], cases: int, kept: list[tuple[Request, Answer]] | None = None
) -> None:
    """Run checks with a few cases each; raise `Failed` for failures. `kept` collects the requests and answers."""
    listening = _Listening(trial.connection, kept if kept is not None else [])
    found: dict[str, Failure] = {}
    for check in checks:
        failure = run_check(listening, trial.caps, check, Settings(cases=cases)).failure
        if failure:
            found[check.id.partition("/")[0]] = failure
            if failure.verdict == "timeout":
                break
    if found:
        raise _failed(found)


def _failed(found: Mapping[str, Failure]) -> Failed:
    name, first = next(iter(found.items()))
    others = [other for other in found if other != name]
    more = f" … and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    rest = f"; so did {', '.join(others[:_SHOWN])}{more}" if others else ""
    hung = any(failure.verdict == "timeout" for failure in found.values())
    return Failed(
        f"{name} failed ({first.verdict}): {first.message}{rest}", _hint(first.verdict, first.message), hung=hung
    )


@dataclass
class _Listening:
    """A connection that records requests and answers."""

    connection: ProcessConnection
    kept: list[tuple[Request, Answer]]

    def ask(self, request: Request) -> Answer:
        """Ask, and record the answer."""
        answer = self.connection.ask(request)
        self.kept.append((request, answer))
        return answer

    def ask_raw(self, line: bytes, id: int | None) -> Answer:
        """Send a line unchanged."""
        return self.connection.ask_raw(line, id)

    def restart(self) -> None:
        """Start a fresh process."""
        self.connection.restart()

    def close(self) -> None:
        """End the process."""
        self.connection.close()

    def expect_hang(self, hanging: bool) -> None:
        """Pass the setting on."""
        self.connection.expect_hang(hanging)


def _repeatable(trial: Trial) -> list[tuple[Request, Answer]]:
    """Return the requests whose answers must repeat: without the adapter's own randomness, and outside sessions."""
    found = [
        (request, answer)
        for request, answer in trial.results
        if request.op in VALID and answer.kind == "result" and (request.op not in DRAWING or request.rand)
    ]
    if not found:
        raise Skipped("no answer so far has to repeat")
    return found


def _same(connection: ProcessConnection, asked: Sequence[tuple[Request, Answer]], where: str) -> None:
    for request, before in asked:
        again = connection.ask(Request(request.op, decimal(request.params), request.rand))
        message = f"{request.op} answers {where} differently than before"
        _demand(again.as_json() == before.as_json(), message, _HINTS_BY_VERDICT["inconsistent"])


def _twice(trial: Trial) -> str:
    asked = _repeatable(trial)
    _same(trial.connection, asked, "the same request")
    return f"{counted(len(asked), 'request')} asked again: the same answers"


def _fresh_process(trial: Trial) -> str:
    firsts = list({request.op: (request, answer) for request, answer in _repeatable(trial)}.values())[:_MOST_FRESH]
    _same(trial.fresh, firsts, "in a fresh process")
    return f"{counted(len(firsts), 'request')} asked of a fresh process: the same answers"


_MOST_FRESH = 12


def _ends(trial: Trial) -> str:
    hint = "end when standard input ends"
    _demand(trial.connection.finish(_END_SECONDS), f"it still runs {_END_SECONDS:g} s after its input ended", hint)
    return "the adapter ends when its input ends"


_STEPS: Mapping[str, Callable[[Trial], str]] = {
    "hello again": _hello_again,
    "unknown": _unknown,
    "not a request": _not_a_request,
    "refusal": _refusal,
    "line ends": _carriage_return,
    "long line": _long_line,
    "in pieces": _in_pieces,
    "operations": _operations,
    "outside ranges": _outside,
    "same again": _twice,
    "fresh process": _fresh_process,
    "end of input": _ends,
}
"""The steps after the handshake, in order: honesty, framing, determinism."""
