"""Planted bugs of the users and the server of BASA: offers, uploads, boxes, and what becomes of a sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.conformance.basa_cast import BOX
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.basa_witness import (
    BOXES,
    FIRST,
    MESSAGES,
    SCRIPTS,
    Function,
    entries,
    everybody,
    lenient,
    nothing,
    part_and_steps,
    step_on,
    steps_of,
    upload_of,
    without,
)
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.conformance.wire import pack, unpack
from secagg_spec.errors import DecryptionFailed
from secagg_spec.protocols import basa_cores, basa_messages, basa_server, basa_store, basa_user
from secagg_spec.protocols.basa_messages import ACCEPTED
from secagg_spec.protocols.shape import SERVER

_CORES = "secagg_spec.protocols.basa_cores"
_USER = "secagg_spec.protocols.basa_user"
_SERVER = "secagg_spec.protocols.basa_server"


# ------------------------------------------------------------------------------------------------------------- a user


_OWN = 4
"""A user that uploads behind accepted and skipped positions."""


def _user_steps(**changes: Any) -> list[Call]:
    """Return the steps of a user until its upload, with another key message."""
    part, right = part_and_steps("settle", _OWN)
    [at] = part.taking("upload")
    [message] = part.inbox(at)
    return [*right[:at], step_on("upload", replace(message, **changes))]


def _offer_steps(change: Callable[[Any], Any]) -> list[Call]:
    """Return the steps of a user until it takes an offer, another one."""
    part, right = part_and_steps("settle", _OWN)
    [at] = part.taking("fetch")
    [message] = part.inbox(at)
    return [*right[:at], step_on("fetch", change(message))]


def _spoilt_steps() -> list[Call]:
    """Return the steps of a user that meets a box which does not open, though it has its hash."""
    part, right = part_and_steps("settle", _OWN)
    [fetch], [upload] = part.taking("fetch"), part.taking("upload")
    [offer], [message] = part.inbox(fetch), part.inbox(upload)
    boxes = bytes([offer.boxes[0] ^ 1]) + offer.boxes[1:]
    named = replace(message, hashes=part.cast.hashes(boxes))
    return [*right[:fetch], step_on("fetch", replace(offer, boxes=boxes)), step_on("upload", named)]


mutant(
    "weight-without-staleness",
    "BAA-23",
    "wrong sum: an update weighs c_g, however late it is",
    f"{_USER}:user_upload",
    lambda: entries(_OWN),
    kind="sum",
    source="wrong term",
)(without(basa_user, "realised_weight", lambda staleness, c_g, tau, draw: c_g))


@mutant(
    "second-upload-of-an-update",
    "BAA-27",
    "privacy: an update is uploaded again, and two sums over it differ by it alone",
    f"{_USER}:user_upload",
    lambda: entries(_OWN, *steps_of(_OWN, 3), steps_of(_OWN, 3)[-1]),
    kind="privacy",
    source="used twice",
)
def _kept(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, phase="fetched", update=state.update, stamp=state.stamp, offer=state.offer), outbox

    return wrong


mutant(
    "offer-of-a-spent-epoch",
    "BAA-52",
    "privacy: a user uses the key of its position twice, and two updates are under the same masks of others",
    f"{_USER}:user_fetch",
    lambda: entries(_OWN, *steps_of(_OWN, 3), *steps_of(_OWN, 2)),
    kind="privacy",
    source="clause left out",
)(lenient(last=lambda state, inbox: None))


@mutant(
    "offer-of-any-epoch",
    "BAA-28",
    "failure: an offer is taken however old the update is, and its upload refused",
    f"{_USER}:user_fetch",
    lambda: entries(_OWN, *_offer_steps(_later)),
    kind="acceptance",
    source="clause left out",
)
def _any_epoch(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        offered = [message.round for message in inbox]
        after, outbox = right(replace(state, stamp=offered[0] if offered else 0), inbox, randomness=randomness)
        return replace(after, stamp=state.stamp), outbox

    return wrong


def _later(offer: Any) -> Any:
    keys = everybody().epoch_keys(FIRST + 9, offer.keys)
    return replace(offer, round=FIRST + 9, keys=keys.keys, signature=keys.signature)


mutant(
    "epoch-keys-not-verified",
    "BAA-29",
    "privacy: users seal their seeds to keys that the server made",
    f"{MESSAGES}:Session.check_keys",
    lambda: entries(_OWN, *_offer_steps(lambda offer: replace(offer, signature=bytes(64)))),
    kind="privacy",
    source="clause left out",
)(lambda right: nothing)
mutant(
    "key-of-another-position-taken",
    "BAA-30",
    "failure: whatever position a key is for, it is used for the one that was offered",
    f"{_USER}:_named",
    lambda: entries(_OWN, *_user_steps(position=2)),
    kind="acceptance",
    source="clause in part",
)(lambda right: lambda session, offer, message: right(session, offer, replace(message, position=offer.position)))
mutant(
    "key-not-compared",
    "BAA-30",
    "wrong blame: with a key that is not the position's no box opens, and their senders are accused",
    f"{BOXES}:PerPosition.check_key",
    lambda: entries(_OWN, *_user_steps(key=bytes(range(32)))),
    kind="refusal",
    source="clause in part",
)(lambda right: nothing)


@mutant(
    "hashes-not-compared",
    "BAA-31",
    "privacy: the server exchanges boxes for its own, and knows the masks",
    f"{_USER}:_open_boxes",
    lambda: entries(_OWN, *_user_steps(hashes=bytes(64))),
    kind="privacy",
    source="clause left out",
)
def _any_hash(right: Function) -> Function:
    def wrong(state: Any, offer: Any, message: Any) -> Any:
        boxes = state.session.boxes(offer.boxes)
        if len(boxes) != message.positions.size:
            return right(state, offer, message)
        return right(state, offer, replace(message, hashes=basa_messages.digests(boxes)))

    return wrong


@mutant(
    "more-boxes-than-are-named",
    "BAA-31",
    "acceptance: boxes behind those that the authority names are passed over",
    f"{_USER}:_open_boxes",
    lambda: entries(_OWN, *_fewer_named()),
    kind="acceptance",
    source="silent repair",
)
def _first_boxes(right: Function) -> Function:
    def wrong(state: Any, offer: Any, message: Any) -> Any:
        return right(state, replace(offer, boxes=offer.boxes[: BOX * message.positions.size]), message)

    return wrong


def _fewer_named() -> list[Call]:
    """Return the steps of a user whose key names a position less than there are boxes."""
    part, _ = part_and_steps("settle", _OWN)
    [message] = part.inbox(part.taking("upload")[0])
    less = {"positions": message.positions[:-1], "senders": message.senders[:-1], "hashes": message.hashes[:-32]}
    return _user_steps(**less)


mutant(
    "epoch-keys-of-any-length",
    "BAA-51",
    "failure: keys of an epoch that are too few are taken, and nothing can be sealed to the last positions",
    f"{BOXES}:PerPosition.check_published",
    lambda: entries(SERVER, step_on("open", everybody().epoch_keys(FIRST, everybody().published(FIRST)[32:]))),
    kind="acceptance",
    source="clause in part",
)(lambda right: nothing)


def _passing(failing: type[Exception]) -> Callable[[Function], Function]:
    """Return a way to open boxes that passes over those that do not open."""

    def build(right: Function) -> Function:
        def wrong(state: Any, *given: Any) -> Any:
            encryption: Any = type(state.session.encryption)

            def opened(self: Any, address: Any, published: bytes, key: bytes, box: bytes) -> bytes:
                try:
                    seed: bytes = kept(self, address, published, key, box)
                    return seed
                except failing:
                    return bytes(32)

            kept = encryption.open
            encryption.open = opened
            try:
                seeds = right(state, *given)
            finally:
                encryption.open = kept
            return {place: seed for place, seed in seeds.items() if seed != bytes(32)}

        return wrong

    return build


mutant(
    "box-that-does-not-open-passed-over",
    "BAA-32",
    "wrong sum: the mask of a box that does not open is left in, and nobody notices",
    f"{_USER}:_open_boxes",
    lambda: entries(_OWN, *_spoilt_steps()),
    kind="acceptance",
    source="silent repair",
)(_passing(DecryptionFailed))


@mutant(
    "one-seed-for-all-positions",
    "BAA-33",
    "privacy: all masks of a user come from one seed, so that each later user knows it",
    f"{_USER}:user_upload",
    lambda: entries(0),
    kind="privacy",
    source="used twice",
)
def _one_seed(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        seeds = randomness["seeds"]
        same = seeds[-32:] * (len(seeds) // 32)
        return right(state, inbox, randomness={**randomness, "seeds": same})

    return wrong


@mutant(
    "seeds-of-the-upload-before",
    "BAA-33",
    "privacy: a user seals the same seeds in each upload",
    f"{SCRIPTS}:PositionParty.values",
    lambda: entries(0),
    kind="privacy",
    source="used twice",
)
def _old_seeds(right: Function) -> Function:
    def wrong(self: Any, step: Any) -> Any:
        values = right(self, step)
        return {name: self.sampled[name][0] if name == "seeds" else value for name, value in values.items()}

    return wrong


@mutant(
    "weight-not-signed",
    "BAA-34",
    "acceptance: the server changes the weight and the stamp of an upload",
    f"{MESSAGES}:Session.boxes_signed",
    lambda: entries(_OWN),
    kind="acceptance",
    source="field not bound: the weight and the stamp",
)
def _weight_unsigned(right: Function) -> Function:
    return lambda self, number, user, upload, digests: right(self, number, user, (upload[0], 0, 0), digests)


# ---------------------------------------------------------------------------------------------------------- the server


def _asks(user: int, stamp: int = FIRST) -> Call:
    return step_on("offer", everybody().request(user, stamp))


def _sends(upload: Any) -> Call:
    return step_on("take", upload)


_SERVED = 2
"""The number of the server's first steps, after which user 0 is served."""


