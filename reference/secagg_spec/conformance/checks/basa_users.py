"""Checks of a user of BASA, step by step: what it sends, and what it refuses (spec/basa.md, section 4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.cases import basa_sessions, strategies
from secagg_spec.conformance.cases.basa_parties import PARTS, USER, begun
from secagg_spec.conformance.cases.requests import one_of, too_large
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.basa_faults import THE_AUTHORITY, THE_SERVER, arriving, explicit, replaced
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.faults import REFUSALS
from secagg_spec.conformance.checks.lightsecagg_scripts import take_prefix
from secagg_spec.conformance.checks.scripts import Fault, ask, drop_faults, taken
from secagg_spec.conformance.checks.streams import flipped
from secagg_spec.conformance.sessions.basa_acts import Part, budget
from secagg_spec.conformance.sessions.basa_cast import BOX
from secagg_spec.conformance.sessions.choices import among, any_of, only_if
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.basa.messages import PositionKey, PositionOffer

_party = REFUSALS[USER]
playing.right_steps(_party, (40, 24, 12), "BAA-23", "BAA-26", "BAA-33", "BAA-34")


_ALLOWED = {"fetch": ("asked",), "upload": ("fetched",)}


@_party.refuses("out-of-turn", "BAA-27")
def _out_of_turn(draw: Any, part: Part) -> Fault:
    """A user refuses an offer that it did not ask for, and uploads nothing without an offer."""
    at = draw(among(range(len(part.moments))))
    state = part.moments[at].phase
    phase = draw(among([phase for phase, states in _ALLOWED.items() if state not in states]))
    found = part.taking(phase)
    step = part.calls()[draw(among(found))]
    return Fault(at, step, reject.NOT_NOW, f"the user is {state}, which does not allow {phase}")


@_party.refuses("second-upload", "BAA-27")
def _second_upload(draw: Any, part: Part) -> Fault:
    """An update is uploaded once: the same key does not lead to a second upload."""
    at = any_of(draw, part.taking("upload"))
    return Fault(at + 1, part.calls()[at], reject.NOT_NOW, "the update was uploaded")


@_party.refuses("unsigned-keys", "BAA-29", "ADP-21")
def _unsigned(draw: Any, part: Part) -> Fault:
    """Keys that the authority did not sign for their epoch are refused, and the server is blamed."""
    at, offer = arriving(draw, part, "fetch")
    cast, other = part.cast, offer.round ^ 1
    wrong: dict[str, dict[str, Any]] = {
        "signature": {"signature": flipped(draw, offer.signature)},
        "keys": {"keys": flipped(draw, offer.keys)},
        "another epoch": {"signature": cast.epoch_keys(offer.round, offer.keys, signed=other).signature},
        "a user": {"signature": cast.signature(part.party, offer.round, (0, 0, 0), offer.keys)},
    }
    why = draw(among(sorted(wrong)))
    step = replaced(part, at, **wrong[why])
    return Fault(at, step, reject.BAD_SIGNATURE, f"the keys are not signed for the epoch ({why})", THE_SERVER)


@_party.refuses("stale", "BAA-28", "ADP-21")
def _stale(draw: Any, part: Part) -> Fault:
    """An offer of an epoch before the user's stamp, or with a staleness above tau_max, is refused."""
    at, offer = arriving(draw, part, "fetch")
    stamp = int(unpack(part.inputs.setups[part.party]["stamps"])[part.moments[at].used])
    most = part.inputs.numbers["tau_max"]
    wrong = [epoch for epoch in (stamp - 1, stamp + most + 1, stamp + most + 2) if 0 <= epoch < 2**32]
    epoch = draw(among(wrong))
    keys = part.cast.epoch_keys(epoch, offer.keys)
    step = replaced(part, at, round=epoch, keys=keys.keys, signature=keys.signature)
    why = f"the offer is of epoch {epoch}, the stamp is {stamp}, and tau_max is {most}"
    return Fault(at, step, reject.UNFIT, why, THE_SERVER)


