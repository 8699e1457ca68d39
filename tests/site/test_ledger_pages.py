"""The pages of the ledger: they tell all of it, nothing in it is markup, filters work."""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from docs import build_site
from docs.pages import claims, common, copies, errata, markup, papers, proofs, results
from docs.pages.common import SiteError
from tests.quick import part
from tests.site.browser import Browser
from tests.site.shell import ROOT, run

from secagg_spec import __version__
from secagg_spec.ledger import entries, errors, roots
from secagg_spec.ledger import papers as indices
from secagg_spec.ledger import proofs as ledger_proofs
from secagg_spec.ledger.entries import Claim

BOOK = entries.load()
SERIOUS = ["refuted", "conditional", "imprecise"]
ROOTS = roots.load(BOOK)
WRONG = [claim for claim in BOOK.claims.values() if claim.verdict in SERIOUS and not claim.new]
MARKUP = '<script>alert(1)</script> </article> **a** _b_ [c](d) `e` $f$ &amp; {#g} | \\h <!-- i --> --8<-- "j"'


class Articles(HTMLParser):
    """The entries of a page, or the lines of the list: the attributes of each, and its text with single spaces."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, tuple[Mapping[str, str], str]] = {}
        self.tags: Counter[str] = Counter()
        self._attributes: Mapping[str, str] | None = None
        self._name, self._words = "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        if (tag == "article" and "claim" in given.get("class", "")) or "data-words" in given:
            self._attributes, self._words = given, ""
        elif (tag == "h3" or given.get("class") == "moved") and self._attributes is not None:
            self._name = given["id"]
            self._attributes = {**self._attributes, **given}
        elif tag in ("br", "p", "dt", "dd", "td"):
            self._words += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("article", "li") and self._attributes is not None:
            assert self._name not in self.found
            self.found[self._name] = (self._attributes, " ".join(self._words.split()))
            self._attributes = None

    def handle_data(self, data: str) -> None:
        self._words += data


def written(write: Callable[[Path], None], folder: Path, page: str) -> str:
    """What a writer writes to a page."""
    write(folder)
    return (folder / page).read_text(encoding="utf-8")


def values(data: Any) -> Iterator[str]:
    """Each name and each value in data of an entry, as it is shown."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield name
            yield from values(value)
    elif isinstance(data, list):
        for value in data:
            yield from values(value)
    else:
        yield data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


# All of it is told


def in_full(folder: Path, paper: str) -> str:
    """What is written to the page of the claims of a paper."""
    return written(
        results.write_results if paper == entries.OURS else claims.write_claims, folder, common.claims_page(paper)
    )


@pytest.mark.parametrize("paper", BOOK.papers)
def test_each_claim_is_told_in_full_under_its_id(paper: str, tmp_path: Path) -> None:
    page = Articles(in_full(tmp_path, paper))
    assert set(page.found) == {claim.id for claim in BOOK.of(paper)}
    for claim in BOOK.of(paper):
        _, text = page.found[claim.id]
        assert text.startswith(f"{claim.id} {claim.place} {claim.verdict}")
        report = [claim.id, claim.verdict, claim.place, claim.kind, claim.statement, claim.condition, claim.repair]
        report += [claim.matters, claim.new, claim.note, claim.method, *claim.second, claim.scope, *claim.clauses]
        report += [
            claim.quote,
            claim.decides,
            claim.no_proof,
            claim.proof,
            *values(claim.counterexample or {}),
            *values(claim.numbers),
        ]
        assert [words for words in report if words not in text] == []
        assert ("by this method only" in text) == bool(claim.proof and not claim.second)


@pytest.mark.slow
def test_the_list_leads_to_each_claim_and_filters_by_the_words_of_its_entry(tmp_path: Path) -> None:
    listed = Articles(written(claims.write_claims, tmp_path, common.CLAIMS)).found
    shown = {
        name: text for paper in BOOK.papers for name, (_, text) in Articles(in_full(tmp_path, paper)).found.items()
    }
    assert list(listed) == [claim.id for paper in markup.ordered_papers(BOOK) for claim in BOOK.of(paper)]
    for claim in BOOK.claims.values():
        given, text = listed[claim.id]
        page = "results" if claim.new else f"claims/{claim.paper}"
        assert given["href"] == f"{posixpath.relpath(page, 'claims')}/#{claim.id}"
        assert [words for words in (claim.verdict, claim.place, claim.kind, claim.statement) if words not in text] == []
        assert (given["data-paper"], given["data-verdict"]) == (claim.paper, claim.verdict)
        assert (given["data-kind"], given["data-method"].split()) == (claim.kind, claims._methods(claim))
        assert ("data-single" in given) == bool(claim.proof and not claim.second)
        known = f"{text.lower()} {given['data-words']}"
        assert [word for word in shown[claim.id].lower().replace("¶", "").split() if word not in known] == []


