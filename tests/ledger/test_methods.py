"""Proofs as programs: what counts as evidence, methods and second ones, and the verdict that counted cases give."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secagg_spec import resources, schemas
from secagg_spec.ledger import entries, errors, proofs
from secagg_spec.ledger.errors import BrokenProof, MissingEvidence, ProofFailed
from secagg_spec.ledger.proofs import Tally, _verdict, by_reading
from tests.ledger.forms import HEAD, entry, load


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CLAIMS = (", "SyntaxError"),
        ("CLAIMS = {}", "prove"),
        ("CLAIMS = ('TST-1',)\ndef prove(report): ...", "ValueError"),
        ("def prove(report): return {}", "CLAIMS"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
    ],
)
def test_a_file_that_is_no_proof_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(text, encoding="utf-8")
    with pytest.raises(BrokenProof, match=rf"^bad\.py is no proof: .*{said}") as raised:
        proofs.load_proof("bad", tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.requirement("CLM-06")
@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("return {}", BrokenProof, r"finds \[\] and names \['TST-1'\]"),
        ("return {'TST-1': None}", BrokenProof, "checked nothing"),
        ("report.check(bool(CLAIMS), 'x'); return {'TST-1': 1}", BrokenProof, "TST-1: int is no Finding"),
        ("report.check(str(CLAIMS), 'x')", errors.ProofFailed, "neither true nor false, but str: x"),
        ("return 1 // 0", errors.ProofFailed, "broke: ZeroDivisionError"),
        ("raise SystemExit(0)", errors.ProofFailed, "broke: SystemExit"),
        ("report.check(len(CLAIMS) == 2, 'one is two')", errors.ProofFailed, "this does not hold: one is two"),
    ],
)
def test_a_proof_that_proves_nothing_does_not_pass(text: str, kind: type[Exception], said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        f"CLAIMS = {{'TST-1': 'symbolic'}}\ndef prove(report):\n    {text}\n", encoding="utf-8"
    )
    with pytest.raises(kind, match=said):
        proofs.run(proofs.load_proof("bad", tmp_path))


FOOLED = """import os
import numpy as np
from contextlib import suppress
from secagg_spec.ledger.proofs import Finding, Tally
CLAIMS = {{"TST-1": "symbolic"}}
{above}
def prove(report):
    tally, none = Tally(), []
    report.check(len(CLAIMS) == 1, "one is one")
    {text}
    return {{"TST-1": Finding(tally.verdict if tally.cases else "confirmed", "it is")}}
