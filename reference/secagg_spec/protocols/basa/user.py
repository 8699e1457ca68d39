"""A user of BASA: it asks for a position, fetches its key, and uploads its masked update and boxes for later positions.

Source: spec/basa.md, section 4 (BAA-23 to BAA-34).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.staleness import realised_weight
from secagg_spec.arithmetic.validate import UintArray, frozen
from secagg_spec.crypto.boxes import PAIR, PER_POSITION, Encryption, mask_key
from secagg_spec.crypto.keys import Roster, sha256
from secagg_spec.crypto.prg import KEY_BYTES, check_key, stream
from secagg_spec.crypto.signatures import sign, verification_key
from secagg_spec.protocols import steps
from secagg_spec.protocols.basa import messages
from secagg_spec.protocols.basa.cores import Masks, Parameters, mask_update


@dataclass(frozen=True, eq=False)
class UserState(steps.PartyState):
    """The state of one user between its steps.

    `phase` is ``idle``, ``asked`` or ``fetched``. `update` and its `stamp` are in hand. `offer` is the offer for which
    the user fetched the key. `last` is the epoch of the user's last upload.
    """

    session: messages.Session
    user: int
    signing: bytes = field(repr=False)
    phase: str = "idle"
    update: UintArray | None = None
    stamp: int = 0
    offer: messages.PositionOffer | None = None
    last: int | None = None

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the user, without a round: each step checks the epoch of its message itself."""
        return steps.Endpoint(self.session.id, None, self.user)


def user_start(
    parameters: Parameters,
    session: bytes,
    user: int,
    *,
    signing: bytes,
    verification: Roster,
    authority: bytes,
    encryption: Encryption = PER_POSITION,
) -> UserState:
    """Return the state of a user before its first step.

    Parameters
    ----------
    parameters : Parameters
    session : bytes
        The session id, 16 bytes.
    user : int
        The user's number.
    signing : bytes
        The user's private signing key, 32 bytes.
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
    ParameterError
        The signing key does not belong to the user's verification key on the roster.
    """
    known = messages.Session(parameters, session, encryption, verification, authority)
    validate.integer("user", user, 0, parameters.N - 1)
    check_key("signing", signing)
    if verification_key(signing) != verification.keys[user]:
        raise errors.ParameterError(
            "signing", f"of another than user {user}", "the one whose public half the roster has"
        )
    return UserState(known, user, signing)


def user_trained(state: UserState, update: UintArray, stamp: int) -> UserState:
    """Return the idle user with the update that its next upload masks, and the epoch of its model (BAA-24).

    The user gives up the update that it had in hand, and the position that it was offered for that update.

    Raises
    ------
    LengthMismatch, NonCanonical
        The update is not d elements.
    """
    parameters = state.session.parameters
    parameters.ring.check("update", update, (parameters.d,))
    stamp = validate.integer("stamp", stamp, 0, messages.LAST_EPOCH)
    return UserState(state.session, state.user, state.signing, update=frozen(update), stamp=stamp, last=state.last)


@steps.row("request", steps.Role.USER, sends=(messages.PositionRequest,))
def user_request(state: UserState) -> tuple[UserState, steps.Outbox]:
    """Ask for a position, for the first time or again (section 4)."""
    _in_hand(state)
    asked = replace(state, phase="asked", offer=None)
    return asked, (messages.PositionRequest(state.session.id, state.stamp, state.user, steps.SERVER),)


@steps.row("fetch", steps.Role.USER, receives=(messages.PositionOffer,), sends=(messages.KeyRequest,), one=True)
def user_fetch(state: UserState, offer: messages.PositionOffer) -> tuple[UserState, steps.Outbox]:
    """Keep an offer for an epoch that the authority opened, and ask for the key (BAA-28, BAA-29, BAA-52)."""
    session = state.session
    messages.whole(offer)
    messages.require(state.phase == "asked", f"user {state.user} did not ask for a position")
    _in_hand(state)
    session.check_position(offer, offer.position)
    with messages.blaming(offer):
        session.boxes(offer.boxes)
    session.check_keys(offer)
    tau, most = offer.round - state.stamp, session.parameters.tau_max
    if not 0 <= tau <= most:
        message = f"an offer of the epoch {offer.round} for an update of {state.stamp}, which may be {most} epochs old"
        raise errors.InconsistentSets(message, (steps.SERVER,))
    if state.last is not None and offer.round <= state.last:
        raise errors.Replay(f"an offer of the epoch {offer.round}, and user {state.user} uploaded in {state.last}")
    request = messages.KeyRequest(session.id, offer.round, state.user, steps.AUTHORITY, offer.position)
    return replace(state, phase="fetched", offer=offer), (request,)


def sampled_by_users(encryption: Encryption) -> tuple[str, ...]:
    """Return the names of the values that a user samples for an upload."""
    return "seeds", encryption.samples, "rounding"


