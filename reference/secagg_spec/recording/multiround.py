"""Record sessions of Multi-RoundSecAgg in which no update changes, so the sums of all rounds can be combined."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.privacy.views import Forms, Space, View, join
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round.round import Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Network, run_synchronous
from secagg_spec.recording.knowledge import Knowledge, known
from secagg_spec.recording.record import Addition, Moment, Parcel, Recording, Sending, Term, numbers, plus, sendings
from secagg_spec.selection import batches

PARAMETERS = Parameters(batches.Parameters(9, 6, 3), secagg.Parameters(R=97, N=6, D=3, T=1, t=3, k=5, d=2))


@dataclass(frozen=True)
class Session:
    """The users chosen in each round, those that drop out before the masked input, and whether batches stay whole."""

    chosen: tuple[tuple[int, ...], ...]
    lost: Mapping[int, tuple[int, ...]]
    whole: bool = True


_01, _12, _02 = (0, 1, 2, 3, 4, 5), (3, 4, 5, 6, 7, 8), (0, 1, 2, 6, 7, 8)
RUNS: Mapping[str, Session] = {
    "nobody": Session((_01, _12, _02), {}),
    "before": Session((_01, _12, _01), {2: (5,)}),
    "few": Session((_01, _12), {1: (3, 8)}),
    "without": Session((_01, _01), {1: (5,)}, whole=False),
}


class MultiRound:
    """A session among nine users in three batches; two batches are chosen in each round."""

    def __init__(self, seed: bytes, run: str) -> None:
        self.seed, self.run, self.parameters = seed, run, PARAMETERS
        self.session = RUNS[validate.one_of("run", run, [*RUNS])]
        self.updates = draw_elements(SeededSource(seed, "updates"), Ring(10), (9, self.parameters.round.d))
        assert isinstance(self.parameters.round, secagg.Parameters)
        self.field = PrimeField(self.parameters.round.R)
        self.sums: list[tuple[int, ...]] = []
        self.given: list[Term] = []

    def record(self, colluder: int) -> Recording:
        """Run all rounds and return the recording."""
        (colluder,) = validate.users("colluder", (colluder,), self.parameters.selection.N)
        moments, ended = list[Moment](), ""
        for number, chosen in enumerate(self.session.chosen):
            moments.append(self._choice(number, chosen, colluder))
            network = self._network(number, chosen)
            lost = [chosen.index(user) for user in self.session.lost.get(number, ())]
            try:
                run_synchronous(network, {"masked_input": lost}, self._sampled(number))
                ended = ""
                self._keep(network, chosen)
            except TooFewSurvivors as failed:
                ended = str(failed)
            moments.append(self._sum(number, chosen, network, ended, colluder))
        inputs = tuple(Term(f"x_{user}", numbers(row)) for user, row in enumerate(self.updates))
        shown = {name: getattr(self.parameters.numbers, name) for name in ("N", "K", "T", "c")}
        shown["R"] = self.field.modulus
        summed = () if ended else tuple(self.given)
        return Recording("multi-round", self.run, shown, 9, colluder, inputs, tuple(moments), summed, ended)

    def _network(self, number: int, chosen: tuple[int, ...]) -> Network:
        updates = self.updates[list(chosen)]
        if self.session.whole:
            return multi_round.open_round(self.parameters, chosen, updates, round=number, session=bytes(16))
        assert isinstance(self.parameters.round, secagg.Parameters)
        return secagg.open_round(self.parameters.round, updates, round=number, session=bytes(16))

    def _sampled(self, number: int) -> Mapping[int, Mapping[str, object]]:
        places = range(self.parameters.selection.K)
        sources = {place: SeededSource(self.seed, f"round {number}, place {place}") for place in places}
        return multi_round.draw_randomness(self.parameters, sources)

    def _keep(self, network: Network, chosen: tuple[int, ...]) -> None:
        """Add the sum of a round to the log."""
        server = network.states[SERVER]
        users = server.survivors if self.session.whole else tuple(chosen[place] for place in server.survivors)
        self.sums.append(users)
        self.given.append(Term(plus("x", users), numbers(server.aggregate)))

    # Moments.

    def _choice(self, number: int, chosen: tuple[int, ...], colluder: int) -> Moment:
        return Moment(
            "choose", f"round {number}: choose", chosen, (),
            server=self._knowledge(()), colluding=self._knowledge((colluder,)),
            happened=() if self.session.whole else ("without",),
        )  # fmt: skip

    def _sum(self, number: int, chosen: tuple[int, ...], network: Network, ended: str, colluder: int) -> Moment:
        lost = self.session.lost.get(number, ())
        sent = tuple(_renamed(made, chosen) for made in sendings(network.transcript))
        return Moment(
            "sum", f"round {number}: sum", tuple(user for user in chosen if user not in lost), chosen, sent,
            () if ended else (self._addition(),),
            server=self._knowledge(()), colluding=self._knowledge((colluder,)),
            happened=self._happened(bool(lost), ended),
        )  # fmt: skip

    def _happened(self, lost: bool, ended: str) -> tuple[str, ...]:
        kinds = [(bool(ended), "ended"), (lost and not self.session.whole, "without"), (lost, "dropped")]
        return tuple(name for holds, name in kinds if holds)[:1]

    def _addition(self) -> Addition:
        terms = tuple(Term(f"x_{user}", numbers(self.updates[user])) for user in self.sums[-1])
        return Addition(self.field.modulus, terms, self.given[-1])

    # What is known.

    def _knowledge(self, coalition: Collection[int]) -> Knowledge:
        users, d = range(len(self.updates)), self.updates.shape[1]
        space = Space(self.field)
        inputs = {user: space.secret("x", user, range(d)) for user in users}
        view = View(space, coalition)
        view.see(*(_total(self.field, [inputs[user] for user in summed]) for summed in self.sums))
        return known([view], [user for user in users if user not in coalition], d)


def _total(field: PrimeField, parts: Sequence[Forms]) -> Forms:
    joined = join(parts)
    adding = np.tile(np.eye(len(parts[0]), dtype=np.uint64), (1, len(parts)))
    return Forms(joined.symbols, field.matmul(adding, joined.matrix))


def _renamed(made: Sending, chosen: Sequence[int]) -> Sending:
    """Return what was sent, with the users of a round given by their numbers in the session."""
    names = {**dict(enumerate(chosen)), SERVER: SERVER}

    def renamed(parcel: Parcel) -> Parcel:
        return replace(parcel, routes=tuple((names[a], names[b]) for a, b in parcel.routes), example="")

    return replace(made, parcels=tuple(map(renamed, made.parcels)))


guard(__name__)