@_party.refuses("spent-epoch", "BAA-52", session=basa_sessions.returning)
def _spent_epoch(draw: Any, part: Part) -> Fault:
    """An offer of the epoch in which the user last uploaded is refused, whatever update the user has now."""
    at = part.when(lambda moment: moment.phase == "asked" and moment.used > 0)[0]
    [offer] = part.inbox(part.taking("fetch")[0])
    why = f"the user uploaded in epoch {offer.round}"
    return Fault(at, Call.of("fetch", (offer,)), reject.AGAIN | reject.UNFIT, why)


@_party.refuses("offer-form", "BAA-51", "ADP-21")
def _offer_form(draw: Any, part: Part) -> Fault:
    """Keys, signatures and boxes of the wrong length are refused, and so is a position that does not exist."""
    at, offer = arriving(draw, part, "fetch")
    short = part.cast.epoch_keys(offer.round, offer.keys[32:])
    wrong: dict[str, dict[str, Any]] = {
        "the position is P": {"position": part.cast.positions},
        "a key is missing": {"keys": short.keys, "signature": short.signature},
        "the signature has 63 bytes": {"signature": offer.signature[1:]},
        "a byte besides the boxes": {"boxes": offer.boxes + b"\0"},
    }
    why = draw(among(sorted(wrong)))
    codes = reject.BAD_FORM | (reject.BAD_SIGNATURE if "63" in why else frozenset())
    return Fault(at, replaced(part, at, **wrong[why]), codes, why, THE_SERVER)


def _keyed(draw: Any, part: Part, after: int = 0) -> tuple[int, PositionKey]:
    """Draw a key that arrives, after at least `after` accepted positions. Return the number of its step and the key."""
    at = any_of(draw, [at for at in part.taking("upload") if part.inbox(at)[0].positions.size >= after])
    return at, part.inbox(at)[0]


def _offer_before(part: Part, at: int) -> int:
    """Return the number of the step that brought the offer a key belongs to."""
    return max(step for step in part.taking("fetch") if step < at)


@_party.refuses("another-position", "BAA-30", "ADP-21")
def _another_position(draw: Any, part: Part) -> Fault:
    """The key of a position other than the offered one is refused, and the authority is blamed."""
    at, key = _keyed(draw, part)
    wrong = draw(among([p for p in range(part.cast.positions) if p != key.position]))
    step = replaced(part, at, position=wrong, key=part.cast.pair_key(key.round, wrong))
    return Fault(at, step, reject.UNFIT, f"the key of position {wrong} came", THE_AUTHORITY)


@_party.refuses("another-key", "BAA-30", "ADP-21")
def _another_key(draw: Any, part: Part) -> Fault:
    """A key that does not match the public key of its position is refused, and the authority is blamed."""
    at, key = _keyed(draw, part)
    others = [secret for secret in part.cast.secrets(key.round) if secret != key.key]
    altered = key.key[:1] + flipped(draw, key.key[1:31]) + key.key[31:]
    step = replaced(part, at, key=one_of(draw, [altered, *others]))
    return Fault(at, step, reject.BAD_FORM, "the key is that of another position, or of none", THE_AUTHORITY)


@_party.refuses("hash", "BAA-31", "ADP-21", session=basa_sessions.settled)
def _hash(draw: Any, part: Part) -> Fault:
    """Boxes that do not have the hashes the authority names are refused, and the server is blamed."""
    at, key = _keyed(draw, part, 1)
    hashes = [flipped(draw, key.hashes)]
    if key.positions.size > 1:
        hashes.append(key.hashes[32:64] + key.hashes[:32] + key.hashes[64:])
    step = replaced(part, at, hashes=one_of(draw, hashes))
    return Fault(at, step, reject.BAD_SIGNATURE, "a box does not have its hash", THE_SERVER)


