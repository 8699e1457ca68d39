"""One party of a round in the active profile, and what arrives at it (spec/lightsecagg.md, section 9)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import lightsecagg_parties, strategies
from secagg_spec.conformance.cases.lightsecagg_parties import Agreed, ServerSession, UserSession, public_keys
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.crypto.signatures import sign, signed_fields, verification_key
from secagg_spec.protocols.agreement import PURPOSE, Proposal
from secagg_spec.protocols.codec import Message, vector_bytes
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg.active import Parameters, PublicKeys, Quorum, SignedSet
from secagg_spec.protocols.lightsecagg.round import MaskShare
from secagg_spec.protocols.steps import SERVER

USER, SERVED = "lightsecagg_active.user", "lightsecagg_active.server"


def agreed(draw: Any, caps: Capabilities, operation: str) -> Agreed:
    """Draw a session with a W that LSA-19 allows."""
    numbers = strategies.session(draw, caps, operation)
    N, D, T = numbers["N"], numbers["D"], numbers["T"]
    W = draw(st.integers((N + T) // 2 + 1, N - D))
    return Agreed({**numbers, "W": W}, lightsecagg_parties.session_id(draw), draw(among(lightsecagg_parties.ROUNDS)))


def signing_keys(draw: Any, N: int) -> tuple[bytes, ...]:
    """Draw different private signing keys for N users."""
    seed = draw(st.integers(0, 255))
    return tuple(lightsecagg_parties.key_of(user, seed) for user in range(N))


@lru_cache(maxsize=4096)
def verifying(private: bytes) -> bytes:
    """Return a verification key."""
    return verification_key(private)


def given_keys(draw: Any, privates: list[bytes]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw signing keys for users with these sealing keys. Return the keys that the server and each user is given."""
    signing = signing_keys(draw, len(privates))
    lists = {"roster": public_keys(privates), "verification": [verifying(key) for key in signing]}
    shown = {name: [key.hex() for key in keys] for name, keys in lists.items()}
    own = zip(privates, signing, strict=True)
    return shown, [{"private": key.hex(), "signing": other.hex(), **shown} for key, other in own]


@lru_cache(maxsize=64)
def _context(numbers: tuple[tuple[str, int], ...], session: bytes, round: int, privates: tuple[bytes, ...]) -> Context:
    return lightsecagg_active.binding_context(
        Parameters(**dict(numbers)), session, round, MaskShare, sealing_roster(privates)
    )


def sealing_roster(privates: tuple[bytes, ...]) -> Roster:
    """Return the public keys of private sealing keys."""
    return Roster(tuple(public_keys(list(privates))))


@lru_cache(maxsize=4096)
def signature_of(private: bytes, data: bytes) -> bytes:
    """Return a signature on some bytes."""
    return sign(private, data)


@lru_cache(maxsize=4096)
def _sealed(context: Context, privates: tuple[bytes, ...], sender: int, receiver: int, plaintext: bytes) -> bytes:
    channel = SealedChannel(context, privates[sender], sealing_roster(privates))
    return channel.close(sender, receiver, plaintext)


@dataclass(frozen=True)
class Signing:
    """The signatures of a session: the private signing key and the private sealing key of each user, by user number."""

    agreed: Agreed
    keys: tuple[bytes, ...]
    privates: tuple[bytes, ...]

    @property
    def parameters(self) -> Parameters:
        """The parameters, for the reference."""
        return Parameters(**self.agreed.numbers)

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
        context = _context(tuple(self.agreed.numbers.items()), *self.agreed.header, self.privates)
        return replace(context, message_type=kind.TYPE)

    def signature(self, user: int, members: tuple[int, ...], context: Context | None = None) -> bytes:
        """Return a user's signature on a set, optionally in another context."""
        data = signed_fields(context or self.context(SignedSet), PURPOSE, user, Proposal(members).content())
        return signature_of(self.keys[user], data)


