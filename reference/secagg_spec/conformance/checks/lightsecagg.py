"""Checks of LightSecAgg (spec/lightsecagg.md)."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.cases import requests, strategies
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, Change, Each, Params, check, equal, refuses, same, suits
from secagg_spec.conformance.sessions.choices import among

_MASK, _AGGREGATE = "lightsecagg.mask", "lightsecagg.aggregate_shares"
_RECOVER, _ROUND = "lightsecagg.recover", "lightsecagg.round"
_BROKEN = reject.BAD_PARAM | reject.LENGTH


@check("lightsecagg.mask/exact", "LSA-02")
def mask(draw: Any, call: Caller) -> None:
    """The masked update is the update plus the mask."""
    valid = requests.VALID[_MASK](draw, call.caps)
    update, drawn = (unpack(valid.params[name]).astype(np.uint64) for name in ("update", "mask"))
    want = PrimeField(valid.params["q"]).add(update, drawn)
    same("masked update", call.vector(_MASK, valid.params, "masked", update.size), want)


@refuses(_MASK, "length", "LSA-03", examples=8)
def mask_length(draw: Any, params: Params) -> Change:
    """An update whose length differs from the mask's is refused."""
    name = draw(Each(("update", "mask")))
    text = requests.one_of(draw, ("", params[name] + "00000000", params[name] * 2))
    return {name: text}, reject.LENGTH if text else reject.NO_ELEMENTS, f"{name} has the wrong length"


@refuses(_MASK, "elements", "LSA-03", examples=8)
def mask_elements(draw: Any, params: Params) -> Change:
    """An update or a mask with a number that is not below q is refused."""
    name, q = draw(Each(("update", "mask"))), params["q"]
    values = requests.too_large(draw, unpack(params[name]).astype(np.uint64), q)
    return {name: pack(values)}, reject.NONCANONICAL, f"{name} holds a number that is not below q"


@refuses(_MASK, "empty", "LSA-01", examples=5)
def mask_empty(draw: Any, params: Params) -> Change:
    """An empty update with an empty mask is refused."""
    return {"update": "", "mask": ""}, reject.NO_ELEMENTS, "d is 0"


@check("lightsecagg.aggregate_shares/exact", "LSA-08")
def aggregate(draw: Any, call: Caller) -> None:
    """The aggregated share is the sum of the shares of exactly the surviving set."""
    valid = requests.VALID[_AGGREGATE](draw, call.caps)
    held = {user: unpack(text).astype(np.uint64) for user, text in valid.params["held"]}
    want = PrimeField(valid.params["q"]).sum(np.stack([held[user] for user in valid.params["surviving"]]))
    same("aggregated share", call.vector(_AGGREGATE, valid.params, "share", want.size), want)


@refuses(_AGGREGATE, "small-set", "LSA-09", examples=25)
def small_set(draw: Any, params: Params) -> Change:
    """A user refuses a surviving set of fewer than T + 2 users."""
    T = params["T"]
    surviving = sorted(strategies.subset(draw, range(params["N"]), 0, T + 1))
    return {"surviving": surviving}, reject.TOO_FEW, f"{len(surviving)} contributors are fewer than T + 2 = {T + 2}"


@refuses(_AGGREGATE, "twice", "LSA-10")
def set_twice(draw: Any, params: Params) -> Change:
    """A surviving set that names a user twice is refused."""
    again = draw(among(params["surviving"]))
    surviving = requests.inserted(draw, strategies.shuffled(draw, params["surviving"]), again)
    return {"surviving": surviving}, reject.TWICE, "the set names a user twice"


@refuses(_AGGREGATE, "outside", "LSA-10", examples=5)
def set_outside(draw: Any, params: Params) -> Change:
    """A surviving set that names a user outside the roster is refused."""
    stranger = draw(Each((params["N"], -1, 2**31 - 1)))
    surviving = requests.inserted(draw, params["surviving"], stranger)
    return {"surviving": surviving}, reject.OUTSIDE, f"user {stranger} is not on the roster"


