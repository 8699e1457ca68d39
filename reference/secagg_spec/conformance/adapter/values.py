"""Values of options, and the conditions on them; the commands and the plugin of pytest share them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from secagg_spec.arithmetic import numerals
from secagg_spec.conformance.adapter.plain import clip, shown
from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.system import replaceable, resolved

DIGITS = 100
"""The longest number in an option, in characters."""
MOST_SECONDS = 1e6
"""A time in an option is shorter, in seconds."""
_BEGINS: Mapping[str, str] = MappingProxyType(
    {
        "--badge": '{\n  "schemaVersion": ',
        "--html": "<!doctype html>",
        "--junit": "<?xml",
        "--svg": "<svg",
        "--write-log": "time,kind,user",
    }
)
"""How a file begins that an option writes; others are not replaced. Of --json each command says it."""
_PICTURES: Mapping[str, str] = MappingProxyType({".svg": "<?xml", ".png": "\x89PNG"})
"""The ends of the names of a picture's files, and how these begin."""


def count(text: str, what: str = "cases") -> int:
    """Parse a number of cases, or of something else.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not a whole number of at least 1, or has more than `DIGITS` digits.
    """
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal() and digits.strip("0")):
        raise argparse.ArgumentTypeError(f"{cut(text)} is not a whole number of {what}, at least 1")
    return integer(text)


def integer(text: str) -> int:
    """Parse an integer.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not an integer, or has more than `DIGITS` characters.
    """
    if len(text) > DIGITS:
        raise argparse.ArgumentTypeError(f"has {len(text)} characters; an integer has at most {DIGITS}")
    found = numerals.integer(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{cut(text)} is not an integer, as 12 or -3 are")
    return found


def seconds(text: str) -> float:
    """Parse a number of seconds.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not a number above 0 and below a million.
    """
    try:
        value = numerals.real("seconds", text)
    except ParameterError:
        value = 0.0
    if not 0 < value < MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{cut(text)} is not a number of seconds above 0 and below a million")
    return value


def path(text: str) -> Path:
    """Return a path.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError("is empty, and must be the name of a file or a folder")
    return Path(text)


def cut(text: str) -> str:
    """Return a value between quotes, cut if it is long."""
    return repr(clip(text, DIGITS))


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


def writable_pictures(option: str, folder: Path, *names: str) -> list[Path]:
    """Return the files of pictures, by their names without an end; refuse a folder that cannot take all of them.

    Raises
    ------
    UsageError
        As `writable_folder` and `writable_file` do.
    """
    writable_folder(option, folder)
    files = [folder / f"{name}{end}" for name in names for end in _PICTURES]
    for path in files if folder.exists() else ():
        writable_file(option, path, begins=_PICTURES[path.suffix])
    return files


def writable_file(option: str, path: Path, *read: Path | None, begins: str | None = None) -> None:
    """Refuse a file that cannot be written, before anything runs, and one whose content should not be lost.

    A file that is replaced begins with `begins`, by default as the option writes it.

    Raises
    ------
    UsageError
        The path is a folder, its parent folder is absent, permissions are missing, the system allows no such path, the
        command reads this file, or it holds something else than the option writes.
    """
    try:
        there = resolved(path)
        if replaceable(path) and any(other is not None and resolved(other) == there for other in read):
            raise UsageError(f"{option} {path}: the command reads this file, and it would be lost; name another one")
        if path.is_file() and replaceable(path):
            _refuse_other_content(option, path, _BEGINS.get(option, "") if begins is None else begins)
    except OSError as error:
        raise UsageError(f"{option} {shown(str(path))}: {error.strerror}") from None
    if path.is_dir():
        raise UsageError(f"{option} {path}: this is a folder, not a file")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option} {path}: it cannot be written")


def _refuse_other_content(option: str, path: Path, begins: str) -> None:
    with path.open("rb") as file:
        head = file.read(100).lstrip()
    if head and not head.startswith(begins.encode("latin-1")):
        raise UsageError(
            f"{option} {path}: this file would be lost; one that is replaced has to be empty, or to begin with "
            f"{begins!r} as what this option writes"
        )


def files_of(command: Sequence[str]) -> list[Path]:
    """Return the files that the words of a command name: it reads them."""
    return [Path(word) for word in command if os.path.isfile(word)]
