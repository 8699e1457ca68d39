"""Checks of BASecAgg's active profile: a signed buffer and its quorum (spec/basecagg.md, section 11)."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import basecagg_parties, basecagg_sessions
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.cases.wrong_signatures import elsewhere
from secagg_spec.conformance.checks import basecagg_scripts, playing, quorums, reject
from secagg_spec.conformance.checks.base import Caller, check
from secagg_spec.conformance.checks.basecagg_scripts import LATE, buffers, explicit
from secagg_spec.conformance.checks.crypto import wrong_keys
from secagg_spec.conformance.checks.faults import DERIVED, IN_ANY_ORDER, Refusals
from secagg_spec.conformance.checks.playing import NEW, SESSIONS
from secagg_spec.conformance.checks.quorums import Arrival, Quorum, forged
from secagg_spec.conformance.checks.scripts import Fault, placed
from secagg_spec.conformance.sessions.choices import among, any_of, only_if
from secagg_spec.conformance.sessions.session import Played, base_of, moved
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.protocols.codec import vector_bytes
from secagg_spec.protocols.steps import SERVER, Role

_ROLES = {basecagg_parties.ACTIVE_USER: Role.USER, basecagg_parties.ACTIVE_SERVED: Role.SERVER}


def _refusals(party: str) -> Refusals:
    """Return what a party refuses: first what it refuses in the semi-honest profile too."""

    def session(draw: Any, caps: Capabilities, **given: Any) -> Played:
        return basecagg_parties.SCENES[party](draw, **given)

    made = Refusals(party, session, playing.judge_script, (party,), explicit(party))
    kept = ("least", "latest", "session", "spare")
    more = {"answered-round": ("BSA-39",), "second-answer": ("BSA-39",)}
    made.inherit(basecagg_scripts.BY_ROLE[_ROLES[party]], without=tuple(DERIVED), keep=kept, more=more, examples=8)
    return made


_user, _server = map(_refusals, _ROLES)
_user.derive(*IN_ANY_ORDER, no_message=("BSA-08", "BSA-21", "BSA-43"))
_server.derive(*IN_ANY_ORDER, sender=("BSA-46",))
playing.right_steps(_user, (30, 20, 12), "BSA-38", "BSA-43", "BSA-45", "BSA-47")
playing.right_steps(_server, (24, 16, 12), "BSA-42", "BSA-46")


def _wrong(draw: Any, scene: Played, user: int, round: int, entries: basecagg_parties.Entries) -> tuple[bytes, str]:
    """Draw a signature that is not the user's on a buffer, and what is wrong with it."""
    signing, numbers = basecagg_parties.Signing(scene.inputs), scene.bases[0].parameters.numbers()
    right = signing.ballot(round).context
    contexts = elsewhere(right, "basecagg", {name: n for name, n in numbers.items() if name != "W"})
    contexts["no keys"] = replace(right, parameters=hash_parameters(numbers))
    keys = [bytes.fromhex(key) for key in scene.inputs.setups[scene.party]["roster"][:-1]]
    fresh = Roster((*keys, public_key(bytes([7]) * 32)))
    contexts["keys"] = replace(right, parameters=hash_parameters(numbers, fresh.hash))
    others = {
        "buffer": lambda: signing.signature(user, round, _another(draw, entries)),
        "signer": lambda: signing.signature((user + 1) % scene.size, round, entries),
    }
    return forged(draw, partial(signing.signature, user, round, entries), others, contexts)


def _another(draw: Any, entries: basecagg_parties.Entries) -> basecagg_parties.Entries:
    """Return a buffer that differs in one number: a user, a stamp or a weight."""
    (place, chosen), at = placed(draw, entries), draw(st.integers(0, 2))
    user, stamp, weight = (number + (at == which) for which, number in enumerate(chosen))
    others = [*entries[:place], *entries[place + 1 :]]
    return sorted([*(other for other in others if other[0] != user), (user, stamp, weight)])


def _signed(draw: Any, scene: Played) -> tuple[int, Any, basecagg_parties.Entries]:
    """Draw a quorum that arrives. Return the number of its step, the message, and the entries of its buffer."""
    at = int(draw(among([at for at in range(len(scene.inboxes)) if scene.inboxes[at][0] == "recover"])))
    [message] = scene.inbox(at)
    shown = {buffer.round: buffer for buffer in (scene.inbox(at)[0] for at in buffers(scene))}
    return at, message, basecagg_parties.entries_of(shown[message.round])


def _quorum(draw: Any, scene: Played) -> Quorum:
    """Draw a quorum that arrives."""
    at, message, entries = _signed(draw, scene)
    signing, round, other = basecagg_parties.Signing(scene.inputs), message.round, _another(draw, entries)
    return Quorum(
        at,
        message,
        scene.inputs.numbers["W"],
        [scene.size],
        lambda user: signing.signature(user, round, entries),
        lambda user: signing.signature(user, round, other),
        lambda draw, user: _wrong(draw, scene, user, round, entries),
    )


