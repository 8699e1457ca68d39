"""Small implementations with conventions of their own, each right, and each with a twin that is wrong.

None of them follows the protocols of the text. Each is written as a stranger would: it declares what it is, and repairs
nothing, but one, which gives raw values.
"""

from __future__ import annotations

import base64
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256, shake_256
from itertools import count
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.conformance.sdk.secagg_adapter import (
    Adapter,
    Reject,
    check_drop,
    element_bytes,
    pack,
    repaired,
    unpack,
    unpack_reals,
)

Played = tuple[list[int], list[int], dict[Any, list[list[int]]]]
"""The sum, the contributors, and the vectors that each party sees."""


@dataclass(frozen=True)
class Foreign:
    """An implementation: how it is built, right or wrong, and a check that finds what is wrong."""

    name: str
    build: Callable[[bool], Adapter]
    found: str


def reject(wrong: bool, message: str) -> None:
    """Refuse a request."""
    if wrong:
        raise Reject("bad_param", message)


def opened(R: str, N: int, t: int, updates: Sequence[str], drop: Mapping[str, list[int]]) -> list[list[int]]:
    """Return the updates of a round as integers, as any implementation with integer inputs checks them."""
    modulus = int(R)
    reject(not 2 <= modulus <= 2**521 or N < 2 or not 1 <= t <= N, "R, N and t do not fit")
    check_drop(dict(drop), N)
    width = element_bytes(modulus)
    reject(any(len(text) % (2 * width) or not text for text in updates), "an update has no whole elements")
    rows = [unpack(text, width) for text in updates]
    reject(len(rows) != N or len(set(map(len, rows))) != 1, "updates have different lengths, or are not N")
    reject(any(value >= modulus for row in rows for value in row), "an element is not below R")
    left = N
    for users in drop.values():
        left -= len(users)
        if left < t:
            raise Reject("below_threshold", f"{left} users are left")
    return rows


def summing(
    name: str, play: Callable[..., Played], bears: Callable[[int], int] | None = None, **declared: Any
) -> Adapter:
    """Return an adapter of ``secagg.sum`` and ``secagg.view`` around a protocol; with `bears`, of coalitions too."""
    adapter = Adapter(name, "1", randomness="none")

    @adapter.operation("secagg.sum", **declared)
    def total(R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> dict[str, Any]:
        summed, users, _ = play(int(R), opened(R, N, t, updates, drop), drop)
        return {"sum": pack(summed, element_bytes(int(R))), "contributors": users}

    @adapter.operation("secagg.view", **declared)
    def view(R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]], viewer: Any) -> dict[str, Any]:
        rows, gone = opened(R, N, t, updates, drop), [user for users in drop.values() for user in users]
        reject(viewer != "server" and (viewer in gone or not 0 <= viewer < N), "nobody like this stays")
        seen = play(int(R), rows, drop)[2].get(viewer, [])
        return {"vectors": [pack(row, element_bytes(int(R))) for row in seen], "strings": []}

    def together(R: str, N: int, t: int, updates: list[str], drop: Any, T: int, viewers: list[Any]) -> dict[str, Any]:
        rows, gone = opened(R, N, t, updates, drop), [user for users in drop.values() for user in users]
        parties = [*(user for user in range(N) if user not in gone), "server"]
        reject(
            not 1 <= T < t or not viewers or viewers != [one for one in parties if one in viewers], "no such viewers"
        )
        reject(len([one for one in viewers if one != "server"]) > T, "too many viewers")
        seen = play(int(R), rows, drop)[2]
        found = [pack(row, element_bytes(int(R))) for one in viewers for row in seen.get(one, [])]
        return {"vectors": found, "strings": []}

    if bears:
        sets = [{**one, "T": bears(one["N"])} for one in declared["parameter_sets"]]
        adapter.operation("secagg.coalition", **{**declared, "parameter_sets": sets})(together)
    return adapter