def test_the_results_of_this_project_are_the_last_section(tmp_path: Path) -> None:
    page = written(claims.write_claims, tmp_path, common.CLAIMS)
    sections = re.findall(r"^## .* \{ #(\S+) \}$", page, re.MULTILINE)
    assert sections[-1] == entries.OURS
    assert set(sections) == set(BOOK.papers)
    before, after = page.split(f"{{ #{entries.OURS} }}")
    ours = {claim.id for claim in BOOK.claims.values() if claim.new}
    assert ours == set(Articles(after).found)
    assert ours.isdisjoint(Articles(before).found)


def test_the_summary_counts_the_claims(tmp_path: Path) -> None:
    page = written(claims.write_claims, tmp_path, common.CLAIMS)
    for paper in (*BOOK.papers, ""):
        mine = [claim for claim in BOOK.claims.values() if paper in ("", claim.paper)]
        anchor = f'#{paper or "summary"}"'
        row = next(line for line in page.splitlines() if line.startswith("<tr><th") and anchor in line)
        counts = [int(number) for number in re.findall(r"<td>(?:<a[^>]*>)?(\d+)", row)]
        expected = [sum(claim.verdict == verdict for claim in mine) for verdict in entries.VERDICTS]
        assert counts == [*expected, len(mine)]


@pytest.mark.slow
def test_each_erratum_leads_to_the_clauses_and_to_what_explains_it(tmp_path: Path) -> None:
    errata.write_errata(tmp_path)
    pages = (tmp_path / common.errata_page(paper) for paper in BOOK.sources)
    found = {
        name: words for page in pages for name, (_, words) in Articles(page.read_text(encoding="utf-8")).found.items()
    }
    explained = 0
    for claim in WRONG:
        report = found[claim.id]
        assert ("no clause depends on it" in report) == (not claim.clauses)
        for clause in claim.clauses:
            assert clause in report
            assert errata.clause_sections()[clause] in report
        for place in sorted((ROOT / "docs" / "explanation").glob("*.md")):
            if place.name != errata.ABOUT_CLAIMS and re.search(rf"\b{claim.id}\b", place.read_text(encoding="utf-8")):
                assert common.heading(place) in report, (claim.id, place.name)
                explained += 1
    assert explained > 10


def test_what_explains_an_erratum_is_the_section_that_names_it() -> None:
    found = errata.explanations()
    assert list(found["HET-ALG2"]) == ["explanation/heterosag-errors.md#algorithm-2-alone-twice"]
    assert list(found["BASA-TO"]) == ["explanation/basa-timeouts.md"]
    assert errata.clause_sections()["HSA-11"] == "HeteroSAg, section 4. The plan"


def test_the_errata_say_what_is_wrong_by_paper_the_gravest_first(tmp_path: Path) -> None:
    overview, seen = written(errata.write_errata, tmp_path, common.ERRATA), []
    for paper, source in BOOK.sources.items():
        text = (tmp_path / common.errata_page(paper)).read_text(encoding="utf-8")
        head, *_ = text.partition("\n## ")
        assert all(escape(part, quote=False) in head for part in vars(source).values())
        page = Articles(text)
        assert list(page.found) == [claim.id for claim in errata.wrong(BOOK, paper)]
        for claim in (BOOK.claim(name) for name in page.found):
            report = [claim.verdict, claim.place, claim.statement, claim.condition, claim.repair, claim.matters]
            report += [claim.note, claim.scope, BOOK.formulas(claim), *values(claim.counterexample or {})]
            report += [f"secagg-spec claims {claim.id} --verify" if claim.proof else ""]
            assert [words for words in report if words not in page.found[claim.id][1]] == []
        mine = [root for root in ROOTS if root.paper == paper]
        assert re.findall(r"^## .* \{ #(\S+) \}$", text, re.MULTILINE) == [root.id for root in mine]
        assert all(f"({paper}.md#{root.id})" in overview for root in mine if root.lead)
        seen += list(page.found)
    assert sorted(seen) == sorted(claim.id for claim in WRONG)


