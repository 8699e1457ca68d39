"""The stored evidence ``spec/power.json``: a description of each mutant, and what kills it.

`evidence` creates the table and verifies its evidence; `coverage` uses it to say what a run would notice.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from secagg_spec import documents, resources
from secagg_spec.conformance.mutants.catalogue import Mutant
from secagg_spec.errors import UsageError

SCHEMA = "secagg-spec-power/1"
NAME = "power.json"
SEEDS = 20
"""The number of runs of a check, with different seeds, whose median number of requests is stored."""
CASES = 100
"""The most cases of the check in each of these runs."""
VECTORS, DRAWN, TEST, NOTHING = "vectors", "drawn cases", "test", "nothing"
"""The ways to kill a mutant."""


@dataclass(frozen=True)
class Need:
    """What one request of a stored case needs of an adapter.

    `params` are the ranged parameters of the request. If `inside` is true, they lie within the adapter's declaration,
    else outside. `grade` is the randomness grade that the operation must have. `party` is the party that
    ``session.new`` opens.
    """

    op: str
    params: Mapping[str, Any]
    grade: str | None = None
    inside: bool = True
    party: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the data for the table; members without information are left out."""
        body: dict[str, Any] = {"op": self.op}
        body |= {"params": dict(self.params)} if self.params else {}
        body |= {"grade": self.grade} if self.grade else {}
        body |= {} if self.inside else {"inside": False}
        return body | ({"party": self.party} if self.party else {})


@dataclass(frozen=True)
class Case:
    """A stored case in which a check fails: the values that it drew, as `replay` stores them, and the requests' needs.

    With `alone`, only an adapter in its own process shows the failure.
    """

    check: str
    draws: list[Any]
    needs: tuple[Need, ...]
    alone: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the data for the table."""
        body = {"check": self.check, "needs": [need.as_json() for need in self.needs], "draws": self.draws}
        return body | ({"alone": True} if self.alone else {})


@dataclass(frozen=True)
class Bug:
    """A row of the table: a mutant, and what kills it.

    `vectors` are ids of a few vectors that kill it. `cases` cover what no vector shows: the bug, or some of its
    clauses. If no vector kills the mutant, `calls` is the median number of requests until the check of the first case
    fails, over `SEEDS` seeds; the check fails with `seeds` of them. If no operation shows the mutant, `test` kills it.
    """

    name: str
    clauses: tuple[str, ...]
    effect: str
    protocol: str = ""
    kind: str = ""
    source: str = ""
    parts: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    calls: int = 0
    seeds: int = 0
    test: str = ""

    @property
    def found(self) -> str:
        """What kills the mutant first."""
        if self.vectors:
            return VECTORS
        if self.cases:
            return DRAWN
        return TEST if self.test else NOTHING

    @property
    def shown(self) -> bool:
        """Whether an operation of the adapter protocol shows the mutant."""
        return self.found in (VECTORS, DRAWN)

    def as_json(self) -> dict[str, Any]:
        """Return the data for the table; empty members are left out."""
        body = {name: value for name, value in vars(self).items() if value}
        return body | ({"cases": [case.as_json() for case in self.cases]} if self.cases else {})


def described(mutant: Mutant, **evidence: Any) -> Bug:
    """Return the row of a mutant: its description, and some evidence."""
    about = (mutant.name, mutant.clauses, mutant.effect, mutant.protocol, mutant.kind, mutant.source, mutant.parts)
    return Bug(*about, test=mutant.test, **evidence)


def path() -> Path:
    """Return the path of the table, in a checkout or in the package."""
    return resources.root("spec") / NAME


@cache
def load(place: Path | None = None) -> Mapping[str, Bug]:
    """Return the table by name; if no file is given, the table of the specification.

    Raises
    ------
    UsageError
        The file is absent, or is not a table of this version.
    """
    file = place or path()
    try:
        body = documents.read_json(file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{file}: this is not JSON") from None
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise UsageError(f"{file}: this is not a table of mutants ({SCHEMA})")
    try:
        return {entry["name"]: _bug(entry) for entry in body["bugs"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{file}: a row of this table has another form: {error}") from None


def text(bugs: Iterable[Bug]) -> str:
    """Return the table as the text of its file, with one mutant on each line."""
    lines = ",\n".join(json.dumps(bug.as_json(), ensure_ascii=False) for bug in bugs)
    head = json.dumps({"schema": SCHEMA, "seeds": SEEDS, "cases": CASES})
    return f'{head[:-1]}, "bugs": [\n{lines}\n]}}\n'


def _bug(entry: Mapping[str, Any]) -> Bug:
    lists = {name: tuple(value) for name, value in entry.items() if isinstance(value, list)}
    return Bug(**{**entry, **lists, "cases": tuple(_case(case) for case in entry.get("cases", ()))})


def _case(entry: Mapping[str, Any]) -> Case:
    needs = tuple(Need(**{"params": {}, **need}) for need in entry["needs"])
    return Case(entry["check"], entry["draws"], needs, entry.get("alone", False))
