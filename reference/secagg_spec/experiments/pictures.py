"""The pictures of the experiments, as SVG and PNG. matplotlib is imported only when something is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from secagg_spec.errors import ParameterError
from secagg_spec.experiments.selection import Course, trade_off
from secagg_spec.extras import install
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.weights import Bounds
from secagg_spec.system import write_whole

_STYLE: Mapping[str, Any] = MappingProxyType(
    {
        "svg.hashsalt": "secagg-spec",
        "svg.fonttype": "path",
        "font.size": 11,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "white",
        "grid.alpha": 0.35,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "savefig.dpi": 160,
    }
)
_BASE = (("#0072b2", "-", "o"), ("#56b4e9", "--", "s"), ("#d55e00", "-.", "D"))
_BATCHES = (("#009e73", "-", "^"), ("#cc79a7", "--", "v"), ("#e69f00", ":", "P"), ("#444444", "-", "X"))
FIGURES = ("figure-3", "figure-4", "figure-5")
_RATES = tuple(Fraction(tenth, 10) for tenth in (1, 2, 3, 4, 5))


def library() -> ModuleType:
    """Return matplotlib, ready to draw without a screen.

    Raises
    ------
    ParameterError
        matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415
    except ImportError:
        raise ParameterError("matplotlib", "absent", f"installed to draw: {install('matplotlib')}") from None
    mpl.use("Agg")
    return mpl


def draw(courses: Sequence[Course], folder: Path) -> tuple[Path, ...]:
    """Draw figures 3, 4 and 5 of Multi-RoundSecAgg into a folder, each as SVG and PNG, and return the files."""
    return write(lambda plt: _figures(plt, courses), folder)


def _figures(plt: Any, courses: Sequence[Course]) -> dict[str, Any]:
    drawn = figure_3(plt, courses[0].scheme.parameters), figure_4(plt, courses), figure_5(plt, courses)
    return dict(zip(FIGURES, drawn, strict=True))


def write(drawing: Callable[[Any], Mapping[str, Any]], folder: Path) -> tuple[Path, ...]:
    """Write the figures of a drawing function in the style of the project, by name, as SVG and PNG; return the files.

    Raises
    ------
    ParameterError
        matplotlib is not installed.
    """
    mpl = library()
    from matplotlib import pyplot as plt  # noqa: PLC0415

    with mpl.rc_context(dict(_STYLE)):
        drawn = drawing(plt)
        return tuple(path for name, figure in drawn.items() for path in _saved(plt, figure, folder / name))


def _saved(plt: Any, figure: Any, stem: Path) -> tuple[Path, ...]:
    paths = saved(figure, stem)
    plt.close(figure)
    return paths


