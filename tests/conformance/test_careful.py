"""Checks that vary what they draw: small composites, noise of an adapter's own drawing, failures of every operation."""

from __future__ import annotations

from typing import Any

import pytest

from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.conformance import mutants
from secagg_spec.conformance.capabilities import greet
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.arithmetic import COMPOSITES
from secagg_spec.conformance.connection import DirectConnection
from secagg_spec.conformance.mutants import careful
from secagg_spec.conformance.runner import Settings, run_check
from secagg_spec.conformance.targets import reference


def verdict(check: str, build: Any = reference.build, cases: int = 20) -> tuple[str, str]:
    """The verdict of a check on an adapter, and its message."""
    connection = DirectConnection(build().answer)
    outcome = run_check(connection, greet(connection.ask), REGISTRY[check], Settings(cases=cases))
    return outcome.verdict, outcome.failure.message if outcome.failure else outcome.note


def test_the_composites_are_composite_and_hold_pseudoprimes() -> None:
    assert not any(is_prime(q) for q in COMPOSITES)
    assert sum(pow(2, q - 1, q) == 1 for q in COMPOSITES) >= 10


@pytest.mark.parametrize("declared", ["seeded", "explicit and another code"])
def test_uniform_noise_hides(declared: str) -> None:
    uniform = careful._drawing(lambda q, T, L, seed: careful._elements(q, seed, T * L))(reference.build)

    def other_code() -> Any:
        adapter = reference.build()
        adapter.hello["policy"] = {"mds.code": "other"}
        return adapter

    assert verdict("mds.encode/hides", uniform if declared == "seeded" else other_code)[0] == "pass"


def test_what_explicit_noise_gives_is_decided_exactly() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    assert not REGISTRY["mds.encode/hides"].runs_on(caps)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("noise-of-zeros", "in 0 directions"),
        ("noise-with-a-row-of-zeros", "directions"),
        ("noise-of-one-bit", "for another mask"),
    ],
)
def test_noise_that_is_not_uniform_is_named(name: str, said: str) -> None:
    with mutants.planted(name):
        found, message = verdict("mds.encode/hides", reference.build)
    assert found == "wrong_value"
    assert said in message
