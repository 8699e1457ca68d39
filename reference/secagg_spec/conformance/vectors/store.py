"""The files in ``spec/vectors``: how they are written, read and refused, and the index of their ids."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from secagg_spec import resources, schemas, system
from secagg_spec.conformance.adapter import files, results
from secagg_spec.conformance.adapter.capabilities import POLICIES, listed
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.conformance.checks.scripts import same_parties
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.conformance.vectors import base
from secagg_spec.conformance.vectors.base import RENEWED, Flag, Vector, VectorFile, read_pairs, read_renewed, renewed
from secagg_spec.conformance.vectors.entries import MEMBERS
from secagg_spec.errors import UsageError
from secagg_spec.terminal import Progress

SCHEMA = "secagg-spec-vectors/1"
LICENSE = "CC0-1.0"
GENERATOR_VERSION = 1
INDEX = "ids.txt"
FINDINGS = "findings"
WITHDRAWN = "withdrawn"
folder = base.folder
_HEAD = """# Every id that a vector has or had, with a digest of its request and its outcome. Lines are only added.
# A vector that proves wrong is taken out of its file, and its digest here becomes the word withdrawn. One that changed
# with the text has a new id, which renewed.txt gives.
"""
_RENEWED_HEAD = """\
# The vectors whose request or outcome changed with the text: their first id, and the id that they have now. The ids
# that they had before are withdrawn in ids.txt.
# `secagg-spec vectors --regenerate --renew` adds lines; the reasons are written here by hand.
"""


def text_of(file: VectorFile) -> str:
    """Return the text of a vector file; a lone surrogate, which UTF-8 does not have, stands as JSON escapes it."""
    body = {
        "schema": SCHEMA,
        "license": LICENSE,
        "generator_version": GENERATOR_VERSION,
        "covers": file.covers,
        "flags": {name: flag.as_json() for name, flag in file.flags.items()},
        "vectors": [vector.as_json() for vector in file.vectors],
    }
    text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def load_all(place: Path | None = None) -> list[VectorFile]:
    """Return the vectors of every file in a folder, by default the folder of the text.

    Raises
    ------
    UsageError
        A file cannot be used, or two files have the same id.
    """
    vector_files = [load(path, validated=place is not None) for path in _paths(place or folder())]
    seen: dict[str, str] = {}
    for file in vector_files:
        for vector in file.vectors:
            if vector.id in seen:
                raise UsageError(f"{file.name}.json: the id {vector.id!r} stands in {seen[vector.id]}.json too")
            seen[vector.id] = file.name
    return vector_files


def _paths(place: Path) -> list[Path]:
    """Return the files of vectors in a folder."""
    return [path for path in sorted(place.glob("*.json")) if path.name != "schema.json"]


def load(path: Path, *, validated: bool = True) -> VectorFile:
    """Return the vectors of one file.

    A test ensures that the kit's own files fit the schema, and their results the operations. They are read at each
    start, and are therefore not `validated` again unless they cannot be read.

    Raises
    ------
    UsageError
        The file is absent, is not JSON, breaks the schema, names an operation, clause, flag, code or policy that does
        not exist, has a result of another form than that of its operation, or has an id twice. The message is one line.
    """
    body = files.with_schema(path, files.read_json(path), SCHEMA)
    if validated:
        _validate(path, body)
    try:
        file = VectorFile(path.stem, body["covers"], {name: _flag(flag) for name, flag in body["flags"].items()})
        file.vectors.extend(map(base.vector_of, body["vectors"]))
    except (AttributeError, LookupError, TypeError, ValueError):
        _validate(path, body)
        raise
    for fault in chain(_faults(file), _faults_of_form(file) if validated else ()):
        raise UsageError(f"{path}: {fault}")
    return file


def _validate(path: Path, body: Mapping[str, Any]) -> None:
    """Refuse a file that breaks the schema."""
    for where, fault in schemas.faults(body, _schema()):
        raise UsageError(f"{path}: {_place(body, where)}{fault}")


@cache
def _schema() -> Mapping[str, Any]:
    return schemas.load(folder() / "schema.json")


def _flag(body: Mapping[str, Any]) -> Flag:
    return Flag(body["bug_type"], body["description"], body["effect"], body["clause"], tuple(body["mutants"]))


def _place(body: Mapping[str, Any], where: Sequence[str | int]) -> str:
    """Return the place of a fault, with the id of a vector in place of its number."""
    parts = [str(part) for part in where]
    if len(where) > 1 and where[0] == "vectors" and isinstance(where[1], int):
        entry = body["vectors"][where[1]]
        name = entry.get("id") if isinstance(entry, dict) else None
        parts[:2] = [f"vector {name!r}" if isinstance(name, str) else f"vector number {where[1] + 1}"]
    return "".join(f"{part}: " for part in parts)


def _faults(file: VectorFile) -> Iterator[str]:
    """Yield the faults that the schema cannot express."""
    clauses, seen = resources.clauses(), set[str]()
    for name, flag in file.flags.items():
        if flag.clause not in clauses:
            yield f"flag {name!r}: there is no clause {flag.clause!r} in the text"
    for vector in file.vectors:
        unknown = {
            "operation": [vector.operation] if vector.operation not in OPERATIONS else [],
            "clause": [clause for clause in vector.clauses if clause not in clauses],
            "flag": [flag for flag in vector.flags if flag not in file.flags],
            "reject code": [code for code in vector.reject if code not in ALL_CODES],
        }
        for kind, names in unknown.items():
            for name in names:
                yield f"vector {vector.id!r}: there is no {kind} {name!r}"
        for name, choice in vector.policy.items():
            if choice not in POLICIES.get(name, ()):
                given = f"{schemas.shown(name)} = {schemas.shown(choice)}"
                yield f"vector {vector.id!r}: policy {given}: policies are {listed(POLICIES)}"
        if vector.id in seen:
            yield f"the id {vector.id!r} is given to two vectors"
        seen.add(vector.id)


def _faults_of_form(file: VectorFile) -> Iterator[str]:
    """Yield each result that has not the form of its operation's, which must have all members."""
    for vector in file.vectors:
        if vector.result is not None:
            fault = results.fault(vector.operation, vector.result, of_vector=vector.operation in MEMBERS)
            if fault:
                yield f"vector {vector.id!r}: {fault}"