@refuses(_AGGREGATE, "not-held", "LSA-11")
def not_held(draw: Any, params: Params) -> Change:
    """A surviving set that names a user whose share was never received is refused."""
    missing = draw(among(params["surviving"]))
    held = [entry for entry in params["held"] if entry[0] != missing]
    return {"held": held}, reject.OUTSIDE, f"the share of user {missing} is not held"


@refuses(_AGGREGATE, "parameters", "LSA-01", examples=3)
def aggregate_parameters(draw: Any, params: Params) -> Change:
    """Parameters that break LSA-01 are refused, for those parameters that the operation has."""
    N, T, q = (params[name] for name in ("N", "T", "q"))
    options = ({"T": 0}, {"T": -1}, {"T": N - 1}, {"N": T + 1}, {"N": q} if q < 2**31 else {"T": N})
    changed = draw(Each(options))
    codes = reject.BAD_PARAM | reject.TOO_FEW | reject.OUTSIDE
    return changed, codes, f"{changed} breaks a constraint of LSA-01"


@refuses(_AGGREGATE, "empty", "LSA-01", examples=5)
def empty_shares(draw: Any, params: Params) -> Change:
    """Shares without elements are refused."""
    held = [[user, ""] for user, _ in params["held"]]
    return {"held": held}, reject.NO_ELEMENTS, "a share has at least one element"


@refuses(_AGGREGATE, "held", "ADP-16", examples=3)
def held_users(draw: Any, params: Params) -> Change:
    """Two shares of the same user are refused, and so is a share of a user outside the roster."""
    held, N = params["held"], params["N"]
    user = draw(Each((0, N - 1, N, 2**31 - 1, -1)))
    entry = [user, held[draw(st.integers(0, N - 1))][1]]
    changed = [entry, *held] if draw(st.booleans()) else [*held, entry]
    codes, what = (reject.TWICE, "twice") if 0 <= user < N else (reject.OUTSIDE, f"and N is {N}")
    return {"held": changed}, codes, f"held names user {user} {what}"


@check("lightsecagg.recover/exact", "LSA-13", applies=requests.vandermonde)
def recover(draw: Any, call: Caller) -> None:
    """Any U or more answers recover the sum of the updates."""
    numbers = strategies.session(draw, call.caps, _RECOVER)
    valid, want = requests.recovery(draw, numbers)
    same("aggregate", call.vector(_RECOVER, valid.params, "aggregate", numbers["d"]), want)


@check("lightsecagg.recover/too-few", "LSA-14", applies=requests.vandermonde, examples=25)
def recover_too_few(draw: Any, call: Caller) -> None:
    """Fewer than U answers end the round."""
    numbers = strategies.session(draw, call.caps, _RECOVER)
    answers = draw(st.integers(0, numbers["U"] - 1))
    valid, _ = requests.recovery(draw, numbers, answers)
    call.refused(_RECOVER, valid.params, reject.TOO_FEW, f"{answers} answers are fewer than U = {numbers['U']}")


@check("lightsecagg.recover/bad-share", "LSA-15", applies=suits(_RECOVER, spare=1, own_code=True), examples=25)
def recover_bad_share(draw: Any, call: Caller) -> None:
    """With more than U answers, an altered answer is detected."""
    numbers = strategies.session(draw, call.caps, _RECOVER, 1)
    valid, _ = requests.recovery(draw, numbers, draw(st.integers(numbers["U"] + 1, numbers["N"])))
    shares = list(valid.params["shares"])
    altered = requests.place_of(draw, shares)
    shares[altered] = pack(requests.exchanged_element(draw, unpack(shares[altered]).astype(np.uint64), numbers["q"]))
    call.refused(_RECOVER, {**valid.params, "shares": shares}, reject.BAD_SHARE, "one answer was altered")


