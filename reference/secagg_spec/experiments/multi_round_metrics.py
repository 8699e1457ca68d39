"""Figures 3, 4 and 5 and table 1 of Multi-RoundSecAgg, over several seeds: privacy, fairness and cardinality.

====================  ==========================================================================
paper                 here
====================  ==========================================================================
N, K, T               `users`, `per_round`, `privacy` of settings
p_i                   `rates`, written as fractions
T(t), F(t), C(t)      ``weak``, ``fairness_gap``, ``cardinality`` of the result of a cell
R                     ``family``
====================  ==========================================================================

`experiments.selection` chooses and measures; nothing is trained.

Source: Multi-RoundSecAgg, section 6; claims MRS-OBS1, MRS-OBS2, MRS-FIG3, MRS-FIG4, MRS-TAB1, MRS-THM1C, MRS-REM5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import log10
from typing import Any

from secagg_spec.experiments import pictures, selection
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, by_seed
from secagg_spec.selection import metrics
from secagg_spec.selection.batches import Parameters, family, family_size
from secagg_spec.selection.weights import least_weight, least_weights

RANDOM, WEIGHTED, PARTITION = "Random", "Weighted Random", "Partition"
RATES = ("1/10", "1/5", "3/10", "2/5", "1/2")
PRINTED: Mapping[int, int] = {12: 10, 6: 190, 4: 4060}
"""The sizes of families that table 1 gives as whole numbers, by T, for N = 120 and K = 12; for T = 1 it has 10^16."""
_MOST_LISTED = 10**5


def _named(T: int) -> str:
    return f"Multi-RoundSecAgg, T={T}"


# ------------------------------------------------------------------------------------------------- figures 4 and 5


def _preset(users: int, per_round: int, privacy: tuple[int, ...], rounds: int, effort: int, seeds: int) -> Data:
    return {
        "data": "none",
        "users": users,
        "per_round": per_round,
        "privacy": list(privacy),
        "rounds": rounds,
        "rates": list(RATES),
        "effort": effort,
        "seeds": seeds,
    }


_PRESETS = {
    "tiny": _preset(24, 6, (3, 2), 60, 10_000, 3),
    "default": _preset(120, 12, (6, 4, 3), 200, 100_000, 5),
    "paper": _preset(120, 12, (6, 4, 3), 200, 3_000_000, 10),
}
_SERIES = ("fairness_gap", "cardinality")
_RUN = ("users", "per_round", "privacy", "rounds", "rates", "effort")


def _settings(cell: Data, privacy: Sequence[int], rule: str | None = None) -> selection.Settings:
    return selection.Settings(
        cell["users"],
        cell["per_round"],
        tuple(privacy),
        cell["rounds"],
        tuple(map(Fraction, cell["rates"])),
        cell["seed"],
        rule,
    )


def _schemes(settings: Data) -> list[str]:
    return [RANDOM, WEIGHTED, PARTITION, *map(_named, settings["privacy"])]


def _cells(settings: Data, *, each_round: bool) -> list[Data]:
    of_all = {name: settings[name] for name in _RUN}
    return [
        {"seed": seed, "scheme": scheme, "each_round": each_round, **of_all}
        for seed in range(settings["seeds"])
        for scheme in _schemes(settings)
    ]


def _cells_of_figure_4(settings: Data) -> list[Data]:
    return _cells(settings, each_round=True)


def _cells_of_figure_5(settings: Data) -> list[Data]:
    return _cells(settings, each_round=False)


def _run(cell: Data, context: Context) -> Data:
    """Run one scheme; keep the measurements after each round, or only those after the last one."""
    settings = _settings(cell, cell["privacy"])
    scheme = next(one for one in selection.schemes(settings) if one.name == cell["scheme"])
    rates = selection.rates_of_users(settings)
    log = selection.take_rounds(settings, scheme, selection.available(settings, rates))
    context.tell(0.1)
    effort = cell["effort"]
    weak = least_weights(log, effort=effort) if cell["each_round"] else [least_weight(log, effort=effort)]
    context.tell(1.0)
    found = selection.as_json(selection.course(scheme, log, rates, tuple(weak)))
    return found if cell["each_round"] else {**found, **{name: found[name][-1:] for name in _SERIES}}


def _low(found: Data) -> int:
    return int(found["weak"][-1][0])


def _high(found: Data) -> int:
    return int(found["weak"][-1][1])


def _last(found: Data, name: str) -> float:
    return float(Fraction(found[name][-1]))


def _more_private(found: Mapping[str, Data], scheme: str, *others: str) -> float:
    """Return how many more users a combination of rounds holds with a scheme than with the best of the others."""
    return float(_low(found[scheme]) - max(_high(found[other]) for other in others))


def _by_scheme(settings: Data, results: Sequence[Result]) -> list[dict[str, Data]]:
    """Return the results of each seed, by scheme."""
    of = {scheme: by_seed(results, scheme=scheme) for scheme in _schemes(settings)}
    return [{scheme: found[seed] for scheme, found in of.items()} for seed in sorted(of[RANDOM])]


def _statements_of_figure_4(settings: Data) -> tuple[Statement, ...]:
    K = settings["per_round"]
    return (
        Statement(
            "MRS-OBS2", "Partition: privacy", f"the partition has the privacy {K}", "weak privacy, low end", ">=", K
        ),
        Statement(
            "MRS-OBS2",
            "Partition: most privacy",
            "it has more privacy than all other schemes",
            "its weak privacy minus the largest of the others",
            ">=",
            1.0,
        ),
        Statement(
            "MRS-OBS2",
            "Partition: least cardinality",
            "it has the least cardinality",
            "the least cardinality of the others minus its own",
            ">=",
            0.0,
        ),
        *(one for T in settings["privacy"] for one in _of_batches(T)),
        *(_statement(scheme) for scheme in (RANDOM, WEIGHTED)),
    )


def _of_batches(T: int) -> Iterator[Statement]:
    yield Statement(
        "MRS-FIG4",
        f"T = {T}: privacy",
        f"Multi-RoundSecAgg with T = {T} has more privacy than random and weighted selection",
        "its weak privacy minus the larger one of theirs",
        ">=",
        1.0,
    )
    yield Statement(
        "MRS-FIG4",
        f"T = {T}: fairness",
        f"Multi-RoundSecAgg with T = {T} has a smaller fairness gap than random selection",
        "the gap of random selection minus its own",
        ">=",
        0.0,
    )


def _statement(scheme: str) -> Statement:
    text = f"{scheme}: after all rounds a combination of them is about one user"
    return Statement("MRS-FIG4", f"{scheme}: privacy", text, "weak privacy, high end", "<=", 1.0)


def _numbers_of_figure_4(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    rows = [_of_seed(settings, found) for found in _by_scheme(settings, results)]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _of_seed(settings: Data, found: Mapping[str, Data]) -> dict[str, float]:
    """Return the number for each statement of figure 4."""
    others = [scheme for scheme in found if scheme != PARTITION]
    least = min(_last(found[scheme], "cardinality") for scheme in others)
    numbers = {
        "Partition: privacy": float(_low(found[PARTITION])),
        "Partition: most privacy": _more_private(found, PARTITION, *others),
        "Partition: least cardinality": least - _last(found[PARTITION], "cardinality"),
    }
    for T in settings["privacy"]:
        numbers[f"T = {T}: privacy"] = _more_private(found, _named(T), RANDOM, WEIGHTED)
        gaps = [_last(found[scheme], "fairness_gap") for scheme in (RANDOM, _named(T))]
        numbers[f"T = {T}: fairness"] = gaps[0] - gaps[1]
    return numbers | {f"{scheme}: privacy": float(_high(found[scheme])) for scheme in (RANDOM, WEIGHTED)}


def _small(settings: Data) -> list[int]:
    """Return the two smallest T: 4 and 3 in the paper."""
    return sorted(settings["privacy"])[:2]


def _statements_of_figure_5(settings: Data) -> tuple[Statement, ...]:
    return tuple(one for T in _small(settings) for one in _of_small_batches(T))


def _of_small_batches(T: int) -> Iterator[Statement]:
    who = f"Multi-RoundSecAgg with T = {T}"
    yield Statement(
        "MRS-OBS1",
        f"T = {T}: cardinality",
        f"{who} has almost the cardinality of random and weighted selection",
        "its cardinality over the larger one of theirs",
        ">=",
        float(selection.ALMOST),
    )
    yield Statement(
        "MRS-OBS1",
        f"T = {T}: privacy",
        f"{who} has more privacy than random and weighted selection",
        "its weak privacy minus the larger one of theirs",
        ">=",
        1.0,
    )


def _numbers_of_figure_5(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    seeds = _by_scheme(settings, results)
    numbers: dict[str, list[float]] = {}
    for T in _small(settings):
        numbers[f"T = {T}: cardinality"] = [_share(found, _named(T)) for found in seeds]
        numbers[f"T = {T}: privacy"] = [_more_private(found, _named(T), RANDOM, WEIGHTED) for found in seeds]
    return numbers


def _share(found: Mapping[str, Data], scheme: str) -> float:
    most = max(_last(found[other], "cardinality") for other in (RANDOM, WEIGHTED))
    return _last(found[scheme], "cardinality") / most


def _rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        found, rounds = one.found, one.cell["rounds"]
        first = rounds - len(found["weak"])
        for at, (low, high) in enumerate(found["weak"], first):
            yield {
                "seed": one.cell["seed"],
                "scheme": found["name"],
                "round": at + 1,
                "privacy, at least": low,
                "privacy, at most": high,
                "fairness gap": float(Fraction(found["fairness_gap"][at - first])),
                "cardinality": float(Fraction(found["cardinality"][at - first])),
            }


def _courses(settings: Data, results: Sequence[Result]) -> list[selection.Course]:
    """Return the courses of the first seed."""
    found = _by_scheme(settings, results)[0]
    return [selection.of_json(one, settings["users"], settings["per_round"]) for one in found.values()]


def _draw_figure_4(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    return {"metrics": pictures.figure_4(plt, _courses(settings, results))}


def _draw_figure_5(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the first seed with the markers of the legend, and each seed as a dot."""
    figure = pictures.figure_5(plt, _courses(settings, results))
    (axes,) = figure.axes
    colours = {line.get_label(): line.get_color() for line in axes.get_lines()}
    for one in results:
        at = _last(one.found, "cardinality"), _high(one.found)
        axes.plot(*at, ".", color=colours[one.cell["scheme"]], markersize=5, zorder=1)
    axes.set_title("markers: the first seed; dots: all of them", fontsize=11)
    return {"trade-off": figure}


