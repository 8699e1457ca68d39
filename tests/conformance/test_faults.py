"""Each party meets the faults that follow from its table, and each fault can be put into some session of the party."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from secagg_spec.conformance.adapter.capabilities import Capabilities, greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.faults import DERIVED, REFUSALS, Refusals, Rule, built
from secagg_spec.conformance.checks.scripts import Fault
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES
from secagg_spec.conformance.sessions.choices import any_of
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.scripts import entries_of
from tests.quick import one_in, part

ALL = sorted(REFUSALS)
IN_TURN = {"out-of-turn", "step-again"}
"""The faults of a party whose steps have an order."""


@pytest.fixture(scope="module")
def caps() -> Capabilities:
    return greet(DirectConnection(reference.build().answer).ask)


def test_each_party_of_the_text_has_its_faults() -> None:
    assert {party.replace("_", "-") for party in REFUSALS} == set(PARTIES)


@pytest.mark.parametrize("party", ALL)
def test_what_follows_from_the_table_is_a_check(party: str) -> None:
    wanted = {"elsewhere", "sender", "second-message", "bytes", "type"}
    protocol, _, role = party.partition(".")
    if not protocol.startswith(("basecagg", "basa")):
        wanted |= IN_TURN
    if role == "user" or protocol == "basa":
        wanted |= {"no-message"}
    if role == "server" and protocol != "basa":
        wanted |= {"relay"}
    assert set(REFUSALS[party].rules) >= wanted
    assert {f"{party}/{name}" for name in REFUSALS[party].rules} <= set(REGISTRY)


def test_each_derived_fault_is_a_check_of_some_party() -> None:
    assert {name for known in REFUSALS.values() for name in known.rules} >= set(DERIVED)


def missing(refusals: Refusals, caps: Capabilities, most: int) -> set[str]:
    """Return the rules of a party that draw no fault in any of some sessions."""
    return {name for name, rule in refusals.rules.items() if not _draws(refusals, rule, caps, most)}


def _draws(refusals: Refusals, rule: Rule, caps: Capabilities, most: int) -> bool:
    @st.composite
    def drawn(draw: st.DrawFn) -> bool:
        return bool(built(rule.build, draw, refusals.session(draw, caps, **rule.given)))

    settings = hypothesis.settings(
        max_examples=most,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        hypothesis.find(drawn(), bool, settings=settings)
    except NoSuchExample:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("party", one_in(2, part(2, ALL)))
def test_each_fault_can_be_put_into_some_session(party: str, caps: Capabilities) -> None:
    assert missing(REFUSALS[party], caps, 100) == set()


@pytest.mark.parametrize("party", one_in(4, ALL))
def test_the_right_entries_are_those_of_the_reference(party: str, caps: Capabilities) -> None:
    @hypothesis.settings(max_examples=5, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        session = REFUSALS[party].session(data.draw, caps)
        assert session.right_entries == entries_of(session.inputs.open(session.party), session.calls())

    compare()


def test_a_rule_that_never_draws_a_fault_is_found(caps: Capabilities) -> None:
    known = REFUSALS["lightsecagg.server"]
    never = Rule(lambda draw, session: any_of(draw, list[Fault]()), (), {}, shared=False)
    rules = {"bytes": known.rules["bytes"], "never": never}
    broken = object.__new__(Refusals)
    vars(broken).update({**vars(known), "rules": rules})
    assert missing(broken, caps, 10) == {"never"}
