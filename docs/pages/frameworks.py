"""One page for each framework: whether its secure aggregation is safe, what to do, and each finding at its own address.

What was found comes from ``docs/results``; ``frameworks.toml`` adds an answer in words, what to do, and which findings
others have made public.
"""

from __future__ import annotations

import datetime
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.pages.common import PACKAGE, RELEASED, ROOT, SiteError, count, escaped, mention, relative, write
from secagg_spec.conformance.adapter.plain import clip
from secagg_spec.conformance.adapter.wire import RawLine, Request
from secagg_spec.conformance.reports import results
from secagg_spec.conformance.reports.report import describe
from secagg_spec.errors import UsageError
from secagg_spec.resources import clauses

WORDS = Path(__file__).with_suffix(".toml")
FOLDER = "frameworks"
POLICY = "security.md"
KINDS = {
    "leaked": ("What it gives away", "gives a secret away", "somebody learns what has to stay secret"),
    "wrong": ("What comes out wrong", "gives a wrong value", "a value is wrong"),
    "taken": (
        "What it takes and has to refuse",
        "takes what it must refuse",
        "an input or a message is taken that has to be refused",
    ),
    "broken": ("Where it breaks", "breaks", "the software breaks off where it has to refuse, or to go on"),
}
"""The kinds of failures, gravest first, each as the heading of a section, as that of a column, and in a sentence."""
_VERDICTS = {"accepted_invalid": "taken", "wrong_value": "wrong", "leaked": "leaked"}


@dataclass
class Finding:
    """What fails for one reason in one way, in any configuration and release of a framework.

    Attributes
    ----------
    anchor
        Its address on the page.
    kind
        One of `KINDS`.
    reason
        Why it fails, as the expectations of the target say.
    declared
        The operations that the first configuration declares.
    checks
        The checks that fail so, each with its stored entry in the first configuration.
    targets
        The configurations, in the order of the kit.
    versions
        The releases in which one of the checks fails so, oldest first.
    """

    anchor: str
    kind: str
    reason: str
    declared: Mapping[str, Any]
    checks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    @property
    def clauses(self) -> list[str]:
        """The clauses that fail, each once."""
        return [*dict.fromkeys(clause for check in self.checks.values() for clause in check["clauses"])]


def kind(check: Mapping[str, Any]) -> str:
    """Return what kind of failure a check found, nothing where it passed."""
    return _VERDICTS.get(check["verdict"], "broken") if check["failure"] else ""


@functools.cache
def words() -> Mapping[str, Mapping[str, Any]]:
    """Return what is said of each framework beside its results."""
    return tomllib.loads(WORDS.read_text(encoding="utf-8"))


@functools.cache
def stored() -> Mapping[str, Mapping[str, Any]]:
    """Return the stored results by target."""
    try:
        return results.load(ROOT / "docs" / "results")
    except UsageError as error:
        raise SiteError(str(error)) from None


def page(name: str) -> str:
    """Return the page of a framework on the site."""
    return f"{FOLDER}/{name}.md"


@functools.cache
def findings(name: str) -> Sequence[Finding]:
    """Return the findings in a framework, gravest first."""
    mine = {target: result for target, result in stored().items() if results.framework(target) == name}
    found: dict[tuple[str, str], Finding] = {}
    taken: set[str] = set()
    for target, result in sorted(mine.items(), key=lambda one: "@" in one[0]):
        for check in result["checks"]:
            if not kind(check):
                continue
            key = kind(check), check["expected_failure"]
            if key not in found:
                anchor = re.sub(r"[^a-z0-9]+", "-", check["check"].lower())
                anchor = anchor if anchor not in taken else f"{anchor}-{target}"
                taken.add(anchor)
                found[key] = Finding(anchor, *key, result["implementation"]["operations"])
            one = found[key]
            one.checks.setdefault(check["check"], check)
            version = f"{result['implementation']['version']} ({result['released']})"
            if "@" not in target and target not in one.targets:
                one.targets.append(target)
            if version not in one.versions:
                one.versions.append(version)
    for one in found.values():
        one.versions.sort(key=lambda version: version.rpartition("(")[2])
    return sorted(found.values(), key=lambda one: [*KINDS].index(one.kind))


