"""Checks of a party of LightSecAgg, step by step: what it refuses, without any effect (spec/adapter.md, section 4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import lightsecagg_parties, strategies
from secagg_spec.conformance.cases.lightsecagg_parties import ServerSession, UserSession
from secagg_spec.conformance.cases.requests import exchanged_element, inserted, too_large, vandermonde
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.base import Caller, check, fail, same, suits
from secagg_spec.conformance.checks.crypto import altered, broken_parameters, low_order
from secagg_spec.conformance.checks.faults import Refusals
from secagg_spec.conformance.checks.scripts import (
    Entries,
    Fault,
    ask,
    compare_entries,
    demand_refused,
    disordered,
    drop_faults,
    placed,
    right_step,
    sent,
    taken,
    with_faults,
)
from secagg_spec.conformance.sessions.choices import among, any_of, only_if
from secagg_spec.conformance.sessions.session import Session, exchanged
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.codec import Message, encode, vector_bytes, vector_from_bytes
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, MaskShare
from secagg_spec.protocols.steps import SERVER

_USER, _SERVER = "lightsecagg.user", "lightsecagg.server"


def take_prefix(op: str, calls: Sequence[Call], entries: Entries) -> None:
    """Demand that the first steps, which are right, were taken, when their messages cannot be compared."""
    with right_step(op):
        for step, entry in zip(calls, entries, strict=False):
            taken(op, entry, step.phase)


def judge(call: Caller, scene: Session, *faults: Fault) -> None:
    """Run a script with some steps that must be refused. The others must come out as they do without these.

    A user that draws its own mask and noise, or shares it with another code, is judged by relation.
    """
    op = scene.operation
    exact = call.caps.grade(op) == "explicit" and vandermonde(call.caps)
    if exact or not isinstance(scene, UserSession):
        playing.judge_script(call, scene, *faults)
        return
    call.by_relation = True
    right = scene.calls()
    steps = with_faults(right, faults)
    entries = ask(call, op, scene.params([step for step, _ in steps]), call.randomness(op, scene.rand()))
    first = next((at for at, (_, fault) in enumerate(steps) if fault is not None), 0)
    take_prefix(op, right[:first], entries)
    _relate(call, scene, right, drop_faults(call, op, entries, [fault for _, fault in steps]))


def _relate(call: Caller, scene: UserSession, calls: list[Call], entries: Entries) -> None:
    """Check relations between the messages of a user that draws its own mask and noise."""
    op = scene.operation
    messages = {step.phase: sent(op, entry, step.phase) for step, entry in zip(calls, entries, strict=True)}
    if "confirm" in messages:
        at = [step.phase for step in calls].index("confirm")
        compare_entries(op, calls[at : at + 1], entries[at : at + 1], scene.entries(calls)[at : at + 1])
    shares = _own_shares(scene, messages.get("share", []))
    if not shares:
        return
    decoded = _decoded(call.caps, scene, shares)
    if "upload" in messages:
        masked = _single(scene, messages["upload"], MaskedUpdate).masked
        field = scene.agreed.parameters.field
        if masked.shape != scene.update.shape:
            fail(f"{op}: masked has {masked.size} elements, must have {scene.update.size}")
        if decoded is not None:
            same("masked update", masked, field.add(scene.update, decoded[0]))
    if "recover" in messages and decoded is not None:
        share = _single(scene, messages["recover"], AggregatedShare).share
        others = [scene.received[user] for user in scene.surviving if user != scene.party]
        want = scene.agreed.parameters.field.sum(np.stack([*others, decoded[1]]))
        if share.shape != want.shape:
            fail(f"{op}: share has {share.size} elements, must have {want.size}")
        same("aggregated share", share, want)


def _own_shares(scene: UserSession, sent: Sequence[Message]) -> dict[int, UintArray]:
    """Return the shares that a user sent, by receiver. There must be one for each other user, with the right header."""
    if not sent:
        return {}
    shares = dict[int, UintArray]()
    for message in sent:
        if not isinstance(message, MaskShare) or _header(message)[:3] != (*scene.agreed.header, scene.party):
            fail(f"{scene.operation}: the step share sends a message with a wrong header or type")
        try:
            plaintext = scene.channel(message.receiver).open(scene.party, message.receiver, message.payload)
            shares[message.receiver] = scene.agreed.parameters.field.check("share", vector_from_bytes(plaintext), None)
        except (IndexError, ParameterError, ProtocolError) as error:
            fail(f"{scene.operation}: the share for {message.receiver} is not one: {error}")
    others = sorted(set(range(scene.size)) - {scene.party})
    if sorted(shares) != others or len(sent) != len(others):
        fail(f"{scene.operation}: shares go to {sorted(shares)}, must go to each of {others} once")
    return shares


def _header(message: Message) -> tuple[bytes, int, int, int]:
    return message.session, message.round, message.sender, message.receiver


def _decoded(
    caps: Capabilities, scene: UserSession, shares: dict[int, UintArray]
) -> tuple[UintArray, UintArray] | None:
    """Return the mask and the user's own share, from the other users' shares, or None if these do not suffice."""
    numbers, d = scene.agreed.numbers, scene.update.size
    code = MaskCode(PrimeField(numbers["q"]), numbers["N"], numbers["U"], numbers["T"])
    users = sorted(shares)[: code.U]
    if not vandermonde(caps) or len(users) < code.U:
        return None
    rows = np.stack([shares[user] for user in users])
    own = code.columns[:, [scene.party]].T
    system = np.ascontiguousarray(code.columns[:, users].T)
    mask = code.decode(sorted(shares), np.stack([shares[user] for user in sorted(shares)]), d)
    return mask, code.field.matmul(np.ascontiguousarray(own), code.field.solve(system, rows)).reshape(-1)


def _single(scene: UserSession, sent: Sequence[Any], kind: type[Any]) -> Any:
    want = (*scene.agreed.header, scene.party, SERVER)
    if len(sent) != 1 or not isinstance(sent[0], kind) or _header(sent[0]) != want:
        fail(f"{scene.operation}: must send one {kind.__name__} to the server")
    return sent[0]


def _server_session(draw: Any, caps: Capabilities, *, spare: int = 0) -> ServerSession:
    return lightsecagg_parties.server_scene(draw, caps, spare)


_user = Refusals(_USER, lightsecagg_parties.user_scene, judge, (_USER,), examples=30)
_server = Refusals(_SERVER, _server_session, judge, (_SERVER,), examples=30)
_user.derive(step_again=("LSA-04", "LSA-12"), no_message=("LSA-09",))
_server.derive()
_user.unharmed("ADP-20", examples=40)
_server.unharmed("ADP-20", examples=40)
playing.in_sessions(_user, 24, scripted=False)
playing.in_sessions(_server, 24, scripted=False)


@check(f"{_USER}/exact", "LSA-02", "LSA-08", "MSG-01", "ADP-20", examples=60)
def user(draw: Any, call: Caller) -> None:
    """Over the plain channel, a user's messages are those of the text."""
    judge(call, lightsecagg_parties.user_scene(draw, call.caps))