@dataclass(frozen=True)
class ActiveUser(UserSession):
    """One user of a round of the active profile. In addition to a `UserSession`, it gets signatures of `signers`."""

    signing: tuple[bytes, ...] = ()
    signers: tuple[int, ...] = ()

    @property
    def signed(self) -> Signing:
        """The signatures of the session."""
        return Signing(self.agreed, self.signing, self.privates)

    def channel(self, user: int) -> SealedChannel:
        """Return the channel of a user."""
        return SealedChannel(self.signed.context(MaskShare), self.privates[user], self.signed.roster.sealing)

    def share_from(self, sender: int, context: Context | None = None) -> MaskShare:
        """Return the message with a sender's share, optionally sealed in another context."""
        plaintext = vector_bytes(self.received[sender])
        payload = _sealed(context or self.signed.context(MaskShare), self.privates, sender, self.party, plaintext)
        return MaskShare(*self.agreed.header, sender, self.party, payload)

    def quorum(self, signers: tuple[int, ...], signatures: list[bytes] | None = None) -> Quorum:
        """Return a quorum: these users' signatures on the surviving set, or the given ones."""
        right = [self.signed.signature(user, self.surviving) for user in signers] if signatures is None else signatures
        return Quorum(*self.agreed.header, SERVER, self.party, signers, b"".join(right))

    @cached_property
    def inboxes(self) -> Sequence[tuple[str, Sequence[Message]]]:
        """What arrives in each step of a round in which everybody is honest."""
        return [
            ("share", []),
            ("upload", self.shares()),
            ("confirm", [self.announced()]),
            ("recover", [self.quorum(self.signers)]),
        ]

    @cached_property
    def inputs(self) -> SessionInputs:
        """The inputs of the user."""
        keys = {"private": self.privates[self.party].hex(), "signing": self.signing[self.party].hex()}
        setup = {"user": self.party, **keys, **self.signed.shown(), "update": pack(self.update)}
        sampled = {"mask": pack(self.mask), "noise": pack(self.noise)}
        return self.agreed.inputs_of("lightsecagg-active", self.party, setup, sampled)


def _fields(session: UserSession | ServerSession) -> dict[str, Any]:
    return {field.name: getattr(session, field.name) for field in fields(session)}


def user_scene(draw: Any, caps: Capabilities, spare: int = 0) -> ActiveUser:
    """Draw a user that must confirm and answer. If possible, `spare` more users share than necessary."""
    drawn = agreed(draw, caps, USER)
    N, T, W = (drawn.numbers[name] for name in ("N", "T", "W"))
    base = lightsecagg_parties.received(draw, drawn, min(N - 1, max(T + 1, W - 1) + spare), sealed=True)
    others = [user for user in base.surviving if user != base.party]
    signers = tuple(sorted([base.party, *strategies.subset(draw, others, W - 1)]))
    return ActiveUser(**_fields(base), signing=signing_keys(draw, N), signers=signers)


@dataclass(frozen=True)
class ActiveServer(ServerSession):
    """The server of a round of the active profile.

    In addition to a `ServerSession`, `signers` confirm the surviving set.
    """

    privates: tuple[bytes, ...] = ()
    signing: tuple[bytes, ...] = ()
    signers: tuple[int, ...] = ()

    @property
    def signed(self) -> Signing:
        """The signatures of the session."""
        return Signing(self.agreed, self.signing, self.privates)

    def confirmation(self, user: int, signature: bytes | None = None) -> SignedSet:
        """Return the message with a user's signature on the surviving set, or with the given signature."""
        right = self.signed.signature(user, tuple(self.surviving)) if signature is None else signature
        return SignedSet(*self.agreed.header, user, SERVER, right)

    @cached_property
    def inboxes(self) -> Sequence[tuple[str, Sequence[Message]]]:
        """What arrives in each step, without the last step if the answers are shares of another code."""
        confirmations = [self.confirmation(user) for user in self.signers]
        last = [("recover", self.answers)] if self.own_code else []
        return [("share", self.shares), ("upload", self.updates), ("confirm", confirmations), *last]

    @cached_property
    def inputs(self) -> SessionInputs:
        """The inputs of the server."""
        return self.agreed.inputs_of("lightsecagg-active", SERVER, self.signed.shown(), {})


def server_scene(draw: Any, caps: Capabilities, spare: int = 0) -> ActiveServer:
    """Draw what arrives at the server. Those who answer have confirmed, and perhaps others have too.

    If possible, `spare` survivors have not.
    """
    drawn = agreed(draw, caps, SERVED)
    base = lightsecagg_parties.arrived(draw, caps, drawn)
    N, U, W = (drawn.numbers[name] for name in ("N", "U", "W"))
    most = len(base.surviving) - spare
    most = most if most >= max(U, W) else len(base.surviving)
    base = replace(base, answers=base.answers[:most])
    answering = [message.sender for message in base.answers]
    others = [user for user in base.surviving if user not in answering]
    more = strategies.subset(draw, others, max(0, W - len(answering)), most - len(answering))
    privates, signing = tuple(lightsecagg_parties.private_keys(draw, N)), signing_keys(draw, N)
    return ActiveServer(**_fields(base), privates=privates, signing=signing, signers=(*answering, *more))
