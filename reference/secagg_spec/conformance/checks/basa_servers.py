"""Checks of the server of BASA, step by step: what it offers, accepts, adds and recovers (spec/basa.md, section 4)."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.conformance.cases import basa_sessions, strategies
from secagg_spec.conformance.cases.basa_parties import PARTS, SERVED
from secagg_spec.conformance.cases.requests import one_of, too_large
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.basa_faults import THE_AUTHORITY, arriving, explicit, replaced, when
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.faults import REFUSALS
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.checks.scripts import Fault
from secagg_spec.conformance.checks.streams import flipped
from secagg_spec.conformance.sessions.basa_acts import Director, Moment, Part, part_of, positions
from secagg_spec.conformance.sessions.basa_cast import Cast
from secagg_spec.conformance.sessions.basa_stage import PositionStage
from secagg_spec.conformance.sessions.basecagg_stage import staleness_of
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.basa.messages import PositionUpload
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role

_party = REFUSALS[SERVED]
playing.right_steps(_party, (40, 24, 12), "BAA-35", "BAA-36", "BAA-40", "BAA-41", "BAA-45")


def _step(phase: str, *messages: Message) -> Call:
    return Call.of(phase, messages)


def _offering(part: Part, moment: Moment) -> bool:
    """Return whether the server would offer a position to a fresh user."""
    room = moment.position < part.cast.positions and len(moment.accepted) < part.inputs.numbers["K"]
    return moment.phase == "filling" and room


def _fresh(part: Part, moment: Moment) -> list[int]:
    """Return users that had no position of the epoch and whose keys the kit holds."""
    return [user for user in part.signers() if user not in moment.holders | {moment.user}]


@_party.refuses("open-again", "BAA-50")
def _open_again(draw: Any, part: Part) -> Fault:
    """The keys of a new epoch are refused while the server has an epoch."""
    at = draw(among(part.when(lambda moment: moment.phase != "idle")))
    keys = part.cast.epoch_keys(part.moments[at].epoch + 1, part.cast.published(part.moments[at].epoch))
    return Fault(at, _step("open", keys), reject.NOT_NOW, f"the server is {part.moments[at].phase}")


@_party.refuses("old-epoch", "BAA-50", "ADP-21")
def _old_epoch(draw: Any, part: Part) -> Fault:
    """The keys of an epoch that is not later than the last known one are refused, and the authority is blamed."""
    at = draw(among(part.when(lambda moment: moment.phase == "idle")))
    known = part.moments[at].epoch
    epoch = draw(among([epoch for epoch in (known, known - 1, 0) if epoch >= 0]))
    keys = part.cast.epoch_keys(epoch, part.cast.published(part.inputs.round))
    return Fault(at, _step("open", keys), reject.AGAIN, f"epoch {epoch} comes after {known}", THE_AUTHORITY)


@_party.refuses("unsigned-keys", "BAA-29", "ADP-21")
def _unsigned_keys(draw: Any, part: Part) -> Fault:
    """Keys that the authority did not sign for their epoch are refused, and the authority is blamed."""
    at, message = arriving(draw, part, "open")
    other = part.cast.epoch_keys(message.round, message.keys, signed=message.round ^ 1)
    wrong: list[dict[str, Any]] = [
        {"signature": flipped(draw, message.signature)},
        {"keys": flipped(draw, message.keys)},
        {"signature": other.signature},
    ]
    step = replaced(part, at, **one_of(draw, wrong))
    return Fault(at, step, reject.BAD_SIGNATURE, "the keys are not signed for the epoch", THE_AUTHORITY)


@_party.refuses("keys-form", "BAA-51", "ADP-21")
def _keys_form(draw: Any, part: Part) -> Fault:
    """Keys and signatures of the wrong length are refused, even if they are signed."""
    at, message = arriving(draw, part, "open")
    shown = draw(among((message.keys[32:], message.keys + message.keys[:32], message.keys[1:])))
    step = _step("open", part.cast.epoch_keys(message.round, shown))
    return Fault(at, step, reject.BAD_FORM, "a key is missing, or more", THE_AUTHORITY)


@_party.refuses("offer-out-of-turn", "BAA-36")
def _offer_out_of_turn(draw: Any, part: Part) -> Fault:
    """A position is offered only within an epoch, and to one user at a time."""
    at, moment = when(draw, part, lambda moment: moment.phase != "filling")
    user = draw(among(_fresh(part, moment) or part.signers()))
    step = _step("offer", part.cast.request(user, max(moment.epoch, 0)))
    return Fault(at, step, reject.NOT_NOW, f"the server is {moment.phase}")


@_party.refuses("served-before", "BAA-36")
def _served_before(draw: Any, part: Part) -> Fault:
    """A user whose update was accepted or whose position was skipped in the epoch is offered no other position."""
    at, moment = when(draw, part, lambda m: _offering(part, m) and bool(m.holders))
    user = draw(among(sorted(moment.holders)))
    step = _step("offer", part.cast.request(user, moment.epoch))
    return Fault(at, step, reject.NOT_NOW, f"user {user} had a position of the epoch")


@_party.refuses("no-room", "BAA-36")
def _no_room(draw: Any, part: Part) -> Fault:
    """No position is offered once K updates are accepted or no position is left."""
    at, moment = when(draw, part, lambda m: m.phase == "filling" and not _offering(part, m) and bool(_fresh(part, m)))
    user = draw(among(_fresh(part, moment)))
    step = _step("offer", part.cast.request(user, moment.epoch))
    return Fault(at, step, reject.NOT_NOW, "the buffer is full, or no position is left")


@_party.refuses("stamp", "BAA-49", "ADP-21")
def _stamp(draw: Any, part: Part) -> Fault:
    """A request with a stamp after the epoch or a staleness above tau_max is refused, and its sender is blamed."""
    at, moment = when(draw, part, lambda m: _offering(part, m) and bool(_fresh(part, m)))
    most = part.inputs.numbers["tau_max"]
    user = draw(among(_fresh(part, moment)))
    stamp = draw(among([s for s in (moment.epoch + 1, moment.epoch - most - 1) if 0 <= s < 2**32]))
    step = _step("offer", part.cast.request(user, stamp))
    why = f"the stamp is {stamp}, the epoch {moment.epoch}, and tau_max {most}"
    return Fault(at, step, reject.UNFIT, why, frozenset({user}))


def _serving(draw: Any, part: Part) -> tuple[int, Moment, PositionUpload]:
    """Draw a moment at which a user is being served, and a right upload by that user."""
    at, moment = when(draw, part, lambda moment: moment.phase == "serving")
    return at, moment, part.made(moment.user, moment)


@_party.refuses("another-user", "BAA-37")
def _another_user(draw: Any, part: Part) -> Fault:
    """An upload from a user other than the one being served is refused."""
    at, moment, _ = _serving(draw, part)
    others = [user for user in part.signers() if user != moment.user]
    user = draw(among(others))
    step = _step("take", part.made(user, moment))
    return Fault(at, step, reject.NOT_NOW, f"user {moment.user} is served, and not {user}")


@_party.refuses("another-position", "BAA-37")
def _another_position(draw: Any, part: Part) -> Fault:
    """An upload for a position other than the open one is refused."""
    at, moment, _ = _serving(draw, part)
    position = draw(among([p for p in range(part.cast.positions) if p != moment.position]))
    step = _step("take", part.made(moment.user, replace(moment, position=position)))
    return Fault(at, step, reject.NOT_NOW | reject.BAD_FORM, f"position {moment.position} is open, and not {position}")


@_party.refuses("upload-out-of-turn", "BAA-37")
def _upload_out_of_turn(draw: Any, part: Part) -> Fault:
    """An upload is refused when no user is being served: before the offer, after the upload, or a second time."""
    at, moment = when(draw, part, lambda m: m.phase not in ("serving", "idle"))
    known = part.uploads(moment)
    user = moment.user if moment.user >= 0 else draw(among(part.signers()))
    place = replace(moment, position=min(moment.position, part.cast.positions - 1))
    upload = one_of(draw, [part.made(user, place), *known])
    return Fault(at, _step("take", upload), reject.NOT_NOW, f"the server is {moment.phase}")


@_party.refuses("late-upload", "BAA-37", "BAA-22", session=basa_sessions.belated)
def _late_upload(draw: Any, part: Part) -> Fault:
    """An upload that arrives after its offer expired is refused, in the same epoch and in the next one."""
    only_if(part.late)
    first, upload = one_of(draw, part.late)
    later = range(first + 1, len(part.moments))
    filling = [at for at in later if (part.moments[at].phase, part.moments[at].epoch) == ("filling", upload.round)]
    at = draw(among(filling or later) | st.sampled_from(later))
    return Fault(at, _step("take", upload), reject.NOT_NOW, f"the offer of position {upload.position} expired")


@_party.refuses("weight", "BAA-38", "ADP-21")
def _weight(draw: Any, part: Part) -> Fault:
    """An upload is refused if no draw gives its weight for its staleness, even if it is signed."""
    at, moment, upload = _serving(draw, part)
    numbers = part.inputs.numbers
    tau = draw(st.integers(0, min(numbers["tau_max"], moment.epoch)))
    allowed = admissible_weights(staleness_of(numbers), int(numbers["c_g"]), tau)
    wrong = [w for w in (allowed[-1] + 1, allowed[0] - 1, int(numbers["c_g"]), 0, 1) if w >= 0 and w not in allowed]
    weight = draw(among(wrong))
    step = _step("take", part.cast.signed(upload, stamp=moment.epoch - tau, weight=weight))
    why = f"the weight is {weight}, and may be {' or '.join(map(str, allowed))}"
    return Fault(at, step, reject.UNFIT, why, frozenset({moment.user}))


@_party.refuses("upload-stamp", "BAA-38", "ADP-21")
def _upload_stamp(draw: Any, part: Part) -> Fault:
    """An upload with a stamp after the epoch or with a staleness above tau_max is refused, even if it is signed."""
    at, moment, upload = _serving(draw, part)
    most = part.inputs.numbers["tau_max"]
    stamp = draw(among([s for s in (moment.epoch + 1, moment.epoch - most - 1) if 0 <= s < 2**32]))
    tau = max(moment.epoch - stamp, 0)
    weight = admissible_weights(staleness_of(part.inputs.numbers), int(part.inputs.numbers["c_g"]), tau)[-1]
    step = _step("take", part.cast.signed(upload, stamp=stamp, weight=weight))
    why = f"the stamp is {stamp}, the epoch {moment.epoch}, and tau_max {most}"
    return Fault(at, step, reject.UNFIT, why, frozenset({moment.user}))


@_party.refuses("boxes", "BAA-39", "ADP-21")
def _boxes(draw: Any, part: Part) -> Fault:
    """An upload with more or fewer boxes than its position needs is refused, even if it is signed."""
    at, moment, upload = _serving(draw, part)
    more = upload.boxes + bytes(80)
    boxes = draw(among([more, *([upload.boxes[80:], upload.boxes[:-80]] if upload.boxes else [])]))
    step = _step("take", part.cast.signed(upload, boxes=boxes))
    why = f"there are {len(boxes) // 80} boxes for {len(upload.boxes) // 80}"
    return Fault(at, step, reject.BAD_FORM, why, frozenset({moment.user}))


@_party.refuses("unsigned", "BAA-39", "ADP-21")
def _unsigned(draw: Any, part: Part) -> Fault:
    """An upload is refused unless its sender signed it with its stamp and all of its boxes."""
    at, moment, upload = _serving(draw, part)
    others = [user for user in part.signers() if user != moment.user]
    foreign = part.made(others[0], moment).signature
    wrong: list[dict[str, Any]] = [{"signature": flipped(draw, upload.signature)}, {"signature": foreign}]
    wrong += [{"boxes": flipped(draw, upload.boxes)}] if upload.boxes else []
    tau = draw(st.integers(0, min(part.inputs.numbers["tau_max"], moment.epoch)))
    weights = admissible_weights(staleness_of(part.inputs.numbers), int(part.inputs.numbers["c_g"]), tau)
    wrong += [{"stamp": moment.epoch - tau, "weight": weights[0]}] if tau else []
    step = _step("take", replace(upload, **one_of(draw, wrong)))
    return Fault(at, step, reject.BAD_SIGNATURE, "the upload is not signed by its sender", frozenset({moment.user}))


@_party.refuses("upload-form", "BAA-51", "MOD-06", "MOD-07", "ADP-21")
def _upload_form(draw: Any, part: Part) -> Fault:
    """An upload is refused if its vector is not d elements or its boxes are not a whole number of boxes."""
    at, moment, upload = _serving(draw, part)
    masked, R = upload.masked, int(part.inputs.numbers["R"])
    wrong: list[dict[str, Any]] = [{"masked": masked[:-1]}, {"masked": np.append(masked, masked[:1])}]
    wrong += [{"masked": too_large(draw, masked, R)}] if R < 2**32 else []
    wrong += [{"boxes": upload.boxes + b"\0"}]
    step = _step("take", replace(upload, **one_of(draw, wrong)))
    return Fault(at, step, reject.BAD_FORM, "the upload is none of the text", frozenset({moment.user}))


@_party.refuses("expire-out-of-turn", "BAA-36")
def _expire(draw: Any, part: Part) -> Fault:
    """An offer cannot expire when no user is being served."""
    at = draw(among(part.when(lambda moment: moment.phase != "serving")))
    return Fault(at, Call("expire"), reject.NOT_NOW, f"the server is {part.moments[at].phase}")


@_party.refuses("settle-out-of-turn", "BAA-40")
def _settle_out_of_turn(draw: Any, part: Part) -> Fault:
    """The authority's outcome is refused unless a position is waiting to be settled."""
    at, moment = when(draw, part, lambda moment: moment.phase not in ("settling", "idle"))
    state = part.cast.state(moment.epoch, min(moment.position, part.cast.positions - 1), draw(st.integers(0, 2)))
    return Fault(at, _step("settle", state), reject.NOT_NOW, f"the server is {moment.phase}")


