"""Checks of SecAgg and SecAgg+: what a user and the server refuse, without any effect (spec/secagg.md)."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.shamir import ELEMENT_BYTES
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import drawn_rounds, secagg_active_parties, strategies
from secagg_spec.conformance.cases.lightsecagg_parties import key_of
from secagg_spec.conformance.cases.requests import one_of, some
from secagg_spec.conformance.cases.secagg_active_parties import signed
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.crypto import altered, low_order
from secagg_spec.conformance.checks.faults import Refusals, senders
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.checks.scripts import Fault, placed
from secagg_spec.conformance.sessions import broken
from secagg_spec.conformance.sessions.choices import among, any_of, only_if
from secagg_spec.conformance.sessions.session import Played, moved, with_more, without
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.sealing import Lane
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg.round import (
    AdvertisedKeys,
    MaskedInput,
    SecretShares,
    SeedCommitment,
    UnmaskRequest,
    UnmaskShares,
)
from secagg_spec.protocols.steps import SERVER, Role

USER, SERVED = "secagg.user", "secagg.server"
ORDER = frozenset({"bad_param", "out_of_range", "duplicate_id", "unknown_peer", "length_mismatch"})
"""The codes that each kind of broken rule accepts: the table of spec/adapter.md, section 5."""

THE_SERVER = frozenset({SERVER})

_ROLES = {USER: Role.USER, SERVED: Role.SERVER}


def _refusals(party: str) -> Refusals:
    def scene(draw: Any, caps: Capabilities, *, sparse: bool | None = None, spare: int = 0) -> Played:
        return drawn_rounds.scene(draw, _ROLES[party], sparse=sparse, spare=spare)

    return Refusals(party, scene, playing.judge, SESSIONS, playing.plays(party), 16)


_user, _server = map(_refusals, _ROLES)
BY_ROLE = {Role.USER: _user, Role.SERVER: _server}
"""What each party refuses; the shared rules hold in every protocol whose round is SecAgg's on the complete graph."""

_user.derive(step_again=("SAG-15", "SAG-25"), no_message=("SAG-36",))
_server.derive(sender=("SAG-16",))


def _keys(scene: Played) -> dict[int, list[bytes]]:
    """Return the public keys that a user receives: for each neighbour a sealing key and a masking key."""
    [message] = scene.inbox(1)
    both = (message.sealing, message.masking)
    return {user: [keys[32 * at : 32 * at + 32] for keys in both] for at, user in enumerate(message.users)}


def _of_keys(scene: Played, keys: Collection[tuple[int, list[bytes]]], *about: Any) -> Fault:
    """Return a fault: the step that shares secrets, with `keys` as those received. `about` are its codes and so on."""
    [message] = scene.inbox(1)
    sealing, masking = (b"".join(pair[at] for _, pair in keys) for at in (0, 1))
    changed = replace(message, users=tuple(user for user, _ in keys), sealing=sealing, masking=masking)
    return Fault(1, Call.of("share_keys", (signed(scene.inputs, changed),)), *about)


@_user.refuses("keys-twice", "SAG-06", "ADP-29")
def _keys_twice(draw: Any, scene: Played) -> Fault:
    """A key list that names a user twice is refused."""
    keys = list(_keys(scene).items())
    user, _ = draw(among(keys))
    twice = sorted([*keys, (user, _fresh_keys(draw))], key=lambda entry: entry[0])
    return _of_keys(scene, twice, reject.TWICE, f"user {user} is named twice", THE_SERVER)


def _unsigned(scene: Played) -> frozenset[str]:
    """Return the codes with which keys are also refused that nobody can have signed as they are."""
    return reject.BAD_SIGNATURE if scene.inputs.protocol == secagg_active_parties.PROTOCOL else frozenset()


def _fresh_keys(draw: Any) -> list[bytes]:
    seed = draw(st.integers(0, 255))
    return [public_key(bytes([seed, which]) * 16) for which in (1, 2)]


@_user.refuses("stranger-keys", "SAG-06", "ADP-29")
def _stranger_keys(draw: Any, scene: Played) -> Fault:
    """Keys of a user that is not a neighbour are refused: of another user, the user itself, or a stranger."""
    graph = scene.state(0).round.graph
    others = set(scene.inputs.users) - graph.neighbours(scene.party)
    user = draw(among([*sorted(others, key=lambda user: (user == scene.party, user)), scene.size]))
    keys = sorted([*_keys(scene).items(), (user, _fresh_keys(draw))])
    codes = reject.OUTSIDE | reject.TWICE | (_unsigned(scene) if user == scene.size else frozenset())
    return _of_keys(scene, keys, codes, f"user {user} is no neighbour", THE_SERVER)


