"""The reference behind a random declaration: it offers less, and answers the rest by `unsupported`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import dequantize
from secagg_spec.arithmetic.shamir import element_bytes
from secagg_spec.conformance.adapter.capabilities import (
    POLICIES,
    Capabilities,
    graph_allows,
    ranged,
    shake_hands,
)
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Answer
from secagg_spec.conformance.cases import multi_round_numbers, neighbours
from secagg_spec.conformance.cases.multi_round_oracles import STRATEGIES
from secagg_spec.conformance.cases.strategies import refuse_impossible
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, PARTIES, Reject, check_form, form
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.crypto import prg
from secagg_spec.crypto.entropy import SeededSource, draw_below, draw_coefficients, draw_elements, draw_rounding
from secagg_spec.selection import batches
from secagg_spec.selection import strategies as selection
from tests.conformance import right

Answerer = Callable[[Any], dict[str, Any]]
_FRESH = count()
_OPEN = {"json", "channel", "object"}
NAMES = tuple(
    name
    for name in OPERATIONS
    if name == "message.encode" or _OPEN.isdisjoint(form(name, member) for member in OPERATIONS[name][0])
)

_USERS = st.integers(0, 12) | st.sampled_from((30, 39, 40, 41, 60, 100, 5000))
_MODULI = st.sampled_from(
    (2, 3, 4, 5, 7, 8, 11, 97, 101, 1000, 1009, 1024, 2000, 32749, 65536, 2**31, 2**32 - 5, 2**32)
)
_LEVELS = st.sampled_from((1, 2, 3, 5, 9, 1000, 1024, 2**20 + 1, 2**32))
_WEIGHTS = st.sampled_from((1, 2, 50, 100, 101, 1000, 2**30))
_NUMBERS = {"q": _MODULI, "R": _MODULI, "level": _LEVELS, "weight": _WEIGHTS, "max_weight": _WEIGHTS}


def ranges(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of ranges of one parameter: bounds, one of them at least, or a list."""
    if name == "format":
        return st.sampled_from((["binary64"], ["binary32"], ["binary32", "binary64"])).map(lambda v: {"values": v})
    if name == "strategy":
        return st.lists(st.sampled_from(STRATEGIES), min_size=1, unique=True).map(lambda v: {"values": v})
    numbers = _NUMBERS.get(name, _USERS)
    listed = st.lists(numbers, min_size=1, max_size=3).map(
        lambda v: {"values": [str(n) if n > 9 and name in ("q", "R") else n for n in v]}
    )
    bounds = st.tuples(numbers, numbers, st.sampled_from(("min", "max", "both")))
    return listed | bounds.map(lambda b: _bounds(min(b[:2]), max(b[:2]), b[2]))


def _bounds(low: int, high: int, kind: str) -> dict[str, Any]:
    return {"min": low} if kind == "min" else {"max": high} if kind == "max" else {"min": low, "max": high}


_ROSTERS = tuple(
    neighbours.Roster(N, t, k)
    for N in range(3, 9)
    for k in range(2, N)
    for t in range(2, N + 1)
    if graph_allows(N, t, k)
)


@st.composite
def parameter_sets(draw: Any, operation: str) -> list[dict[str, int]]:
    """Return a strategy of sets of parameters that LSA-01 allows, and LSA-19 where there is a W.

    Of SecAgg they are those that SAG-01 and SAG-02 allow, and of Multi-RoundSecAgg those that MRA-01 allows.
    """
    if operation in neighbours.OPERATIONS:
        chosen = draw(st.lists(st.sampled_from(_ROSTERS), min_size=1, max_size=3, unique=True))
        return [roster.members() for roster in chosen]
    if operation in multi_round_numbers.OPERATIONS:
        return [_batched(draw) for _ in range(draw(st.integers(1, 3)))]
    sets = []
    for _ in range(draw(st.integers(1, 3))):
        T, D = draw(st.integers(1, 4)), draw(st.integers(0, 3))
        U = T + draw(st.integers(1, 4))
        least = max(U + D, T + 2 + D, T + 2 * D + 1 if "W" in OPERATIONS[operation][0] else 0)
        whole = {"N": least + draw(st.integers(0, 3)), "D": D, "U": U, "T": T}
        sets.append({name: whole[name] for name in whole if name in OPERATIONS[operation][0]})
    return sets


