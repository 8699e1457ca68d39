"""Says how to install a missing package: through the extra that contains it, according to the project's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, requires

PROJECT = "secagg-spec"
NAMES = {"PIL": "pillow", "flint": "python-flint", "sklearn": "scikit-learn"}
"""The names of modules in the package index, where they differ."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:.*\bextra == ['\"]([\w-]+))?")


@cache
def extras() -> dict[str, frozenset[str]]:
    """Return the packages that each extra needs; the empty name holds the packages of the core."""
    found: dict[str, set[str]] = {}
    try:
        asked = requires(PROJECT) or ()
    except PackageNotFoundError:
        asked = ()
    for line in asked:
        match = _REQUIREMENT.match(line)
        assert match is not None
        found.setdefault(match[2] or "", set()).add(match[1].replace("_", "-").lower())
    return {extra: frozenset(names) for extra, names in found.items()}


def install(module: str, beside: Iterable[str] = ()) -> str:
    """Return the command that installs a module; of several extras, choose the one with most modules in `beside`."""
    wanted, *others = (NAMES.get(name, name.replace("_", "-")) for name in (module, *beside))
    having = [extra for extra, names in extras().items() if wanted in names]
    if not having:
        return f"pip install {wanted}"
    extra = max(having, key=lambda extra: len(extras()[extra].intersection(others)))
    return f"pip install '{PROJECT}[{extra}]'" if extra else f"pip install {PROJECT}"