@check("lightsecagg.recover/outsider", "LSA-16", applies=suits(_RECOVER, outsiders=1, own_code=True), examples=15)
def recover_outsider(draw: Any, call: Caller) -> None:
    """An answer from outside the surviving set is refused, whether it replaces another answer or is one too many."""
    numbers = strategies.session(draw, call.caps, _RECOVER, outsiders=1)
    valid, _ = requests.recovery(draw, numbers, outsiders=1)
    users, shares = valid.params["users"], valid.params["shares"]
    outsider = draw(among([u for u in range(numbers["N"]) if u not in valid.params["surviving"]]))
    place, kept = draw(st.integers(0, len(users) - 1)), draw(st.booleans())
    changed = {"users": [*users[:place], outsider, *users[place + (not kept) :]]}
    if kept:
        changed["shares"] = [*shares[:place], *shares[place : place + 1], *shares[place:]]
    why = f"user {outsider} is not in the surviving set"
    call.refused(_RECOVER, {**valid.params, **changed}, reject.OUTSIDE | reject.BAD_SHARE, why)


@check("lightsecagg.recover/few-contributors", "LSA-07", applies=requests.vandermonde, examples=15)
def few_contributors(draw: Any, call: Caller) -> None:
    """A surviving set of fewer than max(U, T + 2) users ends the round."""
    numbers = strategies.session(draw, call.caps, _RECOVER)
    valid, _ = requests.recovery(draw, numbers, numbers["U"])
    fewer = max(numbers["U"], numbers["T"] + 2) - 1
    users = valid.params["surviving"][:fewer]
    answered = [(u, s) for u, s in zip(valid.params["users"], valid.params["shares"], strict=True) if u in users]
    params = {
        **valid.params,
        "surviving": users,
        "masked": valid.params["masked"][:fewer],
        "users": [user for user, _ in answered],
        "shares": [share for _, share in answered],
    }
    call.refused(_RECOVER, params, reject.TOO_FEW, f"{len(users)} contributors are too few")


@check("lightsecagg.round/sum", "LSA-13", "LSA-06", "LSA-17")
def whole_round(draw: Any, call: Caller) -> None:
    """With enough survivors, the round gives the sum over exactly the users that uploaded."""
    _sum(draw, call, *_schedule(draw, call.caps, enough=True))


@check("lightsecagg.round/absent-user", "LSA-13", "LSA-06", "LSA-17", applies=suits(_ROUND, spare=1))
def absent_user(draw: Any, call: Caller) -> None:
    """If any one user is absent from some phase on, the round gives the sum of the users that uploaded."""
    numbers = strategies.session(draw, call.caps, _ROUND, 1)
    phase, user = draw(among(("share", "upload", "recover"))), draw(st.integers(0, numbers["N"] - 1))
    if numbers["N"] - 1 < numbers["T"] + 2:
        phase = "recover"
    _sum(draw, call, numbers, {"share": [], "upload": [], "recover": [], phase: [user]})


def everybody(draw: Any, call: Caller) -> None:
    """A round without dropouts gives the sum over all users."""
    _sum(draw, call, strategies.session(draw, call.caps, _ROUND), {"share": [], "upload": [], "recover": []})


def _sum(draw: Any, call: Caller, numbers: dict[str, int], drop: dict[str, list[int]]) -> None:
    valid, updates = requests.whole_round(draw, numbers, drop)
    result = call.result(_ROUND, valid.params, call.randomness(_ROUND, valid.rand))
    contributors = [user for user in range(numbers["N"]) if user not in drop["share"] + drop["upload"]]
    equal("contributors are", result.get("contributors"), contributors)
    got = call.read(_ROUND, result.get("aggregate"), "aggregate", numbers["d"], numbers["q"])
    same("aggregate", got, PrimeField(numbers["q"]).sum(updates[contributors]))


@check("lightsecagg.round/too-few", "LSA-17", "LSA-14", examples=40)
def round_too_few(draw: Any, call: Caller) -> None:
    """With too few survivors, the round fails with a rejection."""
    numbers, drop = _schedule(draw, call.caps, enough=False)
    valid, _ = requests.whole_round(draw, numbers, drop)
    answering = numbers["N"] - sum(len(users) for users in drop.values())
    why = f"{answering} users answer, U = {numbers['U']}, T = {numbers['T']}"
    call.refused(_ROUND, valid.params, reject.TOO_FEW, why, call.randomness(_ROUND, valid.rand))


