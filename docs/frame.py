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

_UNSEARCHED = re.compile(r'<details class="mkdocstrings-source">.*?</details>|</?span[^>]*>', re.DOTALL)
_SEARCH = 'class="md-search" data-md-component="search" role="dialog"'
_CODE = re.compile(r"(<pre[^>]*>(?:<span></span>)?)<code>")
_EMPTY = re.compile(r"<th(?: style=[^>]*)?></th>")
_ROOT = Path(__file__).resolve().parents[1]
_whole: dict[str, str] = {}


@event_priority(100)  # type: ignore[untyped-decorator, unused-ignore]
def _before_search(context: Any, /, page: Any, **_: Any) -> Any:
    _whole[page.url] = page.content
    page.content = _UNSEARCHED.sub("", page.content)
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
    page.edit_url = f"{config.repo_url.rstrip('/')}/{config.edit_uri}{source}" if config.repo_url and source else None
    return markdown


on_page_context = CombinedEvent(_before_search, _after_search)


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search, let the keys reach code that is wider than its box, and keep no empty heading."""
    named = output.replace(_SEARCH, f'{_SEARCH} aria-label="Search"')
    return _EMPTY.sub("<td></td>", _CODE.sub(r'\1<code tabindex="0">', named))
