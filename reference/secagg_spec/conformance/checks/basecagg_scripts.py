"""Checks of a party of BASecAgg, step by step: what it sends, what it refuses, and that a refusal has no effect."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.cases import basecagg_parties, basecagg_sessions, strategies
from secagg_spec.conformance.cases.basecagg_parties import (
    SCENES,
    SERVED,
    USER,
    allowed,
    announced,
    begun,
    entries_of,
    share,
    user_scene,
)
from secagg_spec.conformance.cases.requests import exchanged_element, one_of, too_large
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.crypto import altered
from secagg_spec.conformance.checks.faults import IN_ANY_ORDER, Refusals
from secagg_spec.conformance.checks.lightsecagg_scripts import take_prefix
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.checks.scripts import Fault, ask, drop_faults, placed, taken
from secagg_spec.conformance.sessions.basecagg_stage import Stage, answering
from secagg_spec.conformance.sessions.choices import among, any_of, only_if
from secagg_spec.conformance.sessions.session import Played, moved, without
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.basecagg.round import BufferedSet, ModelRequest, StampedShare, StampedUpdate
from secagg_spec.protocols.codec import vector_bytes
from secagg_spec.protocols.steps import SERVER, Role

REPLAY = frozenset({"replay"})
LATE = frozenset({"wrong_phase"})
"""The codes that each kind of broken rule accepts: the table of spec/adapter.md, section 5."""

THE_SERVER = frozenset({SERVER})


def explicit(op: str) -> Callable[[Capabilities], bool]:
    """Return the condition that the entries of a script are determined bit for bit."""
    return lambda caps: caps.grade(op) == "explicit" and caps.policy("mds.code") == "vandermonde"


def _refusals(party: str) -> Refusals:
    def scene(draw: Any, caps: Capabilities, **given: Any) -> Played:
        return SCENES[party](draw, **given)

    made = Refusals(party, scene, playing.judge_script, (party,), explicit(party))
    made.derive(*IN_ANY_ORDER, no_message=("BSA-08", "BSA-21"))
    return made


_user, _server = map(_refusals, (USER, SERVED))
BY_ROLE = {Role.USER: _user, Role.SERVER: _server}
"""What each party refuses; the shared rules hold in the active profile too."""


@check(f"{USER}/sealed", "BSA-03", "SEA-01", "KEY-02", applies=explicit(USER), examples=30)
def sealed(draw: Any, caller: Caller) -> None:
    """Over the sealed channel, payloads are sealed with the stamp as round and with all numbers in the binding."""
    playing.judge_script(caller, user_scene(draw, channel="sealed"))


def _arriving(draw: Any, scene: Played, *phases: str) -> tuple[int, int, Any]:
    """Draw a message that arrives in one of `phases`. Return its step's number, its place in the inbox, and itself."""
    steps = [(at, inbox) for at, (phase, inbox) in enumerate(scene.inboxes) if not phases or phase in phases]
    found = [(at, place) for at, inbox in steps for place in range(len(inbox))]
    only_if(found)
    at, place = one_of(draw, found)
    return at, place, scene.inbox(at)[place]


def _moments(scene: Played, holds: Callable[[Any], bool]) -> list[int]:
    """Return the numbers of the steps before which the state satisfies `holds`. The last number stands for the end."""
    return [at for at, state in enumerate(scene.bases) if holds(state)]


_ALLOWED = {"request": ("idle", "asked"), "share": ("asked",), "upload": ("training",), "abandon": ("training",)}


@_user.refuses("out-of-turn", "BSA-07", "MSG-03")
def _out_of_turn(draw: Any, scene: Played) -> Fault:
    """A step that the user's state does not allow is refused, such as a second upload or a request before it."""
    at = draw(st.integers(0, len(scene.events())))
    state = scene.bases[at]
    phase = draw(among([phase for phase, states in _ALLOWED.items() if state.phase not in states]))
    newer = scene.inputs.round if state.stamp is None else state.stamp + 1
    step = Call.of(phase, (basecagg_parties.stamp(scene, newer),) if phase == "share" else ())
    why = f"the user is {state.phase}, which does not allow {phase}"
    return Fault(at, step, reject.AGAIN | reject.OUT_OF_TURN, why)


@_user.refuses("second-upload", "BSA-07")
def _second_upload(draw: Any, scene: Played) -> Fault:
    """A second upload under the same stamp is refused."""
    uploads = [at for at, event in enumerate(scene.events()) if event.step.phase == "upload"]
    only_if(uploads)
    return Fault(draw(among(uploads)) + 1, Call("upload"), reject.AGAIN, "the user has uploaded under this stamp")


