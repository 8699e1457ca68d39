"""Checks of signatures and of the active profile (spec/conventions.md, section 10; spec/lightsecagg.md, section 9)."""

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import lightsecagg_active_parties as parties
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.lightsecagg_active_parties import SERVED, USER, ActiveServer, ActiveUser
from secagg_spec.conformance.cases.lightsecagg_parties import session_id
from secagg_spec.conformance.cases.requests import inserted, one_of
from secagg_spec.conformance.cases.valid import VALID, signed_bytes
from secagg_spec.conformance.cases.wrong_signatures import elsewhere
from secagg_spec.conformance.checks import playing, quorums, reject
from secagg_spec.conformance.checks.base import Caller, Change, Each, Params, check, equal, fail, refuses
from secagg_spec.conformance.checks.crypto import altered, broken_parameters, wrong_keys
from secagg_spec.conformance.checks.faults import Refusals
from secagg_spec.conformance.checks.lightsecagg_scripts import judge
from secagg_spec.conformance.checks.quorums import Arrival, Quorum, forged
from secagg_spec.conformance.checks.scripts import Fault, disordered, placed
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.conformance.sessions.session import exchanged
from secagg_spec.conformance.targets.reference.messages import named
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.crypto import signatures
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg.active import SignedSet
from secagg_spec.protocols.lightsecagg.round import MaskShare, sealing_context
from secagg_spec.protocols.steps import SERVER

_SIGN, _VERIFY = "signature.sign", "signature.verify"
_ORDER = 2**252 + 27742317777372353535851937790883648493
_P25519 = 2**255 - 19
_ORDER_8 = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
_NEUTRAL = b"\1" + bytes(63)
"""R is the neutral point and S is 0. With the cofactor, this signature is valid for all data under a low-order key."""


@check("signature.sign/exact", "SIG-01", examples=25)
def sign(draw: Any, call: Caller) -> None:
    """A signature is Ed25519's over exactly the fields of the text."""
    params = VALID[_SIGN](draw, call.caps).params
    data = signed_bytes(params)
    result = call.result(_SIGN, params)
    equal("the signed bytes are", result.get("signed"), data.hex())
    want = signatures.sign(bytes.fromhex(params["private"]), data).hex()
    equal("the signature is", result.get("signature"), want)


@refuses(_SIGN, "lengths", "SIG-04", examples=2)
def sign_lengths(draw: Any, params: Params) -> Change:
    """Private signing keys and sessions of the wrong length are refused."""
    right = {name: params[name] for name in ("private", "session")}
    name, text = draw(Each((name, wrong) for name in right for wrong in (right[name] + "00", right[name][2:], "")))
    return {name: text}, reject.KEY_LENGTH, f"{name} has {len(text) // 2} bytes"


def _accepted(call: Caller, params: dict[str, Any]) -> None:
    result = dict(call.result(_VERIFY, params))
    if result:
        fail(f"the result is {result}, must be empty", {})


@check("signature.verify/valid", "SIG-02", examples=20)
def verify(draw: Any, call: Caller) -> None:
    """A right signature is accepted."""
    _accepted(call, VALID[_VERIFY](draw, call.caps).params)


@refuses(_VERIFY, "altered", "SIG-02", examples=20)
def verify_altered(draw: Any, params: Params) -> Change:
    """A signature that has a flipped bit, is cut or extended, or was made with another key is refused."""
    if draw(st.booleans()):
        changed = {"signature": altered(draw, bytes.fromhex(params["signature"])).hex()}
    else:
        changed = {"public": signatures.verification_key(bytes([draw(st.integers(1, 255))] * 31 + [7])).hex()}
    return changed, reject.BAD_SIGNATURE, f"{next(iter(changed))} was altered"