@_user.refuses("equal-keys", "SAG-07")
def _equal_keys(draw: Any, scene: Played) -> Fault:
    """Two equal keys are refused, whether they belong to two users, to one user, or to the user itself."""
    keys = _keys(scene)
    own: Any = scene.events()[0].sent[0]
    user, which = draw(among(sorted(keys))), draw(st.integers(0, 1))
    others = [(scene.party, own.sealing), (scene.party, own.masking)]
    others += [(peer, key) for peer, pair in keys.items() for at, key in enumerate(pair) if (peer, at) != (user, which)]
    owner, keys[user][which] = one_of(draw, others)
    blamed = frozenset({user, owner, SERVER}) - {scene.party}
    return _of_keys(scene, keys.items(), reject.TWICE, f"a key of user {user} is another one as well", blamed)


@_user.refuses("few-keys", "SAG-08")
def _few_keys(draw: Any, scene: Played) -> Fault:
    """With the keys of fewer than t - 1 neighbours, the user shares nothing."""
    keys, t = _keys(scene), scene.inputs.numbers["t"]
    chosen = sorted(strategies.subset(draw, sorted(keys), 0, t - 2))
    chosen = sorted(keys)[: t - 2] if draw(st.booleans()) else chosen
    return _of_keys(scene, [(user, keys[user]) for user in chosen], reject.TOO_FEW, f"{len(chosen)} keys came")


@_user.refuses("weak-key", "SAG-09", "KEY-01")
def _weak_key(draw: Any, scene: Played) -> Fault:
    """A public key of low order is refused, both for sealing and for masking."""
    keys = _keys(scene)
    user, which = draw(among(sorted(keys))), draw(st.integers(0, 1))
    keys[user][which] = low_order(draw)
    why = f"a key of user {user} is of low order"
    return _of_keys(scene, keys.items(), reject.WEAK_KEY, why, frozenset({user, SERVER}))


@_user.refuses("key-lengths", "MSG-02", "SAG-33")
def _key_lengths(draw: Any, scene: Played) -> Fault:
    """A key list is refused unless every key of every named user has 32 bytes."""
    [message] = scene.inbox(1)
    name = draw(among(("sealing", "masking")))
    keys = getattr(message, name)
    wrong = draw(among((keys[:-1], keys + b"\0", keys[:-32], keys + bytes(range(32)))))
    call = Call.of("share_keys", (replace(message, **{name: wrong}),))
    return Fault(1, call, reject.LENGTH | _unsigned(scene), f"{name} has {len(wrong)} bytes")


@_user.refuses("descending", "SAG-32", "ADP-29")
def _descending(draw: Any, scene: Played) -> Fault:
    """A key list or a request whose users are not in ascending order is malformed, and the server is blamed."""
    why, keys = "the users do not ascend", list(_keys(scene).items())
    if draw(st.booleans()) or len(keys) < 2:
        request = _request(scene)
        return _asked(scene, request.survivors[::-1], request.dropped, reject.MALFORMED, why, THE_SERVER)
    first = draw(st.integers(0, len(keys) - 2))
    keys[first], keys[first + 1] = keys[first + 1], keys[first]
    return _of_keys(scene, keys, reject.MALFORMED, why, THE_SERVER)


def lane_of(scene: Played, message: Message) -> tuple[Lane, bytes]:
    """Return the two inputs with which a neighbour's payload is sealed: the lane and the shared secret."""
    state = scene.state(1)
    keys = (state.peers[message.sender].sealing, state.peers[scene.party].sealing)
    context = state.round.sealing_context(state.peers)
    return Lane(context, message.sender, scene.party, *keys), state.sealing_secrets[message.sender]


@_user.refuses("payload", "SEA-02", "ADP-29")
def _payload(draw: Any, scene: Played) -> Fault:
    """A payload that was altered or sealed for another round does not open. Its sender and the server are blamed."""
    place, message = placed(draw, scene.inbox(2))
    lane, secret = lane_of(scene, message)
    payload = altered(draw, message.payload)
    if draw(st.booleans()):
        elsewhere = replace(lane, context=replace(lane.context, round=lane.context.round ^ 1))
        payload = elsewhere.seal(secret, lane.open(secret, message.payload))
    call = moved(scene.calls()[2], place, replace(message, payload=payload))
    return Fault(2, call, reject.BAD_CIPHERTEXT, "a payload does not open", frozenset({message.sender, SERVER}))


