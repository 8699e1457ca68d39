"""Find what kills a mutant: which vectors, which fuzzing checks, or its own test.

Vectors have fixed outcomes, so they run on the mutant in this process. Checks compare with the reference, so the
mutant runs in its own process (docs/decisions/0005-oracle-and-mutants.md). Several processes
search at the same time, each for one mutant.
"""

from __future__ import annotations

import atexit
import importlib.util
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import Capabilities, greet
from secagg_spec.conformance.adapter.connection import DirectConnection, ProcessConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Answer, Request
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants.catalogue import Mutant
from secagg_spec.conformance.running.runner import Settings, first_failure
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import judge, store
from secagg_spec.conformance.vectors.base import Vector, VectorFile

HELLO_CHECK = "adapter/hello"
"""The check that stands for an unusable hello, which ends every run."""
_FEW = 20


@dataclass(frozen=True)
class Kill:
    """What killed a mutant; if nothing did, the mutant is alive.

    `vectors` are ids of the vectors meant to kill it or, if none of these does, of other vectors. `checks` are the
    checks that failed, and `calls` is the number of requests until the first of them did (the median over the seeds).
    `test` is the test that failed; it is None if there is none or if tests cannot run.
    """

    mutant: Mutant
    vectors: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    calls: int = 0
    test: str | None = None

    @property
    def alive(self) -> bool:
        """Whether nothing killed the mutant."""
        return not (self.vectors or self.checks or self.test)


def hunt(chosen: Sequence[Mutant], cases: int, seeds: int, caps: Capabilities | None = None) -> Iterator[Kill]:
    """Yield, for each mutant, what kills it: vectors, the checks of its clauses, or the test that it names.

    With `caps`, only vectors and checks that apply to an adapter with these capabilities count, and tests do not.
    """
    _files.cache_clear()
    find = partial(_found, cases=cases, seeds=seeds, caps=caps)
    names = [mutant.name for mutant in chosen]
    workers = min(os.cpu_count() or 1, len(names))
    if workers < 2:
        yield from (Kill(mutant, *find(mutant.name)) for mutant in chosen)
        return
    with multiprocessing.Pool(workers, leave_signals) as pool:
        for mutant, kill in zip(chosen, pool.imap(find, names), strict=True):
            yield Kill(mutant, *kill)


