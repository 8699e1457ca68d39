"""Vectors of HeteroSAg, one function at a time: the quantiser, plans, averages, and requests of many rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.levels import MAX_LEVELS, Range
from secagg_spec.conformance.cases.heterosag_functions import AVERAGE, PLAN, QUANTIZE, REQUEST, Asked, Quantised, Row
from secagg_spec.conformance.cases.heterosag_oracles import carried
from secagg_spec.conformance.cases.heterosag_sessions import bits, wrong_numbers, wrong_ranges
from secagg_spec.conformance.checks.base import BAD_PARAM, LENGTH, TOO_FEW
from secagg_spec.conformance.checks.heterosag_averages import BAD_ROW, TOO_LARGE
from secagg_spec.conformance.checks.heterosag_levels import BAD_RANGE, OUTSIDE_RANGE
from secagg_spec.conformance.sessions.heterosag_numbers import members
from secagg_spec.conformance.vectors.base import (
    VectorFile,
    begun,
    drawn,
    drawn_rounding,
)
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.protocols.heterosag.plan import PRESETS, UNIT, Parameters

_NARROW, _SLOPED, _HUGE = Range(1.0, 1.0 + 2.0**-20), Range(-0.001, 12.5), Range(-9e307, 8e307)
_RANGES = {"unit": UNIT, "sloped": _SLOPED, "narrow": _NARROW, "huge": _HUGE, "tiny": Range(1e-300, 3e-300)}
_GROUPS = Parameters(17, 2, 1, 4, 8, (11, 6), (2, 1), (2, 3), UNIT)
"""Subgroups of 6, 5 and 6 users, and segments of 3, 3 and 2 elements."""
_BLOCKS = Parameters(13, 0, 1, 3, 2, (3, 10), (1, 1), (2, 3), UNIT)
"""A subgroup with three blocks of three users, 3 to 5, 6 to 8 and 9 to 11, and user 12."""
_ALL: tuple[int, ...] = ()


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("heterosag", "HeteroSAg, one function at a time, and the requests of many rounds.")
    _quantised(made)
    _refused_numbers(made)
    _plans(made)
    _refused_plans(made)
    _averages(made)
    _refused_rows(made)
    _requests(made)
    return made


# ------------------------------------------------------------------------------------------------------ the quantiser


def _numbers(id: str, levels: int, range: Range, clip: bool = False) -> Quantised:
    """Draw numbers of a range, with draws away from the points where the result changes (HSA-08)."""
    shares, draws = drawn_rounding(f"{id}/x", 6), drawn_rounding(id, 6)
    chosen = Quantised(levels, range, range.low + (range.high - range.low) * shares, draws, clip)
    assert all(len(carried(x, levels, range, u)) == 1 for x, u in zip(chosen.x.tolist(), draws.tolist(), strict=True))
    return chosen


def _carry(made: VectorFile, id: str, chosen: Quantised, clause: str, flags: Sequence[str], comment: str) -> None:
    made.valid(id, QUANTIZE, chosen.params(), chosen.rand(), clauses=[clause], flags=flags, comment=comment)


def _quantised(made: VectorFile) -> None:
    for name, range in _RANGES.items():
        for levels in (2, 3, 12, 65537):
            id, comment = f"levels-{name}-{levels}", f"{levels} levels from {range.low!r} to {range.high!r}"
            _carry(made, id, _numbers(id, levels, range), "HSA-08", ["Levels"], comment)
    for name, levels in (("unit", 10**6 + 3), ("narrow", MAX_LEVELS), ("sloped", MAX_LEVELS)):
        id = f"levels-{name}-{levels}"
        comment = f"{levels} levels, finer than binary32"
        _carry(made, id, _numbers(id, levels, _RANGES[name]), "HSA-08", ["ManyLevels"], comment)
    for levels in (2, 3, 256):
        ends = np.array([-1.0, 1.0, -1.0, 1.0])
        chosen = Quantised(levels, UNIT, ends, np.array([0.25, 0.25, 0.9375, 0.9375]))
        id, comment = f"levels-ends-{levels}", "both bounds, which are levels, with two draws each"
        _carry(made, id, chosen, "HSA-08", ["LastLevel"], comment)
    first = Quantised(3, UNIT, np.array([1.0, 1.0]), np.array([0.0, 0.5]))
    comment = "the largest number, with the draw 0 too"
    _carry(made, "levels-draw-zero", first, "HSA-08", ["LastLevel"], comment)
    for name, x in (("above", 1.5), ("below", -1.0 - 2.0**-52), ("infinite", np.inf), ("minus-infinite", -np.inf)):
        id = f"levels-clip-{name}"
        chosen = _numbers(id, 5, UNIT, clip=True)
        chosen.x[2] = x
        _carry(made, id, chosen, "HSA-07", ["Clipped"], f"{x!r} is clipped to a bound of [-1, 1]")


def _refused_numbers(made: VectorFile) -> None:
    for name, x in (("above", 1.0 + 2.0**-52), ("below", -1.5), ("infinite", np.inf), ("minus-infinite", -np.inf)):
        _not_carried(made, f"levels-outside-{name}", "HSA-07", "Outside", OUTSIDE_RANGE, f"a number is {x!r}", x=x)
    for clip in (False, True):
        id, comment = f"levels-nan{'-clip' * clip}", f"a number is NaN, and clip is {str(clip).lower()}"
        _not_carried(made, id, "HSA-07", "NotANumber", OUTSIDE_RANGE, comment, x=np.nan, clip=clip)
    for name, draw in (("one", 1.0), ("negative", -(2.0**-53)), ("nan", np.nan)):
        id, comment = f"levels-draw-{name}", f"a draw is {draw!r}"
        _not_carried(made, id, "HSA-09", "LevelDraw", OUTSIDE_RANGE, comment, draw=draw)
    for name, levels in (("one", 1), ("zero", 0), ("negative", -3), ("many", MAX_LEVELS + 1)):
        id, comment = f"levels-number-{name}", f"there are {levels} levels"
        _not_carried(made, id, "HSA-10", "NumberOfLevels", BAD_PARAM, comment, levels=str(levels))
    for at, (name, wrong) in enumerate(wrong_ranges(UNIT).items()):
        id, comment = f"levels-range-{at}", f"there is {name}"
        _not_carried(made, id, "HSA-05", "Range", BAD_RANGE, comment, clip=len(set(wrong)) == 1, range=bits(*wrong))
    for name, count in (("few", 5), ("many", 7)):
        id = f"levels-draws-{name}"
        chosen = _numbers(id, 3, UNIT)
        draws = np.resize(chosen.draws, count)
        comment = f"six numbers and {count} draws"
        given = replace(chosen, draws=draws)
        made.invalid(
            id, QUANTIZE, given.params(), given.rand(),
            codes=LENGTH, clauses=["MOD-07"], flags=["LevelDraws"], comment=comment,
        )  # fmt: skip


def _not_carried(
    made: VectorFile,
    id: str,
    clause: str,
    flag: str,
    codes: frozenset[str],
    comment: str,
    *,
    x: float | None = None,
    draw: float | None = None,
    clip: bool = False,
    **changed: Any,
) -> None:
    chosen = _numbers(id, 3, UNIT, clip)
    for numbers, wrong in ((chosen.x, x), (chosen.draws, draw)):
        if wrong is not None:
            numbers[3] = wrong
    made.invalid(
        id, QUANTIZE, chosen.params(**changed), chosen.rand(),
        codes=codes, clauses=[clause], flags=[flag], comment=comment,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ the plan


def _many(count: int, matrix: str, levels: tuple[int, ...] = (2,), parts: tuple[int, ...] = ()) -> Parameters:
    """Return numbers of `count` subgroups of three users."""
    groups = parts or (count,)
    sizes = tuple(3 * part for part in groups)
    return Parameters(3 * count, 0, 1, 3, count, sizes, groups, levels, UNIT, matrix)


def _plan(made: VectorFile, id: str, p: Parameters, clauses: Sequence[str], flags: Sequence[str], comment: str) -> None:
    made.valid(id, PLAN, members(p), clauses=clauses, flags=flags, comment=comment)


def _plans(made: VectorFile) -> None:
    both = ["HSA-11", "HSA-12"]
    for name, p in PRESETS.items():
        _plan(made, f"plan-{name}", p, both, ["Perfect", "Cells"], f"the parameters {name} of section 2")
    for Z in (2, 3, 4, 5, 6, 7):
        comment = f"the cyclic matrix of {Z} subgroups"
        _plan(made, f"plan-cyclic-{Z}", _many(Z, "cyclic"), ["HSA-11"], ["Cyclic"], comment)
    for Z in (2, 3, 4, 6, 7, 9, 10, 12, 15, 16, 25, 27, 28, 33):
        comment = f"the perfect matrix of {Z} subgroups"
        _plan(made, f"plan-perfect-{Z}", _many(Z, "perfect"), ["HSA-11"], ["Perfect"], comment)
    for matrix in ("cyclic", "perfect"):
        for parts in ((3, 3), (1, 3, 1), (2, 1, 1, 2)):
            p = _many(sum(parts), matrix, (2, 3, 7, 9)[: len(parts)], parts)
            id = f"plan-{matrix}-groups-{'-'.join(map(str, parts))}"
            flags = ["Cyclic" if matrix == "cyclic" else "Perfect", "Cells"]
            _plan(made, id, p, both, flags, f"groups of {parts} subgroups")
    for d in (3, 7, 8):
        p = replace(_GROUPS, d=d)
        _plan(made, f"plan-unequal-{d}", p, both, ["Subgroups", "Cells"], f"6, 5 and 6 users, {d} elements")
    largest = Parameters(18, 0, 1, 3, 3, (15, 3), (2, 1), (286331154, (2**32 - 1) // 3 + 1), UNIT, "cyclic")
    comment = "two moduli of exactly 2**32: of 15 users, and of the last three alone"
    _plan(made, "plan-largest-moduli", largest, both, ["Cells"], comment)
    alike = replace(_GROUPS, levels=(5, 5), range=_SLOPED)
    _plan(made, "plan-equal-levels", alike, ["HSA-12"], ["Cells"], "the same levels in both groups")


_BROKEN = (
    ("HSA-01", "Counts", "one user more than the groups have", "user-more"),
    ("HSA-01", "Counts", "one user less than the groups have", "user-less"),
    ("HSA-01", "Counts", "an empty group", "empty-group"),
    ("HSA-01", "Counts", "a group without subgroups", "no-subgroups"),
    ("HSA-01", "Counts", "a single subgroup", "one-subgroup"),
    ("HSA-01", "Counts", "a subgroup of T + 1 users", "small-subgroup"),
    ("HSA-01", "Counts", "nobody colludes", "nobody-colludes"),
    ("HSA-01", "Counts", "a negative D", "negative-d"),
    ("HSA-01", "Counts", "too few users that stay", "few-stay"),
    ("HSA-01", "Counts", "a threshold of T + 1", "low-threshold"),
    ("HSA-01", "Counts", "a threshold above N - D", "high-threshold"),
    ("HSA-02", "FallingLevels", "no levels of a group", "levels-missing"),
    ("HSA-02", "FallingLevels", "levels of a group too many", "levels-too-many"),
    ("HSA-02", "FallingLevels", "one level", "one-level"),
    ("HSA-02", "FallingLevels", "levels that fall", "levels-fall"),
    ("HSA-03", "LargeModulus", "a modulus above 2**32", "large-modulus"),
    ("HSA-04", "FewElements", "fewer elements than segments", "few-elements"),
    ("HSA-05", "Range", "a range of no width", "no-width"),
    ("HSA-05", "Range", "a range that falls", "range-falls"),
    ("HSA-05", "Range", "a range of infinite width", "infinite-width"),
    ("HSA-05", "Range", "three bounds", "three-bounds"),
)
"""Forbidden numbers: the clause, the flag, their name among the cases, and their part of the id."""


def _refused_plans(made: VectorFile) -> None:
    wrong = wrong_numbers(_GROUPS)
    for clause, flag, name, short in _BROKEN:
        for operation, prefix in ((PLAN, "plan"), (REQUEST, "request")):
            requests = {"requests": [list(range(17))]} if operation == REQUEST else {}
            params = {**members(_GROUPS), **requests, **wrong[name]}
            id, comment = f"{prefix}-refused-{short}", f"there is {name}"
            made.invalid(id, operation, params, codes=BAD_RANGE, clauses=[clause], flags=[flag], comment=comment)
    for Z in (35, 36, 39, 40, 50):
        params = {**members(_many(Z, "cyclic")), "matrix": "perfect"}
        comment = f"no perfect matrix is constructed for {Z} subgroups"
        made.invalid(
            f"plan-refused-perfect-{Z}", PLAN, params,
            codes=BAD_RANGE, clauses=["HSA-06"], flags=["NoConstruction"], comment=comment,
        )  # fmt: skip


# -------------------------------------------------------------------------------------------------------- the averages


def _row(id: str, range: Range = UNIT, cells: int = 5, length: int = 3) -> Row:
    """Draw the sums of cells of different sizes."""
    levels, counts = (2, 3, 6, 12, 256, 7)[:cells], (4, 9, 3, 6, 5, 11)[:cells]
    sums = [
        tuple(drawn(id, f"sum {at}", count * (K - 1) + 1, length).tolist())
        for at, (K, count) in enumerate(zip(levels, counts, strict=True))
    ]
    return Row(range, levels, counts, tuple(sums))


def _averages(made: VectorFile) -> None:
    for name, range in _RANGES.items():
        id, comment = f"average-cell-{name}", f"one cell, of numbers from {range.low!r} to {range.high!r}"
        _averaged(made, id, _row(id, range, 1, 5), ["HSA-23"], ["CellMean"], comment)
        for cells in (4, 5):
            for method, trim, clause, flag in (
                ("mean", 0, "HSA-24", "Weighed"),
                ("median", 0, "HSA-25", "Median"),
                ("trimmed", 1, "HSA-26", "Trimmed"),
            ):
                id = f"average-{method}-{name}-{cells}"
                chosen = replace(_row(id, range, cells), method=method, trim=trim)
                _averaged(made, id, chosen, [clause], [flag], f"the {method} of {cells} cells")
    for trim in (0, 1, 2):
        id = f"average-trim-{trim}"
        chosen = replace(_row(id, cells=6), method="trimmed", trim=trim)
        _averaged(made, id, chosen, ["HSA-26"], ["Trimmed"], f"of six cells {trim} are left out on each side")
    ends = Row(UNIT, (2, 3), (4, 5), ((0, 4), (0, 10)))
    _averaged(made, "average-ends", ends, ["HSA-23"], ["CellMean"], "the smallest and the largest sums")
    steep = Row(Range(0.0, 1.7e308), (2, 2), (3, 3), ((3, 0), (3, 0)), "median")
    comment = "two cell means near the largest number, whose sum is none"
    _averaged(made, "average-no-overflow", steep, ["HSA-25"], ["LargeMeans"], comment)


def _averaged(
    made: VectorFile, id: str, chosen: Row, clauses: Sequence[str], flags: Sequence[str], comment: str
) -> None:
    made.valid(id, AVERAGE, chosen.params(), clauses=clauses, flags=flags, comment=comment)


def _refused_rows(made: VectorFile) -> None:
    for name, method, trim, clause, flag in (
        ("all", "trimmed", 3, "HSA-26", "Trim"),
        ("negative", "trimmed", -1, "HSA-26", "Trim"),
        ("beside-mean", "mean", 1, "ADP-39", "Method"),
        ("beside-median", "median", 1, "ADP-39", "Method"),
        ("unknown-method", "mode", 0, "ADP-39", "Method"),
        ("capital", "Mean", 0, "ADP-39", "Method"),
    ):
        id = f"average-refused-{name}"
        comment = f"five cells, the method {method} and the trim {trim}"
        _not_averaged(made, id, _row(id).params(method=method, trim=trim), clause, flag, BAD_ROW, comment)
    for name, changed, comment in (
        ("no-cell", {"levels": [], "counts": [], "sums": []}, "there is no cell"),
        ("levels-missing", {"levels": [2, 3, 6, 12]}, "five cells, and levels of four"),
        ("counts-missing", {"counts": [4, 9, 3, 6]}, "five cells, and counts of four"),
        ("counts-too-many", {"counts": [4, 9, 3, 6, 5, 1]}, "five cells, and counts of six"),
    ):
        id = f"average-refused-{name}"
        _not_averaged(made, id, _row(id).params(**changed), "ADP-39", "Rows", BAD_ROW, comment)
    for name, count in (("nobody", 0), ("negative-count", -1)):
        id = f"average-refused-{name}"
        chosen = replace(_row(id), method="median")
        empty = replace(chosen, sums=((0, 0, 0), *chosen.sums[1:]))
        comment = f"a cell with {count} survivors and the sum 0"
        counts = [count, *chosen.counts[1:]]
        _not_averaged(made, id, empty.params(counts=counts), "ADP-39", "Rows", BAD_ROW, comment)
    _refused_sums(made)


def _refused_sums(made: VectorFile) -> None:
    for at, most in ((0, 4), (2, 15)):
        id = f"average-refused-sum-{at}"
        chosen = _row(id)
        sums = [*map(list, chosen.sums)]
        sums[at][1] = most + 1
        given = replace(chosen, sums=tuple(map(tuple, sums)))
        comment = f"a sum of {most + 1}, where {most} is the largest that users can have"
        _not_averaged(made, id, given.params(), "HSA-20", "LargeSum", TOO_LARGE, comment)
    for name, change in (("short", slice(0, -8)), ("empty", slice(0, 0))):
        id = f"average-refused-{name}"
        params = _row(id).params()
        params["sums"][3] = params["sums"][3][change]
        comment = "a sum is shorter than the others"
        _not_averaged(made, id, params, "MOD-07", "SumLengths", BAD_ROW, comment)
    id = "average-refused-one-level"
    params = _row(id).params(levels=[1, 3, 6, 12, 256])
    params["sums"][0] = "00000000" * 3
    _not_averaged(made, id, params, "HSA-10", "NumberOfLevels", BAD_PARAM, "a cell with one level, and the sum 0")
    for name in ("a range of no width", "a range that falls", "a range of infinite width"):
        id = f"average-refused-{name.replace(' ', '-')}"
        params = _row(id).params(range=bits(*wrong_ranges(UNIT)[name]))
        _not_averaged(made, id, params, "HSA-05", "Range", BAD_RANGE, f"there is {name}")


def _not_averaged(
    made: VectorFile, id: str, params: dict[str, Any], clause: str, flag: str, codes: frozenset[str], comment: str
) -> None:
    made.invalid(id, AVERAGE, params, codes=codes, clauses=[clause], flags=[flag], comment=comment)


# -------------------------------------------------------------------------------------------------------- the requests


def _asked(
    made: VectorFile,
    id: str,
    p: Parameters,
    dropped: Sequence[Sequence[int]],
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
) -> None:
    """Add successive requests, each given by its dropouts. The oracle says which are refused."""
    scene = Asked(p).then(*dropped)
    refused = {at: Refusal(TOO_FEW) for at, right in enumerate(scene.answered()) if not right}
    made.script(id, REQUEST, scene.params(), refused=refused, clauses=clauses, flags=flags, comment=comment)


def _requests(made: VectorFile) -> None:
    second, third = tuple(range(6, 11)), tuple(range(11, 17))
    for name, dropped, clauses, flags, comment in (
        ("all", [_ALL], ["HSA-18"], ["WholeSubgroup"], "nobody drops out"),
        ("subgroup-lost", [second], ["HSA-18"], ["WholeSubgroup"], "a whole subgroup drops out"),
        ("three-left", [third[3:]], ["HSA-18"], ["WholeSubgroup"], "T + 2 users of a subgroup are left"),
        ("one-left", [second[1:]], ["HSA-18"], ["FewInACell"], "one user of another subgroup is left"),
        ("two-left", [third[:-2]], ["HSA-18"], ["FewInACell"], "two users of another subgroup are left"),
        ("two-own-left", [range(2, 6)], ["HSA-18"], ["FewInACell"], "two users of the first subgroup are left"),
        ("again", [_ALL, _ALL, _ALL], ["HSA-27"], ["SameSurvivors"], "the same users, three times"),
        ("come-and-go", [_ALL, second, third, second, _ALL], ["HSA-27"], ["SameSurvivors"], "subgroups come and go"),
        ("one-leaves", [_ALL, (1,)], ["HSA-27"], ["LookBack"], "one user less than before"),
        ("one-returns", [(12,), _ALL], ["HSA-27"], ["LookBack"], "one user more than before, of another subgroup"),
        ("two-leave", [_ALL, (12, 15)], ["HSA-27"], ["LookBack"], "two users less, and T + 2 are three"),
        ("three-leave", [_ALL, (11, 13, 16)], ["HSA-27"], ["SameSurvivors"], "three users less, as many as may"),
        ("first-of-three", [_ALL, range(6), (1,)], ["HSA-27"], ["LookBack"], "one user less than two rounds ago"),
        ("since-then", [second, _ALL, (7,)], ["HSA-27"], ["LookBack"], "one user less than in the second round"),
        ("another-subgroup", [_ALL, third, (7,)], ["HSA-27"], ["LookBack"], "other users have come and gone between"),
        ("no-trace", [_ALL, (1,), _ALL, second], ["ERR-01"], ["RefusedRequest"], "right ones after a refused one"),
        ("no-trace-few", [second[1:], _ALL], ["ERR-01"], ["RefusedRequest"], "right after one user was left"),
    ):
        _asked(made, f"request-{name}", _GROUPS, dropped, clauses, flags, comment)
    _together(made)


def _together(made: VectorFile) -> None:
    first, second, third = tuple(range(3, 6)), tuple(range(6, 9)), tuple(range(9, 12))
    for name, p, dropped, comment in (
        ("three-rounds", _BLOCKS, [_ALL, first, second + third], "the user 12 is alone in being in all three"),
        ("three-rounds-turned", _BLOCKS, [second + third, first, _ALL], "the same in another order"),
        ("four-rounds", _BLOCKS, [_ALL, first, second, third], "the user 12 is alone in being in all four"),
        (
            "no-combination",
            replace(_BLOCKS, N=15, sizes=(3, 12)),
            [_ALL, first, second, third],
            "three users are in all four, not one",
        ),
    ):
        _asked(made, f"request-{name}", p, dropped, ["HSA-27"], ["SeveralRounds"], comment)
    exact = replace(_BLOCKS, N=12, sizes=(3, 9))
    comment = "nobody is in all three"
    _asked(made, "request-nothing-left", exact, [_ALL, first, second + third], ["HSA-27"], ["SameSurvivors"], comment)
    comment = "two users leave and two others come: each two are told from the rest"
    _asked(made, "request-both-ways", exact, [(4, 5), (6, 7)], ["HSA-27"], ["LookBack"], comment)
