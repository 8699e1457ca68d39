"""The table of clauses: sentences of the text, without its markup."""

import re
from typing import Any, cast

import pytest

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import document
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.reports.page_content import page
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import Settings, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from tests.conformance import narrow

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


WIDE = {"field.add": {"ranges": {"q": {"values": [str(2**33)]}}}}
ELEMENTS = "0000000001" * 4


@pytest.mark.parametrize(
    ("q", "a", "declared", "said"),
    [
        (2**33, ELEMENTS, WIDE, "(4294967296 4294967296 4294967296 4294967296)"),
        (2**33, ELEMENTS, {}, "(0 1 256 65536 16777216)"),
        (2**33, "00000001", WIDE, "00000001"),
        (5, "01000000", WIDE, "(1)"),
        (0, ELEMENTS, WIDE, ELEMENTS),
        (2**521 + 1, "00" * 66, WIDE, "00" * 66),
    ],
    ids=["large", "not declared", "no whole elements", "small", "modulus 0", "modulus beyond all"],
)
def test_elements_are_read_in_as_many_bytes_as_they_have(q: int, a: str, declared: Any, said: str) -> None:
    request = Request("field.add", {"a": a, "q": str(q)})
    assert reporting.describe(request, declared) == f"field.add {shown(f'a={said} q={q}', 200)}"


def test_the_smallest_case_of_a_large_modulus_is_read_so_in_each_report() -> None:
    adapter = Adapter("x", "1")

    @adapter.operation("field.add", ranges={"q": {"values": [str(2**33)]}})
    def add(q: str, a: str, b: str) -> dict[str, str]:
        raise RuntimeError("no")

    caps = narrow.understood(adapter.hello)
    outcome = run_check(DirectConnection(adapter.answer), caps, REGISTRY["field.add/exact"], Settings(cases=2))
    made = TargetReport("made", caps=caps, judged=[Judged(outcome, None)])
    case = "field.add q=8589934592 a=(0) b=(0)"
    assert f"smallest case: {case}" in reporting.failures(made, expected=False)
    [target] = page(document.document([made], Settings()))["targets"]
    assert target["findings"][0]["alike"][0]["failure"]["case"] == case
