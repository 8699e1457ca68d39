"""The entries of the ledger: what is refused, in one clear line each, and what the real ones have."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from secagg_spec import resources, schemas
from secagg_spec.ledger import entries
from secagg_spec.ledger.entries import Claim
from secagg_spec.ledger.errors import (
    BrokenEntry,
    BrokenFile,
    DeadLink,
    DuplicateClaim,
    LedgerError,
    MissingEvidence,
    UnknownClause,
)
from tests.ledger.forms import HEAD, bound, entry, load


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
WRONG = {"verdict": '"refuted"', "repair": '"x"', "matters": '"x"'}
UNDECIDED = {"verdict": '"open"', "decides": '"x"', "method": None, "scope": None}
BAD = [
    ("paper = ", BrokenFile, "is not TOML: "),
    ('paper = "test"\n' + entry(), BrokenEntry, "title: is missing"),
    (
        'paper = "else"\ntitle = "A paper"\n' + entry(),
        BrokenEntry,
        "paper = 'else': must be the name of the",
    ),
    (HEAD + "claim = 3", BrokenEntry, "claim: must be of type array, and is 3"),
    (HEAD + "claim = [3]", BrokenEntry, "claim 1: must be of type object, and is 3"),
    (HEAD + "claim = []", BrokenEntry, "claim: must not be empty"),
    (
        HEAD + "more = 1\n" + entry(),
        BrokenEntry,
        "more: there is no such field; the fields are paper, title",
    ),
    (
        HEAD + entry(verdict='"proven"'),
        BrokenEntry,
        "TST-1: verdict: 'proven' is not one of confirmed, cond",
    ),
    (HEAD + entry(verdict="3"), BrokenEntry, "TST-1: verdict: must be of type string, and is 3"),
    (HEAD + entry(verdict=None), BrokenEntry, "TST-1: verdict: is missing"),
    (HEAD + entry(kind='"theorem"'), BrokenEntry, "TST-1: kind: 'theorem' is not one of definition, ident"),
    (HEAD + entry(id=None), BrokenEntry, "claim 1: id: is missing"),
    (HEAD + entry(id='"one"'), BrokenEntry, "one: id: 'one' does not fit the pattern"),
    (HEAD + entry(statement='" "'), BrokenEntry, "TST-1: statement: must not be empty"),
    (HEAD + entry(proved='"yes"'), BrokenEntry, "TST-1: proved: there is no such field; the fields are id"),
    (HEAD + entry(verdict='"conditional"'), BrokenEntry, "TST-1: condition: is missing"),
    (
        HEAD + entry(verdict='"conditional"', condition='"x"', matters='"x"'),
        BrokenEntry,
        "TST-1: counterexample: is missing",
    ),
    (HEAD + entry(**WRONG), BrokenEntry, "TST-1: counterexample: is missing"),
    (HEAD + entry(verdict='"refuted"') + ONE, BrokenEntry, "TST-1: repair: is missing"),
    (HEAD + entry(verdict='"imprecise"'), BrokenEntry, "TST-1: repair: is missing"),
    (HEAD + entry(verdict='"imprecise"', repair='"x"'), BrokenEntry, "TST-1: matters: is missing"),
    (HEAD + entry(verdict='"refuted"', repair='"x"') + ONE, BrokenEntry, "TST-1: matters: is missing"),
    (HEAD + entry(method=None), BrokenEntry, "TST-1: method: is missing"),
    (HEAD + entry(scope=None), BrokenEntry, "TST-1: scope: is missing"),
    (HEAD + entry(method='"library"'), BrokenEntry, "TST-1: method: 'library' is not one of symbolic, matrices"),
    (HEAD + entry(second='["guess"]'), BrokenEntry, "TST-1: second: 0: 'guess' is not one of symbolic, matrices"),
    (HEAD + entry(second="[]"), BrokenEntry, "TST-1: second: must not be empty"),
    (HEAD + entry(second='["enumeration"]'), BrokenEntry, "TST-1: second: enumeration is the method itself, and no s"),
    (HEAD + entry(evidence='{ none = "x" }'), BrokenEntry, "TST-1: method: must not be given here"),
    (HEAD + entry(new='"x"'), BrokenEntry, "TST-1: new: must not be given here: it is for results of this project"),
    (
        HEAD + entry(numbers="{ q = 2020-01-01 }"),
        BrokenEntry,
        "TST-1: numbers: 2020-01-01 is neither",
    ),
    (HEAD + entry(numbers="{ q = [nan] }"), BrokenEntry, "TST-1: numbers: nan is neither text nor a number"),
    (HEAD + entry(note='"as in MDS-98"'), DeadLink, "TST-1: note: there is no claim or clause MDS-98"),
    (HEAD + entry(scope='"as in TST-2"'), DeadLink, "TST-1: scope: there is no claim or clause TST-2"),
    (HEAD + entry(repair='"see spec/lightsecag.md"'), DeadLink, "TST-1: repair: there is no file spec/lightsecag.md"),
    (HEAD + entry(note='"as in TSTT-1"'), DeadLink, "TST-1: note: there is no claim or clause TSTT-1; close to it: T"),
    (HEAD + entry(numbers='{ q = ["as in MDS-98"] }'), DeadLink, "TST-1: numbers: there is no claim or clause MDS-98"),
    (HEAD + entry(**WRONG) + 'counterexample = { "TST-2" = 1 }', DeadLink, "TST-1: counterexample: there is no claim"),
    (HEAD + entry(**UNDECIDED, evidence='{ none = "see TST-2" }'), DeadLink, "TST-1: evidence: there is no claim or c"),
    (HEAD + entry(verdict='"unconfirmed"'), BrokenEntry, "TST-1: numbers: is missing"),
    (HEAD + entry(verdict='"unconfirmed"', numbers="{ q = 5 }"), BrokenEntry, "TST-1: decides: is missing"),
    (
        HEAD + entry(**{**UNDECIDED, "decides": None}, evidence='{ none = "x" }'),
        BrokenEntry,
        "TST-1: decides: is missing",
    ),
    (HEAD + entry(decides='"x"'), BrokenEntry, "TST-1: decides: must not be given here"),
    (HEAD + entry(**WRONG, decides='"x"') + ONE, BrokenEntry, "TST-1: decides: must not be given here"),
    (HEAD + entry(quote=f'"{"a " * 26}"'), BrokenEntry, "TST-1: quote: has 26 words: at most 25 are quoted"),
    (HEAD + entry(quote=f'"{"a " * 13}...{"a " * 13}"'), BrokenEntry, "TST-1: quote: has 26 words: at most 25 are q"),
    (HEAD + entry() + ONE, BrokenEntry, "TST-1: counterexample: must not be given here"),
    (HEAD + entry(evidence=None), MissingEvidence, "TST-1: evidence: is missing"),
    (HEAD + entry(evidence="{}"), MissingEvidence, "TST-1: evidence: has 0 fields"),
    (HEAD + entry(evidence='{ proof = "a", none = "b" }'), MissingEvidence, "TST-1: evidence: has 2 fields"),
    (
        HEAD + entry(evidence='{ none = "" }', method=None, scope=None),
        MissingEvidence,
        "TST-1: evidence: none: must not be empty",
    ),
    (
        HEAD + entry(evidence='{ proof = "../x" }'),
        MissingEvidence,
        "TST-1: evidence: proof: '../x' does not",
    ),
    (
        HEAD + entry(evidence='{ proof = "field_sise" }'),
        MissingEvidence,
        "there is no proof 'field_sise'; close to it: f",
    ),
    (
        HEAD + entry(**UNDECIDED),
        MissingEvidence,
        "TST-1: evidence: none: is missing",
    ),
    (
        HEAD + entry(clauses='["MDS-99"]'),
        UnknownClause,
        "TST-1: clauses: the text has no clause MDS-99; clo",
    ),
    (HEAD + entry(clauses='["MDS"]'), BrokenEntry, "TST-1: clauses: 0: 'MDS' does not fit the pattern"),
    (HEAD + entry(clauses='["MDS-01", "MDS-01"]'), BrokenEntry, "TST-1: clauses: names something twice"),
    (HEAD + entry(formal="[]"), BrokenEntry, "TST-1: formal: must not be empty"),
    (HEAD + entry(formal=bound(covers=None)), BrokenEntry, "TST-1: formal: 0: covers: is missing"),
    (HEAD + entry(formal=bound(covers=" ")), BrokenEntry, "TST-1: formal: 0: covers: must not be empty"),
    (HEAD + entry(formal=bound(digest=None)), BrokenEntry, "TST-1: formal: 0: digest: is missing"),
    (HEAD + entry(formal=bound(digest="x")), BrokenEntry, "TST-1: formal: 0: digest: 'x' does not fit the pattern"),
    (HEAD + entry(formal=bound(theorem="quorum")), BrokenEntry, "TST-1: formal: 0: theorem: 'quorum' does not fit"),
    (HEAD + entry(formal=bound(covers="as MDS-98")), DeadLink, "TST-1: formal: there is no claim or clause MDS-98"),
    (
        HEAD + entry(formal=bound(theorem="Quorum.quorums")),
        DeadLink,
        "TST-1: formal: there is no theorem Quorum.quorums; close to it: Quorum.quorum",
    ),
    (
        HEAD + entry(formal=f"[{bound()[1:-1]}, {bound()[1:-1]}]"),
        BrokenEntry,
        "TST-1: formal: Quorum.quorum is named twice",
    ),
    (HEAD + entry(evidence=f'{{ proof = "{"a" * 300}" }}'), MissingEvidence, "TST-1: evidence: there is no proof 'aaa"),
    (HEAD + entry(note=f'"spec/{"a" * 300}.md"'), DeadLink, "TST-1: note: there is no file spec/aaa"),
    (HEAD + entry() + entry(), DuplicateClaim, "TST-1: id: is in the ledger twice"),
]


@pytest.mark.requirement("CLM-01", "CLM-02", "CLM-03", "CLM-04", "CLM-09", "CLM-13", "CLM-17", "CLM-26")
@pytest.mark.parametrize(("text", "kind", "said"), BAD)
def test_a_bad_file_is_refused_in_one_line_with_its_number(
    text: str, kind: type[LedgerError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(LedgerError) as raised:
        load(tmp_path, text)
    assert type(raised.value) is kind
    match = re.fullmatch(r"test\.toml(?::(\d+))?:? (.*)", str(raised.value))
    assert match
    assert said in match[2]
    assert match[1]
    field = re.search(r"TST-1: (\w+):", match[2])
    line = text.splitlines()[int(match[1]) - 1]
    assert line.startswith((field[1], "[[claim]]") if field else ("paper", "claim", "more", "[[claim]]", "id"))


@pytest.mark.requirement("CLM-03")
def test_names_that_only_look_like_ids_are_no_links(tmp_path: Path) -> None:
    load(tmp_path, HEAD + entry(note='"CIFAR-10 under AES-256 or CP-ABE, TST-1 and MDS-02"'))


@pytest.mark.requirement("CLM-02", "CLM-04")
def test_one_id_in_two_files_is_refused(tmp_path: Path) -> None:
    load(tmp_path, HEAD + entry())
    with pytest.raises(DuplicateClaim, match=r"^two\.toml:4: TST-1: id: is in the ledger twice"):
        load(tmp_path, HEAD.replace("test", "two") + entry(), "two.toml")


@pytest.mark.requirement("CLM-13")
def test_a_result_of_this_project_says_what_it_adds(tmp_path: Path) -> None:
    head = HEAD.replace("test", "derived")
    with pytest.raises(BrokenEntry, match=r"^derived\.toml:3: TST-1: new: is missing"):
        load(tmp_path, head + entry(), "derived.toml")
    assert load(tmp_path, head + entry(new='"more"'), "derived.toml").claim("TST-1").new == "more"


@pytest.mark.requirement("CLM-26")
def test_25_words_of_a_paper_are_quoted_and_none_of_this_project(tmp_path: Path) -> None:
    words = "a " * 25
    assert load(tmp_path, HEAD + entry(quote=f'"... {words}"')).claim("TST-1").quote.count("a") == 25
    ours = HEAD.replace("test", "derived") + entry(id='"TST-2"', new='"more"', quote='"a"')
    with pytest.raises(BrokenEntry, match=r"^derived\.toml:\d+: TST-2: quote: must not be given here: no paper says"):
        load(tmp_path, ours, "derived.toml")


@pytest.mark.requirement("CLM-04")
def test_the_line_is_that_of_the_field_behind_texts_of_several_lines(tmp_path: Path) -> None:
    text = (
        HEAD
        + entry(statement='"""\nkind = 3\n[[claim]]\n"""', numbers="{ q = 1 }")
        + "[claim.counterexample]\nkind = 1\n"
    )
    with pytest.raises(BrokenEntry, match=r"^test\.toml:17: TST-1: counterexample: must not be given here"):
        load(tmp_path, text)
    text = HEAD + '# """\n' + entry().replace("]]\n", " ]] # one\n") + entry(id='"TST-0"', kind='"theorem"')
    with pytest.raises(BrokenEntry, match=r"^test\.toml:18: TST-0: kind: 'theorem' is not one of"):
        load(tmp_path, text)
    text = HEAD + entry(id='"TST-0"', statement="""'''\n[[claim]]\n'''""") + entry(kind='"theorem"')
    with pytest.raises(BrokenEntry, match=r"^test\.toml:19: TST-1: kind: 'theorem' is not one of"):
        load(tmp_path, text)


