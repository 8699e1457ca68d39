"""A valid request for each operation. Checks derive forbidden requests from it by changing one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.arithmetic.wide import field as field_of
from secagg_spec.arithmetic.wide import objects
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.strategies import Verbatim, decimal
from secagg_spec.conformance.sdk.secagg_adapter import form, members
from secagg_spec.conformance.sessions.choices import among, shared
from secagg_spec.conformance.sessions.session import Session
from secagg_spec.errors import ParameterError

X = TypeVar("X")


@dataclass(frozen=True)
class Valid:
    """A valid request: parameters, sampled values, and which parameters hold one vector of elements."""

    params: dict[str, Any]
    rand: dict[str, Any] = field(default_factory=dict)
    vectors: tuple[str, ...] = ()

    @classmethod
    def of(cls, drawn: Any) -> Valid:
        """Return the request of something drawn that knows its parameters and its sampled values."""
        return cls(drawn.params(), drawn.rand())


Make: TypeAlias = Callable[[Any, Capabilities], Valid]
Scenes: TypeAlias = Mapping[str, Callable[[Any], Session]]


def scripted(draw: Any, party: str, scene: Callable[[Any], Session]) -> Valid:
    """Draw a right script of a party, from a session that cases share."""
    made = shared(draw, (party,), scene)
    return Valid(made.params(made.calls()), made.rand(), ("update",) * ("update" in made.inputs.setups[made.party]))


def begun(
    scenes: Mapping[str, Callable[[Any], Session]], draw: Any, party: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a right script of a party, of those that have a scene. Return its params and its sampled values."""
    made = scripted(draw, party, scenes[party])
    return made.params, made.rand


def scripts(scenes: Scenes) -> dict[str, Make]:
    """Return what draws right scripts of each party that has a scene."""
    return {party: partial(_script, party, scene) for party, scene in scenes.items()}


def _script(party: str, scene: Callable[[Any], Session], draw: Any, caps: Capabilities) -> Valid:
    return scripted(draw, party, scene)


