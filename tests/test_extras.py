"""Where a package is missing, the message names an extra that has it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from secagg_spec import extras
from secagg_spec.commands import reproduce
from secagg_spec.ledger import proofs
from tests import locks

HERE = ("secagg_spec", "docs", "secagg_adapter")
FILES = [
    path
    for folder in ("reference", "proofs")
    for path in (locks.ROOT / folder).rglob("*.py")
    if not {"targets", "starters"} & set(path.parts)
]
"""All but what runs in environments of its own."""


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the metadata say what ``pyproject.toml`` says now."""
    lines = [
        f"{line}; extra == '{name}'" if name != locks.CORE else line
        for name, asked in locks.wanted().items()
        for line in asked
    ]
    monkeypatch.setattr(extras, "requires", lambda project: lines)
    extras.extras.cache_clear()
    yield
    extras.extras.cache_clear()


def imported(path: Path) -> Iterator[str]:
    """Give the modules that a file imports anywhere, or asks for by `package`."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "package":
            yield ast.literal_eval(node.args[0])


@cache
def others(path: Path) -> set[str]:
    """Return what a file imports of other projects."""
    return {name.partition(".")[0] for name in imported(path)} - {*sys.stdlib_module_names, *HERE}


@pytest.mark.slow
def test_the_extra_that_is_named_has_the_package() -> None:
    for module in sorted({name for path in FILES for name in others(path)}):
        command = re.fullmatch(r"pip install (?:'secagg-spec\[([a-z]+)\]'|secagg-spec)", extras.install(module))
        assert command is not None, module
        asked = {Requirement(line).name.replace("_", "-") for line in locks.wanted()[command[1] or locks.CORE]}
        assert extras.NAMES.get(module, module.replace("_", "-")) in asked, module


def test_one_extra_has_all_that_experiments_import() -> None:
    packages = reproduce._PACKAGES
    assert {extras.install(name, packages) for name in packages} == {"pip install 'secagg-spec[train]'"}


@pytest.mark.slow
def test_one_extra_has_all_that_proofs_compute_with() -> None:
    used = {name for path in FILES if path.parent.name == "proofs" for name in others(path)}
    beyond = {name for name in used if extras.install(name) != "pip install secagg-spec"}
    assert beyond == set(proofs.COMPUTED_WITH)
    assert {extras.install(name, beyond) for name in beyond} == {"pip install 'secagg-spec[test]'"}


def test_an_extra_that_is_written_out_is_one() -> None:
    named = {name for path in FILES for name in re.findall(r"secagg-spec\[([a-z]+)\]", path.read_text("utf-8"))}
    assert named
    assert named <= extras.extras().keys()


def test_a_package_of_no_extra_is_named_itself() -> None:
    assert extras.install("unheard_of") == "pip install unheard-of"


def test_without_metadata_the_package_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(project: str) -> list[str]:
        raise PackageNotFoundError(project)

    monkeypatch.setattr(extras, "requires", absent)
    extras.extras.cache_clear()
    assert extras.install("sklearn") == "pip install scikit-learn"
