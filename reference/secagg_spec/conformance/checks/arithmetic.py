"""Checks of integers modulo R and of sampling (spec/conventions.md, sections 2 and 6)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic import wide
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring, is_prime
from secagg_spec.arithmetic.sampling import elements_from_bytes
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.arithmetic.wide import MAX_WIDE
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import elements, pack
from secagg_spec.conformance.cases import requests, strategies
from secagg_spec.conformance.cases.strategies import decimal
from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, same
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, WIDE, element_bytes, form, wide_bytes
from secagg_spec.conformance.sessions.choices import among

_PRIME_ONLY = tuple(
    name for name in VALID if name.startswith(("field.inverse", "mds.", "seal.", "lightsecagg", "basecagg"))
)
_MODULAR = tuple(name for name in VALID if "q" in OPERATIONS[name][0])
_WITH_VECTORS = tuple(
    name
    for name in _MODULAR
    if any("vector" in requests.simple_types(form(name, member)) for part in OPERATIONS[name] for member in part)
)
_WITH_PAIRS = {"field.add": "b", "field.subtract": "b", "field.multiply": "b", "field.matmul": "b"}

_TIED = {
    "mds.encode": ("noise",),
    "mds.decode": ("shares",),
    "quantizer.quantize": ("rounding",),
    "lightsecagg.aggregate_shares": ("held",),
    "lightsecagg.recover": ("masked", "shares"),
    "lightsecagg.round": ("updates", "masks", "noises"),
    "basecagg.encode": ("rounding",),
    "basecagg.mask": ("mask",),
    "basecagg.combine": ("held",),
    "basecagg.recover": ("weights", "masked", "shares"),
}


@check("field.add/exact", "MOD-03", wide=True)
def add(draw: Any, call: Caller) -> None:
    """A sum is the exact sum modulo q."""
    _elementwise(draw, call, "field.add")


@check("field.subtract/exact", "MOD-03", wide=True)
def subtract(draw: Any, call: Caller) -> None:
    """A difference is the exact difference modulo q."""
    _elementwise(draw, call, "field.subtract")


@check("field.multiply/exact", "MOD-03", wide=True)
def multiply(draw: Any, call: Caller) -> None:
    """A product is the exact product modulo q."""
    _elementwise(draw, call, "field.multiply")


@check("field.matmul/exact", "MOD-04", wide=True)
def matmul(draw: Any, call: Caller) -> None:
    """A matrix product is exact, even for a long inner dimension."""
    q = strategies.modulus(draw, call.caps, "field.matmul")
    rows, columns = strategies.length(draw, 1, 3), strategies.length(draw, 1, 3)
    inner = draw(among((1, 2, 3, 8, 64, 128, 300)))
    a = strategies.vector(draw, q, rows * inner)
    b = strategies.vector(draw, q, inner * columns)
    params = {"q": q, "rows": rows, "inner": inner, "columns": columns, "a": pack(a, q), "b": pack(b, q)}
    want = wide.ring(q).matmul(a.reshape(rows, inner), b.reshape(inner, columns)).reshape(-1)
    same("field.matmul", call.vector("field.matmul", params, "value", rows * columns), want)


@check("field.matmul/empty", "MOD-08", examples=20, wide=True)
def matmul_empty(draw: Any, call: Caller) -> None:
    """A matrix product whose inner dimension is 0 is all zeros; with an outer dimension of 0 it is empty."""
    q = strategies.modulus(draw, call.caps, "field.matmul")
    rows, inner, columns = draw(among(((2, 0, 3), (1, 0, 1), (0, 2, 3), (2, 3, 0), (0, 0, 2), (0, 0, 0))))
    a, b = strategies.vector(draw, q, rows * inner), strategies.vector(draw, q, inner * columns)
    params = {"q": q, "rows": rows, "inner": inner, "columns": columns, "a": pack(a, q), "b": pack(b, q)}
    want = wide.ring(q).zeros(rows * columns)
    same("field.matmul", call.vector("field.matmul", params, "value", rows * columns), want)


@check("field.inverse/exact", "MOD-05", wide=True)
def inverse(draw: Any, call: Caller) -> None:
    """The product of x and its inverse is 1."""
    valid = VALID["field.inverse"](draw, call.caps)
    a = elements(valid.params["a"], valid.params["q"])
    want = wide.field(valid.params["q"]).inverse(a)
    same("field.inverse", call.vector("field.inverse", valid.params, "value", a.size), want)


@check("field.inverse/zero", "MOD-05", examples=10, wide=True)
def inverse_of_zero(draw: Any, call: Caller) -> None:
    """0 has no inverse."""
    q = strategies.modulus(draw, call.caps, "field.inverse", prime=True)
    call.refused("field.inverse", {"q": q, "a": pack(np.zeros(1, np.uint64), q)}, reject.BAD_PARAM, "0 has no inverse")


@check("sample.field/exact", "RND-02")
def sample(draw: Any, call: Caller) -> None:
    """Sampling skips words at or above the largest multiple of q, and takes all others modulo q."""
    q, n = strategies.modulus(draw, call.caps, "sample.field"), strategies.length(draw)
    limit = 2**32 // q * q
    words = [draw(among(sorted({0, 1, q - 1, q % 2**32, limit - 1}))) for _ in range(n)]
    for at in sorted(draw(st.lists(st.integers(0, n), max_size=3)), reverse=True):
        words.insert(at, draw(st.integers(min(limit, 2**32 - 1), 2**32 - 1)))
    data = np.array(words, dtype="<u4").tobytes()
    usable = sum(word < limit for word in words)
    params = {"q": q, "n": usable, "bytes": data.hex()}
    same(
        "sample.field", call.vector("sample.field", params, "value", usable), elements_from_bytes(Ring(q), data, usable)
    )


@check("sample.field/short", "RND-03", examples=10)
def short(draw: Any, call: Caller) -> None:
    """Sampling refuses input with too few bytes."""
    q, n = strategies.modulus(draw, call.caps, "sample.field"), strategies.length(draw, 1)
    params = {"q": q, "n": n, "bytes": bytes(4 * n - 1).hex()}
    call.refused("sample.field", params, reject.BAD_RANDOMNESS, f"{4 * n - 1} bytes cannot give {n} elements")


def _elementwise(draw: Any, call: Caller, operation: str) -> None:
    valid = VALID[operation](draw, call.caps)
    ring = wide.ring(valid.params["q"])
    a, b = (elements(valid.params[name], ring.modulus) for name in ("a", "b"))
    want = {"field.add": ring.add, "field.subtract": ring.subtract, "field.multiply": ring.multiply}[operation](a, b)
    same(operation, call.vector(operation, valid.params, "value", a.size), want)


def _below_the_largest(operation: str) -> Any:
    """Return the condition that some number of as many bytes as an element is not below a declared modulus."""

    def known(caps: Capabilities) -> bool:
        rest = requests.can_request(operation, caps) and _small_moduli(operation, caps)
        return bool(rest) and strategies.possible(_with_rest(operation, caps), operation)

    return known


def _small_moduli(operation: str, caps: Capabilities) -> list[int]:
    """Return the declared moduli except those like 2**32, for which every number of as many bytes is an element."""
    moduli = strategies.moduli(caps.range(operation, "q"), prime=operation in _PRIME_ONLY)
    return [q for q in moduli if q <= _largest(q)]


def _largest(q: int) -> int:
    """Return the largest number that is written in as many bytes as an element modulo q."""
    return int(2 ** (8 * element_bytes(q)) - 1)


def _with_rest(operation: str, caps: Capabilities) -> Capabilities:
    return strategies.narrowed(caps, operation, _small_moduli(operation, caps))


def _vectors(operation: str, params: dict[str, Any], rand: dict[str, Any] | None) -> list[requests.Place]:
    """Return the places of all non-empty vectors of elements."""
    return [place for place in requests.places(operation, params, rand) if place.form == "vector" and place.value]


def _noncanonical(operation: str) -> None:
    @check(
        f"{operation}/noncanonical",
        "MOD-06",
        applies=_below_the_largest(operation),
        examples=10,
        wide=operation.startswith(WIDE),
    )
    def noncanonical(draw: Any, call: Caller) -> None:
        """A number that is not below q is refused, not reduced, in whichever vector it is."""
        valid = VALID[operation](draw, _with_rest(operation, call.caps))
        rand = call.randomness(operation, valid.rand)
        q, found = int(valid.params["q"]), _vectors(operation, valid.params, rand)
        codes = reject.NONCANONICAL | reject.BAD_SHARE if operation in requests.OWN_CODE else reject.NONCANONICAL
        for place, values in requests.several(draw, lambda: _not_reduced(draw, q, found)):
            params, changed = requests.put(valid.params, rand, place.path, pack(values, q))
            call.refused(operation, params, codes, f"{place.name} holds {max(values)} and q = {q}", changed)


def _not_reduced(draw: Any, q: int, found: list[requests.Place]) -> tuple[requests.Place, UintArray]:
    """Draw a vector, and put a number that is not below q in the place of one element."""
    place = requests.one_of(draw, found)
    values = elements(place.value, q)
    values[draw(st.integers(0, values.size - 1))] = draw(among((q, _largest(q))))
    return place, values


def _lengths(operation: str, name: str) -> None:
    @check(f"{operation}/lengths", "MOD-07", examples=15, wide=operation.startswith(WIDE))
    def lengths(draw: Any, call: Caller) -> None:
        """Vectors with mismatched lengths are refused, even where the shorter one could be broadcast."""
        valid = VALID[operation](draw, call.caps)
        text = valid.params[name]
        changed = requests.one_of(draw, (text + text, text + "00" * element_bytes(valid.params["q"]), ""))
        call.refused(operation, {**valid.params, name: changed}, reject.LENGTH, f"{name} has the wrong length")


def _tied(operation: str, names: tuple[str, ...]) -> None:
    """Register the check of lengths for an operation with lists of vectors or with sampled vectors."""

    def known(caps: Capabilities) -> bool:
        sampled = all(name in OPERATIONS[operation][1] for name in names)
        return requests.can_request(operation, caps) and (not sampled or caps.grade(operation) == "explicit")

    wide = operation.startswith(WIDE)

    @check(f"{operation}/lengths", "MOD-07", applies=known, examples=20, wide=wide)
    def lengths(draw: Any, call: Caller) -> None:
        """A vector of the wrong length is refused, and so is a list with the wrong number of vectors."""
        valid = VALID[operation](draw, call.caps)
        rand = call.randomness(operation, valid.rand)
        tied = [
            place
            for place in requests.places(operation, valid.params, rand)
            if place.path[1] in names and place.form in _RESIZED
        ]
        place = requests.one_of(draw, tied)
        width = wide_bytes(operation, decimal(valid.params))
        resized = _resized(2 * width) if place.form == "vector" else _RESIZED[place.form]
        changed = requests.one_of(draw, resized(place.value))
        sampled, listed = place.path[0] == "rand", place.form == "[vector]"
        codes = (
            reject.LENGTH
            | (reject.BAD_RANDOMNESS if sampled else frozenset())
            | (reject.TOO_FEW if listed else frozenset())
        )
        params, rand = requests.put(valid.params, rand, place.path, changed)
        call.refused(operation, params, codes, f"{place.name} has the wrong length", rand)


def _resized(width: int) -> Callable[[str], list[str]]:
    return lambda text: [text + width * "0", text + text, *([text[:-width]] if len(text) > width else [])]


_RESIZED: dict[str, Callable[[Any], list[Any]]] = {
    "vector": _resized(2 * element_bytes(MAX_MODULUS)),
    "binary64": _resized(16),
    "[vector]": lambda texts: [texts[:-1], [*texts, texts[-1]]],
}


def _moduli(operation: str) -> None:
    wide = operation.startswith(WIDE)

    @check(f"{operation}/modulus", "MOD-01", applies=_known(operation), examples=8, wide=wide)
    def modulus(draw: Any, call: Caller) -> None:
        """A modulus below 2 or above 2**32 is refused; where larger ones are declared, one above 2**521."""
        valid = VALID[operation](draw, call.caps)
        above = (2**32 + 1, 2**64 + 13) if call.caps.narrow is call.caps else (MAX_WIDE + 1, 2**522 + 13)
        q = draw(among((0, 1, *above)))
        rand = call.randomness(operation, valid.rand)
        codes = reject.BAD_PARAM | reject.NONCANONICAL if q < 2 else reject.BAD_PARAM
        codes |= (
            reject.LENGTH if element_bytes(max(q, 2)) != wide_bytes(operation, decimal(valid.params)) else frozenset()
        )
        call.refused(operation, {**valid.params, "q": q}, codes, f"the modulus is {q}", rand)


COMPOSITES = (
    *(4, 6, 9, 15, 25, 49, 121),
    *(341, 561, 645, 1105, 1729, 2047, 2465, 65281),
    *(1009 * 1013, 999 * 1001, 1373653, 25326001, 3215031751, 4294901761, 4294967295),
    *(65537 * 65521, 2**31 - 2, 2**32),
)
"""Composites: small ones, pseudoprimes of the Fermat or the Miller-Rabin test to the bases 2, 3, 5 or 7, Carmichael
numbers, and large ones."""


_WIDE_PSEUDOPRIMES = (
    3317044064679887385961981,
    (2**61 - 1) * (2**31 - 1),
    (2**89 - 1) * (2**107 - 1),
    (2**255 - 19) * (2**127 - 1),
)
"""Composites above 2**32: a strong pseudoprime to the first thirteen primes, and products of large primes."""


def _composites(operation: str, caps: Capabilities) -> list[int]:
    """Return composites to try. Those inside the declared range come first."""
    declared = [q for q in strategies.moduli(caps.range(operation, "q"), prime=False) if not is_prime(q)]
    primes = [p for p in strategies.moduli(caps.range(operation, "q"), prime=True) if p > MAX_MODULUS]
    larger = (*strategies.WIDE_COMPOSITES, *_WIDE_PSEUDOPRIMES, *map(_beside, primes))
    known = dict.fromkeys((*declared, *COMPOSITES, *larger))
    known = {q: None for q in known if q <= MAX_MODULUS or any(_alike(p, q) for p in primes)}
    return sorted(known, key=lambda q: q not in caps.range(operation, "q"))


def _beside(p: int) -> int:
    """Return the next composite above a large prime that has no small factor, up to 2**521."""
    return next(
        (q for q in range(p + 2, min(p + 2000, MAX_WIDE)) if math.gcd(q, 30030) == 1 and not is_prime(q)), p + 1
    )


def _alike(p: int, q: int) -> bool:
    """Return whether p is below q and its elements are written in as many bytes."""
    return p < q and element_bytes(p) == element_bytes(q)


def _below(operation: str, caps: Capabilities, q: int) -> Capabilities:
    """Return capabilities whose modulus is a large prime below q: with q in its place, only the composite is wrong."""
    primes = [p for p in strategies.moduli(caps.range(operation, "q"), prime=True) if _alike(p, q)]
    primes = primes[-3:] or [max((p for p in strategies.PRIMES if p < q), default=2)]
    return strategies.narrowed(caps, operation, primes)


def _composite(operation: str) -> None:
    wide = operation.startswith(WIDE)

    @check(f"{operation}/composite", "MOD-02", applies=_known(operation), examples=30, wide=wide)
    def composite(draw: Any, call: Caller) -> None:
        """A composite modulus is refused where a field is needed, inside and outside the declared range."""
        q = draw(among(_composites(operation, call.caps)))
        caps = _below(operation, call.caps, q)
        if not strategies.possible(caps, operation):
            q, caps = _AMPLE, call.caps
        valid = VALID[operation](draw, caps)
        rand = call.randomness(operation, valid.rand)
        call.refused(operation, {**valid.params, "q": q}, reject.BAD_PARAM, f"the modulus {q} is composite", rand)


_AMPLE = 2**32 - 1
"""A composite above every 32-bit prime, which is not an element itself."""


def _known(operation: str) -> Any:
    return lambda caps: requests.can_request(operation, caps)


assert set(_MODULAR) <= set(OPERATIONS)
for _name in _WITH_VECTORS:
    _noncanonical(_name)
for _name, _vector in _WITH_PAIRS.items():
    _lengths(_name, _vector)
for _name, _members in _TIED.items():
    _tied(_name, _members)
for _name in _MODULAR:
    _moduli(_name)
for _name in _PRIME_ONLY:
    _composite(_name)
