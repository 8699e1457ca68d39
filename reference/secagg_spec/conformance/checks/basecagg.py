"""Checks of BASecAgg, one function at a time (spec/basecagg.md, sections 5 and 6)."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals, unpack
from secagg_spec.conformance.cases import basecagg_functions as scenes
from secagg_spec.conformance.cases import requests, strategies
from secagg_spec.conformance.cases.basecagg_functions import COMBINE, ENCODE, MASK, RECOVER, Levels
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail, same, suits
from secagg_spec.conformance.checks.quantizer import rounded
from secagg_spec.conformance.sessions.basecagg_buffers import Buffer, Recovery, half, weighted
from secagg_spec.conformance.sessions.choices import among

_CHAIN = ("mds.encode", COMBINE, RECOVER)


def _stochastic(caps: Capabilities) -> bool:
    return caps.policy("quantizer.rounding") == "stochastic" and caps.grade(ENCODE) == "explicit"


@check("basecagg.encode/exact", "BSA-36", applies=_stochastic)
def encode(draw: Any, call: Caller) -> None:
    """An update of real numbers is encoded as the quantiser does at level c_l with total weight K c_g."""
    chosen, x = _reals(draw, call)
    draws = strategies.rounding(draw, x.size)
    weight = chosen.K * chosen.c_g
    want = quantize(x, level=chosen.c_l, ring=Ring(chosen.q), weight=weight, rounding=draws)
    same("quantised update", _encoded(call, chosen, x, draws), want)


@check("basecagg.encode/neighbours", "BSA-36")
def neighbours(draw: Any, call: Caller) -> None:
    """Each element is one of the two integers next to c_l x, or by the policy the nearest or the lower."""
    chosen, x = _reals(draw, call)
    got = Ring(chosen.q).decode_signed(_encoded(call, chosen, x, strategies.rounding(draw, x.size)))
    for at, (value, y) in enumerate(zip(got.tolist(), (x * chosen.c_l).tolist(), strict=True)):
        allowed = {math.floor(y), math.ceil(y)} & rounded(call.caps, Fraction(y))
        if value not in allowed:
            fail(f"element {at}: {float(x[at])!r} times {chosen.c_l} was quantised to {value}", sorted(allowed))


@check("basecagg.encode/budget", "BSA-36", examples=40)
def encode_budget(draw: Any, call: Caller) -> None:
    """A number is refused if K c_g times its encoding would not fit."""
    chosen = scenes.levels(draw, call.caps, ENCODE)
    beyond = chosen.budget + draw(among((1, 2, chosen.budget + 1, chosen.q)))
    x = np.zeros(strategies.length(draw, 1, 3))
    x[draw(st.integers(0, x.size - 1))] = draw(among((1, -1))) * (beyond + 0.75) / chosen.c_l
    why = f"{beyond} is above the budget B = {chosen.budget}"
    _not_encoded(call, chosen, x, reject.NOT_FINITE, why)


@check("basecagg.encode/not-finite", "QNT-01", examples=10)
def not_finite(draw: Any, call: Caller) -> None:
    """NaN and infinities are refused."""
    chosen, x = scenes.levels(draw, call.caps, ENCODE), np.zeros(strategies.length(draw, 1, 3))
    x[draw(st.integers(0, x.size - 1))] = draw(among((math.nan, math.inf, -math.inf)))
    _not_encoded(call, chosen, x, reject.NOT_FINITE, "a number is not finite")


@check("basecagg.encode/draw", "QNT-09", "QNT-10", applies=_stochastic, examples=15)
def bad_draw(draw: Any, call: Caller) -> None:
    """A draw outside [0, 1), or one that is not a multiple of 2**-53, is refused."""
    valid = scenes.VALID[ENCODE](draw, call.caps)
    draws = unpack(valid.rand["rounding"], "<f8").copy()
    at, bad = (
        draw(st.integers(0, draws.size - 1)),
        draw(among((1.0, -(2.0**-53), 2.0, math.nan, 2.0**-54, 0.25 + 2.0**-54))),
    )
    draws[at] = bad
    call.refused(ENCODE, valid.params, reject.NOT_FINITE, f"draw {at} is {bad}", {"rounding": pack_reals(draws)})


@check("basecagg.encode/levels", "BSA-02", examples=30)
def encode_levels(draw: Any, call: Caller) -> None:
    """A level is refused if it is not positive or so large that not even an update of one unit fits."""
    chosen = scenes.levels(draw, call.caps, ENCODE)
    fine = {"c_l": draw(among((0, -1, -chosen.c_l, 2**32 + 1, 2**64 + chosen.c_l)))}
    changed = draw(among((fine, *_too_coarse(chosen))))
    x = np.zeros(strategies.length(draw, 1, 3))
    _not_encoded(call, chosen, x, reject.BAD_PARAM, f"{changed} breaks BSA-02", **changed)


def _too_coarse(chosen: Levels) -> tuple[dict[str, int], ...]:
    """Return changes of numbers that make K c_g too large."""
    most = half(chosen.q)
    levels = (0, -1, most // chosen.K + 1, 2**64 + chosen.c_g)
    return (*({"c_g": c_g} for c_g in levels), {"K": most // chosen.c_g + 1})


def _reals(draw: Any, call: Caller) -> tuple[Levels, RealArray]:
    """Draw real numbers whose two neighbours fit; if c_l is a power of 2, also the ends of the budget."""
    chosen = scenes.levels(draw, call.caps, ENCODE)
    B = chosen.budget
    grid = max(0, 4 * (B - 1))
    quarters = st.integers(-grid, grid)
    if chosen.c_l & (chosen.c_l - 1) == 0:
        quarters = quarters | st.sampled_from((4 * B, -4 * B))
    values = [draw(quarters) for _ in range(strategies.length(draw, 1))]
    return chosen, np.array(values, dtype=np.float64) / 4 / chosen.c_l


def _encoded(call: Caller, chosen: Levels, x: RealArray, draws: RealArray) -> UintArray:
    params = chosen.params("q", "K", "c_l", "c_g", x=pack_reals(x))
    return call.vector(ENCODE, params, "value", x.size, call.randomness(ENCODE, {"rounding": pack_reals(draws)}))


def _not_encoded(call: Caller, chosen: Levels, x: RealArray, codes: frozenset[str], why: str, **changed: Any) -> None:
    params = chosen.params("q", "K", "c_l", "c_g", **{"x": pack_reals(x), **changed})
    rand = call.randomness(ENCODE, {"rounding": pack_reals(np.zeros(x.size))})
    call.refused(ENCODE, params, codes, why, rand)


@check("basecagg.mask/exact", "BSA-04")
def mask(draw: Any, call: Caller) -> None:
    """The masked update is the update plus the mask, even for an update at the end of its budget."""
    chosen, update, drawn = scenes.masked(draw, call.caps)
    params = chosen.params("q", "K", "c_g", update=pack(update), mask=pack(drawn))
    want = PrimeField(chosen.q).add(update, drawn)
    same("masked update", call.vector(MASK, params, "masked", update.size), want)


@check("basecagg.mask/budget", "BSA-06", examples=40)
def mask_budget(draw: Any, call: Caller) -> None:
    """An update is refused if K c_g times one of its integers is beyond (q - 1) / 2."""
    chosen, update, drawn = scenes.masked(draw, call.caps)
    B, most = chosen.budget, half(chosen.q)
    value = draw(among((B + 1, -B - 1, most, -most)) | st.integers(B + 1, most))
    at = draw(st.integers(0, update.size - 1))
    update[at] = value + chosen.q if value < 0 else value
    why = f"|{value}| * {chosen.K} * {chosen.c_g} is above {most}, so that the budget is B = {B}"
    _not_masked(call, chosen, update, drawn, reject.NOT_FINITE, why)


@check("basecagg.mask/length", "BSA-05", examples=15)
def mask_length(draw: Any, call: Caller) -> None:
    """An update whose length differs from the mask's is refused."""
    chosen, update, drawn = scenes.masked(draw, call.caps)
    kept = draw(st.integers(0, update.size - 1))
    other = requests.one_of(draw, (update[:kept], np.append(update, np.uint64(0)), np.tile(update, 2)))
    why = f"the update has {other.size} elements, the mask {drawn.size}"
    _not_masked(call, chosen, other, drawn, reject.LENGTH, why)


