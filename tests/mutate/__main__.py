"""``python -m tests.mutate``: edit the source once, run the nearest tests, then wider ones, and say what nothing kills.

Each edit is made in a fork of this process. A fork asks the stored test vectors that run the function first, then the
tests of its package, then other fast tests that run it (`calls`). Before any edit is made, all of them must pass.
A stage that takes three times as long as it took then, and a minute, is ended: the edit is killed, since it hangs.
At last mypy reads what lives, as `make check` does.
What came out is kept in a file as it comes: a run that is ended goes on where it stopped.

exit codes:
  0  at least one edit was tried, and each is killed or listed in spec/equivalent.toml
  1  an edit survives, or none was tried
  2  wrong usage
  3  a test fails without any edit
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO

from secagg_spec.commands.options import jobs
from secagg_spec.conformance.adapter.values import count
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import engine as edits
from secagg_spec.conformance.mutants.engine import Edit, EditError, diff, planted
from secagg_spec.conformance.mutation import evidence
from secagg_spec.conformance.vectors.base import Vector
from tests.mutate.calls import Calls, ControlError, near, passes, recorded
from tests.mutate.drawn import PACKAGE, PACKAGES, Drawn, draw, of_lines

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".secagg-spec" / "mutate"
STORED = ROOT / "spec" / "mutation.json"
SURVIVES, UNFIT, BROKEN = "survives", "unfit", "broken"
_STAGES = ("vectors", "package", "wide")
_TYPES = "types"
_WIDE = 40
"""So many seconds of wider tests are run, the shortest first; what lives then counts as a survivor."""
_OPEN = (SURVIVES, BROKEN)
_NUMBERS = {word: number for number, word in enumerate((SURVIVES, *_STAGES, UNFIT, BROKEN))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Try edits, and print what became of them."""
    given = _parser().parse_args(arguments)
    chosen = of_lines(_changed(given.changed)) if given.changed else draw(given.seed, given.count)
    shard, of = given.shard
    chosen = [each for each in chosen if int(each.id, 16) % of == shard - 1]
    if not chosen:
        print("no edit was tried: there is nothing to change there", file=sys.stderr)
        return 1
    path = KEPT / ("changed.jsonl" if given.changed else f"seed-{given.seed}.jsonl")
    try:
        outcomes = _tried(chosen, path, given.jobs, given.again)
    except ControlError as error:
        print(error, file=sys.stderr)
        return 3
    return _said(chosen, outcomes, None if given.changed or of > 1 else given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of what is drawn (1)")
    parser.add_argument(
        "--count", type=partial(count, what="edits"), default=1000, metavar="N", help="how many edits are drawn (1000)"
    )
    parser.add_argument(
        "--changed", type=_revision, metavar="REV", help="all edits of the lines that changed since a revision"
    )
    parser.add_argument(
        "--shard", default=(1, 1), type=_shard, metavar="K/N", help="only the K-th of N parts of the edits"
    )
    parser.add_argument("--jobs", type=jobs, default=os.cpu_count() or 1, metavar="N", help="edits at a time")
    parser.add_argument("--again", action="store_true", help="try the edits again that survived before")
    parser.add_argument("--store", action="store_true", help="store what came out in spec/mutation.json")
    return parser


def _shard(text: str) -> tuple[int, int]:
    """Return K and N of a shard."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with 1 <= K <= N, such as 2/4")
    return int(found[1]), int(found[2])


def _revision(text: str) -> str:
    """Return a revision that git knows."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}"]
    if subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode:
        raise argparse.ArgumentTypeError(f"{text!r} is no revision of this repository")
    return text


