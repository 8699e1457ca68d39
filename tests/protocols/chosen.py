"""Rounds of Multi-RoundSecAgg for the tests: parameters over both protocols, choices, plain sums, and who survives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round.round import Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Event, Network, Randomness, Role, RoundResult
from secagg_spec.selection import batches
from tests.strategies import pseudorandom

SELECTION = batches.Parameters(N=12, K=8, T=4)
SECAGG = Parameters(SELECTION, secagg.Parameters(R=97, N=8, D=5, T=1, t=3, k=7, d=2))
LIGHTSECAGG = Parameters(SELECTION, lightsecagg.Parameters(q=97, N=8, D=5, U=3, T=1, d=2))
BOTH = (SECAGG, LIGHTSECAGG)
"""Three batches of four users, two of them in a round; three survivors are enough for the round alone."""

ADDS = {"secagg": 5, "lightsecagg": 3}
"""The row in which the server adds; the next one is that in which users release."""


def modulus(parameters: Parameters) -> int:
    """What inputs are counted modulo."""
    base = parameters.round
    return base.R if isinstance(base, secagg.Parameters) else base.q


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that a round takes, but who drops out: inputs and sampled values are by number in the round."""

    parameters: Parameters
    chosen: tuple[int, ...]
    updates: UintArray
    randomness: dict[int, Randomness]

    def open(self, number: int = 0) -> Network:
        """The round before its first step."""
        return multi_round.open_round(self.parameters, self.chosen, self.updates, round=number, session=bytes(16))

    def run(self, fates: Sequence[str]) -> RoundResult:
        """The round with a fate for each user of it."""
        phases = self.parameters.base.phases
        dropouts = {phase: [user for user, fate in enumerate(fates) if fate == phase] for phase in phases}
        return multi_round.run_round(
            self.parameters,
            self.chosen,
            self.updates,
            randomness=self.randomness,
            dropouts=dropouts,
            session=bytes(16),
            round=0,
        )

    def stage(self, rows: int, absent: Collection[int] = (), since: int = 0, number: int = 0) -> Network:
        """A network on which who has something to take has taken the first `rows` rows; some are absent from one on."""
        network = self.open(number)
        for row, step in enumerate(network.table[:rows]):
            users = range(len(self.chosen))
            for party in (SERVER,) if step.role is Role.SERVER else users:
                here = row < since or party not in absent
                if party == SERVER or (here and (not step.receives or network.mail(step, party))):
                    self.take(network, row, party)
        return network

    def take(self, network: Network, row: int, party: int) -> Event:
        """Let a party take a row."""
        step = network.table[row]
        return network.take(step, party, {name: self.randomness[party][name] for name in step.randomness})

    def plain_sum(self, users: Collection[int]) -> list[int]:
        """The sum of the inputs of some users of the round, by Python's integers."""
        rows = self.updates[sorted(users)].tolist()
        return [sum(column) % modulus(self.parameters) for column in zip(*rows, strict=True)]


@cache
def case_of(parameters: Parameters, seed: int = 1, chosen: tuple[int, ...] | None = None) -> Case:
    """A round whose every sampled value differs, from a seed; of the last batches when none are named."""
    K, N = parameters.selection.K, parameters.selection.N
    sources = {user: SeededSource(b"%d" % seed, f"user {user}") for user in range(K)}
    updates = pseudorandom(seed, modulus(parameters), K, parameters.round.d)
    randomness = multi_round.draw_randomness(parameters, sources)
    return Case(parameters, chosen or tuple(range(N - K, N)), updates, randomness)


@st.composite
def sessions(draw: st.DrawFn, most: int = 10) -> Parameters:
    """Parameters with up to `most` users in a round of either protocol."""
    c = draw(st.sampled_from((1, 1, 2)))
    T = draw(st.integers(c + 2, min(5, most)))
    K = T * draw(st.integers(1, most // T))
    N = K + T * draw(st.integers(0, 3))
    D = draw(st.integers(0, K - c - 2))
    d = draw(st.integers(1, 3))
    if draw(st.booleans()):
        t = draw(st.integers(c + 2, K - D))
        R = draw(st.sampled_from((2, 97, 2**32)))
        return Parameters(batches.Parameters(N, K, T), secagg.Parameters(R, K, D, c, t, K - 1, d))
    U = draw(st.integers(c + 1, K - D))
    q = draw(st.sampled_from((11, 97, 2**32 - 5)))
    return Parameters(batches.Parameters(N, K, T), lightsecagg.Parameters(q, K, D, U, c, d))


@st.composite
def choices(draw: st.DrawFn, p: batches.Parameters) -> tuple[int, ...]:
    """Sets of the family, ascending."""
    picked = draw(st.sets(st.integers(0, p.N // p.T - 1), min_size=p.K // p.T, max_size=p.K // p.T))
    return tuple(user for user in range(p.N) if user // p.T in picked)


@st.composite
def cases(draw: st.DrawFn, most: int = 10) -> Case:
    """Rounds with drawn parameters, inputs and choices."""
    parameters = draw(sessions(most))
    return case_of(parameters, draw(st.integers(0, 3)), draw(choices(parameters.selection)))


@st.composite
def fates_of(draw: st.DrawFn, p: Parameters) -> list[str]:
    """For each user of a round, the phase in which it drops out, or ``stays``: one by one, or a batch at once."""
    phases, K, T = p.base.phases, p.selection.K, p.selection.T
    fates = ["stays"] * K
    for user in draw(st.sets(st.integers(0, K - 1), max_size=3)):
        fates[user] = draw(st.sampled_from(phases))
    for batch in draw(st.sets(st.integers(0, K // T - 1), max_size=1)):
        fate = draw(st.sampled_from(("stays", *phases)))
        fates = [fate if user // T == batch else old for user, old in enumerate(fates)]
    return fates


def whole(p: batches.Parameters, users: Collection[int]) -> set[int]:
    """Those of some users whose whole batch is among them, by counting."""
    return {user for user in users if sum(other // p.T == user // p.T for other in users) == p.T}


def succeeds(p: Parameters, fates: Sequence[str]) -> tuple[int, ...] | None:
    """The survivors of a round when the text says that it succeeds: worked out on sets, without any message."""
    survivors = announced(p, fates)
    needed = p.round.t if isinstance(p.round, secagg.Parameters) else p.round.U
    answers = _taking(p, fates, p.base.releases) & set(survivors or ())
    return survivors if len(answers) >= needed else None


def announced(p: Parameters, fates: Sequence[str]) -> tuple[int, ...] | None:
    """The survivors of a round when the text says that the server announces them."""
    phases, round = p.base.phases, p.round
    survivors = whole(p.selection, _taking(p, fates, p.base.adds))
    if isinstance(round, secagg.Parameters):
        enough, before = max(round.t, round.T + 2), [_taking(p, fates, phase) for phase in phases[:2]]
    else:
        enough, before = max(round.U, round.T + 2), []
    large = all(len(users) >= enough for users in (*before, survivors))
    return tuple(sorted(survivors)) if large else None


def _taking(p: Parameters, fates: Sequence[str], phase: str) -> set[int]:
    dropped = p.base.phases[: p.base.phases.index(phase) + 1]
    return {user for user, fate in enumerate(fates) if fate not in dropped}