@check("basecagg.mask/elements", "BSA-05", examples=15)
def mask_elements(draw: Any, call: Caller) -> None:
    """An update or a mask with a number that is not below q is refused."""
    chosen, update, drawn = scenes.masked(draw, call.caps)
    pair = {"update": update, "mask": drawn}
    name = draw(among(("update", "mask")))
    pair[name] = requests.too_large(draw, pair[name], chosen.q)
    why = f"{name} holds a number that is not below q"
    _not_masked(call, chosen, pair["update"], pair["mask"], reject.NONCANONICAL, why)


@check("basecagg.mask/empty", "BSA-01", examples=5)
def mask_empty(draw: Any, call: Caller) -> None:
    """An empty update with an empty mask is refused."""
    chosen, update, drawn = scenes.masked(draw, call.caps)
    _not_masked(call, chosen, update[:0], drawn[:0], reject.NO_ELEMENTS, "d is 0")


@check("basecagg.mask/levels", "BSA-02", examples=20)
def mask_levels(draw: Any, call: Caller) -> None:
    """A level is refused if it is not positive or so large that not even an update of one unit fits."""
    chosen, update, drawn = scenes.masked(draw, call.caps)
    changed = draw(among(_too_coarse(chosen)))
    _not_masked(call, chosen, update * np.uint64(0), drawn, reject.BAD_PARAM, f"{changed} breaks BSA-02", **changed)


