"""Cells are kept at once, run once, and give the same in any order, in any number of processes and on a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import secagg_spec
from secagg_spec import system
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import sweeps
from secagg_spec.experiments.experiment import Context, Data
from secagg_spec.experiments.sweeps import Sweep, Swept
from tests.experiments import toy
from tests.quick import exhaustive

ROOT = Path(__file__).parents[2]
SETTINGS = {"data": "none", "seeds": 3, "fails": ""}
CELLS = tuple(toy.cells(SETTINGS))


class Ear:
    """Hears what a sweep tells."""

    def __init__(self) -> None:
        self.report: list[Any] = []

    def begin(self, cells: int, kept: int, under_way: Any) -> None:
        """Keep it."""
        self.report.append((cells, kept))

    def finished(self) -> None:
        """Keep it."""
        self.report.append("finished")

    def damaged(self, path: Path) -> None:
        """Keep it."""
        self.report.append(path.name)


def sweep(folder: Path, cells: Sequence[Data] = CELLS, name: str = toy.NAME) -> Sweep:
    """A sweep of the toy's cells."""
    return Sweep(toy.MODULE, name, cells, {}, Context(), folder)


def swept(folder: Path, **options: Any) -> tuple[Swept, list[Any]]:
    """What a sweep in one process gives, and what it tells."""
    ear = Ear()
    return sweeps.run(sweep(folder), ear, **{"jobs": 1, **options}), ear.report


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """The results of one process, in the order of the experiment."""
    return swept(tmp_path_factory.mktemp("expected"))[0]


@pytest.mark.slow
@pytest.mark.requirement("EXP-26")
def test_two_processes_give_what_one_gives(tmp_path: Path, expected: Swept) -> None:
    assert swept(tmp_path, jobs=2)[0].results == expected.results


@pytest.mark.requirement("EXP-26")
def test_the_order_of_cells_makes_no_difference(tmp_path: Path, expected: Swept) -> None:
    found = sweeps.run(sweep(tmp_path, CELLS[::-1]), Ear(), jobs=1)
    assert found.results == expected.results[::-1]


@pytest.mark.slow
@pytest.mark.requirement("EXP-26")
@exhaustive
def test_a_cluster_gives_what_one_process_gives(tmp_path: Path, expected: Swept) -> None:
    from distributed import LocalCluster

    start: Any = LocalCluster
    quiet = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
    with start(n_workers=2, threads_per_worker=1, **quiet) as cluster:
        found, report = swept(tmp_path, scheduler=cluster.scheduler_address)
    assert found.results == expected.results
    assert found.failures == ()
    assert report == [(6, 0), *["finished"] * 6]
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.requirement("EXP-26")
def test_a_kept_cell_gives_what_a_fresh_one_gives(tmp_path: Path, expected: Swept) -> None:
    swept(tmp_path)
    found, report = swept(tmp_path)
    assert found.results == expected.results
    assert report == [(6, 6)]


@pytest.mark.requirement("EXP-25")
def test_a_finished_cell_is_kept_before_the_next_is_run(tmp_path: Path) -> None:
    class Counting(Ear):
        def finished(self) -> None:
            self.report.append(len(list(tmp_path.glob("*.json"))))

    ear = Counting()
    sweeps.run(sweep(tmp_path), ear, jobs=1)
    assert ear.report == [(6, 0), 1, 2, 3, 4, 5, 6]
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


@pytest.mark.requirement("EXP-25")
def test_only_cells_that_are_not_kept_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, folder = tmp_path / "log", tmp_path / "cells"
    sweeps.run(sweep(folder, CELLS[:2]), Ear(), jobs=1)
    monkeypatch.setenv("TOY_LOG", str(log))
    assert swept(folder)[1] == [(6, 2), *["finished"] * 4]
    assert log.read_text(encoding="utf-8").splitlines() == ["plain 2", "secure 0", "secure 1", "secure 2"]
    assert swept(folder, anew=True)[1] == [(6, 0), *["finished"] * 6]


