"""The messages of BASA, and the common knowledge of its parties: parameters, keys of the roster, signed contents.

Source: spec/basa.md, sections 3 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.boxes import PAIR, PROTOCOL, SELF, Address, Encryption, Epoch
from secagg_spec.crypto.keys import SESSION_BYTES, Roster, hash_parameters, sha256
from secagg_spec.crypto.prg import check_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.crypto.signatures import SIGNATURE_BYTES, signed_fields, verify
from secagg_spec.protocols import codec
from secagg_spec.protocols.agreement import words
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.steps import AUTHORITY

FREE, ACCEPTED, SKIPPED, VOIDED = range(4)
"""The outcomes of a position: the values of `state` in `PositionState`."""
HASH_BYTES = 32
LAST_EPOCH = 2**32 - 1
_Message = TypeVar("_Message", bound=codec.Message)


@dataclass(frozen=True, eq=False)
class EpochKeys(codec.Message):
    """The public keys of the positions of an epoch, signed by the authority."""

    TYPE: ClassVar[int] = 1025
    keys: codec.Opaque
    signature: codec.Opaque


@dataclass(frozen=True, eq=False)
class PositionRequest(codec.Message):
    """A request for a position; `round` is the stamp of the sender's update."""

    TYPE: ClassVar[int] = 1026


@dataclass(frozen=True, eq=False)
class PositionOffer(codec.Message):
    """A position, the keys of the epoch, and the boxes from earlier accepted positions."""

    TYPE: ClassVar[int] = 1027
    position: codec.U32
    keys: codec.Opaque
    signature: codec.Opaque
    boxes: codec.Opaque


@dataclass(frozen=True, eq=False)
class Assignment(codec.Message):
    """The notice that a position is offered to a user."""

    TYPE: ClassVar[int] = 1028
    position: codec.U32
    user: codec.U32


@dataclass(frozen=True, eq=False)
class KeyRequest(codec.Message):
    """A request for the pair key of the position that the sender was offered."""

    TYPE: ClassVar[int] = 1029
    position: codec.U32


@dataclass(frozen=True, eq=False)
class PositionKey(codec.Message):
    """The pair key of a position, with earlier accepted positions, their users and the hashes of their boxes."""

    TYPE: ClassVar[int] = 1030
    position: codec.U32
    positions: codec.Vector
    senders: codec.Vector
    hashes: codec.Opaque
    key: codec.Opaque


@dataclass(frozen=True, eq=False)
class PositionUpload(codec.Message):
    """The masked update, d elements, with the boxes to later positions, signed."""

    TYPE: ClassVar[int] = 1031
    position: codec.U32
    stamp: codec.U32
    weight: codec.U32
    masked: codec.Vector
    boxes: codec.Opaque
    signature: codec.Opaque


@dataclass(frozen=True, eq=False)
class Settlement(codec.Message):
    """The notice of an upload at a position, with the data that its user signed, or of an expired offer."""

    TYPE: ClassVar[int] = 1032
    position: codec.U32
    accepted: codec.U16
    stamp: codec.U32
    weight: codec.U32
    hashes: codec.Opaque
    signature: codec.Opaque


@dataclass(frozen=True, eq=False)
class PositionState(codec.Message):
    """The outcome of a position: free, accepted, skipped or void."""

    TYPE: ClassVar[int] = 1033
    position: codec.U32
    state: codec.U16


@dataclass(frozen=True, eq=False)
class CloseRequest(codec.Message):
    """The server's request to end the epoch."""

    TYPE: ClassVar[int] = 1034


@dataclass(frozen=True, eq=False)
class Release(codec.Message):
    """One secret key for each position, or none."""

    TYPE: ClassVar[int] = 1035
    keys: codec.Opaque


@dataclass(frozen=True, eq=False)
class Abandonment(codec.Message):
    """The notice that the server gave up the epoch."""

    TYPE: ClassVar[int] = 1036


# ------------------------------------------------------------------------------------------------ what all know


