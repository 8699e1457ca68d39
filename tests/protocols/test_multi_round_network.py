"""Multi-RoundSecAgg on a network that misbehaves: sums over whole batches, or a typed failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.multi_round.round import Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Network
from secagg_spec.selection import batches
from tests.protocols import chosen
from tests.protocols.misbehaving import Misbehaving
from tests.strategies import integers_of

ROUND = secagg.Parameters(R=97, N=6, D=3, T=1, t=3, k=5, d=2)
SESSION = Parameters(batches.Parameters(N=9, K=6, T=3), ROUND)


class MisbehavingBatches(Misbehaving):
    """Rounds of SecAgg over two batches of three."""

    protocol: ClassVar[Any] = SimpleNamespace(PHASES=SESSION.base.phases, TABLE=SESSION.base.table)
    parameters: ClassVar[Any] = ROUND
    cases: ClassVar[Any] = SimpleNamespace(
        case_of=lambda parameters, seed: chosen.case_of(SESSION, seed), stage=lambda case, rows: case.stage(rows)
    )
    masked: ClassVar[type[Message]] = secagg.MaskedInput

    def judge(self, server: Any) -> None:
        """The sum is that of whole batches."""
        survivors = {self.case.chosen.index(user) for user in server.survivors}
        assert survivors
        assert chosen.whole(SESSION.selection, survivors) == survivors
        assert integers_of(server.aggregate) == self.case.plain_sum(survivors)

    @invariant()
    def nobody_answers_for_part_of_a_batch(self) -> None:
        """Whoever releases anything does it for a union of batches, whatever the server asked."""
        for event in getattr(self, "network", Network((), {})).transcript:
            for message in event.sent:
                if isinstance(message, secagg.UnmaskShares):
                    assert chosen.whole(SESSION.selection, message.survivors) == set(message.survivors)

    def asked(self) -> list[int]:
        """The users for whom a request waits."""
        boxes = getattr(self, "network", Network((), {})).waiting.items()
        return [user for user, box in boxes if any(isinstance(message, secagg.UnmaskRequest) for message in box)]

    @rule(data=st.data())
    @precondition(lambda self: self.asked())
    def lie(self, data: st.DataObject) -> None:
        """The server asks some users for less, or for more, and one of them answers at once."""
        self.equivocate(data)
        self.user_step(data.draw(st.sampled_from(self.asked())))

    def moved(self, data: st.DataObject) -> set[int]:
        """The server lies about a user, or about a batch."""
        return data.draw(st.sampled_from([{0, 1, 2}, {3, 4, 5}])) if data.draw(st.booleans()) else super().moved(data)


MisbehavingBatches.TestCase.settings = settings(stateful_step_count=20)
TestMisbehavingBatches = pytest.mark.requirement("MRA-18", "MRA-21", "MRA-23", "ERR-01")(MisbehavingBatches.TestCase)
