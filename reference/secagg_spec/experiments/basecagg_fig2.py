"""Figure 2 of BASecAgg: its accuracy for several levels of the quantiser, from too coarse to too fine for the field.

====================  ==========================================
paper                 here
====================  ==========================================
c_l = 2**c_bit        2 to the power of ``bits``
q                     `FIELD`, 2**32 - 5
K c_g                 the weight that a sum has to carry
====================  ==========================================

With few levels rounding is noise; with many a sum leaves the field and comes out on its other side. The paper lets
that happen, and so does `Wrapping`; this standard refuses a number which a sum might not carry (QNT-04), and the share of
such updates is drawn as well.

Source: BASecAgg, section 4, eq. (7) to (14); claim BAS-FIG2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.quantizer import IntArray, stochastic_round
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import OutOfRange
from secagg_spec.experiments import aggregators, basecagg_fig1, runs
from secagg_spec.experiments.aggregates import SHORTCUT, Aggregate
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, accuracy, by_seed
from secagg_spec.learning.streams import QUANTISER, stream
from secagg_spec.protocols.fedbuff import EXACT

FIELD = PrimeField(2**32 - 5)
BITS = tuple(range(2, 30, 2))
CHOSEN = 16
"""c_bit of the paper's other experiments."""
WORSE, CLOSE = 0.05, 0.01
_COLOURS = ("#0072b2", "#d55e00", "#444444")
"""Of BASecAgg, of what the standard refuses, and of FedBuff."""


class Wrapping:
    """BASecAgg's average of a buffer where nothing is refused, so that sums may wrap around modulo q.

    Parameters
    ----------
    level, c_g, buffer : int
        c_l, c_g and K.
    seed : int
        What the draws of the quantiser come from.
    """

    name = "basecagg that wraps around"

    def __init__(self, level: int, c_g: int, buffer: int, seed: int) -> None:
        self.level, self.seed = level, seed
        self.bound = (FIELD.modulus - 1) // 2 // (buffer * c_g)
        self.updates, self.refused, self.wrapped = 0, 0, 0

    def aggregate(
        self,
        updates: RealArray,
        weights: Sequence[float | int],
        *,
        users: Sequence[int],
        round: int,
        taus: Sequence[int] | None = None,
        draws: RealArray | None = None,
    ) -> Aggregate:
        """Return the aggregate of a round; see `aggregates.Aggregator`.

        Raises
        ------
        OutOfRange
            A quantised number is not below 2**53, where integers are no longer exact.
        """
        values = np.stack([self._quantised(row, user, round) for row, user in zip(updates, users, strict=True)])
        self.updates += len(values)
        self.refused += int((np.abs(values) > self.bound).any(axis=1).sum())
        total = wrapped_sum(values, weights)
        self.wrapped += int((total != np.asarray(weights, np.int64) @ values).any())
        return Aggregate(total / (self.level * sum(weights)), np.inf, SHORTCUT)

    def _quantised(self, update: RealArray, user: int, number: int) -> IntArray:
        """Return c_l Q(x) of an update, with the draws that all schemes have."""
        scaled = update * np.float64(self.level)
        largest = float(np.abs(scaled).max())
        if largest * max(1, FIELD.modulus // 2 // self.bound) >= EXACT:
            raise OutOfRange(
                f"update of user {user}", largest / self.level, f"such that sums with c_l = {self.level} fit"
            )
        return stochastic_round(scaled, stream(self.seed, QUANTISER, number, user).random(len(update)))


def wrapped_sum(values: IntArray, weights: Sequence[float | int]) -> IntArray:
    """Return the signed integers that the weighted sum of integers (n, d) modulo q stands for (BASecAgg eq. 13)."""
    elements = np.remainder(values, FIELD.modulus).astype(np.uint64)
    total = FIELD.weighted_sum(np.array(weights, np.uint64), elements)
    return FIELD.decode_signed(total)


def cells(settings: Data) -> list[Data]:
    """Return one cell for each seed and each level, and one for FedBuff."""
    shared = {name: value for name, value in settings.items() if name not in {"seeds", "levels"}}
    return [
        {**shared, "bits": bits, "seed": seed}
        for seed in range(settings["seeds"])
        for bits in (None, *settings["levels"])
    ]


def run(cell: Data, context: Context) -> Data:
    """Train with one level, or with FedBuff."""
    task = runs.task(cell, context)
    if cell["bits"] is None:
        plain = aggregators.build({"aggregator": "plain"}, cell["users"], task.model.d, cell["seed"])
        return basecagg_fig1.buffered(cell, task, context, plain, None)
    wrapping = Wrapping(2 ** cell["bits"], cell["c_g"], cell["buffer"], cell["seed"])
    found = basecagg_fig1.buffered(cell, task, context, wrapping, cell["c_g"])
    counted = {"refused": wrapping.refused / max(1, wrapping.updates), "wrapped": wrapping.wrapped}
    return {**found, **counted}


# -------------------------------------------------------------------------------------------------- statements


def statements(settings: Data) -> tuple[Statement, ...]:
    """Return what figure 2 shows: too few and too many levels cost accuracy, and 2**16 are about the best."""
    few, many = min(settings["levels"]), max(settings["levels"])
    return (
        Statement("BAS-FIG2", "coarse", f"2**{CHOSEN} levels are better than 2**{few}", _difference(few), ">=", WORSE),
        Statement("BAS-FIG2", "wraps", f"2**{CHOSEN} levels are better than 2**{many}", _difference(many), ">=", WORSE),
        Statement(
            "BAS-FIG2",
            "best",
            f"2**{CHOSEN} levels are about as good as any",
            f"accuracy with c_l = 2**{CHOSEN} minus the best one of all levels",
            ">=",
            -CLOSE,
        ),
    )


def _difference(bits: int) -> str:
    return f"accuracy with c_l = 2**{CHOSEN} minus that with c_l = 2**{bits}"


def numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return the differences of the accuracies, by statement and seed."""
    found = {bits: by_seed(results, bits=bits) for bits in settings["levels"]}
    reached = {bits: {seed: accuracy(one) for seed, one in of.items()} for bits, of in found.items()}
    few, many, mine = min(reached), max(reached), reached[CHOSEN]
    return {
        "coarse": [mine[seed] - reached[few][seed] for seed in mine],
        "wraps": [mine[seed] - reached[many][seed] for seed in mine],
        "best": [mine[seed] - max(of[seed] for of in reached.values()) for seed in mine],
    }


def rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    """Yield the accuracy of each cell, what of its updates would be refused, and in how many rounds a sum wrapped."""
    for result in results:
        scheme = "FedBuff" if result.cell["bits"] is None else "BASecAgg"
        found = {name: result.found.get(name) for name in ("refused", "wrapped", "diverged")}
        chosen = {"scheme": scheme, "bits": result.cell["bits"], "seed": result.cell["seed"]}
        yield {**chosen, "accuracy": accuracy(result.found), **found}


# ---------------------------------------------------------------------------------------------------- pictures


def draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the accuracy against the level, and below it the share of updates that this standard refuses."""
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7.6, 6.2), layout="constrained", sharex=True, height_ratios=(3, 1.2)
    )
    levels = list(settings["levels"])
    _accuracies(above, levels, results)
    shares = [[one["refused"] for one in by_seed(results, bits=bits).values()] for bits in levels]
    _with_band(below, levels, shares, _COLOURS[1], "s--", "refused by the standard")
    wraps = [[one["wrapped"] / settings["rounds"] for one in by_seed(results, bits=bits).values()] for bits in levels]
    _with_band(below, levels, wraps, _COLOURS[0], "^:", "a sum wraps around")
    below.set(xlabel="bits of the level, log2 of c_l", ylabel="share of updates,\nof rounds", ylim=(-0.05, 1.05))
    below.set_xticks(levels)
    below.legend(loc="upper left")
    return {"levels": figure}