def saved(figure: Any, stem: Path, **png: Any) -> tuple[Path, Path]:
    """Write a figure as SVG and PNG, each file whole or not at all; `png` are options of the PNG.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    paths = stem.with_suffix(".svg"), stem.with_suffix(".png")
    for path, options in zip(paths, ({"metadata": {"Date": None}}, png), strict=True):
        content = BytesIO()
        figure.savefig(content, format=path.suffix[1:], **options)
        write_whole(path, content.getvalue())
    return paths


def _looks(courses: Sequence[Course]) -> dict[str, tuple[str, str, str]]:
    """Return colour, line and marker of each scheme."""
    names = [course.scheme.name for course in courses]
    base = dict(zip(("Random", "Weighted Random", "Partition"), _BASE, strict=True))
    others = [name for name in names if name not in base]
    return base | {name: _BATCHES[divmod(at, len(_BATCHES))[1]] for at, name in enumerate(others)}


def figure_4(plt: Any, courses: Sequence[Course]) -> Any:
    """Draw privacy, fairness gap and cardinality after each round."""
    figure, (privacy, gap, mean) = plt.subplots(1, 3, figsize=(14, 4.9), layout="constrained")
    looks = _looks(courses)
    for course in courses:
        colour, line, _ = looks[course.scheme.name]
        look = {"linestyle": line, "color": colour, "linewidth": 3.0 if course.scheme.name == "Random" else 1.8}
        rounds = range(1, len(course.weak) + 1)
        _privacy_line(privacy, rounds, course, look)
        gap.plot(rounds, [float(F) for F in course.gaps], label=course.scheme.name, **look)
        mean.plot(rounds, [float(C) for C in course.cardinalities], **look)
    K = courses[0].scheme.parameters.K
    privacy.set(title="(a) Multi-round privacy guarantee", ylabel="number of models in a partial sum (users)")
    gap.set(title="(b) Aggregation fairness gap", ylabel="aggregation fairness gap (share of rounds)", ylim=(0, 1.02))
    mean.set(title="(c) Average aggregation cardinality", ylabel="average aggregation cardinality (users)")
    for axes in (privacy, gap, mean):
        axes.set(xlabel="number of rounds", xlim=(0, len(courses[0].weak)))
    for axes in (privacy, mean):
        axes.set_ylim(0, 1.06 * K)
    figure.legend(*gap.get_legend_handles_labels(), loc="outside lower center", ncols=len(courses))
    return figure


def _privacy_line(axes: Any, rounds: range, course: Course, look: Mapping[str, Any]) -> None:
    """Draw the number above the weak privacy, and a band down to the number below it; nothing while there is no sum."""
    low, high = ([bound or float("nan") for bound in side] for side in zip(*map(_ends, course.weak), strict=True))
    axes.step(rounds, high, where="post", **look)
    if any(bounds.low != bounds.high for bounds in course.weak):
        label = None if axes.get_legend_handles_labels()[1] else "the number is in here"
        axes.fill_between(rounds, low, high, step="post", color=look["color"], alpha=0.16, linewidth=0, label=label)
        axes.legend(loc="lower left")


def _ends(bounds: Bounds) -> tuple[int, int]:
    return bounds.low, bounds.high


def figure_5(plt: Any, courses: Sequence[Course]) -> Any:
    """Draw the privacy after all rounds against the cardinality."""
    figure, axes = plt.subplots(figsize=(6.6, 4.9), layout="constrained")
    looks = _looks(courses)
    for course in courses:
        colour, _, marker = looks[course.scheme.name]
        bounds, C = course.weak[-1], float(course.cardinalities[-1])
        axes.plot([C, C], [bounds.low, bounds.high], "-", color=colour)
        face = {"markerfacecolor": "none", "markeredgewidth": 2} if course.scheme.name == "Weighted Random" else {}
        size = 13 if face else 9
        axes.plot(
            [C], [bounds.high], marker, color=colour, markersize=size, label=course.scheme.name, linestyle="", **face
        )
    K = courses[0].scheme.parameters.K
    axes.set(xlabel="average aggregation cardinality (users)", ylabel="multi-round privacy guarantee (users)")
    axes.set(xlim=(0, 1.06 * K), ylim=(0, 1.06 * K))
    axes.legend(loc="best")
    return figure


def figure_3(plt: Any, parameters: Parameters) -> Any:
    """Draw theorem 1 for each rate; the paper's figure shows one rate without naming it."""
    figure, axes = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
    for rate, colour in zip(_RATES, plt.get_cmap("viridis")([0.0, 0.22, 0.44, 0.66, 0.86]), strict=True):
        pairs = trade_off(parameters.N, parameters.K, rate)
        axes.plot([T for T, _ in pairs], [float(C) for _, C in pairs], "o-", color=colour, label=f"p = {float(rate)}")
    axes.set(xlabel="multi-round privacy guarantee T (users)", ylabel="average aggregation cardinality C (users)")
    axes.set(xlim=(0, 1.04 * parameters.K), ylim=(0, 1.06 * parameters.K))
    figure.legend(title="all users drop out\nwith probability", loc="outside right center")
    return figure