def digest(vector: Vector) -> str:
    """Return a digest of what a vector asks and demands. Comments, clauses and flags are not part of it."""
    body = vector.as_json()
    meant = {name: body.get(name) for name in ("operation", "params", "rand", "policy", "result", "reject")}
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()[:32]


def read_index(place: Path) -> dict[str, str]:
    """Return the digest of each id that was ever assigned, or the word that marks a withdrawn id.

    Raises
    ------
    UsageError
        The file cannot be used, or is absent where there are vectors: ids that were withdrawn would come back.
    """
    if not (place / INDEX).is_file() and _paths(place):
        raise UsageError(f"{place / INDEX}: it is missing, and has every id that was given: put it back")
    return read_pairs(place / INDEX)


def index_faults(vectors: Iterable[Vector], index: Mapping[str, str]) -> Iterator[str]:
    """Yield each id that disappeared, came back, or changed its meaning."""
    found = {vector.id: digest(vector) for vector in vectors}
    for id, known in index.items():
        if known == WITHDRAWN and id in found:
            yield f"the id {id!r} was withdrawn; an id is never used again"
        elif known != WITHDRAWN and id not in found:
            yield f"the vector {id!r} disappeared; an id is permanent"
        elif known != WITHDRAWN and found[id] != known:
            yield f"the vector {id!r} changed its request or its outcome; give the new one a new id"


def renew(vector_files: Sequence[VectorFile], place: Path) -> dict[str, str]:
    """Give a new id to each vector whose request or outcome changed. Return the new ids by the old ones."""
    index, first = read_index(place), {now: old for old, now in read_renewed(place).items()}
    changed = {
        vector.id: next(id for id in (f"{first.get(vector.id, vector.id)}-{n}" for n in count(2)) if id not in index)
        for file in vector_files
        for vector in file.vectors
        if index.get(vector.id, WITHDRAWN) not in (WITHDRAWN, digest(vector))
    }
    for file in vector_files:
        file.vectors = [replace(vector, id=changed.get(vector.id, vector.id)) for vector in file.vectors]
    return changed


def _renewed_text(changed: Mapping[str, str], place: Path) -> str:
    """Return the list of renewed ids with each new one next to its first one, below the comments of the file."""
    before, path = read_renewed(place), place / RENEWED
    first = {now: old for old, now in before.items()}
    lines = {**before, **{first.get(old, old): new for old, new in changed.items()}}
    text = path.read_text(encoding="utf-8") if path.is_file() else _RENEWED_HEAD
    head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    return head + "".join(f"{old} {now}\n" for old, now in lines.items())