@_user.refuses("plaintext", "MSG-02", "SAG-33")
def _plaintext(draw: Any, scene: Played) -> Fault:
    """A plaintext that is not two elements is refused: cut, extended, or with a number that is too large."""
    place, message = placed(draw, scene.inbox(2))
    lane, secret = lane_of(scene, message)
    plaintext = lane.open(secret, message.payload)
    large, size = b"\xff" * (ELEMENT_BYTES - 1) + b"\1", ELEMENT_BYTES
    forms = (plaintext[:-1], plaintext + b"\0", plaintext[:size], large + plaintext[size:], plaintext[:size] + large)
    changed = replace(message, payload=lane.seal(secret, draw(among(forms))))
    return Fault(2, moved(scene.calls()[2], place, changed), reject.BAD_VECTOR, "the plaintext is not two elements")


@_user.refuses("few-shares", "SAG-13")
def _few_shares(draw: Any, scene: Played) -> Fault:
    """With the shares of fewer than t - 1 neighbours, the user sends no masked input."""
    call, t = scene.calls()[2], scene.inputs.numbers["t"]
    fewer = t - 2 if draw(st.booleans()) else draw(st.integers(0, t - 2))
    return Fault(2, replace(call, inbox=call.inbox[:fewer]), reject.TOO_FEW, f"the shares of {fewer} neighbours came")


def _asked(scene: Played, survivors: Sequence[int], dropped: Sequence[int], *about: Any, at: int = 3) -> Fault:
    """Return a fault: the step that receives the request, with another one. `about` are its codes and so on."""
    [message] = scene.inbox(3)
    changed = replace(message, survivors=tuple(survivors), dropped=tuple(dropped))
    return Fault(at, Call.of(scene.row(3).phase, (changed,)), *about)


def _request(scene: Played) -> UnmaskRequest:
    [message] = scene.inbox(3)
    assert isinstance(message, UnmaskRequest)
    return message


def _still_enough(scene: Played, survivors: Sequence[int]) -> bool:
    """Return whether SAG-22 and HSA-18 allow a request with these survivors."""
    agreed = scene.state(0).round
    near, parameters = agreed.graph.holders(scene.party) & set(survivors), agreed.parameters
    few = any(0 < len(part.members & set(survivors)) < parameters.T + 2 for part in parameters.parts)
    return len(survivors) >= scene.enough and len(near) >= parameters.t and not few


@_user.refuses("request-twice", "SAG-19")
def _named_twice(draw: Any, scene: Played) -> Fault:
    """A request that names a user twice in one of its lists is refused."""
    request = _request(scene)
    survivors, dropped = list(request.survivors), list(request.dropped)
    chosen = dropped if dropped and draw(st.booleans()) else survivors
    user = draw(among(chosen))
    chosen.append(user)
    return _asked(scene, sorted(survivors), sorted(dropped), reject.TWICE, f"user {user} is named twice", THE_SERVER)


@_user.refuses("request-outside", "SAG-19")
def _named_outside(draw: Any, scene: Played) -> Fault:
    """A request that names a user outside the roster, in either list, is refused."""
    request, outsider = _request(scene), draw(among((scene.size, 2**31 - 1, SERVER)))
    survivors, dropped = [*request.survivors], [*request.dropped]
    one_of(draw, (survivors, dropped)).append(outsider)
    return _asked(scene, survivors, dropped, reject.OUTSIDE, f"{outsider} is not on the roster", THE_SERVER)


@_user.refuses("request-both", "SAG-20")
def _named_in_both(draw: Any, scene: Played) -> Fault:
    """A request that names a user as both survivor and dropped is refused: both of its secrets would be released."""
    request = _request(scene)
    user = draw(among((*request.survivors, *request.dropped)))
    survivors, dropped = sorted({*request.survivors, user}), sorted({*request.dropped, user})
    only_if(_still_enough(scene, survivors))
    return _asked(scene, survivors, dropped, reject.TWICE, f"user {user} is in both sets", THE_SERVER)


@_user.refuses("request-without", "SAG-21", spare=1)
def _named_without(draw: Any, scene: Played) -> Fault:
    """A request in which the user itself is not a survivor is refused, whether it is named as dropped or not at all."""
    request = _request(scene)
    survivors = [user for user in request.survivors if user != scene.party]
    only_if(_still_enough(scene, survivors))
    dropped = sorted([*request.dropped, scene.party]) if draw(st.integers(0, 3)) else request.dropped
    return _asked(scene, survivors, dropped, reject.OUTSIDE, f"user {scene.party} is not a survivor", THE_SERVER)