@_user.refuses("stale-stamp", "BSA-08", "ADP-21", least=2)
def _stale_stamp(draw: Any, scene: Played) -> Fault:
    """A stamp that is not newer than the user's last one is refused, and the server is blamed."""
    at = any_of(draw, _moments(scene, lambda state: state.phase == "asked" and state.stamp is not None))
    stale = max(0, scene.bases[at].stamp - draw(among((0, 1, 255))))
    why = f"the stamp {stale} is not new"
    return Fault(at, Call.of("share", (basecagg_parties.stamp(scene, stale),)), REPLAY, why, THE_SERVER)


@_user.refuses("old-share", "BSA-09", "BSA-10", "ADP-21")
def _old_share(draw: Any, scene: Played) -> Fault:
    """A share is refused unless its stamp is newer than all stamps seen from its sender. Sender and server are blamed.

    That holds even after the newer share was used and forgotten.
    """
    at = draw(among(_moments(scene, lambda state: bool(state.newest))))
    newest = scene.bases[at].newest
    sender = draw(among(sorted(newest)))
    stale = max(0, newest[sender] - draw(among((0, 1, 255))))
    step = Call.of("hold", (share(draw, scene.inputs, scene.party, sender, stale),))
    why = f"a share of user {sender} under {newest[sender]} was seen, and this one has the stamp {stale}"
    return Fault(at, step, REPLAY, why, frozenset({sender, SERVER}))


@_user.refuses("vector", "MOD-06", "MOD-07", channel="plain", shared=False)
def _vector(draw: Any, scene: Played) -> Fault:
    """A share with the wrong length or a number not below q is refused."""
    at, place, message = _arriving(draw, scene, "hold")
    q, size = int(scene.inputs.numbers["q"]), (len(message.payload) - 4) // 4
    zeros = np.zeros(size + 1, np.uint64)
    vectors = map(vector_bytes, (too_large(draw, zeros[:-1], q), zeros, zeros[:-2]))
    wrong = (*vectors, message.payload[:-1], message.payload + b"\0")
    step = moved(scene.calls()[at], place, replace(message, payload=one_of(draw, wrong)))
    return Fault(at, step, reject.BAD_VECTOR, "a share is not L elements")


@_user.refuses("payload", "SEA-02", "BSA-03", "ADP-21", channel="sealed")
def _payload(draw: Any, scene: Played) -> Fault:
    """A payload that was altered or sealed under another stamp does not open. Its sender and the server are blamed."""
    at, place, message = _arriving(draw, scene, "hold")
    payload = altered(draw, message.payload)
    if draw(st.booleans()):
        payload = share(draw, scene.inputs, scene.party, message.sender, message.round ^ 1).payload
    step = moved(scene.calls()[at], place, replace(message, payload=payload))
    return Fault(at, step, reject.BAD_CIPHERTEXT, "a payload does not open", frozenset({message.sender, SERVER}))


def buffers(scene: Played) -> list[int]:
    """Return the numbers of the steps in which a user receives a buffer, or the server the answers to one."""
    phase = "recover" if scene.party == SERVER else answering(scene.inputs)
    return [at for at, event in enumerate(scene.events()) if event.step.phase == phase]


def _buffer(draw: Any, scene: Played) -> tuple[int, Any, list[tuple[int, int, int]]]:
    """Draw a buffer that the user answers. Return the number of the step, the announcement and its entries."""
    at = int(draw(among(buffers(scene))))
    [message] = scene.inbox(at)
    return at, message, entries_of(message)


def _shown(scene: Played, round: int, entries: Sequence[tuple[int, int, int]]) -> Call:
    return _told(scene, announced(scene.inputs, scene.party, round, entries))


def _told(scene: Played, message: BufferedSet) -> Call:
    return Call.of(answering(scene.inputs), (message,))


@_user.refuses("entries", "BSA-21", "ADP-21")
def _entries(draw: Any, scene: Played) -> Fault:
    """A buffer with more or fewer than K entries is refused."""
    at, message, entries = _buffer(draw, scene)
    held = scene.bases[at].held
    outside = [user for user in held if user not in message.users and held[user].stamp <= message.round]
    more = [(user, held[user].stamp, allowed(scene.inputs, message.round, held[user].stamp)[-1]) for user in outside]
    places = strategies.subset(draw, range(len(entries)), 0, len(entries) - 1)
    fewer = [entry for place, entry in enumerate(entries) if place in places] if draw(st.booleans()) else entries[:-1]
    wrong = sorted([*entries, more[0]]) if more and draw(st.booleans()) else fewer
    why = f"the buffer has {len(wrong)} entries, and K is {len(entries)}"
    return Fault(at, _shown(scene, message.round, wrong), reject.ANOTHER_COUNT, why, THE_SERVER)


@_user.refuses("fields", "BSA-21")
def _fields(draw: Any, scene: Played) -> Fault:
    """A buffer that does not have one stamp and one weight for each user is refused."""
    at, message, _ = _buffer(draw, scene)
    name = draw(among(("stamps", "weights")))
    values = getattr(message, name)
    wrong = values[:-1] if draw(st.booleans()) else np.append(values, values[-1:])
    step = _told(scene, replace(message, **{name: wrong}))
    return Fault(at, step, reject.ANOTHER_COUNT, f"there are {len(wrong)} {name} for {len(values)} users")


