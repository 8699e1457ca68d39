"""The command ``secagg-spec power``: what it says of the stored table, of an adapter, and of options that do not go."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from secagg_spec import cli, resources
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation import coverage, evidence, kills
from secagg_spec.conformance.mutation.kills import Bug
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.quick import exhaustive

REFERENCE = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
TABLE = kills.load()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit code of the command, and what it wrote."""
    code = cli.main(["power", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_summary_counts_what_kills_the_mutants_by_protocol_and_kind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = said(capsys, "--json", str(tmp_path / "power.json"))
    body = json.loads((tmp_path / "power.json").read_text(encoding="utf-8"))
    assert code == 0
    assert out.startswith(f"mutation score: {len(TABLE)} of {len(TABLE)} mutants are killed\n")
    for group, of_group in body["counts"].items():
        [line] = [line for line in out.splitlines() if line.split()[:2] == [group, str(of_group["bugs"])]]
        assert line.split()[1:] == [str(of_group[name]) for name in ("bugs", kills.VECTORS, kills.DRAWN, kills.TEST)]
    assert body["counts"]["all"]["bugs"] == len(body["bugs"]) == len(TABLE)
    assert all(f"{bug.name} " in out for bug in TABLE.values() if bug.found == kills.DRAWN)


def test_a_pattern_tells_of_each_mutant_that_it_matches_what_kills_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "-k", "small-set-accepted")
    assert code == 0
    assert "small-set-accepted   [LSA-09]   lightsecagg, privacy" in out
    assert "aggregate-small-set" in out
    assert "masks-with-the-other-sign" in said(capsys, "-k", "lsa-02")[1]


def test_a_name_that_there_is_not_gets_the_nearest_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "-k", "recovery-add-the-mask")
    assert code == 2
    assert "the nearest names are recovery-adds-the-mask, " in err


@pytest.mark.parametrize("change", ["missing", "unknown"])
def test_a_mutant_without_a_row_and_a_row_without_a_mutant_end_with_1(
    change: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(iter(TABLE))
    rows = {k: v for k, v in TABLE.items() if k != name} if change == "missing" else {**TABLE, "strange": TABLE[name]}
    monkeypatch.setattr(kills, "load", lambda: rows)
    code, _, err = said(capsys)
    assert code == 1
    assert (name if change == "missing" else "strange") in err
    assert "power --regenerate" in err


@pytest.mark.slow
def test_an_adapter_is_told_what_a_run_could_have_caught(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = said(capsys, "--json", str(tmp_path / "reach.json"), "--", *REFERENCE)
    found = coverage.could_have_caught(greet(DirectConnection(reference.build().answer).ask))
    assert code == 0
    assert f"would notice {found.n} of {found.m} mutants." in out
    assert json.loads((tmp_path / "reach.json").read_text(encoding="utf-8")) == json.loads(json.dumps(found.as_json()))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--fuzz", "5"], "--fuzz needs --search"),
        (["--anew"], "--anew needs --regenerate"),
        (
            ["--regenerate", "--search"],
            "--regenerate goes with no other option but -k, --anew, and --search is",
        ),
        (["--search", "--json", "x.json"], "--search goes with no other option but -k, --fuzz"),
        (["--start-timeout", "5"], "--start-timeout needs the command of an adapter after --"),
        (["-k", "lsa", "--", "true"], "-k goes with an adapter only together with --search"),
        (["-k", "nothing-like-it"], "no mutant has this in its name"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1


def test_an_adapter_that_cannot_be_used_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "--", sys.executable, "-c", "pass")
    assert code == 3
    assert err.startswith("the adapter cannot be used: ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is not JSON"),
        ("[]", "this is not a table of mutants"),
        ('{"schema": "secagg-spec-power/1", "bugs": [{"name": "x"}]}', "another form"),
        ('{"schema": "secagg-spec-power/1", "bugs": [7]}', "another form"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_one_line(
    text: str, why: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "power.json"
    place.write_text(text, encoding="utf-8")
    monkeypatch.setattr(kills, "path", lambda: place)
    kills.load.cache_clear()
    try:
        code, _, err = said(capsys)
    finally:
        kills.load.cache_clear()
    assert code == 2
    assert why in err


@pytest.mark.slow
def test_a_row_names_no_test_that_passes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = mutants.load()["mail-is-lost"]
    passing = "tests/arithmetic/test_mds.py::test_one_point_for_each_user"
    monkeypatch.setitem(mutants.REGISTRY, right.name, replace(right, test=passing))
    monkeypatch.setattr(evidence, "_finding", lambda mutant: [])
    saved: list[Mapping[str, Bug]] = []
    monkeypatch.setattr("secagg_spec.commands.power._save", saved.append)
    code, out, _ = said(capsys, "--regenerate", "-k", right.name)
    assert (code, saved[-1][right.name].test) == (1, "")
    assert f"{right.name}: {passing} passes\n{right.name}: NOTHING kills it\n" in out


@pytest.mark.slow
@exhaustive
def test_rows_are_made_again_to_the_same_bytes_and_kept_where_they_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    place = tmp_path / "spec" / "power.json"
    place.parent.mkdir()
    shutil.copyfile(kills.path(), place)
    before = place.read_bytes()
    monkeypatch.setattr(kills, "path", lambda: place)
    try:
        code, out, _ = said(capsys, "--regenerate", "-k", "small-set-accepted")
        assert (code, place.read_bytes()) == (0, before)
        assert "0 rows of 1 made, 1 kept" in out
        code, out, _ = said(capsys, "--regenerate", "--anew", "-k", "small-set-accepted")
        assert (code, place.read_bytes()) == (0, before)
        assert "1 rows of 1 made, 0 kept" in out
    finally:
        kills.load.cache_clear()


def test_the_catalogue_is_large_and_spans_all_protocols() -> None:
    assert len(mutants.load()) >= 80
    assert {"lightsecagg", "secagg", "basecagg", "basa", "heterosag", "fedbuff", "multi-round"} <= {
        mutant.protocol for mutant in mutants.REGISTRY.values()
    }


def test_the_page_shows_how_many_mutants_a_run_may_notice() -> None:
    page = (resources.root("spec").parent / "docs" / "explanation" / "power.md").read_text(encoding="utf-8")
    bugs = json.loads((resources.root("spec") / "power.json").read_text(encoding="utf-8"))["bugs"]
    found = Counter(bug["protocol"] for bug in bugs if bug.get("vectors") or bug.get("cases"))
    assert re.search(r"notice \d+ of (\d+) mutants", page)[1] == str(found.total())  # type: ignore[index]
    assert dict(re.findall(r"^  (\w+) +\d+ of (\d+)$", page, re.MULTILINE)).items() <= {
        (name, str(count)) for name, count in found.items()
    }
