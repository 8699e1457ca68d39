"""Operations on pairs of users whose keys are drawn here, by the reference (spec/conventions.md, section 9)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.crypto import keys, sealing
from secagg_spec.crypto.entropy import SystemSource
from secagg_spec.crypto.prg import KEY_BYTES

_CONTEXT = sealing.Context("pair", keys.hash_parameters({}), b"secagg-spec kit.", 0, message_type=0)
_LARGEST_MASK = 255


def draw_private() -> bytes:
    """Return a new private key."""
    return SystemSource().take(KEY_BYTES)


def lane(users: Mapping[str, int], publics: Sequence[bytes]) -> sealing.Lane:
    """Return the lane from a sender to a receiver with these public keys."""
    return sealing.Lane(_CONTEXT, users["sender"], users["receiver"], *publics)


def derived(own: bytes, other: bytes, way: sealing.Lane) -> bytes:
    """Return the key of a lane as one side derives it, from its private key and the other side's public key."""
    bound = sealing.binding(way.context, way.sender, way.receiver, way.sender_key, way.receiver_key)
    return keys.derive(keys.agree(own, other), way.context.session, bound)


def altered(payload: bytes, alter: Mapping[str, int]) -> bytes:
    """Return the payload, with one byte altered if `alter` names one."""
    if "byte" not in alter:
        return payload
    mask, changed = validate.integer("mask", alter["mask"], 1, _LARGEST_MASK), bytearray(payload)
    changed[alter["byte"] % len(payload)] ^= mask
    return bytes(changed)


def _agree() -> dict[str, Any]:
    privates = draw_private(), draw_private()
    publics = [keys.public_key(private) for private in privates]
    way = lane({"sender": 0, "receiver": 1}, publics)
    first, second = (derived(own, publics[1 - at], way).hex() for at, own in enumerate(privates))
    return {"first": first, "second": second, "public": [public.hex() for public in publics]}


def _seal(plaintext: Any, sender: Any, receiver: Any, alter: Any) -> dict[str, Any]:
    users = dict(
        zip(("sender", "receiver"), validate.users("sender, receiver", (sender, receiver), 2**31), strict=True)
    )
    privates = draw_private(), draw_private()
    publics = [keys.public_key(private) for private in privates]
    payload = lane(users, publics).seal(keys.agree(privates[0], publics[1]), readers.octets("plaintext", plaintext))
    there = {**users, **{end: readers.integer(end, user) for end, user in (alter or {}).items() if end in users}}
    opened = lane(there, publics).open(keys.agree(privates[1], publics[0]), altered(payload, alter or {}))
    return {"opened": opened.hex(), "payload": payload.hex()}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"pair.agree": _agree, "pair.seal": _seal}
