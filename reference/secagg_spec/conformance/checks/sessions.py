"""Checks of sessions: handles, forms, and whole rounds in which the adapter plays some parties (spec/adapter.md, 4)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import drawn_rounds, strategies
from secagg_spec.conformance.cases.requests import vandermonde
from secagg_spec.conformance.checks import playing, reject
from secagg_spec.conformance.checks.base import LAST, Caller, CheckFailed, Condition, check, fail
from secagg_spec.conformance.checks.playing import AGAIN, FREE, NEW, SESSIONS, STEP
from secagg_spec.conformance.sdk.secagg_adapter import NUMBERS, PARTIES, REMEMBERED, WITHOUT_ROUNDS
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, role_of

IN_USE = frozenset({"duplicate_id", "bad_param"})
NO_SESSION = frozenset({"bad_param", "unknown_peer"})
NO_SUCH = frozenset({"bad_param", "malformed"})
"""The codes that each kind of broken rule accepts: the table of spec/adapter.md, section 5."""

_KEPT = 256
_PROTOCOLS = tuple(NUMBERS)


def played(caps: Capabilities, protocol: str) -> list[Role]:
    """Return the roles that an adapter can play next to the reference's parties."""
    own_code = protocol.startswith("lightsecagg") and not vandermonde(caps)
    return [] if own_code else playing.parties(caps, protocol)


def playable(protocol: str) -> Condition:
    """Return the condition that an adapter can play a party of a protocol next to the reference's."""
    return lambda caps: bool(played(caps, protocol))


def mixed_rounds(protocol: str, *clauses: str) -> None:
    """Register the check of whole rounds in which the adapter plays some parties."""
    applies = playable(protocol)

    @check(f"{NEW}/{protocol}-mixed", *clauses, operations=SESSIONS, applies=applies, examples=40)
    def whole_round(draw: Any, call: Caller) -> None:
        """In a round with dropouts whose other parties are the reference's, each step is the right one."""
        inputs = drawn_rounds.inputs(draw, protocol)
        dropouts = drawn_rounds.dropouts(draw, inputs, draw(st.integers(0, 2)))
        parties = playing.drawn_parties(draw, inputs.users, played(call.caps, protocol))
        with suppress(TooFewSurvivors), playing.as_failure():
            mixed.play(inputs, dict.fromkeys(parties, playing.player(call)), dropouts)


mixed_rounds("lightsecagg", "LSA-02", "LSA-06", "LSA-08", "LSA-13", "LSA-21", "ADP-24")
mixed_rounds("lightsecagg-active", "LSA-25", "LSA-26", "LSA-30", "ADP-24")
mixed_rounds(
    "secagg",
    *(f"SAG-{number:02}" for number in (3, 5, 10, 11, 12, 17, 18, 24, 27, 29, 30)),
    *("MSK-01", "MSK-02", "MSK-03", "ADP-24"),
)
mixed_rounds("secagg-active", "SAG-51", "SAG-56", "SAG-59", "SAG-60", "SAG-65", "SAG-66", "SAG-67", "ADP-24")
mixed_rounds("heterosag", "HSA-14", "HSA-15", "HSA-19", "HSA-21", "HSA-22", "HSA-27", "ADP-24")


def _choices(caps: Capabilities) -> list[str]:
    return [party for party in caps.parties if caps.grade(NEW) == "explicit" or not PARTIES[party][1]]


def _going_on(caps: Capabilities) -> list[str]:
    return [party for party in _choices(caps) if not party.startswith(WITHOUT_ROUNDS)]


def _without_rounds(caps: Capabilities) -> list[str]:
    return [party for party in _choices(caps) if party.startswith(WITHOUT_ROUNDS)]


_of_sessions = partial(check, operations=SESSIONS, applies=lambda caps: bool(_choices(caps)))
_of_rounds = partial(check, operations=(*SESSIONS, AGAIN), applies=lambda caps: bool(_going_on(caps)))


def _opening(
    draw: Any, call: Caller, choices: Callable[[Capabilities], list[str]] = _choices
) -> tuple[SessionInputs, int, dict[str, Any], dict[str, Any]]:
    """Draw a party that the adapter plays. Return its round, the party, and the two parts of the opening request."""
    protocol, _, role = draw(among(choices(call.caps))).partition(".")
    inputs = drawn_rounds.inputs(draw, protocol)
    party = _seat(Role(role), int(draw(among(inputs.users))))
    return inputs, party, inputs.opening(party), inputs.rand(party)