def _not_masked(
    call: Caller, chosen: Levels, update: UintArray, drawn: UintArray, codes: frozenset[str], why: str, **changed: Any
) -> None:
    params = chosen.params("q", "K", "c_g", **{"update": pack(update), "mask": pack(drawn), **changed})
    call.refused(MASK, params, codes, why)


@check("basecagg.combine/exact", "BSA-27")
def combine(draw: Any, call: Caller) -> None:
    """A user's answer is the sum of the shares of exactly the buffer's entries, each times its weight."""
    buffer = scenes.offered(draw, call.caps)
    rows = np.stack([buffer.held[entry.user][1] for entry in buffer.entries])
    want = weighted(PrimeField(buffer.q), [entry.weight for entry in buffer.entries], rows)
    same("weighted share", call.vector(COMBINE, buffer.params(), "share", want.size), want)


@check("basecagg.combine/fewer", "BSA-21", examples=15)
def fewer(draw: Any, call: Caller) -> None:
    """A buffer with fewer than K entries is refused."""
    buffer = scenes.offered(draw, call.caps)
    kept = draw(st.integers(0, buffer.K - 1))
    why = f"the buffer has {kept} entries and K = {buffer.K}"
    _refused(call, replace(buffer, entries=buffer.entries[:kept]), reject.ANOTHER_COUNT, why)


@check("basecagg.combine/more", "BSA-21", applies=suits(COMBINE, outsiders=1), examples=15)
def more(draw: Any, call: Caller) -> None:
    """A buffer with more than K entries is refused."""
    buffer = scenes.offered(draw, call.caps, spare=1)
    first = buffer.entries[0]
    user = draw(among([u for u in range(buffer.N) if all(u != entry.user for entry in buffer.entries)]))
    entries = tuple(sorted((*buffer.entries, replace(first, user=user)), key=lambda entry: entry.user))
    held = {**buffer.held, user: (first.stamp, buffer.held[first.user][1])}
    why = f"the buffer has {len(entries)} entries and K = {buffer.K}"
    _refused(call, replace(buffer, entries=entries, held=held), reject.ANOTHER_COUNT, why)


@check("basecagg.combine/twice", "BSA-21", examples=15)
def twice(draw: Any, call: Caller) -> None:
    """A buffer that names a user twice is refused."""
    buffer = scenes.offered(draw, call.caps)
    at = draw(st.integers(1, buffer.K - 1))
    entries = (*buffer.entries[:at], buffer.entries[at - 1], *buffer.entries[at + 1 :])
    _refused(call, replace(buffer, entries=entries), reject.TWICE, f"the buffer names user {entries[at].user} twice")


@check("basecagg.combine/outside", "BSA-21", examples=15)
def outside(draw: Any, call: Caller) -> None:
    """A buffer that names a user outside the roster is refused."""
    buffer = scenes.offered(draw, call.caps)
    at, user = draw(among(((-1, buffer.N), (-1, 2**31 - 1), (0, -1))))
    entries = list(buffer.entries)
    entries[at] = replace(entries[at], user=user)
    why = f"user {user} is not in [0, {buffer.N})"
    _refused(call, replace(buffer, entries=tuple(entries)), reject.OUTSIDE, why)


