"""The fast reader of logs beside the one that reads line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import ParameterError
from secagg_spec.selection import logs, pairs
from secagg_spec.selection.participation import Log, Roster

number = st.one_of(
    st.integers(0, 4).map(str), st.sampled_from(["007", "1000000000", "-1", "", " 1", "a", '"2"', "1,2"])
)
line = st.one_of(st.tuples(st.integers(0, 3), st.integers(0, 5)).map(lambda pair: f"{pair[0]},{pair[1]}"),
                 st.tuples(number, number).map(",".join), st.just(""))  # fmt: skip
plain = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9 - 1) | st.integers(0, 5)), max_size=12).map(
    lambda rows: [f"{at},{user}" for at, user in rows]
)


def read(path: Path, roster: Roster | None, fast: bool) -> Log | tuple[type, str]:
    """The log, or what is wrong with it."""
    try:
        return logs.read(path, roster) if fast else logs._from_lines(path, roster)
    except ParameterError as error:
        return type(error), str(error)


@pytest.mark.requirement("MRA-24", "MRA-25", "MRA-26")
@given(st.one_of(plain, st.lists(line, max_size=8)), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_both_readers_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, known: bool
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_bytes(end.join(["round,user", *lines, ""]).encode())
    roster = Roster(4) if known else None
    fast, slow = (read(path, roster, way) for way in (True, False))
    if not isinstance(fast, Log) or not isinstance(slow, Log):
        assert fast == slow
        return
    assert (fast.roster, fast.first, fast.rounds) == (slow.roster, slow.first, slow.rounds)
    for one, other in zip(fast.segments, slow.segments, strict=True):
        assert np.array_equal(one.sets, other.sets)
        assert np.array_equal(one.rounds, other.rounds)


@pytest.mark.parametrize("text", ["0,1\n", "12,345\n0,0\n", "999999999,0\n"])
def test_plain_pairs_are_read_fast(text: str) -> None:
    found = pairs.columns(pairs.HEADER + text.encode())
    assert found is not None
    assert [f"{at},{user}" for at, user in zip(*found, strict=True)] == text.split()


@pytest.mark.parametrize(
    "text", ["", "0,1", "0,01\n", "00,1\n", "0,1\n\n", "0,\n", ",1\n", "0 1\n", "0,1,2\n", "0,1234567890\n", "0,x\n"]
)
def test_all_else_is_left_to_the_other_reader(text: str) -> None:
    assert pairs.columns(pairs.HEADER + text.encode()) is None


@pytest.mark.requirement("ERR-02")
def test_what_is_no_bytes_is_named() -> None:
    with pytest.raises(ParameterError, match=r"^data = 'str': must be bytes$"):
        pairs.columns("round,user\n0,1\n")  # type: ignore[arg-type]