@check(f"{_USER}/sealed", "LSA-18", "SEA-01", "KEY-02", examples=40)
def sealed_user(draw: Any, call: Caller) -> None:
    """Over the sealed channel, payloads are sealed for this session, round, sender, receiver and message type."""
    judge(call, lightsecagg_parties.user_scene(draw, call.caps, sealed=True))


@check(f"{_USER}/refused-shares", "ERR-01", "LSA-11", examples=25)
def user_forgets(draw: Any, call: Caller) -> None:
    """A share that came only in a refused step is not held: a surviving set with its sender is refused."""
    scene = lightsecagg_parties.user_scene(draw, call.caps)
    N, q = scene.agreed.numbers["N"], scene.agreed.numbers["q"]
    sender = any_of(draw, [user for user in range(N) if user not in scene.surviving])
    share = strategies.vector(draw, q, scene.noise.shape[1])
    right = replace(scene, received={user: given for user, given in scene.received.items() if user != sender})
    more = replace(right, received={**right.received, sender: share})
    refused = spoiled(draw, 1, Call("upload"), more.shares(), N)
    members = tuple(sorted((*scene.surviving, sender)))
    why = f"the share of user {sender} came only in a refused step"
    asked = Fault(2, Call("recover", (encode(scene.announced(members)),)), reject.OUTSIDE, why)
    judge(call, right, refused, asked)


