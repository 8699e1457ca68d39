"""The theorems that a prover checks: the table, the stored statements and the planted faults fit."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from secagg_spec import resources
from secagg_spec.ledger import entries, theorems
from tests.quick import exhaustive

FORMAL = resources.root("proofs") / "formal"
BOOK = entries.load()


def load(folder: Path) -> ModuleType:
    """Load check.py of a folder, which finds the files beside itself."""
    found = importlib.util.spec_from_file_location("formal_check", folder / "check.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


check = load(FORMAL)


@pytest.fixture(scope="module")
def prover() -> None:
    """Skip where the prover is absent; the tests that need it ask, and collecting tests does not."""
    if reason := check.lacking():
        pytest.skip(f"the theorems are not checked here: {reason}")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the folder, in a place of its own, so that it builds there, with the ledger."""
    shutil.copytree(resources.root("spec") / "claims", tmp_path / "spec" / "claims")
    return Path(shutil.copytree(FORMAL, tmp_path / "proofs" / "formal"))


@pytest.mark.slow
def test_the_table_names_clauses_claims_and_idealisations_that_are_there() -> None:
    table = check.theorems()
    assert len({theorem.full_name for theorem in table}) == len(table) >= 45
    for theorem in table:
        assert set(theorem.clauses) <= set(resources.clauses()), theorem.full_name
        assert theorem.claims == tuple(
            claim.id for claim in BOOK.claims.values() for bound in claim.formal if bound.theorem == theorem.full_name
        )
        assert theorem.idealises in check.idealised(), theorem.full_name
        assert theorem.says.endswith(".")
    assert {theorem.idealises for theorem in table} == set(check.idealised())


@pytest.mark.slow
def test_each_theorem_stands_once_in_its_file_with_what_it_carries() -> None:
    for theorem in check.theorems():
        text = (FORMAL / f"{theorem.file}.v").read_text(encoding="utf-8")
        (before,) = re.findall(rf"(.*)\n(?:Theorem|Corollary|Lemma|Example) {theorem.name}\b", text)
        carried = re.findall(r"[A-Z]+-[A-Z0-9]+", before) if before.startswith("(* Carries ") else []
        assert sorted(carried) == sorted((*theorem.clauses, *theorem.claims)), theorem.full_name


def test_each_theorem_of_a_file_is_in_the_table() -> None:
    named = {theorem.full_name for theorem in check.theorems()}
    for name in check.files():
        text = (FORMAL / f"{name}.v").read_text(encoding="utf-8")
        for theorem in re.findall(r"^(?:Theorem|Corollary|Example) (\w+)", text, re.MULTILINE):
            assert f"{name}.{theorem}" in named


def test_the_stored_statements_are_those_of_the_table() -> None:
    stored = (FORMAL / "statements.txt").read_text(encoding="utf-8")
    shown = [name.rpartition(".")[2] for name in re.findall(r"^(\S+)\s*(?::|\n     :)", stored, re.MULTILINE)]
    for theorem in check.theorems():
        assert theorem.name in shown, theorem.full_name
    printed = [name.rpartition(".")[2] for name in re.findall(r"^(\S+) =", stored, re.MULTILINE)]
    for definition in {name for theorem in check.theorems() for name in theorem.definitions}:
        assert definition.rpartition(".")[2] in printed


def test_each_definition_that_a_statement_rests_on_is_in_the_table() -> None:
    shown = theorems.printed((FORMAL / "statements.txt").read_text(encoding="utf-8"))
    known = check.theorems()
    definitions = set(shown) - {theorem.full_name for theorem in known}
    for theorem in known:
        found: set[str] = set()
        left = [theorem.full_name]
        while left:
            named = set(re.findall(r"\b[A-Z]\w*\.\w+\b", shown[left.pop()])) & definitions - found
            found |= named
            left += named
        assert found <= set(theorem.definitions), theorem.full_name


def test_claims_in_the_table_are_told_to_be_at_the_wrong_place(copy: Path) -> None:
    with (copy / "theorems.toml").open("a", encoding="utf-8") as file:
        file.write('claims = ["UNI-QUORUM"]\n')
    last = re.escape(check.theorems()[-1].full_name)
    with pytest.raises(ValueError, match=rf"^theorems\.toml: {last}: the claims that name a theorem stand"):
        load(copy).theorems()


