"""Secure aggregation by program: judge implementations, watch rounds, decide privacy, verify claims."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import groupby
from types import FrameType, ModuleType
from typing import Any, NoReturn

from secagg_spec import __version__
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.errors import ParameterError, ProtocolError, UsageError

_HERE = "secagg_spec.commands"
_LINE = 10_000
"""The longest error line, in characters."""
COMMANDS = {
    "conform": f"{_HERE}.conform",
    "check": f"{_HERE}.check",
    "fuzz": f"{_HERE}.fuzz",
    "round": f"{_HERE}.round",
    "replay": f"{_HERE}.replay",
    "diff": f"{_HERE}.diff",
    "vectors": f"{_HERE}.vectors",
    "promote": f"{_HERE}.promote",
    "power": f"{_HERE}.power",
    "explain": f"{_HERE}.explain",
    "init": f"{_HERE}.init",
    "text": f"{_HERE}.text",
    "privacy": f"{_HERE}.privacy",
    "claims": f"{_HERE}.claims",
    "simulate": f"{_HERE}.simulate",
    "segments": f"{_HERE}.segments",
    "reconstruct": f"{_HERE}.reconstruct",
    "selection": f"{_HERE}.selection",
    "audit-participation": f"{_HERE}.audit",
    "reproduce": f"{_HERE}.reproduce",
}
"""The module of each command. It has a function ``add_parser``, and is loaded only when its command is given."""


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end. Handled like a keyboard interrupt, to close connections on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Once(argparse.Action):
    """Stores the value of an option, and refuses an option that is given twice: one of the two values would be lost."""

    given = False

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the value."""
        if self.given and option:
            raise argparse.ArgumentError(self, "is given twice")
        self.given = True
        setattr(namespace, self.dest, values)


class _Help(argparse.HelpFormatter):
    """Wraps text to the width of the terminal; keeps indented lines (table rows and examples) as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for prose, group in groupby(text.splitlines(), lambda line: bool(line[:1].strip())):
            block = list(group)
            lines += self._split_lines(" ".join(block), width) if prose else block
        return "\n".join(f"{indent}{line}".rstrip() for line in lines)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class _Parser(argparse.ArgumentParser):
    """A parser with one-line errors and wrapped help. Options cannot be abbreviated, and are given at most once."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, "formatter_class": _Help, **options})
        for name in (None, "store"):
            self.register("action", name, _Once)

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {shown(message, _LINE)} (see {self.prog} --help)\n")


class _CommandParser(_Parser):
    """The parser of one command. It refuses unknown arguments itself, to point to the help of that command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed arguments; nothing is left over."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left


def parser(chosen: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of the chosen commands; of all commands by default."""
    top = _Parser(prog="secagg-spec", description=__doc__)
    top.add_argument("--version", action="version", version=f"secagg-spec {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_CommandParser)
    for name in chosen:
        import_module(COMMANDS[name]).add_parser(commands)
    return top


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments with the parser of the command that comes first."""
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        return parser(() if name == "--version" else tuple(COMMANDS)).parse_args(arguments)
    joined = getattr(_loaded(COMMANDS[name]), "joined", list)
    return parser([name]).parse_args(joined(arguments))


def _loaded(name: str) -> ModuleType:
    """Return a module. No garbage is collected while it loads: what it defines stays, and is looked at no more."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if collecting:
            gc.enable()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; every expected failure is one line on standard error."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = given[0] if given else ""
    try:
        with _signals():
            options = _parsed(given)
            code: int = options.run(options)
            sys.stdout.flush()
    except (ParameterError, ProtocolError, UsageError) as error:
        print(f"secagg-spec {command}: {shown(str(error), _LINE)}", file=sys.stderr)
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
        print(f"secagg-spec {command}: standard output: {error.strerror}", file=sys.stderr)
        _write_no_more()
        return 2
    return code


def _open_what_is_closed() -> None:
    """Open the null device for standard output or error when one was closed before the start."""
    for name in ("stdout", "stderr"):
        if vars(sys)[name] is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _write_no_more() -> None:
    """Discard what standard output still buffers: flushing it at exit would fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM and SIGHUP inside this context.

    Python drops what a handler raises while it runs a callback, such as one of the garbage collector. The signal is
    then sent again a moment later, and so is an interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    given = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in given.items() if handler not in (signal.SIG_IGN, None)}
    dropped = sys.unraisablehook
    for number in before:
        signal.signal(number, _terminate)
    sys.unraisablehook = lambda met: None if _sent_again(met.exc_value) else dropped(met)
    try:
        yield
    finally:
        sys.unraisablehook = dropped
        for number, handler in before.items():
            signal.signal(number, handler)


def _sent_again(error: BaseException | None) -> bool:
    """Send the signal again that raised an exception, if one did, and return whether one did."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    number = error.number if isinstance(error, Terminated) else signal.SIGINT
    later = threading.Timer(0.01, _send, (number,))
    later.daemon = True
    later.start()
    return True


def _send(number: int) -> None:
    """Send a signal to the main thread, which may be asleep."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


if __name__ == "__main__":
    sys.exit(main())