@check("basecagg.combine/order", "BSA-21", examples=15)
def order(draw: Any, call: Caller) -> None:
    """A buffer whose users are not in ascending order is refused."""
    buffer = scenes.offered(draw, call.caps)
    at = draw(st.integers(1, buffer.K - 1))
    entries = list(buffer.entries)
    entries[at - 1 : at + 1] = entries[at], entries[at - 1]
    why = f"the users {[entry.user for entry in entries]} are not in ascending order"
    _refused(call, replace(buffer, entries=tuple(entries)), reject.NOT_ASCENDING, why)


@check("basecagg.combine/fields", "BSA-21", examples=3)
def fields(draw: Any, call: Caller) -> None:
    """A buffer that does not have one stamp and one weight for each user is refused."""
    buffer = scenes.offered(draw, call.caps)
    texts = {name: buffer.params()[name] for name in ("stamps", "weights")}
    wrong = [(name, changed) for name, text in texts.items() for changed in (text[:-8], text + text[-8:], "")]
    call.each_refused(
        draw,
        COMBINE,
        (
            (buffer.params(**{name: text}), reject.ANOTHER_COUNT, f"{len(text) // 8} {name} for {buffer.K} users")
            for name, text in wrong
        ),
    )


@check("basecagg.combine/future", "BSA-22", examples=15)
def future(draw: Any, call: Caller) -> None:
    """A buffer with a stamp later than its round is refused, even if the share is held under that stamp."""
    ahead = draw(among((1, 2, 2**31)))
    buffer = scenes.offered(draw, call.caps, ahead=ahead)
    at, stamp = draw(st.integers(0, buffer.K - 1)), buffer.round + ahead
    changed = buffer.with_entry(at, stamp=stamp, weight=buffer.c_g)
    _refused(call, changed, reject.WRONG_BUFFER, f"the stamp {stamp} is later than the round {buffer.round}")


@check("basecagg.combine/too-stale", "BSA-22", examples=15)
def too_stale(draw: Any, call: Caller) -> None:
    """A buffer with an update older than tau_max is refused, even if the share is held and the weight is right."""
    late = draw(among((1, 2, 1000)))
    buffer = scenes.offered(draw, call.caps, late=late)
    at, tau = draw(st.integers(0, buffer.K - 1)), buffer.tau_max + late
    changed = buffer.with_entry(at, stamp=buffer.round - tau, weight=buffer.allowed(tau)[-1])
    _refused(call, changed, reject.WRONG_BUFFER, f"the staleness {tau} is above tau_max = {buffer.tau_max}")


@check("basecagg.combine/weight", "BSA-23", examples=40)
def weight(draw: Any, call: Caller) -> None:
    """A buffer is refused if a weight is not one that its staleness can have."""
    buffer = scenes.offered(draw, call.caps)
    at = draw(st.integers(0, buffer.K - 1))
    entry = buffer.entries[at]
    tau = buffer.round - entry.stamp
    allowed = buffer.allowed(tau)
    others = [allowed[0] - 1, allowed[-1] + 1, buffer.c_g, buffer.c_g + 1, buffer.q, scenes.LAST_ROUND]
    wrong = draw(among([other for other in others if other > 0 and other not in allowed]))
    weights = " or ".join(map(str, allowed))
    why = f"an update with staleness {tau} weighs {weights} at c_g = {buffer.c_g}, and not {wrong}"
    _refused(call, buffer.with_entry(at, weight=wrong), reject.WRONG_BUFFER, why)


@check("basecagg.combine/zero-weights", "BSA-24", "BSA-23", examples=25)
def zero_weights(draw: Any, call: Caller) -> None:
    """A buffer of K entries is refused if at most T + 1 of them have a nonzero weight."""
    buffer = scenes.offered(draw, call.caps)
    kept = strategies.subset(draw, range(buffer.K), 0, buffer.T + 1)
    for at in range(buffer.K):
        buffer = buffer if at in kept else buffer.with_entry(at, weight=0)
    why = f"{len(kept)} entries have a weight other than 0, and T + 2 = {buffer.T + 2}"
    _refused(call, buffer, reject.TOO_FEW | reject.WRONG_BUFFER, why)


@check("basecagg.combine/not-held", "BSA-25", examples=15)
def not_held(draw: Any, call: Caller) -> None:
    """A buffer is refused if the share of one of its entries is not held."""
    buffer = scenes.offered(draw, call.caps)
    missing = buffer.entries[draw(st.integers(0, buffer.K - 1))].user
    held = {user: share for user, share in buffer.held.items() if user != missing}
    _refused(call, replace(buffer, held=held), reject.OUTSIDE, f"the share of user {missing} is not held")