@pytest.mark.requirement("CLM-25")
def test_each_paper_says_what_of_it_was_read_and_what_was_not() -> None:
    assert set(BOOK.sources) == set(BOOK.papers) - {entries.OURS}
    assert all(all(vars(source).values()) for source in BOOK.sources.values())
    assert "appendices A to I" in BOOK.sources["multi-round"].unread


def test_the_results_of_this_project_stand_on_a_page_with_what_they_hold_for(tmp_path: Path) -> None:
    text = written(results.write_results, tmp_path, common.RESULTS)
    page, ours = Articles(text), BOOK.of(entries.OURS)
    assert list(page.found) == [claim.id for claim in sorted(ours, key=lambda claim: not claim.formal)]
    for claim in ours:
        report = [claim.statement, claim.new, claim.scope, f"secagg-spec claims {claim.id} --verify"]
        assert [words for words in report if words not in page.found[claim.id][1]] == []
        assert all(bound.covers in page.found[claim.id][1] for bound in claim.formal)
    assert "@misc{secagg-spec-results" in text
    assert f"secagg-spec {__version__}" in text
    assert set(re.findall(r"\]\(#([A-Z-]+\w*)\)", text)) <= set(page.found)


def test_the_indices_show_each_item_with_its_claims_or_the_reason(tmp_path: Path) -> None:
    page = written(papers.write_papers, tmp_path, common.INDEX)
    for paper, index in indices.load(BOOK).items():
        rows = page.split(f"{{ #{paper} }}")[1].split("\n## ")[0].split("<tr>")[2:]
        assert len(rows) == len(index.items)
        for item, row in zip(index.items, rows, strict=True):
            assert f">{item.name}</th>" in row
            linked = re.findall(r'class="mention" href="[^"]*#([^"]+)"', row)
            assert not item.claims or linked == list(item.claims)
            shown = re.sub(r"<[^>]+>", "", row).strip()
            assert item.claims or shown.endswith(escape(item.reason, quote=False))


def bare(text: str) -> str:
    """A text without what mathematics sets in other ways: spaces, signs of powers and indices, brackets."""
    for sign, typed in (("≥", "&gt;="), ("≤", "&lt;="), ("≠", "!=")):
        text = text.replace(sign, typed)
    return re.sub(r"[\s*·^_()]", "", text)


@pytest.mark.slow
def test_each_proof_has_a_page_with_its_statement_its_claims_and_its_source(pages: Path) -> None:
    for name in part(3, entries.proof_names()):
        page = (pages / common.PROOFS / f"{name}.md").read_text(encoding="utf-8")
        proof, source = ledger_proofs.load_proof(name), (ROOT / "proofs" / f"{name}.py").read_text(encoding="utf-8")
        program = page.partition(f'```python title="proofs/{name}.py"\n')[2]
        assert program.endswith("```\n")
        assert source.endswith(f'"""\n\n{program.removesuffix("```" + chr(10))}')
        shown = re.sub(r"<[^>]+>", "", page.partition("## What it decides")[0])
        assert bare(escape(proof.text.replace("`", ""), quote=False)) in bare(shown)
        assert [claim for claim in proof.claims if f"#{claim}" not in page] == []


# Nothing of it is markup


