"""The command ``secagg-spec diff``: what changed between two reports."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from secagg_spec.conformance.adapter.plain import counted, shown, visible
from secagg_spec.conformance.reports import document
from secagg_spec.conformance.reports.summaries import escaped

_MESSAGE = 160
_NOT_RUN, _NOT_OFFERED, _ABSENT = "not_run", "unsupported", "absent"
Kind: TypeAlias = Literal[
    "target",
    "fails now",
    "stale now",
    "no longer judged",
    "disappeared",
    "changed",
    "passes now",
    "judged now",
    "new check",
    "no longer stale",
    "declared",
    "clause",
    "mutation score",
]
"""The kinds of changes, in the order in which they are printed."""
_ORDER: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Change:
    """One difference: its kind, its subject, and the states before and after."""

    kind: Kind
    what: str
    said: str
    worse: bool = False


@dataclass
class Comparison:
    """What changed in one target, and how many checks stayed the same."""

    target: str
    changes: list[Change] = field(default_factory=list)
    same: int = 0


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    old, new = document.load(given.old), document.load(given.new)
    notes, found = differences_of_runs(old, new), compare(old, new)
    print(visible("\n".join((_markdown if given.markdown else _text)(notes, found))))
    return 1 if any(change.worse for comparison in found for change in comparison.changes) else 0


# -------------------------------------------------------------------------------------------------------- comparing


def differences_of_runs(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the differences between the two runs themselves, each in a sentence."""
    before, after = old["header"], new["header"]
    notes = [
        f"another {what}: {_short(before.get(name))} before, {_short(after.get(name))} now"
        for name, what in (("kit", "kit"), ("text", "text"), ("vectors", "set of test vectors"))
        if before.get(name) != after.get(name)
    ]
    was, now = before.get("settings") or {}, after.get("settings") or {}
    notes += [
        f"other settings: {name} was {_short(was.get(name))}, is {_short(now.get(name))}"
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    waits, now_waits = (
        {target["target"]: target.get("options", []) for target in report["targets"]} for report in (old, new)
    )
    notes += [
        f"other time-outs of {name}: {_or_defaults(waits[name])} before, {_or_defaults(now_waits[name])} now"
        for name in waits
        if name in now_waits and waits[name] != now_waits[name]
    ]
    old_draws, new_draws = (header["environment"].get("hypothesis") for header in (before, after))
    if old_draws != new_draws:
        notes.append(f"another hypothesis, which draws the cases: {_short(old_draws)} before, {_short(new_draws)} now")
    return notes


def _or_defaults(options: Sequence[str]) -> str:
    return shown(" ".join(options), 60) or "the defaults"


def _short(value: object) -> str:
    text = str(value)
    return shown(text[:12] if len(text) == 64 else text, 60)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Comparison]:
    """Return the changes of each target, in the order of the newer report; targets that disappeared come last."""
    before = {target["target"]: target for target in old["targets"]}
    after = {target["target"]: target for target in new["targets"]}
    names = [*after, *(name for name in before if name not in after)]
    return [_compare(name, before.get(name), after.get(name)) for name in names]