@_user.refuses("few-survivors", "SAG-22")
def _few_survivors(draw: Any, scene: Played) -> Fault:
    """A request with too few survivors, in total or among the holders, is refused."""
    request = _request(scene)
    holders = scene.state(0).round.graph.holders(scene.party)
    others = [user for user in request.survivors if user != scene.party]
    near_first = draw(st.booleans())
    leaving = sorted(strategies.shuffled(draw, others), key=lambda user: near_first and user not in holders)
    survivors, dropped = list(request.survivors), list(request.dropped)
    while _still_enough(scene, survivors):
        dropped.append(leaving.pop(0))
        survivors.remove(dropped[-1])
    return _asked(scene, survivors, sorted(dropped), reject.TOO_FEW, f"{len(survivors)} users survive")


@_user.refuses("request-unnamed", "SAG-23", spare=1)
def _unnamed(draw: Any, scene: Played) -> Fault:
    """A request that leaves out a user whose shares the party holds is refused."""
    request, held = _request(scene), set(scene.state(2).held) - {scene.party}
    user = draw(among(sorted(held)))
    survivors, dropped = ([other for other in users if other != user] for users in (request.survivors, request.dropped))
    only_if(_still_enough(scene, survivors))
    why = f"shares of user {user} are held, and it is not named"
    return _asked(scene, survivors, dropped, reject.OUTSIDE, why, THE_SERVER)


@_user.refuses("request-unheld", "SAG-23", spare=1)
def _unheld(draw: Any, scene: Played) -> Fault:
    """A request that names a neighbour whose shares the party does not hold is refused."""
    request, state = _request(scene), scene.state(2)
    user = any_of(draw, sorted(state.round.graph.neighbours(scene.party) - set(state.held)))
    survivors, dropped = list(request.survivors), list(request.dropped)
    one_of(draw, (dropped, survivors)).append(user)
    only_if(_still_enough(scene, survivors))
    why = f"shares of user {user} are not held"
    return _asked(scene, sorted(survivors), sorted(dropped), reject.OUTSIDE, why, THE_SERVER)


@_user.refuses("another-request", "SAG-25", "SAG-20", spare=1)
def _another_request(draw: Any, scene: Played) -> Fault:
    """A user that answered one request refuses another one, in which a survivor is named as dropped."""
    request = _request(scene)
    user = draw(among([user for user in request.survivors if user != scene.party]))
    survivors = [other for other in request.survivors if other != user]
    only_if(_still_enough(scene, survivors))
    why = "a request was answered before"
    return _asked(scene, survivors, sorted([*request.dropped, user]), reject.AGAIN, why, at=4)


@_server.refuses("share-for-a-stranger", "SAG-31", "ADP-29", sparse=True, shared=False)
def _share_for_stranger(draw: Any, scene: Played) -> Fault:
    """A share for a user that is not its sender's neighbour is malformed, and the sender is blamed."""
    state, inbox = scene.state(0), scene.inbox(1)
    message = one_of(draw, [message for message in inbox if isinstance(message, SecretShares)])
    receiver = any_of(draw, sorted(set(state.keys) - state.round.graph.holders(message.sender)))
    call = with_more(scene.calls()[1], replace(message, receiver=receiver))
    why = f"user {receiver} is no neighbour of user {message.sender}"
    return Fault(1, call, reject.MALFORMED, why, frozenset({message.sender}))


@_server.refuses("lengths", "SAG-33", "ADP-29")
def _lengths(draw: Any, scene: Played) -> Fault:
    """An advertised key or a commitment that is not 32 bytes long is malformed, and its sender is blamed."""
    at, names = one_of(draw, ((0, ("sealing", "masking")), (1, ("commitment",))))
    name = draw(among(names))
    places = [place for place, message in enumerate(scene.inbox(at)) if hasattr(message, name)]
    place = draw(among(places))
    message = scene.inbox(at)[place]
    data = getattr(message, name)
    wrong = signed(scene.inputs, replace(message, **{name: draw(among((data[:-1], data + b"\0", b"")))}))
    why = f"{name} is not 32 bytes long"
    return Fault(at, moved(scene.calls()[at], place, wrong), reject.LENGTH, why, frozenset({message.sender}))


@_server.refuses("weak-key", "SAG-34", "KEY-01", "ADP-29")
def _weak_advertised(draw: Any, scene: Played) -> Fault:
    """An advertised key of low order is refused, and its sender is blamed."""
    place = draw(st.integers(0, len(scene.inbox(0)) - 1))
    message, name = scene.inbox(0)[place], draw(among(("sealing", "masking")))
    wrong = signed(scene.inputs, replace(message, **{name: low_order(draw)}))
    why = f"a key of user {message.sender} is of low order"
    return Fault(0, moved(scene.calls()[0], place, wrong), reject.WEAK_KEY, why, frozenset({message.sender}))


