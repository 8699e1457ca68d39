"""SecAgg on a network that misbehaves: an exact sum or a typed failure, and no user loses both its masks."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import settings

from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import MaskedInput
from tests.protocols import test_secagg, test_secagg_active
from tests.protocols.misbehaving import Misbehaving
from tests.strategies import integers_of


class MisbehavingSecAgg(Misbehaving):
    """Rounds of SecAgg at tiny."""

    protocol: ClassVar[Any] = secagg
    parameters: ClassVar[Any] = secagg.PRESETS["tiny"]
    cases: ClassVar[Any] = test_secagg
    masked: ClassVar[type[Message]] = MaskedInput

    def judge(self, server: Any) -> None:
        """The sum is that of the survivors, who are enough."""
        base = getattr(server, "base", server)
        assert integers_of(base.aggregate) == self.case.plain_sum(base.survivors)
        assert len(base.survivors) >= self.parameters.enough


class MisbehavingActive(MisbehavingSecAgg):
    """The same in the active profile, in which public keys are altered as well."""

    protocol: ClassVar[Any] = secagg_active
    parameters: ClassVar[Any] = secagg_active.PRESETS["tiny"]
    cases: ClassVar[Any] = test_secagg_active
    keys_may_change: ClassVar[bool] = True


MisbehavingSecAgg.TestCase.settings = settings(stateful_step_count=20)
MisbehavingActive.TestCase.settings = settings(stateful_step_count=20)
TestMisbehaving = pytest.mark.requirement(
    "SAG-15", "SAG-20", "SAG-25", "SAG-28", "SAG-29", "SAG-30", "MSG-03", "MSG-04", "ERR-01"
)(MisbehavingSecAgg.TestCase)
TestMisbehavingActive = pytest.mark.requirement("SAG-15", "SAG-25", "SAG-54", "SAG-60", "SAG-66", "ERR-01")(
    MisbehavingActive.TestCase
)
