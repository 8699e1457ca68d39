"""Checks of the averages of HeteroSAg, ``heterosag.average`` (spec/heterosag.md, section 7)."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import heterosag_oracles as oracles
from secagg_spec.conformance.cases.heterosag_functions import AVERAGE, Row, row
from secagg_spec.conformance.cases.heterosag_sessions import bits, wrong_ranges
from secagg_spec.conformance.cases.requests import place_of, some
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, fail
from secagg_spec.conformance.checks.heterosag_levels import BAD_RANGE
from secagg_spec.conformance.sessions.choices import among, only_if

BAD_ROW = reject.BAD_PARAM | reject.MALFORMED | reject.LENGTH
TOO_LARGE = reject.MALFORMED | reject.NONCANONICAL | reject.BAD_SHARE
"""The codes of the table of spec/adapter.md, section 5."""


@check("heterosag.average/cell", "HSA-23")
def cell(draw: Any, call: Caller) -> None:
    """The average of a single cell is its mean, for every method."""
    chosen = row(draw)
    single = replace(chosen, levels=chosen.levels[:1], counts=chosen.counts[:1], sums=chosen.sums[:1], trim=0)
    _judge(call, single)


@check("heterosag.average/mean", "HSA-24")
def mean(draw: Any, call: Caller) -> None:
    """The mean is over all survivors: each cell is weighted by its number of survivors."""
    _judge(call, row(draw, "mean"))


@check("heterosag.average/median", "HSA-25")
def median(draw: Any, call: Caller) -> None:
    """The median is per coordinate; for an even number of cells it is the mean of the two middle values."""
    _judge(call, row(draw, "median"))


@check("heterosag.average/trimmed", "HSA-26")
def trimmed(draw: Any, call: Caller) -> None:
    """The trimmed mean leaves out, per coordinate, the b largest and the b smallest values."""
    _judge(call, row(draw, "trimmed", fewest=draw(among((1, 3)))))


def _judge(call: Caller, chosen: Row) -> None:
    """Ask for the average, and compare it with the exact segment."""
    got = call.reals(AVERAGE, chosen.params(), "segment", "<f8").tolist()
    if len(got) != chosen.length:
        fail(f"the segment has {len(got)} elements; it must have {chosen.length}")
    bound = oracles.tolerance(chosen.range)
    for at, (number, want) in enumerate(zip(got, chosen.segment(), strict=True)):
        if not math.isfinite(number) or abs(Fraction(number) - want) > bound:
            off = f"it must be {float(want)!r}, give or take {float(bound):.3g}"
            fail(f"element {at} of the {chosen.method} of {len(chosen.sums)} cells is {number!r}; {off}", float(want))


@check("heterosag.average/trim", "HSA-26", examples=30)
def trimmed_away(draw: Any, call: Caller) -> None:
    """A trim that is negative or leaves no cell is refused."""
    chosen = row(draw, "trimmed")
    cells = len(chosen.sums)
    least = (cells + 1) // 2
    trim = draw(among((least, least + 1, cells, -1)))
    call.refused(AVERAGE, chosen.params(trim=trim), BAD_ROW, f"trim is {trim} and there are {cells} cells")


@check("heterosag.average/method", "ADP-39", examples=20)
def method(draw: Any, call: Caller) -> None:
    """A method that is not in the list is refused, and so is a trim for a method that does not trim."""
    chosen = row(draw, draw(among(("mean", "median"))), fewest=3)
    unknown: list[dict[str, Any]] = [{"method": name} for name in ("", "Mean", "mode", "trimmed mean")]
    changed = draw(among((*unknown, {"trim": 1}, {"trim": 1}, {"trim": -1})))
    call.refused(AVERAGE, chosen.params(**changed), BAD_ROW, f"{changed} does not go with {chosen.method}")


@check("heterosag.average/row", "ADP-39", examples=40)
def bad_row(draw: Any, call: Caller) -> None:
    """A row without cells, a count below 1, or lists of different lengths are refused."""
    params = row(draw, fewest=2).params(trim=0)
    call.some_refused(draw, AVERAGE, params, _wrong_rows(params), BAD_ROW)


def _wrong_rows(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    levels, counts, sums = params["levels"], params["counts"], params["sums"]
    nothing = "00000000" * (len(sums[0]) // 8)
    return {
        "no cell": {"levels": [], "counts": [], "sums": []},
        "a cell without survivors": {"counts": [0, *counts[1:]], "sums": [nothing, *sums[1:]]},
        "a cell with a negative count": {"counts": [*counts[:-1], -1], "sums": [*sums[:-1], nothing]},
        "a cell without levels": {"levels": levels[:-1]},
        "a cell without a count": {"counts": counts[:-1]},
        "a cell without a sum": {"sums": sums[:-1]},
        "levels of no cell": {"levels": [*levels, levels[-1]]},
        "a count of no cell": {"counts": [*counts, 1]},
        "a sum of no cell": {"sums": [*sums, nothing]},
    }


@check("heterosag.average/lengths", "MOD-07", examples=15)
def lengths(draw: Any, call: Caller) -> None:
    """Sums of different lengths are refused."""
    params = row(draw, fewest=2).params()
    at, sums = place_of(draw, params["sums"]), params["sums"]
    other = sums[at] + "00000000" if draw(st.booleans()) else sums[at][:-8]
    why = f"sum {at} is longer or shorter than the others"
    call.refused(AVERAGE, {**params, "sums": [*sums[:at], other, *sums[at + 1 :]]}, BAD_ROW, why)


@check("heterosag.average/sum", "HSA-20", examples=30)
def too_large(draw: Any, call: Caller) -> None:
    """A sum above |U|(K - 1) is refused."""
    chosen = row(draw)
    at = place_of(draw, chosen.sums)
    most = chosen.counts[at] * (chosen.levels[at] - 1)
    only_if(most < 2**32 - 1)
    wrong = list(chosen.sums[at])
    wrong[place_of(draw, wrong)] = draw(among((most + 1, 2**32 - 1)))
    moved = replace(chosen, sums=(*chosen.sums[:at], tuple(wrong), *chosen.sums[at + 1 :]))
    why = f"sum {at} is {wrong}, of {chosen.counts[at]} users with {chosen.levels[at]} levels"
    call.refused(AVERAGE, moved.params(), TOO_LARGE, why)


@check("heterosag.average/levels", "HSA-10", examples=15)
def levels(draw: Any, call: Caller) -> None:
    """A cell with fewer than two levels is refused."""
    params = row(draw).params()
    at = place_of(draw, params["levels"])
    changed = [*params["levels"]]
    changed[at] = draw(among((1, 0, -1)))
    params["sums"][at] = "00000000" * (len(params["sums"][at]) // 8)
    call.refused(AVERAGE, {**params, "levels": changed}, reject.BAD_PARAM, f"cell {at} has {changed[at]} levels")


@check("heterosag.average/range", "HSA-05", examples=25)
def bad_range(draw: Any, call: Caller) -> None:
    """A range is refused unless it has two finite bounds in ascending order."""
    chosen = row(draw)
    wrong = wrong_ranges(chosen.range)
    for name in some(draw, wrong):
        call.refused(AVERAGE, chosen.params(range=bits(*wrong[name])), BAD_RANGE, f"there is {name}")
