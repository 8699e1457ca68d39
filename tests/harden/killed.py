"""Commands that are killed at random moments: each file is the old one or the new one, and the next run ends as ever.

The commands run in a copy of the checkout. What a kill may leave beside a file is a hidden one with the ending
``.part``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from secagg_spec.conformance.running import repros
from secagg_spec.experiments import results

ROOT = Path(__file__).parents[2]
OUT = "killed"
"""The folder of a copy that the commands write into, if they do not write into the text."""
CLI = (sys.executable, "-m", "secagg_spec.cli")


@dataclass(frozen=True)
class Job:
    """A command, the folder that it writes into, and its exit code: the first time, and where files stand already.

    `stale` are files of JSON that stand there in another form, so that the command writes them.
    """

    name: str
    command: tuple[str, ...]
    place: str = OUT
    ends: int = 0
    again: int = 0
    stale: tuple[str, ...] = ()


def _page(path: Path) -> None:
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def _picture(path: Path) -> None:
    data = path.read_bytes().rstrip()
    assert data.endswith(b"IEND\xaeB`\x82" if path.suffix == ".png" else b"</svg>")


def _table(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len({line.count(",") for line in lines}) == 1


def _lines(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        json.loads(line)


def _repro(path: Path) -> None:
    repros.load(path.with_name(path.name.replace(".expected.json", ".jsonl")))


READS: Mapping[str, Callable[[Path], object]] = {
    "results.json": results.read,
    ".expected.json": _repro,
    ".html": _page,
    ".xml": ET.parse,
    ".jsonl": _lines,
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".csv": _table,
    ".share": lambda path: float(path.read_text(encoding="utf-8")),
    ".svg": _picture,
    ".png": _picture,
}
"""How a file that a command made is read, by the end of its name: a cut one is not read."""
_REPORTS = ("--json", f"{OUT}/report.json", "--html", f"{OUT}/report.html", "--junit", f"{OUT}/report.xml")
_BROKEN = (sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant", "recovery-adds-the-mask")
_VECTORS = ("vectors/arithmetic.json", "vectors/shamir.json", "vectors/staleness.json")
JOBS = (
    Job("conform, reports", (*CLI, "conform", "--target", "reference", "-k", "shamir", *_REPORTS)),
    Job(
        "conform, repros",
        (*CLI, "conform", "-k", "lightsecagg.server/bad", "--fuzz", "5", "--repro", f"{OUT}/repro", "--", *_BROKEN),
        ends=1,
    ),
    Job("vectors", (*CLI, "vectors", "--regenerate"), "spec", stale=_VECTORS),
    Job("text", (*CLI, "text", "--regenerate"), "spec", stale=("operations.json", "explain.json")),
    Job("power", (*CLI, "power", "--regenerate", "-k", "recovery-adds-the-mask"), "spec", stale=("power.json",)),
    Job("reproduce", (*CLI, "reproduce", "heterosag-fig5", "--preset", "tiny", "--out", OUT)),
    Job("selection", (*CLI, "selection", "--users", "12", "--per-round", "4", "--privacy", "2", "--out", OUT)),
    Job("init", (*CLI, "init", "--lang", "python", "--into", OUT), again=2),
    Job("make vectors", ("make", "vectors", f"BIN={Path(sys.executable).parent}", "VENV=made"), "spec", stale=_VECTORS),
)


@dataclass
class Killed:
    """What came of the kills of a job."""

    job: str
    kills: int = 0
    early: int = 0
    left: int = 0
    defects: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        found = "; ".join(self.defects) or "nothing lost, nothing half written"
        return f"{self.job}: {self.kills} kills, {self.left} of them left a hidden file; {found}"


def copied(into: Path) -> Path:
    """Return a copy of the checkout, without what it ignores."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    (into / "made").mkdir()
    (into / "made" / "core").touch()
    return into


def killed(job: Job, kills: int, random: Random) -> Killed:
    """Kill a job at so many random moments, and run it to its end after each fourth kill."""
    tally = Killed(job.name)
    with tempfile.TemporaryDirectory(prefix="harden ü ") as folder:
        tree = copied(Path(folder))
        for name in job.stale:
            path = tree / job.place / name
            path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
        before = _content(tree / job.place)
        began = time.monotonic()
        ended = _run(job, tree)
        longest = time.monotonic() - began
        assert ended == job.ends, f"{job.name} ends with {ended}"
        after = _content(tree / job.place)
        assert all(after[name] != before[name] for name in job.stale), f"{job.name} does not write what is stale"
        for at in range(kills):
            _reset(tree / job.place, before)
            tally.kills += 1
            tally.early += _run(job, tree, random.uniform(0, longest)) is not None
            _check(tally, tree / job.place, before, after)
            if at % 4 == 0:
                _check_next(tally, job, tree, after)
    return tally


def _run(job: Job, tree: Path, kill_after: float | None = None) -> int | None:
    """Run a job; return its exit code, or None if it was killed."""
    (tree / OUT).mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": str(tree / "reference"), "PYTHONDONTWRITEBYTECODE": "1"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        job.command, cwd=tree, env=environment, stdout=quiet, stderr=quiet, start_new_session=True
    ) as process:
        try:
            return process.wait(kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def _content(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _reset(place: Path, before: Mapping[str, bytes]) -> None:
    now = _content(place)
    for name in now:
        if now[name] != before.get(name):
            (place / name).unlink()
    for name in before:
        if now.get(name) != before[name]:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(before[name])


def _check(tally: Killed, place: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Note each file that is neither the old one nor the new one, and cannot be read as a whole one either."""
    now = _content(place)
    parts = {name for name in now if name.endswith(".part")}
    tally.left += bool(parts)
    tally.defects += [f"{name} is lost" for name in before if name not in now]
    for name in sorted(set(now) - parts):
        if now[name] not in (before.get(name), after.get(name)):
            _check_whole(tally, place / name, name)


def _check_whole(tally: Killed, path: Path, name: str) -> None:
    read = next((read for end, read in READS.items() if name.endswith(end)), None)
    try:
        assert read is not None, "neither old nor new"
        read(path)
    except Exception as error:
        tally.defects.append(f"{name} is cut: {type(error).__name__}: {error}"[:200])


def _check_next(tally: Killed, job: Job, tree: Path, after: Mapping[str, bytes]) -> None:
    """Run the job to its end, and note what differs from an undisturbed run: the code, or which files there are."""
    there = set(_content(tree / job.place))
    ended = _run(job, tree)
    if ended not in (job.ends, job.again if there - {name for name in there if name.endswith(".part")} else job.ends):
        tally.defects.append(f"the next run ends with {ended}")
    made = {name for name in _content(tree / job.place) if not name.endswith(".part")}
    if ended == job.ends and made != set(after):
        tally.defects.append(f"the next run makes other files: {sorted(made ^ set(after))[:4]}")
