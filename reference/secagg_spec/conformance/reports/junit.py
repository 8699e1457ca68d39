"""Results as JUnit XML: a test suite for each implementation, and a test case for each check."""

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import BROKEN


def document(reports: Sequence[TargetReport], *, complete: bool = True) -> str:
    """Return the results of a run as JUnit XML.

    A check that was not offered, or that fails as expected, is *skipped* with its reason. An adapter that broke is an
    *error*. An implementation that could not be used is a single error, and so is a run that is not `complete`
    (CNF-68).
    """
    root = Xml.Element("testsuites", name="secagg-spec")
    for report in reports:
        root.append(_suite(report))
    if not complete:
        root.append(_incomplete())
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _incomplete() -> Xml.Element:
    suite = Xml.Element("testsuite", name="run", tests="1", failures="0", errors="1", skipped="0")
    case = Xml.SubElement(suite, "testcase", classname="secagg", name="the run is complete")
    Xml.SubElement(case, "error", type="incomplete", message="the run was ended before it was complete")
    return suite


def _suite(report: TargetReport) -> Xml.Element:
    cases = [_case(report, judged) for judged in report.judged]
    if report.unusable or report.absent:
        cases.append(_unusable(report))
    counts = {tag: str(sum(case.find(tag) is not None for case in cases)) for tag in ("failure", "error", "skipped")}
    failed = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    suite = Xml.Element("testsuite", {"name": report.name, "tests": str(len(cases)), **failed})
    suite.extend(cases)
    return suite


def _case(report: TargetReport, judged: Judged) -> Xml.Element:
    outcome, failure = judged.outcome, judged.outcome.failure
    name = f"secagg.{report.name}.{outcome.check.id.partition('/')[0]}"
    case = Xml.Element("testcase", classname=name, name=outcome.check.id, time=f"{outcome.seconds:.3f}")
    if failure is None:
        if outcome.verdict == "unsupported":
            Xml.SubElement(case, "skipped", message="not offered")
    elif judged.expected:
        Xml.SubElement(case, "skipped", message=shown(f"fails as expected: {judged.expected.reason}"))
    else:
        tag = "error" if outcome.verdict in (*BROKEN, "not_run") else "failure"
        element = Xml.SubElement(case, tag, type=outcome.verdict, message=shown(failure.message))
        element.text = f"clauses: {', '.join(outcome.check.clauses)}"
    if outcome.check.id in report.repros:
        out = Xml.SubElement(case, "system-out")
        out.text = shown(report.replay(outcome.check.id))
    return case


def _unusable(report: TargetReport) -> Xml.Element:
    case = Xml.Element("testcase", classname=f"secagg.{report.name}", name="adapter")
    if report.absent:
        Xml.SubElement(case, "skipped", message=shown(report.absent))
    else:
        Xml.SubElement(case, "error", type="unusable", message=shown(report.unusable))
    return case
