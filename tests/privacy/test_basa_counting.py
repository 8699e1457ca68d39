"""What an epoch of BASA tells, by counting: against what can be seen by eye, and against the algebra."""

from __future__ import annotations

import pytest

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.errors import ParameterError
from secagg_spec.privacy.basa import (
    ACCEPTED,
    GONE,
    LATE,
    PAPER,
    SETTLE,
    VOID,
    Epoch,
    Holder,
    Situation,
    every_coalition,
    every_pattern,
)
from secagg_spec.privacy.basa_counting import counted

TWO = Situation(2, (Holder(0, ACCEPTED), Holder(1, ACCEPTED)))


@pytest.mark.parametrize(
    ("coalition", "sums", "expected"),
    [
        ((), [{0: 1, 1: 1}], (True, True)),
        ((), [], (False, True)),
        ((), [{0: 1}], (False, False)),
        ((), [{0: 1}, {1: 1}], (True, False)),
        ((0,), [], (False, True)),
        ((0,), [{1: 1}], (True, True)),
        ((0, 1), [], (True, True)),
    ],
)
def test_two_updates_show_their_sum(
    coalition: tuple[int, ...], sums: list[dict[int, int]], expected: tuple[bool, bool]
) -> None:
    for R in (2, 3):
        assert counted(R, VOID, TWO, coalition, sums) == expected


def test_signs_count() -> None:
    again = Situation(2, (Holder(0, ACCEPTED), Holder(1, LATE), Holder(1, ACCEPTED)))
    assert counted(3, PAPER, again, (), [{0: 1, 2: 1}, {1: 1, 2: -1}]) == (True, True)
    assert counted(3, PAPER, again, (), [{0: 1, 2: 1}, {1: 1, 2: 1}]) == (False, False)


def test_nothing_is_told_of_nothing() -> None:
    assert counted(3, VOID, Situation(2, (Holder(0, GONE),), closed=False), (), []) == (True, True)


def test_counting_and_algebra_agree_on_what_is_told() -> None:
    for situation in every_pattern(2):
        epoch = Epoch(Ring(16), SETTLE, situation)
        for coalition in every_coalition(range(2)):
            honest = epoch.contributors(coalition)
            sums = [dict.fromkeys(honest, 1)] if honest else []
            found = counted(3, SETTLE, situation, coalition, sums)
            assert found.no_more == epoch.decide(coalition).private
            known = not honest or epoch.view(coalition).decide(epoch.total(honest)).withheld == 1
            assert found.no_less == known


@pytest.mark.parametrize(
    ("R", "sums", "said"),
    [
        (0, [], r"R = 0: must be an integer in \[2, 1048576\]"),
        (255, [], r"R = 255: must be such that R\^n, for n = 3 updates and masks, is at most 1048576"),
        (2, [{0: True}], "sums = 'bool': must be integers as coefficients"),
        (2, [{0: 1}] * 21, "sums = '21 combinations': must be at most 1048576 values of them modulo R = 2"),
        (2, [{0: 1, 7: 1}], r"sums = 7: must be one of the users that uploaded, \(0, 1\)"),
    ],
)
def test_what_cannot_be_counted_is_refused(R: int, sums: list[dict[int, int]], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        counted(R, VOID, TWO, (), sums)


def test_large_coefficients_and_colluders_that_there_are_not() -> None:
    assert counted(3, VOID, TWO, (), [{0: 3**60 + 1, 1: 1 - 3**60}]) == (True, True)
    with pytest.raises(ParameterError, match=r"^coalition = 2: must be a user in \[0, 2\)$"):
        counted(2, VOID, TWO, (2,), [])
