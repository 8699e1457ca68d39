"""Keys of encryption by attributes: the keys of the authority, and the secret keys that it issues.

Notation: g_1, g_2 are the generators; alpha and beta are the master key; rho is the blinding of a secret key, rho_j the
blinding of its attribute j.

Source: Bethencourt, Sahai and Waters, Ciphertext-Policy Attribute-Based Encryption, 2007, section 4.2;
spec/attributes.md, section 4 (ABE-09, ABE-11, ABE-19, ABE-21 to ABE-24).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from secagg_spec.arithmetic import scalars, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.scalars import SCALAR_BYTES, scalar
from secagg_spec.crypto import access_tree, pairing
from secagg_spec.crypto.keys import sha256
from secagg_spec.crypto.pairing import GT, POINT_1_BYTES, POINT_2_BYTES, Fixed, G1Point, G2Point
from secagg_spec.crypto.reader import Reader
from secagg_spec.errors import Malformed, ParameterError

MAX_ATTRIBUTES: Final = 255


# -------------------------------------------------------------------------------------------------------------- keys


@dataclass(frozen=True)
class PublicKey:
    """The public key, for encryption: h = g_1^beta, f = g_2^(1/beta), w = g_1^(alpha beta) (ABE-09)."""

    h: G1Point
    f: G2Point
    w: G1Point

    def to_bytes(self) -> bytes:
        """Return the 192 bytes of the key."""
        return b"".join(point.to_compressed_bytes() for point in (self.h, self.f, self.w))

    @classmethod
    def from_bytes(cls, data: bytes) -> PublicKey:
        """Return the key that bytes encode.

        Raises
        ------
        Malformed
            The bytes do not encode a key (ABE-23, ABE-24).
        """
        reader = Reader("a public key", validate.octets("data", data))
        key = cls(point_1(reader), point_2(reader), point_1(reader))
        reader.end()
        return key

    @cached_property
    def fixed_h(self) -> Fixed[G1Point]:
        """The element h, prepared for powers."""
        return Fixed(self.h, G1Point.__add__)

    @cached_property
    def target(self) -> Fixed[GT]:
        """The element e(w, f) = e(g_1, g_2)^alpha, prepared for powers."""
        return pairing.target_base(self.w, self.f)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the bytes of the key."""
        return sha256(self.to_bytes())


@dataclass(frozen=True)
class MasterKey:
    """The master key, with which the authority issues keys: alpha and beta in ``[1, r)``.

    Raises
    ------
    ParameterError, NonCanonical
        A number is not in ``[1, r)`` (ABE-19).
    """

    alpha: int = field(repr=False)
    beta: int = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", scalar("alpha", self.alpha))
        object.__setattr__(self, "beta", scalar("beta", self.beta))

    def to_bytes(self) -> bytes:
        """Return the 64 bytes of the key."""
        return b"".join(number.to_bytes(SCALAR_BYTES, "little") for number in (self.alpha, self.beta))

    @classmethod
    def from_bytes(cls, data: bytes) -> MasterKey:
        """Return the key that bytes encode.

        Raises
        ------
        Malformed
            The bytes do not encode a key (ABE-24).
        """
        reader = Reader("a master key", validate.octets("data", data))
        alpha, beta = reader.number(SCALAR_BYTES), reader.number(SCALAR_BYTES)
        reader.end()
        try:
            return cls(alpha, beta)
        except ParameterError as error:
            raise Malformed(f"a master key holds a number that is not in [1, r): {error.parameter}") from None


class Component(NamedTuple):
    """The component of a secret key for one attribute j: D_j = g_1^rho H(j)^rho_j and D'_j = g_2^rho_j."""

    attribute: bytes
    blinded: G1Point
    blinding: G2Point


@dataclass(frozen=True)
class SecretKey(validate.Plain):
    """The secret key for some attributes: D = g_2^((alpha + rho)/beta), and a component per attribute (ABE-11)."""

    d: G2Point = field(repr=False)
    components: tuple[Component, ...] = field(repr=False)

    @cached_property
    def by_attribute(self) -> Mapping[bytes, Component]:
        """The components by attribute."""
        return {component.attribute: component for component in self.components}

    def to_bytes(self) -> bytes:
        """Return the bytes of the key."""
        head = self.d.to_compressed_bytes() + bytes([len(self.components)])
        return head + b"".join(map(_component_bytes, self.components))

    @classmethod
    def from_bytes(cls, data: bytes) -> SecretKey:
        """Return the key that bytes encode.

        Raises
        ------
        Malformed
            The bytes do not encode a key (ABE-23, ABE-24).
        """
        reader = Reader("a secret key", validate.octets("data", data))
        d, count = point_2(reader), reader.number(1)
        components = tuple(_read_component(reader) for _ in range(count))
        reader.end()
        names = [component.attribute for component in components]
        if not names or names != sorted(set(names)):
            raise Malformed("a secret key has no attributes, or they are not in ascending order")
        return cls(d, components)


