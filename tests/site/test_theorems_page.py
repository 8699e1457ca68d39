"""The pages of theorems and of what promises rest on: all of the data is told, beside clauses, claims and promises."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from pathlib import Path

import pytest
from docs.pages import additions, claims, common, requirements, results, theorems, trust
from docs.pages.common import SiteError

from secagg_spec import resources
from secagg_spec.ledger import entries, promises
from secagg_spec.ledger import theorems as data

BOOK = entries.load()
THEOREMS = data.load()
PROMISES = promises.load(BOOK)


def words(html: str) -> str:
    """The text of a page without its tags, with single spaces."""
    inline = re.sub(r"</?(?:a|code|em|span|strong)\b[^>]*>", "", html)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", inline)).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("theorems")
    theorems.write_theorems(out)
    return (out / common.THEOREMS).read_text(encoding="utf-8")


def test_each_theorem_is_told_in_words_and_as_the_prover_has_it(page: str) -> None:
    articles = {
        re.search(r'<h3 id="[^"]+">([^<]+)', part)[1]: words(part)  # type: ignore[index]
        for part in page.split('<article class="claim theorem">')[1:]
    }
    assert [*articles] == [*THEOREMS]
    for name, theorem in THEOREMS.items():
        told = articles[name]
        for text in (theorem.says, theorem.idealises, *theorem.unsaid, theorem.statement, *theorem.clauses):
            assert " ".join(text.split()) in told, (name, text)
        for clause in theorem.clauses:
            sentence = re.sub(r"[$`*]", "", " ".join(resources.clauses()[clause].split()))
            assert re.sub(r"\]\([^)]+\)|\[", "", sentence) in re.sub(r"\\[()]|\[", "", told)
        for claim in BOOK.claims.values():
            for bound in claim.formal:
                if bound.theorem == name:
                    assert claim.statement in told
                    assert bound.covers in told


def test_each_definition_is_shown_once_and_linked_from_the_theorems_that_rest_on_it(page: str) -> None:
    needed = {name: text for theorem in THEOREMS.values() for name, text in theorem.definitions.items()}
    shown = dict(re.findall(r'<pre id="([^"]+)">(.*?)</pre>', page, re.DOTALL))
    assert {theorems.anchor(name): text for name, text in needed.items()} == {
        name: unescape(text) for name, text in shown.items()
    }
    assert len(re.findall(r"<pre id=", page)) == len(needed)
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors


def test_a_claim_names_its_theorems_with_what_they_carry(tmp_path: Path) -> None:
    claims.write_claims(tmp_path)
    results.write_results(tmp_path)
    pages = {claim.paper: common.claims_page(claim.paper) for claim in BOOK.claims.values()}
    told = {paper: words((tmp_path / page).read_text(encoding="utf-8")) for paper, page in pages.items()}
    for claim in BOOK.claims.values():
        for bound in claim.formal:
            assert f"{bound.theorem}: {bound.covers}" in told[claim.paper]


def test_a_digest_that_does_not_fit_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = BOOK.claim("UNI-QUORUM")
    loose = dataclasses.replace(claim, statement="Nobody signs.")
    monkeypatch.setattr(theorems, "claims_book", lambda: dataclasses.replace(BOOK, claims={claim.id: loose}))
    theorems.known.cache_clear()
    with pytest.raises(SiteError, match=r"^UNI-QUORUM: formal: the claim or Quorum\.quorum changed"):
        theorems.known()
    theorems.known.cache_clear()


def test_each_promise_is_told_with_what_it_rests_on() -> None:
    articles = [words(part) for part in trust.promises().split('<article class="claim">')[1:]]
    assert len(articles) == len(PROMISES) >= 20
    for promise, told in zip(PROMISES, articles, strict=True):
        assert told.startswith(promise.what)
        report = [promise.carry, promise.argued, promise.tested, promise.assumed, *promise.theorems, *promise.claims]
        report += [BOOK.claim(name).scope for name in promise.claims]
        report += [THEOREMS[name].idealises for name in promise.theorems]
        assert [text for text in report if text not in told] == []


@pytest.mark.parametrize("name", promises.PAGES)
def test_the_page_of_a_protocol_says_which_of_its_promises_are_machine_checked(name: str) -> None:
    here = [promise for promise in PROMISES if promise.page == name]
    block = trust.machine_checked(name)
    carried = [promise for promise in here if promise.theorems]
    assert f"{len(carried)} of these {len(here)} statements" in block
    assert all(f"[`{theorem}`](" in block for promise in carried for theorem in promise.theorems)
    assert ("By no theorem" in block) == (len(carried) < len(here))


def test_the_counts_are_those_of_the_promises() -> None:
    rows = re.findall(r"<tr><th scope=\"row\">.*?</th>(.*?)</tr>", trust.promises())
    numbers = [[int(cell) for cell in re.findall(r"<td>(\d+)</td>", row)] for row in rows]
    expected = []
    for name in promises.PAGES:
        here = [promise for promise in PROMISES if promise.page == name]
        expected.append(
            [len(here), *(sum(bool(getattr(one, field)) for one in here) for field in trust.WORDS.values())]
        )
    assert numbers == expected


def test_the_words_are_those_of_the_text() -> None:
    rows = resources.rows("ledger.md", "word | meaning")
    assert [row[0] for row in rows] == [*trust.WORDS]


def test_a_clause_names_the_theorems_that_carry_it() -> None:
    lines = "\n".join(additions.decided("LSA-19", {kind: {} for kind in requirements.KINDS}, "spec/lightsecagg.md"))
    assert "2 theorems" in lines
    assert "[`Quorum.quorum`](../reference/theorems.md#Quorum-quorum)" in lines
    assert "theorem" not in "\n".join(
        additions.decided("LSA-20", {kind: {} for kind in requirements.KINDS}, "spec/x.md")
    )
