"""Secure aggregation by program: judge implementations, watch rounds, decide privacy, verify claims."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from typing import Any

from secagg_spec import __version__, signals
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.errors import ParameterError, ProtocolError, UsageError
from secagg_spec.terminal import did_you_mean

_HERE = "secagg_spec.commands"
_LINE = 10_000
"""The longest error line, in characters."""
COMMANDS = {
    "demo": f"{_HERE}.demo",
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


_USUAL = """The usual commands (secagg-spec --help lists all):

  secagg-spec demo                              judge five released frameworks
  secagg-spec init --lang python                begin an adapter for your code
  secagg-spec conform --brief -- ./adapter      judge it, clause by clause
  secagg-spec explain LSA-09                    what an id of the text means
  secagg-spec simulate lightsecagg --users 8    watch a round
  secagg-spec privacy lightsecagg               who learns what"""


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
    if not name:
        print(_USUAL, file=sys.stderr)
        raise SystemExit(2)
    if name not in COMMANDS and not name.startswith("-"):
        hint = did_you_mean(name, COMMANDS).strip() or f"the commands are {', '.join(COMMANDS)}"
        raise UsageError(f"there is no such command; {hint}")
    if name not in COMMANDS:
        return parser(() if name == "--version" else tuple(COMMANDS)).parse_args(arguments)
    joined = getattr(import_module(COMMANDS[name]), "joined", list)
    return parser([name]).parse_args(joined(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; every expected failure is one line on standard error."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = given[0] if given else ""
    try:
        with signals.raised():
            options = _parsed(given)
            code: int = options.run(options)
            sys.stdout.flush()
    except (ParameterError, ProtocolError, UsageError) as error:
        print(f"secagg-spec {shown(command, _LINE)}: {shown(str(error), _LINE)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as ended:
        number = ended.number if isinstance(ended, signals.Terminated) else signal.SIGINT
        name = signal.Signals(number).name
        print("interrupted" if number == signal.SIGINT else f"ended by {name}", file=sys.stderr)
        return 128 + int(number)
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


if __name__ == "__main__":
    sys.exit(main())
