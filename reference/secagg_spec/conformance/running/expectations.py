"""Expected failures: a file lists which checks of a target fail, how, and why. An outdated entry fails the run.

[[expect]]
target = "fedml"                      # or a list of targets; * matches any characters
checks = "lightsecagg.mask/*"         # a check id; * matches any characters
verdict = "accepted_invalid"          # or a list of verdicts; with "pass" among them, the failure is rare
message = "lightsecagg.mask gave"     # optional: the beginning of the message
reason = "the released function checks nothing"
"""

import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from secagg_spec import documents
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.running import suite
from secagg_spec.conformance.running.runner import BROKEN, Outcome
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.errors import UsageError

ADAPTER = "adapter"
"""The target name of an adapter that is given by its command."""
_LARGEST = 1 << 24
"""The most bytes of a file: more takes many seconds to read."""
_MOST = 20
_KEYS = {"target", "checks", "verdict", "message", "reason"}
_REQUIRED = _KEYS - {"message"}
VERDICTS = ("leaked", "wrong_value", "accepted_invalid", "rejected_valid", "wrong_reason", *BROKEN, "inconsistent")
"""The verdicts of failures, the gravest first (CNF-82)."""
NO_REASON = "not looked at yet"
"""The reason of an entry that a run wrote, until somebody gives it one."""
RARE = "pass"
"""Beside a failure, it says that the check may also pass."""


class ExpectationsError(UsageError):
    """The file cannot be used; the message names the file, the entry and the error."""


@dataclass(frozen=True)
class Expectation:
    """One entry of the file."""

    targets: tuple[str, ...]
    checks: str
    verdicts: tuple[str, ...]
    message: str
    reason: str

    def concerns(self, target: str) -> bool:
        """Return whether the entry names this target."""
        return any(fnmatch.fnmatchcase(target, pattern) for pattern in self.targets)

    def covers(self, target: str, check: str) -> bool:
        """Return whether the entry names this check of this target, whatever the outcome."""
        return self.concerns(target) and fnmatch.fnmatchcase(check, self.checks)

    def explains(self, outcome: Outcome) -> bool:
        """Return whether the outcome is the expected failure."""
        failure = outcome.failure
        return failure is not None and outcome.verdict in self.verdicts and failure.message.startswith(self.message)


def known(target: str, path: Path | None) -> list[Expectation]:
    """Return the entries of a file or, if no file is given, the entries that the kit ships for the target.

    Raises
    ------
    ExpectationsError
        As in `load`.
    """
    found = path or (TARGETS[target].expectations if target in TARGETS else None)
    return load(found) if found else []


