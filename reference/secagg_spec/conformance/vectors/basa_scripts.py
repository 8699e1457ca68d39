"""Vectors of BASA: users, the server and the authority, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases.lightsecagg_parties import exchanged
from secagg_spec.conformance.checks.basa_authorities import BAD_SIGNATURE
from secagg_spec.conformance.checks.basa_faults import BAD_FORM, ELSEWHERE, FEW, HELD, NOT_NOW, OUTSIDER, UNFIT
from secagg_spec.conformance.checks.base import BAD_CIPHERTEXT, BAD_PARAM, LENGTH, NONCANONICAL
from secagg_spec.conformance.checks.messages import ANOTHER_TYPE
from secagg_spec.conformance.checks.scripts import STRANGER
from secagg_spec.conformance.sessions import basa_fixed
from secagg_spec.conformance.sessions.basa_acts import Act, Director, Part, budget, part_of
from secagg_spec.conformance.sessions.basa_cast import BOX
from secagg_spec.conformance.sessions.deals import called
from secagg_spec.conformance.sessions.scenes import call
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.vectors.base import VectorFile, begun, drawn_bytes
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.protocols.basa.messages import SKIPPED, PositionUpload
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import AUTHORITY, SERVER

_SHORT: Mapping[str, Any] = {**basa_fixed.NUMBERS, "N": 6, "d": 2, "K": 3}
"""Three updates in four positions."""
_VOID: Mapping[str, Any] = {**basa_fixed.VOID, "N": 5}
_OWN = 4
"""The user whose steps are refused. Two accepted positions and a skipped one precede its own."""
_SERVER: tuple[int | str, ...] = ("server",)
_AUTHORITY: tuple[int | str, ...] = ("authority",)


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("basa_scripts", "BASA: users, the server and the authority, step by step.")
    _whole(made)
    _messages(made)
    _authority_assignments(made)
    _authority_settlements(made)
    _authority_ends(made)
    _user_offers(made)
    _user_keys(made)
    _budgets(made)
    _server_offers(made)
    _server_uploads(made)
    _server_ends(made)
    _requests(made)
    return made


# ------------------------------------------------------------------------------------------------------------- sessions


def _first(id: str) -> int:
    return int.from_bytes(drawn_bytes(id, "round", 3), "little") + 9


def _session(id: str, numbers: Mapping[str, Any], acts: Callable[[int], list[Act]]) -> Director:
    """Return a session whose bytes are derived from an id."""
    first = _first(id)
    return basa_fixed.played(lambda name, count: drawn_bytes(id, name, count), numbers, first, acts(first))


def _short(first: int) -> list[Act]:
    """Return an epoch with every kind of timeout, which its last position fills."""
    return [
        Act("open"),
        Act("upload", 0, first),
        Act("free", 1, first),
        Act("late", 2, first),
        Act("upload", 3, first - 1),
        Act("upload", _OWN, first - 2),
        Act("close"),
    ]


def _full(first: int) -> list[Act]:
    """Return an epoch that is full before its last position is used."""
    return [Act("open"), *(Act("upload", user, first) for user in (1, 5, 0)), Act("close")]


def _denied(first: int) -> list[Act]:
    """Return an epoch in which the authority does not accept an upload that the server took."""
    return [
        Act("open"),
        Act("upload", 0, first),
        Act("denied", 2, first),
        Act("upload", 3, first),
        Act("upload", 5, first - 1),
        Act("close"),
    ]


def _ending(first: int) -> list[Act]:
    """Return two epochs: one that is given up, and one that ends with a sum."""
    return [
        Act("open"),
        Act("upload", 0, first),
        Act("abandon"),
        Act("open"),
        *(Act("upload", user, first + 1) for user in (1, 2, 3)),
        Act("close"),
    ]


def _script(
    made: VectorFile,
    id: str,
    part: Part,
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
    *,
    refused: Mapping[int, Refusal] | None = None,
    operations: Sequence[Mapping[str, Any]] = (),
) -> None:
    made.script(
        id,
        part.deal.named(part.party),
        part.params(part.calls()),
        part.deal.rand(part.party),
        refused=refused or {},
        clauses=[*clauses, "ADP-20"],
        flags=flags,
        comment=comment,
        policy={},
        operations=operations,
    )


def _operations(part: Part) -> list[dict[str, Any]]:
    """Return the steps of a party in the form that vectors of whole sessions list."""
    return [
        {
            "actor": called(part.party).removeprefix("the "),
            "step": event.step.phase,
            "success": True,
            "sends": [encode(message).hex() for message in event.sent],
        }
        for event in part.events()
    ]


def _whole(made: VectorFile) -> None:
    for name, numbers, acts, users, what in (
        ("settle", basa_fixed.NUMBERS, basa_fixed.acts, (0, 2, 4, 5), "two epochs, with timeouts of all kinds"),
        ("void", _VOID, basa_fixed.void_acts, (0, 2), "three epochs, of which a timeout ends one"),
        ("denied", _SHORT, _denied, (), "an epoch with an upload that was not accepted"),
        ("ending", _SHORT, _ending, (), "an epoch that is given up, and one that is full early"),
    ):
        director = _session(f"basa-{name}", numbers, acts)
        for party in (SERVER, AUTHORITY, *users):
            part = part_of(director, party)
            flags, clauses = _seen(party, name)
            id = f"basa-{name}-{called(party).removeprefix('the ').replace(' ', '-')}"
            text = f"{what}: the steps of {called(party)}"
            _script(made, id, part, clauses, flags, text, operations=_operations(part))


def _seen(party: int, name: str) -> tuple[list[str], list[str]]:
    """Return the flags and clauses of a whole session."""
    if party == SERVER:
        more = ["Denied"] if name == "denied" else []
        return ["Named", "MasksLeft", "NextEpoch", *more], ["BAA-35", "BAA-40", "BAA-41", "BAA-45"]
    if party == AUTHORITY:
        return ["Epochs", "Named", "Released", "NextEpoch", "GivenAgain"], [
            *("BAA-07", "BAA-08", "BAA-13", "BAA-16", "BAA-17", "BAA-20", "BAA-21"),
        ]
    return ["Epochs"], ["BAA-04", "BAA-23", "BAA-26", "BAA-33", "BAA-34"]


# --------------------------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True)
class Fault:
    """A step that is refused, inserted before one of the right steps."""

    name: str
    at: int
    call: Call
    codes: frozenset[str]
    clause: str
    flag: str
    comment: str
    blamed: tuple[int | str, ...] | None = None


Cases = Callable[[Part], list[Fault]]


def _each(
    made: VectorFile,
    party: int,
    cases: Cases,
    acts: Callable[[int], list[Act]] = _short,
    numbers: Mapping[str, Any] = _SHORT,
) -> None:
    """Add a script for each fault, in a session with its own id, followed by the right step."""
    prefix = f"basa-{called(party).removeprefix('the ').split()[0]}"
    for name in [fault.name for fault in cases(part_of(_session("", numbers, acts), party))]:
        id = f"{prefix}-{name}"
        part = part_of(_session(id, numbers, acts), party)
        [fault] = [fault for fault in cases(part) if fault.name == name]
        right = part.calls()
        steps = (*right[: fault.at], fault.call, *right[fault.at : fault.at + 1])
        refused = {fault.at: Refusal(fault.codes, fault.blamed)}
        clauses = [fault.clause, "ERR-01", *(["ADP-21"] if fault.blamed else [])]
        _script(made, id, replace(part, steps=steps), clauses, [fault.flag], fault.comment, refused=refused)


def _step(phase: str, *messages: Message) -> Call:
    return call(phase, messages)


def _phase(part: Part, phase: str, position: int = 0) -> int:
    """Return the number of the first step before which the party is in a phase, at or after a position."""
    return part.when(lambda moment: moment.phase == phase and moment.position >= position)[0]


def _altered(part: Part, phase: str, number: int = 0, **changes: Any) -> tuple[int, Call]:
    """Return a step of a phase with some fields of its message changed."""
    at = part.taking(phase)[number]
    [message] = part.inbox(at)
    values = {name: value(message) if callable(value) else value for name, value in changes.items()}
    return at, _step(phase, replace(message, **values))


def _other(message: Message) -> bytes:
    return bytes([message.session[0] ^ 1]) + message.session[1:]


def _flip(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _messages(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        faults = []
        for phase in dict.fromkeys(event.step.phase for event in part.events() if event.received):
            at, moved = _altered(part, phase, session=_other)
            faults.append(Fault(f"{phase}-session", at, moved, ELSEWHERE, "MSG-03", "AnotherSession",
                                "a message of another session"))  # fmt: skip
            at, moved = _altered(part, phase, receiver=lambda message: message.sender)
            faults.append(Fault(f"{phase}-receiver", at, moved, ELSEWHERE, "MSG-03", "AnotherReceiver",
                                "a message for its own sender"))  # fmt: skip
        at, moved = _altered(part, phase, sender=2**31 - 1)
        faults.append(Fault("stranger", at, moved, STRANGER, "MSG-03", "Stranger", "a message from nobody"))
        step = exchanged(part.calls()[at], 0, part.calls()[at].inbox[0] + b"\0")
        faults.append(Fault("longer", at, step, ANOTHER_TYPE, "MSG-02", "NoMessage", "a message that goes on"))
        return faults

    for party in (SERVER, AUTHORITY, _OWN):
        _each(made, party, cases)


# -------------------------------------------------------------------------------------------------------- the authority


def _authority_assignments(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        cast, epoch = part.cast, part.deal.round
        filling, assigned, keyed = (_phase(part, phase, 1) for phase in ("filling", "assigned", "keyed"))

        def to(user: int, position: int) -> Call:
            return _step("assign", cast.assignment(user, epoch, position))

        def wish(user: int, position: int) -> Call:
            return _step("issue", cast.key_request(user, epoch, position))

        return [
            Fault("open-again", filling, Call("open"), NOT_NOW, "BAA-07", "Turns", "a second epoch is opened"),
            Fault("next-position", filling, to(5, 2), NOT_NOW, "BAA-09", "Assignment", "a position is passed over"),
            Fault("keyed-position", keyed, to(5, 1), NOT_NOW, "BAA-09", "Assignment",
                  "a position whose key was given out is assigned to another user"),
            Fault("holder", filling, to(0, 1), HELD, "BAA-10", "Occupant", "a user that has a position gets another"),
            Fault("outsider", filling, to(6, 1), OUTSIDER, "BAA-10", "Occupant", "a user that is not on the roster",
                  _SERVER),
            Fault("assign-cut", filling, exchanged(to(5, 1), 0, to(5, 1).inbox[0][:-1]), ANOTHER_TYPE, "MSG-02",
                  "NoMessage", "an assignment without its last byte, which is zero"),
            Fault("key-another", assigned, wish(5, 1), NOT_NOW, "BAA-11", "KeyGiven",
                  "a user that is not assigned the position asks for its key"),
            Fault("key-again", keyed, wish(part.moments[keyed].user, 1), HELD, "BAA-12", "KeyGiven",
                  "a key is asked for twice"),
        ]  # fmt: skip

    def full(part: Part) -> list[Fault]:
        at = len(part.events()) - 1
        step = _step("assign", part.cast.assignment(2, part.deal.round, 3))
        return [Fault("full-position", at, step, NOT_NOW, "BAA-09", "Assignment",
                      "a spare position is assigned when K are accepted")]  # fmt: skip

    _each(made, AUTHORITY, cases)
    _each(made, AUTHORITY, full, _full)


def _authority_settlements(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        cast, epoch = part.cast, part.deal.round
        assigned, keyed = _phase(part, "assigned", 1), _phase(part, "keyed", 1)
        settled = _phase(part, "filling", 2)
        moment = part.moments[keyed]
        right = part.made(moment.user, moment)
        message = cast.settled(right)
        early = part.made(part.moments[assigned].user, part.moments[assigned])
        less = cast.hashes(right.boxes)[32:]
        signed = cast.signature(moment.user, epoch, (1, right.stamp, right.weight), less)
        return [
            Fault("settle-unkeyed", assigned, _step("settle", cast.settled(early)), NOT_NOW, "BAA-14", "Settled",
                  "an upload is accepted before the key was given"),
            Fault("settle-unsigned", keyed, _step("settle", replace(message, hashes=_flip(message.hashes))),
                  BAD_SIGNATURE, "BAA-14", "Settled", "a hash that the user did not sign", _SERVER),
            Fault("settle-short", keyed, _step("settle", replace(message, hashes=less, signature=signed)), BAD_FORM,
                  "BAA-14", "Lengths", "a hash is missing, though the user signed the others", _SERVER),
            Fault("settle-again", settled, _step("settle", cast.expired(epoch, 0)), NOT_NOW, "BAA-15", "SettledTwice",
                  "an accepted position is said to have timed out"),
        ]  # fmt: skip

    _each(made, AUTHORITY, cases)


def _authority_ends(made: VectorFile) -> None:
    def last(first: int) -> list[Act]:
        """Return an epoch whose last position is open when T + 2 updates are accepted."""
        uploads = [Act("upload", user, first) for user in (0, 1, 2)]
        return [Act("open"), *uploads, Act("skip", 3, first), Act("upload", 5, first), Act("close")]

    def few(first: int) -> list[Act]:
        """Return an epoch that has too few updates when no position is left."""
        skips = [Act("skip", user, first) for user in (2, 3)]
        return [Act("open"), Act("upload", 0, first), *skips, Act("upload", 1, first), Act("abandon")]

    def closing(name: str, phase: str, codes: frozenset[str], clause: str, comment: str) -> Cases:
        def cases(part: Part) -> list[Fault]:
            P = part.cast.positions
            at = part.when(lambda m: m.phase == phase and m.position >= (P if name == "close-few" else P - 1))[0]
            step = _step("close", part.cast.close_request(part.deal.round))
            return [Fault(name, at, step, codes, clause, "ClosedEarly", comment)]

        return cases

    keyed = closing("close-keyed", "keyed", NOT_NOW, "BAA-18", "the last position is keyed, and T + 2 are accepted")
    _each(made, AUTHORITY, keyed, last, {**basa_fixed.NUMBERS, "d": 2})
    _each(made, AUTHORITY, closing("close-few", "filling", FEW, "BAA-19", "T + 1 accepted, and no position left"), few)
    _each(made, AUTHORITY, closing("close-early", "filling", FEW, "BAA-19", "two of three updates are accepted"))

    def ended(part: Part) -> list[Fault]:
        at = part.when(lambda m: m.phase == "closed" and m.epoch == part.deal.round)[0]
        cast, epoch = part.cast, part.deal.round
        return [
            Fault("ended-assign", at, _step("assign", cast.assignment(1, epoch, 1)), NOT_NOW, "BAA-22", "NextEpoch",
                  "a position of an epoch that was given up is assigned"),
            Fault("ended-close", at, _step("close", cast.close_request(epoch)), NOT_NOW, "BAA-22", "Turns",
                  "an epoch that was given up is closed"),
        ]  # fmt: skip

    _each(made, AUTHORITY, ended, _ending)


# --------------------------------------------------------------------------------------------------------------- a user


def _user_offers(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        [fetch], [upload] = part.taking("fetch"), part.taking("upload")
        [offer], right = part.inbox(fetch), part.calls()
        later = part.cast.epoch_keys(offer.round + 1, offer.keys)
        old = {"round": offer.round + 1, "signature": later.signature}
        return [
            Fault("fetch-unasked", fetch - 1, right[fetch], NOT_NOW, "BAA-27", "Turns", "an offer before a request"),
            Fault("upload-unfetched", fetch, right[upload], NOT_NOW, "BAA-27", "Turns", "a key before an offer"),
            Fault("upload-again", upload + 1, right[upload], NOT_NOW, "BAA-27", "UploadTwice",
                  "the same key comes again"),
            Fault("offer-unsigned", fetch, _altered(part, "fetch", keys=_flip(offer.keys))[1], BAD_SIGNATURE, "BAA-29",
                  "EpochKeys", "a key of the epoch that the authority did not sign", _SERVER),
            Fault("offer-late", fetch, _altered(part, "fetch", **old)[1], UNFIT, "BAA-28", "Stamps",
                  "an offer of an epoch in which the update is older than tau_max", _SERVER),
            Fault("offer-box", fetch, _altered(part, "fetch", boxes=offer.boxes + b"\0")[1], BAD_FORM, "BAA-51",
                  "Lengths", "a byte behind the last box", _SERVER),
        ]  # fmt: skip

    _each(made, _OWN, cases)


def _user_keys(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        [fetch], [upload] = part.taking("fetch"), part.taking("upload")
        [offer], [key] = part.inbox(fetch), part.inbox(upload)
        swapped = key.hashes[32:] + key.hashes[:32]
        less = {"positions": key.positions[:-1], "senders": key.senders[:-1], "hashes": key.hashes[:-32]}
        other = part.cast.pair_key(offer.round, 0)

        def altered(**changes: Any) -> Call:
            return _altered(part, "upload", **changes)[1]

        return [
            Fault("key-position", upload, altered(position=2), UNFIT, "BAA-30", "PositionKey",
                  "the key of another position", _AUTHORITY),
            Fault("key-other", upload, altered(key=other), BAD_FORM, "BAA-30", "PositionKey",
                  "a key that does not belong to the public key", _AUTHORITY),
            Fault("box-hash", upload, altered(hashes=swapped), BAD_SIGNATURE, "BAA-31", "BoxHash",
                  "the hashes of two boxes are exchanged", _SERVER),
            Fault("box-number", upload, altered(**less), BAD_FORM, "BAA-31", "BoxHash",
                  "a box more than the authority names", _SERVER),
            Fault("box-sender", upload, altered(senders=np.array([0, 5], np.uint64)), BAD_CIPHERTEXT, "BAA-32",
                  "ClosedBox", "a box that another user sent than the one that is named", (5,)),
        ]  # fmt: skip

    _each(made, _OWN, cases)
    _spoilt_box(made)
    _spent_epoch(made)


def _spent_epoch(made: VectorFile) -> None:
    """Add a script in which an epoch's offer comes again when the user has another update."""
    id = "basa-user-offer-spent"
    part = part_of(_session(id, _SHORT, _short), _OWN)
    right = part.calls()
    steps = (*right, right[0], right[1])
    refused = {len(steps) - 1: Refusal(HELD)}
    comment = "the offer of an epoch in which the user uploaded comes again"
    _script(made, id, replace(part, steps=steps), ["BAA-52", "ERR-01"], ["UploadTwice"], comment, refused=refused)


