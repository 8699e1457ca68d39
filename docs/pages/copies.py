"""The pages of docs/ and spec/, as they stand on the site."""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from docs.pages import frameworks, trust, upstream
from docs.pages.common import CLAUSE_LINE, ROOT, TOP_PAGES, heading, mention, names, relative, site_path, write
from docs.pages.mutants import mutation, power
from docs.pages.threats import threat_models

_LINK = re.compile(r"\[([^\[\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_PROMPTED = re.compile(r"^( *)```text\n\1\$ ", re.MULTILINE)
"""A block that begins with a prompt: its prompts and what is printed are marked, so that nobody copies them."""
_LITERAL = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)|^\$\$.*?\$\$|^#+ .*?$|`[^`\n]*(?:\n[^`\n]+)?`"
    r"|!?\[[^\]\n]*\](?:\([^)\n]*\))?|<[^>\n]+>",
    re.MULTILINE | re.DOTALL,
)
"""What is left as it is when mentions are linked: code, formulas, headings, links, tags."""


def convert(text: str, source: str, page: str) -> str:
    """Return the text of a page as it stands on the site."""
    text = _PROMPTED.sub(r"\1```console\n\1$ ", text)
    text = _LINK.sub(lambda link: _moved(link, source, page), text)
    text = _between_literals(text, lambda part: names().sub(lambda hit: mention(hit.group(), page), part))
    return CLAUSE_LINE.sub(r"- [](){ #\1 tabindex=-1 aria-hidden=true }[\1](#\1){ .clause } ", text)


def _moved(link: re.Match[str], source: str, page: str) -> str:
    """Return a link as seen from `page`; of a link to a file that is not on the site, the words alone."""
    words, target, anchor = link.groups(default="")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    there = site_path(path)
    if there is not None:
        return f"[{words}]({relative(there, page)}{anchor})"
    return words if (ROOT / path).exists() else link.group()


def _between_literals(text: str, change: Callable[[str], str]) -> str:
    parts, at = [], 0
    for literal in _LITERAL.finditer(text):
        parts += [change(text[at : literal.start()]), literal.group()]
        at = literal.end()
    return "".join([*parts, change(text[at:])])


def copied() -> Iterator[tuple[str, str]]:
    """Yield each page that is copied: its path in the repository, and on the site."""
    yield from (_there(path) for path in sorted((ROOT / "docs").rglob("*.md")))
    yield from (_there(path) for path in sorted((ROOT / "spec").glob("*.md")))
    yield from TOP_PAGES.items()


def _there(path: Path) -> tuple[str, str]:
    source = path.relative_to(ROOT).as_posix()
    page = site_path(source)
    assert page is not None, source
    return source, page


def decisions() -> str:
    """Return the list of decisions: the first heading of each file, in order."""
    files = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    return "\n".join(f"- [{heading(path)}]({path.name})" for path in files)


_MARKS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "decisions": decisions,
        "power": power,
        "promises": trust.promises,
        "mutation": mutation,
        "frameworks": frameworks.overview,
        "flower-upstream": upstream.flower,
    }
)
"""What stands in the place of a mark."""
_MARK = re.compile(f"<!-- ({'|'.join(_MARKS)}) -->")


def write_copies(out: Path) -> None:
    """Copy the pages and the assets; the list of decisions is filled in."""
    for source, page in copied():
        text = convert(_text(source).replace("<!-- threat-models -->", threat_models()), source, page)
        write(out / page, _MARK.sub(lambda mark: _MARKS[mark[1]](), text))
    shutil.copytree(ROOT / "docs" / "assets", out / "assets", dirs_exist_ok=True)


def _text(source: str) -> str:
    """Return the text of a page; of a page beside the README that is not written yet, one line."""
    path = ROOT / source
    if source in TOP_PAGES and not path.is_file():
        print(f"build_site: {source} is missing; its page says so", file=sys.stderr)
        return f"# {path.stem.capitalize()}\n\nThis page is not written yet.\n"
    return path.read_text(encoding="utf-8")
