"""The mutation score of a run: the mutants that it would notice, given what an adapter declares (CNF-12).

The count is a lower bound. A mutant counts if one of the few vectors, or stored cases, that `kills` holds for it
lies inside what is declared, and the run asks it; other cases of the run may kill further mutants.
"""

from __future__ import annotations

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
"""The protocol of the operations whose names begin so; that of a session is its party's."""


@dataclass(frozen=True)
class Advice:
    """Something to declare, and how many more bugs a run could catch then, all advice before it followed."""

    declare: str
    more: int


@dataclass(frozen=True)
class Reach:
    """Of `m` mutants that operations can show, a run would notice the `n` of these names."""

    caught: tuple[str, ...]
    m: int
    protocols: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By protocol: how many could have been caught, of how many."""
    declare: tuple[Advice, ...] = ()

    @property
    def n(self) -> int:
        """How many could have been caught."""
        return len(self.caught)

    def as_json(self) -> dict[str, Any]:
        """Return it as it stands in reports."""
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
    """Return what a run would notice of the mutants, and what to declare to reach more.

    Parameters
    ----------
    caps : Capabilities
        What the adapter declares.
    chosen_checks : collection of str, optional
        Ids of the checks that the run asks, those of test vectors, ``vector/ID``, among them; all when none are given.
    with_vectors : bool
        Whether the run judges test vectors.
    most : int
        The most pieces of advice.
    could_run : collection of str
        Ids of checks that the run leaves out only since the adapter does not declare what they need: advice is on these
        as well.

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


# ------------------------------------------------------------------------------------------ what evidence needs

_Lack = tuple[str, str]
"""What stands between an adapter and a piece of evidence: a kind, and a name."""


def _missing(
    bug: Bug, caps: Capabilities, checks: Collection[str] | None, could_run: Collection[str], with_vectors: bool
) -> Iterator[frozenset[_Lack]]:
    """Yield, for each piece of evidence that the run asks, what an adapter would have to declare to meet it.

    Evidence of a check that it could run counts as well, where something has to be declared.
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
    """Return what a stored case lacks; None where nothing that is declared besides would help."""
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
    """Return whether a check, were all operations declared, would run under other policies alone."""
    wider = replace(caps, operations={**{name: {} for name in OPERATIONS}, **caps.operations})
    others = ({**caps.policies, name: choice} for name, choices in POLICIES.items() for choice in choices)
    runs = CHECKS[check].runs_on
    return not runs(wider) and any(runs(replace(wider, policies=other)) for other in others)


def _lacks(caps: Capabilities, need: Need) -> Iterator[_Lack]:
    """Yield what an adapter lacks that is to meet a request."""
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
    """Return the policies that a case of an operation may presuppose: those of its vectors, all where it has none."""
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
    """Return the vectors that the kit ships, by id; they are not checked against their schema here."""
    files = (path for path in sorted(store.folder().glob("*.json")) if path.name != "schema.json")
    entries = (entry for path in files for entry in json.loads(path.read_text(encoding="utf-8"))["vectors"])
    return {entry["id"]: vector_of(entry) for entry in entries}


# ------------------------------------------------------------------------------------------------------ advice


_Ways = Collection[frozenset[_Lack]]
"""For a bug, what an adapter would have to declare to meet each piece of evidence."""


def _advice(left: Mapping[str, _Ways], near: Collection[str], most: int) -> Iterator[Advice]:
    """Yield what to declare: each time what adds most bugs inside the families `near`, then outside of them.

    The numbers count the bugs that the advice before leaves. Of two that add as many, the one with fewer things counts.
    """
    open_ = {name: set(ways) for name, ways in left.items() if ways}
    for _ in range(most):
        gains = {way: _gain(open_.values(), way) for way in set().union(*open_.values())}
        if not gains:
            return
        best = max(gains, key=lambda way: (_inside_of(near, way), gains[way], -len(way), sorted(way)))
        yield Advice(_words(best), gains[best])
        open_ = {name: {way - best for way in ways} for name, ways in open_.items() if not any(w <= best for w in ways)}


def _inside_of(near: Collection[str], way: frozenset[_Lack]) -> bool:
    """Return whether no more than things of these families are to be declared, or more of what is declared."""
    return all(_family(name) in ("", *near) for kind, name in way if kind in ("operation", "party"))


def _family(name: str) -> str:
    """Return the protocol of an operation or a party; of operations of several, `_PARTS`; of sessions, nothing."""
    first = name.partition(".")[0].replace("-", "_").partition("_")[0]
    return _OF_ONE.get(first, _PARTS)


def _gain(open_: Iterable[_Ways], way: frozenset[_Lack]) -> int:
    """Return for how many bugs some evidence needs no more than this."""
    return sum(any(other <= way for other in ways) for ways in open_)


_PHRASES: Mapping[str, Callable[[str], str]] = {
    "operation": lambda name: name,
    "ranges": lambda name: f"wider ranges of {name}",
    "explicit": lambda name: f"{name} with explicit randomness",
    "party": lambda name: f"the party {name} of session.new",
    "policy": lambda name: f"the policy {name}",
}


def _words(way: Iterable[_Lack]) -> str:
    return " and ".join(_PHRASES[kind](name) for kind, name in sorted(way))
