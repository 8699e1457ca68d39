"""The command diff: what counts as worse, what is only another thing, and which files are refused."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec import cli
from secagg_spec.commands import diff
from secagg_spec.conformance.reports import document

FAKE = str(Path(__file__).with_name("fake_adapter.py"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the report of a right adapter on a few checks."""
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.json"
    options = ["--fuzz", "5", "-k", "field.add/", "--repro", str(folder), "--json", str(path)]
    assert cli.main(["conform", *options, "--", sys.executable, FAKE, "none"]) == 0
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def save(folder: Path, name: str, report: dict[str, Any]) -> str:
    """Write a report with the footer that it must have, and return its path."""
    report["footer"] = {**document.counts(report), "digest": document.digest(report)}
    path = folder / name
    path.write_text(json.dumps(report))
    return str(path)


def failing(check: dict[str, Any], verdict: str = "wrong_value") -> None:
    """Turn an entry into that of a check that fails."""
    check["verdict"] = verdict
    check["failure"] = {
        "message": "got 0, must be 1",
        "repeats": True,
        "expected": None,
        "suggests": [],
        "at": None,
        "requests": [],
        "answers": [],
        "repro": None,
        "replay": None,
    }


def not_run(check: dict[str, Any]) -> None:
    """Turn an entry into that of a check that was not run."""
    failing(check, "not_run")


def not_offered(check: dict[str, Any]) -> None:
    """Turn an entry into that of a check that is not offered."""
    check.update(verdict="unsupported", note="not offered")


def expected_to_fail(check: dict[str, Any]) -> None:
    """Turn an entry into that of a failure that is expected."""
    failing(check)
    check["expected_failure"] = "known"


def leave(check: dict[str, Any]) -> None:
    """Leave an entry as it is."""


def compared(
    folder: Path, capsys: pytest.CaptureFixture[str], old: dict[str, Any], new: dict[str, Any], *options: str
) -> tuple[int, str, str]:
    """The exit code, the output and the errors of the command."""
    paths = save(folder, "old.json", old), save(folder, "new.json", new)
    capsys.readouterr()
    code = cli.main(["diff", *paths, *options])
    said = capsys.readouterr()
    return code, said.out, said.err


def first(report: dict[str, Any]) -> dict[str, Any]:
    """The first check of the first target that passes."""
    return next(check for check in report["targets"][0]["checks"] if check["verdict"] == "pass")


@pytest.mark.slow
@pytest.mark.requirement("CNF-48")
@pytest.mark.parametrize(
    ("before", "after", "kind", "worse"),
    [
        (leave, failing, "fails now", True),
        (leave, not_run, "no longer judged", True),
        (leave, not_offered, "no longer judged", True),
        (expected_to_fail, not_run, "no longer judged", True),
        (expected_to_fail, failing, "fails now", True),
        (not_offered, failing, "fails now", True),
        (not_run, failing, "fails now", True),
        (leave, expected_to_fail, "changed", False),
        (failing, leave, "passes now", False),
        (failing, lambda check: failing(check, "crash"), "changed", False),
        (failing, not_run, "no longer judged", False),
        (not_run, leave, "judged now", False),
        (not_offered, leave, "judged now", False),
        (not_run, not_offered, "changed", False),
        (leave, leave, "", False),
    ],
)
def test_what_is_worse(
    written: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    before: Any,
    after: Any,
    kind: str,
    worse: bool,
) -> None:
    old, new = copy.deepcopy(written), copy.deepcopy(written)
    name = first(written)["check"]
    for report, change in ((old, before), (new, after)):
        change(next(check for check in report["targets"][0]["checks"] if check["check"] == name))
    code, out, _ = compared(tmp_path, capsys, old, new)
    assert code == int(worse)
    lines = [line for line in out.splitlines() if name in line]
    assert len(lines) == bool(kind)
    assert all(kind in line and ("WORSE" in line) == worse for line in lines)
    assert out.splitlines()[-1] == ("1 got worse" if worse else "nothing got worse")


def test_one_thing_is_counted_as_one() -> None:
    changes = [diff.Change("clause", "LSA-02", "pass before, fails now"), diff.Change("fails now", "a check", "", True)]
    assert diff._counts(diff.Comparison("adapter", changes, 1)) == (
        "1 failing now, 1 about marks of clauses, 1 check as before"
    )


