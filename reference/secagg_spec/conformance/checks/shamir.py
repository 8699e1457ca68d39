"""Checks of secret sharing (spec/conventions.md, section 11)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import inserted, own_field, place_of
from secagg_spec.conformance.cases.valid import VALID, coefficients, random_coefficients, random_secret, secret
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, Change, CheckFailed, Each, Params, check, equal, fail, refuses
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients

_SHARE, _BACK = "shamir.share", "shamir.reconstruct"
_BOTH = (_SHARE, _BACK)
_WIDTH = shamir.ELEMENT_BYTES
ALTERED = reject.BAD_SHARE | reject.NONCANONICAL | reject.LENGTH | reject.OUTSIDE | reject.TWICE
"""Codes for a share with a flipped bit: it may be malformed, or look like the share of another user."""
_HALVES = 48
"""How many sharings of one secret are drawn when a check judges the randomness of the implementation.

When coefficients are uniform, all shares of one user are below p / 2 with probability 2**-48.
"""


def _exact(caps: Capabilities) -> bool:
    return own_field(caps) and caps.grade(_SHARE) == "explicit"


def _common(caps: Capabilities, spare: int = 0) -> bool:
    """Return whether both operations are declared and some n and t are in the ranges of both."""
    return caps.offers(*_BOTH) and strategies.possible(caps, _BOTH, spare)


def _has_shares(spare: int = 0) -> Any:
    """Return the condition that shares are available: the kit makes those in the text's field, the adapter others."""

    def applies(caps: Capabilities) -> bool:
        return strategies.possible(caps, _BACK, spare) if own_field(caps) else _common(caps, spare)

    return applies


@dataclass(frozen=True)
class Sharing:
    """A secret, and the shares of users 0 ... n - 1 as a request holds them."""

    t: int
    secret: bytes
    shares: Sequence[str]

    def params(self, users: Sequence[int]) -> dict[str, Any]:
        """Return the parameters to reconstruct from the shares of `users`."""
        return {"t": self.t, "users": list(users), "shares": [self.shares[user] for user in users]}


def _shared(draw: Any, call: Caller, spare: int = 0) -> Sharing:
    """Draw a sharing: by the kit in the field of the text, otherwise by the adapter."""
    numbers = strategies.sharing(draw, call.caps, _BACK if own_field(call.caps) else _BOTH, spare)
    given = secret(draw, call.caps)
    if not own_field(call.caps):
        return _by_adapter(call, numbers, given, random_coefficients(draw, numbers["t"] - 1))
    values = shamir.share(given, coefficients(draw, numbers["t"] - 1), range(numbers["n"]))
    return Sharing(numbers["t"], given, [shamir.element_bytes(value).hex() for value in values])


def _by_adapter(
    call: Caller, numbers: dict[str, int], given: bytes, sampled: Sequence[int], seed: int | None = None
) -> Sharing:
    """Let the adapter share a secret. Without an explicit seed, the seed is computed from the coefficients."""
    data = b"".join(map(shamir.element_bytes, sampled))
    seed = int.from_bytes(sha256(data).digest()[:8], "little") if seed is None else seed
    rand = call.randomness(_SHARE, {"coefficients": data.hex()}, seed)
    call.by_relation |= not own_field(call.caps)
    return Sharing(numbers["t"], given, _shares(call, {**numbers, "secret": given.hex()}, rand))


def _shares(call: Caller, params: dict[str, Any], rand: dict[str, Any] | None) -> list[str]:
    """Let the adapter share a secret. Fail when the result is not a list of n shares."""
    shares = call.listed(_SHARE, params, "shares", params["n"], rand)
    for user, text in enumerate(shares):
        if not isinstance(text, str) or not re.fullmatch("([0-9a-f]{2})+", text):
            raise CheckFailed("protocol", f"{_SHARE}: shares[{user}] is not a string of lowercase hex digits")
        if own_field(call.caps) and (len(text) != 2 * _WIDTH or _number(text) >= shamir.PRIME):
            fail(f"{_SHARE}: shares[{user}] = {text} is not a number below p in {_WIDTH} bytes")
    return list(shares)


def _number(text: str) -> int:
    return int.from_bytes(bytes.fromhex(text), "little")


def _recovered(call: Caller, params: dict[str, Any], want: bytes, what: str) -> None:
    equal(f"the secret from {what} is", call.result(_BACK, params).get("secret"), want.hex())


