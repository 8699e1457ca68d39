"""Checks of SecAgg's active profile: signed keys and a signed surviving set (spec/secagg.md, section 10)."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import drawn_rounds, strategies
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.cases.secagg_active_parties import Signing
from secagg_spec.conformance.cases.wrong_signatures import elsewhere
from secagg_spec.conformance.checks import playing, quorums, reject, secagg
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.crypto import wrong_keys
from secagg_spec.conformance.checks.faults import DERIVED, Refusals
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.checks.quorums import Arrival, Quorum, forged
from secagg_spec.conformance.checks.scripts import Fault, placed
from secagg_spec.conformance.checks.secagg import THE_SERVER
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.conformance.sessions.session import Played, moved
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.protocols.secagg.active import SignedKeys, SignedSurvivors
from secagg_spec.protocols.secagg.round import KeyPair
from secagg_spec.protocols.steps import SERVER, Role

USER, SERVED = "secagg_active.user", "secagg_active.server"
_PARTY = "secagg-active.server"
_ROLES = {USER: Role.USER, SERVED: Role.SERVER}


def _refusals(operation: str) -> Refusals:
    """Return what a party refuses: first what it refuses in the semi-honest profile too."""
    role = _ROLES[operation]

    def session(draw: Any, caps: Capabilities, *, spare: int = 0) -> Played:
        return drawn_rounds.active_scene(draw, role, spare=spare)

    made = Refusals(
        operation, session, playing.judge_script, (operation,), playing.explicit(operation), optional=("spare",)
    )
    made.inherit(secagg.BY_ROLE[role], spare=1, without=tuple(DERIVED), more=_MORE)
    return made


_REQUESTS = ("twice", "outside", "both", "without", "unnamed", "unheld")
_MORE = {
    **{f"request-{name}": ("SAG-55",) for name in _REQUESTS},
    "few-survivors": ("SAG-55",),
    "another-request": ("SAG-54",),
}
"""The clauses of this profile that inherited faults break as well."""

_user, _server = map(_refusals, _ROLES)
_server.refuses("input", "SAG-33", "MOD-06", "MOD-07", examples=12)(secagg.wrong_input)
_user.derive(step_again=("SAG-15", "SAG-25", "SAG-54"), no_message=("SAG-36", "SAG-60"))
_server.derive(sender=("SAG-16", "SAG-64"))
playing.right_steps(_user, (24, 16, 12), "SAG-51", "SAG-56", "SAG-60", "SAG-65", "SAG-67")
playing.right_steps(_server, (24, 16, 12), "SAG-59", "SAG-64", "SAG-66", "SAG-67")


def _contexts(scene: Played, right: Context) -> dict[str, Context]:
    """Return other contexts of a signature, by what is wrong with them."""
    numbers = {name: int(value) for name, value in scene.inputs.numbers.items() if name != "t"}
    return elsewhere(right, "secagg", numbers)


def _wrong_on_keys(draw: Any, scene: Played, user: int, pair: KeyPair) -> tuple[bytes, str]:
    """Draw a signature that is not the user's on its keys, and what is wrong with it."""
    signing = Signing(scene.inputs)
    contexts = _contexts(scene, signing.round.context(SignedKeys))
    others = {
        "order": lambda: signing.of_keys(user, KeyPair(pair.masking, pair.sealing)),
        "signer": lambda: signing.of_keys((user + 1) % scene.size, pair),
    }
    return forged(draw, functools.partial(signing.of_keys, user, pair), others, contexts)


Keys = Mapping[int, KeyPair]


def _wrong_on_set(draw: Any, scene: Played, keys: Keys, user: int, members: Sequence[int]) -> tuple[bytes, str]:
    """Draw a signature that is not the user's on the surviving set, and what is wrong with it."""
    signing, right = Signing(scene.inputs), tuple(members)
    contexts = _contexts(scene, signing.round.attempt(keys, SignedSurvivors))
    contexts["no keys"] = signing.round.context(SignedSurvivors)
    contexts["keys"] = signing.round.attempt(_other_keys(keys), SignedSurvivors)
    others = {
        "set": lambda: signing.of_set(keys, user, right[:-1]),
        "signer": lambda: signing.of_set(keys, (user + 1) % scene.size, right),
    }
    return forged(draw, functools.partial(signing.of_set, keys, user, right), others, contexts)


def _other_keys(keys: Keys) -> Keys:
    """Return the keys of another attempt, for which the last user drew a new sealing key."""
    last = max(keys)
    return {**keys, last: replace(keys[last], sealing=public_key(bytes([7]) * 32))}


