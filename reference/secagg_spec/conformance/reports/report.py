"""The terminal output of a run: a table of clauses by implementation, and each failure with its smallest case."""

import json
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from secagg_spec import __version__, documents, system
from secagg_spec.arithmetic.wide import MAX_WIDE
from secagg_spec.conformance.adapter.capabilities import HELLO, Capabilities
from secagg_spec.conformance.adapter.plain import (
    KEPT,
    MESSAGE,
    Room,
    as_file,
    clip,
    counted,
    fit_for_json,
    pasted,
    shown,
)
from secagg_spec.conformance.adapter.wire import RawLine, Request, octets, quoted, unpack
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.mutation.coverage import Reach
from secagg_spec.conformance.reports.findings import Finding, findings
from secagg_spec.conformance.running import chart, suite
from secagg_spec.conformance.running import repros as replay
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import BROKEN, Failure, Outcome, Settings
from secagg_spec.conformance.sdk.secagg_adapter import WIDE, form, is_wide, members, sized, wide_bytes
from secagg_spec.conformance.vectors.base import only

EXACT, RELATION, EXPECTED, FAILED, BROKE, NOT_RUN, NONE = "●", "◐", "x", "✕", "!", "?", "·"
_SAYS = {
    EXACT: "passes, bit for bit",
    RELATION: "passes, by relation",
    EXPECTED: "fails as expected",
    FAILED: "fails",
    BROKE: "breaks",
    NOT_RUN: "not run",
    NONE: "not offered",
}
_COMPOSED = "+ composed of several functions"
LEGEND = "   ".join([*(f"{mark} {says}" for mark, says in _SAYS.items()), _COMPOSED])
_NAME = 100
_LISTED = 5
_CHECKS_TOLD = 20
_BUGS_TOLD = 3
"""How many further checks of a finding, and how many suspected bugs, the terminal names."""
_SIGNS = {"le": "≤", "ge": "≥", "varepsilon": "epsilon", "lfloor": "floor(", "rfloor": ")", "mathcal": "", "mathrm": ""}
"""The symbols shown for TeX commands; other commands are shown by their names."""
_MARKUP = re.compile(r"[$`]|\\(?![a-z])|\\([a-z]+)( ?)")
_WORST_FIRST = (BROKE, FAILED, NOT_RUN, EXPECTED, RELATION, EXACT, NONE)


@dataclass
class TargetReport:
    """The results of one implementation, or the reason why there are none."""

    name: str
    caps: Capabilities | None = None
    judged: list[Judged] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    absent: str = ""
    unusable: str = ""
    repros: dict[str, Path] = field(default_factory=dict)
    command: str = "./adapter"
    """The command that starts it, quoted for a shell."""
    options: Sequence[str] = ()
    """The options for replaying a case."""
    power: Reach | None = None
    """The mutants that the run would notice, if known."""

    @property
    def title(self) -> str:
        """The name and version that the adapter gave, or the target's name."""
        return shown(f"{self.caps.name} {self.caps.version}", _NAME) if self.caps else self.name

    def replay(self, check: str) -> str:
        """Return the shell command that judges the smallest case of a check again."""
        words = ["secagg-spec", "replay", as_file(self.repros[check].as_posix()), *self.options, "--"]
        return f"{pasted(words)} {self.command}"

    def count(self, mark: str) -> int:
        """Return the number of checks with this mark."""
        return sum(_mark(judged) == mark for judged in self.judged)

    @property
    def vectors_passed(self) -> int:
        """The number of test vectors that passed."""
        outcomes = [judged.outcome for judged in self.judged]
        return sum(outcome.verdict == "pass" and outcome.check.id.startswith(suite.PREFIX) for outcome in outcomes)

    @property
    def unchecked(self) -> int:
        """The number of passes whose rejection had the code `other`, so that its reason was not checked."""
        outcomes = [judged.outcome for judged in self.judged]
        return sum(outcome.verdict == "pass" and outcome.reason_unchecked for outcome in outcomes)

    @property
    def failed(self) -> int:
        """The number of unexpected failures; a check that was not run does not count."""
        return self.count(FAILED) + self.count(BROKE)

    @property
    def asked(self) -> bool:
        """Whether a check asked it something that counts."""
        return any(judged.outcome.cases or judged.outcome.failure for judged in self.judged)

    @property
    def exit_code(self) -> int:
        """The exit code for this implementation alone: 0, 1, 3 or 4."""
        return exit_code([self])