def _seat(role: Role, user: int) -> int:
    """Return the party number of a role; for a user it is `user`."""
    return {Role.SERVER: SERVER, Role.AUTHORITY: AUTHORITY}.get(role, user)


def _handle(draw: Any) -> str:
    """Draw a handle that no other check uses."""
    return str(draw(among(("h", "", "a b", "é", "x" * 200))))


def _open(call: Caller, handle: str, params: dict[str, Any], rand: dict[str, Any]) -> None:
    _demand_nothing(NEW, call.result(NEW, {"handle": handle, **params}, rand))


def _free(call: Caller, handle: str) -> None:
    _demand_nothing(FREE, call.result(FREE, {"handle": handle}))


def _demand_nothing(op: str, result: Mapping[str, Any]) -> None:
    if result:
        raise CheckFailed("wrong_value", f"the result of {op} is {dict(result)}, must be empty", {}, LAST)


def _first(inputs: SessionInputs) -> dict[str, Any]:
    return {"phase": inputs.table[0].phase, "inbox": []}


@_of_sessions(f"{NEW}/in-use", "ADP-22", examples=12)
def in_use(draw: Any, call: Caller) -> None:
    """A handle of an open session cannot open another session. Once the handle is freed, it can."""
    _, _, params, rand = _opening(draw, call)
    handle = _handle(draw)
    _open(call, handle, params, rand)
    call.refused(NEW, {"handle": handle, **params}, IN_USE, "the handle is in use", rand)
    _free(call, handle)
    _open(call, handle, params, rand)
    _free(call, handle)


@_of_sessions(f"{STEP}/no-session", "ADP-23", examples=16)
def no_session(draw: Any, call: Caller) -> None:
    """A handle that was never opened, was freed, or was refused names no session."""
    inputs, _, params, rand = _opening(draw, call)
    handle, how = _handle(draw), draw(among(("freed", "never", "refused")))
    free = draw(st.booleans())
    if how == "freed":
        _open(call, handle, params, rand)
        _free(call, handle)
    elif how == "refused":
        short = {"handle": handle, **params, "session": params["session"][2:]}
        call.refused(NEW, short, reject.LENGTH | {"bad_param"}, "the session is 15 bytes long", rand)
    if free:
        call.refused(FREE, {"handle": handle}, NO_SESSION, f"no session has this handle ({how})")
    else:
        call.refused(STEP, {"handle": handle, **_first(inputs)}, NO_SESSION, f"no session has this handle ({how})")


@check(f"{NEW}/independent", "ADP-24", operations=SESSIONS, applies=playing.plays("secagg.user"), examples=12)
def independent(draw: Any, call: Caller) -> None:
    """Two users whose steps alternate answer as each does alone."""
    inputs = drawn_rounds.secagg(draw)
    first, second = strategies.subset(draw, inputs.users, 2, 2)
    outboxes = []
    for users in ([first], [first, second]):
        for user in users:
            _open(call, f"h{user}", inputs.opening(user), inputs.rand(user))
        answers = {user: dict(call.result(STEP, {"handle": f"h{user}", **_first(inputs)})) for user in users}
        for user in users:
            step = {"handle": f"h{user}", **_first(inputs)}
            call.refused(STEP, step, reject.AGAIN, f"the step {inputs.table[0].phase} was taken before")
        for user in users:
            _free(call, f"h{user}")
        outboxes.append(answers[first])
    if outboxes[0] != outboxes[1]:
        fail(f"user {first} sends something else when another session is open", outboxes[0])


@_of_sessions(f"{NEW}/many", "ADP-25", examples=1)
def many(draw: Any, call: Caller) -> None:
    """The adapter keeps 256 sessions open at once, and all of them answer their first step as the newest does."""
    inputs, party, params, rand = _opening(draw, call)
    phase = next(step.phase for step in inputs.table if step.role is role_of(party))
    handles = [f"h{number}" for number in range(_KEPT)]
    for handle in handles:
        _open(call, handle, params, rand)
    newest, *others = (call.ask(STEP, {"handle": one, "phase": phase, "inbox": []}) for one in reversed(handles))
    for at, answer in enumerate(others, 2):
        if (answer.kind, answer.code) != (newest.kind, newest.code):
            which = f"session {_KEPT + 1 - at} of {_KEPT} that were opened alike"
            fail(f"the first step of {which} is answered by {answer.said!r}, that of the newest by {newest.said!r}")
    for handle in handles:
        _free(call, handle)