def _changed(revision: str) -> dict[str, set[int]]:
    """Return the lines of each file of the package that changed since a revision."""
    command = ["git", "diff", "-U0", "--no-color", revision, "--", "reference/secagg_spec"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: dict[str, set[int]] = {}
    file = ""
    for line in text.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/reference/secagg_spec/")
        elif at := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(at[1])
            found.setdefault(file, set()).update(range(first, first + int(at[2] or 1)))
    return found


# ---------------------------------------------------------------------------------------------------------- trying


def _tried(chosen: Sequence[Drawn], path: Path, jobs: int, again: bool) -> dict[str, str]:
    """Return what became of each edit; what the file holds is not tried again, but for survivors if that is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {}
    if path.exists():
        known = dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    left = [each for each in chosen if each.id not in known or (again and known[each.id] in _OPEN)]
    calls = recorded(path.parent)
    evidence._called()
    running: dict[int, Drawn] = {}
    with path.open("a", encoding="utf-8") as kept:
        for each in left:
            if len(running) >= jobs:
                _collect(running, known, kept)
            running[_forked(each, calls)] = each
            print(f"\r{len(known)} of {len(chosen)} edits tried", end="", file=sys.stderr, flush=True)
        while running:
            _collect(running, known, kept)
        print(file=sys.stderr)
        for each in left:
            if known[each.id] == SURVIVES and _mistyped(each):
                _keep(each, _TYPES, known, kept)
    return {each.id: known[each.id] for each in chosen}


def _collect(running: dict[int, Drawn], known: dict[str, str], kept: TextIO) -> None:
    """Wait for a fork to end, and keep what it says."""
    pid, status = os.wait()
    _keep(running.pop(pid), _word(os.waitstatus_to_exitcode(status)), known, kept)


def _keep(each: Drawn, word: str, known: dict[str, str], kept: TextIO) -> None:
    known[each.id] = word
    kept.write(json.dumps([each.id, word]) + "\n")
    kept.flush()


def _mistyped(each: Drawn) -> bool:
    """Return whether mypy refuses the edit; the file stays as it is."""
    source = PACKAGE / each.edit.file
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as edited:
        edited.write(each.edit.applied(source.read_text("utf-8")))
        edited.flush()
        command = ["--cache-dir", os.devnull, "--shadow-file", str(source), edited.name, str(source)]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *command], cwd=ROOT, capture_output=True, text=True, check=False
        )
    if done.returncode not in (0, 1):
        raise ControlError(f"mypy ended with {done.returncode}: {done.stderr}")
    return done.returncode == 1


def _word(code: int) -> str:
    """Return what the exit code of a fork says."""
    if code < 0:
        return "time" if code == -signal.SIGALRM else "crash"
    return list(_NUMBERS)[code]


def _forked(each: Drawn, calls: Calls) -> int:
    sys.stdout.flush()
    child = os.fork()
    return child or _become(each, calls)


def _become(each: Drawn, calls: Calls) -> NoReturn:
    """Make an edit and end with the number of the stage that kills it, or 0."""
    number = _NUMBERS[BROKEN]
    with suppress(BaseException):
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        os.environ["HYPOTHESIS_PROFILE"] = "quick"
        number = _NUMBERS[_outcome(each, calls)]
    os._exit(number)


def _outcome(each: Drawn, calls: Calls) -> str:
    codes = set(evidence._functions(each.edit.edited()))
    vectors = [evidence._vectors()[id] for id, called in evidence._called().items() if called & codes]
    tests = calls.running(each)
    nearest = near(each, tests)
    wider = calls.within([id for id in tests if id not in set(nearest)], _WIDE)
    stages: tuple[tuple[str, list[str], Callable[[], bool]], ...] = (
        ("vectors", [], lambda: _answered(vectors)),
        ("package", nearest, lambda: passes(nearest)),
        ("wide", wider, lambda: passes(wider)),
    )
    try:
        with planted(each.edit):
            for stage, chosen, passed in stages:
                signal.alarm(calls.limit(chosen))
                mutants.forget()
                if not passed():
                    return stage
    except EditError:
        return UNFIT
    return SURVIVES


def _answered(vectors: Iterable[Vector]) -> bool:
    """Return whether all vectors pass; an edit that no answer survives is killed too."""
    try:
        return not any(map(evidence._fails, vectors))
    except Exception:
        return False


# ---------------------------------------------------------------------------------------------------------- reporting


def _equivalent(chosen: Iterable[Drawn]) -> set[str]:
    """Return the ids of those edits that spec/equivalent.toml lists, with the proof that they change nothing."""
    listed = {(edit.file, _applied(edit)) for _, edit in edits.equivalent()}
    return {each.id for each in chosen if (each.edit.file, _applied(each.edit)) in listed}


def _applied(edit: Edit) -> str:
    """Return the program that an edit makes, however it is written."""
    return ast.unparse(ast.parse(edit.applied((PACKAGE / edit.file).read_text("utf-8"))))


def _said(chosen: Sequence[Drawn], outcomes: dict[str, str], store: argparse.Namespace | None) -> int:
    proved = _equivalent(each for each in chosen if outcomes[each.id] in _OPEN)
    alive = [each for each in chosen if outcomes[each.id] in _OPEN and each.id not in proved]
    for each in alive:
        print(f"{each.id}   {each.edit.file}:{each.line}   {outcomes[each.id]}\n{diff([each.edit], 0)}")
    rows = _rows(chosen, outcomes, proved)
    for line in _table(rows):
        print(line)
    if store is not None and store.store:
        record = _record(store.seed, rows, outcomes, alive)
        STORED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    tried = any(outcomes[each.id] != UNFIT for each in chosen)
    if not tried:
        print("no edit was tried: none fits the source", file=sys.stderr)
    return 0 if tried and not alive else 1


def _rows(chosen: Sequence[Drawn], outcomes: dict[str, str], proved: set[str]) -> dict[str, dict[str, int]]:
    """Return how many edits were tried, and what became of them, by package and in all."""
    rows = {}
    for package in (*PACKAGES, "all"):
        tried = [each for each in chosen if package in (each.package, "all") and outcomes[each.id] != UNFIT]
        same = sum(each.id in proved for each in tried)
        alive = sum(outcomes[each.id] in _OPEN for each in tried) - same
        killed = len(tried) - same - alive
        rows[package] = {"edits": len(tried), "killed": killed, "equivalent": same, "survive": alive}
    return {package: row for package, row in rows.items() if row["edits"]}


def _table(rows: dict[str, dict[str, int]]) -> Iterator[str]:
    yield f"{'package':<12}{'edits':>7}{'killed':>8}{'equivalent':>12}{'survive':>9}{'mutation score':>16}"
    for package, row in rows.items():
        score = row["killed"] / max(row["edits"] - row["equivalent"], 1)
        edits, killed, same, alive = row.values()
        yield f"{package:<12}{edits:>7}{killed:>8}{same:>12}{alive:>9}{score:>16.1%}"


def _record(
    seed: int, rows: dict[str, dict[str, int]], outcomes: dict[str, str], alive: Sequence[Drawn]
) -> dict[str, Any]:
    """Return what is stored: the commit, the counts, what killed how many, and each edit that lives, as a diff."""
    command = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    ends = dict(sorted(Counter(outcomes.values()).items()))
    living = {each.id: diff([each.edit], 0).splitlines() for each in alive}
    about = {"schema": "secagg-spec-mutation/1", "commit": commit, "seed": seed}
    return {**about, "packages": rows, "outcomes": ends, "alive": living}


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(code)