@_user.refuses("users", "BSA-21", "ADP-21")
def _users(draw: Any, scene: Played) -> Fault:
    """A buffer is refused if its users repeat, are outside the roster, or are not in ascending order."""
    at, message, entries = _buffer(draw, scene)
    how = draw(among(("twice", "outside", "order")))
    first = draw(st.integers(0, len(entries) - 2))
    wrong = list(entries)
    if how == "twice":
        wrong[first + 1] = wrong[first]
    elif how == "outside":
        wrong[-1] = (draw(among((scene.size, SERVER))), *wrong[-1][1:])
    else:
        wrong[first], wrong[first + 1] = wrong[first + 1], wrong[first]
    codes = {"twice": reject.NOT_ASCENDING | {"duplicate_id"}, "outside": reject.WRONG_BUFFER | {"unknown_peer"}}
    step = _shown(scene, message.round, wrong)
    why = {"twice": "a user is named twice", "outside": "a user is not on the roster", "order": "users do not ascend"}
    return Fault(at, step, codes.get(how, reject.NOT_ASCENDING), why[how], THE_SERVER)


def _reweighed(draw: Any, scene: Played, round: int, entries: Sequence[tuple[int, int, int]]) -> Call:
    """Return the step for a buffer of another round, with that round's weights."""
    ages = [(user, stamp, max(round - stamp, 0)) for user, stamp, _ in entries]
    weights = [(user, stamp, allowed(scene.inputs, stamp + age, stamp)[-1]) for user, stamp, age in ages]
    return _shown(scene, round, weights)


@_user.refuses("future-stamp", "BSA-22", latest=(1, 2, 3))
def _future(draw: Any, scene: Played) -> Fault:
    """A buffer with a stamp later than its round is refused."""
    at, message, entries = _buffer(draw, scene)
    state, last = scene.bases[at], max(stamp for _, stamp, _ in entries)
    earlier = last - 1
    if (state.stamp or 0) <= earlier and (state.answered is None or state.answered < earlier):
        return Fault(at, _reweighed(draw, scene, earlier, entries), reject.WRONG_BUFFER, "a stamp is later", THE_SERVER)
    user, _, _ = entries[0]
    later = [(user, message.round + 1, int(scene.inputs.numbers["c_g"])), *entries[1:]]
    return Fault(at, _shown(scene, message.round, later), reject.WRONG_BUFFER, "a stamp is later than the round")


@_user.refuses("stale-entry", "BSA-22", "ADP-21")
def _stale_entry(draw: Any, scene: Played) -> Fault:
    """A buffer with an update older than tau_max is refused."""
    at, _, entries = _buffer(draw, scene)
    most = scene.inputs.numbers["tau_max"]
    round = min(stamp for _, stamp, _ in entries) + most + draw(st.integers(1, 2))
    why = f"an update is older than tau_max = {most}"
    return Fault(at, _reweighed(draw, scene, round, entries), reject.WRONG_BUFFER, why, THE_SERVER)


@_user.refuses("weight", "BSA-23", "ADP-21")
def _weight(draw: Any, scene: Played) -> Fault:
    """A weight that no draw gives is refused: one too small or too large by one, or arbitrary."""
    at, message, entries = _buffer(draw, scene)
    place = draw(st.integers(0, len(entries) - 1))
    user, stamp, _ = entries[place]
    right = allowed(scene.inputs, message.round, stamp)
    wrong = [w for w in (right[-1] + 1, right[0] - 1, int(scene.inputs.numbers["c_g"]), 1) if w > 0 and w not in right]
    weight = draw(among(wrong))
    changed = [*entries[:place], (user, stamp, weight), *entries[place + 1 :]]
    why = f"user {user} weighs {weight}, and may weigh {' or '.join(map(str, right))}"
    return Fault(at, _shown(scene, message.round, changed), reject.WRONG_BUFFER, why, THE_SERVER)


@_user.refuses("zero-weights", "BSA-23", "BSA-24", "ADP-21")
def _zero_weights(draw: Any, scene: Played) -> Fault:
    """A buffer with a weight of 0 is refused, and so is one in which fewer than T + 2 weights are positive."""
    at, message, entries = _buffer(draw, scene)
    zeros = strategies.subset(draw, range(len(entries)), 1)
    changed = [(user, stamp, 0 if place in zeros else w) for place, (user, stamp, w) in enumerate(entries)]
    codes = reject.WRONG_BUFFER | reject.TOO_FEW
    return Fault(at, _shown(scene, message.round, changed), codes, f"{len(zeros)} entries weigh nothing", THE_SERVER)


