"""Checks of what one user of SecAgg releases, ``secagg.unmasking`` (spec/secagg.md, SAG-19 to SAG-25)."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import neighbours
from secagg_spec.conformance.cases.neighbour_rounds import EARLY, Unmasking, unmasking
from secagg_spec.conformance.cases.neighbours import UNMASKING
from secagg_spec.conformance.cases.requests import inserted
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check
from secagg_spec.conformance.checks.scripts import rejection
from secagg_spec.conformance.sessions.choices import among, only_if

_SETS = frozenset({"inconsistent_sets", "unknown_peer", "duplicate_id"})
_WRONG_USER = reject.BAD_PARAM | reject.OUTSIDE | reject.MALFORMED | reject.TOO_FEW


def _spares(caps: Capabilities) -> bool:
    return bool(neighbours.rosters(caps, UNMASKING, 1))


@check("secagg.unmasking/shares", "SAG-24", examples=40)
def shares(draw: Any, call: Caller) -> None:
    """The answer holds exactly the survivors' seed shares and the dropped users' key shares that the user holds."""
    scene = unmasking(draw, call.caps)
    (entry,) = entries_of(call, scene, scene.right())
    _released(call, entry, scene)


@check("secagg.unmasking/again", "SAG-25", examples=20)
def again(draw: Any, call: Caller) -> None:
    """A second request is refused, whether it equals the first or not."""
    scene = unmasking(draw, call.caps)
    other = [user for user in scene.survivors if user != scene.user]
    moved = _moved(scene, draw(among(other))) if draw(st.booleans()) else scene.right()
    first, second = entries_of(call, scene, scene.right(), moved)
    _released(call, first, scene)
    _demand(call, second, reject.AGAIN | reject.TOO_FEW, "a request was answered before")


@check("secagg.unmasking/twice", "SAG-19", examples=20)
def twice(draw: Any, call: Caller) -> None:
    """A request that names a user twice in one set is refused."""
    scene = unmasking(draw, call.caps)
    request = scene.right()
    name = "dropped" if request["dropped"] and draw(st.booleans()) else "survivors"
    user = draw(among(request[name]))
    why = f"{name} names {user} twice"
    _refused(call, scene, {**request, name: inserted(draw, request[name], user)}, reject.TWICE, why)


@check("secagg.unmasking/outside", "SAG-19", examples=20)
def outside(draw: Any, call: Caller) -> None:
    """A request that names a user outside the roster is refused."""
    scene = unmasking(draw, call.caps)
    name, stranger = draw(among(("survivors", "dropped"))), draw(among((scene.roster.N, 2**31 - 1)))
    request = {**scene.right(), name: [*scene.right()[name], stranger]}
    _refused(call, scene, request, reject.OUTSIDE, f"{name} names {stranger} and N is {scene.roster.N}")


@check("secagg.unmasking/both-sets", "SAG-20", examples=20)
def both_sets(draw: Any, call: Caller) -> None:
    """A request that names a user both as survivor and as dropped is refused."""
    scene = unmasking(draw, call.caps)
    user = draw(among([user for user in scene.survivors if user in scene.holders]))
    request = {**scene.right(), "dropped": sorted([*scene.dropped, user])}
    _refused(call, scene, request, _SETS, f"user {user} is named as survivor and as dropped")


@check("secagg.unmasking/itself", "SAG-21", applies=_spares, examples=20)
def itself(draw: Any, call: Caller) -> None:
    """A request in which the user itself is not a survivor is refused."""
    scene = unmasking(draw, call.caps, 1)
    codes = _SETS | reject.TOO_FEW if len(scene.drop_all()) == scene.roster.spare else _SETS
    _refused(call, scene, _moved(scene, scene.user), codes, f"user {scene.user} is asked, and is no survivor")


@check("secagg.unmasking/too-few", "SAG-22", examples=20)
def too_few(draw: Any, call: Caller) -> None:
    """A request with fewer than t survivors is refused."""
    scene = unmasking(draw, call.caps)
    others = [user for user in scene.survivors if user != scene.user]
    kept = sorted([scene.user, *others[: draw(st.integers(0, scene.roster.t - 2))]])
    request = {"survivors": kept, "dropped": [user for user in scene.sharers if user not in kept]}
    _refused(call, scene, request, reject.TOO_FEW, f"{len(kept)} users survive and t = {scene.roster.t} are needed")


@check("secagg.unmasking/unnamed", "SAG-23", applies=_spares, examples=20)
def unnamed(draw: Any, call: Caller) -> None:
    """A request that leaves out a user whose shares the party holds is refused."""
    scene = unmasking(draw, call.caps, 1)
    held = [user for user in scene.sharers if user in scene.holders and user != scene.user]
    left_out = draw(among(held))
    request = {name: [user for user in users if user != left_out] for name, users in scene.right().items()}
    codes = _SETS | reject.TOO_FEW if len(scene.drop_all()) == scene.roster.spare else _SETS
    _refused(call, scene, request, codes, f"shares of user {left_out} are held, and it is not named")


@check("secagg.unmasking/not-held", "SAG-23", applies=_spares, examples=20)
def not_held(draw: Any, call: Caller) -> None:
    """A request that names a neighbour whose shares the party does not hold is refused."""
    scene = unmasking(draw, call.caps, 1, EARLY, 1)
    dropped = [user for user in scene.drop_all() if user in scene.holders]
    name = draw(among(("survivors", "dropped")))
    only_if(dropped)
    request = {**scene.right(), name: sorted([*scene.right()[name], dropped[0]])}
    _refused(call, scene, request, _SETS, f"no shares of user {dropped[0]} are held")


@check("secagg.unmasking/no-trace", "ERR-01", "SAG-24", examples=20)
def no_trace(draw: Any, call: Caller) -> None:
    """After a refused request, the right request is answered as if it were the first."""
    scene = unmasking(draw, call.caps)
    wrong = {"survivors": [scene.user], "dropped": [user for user in scene.sharers if user != scene.user]}
    first, second = entries_of(call, scene, wrong, scene.right())
    _demand(call, first, reject.TOO_FEW, f"1 user survives and t = {scene.roster.t} are needed")
    _released(call, second, scene)


@check("secagg.unmasking/user", "ADP-34", examples=15)
def bad_user(draw: Any, call: Caller) -> None:
    """A user outside the roster, or one that drops out, cannot be the one that answers."""
    scene = unmasking(draw, call.caps)
    dropped = scene.drop_all()
    wrong = draw(among((*dropped, scene.roster.N, -1)))
    call.refused(UNMASKING, scene.params(scene.right(), user=wrong), _WRONG_USER, f"user {wrong} has nothing to answer")


def _moved(scene: Unmasking, user: int) -> dict[str, list[int]]:
    """Return the request with one survivor moved to the dropped users."""
    request = scene.right()
    return {
        "survivors": [other for other in request["survivors"] if other != user],
        "dropped": sorted([*request["dropped"], user]),
    }


def entries_of(call: Caller, scene: Unmasking, *requests: dict[str, list[int]]) -> list[Mapping[str, Any]]:
    """Send requests to the party of a scene, and return one entry for each."""
    answers = call.result(UNMASKING, scene.params(*requests)).get("answers")
    if not isinstance(answers, list) or len(answers) != len(requests) or not all(isinstance(e, dict) for e in answers):
        raise CheckFailed("protocol", f"{UNMASKING}: answers must be a list of {len(requests)} objects")
    return answers


def _released(call: Caller, entry: Mapping[str, Any], scene: Unmasking) -> None:
    """Demand that the right request was answered with the shares of exactly its users."""
    wanted = scene.wanted(call.caps)
    if "reject" in entry:
        refusal = rejection(UNMASKING, entry)
        message = f"the right request was refused as {refusal.code}, so that refusals say nothing: {refusal.message}"
        raise CheckFailed("rejected_valid", message, wanted)
    came = {name: entry.get(name) for name in wanted}
    if came != wanted:
        why = ", and nobody had dropped out" if came["keys"] and not scene.dropped else ""
        message = f"shares of {_named(came)} were released, must be {_named(wanted)}{why}"
        raise CheckFailed("wrong_value", message, wanted)


def _named(released: Mapping[str, Any]) -> str:
    return f"the seeds of {released['seeds']} and the keys of {released['keys']}"


def _refused(call: Caller, scene: Unmasking, request: dict[str, list[int]], codes: frozenset[str], why: str) -> None:
    """Demand that a wrong request is refused where the right one is answered: a user that refuses all fails."""
    (entry,) = entries_of(call, scene, scene.right())
    if "reject" in entry:
        _released(call, entry, scene)
    (entry,) = entries_of(call, scene, request)
    _demand(call, entry, codes, why)


def _demand(call: Caller, entry: Mapping[str, Any], codes: frozenset[str], why: str) -> None:
    """Demand that a request was refused with a fitting code."""
    if "reject" not in entry:
        released = {name: entry.get(name) for name in ("seeds", "keys")}
        message = f"the user released shares, {released}, although {why}"
        raise CheckFailed("accepted_invalid", message, {"reject": sorted(codes)})
    call.fits("the request", rejection(UNMASKING, entry), codes, why)
