"""The page "Find your way in the code" draws the rooms as they import each other, and names what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest
from docs.pages import rooms
from docs.pages.common import PACKAGE, ROOT, SiteError

PAGE = (ROOT / "docs" / "explanation" / "find-your-way.md").read_text(encoding="utf-8")
BLOCKS = dict(zip(rooms.DRAWN, re.findall(r"(?:^    .+\n)+", PAGE, flags=re.MULTILINE), strict=True))
SCREEN = 60


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """What imports what, as a library reads it; not what is imported for types alone."""
    return grimp.build_graph("secagg_spec", exclude_type_checking_imports=True, cache_dir=None)


def rows(drawn: str) -> dict[str, int]:
    """The line in which each room of a drawing stands."""
    return {room: at for at, line in enumerate(drawn.splitlines()) for room in line.split()}


def test_the_page_has_the_drawing_that_the_imports_give() -> None:
    assert rooms.drawing() in PAGE, "python -m docs.pages.rooms prints what the page must have"


def test_the_page_fits_a_screen() -> None:
    assert len(PAGE.splitlines()) <= SCREEN


@pytest.mark.parametrize("folder", BLOCKS)
def test_a_room_imports_from_lines_below_its_own(folder: str, imports: grimp.ImportGraph) -> None:
    package = ".".join(filter(None, ("secagg_spec", folder)))
    place = rows(BLOCKS[folder])
    assert set(place) == {name.rpartition(".")[2] for name in imports.find_children(package)}
    arrows = set(between(package, imports))
    assert len(arrows) >= len(place)
    for importer, imported in arrows:
        assert place[importer] < place[imported], f"{importer} imports {imported}"


def between(package: str, imports: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    """The rooms of a package that import each other, the one that does first."""
    inside = [module for module in imports.modules if module.startswith(f"{package}.")]
    depth = package.count(".") + 1
    for module in inside:
        for other in imports.find_modules_directly_imported_by(module) & set(inside):
            pair = module.split(".")[depth], other.split(".")[depth]
            if pair[0] != pair[1]:
                yield pair


@pytest.mark.parametrize("path", re.findall(r"`((?:[\w.]+/)+(?:\w+\.py)?)`", PAGE))
def test_what_the_page_names_is_there(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


def package(folder: Path, **texts: str) -> Path:
    """A package of some modules that is called as ours is."""
    made = folder / "secagg_spec"
    made.mkdir()
    for name, text in texts.items():
        (made / f"{name}.py").write_text(text, encoding="utf-8")
    return made


def test_rooms_that_import_each_other_are_named(tmp_path: Path) -> None:
    one, other = "from secagg_spec import right", "import secagg_spec.left\nfrom secagg_spec.low import x"
    with pytest.raises(SiteError, match="left, right"):
        rooms.lines(package(tmp_path, left=one, right=other, low="x = 1"))


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("from secagg_spec.low import x", [["high"], ["low"]]),
        ("from secagg_spec import low", [["high"], ["low"]]),
        ("import secagg_spec.low", [["high"], ["low"]]),
        ("def f() -> None:\n    from secagg_spec.low import x", [["high"], ["low"]]),
        ("if TYPE_CHECKING:\n    from secagg_spec.low import x", [["high", "low"]]),
        ("from elsewhere.low import x", [["high", "low"]]),
    ],
)
def test_every_way_to_import_is_read_but_that_for_types(tmp_path: Path, text: str, drawn: list[list[str]]) -> None:
    assert rooms.lines(package(tmp_path, high=text, low="x = 1")) == drawn
