"""The roots of what does not hold: one for each such claim, a severity for each root, and no slip that is refuted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from secagg_spec import resources
from secagg_spec.ledger import entries, roots
from secagg_spec.ledger.errors import BrokenEntry, BrokenFile, DeadLink, DuplicateClaim, Incomplete, LedgerError
from tests.ledger.forms import HEAD, call, entry, load

FAILS = {"verdict": '"refuted"', "counterexample": "{ N = 3 }", "repair": '"two"', "matters": '"code"'}
ROOT = '[[root]]\nid = "one"\nseverity = "result"\nlead = "TST-1"\nfails = "It fails."\n'
SLIPS = '[[root]]\nid = "one"\nseverity = "wording"\nfails = "Slips."\n'
OTHER = 'id = "TST-2"'


def loaded(folder: Path, claims: str, text: str) -> tuple[roots.Root, ...]:
    book = load(folder, claims)
    (folder / "roots.txt").write_text(text, encoding="utf-8")
    return tuple(roots.load(book, folder / "roots.txt"))


@pytest.mark.requirement("CLM-22", "CLM-23")
def test_a_root_takes_from_its_lead_what_holds_instead(tmp_path: Path) -> None:
    second = entry(**FAILS, root='"one"').replace('id = "TST-1"', OTHER)
    (root,) = loaded(tmp_path, HEAD + entry(**FAILS, root='"one"') + second, ROOT)
    assert (root.paper, root.lead and root.lead.id, [claim.id for claim in root.follow]) == ("test", "TST-1", ["TST-2"])
    assert (root.instead, root.command) == ("two", "secagg-spec claims TST-1 --verify")


BAD: list[tuple[str, str, type[LedgerError], str]] = [
    (entry(**FAILS), ROOT, BrokenEntry, "test.toml:3: TST-1: root: must be given: the claim does not hold"),
    (entry(root='"one"'), ROOT, BrokenEntry, "test.toml:13: TST-1: root: must not be given: nothing fails"),
    (entry(**FAILS, root='"onn"'), ROOT, DeadLink, "test.toml:16: TST-1: root: there is no onn; close to it: one"),
    (entry(**FAILS, root='"one"'), ROOT + ROOT, DuplicateClaim, "roots.txt:6: one: is in the file twice"),
    (entry(**FAILS, root='"one"'), ROOT.replace("result", "dire"), BrokenEntry, "one: severity: 'dire' is not one of"),
    (entry(**FAILS, root='"one"'), ROOT.replace('severity = "result"\n', ""), BrokenEntry, "one: severity: None is"),
    (entry(**FAILS, root='"one"'), ROOT.replace("It fails.", " "), BrokenEntry, "one: fails: must be a text, and one"),
    (entry(**FAILS, root='"one"'), ROOT + 'note = "x"\n', BrokenEntry, "one: note: must be a text, and one of the f"),
    (
        entry(**FAILS, root='"one"'),
        ROOT.replace('lead = "TST-1"\n', ""),
        BrokenEntry,
        "one: must have fails, and a",
    ),
    (entry(**FAILS, root='"one"'), ROOT.replace("TST-1", "TST-2"), Incomplete, "one: lead: TST-2 does not name it as"),
    (
        entry(**FAILS, root='"one"'),
        ROOT + ROOT.replace('"one"', '"two"'),
        Incomplete,
        "two: claims of 0 papers",
    ),
    (entry(**FAILS, root='"one"'), SLIPS, BrokenEntry, "one: TST-1: a slip is imprecise, and never refuted"),
    (entry(**FAILS, root='"one"'), "", BrokenFile, "roots.txt: cannot be read"),
    (entry(**FAILS, root='"one"'), ROOT + "[[rot]]\n", BrokenFile, "roots.txt:6: rot: there is no such field; all"),
]


@pytest.mark.requirement("CLM-22", "CLM-23", "CLM-24")
@pytest.mark.parametrize(("claims", "text", "kind", "said"), BAD)
def test_a_bad_root_is_refused(claims: str, text: str, kind: type[LedgerError], said: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as raised:
        loaded(tmp_path, HEAD + claims, text)
    assert type(raised.value) is kind
    assert said in str(raised.value)
    assert re.match(r"(test\.toml|roots\.txt):[0-9]+: |roots\.txt: cannot be read: ", str(raised.value))
    assert "\n" not in str(raised.value)


@pytest.mark.requirement("CLM-22", "CLM-23", "CLM-24")
def test_the_ledger_has_about_thirty_roots_with_all_that_fails() -> None:
    book = entries.load()
    found = roots.load(book)
    of_roots = [claim.id for root in found for claim in (*((root.lead,) if root.lead else ()), *root.follow)]
    assert sorted(of_roots) == sorted(claim.id for claim in book.errata())
    assert [roots.SEVERITIES.index(root.severity) for root in found] == sorted(
        roots.SEVERITIES.index(root.severity) for root in found
    )
    substance = [root.lead for root in found if root.lead]
    assert 25 <= len(substance) <= 35
    assert all(lead.counterexample and lead.matters and lead.proof for lead in substance)
    assert all(root.instead for root in found if root.lead)


def test_no_refuted_claim_is_called_a_slip_or_a_misprint() -> None:
    """The rules make a slip imprecise; the texts of refuted entries must not call them one (spec/ledger.md, 2)."""
    for claim in entries.load().claims.values():
        texts = " ".join((claim.note, claim.repair, claim.matters)).lower()
        assert claim.verdict != "refuted" or not any(word in texts for word in ("misprint", "slip", "typo")), claim.id


@pytest.mark.requirement("CLM-25")
def test_errata_print_each_root_on_a_screen_the_gravest_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--errata")
    assert (code, err) == (0, "")
    book = entries.load()
    found = roots.load(book)
    places = [out.index(f"{root.id}\n") for root in found]
    assert all(out.index(word) < places[0] for source in book.sources.values() for word in source.unread.split()[:1])
    assert all(out.index(book.papers[paper]) < places[0] for paper in book.sources)
    assert places == sorted(places)
    first = next(at for at, screen in enumerate(out.split("\n\n")) if screen.startswith(found[0].severity))
    for root, screen in zip(found, out.split("\n\n")[first:], strict=True):
        assert len(screen.splitlines()) <= 40 or root.lead is None
        assert root.lead is None or root.command in screen
        assert all(claim.id in screen for claim in root.follow)
        assert root.lead is None or root.lead.quote in " ".join(screen.split())
    assert f"{sum(root.lead is not None for root in found)} errors" in out


def test_errata_of_one_paper_name_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--errata", "--paper", "basa")
    assert "BASA-TO" in out
    assert not any(name in out for name in ("HET-", "MRS-"))
    code, _, err = call(capsys, "--errata", "--paper", entries.OURS)
    assert (code, err) == (2, "secagg-spec claims: --errata: derived is no paper\n")


def test_the_file_of_roots_stands_beside_the_text() -> None:
    assert (resources.root("spec") / roots.FILE).is_file()