@check("shamir.share/exact", "SHM-04", "SHM-05", applies=_exact)
def share_exact(draw: Any, call: Caller) -> None:
    """Each share is the value of the polynomial at its user's point."""
    valid = VALID[_SHARE](draw, call.caps)
    data = bytes.fromhex(valid.rand["coefficients"])
    sampled = [int.from_bytes(data[at : at + _WIDTH], "little") for at in range(0, len(data), _WIDTH)]
    n = valid.params["n"]
    got = _shares(call, valid.params, valid.rand)
    values = shamir.share(bytes.fromhex(valid.params["secret"]), sampled, range(n))
    for user, (mine, want) in enumerate(zip(got, values, strict=True)):
        equal(f"the share of user {user} is", mine, shamir.element_bytes(want).hex())


@check("shamir.reconstruct/exact", "SHM-05", "SHM-08", applies=own_field)
def reconstruct_exact(draw: Any, call: Caller) -> None:
    """Shares in the text's own field reconstruct the secret."""
    params = VALID[_BACK](draw, call.caps).params
    want = shamir.reconstruct(params["t"], params["users"], [_number(text) for text in params["shares"]])
    _recovered(call, params, want, f"users {params['users']}")


@check("shamir/any-shares", "SHM-08", operations=_BOTH, applies=_common)
def any_shares(draw: Any, call: Caller) -> None:
    """The shares of any t or more users, in any order, reconstruct the secret. Every such set gives the same one."""
    numbers = strategies.sharing(draw, call.caps, _BOTH)
    given, sampled = secret(draw, call.caps), coefficients(draw, numbers["t"] - 1)
    sets = [strategies.subset(draw, range(numbers["n"]), numbers["t"], high) for high in (numbers["t"], None)]
    sharing = _by_adapter(call, numbers, given, sampled)
    for users in sets:
        _recovered(call, sharing.params(users), given, f"the shares of users {users}")


@check("shamir.share/numbers", "SHM-01", examples=20)
def share_numbers(draw: Any, call: Caller) -> None:
    """A threshold below 2 or above n is refused. More holders than the text allows are refused."""
    valid = VALID[_SHARE](draw, call.caps)
    n = valid.params["n"]
    options: list[dict[str, int]] = [{"t": t} for t in (1, 0, -1, n + 1)]
    options += [{"n": 0}, {"n": valid.params["t"] - 1}, *([{"n": 2**16 + 1}] if own_field(call.caps) else [])]
    changed = draw(among(options))
    count = max(changed.get("t", valid.params["t"]) - 1, 0)
    rand = call.randomness(_SHARE, {"coefficients": bytes(_WIDTH * (count - 1)).hex() + "01" * _WIDTH if count else ""})
    why = f"{changed} breaks 2 <= t <= n <= 2**16"
    call.refused(_SHARE, {**valid.params, **changed}, reject.BAD_PARAM, why, rand)


@check("shamir.reconstruct/numbers", "SHM-01", applies=_has_shares(), examples=15)
def reconstruct_numbers(draw: Any, call: Caller) -> None:
    """A threshold below 2, or above the largest number of holders, is refused."""
    t = draw(among((1, 0, -1, *((2**16 + 1,) if own_field(call.caps) else ()))))
    params = _shared(draw, call)
    users = range(len(params.shares))
    codes = reject.BAD_PARAM | reject.TOO_FEW if t > 1 else reject.BAD_PARAM
    call.refused(_BACK, {**params.params(users), "t": t}, codes, f"t = {t} is not in [2, 2**16]")


@check("shamir.reconstruct/too-few", "SHM-09", applies=_has_shares(), examples=25)
def too_few(draw: Any, call: Caller) -> None:
    """Fewer than t shares are refused; in each case t - 1 are tried first, since few code bases stumble over those."""
    sharing = _shared(draw, call)
    for size in (sharing.t - 1, draw(st.integers(0, sharing.t - 1))):
        users = strategies.subset(draw, range(len(sharing.shares)), size, size)
        call.refused(_BACK, sharing.params(users), reject.TOO_FEW, f"{size} shares are fewer than t = {sharing.t}")


@check("shamir.reconstruct/twice", "SHM-02", applies=_has_shares(), examples=25)
def twice(draw: Any, call: Caller) -> None:
    """A user who appears twice is refused, whether there are enough other users or not."""
    sharing = _shared(draw, call)
    size = draw(among((sharing.t - 1, sharing.t)))
    distinct = strategies.subset(draw, range(len(sharing.shares)), size, size)
    user = draw(among(distinct))
    call.refused(_BACK, sharing.params(inserted(draw, distinct, user)), reject.TWICE, f"user {user} appears twice")