@check("lightsecagg.round/parameters", "LSA-01", examples=12)
def round_parameters(draw: Any, call: Caller) -> None:
    """Parameters that break a constraint are refused, among them prime moduli that are not above N."""
    valid = requests.VALID[_ROUND](draw, call.caps)
    params = valid.params
    options: tuple[dict[str, int], ...] = (
        {"T": 0},
        {"T": params["U"]},
        {"U": params["N"] - params["D"] + 1},
        {"D": params["N"] - max(params["U"], params["T"] + 2) + 1},
        {"D": -1},
        {"d": 0},
        *({"q": q} for q in strategies.PRIMES if q <= params["N"]),
    )
    zeros = {**params, "updates": _zeros(params["updates"])}
    wrong = [
        ({**(zeros if "q" in changed else params), **changed}, _BROKEN, f"{changed} breaks a constraint of LSA-01")
        for changed in options
    ]
    sampled = {name: _zeros(texts) for name, texts in valid.rand.items()}
    call.each_refused(draw, _ROUND, wrong, call.randomness(_ROUND, sampled))


def _zeros(texts: list[str]) -> list[str]:
    return ["0" * len(text) for text in texts]


@refuses(_ROUND, "drop", "ADP-16", examples=3)
def round_drop(draw: Any, params: Params) -> Change:
    """Dropouts that name a user twice or a user outside the roster are refused."""
    N = params["N"]
    phases = draw(st.permutations(("share", "upload", "recover")))
    user = draw(Each((0, N - 1, N, 2**31 - 1, -1)))
    known = 0 <= user < N
    drop = {phases[0]: [user], phases[1]: [user] if known else [], phases[2]: []}
    if known and draw(st.booleans()):
        drop = {phases[0]: [user, user], phases[1]: [], phases[2]: []}
    needed = max(params["U"], params["T"] + 2)
    few = reject.TOO_FEW if needed == N else frozenset()
    codes, what = (reject.TWICE | few, "twice") if known else (reject.OUTSIDE, f"and N is {N}")
    return {"drop": drop}, codes, f"drop names user {user} {what}"


@refuses(_ROUND, "phases", "ADP-17", examples=2)
def round_phases(draw: Any, params: Params) -> Change:
    """Dropouts with an extra or a missing phase are malformed."""
    drop = dict(params["drop"])
    name = draw(Each(("share", "upload", "recover", "done", "Share", "")))
    if name in drop:
        del drop[name]
    else:
        drop[name] = []
    return {"drop": drop}, reject.MALFORMED, f"drop has the phases {sorted(drop)}"


@check("lightsecagg.round/elements", "LSA-03", examples=15)
def round_elements(draw: Any, call: Caller) -> None:
    """An update with a number that is not below q is refused."""
    valid = requests.VALID[_ROUND](draw, call.caps)
    updates = _altered(draw, valid)
    rand = call.randomness(_ROUND, valid.rand)
    why = "an update holds a number that is not below q"
    call.refused(_ROUND, {**valid.params, "updates": updates}, reject.NONCANONICAL, why, rand)


def _altered(draw: Any, valid: requests.Valid) -> list[str]:
    updates = list(valid.params["updates"])
    user = draw(st.integers(0, len(updates) - 1))
    values: UintArray = unpack(updates[user]).astype(np.uint64)
    updates[user] = pack(requests.too_large(draw, values, valid.params["q"]))
    return updates


def _schedule(draw: Any, caps: Capabilities, *, enough: bool) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Draw parameters and dropouts: as many dropouts as the round tolerates, or more."""
    numbers = strategies.session(draw, caps, _ROUND)
    N, needed = numbers["N"], max(numbers["U"], numbers["T"] + 2)
    users = strategies.shuffled(draw, range(N))
    kept = needed if enough else numbers["U"] - 1
    early = draw(st.integers(0, N - needed)) if enough else draw(st.integers(0, N - kept))
    left = N - early
    late = draw(st.integers(0, left - numbers["U"])) if enough else max(0, left - kept)
    gone_early, gone_late = sorted(users[:early]), sorted(users[early : early + late])
    split = draw(st.integers(0, early))
    shared, uploaded = gone_early[split:], gone_early[:split]
    return numbers, {"share": shared, "upload": uploaded, "recover": gone_late}