def spoiled(draw: Any, before: int, call: Call, messages: Sequence[Any], N: int) -> Fault:
    """Draw a step that is refused for only one of its messages. The other messages are right and in any order."""
    order = strategies.shuffled(draw, range(len(messages)))
    inbox = [encode(messages[at]) for at in order]
    chosen = messages[draw(st.integers(0, len(messages) - 1))]
    wrong = {
        "a sender sent two messages": (encode(chosen), reject.SECOND),
        "a sender is not on the roster": (encode(replace(chosen, sender=N)), reject.STRANGER),
        "some bytes are no message": (encode(chosen)[:-1], reject.ANOTHER_TYPE),
    }
    why = draw(among(sorted(wrong)))
    data, codes = wrong[why]
    return Fault(before, replace(call, inbox=tuple(inserted(draw, inbox, data))), codes, why)


@_user.refuses("vector", "MOD-06", "MOD-07")
def _user_vector(draw: Any, scene: UserSession) -> Fault:
    """A share with the wrong length or a number not below q is refused."""
    shares = scene.shares()
    place, message = placed(draw, shares)
    payload = _wrong_vector(draw, scene.received[message.sender], scene.agreed.numbers["q"])
    data = encode(replace(message, payload=payload))
    return Fault(1, exchanged(scene.calls()[1], place, data), reject.BAD_VECTOR, "a share is not L elements")


def _wrong_vector(draw: Any, vector: UintArray, q: int) -> bytes:
    how = draw(among(("element", "longer", "shorter", "cut", "trailing")))
    if how == "element":
        return vector_bytes(too_large(draw, vector, q))
    if how == "longer":
        return vector_bytes(np.concatenate([vector, np.zeros(1, np.uint64)]))
    if how == "shorter":
        return vector_bytes(vector[:-1])
    return vector_bytes(vector)[:-1] if how == "cut" else vector_bytes(vector) + b"\0"


@_user.refuses("another-set", "LSA-12")
def _user_another_set(draw: Any, scene: UserSession) -> Fault:
    """A user that released a share for one set does not release one for another set."""
    users = tuple(
        sorted({scene.party, *strategies.subset(draw, sorted(scene.received), scene.agreed.numbers["T"] + 1)})
    )
    return Fault(3, Call("recover", (encode(scene.announced(users)),)), reject.AGAIN, "a share was released before")


@_user.refuses("small-set", "LSA-09")
def _user_small_set(draw: Any, scene: UserSession) -> Fault:
    """A surviving set of fewer than T + 2 users is refused."""
    T = scene.agreed.numbers["T"]
    members = tuple(sorted(strategies.subset(draw, scene.surviving, 0, T + 1)))
    why = f"{len(members)} users survive"
    return Fault(2, Call("recover", (encode(scene.announced(members)),)), reject.TOO_FEW, why)


@_user.refuses("set", "LSA-10", "LSA-11")
def _user_set(draw: Any, scene: UserSession) -> Fault:
    """A set is refused if it names a user twice, a user outside the roster, or a user whose share is not held."""
    N = scene.agreed.numbers["N"]
    missing = [user for user in range(N) if user != scene.party and user not in scene.received]
    added = draw(among((draw(among(scene.surviving)), N, SERVER, *missing)))
    again = added in scene.surviving
    users = tuple(inserted(draw, scene.surviving, added) if again else sorted((*scene.surviving, added)))
    codes = reject.TWICE if again else reject.OUTSIDE
    return Fault(2, Call("recover", (encode(scene.announced(users)),)), codes, f"the set names {added} as well")


