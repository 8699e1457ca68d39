"""The ledger: what it refuses, in one clear line each, and the command that shows and verifies it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from secagg_spec import cli, ledger, resources, schemas
from secagg_spec.ledger import (
    BrokenEntry,
    BrokenFile,
    BrokenProof,
    Claim,
    DuplicateClaim,
    LedgerError,
    MissingEvidence,
    Tally,
    UnknownClause,
)

HEAD = 'paper = "test"\ntitle = "A paper"\n'
FIELDS = {
    "id": '"TST-1"',
    "place": '"eq. (1)"',
    "statement": '"One is one."',
    "kind": '"identity"',
    "verdict": '"confirmed"',
    "evidence": '{ proof = "field_size" }',
    "clauses": "[]",
}


def entry(**changed: str | None) -> str:
    """An entry of the ledger, with changed fields; None leaves a field out."""
    fields = {name: text for name, text in {**FIELDS, **changed}.items() if text is not None}
    return "[[claim]]\n" + "".join(f"{name} = {text}\n" for name, text in fields.items())


def load(folder: Path, text: str, name: str = "test.toml") -> ledger.Ledger:
    (folder / name).write_text(text, encoding="utf-8")
    return ledger.load(folder)


def test_a_good_entry_is_read(tmp_path: Path) -> None:
    book = load(tmp_path, HEAD + entry(statement='"""\nOne\n  is one."""', clauses='["MDS-02"]'))
    claim = book.claim("TST-1")
    assert (claim.paper, claim.statement, claim.clauses, claim.proof) == (
        "test",
        "One is one.",
        ("MDS-02",),
        "field_size",
    )
    assert book.of("test") == (claim,)


ONE = "counterexample = { q = 5 }\n"
BAD = [
    ("paper = ", BrokenFile, "test.toml is not TOML: "),
    ('paper = "test"\n' + entry(), BrokenEntry, "test.toml: title: is missing"),
    (
        'paper = "else"\ntitle = "A paper"\n' + entry(),
        BrokenEntry,
        "test.toml: paper = 'else': must be the name of the",
    ),
    (HEAD + "claim = 3", BrokenEntry, "test.toml: claim: must be of type array, and is 3"),
    (HEAD + "claim = [3]", BrokenEntry, "test.toml: claim 1: must be of type object, and is 3"),
    (HEAD + "claim = []", BrokenEntry, "test.toml: claim: must not be empty"),
    (
        HEAD + "more = 1\n" + entry(),
        BrokenEntry,
        "test.toml: more: there is no such field; the fields are paper, title",
    ),
    (
        HEAD + entry(verdict='"proven"'),
        BrokenEntry,
        "test.toml: TST-1: verdict: 'proven' is not one of confirmed, cond",
    ),
    (HEAD + entry(verdict="3"), BrokenEntry, "test.toml: TST-1: verdict: must be of type string, and is 3"),
    (HEAD + entry(verdict=None), BrokenEntry, "test.toml: TST-1: verdict: is missing"),
    (HEAD + entry(kind='"theorem"'), BrokenEntry, "test.toml: TST-1: kind: 'theorem' is not one of definition, ident"),
    (HEAD + entry(id=None), BrokenEntry, "test.toml: claim 1: id: is missing"),
    (HEAD + entry(id='"one"'), BrokenEntry, "test.toml: one: id: 'one' does not fit the pattern"),
    (HEAD + entry(statement='" "'), BrokenEntry, "test.toml: TST-1: statement: must not be empty"),
    (HEAD + entry(proved='"yes"'), BrokenEntry, "test.toml: TST-1: proved: there is no such field; the fields are id"),
    (HEAD + entry(verdict='"conditional"'), BrokenEntry, "test.toml: TST-1: condition: is missing"),
    (
        HEAD + entry(verdict='"conditional"', condition='"x"'),
        BrokenEntry,
        "test.toml: TST-1: counterexample: is missing",
    ),
    (HEAD + entry(verdict='"refuted"', repair='"x"'), BrokenEntry, "test.toml: TST-1: counterexample: is missing"),
    (HEAD + entry(verdict='"refuted"') + ONE, BrokenEntry, "test.toml: TST-1: repair: is missing"),
    (HEAD + entry(verdict='"imprecise"'), BrokenEntry, "test.toml: TST-1: repair: is missing"),
    (HEAD + entry(verdict='"unconfirmed"'), BrokenEntry, "test.toml: TST-1: numbers: is missing"),
    (HEAD + entry() + ONE, BrokenEntry, "test.toml: TST-1: counterexample: must not be given here"),
    (HEAD + entry(evidence=None), MissingEvidence, "test.toml: TST-1: evidence: is missing"),
    (HEAD + entry(evidence="{}"), MissingEvidence, "test.toml: TST-1: evidence: has 0 fields"),
    (HEAD + entry(evidence='{ proof = "a", none = "b" }'), MissingEvidence, "test.toml: TST-1: evidence: has 2 fields"),
    (HEAD + entry(evidence='{ none = "" }'), MissingEvidence, "test.toml: TST-1: evidence: none: must not be empty"),
    (
        HEAD + entry(evidence='{ proof = "../x" }'),
        MissingEvidence,
        "test.toml: TST-1: evidence: proof: '../x' does not",
    ),
    (
        HEAD + entry(evidence='{ proof = "field_sise" }'),
        MissingEvidence,
        "there is no proof 'field_sise'; close to it: f",
    ),
    (HEAD + entry(verdict='"open"'), MissingEvidence, "test.toml: TST-1: evidence: none: is missing"),
    (
        HEAD + entry(clauses='["MDS-99"]'),
        UnknownClause,
        "test.toml: TST-1: clauses: the text has no clause MDS-99; clo",
    ),
    (HEAD + entry(clauses='["MDS"]'), BrokenEntry, "test.toml: TST-1: clauses: 0: 'MDS' does not fit the pattern"),
    (HEAD + entry(clauses='["MDS-01", "MDS-01"]'), BrokenEntry, "test.toml: TST-1: clauses: names something twice"),
    (HEAD + entry() + entry(), DuplicateClaim, "test.toml: TST-1 stands twice in the ledger"),
]


@pytest.mark.parametrize(("text", "kind", "said"), BAD)
def test_a_bad_file_is_refused_in_one_line(text: str, kind: type[LedgerError], said: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as raised:
        load(tmp_path, text)
    assert type(raised.value) is kind
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_one_id_in_two_files_is_refused(tmp_path: Path) -> None:
    load(tmp_path, HEAD + entry())
    with pytest.raises(DuplicateClaim, match=r"^two\.toml: TST-1 stands twice"):
        load(tmp_path, HEAD.replace("test", "two") + entry(), "two.toml")


def test_a_folder_without_claims_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="holds no claims"):
        ledger.load(tmp_path)
    (tmp_path / "test.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BrokenFile, match=r"^test\.toml cannot be read: "):
        ledger.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CLAIMS = (", "SyntaxError"),
        ("CLAIMS = ()", "prove"),
        ("def prove(report): return {}", "CLAIMS"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
    ],
)
def test_a_file_that_is_no_proof_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(text, encoding="utf-8")
    with pytest.raises(BrokenProof, match=rf"^bad\.py is no proof: .*{said}") as raised:
        ledger.load_proof("bad", tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("return {}", BrokenProof, r"finds \[\] and names \['TST-1'\]"),
        ("return {'TST-1': None}", BrokenProof, "checked nothing"),
        ("return 1 // 0", ledger.ProofFailed, "broke: ZeroDivisionError"),
        ("report.check(1 == 2, 'one is two')", ledger.ProofFailed, "this does not hold: one is two"),
    ],
)
def test_a_proof_that_proves_nothing_does_not_pass(text: str, kind: type[Exception], said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(f"CLAIMS = ('TST-1',)\ndef prove(report):\n    {text}\n", encoding="utf-8")
    with pytest.raises(kind, match=said):
        ledger.run(ledger.load_proof("bad", tmp_path))


def test_loading_a_proof_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("CLAIMS = ()\ndef prove(report): ...\n", encoding="utf-8")
    ledger.load_proof("good", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["good.py"]


def test_a_proof_that_does_not_decide_the_claim_is_refused() -> None:
    claim = dataclasses.replace(ledger.load().claim("BAS-Q"), proof="thresholds")
    with pytest.raises(BrokenProof, match=r"thresholds\.py decides BAS-UT, and not BAS-Q"):
        ledger.verify(claim)


def test_a_claim_without_a_proof_says_why(tmp_path: Path) -> None:
    book = load(tmp_path, HEAD + entry(verdict='"open"', evidence='{ none = "needs a training run" }'))
    with pytest.raises(MissingEvidence, match="TST-1 has no proof: needs a training run"):
        ledger.verify(book.claim("TST-1"))


@pytest.mark.parametrize(
    ("cases", "verdict", "exact"),
    [
        ([], "open", True),
        ([(True, True)], "confirmed", True),
        ([(True, True), (True, False)], "confirmed", False),
        ([(True, True), (False, False)], "conditional", True),
        ([(True, True), (False, True)], "refuted", False),
        ([(False, False)], "refuted", True),
        ([(True, False), (False, False)], "conditional", False),
    ],
)
def test_a_tally_reaches_the_verdict(cases: list[tuple[bool, bool]], verdict: str, exact: bool) -> None:
    tally = Tally()
    for number, (holds, condition) in enumerate(cases):
        tally.add({"case": number}, holds, condition=condition)
    assert (tally.verdict, tally.exact) == (verdict, exact)
    failing = [number for number, (holds, _) in enumerate(cases) if not holds]
    assert tally.against == ({"case": failing[0]} if failing else None)


# ------------------------------------------------------------------------------------------------- the real ledger


SCHEMA = schemas.load(resources.root("spec") / "claims" / "schema.json")


def test_the_schema_knows_the_verdicts_and_the_fields_of_a_claim() -> None:
    properties = SCHEMA["properties"]["claim"]["items"]["properties"]
    assert tuple(properties["verdict"]["enum"]) == ledger.VERDICTS
    fields = {field.name for field in dataclasses.fields(Claim)} - {"paper", "proof", "no_proof"}
    assert set(properties) == fields | {"evidence"}


def test_the_ledger_holds_the_claims_and_each_has_a_proof_or_is_open() -> None:
    book = ledger.load()
    assert set(book.papers) == {path.stem for path in (resources.root("spec") / "claims").glob("*.toml")}
    open_ones = {claim.id for claim in book.claims.values() if claim.verdict == "open"}
    assert {claim.id for claim in book.claims.values() if not claim.proof} == open_ones
    assert open_ones == {"BAS-38X", "BAS-HYP", "BASA-ABE", "HET-54X", "HET-FIG34", "HET-REM6", "MRS-APP"}


# ----------------------------------------------------------------------------------------------------- the command


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command in this process; return its exit code and what it printed."""
    try:
        code = cli.main(["claims", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_table_names_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys)
    assert code == 0
    for claim in ledger.load().claims.values():
        assert f"  {claim.id} " in out
    assert max(map(len, out.splitlines())) <= 110


def test_one_paper_and_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--paper", "derived", "--list")
    assert code == 0
    assert out.startswith("UNI-RANK\tconfirmed\trank_criterion\nUNI-QUORUM\tconfirmed\tquorum\n")
    assert len(out.splitlines()) == len(ledger.load().of("derived"))


def test_a_claim_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "BAS-EQ6")
    assert code == 0
    assert out.startswith("BAS-EQ6  conditional\n")
    for part in ("eq. (6)", "points = [0, 1, 2]", "proofs/vandermonde_code.py", "MDS-02"):
        assert part in out


