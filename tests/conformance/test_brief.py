"""The brief summary of a run: one screen, whatever was judged (CNF-93, CNF-94); and the demo, which shows it."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from secagg_spec import cli
from secagg_spec.commands import conform, demo
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import brief, document
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running.expectations import NO_REASON, VERDICTS, Judged
from secagg_spec.conformance.running.runner import Failure, Outcome, PatternError, Settings
from tests.conformance.test_findings import CAPS, failed

IDS = [id for id, check in REGISTRY.items() if check.clauses][:40]
CASE = st.tuples(st.sampled_from([*VERDICTS, "pass", "unsupported", "not_run"]), st.booleans())
TARGET = st.dictionaries(st.sampled_from(IDS), CASE, min_size=1, max_size=20)


def judged(name: str, id: str, verdict: str, known: bool) -> Judged:
    """Return the outcome of a check."""
    if verdict in VERDICTS:
        return failed(id, verdict, f"{name}, {id}", known=known)
    failure = Failure("not_run", "no time", ()) if verdict == "not_run" else None
    return Judged(Outcome(REGISTRY[id], verdict, cases=3 * (verdict != "unsupported"), failure=failure))


def gravity(found: tuple[str, Any]) -> int:
    """Return the place of a finding's kind among the kinds, the gravest first."""
    return VERDICTS.index(found[1]["kind"])


def body(targets: list[dict[str, tuple[str, bool]]], **settings: Any) -> dict[str, Any]:
    """Return the report of a run on implementations a, b, …."""
    reports = [
        TargetReport(
            f"t{at}",
            replace(CAPS, name=f"lib{at}", version="1"),
            [judged(f"lib{at}", id, *case) for id, case in one.items()],
        )
        for at, one in enumerate(targets)
    ]
    return document.document(reports, Settings(**settings))


@pytest.mark.slow
@pytest.mark.requirement("CNF-93")
@settings(max_examples=20)
@example([dict.fromkeys(IDS[:5], ("leaked", False))] * 30, 3)
@given(st.lists(TARGET, max_size=20), st.integers(1, 100))
def test_a_brief_summary_has_forty_lines_and_counts_what_failed_in_each_way(
    targets: list[dict[str, tuple[str, bool]]], cases: int
) -> None:
    lines = brief.summary(body(targets, cases=cases, pattern="field,!view/rounds")).splitlines()
    assert len(lines) <= brief.MOST - 2
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith(f"Judged with {cases} case{'s' * (cases > 1)} per check")
    assert lines[1:3] == ["Only: field", "Left out: view/rounds"]
    for at, one in enumerate(targets[: brief.ROWS]):
        [row] = [line for line in lines if re.match(rf"lib{at} 1 +\d", line)]
        numbers = [0 if word == "-" else int(word) for word in row.split()[2:]]
        verdicts = [verdict for verdict, _ in one.values()]
        failures = [verdict for verdict in verdicts if verdict in VERDICTS]
        assert numbers[3:6] == [verdicts.count("pass"), len(failures), verdicts.count("unsupported")]
        kinds = [brief.KINDS.get(verdict, "other") for verdict in failures]
        assert numbers[6:] == [kinds.count(kind) for kind in ("leak", "sum", "input", "crash", "other")]
        clauses: dict[str, set[str]] = {}
        for id, (verdict, known) in one.items():
            for clause in REGISTRY[id].clauses:
                how = ("known" if known else "fails") if verdict in VERDICTS else verdict
                clauses.setdefault(clause, set()).add(how)
        assert numbers[1] == sum(
            "fails" in met or ("known" in met and "not_run" not in met) for met in clauses.values()
        )
        assert numbers[0] == sum("pass" in met and not met & {"fails", "known", "not_run"} for met in clauses.values())


