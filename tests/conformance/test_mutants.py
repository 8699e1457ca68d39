"""Every planted bug differs from the reference, and a run finds it through the checks of the clause that it breaks."""

from __future__ import annotations

import sys

import pytest

from secagg_spec import resources
from secagg_spec.conformance import mutants
from secagg_spec.conformance.connection import ProcessConnection
from secagg_spec.conformance.runner import Settings, run
from secagg_spec.errors import ParameterError

REGISTRY = mutants.load()


@pytest.mark.parametrize("name", REGISTRY)
def test_a_mutant_differs_from_the_reference_and_leaves_no_trace(name: str) -> None:
    mutant = REGISTRY[name]
    assert mutant.clause in resources.clauses()
    right = mutant.witness()
    with mutants.planted(name):
        assert mutant.witness() != right
    assert mutant.witness() == right


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRY)
def test_a_run_kills_the_mutant_through_its_clause(name: str) -> None:
    command = [sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant", name]
    connection = ProcessConnection(command)
    try:
        _, outcomes = run(connection, Settings(cases=100, pattern=REGISTRY[name].clause))
    finally:
        connection.close()
    killers = [outcome for outcome in outcomes if outcome.failure]
    assert killers, f"{name} is alive"
    assert all(outcome.failure and outcome.failure.verdict not in ("crash", "timeout") for outcome in killers)


def test_an_unknown_mutant_is_refused_with_the_names() -> None:
    with pytest.raises(ParameterError, match="subtract-wraps"), mutants.planted("nothing"):
        pass
