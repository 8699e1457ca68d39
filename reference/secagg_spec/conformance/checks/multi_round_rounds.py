"""Checks of the family, of the session id of a round, and of who survives (spec/multi-round.md, sections 2 and 6)."""

from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import multi_round_functions, strategies
from secagg_spec.conformance.cases import multi_round_oracles as oracles
from secagg_spec.conformance.cases.lightsecagg_parties import ROUNDS, session_id
from secagg_spec.conformance.cases.multi_round_numbers import (
    COLLUDING,
    COMPLETE,
    FAMILY,
    REQUEST,
    SESSION,
    fit,
    narrowed,
)
from secagg_spec.conformance.cases.multi_round_oracles import LISTED, Numbers
from secagg_spec.conformance.cases.neighbours import one_of
from secagg_spec.conformance.cases.requests import inserted
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail
from secagg_spec.conformance.checks.multi_round_choices import NUMBERS, USERS
from secagg_spec.conformance.sdk.secagg_adapter import has_form
from secagg_spec.conformance.sessions.choices import among

CHOICE = reject.BAD_PARAM | reject.OUTSIDE | reject.TWICE | reject.TOO_FEW
HEADER = reject.BAD_PARAM | reject.LENGTH
"""The codes of the table of spec/adapter.md, section 5."""

_MANY = (
    (1000, 1),
    (1001, 1),
    (45, 2),
    (46, 2),
    (1000, 999),
    (1001, 1000),
    (19, 3),
    (20, 3),
    (14, 4),
    (120, 60),
    (40, 20),
)
"""The number of batches, and of batches in a round: about 1,000 sets, and very many."""
_SMALL = 120
"""The most batches of several users."""


@check(f"{FAMILY}/sets", "MRA-02")
def sets(draw: Any, call: Caller) -> None:
    """The family has every union of K/T batches exactly once, and no other set."""
    p = multi_round_functions.numbers(draw, call.caps, FAMILY)
    _judge(call, p)


def _large(caps: Capabilities) -> list[Numbers]:
    """Return the numbers of large families that are declared."""
    every = [Numbers(b * T, k * T, T) for b, k in _MANY for T in range(1, 4 if b <= _SMALL else 2)]
    return [p for p in every if caps.declares(FAMILY, p.members())]


@check(f"{FAMILY}/many", "MRA-02", applies=lambda caps: bool(_large(caps)), examples=25)
def many(draw: Any, call: Caller) -> None:
    """A family of more than 1,000 sets is counted but not listed."""
    if narrowed(call.caps, FAMILY):
        _judge(call, one_of(draw, _large(call.caps)))
        return
    batches, per_round = draw(among(_MANY))
    T = draw(st.integers(1, 3)) if batches <= _SMALL else 1
    _judge(call, Numbers(batches * T, per_round * T, T))


def _judge(call: Caller, p: Numbers) -> None:
    got, size = call.result(FAMILY, p.members()), oracles.family_size(p)
    if not has_form(got.get("size"), "decimal"):
        said = f"{FAMILY}: size is {str(got.get('size', 'missing'))[:80]}, no decimal string"
        raise CheckFailed("protocol", said, str(size))
    if got.get("size") != str(size):
        fail(f"the family for {p} has {str(got.get('size'))[:80]} sets, must have {size}", str(size))
    listed: Any = got.get("sets", "missing")
    if size > LISTED:
        if listed is not None:
            fail(f"the family for {p} has {size} sets, and sets is {str(listed)[:80]}, must be null")
        return
    _judge_sets(p, listed)


def _judge_sets(p: Numbers, listed: Any) -> None:
    want = oracles.family(p)
    if not has_form(listed, "[[integer]]"):
        said = f"{FAMILY}: sets for {p} is {str(listed)[:80]}, must be a list of {len(want)} lists of users"
        raise CheckFailed("protocol", said)
    unknown = next((users for users in listed if tuple(users) not in want), None)
    if unknown is not None:
        fail(f"the family for {p} has {unknown}, which is no union of {p.per_round} batches, its users ascending")
    if sorted(map(tuple, listed)) != sorted(want):
        fail(f"the family for {p} has {len(listed)} sets in the list, must have each of {len(want)} once")


