"""The source that computes the cells of an experiment: its module, and every module of the project that this imports.

Source: spec/experiments.md, section 7 (EXP-33).
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path


def digest(module: str) -> str:
    """Return the SHA-256 of the names and texts of all modules in `files`, as 64 hexadecimal digits (EXP-33)."""
    texts = sorted((name, hashlib.sha256(path.read_bytes()).hexdigest()) for name, path in files(module).items())
    return hashlib.sha256(repr(texts).encode()).hexdigest()


def files(module: str) -> dict[str, Path]:
    """Return the files of a module and of all that it imports of the project, at once or later, by name of the module.

    The project is the package of this module and that of `module`. An import is read from the source, not run: one that
    stands in a function, or for types only, counts as well.
    """
    roots = {package: _root(package) for package in {__name__.partition(".")[0], module.partition(".")[0]}}
    found: dict[str, Path] = {}
    ahead = [*_with_packages(module)]
    while ahead:
        name = ahead.pop()
        path = None if name in found else _file(roots.get(name.partition(".")[0]), name)
        if path is not None:
            found[name] = path
            ahead += _imported(path)
    return found


def _root(package: str) -> Path | None:
    """Return the folder that holds a package; None if it is no package with a file."""
    spec = find_spec(package)
    return Path(spec.origin).parents[1] if spec and spec.origin and spec.submodule_search_locations else None


def _file(root: Path | None, name: str) -> Path | None:
    """Return the file of a module; None if there is none, as for what a module defines."""
    if root is None:
        return None
    base = root.joinpath(*name.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def _imported(path: Path) -> Iterator[str]:
    """Yield what a file may import: each name, and the packages that hold it; the project has no relative imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            inside = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for alias in node.names:
                yield from _with_packages(".".join([*inside, alias.name]))


def _with_packages(name: str) -> Iterator[str]:
    """Yield the packages that hold a module, the outermost first, and the module."""
    return accumulate(name.split("."), "{}.{}".format)