@_user.refuses("other-stamp", "BSA-25", latest=(1, 2, 3))
def _other_stamp(draw: Any, scene: Played) -> Fault:
    """A buffer is refused if the share of one of its updates is held under another stamp."""
    at, message, entries = _buffer(draw, scene)
    place = draw(st.integers(0, len(entries) - 1))
    user, stamp, _ = entries[place]
    oldest = max(0, message.round - scene.inputs.numbers["tau_max"])
    other = any_of(draw, [other for other in range(oldest, message.round + 1) if other != stamp])
    changed = [*entries[:place], (user, other, allowed(scene.inputs, message.round, other)[0]), *entries[place + 1 :]]
    why = f"the share of user {user} is held under {stamp}, not under {other}"
    return Fault(at, _shown(scene, message.round, changed), reject.NOT_ASCENDING, why)


@check(f"{USER}/replaced-share", "BSA-10", "BSA-25", applies=explicit(USER), examples=12)
def replaced_share(draw: Any, caller: Caller) -> None:
    """A share that was replaced by a newer one is no longer used: a buffer that names it is refused."""
    scene = basecagg_parties.replaced_scene(draw)
    at = len(scene.events()) - 1
    [message], newer = scene.inbox(at), scene.inbox(at - 1)[0]
    old = newer.round - 1
    entries = [(user, old, allowed(scene.inputs, message.round, old)[0]) for user in message.users]
    why = f"the share of user {newer.sender} under {old} was replaced"
    playing.judge_script(caller, scene, Fault(at, _shown(scene, message.round, entries), reject.NOT_ASCENDING, why))


@_user.refuses("early-buffer", "BSA-25")
def _early_buffer(draw: Any, scene: Played) -> Fault:
    """A buffer that arrives before the shares of its entries is refused. Once they have arrived, it is answered."""
    at, message, _ = _buffer(draw, scene)
    moment = any_of(draw, [moment for moment in range(at) if _lacks(scene.bases[moment], message)])
    return Fault(moment, _told(scene, message), reject.NOT_ASCENDING, "the share of an entry has not come yet")


def _lacks(state: Any, message: BufferedSet) -> bool:
    """Return whether a share of a buffer is missing and the buffer is otherwise right."""
    on_time = (state.stamp or 0) <= message.round and (state.answered is None or state.answered < message.round)
    held = {user: kept.stamp for user, kept in state.held.items()}
    return on_time and any(held.get(user) != stamp for user, stamp, _ in entries_of(message))


@_user.refuses("late-buffer", "BSA-26", latest=(1, 2, 3))
def _late_buffer(draw: Any, scene: Played) -> Fault:
    """A buffer of a round before the user's stamp is refused, even if all of its shares are held."""
    at = any_of(draw, _moments(scene, lambda state: bool(state.stamp) and (state.answered or 0) < state.stamp - 1))
    state, K = scene.bases[at], scene.inputs.numbers["K"]
    round = state.stamp - 1
    most = scene.inputs.numbers["tau_max"]
    fitting = [user for user, kept in sorted(state.held.items()) if 0 <= round - kept.stamp <= most]
    users = [*fitting, *(user for user in scene.inputs.users if user not in fitting)][:K]
    entries = [(user, state.held[user].stamp if user in fitting else round, 1) for user in sorted(users)]
    why = f"the buffer is of round {round}, and the user has the stamp {state.stamp}"
    return Fault(at, _reweighed(draw, scene, round, entries), LATE, why)


@_user.refuses("answered-round", "BSA-26")
def _answered_round(draw: Any, scene: Played) -> Fault:
    """A buffer of an answered round, or of an earlier one, is refused."""
    at, message, entries = _buffer(draw, scene)
    moments = [m for m in range(at + 1, len(scene.events()) + 1) if (scene.bases[m].stamp or 0) <= message.round]
    step, why = _shown(scene, message.round, entries), f"round {message.round} was answered"
    return Fault(draw(among(moments)), step, REPLAY, why)


@_user.refuses("second-answer", "BSA-28", "BSA-25")
def _second_answer(draw: Any, scene: Played) -> Fault:
    """A later buffer with an update that the user already answered is refused: a share is used once."""
    at = buffers(scene)[-1]
    [message] = scene.inbox(at)
    later = message.round + draw(st.integers(1, 2))
    step = _reweighed(draw, scene, later, entries_of(message))
    moments = [m for m in range(at + 1, len(scene.events()) + 1) if (scene.bases[m].stamp or 0) <= later]
    codes = reject.NOT_ASCENDING | REPLAY | reject.WRONG_BUFFER
    return Fault(draw(among(moments)), step, codes, "an update was answered for before")


def _room(scene: Played, state: Any) -> bool:
    """Return whether the server would take another update."""
    return not state.entries and len(state.buffer) < scene.inputs.numbers["K"]


def _recorded(state: Any, holds: Callable[[Any], bool]) -> list[int]:
    """Return the users whose record at the server satisfies `holds`."""
    return [user for user, record in sorted(state.records.items()) if holds(record)]