@pytest.mark.requirement("CLM-04")
@pytest.mark.parametrize("sign", ["\u0085", "\u2028", "\u2029"])
def test_a_line_of_a_file_ends_with_a_line_feed_alone(tmp_path: Path, sign: str) -> None:
    at = (HEAD + entry(statement=f'"a{sign}b"', kind='"theorem"')).split("\n").index('kind = "theorem"') + 1
    with pytest.raises(BrokenEntry, match=rf"^test\.toml:{at}: TST-1: kind: 'theorem' is not one of"):
        load(tmp_path, HEAD + entry(statement=f'"a{sign}b"', kind='"theorem"'))
    with pytest.raises(BrokenFile, match=r"^test\.toml:2: is not TOML: .*end of document"):
        load(tmp_path, f'# a{sign}b\nx = """\n')


@pytest.mark.requirement("CLM-04")
@pytest.mark.parametrize("field", ['"paper"', "  paper"])
def test_a_field_may_be_written_in_quotes_or_behind_spaces(tmp_path: Path, field: str) -> None:
    text = HEAD.replace("paper =", f"{field} =") + entry()
    assert "TST-1" in load(tmp_path, text).claims
    with pytest.raises(BrokenEntry, match=r"^test\.toml:1: paper = 'other': must be the name of the file, 'test'$"):
        load(tmp_path, text.replace('"test"', '"other"', 1))


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    assert "TST-1" in load(tmp_path, f"\ufeff{HEAD}{entry()}").claims


