"""Options that several commands share, and the conditions on their values."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from secagg_spec.conformance.adapter.limits import START_SECONDS
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.running.defaults import SECONDS
from secagg_spec.errors import UsageError
from secagg_spec.system import replaceable, resolved, write_whole
from secagg_spec.terminal import load

_MOST_JOBS = 512


def add_timeouts(parser: argparse.ArgumentParser, answer: float = SECONDS, start: float = START_SECONDS) -> None:
    """Add ``--timeout`` and ``--start-timeout`` with these defaults."""
    parser.add_argument(
        "--timeout", type=seconds, default=answer, metavar="S", help=f"seconds for one answer ({answer:g})"
    )
    add_start_timeout(parser, start)


def add_start_timeout(parser: argparse.ArgumentParser, start: float = START_SECONDS) -> None:
    """Add ``--start-timeout`` with this default."""
    parser.add_argument(
        "--start-timeout",
        type=seconds,
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
    about = "only checks with this in their id or clauses, or with this id; none with it after a '!'; repeatable"
    parser.add_argument("-k", dest="patterns", action="append", default=[], metavar="PATTERN", help=about)


def pattern(given: argparse.Namespace) -> str | None:
    """Join the given patterns into one; None if there is none."""
    return ",".join(given.patterns) or None


def count(text: str, what: str = "cases") -> int:
    """Parse a number of cases, or of something else.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not a whole number of at least 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {what}, at least 1")
    return int(text)


def jobs(text: str) -> int:
    """Parse a number of processes, as `count` parses a number of cases; at most `_MOST_JOBS`."""
    if len(text) > 9 or (number := count(text, "jobs")) > _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"{shown(text, 40)!r} is more than {_MOST_JOBS} jobs")
    return number


def seconds(text: str) -> float:
    """Parse a number of seconds.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not a number above 0 and below a million.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and below a million")
    return value


def writable_file(option: str, path: Path, *read: Path | None) -> None:
    """Refuse a file that cannot be written, before anything runs, and one of those that the command reads.

    Raises
    ------
    UsageError
        The path is a folder, its parent folder is absent, permissions are missing, the system allows no such path, or
        the command reads this file.
    """
    try:
        there = resolved(path)
        if replaceable(path) and any(other is not None and resolved(other) == there for other in read):
            raise UsageError(f"{option} {path}: the command reads this file, and it would be lost; name another one")
    except OSError as error:
        raise UsageError(f"{option} {shown(str(path))}: {error.strerror}") from None
    if path.is_dir():
        raise UsageError(f"{option} {path}: this is a folder, not a file")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option} {path}: it cannot be written")


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


def writable_folder(option: str, path: Path) -> None:
    """Refuse a folder that neither exists nor can be made, or that cannot be written.

    Raises
    ------
    UsageError
        A file stands in its place or above it, permissions are missing, or the system allows no such path.
    """
    try:
        there = resolved(path)
        while not there.exists() and there != there.parent:
            there = there.parent
    except OSError as error:
        raise UsageError(f"{option} {shown(str(path))}: {error.strerror}") from None
    if not there.is_dir():
        raise UsageError(f"{option} {path}: {there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: {there} cannot be written")


def later(name: str, what: str = "the checks") -> Callable[[argparse.Namespace], int]:
    """Return what runs a command, and loads it only then; meanwhile a terminal says `what` is loaded, if anything."""

    def run(given: argparse.Namespace) -> int:
        code: int = load(f"secagg_spec.commands.{name}", what).main(given)
        return code

    return run
