"""Checks of the plan of HeteroSAg, ``segment.plan`` (spec/heterosag.md, sections 2 and 4)."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import heterosag_oracles as oracles
from secagg_spec.conformance.cases import heterosag_sessions as scenes
from secagg_spec.conformance.cases.heterosag_functions import PLAN
from secagg_spec.conformance.checks.base import Caller, check, fail
from secagg_spec.conformance.checks.heterosag_levels import BAD_RANGE
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.heterosag_numbers import members
from secagg_spec.protocols.heterosag.plan import Parameters

_MANY_SUBGROUPS = (6, 7, 8, 9, 10, 12, 15, 16, 25, 26, 27, 28, 32, 33, 37, 57)
"""Numbers of subgroups of each kind: primes, odd and even numbers, and one for each line of the table of factors."""


@check("segment.plan/subgroups", "HSA-11")
def subgroups(draw: Any, call: Caller) -> None:
    """Users are numbered by group. Each group is split into subgroups, where the first ones may have one user more."""
    p = scenes.parameters(draw)
    _same(call, p, "members", oracles.members(p))


@check("segment.plan/lengths", "HSA-11")
def lengths(draw: Any, call: Caller) -> None:
    """The elements are split into Z segments, where the first ones may have one element more."""
    p = scenes.parameters(draw)
    _same(call, p, "lengths", oracles.shares(p.d, p.count))


@check("segment.plan/matrix", "HSA-11")
def matrix(draw: Any, call: Caller) -> None:
    """The matrix is the text's, for few subgroups in groups of any size."""
    p = scenes.parameters(draw)
    _same(call, p, "matrix", oracles.table(p))


@check("segment.plan/many", "HSA-11", examples=40)
def many(draw: Any, call: Caller) -> None:
    """The matrix is the text's for many subgroups too."""
    p = _many(draw)
    _same(call, p, "matrix", oracles.table(p))


def _many(draw: Any) -> Parameters:
    """Draw parameters with many small subgroups, in one group or two."""
    Z = draw(among(_MANY_SUBGROUPS))
    p, first = scenes.parameters(draw, large=False), draw(st.integers(1, Z))
    parts = (first, Z - first) if first < Z else (Z,)
    sizes, N = tuple(3 * count for count in parts), 3 * Z
    changed = {"N": N, "D": 0, "T": 1, "t": 3, "d": Z + draw(st.integers(0, Z)), "sizes": sizes, "subgroups": parts}
    return replace(p, **changed, levels=(2, 6)[: len(parts)])


@check("segment.plan/levels", "HSA-12")
def levels(draw: Any, call: Caller) -> None:
    """A cell quantises with the levels of the group of its smaller subgroup."""
    p = scenes.parameters(draw)
    _same(call, p, "levels", oracles.levels(p))


@check("segment.plan/moduli", "HSA-12")
def moduli(draw: Any, call: Caller) -> None:
    """A cell masks modulo the number of possible values of its sum, up to 2**32."""
    p = scenes.parameters(draw)
    _same(call, p, "moduli", [[str(R) for R in row] for row in oracles.moduli(p)])


def _same(call: Caller, p: Parameters, name: str, want: Any) -> None:
    got: Any = call.result(PLAN, members(p)).get(name)
    if got != want:
        rows = zip(got, want, strict=False) if isinstance(got, list) else ()
        differing = (f"has {mine} at {at}, must be {right}" for at, (mine, right) in enumerate(rows) if mine != right)
        where = next(differing, f"is {str(got)[:80]}")
        fail(f"{name} of {p.count} subgroups, with the matrix {p.matrix}, {where}", want)


@check("segment.plan/numbers", "HSA-01", "HSA-02", "HSA-03", "HSA-04", "HSA-05", examples=150)
def numbers(draw: Any, call: Caller) -> None:
    """Numbers of a session that the text forbids are refused."""
    p = scenes.parameters(draw)
    call.some_refused(draw, PLAN, members(p), scenes.wrong_numbers(p), BAD_RANGE)


@check("segment.plan/no-construction", "HSA-06", examples=8)
def no_construction(draw: Any, call: Caller) -> None:
    """A perfect matrix is refused for a number of subgroups for which there is no construction."""
    params = scenes.without_construction(draw)
    why = f"no perfect matrix is constructed for {params['subgroups'][0]} subgroups"
    call.refused(PLAN, params, BAD_RANGE, why)
