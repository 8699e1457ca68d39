"""Checks of the code that shares a mask (spec/conventions.md, section 3)."""

from functools import partial
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.arithmetic.wide import field as field_of
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import requests, strategies
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, Change, Each, Params, check, refuses, same, suits
from secagg_spec.conformance.sessions.choices import among

_BOTH = ("mds.encode", "mds.decode")


def _exact(caps: Capabilities) -> bool:
    return requests.vandermonde(caps) and caps.grade("mds.encode") == "explicit"


@check("mds.encode/exact", "MDS-03", "MDS-04", wide=True, applies=_exact)
def encode_exact(draw: Any, call: Caller) -> None:
    """Each share is the sum of the rows, weighted by the powers of its user's point."""
    code, d = strategies.code(draw, call.caps, "mds.encode"), strategies.length(draw, 1)
    mask = strategies.vector(draw, code["q"], d)
    noise = strategies.matrix(draw, code["q"], code["T"], requests.shares_length(code, d))
    got = _shares(call, code, mask, {"noise": pack(noise.reshape(-1), code["q"])})
    for user, want in enumerate(requests.encode(code, mask, noise)):
        same(f"share of user {user}", got[user], want)


_chained = partial(check, operations=_BOTH, wide=True, applies=suits(*_BOTH))
"""Registers a check of shares that the adapter encodes itself."""


@_chained("mds/any-shares", "MDS-05")
def any_shares(draw: Any, call: Caller) -> None:
    """Any U or more shares decode to the vector."""
    code, d = strategies.code(draw, call.caps, _BOTH), strategies.length(draw, 1)
    mask, rand = strategies.vector(draw, code["q"], d), _noise(draw, code, d)
    users = strategies.subset(draw, range(code["N"]), code["U"])
    shares = _shares(call, code, mask, rand)
    same("decoded vector", _decode(call, code, d, users, [shares[user] for user in users]), mask)


@check("mds.decode/exact", "MDS-05", wide=True, applies=requests.vandermonde)
def decode_exact(draw: Any, call: Caller) -> None:
    """The decoder decodes shares of the text's own code."""
    code, d = strategies.code(draw, call.caps, "mds.decode"), strategies.length(draw, 1)
    mask = strategies.vector(draw, code["q"], d)
    noise = strategies.matrix(draw, code["q"], code["T"], requests.shares_length(code, d))
    users = strategies.subset(draw, range(code["N"]), code["U"])
    shares = requests.encode(code, mask, noise)
    same("decoded vector", _decode(call, code, d, users, [shares[user] for user in users]), mask)


@_chained("mds/sum", "MDS-06")
def decode_sum(draw: Any, call: Caller) -> None:
    """The sums of the shares of two vectors decode to the sum of the vectors."""
    code, d = strategies.code(draw, call.caps, _BOTH), strategies.length(draw, 1)
    field = field_of(code["q"])
    masks = [strategies.vector(draw, code["q"], d) for _ in range(2)]
    rands = [_noise(draw, code, d) for _ in range(2)]
    users = strategies.subset(draw, range(code["N"]), code["U"], code["U"])
    first, second = (_shares(call, code, mask, rand) for mask, rand in zip(masks, rands, strict=True))
    added = [field.add(first[user], second[user]) for user in users]
    same("decoded sum", _decode(call, code, d, users, added), field.add(*masks))


@refuses("mds.encode", "parameters", "MDS-01", wide=True, examples=20)
def encode_parameters(draw: Any, params: Params) -> Change:
    """Parameters that break 1 <= T < U <= N < q are refused."""
    changed = _broken(draw, params)
    return changed, reject.BAD_PARAM | reject.LENGTH, f"{changed} breaks 1 <= T < U <= N < q"


@check("mds.encode/empty", "MDS-01", wide=True, examples=5)
def encode_empty(draw: Any, call: Caller) -> None:
    """An empty vector is refused."""
    valid = requests.VALID["mds.encode"](draw, call.caps)
    rand = call.randomness("mds.encode", {"noise": ""})
    why = "there is nothing to share"
    call.refused("mds.encode", {**valid.params, "mask": ""}, reject.BAD_PARAM | reject.LENGTH, why, rand)


@refuses("mds.decode", "parameters", "MDS-01", wide=True, applies=requests.vandermonde, examples=7)
def decode_parameters(draw: Any, params: Params) -> Change:
    """Parameters that break 1 <= T < U <= N < q are refused, and vectors without elements are too."""
    empty = {"d": 0, "shares": [""] * len(params["shares"])}
    changed = draw(Each((None, {"d": 0}, empty))) or _broken(draw, params)
    why = f"{changed} breaks 1 <= T < U <= N < q or d >= 1"
    codes = reject.BAD_PARAM | reject.LENGTH | reject.TOO_FEW | reject.OUTSIDE
    return changed, codes, why


