"""Planted bugs of SecAgg as frameworks ship it: rounds over reals, and what one user releases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import pack_reals
from secagg_spec.errors import BadShare, InconsistentSets, TooFewSurvivors
from secagg_spec.protocols.secagg import UnmaskRequest

Function = Callable[..., Any]
_SECAGG = "secagg_spec.protocols.secagg"
_TARGET = "secagg_spec.conformance.targets.reference_neighbours"
_USERS = 5


def _asked(op: str, params: dict[str, Any], rand: dict[str, Any]) -> object:
    """Return what the reference answers, but for the words."""
    answer = reference.build().answer({"id": 1, "op": op, "params": params, "rand": rand})
    for part in answer.get("result", {}).get("answers", [answer]):
        part.get("reject", part.get("error", {})).pop("message", None)
        part.get("error", {}).pop("trace", None)
    return answer


def _averaged(
    x: Sequence[float] = (1.0, 2.0, -3.0, 0.5, 0.0),
    drop: dict[str, list[int]] | None = None,
    rows: Sequence[str] = (),
    **changes: Any,
) -> object:
    """Return what the reference makes of a round of five users with one number each, or with whole rows."""
    rows = rows or [pack_reals(np.array([value])) for value in x]
    nobody: dict[str, list[int]] = {"advertise_keys": [], "share_keys": [], "masked_input": [], "unmasking": []}
    params = {
        "R": str(2**32),
        "N": _USERS,
        "t": 3,
        "k": 4,
        "clip": 4,
        "level": "1000",
        "max_weight": 10,
        "weights": [1, 2, 3, 4, 10],
        "x": list(rows),
        "drop": {**nobody, **(drop or {})},
        **changes,
    }
    return _asked("secagg.average", params, {"rounding": [pack_reals(np.zeros(1))] * _USERS})


def _released(*requests: tuple[Sequence[int], Sequence[int]], user: int = 0) -> object:
    """Return what user 0 of five answers to requests, after users 3 and 4 dropped out."""
    asked = [{"survivors": list(survivors), "dropped": list(dropped)} for survivors, dropped in requests]
    drop: dict[str, list[int]] = {"advertise_keys": [4], "share_keys": [], "masked_input": [3]}
    params = {"N": _USERS, "t": 3, "k": 4, "drop": drop, "user": user, "requests": asked}
    return _asked("secagg.unmasking", params, {})


_RIGHT = ((0, 1, 2), (3,))


# ----------------------------------------------------------------------------------------------- rounds over reals


@mutant(
    "clips-in-silence",
    "ADP-31",
    "wrong results: an input beyond the range enters the average as the end of the range",
    f"{_TARGET}:check_inputs",
    lambda: _averaged((5.0, 0.0, 0.0, 0.0, 0.0)),
    also=("ERR-02",),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.average/out-of-range",
)
def _clips(right: Function) -> Function:
    def wrong(x: Any, clip: int) -> None:
        np.clip(x, -clip, clip, out=x)

    return wrong


@mutant(
    "nan-becomes-zero",
    "QNT-01",
    "wrong results: NaN of one user enters the average as 0",
    f"{_TARGET}:check_inputs",
    lambda: _averaged((float("nan"), 0.0, 0.0, 0.0, 0.0)),
    also=("ADP-31",),
    kind="acceptance",
    source="silent repair",
)
def _nan(right: Function) -> Function:
    def wrong(x: Any, clip: int) -> None:
        np.nan_to_num(x, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        right(x, clip)

    return wrong


@mutant(
    "weights-are-not-looked-at",
    "ADP-32",
    "wrong results: one user counts as much as it likes",
    f"{_TARGET}:check_weights",
    lambda: _averaged(weights=[1, 2, 3, 4, 11]),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.average/weights",
)
def _any_weight(right: Function) -> Function:
    def wrong(weights: Sequence[int], N: int, most: int) -> None:
        if len(weights) != N:
            right(weights, N, most)

    return wrong


@mutant(
    "weights-are-left-out",
    "ADP-30",
    "wrong results: the sum is not weighted, and divided by the sum of the weights",
    f"{_TARGET}:quantised",
    _averaged,
    kind="sum",
    source="wrong term",
)
def _no_weights(right: Function) -> Function:
    return lambda ring, x, weights, *rest: right(ring, x, [1] * len(weights), *rest)


@mutant(
    "bound-counts-users-alone",
    "QNT-04",
    "wrong results: a sum of weighted inputs wraps, since only the number of users is looked at",
    f"{_TARGET}:quantised",
    lambda: _averaged(level="40000000"),
    also=("ERR-02",),
    kind="acceptance",
    source="clause in part",
)
def _users_alone(right: Function) -> Function:
    return lambda ring, x, weights, level, most, rounding: right(ring, x, weights, level, 1, rounding)


@mutant(
    "scale-is-not-looked-at",
    "ADP-33",
    "misuse goes unnoticed: a largest magnitude of 0 is taken",
    f"{_TARGET}:check_scale",
    lambda: _averaged((0.0,) * _USERS, clip=0),
    kind="acceptance",
    source="clause left out",
)
def _any_scale(right: Function) -> Function:
    return lambda clip, most: None


@mutant(
    "short-inputs-are-padded",
    "SAG-14",
    "wrong results: inputs of different lengths are cut and padded to the first one's",
    f"{_TARGET}:rows",
    lambda: _averaged(rows=[pack_reals(np.zeros(1 + user // 4)) for user in range(_USERS)]),
    kind="acceptance",
    source="silent repair",
)
def _pads(right: Function) -> Function:
    def wrong(name: str, texts: Sequence[str], N: int, d: int) -> Any:
        return right(name, [text[: 16 * d].ljust(16 * d, "0") for text in texts], N, d)

    return wrong


@mutant(
    "late-users-are-waited-for",
    "SAG-30",
    "failure: a round ends when a user drops out before it advertised keys",
    f"{_SECAGG}:server_advertise_keys",
    lambda: _averaged(drop={"advertise_keys": [1]}),
    also=("SAG-05",),
    kind="refusal",
    source="clause too strict",
)
def _waits(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if len(inbox) < state.round.parameters.N:
            raise TooFewSurvivors("somebody dropped out")
        return right(state, inbox, randomness=randomness)

    return wrong


@mutant(
    "names-users-that-shared-nothing",
    "SAG-30",
    "failure: the server asks for shares of users that dropped out before they shared any",
    f"{_SECAGG}:ServerState.dropped",
    lambda: _averaged(drop={"share_keys": [1]}),
    kind="refusal",
    source="seen in Flower 1.41.0: secagg.average/share-dropouts",
)
def _names_all(right: Function) -> Any:
    return property(lambda state: tuple(sorted(set(state.keys) - set(state.survivors))))


@mutant(
    "masks-of-the-dropped-stay",
    "SAG-29",
    "wrong results: what the dropped share with the survivors stays in the sum",
    f"{_SECAGG}:_left",
    lambda: _averaged(drop={"masked_input": [1]}),
    kind="sum",
    source="wrong term",
)
def _stay(right: Function) -> Function:
    return lambda state, keys: iter(())


@mutant(
    "masks-are-all-added",
    "SAG-12",
    "wrong results: both users of a pair add their mask, so that nothing cancels",
    f"{_SECAGG}:mask_update",
    _averaged,
    kind="sum",
    source="sign",
)
def _added(right: Function) -> Function:
    def wrong(ring: Any, user: int, update: Any, self_mask: Any, pairwise: Any) -> Any:
        return right(ring, -1, update, self_mask, pairwise)

    return wrong


def _recovered() -> object:
    """Return what the reference makes of a round of three users in which one share of a seed is altered."""
    nobody: dict[str, list[int]] = {"advertise_keys": [], "share_keys": [], "masked_input": [], "unmasking": []}
    params = {
        "R": str(2**32),
        "N": 3,
        "t": 3,
        "k": 2,
        "clip": 4,
        "level": "1000",
        "max_weight": 1,
        "weights": [1, 1, 1],
        "x": ["00" * 8] * 3,
        "drop": nobody,
        "user": 0,
        "owner": 1,
        "kind": "seed",
    }
    return _asked("secagg.recovery", params, {"rounding": ["00" * 8] * 3})


@mutant(
    "seeds-that-do-not-fit-are-taken",
    "SAG-28",
    "wrong results: a self seed that the shares do not give is taken for zeros, and its mask stays in the sum",
    f"{_SECAGG}:_self_seed",
    _recovered,
    kind="acceptance",
    source="silent repair",
)
def _taken(right: Function) -> Function:
    def wrong(state: Any, user: int, answers: Any) -> Any:
        with suppress(BadShare):
            return right(state, user, answers)
        return bytes(32)

    return wrong


# ------------------------------------------------------------------------------------------ what one user releases


@mutant(
    "asked-user-need-not-survive",
    "ADP-34",
    "misuse goes unnoticed: a user that dropped out is asked",
    f"{_TARGET}:check_survivor",
    lambda: _released(_RIGHT, user=3),
    kind="acceptance",
    source="clause left out",
)
def _any_user(right: Function) -> Function:
    return lambda network, user: None


def _checking(changed: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Function], Function]:
    """Return a builder: what is checked is made of the state and the request, and what was asked for is answered."""

    def build(right: Function) -> Function:
        def wrong(state: Any, message: UnmaskRequest) -> Any:
            right(*changed(state, message))
            return message.survivors, message.dropped

        return wrong

    return build


def _with_sets(message: UnmaskRequest, survivors: Iterable[int], dropped: Iterable[int]) -> UnmaskRequest:
    return replace(message, survivors=tuple(survivors), dropped=tuple(dropped))


mutant(
    "answers-for-a-user-named-twice",
    "SAG-19",
    "misuse goes unnoticed: one user is counted twice among the survivors",
    f"{_SECAGG}:check_request",
    lambda: _released(((0, 1, 2, 2), (3,))),
    kind="acceptance",
    source="silent repair",
)(_checking(lambda s, m: (s, _with_sets(m, tuple(dict.fromkeys(m.survivors)), tuple(dict.fromkeys(m.dropped))))))


@mutant(
    "answers-for-strangers",
    "SAG-19",
    "acceptance: users outside the roster are taken out of a request in silence",
    f"{_SECAGG}:check_request",
    lambda: _released(((0, 1, 2, 5), (3,))),
    kind="acceptance",
    source="silent repair",
)
def _strangers(right: Function) -> Function:
    def wrong(state: Any, message: UnmaskRequest) -> Any:
        known = [
            [user for user in users if 0 <= user < state.round.parameters.N]
            for users in (message.survivors, message.dropped)
        ]
        return right(state, _with_sets(message, *known))

    return wrong


mutant(
    "releases-both-secrets",
    "SAG-20",
    "privacy: for a user in both sets, both secrets are released, and its input lies bare",
    f"{_SECAGG}:check_request",
    lambda: _released(((0, 1, 2), (2, 3))),
    kind="privacy",
    source="seen in Flower 1.41.0: secagg.unmasking/both-sets",
)(_checking(lambda s, m: (s, _with_sets(m, m.survivors, [user for user in m.dropped if user not in m.survivors]))))


mutant(
    "answers-though-listed-as-dropped",
    "SAG-21",
    "privacy: a user helps to remove the masks of its own input, which it did send",
    f"{_SECAGG}:check_request",
    lambda: _released(((1, 2, 3), (0,))),
    kind="privacy",
    source="seen in Flower 1.41.0: secagg.unmasking/itself",
)(
    _checking(
        lambda s, m: (
            s,
            _with_sets(m, {*m.survivors, s.user}, [user for user in m.dropped if user != s.user]),
        )
    )
)


@mutant(
    "answers-for-too-few",
    "SAG-22",
    "privacy: a user answers for a set in which a single input would lie bare",
    f"{_SECAGG}:check_request",
    lambda: _released(((0,), (1, 2, 3))),
    kind="privacy",
    source="paper: secagg, few contributors",
)
def _too_few(right: Function) -> Function:
    def wrong(state: Any, message: UnmaskRequest) -> Any:
        with suppress(TooFewSurvivors):
            return right(state, message)
        return message.survivors, message.dropped

    return wrong


@mutant(
    "answers-for-an-incomplete-request",
    "SAG-23",
    "failure: a user answers a request that leaves out users whose shares it holds, or names others",
    f"{_SECAGG}:check_request",
    lambda: _released(((0, 1, 2), ())),
    kind="acceptance",
    source="seen in Flower 1.41.0: secagg.unmasking/unnamed",
)
def _incomplete(right: Function) -> Function:
    def wrong(state: Any, message: UnmaskRequest) -> Any:
        try:
            return right(state, message)
        except InconsistentSets as error:
            if "are held" not in str(error):
                raise
        return message.survivors, message.dropped

    return wrong


@mutant(
    "releases-seeds-of-the-dropped",
    "SAG-24",
    "privacy: of dropped users both secrets are released",
    f"{_SECAGG}:user_unmasking",
    lambda: _released(_RIGHT),
    kind="privacy",
    source="wrong term",
)
def _more(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, (answer,) = right(state, inbox, randomness=randomness)
        return after, (replace(answer, survivors=tuple(sorted({*answer.survivors, *answer.dropped}))),)

    return wrong


@mutant(
    "unmasks-as-often-as-asked",
    "SAG-25",
    "privacy: asked twice with two sets, a user releases both secrets of another one",
    f"{_SECAGG}:user_unmasking",
    lambda: _released(_RIGHT, ((0, 1, 3), (2,))),
    kind="privacy",
    source="used twice",
)
def _often(right: Function) -> Function:
    return lambda state, inbox, *, randomness: (state, right(state, inbox, randomness=randomness)[1])
