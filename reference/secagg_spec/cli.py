"""Secure aggregation by program: judge implementations, watch rounds, decide privacy, verify claims."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import re
import signal
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from secagg_spec import __version__, signals
from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.errors import ParameterError, ProtocolError, UsageError
from secagg_spec.terminal import did_you_mean, load

_HERE = "secagg_spec.commands"
_LINE = 10_000
"""The longest error line, in characters."""
_NEGATIVE = re.compile(r"-\.?[0-9]")
"""How a value begins that is no option, such as -1,2 or -5s: what reads it says why it is refused."""
_NAME = 120
"""The longest name of a file in an error line, in characters."""
ABOUT = {
    "demo": "judge five released frameworks, and print one screen",
    "conform": "judge an implementation, clause by clause",
    "check": "see in a second whether an adapter can be judged, and if not, what to do",
    "fuzz": "test an implementation with new cases until the time is over",
    "round": "let implementations play whole rounds together, and find the first fault",
    "replay": "judge a stored failure again",
    "diff": "show what changed between two reports",
    "vectors": "list the test vectors, or run them against an implementation",
    "promote": "turn a stored failure into a test vector",
    "power": "show which mutants a run would notice",
    "explain": "say what a clause, a check, a vector, a mutant or a verdict is, and why it matters",
    "init": "start an adapter: a small program to edit, its helper, and a CI job",
    "text": "print the version of the text, and what each version changed",
    "privacy": "decide what a coalition learns beyond the sum",
    "claims": "list what the papers claim, and run the proofs behind the verdicts",
    "simulate": "watch a protocol run, step by step",
    "plan": "say which protocol suits a deployment, with parameters, bytes, time and probabilities",
    "segments": "draw which users of HeteroSAg mask which segment together, and what that reveals",
    "reconstruct": "recover models and images from the sums of many rounds",
    "selection": "compare ways to choose users for many rounds: privacy, fairness, cardinality",
    "audit-participation": "say which models the sums of many rounds reveal, and after which round",
    "trace": "check the recorded messages of rounds, and say what the server learned",
    "reproduce": "run the papers' experiments, and say whether they confirm the claims",
}
"""What each command does. It stands here, so that the list of all commands is printed without loading them."""
_JUDGING = ("demo", "check", "fuzz", "round", "replay", "diff", "vectors", "promote", "explain")
_MODULES = {"audit-participation": "audit", "conform": "conform_options", **dict.fromkeys(_JUDGING, "parsers")}
COMMANDS = {name: f"{_HERE}.{_MODULES.get(name, name)}" for name in ABOUT}
"""The module of the options of each command, which is loaded only when its command is given.

