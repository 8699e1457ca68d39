"""Rounds of a Multi-RoundSecAgg session over LightSecAgg that fail and are tried again, and what its log says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg.round import MaskedUpdate, SurvivingSet
from secagg_spec.protocols.multi_round.round import check_survivors, whole_inputs
from secagg_spec.protocols.steps import Outbox
from secagg_spec.selection import batches
from tests.stories.letters import Letter, Rules
from tests.stories.lightsecagg import LightSecAggPlay
from tests.stories.rounds import Attempt, Standing


class LoggedPlay(LightSecAggPlay):
    """One story of a session whose server follows the protocol, with all users in each round.

    It announces whole batches (MRA-18), and users check that (MRA-21). The text allows the sums of the log, of failed
    rounds too (MRA-27); without the rule `failed`, only those of rounds that ended with a sum.
    """

    def __init__(self, parameters: Any, rules: Rules, random: Random, *, T: int) -> None:
        super().__init__(parameters, rules, random)
        self.selection = batches.Parameters(self.N, self.N, T)

    def _later(self, user: int, at: Standing, letter: Letter, attempt: Attempt) -> Sequence[Message] | None:
        if attempt.announced is None:
            arrived = [u for u in range(self.N) if self.sent(MaskedUpdate, u, None, at.attempt, 0)]
            whole = whole_inputs(self.selection, arrived)
            attempt.announced = whole if len(whole) >= self.parameters.U else ()
        return super()._later(user, at, letter, attempt)

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        if inbox and isinstance(inbox[0], SurvivingSet):
            check_survivors(self.selection, inbox[0].users)
        return super().step(user, at, inbox)