@functools.cache
def failing() -> Mapping[str, Mapping[str, Finding]]:
    """Return, for each clause, the frameworks that fail it, each with its gravest finding."""
    table: dict[str, dict[str, Finding]] = {}
    for name in words():
        for one in findings(name):
            for clause in one.clauses:
                table.setdefault(clause, {}).setdefault(name, one)
    return table


def write_frameworks(out: Path) -> None:
    """Write the page of each framework.

    Raises
    ------
    SiteError
        A framework has results and no words, or the other way round, or its words name a check that does not fail.
    """
    apart = {results.framework(target) for target in stored()} ^ {*words()}
    if apart:
        raise SiteError(f"docs/pages/frameworks.toml and docs/results differ in {', '.join(sorted(apart))}")
    for name in words():
        write(out / page(name), "\n".join(_page(name)))


def overview() -> str:
    """Return a table of the frameworks, those that give a secret away first, with what fails in each."""
    order = {name: Counter(one.kind for one in findings(name)) for name in words()}
    first = sorted(order, key=lambda name: [-order[name][one] for one in KINDS])
    rows = (
        f"| [{words()[name]['name']} {_newest(name)}]({page(name)}) | "
        + " | ".join(str(order[name][one] or "-") for one in KINDS)
        + " |"
        for name in first
    )
    heads = " | ".join(head for _, head, _ in KINDS.values())
    return "\n".join([f"| findings | {heads} |", "| --- |" + " ---: |" * len(KINDS), *rows])


def _newest(name: str) -> str:
    """Return the release that the page of a framework is about."""
    return next(
        str(result["implementation"]["version"])
        for target, result in stored().items()
        if results.framework(target) == name
    )


def _page(name: str) -> Iterator[str]:
    said, found = words()[name], findings(name)
    anchors = {check: one.anchor for one in reversed(found) for check in one.checks}
    named = (check for part in ("advice", "public") for row in said.get(part, ()) for check in row["checks"])
    for check in named:
        if check not in anchors:
            raise SiteError(f"docs/pages/frameworks.toml names the check {check}, which does not fail with {name}")
    yield f"# Is {said['name']}'s secure aggregation safe?\n"
    yield f"**{_one_line(said['answer'])}**\n"
    yield "## What to do\n"
    for row in said["advice"]:
        links = [*dict.fromkeys(anchors[check] for check in row["checks"])]
        shown = (f"[{'why' if at == 0 else at + 1}](#{anchor})" for at, anchor in enumerate(links))
        yield f"- {row['do']} ({', '.join(shown)})"
    yield ""
    yield from _wraps(name, anchors)
    for key, (heading, *_) in KINDS.items():
        here = [one for one in found if one.kind == key]
        if here:
            yield f"## {heading}\n"
        for one in here:
            yield from _finding(one, name)
    yield from _passes(name)
    yield "## What was judged\n"
    yield from _counts(name)


@functools.cache
def defaults(name: str) -> Mapping[str, float]:
    """Return the default settings of a framework's rounds, as its target has them; nothing where it states none."""
    source = PACKAGE / "conformance" / "targets" / name / "round.py"
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    found = re.findall(r"^    (\w+): (?:int|float) = ([\d.]+)(?:\*\*(\d+))?$", text, re.MULTILINE)
    return {setting: float(base) ** int(power or 1) for setting, base, power in found}