@_party.refuses("outcome", "BAA-51", "ADP-21")
def _outcome(draw: Any, part: Part) -> Fault:
    """An outcome that the profile lacks, or one that accepts nothing, is refused, and the authority is blamed."""
    at = draw(among(part.taking("settle")))
    other = 3 if part.inputs.numbers["timeouts"] == "settle" else 2
    wrong = [4, 65535, other] + ([1] if part.events()[at - 1].step.phase == "expire" else [])
    state = draw(among(wrong))
    return Fault(at, replaced(part, at, state=state), reject.BAD_FORM, f"the state is {state}", THE_AUTHORITY)


@check(f"{SERVED}/not-accepted", "BAA-35", "BAA-40", applies=explicit(SERVED), examples=12)
def not_accepted(draw: Any, caller: Caller) -> None:
    """An upload that the server took but the authority did not accept is in no offer and in no sum."""
    playing.judge_script(caller, PARTS[SERVED](draw, session=basa_sessions.denied))


@_party.refuses("settle-another", "BAA-40")
def _settle_another(draw: Any, part: Part) -> Fault:
    """The outcome of a position other than the open one is refused."""
    at, message = arriving(draw, part, "settle")
    position = draw(among([p for p in range(part.cast.positions) if p != message.position]))
    why = f"position {position} is not open"
    return Fault(at, replaced(part, at, position=position), reject.NOT_NOW | reject.BAD_FORM, why)


