"""The table of clauses: sentences of the text, without its markup."""

import re
from typing import cast

import pytest

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.reports.report import TargetReport

CLAUSES = resources.clauses()
CAPS = cast(Capabilities, object())


def _sentence(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a sentence as the table shows it."""
    monkeypatch.setattr(reporting, "clause_cells", lambda report: {"HSA-08": reporting.EXACT})
    row = reporting.table([TargetReport("adapter", CAPS)], {"HSA-08": text}).splitlines()[2]
    return row.split(reporting.EXACT)[1].strip()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"within $\tau$, of `x`", "within tau, of x"),
        (r"$y - u - \varepsilon \le k$", "y - u - epsilon ≤ k"),
        (r"users of $\mathcal U_1$", "users of U_1"),
    ],
)
def test_formulas_are_shown_without_markup(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _sentence(text, monkeypatch) == said


@pytest.mark.parametrize("clause", CLAUSES)
def test_no_command_of_tex_is_left_in_a_clause(clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not re.search(r"[\\$`]", _sentence(CLAUSES[clause], monkeypatch))