def test_a_folder_without_claims_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="holds no claims"):
        entries.load(tmp_path)
    (tmp_path / "test.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BrokenFile, match=r"^test\.toml:1: cannot be read: it is not UTF-8"):
        entries.load(tmp_path)


SCHEMA = schemas.load(resources.root("spec") / "claims" / "schema.json")


def test_the_schema_knows_the_verdicts_and_the_fields_of_a_claim() -> None:
    properties = SCHEMA["properties"]["claim"]["items"]["properties"]
    assert tuple(properties["verdict"]["enum"]) == entries.VERDICTS
    fields = {field.name for field in dataclasses.fields(Claim)} - {"paper", "proof", "no_proof"}
    assert set(properties) == fields | {"evidence"}


def test_the_text_and_the_schema_ask_for_the_same_fields_of_each_verdict() -> None:
    item = SCHEMA["properties"]["claim"]["items"]
    rules = [rule for rule in item["allOf"] if "const" in rule["if"]["properties"].get("verdict", {})]
    asked = {rule["if"]["properties"]["verdict"]["const"]: rule["then"].get("required", []) for rule in rules}
    page = (resources.root("spec") / "ledger.md").read_text(encoding="utf-8")
    rows = page.partition("| verdict | meaning |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [row.strip("| ").split(" | ") for row in rows]
    stated = {verdict: more[0].removesuffix(" |").split(", ") if more else [] for verdict, _, *more in cells}
    assert stated == {**asked, "open": [*asked["open"], "the reason why there is no program"]}
    assert tuple(stated) == entries.VERDICTS


def test_the_ledger_holds_the_claims_and_each_has_a_proof_or_is_open() -> None:
    book = entries.load()
    assert set(book.papers) == {path.stem for path in (resources.root("spec") / "claims").glob("*.toml")}
    open_ones = {claim.id for claim in book.claims.values() if claim.verdict == "open"}
    assert {claim.id for claim in book.claims.values() if not claim.proof} == open_ones
    known = "BAS-38X BAS-HYP BAS-POLY BASA-ABE HET-FIG34 HET-REM6 MRS-APP MRS-REM2A MRS-REM2B MRS-REM8 MRS-THM2E"
    assert open_ones == set(known.split())
