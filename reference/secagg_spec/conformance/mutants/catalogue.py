"""The catalogue of planted bugs, by part of the text: mistakes seen in released code, and rules left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import mds, modular, quantizer, sampling
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets import reference
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import BadShare, LengthMismatch, ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols import lightsecagg

Function = Callable[..., Any]
_RING = "secagg_spec.arithmetic.modular:Ring"
_FIELD = "secagg_spec.arithmetic.modular:PrimeField"
_CODE = "secagg_spec.arithmetic.mds:MaskCode"
_QUANTIZER = "secagg_spec.arithmetic.quantizer"
_LSA = "secagg_spec.protocols.lightsecagg"


def _vector(*values: int) -> UintArray:
    return np.array(values, dtype=np.uint64)


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails, as something that can be compared."""
    try:
        result = call()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__
    return result.tolist() if isinstance(result, np.ndarray) else result


def _largest() -> UintArray:
    return np.full((2, 2), modular.DEFAULT_PRIME - 1, dtype=np.uint64)


_FIELD7 = modular.PrimeField(7)
_LARGER = {"q": "65537", "a": "02010000", "b": "00000000"}
_TINY = lightsecagg.PRESETS["tiny"]


def _codeword(field: modular.PrimeField = _FIELD7) -> tuple[mds.MaskCode, UintArray]:
    code = mds.MaskCode(field, 5, 3, 1)
    return code, code.encode(_vector(4, 0, 6), _vector(2, 5).reshape(1, 2))


def _encoded() -> object:
    return _codeword()[1].tolist()


def _decoded(users: Sequence[int], altered: int | None = None) -> object:
    code, shares = _codeword()
    chosen = shares[list(users)].copy()
    if altered is not None:
        chosen[altered] = code.field.add(chosen[altered], _vector(1, 1))
    return _outcome(lambda: code.decode(users, chosen, 3))


def _padded_by_one() -> object:
    code = mds.MaskCode(_FIELD7, 5, 3, 1)
    shares = code.encode(_vector(4, 0, 6, 1), _vector(2, 5).reshape(1, 2))
    return _outcome(lambda: code.decode((0, 1, 2), shares[:3], 3))


def _quantized(x: float, *, draw: float = 0.5, weight: int = 1, level: int = 1) -> object:
    ring, number = modular.Ring(101), np.array([x])
    return _outcome(
        lambda: quantizer.quantize(number, level=level, ring=ring, weight=weight, rounding=np.array([draw]))
    )


def _aggregated(surviving: Sequence[int], held: int = 5) -> object:
    shares = {user: _vector(user + 1) for user in range(held)}
    return _outcome(lambda: lightsecagg.aggregate_shares(_FIELD7, 5, 1, surviving, shares))


def _round(dropouts: Mapping[str, Sequence[int]]) -> object:
    drawn = lightsecagg.draw_randomness(_TINY, {user: SeededSource(b"w", str(user)) for user in range(_TINY.N)})
    updates = np.arange(15, dtype=np.uint64).reshape(5, 3) % np.uint64(7)
    return _outcome(
        lambda: (
            lightsecagg.run_round(
                _TINY, updates, randomness=drawn, dropouts=dropouts, session=bytes(16), round=0
            ).aggregate
        )
    )


# ----------------------------------------------------------------------------------------- integers modulo R


@mutant(
    "subtract-wraps-at-2-64",
    "MOD-03",
    "wrong sum: an unsigned difference wraps modulo 2**64 instead of modulo R",
    f"{_RING}.subtract",
    lambda: _FIELD7.subtract(_vector(1), _vector(2)).tolist(),
    kind="sum",
    source="arithmetic: overflow",
)
def _subtract(right: Function) -> Function:
    return lambda self, a, b: (a - b) % np.uint64(self.modulus)


@mutant(
    "difference-the-other-way",
    "MOD-03",
    "wrong sum: the first vector is subtracted from the second",
    f"{_RING}.subtract",
    lambda: _FIELD7.subtract(_vector(1), _vector(2)).tolist(),
    kind="sum",
    source="order",
)
def _other_way(right: Function) -> Function:
    return lambda self, a, b: right(self, b, a)