@_server.refuses("equal-keys", "SAG-35", "ADP-29")
def _equal_advertised(draw: Any, scene: Played) -> Fault:
    """Two equal advertised keys are refused, regardless of owner or purpose, and their owners are blamed."""
    inbox = scene.inbox(0)
    place, other = draw(st.integers(0, len(inbox) - 1)), draw(st.integers(0, len(inbox) - 1))
    name = draw(among(("sealing", "masking")))
    twin = draw(among(("sealing", "masking")))
    if other == place:
        twin = "masking" if name == "sealing" else "sealing"
    wrong = signed(scene.inputs, replace(inbox[place], **{name: getattr(inbox[other], twin)}))
    blamed = frozenset({inbox[place].sender, inbox[other].sender})
    return Fault(0, moved(scene.calls()[0], place, wrong), reject.TWICE, f"users {sorted(blamed)} have one key", blamed)


@_server.refuses("other-neighbours", "SAG-37", "ADP-29")
def _other_neighbours(draw: Any, scene: Played) -> Fault:
    """A masked input is refused unless the neighbours it names are its sender's neighbours among the sharers."""
    place, message = placed(draw, scene.inbox(2))
    right, at = message.neighbours, draw(st.integers(0, len(message.neighbours) - 1))
    more = tuple(sorted({*right, draw(among([u for u in (*scene.inputs.users, scene.size) if u not in right]))}))
    wrong = replace(message, neighbours=one_of(draw, ((*right[:at], *right[at + 1 :]), more, ())))
    why = f"the input of user {message.sender} names other neighbours"
    return Fault(2, moved(scene.calls()[2], place, wrong), reject.NOT_ALLOWED, why, frozenset({message.sender}))


@check(f"{SERVED}/graph", "SAG-03", "SAG-05", "SAG-18", operations=SESSIONS, applies=playing.plays(SERVED), examples=60)
def graph(draw: Any, call: Caller) -> None:
    """A user that advertised is sent the keys of its neighbours that advertised, if enough of its holders did."""
    inputs = drawn_rounds.bare(draw)
    drawn = strategies.subset(draw, inputs.users, max(0, len(inputs.users) - 3))
    header = (inputs.session, inputs.round)
    inbox = [AdvertisedKeys(*header, user, SERVER, key_of(user, 1), key_of(user, 2)) for user in drawn]
    step, scene = Call.of("advertise_keys", inbox), Played(inputs, SERVER, inputs.network())
    if "reject" in scene.entries([step])[0]:
        playing.judge(call, scene, Fault(0, step, reject.TOO_FEW, "too few users are left"), calls=())
    else:
        playing.judge(call, scene, calls=[step])


@check(f"{SERVED}/partial", "SAG-11", "SAG-05", operations=SESSIONS, applies=playing.plays(SERVED), examples=24)
def _partial(draw: Any, call: Caller) -> None:
    """A user whose commitment or any of whose shares is missing is not a sharer: the server relays nothing from it."""
    partial(draw, call, drawn_rounds.scene(draw, Role.SERVER, spare=1))


def partial(draw: Any, call: Caller, scene: Played) -> None:
    """Judge a server that lacks one message of a user."""
    first, second, *_ = scene.calls()
    user = draw(among(scene.inputs.users))
    places = [place for place, message in enumerate(scene.inbox(1)) if message.sender == user]
    kind = one_of(draw, (SecretShares, SeedCommitment))
    chosen = [place for place in places if isinstance(scene.inbox(1)[place], kind)]
    if not chosen:
        return
    calls = [first, without(second, draw(among(chosen)))]
    if "reject" not in scene.entries(calls)[1]:
        playing.judge(call, scene, calls=calls)


@_server.refuses("few-users", "SAG-18")
def _few_users(draw: Any, scene: Played) -> Fault:
    """The step is refused if too few users advertised, shared, or sent an input. With enough users it works."""
    at = draw(st.integers(0, 2))
    senders = sorted({message.sender for message in scene.inbox(at)})
    fewer = scene.enough - 1 if draw(st.booleans()) else draw(st.integers(0, scene.enough - 1))
    kept = strategies.subset(draw, senders, fewer, fewer)
    return _only(scene, at, kept, f"{fewer} users are left")


def _last(scene: Played) -> int:
    """Return the number of the server's last step, in which the answers arrive."""
    return len(scene.inboxes) - 1


def _only(scene: Played, at: int, senders: Sequence[int], why: str) -> Fault:
    event = scene.events()[at]
    inbox = [message for message in event.received if message.sender in senders]
    return Fault(at, Call.of(event.step.phase, inbox), reject.TOO_FEW, why)


