"""The command ``secagg-spec selection``: compares schemes that choose the users of many rounds."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import system
from secagg_spec.arithmetic import numerals
from secagg_spec.conformance.adapter.plain import visible
from secagg_spec.conformance.adapter.values import writable_file, writable_pictures
from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.experiments import pictures, selection
from secagg_spec.experiments.selection import Course, Settings
from secagg_spec.privacy.wording import numbers
from secagg_spec.simulate.narration import counted

_BAR = 24
_WIDTH = 100
_CHARACTERS = 20
"""The longest number in an option."""
_EPILOG = """Users get the rates of --dropout in random order and as equally as possible. All schemes see the same users
drop out.

privacy, strong: the fewest users who were always summed together. privacy, weak: the fewest users that a combination of
rounds isolates (the paper's figure 4a). If it is not known exactly, a range that certainly contains it
(spec/multi-round.md, section 4). A scheme that had no round has neither, and no statement compares it: in --json,
its privacy is 0 then, and "holds" is null.

exit codes:
  0  done
  2  wrong usage, or a file that cannot be written"""


def add_parser(commands: Any) -> None:
    """Add ``selection`` to the commands."""
    parser = commands.add_parser(
        "selection",
        description="Choose users round by round as Multi-RoundSecAgg does, and as the other schemes of its paper do.\n"
        "Show what the server learns from all sums, how fair the choice is, and how many users take part.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("--users", metavar="N", default="120", help="users on the roster (120)")
    add("--per-round", metavar="K", default="12", help="users of one round (12)")
    add("--privacy", metavar="T,T,…", default="6,4,3", help="users of a batch, for each scheme with batches (6,4,3)")
    add("--rounds", metavar="J", default="200", help="how many rounds (200)")
    add("--dropout", metavar="P,P,…", default="0.1,0.2,0.3,0.4,0.5", help="probabilities (0.1,0.2,0.3,0.4,0.5)")
    add("--rule", choices=selection.RULES, help="how batches are chosen (fair; uniform for a single probability)")
    add("--seed", metavar="S", default="0", help="seed of all draws (0)")
    add("--out", type=Path, metavar="DIR", help="draw figures 3, 4 and 5 of the paper into a folder, as SVG and PNG")
    add("--json", type=Path, metavar="FILE", help="write the numbers of all rounds to a file")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command and return exit code 0."""
    settings = _settings(options)
    _refuse_unwritable(options)
    bar = _Bar()
    courses = selection.run(settings, bar)
    bar.end()
    print("\n".join(_lines(settings, courses)))
    if options.json is not None:
        _write(options.json, json.dumps(as_json(settings, courses), indent=1) + "\n")
        print(f"all numbers are in {visible(str(options.json))}")
    if options.out is not None:
        print(f"drawn: {visible(', '.join(map(str, _drawn(courses, options.out))))}")
    return 0


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        _whole("users", options.users),
        _whole("per_round", options.per_round),
        numbers("--privacy", options.privacy),
        _whole("rounds", options.rounds),
        tuple(numerals.probability("dropout", part.strip()) for part in options.dropout.split(",")),
        _whole("seed", options.seed),
        options.rule,
    )


def _whole(name: str, text: str) -> int:
    found = numerals.integer(text) if len(text) <= _CHARACTERS else None
    if found is None:
        raise ParameterError(name, text, f"a whole number of at most {_CHARACTERS} characters")
    return found


def _refuse_unwritable(options: argparse.Namespace) -> None:
    if options.json is not None:
        writable_file("--json", options.json, begins='{\n "per_round": ')
    if options.out is not None:
        pictures.library()
        drawn = writable_pictures("--out", options.out, *pictures.FIGURES)
        if options.json is not None and options.json.resolve() in [path.resolve() for path in drawn]:
            raise UsageError(f"--json {options.json}: --out draws a picture there, and one of them would be lost")


def _write(path: Path, text: str) -> None:
    try:
        system.write_whole(path, text)
    except OSError as error:
        raise UsageError(f"--json {path}: {error.strerror}") from None


def _drawn(courses: Sequence[Course], folder: Path) -> tuple[Path, ...]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return pictures.draw(courses, folder)
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from None


class _Bar:
    """Shows a progress bar on a terminal; elsewhere nothing."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def __call__(self, what: str, share: float) -> None:
        if self._terminal:
            full = round(_BAR * share)
            line = f"[{'#' * full}{'.' * (_BAR - full)}] {what}"
            print(f"\r\x1b[2K{line[:79]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------------- printed text


def _lines(settings: Settings, courses: Sequence[Course]) -> Iterator[str]:
    rounds = f"each of {settings.rounds} rounds" if settings.rounds > 1 else "1 round"
    yield f"{counted(settings.users, 'user')}, {settings.per_round} in {rounds}, seed {settings.seed}"
    yield from _rates(settings)
    yield ""
    yield from _table(courses)
    if all(course.scheme.name != "Partition" for course in courses):
        yield f"no partition: {settings.per_round} does not divide {settings.users}"
    if any(not course.strong for course in courses):
        yield "no round: there is no sum, and so no privacy to compare"
    yield ""
    yield "statements of the paper, in this run:"
    for verdict in selection.verdicts(courses):
        holds = {True: "holds   ", False: "FAILS   ", None: selection.NO_ROUND}[verdict.holds]
        text = f"{holds}  {verdict.claim}  {verdict.statement} ({verdict.shown})"
        yield from textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent=" " * 12)


def _rates(settings: Settings) -> Iterator[str]:
    shown = ", ".join(f"{float(rate):g}" for rate in settings.rates)
    if settings.equal:
        yield f"each user drops out with probability {float(settings.rates[0]):g}, independently in each round"
        return
    few, more = divmod(settings.users, len(settings.rates))
    each = f"{few} or {few + 1} users" if more else counted(few, "user")
    yield f"each user drops out with its own probability, independently in each round: {shown},"
    yield f"assigned to users at random, {each} for each"


def _table(courses: Sequence[Course]) -> Iterator[str]:
    rows = [
        ("", "", "privacy", "privacy", "fairness", "", "expected", "family"),
        ("scheme", "T", "strong", "weak", "gap", "cardinality", "cardinality", "size"),
        *map(_row, courses),
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(
            [f"{row[0]:{widths[0]}}", *(f"{text:>{w}}" for text, w in zip(row[1:], widths[1:], strict=True))]
        )


def _row(course: Course) -> tuple[str, ...]:
    ends = (course.gaps[-1], course.cardinalities[-1], course.expected)
    gap, mean, expected = (f"{float(number):.3f}" for number in ends)
    name, T = course.scheme.name, str(course.scheme.parameters.T)
    return name, T, *course.privacy, gap, mean, expected, _count(course.family)


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"{number:.1e}" if number < 10**300 else f"10^{len(str(number)) - 1}"


def as_json(settings: Settings, courses: Sequence[Course]) -> dict[str, Any]:
    """Return all numbers as JSON: fractions as strings, series with one member for each round."""
    return {
        "per_round": settings.per_round,
        "users": settings.users,
        "rounds": settings.rounds,
        "seed": settings.seed,
        "dropout": [str(rate) for rate in selection.rates_of_users(settings)],
        "schemes": [{**selection.as_json(course), "log": _log(course)} for course in courses],
        "statements": [
            {"claim": one.claim, "statement": one.statement, "holds": one.holds, "shown": one.shown}
            for one in selection.verdicts(courses)
        ],
    }


def _log(course: Course) -> list[list[int]]:
    return [[int(user) for user in row.nonzero()[0]] for row in course.log]
