"""Planted bugs of BASA, one function at a time: masks, boxes, recovery, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance import positions as scenes
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.wrapped import changing, wrapping
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import pack, pack_reals, unpack
from secagg_spec.crypto.boxes import Address, Epoch
from secagg_spec.crypto.keys import LABEL, VERSION, agree, derive, fields, public_key
from secagg_spec.errors import ParameterError, WeakKey
from secagg_spec.protocols.basa_cores import SETTLE, VOID, Masks, Parameters

Function = Callable[..., Any]
_CORES = "secagg_spec.protocols.basa_cores"
_BOXES = "secagg_spec.crypto.boxes"
_ADAPTER = "secagg_spec.conformance.targets.reference_basa"
_BUILD = "secagg_spec.conformance.targets.reference:build"
_NUMBERS = Parameters(
    R=97, N=6, T=1, d=3, K=3, S=2, c_l=2, c_g=4, tau_max=1, staleness=Staleness.polynomial(1), timeouts=SETTLE
)
"""Numbers with the budget 4."""
_MASK, _SEAL, _OPEN, _RECOVER = scenes.MASK, scenes.SEAL, scenes.OPEN, scenes.RECOVER
_SESSION = bytes(range(16))


def _answer(op: str, params: Mapping[str, Any], **rand: Any) -> object:
    written = {**params, "R": str(params["R"])}
    request = {"id": 1, "op": op, "params": written, **({"rand": rand} if rand else {})}
    answer = reference.build().answer(request)
    return answer.get("result", answer.get("reject", {}).get("code"))


def _buffer(numbers: Parameters = _NUMBERS, accepted: tuple[int, ...] = (0, 2, 3)) -> scenes.Buffer:
    """Return three uploads; the positions 1 and 4 have none."""
    seeds = {k: tuple(bytes([16 * k + j + 1]) * 32 for j in range(numbers.positions)) for k in range(4)}
    update = np.array([1, numbers.R - 2, 4], dtype=np.uint64)
    weights, updates = dict.fromkeys(range(4), 2), dict.fromkeys(range(4), update)
    return scenes.Buffer(numbers, _SESSION, 7, accepted, seeds, weights, updates)


def _masked(k: int = 3, **changed: Any) -> object:
    return _answer(_MASK, _buffer().mask_params(k, **changed))


def _updated(*update: int) -> object:
    return _masked(update=pack(np.array(update, dtype=np.uint64)))


def _recovered(numbers: Parameters = _NUMBERS, accepted: tuple[int, ...] = (0, 2, 3), **changed: Any) -> object:
    chosen = _buffer(numbers, accepted)
    rows = [np.array([5, 6, 7], dtype=np.uint64)] * len(accepted)
    return _answer(_RECOVER, chosen.recover_params(rows, **changed))


def _box(purpose: str = "pair-box") -> scenes.Box:
    epoch, target = scenes.epoch_of(_NUMBERS, _SESSION, 7), 3 if purpose == "pair-box" else 1
    return scenes.Box(
        _NUMBERS, Address(epoch, purpose, 5, 1, target), bytes([9]) * 32, bytes([7]) * 32, bytes([8]) * 32
    )


def _sealed(**changed: Any) -> object:
    return _answer(_SEAL, _box().seal_params(**changed), box_key=_box().box_key.hex())


_KNOWN = _box().sealed()


def _opened(box: bytes = _KNOWN, **changed: Any) -> object:
    return _answer(_OPEN, _box().open_params(box, **changed))


# ------------------------------------------------------------------------------------------------------------- masking


def _masking(
    name: str, effect: str, also: tuple[str, ...] = (), *, kind: str, source: str
) -> Callable[[Callable[[Masks], Masks]], Function]:
    """Register a mutant that masks with other masks."""

    def register(change: Callable[[Masks], Masks]) -> Function:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, update: UintArray, weight: int, masks: Masks) -> Any:
                lists = Masks(_vectors(parameters, masks.before), _vectors(parameters, masks.after), masks.own)
                return right(parameters, update, weight, change(lists))

            return wrong

        mutant(
            name,
            "BAA-26",
            effect,
            f"{_CORES}:mask_update",
            lambda: (_masked(0), _masked(3)),
            also=also,
            kind=kind,
            source=source,
        )(build)
        return build

    return register


def _vectors(parameters: Parameters, streams: Any) -> list[Any]:
    """Return masks as whole vectors."""
    zero = parameters.ring.zeros(parameters.d)
    return [parameters.ring.signed_sum(zero, [(True, stream)]) for stream in streams]


@_masking(
    "basa-last-position-left-out",
    "no sum: the last position gets no mask, though its user takes one away",
    kind="sum",
    source="wrong term",
)
def _last_left_out(masks: Masks) -> Masks:
    return Masks(masks.before, list(masks.after)[:-1], masks.own)


@_masking(
    "basa-own-mask-forgotten",
    "privacy: an upload that comes late is not hidden by anything",
    kind="privacy",
    source="wrong term",
)
def _own_forgotten(masks: Masks) -> Masks:
    return Masks(masks.before, masks.after)


@_masking(
    "basa-masks-turned-round",
    "no sum: masks that others added are added, and the own ones taken away",
    kind="sum",
    source="sign",
)
def _turned_round(masks: Masks) -> Masks:
    return Masks(masks.after, masks.before, masks.own)


@_masking(
    "basa-nearest-masks-only",
    "no sum: only the masks of the position just before are taken away",
    kind="sum",
    source="wrong term",
)
def _nearest(masks: Masks) -> Masks:
    return Masks(list(masks.before)[-1:], masks.after, masks.own)


def _without_first(given: dict[str, Any]) -> dict[str, Any]:
    kept = [(i, seed) for i, seed in zip(given["accepted"], given["before"], strict=False) if i > 0]
    whole = len(given["accepted"]) == len(given["before"])
    return {**given, "accepted": [i for i, _ in kept], "before": [s for _, s in kept]} if whole else given


mutant(
    "basa-equation-5-as-printed",
    "BAA-26",
    "no sum: the mask of the first position is never taken away, as the paper's equation (5) has it",
    _BUILD,
    _masked,
    kind="sum",
    source="paper: BASA-EQ5",
)(changing(_MASK)(_without_first))

mutant(
    "basa-positions-counted",
    "BAA-26",
    "no sum once a position was skipped: accepted positions are counted from 0 instead of taken by their number",
    _BUILD,
    _masked,
    kind="sum",
    source="other rule: positions counted instead of taken by number",
)(changing(_MASK)(lambda given: {**given, "accepted": _counted(given["accepted"])}))


def _counted(accepted: list[int]) -> list[int]:
    ascending = all(a < b for a, b in pairwise([-1, *accepted]))
    return list(range(len(accepted))) if ascending else accepted


@mutant(
    "basa-weight-not-applied",
    "BAA-26",
    "wrong sums: a stale update counts as much as a fresh one",
    f"{_CORES}:mask_update",
    _masked,
    kind="sum",
    source="wrong term",
)
def _not_weighted(right: Function) -> Function:
    def wrong(parameters: Parameters, update: UintArray, weight: int, masks: Masks) -> Any:
        return right(parameters, update, weight and min(weight, 1) if weight <= parameters.c_g else weight, masks)

    return wrong


@mutant(
    "basa-masks-weighted",
    "BAA-26",
    "no sum: the weight is applied to the masks as well",
    f"{_CORES}:mask_update",
    _masked,
    kind="sum",
    source="wrong term",
)
def _masks_weighted(right: Function) -> Function:
    def wrong(parameters: Parameters, update: UintArray, weight: int, masks: Masks) -> Any:
        ring = parameters.ring
        masked = right(parameters, update, weight, masks)
        factor = np.full(masked.shape, weight, dtype=np.uint64)
        plain = ring.subtract(masked, ring.multiply(update, factor))
        return ring.multiply(ring.add(plain, update), factor)

    return wrong


def _keyed(name: str, effect: str, *, kind: str, source: str) -> Callable[[Callable[..., Any]], Any]:
    """Register a mutant that derives the keys of masks otherwise; the function gets what the right one gets."""

    def register(change: Callable[..., Any]) -> Any:
        def build(right: Function) -> Function:
            return lambda epoch, seed, source, target=None: change(right, epoch, seed, source, target)

        mutant(name, "BAA-03", effect, f"{_BOXES}:mask_key", _masked, also=("BAA-26",), kind=kind, source=source)(build)
        return change

    return register


@_keyed(
    "basa-seed-is-key",
    "security: a seed is used as the key of its mask, with nothing that it is bound to",
    kind="privacy",
    source="field not bound: everything",
)
def _seed_is_key(right: Function, epoch: Epoch, seed: bytes, source: int, target: int | None) -> Any:
    return seed


@_keyed(
    "basa-mask-without-epoch",
    "security: a seed that is used again gives the same mask in the next epoch",
    kind="privacy",
    source="field not bound: the epoch",
)
def _without_epoch(right: Function, epoch: Epoch, seed: bytes, source: int, target: int | None) -> Any:
    return right(replace(epoch, number=0), seed, source, target)


@_keyed(
    "basa-mask-without-session",
    "security: a seed that is used again gives the same mask in another session",
    kind="privacy",
    source="field not bound: the session",
)
def _without_session(right: Function, epoch: Epoch, seed: bytes, source: int, target: int | None) -> Any:
    return right(replace(epoch, session=bytes(16)), seed, source, target)


@_keyed(
    "basa-mask-without-parameters",
    "security: a mask is the same under other parameters",
    kind="privacy",
    source="field not bound: the parameters",
)
def _without_parameters(right: Function, epoch: Epoch, seed: bytes, source: int, target: int | None) -> Any:
    return right(replace(epoch, parameters=bytes(32)), seed, source, target)


@_keyed(
    "basa-mask-backwards",
    "disagreement: the key of a mask has its two positions in the other order",
    kind="form",
    source="order",
)
def _backwards(right: Function, epoch: Epoch, seed: bytes, source: int, target: int | None) -> Any:
    return right(epoch, seed, source) if target is None else right(epoch, seed, target, source)


@_keyed(
    "basa-own-mask-as-pairwise",
    "disagreement: the key of a self mask is that of a mask to the own position",
    kind="form",
    source="other rule: a self mask derived as a pairwise one",
)
def _as_pairwise(right: Function, epoch: Epoch, seed: bytes, source: int, target: int | None) -> Any:
    return right(epoch, seed, source, source if target is None else target)


@mutant(
    "basa-hash-without-timeouts",
    "BAA-03",
    "security: what a user thinks of timeouts is not part of what masks and boxes are bound to",
    f"{_CORES}:Parameters.numbers",
    _masked,
    also=("BAA-04", "BAA-26"),
    kind="privacy",
    source="field not bound: the profile",
)
def _without_timeouts(right: Function) -> Function:
    def wrong(self: Parameters) -> dict[str, int]:
        numbers: dict[str, int] = right(self)
        del numbers["timeouts"]
        return numbers

    return wrong


# ------------------------------------------------------------------------------------------------------------- updates


mutant(
    "basa-budget-without-weights",
    "BAA-25",
    "wrong sums: an update may be so large that it wraps around once it is weighted",
    f"{_CORES}:Parameters.total_weight",
    lambda: _updated(1, 16, 0),
    kind="acceptance",
    source="clause in part",
)(lambda right: property(lambda self: self.K))

mutant(
    "basa-budget-for-one-update",
    "BAA-25",
    "wrong sums: an update may be so large that K of them wrap around",
    f"{_CORES}:Parameters.total_weight",
    lambda: _updated(1, 12, 0),
    kind="acceptance",
    source="clause in part",
)(lambda right: property(lambda self: self.c_g))


@mutant(
    "basa-negative-beyond-budget",
    "BAA-25",
    "wrong sums: a negative number may be as large as the modulus allows",
    f"{_CORES}:check_update",
    lambda: _updated(1, 97 - 5, 0),
    kind="acceptance",
    source="clause in part",
)
def _positive(right: Function) -> Function:
    def wrong(ring: Ring, total_weight: int, update: UintArray) -> UintArray:
        right(ring, total_weight, np.where(update > np.uint64((ring.modulus - 1) // 2), np.uint64(0), update))
        return update

    return wrong


mutant(
    "basa-no-budget",
    "BAA-25",
    "wrong sums: no update is too large",
    f"{_CORES}:check_update",
    lambda: _updated(1, 40, 0),
    kind="acceptance",
    source="clause left out",
)(lambda right: lambda ring, total_weight, update: right(ring, 1, update))


mutant(
    "basa-update-fitted",
    "BAA-24",
    "wrong sums: an update of another length than d is cut, or continued by zeros",
    _BUILD,
    lambda: _updated(1),
    kind="acceptance",
    source="silent repair",
)(
    changing(_MASK)(
        lambda given: {**given, "update": (given["update"] + "0" * 8 * max(given["d"], 1))[: 8 * given["d"]]}
    )
)


def _reduced(given: dict[str, Any]) -> dict[str, Any]:
    R = max(int(given["R"]), 1)
    return {**given, "update": pack(np.remainder(unpack(given["update"]).astype(np.uint64), np.uint64(R)))}


mutant(
    "basa-update-reduced",
    "BAA-24",
    "wrong sums: numbers that are not below R are reduced",
    _BUILD,
    lambda: _updated(1, 97, 0),
    kind="acceptance",
    source="silent repair",
)(changing(_MASK)(_reduced))


# --------------------------------------------------------------------------------------------------------------- boxes


def _binding(name: str, effect: str, *without: str, kind: str, source: str) -> None:
    """Register a mutant whose boxes are bound to everything but some fields."""

    def build(right: Function) -> Function:
        def wrong(self: Address) -> bytes:
            e = self.epoch
            bound: dict[str, Any] = {
                "parameters": e.parameters,
                "session": e.session,
                "epoch": e.number,
                "purpose": self.purpose,
            }
            bound |= {"sender": self.sender, "from": self.source, "to": self.target}
            kept = (value for field, value in bound.items() if field not in without)
            return fields(LABEL, VERSION, "basa", *kept)

        return wrong

    mutant(name, "BAA-05", effect, f"{_BOXES}:Address.binding", _sealed, also=("BAA-04",), kind=kind, source=source)(
        build
    )


_binding(
    "basa-box-without-sender",
    "authenticity: a box passes as one of another user",
    "sender",
    kind="acceptance",
    source="field not bound: the sender",
)
_binding(
    "basa-box-without-target",
    "authenticity: a box to one position passes as one to another",
    "to",
    kind="acceptance",
    source="field not bound: the position it is for",
)
_binding(
    "basa-box-without-source",
    "authenticity: a box from one position passes as one from another",
    "from",
    kind="acceptance",
    source="field not bound: the position it is from",
)
_binding(
    "basa-box-without-epoch",
    "authenticity: a box of an earlier epoch passes as one of this",
    "epoch",
    kind="acceptance",
    source="field not bound: the epoch",
)
_binding(
    "basa-box-without-purpose",
    "authenticity: a box of one purpose passes as one of the other",
    "purpose",
    kind="acceptance",
    source="field not bound: the purpose",
)
_binding(
    "basa-box-without-parameters",
    "authenticity: a box passes under other parameters",
    "parameters",
    kind="acceptance",
    source="field not bound: the parameters",
)


@mutant(
    "basa-box-positions-swapped",
    "BAA-04",
    "disagreement: the binding of a box has its two positions in the other order",
    f"{_BOXES}:Address.binding",
    _sealed,
    also=("BAA-05",),
    kind="form",
    source="order",
)
def _swapped(right: Function) -> Function:
    def wrong(self: Address) -> bytes:
        e = self.epoch
        bound = (LABEL, VERSION, "basa", e.parameters, e.session, e.number, self.purpose, self.sender)
        return fields(*bound, self.target, self.source)

    return wrong


@mutant(
    "basa-box-without-session",
    "BAA-05",
    "authenticity: a box of one session passes in another",
    f"{_BOXES}:Address.__post_init__",
    _sealed,
    also=("BAA-04",),
    kind="acceptance",
    source="field not bound: the session",
)
def _box_without_session(right: Function) -> Function:
    def wrong(self: Address) -> None:
        right(self)
        object.__setattr__(self, "epoch", replace(self.epoch, session=bytes(16)))

    return wrong


_Key = Callable[[Address, bytes, bytes, bytes], bytes]


def _box_key(address: Address, shared: bytes, info: bytes) -> bytes:
    return derive(shared, address.epoch.session, info)


def _cipher(name: str, effect: str, key: _Key, *, kind: str, source: str) -> None:
    """Register a mutant that seals boxes under another key."""

    def build(right: Function) -> Function:
        return lambda address, shared, mine, theirs: ChaCha20Poly1305(key(address, shared, mine, theirs))

    mutant(name, "BAA-04", effect, f"{_BOXES}:_cipher", _sealed, also=("BAA-05",), kind=kind, source=source)(build)


_cipher(
    "basa-box-without-own-key",
    "authenticity: the key of a box does not depend on the public key that stands in it",
    lambda address, shared, mine, theirs: _box_key(address, shared, address.binding() + fields(theirs)),
    kind="acceptance",
    source="field not bound: the key of the sender",
)
_cipher(
    "basa-box-without-its-key",
    "security: with one key for all boxes of an upload, that of a box does not depend on whom it is for",
    lambda address, shared, mine, theirs: _box_key(address, shared, address.binding() + fields(mine)),
    kind="privacy",
    source="field not bound: the key of the receiver",
)
_cipher(
    "basa-box-keys-swapped",
    "disagreement: the two public keys stand in the other order",
    lambda address, shared, mine, theirs: _box_key(address, shared, address.binding() + fields(theirs, mine)),
    kind="form",
    source="order",
)
_cipher(
    "basa-secret-is-key",
    "security: the shared secret itself is the key of a box, the same for all of one pair of keys",
    lambda address, shared, mine, theirs: shared,
    kind="privacy",
    source="field not bound: everything",
)


class _Unbound:
    """The cipher of a box without associated data."""

    def __init__(self, right: ChaCha20Poly1305) -> None:
        self.right = right

    def encrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
        """Seal."""
        return self.right.encrypt(nonce, data, None)

    def decrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
        """Open."""
        return self.right.decrypt(nonce, data, None)


mutant(
    "basa-box-without-associated-data",
    "BAA-04",
    "disagreement: the binding is in the key alone, and not in what the tag is over",
    f"{_BOXES}:_cipher",
    _sealed,
    also=("BAA-05",),
    kind="form",
    source="field not bound: the binding, in the tag",
)(lambda right: lambda *arguments: _Unbound(right(*arguments)))


class _Untagged:
    """The cipher of a box whose tag nobody looks at."""

    def __init__(self, right: ChaCha20Poly1305, key: bytes) -> None:
        self.right, self.key = right, key

    def encrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
        """Seal."""
        return self.right.encrypt(nonce, data, bound)

    def decrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
        """Open, whatever the tag is."""
        stream = Cipher(algorithms.ChaCha20(self.key, b"\x01\0\0\0" + nonce), None).decryptor()
        return stream.update(data[:32].ljust(32, b"\0"))


@mutant(
    "basa-tag-not-checked",
    "BAA-05",
    "authenticity: a box that was altered, or sealed for anything else, opens to some seed",
    f"{_BOXES}:_cipher",
    lambda: _opened(_KNOWN[:-1] + bytes([_KNOWN[-1] ^ 1])),
    kind="acceptance",
    source="clause left out",
)
def _not_checked(right: Function) -> Function:
    def wrong(address: Address, shared: bytes, mine: bytes, theirs: bytes) -> Any:
        key = _box_key(address, shared, address.binding() + fields(mine, theirs))
        return _Untagged(right(address, shared, mine, theirs), key)

    return wrong


@mutant(
    "basa-box-of-any-length",
    "BAA-05",
    "authenticity: only as much of the tag as is there is compared, and what stands behind it is not looked at",
    f"{_BOXES}:open_box",
    lambda: _opened(_KNOWN + b"\0"),
    kind="acceptance",
    source="clause in part",
)
def _any_length(right: Function) -> Function:
    def wrong(address: Address, private: bytes, box: bytes) -> Any:
        if len(box) < 64 or len(box) == 80:
            return right(address, private, box)
        shared, mine, theirs = agree(private, box[:32]), box[:32], public_key(private)
        info = address.binding() + fields(mine, theirs)
        key = _box_key(address, shared, info)
        seed = _Untagged(ChaCha20Poly1305(key), key).decrypt(bytes(12), box[32:], b"")
        whole = mine + ChaCha20Poly1305(key).encrypt(bytes(12), seed, address.binding())
        return right(address, private, whole if whole[: len(box)] == box[:80] else box)

    return wrong


@mutant(
    "basa-box-to-low-order",
    "BAA-06",
    "privacy: a seed is sealed to a key of low order, so that everybody can open the box",
    f"{_BOXES}:agree",
    lambda: _sealed(public="00" * 32),
    kind="privacy",
    source="clause left out",
)
def _low_order(right: Function) -> Function:
    def wrong(private: bytes, public: bytes) -> bytes:
        try:
            return right(private, public)  # type: ignore[no-any-return]
        except WeakKey:
            return bytes(32)

    return wrong


@mutant(
    "basa-low-order-blames-nobody",
    "BAA-06",
    "wrong reason: a box with a key of low order is said to be a weak key of nobody, so that its sender is not blamed",
    f"{_BOXES}:open_box",
    lambda: _opened(bytes(80)),
    kind="refusal",
    source="wrong reason",
)
def _weak_box(right: Function) -> Function:
    def wrong(address: Address, private: bytes, box: bytes) -> Any:
        if box[:32] in (bytes(32), b"\x01" + bytes(31)):
            raise WeakKey("the box holds a key of low order")
        return right(address, private, box)

    return wrong


# ------------------------------------------------------------------------------------------------------------ recovery


def _recovering(
    name: str, effect: str, *, kind: str, source: str
) -> Callable[[Callable[..., tuple[Any, Any, Any]]], Any]:
    """Register a mutant that recovers from other vectors: masked, own and skipped ones."""

    def register(change: Callable[..., tuple[Any, Any, Any]]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, *given: Any) -> Any:
                return right(parameters, *change(*(_vectors(parameters, streams) for streams in given)))

            return wrong

        mutant(name, "BAA-41", effect, f"{_CORES}:recover", _recovered, kind=kind, source=source)(build)
        return change

    return register


@_recovering("basa-own-masks-left", "no sum: the self masks stay in it", kind="sum", source="wrong term")
def _own_left(masked: Any, own: Any, skipped: Any) -> tuple[Any, Any, Any]:
    return masked, [], skipped


@_recovering(
    "basa-own-masks-removed-twice", "no sum: the self masks are taken away twice", kind="sum", source="wrong term"
)
def _own_twice(masked: Any, own: Any, skipped: Any) -> tuple[Any, Any, Any]:
    return masked, [*own, *own], skipped


@_recovering(
    "basa-skipped-masks-left",
    "no sum once a position was skipped: the masks to it stay in the sum",
    kind="sum",
    source="wrong term",
)
def _skipped_left(masked: Any, own: Any, skipped: Any) -> tuple[Any, Any, Any]:
    return masked, own, []


@_recovering(
    "basa-skipped-masks-added",
    "no sum once a position was skipped: the masks to it are added again",
    kind="sum",
    source="sign",
)
def _skipped_added(masked: Any, own: Any, skipped: Any) -> tuple[Any, Any, Any]:
    return [*masked, *skipped], own, []


@_recovering("basa-last-update-left-out", "wrong sums: the last update is not added", kind="sum", source="wrong term")
def _last_update(masked: Any, own: Any, skipped: Any) -> tuple[Any, Any, Any]:
    return masked[:-1], own, skipped


@_recovering(
    "basa-masks-of-one-skipped-position",
    "no sum once two positions were skipped: masks to one are left",
    kind="sum",
    source="wrong term",
)
def _one_skipped(masked: Any, own: Any, skipped: Any) -> tuple[Any, Any, Any]:
    return masked, own, skipped[: len(skipped) - len(skipped) // 2]


def _dividing(
    name: str, effect: str, divisor: Callable[[dict[str, Any], list[int]], int], *, kind: str, source: str
) -> None:
    """Register a mutant that divides a sum by something else."""

    def answered(asked: Function, given: dict[str, Any]) -> Any:
        right = asked(**given)
        ring, total = Ring(int(given["R"])), unpack(right["sum"]).astype(np.uint64)
        weights = [int(weight) for weight in unpack(given["weights"])]
        return {**right, "average": pack_reals(ring.decode_signed(total) / np.float64(divisor(given, weights)))}

    mutant(name, "BAA-43", effect, _BUILD, _recovered, kind=kind, source=source)(wrapping(_RECOVER)(answered))


_dividing(
    "basa-average-over-k",
    "wrong step: the sum is divided by K, as the paper's algorithm 3 has it, and not by the weights",
    lambda given, weights: int(given["c_l"]) * given["K"],
    kind="sum",
    source="paper: BASA-ALG3",
)
_dividing(
    "basa-average-over-fresh-weights",
    "wrong step: each update is divided by as if it were fresh",
    lambda given, weights: int(given["c_l"]) * int(given["c_g"]) * len(weights),
    kind="sum",
    source="wrong term",
)
_dividing(
    "basa-average-without-level",
    "wrong step: the average is not divided by the level of the updates",
    lambda given, weights: sum(weights),
    kind="sum",
    source="wrong term",
)


def _without_sign(asked: Function, given: dict[str, Any]) -> Any:
    right = asked(**given)
    divisor = int(given["c_l"]) * sum(int(weight) for weight in unpack(given["weights"]))
    return {**right, "average": pack_reals(unpack(right["sum"]).astype(np.float64) / np.float64(divisor))}


mutant(
    "basa-average-without-sign",
    "BAA-43",
    "wrong step: negative numbers are taken for large ones",
    _BUILD,
    _recovered,
    kind="sum",
    source="sign",
)(wrapping(_RECOVER)(_without_sign))


# ------------------------------------------------------------------------------------------------------------- numbers


@mutant(
    "basa-few-updates-allowed",
    "BAA-01",
    "privacy: with K below T + 2, T colluders in a full buffer leave one honest update, which its sum is",
    f"{_CORES}:Parameters._check_positions",
    lambda: _masked(0, T=2),
    kind="privacy",
    source="clause in part",
)
def _few_allowed(right: Function) -> Function:
    def wrong(self: Parameters) -> None:
        try:
            right(self)
        except ParameterError as error:
            if error.parameter != "K":
                raise

    return wrong


@mutant(
    "basa-spares-in-void",
    "BAA-01",
    "disagreement: a profile without skipped positions has spare ones",
    f"{_CORES}:Parameters._check_positions",
    lambda: _masked(0, timeouts=VOID),
    kind="acceptance",
    source="clause in part",
)
def _void_spares(right: Function) -> Function:
    def wrong(self: Parameters) -> None:
        try:
            right(self)
        except ParameterError as error:
            if error.parameter != "S":
                raise

    return wrong


@mutant(
    "basa-more-positions-than-users",
    "BAA-01",
    "stalled epochs: a buffer has more positions than there are users",
    f"{_CORES}:Parameters._check_positions",
    lambda: _masked(0, N=3),
    kind="acceptance",
    source="clause in part",
)
def _more_positions(right: Function) -> Function:
    def wrong(self: Parameters) -> None:
        try:
            right(self)
        except ParameterError as error:
            if error.parameter != "K + S":
                raise

    return wrong


_clamps: dict[str, Callable[[Any], Any]] = {
    "T": lambda T: max(T, 1),
    "S": lambda S: max(S, 0),
    "N": lambda N: min(N, 2**31 - 1),
    "tau_max": lambda tau: min(max(tau, 0), 2**31 - 1),
    "timeouts": lambda timeouts: timeouts if timeouts in (SETTLE, VOID) else SETTLE,
    "R": lambda R: str(min(max(int(R), 2), 2**32)),
}
mutant(
    "basa-numbers-adjusted",
    "BAA-01",
    "disagreement: numbers that are not allowed are replaced by the nearest ones, in silence",
    _BUILD,
    lambda: _masked(0, T=0),
    kind="acceptance",
    source="silent repair",
)(
    changing(_MASK, _SEAL, _OPEN, _RECOVER)(
        lambda given: {name: _clamps[name](value) if name in _clamps else value for name, value in given.items()}
    )
)


@mutant(
    "basa-levels-not-checked",
    "BAA-02",
    "wrong sums: levels are taken with which weights vanish, or no sum is carried",
    f"{_CORES}:check_levels",
    lambda: _sealed(c_g="1000"),
    kind="acceptance",
    source="clause left out",
)
def _levels_not_checked(right: Function) -> Function:
    return lambda *arguments: None


# ------------------------------------------------------------------------------------------------------------ requests


def _fits(data: str, size: int) -> str:
    """Return so many bytes of hex digits: cut, or continued by zeros."""
    return (data + "00" * size)[: 2 * size]


def _fitted(given: dict[str, Any]) -> dict[str, Any]:
    """Bring seeds and keys to 32 bytes each, and the session to 16."""
    P = max(given["K"] + given["S"], 0)
    sizes = {"seeds": 32 * P, "session": 16, "seed": 32, "public": 32, "private": 32}
    changed = {name: _fits(given[name], size) for name, size in sizes.items() if name in given}
    lists: dict[str, Any] = {
        name: [_fits(seed, 32) for seed in given[name]] for name in ("before", "own") if name in given
    }
    skipped = {"skipped": [[i, j, _fits(seed, 32)] for i, j, seed in given["skipped"]]} if "skipped" in given else {}
    return {**given, **changed, **lists, **skipped}


mutant(
    "basa-secrets-fitted",
    "ADP-37",
    "disagreement: seeds, keys and session ids of another length are cut, or continued by zeros",
    _BUILD,
    lambda: _masked(session="00"),
    kind="acceptance",
    source="silent repair",
)(changing(_MASK, _SEAL, _OPEN, _RECOVER)(_fitted))


def _clamped(given: dict[str, Any]) -> dict[str, Any]:
    most = max(int(given["c_g"]), 1)
    if "weight" in given:
        return {**given, "weight": min(max(given["weight"], 1), most)}
    weights = np.clip(unpack(given["weights"]).astype(np.uint64), 1, most)
    return {**given, "weights": pack(weights.astype(np.uint64))}


mutant(
    "basa-weights-clamped",
    "ADP-37",
    "disagreement: a weight that no update has is replaced by the nearest one",
    _BUILD,
    lambda: _masked(weight=0),
    kind="acceptance",
    source="silent repair",
)(changing(_MASK, _RECOVER)(_clamped))


def _sorted(given: dict[str, Any]) -> dict[str, Any]:
    """Bring accepted positions in order, each once, and leave out those that can't be accepted."""
    P = max(given["K"] + given["S"], 1)
    end = given.get("position", P)
    known = sorted({i for i in given["accepted"] if 0 <= i < end})
    place = {"position": min(max(given["position"], 0), P - 1)} if "position" in given else {}
    names = [name for name in ("before", "masked", "own") if name in given]
    lists: dict[str, Any] = {name: given[name][: len(known)] for name in names}
    weights = {"weights": given["weights"][: 8 * len(known)]} if "weights" in given else {}
    return {**given, **place, **lists, **weights, "accepted": known}