@refuses(_VERIFY, "another-context", "SIG-02", "SIG-01", examples=4)
def verify_elsewhere(draw: Any, params: Params) -> Change:
    """A signature over anything else is refused."""
    changes: dict[str, Any] = {
        "protocol": params["protocol"] + "x",
        "parameters": [*params["parameters"][:-1], ["w", "0"]],
        "session": f"{int(params['session'][:2], 16) ^ 1:02x}" + params["session"][2:],
        "round": str(int(params["round"]) ^ 1),
        "purpose": params["purpose"] + "x",
        "type": params["type"] ^ 1,
        "signer": params["signer"] ^ 1,
        "content": [*params["content"], ""],
    }
    name = draw(Each(sorted(changes)))
    return {name: changes[name]}, reject.BAD_SIGNATURE, f"it was made for another {name}"


@refuses(_VERIFY, "S", "SIG-03", examples=12)
def verify_large(draw: Any, params: Params) -> Change:
    """A right signature is refused after the order of the base point was added to S."""
    right = bytes.fromhex(params["signature"])
    S = int.from_bytes(right[32:], "little") + _ORDER
    signature = right[:32] + S.to_bytes(32, "little")
    return {"signature": signature.hex()}, reject.BAD_SIGNATURE, "S is not below the order"


@check("signature.verify/cofactor", "SIG-03", examples=25)
def verify_cofactor(draw: Any, call: Caller) -> None:
    """Under a key of order 8, a signature that holds only with the cofactor is refused; one that holds is accepted."""
    params = {**VALID[_VERIFY](draw, call.caps).params, "public": _ORDER_8, "signature": _NEUTRAL.hex()}
    hashed = _NEUTRAL[:32] + bytes.fromhex(_ORDER_8) + signed_bytes(params)
    k = int.from_bytes(hashlib.sha512(hashed).digest(), "little") % _ORDER
    if k % 8 == 0:
        _accepted(call, params)
    else:
        call.refused(_VERIFY, params, reject.BAD_SIGNATURE, "[S]B - [k]A is not R; only eight times it is")


@check("signature.verify/another-encoding", "SIG-03", examples=20)
def verify_encoding(draw: Any, call: Caller) -> None:
    """Under the neutral point, R = 1 and S = 0 are valid.

    Under a key that RFC 8032 does not decode, nothing is valid.
    """
    params = {**VALID[_VERIFY](draw, call.caps).params, "signature": _NEUTRAL.hex()}
    number = draw(among((1, 2**255 + 1, _P25519 + 1, 2**255 + _P25519 + 1)))
    params["public"] = number.to_bytes(32, "little").hex()
    if number == 1:
        _accepted(call, params)
    else:
        call.refused(_VERIFY, params, reject.BAD_SIGNATURE, "RFC 8032 does not decode the verification key")


@refuses(_VERIFY, "lengths", "SIG-04", examples=2)
def verify_lengths(draw: Any, params: Params) -> Change:
    """Verification keys and sessions of the wrong length are refused."""
    right = {name: params[name] for name in ("public", "session")}
    name, text = draw(Each((name, wrong) for name in right for wrong in (right[name] + "00", right[name][2:], "")))
    return {name: text}, reject.KEY_LENGTH, f"{name} has {len(text) // 2} bytes"


def _speaks(caps: Capabilities) -> bool:
    return caps.offers(USER) or caps.offers(SERVED)


def _message(draw: Any) -> tuple[Message, dict[str, Any]]:
    """Draw a message of the active profile, and its fields as a request holds them."""
    header = session_id(draw), draw(among((0, 256, 2**32 - 1))), draw(among((0, 7, SERVER))), SERVER
    data = draw(st.binary(max_size=9))
    if draw(st.booleans()):
        return SignedSet(*header, data), {"signature": data.hex()}
    users = draw(st.lists(st.sampled_from((0, 1, 258, 2**31 - 1)), max_size=4))
    return lightsecagg_active.Quorum(*header, tuple(users), data), {"signers": users, "signatures": data.hex()}


def _members(message: Message, fields: dict[str, Any]) -> dict[str, Any]:
    shown = {"sender": named(message.sender), "receiver": named(message.receiver)}
    return {"session": message.session.hex(), "round": str(message.round), **shown, "fields": fields}


