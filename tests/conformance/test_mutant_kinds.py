"""What the catalogue says of each mutant: its protocol, its kind, and a source that can be looked up."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from secagg_spec import resources
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import kinds
from secagg_spec.conformance.mutants.catalogue import Mutant
from secagg_spec.conformance.running import expectations

REGISTRY = mutants.load()
SPEC = resources.root("spec")
TARGETS = Path(expectations.__file__).parents[1] / "targets"
HIDING = ("lightsecagg", "secagg", "basecagg", "basa", "heterosag", "multi-round")
"""The protocols whose server must not learn single updates; that of FedBuff is told them."""
_TITLE = re.compile(r"^## \d+\. What the papers? leaves? open.*\n", re.MULTILINE)


@cache
def open_claims() -> frozenset[str]:
    """The claims of the papers that are not confirmed."""
    read = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((SPEC / "claims").glob("*.toml"))]
    return frozenset(claim["id"] for file in read for claim in file["claim"] if claim["verdict"] != "confirmed")


@cache
def rows(page: str) -> frozenset[str]:
    """The first cells of the table of a page that says what the papers leave open, or get wrong."""
    text = (SPEC / f"{page}.md").read_text(encoding="utf-8")
    section = _TITLE.split(text)[1].partition("\n## ")[0]
    table = [line.strip("|").split("|")[0].strip() for line in section.splitlines() if line.startswith("| ")]
    return frozenset(cell.replace("$", "") for cell in table[2:])


@cache
def failing_checks(target: str) -> frozenset[str]:
    """The checks that a target is known to fail."""
    return frozenset(entry.checks for entry in expectations.load(TARGETS / target / "expectations.toml"))


def found(head: str, detail: str) -> bool:
    """Return whether what stands behind the colon of a source is where the source says."""
    if head == "paper":
        page, _, row = detail.partition(", ")
        return detail in open_claims() or (f"{page}.md" in resources.PAGES and row in rows(page))
    if head.startswith("seen in "):
        return detail in failing_checks(head.split()[2].lower())
    return bool(detail) or not head.startswith(kinds.DETAILED)


def faults(mutant: Mutant) -> list[str]:
    """Return what is wrong with the kind and the source of a mutant."""
    head, detail = kinds.parted(mutant.source)
    wrong = {
        f"{mutant.kind} is no kind": mutant.kind not in kinds.KINDS,
        f"{head} is no source": head not in kinds.SOURCES,
        f"{mutant.source} is not found": not found(head, detail),
    }
    return [fault for fault, holds in wrong.items() if holds]


def test_each_mutant_has_a_kind_and_a_source_that_can_be_looked_up() -> None:
    assert {name: faults(mutant) for name, mutant in REGISTRY.items() if faults(mutant)} == {}


@pytest.mark.parametrize("kind", ["leak", ""])
def test_another_kind_is_seen(kind: str) -> None:
    assert faults(replace(REGISTRY["small-set-accepted"], kind=kind)) == [f"{kind} is no kind"]


@pytest.mark.parametrize("source", ["", "a guess", "seen in FedML", "seen in FedML: mds/sum"])
def test_another_source_is_seen(source: str) -> None:
    head, _ = kinds.parted(source)
    assert f"{head} is no source" in faults(replace(REGISTRY["small-set-accepted"], source=source))


@pytest.mark.parametrize(
    "source",
    [
        "arithmetic",
        "field not bound: ",
        "paper",
        "paper: BASA-EQ3",
        "paper: lightsecagg",
        "paper: lightsecagg, few dropouts",
        "paper: nowhere, few contributors",
        "seen in FedML 0.9.6",
        "seen in FedML 0.9.6: prg.expand/residues",
        "seen in Flower 1.41.0: mds/sum",
    ],
)
def test_a_source_that_is_not_where_it_says_is_seen(source: str) -> None:
    mutant = replace(REGISTRY["small-set-accepted"], source=source)
    assert faults(mutant) == [f"{source} is not found"]


def test_sources_and_kinds_that_nothing_has_are_not_listed() -> None:
    assert {kinds.parted(mutant.source)[0] for mutant in REGISTRY.values()} == set(kinds.SOURCES)
    assert {mutant.kind for mutant in REGISTRY.values()} == set(kinds.KINDS)


def test_each_clause_belongs_to_a_page_or_a_part() -> None:
    assert {clause.partition("-")[0] for clause in resources.clauses()} <= set(kinds.PROTOCOLS)
    pages = {page.removesuffix(".md") for page in resources.PAGES}
    assert pages - {"conformance"} == set(kinds.PROTOCOLS.values()) - {"kit"}
    for clause in resources.clauses():
        assert f"[{clause}]" in (SPEC / f"{_page(kinds.protocol(clause))}.md").read_text(encoding="utf-8")


def _page(protocol: str) -> str:
    return "conformance" if protocol == "kit" else protocol


def test_the_protocol_of_a_mutant_is_that_of_its_first_clause() -> None:
    assert REGISTRY["small-set-accepted"].protocol == "lightsecagg"
    assert REGISTRY["weight-to-nearest"].protocol == "fedbuff"
    assert REGISTRY["binding-without-round"].protocol == "conventions"


def test_each_protocol_has_wrong_sums_losses_of_privacy_and_wrong_acceptance() -> None:
    counted = Counter((mutant.protocol, mutant.kind) for mutant in REGISTRY.values())
    protocols = (*HIDING, "fedbuff")
    assert [name for name in protocols if not counted[name, "sum"] or not counted[name, "acceptance"]] == []
    assert [name for name in protocols if not counted[name, "privacy"]] == ["fedbuff"]