@mutant(
    "empty-vectors-refused",
    "MOD-03",
    "availability: vectors of no elements are refused",
    f"{_RING}._pair",
    lambda: _outcome(lambda: _FIELD7.add(_vector(), _vector())),
    kind="refusal",
    source="clause too strict",
)
def _no_elements(right: Function) -> Function:
    def wrong(self: modular.Ring, a: UintArray, b: UintArray) -> tuple[UintArray, UintArray]:
        if not a.size:
            raise ParameterError("a", a, "not empty")
        pair: tuple[UintArray, UintArray] = right(self, a, b)
        return pair

    return wrong


@mutant(
    "highest-byte-first",
    "MOD-03",
    "wrong encoding: elements are written with the highest byte first",
    "secagg_spec.conformance.targets.reference:pack",
    lambda: reference.build().answer({"id": 1, "op": "field.add", "params": _LARGER}),
    kind="form",
    source="encoding",
)
def _highest_first(right: Function) -> Function:
    return lambda vector: vector.astype(">u4").tobytes().hex()


@mutant(
    "text-loses-characters",
    "ADP-01",
    "wrong encoding: text loses the characters outside ASCII",
    "secagg_spec.conformance.sdk.secagg_adapter:Adapter.answer",
    lambda: reference.build().answer({"id": 1, "op": "echo", "params": {"data": "é"}}),
    kind="form",
    source="encoding",
)
def _ascii(right: Function) -> Function:
    def wrong(self: Adapter, request: dict[str, Any]) -> Any:
        answer = json.dumps(right(self, request), ensure_ascii=False)
        return json.loads(answer.encode("ascii", "ignore"))

    return wrong


@mutant(
    "product-in-int64",
    "MOD-03",
    "wrong product: a signed 64-bit product overflows from q = 2**31.5 on",
    f"{_RING}.multiply",
    lambda: modular.PrimeField().multiply(_largest(), _largest()).tolist(),
    kind="sum",
    source="arithmetic: overflow",
)
def _multiply(right: Function) -> Function:
    def wrong(self: modular.Ring, a: UintArray, b: UintArray) -> UintArray:
        right(self, a, b)
        return np.mod(a.astype(np.int64) * b.astype(np.int64), np.int64(self.modulus)).astype(np.uint64)

    return wrong


@mutant(
    "matmul-in-int64",
    "MOD-04",
    "wrong shares: sums of products overflow a signed 64-bit accumulator for large fields",
    f"{_RING}.matmul",
    lambda: modular.PrimeField().matmul(_largest(), _largest()).tolist(),
    kind="sum",
    source="seen in FedML 0.9.6: mds/sum",
)
def _matmul(right: Function) -> Function:
    def wrong(self: modular.Ring, a: UintArray, b: UintArray) -> UintArray:
        right(self, a, b)
        return np.mod(a.astype(np.int64) @ b.astype(np.int64), np.int64(self.modulus)).astype(np.uint64)

    return wrong


@mutant(
    "matrix-read-by-columns",
    "MOD-04",
    "wrong shares: the right matrix is read column by column",
    f"{_RING}.matmul",
    lambda: _FIELD7.matmul(_vector(1, 2).reshape(1, 2), _vector(1, 2, 3, 4).reshape(2, 2)).tolist(),
    kind="sum",
    source="order",
)
def _by_columns(right: Function) -> Function:
    return lambda self, a, b: right(self, a, np.ascontiguousarray(b.reshape(b.shape[::-1]).T))


