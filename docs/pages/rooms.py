"""The rooms of the reference as they import each other: the drawings on the page "Find your way in the code".

A room is a package, or a module that stands beside packages. It stands in a line above all rooms from which it imports.
Everything is read from the source; what is imported for
types alone does not count. ``python -m docs.pages.rooms`` prints the drawing as the page must have it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.pages.common import PACKAGE, SiteError

DRAWN = {"": "The package", "protocols": "`protocols/`", "conformance": "`conformance/`, the kit"}
"""The packages whose rooms are drawn, by their paths below `secagg_spec`, and the title of each drawing."""


def lines(folder: Path) -> list[list[str]]:
    """Return the rooms in a folder, line by line; what a room imports stands in lines below its own.

    Raises
    ------
    SiteError
        Rooms import each other in a circle.
    """
    below, found = dict(_arrows(folder)), list[list[str]]()
    while below:
        free = sorted(room for room, needed in below.items() if not needed & below.keys())
        if not free:
            raise SiteError(f"{folder.name}: these rooms import each other: {', '.join(sorted(below))}")
        found.insert(0, free)
        below = {room: needed for room, needed in below.items() if room not in free}
    return found


def _arrows(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each room of a folder with those from which it imports."""
    rooms = {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}
    rooms |= {path.parent.name: path.parent for path in sorted(folder.glob("*/__init__.py"))}
    for room, place in rooms.items():
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        names = {name for file in files for name in _imported(ast.parse(file.read_text(encoding="utf-8")))}
        yield room, {other for other in _of(folder, names) if other in rooms and other != room}


def _of(folder: Path, names: set[str]) -> Iterator[str]:
    """Yield the part of each name that a folder has."""
    prefix = ".".join(("secagg_spec", *folder.relative_to(_top(folder)).parts, ""))
    return (name.removeprefix(prefix).split(".")[0] for name in names if name.startswith(prefix))


def _top(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.name == "secagg_spec")


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a module imports, and those that it takes from a module as well."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for inner in ast.iter_child_nodes(node):
        yield from _imported(inner)


def drawing(drawn: Mapping[str, str] = DRAWN) -> str:
    """Return the drawings of some packages, in Markdown."""
    blocks = []
    for folder, title in drawn.items():
        rows = "\n".join("    " + "   ".join(line) for line in lines(PACKAGE / folder))
        blocks.append(f"{title}:\n\n{rows}\n")
    return "\n".join(blocks)


if __name__ == "__main__":
    print(drawing(), end="")
