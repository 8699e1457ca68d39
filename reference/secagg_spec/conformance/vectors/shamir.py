"""Vectors of secret sharing (spec/conventions.md, section 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from secagg_spec.arithmetic import shamir
from secagg_spec.conformance.checks.base import (
    BAD_PARAM,
    BAD_RANDOMNESS,
    BAD_SHARE,
    LENGTH,
    NONCANONICAL,
    OUTSIDE,
    TOO_FEW,
    TWICE,
)
from secagg_spec.conformance.checks.shamir import SECRET_LENGTH
from secagg_spec.conformance.vectors.base import VectorFile, begun, drawn_bytes

MERSENNE = {"shamir.field": "mersenne521"}
_SHARE, _BACK = "shamir.share", "shamir.reconstruct"
_PRIME = shamir.PRIME


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("shamir", "Secret sharing modulo 2**521 - 1: shares, and secrets from shares.")
    _sharing(made)
    _recovering(made)
    _wrong_sharings(made)
    _wrong_elements(made)
    _wrong_users(made)
    _wrong_shares(made)
    return made


def _secret(id: str) -> bytes:
    return drawn_bytes(id, "secret", 32)


def _coefficients(id: str, count: int) -> list[int]:
    return [int.from_bytes(drawn_bytes(id, f"c{k + 1}", 66), "little") % _PRIME for k in range(count)]


def _packed(numbers: Sequence[int]) -> str:
    return b"".join(number.to_bytes(66, "little") for number in numbers).hex()


# ----------------------------------------------------------------------------------------------------------- sharing


def _sharing(made: VectorFile) -> None:
    five = b"\x05" + bytes(31)
    _share(made, "shamir-share-example", five, [3], 3, ["Points"], "the example of the text")
    for id, t, n, flags, comment in (
        ("shamir-share-two-of-two", 2, 2, ["Basic"], "the smallest numbers"),
        ("shamir-share-two-of-three", 2, 3, ["Basic", "ByteOrder"], "t = 2"),
        ("shamir-share-three-of-five", 3, 5, ["Basic", "ByteOrder"], "t = 3"),
        ("shamir-share-all-of-four", 4, 4, ["Basic"], "all holders are needed"),
        ("shamir-share-21-of-40", 21, 40, ["Basic"], "many holders"),
    ):
        _share(made, id, _secret(id), _coefficients(id, t - 1), n, flags, comment)
    id = "shamir-share-leading-zero"
    comment = "the leading coefficient is zero, as it is once in p times"
    _share(made, id, _secret(id), [*_coefficients(id, 2), 0], 5, ["LeadingZero"], comment, "SHM-07")
    id = "shamir-share-zeros"
    _share(made, id, _secret(id), [0, 0], 4, ["LeadingZero"], "all coefficients are zero", "SHM-07")
    largest = [_PRIME - 1] * 3
    _share(made, "shamir-share-largest", b"\xff" * 32, largest, 6, ["Largest"], "the largest numbers that there are")
    id = "shamir-share-zero-secret"
    _share(made, id, bytes(32), _coefficients(id, 2), 4, ["Largest"], "the secret is zero")


def _share(
    made: VectorFile,
    id: str,
    secret: bytes,
    coefficients: list[int],
    n: int,
    flags: list[str],
    comment: str,
    *also: str,
) -> None:
    params = {"t": len(coefficients) + 1, "n": n, "secret": secret.hex()}
    made.valid(
        id,
        _SHARE,
        params,
        {"coefficients": _packed(coefficients)},
        clauses=["SHM-04", "SHM-05", *also],
        flags=flags,
        comment=comment,
        policy=MERSENNE,
    )


def _wrong_sharings(made: VectorFile) -> None:
    for id, t, n, comment in (
        ("shamir-share-t-one", 1, 3, "t = 1: every share would be the secret"),
        ("shamir-share-t-above-n", 4, 3, "t = n + 1: nobody could ever put the secret together"),
        ("shamir-share-too-many", 2, 2**16 + 1, "there are more than 2**16 holders"),
    ):
        sampled = _packed(_coefficients(id, t - 1))
        _refused_sharing(made, id, t, n, _secret(id), sampled, BAD_PARAM, "SHM-01", "Numbers", comment)
    for id, size in (("shamir-share-secret-short", 31), ("shamir-share-secret-long", 33)):
        secret, sampled = drawn_bytes(id, "secret", size), _packed(_coefficients(id, 1))
        comment = f"the secret has {size} bytes"
        _refused_sharing(made, id, 2, 3, secret, sampled, SECRET_LENGTH, "SHM-03", "SecretLength", comment)
    for id, number, comment in (
        ("shamir-share-coefficient-p", _PRIME, "the first coefficient is p"),
        ("shamir-share-coefficient-528-bits", 2**528 - 1, "the first coefficient has the highest bits set"),
    ):
        sampled = _packed([number, *_coefficients(id, 1)])
        _refused_sharing(made, id, 3, 4, _secret(id), sampled, NONCANONICAL, "SHM-06", "NonCanonical", comment)
    for id, count, comment in (
        ("shamir-share-coefficient-missing", 1, "there is one coefficient instead of two"),
        ("shamir-share-coefficient-too-many", 3, "there are three coefficients instead of two"),
    ):
        sampled = _packed(_coefficients(id, count))
        _refused_sharing(made, id, 3, 4, _secret(id), sampled, BAD_RANDOMNESS, "SHM-06", "Lengths", comment)


def _refused_sharing(
    made: VectorFile,
    id: str,
    t: int,
    n: int,
    secret: bytes,
    sampled: str,
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    params = {"t": t, "n": n, "secret": secret.hex()}
    clauses = [clause, *(["ERR-02"] if flag == "NonCanonical" else [])]
    rand = {"coefficients": sampled}
    made.invalid(id, _SHARE, params, rand, codes=codes, clauses=clauses, flags=[flag], comment=comment, policy=MERSENNE)


# -------------------------------------------------------------------------------------------------------- recovering


def _given(id: str, t: int, users: Sequence[int], secret: bytes | None = None) -> dict[str, Any]:
    """Return a request to reconstruct a secret from the shares of some users, who need not be distinct."""
    constant, coefficients = secret or _secret(id), _coefficients(id, t - 1)
    holders = sorted({user for user in users if user >= 0} | set(range(t)))
    shares = dict(zip(holders, shamir.share(constant, coefficients, holders), strict=True))
    texts = [_packed([shares.get(user, int.from_bytes(constant, "little"))]) for user in users]
    return {"t": t, "users": list(users), "shares": texts}


def _recovering(made: VectorFile) -> None:
    cases: list[tuple[str, int, list[int], list[str], str]] = [
        ("shamir-reconstruct-first", 3, [0, 1, 2], ["Basic", "ByteOrder"], "the shares of the first t users"),
        ("shamir-reconstruct-last", 3, [2, 3, 4], ["AnyUsers"], "the shares of the last t users"),
        ("shamir-reconstruct-unordered", 3, [4, 0, 3], ["AnyUsers"], "users in any order"),
        ("shamir-reconstruct-all", 3, [3, 1, 4, 0, 2], ["AnyUsers"], "more shares than are needed, all right"),
        ("shamir-reconstruct-two", 2, [5, 3], ["AnyUsers"], "t = 2"),
        ("shamir-reconstruct-far", 3, [2**31 - 1, 65535, 0, 65536], ["AnyUsers"], "users with large numbers"),
        ("shamir-reconstruct-21", 21, [*range(39, -1, -2), 0, 8], ["AnyUsers"], "one more than 21 shares"),
    ]
    for id, t, users, flags, comment in cases:
        _recovered(made, id, _given(id, t, users), flags, comment)
    for id, secret, comment in (
        ("shamir-reconstruct-zero", bytes(32), "the secret is zero"),
        ("shamir-reconstruct-largest", b"\xff" * 32, "the largest secret"),
    ):
        _recovered(made, id, _given(id, 3, [1, 2, 4, 5], secret), ["AnyUsers", "Largest"], comment)
    id = "shamir-reconstruct-low-degree"
    secret = _secret(id)
    shares = shamir.share(secret, [*_coefficients(id, 1), 0], range(5))
    params = {"t": 3, "users": [1, 3, 4], "shares": [_packed([shares[user]]) for user in (1, 3, 4)]}
    _recovered(made, id, params, ["AnyUsers", "LeadingZero"], "the leading coefficient is zero", "SHM-07")


def _recovered(made: VectorFile, id: str, params: dict[str, Any], flags: list[str], comment: str, *also: str) -> None:
    clauses = ["SHM-08", "SHM-05", *also]
    made.valid(id, _BACK, params, clauses=clauses, flags=flags, comment=comment, policy=MERSENNE)


def _refused(
    made: VectorFile,
    id: str,
    params: dict[str, Any],
    codes: frozenset[str],
    clauses: list[str],
    flag: str,
    comment: str,
) -> None:
    made.invalid(id, _BACK, params, codes=codes, clauses=clauses, flags=[flag], comment=comment, policy=MERSENNE)


def _wrong_elements(made: VectorFile) -> None:
    id = "shamir-reconstruct-congruent"
    params = _given(id, 3, [0, 1, 2])
    number = int.from_bytes(bytes.fromhex(params["shares"][1]), "little")
    params["shares"][1] = _packed([number + _PRIME])
    comment = "p was added to the second share"
    _refused(made, id, params, NONCANONICAL, ["SHM-06", "ERR-02"], "NonCanonical", comment)
    id = "shamir-reconstruct-share-p"
    params = {**_given(id, 3, [0, 1]), "users": [0, 1, 2]}
    params["shares"].append(_packed([_PRIME]))
    comment = "the third share is p, in place of zero"
    _refused(made, id, params, NONCANONICAL, ["SHM-06", "ERR-02"], "NonCanonical", comment)
    for id, size, comment in (
        ("shamir-reconstruct-share-long", 67, "the first share has a byte of zero behind it"),
        ("shamir-reconstruct-share-short", 65, "the first share lacks its last byte"),
    ):
        params = _given(id, 3, [0, 1, 2])
        params["shares"][0] = (params["shares"][0] + "00")[: 2 * size]
        _refused(made, id, params, LENGTH, ["SHM-06"], "Lengths", comment)
    for id, users in (
        ("shamir-reconstruct-user-without-share", [0, 1, 2, 3]),
        ("shamir-reconstruct-share-without-user", [0, 1, 2]),
    ):
        params = _given(id, 3, [0, 1, 2, 3])
        params = {**params, "users": users, "shares": params["shares"][: 7 - len(users)]}
        comment = f"{len(params['shares'])} shares for {len(users)} users"
        _refused(made, id, params, LENGTH, ["MOD-07"], "Lengths", comment)


def _wrong_users(made: VectorFile) -> None:
    for id, users in (
        ("shamir-reconstruct-one-too-few", [0, 3]),
        ("shamir-reconstruct-one-share", [2]),
        ("shamir-reconstruct-no-share", []),
    ):
        comment = f"{len(users)} shares, and t = 3"
        _refused(made, id, _given(id, 3, users), TOO_FEW, ["SHM-09"], "TooFewShares", comment)
    for id, users, comment in (
        ("shamir-reconstruct-twice-01", [0, 1, 1, 2], "user 1 appears twice, with the same share, among enough others"),
        ("shamir-reconstruct-twice-02", [0, 1, 2, 0], "user 0 appears again behind enough others"),
    ):
        _refused(made, id, _given(id, 3, users), TWICE, ["SHM-02"], "Twice", comment)
    id = "shamir-reconstruct-outside"
    comment = "user -1, with the secret as its share"
    _refused(made, id, _given(id, 3, [-1, 1, 2]), OUTSIDE, ["SHM-02"], "Outside", comment)
    id = "shamir-reconstruct-t-one"
    params = {**_given(id, 2, [0, 1], bytes(32)), "t": 1}
    _refused(made, id, params, BAD_PARAM, ["SHM-01"], "Numbers", "t = 1")


def _wrong_shares(made: VectorFile) -> None:
    for id, at in (("shamir-reconstruct-altered-last", 3), ("shamir-reconstruct-altered-behind", 4)):
        params = _given(id, 3, [3, 0, 4, 1, 2])
        number = int.from_bytes(bytes.fromhex(params["shares"][at]), "little")
        params["shares"][at] = _packed([(number + 1) % _PRIME])
        comment = f"of five shares, where three suffice, the one at position {at} was altered by one"
        _refused(made, id, params, BAD_SHARE, ["SHM-10"], "AlteredShare", comment)
    for id, number, comment in (
        ("shamir-reconstruct-too-large", 2**256, "the number is 2**256"),
        ("shamir-reconstruct-p-minus-one", _PRIME - 1, "the number is p - 1"),
    ):
        moved = number - 1
        params = _given(id, 3, [0, 1, 2, 3], b"\x01" + bytes(31))
        values = [int.from_bytes(bytes.fromhex(text), "little") for text in params["shares"]]
        params["shares"] = [_packed([(value + moved) % _PRIME]) for value in values]
        _refused(made, id, params, BAD_SHARE, ["SHM-11", "ERR-02"], "TooLarge", comment)