@mutant(
    "empty-matrix-products-refused",
    "MOD-08",
    "failure: a matrix product with a dimension of 0 is refused",
    f"{_RING}.matmul",
    lambda: _outcome(lambda: _FIELD7.matmul(_vector().reshape(2, 0), _vector().reshape(0, 3)).tolist()),
    kind="refusal",
    source="clause too strict",
)
def _no_empty(right: Function) -> Function:
    def wrong(self: modular.Ring, a: UintArray, b: UintArray) -> UintArray:
        if a.ndim == b.ndim == 2 and 0 in (*a.shape, *b.shape):
            raise LengthMismatch("a", a, "a matrix with rows and columns")
        return right(self, a, b)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "no-inner-terms-give-nothing",
    "MOD-08",
    "form: a matrix product without inner terms is empty, and not zeros",
    f"{_RING}.matmul",
    lambda: _FIELD7.matmul(_vector().reshape(2, 0), _vector().reshape(0, 3)).tolist(),
    kind="form",
    source="other rule: a sum of nothing is nothing",
)
def _nothing(right: Function) -> Function:
    def wrong(self: modular.Ring, a: UintArray, b: UintArray) -> UintArray:
        return right(self, a, b)[:, : b.size]  # type: ignore[no-any-return]

    return wrong


@mutant(
    "inverse-exponent-off-by-one",
    "MOD-05",
    "wrong decoding: the inverse is the power q - 1, which is 1",
    f"{_FIELD}.inverse",
    lambda: _FIELD7.inverse(_vector(3)).tolist(),
    kind="sum",
    source="off by one",
)
def _exponent(right: Function) -> Function:
    def wrong(self: modular.PrimeField, a: UintArray) -> UintArray:
        right(self, a)
        return self._power(a, self.modulus - 1)

    return wrong


@mutant(
    "inverse-of-zero",
    "MOD-05",
    "acceptance: 0 gets an inverse, so that equal points decode to garbage",
    f"{_FIELD}.inverse",
    lambda: _outcome(lambda: _FIELD7.inverse(_vector(0))),
    kind="acceptance",
    source="seen in FedML 0.9.6: field.inverse/zero",
)
def _inverse(right: Function) -> Function:
    return lambda self, a: self._power(a, self.modulus - 2)


@mutant(
    "elements-are-reduced",
    "MOD-06",
    "acceptance: numbers outside the field are reduced in silence",
    f"{_RING}.check",
    lambda: _outcome(lambda: _FIELD7.add(_vector(9), _vector(0))),
    also=("LSA-03", "ERR-02"),
    kind="acceptance",
    source="seen in FedML 0.9.6: lightsecagg.mask/noncanonical",
)
def _reduced(right: Function) -> Function:
    def wrong(self: modular.Ring, name: str, value: object, shape: tuple[int | None, ...]) -> UintArray:
        if isinstance(value, np.ndarray) and value.dtype == np.uint64:
            value = value % np.uint64(self.modulus)
        checked: UintArray = right(self, name, value, shape)
        return checked

    return wrong


@mutant(
    "composite-modulus",
    "MOD-02",
    "acceptance: a composite modulus passes for a field, and not every share set decodes",
    "secagg_spec.arithmetic.modular:is_prime",
    lambda: _outcome(lambda: modular.PrimeField(15).modulus),
    kind="acceptance",
    source="seen in FedML 0.9.6: */composite",
)
def _prime(right: Function) -> Function:
    return lambda n: n % 2 == 1


@mutant(
    "sampler-without-rejection",
    "RND-02",
    "privacy: words are reduced without rejection, so that masks are not uniform",
    "secagg_spec.arithmetic.sampling:elements_from_bytes",
    lambda: sampling.elements_from_bytes(modular.Ring(3), b"\xff" * 4 + b"\x01" + bytes(3), 1).tolist(),
    kind="privacy",
    source="weak draw: reduced without rejection",
)
def _sampler(right: Function) -> Function:
    def wrong(ring: modular.Ring, data: bytes, n: int) -> UintArray:
        right(ring, data, n)
        return np.frombuffer(data, dtype="<u4", count=n).astype(np.uint64) % np.uint64(ring.modulus)

    return wrong


