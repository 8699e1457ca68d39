"""Planted bugs of what an adapter promises: its hello, its ranges and grades, its codes, the entries of a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Reject, unpack
from secagg_spec.conformance.targets import reference, reference_scripts
from secagg_spec.conformance.wire import pack
from secagg_spec.errors import BadShare

Function = Callable[..., Any]
_SDK = "secagg_spec.conformance.sdk.secagg_adapter"
_TARGETS = "secagg_spec.conformance.targets"
_BUILD = f"{_TARGETS}.reference:build"
_LARGEST = 2**31 - 1
_REFUSED = {
    **dict.fromkeys(("D", "T", "d"), 1),
    "q": "32749",
    "N": 4,
    "U": 3,
    "session": "00" * 16,
    "round": "0",
    "steps": [{"phase": "recover", "inbox": []}],
}
_SMALL, _LARGE = "97", "4294967291"


def _asked(*requests: tuple[str, dict[str, Any]], rand: Mapping[str, Any] | None = None) -> object:
    """Return what one adapter says to requests, the last answer alone."""
    adapter = reference.build()
    answers = [
        adapter.answer({"id": 1, "op": op, "params": params, **({"rand": rand} if rand else {})})
        for op, params in requests
    ]
    last = answers[-1]
    return last["reject"]["code"] if "reject" in last else last.get("result", sorted(last))


def _product(q: str) -> tuple[str, dict[str, Any]]:
    largest = pack(np.array([int(q) - 1], dtype=np.uint64))
    return "field.multiply", {"q": q, "a": largest, "b": "02000000"}


def _hello() -> tuple[str, dict[str, Any]]:
    return "hello", {"protocol": [1, 0], "max_line": 2**26}


def _declaring(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Function], Function]:
    """Return what makes a wrong `Adapter._result` out of the right one, by changing the answer to hello alone."""

    def build(right: Function) -> Function:
        def wrong(self: Adapter, request: dict[str, Any]) -> dict[str, Any]:
            result: dict[str, Any] = right(self, request)
            return change(result) if request["op"] == "hello" else result

        return wrong

    return build


# ------------------------------------------------------------------------------------------- one request, one answer


@mutant(
    "larger-modulus-lingers",
    "ADP-03",
    "state: a table that was made for the modulus of the request before is kept where it is large enough",
    f"{_TARGETS}.readers:number",
    lambda: _asked(_product(_LARGE), _product(_SMALL)),
    kind="sum",
    source="kept too long",
)
def _lingers(right: Function) -> Function:
    before = [0]

    def wrong(name: str, text: str) -> int:
        value: int = right(name, text)
        if name != "q":
            return value
        kept, before[0] = max(value, before[0]), value
        return kept

    return wrong


@mutant(
    "unknown-operation-is-rejected",
    "ADP-04",
    "an operation that is not offered looks like a request that the implementation refuses",
    f"{_SDK}:Adapter._result",
    lambda: _asked(("field.divide", {})),
    kind="form",
    source="wrong reason",
)
def _rejected(right: Function) -> Function:
    def wrong(self: Adapter, request: dict[str, Any]) -> Any:
        if request["op"] not in {"hello", *self.hello["operations"]}:
            raise Reject("malformed", "no such operation")
        return right(self, request)

    return wrong


@mutant(
    "works-undeclared",
    "ADP-04",
    "an operation is offered that hello is silent about, so that nobody tests it",
    f"{_SDK}:Adapter._result",
    lambda: _asked(_hello()),
    kind="form",
    source="clause left out",
)
def _undeclared(right: Function) -> Function:
    def without(hello: dict[str, Any]) -> dict[str, Any]:
        operations = {name: entry for name, entry in hello["operations"].items() if name != "field.matmul"}
        return {**hello, "operations": operations}

    return _declaring(without)(right)


# ------------------------------------------------------------------------------------------- ranges, grades, members


@mutant(
    "wrong-outside-its-range",
    "ADP-06",
    "wrong product: moduli above 2**31 - 1 are not declared, and give a result all the same, without its high bits",
    _BUILD,
    lambda: _asked(_product(_LARGE)),
    kind="sum",
    source="arithmetic: high bits lost",
)
def _outside(right: Function) -> Function:
    def wrong() -> Adapter:
        adapter: Adapter = right()
        narrow = {"ranges": {"q": {"max": str(_LARGEST)}}}

        @adapter.operation("field.multiply", **narrow)
        def multiply(q: str, a: str, b: str) -> dict[str, Any]:
            whole = _multiply(q=q, a=a, b=b)
            if int(q) <= _LARGEST:
                return whole
            return {"value": pack(np.array(unpack(whole["value"]), dtype=np.uint64) & np.uint64(_LARGEST))}

        return adapter

    return wrong


_multiply = reference._refusing(reference.HANDLERS["field.multiply"])


@mutant(
    "hello-without-implementation",
    "ADP-07",
    "nobody knows what was tested: hello does not say which implementation, and the run ends at once",
    f"{_SDK}:Adapter._result",
    lambda: _asked(_hello()),
    kind="form",
    source="clause in part",
)
def _nameless(right: Function) -> Function:
    return _declaring(lambda hello: {name: value for name, value in hello.items() if name != "implementation"})(right)


@mutant(
    "declares-an-unknown-operation",
    "ADP-07",
    "hello declares an operation that the protocol does not have, and the run ends at once",
    f"{_SDK}:Adapter._result",
    lambda: _asked(_hello()),
    kind="form",
    source="clause left out",
)
def _unknown(right: Function) -> Function:
    return _declaring(lambda hello: {**hello, "operations": {**hello["operations"], "field.divide": {}}})(right)


@mutant(
    "hello-changes",
    "ADP-03",
    "what is declared depends on what was asked before: the second hello has another grade",
    f"{_SDK}:Adapter._result",
    lambda: _asked(_hello(), _hello()),
    kind="form",
    source="kept too long",
)
def _changes(right: Function) -> Function:
    grades = ["none", "explicit"]

    def declare(hello: dict[str, Any]) -> dict[str, Any]:
        return {**hello, "randomness": grades.pop() if len(grades) > 1 else grades[0]}

    return _declaring(declare)(right)


def _seeded() -> bool:
    """Return whether equal requests with equal seeds are answered alike."""
    request = "mds.encode", {"q": _LARGE, "N": 4, "U": 3, "T": 2, "mask": "01000000" * 4}
    first, second = (_asked(request, rand={"seed": "00" * 32}) for _ in range(2))
    return first == second


@mutant(
    "seed-is-ignored",
    "ADP-08",
    "no reproduction: shares are declared as seeded, and their noise does not come from the seed",
    _BUILD,
    _seeded,
    kind="form",
    source="other rule: a source of its own",
)
def _ignored(right: Function) -> Function:
    calls = count()  # in place of the system's randomness: no two calls in a row draw alike, by construction

    def wrong() -> Adapter:
        adapter: Adapter = right()

        @adapter.operation("mds.encode", randomness="seeded")
        def encode(q: str, N: int, U: int, T: int, mask: str, rand: dict[str, str]) -> dict[str, Any]:
            length = -(-len(unpack(mask)) // max(U - T, 1))
            noise = pack(np.full(length * T, next(calls) % max(int(q), 1), dtype=np.uint64))
            return _encode(q=q, N=N, U=U, T=T, mask=mask, rand={"noise": noise})

        return adapter

    return wrong


_encode = reference._refusing(reference.HANDLERS["mds.encode"])


@mutant(
    "codes-in-capitals",
    "ADP-09",
    "rejections carry codes of the implementation's own, which nobody can compare",
    f"{_SDK}:Reject.__init__",
    lambda: _asked(("field.add", {})),
    kind="form",
    source="encoding",
)
def _capitals(right: Function) -> Function:
    return lambda self, code, message="", blamed=(): right(self, code.upper(), message, blamed)


# ------------------------------------------------------------------------------------------------------- scripts


@mutant(
    "refused-steps-have-no-entry",
    "ADP-20",
    "a step that is refused leaves no entry, so that the entries after it are taken for those of other steps",
    f"{_TARGETS}.reference_scripts:play",
    lambda: _asked(("lightsecagg.server", _REFUSED)),
    kind="form",
    source="wrong term",
)
def _no_entry(right: Function) -> Function:
    return lambda *given: [entry for entry in right(*given) if "reject" not in entry]


@mutant(
    "nobody-is-blamed",
    "ADP-21",
    "wrong blame: a wrong share or payload is refused, and nobody learns whose it was",
    f"{_TARGETS}.reference_scripts:rejection",
    lambda: reference_scripts.rejection(BadShare("wrong", (1,))),
    kind="refusal",
    source="wrong reason",
)
def _unblamed(right: Function) -> Function:
    return lambda error: {name: value for name, value in right(error).items() if name != "blamed"}
