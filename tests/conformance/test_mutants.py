"""The gate: every clause that can be broken has a mutant, and the stored evidence that each is found still holds.

What is stored is tried again: the vectors fail, the checks of the stored cases fail, the tests are there and fail. What
finds a bug is searched for by ``secagg-spec power --search`` and ``--regenerate``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from secagg_spec import cli, resources
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants.engine import Edit
from secagg_spec.conformance.mutation import evidence, kills, search
from secagg_spec.conformance.running.runner import Settings
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import store
from secagg_spec.conformance.vectors.base import Vector, VectorFile
from secagg_spec.crypto.entropy import SystemSource
from secagg_spec.errors import ParameterError
from tests.conformance import shipped
from tests.conformance.shipped import VECTOR_FILES
from tests.quick import exhaustive, one_in, part

REGISTRY = mutants.load()
TABLE = kills.load()
VECTORS = list(shipped.VECTORS.values())
NEGATIVE = [
    (file, vector) for file in VECTOR_FILES for vector in file.vectors if vector.reject and file.name != store.FINDINGS
]
ROOT = Path(__file__).parents[2]
REFERENCE = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
SEEDED = "adapter/seeded"


def finding(name: str, vectors: Iterable[Vector]) -> list[Vector]:
    """Those of some vectors that find a mutant."""
    given = list(vectors)
    found = set(search.killing_vectors(REGISTRY[name], given)) if given else set()
    return [vector for vector in given if vector.id in found]


# ------------------------------------------------------------------------------------------------------- mutants


def test_every_mutant_is_an_edit_or_two_others_and_breaks_clauses_of_the_text() -> None:
    assert [name for name, mutant in REGISTRY.items() if bool(mutant.edits) == bool(mutant.parts)] == []
    assert {part for mutant in REGISTRY.values() for part in mutant.parts} <= set(REGISTRY)
    assert {clause for mutant in REGISTRY.values() for clause in mutant.clauses} <= set(resources.clauses())


def test_an_unknown_mutant_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ParameterError, match="subtract-wraps-at-2-64"), mutants.planted("subtract-wraps"):
        pass


@pytest.mark.parametrize(
    ("name", "said"), [("recovery-add-the-mask", "recovery-adds-the-mask"), ("does-not-fit", "does not stand there")]
)
def test_a_mutant_that_cannot_be_started_ends_with_2_and_one_line(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unfit = Edit("protocols/lightsecagg/round.py", "recover", (("field.subtrakt(", ""),))
    monkeypatch.setitem(REGISTRY, "does-not-fit", replace(REGISTRY["recovery-adds-the-mask"], edits=(unfit,)))
    monkeypatch.setattr(sys, "argv", ["reference.py", "--mutant", name])
    with pytest.raises(SystemExit, match="2"):
        reference.main()
    [usage, line] = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: ")
    assert said in line


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


def test_what_is_equivalent_is_no_mutant_and_has_a_proof() -> None:
    assert set(mutants.equivalent()).isdisjoint(REGISTRY)
    assert all(len(proof) > 40 for proof in mutants.equivalent().values())


def test_equivalent_changes_agree_where_they_can_all_be_tried() -> None:
    points = [x for x in product(range(1, 6), repeat=3) if len(set(x)) == 3]
    assert all(Fraction(0 - b, a - b) == Fraction(b, b - a) for a, b, _ in points)
    assert all((2 * v > R) == (v > (R - 1) // 2) for R in (3, 5, 7, 101) for v in range(R))


def test_each_mutant_has_a_row_of_the_table_and_each_row_a_mutant() -> None:
    assert list(TABLE) == list(REGISTRY)


DRAWING = [
    name for name, bug in TABLE.items() if any(need.grade == "none" for case in bug.cases for need in case.needs)
]
"""The mutants with a stored case of an adapter that draws by itself."""


def fixed(monkeypatch: pytest.MonkeyPatch, seed: int) -> list[int]:
    """Let the system give the bytes that follow from a seed, so that nothing rests on chance; return what is taken."""
    taken, chance = list[int](), Random(seed)

    def take(self: SystemSource, size: int) -> bytes:
        taken.append(size)
        return chance.randbytes(size)

    monkeypatch.setattr(SystemSource, "take", take)
    return taken


@pytest.mark.requirement("CNF-10")
@pytest.mark.parametrize("name", one_in(60, REGISTRY))
def test_what_the_table_says_of_a_bug_still_finds_it_through_each_of_its_clauses(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = fixed(monkeypatch, 0)
    assert list(evidence.faults(TABLE[name], REGISTRY[name])) == []
    assert not taken or name in DRAWING


@pytest.mark.slow
@pytest.mark.requirement("CNF-10")
@pytest.mark.parametrize("name", part(4, DRAWING))
def test_evidence_holds_whatever_an_adapter_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in (1, 2):
        fixed(monkeypatch, seed)
        assert list(evidence.faults(TABLE[name], REGISTRY[name])) == []


@pytest.mark.requirement("CNF-10")
def test_no_bug_is_found_by_nothing_and_drawn_cases_have_a_median_over_20_seeds() -> None:
    assert [bug.name for bug in TABLE.values() if bug.found == kills.NOTHING] == []
    drawn = [bug for bug in TABLE.values() if bug.found == kills.DRAWN]
    assert drawn
    assert all(bug.calls > 0 and 0 < bug.seeds <= kills.SEEDS == 20 for bug in drawn)


def test_the_table_says_what_the_catalogue_says_and_is_written_in_one_way() -> None:
    assert {name: evidence.relabelled(bug, REGISTRY[name]) for name, bug in TABLE.items()} == TABLE
    assert kills.path().read_text(encoding="utf-8") == kills.text(TABLE.values())


def spoiled(name: str, **changed: Any) -> list[str]:
    """Return the faults of a row of the table with some members changed."""
    return list(evidence.faults(replace(TABLE[name], **changed), REGISTRY[name]))


@pytest.mark.requirement("CNF-10")
def test_evidence_that_does_not_hold_is_seen() -> None:
    name, bug = "small-set-accepted", TABLE["small-set-accepted"]
    assert spoiled(name, vectors=("field-add-7", *bug.vectors)) == ["vector field-add-7 passes"]
    assert "nothing shows that LSA-09 is broken" in spoiled(name, vectors=())
    assert any("lightsecagg/SmallSet" in fault for fault in spoiled(name, vectors=()))
    assert "there is no vector gone" in spoiled(name, vectors=("gone", *bug.vectors))
    assert any(fault.startswith("clauses is") for fault in spoiled(name, clauses=("LSA-10",)))


@pytest.mark.requirement("CNF-10")
def test_a_stored_case_that_does_not_fail_is_seen() -> None:
    drawn = next(bug for bug in TABLE.values() if bug.found == kills.DRAWN and not any(c.alone for c in bug.cases))
    [case, *_] = drawn.cases
    other = next(name for name, bug in TABLE.items() if bug.vectors and not set(bug.clauses) & set(drawn.clauses))
    assert evidence.again(drawn.name, case)
    assert not evidence.again(other, case)
    assert f"the stored case of {case.check} passes" in spoiled(other, cases=(case,))
    assert "there is no check gone" in spoiled(other, cases=(replace(case, check="gone"),))
    assert spoiled(drawn.name, seeds=0) == ["the median of the requests is missing"]


def test_a_test_that_is_not_there_is_seen() -> None:
    name = next(name for name, mutant in REGISTRY.items() if mutant.test)
    renamed = replace(REGISTRY[name], test="tests/arithmetic/test_mds.py::test_gone")
    assert "there is no test tests/arithmetic/test_mds.py::test_gone" in list(evidence.faults(TABLE[name], renamed))


NAMING = sorted((name for name, mutant in REGISTRY.items() if mutant.test), key=lambda name: REGISTRY[name].test)
"""The mutants that name a test; those of one module stand together, so that few processes load it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", part(6, NAMING))
def test_the_test_that_a_mutant_names_finds_it(name: str) -> None:
    assert search.killing_test(REGISTRY[name]) == REGISTRY[name].test