@mutant(
    "words-with-highest-byte-first",
    "RND-02",
    "wrong masks: the words of the stream are read with the highest byte first",
    "secagg_spec.arithmetic.sampling:elements_from_bytes",
    lambda: sampling.elements_from_bytes(_FIELD7, bytes([0, 1, 0, 0]), 1).tolist(),
    kind="form",
    source="encoding",
)
def _words(right: Function) -> Function:
    def wrong(ring: modular.Ring, data: bytes, n: int) -> UintArray:
        words = np.frombuffer(data, dtype=">u4", count=len(data) // 4)
        return right(ring, words.astype("<u4").tobytes(), n)  # type: ignore[no-any-return]

    return wrong


# -------------------------------------------------------------------------------------------------- the code


@mutant(
    "points-from-zero",
    "MDS-04",
    "privacy: user 0 has the point 0 and holds the first sub-mask in clear",
    f"{_FIELD}.powers",
    _encoded,
    kind="privacy",
    source="off by one",
)
def _points(right: Function) -> Function:
    return lambda self, points, count: right(self, points - np.uint64(1), count)


@mutant(
    "noise-first",
    "MDS-04",
    "wrong shares: the noise rows stand before the sub-masks",
    f"{_CODE}.encode",
    _encoded,
    kind="sum",
    source="order",
)
def _noise_first(right: Function) -> Function:
    def wrong(self: mds.MaskCode, mask: UintArray, noise: UintArray) -> UintArray:
        right(self, mask, noise)
        return self.field.matmul(np.ascontiguousarray(self.columns.T), np.concatenate([noise, self.sub_masks(mask)]))

    return wrong


@mutant(
    "padding-in-front",
    "MDS-03",
    "wrong sum: zeros are put before the vector when U - T does not divide d",
    f"{_CODE}.sub_masks",
    _encoded,
    kind="sum",
    source="other rule: padding in front",
)
def _padding(right: Function) -> Function:
    def wrong(self: mds.MaskCode, mask: UintArray) -> UintArray:
        rows: UintArray = right(self, mask)
        return np.roll(rows.reshape(-1), rows.size - mask.size).reshape(rows.shape)

    return wrong


@mutant(
    "extra-shares-ignored",
    "MDS-09",
    "acceptance: only the first U shares are used, a wrong one among the others is not seen",
    f"{_CODE}._check_extra",
    lambda: _decoded((0, 1, 2, 3), altered=3),
    also=("LSA-15",),
    kind="acceptance",
    source="paper: lightsecagg, more than U answers",
)
def _extra(right: Function) -> Function:
    return lambda self, users, columns, rows, shares: None


@mutant(
    "last-noise-row-forgotten",
    "MDS-10",
    "privacy: the last noise row does not enter the shares, so that T users learn something of the mask",
    f"{_CODE}.encode",
    _encoded,
    also=("MDS-04",),
    reach="tests/arithmetic/test_mds.py::test_any_T_shares_are_uniform_whatever_the_mask_is",
    kind="privacy",
    source="wrong term",
)
def _noise_row(right: Function) -> Function:
    def wrong(self: mds.MaskCode, mask: UintArray, noise: UintArray) -> UintArray:
        kept = noise.copy()
        kept[-1:] = 0
        return right(self, mask, kept)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "decodes-at-first-points",
    "MDS-05",
    "wrong sum: decoding takes the points of the first users, whoever sent the shares",
    f"{_CODE}.decode",
    lambda: _decoded((1, 3, 4)),
    also=("LSA-13",),
    kind="sum",
    source="other rule: points of the first users",
)
def _first_points(right: Function) -> Function:
    def wrong(self: mds.MaskCode, users: Sequence[int], shares: UintArray, d: int) -> UintArray:
        right(self, users, shares, d)
        return right(self, range(self.U), shares[: self.U], d)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "padding-must-be-zero",
    "MDS-06",
    "availability: decoding refuses a sum in which somebody padded with something else than zeros",
    f"{_CODE}.decode",
    _padded_by_one,
    kind="refusal",
    source="clause too strict",
)
def _zero_padding(right: Function) -> Function:
    def wrong(self: mds.MaskCode, users: Sequence[int], shares: UintArray, d: int) -> UintArray:
        padded = right(self, users, shares, self.share_length(d) * (self.U - self.T))
        if padded[d:].any():
            raise BadShare("the padding is not zero", users)
        return padded[:d]  # type: ignore[no-any-return]

    return wrong


