"""The parameters of a HeteroSAg session, and the plan: which users quantise and mask which segment together.

====================  ==========================================
paper                 here
====================  ==========================================
N, G, m               `N`, ``len(levels)``, `d` of `Parameters`
n_g, L_g, K_g         `sizes`, `subgroups`, `levels`
Z, B                  `count`, `segments.entries` of `plan`
R, S                  `ring`, `members` of a `Cell`
====================  ==========================================

Source: HeteroSAg, section 4 and appendix G; spec/heterosag.md, sections 2 and 4 (HSA-01 to HSA-06, HSA-11, HSA-12).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from secagg_spec.arithmetic import segments, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.levels import MAX_LEVELS, Range
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.shamir import MAX_HOLDERS
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.protocols.secagg import round as secagg

MATRICES = ("cyclic", "perfect", "separate")
"""The matrices; keys are bound to the index of the matrix here. The last is the naive scheme, for comparison."""


@dataclass(frozen=True)
class Cell(secagg.Part):
    """The users of some subgroups, who quantise a segment with `levels` and mask it together, modulo their R."""

    subgroups: tuple[int, ...]
    levels: int


@dataclass(frozen=True)
class Parameters(secagg.Numbers):
    """The parameters of a session.

    They hold the members of each cell, so their memory grows with N times the number of subgroups: some 50 bytes each.

    Parameters
    ----------
    N, D, T, t, d : int
        The numbers of users, promised dropouts and colluders, the threshold, and the number of elements.
    sizes, subgroups, levels : tuple of int
        n_g, L_g and K_g for each group.
    range : Range
        r1 and r2.
    matrix : str
        ``"cyclic"`` or ``"perfect"``, or ``"separate"`` for the naive scheme.

    Raises
    ------
    ParameterError
        They break HSA-01 to HSA-06.
    """

    N: int
    D: int
    T: int
    t: int
    d: int
    sizes: tuple[int, ...]
    subgroups: tuple[int, ...]
    levels: tuple[int, ...]
    range: Range
    matrix: str = "perfect"
    k: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_counts(self)
        _check_groups(self)
        object.__setattr__(self, "k", self.N - 1)
        if not isinstance(self.matrix, str) or self.matrix not in MATRICES:
            raise ParameterError("matrix", self.matrix, " or ".join(repr(name) for name in MATRICES))
        allowed = f"at least Z = {self.count}, one element for each segment, and at most {validate.MAX_COUNT}"
        validate.integer("d", self.d, self.count, validate.MAX_COUNT, f"an integer of {allowed}")
        for cell in self.parts:
            validate.integer("the modulus of a cell", cell.ring.modulus, 2, MAX_MODULUS)

    @property
    def count(self) -> int:
        """Z, the number of subgroups, and of segments."""
        return sum(self.subgroups)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The users of each subgroup, ascending (HSA-11)."""
        users = np.split(np.arange(self.N), np.cumsum(self.sizes)[:-1])
        cut = (
            part for group, parts in zip(users, self.subgroups, strict=True) for part in np.array_split(group, parts)
        )
        return tuple(tuple(part.tolist()) for part in cut)

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """The group of each subgroup."""
        return tuple(group for group, parts in enumerate(self.subgroups) for _ in range(parts))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The number of elements of each segment (HSA-11)."""
        return tuple(len(part) for part in np.array_split(np.empty(self.d, bool), self.count))

    @cached_property
    def plan(self) -> segments.Matrix:
        """The subgroups of each cell of each segment (HSA-11)."""
        return segments.MATRICES[self.matrix](self.count)

    @cached_property
    def parts(self) -> tuple[Cell, ...]:
        """The cells, by segment and then by their first subgroup (HSA-12)."""
        starts = np.cumsum([0, *self.lengths]).tolist()
        rows = zip(self.plan, starts[:-1], starts[1:], strict=True)
        return tuple(
            self._cell(segment, start, stop, subgroups)
            for segment, (row, start, stop) in enumerate(rows)
            for subgroups in row
        )

    def _cell(self, segment: int, start: int, stop: int, subgroups: tuple[int, ...]) -> Cell:
        members = frozenset(user for subgroup in subgroups for user in self.members[subgroup])
        levels = self.levels[self.group_of[subgroups[0]]]
        modulus = len(members) * (levels - 1) + 1
        if modulus > MAX_MODULUS:
            raise ParameterError("levels", levels, f"such that {len(members)} * (levels - 1) + 1 is at most 2**32")
        return Cell(segment, start, stop, Ring(modulus), members, subgroups, levels)

    @cached_property
    def digest(self) -> bytes:
        """The hash of the parameters that keys are bound to (HSA-22)."""
        bounds = {f"r{at}": struct.unpack(">Q", struct.pack(">d", value))[0] for at, value in self._bounds()}
        numbers = [(name, getattr(self, name)) for name in ("N", "D", "T", "t", "d")]
        groups = zip(self.sizes, self.subgroups, self.levels, strict=True)
        named = [pair for group in groups for pair in zip(("users", "subgroups", "levels"), group, strict=True)]
        return hash_parameters([*numbers, *bounds.items(), ("matrix", MATRICES.index(self.matrix)), *named])

    def _bounds(self) -> tuple[tuple[int, float], tuple[int, float]]:
        return (1, float(self.range.low)), (2, float(self.range.high))


def _check_counts(given: Parameters) -> None:
    N = validate.integer("N", given.N, 3, MAX_HOLDERS)
    D, T = validate.integer("D", given.D, 0, N - 3), validate.integer("T", given.T, 1, N - 2)
    if N - D < T + 2:
        raise ParameterError("N - D", N - D, f"at least T + 2 = {T + 2}")
    validate.integer("t", given.t, T + 2, N - D)


def _check_groups(given: Parameters) -> None:
    """Refuse groups that are not the whole roster, too small subgroups, and decreasing levels (HSA-01, HSA-02)."""
    groups = len(validate.sequence("sizes", given.sizes, "sizes of groups"))
    for name, low, high in (("sizes", 1, given.N), ("subgroups", 1, given.N), ("levels", 2, MAX_LEVELS)):
        numbers = validate.sequence(name, getattr(given, name), "integers")
        if len(numbers) != groups:
            raise LengthMismatch(f"len({name})", len(numbers), f"{groups}, one for each group")
        for group, number in enumerate(numbers):
            validate.integer(f"{name}[{group}]", number, low, high)
    if sum(given.sizes) != given.N:
        raise ParameterError(
            "sizes", list(given.sizes), f"numbers with the sum N = {given.N}, and not {sum(given.sizes)}"
        )
    if given.count < 2:
        raise ParameterError("subgroups", list(given.subgroups), "at least two subgroups in all")
    for group, (size, parts) in enumerate(zip(given.sizes, given.subgroups, strict=True)):
        if size // parts < given.T + 2:
            allowed = f"at least T + 2 = {given.T + 2} users for each of its {parts} subgroups"
            raise ParameterError(f"sizes[{group}]", size, allowed)
    for group in range(1, groups):
        if given.levels[group] < given.levels[group - 1]:
            raise ParameterError(
                "levels", list(given.levels), "ascending: no group has fewer levels than the one before"
            )


UNIT = Range(-1.0, 1.0)
PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(12, 1, 1, 3, 4, (8, 4), (2, 1), (2, 3), UNIT),
        "default": Parameters(25, 5, 1, 13, 20, (5,) * 5, (1,) * 5, (2, 6, 8, 10, 12), UNIT),
        "large": Parameters(100, 20, 1, 51, 100, (20,) * 5, (4,) * 5, (2, 6, 8, 10, 12), UNIT),
    }
)


def cells_of(parameters: Parameters, user: int) -> tuple[Cell, ...]:
    """Return the cells that a user is in, by segment."""
    validate.integer("user", user, 0, parameters.N - 1)
    return tuple(cell for cell in parameters.parts if user in cell.members)


guard(__name__)