def _user_at(
    draw: Any, scene: Played, users: Callable[[Any], Sequence[int]], room: bool | None = None
) -> tuple[int, Any, int]:
    """Draw a moment with some `users`, and with or without `room`. Return its step's number, the state, and a user."""
    moments = _moments(scene, lambda state: room in (None, _room(scene, state)) and bool(users(state)))
    at = any_of(draw, moments)
    return at, scene.bases[at], draw(among(users(scene.bases[at])))


def _asks(scene: Played, user: int, round: int) -> Call:
    return Call.of("request", (ModelRequest(scene.inputs.session, round, user, SERVER),))


@_server.refuses("asks-again", "BSA-12", "ADP-21")
def _asks_again(draw: Any, scene: Played) -> Fault:
    """A user that already has the stamp of the round is given none, and is blamed."""
    at, state, user = _user_at(draw, scene, lambda state: _recorded(state, lambda record: record.stamp == state.round))
    why = f"user {user} has the stamp {state.round} already"
    return Fault(at, _asks(scene, user, state.round), LATE, why, frozenset({user}))


def _has_stamp(state: Any, user: int) -> bool:
    """Return whether a user has the stamp of the server's current round."""
    return user in state.records and state.records[user].stamp == state.round


@_server.refuses("update-waits", "BSA-12", "ADP-21", least=2)
def _update_waits(draw: Any, scene: Played) -> Fault:
    """A user whose update waits in the buffer is given no stamp, in this round or a later one."""
    found = _moments(scene, lambda state: any(state.records[u].stamp != state.round for u in state.buffer))
    found = found or _moments(scene, lambda state: bool(state.buffer))
    at = draw(among(found))
    state = scene.bases[at]
    user = min(state.buffer, key=lambda user: (state.records[user].stamp, user))
    why = f"the update of user {user} waits in the buffer"
    return Fault(at, _asks(scene, user, state.records[user].stamp), LATE, why, frozenset({user}))


@_server.refuses("later-round", "BSA-12", "ADP-21")
def _later_round(draw: Any, scene: Played) -> Fault:
    """A user that claims to know a later round is given no stamp, and is blamed."""
    at = draw(st.integers(0, len(scene.events())))
    state = scene.bases[at]
    served = [user for user in scene.inputs.users if user not in state.buffer and not _has_stamp(state, user)]
    user, later = any_of(draw, served), state.round + draw(among((1, 2)))
    why = f"user {user} knows of round {later}, and the server is in {state.round}"
    return Fault(at, _asks(scene, user, later), LATE, why, frozenset({user}))


def _batch(scene: Played, user: int, stamp: int) -> list[StampedShare]:
    others = [other for other in scene.inputs.users if other != user]
    return [StampedShare(scene.inputs.session, stamp, user, other, b"\1") for other in others]


@_server.refuses("incomplete", "BSA-13", "ADP-21")
def _incomplete(draw: Any, scene: Played) -> Fault:
    """Shares are not relayed unless there is one for each other user. Their sender is blamed."""
    at = int(draw(among([at for at, (phase, _) in enumerate(scene.inboxes) if phase == "share"])))
    inbox = scene.inbox(at)
    place, message = placed(draw, inbox)
    why = f"a share of user {message.sender} is missing"
    return Fault(at, without(scene.calls()[at], place), reject.NOT_ASCENDING, why, frozenset({message.sender}))


@_server.refuses("batch-of-another-stamp", "BSA-13", "ADP-21")
def _other_batch(draw: Any, scene: Played) -> Fault:
    """Shares are not relayed if one or all of them have another stamp than the newest that the sender was given."""
    at = int(draw(among([at for at, (phase, _) in enumerate(scene.inboxes) if phase == "share"])))
    inbox = scene.inbox(at)
    chosen = one_of(draw, inbox)
    wrong = draw(among([stamp for stamp in (chosen.round - 1, chosen.round + 1) if 0 <= stamp < 2**32]))
    whole = draw(st.booleans())
    inbox = [
        replace(message, round=wrong) if message is chosen or (whole and message.sender == chosen.sender) else message
        for message in inbox
    ]
    why = f"shares of user {chosen.sender} have the stamp {wrong}, and {chosen.round} is its newest"
    return Fault(at, Call.of("share", inbox), reject.NOT_ASCENDING, why, frozenset({chosen.sender}))


@_server.refuses("unasked-shares", "BSA-13", "ADP-21")
def _unasked(draw: Any, scene: Played) -> Fault:
    """Shares of a user that was given no stamp are not relayed."""
    at, state, user = _user_at(draw, scene, lambda state: [u for u in scene.inputs.users if u not in state.records])
    step = Call.of("share", _batch(scene, user, state.round))
    return Fault(at, step, reject.NOT_ASCENDING | LATE, f"user {user} has no stamp", frozenset({user}))


