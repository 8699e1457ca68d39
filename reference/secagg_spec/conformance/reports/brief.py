"""The brief summary of a run: what each implementation passed and failed, and the worst findings, on one screen."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from secagg_spec.conformance.adapter.plain import clip, counted, shown
from secagg_spec.conformance.reports import page_content
from secagg_spec.conformance.running.expectations import NO_REASON, VERDICTS
from secagg_spec.conformance.running.runner import BROKEN
from secagg_spec.terminal import WIDTH

MOST = 40
"""The most lines of a summary (CNF-93)."""
WORST = 5
"""The findings that it names (CNF-94)."""
_OF_ONE = 2
"""How many of them may be of one implementation while others have more."""
ROWS = 9
"""The implementations that it shows; the report has them all."""
KINDS = {"leaked": "leak", "wrong_value": "sum", "accepted_invalid": "input", **dict.fromkeys(BROKEN, "crash")}
"""The word for each verdict of a failure; the verdicts that are not here are "other"."""
_MEANINGS = (
    ("leak", "somebody learns what the text hides"),
    ("sum", "a wrong sum, or another wrong value"),
    ("input", "bad input is taken"),
    ("crash", "an error, or no answer"),
    ("other", "any other failure"),
)
_NAME = 20
Paint = Callable[[str, str], str]


def plain(text: str, style: str) -> str:
    """Return text without a style."""
    return text


def summary(document: Mapping[str, Any], paint: Paint = plain, width: int = WIDTH) -> str:
    """Return the summary of a report (`conformance.reports.document`), in at most `MOST` lines of at most `width`."""
    content = page_content.page(document)
    lines = [*_settings(content["header"]["settings"], width)]
    lines += [*textwrap.wrap(content["fewer"], width, break_on_hyphens=False), "", *_table(content, paint, width)]
    worst = _worst(content["judged"])
    if worst:
        lines += ["", paint(f"The worst {len(worst)} findings" if worst[1:] else "The finding", "strong")]
        lines += [_line(target, finding, paint, width) for target, finding in worst]
    lines += [clip(line, width) for line in _stale(content)]
    return "\n".join([*lines, "", _conclusion(content, paint)])


def _settings(settings: Mapping[str, Any], width: int) -> Iterator[str]:
    yield f"Judged with {counted(settings['cases'], 'case')} per check, seed {settings['seed']}."
    patterns = (settings["pattern"] or "").split(",")
    for says, chosen in (
        ("Only", [one for one in patterns if one and not one.startswith("!")]),
        ("Left out", [one[1:] for one in patterns if one.startswith("!")]),
    ):
        if chosen:
            said = f"{says}: {shown(', '.join(chosen))}"
            yield from textwrap.wrap(said, width, max_lines=2, placeholder=" …", break_on_hyphens=False)
    if not settings["vectors"]:
        yield "Left out: the test vectors"


def _table(content: Mapping[str, Any], paint: Paint, width: int) -> Iterator[str]:
    judged = content["judged"][:ROWS]
    if judged:
        size = max(len(_title(target)) for target in judged)
        pad = " " * size
        yield paint(f"{pad}       clauses          checks          failed checks", "strong")
        yield paint(
            f"{pad}  pass fail  n/o  pass fail  n/o  {' '.join(f'{kind:>5}' for kind, _ in _MEANINGS)}", "strong"
        )
        clauses = {clause for target in content["judged"] for clause in target["cells"]}
        yield from (_row(target, len(clauses), size, paint) for target in judged)
    absent = [target for target in content["targets"] if not target["implementation"]]
    for target in absent[:_OF_ONE]:
        why = target["absent"] or target["unusable"] or "not judged"
        line = f"{target['target']}: {shown(why)}"
        yield from textwrap.wrap(line, width, max_lines=2, placeholder=" …", break_on_hyphens=False)
    if more := len(content["judged"]) - len(judged) + len(absent[_OF_ONE:]):
        yield f"and {counted(more, 'more implementation')}, in the report"
    if judged:
        met = {kind for target in judged for kind, number in _kinds(target).items() if number}
        said = ["n/o: not offered", *(f"{kind}: {meaning}" for kind, meaning in _MEANINGS if kind in met)]
        unknown = sum(target["counts"]["not run"] for target in content["judged"])
        yield from _wrapped([*said, *([f"{counted(unknown, 'check')} not run"] if unknown else [])], width)


def _wrapped(parts: Sequence[str], width: int) -> Iterator[str]:
    line = ""
    for part in parts:
        if line and len(line) + len(part) + 2 > width:
            yield line
            line = ""
        line += f"; {part}" if line else part
    yield line


def _row(target: Mapping[str, Any], clauses: int, size: int, paint: Paint) -> str:
    styles = [cell["mark"].style for cell in target["cells"].values()]
    passed, failed = styles.count("passes"), styles.count("expected") + styles.count("fails")
    bad = target["failed"] + target["counts"]["fails as expected"]
    style = "bad" if target["failed"] or target["stale"] else "known" if bad else "good"
    numbers = (
        f"  {passed:>4} {failed:>4} {clauses - passed - failed - styles.count('unknown'):>4}"
        f"  {target['passed']:>4} {bad:>4} {target['counts']['not offered']:>4}"
    )
    kinds = " ".join(f"{number or '-':>5}" for number in _kinds(target).values())
    return paint(f"{_title(target):<{size}}{numbers}  {kinds}", style)


def _title(target: Mapping[str, Any]) -> str:
    about = target["implementation"]
    whole = shown(f"{about['name']} {about['version']}")
    return whole if len(whole) <= _NAME else clip(shown(about["name"]), _NAME)


def _kinds(target: Mapping[str, Any]) -> dict[str, int]:
    """Return how many checks of an implementation failed in each way; the gravest way of a check counts (CNF-82)."""
    kinds = [KINDS.get(finding["kind"], "other") for finding in target["findings"] for _ in finding["alike"]]
    return {kind: kinds.count(kind) for kind, _ in _MEANINGS}


def _worst(judged: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the findings to name, the gravest first: two of an implementation, and more where too few are left.

    A reason that stands at several findings is given once.
    """
    found = sorted(
        ((target, finding) for target in judged for finding in target["findings"]),
        key=lambda one: (VERDICTS.index(one[1]["kind"]), one[1]["alike"][0]["expected_failure"] is not None),
    )
    reasons: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for target, finding in found:
        reasons.setdefault(f"{finding['kind']} {_reason(finding)}", (target, finding))
    first: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    later: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for one in reasons.values():
        many = sum(other[0] is one[0] for other in first) >= _OF_ONE
        (later if many else first).append(one)
    return sorted([*first, *later][:WORST], key=lambda one: VERDICTS.index(one[1]["kind"]))


