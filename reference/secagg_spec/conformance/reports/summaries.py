"""Summaries of a report: a table in Markdown for continuous integration, and the data of a badge."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.reports.page_content import page
from secagg_spec.conformance.reports.report import listed
from secagg_spec.conformance.running.expectations import VERDICTS

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|<>~&])")
_MOST = 20
"""The most findings in a summary, and the most further checks that it names for each."""


def markdown(document: Mapping[str, Any]) -> str:
    """Return a report as Markdown: a row for each implementation, and the findings that nobody expected."""
    content = page(document)
    return "\n".join([f"## Conformance: {content['verdict'][1]}", "", *_table(content), *_failures(content), ""])


def _table(content: Mapping[str, Any]) -> Iterator[str]:
    yield "| implementation | pass | fail | as expected | not run | not offered | mutation score |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for target in content["targets"]:
        yield _row(target)
    yield ""
    header, footer = content["header"], content["footer"]
    end = f"digest `{footer['digest'][:16]}`" if footer else "**ended before it was complete**"
    settings = header["settings"]
    yield f"Kit {escaped(header['kit'])}, seed {settings['seed']}, {settings['cases']} cases a check, {end}."
    if content["fewer"]:
        yield f"\n{escaped(content['fewer'])}."


def _row(target: Mapping[str, Any]) -> str:
    name, about = escaped(target["target"]), target["implementation"]
    if not about:
        why = "not on this machine" if target["absent"] else "cannot be used"
        return (
            f"| {name}: {why}: {escaped(target['absent'] or target['unusable'] or 'it was not judged')} | | | | | | |"
        )
    counts, power = target["counts"], target["power"]
    numbers = [target["passed"], target["failed"], *(counts[key] for key in ("fails as expected", "not run"))]
    caught = f"{power['caught']} of {power['of']}" if power else ""
    cells = [*map(str, numbers), str(counts["not offered"]), caught]
    return f"| {name} ({escaped(about['name'])} {escaped(about['version'])}) | {' | '.join(cells)} |"


def _failures(content: Mapping[str, Any]) -> Iterator[str]:
    found = [(target, finding) for target in content["targets"] for finding in target["findings"]]
    wrong = [(target, finding) for target, finding in found if finding["alike"][0]["mark"].style == "fails"]
    wrong.sort(key=lambda one: VERDICTS.index(one[1]["kind"]))
    for target, finding in wrong[:_MOST]:
        check, *others = finding["alike"]
        clauses = dict.fromkeys(clause for one in finding["alike"] for clause in one["clauses"])
        yield ""
        yield f"- **{escaped(check['check'])}** of {escaped(target['target'])}: {escaped(check['verdict'])}"
        yield f"  [{', '.join(clauses)}]: {escaped(check['failure']['message'])}"
        if others:
            yield f"  The same in {escaped(listed([other['check'] for other in others], _MOST))}."
    if len(wrong) > _MOST:
        yield ""
        yield f"and {len(wrong) - _MOST} more findings"
    for target in content["targets"]:
        yield from (f"\nStale expectation: {escaped(line)}" for line in target["stale"])


def escaped(text: str) -> str:
    """Return text on one line, of at most 300 characters, with everything escaped that Markdown treats as markup."""
    return _MARKUP.sub(r"\\\1", shown(text, 300))


def badge(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a badge, in the format of the shields.io endpoint."""
    content = page(document)
    judged = content["judged"]
    passed = sum(target["passed"] for target in judged)
    ran = passed + sum(target["failed"] + target["counts"]["fails as expected"] for target in judged)
    style, says = content["verdict"]
    power = [target["power"] for target in judged if target["power"]]
    caught, known = sum(entry["caught"] for entry in power), sum(entry["of"] for entry in power)
    rated = f", mutation score {round(100 * caught / known)} %" if known else ""
    message = f"{passed}/{ran}{rated}" if style == "passes" else says.lower()
    color = {"passes": "brightgreen", "expected": "yellow", "fails": "red", "unknown": "lightgrey"}[style]
    return {"schemaVersion": 1, "label": "secagg-spec", "message": message, "color": color, "isError": style == "fails"}