@check("basecagg.combine/other-stamp", "BSA-25", examples=15)
def other_stamp(draw: Any, call: Caller) -> None:
    """A buffer is refused if the share of one of its entries is held under another stamp."""
    buffer = scenes.offered(draw, call.caps)
    entry = buffer.entries[draw(st.integers(0, buffer.K - 1))]
    near = [entry.stamp - 1, entry.stamp + 1, buffer.round, 0]
    stamp = draw(among([s for s in near if 0 <= s <= scenes.LAST_ROUND and s != entry.stamp]))
    held = {**buffer.held, entry.user: (stamp, buffer.held[entry.user][1])}
    why = f"the share of user {entry.user} is held under the stamp {stamp}, and the buffer says {entry.stamp}"
    _refused(call, replace(buffer, held=held), reject.OUTSIDE, why)


@check("basecagg.combine/parameters", "BSA-01", examples=4)
def combine_parameters(draw: Any, call: Caller) -> None:
    """Parameters that break BSA-01 are refused, for those parameters that the operation has."""
    buffer = scenes.offered(draw, call.caps)
    large = {"N": buffer.q} if buffer.q < 2**31 else {"T": buffer.K}
    options = ({"T": 0}, {"T": -1}, {"T": buffer.K - 1}, {"N": buffer.K - 1}, {"tau_max": -1}, large)
    codes = reject.BAD_PARAM | reject.TOO_FEW | reject.OUTSIDE
    wrong = ((buffer.params(**changed), codes, f"{changed} breaks a constraint of BSA-01") for changed in options)
    call.each_refused(draw, COMBINE, wrong)


@check("basecagg.combine/levels", "BSA-02", examples=25)
def combine_levels(draw: Any, call: Caller) -> None:
    """A level is refused if the oldest update could have weight 0, or if no update fits."""
    buffer = scenes.offered(draw, call.caps)
    most = half(buffer.q) // buffer.K
    least = scenes.least_level(buffer.function, buffer.tau_max, most)
    c_g = draw(among([c for c in (0, -1, least - 1, most + 1, 2**32 + 1) if c < least or c > most]))
    changed = buffer.with_level(c_g) if 1 <= c_g <= 2**32 else buffer
    why = f"c_g = {c_g}, and for q = {buffer.q}, K = {buffer.K} and tau_max = {buffer.tau_max} it is {least} to {most}"
    codes = reject.BAD_PARAM if changed is not buffer else reject.BAD_PARAM | reject.WRONG_BUFFER
    call.refused(COMBINE, changed.params(c_g=str(c_g)), codes, why)


@check("basecagg.combine/function", "STL-01", "STL-02", "STL-03", examples=15)
def combine_function(draw: Any, call: Caller) -> None:
    """Parameters that do not describe a staleness function are refused."""
    buffer = scenes.offered(draw, call.caps)
    plain = {"numerator": 0, "denominator": 1, "start": "0"}
    options = (
        {"kind": "constant", **plain, "numerator": 1},
        {"kind": "polynomial", **plain, "start": "3"},
        {"kind": "exponential", **plain},
        {"kind": "polynomial", **plain, "numerator": 2, "denominator": 4},
        {"kind": "hinge", **plain, "denominator": 0},
        {"kind": "hinge", **plain, "numerator": 1, "start": "-1"},
        {"kind": "hinge", **plain, "numerator": 1, "start": str(2**32)},
    )
    changed = options[draw(st.integers(0, len(options) - 1))]
    call.refused(COMBINE, buffer.params(**changed), reject.BAD_PARAM, f"{changed} is no staleness function")


@check("basecagg.combine/held", "ADP-16", examples=15)
def held_users(draw: Any, call: Caller) -> None:
    """Two shares of the same user are refused, and so is a share of a user outside the roster."""
    buffer = scenes.offered(draw, call.caps)
    held = buffer.params()["held"]
    entry = held[draw(st.integers(0, len(held) - 1))]
    user = draw(among((entry[0], buffer.N, 2**31 - 1, -1)))
    stamp = draw(among((entry[1], "0")))
    changed = requests.inserted(draw, held, [user, stamp, entry[2]])
    codes, what = (reject.TWICE, "twice") if user == entry[0] else (reject.OUTSIDE, f"and N is {buffer.N}")
    call.refused(COMBINE, buffer.params(held=changed), codes, f"held names user {user} {what}")