@dataclass(frozen=True)
class Session:
    """The common knowledge of all parties of a session.

    Parameters
    ----------
    parameters : Parameters
    id : bytes
        The session id, 16 bytes.
    encryption : Encryption
        How seeds are sealed to positions.
    verification : Roster
        The Ed25519 verification keys of the N users.
    authority : bytes
        The verification key of the authority, 32 bytes.

    Raises
    ------
    LengthMismatch
        The session id or a key has another length, or the roster does not name N users.
    """

    parameters: Parameters
    id: bytes
    encryption: Encryption
    verification: Roster
    authority: bytes

    def __post_init__(self) -> None:
        validate.octets("session", self.id, SESSION_BYTES)
        if len(self.verification.keys) != self.parameters.N:
            raise errors.LengthMismatch("len(verification)", len(self.verification.keys), f"N = {self.parameters.N}")
        check_key("authority", self.authority)

    @cached_property
    def hash(self) -> bytes:
        """The hash of the parameters, to which keys and signatures are bound (section 5)."""
        return hash_parameters({**self.parameters.numbers(), "encryption": self.encryption.number})

    def epoch(self, number: int) -> Epoch:
        """Return the epoch that boxes are bound to."""
        return Epoch(self.hash, self.id, number, self.parameters.positions, self.parameters.settle)

    def box_count(self, position: int) -> int:
        """Return the number of boxes in the upload at a position k: P - 1 - k, plus the self box if there is one."""
        return len(self.targets(position))

    def address(self, number: int, sender: int, source: int, target: int) -> Address:
        """Return the address of the box from one position to another, or to itself."""
        return Address(self.epoch(number), SELF if source == target else PAIR, sender, source, target)

    def targets(self, position: int) -> tuple[int, ...]:
        """Return the target position of each box of an upload, in order; the self box comes last."""
        position = validate.integer("position", position, 0, self.parameters.positions - 1)
        own = (position,) if self.parameters.settle else ()
        return (*range(position + 1, self.parameters.positions), *own)

    def boxes(self, data: bytes) -> tuple[bytes, ...]:
        """Return the boxes that are concatenated in `data`.

        Raises
        ------
        LengthMismatch
            The bytes are not a whole number of boxes.
        """
        return split("boxes", data, self.encryption.box_bytes)

    def keys_signed(self, number: int, published: bytes) -> bytes:
        """Return the bytes that the authority signs for the public keys of an epoch (BAA-08)."""
        return signed_fields(
            self._context(number, EpochKeys), "epoch-keys", AUTHORITY, (validate.octets("published", published),)
        )

    def boxes_signed(self, number: int, user: int, upload: tuple[int, int, int], digests: bytes) -> bytes:
        """Return the bytes that a user signs for the position, stamp and weight of an upload and its boxes (BAA-34)."""
        numbers = [validate.integer(f"upload[{at}]", value, 0, validate.MAX_COUNT) for at, value in enumerate(upload)]
        validate.integer("user", user, 0, validate.MAX_COUNT)
        content = (*(words([value]) for value in numbers), validate.octets("digests", digests))
        return signed_fields(self._context(number, PositionUpload), "boxes", user, content)

    def _context(self, number: int, kind: type[codec.Message]) -> Context:
        validate.integer("number", number, 0, validate.MAX_COUNT)
        return Context(PROTOCOL, self.hash, self.id, number, kind.TYPE)

    def check_position(self, message: codec.Message, position: int) -> None:
        """Refuse a message that names a position that does not exist (BAA-51)."""
        with blaming(message):
            validate.integer("position", position, 0, self.parameters.positions - 1)

    def check_keys(self, message: EpochKeys | PositionOffer) -> None:
        """Refuse keys of the wrong length (BAA-51), and keys that the authority did not sign for the epoch (BAA-29)."""
        with blaming(message):
            self.encryption.check_published(self.epoch(message.round), message.keys)
            check_length("signature", message.signature, SIGNATURE_BYTES)
        verify(self.authority, self.keys_signed(message.round, message.keys), message.signature, (message.sender,))


# ------------------------------------------------------------------------------------------------------ helpers


def digests(boxes: Iterable[bytes]) -> bytes:
    """Return the concatenated hashes of boxes."""
    return b"".join(sha256(validate.octets(f"boxes[{at}]", box)) for at, box in enumerate(boxes))


def split(name: str, data: bytes, size: int) -> tuple[bytes, ...]:
    """Split bytes into pieces of `size` bytes.

    Raises
    ------
    LengthMismatch
        The last piece is shorter.
    ParameterError
        `size` is not an integer of at least 1.
    """
    size = validate.integer("size", size, 1)
    count = len(validate.octets(name, data)) // size
    check_length(name, data, count * size, f"a multiple of {size} bytes")
    return tuple(data[at * size : (at + 1) * size] for at in range(count))


def check_length(name: str, data: bytes, size: int, allowed: str = "") -> None:
    """Refuse bytes that do not have the length `size`.

    Raises
    ------
    LengthMismatch
    ParameterError
        `size` is not an integer, or is negative.
    """
    size = validate.integer("size", size, 0)
    if len(validate.octets(name, data)) != size:
        raise errors.LengthMismatch(f"len({name})", len(data), allowed or f"{size} bytes")


def require(condition: bool, message: str) -> None:
    """Refuse a step that the state does not allow, without blame."""
    if not condition:
        raise errors.WrongPhase(message)


def whole(message: codec.Message) -> None:
    """Refuse a message with a field that cannot be encoded.

    Raises
    ------
    Malformed
    ParameterError
        The header cannot be encoded, so that there is nobody to blame.
    """
    codec.check_header(message)
    with blaming(message):
        codec.encode(message)


@contextmanager
def blaming(message: codec.Message) -> Iterator[None]:
    """Turn the refusal of a value from a message into a refusal of the message, and blame its sender."""
    try:
        yield
    except errors.ParameterError as error:
        raise errors.Malformed(f"{type(message).__name__} from {message.sender}: {error}", (message.sender,)) from error


guard(__name__)