@_party.refuses("number-of-boxes", "BAA-31", "ADP-21", session=basa_sessions.settled)
def _number(draw: Any, part: Part) -> Fault:
    """An offer with more or fewer boxes than the authority names is refused, and the server is blamed."""
    at, key = _keyed(draw, part, 1)
    less = {"positions": key.positions[:-1], "senders": key.senders[:-1], "hashes": key.hashes[:-32]}
    why = "there is a box more than the authority names"
    return Fault(at, replaced(part, at, **less), reject.BAD_FORM, why, THE_SERVER)


@_party.refuses("key-form", "BAA-51", "ADP-21", session=basa_sessions.settled)
def _key_form(draw: Any, part: Part) -> Fault:
    """A key message is refused if a position, sender or length in it is wrong, or positions are not ascending."""
    at, key = _keyed(draw, part, 1)
    first, last = key.positions[:1], np.array([key.position], np.uint64)
    wrong: dict[str, dict[str, Any]] = {
        "a position is the own one": {"positions": np.concatenate([key.positions[:-1], last])},
        "a sender is not on the roster": {"senders": np.append(key.senders[:-1], np.uint64(part.size))},
        "a sender is missing": {"senders": key.senders[:-1]},
        "a hash has 31 bytes": {"hashes": key.hashes[:-1]},
        "the key has 31 bytes": {"key": key.key[:-1]},
        "the position is P": {"position": part.cast.positions},
    }
    if key.positions.size > 1:
        wrong["a position comes twice"] = {"positions": np.concatenate([first, key.positions[:-1]])}
        wrong["a sender comes twice"] = {"senders": np.append(key.senders[:-1], key.senders[:1])}
        wrong["positions do not ascend"] = {"positions": key.positions[::-1].copy()}
    why = draw(among(sorted(wrong)))
    codes = reject.BAD_FORM | {"unknown_peer", "duplicate_id"} | (reject.UNFIT if "P" in why else frozenset())
    return Fault(at, replaced(part, at, **wrong[why]), codes, why, THE_AUTHORITY)


@_party.refuses("sender-of-a-box", "BAA-32", "ADP-21", session=basa_sessions.settled)
def _sender_of_a_box(draw: Any, part: Part) -> Fault:
    """A box from a user other than the named one does not open, because its binding holds its sender."""
    at, key = _keyed(draw, part, 1)
    place = draw(st.integers(0, key.positions.size - 1))
    others = [user for user in range(min(part.size, 9)) if user not in key.senders.tolist()]
    named = draw(among(others))
    senders = key.senders.copy()
    senders[place] = named
    step = replaced(part, at, senders=senders)
    why = f"the box from position {key.positions[place]} is not one of user {named}"
    return Fault(at, step, reject.BAD_CIPHERTEXT, why, frozenset({named}))


def _detour(part: Part, offer: PositionOffer, step: int, key: PositionKey) -> tuple[list[Call], int, Call]:
    """Return a user's steps with another offer before this one, the place of the step on its key, and that step.

    The user asks, takes the other offer, and is given its key, which it refuses. Then it goes on as before.
    """
    asked = max(at for at in part.taking("request") if at < step)
    steps = part.calls()
    bad = [steps[asked], Call.of("fetch", (offer,))]
    return [*steps[:asked], *bad, *steps[asked:]], asked + 2, Call.of("upload", (key,))


def _boxes(offer: PositionOffer) -> list[bytes]:
    return [offer.boxes[at : at + BOX] for at in range(0, len(offer.boxes), BOX)]