mutant(
    "basa-positions-tidied",
    "ADP-37",
    "disagreement: accepted positions are sorted, and those left out that cannot be",
    _BUILD,
    lambda: _masked(accepted=[2, 0]),
    kind="acceptance",
    source="silent repair",
)(changing(_MASK, _RECOVER)(_sorted))


def _paired(given: dict[str, Any]) -> dict[str, Any]:
    """Bring what follows the accepted positions to their number."""
    count, d = len(given["accepted"]), max(given["d"], 0)
    changed: dict[str, Any] = {}
    for name, entry in (("before", "00" * 32), ("own", "00" * 32), ("masked", "00000000" * d)):
        if name in given and (name != "own" or given["timeouts"] == SETTLE):
            changed[name] = [*given[name], *[entry] * count][:count]
    if "masked" in given:
        changed["masked"] = [_fits(row, 4 * d) for row in changed["masked"]]
        changed["weights"] = (given["weights"] + "01000000" * count)[: 8 * count]
        changed["own"] = changed.get("own", [])
    return {**given, **changed}


mutant(
    "basa-lists-fitted",
    "ADP-37",
    "wrong sums: lists that do not fit the accepted positions are cut, or continued",
    _BUILD,
    lambda: _masked(before=[]),
    kind="acceptance",
    source="silent repair",
)(changing(_MASK, _RECOVER)(_paired))