@mutant(
    "boxes-in-another-order",
    "BAA-35",
    "failure: boxes are offered from the last position on, and no user finds their hashes",
    f"{_SERVER}:server_offer",
    lambda: entries(SERVER),
    kind="refusal",
    source="order",
)
def _other_order(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, (offer, told) = right(state, inbox, randomness=randomness)
        boxes = [offer.boxes[at : at + BOX] for at in range(0, len(offer.boxes), BOX)]
        return after, (replace(offer, boxes=b"".join(boxes[::-1])), told)

    return wrong


@mutant(
    "boxes-of-skipped-positions-offered",
    "BAA-35",
    "failure: the boxes of an upload that was not accepted are offered, and no later user can go on",
    f"{_SERVER}:server_settle",
    lambda: entries(SERVER, name="denied"),
    kind="refusal",
    source="wrong term",
)
def _denied_boxes(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        if state.upload is None or not after.places or after.places[-1].accepted:
            return after, outbox
        boxes = state.session.boxes(state.upload.boxes)
        place = replace(after.places[-1], boxes=boxes, accepted=True, weight=0)
        return replace(after, places=(*after.places[:-1], place)), outbox

    return wrong


def _strangers(right: Function) -> Function:
    """Return a step of the server that does not see who was at a position before."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        loose = tuple(replace(place, user=-1) for place in state.places)
        after, outbox = right(replace(state, places=loose), inbox, randomness=randomness)
        return replace(after, places=state.places), outbox

    return wrong


mutant(
    "one-user-offered-two-positions",
    "BAA-36",
    "failure: a position is offered to a user that had one, and the authority refuses",
    f"{_SERVER}:server_offer",
    lambda: entries(SERVER, *steps_of(SERVER, 4), _asks(0)),
    kind="acceptance",
    source="clause in part",
)(_strangers)
mutant(
    "two-users-served",
    "BAA-36",
    "failure: a position is offered to a second user while one is served",
    f"{_SERVER}:server_offer",
    lambda: entries(SERVER, *steps_of(SERVER, _SERVED), _asks(1)),
    kind="acceptance",
    source="clause in part",
)(lenient(phase=lambda state, inbox: "filling" if state.phase == "serving" else state.phase))
mutant(
    "any-staleness-taken",
    "BAA-49",
    "failure: a request with any stamp is served, and its user refuses the offer",
    f"{_SERVER}:_check_staleness",
    lambda: entries(SERVER, *steps_of(SERVER, 1), _asks(0, FIRST + 1)),
    also=("BAA-38",),
    kind="acceptance",
    source="silent repair",
)(lambda right: lambda state, message, stamp: min(max(state.epoch - stamp, 0), state.session.parameters.tau_max))
mutant(
    "upload-of-another-user",
    "BAA-37",
    "wrong sum: whoever sends an upload first takes the position of the user that is served",
    f"{_SERVER}:server_take",
    lambda: entries(SERVER, *steps_of(SERVER, _SERVED), _sends(upload_of(1, 0))),
    kind="acceptance",
    source="clause in part",
)(lenient(serving=lambda state, inbox: inbox[0].sender if state.phase == "serving" and inbox else state.serving))


mutant(
    "upload-for-another-position",
    "BAA-37",
    "failure: an upload is told to the authority as one at whatever position it names",
    f"{_SERVER}:server_take",
    lambda: entries(SERVER, *steps_of(SERVER, 11), _sends(upload_of(3, 1))),
    kind="acceptance",
    source="clause in part",
)(lenient(places=lambda state, inbox: state.places[: inbox[0].position] if inbox else state.places))


@mutant(
    "late-upload-taken",
    "BAA-37",
    "wrong sum: an upload that comes when its offer expired is added, though nobody removes its masks",
    f"{_SERVER}:server_take",
    lambda: entries(SERVER, *steps_of(SERVER, 10), _sends(_late())),
    also=("BAA-40",),
    kind="acceptance",
    source="paper: basa, late uploads",
)
def _late_taken(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        [message] = inbox or [None]
        places = state.places
        skipped = [at for at, place in enumerate(places) if not place.accepted and message is not None]
        late = [at for at in skipped if (at, places[at].user) == (getattr(message, "position", -1), message.sender)]
        if state.phase != "filling" or not late:
            return right(state, inbox, randomness=randomness)
        served = replace(state, phase="serving", serving=message.sender, places=places[: message.position])
        right(served, inbox, randomness=randomness)
        total = state.session.parameters.ring.add(state.total, message.masked)
        return replace(state, total=total), ()

    return wrong


def _late() -> Any:
    """Return the upload of the session that came late."""
    [(_, upload)] = part_and_steps("settle", SERVER)[0].late
    return upload


mutant(
    "weights-unchecked",
    "BAA-38",
    "wrong sum: an update weighs what its user likes",
    f"{_SERVER}:_check_upload",
    lambda: entries(SERVER, *steps_of(SERVER, _SERVED), _sends(everybody().signed(upload_of(0, 0), weight=99))),
    kind="acceptance",
    source="clause left out",
)(without(basa_server, "admissible_weights", lambda staleness, c_g, tau: range(2**32)))
mutant(
    "uploads-not-verified",
    "BAA-39",
    "failure: an upload that nobody signed is taken, and the authority refuses it",
    f"{_SERVER}:server_take",
    lambda: entries(SERVER, *steps_of(SERVER, _SERVED), _sends(replace(upload_of(0, 0), signature=bytes(64)))),
    kind="acceptance",
    source="clause left out",
)(without(basa_server, "verify", nothing))


@mutant(
    "added-before-it-is-settled",
    "BAA-40",
    "wrong sum: an upload is in the buffer whatever the authority settles",
    f"{_SERVER}:server_settle",
    lambda: entries(SERVER, name="denied"),
    kind="sum",
    source="clause left out",
)
def _unsettled(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        [message] = inbox
        if state.upload is None or message.state == ACCEPTED or after.total is None:
            return after, outbox
        return replace(after, total=state.session.parameters.ring.add(after.total, state.upload.masked)), outbox

    return wrong


def _dropping(keep: Callable[[int, int], bool]) -> Callable[[Function], Function]:
    """Return a recovery that leaves some masks in."""

    def build(right: Function) -> Function:
        return lambda state, keys: {place: seed for place, seed in right(state, keys).items() if keep(*place)}

    return build


mutant(
    "masks-to-skipped-positions-left-in",
    "BAA-41",
    "wrong sum: after a timeout the masks to the skipped position stay in the sum",
    f"{_SERVER}:_open_boxes",
    lambda: entries(SERVER),
    kind="sum",
    source="wrong term",
)(_dropping(lambda source, target: source == target))
mutant(
    "self-masks-left-in",
    "BAA-41",
    "wrong sum: the self masks stay in the sum",
    f"{_SERVER}:_open_boxes",
    lambda: entries(SERVER),
    kind="sum",
    source="wrong term",
)(_dropping(lambda source, target: source != target))


def _unopened() -> list[Call]:
    """Return the steps of a server that took an upload whose self box does not open, until it recovers."""
    cast = everybody()
    spoilt = cast.with_box(upload_of(0, 0), 0, bytes(BOX))
    uploads = [spoilt, *(upload_of(user, user) for user in range(1, 4))]
    steps = [step_on("open", cast.epoch_keys(FIRST))]
    for at, upload in enumerate(uploads):
        steps += [_asks(at), _sends(upload), step_on("settle", cast.state(FIRST, at, ACCEPTED))]
    return [*steps, Call("close"), step_on("recover", cast.release(FIRST, range(4)))]


mutant(
    "recovery-with-unopened-boxes",
    "BAA-42",
    "wrong sum: the mask in a box that does not open stays in the sum, and nobody notices",
    f"{_SERVER}:_open_boxes",
    lambda: entries(SERVER, *_unopened()),
    also=("BAA-45",),
    kind="acceptance",
    source="silent repair",
)(_passing(DecryptionFailed))
mutant(
    "keys-of-an-old-epoch-taken",
    "BAA-50",
    "acceptance: the server goes on in an epoch that has ended",
    f"{_SERVER}:server_open",
    lambda: entries(SERVER, step_on("open", everybody().epoch_keys(FIRST - 1, everybody().published(FIRST)))),
    kind="acceptance",
    source="clause left out",
)(lenient(epoch=lambda state, inbox: None))


@mutant(
    "recovered-epoch-stays-open",
    "BAA-45",
    "acceptance: an epoch ends twice, and its sum is given out again",
    f"{_SERVER}:server_recover",
    lambda: entries(SERVER),
    kind="acceptance",
    source="kept too long",
)
def _stays(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(state, recovered=after.recovered), outbox

    return wrong


# --------------------------------------------------------------------------------------------------------- all of them


mutant(
    "position-states-unchecked",
    "BAA-37",
    "acceptance: a step is taken whenever it is asked for, in any state",
    f"{MESSAGES}:require",
    lambda: entries(SERVER, *steps_of(SERVER, 1), Call("expire")),
    also=("BAA-18", "BAA-22", "BAA-36"),
    kind="acceptance",
    source="clause left out",
)(lambda right: nothing)


def _short() -> Any:
    return replace(upload_of(0, 0), masked=np.zeros(2, np.uint64))


@mutant(
    "vectors-of-uploads-are-fitted",
    "BAA-51",
    "acceptance: a masked update is cut, continued or reduced until it fits",
    f"{_SERVER}:_check_upload",
    lambda: entries(
        SERVER, *steps_of(SERVER, _SERVED), _sends(replace(upload_of(0, 0), masked=np.zeros(2, np.uint64)))
    ),
    also=("MOD-07",),
    kind="acceptance",
    source="silent repair",
)
def _fitted(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        p = state.session.parameters
        masked = np.concatenate([message.masked, np.zeros(p.d, np.uint64)])[: p.d] % np.uint64(p.R)
        object.__setattr__(message, "masked", masked)
        return right(state, message)

    return wrong


# ------------------------------------------------------------------------------------------------------ whole requests


def _asked(**changes: Any) -> object:
    """Return what the reference says to a script of user 0 with other numbers or another update."""
    part, right = part_and_steps("settle", 0)
    params = {**part.params(list(right[:1])), **changes}
    return reference.build().answer({"id": 0, "op": "basa.user", "params": params, "rand": part.deal.rand(0)})


mutant(
    "positions-unchecked",
    "BAA-01",
    "privacy: a buffer may be so small that T colluders leave one honest update",
    f"{_CORES}:Parameters._check_positions",
    lambda: _asked(K=2, S=3),
    kind="privacy",
    source="clause left out",
)(lambda right: nothing)
mutant(
    "position-levels-unchecked",
    "BAA-02",
    "wrong sums: weights may vanish, or a full buffer wrap",
    f"{_CORES}:Parameters._check_levels",
    lambda: _asked(c_g="2"),
    kind="acceptance",
    source="clause left out",
)(lambda right: nothing)


@mutant(
    "updates-in-hand-are-fitted",
    "BAA-24",
    "wrong sums: an update of another length, or with numbers that are not elements, is made to fit",
    f"{SCRIPTS}:_user",
    lambda: _asked(updates=["00000000", *part_and_steps("settle", 0)[0].deal.setups[0]["updates"][1:]]),
    kind="acceptance",
    source="silent repair",
)
def _made_to_fit(right: Function) -> Function:
    def wrong(parameters: Any, session: bytes, round: int, setup: Any, rand: Any) -> Any:
        rows = [unpack(text).astype(np.uint64) for text in setup["updates"]]
        padded = [np.concatenate([row, np.zeros(parameters.d, np.uint64)])[: parameters.d] for row in rows]
        updates = [pack(row % np.uint64(parameters.R)) for row in padded]
        return right(parameters, session, round, {**setup, "updates": updates}, rand)

    return wrong


# ---------------------------------------------------------------------------------------- what no operation comes near


@mutant(
    "restart-forgets-accepted-users",
    "BAA-44",
    "failure: a server that comes back has forgotten who had a position, and offers it again",
    "secagg_spec.protocols.basa_store:restore_server",
    lambda: len(basa_store.restore_server(basa_store.store_server(_stored_after())).places),
    reach="tests/protocols/test_basa_store.py::test_parties_that_die_between_all_steps_go_on_as_if_they_had_not",
    kind="refusal",
    source="forgotten",
)
def _forgetful(right: Function) -> Function:
    return lambda *given: replace(right(*given), places=())


def _stored_after() -> Any:
    """Return the server of a session in which one update is accepted."""
    part, right = part_and_steps("settle", SERVER)
    party = part.deal.open(SERVER)
    for step in right[:4]:
        party.take(step)
    return party.state


@mutant(
    "quantised-at-both-levels",
    "BAA-46",
    "wrong scale: an update of real numbers is quantised at the product of both levels",
    f"{_CORES}:encode_update",
    lambda: basa_cores.encode_update(_settle_numbers(), np.array([1.0, 0.0, 2.0]), np.zeros(3)).tolist(),
    reach="tests/protocols/test_basa_cores.py::test_real_updates_are_quantised_for_a_full_buffer",
    kind="sum",
    source="wrong term",
)
def _both_levels(right: Function) -> Function:
    return lambda parameters, x, rounding: right(replace(parameters, c_l=parameters.c_l * parameters.c_g), x, rounding)


def _settle_numbers() -> Any:
    return everybody().parameters
