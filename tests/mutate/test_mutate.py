"""Mutation testing: which edits are drawn, that they are tried one by one, and what is said of those that live."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from secagg_spec.conformance.mutants import engine as edits
from secagg_spec.conformance.mutants.engine import Edit, planted
from secagg_spec.conformance.mutation import evidence
from tests.mutate import __main__ as command
from tests.mutate import calls, drawn
from tests.mutate.drawn import PACKAGES, Drawn
from tests.quick import exhaustive

pytestmark = pytest.mark.slow

SOURCE = '''
class Thing:
    def size(self, a, b):
        """Keep 1 < 2 in here."""
        check(a)
        if a < b and not b:
            raise ValueError(a)
        return min(a, b) + sorted(list(x for x in a if x))[0]
'''


def test_each_kind_of_edit_is_drawn_from_a_function_and_none_from_its_docstring() -> None:
    found = list(drawn._of_file("protocols/thing.py", SOURCE))
    assert {each.edit.scope for each in found} == {"Thing.size"}
    after = [each.edit.changes[0][1] for each in found]
    parts = (
        "(a <= b)",
        "(a < b or not b)",
        "and (b):",
        " pass\n",
        "max(a, b)",
        "min(b, a)",
        " (list(",
        "[1]",
        "in a))",
    )
    assert [part for part in parts if not any(part in text for text in after)] == []
    assert all("Keep 1 < 2 in here" in text for text in after)
    assert len(set(after)) == len(after)
    assert {each.line for each in found} == {5, 6, 7, 8}


@exhaustive
def test_every_drawn_edit_of_a_package_fits_its_source() -> None:
    for each in drawn.candidates("crypto")[::25]:
        assert each.edit.applied((drawn.PACKAGE / each.edit.file).read_text("utf-8"))


@exhaustive
def test_what_is_drawn_follows_from_the_seed_and_has_enough_of_each_package() -> None:
    chosen = drawn.draw(1, 600)
    assert len(chosen) == len({each.id for each in chosen}) == 600
    assert all(sum(each.package == package for each in chosen) >= drawn.LEAST for package in PACKAGES)
    assert [each.id for each in drawn.draw(1, 600)] == [each.id for each in chosen]
    assert [each.id for each in drawn.draw(2, 600)] != [each.id for each in chosen]


@exhaustive
def test_an_edit_keeps_its_place_when_other_functions_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before, all_of_it = drawn.draw(1, 600), drawn.candidates
    left_out = {each.id for package in PACKAGES for each in all_of_it(package)[::10]}
    monkeypatch.setattr(drawn, "candidates", lambda name: [each for each in all_of_it(name) if each.id not in left_out])
    kept = {each.id for each in before} - left_out
    assert [each.id for each in drawn.draw(1, 600) if each.id in kept] == [
        each.id for each in before if each.id in kept
    ]


def test_edits_of_changed_lines_are_those_of_these_lines() -> None:
    all_of_it = [each for each in drawn.candidates("arithmetic") if each.edit.file == "arithmetic/mds.py"]
    line = all_of_it[0].line
    assert drawn.of_lines({"arithmetic/mds.py": {line}}) == [each for each in all_of_it if each.line == line]
    assert drawn.of_lines({"arithmetic/mds.py": set()}) == []


TESTS = """
import numpy as np
import pytest
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import PrimeField

MADE_AT_IMPORT = validate.integer("a", 3, 1)

@pytest.fixture(scope="module")
def made_once():
    return PrimeField(7).inverse(np.array([3], dtype=np.uint64))

def test_of_what_is_made_once(made_once):
    assert made_once == 5

@pytest.mark.parametrize("b", [1, 2])
def test_of_sums(b):
    assert PrimeField(7).add(np.array([1], dtype=np.uint64), np.array([b], dtype=np.uint64)) == 1 + b

