"""Planted bugs that leak: codes and masks that tell somebody something, and draws that are fewer than they seem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from hashlib import sha256
from itertools import count
from typing import Any

import numpy as np

from secagg_spec.arithmetic import mds
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.shamir import element_bytes
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.wrapped import BUILD
from secagg_spec.conformance.outside import chance, leaks
from secagg_spec.conformance.outside.leaks import Entry
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, unpack
from secagg_spec.conformance.targets import reference, reference_pairs
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.crypto import prg
from secagg_spec.crypto.entropy import SeededSource, draw_below, draw_coefficients, draw_elements, draw_rounding
from secagg_spec.protocols import lightsecagg, secagg

Function = Callable[..., Any]
Sampler = Callable[[dict[str, Any], bytes], dict[str, Any]]
"""Returns the sampled values of a request by name, from a seed."""

_CODE = "secagg_spec.arithmetic.mds:MaskCode"
_SECAGG = "secagg_spec.protocols.secagg"
_TESTS = "tests/conformance/test_outside.py::"
_SEED = bytes(range(32))
_SMALL = mds.MaskCode(PrimeField(97), 5, 4, 2)
_MASK = np.arange(1, 5, dtype=np.uint64)
_NOISE = np.array([[3, 5], [7, 11]], dtype=np.uint64)


# ------------------------------------------------------------------------------------------- what a matrix shows


def _shares() -> object:
    return _SMALL.encode(_MASK, _NOISE).tolist()


@mutant(
    "noise-for-two-columns",
    "MDS-10",
    "privacy: the noise of the first column hides all columns, so that differences of a share are those of the mask",
    f"{_CODE}.encode",
    _shares,
    kind="privacy",
    source="used twice",
)
def _one_column(right: Function) -> Function:
    return lambda self, mask, noise: right(self, mask, np.repeat(noise[:, :1], noise.shape[1], axis=1))


@mutant(
    "noise-rows-alike",
    "MDS-10",
    "privacy: the second row of noise is the first one again, so that T users take it off their shares",
    f"{_CODE}.encode",
    _shares,
    kind="privacy",
    source="used twice",
)
def _rows_alike(right: Function) -> Function:
    return lambda self, mask, noise: right(self, mask, np.concatenate([noise[:1], noise[:1], noise[2:]])[: len(noise)])


@mutant(
    "share-in-clear",
    "MDS-10",
    "privacy: the last user holds a piece of the mask in clear, beside shares that are right",
    f"{_CODE}.encode",
    _shares,
    kind="privacy",
    source="wrong term",
)
def _in_clear(right: Function) -> Function:
    def wrong(self: mds.MaskCode, mask: UintArray, noise: UintArray) -> UintArray:
        shares: UintArray = right(self, mask, noise)
        shares[-1] = self.sub_masks(mask)[0]
        return shares

    return wrong


@mutant(
    "mask-repeats",
    "LSA-02",
    "privacy: the first element of the mask is added everywhere, so that differences of an update lie bare",
    "secagg_spec.protocols.lightsecagg:mask_update",
    lambda: lightsecagg.mask_update(PrimeField(97), _MASK, _MASK).tolist(),
    kind="privacy",
    source="used twice",
)
def _repeats(right: Function) -> Function:
    return lambda field, update, mask: right(field, update, np.repeat(mask[:1], len(mask)) if len(mask) else mask)


@mutant(
    "mask-of-one-neighbour",
    "SAG-12",
    "privacy: of the masks shared with neighbours only the first is put on an input, so that one user unmasks it",
    f"{_SECAGG}:mask_update",
    lambda: secagg.mask_update(Ring(97), 0, _MASK, _MASK, [(1, _MASK), (2, _MASK)]).tolist(),
    kind="privacy",
    source="clause in part",
)
def _one_neighbour(right: Function) -> Function:
    def wrong(ring: Ring, user: int, update: UintArray, self_mask: Any, pairwise: Any) -> Any:
        return right(ring, user, update, self_mask, list(pairwise)[:1])

    return wrong


# ---------------------------------------------------------------------------------------- draws of the implementation


def _source(seed: bytes) -> SeededSource:
    return SeededSource(seed, "outside")


def _to_16_bits(seed: bytes) -> bytes:
    """Return 16 bits of a digest of a seed: no two seeds show it at sight, many do."""
    return sha256(seed).digest()[:2]


def _to_32_bits(seed: bytes) -> bytes:
    """Return the first 32 bits of a seed, as many generators take it."""
    return seed[:4]


def _summed(seed: bytes) -> bytes:
    """Return the sum of the words of a seed modulo 2**32."""
    total = int(np.frombuffer(seed, "<u4").sum(dtype=np.uint64))
    return (total & 2**32 - 1).to_bytes(4, "little")


def _columns(given: Mapping[str, Any]) -> int:
    return -(-len(unpack(given["mask"])) // max(int(given["U"]) - int(given["T"]), 1))


def _noise(given: dict[str, Any], seed: bytes, below: int = 0) -> dict[str, Any]:
    """Draw noise below the modulus less `below`."""
    ring = Ring(max(int(given["q"]) - below, 2))
    return {"noise": pack(draw_elements(_source(seed), ring, (max(given["T"], 0) * _columns(given),)))}


def _coefficients(given: dict[str, Any], seed: bytes) -> dict[str, Any]:
    count = min(max(given["t"], 1), 2**16) - 1
    return {"coefficients": b"".join(map(element_bytes, draw_coefficients(_source(seed), count))).hex()}


def _rounding(given: dict[str, Any], seed: bytes) -> dict[str, Any]:
    return {"rounding": pack_reals(draw_rounding(_source(seed), len(given["x"]) // 16))}


def _light(given: dict[str, Any], seed: bytes, below: int = 0) -> dict[str, Any]:
    """Draw the mask and the noise of a user; where the numbers make no sense, none, and they are refused."""
    parts, d = max(given["U"] - given["T"], 1), max(given["d"], 0)
    source, ring = _source(seed), Ring(max(int(given["q"]) - below, 2))
    rows = max(given["T"], 0) * -(-d // parts)
    return {"mask": pack(draw_elements(source, ring, (d,))), "noise": pack(draw_elements(source, ring, (rows,)))}


def _seeded(operation: str, sample: Sampler) -> Callable[[Function], Function]:
    """Return what makes a reference that draws the sampled values of an operation itself, from a seed."""

    def build(right: Function) -> Function:
        def wrong() -> Adapter:
            adapter: Adapter = right()
            asked = adapter._handlers[operation]

            @adapter.operation(operation, randomness="seeded")
            def answer(rand: Mapping[str, str], **given: Any) -> Any:
                return asked(**given, rand=sample(given, bytes.fromhex(rand["seed"])))

            return adapter

        return wrong

    return build


def _answered(operation: str, params: dict[str, Any], **members: Any) -> object:
    """Return the result of a request, or what came instead."""
    answer = reference.build().answer({"id": 1, "op": operation, "params": params, **members})
    return answer.get("result", sorted(answer))


_RAND = {"seed": _SEED.hex()}
_ENCODING = {"q": "97", "N": 5, "U": 4, "T": 2, "mask": pack(_MASK)}
_SHARING = {"t": 3, "n": 4, "secret": _SEED.hex()}

mutant(
    "noise-from-16-bits",
    "MDS-10",
    "privacy: the generator of the noise is seeded with 16 bits, so that a share can be unmasked by trying all of them",
    BUILD,
    lambda: _answered("mds.encode", _ENCODING, rand=_RAND),
    kind="privacy",
    source="weak draw: a seed of 16 bits",
)(_seeded("mds.encode", lambda given, seed: _noise(given, _to_16_bits(seed))))

mutant(
    "noise-from-32-bits",
    "MDS-10",
    "privacy: the generator of the noise is seeded with the first 32 bits of a seed",
    BUILD,
    lambda: _answered("mds.encode", _ENCODING, rand=_RAND),
    kind="privacy",
    source="weak draw: a seed of 32 bits",
)(_seeded("mds.encode", lambda given, seed: _noise(given, _to_32_bits(seed))))

mutant(
    "noise-without-the-last-residue",
    "MDS-10",
    "privacy: a range of noise without its upper end: a share never has some value, which rules masks out",
    BUILD,
    lambda: _answered("mds.encode", _ENCODING, rand=_RAND),
    kind="privacy",
    source="weak draw: a range without its upper end",
)(_seeded("mds.encode", lambda given, seed: _noise(given, seed, 1)))

mutant(
    "coefficients-from-16-bits",
    "SHM-12",
    "privacy: the generator of the coefficients is seeded with 16 bits: one share gives the secret by trying",
    BUILD,
    lambda: _answered("shamir.share", _SHARING, rand=_RAND),
    kind="privacy",
    source="weak draw: a seed of 16 bits",
)(_seeded("shamir.share", lambda given, seed: _coefficients(given, _to_16_bits(seed))))

mutant(
    "coefficients-from-a-sum-of-words",
    "SHM-12",
    "privacy: the seed of the coefficients is folded to 32 bits by adding its words",
    BUILD,
    lambda: _answered("shamir.share", _SHARING, rand=_RAND),
    kind="privacy",
    source="weak draw: a seed that is folded to 32 bits",
)(_seeded("shamir.share", lambda given, seed: _coefficients(given, _summed(seed))))

_QUANTISING = {"q": "97", "level": "2", "weight": 1, "x": pack_reals(np.full(30, 0.25))}

mutant(
    "rounding-from-32-bits",
    "QNT-03",
    "bias: roundings repeat once the first 32 bits of a seed do",
    BUILD,
    lambda: _answered("quantizer.quantize", _QUANTISING, rand=_RAND),
    kind="sum",
    source="weak draw: a seed of 32 bits",
)(_seeded("quantizer.quantize", lambda given, seed: _rounding(given, _to_32_bits(seed))))

_USER = {
    **dict.fromkeys(("D", "user"), 0),
    "q": "97",
    "N": 4,
    "U": 2,
    "T": 1,
    "d": 3,
    "session": bytes(16).hex(),
    "round": "0",
    "channel": "plain",
    "update": pack(np.zeros(3, np.uint64)),
    "steps": [{"phase": "share", "inbox": []}],
}

mutant(
    "user-mask-from-32-bits",
    "LSA-02",
    "privacy: a user's mask comes from the first 32 bits of a seed, so that the server tries them on the masked update",
    BUILD,
    lambda: _answered("lightsecagg.user", _USER, rand=_RAND),
    kind="privacy",
    source="weak draw: a seed of 32 bits",
)(_seeded("lightsecagg.user", lambda given, seed: _light(given, _to_32_bits(seed))))

mutant(
    "user-mask-never-changes",
    "LSA-02",
    "privacy: a user has one mask for all rounds, so that masked updates of two rounds give their difference",
    BUILD,
    lambda: _answered("lightsecagg.user", _USER, rand=_RAND),
    kind="privacy",
    source="used twice",
)(_seeded("lightsecagg.user", lambda given, seed: _light(given, b"")))

mutant(
    "user-mask-without-the-last-residue",
    "LSA-02",
    "privacy: a mask is never q - 1, so that each masked element rules one value out",
    BUILD,
    lambda: _answered("lightsecagg.user", _USER, rand=_RAND),
    kind="privacy",
    source="weak draw: a range without its upper end",
)(_seeded("lightsecagg.user", lambda given, seed: _light(given, seed, 1)))


def _chosen_at_random(seed_of: Callable[[bytes], bytes]) -> Callable[[Function], Function]:
    """Return what makes a reference that draws its choices itself, where single users are chosen at random."""

    def build(right: Function) -> Function:
        def wrong() -> Adapter:
            adapter: Adapter = right()

            @adapter.operation("select.batch", randomness="seeded")
            def choose(N: int, K: int, available: list[int], rand: Mapping[str, str], **given: Any) -> dict[str, Any]:
                source = _source(seed_of(bytes.fromhex(rand["seed"])))
                left = sorted(available)
                places = draw_below(source, [len(left) - at for at in range(min(K, len(left)))])
                return {"chosen": sorted(left.pop(place) for place in places)}

            return adapter

        return wrong

    return build


mutant(
    "choices-from-8-bits",
    "MRA-07",
    "who takes part can be foretold: choices come from 8 bits of a digest of a seed",
    BUILD,
    lambda: _answered(
        "select.batch",
        {**dict.fromkeys(("N", "K"), 4), "T": 1, "strategy": "random", "frequencies": [0] * 4, "available": [0, 1, 2]},
        rand=_RAND,
    ),
    kind="privacy",
    source="weak draw: a seed of 8 bits",
)(_chosen_at_random(lambda seed: _to_16_bits(seed)[:1]))


_PAIRS = "secagg_spec.conformance.targets.reference_pairs"


@mutant(
    "key-pairs-from-5-bits",
    "KEY-06",
    "privacy: key pairs come from a counter of 5 bits, so that they come again",
    f"{_PAIRS}:draw_private",
    lambda: len({reference_pairs.draw_private() for _ in range(300)}),
    also=("SEA-06",),
    kind="privacy",
    source="weak draw: a counter of 5 bits",
)
def _few_pairs(right: Function) -> Function:
    drawn = count()
    return lambda: sha256(bytes([next(drawn) & 31])).digest()


# ----------------------------------------------------------------------------------------------- other generators


def _own_stream(expand: Callable[[bytes, Ring, int], UintArray]) -> Callable[[Function], Function]:
    """Return what makes a reference that declares a generator of its own."""

    def build(right: Function) -> Function:
        def wrong() -> Adapter:
            adapter: Adapter = right()
            adapter.hello["policy"] = {**adapter.hello["policy"], "prg.stream": "other"}
            asked = adapter._handlers["prg.expand"]

            @adapter.operation("prg.expand")
            def answer(q: str, key: str, n: int) -> dict[str, Any]:
                asked(q=q, key=key, n=0 if n >= 0 else n)
                return {"value": pack(expand(bytes.fromhex(key), Ring(int(q)), n))}

            return adapter

        return wrong

    return build


_STREAM = {"q": "97", "key": _SEED.hex(), "n": 8}

mutant(
    "own-stream-from-a-sum-of-words",
    "PRG-05",
    "privacy: a generator of the implementation's own is seeded with the sum of the words of its key, 32 bits",
    BUILD,
    lambda: _answered("prg.expand", _STREAM),
    kind="privacy",
    source="weak draw: a key that is folded to 32 bits",
)(_own_stream(lambda key, ring, n: prg.expand(sha256(_summed(key)).digest(), ring, n)))

mutant(
    "own-stream-without-its-upper-end",
    "PRG-04",
    "privacy: a generator of the implementation's own leaves out the largest of more than 64 elements",
    BUILD,
    lambda: _answered("prg.expand", {**_STREAM, "n": 300}),
    kind="privacy",
    source="seen in Flower 1.41.0: privacy/prg.expand/residues",
)(_own_stream(lambda key, ring, n: prg.expand(key, Ring(ring.modulus - (ring.modulus > 64)), n)))


# ------------------------------------------------------------------------------------------------ the kit itself

_LEAKS = "secagg_spec.conformance.outside.leaks"
_CHANCE = "secagg_spec.conformance.outside.chance"
_ENTRIES = (
    Entry("a", 0, (1, 0), (1,)),
    Entry("b", 1, (1, 1), (1,)),
    Entry("c", 2, (1, 0), (0,)),
)


def _smallest() -> object:
    leak = leaks.smallest(7, _ENTRIES, ("s", "t"), range(3), 2)
    return leak and (leak.coalition, leak.weights, leak.learned)


@mutant(
    "largest-coalition-named",
    "CNF-30",
    "report: of the coalitions that learn something, the largest is named",
    f"{_LEAKS}:coalitions",
    _smallest,
    reach=_TESTS + "test_the_smallest_coalition_is_named",
    kind="sum",
    source="other rule: the largest coalition",
)
def _largest(right: Function) -> Function:
    return lambda users, most, limit: iter(list(right(users, most, limit))[::-1])


@mutant(
    "combination-of-another-leak",
    "CNF-30",
    "report: the weights are not those with which the entries give what is learned",
    f"{_LEAKS}:find",
    _smallest,
    reach=_TESTS + "test_a_leak_can_be_computed_from_the_transcript",
    kind="sum",
    source="wrong term",
)
def _other_weights(right: Function) -> Function:
    def wrong(*arguments: Any, **named: Any) -> Any:
        leak = right(*arguments, **named)
        return leak and type(leak)(**{**vars(leak), "weights": tuple(2 * w for w in leak.weights)})

    return wrong


@mutant(
    "alarms-twice-as-often-as-stated",
    "CNF-31",
    "report: the probability of equal draws is stated as half of what it is",
    f"{_CHANCE}:collision_bound",
    lambda: chance.collision_bound(5, 64),
    reach=_TESTS + "test_the_probability_of_equal_draws_is_bounded",
    kind="sum",
    source="arithmetic: a factor of two in a bound",
)
def _half(right: Function) -> Function:
    return lambda n, size: right(n, size) * Fraction(1, 2)


@mutant(
    "too-few-draws-for-all-residues",
    "CNF-31",
    "report: residues are counted in half the draws that the stated probability of a false alarm needs",
    f"{_CHANCE}:enough",
    lambda: chance.enough(7),
    reach=_TESTS + "test_as_many_draws_as_the_stated_rate_needs",
    kind="sum",
    source="arithmetic: a factor of two in a count",
)
def _too_few(right: Function) -> Function:
    return lambda q: right(q) // 2


@mutant(
    "pass-without-what-it-cannot-see",
    "CNF-31",
    "report: a pass that rests on chance says nothing of what it cannot see",
    f"{_CHANCE}:said",
    lambda: chance.said(["as far as it goes"]),
    reach=_TESTS + "test_a_pass_by_chance_says_what_it_cannot_see",
    kind="sum",
    source="clause left out",
)
def _silent(right: Function) -> Function:
    return lambda limits: ""
