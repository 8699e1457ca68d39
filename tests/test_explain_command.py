"""The command explain: every id that a report, a table or the text shows is known, and others get the nearest."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from docs.pages import frameworks
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import cli, history, resources
from secagg_spec.commands import explain, finding, index, meanings
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation import kills
from secagg_spec.conformance.running import suite
from secagg_spec.conformance.running.expectations import VERDICTS
from secagg_spec.errors import UsageError
from secagg_spec.ledger import entries
from tests.conformance import shipped
from tests.quick import part

BUGS = mutants.load()


def explained(capsys: pytest.CaptureFixture[str], id: str) -> str:
    """What the command prints about an id."""
    capsys.readouterr()
    assert cli.main(["explain", id]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("id", "said"),
    [
        (
            "LSA-09",
            [
                "A user MUST refuse a surviving set",
                "spec/lightsecagg.md#5-requirements",
                "small-set-accepted",
                "tests 7 tests (--all names them)",
            ],
        ),
        ("lightsecagg.mask/exact", ["check", "LSA-02: The masked update MUST", "conform -k lightsecagg.mask/exact"]),
        ("mask-is-subtracted", ["mutant", "wrong sum", "LSA-02", "lightsecagg.mask", "idea sign (of a term"]),
        ("masks-with-the-other-sign", ["mask-is-subtracted and recovery-adds-the-mask", "+ masked = field.subtract("]),
        ("all-of-nothing", ["killed by the test tests/ledger/test_methods.py::", "power --search -k all-of-nothing"]),
        ("below_threshold", ["reject code", "Too few users are left", "LSA-09"]),
        ("bad_param", ["says A parameter breaks its constraint. accepted for MOD-01"]),
        ("noncanonical", ["says A number that should be a ring element is not in `[0, R)`. accepted for"]),
        ("inexpressible", ["cannot state what is asked", "ADP-44"]),
        ("inconsistent", ["verdict", "depends on what came before"]),
        ("not run", ["verdict", "the kit gave up before"]),
        ("not_run", ["verdict", "the kit gave up before"]),
        ("BAS-EQ6", ["claim", "conditional", "claims BAS-EQ6 --verify"]),
        ("shamir.share", ["operation", "coefficients"]),
        ("CNF-47", ["clause", "spec/conformance.md#8-the-commands-beside"]),
    ],
)
def test_what_is_said_of_an_id(capsys: pytest.CaptureFixture[str], id: str, said: list[str]) -> None:
    out = " ".join(explained(capsys, id).split())
    assert [part for part in said if part not in out] == []


def test_with_all_the_tests_of_a_clause_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    few = explained(capsys, "LSA-09")
    assert cli.main(["explain", "LSA-09", "--all"]) == 0
    every = capsys.readouterr().out
    assert [line.split()[-1] for line in every.splitlines() if "::" in line] == meanings.tests_of("LSA-09")
    assert "::" not in few


def test_a_clause_names_the_frameworks_that_fail_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pages of the site say the same."""
    for clause, there in frameworks.failing().items():
        assert {line.split()[0] for line in meanings.failing()[clause]} == {*there}
    assert meanings.failing().keys() == frameworks.failing().keys()
    clause = next(iter(meanings.failing()))
    named = " ".join(explained(capsys, clause).split())
    assert f"failed by {'; '.join(meanings.failing()[clause])} " in named
    monkeypatch.setattr(meanings, "failing", dict)
    assert "failed by" not in explained(capsys, clause)


@pytest.mark.parametrize("id", ["basecagg-rounds-root", "AnotherRound", "audit-empty-rounds", "NoSet", "Vectors"])
def test_no_sentence_is_said_twice(capsys: pytest.CaptureFixture[str], id: str) -> None:
    said = re.split(r"(?<=[.;:]) (?:or )?", " ".join(explained(capsys, id).split()))
    parts = [part.strip(" .;:").lower() for part in said if part.count(" ") > 4]
    assert len(parts) > 2
    assert len(parts) == len(set(parts))


def test_a_mutant_for_which_nothing_is_stored_yet_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "load", dict)
    said = " ".join(explained(capsys, "mask-is-subtracted").split())
    assert "killed by not stored yet: secagg-spec power --regenerate -k mask-is-subtracted" in said


def judged() -> set[str]:
    """The clauses that a check or a vector decides."""
    by_vectors = {clause for vector in shipped.VECTORS.values() for clause in vector.clauses}
    return by_vectors | {clause for check in REGISTRY.values() for clause in check.clauses}