@check("message.encode/active", "MSG-01", applies=_speaks, examples=20)
def encoded(draw: Any, call: Caller) -> None:
    """The bytes of a message of the active profile are its fields in declared order."""
    message, fields = _message(draw)
    got = call.result("message.encode", {"type": message.TYPE, **_members(message, fields)}).get("bytes")
    want = encode(message).hex()
    equal("the bytes are", got, want)


@check("message.decode/active", "MSG-01", applies=_speaks, examples=20)
def decoded(draw: Any, call: Caller) -> None:
    """The bytes of a message of the active profile decode to its fields."""
    message, fields = _message(draw)
    got = dict(call.result("message.decode", {"type": message.TYPE, "bytes": encode(message).hex()}))
    want = _members(message, fields)
    equal("the message is", got, want)


@check("message.decode/active-broken", "MSG-02", applies=_speaks, examples=20)
def broken(draw: Any, call: Caller) -> None:
    """Bytes that do not decode to a message of the active profile are refused."""
    message, _ = _message(draw)
    data = encode(message)
    wrong = draw(among((data[:-1], data + b"\0", data[:30], b"\x03\x01" + data[2:])))
    params = {"type": message.TYPE, "bytes": wrong.hex()}
    call.refused("message.decode", params, reject.ANOTHER_TYPE, "the bytes are no message of this type")


Party = ActiveUser | ActiveServer


_user = Refusals(USER, parties.user_scene, judge, (USER,), optional=("spare",))
_server = Refusals(SERVED, parties.server_scene, judge, (SERVED,), optional=("spare",))
_user.derive(step_again=("LSA-04", "LSA-12", "LSA-22"), no_message=("LSA-09", "LSA-29"))
_server.derive(sender=("LSA-16", "LSA-36"))
_user.unharmed(examples=20)
_server.unharmed(examples=20)
playing.in_sessions(_user, 24, scripted=False)
playing.in_sessions(_server, 24, scripted=False)


@check(f"{USER}/exact", "LSA-21", "LSA-26", "LSA-31", "LSA-34", "KEY-08", "KEY-09", "SIG-01", "ADP-20", examples=40)
def user(draw: Any, call: Caller) -> None:
    """A user's messages are those of the text: what it seals, what it signs, and what it answers."""
    judge(call, parties.user_scene(draw, call.caps))


def _announcing(scene: ActiveUser, members: tuple[int, ...]) -> Call:
    return Call("confirm", (encode(scene.announced(members)),))


@_user.refuses("small-set", "LSA-09")
def _small_set(draw: Any, scene: ActiveUser) -> Fault:
    """The user does not sign a surviving set of fewer than T + 2 users."""
    others = [user for user in scene.surviving if user != scene.party]
    members = [scene.party, *strategies.subset(draw, others, 0, scene.agreed.numbers["T"])]
    return Fault(2, _announcing(scene, tuple(sorted(members))), reject.TOO_FEW, f"{len(members)} users survive")


@_user.refuses("set", "LSA-10", "LSA-11")
def _set(draw: Any, scene: ActiveUser) -> Fault:
    """The user does not sign a set with a user named twice, outside the roster, or whose share is not held."""
    N = scene.agreed.numbers["N"]
    missing = [user for user in range(N) if user != scene.party and user not in scene.received]
    added = draw(among((draw(among(scene.surviving)), N, SERVER, *missing)))
    again = added in scene.surviving
    members = inserted(draw, scene.surviving, added) if again else sorted((*scene.surviving, added))
    why = f"the set names {added} as well"
    return Fault(2, _announcing(scene, tuple(members)), reject.TWICE if again else reject.OUTSIDE, why)


@_user.refuses("set-order", "LSA-32", "ADP-21")
def _set_order(draw: Any, scene: ActiveUser) -> Fault:
    """The user does not sign a surviving set that is not in ascending order, and blames the server."""
    members = disordered(draw, scene.surviving)
    return Fault(2, _announcing(scene, members), reject.MALFORMED, f"the set is {list(members)}", frozenset({SERVER}))