def never_wraps(settings: Mapping[str, float]) -> int:
    """Return the most clients whose sum stays below the modulus, whatever they send."""
    return int((settings["modulus_range"] - 1) // settings["quantization_range"])


def _wraps(name: str, anchors: Mapping[str, str]) -> Iterator[str]:
    """Say up to how many clients no sum wraps with the default settings."""
    settings = defaults(name)
    if not {"clipping_range", "quantization_range", "modulus_range"} <= {*settings}:
        return
    most, clip_at = never_wraps(settings), f"{settings['clipping_range']:g}"
    largest, modulus = (int(settings[one]) for one in ("quantization_range", "modulus_range"))
    half = -(-modulus // (largest // 2))
    yield "## Can sums wrap with its default settings?\n"
    total = (most + 1) * largest
    yield (
        f"**Not with up to {most:,} clients.** From {most + 1:,} clients on they can, and nothing says so "
        f"([why](#{anchors['secagg.average/wrap']})). By default `clipping_range` is {clip_at}, `quantization_range` "
        f"{largest:,} and `modulus_range` {modulus:,}. An element of an update becomes an integer from 0, at "
        f"-{clip_at}, to {largest:,}, at {clip_at}; the sum of {most + 1:,} of the largest is {total:,}, which is "
        f"{total % modulus} modulo {modulus:,}. An element of 0 becomes {largest // 2:,}; so with {half:,} clients or "
        "more also sums of small elements wrap.\n"
    )


def _counts(name: str) -> Iterator[str]:
    """Yield what was judged, and how much of it passes."""
    yield "| configuration | checks | passed | " + " | ".join(head for _, head, _ in KINDS.values()) + " |"
    yield "| --- | --- | --- |" + " --- |" * len(KINDS)
    for target, result in stored().items():
        if results.framework(target) == name:
            kinds = [kind(check) for check in result["checks"]]
            about = result["implementation"]
            head = f"{escaped(about['name'])} {escaped(about['version'])}, released on {result['released']}"
            numbers = [len(kinds), kinds.count(""), *(kinds.count(one) for one in KINDS)]
            yield f"| {head} | {' | '.join(map(str, numbers))} |"
    yield (
        "\nEach number counts checks of the kit and test vectors, in each configuration anew; a finding above may be "
        "what many of them show. A failure is one against [the text]"
        f"({relative('spec/conformance.md', page(name))}), which no release promised to keep. "
        f"[All frameworks side by side]({relative(RELEASED, page(name))})\n"
    )


def _finding(one: Finding, name: str) -> Iterator[str]:
    """Yield a finding: its heading, what the text asks, what happens, where, and who knows."""
    head, _, more = one.reason.partition(": ")
    yield f"### {escaped(_opened(head))} {{ #{one.anchor} }}\n"
    if more:
        yield f"{escaped(_opened(more))}.\n"
    known = _public(one, name)
    for clause in one.clauses:
        yield f"- {mention(clause, page(name))} asks: {clauses()[clause]}"
    first = next(iter(one.checks.values()))
    if known is None and one.reason in _held(name):
        yield (
            "- What was seen is left out here until the maintainers had time to answer: see "
            f"[our policy]({relative(POLICY, page(name))})."
        )
    else:
        yield f"- What came out: {escaped(clip(first['failure']['message'], 300))}"
        if first["failure"]["requests"]:
            yield f"- Smallest case: ``{describe(_request(first['failure']['requests'][-1]), one.declared)}``"
    yield f"- Found by: {', '.join(f'`{check}`' for check in one.checks)}"
    where = f", in {', '.join(f'`{target}`' for target in one.targets)}" if one.targets else ""
    yield f"- In: {'; '.join(map(escaped, one.versions))}{where}"
    yield f"- Its maintainers: {known or 'this project has not written to them yet'}\n"


def _held(name: str) -> set[str]:
    """Return the reasons for which somebody's data is given away and which are not public: they are summarised."""
    return {one.reason for one in findings(name) if one.kind == "leaked" and _public(one, name) is None}


def _public(one: Finding, name: str) -> str | None:
    """Say where a finding is public, None where it is not."""
    for row in words()[name].get("public", ()):
        if set(row["checks"]) & set(one.checks):
            day: datetime.date = row["day"]
            return f"public since {day.isoformat()}, <{row['where']}>"
    return None


def _passes(name: str) -> Iterator[str]:
    """Yield the checks of what somebody learns that pass in each configuration that they were asked of."""
    mine = [result for target, result in stored().items() if results.framework(target) == name and "@" not in target]
    asked = [check for result in mine for check in result["checks"] if check["check"].startswith("privacy/")]
    bad = {check["check"] for check in asked if check["failure"]}
    good = [*dict.fromkeys(check["check"] for check in asked if check["check"] not in bad)]
    yield "## What was looked for and not found\n"
    if good:
        shown = ", ".join(f"`{one}`" for one in good)
        yield f"{count(good, 'check').capitalize()} of what somebody learns found nothing: {shown}.\n"
    else:
        yield "No check of what somebody learns fits what its adapter offers.\n"


def _opened(text: str) -> str:
    """Return a text that begins with a capital, unless its first word is a name in code."""
    first = text.split(" ", 1)[0]
    return text if re.search(r"[_.(]", first) or first != first.lower() else text[:1].upper() + text[1:]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _request(given: Mapping[str, Any] | str) -> Request:
    if isinstance(given, str):
        return RawLine(data=given.encode())
    return Request(given["op"], given["params"], given.get("rand"))
