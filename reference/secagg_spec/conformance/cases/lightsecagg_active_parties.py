"""One party of a round in the active profile, and what arrives at it (spec/lightsecagg.md, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import lightsecagg_parties, strategies
from secagg_spec.conformance.cases.lightsecagg_parties import ServerScene, Session, UserScene, public_keys
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.scenes import written
from secagg_spec.conformance.targets.reference.active import active_end
from secagg_spec.conformance.targets.reference.scripts import Call, play
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.crypto.signatures import sign, signed_fields, verification_key
from secagg_spec.protocols.agreement import PURPOSE, Proposal
from secagg_spec.protocols.codec import Message, vector_bytes
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg.active import Parameters, PrivateKeys, PublicKeys, Quorum, SignedSet
from secagg_spec.protocols.lightsecagg.round import MaskShare
from secagg_spec.protocols.steps import SERVER, Role

USER, SERVED = "lightsecagg_active.user", "lightsecagg_active.server"


def session(draw: Any, caps: Capabilities, operation: str) -> Session:
    """Draw a session with a W that LSA-19 allows."""
    numbers = strategies.session(draw, caps, operation)
    N, D, T = numbers["N"], numbers["D"], numbers["T"]
    W = draw(st.integers((N + T) // 2 + 1, N - D))
    return Session({**numbers, "W": W}, lightsecagg_parties.session_id(draw), draw(among(lightsecagg_parties.ROUNDS)))


def signing_keys(draw: Any, N: int) -> tuple[bytes, ...]:
    """Draw different private signing keys for N users."""
    seed = draw(st.integers(0, 255))
    return tuple(lightsecagg_parties.key_of(user, seed) for user in range(N))


@lru_cache(maxsize=4096)
def verifying(private: bytes) -> bytes:
    """Return a verification key."""
    return verification_key(private)


@lru_cache(maxsize=64)
def _context(numbers: tuple[tuple[str, int], ...], session: bytes, round: int, privates: tuple[bytes, ...]) -> Context:
    return lightsecagg_active.binding_context(
        Parameters(**dict(numbers)), session, round, MaskShare, sealing_roster(privates)
    )


def sealing_roster(privates: tuple[bytes, ...]) -> Roster:
    """Return the public keys of private sealing keys."""
    return Roster(tuple(public_keys(list(privates))))


@lru_cache(maxsize=4096)
def _signature(private: bytes, data: bytes) -> bytes:
    return sign(private, data)


@lru_cache(maxsize=4096)
def _sealed(context: Context, privates: tuple[bytes, ...], sender: int, receiver: int, plaintext: bytes) -> bytes:
    channel = SealedChannel(context, privates[sender], sealing_roster(privates))
    return channel.close(sender, receiver, plaintext)


@dataclass(frozen=True)
class Signing:
    """The signatures of a session: the private signing key and the private sealing key of each user, by user number."""

    session: Session
    keys: tuple[bytes, ...]
    privates: tuple[bytes, ...]

    @property
    def parameters(self) -> Parameters:
        """The parameters, for the reference."""
        return Parameters(**self.session.numbers)

    @property
    def roster(self) -> PublicKeys:
        """The sealing keys and the verification keys."""
        return PublicKeys(sealing_roster(self.privates), Roster(tuple(verifying(key) for key in self.keys)))

    def shown(self) -> dict[str, list[str]]:
        """Return the public keys as a request holds them."""
        lists = {"roster": self.roster.sealing.keys, "verification": self.roster.verification.keys}
        return {name: [key.hex() for key in keys] for name, keys in lists.items()}

    def context(self, kind: type[Message]) -> Context:
        """Return what the seals and signatures of a message type are bound to."""
        context = _context(tuple(self.session.numbers.items()), self.session.id, self.session.round, self.privates)
        return replace(context, message_type=kind.TYPE)

    def signature(self, user: int, members: tuple[int, ...], context: Context | None = None) -> bytes:
        """Return a user's signature on a set, optionally in another context."""
        data = signed_fields(context or self.context(SignedSet), PURPOSE, user, Proposal(members).content())
        return _signature(self.keys[user], data)


