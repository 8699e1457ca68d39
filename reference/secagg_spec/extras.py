"""Says how to install a package that is missing: by the extra that has it, as the project's own metadata say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, requires

PROJECT = "secagg-spec"
NAMES = {"PIL": "pillow", "flint": "python-flint", "sklearn": "scikit-learn"}
"""What modules are called in an index, where it is something else."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:.*\bextra == ['\"]([\w-]+))?")


@cache
def extras() -> dict[str, frozenset[str]]:
    """Return what each extra asks for, and under an empty name what the core asks for."""
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
    """Return the command that installs a module; of several extras with it, that with the most of those `beside` it."""
    wanted, *others = (NAMES.get(name, name.replace("_", "-")) for name in (module, *beside))
    having = [extra for extra, names in extras().items() if wanted in names]
    if not having:
        return f"pip install {wanted}"
    extra = max(having, key=lambda extra: len(extras()[extra].intersection(others)))
    return f"pip install '{PROJECT}[{extra}]'" if extra else f"pip install {PROJECT}"
