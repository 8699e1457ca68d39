"""Checks of a round of SecAgg over reals, ``secagg.average`` (spec/adapter.md, section 4; spec/secagg.md)."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import neighbours
from secagg_spec.conformance.cases.neighbour_rounds import EARLY, LATE, Average, altered, average, dropping
from secagg_spec.conformance.cases.neighbours import AVERAGE, RECOVERY, SUM, UNMASKING, Scale
from secagg_spec.conformance.cases.requests import place_of
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, Change, Params, check, equal, fail, refuses
from secagg_spec.conformance.sdk.secagg_adapter import ROUND_PHASES
from secagg_spec.conformance.sessions.choices import among

_FORBIDDEN = reject.BAD_PARAM | reject.TOO_FEW | reject.LENGTH


def _spares(caps: Capabilities) -> bool:
    return bool(neighbours.rosters(caps, AVERAGE, 1))


@check("secagg.average/mean", "ADP-30", "SAG-29", "SAG-12", examples=25)
def mean(draw: Any, call: Caller) -> None:
    """A round without dropouts gives the weighted average over all users."""
    _judge(call, average(draw, call.caps))


@check("secagg.average/light-weights", "ADP-30", examples=20)
def light(draw: Any, call: Caller) -> None:
    """When all weights are 1, the average is as exact as the quantiser allows, however large `max_weight` is."""
    roster = neighbours.roster(draw, call.caps, AVERAGE)
    scales = neighbours.scales(call.caps, roster.N)
    coarse = [scale for scale in scales if scale.max_weight > 2 * scale.clip * scale.level]
    scene = average(draw, call.caps, roster, neighbours.one_of(draw, coarse or scales))
    _judge(call, replace(scene, weights=(1,) * roster.N))


@check("secagg.average/late-dropouts", "SAG-29", "SAG-30", applies=_spares, examples=25)
def late(draw: Any, call: Caller) -> None:
    """A round completes when users drop out before their masked input or their answer and enough others are left."""
    _judge(call, _with_dropouts(draw, call.caps, LATE))


@check("secagg.average/advertise-dropouts", "SAG-30", "SAG-05", applies=_spares, examples=25)
def advertise(draw: Any, call: Caller) -> None:
    """A round completes when users drop out before they advertise keys and enough others are left."""
    _judge(call, _with_dropouts(draw, call.caps, EARLY[:1]))


@check("secagg.average/share-dropouts", "SAG-30", "SAG-11", applies=_spares, examples=25)
def share(draw: Any, call: Caller) -> None:
    """A round completes when users drop out before they share their secrets and enough others are left."""
    _judge(call, _with_dropouts(draw, call.caps, EARLY[1:]))


def _with_dropouts(draw: Any, caps: Capabilities, phases: tuple[str, ...]) -> Average:
    scene = average(draw, caps, neighbours.roster(draw, caps, AVERAGE, 1))
    return dropping(draw, scene, draw(st.integers(1, scene.roster.spare)), phases)


def _judge(call: Caller, scene: Average) -> None:
    """Ask for a round that must succeed, and compare its result with the exact average."""
    call.by_relation = True
    _compare(call, scene, call.result(AVERAGE, scene.params(), call.randomness(AVERAGE, scene.rand())))


def _compare(call: Caller, scene: Average, result: Any) -> None:
    equal("contributors are", result.get("contributors"), scene.contributors)
    numbers = call.unpacked(AVERAGE, result.get("average"), "average", "<f8").tolist()
    if len(numbers) != scene.x.shape[1]:
        fail(f"the average has {len(numbers)} elements; it must have {scene.x.shape[1]}")
    bound = scene.bound(neighbours.exact_weights(call.caps))
    for at, number in enumerate(numbers):
        if not math.isfinite(number) or abs(Fraction(number) - scene.mean(at)) > bound:
            exact = float(scene.mean(at))
            off = f"it must be {exact!r}, give or take {float(bound):.3g}"
            fail(f"element {at} of the average is {number!r}; {off}", exact)


@check("secagg.average/too-few", "SAG-18", "SAG-27", "SAG-30", examples=25)
def too_few(draw: Any, call: Caller) -> None:
    """A round that loses so many users in one phase that fewer than t are left fails with a rejection."""
    scene = average(draw, call.caps)
    left = draw(st.integers(0, scene.roster.t - 1))
    scene = dropping(draw, scene, scene.roster.N - left, (draw(among(ROUND_PHASES)),))
    _refused(call, scene, reject.TOO_FEW, f"{left} users are left and t = {scene.roster.t} are needed")


@check("secagg.average/too-few-at-last", "SAG-27", "SAG-30", applies=_spares, examples=20)
def too_few_at_last(draw: Any, call: Caller) -> None:
    """A round that survived early dropouts fails with a rejection if fewer than t users answer."""
    scene = average(draw, call.caps, neighbours.roster(draw, call.caps, AVERAGE, 1))
    N, t = scene.roster.N, scene.roster.t
    users = draw(st.permutations(range(N)))
    early, left = draw(st.integers(1, scene.roster.spare)), draw(st.integers(0, t - 1))
    dropouts = {draw(among(EARLY)): sorted(users[:early]), "unmasking": sorted(users[early : N - left])}
    why = f"{left} users answer and t = {t} are needed"
    _refused(call, replace(scene, drop={**scene.drop, **dropouts}), reject.TOO_FEW, why)


@check("secagg.average/out-of-range", "ADP-31", "ERR-02", examples=20)
def out_of_range(draw: Any, call: Caller) -> None:
    """An input beyond `clip` is refused, not clipped."""
    scene = average(draw, call.caps)
    beyond = draw(among((1.5, 2.0, 10.0, 1.0 + 2.0**-20))) * scene.scale.clip
    _refused_input(draw, call, scene, draw(among((beyond, -beyond))))


@check("secagg.average/not-finite", "QNT-01", "ADP-31", examples=15)
def not_finite(draw: Any, call: Caller) -> None:
    """NaN and infinities are refused."""
    scene = average(draw, call.caps)
    _refused_input(draw, call, scene, draw(among((math.nan, math.inf, -math.inf))))


def _refused_input(draw: Any, call: Caller, scene: Average, value: float) -> None:
    x = scene.x.copy()
    user, at = (draw(st.integers(0, size - 1)) for size in x.shape)
    x[user, at] = value
    why = f"element {at} of user {user} is {value!r}, and clip is {scene.scale.clip}"
    _refused(call, replace(scene, x=x), reject.NOT_FINITE | reject.BAD_PARAM, why)


def _wrapping(caps: Capabilities, N: int) -> list[Scale]:
    """Return declared scales that can wrap with N users, preferring those that cannot wrap with one."""
    scales = neighbours.scales(caps, N, fitting=False)
    return [scale for scale in scales if scale.fits(1, neighbours.exact_weights(caps))] or scales


def _overflows(caps: Capabilities) -> bool:
    return any(_wrapping(caps, roster.N) for roster in neighbours.rosters(caps, AVERAGE))


@check("secagg.average/wrap", "QNT-04", "ERR-02", applies=_overflows, examples=25)
def wrap(draw: Any, call: Caller) -> None:
    """If the sum of the inputs could wrap, the round is refused or its average is still right."""
    known = neighbours.rosters(call.caps, AVERAGE)
    roster = neighbours.one_of(draw, [roster for roster in known if _wrapping(call.caps, roster.N)])
    scale = neighbours.one_of(draw, _wrapping(call.caps, roster.N))
    scene = average(draw, call.caps, roster, scale)
    x = scene.x.copy()
    x[:, 0] = draw(among((1, -1))) * scale.clip
    scene = replace(scene, x=x, weights=(scale.max_weight,) * roster.N)
    params, rand = scene.params(), call.randomness(AVERAGE, scene.rand())
    why = f"{roster.N} times {scale} is beyond (R - 1) / 2"
    result = call.unless_refused(AVERAGE, params, reject.NOT_FINITE | reject.BAD_PARAM, why, rand)
    if result is not None:
        _compare(call, scene, result)


@check("secagg.average/weights", "ADP-32", examples=20)
def bad_weight(draw: Any, call: Caller) -> None:
    """A weight that is not positive or is above `max_weight` is refused."""
    scene = average(draw, call.caps)
    weights, most = list(scene.weights), scene.scale.max_weight
    at, wrong = place_of(draw, weights), draw(among((most + 1, 2 * most + 5, 0, -1)))
    weights[at] = wrong
    why = f"the weight of user {at} is {wrong}, and max_weight is {most}"
    _refused(call, replace(scene, weights=tuple(weights)), reject.NOT_FINITE | reject.BAD_PARAM, why)


def _scale(check_name: str, clause: str, member: str, wrong: tuple[int, ...]) -> None:
    @check(f"secagg.average/{check_name}", clause, operations=(AVERAGE,), examples=16)
    def bad_scale(draw: Any, call: Caller) -> None:
        """A level, `clip` or `max_weight` that is not positive is refused. A modulus outside SAG-01 is refused."""
        scene = average(draw, call.caps)
        scene = replace(scene, x=np.zeros_like(scene.x))
        params = scene.params(**{member: draw(among(wrong))})
        rand = call.randomness(AVERAGE, scene.rand())
        call.refused(AVERAGE, params, reject.BAD_PARAM, f"{member} is {params[member]}", rand)


_scale("level", "QNT-08", "level", (0, -1))
_scale("clip", "ADP-33", "clip", (0, -1))
_scale("max-weight", "ADP-33", "max_weight", (0, -1))
_scale("modulus", "SAG-01", "R", (0, -1, 1, 2**32 + 1))


@check("secagg.average/lengths", "SAG-14", examples=20)
def bad_lengths(draw: Any, call: Caller) -> None:
    """Inputs of different lengths are refused, and so are other numbers of inputs or weights than N."""
    scene = average(draw, call.caps)
    rows, weights = [pack_reals(row) for row in scene.x], list(scene.weights)
    at = place_of(draw, rows)
    changed: dict[str, Any] = draw(
        st.sampled_from(
            (
                {"x": [*rows[:at], rows[at] + "00" * 8, *rows[at + 1 :]]},
                {"x": rows[:-1]},
                {"x": [*rows, rows[at]]},
                {"x": [""] * len(rows)},
                {"weights": weights[:-1]},
                {"weights": [*weights, weights[at]]},
            )
        )
    )
    rand = scene.rand()
    if "x" in changed:
        rand = {"rounding": ["00" * (len(row) // 2) for row in changed["x"]]}
    why = f"{sorted(changed)[0]} has another length than the text demands"
    call.refused(
        AVERAGE, scene.params(**changed), reject.LENGTH | reject.BAD_PARAM, why, call.randomness(AVERAGE, rand)
    )


def _refused(call: Caller, scene: Average, codes: frozenset[str], why: str) -> None:
    call.refused(AVERAGE, scene.params(), codes, why, call.randomness(AVERAGE, scene.rand()))


@check("secagg.recovery/altered-share", "SAG-28", examples=25)
def altered_share(draw: Any, call: Caller) -> None:
    """If one share is altered on its way to the server, the round fails with `bad_share` or its average is right."""
    scene, share = altered(draw, call.caps)
    rand = call.randomness(RECOVERY, scene.rand())
    call.by_relation = True
    why = f"the share of the {share['kind']} of user {share['owner']} that user {share['user']} sent was altered"
    result = call.unless_refused(RECOVERY, scene.params(**share), reject.BAD_SHARE, why, rand)
    if result is not None:
        _compare(call, scene, result)


def _threshold(operation: str) -> None:
    @refuses(operation, "threshold", "SAG-02", examples=20)
    def threshold(draw: Any, params: Params) -> Change:
        """A threshold outside SAG-02 is refused."""
        k, complete = params["k"], params["k"] == params["N"] - 1
        wrong = draw(among((0, 1, -1, k + 2, *((2,) if complete else ()))))
        return {"t": wrong}, _FORBIDDEN, f"t = {wrong} with k = {k}"


def _degree(operation: str) -> None:
    @refuses(operation, "degree", "SAG-01", examples=20)
    def degree(draw: Any, params: Params) -> Change:
        """A number of neighbours for which no graph exists is refused."""
        N = params["N"]
        odd = [k for k in range(3, N - 1) if k * N % 2]
        wrong = draw(among((0, 1, -1, N, N + 5, *odd[:1])))
        changed = {"k": wrong, "t": min(params["t"], max(wrong + 1, 2))}
        return changed, _FORBIDDEN, f"k = {wrong} with N = {N}"


def _drop(operation: str) -> None:
    @refuses(operation, "drop", "ADP-16")
    def drop(draw: Any, params: Params) -> Change:
        """Dropouts that name a user twice or a user outside the roster are refused."""
        N, phases = params["N"], draw(st.permutations(sorted(params["drop"])))
        user = draw(among((N, 2**31 - 1, -1, 0, N - 1)))
        known = 0 <= user < N
        wrong = {phase: [] for phase in phases} | {phases[0]: [user], phases[1]: [user] if known else []}
        codes = reject.TWICE | reject.TOO_FEW | reject.OUTSIDE if known else reject.OUTSIDE
        what = "twice" if known else f"and N is {N}"
        return {"drop": wrong}, codes, f"drop names user {user} {what}"


def _phases(operation: str) -> None:
    @refuses(operation, "phases", "ADP-17", examples=10)
    def phases(draw: Any, params: Params) -> Change:
        """Dropouts with an extra or a missing phase are malformed."""
        wrong = dict(params["drop"])
        name = draw(among((*sorted(wrong), "done", "share", "")))
        if name in wrong:
            del wrong[name]
        else:
            wrong[name] = []
        return {"drop": wrong}, reject.MALFORMED, f"drop has the phases {sorted(wrong)}"


for _name in (AVERAGE, UNMASKING):
    _threshold(_name)
    _degree(_name)
for _name in (AVERAGE, UNMASKING, SUM):
    _drop(_name)
    _phases(_name)
