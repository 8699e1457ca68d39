"""The server of BASA: it offers positions, keeps the masked sum, and removes in the end what is left of the masks.

Source: spec/basa.md, section 4 (BAA-35 to BAA-43, BAA-49 to BAA-51).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.arithmetic.validate import RealArray, UintArray, frozen
from secagg_spec.crypto.boxes import PAIR, PER_POSITION, SELF, Encryption, mask_key
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.prg import pieces
from secagg_spec.crypto.signatures import SIGNATURE_BYTES, verify
from secagg_spec.errors import DecryptionFailed, InconsistentSets, ParameterError, Replay
from secagg_spec.protocols.basa.cores import Parameters, recover
from secagg_spec.protocols.basa.messages import (
    ACCEPTED,
    FREE,
    LAST_EPOCH,
    SKIPPED,
    VOIDED,
    Abandonment,
    Assignment,
    CloseRequest,
    EpochKeys,
    PositionOffer,
    PositionRequest,
    PositionState,
    PositionUpload,
    Release,
    Session,
    Settlement,
    blaming,
    check_length,
    digests,
    require,
    split,
    whole,
)
from secagg_spec.protocols.buffers import average
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Endpoint, Outbox, PartyState, Role, from_authority, row


@dataclass(frozen=True)
class Place:
    """A position that was settled: whose it was, and what is left of an accepted upload; a skipped one has no boxes."""

    user: int
    weight: int = 0
    boxes: tuple[bytes, ...] = ()
    accepted: bool = False


@dataclass(frozen=True)
class Entry:
    """An accepted update: its position, its user, its weight."""

    position: int
    user: int
    weight: int


@dataclass(frozen=True, eq=False)
class Recovered:
    """An epoch that ended with a sum: its number, the accepted updates, their weighted sum and their average."""

    epoch: int
    entries: tuple[Entry, ...]
    sum: UintArray
    average: RealArray


@dataclass(frozen=True, eq=False)
class ServerState(PartyState):
    """What the server knows between its steps.

    `phase` is ``idle``, ``filling``, ``serving``, ``settling`` or ``closing``; `epoch` is the last one that it knew;
    `places` are the positions that were settled; `serving` is the user at the next one; `upload` is what it sent, while
    the authority settles it; `total` is the sum of the masked updates that were accepted.
    """

    session: Session
    epoch: int | None
    phase: str = "idle"
    keys: bytes = b""
    signature: bytes = b""
    places: tuple[Place, ...] = ()
    serving: int | None = None
    upload: PositionUpload | None = None
    total: UintArray | None = None
    recovered: Recovered | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Where the server stands; each step looks at the epoch of its message by itself."""
        return Endpoint(self.session.id, None, SERVER)

    @property
    def users(self) -> range:
        """The users of the roster."""
        return range(self.session.parameters.N)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The accepted updates, by position."""
        return tuple(Entry(at, x.user, x.weight) for at, x in enumerate(self.places) if x.accepted)


def server_start(
    parameters: Parameters,
    session: bytes,
    round: int | None,
    *,
    verification: Roster,
    authority: bytes,
    encryption: Encryption = PER_POSITION,
) -> ServerState:
    """Return the state of the server before its first step.

    Parameters
    ----------
    parameters : Parameters
    session : bytes
        The session id, 16 bytes.
    round : int or None
        The last epoch that it knew; none when it knew none.
    verification : Roster
        The verification keys of the N users.
    authority : bytes
        The verification key of the authority, 32 bytes.
    encryption : Encryption
        How seeds are sealed.

    Raises
    ------
    LengthMismatch
        A key or the session id has another length, or the roster does not name N users.
    """
    known = Session(parameters, session, encryption, verification, authority)
    return ServerState(known, None if round is None else validate.integer("round", round, 0, LAST_EPOCH))


@row("open", Role.SERVER, receives=(EpochKeys,), one=True, senders=from_authority)
def server_open(state: ServerState, message: EpochKeys) -> tuple[ServerState, Outbox]:
    """Take the keys of a new epoch (BAA-29, BAA-50)."""
    whole(message)
    require(state.phase == "idle", f"the server is {state.phase}, and opens no epoch")
    state.session.check_keys(message)
    if state.epoch is not None and message.round <= state.epoch:
        raise Replay(f"keys of the epoch {message.round}, and {state.epoch} was known before", (AUTHORITY,))
    parameters = state.session.parameters
    opened = replace(_ended(state), phase="filling", epoch=message.round, keys=message.keys)
    return replace(opened, signature=message.signature, total=frozen(parameters.ring.zeros(parameters.d))), ()


@row(
    "offer",
    Role.SERVER,
    receives=(PositionRequest,),
    sends=(PositionOffer, Assignment),
    one=True,
    senders=lambda server: server.users,
)
def server_offer(state: ServerState, message: PositionRequest) -> tuple[ServerState, Outbox]:
    """Offer the first unused position to a user, with the boxes to it (BAA-35, BAA-36, BAA-49)."""
    p, position = state.session.parameters, len(state.places)
    whole(message)
    require(state.phase == "filling", f"the server is {state.phase}, and offers no position")
    require(len(state.entries) < p.K and position < p.positions, "the buffer is full, or no position is left")
    user = message.sender
    require(all(place.user != user for place in state.places), f"user {user} had a position of this epoch")
    _check_staleness(state, message, message.round)
    boxes = b"".join(place.boxes[position - at - 1] for at, place in enumerate(state.places) if place.accepted)
    offer = PositionOffer(*_header(state, user), position, state.keys, state.signature, boxes)
    outbox = (offer, Assignment(*_header(state, AUTHORITY), position, user))
    return replace(state, phase="serving", serving=user), outbox


@row(
    "take", Role.SERVER, receives=(PositionUpload,), sends=(Settlement,), one=True, senders=lambda server: server.users
)
def server_take(state: ServerState, message: PositionUpload) -> tuple[ServerState, Outbox]:
    """Keep the upload of the user that is served, and tell the authority (BAA-37 to BAA-39)."""
    session, position = state.session, len(state.places)
    whole(message)
    _check_epoch(state, message)
    require(state.phase == "serving", f"the server is {state.phase}, and takes no upload")
    require(message.sender == state.serving, f"user {message.sender} is not the one that is served")
    require(message.position == position, f"the position {position} is open, and not {message.position}")
    hashes = digests(_check_upload(state, message))
    signed = (position, message.stamp, message.weight)
    data = session.boxes_signed(message.round, message.sender, signed, hashes)
    verify(session.verification.keys[message.sender], data, message.signature, (message.sender,))
    told = Settlement(*_header(state, AUTHORITY), position, 1, message.stamp, message.weight, hashes, message.signature)
    return replace(state, phase="settling", upload=message), (told,)


@row("expire", Role.SERVER, sends=(Settlement,))
def server_expire(state: ServerState) -> tuple[ServerState, Outbox]:
    """Give up the user that is served, and tell the authority (section 4)."""
    require(state.phase == "serving", f"the server is {state.phase}, and no offer can expire")
    told = Settlement(*_header(state, AUTHORITY), len(state.places), 0, 0, 0, b"", b"")
    return replace(state, phase="settling"), (told,)


@row("settle", Role.SERVER, receives=(PositionState,), one=True, senders=from_authority)
def server_settle(state: ServerState, message: PositionState) -> tuple[ServerState, Outbox]:
    """Do with the position what the authority settled (BAA-40)."""
    whole(message)
    _check_epoch(state, message)
    require(state.phase == "settling", f"the server is {state.phase}, and settles no position")
    state.session.check_position(message, message.position)
    require(message.position == len(state.places), f"position {message.position} is not the one that is settled")
    _check_outcome(state, message)
    if message.state == VOIDED:
        return _ended(state), ()
    settled = replace(state, phase="filling", serving=None, upload=None)
    if message.state == FREE:
        return settled, ()
    assert state.serving is not None
    if message.state == SKIPPED:
        return replace(settled, places=(*state.places, Place(state.serving))), ()
    return _with_upload(state, settled), ()


def _with_upload(state: ServerState, settled: ServerState) -> ServerState:
    """Return the settled state with the upload in the buffer (BAA-40)."""
    upload, total = state.upload, state.total
    assert upload is not None
    assert total is not None
    place = Place(upload.sender, upload.weight, state.session.boxes(upload.boxes), accepted=True)
    added = frozen(state.session.parameters.ring.add(total, upload.masked))
    return replace(settled, places=(*state.places, place), total=added)


@row("close", Role.SERVER, sends=(CloseRequest,))
def server_close(state: ServerState) -> tuple[ServerState, Outbox]:
    """Ask the authority to end the epoch (section 4)."""
    require(state.phase == "filling", f"the server is {state.phase}, and closes nothing")
    return replace(state, phase="closing"), (CloseRequest(*_header(state, AUTHORITY)),)


@row("recover", Role.SERVER, receives=(Release,), one=True, senders=from_authority)
def server_recover(state: ServerState, message: Release) -> tuple[ServerState, Outbox]:
    """Remove the masks that are left, with the keys that were released (BAA-41 to BAA-43).

    The result is `recovered`.
    """
    whole(message)
    _check_epoch(state, message)
    require(state.phase == "closing", f"the server is {state.phase}, and recovers nothing")
    assert state.total is not None
    assert state.epoch is not None
    p, seeds = state.session.parameters, _open_boxes(state, _released(state, message))
    own = _streams(state, ((at, None, seed) for (at, to), seed in seeds.items() if at == to))
    skipped = _streams(state, ((at, to, seed) for (at, to), seed in seeds.items() if at != to))
    total = frozen(recover(p, (state.total,), own, skipped))
    weights = np.array([entry.weight for entry in state.entries], dtype=np.uint64)
    mean = frozen(average(p.ring, p.c_l, weights, total))
    return replace(_ended(state), recovered=Recovered(state.epoch, state.entries, total, mean)), ()


@row("abandon", Role.SERVER, sends=(Abandonment,))
def server_abandon(state: ServerState) -> tuple[ServerState, Outbox]:
    """Give the epoch up (section 4)."""
    require(state.phase != "idle", "the server is idle, and has no epoch to abandon")
    return _ended(state), (Abandonment(*_header(state, AUTHORITY)),)


# ----------------------------------------------------------------------------------------------------- helpers


def _ended(state: ServerState) -> ServerState:
    """Return the idle server after an epoch; what was recovered last stays."""
    return ServerState(state.session, state.epoch, recovered=state.recovered)


def _header(state: ServerState, receiver: int) -> tuple[bytes, int, int, int]:
    assert state.epoch is not None
    return state.session.id, state.epoch, SERVER, receiver


def _check_epoch(state: ServerState, message: Message) -> None:
    """Refuse a message of another epoch; it may only be late."""
    wanted = state.phase != "idle" and message.round == state.epoch
    require(wanted, f"{type(message).__name__} from {message.sender} is for the epoch {message.round}, not open")


def _check_staleness(state: ServerState, message: Message, stamp: int) -> int:
    """Return the staleness of an update with a stamp (BAA-38, BAA-49)."""
    assert state.epoch is not None
    tau, most = state.epoch - stamp, state.session.parameters.tau_max
    if not 0 <= tau <= most:
        text = f"user {message.sender} has the stamp {stamp} in the epoch {state.epoch}: tau_max is {most}"
        raise InconsistentSets(text, (message.sender,))
    return tau


def _check_upload(state: ServerState, message: PositionUpload) -> tuple[bytes, ...]:
    """Return the boxes of an upload whose numbers and lengths are right (BAA-38, BAA-39, BAA-51)."""
    session, p = state.session, state.session.parameters
    with blaming(message):
        p.ring.check("masked", message.masked, (p.d,))
        check_length("boxes", message.boxes, session.encryption.box_bytes * session.box_count(message.position))
        check_length("signature", message.signature, SIGNATURE_BYTES)
    allowed = admissible_weights(p.staleness, p.c_g, _check_staleness(state, message, message.stamp))
    if message.weight not in allowed:
        text = f"the update of user {message.sender} weighs {message.weight}, and may weigh {allowed}"
        raise InconsistentSets(text, (message.sender,))
    return session.boxes(message.boxes)


def _check_outcome(state: ServerState, message: PositionState) -> None:
    """Refuse a state that the profile has not, or that accepts what was not uploaded (BAA-51)."""
    late = SKIPPED if state.session.parameters.settle else VOIDED
    allowed = (FREE, late) if state.upload is None else (FREE, late, ACCEPTED)
    with blaming(message):
        if message.state not in allowed:
            raise ParameterError("state", message.state, f"one of {allowed}")


def _released(state: ServerState, message: Release) -> dict[tuple[str, int], bytes]:
    """Return the released keys by what they open: the self key of an accepted position, the pair key of any other."""
    session, p = state.session, state.session.parameters
    accepted = {entry.position for entry in state.entries}
    slots = [(SELF if at in accepted else PAIR, at) for at in range(p.positions)] if p.settle else []
    assert state.epoch is not None
    with blaming(message):
        check_length("keys", message.keys, session.encryption.key_bytes * len(slots))
        keys = dict(zip(slots, split("keys", message.keys, session.encryption.key_bytes), strict=True))
        for slot, key in keys.items():
            session.encryption.check_key(session.epoch(state.epoch), state.keys, slot, key)
    return keys


def _open_boxes(state: ServerState, keys: dict[tuple[str, int], bytes]) -> dict[tuple[int, int], bytes]:
    """Return the seeds in all boxes that released keys open, by the positions from and to (BAA-42)."""
    session, seeds, failed = state.session, dict[tuple[int, int], bytes](), list[int]()
    assert state.epoch is not None
    for entry in state.entries:
        for target, box in zip(session.targets(entry.position), state.places[entry.position].boxes, strict=True):
            address = session.address(state.epoch, entry.user, entry.position, target)
            if address.slot not in keys:
                continue
            try:
                seed = session.encryption.open(address, state.keys, keys[address.slot], box)
            except DecryptionFailed:
                failed.append(entry.user)
            else:
                seeds[entry.position, target] = seed
    if failed:
        raise DecryptionFailed(f"boxes of the users {failed} do not open with the keys that were released", failed)
    return seeds


def _streams(state: ServerState, seeds: Iterable[tuple[int, int | None, bytes]]) -> Iterator[Iterator[Any]]:
    """Yield the masks from seeds, as streams."""
    assert state.epoch is not None
    p, epoch = state.session.parameters, state.session.epoch(state.epoch)
    return (pieces(mask_key(epoch, seed, source, target), p.ring, p.d) for source, target, seed in seeds)
