"""The command ``secagg-spec vectors``: lists the test vectors, runs them against an adapter, writes their files."""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from secagg_spec.commands import opening
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import as_file, counted, pasted, relative, shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.running import defaults
from secagg_spec.conformance.vectors import store
from secagg_spec.conformance.vectors.base import Vector, VectorFile, only
from secagg_spec.conformance.vectors.judge import PASS, UNDECLARED, Outcome, run
from secagg_spec.errors import UsageError

_SHOWN = 300


def main(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if options.regenerate:
        return _regenerate(options)
    files = _chosen(options)
    if not options.target and not options.adapter:
        _list(files)
        return 0
    named = opening.connections(options.target, options.adapter, options.timeout, options.start_timeout)
    codes = [_judge(name, connection, files, options) for name, connection in named]
    return next((code for code in (3, 1, 0) if code in codes), 4)


def _regenerate(options: argparse.Namespace) -> int:
    if not (store.folder().parents[1] / "pyproject.toml").is_file():
        raise UsageError("--regenerate needs a checkout")
    files = store.regenerated(store.folder())
    changed = store.renew(files, store.folder()) if options.renew else {}
    written = store.write(files, store.folder(), changed)
    for old, new in changed.items():
        print(f"{old} is now {new}")
    for path in written:
        print(path.relative_to(store.folder().parents[1]))
    return 0


def _chosen(options: argparse.Namespace) -> list[VectorFile]:
    files = [store.load(options.file)] if options.file else store.load_all()
    kept = [replace(file, vectors=[v for v in file.vectors if _matches(v, options.pattern)]) for file in files]
    if not any(file.vectors for file in kept):
        raise UsageError(f"-k {options.pattern}: no vector has this in its id, clauses, flags or operation")
    return [file for file in kept if file.vectors]


def _matches(vector: Vector, pattern: str | None) -> bool:
    names = (vector.id, *vector.clauses, *vector.flags, vector.operation)
    return pattern is None or any(fnmatch.fnmatch(name.lower(), f"*{pattern.lower()}*") for name in names)


def _list(files: Sequence[VectorFile]) -> None:
    for file in files:
        valid = sum(vector.result is not None for vector in file.vectors)
        head = f"{file.name + '.json':<21} {counted(len(file.vectors), 'vector')}: {valid} with a result"
        print(shown(f"{head}, {len(file.vectors) - valid} to be refused   {file.covers}"))
    total = sum(len(file.vectors) for file in files)
    clauses = {clause for file in files for vector in file.vectors for clause in vector.clauses}
    print(f"{counted(total, 'vector')} for {counted(len(clauses), 'clause')}")


def _judge(
    name: str, connection: ProcessConnection | str, files: Sequence[VectorFile], options: argparse.Namespace
) -> int:
    """Run the vectors against one implementation, print the results, and return the exit code."""
    if isinstance(connection, str):
        print(f"{name}: not on this machine: {connection}")
        return 4
    try:
        caps = greet(connection.ask)
        found = {file.name: list(run(connection, caps, file.vectors)) for file in files}
    except AdapterUnusable as unusable:
        print(shown(f"{name}: the adapter could not be used: {unusable}"))
        return 3
    finally:
        connection.close()
    print(shown(f"{name}: {caps.name} {caps.version}"))
    for file in files:
        _print(file, found[file.name], _again(name, connection, options))
    _print_untouched(files, found)
    outcomes = [outcome for of_file in found.values() for outcome in of_file]
    print(_counts(f"{name}: {counted(len(outcomes), 'vector')}", outcomes))
    ran = any(outcome.verdict != UNDECLARED for outcome in outcomes)
    return 1 if any(outcome.failed for outcome in outcomes) else 0 if ran else 4


def _untouched(outcomes: Sequence[Outcome]) -> bool:
    """Return whether no vector of a file was run."""
    return all(outcome.verdict == UNDECLARED for outcome in outcomes)


def _print_untouched(files: Sequence[VectorFile], found: Mapping[str, Sequence[Outcome]]) -> None:
    names = [shown(file.name) for file in files if _untouched(found[file.name])]
    if names:
        print(f"  of {counted(len(names), 'file')} nothing is declared: {', '.join(names)}")


def _again(name: str, connection: ProcessConnection, options: argparse.Namespace) -> str:
    """Return what follows a vector's id in the command that judges it again (CNF-74)."""
    file = ["--file", as_file(str(options.file))] if options.file else []
    words = [*file, *defaults.waits(options.timeout, options.start_timeout)]
    if options.target:
        return pasted([*words, "--target", name])
    return f"{pasted([*words, '--'])} {relative(connection.command)}"


def _print(file: VectorFile, outcomes: Sequence[Outcome], again: str) -> None:
    if _untouched(outcomes):
        return
    print(_counts(f"  {shown(file.name) + '.json':<21} {counted(len(outcomes), 'vector')}", outcomes))
    for outcome in outcomes:
        if outcome.failed:
            print("\n".join(map(shown, _failure(file, outcome))))
            print(f"         again:     secagg-spec vectors -k {outcome.vector.id} {again}")


def _counts(head: str, outcomes: Sequence[Outcome]) -> str:
    kinds = Counter("FAIL" if outcome.failed else outcome.verdict for outcome in outcomes)
    parts = [f"{kinds[PASS]} passed", f"{kinds['FAIL']} failed", f"{kinds[UNDECLARED]} not declared"]
    unchecked = sum(outcome.reason_unchecked for outcome in outcomes)
    parts += [f"{unchecked} for a reason that was not checked"] if unchecked else []
    return f"{head}: {', '.join(parts)}"


def _failure(file: VectorFile, outcome: Outcome) -> list[str]:
    vector = outcome.vector
    lines = [f"FAIL     {vector.id}   {outcome.verdict}   [{', '.join(outcome.clauses or vector.clauses)}]"]
    lines += [f"         {outcome.message}"]
    lines += [f"         case:      {vector.comment}"]
    suspected = {} if outcome.clauses else only({name: file.flags[name] for name in vector.flags})
    for name, flag in suspected.items():
        lines.append(f"         suggests:  {name} ({flag.bug_type}): {flag.description} ({flag.effect})")
    lines.append(f"         answer:    {_short(outcome.answer) if outcome.answer else 'none'}")
    lines.append(f"         expected:  {_expected(vector)}")
    return lines


def _expected(vector: Vector) -> str:
    if vector.result is not None:
        return _short({"result": vector.result})
    return f"reject with {' or '.join(vector.reject)}"


def _short(body: Mapping[str, Any]) -> str:
    text = json.dumps(body)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
