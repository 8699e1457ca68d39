"""The server of BASA: it offers positions, keeps the masked sum, and finally removes the remaining masks.

Source: spec/basa.md, section 4 (BAA-35 to BAA-43, BAA-49 to BAA-51).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.crypto import signatures
from secagg_spec.crypto.boxes import PAIR, PER_POSITION, SELF, Encryption, mask_key
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.prg import stream
from secagg_spec.protocols import steps
from secagg_spec.protocols.basa import messages
from secagg_spec.protocols.basa.cores import Parameters, recover
from secagg_spec.protocols.buffers import average
from secagg_spec.protocols.codec import Message


@dataclass(frozen=True)
class Place(validate.Plain):
    """A settled position: its user, and the kept data of an accepted upload; a skipped position has no boxes."""

    user: int
    weight: int = 0
    boxes: tuple[bytes, ...] = ()
    accepted: bool = False


@dataclass(frozen=True)
class Entry(validate.Plain):
    """An accepted update: its position, its user, its weight."""

    position: int
    user: int
    weight: int


@dataclass(frozen=True, eq=False)
class Recovered(validate.Plain):
    """An epoch that ended with a sum: its number, and the accepted updates with their weighted sum and average."""

    epoch: int
    entries: tuple[Entry, ...]
    sum: validate.UintArray
    average: validate.RealArray


@dataclass(frozen=True, eq=False)
class ServerState(steps.PartyState):
    """The state of the server between its steps.

    `phase` is ``idle``, ``filling``, ``serving``, ``settling`` or ``closing``. `epoch` is the last epoch that the
    server knows. `places` are the settled positions, and `serving` is the user at the next one. `upload` is that user's
    upload while the authority settles it. `total` is the sum of the accepted masked updates.
    """

    session: messages.Session
    epoch: int | None
    phase: str = "idle"
    keys: bytes = b""
    signature: bytes = b""
    places: tuple[Place, ...] = ()
    serving: int | None = None
    upload: messages.PositionUpload | None = None
    total: validate.UintArray | None = None
    recovered: Recovered | None = None

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the server, without a round: each step checks the epoch of its message itself."""
        return steps.Endpoint(self.session.id, None, steps.SERVER)

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
        The last epoch that the server knows; None if it knows none.
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
    known = messages.Session(parameters, session, encryption, verification, authority)
    return ServerState(known, None if round is None else validate.integer("round", round, 0, messages.LAST_EPOCH))


@steps.row("open", steps.Role.SERVER, receives=(messages.EpochKeys,), one=True, senders=steps.from_authority)
def server_open(state: ServerState, message: messages.EpochKeys) -> tuple[ServerState, steps.Outbox]:
    """Check and take the keys of a new epoch (BAA-29, BAA-50)."""
    messages.whole(message)
    messages.require(state.phase == "idle", f"the server is {state.phase}, and opens no epoch")
    state.session.check_keys(message)
    if state.epoch is not None and message.round <= state.epoch:
        raise errors.Replay(
            f"keys of the epoch {message.round}, and {state.epoch} was known before", (steps.AUTHORITY,)
        )
    parameters = state.session.parameters
    opened = replace(_ended(state), phase="filling", epoch=message.round, keys=message.keys)
    return replace(opened, signature=message.signature, total=validate.frozen(parameters.ring.zeros(parameters.d))), ()


@steps.row(
    "offer",
    steps.Role.SERVER,
    receives=(messages.PositionRequest,),
    sends=(messages.PositionOffer, messages.Assignment),
    one=True,
    senders=lambda server: server.users,
)
def server_offer(state: ServerState, message: messages.PositionRequest) -> tuple[ServerState, steps.Outbox]:
    """Offer the first unused position to a user, with the boxes to it (BAA-35, BAA-36, BAA-49)."""
    p, position = state.session.parameters, len(state.places)
    messages.whole(message)
    messages.require(state.phase == "filling", f"the server is {state.phase}, and offers no position")
    messages.require(len(state.entries) < p.K and position < p.positions, "the buffer is full, or no position is left")
    user = message.sender
    messages.require(all(place.user != user for place in state.places), f"user {user} had a position of this epoch")
    _check_staleness(state, message, message.round)
    boxes = b"".join(place.boxes[position - at - 1] for at, place in enumerate(state.places) if place.accepted)
    offer = messages.PositionOffer(*_header(state, user), position, state.keys, state.signature, boxes)
    outbox = (offer, messages.Assignment(*_header(state, steps.AUTHORITY), position, user))
    return replace(state, phase="serving", serving=user), outbox