def exit_code(reports: Sequence[TargetReport]) -> int:
    """Return 0, 1, 3 or 4, as defined in spec/adapter.md, section 6.

    An implementation that is absent from this machine changes the exit code only if nothing else ran.
    """
    present = [report for report in reports if not report.absent]
    if any(report.unusable for report in present):
        return 3
    if any(report.failed or report.stale for report in present):
        return 1
    if any(report.count(NOT_RUN) for report in present):
        return 3
    return 0 if any(judged.outcome.cases for report in present for judged in report.judged) else 4


def conclusion(reports: Sequence[TargetReport]) -> str:
    """Return the last sentence of a run: the number of judged implementations, and what went wrong."""
    known, absent = [report for report in reports if report.caps], sum(bool(report.absent) for report in reports)
    judged = [report for report in known if report.asked]
    wrong = [
        _counted(sum(report.failed for report in judged), "unexpected failure"),
        _counted(sum(len(report.stale) for report in judged), "stale expectation"),
        _counted(sum(report.count(NOT_RUN) for report in judged), "check not run", "checks not run"),
        _counted(sum(bool(report.unusable) for report in reports), "could not be used", "could not be used"),
        _counted(absent, "absent from this machine", "absent from this machine"),
        _counted((len(known) - len(judged)) * bool(judged), "asked nothing", "asked nothing"),
    ]
    head = _counted(len(judged or known), "implementation") or "no implementation"
    if known and not judged:
        return f"{head} asked, and nothing judged: what is declared fits none of the checks that were chosen"
    found = ", ".join(part for part in wrong if part)
    if not wrong[0] and judged:
        expected = known_failures(sum(report.count(EXPECTED) for report in judged))
        verdicts = {entry.outcome.verdict for report in judged for entry in report.judged}
        green = "no unexpected failure" if verdicts - {"unsupported", "not_run"} else ""
        found = ", ".join(part for part in [expected or green, found] if part)
    return f"{head} judged, {found}" if found else f"{head} judged"


def known_failures(number: int) -> str:
    """Return the headline of a run in which all failures are expected (CNF-83); empty if there are none."""
    return f"{counted(number, 'known failure')}, none new" if number else ""


def _counted(number: int, one: str, many: str = "") -> str:
    return counted(number, one, many) if number else ""


def clause_cells(report: TargetReport) -> dict[str, str]:
    """Return the mark of each clause: the worst of its checks, followed by "+" if one of them is composed.

    A failure counts for the clauses that it breaks, where it names them.
    """
    checks: dict[str, list[Judged]] = {}
    for judged in report.judged:
        failure = judged.outcome.failure
        for clause in (failure.clauses if failure else ()) or judged.outcome.check.clauses:
            checks.setdefault(clause, []).append(judged)
    return {clause: _cell(report, found) for clause, found in checks.items()}


def _cell(report: TargetReport, checks: Sequence[Judged]) -> str:
    worst = next(mark for mark in _WORST_FIRST if any(_mark(judged) == mark for judged in checks))
    decisive = [judged for judged in checks if _mark(judged) == worst]
    names = [name for judged in decisive for name in judged.outcome.check.operations]
    composed = worst != NONE and report.caps is not None and any(map(report.caps.composed, names))
    return worst + ("+" if composed else "")


