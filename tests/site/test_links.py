"""Every link from one page of the site to another leads somewhere, and to an anchor that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

_ANCHOR = re.compile(r'\s(?:id|name)="([^"]+)"')
_LINK = re.compile(r'<a\b[^>]*?\shref="([^"]*)"')


def broken(site: Path, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each page with each of its links that leads nowhere; the pages are given by their addresses."""
    anchors = {page: {unescape(name) for name in _ANCHOR.findall(text)} for page, text in texts.items()}
    for page, text in texts.items():
        for link in sorted(set(map(unescape, _LINK.findall(text)))):
            there = urlsplit(urljoin(f"http://site/{page}", link))
            path, anchor = unquote(there.path).lstrip("/"), unquote(there.fragment)
            if there.netloc == "site" and not (
                anchor in {"", *anchors[path]} if path in anchors else _is_file(site, path)
            ):
                yield page, link


def _is_file(site: Path, path: str) -> bool:
    return not path.endswith("/") and (site / path).is_file()


def test_a_broken_link_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    home = '<h1 id="top"></h1>' + "".join(
        f'<a class="x" href="{link}">'
        for link in (
            "a/",
            "a/#here",
            "a/#gone",
            "#top",
            "#gone",
            "b/",
            "data.csv",
            "none.csv",
            "https://example.org/#x",
        )
    )
    texts = {"": home, "a/": '<p id="here"></p><a href="../#top"><a href="../#no">'}
    assert sorted(broken(tmp_path, texts)) == [
        ("", "#gone"),
        ("", "a/#gone"),
        ("", "b/"),
        ("", "none.csv"),
        ("a/", "../#no"),
    ]


@pytest.mark.slow
def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    files = {path.relative_to(site).as_posix().removesuffix("index.html"): path for path in site.rglob("*.html")}
    texts = {page: path.read_text(encoding="utf-8") for page, path in files.items()}
    del texts["404.html"]
    assert sum(len(_LINK.findall(text)) for text in texts.values()) > 40_000
    assert list(broken(site, texts)) == []
