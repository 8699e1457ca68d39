"""Servers that lie within a round of SecAgg: they ask users for different survivors, and withhold shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.multi_round.round import check_survivors
from secagg_spec.protocols.secagg.round import UnmaskRequest
from secagg_spec.protocols.steps import Outbox
from secagg_spec.selection import batches
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import Standing
from tests.stories.secagg import LyingPlay
from tests.stories.view import Row, beyond, words


class WithholdingPlay(LyingPlay):
    """One story of a server that withholds shares as well: a letter may name several senders.

    A user takes part with t users at least, itself among them, so at most N - t are worth naming.
    """

    relays = False

    def _step(self, user: int, random: Random) -> Letter:
        letter = super()._step(user, random)
        if self.phase(self.standing[user]) != "masked_input":
            return letter
        here = [at for at in self.standing.values() if at.attempt == self.standing[user].attempt]
        lacking = any(self.phase(at) == "unmasking" and len(at.shadow) < self.N for at in here)
        if random.random() < (0.85 if lacking else 0.3):
            return replace(letter, without=())
        users = (user,) if random.random() < 0.85 else letter.users
        return replace(letter, users=users, without=self._withheld(user, random), age=0)

    def _withheld(self, user: int, random: Random) -> tuple[int, ...]:
        others = [other for other in range(self.N) if other != user]
        most = self.N - int(self.parameters.t)
        return tuple(sorted(random.sample(others, random.choice((1, most, most)) if most else 0)))


class BatchPlay(WithholdingPlay):
    """One story of a round of a Multi-RoundSecAgg session: honest users refuse survivors by MRA-21.

    The steps are those of SecAgg among all users of the session, with the check of `multi_round` before a user releases
    anything. The server asks for unions of batches, and with `withholds` it also withholds shares, mostly by the batch.
    A sum over all honest users of some batches is what the text allows.
    """

    def __init__(self, parameters: Any, rules: Rules, random: Random, *, T: int, withholds: bool) -> None:
        super().__init__(parameters, rules, random, colluding=parameters.T, least=1)
        self.selection = batches.Parameters(self.N, self.N, T)
        self.relays = not withholds
        self.groups = [tuple(range(at, at + T)) for at in range(0, self.N, T)]

    def _sets(self, random: Random) -> list[tuple[int, ...]]:
        """Return unions of batches; in most stories they differ in one batch each, in others one is no union."""
        least = -(-self.smallest() // self.selection.T)
        mixed = random.random() < 0.25
        if mixed:
            some = [random.sample(self.groups, random.randint(least, len(self.groups))) for _ in range(3)]
        else:
            order = random.sample(self.groups, len(self.groups))
            some = [[*order[: least - 1], other] for other in order[least - 1 :]]
        other = random.sample(range(self.N), random.randint(self.smallest(), self.N))
        return [tuple(sorted(user for group in one for user in group)) for one in some] + [tuple(sorted(other))] * mixed

    def _step(self, user: int, random: Random) -> Letter:
        letter, phase = super()._step(user, random), self.phase(self.standing[user])
        if phase in self.told_in and random.random() < 0.6:
            return replace(letter, users=self.groups[user // self.selection.T])
        return letter

    def _withheld(self, user: int, random: Random) -> tuple[int, ...]:
        """Return senders whose shares are withheld: any, or by the batch, its own first or any, of a set or of all."""
        if random.random() < 0.2:
            return super()._withheld(user, random)
        order = random.sample(self.groups, len(self.groups))
        own, of = self.groups[user // self.selection.T], random.choice(self.favourites)
        if random.random() < 0.5:
            order.sort(key=lambda group: (group != own, group[0] not in of))
        mixed = [other for group in order for other in group if other != user]
        return tuple(sorted(mixed[: self.N - int(self.parameters.t)]))

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        if user not in self.colluders and inbox and isinstance(inbox[0], UnmaskRequest):
            check_survivors(self.selection, inbox[0].survivors)
        return super().step(user, at, inbox)

    def leak(self) -> tuple[str, ...]:
        inputs = [symbol for (user, _, _), symbol in self.inputs.items() if user not in self.colluders]
        learned = self.view.learned(inputs, self.known())
        if not learned:
            return ()
        allowed: list[Row] = []
        for attempt in self.attempts:
            for group in self.groups:
                here = [user for user in group if user not in self.colluders]
                if set(here) <= set(attempt.models):
                    allowed.append({self.inputs[user, attempt.models[user], 0]: 1 for user in here})
        outside = beyond(self.view.prime, learned, allowed)
        names = {symbol: self._name(*name) for name, symbol in self.inputs.items()}
        return tuple(words(self.view.prime, row, names) for row in outside)
