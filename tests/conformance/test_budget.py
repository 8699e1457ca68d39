"""A run with a limited time tries every check, and no slow check takes the time of the others (CNF-84)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import brief, document, page, report, summaries
from secagg_spec.conformance.running import runner
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import Outcome, Settings, begin, run
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter as reference

CAPS = begin(DirectConnection(reference.build().answer))
SOME = [check for check in Settings(pattern="field.*").chosen() if check.runs_on(CAPS)]
CUT, SET = "whose share of --budget was spent", "with a set number of cases, which suffices"
NO_MORE = "with no more cases that differ and can be judged"
FIELD = ("field.add", "field.subtract", "field.multiply")


@dataclass
class Clock:
    """A clock of which the adapter alone takes time."""

    now: float = 0.0

    def monotonic(self) -> float:
        """Return the reading."""
        return self.now

    def slow(self, seconds: float, *names: str) -> Adapter:
        """Return the reference with its field alone, of which some operations take so long."""
        whole, adapter = reference.build(), Adapter("slow", "1")
        for name in FIELD:
            adapter.operation(name)(self._late(whole._handlers[name], seconds if name in names else 0))
        return adapter

    def _late(self, handler: Any, seconds: float) -> Any:
        def answer(**given: Any) -> Any:
            self.now += seconds
            return handler(**given)

        return answer

    def judged(self, adapter: Adapter, budget: float) -> dict[str, Outcome]:
        """Judge an adapter in a limited time."""
        chosen = Settings(cases=40, seed=1, pattern="field.*", budget=budget, deadline=self.now + budget)
        _, found = run(DirectConnection(adapter.answer), chosen)
        return {outcome.check.id: outcome for outcome in found if outcome.verdict != "unsupported"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that the kit reads."""
    made = Clock()
    monkeypatch.setattr(runner, "time", made)
    return made


@pytest.mark.slow
@pytest.mark.requirement("CNF-84", "CNF-75")
@pytest.mark.parametrize("name", FIELD)
def test_a_slow_operation_takes_no_time_from_the_others(name: str, clock: Clock) -> None:
    found = clock.judged(clock.slow(0.03, name), 6.0)
    assert {outcome.verdict for outcome in found.values()} == {"pass"}
    cut = {id for id, outcome in found.items() if outcome.short}
    assert cut & {id for id in found if name in REGISTRY[id].operations}, "not all of them can be through"
    assert all(outcome.cases >= 1 for outcome in found.values())
    target = report.TargetReport("slow", judged=[Judged(outcome, None) for outcome in found.values()])
    body = document.document([target], Settings(cases=40, budget=6.0))
    said = {check["check"] for check in body["targets"][0]["checks"] if check["fewer"] == CUT}
    assert said == cut


@pytest.mark.requirement("CNF-84", "CNF-75")
@pytest.mark.parametrize("pattern", ["field.add/exact", "field.*/exact"])
def test_the_last_check_passes_with_the_cases_of_its_share(pattern: str, clock: Clock) -> None:
    chosen = Settings(cases=1000, seed=1, pattern=pattern, budget=3.0, deadline=clock.now + 3.0)
    _, found = run(DirectConnection(clock.slow(0.03, *FIELD).answer), chosen)
    asked = [outcome for outcome in found if outcome.verdict != "unsupported"]
    assert {(outcome.verdict, outcome.short, 1 <= outcome.cases < 1000) for outcome in asked} == {("pass", True, True)}


@pytest.mark.requirement("CNF-75", "CNF-93")
@pytest.mark.parametrize("cases", [100, 40])
@pytest.mark.parametrize("budget", [6.0, None])
def test_each_form_of_a_report_says_how_many_checks_had_fewer_cases_and_why(cases: int, budget: float | None) -> None:
    """In a usual run nobody asked for a number of cases."""
    drawn = {"field.add/exact": 1, "field.subtract/exact": 7, "field.multiply/exact": cases, "field.add/size": 1}
    found = [
        Judged(Outcome(REGISTRY[id], "pass", cases=many, short=bool(budget) and id == "field.add/exact"))
        for id, many in drawn.items()
    ]
    both = [report.TargetReport(name, CAPS, found) for name in ("one", "other")]
    body = document.document(both, Settings(cases=cases, budget=budget))
    forms = [page.html(body), summaries.markdown(body).replace("\\", ""), brief.summary(body, width=300)]
    assert ["ewer than" in form for form in forms] == [cases == 40 or budget is not None] * 3
    if budget:
        named = f"1 check {CUT}: field.add/exact (1); 1 check {SET}: field.add/size (1); 1 check {NO_MORE}: field.sub"
        assert f"fewer than {cases} cases: {named}" in forms[0]
        counts = f"ewer than {cases} cases: 2 checks {CUT}; 2 checks {SET}; 2 checks {NO_MORE}"
        assert [counts in form for form in forms[1:]] == [True] * 2


@pytest.mark.requirement("CNF-84")
@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 1000.0), st.floats(0, 10**6))
def test_shares_are_equal_and_end_with_the_budget(budget: float, begun: float) -> None:
    given_time = Settings(budget=budget, deadline=begun + budget)
    shares = list(given_time.shared(CAPS, SOME).shares.values())
    assert len(shares) == len(SOME)
    steps = [after - before for before, after in zip([begun, *shares], shares, strict=False)]
    assert steps == pytest.approx([budget / len(shares)] * len(shares), rel=1e-6, abs=1e-6)
    assert shares[-1] == pytest.approx(given_time.deadline)


@pytest.mark.requirement("CNF-84")
def test_without_a_budget_nothing_is_shared() -> None:
    assert Settings().shared(CAPS, SOME).shares == {}