@_user.refuses("left-out", "LSA-20", spare=1)
def _left_out(draw: Any, scene: ActiveUser) -> Fault:
    """The user does not sign a surviving set without itself."""
    enough = scene.agreed.numbers["T"] + 2
    only_if(len(scene.received) >= enough)
    members = tuple(sorted(strategies.subset(draw, sorted(scene.received), enough)))
    return Fault(2, _announcing(scene, members), reject.OUTSIDE, f"the set is without user {scene.party}")


@_user.refuses("another-set", "LSA-22")
def _another_set(draw: Any, scene: ActiveUser) -> Fault:
    """A user that signed one set does not sign another, even after it has answered."""
    others = strategies.subset(draw, sorted(scene.received), scene.agreed.numbers["T"] + 1)
    before = draw(among((3, 4)))
    why = "a set was signed before"
    return Fault(before, _announcing(scene, tuple(sorted([scene.party, *others]))), reject.AGAIN, why)


def _not_valid(draw: Any, scene: Party, user: int) -> tuple[bytes, str]:
    """Draw 64 bytes that are not a user's signature on the surviving set, and what is wrong with them."""
    members, signed = tuple(scene.surviving), scene.signed
    numbers = {name: n for name, n in scene.agreed.numbers.items() if name != "W"}
    context = signed.context(SignedSet)
    contexts = elsewhere(context, "lightsecagg", numbers)
    contexts["W"] = replace(context, parameters=_bound(scene, signed.roster.sealing.hash, without="W"))
    contexts["no keys"] = replace(context, parameters=_bound(scene, None))
    contexts["keys"] = replace(context, parameters=_bound(scene, _fresh(signed.roster.sealing).hash))
    others = {
        "set": lambda: signed.signature(user, members[:-1] if len(members) > 1 else (*members, user + 1)),
        "signer": lambda: signed.signature((user + 1) % len(signed.keys), members),
    }
    return forged(draw, partial(signed.signature, user, members), others, contexts)


def _bound(scene: Party, keys: bytes | None, without: str = "") -> bytes:
    """Return the hash of a scene's parameters, without one of them if `without` names it, and of `keys` if given."""
    return hash_parameters({name: n for name, n in scene.agreed.numbers.items() if name != without}, keys)


def _fresh(roster: Roster) -> Roster:
    """Return the sealing keys of another attempt, for which the last user drew a new key."""
    return Roster((*roster.keys[:-1], public_key(bytes([7]) * 32)))


def _quorum(draw: Any, scene: ActiveUser) -> Quorum:
    """Return the quorum that a user receives."""
    signed, members = scene.signed, scene.surviving
    outside = [user for user in (*range(scene.size), scene.size) if user not in members]
    other = (*members, outside[0]) if len(outside) > 1 else members[:-1]
    return Quorum(
        3,
        scene.quorum(scene.signers),
        scene.agreed.numbers["W"],
        outside,
        lambda user: signed.signature(min(user, scene.size - 1), members),
        lambda user: signed.signature(user, other),
        lambda draw, user: _not_valid(draw, scene, user),
    )


quorums.refuse_quorums(
    _user,
    _quorum,
    few=("LSA-29", "LSA-26"),
    signers=("LSA-27", "LSA-26"),
    order=("LSA-33",),
    signature=("LSA-28", "LSA-26", "LSA-34"),
)


@_user.refuses("payload", "SEA-02", "LSA-31", "LSA-34", "ADP-21")
def _payload(draw: Any, scene: ActiveUser) -> Fault:
    """A payload that was altered, or sealed in another profile or for another attempt, does not open.

    Its sender and the server are blamed.
    """
    place, message = placed(draw, scene.shares())
    how = draw(among(("altered", "profile", "attempt")))
    if how == "altered":
        payload = altered(draw, message.payload)
    else:
        context = sealing_context(scene.agreed.parameters, *scene.agreed.header)
        if how == "attempt":
            keys = draw(among((None, _fresh(scene.signed.roster.sealing).hash)))
            context = replace(scene.signed.context(MaskShare), parameters=_bound(scene, keys))
        payload = scene.share_from(message.sender, context).payload
    call = exchanged(scene.calls()[1], place, encode(replace(message, payload=payload)))
    return Fault(1, call, reject.BAD_CIPHERTEXT, "a payload does not open", frozenset({message.sender, SERVER}))