@pytest.mark.requirement("EXP-25")
def test_a_kept_cell_is_one_of_the_same_experiment_cell_data_device_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sweep(tmp_path)
    keys = {
        first.key(CELLS[0]),
        first.key(CELLS[1]),
        first.key({**CELLS[0], "more": 1}),
        replace(first, name="toy-fails").key(CELLS[0]),
        replace(first, hashes={"digits": {"file": "a" * 64}}).key(CELLS[0]),
        replace(first, hashes={"digits": {"file": "b" * 64}}).key(CELLS[0]),
        replace(first, context=Context(device="cuda")).key(CELLS[0]),
    }
    monkeypatch.setattr(sweeps, "__version__", "0")
    keys.add(first.key(CELLS[0]))
    monkeypatch.setattr(sweeps, "FORMAT", 0)
    keys.add(first.key(CELLS[0]))
    assert len(keys) == 9
    assert {len(key) for key in keys} == {64}


@pytest.mark.requirement("EXP-25")
def test_a_kept_cell_does_not_depend_on_where_things_lie(tmp_path: Path) -> None:
    first = sweep(tmp_path)
    cell = dict(reversed(list(CELLS[0].items())))
    elsewhere = replace(first, folder=Path("other"), context=Context(data=Path("other")))
    assert elsewhere.key(cell) == first.key(CELLS[0])


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _altered(text: str) -> str:
    content = json.loads(text)
    content["found"]["product"] += 1.0
    return json.dumps(content)


def _of_another(text: str) -> str:
    content = json.loads(text)
    del content["digest"]
    content["key"] = "0" * 64
    return json.dumps({**content, "digest": sweeps.digest(content)})


def _sealed(**changes: Any) -> Callable[[str], str]:
    """What writes other members into a cell, and seals it again."""

    def harm(text: str) -> str:
        content = {**json.loads(text), **changes}
        del content["digest"]
        return json.dumps({**content, "digest": sweeps.digest(content)})

    return harm


def _deep(text: str) -> str:
    return "[" * 100_000


def _twice(text: str) -> str:
    return text.replace('"digest":', '"seconds":1.0,"digest":')


_HARMS: list[Callable[[str], str]] = [
    _cut,
    _altered,
    _of_another,
    lambda text: "",
    lambda text: "[1]",
    lambda text: "\0",
    _deep,
    _twice,
]
_HARMS += [_sealed(found=None), _sealed(found=[]), _sealed(seconds=None)]


@pytest.mark.requirement("EXP-25")
@pytest.mark.parametrize("harm", _HARMS)
def test_a_damaged_kept_cell_is_said_and_run_again(tmp_path: Path, expected: Swept, harm: Any) -> None:
    swept(tmp_path)
    path = tmp_path / f"{sweep(tmp_path).key(CELLS[3])}.json"
    path.write_text(harm(path.read_text(encoding="utf-8")), encoding="utf-8")
    found, report = swept(tmp_path)
    assert report == [path.name, (6, 5), "finished"]
    assert found.results == expected.results
    assert swept(tmp_path)[1] == [(6, 6)]


@pytest.mark.requirement("EXP-25")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_that_fails_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    cells = toy.cells({**SETTINGS, "fails": "plain 1"})
    found = sweeps.run(sweep(tmp_path, cells), Ear(), jobs=jobs)
    assert [one.cell for one in found.results] == [cells[0], *cells[2:]]
    assert [one.cell for one in found.failures] == [cells[1]]
    assert found.failures[0].error.startswith("ZeroDivisionError: nothing to divide by (toy.py, line ")
    assert len(list(tmp_path.iterdir())) == 5


def test_what_json_does_not_hold_is_an_error_of_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = toy.experiment(run=lambda cell, context: {"accuracy": float("nan")})
    monkeypatch.setattr(toy, "EXPERIMENTS", (strange,))
    assert str(sweeps.run_cell(toy.MODULE, toy.NAME, CELLS[0], Context(), tmp_path / "x")).startswith("ValueError: ")


@pytest.mark.slow
def test_a_process_that_is_ended_from_outside_is_an_error_of_the_cells_that_are_left(tmp_path: Path) -> None:
    found = sweeps.run(sweep(tmp_path, [{"seed": 0}, {"seed": 1}], "ends"), Ear(), jobs=2)
    assert found.results == ()
    assert {one.error for one in found.failures} == {
        "its process was ended from outside: there may be too little memory"
    }