@_of_sessions(f"{NEW}/members", "ADP-05", "ADP-26", examples=30)
def members(draw: Any, call: Caller) -> None:
    """Params, numbers or a setup with an extra or a missing member are rejected as malformed."""
    _, _, params, rand = _opening(draw, call)
    params = {"handle": _handle(draw), **params}
    why = _misses(draw, params, ("numbers", "setup", ""), ("zq",))
    call.refused(NEW, params, reject.MALFORMED, why, rand)


def _misses(draw: Any, params: dict[str, Any], parts: Sequence[str], strange: Sequence[str]) -> str:
    """Add a strange member to one part of a request, or to all of it, or remove a member. Return what is wrong."""
    part = draw(among(parts))
    holder: dict[str, Any] = params[part] if part else params
    if draw(st.booleans()) or not holder:
        name = strange[0] if len(strange) == 1 else draw(among(strange))
        holder[name] = 1
        return f"{part or 'params'} hold the unknown member {name!r}"
    name = draw(among(sorted(holder)))
    del holder[name]
    return f"{part or 'params'} lack {name!r}"


_WRONG: tuple[Any, ...] = (None, True, [None], 1.5)
"""Values that are wrong for every member."""


@_of_sessions(f"{NEW}/types", "ADP-12", examples=30)
def types(draw: Any, call: Caller) -> None:
    """A member of the wrong JSON type is rejected as malformed, in numbers and setup too."""
    _, _, params, rand = _opening(draw, call)
    params = {"handle": _handle(draw), **params}
    part = draw(among(("numbers", "setup", "")))
    holder: dict[str, Any] = (params[part] if part else params) or params
    name = draw(among(sorted(holder)))
    holder[name] = draw(among(_WRONG))
    codes = reject.MALFORMED if name not in ("protocol", "role") else NO_SUCH
    call.refused(NEW, params, codes, f"{name} is {holder[name]!r}", rand)


@_of_sessions(f"{STEP}/types", "ADP-05", "ADP-12", "ADP-13", examples=16)
def step_types(draw: Any, call: Caller) -> None:
    """A step with a missing, extra, mistyped or non-hex member is rejected and does not affect the session."""
    inputs, _, params, rand = _opening(draw, call)
    handle = _handle(draw)
    step = {"handle": handle, **_first(inputs)}
    wrong = draw(among(({"inbox": ["0g"]}, {"inbox": "00"}, {"inbox": [7]}, {"phase": 7}, {"zq": 1}, {})))
    faulty = {**step, **wrong} if wrong else {name: step[name] for name in ("handle", "phase")}
    _open(call, handle, params, rand)
    call.refused(STEP, faulty, reject.MALFORMED, f"the step has {wrong or 'no inbox'}")
    _free(call, handle)


@_of_sessions(f"{NEW}/unknown", "ADP-27", examples=16)
def unknown(draw: Any, call: Caller) -> None:
    """A protocol, role or phase that the text does not have is rejected."""
    _, _, params, rand = _opening(draw, call)
    handle, what = _handle(draw), draw(among(("protocol", "role", "phase")))
    name = draw(among(("x", "", "Server", "secagg ")))
    if what != "phase":
        call.refused(NEW, {"handle": handle, **params, what: name}, NO_SUCH, f"{what} is {name!r}", rand)
        return
    _open(call, handle, params, rand)
    call.refused(STEP, {"handle": handle, "phase": name, "inbox": []}, NO_SUCH, f"no step is called {name!r}")
    _free(call, handle)


@_of_sessions(f"{NEW}/undeclared", "ADP-28", applies=lambda caps: set(PARTIES) > set(caps.parties), examples=8)
def undeclared(draw: Any, call: Caller) -> None:
    """A party that is not declared is answered with `unsupported`."""
    protocol, _, role = draw(among(sorted(set(PARTIES) - set(call.caps.parties)))).partition(".")
    inputs = drawn_rounds.inputs(draw, protocol)
    party = _seat(Role(role), 0)
    params = {"handle": "h", **inputs.opening(party)}
    call.unsupported(NEW, params, f"{protocol}.{role} is not declared", inputs.rand(party))


@_of_sessions(f"{NEW}/randomness", "RND-04", examples=16)
def randomness(draw: Any, call: Caller) -> None:
    """Sampled values are refused if a name is missing or extra, or a value has the wrong length."""
    _, _, params, rand = _opening(draw, call)
    rand, why = _spoiled(draw, rand)
    call.refused(NEW, {"handle": _handle(draw), **params}, reject.BAD_RANDOMNESS, why, rand)


