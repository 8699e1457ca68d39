"""The screen that the README shows says what is stored of the frameworks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from secagg_spec.commands.demo import SLOW, TARGETS
from secagg_spec.conformance.reports import results
from secagg_spec.conformance.reports.brief import KINDS, WORST

ROOT = Path(__file__).parents[2]
SCREEN = (ROOT / "README.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0].splitlines()
STORED = results.load(ROOT / "docs" / "results")
COLUMNS = ("leak", "sum", "input", "crash", "other")


@pytest.mark.parametrize("target", [name for name in TARGETS if name in STORED])
def test_a_row_counts_what_is_stored(target: str) -> None:
    about = STORED[target]["implementation"]
    [row] = [line for line in SCREEN if line.startswith(f"{about['name']} {about['version']} ") and "%" not in line]
    *_, passed, failed, _, leak, wrong, taken, crash, other = row.split()
    asked = [one for one in STORED[target]["checks"] if not any(part in one["check"] for part in SLOW)]
    kinds = Counter(KINDS.get(one["verdict"], "other") for one in asked if one["failure"])
    assert [leak, wrong, taken, crash, other] == [str(kinds[kind] or "-") for kind in COLUMNS]
    assert [int(passed), int(failed)] == [len(asked) - kinds.total(), kinds.total()]


def test_the_number_of_frameworks_is_that_of_the_demo() -> None:
    found = {results.framework(name) for name in TARGETS if name in STORED}
    assert (len(found), set(TARGETS) - set(STORED)) == (5, {"node"})
    assert "judge five released frameworks and an implementation in Node" in ROOT.joinpath("README.md").read_text(
        "utf-8"
    )


def test_the_worst_findings_are_stored_under_their_clauses() -> None:
    worst = SCREEN[SCREEN.index(f"The worst {WORST} findings") + 1 :]
    assert len(worst) == WORST
    for line in worst:
        kind, _, rest = line.partition("  ")
        who, _, why = rest.rpartition("  ")[0].strip().removesuffix("…").partition(": ")
        found = [
            one
            for result in STORED.values()
            if f"{result['implementation']['name']} {result['implementation']['version']}" == who
            for one in result["checks"]
            if one["failure"] and one["expected_failure"].startswith(why)
        ]
        assert (kind, line.split()[-1]) in {(KINDS[one["verdict"]], one["clauses"][0]) for one in found}