@_chained("mds.decode/too-few", "MDS-07", examples=25)
def too_few(draw: Any, call: Caller) -> None:
    """Fewer than U shares are refused."""
    code, d, shares = _encoded(draw, call)
    users = strategies.subset(draw, range(code["N"]), 0, code["U"] - 1)
    why = f"{len(users)} shares are fewer than U = {code['U']}"
    call.refused("mds.decode", _decoding(code, d, users, [shares[user] for user in users]), reject.TOO_FEW, why)


@_chained("mds.decode/twice", "MDS-08", examples=25)
def twice(draw: Any, call: Caller) -> None:
    """A list of users with a duplicate is refused."""
    code, d, shares = _encoded(draw, call)
    distinct = strategies.subset(draw, range(code["N"]), code["U"] - 1)
    user = draw(among(distinct))
    users = requests.inserted(draw, distinct, user)
    params = _decoding(code, d, users, [shares[user] for user in users])
    call.refused("mds.decode", params, reject.TWICE, f"user {user} appears twice")


@_chained("mds.decode/outside", "MDS-08", examples=25)
def outside(draw: Any, call: Caller) -> None:
    """A user outside [0, N) is refused."""
    code, d, shares = _encoded(draw, call)
    users = list(range(code["U"]))
    stranger = draw(among((code["N"], code["N"] + 5, -1)))
    users[draw(st.integers(0, code["U"] - 1))] = stranger
    params = _decoding(code, d, users, [shares[user % code["N"]] for user in users])
    call.refused("mds.decode", params, reject.OUTSIDE, f"user {stranger} is not in [0, {code['N']})")


@_chained("mds.decode/extra", "MDS-09", applies=suits(*_BOTH, spare=1), examples=25)
def extra(draw: Any, call: Caller) -> None:
    """With more than U shares, an altered share is detected."""
    code, d, shares = _encoded(draw, call, spare=1)
    users = strategies.subset(draw, range(code["N"]), code["U"] + 1)
    given = [shares[user] for user in users]
    altered = requests.place_of(draw, users)
    given[altered] = requests.exchanged_element(draw, given[altered], code["q"])
    params = _decoding(code, d, users, given)
    call.refused("mds.decode", params, reject.BAD_SHARE, f"the share of user {users[altered]} was altered")


def _encoded(draw: Any, call: Caller, spare: int = 0) -> tuple[dict[str, int], int, list[UintArray]]:
    """Draw a vector. Return its parameters, its length, and its shares as the adapter encodes them."""
    code, d = strategies.code(draw, call.caps, _BOTH, spare), strategies.length(draw, 1)
    mask, rand = strategies.vector(draw, code["q"], d), _noise(draw, code, d)
    return code, d, _shares(call, code, mask, rand)


def _noise(draw: Any, code: dict[str, int], d: int) -> dict[str, Any]:
    return {"noise": pack(strategies.vector(draw, code["q"], code["T"] * requests.shares_length(code, d)), code["q"])}


def _shares(call: Caller, code: dict[str, int], mask: UintArray, rand: dict[str, Any]) -> list[UintArray]:
    params = {**code, "mask": pack(mask, code["q"])}
    texts = call.listed("mds.encode", params, "shares", code["N"], call.randomness("mds.encode", rand))
    call.by_relation |= not _exact(call.caps)
    length = requests.shares_length(code, mask.size)
    return [call.read("mds.encode", text, "shares", length, code["q"]) for text in texts]


def _decoding(code: dict[str, int], d: int, users: list[int], shares: list[UintArray]) -> dict[str, Any]:
    return {**code, "d": d, "users": users, "shares": [pack(share, code["q"]) for share in shares]}


def _decode(call: Caller, code: dict[str, int], d: int, users: list[int], shares: list[UintArray]) -> UintArray:
    return call.vector("mds.decode", _decoding(code, d, users, shares), "mask", d)


def _broken(draw: Any, params: dict[str, Any]) -> dict[str, int]:
    q, N, U, T = (params[name] for name in ("q", "N", "U", "T"))
    options = [{"T": 0}, {"T": U}, {"T": U + 1}, {"U": N + 1}, {"U": T}, {"N": U - 1}]
    return dict(draw(st.sampled_from([*options, {"N": q} if q < 1000 else {"T": -1}])))