@_server.refuses("few-holders", "SAG-18", sparse=True, shared=False, spare=1)
def _few_holders(draw: Any, scene: Played) -> Fault:
    """The server requests no sum if some user's secrets have fewer than t holders left, even with many users."""
    state, t = scene.state(1), scene.inputs.numbers["t"]
    owner = draw(among(state.sharers))
    holders = sorted(state.round.graph.holders(owner))
    senders = {message.sender for message in scene.inbox(2)}
    leaving = [user for user in strategies.shuffled(draw, holders) if user in senders]
    kept = senders - set(leaving[t - 1 :])
    only_if(len(kept) >= scene.enough)
    return _only(scene, 2, sorted(kept), f"user {owner} has {t - 1} holders left")


@_server.refuses("few-answers", "SAG-27", "SAG-30")
def _few_answers(draw: Any, scene: Played) -> Fault:
    """If fewer than t holders of some user answer, nothing is recovered; with enough answers the step works."""
    state, t = scene.state(1), scene.inputs.numbers["t"]
    owner = draw(among(state.sharers))
    holders = state.round.graph.holders(owner)
    senders = [message.sender for message in scene.inbox(_last(scene))]
    near = [user for user in strategies.shuffled(draw, senders) if user in holders]
    kept = [user for user in senders if user not in near[t - 1 :]]
    return _only(scene, _last(scene), kept, f"{t - 1} holders of user {owner} answer")


@_server.refuses("outsider", "SAG-16", "MSG-03", spare=1)
def _outsider(draw: Any, scene: Played) -> Fault:
    """The server refuses an input from a user that shared no secrets and an answer from one that sent no input."""
    at = draw(among((2, *range(3, len(scene.inboxes)))))
    user = any_of(draw, sorted(set(scene.inputs.users) - senders(scene, at)))
    message = replace(one_of(draw, scene.inbox(at)), sender=user)
    codes = reject.NOT_ALLOWED | broken.by_header(message, scene.party)
    return Fault(at, with_more(scene.calls()[at], message), codes, f"user {user} is outside")


@_server.refuses("input", "SAG-33", "MOD-06", "MOD-07", shared=False)
def wrong_input(draw: Any, scene: Played) -> Fault:
    """A masked input with the wrong length or a number not below R is refused, and its sender is blamed."""
    inbox, R = scene.inbox(2), int(scene.inputs.numbers["R"])
    place, message = placed(draw, inbox)
    assert isinstance(message, MaskedInput)
    masked = message.masked
    wrong: dict[str, Any] = {"longer": [*masked, 0], "shorter": masked[:-1], "large": [*masked[:-1], R]}
    how = draw(among(sorted(wrong) if R < 2**32 else ["longer", "shorter"]))
    changed = replace(message, masked=np.array(wrong[how], np.uint64))
    return Fault(2, moved(scene.calls()[2], place, changed), reject.BAD_VECTOR, f"a masked input is {how}")


@_server.refuses("neighbour-order", "SAG-76", "ADP-29")
def _neighbour_order(draw: Any, scene: Played) -> Fault:
    """A masked input that names the right neighbours in the wrong order is refused, and its sender is blamed."""
    place, message = placed(draw, scene.inbox(2))
    only_if(len(message.neighbours) >= 2)
    wrong = replace(message, neighbours=message.neighbours[::-1])
    why = f"the neighbours of user {message.sender} are not in ascending order"
    return Fault(2, moved(scene.calls()[2], place, wrong), reject.NOT_ASCENDING, why, frozenset({message.sender}))


@_server.refuses("answer-order", "SAG-77", "ADP-29")
def _answer_order(draw: Any, scene: Played) -> Fault:
    """An answer that names the right users in the wrong order is malformed, and its sender is blamed."""
    last = _last(scene)
    place, message = placed(draw, scene.inbox(last))
    shares = [message.seed_shares[at : at + ELEMENT_BYTES] for at in range(0, len(message.seed_shares), ELEMENT_BYTES)]
    wrong = replace(message, survivors=message.survivors[::-1], seed_shares=b"".join(shares[::-1]))
    why = f"the survivors of the answer of user {message.sender} are not in ascending order"
    return Fault(last, moved(scene.calls()[last], place, wrong), reject.MALFORMED, why, frozenset({message.sender}))


@_server.refuses("answer", "SAG-26", "ADP-29")
def _answer(draw: Any, scene: Played) -> Fault:
    """An answer that does not hold exactly the requested shares is malformed, and its sender is blamed."""
    last = _last(scene)
    inbox = scene.inbox(last)
    place, message = placed(draw, inbox)
    assert isinstance(message, UnmaskShares)
    changed = replace(message, **_wrong_lists(draw, scene, message))
    call = moved(scene.calls()[last], place, changed)
    why = "an answer does not hold what was asked for"
    return Fault(last, call, reject.MALFORMED, why, frozenset({message.sender}))