@check(f"{FAMILY}/numbers", "MRA-01", examples=60)
def family_numbers(draw: Any, call: Caller) -> None:
    """N, K and T that do not fit together are refused."""
    wrong = multi_round_functions.wrong_numbers(multi_round_functions.numbers(draw, call.caps, FAMILY))
    call.some_refused(draw, FAMILY, {}, wrong, NUMBERS, why="the numbers are wrong ({})")


def _round(draw: Any, caps: Capabilities) -> tuple[Numbers, bytes, int, list[int]]:
    p = multi_round_functions.numbers(draw, caps, SESSION)
    return (
        p,
        session_id(draw),
        draw(among(ROUNDS) | st.integers(0, 2**32 - 1)),
        multi_round_functions.set_of_family(draw, p),
    )


def _params(p: Numbers, session: bytes, round: int, chosen: list[int]) -> dict[str, Any]:
    return {**p.members(), "session": session.hex(), "round": str(round), "chosen": chosen}


@check(f"{SESSION}/exact", "MRA-19")
def session_exact(draw: Any, call: Caller) -> None:
    """The session id of a round is the hash that the text defines."""
    p, session, round, chosen = _round(draw, call.caps)
    got = call.result(SESSION, _params(p, session, round, chosen)).get("session")
    want = oracles.session_of_round(p, session, round, chosen).hex()
    if got != want:
        fail(f"the session id of round {round} with {chosen} for {p} is {str(got)[:80]}, must be {want}", want)


@check(f"{SESSION}/choice", "MRA-19", examples=60)
def session_choice(draw: Any, call: Caller) -> None:
    """A choice that is not a set of the family, or not ascending, is refused."""
    p, session, round, chosen = _round(draw, call.caps)
    name, wrong = _wrong_choice(draw, p, chosen)
    call.refused(SESSION, _params(p, session, round, wrong), CHOICE, f"the choice {wrong} has {name}, for {p}")


@check(f"{SESSION}/bound", "MRA-19", examples=20)
def session_bound(draw: Any, call: Caller) -> None:
    """A round outside its range or a session id of the wrong length is refused."""
    p, session, round, chosen = _round(draw, call.caps)
    changes = ({"round": str(2**32)}, {"round": "-1"}, {"session": session[:-1].hex()}, {"session": ""})
    wrong = {**changes[draw(st.integers(0, len(changes) - 1))]}
    call.refused(SESSION, {**_params(p, session, round, chosen), **wrong}, HEADER, f"there is {wrong}")


@check(f"{SESSION}/numbers", "MRA-01", examples=40)
def session_numbers(draw: Any, call: Caller) -> None:
    """N, K and T that do not fit together are refused."""
    wrong = multi_round_functions.wrong_numbers(multi_round_functions.numbers(draw, call.caps, SESSION))
    name = draw(among(sorted(wrong)))
    params = {**wrong[name], "session": session_id(draw).hex(), "round": "0"}
    chosen = list(range(max(wrong[name]["K"], 0)))
    why = f"the numbers are wrong ({name}): {wrong[name]}"
    call.refused(SESSION, {**params, "chosen": chosen}, NUMBERS | CHOICE, why)


