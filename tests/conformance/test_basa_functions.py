"""BASA in the kit, one function at a time: right implementations that declare less or draw otherwise, and bugs."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.cases import basa_functions, basa_schedules
from secagg_spec.conformance.cases.strategies import decimal
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Reject, check_form
from secagg_spec.conformance.sessions import basa_positions
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.protocols.basa.cores import VOID
from tests.conformance import narrow
from tests.quick import WHOLE, exhaustive

NAMES = ("basa.mask", "basa.seal", "basa.open", "basa.recover", "basa.epochs")
MINE = sorted(id for id in REGISTRY if set(REGISTRY[id].operations) & set(NAMES))


def hello(**declared: Any) -> dict[str, Any]:
    """An answer to hello with the five operations, and these members."""
    return {**reference.build().hello, "operations": {name: {} for name in NAMES}, **declared}


def judged(answer: Any, pattern: str = "basa*", cases: int = 8, seed: int = 3) -> dict[str, Outcome]:
    """What the checks say, by id."""
    _, outcomes = run(DirectConnection(answer), Settings(cases=cases, seed=seed, pattern=pattern))
    return {outcome.check.id: outcome for outcome in outcomes if outcome.verdict != "unsupported"}


def alarms(outcomes: dict[str, Outcome]) -> list[str]:
    """The failures among them."""
    return [f"{id}: {outcome.failure.message}" for id, outcome in outcomes.items() if outcome.failure]


def asked(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the reference answers."""
    return reference.build().answer({"id": 1, "op": op, "params": decimal(params), "rand": rand or {}})


# ----------------------------------------------------------------------------------------------------- declarations


@pytest.mark.slow
@pytest.mark.requirement("ADP-06", "ADP-36", "ADP-37")
@settings(
    max_examples=3 if WHOLE else 2, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    st.integers(0, 2**32),
    st.sampled_from(("explicit", "seeded", "none")),
    st.sampled_from(("aes-ctr", "other")),
    st.sampled_from(("positive", "negative")),
)
@exhaustive
def test_no_declaration_of_the_reference_gives_an_alarm(seed: int, grade: str, stream: str, middle: str) -> None:
    declared = hello(randomness=grade, policy={"prg.stream": stream, "quantizer.middle": middle})
    assert alarms(judged(narrow.adapter(declared), cases=3, seed=seed)) == []


def test_every_check_of_the_operations_runs_on_the_reference() -> None:
    caps = narrow.understood(reference.build().hello)
    assert all(REGISTRY[id].runs_on(caps) for id in MINE if not id.endswith(("/seeds", "/raw")))


def test_operations_of_basa_have_no_ranges() -> None:
    for name in NAMES:
        ranges = {"operations": {name: {"ranges": {"R": {"max": 16}}}}}
        with pytest.raises(Exception, match="no ranged parameter 'R'"):
            narrow.understood(hello(**ranges))


# ------------------------------------------------------------------------------------------------- what is drawn


@pytest.mark.requirement("BAA-01", "BAA-02")
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_drawn_is_what_the_text_allows(data: Any) -> None:
    """The numbers of a session are held to BAA-01 and BAA-02 here, by integers alone."""
    p = basa_functions.parameters(data.draw)
    assert 2 <= p.R <= 2**32
    assert p.d >= 1 <= p.T
    assert p.T + 2 <= p.K
    assert p.K + p.S <= p.N < 2**31
    assert p.timeouts != VOID or p.S == 0
    assert p.K * p.c_g <= (p.R - 1) // 2
    assert p.c_l * p.K * p.c_g <= 2**53


@pytest.mark.requirement("BAA-01", "BAA-02", "ADP-37")
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_wrong_number_is_wrong_and_every_other_one_right(data: Any) -> None:
    p = basa_functions.parameters(data.draw)
    chosen = basa_functions.box(data.draw, given=p)
    rand = {"box_key": chosen.box_key.hex()}
    for name, changed in basa_functions.wrong_numbers(p).items():
        assert "reject" in asked("basa.seal", chosen.seal_params(**changed), rand), name
    for name, other in basa_functions.others(p).items():
        assert basa_positions.digest(other) != basa_positions.digest(p), name


@pytest.mark.requirement("ADP-36")
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_schedules_are_taken_and_close_when_they_may(data: Any) -> None:
    made = basa_schedules.valid(data.draw)
    assert "result" in asked("basa.epochs", made.params, made.rand)
    for epoch in made.plan.epochs:
        places = [place for place, *_ in epoch.uploads]
        assert places == sorted(set(places))
        assert not epoch.closed or made.plan.parameters.T + 2 <= len(places) <= made.plan.parameters.K


@pytest.mark.slow
@pytest.mark.requirement("ADP-36")
def test_all_kinds_of_ends_are_drawn() -> None:
    seen: set[str] = set()

    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def look(data: Any) -> None:
        made = basa_schedules.valid(data.draw)
        p = made.plan.parameters
        for epoch in made.plan.epochs:
            full = len(epoch.uploads) == p.K
            seen.add(f"{p.timeouts} {'closed' if epoch.closed else 'ended' if epoch.ended else 'open'} {full}")

    look()
    assert {"settle closed True", "settle closed False", "void closed True", "void ended False"} <= seen