@pytest.mark.slow
@pytest.mark.requirement("CNF-48")
def test_a_check_that_disappeared_is_worse_and_a_new_one_is_not(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = copy.deepcopy(written)
    fewer["targets"][0]["checks"].remove(first(fewer))
    assert compared(tmp_path, capsys, written, fewer)[0] == 1
    code, out, _ = compared(tmp_path, capsys, fewer, written)
    assert code == 0
    assert "new check" in out


@pytest.mark.slow
@pytest.mark.requirement("CNF-48")
def test_targets_and_stale_expectations_are_compared(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none, stale, unusable = (copy.deepcopy(written) for _ in range(3))
    none["targets"], stale["targets"][0]["stale"] = [], ["adapter: x passes"]
    unusable["targets"][0]["unusable"] = "cannot start"
    for new, said in ((none, "is not in the newer report"), (stale, "x passes"), (unusable, "could not be used now")):
        code, out, _ = compared(tmp_path, capsys, written, new)
        assert (code, said in out) == (1, True)
        assert compared(tmp_path, capsys, new, written)[0] == 0
    assert "could not be used before, and can be used now" in compared(tmp_path, capsys, unusable, written)[1]


@pytest.mark.slow
def test_what_is_declared_and_marks_of_clauses_are_compared(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = copy.deepcopy(written)
    del new["targets"][0]["implementation"]["operations"]["echo"]
    new["targets"][0]["implementation"]["version"] = "2"
    clause = next(iter(new["targets"][0]["clauses"]))
    new["targets"][0]["clauses"][clause] = "fails"
    code, out, _ = compared(tmp_path, capsys, written, new)
    assert code == 0
    assert "no longer declared" in out
    assert "1 before, 2 now" in out
    assert f"{clause} " in out
    assert ", 1 about marks of clauses, " in out
    one = copy.deepcopy(written)
    del one["targets"][0]["checks"][1:]
    assert ": 1 check as before\n" in compared(tmp_path, capsys, one, one)[1]


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("randomness", "seeded", "explicit before, seeded now"),
        ("protocol", [1, 1], "[1, 0] before, [1, 1] now"),
        ("reject_map", {"no": "other"}, "None before, {'no': 'other'} now"),
        ("left out", ["a set"], "[] before, ['a set'] now"),
    ],
)
def test_each_part_of_a_declaration_is_compared(written: dict[str, Any], member: str, value: Any, said: str) -> None:
    new = copy.deepcopy(written)
    if member == "left out":
        new["targets"][0]["left_out"] = value
    else:
        new["targets"][0]["hello"][member] = value
    [found] = diff.compare(written, new)
    assert [(change.kind, change.what, change.said) for change in found.changes] == [("declared", member, said)]


@pytest.mark.requirement("CNF-47")
@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("kit", "9.9", "another kit: 0.1.0 before, 9.9 now"),
        ("vectors", "0" * 64, "another set of test vectors"),
        ("text", "0" * 64, "another text"),
        ("settings", {"seed": 5}, "other settings: seed was 0, is 5"),
        ("environment", {"platform": "x", "hypothesis": "6.0"}, "another hypothesis, which draws the cases: "),
    ],
)
def test_what_was_different_about_the_runs_is_said_first(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], member: str, value: Any, said: str
) -> None:
    new = copy.deepcopy(written)
    new["header"][member] = {**new["header"][member], **value} if isinstance(value, dict) else value
    code, out, _ = compared(tmp_path, capsys, written, new)
    assert code == 0
    assert out.startswith(f"CAUTION  {said}")
    assert out.count("CAUTION") == 1


