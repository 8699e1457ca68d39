"""Figure 3 of BASA: what is measured is one user's work, and the statements read it as the text says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.boxes import PositionKeys
from secagg_spec.experiments.basa_scalability import BASA, BY_POSITION, EXPERIMENTS, LSA, slope
from secagg_spec.experiments.costs import attribute_ring, buffered_parameters, position_parameters
from secagg_spec.experiments.experiment import Context, Result
from secagg_spec.experiments.one_user import UserOfBASecAgg, user_of_basa

pytestmark = pytest.mark.slow

[FIGURE] = EXPERIMENTS
TINY = FIGURE.presets["tiny"]


def result(cell: dict[str, object], seconds: list[float]) -> Result:
    return Result(cell, {"sizes": cell["sizes"], "seconds": seconds})


@pytest.fixture(scope="module")
def results() -> list[Result]:
    cells = FIGURE.cells(TINY)
    return [Result(cell, json.loads(json.dumps(FIGURE.run(cell, Context())))) for cell in cells]


@pytest.mark.requirement("EXP-20")
def test_each_cell_holds_the_seconds_of_each_size(results: list[Result]) -> None:
    for one in results:
        assert one.found["sizes"] == one.cell["sizes"]
        assert len(one.found["seconds"]) == len(one.cell["sizes"])
        assert all(0 < seconds < 5 for seconds in one.found["seconds"])


def test_a_user_of_basa_by_attributes_has_more_to_do_in_a_larger_buffer(results: list[Result]) -> None:
    [one] = [r for r in results if r.cell["seed"] == 0 and r.cell["axis"] == "buffer" and r.cell["protocol"] == BASA]
    assert one.found["seconds"] == sorted(one.found["seconds"])


def test_every_statement_has_a_number_of_each_seed(results: list[Result]) -> None:
    judged = FIGURE.judge(TINY, results)
    assert [len(one.numbers) for one in judged] == [3] * 5
    assert FIGURE.claims == ("BASA-FIG3A", "BASA-FIG3B")


def test_rows_have_all_that_was_measured(results: list[Result]) -> None:
    rows = list(FIGURE.rows(TINY, results))
    assert len(rows) == sum(len(one.found["seconds"]) for one in results)
    assert {row["protocol"] for row in rows} == {LSA, BASA, BY_POSITION}


def test_times_are_read_as_the_statements_say() -> None:
    seconds = {LSA: [1.0, 4.0], BASA: [2.0, 2.2], BY_POSITION: [1.0, 1.0]}
    buffers = {BASA: [1.0, 3.0, 9.0], BY_POSITION: [1.0, 1.0, 1.0]}
    cells = [cell for cell in FIGURE.cells(TINY) if cell["seed"] == 0]
    found = [result(dict(cell), (seconds if cell["axis"] == "users" else buffers)[cell["protocol"]]) for cell in cells]
    numbers = FIGURE.numbers(TINY, found)
    assert numbers["LSA grows, d = 500"] == [4.0]
    assert numbers["BASA does not grow, d = 500"] == pytest.approx([1.1])
    assert numbers["BASA below LSA, d = 500"] == pytest.approx([0.55])
    assert numbers["at most linear, d = 500"] == pytest.approx([1.0])


@given(
    st.lists(st.integers(2, 1000), min_size=3, max_size=8, unique=True).map(sorted),
    st.floats(0, 5),
    st.floats(1e-3, 5),
)
def test_the_slope_of_a_line_is_one_whatever_its_constant(sizes: list[int], constant: float, each: float) -> None:
    assert slope(sizes, [constant + each * size for size in sizes]) == pytest.approx(1, abs=1e-6)


@given(st.lists(st.integers(10, 1000), min_size=3, max_size=8, unique=True).map(sorted))
def test_a_square_is_steeper_than_a_line(sizes: list[int]) -> None:
    assert slope(sizes, [0.1 + size**2 for size in sizes]) > 1
    assert slope(sizes, [1.0] * len(sizes)) == 0


def test_the_steps_of_one_user_can_be_timed_again_and_again() -> None:
    lsa = UserOfBASecAgg(buffered_parameters(12, 5, 30))
    assert all(lsa.next().seconds() > 0 for _ in range(3))
    for ring in (PositionKeys(), attribute_ring()):
        for at in (0, 4):
            user = user_of_basa(position_parameters(12, 5, 30), ring, at)
            assert all(user.seconds() > 0 for _ in range(2))