def _batched(draw: Any) -> dict[str, int]:
    """Draw numbers that MRA-01 allows, mostly with batches that bear a colluder (MRA-17)."""
    T, per_round, spare = draw(st.integers(1, 5)), draw(st.integers(1, 9)), draw(st.integers(0, 9))
    return {"N": (per_round + spare) * T, "K": per_round * T, "T": T}


@st.composite
def declarations(draw: Any) -> dict[str, Any]:
    """Return a strategy of answers to `hello` that the kit accepts."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=5))
    if "mds.decode" in names or "lightsecagg.recover" in names:
        names = [*dict.fromkeys([*names, "mds.encode"])]
    operations = {name: draw(_declaration(name)) for name in names}
    chosen = {name: draw(st.sampled_from(choices)) for name, choices in _FREE.items() if draw(st.booleans())}
    return {**reference.build().hello, "randomness": draw(_GRADES), "operations": operations, "policy": chosen}


_FREE = {name: choices for name, choices in POLICIES.items() if name != "average.weights"}
"""Policies of which the reference can be made to follow either."""
_GRADES = st.sampled_from(("explicit", "seeded", "none"))


@st.composite
def _declaration(draw: Any, operation: str) -> dict[str, Any]:
    """Draw what one operation declares; a range that leaves nothing is drawn anew, without it in the end."""
    if operation in (neighbours.SUM, neighbours.VIEW):
        return dict(reference.build().hello["operations"][operation])
    declared: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0 and OPERATIONS[operation][1]:
        declared["randomness"] = draw(_GRADES)
    if draw(st.integers(0, 3)) == 0 and "N" in OPERATIONS[operation][0] and ranged(operation):
        sets = draw(parameter_sets(operation))
        declared |= {"parameter_sets": sets} if usable({operation: {"parameter_sets": sets}}) else {}
    for name in ranged(operation):
        if draw(st.booleans()):
            wider = {**declared.get("ranges", {}), name: draw(ranges(name))}
            if usable({operation: {**declared, "ranges": wider}}):
                declared["ranges"] = wider
    return declared


def usable(operations: Mapping[str, Any]) -> bool:
    """Return whether the kit accepts these operations, and the text allows something in them."""
    try:
        refuse_impossible(understood({**reference.build().hello, "operations": dict(operations)}))
    except AdapterUnusable:
        return False
    return True


def understood(hello: Mapping[str, Any]) -> Capabilities:
    """Return what a hello declares."""
    return shake_hands(Answer("result", dict(hello)))


def adapter(hello: Mapping[str, Any]) -> Answerer:
    """Return the reference behind a declaration: the policies and grades of it, and `unsupported` outside of it."""
    whole, caps = reference.build(), understood(hello)

    def answer(request: Any) -> dict[str, Any]:
        plain = whole.answer({**request, "op": "hello", "params": {}}) if isinstance(request, dict) else {}
        if (
            "result" not in plain
            or not isinstance(request.get("op"), str)
            or not isinstance(request.get("params"), dict)
        ):
            return whole.answer(request)
        if request["op"] == "hello":
            return {"id": request["id"], "result": dict(hello)}
        if request["op"] not in caps.operations or _outside(caps, request):
            return {"id": request["id"], "unsupported": True}
        with prg.generator(right.chacha if caps.policy("prg.stream") == "other" else None):
            return _with_policies(caps, request, whole.answer(_explicit(caps, request)))

    return answer


def _outside(caps: Capabilities, request: dict[str, Any]) -> bool:
    """Return whether a well-formed request is outside the declared ranges."""
    params = request["params"]
    if set(params) != set(OPERATIONS[request["op"]][0]):
        return False
    try:
        for name, value in params.items():
            check_form(name, value, form(request["op"], name))
    except Reject:
        return False
    return not caps.declares(request["op"], params)


def _explicit(caps: Capabilities, request: dict[str, Any]) -> dict[str, Any]:
    """Return a request with sampled values by name, drawn here where the adapter declares to draw them itself."""
    op, params, rand = request["op"], request["params"], request.get("rand", {})
    grade, names = caps.grade(op), _names(op, params)
    expected = {"seeded": {"seed"}, "none": set()}.get(grade, set(names))
    if not names or set(rand) != expected:
        return {**request, "rand": {"faulty": 1}} if names else request
    if grade == "seeded" and not _well_formed(rand["seed"]):
        return {**request, "rand": {"faulty": 1}}
    seed = bytes.fromhex(rand["seed"]) if grade == "seeded" else next(_FRESH).to_bytes(32, "little")
    values = rand if grade == "explicit" else _sampled(op, names, {**params, **params.get("numbers", {})}, seed)
    if (
        op in ("quantizer.quantize", "basecagg.encode")
        and caps.policy("quantizer.rounding") != "stochastic"
        and _is_text(values["rounding"])
    ):
        fixed = {"nearest": 0.5, "floor": 1 - 2.0**-53}[caps.policy("quantizer.rounding")]
        values = {
            "rounding": np.full(len(values["rounding"]) // 16, fixed).tobytes().hex()
            + values["rounding"][len(values["rounding"]) // 16 * 16 :]
        }
    return {**request, "rand": values}


def _names(op: str, params: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of what is sampled: that of a session by its party."""
    party = f"{params.get('protocol')}.{params.get('role')}"
    return PARTIES[party][1] if op == "session.new" and party in PARTIES else OPERATIONS[op][1]


