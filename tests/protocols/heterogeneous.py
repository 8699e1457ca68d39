"""Rounds of HeteroSAg for the tests: parameters of all kinds, inputs below the levels of each cell, plain sums."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import UNIT, Cell, Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Network, Randomness
from tests.strategies import integers_of, pseudorandom

SMALL = Parameters(N=8, D=2, T=1, t=3, d=5, sizes=(4, 4), subgroups=(1, 1), levels=(2, 4), range=UNIT)
LARGE_LEVELS = (2, 3, 4, 9, 200, 2**16, 2**24)
FILLS = ("random", "zero", "most")


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that a round takes, but who drops out."""

    parameters: Parameters
    updates: UintArray
    randomness: dict[int, Randomness]

    def open(self) -> Network:
        """The round before its first step."""
        return heterosag.open_round(self.parameters, self.updates, session=bytes(16), round=0)

    def run(self, fates: Sequence[str]) -> heterosag.RoundResult:
        """The round with a fate for each user."""
        dropouts = {phase: [u for u, fate in enumerate(fates) if fate == phase] for phase in heterosag.PHASES}
        return heterosag.run_round(
            self.parameters, self.updates, randomness=self.randomness, dropouts=dropouts, session=bytes(16), round=0
        )

    def plain_sums(self, users: Collection[int]) -> list[tuple[Cell, tuple[int, ...], list[int]]]:
        """Each cell with survivors, who they are, and the sum of their segments by Python's integers."""
        found = []
        for cell in self.parameters.parts:
            present = tuple(sorted(cell.members & set(users)))
            rows = integers_of(self.updates[list(present), cell.start : cell.stop])
            if present:
                found.append((cell, present, [sum(column) for column in zip(*rows, strict=True)]))
        return found


@cache
def case_of(parameters: Parameters, seed: int = 1, fill: str = "random") -> Case:
    """A round whose every sampled value differs, from a seed; its inputs are as `fill` says."""
    sources = {user: SeededSource(b"%d" % seed, f"user {user}") for user in range(parameters.N)}
    updates = pseudorandom(seed, 2**32, parameters.N, parameters.d)
    for cell in parameters.parts:
        rows = np.ix_(sorted(cell.members), range(cell.start, cell.stop))
        filled = {"random": updates[rows] % np.uint64(cell.levels), "zero": 0, "most": cell.levels - 1}
        updates[rows] = np.asarray(filled[fill], np.uint64)
    return Case(parameters, updates, dict(secagg.draw_randomness(parameters, sources)))


@st.composite
def sessions(draw: st.DrawFn, most: int = 12) -> Parameters:
    """Parameters of up to `most` users in up to four subgroups, groups of unlike sizes and levels among them."""
    T = draw(st.sampled_from((1, 1, 2)))
    least = T + 2
    subgroups = draw(st.sampled_from([c for c in COUNTS if sum(c) * least <= most]))
    sizes, left = [], most - sum(subgroups) * least
    for parts in subgroups:
        more = draw(st.integers(0, left))
        sizes.append(parts * least + more)
        left -= more
    N = sum(sizes)
    D = draw(st.integers(0, N - least))
    high = min((2**32 - 1) // N + 1, 2**31)
    levels = sorted(draw(st.sampled_from(LARGE_LEVELS) | st.integers(2, high)) for _ in subgroups)
    return Parameters(
        N=N,
        D=D,
        T=T,
        t=draw(st.integers(least, N - D)),
        d=sum(subgroups) + draw(st.integers(0, 5)),
        sizes=tuple(sizes),
        subgroups=subgroups,
        levels=tuple(levels),
        range=draw(st.sampled_from((UNIT, Range(-0.3, 0.7), Range(0.0, 1e308), Range(0.0, 5e-324)))),
        matrix=draw(st.sampled_from(("perfect", "cyclic", "perfect", "cyclic", "separate"))),
    )


COUNTS: tuple[tuple[int, ...], ...] = (
    (1, 1),
    (2,),
    (2, 1),
    (1, 2),
    (1, 1, 1),
    (3,),
    (1, 1, 1, 1),
    (2, 2),
    (4,),
    (1, 3),
)


def cases(most: int = 12) -> st.SearchStrategy[Case]:
    """Rounds with drawn parameters and inputs."""
    return st.builds(case_of, sessions(most), st.integers(0, 3), st.sampled_from(FILLS))