@mutant(
    "shares-with-offset",
    "MDS-06",
    "wrong sum: each share is moved by one and moved back when it is decoded, which a sum of shares does not survive",
    "secagg_spec.arithmetic.mds:MaskCode",
    lambda: mds.MaskCode(_FIELD7, 5, 3, 1).encode(_vector(4, 0, 6), _vector(2, 5).reshape(1, 2)).tolist(),
    kind="sum",
    source="other rule: shares with an offset",
)
def _offset(right: Any) -> Any:
    class Moved(right):  # type: ignore[misc]
        def encode(self, mask: UintArray, noise: UintArray) -> UintArray:
            shares = super().encode(mask, noise)
            return self.field.add(shares, np.ones_like(shares))  # type: ignore[no-any-return]

        def decode(self, users: Sequence[int], shares: UintArray, d: int) -> UintArray:
            return super().decode(users, self.field.subtract(shares, np.ones_like(shares)), d)  # type: ignore[no-any-return]

    return Moved


# --------------------------------------------------------------------------------------------- the quantiser


@mutant(
    "rounds-to-nearest",
    "QNT-03",
    "bias: the nearest integer is taken, although stochastic rounding is declared",
    f"{_QUANTIZER}:stochastic_round",
    lambda: _quantized(0.25, draw=0.0),
    kind="sum",
    source="other rule: rounding to the nearest integer",
)
def _nearest(right: Function) -> Function:
    return lambda scaled, rounding: np.rint(scaled).astype(np.int64)


@mutant(
    "truncates-toward-zero",
    "QNT-03",
    "bias: the fraction is cut off toward zero, so that negative numbers move up",
    f"{_QUANTIZER}:stochastic_round",
    lambda: _quantized(-1.25, draw=0.9),
    kind="sum",
    source="other rule: rounding toward zero",
)
def _truncated(right: Function) -> Function:
    def wrong(scaled: Any, rounding: Any) -> Any:
        below = np.trunc(scaled)
        return (below + (rounding < scaled - below)).astype(np.int64)

    return wrong


@mutant(
    "integers-move-up",
    "QNT-02",
    "bias: the draw is compared with <=, so that an integer is rounded up when the draw is 0",
    f"{_QUANTIZER}:stochastic_round",
    lambda: _quantized(2.0, draw=0.0),
    kind="sum",
    source="off by one: <= in place of <",
)
def _moves_up(right: Function) -> Function:
    def wrong(scaled: Any, rounding: Any) -> Any:
        below = np.floor(scaled)
        return (below + (rounding <= scaled - below)).astype(np.int64)

    return wrong


@mutant(
    "range-forgets-weight",
    "QNT-04",
    "wrong sum: each input fits alone, and the sum of W of them wraps around",
    f"{_QUANTIZER}:quantize",
    lambda: _quantized(30.0, weight=10),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.average/wrap",
)
def _forgets_weight(right: Function) -> Function:
    def wrong(x: Any, *, level: int, ring: modular.Ring, weight: int, rounding: Any) -> Any:
        right(np.zeros(0), level=level, ring=ring, weight=weight, rounding=np.zeros(0))
        return right(x, level=level, ring=ring, weight=1, rounding=rounding)

    return wrong


@mutant(
    "clips-large-values",
    "QNT-04",
    "wrong sum: values outside the range are clipped in silence",
    f"{_QUANTIZER}:quantize",
    lambda: _quantized(1000.0),
    also=("ERR-02",),
    kind="acceptance",
    source="seen in Flower 1.41.0: quantizer.quantize/range",
)
def _clipped(right: Function) -> Function:
    def wrong(x: Any, *, level: int, ring: modular.Ring, weight: int, rounding: Any) -> Any:
        bound = (ring.modulus - 1) // 2 // max(weight, 1) / max(level, 1)
        return right(np.clip(x, -bound, bound), level=level, ring=ring, weight=weight, rounding=rounding)

    return wrong


