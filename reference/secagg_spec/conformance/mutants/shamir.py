"""Planted bugs of secret sharing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets import reference
from secagg_spec.errors import BadShare, ParameterError, ProtocolError

Function = Callable[..., Any]
_MODULE = "secagg_spec.arithmetic.shamir"
_TESTS = "tests/arithmetic/test_shamir.py::"
_SECRET = bytes(range(32))
_COEFFICIENTS = (2**300 + 5, 7)
_SHARES = shamir.share(_SECRET, _COEFFICIENTS, range(5))


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails and who is blamed."""
    try:
        return call()
    except ParameterError as error:
        return type(error).__name__
    except ProtocolError as error:
        return type(error).__name__, sorted(error.blamed)


def _shared(coefficients: Sequence[int] = _COEFFICIENTS, n: int = 5, secret: bytes = _SECRET) -> object:
    return _outcome(lambda: shamir.share(secret, coefficients, range(n)))


def _recovered(users: Sequence[int], shares: Sequence[int] | None = None, t: int = 3) -> object:
    values = [_SHARES[user] for user in users] if shares is None else shares
    return _outcome(lambda: shamir.reconstruct(t, users, values))


# ----------------------------------------------------------------------------------------------------------- sharing


@mutant(
    "shamir-points-from-zero",
    "SHM-04",
    "privacy: the point of a user is its number, so that user 0 holds the secret in clear",
    f"{_MODULE}:_evaluate",
    _shared,
    kind="privacy",
    source="off by one",
)
def _from_zero(right: Function) -> Function:
    return lambda descending, x: right(descending, x - 1)


@mutant(
    "shamir-leading-not-zero",
    "SHM-04",
    "privacy: a leading coefficient of zero is exchanged, so that t - 1 shares rule a secret out",
    f"{_MODULE}:share",
    lambda: _shared((5, 0)),
    also=("SHM-07",),
    kind="privacy",
    source="weak draw: a leading coefficient that is never 0",
)
def _leading(right: Function) -> Function:
    def wrong(secret: bytes, coefficients: Sequence[int], users: Sequence[int]) -> Any:
        return right(secret, (*coefficients[:-1], coefficients[-1] or 1) if coefficients else (), users)

    return wrong


@mutant(
    "shamir-degree-one-short",
    "SHM-04",
    "privacy: the last coefficient is forgotten, so that t - 1 users have the secret",
    f"{_MODULE}:share",
    _shared,
    kind="privacy",
    source="off by one",
)
def _short(right: Function) -> Function:
    def wrong(secret: bytes, coefficients: Sequence[int], users: Sequence[int]) -> Any:
        return right(secret, [*coefficients[:-1], *([0] if coefficients else [])], users)

    return wrong


@mutant(
    "shamir-secret-big-endian",
    "SHM-04",
    "no interoperation: the secret is read as a big-endian integer",
    f"{_MODULE}:_secret_number",
    _shared,
    kind="form",
    source="encoding",
)
def _secret_big(right: Function) -> Function:
    return lambda secret: right(secret[::-1])


@mutant(
    "shamir-elements-big-endian",
    "SHM-05",
    "no interoperation: shares are written with the highest byte first",
    f"{_MODULE}:element_bytes",
    lambda: shamir.element_bytes(5),
    kind="form",
    source="encoding",
)
def _written_big(right: Function) -> Function:
    return lambda value: right(value)[::-1]


@mutant(
    "shamir-elements-read-big-endian",
    "SHM-05",
    "no interoperation: shares are read with the highest byte first",
    f"{_MODULE}:element_from_bytes",
    lambda: _outcome(lambda: shamir.element_from_bytes("share", shamir.element_bytes(5))),
    kind="form",
    source="encoding",
)
def _read_big(right: Function) -> Function:
    return lambda name, data: right(name, data[::-1])


@mutant(
    "shamir-numbers-unchecked",
    "SHM-01",
    "privacy: a threshold of 1 is accepted, with which every share is the secret, and one that nobody can reach",
    f"{_MODULE}:check_numbers",
    lambda: _shared(()),
    kind="privacy",
    source="seen in Flower 1.41.0: shamir.*/numbers",
)
def _numbers(right: Function) -> Function:
    return lambda t, n: None


@mutant(
    "shamir-any-secret",
    "SHM-03",
    "robustness: a secret of another length is filled up or cut, and another one comes back",
    f"{_MODULE}:share",
    lambda: _shared(secret=bytes(31)),
    kind="acceptance",
    source="silent repair",
)
def _any_secret(right: Function) -> Function:
    return lambda secret, coefficients, users: right(secret[:32].ljust(32, b"\0"), coefficients, users)


@mutant(
    "shamir-elements-reduced",
    "SHM-06",
    "acceptance: numbers of p and more are reduced in silence",
    f"{_MODULE}:element_from_bytes",
    lambda: _outcome(lambda: shamir.element_from_bytes("share", b"\xff" * 66)),
    also=("ERR-02",),
    kind="acceptance",
    source="silent repair",
)
def _reduced(right: Function) -> Function:
    def wrong(name: str, data: bytes) -> Any:
        if len(data) != shamir.ELEMENT_BYTES:
            return right(name, data)
        return int.from_bytes(data, "little") % shamir.PRIME

    return wrong


