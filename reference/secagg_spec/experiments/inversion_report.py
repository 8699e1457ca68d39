"""Prints and draws the results of `inversion`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments import pictures
from secagg_spec.experiments.inversion import Found, Recovery, Result, Row, similarity
from secagg_spec.experiments.sums import MODULUS

_RED, _GREEN, _GREY = "#b2182b", "#1b7837", "#555555"
_TILE = 112
_GAP = 6
_BETWEEN = 0.8


# ------------------------------------------------------------------------------------------------------- words


def lines(result: Result) -> Iterator[str]:
    """Yield the report, line by line."""
    settings, p = result.settings, result.settings.parameters
    yield f"{p.N} users with one image each ({result.data}), {p.K} in each of {settings.rounds} rounds of SecAgg"
    yield (
        f"net: {settings.net}, {result.numbers} numbers; an update is the gradient on the user's image, quantised at "
        f"2**{settings.level.bit_length() - 1}, summed modulo 2**{MODULUS.bit_length() - 1}"
    )
    yield _drifting(settings.rate)
    yield ""
    yield _out("random selection:  ", "updates of users", result.random, settings.level)
    yield _out("batch partitioning:", "updates of users", result.single, settings.level)
    yield _out("                   ", f"sums over batches of {p.T}", result.batches, settings.level)
    yield ""
    yield from _table(result)
    yield ""
    yield from _verdict(result)


def _drifting(rate: float) -> str:
    if not rate:
        return "the net stays as it is, so updates do not change"
    return f"the server trains the net between rounds, with the rate {rate:g}, so updates drift"


def _out(strategy: str, what: str, found: Recovery, level: int) -> str:
    """Say how many sums can be computed, after how many rounds, and with what error."""
    after = [count for count in found.after if count is not None]
    if not after:
        return f"{strategy} 0 of {len(found.after)} {what} come out"
    when = f"after {min(after)} to {max(after)} rounds" if min(after) < max(after) else f"after {after[0]} rounds"
    return f"{strategy} {len(after)} of {len(found.after)} {what} come out {when}; {_off(found, level)}"


def _off(found: Recovery, level: int) -> str:
    if not found.bound:
        assert found.error == 0, "models that do not change come out exactly"
        return "max |error| = 0, exactly"
    return f"max |error| {_short(found.error)}, at most {_short(found.bound)} (a quantiser's step is {1 / level:.1e})"


def _short(number: Fraction) -> str:
    return f"{float(number):.2g}"


def _parts(row: Row) -> tuple[Found | None, Found | None, Found | None]:
    return row.alone, row.as_one, row.together


def _table(result: Result) -> Iterator[str]:
    T = result.settings.parameters.T
    guess = median(similarity(result.guess, row.original) for row in result.rows)
    yield "how near the images are that come out: peak signal-to-noise ratio in decibels, more is nearer, and in"
    yield f"brackets how many of the {result.pool} images of the data are nearer to it than the user's own"
    yield f"  user   random selection   batch's sum as one user's   batch's sum as {T} users', the nearest"
    for row in result.rows:
        alone, as_one, among = (_cell(found) for found in _parts(row))
        yield f"  {row.user:4}   {alone:>16}   {as_one:>25}   {among:>15}"
    middle = [_middle([_parts(row)[at] for row in result.rows]) for at in range(3)]
    yield f"median   {middle[0]:>10}         {middle[1]:>16}            {middle[2]:>6}".rstrip()
    yield f"the mean image of the data, which needs no update, has {guess:.1f}"


def _cell(found: Found | None) -> str:
    return "-" if found is None else f"{found.score:.1f} ({found.nearer})"


def _middle(column: Sequence[Found | None]) -> str:
    scores = [found.score for found in column if found is not None]
    return f"{median(scores):.1f}" if scores else "-"


def _verdict(result: Result) -> Iterator[str]:
    T, users = result.settings.parameters.T, len(result.rows)
    alone, as_one, among = (sum(_seen(_parts(row)[at]) for row in result.rows) for at in range(3))
    yield "verdict, where an image is found when none of the data is nearer to what comes out than the user's own:"
    known = ", and it is known whose they are" if alone else ""
    yield f"  random selection: the images of {alone} of {users} users are found{known}"
    yield f"  batch partitioning, the sum taken for one user's update: those of {as_one} of {users}, at best"
    yield "    (of all labels and starts the nearest is taken, which the server cannot tell from the others)"
    yield f"  batch partitioning, the sum taken for {T} updates: those of {among} of {users}"
    if among:
        yield f"    each is among the {T} that come out, and nothing in the sums tells whose it is: batch partitioning"
        yield "    hides models in their sum, and images only as far as they cannot be told from such a sum"


def _seen(found: Found | None) -> bool:
    return found is not None and found.nearer == 0


# ------------------------------------------------------------------------------------------------------ picture


def draw(result: Result, folder: Path) -> tuple[Path, Path]:
    """Write the picture as ``reconstruction.svg`` and ``.png`` into a folder, and return the paths; needs matplotlib.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    import matplotlib as mpl  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "secagg-spec", "font.size": 11}):
        figure = figure_of(result.rows, result.settings.parameters.T, result.pool)
        return pictures.saved(figure, folder / "reconstruction", dpi=80, metadata={"Software": None})


