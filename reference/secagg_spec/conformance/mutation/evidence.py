"""Collect the stored evidence (`kills`), the vectors and cases that kill each mutant, and verify it again.

A mutant is tried with the vectors that are meant to kill it, and with some of the vectors that call the edited code. A
profiled run of each vector shows which functions it calls.
"""

import functools
import inspect
import json
import multiprocessing
import os
import re
import statistics
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType, FrameType
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import RANGED, Capabilities, greet
from secagg_spec.conformance.adapter.connection import Connection, DirectConnection, ProcessConnection
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, RawLine, Request
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.checks.base import Declined
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants.catalogue import Mutant
from secagg_spec.conformance.mutation import kills, search
from secagg_spec.conformance.mutation.kills import CASES, DRAWN, SEEDS, Bug, Case, Need
from secagg_spec.conformance.mutation.search import HELLO_CHECK
from secagg_spec.conformance.running import repros
from secagg_spec.conformance.running.runner import Failure, Settings, first_failure, run_check
from secagg_spec.conformance.sdk.secagg_adapter import DRAWING
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import judge, store
from secagg_spec.conformance.vectors.base import Vector, VectorFile
from secagg_spec.errors import UsageError

_MOST_VECTORS = 12
_MOST_CASES = 4
_TRIED = 3
_FEW, _MANY = 20, 200
_SEED = "seed"
_NEW = "session.new"


def gathered(chosen: Sequence[Mutant], kept: Mapping[str, Bug]) -> Iterator[tuple[Bug, bool]]:
    """Yield the row of each mutant, and whether it is new, in the order in which the rows are finished.

    A row of `kept` whose evidence still holds is reused. Mutants without a row come first.
    """
    tasks = sorted(((mutant.name, kept.get(mutant.name)) for mutant in chosen), key=lambda task: task[1] is not None)
    workers = min(os.cpu_count() or 1, len(tasks))
    if workers < 2 or os.name != "posix":
        yield from (_renewed(task) for task in tasks)
        return
    if tasks[0][1] is None:
        _called()
    with multiprocessing.get_context("fork").Pool(workers, search.leave_signals) as pool:
        yield from pool.imap_unordered(_renewed, tasks)


def _renewed(task: tuple[str, Bug | None]) -> tuple[Bug, bool]:
    name, row = task
    mutant = mutants.load()[name]
    if row is not None and next(faults(row, mutant), None) is None:
        return relabelled(row, mutant), False
    return _gather(name), True


def _gather(name: str) -> Bug:
    """Find what kills a mutant: vectors, cases for the clauses that no vector shows, or the test that it names."""
    mutant = mutants.load()[name]
    found = _finding(mutant)
    row = kills.described(mutant, vectors=_few(mutant, found))
    missing = set(mutant.clauses) - {clause for vector in found for clause in vector.clauses}
    if mutant.test:
        return row if search.killing_test(mutant) else _with(row, test="")
    cases = _cases(mutant, missing) if missing else ()
    if found or not cases:
        return _with(row, cases=cases)
    calls, seeds = _calls(mutant, cases[0].check)
    return _with(row, cases=cases, calls=calls, seeds=seeds)


def relabelled(row: Bug, mutant: Mutant) -> Bug:
    """Return a row with the mutant's current description from the catalogue."""
    about = kills.described(mutant)
    return _with(row, **{name: getattr(about, name) for name in ("effect", "protocol", "kind", "source")})


def _with(row: Bug, **evidence: Any) -> Bug:
    return Bug(**{**vars(row), **evidence})


@cache
def _files() -> Sequence[VectorFile]:
    """Return the files of all vectors."""
    return store.load_all()


@cache
def _vectors() -> Mapping[str, Vector]:
    """Return all vectors by id."""
    return {vector.id: vector for file in _files() for vector in file.vectors}