# --------------------------------------------------------------------------------------------------------- figure 3


def _trade_off(users: int, per_round: int, rounds: int, seeds: int) -> Data:
    return {
        "data": "none",
        "users": users,
        "per_round": per_round,
        "rounds": rounds,
        "rates": list(RATES),
        "seeds": seeds,
    }


_TRADE_OFFS = {
    "tiny": _trade_off(24, 6, 300, 3),
    "default": _trade_off(120, 12, 1000, 5),
    "paper": _trade_off(120, 12, 5000, 10),
}


def _cells_of_figure_3(settings: Data) -> list[Data]:
    of_all = {name: settings[name] for name in ("users", "per_round", "rounds")}
    return [
        {"seed": seed, "rates": [rate], **of_all} for seed in range(settings["seeds"]) for rate in settings["rates"]
    ]


def _run_figure_3(cell: Data, context: Context) -> Data:
    """Run batches of each size with one rate, and measure the quantity of theorem 1."""
    pairs = selection.trade_off(cell["users"], cell["per_round"], Fraction(cell["rates"][0]))
    settings = _settings(cell, [T for T, _ in pairs], "uniform")
    there = selection.available(settings, selection.rates_of_users(settings))
    schemes = [one for one in selection.schemes(settings) if one.strategy == "uniform"]
    measured = []
    for done, scheme in enumerate(schemes, 1):
        measured.append(float(metrics.cardinality(selection.take_rounds(settings, scheme, there))))
        context.tell(done / len(schemes))
    return {"privacy": [T for T, _ in pairs], "measured": measured, "theorem": [float(C) for _, C in pairs]}