@mutant(
    "shamir-elements-of-any-length",
    "SHM-06",
    "acceptance: a share that is cut or continued is read as far as it goes",
    f"{_MODULE}:element_from_bytes",
    lambda: _outcome(lambda: shamir.element_from_bytes("share", bytes(65))),
    kind="acceptance",
    source="silent repair",
)
def _any_length(right: Function) -> Function:
    return lambda name, data: right(name, data[: shamir.ELEMENT_BYTES].ljust(shamir.ELEMENT_BYTES, b"\0"))


@mutant(
    "shamir-coefficients-filled",
    "SHM-06",
    "privacy: coefficients that are missing are zero, so that fewer users than t have the secret",
    f"{_MODULE}:elements_from_bytes",
    lambda: _outcome(lambda: shamir.elements_from_bytes("coefficients", bytes(66), 2)),
    kind="privacy",
    source="silent repair",
)
def _filled(right: Function) -> Function:
    def wrong(name: str, data: bytes, count: int) -> Any:
        size = max(count, 0) * shamir.ELEMENT_BYTES
        return right(name, data[:size].ljust(size, b"\0"), max(count, 0))

    return wrong


# ------------------------------------------------------------------------------------------------------- coefficients

_DRAWS = _TESTS + "test_coefficients_from_bytes"
_PIECES = bytes(66) + shamir.PRIME.to_bytes(66, "little")


@mutant(
    "shamir-draws-no-zero",
    "SHM-07",
    "privacy: a coefficient of zero is drawn again, so that t - 1 shares rule a secret out",
    f"{_MODULE}:coefficients_from_bytes",
    lambda: shamir.coefficients_from_bytes(_PIECES),
    _DRAWS,
    kind="privacy",
    source="weak draw: a coefficient that is never 0",
)
def _no_zero(right: Function) -> Function:
    return lambda data: tuple(value for value in right(data) if value)


@mutant(
    "shamir-draws-by-remainder",
    "SHM-07",
    "privacy: pieces of 528 bits are reduced, so that some coefficients come up more often than others",
    f"{_MODULE}:coefficients_from_bytes",
    lambda: shamir.coefficients_from_bytes(_PIECES),
    _DRAWS,
    kind="privacy",
    source="weak draw: reduced without rejection",
)
def _remainder(right: Function) -> Function:
    def wrong(data: bytes) -> Any:
        right(data)
        pieces = [data[at : at + 66] for at in range(0, len(data), 66)]
        return tuple(int.from_bytes(piece, "little") % shamir.PRIME for piece in pieces)

    return wrong


def _drawing(numbers: Callable[[int, str], list[int]]) -> Callable[[Function], Function]:
    """Return what makes a reference that draws t - 1 coefficients from a seed."""

    def build(right: Function) -> Function:
        def wrong() -> Adapter:
            adapter: Adapter = right()

            @adapter.operation("shamir.share", randomness="seeded")
            def share(t: int, n: int, secret: str, rand: dict[str, str]) -> dict[str, Any]:
                drawn = numbers(max(t - 1, 0), rand["seed"]) if t < 2**16 else []
                sampled = b"".join(map(shamir.element_bytes, drawn)).hex()
                return _share(t=t, n=n, secret=secret, rand={"coefficients": sampled})

            return adapter

        return wrong

    return build


def _numbers_of(seed: str, count: int) -> list[int]:
    """Return numbers of 512 bits for a seed: enough below p for a bug, and not for what is right."""
    texts = [f"{seed} {at}".encode() for at in range(count)]
    return [int.from_bytes(hashlib.sha512(text).digest(), "little") for text in texts]


_share = reference._refusing(reference.HANDLERS["shamir.share"])
_BUILD = "secagg_spec.conformance.targets.reference:build"


def _seeded() -> object:
    params = {"t": 3, "n": 4, "secret": _SECRET.hex()}
    answer = reference.build().answer({"id": 1, "op": "shamir.share", "params": params, "rand": {"seed": "05" * 32}})
    return answer.get("result", sorted(answer))


mutant(
    "shamir-coefficients-of-zeros",
    "SHM-12",
    "privacy: an implementation that draws its own coefficients takes zeros, so that every share is the secret",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: zeros",
)(_drawing(lambda count, seed: [0] * count))

mutant(
    "shamir-coefficients-never-change",
    "SHM-12",
    "privacy: the coefficients are the same for every secret, so that differences of shares are those of the secrets",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: the same for every secret",
)(_drawing(lambda count, seed: [16 * value for value in _numbers_of("fixed", count)]))

mutant(
    "shamir-coefficients-of-32-bytes",
    "SHM-07",
    "privacy: coefficients are as long as the secret and not as the field, so that shares tell of it",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: 32 bytes",
)(_drawing(lambda count, seed: [value >> 256 for value in _numbers_of(seed, count)]))

