"""Expected failures: what they explain, and when they are stale."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import cli
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.running import expectations, suite
from secagg_spec.conformance.running.expectations import VERDICTS
from secagg_spec.conformance.running.runner import Failure, Outcome
from secagg_spec.conformance.targets import TARGETS

CHECK = REGISTRY["field.add/exact"]
PASSED = Outcome(CHECK, "pass", cases=5)
FAILED = Outcome(CHECK, "wrong_value", cases=5, failure=Failure("wrong_value", "field.add: first difference", ()))


def entries(tmp_path: Path, **changes: object) -> list[expectations.Expectation]:
    """Return a file's entries: one entry, with changes."""
    entry = {"target": "node", "checks": "field.add/*", "verdict": "wrong_value", "reason": "known", **changes}
    lines = [f"{key} = {value!r}" for key, value in entry.items() if value is not None]
    path = tmp_path / "expect.toml"
    path.write_text("[[expect]]\n" + "\n".join(lines).replace("'", '"') + "\n")
    return expectations.load(path)


def test_an_expected_failure_is_explained(tmp_path: Path) -> None:
    known = entries(tmp_path)
    assert not expectations.judge("node", [FAILED], known)[0].unexpected
    assert expectations.stale("node", [FAILED], known) == []


@pytest.mark.parametrize(
    "changes",
    [{"verdict": "error"}, {"checks": "field.subtract/*"}, {"target": "reference"}, {"message": "something else"}],
)
def test_a_failure_of_another_kind_is_not(tmp_path: Path, changes: dict[str, str]) -> None:
    assert expectations.judge("node", [FAILED], entries(tmp_path, **changes))[0].unexpected


def test_an_entry_is_stale_when_its_check_passes_or_fails_otherwise(tmp_path: Path) -> None:
    assert expectations.stale("node", [PASSED], entries(tmp_path)) == [
        "node: field.add/* (wrong_value): field.add/exact passes"
    ]
    [problem] = expectations.stale("node", [FAILED], entries(tmp_path, verdict="error"))
    assert problem.endswith("fails as wrong_value instead")
    [problem] = expectations.stale("node", [FAILED], entries(tmp_path, message="something else"))
    assert FAILED.failure
    assert problem.endswith(f"fails as wrong_value with another message: {FAILED.failure.message}")


def test_an_entry_is_not_judged_when_its_checks_did_not_run(tmp_path: Path) -> None:
    assert expectations.stale("node", [Outcome(CHECK, "unsupported")], entries(tmp_path)) == []


def test_a_pattern_that_covers_too_much_is_refused(tmp_path: Path) -> None:
    many = [Outcome(check, "not_run") for check in REGISTRY.values()]
    [problem] = expectations.stale("node", many, entries(tmp_path, checks="*"))
    assert "20 are allowed" in problem