quorums.refuse_quorums(
    _user,
    _quorum,
    few=("BSA-44", "BSA-43"),
    signers=("BSA-44", "BSA-43"),
    order=("BSA-50",),
    signature=("BSA-44", "BSA-43", "BSA-47"),
)


@_user.refuses("quorum-again", "BSA-43", "MSG-04")
def _quorum_again(draw: Any, scene: Played) -> Fault:
    """A quorum that was answered is refused, also while the user has signed another buffer since."""
    at, _, _ = _signed(draw, scene)
    before = draw(st.integers(at + 1, len(scene.inboxes)))
    why = "the quorum was answered before"
    return Fault(before, scene.calls()[at], reject.AGAIN | reject.OUT_OF_TURN | reject.BAD_SIGNATURE, why)


@_user.refuses("quorum-of-another-round", "BSA-43", "MSG-03")
def _quorum_elsewhere(draw: Any, scene: Played) -> Fault:
    """A quorum of a round for which nothing is set aside is refused."""
    at, message, entries = _signed(draw, scene)
    other = message.round + draw(among((1, 2)))
    signatures = [basecagg_parties.Signing(scene.inputs).signature(user, other, entries) for user in message.signers]
    call = Call.of("recover", (replace(message, round=other, signatures=b"".join(signatures)),))
    return Fault(at, call, LATE | reject.BAD_SIGNATURE, f"nothing is set aside for round {other}")


@_user.refuses("quorum-before-the-buffer", "BSA-43")
def _early_quorum(draw: Any, scene: Played) -> Fault:
    """A quorum on a buffer that the user has not signed yet is refused."""
    at, message, _ = _signed(draw, scene)
    signed = next(at for at in buffers(scene) if scene.inbox(at)[0].round == message.round)
    why = "the buffer was not signed"
    return Fault(draw(st.integers(0, signed)), scene.calls()[at], LATE | reject.BAD_SIGNATURE, why)


@_user.refuses("replaced-buffer", "BSA-43", least=2, examples=16)
def _replaced(draw: Any, scene: Played) -> Fault:
    """A quorum on an earlier buffer is refused once the user has signed a later one."""
    first, later = buffers(scene)
    [buffer] = scene.inbox(first)
    only_if(not any(phase == "recover" for phase, _ in scene.inboxes[first:later]))
    users, entries = scene.inputs.users, basecagg_parties.entries_of(buffer)
    made = [basecagg_parties.Signing(scene.inputs).signature(user, buffer.round, entries) for user in users]
    call = Call.of("recover", (basecagg_parties.quorum(scene.inputs, scene.party, buffer.round, users, made),))
    before = draw(st.integers(later + 1, len(scene.inboxes)))
    return Fault(before, call, LATE | reject.BAD_SIGNATURE, f"the sum for round {buffer.round} was replaced")


