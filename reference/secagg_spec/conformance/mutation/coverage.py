"""The mutation score of a run: the mutants that it would notice, given what an adapter declares (CNF-12).

The count is a lower bound. `kills` stores a few vectors or cases for each mutant; the mutant counts if one of them lies
within the declaration and the run uses it. Other cases of the run may kill further mutants.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from secagg_spec.conformance.adapter.capabilities import POLICIES, Capabilities
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.mutation import kills
from secagg_spec.conformance.mutation.kills import Bug, Case, Need
from secagg_spec.conformance.running import suite
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.conformance.vectors import judge, store
from secagg_spec.conformance.vectors.base import Vector, vector_of

_MOST = 5
_PARTS = "parts"
_OF_ONE: Mapping[str, str] = {
    **{name: name for name in ("secagg", "lightsecagg", "basecagg", "basa", "heterosag")},
    "segment": "heterosag",
    "quantize": "heterosag",
    "staleness": "basecagg",
    "select": "multi-round",
    "audit": "multi-round",
    "session": "",
}
"""The protocol of the operations whose names begin with a key; a session's protocol depends on its party."""


@dataclass(frozen=True)
class Advice:
    """Something to declare, and the number of further bugs a run could catch then, if earlier advice was followed."""

    declare: str
    more: int


@dataclass(frozen=True)
class Reach:
    """Of the `m` mutants that operations can show, a run would notice those named in `caught`."""

    caught: tuple[str, ...]
    m: int
    protocols: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each protocol, the number of mutants that the run would notice, and the total."""
    declare: tuple[Advice, ...] = ()

    @property
    def n(self) -> int:
        """The number of mutants that the run would notice."""
        return len(self.caught)

    def as_json(self) -> dict[str, Any]:
        """Return the reach in the form that reports use."""
        return {
            "caught": self.n,
            "of": self.m,
            "protocols": {name: {"caught": n, "of": m} for name, (n, m) in self.protocols.items()},
            "declare": [vars(advice) for advice in self.declare],
        }

    def __str__(self) -> str:
        more = "; ".join(f"declaring {advice.declare} would add {advice.more}" for advice in self.declare)
        return f"this run would notice {self.n} of {self.m} mutants" + (f"; {more}" if more else "")


def could_have_caught(
    caps: Capabilities,
    chosen_checks: Collection[str] | None = None,
    with_vectors: bool = True,
    most: int = _MOST,
    could_run: Collection[str] = (),
) -> Reach:
    """Return the mutants that a run would notice, and what to declare to notice more.

    Parameters
    ----------
    caps : Capabilities
        What the adapter declares.
    chosen_checks : collection of str, optional
        Ids of the checks in the run, including ``vector/ID`` for test vectors; all checks if not given.
    with_vectors : bool
        Whether the run judges test vectors.
    most : int
        The largest number of pieces of advice.
    could_run : collection of str
        Ids of checks that the run leaves out only because the adapter does not declare what they need; advice covers
        these checks too.

    Raises
    ------
    UsageError
        The stored evidence, ``spec/power.json``, cannot be read.
    """
    bugs = [bug for bug in kills.load().values() if bug.shown]
    missing = {bug.name: list(_missing(bug, caps, chosen_checks, could_run, with_vectors)) for bug in bugs}
    caught = tuple(name for name, ways in missing.items() if frozenset() in ways)
    left = {name: ways for name, ways in missing.items() if frozenset() not in ways}
    within = Counter(bug.protocol for bug in bugs if bug.name not in left)
    offered = {_family(name) for name in (*caps.operations, *caps.parties)} - {""}
    near = offered - {_PARTS} or {_PARTS}
    counts = {name: (within[name], of) for name, of in Counter(bug.protocol for bug in bugs).items()}
    return Reach(caught, len(bugs), counts, tuple(_advice(left, near, most)))


_Lack = tuple[str, str]
"""A piece of the declaration that evidence needs and that is missing: a kind, and a name."""


def _missing(
    bug: Bug, caps: Capabilities, checks: Collection[str] | None, could_run: Collection[str], with_vectors: bool
) -> Iterator[frozenset[_Lack]]:
    """For each piece of evidence that the run uses, yield what an adapter would have to declare to be asked for it.

    Evidence from a check in `could_run` counts too, if the adapter has to declare something for it.
    """
    pieces: list[tuple[str, Callable[[], frozenset[_Lack] | None]]] = [
        *((f"{suite.PREFIX}{id}", partial(_of_vector, caps, _vectors()[id])) for id in bug.vectors if with_vectors),
        *((case.check, partial(_of_case, caps, case)) for case in bug.cases),
    ]
    for check, lacking in pieces:
        asked = checks is None or check in checks
        lacks = lacking() if asked or check in could_run else None
        if lacks is not None and (lacks or asked):
            yield lacks


def _of_vector(caps: Capabilities, vector: Vector) -> frozenset[_Lack]:
    if judge.covers(caps, vector):
        return frozenset()
    needed = Need(vector.operation, vector.params, "explicit" if OPERATIONS[vector.operation][1] else None)
    policies = {**judge.PRESUPPOSED.get(vector.operation, {}), **vector.policy}
    return frozenset({*_lacks(caps, needed), *_policies(caps, policies)})


def _of_case(caps: Capabilities, case: Case) -> frozenset[_Lack] | None:
    """Return what is missing for a stored case; None if no further declaration would help."""
    if not all(need.inside or (caps.offers(need.op) and not _inside(caps, need)) for need in case.needs):
        return None
    lacks = {lack for need in case.needs if need.inside for lack in _lacks(caps, need)}
    lacks |= {lack for need in case.needs for lack in _policies(caps, _presupposed(need.op))}
    if any(kind == "seeds" for kind, _ in lacks):
        return None
    if not lacks:
        return frozenset() if CHECKS[case.check].runs_on(caps) else None
    return None if _elsewhere(caps, case.check) else frozenset(lacks)


def _elsewhere(caps: Capabilities, check: str) -> bool:
    """Return whether, even with all operations declared, a check would run only under other policies."""
    wider = replace(caps, operations={**{name: {} for name in OPERATIONS}, **caps.operations})
    others = ({**caps.policies, name: choice} for name, choices in POLICIES.items() for choice in choices)
    runs = CHECKS[check].runs_on
    return not runs(wider) and any(runs(replace(wider, policies=other)) for other in others)


def _lacks(caps: Capabilities, need: Need) -> Iterator[_Lack]:
    """Yield what the adapter's declaration lacks for a request."""
    if not caps.offers(need.op):
        yield "operation", need.op
        if need.grade in ("seeded", "none") and caps.randomness != need.grade:
            yield "seeds", need.op
    else:
        if not _inside(caps, need):
            yield "ranges", need.op
        if need.grade == "explicit" and caps.grade(need.op) != "explicit":
            yield "explicit", need.op
        elif need.grade in ("seeded", "none") and caps.grade(need.op) != need.grade:
            yield "seeds", need.op
    if need.party and need.party not in caps.parties:
        yield "party", need.party


