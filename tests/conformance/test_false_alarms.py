"""No alarm on implementations that are right: the reference in this process and in its own, and the Node one."""

from __future__ import annotations

import os
import shutil

import pytest

from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.connection import Connection, DirectConnection
from secagg_spec.conformance.runner import Settings, run
from secagg_spec.conformance.targets import TARGETS, reference

CASES = {"quick": 10, "default": 100, "thorough": 1000}[os.environ.get("HYPOTHESIS_PROFILE", "default")]


def alarms(connection: Connection, seed: int) -> list[str]:
    """Return the failures of a run of all checks."""
    try:
        _, outcomes = run(connection, Settings(cases=CASES, seed=seed))
    finally:
        connection.close()
    assert sum(outcome.cases > 0 for outcome in outcomes) > len(REGISTRY) * 0.8
    return [f"{outcome.check.id}: {outcome.failure.message}" for outcome in outcomes if outcome.failure]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_reference_in_this_process(seed: int) -> None:
    assert alarms(DirectConnection(reference.build().answer), seed) == []


def test_the_reference_over_the_pipe() -> None:
    assert alarms(TARGETS["reference"].connect(10.0), 3) == []


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("seed", [4, 5])
def test_the_independent_implementation_in_node(seed: int) -> None:
    assert alarms(TARGETS["node"].connect(10.0), seed) == []
