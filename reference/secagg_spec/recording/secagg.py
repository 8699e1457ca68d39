"""Record rounds of SecAgg, of SecAgg+ on a sparse graph, and of HeteroSAg, which masks segment by segment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.prg import expand
from secagg_spec.privacy.heterosag import Plan
from secagg_spec.privacy.heterosag import seen as seen_of
from secagg_spec.privacy.secagg import Answer, Element, Situation
from secagg_spec.privacy.views import View
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters as HeteroParameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import MaskedInput, Part, UnmaskShares
from secagg_spec.protocols.steps import SERVER, Event, Network, Randomness, Role, Step
from secagg_spec.recording.record import Addition, Term, numbers, plus
from secagg_spec.recording.synchronous import Fate
from secagg_spec.simulate.secagg import network_of

COMPLETE = secagg.Parameters(R=100, N=5, D=2, T=1, t=3, k=4, d=2)
SPARSE = secagg.Parameters(R=100, N=6, D=2, T=1, t=2, k=2, d=2)
GROUPS = HeteroParameters(7, 1, 1, 3, 2, (4, 3), (1, 1), (2, 3), Range(-1.0, 1.0))
_DIGITS = Ring(10)

FATES = (
    Fate("nobody", {}),
    Fate("before", {"masked_input": (2,)}),
    Fate("after", {"unmasking": (2,)}),
    Fate("few", {"masked_input": (0, 2, 3)}),
)
SPARSE_FATES = (
    Fate("nobody", {}),
    Fate("before", {"masked_input": (2,)}),
    Fate("cut", {"masked_input": (0, 3)}),
    Fate("few", {"masked_input": (2, 3)}),
)
GROUP_FATES = (
    Fate("nobody", {}),
    Fate("before", {"masked_input": (2,)}),
    Fate("after", {"unmasking": (2,)}),
    Fate("few", {"masked_input": (5,)}),
)


class Masked:
    """What a recording shows of a round with pairwise masks; the subclasses add the parts of SecAgg and HeteroSAg."""

    protocol: str
    parameters: Any
    updates: UintArray
    network: Network

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self.steps: dict[tuple[str, Role], Step[Any]] = {(step.phase, step.role): step for step in self.network.table}

    @property
    def inputs(self) -> tuple[Term, ...]:
        """The update of each user."""
        return tuple(Term(f"x_{user}", numbers(row)) for user, row in enumerate(self.updates))

    @property
    def numbers(self) -> Mapping[str, int]:
        """The parameters, by their symbols."""
        return {name: getattr(self.parameters, name) for name in ("N", "t", "T", "D", "k")}

    def randomness(self) -> Mapping[int, Randomness]:
        """Return what each user samples."""
        sources = {user: SeededSource(self.seed, f"user {user}") for user in range(self.parameters.N)}
        return secagg.draw_randomness(self.parameters, sources)

    def base(self, state: Any) -> Any:
        """Return the state of SecAgg in a state."""
        return state

    def masked(self, event: Event) -> UintArray:
        """Return the masked input that a user sent."""
        (message,) = event.sent
        assert isinstance(message, MaskedInput)
        return message.masked

    def views(self, seen: Sequence[Event], coalition: Collection[int]) -> Sequence[View]:
        """Return what the server and a coalition see after some steps."""
        raise NotImplementedError

    @cached_property
    def keys(self) -> Mapping[int, Any]:
        """The states of the users that have drawn their masks."""
        return {e.party: self.base(e.state) for e in self.events("share_keys", Role.USER)}

    def events(self, phase: str, role: Role) -> list[Event]:
        """Return the steps that were taken in a row of the table, for checked arguments."""
        return [e for e in self.network.transcript if e.step is self.steps[phase, role]]

    # Additions.

    def additions(self, step: Step[Any], events: Sequence[Event]) -> Iterator[Addition]:
        """Yield how inputs are masked, and how the masks are removed from the sum."""
        if (step.phase, step.role) == ("masked_input", Role.USER):
            for event in events:
                yield from (self._masking(event, part) for part in self._parts(event.party))
        elif events and step.role is Role.SERVER and step.phase in ("masked_input", "unmasking"):
            server = self.base(events[0].state)
            for at, part in enumerate(self.parameters.parts):
                if part.members & set(server.survivors):
                    made = self._sum if step.phase == "masked_input" else self._unmasking
                    yield made(server, at, part)

    def values(self, step: Step[Any], events: Sequence[Event]) -> Iterator[Term]:
        """Yield nothing: the secrets of this protocol are seeds."""
        yield from ()

    def _parts(self, user: int) -> list[Part]:
        return [part for part in self.parameters.parts if user in part.members]

    def _masking(self, event: Event, part: Part) -> Addition:
        user, peers = event.party, self.heard(event) & part.members
        pairs = [self._pair(user, peer, part, 1 if user < peer else -1) for peer in sorted(peers)]
        terms = (Term(f"x_{user}", numbers(part.of(self.updates[user]))), self._own(user, part), *pairs)
        result = Term(f"y_{user}", numbers(part.of(self.masked(event))))
        return Addition(part.ring.modulus, terms, result, self.about(part))

    def heard(self, event: Event) -> frozenset[int]:
        """Return the neighbours whose masks a masked input contains."""
        (message,) = event.sent
        assert isinstance(message, (MaskedInput, heterosag.MaskedSegments))
        return frozenset(message.neighbours)

    def about(self, part: Part) -> str:
        """Return the words for a part of the input."""
        return ""

    def _own(self, user: int, part: Part, factor: int = 1) -> Term:
        key = self.keys[user].self_keys[part.segment]
        return Term(f"b_{user}", numbers(expand(key, part.ring, part.length)), factor)

    def _pair(self, user: int, peer: int, part: Part, factor: int) -> Term:
        key = self.keys[user].mask_keys[part.segment, peer]
        low, high = sorted((user, peer))
        return Term(f"s_{low},{high}", numbers(expand(key, part.ring, part.length)), factor)

    def _uploads(self, part: Part) -> dict[int, tuple[int, ...]]:
        sent = self.events("masked_input", Role.USER)
        return {e.party: numbers(part.of(self.masked(e))) for e in sent if e.party in part.members}

    def _sum(self, server: Any, at: int, part: Part) -> Addition:
        uploads = self._uploads(part)
        terms = tuple(Term(f"y_{user}", vector) for user, vector in uploads.items())
        total = Term(plus("y", uploads), numbers(server.masked_sums[at]))
        return Addition(part.ring.modulus, terms, total, self.about(part))

    def _unmasking(self, server: Any, at: int, part: Part) -> Addition:
        """Remove the survivors' self masks, and the pairwise masks with dropped users that are left in the sum."""
        stayed = [user for user in server.survivors if user in part.members]
        left = [
            self._pair(i, j, part, 1 if i < j else -1)
            for i in server.dropped
            if i in part.members
            for j in stayed
            if (part.segment, j) in self.keys[i].mask_keys
        ]
        total = Term(plus("y", stayed), numbers(server.masked_sums[at]))
        terms = (total, *(self._own(user, part, -1) for user in stayed), *left)
        result = Term(plus("x", stayed), numbers(server.sums[at]))
        return Addition(part.ring.modulus, terms, result, self.about(part))

    def summed(self) -> tuple[Term, ...]:
        """Return the sum that the round recovered, part by part."""
        server = self.base(self.network.states[SERVER])
        found = []
        for part, total in zip(self.parameters.parts, server.sums, strict=True):
            stayed = [user for user in server.survivors if user in part.members]
            name = " ".join(filter(None, (plus("x", stayed), self.about(part) and f"({self.about(part)})")))
            found += [Term(name, numbers(total))] if stayed else []
        return tuple(found)

    # What is seen.

    def situation(self, seen: Sequence[Event]) -> Situation:
        """Return what the server got in some steps."""
        taken = {(event.step.phase, event.step.role): event for event in seen}
        sharers = self._announced(taken, "share_keys", "sharers")
        users = [e.party for e in seen if (e.step.phase, e.step.role) == ("masked_input", Role.USER)]
        uploaded = validate.users("seen", users, self.parameters.N)
        shares = [m for e in seen for m in e.sent if isinstance(m, UnmaskShares)]
        answers = {m.sender: Answer(m.survivors, m.dropped) for m in shares}
        return Situation(sharers, self._announced(taken, "masked_input", "survivors"), uploaded, answers)

    def _announced(self, taken: Mapping[tuple[str, Role], Event], phase: str, name: str) -> tuple[int, ...]:
        event = taken.get((phase, Role.SERVER))
        return () if event is None else getattr(self.base(event.state), name)