@pytest.mark.parametrize("clause", ["SAG-51", "SAG-66", "BSA-37", "RND-01", "LSA-28", "SAG-30", "BSA-21"])
def test_a_clause_that_nothing_decides_is_said_not_to_be_judged(
    capsys: pytest.CaptureFixture[str], clause: str
) -> None:
    out = " ".join(explained(capsys, clause).split())
    assert ("judge it not judged: no check and no vector of the kit decides it" in out) == (clause not in judged())
    assert (f"conform -k {clause} " in out) == (clause in judged())


def test_the_pages_say_of_exactly_the_profiles_without_operations_that_they_are_not_judged() -> None:
    for page in resources.PAGES:
        text = (resources.root("spec") / page).read_text(encoding="utf-8")
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            clauses = set(re.findall(r"^- \[([A-Z]+-\d\d)\]", section, re.MULTILINE))
            if "active profile" in section.partition("\n")[0]:
                assert ("**Not judged yet.**" in section) == (not clauses & judged()), page
            else:
                assert "**Not judged yet.**" not in section, page


@pytest.mark.parametrize("words", [["LSA-09"], ["shamir.share"], ["below", "the", "threshold"]])
def test_the_tests_of_a_clause_alone_can_be_asked_for(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", *words]) == 0
    assert cli.main(["explain", "--all", *words]) == (0 if words == ["LSA-09"] else 2)
    assert ("--all names the tests of a clause" in capsys.readouterr().err) == (words != ["LSA-09"])


def test_a_vector_is_explained_with_and_without_its_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    vector = next(iter(shipped.VECTORS.values()))
    texts = [explained(capsys, name) for name in (vector.id, f"vector/{vector.id}")]
    assert texts[0].partition("\n")[2] == texts[1].partition("\n")[2]
    assert vector.operation in texts[0]


def test_a_clause_is_explained_with_its_versions_also_when_it_is_no_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    book = history.load()
    first, other = book.clauses["LSA-09"][0], history.State("0.3.0", "lightsecagg.md", "0" * 32)
    end = history.State("0.2.0", "lightsecagg.md", withdrawn="LSA-01 says it", instead=("LSA-01",))
    states = {**book.clauses, "LSA-09": (first, other), "LSA-99": (first, end)}
    monkeypatch.setattr(history, "load", lambda: history.History(book.versions, states))
    assert f"since        {first.since}; changed in 0.3.0\n" in explained(capsys, "LSA-09")
    said = " ".join(explained(capsys, "lsa-99").split())
    assert said.startswith(
        f"LSA-99 withdrawn clause was in spec/lightsecagg.md since {first.since} until version 0.2.0"
    )
    assert said.endswith("because LSA-01 says it instead LSA-01")


def test_everything_that_is_shown_somewhere_is_known() -> None:
    names = set(meanings.names())
    flags = {name for book in shipped.VECTOR_FILES for name in book.flags}
    shown = (resources.clauses(), REGISTRY, shipped.VECTORS, flags, BUGS, ALL_CODES, VERDICTS, entries.load().claims)
    assert [set(kind) - names for kind in shown] == [set()] * len(shown)


@pytest.mark.slow
def test_every_id_is_explained_in_lines_of_at_most_100_columns() -> None:
    known = meanings.names()
    for id in [*known[::61], *list(resources.clauses())[::7], *VERDICTS, *ALL_CODES]:
        found = [lines for kind in meanings.KINDS.values() if (lines := kind(id)) is not None]
        assert found, id
        for kind in meanings.KINDS:
            lines = meanings.KINDS[kind](id)
            block = list(explain._block(kind, id, lines)) if lines is not None else ["x", "y"]
            assert len(block) > 1, (kind, id)
            wide = [line for line in block if len(line) > 100 and " " in line[15:].strip()]
            assert {line[15:] for line in wide} <= source_lines(kind, id)


def source_lines(kind: str, id: str) -> set[str]:
    """Return the lines of an edit, which are as long as the source's."""
    lines = meanings.KINDS[kind](id) or ()
    return {line for word, said in lines if word == "the edit" for line in said.splitlines()}


@pytest.mark.parametrize("clause", list(resources.clauses())[::17])
def test_a_clause_stands_where_it_is_said_to_stand(clause: str) -> None:
    where = explain.place(clause)
    page, _, heading = where.partition(" (")
    name = page.removeprefix("spec/").partition("#")[0]
    text = (resources.root("spec") / name).read_text(encoding="utf-8")
    before = text[: text.index(f"- [{clause}]")]
    assert before.count(f" {heading.rstrip(')')}\n") == 1


@pytest.mark.parametrize(
    ("id", "near"),
    [("lsa-9", "LSA-09"), ("lightsecagg.mask/exat", "lightsecagg.mask/exact"), ("shamir.shar", "shamir.share")],
)
def test_an_unknown_id_gets_the_nearest(capsys: pytest.CaptureFixture[str], id: str, near: str) -> None:
    assert cli.main(["explain", id]) == 2
    err = capsys.readouterr().err
    assert f"did you mean {near}?" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("word", "id"),
    [
        ("flower-repaired", "flower-repaired"),
        ("semi-honest", "honest but curious"),
        ("X25519", "KEY-10"),
        ("SecAgg+", "PLN-04"),
    ],
)
def test_a_word_that_is_not_all_letters_is_found_as_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], word: str, id: str
) -> None:
    assert cli.main(["explain", word]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{word!r} is no id; these have the word:\n")
    assert f"\n  {id}   " in out


def test_case_does_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "lsa-09") == explained(capsys, "LSA-09")


