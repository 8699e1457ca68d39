"""Planted bugs of what a user of HeteroSAg answers, now and after earlier rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.heterosag_witness import Function, requested
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols import secagg
from secagg_spec.protocols.heterosag import UserState
from secagg_spec.protocols.heterosag_plan import UNIT, Parameters, cells_of

_STEPS = "secagg_spec.protocols.heterosag"
_CELLS, _PAST, _ANSWER = f"{_STEPS}:check_cells", f"{_STEPS}:check_past", f"{_STEPS}:user_unmasking"
_ASKED = "secagg_spec.conformance.targets.reference_heterosag:asked"
_BLOCKS = Parameters(13, 0, 1, 3, 2, (3, 10), (1, 1), (2, 3), UNIT)
"""A subgroup with three blocks of three users, 3 to 5, 6 to 8 and 9 to 11, and the user 12."""
Sets = Sequence[frozenset[int]]


# ---------------------------------------------------------------------------------------------------------- one round


def _leaving(
    name: str, effect: str, *dropped: Sequence[int], kind: str, source: str
) -> Callable[[Callable[[int, int], bool]], Any]:
    """Register a mutant that refuses so many survivors of a cell, and another T + 2, only."""

    def register(bad: Callable[[int, int], bool]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, survivors: Collection[int]) -> None:
                for cell in parameters.parts:
                    if bad(len(cell.members & set(survivors)), parameters.T + 2):
                        raise TooFewSurvivors(f"too few users of subgroups {list(cell.subgroups)} survive")

            return wrong

        witness = dropped or (range(3, 6),)
        return mutant(
            name, "HSA-18", effect, _CELLS, lambda: requested(*witness), also=("HSA-17",), kind=kind, source=source
        )(build)

    return register


def _lenient(name: str, effect: str, *, kind: str, source: str) -> Callable[[Callable[[int, int], bool]], Any]:
    """Register a mutant that answers the first request of a session when no cell has such a number of survivors.

    That too few users are told about follows from HSA-27 as well, so that leaving HSA-18 out alone would show nowhere.
    """

    def register(bad: Callable[[int, int], bool]) -> Any:
        def build(right: Function) -> Function:
            def wrong(state: UserState, inbox: Any, *, randomness: Any) -> Any:
                try:
                    return right(state, inbox, randomness=randomness)
                except TooFewSurvivors:
                    p, now = state.parameters, frozenset(inbox[0].survivors)
                    if state.past or any(bad(len(cell.members & now), p.T + 2) for cell in p.parts):
                        raise
                    base, outbox = secagg.user_unmasking(state.base, inbox, randomness=randomness)
                    return replace(state, base=base, past=(now,)), outbox

            return wrong

        witness = (range(1, 6) if name == "cells-not-looked-at" else range(2, 6),)
        return mutant(name, "HSA-18", effect, _ANSWER, lambda: requested(*witness), kind=kind, source=source)(build)

    return register


@_lenient(
    "one-survivor-refused-only",
    "privacy: two survivors of a cell are enough",
    kind="privacy",
    source="paper: heterosag, few survivors",
)
def _only_one(left: int, least: int) -> bool:
    return left == 1


@_lenient(
    "t-plus-1-survivors-of-a-cell", "privacy: T + 1 survivors of a cell are enough", kind="privacy", source="off by one"
)
def _one_less(left: int, least: int) -> bool:
    return 0 < left < least - 1


@_leaving(
    "t-plus-2-survivors-refused",
    "failure: T + 2 survivors of a cell are not enough",
    kind="refusal",
    source="off by one",
)
def _one_more(left: int, least: int) -> bool:
    return 0 < left <= least


@_leaving(
    "no-survivor-refused",
    "failure: a subgroup that is lost as a whole ends the round",
    range(6),
    kind="refusal",
    source="clause too strict",
)
def _none(left: int, least: int) -> bool:
    return left < least


@_lenient(
    "cells-not-looked-at",
    "privacy: a single survivor of a cell gives a segment away",
    kind="privacy",
    source="clause left out",
)
def _any(left: int, least: int) -> bool:
    return False


@mutant(
    "own-cells-only",
    "HSA-18",
    "privacy: a user looks at its own cells only, so that it helps to unmask a segment of somebody else",
    _ANSWER,
    lambda: requested(range(7, 11)),
    also=("HSA-27",),
    kind="privacy",
    source="clause in part",
)
def _own_cells(right: Function) -> Function:
    def wrong(state: UserState, inbox: Any, *, randomness: Any) -> Any:
        own = cells_of(state.parameters, state.base.user)
        parameters = replace(state.parameters)
        parameters.__dict__["parts"] = own
        after, outbox = right(replace(state, parameters=parameters), inbox, randomness=randomness)
        return replace(after, parameters=state.parameters), outbox

    return wrong


# -------------------------------------------------------------------------------------------------------- many rounds


def _looking_back(
    name: str, effect: str, *dropped: Sequence[int], numbers: Parameters | None = None, kind: str, source: str
) -> Callable[[Callable[[frozenset[int], Sets, int], bool]], Any]:
    """Register a mutant that looks back in another way: at the survivors of a cell, now and in earlier rounds."""

    def register(bad: Callable[[frozenset[int], Sets, int], bool]) -> Any:
        def build(right: Function) -> Function:
            def wrong(parameters: Parameters, survivors: Collection[int], past: Sets) -> None:
                for cell in parameters.parts:
                    seen = [cell.members & members for members in past]
                    if bad(cell.members & frozenset(survivors), seen, parameters.T + 2):
                        raise TooFewSurvivors(f"segment {cell.segment} tells about few users")

            return wrong

        known = {"numbers": numbers} if numbers else {}
        return mutant(name, "HSA-27", effect, _PAST, lambda: requested(*dropped, **known), kind=kind, source=source)(
            build
        )

    return register


@_looking_back(
    "no-look-back",
    "privacy: two rounds that differ in one user give this user's segment away",
    (),
    (1,),
    kind="privacy",
    source="paper: heterosag, over rounds",
)
def _no_look(now: frozenset[int], past: Sets, least: int) -> bool:
    return False


@_looking_back(
    "last-round-only",
    "privacy: a user compares with the round before, and not with those before that",
    (),
    range(6),
    (1,),
    kind="privacy",
    source="clause in part",
)
def _last_only(now: frozenset[int], past: Sets, least: int) -> bool:
    return _differ(now, past[-1:], least)


@_looking_back(
    "first-round-only",
    "privacy: a user compares with the first round only",
    range(6),
    (),
    (1,),
    kind="privacy",
    source="clause in part",
)
def _first_only(now: frozenset[int], past: Sets, least: int) -> bool:
    return _differ(now, past[:1], least)


@_looking_back(
    "two-rounds-at-a-time",
    "privacy: three rounds together tell about one user, of which no two of them do",
    (), range(3, 6), range(6, 12),
    numbers=_BLOCKS,
    kind="privacy", source="clause in part",
)  # fmt: skip
def _pairs(now: frozenset[int], past: Sets, least: int) -> bool:
    return _differ(now, past, least)


def _differ(now: frozenset[int], past: Sets, least: int) -> bool:
    return any(0 < len(now ^ members) < least for members in past)


@_looking_back(
    "companions-of-two-rounds",
    "privacy: three rounds or more tell one user from the others, of which no two of them do",
    (), (3, 4, 5), (6, 7, 8), (9, 10, 11),
    numbers=_BLOCKS,
    kind="privacy", source="clause in part",
)  # fmt: skip
def _two_at_a_time(now: frozenset[int], past: Sets, least: int) -> bool:
    apart = [part for a, b in combinations([now, *past], 2) for part in (a - b, b - a, a & b)]
    return any(0 < len(part) < least for part in (*apart, now))


@_looking_back(
    "differences-counted-together",
    "privacy: users that leave and users that come are counted together, so that few of each are enough",
    (1, 2), (3, 4),
    numbers=Parameters(9, 0, 1, 3, 2, (6, 3), (1, 1), (2, 3), UNIT),
    kind="privacy", source="other rule: users that leave and that come counted together",
)  # fmt: skip
def _together(now: frozenset[int], past: Sets, least: int) -> bool:
    return _differ(now, past, least)


@_looking_back(
    "each-round-once",
    "privacy: only sums and differences are looked at, in which each round counts once",
    (), (3, 4, 5), (6, 7, 8), (9, 10, 11),
    numbers=_BLOCKS,
    kind="privacy", source="clause in part",
)  # fmt: skip
def _once(now: frozenset[int], past: Sets, least: int) -> bool:
    users, rounds = sorted(now.union(*past)), [now, *past]
    found = _signed_sums([[int(user in members) for user in users] for members in rounds])
    return any(0 < sum(map(bool, total)) < least for total in found)


def _signed_sums(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    sums = [[0] * len(rows[0])]
    for row in rows:
        sums = [[a + sign * b for a, b in zip(total, row, strict=True)] for total in sums for sign in (-1, 0, 1)]
    return sums


@_looking_back(
    "sets-never-alike",
    "failure: a round with the survivors of an earlier one is refused",
    (),
    (),
    kind="refusal",
    source="clause too strict",
)
def _alike(now: frozenset[int], past: Sets, least: int) -> bool:
    return any(len(now ^ members) < least for members in past if now)


@_looking_back(
    "subsets-only",
    "privacy: only users that are missing now are looked at, and not those that come back",
    (1,),
    (),
    kind="privacy",
    source="clause in part",
)
def _subsets(now: frozenset[int], past: Sets, least: int) -> bool:
    return any(0 < len(members - now) < least for members in past if now < members)


@_looking_back(
    "t-plus-1-users-told-about",
    "privacy: sums may tell about T + 1 users",
    (),
    (1, 2),
    kind="privacy",
    source="off by one",
)
def _less(now: frozenset[int], past: Sets, least: int) -> bool:
    return any(0 < len(a ^ b) < least - 1 for a, b in combinations([now, *past], 2))


@mutant(
    "refused-request-remembered",
    "ERR-01",
    "failure: a request that was refused counts as answered, so that no later one is safe",
    _ASKED,
    lambda: requested((), (1,), ()),
    kind="refusal",
    source="trace of a refusal",
)
def _remembered(right: Function) -> Function:
    def wrong(state: UserState, request: Any) -> Any:
        past, entry = right(state, request)
        return (*past, frozenset(request.survivors)) if "reject" in entry else past, entry

    return wrong


@mutant(
    "answered-request-forgotten",
    "HSA-27",
    "privacy: a user does not remember which requests it answered",
    _ANSWER,
    lambda: requested((), (1,)),
    kind="privacy",
    source="forgotten",
)
def _forgotten(right: Function) -> Function:
    def wrong(state: UserState, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, past=()), outbox

    return wrong
