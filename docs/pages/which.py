"""Draws which protocol a plan takes, by users and colluders: ``python -m docs.pages.which`` stores the picture."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from docs.pages.common import ROOT
from secagg_spec.planning.choices import PROTOCOLS
from secagg_spec.planning.plan import plan
from secagg_spec.planning.wishes import Wish

PICTURE = ROOT / "docs" / "assets" / "which-protocol.svg"
USERS = (10, 30, 100, 300, 1000, 3000, 10_000, 100_000)
COLLUDERS = tuple(Fraction(share, 100) for share in (40, 30, 20, 10, 5, 1))
DROPOUT, DIMENSION = Fraction(1, 10), 10**6
_FILLS = {"secagg": "#cfe3f5", "secagg-plus": "#cdebc5", "lightsecagg": "#fbe3b0", "heterosag": "#e6d5f0"}
_SHOWN = {"secagg": ("t",), "secagg-plus": ("k", "t"), "lightsecagg": ("U",), "heterosag": ("t",)}
_WIDE, _HIGH, _LEFT, _TOP = 108, 44, 96, 64


def picture() -> str:
    """Return the picture as SVG: a cell for each number of users and share of colluders."""
    width, height = _LEFT + _WIDE * len(USERS) + 8, _TOP + _HIGH * len(COLLUDERS) + 44
    body = "\n".join([*_axes(), *_cells()])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="13" text-anchor="middle">\n<title>Which protocol, by users and colluders</title>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _axes() -> Iterator[str]:
    middle = _LEFT + _WIDE * len(USERS) / 2
    yield _text(middle, 20, "users of a round", "bold")
    for at, users in enumerate(USERS):
        yield _text(_LEFT + _WIDE * (at + 0.5), 48, f"{users:,}")
    yield _text(_LEFT / 2, 48, "colluders", "bold")
    for at, share in enumerate(COLLUDERS):
        yield _text(_LEFT / 2, _TOP + _HIGH * (at + 0.5) + 5, f"{float(share):.0%}")
    below = _TOP + _HIGH * len(COLLUDERS) + 26
    under = f"{DIMENSION:,} numbers, one round, a user drops out with probability {float(DROPOUT):g}"
    yield _text(middle, below, f"{under}; threshold t, neighbours k")


def _cells() -> Iterator[str]:
    for row, share in enumerate(COLLUDERS):
        for column, users in enumerate(USERS):
            x, y = _LEFT + _WIDE * column, _TOP + _HIGH * row
            best = next(iter(plan(Wish(users, DIMENSION, DROPOUT, share)).choices), None)
            fill = _FILLS[best.protocol] if best else "#eeeeee"
            yield f'<rect x="{x}" y="{y}" width="{_WIDE - 3}" height="{_HIGH - 3}" rx="3" fill="{fill}"/>'
            shown = ", ".join(f"{name} = {best.numbers[name]}" for name in _SHOWN[best.protocol]) if best else ""
            title = PROTOCOLS[best.protocol].title if best else "none"
            yield _text(x + _WIDE / 2 - 1.5, y + 18, title, "bold")
            yield _text(x + _WIDE / 2 - 1.5, y + 34, shown)


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-weight="{weight}" fill="#1a1a1a">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