def _spoilt_box(made: VectorFile) -> None:
    """Add a script in which a box does not open although its hash is right. Then the user gets a good offer."""
    id = "basa-user-box-closed"
    part = part_of(_session(id, _SHORT, _short), _OWN)
    [fetch], [upload] = part.taking("fetch"), part.taking("upload")
    [offer], [key] = part.inbox(fetch), part.inbox(upload)
    boxes = offer.boxes[:BOX] + _flip(offer.boxes[BOX:])
    named = replace(key, hashes=part.cast.hashes(boxes))
    right = part.calls()
    bad = [right[0], _step("fetch", replace(offer, boxes=boxes)), _step("upload", named)]
    refused = {2: Refusal(BAD_CIPHERTEXT, (3,))}
    comment = "a box that has its hash and does not open, and a good offer after it"
    _script(made, id, replace(part, steps=(*bad, *right)), ["BAA-32", "ERR-01", "ADP-21"], ["ClosedBox"], comment,
            refused=refused)  # fmt: skip


def _budgets(made: VectorFile) -> None:
    most, R = budget(_SHORT), int(_SHORT["R"])
    for name, value in (("above", most + 1), ("below", -most - 1)):
        id = f"basa-user-budget-{name}"
        part = part_of(_session(id, _SHORT, _short), _OWN)
        setup = dict(part.deal.setups[_OWN])
        setup["updates"] = [pack(np.array([0, value % R], np.uint64)), *setup["updates"][1:]]
        wrong = replace(part.deal, setups={**part.deal.setups, _OWN: setup})
        right = part.calls()
        steps = (*right, Call("request"))
        comment = f"an element that decodes to {value}, and {most} is the most"
        refused = {len(right) - 1: Refusal(frozenset({"out_of_range"}))}
        _script(made, id, replace(part, deal=wrong, steps=steps), ["BAA-25", "ERR-01"], ["Budget"], comment,
                refused=refused)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- the server


