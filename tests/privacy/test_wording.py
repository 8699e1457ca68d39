"""Words and numbers in the reports on privacy: what is shown, and what is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import ParameterError
from secagg_spec.privacy import wording

SETS = st.sets(st.integers(0, 40)).map(sorted)


def numbers_of(text: str) -> list[int]:
    """The numbers that a list in words names."""
    found: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition(" to ")
        found += range(int(first), int(last or first) + 1)
    return found


@given(SETS.filter(bool))
def test_runs_name_each_number_once_and_join_three_and_more(values: list[int]) -> None:
    text = wording.runs(values, most=99)
    assert numbers_of(text) == values
    parts = [numbers_of(part) for part in text.split(", ")]
    assert all(len(part) == 1 or len(part) > 2 for part in parts)
    joined = zip(parts, parts[1:], parts[2:], strict=False)
    assert not any(a[-1] + 1 == b[0] and b[-1] + 1 == c[0] for a, b, c in joined)
    assert all(a[-1] + 1 < b[0] for a, b in pairwise(parts) if len(a) + len(b) > 2)


@given(SETS, st.integers(1, 12))
def test_long_lists_are_cut_and_say_how_many_there_are(values: list[int], most: int) -> None:
    whole = wording.runs(values, most=99).split(", ")
    more = f", … ({len(values)} in all)" if len(whole) > most else ""
    assert wording.runs(values, most) == ", ".join(whole[:most]) + more


def test_twelve_words_are_shown_and_four_of_elements() -> None:
    assert wording.runs(range(0, 24, 2)) == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22"
    assert wording.runs(range(0, 26, 2)).endswith(", 20, 22, … (13 in all)")
    assert wording.elements((0, 2, 4, 6)) == "elements 0, 2, 4, 6"
    assert wording.elements((0, 2, 4, 6, 8)) == "elements 0, 2, 4, 6, … (5 in all)"


def test_one_and_several() -> None:
    assert [wording.dimensions(count) for count in (0, 1, 2)] == ["0 dimensions", "1 dimension", "2 dimensions"]
    assert [wording.elements((3,)), wording.elements((3, 5))] == ["element 3", "elements 3, 5"]
    assert [wording.users(()), wording.users((3,)), wording.users((3, 5))] == [
        "the server alone",
        "user 3",
        "users 3, 5",
    ]
    assert [wording.size(1, count) for count in (0, 1, 2, 3)] == [
        "0 users, T = 1",
        "1 user, T = 1",
        "T + 1 = 2 users",
        "T + 2 = 3 users",
    ]
    assert wording.size(0, 1) == "T + 1 = 1 user"


@given(st.text("ab", max_size=20), st.integers(2, 20))
def test_a_text_is_cut_to_a_width(text: str, width: int) -> None:
    if len(text) <= width:
        assert wording.clipped(text, width) == text
    else:
        assert wording.clipped(text, width) == text[: width - 2] + " …"
        assert len(wording.clipped(text, width)) == width


@given(st.lists(st.text("x", min_size=1, max_size=30), min_size=1, max_size=8))
def test_a_line_holds_as_many_functionals_as_fit(functionals: list[str]) -> None:
    fits = [count for count in range(1, len(functionals) + 1) if len("; ".join(functionals[:count])) <= wording.LINE]
    rest = len(functionals) - max(fits)
    assert wording.first(functionals) == "; ".join(functionals[: max(fits)]) + (f"; and {rest} more" if rest else "")


def test_functionals_that_fill_a_line_are_shown() -> None:
    """Two of 29 letters and what stands between are 60."""
    assert wording.first(["x" * 29, "y" * 29]) == "x" * 29 + "; " + "y" * 29
    assert wording.first(["x" * 29, "y" * 30]) == "x" * 29 + "; and 1 more"
    assert wording.first(["x" * 61]) == "x" * 58 + " …"


@pytest.mark.parametrize("count", [1, 4, 5, 7])
def test_four_functionals_are_listed(count: int) -> None:
    names = [f"x_{number}" for number in range(count)]
    more = [f"    and {count - 4} more"] if count > 4 else []
    assert wording.listed(names) == [f"    {name}" for name in names[:4]] + more
    assert wording.listed(["x" * 111]) == ["    " + "x" * 108 + " …"]


def test_what_is_in_clear() -> None:
    """Sub-masks have four elements, and the last one is padded beyond d = 7."""
    assert "holds sub-mask 0, elements 0 to 3, of every mask" in wording.in_clear(2, 9, [5, 0], 4, 7)
    assert "user 2, whose point is 9, holds sub-mask 1, elements 4 to 6, of" in wording.in_clear(2, 9, [0, 1], 4, 7)
    assert "holds a combination of the sub-masks 0, 2 of every mask" in wording.in_clear(2, 9, [1, 0, 3], 4, 12)


@given(st.lists(st.integers(0, 10**20 - 1)))
def test_numbers_are_read(values: list[int]) -> None:
    assert wording.numbers("--order", " , ".join(map(str, values))) == tuple(values)


def test_numbers_have_20_digits_at_most() -> None:
    assert wording.numbers("--order", "9" * 20) == (10**20 - 1,)
    with pytest.raises(ParameterError, match="whole numbers with commas between"):
        wording.numbers("--order", "9" * 21)


def test_an_option_that_is_no_text_is_refused() -> None:
    none: Any = None
    with pytest.raises(ParameterError, match=r"^--users = 'NoneType': must be of the class str$"):
        wording.numbers("--users", none)
