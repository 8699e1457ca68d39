"""Checks of whole sessions of BASA with a schedule of visits, timeouts and late updates (spec/adapter.md)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import basa_functions as scenes
from secagg_spec.conformance.cases.basa_schedules import EPOCHS, Opened, Plan, Session, plan, session, valid
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.basa import ELSEWHERE, UPDATE
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, equal, fail, same
from secagg_spec.conformance.sessions.choices import among, only_if
from secagg_spec.protocols.basa.cores import SETTLE

NOBODY = reject.OUTSIDE | reject.BAD_PARAM | reject.NOT_NOW | reject.MALFORMED
"""The codes of the table of spec/adapter.md, section 5."""

_MEMBERS = ("round", "positions", "users", "weights", "sum")


@check(f"{EPOCHS}/sums", *("BAA-16", "BAA-17", "BAA-19", "BAA-23", "BAA-40", "BAA-41", "BAA-45"), examples=80)
def sums(draw: Any, call: Caller) -> None:
    """Each epoch that closes gives the sum of exactly its accepted updates, whichever users come or time out."""
    made = valid(draw)
    rand, wanted = call.randomness(EPOCHS, made.rand), made.plan.epochs
    got = call.listed(EPOCHS, made.params, "epochs", len(wanted), rand)
    if not all(isinstance(epoch, dict) and set(_MEMBERS) <= set(epoch) for epoch in got):
        raise CheckFailed("protocol", f"epochs must be a list of objects with {', '.join(_MEMBERS)}")
    for number, (mine, right) in enumerate(zip(got, wanted, strict=True)):
        _judge(call, made, f"{EPOCHS}: epochs[{number}]", mine, right)


def _judge(call: Caller, made: Session, what: str, mine: Mapping[str, Any], right: Opened) -> None:
    """Compare an epoch. Weights that an implementation draws itself must be among the admissible ones."""
    wanted = {
        "round": str(right.number),
        "positions": [position for position, _, _, _ in right.uploads],
        "users": [user for _, user, _, _ in right.uploads],
    }
    for name, value in wanted.items():
        equal(f"{what}.{name} is", mine[name], value)
    weights = _weights(call, made, what, mine, right)
    if not right.closed:
        if mine["sum"] is not None:
            fail(f"{what}.sum is {mine['sum']!r}; the epoch ended without one, or is open", None)
        return
    p = made.plan.parameters
    rows = [[w * v for v in made.updates[n].tolist()] for w, (*_, n) in zip(weights, right.uploads, strict=True)]
    total = np.array([sum(column) % p.R for column in zip(*rows, strict=True)], dtype=np.uint64)
    same(f"{what}.sum", call.read(EPOCHS, mine["sum"], "sum", p.d, p.R), total)


def _weights(call: Caller, made: Session, what: str, mine: Mapping[str, Any], right: Opened) -> list[int]:
    weights: list[int] = call.unpacked(what, mine["weights"], "weights").tolist()
    drawn = call.caps.grade(EPOCHS) == "explicit"
    allowed = [made.weights(upload, right.number, drawn=drawn) for upload in right.uploads]
    if len(weights) != len(allowed) or any(w not in choices for w, choices in zip(weights, allowed, strict=True)):
        fail(f"{what}.weights is {weights}, must be one of each of {allowed}", allowed)
    return weights


Wrong = tuple[dict[str, Any], frozenset[str], str]
Build = Callable[[Any, Plan], Wrong]


def _refusal(name: str, *clauses: str, **wanted: Any) -> Callable[[Build], Build]:
    """Register as a check an event at the end of a schedule that a party refuses."""

    def register(build: Build) -> Build:
        def judge(draw: Any, call: Caller) -> None:
            drawn = plan(draw, **wanted)
            if draw(st.booleans()):
                drawn.whole()
            event, codes, why = build(draw, drawn)
            drawn.events.append(event)
            drawn.used += event["event"] in ("upload", "late")
            made = session(drawn)
            call.refused(EPOCHS, made.params, codes, why, call.randomness(EPOCHS, made.rand))

        judge.__doc__ = build.__doc__
        check(f"{EPOCHS}/{name}", *clauses, examples=20)(judge)
        return build

    return register


def _event(draw: Any, user: int, stamp: int) -> dict[str, Any]:
    """Draw an event in which a user visits."""
    kinds: tuple[dict[str, Any], ...] = (
        {"event": "upload"},
        {"event": "late"},
        {"event": "expire", "keyed": True},
        {"event": "expire", "keyed": False},
    )
    return {**kinds[draw(st.integers(0, len(kinds) - 1))], "user": user, "stamp": str(stamp)}


@_refusal("comes-again", "BAA-36", "BAA-10")
def _comes_again(draw: Any, drawn: Plan) -> Wrong:
    """A user whose update was accepted or whose position was skipped gets no other position in the epoch."""
    drawn.bustle(6)
    if not drawn.epoch.barred:
        drawn.upload(draw(among(drawn.able())))
    now = drawn.epoch
    user = draw(among(sorted(now.barred)))
    return _event(draw, user, now.number), reject.NOT_NOW, f"user {user} had a key of the epoch {now.number}"


@_refusal("full", "BAA-36")
def _full(draw: Any, drawn: Plan) -> Wrong:
    """No position is offered once K updates are accepted or no position is left."""
    drawn.bustle(3)
    drawn.fill()
    user = draw(st.integers(0, drawn.parameters.N - 1))
    return _event(draw, user, drawn.epoch.number), reject.NOT_NOW, "the buffer is full, or no position is left"


@_refusal("too-early", "BAA-19", "BAA-45")
def _too_early(draw: Any, drawn: Plan) -> Wrong:
    """An epoch with fewer than K updates is not closed while a position is unused."""
    drawn.bustle(6)
    only_if(not drawn.can_close())
    return {"event": "close"}, reject.FEW, f"{len(drawn.epoch.uploads)} updates are accepted, and a position is unused"


@_refusal("too-few", "BAA-19", "BAA-45", timeouts=SETTLE)
def _too_few(draw: Any, drawn: Plan) -> Wrong:
    """An epoch with fewer than T + 2 updates is not closed, even if no position is left."""
    few = draw(st.integers(0, drawn.parameters.T + 1))
    while drawn.able() and drawn.epoch.place < drawn.parameters.positions:
        upload = len(drawn.epoch.uploads) < few
        (drawn.upload if upload else drawn.skip)(draw(among(drawn.able())))
    return {"event": "close"}, reject.FEW, f"{few} updates are accepted, and T + 2 is {drawn.parameters.T + 2}"


@_refusal("stale", "BAA-28", "BAA-49", "BAA-38")
def _stale(draw: Any, drawn: Plan) -> Wrong:
    """An update older than tau_max, or of a future epoch, gets no position."""
    drawn.bustle(3)
    now, users = drawn.epoch.number, drawn.able()
    wrong = [now + 1, now + 2, *(s for s in (now - drawn.parameters.tau_max - 1, 0) if s >= 0)]
    found = [s for s in wrong if s > now or now - s > drawn.parameters.tau_max]
    only_if(users)
    stamp = draw(among(found))
    why = f"the stamp is {stamp}, the epoch {now}, and tau_max {drawn.parameters.tau_max}"
    return _event(draw, draw(among(users)), stamp), reject.UNFIT, why


@_refusal("nobody", "MSG-03")
def _nobody(draw: Any, drawn: Plan) -> Wrong:
    """An event of a user outside the roster is refused."""
    stranger = draw(among((drawn.parameters.N, -1, 2**31 - 1)))
    return _event(draw, stranger, drawn.epoch.number), NOBODY, f"user {stranger} is not on the roster"


_FORMS: tuple[Any, ...] = (
    {"event": "start", "user": 0, "stamp": "0"},
    {"event": "upload", "user": 0},
    {"event": "upload", "stamp": "0"},
    {"event": "upload", "user": 0, "stamp": 0},
    {"event": "upload", "user": "0", "stamp": "0"},
    {"event": "upload", "user": 0, "stamp": "0", "keyed": True},
    {"event": "late", "user": 0, "stamp": "0", "keyed": True},
    {"event": "expire", "user": 0, "stamp": "0"},
    {"event": "expire", "user": 0, "stamp": "0", "keyed": 1},
    {"event": "expire", "user": 0, "stamp": "0", "keyed": None},
    {"event": "close", "user": 0},
    {"event": "close", "stamp": "0"},
    {"event": 0, "user": 0, "stamp": "0"},
    {"user": 0, "stamp": "0"},
    {},
    "close",
    None,
)
"""Values that are not events of the table."""


@check(f"{EPOCHS}/events", "ADP-36", examples=40)
def events(draw: Any, call: Caller) -> None:
    """An event that is not in the table is rejected as malformed, at any position of the schedule."""
    made = valid(draw, 1)
    at = draw(st.integers(0, len(made.plan.events)))
    wrong = _FORMS[draw(st.integers(0, len(_FORMS) - 1))]
    schedule = [*made.plan.events[:at], wrong, *made.plan.events[at:]]
    rand = call.randomness(EPOCHS, made.rand)
    call.refused(EPOCHS, made.with_events(schedule), reject.MALFORMED, f"schedule[{at}] is {wrong!r}", rand)


@check(f"{EPOCHS}/budget", "BAA-25", examples=20)
def budget(draw: Any, call: Caller) -> None:
    """An update with an element beyond the budget of a buffer is refused."""
    made = valid(draw, 1)
    p = made.plan.parameters
    only_if(scenes.half(p.R) != p.budget)
    rows = [row.copy() for row in made.updates]
    at = draw(st.integers(0, made.plan.used - 1))
    rows[at][draw(st.integers(0, p.d - 1))] = draw(among((p.budget + 1, p.R - p.budget - 1)))
    params = {**made.params, "updates": [pack(row) for row in rows]}
    why = f"updates[{at}] has an element beyond the budget of {p.budget}"
    call.refused(EPOCHS, params, reject.NOT_FINITE, why, call.randomness(EPOCHS, made.rand))


@check(f"{EPOCHS}/updates", "BAA-24", examples=20)
def updates(draw: Any, call: Caller) -> None:
    """An update with the wrong length or a number not below R is refused."""
    made = valid(draw, 1)
    rows, R = [pack(row) for row in made.updates], made.plan.parameters.R
    at = draw(st.integers(0, made.plan.used - 1))
    wrong = [rows[at][:-8], rows[at] + "00000000"]
    wrong += [rows[at][:-8] + pack(np.array([R], dtype=np.uint64))] if R < 2**32 else []
    rows[at] = wrong[draw(st.integers(0, len(wrong) - 1))]
    params = {**made.params, "updates": rows}
    call.refused(EPOCHS, params, UPDATE, f"updates[{at}] is no update", call.randomness(EPOCHS, made.rand))


@check(f"{EPOCHS}/too-little", "RND-04", examples=16)
def too_little(draw: Any, call: Caller) -> None:
    """A schedule that needs more updates or sampled values than it is given is refused."""
    made = valid(draw, 1)
    params, rand = dict(made.params), dict(made.rand)
    least = made.plan.used - 1
    name = draw(among(("updates", "roundings") if call.caps.grade(EPOCHS) == "explicit" else ("updates",)))
    if name == "updates":
        params["updates"] = params["updates"][:least]
    else:
        rand["roundings"] = rand["roundings"][: 16 * least]
    codes = reject.BAD_RANDOMNESS | NOBODY
    call.refused(EPOCHS, params, codes, f"there are too few {name}", call.randomness(EPOCHS, rand))


@check(f"{EPOCHS}/numbers", "BAA-01", "BAA-02", "STL-01", examples=40)
def numbers(draw: Any, call: Caller) -> None:
    """Numbers of a session that the text forbids are refused."""
    made = valid(draw, 1)
    wrong, rand = scenes.wrong_numbers(made.plan.parameters), call.randomness(EPOCHS, made.rand)
    call.some_refused(draw, EPOCHS, made.params, wrong, ELSEWHERE, rand, "there is a rule broken ({})")


@check(f"{EPOCHS}/bound", "ERR-02", examples=10)
def bound(draw: Any, call: Caller) -> None:
    """A round outside its range or a session id of the wrong length is refused."""
    made = valid(draw, 1)
    text = made.params["session"]
    options = ({"round": str(2**32)}, {"round": "-1"}, {"session": text[:-2]}, {"session": text + "00"})
    wrong = options[draw(st.integers(0, len(options) - 1))]
    rand = call.randomness(EPOCHS, made.rand)
    call.refused(EPOCHS, {**made.params, **wrong}, ELSEWHERE, f"there is {wrong}", rand)
