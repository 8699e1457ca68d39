"""Mutants that hide each other: a round of the implementation with itself is right, and fixed outcomes are not."""

from __future__ import annotations

import pytest

from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation.evidence import PlantedConnection, failing
from secagg_spec.conformance.running.runner import Settings, first_failure, run_check
from tests.conformance import shipped
from tests.quick import part

REGISTRY = mutants.load()
COMPOSITES = {name: mutant for name, mutant in REGISTRY.items() if mutant.parts}
ROUNDS = {
    "code-one-point-further": "lightsecagg.round/sum",
    "masks-with-the-other-sign": "lightsecagg.round/sum",
    "buffered-masks-with-the-other-sign": "basecagg.rounds/sums",
    "own-masks-with-the-other-sign": "secagg.average/late-dropouts",
    "shared-masks-with-the-other-sign": "secagg.average/late-dropouts",
    "basa-own-masks-with-the-other-sign": "basa/own-masks",
    "integers-with-the-other-sign": "secagg.average/mean",
    "shamir-one-point-further": "secagg.average/late-dropouts",
    "shamir-elements-in-the-other-order": "secagg.average/late-dropouts",
    "bits-from-the-highest-on": "heterosag.round/exact",
}
"""For each composite, the check that plays rounds of the implementation with itself, or its uploads and recovery."""
WRITTEN = ("integers-in-network-order", "receiver-stands-first", "lists-measured-in-bytes")
"""The composites of messages, which are read as they were written."""


def verdict(name: str, check: str) -> str:
    """Return the verdict of a check on the reference with a mutant planted."""
    connection = PlantedConnection(name)
    return run_check(connection, greet(connection.ask), CHECKS[check], Settings(12)).verdict


def found(name: str, check: str) -> bool:
    """Return whether a check fails on the reference with a mutant planted."""
    connection = PlantedConnection(name)
    return first_failure(connection, greet(connection.ask), CHECKS[check], Settings(12))


def test_there_are_ten_composites_over_the_protocols() -> None:
    assert len(COMPOSITES) >= 10
    assert {"lightsecagg", "secagg", "basecagg", "basa", "heterosag"} <= {m.protocol for m in COMPOSITES.values()}
    assert set(COMPOSITES) == {*ROUNDS, *WRITTEN}


@pytest.mark.slow
@pytest.mark.parametrize("name", part(2, ROUNDS))
def test_a_whole_round_alone_does_not_find_a_composite_and_finds_each_half(name: str) -> None:
    assert verdict(name, ROUNDS[name]) == "pass"
    assert all(found(half, ROUNDS[name]) for half in COMPOSITES[name].parts)


HEAD = {"session": "00" * 15 + "07", "round": "259", "sender": "server", "receiver": 2}
FIELDS = {"users": [0, 2, 258]}


def read_back(name: str) -> object:
    """Return what an implementation reads of a surviving set that it wrote."""
    connection = PlantedConnection(name)
    written = connection.ask(Request("message.encode", {"type": 259, **HEAD, "fields": FIELDS}))
    return connection.ask(Request("message.decode", {"type": 259, **written.value})).as_json()


@pytest.mark.parametrize("name", WRITTEN)
def test_a_message_is_read_as_it_was_written_with_both_halves_and_with_neither_alone(name: str) -> None:
    right = {"result": {**HEAD, "fields": FIELDS}}
    assert read_back(name) == right
    assert all(read_back(half) != right for half in COMPOSITES[name].parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPOSITES)
def test_vectors_find_a_composite_through_each_of_its_clauses(name: str) -> None:
    clauses = set(COMPOSITES[name].clauses)
    meant = [vector for vector in shipped.VECTORS.values() if not clauses.isdisjoint(vector.clauses)]
    found = {clause for vector in failing(name, meant) for clause in vector.clauses}
    assert clauses <= found
