"""The README says of its picture what the kit finds."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from secagg_spec.conformance import api

ROOT = Path(__file__).parents[2]
REFERENCE = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
PICTURE = " ".join((ROOT / "README.md").read_text(encoding="utf-8").partition("![")[2].partition("](")[0].split())


def shown(words: str) -> list[int]:
    """The numbers in the words under the picture."""
    found = re.search(words.replace("#", r"(\d+)"), PICTURE)
    assert found, words
    return [int(number) for number in found.groups()]


@pytest.mark.slow
def test_the_reference_passes_as_much_as_the_readme_says() -> None:
    report = api.judge(REFERENCE, cases=1, pattern="mds.")
    verdicts = [str(one.outcome.verdict) for one in report.judged]
    assert [verdicts.count("pass")] == shown("pass all # checks and vectors")
    assert set(verdicts) == {"pass", "unsupported"}


def test_fedml_passes_and_fails_as_much_as_the_readme_says() -> None:
    stored = json.loads((ROOT / "docs" / "results" / "fedml.json").read_text(encoding="utf-8"))
    judged = [one for one in stored["checks"] if "mds." in one["check"]]
    passed = sum(one["verdict"] == "pass" for one in judged)
    failed = [one for one in judged if one["verdict"] not in ("pass", "unsupported")]
    assert [passed, len(failed)] == shown("passes # checks and fails #")
    assert all(one["expected_failure"] for one in failed)
    ((q, got),) = re.findall(r"gravest failure: with q = (\d+), .* decode to (\d+) where 0 was shared", PICTURE)
    (gravest,) = [one["failure"] for one in failed if one["verdict"] == "wrong_value"]
    assert gravest["message"].endswith(f"got {got}, must be 0")
    assert f'"q": "{q}"' in json.dumps(gravest)
