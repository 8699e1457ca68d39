"""Every page of the site, opened in a browser at both widths and in both schemes; axe judges what can be read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest
from docs.pages import npm
from docs.pages.common import SiteError
from tests.site.browser import Browser, served
from tests.site.shell import ROOT

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
AXE = npm.Package(
    name="axe-core",
    version="4.14.1",
    sha512="FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    purpose="which judges whether a page can be read by all",
    kept=("axe.min.js", "LICENSE"),
)
FRAME = ("empty-heading", "empty-table-header", "heading-order", "landmark-one-main", "landmark-unique")
WHOLE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "rules": {rule: {"enabled": True} for rule in FRAME},
}
"""What axe tries: all rules of the standard, and those on headings and landmarks that it does not ask for."""
COLOURS = {"runOnly": ["color-contrast"]}
VIEWS = ((390, "dark"), (390, "light"), (1280, "light"), (1280, "dark"))
"""A page is opened in the first; then one thing changes at a time, the scheme by the page's own button.

The first and the third are enough where axe does not see a page, and outside `make pages`: whether a page is too wide
depends on the width alone, and a contrast on the scheme alone.
"""
GENERATED = ("reference/api/", "reference/proofs/")
EVERY = 25
"""Of the pages that one template makes of the code, axe sees one in so many, and it sees all other pages."""
TABS = 3
LARGEST = 500_000
MAIN = (
    "",
    "tutorials/watch-a-round/",
    "tutorials/play-a-round/",
    "frameworks/flower/",
    "explanation/secure-aggregation/",
    "how-to/choose-parameters/",
    "explanation/which-protocol/",
    "spec/lightsecagg/",
    "reference/errata/",
    "reference/errata/heterosag/",
    "reference/comparison/",
    "explanation/threat-models/",
    "reference/proofs/field_size/",
)
"""The pages that are opened in each run of the tests, one of each kind; `make pages` opens all."""
PLAIN = ("reference/claims/", "reference/claims/heterosag/", "reference/papers/", "reference/proofs/")
"""Those that are opened as well, but that axe does not see then: they are long."""
ALL = os.environ.get("SECAGG_SPEC_PAGES") == "1"

LOOK = (HERE / "look.js").read_text(encoding="utf-8")
WEAK = (HERE / "contrast.js").read_text(encoding="utf-8")
TURN = """(wanted) => {
  if (document.body.dataset.mdColorScheme !== wanted) {
    document.querySelector("form[data-md-component=palette] label:not([hidden])").click();
  }
}"""
SHOWN = """(wanted) => new Promise((done) => {
  const look = (tries) => {
    const scheme = document.body.dataset.mdColorScheme;
    if (scheme === wanted || !tries) done(scheme);
    else setTimeout(look, 50, tries - 1);
  };
  look(100);
})"""
SCHEMES = {"dark": "slate", "light": "default"}
RESULTS = """new Promise((done) => {
  const look = () => {
    const links = [...document.querySelectorAll("a.md-search-result__link")];
    if (links.length) done(links.map((link) => [link.pathname, link.textContent]));
    else setTimeout(look, 50);
  };
  look();
})"""

HERE_AT = """new Promise((done) => {
  const look = () => {
    if (document.querySelector("h2:target")) done(location.pathname + location.hash);
    else setTimeout(look, 50);
  };
  look();
})"""


def addresses(site: Path) -> list[str]:
    """Return the addresses of all pages, below that of the site."""
    return [path.relative_to(site).as_posix().removesuffix("index.html") for path in sorted(site.rglob("*.html"))]


def judged(pages: Sequence[str]) -> set[str]:
    """Return the pages that axe sees."""
    generated = [page for page in pages if page.startswith(GENERATED) and page not in GENERATED]
    return {*pages} - {*generated} | {*generated[::EVERY]}


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe."""
    try:
        return (npm.fetch(AXE, ROOT / "build") / "axe.min.js").read_text(encoding="utf-8")
    except SiteError as error:
        pytest.skip(str(error))


