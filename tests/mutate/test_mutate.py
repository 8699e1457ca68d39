"""Mutation testing: which edits are drawn, that they are tried one by one, and what is said of those that live."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secagg_spec.conformance.mutants.edits import Edit, planted
from tests.mutate import __main__ as command
from tests.mutate import drawn
from tests.mutate.drawn import PACKAGES, Drawn

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


def test_every_drawn_edit_of_a_package_fits_its_source() -> None:
    for each in drawn.candidates("crypto")[::25]:
        assert each.edit.applied((drawn.PACKAGE / each.edit.file).read_text("utf-8"))


def test_what_is_drawn_follows_from_the_seed_and_has_enough_of_each_package() -> None:
    chosen = drawn.draw(1, 600)
    assert len(chosen) == len({each.id for each in chosen}) == 600
    assert all(sum(each.package == package for each in chosen) >= drawn.LEAST for package in PACKAGES)
    assert [each.id for each in drawn.draw(1, 600)] == [each.id for each in chosen]
    assert [each.id for each in drawn.draw(2, 600)] != [each.id for each in chosen]


def test_edits_of_changed_lines_are_those_of_these_lines() -> None:
    all_of_it = [each for each in drawn.candidates("arithmetic") if each.edit.file == "arithmetic/mds.py"]
    line = all_of_it[0].line
    assert drawn.of_lines({"arithmetic/mds.py": {line}}) == [each for each in all_of_it if each.line == line]
    assert drawn.of_lines({"arithmetic/mds.py": set()}) == []


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what came out, and one edit that vectors kill, beside one that nothing can kill."""
    monkeypatch.setattr(command, "KEPT", tmp_path)
    monkeypatch.setattr(command, "_STAGES", ("vectors",))
    sign = Drawn(Edit("protocols/lightsecagg.py", "recover", (("field.subtract(", "field.add("),)), 1)
    nothing = Drawn(Edit("protocols/lightsecagg.py", "recover", (("field.subtract(", "field.subtract( "),)), 2)
    monkeypatch.setattr(command, "draw", lambda seed, count: [sign, nothing])
    return tmp_path


@pytest.mark.slow
def test_an_edit_that_vectors_see_is_killed_and_another_one_survives(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.main(["--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "field.subtract( " in out
    assert out.splitlines()[-1].split() == ["all", "2", "1", "0", "1", "50.0%"]
    lines = [json.loads(line) for line in (kept / "seed-1.jsonl").read_text().splitlines()]
    assert [word for _, word in lines] == ["vectors", "survives"]

    monkeypatch.setattr(command, "_forked", lambda each: pytest.fail("it was tried before"))
    monkeypatch.setattr(command, "_equivalent", lambda: {lines[1][0]})
    assert command.main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "2", "1", "1", "0", "100.0%"]


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