It has a function ``add_parser``; that of several commands has one for each, such as ``add_check``.
"""


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
        self._negative_number_matcher = _NEGATIVE
        self.register("type", int, values.integer)
        self.register("type", Path, values.path)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)  # argparse hides that it could not be written

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{hint and f'; {hint.strip()}'}") from None

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if "-k" in action.option_strings and not arg_string.strip():
            raise argparse.ArgumentError(action, "is empty, and would choose all; leave it out for that")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {shown(message, _LINE)} (see {self.prog} --help)\n")


class _CommandParser(_Parser):
    """The parser of one command.

    It refuses unknown arguments itself, to point to the help of that command, and arguments that break its `Rules`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._given: dict[str, str] = {}
        super().__init__(*arguments, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed arguments; nothing is left over."""
        found, left = super().parse_known_args(args, namespace)
        ours = left[: left.index("--")] if "--" in left else left  # the command of an adapter follows
        if ours:
            self.error(f"unrecognized arguments: {' '.join(ours)}")
        command = getattr(found, "adapter", None)
        if command == [] and "--" in (args or ()):
            self.error("-- is followed by no command, and has to be by the one that starts the adapter")
        before = command if left else _before_separator(list(args or ()), command or [])
        if before:
            self.error(f"unrecognized arguments before --: {' '.join(before)}")
        if command and not command[0].strip():
            self.error("the command after -- is empty, and must be the one that starts the adapter")
        if not hasattr(found, "called"):  # a subcommand comes before its command
            found.called = _called(self._actions)
        rules = self.get_default("rules")
        if rules is not None:
            rules.refuse(self._given, {action.dest: _written(action) for action in self._actions} | self._given)
        return found, left

    def _get_values(self, action: argparse.Action, arg_strings: Any) -> Any:
        found = super()._get_values(action, arg_strings)
        if action.option_strings or found not in (None, []):
            self._given.setdefault(action.dest, _written(action))
        return found


def _called(actions: Sequence[argparse.Action]) -> dict[str, str]:
    """Return how options are written, by the names of their values, and by the symbols that stand for one alone."""
    options = [action for action in actions if action.option_strings]
    often = Counter(str(action.metavar) for action in options if action.metavar)
    symbols = {str(action.metavar): _written(action) for action in options if often[str(action.metavar)] == 1}
    return symbols | {action.dest: _written(action) for action in options}


def _before_separator(given: list[str], command: list[str]) -> list[str]:
    """Return the first words of the command of an adapter that stand before ``--``, where others follow it."""
    if "--" not in given:
        return []
    after = len(given) - given.index("--") - 1
    return command[: max(0, len(command) - after)]


def _written(action: argparse.Action) -> str:
    """Return how an argument is written in an error."""
    if action.option_strings:
        return action.option_strings[0]
    return "the command of an adapter after --" if action.dest == "adapter" else str(action.metavar or action.dest)


def parser(chosen: Sequence[str] = tuple(COMMANDS), *, load: bool = True) -> argparse.ArgumentParser:
    """Return the parser of the chosen commands, by default all; without `load` it only lists them."""
    top = _Parser(prog="secagg-spec", description=__doc__)
    top.add_argument("--version", action="version", version=f"secagg-spec {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_CommandParser)
    listed = _Listed(commands)
    for name in chosen:
        if load:
            module = import_module(COMMANDS[name])
            getattr(module, f"add_{name}" if name in _JUDGING else "add_parser")(listed)
        else:
            listed.add_parser(name)
    return top


class _Listed:
    """The commands of a parser; each that is added says in the list of all what it does."""

    def __init__(self, commands: Any) -> None:
        self._commands = commands

    def add_parser(self, name: str, **options: Any) -> Any:
        """Add a command."""
        return self._commands.add_parser(name, help=ABOUT[name], **options)


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments with the parser of the command that comes first."""
    if __doc__ is None:
        raise UsageError("python -OO takes docstrings away, and some of them are printed; use -O")
    name = arguments[0] if arguments else ""
    if not name:
        print(_USUAL, file=sys.stderr)
        raise SystemExit(2)
    if name in {"--version", "-h", "--help"}:
        return parser(load=False).parse_args(arguments)
    if name.startswith("-"):
        raise UsageError("there is no such option; the name of a command comes first, then its options")
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS).strip() or f"the commands are {', '.join(COMMANDS)}"
        raise UsageError(f"there is no such command; {hint}")
    joined = getattr(load(COMMANDS[name]), "joined", list)
    return parser([name]).parse_args(joined(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; every expected failure is one line on standard error."""
    _open_what_is_closed()
    if type(sys.stderr) is io.TextIOWrapper and sys.stderr is sys.__stderr__:
        sys.stderr = _Lossy(sys.stderr.buffer, sys.stderr.encoding, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    command, called = given[0] if given else "", dict[str, str]()
    try:
        with signals.raised():
            try:
                options = _parsed(given)
            except SystemExit:
                sys.stdout.flush()  # the text of --help or --version
                raise
            called = getattr(options, "called", called)
            code: int = options.run(options)
            sys.stdout.flush()
    except (ParameterError, ProtocolError, UsageError) as error:
        said = str(error)
        if isinstance(error, ParameterError):
            name = re.split(r"[ \[]", error.parameter, maxsplit=1)[0]
            alone = said.startswith((f"{name} = ", f"{name}["))
            said = called.get(name, name) + said.removeprefix(name) if alone else said
        print(f"secagg-spec {shown(command, _LINE)}: {shown(said, _LINE)}", file=sys.stderr)
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
        unnamed = "the working folder" if error.errno == errno.ENOENT else "standard output"
        place = unnamed if error.filename is None else os.fsdecode(error.filename)
        print(f"secagg-spec {shown(command, _LINE)}: {shown(place, _NAME)}: {error.strerror}", file=sys.stderr)
        if error.filename is None:
            _write_no_more()
        return 2
    except MemoryError:
        print(f"secagg-spec {shown(command, _LINE)}: it needs more memory than there is", file=sys.stderr)
        return 2
    return code


class _Lossy(io.TextIOWrapper):
    """Standard error: where it cannot be written, its lines are lost, and the exit code is that of the command."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def _open_what_is_closed() -> None:
    """Open the null device for standard output or error when one was closed before the start.

    What is written to standard output fails then, as the output would be lost.
    """
    for name, flag in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if vars(sys)[name] is None:
            setattr(sys, name, open(os.open(os.devnull, flag), "w", encoding="utf-8"))  # noqa: SIM115


def _write_no_more() -> None:
    """Discard what standard output still buffers: flushing it at exit would fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