@_user.refuses("wrong-signed-keys", "SAG-53", "SAG-51", "ADP-21")
def _wrong_signed_keys(draw: Any, scene: Played) -> Fault:
    """Keys with an invalid signature are refused, and the server is blamed."""
    [message] = scene.inbox(1)
    place = draw(st.integers(0, len(message.users) - 1))
    pair = KeyPair(*(getattr(message, name)[32 * place : 32 * place + 32] for name in ("sealing", "masking")))
    wrong, how = _wrong_on_keys(draw, scene, message.users[place], pair)
    together = message.signatures[: 64 * place] + wrong + message.signatures[64 * place + 64 :]
    call = moved(scene.calls()[1], 0, replace(message, signatures=together))
    why = f"a signature on the keys of user {message.users[place]} is not valid ({how})"
    return Fault(1, call, reject.BAD_SIGNATURE, why, THE_SERVER)


@_user.refuses("other-keys", "SAG-53", "ADP-21")
def _other_signed_keys(draw: Any, scene: Played) -> Fault:
    """Keys that the server made itself are refused under the signatures of their owners, and the server is blamed."""
    [message] = scene.inbox(1)
    place, name = draw(st.integers(0, len(message.users) - 1)), draw(among(("sealing", "masking")))
    keys = getattr(message, name)
    own = public_key(bytes([draw(st.integers(1, 255))] * 32))
    changed = replace(message, **{name: keys[: 32 * place] + own + keys[32 * place + 32 :]})
    why = f"the {name} key of user {message.users[place]} is another one than it signed"
    return Fault(1, moved(scene.calls()[1], 0, changed), reject.BAD_SIGNATURE, why, THE_SERVER)


@_user.refuses("key-signature-length", "MSG-02", "SIG-02")
def _key_signature_length(draw: Any, scene: Played) -> Fault:
    """A key list is refused unless it has 64 bytes of signature for each user."""
    [message] = scene.inbox(1)
    data = message.signatures
    wrong = draw(among((data[:-1], data + b"\0", data[:-64], data * 2, b"")))
    call = moved(scene.calls()[1], 0, replace(message, signatures=wrong))
    return Fault(1, call, reject.NOT_64_EACH, f"there are {len(wrong)} bytes of signatures")


@_user.refuses("unbound-payload", "SEA-02", "SAG-67", "SAG-65", "ADP-21")
def _unbound_payload(draw: Any, scene: Played) -> Fault:
    """A payload sealed without the keys of the attempt, with others, or for the other profile does not open."""
    place, message = placed(draw, scene.inbox(2))
    lane, secret = secagg.lane_of(scene, message)
    state = scene.state(1)
    contexts = {
        "without the keys": state.round.context(),
        "with other keys": state.round.sealing_context(_other_keys(state.peers)),
        "for the semi-honest profile": replace(lane.context, protocol="secagg"),
    }
    how = draw(among(sorted(contexts)))
    payload = replace(lane, context=contexts[how]).seal(secret, lane.open(secret, message.payload))
    call = moved(scene.calls()[2], place, replace(message, payload=payload))
    return Fault(2, call, reject.BAD_CIPHERTEXT, f"a payload is sealed {how}", frozenset({message.sender, SERVER}))


def _quorum(draw: Any, scene: Played) -> Quorum:
    """Return the quorum that a user receives."""
    [message], [request] = scene.inbox(4), scene.inbox(3)
    members, keys, signing = tuple(request.survivors), scene.state(1).peers, Signing(scene.inputs)
    outside = [user for user in (*scene.inputs.users, scene.size) if user not in members]
    other = tuple(sorted((*members, outside[0]))) if len(outside) > 1 else members[:-1]
    return Quorum(
        4,
        message,
        scene.inputs.numbers["t"],
        outside,
        lambda user: signing.of_set(keys, user, members),
        lambda user: signing.of_set(keys, user, other),
        lambda draw, user: _wrong_on_set(draw, scene, keys, user, members),
    )


quorums.refuse_quorums(
    _user,
    _quorum,
    few=("SAG-63", "SAG-60"),
    signers=("SAG-61", "SAG-60"),
    order=("SAG-75",),
    signature=("SAG-62", "SAG-60", "SAG-67"),
    spare=1,
)


def _keys(draw: Any, scene: Played) -> Arrival:
    """Return the keys that arrive at the server."""

    def wrong(draw: Any, message: Any) -> tuple[bytes, str]:
        return _wrong_on_keys(draw, scene, message.sender, KeyPair(message.sealing, message.masking))

    return Arrival(0, scene.inbox(0), scene.enough, wrong)


def _signatures(draw: Any, scene: Played) -> Arrival:
    """Return the signatures on the surviving set that arrive at the server."""
    keys, members = scene.state(0).keys, scene.state(2).survivors

    def wrong(draw: Any, message: Any) -> tuple[bytes, str]:
        return _wrong_on_set(draw, scene, keys, message.sender, members)

    return Arrival(3, scene.inbox(3), scene.inputs.numbers["t"], wrong)