def table(reports: Sequence[TargetReport], clauses: Mapping[str, str]) -> str:
    """Return the table of clauses by implementation; `clauses` maps each clause to its sentence, in text order."""
    columns = [report for report in reports if report.caps]
    cells = [clause_cells(report) for report in columns]
    width = max((len(report.name) for report in columns), default=0)
    shown = [clause for clause in clauses if any(column.get(clause, NONE) != NONE for column in cells)]
    head = "clause   " + "  ".join(report.name.center(width) for report in columns)
    lines = [head, "-" * len(head)]
    for clause in shown:
        row = "  ".join(column.get(clause, NONE).center(width) for column in cells)
        lines.append(f"{clause:<9}{row}   {clip(plain_sentence(clauses[clause]), 96)}")
    marks = {cell for column in cells for clause, cell in column.items() if clause in shown}
    return "\n".join([*lines, *_hidden(clauses, cells, shown), "", *_legend(marks)])


def _legend(cells: Collection[str]) -> list[str]:
    """Return the meanings of the marks that occur in a table."""
    used = [f"{mark} {says}" for mark, says in _SAYS.items() if any(cell.startswith(mark) for cell in cells)]
    if any(cell.endswith("+") for cell in cells):
        used.append(_COMPOSED)
    return textwrap.wrap("   ".join(used), 100) if used else []


def _hidden(clauses: Iterable[str], cells: Sequence[Mapping[str, str]], shown: Sequence[str]) -> list[str]:
    """Return a line about the clauses that the table leaves out because no implementation offers the operations."""
    known = [clause for clause in clauses if any(clause in column for column in cells)]
    left_out = len(known) - len(shown)
    return [f"{left_out} more clauses are about operations that nobody here offers"] if left_out > 1 else []


def plain_sentence(sentence: str) -> str:
    """Return a sentence of the text without its markup."""
    return _MARKUP.sub(_sign, sentence)


def _sign(markup: re.Match[str]) -> str:
    """Return the symbol for a TeX command; other markup, and commands for a typeface, give an empty text."""
    if markup[1] is None:
        return ""
    sign = _SIGNS.get(markup[1], markup[1])
    return sign + markup[2] if sign else ""


def summary(report: TargetReport) -> str:
    """Return the line of counts for an implementation."""
    if report.absent:
        return f"{report.name}: not run: {shown(report.absent)}"
    if report.unusable:
        return f"{report.name}: cannot be used: {shown(report.unusable)}"
    vectors = report.vectors_passed
    checks = report.count(EXACT) + report.count(RELATION) - vectors
    parts = [
        f"{_counted(checks, 'check') or '0 checks'} pass ({report.count(RELATION)} by relation)",
        *([f"{_counted(vectors, 'test vector')} pass"] if vectors else []),
        *([f"{report.unchecked} of these for a reason that was not checked"] if report.unchecked else []),
        f"{report.failed} FAIL" if report.failed else "0 fail",
        f"{report.count(EXPECTED)} fail as expected",
        f"{report.count(NONE)} not offered",
    ]
    unsaid = sum(judged.outcome.inexpressible for judged in report.judged)
    parts += [f"{counted(unsaid, 'case')} cannot be expressed"] if unsaid else []
    parts += [counted(len(report.stale), "stale expectation")] if report.stale else []
    parts += [f"{report.count(NOT_RUN)} not run"] if report.count(NOT_RUN) else []
    cases = sum(judged.outcome.cases for judged in report.judged)
    power = f"\n  mutation score: with what it declares, {report.power}" if report.power else ""
    left_out = "".join(f"\n  not judged: {shown(one)}" for one in (report.caps.left_out if report.caps else ()))
    made = _unprobed(report, report.caps.operations) if report.caps else []
    whose = "what passes or fails there may be the adapter's own; let it give raw values to judge that"
    composed = f"\n  composed by the adapter: {listed(made)}; {whose}" if made else ""
    return f"{report.name} ({report.title}): {', '.join(parts)}; {counted(cases, 'case')}{left_out}{composed}{power}"


