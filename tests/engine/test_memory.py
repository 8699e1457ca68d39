"""The memory of the server does not grow with the number of clients."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.memory import peaks_of
from tests.engine.nodes import side_by_side


@pytest.mark.parametrize(
    ("name", "most"), [("SecAgg+", 20), ("SecAgg", 20), ("SecAgg, active", 20), ("LightSecAgg", 50)]
)
def test_a_server_holds_a_few_models(name: str, most: int) -> None:
    """In sizes of the model. LightSecAgg's server also has the shares of all masks at a time: 33 with twelve users."""
    model = np.ones(100_000, np.float32)
    workflow, mod = side_by_side(range(1, 13))[name]
    assert peaks_of(workflow, mod, model, 12)["server"] < most * model.nbytes
