"""The checks of arguments, and the words in which they refuse."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import errors, events
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.levels import Range
from secagg_spec.errors import DuplicateUser, LengthMismatch, NonCanonical, OutOfRange, ParameterError, UnknownUser
from secagg_spec.learning import attacks, clock, problems
from secagg_spec.privacy import reconstruction
from secagg_spec.protocols.codec import Unsigned
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.metrics import expected_cardinality
from tests.strategies import vector

NO_INTEGERS = [None, True, np.bool_(True), 1.0, np.float64(1), "1", b"1", [1], np.array(1), float("nan")]


@pytest.mark.requirement("EXP-29")
def test_a_name_is_one_of_the_names() -> None:
    assert validate.one_of("name", "two", ["one", "two"]) == "two"
    with pytest.raises(ParameterError, match=r"^name = 'TWOO': must be one of one, two; two is close$"):
        validate.one_of("name", "TWOO", ["one", "two"])
    wrong: Any
    for wrong in (np.array(["one", "two"]), 10**5000, None, ["one"], b"one"):
        with pytest.raises(ParameterError, match=r"^name = .*: must be one of one, two$"):
            validate.one_of("name", wrong, ["one", "two"])


def test_a_probability_is_a_fraction_from_0_to_1() -> None:
    for value in (Fraction(0), Fraction(1, 10**400), Fraction(1)):
        assert validate.probability("p", value) is value
    for wrong in (Fraction(-1, 10**400), Fraction(3, 2), Fraction(10**5000, 3), 0.5, 1, True, "1/2", None):
        with pytest.raises(ParameterError, match=r"^p = .*: must be a fraction in \[0, 1\]$"):
            validate.probability("p", wrong)


@pytest.mark.requirement("ERR-02")
@given(st.integers(), st.integers(-5, 5), st.none() | st.integers(-5, 5))
def test_an_integer_is_taken_exactly_inside_its_bounds(value: int, low: int, high: int | None) -> None:
    if value >= low and (high is None or value <= high):
        assert validate.integer("count", value, low, high) == value
    else:
        with pytest.raises(ParameterError) as caught:
            validate.integer("count", value, low, high)
        assert (caught.value.parameter, caught.value.value) == ("count", value)
        assert str(low) in str(caught.value)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_what_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="count"):
        validate.integer("count", value, 0, 9)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.int64])
def test_integers_of_numpy_become_int(kind: type[Any]) -> None:
    assert type(validate.integer("count", kind(3), 0, 9)) is int


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    ("value", "number"),
    [
        (np.int8(3), 3),
        (3, 3),
        (np.float16(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.longdouble(0.1), 0.1),
        (10**400,) * 2,
    ],
)
def test_numbers_of_numpy_become_numbers_of_python(value: Any, number: float) -> None:
    found, kept = validate.number(value), validate.plain([value])[0]
    assert found == kept == number
    assert type(found) is type(kept) is type(number)
    assert validate.finite(value) == (number < 10**400)


NO_NUMBERS = [True, np.bool_(True), np.timedelta64(1, "s"), "1", None, 1j, np.datetime64(1, "s"), Fraction(1)]
LONGER = [np.longdouble("1e4000"), np.longdouble(1) / 3] if np.finfo(np.longdouble).bits > 64 else []
"""Numbers that binary64 does not hold, where numpy has longer ones."""


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("value", [*NO_NUMBERS, *LONGER, np.float32("nan"), -np.longdouble("inf")], ids=repr)
def test_what_is_no_number_or_not_finite_is_refused(value: Any) -> None:
    assert not validate.finite(value)
    assert (validate.number(value) is None) == (repr(value) in map(repr, NO_NUMBERS + LONGER))
    assert repr(validate.plain(value)) == repr(value) or isinstance(value, np.floating)


@pytest.mark.requirement("ERR-02")
def test_no_span_of_time_is_an_integer_of_a_message() -> None:
    assert Unsigned(2).write("round", np.int64(3)) == b"\x03\0"
    for wrong in (np.timedelta64(3, "s"), True, np.bool_(True), 3.0):
        with pytest.raises(OutOfRange, match=r"^round = .*: must be an integer in \[0, 2\*\*16\)$"):
            Unsigned(2).write("round", wrong)


POINT = np.ones((1, 1), dtype=bool)
TAKEN: dict[str, Callable[[Any], object]] = {
    "range": lambda number: Range(-1, number).high,
    "time": lambda number: events.Event(number, "upload", 0).time,
    "delays": lambda number: events.jobs([[number]]).events[1].time,
    "training": lambda number: clock.Work(number, 1).training,
    "visits": lambda number: clock.Costs(visits=(number,)).visits[0],
    "decay": lambda number: problems.build("regression", 2, 2, number).decay,
    "scale": lambda number: attacks.sign_flip(np.ones(1), number).tolist()[0],
    "rates": lambda number: expected_cardinality(Parameters(4, 2, 1), number),
    "delta": lambda number: reconstruction.drift_bound(POINT, ((0, Fraction(1)),), number),
}


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", TAKEN)
def test_a_number_is_taken_of_any_type_but_no_truth_value(name: str) -> None:
    for number in (np.int64(1), np.float32(1), np.longdouble(1)):
        found = TAKEN[name](number)
        assert (found, type(found) in (int, float, Fraction)) == (TAKEN[name](1), True)
    for wrong in (True, np.bool_(True), *LONGER):
        with pytest.raises(ParameterError, match=name):
            TAKEN[name](wrong)


@pytest.mark.requirement("ERR-02")
def test_a_rate_of_fedbuff_is_a_float_of_any_type() -> None:
    assert fedbuff.moved(np.zeros(1), np.ones(1), np.float32(0.5)).tolist() == [-0.5]  # type: ignore[arg-type]
    assert type(replace(fedbuff.PRESETS["tiny"], eta_g=np.float32(0.5)).eta_g) is float  # type: ignore[arg-type]
    for wrong in (1, True, *LONGER):
        with pytest.raises(ParameterError, match=r"^eta_g = "):
            fedbuff.moved(np.zeros(1), np.ones(1), wrong)  # type: ignore[arg-type]


@pytest.mark.requirement("MOD-06")
@given(st.integers(2, 2**32), st.integers(0, 3), st.integers(0, 2**64 - 1))
def test_an_element_is_taken_exactly_below_the_modulus(modulus: int, at: int, value: int) -> None:
    array = np.zeros(4, dtype=np.uint64)
    array[at] = value
    if value < modulus:
        assert validate.elements("a", array, modulus, (4,)) is array
    else:
        with pytest.raises(NonCanonical) as caught:
            validate.elements("a", array, modulus, (4,))
        assert (caught.value.parameter, caught.value.value) == (f"a[{at}]", value)
        assert str(modulus) in str(caught.value)


@pytest.mark.requirement("MOD-06", "ERR-02")
@pytest.mark.parametrize("value", [None, 1, [1], (1,), np.uint64(1), np.ones(1), np.ones(1, dtype=np.int64)], ids=repr)
def test_what_is_no_array_of_elements_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="uint64"):
        validate.elements("a", value, 7, (1,))


@pytest.mark.requirement("MOD-07")
@given(st.lists(st.integers(0, 3), max_size=3), st.lists(st.none() | st.integers(0, 3), max_size=3))
def test_a_shape_fits_axis_by_axis(shape: list[int], wanted: list[int | None]) -> None:
    fits = len(shape) == len(wanted) and all(w is None or w == s for w, s in zip(wanted, shape, strict=True))
    array = np.zeros(shape, dtype=np.uint64)
    if fits:
        validate.array_shape("a", array, tuple(wanted))
    else:
        with pytest.raises(LengthMismatch, match=r"a\.shape"):
            validate.array_shape("a", array, tuple(wanted))


@pytest.mark.requirement("QNT-01")
@given(st.integers(0, 3), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_reals_are_finite(at: int, bad: float) -> None:
    array = np.zeros(4)
    assert validate.reals("x", array, (None,)) is array
    array[at] = bad
    with pytest.raises(OutOfRange, match=rf"x\[{at}\]"):
        validate.reals("x", array, (None,))


@pytest.mark.requirement("QNT-01", "ERR-02")
@pytest.mark.parametrize("value", [None, 1.0, [1.0], np.ones(1, dtype=np.float32), np.ones(1, dtype=int)], ids=repr)
def test_what_is_no_array_of_reals_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="float64"):
        validate.reals("x", value, (1,))


@pytest.mark.requirement("MDS-08")
@given(st.lists(st.integers(-2, 7), max_size=6))
def test_users_are_distinct_and_on_the_roster(users: list[int]) -> None:
    if any(not 0 <= user < 5 for user in users):
        expected: type[ParameterError] = UnknownUser
    elif len(set(users)) < len(users):
        expected = DuplicateUser
    else:
        assert validate.users("users", users, 5) == tuple(users)
        return
    with pytest.raises((expected, DuplicateUser), match="users"):
        validate.users("users", users, 5)


@pytest.mark.requirement("MDS-08", "ERR-02")
@pytest.mark.parametrize("value", [None, 3, "01", b"01", {0, 1}, iter([0]), [0.0], [True], ["0"], [None], [[0]]])
def test_what_are_no_users_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="users"):
        validate.users("users", value, 5)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("value", [0.0, True, "0", None])
def test_a_user_that_is_no_integer_is_refused_as_such(value: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^user = '{type(value).__name__}': must be an integer"):
        validate.users("user", (value,), 5)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("value", [None, 5, "ab", b"ab", np.array(3)])
def test_what_is_no_collection_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^users = .*must be a list, set or other collection of numbers$"):
        validate.collection("users", value, "numbers")
    assert validate.collection("users", {3}, "numbers") == {3}


@pytest.mark.requirement("ERR-01")
def test_a_frozen_copy_is_read_only_and_apart() -> None:
    array = vector([1, 2, 3, 4]).reshape(2, 2).T
    copy = validate.frozen(array)
    array[0, 0] = 9
    assert copy.tolist() == [[1, 3], [2, 4]]
    assert copy.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        copy[0, 0] = 5


@pytest.mark.parametrize(("value", "kind"), [(b"x", str), (None, int), (np.zeros(1), bytes)])
def test_what_is_of_another_class_is_refused_by_name(value: Any, kind: type[Any]) -> None:
    with pytest.raises(ParameterError, match=rf"^key = .*: must be of the class {kind.__name__}$"):
        validate.instance("key", value, kind)
    assert validate.instance("key", kind(), kind) == kind()


@pytest.mark.parametrize(
    ("low", "high", "text"), [(9, 8, "at least 9 and at most 8: beside the other arguments no"), (8, 8, "in [8, 8]")]
)
def test_no_range_is_named_that_holds_nothing(low: int, high: int, text: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(text)):
        validate.integer("K", 5, low, high)


# ------------------------------------------------------------------------------------------------- errors themselves

RAISED = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.requirement("ERR-01")
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("kind", RAISED)
def test_an_error_is_copied_and_reaches_other_processes(
    kind: type[Exception], again: Callable[[Exception], Exception]
) -> None:
    error = kind("N", 1, "2 or more") if issubclass(kind, ParameterError) else kind("why")
    if issubclass(kind, errors.ProtocolError):
        error = kind("why", (3, 4))
    error.add_note("where")
    found = again(error)
    assert (type(found), str(found), vars(found)) == (kind, str(error), vars(error))
