"""Attacks of Byzantine users: what they make of updates and labels, and what they refuse."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from secagg_spec.arithmetic.levels import Range
from secagg_spec.crypto.entropy import SeededSource, draw_rounding
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning import attacks

NUMBERS = st.floats(-1e6, 1e6)
VECTORS = arrays(np.float64, st.integers(0, 20), elements=NUMBERS)
CLASSES = st.integers(2, 300)
KINDS = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64]


@given(update=VECTORS, data=st.data())
def test_gaussian_sends_the_noise_and_nothing_of_the_update(update: Any, data: st.DataObject) -> None:
    noise = data.draw(arrays(np.float64, update.shape, elements=NUMBERS))
    sent = attacks.gaussian(update, noise)
    assert sent.tolist() == noise.tolist() == attacks.gaussian(np.zeros_like(update), noise).tolist()
    assert sent is not noise
    with pytest.raises(LengthMismatch):
        attacks.gaussian(update, np.zeros(len(update) + 1))


@given(update=VECTORS, scale=st.floats(1e-3, 1e3))
def test_sign_flip_turns_each_number_round_and_stretches_it(update: Any, scale: float) -> None:
    flipped = attacks.sign_flip(update, scale)
    assert [-scale * x for x in update.tolist()] == flipped.tolist()
    assert (np.sign(flipped) == -np.sign(update)).all()


def test_the_strength_of_the_paper_is_five() -> None:
    assert attacks.sign_flip(np.array([1.0, -2.0])).tolist() == [-5.0, 10.0]
    assert attacks.GAUSSIAN_DEVIATION == 5.0


@given(data=st.data(), classes=CLASSES, kind=st.sampled_from(KINDS))
def test_label_flip_is_a_bijection_of_the_classes_that_undoes_itself(
    data: st.DataObject, classes: int, kind: type[np.integer[Any]]
) -> None:
    shape, most = st.sampled_from([(0,), (7,), (2, 3)]), min(classes - 1, int(np.iinfo(kind).max))
    labels = data.draw(arrays(kind, shape, elements=st.integers(0, most)))
    flipped = attacks.label_flip(labels, classes)
    assert flipped.dtype == np.int64
    assert flipped.shape == labels.shape
    assert flipped.ravel().tolist() == [classes - 1 - int(label) for label in labels.ravel()]
    assert (attacks.label_flip(flipped, classes) == labels).all()


def test_label_flip_gives_classes_where_subtracting_nine_does_not() -> None:
    digits = np.arange(10)
    assert attacks.label_flip(digits, 10).tolist() == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert sum(0 <= label - 9 < 10 for label in digits.tolist()) == 1


def test_label_flip_takes_more_classes_than_the_kind_of_its_labels_holds() -> None:
    assert attacks.label_flip(np.array([120, 0], dtype=np.int8), 300).tolist() == [179, 299]
    assert attacks.label_flip(np.array([250, 3], dtype=np.uint8), 300).tolist() == [49, 296]


def test_normals_have_the_distribution_that_they_are_named_after() -> None:
    draws = draw_rounding(SeededSource(b"attacks", "normals"), 40_000).reshape(2, -1)
    found = np.sort(attacks.normals(draws, 5.0))
    expected = NormalDist(0, 5)
    apart = max(abs(expected.cdf(x) - (at + 0.5) / len(found)) for at, x in enumerate(found.tolist()))
    assert apart < 1.95 / math.sqrt(len(found))  # Kolmogorov and Smirnov, one run in a thousand is beyond


@given(st.data())
def test_normals_are_finite_for_all_draws(data: st.DataObject) -> None:
    below = st.floats(0, 1, exclude_max=True)
    draws = data.draw(arrays(np.float64, st.tuples(st.just(2), st.integers(0, 5)), elements=below))
    found = attacks.normals(draws)
    assert found.shape == (draws.shape[1],)
    assert np.isfinite(found).all()


@given(update=arrays(np.float64, 6, elements=st.floats(-1, 1)), scale=st.floats(1, 100))
def test_what_is_clipped_after_an_attack_is_in_range(update: Any, scale: float) -> None:
    unit = Range(-1.0, 1.0)
    assert np.abs(unit.clip(attacks.sign_flip(update, scale))).max() <= 1


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "5", True, None, 10**400])
def test_strengths_are_finite_and_above_zero(scale: Any) -> None:
    with pytest.raises(ParameterError, match=r"scale = .*: must be a finite number above 0"):
        attacks.sign_flip(np.ones(2), scale)
    with pytest.raises(ParameterError, match="deviation"):
        attacks.normals(np.zeros((2, 2)), scale)


@pytest.mark.parametrize("bad", [np.array([math.nan]), np.array([math.inf]), np.array([1]), [1.0], None])
def test_updates_are_finite_numbers(bad: Any) -> None:
    with pytest.raises(ParameterError, match="update"):
        attacks.gaussian(bad, np.zeros(1))
    with pytest.raises(ParameterError, match="update"):
        attacks.sign_flip(bad)
    with pytest.raises(ParameterError, match="noise"):
        attacks.gaussian(np.zeros(1), bad)


def test_a_flip_that_leaves_binary64_is_refused() -> None:
    with pytest.raises(OutOfRange, match="scale"):
        attacks.sign_flip(np.array([1e300]), 1e10)


@pytest.mark.parametrize("labels", [[1], np.array([1.0]), np.array([True]), None, "3", np.zeros(1, "m8[D]")])
def test_labels_are_integers(labels: Any) -> None:
    with pytest.raises(ParameterError, match="labels"):
        attacks.label_flip(labels, 10)


@pytest.mark.parametrize(("label", "classes"), [(-1, 10), (10, 10), (2, 2)])
def test_a_label_that_is_no_class_is_refused(label: int, classes: int) -> None:
    with pytest.raises(OutOfRange, match=rf"labels = {label}: must be in \[0, {classes}\)"):
        attacks.label_flip(np.array([0, label]), classes)
    with pytest.raises(ParameterError, match="classes"):
        attacks.label_flip(np.array([0]), 1)


@pytest.mark.parametrize("draw", [-0.1, 1.0])
def test_draws_are_in_the_unit_interval(draw: float) -> None:
    with pytest.raises(OutOfRange, match="draws"):
        attacks.normals(np.array([[draw], [0.5]]))


def test_no_normal_number_is_infinite() -> None:
    with pytest.raises(OutOfRange, match=r"^deviation = 1.7e\+308: must be such that its product with each normal"):
        attacks.normals(np.array([[0.99], [0.0]]), 1.7e308)