# ------------------------------------------------------------------------------------------------------- vectors


def refused_anyway(file: VectorFile, vector: Vector) -> bool:
    """Return whether a vector that is to be refused is refused by each mutant of its flags, too."""
    return not any(finding(name, [vector]) for flag in vector.flags for name in file.flags[flag].mutants)


@pytest.mark.requirement("CNF-11")
@pytest.mark.parametrize(
    "file", [file for file in VECTOR_FILES if file.name != store.FINDINGS], ids=lambda file: file.name
)
def test_every_mutant_of_a_flag_is_found_by_a_vector_with_the_flag(file: VectorFile) -> None:
    assert evidence.idle_flags(file, TABLE) == []


@pytest.mark.parametrize("number", one_in(12, range(len(NEGATIVE))), ids=[vector.id for _, vector in NEGATIVE])
def test_a_vector_that_is_to_be_refused_breaks_one_rule_only(number: int) -> None:
    assert not refused_anyway(*NEGATIVE[number]), "with its check left out, it is refused all the same"


@pytest.mark.requirement("CNF-11")
@pytest.mark.parametrize("named", [("product-in-int64", "small-set-accepted"), ("no-such-bug",), ()])
def test_a_flag_that_kills_nothing_is_seen(named: tuple[str, ...]) -> None:
    [file] = [file for file in VECTOR_FILES if file.name == "lightsecagg"]
    flags = {**file.flags, "SmallSet": replace(file.flags["SmallSet"], mutants=named)}
    assert evidence.idle_flags(replace(file, flags=flags), TABLE) == ["SmallSet"]


