"""The pages and the site, built once for all tests of this folder, and a browser to look at them."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.site import browser
from tests.site.shell import ROOT, run

HAS_DOCS = all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings"))


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as Markdown, with KaTeX among the assets."""
    if shutil.which("npm") is None and not any((ROOT / "build").glob("katex-*")):
        pytest.skip("npm is not installed, and KaTeX was not fetched before")
    out = tmp_path_factory.mktemp("pages")
    done = run(sys.executable, "docs/build_site.py", "--out", out)
    if done.returncode == 2 and "npm could not fetch" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def site(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as HTML; mkdocs ends with an error on any warning."""
    if not HAS_DOCS:
        pytest.skip("the extra `docs` is not installed")
    out = tmp_path_factory.mktemp("site")
    done = run(sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out, SECAGG_SITE_SRC=str(pages))
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address under which the site is served."""
    with browser.served(site) as url:
        yield url


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    """A browser."""
    path = browser.program()
    if path is None:
        pytest.skip(f"no browser is installed: {', '.join(browser.NAMES)}")
    with browser.Browser(path, tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def window(opened: browser.Browser) -> Iterator[browser.Browser]:
    """A browser that may not complain of anything in the test, nor ask for anything off this machine."""
    opened.begin()
    yield opened
    opened.run("0")
    assert opened.complaints == []
    assert opened.requests
    assert opened.elsewhere() == []
