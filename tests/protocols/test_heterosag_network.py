"""HeteroSAg on a network that misbehaves: exact sums of cells with enough survivors, or a typed failure."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import settings

from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.round import MaskedSegments
from tests.protocols import heterogeneous, test_secagg
from tests.protocols.misbehaving import Misbehaving
from tests.strategies import integers_of


class MisbehavingSegments(Misbehaving):
    """Rounds of two groups of four, of which one may drop out as a whole, and some segments may be altered."""

    protocol: ClassVar[Any] = heterosag
    parameters: ClassVar[Any] = replace(heterogeneous.SMALL, levels=(3, 4))
    cases: ClassVar[Any] = SimpleNamespace(case_of=heterogeneous.case_of, stage=test_secagg.stage)
    masked: ClassVar[type[Message]] = MaskedSegments

    def may_change(self, message: Message, name: str) -> bool:
        """Bytes may be altered, but those whose alteration nobody can see: keys, and well-formed masked segments."""
        return super().may_change(message, name) and not isinstance(message, MaskedSegments)

    def judge(self, server: Any) -> None:
        """Each sum is that of the survivors of its cell, who are none or enough."""
        least, survivors = self.parameters.T + 2, server.base.survivors
        found = [(each.cell, each.survivors, integers_of(each.total)) for each in server.sums]
        assert found == self.case.plain_sums(survivors)
        assert len(survivors) >= self.parameters.enough
        assert all(len(present) >= least for _, present, _ in found)

    def teardown(self) -> None:
        """Go on to the end; then each user remembers what it answered for, and nothing else."""
        super().teardown()
        for user in range(self.parameters.N) if hasattr(self, "network") else ():
            answered = [e for e in self.network.transcript if (e.party, e.step.phase) == (user, "unmasking")]
            requests = [set(message.survivors) for event in answered for message in event.received]  # type: ignore[attr-defined]
            assert [set(members) for members in self.network.states[user].past] == requests


MisbehavingSegments.TestCase.settings = settings(stateful_step_count=20)
TestMisbehavingSegments = pytest.mark.requirement("HSA-16", "HSA-17", "HSA-18", "HSA-19", "HSA-21", "HSA-27", "ERR-01")(
    MisbehavingSegments.TestCase
)
