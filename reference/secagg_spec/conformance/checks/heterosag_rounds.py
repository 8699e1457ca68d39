"""Checks of whole rounds of HeteroSAg over real numbers (spec/adapter.md, section 4)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import heterosag_oracles as oracles
from secagg_spec.conformance.cases import heterosag_rounds, heterosag_sessions, strategies
from secagg_spec.conformance.cases.heterosag_masking import Reals, dropping, reals
from secagg_spec.conformance.cases.requests import some
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, equal, fail
from secagg_spec.conformance.checks.heterosag_masks import judge_sums
from secagg_spec.conformance.checks.heterosag_steps import BAD_NUMBERS
from secagg_spec.conformance.sdk.secagg_adapter import ROUND_PHASES
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.conformance.sessions.heterosag_cells import ROUND

_BEFORE = ROUND_PHASES[:-1]


@check(f"{ROUND}/exact", "HSA-19", "HSA-21", "HSA-12", examples=24)
def whole(draw: Any, call: Caller) -> None:
    """The sums are those of the quantised inputs, and the aggregate is computed from them by the requested method."""
    _judge(call, reals(draw))


@check(f"{ROUND}/dropouts", "HSA-19", "HSA-21", "SAG-30", examples=40)
def dropouts(draw: Any, call: Caller) -> None:
    """A round completes although users and whole subgroups drop out, if enough others are left."""
    scene = reals(draw)
    p = scene.parameters
    dropped = heterosag_rounds.lost(draw, p)
    drop = dropping(draw, p, dropped, _BEFORE)
    survivors = [user for user in range(p.N) if user not in dropped]
    drop["unmasking"] = strategies.subset(draw, survivors, 0, len(survivors) - p.t)
    _judge(call, _trimmed(draw, replace(scene, drop=drop)))


def _trimmed(draw: Any, scene: Reals) -> Reals:
    """Return the round with a trim, if its method trims and there are enough cells."""
    most = min((len(row) - 1) // 2 for row in scene.rows())
    return replace(scene, trim=draw(st.integers(0, most))) if scene.method == "trimmed" else scene


def _judge(call: Caller, scene: Reals) -> None:
    result = call.result(ROUND, scene.params(), call.randomness(ROUND, scene.rand()))
    equal("contributors are", result.get("contributors"), scene.contributors)
    if call.caps.grade(ROUND) == "explicit":
        judge_sums(call, ROUND, result.get("sums"), scene.sums())
        sums = scene.sums()
    else:
        sums = between(call, scene, result.get("sums"))
    _judge_aggregate(call, scene, sums, result.get("aggregate"))


def between(call: Caller, scene: Reals, got: Any) -> list[UintArray]:
    """Return the sums of an adapter that draws for itself. Fail if no draws give them (HSA-08)."""
    least, most = scene.sums(0), scene.sums(1)
    if not isinstance(got, list) or len(got) != len(least):
        fail(f"{ROUND}: sums must be a list of {len(least)} vectors, one for each cell with survivors")
    found = [call.read(ROUND, text, f"sums[{at}]", least[at].size, 2**32) for at, text in enumerate(got)]
    for at, (low, mine, high) in enumerate(zip(least, found, most, strict=True)):
        if (mine < low).any() or (mine > high).any():
            fail(f"sums[{at}] is {mine.tolist()}, must be from {low.tolist()} to {high.tolist()}")
    return found


def _judge_aggregate(call: Caller, scene: Reals, sums: Sequence[UintArray], text: Any) -> None:
    """Fail when the aggregate does not follow from these sums (HSA-23 to HSA-26)."""
    got = call.unpacked(ROUND, text, "aggregate", "<f8").tolist()
    slack = oracles.tolerance(scene.parameters.range)
    wanted = _aggregate(scene, sums)
    if len(got) != len(wanted):
        fail(f"the aggregate has {len(got)} elements; it must have {len(wanted)}")
    for at, (mine, right) in enumerate(zip(got, wanted, strict=True)):
        if not math.isfinite(mine) or abs(Fraction(mine) - right) > slack:
            fail(f"element {at} of the aggregate is {mine!r}; it must be {float(right)!r}", float(right))


def _aggregate(scene: Reals, sums: Sequence[UintArray]) -> list[Fraction]:
    left, found = list(sums), list[Fraction]()
    for row in scene.rows():
        own = [left.pop(0) for _ in row]
        for at in range(row[0][0].length):
            means = [
                oracles.mean_of(int(own[i][at]), count, cell.levels, scene.parameters.range)
                for i, (cell, count) in enumerate(row)
            ]
            found.append(oracles.aggregate(means, [count for _, count in row], scene.method, scene.trim))
    return found


def _refused(call: Caller, scene: Reals, codes: frozenset[str], why: str, **changed: Any) -> None:
    call.refused(ROUND, scene.params(**changed), codes, why, call.randomness(ROUND, scene.rand()))


@check(f"{ROUND}/few-of-a-cell", "HSA-17", "HSA-21", examples=24)
def few_of_a_cell(draw: Any, call: Caller) -> None:
    """A round that leaves one to T + 1 survivors in a cell fails with a rejection."""
    scene = reals(draw)
    p, users = scene.parameters, draw(among(scene.parameters.members))
    left = draw(among((p.T + 1, 1, *range(1, p.T + 1))))
    drop = dropping(draw, p, users[left:], (draw(among(_BEFORE)),))
    why = f"{left} users of a subgroup survive, and T + 2 is {p.T + 2}"
    _refused(call, replace(scene, drop=drop), reject.TOO_FEW, why)


@check(f"{ROUND}/few-answers", "SAG-30", "HSA-21", examples=16)
def few_answers(draw: Any, call: Caller) -> None:
    """A round in which fewer than t users answer fails with a rejection."""
    scene = reals(draw)
    p, left = scene.parameters, draw(st.integers(0, scene.parameters.t - 1))
    drop = dropping(draw, p, strategies.shuffled(draw, range(p.N))[left:], ("unmasking",))
    _refused(call, replace(scene, drop=drop), reject.TOO_FEW, f"{left} users answer and t = {p.t} are needed")


@check(f"{ROUND}/range", "HSA-07", examples=30)
def out_of_range(draw: Any, call: Caller) -> None:
    """An input that is outside the range or not finite is refused if clipping is not requested."""
    scene = reals(draw)
    bounds = scene.parameters.range
    user, at = (draw(st.integers(0, size - 1)) for size in scene.x.shape)
    low, high = float(bounds.low), float(bounds.high)
    above = draw(st.booleans())
    beyond = float(np.nextafter(high, math.inf)) if above else float(np.nextafter(low, -math.inf))
    wrong = draw(among((beyond, math.inf if above else -math.inf, math.nan)))
    x = scene.x.copy()
    x[user, at] = wrong
    why = f"x[{user}][{at}] is {wrong!r}, and the range is {low!r} to {high!r}"
    _refused(call, replace(scene, x=x), reject.NOT_FINITE | reject.BAD_PARAM, why)


@check(f"{ROUND}/clipped", "HSA-07", examples=24)
def clipped(draw: Any, call: Caller) -> None:
    """With clipping, a finite input outside the range counts as the nearest end of the range."""
    scene = reals(draw)
    bounds = scene.parameters.range
    user, at = (draw(st.integers(0, size - 1)) for size in scene.x.shape)
    above = draw(st.booleans())
    end, x = (bounds.high if above else bounds.low), scene.x.copy()
    x[user, at] = float(end)
    call_with = replace(scene, x=x)
    far = x.copy()
    far[user, at] = float(np.nextafter(end, math.inf if above else -math.inf))
    rand = call.randomness(ROUND, scene.rand())
    only_if(call.caps.grade(ROUND) != "none")
    first = call.result(ROUND, call_with.params(), rand)
    second = call.result(ROUND, replace(scene, x=far).params(clip=True), rand)
    if first.get("sums") != second.get("sums"):
        fail(f"x[{user}][{at}] is clipped to something else than {float(end)!r}", first.get("sums"))


@check(f"{ROUND}/method", "ADP-39", examples=12)
def method(draw: Any, call: Caller) -> None:
    """A method that the text does not have is refused, and so is a trim for a method that does not trim."""
    scene = reals(draw)
    wrong: tuple[dict[str, Any], ...] = (
        {"method": "Mean", "trim": 0},
        {"method": "", "trim": 0},
        {"method": "mode", "trim": 0},
        {"method": "mean", "trim": 1},
        {"method": "median", "trim": 1},
    )
    changed = draw(among(wrong))
    _refused(call, scene, reject.BAD_PARAM | reject.MALFORMED, f"the request has {changed}", **changed)


@check(f"{ROUND}/trim", "HSA-26", examples=16)
def trim(draw: Any, call: Caller) -> None:
    """A trim b is refused if 2b is not below the number of cells with survivors: nothing would be left to average."""
    scene = replace(reals(draw), method="trimmed")
    fewest = min(len(row) for row in scene.rows())
    wrong = draw(among(((fewest + 1) // 2, fewest, -1)))
    why = f"trim is {wrong}, and a segment has {fewest} cells"
    _refused(call, scene, reject.BAD_PARAM | reject.MALFORMED, why, trim=wrong)


@check(f"{ROUND}/drop", "ADP-16", examples=16)
def drop(draw: Any, call: Caller) -> None:
    """A `drop` that names a user twice or a user outside the roster is refused."""
    scene = reals(draw)
    first, second = draw(among(ROUND_PHASES)), draw(among(ROUND_PHASES))
    outside = draw(among((scene.parameters.N, -1, 2**31 - 1)))
    twice = draw(st.booleans())
    named = {**scene.drop, first: [0, 0]} if first == second else {**scene.drop, first: [0], second: [0]}
    wrong = named if twice else {**scene.drop, first: [outside]}
    codes = reject.TWICE if twice else reject.OUTSIDE
    _refused(call, scene, codes, f"drop names {'a user twice' if twice else f'user {outside}'}", drop=wrong)


@check(f"{ROUND}/lengths", "MOD-07", examples=12)
def lengths(draw: Any, call: Caller) -> None:
    """Inputs are refused unless each of the N users has d numbers."""
    scene = reals(draw)
    rows = [pack_reals(row) for row in scene.x]
    wrong = draw(
        st.sampled_from(([*rows, rows[0]], rows[:-1], [rows[0][16:], *rows[1:]], [rows[0] + "0" * 16, *rows[1:]]))
    )
    _refused(call, scene, reject.LENGTH | reject.BAD_PARAM, "there are not d inputs of N users", x=wrong)


@check(f"{ROUND}/parameters", *(f"HSA-0{n}" for n in range(1, 6)), examples=24)
def parameters(draw: Any, call: Caller) -> None:
    """Parameters that the text forbids are refused."""
    scene = reals(draw)
    wrong: dict[str, dict[str, Any]] = heterosag_sessions.wrong_numbers(scene.parameters)
    for name in some(draw, wrong):
        _refused(call, scene, BAD_NUMBERS, f"there is {name}", **wrong[name])