@pytest.mark.parametrize("arguments", [("BAS-Q", "--verify"), ("--verify", "BAS-Q")])
def test_a_claim_is_verified(capsys: pytest.CaptureFixture[str], arguments: tuple[str, str]) -> None:
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    assert "4294967293 = 9241 * 464773" in out
    assert out.endswith("verdict reached: confirmed, as in the ledger\n")


def test_a_claim_that_experiments_leave_undecided_says_at_which_scale(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "BAS-FIG2", "--verify")
    assert (code, err) == (0, "")
    assert out.startswith("BAS-FIG2  unconfirmed\n")
    assert "scale of basecagg-fig2" in out
    assert out.endswith("verdict reached: unconfirmed, as in the ledger\n")


def test_an_open_claim_says_what_would_decide_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "BAS-38X", "--verify")
    assert (code, err) == (0, "")
    assert out.startswith("BAS-38X  open\n")
    assert "none: it is cited from the paper on FedBuff" in out
    assert out.endswith("there is no proof to run\n")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with one claim and one proof, in place of the real ones."""
    (tmp_path / "spec" / "claims").mkdir(parents=True)
    (tmp_path / "proofs").mkdir()
    schema = resources.root("spec") / "claims" / "schema.json"
    (tmp_path / "spec" / "claims" / "schema.json").write_text(schema.read_text("utf-8"), encoding="utf-8")
    resources.clauses()
    monkeypatch.setattr(resources, "root", lambda part: tmp_path / part)
    return tmp_path


PROOF = '''"""One is one."""
from secagg_spec.ledger import Finding
CLAIMS = ("TST-1",)
def prove(report):
    report.check({check}, "one is one")
    return {{"TST-1": Finding("confirmed", "it is")}}
'''


@pytest.mark.parametrize(
    ("fields", "check", "code", "said"),
    [
        ({}, "True", 0, "verdict reached: confirmed, as in the ledger"),
        ({}, "False", 1, "the proof FAILS: proofs/one.py: this does not hold: one is one"),
        (
            {"verdict": '"refuted"', "repair": '"x"', "counterexample": "{ q = 5 }"},
            "True",
            1,
            "DISAGREES with the ledger: verdict: the ledger says refuted, the proof finds confirmed",
        ),
        ({"numbers": "{ q = 5 }"}, "True", 1, 'DISAGREES with the ledger: numbers: the ledger says {"q": 5}'),
    ],
)
def test_a_proof_that_disagrees_gives_code_1(
    capsys: pytest.CaptureFixture[str], house: Path, fields: dict[str, str], check: str, code: int, said: str
) -> None:
    text = HEAD + entry(**{**fields, "evidence": '{ proof = "one" }'})
    (house / "spec" / "claims" / "test.toml").write_text(text, encoding="utf-8")
    (house / "proofs" / "one.py").write_text(PROOF.format(check=check), encoding="utf-8")
    found, out, _ = call(capsys, "TST-1", "--verify")
    assert found == code
    assert said in out
    found, out, _ = call(capsys, "--verify")
    assert found == code
    assert f"{1 - code} of 1 verdicts stand" in out


def test_claims_without_a_proof_are_counted_apart(capsys: pytest.CaptureFixture[str], house: Path) -> None:
    text = HEAD + entry(evidence='{ proof = "one" }')
    text += entry(id='"TST-2"', verdict='"open"', evidence='{ none = "needs a training run" }')
    (house / "spec" / "claims" / "test.toml").write_text(text, encoding="utf-8")
    (house / "proofs" / "one.py").write_text(PROOF.format(check="True"), encoding="utf-8")
    code, out, _ = call(capsys, "--verify")
    assert code == 0
    assert "TST-2  open         no proof: needs a training run\n" in out
    assert out.endswith("1 of 1 verdicts stand; 1 without a proof\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["BAS-EQ66"], "there is no claim 'BAS-EQ66'; close to it: BAS-EQ6"),
        (["bas-eq6"], "there is no claim 'bas-eq6'; close to it: BAS-EQ6"),
        (["nothing", "--verify"], "there is no claim 'nothing'; none of the"),
        (["--paper", "x"], "there is no paper 'x'; the papers are "),
        (["BAS-EQ6", "--paper", "derived"], "BAS-EQ6 is a claim of basecagg, not of derived"),
        (["BAS-EQ6", "--list"], "--list takes no ID"),
        (["--list", "--verify"], "--list and --verify do not go together"),
        (["--wrong"], "--wrong"),
        (["A", "B"], "B"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert said in err


def test_a_broken_ledger_is_answered_in_one_line(capsys: pytest.CaptureFixture[str], house: Path) -> None:
    (house / "spec" / "claims" / "test.toml").write_text(HEAD + entry(verdict='"proven"'), encoding="utf-8")
    code, out, err = call(capsys)
    assert (code, out) == (2, "")
    assert err.startswith("secagg-spec claims: test.toml: TST-1: verdict: 'proven' is not one of")
    assert len(err.strip().splitlines()) == 1