@pytest.mark.requirement("CNF-47")
def test_other_time_outs_are_said_first(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = copy.deepcopy(written)
    new["targets"][0]["options"] = ["--timeout", "3"]
    code, out, _ = compared(tmp_path, capsys, written, new)
    assert code == 0
    assert re.match(r"CAUTION  other time-outs of \S+: the defaults before, --timeout 3 now\n", out)


def without_footer(report: dict[str, Any]) -> None:
    """Take the footer away, as a run that was ended leaves a report."""
    del report["footer"]


def altered(report: dict[str, Any]) -> None:
    """Change a verdict and leave the digest."""
    first(report)["verdict"] = "unsupported"


def older(report: dict[str, Any]) -> None:
    """Give the report the schema of an earlier kit."""
    report["schema"] = "secagg-spec-report/1"


@pytest.mark.requirement("CNF-47")
@pytest.mark.parametrize(
    ("spoil", "said"), [(without_footer, "no footer"), (altered, "digest"), (older, "secagg-spec-report/1")]
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_report_that_is_not_whole_is_refused(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Any, said: str, place: int
) -> None:
    spoilt = copy.deepcopy(written)
    spoil(spoilt)
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(written))
    bad.write_text(json.dumps(spoilt))
    paths = [str(good), str(good)]
    paths[place] = str(bad)
    assert cli.main(["diff", *paths]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.requirement("CNF-47")
@pytest.mark.parametrize("text", ["", "{", "[1]", '{"schema": "secagg-spec-report/3"}', "[" * 100_000])
def test_a_file_that_is_no_report_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert cli.main(["diff", str(path), str(path)]) == 2
    assert cli.main(["diff", str(tmp_path / "absent.json"), str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_markdown_holds_what_an_adapter_wrote_as_text(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = copy.deepcopy(written)
    failing(first(new))
    first_failed = next(check for check in new["targets"][0]["checks"] if check["failure"])
    first_failed["failure"]["message"] = "a | b\n<script> [x](y) `c` \x1b[2J"
    code, out, _ = compared(tmp_path, capsys, written, new, "--markdown")
    assert code == 1
    [row] = [line for line in out.splitlines() if "**worse**" in line]
    assert re.sub(r"\\.", "", row).count("|") == 5
    assert r"\<script\>" in row
    assert "\x1b" not in out


def test_markdown_changes_no_backslash_of_an_adapter(
    written: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = copy.deepcopy(written), copy.deepcopy(written)
    for report, value in ((old, "_a_"), (new, "&lt;")):
        report["targets"][0]["hello"]["a&b\\|c"] = value
    _, out, _ = compared(tmp_path, capsys, old, new, "--markdown")
    assert r"|  | declared | a\&b\\\|c | \_a\_ before, \&lt; now |" in out.splitlines()


def spoiled(kind: str, report: dict[str, Any]) -> None:
    """Change a report so that a comparison has a change of this kind, or, the other way round, of the opposite kind."""
    [target] = report["targets"]
    checks = [check for check in target["checks"] if check["verdict"] == "pass"]
    if kind == "target":
        target["absent"] = "no interpreter"
    elif kind == "stale now":
        target["stale"] = ["adapter: x passes"]
    elif kind == "declared":
        target["implementation"]["policy"] = {"quantizer.ties": "even"}
    elif kind == "clause":
        target["clauses"][next(iter(target["clauses"]))] = "fails"
    elif kind == "mutation score":
        target["power"]["caught"] += 1
    elif kind == "disappeared":
        target["checks"].remove(checks[-1])
    else:
        {"fails now": failing, "no longer judged": not_run, "changed": expected_to_fail}[kind](checks[0])


OPPOSITES = {
    "fails now": "passes now",
    "stale now": "no longer stale",
    "no longer judged": "judged now",
    "disappeared": "new check",
}
SPOILED = tuple(kind for kind in diff._ORDER if kind not in OPPOSITES.values())


@pytest.mark.slow
@given(kinds=st.sets(st.sampled_from(SPOILED), min_size=1))
@example(kinds={"mutation score"})
def test_each_kind_of_change_is_told_both_ways_round(written: dict[str, Any], kinds: set[str]) -> None:
    new = copy.deepcopy(written)
    alone = {"fails now", "no longer judged", "changed"} & kinds
    kinds = kinds - set(sorted(alone)[1:])
    for kind in kinds:
        spoiled(kind, new)
    for old, later, expected in ((written, new, kinds), (new, written, {OPPOSITES.get(kind, kind) for kind in kinds})):
        found = diff.compare(old, later)
        assert {change.kind for change in found[0].changes} == expected
        for lines in (diff._text([], found), diff._markdown([], found)):
            text = "\n".join(lines)
            assert all(kind in text for kind in expected)