@check("basecagg.combine/empty", "BSA-01", examples=5)
def empty_shares(draw: Any, call: Caller) -> None:
    """Shares without elements are refused."""
    buffer = scenes.offered(draw, call.caps)
    held = {user: (stamp, share[:0]) for user, (stamp, share) in buffer.held.items()}
    _refused(call, replace(buffer, held=held), reject.NO_ELEMENTS, "a share has at least one element")


def _refused(call: Caller, buffer: Buffer, codes: frozenset[str], why: str) -> None:
    call.refused(COMBINE, buffer.params(), codes, why)


@check("basecagg.recover/exact", "BSA-29", "BSA-33", applies=requests.vandermonde)
def recover(draw: Any, call: Caller) -> None:
    """Any U or more answers recover the weighted sum and the average."""
    _recovered(call, scenes.recovery(draw, strategies.session(draw, call.caps, RECOVER)))


@check("basecagg/own-shares", "BSA-27", "BSA-29", "BSA-33", operations=_CHAIN, applies=suits(*_CHAIN))
def own_shares(draw: Any, call: Caller) -> None:
    """Shares of the adapter's own code, each times its weight, recover the weighted sum of the updates."""
    numbers = strategies.session(draw, call.caps, _CHAIN)
    buffer = scenes.buffer(draw, numbers)
    q, d, field = numbers["q"], numbers["d"], PrimeField(numbers["q"])
    updates, masks = strategies.matrix(draw, q, buffer.K, d), strategies.matrix(draw, q, buffer.K, d)
    noises = [strategies.vector(draw, q, numbers["T"] * requests.shares_length(numbers, d)) for _ in masks]
    users = strategies.subset(draw, range(numbers["N"]), numbers["U"])
    factors = [entry.weight for entry in buffer.entries]
    c_l = scenes.level(draw, sum(factors))
    shared = [_own_shares(call, numbers, mask, noise) for mask, noise in zip(masks, noises, strict=True)]
    answers = np.zeros((numbers["N"], requests.shares_length(numbers, d)), dtype=np.uint64)
    for user in users:
        held = {e.user: (e.stamp, rows[user]) for e, rows in zip(buffer.entries, shared, strict=True)}
        answers[user] = call.vector(COMBINE, replace(buffer, held=held).params(), "share", answers.shape[1])
    total = weighted(field, factors, updates)
    _recovered(call, Recovery(numbers, c_l, factors, field.add(updates, masks), users, answers, total))


def _own_shares(call: Caller, numbers: dict[str, int], mask: UintArray, noise: UintArray) -> list[UintArray]:
    """Return the shares of a mask as the adapter encodes it."""
    params = {**{name: numbers[name] for name in ("q", "N", "U", "T")}, "mask": pack(mask)}
    rand = call.randomness("mds.encode", {"noise": pack(noise)})
    texts = call.listed("mds.encode", params, "shares", numbers["N"], rand)
    length = requests.shares_length(numbers, mask.size)
    return [call.read("mds.encode", text, "shares", length, numbers["q"]) for text in texts]


def _recovered(call: Caller, chosen: Recovery) -> None:
    field, d = PrimeField(chosen.numbers["q"]), chosen.numbers["d"]
    demand_average(call, RECOVER, chosen.params(), field, d, chosen.sum, chosen.c_l * sum(chosen.weights))


def demand_average(
    call: Caller, op: str, params: Mapping[str, Any], ring: Ring, d: int, want: UintArray, divisor: int
) -> None:
    """Demand the sum and the average of a recovery. A policy decides the sign of the middle element."""
    result = call.result(op, params)
    same("weighted sum", call.read(op, result.get("sum"), "sum", d, ring.modulus), want)
    got = call.unpacked(op, result.get("average"), "average", "<f8")
    if got.size != d:
        raise CheckFailed("wrong_value", f"{op}: average has {got.size} numbers; it must have {d}")
    signed = ring.decode_signed(want)
    if call.caps.policy("quantizer.middle") == "negative":
        got, signed = got[want != half(ring.modulus)], signed[want != half(ring.modulus)]
    same(f"average, of {signed.tolist()} over {divisor}", got, signed / np.float64(divisor))


