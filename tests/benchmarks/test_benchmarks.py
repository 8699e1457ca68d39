"""Benchmarks give valid records, and the runner says what it cannot do. Nothing here looks at how long it takes."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks import __main__ as runner
from tests.benchmarks import record, stored, words
from tests.benchmarks.catalogue import BENCHMARKS, GROUPS, UnknownName, chosen
from tests.benchmarks.record import Absent, Aim, Benchmark, Sides
from tests.quick import exhaustive, part

from secagg_spec import schemas

APART = {"encoding-time", "secagg-masking", "secagg-sharing", "participation-command", "participation-memory"}
"""The benchmarks that start other programs, beside those of the kit; released software is set up first."""


def sides(first: list[float], second: list[float], close: Callable[[], None] = lambda: None) -> Callable[..., Sides]:
    """Sides that cost what is given, turn by turn."""
    return lambda size: Sides(iter(first).__next__, iter(second).__next__, close)


def toy(first: list[float], second: list[float], **fields: Any) -> Benchmark:
    """A benchmark with known costs."""
    known = {"turns": len(first), "warm": False} | fields
    return Benchmark("toy", "one", "another", {"size": 3}, {"size": 1}, sides(first, second), **known)


def apart(benchmark: Benchmark) -> bool:
    """Whether a benchmark starts other programs, which takes seconds."""
    return benchmark.id in APART or benchmark in GROUPS["kit"]


def tiny(benchmark: Benchmark) -> Benchmark:
    """The benchmark at its tiny sizes."""
    return replace(benchmark, sizes=benchmark.tiny, turns=1, warm=False)


# ------------------------------------------------------------------------------------------------------ the layer


def test_a_record_has_the_median_of_ratios_within_turns_and_their_range() -> None:
    found = record.run(toy([2.0, 9.0, 40.0], [1.0, 3.0, 10.0]))
    assert found["ratio"] == {"median": 3.0, "low": 2.0, "high": 4.0}
    assert found["cost"] == {"what": 9.0, "beside": 3.0}
    assert (found["id"], found["sizes"], found["turns"]) == ("toy", {"size": 3}, 3)


def test_the_first_run_of_each_side_does_not_count_where_it_only_warms_up() -> None:
    found = record.run(toy([100.0, 4.0, 4.0], [1.0, 2.0, 2.0], turns=2, warm=True))
    assert found["ratio"] == {"median": 2.0, "low": 2.0, "high": 2.0}


def test_what_the_sides_started_is_ended_even_when_one_breaks() -> None:
    ended: list[bool] = []
    benchmark = toy([1.0], [1.0], turns=2)
    benchmark = replace(benchmark, sides=sides([1.0], [1.0], lambda: ended.append(True)))
    with pytest.raises(StopIteration):
        record.run(benchmark)
    assert ended == [True]


@pytest.mark.parametrize(
    ("aim", "met"),
    [
        (Aim("at least", 3), True),
        (Aim("at least", 3.1), False),
        (Aim("at most", 3), True),
        (Aim("at most", 2.9), False),
        (Aim("at most", 9, of="what"), True),
        (Aim("at most", 8, of="what"), False),
        (Aim("at least", 4, of="beside"), False),
        (None, None),
    ],
)
def test_an_aim_is_judged_by_medians(aim: Aim | None, met: bool | None) -> None:
    assert record.met(record.run(toy([2.0, 9.0, 40.0], [1.0, 3.0, 10.0], aim=aim))) is met


def test_what_is_done_before_an_action_comes_before_it_and_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = [0.0], list[str]()

    def passes(name: str, seconds: float) -> Callable[[], None]:
        def action() -> None:
            order.append(name)
            now[0] += seconds

        return action

    monkeypatch.setattr(time, "process_time", lambda: now[0])
    assert record.processor(passes("action", 2.0), passes("before", 50.0))() == 2.0
    assert order == ["before", "action"]


def test_memory_is_what_is_held_at_most() -> None:
    assert 10**6 <= record.peak(lambda: bytes(10**6))() < 2 * 10**6
    assert record.peak(lambda: bytes(10**6), but=10**6)() < 10**6


# --------------------------------------------------------------------------------------------------- the benchmarks


def test_names_tell_the_module_and_are_given_once() -> None:
    assert sum(map(len, GROUPS.values())) == len(BENCHMARKS)
    for module, group in GROUPS.items():
        assert all(one.id.startswith(f"{module}-") for one in group)


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=lambda one: one.id)
def test_sizes_are_those_that_the_sides_take(benchmark: Benchmark) -> None:
    taken = set(inspect.signature(benchmark.sides).parameters)
    assert taken == set(benchmark.sizes) == set(benchmark.tiny)


@pytest.mark.parametrize("benchmark", [one for one in BENCHMARKS.values() if not apart(one)], ids=lambda one: one.id)
def test_a_benchmark_of_tiny_sizes_gives_a_valid_record(benchmark: Benchmark) -> None:
    demand_valid(benchmark)


@pytest.mark.slow
@pytest.mark.parametrize(
    "benchmark", part(3, [one for one in BENCHMARKS.values() if apart(one)]), ids=lambda one: one.id
)
@exhaustive
def test_a_benchmark_that_starts_programs_gives_a_valid_record(benchmark: Benchmark) -> None:
    demand_valid(benchmark)


def demand_valid(benchmark: Benchmark) -> None:
    """Demand that a benchmark gives a record that can be stored."""
    try:
        found = record.run(tiny(benchmark))
    except Absent as absent:
        pytest.skip(str(absent))
    assert list(schemas.faults(stored.document([found]), schemas.load(stored.SCHEMA))) == []
    assert found["sizes"] == benchmark.tiny


# --------------------------------------------------------------------------------------------------- the runner


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the runner know some benchmarks alone."""

    def known(*benchmarks: Benchmark) -> None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
        monkeypatch.setattr(runner, "chosen", lambda names: list(benchmarks))

    return known