def _as_needed(right: Function) -> Function:
    def wrong(parameters: Parameters, accepted: Any, entries: Any) -> Any:
        after = [j for j in range(parameters.positions) if j not in accepted]
        found = {(i, j): seed for i, j, seed in entries if i in accepted and j in after and i < j}
        return {pair: bytes.fromhex(_fits(seed, 32)) for pair, seed in found.items()}

    return wrong


mutant(
    "basa-skipped-seeds-as-given",
    "ADP-37",
    "wrong sums: masks whose seeds are missing are left in the sum, and other seeds are not looked at",
    f"{_ADAPTER}:_skipped",
    lambda: _recovered(skipped=[]),
    kind="acceptance",
    source="silent repair",
)(_as_needed)


@mutant(
    "basa-any-number-recovered",
    "ADP-37",
    "privacy: a sum over fewer than T + 2 updates is returned",
    f"{_ADAPTER}:_accepted",
    lambda: _recovered(accepted=(0, 2)),
    kind="privacy",
    source="clause in part",
)
def _any_number(right: Function) -> Function:
    def wrong(parameters: Parameters, accepted: Any) -> Any:
        ascending = all(a < b for a, b in pairwise(accepted))
        inside = all(0 <= k < parameters.positions for k in accepted)
        return tuple(accepted) if ascending and inside else right(parameters, accepted)

    return wrong