@mutant(
    "fraction-is-rounded",
    "QNT-03",
    "bias: y - floor(y) is rounded to binary64, so that a small negative number may stay below its ceiling",
    f"{_QUANTIZER}:stochastic_round",
    lambda: _quantized(-1.75 * 2.0**-53, draw=1 - 2.0**-52),
    kind="sum",
    source="arithmetic: rounded before it is compared",
)
def _fraction(right: Function) -> Function:
    def wrong(scaled: Any, rounding: Any) -> Any:
        below = np.floor(scaled)
        return (below + (rounding < scaled - below)).astype(np.int64)

    return wrong


@mutant(
    "bound-off-by-one",
    "QNT-04",
    "availability: the largest value that is allowed is refused",
    f"{_QUANTIZER}:_refuse_large",
    lambda: _quantized(50.0),
    kind="refusal",
    source="off by one",
)
def _off_by_one(right: Function) -> Function:
    return lambda values, x, level, bound: right(values, x, level, bound - 1)


@mutant(
    "draws-are-repeated",
    "MOD-07",
    "bias: one draw serves for all numbers when fewer draws than numbers are given",
    f"{_QUANTIZER}:quantize",
    lambda: _outcome(
        lambda: quantizer.quantize(np.zeros(2), level=1, ring=modular.Ring(101), weight=1, rounding=np.array([0.5]))
    ),
    kind="acceptance",
    source="silent repair",
)
def _repeated_draws(right: Function) -> Function:
    def wrong(x: Any, *, level: int, ring: modular.Ring, weight: int, rounding: Any) -> Any:
        return right(x, level=level, ring=ring, weight=weight, rounding=np.resize(rounding, x.shape))

    return wrong


@mutant(
    "times-reciprocal",
    "QNT-07",
    "wrong last bit: the decoded integer is multiplied by a rounded 1 / c",
    f"{_QUANTIZER}:dequantize",
    lambda: quantizer.dequantize(_vector(*range(101)), level=49, ring=modular.Ring(101)).tolist(),
    kind="sum",
    source="arithmetic: rounded twice",
)
def _reciprocal(right: Function) -> Function:
    def wrong(values: UintArray, *, level: int, ring: modular.Ring, format: Any = "binary64") -> Any:
        exact = right(values, level=level, ring=ring, format=format)
        signed = ring.decode_signed(values).astype(np.float64)
        return (signed * (1.0 / level)).astype(exact.dtype)

    return wrong


@mutant(
    "sign-is-lost",
    "QNT-05",
    "wrong sum: a negative integer is carried as its magnitude",
    f"{_RING}.encode_signed",
    lambda: _FIELD7.encode_signed(np.array([-2])).tolist(),
    kind="sum",
    source="sign",
)
def _sign_lost(right: Function) -> Function:
    return lambda self, values: right(self, np.abs(values))


@mutant(
    "middle-is-negative",
    "QNT-06",
    "wrong decoding at (R - 1) / 2: the largest positive sum comes out negative",
    f"{_RING}.decode_signed",
    lambda: _FIELD7.decode_signed(_vector(3)).tolist(),
    kind="sum",
    source="paper: lightsecagg, decoder at (q-1)/2",
)
def _middle(right: Function) -> Function:
    def wrong(self: modular.Ring, values: UintArray) -> Any:
        signed = right(self, values)
        return np.where(2 * signed == self.modulus - 1, signed - self.modulus, signed)

    return wrong


@mutant(
    "rounds-twice",
    "QNT-07",
    "wrong last bit: the quotient is rounded to binary64 and again to binary32",
    f"{_QUANTIZER}:_to_binary32",
    lambda: quantizer.dequantize(
        _vector(1082130496), level=2164260863, ring=modular.Ring(2**32), format="binary32"
    ).tolist(),
    kind="sum",
    source="arithmetic: rounded twice",
)
def _twice(right: Function) -> Function:
    return lambda quotient, signed, level: quotient.astype(np.float32)


# ------------------------------------------------------------------------------------------------ LightSecAgg


