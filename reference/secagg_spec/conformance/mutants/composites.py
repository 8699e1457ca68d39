"""Two planted bugs that hide each other: an implementation alone with itself still gives the right sum.

Each pair is consistent, so that a whole round of one implementation, or what it writes and then reads, comes out right.
Only fixed outcomes show it, and rounds that it plays with others. The halves that have no use besides stand here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from secagg_spec.arithmetic import mds, packing, shamir
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import composite, mutant
from secagg_spec.protocols import basa_cores, basecagg, codec, lightsecagg, secagg
from secagg_spec.protocols.lightsecagg import SurvivingSet
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_CODE = "secagg_spec.arithmetic.mds:MaskCode"
_RINGS = "secagg_spec.arithmetic.modular:Ring"
_SHAMIR = "secagg_spec.arithmetic.shamir"
_LSA = "secagg_spec.protocols.lightsecagg"
_SECAGG = "secagg_spec.protocols.secagg"
_BASECAGG = "secagg_spec.protocols.basecagg"
_BASA = "secagg_spec.protocols.basa_cores"
_CODEC = "secagg_spec.protocols.codec"
_PACKING = "secagg_spec.arithmetic.packing"

_FIELD = PrimeField(97)
_RING = Ring(101)
_TINY = lightsecagg.PRESETS["tiny"]


def _vector(*values: int) -> UintArray:
    return np.array(values, dtype=np.uint64)


# -------------------------------------------------------------------------------------------- the code of masks


def _moved(code: mds.MaskCode) -> mds.MaskCode:
    """Return the code whose points are one further on, in a field that has room for them."""
    points = tuple(int(point) + 1 for point in code.points)
    return mds.MaskCode(code.field, code.N, code.U, code.T, points) if code.field.modulus > code.N + 1 else code


def _encoded() -> object:
    return mds.MaskCode(_FIELD, 4, 3, 1).encode(_vector(4, 0, 6), _vector(2, 5).reshape(1, 2)).tolist()


def _decoded() -> object:
    return mds.MaskCode(_FIELD, 4, 3, 1).decode((0, 1, 2), _vector(1, 2, 3).reshape(3, 1), 2).tolist()


@mutant(
    "encodes-one-point-further",
    "MDS-04",
    "wrong sum: the share of a user is taken at the point of the next one",
    f"{_CODE}.encode",
    _encoded,
    kind="sum",
    source="off by one",
)
def _encodes(right: Function) -> Function:
    return lambda self, mask, noise: right(_moved(self), mask, noise)


@mutant(
    "decodes-one-point-further",
    "MDS-05",
    "wrong sum: the share of a user is taken for that at the point of the next one",
    f"{_CODE}.decode",
    _decoded,
    kind="sum",
    source="off by one",
)
def _decodes(right: Function) -> Function:
    return lambda self, users, shares, d: right(_moved(self), users, shares, d)


composite(
    "code-one-point-further",
    "MDS-04",
    "no interoperation: shares are made and decoded at the points of the next users",
    "encodes-one-point-further",
    "decodes-one-point-further",
    witness=_encoded,
    also=("MDS-05",),
    kind="form",
    source="off by one",
)


# -------------------------------------------------------------------------------------------- signs of the masks


def _masked() -> object:
    return lightsecagg.mask_update(_FIELD, _vector(1), _vector(2)).tolist()


def _recovered() -> object:
    shares = np.zeros((_TINY.U, _TINY.share_length), dtype=np.uint64)
    shares[0, 0] = 1
    return lightsecagg.recover(_TINY, _TINY.field.zeros(_TINY.d), tuple(range(_TINY.U)), shares).tolist()


@mutant(
    "recovery-adds-the-mask",
    "LSA-13",
    "wrong sum: the server adds the sum of the masks where it is to be taken away",
    f"{_LSA}:recover",
    _recovered,
    kind="sum",
    source="sign",
)
def _adds(right: Function) -> Function:
    def wrong(p: lightsecagg.Parameters, masked_sum: UintArray, users: Any, shares: UintArray) -> UintArray:
        taken = right(p, masked_sum, users, shares)
        return p.field.subtract(p.field.add(masked_sum, masked_sum), taken)

    return wrong


composite(
    "masks-with-the-other-sign",
    "LSA-02",
    "no interoperation: users subtract their masks, and the server adds the sum of the masks",
    "mask-is-subtracted",
    "recovery-adds-the-mask",
    witness=_masked,
    also=("LSA-13",),
    kind="form",
    source="sign",
)


def _weighed() -> object:
    code = mds.MaskCode(_FIELD, 4, 3, 1)
    return basecagg.recover(code, _vector(1), [_vector(5, 6)], (0, 1, 2), _vector(1, 2, 3).reshape(3, 1)).tolist()


@mutant(
    "buffered-recovery-adds-the-mask",
    "BSA-29",
    "wrong sum: the server adds the weighted sum of the masks where it is to be taken away",
    f"{_BASECAGG}:recover",
    _weighed,
    kind="sum",
    source="sign",
)
def _adds_weighted(right: Function) -> Function:
    def wrong(code: mds.MaskCode, weights: UintArray, masked: Any, users: Any, shares: UintArray) -> UintArray:
        taken = right(code, weights, masked, users, shares)
        total = code.field.weighted_sum(weights, masked)
        return code.field.subtract(code.field.add(total, total), taken)

    return wrong


composite(
    "buffered-masks-with-the-other-sign",
    "BSA-04",
    "no interoperation: users subtract their masks, and the server adds the weighted sum of the masks",
    "buffered-mask-subtracted",
    "buffered-recovery-adds-the-mask",
    witness=lambda: basecagg.mask_update(_FIELD, 1, _vector(1), _vector(2)).tolist(),
    also=("BSA-29",),
    kind="form",
    source="sign",
)


def _input() -> object:
    return secagg.mask_update(_RING, 1, _vector(1), _vector(2), [(0, _vector(5)), (2, _vector(7))]).tolist()


def _unmasked() -> object:
    return secagg.unmask(_RING, _vector(50), [_vector(2)], [(0, 1, _vector(5))]).tolist()


@mutant(
    "own-mask-is-subtracted",
    "SAG-12",
    "wrong sum: a user subtracts its own mask where it is to be added",
    f"{_SECAGG}:mask_update",
    _input,
    kind="sum",
    source="sign",
)
def _own_subtracted(right: Function) -> Function:
    def wrong(ring: Ring, user: int, update: UintArray, self_mask: Any, pairwise: Any) -> UintArray:
        without = right(ring, user, update, ring.zeros(update.size), pairwise)
        return ring.signed_sum(without, [(False, self_mask)])

    return wrong


@mutant(
    "own-masks-are-added",
    "SAG-29",
    "wrong sum: the server adds the own masks of the survivors where they are to be taken away",
    f"{_SECAGG}:unmask",
    _unmasked,
    kind="sum",
    source="sign",
)
def _own_added(right: Function) -> Function:
    def wrong(ring: Ring, masked_sum: UintArray, self_masks: Any, left: Any) -> UintArray:
        return ring.signed_sum(right(ring, masked_sum, (), left), ((True, mask) for mask in self_masks))

    return wrong


composite(
    "own-masks-with-the-other-sign",
    "SAG-12",
    "no interoperation: users subtract their own masks, and the server adds them",
    "own-mask-is-subtracted",
    "own-masks-are-added",
    witness=_input,
    also=("SAG-29",),
    kind="form",
    source="sign",
)

composite(
    "shared-masks-with-the-other-sign",
    "SAG-12",
    "no interoperation: the smaller user of a pair subtracts, and the server removes what is left in that way",
    "sign-of-the-mask",
    "sign-of-equation-5",
    witness=_input,
    also=("SAG-29",),
    kind="form",
    source="sign",
)


def _in_buffer() -> object:
    masks = basa_cores.Masks((_vector(5),), (_vector(7),), _vector(2))
    return basa_cores.add_masks(_RING, _vector(1), masks).tolist()


def _of_buffer() -> object:
    parameters = basa_cores.PRESETS["tiny"]
    own = np.ones(parameters.d, dtype=np.uint64)
    return basa_cores.recover(parameters, [], [own], []).tolist()


@mutant(
    "basa-own-mask-subtracted",
    "BAA-26",
    "wrong sum: a user subtracts its self mask where it is to be added",
    f"{_BASA}:add_masks",
    _in_buffer,
    kind="sum",
    source="sign",
)
def _self_subtracted(right: Function) -> Function:
    def wrong(ring: Ring, weighted: UintArray, masks: basa_cores.Masks) -> UintArray:
        without = right(ring, weighted, basa_cores.Masks(masks.before, masks.after))
        return without if masks.own is None else ring.signed_sum(without, basa_cores.minus([masks.own]))

    return wrong


@mutant(
    "basa-own-masks-added",
    "BAA-41",
    "wrong sum: the server adds the self masks where they are to be taken away",
    f"{_BASA}:recover",
    _of_buffer,
    kind="sum",
    source="sign",
)
def _self_added(right: Function) -> Function:
    def wrong(parameters: basa_cores.Parameters, masked: Any, own: Any, skipped: Any) -> UintArray:
        added: UintArray = right(parameters, [*masked, *own], [], skipped)
        return added

    return wrong


composite(
    "basa-own-masks-with-the-other-sign",
    "BAA-26",
    "no interoperation: users subtract their self masks, and the server adds them",
    "basa-own-mask-subtracted",
    "basa-own-masks-added",
    witness=_in_buffer,
    also=("BAA-41",),
    kind="form",
    source="sign",
)


# -------------------------------------------------------------------------------------------------- signed numbers


def _carried() -> object:
    return _RING.encode_signed(np.array([3, -4])).tolist()


@mutant(
    "encodes-the-opposite",
    "QNT-05",
    "wrong sum: an integer is carried with the other sign",
    f"{_RINGS}.encode_signed",
    _carried,
    kind="sum",
    source="sign",
)
def _encodes_opposite(right: Function) -> Function:
    return lambda self, values: right(self, -values)


@mutant(
    "decodes-the-opposite",
    "QNT-06",
    "wrong sum: what is carried is read with the other sign",
    f"{_RINGS}.decode_signed",
    lambda: _RING.decode_signed(_vector(3, 97)).tolist(),
    kind="sum",
    source="sign",
)
def _decodes_opposite(right: Function) -> Function:
    return lambda self, values: -right(self, values)


composite(
    "integers-with-the-other-sign",
    "QNT-05",
    "no interoperation: integers are carried with the other sign, and read so",
    "encodes-the-opposite",
    "decodes-the-opposite",
    witness=_carried,
    also=("QNT-06",),
    kind="form",
    source="sign",
)


# ------------------------------------------------------------------------------------------------ Shamir's sharing


def _shared() -> object:
    return shamir.share(bytes(31) + b"\x01", (5,), (0, 1, 2))


@mutant(
    "shamir-shares-one-point-further",
    "SHM-04",
    "wrong secret: the share of a user is taken at the point of the next one",
    f"{_SHAMIR}:_evaluate",
    _shared,
    kind="form",
    source="off by one",
)
def _shares_further(right: Function) -> Function:
    return lambda descending, x: right(descending, x + 1)


@mutant(
    "shamir-reconstructs-one-point-further",
    "SHM-08",
    "wrong secret: the share of a user is taken for that at the point of the next one",
    f"{_SHAMIR}:reconstruct",
    lambda: shamir.reconstruct(2, (0, 1), (11, 12)),
    kind="sum",
    source="off by one",
)
def _reconstructs_further(right: Function) -> Function:
    return lambda t, users, shares: right(t, [user + 1 for user in users], shares)


composite(
    "shamir-one-point-further",
    "SHM-04",
    "no interoperation: secrets are shared and put together at the points of the next users",
    "shamir-shares-one-point-further",
    "shamir-reconstructs-one-point-further",
    witness=_shared,
    also=("SHM-08",),
    kind="form",
    source="off by one",
)

composite(
    "shamir-elements-in-the-other-order",
    "SHM-05",
    "no interoperation: shares are written and read with the highest byte first",
    "shamir-elements-big-endian",
    "shamir-elements-read-big-endian",
    witness=lambda: shamir.element_bytes(1),
    kind="form",
    source="encoding",
)


# ------------------------------------------------------------------------------------------------------- messages


def _written() -> object:
    return codec.encode(SurvivingSet(bytes(16), 1, SERVER, 0, (0, 1)))


@mutant(
    "rounds-and-parties-big-endian",
    "MSG-01",
    "no interoperation: the round and the parties stand in messages in network order",
    f"{_CODEC}:Unsigned.write",
    _written,
    kind="form",
    source="encoding",
)
def _header_big_endian(right: Function) -> Function:
    def wrong(self: codec.Unsigned, name: str, value: Any) -> bytes:
        data: bytes = right(self, name, value)
        return data[::-1] if name in ("round", "sender", "receiver") else data

    return wrong


for _name, _effect, _parts in (
    (
        "integers-in-network-order",
        "the round and the parties stand in messages in network order, and are read so",
        ("rounds-and-parties-big-endian", "integers-read-big-endian"),
    ),
    (
        "receiver-stands-first",
        "the receiver stands before the sender in messages, and is read so",
        ("sender-after-receiver", "receiver-read-first"),
    ),
    (
        "lists-measured-in-bytes",
        "the length of a list is written as its number of bytes, and read so",
        ("lists-counted-in-bytes", "counts-read-as-bytes"),
    ),
):
    composite(
        _name,
        "MSG-01",
        f"no interoperation: {_effect}",
        *_parts,
        witness=_written,
        kind="form",
        source="encoding",
    )


def _packed() -> object:
    return packing.pack(_vector(1, 2, 3), 5)


@mutant(
    "unpacked-highest-bit-first",
    "HSA-15",
    "wrong sum: the bits of an element are read from the highest on",
    f"{_PACKING}:unpack",
    lambda: packing.unpack(bytes([32]), 2, 8).tolist(),
    kind="sum",
    source="encoding",
)
def _highest_first(right: Function) -> Function:
    def wrong(data: bytes, count: int, modulus: int) -> UintArray:
        width = packing.bits_of(modulus)
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="big")
        rows = bits[: count * width].reshape(count, width)[:, ::-1]
        ordered = np.concatenate([rows.ravel(), bits[count * width :]])
        numbers: UintArray = right(np.packbits(ordered, bitorder="little").tobytes(), count, modulus)
        return numbers

    return wrong


composite(
    "bits-from-the-highest-on",
    "HSA-15",
    "no interoperation: the bits of an element are written and read from the highest on",
    "packed-highest-bit-first",
    "unpacked-highest-bit-first",
    witness=_packed,
    kind="form",
    source="encoding",
)