def _other_boxes(draw: Any, part: Part, offer: PositionOffer, key: PositionKey, places: Sequence[int]) -> list[bytes]:
    """Draw boxes that do not open at some places: altered, or sealed for another epoch, position or sender."""
    cast, boxes, target = part.cast, _boxes(offer), offer.position
    for place in places:
        source, sender = int(key.positions[place]), int(key.senders[place])
        how = draw(among(("bit", "epoch", "position", "weak")))
        boxes[place] = {
            "bit": lambda: flipped(draw, boxes[place]),  # noqa: B023 - called at once
            "epoch": lambda: cast.sealed(sender, offer.round, source, target, bytes(32), bound=offer.round ^ 1),  # noqa: B023
            "position": lambda: cast.sealed(sender, offer.round, *_beside(part, source, target), bytes(32)),  # noqa: B023
            "weak": lambda: bytes(32) + boxes[place][32:],  # noqa: B023
        }[how]()
    return boxes


def _beside(part: Part, source: int, target: int) -> tuple[int, int]:
    """Return another pair of positions, one before the other. It keeps the first one if another second one exists."""
    if target + 1 < part.cast.positions:
        return source, target + 1
    return (source, source + 1) if source + 1 < target else (source - 1, target)


@check(f"{USER}/unopened", "BAA-32", "ADP-21", applies=explicit(USER), examples=16)
def unopened(draw: Any, caller: Caller) -> None:
    """If boxes do not open, the user uploads nothing and blames the senders of all of them."""
    part = PARTS[USER](draw, session=basa_sessions.settled)
    at, key = _keyed(draw, part, 1)
    before = _offer_before(part, at)
    [offer] = part.inbox(before)
    places = strategies.subset(draw, range(key.positions.size), 1)
    boxes = b"".join(_other_boxes(draw, part, offer, key, places))
    named = replace(key, hashes=part.cast.hashes(boxes))
    longer, place, step = _detour(part, replace(offer, boxes=boxes), before, named)
    blamed = frozenset(int(key.senders[place]) for place in places)
    fault = Fault(place, step, reject.BAD_CIPHERTEXT, f"{len(places)} boxes do not open", blamed)
    playing.judge_script(caller, part, fault, calls=longer)


@check(f"{USER}/exchanged-boxes", "BAA-31", "ADP-21", applies=explicit(USER), examples=16)
def exchanged_boxes(draw: Any, caller: Caller) -> None:
    """Boxes are refused if the server replaced them with good boxes that it made, or reordered them."""
    part = PARTS[USER](draw, session=basa_sessions.settled)
    at, key = _keyed(draw, part, 1)
    before = _offer_before(part, at)
    [offer] = part.inbox(before)
    boxes, place = _boxes(offer), draw(st.integers(0, key.positions.size - 1))
    source, sender = int(key.positions[place]), int(key.senders[place])
    own = part.cast.sealed(sender, offer.round, source, offer.position, bytes(range(32)))
    mine = [*boxes[:place], own, *boxes[place + 1 :]]
    wrong = [mine, boxes[1:], [*boxes, own]] + ([boxes[::-1]] if len(boxes) > 1 else [])
    chosen = one_of(draw, wrong)
    longer, place, step = _detour(part, replace(offer, boxes=b"".join(chosen)), before, key)
    codes = reject.BAD_SIGNATURE if len(chosen) == len(boxes) else reject.BAD_FORM
    fault = Fault(place, step, codes, "the boxes are not those that the authority names", THE_SERVER)
    playing.judge_script(caller, part, fault, calls=longer)


@check(f"{USER}/updates", "BAA-24", applies=explicit(USER), examples=16)
def updates(draw: Any, caller: Caller) -> None:
    """An update with the wrong length or a number not below R is refused."""
    params, rand = begun(draw, USER)
    rows = list(params["updates"])
    place = draw(st.integers(0, len(rows) - 1))
    values, R = unpack(rows[place]).astype(np.uint64), int(params["R"])
    wrong = [values[:-1], np.append(values, values[:1])] + ([too_large(draw, values, R)] if R < 2**32 else [])
    rows[place] = pack(one_of(draw, wrong))
    codes = reject.LENGTH | reject.NONCANONICAL | reject.BAD_PARAM
    caller.refused(USER, {**params, "updates": rows}, codes, f"updates[{place}] is no vector of the text", rand)