@_server.refuses("relayed-again", "BSA-13", "ADP-21")
def _relayed_again(draw: Any, scene: Played) -> Fault:
    """Shares that were already relayed are not relayed again."""
    at, state, user = _user_at(draw, scene, lambda state: _recorded(state, lambda record: record.relayed))
    step = Call.of("share", _batch(scene, user, state.records[user].stamp))
    return Fault(at, step, REPLAY, f"the shares of user {user} were relayed", frozenset({user}))


def _uploads(scene: Played, user: int, stamp: int) -> Call:
    masked = np.zeros(scene.inputs.numbers["d"], np.uint64)
    return Call.of("upload", (StampedUpdate(scene.inputs.session, stamp, user, SERVER, masked),))


def _waiting(scene: Played, state: Any, *, fresh: bool) -> list[int]:
    """Return the users whose shares were relayed and whose update is missing: acceptable if `fresh`, else too old."""
    most = scene.inputs.numbers["tau_max"]
    known = _recorded(state, lambda record: record.relayed and not record.taken)
    return [user for user in known if (state.round - state.records[user].stamp <= most) == fresh]


@_server.refuses("not-relayed", "BSA-14", "ADP-21")
def _not_relayed(draw: Any, scene: Played) -> Fault:
    """A masked update is refused before the shares of its mask were relayed, and its sender is blamed."""
    at, state, user = _user_at(draw, scene, lambda s: _recorded(s, lambda record: not record.relayed), room=True)
    step = _uploads(scene, user, state.records[user].stamp)
    return Fault(at, step, LATE, f"the shares of user {user} were not relayed", frozenset({user}))


@_server.refuses("another-stamp", "BSA-14", "ADP-21")
def _another_stamp(draw: Any, scene: Played) -> Fault:
    """A masked update is refused if its stamp is not its sender's newest: an older, a later, or an arbitrary one."""
    at, state, user = _user_at(draw, scene, lambda state: scene.inputs.users, room=True)
    record = state.records.get(user)
    stamps = [state.round] if record is None else [record.stamp - 1, record.stamp + 1, record.stamp - 2]
    wrong = draw(among([stamp for stamp in stamps if 0 <= stamp < 2**32]))
    newest = "none" if record is None else record.stamp
    why = f"the update of user {user} has the stamp {wrong}, and its newest is {newest}"
    return Fault(at, _uploads(scene, user, wrong), LATE, why, frozenset({user}))


@_server.refuses("second-update", "BSA-15", "ADP-21")
def _second_update(draw: Any, scene: Played) -> Fault:
    """A second masked update under the same stamp is refused, both in the same buffer and after its recovery."""
    at, state, user = _user_at(draw, scene, lambda s: _recorded(s, lambda record: record.taken), room=True)
    old = state.round - state.records[user].stamp > scene.inputs.numbers["tau_max"]
    why = f"an update of user {user} under this stamp was taken"
    step = _uploads(scene, user, state.records[user].stamp)
    return Fault(at, step, REPLAY | (LATE if old else frozenset()), why, frozenset({user}))


@_server.refuses("stale-update", "BSA-16", "ADP-21", session=basecagg_sessions.late)
def _stale_update(draw: Any, scene: Played) -> Fault:
    """A masked update older than tau_max is refused, and its sender is named."""
    at, state, user = _user_at(draw, scene, lambda state: _waiting(scene, state, fresh=False), room=True)
    tau = state.round - state.records[user].stamp
    why = f"the update of user {user} is {tau} rounds old, and tau_max is {scene.inputs.numbers['tau_max']}"
    return Fault(at, _uploads(scene, user, state.records[user].stamp), LATE, why, frozenset({user}))


@_server.refuses("full-buffer", "BSA-17", session=basecagg_sessions.crowded)
def _full(draw: Any, scene: Played) -> Fault:
    """A masked update is refused while the buffer is full or is being recovered."""
    at, state, user = _user_at(draw, scene, lambda state: _waiting(scene, state, fresh=True), room=False)
    why = "the server recovers its buffer" if state.entries else "the buffer is full"
    return Fault(at, _uploads(scene, user, state.records[user].stamp), LATE, why)


@_server.refuses("too-many-at-once", "BSA-17", session=basecagg_sessions.crowded)
def _too_many(draw: Any, scene: Played) -> Fault:
    """If more masked updates arrive together than the buffer has room for, all of them are refused."""
    K = scene.inputs.numbers["K"]
    moments = _moments(scene, lambda s: _room(scene, s) and len(s.buffer) + len(_waiting(scene, s, fresh=True)) > K)
    at = any_of(draw, moments)
    state = scene.bases[at]
    users = _waiting(scene, state, fresh=True)[: K - len(state.buffer) + 1]
    inbox = [data for user in users for data in _uploads(scene, user, state.records[user].stamp).inbox]
    return Fault(at, Call("upload", tuple(inbox)), LATE, f"{len(users)} updates come, and there is less room")