def test_figures_of_blas_on_all_cores_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert runner.main(["--json", str(tmp_path / "records.json")]) == 2
    assert capsys.readouterr().err == "benchmarks: --json stores figures of BLAS on one thread: run make bench\n"
    assert not (tmp_path / "records.json").exists()


def test_a_file_that_is_no_json_is_out_of_date(tmp_path: Path) -> None:
    (tmp_path / "records.json").write_text("<<<<<<<", encoding="utf-8")
    with pytest.raises(stored.OutOfDate, match=r"records\.json is no JSON"):
        stored.load(tmp_path / "records.json")


def test_an_unknown_name_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["encoding", "speed"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("benchmarks: there is no benchmark speed; there are the modules encoding, ")
    assert all(name in said.err for name in GROUPS)


def test_a_name_is_one_of_a_module_or_of_a_benchmark() -> None:
    assert chosen([]) == list(BENCHMARKS.values())
    assert chosen(["secagg-masking"]) == [BENCHMARKS["secagg-masking"]]
    assert chosen(["kit", "encoding", "kit-jobs"]) == [*GROUPS["encoding"], *GROUPS["kit"]]
    with pytest.raises(UnknownName):
        chosen(["encoding-"])


def test_all_names_can_be_listed_and_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(BENCHMARKS)


def test_a_part_of_the_benchmarks_is_not_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    path.write_text("kept", encoding="utf-8")
    assert runner.main(["encoding", "--json", str(path)]) == 2
    assert "leave out the names" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "kept"


def test_nothing_is_stored_when_a_benchmark_cannot_run(
    tmp_path: Path, only: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(size: int) -> Sides:
        raise Absent(f"a program of size {size} is not here")

    only(toy([1.0], [1.0]), replace(toy([1.0], [1.0]), id="other", sides=absent))
    assert runner.main(["--json", str(tmp_path / "found.json")]) == 1
    said = capsys.readouterr().out
    assert "other: cannot run: a program of size 3 is not here" in said
    assert "1 could not run; nothing is stored" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["precious", None])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path: Path, only: Callable[..., None], capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    only(toy([1.0], [1.0]))
    path = tmp_path / "file"
    path.write_text(content or "")
    place = path if content else path / "found.json"
    assert runner.main(["--json", str(place)]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"benchmarks: --json {place if content else path}: ")
    assert path.read_text() == (content or "")


def test_a_run_is_printed_and_stored(
    tmp_path: Path, only: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    only(toy([0.02, 0.03, 0.05], [0.01] * 3, aim=Aim("at least", 4)))
    assert runner.main(["--json", str(tmp_path / "new" / "found.json")]) == 0
    printed = capsys.readouterr().out.split()
    assert printed == ["toy", "3", "(2", "to", "5)", "30", "ms", "/", "10", "ms", "aim", "at", "least", "4:", "missed"]
    content = stored.load(tmp_path / "new" / "found.json", {"toy": toy([0.0] * 3, [1.0], aim=Aim("at least", 4))})
    assert [one["ratio"]["median"] for one in content["records"]] == [3.0]


# --------------------------------------------------------------------------------------------------- the stored file


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A stored file of one benchmark, and its content."""
    path = tmp_path / "found.json"
    content = stored.document([record.run(toy([2.0], [1.0]))])
    stored.store(content, path)
    return path, content


KNOWN = {"toy": toy([1.0], [1.0])}


def test_the_stored_file_is_that_of_the_code() -> None:
    assert len(stored.load()["records"]) == len(BENCHMARKS)


def test_a_file_without_form_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(stored.OutOfDate, match="records must not be empty"):
        stored.store(stored.document([]), tmp_path / "found.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.update(version="0.0.9"), r"tells of version 0\.0\.9, and this is"),
        (lambda content: content["records"][0].update(id="gone"), "has 0 records of toy, and not one"),
        (lambda content: content["records"].append(content["records"][0]), "has 2 records of toy, and not one"),
        (
            lambda content: content["records"].append({**content["records"][0], "id": "old"}),
            "old, which is no benchmark",
        ),
        (
            lambda content: content["records"][0].update(sizes={"size": 4}),
            "sizes of toy is {'size': 4}, and in the code",
        ),
        (lambda content: content["records"][0].update(turns=9), "turns of toy is 9, and in the code 1"),
        (lambda content: content["records"][0].update(what="two"), "what of toy is two, and in the code one"),
        (
            lambda content: content["records"][0].update(aim={"relation": "at most", "bound": 1, "of": "ratio"}),
            "aim of toy is .* and in the code None",
        ),
        (lambda content: content["records"][0].pop("ratio"), r"records\.0\.ratio is missing"),
        (lambda content: content["records"][0]["ratio"].update(low=-1), r"records\.0\.ratio\.low"),
        (lambda content: content["environment"].pop("numpy"), r"environment\.numpy is missing"),
    ],
)
def test_a_file_that_is_out_of_date_is_refused(
    whole: tuple[Path, dict[str, Any]], change: Callable[[dict[str, Any]], object], said: str
) -> None:
    path, content = whole
    stored.load(path, KNOWN)
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(stored.OutOfDate, match=said):
        stored.load(path, KNOWN)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(stored.OutOfDate, match="make bench stores it"):
        stored.load(tmp_path / "none.json", KNOWN)


def test_the_machine_is_told_without_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: A Fast One @ 3 GHz\nmodel name\t: A Fast One @ 3 GHz\n")
    assert stored.processor(path) == "A Fast One @ 3 GHz"
    assert stored.processor(tmp_path / "none") != ""
    assert set(stored.environment()) >= {"python", "numpy", "processor", "cores"}


# --------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0001234, "s", "123 µs"),
        (0.9999, "s", "1 s"),
        (0.0125, "s", "12.5 ms"),
        (75.0, "s", "75 s"),
        (2 * 2**30, "bytes", "2 GiB"),
        (1536.0, "bytes", "1.5 KiB"),
        (5.0, "bytes", "5 bytes"),
        (1234567.0, "bits", "1,234,567 bits"),
        (12.0, "", "12"),
    ],
)
def test_an_amount_has_the_largest_unit_of_which_there_is_one(value: float, unit: str, shown: str) -> None:
    assert words.amount(value, unit) == shown


def test_a_ratio_has_a_range_where_turns_differ() -> None:
    assert words.ratio(record.run(toy([2.0, 9.0, 40.0], [1.0, 3.0, 10.0]))) == "3 (2 to 4)"
    assert words.ratio(record.run(toy([2.0], [1.0]))) == "2"
