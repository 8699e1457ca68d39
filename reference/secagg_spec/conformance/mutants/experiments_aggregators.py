"""Planted bugs of the aggregators of training, which their tests find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.conformance.mutants import mutant

Function = Callable[..., Any]
_AGGREGATES = "secagg_spec.experiments.aggregates"
_QUANTISED = "secagg_spec.experiments.aggregators_quantised"
_SUMS = "secagg_spec.experiments.aggregators_sums"
_CELLS = "secagg_spec.experiments.aggregators_cells"
_TESTS = "tests/experiments/test_aggregators.py::"
_ROWS = np.linspace(-0.9, 0.9, 28).reshape(7, 4)
_FAR = np.where(np.abs(_ROWS) > 0.8, 9e9, _ROWS)


def _round(rows: RealArray = _ROWS, round: int = 0, **settings: Any) -> Callable[[], object]:
    """Return a function that gives the aggregate of some updates, and what is said of it; or the error."""

    def witness() -> object:
        aggregators: Any = import_module("secagg_spec.experiments.aggregators")
        named: Mapping[str, Any] = {"aggregator": "secagg", "groups": 2, "levels": [2, 9], "every": 0, **settings}
        try:
            found = aggregators.build(named, 7, 4, 1).aggregate(rows, [2] * 7, users=range(7), round=round)
        except (ValueError, aggregators.Disagreement) as error:
            return str(error)
        return found.mean.tolist(), found.bound, found.by, found.moved

    return witness


def _differing() -> object:
    """Return what comes of an aggregate that is a whole step away."""
    aggregates: Any = import_module(_AGGREGATES)
    try:
        return aggregates.error_within("secagg", 0, np.ones(2), np.zeros(2), 0.5)
    except aggregates.Disagreement as error:
        return str(error)


def _disagreeing() -> object:
    """Return what comes of a shortcut that is no more than near to the protocol."""
    aggregates: Any = import_module(_AGGREGATES)
    try:
        return aggregates.agree("secagg", 0, np.ones(2), np.nextafter(np.ones(2), 2))
    except aggregates.Disagreement as error:
        return str(error)


@mutant(
    "aggregates-may-be-any-distance-away",
    "EXP-13",
    "a run goes on with an aggregate that is not the mean of the updates",
    f"{_AGGREGATES}:error_within",
    _differing,
    _TESTS + "test_a_run_stops_when_its_aggregate_is_a_step_away",
    kind="acceptance",
    source="clause left out",
)
def _distance(right: Function) -> Function:
    return lambda name, at, mean, exact, bound: float(np.abs(mean - exact).max())


@mutant(
    "aggregates-are-divided-by-the-number-of-users",
    "EXP-13",
    "a weighted sum is taken for a sum: the model moves too far",
    f"{_SUMS}:Sums.decoded",
    _round(),
    _TESTS + "test_an_aggregate_is_nearer_to_the_plain_one_than_the_step",
    kind="sum",
    source="wrong term",
)
def _divisor(right: Function) -> Function:
    return lambda self, total, given: total.astype(np.float64) / np.float64(self.level * given.count)


@mutant(
    "cells-are-bound-by-the-smallest-step",
    "EXP-13",
    "a right aggregate of groups with different levels stops the run, or is said to be nearer than it is",
    f"{_CELLS}:HeteroSAg.__init__",
    _round(aggregator="heterosag"),
    _TESTS + "test_an_aggregate_is_nearer_to_the_plain_one_than_the_step",
    kind="refusal",
    source="clause too strict",
)
def _smallest(right: Function) -> Function:
    def init(self: Any, *given: Any) -> None:
        right(self, *given)
        self.bound = self.bound and self.range.step(max(self.levels))

    return init


@mutant(
    "medians-are-compared-with-the-mean",
    "EXP-13",
    "a right median stops the run as soon as an update is far from the others",
    f"{_CELLS}:HeteroSAg.exact",
    _round(
        np.where(np.arange(7)[:, None] == 0, 0.99, -0.99) * np.ones(4),
        aggregator="heterosag", levels=99, method="median", matrix="separate", range=[-1.0, 1.0],
    ),
    _TESTS + "test_a_median_is_compared_with_that_of_cells_of_real_numbers",
    kind="refusal",
    source="other rule: the plain mean for all methods",
)  # fmt: skip
def _median(right: Function) -> Function:
    def exact(self: Any, numbers: RealArray, given: Any) -> Any:
        return import_module(_AGGREGATES).weighted_mean(numbers, given.weights)

    return exact


@mutant(
    "shortcuts-need-not-be-the-protocol",
    "EXP-14",
    "what stands for the protocol in most rounds may be something else, and nobody notices",
    f"{_AGGREGATES}:agree",
    _disagreeing,
    _TESTS + "test_a_protocol_that_returns_something_else_stops_the_run",
    kind="acceptance",
    source="clause left out",
)
def _agreeing(right: Function) -> Function:
    return lambda name, at, shortcut, protocol: None


@mutant(
    "shortcuts-need-only-be-near-the-protocol",
    "EXP-14",
    "a shortcut that rounds otherwise passes, and two runs of one seed part",
    f"{_AGGREGATES}:agree",
    _disagreeing,
    _TESTS + "test_a_protocol_that_returns_something_else_stops_the_run",
    kind="acceptance",
    source="clause in part",
)
def _nearly(right: Function) -> Function:
    def agree(name: str, round: int, shortcut: RealArray, protocol: RealArray) -> None:
        if not np.allclose(shortcut, protocol):
            right(name, round, shortcut, protocol)

    return agree


@mutant(
    "shortcuts-average-decoded-updates",
    "EXP-14",
    "each update is decoded and the mean taken of these: the last bits are others than the protocol's",
    f"{_SUMS}:Sums.shortcut",
    _round(level=3 * 2**9),
    _TESTS + "test_the_shortcut_is_the_whole_protocol_bit_for_bit",
    kind="sum",
    source="arithmetic: rounded before the sum",
)
def _decoded(right: Function) -> Function:
    def shortcut(self: Any, values: Any, given: Any) -> Any:
        return import_module(_AGGREGATES).weighted_mean(values / self.level, given.weights)

    return shortcut


@mutant(
    "shortcuts-average-all-users-at-once",
    "EXP-14",
    "the cells are left out: what should be their median is a mean",
    f"{_CELLS}:HeteroSAg.shortcut",
    _round(aggregator="heterosag"),
    _TESTS + "test_the_shortcut_is_the_whole_protocol_bit_for_bit",
    kind="sum",
    source="other rule: the mean of all",
)
def _all_at_once(right: Function) -> Function:
    def shortcut(self: Any, values: Any, given: Any) -> Any:
        levels = self.layout(given.count).levels
        return self.range.value(values, levels).mean(axis=0)

    return shortcut


@mutant(
    "rounds-of-the-shortcut-count-as-the-protocol",
    "EXP-15",
    "a result says that the whole protocol ran in rounds in which it did not",
    f"{_QUANTISED}:Quantised.of",
    _round(),
    _TESTS + "test_a_result_says_whether_the_protocol_ran",
    kind="form",
    source="wrong term",
)
def _counted(right: Function) -> Function:
    def of(self: Any, given: Any) -> Any:
        found = right(self, given)
        object.__setattr__(found, "by", "protocol")
        return found

    return of


@mutant(
    "the-protocol-runs-a-round-late",
    "EXP-15",
    "the settings ask for rounds 0, n, 2n, …, and the protocol runs in others",
    f"{_AGGREGATES}:due",
    _round(every=2),
    _TESTS + "test_a_result_says_whether_the_protocol_ran",
    kind="form",
    source="off by one",
)
def _late(right: Function) -> Function:
    return lambda every, at: right(every, at + 1)


@mutant(
    "numbers-outside-the-range-are-moved-unasked",
    "EXP-16",
    "a model that outgrew the quantiser goes on training with cut updates",
    f"{_QUANTISED}:within",
    _round(_FAR),
    _TESTS + "test_a_number_outside_the_range_is_refused_or_moved",
    kind="acceptance",
    source="silent repair",
)
def _unasked(right: Function) -> Function:
    return lambda given, low, high, clip: right(given, low, high, True)


@mutant(
    "moved-numbers-are-not-counted",
    "EXP-16",
    "a result does not say that updates were cut",
    f"{_QUANTISED}:within",
    _round(_FAR, clip=True),
    _TESTS + "test_a_number_outside_the_range_is_refused_or_moved",
    kind="form",
    source="clause in part",
)
def _uncounted(right: Function) -> Function:
    return lambda *given: (right(*given)[0], 0)


@mutant(
    "moved-users-are-counted-for-moved-numbers",
    "EXP-16",
    "a result says that fewer numbers were cut than there were",
    f"{_QUANTISED}:within",
    _round(_FAR, clip=True),
    _TESTS + "test_no_number_counts_twice_and_none_is_left_out",
    kind="form",
    source="wrong term",
)
def _users(right: Function) -> Function:
    def within(given: Any, low: float, high: float, clip: bool) -> Any:
        moved, _ = right(given, low, high, clip)
        return moved, int((moved != given.updates).any(axis=1).sum())

    return within
