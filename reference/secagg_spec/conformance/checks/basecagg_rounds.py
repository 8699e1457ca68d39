"""Checks of whole sessions of BASecAgg with a schedule of arrivals (spec/adapter.md, `basecagg.rounds`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import admissible_weights, realised_weight
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import basecagg_sessions, strategies
from secagg_spec.conformance.cases.basecagg_schedules import ROUNDS, Buffer, Plan, Session, plan, session, valid
from secagg_spec.conformance.cases.requests import too_large
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, equal, fail, same
from secagg_spec.conformance.sessions.basecagg_stage import staleness_of, weighted_sum
from secagg_spec.conformance.sessions.choices import among, any_of, only_if

NOT_NOW = reject.AGAIN | reject.NOTHING_CAME
NOBODY = reject.OUTSIDE | reject.BAD_PARAM | NOT_NOW
_MEMBERS = ("round", "users", "stamps", "weights", "sum")


@check(f"{ROUNDS}/sums", *("BSA-11", "BSA-18", "BSA-19", "BSA-29", "BSA-34", "STL-05", "STL-06"), examples=60)
def sums(draw: Any, call: Caller) -> None:
    """Whatever the order of arrivals, each buffer holds the accepted updates and is recovered with their weights."""
    drawn = valid(draw, call.caps)
    rand, wanted = call.randomness(ROUNDS, drawn.rand), drawn.plan.buffers
    got = call.listed(ROUNDS, drawn.params, "buffers", len(wanted), rand)
    if not all(isinstance(buffer, dict) and set(_MEMBERS) <= set(buffer) for buffer in got):
        raise CheckFailed("protocol", f"buffers must be a list of objects with {', '.join(_MEMBERS)}")
    for number, (mine, right) in enumerate(zip(got, wanted, strict=True)):
        _judge(call, drawn, number, mine, right)


def _judge(call: Caller, drawn: Session, number: int, mine: Mapping[str, Any], right: Buffer) -> None:
    """Compare a buffer. Weights that an implementation draws itself must be among the admissible ones."""
    what = f"{ROUNDS}: buffers[{number}]"
    users, stamps = [user for user, _, _ in right.entries], [stamp for _, stamp, _ in right.entries]
    equal(f"{what}.round is", mine["round"], str(right.round))
    equal(f"{what}.users is", mine["users"], users)
    found, weights = (call.unpacked(what, mine[name], name).tolist() for name in ("stamps", "weights"))
    equal(f"{what}.stamps is", found, stamps)
    _judge_weights(call, drawn, number, right, weights)
    q, d = int(drawn.params["q"]), int(drawn.params["d"])
    total = weighted_sum(q, weights, [drawn.updates[update] for _, _, update in right.entries])
    same(f"{what}.sum", call.read(ROUNDS, mine["sum"], f"buffers[{number}].sum", d, q), total)


def _judge_weights(call: Caller, drawn: Session, number: int, right: Buffer, weights: list[int]) -> None:
    function, c_g = staleness_of(drawn.params), int(drawn.params["c_g"])
    for at, (user, stamp, _) in enumerate(right.entries):
        allowed: tuple[int, ...] = admissible_weights(function, c_g, right.round - stamp)
        if call.caps.grade(ROUNDS) == "explicit":
            draws = drawn.roundings[number]
            allowed = (realised_weight(function, c_g, right.round - stamp, float(draws[at])),)
        if at >= len(weights) or weights[at] not in allowed:
            got = weights[at] if at < len(weights) else "missing"
            choices = " or ".join(map(str, allowed))
            fail(f"{ROUNDS}: buffers[{number}]: the weight of user {user} is {got}, must be {choices}", choices)


Wrong = tuple[dict[str, Any], frozenset[str], str]
Build = Callable[[Any, Plan], Wrong]


def _refusal(name: str, *clauses: str, latest: Sequence[int] = (2, 0, 1, 3)) -> Callable[[Build], Build]:
    """Register as a check an event at the end of a schedule that a party refuses."""

    def register(build: Build) -> Build:
        def judge(draw: Any, call: Caller) -> None:
            drawn = plan(draw, call.caps, latest)
            first = drawn.round
            if draw(st.booleans()):
                drawn.whole()
            drawn.bustle()
            event, codes, why = build(draw, drawn)
            drawn.events.append(event)
            made = session(draw, drawn, first)
            call.refused(ROUNDS, made.params, codes, why, call.randomness(ROUNDS, made.rand))

        judge.__doc__ = build.__doc__
        check(f"{ROUNDS}/{name}", *clauses, examples=16)(judge)
        return build

    return register


@_refusal("starts-again", "BSA-12")
def _starts_again(draw: Any, drawn: Plan) -> Wrong:
    """A user cannot start while it trains, after it got the round's stamp, or while its update waits in the buffer."""
    user = any_of(draw, [user for user in drawn.users if not drawn.can_start(user)])
    why = f"user {user} trains, has the stamp of the round, or waits in the buffer"
    return {"event": "start", "user": user}, NOT_NOW, why