@given(st.text(max_size=30))
def test_no_text_ends_the_command_badly(id: str) -> None:
    assert explain.nearest(id, ("LSA-09", "a")).startswith(("did you mean ", "see"))


def test_tests_are_found_by_their_marks() -> None:
    assert "tests/test_explain_command.py::test_what_is_said_of_an_id" not in meanings.tests_of("LSA-09")
    [found] = [name for name in meanings.tests_of("CNF-46") if "same_seed" in name]
    path, _, name = found.partition("::")
    assert f"def {name}(" in (Path(__file__).parents[1] / path).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "among"),
    [
        ("leak", {"leaked", "CNF-30"}),
        ("flower", {"flower", "flower-any"}),
        ("what is a mask", {"mask"}),
        ("dropout", {"dropout"}),
        ("surviving set fewer distinct", {"LSA-09"}),
        ("Erratum HeteroSAg theorem 1", {"HET-THM1"}),
    ],
)
def test_words_find_what_has_them(capsys: pytest.CaptureFixture[str], words: str, among: set[str]) -> None:
    hits = finding.hits(words)
    assert among <= {hit.id for hit in hits[: finding.MOST]}
    out = explained(capsys, words)
    shown = out.splitlines()[2:]
    assert len(shown) == 2 * min(len(hits), finding.MOST) + (len(hits) > finding.MOST)
    assert max(map(len, shown)) <= 100
    for hit in hits[: finding.MOST]:
        assert f"  {hit.id}   {hit.kind}" in out
        assert f"\n      {hit.next}\n" in out


def test_a_word_that_nothing_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    first = explained(capsys, "LSA-02 zzzq").splitlines()[0]
    assert first == "'LSA-02 zzzq' is no id, and nothing has zzzq; these have the other words:"


def test_the_usage_names_one_id_or_several_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "LSA-02", "LSA-01"]) == 2
    with pytest.raises(SystemExit):
        cli.main(["explain", "--help"])
    usage = capsys.readouterr().out.partition("\n\n")[0].split()
    assert " ".join(usage) == "usage: secagg-spec explain [--all] ID secagg-spec explain WORD [WORD …]"


def test_a_theorem_of_the_papers_is_found_by_its_number() -> None:
    meant = {claim.id for claim in entries.load().claims.values() if re.search(r"(?i)\btheorem 1\b(?!\.)", claim.place)}
    assert 3 < len(meant) <= finding.MOST
    assert {hit.id for hit in finding.hits("theorem 1")[: len(meant)]} == meant


def test_a_framework_finds_the_clauses_that_it_fails() -> None:
    failed = {clause for clause, names in meanings.failing().items() if any("flower" in name for name in names)}
    assert failed
    assert failed <= {hit.id for hit in finding.hits("flower")}


def test_each_next_command_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    """One of each kind is run; conform is only known to have the target."""
    first = {hit.kind.split()[-1]: hit for hit in reversed(list(finding._everything()))}
    assert {*first} == {"term", "verdict", "target", "clause", "claim", "erratum", "check"}
    for hit in first.values():
        command = hit.next.split()
        if command[:2] in (["secagg-spec", "explain"], ["secagg-spec", "claims"]):
            assert cli.main(command[1:]) == 0
            assert hit.id in capsys.readouterr().out
        else:
            assert hit.kind in {"term", "target"}