mutant(
    "shamir-draws-one-fewer",
    "SHM-12",
    "privacy: one coefficient too few is drawn, so that t - 1 users have the secret",
    _BUILD,
    _seeded,
    kind="privacy",
    source="off by one",
)(_drawing(lambda count, seed: [*(512 * value for value in _numbers_of(seed, count - 1)), 0][:count]))


# -------------------------------------------------------------------------------------------------------- recovering


@mutant(
    "shamir-first-points",
    "SHM-08",
    "wrong secret: the points are those of the first users, whoever gave the shares",
    f"{_MODULE}:_weights",
    lambda: _recovered((1, 3, 4)),
    kind="sum",
    source="other rule: points of the first users",
)
def _first_points(right: Function) -> Function:
    return lambda points: right(tuple(range(1, len(points) + 1)))


@mutant(
    "shamir-threshold-raised",
    "SHM-01",
    "misuse: a threshold below 2 is taken for 2",
    f"{_MODULE}:reconstruct",
    lambda: _recovered((0, 1), (5, 5), t=1),
    kind="acceptance",
    source="silent repair",
)
def _raised(right: Function) -> Function:
    return lambda t, users, shares: right(max(t, 2), users, shares)


@mutant(
    "shamir-fewer-suffice",
    "SHM-09",
    "wrong secret: as many shares as there are are put together, and something else comes out",
    f"{_MODULE}:reconstruct",
    lambda: _recovered((0, 1)),
    kind="acceptance",
    source="clause left out",
)
def _fewer(right: Function) -> Function:
    def wrong(t: int, users: Sequence[int], shares: Sequence[int]) -> Any:
        if len(users) >= t or t < 2:
            return right(t, users, shares)
        points = [user + 1 for user in users]
        terms = [value * weight for value, weight in zip(shares, shamir._weights(tuple(points)), strict=True)]
        return (sum(terms) % shamir.PRIME % 2**256).to_bytes(32, "little")

    return wrong


@mutant(
    "shamir-extra-shares-ignored",
    "SHM-10",
    "robustness: only the first t shares are used, so that a wrong one is not seen where it could be",
    f"{_MODULE}:reconstruct",
    lambda: _recovered(range(4), (*_SHARES[:3], 1)),
    kind="acceptance",
    source="clause left out",
)
def _extra(right: Function) -> Function:
    def wrong(t: int, users: Sequence[int], shares: Sequence[int]) -> Any:
        whole = len(users) == len(shares) and len(set(users)) == len(users) and min(users, default=0) >= 0
        return right(t, users[:t], shares[:t]) if whole and t >= 2 else right(t, users, shares)

    return wrong


@mutant(
    "shamir-blames-the-last",
    "SHM-10",
    "blame: the last user alone is blamed for shares that do not fit",
    f"{_MODULE}:reconstruct",
    lambda: _recovered(range(4), (*_SHARES[:3], 1)),
    _TESTS + "test_one_wrong_share_among_more_than_t_is_noticed",
    kind="refusal",
    source="wrong reason",
)
def _blames(right: Function) -> Function:
    def wrong(t: int, users: Sequence[int], shares: Sequence[int]) -> Any:
        try:
            return right(t, users, shares)
        except BadShare as error:
            raise BadShare(str(error), users[-1:]) from None

    return wrong


@mutant(
    "shamir-secret-cut",
    "SHM-11",
    "acceptance: a number of more than 32 bytes is cut, and a secret comes out that nobody shared",
    f"{_MODULE}:_secret_bytes",
    lambda: _recovered(range(3), (2**256 + 1,) * 3),
    also=("ERR-02",),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    return lambda value, users: right(value % 2**256, users)


@mutant(
    "shamir-user-twice",
    "SHM-02",
    "robustness: the later share of a user replaces the earlier one in silence",
    f"{_MODULE}:reconstruct",
    lambda: _recovered((0, 1, 2, 2)),
    kind="acceptance",
    source="silent repair",
)
def _twice(right: Function) -> Function:
    def wrong(t: int, users: Sequence[int], shares: Sequence[int]) -> Any:
        if len(users) != len(shares):
            return right(t, users, shares)
        kept = dict(zip(users, shares, strict=True))
        return right(t, list(kept), list(kept.values()))

    return wrong


@mutant(
    "shamir-users-wrap",
    "SHM-02",
    "acceptance: user -1 is taken for another one",
    f"{_MODULE}:reconstruct",
    lambda: _recovered((0, 1, -1), (8, 11, 5)),
    kind="acceptance",
    source="silent repair",
)
def _wraps(right: Function) -> Function:
    return lambda t, users, shares: right(t, [user % (2**32 - 1) for user in users], shares)


@mutant(
    "shamir-lengths-unchecked",
    "MOD-07",
    "robustness: users without a share, and shares without a user, are passed over",
    f"{_MODULE}:reconstruct",
    lambda: _recovered((0, 1, 2, 3), _SHARES[:3]),
    kind="acceptance",
    source="silent repair",
)
def _lengths(right: Function) -> Function:
    return lambda t, users, shares: right(t, users[: len(shares)], shares[: len(users)])