def test_a_vector_that_breaks_a_second_rule_is_seen() -> None:
    file, vector = next((file, vector) for file, vector in NEGATIVE if vector.id == "aggregate-small-set")
    flags = {**file.flags, "SmallSet": replace(file.flags["SmallSet"], mutants=("threshold-off-by-one",))}
    assert not refused_anyway(file, vector)
    assert refused_anyway(replace(file, flags=flags), vector)


# ------------------------------------------------------------------------------------------------------- command


@pytest.mark.slow
def test_power_says_what_finds_a_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["power", "--search", "-k", "small-set-accepted", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"vector \S+ and [1-9]\d* more; check lightsecagg\S+ and [1-9]\d* more after [1-9]", out)
    assert "1 of 1 mutants are killed: 1 by vectors, 1 by checks" in out


def test_a_mutant_that_nothing_finds_is_alive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "load_all", list)
    monkeypatch.setattr(search, "killing_checks", lambda *arguments: ((), 0))
    assert cli.main(["power", "--search", "-k", "small-set-accepted"]) == 1
    assert "ALIVE" in capsys.readouterr().out


def test_vectors_that_are_meant_for_a_bug_are_those_of_its_clauses_and_flags() -> None:
    for mutant in (REGISTRY["small-set-accepted"], REGISTRY["product-in-int64"]):
        meant, others = search.parted(mutant, VECTOR_FILES)
        assert sorted(vector.id for vector in (*meant, *others)) == sorted(shipped.VECTORS)
        flags = [{name for name, flag in file.flags.items() if mutant.name in flag.mutants} for file in VECTOR_FILES]
        flagged = {
            v.id for file, own in zip(VECTOR_FILES, flags, strict=True) for v in file.vectors if own & set(v.flags)
        }
        assert flagged
        assert flagged <= {vector.id for vector in meant}
        assert all(set(mutant.clauses).isdisjoint(vector.clauses) for vector in others)


@pytest.mark.slow
def test_vectors_for_other_bugs_count_where_none_that_is_meant_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "killing_checks", lambda *arguments: ((), 0))
    mutant = REGISTRY["codes-in-capitals"]
    meant, others = search.parted(mutant, VECTOR_FILES)
    assert search.killing_vectors(mutant, meant) == []
    [kill] = search.hunt([mutant], 1, 1)
    assert kill.vectors
    assert set(kill.vectors) <= {vector.id for vector in others}


