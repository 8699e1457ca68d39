"""The plan of a round: all that its users have to agree on, as bytes whose hash is the session id.

Source: spec/flower.md, section 2 (FLW-01, FLW-02).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import gcd, prod
from typing import Any, TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.crypto.keys import SESSION_BYTES, sha256
from secagg_spec.crypto.keys import fields as as_fields
from secagg_spec.errors import Malformed, ParameterError
from secagg_spec.protocols.steps import SERVER

VERSION = 2
"""The version of packets and plans."""
LABEL = "secagg-spec/flower"
SECAGG, LIGHTSECAGG = "secagg", "lightsecagg"
SECAGG_ACTIVE, LIGHTSECAGG_ACTIVE = "secagg-active", "lightsecagg-active"
_AXES = 64
"""The most axes of an array, as in numpy."""
PROTOCOLS = (SECAGG, SECAGG_ACTIVE, LIGHTSECAGG, LIGHTSECAGG_ACTIVE)


def of_this_version(packet: object) -> bool:
    """Return whether a packet is one of the version of this text, which is an integer (FLW-03)."""
    return isinstance(packet, Mapping) and type(packet.get("version")) is int and packet["version"] == VERSION


def other_version(packet: object) -> str:
    """Return what an error says of a packet for which `of_this_version` is false."""
    if not isinstance(packet, Mapping):
        return f"a packet of {validate.class_of(packet)}, and this is version {VERSION}"
    version: object = packet.get("version")
    long = isinstance(version, int) and version.bit_length() > 64
    return f"a packet of version {'of many digits' if long else repr(version)[:20]}, and this is version {VERSION}"


Packet: TypeAlias = Mapping[str, Any]
"""What one party sends another in one phase: names with integers, text, bytes and lists of bytes."""


@dataclass(frozen=True)
class Plan(validate.Plain):
    """What all users of a round agree on before it begins.

    Parameters
    ----------
    protocol : str
        One of `PROTOCOLS`.
    numbers : mapping from name to int
        The parameters of the protocol, by the names of its page.
    round : int
        The number of the round.
    order : tuple of int
        The order of the users on the circle of the graph; empty in LightSecAgg.
    shapes : tuple of tuple of int
        The shapes of the arrays of a model, in order.
    level, most : int
        The level of the quantiser, and the largest weight of one user.
    largest : tuple of two ints
        The largest magnitude of a number of a model, as a fraction in lowest terms.
    nonce : bytes
        16 bytes that the server draws, so that no two plans are equal.
    sealing, verification, signature : tuples of bytes
        By user, where the protocol needs them: public sealing keys, verification keys, and signatures on the former.

    Raises
    ------
    ParameterError
        A value is not what it says here, or weighted sums, or those of numbers up to `largest`, could wrap (FLW-28).
    """

    protocol: str
    numbers: Mapping[str, int]
    round: int
    order: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    level: int
    most: int
    largest: tuple[int, int]
    nonce: bytes
    sealing: tuple[bytes, ...] = ()
    verification: tuple[bytes, ...] = ()
    signature: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("protocol", self.protocol, PROTOCOLS)
        numbers = validate.mapping("numbers", self.numbers).items()
        kept = {
            validate.instance("the name of a number", name, str): validate.integer(f"numbers[{name!r}]", value, 0)
            for name, value in numbers
        }
        object.__setattr__(self, "numbers", kept)
        for name in ("sealing", "verification", "signature"):
            for each in validate.sequence(name, getattr(self, name), "byte strings"):
                validate.octets(name, each)
        validate.users("order", self.order, validate.MAX_COUNT)
        if self.order and self.protocol in (LIGHTSECAGG, LIGHTSECAGG_ACTIVE):
            raise ParameterError("order", self.order, "empty in LightSecAgg, which has no graph")
        validate.integer("round", self.round, 0, SERVER)
        validate.octets("nonce", self.nonce, SESSION_BYTES)
        for shape in validate.sequence("shapes", self.shapes, "shapes"):
            if len(validate.sequence("shapes", shape, "lengths")) > _AXES:
                raise ParameterError("shapes", f"an array of {len(shape)} axes", f"of at most {_AXES} axes")
            for length in shape:
                validate.integer("shapes", length, 0, validate.MAX_COUNT)
        if self.d < 2:
            raise ParameterError("shapes", self.shapes, "those of arrays with at least one number")
        if self.d != self.numbers.get("d"):
            raise ParameterError("numbers['d']", self.numbers.get("d"), f"{self.d}, one more than the shapes hold")
        validate.integer("level", self.level, 1, MAX_LEVEL)
        modulus = validate.integer("modulus", self._modulus, 2, 2**32)
        room = (modulus - 1) // 2 // max(1, self.N)
        validate.integer("most", self.most, 1, room)
        largest = [
            validate.integer("largest", each, 1) for each in validate.sequence("largest", self.largest, "integers")
        ]
        if len(largest) != 2 or gcd(*largest) > 1:
            raise ParameterError("largest", self.largest, "a fraction in lowest terms: two integers above 0")
        fits = room * largest[1] // largest[0]
        if self.level > fits:
            raise ParameterError("level", self.level, f"at most {fits}, so that no number up to {largest} can wrap")

    @property
    def _modulus(self) -> int | None:
        return self.numbers.get("R", self.numbers.get("q"))

    @property
    def N(self) -> int:  # noqa: N802 - the papers' symbol
        """The number of users."""
        return self.numbers.get("N", 0)

    @cached_property
    def d(self) -> int:
        """The number of elements of an input: those of the arrays, and the weight."""
        return sum(prod(shape) for shape in self.shapes) + 1

    @cached_property
    def ring(self) -> Ring:
        """The ring of the sum."""
        assert self._modulus is not None
        return Ring(self._modulus)

    @cached_property
    def octets(self) -> bytes:
        """The bytes of the plan: JSON with sorted names and without spaces, byte strings as hex digits (FLW-01)."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), default=bytes.hex).encode("ascii")

    @cached_property
    def session(self) -> bytes:
        """The session id: the first 16 bytes of a hash of the plan (FLW-01)."""
        return sha256(as_fields(LABEL, VERSION, self.octets))[:SESSION_BYTES]


def read(data: object) -> Plan:
    """Return the plan that bytes hold.

    Raises
    ------
    Malformed
        The bytes are not those of a plan; the server is blamed.
    ParameterError
        A value of the plan is not allowed.
    """
    try:
        tree = json.loads(validate.octets("plan", data))
        if not isinstance(tree, dict) or set(tree) != {each.name for each in fields(Plan)}:
            raise ValueError("other names")
        octets = {name: tuple(map(bytes.fromhex, tree[name])) for name in ("sealing", "verification", "signature")}
        shapes = tuple(map(tuple, tree["shapes"]))
        nonce, order, largest = bytes.fromhex(tree["nonce"]), tuple(tree["order"]), tuple(tree["largest"])
        given = {"shapes": shapes, "nonce": nonce, "order": order, "largest": largest}
        plan = Plan(**{**tree, **octets, **given})
        same = plan.octets == data
    except ParameterError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"the plan is not one: {error}", (SERVER,)) from error
    if not same:
        raise Malformed("the plan is not written as its values are", (SERVER,))
    return plan


def sealing_key_fields(nonce: bytes, key: bytes) -> bytes:
    """Return the bytes that a user of an active profile signs with its sealing key (FLW-05)."""
    return as_fields(LABEL, VERSION, "sealing-key", nonce, key)


guard(__name__)