"""
SWALLOWED = "with suppress(Exception): "


@pytest.mark.requirement("CLM-06", "CLM-14", "CLM-15", "CLM-16")
@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (SWALLOWED + "report.check(not CLAIMS, 'x')", ProofFailed, "this does not hold: x"),
        (SWALLOWED + "report.agree('TST-1', 'library', not CLAIMS, 'x')", ProofFailed, "this does not hold: by a sec"),
        (SWALLOWED + "report.check(len(CLAIMS), 'x')", ProofFailed, "neither true nor false, but int: x"),
        ("tally.add({}, len(CLAIMS) + 1); tally.add({}, not CLAIMS)", ProofFailed, "neither true nor false, but int"),
        ("tally.add({}, bool(CLAIMS))\n    " + SWALLOWED + "tally.add({}, tally)", ProofFailed, "false, but Tally"),
        ("tally.add({}, bool(CLAIMS), condition=2)", ProofFailed, "neither true nor false, but int"),
        ("report.check(True, 'x')", BrokenProof, "bad.py .* line 10 checks what needs no check: True"),
        ("report.check(not 1 > 2, 'x')", BrokenProof, "line 10 checks what needs no check: not 1 > 2"),
        ("report.check(tally.held == tally.held, 'x')", BrokenProof, "needs no check: tally.held == tally.held"),
        ("report.agree('TST-1', 'library', True, 'x')", BrokenProof, "needs no check: True"),
        ("tally.add({}, True)", BrokenProof, "needs no check: True"),
        ("report.check(all(x > 1 for x in none), 'x')", BrokenProof, "bad.py compared nothing in line 10: "),
        ("report.check(all(x > 1 for x in CLAIMS if none), 'x')", BrokenProof, "compared nothing in line 10: "),
        ("report.check(not any(none), 'x')", BrokenProof, "compared nothing in line 10: none"),
        ("for x in none: report.check(x > 1, 'x')", BrokenProof, "compared nothing in line 10: none"),
        ("if none: report.check(none == [2], 'x')", BrokenProof, "compared nothing in line 10: none == "),
        (SWALLOWED + "report.check(1 // len(none) == 0, 'x')", BrokenProof, "compared nothing in line 10: 1 // len"),
        ("report.check(holds=True, statement='x')", BrokenProof, "line 10 checks what needs no check: True"),
        ("tally.add({}, holds=True)", BrokenProof, "line 10 checks what needs no check: True"),
        ("report.check(bool(1), 'x')", BrokenProof, "needs no check: bool"),
        ("known = True; report.check(known, 'x')", BrokenProof, "needs no check: known"),
        ("c = report.check; c(True, 'x')", BrokenProof, "line 10 names report.check and does not call it there"),
        ("report.check(set(none) == set(none[1:]), 'x')", BrokenProof, "compared nothing in line 10: set"),
        ("report.check(set(none) <= set(CLAIMS), 'x')", BrokenProof, "compared nothing in line 10: set"),
        ("report.check(sum(none) == 0, 'x')", BrokenProof, "compared nothing in line 10: none"),
        ("report.check(bool(np.all(np.array(none) > 1)), 'x')", BrokenProof, "compared nothing in line 10: np.array"),
        ("report.check(bool((np.array(none) > 1).all()), 'x')", BrokenProof, "compared nothing in line 10: np.array"),
        ("report.check(np.array_equal(none, none[1:]), 'x')", BrokenProof, "compared nothing in line 10: none"),
        ("os._exit(0)", ProofFailed, "bad.py broke: its process ended with status 0 and without its closing record"),
        ("os.execv('/bin/true', ['true'])", ProofFailed, "ended with status 0"),
    ],
)
def test_a_proof_cannot_be_fooled(text: str, kind: type[Exception], said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(FOOLED.format(above="", text=text), encoding="utf-8")
    with pytest.raises(kind, match=said):
        proofs.run(proofs.load_proof("bad", tmp_path))


@pytest.mark.requirement("CLM-15")
@pytest.mark.parametrize(
    "text",
    [
        "report.check(2**10 < 10**4, 'x')",
        "report.check(none == [], 'x')",
        "report.check(not set(none), 'x')",
        "report.check(len(none) == 0, 'x')",
        "[report.check(set(some) == set(some), 'x') for some in ([], [1])]",
        "report.check(bool((np.arange(3) < 3).all()) and np.array_equal(np.arange(2), [0, 1]), 'x')",
    ],
)
def test_what_compares_something_is_evidence(text: str, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(FOOLED.format(above="", text=text), encoding="utf-8")
    assert proofs.run(proofs.load_proof("good", tmp_path))["TST-1"].verdict == "confirmed"


@pytest.mark.requirement("CLM-16")
def test_a_file_that_ends_its_process_is_no_proof(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(FOOLED.format(above="os._exit(0)", text="pass"), encoding="utf-8")
    with pytest.raises(BrokenProof, match=r"^bad\.py broke: its process ended with status 0"):
        proofs.load_proof("bad", tmp_path)


def test_what_a_proof_says_comes_out_of_its_process_and_errors_too(tmp_path: Path) -> None:
    text = "[report.say(str(x)) for x in range(3)]; tally.add({'q': (1, 2)}, bool(CLAIMS)); tally.add({'q': (1, 2)}, x)"
    (tmp_path / "bad.py").write_text(FOOLED.format(above="x = False", text=text), encoding="utf-8")
    lines: list[str] = []
    finding = proofs.run(proofs.load_proof("bad", tmp_path), lines.append)["TST-1"]
    assert (lines, finding.verdict) == (["0", "1", "2"], "refuted")


def test_loading_a_proof_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("CLAIMS = {}\ndef prove(report): ...\n", encoding="utf-8")
    proofs.load_proof("good", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["good.py"]


def test_a_proof_that_does_not_decide_the_claim_is_refused() -> None:
    claim = dataclasses.replace(entries.load().claim("BAS-Q"), proof="thresholds")
    with pytest.raises(BrokenProof, match=r"thresholds\.py decides BAS-UT, BAS-SPLIT, and not BAS-Q"):
        proofs.verify(claim)


def test_a_claim_without_a_proof_says_why(tmp_path: Path) -> None:
    undecided = {"verdict": '"open"', "decides": '"a run"', "method": None, "scope": None}
    book = load(tmp_path, HEAD + entry(**undecided, evidence='{ none = "needs a run" }'))
    with pytest.raises(MissingEvidence, match="TST-1 has no proof: needs a run"):
        proofs.verify(book.claim("TST-1"))


@pytest.mark.requirement("CLM-05", "CLM-07")
@pytest.mark.parametrize(
    ("cases", "verdict", "exact"),
    [
        ([], "open", True),
        ([(True, True)], "confirmed", True),
        ([(True, True), (True, False)], "confirmed", False),
        ([(True, True), (False, False)], "conditional", True),
        ([(True, True), (False, True)], "refuted", False),
        ([(False, False)], "refuted", True),
        ([(True, False), (False, False)], "open", False),
        ([(True, True), (True, False), (False, False)], "conditional", False),
    ],
)
def test_a_tally_reaches_the_verdict(cases: list[tuple[bool, bool]], verdict: str, exact: bool) -> None:
    tally = Tally()
    for number, (holds, condition) in enumerate(cases):
        tally.add({"case": number}, holds, condition=condition)
    assert (tally.verdict, tally.exact) == (verdict, exact)
    failing = [number for number, (holds, _) in enumerate(cases) if not holds]
    assert tally.against == ({"case": failing[0]} if failing else None)


@pytest.mark.requirement("CLM-05")
@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ([], "open"),
        ([True, True], "confirmed"),
        ([False, True], "imprecise"),
        ([False, False], "refuted"),
        ([[(True, True)], False], "imprecise"),
        ([[(False, True)], [(True, True), (False, False)]], "refuted"),
        ([[(True, True), (False, False)]] * 2, "conditional"),
    ],
)
def test_a_claim_of_several_readings_is_imprecise_when_some_hold(readings: list[Any], verdict: str) -> None:
    found: list[bool | Tally] = []
    for cases in readings:
        tally = Tally()
        for holds, condition in cases if isinstance(cases, list) else ():
            tally.add({}, holds, condition=condition)
        found.append(tally if isinstance(cases, list) else cases)
    assert by_reading(found) == verdict


@pytest.mark.requirement("CLM-05")
def test_no_program_calls_one_verdict_by_the_name_of_another() -> None:
    named = re.compile(r'"(confirmed|imprecise|refuted)" if [\w.]+\.verdict == "conditional"')
    for path in sorted(resources.root("proofs").glob("*.py")):
        assert not named.search(path.read_text(encoding="utf-8")), path.name


@pytest.mark.requirement("CLM-14")
def test_a_breach_is_counted_first() -> None:
    """Even where the other counts say that all cases held, or that there was none."""
    assert [_verdict(2, 2, 1, 2), _verdict(0, 0, 1, 0), _verdict(2, 2, 0, 2)] == ["refuted", "refuted", "confirmed"]


TWICE = '''"""One is one."""
from secagg_spec.ledger.proofs import Finding
CLAIMS = {{"TST-1": "{method}", "TST-2": "symbolic"}}
def prove(report):
    report.check(len(CLAIMS) == 2, "one is one")
    {agree}
    return {{name: Finding("confirmed", "it is") for name in CLAIMS}}
'''


def found(folder: Path, agree: str, method: str = "enumeration") -> dict[str, proofs.Finding]:
    """What a proof finds that checks something in a second way."""
    (folder / "twice.py").write_text(TWICE.format(method=method, agree=agree), encoding="utf-8")
    return proofs.run(proofs.load_proof("twice", folder))


@pytest.mark.requirement("CLM-08")
def test_a_finding_has_the_methods_that_were_run(tmp_path: Path) -> None:
    both = "report.agree(['TST-1', 'TST-2'], 'matrices', len(CLAIMS) > 1, 'y')"
    agree = f"report.agree('TST-1', 'library', bool(CLAIMS), 'x'); {both}"
    findings = found(tmp_path, agree)
    assert [(one.method, one.second) for one in findings.values()] == [
        ("enumeration", ("matrices", "library")),
        ("symbolic", ("matrices",)),
    ]


@pytest.mark.requirement("CLM-05", "CLM-08")
@pytest.mark.parametrize(
    ("fields", "differing"),
    [
        ({}, []),
        ({"method": "symbolic"}, ["method"]),
        ({"second": ()}, ["second"]),
        ({"second": ("matrices", "library")}, ["second"]),
        ({"verdict": "open", "numbers": {"q": 5}}, ["verdict", "numbers"]),
    ],
)
def test_an_entry_that_says_otherwise_than_its_proof_is_told(
    tmp_path: Path, fields: dict[str, Any], differing: list[str]
) -> None:
    finding = found(tmp_path, "report.agree('TST-1', 'library', bool(CLAIMS), 'x')")["TST-1"]
    claim = load(tmp_path, HEAD + entry(second='["library"]')).claim("TST-1")
    differences = proofs.Outcome(dataclasses.replace(claim, **fields), finding).differences
    assert [text.partition(":")[0] for text in differences] == differing


@pytest.mark.requirement("CLM-06", "CLM-08", "CLM-09")
@pytest.mark.parametrize(
    ("agree", "kind", "said"),
    [
        ("report.agree('TST-1', 'library', not CLAIMS, 'x')", ProofFailed, "by a second method, library: x"),
        (
            "report.agree('TST-3', 'library', bool(CLAIMS), 'x')",
            BrokenProof,
            "agrees on TST-3, which it does not decide",
        ),
        (
            "report.agree('TST-1', 'guess', bool(CLAIMS), 'x')",
            BrokenProof,
            "TST-1: 'guess' is no method; the methods are sym",
        ),
        (
            "report.agree('TST-1', 'enumeration', bool(CLAIMS), 'x')",
            BrokenProof,
            "enumeration is the method itself, and no",
        ),
    ],
)
def test_a_second_method_that_is_none_is_refused(tmp_path: Path, agree: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        found(tmp_path, agree)


def test_the_rank_of_flint_is_that_of_a_field_or_of_the_rationals() -> None:
    rows = np.array([[1, 2, 3], [2, 11, 6]], dtype=np.uint64)
    assert (proofs.rank_of_flint(rows), proofs.rank_of_flint(rows, 7), proofs.rank_of_flint(rows, 5)) == (2, 1, 2)
    assert [proofs.rank_of_flint([], q) for q in (None, 7)] == [0, 0]
    assert proofs.rank_of_flint(np.zeros((3, 0), dtype=np.uint64), 7) == 0


@pytest.mark.requirement("CLM-08")
@pytest.mark.parametrize("method", ["guess", "library", ""])
def test_an_unknown_method_of_a_proof_is_refused(tmp_path: Path, method: str) -> None:
    with pytest.raises(BrokenProof, match=rf"^twice\.py: CLAIMS: TST-1: '{method}' is no method; the methods are sym"):
        found(tmp_path, "pass", method)


def test_the_text_and_the_schema_know_the_methods() -> None:
    fields = schemas.load(resources.root("spec") / "claims" / "schema.json")["properties"]["claim"]["items"][
        "properties"
    ]
    assert tuple(fields["second"]["items"]["enum"]) == tuple(proofs.METHODS)
    assert [*fields["method"]["enum"], "library"] == list(proofs.METHODS)
    page = (resources.root("spec") / "ledger.md").read_text(encoding="utf-8")
    rows = page.partition("| method | what is done |")[2].partition("\n\n")[0]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows.splitlines()[2:]] == list(proofs.METHODS)
