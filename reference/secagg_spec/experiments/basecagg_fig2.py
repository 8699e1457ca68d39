"""Figure 2 of BASecAgg: its accuracy for several levels of the quantiser, from too coarse to too fine for the field.

====================  ==========================================
paper                 here
====================  ==========================================
c_l = 2**c_bit        2 to the power of ``bits``
q                     `FIELD`, 2**32 - 5
K c_g                 the weight that a sum must carry
====================  ==========================================

With few levels, rounding is noise. With many, a sum wraps around modulo q. The paper lets that happen, and so does
`Wrapping`. This standard refuses a number that a sum might not carry (QNT-04); the share of refused updates is drawn as
well.

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
from secagg_spec.experiments.basecagg_fig1 import WEIGHTINGS
from secagg_spec.experiments.curves import band
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, accuracy, by_seed
from secagg_spec.learning.streams import QUANTISER, stream
from secagg_spec.protocols.fedbuff.round import EXACT

FIELD = PrimeField(2**32 - 5)
BITS = tuple(range(0, 36, 4))
"""From the smallest level to the largest that a quantiser of this standard accepts (QNT-08)."""
CHOSEN = 16
"""c_bit of the paper's other experiments."""
WORSE, CLOSE = 0.05, 0.01
_COLOURS = ("#0072b2", "#d55e00", "#444444")
"""The colours of BASecAgg, of what the standard refuses, and of FedBuff."""