@check(f"{SERVED}/exact", "LSA-25", "LSA-30", "LSA-06", "ADP-20", examples=20)
def server(draw: Any, call: Caller) -> None:
    """The server sends each signer all signers, in ascending order and with their signatures, and returns the sum."""
    judge(call, parties.server_scene(draw, call.caps))


def _signatures(draw: Any, scene: ActiveServer) -> Arrival:
    """Return the signatures that arrive at the server."""

    def wrong(draw: Any, message: SignedSet) -> tuple[bytes, str]:
        return _not_valid(draw, scene, message.sender)

    return Arrival(2, scene.inbox(2), scene.agreed.numbers["W"], wrong)


quorums.refuse_signatures(_server, _signatures, "wrong-signature", "LSA-24", "LSA-34")
quorums.refuse_few_signatures(_server, _signatures, "LSA-23", "LSA-30")


@_server.refuses("unsigned-answer", "LSA-36", spare=1)
def _unsigned_answer(draw: Any, scene: ActiveServer) -> Fault:
    """An aggregated share of a survivor that did not sign is refused."""
    unsigned = sorted(set(scene.surviving) - set(scene.signers))
    only_if(bool(unsigned) and scene.own_code)
    user = draw(among(unsigned))
    more = replace(one_of(draw, scene.answers), sender=user)
    return Fault(3, Call.of("recover", [*scene.answers, more]), reject.NOT_ALLOWED, f"user {user} did not sign")


def _whole(refusals: Refusals) -> None:
    operation = refusals.party

    @check(f"{operation}/W", "LSA-19", examples=12)
    def threshold(draw: Any, call: Caller) -> None:
        """W is refused if two quorums need not share an honest user, or if N - D users cannot reach W."""
        scene = refusals.session(draw, call.caps)
        N, D, T = (scene.agreed.numbers[name] for name in ("N", "D", "T"))
        W = draw(among(((N + T) // 2, N - D + 1, 0)))
        params = {**scene.params(scene.calls()), "W": W}
        rand = _sampled(call, scene)
        call.refused(operation, params, reject.BAD_PARAM, f"W = {W} breaks LSA-19 with N = {N}, D = {D}, T = {T}", rand)

    @check(f"{operation}/verification", "SIG-04", "SIG-05", "KEY-03", "KEY-04", examples=12)
    def verification(draw: Any, call: Caller) -> None:
        """Verification or sealing keys are refused unless they are N distinct keys of 32 bytes."""
        scene = refusals.session(draw, call.caps)
        params = scene.params([])
        name = draw(among(("roster", "verification")))
        params[name], codes, changed = wrong_keys(draw, params[name])
        call.refused(operation, params, codes, f"{name} is wrong ({changed})", _sampled(call, scene))


def _sampled(call: Caller, scene: Party) -> dict[str, Any] | None:
    return call.randomness(USER, scene.rand()) if scene.rand() else None


@check(f"{USER}/keys", "KEY-03", "KEY-04", "SIG-04", examples=12)
def user_keys(draw: Any, call: Caller) -> None:
    """Private keys must be 32 bytes long, and public keys 32 bytes long and all different; others are refused."""
    scene = parties.user_scene(draw, call.caps)
    params = scene.params([])
    name = draw(among(("private", "signing", "equal", "roster")))
    if name in ("private", "signing"):
        params[name] = draw(among((params[name][2:], params[name] + "00", "")))
    else:
        keys: list[str] = params["roster"]
        params["roster"] = [keys[1] if name == "equal" else keys[0] + "00", *keys[1:]]
    codes = reject.EQUAL_KEYS if name == "equal" else reject.KEY_LENGTH
    call.refused(USER, params, codes, f"the keys are wrong ({name})", _sampled(call, scene))


for _party in (_user, _server):
    _whole(_party)
    broken_parameters(_party.party)
