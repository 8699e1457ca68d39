"""Checks of the authority of BASA, step by step: which user gets which key, and when (spec/basa.md, section 4)."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import basa_sessions, strategies
from secagg_spec.conformance.cases.basa_parties import KEYS, PARTS, begun
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.basa_faults import THE_SERVER, explicit, when
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.faults import REFUSALS
from secagg_spec.conformance.checks.scripts import Fault, ask, drop_faults
from secagg_spec.conformance.checks.streams import flipped
from secagg_spec.conformance.sessions.basa_acts import Director, Moment, Part, positions
from secagg_spec.conformance.sessions.choices import among, any_of
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import SERVER

_party = REFUSALS[KEYS]
playing.right_steps(_party, (40, 24, 12), "BAA-07", "BAA-08", "BAA-13", "BAA-16", "BAA-17", "BAA-20", "BAA-21")


def _step(phase: str, *messages: Message) -> Call:
    return Call.of(phase, messages)


def _filling(part: Part, moment: Moment) -> bool:
    """Return whether the authority would accept an assignment."""
    room = moment.position < part.cast.positions and len(moment.accepted) < part.inputs.numbers["K"]
    return moment.phase in ("filling", "assigned") and room


def _outsiders(part: Part, moment: Moment) -> list[int]:
    """Return users without a key of the epoch that are not at its open position and whose keys the kit holds."""
    return [user for user in part.signers() if user not in moment.holders | {moment.user}]


@_party.refuses("open-again", "BAA-07")
def _open_again(draw: Any, part: Part) -> Fault:
    """An epoch is not opened while another is open."""
    at = draw(among(part.when(lambda moment: moment.phase != "closed")))
    return Fault(at, Call("open"), reject.NOT_NOW, "an epoch is open")


@_party.refuses("other-position", "BAA-09")
def _other_position(draw: Any, part: Part) -> Fault:
    """Only the first unused position, or the one that is assigned and not keyed, can be assigned."""
    at, moment = when(draw, part, lambda moment: _filling(part, moment))
    wrong = draw(among([p for p in range(part.cast.positions) if p != moment.position]))
    user = draw(among(_outsiders(part, moment) or part.signers()))
    step = _step("assign", part.cast.assignment(user, moment.epoch, wrong))
    return Fault(at, step, reject.NOT_NOW, f"position {wrong} is assigned, and {moment.position} is the next")


@_party.refuses("while-keyed", "BAA-09")
def _while_keyed(draw: Any, part: Part) -> Fault:
    """While a position is keyed and not settled, no position is assigned, neither this one nor the next."""
    at, moment = when(draw, part, lambda moment: moment.phase == "keyed")
    position = draw(among((moment.position, min(moment.position + 1, part.cast.positions - 1))))
    user = draw(among([*_outsiders(part, moment), moment.user]))
    step = _step("assign", part.cast.assignment(user, moment.epoch, position))
    return Fault(at, step, reject.NOT_NOW, f"position {moment.position} is keyed")


@_party.refuses("full", "BAA-09", void=False, spares=(1, 2))
def _full(draw: Any, part: Part) -> Fault:
    """Once K positions are accepted, no further position is assigned."""
    K, P = part.inputs.numbers["K"], part.cast.positions
    at, moment = when(draw, part, lambda m: m.phase == "filling" and len(m.accepted) == K and m.position < P)
    user = draw(among(_outsiders(part, moment) or part.signers()))
    step = _step("assign", part.cast.assignment(user, moment.epoch, moment.position))
    return Fault(at, step, reject.NOT_NOW | reject.AGAIN, f"{K} positions are accepted")


@_party.refuses("outsider", "BAA-10", "ADP-21")
def _outsider(draw: Any, part: Part) -> Fault:
    """A position is not assigned to a user outside the roster, and the server is blamed."""
    at, moment = when(draw, part, lambda moment: _filling(part, moment))
    user = draw(among((part.size, 2**31, SERVER)))
    step = _step("assign", part.cast.assignment(user, moment.epoch, moment.position))
    return Fault(at, step, reject.OUTSIDER, f"user {user} is not on the roster", THE_SERVER)


@_party.refuses("holder", "BAA-10")
def _holder(draw: Any, part: Part) -> Fault:
    """A position is not assigned to a user that already holds a key of the epoch."""
    at, moment = when(draw, part, lambda moment: _filling(part, moment) and bool(moment.holders))
    user = draw(among(sorted(moment.holders)))
    step = _step("assign", part.cast.assignment(user, moment.epoch, moment.position))
    return Fault(at, step, reject.AGAIN, f"user {user} holds a key of the epoch")


@check(f"{KEYS}/reassigned", "BAA-09", "BAA-11", applies=explicit(KEYS), examples=12)
def reassigned(draw: Any, caller: Caller) -> None:
    """A position that is not keyed can be assigned to another user. Then only that user gets its key."""
    part = PARTS[KEYS](draw)
    at = draw(among(part.taking("assign")))
    moment, after = part.moments[at], part.moments[at + 1]
    other, right = any_of(draw, [user for user in _outsiders(part, moment) if user != after.user]), part.calls()
    first = _step("assign", part.cast.assignment(other, moment.epoch, moment.position))
    asked = _step("issue", part.cast.key_request(other, moment.epoch, moment.position))
    longer = [*right[:at], first, *right[at:]]
    fault = Fault(at + 2, asked, reject.NOT_NOW, f"the position was assigned to user {other} before, and is not now")
    playing.judge_script(caller, part, fault, calls=longer)


@_party.refuses("another-user", "BAA-11")
def _another_user(draw: Any, part: Part) -> Fault:
    """The key of a position is given only to the user it is assigned to."""
    at, moment = when(draw, part, lambda m: m.phase in ("filling", "assigned", "keyed") and bool(_outsiders(part, m)))
    user, last = draw(among(_outsiders(part, moment))), part.cast.positions - 1
    position = min(draw(st.integers(0, moment.position)), last)
    step = _step("issue", part.cast.key_request(user, moment.epoch, position))
    return Fault(at, step, reject.NOT_NOW, f"position {position} is not assigned to user {user}")


@_party.refuses("another-position", "BAA-11")
def _another_position(draw: Any, part: Part) -> Fault:
    """A user with an assigned position does not get the key of another position."""
    at, moment = when(draw, part, lambda moment: moment.phase == "assigned")
    wrong = draw(among([p for p in range(part.cast.positions) if p != moment.position]))
    step = _step("issue", part.cast.key_request(moment.user, moment.epoch, wrong))
    return Fault(at, step, reject.NOT_NOW, f"position {wrong} is not assigned to user {moment.user}")


@_party.refuses("second-key", "BAA-12")
def _second_key(draw: Any, part: Part) -> Fault:
    """A key is given only once, even after its position is settled."""
    at, moment = when(draw, part, lambda m: m.phase == "keyed" or (m.phase != "closed" and bool(m.holders)))
    given = [*moment.accepted, *moment.skipped, *([(moment.position, moment.user)] if moment.phase == "keyed" else [])]
    position, user = draw(among(given))
    step = _step("issue", part.cast.key_request(user, moment.epoch, position))
    return Fault(at, step, reject.AGAIN, f"user {user} got the key of position {position}")


@_party.refuses("settle-unkeyed", "BAA-14")
def _settle_unkeyed(draw: Any, part: Part) -> Fault:
    """A position that is not keyed is not accepted, whatever its user signed."""
    at, moment = when(draw, part, lambda m: m.phase == "assigned" or _filling(part, m))
    user = moment.user if moment.phase == "assigned" else draw(among(part.signers()))
    step = _step("settle", part.cast.settled(part.made(user, moment)))
    return Fault(at, step, reject.NOT_NOW, f"position {moment.position} is not keyed")


@_party.refuses("unsigned", "BAA-14", "ADP-21")
def _unsigned(draw: Any, part: Part) -> Fault:
    """A position is accepted only if its user signed the position, the stamp, the weight and all hashes."""
    at, moment = when(draw, part, lambda moment: moment.phase == "keyed")
    cast = part.cast
    right = cast.settled(part.made(moment.user, moment))
    others = [user for user in part.signers() if user != moment.user]
    upload = (moment.position, right.stamp, right.weight)
    wrong: dict[str, dict[str, Any]] = {
        "signature": {"signature": flipped(draw, right.signature)},
        "stamp": {"stamp": right.stamp ^ 1},
        "weight": {"weight": right.weight ^ 1},
        "another user": {"signature": cast.signature(others[0], moment.epoch, upload, right.hashes)},
        "another position": {
            "signature": cast.signature(moment.user, moment.epoch, (moment.position ^ 1, *upload[1:]), right.hashes)
        },
        "another epoch": {"signature": cast.signature(moment.user, moment.epoch ^ 1, upload, right.hashes)},
    }
    if right.hashes:
        wrong["hashes"] = {"hashes": flipped(draw, right.hashes)}
    what = draw(among(sorted(wrong)))
    step = _step("settle", replace(right, **wrong[what]))
    return Fault(at, step, reject.BAD_SIGNATURE, f"the upload is not signed by its user ({what})", THE_SERVER)


@_party.refuses("hashes", "BAA-14", "ADP-21")
def _hashes(draw: Any, part: Part) -> Fault:
    """A position is not accepted without one hash per box, even if its user signed the hashes that are there."""
    at, moment = when(draw, part, lambda moment: moment.phase == "keyed")
    cast = part.cast
    upload = part.made(moment.user, moment)
    right = cast.hashes(upload.boxes)
    wrong = draw(among([hashes for hashes in (right[32:], right + bytes(32), right[1:]) if hashes != right]))
    signed = cast.signature(moment.user, moment.epoch, (moment.position, upload.stamp, upload.weight), wrong)
    step = _step("settle", replace(cast.settled(upload), hashes=wrong, signature=signed))
    return Fault(at, step, reject.BAD_FORM, f"{len(wrong)} bytes of hashes are not {len(right)}", THE_SERVER)


@_party.refuses("settled", "BAA-15")
def _settled(draw: Any, part: Part) -> Fault:
    """A settled position is not settled again, either as accepted or as skipped."""
    at, moment = when(draw, part, lambda m: m.phase != "closed" and bool(m.holders))
    cast = part.cast
    position, user = draw(among([*moment.accepted, *moment.skipped]))
    message = cast.settled(part.made(user, replace(moment, position=position)))
    if draw(st.booleans()):
        message = cast.expired(moment.epoch, position)
    return Fault(at, _step("settle", message), reject.NOT_NOW, f"position {position} was settled")


@_party.refuses("late-acceptance", "BAA-15", "BAA-16", void=False, spares=(1, 2))
def _late_acceptance(draw: Any, part: Part) -> Fault:
    """A skipped position is not accepted when its upload arrives late."""
    at, moment = when(draw, part, lambda m: m.phase != "closed" and bool(m.skipped))
    position, user = draw(among(moment.skipped))
    message = part.cast.settled(part.made(user, replace(moment, position=position)))
    return Fault(at, _step("settle", message), reject.NOT_NOW, f"position {position} was skipped")


@_party.refuses("numbers", "BAA-51", "ADP-21")
def _numbers(draw: Any, part: Part) -> Fault:
    """Numbers outside their range are refused, and so is an expired offer that has hashes or a stamp."""
    at, moment = when(draw, part, lambda moment: moment.phase == "keyed")
    cast = part.cast
    right, expired = cast.settled(part.made(moment.user, moment)), cast.expired(moment.epoch, moment.position)
    wrong = {
        "accepted is 2": replace(right, accepted=2),
        "the position is P": replace(right, position=cast.positions),
        "the signature has 63 bytes": replace(right, signature=right.signature[1:]),
        "a stamp without an upload": replace(expired, stamp=1),
        "a weight without an upload": replace(expired, weight=1),
        "a signature without an upload": replace(expired, signature=right.signature),
        "hashes without an upload": replace(expired, hashes=bytes(32)),
    }
    why = draw(among(sorted(wrong)))
    codes = reject.BAD_FORM | (reject.BAD_SIGNATURE if "63" in why else reject.NOT_NOW if "P" in why else frozenset())
    return Fault(at, _step("settle", wrong[why]), codes, why, THE_SERVER)


def last_seat(draw: Any) -> Director:
    """Draw a session in which T + 2 updates, one fewer than K, are accepted and one position is left."""
    chosen = basa_sessions.numbers(draw, void=False, spares=(1, 2))
    chosen = {**chosen, "K": chosen["T"] + 3, "N": chosen["T"] + 4 + chosen["S"]}
    chosen = {**chosen, **basa_sessions.levels(draw, chosen["K"])}
    drawn = basa_sessions.plan(draw, chosen)
    drawn.open()
    _visits(draw, drawn, chosen["T"] + 2, chosen["S"])
    drawn.visit(draw(among(("upload", "skip"))))
    drawn.end()
    return basa_sessions.directed(draw, drawn)


def _visits(draw: Any, drawn: basa_sessions.Plan, accepted: int, skipped: int) -> None:
    """Draw `accepted` visits that are accepted and `skipped` that are skipped, in any order."""
    for place in strategies.shuffled(draw, range(accepted + skipped)):
        drawn.visit("upload" if place < accepted else "skip")


def drained(draw: Any) -> Director:
    """Draw a session that has no position left and too few accepted updates, and is given up."""
    chosen = basa_sessions.numbers(draw, void=False)
    drawn = basa_sessions.plan(draw, chosen)
    drawn.open()
    few = draw(st.integers(0, chosen["T"] + 1))
    _visits(draw, drawn, few, positions(chosen) - few)
    drawn.end()
    return basa_sessions.directed(draw, drawn)


@_party.refuses("close-assigned", "BAA-18", session=last_seat)
def _close_assigned(draw: Any, part: Part) -> Fault:
    """An epoch is not closed while its last position is assigned or keyed but not settled."""
    last = part.cast.positions - 1
    at = draw(among(part.when(lambda m: m.phase in ("assigned", "keyed") and m.position == last)))
    step = _step("close", part.cast.close_request(part.moments[at].epoch))
    return Fault(at, step, reject.NOT_NOW, f"position {last} is {part.moments[at].phase}")


@_party.refuses("close-early", "BAA-19")
def _close_early(draw: Any, part: Part) -> Fault:
    """An epoch with fewer than K accepted positions is not closed while a position is unused."""
    K, P = part.inputs.numbers["K"], part.cast.positions
    early = part.when(lambda m: m.phase == "filling" and len(m.accepted) < K and m.position < P)
    at = draw(among(early))
    step = _step("close", part.cast.close_request(part.moments[at].epoch))
    return Fault(at, step, reject.FEW, f"{len(part.moments[at].accepted)} of {K} are accepted")


@_party.refuses("close-few", "BAA-19", session=drained)
def _close_few(draw: Any, part: Part) -> Fault:
    """An epoch with fewer than T + 2 accepted positions is not closed, even if no position is left."""
    P = part.cast.positions
    at = draw(among(part.when(lambda m: m.phase == "filling" and m.position == P)))
    step = _step("close", part.cast.close_request(part.moments[at].epoch))
    return Fault(at, step, reject.FEW, f"{len(part.moments[at].accepted)} are accepted, and no position is left")


@_party.refuses("ended", "BAA-22")
def _ended(draw: Any, part: Part) -> Fault:
    """After an epoch has ended, every step is refused: to assign, give a key, settle, close or give up."""
    at = draw(among(part.when(lambda m: m.phase == "closed" and m.epoch >= part.inputs.round)))
    return _after_the_end(draw, part, at, part.moments[at])


@_party.refuses("old-epoch", "BAA-22", "MSG-03")
def _old_epoch(draw: Any, part: Part) -> Fault:
    """Messages of an epoch that has ended are refused in the next one."""
    at = any_of(draw, part.when(lambda m: m.phase != "closed" and m.epoch > part.inputs.round))
    old = [m for m in part.moments[:at] if m.epoch == part.moments[at].epoch - 1]
    return _after_the_end(draw, part, at, one_of(draw, old))


def _after_the_end(draw: Any, part: Part, at: int, moment: Moment) -> Fault:
    """Return a step with a message of an epoch that is no longer open."""
    cast, user = part.cast, draw(among(part.signers()))
    position = min(moment.position, cast.positions - 1)
    held = (position, user) if not moment.accepted else moment.accepted[-1]
    steps = [
        _step("assign", cast.assignment(user, moment.epoch, position)),
        _step("issue", cast.key_request(held[1], moment.epoch, held[0])),
        _step("settle", cast.expired(moment.epoch, position)),
        _step("settle", cast.settled(part.made(user, replace(moment, position=position)))),
        _step("close", cast.close_request(moment.epoch)),
        _step("abandon", cast.abandonment(moment.epoch)),
    ]
    step = one_of(draw, steps)
    return Fault(at, step, reject.NOT_NOW | reject.ELSEWHERE, f"the epoch {moment.epoch} has ended")


@check(f"{KEYS}/sampled", "RND-04", applies=explicit(KEYS), examples=12)
def sampled(draw: Any, caller: Caller) -> None:
    """Secret keys are refused unless there are 32 bytes for each position."""
    params, rand = begun(draw, KEYS)
    name = draw(among([name for name in ("pair_keys", "self_keys") if rand[name]]))
    [first, *others] = rand[name]
    wrong = draw(among((first[2:], first[64:], first + first[:64])))
    changed = {**rand, name: [wrong, *others]}
    caller.refused(KEYS, params, reject.LENGTH | reject.BAD_PARAM, f"{name} are not P keys", changed)


@check(f"{KEYS}/nothing-left", "RND-04", "ERR-01", applies=explicit(KEYS), examples=6)
def nothing_left(draw: Any, caller: Caller) -> None:
    """An epoch is not opened if no keys are left for it, and the refusal has no effect."""
    part = PARTS[KEYS](draw)
    fault = Fault(0, Call("open"), reject.NOTHING_LEFT, "no keys are left")
    entries = ask(caller, KEYS, part.params([fault.call]), {"pair_keys": [], "self_keys": []})
    drop_faults(caller, KEYS, entries, [fault])