@mutant(
    "mask-is-subtracted",
    "LSA-02",
    "wrong sum: the mask is subtracted where it is to be added",
    f"{_LSA}:mask_update",
    lambda: lightsecagg.mask_update(_FIELD7, _vector(1), _vector(2)).tolist(),
    kind="sum",
    source="sign",
)
def _sign(right: Function) -> Function:
    return lambda field, update, mask: field.subtract(update, mask)


@mutant(
    "small-set-accepted",
    "LSA-09",
    "privacy: a user helps to recover the sum of T + 1 users, of which T may collude",
    f"{_LSA}:aggregate_shares",
    lambda: _aggregated((0, 1)),
    kind="privacy",
    source="seen in FedML 0.9.6: lightsecagg.aggregate_shares/small-set",
)
def _small(right: Function) -> Function:
    def wrong(field: Any, N: int, T: int, surviving: Sequence[int], held: Mapping[int, UintArray]) -> UintArray:
        known = set(surviving) & set(held)
        if len(surviving) == len(known) < T + 2:
            return field.sum(np.stack([held[user] for user in surviving]))  # type: ignore[no-any-return]
        return right(field, N, T, surviving, held)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "set-may-repeat",
    "LSA-10",
    "privacy: a set that names one user twice counts as large enough",
    f"{_LSA}:aggregate_shares",
    lambda: _aggregated((0, 0, 1)),
    kind="privacy",
    source="seen in FedML 0.9.6: lightsecagg.aggregate_shares/twice",
)
def _repeats(right: Function) -> Function:
    def wrong(field: Any, N: int, T: int, surviving: Sequence[int], held: Mapping[int, UintArray]) -> UintArray:
        if set(surviving) <= set(held) and len(surviving) >= T + 2:
            return field.sum(np.stack([held[user] for user in surviving]))  # type: ignore[no-any-return]
        return right(field, N, T, surviving, held)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "sums-all-shares",
    "LSA-08",
    "wrong sum: shares of users that dropped before their upload are added as well",
    f"{_LSA}:aggregate_shares",
    lambda: _aggregated((0, 1, 2)),
    kind="sum",
    source="wrong term",
)
def _all_shares(right: Function) -> Function:
    def wrong(field: Any, N: int, T: int, surviving: Sequence[int], held: Mapping[int, UintArray]) -> UintArray:
        right(field, N, T, surviving, held)
        return field.sum(np.stack(list(held.values())))  # type: ignore[no-any-return]

    return wrong


@mutant(
    "missing-share-skipped",
    "LSA-11",
    "wrong sum: a share that never came is left out in silence",
    f"{_LSA}:aggregate_shares",
    lambda: _aggregated((0, 1, 4), held=4),
    kind="acceptance",
    source="silent repair",
)
def _skipped(right: Function) -> Function:
    def wrong(field: Any, N: int, T: int, surviving: Sequence[int], held: Mapping[int, UintArray]) -> UintArray:
        zero = np.zeros_like(next(iter(held.values())))
        filled = {user: held.get(user, zero) for user in range(N)}
        return right(field, N, T, surviving, filled)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "threshold-off-by-one",
    "LSA-14",
    "acceptance: U - 1 answers are taken for enough, and the sum is wrong",
    f"{_CODE}.decode",
    lambda: _decoded((0, 1)),
    also=("MDS-07", "LSA-17"),
    kind="acceptance",
    source="off by one",
)
def _threshold(right: Function) -> Function:
    def wrong(self: mds.MaskCode, users: Sequence[int], shares: UintArray, d: int) -> UintArray:
        if len(users) == self.U - 1:
            spare = next(user for user in range(self.N) if user not in users)
            users, shares = [*users, spare], np.concatenate([shares, np.zeros_like(shares[:1])])
        return right(self, users, shares, d)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "server-announces-few",
    "LSA-07",
    "privacy: the server goes on with too few contributors",
    f"{_LSA}:server_upload",
    lambda: _server_uploads((0, 1)),
    kind="privacy",
    source="paper: lightsecagg, few contributors",
)
def _announces(right: Function) -> Function:
    def wrong(state: lightsecagg.ServerState, inbox: Any, *, randomness: Any) -> Any:
        small = _Lenient(**{name: getattr(state.parameters, name) for name in ("q", "N", "D", "U", "T", "d")})
        after, outbox = right(replace(state, parameters=small), inbox, randomness=randomness)
        return replace(after, parameters=state.parameters), outbox

    return wrong