@_server.refuses("vector", "MOD-06", "MOD-07")
def _server_vector(draw: Any, scene: Played) -> Fault:
    """A masked update or an answer with the wrong length or a number not below q is refused."""
    at, place, message = _arriving(draw, scene, "upload", "recover")
    name, q = ("masked" if isinstance(message, StampedUpdate) else "share"), int(scene.inputs.numbers["q"])
    vector = getattr(message, name)
    wrong = (too_large(draw, vector, q), vector[:-1], np.append(vector, vector[:1]))
    step = moved(scene.calls()[at], place, replace(message, **{name: one_of(draw, wrong)}))
    return Fault(at, step, reject.BAD_VECTOR, f"{name} is no vector of the text")


@_server.refuses("close-early", "BSA-20")
def _close_early(draw: Any, scene: Played) -> Fault:
    """A buffer with fewer than K updates is not closed. A buffer that was announced is not closed again."""
    moments = _moments(scene, lambda state: bool(state.entries) or len(state.buffer) < scene.inputs.numbers["K"])
    at = draw(among(moments))
    state = scene.bases[at]
    why = "the buffer was announced" if state.entries else f"the buffer has {len(state.buffer)} updates"
    return Fault(at, Call("close"), reject.AGAIN | reject.OUT_OF_TURN | reject.NOTHING_LEFT, why)


@_server.refuses("few-answers", "BSA-30", "BSA-34")
def _few_answers(draw: Any, scene: Played) -> Fault:
    """With fewer than U answers the buffer is not recovered; with U answers it is."""
    at = draw(among(buffers(scene)))
    fewer = scene.inbox(at)[: draw(st.integers(0, scene.inputs.numbers["U"] - 1))]
    return Fault(at, Call.of("recover", fewer), reject.TOO_FEW, f"{len(fewer)} answers are too few")


@_server.refuses("bad-share", "BSA-31", "ADP-21", spare=1)
def _bad_share(draw: Any, scene: Played) -> Fault:
    """More than U answers that do not lie on one codeword are refused, and all who answered are blamed."""
    at = draw(among(buffers(scene)))
    inbox = scene.inbox(at)
    place, message = placed(draw, inbox)
    wrong = exchanged_element(draw, message.share, int(scene.inputs.numbers["q"]))
    step = moved(scene.calls()[at], place, replace(message, share=wrong))
    return Fault(at, step, reject.BAD_SHARE, "an answer was altered", frozenset(message.sender for message in inbox))


@_server.refuses("answer-of-another-round", "MSG-03")
def _other_answer(draw: Any, scene: Played) -> Fault:
    """An answer for another round's buffer is refused, and so is any answer before a buffer was announced."""
    at = draw(among(buffers(scene)))
    inbox = scene.inbox(at)
    if draw(st.booleans()):
        place, message = placed(draw, inbox)
        step = moved(scene.calls()[at], place, replace(message, round=message.round ^ 1))
        return Fault(at, step, reject.ELSEWHERE, "an answer is for another round")
    moments = _moments(scene, lambda state: not state.entries)
    codes = reject.AGAIN | reject.OUT_OF_TURN | (reject.NOT_ALLOWED if "W" in scene.inputs.numbers else frozenset())
    return Fault(draw(among(moments)), Call.of("recover", inbox), codes, "no buffer was announced")


for _name in SCENES:
    playing.wrong_openings(_name, ("BSA-01", "BSA-02"), explicit(_name), begun, basecagg_sessions.wrong_numbers)


@check(f"{USER}/updates", "BSA-05", "RND-04", applies=explicit(USER), examples=20)
def updates(draw: Any, caller: Caller) -> None:
    """An update, a mask or noise with the wrong length or a number not below q is refused."""
    params, rand = begun(draw, USER)
    name = draw(among([name for name in ("updates", "masks", "noises") if {**params, **rand}[name]]))
    rows = list({**params, **rand}[name])
    place = draw(st.integers(0, len(rows) - 1))
    values = unpack(rows[place]).astype(np.uint64)
    wrong = (too_large(draw, values, int(params["q"])), values[:-1], np.append(values, values[:1]))
    how = draw(st.integers(0, 2))
    rows[place] = pack(wrong[how])
    if name == "updates":
        params[name] = rows
    else:
        rand[name] = rows
    codes = reject.LENGTH | reject.NONCANONICAL | reject.BAD_PARAM
    caller.refused(USER, params, codes, f"{name}[{place}] is no vector of the text", rand)


@check(f"{SERVED}/roundings", "STL-07", applies=explicit(SERVED), examples=12)
def roundings(draw: Any, caller: Caller) -> None:
    """Draws are refused unless they are K multiples of 2**-53 in [0, 1)."""
    params, rand = begun(draw, SERVED)
    [first, *others] = rand["roundings"]
    wrong = (first[16:], first + first[:16], "000000000000f03f" + first[16:], "000000000000e0bf" + first[16:])
    codes = reject.LENGTH | reject.BAD_PARAM
    caller.refused(SERVED, params, codes, "a rounding is no draw", {"roundings": [one_of(draw, wrong), *others]})


