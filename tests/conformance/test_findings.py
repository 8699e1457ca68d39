"""Findings: failures of one root are listed once, the gravest first, and a run with known failures is not green."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import schemas
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Answer, Request
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.base import Exchange
from secagg_spec.conformance.reports import document, page, summaries
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.reports.findings import findings
from secagg_spec.conformance.running.expectations import VERDICTS, Expectation, Judged
from secagg_spec.conformance.running.runner import Failure, Outcome, Settings, run_check
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.conformance.test_document import SCHEMA

IDS = [check.id for check in REGISTRY.values() if check.id.split("/")[0] in check.operations][::7]
ALIKE = [id for id in REGISTRY if id.split("/")[0] in ("field.add", "field.mul", "secagg.sum")]
CAPS = greet(DirectConnection(reference.build().answer).ask)
KNOWN = Expectation(("adapter",), "*", VERDICTS, "", "known")
GRAVITY = (("leaked",), ("wrong_value",), ("accepted_invalid",), ("rejected_valid", "wrong_reason"))
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.binary(min_size=4, max_size=40).map(bytes.hex),
    st.integers(0, 2**40).map(hex),
)
LISTS = st.lists(st.integers(-9, 300), max_size=4).map(str)
SENTENCES = (
    "first difference at element {}: got {}, must be one of {}",
    "the payloads differ at byte {}: {} in place of {}",
    "user {} learns {} of {}",
)
ALSO = st.lists(st.sampled_from(VERDICTS), unique=True, max_size=2).map(tuple)


def failed(
    id: str,
    verdict: str,
    message: str,
    steps: tuple[Exchange, ...] = (),
    also: tuple[str, ...] = (),
    *,
    known: bool = False,
) -> Judged:
    """Return a check that failed."""
    failure = Failure(verdict, message, steps, also=also)
    return Judged(Outcome(REGISTRY[id], verdict, cases=3, failure=failure), KNOWN if known else None)


def broke(id: str, error: str, why: str = "", steps: int = 1) -> Judged:
    """Return a check in which the adapter broke at the last of some requests."""
    said = Exchange(Request(REGISTRY[id].operations[0], {}), Answer("error", message=error))
    return failed(id, "error", f"{id} broke instead of refusing ({why}): {error}", (said,) * steps)


def crashed(id: str, tail: str) -> Judged:
    """Return a check in which the adapter ended with some lines on standard error."""
    return failed(id, "crash", f"{id}: the adapter ended after it (status 1); its standard error ends: {tail}")


def ids(judged: list[Judged]) -> list[list[str]]:
    """Return the checks of each finding."""
    return [[one.outcome.check.id for one in (found.first, *found.others)] for found in findings(judged)]


def written(*reports: list[Judged]) -> dict[str, Any]:
    """Return the report of a run on so many adapters."""
    targets = [reporting.TargetReport(f"adapter{number}", CAPS, judged) for number, judged in enumerate(reports)]
    body = document.document(targets, Settings())
    assert list(schemas.faults(body, SCHEMA)) == []
    return body


# ------------------------------------------------------------------------------------------------------------- roots


@pytest.mark.requirement("CNF-81")
@given(
    st.dictionaries(
        st.sampled_from(ALIKE), st.tuples(st.sampled_from(SENTENCES), st.tuples(NUMBERS, NUMBERS, LISTS)), max_size=12
    )
)
def test_failures_that_differ_in_numbers_are_one_finding(drawn: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    judged = [failed(id, "wrong_value", said.format(*numbers)) for id, (said, numbers) in drawn.items()]
    roots: dict[tuple[str, str], list[str]] = {}
    for id, (said, _) in drawn.items():
        roots.setdefault((id.split("/")[0], said), []).append(id)
    assert ids(judged) == list(roots.values())


@pytest.mark.requirement("CNF-81")
@given(st.dictionaries(st.sampled_from(IDS), st.sampled_from(["one", "two"]), min_size=1, max_size=15))
def test_a_finding_is_listed_once_and_names_all_its_checks(drawn: dict[str, str]) -> None:
    judged = [broke(id, f"ValueError: {word} of these") for id, word in drawn.items()]
    body = written(judged)
    found = body["targets"][0]["findings"]
    assert [one["checks"] for one in found] == ids(judged)
    assert sorted(id for one in found for id in one["checks"]) == sorted(drawn)
    text = reporting.failures(reporting.TargetReport("adapter", CAPS, judged), expected=False)
    assert text.count("FAIL ") == len(found) == len(set(drawn.values()))
    shown, summary = page.html(body), summaries.markdown(body).replace("\\", "")
    assert len(re.findall("<article class=.failure", shown)) == summary.count("\n- **") == len(found)
    for id in drawn:
        assert re.search(rf"(FAIL     |checks?: |, ){re.escape(id)}\b", text)
        assert id in summary
        assert re.search(rf'id="t0-{list(drawn).index(id)}"', shown)


@pytest.mark.requirement("CNF-81")
def test_the_same_error_is_one_root_and_another_line_is_another() -> None:
    one, two, three = "field.add/exact", "mds.encode/exact", "lightsecagg.round/sum"
    assert ids([broke(one, "ValueError: high <= 0", "q is 0", steps=2), broke(two, "ValueError: high <= 9")]) == [
        [two, one]
    ]
    assert ids([broke(one, "KeyError: 1"), broke(two, "KeyError: 2")]) == [[one], [two]]
    python = 'File "a.py", line {}, in f | KeyError: {}'
    judged = [crashed(id, python.format(*at)) for id, at in ((one, (7, 1)), (two, (7, 2)), (three, (8, 1)))]
    assert ids(judged) == [[one, two], [three]]
    rust = [crashed(id, f"panicked at src/main.rs:{at}:5: index {at}") for id, at in ((one, 7), (two, 7), (three, 8))]
    assert ids(rust) == [[one, two], [three]]


@pytest.mark.requirement("CNF-81")
def test_verdict_and_expectation_are_parts_of_a_root() -> None:
    same = [failed("field.add/exact", verdict, "x") for verdict in ("wrong_value", "leaked")]
    assert len(findings([*same, failed("field.add/lengths", "leaked", "x", known=True)])) == 3
    parties = [failed(f"adversary/{name}.user", "wrong_value", "x") for name in ("secagg", "basecagg")]
    assert len(findings([*parties, failed("secagg.user/type", "wrong_value", "x")])) == 2
    unrun = Outcome(REGISTRY["field.add/exact"], "not_run", failure=Failure("not_run", "x", ()))
    assert findings([Judged(unrun), Judged(Outcome(unrun.check, "pass", cases=1))]) == []


# ------------------------------------------------------------------------------------------------------------- order


def gravity(*verdicts: str) -> int:
    """Return the place of the gravest of some verdicts in the order of the text."""
    places = [next((at for at, kind in enumerate(GRAVITY) if one in kind), len(GRAVITY)) for one in verdicts]
    return min(places)


@pytest.mark.requirement("CNF-82")
@given(st.dictionaries(st.sampled_from(IDS), st.tuples(st.sampled_from(VERDICTS), ALSO, st.booleans()), max_size=12))
def test_new_findings_come_first_and_of_them_the_gravest(drawn: dict[str, tuple[str, tuple[str, ...], bool]]) -> None:
    judged = [failed(id, verdict, id, also=also, known=known) for id, (verdict, also, known) in drawn.items()]
    order = [(known, gravity(verdict, *also)) for verdict, also, known in (drawn[id] for [id] in ids(judged))]
    assert order == sorted(order)
    assert all(
        gravity(one.kind) == gravity(*drawn[one.first.outcome.check.id][1], one.kind) for one in findings(judged)
    )


@pytest.mark.requirement("CNF-82")
def test_no_implementation_hides_what_another_one_leaks() -> None:
    crashes = [failed(id, "crash", id) for id in IDS[:30]]
    body = written(crashes, [failed("field.add/exact", "leaked", "the server learns x")])
    assert "the server learns x" in summaries.markdown(body)


@pytest.mark.requirement("CNF-82")
def test_a_crash_hides_no_wrong_value_that_was_met_beside_it() -> None:
    right = reference.build()

    def answer(request: Any) -> dict[str, Any]:
        size = len(request["params"]["a"]) // 8 if request["op"] == "field.add" else 0
        if size < 2:
            return dict(right.answer(request))
        wrong = {"error": {"message": "it broke"}} if size > 3 else {"result": {"value": "ffffffff" * size}}
        return {"id": request["id"], **wrong}

    connection, check = DirectConnection(answer), REGISTRY["field.add/exact"]
    outcomes = [run_check(connection, greet(connection.ask), check, Settings(cases=30, seed=seed)) for seed in range(8)]
    both = [one for one in outcomes if one.verdict == "error" and one.failure and one.failure.also == ("wrong_value",)]
    assert both
    judged = [failed("field.add/lengths", "accepted_invalid", "x"), Judged(both[0])]
    text = reporting.failures(reporting.TargetReport("adapter", CAPS, judged), expected=False)
    assert text.startswith("FAIL     field.add/exact   error, also wrong_value ")
    assert [one.kind for one in findings(judged)] == ["wrong_value", "accepted_invalid"]
    assert "error, also wrong_value" in page.html(written(judged))


# ---------------------------------------------------------------------------------------------------- known failures


@pytest.mark.requirement("CNF-83")
@given(st.integers(0, 5), st.integers(0, 2))
def test_known_failures_are_counted_and_not_green(known: int, new: int) -> None:
    checks = [failed(id, "wrong_value", id, known=number < known) for number, id in enumerate(IDS[: known + new])]
    passed = Judged(Outcome(REGISTRY["adapter/echo"], "pass", cases=3))
    body = written([*checks, passed])
    badge, shown = summaries.badge(body), page.html(body)
    if new:
        said, colour, style = f"{new} unexpected failure{'s' * (new > 1)}", "red", "fails"
    elif known:
        said, colour, style = f"{known} known failure{'s' * (known > 1)}, none new", "yellow", "expected"
    else:
        said, colour, style = "No unexpected failure", "brightgreen", "passes"
    assert f'<h1><span class="badge {style}">{said}</span></h1>' in shown
    assert summaries.markdown(body).startswith(f"## Conformance: {said}\n")
    assert (badge["color"], badge["isError"]) == (colour, bool(new))
    assert colour == "brightgreen" or badge["message"] == said
    target = reporting.TargetReport("adapter", CAPS, [*checks, passed])
    assert said.lower() in reporting.conclusion([target])
    assert target.exit_code == bool(new)


@pytest.mark.requirement("CNF-01")
def test_an_implementation_that_was_asked_nothing_is_not_judged() -> None:
    check = REGISTRY["adapter/echo"]
    asked = reporting.TargetReport("adapter", CAPS, [Judged(Outcome(check, "pass", cases=3))])
    idle = reporting.TargetReport("other", CAPS, [Judged(Outcome(check, "unsupported"))])
    said = reporting.conclusion([asked, idle, idle])
    assert said == "1 implementation judged, no unexpected failure, 2 asked nothing"
    assert reporting.conclusion([idle, idle]).startswith("2 implementations asked, and nothing judged: ")


@pytest.mark.requirement("CNF-81")
def test_invalid_input_that_several_operations_accept_in_the_same_way_is_one_finding() -> None:
    names = ("field.add", "field.multiply", "secagg.sum")
    checks = [next(id for id in REGISTRY if id.startswith(f"{name}/")) for name in names]
    pairs = zip(names, checks, strict=True)
    judged = [failed(id, "accepted_invalid", f"{name} gave a result although an element is 7") for name, id in pairs]
    assert ids(judged) == [checks]


@pytest.mark.requirement("CNF-82")
def test_an_inconsistent_failure_counts_as_what_it_was() -> None:
    judged = [
        failed("field.add/exact", "error", "x broke"),
        failed("secagg.sum/exact", "inconsistent", "y", (), ("leaked",)),
    ]
    assert [one.kind for one in findings(judged)] == ["leaked", "error"]
