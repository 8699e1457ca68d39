"""Findings: the failures of a target, those of one root as one (CNF-81), with the gravest first (CNF-82)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.running.expectations import VERDICTS, Judged
from secagg_spec.conformance.running.runner import Failure

_STDERR = "its standard error ends: "
_NUMBER = re.compile(
    r"(\bline \d+|\.[a-z]+:\d+(?::\d+)?)"  # a place in a source, which stays
    r"|0x[0-9a-f]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![0-9a-f])"
    r"|\b(?:(?=[a-f]*\d)[0-9a-f]+|[0-9a-f]{8,})\b|'(?:[0-9a-f]{2})+'",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"#(?:,? #)+|(?<=[\[({])(?=[\])}])")
_WORD = re.compile(r"[a-z]\w+", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """Failures of one root: the one to show whole, and the others."""

    kind: str
    """The gravest verdict that they met."""
    first: Judged
    others: tuple[Judged, ...] = ()


def findings(judged: Iterable[Judged]) -> list[Finding]:
    """Return the failures of a target by root: new ones before expected ones, and in each part the gravest first.

    Of each root the smallest case comes first. Vectors, which are not shrunk, come behind checks, also as findings.
    """
    roots: dict[tuple[bool, int, str, str], list[Judged]] = {}
    for one in judged:
        if one.outcome.failure and one.outcome.verdict in VERDICTS:
            gravest = min(map(VERDICTS.index, (one.outcome.verdict, *one.outcome.failure.also)))
            key = (one.expected is not None, gravest, one.outcome.verdict, _root(one, one.outcome.failure))
            roots.setdefault(key, []).append(one)
    found = []
    for (expected, gravest, *_), alike in roots.items():
        first, *others = sorted(alike, key=_size)
        found.append((expected, gravest, first.outcome.check.fixed, Finding(VERDICTS[gravest], first, tuple(others))))
    return [finding for *_, finding in sorted(found, key=lambda one: one[:3])]


def _size(judged: Judged) -> tuple[bool, int]:
    failure = judged.outcome.failure
    return judged.outcome.check.fixed, len(failure.transcript) if failure else 0


def _root(judged: Judged, failure: Failure) -> str:
    """Return what failures of one root have in common: the error if it says enough, else operation and message."""
    error = without_numbers("" if failure.also else _error(failure))
    if len(_WORD.findall(error)) > 1:
        return error
    asked = _asked(judged.outcome.check)
    if failure.verdict == "accepted_invalid" and asked in failure.message:
        return without_numbers(failure.message.replace(asked, "#"))
    return f"{asked} {error or without_numbers(failure.message)}"


def _asked(check: Check) -> str:
    """Return the operation that a check is about; if the check plays sessions, the party in its id."""
    parties = [part for part in check.id.split("/") if "." in part and not check.fixed]
    return next(iter((*parties, *check.operations)), "")


def _error(failure: Failure) -> str:
    """Return the error with which the adapter broke: that of its answer, or the end of its standard error."""
    answer = failure.transcript[-1].answer if failure.transcript else None
    if failure.verdict == "error" and answer and answer.kind == "error":
        return answer.message
    return failure.message.partition(_STDERR)[2] if failure.verdict == "crash" else ""


def without_numbers(message: str) -> str:
    """Return a message with # for each number, bytes and list of them; numbers of lines of a source stay."""
    return _SEVERAL.sub("#", _NUMBER.sub(lambda found: found[1] or "#", message))