@_party.refuses("end-out-of-turn", "BAA-45")
def _end_out_of_turn(draw: Any, part: Part) -> Fault:
    """An epoch is closed only while no position is open, recovered only once closed, and given up only if it exists."""
    at, moment = when(draw, part, lambda moment: moment.epoch >= part.inputs.round)
    steps = {
        "close": (Call("close"), "filling"),
        "recover": (_step("recover", part.cast.release(moment.epoch, [p for p, _ in moment.accepted])), "closing"),
    }
    wrong = [step for step, phase in steps.values() if phase != moment.phase]
    wrong += [Call("abandon")] if moment.phase == "idle" else []
    step = one_of(draw, wrong)
    return Fault(at, step, reject.NOT_NOW, f"the server is {moment.phase}, which does not allow {step.phase}")


@_party.refuses("release-form", "BAA-51", "BAA-30", "ADP-21")
def _release_form(draw: Any, part: Part) -> Fault:
    """Released keys are refused if they have the wrong length or do not match their public keys."""
    at, message = arriving(draw, part, "recover")
    keys = message.keys
    wrong = [keys + bytes(32), *([keys[32:], keys[1:], keys[32:] + keys[:32], b""] if keys else [])]
    step = replaced(part, at, keys=one_of(draw, wrong))
    return Fault(at, step, reject.BAD_FORM, "the keys are not one for each position", THE_AUTHORITY)