class _Lenient(lightsecagg.Parameters):
    """Parameters that allow every number of contributors."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "U", 0)
        object.__setattr__(self, "T", -2)


def _server_uploads(users: Sequence[int]) -> object:
    server = lightsecagg.ServerState(_TINY, bytes(16), 0, phase="upload", sharers=tuple(range(5)))
    row = np.zeros(3, dtype=np.uint64)
    inbox = [lightsecagg.MaskedUpdate(bytes(16), 0, user, 2**32 - 1, row) for user in users]
    return _outcome(lambda: lightsecagg.server_upload(server, inbox, randomness={})[0].surviving)


@mutant(
    "small-deployment-accepted",
    "LSA-01",
    "privacy: N - D may be T + 1, so that a round within its promise isolates one user",
    f"{_LSA}:Parameters.__post_init__",
    lambda: _outcome(lambda: lightsecagg.Parameters(q=7, N=3, D=1, U=2, T=1, d=1).N),
    kind="privacy",
    source="paper: lightsecagg, few contributors",
)
def _deployment(right: Function) -> Function:
    def wrong(self: lightsecagg.Parameters) -> None:
        if self.N - self.D >= self.U > self.T >= 1 and self.D >= 0 and self.d >= 1:
            return
        right(self)

    return wrong


@mutant(
    "late-dropout-counted-out",
    "LSA-13",
    "wrong sum: a user that drops after its upload is taken out of the sum, and its mask is not",
    f"{_LSA}:recover",
    lambda: _round({"recover": [1]}),
    kind="sum",
    source="wrong term",
)
def _counted_out(right: Function) -> Function:
    def wrong(parameters: Any, masked_sum: UintArray, users: Sequence[int], shares: UintArray) -> UintArray:
        aggregate: UintArray = right(parameters, masked_sum, users, shares)
        if len(users) < parameters.N:
            return parameters.field.add(aggregate, np.ones_like(aggregate))  # type: ignore[no-any-return]
        return aggregate

    return wrong


@mutant(
    "all-sharers-announced",
    "LSA-06",
    "wrong sum: the server announces everybody who shared a mask, whether its update arrived or not",
    f"{_LSA}:server_upload",
    lambda: _server_uploads((0, 1, 2, 3)),
    kind="sum",
    source="other rule: sharers announced as survivors",
)
def _all_sharers(right: Function) -> Function:
    def wrong(state: lightsecagg.ServerState, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        sent = tuple(replace(message, users=state.sharers) for message in outbox)
        return replace(after, surviving=state.sharers), sent

    return wrong


@mutant(
    "descending-set",
    "LSA-06",
    "order: the surviving set is announced in descending order",
    f"{_LSA}:server_upload",
    lambda: _server_uploads((0, 1, 2, 3)),
    kind="form",
    source="order",
)
def _descending(right: Function) -> Function:
    def wrong(state: lightsecagg.ServerState, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        backwards = after.surviving[::-1]
        return replace(after, surviving=backwards), tuple(replace(message, users=backwards) for message in outbox)

    return wrong


@mutant(
    "everybody-must-answer",
    "LSA-17",
    "availability: a round fails as soon as one user of the surviving set does not answer",
    f"{_LSA}:recover",
    lambda: _round({"recover": [1]}),
    kind="refusal",
    source="clause too strict",
)
def _everybody(right: Function) -> Function:
    def wrong(parameters: Any, masked_sum: UintArray, users: Sequence[int], shares: UintArray) -> UintArray:
        if len(users) < parameters.N:
            raise TooFewSurvivors("not everybody answered")
        return right(parameters, masked_sum, users, shares)  # type: ignore[no-any-return]

    return wrong
