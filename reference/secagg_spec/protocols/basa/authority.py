"""The authority of BASA: it makes the keys of positions, gives them out, and fixes what became of each position.

Source: spec/basa.md, section 4 (BAA-07 to BAA-22).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import UintArray, frozen
from secagg_spec.crypto.boxes import PAIR, SELF, KeyRing, PositionKeys
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.prg import check_key
from secagg_spec.crypto.signatures import SIGNATURE_BYTES, sign, verification_key, verify
from secagg_spec.errors import Malformed, Replay, TooFewSurvivors, WrongPhase
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.messages import (
    ACCEPTED,
    FREE,
    HASH_BYTES,
    LAST_EPOCH,
    SKIPPED,
    VOIDED,
    Abandonment,
    Assignment,
    CloseRequest,
    EpochKeys,
    KeyRequest,
    PositionKey,
    PositionState,
    Release,
    Session,
    Settlement,
    blaming,
    check_length,
    require,
    split,
    whole,
)
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Endpoint, Outbox, PartyState, Role, row


@dataclass(frozen=True)
class Seat:
    """A position that is not unused: whose it is, and whether it is assigned, keyed, accepted or skipped.

    `hashes` are those of the boxes of an accepted upload, in their order.
    """

    user: int
    state: str = "assigned"
    hashes: tuple[bytes, ...] = ()


@dataclass(frozen=True, eq=False)
class AuthorityState(PartyState):
    """What the authority knows between its steps.

    `epoch` is the one that is open, or the next one when none is; `seats` are its positions up to the first unused one.
    """

    session: Session
    signing: bytes = field(repr=False)
    ring: KeyRing
    epoch: int
    is_open: bool = False
    seats: tuple[Seat, ...] = ()

    @property
    def endpoint(self) -> Endpoint:
        """Where the authority stands; each step looks at the epoch of its message by itself."""
        return Endpoint(self.session.id, None, AUTHORITY)

    @property
    def users(self) -> range:
        """The users of the roster."""
        return range(self.session.parameters.N)

    @property
    def phase(self) -> str:
        """What the authority does: ``closed`` or ``open``."""
        return "open" if self.is_open else "closed"

    @property
    def accepted(self) -> tuple[int, ...]:
        """The accepted positions, ascending."""
        return tuple(at for at, seat in enumerate(self.seats) if seat.state == "accepted")


def authority_start(
    parameters: Parameters,
    session: bytes,
    round: int,
    *,
    signing: bytes,
    verification: Roster,
    ring: KeyRing | None = None,
) -> AuthorityState:
    """Return the state of the authority before its first step.

    Parameters
    ----------
    parameters : Parameters
    session : bytes
        The session id, 16 bytes.
    round : int
        The epoch that it opens first.
    signing : bytes
        Its private signing key, 32 bytes.
    verification : Roster
        The verification keys of the N users.
    ring : KeyRing
        How it makes keys; one key pair for each position when left out.
    """
    check_key("signing", signing)
    keys = PositionKeys() if ring is None else ring
    known = Session(parameters, session, keys.encryption, verification, verification_key(signing))
    return AuthorityState(known, signing, keys, validate.integer("round", round, 0, LAST_EPOCH))


@row("open", Role.AUTHORITY, sends=(EpochKeys,), randomness=PositionKeys().opening)
def authority_open(state: AuthorityState, *sampled: Any) -> tuple[AuthorityState, Outbox]:
    """Make the keys of an epoch, and publish and sign the public halves (BAA-07, BAA-08).

    The sampled values are those of the ring: ``pair_keys`` and ``self_keys``, 32 bytes for each position; ``self_keys``
    is empty where timeouts end the epoch.
    """
    session = state.session
    require(not state.is_open, f"the epoch {state.epoch} is open")
    require(state.epoch <= LAST_EPOCH, "this was the last epoch that a message can name")
    epoch = session.epoch(state.epoch)
    ring = state.ring.renew(epoch, sampled)
    published = ring.published(epoch)
    signature = sign(state.signing, session.keys_signed(state.epoch, published))
    outbox = (EpochKeys(*_header(state, SERVER), published, signature),)
    return replace(state, ring=ring, is_open=True), outbox


@row("assign", Role.AUTHORITY, receives=(Assignment,), one=True)
def authority_assign(state: AuthorityState, message: Assignment) -> tuple[AuthorityState, Outbox]:
    """Take the server's word for who is at the position to be filled (BAA-09, BAA-10)."""
    whole(message)
    _check_open(state, message)
    state.session.check_position(message, message.position)
    with blaming(message):
        validate.integer("user", message.user, 0, state.session.parameters.N - 1)
    settled = _settled(state)
    require(message.position == len(settled), f"position {message.position} is not the one to be filled")
    require(_last(state) != "keyed", f"the key of position {message.position} was given out")
    require(len(state.accepted) < state.session.parameters.K, "K positions are accepted")
    if any(seat.user == message.user for seat in settled):
        raise Replay(f"user {message.user} holds a key of the epoch {state.epoch}")
    return replace(state, seats=(*settled, Seat(message.user))), ()


