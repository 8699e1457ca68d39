"""Checks of what one user of HeteroSAg answers, ``heterosag.request`` (spec/heterosag.md, sections 6 and 8)."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.heterosag_functions import REQUEST, Asked, asked, few_of
from secagg_spec.conformance.cases.heterosag_oracles import members
from secagg_spec.conformance.cases.heterosag_sessions import wrong_numbers
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check
from secagg_spec.conformance.checks.heterosag_levels import BAD_RANGE
from secagg_spec.conformance.checks.scripts import rejection
from secagg_spec.conformance.sessions.choices import among


@check("heterosag.request/answered", "HSA-18", "HSA-27", examples=25)
def answered(draw: Any, call: Caller) -> None:
    """A user answers one request after another while whole subgroups drop out and return."""
    scene = asked(draw)
    subgroups = members(scene.parameters)
    rounds = [draw(among(((), *map(tuple, subgroups)))) for _ in range(draw(st.integers(1, 4)))]
    _judge(call, scene.then(*(users if _some_left(subgroups, rounds) else () for users in rounds)))


def _some_left(subgroups: Sequence[Sequence[int]], rounds: Sequence[Sequence[int]]) -> bool:
    """Return whether some user survives in all rounds."""
    return len({tuple(users) for users in rounds if users}) < len(subgroups)


@check("heterosag.request/enough", "HSA-18", examples=25)
def enough(draw: Any, call: Caller) -> None:
    """A request that leaves a subgroup exactly T + 2 survivors is answered."""
    scene = asked(draw, sizes=_sizes(draw, T := draw(st.integers(1, 2))), T=T)
    subgroup = draw(among(members(scene.parameters)))
    _judge(call, scene.then(few_of(draw, subgroup, len(subgroup) - T - 2, len(subgroup) - T - 2)))


def _sizes(draw: Any, T: int) -> list[int]:
    """Draw the sizes of two or three subgroups, each with more users than needed."""
    return [T + 2 + draw(st.integers(1, 3)) for _ in range(draw(st.integers(2, 3)))]


@check("heterosag.request/few", "HSA-18", examples=40)
def few(draw: Any, call: Caller) -> None:
    """A request is refused if it leaves one to T + 1 survivors in a cell, whether the cell is the user's or not."""
    scene = asked(draw)
    _judge(call, scene.then(_all_but_few(draw, scene)))


def _all_but_few(draw: Any, scene: Asked) -> list[int]:
    """Draw dropouts that leave one to T + 1 survivors in a subgroup."""
    subgroup = draw(among(members(scene.parameters)))
    left = draw(st.integers(1, scene.parameters.T + 1))
    return few_of(draw, subgroup, len(subgroup) - left, len(subgroup) - left)


@check("heterosag.request/later", "HSA-27", examples=40)
def later(draw: Any, call: Caller) -> None:
    """A request is refused if one to T + 1 users of a cell left or returned since an earlier request."""
    scene = asked(draw, sizes=_sizes(draw, T := draw(st.integers(1, 2))), T=T)
    subgroup = draw(among(members(scene.parameters)))
    dropped = few_of(draw, subgroup, 1, min(T + 1, len(subgroup) - T - 2))
    rounds: list[Sequence[int]] = [(), dropped] if draw(st.booleans()) else [dropped, ()]
    between = [rounds[0]] * draw(st.integers(0, 1))
    _judge(call, scene.then(rounds[0], *between, rounds[1]))


@check("heterosag.request/three", "HSA-27", examples=40)
def three(draw: Any, call: Caller) -> None:
    """A request is refused if three rounds together isolate a few users that no two of the rounds isolate."""
    scene, (first, second) = _blocks(draw, 2)
    rounds = _ordered(draw, [(), first, second])
    _judge(call, scene.then(*rounds))


@check("heterosag.request/four", "HSA-27", examples=30)
def four(draw: Any, call: Caller) -> None:
    """A request is refused if only a few users are in all of four rounds, although no two rounds isolate them."""
    scene, blocks = _blocks(draw, 3)
    _judge(call, scene.then(*_ordered(draw, [(), *blocks])))


@check("heterosag.request/both-ways", "HSA-27", examples=30)
def both_ways(draw: Any, call: Caller) -> None:
    """A request is refused if one to T + 1 users of a cell leave while others return, however many change in total."""
    T = draw(st.integers(1, 2))
    leave, come = draw(st.integers(1, T + 2)), draw(st.integers(1, T + 1))
    scene = asked(draw, sizes=_ordered(draw, [T + 2 + leave + come, T + 2]), T=T)
    users = strategies.shuffled(draw, max(members(scene.parameters), key=len))
    _judge(call, scene.then(*_ordered(draw, [users[:come], users[come : come + leave]])))


