"""What is installed, written down as CycloneDX (``build/sbom.json``), and whether each licence is of a known family.

Where the metadata names no licence, the words of the licence files that came with the package say which one it is.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from tests.harden.killed import ROOT

SBOM = ROOT / "build" / "sbom.json"
KNOWN = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python-2|MPL|Mozilla|LGPL|Zlib|CC0")
"""Families of licences that allow what is done here: to install and to run beside the project."""
WORDS = {
    "Apache-2.0": ("Apache License", "Version 2.0, January 2004", "Grant of Patent License"),
    "BSD-3-Clause": ("Redistribution and use in source and binary forms", "Neither the name of"),
    "MIT": ("Permission is hereby granted, free of charge", "The above copyright notice and this permission notice"),
}
"""Words that the file of a licence has, all of them."""
OWN = "secagg-spec"


def licences() -> Iterator[str]:
    """Write the list of what is installed, and yield what has no licence of a known family."""
    SBOM.parent.mkdir(exist_ok=True)
    words = ["-m", "cyclonedx_py", "environment", sys.executable, "--of", "JSON", "-o", str(SBOM)]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    yield from unknown(json.loads(SBOM.read_text(encoding="utf-8"))["components"])


def unknown(components: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the components that have no licence of a known family, neither by metadata nor by licence files."""
    for one in components:
        said = list(_said(one)) or sorted(in_files(one["name"]))
        if one["name"] != OWN and not KNOWN.search(" ".join(said)):
            yield f"{one['name']} {one['version']}: {' '.join(said) or 'no licence'}"


def _said(component: dict[str, Any]) -> Iterator[str]:
    """Yield the licences of a component, by id, name or expression."""
    for entry in component.get("licenses", []):
        licence = entry.get("license", {})
        yield str(entry.get("expression") or licence.get("id") or licence.get("name", ""))


def in_files(package: str) -> set[str]:
    """Return what the licence files of an installed package say, which its metadata names (`License-File`)."""
    try:
        found = distribution(package)
    except PackageNotFoundError:
        return set()
    named = found.metadata.get_all("License-File") or []
    paths = [path for path in found.files or [] if ".dist-info" in str(path) and path.name in map(_base, named)]
    return {of_text(Path(str(path.locate())).read_text(encoding="utf-8", errors="replace")) for path in paths}


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def of_text(text: str) -> str:
    """Return which licence a text is; "a text of no known licence" where the words of none are in it."""
    plain = " ".join(text.split())
    return next((name for name, words in WORDS.items() if all(w in plain for w in words)), "a text of no known licence")