def _is_text(value: Any) -> bool:
    try:
        check_form("rounding", value, "binary64")
    except Reject:
        return False
    return True


def _well_formed(seed: Any) -> bool:
    try:
        check_form("seed", seed, "seed")
    except Reject:
        return False
    return True


_SOME = 100
"""More masks and roundings than a session of the kit uses."""


def _sampled(op: str, names: Sequence[str], params: dict[str, Any], seed: bytes) -> dict[str, Any]:
    """Draw the sampled values of an operation; where the parameters make no sense, something that is refused anyway."""
    try:
        return _drawn(SeededSource(seed, op), names, params)
    except Exception:
        return {name: [] if form(op, name)[0] in "[(" else "" for name in names}


def _drawn(source: SeededSource, names: Sequence[str], params: dict[str, Any]) -> dict[str, Any]:
    """Return a value under each name, drawn one after the other."""
    if names == ("draws",):
        return {"draws": list(draw_below(source, _bounds_of_draws(params)))}
    if "box_key" in names:
        return {"box_key": source.take(32).hex()}
    if "timeouts" in params and names == ("roundings",):
        return {"roundings": draw_rounding(source, _SOME).tobytes().hex()}
    if "tau" in params:
        return {"rounding": draw_rounding(source, 1).tobytes().hex()}
    if "rounding" in names and isinstance(params["x"], list):
        return {"rounding": [draw_rounding(source, len(row) // 16).tobytes().hex() for row in params["x"]]}
    if "rounding" in names:
        return {"rounding": draw_rounding(source, len(params["x"]) // 16).tobytes().hex()}
    if "box_keys" in names or "pair_keys" in names:
        return _positioned(source, names, params)
    if "roundings" in names and "masks" not in names:
        return {"roundings": [draw_rounding(source, params["K"]).tobytes().hex() for _ in range(_SOME)]}
    if "self_seed" in names:
        count = min(params["t"], 5000) - 1
        return {name: _secret(source, count if "coefficients" in name else None) for name in names}
    if "coefficients" in names:
        return {"coefficients": _secret(source, min(params["t"], 5000) - 1)}
    ring, (d, rows) = Ring(int(params["q"])), _lengths(params)
    draws: dict[str, Callable[[], Any]] = {
        "mask": lambda: _vector(draw_elements(source, ring, (d,))),
        "noise": lambda: _vector(draw_elements(source, ring, (rows,))),
        "masks": lambda: [draws["mask"]() for _ in range(_SOME if "K" in params else min(params["N"], 1000))],
        "noises": lambda: [draws["noise"]() for _ in range(_SOME if "K" in params else min(params["N"], 1000))],
        "roundings": lambda: [draw_rounding(source, params["K"]).tobytes().hex() for _ in range(_SOME)],
    }
    return {name: draws[name]() for name in names}


def _bounds_of_draws(params: dict[str, Any]) -> Sequence[int]:
    """Return the number that each draw of a choice is below; none where there is no round."""
    available = np.zeros(params["N"], dtype=np.bool_)
    available[params["available"]] = True
    parameters = batches.Parameters(params["N"], params["K"], params["T"])
    return selection.ranges(parameters, params["strategy"], np.array(params["frequencies"]), available) or ()


def _positioned(source: SeededSource, names: Sequence[str], params: dict[str, Any]) -> dict[str, Any]:
    """Return what a party of BASA samples: keys and seeds for each position."""
    size = 32 * min(params["K"] + params["S"], 5000)
    void = params["timeouts"] == "void"
    draws: dict[str, Callable[[], Any]] = {
        "box_keys": lambda: [source.take(32).hex() for _ in range(_SOME)],
        "roundings": lambda: draw_rounding(source, _SOME).tobytes().hex(),
        "self_keys": lambda: [] if void else [source.take(size).hex() for _ in range(_SOME)],
        **dict.fromkeys(("seeds", "pair_keys"), lambda: [source.take(size).hex() for _ in range(_SOME)]),
    }
    return {name: draws[name]() for name in names}


def _secret(source: SeededSource, count: int | None) -> str:
    """Return so many coefficients, or without a count a key."""
    if count is None:
        return source.take(32).hex()
    return b"".join(map(element_bytes, draw_coefficients(source, count))).hex()


def _lengths(params: dict[str, Any]) -> tuple[int, int]:
    """Return the lengths of a mask and of its noise."""
    d = params["d"] if "d" in params else len(params["mask"]) // 8
    return d, params["T"] * -(-d // (params["U"] - params["T"]))


def _vector(values: Any) -> str:
    return str(values.astype("<u4").tobytes().hex())


def _with_policies(caps: Capabilities, request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with the middle element decoded as the policy says, and without shares that nobody holds."""
    params = request["params"]
    if request["op"] == "secagg.unmasking" and caps.policy("unmasking.own_share") == "none" and "result" in answer:
        for entry in answer["result"]["answers"]:
            entry.update({"seeds": [u for u in entry["seeds"] if u != params["user"]]} if "seeds" in entry else {})
    if (
        request["op"] != "quantizer.dequantize"
        or caps.policy("quantizer.middle") != "negative"
        or "result" not in answer
    ):
        return answer
    q, width = int(params["q"]), 16 if params["format"] == "binary64" else 8
    below = np.array([2**32 - (q + 1) // 2], dtype=np.uint64)
    middle = dequantize(below, level=int(params["level"]), ring=Ring(2**32), format=params["format"])
    values = np.frombuffer(bytes.fromhex(params["value"]), "<u4")
    entries = [answer["result"]["x"][at : at + width] for at in range(0, width * values.size, width)]
    moved = [
        middle.tobytes().hex() if q % 2 and value == (q - 1) // 2 else x
        for value, x in zip(values, entries, strict=True)
    ]
    return {**answer, "result": {"x": "".join(moved)}}
