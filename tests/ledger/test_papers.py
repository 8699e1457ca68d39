"""The index of what a paper numbers: complete against the ledger, and against the papers' texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.experiments import figures
from secagg_spec.ledger import entries, papers
from secagg_spec.ledger.errors import BrokenEntry, BrokenFile, DeadLink, DuplicateClaim, Incomplete, LedgerError
from tests.ledger.forms import HEAD, entry
from tests.ledger.forms import load as load_claims

TEXTS = Path(__file__).parents[3] / "shared" / "papers"
BOOK = entries.load()
INDICES = papers.load(BOOK)

TOP = """paper = "test"
text = "test.txt"
[[pattern]]
kind = "equation"
expression = '^\\((\\d+)\\)$'
[[pattern]]
kind = "theorem"
expression = 'Theorem (\\d+)\\.'
"""
ITEM = '[[item]]\nname = "equation 1"\nclaims = ["TST-1"]\n'
WHY = '[[item]]\nname = "theorem 1"\nreason = "It says nothing."\n'


def load(folder: Path, text: str) -> papers.Index:
    """The index of a paper with one claim, TST-1; another paper has OTH-1."""
    (folder / "claims").mkdir()
    (folder / "papers").mkdir()
    (folder / "claims" / "other.toml").write_text(HEAD.replace("test", "other") + entry(id='"OTH-1"'), encoding="utf-8")
    (folder / "papers" / "other.toml").write_text(
        TOP.replace("test", "other") + ITEM.replace("TST", "OTH"), encoding="utf-8"
    )
    book = load_claims(folder / "claims", HEAD + entry())
    (folder / "papers" / "test.toml").write_text(text, encoding="utf-8")
    return papers.load(book, folder / "papers")["test"]


def test_a_good_index_is_read(tmp_path: Path) -> None:
    index = load(tmp_path, TOP + ITEM + WHY + '[[item]]\nname = "section 2.1"\nclaims = ["TST-1"]\n')
    assert [(item.name, item.kind, item.claims, item.reason) for item in index.items] == [
        ("equation 1", "equation", ("TST-1",), ""),
        ("theorem 1", "theorem", (), "It says nothing."),
        ("section 2.1", "section", ("TST-1",), ""),
    ]
    assert [item.name for item in index.numbered] == ["equation 1", "theorem 1"]


BAD = [
    (
        "# a\u2028b\n" + TOP.replace("(\\d+)\\)$", "(") + ITEM,
        BrokenEntry,
        "test.toml:6: pattern: '^\\\\((' is no regular",
    ),
    (TOP, BrokenEntry, "test.toml:1: item: is missing"),
    (TOP + "[[item]]\n", BrokenEntry, "test.toml:9: item 1: name: is missing"),
    (TOP + '[[item]]\nname = "equation 1"\n', BrokenEntry, "test.toml:9: equation 1: must have exactly one of the mem"),
    (TOP + ITEM + 'reason = "x"\n', BrokenEntry, "test.toml:9: equation 1: must have exactly one of the members clai"),
    (TOP + ITEM + "more = 1\n", BrokenEntry, "test.toml:12: equation 1: more: there is no such field"),
    (
        TOP + ITEM.replace("equation 1", "equation\\n1"),
        BrokenEntry,
        "test.toml:10: item 1: name: 'equation\\n1' does not",
    ),
    (TOP + ITEM.replace("equation", "formula"), BrokenEntry, "test.toml:10: formula 1: name: 'formula 1' does not fit"),
    (TOP + ITEM + ITEM, DuplicateClaim, "test.toml:13: equation 1: name: is in the index twice"),
    (
        TOP + ITEM.replace("TST-1", "TST-2"),
        DeadLink,
        "test.toml:11: equation 1: claims: there is no claim TST-2; close",
    ),
    (
        TOP + ITEM.replace("TST", "OTH"),
        DeadLink,
        "test.toml:11: equation 1: claims: OTH-1 is a claim of other, not of t",
    ),
    (
        TOP + ITEM + WHY.replace("It says nothing.", "As TST-2 says."),
        DeadLink,
        "test.toml:14: theorem 1: reason: there is no claim or clause TST-2; close to it: ",
    ),
    (TOP + WHY, Incomplete, "test.toml: no item names TST-1"),
    (TOP.replace("(\\d+)\\)$", "(") + ITEM, BrokenEntry, "test.toml:5: pattern: '^\\\\((' is no regular expression: "),
    (
        TOP.replace("(\\d+)\\)$", "(\\d{9999999999})") + ITEM,
        BrokenEntry,
        "test.toml:5: pattern: '^\\\\((\\\\d{9999999999})' is no",
    ),
    (
        TOP.replace("(\\d+)\\.", "\\d+") + ITEM,
        BrokenEntry,
        "test.toml:8: pattern: 'Theorem \\\\d+' must have one group",
    ),
    (TOP.replace('"theorem"', '"poem"') + ITEM, BrokenEntry, "test.toml:7: pattern 2: kind: 'poem' is not one of"),
    (
        TOP.replace('kind = "theorem"\n', "") + ITEM + "more = 1\n",
        BrokenEntry,
        "test.toml:6: pattern 2: kind: is missing",
    ),
    (TOP + "[[claims]]\n" + ITEM, BrokenEntry, "test.toml:9: claims: there is no such field"),
    (TOP + ITEM + "[claims]\n", BrokenEntry, "test.toml:12: claims: there is no such field"),
    (TOP + "[[claims]]\nmore = 1\n[[item]]\n", BrokenEntry, "test.toml:9: claims: there is no such field"),
    (TOP.replace('"test"', '"else"') + ITEM, BrokenEntry, "test.toml:1: paper = 'else': must be the name of the file"),
]


@pytest.mark.requirement("CLM-03", "CLM-04", "CLM-10", "CLM-11")
@pytest.mark.parametrize(("text", "kind", "said"), BAD)
def test_a_bad_index_is_refused_in_one_line(text: str, kind: type[LedgerError], said: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as raised:
        load(tmp_path, text)
    assert type(raised.value) is kind
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


@pytest.mark.requirement("CLM-10")
def test_a_paper_without_an_index_or_without_claims_is_refused(tmp_path: Path) -> None:
    load(tmp_path, TOP + ITEM)
    book = entries.load(tmp_path / "claims")
    (tmp_path / "papers" / "third.toml").write_text(TOP.replace("test", "third") + ITEM, encoding="utf-8")
    with pytest.raises(BrokenFile, match=r"^third\.toml: the ledger has no paper 'third'; it has other, test"):
        papers.load(book, tmp_path / "papers")
    (tmp_path / "papers" / "third.toml").unlink()
    (tmp_path / "papers" / "test.toml").unlink()
    with pytest.raises(Incomplete, match=r"^papers/test\.toml is missing: the ledger has claims of test"):
        papers.load(book, tmp_path / "papers")


@pytest.mark.requirement("CLM-12")
@given(st.sets(st.integers(1, 30)), st.sets(st.integers(1, 30), min_size=1))
def test_what_only_one_of_index_and_text_has_is_told(written: set[int], listed: set[int]) -> None:
    items = tuple(papers.Item(f"theorem {number}", (), "x") for number in listed)
    index = papers.Index("test", "test.txt", (("theorem", re.compile(r"Theorem (\d+)\.")),), items)
    text = "".join(f"As in Theorem {number}. holds.\n" for number in written)
    assert list(index.differences(text)) == [
        *(f"test: theorem {number} is in the text, and not in the index" for number in sorted(written - listed)),
        *(f"test: theorem {number} is in the index, and not in the text" for number in sorted(listed - written)),
    ]


PAGE = "It says: the masks\nof all us-\ners “cancel”, $x_1$ has\n\\ge *two* ﬁelds. " + "x" * 500 + " The end."


@pytest.mark.requirement("CLM-27")
@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("the masks of all users", True),
        ('all users "cancel" ... two fields', True),
        ("has ≥ two fields", True),
        ("the masks ... all ... fields.", True),
        ("the masks of all user groups", False),
        ("the mask of all users", False),
        ("two fields ... the masks", False),
        ("the masks ... The end.", False),
        ("two fields ... x ... fields", False),
    ],
)
def test_a_quotation_that_is_not_in_the_text_is_told(quote: str, stands: bool, tmp_path: Path) -> None:
    index = papers.Index("test", "test.txt", (), ())
    book = load_claims(tmp_path, HEAD + entry(quote=f"'{quote}'") + entry(id='"TST-2"'))
    said = [] if stands else [f"test: TST-1: what is quoted is not in the text: {quote}"]
    assert list(index.differences(PAGE, book.of("test"))) == said


# ------------------------------------------------------------------------------------------------- the real indices


@pytest.mark.requirement("CLM-10", "CLM-12", "CLM-27")
@pytest.mark.parametrize("paper", list(INDICES))
def test_the_index_has_what_the_paper_numbers_and_quotations_are_its_words(paper: str) -> None:
    path = TEXTS / INDICES[paper].text
    if not path.is_file():
        pytest.skip("the papers are not beside the project")
    text = path.read_text(encoding="utf-8")
    assert list(INDICES[paper].differences(text, BOOK.of(paper))) == []


@pytest.mark.requirement("CLM-10")
@pytest.mark.parametrize("paper", list(INDICES))
def test_figures_and_tables_are_those_of_the_list_of_figures(paper: str) -> None:
    listed = {one.number: set(one.claims) for one in figures.load() if one.paper == paper}
    shown = {item.name: set(item.claims) for item in INDICES[paper].items if item.kind in {"figure", "table"}}
    assert shown.keys() == {name for name in listed if name.startswith(("figure", "table"))}
    assert all(claims <= shown[name] for name, claims in listed.items() if name in shown)
