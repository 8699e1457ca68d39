"""The command ``secagg-spec promote``: turns a stored failure into a permanent vector."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import documents, resources, system
from secagg_spec.conformance.adapter.plain import clip
from secagg_spec.conformance.running import repros, suite
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.conformance.vectors import store
from secagg_spec.conformance.vectors.base import Flag, Vector, VectorFile, ask, flags_of
from secagg_spec.conformance.vectors.entries import MEMBERS, SCRIPTS, Refusal
from secagg_spec.conformance.vectors.entries import demanded as demanded_entries
from secagg_spec.errors import UsageError
from secagg_spec.schemas import shown

_PRESUPPOSED: Mapping[str, Mapping[str, str]] = {
    "mds.encode": {"mds.code": "vandermonde"},
    "mds.decode": {"mds.code": "vandermonde"},
    "lightsecagg.recover": {"mds.code": "vandermonde"},
    **{name: {"mds.code": "vandermonde"} for name in SCRIPTS},
    "quantizer.quantize": {"quantizer.rounding": "stochastic"},
    "quantizer.dequantize": {"quantizer.middle": "positive"},
}
_NEW, _STEP, _FREE, _AGAIN = "session.new", "session.step", "session.free", "session.again"
_SHOWN = 1000
_COVERS = "Cases in which implementations failed, found by the kit and kept."


def main(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    _check_names(options.id, options.clause)
    if options.comment == "":
        raise UsageError("--comment: the text is empty; without the option, the failure describes the case")
    stored, clauses = repros.load(options.repro), tuple(dict.fromkeys(options.clause))
    path = system.resolved(options.into or store.folder() / f"{store.FINDINGS}.json")
    listed = flags_of(path.stem) if _is_of_the_text(path) else {}
    if path.exists() and options.covers:
        raise UsageError(f"--covers is for a new file; {path} says what it is about")
    file = store.load(path) if path.exists() else VectorFile(path.stem, _covers(path, listed, options.covers))
    flags = _flags(path, file, listed, options.flag, clauses[0])
    request = _request(repros.both(options.repro)[0])
    vector = decided(stored, request, options.id, clauses, options.comment, tuple(flags))
    _refuse_foreign(clauses, vector.operation, stored["check"])
    _refuse_known(vector, [*store.load_all(), file])
    file.flags = listed or {**file.flags, **flags}
    file.vectors.append(vector)
    _write(file, path)
    outcome = f"reject with {' or '.join(vector.reject)}" if vector.reject else json.dumps(dict(vector.result or {}))
    print(f"{path}: added {vector.id} ({vector.operation}); the outcome is {clip(outcome, _SHOWN)}")
    return 0


def decided(
    stored: Mapping[str, Any],
    request: Mapping[str, Any],
    id: str,
    clauses: tuple[str, ...],
    comment: str | None,
    flags: tuple[str, ...],
) -> Vector:
    """Return the vector of a stored failure, with the outcome that the reference gives.

    Raises
    ------
    UsageError
        The reference cannot decide the case.
    """
    operation, params, rand = request["op"], request["params"], request.get("rand") or {}
    if operation not in OPERATIONS:
        raise UsageError(f"{operation!r} is not an operation of this kit")
    if OPERATIONS[operation][1] and set(rand) <= {"seed"}:
        raise UsageError(f"{operation} was asked without explicit randomness: the result is the implementation's own")
    answer, expected = ask(operation, params, rand), stored.get("expected_of_the_last_answer")
    reason = answer.get("reject", {}).get("message")
    text = (reason or stored["message"]) if comment is None else comment
    described = (id, clauses, flags, text, operation, params, rand)
    policy = _PRESUPPOSED.get(operation, {})
    codes = expected.get("reject") if isinstance(expected, dict) else None
    if codes is not None and not (isinstance(codes, list) and all(isinstance(code, str) for code in codes)):
        raise UsageError(f"the stored failure expects the reject {shown(codes)}; it must be a list of codes")
    demanded = None if codes is None else set(codes)
    if "result" in answer and operation in MEMBERS:
        return Vector(*described, _entries(answer["result"], MEMBERS[operation], demanded or set()), policy=policy)
    if "result" in answer and demanded is None:
        return Vector(*described, answer["result"], policy=policy)
    code = answer.get("reject", {}).get("code")
    if code is None or (demanded is not None and code not in demanded):
        raise UsageError(f"the reference answers {shown(answer)}, and the check expects {expected}")
    return Vector(*described, reject=tuple(sorted(demanded or {code})))


def _entries(result: Mapping[str, Any], name: str, codes: set[str]) -> dict[str, Any]:
    """Return the result of a script; a refused entry gets the codes that the check demands, if they match it."""
    found = {at: entry["reject"]["code"] for at, entry in enumerate(result[name]) if "reject" in entry}
    refused = {at: Refusal(codes if code in codes else {code}) for at, code in found.items()}
    return {name: demanded_entries(result[name], refused)}


def _check_names(id: str, clauses: list[str]) -> None:
    if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", id):
        raise UsageError(f"--id {id}: an id is made of lowercase letters and digits, in words joined by hyphens")
    unknown = [clause for clause in clauses if clause not in resources.clauses()]
    if unknown:
        raise UsageError(f"--clause {unknown[0]}: there is no such clause in the text")


def _request(path: Path) -> dict[str, Any]:
    """Return the single request in the file of a failure."""
    try:
        text = system.regular(path).read_text(encoding="utf-8-sig")
        lines = [documents.from_json(line) for line in text.splitlines() if line.strip()]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path}: a line is not JSON") from None
    requests = [line for line in lines if isinstance(line, dict) and line.get("op") != "hello"]
    if not requests or not all(map(_is_request, requests)):
        raise UsageError(f"{path}: it holds no request, or a request whose op, params or rand has the wrong type")
    if more := sorted({name for request in requests for name in request} - {"id", "op", "params", "rand"}):
        raise UsageError(f"{path}: a request has the member {shown(more[0])}, which no vector carries")
    if requests[0].get("op") == _NEW:
        return script(requests)
    if len(requests) != 1:
        raise UsageError(f"{path}: {len(requests)} requests, which may hold earlier answers; a vector has one request")
    return requests[0]


def _is_request(line: Mapping[str, Any]) -> bool:
    rand = line.get("rand")
    parts = (line.get("params"), {} if rand is None else rand)
    return isinstance(line.get("op"), str) and all(isinstance(part, dict) for part in parts)


def script(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Turn the steps of one session into one request, the script of that party, which a vector can hold.

    Raises
    ------
    UsageError
        The requests belong to several sessions, or are more than the opening of one, its steps and its end, or have
        members that a script does not carry. Or the text has no script for this party.
    """
    opening, *rest = requests
    handle = opening["params"].get("handle")
    if any(request["op"] == _AGAIN for request in rest):
        raise UsageError("the session has several rounds: a script has one, and a vector has one request")
    if any(request["op"] not in (_STEP, _FREE) or request["params"].get("handle") != handle for request in rest):
        raise UsageError("the requests are not those of one session: a vector has the steps of one party")
    if any(request["op"] == _FREE for request in rest[:-1]):
        raise UsageError("the session has requests after its end: that is no script, and a vector has one request")
    known = {_STEP: {"handle", "phase", "inbox"}, _FREE: {"handle"}, opening["op"]: {*OPERATIONS[opening["op"]][0]}}
    for request in requests:
        if more := sorted(set(request["params"]) - known[request["op"]]):
            raise UsageError(f"{request['op']} has the member {shown(more[0])}, which no script carries")
    given = opening["params"]
    name = f"{given.get('protocol')}.{given.get('role')}"
    operation = name.replace("-", "_")
    steps = [{"phase": r["params"].get("phase"), "inbox": r["params"].get("inbox")} for r in rest if r["op"] == _STEP]
    params = {"session": given.get("session"), "round": given.get("round"), "steps": steps}
    params.update({**_object(given, "numbers"), **_object(given, "setup")})
    if operation not in OPERATIONS or set(params) != set(OPERATIONS[operation][0]):
        raise UsageError(
            f"sessions of {name} have no script (spec/adapter.md, section 4), and a vector has one request"
        )
    return {"op": operation, "params": params, "rand": opening.get("rand") or {}}


