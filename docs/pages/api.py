"""The API pages: one for each public module, and their index by package."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from docs.pages.common import API, PACKAGE, api_name, is_public, write

_WITH_SOURCE = ("arithmetic", "crypto", "learning", "privacy", "protocols", "selection")
"""The packages of the specification, whose source is shown. That of the tools would double the time of a build."""

_FIRST = re.compile(r'"""(.+?)(?:\n\n|""")', re.DOTALL)


def modules() -> list[Path]:
    """Return the public modules, by their paths in the package."""
    return sorted(path for file in PACKAGE.rglob("*.py") if is_public(path := file.relative_to(PACKAGE)))


def summary(path: Path) -> str:
    """Return the first paragraph of a module's docstring, which stands at its very beginning, in a line."""
    found = _FIRST.match(path.read_text(encoding="utf-8")) if path.is_file() else None
    return found.group(1).strip().replace("\n", " ") if found else ""


def write_api(out: Path) -> None:
    """Write one page for each public module, and their index by package."""
    packages: dict[Path, list[Path]] = defaultdict(list)
    for module in modules():
        packages[module.parent].append(module)
        write(out / API / f"{api_name(module)}.md", _api_page(api_name(module)))
    lines = ["# API", "", "The reference, module by module. Below each definition of the protocols, and of what they"]
    lines += ["are built from, its source can be opened."]
    for package in sorted(packages):
        name = ".".join(("secagg_spec", *package.parts))
        lines += ["", f"## {name}", "", summary(PACKAGE / package / "__init__.py"), ""]
        lines += ["| module | |", "| --- | --- |"] + [_api_row(module) for module in packages[package]]
    write(out / API / "index.md", "\n".join(lines) + "\n")


def _api_row(module: Path) -> str:
    text = summary(PACKAGE / module).replace("|", r"\|")
    name = api_name(module)
    return f"| [`{name.rpartition('.')[2]}`]({name}.md) | {text} |"


def _api_page(name: str) -> str:
    shown = name.split(".")[1:2] and name.split(".")[1] in _WITH_SOURCE
    options = "" if shown else "    options:\n      show_source: false\n"
    return f"---\ntitle: {name}\n---\n[API](index.md)\n\n# `{name}`\n\n::: {name}\n{options}"
