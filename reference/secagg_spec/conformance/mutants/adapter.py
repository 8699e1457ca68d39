"""Planted bugs of adapters: requests that are no requests, forms that are taken for others, members nobody looks at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.targets import reference

Function = Callable[..., Any]
_SDK = "secagg_spec.conformance.sdk.secagg_adapter"
_TARGET = "secagg_spec.conformance.targets.reference"
_ROUND: dict[str, Any] = {"q": "7", "N": 3, "D": 0, "U": 2, "T": 1, "d": 1}


def _kind(answer: Mapping[str, Any]) -> object:
    """Return what an answer is, without the words of its message."""
    if "reject" in answer:
        return answer["id"], answer["reject"]["code"]
    return answer["id"], answer.get("result", sorted(answer))


def _line(line: bytes) -> object:
    return _kind(reference.build().answer(secagg_adapter._parse(line)))


def _asked(op: str, **params: Any) -> object:
    return _kind(reference.build().answer({"id": 1, "op": op, "params": params}))


def _add(**changed: Any) -> object:
    return _asked("field.add", **{"q": "97", "a": "0a000000", "b": "01000000", **changed})


def _held(*users: int, T: int = 1, first: str = "01000000") -> object:
    held = [[user, first if user == 0 else "01000000"] for user in users]
    return _asked("lightsecagg.aggregate_shares", q="7", N=4, T=T, surviving=[0, 1, 2], held=held)


def _dropped(**drop: Any) -> object:
    vectors = ["01000000"] * 3
    body = {"id": 1, "op": "lightsecagg.round", "params": {**_ROUND, "updates": vectors, "drop": drop}}
    return _kind(reference.build().answer({**body, "rand": {"masks": vectors, "noises": vectors}}))


# ------------------------------------------------------------------------------------------------------- lines


@mutant(
    "lines-of-a-mebibyte",
    "ADP-02",
    "long vectors are lost: a line above 2 MiB is not read as a whole",
    f"{_SDK}:_parse",
    lambda: _line(json.dumps({"id": 1, "op": "echo", "params": {"data": "x" * 2**21}}).encode()),
    kind="form",
    source="clause in part",
)
def _short_lines(right: Function) -> Function:
    return lambda line: right(line[: 2**21])


@mutant(
    "no-request-is-an-error",
    "ADP-10",
    "a line that is not a request is answered as if the implementation had broken",
    f"{_SDK}:Adapter.answer",
    lambda: _line(b"{"),
    kind="form",
    source="wrong reason",
)
def _error(right: Function) -> Function:
    def wrong(self: secagg_adapter.Adapter, request: Any) -> Any:
        if not secagg_adapter.is_request(request):
            return {"id": None, "error": {"message": "KeyError: 'id'"}}
        return right(self, request)

    return wrong


@mutant(
    "rest-of-line-ignored",
    "ADP-10",
    "what stands behind the first JSON value of a line is ignored",
    f"{_SDK}:_parse",
    lambda: _line(b'{"id": 1, "op": "hello", "params": {}} x'),
    kind="form",
    source="clause in part",
)
def _rest(right: Function) -> Function:
    def wrong(line: bytes) -> Any:
        try:
            return json.JSONDecoder().raw_decode(line.decode().lstrip())[0]
        except ValueError:
            return None

    return wrong


@mutant(
    "id-may-be-anything",
    "ADP-10",
    "a request is answered whatever its id is",
    f"{_SDK}:is_request",
    lambda: _line(b'{"id": "1", "op": "hello", "params": {}}'),
    kind="form",
    source="clause in part",
)
def _any_id(right: Function) -> Function:
    return lambda value: isinstance(value, dict) and "id" in value


@mutant(
    "further-members-ignored",
    "ADP-11",
    "a member that no request has is ignored",
    f"{_SDK}:check_members",
    lambda: _line(b'{"id": 1, "op": "echo", "params": {"data": 1}, "seed": 1}'),
    kind="form",
    source="silent repair",
)
def _further(right: Function) -> Function:
    known = ("id", "op", "params", "rand")
    return lambda request: right({name: value for name, value in request.items() if name in known})


@mutant(
    "empty-rand-of-any-type",
    "ADP-11",
    "a rand that is null, a list or a string counts as none",
    f"{_SDK}:check_members",
    lambda: _line(b'{"id": 1, "op": "echo", "params": {"data": 1}, "rand": null}'),
    kind="form",
    source="silent repair",
)
def _no_rand(right: Function) -> Function:
    def wrong(request: dict[str, Any]) -> None:
        if not request.get("rand", True):
            request["rand"] = {}
        right(request)

    return wrong


# ------------------------------------------------------------------------------------------------------- forms


@mutant(
    "true-is-one",
    "ADP-12",
    "true and false are taken for the integers 1 and 0",
    f"{_SDK}:_is_integer",
    lambda: _asked("lightsecagg.aggregate_shares", q="7", N=4, T=1, surviving=[True, 2, 3], held=[[1, ""], [2, ""]]),
    kind="form",
    source="clause in part",
)
def _true(right: Function) -> Function:
    return lambda value: isinstance(value, int)


@mutant(
    "types-unchecked",
    "ADP-12",
    "a member of another type reaches the implementation, which breaks or takes it for something else",
    f"{_SDK}:check_form",
    lambda: _asked("field.matmul", q="7", rows=1.0, inner=1, columns=1, a="01000000", b="01000000"),
    kind="form",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    def wrong(name: str, value: Any, form: str) -> None:
        if form not in ("integer", "users"):
            right(name, value, form)

    return wrong


@mutant(
    "capitals-are-hex",
    "ADP-13",
    "two spellings of one vector: uppercase digits are accepted",
    f"{_SDK}:_is_hex",
    lambda: _add(a="0A000000"),
    kind="form",
    source="encoding",
)
def _capitals(right: Function) -> Function:
    return lambda value, width: right(value.lower() if isinstance(value, str) else value, width)


@mutant(
    "spaces-among-hex",
    "ADP-13",
    "white space between digits is skipped",
    f"{_SDK}:_is_hex",
    lambda: _add(a="0a 000000"),
    kind="form",
    source="encoding",
)
def _spaces(right: Function) -> Function:
    return lambda value, width: right(re.sub(r"\s", "", value) if isinstance(value, str) else value, width)


@mutant(
    "decimal-as-python-reads-it",
    "ADP-14",
    "signs, spaces, underscores and the digits of other scripts are accepted",
    f"{_SDK}:_check_decimal",
    lambda: _add(q=" 97"),
    kind="form",
    source="encoding",
)
def _decimal(right: Function) -> Function:
    def wrong(name: str, value: Any) -> None:
        try:
            right(name, str(int(value)) if isinstance(value, str) else value)
        except ValueError:
            right(name, value)

    return wrong


@mutant(
    "zeros-in-front",
    "ADP-14",
    "two spellings of one modulus: zeros in front are accepted",
    f"{_SDK}:_check_decimal",
    lambda: _add(q="097"),
    kind="form",
    source="encoding",
)
def _zeros(right: Function) -> Function:
    return lambda name, value: right(name, re.sub("^0+(?=[0-9])", "", value) if isinstance(value, str) else value)


@mutant(
    "answers-in-capitals",
    "ADP-15",
    "answers hold uppercase digits, which a strict reader refuses",
    f"{_TARGET}:pack",
    _add,
    kind="form",
    source="encoding",
)
def _loud(right: Function) -> Function:
    return lambda vector: right(vector).upper()


@mutant(
    "last-digit-is-missing",
    "ADP-15",
    "answers lack a digit, so that the last element does not fill its entry",
    f"{_TARGET}:pack",
    _add,
    kind="form",
    source="encoding",
)
def _short(right: Function) -> Function:
    return lambda vector: right(vector)[:-1]


# -------------------------------------------------------------------------------------------- held and drop


@mutant(
    "last-share-wins",
    "ADP-16",
    "wrong sum: of two shares of one user the last one counts, and nobody is told",
    f"{_TARGET}:_held",
    lambda: _held(0, 1, 2, 2),
    kind="acceptance",
    source="silent repair",
)
def _last(right: Function) -> Function:
    return lambda name, value, N: right(name, [[user, text] for user, text in dict(map(tuple, value)).items()], N)


@mutant(
    "strangers-hold-shares",
    "ADP-16",
    "a share of a user outside the roster is skipped in silence",
    f"{_TARGET}:_held",
    lambda: _held(0, 1, 2, 7),
    kind="acceptance",
    source="silent repair",
)
def _strangers(right: Function) -> Function:
    return lambda name, value, N: right(name, [pair for pair in value if 0 <= pair[0] < N], N)


@mutant(
    "drops-out-twice",
    "ADP-16",
    "a user that drops out in two phases is accepted",
    f"{_TARGET}:check_drop",
    lambda: _dropped(share=[], upload=[], recover=[0, 0]),
    kind="acceptance",
    source="silent repair",
)
def _twice(right: Function) -> Function:
    def wrong(drop: dict[str, list[int]], N: int) -> None:
        seen: set[int] = set()
        for phase, users in drop.items():
            drop[phase] = [user for user in dict.fromkeys(users) if user not in seen]
            seen.update(users)
        right(drop, N)

    return wrong


@mutant(
    "phase-may-be-missing",
    "ADP-17",
    "a phase that is not named counts as one in which nobody drops out",
    f"{_SDK}:_is_drop",
    lambda: _dropped(share=[]),
    kind="form",
    source="silent repair",
)
def _missing(right: Function) -> Function:
    return lambda value: isinstance(value, dict) and right({**{phase: [] for phase in secagg_adapter.PHASES}, **value})


@mutant(
    "unknown-phase-ignored",
    "ADP-17",
    "a phase that the protocol does not have is ignored",
    f"{_SDK}:_is_drop",
    lambda: _dropped(share=[], upload=[], recover=[], done=[]),
    kind="form",
    source="silent repair",
)
def _unknown(right: Function) -> Function:
    def wrong(value: Any) -> bool:
        if isinstance(value, dict):
            for phase in set(value) - set(secagg_adapter.PHASES):
                del value[phase]
        return bool(right(value))

    return wrong


# -------------------------------------------------------------------------------------- rules that adapters forget


@mutant(
    "more-users-than-elements",
    "LSA-01",
    "a roster that has as many users as the field has elements is accepted, so that two of them share a point",
    f"{_TARGET}:_check_deployment",
    lambda: _asked("lightsecagg.aggregate_shares", q="7", N=7, T=1, surviving=[0, 1], held=[]),
    kind="acceptance",
    source="seen in FedML 0.9.6: mds.encode/outside-range",
)
def _crowded(right: Function) -> Function:
    return lambda q, N, T: right(2**32, N, T)


@mutant(
    "held-shares-are-reduced",
    "MOD-06",
    "wrong sum on the wire: a share with a number that is not below q is reduced",
    f"{_TARGET}:_check_shares",
    lambda: _held(0, 1, 2, first="09000000"),
    kind="acceptance",
    source="silent repair",
)
def _reduced(right: Function) -> Function:
    def wrong(field: PrimeField, held: dict[int, UintArray]) -> None:
        for user, share in held.items():
            held[user] = np.fmod(share, np.uint64(field.modulus))
        right(field, held)

    return wrong


@mutant(
    "held-shares-are-cut",
    "MOD-07",
    "wrong sum: shares are cut to the length of the shortest",
    f"{_TARGET}:_check_shares",
    lambda: _held(0, 1, 2, first="0100000002000000"),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    def wrong(field: PrimeField, held: dict[int, UintArray]) -> None:
        shortest = min((share.size for share in held.values()), default=0)
        for user, share in held.items():
            held[user] = share[:shortest]
        right(field, held)

    return wrong
