"""Planted bugs of the kit that judges: runs that call good what is not, and reports that do not say what they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.wire import Request, UsageError

Function = Callable[..., Any]
_KIT = "secagg_spec.conformance"
_DOCUMENT = "tests/conformance/test_document.py::"


def _kit(module: str) -> Any:
    """Return a module of the kit, which adapters that are the reference with a bug need not load."""
    return import_module(f"{_KIT}.{module}")


def _check() -> Any:
    return next(iter(_kit("suite").vector_checks().values()))


def _report(verdict: str) -> Any:
    """Return the report of a run of one vector with this verdict."""
    failure = None if verdict == "pass" else _kit("runner").Failure(verdict, "so", ())
    outcome = _kit("runner").Outcome(_check(), verdict, cases=int(verdict != "not_run"), failure=failure)
    return _kit("report").TargetReport("adapter", judged=[_kit("expectations").Judged(outcome)])


def _exit_code(verdict: str) -> object:
    return _kit("report").exit_code([_report(verdict)])


def _body(**times: float) -> dict[str, Any]:
    return {"header": {}, "targets": [], "timing": times}


@mutant(
    "not-run-is-a-pass",
    "CNF-01",
    "acceptance: a check that was never asked counts as passed",
    f"{_KIT}.report:_mark",
    lambda: _exit_code("not_run"),
    _DOCUMENT + "test_what_was_not_run_is_no_pass_and_a_run_of_nothing_no_success",
    kind="acceptance",
    source="clause in part",
)
def _mark(right: Function) -> Function:
    return lambda judged: _kit("report").EXACT if judged.outcome.verdict == "not_run" else right(judged)


@mutant(
    "digest-holds-times",
    "CNF-02",
    "refusal: two equal runs have reports that seem to differ",
    f"{_KIT}.document:digest",
    lambda: _kit("document").digest(_body(a=1.0)) == _kit("document").digest(_body(a=2.0)),
    _DOCUMENT + "test_equal_runs_give_equal_reports_however_many_processes_judge",
    kind="refusal",
    source="wrong term",
)
def _digest(right: Function) -> Function:
    return lambda body: right({**body, "targets": [body["targets"], body["timing"]]})


def _written() -> object:
    exchange = _kit("checks.base").Exchange(Request("echo", {"data": 1}), None)
    failure = _kit("runner").Failure("crash", "so", (exchange, exchange))
    with TemporaryDirectory() as folder:
        return _kit("report").write_repro(Path(folder), "adapter", _check().id, failure).read_text(encoding="utf-8")


@mutant(
    "repro-lacks-the-last-request",
    "CNF-03",
    "form: the file of a failure does not show it",
    f"{_KIT}.report:write_repro",
    _written,
    _DOCUMENT + "test_a_vector_that_fails_says_which_bug_it_suggests",
    kind="form",
    source="off by one",
)
def _repro(right: Function) -> Function:
    def write(folder: Path, target: str, check: str, failure: Any) -> Path:
        path: Path = right(folder, target, check, failure)
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        return path

    return write


@mutant(
    "failures-exit-with-0",
    "CNF-04",
    "acceptance: a build goes on although a check failed",
    f"{_KIT}.report:exit_code",
    lambda: _exit_code("wrong_value"),
    _DOCUMENT + "test_a_report_keeps_its_schema_and_says_what_judged",
    kind="acceptance",
    source="clause in part",
)
def _exit(right: Function) -> Function:
    return lambda reports: 0 if right(reports) == 1 else right(reports)


def _stale() -> object:
    entry = _kit("expectations").Expectation(("adapter",), _check().id, ("wrong_value",), "", "known")
    outcomes = [judged.outcome for judged in _report("pass").judged]
    return _kit("expectations").stale("adapter", outcomes, [entry])


@mutant(
    "expectations-are-never-stale",
    "CNF-05",
    "acceptance: a list of known failures says more than is true",
    f"{_KIT}.expectations:stale",
    _stale,
    "tests/conformance/test_expectations.py::test_an_entry_that_is_not_true_fails_the_run",
    kind="acceptance",
    source="clause left out",
)
def _never(right: Function) -> Function:
    return lambda *arguments: []


@mutant(
    "texts-of-adapters-are-markup",
    "CNF-06",
    "acceptance: an adapter writes into the page of a report what it likes, its verdicts too",
    f"{_KIT}.page:_environment",
    lambda: _kit("page")._environment().autoescape,
    "tests/conformance/test_page.py::test_what_an_adapter_wrote_is_never_markup",
    kind="acceptance",
    source="clause left out",
)
def _markup(right: Function) -> Function:
    return lambda: right().overlay(autoescape=False)


@mutant(
    "header-lacks-the-vectors",
    "CNF-07",
    "form: nobody can tell which test vectors judged",
    f"{_KIT}.document:header",
    lambda: sorted(_kit("document").header(_kit("runner").Settings())),
    _DOCUMENT + "test_a_report_keeps_its_schema_and_says_what_judged",
    kind="form",
    source="clause in part",
)
def _header(right: Function) -> Function:
    def header(settings: Any) -> Mapping[str, Any]:
        return {name: value for name, value in right(settings).items() if name != "vectors"}

    return header


def _taken(body: Mapping[str, Any]) -> object:
    try:
        _kit("document").refuse_unusable("report", body)
    except UsageError as error:
        return str(error)
    return "taken"


@mutant(
    "cut-reports-are-taken",
    "CNF-08",
    "acceptance: a report of half a run is read as a whole one",
    f"{_KIT}.document:refuse_unusable",
    lambda: _taken({"schema": "secagg-spec-report/2"}),
    _DOCUMENT + "test_a_report_that_is_cut_or_altered_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    return lambda name, body: None


@mutant(
    "ended-runs-have-a-footer",
    "CNF-09",
    "acceptance: a run that was ended looks as if it were complete",
    f"{_KIT}.document:document",
    lambda: sorted(_kit("document").document([], _kit("runner").Settings(), complete=False)),
    _DOCUMENT + "test_an_interrupt_leaves_what_was_judged_without_a_footer",
    kind="acceptance",
    source="clause left out",
)
def _footer(right: Function) -> Function:
    def whole(reports: Sequence[Any], settings: Any, *, complete: bool = True) -> Mapping[str, Any]:
        body: Mapping[str, Any] = right(reports, settings, complete=True)
        return body

    return whole