def _component_bytes(component: Component) -> bytes:
    attribute, blinded, blinding = component
    points = blinded.to_compressed_bytes() + blinding.to_compressed_bytes()
    return bytes([len(attribute)]) + attribute + points


def _read_component(reader: Reader) -> Component:
    attribute = reader.take(reader.number(1))
    if not attribute:
        raise Malformed("a secret key has an attribute without bytes")
    return Component(attribute, point_1(reader), point_2(reader))


def point_1(reader: Reader) -> G1Point:
    """Read a point of G_1 at the reader's place, and return it (ABE-23)."""
    return pairing.read_point_1(reader.take(POINT_1_BYTES))


def point_2(reader: Reader) -> G2Point:
    """Read a point of G_2 at the reader's place, and return it (ABE-23)."""
    return pairing.read_point_2(reader.take(POINT_2_BYTES))


# --------------------------------------------------------------------------------------------------------- authority


def setup(*, alpha: int, beta: int) -> tuple[PublicKey, MasterKey]:
    """Return the keys of an authority (ABE-09).

    Parameters
    ----------
    alpha, beta : int
        Uniform in ``[1, r)``.

    Raises
    ------
    ParameterError, NonCanonical
        A number is not in ``[1, r)`` (ABE-19).
    """
    master = MasterKey(alpha, beta)
    h = pairing.base_1().power(master.beta)
    f = pairing.base_2().power(scalars.quotient(1, master.beta))
    return PublicKey(h, f, pairing.power_1(h, master.alpha)), master


def issue(
    master: MasterKey,
    attributes: Collection[bytes],
    *,
    key_blinding: int,
    attribute_blindings: Mapping[bytes, int],
) -> SecretKey:
    """Return the secret key for a set of attributes (ABE-11).

    Parameters
    ----------
    master : MasterKey
        The key of the authority.
    attributes : collection of bytes
        1 to 255 distinct attributes of 1 to 255 bytes, in any order.
    key_blinding : int
        Uniform in ``[1, r)``, fresh for each key (ABE-26).
    attribute_blindings : mapping of bytes to int
        For each attribute a fresh number, uniform in ``[1, r)``.

    Raises
    ------
    ParameterError
        An argument has another type; there are no attributes, too many, or one twice; the blindings are for other
        attributes; or D would be the neutral element (ABE-11, ABE-21).
    LengthMismatch
        An attribute is not 1 to 255 bytes long (ABE-01).
    NonCanonical
        A number is not in ``[1, r)`` (ABE-19).
    """
    names, rho = _attribute_set(attributes), scalar("key_blinding", key_blinding)
    blindings = _blindings(names, attribute_blindings)
    exponent = scalars.quotient(scalars.total(master.alpha, rho), master.beta)
    if not exponent:
        raise ParameterError("key_blinding", "r - alpha", "another number: with this one D is the neutral element")
    common = pairing.base_1().power(rho)
    parts = tuple(_component(common, name, blindings[name]) for name in names)
    return SecretKey(pairing.base_2().power(exponent), parts)


def _component(common: G1Point, name: bytes, blinding: int) -> Component:
    blinded = common + pairing.power_1(pairing.hash_attribute(name), blinding)
    return Component(name, blinded, pairing.base_2().power(blinding))


def _attribute_set(attributes: Collection[bytes]) -> list[bytes]:
    names = access_tree.attribute_list(attributes)
    if not 1 <= len(names) <= MAX_ATTRIBUTES:
        raise ParameterError("len(attributes)", len(names), f"in [1, {MAX_ATTRIBUTES}]")
    if len(set(names)) < len(names):
        raise ParameterError("attributes", names, "distinct")
    return sorted(names)


def _blindings(names: Sequence[bytes], given: Mapping[bytes, int]) -> dict[bytes, int]:
    validate.keyed("attribute_blindings", given, names, "numbers for exactly the attributes")
    return {name: scalar(f"attribute_blindings[{name!r}]", given[name]) for name in names}


guard(__name__)