@steps.row(
    "take",
    steps.Role.SERVER,
    receives=(messages.PositionUpload,),
    sends=(messages.Settlement,),
    one=True,
    senders=lambda server: server.users,
)
def server_take(state: ServerState, message: messages.PositionUpload) -> tuple[ServerState, steps.Outbox]:
    """Keep the upload of the user being served, and report it to the authority (BAA-37 to BAA-39)."""
    session, position = state.session, len(state.places)
    messages.whole(message)
    _check_epoch(state, message)
    messages.require(state.phase == "serving", f"the server is {state.phase}, and takes no upload")
    messages.require(message.sender == state.serving, f"user {message.sender} is not the one that is served")
    messages.require(message.position == position, f"the position {position} is open, and not {message.position}")
    hashes = messages.digests(_check_upload(state, message))
    signed = (position, message.stamp, message.weight)
    data = session.boxes_signed(message.round, message.sender, signed, hashes)
    signatures.verify(session.verification.keys[message.sender], data, message.signature, (message.sender,))
    settlement = messages.Settlement(
        *_header(state, steps.AUTHORITY), position, 1, message.stamp, message.weight, hashes, message.signature
    )
    kept = replace(message, masked=validate.frozen(message.masked))
    return replace(state, phase="settling", upload=kept), (settlement,)


@steps.row("expire", steps.Role.SERVER, sends=(messages.Settlement,))
def server_expire(state: ServerState) -> tuple[ServerState, steps.Outbox]:
    """Give up the user being served, and report this to the authority (section 4)."""
    messages.require(state.phase == "serving", f"the server is {state.phase}, and no offer can expire")
    settlement = messages.Settlement(*_header(state, steps.AUTHORITY), len(state.places), 0, 0, 0, b"", b"")
    return replace(state, phase="settling"), (settlement,)


@steps.row("settle", steps.Role.SERVER, receives=(messages.PositionState,), one=True, senders=steps.from_authority)
def server_settle(state: ServerState, message: messages.PositionState) -> tuple[ServerState, steps.Outbox]:
    """Carry out the authority's decision on the position (BAA-40)."""
    messages.whole(message)
    _check_epoch(state, message)
    messages.require(state.phase == "settling", f"the server is {state.phase}, and settles no position")
    state.session.check_position(message, message.position)
    messages.require(
        message.position == len(state.places), f"position {message.position} is not the one that is settled"
    )
    _check_outcome(state, message)
    if message.state == messages.VOIDED:
        return _ended(state), ()
    settled = replace(state, phase="filling", serving=None, upload=None)
    if message.state == messages.FREE:
        return settled, ()
    assert state.serving is not None
    if message.state == messages.SKIPPED:
        return replace(settled, places=(*state.places, Place(state.serving))), ()
    return _with_upload(state, settled), ()


def _with_upload(state: ServerState, settled: ServerState) -> ServerState:
    """Return the settled state with the upload in the buffer (BAA-40)."""
    upload, total = state.upload, state.total
    assert upload is not None
    assert total is not None
    place = Place(upload.sender, upload.weight, state.session.boxes(upload.boxes), accepted=True)
    added = validate.frozen(state.session.parameters.ring.add(total, upload.masked))
    return replace(settled, places=(*state.places, place), total=added)


@steps.row("close", steps.Role.SERVER, sends=(messages.CloseRequest,))
def server_close(state: ServerState) -> tuple[ServerState, steps.Outbox]:
    """Ask the authority to end the epoch (section 4)."""
    messages.require(state.phase == "filling", f"the server is {state.phase}, and closes nothing")
    return replace(state, phase="closing"), (messages.CloseRequest(*_header(state, steps.AUTHORITY)),)


@steps.row("recover", steps.Role.SERVER, receives=(messages.Release,), one=True, senders=steps.from_authority)
def server_recover(state: ServerState, message: messages.Release) -> tuple[ServerState, steps.Outbox]:
    """Remove the remaining masks with the released keys (BAA-41 to BAA-43).

    The result is `recovered`.
    """
    messages.whole(message)
    _check_epoch(state, message)
    messages.require(state.phase == "closing", f"the server is {state.phase}, and recovers nothing")
    assert state.total is not None
    assert state.epoch is not None
    p, seeds = state.session.parameters, _open_boxes(state, _released(state, message))
    own = _streams(state, ((at, None, seed) for (at, to), seed in seeds.items() if at == to))
    skipped = _streams(state, ((at, to, seed) for (at, to), seed in seeds.items() if at != to))
    total = validate.frozen(recover(p, (state.total,), own, skipped))
    weights = np.array([entry.weight for entry in state.entries], dtype=np.uint64)
    mean = validate.frozen(average(p.ring, p.c_l, weights, total))
    return replace(_ended(state), recovered=Recovered(state.epoch, state.entries, total, mean)), ()


@steps.row("abandon", steps.Role.SERVER, sends=(messages.Abandonment,))
def server_abandon(state: ServerState) -> tuple[ServerState, steps.Outbox]:
    """Give up the epoch (section 4)."""
    messages.require(state.phase != "idle", "the server is idle, and has no epoch to abandon")
    return _ended(state), (messages.Abandonment(*_header(state, steps.AUTHORITY)),)


