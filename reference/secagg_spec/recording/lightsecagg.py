"""Record rounds of LightSecAgg."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.privacy.lightsecagg import Column, Situation
from secagg_spec.privacy.views import View
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, Parameters
from secagg_spec.protocols.steps import SERVER, Event, Randomness, Role, Step
from secagg_spec.recording.record import Addition, Term, numbers, plus
from secagg_spec.recording.synchronous import Fate
from secagg_spec.simulate.lightsecagg import network_of

PARAMETERS = Parameters(q=97, N=5, D=2, U=3, T=1, d=2)
FATES = (
    Fate("nobody", {}),
    Fate("before", {"upload": (2,)}),
    Fate("after", {"recover": (2,)}),
    Fate("few", {"upload": (0, 2, 3)}),
)


class LightSecAgg:
    """What a recording shows of a round of LightSecAgg."""

    protocol = "lightsecagg"

    def __init__(self, seed: bytes, parameters: Parameters = PARAMETERS) -> None:
        self.seed, self.parameters = seed, parameters
        shape = (parameters.N, parameters.d)
        self.updates = draw_elements(SeededSource(seed, "updates"), Ring(10), shape)
        self.network = network_of(parameters, self.updates, seed)

    @property
    def numbers(self) -> Mapping[str, int]:
        """The parameters, by their symbols."""
        return {name: getattr(self.parameters, name) for name in ("q", "N", "U", "T", "D")}

    @property
    def inputs(self) -> tuple[Term, ...]:
        """The update of each user."""
        return tuple(Term(f"x_{user}", numbers(row)) for user, row in enumerate(self.updates))

    def randomness(self) -> Mapping[int, Randomness]:
        """Return what each user samples."""
        sources = {user: SeededSource(self.seed, f"user {user}") for user in range(self.parameters.N)}
        return lightsecagg.draw_randomness(self.parameters, sources)

    def values(self, step: Step[Any], events: Sequence[Event]) -> Iterator[Term]:
        """Yield the masks that users draw and their shares, in the order of their holders."""
        if (step.phase, step.role) == ("share", Role.USER):
            sampled = self.randomness()
            for event in events:
                mask, noise = sampled[event.party]["mask"], sampled[event.party]["noise"]
                shares = self.parameters.code.encode(mask, noise)
                yield Term(f"z_{event.party}", numbers(mask))
                yield Term(f"shares of z_{event.party}, for users 0, 1, …", numbers(shares.reshape(-1)))

    def additions(self, step: Step[Any], events: Sequence[Event]) -> Iterator[Addition]:
        """Yield how updates are masked, how shares are added, and how the sum of the masks is subtracted."""
        made = {
            ("upload", Role.USER): self._masking,
            ("upload", Role.SERVER): self._sum,
            ("recover", Role.USER): self._answer,
            ("recover", Role.SERVER): self._recovery,
        }.get((step.phase, step.role))
        yield from (made(event) for event in events if made)

    def _masking(self, event: Event) -> Addition:
        user, masks = event.party, self.randomness()
        (message,) = event.sent
        assert isinstance(message, MaskedUpdate)
        terms = (Term(f"x_{user}", numbers(self.updates[user])), Term(f"z_{user}", numbers(masks[user]["mask"])))
        return self._adding(terms, Term(f"y_{user}", numbers(message.masked)))

    def _sum(self, event: Event) -> Addition:
        terms = tuple(
            Term(f"y_{message.sender}", numbers(message.masked))
            for message in event.received
            if isinstance(message, MaskedUpdate)
        )
        return self._adding(terms, Term(plus("y", event.state.surviving), numbers(event.state.masked_sum)))

    def _answer(self, event: Event) -> Addition:
        (message,), user = event.sent, event.party
        assert isinstance(message, AggregatedShare)
        held = self._held(user)
        terms = tuple(Term(f"share of z_{i}", held[i]) for i in self._surviving())
        return self._adding(terms, Term(f"answer of user {user}", numbers(message.share)))

    def _held(self, user: int) -> Mapping[int, tuple[int, ...]]:
        found = next(e.state.held for e in self.network.transcript if (e.step.phase, e.party) == ("upload", user))
        return {owner: numbers(share) for owner, share in found.items()}

    def _surviving(self) -> tuple[int, ...]:
        surviving: tuple[int, ...] = self.network.states[SERVER].surviving
        return surviving

    def _recovery(self, event: Event) -> Addition:
        server, field = event.state, self.parameters.field
        users = server.surviving
        masks = field.subtract(server.masked_sum, server.aggregate)
        terms = (
            Term(plus("y", users), numbers(server.masked_sum)),
            Term(f"{plus('z', users)}, decoded", numbers(masks), -1),
        )
        return self._adding(terms, Term(plus("x", users), numbers(server.aggregate)))

    def _adding(self, terms: tuple[Term, ...], result: Term) -> Addition:
        return Addition(self.parameters.q, terms, result)

    def views(self, seen: Sequence[Event], coalition: Collection[int]) -> Sequence[View]:
        """Return what the server and a coalition see after some steps, column by column."""
        users = [e.party for e in seen if (e.step.phase, e.step.role) == ("upload", Role.USER)]
        uploaded = validate.users("seen", users, self.parameters.N)
        answered = [e for e in seen if (e.step.phase, e.step.role) == ("recover", Role.USER)]
        asked = dict.fromkeys((e.party for e in answered), self._surviving())
        happened = Situation(self._surviving(), uploaded, asked)
        p, L = self.parameters, self.parameters.share_length
        columns = [Column(p, p.code, range(at, p.d, L)) for at in range(L)]
        return [column.view(coalition, happened) for column in columns]

    def summed(self) -> tuple[Term, ...]:
        """Return the sum that the round recovered."""
        server = self.network.states[SERVER]
        return (Term(plus("x", server.surviving), numbers(server.aggregate)),)


guard(__name__)