@dataclass(frozen=True)
class ActiveUser(UserScene):
    """One user of a round of the active profile. In addition to a `UserScene`, it gets the signatures of `signers`."""

    operation: ClassVar[str] = USER
    signing: tuple[bytes, ...] = ()
    signers: tuple[int, ...] = ()

    @property
    def signed(self) -> Signing:
        """The signatures of the session."""
        return Signing(self.session, self.signing, self.privates)

    def channel(self, user: int) -> SealedChannel:
        """Return the channel of a user."""
        return SealedChannel(self.signed.context(MaskShare), self.privates[user], self.signed.roster.sealing)

    def share_from(self, sender: int, context: Context | None = None) -> MaskShare:
        """Return the message with a sender's share, optionally sealed in another context."""
        plaintext = vector_bytes(self.received[sender])
        payload = _sealed(context or self.signed.context(MaskShare), self.privates, sender, self.user, plaintext)
        return MaskShare(self.session.id, self.session.round, sender, self.user, payload)

    def quorum(self, signers: tuple[int, ...], signatures: list[bytes] | None = None) -> Quorum:
        """Return a quorum: these users' signatures on the surviving set, or the given ones."""
        right = [self.signed.signature(user, self.surviving) for user in signers] if signatures is None else signatures
        return Quorum(self.session.id, self.session.round, SERVER, self.user, signers, b"".join(right))

    def inboxes(self) -> dict[str, list[Message]]:
        """Return what arrives in each step of a round in which everybody is honest."""
        return {
            "share": [],
            "upload": [*self.shares()],
            "confirm": [self.announced()],
            "recover": [self.quorum(self.signers)],
        }

    def entries(self, calls: list[Call]) -> list[Any]:
        """Return what the reference answers to these steps."""
        start = lightsecagg_active.user_start(
            self.signed.parameters,
            self.session.id,
            self.session.round,
            self.user,
            self.update,
            PrivateKeys(self.privates[self.user], self.signing[self.user]),
            self.signed.roster,
        )
        sampled = {"mask": self.mask, "noise": self.noise}
        return play(lightsecagg_active.TABLE, Role.USER, start, calls, sampled, lambda state: {})

    def params(self, calls: list[Call]) -> dict[str, Any]:
        """Return the ``params`` of a request."""
        return {
            **self.session.members(),
            "user": self.user,
            "private": self.privates[self.user].hex(),
            "signing": self.signing[self.user].hex(),
            **self.signed.shown(),
            "update": pack(self.update),
            "steps": written(calls),
        }


def user_scene(draw: Any, caps: Capabilities, spare: int = 0) -> ActiveUser:
    """Draw a user that must confirm and answer. If possible, `spare` more users share than necessary."""
    drawn = session(draw, caps, USER)
    N, T, W = (drawn.numbers[name] for name in ("N", "T", "W"))
    base = lightsecagg_parties.received(draw, drawn, min(N - 1, max(T + 1, W - 1) + spare), sealed=True)
    others = [user for user in base.surviving if user != base.user]
    signers = tuple(sorted([base.user, *strategies.subset(draw, others, W - 1)]))
    return ActiveUser(**vars(base), signing=signing_keys(draw, N), signers=signers)


@dataclass(frozen=True)
class ActiveServer(ServerScene):
    """The server of a round of the active profile.

    In addition to a `ServerScene`, `signers` confirm the surviving set.
    """

    operation: ClassVar[str] = SERVED
    privates: tuple[bytes, ...] = ()
    signing: tuple[bytes, ...] = ()
    signers: tuple[int, ...] = ()

    @property
    def signed(self) -> Signing:
        """The signatures of the session."""
        return Signing(self.session, self.signing, self.privates)

    def confirmation(self, user: int, signature: bytes | None = None) -> SignedSet:
        """Return the message with a user's signature on the surviving set, or with the given signature."""
        right = self.signed.signature(user, tuple(self.surviving)) if signature is None else signature
        return SignedSet(self.session.id, self.session.round, user, SERVER, right)

    def inboxes(self) -> dict[str, list[Message]]:
        """Return what arrives in each step, without the last step if the answers are shares of another code."""
        confirm: list[Message] = [self.confirmation(user) for user in self.signers]
        last: dict[str, list[Message]] = {"recover": [*self.answers]} if self.own_code else {}
        return {"share": [*self.shares], "upload": [*self.updates], "confirm": confirm, **last}

    def entries(self, calls: list[Call]) -> list[Any]:
        """Return what the reference answers to these steps."""
        session = self.session
        start = lightsecagg_active.server_start(self.signed.parameters, session.id, session.round, self.signed.roster)
        return play(lightsecagg_active.TABLE, Role.SERVER, start, calls, {}, active_end)

    def params(self, calls: list[Call]) -> dict[str, Any]:
        """Return the ``params`` of a request."""
        return {**self.session.members(), **self.signed.shown(), "steps": written(calls)}


def server_scene(draw: Any, caps: Capabilities) -> ActiveServer:
    """Draw what arrives at the server. Those who answer have confirmed, and perhaps others have too."""
    drawn = session(draw, caps, SERVED)
    base = lightsecagg_parties.arrived(draw, caps, drawn)
    answering = [message.sender for message in base.answers]
    others = [user for user in base.surviving if user not in answering]
    more = strategies.subset(draw, others, max(0, drawn.numbers["W"] - len(answering)))
    N = drawn.numbers["N"]
    privates, signing = tuple(lightsecagg_parties.private_keys(draw, N)), signing_keys(draw, N)
    return ActiveServer(**vars(base), privates=privates, signing=signing, signers=(*answering, *more))