def failures(report: TargetReport, *, expected: bool) -> str:
    """Return the expected or the unexpected failures of an implementation: each finding with its smallest case."""
    found = [one for one in findings(report.judged) if (one.first.expected is not None) == expected]
    blocks = [_finding(report, one) for one in found]
    return "\n".join(blocks if expected else [*blocks, *_not_run(report)])


def chances(report: TargetReport) -> str:
    """Return a line for each pass of a statistical check: what it cannot see, and its false-alarm rate."""
    passed = [judged.outcome for judged in report.judged if judged.outcome.verdict == "pass" and judged.outcome.note]
    return "\n".join(f"  {outcome.check.id:<34} {shown(outcome.note)}" for outcome in passed)


def why_fewer(outcome: Outcome, settings: Settings) -> str:
    """Return why a passing check had fewer cases than were asked for; empty if it did not, or if nobody asked.

    A run asks for a number of cases where that is not the usual one, and where it has a budget.
    """
    asked = settings.cases != Settings.cases or settings.budget
    if not asked or outcome.verdict != "pass" or outcome.check.fixed or outcome.cases >= settings.cases:
        return ""
    if outcome.short:
        return "whose share of --budget was spent"
    whole = outcome.cases >= (outcome.check.examples or settings.cases)
    return "with a set number of cases, which suffices" if whole else "with no more cases that differ and can be judged"


def fewer(cases: int, checks: Iterable[tuple[str, int, str]], *, named: bool = True) -> str:
    """Say how many checks passed with fewer cases than were asked for, and why (CNF-75); empty if none did.

    Parameters
    ----------
    cases : int
        The number that was asked for.
    checks : iterable of (str, int, str)
        The id of each check, its cases, and why they are fewer (`why_fewer`); empty if they are not.
    named : bool
        Whether checks are named, with their cases.
    """
    found: dict[str, list[str]] = {}
    for check, number, why in checks:
        if why:
            found.setdefault(why, []).append(f"{check} ({number})")
    parts = [
        f"{counted(len(few), 'check')} {why}{f': {listed(few)}' if named else ''}" for why, few in sorted(found.items())
    ]
    return f"fewer than {cases:,} cases: {'; '.join(parts)}" if parts else ""


def listed(names: Sequence[str], most: int = _LISTED) -> str:
    """Return names in a row, at most so many, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _not_run(report: TargetReport) -> list[str]:
    """Return a line for each reason why checks were not run."""
    reasons: dict[str, list[str]] = {}
    for judged in report.judged:
        if judged.outcome.failure and _mark(judged) == NOT_RUN:
            reasons.setdefault(judged.outcome.failure.message, []).append(judged.outcome.check.id)
    return [
        f"NOT RUN  {checks[0]}{f' and {len(checks) - 1} more' if checks[1:] else ''}\n         {shown(reason)}"
        for reason, checks in reasons.items()
    ]


def write_repro(folder: Path, target: str, check: str, failure: Failure) -> Path:
    """Write the requests of a failure and, next to them, the expected outcome; return the path of the requests.

    ``./adapter < FILE`` replays it without tools; ``secagg-spec replay FILE -- ./adapter`` judges it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_stem(target, check)}.jsonl"
    requests = [HELLO, *(exchange.request for exchange in failure.transcript)]
    lines = "".join(request.line(number) for number, request in enumerate(requests))
    data, draws = lines.encode(errors="surrogateescape"), replay.plain(failure.draws)
    expectation = {
        "schema": replay.SCHEMA,
        "kit": __version__,
        "check": check,
        "verdict": failure.verdict,
        "message": clip(failure.message, MESSAGE),
        "repeats": failure.repeats,
        "expected_of_the_last_answer": failure.expected,
        "answers_seen": [exchange.answer.as_json() if exchange.answer else None for exchange in failure.transcript],
        "draws": draws,
    }
    fit = fit_for_json(expectation)
    text = json.dumps({**fit, "seal": replay.seal(data, fit)}, indent=2, allow_nan=False)
    system.write_whole(path, data, follow=False)
    system.write_whole(path.with_suffix(".expected.json"), text + "\n", follow=False)
    return path