@steps.row(
    *("upload", steps.Role.USER),
    receives=(messages.PositionKey,),
    sends=(messages.PositionUpload,),
    randomness=sampled_by_users(PER_POSITION),
    one=True,
    senders=steps.from_authority,
)
def user_upload(
    state: UserState, message: messages.PositionKey, seeds: bytes, sampled: Any, rounding: float
) -> tuple[UserState, steps.Outbox]:
    """Send the masked update once, with a seed for each later position; forget both (BAA-23 to BAA-27, BAA-30 on).

    The sampled values are: ``seeds``, P times 32 bytes, where entry j is for position j, and the entry of the user's
    own position is for the self mask; ``rounding``, a multiple of 2**-53 in ``[0, 1)``; and those of the encryption:
    ``box_key``, 32 bytes.
    """
    session, p = state.session, state.session.parameters
    messages.whole(message)
    messages.require(state.phase == "fetched", f"user {state.user} did not ask for a key")
    update, offer = _in_hand(state), state.offer
    assert offer is not None
    messages.require(message.round == offer.round, f"a key of the epoch {message.round}, for an offer of {offer.round}")
    messages.check_length("seeds", seeds, KEY_BYTES * p.positions)
    drawn = messages.split("seeds", seeds, KEY_BYTES)
    before = _open_boxes(state, offer, message)
    weight = realised_weight(p.staleness, p.c_g, offer.round - state.stamp, rounding, name="rounding")
    masked = frozen(mask_update(p, update, weight, _masks(state, offer, before, drawn)))
    boxes = _seal(state, offer, drawn, sampled)
    signed = session.boxes_signed(
        offer.round, state.user, (offer.position, state.stamp, weight), messages.digests(boxes)
    )
    header = (session.id, offer.round, state.user, steps.SERVER, offer.position, state.stamp, weight)
    upload = messages.PositionUpload(*header, masked, b"".join(boxes), sign(state.signing, signed))
    return UserState(session, state.user, state.signing, last=offer.round), (upload,)


# ----------------------------------------------------------------------------------------------------- helpers


def _in_hand(state: UserState) -> UintArray:
    """Return the update in hand (BAA-27)."""
    messages.require(state.update is not None, f"user {state.user} has no update in hand")
    assert state.update is not None
    return state.update


def _open_boxes(state: UserState, offer: messages.PositionOffer, message: messages.PositionKey) -> dict[int, bytes]:
    """Return the seeds from earlier positions, if all boxes are those that the authority names (BAA-30 to BAA-32)."""
    positions, senders, hashes = _named(state.session, offer, message)
    boxes = state.session.boxes(offer.boxes)
    if len(boxes) != len(positions):
        raise errors.Malformed(
            f"the offer has {len(boxes)} boxes, and the authority names {len(positions)}", (steps.SERVER,)
        )
    wrong = [at for at, box, named in zip(positions, boxes, hashes, strict=True) if sha256(box) != named]
    if wrong:
        raise errors.BadSignature(
            f"the boxes from the positions {wrong} are not those that were signed", (steps.SERVER,)
        )
    seeds: dict[int, bytes] = {}
    failed: list[int] = []
    for source, sender, box in zip(positions, senders, boxes, strict=True):
        address = state.session.address(offer.round, sender, source, offer.position)
        try:
            seeds[source] = state.session.encryption.open(address, offer.keys, message.key, box)
        except errors.DecryptionFailed:
            failed.append(sender)
    if failed:
        raise errors.DecryptionFailed(f"boxes of the users {failed} do not open at position {offer.position}", failed)
    return seeds


def _named(
    session: messages.Session, offer: messages.PositionOffer, message: messages.PositionKey
) -> tuple[Sequence[int], Sequence[int], Sequence[bytes]]:
    """Return the positions, users and hashes that come with the key of the offered position (BAA-30)."""
    if message.position != offer.position:
        text = f"the key of position {message.position} came, and position {offer.position} was offered"
        raise errors.InconsistentSets(text, (steps.AUTHORITY,))
    positions, senders = message.positions.tolist(), message.senders.tolist()
    with messages.blaming(message):
        for at in positions:
            validate.integer("positions", at, 0, offer.position - 1)
        if any(a >= b for a, b in pairwise(positions)):
            raise errors.ParameterError("positions", positions, "in ascending order")
        validate.users("senders", senders, session.parameters.N)
        if len(senders) != len(positions):
            raise errors.ParameterError("len(senders)", len(senders), f"{len(positions)}, one for each position")
        messages.check_length("hashes", message.hashes, messages.HASH_BYTES * len(positions))
        messages.check_length("key", message.key, session.encryption.key_bytes)
        session.encryption.check_key(session.epoch(offer.round), offer.keys, (PAIR, offer.position), message.key)
    return positions, senders, messages.split("hashes", message.hashes, messages.HASH_BYTES)


def _masks(state: UserState, offer: messages.PositionOffer, before: dict[int, bytes], seeds: Sequence[bytes]) -> Masks:
    """Return the masks of an upload as streams, which are generated when they are added."""
    p, epoch, position = state.session.parameters, state.session.epoch(offer.round), offer.position

    def streams(keys: Iterator[bytes]) -> Iterator[Iterator[Any]]:
        return (stream(key, p.ring, p.d) for key in keys)

    return Masks(
        streams(mask_key(epoch, seed, source, position) for source, seed in before.items()),
        streams(mask_key(epoch, seeds[j], position, j) for j in range(position + 1, p.positions)),
        stream(mask_key(epoch, seeds[position], position), p.ring, p.d) if p.settle else None,
    )


def _seal(state: UserState, offer: messages.PositionOffer, seeds: Sequence[bytes], sampled: Any) -> tuple[bytes, ...]:
    """Return the boxes of an upload: one to each later position, and the self box (BAA-33)."""
    session = state.session
    addresses = (session.address(offer.round, state.user, offer.position, j) for j in session.targets(offer.position))
    return tuple(session.encryption.seal(a, offer.keys, seeds[a.target], sampled) for a in addresses)


guard(__name__)
