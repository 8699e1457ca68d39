"""The messages of one round, from which scripts take the inboxes of one party (spec/adapter.md, section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.shamir import element_bytes
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import recovery, shares_length, vandermonde
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.session import Session
from secagg_spec.crypto.channels import Channel, PlainChannel
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients
from secagg_spec.crypto.keys import Roster, public_key
from secagg_spec.crypto.sealing import SealedChannel
from secagg_spec.protocols.codec import Message, vector_bytes
from secagg_spec.protocols.lightsecagg.round import (
    AggregatedShare,
    MaskedUpdate,
    MaskShare,
    Parameters,
    SurvivingSet,
    sealing_context,
)
from secagg_spec.protocols.steps import SERVER

ROUNDS = (0, 1, 255, 256, 2**31, 2**32 - 1)
_NUMBERS = ("q", "N", "D", "U", "T", "d")


@dataclass(frozen=True)
class Agreed:
    """The parameters, id and round number of a session. Requests for whole rounds start with its members."""

    numbers: dict[str, int]
    id: bytes
    round: int

    @property
    def parameters(self) -> Parameters:
        """The parameters, for the reference."""
        return Parameters(**{name: self.numbers[name] for name in _NUMBERS})

    @property
    def header(self) -> tuple[bytes, int]:
        """The fields with which all messages begin."""
        return self.id, self.round

    def members(self) -> dict[str, Any]:
        """Return the members of a request."""
        return {**self.numbers, "session": self.id.hex(), "round": str(self.round)}

    def inputs_of(self, protocol: str, party: int, setup: dict[str, Any], sampled: dict[str, Any]) -> SessionInputs:
        """Return the inputs of one party."""
        numbers = {**self.numbers, "q": str(self.numbers["q"])}
        return SessionInputs(protocol, numbers, self.id, self.round, {party: setup}, {party: sampled})


def session_id(draw: Any) -> bytes:
    """Draw a session id. The simplest is tried first."""
    return bytes(draw(st.binary(min_size=16, max_size=16)))


def agreed(draw: Any, caps: Capabilities, operation: str, spare: int = 0) -> Agreed:
    """Draw a session that the operation declares."""
    numbers = strategies.session(draw, caps, operation, spare)
    return Agreed(numbers, session_id(draw), draw(among(ROUNDS)))


def private_keys(draw: Any, N: int) -> list[bytes]:
    """Draw different private keys for N users."""
    seed = draw(st.integers(0, 255))
    return [key_of(user, seed) for user in range(N)]


def key_of(number: int, seed: int) -> bytes:
    """Return 32 bytes that differ for all numbers below 2**32, even as X25519 keys, which ignore bits at both ends."""
    return bytes([seed]) * 14 + number.to_bytes(4, "big") + bytes([seed]) * 14


@lru_cache(maxsize=4096)
def _public(private: bytes) -> bytes:
    return public_key(private)


def public_keys(privates: list[bytes]) -> list[bytes]:
    """Return the public keys of private keys."""
    return [_public(private) for private in privates]


def sealed_channels(privates: list[bytes]) -> list[dict[str, Any]]:
    """Return the sealed channel of each user in the form of a setup."""
    roster = [key.hex() for key in public_keys(privates)]
    return [{"channel": {"private": key.hex(), "roster": roster}} for key in privates]


@dataclass(frozen=True)
class UserSession(Session):
    """One user of a round and what arrives at it: the shares of `sharers`, and a surviving set."""

    agreed: Agreed
    party: int
    update: UintArray
    mask: UintArray
    noise: UintArray
    received: dict[int, UintArray]
    surviving: tuple[int, ...]
    privates: tuple[bytes, ...] = ()

    @property
    def sealed(self) -> bool:
        """Whether the channel is sealed."""
        return bool(self.privates)

    def channel(self, user: int) -> Channel:
        """Return the channel of a user."""
        if not self.sealed:
            return PlainChannel()
        context = sealing_context(self.agreed.parameters, self.agreed.id, self.agreed.round)
        return SealedChannel(context, self.privates[user], Roster(tuple(public_keys(list(self.privates)))))

    def share_from(self, sender: int) -> MaskShare:
        """Return the message with the share of a sender."""
        payload = self.channel(sender).close(sender, self.party, vector_bytes(self.received[sender]))
        return MaskShare(*self.agreed.header, sender, self.party, payload)

    def shares(self) -> list[MaskShare]:
        """Return the inbox of `upload`."""
        return [self.share_from(sender) for sender in self.received]

    def announced(self, users: tuple[int, ...] | None = None) -> SurvivingSet:
        """Return the message with the surviving set, or with `users`."""
        chosen = self.surviving if users is None else users
        return SurvivingSet(*self.agreed.header, SERVER, self.party, chosen)

    @cached_property
    def inboxes(self) -> Sequence[tuple[str, Sequence[Message]]]:
        """What arrives in each step of a round in which everybody is honest."""
        return [("share", []), ("upload", self.shares()), ("recover", [self.announced()])]

    def setup(self) -> dict[str, Any]:
        """Return what the user is given besides the numbers, in the form of a request."""
        channel = sealed_channels(list(self.privates))[self.party] if self.sealed else {"channel": "plain"}
        return {"user": self.party, **channel, "update": pack(self.update)}

    @cached_property
    def inputs(self) -> SessionInputs:
        """The inputs of the user."""
        sampled = {"mask": pack(self.mask), "noise": pack(self.noise)}
        return self.agreed.inputs_of("lightsecagg", self.party, self.setup(), sampled)


def user_scene(draw: Any, caps: Capabilities, *, sealed: bool = False) -> UserSession:
    """Draw a user, the shares that it receives, and a surviving set that it must accept."""
    drawn = agreed(draw, caps, "lightsecagg.user")
    return received(draw, drawn, drawn.numbers["T"] + 1, sealed=sealed)


def received(draw: Any, drawn: Agreed, least: int, *, sealed: bool) -> UserSession:
    """Draw a user that receives shares of at least `least` others and a surviving set with at least `least` others."""
    q, N, T, d = (drawn.numbers[name] for name in ("q", "N", "T", "d"))
    L = shares_length(drawn.numbers, d)
    user = draw(st.integers(0, N - 1))
    others = [other for other in range(N) if other != user]
    shares = {sender: strategies.vector(draw, q, L) for sender in strategies.subset(draw, others, least)}
    surviving = sorted([user, *strategies.subset(draw, sorted(shares), least)])
    return UserSession(
        drawn,
        user,
        strategies.vector(draw, q, d),
        strategies.vector(draw, q, d),
        strategies.matrix(draw, q, T, L),
        shares,
        tuple(surviving),
        tuple(private_keys(draw, N)) if sealed else (),
    )


@dataclass(frozen=True)
class ServerSession(Session):
    """The server of a round and what arrives at it."""

    agreed: Agreed
    shares: tuple[MaskShare, ...]
    updates: tuple[MaskedUpdate, ...]
    answers: tuple[AggregatedShare, ...]
    own_code: bool
    party: int = SERVER

    @property
    def surviving(self) -> list[int]:
        """The surviving set."""
        return sorted(message.sender for message in self.updates)

    @cached_property
    def inboxes(self) -> Sequence[tuple[str, Sequence[Message]]]:
        """What arrives in each step, without the last step if the answers are shares of another code."""
        last = [("recover", self.answers)] if self.own_code else []
        return [("share", self.shares), ("upload", self.updates), *last]

    @cached_property
    def inputs(self) -> SessionInputs:
        """The inputs of the server."""
        return self.agreed.inputs_of("lightsecagg", SERVER, {}, {})


def server_scene(draw: Any, caps: Capabilities, extra: int = 0) -> ServerSession:
    """Draw what arrives at the server: opaque shares, masked updates, and at least U + `extra` answers."""
    return arrived(draw, caps, agreed(draw, caps, "lightsecagg.server", extra), extra)


def arrived(draw: Any, caps: Capabilities, drawn: Agreed, extra: int = 0) -> ServerSession:
    """Draw what arrives at the server of a session. The masked updates are in any order."""
    U, N = drawn.numbers["U"], drawn.numbers["N"]
    valid, _ = recovery(draw, drawn.numbers, draw(st.integers(U + extra, N)) if extra else None)
    updates = _sent(MaskedUpdate, drawn, valid.params["surviving"], valid.params["masked"])
    return ServerSession(
        drawn,
        tuple(_opaque_shares(draw, drawn, valid.params["surviving"])),
        tuple(updates[at] for at in strategies.shuffled(draw, range(len(updates)))),
        tuple(_sent(AggregatedShare, drawn, valid.params["users"], valid.params["shares"])),
        vandermonde(caps),
    )


def _opaque_shares(draw: Any, drawn: Agreed, surviving: list[int]) -> list[MaskShare]:
    """Draw the shares that arrive: all shares of the survivors, and some or all of the others."""
    N = drawn.numbers["N"]
    seed, longest = bytes([draw(st.integers(0, 255))]), draw(st.integers(0, 2))
    shares = []
    for sender in range(N):
        receivers = [user for user in range(N) if user != sender]
        if sender not in surviving:
            receivers = strategies.subset(draw, receivers, 0)
        for receiver in receivers:
            payload = (seed + sender.to_bytes(2, "big") + receiver.to_bytes(2, "big")) * min(longest, sender + receiver)
            shares.append(MaskShare(*drawn.header, sender, receiver, payload))
    return shares


def _sent(kind: Any, drawn: Agreed, users: list[int], vectors: list[str]) -> list[Any]:
    """Return the messages of users to the server, with one vector each."""
    pairs = zip(users, vectors, strict=True)
    return [kind(*drawn.header, user, SERVER, unpack(text).astype(np.uint64)) for user, text in pairs]


def round_secrets(source: SeededSource, t: int) -> dict[str, str]:
    """Return the sampled values of a user of SecAgg's round as a request holds them."""
    keys = {name: source.take(32).hex() for name in ("sealing_key", "masking_key", "self_seed")}
    names = ("key_coefficients", "seed_coefficients")
    return {**keys, **{name: b"".join(map(element_bytes, draw_coefficients(source, t - 1))).hex() for name in names}}