@pytest.mark.slow
@pytest.mark.parametrize(("found_with", "drawn"), [(20, [20]), (100, [20, 100]), (1000, [20, 100])])
def test_checks_draw_all_cases_only_where_few_find_nothing(
    found_with: int, drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def fails(connection: object, caps: object, check: Check, settings: Settings) -> bool:
        seen.append(settings.cases)
        return settings.cases >= found_with

    monkeypatch.setattr(search, "first_failure", fails)
    monkeypatch.setattr(search, "planted_command", lambda name: REFERENCE)
    [check] = [check for check in CHECKS.values() if check.id == "field.multiply/exact"]
    monkeypatch.setattr(search, "CHECKS", {check.id: check})
    monkeypatch.setattr(Settings, "chosen", lambda self: [check])
    found, _ = search.killing_checks(REGISTRY["product-in-int64"], 100, 1)
    assert (seen, found) == (drawn, (check.id,) if found_with <= 100 else ())


@pytest.fixture
def harmless(monkeypatch: pytest.MonkeyPatch) -> mutants.Mutant:
    """A mutant that changes nothing; the process that the checks ask is the reference itself."""
    edit = Edit("arithmetic/mds.py", "MaskCode.decode", (("self", "self"),))
    monkeypatch.setattr(Edit, "applied", lambda self, text: text)
    planted = replace(REGISTRY["small-set-accepted"], name="harmless", edits=(edit,))
    monkeypatch.setitem(REGISTRY, "harmless", planted)
    monkeypatch.setattr(search, "planted_command", lambda name: REFERENCE)
    return planted


@pytest.mark.slow
def test_a_mutant_that_changes_nothing_is_alive(harmless: mutants.Mutant, capsys: pytest.CaptureFixture[str]) -> None:
    assert search.shown_by_checks(harmless, harmless.clauses, 20, 1) == set()
    assert cli.main(["power", "--search", "-k", "harmless", "--fuzz", "2", "--seeds", "2"]) == 1
    assert "0 of 1 mutants are killed: 0 by vectors, 0 by checks, 0 by tests of their own; 1 alive" in (
        capsys.readouterr().out
    )


@pytest.mark.slow
def test_a_process_that_does_not_start_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "planted_command", lambda name: [*REFERENCE, "--mutant", "nothing"])
    assert search.killing_checks(REGISTRY["small-set-accepted"], 20, 1) == ((), 0)


@pytest.mark.slow
@exhaustive
def test_several_mutants_are_hunted_at_a_time_and_reported_in_their_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [name for name in REGISTRY if "hello" in name]
    outputs = []
    for count in (1, 2):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        assert cli.main(["power", "--search", "-k", "hello", "--fuzz", "1", "--seeds", "1"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert [line.split()[0] for line in outputs[0].splitlines()[: len(names)]] == names


@pytest.mark.slow
def test_a_grade_or_a_range_that_a_mutant_breaks_counts_where_an_adapter_declares_one() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    ranges = {"q": {"max": 2**31 - 1}}
    narrow: dict[str, dict[str, Any]] = {"field.multiply": {"ranges": ranges}, "mds.encode": {"randomness": "seeded"}}
    for name, check in [("wrong-outside-its-range", "field.multiply/outside-range"), ("seed-is-ignored", SEEDED)]:
        assert search.killing_checks(REGISTRY[name], 20, 1, replace(caps, operations=narrow))[0] == (check,)
        assert search.killing_checks(REGISTRY[name], 20, 1, caps) == ((), 0)


@pytest.mark.slow
def test_a_test_that_passes_on_the_mutant_does_not_count() -> None:
    other = "tests/arithmetic/test_mds.py::test_one_point_for_each_user"
    planted = mutants.Mutant(**{**vars(REGISTRY["mail-is-lost"]), "test": other})
    assert search.killing_test(planted) is None


@pytest.mark.slow
def test_declared_ranges_decide_what_vectors_could_find() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    small = {"field.multiply": {"ranges": {"q": {"max": 1000}}}}
    narrow = replace(caps, operations=small)
    mutant = REGISTRY["product-in-int64"]
    assert search.killing_vectors(mutant, VECTORS, caps)
    assert search.killing_vectors(mutant, VECTORS, narrow) == []
    assert search.killing_checks(mutant, 100, 1, narrow) == ((), 0)
