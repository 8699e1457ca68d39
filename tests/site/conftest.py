"""The pages and the site, built once for all tests of this folder with the extra `docs` alone, and a browser."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import hidden
from tests.site import browser
from tests.site.shell import ROOT, run

HAS_DOCS = all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings"))


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that the first process of the tests which asks for it makes, and all others take."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            made = factory.mktemp(name)
            make(made)
            made.rename(folder)
    return folder


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as Markdown, with KaTeX among the assets."""
    if shutil.which("npm") is None and not any((ROOT / "build").glob("katex-*")):
        pytest.skip("npm is not installed, and KaTeX was not fetched before")
    return once(tmp_path_factory, "pages", _assemble)


def _assemble(out: Path) -> None:
    done = run(sys.executable, "docs/build_site.py", "--out", out, **hidden.without("docs"))
    if done.returncode == 2 and "npm could not fetch" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def site(pages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as HTML; mkdocs ends with an error on any warning."""
    if not HAS_DOCS:
        pytest.skip("the extra `docs` is not installed")

    def render(out: Path) -> None:
        command = ("-m", "mkdocs", "build", "--strict", "--site-dir", out)
        done = run(sys.executable, *command, **hidden.without("docs"), SECAGG_SITE_SRC=str(pages))
        assert done.returncode == 0, done.stdout + done.stderr

    return once(tmp_path_factory, "site", render)


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