def test_no_file_has_a_gap() -> None:
    assert check.gaps() == []


@pytest.mark.parametrize(
    "line",
    [
        "Admitted.",
        "Axiom easy : False.",
        "Parameter N : nat.",
        "Parameters N M : nat.",
        "Conjecture easy : False.",
        "Goal False. Abort.",
        "Unset Guard Checking.",
        "Unset Universe Checking.",
        "Proof. admit. Qed.",
        "Proof. give_up. Qed.",
        "#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n.",
        "Load other.",
        "(* a (* nested *) comment *) Axioms a b : False.",
    ],
)
def test_a_gap_is_seen(copy: Path, line: str) -> None:
    with (copy / "Quorum.v").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    module = load(copy)
    assert {gap.partition(":")[0] for gap in module.gaps()} == {"Quorum.v"}
    assert module.main([]) == 1


def test_words_in_comments_are_no_gap(copy: Path) -> None:
    with (copy / "Quorum.v").open("a", encoding="utf-8") as file:
        file.write("(* No Axiom (* and nothing Admitted *) here. *)\n")
    assert load(copy).gaps() == []


def test_without_a_prover_nothing_is_said_to_be_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert (check.main([]), check.main(["--if-there"])) == (77, 0)
    said = capsys.readouterr().out
    assert said.count("NOT checked: there is no coqc") == said.count("apt-get install") == 2


def test_each_planted_fault_fits_its_file() -> None:
    faults = check.mutants()
    assert len({(fault.file, fault.old, fault.new) for fault in faults}) == len(faults) >= 40
    assert {fault.file for fault in faults} <= set(check.files())
    names = {theorem.name for theorem in check.theorems()}
    for fault in faults:
        assert (FORMAL / f"{fault.file}.v").read_text(encoding="utf-8").count(fault.old) == 1, fault
        assert fault.old != fault.new
        assert not fault.needed or fault.needed in names, fault


def test_a_premise_that_is_dropped_has_a_counterexample() -> None:
    for fault in check.mutants():
        dropped = fault.old.startswith("Hypothes") or ("<= #|" in fault.old and "<= #|" in fault.new)
        assert fault.needed or not dropped, fault


def test_a_fault_is_tried_in_its_file_and_in_those_that_rest_on_it_alone() -> None:
    assert check.resting("Fairness") == ["Fairness"]
    assert check.resting("TwinQuantiser") == ["TwinQuantiser", "ExamplesQuantiser"]
    requires = check.required() | {name: needs.split() for name, (needs, _) in check.EXAMPLES.FILES.items()}
    for file in check.files():
        first, *others = check.resting(file)
        assert first == file
        for name in requires:
            assert (name in others) == bool({file, *others} & {*requires[name]}), (file, name)


def test_faults_are_chosen_by_file_and_operation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "refused", lambda mutant: "wrong" if "maxn" in mutant.old else "")
    monkeypatch.setattr(check, "spoilt", lambda operation: "")
    assert check.taken(["Masks", "mds.encode"]) == []
    said = capsys.readouterr().out
    masks = sum(mutant.file == "Masks" for mutant in check.mutants())
    assert f"{masks} of {masks} mutants are refused.\n1 of 1 wrong results in vectors are refused.\n" in said
    assert check.taken([]) == ["wrong"]
    assert f"{len(check.mutants()) - 1} of {len(check.mutants())} mutants are refused." in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"^--only: Mask: the names are .*Masks"):
        check.taken(["Mask"])


@pytest.mark.parametrize(
    ("said", "misprint"),
    [
        ("Error: Syntax error: '.' expected after [gallina]", True),
        ("Error: The reference foo was not found in the current environment.", True),
        ("Error: No applicable tactic.", False),
    ],
)
def test_a_misprint_is_no_fault_that_is_refused(monkeypatch: pytest.MonkeyPatch, said: str, misprint: bool) -> None:
    ran = subprocess.CompletedProcess[str]([], 1, "", said)
    monkeypatch.setattr(check, "coqc", lambda name, folder: ran)
    assert ("is a misprint" in check.refused(check.mutants()[0])) == misprint


