"""Excerpts of the reference, which stand on the pages of the text beside the steps that they carry out.

``excerpts.toml`` says which: for each page of the text the beginning of a step, or a clause, and the definitions that
do it. So the text itself stays free of any language.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.pages.common import API, PACKAGE, SiteError, relative

PLACES = Path(__file__).with_suffix(".toml")


@functools.cache
def places() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return, for each page of the text and each place on it, the definitions that do what stands there."""
    return tomllib.loads(PLACES.read_text(encoding="utf-8"))


def excerpt(names: Sequence[str], page: str) -> list[str]:
    """Return the lines of a block that can be opened, with the source of some definitions."""
    lines = [f'??? example code "The reference does it so: {", ".join(map(_short, names))}"', ""]
    for name in names:
        lines += definition_lines(name, page)
    return lines


def definition_lines(name: str, page: str) -> list[str]:
    """Return the lines of a definition inside a block: where it stands, and its source."""
    code = (f"    {line}".rstrip() for line in source(name).splitlines())
    return [f"    {_heading(name, page)}", "", "    ```python", *code, "    ```", ""]


def source(name: str) -> str:
    """Return the source of a definition, named as ``"protocols.secagg.graph:Graph.core"``, with a short docstring.

    Raises
    ------
    SiteError
        There is no such definition.
    """
    node = definition(name)
    lines = _shortened(_lines(name.partition(":")[0]), node)
    return "\n".join(line.removeprefix(" " * node.col_offset) for line in lines)


def definition(name: str) -> ast.FunctionDef | ast.ClassDef:
    """Return a function or class of the reference, as it is parsed."""
    module, _, path = name.partition(":")
    node: ast.AST = _tree(module)
    for part in path.split("."):
        node = _member(node, part, name)
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node


def _member(parent: ast.AST, part: str, name: str) -> ast.AST:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part:
            return node
    raise SiteError(f"{PLACES.name} names {name}, which the reference does not have")


def _shortened(lines: Sequence[str], node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """Return the lines of a definition; of its docstring only the first one."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    docstring = ast.get_docstring(node)
    if docstring is None:
        return list(lines[first - 1 : node.end_lineno])
    begin, end = node.body[0].lineno, node.body[0].end_lineno
    short = f'{" " * node.body[0].col_offset}"""{docstring.splitlines()[0]}"""'
    return [*lines[first - 1 : begin - 1], short, *lines[end : node.end_lineno]]


@functools.cache
def _lines(module: str) -> Sequence[str]:
    return _path(module).read_text(encoding="utf-8").splitlines()


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse("\n".join(_lines(module)))


def _path(module: str) -> Path:
    place = PACKAGE.joinpath(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not path.is_file():
        raise SiteError(f"{PLACES.name} names the module {module}, which the reference does not have")
    return path


def _short(name: str) -> str:
    return name.partition(":")[2]


def _heading(name: str, page: str) -> str:
    """Return the name of a definition, with a link to its API page; one that is private has only that of its module."""
    module, _, path = name.partition(":")
    where = f"`{path}`, in `{_path(module).relative_to(PACKAGE).as_posix()}`"
    if any(part.startswith("_") for part in path.split(".")):
        return f"[{where}]({relative(f'{API}/secagg_spec.{module}.md', page)})"
    return f"[{where}][secagg_spec.{module}.{path}]"
