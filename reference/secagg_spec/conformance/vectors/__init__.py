"""The test vectors: fixed requests with the one right outcome of each, written to ``spec/vectors`` as JSON.

One module makes one file. A module has a function ``file()``; a new area of the adapter protocol gets its own
module and a line in `AREAS`.

Source: docs/explanation/vectors.md; the format is ``spec/vectors/schema.json``.
"""

from __future__ import annotations

from importlib import import_module

from secagg_spec.conformance.vectors.base import VectorFile

AREAS = (
    "adapter",
    "arithmetic",
    "code",
    "quantizer",
    "lightsecagg",
    "crypto",
    "messages",
    "scripts",
    "signing",
    "active",
    "shamir",
    "secagg",
    "staleness",
    "basecagg",
    "basecagg_scripts",
    "basa",
    "basa_scripts",
    "heterosag",
    "heterosag_scripts",
    "multi_round",
)
"""The modules that make vectors, one file each."""


def files() -> list[VectorFile]:
    """Make all vectors, in the order of the areas."""
    made: list[VectorFile] = []
    for area in AREAS:
        file: VectorFile = import_module(f"{__name__}.{area}").file()
        assert file.name == area, f"{area}.py makes the file {file.name}"
        made.append(file)
    return made