@pytest.mark.requirement("ADP-36")
@pytest.mark.parametrize(
    "event",
    [{"event": "upload", "user": 0}, {"event": "expire", "user": 0, "stamp": "1"}, {"event": "close", "user": 0}, 7],
)
def test_what_is_no_event_is_malformed(event: Any) -> None:
    with pytest.raises(Reject) as caught:
        check_form("schedule", [event], "[visit]")
    assert caught.value.code == "malformed"


# ------------------------------------------------------------------------------------------------------ mutants


class Wrong:
    """An implementation whose generator is another one, and which has a bug in a subclass."""

    def __init__(self) -> None:
        self.boxes = count()

    def adapter(self) -> Adapter:
        """Return the reference with another generator, and the bug."""
        made = reference.build()
        made.hello = hello(policy={"prg.stream": "other"}, randomness="none")
        for name in NAMES:
            right = made._handlers[name]
            made._handlers[name] = lambda right=right, name=name, **given: self.answer(name, right, given)
        return made

    def answer(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Answer as the reference does, with its own draws."""
        if name == "basa.seal":
            given = {**given, "rand": {"box_key": hashlib.sha256(f"{next(self.boxes)}".encode()).hexdigest()}}
        if name == "basa.epochs":
            given = {**given, "rand": {"roundings": np.zeros(len(given["updates"])).tobytes().hex()}}
        return self.changed(name, right, given)

    def changed(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Answer rightly."""
        result: dict[str, Any] = right(**given)
        return result


class NoMask(Wrong):
    def changed(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        if name == "basa.mask" and 0 in given["accepted"]:
            given = {**given, "accepted": given["accepted"][1:], "before": given["before"][1:]}
        return super().changed(name, right, given)


class Known(Wrong):
    def changed(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        if name == "basa.mask":
            at = 64 * given["position"]
            given = {**given, "seeds": given["seeds"][:at] + "0" * 64 + given["seeds"][at + 64 :]}
        if name == "basa.recover":
            given = {**given, "own": ["0" * 64 for _ in given["own"]]}
        return super().changed(name, right, given)


class Unbound(Wrong):
    def changed(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        return super().changed(name, right, {**given, "round": "0"} if name != "basa.epochs" else given)


class Elsewhere(Wrong):
    def changed(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        return super().changed(name, right, {**given, "sender": 0} if name in ("basa.seal", "basa.open") else given)


class Everybody(Wrong):
    def changed(self, name: str, right: Any, given: dict[str, Any]) -> dict[str, Any]:
        result = super().changed(name, right, given)
        if name == "basa.recover":
            result["average"] = (2 * np.frombuffer(bytes.fromhex(result["average"]))).tobytes().hex()
        return result


@pytest.mark.slow
@exhaustive
def test_an_implementation_that_draws_otherwise_passes_by_relation() -> None:
    outcomes = judged(Wrong().adapter().answer, cases=10)
    assert alarms(outcomes) == []
    assert {"basa.mask/cancel", "basa/own-masks", "basa/own-boxes", "basa.seal/opens"} <= set(outcomes)
    assert not {"basa.mask/exact", "basa.seal/exact", "basa.recover/exact"} & set(outcomes)


@pytest.mark.slow
@pytest.mark.requirement("BAA-03", "BAA-05", "BAA-26", "BAA-43")
@pytest.mark.parametrize(
    ("bug", "id"),
    [
        (NoMask, "basa.mask/cancel"),
        (NoMask, "basa/own-masks"),
        (Known, "basa.mask/used-seeds"),
        (Unbound, "basa.mask/bound"),
        (Unbound, "basa.seal/opens"),
        (Elsewhere, "basa.open/exact"),
        (Everybody, "basa/own-masks"),
    ],
)
def test_relations_find_bugs_in_another_generator(bug: type[Wrong], id: str) -> None:
    connection = DirectConnection(bug().adapter().answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    assert run_check(connection, caps, REGISTRY[id], Settings(cases=60, seed=1)).failure, id


# ----------------------------------------------------------------------------------------------------------- reports


def test_a_smallest_case_shows_positions_and_draws_as_numbers() -> None:
    params = {"R": "97", "accepted": [0, 2], "skipped": [[0, 1, "07"]]}
    assert (
        report.describe(Request("basa.recover", params), {}) == "basa.recover R=97 accepted=[0, 2] skipped=[[0, 1, 07]]"
    )
    rand = {"roundings": np.array([0.5]).tobytes().hex()}
    assert report.describe(Request("basa.epochs", {"K": 3}, rand), {}) == "basa.epochs K=3 roundings=(0.5)"
    assert "seed=01000000" in report.describe(Request("basa.seal", {"seed": "01000000"}), {})


def test_a_case_with_a_seed_of_no_digits_is_shown() -> None:
    assert "seed=xy" in report.describe(Request("basa.seal", {"seed": "xy"}), {})
