"""The gate: every clause that can be broken has a planted bug, and vectors, checks or a test of its own find each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli, resources
from secagg_spec.conformance import mutants, power
from secagg_spec.conformance.capabilities import greet
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.connection import DirectConnection
from secagg_spec.conformance.runner import Settings
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.vectors import store
from secagg_spec.conformance.vectors.base import Book, Vector
from secagg_spec.errors import ParameterError
from tests.conformance import shipped
from tests.conformance.shipped import BOOKS
from tests.quick import first_of_each, one_in

REGISTRY = mutants.load()
VECTORS = list(shipped.VECTORS.values())
NEGATIVE = [
    (book, vector) for book in BOOKS for vector in book.vectors if vector.reject and book.name != store.FINDINGS
]
ROOT = Path(__file__).parents[2]
REFERENCE = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
SEEDED = "adapter/seeded"


def finding(name: str, vectors: Iterable[Vector]) -> list[Vector]:
    """Those of some vectors that find a mutant."""
    given = list(vectors)
    found = set(power.killing_vectors(REGISTRY[name], given)) if given else set()
    return [vector for vector in given if vector.id in found]


# ------------------------------------------------------------------------------------------------------- mutants


@pytest.mark.parametrize("name", one_in(4, REGISTRY))
def test_a_mutant_differs_from_the_reference_and_leaves_no_trace(name: str) -> None:
    mutant = REGISTRY[name]
    assert set(mutant.clauses) <= set(resources.clauses())
    right = mutant.witness()
    with mutants.planted(name):
        assert mutant.witness() != right
    assert mutant.witness() == right


def test_an_unknown_mutant_is_refused_with_the_names() -> None:
    with pytest.raises(ParameterError, match="subtract-wraps"), mutants.planted("nothing"):
        pass


def test_there_are_enough_mutants() -> None:
    assert len(REGISTRY) >= 30


# ---------------------------------------------------------------------------------------------------------- gate


def with_mutant() -> set[str]:
    """The clauses that some mutant breaks."""
    return {clause for mutant in REGISTRY.values() for clause in mutant.clauses}


def test_every_clause_that_can_be_broken_has_a_mutant() -> None:
    must = {clause for clause, sentence in resources.clauses().items() if re.search(r"\bMUST\b", sentence)}
    assert must - with_mutant() - set(mutants.unbreakable()) == set()


def test_what_cannot_be_broken_is_a_clause_with_a_reason_and_without_a_mutant() -> None:
    assert set(mutants.unbreakable()) <= set(resources.clauses())
    assert set(mutants.unbreakable()) & with_mutant() == set()
    assert all(len(reason) > 40 for reason in mutants.unbreakable().values())


@pytest.mark.parametrize("name", one_in(12, (name for name, mutant in REGISTRY.items() if not mutant.reach)))
def test_vectors_or_checks_show_each_clause_of_a_mutant_broken(name: str) -> None:
    mutant = REGISTRY[name]
    found = finding(name, (vector for vector in VECTORS if not set(mutant.clauses).isdisjoint(vector.clauses)))
    missing = set(mutant.clauses) - {clause for vector in found for clause in vector.clauses}
    assert not missing or missing == power.shown_by_checks(mutant, missing, cases=200, seeds=2)


@pytest.mark.parametrize("name", one_in(40, (name for name, mutant in REGISTRY.items() if mutant.reach)))
def test_the_test_that_a_mutant_names_finds_it(name: str) -> None:
    file, _, _ = REGISTRY[name].reach.partition("::")
    assert (ROOT / file).is_file()
    assert power.killing_test(REGISTRY[name]) == REGISTRY[name].reach


# ------------------------------------------------------------------------------------------------------- vectors


def unfound(book: Book, flag: str) -> list[str]:
    """Return the mutants of a flag that no vector with the flag finds; a flag without a mutant finds nothing."""
    flagged = [vector for vector in book.vectors if flag in vector.flags]
    named = book.flags[flag].mutants
    return [name for name in named if not finding(name, flagged)] if named else ["no mutant"]


def refused_anyway(book: Book, vector: Vector) -> bool:
    """Return whether a vector that is to be refused is refused with each bug of its flags planted, too."""
    return not any(finding(name, [vector]) for flag in vector.flags for name in book.flags[flag].mutants)


@pytest.mark.parametrize(
    ("book", "flag"),
    first_of_each([(book.name, flag) for book in BOOKS if book.name != store.FINDINGS for flag in book.flags]),
)
def test_every_mutant_of_a_flag_is_found_by_a_vector_with_the_flag(book: str, flag: str) -> None:
    [found] = [other for other in BOOKS if other.name == book]
    assert unfound(found, flag) == []


@pytest.mark.parametrize("number", one_in(4, range(len(NEGATIVE))), ids=[vector.id for _, vector in NEGATIVE])
def test_a_vector_that_is_to_be_refused_breaks_one_rule_only(number: int) -> None:
    assert not refused_anyway(*NEGATIVE[number]), "with its check left out, it is refused all the same"


@pytest.mark.parametrize("named", [("product-in-int64", "small-set-accepted"), ()])
def test_a_flag_that_kills_nothing_is_seen(named: tuple[str, ...]) -> None:
    [book] = [book for book in BOOKS if book.name == "lightsecagg"]
    flags = {**book.flags, "SmallSet": replace(book.flags["SmallSet"], mutants=named)}
    assert unfound(replace(book, flags=flags), "SmallSet") == list(named[:1] or ["no mutant"])


def test_a_vector_that_breaks_a_second_rule_is_seen() -> None:
    book, vector = next((book, vector) for book, vector in NEGATIVE if vector.id == "aggregate-small-set")
    flags = {**book.flags, "SmallSet": replace(book.flags["SmallSet"], mutants=("threshold-off-by-one",))}
    assert not refused_anyway(book, vector)
    assert refused_anyway(replace(book, flags=flags), vector)


# ------------------------------------------------------------------------------------------------------- command


def test_power_says_what_finds_a_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["power", "-k", "small-set-accepted", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert "vector aggregate-small-set" in out
    assert re.search(r"; check lightsecagg\.\S+ and [1-9]\d* more after [1-9]", out)
    assert "1 of 1 planted bugs are found: 1 by vectors, 1 by checks" in out


def test_a_mutant_that_nothing_finds_is_alive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "load_all", list)
    monkeypatch.setattr(power, "killing_checks", lambda *arguments: ((), 0))
    assert cli.main(["power", "-k", "small-set-accepted"]) == 1
    assert "ALIVE" in capsys.readouterr().out


def test_vectors_that_are_meant_for_a_bug_are_those_of_its_clauses_and_flags() -> None:
    for mutant in (REGISTRY["small-set-accepted"], REGISTRY["product-in-int64"]):
        meant, others = power.parted(mutant, BOOKS)
        assert sorted(vector.id for vector in (*meant, *others)) == sorted(shipped.VECTORS)
        flags = [{name for name, flag in book.flags.items() if mutant.name in flag.mutants} for book in BOOKS]
        flagged = {v.id for book, own in zip(BOOKS, flags, strict=True) for v in book.vectors if own & set(v.flags)}
        assert flagged
        assert flagged <= {vector.id for vector in meant}
        assert all(set(mutant.clauses).isdisjoint(vector.clauses) for vector in others)


def test_vectors_for_other_bugs_count_where_none_that_is_meant_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "killing_checks", lambda *arguments: ((), 0))
    mutant = REGISTRY["codes-in-capitals"]
    meant, others = power.parted(mutant, BOOKS)
    assert power.killing_vectors(mutant, meant) == []
    [kill] = power.hunt([mutant], 1, 1)
    assert kill.vectors
    assert set(kill.vectors) <= {vector.id for vector in others}


@pytest.mark.parametrize(("found_with", "drawn"), [(20, [20]), (100, [20, 100]), (1000, [20, 100])])
def test_checks_draw_all_cases_only_where_few_find_nothing(
    found_with: int, drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def fails(connection: object, caps: object, check: Check, settings: Settings) -> bool:
        seen.append(settings.cases)
        return settings.cases >= found_with

    monkeypatch.setattr(power, "first_failure", fails)
    monkeypatch.setattr(power, "_command", lambda mutant: REFERENCE)
    [check] = [check for check in CHECKS.values() if check.id == "field.multiply/exact"]
    monkeypatch.setattr(power, "CHECKS", {check.id: check})
    monkeypatch.setattr(Settings, "chosen", lambda self: [check])
    found, _ = power.killing_checks(REGISTRY["product-in-int64"], 100, 1)
    assert (seen, found) == (drawn, (check.id,) if found_with <= 100 else ())


@pytest.fixture
def harmless(monkeypatch: pytest.MonkeyPatch) -> mutants.Mutant:
    """A mutant that changes nothing; the process that the checks ask is the reference itself."""
    planted = replace(REGISTRY["small-set-accepted"], name="harmless", build=lambda right: right)
    monkeypatch.setitem(REGISTRY, "harmless", planted)
    monkeypatch.setattr(power, "_command", lambda mutant: REFERENCE)
    return planted


def test_a_mutant_that_changes_nothing_is_alive(harmless: mutants.Mutant, capsys: pytest.CaptureFixture[str]) -> None:
    assert power.shown_by_checks(harmless, harmless.clauses, 20, 1) == set()
    assert cli.main(["power", "-k", "harmless", "--fuzz", "5", "--seeds", "2"]) == 1
    assert "0 of 1 planted bugs are found: 0 by vectors, 0 by checks, 0 by tests of their own; 1 alive" in (
        capsys.readouterr().out
    )


def test_a_process_that_does_not_start_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "_command", lambda mutant: [*REFERENCE, "--mutant", "nothing"])
    assert power.killing_checks(REGISTRY["small-set-accepted"], 20, 1) == ((), 0)


@pytest.mark.slow
def test_several_mutants_are_hunted_at_a_time_and_reported_in_their_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in REGISTRY if "hello" in name]
    outputs = []
    for count in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        assert cli.main(["power", "-k", "hello", "--fuzz", "5", "--seeds", "1"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert [line.split()[0] for line in outputs[0].splitlines()[: len(names)]] == names


def test_a_grade_or_a_range_that_a_mutant_breaks_counts_where_an_adapter_declares_one() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    ranges = {"q": {"max": 2**31 - 1}}
    narrow: dict[str, dict[str, Any]] = {"field.multiply": {"ranges": ranges}, "mds.encode": {"randomness": "seeded"}}
    for name, check in [("wrong-outside-its-range", "field.multiply/outside-range"), ("seed-is-ignored", SEEDED)]:
        assert power.killing_checks(REGISTRY[name], 20, 1, replace(caps, operations=narrow))[0] == (check,)
        assert power.killing_checks(REGISTRY[name], 20, 1, caps) == ((), 0)


@pytest.mark.slow
def test_a_test_that_passes_with_the_bug_planted_does_not_count() -> None:
    other = "tests/arithmetic/test_mds.py::test_one_point_for_each_user"
    planted = mutants.Mutant(**{**vars(REGISTRY["mail-is-lost"]), "reach": other})
    assert power.killing_test(planted) is None


def test_declared_ranges_decide_what_vectors_could_find() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    small = {"field.multiply": {"ranges": {"q": {"max": 1000}}}}
    narrow = type(caps)(**{**vars(caps), "operations": small})
    mutant = REGISTRY["product-in-int64"]
    assert power.killing_vectors(mutant, VECTORS, caps)
    assert power.killing_vectors(mutant, VECTORS, narrow) == []
    assert power.killing_checks(mutant, 100, 1, narrow) == ((), 0)