def _wrong_lists(draw: Any, scene: Played, message: UnmaskShares) -> dict[str, Any]:
    """Draw the fields of an answer with other users, or with shares that are cut, extended or too large."""
    size, large = ELEMENT_BYTES, b"\xff" * (ELEMENT_BYTES - 1) + b"\1"
    dropped = bool(message.dropped) and bool(draw(st.booleans()))
    users, shares = ("dropped", "key_shares") if dropped else ("survivors", "seed_shares")
    named, data = getattr(message, users), getattr(message, shares)
    unnamed = [user for user in (*scene.inputs.users, scene.size) if user not in named]
    more = draw(among(unnamed))
    forms: tuple[dict[str, Any], ...] = (
        {users: named[1:], shares: data[size:]},
        {users: tuple(sorted((*named, more))), shares: data + data[:size]},
        {users: (more, *named[1:])},
        {users: (*named, named[0]), shares: data + data[:size]},
        {shares: data[:-1]},
        {shares: data + b"\0"},
        {shares: data[size:]},
        {shares: large + data[size:]},
        {"survivors": message.dropped, "dropped": message.survivors}
        | {"seed_shares": message.key_shares, "key_shares": message.seed_shares},
    )
    return one_of(draw, forms)


@_server.refuses("altered-share", "SAG-28", "ADP-29", sparse=False)
def _altered_share(draw: Any, scene: Played) -> Fault:
    """A recovered secret that is not its owner's is refused. The owner and all whose shares were used are blamed."""
    t = scene.inputs.numbers["t"]
    last = _last(scene)
    inbox = [scene.inbox(last)[at] for at in strategies.subset(draw, range(len(scene.inbox(last))), t, t)]
    place = draw(st.integers(0, t - 1))
    message = inbox[place]
    dropped = bool(message.dropped) and bool(draw(st.booleans()))
    users, shares = ("dropped", "key_shares") if dropped else ("survivors", "seed_shares")
    at = draw(st.integers(0, len(getattr(message, users)) - 1))
    data = bytearray(getattr(message, shares))
    data[at * ELEMENT_BYTES + draw(among((0, 20, 31)))] ^= 1
    inbox[place] = replace(message, **{shares: bytes(data)})
    blamed = frozenset({getattr(message, users)[at], *(message.sender for message in inbox)})
    return Fault(last, Call.of("unmasking", inbox), reject.BAD_SHARE, "a share is not the right one", blamed)


@check(f"{SERVED}/uncommitted", "SAG-28", "ADP-29", operations=SESSIONS, applies=playing.plays(SERVED), examples=24)
def _uncommitted(draw: Any, call: Caller) -> None:
    """A seed that breaks its commitment is refused, and so is a key that was not advertised.

    The right users are blamed.
    """
    uncommitted(draw, call, drawn_rounds.scene(draw, Role.SERVER, sparse=False, spare=1))


def uncommitted(draw: Any, call: Caller, scene: Played) -> None:
    """Judge a server that has another commitment or key than that of a secret.

    In the active profile only a commitment, since signatures are on the keys.
    """
    calls, state = scene.calls(), scene.state(2)
    keyed = state.dropped and scene.inputs.protocol != secagg_active_parties.PROTOCOL
    at, users, name = (0, state.dropped, "masking") if keyed else (1, state.survivors, "commitment")
    inbox = scene.inbox(at)
    places = [place for place, message in enumerate(inbox) if message.sender in users and hasattr(message, name)]
    place = draw(among(places))
    message, data = inbox[place], getattr(inbox[place], name)
    calls[at] = moved(
        calls[at], place, signed(scene.inputs, replace(message, **{name: bytes([data[0] ^ 1]) + data[1:]}))
    )
    t, last = scene.inputs.numbers["t"], _last(scene)
    answers = [scene.inbox(last)[at] for at in strategies.subset(draw, range(len(scene.inbox(last))), t, t)]
    blamed = frozenset({message.sender, *(answer.sender for answer in answers)})
    why = f"user {message.sender} has another {name} than its secret has"
    fault = Fault(last, Call.of("unmasking", answers), reject.BAD_SHARE, why, blamed)
    playing.judge(call, scene, fault, calls=calls[:last])


