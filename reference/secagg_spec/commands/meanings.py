"""What an id of the text, the kit or the ledger means, and why it matters: what ``secagg-spec explain`` prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from secagg_spec import history, resources
from secagg_spec.commands import index
from secagg_spec.commands.explain import Lines, head
from secagg_spec.conformance.adapter.codes import ALL_CODES, INEXPRESSIBLE, REJECT_CODES
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import engine, kinds
from secagg_spec.conformance.mutants.catalogue import Mutant
from secagg_spec.conformance.mutation import kills
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.ledger import entries

if TYPE_CHECKING:
    from secagg_spec.conformance.vectors.base import Flag, Vector, VectorFile

_LISTED = 12
_PREFIX, _VECTOR, _FLAG = "vector/", "test vector", "flag of test vectors"
_FEW = 3
"""The number of mutants whose effects say why a clause matters."""
_NOT_JUDGED = "not judged: no check and no vector of the kit decides it, so no report says anything about it"

_NO_ERROR = {
    "other": "any reason; reported as reason not checked",
    INEXPRESSIBLE: "the interface of the implementation cannot state what is asked; no failure and no pass (ADP-44)",
}


def names() -> tuple[str, ...]:
    """Return all ids that can be explained."""
    stored = index.load()
    ids = (*resources.clauses(), *history.load().withdrawn(), *stored.checks, *stored.vectors)
    more = (*(f"{_PREFIX}{id}" for id in stored.vectors), *(id for some in stored.ids.values() for id in some))
    return tuple(dict.fromkeys([*ids, *more, *OPERATIONS, *sorted(ALL_CODES), *verdicts(), *stored.claims]))


def explained(name: str) -> tuple[str, Lines] | None:
    """Return the kind of an id with what is known of it, or None if there is no such id."""
    stored = index.load()
    known = {**stored.ids, "check": stored.checks, _VECTOR: stored.vectors, "claim": stored.claims}
    id = name.removeprefix(_PREFIX)
    kinds = (kind for kind in KINDS if kind not in known or (id if kind == _VECTOR else name) in known[kind])
    return next(((kind, lines) for kind in kinds if (lines := KINDS[kind](name)) is not None), None)


# ------------------------------------------------------------------------------------------------------------- kinds


def _clause(name: str) -> Lines | None:
    return _about_clause(name) if name in resources.clauses() else None


def _about_clause(name: str) -> Lines:
    yield from head(name)
    yield "since", _since(name)
    bugs = _bugs_of(name)
    yield "if broken", "; ".join(dict.fromkeys([bug.effect for bug in bugs][:_FEW]))
    checks = [check for check in _checks().values() if name in check.clauses]
    vectors = [vector for vector in index.load().vectors.values() if name in vector.clauses]
    yield "checks", _listed(check.id for check in checks)
    yield "vectors", _listed(vector.id for vector in vectors)
    yield "tests", "\n".join(tests_of(name)) if in_checkout() else "(of the reference: in a checkout)"
    yield "mutants", _listed(bug.name for bug in bugs)
    yield "failed by", "; ".join(failing().get(name, ()))
    yield "not broken", mutants.unbreakable().get(name, "")
    needed = [*(op for check in checks for op in check.operations), *(vector.operation for vector in vectors)]
    yield "declare", _listed(dict.fromkeys(needed))
    yield "claims", _listed(_claims_of(name))
    yield "judge it", f"secagg-spec conform -k {name} -- ./adapter" if checks or vectors else _NOT_JUDGED


def failing() -> Mapping[str, Sequence[str]]:
    """Return the frameworks that fail each clause, with the releases that do."""
    return index.load().failing


def _since(clause: str) -> str:
    """Return the version that introduced a clause, and the versions that changed its words."""
    known = history.load()
    if clause not in known.clauses:
        return ""
    changed = known.changed(clause)
    return known.clauses[clause][0].since + (f"; changed in {', '.join(changed)}" if changed else "")


def _withdrawn(name: str) -> Lines | None:
    end = history.load().withdrawn().get(name)
    if end is None:
        return None
    stood = {"was in": f"spec/{end.page}", "since": _since(name)}
    withdrawn = {
        "until": f"version {end.since}",
        "because": end.withdrawn,
        "instead": ", ".join(end.instead) or "nothing",
    }
    return iter({**stood, **withdrawn}.items())


def _check(name: str) -> Lines | None:
    return _about_check(_checks()[name]) if name in _checks() else None


def _about_check(check: index.Row) -> Lines:
    yield "tests", check.text
    yield from _decided(check.clauses)
    yield "declare", _listed(check.operations) or "nothing: it runs on every adapter"
    most = f"at most {check.examples}{', and of more than 100 as large a part' * check.grows}"
    yield "cases", most if check.examples else "as many as --fuzz says"
    yield "catches", "; ".join(dict.fromkeys(bug.effect for clause in check.clauses for bug in _bugs_of(clause)[:2]))
    yield "judge it", f"secagg-spec conform -k {check.id} -- ./adapter"


def _vector(name: str) -> Lines | None:
    id = name.removeprefix(_PREFIX)
    return _about_vector(id) if id in index.load().vectors else None


def _about_vector(id: str) -> Lines:
    vector = _vectors()[id]
    yield "is", vector.comment
    yield "asks", vector.operation
    yield "outcome", f"reject with {' or '.join(vector.reject)}" if vector.reject else "one right result"
    yield from _decided(vector.clauses)
    [file] = [file for file in _files() if vector in file.vectors]
    said = set[str]()
    for flag in vector.flags:
        known = file.flags[flag]
        new = _once(f"{flag} ({known.bug_type}): ", known.description, said)
        yield "suggests", f"{new} ({known.effect})" if new else f"{flag} ({known.bug_type})"
    yield "kills", _listed(dict.fromkeys(name for flag in vector.flags for name in file.flags[flag].mutants))
    yield "presupposes", ", ".join(f"{policy} = {choice}" for policy, choice in vector.policy.items())
    yield "is in", f"spec/vectors/{file.name}.json"
    yield "judge it", f"secagg-spec conform -k {_PREFIX}{vector.id} -- ./adapter"


def _flag(name: str) -> Lines | None:
    return _about_flag(name) if name in index.load().ids[_FLAG] else None


def _about_flag(name: str) -> Lines:
    said = set[str]()
    for file, flag in [(file, file.flags[name]) for file in _files() if name in file.flags]:
        yield "in file", f"spec/vectors/{file.name}.json"
        yield "is", _once(f"{flag.bug_type}: ", flag.description, said)
        yield "effect", flag.effect
        yield "breaks", _once(f"{flag.clause}: ", resources.clauses()[flag.clause], said)
        yield "vectors", _listed(vector.id for vector in file.vectors if name in vector.flags)
        yield "kills", _listed(flag.mutants)


def _once(head: str, text: str, said: set[str]) -> str:
    """Return a text without its parts, divided by "; or", that were said before; nothing if all were."""
    parts = {part[:1].lower() + part[1:]: part for part in text.rstrip(".").split("; or ")}
    new = "; or ".join(part for key, part in parts.items() if key not in said)
    said.update(parts)
    return f"{head}{new[:1].upper()}{new[1:]}." if new else ""


def _bug(name: str) -> Lines | None:
    known = mutants.load()
    return _about_bug(known[name]) if name in known else None


def _about_bug(bug: Mutant) -> Lines:
    yield "effect", bug.effect
    yield "kind", f"{bug.kind}: {kinds.KINDS[bug.kind]}"
    yield "idea", f"{bug.source} ({kinds.SOURCES[kinds.parted(bug.source)[0]]})"
    yield "two mutants", " and ".join(bug.parts)
    yield "the edit", engine.diff(bug.all_edits)
    yield from _decided(bug.clauses, "breaks")
    yield "flags", _listed(name for file in _files() for name, flag in file.flags.items() if bug.name in flag.mutants)
    yield from _killed(bug, kills.load().get(bug.name))
    yield "try again", f"secagg-spec power --search -k {bug.name}"


def _killed(bug: Mutant, row: kills.Bug | None) -> Lines:
    """Yield what kills a mutant, and what an adapter must declare for a run to notice it."""
    if row is None:
        yield "killed by", f"not stored yet: secagg-spec power --regenerate -k {bug.name}"
        return
    checks, stored = dict.fromkeys(case.check for case in row.cases), index.load().vectors
    yield "killed by", f"test vectors: {_listed(row.vectors)}" if row.vectors else ""
    yield "killed by", f"drawn cases of checks: {_listed(checks)}" if checks else ""
    yield "killed by", f"the test {row.test}; no operation shows it" if row.test else ""
    asked = [stored[id].operation for id in row.vectors if id in stored]
    yield "declare", _listed(dict.fromkeys([*asked, *(need.op for case in row.cases for need in case.needs)]))


def _operation(name: str) -> Lines | None:
    if name not in OPERATIONS:
        return None
    params, rand = OPERATIONS[name]
    checks = [check for check in _checks().values() if name in check.operations]
    vectors = [vector for vector in index.load().vectors.values() if vector.operation == name]
    decided = [check.clauses for check in checks] + [vector.clauses for vector in vectors]
    clauses = dict.fromkeys(clause for some in decided for clause in some)
    return iter(
        [
            ("takes", ", ".join(params)),
            ("draws", ", ".join(rand)),
            ("decides", _listed(clauses)),
            ("checks", _listed(check.id for check in checks)),
            ("vectors", _listed(vector.id for vector in vectors)),
            ("is in", "spec/adapter.md, section 4"),
        ]
    )


def _policy(name: str) -> Lines | None:
    if name not in _policies():
        return None
    usual, *others = _policies()[name]
    row = next(row for row in resources.rows("adapter.md", "policy") if f"`{name}`" in row[0])
    about = row[0].partition(": ")[2]
    files = [vector.id for vector in _vectors().values() if name in vector.policy]
    return iter(
        [
            ("says", about),
            ("values", f"{usual} (where nothing is declared), {', '.join(others)}"),
            ("declare", f'"policy": {{"{name}": "{others[0]}"}} in the answer to hello'),
            ("vectors", _listed(files)),
            ("is in", "spec/adapter.md, section 2"),
        ]
    )


def _code(name: str) -> Lines | None:
    if name not in ALL_CODES:
        return None
    errors = [error for error, code in REJECT_CODES.items() if code == name]
    rules = [row[0] for row in resources.rows("adapter.md", "rule broken") if f"`{name}`" in row[1]]
    written = errors[0].__doc__ or "" if errors else _NO_ERROR[name]
    about = " ".join(re.split(r"\n\s*\n *\w+\n *-+\n", written)[0].split()).replace("``", "`")
    return iter([("says", about), ("accepted for", "; ".join(rules)), ("is in", "spec/adapter.md, section 5")])


def _verdict(name: str) -> Lines | None:
    when = verdicts().get(name) or verdicts().get(name.replace("_", " "))
    if when is None:
        return None
    return iter([("when", when), ("is in", "spec/adapter.md, section 6")])


def _claim(name: str) -> Lines | None:
    claims = _ledger().claims
    if name not in claims:
        return None
    claim = claims[name]
    shown = {"says": claim.statement, "verdict": claim.verdict, "condition": claim.condition, "repair": claim.repair}
    place = {"is in": f"{_ledger().papers[claim.paper]}, {claim.place}", "clauses": _listed(claim.clauses)}
    more = {"in full": f"secagg-spec claims {name}", "proof": claim.proof and f"secagg-spec claims {name} --verify"}
    return iter([*shown.items(), ("why", claim.matters), *place.items(), *more.items()])


KINDS: Mapping[str, Callable[[str], Lines | None]] = {
    "clause": _clause,
    "operation": _operation,
    "reject code": _code,
    "verdict": _verdict,
    "claim": _claim,
    "mutant": _bug,
    "withdrawn clause": _withdrawn,
    "policy": _policy,
    "check": _check,
    _VECTOR: _vector,
    _FLAG: _flag,
}
"""The kinds of ids, each with the function that explains one, or returns None for an id of another kind.