def _object(params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = params.get(name)
    return value if isinstance(value, dict) else {}


def _refuse_foreign(clauses: Sequence[str], operation: str, failed: str) -> None:
    """Refuse a clause that neither the check that failed, nor any check or vector of the operation decides."""
    decides = suite.find(failed).clauses
    about = [check.clauses for check in suite.everything().values() if operation in check.operations]
    for clause in clauses:
        if not any(clause in decided for decided in (decides, *about)):
            said = f"nothing that is asked of {operation} decides it; {failed} decides {', '.join(decides)}"
            raise UsageError(f"--clause {clause}: {said}")


def _refuse_known(vector: Vector, files: list[VectorFile]) -> None:
    if vector.id in store.read_index(store.folder()):
        raise UsageError(f"--id {vector.id}: the id is in use, or was used before")
    for other in (known for file in files for known in file.vectors):
        if vector.id == other.id:
            raise UsageError(f"--id {vector.id}: the id is in use")
        if (vector.operation, vector.params, vector.rand) == (other.operation, other.params, other.rand):
            raise UsageError(f"the vector {other.id!r} asks the same")


def _covers(path: Path, listed: Mapping[str, Flag], given: str | None) -> str:
    """Return what a new file is about."""
    if listed and not given:
        raise UsageError(f"{path} is new, and flags.toml lists it: --covers says what it is about")
    return given or _COVERS


def _flags(
    path: Path, file: VectorFile, listed: Mapping[str, Flag], names: Sequence[str], clause: str
) -> dict[str, Flag]:
    """Return the flags of a new vector by their names: those that are given, or the one for findings."""
    if not listed:
        if names:
            raise UsageError(f"--flag {names[0]}: only files that spec/vectors/flags.toml lists have such flags")
        description, effect = "An implementation failed in this case.", "what the comment says"
        name = f"Found-{clause}"
        return {name: file.flags.get(name, Flag("FOUND", description, effect, clause, ()))}
    for name in names or [""]:
        if name not in listed:
            said = f"--flag {name}: there is no such flag" if name else "--flag is missing"
            raise UsageError(f"{said}; {path.name} has the flags of spec/vectors/flags.toml: {', '.join(listed)}")
    return {name: listed[name] for name in names}


def _is_of_the_text(path: Path) -> bool:
    """Return whether a path without links is in the folder of the text's vectors, whose files are `.json` files."""
    within = path.parent == store.folder().resolve()
    if within and path.suffix != ".json":
        raise UsageError(f"--into {path}: a file of vectors in this folder has a name that ends in .json")
    return within


def _write(file: VectorFile, path: Path) -> None:
    texts = {path: store.checked(file, path)}
    if _is_of_the_text(path):
        texts[path.parent / store.INDEX] = store.index_text(file.vectors, store.read_index(path.parent))
    try:
        for place, text in texts.items():
            system.write_whole(place, text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