@_user.refuses("set-order", "LSA-32", "ADP-21")
def _user_set_order(draw: Any, scene: UserSession) -> Fault:
    """A surviving set that is not in ascending order is refused, and the server is blamed."""
    users = disordered(draw, scene.surviving)
    call = Call("recover", (encode(scene.announced(users)),))
    return Fault(2, call, reject.MALFORMED, f"the set is {list(users)}", frozenset({SERVER}))


@_user.refuses("payload", "SEA-02", "ADP-21", sealed=True)
def _user_payload(draw: Any, scene: UserSession) -> Fault:
    """A payload that does not open is refused, and its sender and the server are blamed."""
    shares = scene.shares()
    place, message = placed(draw, shares)
    swapped = len(shares) > 1 and draw(st.booleans())
    payload = shares[place - 1].payload if swapped else altered(draw, message.payload)
    call = exchanged(scene.calls()[1], place, encode(replace(message, payload=payload)))
    return Fault(1, call, reject.BAD_CIPHERTEXT, "a payload does not open", frozenset({message.sender, SERVER}))


@check(f"{_USER}/low-order", "KEY-01", "ERR-01", examples=15)
def user_weak_key(draw: Any, call: Caller) -> None:
    """If the roster has a public key of low order, the user shares nothing, however often it is asked."""
    scene = lightsecagg_parties.user_scene(draw, call.caps, sealed=True)
    params = scene.params([Call("share"), Call("share")])
    roster = list(params["channel"]["roster"])
    weak = draw(among([user for user in range(len(roster)) if user != scene.party]))
    roster[weak] = low_order(draw).hex()
    params["channel"] = {**params["channel"], "roster": roster}
    entries = ask(call, _USER, params, call.randomness(_USER, scene.rand()))
    fault = Fault(0, Call("share"), reject.WEAK_KEY, f"the key of user {weak} is of low order")
    for entry in entries:
        demand_refused(call, _USER, entry, fault)


@check(f"{_USER}/roster", "KEY-03", "KEY-04", "ERR-02", examples=20)
def user_roster(draw: Any, call: Caller) -> None:
    """A roster is refused if it does not have N keys, if two keys are equal, or if a key has the wrong length."""
    scene = lightsecagg_parties.user_scene(draw, call.caps, sealed=True)
    params = scene.params([])
    roster, private = list(params["channel"]["roster"]), params["channel"]["private"]
    changed = draw(among(("equal", "public", "private", "more", "fewer")))
    rosters = {
        "equal": [roster[1], *roster[1:]],
        "public": [roster[0] + "00", *roster[1:]],
        "more": [*roster, "07" * 32],
        "fewer": roster[:-1],
    }
    params["channel"] = {
        "private": private[2:] if changed == "private" else private,
        "roster": rosters.get(changed, roster),
    }
    codes = reject.EQUAL_KEYS if changed == "equal" else reject.KEY_LENGTH
    call.refused(_USER, params, codes, f"the roster is wrong ({changed})", call.randomness(_USER, scene.rand()))


@check(f"{_USER}/update", "LSA-03", examples=15)
def user_update(draw: Any, call: Caller) -> None:
    """An update with the wrong length or a number not below q is refused."""
    scene = lightsecagg_parties.user_scene(draw, call.caps)
    params, q = scene.params(scene.calls()), scene.agreed.numbers["q"]
    how = draw(among(("longer", "shorter", "element")))
    changes = {
        "longer": [*scene.update, 0],
        "shorter": scene.update[: draw(st.integers(0, scene.update.size - 1))],
        "element": too_large(draw, scene.update, q),
    }
    changed = np.array(changes[how], dtype=np.uint64)
    why = "a number of the update is not below q" if how == "element" else f"the update is {how} than d"
    codes = reject.NONCANONICAL if how == "element" else reject.LENGTH
    call.refused(_USER, {**params, "update": pack(changed)}, codes, why, call.randomness(_USER, scene.rand()))