@pytest.mark.slow
def test_what_explain_reads_is_what_is_there_now() -> None:
    """After a change of checks, vectors, mutants, claims or stored results: ``secagg-spec text --regenerate``."""
    assert (resources.root("spec") / index.FILE).read_text(encoding="utf-8") == index.written()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["LSA-09", "leak", "theorem 1", "flower", "lightsecagg.mask/exact", "BAS-EQ6", "shamir.share", "crash"]
)
def test_what_is_explained_loads_neither_checks_nor_numbers(words: str) -> None:
    asked = f"import sys; from secagg_spec import cli; cli.main(['explain', *{words.split()}]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    *said, loaded = done.stdout.splitlines()
    assert len(said) > 1
    assert "secagg_spec.commands.meanings" in loaded.split()
    assert {"numpy", "hypothesis", "secagg_spec.conformance.checks"} & {*loaded.split()} == set()


def test_a_vector_and_a_flag_are_named_before_the_vectors_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "_files", lambda: 1 / 0)
    meanings._vectors.cache_clear()
    flag = next(iter(shipped.VECTOR_FILES[0].flags))
    for name, kind in ((next(iter(shipped.VECTORS)), "test vector"), (flag, "flag of test vectors")):
        found = meanings.explained(name)
        assert found is not None
        assert found[0] == kind
        with pytest.raises(ZeroDivisionError):
            next(found[1])


def test_a_clause_is_printed_before_the_rest_is_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded() -> None:
        raise UsageError(capsys.readouterr().out)

    monkeypatch.setattr(explain, "_meanings", loaded)
    assert cli.main(["explain", "lsa-09"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "LSA-09 clause" in said
    assert "A user MUST refuse a surviving set" in said


@pytest.mark.slow
def test_no_help_loads_a_check() -> None:
    program = (
        "import contextlib, io, sys\nfrom secagg_spec import cli\n"
        "for name in cli.COMMANDS:\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        cli.main([name, '--help'])\n"
        "    print(name, 'secagg_spec.conformance.checks' in sys.modules, 'hypothesis' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} False False" for name in cli.COMMANDS]


@pytest.mark.parametrize("clause", [*part(4, list(resources.clauses())[::7]), "LSA-09", "SAG-02"])
def test_what_is_found_in_single_files_is_what_all_of_them_have(clause: str) -> None:
    claims = [claim.id for claim in entries.load().claims.values() if clause in claim.clauses]
    assert list(meanings._claims_of(clause)) == claims


@pytest.mark.parametrize("words", [["the"] * 3000, ["x" * 501]])
def test_more_text_than_can_be_searched_at_once_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    many = len(" ".join(words))
    assert cli.main(["explain", *words]) == 2
    said = f"secagg-spec explain: {many} characters are asked for; an id and what is searched have 500 at most\n"
    assert capsys.readouterr() == ("", said)


def test_no_id_is_of_two_kinds() -> None:
    """So the first kind that knows an id is the only one."""
    for id in meanings.names()[::41]:
        assert sum(known(id) is not None for known in meanings.KINDS.values()) == 1, id
    assert meanings._PREFIX == suite.PREFIX


def test_the_wheel_has_the_glossary() -> None:
    told = tomllib.loads((resources.root("spec").parent / "pyproject.toml").read_text(encoding="utf-8"))
    included = told["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs/explanation/glossary.md"] == "secagg_spec/_data/glossary.md"


@pytest.mark.parametrize("content", [None, b"<<<<<<< ours\n", b"{", b"{}", b"[]", b"\xff", b'{"checks": [1]}'])
def test_an_index_that_cannot_be_used_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / index.FILE).write_bytes(content)
    monkeypatch.setattr(resources, "root", lambda part: tmp_path)
    said = r"explain\.json: cannot be used; secagg-spec text --regenerate writes it again$"
    with pytest.raises(UsageError, match=said):
        index.load.__wrapped__()


def test_a_page_that_is_not_utf_8_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secagg.md").write_bytes(b"# SecAgg\n\xff\n")
    monkeypatch.setattr(resources, "root", lambda part: tmp_path)
    monkeypatch.setattr(history, "load", lambda: resources.title("secagg.md"))
    assert cli.main(["text"]) == 2
    assert capsys.readouterr() == ("", f"secagg-spec text: {tmp_path / 'secagg.md'}: this page is not UTF-8\n")
