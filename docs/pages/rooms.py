"""The rooms of the reference as they import each other: the drawings on the page "Find your way in the code".

A room is a package, or a module that stands beside packages. It stands in a line above all rooms from which it imports.
Imports for types alone do not count. ``python -m docs.pages.rooms``, with the extra ``test``, prints what the page must
have.
"""

from __future__ import annotations

from collections.abc import Mapping

from grimp import ImportGraph, build_graph

from docs.pages.common import SiteError

DRAWN = {"": "The package", "protocols": "`protocols/`", "conformance": "`conformance/`, the kit"}
"""The packages whose rooms are drawn, by their names below `secagg_spec`, and the title of each drawing."""


def imports() -> Mapping[str, Mapping[str, set[str]]]:
    """Return, for each package that is drawn, its rooms with those from which each imports."""
    graph = build_graph("secagg_spec", exclude_type_checking_imports=True, cache_dir=None)
    return {name: _arrows(graph, ".".join(filter(None, ("secagg_spec", name)))) for name in DRAWN}


def _arrows(graph: ImportGraph, package: str) -> dict[str, set[str]]:
    rooms = graph.find_children(package)

    def needs(one: str, other: str) -> bool:
        return graph.direct_import_exists(importer=one, imported=other, as_packages=True)

    return {_last(one): {_last(other) for other in rooms if other != one and needs(one, other)} for one in rooms}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def lines(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return rooms line by line; what a room imports stands in lines below its own.

    Raises
    ------
    SiteError
        Rooms import each other in a circle.
    """
    below, found = dict(arrows), list[list[str]]()
    while below:
        free = sorted(room for room, needed in below.items() if not needed & below.keys())
        if not free:
            raise SiteError(f"these rooms import each other: {', '.join(sorted(below))}")
        found.insert(0, free)
        below = {room: needed for room, needed in below.items() if room not in free}
    return found


def drawing(arrows: Mapping[str, Mapping[str, set[str]]]) -> str:
    """Return the drawings of some packages, in Markdown."""
    blocks = []
    for name, rooms in arrows.items():
        rows = "\n".join("    " + "   ".join(line) for line in lines(rooms))
        blocks.append(f"{DRAWN[name]}:\n\n{rows}\n")
    return "\n".join(blocks)


if __name__ == "__main__":
    print(drawing(imports()), end="")