def pairwise(
    pairs: Callable[[int], list[tuple[int, int]]],
    *,
    masked: Callable[[int], int],
    sign: int = -1,
    through: int | None = None,
) -> Any:
    """Return a protocol in which some pairs of users agree on masks, and nobody may drop out.

    With `through`, this user hands the masks on.
    """

    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        sent = [list(row) for row in rows]
        seen: dict[Any, list[list[int]]] = {user: [] for user in range(len(rows))}
        for first, second in pairs(len(rows)):
            mask = [secrets.randbelow(min(R, masked(R))) for _ in rows[0]]
            sent[first] = [(a + m) % R for a, m in zip(sent[first], mask, strict=True)]
            sent[second] = [(a + sign * m) % R for a, m in zip(sent[second], mask, strict=True)]
            for user in {first, second, *(() if through is None else (through,))}:
                seen[user].append(mask)
        total = [sum(column) % R for column in zip(*sent, strict=True)]
        return total, list(range(len(rows))), {**seen, "server": sent}

    return play


def every_pair(N: int) -> list[tuple[int, int]]:
    """Return all pairs."""
    return [(i, j) for i in range(N) for j in range(i + 1, N)]


def ring(N: int) -> list[tuple[int, int]]:
    """Return each user with the next one."""
    return [(i, (i + 1) % N) for i in range(N)]


NOBODY_MAY_LEAVE: dict[str, Any] = {"parameter_sets": [{"N": N, "t": N} for N in range(3, 9)]}


def modulo_2_64(wrong: bool) -> Adapter:
    """Sums modulo 2^64. Wrong: masks are drawn as 32-bit numbers."""
    play = pairwise(every_pair, masked=lambda R: 2**32 if wrong else R)
    return summing("modulo 2^64", play, ranges={"R": {"values": [str(2**64)]}}, **NOBODY_MAY_LEAVE)


def integers(wrong: bool) -> Adapter:
    """Sums of integers modulo a prime of 127 bits. Wrong: the sum is formed in floating point."""
    right = pairwise(every_pair, masked=lambda R: R)

    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        total, users, seen = right(R, rows, drop)
        return [int(float(value)) % R for value in total] if wrong else total, users, seen

    return summing("integers", play, ranges={"R": {"values": [str(2**127 - 1)]}}, **NOBODY_MAY_LEAVE)


def ring_graph(wrong: bool) -> Adapter:
    """Masks between neighbours on a ring. Wrong: both add the mask."""
    play = pairwise(ring, masked=lambda R: R, sign=1 if wrong else -1)
    return summing("ring", play, ranges={"R": {"max": str(2**32)}}, **NOBODY_MAY_LEAVE)


def dealt(wrong: bool) -> Adapter:
    """Masks between all users, of whom any N - 2 may collude. Wrong: user 0 hands the masks of all on."""
    play = pairwise(every_pair, masked=lambda R: R, through=0 if wrong else None)
    return summing("dealt", play, lambda N: N - 1, ranges={"R": {"max": str(2**32)}}, **NOBODY_MAY_LEAVE)


def numbered(wrong: bool) -> Adapter:
    """Masks of a key of the process and the number of the round. Wrong: the number is one byte."""
    key, number = secrets.token_bytes(32), count()

    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        at = next(number) % (256 if wrong else 2**64)
        sent = [list(row) for row in rows]
        for first, second in every_pair(len(rows)):
            stream = shake_256(key + at.to_bytes(8, "little") + bytes([first, second])).digest(16 * len(rows[0]))
            mask = [int.from_bytes(stream[16 * place :][:16], "little") % R for place in range(len(rows[0]))]
            sent[first] = [(a + m) % R for a, m in zip(sent[first], mask, strict=True)]
            sent[second] = [(a - m) % R for a, m in zip(sent[second], mask, strict=True)]
        return [sum(column) % R for column in zip(*sent, strict=True)], list(range(len(rows))), {"server": sent}

    return summing("numbered", play, ranges={"R": {"values": [str(2**32)]}}, **NOBODY_MAY_LEAVE)


def relayed(wrong: bool) -> Adapter:
    """Each user splits its update among all users; the server relays the parts. Wrong: it relays them in clear."""

    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        N, d, gone = len(rows), len(rows[0]), {*drop["setup"], *drop["input"]}
        senders = [user for user in range(N) if user not in gone]
        parts = {user: [[secrets.randbelow(R) for _ in range(d)] for _ in range(N - 1)] for user in senders}
        for user in senders:
            known = [sum(column) for column in zip(*parts[user], strict=True)]
            parts[user].append([(a - b) % R for a, b in zip(rows[user], known, strict=True)])
        held = [[sum(parts[user][to][at] for user in senders) % R for at in range(d)] for to in range(N)]
        seen: dict[Any, list[list[int]]] = {to: [parts[user][to] for user in senders] for to in range(N)}
        in_clear = [part for user in senders for part in parts[user]] if wrong else []
        return [sum(column) % R for column in zip(*held, strict=True)], senders, {**seen, "server": [*in_clear, *held]}

    return summing("relayed", play, ranges={"R": {"max": str(2**32)}}, **NOBODY_MAY_LEAVE)


