"""Secure aggregation by program: judge implementations, watch rounds, decide privacy, verify claims."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import NoReturn

from secagg_spec import (
    __version__,
    audit_command,
    claims_command,
    reconstruct_command,
    segments_command,
    selection_command,
    simulate,
)
from secagg_spec.conformance import command as conform
from secagg_spec.conformance import init, power, replay
from secagg_spec.conformance.vectors import command as vectors
from secagg_spec.conformance.vectors import promote
from secagg_spec.conformance.wire import UsageError
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.privacy import command as privacy


class Terminated(KeyboardInterrupt):
    """A signal asks to end; like an interrupt from the keyboard, so that connections are closed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _Parser(prog="secagg-spec", description=__doc__)
    top.add_argument("--version", action="version", version=f"secagg-spec {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    conform.add_parser(commands)
    init.add_parser(commands)
    privacy.add_parser(commands)
    claims_command.add_parser(commands)
    power.add_parser(commands)
    replay.add_parser(commands)
    vectors.add_parser(commands)
    promote.add_parser(commands)
    simulate.add_parser(commands)
    segments_command.add_parser(commands)
    reconstruct_command.add_parser(commands)
    selection_command.add_parser(commands)
    audit_command.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; every expected failure is one line on standard error."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parser().parse_args(list(sys.argv[1:] if arguments is None else arguments))
    try:
        with _signals():
            code: int = options.run(options)
            sys.stdout.flush()
    except (ParameterError, ProtocolError, UsageError) as error:
        print(f"secagg-spec {options.command}: {error}", file=sys.stderr)
        return 2
    except Terminated as ended:
        print(f"ended by {signal.Signals(ended.number).name}", file=sys.stderr)
        return 128 + ended.number
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        if error.filename is not None:
            raise
        print(f"secagg-spec {options.command}: standard output: {error.strerror}", file=sys.stderr)
        _write_no_more()
        return 2
    return code


def _open_what_is_closed() -> None:
    """Let what is written go nowhere when standard output or error was closed before the start."""
    for name in ("stdout", "stderr"):
        if vars(sys)[name] is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _write_no_more() -> None:
    """Let go of what standard output still holds, which would fail again at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn the signals that ask to end into `Terminated` meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    given = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in given.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


if __name__ == "__main__":
    sys.exit(main())