def load(path: Path) -> list[Expectation]:
    """Read an expectations file.

    Raises
    ------
    ExpectationsError
        The file is absent or is not TOML, or it has a key other than ``expect``. Or an entry has a missing or unknown
        key, or names a target or a check that this kit does not have.
    """
    try:
        content = documents.read_toml(path, _LARGEST)
    except OSError as error:
        raise ExpectationsError(f"{path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise ExpectationsError(f"{path.name}: this is not TOML: {shown(str(error), 200)}") from None
    except ValueError as error:
        raise ExpectationsError(f"{path.name}: {shown(str(error), 200)}") from None
    unknown = sorted(set(content) - {"expect"})
    if unknown:
        raise ExpectationsError(
            f"{path.name}: {_named(unknown[0])} is unknown; entries are tables, each begun by [[expect]]"
        )
    entries = content.get("expect", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ExpectationsError(f"{path.name}: 'expect' must be tables, each begun by [[expect]]")
    return [_entry(path.name, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(file: str, number: int, entry: dict[str, object]) -> Expectation:
    missing, unknown = sorted(_REQUIRED - set(entry)), sorted(set(entry) - _KEYS)
    if missing or unknown:
        parts = [("missing", missing), ("unknown", unknown)]
        said = "; ".join(f"{word}: {shown(', '.join(found), 100)}" for word, found in parts if found)
        raise ExpectationsError(f"{file}, entry {number}: keys are {', '.join(sorted(_KEYS))}; {said}")
    for key, value in entry.items():
        listed = isinstance(value, list) and key in ("target", "verdict") and all(isinstance(v, str) for v in value)
        if not isinstance(value, str) and not listed:
            raise ExpectationsError(f"{file}, entry {number}: {key} = {_named(value)} must be text")
    others = sorted(set(_several(entry["verdict"])) - {*VERDICTS, RARE})
    if others:
        raise ExpectationsError(
            f"{file}, entry {number}: verdict {_named(others[0])}; verdicts are {', '.join(VERDICTS)}"
        )
    if not {*_several(entry["verdict"])} - {RARE}:
        raise ExpectationsError(f"{file}, entry {number}: verdict names no failure; verdicts are {', '.join(VERDICTS)}")
    if not entry["target"] or not str(entry["reason"]).strip():
        empty = "reason" if entry["target"] else "target"
        raise ExpectationsError(f"{file}, entry {number}: {empty} is empty; every failure has a target and a reason")
    targets, checks = _several(entry["target"]), str(entry["checks"])
    nowhere = [name for name in targets if not fnmatch.filter((ADAPTER, *TARGETS), name)]
    if nowhere:
        known = ", ".join((ADAPTER, *TARGETS))
        raise ExpectationsError(f"{file}, entry {number}: there is no target {_named(nowhere[0])}; targets are {known}")
    if not any(fnmatch.fnmatchcase(check, checks) for check in suite.everything()):
        raise ExpectationsError(
            f"{file}, entry {number}: no check of this kit matches {_named(checks)} (see --list-checks)"
        )
    message, reason = str(entry.get("message", "")), str(entry["reason"])
    return Expectation(targets, checks, _several(entry["verdict"]), message, reason)


def _named(value: object) -> str:
    """Return a value of the file as an error names it."""
    return shown(repr(value), 100)


def _several(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)


@dataclass(frozen=True)
class Judged:
    """An outcome together with the expectation that explains it."""

    outcome: Outcome
    expected: Expectation | None = None

    @property
    def unexpected(self) -> bool:
        """Whether the outcome fails the run."""
        return self.outcome.failure is not None and self.expected is None


def judge(target: str, outcomes: Sequence[Outcome], expectations: Sequence[Expectation]) -> list[Judged]:
    """Pair each outcome with the entry that explains it."""
    own = [(one, [e for e in expectations if e.covers(target, one.check.id) and e.explains(one)]) for one in outcomes]
    return [Judged(outcome, entries[0] if entries else None) for outcome, entries in own]


def failures(judged: Sequence[Judged]) -> list[Judged]:
    """Return the outcomes that an entry can expect: those of checks that ran and failed."""
    return [found for found in judged if found.outcome.failure is not None and found.outcome.verdict in VERDICTS]


def written(failed: Mapping[str, Sequence[Judged]]) -> str:
    """Return a file that expects what failed, by target (CNF-80); what was expected before keeps its reason."""
    lines = ["# What failed when this file was written. Give each entry its reason: why it fails, and who mends it."]
    for target, outcomes in failed.items():
        for found in outcomes:
            outcome, reason = found.outcome, found.expected.reason if found.expected else NO_REASON
            assert outcome.failure is not None, "only failures are expected"
            entry = {"target": target, "checks": outcome.check.id, "verdict": outcome.verdict, "reason": reason}
            lines += ["", f"# {shown(outcome.failure.message, 160)}", "[[expect]]"]
            lines += [f"{key} = {_toml(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    """Return a string of TOML on one line; a lone surrogate, which TOML does not have, is shown as its escape."""
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    simple = [char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08X}" for char in plain]
    return f'"{"".join(simple)}"'


def _otherwise(entry: Expectation, outcome: Outcome) -> str:
    """Say how a failure differs from the expected one."""
    if outcome.verdict not in entry.verdicts or outcome.failure is None:
        return f"fails as {outcome.verdict} instead"
    return f"fails as {outcome.verdict} with another message: {outcome.failure.message[:200]}"


def stale(target: str, outcomes: Sequence[Outcome], expectations: Sequence[Expectation]) -> list[str]:
    """Return the faults of the entries for a target: checks that pass or fail differently, or too wide patterns.

    An entry is judged only if at least one of its checks ran. What the adapter does not offer counts for nothing, so
    that a check of a later kit makes no pattern too wide.
    """
    problems: list[str] = []
    for entry in expectations:
        offered = (outcome for outcome in outcomes if outcome.verdict != "unsupported")
        covered = [outcome for outcome in offered if entry.covers(target, outcome.check.id)]
        ran = [outcome for outcome in covered if outcome.verdict != "not_run"]
        where = _where(target, entry)
        problems += too_wide(target, entry, len(covered))
        if RARE not in entry.verdicts:
            problems += [f"{where}: {outcome.check.id} passes" for outcome in ran if outcome.verdict == "pass"]
        problems += [
            f"{where}: {outcome.check.id} {_otherwise(entry, outcome)}"
            for outcome in ran
            if outcome.failure and not entry.explains(outcome)
        ]
    return problems


def too_wide(target: str, entry: Expectation, covered: int) -> list[str]:
    """Return the fault of an entry that covers so many offered checks, if it is one."""
    wide = f"{_where(target, entry)} covers {covered} checks; {_MOST} are allowed"
    return [wide] if covered > _MOST else []


def _where(target: str, entry: Expectation) -> str:
    return f"{target}: {entry.checks} ({' or '.join(entry.verdicts)})"