def _spoiled(draw: Any, rand: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return sampled values with a missing or extra name, or of the wrong length, and what is wrong with them."""
    rand, filled = dict(rand), sorted(name for name in rand if rand[name])
    how = draw(among(("more", "less", "longer"))) if filled else "more"
    name = draw(among(filled or ["zq"]))
    if how == "more":
        rand["zq"] = "00000000"
    elif how == "less":
        del rand[name]
    else:
        value = rand[name]
        rand[name] = value + "00000000" if isinstance(value, str) else [*value, value[0] + "00000000"]
    return rand, f"rand has {name!r} {how}" if rand else "rand is missing"


def _later(draw: Any, call: Caller) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Draw the two parts of the request that opens a party, and of the request that takes it to the next round."""
    inputs, party, params, rand = _opening(draw, call, _going_on)
    number = draw(st.integers(0, 2**31))
    params["round"] = str(number)
    later = drawn_rounds.next_round(draw, inputs, number + draw(st.integers(1, 300)))
    return params, rand, later.going_on(party), later.rand(party)


@_of_rounds(f"{AGAIN}/no-session", "ADP-51", examples=12)
def again_no_session(draw: Any, call: Caller) -> None:
    """A handle that was never opened or was freed cannot go on to another round."""
    params, rand, later, values = _later(draw, call)
    handle, freed = _handle(draw), draw(st.booleans())
    if freed:
        _open(call, handle, params, rand)
        _free(call, handle)
    call.refused(AGAIN, {"handle": handle, **later}, NO_SESSION, "no session has this handle", values)


@_of_rounds(f"{AGAIN}/unsupported", "ADP-52", applies=lambda caps: bool(_without_rounds(caps)), examples=12)
def again_unsupported(draw: Any, call: Caller) -> None:
    """A party of a protocol whose sessions have only one round cannot go on to another."""
    inputs, party, params, rand = _opening(draw, call, _without_rounds)
    handle, number = _handle(draw), draw(st.integers(inputs.round, 2**32 - 1))
    setup = {name: value for name, value in params["setup"].items() if name not in REMEMBERED}
    _open(call, handle, params, rand)
    later = {"handle": handle, "round": str(number), "setup": setup}
    call.unsupported(AGAIN, later, f"{inputs.named(party)} has no common rounds", rand)
    _free(call, handle)


Parts = tuple[dict[str, Any], dict[str, Any]]


def _stays(call: Caller, right: Parts, wrong: Parts, codes: frozenset[str], why: str, opening: Parts) -> None:
    """Open a session, and demand that a wrong request for its next round is refused and that a right one works."""
    handle = right[0]["handle"]
    _open(call, handle, *opening)
    call.refused(AGAIN, wrong[0], codes, why, wrong[1])
    call.result(AGAIN, *right)
    _free(call, handle)


@_of_rounds(f"{AGAIN}/members", "ADP-05", "ADP-53", examples=30)
def again_members(draw: Any, call: Caller) -> None:
    """Params or a setup with an extra or a missing member are rejected as malformed, and the session stays."""
    params, rand, later, values = _later(draw, call)
    right = {"handle": _handle(draw), **later}
    wrong: dict[str, Any] = {**right, "setup": dict(right["setup"])}
    why = _misses(draw, wrong, ("setup", ""), ("zq", *REMEMBERED))
    _stays(call, (right, values), (wrong, values), reject.MALFORMED, why, (params, rand))


@_of_rounds(f"{AGAIN}/types", "ADP-12", examples=30)
def again_types(draw: Any, call: Caller) -> None:
    """A member of the wrong JSON type, in the setup too, is rejected as malformed, and the session stays."""
    params, rand, later, values = _later(draw, call)
    right = {"handle": _handle(draw), **later}
    wrong: dict[str, Any] = {**right, "setup": dict(right["setup"])}
    holder: dict[str, Any] = wrong["setup"] if draw(st.booleans()) and wrong["setup"] else wrong
    name = draw(among(sorted(holder)))
    holder[name] = draw(among(_WRONG))
    _stays(call, (right, values), (wrong, values), reject.MALFORMED, f"{name} is {holder[name]!r}", (params, rand))


@_of_rounds(f"{AGAIN}/randomness", "RND-04", examples=16)
def again_randomness(draw: Any, call: Caller) -> None:
    """Sampled values with a missing or extra name, or of the wrong length, are refused, and the session stays."""
    params, rand, later, values = _later(draw, call)
    right = {"handle": _handle(draw), **later}
    wrong, why = _spoiled(draw, values)
    _stays(call, (right, values), (right, wrong), reject.BAD_RANDOMNESS, why, (params, rand))