@_party.refuses("released-the-other", "BAA-30", "ADP-21", void=False)
def _released_the_other(draw: Any, part: Part) -> Fault:
    """A released key is refused if it is the pair key of an accepted position or the self key of another one."""
    at, message = arriving(draw, part, "recover")
    accepted = {position for position, _ in part.moments[at].accepted}
    wrong = draw(among(range(part.cast.positions)))
    keys = part.cast.release(message.round, accepted ^ {wrong}).keys
    why = f"the other key of position {wrong} came"
    return Fault(at, replaced(part, at, keys=keys), reject.BAD_FORM, why, THE_AUTHORITY)


@check(f"{SERVED}/unopened", "BAA-42", "BAA-45", "ADP-21", applies=explicit(SERVED), examples=16)
def unopened(draw: Any, caller: Caller) -> None:
    """If a box to a released key does not open, there is no sum, its sender is blamed, and the epoch is given up."""
    director = _spoilt(draw)
    part = part_of(director, SERVER)
    moment, epoch = part.moments[-1], part.moments[-1].epoch
    release = part.cast.release(epoch, [position for position, _ in moment.accepted])
    steps = [*part.calls(), Call("close"), Call("abandon")]
    blamed = frozenset(user for _, user in moment.accepted if user in director.spoilt)
    fault = Fault(len(steps) - 1, _step("recover", release), reject.BAD_CIPHERTEXT, "a box does not open", blamed)
    playing.judge_script(caller, part, fault, calls=list(steps))