class SecAgg(Masked):
    """A round of SecAgg or, on a sparse graph, of SecAgg+ with the users around the circle in numerical order."""

    def __init__(self, seed: bytes, parameters: secagg.Parameters = COMPLETE) -> None:
        self.protocol = "secagg" if parameters.complete else "secagg-plus"
        self.parameters = parameters
        p = parameters
        self.updates = draw_elements(SeededSource(seed, "updates"), _DIGITS, (p.N, p.d))
        self.network = network_of(p, self.updates, None, seed)
        super().__init__(seed)

    @property
    def numbers(self) -> Mapping[str, int]:
        """The parameters, by their symbols."""
        return {"R": self.parameters.R, **super().numbers}

    def views(self, seen: Sequence[Event], coalition: Collection[int]) -> Sequence[View]:
        """Return what the server and a coalition see after some steps."""
        p, happened = self.parameters, self.situation(seen)
        element = Element(p.ring, p.graph(), p.t, happened.sharers, indices=range(p.d))
        return [element.view(coalition, happened)]


class HeteroSAg(Masked):
    """A round of HeteroSAg, with one element in each segment."""

    def __init__(self, seed: bytes, parameters: HeteroParameters = GROUPS) -> None:
        self.protocol, self.parameters = "heterosag", parameters
        source = SeededSource(seed, "updates")
        self.updates = draw_elements(source, Ring(min(parameters.levels)), (parameters.N, parameters.d))
        self.network = heterosag.open_round(parameters, self.updates, session=bytes(16), round=0)
        super().__init__(seed)

    def base(self, state: Any) -> Any:
        """Return the state of SecAgg in a state."""
        return state.base

    def about(self, part: Part) -> str:
        """Return the words for a part of the input."""
        return f"segment {part.segment}"

    def masked(self, event: Event) -> UintArray:
        """Return the masked segments that a user sent."""
        (message,) = event.sent
        assert isinstance(message, heterosag.MaskedSegments)
        return heterosag.read_segments(event.state.base.round, event.party, message.segments)

    def views(self, seen: Sequence[Event], coalition: Collection[int]) -> Sequence[View]:
        """Return what the server and a coalition see after some steps, cell by cell."""
        plan, happened = Plan(self.parameters), self.situation(seen)
        cells = [(cell,) for cell in self.parameters.parts]
        return [seen_of(plan.elements(cell, happened.sharers), happened, coalition) for cell in cells]


guard(__name__)