@_refusal("uploads-again", "BSA-07")
def _uploads_again(draw: Any, drawn: Plan) -> Wrong:
    """A user that does not train cannot upload or abandon."""
    idle = [user for user in drawn.users if user not in drawn.training]
    user, kind = draw(among(idle)) if idle else None, draw(among(("upload", "abandon")))
    only_if(idle)
    return {"event": kind, "user": user}, NOT_NOW, f"user {user} does not train"


@_refusal("stale-upload", "BSA-16", latest=(0,))
def _stale_upload(draw: Any, drawn: Plan) -> Wrong:
    """An update older than tau_max is refused."""
    only_if(len(drawn.users) != drawn.numbers["K"])
    startable = [user for user in drawn.users if drawn.can_start(user)]
    only_if(startable)
    slow = startable[0]
    drawn.start(slow)
    drawn.fill(without=slow)
    only_if(not drawn.has_room())
    drawn.recover(drawn.users)
    return {"event": "upload", "user": slow}, NOT_NOW, f"the update of user {slow} is one round old, and tau_max is 0"


@_refusal("full-buffer", "BSA-17")
def _full_buffer(draw: Any, drawn: Plan) -> Wrong:
    """An update is refused if the buffer is full."""
    for user in drawn.users:
        if drawn.can_start(user):
            drawn.start(user)
    drawn.fill()
    late = any_of(draw, [user for user in drawn.users if drawn.is_fresh(user)])
    return {"event": "upload", "user": late}, NOT_NOW, "the buffer is full"


@_refusal("early-recovery", "BSA-20")
def _early(draw: Any, drawn: Plan) -> Wrong:
    """Recovery is refused while the buffer holds fewer than K updates."""
    only_if(drawn.has_room())
    why = f"the buffer has {len(drawn.waiting)} updates, and K is {drawn.numbers['K']}"
    return {"event": "recover", "users": list(drawn.users)}, NOT_NOW | reject.TOO_FEW, why


@_refusal("few-answers", "BSA-30", "BSA-34")
def _few(draw: Any, drawn: Plan) -> Wrong:
    """Recovery is refused with fewer than U answers."""
    drawn.fill()
    users = strategies.subset(draw, drawn.users, 0, drawn.numbers["U"] - 1)
    why = f"{len(users)} users answer, and U is {drawn.numbers['U']}"
    return {"event": "recover", "users": users}, reject.TOO_FEW, why


@_refusal("answers-twice", "BSA-28")
def _twice(draw: Any, drawn: Plan) -> Wrong:
    """A list of answers that names a user twice is refused."""
    drawn.fill()
    users = strategies.subset(draw, drawn.users, drawn.numbers["U"])
    return {"event": "recover", "users": [*users, users[0]]}, reject.TWICE | NOT_NOW, f"user {users[0]} is named twice"


@_refusal("nobody", "MSG-03")
def _nobody(draw: Any, drawn: Plan) -> Wrong:
    """An event of a user outside the roster is refused."""
    stranger = draw(among((drawn.numbers["N"], -1, 2**31 - 1)))
    kind = draw(among(("start", "upload", "abandon")))
    return {"event": kind, "user": stranger}, NOBODY, f"user {stranger} is not on the roster"


_FORMS: tuple[Any, ...] = (
    {"event": "stop", "user": 0},
    {"event": "start"},
    {"event": "start", "users": [0]},
    {"event": "recover", "user": 0},
    {"event": "recover"},
    {"event": "start", "user": 0, "users": [0]},
    {"event": "start", "user": "0"},
    {"event": "recover", "users": 0},
    {"event": 0, "user": 0},
    {"user": 0},
    {},
    "start",
    None,
)
"""Values that are not events of the table."""


