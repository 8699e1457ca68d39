"""The command that shows the ledger, runs proofs, and compares the index of a paper with its text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from secagg_spec import cli, resources
from secagg_spec.ledger import entries
from tests.ledger.forms import HEAD, call, entry


@pytest.mark.slow
def test_the_table_names_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--all")
    assert code == 0
    for claim in entries.load().claims.values():
        assert f"  {claim.id} " in out
    assert max(map(len, out.splitlines())) <= 110


def test_the_summary_counts_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys)
    book = entries.load()
    claims = tuple(book.claims.values())
    rows = {cells[0]: cells[1:] for line in out.splitlines() if len(cells := line.split()) == len(entries.VERDICTS) + 2}
    counts = {paper: book.of(paper) for paper in book.papers} | {"all": claims}
    for name, chosen in counts.items():
        expected = [sum(claim.verdict == verdict for claim in chosen) for verdict in entries.VERDICTS]
        assert rows[name] == [*(str(count or "·") for count in expected), str(len(chosen))]
    assert f"{sum(bool(claim.second) for claim in claims)} are also decided by a second method" in out
    assert (
        f"the {len(book.errata())} that fail as written, by the errors behind them: secagg-spec claims --errata\n"
        in out
    )
    assert code == 0
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 110


def test_errata_goes_with_what_its_help_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["claims", "--help"])
    said = capsys.readouterr().out.partition("  --errata ")[2].partition("\n  --")[0]
    named = re.findall("--[a-z]+", said)
    assert named == ["--all", "--single", "--list", "--verify"]
    for option in named[:-1]:
        assert call(capsys, "--errata", option)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (("--verdict", "refuted"), lambda claim: claim.verdict == "refuted"),
        (("--paper", "basa", "--verdict", "open"), lambda claim: claim.paper == "basa" and claim.verdict == "open"),
        (("--errata", "--all"), lambda claim: claim.verdict in entries.ERRATA and claim.paper != entries.OURS),
        (
            ("--errata", "--list", "--paper", "basa"),
            lambda claim: claim.verdict in entries.ERRATA and claim.paper == "basa",
        ),
        (("--single",), lambda claim: claim.proof and not claim.second),
        (("--single", "--list"), lambda claim: claim.proof and not claim.second),
    ],
)
def test_only_the_claims_that_are_asked_for(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], chosen: Callable[[entries.Claim], bool]
) -> None:
    code, out, _ = call(capsys, *options)
    known = entries.load().claims
    assert code == 0
    assert {word for line in out.splitlines() for word in line.split()[:1] if word in known} == {
        claim.id for claim in known.values() if chosen(claim)
    }


@pytest.mark.slow
def test_none_as_asked_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--paper", "derived", "--verdict", "open")
    assert (code, out.splitlines()[0]) == (0, "no claim matches")
    code, out, _ = call(capsys, "--verify", "--paper", "derived", "--verdict", "open")
    assert (code, out) == (0, "0 of 0 verdicts stand\n")


@pytest.mark.requirement("CLM-12")
def test_the_index_is_shown_and_compared_with_texts(capsys: pytest.CaptureFixture[str], house: Path) -> None:
    (house / "spec" / "claims" / "test.toml").write_text(HEAD + entry(), encoding="utf-8")
    (house / "proofs" / "field_size.py").touch()
    code, out, err = call(capsys, "--index")
    assert (code, out, err) == (
        2,
        "",
        "secagg-spec claims: papers/test.toml is missing: the ledger has claims of test\n",
    )
    index = 'paper = "test"\ntext = "test.txt"\n[[pattern]]\nkind = "theorem"\nexpression = "Theorem ([0-9])"\n'
    index += (
        '[[item]]\nname = "theorem 1"\nclaims = ["TST-1"]\n[[item]]\nname = "theorem 2"\nreason = "It says nothing."\n'
    )
    (house / "spec" / "papers" / "test.toml").write_text(index, encoding="utf-8")
    code, out, _ = call(capsys, "--index")
    assert code == 0
    assert "  theorem        2, 1 with claims, 1 with a reason\n" in out
    assert "         1  TST-1\n         2  none: It says nothing.\n" in out
    code, out, err = call(capsys, "--index", "--texts", str(house))
    assert (code, out, err) == (
        2,
        "",
        f"secagg-spec claims: --texts {house}: test.txt cannot be read: No such file or directory\n",
    )
    os.mkfifo(house / "test.txt")
    code, out, err = call(capsys, "--index", "--texts", str(house))
    assert (code, out) == (2, "")
    assert err.endswith("test.txt cannot be read: this is a pipe or a device; a regular file is needed\n")
    (house / "test.txt").unlink()
    (house / "test.txt").write_bytes(b"Theorem 1\n\xff")
    code, out, err = call(capsys, "--index", "--texts", str(house))
    assert (code, out) == (2, "")
    assert err.endswith("test.txt is not UTF-8 in line 2\n")
    (house / "test.txt").write_text("Theorem 1 and Theorem 2", encoding="utf-8")
    code, out, _ = call(capsys, "--index", "--texts", str(house))
    assert code == 0
    assert out.endswith("compared with the texts: no differences\n")
    (house / "test.txt").write_text("Theorem 1 and Theorem 3", encoding="utf-8")
    code, out, _ = call(capsys, "--index", "--texts", str(house))
    assert code == 1
    assert "DIFFERS: test: theorem 3 is in the text, and not in the index\n" in out
    assert "DIFFERS: test: theorem 2 is in the index, and not in the text\n" in out
    assert out.endswith("compared with the texts: 2 differences\n")


@pytest.mark.slow
@pytest.mark.requirement("CLM-12")
def test_the_index_of_one_paper(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = call(capsys, "--index", "--paper", "basa")
    assert (code, out) == call(capsys, "--index", "--paper", "BASA")[:2]
    assert code == 0
    papers = entries.load().papers
    assert [line for line in out.splitlines() if line.startswith(tuple(papers))] == [f"basa: {papers['basa']}"]
    (tmp_path / "basa.txt").write_text("Theorem 1.1. It holds.", encoding="utf-8")
    code, out, _ = call(capsys, "--index", "--paper", "basa", "--texts", str(tmp_path))
    assert code == 1
    assert "DIFFERS: basa: theorem 1.1 is in the text, and not in the index\n" in out


@pytest.mark.slow
def test_one_paper_and_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--paper", "derived", "--list")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    for claim, row in zip(entries.load().of("derived"), rows, strict=True):
        assert row == [claim.id, claim.verdict, claim.proof, claim.method, ",".join(claim.second) or "-"]
    assert len(out.splitlines()) == len(entries.load().of("derived"))


def test_a_claim_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "BAS-EQ6")
    assert code == 0
    assert out.startswith("BAS-EQ6  conditional\n")
    for part in (
        "eq. (6)",
        'in words   "encoded through an (N, U)',
        "points = [0, 1, 2]",
        "proofs/vandermonde_code.py",
        "MDS-02",
    ):
        assert part in out


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("BAS-Q", "--verify"), ("--verify", "BAS-Q")])
def test_a_claim_is_verified(capsys: pytest.CaptureFixture[str], arguments: tuple[str, str]) -> None:
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    assert "4294967293 = 9241 * 464773" in out
    assert out.endswith("verdict reached: confirmed, as in the ledger\n")


@pytest.mark.slow
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
    assert "decides    Runs of FedBuff and of synchronous training" in out
    assert out.endswith("there is no proof to run\n")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with one claim and one proof, in place of the real ones."""
    (tmp_path / "spec" / "claims").mkdir(parents=True)
    (tmp_path / "spec" / "papers").mkdir()
    (tmp_path / "proofs").mkdir()
    for name in ("claims/schema.json", "papers/schema.json"):
        schema = (resources.root("spec") / name).read_text(encoding="utf-8")
        (tmp_path / "spec" / name).write_text(schema, encoding="utf-8")
    resources.clauses()
    monkeypatch.setattr(resources, "root", lambda part: tmp_path / part)
    return tmp_path


