"""The command ``secagg-spec text``: the version of the text, and what each version changed."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import history, resources, system
from secagg_spec.commands import index
from secagg_spec.commands.options import Rules
from secagg_spec.conformance.adapter import declared
from secagg_spec.errors import UsageError
from secagg_spec.history import Changes, History, HistoryError, Text, Version

_WIDTH = 100
_EPILOG = """examples:
  secagg-spec text               the version, its digest as in a report,
                                 and how much each version changed
  secagg-spec text 0.1.0         the requirements that a version added,
                                 changed, moved and withdrew
  secagg-spec text --regenerate  write spec/history.toml, the tables in the
                                 helper for adapters, spec/operations.json
                                 and spec/explain.json again, in a checkout

exit codes:
  0  done
  2  wrong usage; or the history of the text cannot be used, or would lose
     an id"""


def add_parser(commands: Any) -> None:
    """Add ``text`` to the commands."""
    parser = commands.add_parser(
        "text",
        description="Print the version of the text, and what each version changed.",
        epilog=_EPILOG,
    )
    parser.add_argument("version", nargs="?", metavar="VERSION", help="list the changes of one version")
    parser.add_argument(
        "--regenerate", action="store_true", help="write what follows from the text again, in a checkout"
    )
    parser.set_defaults(run=main, rules=Rules(only={"regenerate": ()}))


def main(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    try:
        lines = _regenerate(_checkout()) if options.regenerate else _shown(history.load(), options.version)
        print("\n".join(lines))
    except HistoryError as error:
        raise UsageError(str(error)) from None
    return 0


def _checkout() -> Path:
    path = resources.root("spec") / history.FILE
    if not (path.parents[1] / "pyproject.toml").is_file():
        raise UsageError("--regenerate needs a checkout")
    return path


def _regenerate(path: Path) -> Iterator[str]:
    """Write the history, the helper and the list of operations again; write nothing if an id would be lost."""
    now = history.text()
    new = history.renewed(history.read(path), now)
    system.write_whole(path, history.written(new))
    yield f"{path.parent.name}/{path.name}"
    yield from _regenerated_operations(path.parent)
    yield _counts(new.present, history.changes(new, new.present, now))


def _regenerated_operations(spec: Path) -> Iterator[str]:
    """Write the tables of operations into the helper for adapters, and then the list that follows from them."""
    helper = declared.written()
    if helper != declared.SDK.read_text(encoding="utf-8"):
        system.write_whole(declared.SDK, helper)
        yield f"{declared.SDK.name}: its tables are new, so run this once more"
        return
    from secagg_spec.conformance.reports import operations  # noqa: PLC0415 - the checks take a second to load

    for name, written in ((operations.FILE, operations.written), (index.FILE, index.written)):
        system.write_whole(spec / name, written())
        yield f"{spec.name}/{name}"


def _shown(book: History, number: str | None) -> Iterator[str]:
    now = history.text()
    for fault in history.faults(book, now):
        raise HistoryError(fault)
    if number is None:
        yield f"the text, version {now.number}, {book.present.standing}: {len(now.clauses)} requirements"
        yield f"digest {now.digest}"
        yield from (_counts(version, history.changes(book, version, now)) for version in reversed(book.versions))
        return
    found = [version for version in book.versions if version.number == number]
    if not found:
        raise UsageError(f"there is no version {number!r} of the text; {_known(book)}")
    yield from _listed(found[0], history.changes(book, found[0], now), now)


def _known(book: History) -> str:
    return f"the versions are {', '.join(version.number for version in book.versions)}"


def _counts(version: Version, changed: Changes) -> str:
    parts = [f"{len(ids)} {kind}" for kind, ids in vars(changed).items() if ids and kind != "pages"]
    other = f"other words of {', '.join(changed.pages)}" if changed.pages else ""
    return f"{version.number}, {version.standing}: {', '.join([*parts, *([other] if other else [])]) or 'no change'}"


def _listed(version: Version, changed: Changes, now: Text) -> Iterator[str]:
    yield f"{version.number}, {version.standing}"
    yield f"digest {version.text or now.digest}"
    for kind, names in vars(changed).items():
        if names:
            yield f"{'other words of' if kind == 'pages' else kind}:"
            yield from _wrapped(names)


def _wrapped(names: Sequence[str]) -> Iterator[str]:
    indent = "  "
    yield from textwrap.wrap(
        ", ".join(names), _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