def _line(target: Mapping[str, Any], finding: Mapping[str, Any], paint: Paint, width: int) -> str:
    check = finding["alike"][0]
    kind, clause = KINDS.get(finding["kind"], "other"), check["clauses"][0]
    room = width - 16
    text = clip(f"{_title(target)}: {shown(_reason(finding))}", room)
    return f"{paint(f'{kind:<5}', 'known' if check['expected_failure'] else 'bad')}  {text:<{room}} {clause:>8}"


def _reason(finding: Mapping[str, Any]) -> str:
    """Return why a finding fails: the known reason up to its first colon, or the message where there is none yet."""
    known = finding["alike"][0]["expected_failure"]
    said: str = known.partition(": ")[0] if known and known != NO_REASON else finding["message"]
    return said


def _stale(content: Mapping[str, Any]) -> list[str]:
    """Return a line for each stale expectation; of more than two the first, and how many more there are."""
    found = [f"stale expectation: {shown(line)}" for target in content["targets"] for line in target["stale"]]
    more = len(found) - 1
    return [found[0], f"and {counted(more, 'more stale expectation')}, in the report"] if more >= _OF_ONE else found


def _conclusion(content: Mapping[str, Any], paint: Paint) -> str:
    """Return what was found, in one sentence."""
    known, (style, says) = content["judged"], content["verdict"]
    judged = [one for one in known if one["cases"] or one["findings"] or one["not_run"]]
    failing, idle = sum(bool(target["findings"]) for target in judged), len(known) - len(judged)
    head = f"{counted(len(judged), 'implementation')} judged, {failing or 'none'} with failures"
    head += f", {idle} asked nothing" if idle else ""
    colour = {"passes": "good", "expected": "known", "fails": "bad"}.get(style, "strong")
    return f"{head}: {paint(says[:1].lower() + says[1:], colour)}." if judged else paint(f"{says}.", colour)