def _wrong_choice(draw: Any, p: Numbers, chosen: list[int]) -> tuple[str, list[int]]:
    """Draw an invalid choice. Return what is wrong with it, and the choice."""
    others = [user for user in range(p.N) if user not in chosen]
    wrong = {
        "a user too few": chosen[:-1],
        "a user twice": sorted([*chosen, chosen[draw(st.integers(0, len(chosen) - 1))]]),
        "a user that is not on the roster": [*chosen[:-1], p.N],
        "a negative user": [-1, *chosen[1:]],
        "nobody": [],
    }
    if p.per_round > 1:
        wrong["a batch too few"] = chosen[: -p.T]
    if p.K > 1:
        wrong["users that do not ascend"] = [*chosen[1:], chosen[0]]
        wrong["users that descend"] = chosen[::-1]
        wrong["a user twice in place of another one"] = sorted([*chosen[1:], chosen[-1]])
    if others:
        other = others[draw(st.integers(0, len(others) - 1))]
        wrong["a user too many"] = sorted([*chosen, other])
        wrong["a batch too many"] = p.users({user // p.T for user in (*chosen, other)})  # type: ignore[arg-type]
    if others and p.T > 1:
        wrong["a user of a batch that is not in it"] = sorted([*chosen[1:], other])
    name = draw(among(sorted(wrong)))
    return name, wrong[name]


@check(f"{COMPLETE}/exact", "MRA-18")
def complete(draw: Any, call: Caller) -> None:
    """The survivors are the users of those batches whose masked inputs all arrived."""
    p, c = multi_round_functions.colluding(draw, call.caps, COMPLETE)
    here = multi_round_functions.arrived(draw, p)
    got = call.result(COMPLETE, {**p.members(), "c": c, "arrived": here}).get("survivors")
    want = p.users([batch for batch in p.complete(here) if batch < p.per_round])
    if got != want:
        fail(f"of {here}, whose masked inputs came, {str(got)[:80]} survive for {p}, must be {want}", want)


@check(f"{COMPLETE}/users", "MRA-18", examples=40)
def complete_users(draw: Any, call: Caller) -> None:
    """A user that is named twice or is not in the round is refused."""
    p, c = multi_round_functions.colluding(draw, call.caps, COMPLETE, spare=draw(st.integers(0, 1)))
    here = [*multi_round_functions.arrived(draw, p)] or [0]
    wrong = draw(among((draw(among(here)), p.K, -1)))
    named = inserted(draw, here, wrong)
    why = f"masked inputs came of {named}, of {p.K} users of the round"
    call.refused(COMPLETE, {**p.members(), "c": c, "arrived": named}, USERS, why)


@check(f"{COMPLETE}/numbers", "MRA-01", "MRA-17", examples=60)
def complete_numbers(draw: Any, call: Caller) -> None:
    """N, K, T and c that do not fit together are refused."""
    p, c = multi_round_functions.colluding(draw, call.caps, COMPLETE)
    name, wrong = _wrong_session(draw, p, c)
    call.refused(COMPLETE, {**wrong, "arrived": []}, NUMBERS, f"the numbers are wrong ({name}): {wrong}")


def _wrong_session(draw: Any, p: Numbers, c: int) -> tuple[str, dict[str, int]]:
    """Draw numbers of a session that do not fit together. Return what is wrong, and the numbers."""
    wrong = {name: {**changed, "c": c} for name, changed in multi_round_functions.wrong_numbers(p).items()}
    wrong |= {name: {**p.members(), **changed} for name, changed in multi_round_functions.wrong_colluders(p).items()}
    name = draw(among(sorted(multi_round_functions.wrong_colluders(p))) | st.sampled_from(sorted(wrong)))
    return name, wrong[name]


@check(f"{REQUEST}/answered", "MRA-20", "MRA-21")
def answered(draw: Any, call: Caller) -> None:
    """A user joins a choice that includes it, and answers for survivors that are whole batches of the round."""
    scene = multi_round_functions.asked(draw, call.caps, fewest=draw(st.integers(1, 3)))
    got = call.result(REQUEST, scene.params())
    if got:
        fail(f"the result of {REQUEST} is {str(got)[:80]}, must be {{}}", {})


@check(f"{REQUEST}/choice", "MRA-20", examples=80)
def request_choice(draw: Any, call: Caller) -> None:
    """A user refuses a choice that is not a set of the family, or is not ascending."""
    scene = multi_round_functions.asked(draw, call.caps)
    name, wrong = _wrong_choice(draw, scene.numbers, list(scene.chosen))
    why = f"the choice {wrong} has {name}, for {scene.numbers}"
    call.refused(REQUEST, scene.params(chosen=wrong, **_all(scene)), CHOICE, why)


def _all(scene: multi_round_functions.Asked) -> dict[str, Any]:
    """Return everybody in the round as survivors, so that nothing else is wrong."""
    return {"survivors": list(range(scene.numbers.K))}


@check(
    f"{REQUEST}/without-user", "MRA-20", applies=lambda caps: fit(caps, REQUEST, sizes=COLLUDING, spare=1), examples=40
)
def without_user(draw: Any, call: Caller) -> None:
    """A user refuses a choice that does not include it."""
    scene = multi_round_functions.asked(draw, call.caps, spare=1)
    others = [user for user in range(scene.numbers.N) if user not in scene.chosen]
    user = draw(among(others))
    why = f"user {user} is not in the choice {list(scene.chosen)}"
    call.refused(REQUEST, scene.params(user=user, **_all(scene)), CHOICE, why)


@check(f"{REQUEST}/survivors", "MRA-21", examples=100)
def request_survivors(draw: Any, call: Caller) -> None:
    """A user refuses survivors that include only a part of a batch, however many they are."""
    scene = multi_round_functions.asked(draw, call.caps, fewest=draw(st.integers(1, 3)))
    p, place = scene.numbers, scene.chosen.index(scene.user)
    name, wrong = _parted(draw, scene, place)
    why = f"the survivors {wrong} have {name}, in batches of {p.T} users of {p.K}"
    call.refused(REQUEST, scene.params(survivors=wrong), CHOICE, why)


def _parted(draw: Any, scene: multi_round_functions.Asked, place: int) -> tuple[str, list[int]]:
    """Draw survivors that are not a union of batches and include the user and at least T - 1 others."""
    p = scene.numbers
    own = p.users([place // p.T])
    outside = [user for user in range(p.K) if user not in scene.survivors]
    wrong = {"users that are not in the round": [*range(p.K), *range(p.K, p.K + p.T)]}
    lost = draw(among([user for user in range(p.K) if user != place]))
    if p.per_round > 1:
        wrong["all but one"] = [user for user in range(p.K) if user != lost]
        others = strategies.subset(draw, [user for user in range(p.K) if user not in own], p.T - 1, p.T - 1)
        wrong["one of the user's batch alone"] = sorted([place, *others])
    if outside:
        some = strategies.subset(draw, outside, 1, p.T - 1)
        wrong["a part of another batch"] = sorted([*scene.survivors, *some])
        left = [user for user in own if user != (own[0] if own[0] != place else own[1])]
        wrong["a user of another batch for one of its own"] = sorted([*left, outside[0]])
    name = draw(among(sorted(wrong)))
    return name, wrong[name]


@check(f"{REQUEST}/others", "MRA-21", examples=40)
def request_others(draw: Any, call: Caller) -> None:
    """A user refuses survivors that are not ascending or do not include it, whether they are whole batches or not."""
    scene = multi_round_functions.asked(draw, call.caps, fewest=2)
    own = scene.chosen.index(scene.user) // scene.numbers.T
    others = scene.numbers.users([batch for batch in range(scene.numbers.per_round) if batch != own])
    wrong = {
        "survivors that descend": list(scene.survivors[::-1]),
        "survivors of whom the first stands last": [*scene.survivors[1:], scene.survivors[0]],
        "survivors without the user": others,
        "no survivors": [],
    }
    name = draw(among(sorted(wrong)))
    why = f"there are {name}: {wrong[name]}, asked of user {scene.user} of {list(scene.chosen)}"
    call.refused(REQUEST, scene.params(survivors=wrong[name]), CHOICE, why)


@check(f"{REQUEST}/numbers", "MRA-01", "MRA-17", examples=60)
def request_numbers(draw: Any, call: Caller) -> None:
    """N, K, T and c that do not fit together are refused."""
    p, c = multi_round_functions.colluding(draw, call.caps, REQUEST)
    name, wrong = _wrong_session(draw, p, c)
    everybody = list(range(max(wrong["K"], 0)))
    params = {**wrong, "user": 0, "chosen": everybody, "survivors": everybody}
    call.refused(REQUEST, params, NUMBERS | CHOICE, f"the numbers are wrong ({name}): {wrong}")