def write_repros(report: TargetReport, folder: Path) -> None:
    """Write the smallest case of each failure of a report, and record the paths in the report."""
    for outcome in (judged.outcome for judged in report.judged):
        if outcome.failure and outcome.failure.transcript:
            report.repros[outcome.check.id] = write_repro(folder, report.name, outcome.check.id, outcome.failure)


def renew_repros(report: TargetReport, folder: Path, checks: Collection[str]) -> None:
    """Write the smallest case of each failure, and remove files of an earlier run for the judged checks (CNF-69)."""
    remove_repros(folder, report.name, checks)
    write_repros(report, folder)


def remove_repros(folder: Path, target: str, checks: Collection[str]) -> None:
    """Remove the files that `write_repro` wrote for this target and these checks, or for obsolete checks."""
    for beside in sorted(folder.glob(f"{target}-*.expected.json")):
        if beside.is_symlink() or not beside.is_file():
            continue
        try:
            stored = documents.read_json(beside)
        except (OSError, ValueError):
            continue
        if not isinstance(stored, dict) or not str(stored.get("schema")).startswith(replay.SCHEMA_NAME):
            continue
        stem = beside.name.removesuffix(".expected.json")
        check = str(stored.get("check"))
        if stem == _stem(target, check) and (check in checks or check not in suite.everything()):
            beside.unlink(missing_ok=True)
            (folder / f"{stem}.jsonl").unlink(missing_ok=True)


def _stem(target: str, check: str) -> str:
    return f"{target}-{re.sub('[^a-z0-9]+', '-', check.lower())}"


_WORDS = {**_SAYS, EXACT: "pass", RELATION: "pass by relation"}
MARKS = {words: mark for mark, words in _WORDS.items()}
"""The mark for each phrase in a report."""


def words(cell: str) -> str:
    """Return the meaning of a clause's mark, in words."""
    return _WORDS[cell.removesuffix("+")] + (" (composed)" if cell.endswith("+") else "")


def _mark(judged: Judged) -> str:
    outcome = judged.outcome
    if outcome.failure is None:
        return {"unsupported": NONE}.get(outcome.verdict, RELATION if outcome.by_relation else EXACT)
    if outcome.verdict == "not_run":
        return NOT_RUN
    if judged.expected:
        return EXPECTED
    return BROKE if outcome.verdict in BROKEN else FAILED


def _finding(report: TargetReport, finding: Finding) -> str:
    """Return a finding: the first of its failures whole, and the names of the others (CNF-81)."""
    judged, others = finding.first, finding.others
    outcome, failure = judged.outcome, judged.outcome.failure
    assert failure is not None
    alike = [(one.outcome.check, one.outcome.failure, one.expected) for one in (judged, *others)]
    tag = "expected" if judged.expected else "FAIL"
    verdicts = ", also ".join((outcome.verdict, *failure.also))
    clauses = dict.fromkeys(id for check, failed, _ in alike if failed for id in failed.clauses or check.clauses)
    lines = [f"{tag:<9}{outcome.check.id}   {verdicts}   [{', '.join(clauses)}]"]
    lines.append(f"         {shown(failure.message)}")
    if failure.transcript:
        kind = "case:         " if outcome.check.fixed else "smallest case:"
        declared = report.caps.operations if report.caps else {}
        case, *steps = in_words(*asked_and_answered(failure), failure.at, declared)
        lines += [f"         {kind} {case}", *(f"           {step}" for step in steps)]
    reasons = dict.fromkeys(expected.reason for _, _, expected in alike if expected)
    lines += [f"         why expected:  {reason}" for reason in reasons]
    bugs = dict.fromkeys(bug for check, failed, _ in alike if failed for bug in suspicions(check.id, failed))
    lines += [f"         suggests:      {bug}" for bug in list(bugs)[:_BUGS_TOLD]]
    whose = _whose(report, outcome.check, failure)
    lines += [f"         whose fault:   {whose}"] if whose else []
    if outcome.check.id in report.repros:
        lines.append(f"         replay:        {report.replay(outcome.check.id)}")
    if others:
        said = f"the same in {counted(len(others), 'further check')}: "
        lines.append(f"         {said}{listed([one.outcome.check.id for one in others], _CHECKS_TOLD)}")
    return "\n".join(lines)


