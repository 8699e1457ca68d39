"""A hook of mkdocs: what the search reads, what the theme leaves out for those who do not see or point, and speed.

The search of the theme walks through every element of every page. The colours of code are most of them, and the sources
that can be opened are most of the text; neither is what a reader searches for, so the search is shown the page without.

A build would look for garbage five thousand times, which takes an eighth of its time and saves some 250 MB; so it does
not.
"""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any, Literal

from mkdocs.plugins import CombinedEvent, event_priority  # type: ignore[import-not-found, unused-ignore]

_UNSEARCHED = re.compile(
    r'<details class="(?:mkdocstrings-source|example code|decided)">.*?</details>|<(pre|script|svg)\b.*?</\1>'
    r'|<div id="watch-static">.*?(?=<script src="[^"]*watch-data)'
    r'|<a class="headerlink".*?</a>|<p>Decided by.*?</p>|<em class="quoted">.*?</em>|</?(?!h[1-6]\b|p\b)[a-z][^>]*>',
    re.DOTALL,
)
"""What is no text to search: sources, pictures, rounds in steps, claims that are quoted, and most tags."""
_LEFT_OUT = ("reference/mutants/", "reference/api/", "reference/proofs/", "changelog")
"""Pages that no search leads to."""
_HEADED = "reference/requirements/"
"""Pages of which the search reads the headings, which are ids: the pages of the text have the sentences."""
_HEADING = re.compile(r"<h[12]\b.*?</h[12]>", re.DOTALL)
_BEGUN = (
    "reference/proofs/", "reference/api/", "reference/mutants", "reference/errata", "reference/claims.md",
    "reference/benchmarks", "reference/formats", "reference/comparison", "decisions/",
    "explanation/flower-upstream", "explanation/post-mortems",
)  # fmt: skip
"""Pages of which the search reads what stands above the first section; what follows is found elsewhere."""
_BOOST = {"frameworks/": 2, "tutorials/": 2, "explanation/questions": 2, "reference/claims/": 1.5, "decisions/": 0.5}
"""Pages that come before others that fit as well, or after them; the headings of decisions begin with numbers."""
_NO_ADDRESS = (
    "This site names no public address of the project: `make` runs in the checkout or source archive from which it was "
    "built. A wheel is installed with `pip install FILE.whl`, and has `secagg-spec` without `make`."
)
"""How to get the code, where nobody has given the project an address."""
_SEARCH = 'class="md-search" data-md-component="search" role="dialog"'
_CODE = re.compile(r"(<pre[^>]*>(?:<span></span>)?)<code>")
_EMPTY = re.compile(r"<th(?: style=[^>]*)?></th>")
_ROOT = Path(__file__).resolve().parents[1]
_whole: dict[str, str] = {}


@event_priority(100)  # type: ignore[untyped-decorator, unused-ignore]
def _before_search(context: Any, /, page: Any, **_: Any) -> Any:
    _whole[page.url] = page.content
    name = page.file.src_uri
    if name.startswith(_LEFT_OUT) and not name.endswith("/index.md"):
        page.meta["search"] = {"exclude": True}
    elif boost := next((boost for start, boost in _BOOST.items() if name.startswith(start)), None):
        page.meta["search"] = {"boost": boost}
    read = page.content.partition("<h2")[0] if name.startswith(_BEGUN) else page.content
    read = " ".join(_HEADING.findall(read)) if name.startswith(_HEADED) else read
    page.content = " ".join(_UNSEARCHED.sub(" ", read).split())
    return context


@event_priority(-100)  # type: ignore[untyped-decorator, unused-ignore]
def _after_search(context: Any, /, page: Any, **_: Any) -> Any:
    page.content = _whole.pop(page.url)
    return context


def on_startup(*, command: Literal["build", "gh-deploy", "serve"], **_: Any) -> None:
    """Collect no garbage in a process that ends with the build."""
    if command != "serve":
        gc.disable()


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Let a page lead to the file that it was copied from, if the project has an address; made pages lead nowhere."""
    name = page.file.src_uri
    found = (path for path in (f"docs/{name}", name, name[:-3].upper() + ".md") if (_ROOT / path).is_file())
    source = next(found, None)
    page.edit_url = f"{config.repo_url.rstrip('/')}/edit/main/{source}" if config.repo_url and source else None
    address = f"[Get the project]({config.repo_url})." if config.repo_url else _NO_ADDRESS
    return markdown.replace("<!-- copy -->", address)


on_page_context = CombinedEvent(_before_search, _after_search)


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search, let the keys reach code that is wider than its box, and keep no empty heading."""
    named = output.replace(_SEARCH, f'{_SEARCH} aria-label="Search"')
    return _EMPTY.sub("<td></td>", _CODE.sub(r'\1<code tabindex="0">', named))