def own_share(wrong: bool) -> Adapter:
    """A user of SecAgg that holds no share of its own secrets. Wrong: it gives both secrets of a user."""
    adapter = Adapter("own share", "1", randomness="none", policy={"unmasking.own_share": "none"})

    @adapter.operation("secagg.unmasking", parameter_sets=[{"N": N, "t": N - 1, "k": N - 1} for N in (4, 5, 6)])
    def unmasking(N: int, t: int, k: int, drop: Any, user: int, requests: Any) -> dict[str, Any]:
        reject(k != N - 1 or not 3 <= t <= N, "k or t does not fit")
        check_drop(drop, N)
        reject(not 0 <= user < N or any(user in users for users in drop.values()), "user is not there")
        gone = {*drop["advertise_keys"], *drop["share_keys"]}
        held, done, answers = {other for other in range(N) if other not in gone}, False, []
        for asked in requests:
            survivors, dropped = asked["survivors"], asked["dropped"]
            both = set(survivors) & set(dropped)
            named = [*survivors, *dropped]
            code = "wrong_phase" if done else ""
            code = code or ("duplicate_id" if len(set(survivors)) + len(set(dropped)) < len(named) else "")
            code = code or ("unknown_peer" if any(not 0 <= other < N for other in named) else "")
            code = code or ("inconsistent_sets" if (both and not wrong) or set(named) != held else "")
            code = code or ("inconsistent_sets" if user not in survivors else "")
            code = code or ("below_threshold" if len(survivors) < t else "")
            done = done or not code
            seeds = sorted(other for other in survivors if other != user)
            entry = {"reject": {"code": code, "message": code}} if code else {"seeds": seeds, "keys": sorted(dropped)}
            answers.append(entry)
        return {"answers": answers}

    return adapter


def availability(wrong: bool) -> Adapter:
    """A selector that takes a 0 or a 1 for each user, and has one strategy. Wrong: it may take somebody who is away."""
    adapter = Adapter("availability", "1", randomness="none")

    @adapter.operation("select.batch", ranges={"strategy": {"values": ["random"]}})
    def batch(N: int, K: int, T: int, strategy: str, frequencies: list[int], available: list[int]) -> dict[str, Any]:
        reject(T != 1 or not 1 <= K <= N, "N, K and T do not fit")
        if len(frequencies) != N or any(not 0 <= often < 2**32 for often in frequencies):
            raise Reject("inexpressible", "there are no frequencies in the interface")
        reject(strategy != "random", "there is no such strategy")
        if len(set(available)) < len(available) or any(not 0 <= user < N for user in available):
            raise Reject("inexpressible", "availability is one bit for each user")
        bits = [user in available for user in range(N)]
        here = [user for user in range(N) if bits[user] or wrong]
        return {"chosen": None if sum(bits) < K else sorted(secrets.SystemRandom().sample(here, K))}

    return adapter


def floor_rounding(wrong: bool) -> Adapter:
    """A quantiser that rounds down. Wrong: it rounds towards zero."""
    adapter = Adapter("floor", "1", randomness="none", policy={"quantizer.rounding": "floor"})

    @adapter.operation("quantizer.quantize", ranges={"level": {"min": 1, "max": 1024}})
    def quantize(q: str, level: str, weight: int, x: str) -> dict[str, Any]:
        modulus, c, values = int(q), int(level), unpack_reals(x)
        reject(not 2 <= modulus <= 2**32 or not 1 <= c <= 2**32 or not 1 <= weight < 2**31, "numbers do not fit")
        scaled = [value * c for value in values]
        if any(not math.isfinite(y) or not abs(y) < 2**40 for y in scaled):
            raise Reject("out_of_range", "a number is not finite, or too large")
        found = [(math.trunc if wrong else math.floor)(y) for y in scaled]
        if any(
            weight * max(abs(value), abs(math.ceil(y))) > (modulus - 1) // 2
            for value, y in zip(found, scaled, strict=True)
        ):
            raise Reject("out_of_range", "the sum could wrap")
        return {"value": pack([value % modulus for value in found])}

    return adapter


