"""Sessions as a server sees them: the sums are those of SecAgg, and who is in them is what was selected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import OutOfRange
from secagg_spec.experiments.sums import MODULUS, draw_log, secure_sum
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.selection.batches import Parameters, in_family


@given(st.integers(3, 5), st.integers(1, 4), st.data())
def test_a_secure_sum_is_the_plain_sum(K: int, d: int, data: st.DataObject) -> None:
    most = (MODULUS - 1) // 2 // K
    rows = st.lists(st.integers(-most, most), min_size=d, max_size=d)
    models = np.array(data.draw(st.lists(rows, min_size=K, max_size=K)), dtype=np.int64)
    assert secure_sum(models, seed=b"seed", round=3).tolist() == models.sum(axis=0).tolist()


def test_the_sum_comes_of_a_round_of_secagg(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = []
    real = secagg.run_round

    def counted(*given: Any, **named: Any) -> Any:
        rounds.append(named["round"])
        return real(*given, **named)

    monkeypatch.setattr(secagg, "run_round", counted)
    secure_sum(np.ones((3, 1), dtype=np.int64), seed=b"seed", round=7)
    assert rounds == [7]


def test_numbers_that_do_not_fit_are_refused() -> None:
    models = np.array([[1], [0], [-(2**31) // 3 - 1]], dtype=np.int64)
    with pytest.raises(OutOfRange, match="models = 715827884: must be at most 715827882 in magnitude, for sums of 3"):
        secure_sum(models, seed=b"seed", round=0)


@pytest.mark.parametrize(("p", "strategy"), [(Parameters(12, 4, 1), "random"), (Parameters(12, 6, 3), "uniform")])
def test_each_round_is_of_the_family(p: Parameters, strategy: str) -> None:
    log = draw_log(p, strategy, 30, b"seed")
    assert log.shape == (30, p.N)
    assert all(in_family(p, np.flatnonzero(row).tolist()) for row in log)
    assert len({row.tobytes() for row in log}) > 4
    assert np.array_equal(log, draw_log(p, strategy, 30, b"seed"))
    assert not np.array_equal(log, draw_log(p, strategy, 30, b"sees"))
