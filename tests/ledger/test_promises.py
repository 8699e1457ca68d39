"""What the promises of the protocols rest on: no row without it, and nothing named that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from secagg_spec import resources
from secagg_spec.ledger import entries, promises
from secagg_spec.ledger.errors import BrokenEntry, BrokenFile, DeadLink, Incomplete, LedgerError

BOOK = entries.load()
TEXT = (resources.root("spec") / promises.FILE).read_text(encoding="utf-8")
FIRST = TEXT.partition("[[promise]]\n")[2].partition("\n[[promise]]")[0]


@pytest.mark.requirement("CLM-20")
@pytest.mark.parametrize("page", promises.PAGES)
def test_each_row_of_a_page_says_what_it_rests_on(page: str) -> None:
    rows = [row for row in promises.table(page) if row[0] != promises.OUT]
    found = [promise for promise in promises.load(BOOK) if promise.page == page]
    assert [(promise.holds, promise.condition) for promise in found] == rows
    assert len(rows) >= 3
    for promise in found:
        if "learns" in promise.holds or "computes" in promise.holds:
            assert promise.theorems or promise.argued


@pytest.mark.requirement("CLM-20")
@pytest.mark.parametrize("page", promises.PAGES)
def test_a_row_that_is_new_is_told(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: [*promises.table(name)] for name in promises.PAGES}
    rows[page].append(("nobody learns anything", "everybody"))
    monkeypatch.setattr(promises, "table", rows.__getitem__)
    with pytest.raises(
        Incomplete, match=rf"^promises\.toml: {page}: 0 entries, and not one, .*: nobody learns anything"
    ):
        promises.load(BOOK)


@pytest.mark.requirement("CLM-20", "CLM-21")
@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        (FIRST, "", BrokenEntry, "must have page, what, and at least one of"),
        ('page = "secagg"', 'page = "secagg+"', Incomplete, "0 entries, and not one"),
        ('what = "the server with', 'what = "a server with', Incomplete, "secagg: 0 entries, and not one"),
        (
            'what = "the server with at most T users learns the sum over the surviving set"',
            'what = "the s"',
            Incomplete,
            "2",
        ),
        (FIRST, f"{FIRST}\n[[promise]]\n{FIRST}", Incomplete, "2 entries, and not one"),
        (FIRST, FIRST + '\n[[promise]]\npage = "secagg"\nwhat = "x"\nargued = "x"', Incomplete, "0 rows, and not one"),
        (
            FIRST,
            FIRST + '\n[[promise]]\npage = "fedbuff"\nwhat = "x"\nargued = "x"',
            BrokenEntry,
            "'fedbuff' is not one",
        ),
        (
            '"SecAggThresholds.private_iff"',
            '"SecAggThresholds.private"',
            DeadLink,
            "no theorem SecAggThresholds.private;",
        ),
        ('"UNI-COMPONENTS"', '"UNI-COMPONENT"', DeadLink, "no claim UNI-COMPONENT; close to it: UNI-COMPONENTS"),
        ("SAG-10 to SAG-29", "SAG-10 to SAG-99", DeadLink, "no clause SAG-99"),
        ("argued = ", "argues = ", BrokenEntry, "argues: there is no such field"),
        ('argued = "', 'argued = 3 # "', BrokenEntry, "argued: must not be empty, and holds texts"),
        ('theorems = ["', 'theorems = [] # ["', BrokenEntry, "theorems: must not be empty"),
        ("carry = ", "# carry = ", BrokenEntry, "carry: says what the theorems carry"),
        ("[[promise]]", "[[promised]]", BrokenFile, "promises.toml: "),
        ("[[promise]]", "[promise", BrokenFile, "is not TOML: Expected"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    old: str, new: str, kind: type[LedgerError], said: str, tmp_path: Path
) -> None:
    at = TEXT.index("[[promise]]")
    assert old in TEXT[at:]
    count = -1 if old.startswith("[[") else 1
    path = tmp_path / promises.FILE
    path.write_text(TEXT[:at] + TEXT[at:].replace(old, new, count), encoding="utf-8")
    with pytest.raises(kind) as raised:
        promises.load(BOOK, path)
    assert type(raised.value) is kind
    assert re.match(r"promises\.toml(:\d+: is not TOML)?: ", str(raised.value))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