def _wrapped(given: dict[str, Any]) -> dict[str, Any]:
    N, P = max(given["N"], 1), max(given["K"] + given["S"], 1)
    places = {name: given[name] % P for name in ("from", "to")}
    if given["purpose"] == "pair-box" and places["from"] > places["to"]:
        places = {"from": places["to"], "to": places["from"]}
    return {**given, **places, "sender": given["sender"] % N}


mutant(
    "basa-senders-and-positions-wrap",
    "ADP-37",
    "authenticity: positions and senders outside their range are taken modulo it, and positions in any order",
    _BUILD,
    lambda: _sealed(sender=6),
    kind="acceptance",
    source="silent repair",
)(changing(_SEAL, _OPEN)(_wrapped))


def _pair_or_self(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "purpose": "self-box" if given["from"] == given["to"] else "pair-box"}


mutant(
    "basa-purpose-guessed",
    "ADP-37",
    "authenticity: the purpose of a box is guessed from its positions",
    _BUILD,
    lambda: _sealed(purpose="self-box"),
    kind="acceptance",
    source="silent repair",
)(changing(_SEAL, _OPEN)(_pair_or_self))


def _unowned(right: Function) -> Function:
    def wrong(self: Address) -> None:
        epoch = self.epoch
        object.__setattr__(self, "epoch", replace(epoch, own=True))
        try:
            right(self)
        finally:
            object.__setattr__(self, "epoch", epoch)

    return wrong