def figure_of(rows: Sequence[Row], T: int, pool: int) -> Any:
    """Return the picture of some users' images and the recovered ones, in batches of T; the data have `pool` images."""
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.04)
    figure = Figure(figsize=(9.2, 2.25 * len(rows) + 1.2), layout=layout)
    grid = figure.subplots(len(rows), 4, squeeze=False)
    for axes, title in zip(grid[0], _titles(T), strict=True):
        axes.set_title(title, fontsize=11)
    for axes, row in zip(grid, rows, strict=True):
        _image(axes[0], tiled(row.original[None]), f"user {row.user}", _GREY)
        for place, found in zip(axes[1:], _parts(row), strict=True):
            _come_out(place, found)
    key = f"red: of all {pool:,} images of the data, the user's own is nearest to what came out; green: is not"
    figure.supxlabel(key, fontsize=10)
    return figure


def _titles(T: int) -> tuple[str, ...]:
    return (
        "the user's image",
        "RANDOM SELECTION\nthe user's update comes out,\ninverted:",
        f"BATCH PARTITIONING\nonly a sum of {T} comes out,\ninverted as one user's:",
        f"BATCH PARTITIONING\nthe same sum,\ninverted as {T} users', whose?",
    )


def _come_out(axes: Any, found: Found | None) -> None:
    if found is None:
        _image(axes, None, "does not come out", _GREEN)
        return
    nearest = "" if len(found.images) == 1 else "the nearest: "
    _image(axes, tiled(found.images), f"{nearest}{found.score:.0f} dB", _RED if _seen(found) else _GREEN)


def _image(axes: Any, image: RealArray | None, below: str, colour: str) -> None:
    if image is not None:
        axes.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[], anchor="N")
    axes.set_xlabel(below, color=colour, fontweight="bold")
    for side in axes.spines.values():
        side.set(color=colour, linewidth=2, visible=True)


def tiled(images: RealArray) -> RealArray:
    """Return images (n, side, side) as one, black on white, in rows of a square that is large enough."""
    across = isqrt(len(images) - 1) + 1
    scale = max(1, _TILE // images.shape[1])
    size = images.shape[1] * scale + _GAP
    canvas = np.full((-(-len(images) // across) * size, across * size), _BETWEEN if across > 1 else 1.0)
    for at, image in enumerate(images):
        top, left = (place * size + _GAP // 2 for place in divmod(at, across))
        canvas[top : top + size - _GAP, left : left + size - _GAP] = 1 - np.kron(image, np.ones((scale, scale)))
    return canvas
