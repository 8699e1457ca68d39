"""The sealed channel between two users: ChaCha20-Poly1305 with a separate key for each payload.

The nonce is computed from the plaintext. A user that was restored from an old copy may seal a second plaintext under
the same key. The two payloads then have different nonces, and reveal only that the plaintexts differ.

Source: spec/conventions.md, section 9 (SEA-01 to SEA-04, SEA-08, SEA-09, KEY-07).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import LABEL, VERSION, Roster, agree, derive, fields, public_key
from secagg_spec.crypto.prg import check_key
from secagg_spec.errors import DecryptionFailed, ParameterError, Replay, UnknownUser

NONCE_BYTES = 12
OVERHEAD = NONCE_BYTES + 16
"""How many bytes a payload is longer than its plaintext: the nonce before it and the tag after it."""
SEAL, SEAL_NONCE = "seal", "seal-nonce"
"""The purposes of the two keys of a payload: the first encrypts the payload, the second computes its nonce."""
_SERVER = 2**32 - 1


@dataclass(frozen=True)
class Context(validate.Plain):
    """The values that bind a session's keys: protocol, hash of the parameters, session id, round, message type.

    Raises
    ------
    ParameterError
        The protocol is no ASCII text, the session no bytes, the round not in ``[0, 2**32)``, or the message type not in
        ``[0, 2**16)``.
    """

    protocol: str
    parameters: bytes
    session: bytes
    round: int
    message_type: int

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.ascii_text("protocol", self.protocol)
        validate.octets("parameters", self.parameters)
        validate.octets("session", self.session)
        validate.integer("round", self.round, 0, validate.MAX_COUNT)
        validate.integer("message_type", self.message_type, 0, 2**16 - 1)


def binding(
    context: Context, sender: int, receiver: int, sender_key: bytes, receiver_key: bytes, purpose: str = SEAL
) -> bytes:
    """Return the binding of a key of a payload, as bytes (KEY-02, KEY-07).

    Parameters
    ----------
    context : Context
    sender, receiver : int
        The user numbers.
    sender_key, receiver_key : bytes
        Their public keys, 32 bytes each.
    purpose : str
        `SEAL` for the key that encrypts, `SEAL_NONCE` for the key that computes the nonce.

    Raises
    ------
    LengthMismatch
        A key is not 32 bytes long (KEY-03).
    ParameterError
        The sender or the receiver is not in ``[0, 2**32)``, or the purpose is no text in ASCII.
    """
    validate.integer("sender", sender, 0, validate.MAX_COUNT)
    validate.integer("receiver", receiver, 0, validate.MAX_COUNT)
    validate.ascii_text("purpose", purpose)
    check_key("sender_key", sender_key)
    check_key("receiver_key", receiver_key)
    return fields(
        LABEL,
        VERSION,
        context.protocol,
        context.parameters,
        context.round,
        purpose,
        sender,
        receiver,
        sender_key,
        receiver_key,
    )


@dataclass(frozen=True)
class Lane(validate.Plain):
    """The direction from one user to another in a round, with the values that bind the keys of its payload.

    Raises `ParameterError` if the sender or the receiver is not in ``[0, 2**32)``.
    """

    context: Context
    sender: int
    receiver: int
    sender_key: bytes
    receiver_key: bytes

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sender", "receiver"):
            validate.integer(name, getattr(self, name), 0, validate.MAX_COUNT)

    def seal(self, secret: bytes, plaintext: bytes) -> bytes:
        """Return the payload of a plaintext, 28 bytes longer, under the shared secret of the two (SEA-01)."""
        cipher, associated = self._cipher(secret)
        plaintext = validate.octets("plaintext", plaintext)
        nonce = self._nonce(secret, associated, plaintext)
        return nonce + cipher.encrypt(nonce, plaintext, associated)

    def open(self, secret: bytes, payload: bytes) -> bytes:
        """Return the plaintext of a payload.

        Raises
        ------
        DecryptionFailed
            The payload was altered or cut, or is bound to something else (SEA-02); or its nonce is not the one
            computed from its plaintext (SEA-09).
        """
        cipher, associated = self._cipher(secret)
        payload = validate.octets("payload", payload)
        if len(payload) < OVERHEAD:
            raise self._failed(f"is {len(payload)} bytes long, and the shortest one is {OVERHEAD}")
        nonce = payload[:NONCE_BYTES]
        try:
            plaintext = cipher.decrypt(nonce, payload[NONCE_BYTES:], associated)
        except InvalidTag:
            raise self._failed("does not open") from None
        self._check_nonce(nonce, self._nonce(secret, associated, plaintext))
        return plaintext

    def _cipher(self, secret: bytes) -> tuple[ChaCha20Poly1305, bytes]:
        """Return the cipher under the key of the payload, and the associated data (KEY-02)."""
        bound = self._bound(SEAL)
        key = derive(secret, self.context.session, bound)
        return ChaCha20Poly1305(key), bound + self.context.message_type.to_bytes(2, "little")

    def _nonce(self, secret: bytes, associated: bytes, plaintext: bytes) -> bytes:
        """Return the nonce of a plaintext, 12 bytes (SEA-08, KEY-07)."""
        key = derive(secret, self.context.session, self._bound(SEAL_NONCE))
        return hmac.digest(key, associated + plaintext, "sha256")[:NONCE_BYTES]

    def _check_nonce(self, nonce: bytes, right: bytes) -> None:
        if not hmac.compare_digest(nonce, right):
            raise self._failed("has another nonce than the one of its plaintext")

    def _bound(self, purpose: str) -> bytes:
        return binding(self.context, self.sender, self.receiver, self.sender_key, self.receiver_key, purpose)

    def _failed(self, why: str) -> DecryptionFailed:
        message = f"the payload from user {self.sender} to user {self.receiver} {why}"
        return DecryptionFailed(message, (self.sender, _SERVER))


@dataclass(eq=False)
class SealedChannel:
    """The channel of one user in one round.

    Parameters
    ----------
    context : Context
        The values that bind the keys.
    private : bytes
        The user's X25519 private key, 32 bytes.
    roster : Roster
        The public keys of all users.
    """

    context: Context
    private: bytes = field(repr=False)
    roster: Roster
    _sealed: set[int] = field(default_factory=set, init=False)
    _agreed: dict[int, bytes] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_key("private", self.private)

    def close(self, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return the payload of a plaintext, 28 bytes longer (SEA-01).

        Raises
        ------
        UnknownUser, DuplicateUser
            Sender and receiver are not two different users of the roster.
        ParameterError
            The private key is that of another user of the roster than the sender.
        Replay
            A payload for this receiver was sealed before (SEA-03).
        WeakKey
            The public key of the receiver or of any other user is a point of low order (KEY-01).
        """
        self._check(sender, receiver)
        self._check_own("sender", sender)  # nobody could open the payload
        plaintext = validate.octets("plaintext", plaintext)
        if receiver in self._sealed:
            raise Replay(f"a payload for user {receiver} was sealed before in this round")
        if sender in self._agreed or len(self._agreed) < len(self.roster.keys) - 1:
            for user in range(len(self.roster.keys)):
                if user != sender:
                    self._secret(user)  # refuse if any key is weak, before anything is sealed (ERR-01)
        payload = self._lane(sender, receiver).seal(self._secret(receiver), plaintext)
        self._sealed.add(receiver)
        return payload

    def open(self, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return the plaintext of a payload.

        Raises
        ------
        DecryptionFailed
            The payload was altered or cut, is bound to something else (SEA-02), or has another nonce (SEA-09).
        UnknownUser, DuplicateUser
            Sender and receiver are not two different users of the roster.
        ParameterError
            It does not open, and the private key is that of another user of the roster than the receiver.
        WeakKey
            The public key of the sender is a point of low order (KEY-01).
        """
        self._check(sender, receiver)
        try:
            return self._lane(sender, receiver).open(self._secret(sender), payload)
        except DecryptionFailed:
            self._check_own("receiver", receiver)  # what a wrong receiver cannot open is nobody's fault
            raise

    def _check(self, sender: int, receiver: int) -> None:
        validate.users("sender, receiver", (sender, receiver), len(self.roster.keys))

    def _check_own(self, name: str, user: int) -> None:
        own = public_key(self.private)
        if own != self.roster.keys[user] and own in self.roster.keys:
            raise ParameterError(name, user, f"{self.roster.keys.index(own)}, the user of this channel")

    def _secret(self, peer: int) -> bytes:
        if peer not in self._agreed:
            self._agreed[peer] = agree(self.private, self.roster.keys[peer])
        return self._agreed[peer]

    def _lane(self, sender: int, receiver: int) -> Lane:
        return Lane(self.context, sender, receiver, self.roster.keys[sender], self.roster.keys[receiver])


@dataclass(eq=False)
class SealedStampedChannel:
    """The channel of one user that starts a separate `SealedChannel` for every stamp.

    Parameters
    ----------
    context : Context
        The values that bind the keys; the stamp of the sealing user replaces the round.
    private : bytes
        The user's X25519 private key, 32 bytes.
    roster : Roster
        The public keys of all users.
    """

    context: Context
    private: bytes = field(repr=False)
    roster: Roster
    _newest: SealedChannel | None = field(default=None, init=False, repr=False)
    _agreed: dict[int, bytes] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_key("private", self.private)

    def close(self, stamp: int, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return the payload of a plaintext, 28 bytes longer (SEA-01).

        Raises
        ------
        Replay
            A payload was sealed under a later stamp, or under this one for this receiver (SEA-03).
        ParameterError
            The stamp is not an integer in ``[0, 2**32)``.
        UnknownUser, DuplicateUser, WeakKey
            As for `SealedChannel.close`.
        """
        stamp, newest = validate.integer("stamp", stamp, 0, validate.MAX_COUNT), self._newest
        if newest is None or stamp > newest.context.round:
            newest = self._at(stamp)
        if stamp < newest.context.round:
            raise Replay(f"a payload was sealed under the stamp {newest.context.round}, which is after {stamp}")
        payload = newest.close(sender, receiver, plaintext)
        self._newest = newest
        return payload

    def open(self, stamp: int, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return the plaintext of a payload.

        Raises
        ------
        DecryptionFailed
            The payload was altered or cut, is bound to something else (SEA-02), or has another nonce (SEA-09).
        ParameterError
            The stamp is not an integer in ``[0, 2**32)``, or as for `SealedChannel.open`.
        UnknownUser, DuplicateUser, WeakKey
            As for `SealedChannel.open`.
        """
        return self._at(stamp).open(sender, receiver, payload)

    def _at(self, stamp: int) -> SealedChannel:
        stamp = validate.integer("stamp", stamp, 0, validate.MAX_COUNT)
        channel = SealedChannel(replace(self.context, round=stamp), self.private, self.roster)
        channel._agreed = self._agreed
        return channel


@dataclass(frozen=True, eq=False)
class SealedLinks:
    """The sealed channels of several users as one: the sender's channel closes a payload, the receiver's opens it.

    It serves whole rounds in one process; a single user has its own `SealedChannel`. Both functions raise `UnknownUser`
    for a user without a channel.
    """

    channels: Mapping[int, SealedChannel]

    def close(self, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return the payload, closed by the sender's channel."""
        return self._of("sender", sender).close(sender, receiver, plaintext)

    def open(self, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return the plaintext, opened by the receiver's channel."""
        return self._of("receiver", receiver).open(sender, receiver, payload)

    def _of(self, name: str, user: int) -> SealedChannel:
        if validate.integer(name, user, 0) not in self.channels:
            raise UnknownUser(name, user, "one that has a channel")
        return self.channels[user]


def roster_of(privates: Mapping[int, bytes]) -> Roster:
    """Return the public keys of users 0 … N - 1, whose private keys are given by user.

    Raises
    ------
    ParameterError
        The keys are not those of exactly these users, or two are equal (KEY-04).
    LengthMismatch
        A key is not 32 bytes long (KEY-03).
    """
    users = range(len(validate.mapping("privates", privates)))
    validate.keyed("privates", privates, users, f"given for the users 0 to {len(users) - 1}")
    for user in users:
        check_key(f"privates[{user}]", privates[user])
    return Roster(tuple(public_key(privates[user]) for user in users))


def sealed_links(context: Context, privates: Mapping[int, bytes]) -> SealedLinks:
    """Return the channels of users 0 … N - 1, with the roster of `roster_of`."""
    roster = roster_of(privates)
    return SealedLinks({user: SealedChannel(context, private, roster) for user, private in privates.items()})


guard(__name__)