def faults(tab: Browser, address: str, axe: str = "") -> Iterator[str]:
    """Yield what is wrong with a page in any view; axe judges it where its script is given."""
    tab.begin()
    tab.show(VIEWS[0][0], 900, VIEWS[0][1])
    tab.open(address)
    tab.run(f"{axe}; 0")
    for number, (width, scheme) in enumerate(VIEWS if axe and ALL else VIEWS[::2]):
        tab.show(width, 900, scheme)
        tab.run(f"({TURN})({json.dumps(SCHEMES[scheme])})")
        if (shown := tab.run(f"({SHOWN})({json.dumps(SCHEMES[scheme])})")) != SCHEMES[scheme]:
            yield f"{width} {scheme}: is shown in the colours of {shown}"
        yield from (f"{width} {scheme}: {fault}" for fault in _seen(tab, bool(axe), whole=number in (0, 2) or not ALL))
    yield from (f"complains: {words}" for words in tab.complaints)
    yield from (f"asks for {url}" for url in tab.elsewhere())


def _seen(tab: Browser, axe: bool, whole: bool) -> Iterator[str]:
    """Yield what is wrong with a page as it is shown: in its colours, and as a whole where that is asked."""
    asked = (WHOLE if whole else COLOURS) if axe else None
    if (wide := tab.width()) > (room := tab.run("innerWidth")):
        yield f"is {wide} wide in a window of {room}"
    yield from tab.run(f"({LOOK})({json.dumps(asked)})")
    if not axe:
        yield from (f"too weak: {one}" for one in tab.run(f"({WEAK})('.md-content *')"))


def test_pages_can_be_read_in_every_view(site: Path, address: str, opened: Browser, axe: str) -> None:
    known = addresses(site)
    assert len(known) > 300
    assert {*MAIN, *PLAIN} <= set(known)
    pages = known if ALL else [*MAIN, *PLAIN]
    seen_by_axe, wrong = judged(known) if ALL else set(MAIN), {}
    waiting: SimpleQueue[str] = SimpleQueue()
    for page in pages:
        waiting.put(page)

    def work(tab: Browser) -> None:
        while True:
            try:
                page = waiting.get_nowait()
            except Empty:
                return
            if found := list(faults(tab, f"{address}/{page}", axe if page in seen_by_axe else "")):
                wrong[page] = found

    with ThreadPoolExecutor(TABS) as pool:
        list(pool.map(work, [opened, *(opened.another() for _ in range(TABS - 1))]))
    assert wrong == {}


def test_a_page_with_faults_is_found_out(tmp_path: Path, opened: Browser, axe: str) -> None:
    shutil.copyfile(HERE / "broken.html", tmp_path / "index.html")
    with served(tmp_path) as url:
        quick, whole = (" ".join(faults(opened, f"{url}/", script)) for script in ("", axe))
    for words in ("390 dark: is 20", "has no words", "too weak: ", "complains: a fault", "asks for http://192.0.2.1/"):
        assert words in quick
    for words in ("1280 light: is 20", "heading-order", "label, 1", "color-contrast", "image-alt"):
        assert words in whole


@pytest.fixture(scope="module")
def searched(site: Path) -> Iterator[str]:
    """The address under which the site is served with its index of the search."""
    with served(site, searched=True) as url:
        yield url


def test_the_search_finds_what_is_typed(searched: str, window: Browser) -> None:
    window.open(f"{searched}/")
    window.run("document.querySelector('.md-search__input').focus()")
    window.type("T-privacy")
    found = window.run(RESULTS)
    assert any("T-privacy" in words for _, words in found), found
    assert any(path == "/explanation/privacy-verdicts/" for path, _ in found), found


def test_the_search_finds_the_entry_of_a_clause_first(searched: str, window: Browser) -> None:
    window.open(f"{searched}/")
    window.run("document.querySelector('.md-search__input').focus()")
    window.type("LSA-09")
    assert window.run(RESULTS)[0][0] == "/reference/requirements/lightsecagg/"


def test_the_search_finds_what_a_paper_numbers(searched: str, window: Browser) -> None:
    window.open(f"{searched}/")
    window.run("document.querySelector('.md-search__input').focus()")
    window.type("theorem 1")
    first = [words for _, words in window.run(RESULTS)[:8]]
    assert any("HET-THM1 theorem 1" in words for words in first), first


def test_the_address_of_a_clause_leads_to_its_entry(address: str, window: Browser) -> None:
    window.open(f"{address}/reference/requirements/#lsa-09")
    assert window.run(HERE_AT) == "/reference/requirements/lightsecagg/#lsa-09"
    assert window.run("document.querySelector(':target').textContent").startswith("LSA-09")


def test_no_page_is_large(site: Path) -> None:
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*.html")}
    assert {page: size for page, size in sizes.items() if size >= LARGEST} == {}