def _unprobed(report: TargetReport, operations: Iterable[str]) -> list[str]:
    """Return the operations that the adapter composes without giving raw values."""
    caps = report.caps
    return [name for name in operations if caps and caps.composed(name) and not caps.raw(name)]


def _whose(report: TargetReport, check: Check, failure: Failure) -> str:
    """Return whether a failure of composed operations is the implementation's; empty if none is composed (CNF-92)."""
    made = _unprobed(report, check.operations)
    if made:
        return f"the adapter composes {listed(made)}: call the library alone with these values to find out"
    if check.id.endswith("/raw"):
        if not {"ADP-55", "ADP-56"}.isdisjoint(failure.clauses):
            return "the adapter's: its raw value is not one"
        return "the implementation's: the adapter repairs it" if failure.repaired else ""
    probed = [name for name in check.operations if report.caps and report.caps.raw(name)]
    passed = {one.outcome.check.id for one in report.judged if one.outcome.verdict == "pass"}
    if not probed or not passed.issuperset(f"{name}/raw" for name in probed):
        return ""
    return f"the implementation's: of {listed(probed)} the adapter repairs nothing"


def asked_and_answered(failure: Failure) -> tuple[list[Any], list[Any]]:
    """Return the requests of a failure as data, or as text if a line is not a request, and their answers."""
    lines = [(e.request, e.request.line(number)) for number, e in enumerate(failure.transcript, 1)]
    requests = [line.removesuffix("\n") if isinstance(raw, RawLine) else json.loads(line) for raw, line in lines]
    room = Room(KEPT)
    fit = [_fit(room, request) for request in reversed(requests)]
    return fit[::-1], [e.answer.as_json() if e.answer else None for e in failure.transcript]


def _fit(room: Room, request: Any) -> Any:
    """Cut a request to the room that is left: it may contain earlier output of an adapter."""
    if not isinstance(request, dict):
        return room.fit(request)
    return {name: room.fit(value) if name in ("params", "rand") else value for name, value in request.items()}


def suspicions(check: str, failure: Failure) -> list[str]:
    """If the flags of a vector name only one mutant, return the bug that a wrong answer to the vector suggests.

    If an earlier, correct step already failed, the result is empty.
    """
    if failure.verdict not in ("wrong_value", "accepted_invalid") or failure.clauses:
        return []
    return [f"{name}: {flag.description} ({flag.effect})" for name, flag in only(suite.flags(check)).items()]


def describe(request: Request, declared: Mapping[str, Any]) -> str:
    """Return a request in readable form: vectors as numbers, other bytes as hex digits, both cut if long.

    `declared` has the operations of the adapter: with them, elements modulo large moduli have other lengths.
    """
    if isinstance(request, RawLine):
        return f"the line {quoted(request.data, 200)}"
    owner = request.op
    if owner == "session.new":
        owner = f"{request.params.get('protocol')}.{request.params.get('role')}"
    width = _element_bytes(request, declared.get(request.op, {}))
    given = [(request.op, name, value) for name, value in request.params.items()]
    given += [(owner, name, value) for name, value in (request.rand or {}).items()]
    parts = [f"{name}={_value(owner, _sized(form(op, name), width), value)}" for op, name, value in given]
    return f"{request.op} " + shown(" ".join(parts), 200)


def _element_bytes(request: Request, declared: Mapping[str, Any]) -> int:
    """Return how many bytes each element of a request has, or 0 if its modulus does not say so."""
    try:
        if not request.op.startswith(WIDE) or not is_wide(declared):
            return 4
        # the modulus of a request that must be refused is not that of its elements
        return wide_bytes(request.op, dict(request.params)) if 2 <= int(request.params["q"]) <= MAX_WIDE else 0
    except (KeyError, TypeError, ValueError):
        return 0