def test_of_nothing():
    assert CONTROL
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what came out, beside a file that holds all tests; no vector is asked."""
    path = tmp_path / "test_some.py"
    path.write_text(TESTS.replace("CONTROL", "True"))
    monkeypatch.setattr(command, "KEPT", tmp_path)
    monkeypatch.setattr(calls, "FOLDERS", (str(path),))
    monkeypatch.setattr(evidence, "_called", dict)
    return tmp_path


def _edits(monkeypatch: pytest.MonkeyPatch, *made: tuple[str, str, str]) -> list[Drawn]:
    """Let these edits of functions be drawn."""
    files = {"integer": "arithmetic/validate.py"}
    edits = [
        Drawn(Edit(files.get(scope, "arithmetic/modular.py"), scope, ((old, new),)), at)
        for at, (scope, old, new) in enumerate(made)
    ]
    monkeypatch.setattr(command, "draw", lambda seed, count: edits)
    return edits


def _words(folder: Path) -> list[str]:
    return [json.loads(line)[1] for line in (folder / "seed-1.jsonl").read_text().splitlines()]


@exhaustive
def test_what_a_test_runs_is_recorded_and_so_is_what_its_file_makes(folder: Path) -> None:
    found = calls.recorded(folder)
    names = {id.rpartition("::")[2]: called for id, called in found.tests.items()}
    assert "arithmetic/modular.py:PrimeField.inverse" not in names["test_of_sums"]
    assert any(name.endswith(".add") for name in names["test_of_sums"])
    assert names["test_of_nothing"] == set()

    def tests(scope: str, file: str) -> set[str]:
        edit = Drawn(Edit(file, scope, (("a", "b"),)), 1)
        return {id.rpartition("::")[2] for id in found.running(edit)}

    [add] = [name.partition(":")[2] for name in names["test_of_sums"] if name.endswith(".add")]
    [inverse] = {name.partition(":")[2] for called in names.values() for name in called if name.endswith(".inverse")}
    assert tests(add, "arithmetic/modular.py") == {"test_of_sums"}
    whole = {"test_of_what_is_made_once", "test_of_sums", "test_of_nothing"}
    assert tests(inverse, "arithmetic/modular.py") == whole
    assert tests("integer", "arithmetic/validate.py") == whole


def test_of_the_wider_tests_the_shortest_are_run_within_a_time() -> None:
    found = calls.Calls({}, {"a": 3, "b": 1, "c": 2, "d": 0.5})
    assert found.within(["a", "b", "c", "d"], 3.5) == ["d", "b", "c"]
    assert found.within(["a"], 2) == []


def test_an_edit_that_a_test_sees_is_killed_and_another_one_survives(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _edits(monkeypatch, ("Ring.add", "(a + b)", "(a - b)"), ("Ring.add", "(a + b)", "(b + a)"))
    assert command.main(["--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "b + a" in out
    assert out.splitlines()[-1].split() == ["all", "2", "1", "0", "1", "50.0%"]
    assert _words(folder) == ["wide", "survives"]

    monkeypatch.setattr(command, "_forked", lambda each, found: pytest.fail("it was tried before"))
    same = Edit("arithmetic/modular.py", "Ring.add", (("return (a + b)", "return (b + a)"),))
    monkeypatch.setattr(edits, "equivalent", lambda: [("added-the-other-way-round", same)])
    assert command.main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "2", "1", "1", "0", "100.0%"]


@pytest.mark.slow
@exhaustive
def test_an_edit_that_no_type_allows_is_killed_by_mypy() -> None:
    right, wrong = (
        Drawn(Edit("arithmetic/modular.py", "Ring.add", (("return (a + b)", new),)), 1)
        for new in ("return (b + a)", "return 'a' + (a + b)")
    )
    assert [command._mistyped(each) for each in (right, wrong)] == [False, True]


@exhaustive
def test_what_came_out_is_stored_with_its_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [_, alive] = _edits(monkeypatch, ("Ring.add", "(a + b)", "(a - b)"), ("Ring.add", "(a + b)", "(b + a)"))
    monkeypatch.setattr(command, "STORED", folder / "mutation.json")
    assert command.main(["--store"]) == 1
    stored = json.loads((folder / "mutation.json").read_text())
    assert re.fullmatch("[0-9a-f]{40}", stored["commit"])
    assert stored["packages"]["all"] == {"edits": 2, "killed": 1, "equivalent": 0, "survive": 1}
    assert stored["outcomes"] == {"survives": 1, "wide": 1}
    assert list(stored["alive"]) == [alive.id]
    assert any("b + a" in line for line in stored["alive"][alive.id])


def test_the_stored_run_counts_a_thousand_edits_and_a_hundred_of_each_package() -> None:
    stored = json.loads(command.STORED.read_text(encoding="utf-8"))
    rows = stored["packages"]
    assert set(rows) == {*PACKAGES, "all"}
    assert rows["all"]["edits"] >= 1000
    assert all(row["edits"] >= drawn.LEAST for row in rows.values())
    assert all(row["edits"] == row["killed"] + row["equivalent"] + row["survive"] for row in rows.values())
    assert len(stored["alive"]) == rows["all"]["survive"]


@exhaustive
def test_survivors_are_tried_again_when_that_is_asked(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    [edit] = _edits(monkeypatch, ("Ring.add", "(a + b)", "(a - b)"))
    (folder / "seed-1.jsonl").write_text(json.dumps([edit.id, "survives"]) + "\n")
    assert command.main([]) == 1
    assert command.main(["--again"]) == 0


def test_a_run_whose_edits_do_not_fit_tried_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _edits(monkeypatch, ("Ring.add", "stands nowhere", "a"))
    assert command.main([]) == 1
    assert _words(folder) == ["unfit"]
    assert "no edit was tried" in capsys.readouterr().err


@exhaustive
def test_an_edit_that_never_ends_is_killed_by_the_clock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _edits(monkeypatch, ("Ring.add", "(a + b)", "max(iter(int, 1))"))
    monkeypatch.setattr(calls.Calls, "limit", lambda self, tests: 2)
    assert command.main([]) == 0
    assert _words(folder) == ["time"]


def test_no_edit_is_tried_where_a_test_fails_without_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "test_some.py").write_text(TESTS.replace("CONTROL", "False"))
    _edits(monkeypatch, ("Ring.add", "(a + b)", "(a - b)"))
    assert command.main([]) == 3
    assert "tests fail without any edit" in capsys.readouterr().err


def test_a_run_that_tried_nothing_does_not_pass(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_changed", lambda revision: {"learning/digits.py": {1}})
    assert command.main(["--changed", "HEAD"]) == 1
    assert "no edit was tried" in capsys.readouterr().err


def test_an_edit_that_is_drawn_is_undone() -> None:
    [edit] = {each.edit for each in drawn.candidates("crypto")[:1]}
    with planted(edit):
        pass
    assert drawn.candidates("crypto")[0].edit == edit


def test_an_edit_is_known_as_equivalent_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (
        Drawn(Edit("arithmetic/modular.py", "Ring.add", (("return (a + b)", new),)), 1)
        for new in ("return (a - b)", "return (b + a)")
    )
    listed = Edit("arithmetic/modular.py", "Ring.add", (("(a + b)", "((b + a))"),))
    monkeypatch.setattr(edits, "equivalent", lambda: [("sides-swapped", listed)])
    assert command._equivalent([one, other]) == {other.id}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *((("--shard", wrong), "is not K/N with 1 <= K <= N") for wrong in ("0/0", "0/2", "3/2", "1", "x/2", "1/-2")),
        (("--shard", "\u0661/\u0662"), "is not K/N with 1 <= K <= N"),
        (("--count", "-3"), "is not a whole number of edits, at least 1"),
        (("--count", "0"), "is not a whole number of edits, at least 1"),
        (("--jobs", "0"), "is not a whole number of jobs, at least 1"),
        (("--changed", "no-such-revision"), "is no revision of this repository"),
    ],
)
def test_wrong_usage_is_told(given: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(given)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