quorums.refuse_signatures(_server, _keys, "wrong-signed-keys", "SAG-52", "SAG-51")
quorums.refuse_signatures(_server, _signatures, "wrong-signature", "SAG-57", "SAG-67")
quorums.refuse_few_signatures(_server, _signatures, "SAG-58", "SAG-66")


@check(f"{SERVED}/unsigned-answer", "SAG-64", "ERR-01", applies=playing.explicit(SERVED), examples=24)
def unsigned_answer(draw: Any, call: Caller) -> None:
    """An answer of a survivor that did not sign is refused, and the answers of the signers are enough."""
    scene = drawn_rounds.active_scene(draw, Role.SERVER, spare=1)
    *before, signing, answering = scene.calls()
    t, inbox = scene.inputs.numbers["t"], scene.inbox(4)
    only_if(len(inbox) > t)
    kept = strategies.subset(draw, range(len(inbox)), t, len(inbox) - 1)
    signers = {inbox[at].sender for at in kept}
    signed = [message for message in scene.inbox(3) if message.sender in signers]
    answers = [inbox[at] for at in kept]
    late = one_of(draw, [message for message in inbox if message.sender not in signers])
    calls = [*before, Call.of(signing.phase, signed), Call.of(answering.phase, answers)]
    fault = Fault(4, Call.of(answering.phase, [*answers, late]), reject.NOT_ALLOWED, f"user {late.sender} did not sign")
    playing.judge_script(call, scene, fault, calls=calls)


@check(f"{SERVED}/partial", "SAG-11", "SAG-05", operations=SESSIONS, applies=playing.plays(_PARTY), examples=16)
def partial(draw: Any, call: Caller) -> None:
    """A user whose commitment or any of whose shares is missing is not a sharer: the server relays nothing from it."""
    secagg.partial(draw, call, drawn_rounds.active_scene(draw, Role.SERVER, spare=1))


@check(f"{SERVED}/uncommitted", "SAG-28", "ADP-29", operations=SESSIONS, applies=playing.plays(_PARTY), examples=16)
def uncommitted(draw: Any, call: Caller) -> None:
    """A seed that breaks its commitment is refused."""
    secagg.uncommitted(draw, call, drawn_rounds.active_scene(draw, Role.SERVER, spare=1))


def _whole(operation: str) -> None:
    party = operation.replace("_", "-")
    applies = playing.plays(party)

    def opened(draw: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Draw the two parts of a request that opens a session of the party."""
        inputs = drawn_rounds.active(draw)
        who = 0 if operation == USER else SERVER
        return {"handle": "h", **inputs.opening(who)}, inputs.rand(who)

    @check(f"{operation}/parameters", "SAG-50", "SAG-01", "SAG-02", operations=SESSIONS, applies=applies, examples=24)
    def parameters(draw: Any, call: Caller) -> None:
        """A graph that is not complete is refused, and so is a threshold that lets two sets have a quorum."""
        params, rand = opened(draw)
        numbers = params["numbers"]
        N, D, T = (numbers[name] for name in ("N", "D", "T"))
        wrong = [{"t": (N + T) // 2}, {"t": N - D + 1}, {"D": N - T - 1}, {"k": N}]
        wrong += [{"k": k} for k in (2, N - 2) if 2 <= k < N - 1 and k * N % 2 == 0]
        changed = draw(among(range(len(wrong))))
        params["numbers"] = {**numbers, **wrong[changed]}
        call.refused(NEW, params, reject.BAD_PARAM, f"the parameters break a rule ({wrong[changed]})", rand)

    @check(f"{operation}/verification", "SIG-04", "SIG-05", operations=SESSIONS, applies=applies, examples=12)
    def verification(draw: Any, call: Caller) -> None:
        """Verification keys are refused unless they are N distinct keys of 32 bytes."""
        params, rand = opened(draw)
        setup, keys = params["setup"], params["setup"]["verification"]
        wrong, codes, how = wrong_keys(draw, keys)
        params["setup"] = {**setup, "verification": wrong}
        call.refused(NEW, params, codes, f"the verification keys are wrong ({how})", rand)


for _operation in _ROLES:
    _whole(_operation)


@check(f"{USER}/signing", "SIG-04", operations=SESSIONS, applies=playing.plays("secagg-active.user"), examples=6)
def signing_key(draw: Any, call: Caller) -> None:
    """A private signing key that is not 32 bytes long is refused."""
    inputs = drawn_rounds.active(draw)
    params = {"handle": "h", **inputs.opening(0)}
    key = params["setup"]["signing"]
    params["setup"]["signing"] = draw(among((key[2:], key + "00", "")))
    call.refused(NEW, params, reject.KEY_LENGTH, "the signing key is not 32 bytes long", inputs.rand(0))