def test_a_pattern_is_no_wider_for_what_is_not_offered(tmp_path: Path) -> None:
    others = [Outcome(check, "unsupported") for check in REGISTRY.values() if check is not CHECK]
    assert expectations.stale("node", [FAILED, *others], entries(tmp_path, checks="*")) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": "bad"}, "verdicts are"),
        ({"reason": None}, "keys are checks, message, reason, target, verdict; missing: reason$"),
        ({"reason": None, "verdict": None, "reasons": "x"}, "; missing: reason, verdict; unknown: reasons$"),
        ({"verdict": "b" * 1000}, "verdict 'bbb[b]{0,100}…"),
        ({"reason": " "}, "reason is empty"),
        ({"target": []}, "target is empty"),
        ({"target": ""}, "target is empty"),
        ({"colour": "red"}, "; unknown: colour$"),
        ({"target": "nobody"}, "no target 'nobody'"),
        ({"target": ["node", "nobody"]}, "no target 'nobody'"),
        ({"checks": "field.divide/*"}, "no check of this kit matches 'field.divide"),
    ],
)
def test_a_faulty_file_is_refused_with_the_entry_and_the_fault(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(expectations.ExpectationsError, match=said):
        entries(tmp_path, **changes)


def test_a_file_that_is_absent_or_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(expectations.ExpectationsError, match=r"none\.toml"):
        expectations.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[[expect")
    with pytest.raises(expectations.ExpectationsError, match=r"bad\.toml: this is not TOML: "):
        expectations.load(tmp_path / "bad.toml")


def test_a_byte_order_mark_before_a_file_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "marked.toml"
    path.write_bytes(b"\xef\xbb\xbfexpect = []\n")
    assert expectations.load(path) == []


@pytest.mark.parametrize("text", ["expect = 5", 'expect = ["a"]', "[expect]\nx = 1", "\udcff", "[[expects]]\nx = 1"])
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shape.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(expectations.ExpectationsError, match=r"shape\.toml"):
        expectations.load(path)


@pytest.mark.parametrize("changes", [{"target": 5}, {"checks": 5}, {"verdict": [5]}, {"reason": ["a"]}])
def test_an_entry_with_something_else_than_text_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(expectations.ExpectationsError, match="must be text"):
        entries(tmp_path, **changes)


def test_an_entry_may_name_targets_by_a_pattern(tmp_path: Path) -> None:
    (entry,) = entries(tmp_path, target=["flower", "flower@*"])
    assert [name for name in TARGETS if entry.concerns(name)] == [
        name for name in TARGETS if name.partition("@")[0] == "flower"
    ]
    with pytest.raises(expectations.ExpectationsError, match=r"there is no target 'flour\*'"):
        entries(tmp_path, target="flour*")


@pytest.mark.slow
def test_every_shipped_entry_names_a_check_and_a_target() -> None:
    passing = [Outcome(check, "pass") for check in suite.everything().values()]
    for target in TARGETS.values():
        for entry in expectations.load(target.expectations) if target.expectations else []:
            (first, *_) = filter(entry.concerns, TARGETS)
            assert any(entry.covers(first, outcome.check.id) for outcome in passing), entry


@pytest.mark.slow
@pytest.mark.requirement("CNF-05")
def test_an_entry_that_is_not_true_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, fake = tmp_path / "expectations.toml", Path(__file__).with_name("fake_adapter.py")
    path.write_text(
        '[[expect]]\ntarget = "adapter"\nchecks = "field.add/exact"\nverdict = "wrong_value"\nreason = "known"\n'
    )
    command = ["conform", "-k", "field.add/exact", "--fuzz", "5", "--repro", str(tmp_path), "--expect", str(path), "--"]
    assert cli.main([*command, sys.executable, str(fake), "wrong-value"]) == 0
    assert cli.main([*command, sys.executable, str(fake), "none"]) == 1
    assert "STALE    adapter: field.add/exact (wrong_value): field.add/exact passes" in capsys.readouterr().out
    assert cli.main([*command, sys.executable, str(fake), "crash"]) == 1
    assert "fails as crash instead" in capsys.readouterr().out
    path.write_text(path.read_text().replace('"wrong_value"', '["wrong_value", "pass"]'))
    assert cli.main([*command, sys.executable, str(fake), "wrong-value"]) == 0
    assert cli.main([*command, sys.executable, str(fake), "none"]) == 0, "it is said to be rare"
    assert cli.main([*command, sys.executable, str(fake), "crash"]) == 1


@pytest.mark.requirement("CNF-05")
def test_an_entry_of_passes_alone_expects_nothing(tmp_path: Path) -> None:
    path = tmp_path / "expectations.toml"
    path.write_text('[[expect]]\ntarget = "adapter"\nchecks = "x"\nverdict = "pass"\nreason = "none"\n')
    with pytest.raises(expectations.ExpectationsError, match="names no failure"):
        expectations.load(path)


# ------------------------------------------------------------------------------------------------------ a baseline

IDS = [id for id in suite.everything() if not set(id) & set("*?[")]


@pytest.mark.requirement("CNF-80")
@given(st.dictionaries(st.sampled_from(IDS), st.tuples(st.sampled_from(VERDICTS), st.text()), max_size=25))
def test_what_failed_is_expected_when_it_was_written_down(
    tmp_path_factory: pytest.TempPathFactory, failed: dict[str, tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "expect.toml"
    found = [
        Outcome(replace(CHECK, id=id), verdict, failure=Failure(verdict, message, ()))
        for id, (verdict, message) in failed.items()
    ]
    unrun = Outcome(replace(CHECK, id="field.add/elements"), "not_run", failure=Failure("not_run", "no time", ()))
    outcomes = [PASSED, *found, unrun]
    first = expectations.failures(expectations.judge("adapter", outcomes, []))
    path.write_text(expectations.written({"adapter": first}), encoding="utf-8")
    known = expectations.load(path)
    again = expectations.judge("adapter", found, known)
    assert not any(each.unexpected for each in again)
    assert len(known) == len(found)
    assert expectations.stale("adapter", found, known) == []
    assert expectations.written({"adapter": again}) == path.read_text(encoding="utf-8")


MASKING = """
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, pack, unpack

adapter = Adapter("masking", "0.1.0")

@adapter.operation("lightsecagg.mask")
def mask_update(q, update, mask):
    return {"masked": pack([(x + z) % int(q) for x, z in zip(unpack(update), unpack(mask))])}

adapter.run()
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-80")
def test_a_run_with_its_baseline_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter, baseline = tmp_path / "adapter.py", tmp_path / "expectations.toml"
    adapter.write_text(MASKING)
    options = ["-k", "lightsecagg.mask", "--fuzz", "4", "--repro", str(tmp_path / "repro")]
    command = ["--", sys.executable, str(adapter)]
    assert cli.main(["conform", *options, "--baseline", str(baseline), *command]) == 1
    said = capsys.readouterr().err
    written = baseline.read_text()
    count = written.count("[[expect]]")
    assert count > 3
    assert f"wrote {count} failures to {baseline}: give each its reason" in said
    assert cli.main(["conform", *options, "--expect", str(baseline), *command]) == 0
    assert cli.main(["conform", *options, "--baseline", str(baseline), *command]) == 2
    assert f"--baseline {baseline}: this exists, and it is not written over; name a new file" in capsys.readouterr().err
    assert baseline.read_text() == written


@pytest.mark.requirement("CNF-80")
def test_a_baseline_that_appeared_meanwhile_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter, baseline = tmp_path / "adapter.py", tmp_path / "expectations.toml"
    adapter.write_text(f"open({str(baseline)!r}, 'w').write('mine')\n{MASKING}")
    options = ["-k", "lightsecagg.mask/empty", "--fuzz", "5", "--repro", str(tmp_path / "repro")]
    assert cli.main(["conform", *options, "--baseline", str(baseline), "--", sys.executable, str(adapter)]) == 2
    assert f"--baseline {baseline}: File exists" in capsys.readouterr().err
    assert baseline.read_text() == "mine"


@pytest.mark.requirement("CNF-80")
def test_a_baseline_is_no_other_file_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one"
    options = ["--repro", str(tmp_path), "--baseline", str(path), "--json", str(tmp_path / "." / "one")]
    assert cli.main(["conform", *options, "--", "./nothing"]) == 2
    assert f"--baseline {path}: --json names the same file" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.requirement("CNF-80")
def test_a_baseline_says_how_many_checks_were_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter, baseline, gone = (tmp_path / name for name in ("adapter.py", "expectations.toml", "gone"))
    once = f"import os, pathlib\ngone = pathlib.Path({str(gone)!r})\nif gone.exists(): raise SystemExit\n"
    adapter.write_text(once + MASKING.replace("    return", "    gone.touch(), os._exit(1)\n    return"))
    options = [
        "-k",
        "lightsecagg.mask/exact,lightsecagg.mask/result",
        "--fuzz",
        "2",
        "--repro",
        str(tmp_path / "repro"),
    ]
    assert cli.main(["conform", *options, "--baseline", str(baseline), "--", sys.executable, str(adapter)]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"wrote 1 failure to {baseline}")
    assert said.endswith("; 1 check was not run: a run with this file passes only if every check is run")


@pytest.mark.requirement("CNF-80")
@pytest.mark.parametrize(("program", "said"), [("raise SystemExit", ""), (MASKING, "nothing failed, so ")])
def test_nothing_is_written_where_nothing_failed(
    program: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter, baseline = tmp_path / "adapter.py", tmp_path / "expectations.toml"
    adapter.write_text(program)
    options = ["-k", "lightsecagg.mask/exact", "--fuzz", "5", "--repro", str(tmp_path / "repro")]
    code = cli.main(["conform", *options, "--baseline", str(baseline), "--", sys.executable, str(adapter)])
    assert code == (0 if said else 3)
    assert said in capsys.readouterr().err
    assert not baseline.exists()