def with_markup(claim: Claim) -> Claim:
    """A claim with characters of markup wherever an entry has words."""
    words: dict[str, Any] = dict.fromkeys(
        ("place", "statement", "quote", "condition", "repair", "matters", "note", "scope"), MARKUP
    )
    data = MappingProxyType({MARKUP: MARKUP, "rows": [[MARKUP, 1], [2, 3]], "deep": {MARKUP: [MARKUP]}})
    return replace(claim, **words, counterexample=data, numbers=data)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "page", "least"),
    [
        (claims.write_claims, common.CLAIMS, 2),
        (claims.write_claims, common.claims_page("heterosag"), 11),
        (errata.write_errata, common.errata_page("heterosag"), 11),
    ],
)
def test_a_claim_with_markup_is_shown_literally(
    write: Callable[[Path], None], page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown, config = pytest.importorskip("markdown"), pytest.importorskip("mkdocs.config")
    settings = config.load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(tmp_path))
    before = written(write, tmp_path, page)
    changed = {**BOOK.claims, "HET-THM1": with_markup(BOOK.claim("HET-THM1"))}
    for module in (claims, errata):
        monkeypatch.setattr(module, "claims_book", lambda: replace(BOOK, claims=changed))
    after = written(write, tmp_path, page)
    known = {"extensions": settings["markdown_extensions"], "extension_configs": settings["mdx_configs"]}
    shown = Articles(markdown.markdown(after, **known))
    assert list(shown.found) == list(Articles(before).found)
    assert shown.tags["script"] == Articles(before).tags["script"]
    assert shown.found["HET-THM1"][1].count(MARKUP) >= least


def test_mentions_of_claims_are_links_but_in_code() -> None:
    code = "`HET-THM1`, `claims\nHET-THM1 --verify`"
    text = copies.convert(f"HET-THM1, {code}.", "docs/explanation/a.md", "explanation/a.md")
    assert text == f"[HET-THM1](../reference/claims/heterosag.md#HET-THM1){{ .mention }}, {code}."


@pytest.mark.parametrize(
    ("target", "page", "href"),
    [
        ("reference/claims.md#X", "reference/claims.md", "#X"),
        ("reference/claims.md#X", "reference/errata/basa.md", "../../claims/#X"),
        ("spec/basa.md", "reference/proofs/index.md", "../../spec/basa/"),
        ("reference/proofs/index.md", "reference/proofs/shamir.md", "../"),
        ("reference/proofs/shamir.md", "reference/proofs/index.md", "shamir/"),
        ("index.md", "reference/claims.md", "../../"),
    ],
)
def test_addresses_are_those_of_the_site(target: str, page: str, href: str) -> None:
    assert markup.href(target, page) == href


# What stops the build


def broken(out: Path) -> None:
    """A writer that finds a fault of the ledger."""
    raise errors.DeadLink("basa.toml:7: BASA-EQ3: note: there is no claim BASA-EQ99")


