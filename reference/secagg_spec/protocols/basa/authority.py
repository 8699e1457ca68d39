"""The authority of BASA: it makes the keys of positions, issues them, and fixes the outcome of each position.

Source: spec/basa.md, section 4 (BAA-07 to BAA-22).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray, frozen
from secagg_spec.crypto import signatures
from secagg_spec.crypto.boxes import PAIR, SELF, KeyRing, PositionKeys
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.prg import check_key
from secagg_spec.protocols import steps
from secagg_spec.protocols.basa import messages
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.codec import Message


@dataclass(frozen=True)
class Seat(validate.Plain):
    """A position that is not unused: its user, and its state, assigned, keyed, accepted or skipped.

    `hashes` are the hashes of the boxes of an accepted upload, in the order of the boxes.
    """

    user: int
    state: str = "assigned"
    hashes: tuple[bytes, ...] = ()


@dataclass(frozen=True, eq=False)
class AuthorityState(steps.PartyState):
    """The state of the authority between its steps.

    `epoch` is the open epoch, or the next one if none is open. `seats` are its positions before the first unused one.
    """

    session: messages.Session
    signing: bytes = field(repr=False)
    ring: KeyRing
    epoch: int
    is_open: bool = False
    seats: tuple[Seat, ...] = ()

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the authority, without a round: each step checks the epoch of its message itself."""
        return steps.Endpoint(self.session.id, None, steps.AUTHORITY)

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
        The first epoch that the authority opens.
    signing : bytes
        The authority's private signing key, 32 bytes.
    verification : Roster
        The verification keys of the N users.
    ring : KeyRing
        How the authority makes keys; the default is one key pair for each position.
    """
    check_key("signing", signing)
    keys = PositionKeys() if ring is None else ring
    known = messages.Session(parameters, session, keys.encryption, verification, signatures.verification_key(signing))
    return AuthorityState(known, signing, keys, validate.integer("round", round, 0, messages.LAST_EPOCH))


@steps.row("open", steps.Role.AUTHORITY, sends=(messages.EpochKeys,), randomness=PositionKeys().opening)
def authority_open(state: AuthorityState, *sampled: Any) -> tuple[AuthorityState, steps.Outbox]:
    """Make the keys of an epoch, and sign and publish the public halves (BAA-07, BAA-08).

    The sampled values are those of the ring: ``pair_keys`` and ``self_keys``, 32 bytes for each position. If timeouts
    end the epoch, ``self_keys`` is empty.
    """
    session = state.session
    messages.require(not state.is_open, f"the epoch {state.epoch} is open")
    messages.require(state.epoch <= messages.LAST_EPOCH, "this was the last epoch that a message can name")
    epoch = session.epoch(state.epoch)
    ring = state.ring.renew(epoch, sampled)
    published = ring.published(epoch)
    signature = signatures.sign(state.signing, session.keys_signed(state.epoch, published))
    outbox = (messages.EpochKeys(*_header(state, steps.SERVER), published, signature),)
    return replace(state, ring=ring, is_open=True), outbox


@steps.row("assign", steps.Role.AUTHORITY, receives=(messages.Assignment,), one=True)
def authority_assign(state: AuthorityState, message: messages.Assignment) -> tuple[AuthorityState, steps.Outbox]:
    """Assign the position to be filled to the user that the server names (BAA-09, BAA-10)."""
    messages.whole(message)
    _check_open(state, message)
    state.session.check_position(message, message.position)
    with messages.blaming(message):
        validate.integer("user", message.user, 0, state.session.parameters.N - 1)
    settled = _settled(state)
    messages.require(message.position == len(settled), f"position {message.position} is not the one to be filled")
    messages.require(_last(state) != "keyed", f"the key of position {message.position} was given out")
    messages.require(len(state.accepted) < state.session.parameters.K, "K positions are accepted")
    if any(seat.user == message.user for seat in settled):
        raise errors.Replay(f"user {message.user} holds a key of the epoch {state.epoch}")
    return replace(state, seats=(*settled, Seat(message.user))), ()


@steps.row(
    "issue",
    steps.Role.AUTHORITY,
    receives=(messages.KeyRequest,),
    sends=(messages.PositionKey,),
    randomness=PositionKeys().issuing,
    senders=lambda authority: authority.users,
    one=True,
)
def authority_issue(
    state: AuthorityState, message: messages.KeyRequest, *sampled: Any
) -> tuple[AuthorityState, steps.Outbox]:
    """Send the user at a position its pair key, once, and name the boxes that the key opens (BAA-11 to BAA-13).

    The sampled values are those that the ring needs for one key.
    """
    session = state.session
    messages.whole(message)
    _check_open(state, message)
    session.check_position(message, message.position)
    position, user = message.position, message.sender
    seat = state.seats[position] if position < len(state.seats) else None
    if seat is None or seat.user != user:
        raise errors.WrongPhase(f"position {position} is not assigned to user {user}")
    if seat.state != "assigned":
        raise errors.Replay(f"the key of position {position} was given out before")
    (key,) = state.ring.secrets(session.epoch(state.epoch), ((PAIR, position),), sampled)
    before = [at for at in state.accepted if at < position]
    senders = _words([state.seats[at].user for at in before])
    hashes = b"".join(state.seats[at].hashes[position - at - 1] for at in before)
    outbox = (messages.PositionKey(*_header(state, user), position, _words(before), senders, hashes, key),)
    return _with_seat(state, position, replace(seat, state="keyed")), outbox


@steps.row("settle", steps.Role.AUTHORITY, receives=(messages.Settlement,), sends=(messages.PositionState,), one=True)
def authority_settle(state: AuthorityState, message: messages.Settlement) -> tuple[AuthorityState, steps.Outbox]:
    """Settle a position, once (BAA-14 to BAA-17)."""
    messages.whole(message)
    _check_open(state, message)
    state.session.check_position(message, message.position)
    with messages.blaming(message):
        validate.integer("accepted", message.accepted, 0, 1)
    position = message.position
    messages.require(position >= len(_settled(state)), f"position {position} was settled before")
    settled = _accept(state, message) if message.accepted else _time_out(state, message)
    if settled is None:
        return _ended(state), (messages.PositionState(*_header(state, steps.SERVER), position, messages.VOIDED),)
    outcome = messages.FREE
    if position < len(settled.seats):
        outcome = messages.ACCEPTED if settled.seats[position].state == "accepted" else messages.SKIPPED
    return settled, (messages.PositionState(*_header(state, steps.SERVER), position, outcome),)


def _accept(state: AuthorityState, message: messages.Settlement) -> AuthorityState:
    """Return the state with a keyed position accepted; its user must have signed the upload (BAA-14)."""
    session, position = state.session, message.position
    messages.require(
        position < len(state.seats) and _last(state) == "keyed", f"the key of position {position} was not given out"
    )
    seat = state.seats[position]
    with messages.blaming(message):
        messages.check_length("hashes", message.hashes, messages.HASH_BYTES * session.box_count(position))
        messages.check_length("signature", message.signature, signatures.SIGNATURE_BYTES)
    data = session.boxes_signed(state.epoch, seat.user, (position, message.stamp, message.weight), message.hashes)
    signatures.verify(session.verification.keys[seat.user], data, message.signature, (steps.SERVER,))
    hashes = messages.split("hashes", message.hashes, messages.HASH_BYTES)
    return _with_seat(state, position, replace(seat, state="accepted", hashes=hashes))


def _time_out(state: AuthorityState, message: messages.Settlement) -> AuthorityState | None:
    """Return the state with a position unused or skipped, or None if the epoch ends (BAA-16, BAA-17)."""
    if message.stamp or message.weight or message.hashes or message.signature:
        text = f"Settlement from {message.sender}: an offer that expired has no stamp, weight, hashes or signature"
        raise errors.Malformed(text, (message.sender,))
    position = message.position
    if position >= len(state.seats):
        return state
    if _last(state) == "assigned":
        return replace(state, seats=_settled(state))
    if not state.session.parameters.settle:
        return None
    return _with_seat(state, position, replace(state.seats[position], state="skipped"))


@steps.row(
    "close",
    steps.Role.AUTHORITY,
    receives=(messages.CloseRequest,),
    sends=(messages.Release,),
    randomness=PositionKeys().issuing,
    one=True,
)
def authority_close(
    state: AuthorityState, message: messages.CloseRequest, *sampled: Any
) -> tuple[AuthorityState, steps.Outbox]:
    """End the epoch; unless timeouts end epochs, release one secret key for each position (BAA-18 to BAA-21).

    The sampled values are those that the ring needs for these keys.
    """
    session, p = state.session, state.session.parameters
    messages.whole(message)
    _check_open(state, message)
    messages.require(len(_settled(state)) == len(state.seats), f"position {len(state.seats) - 1} is not settled")
    accepted = state.accepted
    needed = p.K if len(state.seats) < p.positions else p.T + 2
    if len(accepted) < needed:
        raise errors.TooFewSurvivors(f"{len(accepted)} updates are accepted, and {needed} are needed")
    own = set(accepted)
    slots = [(SELF if at in own else PAIR, at) for at in range(p.positions)] if p.settle else []
    keys = state.ring.secrets(session.epoch(state.epoch), slots, sampled)
    return _ended(state), (messages.Release(*_header(state, steps.SERVER), b"".join(keys)),)


@steps.row("abandon", steps.Role.AUTHORITY, receives=(messages.Abandonment,), one=True)
def authority_abandon(state: AuthorityState, message: messages.Abandonment) -> tuple[AuthorityState, steps.Outbox]:
    """End the epoch, and release nothing (BAA-21)."""
    messages.whole(message)
    _check_open(state, message)
    return _ended(state), ()


# ----------------------------------------------------------------------------------------------------- helpers


def _check_open(state: AuthorityState, message: Message) -> None:
    """Refuse a message for an epoch that is not open (BAA-22)."""
    wanted = state.is_open and message.round == state.epoch
    messages.require(
        wanted, f"{type(message).__name__} from {message.sender} is for the epoch {message.round}, not open"
    )


def _settled(state: AuthorityState) -> tuple[Seat, ...]:
    """Return the positions that are accepted or skipped: all, or all but the last."""
    return state.seats if _last(state) in ("accepted", "skipped") else state.seats[:-1]


def _last(state: AuthorityState) -> str:
    return state.seats[-1].state if state.seats else "accepted"


def _with_seat(state: AuthorityState, position: int, seat: Seat) -> AuthorityState:
    return replace(state, seats=(*state.seats[:position], seat, *state.seats[position + 1 :]))


def _ended(state: AuthorityState) -> AuthorityState:
    return replace(state, ring=state.ring.forget(), epoch=state.epoch + 1, is_open=False, seats=())


def _header(state: AuthorityState, receiver: int) -> tuple[bytes, int, int, int]:
    return state.session.id, state.epoch, steps.AUTHORITY, receiver


def _words(values: list[int]) -> UintArray:
    return frozen(np.array(values, dtype=np.uint64))


guard(__name__)