def index_text(vectors: Iterable[Vector], index: Mapping[str, str]) -> str:
    """Return the index with the new ids appended."""
    lines = {**index, **{vector.id: digest(vector) for vector in vectors if vector.id not in index}}
    return _HEAD + "".join(f"{id} {known}\n" for id, known in lines.items())


def regenerated(place: Path) -> list[VectorFile]:
    """Return all vectors of a folder: their requests with the results that the reference gives, and current flags.

    Raises
    ------
    UsageError
        The reference refuses a request or a step that has a result, takes one that must be refused, or blames others.
        Or the result changed of a vector that lists its steps.
    """
    return [
        VectorFile(
            file.name, file.covers, base.flags_of(file.name) or file.flags, list(map(_asked_again, file.vectors))
        )
        for file in Progress().follow(load_all(place), lambda file: file.name)
    ]


def _asked_again(vector: Vector) -> Vector:
    """Return a vector with the result that the reference gives now."""
    given = base.ask(vector.operation, vector.params, vector.rand)
    answer = {name: value for name, value in given.items() if name != "id"}
    if vector.result is None:
        _refused_as(vector, answer, {"reject": vector.reject})
        return vector
    if "result" not in answer:
        raise UsageError(f"the vector {vector.id!r} has a result, and the reference answers {schemas.shown(answer)}")
    result, name = answer["result"], MEMBERS.get(vector.operation)
    if name is not None:
        result = {**result, name: _entries(vector, result[name], vector.result[name])}
    if vector.operations and result != vector.result:
        raise UsageError(f"the result of {vector.id!r} changed, which lists its steps: withdraw it and promote another")
    return replace(vector, result=result)


def _entries(vector: Vector, got: Sequence[Mapping[str, Any]], want: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the entries of an answer; those of refused steps say what is demanded."""
    if len(got) != len(want):
        raise UsageError(f"the vector {vector.id!r} has {len(want)} entries, and the reference answers {len(got)}")
    for mine, right in zip(got, want, strict=True):
        if "reject" in right:
            _refused_as(vector, mine, right)
        elif "reject" in mine:
            raise UsageError(f"the vector {vector.id!r} has a step that the reference refuses: {schemas.shown(mine)}")
    return [right if "reject" in right else mine for mine, right in zip(got, want, strict=True)]


def _refused_as(vector: Vector, answer: Mapping[str, Any], demand: Mapping[str, Any]) -> None:
    """Refuse an answer that does not have one of the demanded codes, or blames others than demanded."""
    reject, codes = answer.get("reject", {}), demand["reject"]
    if reject.get("code") not in codes:
        wanted, shown = " or ".join(codes), schemas.shown(answer)
        raise UsageError(f"the vector {vector.id!r} demands {wanted}, and the reference answers {shown}")
    blamed = reject.get("blamed", [])
    if "blamed" in demand and not same_parties(blamed, demand["blamed"]):
        wanted, shown = schemas.shown(demand["blamed"]), schemas.shown(blamed)
        raise UsageError(f"the vector {vector.id!r} demands that {wanted} are blamed, and the reference blames {shown}")


def checked(file: VectorFile, path: Path) -> str:
    """Return the text of a vector file that can be read again.

    Raises
    ------
    UsageError
        It breaks the schema, names an operation, clause, flag, code or policy that does not exist, has a result of
        another form than that of its operation, or has an id twice.
    """
    text = text_of(file)
    _validate(path, json.loads(text))
    for fault in chain(_faults(file), _faults_of_form(file)):
        raise UsageError(f"{path}: {fault}")
    return text


def write(
    vector_files: Sequence[VectorFile], place: Path, changed: Mapping[str, str] = MappingProxyType({})
) -> list[Path]:
    """Write the vector files and the index into a folder. Return the paths that were written.

    The old ids of `changed`, which `renew` returns, are withdrawn, and the new ones noted next to the first ones.

    Raises
    ------
    UsageError
        A vector in the index disappeared or changed, or a file could not be read again. Nothing is written then.
    """
    vectors = [vector for file in vector_files for vector in file.vectors]
    index = {**read_index(place), **dict.fromkeys(changed, WITHDRAWN)}
    for fault in index_faults(vectors, index):
        raise UsageError(fault)
    texts = {path: checked(file, path) for file in vector_files for path in [place / f"{file.name}.json"]}
    texts[place / INDEX] = index_text(vectors, index)
    if changed:
        texts[place / RENEWED] = _renewed_text(changed, place)
    for path, text in texts.items():
        system.write_whole(path, text)
    renewed.cache_clear()
    return list(texts)
