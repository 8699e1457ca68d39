"""Boxes sealed to attributes: each position of an epoch is an attribute, the only one of the position's secret key.

Source: BASA, section 3.1; spec/basa.md, section 5 (CP-ABE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.scalars import scalar
from secagg_spec.crypto.attribute_keys import MasterKey, PublicKey, SecretKey, issue, setup
from secagg_spec.crypto.attributes import Leaf, decrypt, encrypt
from secagg_spec.crypto.boxes import PROTOCOL, Address, Encryption, Epoch
from secagg_spec.crypto.keys import LABEL, VERSION, fields, sha256
from secagg_spec.crypto.pairing import POINT_1_BYTES, POINT_2_BYTES
from secagg_spec.crypto.prg import KEY_BYTES, check_key
from secagg_spec.errors import DecryptionFailed, LengthMismatch, Malformed, ParameterError

_TREE_BYTES = 2 + KEY_BYTES
_TAG = 16
_PUBLIC_KEY_BYTES = 2 * POINT_1_BYTES + POINT_2_BYTES
_SECRET_KEY_BYTES = 2 * POINT_2_BYTES + POINT_1_BYTES + 2 + KEY_BYTES
_BOX_BYTES = _TREE_BYTES + 2 * POINT_1_BYTES + POINT_2_BYTES + 4 + KEY_BYTES + _TAG


def attribute(epoch: Epoch, slot: tuple[str, int]) -> bytes:
    """Return the attribute that opens the boxes of a slot, 32 bytes; raises `ParameterError` as `Epoch.check_slot`."""
    bound = (LABEL, VERSION, PROTOCOL, epoch.parameters, epoch.session, epoch.number)
    return sha256(fields(*bound, *epoch.check_slot(slot)))


@dataclass(frozen=True)
class AttributeBoxes(validate.Plain):
    """One public key for the session; each position of an epoch is an attribute."""

    name: str = "cp-abe"
    number: int = 1
    samples: str = "box_secrets"
    box_bytes: int = _BOX_BYTES
    key_bytes: int = _SECRET_KEY_BYTES

    def check_published(self, epoch: Epoch, published: bytes) -> None:
        """Refuse bytes that do not encode a public key of the scheme.

        Raises
        ------
        ParameterError
        """
        try:
            _public(validate.octets("keys", published))
        except Malformed as error:
            raise ParameterError("keys", f"{len(published)} bytes", f"a public key of the scheme: {error}") from None

    def check_key(self, epoch: Epoch, published: bytes, slot: tuple[str, int], key: bytes) -> None:
        """Refuse bytes that do not encode a secret key for the attribute of the slot (BAA-30).

        Raises
        ------
        ParameterError
            The bytes do not encode a secret key, or the key is for other attributes.
        """
        try:
            held = set(_secret(validate.octets("key", key)).by_attribute)
        except Malformed as error:
            raise ParameterError("key", "a secret key", f"one of the scheme: {error}") from None
        if held != {attribute(epoch, slot)}:
            raise ParameterError("key", "a secret key", f"the one of the {slot[0]} of position {slot[1]}")

    def seal(self, address: Address, published: bytes, seed: bytes, sampled: Any) -> bytes:
        """Return the box of a seed; `sampled` has one scalar per position, and the target's scalar is used (BAA-04).

        Raises
        ------
        LengthMismatch
            The seed is not 32 bytes long, or there is not exactly one scalar per position.
        ParameterError
            An argument is of another type.
        """
        check_key("seed", seed)
        scalars = validate.sequence("box_secrets", sampled, "scalars")
        if len(scalars) != address.epoch.positions:
            raise LengthMismatch("len(box_secrets)", len(scalars), f"{address.epoch.positions}, one for each position")
        return encrypt(
            _public(validate.octets("published", published)),
            Leaf(attribute(address.epoch, address.slot)),
            seed,
            session=address.epoch.session,
            associated=address.binding(),
            secret=scalar(f"box_secrets[{address.target}]", scalars[address.target]),
            coefficients=(),
        )

    def open(self, address: Address, published: bytes, key: bytes, box: bytes) -> bytes:
        """Return the seed in a box, 32 bytes (BAA-05).

        Raises
        ------
        DecryptionFailed
            The box was altered or cut, or is bound to something else; its sender is blamed.
        LengthMismatch
            The public key or the secret key has another length.
        ParameterError
            An argument is of another type.
        """
        published = validate.octets("published", published, _PUBLIC_KEY_BYTES)
        key = validate.octets("key", key, self.key_bytes)
        session, associated = address.epoch.session, address.binding()
        try:
            seed = decrypt(_public(published), _secret(key), box, session=session, associated=associated)
        except (DecryptionFailed, Malformed):
            seed = b""
        if len(seed) != KEY_BYTES:
            message = f"the {address.purpose} from position {address.source} to {address.target} does not open"
            raise DecryptionFailed(message, (address.sender,))
        return seed


ATTRIBUTE_BOXES: Encryption = AttributeBoxes()


@dataclass(frozen=True)
class AttributeKeyRing(validate.Plain):
    """The master key of a session; secret keys are issued only when they are handed out."""

    public: PublicKey
    master: MasterKey = field(repr=False)
    encryption: Encryption = ATTRIBUTE_BOXES
    opening: tuple[str, ...] = ()
    issuing: tuple[str, ...] = ("key_blindings",)

    def renew(self, epoch: Epoch, sampled: tuple[Any, ...]) -> AttributeKeyRing:
        """Return the same ring: the attributes contain the epoch (BAA-07)."""
        return self

    def forget(self) -> AttributeKeyRing:
        """Return the same ring."""
        return self

    def stored(self) -> bytes:
        """Return the public key followed by the master key, as bytes."""
        return self.public.to_bytes() + self.master.to_bytes()

    def restored(self, epoch: Epoch, data: bytes, is_open: bool) -> AttributeKeyRing:
        """Return the ring that was stored.

        Raises
        ------
        Malformed
            The bytes do not encode a public key and its master key.
        ParameterError
            `is_open` is no truth value.
        """
        size = len(self.public.to_bytes())
        stored = validate.octets("ring", data)
        ring = AttributeKeyRing(PublicKey.from_bytes(stored[:size]), MasterKey.from_bytes(stored[size:]))
        if key_ring(alpha=ring.master.alpha, beta=ring.master.beta).stored() != stored:
            raise Malformed("the public key is not that of the master key")
        return ring

    def published(self, epoch: Epoch) -> bytes:
        """Return the public key, which is the same for the whole session."""
        return self.public.to_bytes()

    def secrets(self, epoch: Epoch, slots: Sequence[tuple[str, int]], sampled: tuple[Any, ...]) -> tuple[bytes, ...]:
        """Return a secret key for the attribute of each slot; each key uses two of the sampled blindings.

        Raises
        ------
        LengthMismatch
            There are not exactly two blindings per slot, or more was sampled than they.
        """
        if len(sampled) != 1:
            raise LengthMismatch("len(sampled)", len(sampled), "1: the blindings of all keys")
        (blindings,) = sampled
        blindings = validate.sequence("key_blindings", blindings, "scalars")
        if len(blindings) != 2 * len(slots):
            raise LengthMismatch("len(key_blindings)", len(blindings), f"{2 * len(slots)}, two for each key")
        blindings = [scalar(f"key_blindings[{at}]", blinding) for at, blinding in enumerate(blindings)]
        pairs = zip(slots, blindings[::2], blindings[1::2], strict=True)
        return tuple(self._issue(attribute(epoch, slot), *both) for slot, *both in pairs)

    def _issue(self, name: bytes, key_blinding: int, blinding: int) -> bytes:
        return issue(self.master, [name], key_blinding=key_blinding, attribute_blindings={name: blinding}).to_bytes()


def key_ring(*, alpha: int, beta: int) -> AttributeKeyRing:
    """Return the ring of a new authority; for arguments and errors see `attributes.setup`."""
    return AttributeKeyRing(*setup(alpha=alpha, beta=beta))


@lru_cache(maxsize=8)
def _public(published: bytes) -> PublicKey:
    return PublicKey.from_bytes(published)


@lru_cache(maxsize=8)
def _secret(key: bytes) -> SecretKey:
    return SecretKey.from_bytes(key)


guard(__name__)