def _statements_of_figure_3(settings: Data) -> tuple[Statement, ...]:
    return tuple(one for rate in settings["rates"] for one in _of_rate(rate, settings["per_round"]))


def _of_rate(rate: str, per_round: int) -> Iterator[Statement]:
    p = f"p = {float(Fraction(rate)):g}"
    yield Statement(
        "MRS-THM1C",
        f"{p}: theorem 1",
        f"with {p} the cardinality is that of theorem 1, for each T",
        "largest difference from theorem 1, in users",
        "<=",
        0.5,
    )
    yield Statement(
        "MRS-REM5",
        f"{p}: falls",
        f"with {p} the cardinality does not increase with T",
        "least difference from one T to the next larger one, in users",
        ">=",
        -0.1,
    )
    yield Statement(
        "MRS-FIG3",
        f"{p}: from K",
        f"with {p} the cardinality is {per_round} for T = 1",
        "cardinality for T = 1, in users",
        ">=",
        0.999 * per_round,
    )


def _numbers_of_figure_3(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    numbers: dict[str, list[float]] = {}
    for rate in settings["rates"]:
        p, of = f"p = {float(Fraction(rate)):g}", by_seed(results, rates=[rate])
        found = [of[seed] for seed in sorted(of)]
        numbers[f"{p}: theorem 1"] = [_off(one) for one in found]
        numbers[f"{p}: falls"] = [min(a - b for a, b in pairwise(one["measured"])) for one in found]
        numbers[f"{p}: from K"] = [one["measured"][0] for one in found]
    return numbers


def _off(found: Data) -> float:
    return max(float(abs(a - b)) for a, b in zip(found["measured"], found["theorem"], strict=True))


def _rows_of_figure_3(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        for T, measured, theorem in zip(*(one.found[name] for name in ("privacy", "measured", "theorem")), strict=True):
            yield {
                "seed": one.cell["seed"],
                "rate": float(Fraction(one.cell["rates"][0])),
                "T": T,
                "cardinality": measured,
                "theorem 1": theorem,
            }


def _draw_figure_3(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    figure = pictures.figure_3(plt, Parameters(settings["users"], settings["per_round"], 1))
    (axes,) = figure.axes
    for rate in settings["rates"]:
        found = list(by_seed(results, rates=[rate]).values())
        means = [sum(values) / len(found) for values in zip(*(one["measured"] for one in found), strict=True)]
        axes.plot(found[0]["privacy"], means, "x", color="black", markersize=8)
    axes.set_title("lines: theorem 1; crosses: measured", fontsize=11)
    return {"trade-off": figure}


# ---------------------------------------------------------------------------------------------------------- table 1

_TABLE = {"data": "none", "users": 120, "per_round": 12, "seeds": 3}
_TABLES = {"tiny": _TABLE, "default": _TABLE, "paper": _TABLE}


def _cells_of_table_1(settings: Data) -> list[Data]:
    sizes = (1, 3, 4, 6, 12)
    return [
        {"seed": seed, "users": settings["users"], "per_round": settings["per_round"], "privacy": T}
        for seed in range(settings["seeds"])
        for T in sizes
    ]


def _run_table_1(cell: Data, context: Context) -> Data:
    """Count a family; list a small one set by set."""
    parameters = Parameters(cell["users"], cell["per_round"], cell["privacy"])
    size = family_size(parameters)
    listed = len(set(family(parameters))) if size <= _MOST_LISTED else None
    context.tell(1.0)
    return {"family": str(size), "listed": listed}


def _statements_of_table_1(settings: Data) -> tuple[Statement, ...]:
    magnitude = Statement(
        "MRS-TAB1",
        "T = 1",
        "random and weighted selection have about 10^16 sets",
        "difference of the decimal logarithm from 16",
        "<=",
        0.5,
    )
    return (magnitude, *(_printed(T, size) for T, size in PRINTED.items()))


def _printed(T: int, size: int) -> Statement:
    text = f"the family has {size} sets for T = {T}"
    return Statement("MRS-TAB1", f"T = {T}", text, f"difference from {size} of the sets that were listed", "<=", 0.0)


def _numbers_of_table_1(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    random = by_seed(results, privacy=1)
    numbers = {"T = 1": [abs(log10(int(random[seed]["family"])) - 16) for seed in sorted(random)]}
    for T, size in PRINTED.items():
        of = by_seed(results, privacy=T)
        numbers[f"T = {T}"] = [float(abs(of[seed]["listed"] - size)) for seed in sorted(of)]
    return numbers


def _rows_of_table_1(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        yield {"seed": one.cell["seed"], "T": one.cell["privacy"], **one.found}


def _draw_table_1(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    figure, axes = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
    sizes = {one.cell["privacy"]: int(one.found["family"]) for one in results}
    places = range(len(sizes))
    axes.bar(places, list(sizes.values()), color="#56b4e9")
    printed = {1: 10**16, **PRINTED}
    shown = [(place, printed[T]) for place, T in zip(places, sizes, strict=True) if T in printed]
    axes.plot(*zip(*shown, strict=True), "D", color="#d55e00", label="table 1 of the paper", linestyle="")
    for place, size in zip(places, sizes.values(), strict=True):
        text = f"{size:,}" if size < 10**9 else f"{size:.2e}"
        axes.annotate(text, (place, size), (0, 8), textcoords="offset points", ha="center")
    axes.set(yscale="log", ylim=(1, 10**19), ylabel="sets in the family", xlabel="privacy T (users)")
    axes.set_xticks(places, [str(T) for T in sizes])
    axes.legend()
    return {"family-sizes": figure}


_ABOUT = """Who is in the sum of each round, for the paper's N, K, T and rates of dropping out; nothing is trained.
Which user has which rate is drawn. Batches are chosen by the rule of spec/multi-round.md, as the paper's names nobody
in some rounds (MRS-COMP2). """

EXPERIMENTS = (
    Experiment(
        name="multi-round-fig3",
        title="Privacy against cardinality, measured and by theorem 1",
        figures=("Multi-RoundSecAgg, figure 3",),
        about="""Rounds in which all users drop out equally often, with whole batches of each size; nothing is trained.
The paper's figure has one rate and does not say which: here are five.""",
        presets=_TRADE_OFFS,
        cells=_cells_of_figure_3,
        run=_run_figure_3,
        statements=_statements_of_figure_3,
        numbers=_numbers_of_figure_3,
        rows=_rows_of_figure_3,
        draw=_draw_figure_3,
    ),
    Experiment(
        name="multi-round-fig4",
        title="Privacy, fairness gap and cardinality of six ways to choose users, round by round",
        figures=("Multi-RoundSecAgg, figure 4",),
        about=_ABOUT
        + "The privacy is known exactly in some rounds, and else to lie between two numbers. The picture is of the "
        "first seed.",
        presets=_PRESETS,
        cells=_cells_of_figure_4,
        run=_run,
        statements=_statements_of_figure_4,
        numbers=_numbers_of_figure_4,
        rows=_rows,
        draw=_draw_figure_4,
    ),
    Experiment(
        name="multi-round-fig5",
        title="Privacy after all rounds against cardinality, for six ways to choose users",
        figures=("Multi-RoundSecAgg, figure 5",),
        about=_ABOUT + "Almost is 98 of 100. In the picture the markers are of the first seed, and dots of the others.",
        presets=_PRESETS,
        cells=_cells_of_figure_5,
        run=_run,
        statements=_statements_of_figure_5,
        numbers=_numbers_of_figure_5,
        rows=_rows,
        draw=_draw_figure_5,
    ),
    Experiment(
        name="multi-round-table1",
        title="How many sets of users may be chosen",
        figures=("Multi-RoundSecAgg, table 1",),
        about="Sets are counted, and listed where they are few. Nothing is drawn, so that all seeds agree.",
        presets=_TABLES,
        cells=_cells_of_table_1,
        run=_run_table_1,
        statements=_statements_of_table_1,
        numbers=_numbers_of_table_1,
        rows=_rows_of_table_1,
        draw=_draw_table_1,
    ),
)
