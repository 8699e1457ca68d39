"""Boxes: seeds that are sealed to a position of an epoch rather than to a user.

`Encryption` is the part of an encryption scheme that users and the server need; `KeyRing` is the part that only the
authority needs. `PerPosition` and `PositionKeys` implement them with one key pair for each position.

Source: spec/basa.md, section 5 (BAA-03 to BAA-06).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import LABEL, VERSION, agree, derive, fields, public_key
from secagg_spec.crypto.prg import KEY_BYTES, check_key
from secagg_spec.errors import DecryptionFailed, LengthMismatch, ParameterError, WeakKey

PROTOCOL = "basa"
PAIR, SELF = "pair-box", "self-box"
PURPOSES = (PAIR, SELF)
_NONCE = bytes(12)
_TAG = 16


@dataclass(frozen=True)
class Epoch(validate.Plain):
    """The values that bind the keys and boxes of an epoch, and its number of positions.

    `own` says whether positions also have a self key. Raises `ParameterError` for members that are no bytes, or no
    numbers in ``[0, 2**32)``.
    """

    parameters: bytes
    session: bytes
    number: int
    positions: int
    own: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.octets("parameters", self.parameters)
        validate.octets("session", self.session)
        validate.integer("number", self.number, 0, validate.MAX_COUNT)
        validate.integer("positions", self.positions, 0, validate.MAX_COUNT)

    @property
    def purposes(self) -> tuple[str, ...]:
        """The purposes of keys, in the order in which keys are published."""
        return PURPOSES if self.own else (PAIR,)

    @property
    def slot_count(self) -> int:
        """The number of keys of the epoch."""
        return len(self.purposes) * self.positions

    def slots(self) -> tuple[tuple[str, int], ...]:
        """Return the purpose and position of every key, in the order in which they are published."""
        return tuple((purpose, position) for purpose in self.purposes for position in range(self.positions))

    def check_slot(self, slot: tuple[str, int]) -> tuple[str, int]:
        """Return the purpose and position of a key if the epoch has it.

        Raises
        ------
        ParameterError
            It is no pair, the epoch has no keys for the purpose, or the position is not in the epoch.
        """
        if len(validate.sequence("slot", slot, "a purpose and a position")) != 2:
            raise ParameterError("slot", slot, "a purpose and a position")
        purpose, position = slot
        position = validate.integer("position", position, 0, self.positions - 1)
        return validate.one_of("purpose", purpose, self.purposes), position


@dataclass(frozen=True)
class Address(validate.Plain):
    """The values that bind one box: epoch, purpose, the user that seals it, source position, target position.

    Raises
    ------
    ParameterError
        The purpose is unknown, or the epoch has no keys for it; the sender is no number in ``[0, 2**32)``; a position
        is not in the epoch; or the source is
        not before the target in a pair box, or not equal to it in a self box.
    """

    epoch: Epoch
    purpose: str
    sender: int
    source: int
    target: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.purpose, str) or self.purpose not in self.epoch.purposes:
            raise ParameterError("purpose", self.purpose, " or ".join(self.epoch.purposes))
        validate.integer("sender", self.sender, 0, validate.MAX_COUNT)
        source = validate.integer("from", self.source, 0, self.epoch.positions - 1)
        target = validate.integer("to", self.target, 0, self.epoch.positions - 1)
        if (source < target) is not (self.purpose == PAIR) or source > target:
            raise ParameterError("from, to", [source, target], "ascending in a pair box, equal in a self box")

    @property
    def slot(self) -> tuple[str, int]:
        """The purpose and position of the key that opens the box."""
        return self.purpose, self.target

    def binding(self) -> bytes:
        """Return the bytes that bind the box to its use."""
        e = self.epoch
        bound = (LABEL, VERSION, PROTOCOL, e.parameters, e.session, e.number)
        return fields(*bound, self.purpose, self.sender, self.source, self.target)


class Encryption(Protocol):
    """A scheme that seals seeds to positions.

    `published` are the public keys of an epoch as the authority signs them. `sampled` are the values that the sender
    samples for all boxes of one upload; `samples` is their name.
    """

    @property
    def name(self) -> str:
        """The name of the scheme in the specification."""
        ...

    @property
    def number(self) -> int:
        """The number of the scheme in the hash of the parameters."""
        ...

    @property
    def samples(self) -> str:
        """The name of the values that a sender samples."""
        ...

    @property
    def box_bytes(self) -> int:
        """The length of a box."""
        ...

    @property
    def key_bytes(self) -> int:
        """The length of a secret key."""
        ...

    def check_published(self, epoch: Epoch, published: bytes) -> None:
        """Refuse public keys of an epoch if their number or length is wrong."""
        ...

    def check_key(self, epoch: Epoch, published: bytes, slot: tuple[str, int], key: bytes) -> None:
        """Refuse a secret key that visibly does not belong to the slot."""
        ...

    def seal(self, address: Address, published: bytes, seed: bytes, sampled: Any) -> bytes:
        """Return the box of a seed of 32 bytes."""
        ...

    def open(self, address: Address, published: bytes, key: bytes, box: bytes) -> bytes:
        """Return the seed in a box, 32 bytes."""
        ...


class KeyRing(Protocol):
    """The secret keys of the open epoch, or the data from which they are made.

    `opening` names the values that the authority samples when it opens an epoch, `issuing` the values that it samples
    when it hands out keys.
    """

    @property
    def encryption(self) -> Encryption:
        """The scheme that the keys are for."""
        ...

    @property
    def opening(self) -> tuple[str, ...]:
        """The names of the values that are sampled in `open`."""
        ...

    @property
    def issuing(self) -> tuple[str, ...]:
        """The names of the values that are sampled in `issue` and in `close`."""
        ...

    def renew(self, epoch: Epoch, sampled: tuple[Any, ...]) -> KeyRing:
        """Return the ring of a new epoch."""
        ...

    def forget(self) -> KeyRing:
        """Return the ring without the keys of an epoch."""
        ...

    def stored(self) -> bytes:
        """Return the bytes from which `restored` rebuilds the ring."""
        ...

    def restored(self, epoch: Epoch, data: bytes, is_open: bool) -> KeyRing:
        """Return the ring that was stored in an epoch; the epoch is open, or is about to be opened."""
        ...

    def published(self, epoch: Epoch) -> bytes:
        """Return the public keys of the epoch, as the authority signs them."""
        ...

    def secrets(self, epoch: Epoch, slots: Sequence[tuple[str, int]], sampled: tuple[Any, ...]) -> tuple[bytes, ...]:
        """Return the secret keys of some slots, in their order."""
        ...


@dataclass(frozen=True)
class PerPosition(validate.Plain):
    """One X25519 key pair for each position and purpose of an epoch."""

    name: str = "per-position"
    number: int = 0
    samples: str = "box_key"
    box_bytes: int = 2 * KEY_BYTES + _TAG
    key_bytes: int = KEY_BYTES

    def check_published(self, epoch: Epoch, published: bytes) -> None:
        """Refuse public keys that are not 32 bytes for each slot.

        Raises
        ------
        LengthMismatch
        """
        size = KEY_BYTES * epoch.slot_count
        if len(validate.octets("keys", published)) != size:
            raise LengthMismatch("len(keys)", len(published), f"{size}: 32 bytes for each key of the epoch")

    def check_key(self, epoch: Epoch, published: bytes, slot: tuple[str, int], key: bytes) -> None:
        """Refuse a secret key whose public half is not the one of the slot (BAA-30).

        Raises
        ------
        LengthMismatch
            The key is not 32 bytes long.
        ParameterError
            The key belongs to another public key.
        """
        check_key("key", key)
        if public_key(key) != self.public(epoch, published, slot):
            raise ParameterError("key", "a secret key", f"the one of the {slot[0]} of position {slot[1]}")

    def public(self, epoch: Epoch, published: bytes, slot: tuple[str, int]) -> bytes:
        """Return the public key of a slot, 32 bytes.

        Raises
        ------
        LengthMismatch
            There are not 32 bytes for each slot.
        ParameterError
            The epoch has no such slot.
        """
        self.check_published(epoch, published)
        return _of_slot(published, epoch, slot)

    def seal(self, address: Address, published: bytes, seed: bytes, sampled: Any) -> bytes:
        """Return the box of a seed, 80 bytes, under the private key that the sender sampled (BAA-04, BAA-06)."""
        return seal(address, self.public(address.epoch, published, address.slot), seed, sampled)

    def open(self, address: Address, published: bytes, key: bytes, box: bytes) -> bytes:
        """Return the seed in a box (BAA-05)."""
        check_key("key", key)
        return open_box(address, key, box)


PER_POSITION: Encryption = PerPosition()


@dataclass(frozen=True)
class PositionKeys(validate.Plain):
    """The private keys of an epoch, in the order of its slots; none while no epoch is open."""

    keys: bytes = field(default=b"", repr=False)
    encryption: Encryption = PER_POSITION
    opening: tuple[str, ...] = ("pair_keys", "self_keys")
    issuing: tuple[str, ...] = ()

    def renew(self, epoch: Epoch, sampled: tuple[Any, ...]) -> PositionKeys:
        """Return the ring of a new epoch, with the sampled pair keys and self keys: 32 bytes for each slot (BAA-07).

        Raises
        ------
        LengthMismatch
            The keys are not 32 bytes per position, there are self keys and the epoch has none, or what was sampled is
            not these two.
        """
        if len(sampled) != 2:
            raise LengthMismatch("len(sampled)", len(sampled), "2: the pair keys and the self keys")
        pairs, own = sampled
        for name, keys, count in (
            ("pair_keys", pairs, epoch.positions),
            ("self_keys", own, epoch.positions * epoch.own),
        ):
            if len(validate.octets(name, keys)) != KEY_BYTES * count:
                raise LengthMismatch(
                    f"len({name})", len(keys), f"{KEY_BYTES * count}: 32 bytes for each of {count} keys"
                )
        return PositionKeys(pairs + own)

    def forget(self) -> PositionKeys:
        """Return the ring without keys."""
        return PositionKeys()

    def stored(self) -> bytes:
        """Return the private keys."""
        return self.keys

    def restored(self, epoch: Epoch, data: bytes, is_open: bool) -> PositionKeys:
        """Return the ring with the private keys of an open epoch, or without keys if no epoch is open.

        Raises
        ------
        LengthMismatch
            The keys are not 32 bytes per slot.
        ParameterError
            `is_open` is no truth value.
        """
        size = KEY_BYTES * epoch.slot_count * is_open
        if len(validate.octets("ring", data)) != size:
            raise LengthMismatch("len(ring)", len(data), f"{size}: 32 bytes for each key of an open epoch")
        return PositionKeys(data)

    def published(self, epoch: Epoch) -> bytes:
        """Return the public keys, 32 bytes for each slot."""
        return b"".join(public_key(key) for key in self.secrets(epoch, epoch.slots(), ()))

    def secrets(self, epoch: Epoch, slots: Sequence[tuple[str, int]], sampled: tuple[Any, ...]) -> tuple[bytes, ...]:
        """Return the private keys of some slots; errors as in `PerPosition.public`."""
        PER_POSITION.check_published(epoch, self.keys)
        return tuple(_of_slot(self.keys, epoch, slot) for slot in slots)


def _of_slot(keys: bytes, epoch: Epoch, slot: tuple[str, int]) -> bytes:
    """Return the key of a slot, 32 bytes, given the keys of all slots."""
    purpose, position = epoch.check_slot(slot)
    at = KEY_BYTES * (PURPOSES.index(purpose) * epoch.positions + position)
    return keys[at : at + KEY_BYTES]


def seal(address: Address, public: bytes, seed: bytes, box_key: bytes) -> bytes:
    """Return the box of a seed, sealed to one public key: 80 bytes (BAA-04).

    Parameters
    ----------
    address : Address
        The values that bind the box.
    public : bytes
        The X25519 public key, 32 bytes.
    seed : bytes
        32 bytes.
    box_key : bytes
        The private key of the sender for this upload, 32 bytes.

    Raises
    ------
    LengthMismatch
        A key or the seed is not 32 bytes long.
    WeakKey
        The public key is of low order (BAA-06).
    """
    check_key("seed", seed)
    check_key("box_key", box_key)
    shared, mine, bound = agree(box_key, public), public_key(box_key), address.binding()
    return mine + _cipher(address.epoch, bound, shared, mine, public).encrypt(_NONCE, seed, bound)


def open_box(address: Address, private: bytes, box: bytes) -> bytes:
    """Return the seed in a box, 32 bytes (BAA-05).

    Raises
    ------
    LengthMismatch
        The private key is not 32 bytes long.
    DecryptionFailed
        The box was altered or cut, is bound to something else, or holds a key of low order; its sender is blamed.
    """
    check_key("private", private)
    mine, sealed = validate.octets("box", box)[:KEY_BYTES], box[KEY_BYTES:]
    try:
        if len(box) != PER_POSITION.box_bytes:
            raise InvalidTag
        shared, bound = agree(private, mine), address.binding()
        return _cipher(address.epoch, bound, shared, mine, public_key(private)).decrypt(_NONCE, sealed, bound)
    except (InvalidTag, WeakKey):
        message = f"the {address.purpose} from position {address.source} to {address.target} does not open"
        raise DecryptionFailed(message, (address.sender,)) from None


def mask_key(epoch: Epoch, seed: bytes, source: int, target: int | None = None) -> bytes:
    """Return the key of the mask from one position to another, or of a position's own mask: 32 bytes (BAA-03)."""
    check_key("seed", seed)
    for name, position in (("source", source), ("target", 0 if target is None else target)):
        validate.integer(name, position, 0, validate.MAX_COUNT)
    bound = (LABEL, VERSION, PROTOCOL, epoch.parameters, epoch.number)
    where = ("self-mask", 0, source) if target is None else ("pairwise-mask", 0, source, target)
    return derive(seed, epoch.session, fields(*bound, *where))


def _cipher(epoch: Epoch, bound: bytes, shared: bytes, mine: bytes, theirs: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(derive(shared, epoch.session, bound + fields(mine, theirs)))


guard(__name__)