@check(f"{USER}/roster", "KEY-03", "KEY-04", applies=explicit(USER), examples=12)
def roster(draw: Any, caller: Caller) -> None:
    """A roster is refused if it does not have N keys, if two keys are equal, or if a key has the wrong length."""
    scene = user_scene(draw, channel="sealed")
    params = scene.params([])
    keys, private = list(params["channel"]["roster"]), params["channel"]["private"]
    changes: dict[str, tuple[str, list[str]]] = {
        "two users have one key": (private, [keys[1], *keys[1:]]),
        "a key is longer": (private, [keys[0] + "00", *keys[1:]]),
        "a key is missing": (private, keys[:-1]),
        "there is a key more": (private, [*keys, "07" * 32]),
        "the private key is shorter": (private[2:], keys),
    }
    why = draw(among(sorted(changes)))
    params["channel"] = dict(zip(("private", "roster"), changes[why], strict=True))
    codes = reject.EQUAL_KEYS if why.startswith("two") else reject.KEY_LENGTH
    caller.refused(USER, params, codes, why, scene.inputs.rand(scene.party))


@check(f"{USER}/budget", "BSA-06", "ERR-01", applies=explicit(USER), examples=20)
def budget(draw: Any, caller: Caller) -> None:
    """An update with an element beyond the budget is not uploaded. The user can still abandon it."""
    scene = user_scene(draw)
    numbers = scene.inputs.numbers
    q, B = int(numbers["q"]), basecagg_sessions.budget(numbers)
    only_if((q - 1) // 2 >= B + 1)
    beyond = draw(among((B + 1, q - B - 1)))
    large = np.zeros(numbers["d"], np.uint64)
    large[draw(st.integers(0, numbers["d"] - 1))] = beyond
    steps = [Call("request"), Call.of("share", (basecagg_parties.stamp(scene, scene.inputs.round),))]
    fault = Fault(2, Call("upload"), frozenset({"out_of_range"}), f"{beyond} is beyond the budget of {B}")
    params = {**scene.params([*steps, fault.call, Call("abandon")]), "updates": [pack(large)]}
    entries = ask(caller, USER, params, scene.inputs.rand(scene.party))
    take_prefix(USER, steps, entries)
    drop_faults(caller, USER, entries, [None, None, fault, None])
    taken(USER, entries[3], "abandon")


@check(f"{USER}/nothing-left", "RND-04", "ERR-01", applies=explicit(USER), examples=12)
def nothing_left(draw: Any, caller: Caller) -> None:
    """A step that needs a sampled value or an update when none is left is refused, and has no effect."""
    scene = user_scene(draw)
    phase = draw(among(("share", "upload")))
    steps = [Call("request"), Call.of("share", (basecagg_parties.stamp(scene, scene.inputs.round),)), Call("upload")]
    at = [step.phase for step in steps].index(phase)
    fault = Fault(at, steps[at], reject.NOTHING_LEFT, f"nothing is left for the step {phase}")
    params, rand = scene.params(steps[: at + 1]), scene.inputs.rand(scene.party)
    if phase == "share":
        rand.update(masks=[], noises=[])
    else:
        params["updates"] = []
    entries = ask(caller, USER, params, rand)
    take_prefix(USER, steps[:at], entries)
    drop_faults(caller, USER, entries, [*[None] * at, fault])


playing.right_steps(_user, (50, 30, 16), "BSA-04", "BSA-08", "BSA-10", "BSA-27")
playing.right_steps(_server, (50, 30, 16), "BSA-11", "BSA-13", "BSA-18", "BSA-19", "BSA-29", "BSA-34")


def _mixed(protocol: str, *clauses: str) -> None:
    @check(
        f"{NEW}/{protocol}-mixed",
        *clauses,
        "ADP-24",
        operations=SESSIONS,
        applies=lambda caps: caps.policy("mds.code") == "vandermonde" and bool(playing.parties(caps, protocol)),
        examples=24,
    )
    def mixed_session(draw: Any, caller: Caller) -> None:
        """In a session with late updates whose other parties are the reference's, each step is the right one."""
        played = basecagg_sessions.played(draw, active=protocol != "basecagg")
        chosen = playing.drawn_parties(draw, played.inputs.users, playing.parties(caller.caps, protocol))
        dealt_out = basecagg_sessions.trimmed(draw, played)
        with playing.as_failure():
            Stage.played(dealt_out, dict.fromkeys(chosen, playing.player(caller)), played.turns)


_mixed("basecagg", *(f"BSA-{number:02}" for number in (4, 11, 13, 18, 19, 23, 27, 29, 34)))
_mixed("basecagg-active", *(f"BSA-{number}" for number in (38, 42, 43, 45, 46, 47)))
