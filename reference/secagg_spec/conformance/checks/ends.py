"""Checks of right results at the ends of ranges (CNF-62), where a number no longer fits in a byte, and at lengths.

Drawn parameters rarely hit an end of their range, and N stays small. Here one parameter of an operation is fixed at
an end of its range, and everything else is drawn as usual. Of an operation that splits vectors into blocks, each case
asks for all lengths around multiples of the number of blocks (CNF-89).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.wide import MAX_WIDE
from secagg_spec.conformance.adapter.capabilities import Capabilities, ranged
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.heterosag_functions import QUANTIZE
from secagg_spec.conformance.cases.neighbours import SUM, sum_rosters
from secagg_spec.conformance.checks.base import REGISTRY, Caller, Check, check, judge_again

_RIGHT = ("exact", "neighbours", "signed", "quotient", "any-shares", "sum", "outside")
_SLOW = ("lightsecagg_active.", "basecagg.rounds")
"""Operations that take seconds for hundreds of users."""
_SPLIT = ("exact", "any-shares", "sum", "sums", "own-shares")
_BLOCKS = {
    *("mds.encode", "mds.decode", "lightsecagg.round", "lightsecagg.recover", "lightsecagg.user", "lightsecagg.server"),
    *("lightsecagg_active.user", "lightsecagg_active.server", "basecagg.rounds", "basecagg.recover"),
    *("heterosag.round", SUM),
}
"""Operations that split vectors into blocks, or may do so."""
_BYTE = (255, 256, 257, 300)
_FEW = range(2, 20)
"""Thresholds for hundreds of holders: with big integers, t = 255 takes seconds."""
_ENDS = {"N": _BYTE, "n": _BYTE, "t": (2,), "weight": (1, 2, 2**31 - 1), "level": (1, MAX_LEVEL)}
"""Values of parameters to use in place of the declared ends: from the end of a byte, or the ends of the text."""


def _ends(caps: Capabilities, operations: Sequence[str], name: str) -> list[int]:
    """Return the ends of a parameter and its values in the table, if all operations that have it declare them."""
    ends = [end for operation in operations for end in _ends_of(caps, operation, name)]
    return [end for end in dict.fromkeys(ends) if all(end in caps.range(operation, name) for operation in operations)]


def _ends_of(caps: Capabilities, operation: str, name: str) -> list[int]:
    allowed = caps.range(operation, name)
    if name in ("q", "R"):
        known = sorted(strategies.moduli(allowed, prime=False) + strategies.moduli(allowed, prime=True))
        return [*known[:2], *known[-4:]]
    declared = allowed.values if allowed.values is not None else (allowed.low, allowed.high)
    usual = () if name == "N" and operation.startswith(_SLOW) else _ENDS.get(name, ())
    numbers = [*usual, *(end for end in declared if isinstance(end, int))]
    return [end for end in numbers if end <= MAX_WIDE]


def _at(caps: Capabilities, operations: tuple[str, ...], name: str, value: int) -> Capabilities:
    """Return capabilities in which a parameter of some operations has only one value."""
    changed = dict(caps.operations)
    for operation in operations:
        if name in ranged(operation):
            ranges = {**changed[operation].get("ranges", {}), name: {"values": [value]}}
            if name == "n" and value in _BYTE:
                ranges["t"] = {"values": [t for t in _FEW if t in caps.range(operation, "t")]}
            changed[operation] = {**changed[operation], "ranges": ranges}
    return replace(caps, operations=changed)


def narrowings(caps: Capabilities, chosen: Check) -> Iterator[tuple[str, int, Capabilities]]:
    """Yield each parameter with each of its ends, and the capabilities in which the parameter has only that value."""
    for name in dict.fromkeys(name for operation in chosen.operations for name in ranged(operation)):
        having = [operation for operation in chosen.operations if name in ranged(operation)]
        for end in _ends(caps, having, name) if name != "format" else ():
            there = _at(caps, chosen.operations, name, end)
            if chosen.runs_on(there):
                yield name, end, there


def _again(chosen: Check) -> None:
    """Register a check again for the ends of the ranges of its operations."""

    def judge(draw: Any, call: Caller) -> None:
        options = [*narrowings(call.caps, chosen)]
        _, _, there = options[int(draw(st.integers(0, len(options) - 1)))]
        judge_again(chosen, draw, call, caps=there)

    judge.__doc__ = f"{chosen.text} This check fixes one parameter at an end of its range, or N above 255."
    kwargs: Any = {"operations": chosen.operations, "applies": lambda caps: any(narrowings(caps, chosen))}
    kwargs["wide"] = chosen.wide
    check(f"{chosen.id}/ends", *chosen.clauses, examples=30, **kwargs)(judge)


def blocks(caps: Capabilities, chosen: Check) -> Iterator[tuple[int, Capabilities]]:
    """Yield numbers of blocks, and the capabilities in which the numbers of users have as many.

    They are U - T. Where nothing says how updates are split, the number of users stands for it, the fewest from 3 on;
    HeteroSAg has at least two segments, of as many elements or more.
    """
    if SUM in chosen.operations:
        (N, _), *_ = sorted(sum_rosters(caps, SUM), key=lambda pair: (pair[0] < 3, pair))
        yield N, _at(caps, chosen.operations, "N", N)
        return
    if "U" not in {name for operation in chosen.operations for name in ranged(operation)}:
        yield 2, caps
        return
    for code in strategies.split(caps, chosen.operations):
        there = caps
        for name in ("q", "N", "D", "U", "T"):
            there = _at(there, chosen.operations, name, code.get(name, 0))
        yield code["U"] - code["T"], there


def _at_lengths(chosen: Check) -> None:
    """Register a check again for the lengths around multiples of the number of blocks."""

    def options(caps: Capabilities) -> list[tuple[int, Capabilities]]:
        kept = caps.kept.setdefault("blocks", {})
        if chosen.id not in kept:
            found = blocks(caps, chosen) if chosen.runs_on(caps) else ()
            kept[chosen.id] = [(count, there) for count, there in found if chosen.runs_on(there)]
        known: list[tuple[int, Capabilities]] = kept[chosen.id]
        return known

    def judge(draw: Any, call: Caller) -> None:
        for count, there in options(call.caps):
            for d in _around(count):
                call.transcript.clear()
                with strategies.of_length(d):
                    judge_again(chosen, draw, call, caps=there)

    judge.__doc__ = f"{chosen.text} A case asks for all lengths up to twice the number of blocks, and one more."
    kwargs: Any = {"operations": chosen.operations, "applies": lambda caps: bool(options(caps))}
    check(f"{chosen.id}/blocks", *chosen.clauses, examples=2, **kwargs)(judge)


def _around(count: int) -> range:
    """Return the lengths up to twice a number of blocks, and one more."""
    return range(1, 2 * count + 2)


def register() -> None:
    """Register the checks of right results again at the ends of the ranges, and at lengths.

    All other checks must be registered. The cases of ``quantize.levels`` have the ends of its range among a few numbers
    anyway.
    """
    for chosen in [*REGISTRY.values()]:
        name = chosen.id.split("/")[-1]
        if (
            name in _RIGHT
            and chosen.operations != (QUANTIZE,)
            and any(ranged(operation) for operation in chosen.operations)
        ):
            _again(chosen)
        if name in _SPLIT and any(operation in _BLOCKS for operation in chosen.operations):
            _at_lengths(chosen)
