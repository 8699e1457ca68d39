"""Right adapters that do what the text leaves free in another way than the reference: no check may fail on them.

``python -m tests.conformance.right NAME`` offers one over standard input and output.

A step that the reference refuses, these adapters refuse as well. Which of the broken rules they name depends on the
order in which they look (spec/adapter.md, section 5: a request that breaks two rules may get a code of either).
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from secagg_spec import errors
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.sampling import Words, elements_of
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call, Party
from secagg_spec.crypto import prg
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.codec import encode, field_codecs
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Role

Refusal = ParameterError | ProtocolError
_TAKE = Party.take
_OF_MESSAGES = (
    *(errors.DecryptionFailed, errors.BadSignature, errors.WeakKey, errors.Malformed, errors.NonCanonical),
    *(errors.OutOfRange, errors.LengthMismatch, errors.Replay, errors.DuplicateUser, errors.UnknownUser),
    errors.WrongPhase,
)
"""What messages are refused for that have come, whichever others still come."""


# ------------------------------------------------------------------------------------------- orders of looking


def _refusal(party: Party, call: Call, state: Any = None) -> Refusal | None:
    """Return how a step would be refused, perhaps in another state of the party, without taking it."""
    again = copy.copy(party)
    again.state = copy.deepcopy(party.state if state is None else state)
    try:
        _TAKE(again, call)
    except (ParameterError, ProtocolError) as refusal:
        return refusal
    return None


def _first(found: Iterator[Refusal | None]) -> Refusal | None:
    """Return the first refusal that is about a message that has come."""
    return next((refusal for refusal in found if isinstance(refusal, _OF_MESSAGES)), None)


def _arrival(party: Party, call: Call) -> Refusal | None:
    """Look at each message as it comes: open it, and judge it with those before it."""
    return _first(_refusal(party, Call(call.phase, call.inbox[: at + 1])) for at in range(len(call.inbox)))


def _backwards(party: Party, call: Call) -> Refusal | None:
    """Look at the message that came last first, all of it."""
    return _arrival(party, Call(call.phase, call.inbox[::-1]))


def _contents(party: Party, call: Call) -> Refusal | None:
    """Look at what each message holds before who sent it to whom."""
    alone = (_refusal(party, Call(call.phase, (_addressed(party, data),))) for data in call.inbox)
    return _first(refusal for refusal in alone if not isinstance(refusal, errors.WrongPhase))


def _bound(party: Party, call: Call) -> Refusal | None:
    """Open and verify with the session, round and receiver that a message names, before it compares these."""
    takes = party.step(call.phase).receives
    for data in call.inbox:
        message = parse(data) if _addressed(party, data) != data else None
        if isinstance(message, takes):
            names = field_codecs(type(message))
            if "payload" in names and party.role is Role.USER:
                return errors.DecryptionFailed("not sealed for what the message names", (message.sender,))
            if {"signature", "signatures"} & set(names):
                return errors.BadSignature("not signed for what the message names", (message.sender,))
    return None


def _late(party: Party, call: Call) -> Refusal | None:
    """Look at the messages before it asks whether the step was taken before."""
    before = vars(party).get("before", {}).get(call.phase)
    if before is None or not _by_rounds(party):
        return None
    return _first(iter((_refusal(party, call, before),)))


def _senders(party: Party, call: Call) -> Refusal | None:
    """In the right turn, look at who sent each message before what it is and holds."""
    row = party.step(call.phase)
    if row.senders is None or not row.receives or (party.state.phases and party.state.phase != call.phase):
        return None
    allowed = set(row.senders(party.state))
    for data in call.inbox:
        try:
            sender = parse(data).sender
        except ProtocolError:
            continue
        if sender not in allowed:
            return errors.InconsistentSets(f"{sender} has nothing to send here", (sender,))
    return None


def _addressed(party: Party, data: bytes) -> bytes:
    """Return a message with the session, round and receiver that the party expects; other bytes as they are."""
    try:
        message = parse(data)
    except ProtocolError:
        return data
    own: dict[str, Any] = {"session": _known(party.state, "session", bytes)}
    if _by_rounds(party):
        own["round"] = _number(party.state)
        own["receiver"] = SERVER if party.role is Role.SERVER else _known(party.state, "user", int)
    if party.role is Role.SERVER and type(message).__name__ in _RELAYED:
        own["receiver"] = None
    return encode(replace(message, **{name: value for name, value in own.items() if value is not None}))


def _by_rounds(party: Party) -> bool:
    """Return whether the state of a party knows the round and the receiver of its messages."""
    return isinstance(party.state, _BY_ROUNDS)


_BY_ROUNDS = (
    *(lightsecagg.UserState, lightsecagg.ServerState, lightsecagg_active.UserState, lightsecagg_active.ServerState),
    *(secagg.UserState, secagg.ServerState, secagg_active.UserState, secagg_active.ServerState),
    *(heterosag.UserState, heterosag.ServerState),
)
_RELAYED = {"MaskShare", "SecretShares"}
"""The messages between users, which the server relays."""


def _known(state: Any, name: str, kind: type) -> Any:
    """Return what a state, or a part of it, has under a name."""
    if not is_dataclass(state):
        return None
    own = getattr(state, name, None)
    if type(own) is kind:
        return own
    parts = (getattr(state, field.name) for field in fields(state) if field.name in ("base", "round"))
    return next((found for part in parts if (found := _known(part, name, kind)) is not None), None)


def _number(state: Any) -> int | None:
    found: int | None = _known(state, "round", int) or _known(state, "number", int)
    return found


Order = Callable[[Party, Call], Refusal | None]


ANOTHER: Counter[str] = Counter()
"""How often, in this process, each order gave another refusal than the reference."""


def _looking(name: str) -> Callable[[Party, Call], dict[str, Any]]:
    """Return how a party takes steps that looks in an order."""

    def take(party: Party, call: Call) -> dict[str, Any]:
        before = party.state
        try:
            entry = _TAKE(party, call)
        except (ParameterError, ProtocolError) as refusal:
            other = ORDERS[name](party, call) or refusal
            ANOTHER[name] += type(other) is not type(refusal)
            raise other from None
        party.before = {**vars(party).get("before", {}), call.phase: before}  # type: ignore[attr-defined]
        return entry

    return take


def _any(party: Party, call: Call) -> Refusal | None:
    """Look in an order in which another rule is broken first; which one, where there are several, the bytes decide."""
    usual = type(_refusal(party, call))
    found = [refusal for look in _LOOKING if (refusal := look(party, call)) and type(refusal) is not usual]
    return found[crc32(b"".join(call.inbox)) % len(found)] if found else None


_LOOKING: tuple[Order, ...] = (_arrival, _backwards, _contents, _bound, _late)
ORDERS: Mapping[str, Order] = MappingProxyType({look.__name__[1:]: look for look in (*_LOOKING, _senders, _any)})


# --------------------------------------------------------------------------------------------------- another generator


def chacha(key: bytes, ring: Ring, missing: int) -> Iterator[Words]:
    """Yield the elements of a stream of ChaCha20."""
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()
    while missing:
        words = np.frombuffer(stream.update(bytes(4 * (2 * missing + 16))), "<u4")
        piece = elements_of(ring, words)[:missing]
        yield piece
        missing -= piece.size


# ------------------------------------------------------------------------------------------------------ the adapters

OTHERWISE: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **{name: lambda name=name: patch.object(Party, "take", _looking(name)) for name in ORDERS},
        "generator": lambda: prg.generator(chacha),
    }
)
"""How each of the adapters differs from the reference."""
POLICIES: Mapping[str, Mapping[str, str]] = MappingProxyType({"generator": {"prg.stream": "other"}})


def adapter(name: str) -> Callable[[Any], dict[str, Any]]:
    """Return what answers for one of these adapters, in this process; the kit's own reference stays as it is."""
    built = reference.build()
    built.hello["policy"] = {**built.hello.get("policy", {}), **POLICIES.get(name, {})}

    def answer(request: Any) -> dict[str, Any]:
        with OTHERWISE[name]():
            return dict(built.answer(request))

    return answer


class Direct(DirectConnection):
    """One of these adapters in this process; started again, it knows of no sessions."""

    def __init__(self, name: str) -> None:
        super().__init__(adapter(name))
        self.name = name

    def restart(self) -> None:
        """Begin again."""
        self._answer = adapter(self.name)


def main() -> None:
    """Offer an adapter over standard input and output."""
    with OTHERWISE[sys.argv[1]]():
        built = reference.build()
        built.hello["policy"] = {**built.hello.get("policy", {}), **POLICIES.get(sys.argv[1], {})}
        built.run()


if __name__ == "__main__":
    main()