@_user.refuses("plaintext", "MSG-02", "MOD-06", "MOD-07")
def _plaintext(draw: Any, scene: Played) -> Fault:
    """A share that opens to something else than L elements is refused."""
    at = any_of(draw, [at for at, (phase, _) in enumerate(scene.inboxes) if phase == "hold"])
    (place, message), given = placed(draw, scene.inbox(at)), scene.inputs.numbers
    zeros = np.zeros(-(-given["d"] // (given["U"] - given["T"])), np.uint64)
    right, large = vector_bytes(zeros), zeros.copy()
    large[draw(st.integers(0, len(large) - 1))] = int(given["q"])
    wrong = (*map(vector_bytes, (large, np.append(zeros, zeros[:1]), zeros[:-1])), right[:-1], right + b"\0")
    channel = base_of(scene.inputs.open(message.sender).state).channel
    payload = channel.close(message.round, message.sender, scene.party, one_of(draw, wrong))
    call = moved(scene.calls()[at], place, replace(message, payload=payload))
    return Fault(at, call, reject.BAD_VECTOR, "a share is not L elements")


def _confirming(draw: Any, scene: Played) -> tuple[int, list[Any], basecagg_parties.Entries]:
    """Draw a step in which signatures arrive. Return its number, the messages, and the entries of the buffer."""
    at = int(draw(among([at for at, (phase, _) in enumerate(scene.inboxes) if phase == "confirm"])))
    state = scene.bases[at]
    return at, scene.inbox(at), [(entry.user, entry.stamp, entry.weight) for entry in state.entries]


def _signatures(draw: Any, scene: Played) -> Arrival:
    """Draw signatures that arrive at the server."""
    at, inbox, entries = _confirming(draw, scene)

    def wrong(draw: Any, message: Any) -> tuple[bytes, str]:
        return _wrong(draw, scene, message.sender, message.round, entries)

    return Arrival(at, inbox, scene.inputs.numbers["W"], wrong)


quorums.refuse_signatures(_server, _signatures, "wrong-signature", "BSA-41", "BSA-47")
quorums.refuse_few_signatures(_server, _signatures, "BSA-40")


@_server.refuses("signature-of-another-round", "MSG-03")
def _other_round(draw: Any, scene: Played) -> Fault:
    """A signature under another round than the buffer's is refused."""
    at, inbox, entries = _confirming(draw, scene)
    place, message = placed(draw, inbox)
    other = message.round ^ draw(among((1, 256)))
    signature = message.signature
    if draw(st.booleans()):
        signature = basecagg_parties.Signing(scene.inputs).signature(message.sender, other, entries)
    call = moved(scene.calls()[at], place, replace(message, round=other, signature=signature))
    return Fault(at, call, reject.ELSEWHERE | reject.BAD_SIGNATURE, f"a signature is for round {other}")


@_server.refuses("confirm-out-of-turn", "MSG-03", "MSG-04", "BSA-46")
def _out_of_turn(draw: Any, scene: Played) -> Fault:
    """Signatures are refused unless a buffer was announced, and once it was confirmed."""
    at, _, _ = _confirming(draw, scene)
    moments = [moment for moment, state in enumerate(scene.states) if state.phase != "confirming"]
    codes = reject.AGAIN | reject.OUT_OF_TURN | reject.BAD_SIGNATURE | reject.NOT_ALLOWED
    moment = at + 1 if draw(st.booleans()) else draw(among(moments))
    return Fault(moment, scene.calls()[at], codes, "no buffer waits for signatures")


@_server.refuses("unsigned-answer", "BSA-46")
def _unsigned_answer(draw: Any, scene: Played) -> Fault:
    """An answer of a user that did not sign the buffer is refused."""
    at = int(draw(among(buffers(scene))))
    user, inbox = any_of(draw, sorted(set(scene.inputs.users) - set(scene.states[at].signers))), scene.inbox(at)
    more = replace(one_of(draw, inbox), sender=user)
    return Fault(at, Call.of("recover", [*inbox, more]), reject.NOT_ALLOWED, f"user {user} did not sign")


@_server.refuses("answer-before-the-quorum", "BSA-46")
def _early_answer(draw: Any, scene: Played) -> Fault:
    """Answers are refused before the buffer is confirmed."""
    at, _, _ = _confirming(draw, scene)
    answers = scene.calls()[next(later for later in buffers(scene) if later > at)]
    return Fault(at, answers, LATE | reject.NOT_ALLOWED, "the buffer is not confirmed")


def _whole(party: str) -> None:
    @check(f"{party}/W", "BSA-37", applies=explicit(party), examples=12)
    def threshold(draw: Any, call: Caller) -> None:
        """W is refused if two quorums need not share an honest user, if it is below U, or above N - D."""
        params, rand = basecagg_parties.begun(draw, party)
        N, D, U, T = (params[name] for name in ("N", "D", "U", "T"))
        W = draw(among(((N + T) // 2, U - 1, N - D + 1, 0)))
        call.refused(
            party, {**params, "W": W}, reject.BAD_PARAM, f"W = {W} with N = {N}, D = {D}, U = {U}, T = {T}", rand
        )

    @check(f"{party}/keys", "SIG-04", "SIG-05", "KEY-03", "KEY-04", applies=explicit(party), examples=16)
    def keys(draw: Any, call: Caller) -> None:
        """Verification and sealing keys are refused unless they are N distinct keys of 32 bytes."""
        params, rand = basecagg_parties.begun(draw, party)
        name = draw(among([name for name in ("roster", "verification", "private", "signing") if name in params]))
        if name in ("private", "signing"):
            wrong: Any = draw(among((params[name][2:], params[name] + "00", "")))
            codes = reject.KEY_LENGTH
        else:
            wrong, codes, _ = wrong_keys(draw, params[name])
        call.refused(party, {**params, name: wrong}, codes, f"{name} is wrong", rand)

    name = party.replace("_", "-")

    @check(f"{party}/W-below-U", "BSA-37", operations=SESSIONS, applies=playing.plays(name), examples=4)
    def too_few_answers(draw: Any, call: Caller) -> None:
        """W is refused if it is below U, also where two quorums of W users share an honest one."""
        numbers = {"N": 10, "D": 0, "U": draw(among((7, 8, 9, 10))), "T": 1, "d": 1, "W": 6}
        numbers |= basecagg_sessions.levels(draw, 10, 1, (2**31 - 1,))
        inputs = basecagg_sessions.inputs(draw, numbers)
        who = SERVER if _ROLES[party] is Role.SERVER else 0
        why = f"W = 6 is below U = {numbers['U']}"
        call.refused(NEW, {"handle": "h", **inputs.opening(who)}, reject.BAD_PARAM, why, inputs.rand(who))


for _party in _ROLES:
    _whole(_party)
