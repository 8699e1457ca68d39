"""What was promised with a version, and whether its number rose with what changed (CONTRIBUTING.md, "Versions").

    python -m tests.versions [--record]

compares the clauses, the vectors, the operations of the adapter protocol and the public functions with
``tests/released.json``, says what changed, and ends with 1 where a number has not risen. With ``--record`` it stores
what is there now. Before the first release only what others rely on already is stored: vectors and operations.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import secagg_spec
from secagg_spec import history
from secagg_spec.conformance.vectors import store
from secagg_spec.resources import root

RECORD = Path(__file__).with_name("released.json")
LAYERS = ("arithmetic", "crypto", "protocols", "selection", "flower")
MODULES = ("errors", "events", "conformance.api", "conformance.sdk.secagg_adapter")
"""What programs of others import: these packages and these modules."""
BY_FLOWER = {f"secagg_spec.flower.{name}" for name in ("manager", "mod", "records", "workflow")}
"""Modules that need Flower, whose names and arguments are those of Flower's own."""
Record: TypeAlias = dict[str, Any]
Number: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """What is not as it was: the part, the thing, what happened to it, and whether somebody relied on what it was."""

    part: str
    thing: str
    what: str
    breaks: bool

    def __str__(self) -> str:
        return f"{self.part}: {self.thing} {self.what}"


# ------------------------------------------------------------------------------------------------- what is there


def present(*, released: bool) -> Record:
    """Return what is there now; before the first release, what others rely on already."""
    found: Record = {"version": secagg_spec.__version__, "adapter": adapter_number(), "vectors": vectors()}
    found["operations"] = operations(
        json.loads((root("spec") / "operations.json").read_text(encoding="utf-8"))["$defs"]
    )
    if released:
        found |= {"clauses": clauses(history.load()), "functions": functions()}
    return found


def adapter_number() -> str:
    """Return the version of the adapter protocol."""
    numbers = json.loads((root("spec") / "operations.json").read_text(encoding="utf-8"))["version"]
    return ".".join(map(str, numbers))


def vectors() -> dict[str, Any]:
    """Return how many vectors have an id, and a digest of all ids with their digests: `ids.txt` only grows."""
    lines = _lines()
    return {"count": len(lines), "digest": _digest(lines)}