def _sized(form: str, width: int) -> str:
    """Return a type whose vectors have elements of `width` bytes; elements of unknown length are only bytes."""
    return sized(form, width) if width else form.replace("vector", "bytes")


def in_words(
    requests: Sequence[Any],
    answers: Sequence[Any],
    at: Sequence[int | None] | None,
    declared: Mapping[str, Any],
) -> list[str]:
    """Return a case in readable form: the request at fault; for a session, its parameters and steps up to the fault.

    `requests`, `answers`, `at` and the operations `declared` come from a report. If several answers show the fault
    together, no step is marked.
    """
    exchanges = list(zip(requests, answers, strict=True))
    number = at[0] if at else None
    rows = chart.rows(exchanges, at)
    wrong = next((number for number, row in enumerate(rows) if row.wrong), None)
    shown_rows = rows if wrong is None else rows[: wrong + 1]
    steps = [f"{row.number:>3}  {row.party}: {row.given} -> {row.answered}" for row in shown_rows]
    left = len(steps) - _STEPS_TOLD
    if left > 0:
        steps = [f"     … {counted(left, 'step')} before", *steps[left:]]
    if wrong is not None:
        steps[-1] += "   <- wrong here"
    return [_asked(requests, chart.fault(exchanges) if number is None else number, declared), *steps]


def _asked(requests: Sequence[Any], at: int, declared: Mapping[str, Any]) -> str:
    """Return the request at fault; for a step of a session, the parameters with which the session was opened."""
    if not isinstance(requests[at], dict):
        return f"the line {quoted(str(requests[at]).encode(errors='surrogateescape'), 200)}"
    op, params = str(requests[at]["op"]), requests[at]["params"]
    handle = params.get("handle") if isinstance(params, dict) else None
    for asked in requests[:at] if op in ("session.step", "session.again", "session.free") else ():
        if isinstance(asked, dict) and asked.get("op") == "session.new" and asked["params"].get("handle") == handle:
            op, params = "session.new", {name: asked["params"][name] for name in _OPENING if name in asked["params"]}
    rand = requests[at].get("rand") if op == requests[at]["op"] else None
    return describe(Request(op, dict(params), rand), declared)


_OPENING = ("protocol", "role", "numbers", "round", "session")
_STEPS_TOLD = 12
"""The number of steps of a case that the terminal shows, counted from the end."""
_NUMBERS = {"vector": "<u4", "words": "<u4", "binary64": "<f8"}
"""The types whose strings are numbers; other strings are shown unchanged."""


def _value(owner: str, kind: str, value: Any) -> str:
    """Return a value of a type in readable form; `owner` has the types of the members of an object."""
    if isinstance(value, list):
        kinds = [part for _, part in members(kind)] if kind[0] == "(" else [kind[1:-1]] * len(value)
        kinds = kinds if len(kinds) == len(value) and kind[0] in "([" else ["json"] * len(value)
        return "[" + ", ".join(_value(owner, part, item) for part, item in zip(kinds, value, strict=True)) + "]"
    if isinstance(value, dict):
        known = dict(members(kind)) if kind[0] == "{" else {}
        parts = {name: known.get(name, form(owner, name)) for name in value}
        return "{" + ", ".join(f"{name}: {_value(owner, parts[name], item)}" for name, item in value.items()) + "}"
    try:
        if kind == "seed":
            return str(int.from_bytes(bytes.fromhex(value), "little"))
        if kind in _NUMBERS:
            return "(" + " ".join(map(str, unpack(value, _NUMBERS[kind]).tolist())) + ")"
        if kind.startswith("elements"):
            width = int(kind.removeprefix("elements"))
            data = octets(value, width)
            numbers = (int.from_bytes(data[start : start + width], "little") for start in range(0, len(data), width))
            return "(" + " ".join(map(str, numbers)) + ")"
    except (TypeError, ValueError):
        pass
    return str(value)