def test_a_scheduler_that_is_lost_is_an_error_of_the_cells_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Future:
        def result(self) -> None:
            raise TimeoutError("connection lost")

    class Client:
        def __enter__(self) -> Client:
            return self

        def __exit__(self, *ended: object) -> None:
            pass

        def submit(self, *task: object, pure: bool) -> Future:
            return Future()

    monkeypatch.setattr(sweeps, "_client", lambda address: (Client(), list))
    found = swept(tmp_path, scheduler="tcp://127.0.0.1:1")[0]
    assert found.results == ()
    assert [one.error.partition(" (")[0] for one in found.failures] == ["TimeoutError: connection lost"] * 6


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:1", "nonsense://1", "127.0.0.1"):
        with pytest.raises(ParameterError, match="scheduler = "):
            swept(tmp_path, scheduler=address)


# -------------------------------------------------------------------------------------------------- kills, interrupts


def started(folder: Path) -> subprocess.Popen[str]:
    """Start the toy's command in a process group of its own; cells of the second scheme wait until the gate is open."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(secagg_spec.__file__).parents[1]))),
        "TOY_LOG": str(folder / "log"),
        "TOY_GATE": str(folder),
    }
    command = [sys.executable, "-m", toy.MODULE, toy.NAME, "--preset", "tiny", "--out", str(folder / "out")]
    return subprocess.Popen(
        command,
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_kept(folder: Path, count: int) -> None:
    """Wait until so many cells are kept."""
    end = time.monotonic() + 60
    while len(list((folder / "out" / toy.NAME / "cells").glob("*.json"))) < count:
        assert time.monotonic() < end, "no cell was kept"
        time.sleep(0.05)


def run_again(folder: Path) -> list[str]:
    """Open the gate, run the command again, and return which cells ran then."""
    log = folder / "log"
    log.unlink()
    (folder / "open").touch()
    again = started(folder)
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert "CONFIRMED: BAS-FIG1" in out
    assert "3 of 6 cells are kept from before" in err
    return log.read_text(encoding="utf-8").splitlines()


def results(folder: Path) -> Any:
    """What the run found, without measured times."""
    content = json.loads((folder / "out" / toy.NAME / "results.json").read_text(encoding="utf-8"))
    return [(one["cell"], one["found"]) for one in content["results"]], content["statements"]


@pytest.mark.slow
@pytest.mark.requirement("EXP-25", "EXP-26")
def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path, expected: Swept) -> None:
    process = started(tmp_path)
    wait_for_kept(tmp_path, 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert sorted(run_again(tmp_path)) == ["secure 0", "secure 1", "secure 2"]
    found, statements = results(tmp_path)
    assert found == [(dict(one.cell), one.found) for one in expected.results]
    assert [one["verdict"] for one in statements] == ["confirmed"]


@pytest.mark.requirement("EXP-25")
@pytest.mark.parametrize(
    "tracker", ["joblib.externals.loky.backend.resource_tracker", "multiprocessing.resource_tracker"]
)
def test_a_janitor_ignores_interrupts_from_its_first_moment_on(monkeypatch: pytest.MonkeyPatch, tracker: str) -> None:
    said = list[str]()
    asked = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"

    def start() -> None:
        said.append(subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(f"{tracker}.ensure_running", start)
    sweeps._start_janitor()
    with system.interrupts_held():
        pass
    assert said == ["True\n"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
@pytest.mark.requirement("EXP-25")
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")])
def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path, number: signal.Signals, said: str) -> None:
    process = started(tmp_path)
    wait_for_kept(tmp_path, 3)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err.splitlines()[-2:] == [
        f"toy: 3 of 6 cells are kept in {tmp_path / 'out' / 'toy' / 'cells'}; run the same command to continue",
        said,
    ]
    assert "Traceback" not in err
    assert {path.suffix for path in (tmp_path / "out" / "toy" / "cells").iterdir()} == {".json"}
    assert sorted(run_again(tmp_path)) == ["secure 0", "secure 1", "secure 2"]