def binary32(wrong: bool) -> Adapter:
    """A quantiser of numbers of binary32 that computes in binary64. Wrong: it computes in binary32."""
    adapter = Adapter("binary32", "1", randomness="none")
    fine: Any = np.float32 if wrong else np.float64

    @adapter.operation("quantizer.quantize", ranges={"x": {"values": ["binary32"]}})
    def quantize(q: str, level: str, weight: int, x: str) -> dict[str, Any]:
        modulus, c = int(q), int(level)
        with np.errstate(over="ignore"):
            values = np.array(unpack_reals(x)).astype(np.float32).astype(fine)
        reject(not 2 <= modulus <= 2**32 or not 1 <= c <= 2**32 or not 1 <= weight < 2**31, "numbers do not fit")
        bound, scaled = (modulus - 1) // 2 // weight, values * fine(c)
        if not np.isfinite(values).all() or (np.abs(scaled.astype(np.float64)) >= bound + 1).any():
            raise Reject("out_of_range", "a number is not finite, or too large")
        if wrong:
            drawn = np.random.default_rng().random(len(values), dtype=np.float32)
            found = np.floor(scaled + drawn).astype(np.int64)
        else:
            up = np.random.default_rng().random(len(values)) < scaled - np.floor(scaled)
            found = np.floor(scaled).astype(np.int64) + up
        if (np.abs(found) > bound).any():
            raise Reject("out_of_range", "a number is too large")
        return {"value": pack([int(value) % modulus for value in found])}

    return adapter


_PRIME = 2**31 - 1