@pytest.mark.slow
@pytest.mark.requirement("CNF-94")
@settings(max_examples=30)
@given(st.lists(TARGET, max_size=5))
def test_the_five_gravest_findings_are_named_two_of_an_implementation_first(
    targets: list[dict[str, tuple[str, bool]]],
) -> None:
    data = body([{id: (verdict, False) for id, (verdict, _) in one.items()} for one in targets])
    found = [
        (target["implementation"]["name"], finding) for target in data["targets"] for finding in target["findings"]
    ]
    told = brief.summary(data, width=200)
    named = [one for one in found if f"{one[0]} 1: {one[1]['message']} " in told]
    lines = [line.split()[0] for line in told.splitlines() if re.match(r"\w+ +lib\d+ 1: ", line)]
    assert len(lines) == len(named) == min(5, len(found))
    assert lines == [brief.KINDS.get(one["kind"], "other") for _, one in sorted(named, key=gravity)]
    for name, finding in found:
        if (name, finding) not in named and any(gravity(one) > gravity((name, finding)) for one in named):
            assert sum(other == name for other, _ in named) >= 2


@pytest.mark.requirement("CNF-94")
def test_a_reason_that_several_findings_share_is_told_once() -> None:
    told = brief.summary(body([{IDS[0]: ("leaked", True)}, {IDS[1]: ("leaked", True)}, {IDS[2]: ("error", True)}]))
    assert [line.split()[:2] for line in told.splitlines() if ": known" in line] == [
        ["leak", "lib0"],
        ["crash", "lib2"],
    ]


@pytest.mark.requirement("CNF-93")
@pytest.mark.parametrize(
    ("also", "kind"), [((), "other"), (("crash",), "crash"), (("wrong_value",), "sum"), (("crash", "leaked"), "leak")]
)
def test_a_check_counts_as_the_gravest_that_it_met(also: tuple[str, ...], kind: str) -> None:
    checks = [failed(id, "inconsistent", "one reason", also=also) for id in ("field.add/exact", "field.add/lengths")]
    data = document.document([TargetReport("adapter", replace(CAPS, name="lib", version="1"), checks)], Settings())
    lines = brief.summary(data).splitlines()
    [heads] = [line.split()[6:] for line in lines if line.split()[:3] == ["pass", "fail", "n/o"]]
    [numbers] = [line.split()[8:] for line in lines if re.match(r"lib 1 +\d", line)]
    assert dict(zip(heads, numbers, strict=True)) == {**dict.fromkeys(heads, "-"), kind: "2"}
    assert [line.split()[0] for line in lines if "lib 1: one reason" in line] == [kind]
    assert ("other: any other failure" in "\n".join(lines)) == (kind == "other")
    assert "refusal" not in "\n".join(lines)


@pytest.mark.requirement("CNF-01")
def test_an_implementation_that_was_asked_nothing_is_not_judged() -> None:
    data = body([{IDS[0]: ("pass", False)}, {IDS[0]: ("unsupported", False)}])
    said = brief.summary(data).splitlines()[-1]
    assert said == "1 implementation judged, none with failures, 1 asked nothing: no unexpected failure."
    assert brief.summary({**data, "targets": data["targets"][1:]}).splitlines()[-1] == "Nothing ran."


@pytest.mark.requirement("CNF-94")
def test_the_reason_of_a_baseline_is_none() -> None:
    data = body([dict.fromkeys(IDS[:4], ("error", known)) for known in (False, True)])
    new, known = data["targets"]
    assert len(known["findings"]) > 1
    for check in known["checks"]:
        check["expected_failure"] = NO_REASON
    named = [
        [line.split()[:1] + line.split()[3:] for line in said.splitlines() if re.match(r"crash +lib", line)]
        for said in (brief.summary({**data, "targets": [one]}) for one in (new, known))
    ]
    assert len(named[0]) == len(known["findings"])
    assert [one[-1] for one in named[0]] == [one[-1] for one in named[1]]


@pytest.mark.requirement("CNF-93")
@pytest.mark.parametrize(
    ("stale", "said"),
    [
        (0, []),
        (1, ["stale expectation: 0"]),
        (2, ["stale expectation: 0", "stale expectation: 1"]),
        (3, ["stale expectation: 0", "and 2 more stale expectations, in the report"]),
    ],
)
def test_the_number_of_stale_expectations_is_said(stale: int, said: list[str]) -> None:
    data = body([{IDS[0]: ("pass", False)}])
    data["targets"][0]["stale"] = [str(at) for at in range(stale)]
    lines = brief.summary(data).splitlines()
    assert [line for line in lines if "stale expectation" in line] == said
    verdict = f"{stale} expectation{'s are' if stale > 1 else ' is'} stale" if stale else "no unexpected failure"
    assert lines[-1] == f"1 implementation judged, none with failures: {verdict}."