mutant(
    "basa-self-boxes-in-void",
    "ADP-37",
    "disagreement: the profile void, whose positions have no self keys, has boxes to them",
    f"{_BOXES}:Address.__post_init__",
    lambda: _sealed(timeouts=VOID, S=0, purpose="self-box", to=1),
    kind="acceptance",
    source="clause in part",
)(_unowned)

mutant(
    "basa-epochs-wrap",
    "ERR-02",
    "security: an epoch is taken modulo 2**32, so that masks and boxes repeat",
    _BUILD,
    lambda: _masked(round=str(2**32)),
    also=("ADP-37",),
    kind="privacy",
    source="silent repair",
)(changing(_MASK, _SEAL, _OPEN, _RECOVER)(lambda given: {**given, "round": str(int(given["round"]) % 2**32)}))


def _sampled(asked: Function, given: dict[str, Any]) -> Any:
    return asked(**{**given, "rand": {"box_key": _fits(given["rand"]["box_key"], 32)}})


mutant(
    "basa-box-key-fitted",
    "RND-04",
    "disagreement: a sampled key of another length is cut, or continued by zeros",
    _BUILD,
    lambda: _answer(_SEAL, _box().seal_params(), box_key="07"),
    kind="acceptance",
    source="silent repair",
)(wrapping(_SEAL)(_sampled))
