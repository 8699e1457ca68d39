"""Planted bugs of the ledger: of its entries, of the index of a paper, and of what counts as evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from secagg_spec.conformance.mutants import mutant

Function = Callable[..., Any]
_FILES = "secagg_spec.ledger.files"
_ENTRIES = "secagg_spec.ledger.entries"
_PAPERS = "secagg_spec.ledger.papers"
_PROOFS = "secagg_spec.ledger.proofs"
_BAD_ENTRY = "tests/ledger/test_entries.py::test_a_bad_file_is_refused_in_one_line_with_its_number"
_LINES = "tests/ledger/test_entries.py::test_the_line_is_that_of_the_field_behind_texts_of_several_lines"
_OURS = "tests/ledger/test_entries.py::test_a_result_of_this_project_says_what_it_adds"
_BAD_INDEX = "tests/ledger/test_papers.py::test_a_bad_index_is_refused_in_one_line"
_NO_INDEX = "tests/ledger/test_papers.py::test_a_paper_without_an_index_or_without_claims_is_refused"
_TEXT = "tests/ledger/test_papers.py::test_what_only_one_of_index_and_text_has_is_told"
_NOTHING = "tests/ledger/test_methods.py::test_a_proof_that_proves_nothing_does_not_pass"
_TALLY = "tests/ledger/test_methods.py::test_a_tally_reaches_the_verdict"
_OTHERWISE = "tests/ledger/test_methods.py::test_an_entry_that_says_otherwise_than_its_proof_is_told"
_SECOND = "tests/ledger/test_methods.py::test_a_second_method_that_is_none_is_refused"
_RUN = "tests/ledger/test_methods.py::test_a_finding_has_the_methods_that_were_run"
_FIELDS: Mapping[str, str] = {
    "id": '"TST-1"',
    "place": '"eq. (1)"',
    "statement": '"One is one."',
    "kind": '"identity"',
    "verdict": '"confirmed"',
    "evidence": '{ proof = "field_size" }',
    "method": '"enumeration"',
    "scope": '"one"',
    "clauses": "[]",
}
"""A good entry, each field as it is written in TOML."""
_INDEX = 'paper = "test"\ntext = "t.txt"\n[[pattern]]\nkind = "theorem"\nexpression = "Theorem ([0-9])"\n'


def entry(**changed: str | None) -> str:
    """Return a good entry with changed fields; None leaves a field out."""
    fields = {**_FIELDS, **changed}
    return "[[claim]]\n" + "".join(f"{name} = {text}\n" for name, text in fields.items() if text is not None)


def _told(load: Callable[[], object]) -> str:
    """Return what is said of a ledger, an index or a proof, or that it is accepted."""
    try:
        load()
    except Exception as error:  # whatever is said is what differs
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _ledger(*entries: str, paper: str = "test", items: str = "") -> Callable[[], object]:
    """Return a function that says what is told of a ledger of these entries, and of an index of its paper."""

    def witness() -> object:
        with TemporaryDirectory() as name:
            folder = Path(name)
            head = f'paper = "{paper}"\ntitle = "A paper"\n'
            (folder / f"{paper}.toml").write_text(head + "".join(entries), encoding="utf-8")
            return _told(lambda: _loaded(folder, items))

    return witness


def _loaded(folder: Path, items: str) -> None:
    book = import_module(_ENTRIES).load(folder)
    if items:
        (folder / "papers").mkdir()
        if items != "none":
            (folder / "papers" / "test.toml").write_text(_INDEX + items, encoding="utf-8")
        import_module(_PAPERS).load(book, folder / "papers")


def _proof(prove: Function, **claims: str) -> Callable[[], object]:
    """Return a function that says what is told of a proof with these methods."""

    def witness() -> object:
        module = import_module(_PROOFS)
        return _told(lambda: module.run(module.Proof("p", "", claims, prove)))

    return witness


def _finding(**fields: Any) -> Any:
    return import_module(_PROOFS).Finding("confirmed", "it is", **fields)


def _disagrees(report: Any) -> Any:
    report.agree("TST-1", "library", False, "x")
    return {"TST-1": _finding()}


def _same(report: Any) -> Any:
    report.agree("TST-1", "enumeration", True, "x")
    return {"TST-1": _finding()}


def _nothing(right: Function) -> Function:
    """Check nothing."""
    return lambda *arguments, **named: None


mutant(
    "an-erratum-without-a-repair",
    "CLM-01",
    "an entry is read whatever fields it has and lacks",
    f"{_FILES}:_check_form",
    _ledger(entry(verdict='"imprecise"')),
    _BAD_ENTRY,
    kind="acceptance",
    source="clause left out",
)(_nothing)
mutant(
    "the-later-claim-wins",
    "CLM-02",
    "of two entries with one id the later one stands",
    f"{_ENTRIES}:_check_once",
    _ledger(entry(), entry()),
    _BAD_ENTRY,
    kind="acceptance",
    source="silent repair",
)(_nothing)
mutant(
    "a-claim-of-a-clause-that-is-gone",
    "CLM-03",
    "an entry may name clauses and proofs that are not there",
    f"{_ENTRIES}:_check_names",
    _ledger(entry(clauses=f'["MDS-{99}"]')),
    _BAD_ENTRY,
    kind="acceptance",
    source="clause left out",
)(_nothing)
mutant(
    "notes-of-claims-are-not-read",
    "CLM-03",
    "what the texts of an entry name may be gone",
    f"{_ENTRIES}:check_links",
    _ledger(entry(note='"see TST-2"')),
    _BAD_ENTRY,
    kind="acceptance",
    source="clause in part",
)(_nothing)


@mutant(
    "lines-from-zero",
    "CLM-04",
    "the line that is told is the one before",
    f"{_FILES}:line_numbers",
    _ledger(entry(verdict='"proven"')),
    _BAD_ENTRY,
    kind="form",
    source="off by one",
)
def _from_zero(right: Function) -> Function:
    def line_numbers(text: str, table: str) -> Any:
        head, entries = right(text, table)
        return head, tuple({name: line - 1 for name, line in lines.items()} for lines in entries)

    return line_numbers


@mutant(
    "a-text-of-several-lines-is-taken-for-fields",
    "CLM-04",
    "lines within a text are counted as fields and entries",
    f"{_FILES}:line_numbers",
    _ledger(entry(statement='"""\n[[claim]]\n"""'), entry(id='"TST-2"', kind='"theorem"')),
    _LINES,
    kind="form",
    source="clause in part",
)
def _within_texts(right: Function) -> Function:
    return lambda text, table: right(text.replace('"""', '"').replace("'''", "'"), table)


@mutant(
    "only-verdicts-are-compared",
    "CLM-05",
    "an entry may have another counterexample, other numbers and methods than its proof finds",
    f"{_PROOFS}:_plain",
    lambda: len(
        import_module(_PROOFS)
        .Outcome(
            SimpleNamespace(verdict="confirmed", counterexample=None, numbers={"q": 5}, method="", second=()),
            _finding(),
        )
        .differences
    ),
    _OTHERWISE,
    kind="acceptance",
    source="clause in part",
)
def _texts_only(right: Function) -> Function:
    return lambda data: right(data) if isinstance(data, str) else ""


mutant(
    "a-proof-that-checks-nothing",
    "CLM-06",
    "a program that finds something without any check is evidence",
    f"{_PROOFS}:_check_evidence",
    _proof(lambda report: {"TST-1": _finding()}, **{"TST-1": "enumeration"}),
    _NOTHING,
    kind="acceptance",
    source="clause left out",
)(_nothing)


@mutant(
    "no-case-confirms",
    "CLM-07",
    "a claim holds in all of no cases",
    f"{_PROOFS}:_verdict",
    lambda: import_module(_PROOFS).Tally().verdict,
    _TALLY,
    kind="acceptance",
    source="clause left out",
)
def _vacuous(right: Function) -> Function:
    return lambda cases, held, breaches, met: right(cases, held, breaches, met) if cases else "confirmed"


@mutant(
    "a-second-method-that-disagrees",
    "CLM-08",
    "a second method counts whether or not it comes to the same result",
    f"{_PROOFS}:Report.agree",
    _proof(_disagrees, **{"TST-1": "enumeration"}),
    _SECOND,
    kind="acceptance",
    source="clause left out",
)
def _whatever(right: Function) -> Function:
    return lambda self, claims, method, holds, statement: right(self, claims, method, True, statement)


@mutant(
    "one-second-method-for-all-claims",
    "CLM-08",
    "what was checked in a second way for one claim of a proof counts for its other claims",
    f"{_PROOFS}:_second",
    lambda: import_module(_PROOFS)._second(
        SimpleNamespace(name="p", claims={"TST-1": "enumeration", "TST-2": "enumeration"}), [("TST-1", "library")]
    ),
    _RUN,
    kind="acceptance",
    source="clause in part",
)
def _for_all(right: Function) -> Function:
    def second(proof: Any, agreed: Any) -> Any:
        found = right(proof, agreed)
        methods = tuple(dict.fromkeys(method for each in found.values() for method in each))
        return dict.fromkeys(found, methods)

    return second


@mutant(
    "the-same-method-twice",
    "CLM-09",
    "what a proof does anyway counts as its second method",
    f"{_PROOFS}:_second",
    _proof(_same, **{"TST-1": "enumeration"}),
    _SECOND,
    kind="acceptance",
    source="clause left out",
)
def _same_again(right: Function) -> Function:
    def second(proof: Any, agreed: Any) -> Any:
        return right(proof, [(claim, method) for claim, method in agreed if method != proof.claims.get(claim)])

    return second


mutant(
    "a-paper-without-an-index",
    "CLM-10",
    "a paper of which nothing is listed is not missed",
    f"{_PAPERS}:_check_papers",
    _ledger(entry(), items="none"),
    _NO_INDEX,
    kind="acceptance",
    source="clause left out",
)(_nothing)
mutant(
    "an-item-judged-by-another-paper",
    "CLM-11",
    "an item may name a claim of another paper, or one that is not there",
    f"{_PAPERS}:_check_claim",
    _ledger(entry(), items='[[item]]\nname = "theorem 1"\nclaims = ["TST-1", "TST-2"]\n'),
    _BAD_INDEX,
    kind="acceptance",
    source="clause left out",
)(_nothing)
mutant(
    "a-claim-that-no-item-names",
    "CLM-11",
    "a claim may stand nowhere in its paper",
    f"{_PAPERS}:_check_all_named",
    _ledger(entry(), items='[[item]]\nname = "theorem 1"\nreason = "x"\n'),
    _BAD_INDEX,
    kind="acceptance",
    source="clause left out",
)(_nothing)


@mutant(
    "what-only-the-text-has-is-not-told",
    "CLM-12",
    "an item of the text that nobody listed goes unseen",
    f"{_PAPERS}:Index.found_in",
    lambda: list(_index().differences("Theorem 1, Theorem 2")),
    _TEXT,
    kind="acceptance",
    source="clause in part",
)
def _only_listed(right: Function) -> Function:
    return lambda self, text: right(self, text) & {item.name for item in self.numbered}


def _index() -> Any:
    papers = import_module(_PAPERS)
    pattern = papers.re.compile("Theorem ([0-9])")
    return papers.Index("test", "t.txt", (("theorem", pattern),), (papers.Item("theorem 1", (), "x"),))


mutant(
    "a-result-of-ours-stands-as-a-claim-of-a-paper",
    "CLM-13",
    "our own results need not be told apart",
    f"{_ENTRIES}:_check_kind",
    _ledger(entry(), paper="derived"),
    _OURS,
    kind="acceptance",
    source="clause left out",
)(_nothing)