@row(
    "issue",
    Role.AUTHORITY,
    receives=(KeyRequest,),
    sends=(PositionKey,),
    randomness=PositionKeys().issuing,
    senders=lambda authority: authority.users,
    one=True,
)
def authority_issue(state: AuthorityState, message: KeyRequest, *sampled: Any) -> tuple[AuthorityState, Outbox]:
    """Give the user at a position its pair key, once, and name the boxes that it opens (BAA-11 to BAA-13).

    The sampled values are those that the ring takes for one key.
    """
    session = state.session
    whole(message)
    _check_open(state, message)
    session.check_position(message, message.position)
    position, user = message.position, message.sender
    seat = state.seats[position] if position < len(state.seats) else None
    if seat is None or seat.user != user:
        raise WrongPhase(f"position {position} is not assigned to user {user}")
    if seat.state != "assigned":
        raise Replay(f"the key of position {position} was given out before")
    (key,) = state.ring.secrets(session.epoch(state.epoch), ((PAIR, position),), sampled)
    before = [at for at in state.accepted if at < position]
    senders = _words([state.seats[at].user for at in before])
    hashes = b"".join(state.seats[at].hashes[position - at - 1] for at in before)
    outbox = (PositionKey(*_header(state, user), position, _words(before), senders, hashes, key),)
    return _with_seat(state, position, replace(seat, state="keyed")), outbox


@row("settle", Role.AUTHORITY, receives=(Settlement,), sends=(PositionState,), one=True)
def authority_settle(state: AuthorityState, message: Settlement) -> tuple[AuthorityState, Outbox]:
    """Fix what became of a position, once (BAA-14 to BAA-17)."""
    whole(message)
    _check_open(state, message)
    state.session.check_position(message, message.position)
    with blaming(message):
        validate.integer("accepted", message.accepted, 0, 1)
    position = message.position
    require(position >= len(_settled(state)), f"position {position} was settled before")
    settled = _accept(state, message) if message.accepted else _time_out(state, message)
    if settled is None:
        return _ended(state), (PositionState(*_header(state, SERVER), position, VOIDED),)
    outcome = FREE
    if position < len(settled.seats):
        outcome = ACCEPTED if settled.seats[position].state == "accepted" else SKIPPED
    return settled, (PositionState(*_header(state, SERVER), position, outcome),)