@check("shamir.reconstruct/outside", "SHM-02", applies=_has_shares(), examples=10)
def outside(draw: Any, call: Caller) -> None:
    """A user below 0 is refused: the point of user -1 is 0, where the secret is."""
    sharing = _shared(draw, call)
    users = strategies.subset(draw, range(len(sharing.shares)), sharing.t)
    params = sharing.params(users)
    at = place_of(draw, users)
    params["users"][at] = draw(among((-1, -2)))
    if params["users"][at] == -1 and own_field(call.caps):
        params["shares"][at] = (sharing.secret + bytes(_WIDTH - len(sharing.secret))).hex()
    call.refused(_BACK, params, reject.OUTSIDE, f"there is no user {params['users'][at]}")


@check("shamir.reconstruct/extra", "SHM-10", applies=_has_shares(1), examples=30)
def extra(draw: Any, call: Caller) -> None:
    """With more than t shares, a share of another secret is detected."""
    sharing = _shared(draw, call, spare=1)
    n = len(sharing.shares)
    users = strategies.subset(draw, range(n), sharing.t + 1)
    params, at = sharing.params(users), place_of(draw, users)
    added = draw(st.integers(1, shamir.PRIME - 1))
    other = random_secret(call.caps, draw(st.binary(min_size=32, max_size=32)))
    byte, bit = draw(st.integers(0, 2**16)), draw(among((None, *range(8))))
    if own_field(call.caps):
        altered = (_number(params["shares"][at]) + added) % shamir.PRIME
        params["shares"][at] = shamir.element_bytes(altered).hex()
    elif bit is not None:
        params["shares"][at] = _flipped(params["shares"][at], byte, bit)
        call.refused(_BACK, params, ALTERED, f"bit {bit} of a byte of the share of user {users[at]} was flipped")
        return
    else:
        sampled = draw_coefficients(SeededSource(added.to_bytes(_WIDTH, "little"), "other"), sharing.t - 1)
        another = _by_adapter(call, {"t": sharing.t, "n": n}, other, sampled)
        params["shares"][at] = another.shares[users[at]]
    call.refused(_BACK, params, reject.BAD_SHARE, f"the share of user {users[at]} is not that of this secret")


def _flipped(text: str, byte: int, bit: int) -> str:
    """Return a share with one bit flipped. `byte` is taken modulo the length of the share."""
    data = bytearray(bytes.fromhex(text))
    data[byte % len(data)] ^= 1 << bit
    return data.hex()


@refuses(_BACK, "too-large", "SHM-11", applies=own_field, examples=20)
def too_large(draw: Any, params: Params) -> Change:
    """Shares that reconstruct to a number longer than 32 bytes are refused."""
    added = draw(among((2**256, 2**256 + 1, 2**520, shamir.PRIME - 2**256)) | st.integers(2**256, 2**520))
    moved = [(_number(text) + added) % shamir.PRIME for text in params["shares"]]
    texts = [shamir.element_bytes(value).hex() for value in moved]
    return {"shares": texts}, reject.BAD_SHARE, "the number at 0 has more than 32 bytes"


@refuses(_SHARE, "secret-length", "SHM-03", applies=own_field, examples=3)
def secret_length(draw: Any, params: Params) -> Change:
    """A secret that is not 32 bytes long is refused."""
    text = params["secret"]
    wrong = draw(Each((text[:-2], text + "00", "", text + text)))
    return {"secret": wrong}, reject.KEY_LENGTH, f"the secret has {len(wrong) // 2} bytes"


@check("shamir.share/coefficients", "SHM-06", applies=_exact, examples=20)
def share_coefficients(draw: Any, call: Caller) -> None:
    """Coefficients are refused unless there are t - 1 of them, each of 66 bytes and below p."""
    valid = VALID[_SHARE](draw, call.caps)
    whole = valid.rand["coefficients"]
    texts = [whole[at : at + 2 * _WIDTH] for at in range(0, len(whole), 2 * _WIDTH)]
    at = place_of(draw, texts)
    large = draw(among((shamir.PRIME, shamir.PRIME + 1, 2**528 - 1, shamir.PRIME + _number(texts[at]))))
    exchanged = "".join([*texts[:at], large.to_bytes(_WIDTH, "little").hex(), *texts[at + 1 :]])
    wrong = {
        "one of them is p or more": exchanged,
        "one is missing": whole[: -2 * _WIDTH],
        "there is one too many": whole + "00" * _WIDTH,
        "there is a byte too many": whole + "00",
    }
    why = draw(among(list(wrong)))
    codes = reject.NONCANONICAL if wrong[why] == exchanged else reject.BAD_RANDOMNESS
    call.refused(_SHARE, valid.params, codes, f"coefficients: {why}", {"coefficients": wrong[why]})


