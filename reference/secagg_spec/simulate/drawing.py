"""A segment selection matrix as a picture: a self-contained SVG, for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from secagg_spec.arithmetic.segments import Matrix, Robustness
from secagg_spec.simulate.matrices import ALONE, GONE, LEFT, entries

SIDE, GUTTER, TOP, FOOT, MARGIN = 30, 84, 76, 58, 20
_FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
_KINDS = {ALONE: "alone", LEFT: "left", GONE: "gone"}
_FIRST, _GOLDEN = 205, 137.508


@dataclass(frozen=True)
class Panel:
    """One matrix of a picture: its title, the set that shows the most, and the lines below it."""

    title: str
    matrix: Matrix
    found: Robustness
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        """The width of the panel: the maximum of table and lines."""
        written = max(len(text) for text in (self.title, *self.notes)) * 7
        return max(GUTTER + SIDE * len(self.matrix), written) + MARGIN


def picture(panels: Sequence[Panel], *, group_of: Sequence[int] | None = None, dropped: Collection[int] = ()) -> str:
    """Return matrices next to each other as the text of an SVG file.

    Parameters
    ----------
    panels : sequence of Panel
    group_of : sequence of int
        The group of each subgroup, if groups have several.
    dropped : collection of int
        Subgroups without survivors.
    """
    count = len(panels[0].matrix)
    width = MARGIN + sum(panel.width for panel in panels)
    height = TOP + SIDE * count + FOOT
    body, left = list[str](), MARGIN
    for panel in panels:
        body += [f'<g transform="translate({left} 0)">', *_panel(panel, group_of, dropped), "</g>"]
        left += panel.width
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    described = escape("; ".join(f"{panel.title}: {', '.join(panel.notes)}" for panel in panels))
    return "\n".join(
        [
            f'{head} role="img">',
            f"<title>{described}</title>",
            f"<style>{_style(count)}</style>",
            f'<rect class="page" width="{width}" height="{height}"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _panel(panel: Panel, group_of: Sequence[int] | None, dropped: Collection[int]) -> Iterator[str]:
    count = len(panel.matrix)
    yield _text(0, 20, panel.title, "title")
    names = range(count)
    yield _text(GUTTER - 12, TOP - 10, "group" if group_of is None else "subgroup", "head end")
    yield from (_text(_middle(at), TOP - 10, str(name), "head") for at, name in enumerate(names))
    if group_of is not None:
        yield _text(GUTTER - 12, TOP - 28, "group", "head end")
        yield from (_text(_middle(at), TOP - 28, str(group), "head") for at, group in enumerate(group_of))
    for row in range(count):
        name = f"segment {row}" if row == 0 else str(row)
        yield _text(GUTTER - 12, _line(row), name, "head end")
        shown = row in panel.found.rows
        yield from _row(row, entries(panel.matrix[row], dropped), panel.found.subgroups if shown else ())
    yield from (_text(0, TOP + SIDE * count + 24 + 18 * at, note, "note") for at, note in enumerate(panel.notes))


def _row(row: int, texts: Sequence[str], shown: Collection[int]) -> Iterator[str]:
    for at, text in enumerate(texts):
        kind = _KINDS.get(text, f"c{text}") + (" shown" if at in shown else "")
        x, y, size = GUTTER + SIDE * at + 2, TOP + SIDE * row + 2, SIDE - 4
        yield f'<rect class="{kind}" x="{x}" y="{y}" width="{size}" height="{size}" rx="5"/>'
        yield _text(_middle(at), _line(row), text, "entry")


def _middle(column: int) -> int:
    return GUTTER + SIDE * column + SIDE // 2


def _line(row: int) -> int:
    return TOP + SIDE * row + SIDE // 2 + 5


def _text(x: int, y: int, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def _style(count: int) -> str:
    """Return the style: light colours, and dark ones for dark mode; each number has its own hue."""
    hues = [round(_FIRST + number * _GOLDEN) % 360 for number in range(count)]
    light = "".join(f".c{at}{{fill:hsl({hue},70%,84%)}}" for at, hue in enumerate(hues))
    dark = "".join(f".c{at}{{fill:hsl({hue},45%,27%)}}" for at, hue in enumerate(hues))
    return (
        f"text{{font-family:{_FONT};font-size:13px;fill:#1f2328}}.title{{font-size:15px;font-weight:600}}"
        ".head{fill:#59636e;text-anchor:middle}.head.end{text-anchor:end}.note{fill:#59636e}"
        ".entry{text-anchor:middle}.page{fill:#fff}.alone{fill:#fff;stroke:#59636e;stroke-dasharray:3 2}"
        ".left{fill:#ffdcd7;stroke:#c93c37;stroke-dasharray:3 2}.gone{fill:#eff1f3}"
        f".shown{{stroke:#c93c37;stroke-width:2.5;stroke-dasharray:none}}{light}"
        "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.head,.note{fill:#9ea7b3}.page{fill:#0d1117}"
        ".alone{fill:#0d1117;stroke:#9ea7b3}.left{fill:#4a1d1b;stroke:#ff7b72}.gone{fill:#1c2128}"
        f".shown{{stroke:#ff7b72}}{dark}}}"
    )