@pytest.mark.slow
@pytest.mark.usefixtures("prover")
def test_the_prover_refuses_a_false_theorem_and_a_changed_statement(copy: Path) -> None:
    module = load(copy)
    module.BUILD.mkdir(parents=True)
    shutil.copy(copy / "Quorum.v", module.BUILD)
    assert module.coqc("Quorum", module.BUILD).returncode == 0
    (fault,) = (fault for fault in check.mutants() if fault.needed == "quorum_tight")
    text = (copy / "Quorum.v").read_text(encoding="utf-8")
    (module.BUILD / "Quorum.v").write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    assert module.coqc("Quorum", module.BUILD).returncode != 0


def test_the_ci_installs_the_packages_that_are_named() -> None:
    ci = FORMAL.parents[1] / ".ci" / "run"
    if not ci.exists():
        pytest.skip("this is not a checkout")
    (pattern,) = re.findall(r"sed -n 's/(.*)/\\1/p' proofs/formal/check.py", ci.read_text(encoding="utf-8"))
    pattern = pattern.replace("\\(", "(").replace("\\)", ")")
    (found,) = re.findall(pattern, (FORMAL / "check.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert found == check.PACKAGES
    commands = [line for line in ci.read_text(encoding="utf-8").splitlines() if line.startswith("make")]
    assert commands == ["make formal FORMAL=--if-there", "make test"]


def test_examples_are_chosen_by_rule_from_all_vectors(tmp_path: Path) -> None:
    counts = check.EXAMPLES.write(tmp_path)
    assert set(counts) == set(check.EXAMPLES.operations())
    assert sum(counts.values()) >= 100
    assert min(counts.values()) > 0
    text = "".join((tmp_path / f"{name}.v").read_text(encoding="utf-8") for name in check.EXAMPLES.FILES)
    assert not check.FORBIDDEN.findall(check.without_comments(text))
    names = re.findall(r"^Example (\w+) :", text, re.MULTILINE)
    assert len(set(names)) == len(names) == sum(counts.values())
    known = {vector["id"].replace("-", "_") for vector in check.EXAMPLES.vectors()}
    assert set(names) <= known


@pytest.mark.slow
def test_a_wrong_result_changes_one_example_of_its_operation(tmp_path: Path) -> None:
    right, spoilt = tmp_path / "right", tmp_path / "spoilt"
    right.mkdir()
    spoilt.mkdir()
    check.EXAMPLES.write(right)
    for operation in check.EXAMPLES.operations():
        check.EXAMPLES.write(spoilt, operation)
        changed = [
            (one, other)
            for name in check.EXAMPLES.FILES
            for one, other in zip(
                *((folder / f"{name}.v").read_text().splitlines() for folder in (right, spoilt)), strict=True
            )
            if one != other
        ]
        assert len(changed) == 1, operation
        assert changed[0][1].startswith("Example "), operation


@exhaustive
@pytest.mark.usefixtures("prover")
def test_the_prover_refuses_a_vector_with_a_wrong_result(copy: Path) -> None:
    module = load(copy)
    for path in (module.EXAMPLES.VECTORS, module.BUILD):
        path.mkdir(parents=True)
    asked = ("quantizer.quantize", "quantize.levels")
    few = [v for operation in asked for v in [v for v in check.EXAMPLES.vectors() if v["operation"] == operation][:8]]
    (module.EXAMPLES.VECTORS / "few.json").write_text(json.dumps({"vectors": few}), encoding="utf-8")
    for name in ("Quantiser", "Twin", "TwinQuantiser"):
        needed = {"Twin": ("Code", "Instances", "Counting", "LightSecAgg"), "Quantiser": (), "TwinQuantiser": ()}[name]
        for file in (*sorted(needed, key=module.files().index), name):
            shutil.copy(copy / f"{file}.v", module.BUILD)
            assert module.coqc(file, module.BUILD).returncode == 0, file
    written = module.EXAMPLES.write(module.BUILD)
    assert all(written[operation] for operation in asked)
    assert module.coqc("ExamplesQuantiser", module.BUILD).returncode == 0
    assert [module.spoilt(operation) for operation in asked] == ["", ""]