def _compare(name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Comparison:
    found = Comparison(name)
    if old is None or new is None:
        removed = new is None
        found.changes.append(Change("target", name, "is not in the newer report" if removed else "is new", removed))
        return found
    found.changes += [*_usable(old, new), *_implementation(old, new), *_stale(old, new), *_power(old, new)]
    found.changes += [*_operations(old, new), *_checks(old, new, found), *_clauses(old, new)]
    return found


def _usable(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for member, now_is, no_longer in (
        ("absent", "absent from the machine now", "was absent from the machine, and is no longer"),
        ("unusable", "could not be used now", "could not be used before, and can be used now"),
    ):
        if bool(old.get(member)) != bool(new.get(member)):
            now = bool(new.get(member))
            said = f"{now_is}: {new[member]}" if now else no_longer
            yield Change("target", str(new["target"]), said, now)


def _implementation(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = _declaration(old), _declaration(new)
    for member in dict.fromkeys((*before, *after)):
        if before and after and before.get(member) != after.get(member):
            yield Change("declared", member, f"{before.get(member)} before, {after.get(member)} now")


def _declaration(target: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a target declares, but for its operations; with its grade of randomness, and what was left out."""
    about, hello = target.get("implementation") or {}, target.get("hello") or {}
    parts = {**hello, **about, "left out": target.get("left_out")} if about else {}
    return {name: value for name, value in parts.items() if name not in ("implementation", "operations")}


def _operations(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = ((target.get("implementation") or {}).get("operations") or {} for target in (old, new))
    if not old.get("implementation") or not new.get("implementation"):
        return
    yield from (Change("declared", name, "no longer declared") for name in before if name not in after)
    yield from (Change("declared", name, "declared now") for name in after if name not in before)
    for name in before:
        if name in after and before[name] != after[name]:
            yield Change("declared", name, f"{json.dumps(before[name])} before, {json.dumps(after[name])} now")


def _power(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = ((target.get("power") or {}).get("caught", 0) for target in (old, new))
    if before != after:
        yield Change("mutation score", "noticed mutants", f"{before} before, {after} now")


def _stale(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = old.get("stale") or [], new.get("stale") or []
    yield from (Change("stale now", "expectation", str(line), True) for line in after if line not in before)
    yield from (Change("no longer stale", "expectation", str(line)) for line in before if line not in after)


def _checks(old: Mapping[str, Any], new: Mapping[str, Any], found: Comparison) -> Iterator[Change]:
    before, after = ({check["check"]: check for check in target["checks"]} for target in (old, new))
    for name in [*after, *(name for name in before if name not in after)]:
        was, now = _State.of(before.get(name)), _State.of(after.get(name))
        if was == now:
            found.same += 1
        else:
            yield _changed(name, was, now)


@dataclass(frozen=True)
class _State:
    """The state of a check: its verdict, and whether it is an expected failure."""

    verdict: str
    expected: bool = False
    weaker: str = ""
    """The ways in which a pass is weaker than a full pass, in words."""
    note: str = field(default="", compare=False)

    @classmethod
    def of(cls, check: Mapping[str, Any] | None) -> _State:
        if check is None:
            return cls(_ABSENT)
        failure = check.get("failure") or {}
        note = failure.get("message") or check.get("note") or ""
        verdict, expected = str(check["verdict"]), bool(check.get("expected_failure"))
        return cls(verdict, expected, _weaker(check) if verdict == "pass" else "", str(note))

    @property
    def ran(self) -> bool:
        return self.verdict not in (_ABSENT, _NOT_RUN, _NOT_OFFERED)

    @property
    def good(self) -> bool:
        return self.verdict == "pass" or (self.expected and self.ran)

    @property
    def failed(self) -> bool:
        return self.ran and not self.good

    def __str__(self) -> str:
        words = {_NOT_RUN: "not run", _NOT_OFFERED: "not offered"}.get(self.verdict, self.verdict)
        words = f"{words} ({self.weaker})" if self.weaker else words
        return f"{words} (expected)" if self.expected else words


def _weaker(check: Mapping[str, Any]) -> str:
    """Return the ways in which a pass is weaker than a full pass."""
    ways = {"by relation": check.get("by_relation"), "reason not checked": not check.get("reason_checked", True)}
    return ", ".join(words for words, so in ways.items() if so)


def _changed(name: str, was: _State, now: _State) -> Change:
    why = f": {shown(now.note, _MESSAGE)}" if now.note and not now.good else ""
    return Change(_kind(was, now), name, f"{was} before, {now} now{why}", got_worse(was, now))


def got_worse(was: _State, now: _State) -> bool:
    """Return whether a check got worse: it was good and is not, or it began to fail (CNF-48)."""
    return (was.good and not now.good) or (now.failed and not was.failed)


def _kind(was: _State, now: _State) -> Kind:
    if now.failed and not was.failed:
        return "fails now"
    if was.failed and now.verdict == "pass":
        return "passes now"
    if _ABSENT in (was.verdict, now.verdict):
        return "disappeared" if now.verdict == _ABSENT else "new check"
    if was.ran and not now.ran:
        return "no longer judged"
    return "judged now" if now.ran and not was.ran else "changed"


def _clauses(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = old.get("clauses") or {}, new.get("clauses") or {}
    for name in sorted({*before, *after}):
        was, now = before.get(name, "not decided"), after.get(name, "not decided")
        if was != now:
            yield Change("clause", name, f"{was} before, {now} now")


# --------------------------------------------------------------------------------------------------------- printing


def _text(notes: Sequence[str], found: Sequence[Comparison]) -> Iterator[str]:
    yield from (f"CAUTION  {note}" for note in notes)
    for comparison in found:
        yield f"{shown(comparison.target)}: {_counts(comparison)}"
        for change in _sorted(comparison.changes):
            worse = "WORSE" if change.worse else ""
            yield f"  {worse:<6} {change.kind:<17} {shown(change.what):<40} {shown(change.said, 400)}"
    yield _verdict(found)


def _markdown(notes: Sequence[str], found: Sequence[Comparison]) -> Iterator[str]:
    yield from (f"> Caution: {escaped(note)}" for note in notes)
    for comparison in found:
        yield from ("", f"### {escaped(comparison.target)}", "", _counts(comparison))
        if comparison.changes:
            yield from ("", "| | what | | change |", "| --- | --- | --- | --- |")
        for change in _sorted(comparison.changes):
            worse = "**worse**" if change.worse else ""
            yield f"| {worse} | {change.kind} | {escaped(change.what)} | {escaped(change.said)} |"
    yield from ("", _verdict(found))


def _sorted(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (not change.worse, _ORDER.index(change.kind)))


def _counts(comparison: Comparison) -> str:
    kinds = [kind for kind in _ORDER if any(change.kind == kind for change in comparison.changes)]
    parts = [f"{sum(change.kind == kind for change in comparison.changes)} {_NAMES[kind]}" for kind in kinds]
    return ", ".join([*parts, f"{counted(comparison.same, 'check')} as before"])


_NAMES: Mapping[Kind, str] = {kind: kind for kind in _ORDER} | {
    "target": "about the target itself",
    "new check": "new",
    "declared": "about what is declared",
    "clause": "about marks of clauses",
    "fails now": "failing now",
    "passes now": "passing now",
    "changed": "with another verdict",
    "mutation score": "of the mutation score",
}


def _verdict(found: Sequence[Comparison]) -> str:
    worse = sum(change.worse for comparison in found for change in comparison.changes)
    return f"{worse} got worse" if worse else "nothing got worse"