# ----------------------------------------------------------------------------------------------------- helpers


def _ended(state: ServerState) -> ServerState:
    """Return the idle server after an epoch; it keeps the last recovered result."""
    return ServerState(state.session, state.epoch, recovered=state.recovered)


def _header(state: ServerState, receiver: int) -> tuple[bytes, int, int, int]:
    assert state.epoch is not None
    return state.session.id, state.epoch, steps.SERVER, receiver


def _check_epoch(state: ServerState, message: Message) -> None:
    """Refuse a message of another epoch, without blame: it may only be late."""
    wanted = state.phase != "idle" and message.round == state.epoch
    messages.require(
        wanted, f"{type(message).__name__} from {message.sender} is for the epoch {message.round}, not open"
    )


def _check_staleness(state: ServerState, message: Message, stamp: int) -> int:
    """Return the staleness of an update with a stamp (BAA-38, BAA-49)."""
    assert state.epoch is not None
    tau, most = state.epoch - stamp, state.session.parameters.tau_max
    if not 0 <= tau <= most:
        text = f"user {message.sender} has the stamp {stamp} in the epoch {state.epoch}: tau_max is {most}"
        raise errors.InconsistentSets(text, (message.sender,))
    return tau


def _check_upload(state: ServerState, message: messages.PositionUpload) -> tuple[bytes, ...]:
    """Return the boxes of an upload if its numbers and lengths are right (BAA-38, BAA-39, BAA-51)."""
    session, p = state.session, state.session.parameters
    with messages.blaming(message):
        p.ring.check("masked", message.masked, (p.d,))
        messages.check_length(
            "boxes", message.boxes, session.encryption.box_bytes * session.box_count(message.position)
        )
        messages.check_length("signature", message.signature, signatures.SIGNATURE_BYTES)
    allowed = admissible_weights(p.staleness, p.c_g, _check_staleness(state, message, message.stamp))
    if message.weight not in allowed:
        text = f"the update of user {message.sender} weighs {message.weight}, and may weigh {allowed}"
        raise errors.InconsistentSets(text, (message.sender,))
    return session.boxes(message.boxes)


def _check_outcome(state: ServerState, message: messages.PositionState) -> None:
    """Refuse a state that the profile does not have, or that accepts an upload that was not sent (BAA-51)."""
    late = messages.SKIPPED if state.session.parameters.settle else messages.VOIDED
    allowed = (messages.FREE, late) if state.upload is None else (messages.FREE, late, messages.ACCEPTED)
    with messages.blaming(message):
        if message.state not in allowed:
            raise errors.ParameterError("state", message.state, f"one of {allowed}")


def _released(state: ServerState, message: messages.Release) -> dict[tuple[str, int], bytes]:
    """Return the released keys by kind and position: an accepted position's self key, any other's pair key."""
    session, p = state.session, state.session.parameters
    accepted = {entry.position for entry in state.entries}
    slots = [(SELF if at in accepted else PAIR, at) for at in range(p.positions)] if p.settle else []
    assert state.epoch is not None
    with messages.blaming(message):
        messages.check_length("keys", message.keys, session.encryption.key_bytes * len(slots))
        keys = dict(zip(slots, messages.split("keys", message.keys, session.encryption.key_bytes), strict=True))
        for slot, key in keys.items():
            session.encryption.check_key(session.epoch(state.epoch), state.keys, slot, key)
    return keys


def _open_boxes(state: ServerState, keys: dict[tuple[str, int], bytes]) -> dict[tuple[int, int], bytes]:
    """Return the seeds in all boxes that released keys open, by source and target position (BAA-42)."""
    session, seeds, failed = state.session, dict[tuple[int, int], bytes](), list[int]()
    assert state.epoch is not None
    for entry in state.entries:
        for target, box in zip(session.targets(entry.position), state.places[entry.position].boxes, strict=True):
            address = session.address(state.epoch, entry.user, entry.position, target)
            if address.slot not in keys:
                continue
            try:
                seed = session.encryption.open(address, state.keys, keys[address.slot], box)
            except errors.DecryptionFailed:
                failed.append(entry.user)
            else:
                seeds[entry.position, target] = seed
    if failed:
        raise errors.DecryptionFailed(
            f"boxes of the users {failed} do not open with the keys that were released", failed
        )
    return seeds


def _streams(state: ServerState, seeds: Iterable[tuple[int, int | None, bytes]]) -> Iterator[Iterator[Any]]:
    """Yield the masks from seeds, as streams."""
    assert state.epoch is not None
    p, epoch = state.session.parameters, state.session.epoch(state.epoch)
    return (stream(mask_key(epoch, seed, source, target), p.ring, p.d) for source, target, seed in seeds)


guard(__name__)
