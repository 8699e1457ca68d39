"""What a run would notice: a lower bound that holds, and advice that keeps its word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import POLICIES, Capabilities, greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation import coverage, evidence, kills, search
from secagg_spec.conformance.running.suite import PREFIX
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import judge
from tests.conformance import shipped
from tests.quick import WHOLE, exhaustive

CAPS = greet(DirectConnection(reference.build().answer).ask)
TABLE = kills.load()
SHOWN = [name for name, bug in TABLE.items() if bug.shown]
OUTSIDE = {name for name, bug in TABLE.items() for case in bug.cases if not all(need.inside for need in case.needs)}
"""The bugs that show in requests outside a declared range; narrower ranges bring them within reach."""


def declaring(*names: str, **more: Mapping[str, Any]) -> Capabilities:
    """What the reference declares, of these operations alone, some of them with something more."""
    operations = {name: CAPS.operations[name] for name in names}
    return replace(CAPS, operations={**operations, **{name.replace("_", "."): body for name, body in more.items()}})


def caught(caps: Capabilities, **how: Any) -> set[str]:
    return set(coverage.could_have_caught(caps, **how).caught)


NARROW = {
    "sharing": declaring("shamir.share", "shamir.reconstruct"),
    "small fields": declaring(
        field_multiply={"ranges": {"q": {"max": 1000}}}, mds_encode={"ranges": {"N": {"max": 6}}}
    ),
    "aggregation": declaring("lightsecagg.aggregate_shares", "lightsecagg.mask"),
    "one parameter set": declaring(
        mds_decode={"parameter_sets": [{"N": 5, "U": 3, "T": 1}]}, quantizer_dequantize={"ranges": {"q": {"max": 300}}}
    ),
    "another code": replace(declaring("mds.encode", "lightsecagg.recover"), policies={"mds.code": "other"}),
    "its own noise": declaring(mds_encode={"randomness": "none"}, field_add={}),
}


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
@pytest.mark.parametrize("name", NARROW)
def test_each_bug_that_counts_is_caught_by_a_run_inside_what_is_declared(name: str) -> None:
    caps = NARROW[name]
    by_vectors = sorted(caught(caps, chosen_checks=[f"{PREFIX}{id}" for id in shipped.VECTORS]))
    for bug in by_vectors[:: max(1, len(by_vectors) // 12)]:
        inside = [v for id in TABLE[bug].vectors if judge.covers(caps, v := shipped.VECTORS[id])]
        connection = evidence.PlantedConnection(bug)
        assert any(judge.judge(connection, caps, vector).failed for vector in inside)


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
def test_a_bug_that_counts_by_a_stored_case_is_caught_by_the_checks_of_a_run() -> None:
    drawn = [name for name, bug in TABLE.items() if bug.found == kills.DRAWN and bug.calls < 50]
    for bug in [name for name in drawn if not any(case.alone for case in TABLE[name].cases)][:: 8 if WHOLE else 32]:
        caps = declaring(*{need.op for case in TABLE[bug].cases[:1] for need in case.needs})
        if bug in caught(caps, with_vectors=False):
            assert search.killing_checks(mutants.REGISTRY[bug], 200, 2, caps)[0]


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
def test_a_bug_that_shows_outside_the_declared_range_does_not_count() -> None:
    small = declaring(field_multiply={"ranges": {"q": {"max": 1000}}})
    assert "product-in-int64" in caught(declaring("field.multiply"))
    assert "product-in-int64" not in caught(small)
    needs_a_range = {"wrong-outside-its-range"}
    assert caught(small) - needs_a_range < caught(declaring("field.multiply"))


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
def test_a_bug_counts_outside_the_range_only_where_a_range_is_declared() -> None:
    ranged = declaring(field_multiply={"ranges": {"q": {"max": 2**31 - 1}}})
    assert "wrong-outside-its-range" in caught(ranged)
    assert "wrong-outside-its-range" not in caught(declaring("field.multiply"))


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
def test_grades_and_policies_decide_as_well() -> None:
    seeded = declaring(mds_encode={"randomness": "seeded"})
    assert "seed-is-ignored" in caught(seeded) - caught(declaring("mds.encode"))
    assert "encodes-one-point-further" in caught(declaring("mds.encode")) - caught(seeded)
    other = replace(declaring("mds.encode"), policies={"mds.code": "other"})
    assert "encodes-one-point-further" not in caught(other)


OPERATIONS = st.sets(st.sampled_from(sorted(CAPS.operations)), max_size=12)


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
@given(few=OPERATIONS, more=OPERATIONS)
@settings(max_examples=15, deadline=None)
@exhaustive
def test_more_operations_never_catch_less(few: set[str], more: set[str]) -> None:
    assert caught(declaring(*sorted(few))) <= caught(declaring(*sorted(few | more)))


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
@given(
    names=OPERATIONS,
    policy=st.sampled_from(sorted(POLICIES)),
    grade=st.sampled_from(["explicit", "none"]),
    high=st.integers(2, 2**32),
)
@settings(max_examples=15 if WHOLE else 8, deadline=None)
@exhaustive
def test_a_narrower_declaration_never_catches_more(names: set[str], policy: str, grade: Any, high: int) -> None:
    whole = declaring(*sorted(names))
    ranged = {name: {**body, "ranges": {"q": {"max": high}}} for name, body in whole.operations.items()}
    for narrow in (
        replace(whole, operations=ranged),
        replace(whole, policies={policy: POLICIES[policy][1]}),
        replace(whole, randomness=grade),
    ):
        assert caught(narrow) - OUTSIDE - graded() <= caught(whole)


def graded() -> set[str]:
    """The bugs that only show in a grade of randomness that the reference does not have."""
    needed = {name: {need.grade for case in bug.cases for need in case.needs} for name, bug in TABLE.items()}
    return {name for name, grades in needed.items() if grades & {"seeded", "none"}}


def test_the_reference_reaches_all_that_vectors_find() -> None:
    found = coverage.could_have_caught(CAPS)
    assert {name for name in SHOWN if TABLE[name].vectors} <= set(found.caught)
    assert found.m == len(SHOWN)
    assert sum(n for n, _ in found.protocols.values()) == found.n
    assert sum(m for _, m in found.protocols.values()) == found.m


def test_only_what_the_run_asks_counts() -> None:
    vectors = {f"{PREFIX}{id}" for id in shipped.VECTORS}
    assert caught(CAPS, with_vectors=False) == caught(CAPS, chosen_checks=set(CHECKS))
    assert caught(CAPS, chosen_checks=vectors) == {name for name in SHOWN if TABLE[name].vectors}
    assert caught(CAPS, chosen_checks=["field.add/exact"]) <= caught(CAPS, with_vectors=False)
    assert caught(CAPS, chosen_checks=[]) == set()


@pytest.mark.slow
def test_advice_that_is_followed_adds_what_it_says() -> None:
    caps, before = declaring("field.add"), caught(declaring("field.add"))
    found = coverage.could_have_caught(caps)
    assert [advice.more for advice in found.declare] != []
    for advice in found.declare:
        declared = {name: CAPS.operations[name] for name in advice.declare.split(" and ")}
        caps = replace(caps, operations={**caps.operations, **declared})
        now = caught(caps)
        assert len(now - before) == advice.more > 0
        before = now


@pytest.mark.slow
def test_advice_names_ranges_grades_policies_and_parties() -> None:
    def advised(caps: Capabilities) -> str:
        return " ".join(advice.declare for advice in coverage.could_have_caught(caps, most=200).declare)

    assert "wider ranges of field.multiply" in advised(declaring(field_multiply={"ranges": {"q": {"max": 3}}}))
    assert "mds.encode with explicit randomness" in advised(declaring(mds_encode={"randomness": "none"}))
    assert "the policy mds.code = vandermonde" in advised(NARROW["another code"])


def test_the_sentence_at_the_end_of_a_run() -> None:
    found = coverage.could_have_caught(declaring("field.add"))
    assert str(found).startswith(f"this run would notice {found.n} of {found.m} mutants; declaring ")
    assert found.as_json()["caught"] == found.n > 0
    assert set(found.as_json()) == {"caught", "of", "protocols", "declare"}
