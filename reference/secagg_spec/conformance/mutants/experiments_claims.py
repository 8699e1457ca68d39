"""Planted bugs of the way from stored results to the verdicts of the ledger, which its tests find."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from secagg_spec.conformance.mutants import mutant

Function = Callable[..., Any]
_CLAIMS = "secagg_spec.experiments.claims"
_TEST = "tests/experiments/test_claims.py::test_a_claim_is_what_its_statements_make_of_it"
_CONFIRMED, _REFUTED = "confirmed", "refuted"


def _verdict(*statements: tuple[str, str]) -> Callable[[], object]:
    """Return a function that gives the verdict on a claim with statements of these presets and verdicts."""

    def witness() -> object:
        made = [SimpleNamespace(preset=preset, judged=SimpleNamespace(verdict=found)) for preset, found in statements]
        return import_module(_CLAIMS).verdict(made)

    return witness


@mutant(
    "a-small-run-refutes-a-paper",
    "EXP-31",
    "what fails for a small model on other data is said to be wrong in the paper",
    f"{_CLAIMS}:verdict",
    _verdict(("default", _REFUTED)),
    _TEST,
    kind="acceptance",
    source="clause in part",
)
def _at_any_scale(right: Function) -> Function:
    def verdict(statements: Any) -> Any:
        wrong = any(one.judged.verdict == _REFUTED for one in statements)
        return "refuted" if wrong else right(statements)

    return verdict


@mutant(
    "one-confirmed-statement-confirms-a-claim",
    "EXP-31",
    "a claim of three inequalities is confirmed when one of them is",
    f"{_CLAIMS}:verdict",
    _verdict(("default", _CONFIRMED), ("default", _REFUTED)),
    _TEST,
    kind="acceptance",
    source="other rule: any statement for all statements",
)
def _any_statement(right: Function) -> Function:
    def verdict(statements: Any) -> Any:
        some = any(one.judged.verdict == _CONFIRMED for one in statements)
        return "confirmed" if some else right(statements)

    return verdict