@check(f"{_USER}/request", "ERR-02", examples=25)
def user_request(draw: Any, call: Caller) -> None:
    """A session of the wrong length, a round outside its range, or a user outside the roster is refused."""
    scene = lightsecagg_parties.user_scene(draw, call.caps, sealed=draw(st.booleans()))
    params = scene.params(scene.calls())
    N, asked = scene.agreed.numbers["N"], call.randomness(_USER, scene.rand())
    user = draw(among((N, -1, 2**31 - 1)))
    changes: tuple[dict[str, Any], ...] = ({"user": user}, *_wrong_headers(draw, params))
    _not_begun(draw, call, _USER, params, changes, asked)


def _wrong_headers(draw: Any, params: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    session = params["session"]
    wrong = draw(among((session[:2], session[:-2], session + "00", "")))
    return {"session": wrong}, {"round": draw(among((str(2**32), "-1")))}


def _not_begun(
    draw: Any,
    call: Caller,
    op: str,
    params: dict[str, Any],
    changes: Sequence[dict[str, Any]],
    rand: dict[str, Any] | None,
) -> None:
    """Demand that a script with one of some changes is refused as a whole."""
    changed = draw(among(changes))
    codes = reject.KEY_LENGTH if "session" in changed else reject.OUT_OF_RANGE
    call.refused(op, {**params, **changed}, codes, f"the request has {changed}", rand)


@check(f"{_SERVER}/exact", "LSA-05", "LSA-06", "LSA-13", "ADP-20", examples=60)
def server(draw: Any, call: Caller) -> None:
    """The server relays exactly the complete sets of shares, announces who uploaded, and returns the sum."""
    judge(call, lightsecagg_parties.server_scene(draw, call.caps))


@check(f"{_SERVER}/refused-updates", "ERR-01", "LSA-06", examples=25)
def server_forgets(draw: Any, call: Caller) -> None:
    """A masked update that came only in a refused step does not count: its sender does not survive."""
    scene = lightsecagg_parties.server_scene(draw, call.caps)
    numbers, header = scene.agreed.numbers, scene.agreed.header
    sender = any_of(draw, [user for user in range(numbers["N"]) if user not in scene.surviving])
    receivers = [user for user in range(numbers["N"]) if user != sender]
    complete = [MaskShare(*header, sender, receiver, b"") for receiver in receivers]
    others = [message for message in scene.shares if message.sender != sender]
    right = replace(scene, shares=(*others, *complete))
    update = MaskedUpdate(*header, sender, SERVER, strategies.vector(draw, numbers["q"], numbers["d"]))
    judge(call, right, spoiled(draw, 1, Call("upload"), [*scene.updates, update], numbers["N"]))


@check(f"{_SERVER}/no-sharer", "LSA-40", "LSA-07", examples=15)
def server_without_sharers(draw: Any, call: Caller) -> None:
    """The server takes its first step without any sharer, relays nothing, and ends the round in the next step."""
    scene = lightsecagg_parties.server_scene(draw, call.caps)
    kept = [message for message in scene.shares if message.receiver != (0 if message.sender else 1)]
    inbox = tuple(encode(message) for message in kept) if draw(st.booleans()) else ()
    params = scene.params([Call("share", inbox), Call("upload")])
    shared, ended = ask(call, _SERVER, params, None)
    if taken(_SERVER, shared, "share"):
        fail(f"{_SERVER}: the step share relays messages, and there is no sharer")
    demand_refused(call, _SERVER, ended, Fault(1, Call("upload"), reject.TOO_FEW, "there is no sharer"))


@check(f"{_SERVER}/request", "ERR-02", examples=15)
def server_request(draw: Any, call: Caller) -> None:
    """A session of the wrong length or a round outside its range is refused."""
    scene = lightsecagg_parties.server_scene(draw, call.caps)
    params = scene.params(scene.calls())
    _not_begun(draw, call, _SERVER, params, _wrong_headers(draw, params), None)


@_server.refuses("vector", "MOD-06", "MOD-07")
def _server_vector(draw: Any, scene: ServerSession) -> Fault:
    """A vector with the wrong length or a number not below q is refused."""
    at = draw(st.integers(1, len(scene.inboxes) - 1))
    place, message = placed(draw, scene.inbox(at))
    name = "masked" if at == 1 else "share"
    vector, q = getattr(message, name), scene.agreed.numbers["q"]
    how = draw(among(("element", "shorter", "longer")))
    changes = {
        "element": too_large(draw, vector, q),
        "shorter": vector[:-1],
        "longer": np.concatenate([vector, vector[:1]]),
    }
    changed = changes[how]
    data = encode(replace(message, **{name: changed}))
    return Fault(at, exchanged(scene.calls()[at], place, data), reject.BAD_VECTOR, f"{name} is no vector of the text")


@_server.refuses("non-sharer", "LSA-16", "LSA-05")
def _server_non_sharer(draw: Any, scene: ServerSession) -> Fault:
    """A masked update from a user whose shares did not all arrive is refused."""
    N = scene.agreed.numbers["N"]
    sent = [message.sender for message in scene.shares]
    call, stranger = scene.calls()[1], any_of(draw, [user for user in range(N) if sent.count(user) < N - 1])
    data = encode(replace(scene.updates[0], sender=stranger))
    return Fault(1, replace(call, inbox=(*call.inbox, data)), reject.NOT_ALLOWED, f"user {stranger} is not a sharer")


@_server.refuses("non-survivor", "LSA-16")
def _server_non_survivor(draw: Any, scene: ServerSession) -> Fault:
    """An answer from a user outside the surviving set is refused."""
    outside = [user for user in range(scene.agreed.numbers["N"]) if user not in scene.surviving]
    only_if(outside and scene.own_code)
    call, stranger = scene.calls()[2], draw(among(outside))
    data = encode(replace(scene.answers[0], sender=stranger))
    return Fault(2, replace(call, inbox=(*call.inbox, data)), reject.NOT_ALLOWED, f"user {stranger} does not survive")


@_server.refuses("few-updates", "LSA-07")
def _server_few_updates(draw: Any, scene: ServerSession) -> Fault:
    """With fewer than U or T + 2 masked updates the step is refused; with enough it works."""
    numbers = scene.agreed.numbers
    fewer = draw(st.integers(0, max(numbers["U"], numbers["T"] + 2) - 1))
    call = scene.calls()[1]
    return Fault(1, replace(call, inbox=call.inbox[:fewer]), reject.TOO_FEW, f"{fewer} masked updates are too few")


@_server.refuses("few-answers", "LSA-14")
def _server_few_answers(draw: Any, scene: ServerSession) -> Fault:
    """With fewer than U answers the step is refused; with U answers it works."""
    only_if(scene.own_code)
    fewer = draw(st.integers(0, scene.agreed.numbers["U"] - 1))
    call = scene.calls()[2]
    return Fault(2, replace(call, inbox=call.inbox[:fewer]), reject.TOO_FEW, f"{fewer} answers are too few")


@_server.refuses("bad-share", "LSA-15", "ADP-21", applies=suits(_SERVER, spare=1, own_code=True), spare=1)
def _server_bad_share(draw: Any, scene: ServerSession) -> Fault:
    """More than U answers that do not lie on one codeword are refused, and all who answered are blamed."""
    place, message = placed(draw, scene.answers)
    share = exchanged_element(draw, message.share, scene.agreed.numbers["q"])
    call = exchanged(scene.calls()[2], place, encode(replace(message, share=share)))
    blamed = frozenset(message.sender for message in scene.answers)
    return Fault(2, call, reject.BAD_SHARE, "one answer was altered", blamed)


for _name in (_USER, _SERVER):
    broken_parameters(_name)