@cache
def _flags() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Return, for each mutant that flags name, the flags of each vector."""
    found: dict[str, dict[str, set[str]]] = {}
    for file in _files():
        for vector in file.vectors:
            for flag in vector.flags:
                for name in file.flags[flag].mutants:
                    found.setdefault(name, {}).setdefault(vector.id, set()).add(f"{file.name}/{flag}")
    return {name: {id: frozenset(flags) for id, flags in own.items()} for name, own in found.items()}


def failing(name: str, vectors: Iterable[Vector]) -> list[Vector]:
    """Return the vectors that fail on a mutant when each is asked alone, in this process.

    All vectors are first judged one after another. Those that fail are judged again alone, because a bug may keep state
    from one request to the next; the first one was alone already.
    """
    given = list(vectors)
    with mutants.planted(name):
        suspects = [vector for vector in given if _fails(vector)]
    return [vector for vector in suspects if vector is given[0] or _fails_alone(name, vector)]


def _fails_alone(name: str, vector: Vector) -> bool:
    with mutants.planted(name):
        return _fails(vector)


def _fails(vector: Vector) -> bool:
    """Return whether a vector fails on a fresh adapter, with the mutant that is currently active."""
    connection = DirectConnection(reference.build().answer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return judge.judge(connection, greet(connection.ask), vector).failed
        except (AdapterUnusable, AdapterBroken):
            return False


def _few(mutant: Mutant, found: Sequence[Vector]) -> tuple[str, ...]:
    """Return a few of the vectors that kill a mutant.

    Together they cover all clauses and flags of the mutant that occur in any of them. Within the limit, they also cover
    as many operations, outcomes and moduli as possible. Small vectors come first.
    """
    flags = _flags().get(mutant.name, {})
    must = {v.id: {*set(v.clauses) & set(mutant.clauses), *flags.get(v.id, ())} for v in found}
    may = {v.id: {v.operation, (v.operation, v.result is None), (v.operation, v.params.get("q"))} for v in found}
    ordered = sorted(found, key=_size)
    needed = _cover(ordered, must, len(ordered))
    return tuple(needed + _cover(ordered, may, _MOST_VECTORS - len(needed), needed))


def _cover(
    ordered: Sequence[Vector], has: Mapping[str, Collection[Any]], most: int, given: Sequence[str] = ()
) -> list[str]:
    """Return ids of at most `most` vectors that together cover all marks; among equals, the first vector is chosen."""
    open_, found = {mark for marks in has.values() for mark in marks}, list[str]()
    for id in given:
        open_ -= set(has[id])
    while open_ and len(found) < most:
        best = max(ordered, key=lambda vector: len(open_ & set(has[vector.id])))
        found.append(best.id)
        open_ -= set(has[best.id])
    return found


def _size(vector: Vector) -> int:
    return len(json.dumps(vector.as_json()))


def _finding(mutant: Mutant) -> list[Vector]:
    """Return vectors that kill a mutant, from the vectors meant to kill it and a few others of each operation.

    If none of them kills it, all vectors that call the edited code are tried.
    """
    meant, others = search.parted(mutant, _files())
    wanted = {code for part in mutant.parts or (mutant.name,) for code in _codes(mutants.load()[part])}
    calling = [vector for vector in others if not wanted.isdisjoint(_called()[vector.id])]
    first = {vector.id for vector in (*meant, *_spread(calling))}
    found = failing(mutant.name, [vector for id, vector in _vectors().items() if id in first])
    return found or failing(mutant.name, [vector for vector in calling if vector.id not in first])


def _spread(vectors: Iterable[Vector]) -> Iterator[Vector]:
    """Yield at most `_TRIED` vectors for each operation and kind of outcome, from small to large."""
    groups: dict[tuple[str, bool], list[Vector]] = {}
    for vector in sorted(vectors, key=_size):
        groups.setdefault((vector.operation, vector.result is None), []).append(vector)
    for group in groups.values():
        yield from group[:: -(-len(group) // _TRIED)]


@cache
def _called() -> Mapping[str, frozenset[CodeType]]:
    """Return the functions of the reference that each vector calls."""
    mutants.load()
    connection = DirectConnection(reference.build().answer)
    caps = greet(connection.ask)
    found = {}
    for id, vector in _vectors().items():
        mutants.forget()
        calls = set[CodeType]()
        sys.setprofile(_recorder(calls))
        try:
            judge.judge(connection, caps, vector)
        finally:
            sys.setprofile(None)
        found[id] = frozenset(calls)
    return found


def _recorder(calls: set[CodeType]) -> Callable[[FrameType, str, Any], None]:
    def record(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            calls.add(frame.f_code)

    return record


def _codes(mutant: Mutant) -> set[CodeType]:
    """Return the functions that a mutant edits; empty if it edits something else."""
    return {code for edit in mutant.edits for code in _functions(edit.edited())}


def _functions(value: Any) -> Iterator[CodeType]:
    """Yield the code of a function, through all wrappers, and of all methods of a class."""
    if isinstance(value, type):
        for member in vars(value).values():
            if not isinstance(member, type):
                yield from _functions(member)
        return
    for wrapper, inner in ((property, "fget"), (functools.cached_property, "func")):
        value = getattr(value, inner) if isinstance(value, wrapper) else value
    code = getattr(inspect.unwrap(getattr(value, "__func__", value)), "__code__", None)
    if code is not None:
        yield code


class PlantedConnection(DirectConnection):
    """The reference in this process, mutated only while it answers, so that checks compare with the unmodified one."""

    def __init__(self, name: str) -> None:
        with mutants.planted(name):
            adapter = reference.build()

        def answer(body: Any) -> dict[str, Any]:
            with mutants.planted(name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return adapter.answer(body)

        super().__init__(answer)


def again(name: str, case: Case) -> bool:
    """Return whether a stored case still fails on a mutant."""
    connection: Connection = ProcessConnection(search.planted_command(name)) if case.alone else PlantedConnection(name)
    try:
        return repros.judge(connection, case.check, repros.restored(case.draws)) is not None
    except AdapterUnusable:
        return case.check == HELLO_CHECK
    except (Declined, UsageError):
        return False
    finally:
        connection.close()


def _cases(mutant: Mutant, clauses: Collection[str]) -> tuple[Case, ...]:
    """Return cases that show some clauses of a mutant, and a few more cases with other operations.

    Every check first draws few cases, and draws many only if those show no clause.
    """
    connection = ProcessConnection(search.planted_command(mutant.name))
    try:
        caps = greet(connection.ask)
        return tuple(_found_cases(connection, caps, mutant.name, clauses))
    except AdapterUnusable:
        return (Case(HELLO_CHECK, [], ()),) if set(CHECKS[HELLO_CHECK].clauses) & set(clauses) else ()
    finally:
        connection.close()


def _found_cases(
    connection: ProcessConnection, caps: Capabilities, name: str, clauses: Collection[str]
) -> Iterator[Case]:
    deciding = [check for check in CHECKS.values() if set(check.clauses) & set(clauses) and check.runs_on(caps)]
    open_, met = set(clauses), set[tuple[str, ...]]()
    for settings in (Settings(_FEW), Settings(_MANY), Settings(_MANY, 1)):
        for check in deciding:
            besides = settings.cases == _FEW and check.operations not in met and len(met) < _MOST_CASES
            if not besides and open_.isdisjoint(check.clauses):
                continue
            failure = run_check(connection, caps, check, settings).failure
            case = _stored(name, check, failure, caps) if failure else None
            if case:
                yield case
                open_ -= set(check.clauses)
                met.add(check.operations)


def _calls(mutant: Mutant, check: str) -> tuple[int, int]:
    """Return the median number of requests until a check fails on a mutant, and the number of seeds for which it fails.

    For a seed without a failure, all its requests count.
    """
    if check == HELLO_CHECK:
        return 1, SEEDS
    connection = search.Counting(search.planted_command(mutant.name))
    try:
        caps, counts, failed = greet(connection.ask), list[int](), 0
        for seed in range(SEEDS):
            connection.calls = 0
            failed += first_failure(connection, caps, CHECKS[check], Settings(CASES, seed))
            counts.append(connection.calls)
    finally:
        connection.close()
    return int(statistics.median(counts)), failed


def _stored(name: str, check: Check, failure: Failure, caps: Capabilities) -> Case | None:
    """Return a failure as a case that the drawn values can replay; None if the replay does not fail."""
    draws = repros.plain(failure.draws)
    try:
        draws = json.loads(json.dumps(draws))
    except (TypeError, ValueError):
        return None
    needs = tuple(dict.fromkeys(map(_frozen, (_need(e.request, caps) for e in failure.transcript))))
    kept = tuple(Need(**json.loads(need)) for need in needs if need)
    cases = (Case(check.id, draws, kept, alone) for alone in (False, True))
    return next((case for case in cases if again(name, case)), None)


def _frozen(need: Need | None) -> str:
    return json.dumps({"params": {}, **need.as_json()}) if need else ""


def _need(request: Request, caps: Capabilities) -> Need | None:
    """Return what a request needs of an adapter; None if every adapter can be asked."""
    if isinstance(request, RawLine) or request.op not in caps.operations:
        return None
    params = {name: request.params[name] for name in RANGED if name in request.params and name != "x"}
    party = f"{request.params.get('protocol')}.{request.params.get('role')}" if request.op == _NEW else None
    return Need(request.op, params, _grade(request), repros.inside(caps, request), party)


def _grade(request: Request) -> str | None:
    """Return the randomness grade that a request assumes."""
    if request.rand:
        return "seeded" if set(request.rand) == {_SEED} else "explicit"
    return None if request.op not in DRAWING else "none"


def faults(bug: Bug, mutant: Mutant) -> Iterator[str]:
    """Yield the parts of the evidence for a bug that no longer hold; nothing if the row is correct."""
    known = _vectors()
    about = kills.described(mutant)
    changed = [name for name in ("clauses", "parts", "test") if getattr(bug, name) != getattr(about, name)]
    yield from (f"{name} is {getattr(bug, name)}, must be {getattr(about, name)}" for name in changed)
    yield from (f"there is no vector {id}" for id in bug.vectors if id not in known)
    yield from (f"vector {id} passes" for id in bug.vectors if id in known and not _fails_alone(bug.name, known[id]))
    for case in bug.cases:
        if case.check not in CHECKS:
            yield f"there is no check {case.check}"
        elif not again(bug.name, case):
            yield f"the stored case of {case.check} passes"
    if bug.found == DRAWN and not bug.seeds:
        yield "the median of the requests is missing"
    if not mutant.test:
        shown = {clause for id in bug.vectors if id in known for clause in known[id].clauses}
        shown |= {clause for case in bug.cases if case.check in CHECKS for clause in CHECKS[case.check].clauses}
        yield from (f"nothing shows that {clause} is broken" for clause in bug.clauses if clause not in shown)
    elif not _is_test(mutant.test):
        yield f"there is no test {mutant.test}"
    flags = _flags().get(bug.name, {})
    named = {flag for of_vector in flags.values() for flag in of_vector}
    yield from (
        f"no vector with {flag} finds it" for flag in named - {f for id in bug.vectors for f in flags.get(id, ())}
    )


def idle_flags(file: VectorFile, table: Mapping[str, Bug]) -> list[str]:
    """Return the flags of a file that name no mutant, or a mutant for which the table has no vector with the flag."""
    return [name for name in file.flags if not _shows(file, name, table)]


def _shows(file: VectorFile, name: str, table: Mapping[str, Bug]) -> bool:
    flagged = {vector.id for vector in file.vectors if name in vector.flags}
    named = file.flags[name].mutants
    return bool(named) and all(mutant in table and flagged & set(table[mutant].vectors) for mutant in named)


def _is_test(named: str) -> bool:
    """Return whether the checkout contains a test, given as ``file::name``."""
    file, _, name = named.partition("::")
    source = resources.root("spec").parent / file
    return source.is_file() and bool(re.search(rf"^def {re.escape(name)}\(", source.read_text(encoding="utf-8"), re.M))