def _lines() -> list[str]:
    text = (store.folder() / store.INDEX).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def operations(definitions: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the members of each request and result, by their path, with a digest of what they may be."""
    return {name: dict(_flat(one)) for name, one in definitions.items()}


def _flat(schema: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    parts = schema.get("properties", {})
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required", "description")}
    yield at, _digest(rest)
    for name, part in parts.items():
        yield from _flat(part, f"{at}.{name}" + "?" * (name not in schema.get("required", ())))


def clauses(book: history.History) -> dict[str, str]:
    """Return a digest of the words of each clause that is not withdrawn."""
    return {id: states[-1].words for id, states in book.clauses.items() if not states[-1].withdrawn}


def functions() -> dict[str, str]:
    """Return the arguments of each public function, class and method: names, ``=`` for those that may be left out."""
    found: dict[str, str] = {}
    for module in _modules():
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            place = f"{module.__name__.removeprefix('secagg_spec.')}.{name}"
            if inspect.isfunction(value):
                found[place] = arguments(inspect.signature(value))
            elif inspect.isclass(value):
                found[place] = (
                    arguments(inspect.signature(value, follow_wrapped=False)) if _made_by_callers(value) else "*"
                )
                for method, body in vars(value).items():
                    if inspect.isfunction(body) and not method.startswith("_"):
                        found[f"{place}.{method}"] = arguments(inspect.signature(body))
    return found


def _made_by_callers(kind: type) -> bool:
    return not issubclass(kind, BaseException) and not getattr(kind, "_is_protocol", False)


def _modules() -> Iterator[ModuleType]:
    for layer in LAYERS:
        package = importlib.import_module(f"secagg_spec.{layer}")
        yield package
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if info.name not in BY_FLOWER:
                yield importlib.import_module(info.name)
    yield from (importlib.import_module(f"secagg_spec.{name}") for name in MODULES)


def arguments(signature: inspect.Signature) -> str:
    """Return the arguments of a signature as words: ``a b= * c d=``."""
    words: list[str] = []
    named = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not named:
            named = True
            words.append("*")
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        named |= stars == "*"
        words.append(f"{stars}{one.name}" + "=" * (one.default is not one.empty))
    return " ".join(words)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


# ------------------------------------------------------------------------------------------------- what changed


def changes(old: Record, new: Record, lines: Sequence[str]) -> list[Change]:
    """Return what changed between two records; `lines` are the ids of the newer vectors with their digests."""
    found = list(_of_vectors(old["vectors"], lines))
    found += _of_names("operations", old["operations"], new["operations"], _same_members)
    found += _of_names("clauses", old.get("clauses", {}), new.get("clauses", {}), str.__eq__)
    found += _of_names("functions", old.get("functions", {}), new.get("functions", {}), takes_the_same)
    return found


def _of_vectors(old: Mapping[str, Any], lines: Sequence[str]) -> Iterator[Change]:
    count = old["count"]
    if _digest(list(lines[:count])) != old["digest"]:
        yield Change("vectors", f"one of the first {count}", "changed or was withdrawn", True)
    if len(lines) > count:
        yield Change("vectors", f"{len(lines) - count} vectors", "came", False)


def _of_names(part: str, old: Mapping[str, Any], new: Mapping[str, Any], still: Any) -> Iterator[Change]:
    if not old:
        return
    for name in sorted({*old, *new}):
        if name not in new:
            yield Change(part, name, "is gone", True)
        elif name not in old:
            yield Change(part, name, "came", False)
        elif old[name] != new[name]:
            yield Change(part, name, "changed", not still(old[name], new[name]))


def _same_members(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return whether a request or result has all its members as they were, and new ones that may be left out."""
    came = set(new) - set(old)
    return all(new.get(at) == digest for at, digest in old.items()) and all("?" in at for at in came)


def takes_the_same(old: str, new: str) -> bool:
    """Return whether a function takes every call that it took before."""
    (first, named), (now, now_named) = _split(old), _split(new)
    if len(now) < len(first) or any(not _fits(a, b) for a, b in zip(first, now, strict=False)):
        return False
    if any(not _may_be_left_out(one) for one in now[len(first) :]):
        return False
    later = {one.rstrip("=") for one in now[len(first) :]}
    kept = all(any(_fits(one, other) for other in now_named) or one.rstrip("=") in later for one in named)
    come = [one for one in now_named if one.rstrip("=") not in {name.rstrip("=") for name in named}]
    return kept and all(_may_be_left_out(one) for one in come)


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return the arguments by place, and those by name alone."""
    words = text.split()
    at = next((at for at, word in enumerate(words) if word.startswith("*")), len(words))
    return words[:at], [word for word in words[at:] if word != "*"]


def _fits(old: str, new: str) -> bool:
    return old.rstrip("=") == new.rstrip("=") and (not old.endswith("=") or new.endswith("="))


def _may_be_left_out(word: str) -> bool:
    return word.endswith("=") or word.startswith("*")


# ------------------------------------------------------------------------------------------------ which number


def number(text: str) -> Number:
    """Return a version as numbers."""
    return tuple(map(int, text.split(".")))


def least(old: str, *, breaks: bool) -> str:
    """Return the smallest version after `old` that may say so: before 1.0 a higher middle number may break."""
    numbers = list(number(old))
    at = len(numbers) - 1 if not breaks else 0 if len(numbers) == 2 or numbers[0] > 0 else 1
    return ".".join(map(str, [*numbers[:at], numbers[at] + 1, *[0] * (len(numbers) - at - 1)]))


def faults(old: Record, new: Record, lines: Sequence[str]) -> list[str]:
    """Return what changed without the rise of its number that the policy asks for; empty when all is in order."""
    found: list[str] = []
    for change in changes(old, new, lines):
        which = "adapter" if change.part == "operations" else "version"
        wanted = least(old[which], breaks=change.breaks)
        came_early = which == "version" and not change.breaks and "clauses" not in old
        if not came_early and number(new[which]) < number(wanted):
            said = "the adapter protocol" if which == "adapter" else "the text"
            found.append(f"{change}, and {said} still has the version {new[which]}: {wanted} or a later one is needed")
    return found


def stored() -> Record:
    """Return the record of the last version."""
    record: Record = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def is_released() -> bool:
    """Return whether any version of the text was released."""
    return any(version.released for version in history.load().versions)


def now(record: Record) -> list[str]:
    """Return the faults of what is there now against a record."""
    return faults(record, present(released="clauses" in record), _lines())


def main(given: Iterable[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("--record", action="store_true", help="store what is there now as the last version")
    options = parser.parse_args(None if given is None else list(given))
    if options.record:
        RECORD.write_text(json.dumps(present(released=is_released()), indent=1) + "\n", encoding="utf-8")
        return 0
    record = stored()
    for change in changes(record, present(released="clauses" in record), _lines()):
        print(change)
    wrong = now(record)
    print("\n".join(wrong) if wrong else f"every number has risen as the policy asks since {record['version']}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
