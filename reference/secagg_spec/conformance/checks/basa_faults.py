"""How faults of a party of BASA become checks, with the faults of all its parties and of whole requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import basa_sessions
from secagg_spec.conformance.cases.basa_parties import KEYS, PARTIES, PARTS, SERVED, USER, begun
from secagg_spec.conformance.cases.lightsecagg_parties import exchanged
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.checks import playing
from secagg_spec.conformance.checks.base import BAD_PARAM, Caller, check
from secagg_spec.conformance.checks.crypto import EQUAL_KEYS, KEY_LENGTH
from secagg_spec.conformance.checks.messages import ANOTHER_TYPE
from secagg_spec.conformance.checks.scripts import OUT_OF_RANGE, SECOND, STRANGER, Fault, broken_bytes
from secagg_spec.conformance.sessions.basa_acts import Part
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.scenes import call
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.basa.messages import EpochKeys, KeyRequest, PositionOffer, PositionRequest, PositionUpload
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import AUTHORITY, SERVER

NOT_NOW = frozenset({"wrong_phase", "replay", "malformed"})
ELSEWHERE = frozenset({"wrong_phase", "malformed"})
OUTSIDER = frozenset({"malformed", "unknown_peer", "out_of_range"})
HELD = frozenset({"replay", "wrong_phase"})
BAD_FORM = frozenset({"malformed", "length_mismatch", "noncanonical", "out_of_range", "inconsistent_sets"})
UNFIT = frozenset({"inconsistent_sets", "out_of_range", "wrong_phase"})
FEW = frozenset({"below_threshold", "wrong_phase"})
NOTHING_LEFT = frozenset({"wrong_phase", "bad_param", "length_mismatch", "malformed"})
"""The codes that each kind of broken rule accepts: the table of spec/adapter.md, section 5."""

THE_SERVER, THE_AUTHORITY = frozenset({SERVER}), frozenset({AUTHORITY})


# --------------------------------------------------------------------------------------------------- faults as checks


Build = Callable[[Any, Part], Fault | None]
FAULTS: dict[str, dict[str, Build]] = {USER: {}, SERVED: {}, KEYS: {}}


def explicit(op: str) -> Callable[[Capabilities], bool]:
    """Return the condition that the entries of a script are determined bit for bit."""
    return lambda caps: caps.grade(op) == "explicit"


def refusal(party: str, name: str, *clauses: str, **given: Any) -> Callable[[Build], Build]:
    """Register a fault as a check: the party refuses the step, and the right steps before and after work (ERR-01)."""

    def register(build: Build) -> Build:
        def judge(draw: Any, caller: Caller) -> None:
            part = PARTS[party](draw, **given)
            fault = build(draw, part)
            if fault is not None:
                playing.judge_script(caller, part, fault)

        judge.__doc__ = build.__doc__
        check(f"{party}/{name}", *clauses, operations=(party,), applies=explicit(party), examples=12)(judge)
        if not given:
            FAULTS[party][name] = build
        return build

    return register


def all_parties(name: str, *clauses: str) -> Callable[[Build], Build]:
    """Register a fault as a check of each party."""

    def register(build: Build) -> Build:
        for party in PARTIES:
            refusal(party, name, *clauses)(build)
        return build

    return register


def right(party: str, *clauses: str) -> None:
    """Register the checks that a party takes its right steps as the text says, whatever it refused between them."""
    playing.right_steps(party, PARTS[party], FAULTS[party], clauses, explicit(party), (40, 24, 12))


def replaced(part: Part, at: int, **changes: Any) -> Call:
    """Return a step with some fields of its message changed."""
    [message] = part.inbox(at)
    return call(part.events()[at].step.phase, (replace(message, **changes),))


def flipped(draw: Any, data: bytes) -> bytes:
    """Draw bytes with one bit flipped."""
    at, bit = draw(st.integers(0, len(data) - 1)), draw(st.integers(0, 7))
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


# ----------------------------------------------------------------------------------------------- faults of all parties


def _arriving(draw: Any, part: Part) -> tuple[int, Message]:
    """Draw a message that arrives. Return the number of its step and the message."""
    found = [at for at in range(len(part.events())) if part.inbox(at)]
    at = draw(among(found))
    return at, part.inbox(at)[0]


@all_parties("elsewhere", "MSG-03")
def _elsewhere(draw: Any, part: Part) -> Fault:
    """A message of another session or for another receiver is refused."""
    at, message = _arriving(draw, part)
    session = bytes([message.session[0] ^ 1]) + message.session[1:]
    wrong: list[dict[str, Any]] = [{"session": session}, {"receiver": message.sender}, {"receiver": part.size}]
    changed = one_of(draw, wrong)
    return Fault(at, replaced(part, at, **changed), ELSEWHERE, f"the message has another {next(iter(changed))}")


@all_parties("another-epoch", "MSG-03")
def _another_epoch(draw: Any, part: Part) -> Fault | None:
    """A message of an epoch other than the open one is refused."""
    free = (EpochKeys, PositionRequest, PositionOffer)
    found = [at for at in range(len(part.events())) if part.inbox(at) and not isinstance(part.inbox(at)[0], free)]
    if not found:
        return None
    at = draw(among(found))
    [message] = part.inbox(at)
    wrong = draw(among([n for n in (message.round - 1, message.round + 1, 0) if n != message.round]))
    return Fault(at, replaced(part, at, round=wrong), ELSEWHERE, f"the message is of epoch {wrong}")


@all_parties("sender", "MSG-03")
def _sender(draw: Any, part: Part) -> Fault:
    """A message is refused if its sender has nothing to send to this step."""
    at, message = _arriving(draw, part)
    from_users = isinstance(message, PositionRequest | PositionUpload | KeyRequest)
    users = [] if from_users else part.signers()
    strangers = [who for who in (part.size, SERVER, AUTHORITY, 2**31 - 1, *users[:2]) if who != message.sender]
    stranger = draw(among(strangers))
    return Fault(at, replaced(part, at, sender=stranger), STRANGER, f"party {stranger} has nothing to send here")


@all_parties("second-message", "MSG-04")
def _second(draw: Any, part: Part) -> Fault:
    """A step with a second message is refused."""
    at, message = _arriving(draw, part)
    step = part.calls()[at]
    return Fault(at, replace(step, inbox=(*step.inbox, encode(message))), SECOND | NOT_NOW, "two messages came")


@all_parties("no-message", "MSG-03")
def _nothing(draw: Any, part: Part) -> Fault:
    """A step that needs a message is refused without one."""
    at, _ = _arriving(draw, part)
    return Fault(at, Call(part.calls()[at].phase), NOT_NOW, "no message came")


@all_parties("bytes", "MSG-02")
def _bytes(draw: Any, part: Part) -> Fault:
    """Bytes that do not decode to a message are refused."""
    at, message = _arriving(draw, part)
    whole = encode(message)
    data = broken_bytes(draw, whole) if len(whole) > 30 else whole[: draw(st.integers(0, len(whole) - 1))]
    data = whole[:-1] if _is_message(data) else data
    return Fault(at, exchanged(part.calls()[at], 0, data), ANOTHER_TYPE, "the bytes are no message")


def _is_message(data: bytes) -> bool:
    try:
        parse(data)
    except ProtocolError:
        return False
    return True


@all_parties("type", "MSG-02")
def _type(draw: Any, part: Part) -> Fault:
    """A message of a type that the step does not expect is refused, even if it is a type of the protocol."""
    at = draw(st.integers(0, len(part.events()) - 1))
    epoch = part.moments[at].epoch
    step = part.calls()[at]
    wrong: Message = replace(part.cast.close_request(max(epoch, 0)), receiver=part.party)
    if step.phase == "close" and part.party == AUTHORITY:
        wrong = part.cast.abandonment(max(epoch, 0))
    inbox = (encode(wrong),) if draw(st.booleans()) else (*step.inbox, encode(wrong))
    return Fault(at, replace(step, inbox=inbox), NOT_NOW, f"the step {step.phase} takes no {type(wrong).__name__}")


# -------------------------------------------------------------------------------------------------- whole requests


def _requests(party: str) -> None:
    @check(f"{party}/parameters", "BAA-01", "BAA-02", operations=(party,), applies=explicit(party), examples=40)
    def parameters(draw: Any, caller: Caller) -> None:
        """Parameters that the text forbids are refused."""
        params, rand = begun(draw, party)
        wrong = basa_sessions.wrong_numbers(params)
        name = draw(among(sorted(wrong)))
        codes = BAD_PARAM | {"below_threshold", "inconsistent_sets"}
        caller.refused(party, {**params, **wrong[name]}, codes, f"the parameters break a rule ({name})", rand)

    @check(f"{party}/request", "ERR-02", operations=(party,), applies=explicit(party), examples=12)
    def request(draw: Any, caller: Caller) -> None:
        """A session of the wrong length, a round outside its range, or a user outside the roster is refused."""
        params, rand = begun(draw, party)
        changes: list[dict[str, Any]] = [
            {"session": params["session"][2:]},
            {"session": params["session"] + "00"},
            {"round": str(2**32)},
            {"round": "-1"},
        ]
        changes += [{"user": params["N"]}, {"user": -1}] if "user" in params else []
        changed = one_of(draw, changes)
        codes = KEY_LENGTH if "session" in changed else OUT_OF_RANGE
        caller.refused(party, {**params, **changed}, codes, f"the request has {changed}", rand)

    @check(f"{party}/keys", "SIG-04", "SIG-05", operations=(party,), applies=explicit(party), examples=16)
    def keys(draw: Any, caller: Caller) -> None:
        """Keys are refused unless there are N, all different and of the right length."""
        params, rand = begun(draw, party)
        roster = list(params["verification"])
        own = "signing" if "signing" in params else "authority"
        changes: dict[str, dict[str, Any]] = {
            "two users have one key": {"verification": [roster[1], *roster[1:]]},
            "a key is longer": {"verification": [roster[0] + "00", *roster[1:]]},
            "a key is missing": {"verification": roster[:-1]},
            "there is a key more": {"verification": [*roster, "07" * 32]},
            "a key of its own is shorter": {own: params[own][2:]},
        }
        why = draw(among(sorted(changes)))
        codes = EQUAL_KEYS if why.startswith("two") else KEY_LENGTH
        caller.refused(party, {**params, **changes[why]}, codes, why, rand)


for _party in PARTIES:
    _requests(_party)