@check(f"{USER}/sampled", "RND-04", "STL-07", applies=explicit(USER), examples=20)
def sampled(draw: Any, caller: Caller) -> None:
    """Seeds and keys of the wrong length, draws outside [0, 1), and a wrong number of stamps are refused."""
    params, rand = begun(draw, USER)
    wrong: list[dict[str, Any]] = [
        {"seeds": [rand["seeds"][0][2:], *rand["seeds"][1:]]},
        {"seeds": [*rand["seeds"][1:], rand["seeds"][0] + "00" * 32]},
        {"box_keys": [rand["box_keys"][0] + "00", *rand["box_keys"][1:]]},
        {"roundings": "000000000000f03f" + rand["roundings"][16:]},
        {"roundings": "000000000000e0bf" + rand["roundings"][16:]},
        {"stamps": params["stamps"] + "00000000"},
    ]
    changed = one_of(draw, wrong)
    name, codes = next(iter(changed)), reject.LENGTH | reject.BAD_PARAM
    given = {**params, **changed} if name == "stamps" else params
    drawn = rand if name == "stamps" else {**rand, **changed}
    caller.refused(USER, given, codes, f"{name} are not those of the text", drawn)


@check(f"{USER}/budget", "BAA-25", "ERR-01", applies=explicit(USER), examples=16)
def beyond_the_budget(draw: Any, caller: Caller) -> None:
    """An update with an element beyond the budget of a buffer is not uploaded. The user can ask again."""
    part = PARTS[USER](draw)
    numbers, setup = part.inputs.numbers, part.inputs.setups[part.party]
    R, most = int(numbers["R"]), budget(numbers)
    uploads = part.taking("upload")
    only_if(most + 1 <= (R - 1) // 2 and uploads)
    beyond = draw(among((most + 1, R - most - 1)))
    large = unpack(setup["updates"][0]).astype(np.uint64)
    large[draw(st.integers(0, numbers["d"] - 1))] = beyond
    right = part.calls()[: uploads[0] + 1]
    fault = Fault(len(right) - 1, right[-1], reject.NOT_FINITE, f"{beyond} is beyond the budget of {most}")
    params = {**part.params([*right, Call("request")]), "updates": [pack(large), *setup["updates"][1:]]}
    entries = ask(caller, USER, params, part.inputs.rand(part.party))
    take_prefix(USER, right[:-1], entries)
    for entry in drop_faults(caller, USER, entries, [*[None] * (len(right) - 1), fault, None]):
        taken(USER, entry, "request")


@check(f"{USER}/nothing-left", "RND-04", "ERR-01", applies=explicit(USER), examples=12)
def nothing_left(draw: Any, caller: Caller) -> None:
    """A step that needs an update or a sampled value when none is left is refused, and has no effect."""
    part = PARTS[USER](draw)
    params, rand = part.params([]), part.inputs.rand(part.party)
    uploads = part.taking("upload")
    name = draw(among(("updates", "seeds", "box_keys", "roundings")))
    if name == "updates" or not uploads:
        fault = Fault(0, Call("request"), reject.NOTHING_LEFT, "no update is left")
        given = {**part.params([fault.call]), "updates": [], "stamps": ""}
        entries = ask(caller, USER, given, rand)
        drop_faults(caller, USER, entries, [fault])
        return
    right = part.calls()[: uploads[0] + 1]
    fault = Fault(len(right) - 1, right[-1], reject.NOTHING_LEFT, f"no {name} are left")
    params = part.params(right)
    entries = ask(caller, USER, params, {**rand, name: "" if name == "roundings" else []})
    take_prefix(USER, right[:-1], entries)
    drop_faults(caller, USER, entries, [*[None] * (len(right) - 1), fault])