STAND_INS = """
const element = () => ({ addEventListener() {}, querySelector: element, reset() {}, elements: new Proxy({}, {
  get: () => ({ tagName: "INPUT", value: "" }) }) });
globalThis.document = { getElementById: element, querySelector: element, querySelectorAll: () => [] };
globalThis.FormData = class { *[Symbol.iterator]() { yield ["text", ""]; } };
globalThis.location = { hash: process.argv[1], search: "", pathname: "/" };
globalThis.history = { replaceState() {} };
globalThis.addEventListener = () => {};
document.getElementById = (id) => (id === "claim-filters" ? element() : (console.log(`looked for ${id}`), null));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(("address", "name"), [("#100%", ""), ("#BAS%2DEQ6", "BAS-EQ6")])
def test_an_address_that_cannot_be_decoded_is_ignored(address: str, name: str) -> None:
    text = STAND_INS + (ROOT / "docs" / "assets" / "claims.js").read_text(encoding="utf-8")
    done = run("node", "-e", text, address)
    assert (done.returncode, done.stdout) == (0, f"looked for {name}\n"), done.stderr


@pytest.mark.parametrize("writers", ["WRITERS", "ALONE"])
def test_a_broken_ledger_stops_the_build_with_one_line(
    writers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js", "fonts/a"):
        (tmp_path / "katex" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "katex" / name).touch()
    monkeypatch.setattr(build_site, "WRITERS", ())
    monkeypatch.setattr(build_site, "ALONE", ())
    monkeypatch.setattr(build_site, writers, (broken,))
    assert build_site.main(["--katex-from", str(tmp_path / "katex"), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "build_site: basa.toml:7: BASA-EQ3: note: there is no claim BASA-EQ99\n"


def test_a_proof_without_a_falsified_copy_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_proofs.py"
    path.write_text('FALSIFIED = [("shamir", "a", "b")]\n', encoding="utf-8")
    monkeypatch.setattr(proofs, "TESTS", path)
    with pytest.raises(SiteError, match="no falsified copy of proofs/asynchronous_secagg"):
        proofs.falsified.__wrapped__()
    path.write_text("OTHER = []\n", encoding="utf-8")
    with pytest.raises(SiteError, match="has no list FALSIFIED"):
        proofs.falsified.__wrapped__()


def test_a_verdict_without_a_meaning_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "VERDICTS", (*entries.VERDICTS, "doubtful"))
    with pytest.raises(SiteError, match="does not say what doubtful means"):
        markup.meanings.__wrapped__()


@pytest.mark.slow
def test_each_claim_is_found_by_the_search(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"] for entry in index["docs"]}
    assert [
        name for name in BOOK.claims if markup.href(f"{common.named()[name]}#{name}", "index.md") not in places
    ] == []


# In a browser

SHOWN = "[...document.querySelectorAll('.claims li:not([hidden]) a.moved')].map((link) => link.id)"
STATUS = "document.querySelector('#claim-filters [role=status]').textContent"
ENTRY = """new Promise((done) => {
  const look = () => {
    if (document.querySelector("h3:target")) done(location.pathname + location.search + location.hash);
    else setTimeout(look, 50);
  };
  look();
})"""
SETTLED = "new Promise((done) => setTimeout(done, 400))"


def choose(window: Browser, **fields: str | bool) -> None:
    """Fill in the form as a reader would, and wait until what is typed is told."""
    for name, value in fields.items():
        part = "checked" if isinstance(value, bool) else "value"
        window.run(f"document.forms['claim-filters'].elements['{name}'].{part} = {json.dumps(value)}")
        window.run(
            f"document.forms['claim-filters'].elements['{name}'].dispatchEvent(new Event('input', {{bubbles: true}}))"
        )
    window.run(SETTLED)


FILTERS: Mapping[str, tuple[Mapping[str, str | bool], Callable[[Claim], bool]]] = {
    "paper": ({"paper": "heterosag"}, lambda claim: claim.paper == "heterosag"),
    "verdict": ({"verdict": "refuted"}, lambda claim: claim.verdict == "refuted"),
    "kind": ({"kind": "privacy"}, lambda claim: claim.kind == "privacy"),
    "method": ({"method": "enumeration"}, lambda claim: "enumeration" in (claim.method, *claim.second)),
    "single": ({"single": True}, lambda claim: bool(claim.proof) and not claim.second),
    "ours": ({"paper": "derived"}, lambda claim: bool(claim.new)),
    "id": ({"text": "bas-unb"}, lambda claim: "BAS-UNB" in repr(claim)),
    "all": (
        {"paper": "heterosag", "verdict": "refuted", "kind": "bound"},
        lambda claim: (claim.paper, claim.verdict, claim.kind) == ("heterosag", "refuted", "bound"),
    ),
    "none": ({"text": "quux"}, lambda claim: False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", part(3, FILTERS))
def test_a_filter_shows_what_is_asked_for(name: str, window: Browser, address: str) -> None:
    fields, asked = FILTERS[name]
    expected = {claim.id for claim in BOOK.claims.values() if asked(claim)}
    window.open(f"{address}/reference/claims/")
    assert len(window.run(SHOWN)) == len(BOOK.claims)
    choose(window, **fields)
    assert set(window.run(SHOWN)) == expected
    report = f"{len(expected)} of {len(BOOK.claims)} claims are shown." if expected else "No claim is as asked."
    assert window.run(STATUS) == report
    headings = window.run("[...document.querySelectorAll('h2[hidden]')].map((heading) => heading.id)")
    assert set(headings) == set(BOOK.papers) - {BOOK.claim(claim).paper for claim in expected}
    linked = window.run("location.href")
    window.open(linked)
    assert set(window.run(SHOWN)) == expected


@pytest.mark.slow
def test_an_address_is_taken_and_the_old_one_of_a_claim_leads_to_its_entry(window: Browser, address: str) -> None:
    window.open(f"{address}/reference/claims/?verdict=nonsense&paper=basa&unknown=1")
    assert {BOOK.claim(name).paper for name in window.run(SHOWN)} == {"basa"}
    window.run("location.hash = '#derived'")
    window.run(SETTLED)
    assert len(window.run(SHOWN)) == len(BOOK.claims)
    assert window.run("location.search") == ""
    for old, entry in (
        ("?paper=basa#HET-THM1", "/reference/claims/heterosag/#HET-THM1"), ("#UNI-LIES", "/reference/results/#UNI-LIES")
    ):  # fmt: skip
        window.open(f"{address}/reference/claims/{old}")
        assert window.run(ENTRY) == entry
        assert 0 <= window.run("document.querySelector(':target').getBoundingClientRect().top") < 300


@pytest.mark.slow
def test_the_filters_are_reached_by_keys(window: Browser, address: str) -> None:
    window.open(f"{address}/reference/claims/")
    controls = "[...document.forms['claim-filters'].elements]"
    assert window.run(f"{controls}.every((one) => one.type === 'reset' ? one.textContent : one.labels.length)")
    window.run("document.forms['claim-filters'].elements.paper.focus()")
    order = []
    for _ in range(6):
        window.press("Tab", 9)
        order.append(window.run("document.activeElement.name || document.activeElement.type"))
    assert order == ["verdict", "kind", "method", "text", "single", "reset"]
    window.run("document.forms['claim-filters'].elements.text.focus()")
    window.type("HET-THM1 refuted")
    window.run(SETTLED)
    assert "HET-THM1" in window.run(SHOWN)
    assert len(window.run(SHOWN)) < 20
    window.run("document.querySelector('.ledger-matrix a[href*=\"heterosag&verdict=confirmed\"]').focus()")
    window.press("Enter", 13)
    window.run(SETTLED)
    confirmed = {claim.id for claim in BOOK.of("heterosag") if claim.verdict == "confirmed"}
    assert set(window.run(SHOWN)) == confirmed
    assert_at_the_filters(window)
    window.run("document.querySelector('#claim-filters button').focus()")
    window.press("Enter", 13)
    window.run(SETTLED)
    assert len(window.run(SHOWN)) == len(BOOK.claims)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_link_of_the_summary_leads_to_the_filters_in_a_window_of_its_own_too(
    width: int, window: Browser, address: str
) -> None:
    window.show(width, 900, "light")
    window.open(f"{address}/reference/claims/")
    link = window.run("document.querySelector('.ledger-matrix a[href*=\"heterosag&verdict=confirmed\"]').href")
    window.open(link)
    window.run(SETTLED)
    assert_at_the_filters(window)
    assert window.run("document.forms['claim-filters'].elements.verdict.value") == "confirmed"
    window.open(f"{address}/reference/claims/#basa")
    window.run(SETTLED)
    assert 0 <= window.run("document.getElementById('basa').getBoundingClientRect().top") < 200


def assert_at_the_filters(window: Browser) -> None:
    """Fail unless the filters stand below the head of the page, and the claims that are shown begin below them."""
    head, top, bottom = window.run(
        "['.md-header', '#claim-filters', '#claim-filters [role=status]']"
        ".map((one, at) => document.querySelector(one).getBoundingClientRect()[at === 1 ? 'top' : 'bottom'])"
    )
    assert head <= top < head + 60
    assert bottom < 900


@pytest.mark.slow
def test_without_a_script_a_link_of_the_summary_leads_to_the_paper(window: Browser, address: str) -> None:
    window.scripts(on=False)
    window.open(f"{address}/reference/claims/?paper=basa&verdict=refuted#basa")
    assert 0 <= window.run("document.getElementById('basa').getBoundingClientRect().top") < 200


@pytest.mark.slow
def test_what_a_proof_shows_has_room(window: Browser, address: str) -> None:
    for width, least in ((390, 250), (1280, 280)):
        window.show(width, 900, "light")
        window.open(f"{address}/reference/proofs/")
        cells = "[...document.querySelectorAll('.proof-list td:nth-child(2)')].map((cell) => cell.clientWidth)"
        assert min(window.run(cells)) >= least
        assert window.run("document.querySelector('.proof-list table').scrollWidth") <= width


@pytest.mark.slow
def test_without_a_script_all_claims_are_shown(window: Browser, address: str) -> None:
    window.scripts(on=False)
    window.open(f"{address}/reference/claims/?paper=basa")
    seen = "[...document.querySelectorAll('.claims li')].filter((one) => one.checkVisibility()).length"
    assert window.run(seen) == len(BOOK.claims)
    assert not window.run("document.forms['claim-filters'].checkVisibility()")