The kinds that are known soonest come first. No id is of two kinds.
"""


# ----------------------------------------------------------------------------------------------------------- sources


@cache
def verdicts() -> Mapping[str, str]:
    """Return when each verdict is given, from the table of the text."""
    found: dict[str, str] = {}
    for names, when in resources.rows("adapter.md", "verdict"):
        words = re.findall(r"`([^`]+)`", names) or [names.partition(",")[0]]
        for word in words:
            found[word] = f"{found[word]}; {names}: {when}" if word in found else f"{names.replace('`', '')}: {when}"
    return found


def tests_of(clause: str) -> list[str]:
    """Return the tests of a checkout that are marked with a clause."""
    named = [path for path, source in _sources().items() if f'"{clause}"' in source]
    return [test for path in named for marked, test in _marked(path) if marked == clause]


def in_checkout() -> bool:
    """Return whether this is a checkout with tests."""
    return _tests().is_dir()


def _tests() -> Path:
    return resources.root("spec").parent / "tests"


@cache
def _sources() -> Mapping[Path, str]:
    """Return the files of tests that mark some."""
    found = {path: path.read_text(encoding="utf-8") for path in sorted(_tests().rglob("test_*.py"))}
    return {path: source for path, source in found.items() if "mark.requirement(" in source}


@cache
def _marked(path: Path) -> Sequence[tuple[str, str]]:
    """Return the pairs of a clause and a test of a file that is marked with it."""
    functions = [node for node in ast.parse(_sources()[path]).body if isinstance(node, ast.FunctionDef)]
    name = path.relative_to(_tests().parent)
    return [(clause, f"{name}::{function.name}") for function in functions for clause in _marks(function)]


def _marks(function: ast.FunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.requirement":
            yield from (str(ast.literal_eval(argument)) for argument in mark.args)


def _decided(clauses: Iterable[str], word: str = "decides") -> Lines:
    for clause in clauses:
        yield word, f"{clause}: {resources.clauses()[clause]}"


def _claims_of(clause: str) -> Iterator[str]:
    """Yield the claims on which a clause depends; only the files that name it are read."""
    for path in sorted((resources.root("spec") / "claims").glob("*.toml")):
        if clause.encode() in path.read_bytes():
            yield from (entry["id"] for entry in engine.table(path)["claim"] if clause in entry["clauses"])


def _bugs_of(clause: str) -> list[Mutant]:
    return [bug for bug in mutants.load().values() if clause in bug.clauses]


def _flags_of(clause: str) -> list[Flag]:
    return [flag for file in _files() for flag in file.flags.values() if flag.clause == clause]


@cache
def _ledger() -> entries.Ledger:
    return entries.load()


def _checks() -> Mapping[str, index.Row]:
    return index.load().checks


def _policies() -> Mapping[str, Sequence[str]]:
    from secagg_spec.conformance.adapter.capabilities import POLICIES  # noqa: PLC0415 - it loads numbers

    return POLICIES


@cache
def _files() -> tuple[VectorFile, ...]:
    from secagg_spec.conformance.vectors import store  # noqa: PLC0415 - it loads numbers

    return tuple(store.load_all())


@cache
def _vectors() -> Mapping[str, Vector]:
    return {vector.id: vector for file in _files() for vector in file.vectors}


def _listed(names: Iterable[str]) -> str:
    """Return names joined by commas; if there are many, only the first ones."""
    all_names = list(names)
    more = f" … and {len(all_names) - _LISTED} more" if len(all_names) > _LISTED else ""
    return ", ".join(all_names[:_LISTED]) + more