def _parameters(party: str) -> None:
    @check(f"{party}/parameters", "SAG-01", "SAG-02", operations=SESSIONS, applies=playing.plays(party), examples=40)
    def parameters(draw: Any, call: Caller) -> None:
        """Parameters that the text forbids are refused."""
        inputs = drawn_rounds.secagg(draw)
        wrong = _wrong_numbers(dict(inputs.numbers))
        for name in some(draw, wrong):
            params = {"handle": "h", **inputs.opening(_any(party)), "numbers": {**inputs.numbers, **wrong[name]}}
            why = f"the parameters break a rule ({name})"
            call.refused(NEW, params, reject.BAD_PARAM, why, inputs.rand(_any(party)))

    @check(f"{party}/order", "SAG-04", operations=SESSIONS, applies=playing.plays(party), examples=16)
    def order(draw: Any, call: Caller) -> None:
        """An order of users that is not a permutation of the roster is refused."""
        inputs = drawn_rounds.secagg(draw)
        params = {"handle": "h", **inputs.opening(_any(party))}
        right = params["setup"]["order"]
        wrong: tuple[list[int], ...] = (
            [*right[:-1], right[0]],
            right[:-1],
            [*right, len(right)],
            [len(right), *right[1:]],
            [],
        )
        params["setup"]["order"] = draw(among(wrong))
        call.refused(NEW, params, ORDER, "the order is no permutation", inputs.rand(_any(party)))


def _any(party: str) -> int:
    return 0 if party == USER else SERVER


def _wrong_numbers(numbers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changes that break SAG-01 or SAG-02, by name."""
    N, D, T, k = (numbers[name] for name in ("N", "D", "T", "k"))
    complete = k == N - 1
    wrong: dict[str, dict[str, Any]] = {
        "R below 2": {"R": "1"},
        "R of 0": {"R": "0"},
        "R above 2**32": {"R": str(2**32 + 1)},
        "no element": {"d": 0},
        "nobody colludes": {"T": 0},
        "a negative D": {"D": -1},
        "two honest users are not left": {"D": N - T - 1},
        "nobody is a neighbour": {"k": 0},
        "one neighbour": {"k": 1},
        "as many neighbours as users": {"k": N},
        "a low threshold": {"t": T + 1 if complete else 1},
        "a high threshold": {"t": N - D + 1 if complete else k + 2},
    }
    if not complete and N % 2:
        wrong["half an edge"] = {"k": k + 1 if k + 1 < N - 1 else k - 1}
    return wrong


@check(f"{USER}/update", "SAG-14", operations=SESSIONS, applies=playing.plays(USER), examples=16)
def update(draw: Any, call: Caller) -> None:
    """An input with the wrong length or a number not below R is refused."""
    inputs = drawn_rounds.secagg(draw)
    params, R = {"handle": "h", **inputs.opening(0)}, int(inputs.numbers["R"])
    text = params["setup"]["update"]
    large = min(R, 2**32 - 1).to_bytes(4, "little").hex()
    forms = [(text + "00000000", reject.LENGTH), (text[:-8], reject.LENGTH)]
    forms += [(text[:-8] + large, reject.NONCANONICAL)] if R < 2**32 else []
    params["setup"]["update"], codes = one_of(draw, forms)
    call.refused(NEW, params, codes, "the update is not one", inputs.rand(0))


@check(f"{USER}/user", "SAG-03", operations=SESSIONS, applies=playing.plays(USER), examples=6)
def user(draw: Any, call: Caller) -> None:
    """A user outside the roster is refused."""
    inputs = drawn_rounds.secagg(draw)
    params = {"handle": "h", **inputs.opening(0)}
    params["setup"]["user"] = draw(among((inputs.numbers["N"], 2**31 - 1)))
    why = "the user is not on the roster"
    call.refused(NEW, params, reject.BAD_PARAM | reject.OUTSIDE | reject.MALFORMED, why, inputs.rand(0))


for _party in (_user, _server):
    _parameters(_party.party)
    _party.unharmed(examples=30)


def _script(refusals: Refusals) -> None:
    party = refusals.party
    clauses = ("SAG-10", "SAG-12", "SAG-24") if party == USER else ("SAG-05", "SAG-11", "SAG-17", "SAG-29")
    draws_nothing = party == SERVED

    @check(
        f"{party}/script",
        *clauses,
        *("ADP-20", "ADP-21"),
        applies=lambda caps: draws_nothing or caps.grade(party) == "explicit",
        examples=24,
    )
    def script(draw: Any, call: Caller) -> None:
        """The entries of a script are those of the text, and refused steps leave no trace in it."""
        scene = refusals.session(draw, call.caps)
        playing.judge_script(call, scene, *refusals.drawn(draw, scene, 1))


for _party in (_user, _server):
    _script(_party)
