"""What is installed, written down as CycloneDX (``build/sbom.json``), and whether each licence is of a known family."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tests.harden.killed import ROOT

SBOM = ROOT / "build" / "sbom.json"
KNOWN = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python-2|MPL|Mozilla|LGPL|Zlib|CC0")
"""Families of licences that allow what is done here: to install and to run beside the project."""
BY_HAND = {"partd": "BSD-3-Clause, in the file LICENSE.txt of its archive; the metadata names none"}
OWN = "secagg-spec"


def licences() -> Iterator[str]:
    """Write the list of what is installed, and yield what has no licence of a known family."""
    SBOM.parent.mkdir(exist_ok=True)
    words = ["-m", "cyclonedx_py", "environment", sys.executable, "--of", "JSON", "-o", str(SBOM)]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    for one in json.loads(SBOM.read_text(encoding="utf-8"))["components"]:
        said = " ".join(_said(one))
        if one["name"] != OWN and one["name"] not in BY_HAND and not KNOWN.search(said):
            yield f"{one['name']} {one['version']}: {said or 'no licence'}"


def _said(component: dict[str, Any]) -> Iterator[str]:
    """Yield the licences of a component, by id, name or expression."""
    for entry in component.get("licenses", []):
        licence = entry.get("license", {})
        yield str(entry.get("expression") or licence.get("id") or licence.get("name", ""))