def _inside(caps: Capabilities, need: Need) -> bool:
    try:
        return caps.declares(need.op, need.params)
    except (TypeError, ValueError):
        return False


def _policies(caps: Capabilities, wanted: Mapping[str, str]) -> Iterator[_Lack]:
    for name, choice in wanted.items():
        if caps.policy(name) != choice:
            yield "policy", f"{name} = {choice}"


def _presupposed(operation: str) -> Mapping[str, str]:
    """Return the policies that a case of an operation may assume: those of its vectors, or all if it has no vectors."""
    return _by_operation().get(operation, {name: choices[0] for name, choices in POLICIES.items()})


@cache
def _by_operation() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for vector in _vectors().values():
        known = found.setdefault(vector.operation, dict(judge.PRESUPPOSED.get(vector.operation, {})))
        known |= vector.policy
    return found


@cache
def _vectors() -> Mapping[str, Vector]:
    """Return the vectors that the kit ships, by id, without validation against their schema."""
    files = (path for path in sorted(store.folder().glob("*.json")) if path.name != "schema.json")
    entries = (entry for path in files for entry in json.loads(path.read_text(encoding="utf-8"))["vectors"])
    return {entry["id"]: vector_of(entry) for entry in entries}


_Ways = Collection[frozenset[_Lack]]
"""For a bug, what an adapter would have to declare for each piece of evidence."""


def _advice(left: Mapping[str, _Ways], near: Collection[str], most: int) -> Iterator[Advice]:
    """Yield what to declare: each time the declaration that adds most bugs, within the families `near` before others.

    The numbers count the bugs that earlier advice leaves. If two declarations add equally many, the smaller one wins.
    """
    open_ = Counter(frozenset(ways) for ways in left.values() if ways)
    for _ in range(most):
        gains = {way: _gain(open_, way) for way in frozenset().union(*open_)}
        if not gains:
            return
        best = max(gains, key=lambda way: (_inside_of(near, way), gains[way], -len(way), sorted(way)))
        yield Advice(_words(best), gains[best])
        rest, open_ = open_, Counter()
        for ways, bugs in rest.items():
            if not any(way <= best for way in ways):
                open_[frozenset(way - best for way in ways)] += bugs


def _inside_of(near: Collection[str], way: frozenset[_Lack]) -> bool:
    """Return whether a declaration adds only operations and parties of these families, or extends declared ones."""
    return all(_family(name) in ("", *near) for kind, name in way if kind in ("operation", "party"))


def _family(name: str) -> str:
    """Return the protocol of an operation or a party; `_PARTS` if several share the operation, "" for sessions."""
    first = name.partition(".")[0].replace("-", "_").partition("_")[0]
    return _OF_ONE.get(first, _PARTS)


def _gain(open_: Mapping[frozenset[frozenset[_Lack]], int], way: frozenset[_Lack]) -> int:
    """Return the number of bugs, counted by their ways, for which some evidence needs only this declaration."""
    return sum(bugs for ways, bugs in open_.items() if any(other <= way for other in ways))


_PHRASES: Mapping[str, Callable[[str], str]] = {
    "operation": lambda name: name,
    "ranges": lambda name: f"wider ranges of {name}",
    "explicit": lambda name: f"{name} with explicit randomness",
    "party": lambda name: f"the party {name} of session.new",
    "policy": lambda name: f"the policy {name}",
}


def _words(way: Iterable[_Lack]) -> str:
    return " and ".join(_PHRASES[kind](name) for kind, name in sorted(way))