def _blocks(draw: Any, count: int) -> tuple[Asked, list[list[int]]]:
    """Draw a session with a subgroup made of blocks of T + 2 users and of 0 to T + 2 others, and the blocks."""
    T = draw(st.integers(1, 2))
    size = T + 2
    others = draw(among((1, T + 1, 1, 0, size)))
    scene = asked(draw, sizes=_ordered(draw, [count * size + others, size]), T=T)
    large = max(members(scene.parameters), key=len)
    users = strategies.shuffled(draw, large)
    return scene, [users[at * size : (at + 1) * size] for at in range(count)]


def _ordered(draw: Any, things: Sequence[Any]) -> list[Any]:
    order = draw(st.permutations(range(len(things))))
    return [things[at] for at in order]


@check("heterosag.request/any", "HSA-18", "HSA-27", examples=40)
def anything(draw: Any, call: Caller) -> None:
    """Of requests in which blocks of users of one subgroup drop out and return, exactly the safe ones are answered."""
    T = draw(st.integers(1, 2))
    sizes = [draw(st.integers(1, T + 2)) for _ in range(3)]
    scene = asked(draw, sizes=[T + 2, max(sum(sizes), T + 2)], T=T)
    users = members(scene.parameters)[1]
    blocks = [users[sum(sizes[:at]) : sum(sizes[: at + 1])] for at in range(len(sizes))]
    rounds = [few_of(draw, range(len(blocks)), 0, len(blocks)) for _ in range(draw(st.integers(2, 4)))]
    _judge(call, scene.then(*([user for at in dropped for user in blocks[at]] for dropped in rounds)))


@check("heterosag.request/no-trace", "ERR-01", "HSA-18", "HSA-27", examples=30)
def no_trace(draw: Any, call: Caller) -> None:
    """After a refused request, the user answers the requests that are safe without it."""
    scene = asked(draw)
    _judge(call, scene.then((), _all_but_few(draw, scene), ()) if draw(st.booleans()) else _apart(draw))


def _apart(draw: Any) -> Asked:
    """Draw a refused request that would make a right request wrong if it counted as answered."""
    T = draw(st.integers(1, 2))
    scene = asked(draw, sizes=[T + 2, 2 * (T + 2) + 1], T=T)
    one, *others = members(scene.parameters)[1]
    return scene.then((), [one], [one, *others[: T + 1]])


@check("heterosag.request/numbers", "HSA-01", "HSA-02", "HSA-03", "HSA-04", examples=40)
def numbers(draw: Any, call: Caller) -> None:
    """Numbers of a session that the text forbids are refused."""
    scene = asked(draw).then(())
    call.some_refused(draw, REQUEST, scene.params(), wrong_numbers(scene.parameters), BAD_RANGE)


def _judge(call: Caller, scene: Asked) -> None:
    """Demand that exactly the requests that the text allows are answered."""
    answers = call.result(REQUEST, scene.params()).get("answers")
    wanted = scene.answered()
    if not isinstance(answers, list) or len(answers) != len(wanted) or not all(isinstance(e, dict) for e in answers):
        raise CheckFailed("protocol", f"{REQUEST}: answers must be a list of {len(wanted)} objects")
    for at, (entry, right) in enumerate(zip(answers, wanted, strict=True)):
        (_answered if right else _refused)(call, scene, at, entry)


def _answered(call: Caller, scene: Asked, at: int, entry: Mapping[str, Any]) -> None:
    if "reject" in entry:
        refusal = rejection(REQUEST, entry)
        message = f"request {at} of {scene.requests} was refused as {refusal.code}, and it is right: {refusal.message}"
        raise CheckFailed("rejected_valid", message, {})
    if entry != {}:
        raise CheckFailed("protocol", f"{REQUEST}: the entry of a request that is answered is {{}}, not {entry!r:.80}")


def _refused(call: Caller, scene: Asked, at: int, entry: Mapping[str, Any]) -> None:
    why = f"it leaves fewer than T + 2 users, or with those before it tells about fewer, of {scene.requests}"
    if "reject" not in entry:
        message = f"request {at} was answered although {why}"
        raise CheckFailed("accepted_invalid", message, {"reject": sorted(reject.TOO_FEW)})
    call.fits(f"request {at}", rejection(REQUEST, entry), reject.TOO_FEW, why)