@check(f"{ROUNDS}/events", "ADP-35", examples=30)
def events(draw: Any, call: Caller) -> None:
    """An event that is not in the table is rejected as malformed, at any position of the schedule."""
    made = valid(draw, call.caps, 1)
    at = draw(st.integers(0, len(made.plan.events)))
    wrong = _FORMS[draw(st.integers(0, len(_FORMS) - 1))]
    schedule = [*made.plan.events[:at], wrong, *made.plan.events[at:]]
    rand = call.randomness(ROUNDS, made.rand)
    call.refused(ROUNDS, {**made.params, "schedule": schedule}, reject.MALFORMED, f"schedule[{at}] is {wrong!r}", rand)


@check(f"{ROUNDS}/budget", "BSA-06", examples=16)
def budget(draw: Any, call: Caller) -> None:
    """An update with an element beyond the budget of a buffer is refused."""
    made = valid(draw, call.caps, 1)
    q, B = int(made.params["q"]), basecagg_sessions.budget(made.params)
    only_if((q - 1) // 2 >= B + 1)
    rows = [row.copy() for row in made.updates]
    at = draw(st.integers(0, made.plan.taken - 1))
    rows[at][draw(st.integers(0, rows[at].size - 1))] = draw(among((B + 1, q - B - 1)))
    params = {**made.params, "updates": [pack(row) for row in rows]}
    why = f"updates[{at}] has an element beyond the budget of {B}"
    call.refused(ROUNDS, params, frozenset({"out_of_range"}), why, call.randomness(ROUNDS, made.rand))


@check(f"{ROUNDS}/updates", "BSA-05", examples=16)
def updates(draw: Any, call: Caller) -> None:
    """An update with the wrong length or a number not below q is refused, even when the schedule does not use it."""
    made = valid(draw, call.caps, 1)
    rows = [pack(row) for row in made.updates]
    at = draw(st.integers(0, len(rows) - 1))
    vector = made.updates[at]
    wrong = (too_large(draw, vector, int(made.params["q"])), vector[:-1], np.append(vector, vector[:1]))
    rows[at] = pack(wrong[draw(st.integers(0, 2))])
    codes = reject.LENGTH | reject.NONCANONICAL
    rand = call.randomness(ROUNDS, made.rand)
    call.refused(ROUNDS, {**made.params, "updates": rows}, codes, f"updates[{at}] is no update", rand)


@check(f"{ROUNDS}/too-little", "RND-04", examples=16)
def too_little(draw: Any, call: Caller) -> None:
    """A schedule that needs more updates or sampled values than it is given is refused."""
    made = valid(draw, call.caps, 1)
    params, rand = dict(made.params), dict(made.rand)
    given = call.caps.grade(ROUNDS) == "explicit"
    name = draw(among(("updates", "masks", "roundings") if given else ("updates",)))
    least = {"updates": made.plan.taken, "roundings": len(made.plan.buffers)}
    starts = sum(event["event"] == "start" for event in made.plan.events)
    holder = params if name == "updates" else rand
    holder[name] = holder[name][: least.get(name, starts) - 1]
    codes = reject.BAD_RANDOMNESS | NOT_NOW
    call.refused(ROUNDS, params, codes, f"there are too few {name}", call.randomness(ROUNDS, rand))


@check(f"{ROUNDS}/parameters", "BSA-01", "BSA-02", examples=40)
def parameters(draw: Any, call: Caller) -> None:
    """Parameters that the text forbids are refused."""
    made = valid(draw, call.caps, 1)
    wrong, rand = basecagg_sessions.wrong_numbers(made.params), call.randomness(ROUNDS, made.rand)
    call.some_refused(draw, ROUNDS, made.params, wrong, reject.BAD_PARAM, rand, "the parameters break a rule ({})")


@check(f"{ROUNDS}/round", "ERR-02", examples=6)
def first_round(draw: Any, call: Caller) -> None:
    """A round outside its range is refused."""
    made = valid(draw, call.caps, 1)
    wrong = draw(among((str(2**32), "-1")))
    codes = reject.BAD_PARAM | reject.OUTSIDE | reject.MALFORMED
    rand = call.randomness(ROUNDS, made.rand)
    call.refused(ROUNDS, {**made.params, "round": wrong}, codes, f"round is {wrong}", rand)
