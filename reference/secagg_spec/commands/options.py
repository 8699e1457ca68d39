"""Options that several commands share, and the conditions on their values."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.adapter.limits import START_SECONDS
from secagg_spec.conformance.running.defaults import SECONDS
from secagg_spec.errors import UsageError
from secagg_spec.system import write_whole
from secagg_spec.terminal import load

if TYPE_CHECKING:
    from secagg_spec.conformance.running.runner import Settings

_MOST_JOBS = 512


@dataclass(frozen=True)
class Rules:
    """Which options of a command need others: those that nothing would heed are refused. Names are those of values.

    `needs` has, by option, the options of which one must be given too. `only` has, by option, all options that may
    stand beside it. `apart` has pairs of options that do not go together.
    """

    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    apart: Sequence[tuple[str, str]] = ()

    def refuse(self, given: Collection[str], said: Mapping[str, str]) -> None:
        """Refuse given options that break a rule; `said` has, for all options, how they are written.

        Raises
        ------
        UsageError
            One would be ignored; the message names it, and what is needed or what is in the way.
        """
        for one, others in self.only.items():
            left = [name for name in given if name not in (one, *others)]
            if one in given and left:
                but = f" but {', '.join(said[name] for name in others)}" if others else ""
                raise UsageError(f"{said[one]} goes with no other option{but}, and {said[left[0]]} is given")
        for one, others in self.needs.items():
            if one in given and not set(others) & set(given):
                raise UsageError(f"{said[one]} needs {' or '.join(said[name] for name in others)}")
        for one, other in self.apart:
            if one in given and other in given:
                raise UsageError(f"{said[one]} and {said[other]} do not go together")


def add_timeouts(parser: argparse.ArgumentParser, answer: float = SECONDS, start: float = START_SECONDS) -> None:
    """Add ``--timeout`` and ``--start-timeout`` with these defaults."""
    parser.add_argument(
        "--timeout", type=values.seconds, default=answer, metavar="S", help=f"seconds for one answer ({answer:g})"
    )
    add_start_timeout(parser, start)


def add_start_timeout(parser: argparse.ArgumentParser, start: float = START_SECONDS) -> None:
    """Add ``--start-timeout`` with this default."""
    parser.add_argument(
        "--start-timeout",
        type=values.seconds,
        default=start,
        metavar="S",
        help=f"seconds for the answer to hello, including loading libraries ({start:g})",
    )


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Add ``--target``, which may be given several times."""
    about = "a known implementation, or several: 'flower*'"
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help=about)


def add_pattern(parser: argparse.ArgumentParser) -> None:
    """Add ``-k``, which may be given several times."""
    about = (
        "only checks with this in their id or clauses, or with this id; none with it after a '!'; several with "
        "commas, or repeated"
    )
    parser.add_argument("-k", dest="patterns", action="append", default=[], metavar="PATTERN", help=about)


def pattern(given: argparse.Namespace) -> str | None:
    """Join the given patterns into one; None if there is none."""
    return ",".join(given.patterns) if given.patterns else None


def refuse_idle(settings: Settings) -> None:
    """Refuse the patterns of ``-k`` as `Settings.refuse_idle` does; the error names the option."""
    try:
        settings.refuse_idle()
    except UsageError as error:
        raise UsageError(f"-k {error}") from None


def jobs(text: str) -> int:
    """Parse a number of processes, as `values.count` parses a number of cases; at most `_MOST_JOBS`."""
    if (text.isdecimal() and len(text) > values.DIGITS) or (number := values.count(text, "jobs")) > _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"{values.cut(text)} is more than {_MOST_JOBS} jobs")
    return number


def write_json(path: Path, document: Any) -> None:
    """Write the file of ``--json``.

    Raises
    ------
    UsageError
        It cannot be written.
    """
    try:
        write_whole(path, json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"--json {path}: {error.strerror}") from None


def later(name: str, what: str = "the checks") -> Callable[[argparse.Namespace], int]:
    """Return what runs a command, and loads it only then; meanwhile a terminal says `what` is loaded, if anything."""

    def run(given: argparse.Namespace) -> int:
        code: int = load(f"secagg_spec.commands.{name}", what).main(given)
        return code

    return run