class _Spoiling(Director):
    """Runs a session in which some users send boxes to a released key that do not open."""

    spoilt: set[int]


def _empty(drawn: basa_sessions.Plan) -> list[int]:
    """Return the positions whose key is released and whose boxes nobody opened before."""
    kinds = [act.kind for act in drawn.acts if act.kind in ("upload", "skip", "late")]
    unused = range(len(kinds), positions(drawn.numbers))
    return [*(at for at, kind in enumerate(kinds) if kind == "skip"), *unused]


def _spoilt(draw: Any) -> _Spoiling:
    """Draw an epoch that is ready to be closed and has boxes that do not open."""
    drawn = basa_sessions.plan(draw, basa_sessions.numbers(draw, void=False))
    drawn.open()
    drawn.fill()
    if not drawn.ready:
        for kind in ("upload",) * (drawn.number("T") + 2 - len(drawn.accepted)):
            drawn.visit(kind)
    director = _Spoiling(PositionStage.of(basa_sessions.inputs(draw, drawn)))
    director.spoilt = set(strategies.subset(draw, drawn.accepted, 1, 2))
    cast = Cast(director.stage.inputs)
    bit, which, empty = draw(st.integers(0, 79)), draw(st.integers(0, 2)), _empty(drawn)

    def tamper(message: Message) -> Message:
        if not isinstance(message, PositionUpload) or message.sender not in director.spoilt:
            return message
        targets = [message.position, *(at for at in empty if at > message.position)]
        target = targets[which % len(targets)]
        box = cast.box(message, target)
        wrong = box[:bit] + bytes([box[bit] ^ 1]) + box[bit + 1 :]
        return cast.with_box(message, target, wrong)

    director.tamper = tamper
    director.play(drawn.acts)
    return director


@check(
    f"{NEW}/basa-mixed",
    *("BAA-08", "BAA-13", "BAA-20", "BAA-23", "BAA-26", "BAA-33", "BAA-34", "BAA-35", "BAA-41", "ADP-24"),
    operations=SESSIONS,
    applies=lambda caps: bool(playing.parties(caps, "basa")),
    examples=24,
)
def mixed_session(draw: Any, caller: Caller) -> None:
    """In a session with timeouts whose other parties are the reference's, each step is the right one."""
    director = basa_sessions.session(draw)
    roles, stage = playing.parties(caller.caps, "basa"), director.stage
    chosen = [role for role in roles if draw(st.booleans())] or [one_of(draw, roles)]
    users = strategies.subset(draw, stage.inputs.users, 1, 3) if Role.USER in chosen else []
    others = [party for party, role in ((SERVER, Role.SERVER), (AUTHORITY, Role.AUTHORITY)) if role in chosen]
    with playing.as_failure():
        PositionStage.played(stage.inputs, dict.fromkeys([*others, *users], playing.player(caller)), stage.turns)
