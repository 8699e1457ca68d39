"""JUnit XML: failures, errors and skips where build servers look for them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import junit
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running.expectations import Expectation, Judged
from secagg_spec.conformance.running.runner import Failure, Outcome

CHECK = REGISTRY["field.add/exact"]
CAPS = Capabilities("x", "1", "c", {}, "none", {}, {})
KNOWN = Expectation(("x",), "*", ("wrong_value",), "", "known")


def failing(verdict: str, message: str = "got \x00 & <1>") -> Outcome:
    """Return an outcome that failed."""
    return Outcome(CHECK, verdict, cases=1, failure=Failure(verdict, message, ()))


def test_text_of_an_adapter_is_always_xml() -> None:
    evil = "\ud800 \x1b[2J \uffff \u202e ]]> <&\"'"
    report = TargetReport("x", CAPS, [Judged(failing("crash", evil))], command=evil, repros={CHECK.id: Path(evil)})
    text = junit.document([report, TargetReport("y", unusable=evil), TargetReport("z", absent=evil)])
    root = Xml.fromstring(text.encode().split(b"\n", 1)[1])
    [message] = [element.get("message") for element in root.iter("error") if element.get("type") == "crash"]
    assert message == r"\ud800 \x1b[2J \uffff \u202e ]]> <&" + "\"'"


def test_every_outcome_stands_under_its_tag() -> None:
    outcomes = [
        Judged(Outcome(CHECK, "pass", cases=3)),
        Judged(Outcome(CHECK, "unsupported")),
        Judged(failing("wrong_value")),
        Judged(failing("crash")),
        Judged(failing("wrong_value"), KNOWN),
    ]
    text = junit.document(
        [TargetReport("x", CAPS, outcomes), TargetReport("y", unusable="no"), TargetReport("z", absent="-")]
    )
    root = Xml.fromstring(text.split("\n", 1)[1])
    suites = {suite.get("name"): suite for suite in root}
    counts = [suites["x"].get(tag) for tag in ("tests", "failures", "errors", "skipped")]
    assert counts == ["5", "1", "1", "2"]
    assert suites["y"].get("errors") == "1"
    assert suites["z"].get("skipped") == "1"
    [message] = [element.get("message") for element in root.iter("failure")]
    assert message == r"got \x00 & <1>"