def _accept(state: AuthorityState, message: Settlement) -> AuthorityState:
    """Return the state in which a keyed position is accepted, for an upload that its user signed (BAA-14)."""
    session, position = state.session, message.position
    require(
        position < len(state.seats) and _last(state) == "keyed", f"the key of position {position} was not given out"
    )
    seat = state.seats[position]
    with blaming(message):
        check_length("hashes", message.hashes, HASH_BYTES * session.box_count(position))
        check_length("signature", message.signature, SIGNATURE_BYTES)
    data = session.boxes_signed(state.epoch, seat.user, (position, message.stamp, message.weight), message.hashes)
    verify(session.verification.keys[seat.user], data, message.signature, (SERVER,))
    hashes = split("hashes", message.hashes, HASH_BYTES)
    return _with_seat(state, position, replace(seat, state="accepted", hashes=hashes))


def _time_out(state: AuthorityState, message: Settlement) -> AuthorityState | None:
    """Return the state in which a position is unused or skipped; none where the epoch ends (BAA-16, BAA-17)."""
    if message.stamp or message.weight or message.hashes or message.signature:
        text = f"Settlement from {message.sender}: an offer that expired has no stamp, weight, hashes or signature"
        raise Malformed(text, (message.sender,))
    position = message.position
    if position >= len(state.seats):
        return state
    if _last(state) == "assigned":
        return replace(state, seats=_settled(state))
    if not state.session.parameters.settle:
        return None
    return _with_seat(state, position, replace(state.seats[position], state="skipped"))


@row("close", Role.AUTHORITY, receives=(CloseRequest,), sends=(Release,), randomness=PositionKeys().issuing, one=True)
def authority_close(state: AuthorityState, message: CloseRequest, *sampled: Any) -> tuple[AuthorityState, Outbox]:
    """End the epoch, and release one secret key for each position where timeouts do not end it (BAA-18 to BAA-21).

    The sampled values are those that the ring takes for these keys.
    """
    session, p = state.session, state.session.parameters
    whole(message)
    _check_open(state, message)
    require(len(_settled(state)) == len(state.seats), f"position {len(state.seats) - 1} is not settled")
    accepted = state.accepted
    needed = p.K if len(state.seats) < p.positions else p.T + 2
    if len(accepted) < needed:
        raise TooFewSurvivors(f"{len(accepted)} updates are accepted, and {needed} are needed")
    own = set(accepted)
    slots = [(SELF if at in own else PAIR, at) for at in range(p.positions)] if p.settle else []
    keys = state.ring.secrets(session.epoch(state.epoch), slots, sampled)
    return _ended(state), (Release(*_header(state, SERVER), b"".join(keys)),)


@row("abandon", Role.AUTHORITY, receives=(Abandonment,), one=True)
def authority_abandon(state: AuthorityState, message: Abandonment) -> tuple[AuthorityState, Outbox]:
    """End the epoch, and release nothing (BAA-21)."""
    whole(message)
    _check_open(state, message)
    return _ended(state), ()


# ----------------------------------------------------------------------------------------------------- helpers


def _check_open(state: AuthorityState, message: Message) -> None:
    """Refuse whatever belongs to an epoch that is not open (BAA-22)."""
    wanted = state.is_open and message.round == state.epoch
    require(wanted, f"{type(message).__name__} from {message.sender} is for the epoch {message.round}, not open")


def _settled(state: AuthorityState) -> tuple[Seat, ...]:
    """Return the positions that are accepted or skipped; at most the last one is neither."""
    return state.seats if _last(state) in ("accepted", "skipped") else state.seats[:-1]


def _last(state: AuthorityState) -> str:
    return state.seats[-1].state if state.seats else "accepted"


def _with_seat(state: AuthorityState, position: int, seat: Seat) -> AuthorityState:
    return replace(state, seats=(*state.seats[:position], seat, *state.seats[position + 1 :]))


def _ended(state: AuthorityState) -> AuthorityState:
    return replace(state, ring=state.ring.forget(), epoch=state.epoch + 1, is_open=False, seats=())


def _header(state: AuthorityState, receiver: int) -> tuple[bytes, int, int, int]:
    return state.session.id, state.epoch, AUTHORITY, receiver


def _words(values: list[int]) -> UintArray:
    return frozen(np.array(values, dtype=np.uint64))
