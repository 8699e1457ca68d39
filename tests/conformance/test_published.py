"""Reports that others publish are noted, shown apart, and withheld where all broke."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from secagg_spec.conformance.reports import document, published, results
from secagg_spec.errors import UsageError
from tests.conformance.test_results import report

URL = "https://example.org/a/report.json"


def check(name: str, verdict: str) -> dict[str, Any]:
    """Return a check of a report, as the command writes it."""
    failure: dict[str, Any] = {
        "message": "m", "repeats": None, "expected": None, "suggests": [], "requests": [], "answers": [], "at": None,
        "repro": None, "replay": None,
    }  # fmt: skip
    return {
        "check": name, "clauses": ["ADP-41"], "text": "", "verdict": verdict, "note": None, "by_relation": True,
        "reason_checked": True, "expected_failure": None, "cases": 1, "inexpressible": 0,
        "failure": None if verdict == "pass" else failure,
    }  # fmt: skip


def of(tmp_path: Path, *checks: tuple[str, str], **changes: Any) -> Path:
    """Return a report of one adapter with these checks."""
    return report(tmp_path, target={"target": "adapter", "checks": [check(*one) for one in checks], **changes})


@pytest.mark.requirement("CNF-90")
def test_a_report_of_others_is_noted_with_its_address_digest_kit_and_text(tmp_path: Path) -> None:
    path, out = of(tmp_path, ("adapter/hello", "pass"), ("secagg.sum/exact", "pass")), tmp_path / "out"
    assert results.main(["--published", URL, str(path), "--out", str(out)]) == 0
    (entry,) = published.load(out)
    assert entry == {
        "url": URL, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "kit": "0", "text": "0" * 64,
        "name": "n", "version": "1", "verdicts": {"pass": 2},
    }  # fmt: skip


def test_a_report_at_the_same_address_replaces_the_one_before(tmp_path: Path) -> None:
    entry = published.entries(of(tmp_path, ("secagg.sum/exact", "pass")), URL)[0]
    odd = {**entry, "url": "https://example.org/b", "name": 'a "b" \\ é 😀'}
    for found in ([entry], [odd], [{**entry, "version": "2"}]):
        published.add(tmp_path, found)
    assert published.load(tmp_path) == [odd, {**entry, "version": "2"}]


@pytest.mark.requirement("CNF-91")
@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([], "no check of what it declares passed"),
        ([("adapter/hello", "pass")], "no check of what it declares passed"),
        ([("adapter/hello", "pass"), ("secagg.sum/exact", "wrong_value")], "no check of what it declares passed"),
        ([("secagg.sum/exact", "pass"), ("secagg.sum/wrong", "crash")], "all that failed are of the verdicts"),
        (
            [("echo", "pass"), ("a", "protocol"), ("b", "timeout"), ("c", "error")],
            "all that failed are of the verdicts",
        ),
    ],
)
def test_a_report_in_which_all_broke_is_withheld(
    checks: list[tuple[str, str]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = of(tmp_path, *checks), tmp_path / "out"
    assert results.main(["--published", URL, str(path), "--out", str(out)]) == 2
    assert f"adapter is withheld: {said}" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.requirement("CNF-91")
def test_a_report_with_one_failure_that_tells_something_is_taken(tmp_path: Path) -> None:
    path = of(tmp_path, ("secagg.sum/exact", "pass"), ("a", "crash"), ("b", "wrong_value"))
    (entry,) = published.entries(path, URL)
    assert entry["verdicts"] == {"crash": 1, "pass": 1, "wrong_value": 1}


def altered(body: dict[str, Any]) -> None:
    """Change what the report says, and not its digest."""
    body["targets"][0]["implementation"]["version"] = "2"


def unknown(body: dict[str, Any]) -> None:
    """Add a member that the schema does not have."""
    body["targets"][0]["shine"] = 1
    body["footer"]["digest"] = document.digest(body)


@pytest.mark.requirement("CNF-90")
@pytest.mark.parametrize(("change", "said"), [(altered, "altered"), (unknown, "shine")])
def test_a_file_that_is_no_report_is_refused(
    change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    path = of(tmp_path, ("secagg.sum/exact", "pass"))
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))
    with pytest.raises(UsageError, match=said):
        published.entries(path, URL)


@pytest.mark.parametrize("url", ["http://example.org/", "javascript:alert(1)", "https://a b", 'https://a/"', ""])
def test_an_address_that_is_not_one_of_the_web_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="url"):
        published.entries(of(tmp_path, ("secagg.sum/exact", "pass")), url)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("[[report", "published.toml: "),
        ('[[report]]\nurl = "https://a"\n', "report: 0: sha256: is missing"),
        ("[[reports]]\n", "reports"),
    ],
)
def test_a_file_of_entries_that_cannot_be_used_is_refused(change: str, said: str, tmp_path: Path) -> None:
    (tmp_path / published.FILE).write_text(change)
    with pytest.raises(UsageError, match=said):
        published.load(tmp_path)