@refuses(_BACK, "elements", "SHM-06", applies=own_field, examples=5)
def elements(draw: Any, params: Params) -> Change:
    """A share that is not below p, or not 66 bytes long, is refused even when it is right modulo p."""
    at = place_of(draw, params["shares"])
    text = params["shares"][at]
    congruent = (_number(text) + shamir.PRIME * draw(among((1, 2, 127)))).to_bytes(_WIDTH, "little").hex()
    wrong = draw(Each((congruent, "ff" * _WIDTH, text + "00", text[:-2], "")))
    codes = reject.NONCANONICAL if len(wrong) == 2 * _WIDTH else reject.LENGTH
    shares = [*params["shares"][:at], wrong, *params["shares"][at + 1 :]]
    return {"shares": shares}, codes, f"shares[{at}] = {wrong or 'nothing'} is no share"


@check("shamir.reconstruct/lengths", "MOD-07", applies=_has_shares(), examples=10)
def lengths(draw: Any, call: Caller) -> None:
    """A request is refused unless it holds exactly one share for each user."""
    sharing = _shared(draw, call)
    params = sharing.params(range(len(sharing.shares)))
    shorter = draw(st.booleans())
    shares = params["shares"][:-1] if shorter else [*params["shares"], params["shares"][0]]
    why = f"{len(shares)} shares of {len(params['users'])} users"
    call.refused(_BACK, {**params, "shares": shares}, reject.LENGTH, why)


def not_exact(caps: Capabilities) -> bool:
    """Return whether no exact check decides the values of shares (SHM-04)."""
    return not _exact(caps)


@check("shamir.share/hides", "SHM-07", "SHM-12", applies=not_exact, examples=3)
def hides(draw: Any, call: Caller) -> None:
    """No share contains the secret. Every share changes from one sharing to the next and covers the whole field."""
    numbers = strategies.sharing(draw, call.caps, _SHARE)
    given = random_secret(call.caps, draw(st.binary(max_size=4)))
    seed = draw(st.integers(0, 2**32))
    call.by_relation = True
    sharings = []
    for at in range(_HALVES):
        source = SeededSource((seed + at).to_bytes(8, "little"), "hides")
        sharings.append(_by_adapter(call, numbers, given, draw_coefficients(source, numbers["t"] - 1), seed + at))
    for user, texts in enumerate(zip(*(sharing.shares for sharing in sharings), strict=True)):
        _demand_fresh(call, user, texts, given)


def _demand_fresh(call: Caller, user: int, texts: Sequence[str], given: bytes) -> None:
    """Fail when the shares of a user contain the secret, repeat, or stay in one half of the text's field."""
    if any(given.hex() in text for text in texts):
        fail(f"the share of user {user} holds the secret in clear")
    if len(set(texts)) < len(texts):
        fail(f"of {len(texts)} sharings of one secret, user {user} has the same share in two")
    if own_field(call.caps) and all(2 * _number(text) < shamir.PRIME for text in texts):
        fail(f"in {len(texts)} sharings the share of user {user} is below p / 2: the coefficients are not uniform")


def _one_fewer(caps: Capabilities) -> bool:
    """Return whether a request to reconstruct from t - 1 shares with threshold t - 1 is declared."""
    space = strategies.Space(caps, _BOTH)
    return not_exact(caps) and _common(caps) and any(t - 1 in space.range("t") for t in _thresholds(caps))


def _thresholds(caps: Capabilities) -> list[int]:
    """Return the thresholds t >= 3 for which t - 1 is declared too."""
    space = strategies.Space(caps, _BOTH)
    known = {t for n in strategies.holders(space) for t in strategies.shared_thresholds(space, n)}
    return sorted(t for t in known if t >= 3 and t - 1 in space.range("t"))


@check("shamir/one-fewer", "SHM-12", operations=_BOTH, applies=_one_fewer, examples=10)
def one_fewer(draw: Any, call: Caller) -> None:
    """The shares of t - 1 users do not reconstruct the secret, even when the request names t - 1 as threshold."""
    t = int(draw(among(_thresholds(call.caps)[:8])))
    space = strategies.Space(call.caps, _BOTH)
    n = next(n for n in strategies.holders(space) if t in strategies.shared_thresholds(space, n))
    given = random_secret(call.caps, draw(st.binary(max_size=4)))
    sampled = random_coefficients(draw, t - 1)
    users = strategies.subset(draw, range(n), t - 1, t - 1)
    sharing = _by_adapter(call, {"t": t, "n": n}, given, sampled)
    call.by_relation = True
    answer = call.ask(_BACK, {**sharing.params(users), "t": t - 1})
    if answer.kind == "result" and answer.value.get("secret") == given.hex():
        fail(f"with t = {t}, the shares of the {t - 1} users {users} give the secret")
