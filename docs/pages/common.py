"""Where things stand on the site, and what several pages are written with."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping, Sized
from pathlib import Path

from secagg_spec import history, resources
from secagg_spec.ledger import entries

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "reference" / "secagg_spec"
WITH_API = (
    *(
        "arithmetic",
        "crypto",
        "learning",
        "privacy",
        "protocols",
        "selection",
        "experiments",
        "planning",
        "errors.py",
        "events.py",
    ),
    *(f"conformance/{part}" for part in ("adapter", "api.py", "mutants", "pytest_plugin.py", "sdk", "vectors")),
)
"""What users of the library import; the rest is read in its source."""
TOP_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
REQUIREMENTS = "reference/requirements.md"
CLAIMS = "reference/claims.md"
RELEASED = "reference/targets.md"
EXPERIMENTS = "reference/experiments.md"
BENCHMARKS = "reference/benchmarks.md"
MUTANTS = "reference/mutants.md"
API = "reference/api"
COMMAND_LINE = "reference/command-line.md"
FORMATS = "reference/formats.md"
ERRATA = "reference/errata/index.md"
INDEX = "reference/papers.md"
RESULTS = "reference/results.md"
PROOFS = "reference/proofs"
THEOREMS = "reference/theorems.md"
TRUST = "explanation/trust.md"
VERSIONS = "spec/versions.md"
CHANGES = TOP_PAGES["CHANGELOG.md"]
ELSEWHERE = {**TOP_PAGES, f"spec/{history.FILE}": VERSIONS}
"""The files that stand elsewhere on the site than in the repository, or in other words."""

CLAUSE_LINE = re.compile(r"^- \[([A-Z]+-\d\d)\] ", re.MULTILINE)


class SiteError(Exception):
    """The site cannot be assembled; the message is one line that says what is missing."""


def site_path(path: str) -> str | None:
    """Return where a file of the repository stands on the site, None when it is not there."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("spec/") and path.endswith(".md"):
        return path
    if path.startswith("reference/secagg_spec/") and path.endswith(".py"):
        module = Path(path).relative_to("reference/secagg_spec")
        return f"{API}/{api_name(module)}.md" if is_public(module) else None
    if path.startswith("proofs/") and path.endswith(".py"):
        return f"{PROOFS}/{Path(path).stem}.md"
    return None


def relative(target: str, page: str) -> str:
    """Return the link from one page of the site to another."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


@functools.cache
def clause_pages() -> Mapping[str, str]:
    """Return the page of the site on which each clause stands."""
    return {clause: f"spec/{page}" for clause, page in resources.clause_pages().items()}


@functools.cache
def claims_book() -> entries.Ledger:
    """Return the ledger, which is read and checked once."""
    return entries.load()


def errata_page(paper: str) -> str:
    """Return the page of the site with what does not hold in a paper; the anchor of a claim there is its name."""
    return f"{posixpath.dirname(ERRATA)}/{paper}.md"


def claims_page(paper: str) -> str:
    """Return the page of the site with the claims of a paper in full; the anchor of a claim there is its name."""
    return RESULTS if paper == entries.OURS else f"{CLAIMS.removesuffix('.md')}/{paper}.md"


@functools.cache
def named() -> Mapping[str, str]:
    """Return the page of the site on which each clause and each claim stands; its anchor there is its name."""
    ended = {clause: f"spec/{state.page}" for clause, state in history.load().withdrawn().items()}
    return {**clause_pages(), **ended, **{name: claims_page(one.paper) for name, one in claims_book().claims.items()}}


@functools.cache
def names() -> re.Pattern[str]:
    """Return the pattern of a mention of a clause or a claim."""
    return re.compile(r"\b(?=[A-Z0-9]+-)(?:" + "|".join(named()) + r")\b")


def mention(name: str, page: str) -> str:
    """Return a link to a clause or a claim, in Markdown."""
    target = named()[name]
    return f"[{name}]({'' if target == page else relative(target, page)}#{name}){{ .mention }}"


def is_public(module: Path) -> bool:
    """Return whether a module, given by its path in the package, has an API page; the package of a protocol has one."""
    if not module.as_posix().startswith(WITH_API):
        return False
    if module.match("protocols/*/__init__.py"):
        return True
    return not any(part.startswith("_") for part in module.parts)


def api_name(module: Path) -> str:
    """Return the dotted name of a module, which is also the name of its page."""
    module = module.parent if module.name == "__init__.py" else module.with_suffix("")
    return ".".join(("secagg_spec", *module.parts))


def heading(path: Path) -> str:
    """Return the first heading of a page."""
    first = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if first is None:
        raise SiteError(f"{path.relative_to(ROOT)} has no heading")
    return first.group(1).strip()


def slug(title: str) -> str:
    """Return the anchor that the site gives to a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def write(path: Path, text: str) -> None:
    """Write a page; folders that are not there are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def escaped(text: str) -> str:
    """Return a text in which nothing is markup of Markdown; Markdown has no backslash for some characters."""
    return re.sub(r"[\\`*_\[\]<>|~^$]", lambda hit: f"&#{ord(hit.group())};", text)


def count(items: Sized, word: str) -> str:
    """Say how many there are of what one word names: ``no test``, ``1 test``, ``2 tests``."""
    return f"{len(items) or 'no'} {word}{'' if len(items) == 1 else 's'}"