def _accuracies(axes: Any, levels: Sequence[int], results: Sequence[Result]) -> None:
    reached = [[accuracy(one) for one in by_seed(results, bits=bits).values()] for bits in levels]
    plain = [accuracy(one) for one in by_seed(results, bits=None).values()]
    axes.axhspan(min(plain), max(plain), color=_COLOURS[2], alpha=0.15, linewidth=0)
    axes.axhline(sum(plain) / len(plain), color=_COLOURS[2], linestyle="-.", label="FedBuff, no quantisation")
    _with_band(axes, levels, reached, _COLOURS[0], "o-", "BASecAgg, sums modulo 2**32 - 5")
    axes.set(ylabel="test accuracy", ylim=(0, 1))
    axes.legend(loc="lower center")


def _with_band(
    axes: Any, x: Sequence[int], seeds: Sequence[Sequence[float]], colour: str, look: str, label: str
) -> None:
    """Draw the mean over seeds, and a band from the least to the largest."""
    axes.plot(x, [sum(one) / len(one) for one in seeds], look, color=colour, label=label)
    axes.fill_between(
        x, [min(one) for one in seeds], [max(one) for one in seeds], color=colour, alpha=0.18, linewidth=0
    )


# --------------------------------------------------------------------------------------------------- experiment


def _settings(settings: Data, **others: Any) -> Data:
    """Return the settings of figure 1 for this one."""
    kept = {name: value for name, value in settings.items() if name not in {"level", "every"}}
    return MappingProxyType({**kept, "weighting": "constant", "levels": list(BITS), **others})


EXPERIMENTS = (
    Experiment(
        "basecagg-fig2",
        "BASecAgg for several levels of the quantiser",
        ("BASecAgg, figure 2",),
        basecagg_fig1.ABOUT
        + " The text gives neither the levels of the figure nor the weighting: the levels are 2**2 to 2**28 here, and the"
        " weights constant. Sums are formed modulo 2**32 - 5 without a check, as in the paper; the updates that this"
        " standard would refuse are counted.",
        {
            "default": _settings(basecagg_fig1.DEFAULT, rounds=100),
            "paper": _settings(basecagg_fig1.PAPER, seeds=3),
            "paper-cifar10": _settings(basecagg_fig1.CIFAR),
            "tiny": _settings(basecagg_fig1.TINY, levels=[2, 16, 28], seeds=3),
        },
        cells,
        run,
        statements,
        numbers,
        rows,
        draw,
    ),
)