@check("basecagg.recover/too-few", "BSA-30", applies=requests.vandermonde, examples=25)
def recover_too_few(draw: Any, call: Caller) -> None:
    """A recovery with fewer than U answers is refused."""
    numbers = strategies.session(draw, call.caps, RECOVER)
    answers = draw(st.integers(0, numbers["U"] - 1))
    chosen = scenes.recovery(draw, numbers, answers)
    call.refused(RECOVER, chosen.params(), reject.TOO_FEW, f"{answers} answers are fewer than U = {numbers['U']}")


@check("basecagg.recover/bad-share", "BSA-31", applies=suits(RECOVER, spare=1, own_code=True), examples=25)
def recover_bad_share(draw: Any, call: Caller) -> None:
    """With more than U answers, an altered answer is detected."""
    numbers = strategies.session(draw, call.caps, RECOVER, 1)
    chosen = scenes.recovery(draw, numbers, draw(st.integers(numbers["U"] + 1, numbers["N"])))
    user = chosen.users[requests.place_of(draw, chosen.users)]
    chosen.shares[user] = requests.exchanged_element(draw, chosen.shares[user], numbers["q"])
    call.refused(RECOVER, chosen.params(), reject.BAD_SHARE, f"the answer of user {user} was altered")


@check("basecagg.recover/no-weight", "BSA-32", applies=requests.vandermonde, examples=10)
def no_weight(draw: Any, call: Caller) -> None:
    """Weights whose sum is 0 are refused."""
    numbers = strategies.session(draw, call.caps, RECOVER)
    chosen = scenes.recovery(draw, numbers, chosen=[0] * draw(st.integers(1, 6)))
    call.refused(RECOVER, chosen.params(), reject.BAD_PARAM, "all weights are 0")


@check("basecagg.recover/twice", "MDS-08", applies=requests.vandermonde, examples=15)
def recover_twice(draw: Any, call: Caller) -> None:
    """A list of answers that names a user twice is refused."""
    numbers = strategies.session(draw, call.caps, RECOVER)
    chosen = scenes.recovery(draw, numbers, numbers["U"] - 1)
    again = draw(among(chosen.users))
    users = requests.inserted(draw, chosen.users, again)
    call.refused(RECOVER, replace(chosen, users=users).params(), reject.TWICE, f"user {again} appears twice")


@check("basecagg.recover/outside", "MDS-08", applies=requests.vandermonde, examples=15)
def recover_outside(draw: Any, call: Caller) -> None:
    """An answer from a user outside the roster is refused."""
    chosen = scenes.recovery(draw, strategies.session(draw, call.caps, RECOVER))
    users = list(chosen.users)
    stranger = draw(among((chosen.numbers["N"], 2**31 - 1, -1)))
    users[draw(st.integers(0, len(users) - 1))] = stranger
    call.refused(RECOVER, chosen.params(users=users), reject.OUTSIDE, f"user {stranger} is not on the roster")


@check("basecagg.recover/parameters", "BSA-01", applies=requests.vandermonde, examples=4)
def recover_parameters(draw: Any, call: Caller) -> None:
    """Parameters that break BSA-01 are refused, for those parameters that the operation has."""
    chosen = scenes.recovery(draw, strategies.session(draw, call.caps, RECOVER))
    N, U, q = (chosen.numbers[name] for name in ("N", "U", "q"))
    large = {"N": q} if q < 2**31 else {"T": -1}
    options = ({"T": 0}, {"T": U}, {"U": N + 1}, {"N": U - 1}, {"d": 0}, large)
    codes = reject.BAD_PARAM | reject.LENGTH | reject.TOO_FEW | reject.OUTSIDE
    wrong = ((chosen.params(**changed), codes, f"{changed} breaks a constraint of BSA-01") for changed in options)
    call.each_refused(draw, RECOVER, wrong)


@check("basecagg.recover/level", "BSA-02", applies=requests.vandermonde, examples=10)
def recover_level(draw: Any, call: Caller) -> None:
    """A level c_l that is not positive is refused."""
    chosen = scenes.recovery(draw, strategies.session(draw, call.caps, RECOVER))
    c_l = draw(among((0, -1, -chosen.c_l)))
    call.refused(RECOVER, chosen.params(c_l=str(c_l)), reject.BAD_PARAM, f"c_l is {c_l}")
