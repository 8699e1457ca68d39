"""Claims and theorems are bound: a change of either is told until a person has read both again."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import resources
from secagg_spec.ledger import bindings, entries, theorems
from secagg_spec.ledger.errors import BrokenFile
from tests.ledger.forms import HEAD, bound, call, entry, load

BOOK = entries.load()
THEOREMS = theorems.load()
BOUND = [(claim, one) for claim in BOOK.claims.values() for one in claim.formal]
"""Each claim with each of its theorems."""


@pytest.mark.requirement("CLM-18")
def test_every_claim_is_bound_to_the_theorems_that_stand_today() -> None:
    assert len(BOUND) >= 100
    assert list(bindings.stale(BOOK.claims.values())) == []


@pytest.mark.requirement("CLM-18")
@pytest.mark.parametrize("changed", ["statement", "condition", "repair", "covers", "theorem", "definition"])
def test_a_change_of_a_claim_or_of_its_theorem_is_told(changed: str) -> None:
    for claim, one in BOUND:
        assert_told(claim, one, changed)


def assert_told(claim: entries.Claim, one: entries.Bound, changed: str) -> None:
    """Bind a claim to its theorem, change one of the two, and see that the line says so."""
    theorem = THEOREMS[one.theorem]
    one = dataclasses.replace(one, digest=bindings.digest(claim, one, theorem))
    if changed == "theorem":
        theorem = dataclasses.replace(theorem, statement=theorem.statement.replace("forall", "exists", 1) + " /\\ True")
    elif changed == "definition":
        last = [*theorem.definitions][-1:]
        theorem = dataclasses.replace(theorem, definitions={**theorem.definitions, "".join(last) or "More.one": "= 1"})
    elif changed == "covers":
        one = dataclasses.replace(one, covers=f"{one.covers} and more")
    else:
        words: dict[str, Any] = {changed: f"{getattr(claim, changed)} Not."}
        claim = dataclasses.replace(claim, **words)
    claim = dataclasses.replace(claim, formal=(one,))
    (line,) = bindings.stale([claim], {theorem.name: theorem})
    assert line.startswith(f"{claim.id}: formal: the claim or {one.theorem} changed")
    assert f"secagg-spec claims {claim.id} --bind" in line


@pytest.mark.requirement("CLM-18")
def test_lines_may_be_broken_otherwise() -> None:
    for claim, one in BOUND:
        theorem = THEOREMS[one.theorem]
        wide = dataclasses.replace(theorem, statement=" ".join(theorem.statement.split()))
        assert bindings.digest(claim, one, wide) == one.digest


@pytest.mark.requirement("CLM-18")
def test_a_statement_that_the_prover_prints_otherwise_is_told(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(resources.root("proofs") / "formal", tmp_path / "formal"))
    text = (copy / "statements.txt").read_text(encoding="utf-8")
    (copy / "statements.txt").write_text(text.replace("2 * W <= N + T\n", "2 * W <= N\n", 1), encoding="utf-8")
    told = [line.partition(":")[0] for line in bindings.stale(BOOK.claims.values(), theorems.load(tmp_path))]
    assert told == ["UNI-QUORUM"]
    (copy / "statements.txt").write_text(text.replace("Masks.masked = ", "Masks.other = "), encoding="utf-8")
    with pytest.raises(BrokenFile, match=r"^statements\.txt: Masks\.masked is not there"):
        theorems.load(tmp_path)


def test_without_a_table_there_are_no_theorems(tmp_path: Path) -> None:
    assert theorems.load(tmp_path) == {}


TABLE = """idealises = { x = "y" }
unsaid = { x = "z" }
[[theorem]]
file = "A"
name = "b"
says = "s"
idealises = "x"
"""


@pytest.mark.requirement("CLM-04")
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("theorem", "theorems.toml:1: is not TOML: "),
        ("theorem = []", "theorems.toml: idealises: is missing"),
        (TABLE.replace('"A"', "1"), "theorems.toml: theorem: 0: file: must be of type string, and is 1"),
        (TABLE + "more = 1", "theorems.toml: theorem: 0: more: there is no such field; "),
        (TABLE.replace('= "x"', '= "z"'), "theorems.toml: A.b: idealises: there is no z in [idealises]"),
        (TABLE.replace("{ x =", "{ y =").replace("{ y =", "{ x =", 1), "theorems.toml: A.b: idealises: there is no x"),
        (TABLE + TABLE[TABLE.index("[[") :], "theorems.toml: A.b: is in the file twice"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_a_line(tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "formal").mkdir()
    (tmp_path / "formal" / "theorems.toml").write_text(table, encoding="utf-8")
    (tmp_path / "formal" / "statements.txt").write_text("A.b : nothing\n", encoding="utf-8")
    with pytest.raises(BrokenFile) as raised:
        theorems.load(tmp_path)
    assert str(raised.value).startswith(said)
    with pytest.raises(BrokenFile):
        entries.load(proofs=tmp_path)


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff", "it is not UTF-8 in line 1"), (None, "No such file or directory")]
)
def test_statements_that_cannot_be_read_are_refused_in_a_line(tmp_path: Path, content: bytes | None, said: str) -> None:
    (tmp_path / "formal").mkdir()
    (tmp_path / "formal" / "theorems.toml").write_text(TABLE, encoding="utf-8")
    if content is not None:
        (tmp_path / "formal" / "statements.txt").write_bytes(content)
    with pytest.raises(BrokenFile, match=rf"^statements\.txt: cannot be read: {said}$"):
        theorems.load(tmp_path)


def test_each_theorem_says_what_it_idealises_and_what_it_does_not_say() -> None:
    for theorem in THEOREMS.values():
        assert theorem.idealises
        assert all(theorem.unsaid)
        assert "Arguments" not in theorem.statement
        assert theorem.statement.startswith(f"{theorem.name}\n")


# The command


@pytest.mark.requirement("CLM-17", "CLM-19")
def test_both_texts_are_shown_with_their_digest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "UNI-QUORUM", "--bind")
    claim = BOOK.claim("UNI-QUORUM")
    assert code == 0
    said = " ".join(out.split())
    assert claim.statement in said
    for one in claim.formal:
        assert one.covers in said
        assert f"digest {one.digest}, as stored" in said
        for text in (THEOREMS[one.theorem].statement, *THEOREMS[one.theorem].definitions.values()):
            assert " ".join(text.split()) in said


@pytest.mark.requirement("CLM-18", "CLM-19")
def test_a_digest_that_does_not_fit_is_shown_and_not_stored(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + entry(formal=bound())
    book = load(tmp_path, text)
    with monkeypatch.context() as patched:
        patched.setattr(entries, "load", lambda: book)
        code, out, _ = call(capsys, "TST-1", "--bind")
    (now,) = re.findall(r"digest +([0-9a-f]{16}), and not 0123456789abcdef as stored", out)
    assert code == 1
    assert (tmp_path / "test.toml").read_text(encoding="utf-8") == text
    assert list(bindings.stale(load(tmp_path, HEAD + entry(formal=bound(digest=now))).claims.values())) == []


@pytest.mark.requirement("CLM-19")
@pytest.mark.parametrize("options", [("--bind",), ("--bind", "--all"), ("--bind", "UNI-QUORUM", "--verify")])
def test_digests_are_shown_one_entry_at_a_time(capsys: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    code, out, err = call(capsys, *options)
    assert (code, out) == (2, "")
    assert "--bind takes one ID" in err


def test_a_claim_without_a_theorem_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "BAS-POLY", "--bind")
    assert code == 2
    assert "BAS-POLY names no theorem" in err


@pytest.mark.slow
@pytest.mark.requirement("CLM-18")
@pytest.mark.parametrize("options", [("UNI-QUORUM", "--verify"), ("--verify", "--paper", "derived")])
def test_a_claim_whose_digest_does_not_fit_is_not_verified(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    claim = BOOK.claim("UNI-QUORUM")
    loose = dataclasses.replace(claim, formal=(dataclasses.replace(claim.formal[0], digest="0" * 16),))
    book = dataclasses.replace(BOOK, claims={claim.id: loose})
    monkeypatch.setattr(entries, "load", lambda: book)
    code, out, _ = call(capsys, *options)
    assert code == 1
    assert "UNI-QUORUM: formal: the claim or Quorum.quorum changed since they were bound" in " ".join(out.split())