class Wrapping:
    """BASecAgg's average of a buffer that refuses nothing, so sums may wrap around modulo q.

    Parameters
    ----------
    level, c_g, buffer : int
        c_l, c_g and K.
    seed : int
        The seed of the quantiser's draws.
    """

    name = "basecagg that wraps around"

    def __init__(self, level: int, c_g: int, buffer: int, seed: int) -> None:
        self.level, self.seed = level, seed
        self.bound = (FIELD.modulus - 1) // 2 // (buffer * c_g)
        self.updates, self.refused, self.sums, self.wrapped = 0, 0, 0, 0

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
        self.sums += total.size
        self.wrapped += int((total != np.asarray(weights, np.int64) @ values).sum())
        return Aggregate(total / (self.level * sum(weights)), np.inf, SHORTCUT)

    def shares(self) -> dict[str, float]:
        """Return the share of updates that the standard refuses, and the share of sums that wrap around."""
        return {"refused": self.refused / max(1, self.updates), "wrapped": self.wrapped / max(1, self.sums)}

    def _quantised(self, update: RealArray, user: int, number: int) -> IntArray:
        """Return c_l Q(x) of an update, with the draws that all schemes share."""
        scaled = update * np.float64(self.level)
        largest = float(np.abs(scaled).max())
        if largest * max(1, FIELD.modulus // 2 // self.bound) >= EXACT:
            raise OutOfRange(
                f"update of user {user}", largest / self.level, f"such that sums with c_l = {self.level} fit"
            )
        return stochastic_round(scaled, stream(self.seed, QUANTISER, number, user).random(len(update)))


def wrapped_sum(values: IntArray, weights: Sequence[float | int]) -> IntArray:
    """Return the signed integers that the weighted sum modulo q of integers (n, d) represents (BASecAgg eq. 13)."""
    elements = np.remainder(values, FIELD.modulus).astype(np.uint64)
    total = FIELD.weighted_sum(np.array(weights, np.uint64), elements)
    return FIELD.decode_signed(total)


def cells(settings: Data) -> list[Data]:
    """Return for each seed and weighting one cell for each level, and one for FedBuff."""
    shared = {name: value for name, value in settings.items() if name not in {"seeds", "levels"}}
    return [
        {**shared, "weighting": weighting, "bits": bits, "seed": seed}
        for seed in range(settings["seeds"])
        for weighting in WEIGHTINGS
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
    return {**found, **wrapping.shares()}


# -------------------------------------------------------------------------------------------------- statements


def statements(settings: Data) -> tuple[Statement, ...]:
    """Return what figure 2 shows: too few and too many levels cost accuracy, and 2**16 is about the best."""
    few, many = min(settings["levels"]), max(settings["levels"])
    return tuple(statement for weighting in WEIGHTINGS for statement in _statements(weighting, few, many))


def _statements(weighting: str, few: int, many: int) -> Iterator[Statement]:
    base, of = f"accuracy with c_l = 2**{CHOSEN} minus", f"with {weighting} weights 2**{CHOSEN} levels are"
    coarse, wraps = f"{base} that with c_l = 2**{few}", f"{base} that with c_l = 2**{many}"
    best = f"{base} the best one of all levels"
    yield Statement("BAS-FIG2", f"coarse-{weighting}", f"{of} better than 2**{few}", coarse, ">=", WORSE)
    yield Statement("BAS-FIG2", f"wraps-{weighting}", f"{of} better than 2**{many}", wraps, ">=", WORSE)
    yield Statement("BAS-FIG2", f"best-{weighting}", f"{of} about as good as any", best, ">=", -CLOSE)


def numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return the differences of the accuracies, by statement and seed."""
    found: dict[str, Sequence[float]] = {}
    for weighting in WEIGHTINGS:
        reached = {bits: _accuracies(results, weighting, bits) for bits in settings["levels"]}
        mine, few, many = reached[CHOSEN], reached[min(reached)], reached[max(reached)]
        best = [max(of_seed) for of_seed in zip(*reached.values(), strict=True)]
        for name, other in (("coarse", few), ("wraps", many), ("best", best)):
            found[f"{name}-{weighting}"] = [one - beside for one, beside in zip(mine, other, strict=True)]
    return found


def _accuracies(results: Sequence[Result], weighting: str, bits: int | None) -> list[float]:
    """Return the accuracy of each seed with one level, or of FedBuff."""
    found = by_seed(results, weighting=weighting, bits=bits)
    return [accuracy(found[seed]) for seed in sorted(found)]


def rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    """Yield the accuracy of each cell, and the shares of refused updates and of sums that wrap around."""
    for result in results:
        scheme = "FedBuff" if result.cell["bits"] is None else "BASecAgg"
        found = {name: result.found.get(name) for name in ("refused", "wrapped", "diverged")}
        chosen = {name: result.cell[name] for name in ("weighting", "bits", "seed")}
        yield {"scheme": scheme, **chosen, "accuracy": accuracy(result.found), **found}


# ---------------------------------------------------------------------------------------------------- pictures


def draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the accuracy against the level, and below it the share of updates that this standard refuses."""
    figure, panels = plt.subplots(
        2, 2, figsize=(10.4, 6.2), layout="constrained", sharex=True, sharey="row", height_ratios=(3, 1.2)
    )
    levels = list(settings["levels"])
    for (above, below), weighting in zip(panels.T, WEIGHTINGS, strict=True):
        _draw_accuracies(above, levels, results, weighting)
        _draw_shares(below, settings, results, weighting)
        above.set_title(f"{weighting} weights")
        below.set(xlabel="bits of the level, $\\log_2 c_l$", ylim=(-0.05, 1.05), xticks=levels)
    panels[0][0].set(ylabel="test accuracy", ylim=(0, 1))
    panels[0][0].legend(loc="lower left")
    panels[1][0].set_ylabel("share of all")
    panels[1][0].legend(loc="upper left")
    return {"levels": figure}


def _draw_accuracies(axes: Any, levels: Sequence[int], results: Sequence[Result], weighting: str) -> None:
    plain = _accuracies(results, weighting, None)
    axes.axhspan(min(plain), max(plain), color=_COLOURS[2], alpha=0.15, linewidth=0)
    axes.axhline(sum(plain) / len(plain), color=_COLOURS[2], linestyle="-.", label="FedBuff, no quantisation")
    reached = [_accuracies(results, weighting, bits) for bits in levels]
    _by_level(axes, levels, reached, _COLOURS[0], "o-", "BASecAgg, sums modulo $2^{32} - 5$")


def _draw_shares(axes: Any, settings: Data, results: Sequence[Result], weighting: str) -> None:
    levels = list(settings["levels"])
    found = [list(by_seed(results, weighting=weighting, bits=bits).values()) for bits in levels]
    refused = [[one["refused"] for one in of] for of in found]
    wrapped = [[one["wrapped"] for one in of] for of in found]
    _by_level(axes, levels, refused, _COLOURS[1], "s--", "updates that the standard refuses")
    _by_level(axes, levels, wrapped, _COLOURS[0], "^:", "numbers of sums that wrap around")


def _by_level(axes: Any, x: Sequence[int], of: Sequence[Sequence[float]], *look: str) -> None:
    """Draw numbers of each level and seed."""
    band(axes, x, list(zip(*of, strict=True)), *look)


# --------------------------------------------------------------------------------------------------- experiment


def _settings(settings: Data, **others: Any) -> Data:
    """Return the settings of figure 1 for this one."""
    kept = {name: value for name, value in settings.items() if name not in {"level", "every"}}
    return MappingProxyType({**kept, "levels": list(BITS), **others})


EXPERIMENTS = (
    Experiment(
        "basecagg-fig2",
        "BASecAgg for several levels of the quantiser",
        ("BASecAgg, figure 2",),
        basecagg_fig1.ABOUT
        + " The text gives neither the levels of the figure nor its weighting: the levels are all that this standard"
        " takes, 1 to 2**32, and the weightings those of figure 1. Sums are formed modulo 2**32 - 5 without a check, as"
        " in the paper; the updates that this standard would refuse are counted.",
        {
            "default": _settings(basecagg_fig1.DEFAULT, rounds=100),
            "paper": _settings(basecagg_fig1.PAPER),
            "paper-cifar10": _settings(basecagg_fig1.CIFAR),
            "tiny": _settings(basecagg_fig1.TINY, levels=[0, 16, 32], seeds=3),
        },
        cells,
        run,
        statements,
        numbers,
        rows,
        draw,
    ),
)