def coded(wrong: bool, flaw: str) -> Adapter:
    """A code of its own: blocks and noise are a polynomial's values at -1, -2, …; user j gets that at j + 1.

    Wrong by `flaw`: the end of a vector that does not fill its blocks is dropped (``tail``), or the noise is zero
    (``noise``).
    """
    adapter = Adapter("code", "1", randomness="none", policy={"mds.code": "other"})
    declared = {"ranges": {"q": {"values": [str(_PRIME)]}, "N": {"max": 12}}}

    def moved(known: dict[int, list[int]], x: int) -> list[int]:
        total = [0] * len(next(iter(known.values())))
        for at, values in known.items():
            others = [other for other in known if other != at]
            weight = math.prod(x - other for other in others) * pow(math.prod(at - o for o in others), -1, _PRIME)
            total = [(a + weight * b) % _PRIME for a, b in zip(total, values, strict=True)]
        return total

    def fit(q: str, N: int, U: int, T: int) -> None:
        reject(int(q) != _PRIME or not 1 <= T < U <= N <= 12, "q, N, U or T does not fit")

    @adapter.operation("mds.encode", **declared)
    def encode(q: str, N: int, U: int, T: int, mask: str) -> dict[str, Any]:
        fit(q, N, U, T)
        values = unpack(mask)
        reject(not values, "nothing to share")
        if any(value >= _PRIME for value in values):
            raise Reject("noncanonical", "an element is not below q")
        L = -(-len(values) // (U - T))
        keep = len(values) // (U - T) * (U - T) if wrong and flaw == "tail" else len(values)
        padded = [*values[:keep], *[0] * (L * (U - T) - keep)]
        rows = {-1 - at: padded[at * L : at * L + L] for at in range(U - T)}
        most = 1 if wrong and flaw == "noise" else _PRIME
        rows |= {-1 - at: [secrets.randbelow(most) for _ in range(L)] for at in range(U - T, U)}
        return {"shares": [pack(moved(rows, user + 1)) for user in range(N)]}

    @adapter.operation("mds.decode", **declared)
    def decode(q: str, N: int, U: int, T: int, d: int, users: list[int], shares: list[str]) -> dict[str, Any]:
        fit(q, N, U, T)
        reject(d < 1, "d is below 1")
        if len(users) != len(shares) or any(len(text) != 8 * -(-d // (U - T)) for text in shares):
            raise Reject("length_mismatch", "not one share of the right length for each user")
        if len(set(users)) < len(users):
            raise Reject("duplicate_id", "a user twice")
        if any(not 0 <= user < N for user in users):
            raise Reject("unknown_peer", "no such user")
        if len(users) < U:
            raise Reject("below_threshold", "too few")
        rows = {user + 1: unpack(text) for user, text in zip(users, shares, strict=True)}
        if any(value >= _PRIME for row in rows.values() for value in row):
            raise Reject("noncanonical", "an element is not below q")
        first = dict(list(rows.items())[:U])
        if any(moved(first, at) != row for at, row in rows.items()):
            raise Reject("bad_share", "the shares do not belong together")
        blocks = [moved(first, -1 - at) for at in range(U - T)]
        return {"mask": pack([value for block in blocks for value in block][:d])}

    return adapter


def _sharing(name: str, sets: Any, size: int, share: Any, back: Any, thresholds: Any) -> Adapter:
    """Return an adapter of secret sharing; shares have the number of their holder in front."""
    adapter = Adapter(name, "1", randomness="none", policy={"shamir.field": "other"})

    @adapter.operation("shamir.share", **sets)
    def split(t: int, n: int, secret: str) -> dict[str, Any]:
        reject(not 2 <= t <= n or len(secret) != 2 * size, "t, n or the secret does not fit")
        return {
            "shares": [bytes([user]).hex() + part.hex() for user, part in enumerate(share(t, n, bytes.fromhex(secret)))]
        }

    @adapter.operation("shamir.reconstruct", ranges={"t": thresholds})
    def join(t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
        reject(t < 2, "t is below 2")
        if len(users) != len(shares):
            raise Reject("length_mismatch", "not one share for each user")
        if len(set(users)) < len(users):
            raise Reject("duplicate_id", "a user twice")
        if any(not 0 <= user < 256 for user in users):
            raise Reject("unknown_peer", "no such user")
        if len(users) < t:
            raise Reject("below_threshold", "too few")
        data = [bytes.fromhex(text) for text in shares]
        if any(len(part) != len(data[0]) or part[:1] != bytes([user]) for part, user in zip(data, users, strict=True)):
            raise Reject("bad_share", "a share is not the user's")
        return {"secret": back(t, users, [part[1:] for part in data]).hex()}

    return adapter


def _xor(parts: Sequence[bytes]) -> bytes:
    total = bytes(len(parts[0]))
    for part in parts:
        total = bytes(a ^ b for a, b in zip(total, part, strict=True))
    return total


def n_of_n(wrong: bool) -> Adapter:
    """Shares whose sum is the secret; all are needed. Wrong: all but the last share are alike, so that pairs cancel."""

    def share(t: int, n: int, secret: bytes) -> list[bytes]:
        tag = sha256(secret).digest()[:8]
        first = [secrets.token_bytes(len(secret) + 8) for _ in range(1 if wrong else n - 1)] * (n - 1 if wrong else 1)
        return [*first, _xor([*first, secret + tag])]

    def back(t: int, users: Sequence[int], parts: Sequence[bytes]) -> bytes:
        whole = _xor(parts)
        if sha256(whole[:-8]).digest()[:8] != whole[-8:]:
            raise Reject("bad_share", "the shares do not belong together")
        return whole[:-8]

    sets = {"parameter_sets": [{"t": n, "n": n} for n in (3, 5, 7)], "ranges": {"secret": {"values": [32]}}}
    return _sharing("n of n", sets, 32, share, back, {"values": [3, 5, 7]})


def _evaluate(coefficients: Sequence[int], x: int, p: int) -> int:
    return sum(c * pow(x, power, p) for power, c in enumerate(coefficients)) % p


def short_secrets(wrong: bool) -> Adapter:
    """Shamir's sharing of 16-byte secrets. Wrong: zero bytes in front of a secret are lost."""
    p = 2**521 - 1

    def share(t: int, n: int, secret: bytes) -> list[bytes]:
        coefficients = [
            int.from_bytes(secret + sha256(secret).digest()[:8], "big"),
            *(secrets.randbelow(p) for _ in range(t - 1)),
        ]
        return [_evaluate(coefficients, user + 1, p).to_bytes(66, "big") for user in range(n)]

    def back(t: int, users: Sequence[int], parts: Sequence[bytes]) -> bytes:
        def at_zero(chosen: Sequence[int]) -> int:
            total = 0
            for i in chosen:
                weight = 1
                for j in chosen:
                    if j != i:
                        weight = weight * (users[j] + 1) * pow(users[j] - users[i], -1, p) % p
                total += weight * int.from_bytes(parts[i], "big")
            return total % p

        found = {at_zero(range(start, start + t)) for start in range(len(users) - t + 1)}
        if len(found) > 1 or max(found) >= 2**192:
            raise Reject("bad_share", "the shares do not belong together")
        whole = found.pop().to_bytes(24, "big")
        if sha256(whole[:16]).digest()[:8] != whole[16:]:
            raise Reject("bad_share", "the shares do not belong together")
        return whole[:16].lstrip(b"\0") if wrong else whole[:16]

    return _sharing(
        "short secrets", {"ranges": {"secret": {"values": [16]}, "n": {"max": 12}}}, 16, share, back, {"max": 12}
    )


def _streaming(name: str, stream: Callable[[bytes, int], bytes], **ranges: Any) -> Adapter:
    """Return an adapter of a generator of 32-bit words."""
    adapter = Adapter(name, "1", policy={"prg.stream": "other"})

    @adapter.operation("prg.expand", ranges={"q": {"values": [str(2**32)]}, **ranges})
    def expand(q: str, key: str, n: int) -> dict[str, Any]:
        reject(int(q) != 2**32 or n < 0, "only words")
        reject(len(key) // 2 not in ranges.get("key", {"values": [32]})["values"], "another length of keys")
        reject(n % ranges.get("n", {}).get("multiple", 1) != 0, "only whole blocks")
        return {"value": stream(bytes.fromhex(key), 4 * n).hex()}

    return adapter


def short_keys(wrong: bool) -> Adapter:
    """AES-128 in counter mode. Wrong: only half of the key is used."""

    def stream(key: bytes, size: int) -> bytes:
        used = key[:8] * 2 if wrong else key
        return Cipher(algorithms.AES(used), modes.CTR(bytes(16))).encryptor().update(bytes(size))

    return _streaming("short keys", stream, key={"values": [16]})


def blocks(wrong: bool) -> Adapter:
    """A generator that gives whole blocks of 16 words. Wrong: the number of the block is one byte."""

    def stream(key: bytes, size: int) -> bytes:
        numbers = (at % 256 if wrong else at for at in range(size // 64))
        return b"".join(shake_256(key + at.to_bytes(8, "little")).digest(64) for at in numbers)

    return _streaming("blocks", stream, n={"multiple": 16})


def base64_inside(wrong: bool) -> Adapter:
    """Sealed payloads in base64. Wrong: sender and receiver are not bound."""
    adapter = Adapter("base64", "1", randomness="none", policy={"pair.sealing": "other"})

    @adapter.operation("pair.seal")
    def seal(plaintext: str, sender: int, receiver: int, alter: Any) -> dict[str, Any]:
        reject(min(sender, receiver) < 0 or sender == receiver, "two different users")
        key, nonce = ChaCha20Poly1305(secrets.token_bytes(32)), secrets.token_bytes(12)

        def bound(of: int, to: int) -> bytes:
            return b"" if wrong else f"{of} to {to}".encode()

        sealed = nonce + key.encrypt(nonce, bytes.fromhex(plaintext), bound(sender, receiver))
        payload = bytearray(base64.b64encode(sealed))
        changed = bytearray(payload)
        if alter and "byte" in alter:
            changed[alter["byte"] % len(changed)] ^= alter["mask"]
        of, to = (alter or {}).get("sender", sender), (alter or {}).get("receiver", receiver)
        try:
            data = base64.b64decode(bytes(changed), validate=True)
            if base64.b64encode(data) != bytes(changed):
                raise ValueError("another spelling")
            opened = key.decrypt(data[:12], data[12:], bound(of, to))
        except (InvalidTag, ValueError):
            raise Reject("bad_ciphertext", "it does not open") from None
        return {"opened": opened.hex(), "payload": payload.hex()}

    return adapter


def mersenne_127(wrong: bool) -> Adapter:
    """Arithmetic modulo 2^127 - 1, in limbs of 64 bits. Wrong: the upper limb of a product is cut by a bit."""
    q, adapter = 2**127 - 1, Adapter("mersenne 127", "1", randomness="none", policy={"quantizer.rounding": "nearest"})
    only: dict[str, Any] = {"ranges": {"q": {"values": [str(q)]}}}

    def read(given: str, *texts: str) -> list[list[int]]:
        reject(int(given) != q, "another modulus")
        rows = [unpack(text, 16) for text in texts]
        if any(value >= q for row in rows for value in row):
            raise Reject("noncanonical", "an element is not below q")
        if len(set(map(len, rows))) > 1:
            raise Reject("length_mismatch", "vectors of two lengths")
        return rows

    @adapter.operation("field.multiply", **only)
    def multiply(q: str, a: str, b: str) -> dict[str, Any]:
        mask = 2**253 - 1 if wrong else 2**254 - 1
        products = ((x * y) & mask for x, y in zip(*read(q, a, b), strict=True))
        return {"value": pack([product % int(q) for product in products], 16)}

    @adapter.operation("field.inverse", **only)
    def inverse(q: str, a: str) -> dict[str, Any]:
        (values,) = read(q, a)
        reject(0 in values, "0 has no inverse")
        return {"value": pack([pow(value, -1, int(q)) for value in values], 16)}

    @adapter.operation("quantizer.quantize", ranges={**only["ranges"], "level": {"values": [str(2**64), str(2**20)]}})
    def quantize(q: str, level: str, weight: int, x: str) -> dict[str, Any]:
        reject(int(q) != 2**127 - 1 or int(level) not in (2**64, 2**20) or not 1 <= weight < 2**31, "no such scale")
        values = []
        for number in unpack_reals(x):
            if not math.isfinite(number * int(level)):
                raise Reject("out_of_range", "not finite")
            values.append(round(Fraction(number) * int(level)))
            if abs(values[-1]) * weight > int(q) // 2:
                raise Reject("out_of_range", "the sum could wrap")
        return {"value": pack([value % int(q) for value in values], 16)}

    return adapter


def repairing(wrong: bool) -> Adapter:
    """Its adapter reduces sums, and gives them raw as well. Wrong: the server adds up without a reduction."""
    adapter = Adapter("repaired", "1", randomness="none")

    @adapter.operation("secagg.sum", raw=["sum"], **NOBODY_MAY_LEAVE)
    def total(R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> dict[str, Any]:
        modulus, rows = int(R), opened(R, N, t, updates, drop)
        given = [sum(column) if wrong else sum(column) % modulus for column in zip(*rows, strict=True)]
        answer = pack([value % modulus for value in given], element_bytes(modulus))
        return {"sum": repaired(answer, given), "contributors": [*range(N)]}

    return adapter


FOREIGN = [
    Foreign("mersenne-127", mersenne_127, "field.multiply/exact"),
    Foreign("modulo-2-64", modulo_2_64, "privacy/secagg.view/contrast"),
    Foreign("integers", integers, "secagg.sum/exact"),
    Foreign("ring-graph", ring_graph, "secagg.sum/exact"),
    Foreign("dealt", dealt, "privacy/secagg.coalition"),
    Foreign("numbered", numbered, "privacy/secagg.view/rounds"),
    Foreign("relayed", relayed, "privacy/secagg.view"),
    Foreign("own-share", own_share, "secagg.unmasking/both-sets"),
    Foreign("availability", availability, "select.batch/fits"),
    Foreign("floor-rounding", floor_rounding, "quantizer.quantize/neighbours"),
    Foreign("binary32", binary32, "quantizer.quantize/rate"),
    Foreign("no-padding", partial(coded, flaw="tail"), "mds/any-shares/blocks"),
    Foreign("no-noise", partial(coded, flaw="noise"), "privacy/mds.encode/seeds"),
    Foreign("n-of-n", n_of_n, "shamir.share/hides"),
    Foreign("short-secrets", short_secrets, "shamir/any-shares"),
    Foreign("short-keys", short_keys, "prg.expand/distinct"),
    Foreign("blocks", blocks, "prg.expand/long"),
    Foreign("repairing", repairing, "secagg.sum/raw"),
    Foreign("base64-inside", base64_inside, "pair.seal/another-user"),
]