def leave_signals() -> None:
    """Let only the first process handle an interrupt; it ends the other processes, and their adapters end with them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@cache
def _files() -> Sequence[VectorFile]:
    """Return all vectors, read once per process in a search."""
    return store.load_all()


_Found = tuple[tuple[str, ...], tuple[str, ...], int, str | None]


def _found(name: str, cases: int, seeds: int, caps: Capabilities | None) -> _Found:
    """Return the members of a `Kill` except the mutant, whose functions cannot be pickled."""
    mutant = mutants.load()[name]
    meant, others = parted(mutant, _files())
    found = killing_vectors(mutant, meant, caps) or killing_vectors(mutant, others, caps)
    checks, calls = killing_checks(mutant, cases, seeds, caps)
    return tuple(found), checks, calls, killing_test(mutant) if caps is None else None


def parted(mutant: Mutant, files: Sequence[VectorFile]) -> tuple[list[Vector], list[Vector]]:
    """Return the vectors that are meant to kill a mutant, by a clause or by a flag that names it, and all others."""
    parts: tuple[list[Vector], list[Vector]] = ([], [])
    for file in files:
        named = {name for name, flag in file.flags.items() if mutant.name in flag.mutants}
        for vector in file.vectors:
            other = named.isdisjoint(vector.flags) and set(mutant.clauses).isdisjoint(vector.clauses)
            parts[other].append(vector)
    return parts


def killing_vectors(mutant: Mutant, vectors: Sequence[Vector], caps: Capabilities | None = None) -> list[str]:
    """Return the ids of the vectors that fail on a mutant, in this process."""
    return [outcome.vector.id for outcome in failing_vectors(mutant, vectors, caps)]


def failing_vectors(mutant: Mutant, vectors: Sequence[Vector], caps: Capabilities | None = None) -> list[judge.Outcome]:
    """Return the outcomes of the failing vectors; with `caps`, only of vectors within the declaration."""
    meant = [vector for vector in vectors if caps is None or judge.covers(caps, vector)]
    with mutants.planted(mutant.name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection = DirectConnection(reference.build().answer)
        try:
            own = greet(connection.ask)
        except AdapterUnusable:
            return []
        return [outcome for outcome in judge.run(connection, own, meant) if outcome.failed]


def killing_checks(
    mutant: Mutant, cases: int, seeds: int, caps: Capabilities | None = None
) -> tuple[tuple[str, ...], int]:
    """Return the checks that fail on a mutant, and the median number of calls until one failed.

    All seeds share one process; shrinking and confirmation are left out. Every check first draws few cases, and the
    full number only if no check failed with few. After the first seed with a failing check, later seeds only count the
    calls until the first failure. An unusable hello ends every run. It counts as ``adapter/hello`` if the mutant breaks
    a clause of that check, and otherwise as no finding.
    """
    found: dict[str, None] = {}
    counts: list[int] = []
    connection = Counting(planted_command(mutant.name))
    try:
        for seed in range(seeds):
            connection.calls = 0
            met = _first_met(connection, mutant.clauses, cases, seed, caps, 1 if found else None)
            found |= dict.fromkeys(check for check, _ in met)
            counts += [calls for _, calls in met[:1]]
    finally:
        connection.close()
    return tuple(found), int(statistics.median(counts)) if counts else 0


def _first_met(
    connection: Counting, clauses: Collection[str], cases: int, seed: int, caps: Capabilities | None, most: int | None
) -> list[tuple[str, int]]:
    """Return at most `most` checks that fail with few cases; if none does, those that fail with all cases."""
    for settings in (Settings(min(_FEW, cases), seed), Settings(cases, seed)):
        met = list(islice(_failing(connection, clauses, settings, caps), most))
        if met or cases <= _FEW:
            return met
    return []


def shown_by_checks(mutant: Mutant, clauses: Collection[str], cases: int, seeds: int) -> set[str]:
    """Return the given clauses that a failing check decides; stop when all are decided.

    Most mutants need few cases, so each check first draws few, and the full number only if they do not suffice.
    """
    missing = set(clauses)
    connection = Counting(planted_command(mutant.name))
    try:
        for settings in (Settings(min(_FEW, cases)), *(Settings(cases, seed) for seed in range(seeds))):
            for check, _ in _failing(connection, missing, settings):
                missing -= set(CHECKS[check].clauses)
                if not missing:
                    return set(clauses)
    finally:
        connection.close()
    return set(clauses) - missing


def planted_command(name: str) -> list[str]:
    """Return the command that starts the reference with a mutant."""
    return [sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant", name]


class Counting(ProcessConnection):
    """A process that counts its requests."""

    calls = 0

    def ask(self, request: Request) -> Answer:
        """Send a request, and count it."""
        self.calls += 1
        return super().ask(request)

    def ask_raw(self, line: bytes, id: int | None) -> Answer:
        """Send a line, and count it."""
        self.calls += 1
        return super().ask_raw(line, id)


def _failing(
    connection: Counting, clauses: Collection[str], settings: Settings, declared: Capabilities | None = None
) -> Iterator[tuple[str, int]]:
    """Yield the checks that decide some of the clauses and fail, each with the number of calls so far."""
    if all(set(check.clauses).isdisjoint(clauses) for check in CHECKS.values()):
        return
    try:
        own = greet(connection.ask)
    except AdapterUnusable:
        if not set(CHECKS[HELLO_CHECK].clauses).isdisjoint(clauses):
            yield HELLO_CHECK, 1
        return
    met = declared or own
    caps = own if declared is None else replace(own, operations=_explicit(declared, own))
    for check in settings.chosen():
        if _decides(check, clauses, met, caps) and first_failure(connection, caps, check, settings):
            yield check.id, connection.calls


def _decides(check: Check, clauses: Collection[str], met: Capabilities, caps: Capabilities) -> bool:
    return not set(check.clauses).isdisjoint(clauses) and check.runs_on(met) and check.runs_on(caps)


def _explicit(declared: Capabilities, own: Capabilities) -> dict[str, dict[str, Any]]:
    """Return the adapter's declared operations with the reference's grades, as it draws only if a bug makes it draw."""
    operations = {}
    for name, entry in declared.operations.items():
        grades = {"randomness": own.grade(name)} if own.offers(name) else {}
        operations[name] = {**entry, "randomness": own.randomness, **grades}
    return operations


def killing_test(mutant: Mutant) -> str | None:
    """Return the test that a mutant names if it fails on the mutant; None if it passes or cannot run."""
    if not mutant.test or not can_test():
        return None
    return mutant.test if any(_fails(mutant, *flags) for flags in ((), ("--bare",))) else None


def _fails(mutant: Mutant, *flags: str) -> bool:
    tester = _tester(os.getpid(), *flags)
    assert tester.stdin is not None
    assert tester.stdout is not None
    tester.stdin.write(f"{mutant.name} {mutant.test}\n")
    tester.stdin.flush()
    return tester.stdout.readline() == "1\n"


@cache
def _tester(process: int, *flags: str) -> subprocess.Popen[str]:
    """Return the process that runs tests on mutants (`worker`) for calls from this process."""
    tester = subprocess.Popen(  # noqa: S603 - a module of this package
        [sys.executable, "-m", "secagg_spec.conformance.mutation.worker", *flags],
        cwd=checkout(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(_dismiss, tester)
    return tester


def _dismiss(tester: subprocess.Popen[str]) -> None:
    """End a process by closing its input."""
    with tester:
        pass


def can_test() -> bool:
    """Return whether this is a checkout with its tests, pytest is installed, and the system can fork."""
    return (checkout() / "tests").is_dir() and importlib.util.find_spec("pytest") is not None and hasattr(os, "fork")


def checkout() -> Path:
    """Return the folder of the checkout, if this is one."""
    return resources.root("spec").parent