PROOF = '''"""One is one."""
from secagg_spec.ledger.proofs import Finding
CLAIMS = {{"TST-1": "enumeration"}}
def prove(report):
    report.check(bool(CLAIMS) == {check}, "one is one")
    return {{"TST-1": Finding("confirmed", "it is")}}
'''


@pytest.mark.parametrize(
    ("fields", "check", "code", "said"),
    [
        ({}, "True", 0, "verdict reached: confirmed, as in the ledger"),
        ({}, "False", 1, "the proof FAILS: proofs/one.py: this does not hold: one is one"),
        (
            {"verdict": '"refuted"', "repair": '"x"', "matters": '"x"', "counterexample": "{ q = 5 }"},
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
    undecided = {"verdict": '"open"', "decides": '"a run"', "method": None, "scope": None}
    text += entry(id='"TST-2"', **undecided, evidence='{ none = "needs a run" }')
    (house / "spec" / "claims" / "test.toml").write_text(text, encoding="utf-8")
    (house / "proofs" / "one.py").write_text(PROOF.format(check="True"), encoding="utf-8")
    code, out, _ = call(capsys, "--verify")
    assert code == 0
    assert "TST-2  open         no proof: needs a run\n" in out
    assert out.endswith("1 of 1 verdicts stand; 1 without a proof\n")


def test_a_claim_is_found_in_small_letters(capsys: pytest.CaptureFixture[str]) -> None:
    found = call(capsys, "bas-eq6")
    assert found[0] == 0
    assert found == call(capsys, "BAS-EQ6")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["BAS-EQ66"], "there is no claim 'BAS-EQ66'; close to it: BAS-EQ6"),
        (["bas-eq66"], "there is no claim 'bas-eq66'; close to it: BAS-EQ6"),
        (["nothing", "--verify"], "there is no claim 'nothing'; none of the"),
        (["--paper", "x"], "there is no paper 'x'; the papers are "),
        (["BAS-EQ6", "--paper", "derived"], "BAS-EQ6 is a claim of basecagg, not of derived"),
        (["BAS-EQ6", "--list"], "--list takes no ID"),
        (["BAS-EQ6", "--all"], "--all takes no ID"),
        (["BAS-EQ6", "--verdict", "open"], "--verdict takes no ID"),
        (["BAS-EQ6", "--paper", "basecagg", "--errata"], "--errata takes no ID"),
        (["--errata", "--verdict", "open"], "--errata and --verdict do not go together: errata are refuted, cond"),
        (["LSA-09"], "LSA-09 is a clause of the text, not a claim: secagg-spec explain LSA-09"),
        (["lsa-09", "--verify"], "lsa-09 is a clause of the text, not a claim: secagg-spec explain LSA-09"),
        (["--index", "--paper", "x"], "--index: x has no index; the papers that have one are basa, basecagg, het"),
        (
            ["--index", "--paper", "derived"],
            "--index: derived has no index; the papers that have one are basa",
        ),
        (["--index", "--all"], "--index takes no ID, and no options except --paper and --texts"),
        (["--verdict", "proven"], "invalid choice: 'proven'"),
        (["--texts", "x"], "--texts needs --index"),
        (["--index", "--texts", ""], "argument --texts: is empty, and must be the name of a file or a folder"),
        (["--index", "--texts", "nowhere"], "--texts nowhere: there is no such folder"),
        (["--index", "--verify"], "--index takes no ID, and no options except --paper and --texts"),
        (["--index", "BAS-EQ6"], "--index takes no ID, and no options except --paper and --texts"),
        (["--list", "--verify"], "--list and --verify do not go together"),
        (["--wrong"], "secagg-spec claims: unrecognized arguments: --wrong (see secagg-spec claims --help)"),
        (["A", "B"], "secagg-spec claims: unrecognized arguments: B (see secagg-spec claims --help)"),
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
    assert err.startswith("secagg-spec claims: test.toml:8: TST-1: verdict: 'proven' is not one of")
    assert len(err.strip().splitlines()) == 1
