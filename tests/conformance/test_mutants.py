"""Every planted bug differs from the reference, and a run finds it through the checks of the clause that it breaks."""

from __future__ import annotations

import pytest

from secagg_spec import resources
from secagg_spec.conformance import mutants, power
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
@pytest.mark.parametrize("name", [name for name, mutant in REGISTRY.items() if not mutant.reach])
def test_a_run_kills_the_mutant_through_its_clause(name: str) -> None:
    [kill] = power.hunt([REGISTRY[name]], cases=100, seeds=1)
    assert kill.checks, f"{name} is alive"
    assert kill.cases >= 1


def test_an_unknown_mutant_is_refused_with_the_names() -> None:
    with pytest.raises(ParameterError, match="subtract-wraps"), mutants.planted("nothing"):
        pass