@pytest.mark.requirement("CNF-93")
def test_a_summary_of_all_that_there_is_to_say_has_forty_lines() -> None:
    verdicts = ["leaked", "wrong_value", "accepted_invalid", "error", "rejected_valid", "not_run"]
    data = body(
        [dict(zip(IDS, [(one, False) for one in verdicts], strict=False))] * 20,
        budget=1.0,
        vectors=False,
        pattern=",".join(f"{sign}{id}" for sign in ("", "!") for id in IDS[:20]),
    )
    gone = {**data["targets"][0], "implementation": None, "absent": "not here " * 30}
    reasons = ["whose share of --budget was spent", "with a set number of cases, which suffices"]
    for at, why in enumerate([*reasons, "with no more cases that differ and can be judged"]):
        data["targets"][at]["checks"][0]["fewer"] = why
    data["targets"][0]["stale"] = ["x"] * 3
    data["targets"] += [{**gone, "target": f"gone{at}"} for at in range(3)]
    lines = brief.summary(data).splitlines()
    assert len(lines) == brief.MOST
    assert max(map(len, lines)) <= 80


def test_a_pattern_behind_an_exclamation_mark_leaves_out_what_it_fits() -> None:
    chosen = [check.id for check in Settings(pattern="field.add,!/size").chosen()]
    assert "field.add/exact" in chosen
    assert "field.add/size" not in chosen
    rest = {check.id for check in Settings(pattern="!field.add/exact").chosen()}
    assert rest == set(REGISTRY) - {"field.add/exact"}
    with pytest.raises(PatternError, match=r"^!nothing-like-this: no check"):
        Settings(pattern="!nothing-like-this").refuse_idle()


@pytest.mark.parametrize("id", ["field.add/exact", "vector/seal-close-twice"])
def test_a_whole_id_chooses_that_check_or_vector_alone(id: str) -> None:
    assert [check.id for check in Settings(pattern=id, vectors=True).chosen()] == [id]


def test_the_demo_leaves_out_checks_that_exist_and_its_whole_judges_all() -> None:
    options = argparse.Namespace(full=False, html=Path("demo.html"), jobs=2)
    short = conform.parsed(demo.words(options))
    assert short.brief
    assert short.fuzz == demo.CASES
    Settings(pattern=",".join(short.patterns)).refuse_idle()
    full = conform.parsed(demo.words(argparse.Namespace(**{**vars(options), "full": True})))
    assert (full.brief, full.fuzz, full.patterns) == (False, 100, [])


@pytest.mark.slow
@pytest.mark.requirement("CNF-93")
def test_the_demo_prints_one_screen_and_writes_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "TARGETS", ("reference",))
    monkeypatch.setattr(demo, "SLOW", ("*.*", "adapter/long"))
    assert cli.main(["demo", "--jobs", "1"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert len(out.splitlines()) <= brief.MOST
    assert f"Judged with {demo.CASES} cases per check" in out
    assert "1 implementation judged, none with failures: no unexpected failure." in out
    assert "secagg-spec init" in out.splitlines()[-1]
    assert "<title>Conformance: reference</title>" in (tmp_path / "demo.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("conferm",), "did you mean conform?"),
        (("xyzzy",), "the commands are demo, conform, "),
        (("conform", "--target", "flowr"), "did you mean flower?"),
        (("conform", "-k", "lightsecagg.mask/exat", "--", "x"), "did you mean lightsecagg.mask/exact?"),
        (("conform", "-k", "!lsb-09", "--", "x"), "did you mean LSA-09?"),
        (("conform", "-k", "shamir.sahre", "--", "x"), "did you mean shamir.share?"),
        (("explain", "lightsecagg.makes"), "did you mean lightsecagg.mask?"),
    ],
)
def test_who_mistypes_is_told_what_is_there(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(list(words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_who_gives_no_command_is_told_the_usual_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    shown = re.findall(r"^  secagg-spec ([a-z]+)", err, re.MULTILINE)
    assert len(shown) == 6
    assert set(shown) <= set(cli.COMMANDS)
    assert max(map(len, err.splitlines())) <= 80
