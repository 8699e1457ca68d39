"""The page "Find your way in the code" draws the rooms as they import each other, and names what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from docs.pages import rooms
from docs.pages.common import PACKAGE, ROOT, SiteError

PAGE = (ROOT / "docs" / "explanation" / "find-your-way.md").read_text(encoding="utf-8")
SCREEN = 60
MOST_NAMES = 30
PROTOCOLS = sorted((PACKAGE / "protocols").rglob("*.py"))


def test_the_page_has_the_drawing_that_the_imports_give() -> None:
    arrows = rooms.imports()
    assert rooms.drawing(arrows) in PAGE, "python -m docs.pages.rooms prints what the page must have"
    assert all(sum(map(len, found.values())) >= len(found) for found in arrows.values())
    assert "protocols" in arrows[""]["privacy"]
    assert "checks" in arrows["conformance"]["running"]


def test_the_page_fits_a_screen() -> None:
    assert len(PAGE.splitlines()) <= SCREEN


@pytest.mark.parametrize("path", re.findall(r"`((?:[\w.]+/)+(?:\w+\.py)?)`", PAGE))
def test_what_the_page_names_is_there(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


def test_a_room_stands_above_those_from_which_it_imports() -> None:
    drawn = rooms.lines({"top": {"left", "low"}, "left": {"low"}, "right": {"low"}, "low": set()})
    assert drawn == [["top"], ["left", "right"], ["low"]]


def test_rooms_that_import_each_other_are_named() -> None:
    with pytest.raises(SiteError, match="left, right"):
        rooms.lines({"left": {"right", "low"}, "right": {"left"}, "low": set()})


@pytest.mark.parametrize("path", PROTOCOLS, ids=lambda path: path.relative_to(PACKAGE / "protocols").as_posix())
def test_a_module_of_a_protocol_imports_few_names(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imports for alias in node.names} - {"guard"}
    assert len(names) <= MOST_NAMES, "import a module, and say errors.Malformed, rather than each of its names"