def shares_length(code: dict[str, int], d: int) -> int:
    """Return L."""
    return -(-d // (code["U"] - code["T"]))


def encode(code: dict[str, int], mask: UintArray, noise: UintArray) -> UintArray:
    """Return the shares of a mask, encoded by the reference."""
    return MaskCode(field_of(code["q"]), code["N"], code["U"], code["T"]).encode(mask, noise)


def exchanged_element(draw: Any, values: UintArray, q: int) -> UintArray:
    """Return elements with a drawn one changed by a drawn amount."""
    added = np.zeros_like(values)
    added[draw(st.integers(0, values.size - 1))] = draw(among((1, q - 1)) | st.integers(1, q - 1))
    return field_of(q).add(values, added)


def too_large(draw: Any, values: UintArray, q: int) -> UintArray:
    """Return elements with a number not below q at a drawn place."""
    changed = values.copy()
    changed[draw(st.integers(0, values.size - 1))] = draw(among((q, 2**32 - 1)))
    return changed


def place_of(draw: Any, values: Sequence[Any]) -> int:
    """Draw the place of one of some values: the last one in half of the cases."""
    return int(draw(st.integers(0, len(values) - 1) | st.just(len(values) - 1)))


def inserted(draw: Any, values: Sequence[X], value: X) -> list[X]:
    """Return values with one more at a drawn place."""
    at = draw(st.integers(0, len(values)))
    return [*values[:at], value, *values[at:]]


def vandermonde(caps: Capabilities) -> bool:
    """Return whether the adapter uses the code of the text."""
    return caps.policy("mds.code") == "vandermonde"


def own_field(caps: Capabilities) -> bool:
    """Return whether the adapter shares secrets in the field of the text."""
    return caps.policy("shamir.field") == "mersenne521"


def _pair(operation: str, first: str, second: str, prime: bool) -> Make:
    def draw_pair(draw: Any, caps: Capabilities) -> Valid:
        q, n = strategies.modulus(draw, caps, operation, prime=prime), strategies.length(draw, 1)
        values = {first: pack(strategies.vector(draw, q, n), q), second: pack(strategies.vector(draw, q, n), q)}
        return Valid({"q": q, **values}, {}, (first, second))

    return draw_pair


def _inverse(draw: Any, caps: Capabilities) -> Valid:
    q, n = strategies.modulus(draw, caps, "field.inverse", prime=True), strategies.length(draw, 1)
    values = [draw(st.integers(1, q - 1)) for _ in range(n)]
    return Valid({"q": q, "a": pack(objects(values), q)}, {}, ("a",))


def _matmul(draw: Any, caps: Capabilities) -> Valid:
    q = strategies.modulus(draw, caps, "field.matmul")
    rows, inner, columns = (strategies.length(draw, 1, 4) for _ in range(3))
    a, b = strategies.vector(draw, q, rows * inner), strategies.vector(draw, q, inner * columns)
    shape = {"rows": rows, "inner": inner, "columns": columns}
    return Valid({"q": q, **shape, "a": pack(a, q), "b": pack(b, q)}, {}, ("a", "b"))


def _sample(draw: Any, caps: Capabilities) -> Valid:
    q, n = strategies.modulus(draw, caps, "sample.field"), strategies.length(draw, 1)
    return Valid({"q": q, "n": n, "bytes": bytes(4 * n).hex()})


def _encode(draw: Any, caps: Capabilities) -> Valid:
    code, d = strategies.code(draw, caps, "mds.encode"), strategies.length(draw, 1)
    mask = strategies.vector(draw, code["q"], d)
    noise = strategies.vector(draw, code["q"], code["T"] * shares_length(code, d))
    return Valid({**code, "mask": pack(mask, code["q"])}, {"noise": pack(noise, code["q"])}, ("mask",))


def _decode(draw: Any, caps: Capabilities) -> Valid:
    code, d = strategies.code(draw, caps, "mds.decode"), strategies.length(draw, 1)
    mask = strategies.vector(draw, code["q"], d)
    noise = strategies.matrix(draw, code["q"], code["T"], shares_length(code, d))
    users = strategies.subset(draw, range(code["N"]), code["U"])
    shares = encode(code, mask, noise)
    return Valid({**code, "d": d, "users": users, "shares": [pack(shares[user], code["q"]) for user in users]})


def _quantize(draw: Any, caps: Capabilities) -> Valid:
    q, level = strategies.scale(draw, caps, "quantizer.quantize")
    x = np.zeros(strategies.length(draw, 1))
    params = {"q": q, "level": level, "weight": strategies.weight(draw, caps), "x": pack_reals(x)}
    return Valid(params, {"rounding": pack_reals(strategies.rounding(draw, x.size))})


def _dequantize(draw: Any, caps: Capabilities) -> Valid:
    operation = "quantizer.dequantize"
    q, level = strategies.scale(draw, caps, operation)
    value = strategies.vector(draw, q, strategies.length(draw, 1))
    format = draw(among(strategies.formats(caps)))
    value = strategies.within(format, value, q, level)
    return Valid({"q": q, "level": level, "format": format, "value": pack(value, q)}, {}, ("value",))


def _aggregate(draw: Any, caps: Capabilities) -> Valid:
    numbers, L = strategies.session(draw, caps, "lightsecagg.aggregate_shares"), strategies.length(draw, 1)
    q, N, T = numbers["q"], numbers["N"], numbers["T"]
    shares = strategies.matrix(draw, q, N, L)
    surviving = sorted(strategies.subset(draw, range(N), T + 2))
    held = [[user, pack(shares[user])] for user in range(N)]
    return Valid({"q": q, "N": N, "T": T, "surviving": surviving, "held": held})


def recovery(
    draw: Any, numbers: dict[str, int], answers: int | None = None, outsiders: int = 0
) -> tuple[Valid, UintArray]:
    """Draw a recovery by the reference's code: a valid request with at least U, or `answers`, answers; and its sum.

    At least `outsiders` users are not in the surviving set.
    """
    field = field_of(numbers["q"])
    fewest = max(numbers["U"], numbers["T"] + 2, numbers.get("W", 0), answers or 0)
    surviving = sorted(strategies.subset(draw, range(numbers["N"]), fewest, numbers["N"] - outsiders))
    updates = strategies.matrix(draw, numbers["q"], len(surviving), numbers["d"])
    masks = strategies.matrix(draw, numbers["q"], len(surviving), numbers["d"])
    noise = strategies.matrix(draw, numbers["q"], numbers["T"], shares_length(numbers, numbers["d"]))
    shares = encode(numbers, field.sum(masks), noise)
    users = strategies.subset(draw, surviving, *((answers, answers) if answers is not None else (numbers["U"], None)))
    params = {
        **numbers,
        "surviving": surviving,
        "masked": [pack(row) for row in field.add(updates, masks)],
        "users": users,
        "shares": [pack(shares[user]) for user in users],
    }
    return Valid(params, {}), field.sum(updates)


def whole_round(draw: Any, numbers: dict[str, int], drop: dict[str, list[int]]) -> tuple[Valid, UintArray]:
    """Draw a round. Return a request with these dropouts, and the updates as an array."""
    q, N, d = numbers["q"], numbers["N"], numbers["d"]
    updates = strategies.matrix(draw, q, N, d)
    masks = strategies.matrix(draw, q, N, d)
    noises = strategies.matrix(draw, q, N, numbers["T"] * shares_length(numbers, d))
    rand = {"masks": [pack(row) for row in masks], "noises": [pack(row) for row in noises]}
    return Valid({**numbers, "updates": [pack(row) for row in updates], "drop": drop}, rand), updates


VALID: dict[str, Make] = {
    "field.add": _pair("field.add", "a", "b", prime=False),
    "field.subtract": _pair("field.subtract", "a", "b", prime=False),
    "field.multiply": _pair("field.multiply", "a", "b", prime=False),
    "field.inverse": _inverse,
    "field.matmul": _matmul,
    "sample.field": _sample,
    "mds.encode": _encode,
    "mds.decode": _decode,
    "quantizer.quantize": _quantize,
    "quantizer.dequantize": _dequantize,
    "lightsecagg.mask": _pair("lightsecagg.mask", "update", "mask", prime=True),
    "lightsecagg.aggregate_shares": _aggregate,
    "lightsecagg.recover": lambda draw, caps: recovery(draw, strategies.session(draw, caps, "lightsecagg.recover"))[0],
    "lightsecagg.round": lambda draw, caps: whole_round(
        draw, strategies.session(draw, caps, "lightsecagg.round"), {"share": [], "upload": [], "recover": []}
    )[0],
}
MOST_SPOILED = 4
"""How many members of one request a case spoils, one at a time: to make a request costs more than to send it."""
OWN_CODE = ("mds.decode", "lightsecagg.recover", "basecagg.recover")
"""Operations whose valid requests hold shares of the text's code."""


def can_request(operation: str, caps: Capabilities) -> bool:
    """Return whether a valid request for this operation can be made without asking the adapter first."""
    mine = caps.offers(operation) and (vandermonde(caps) or operation not in OWN_CODE)
    return mine and (own_field(caps) or operation != "shamir.reconstruct") and strategies.possible(caps, operation)


Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """A value in a request: its path from ``params`` or ``rand``, the form that it must have, and the value itself."""

    path: Path
    form: str
    value: Any

    @property
    def name(self) -> str:
        """The name of the place in messages."""
        return str(self.path[1]) + "".join(f"[{step!r}]" for step in self.path[2:])


def places(operation: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None) -> list[Place]:
    """Return everything in a request that has a form, by the table of the protocol: members and their contents."""
    members = [("params", name, value) for name, value in decimal(params).items()]
    members += [("rand", name, value) for name, value in (rand or {}).items()]
    return [place for part, name, value in members for place in _inside((part, name), form(operation, name), value)]


def _inside(path: Path, form: str, value: Any) -> list[Place]:
    return [Place(path, form, value)] + [
        place for step, kind, entry in _entries(form, value) for place in _inside((*path, step), kind, entry)
    ]


def _entries(form: str, value: Any) -> list[tuple[str | int, str, Any]]:
    """Return what a list, a tuple or an object of a type holds: where, of which type, and the value."""
    if form[0] == "[":
        return [(at, form[1:-1], entry) for at, entry in enumerate(value)]
    if form[0] == "(":
        return [(at, kind, entry) for at, ((_, kind), entry) in enumerate(zip(members(form), value, strict=True))]
    return [(name, kind, value[name]) for name, kind in members(form)] if form[0] == "{" else []


def simple_types(form: str) -> frozenset[str]:
    """Return the types without parts that a type is made of."""
    if form[0] not in "[({":
        return frozenset({form.removesuffix("?")})
    inner = [form.removesuffix("?")[1:-1]] if form[0] == "[" else [kind for _, kind in members(form)]
    return frozenset().union(*map(simple_types, inner))


def one_of(draw: Any, found: Sequence[X]) -> X:
    """Draw one of some things that JSON cannot hold by its number, so that a replay can record what was drawn."""
    return found[int(draw(st.integers(0, len(found) - 1)))]


def allowed(p: Any, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return other numbers than those in p that the text allows, by what changes."""
    found = {}
    for name, changed in changes.items():
        with suppress(ParameterError):
            found[name] = replace(p, **changed)
    return {name: other for name, other in found.items() if other != p}


def several(draw: Any, drawn: Callable[[], X]) -> list[X]:
    """Draw one to `MOST_SPOILED` things for one request: to build it costs more than to send it."""
    return [drawn() for _ in range(draw(st.integers(1, MOST_SPOILED)))]


def some(draw: Any, names: Iterable[str]) -> list[str]:
    """Draw one or several of some names."""
    ordered = among(sorted(names))
    return several(draw, lambda: str(draw(ordered)))


def put(
    params: Mapping[str, Any], rand: Mapping[str, Any] | None, path: Path, value: Any
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the two parts of a request with something else at a place."""
    whole = deepcopy({"params": decimal(params), "rand": dict(rand) if rand else None})
    holder: Any = whole
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return Verbatim(whole["params"] or {}), whole["rand"]