def _server_offers(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        cast, epoch = part.cast, part.deal.round
        filling, serving = _phase(part, "filling", 1), _phase(part, "serving", 1)
        [keys] = part.inbox(0)

        def asks(user: int, stamp: int = epoch) -> Call:
            return _step("offer", cast.request(user, stamp))

        again = cast.epoch_keys(epoch - 1, keys.keys)
        return [
            Fault("keys-unsigned", 0, _step("open", replace(keys, keys=_flip(keys.keys))), BAD_SIGNATURE, "BAA-29",
                  "EpochKeys", "keys that the authority did not sign", _AUTHORITY),
            Fault("keys-short", 0, _step("open", cast.epoch_keys(epoch, keys.keys[32:])), BAD_FORM, "BAA-51", "Lengths",
                  "a key of the epoch is missing", _AUTHORITY),
            Fault("keys-old", 0, _step("open", again), HELD, "BAA-50", "EpochKeys",
                  "keys of an epoch that was known before", _AUTHORITY),
            Fault("offer-early", 0, asks(0), NOT_NOW, "BAA-36", "Turns", "a request when no epoch is open"),
            Fault("offer-serving", serving, asks(5), NOT_NOW, "BAA-36", "Turns", "a request while a user is served"),
            Fault("offer-again", filling, asks(0), NOT_NOW, "BAA-36", "Occupant",
                  "a request of a user whose update was accepted"),
            Fault("offer-future", filling, asks(5, epoch + 1), UNFIT, "BAA-49", "Stamps",
                  "a request with a stamp after the epoch", (5,)),
            Fault("offer-stale", filling, asks(5, epoch - 3), UNFIT, "BAA-49", "Stamps",
                  "a request with a staleness above tau_max", (5,)),
        ]  # fmt: skip

    _each(made, SERVER, cases)


def _server_uploads(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        cast = part.cast
        take = part.taking("take")[1]
        moment, [right] = part.moments[take], part.inbox(take)
        user = right.sender
        more = cast.signed(right, boxes=right.boxes + bytes(BOX))
        [(_, late)] = part.late
        settling = part.taking("take")[0] + 1
        settled = part.cast.state(part.deal.round, moment.position, SKIPPED)
        return [
            Fault("upload-another", take, _step("take", part.made(5, moment)), NOT_NOW, "BAA-37", "LateUpload",
                  "an upload of a user that is not served"),
            Fault("upload-position", take, _step("take", part.made(user, replace(moment, position=1))), NOT_NOW,
                  "BAA-37", "LateUpload", "an upload for another position"),
            Fault("upload-late", _after_expiry(part), _step("take", late), NOT_NOW, "BAA-37", "LateUpload",
                  "an upload that comes when its offer has expired"),
            Fault("upload-weight", take, _step("take", cast.signed(right, weight=right.weight + 1)), UNFIT, "BAA-38",
                  "Weights", "a weight that no draw gives", (user,)),
            Fault("upload-stamp", take, _step("take", cast.signed(right, stamp=part.deal.round + 1, weight=4)), UNFIT,
                  "BAA-38", "Stamps", "a stamp after the epoch", (user,)),
            Fault("upload-boxes", take, _step("take", more), BAD_FORM, "BAA-39", "Lengths", "a box more", (user,)),
            Fault("upload-unsigned", take, _step("take", replace(right, boxes=_flip(right.boxes))), BAD_SIGNATURE,
                  "BAA-39", "Settled", "a box that the user did not sign", (user,)),
            Fault("upload-vector", take, _step("take", replace(right, masked=right.masked[:-1])), BAD_FORM, "BAA-51",
                  "Lengths", "a masked update of d - 1 elements", (user,)),
            Fault("expire-settling", settling, Call("expire"), NOT_NOW, "BAA-36", "Turns",
                  "an offer expires whose upload was taken"),
            Fault("settle-cut", settling, exchanged(part.calls()[settling], 0, part.calls()[settling].inbox[0][:-1]),
                  ANOTHER_TYPE, "MSG-02", "NoMessage", "a state without its last byte, which is zero"),
            Fault("settle-early", take, _step("settle", settled), NOT_NOW, "BAA-40", "Turns",
                  "a position is settled before its upload came"),
        ]  # fmt: skip

    _each(made, SERVER, cases)


def _after_expiry(part: Part) -> int:
    """Return the number of the step after the late upload's position was skipped."""
    return next(at for at, moment in enumerate(part.moments) if moment.skipped and moment.phase == "filling")


def _server_ends(made: VectorFile) -> None:
    def cases(part: Part) -> list[Fault]:
        recover = part.taking("recover")[0]
        [message] = part.inbox(recover)
        return [
            Fault("recover-open", recover - 1, part.calls()[recover], NOT_NOW, "BAA-45", "Turns",
                  "keys before the epoch was closed"),
            Fault("recover-again", recover + 1, part.calls()[recover], NOT_NOW, "BAA-45", "NextEpoch",
                  "the keys of an epoch that was recovered come again"),
            Fault("recover-short", recover, _step("recover", replace(message, keys=message.keys[32:])), BAD_FORM,
                  "BAA-51", "Lengths", "a released key is missing", _AUTHORITY),
            Fault("abandon-idle", recover + 1, Call("abandon"), NOT_NOW, "BAA-45", "Turns",
                  "an epoch is given up that has ended"),
        ]  # fmt: skip

    _each(made, SERVER, cases)
    _bad_box(made)


def _bad_box(made: VectorFile) -> None:
    """Add a script in which the self box of an accepted upload does not open."""
    id = "basa-server-box-closed"
    part = part_of(_session(id, _SHORT, _full), SERVER)
    right = part.calls()
    takes = part.taking("take")
    [upload] = part.inbox(takes[1])
    assert isinstance(upload, PositionUpload)
    own = part.cast.box(upload, upload.position)
    wrong = part.cast.with_box(upload, upload.position, _flip(own))
    steps = [*right[: takes[1]], _step("take", wrong), *right[takes[1] + 1 :], Call("abandon")]
    refused = {len(steps) - 2: Refusal(BAD_CIPHERTEXT, (upload.sender,))}
    comment = "a self box that does not open: no sum, and the epoch is given up"
    flags = ["ClosedBox"]
    _script(made, id, replace(part, steps=tuple(steps)), ["BAA-42", "BAA-45", "ERR-01", "ADP-21"], flags, comment,
            refused=refused)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- whole requests


def _requests(made: VectorFile) -> None:
    for party in (_OWN, SERVER, AUTHORITY):
        who = called(party).removeprefix("the ").split()[0]
        for name, changed, clause, comment in (
            ("small", {"K": 2, "S": 2}, "BAA-01", "a buffer of T + 1 updates"),
            ("vanishing", {"c_g": "2"}, "BAA-02", "c_g is 2, and an update that is 2 epochs late weighs two thirds"),
            ("wrapping", {"c_g": str((int(_SHORT["R"]) - 1) // 6 + 1)}, "BAA-02", "three updates of one unit wrap"),
        ):
            _refused_request(made, f"basa-{who}-{name}", party, changed, BAD_PARAM, clause, "Numbers", comment)
    _refused_updates(made)


def _refused_updates(made: VectorFile) -> None:
    large = pack(np.array([int(_SHORT["R"])], np.uint64))
    for name, cut, codes, comment in (
        ("short", "", LENGTH | BAD_PARAM, "an update of d - 1 elements"),
        ("large", large, NONCANONICAL | BAD_PARAM, "an update with a number that is not below R"),
    ):
        id = f"basa-user-update-{name}"
        [first, *others] = part_of(_session(id, _SHORT, _short), _OWN).deal.setups[_OWN]["updates"]
        changed = {"updates": [first[:-8] + cut, *others]}
        _refused_request(made, id, _OWN, changed, codes, "BAA-24", "Updates", comment)


def _refused_request(
    made: VectorFile,
    id: str,
    party: int,
    changed: Mapping[str, Any],
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    part = part_of(_session(id, _SHORT, _short), party)
    params, rand = {**part.params(part.calls()[:1]), **changed}, part.deal.rand(party)
    op = part.deal.named(party)
    made.invalid(id, op, params, rand, codes=codes, clauses=[clause], flags=[flag], comment=comment)
