"""Partitions: each sample has one user, and each of the four is the one of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning import partitions
from secagg_spec.learning.datasets import Dataset, Samples

CLASSES = 4


def dataset(labels: list[int], writers: list[int] | None = None) -> Dataset:
    y = np.array(labels, np.int64)
    samples = Samples(np.zeros((len(y), 1, 2, 2), np.float32), y)
    return Dataset("some", "Some", CLASSES, samples, samples, None if writers is None else np.array(writers, np.int64))


def alpha_of(kind: str) -> float | None:
    return 0.7 if kind == "dirichlet" else None


LISTS = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(5, 9)), min_size=1, max_size=40)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.requirement("EXP-03", "EXP-04")
@pytest.mark.parametrize("kind", partitions.PARTITIONS)
@given(LISTS, st.integers(1, 12), SEEDS)
def test_each_sample_has_one_user_and_each_user_one_sample_or_more(
    kind: str, pairs: list[tuple[int, int]], users: int, seed: int
) -> None:
    data = dataset([label for label, _ in pairs], [writer for _, writer in pairs])
    try:
        parts = partitions.split(data, kind, users, np.random.default_rng(seed), alpha_of(kind))
    except ParameterError:
        most = len({writer for _, writer in pairs}) if kind == "writers" else len(pairs)
        assert kind == "dirichlet" or users > most
        return
    assert len(parts) == users
    assert all(part.size for part in parts)
    held = np.concatenate(parts)
    assert len(set(held.tolist())) == len(held)
    first = sorted({writer for _, writer in pairs})[:users]
    wanted = [at for at, (_, writer) in enumerate(pairs) if kind != "writers" or writer in first]
    assert sorted(held.tolist()) == wanted
    assert partitions.left_out(data, parts) == len(pairs) - len(wanted)


@pytest.mark.requirement("EXP-05")
@given(LISTS, st.integers(1, 12), SEEDS)
def test_parts_are_as_equal_as_they_can_be_and_the_longer_ones_first(
    pairs: list[tuple[int, int]], users: int, seed: int
) -> None:
    assume(users <= len(pairs))
    data = dataset([label for label, _ in pairs])
    whole, more = divmod(len(pairs), users)
    for kind in ("iid", "by-class"):
        parts = partitions.split(data, kind, users, np.random.default_rng(seed))
        assert [len(part) for part in parts] == [whole + 1] * more + [whole] * (users - more)


@pytest.mark.requirement("EXP-05")
@given(LISTS, SEEDS)
def test_the_order_of_iid_is_random_and_that_by_class_is_sorted(pairs: list[tuple[int, int]], seed: int) -> None:
    labels = [label for label, _ in pairs]
    order = np.concatenate(partitions.split(dataset(labels), "iid", 1, np.random.default_rng(seed)))
    assert np.array_equal(order, np.random.default_rng(seed).permutation(len(labels)))
    order = np.concatenate(partitions.split(dataset(labels), "by-class", 1, np.random.default_rng(seed)))
    assert order.tolist() == sorted(range(len(labels)), key=lambda at: (labels[at], at))


@pytest.mark.requirement("EXP-05")
def test_each_sample_comes_to_each_user_equally_often_with_iid() -> None:
    data, counts = dataset([0, 0, 0, 1, 1, 2]), np.zeros((3, 6))
    rng = np.random.default_rng(1)
    for _ in range(3000):
        for user, part in enumerate(partitions.split(data, "iid", 3, rng)):
            counts[user, part] += 1
    assert np.abs(counts / 3000 - 1 / 3).max() < 0.04


@pytest.mark.requirement("EXP-05")
@given(
    st.lists(st.integers(0, CLASSES - 1), min_size=30, max_size=60),
    st.integers(1, 5),
    st.sampled_from([0.7, 10.0]),
    SEEDS,
)
def test_classes_are_cut_at_the_rounded_sums_of_shares(labels: list[int], users: int, alpha: float, seed: int) -> None:
    try:
        parts = partitions.split(dataset(labels), "dirichlet", users, np.random.default_rng(seed), alpha)
    except ParameterError:
        assume(False)
    rng, right = np.random.default_rng(seed), [list[int]() for _ in range(users)]
    for label in range(CLASSES):
        members = [at for at, other in enumerate(labels) if other == label]
        shares = rng.dirichlet([alpha] * users).tolist()
        order = [members[place] for place in rng.permutation(len(members))]
        ends = [0, *(round(sum(shares[: user + 1]) * len(members)) for user in range(users - 1)), len(members)]
        for user in range(users):
            right[user] += order[ends[user] : ends[user + 1]]
    assert [part.tolist() for part in parts] == right


@pytest.mark.requirement("EXP-05")
@pytest.mark.parametrize("alpha", [0.7, 1.0, 10.0])
def test_shares_have_the_mean_and_the_variance_of_dirichlet(alpha: float) -> None:
    users, size, rng = 4, 1000, np.random.default_rng(2)
    data = dataset([label for label in range(CLASSES) for _ in range(size)])
    shares = np.array(
        [
            partitions.label_counts(data.train.y, partitions.split(data, "dirichlet", users, rng, alpha), CLASSES)
            / size
            for _ in range(400)
        ]
    ).reshape(-1, users, CLASSES)
    mean, variance = 1 / users, (1 / users) * (1 - 1 / users) / (users * alpha + 1)
    assert np.allclose(shares.mean(axis=0), mean, atol=5 * (variance / 400) ** 0.5)
    assert np.allclose(shares.var(axis=(0, 2)), variance, rtol=0.2)


@pytest.mark.requirement("EXP-05")
def test_users_are_writers_by_ascending_number() -> None:
    data = dataset([0, 1, 2, 3, 0], [9, 3, 9, 700, 3])
    parts = partitions.split(data, "writers", 2, np.random.default_rng(0))
    assert [part.tolist() for part in parts] == [[1, 4], [0, 2]]
    assert partitions.left_out(data, parts) == 1


@pytest.mark.requirement("EXP-04")
@pytest.mark.parametrize(("kind", "users", "user"), [("iid", 6, 5), ("by-class", 7, 5), ("writers", 4, 3)])
def test_a_user_without_samples_is_named(kind: str, users: int, user: int) -> None:
    data = dataset([0, 1, 2, 3, 0], [9, 3, 9, 700, 3])
    with pytest.raises(ParameterError, match=f"^users = {users}: .*{kind}: user {user} would hold no sample"):
        partitions.split(data, kind, users, np.random.default_rng(0))


@pytest.mark.requirement("EXP-04")
def test_a_user_without_a_share_is_named() -> None:
    with pytest.raises(ParameterError, match=r"dirichlet: user \d+ would hold no sample"):
        partitions.split(dataset([0] * 20), "dirichlet", 10, np.random.default_rng(0), 0.01)


@pytest.mark.parametrize("rng", [5, None, np.random.RandomState(5)])
def test_a_seed_is_no_generator(rng: Any) -> None:
    with pytest.raises(ParameterError, match=r"^rng = '.*': must be of the class Generator$"):
        partitions.split(dataset([0, 1, 2]), "iid", 3, rng)


@pytest.mark.requirement("EXP-02")
def test_labels_and_parts_that_are_none_are_not_counted() -> None:
    labels, part = np.array([0, 1, 1, 3]), np.array([0, 2])
    assert partitions.label_counts(labels, (), CLASSES).shape == (0, CLASSES)
    wrong: Any
    none: Any = None
    for label in (-1, CLASSES, 2**63 - 1):
        with pytest.raises(OutOfRange, match=rf"^labels\[2\] = {label}: must be in \[0, 4\)$"):
            partitions.label_counts(np.array([0, 1, label, 3]), [part], CLASSES)
    for wrong in ([0, 1], labels.astype(np.float64), labels.astype(np.int32), labels[None]):
        with pytest.raises(ParameterError, match=r"^labels(\.shape)? = "):
            partitions.label_counts(wrong, [part], CLASSES)
    for wrong in (0, True, None, 4.0):
        with pytest.raises(ParameterError, match=rf"^classes = {wrong}: must be an integer in \[1, 1048576\]$"):
            partitions.label_counts(labels, [part], wrong)
    one, calls = (
        dataset([0, 1, 1, 3]),
        (partitions.left_out, lambda data, parts: partitions.label_counts(labels, parts, 4)),
    )
    for call in calls:
        for wrong in (np.array([0, -1]), np.array([0, 4])):
            with pytest.raises(
                OutOfRange, match=r"^parts\[1\]\[1\] = .*: must be in \[0, 4\), the number of a sample$"
            ):
                call(one, [part, wrong])
        for wrong in ([0], np.array([0.0]), np.array([True]), part[None]):
            with pytest.raises(ParameterError, match=r"^parts\[0\]"):
                call(one, [wrong])
        with pytest.raises(ParameterError, match=r"^parts = 'NoneType': must be a list or another sequence"):
            call(one, none)
    assert partitions.left_out(one, [part, part]) == 2


def test_counts_are_those_of_each_user_and_label() -> None:
    labels = np.array([0, 3, 3, 1], np.int64)
    assert partitions.label_counts(labels, (np.array([1, 2]), np.array([0])), 4).tolist() == [
        [0, 0, 0, 2],
        [1, 0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("kind", "users", "alpha", "said"),
    [
        ("dirchlet", 2, 1.0, "dirichlet is close"),
        ("iid", 0, None, r"^users = 0: must be an integer in \[1, 3\] with the partition iid$"),
        ("iid", 10**9, None, r"^users = 1000000000: must be an integer in \[1, 3\] with the partition iid$"),
        ("dirichlet", "2", 1.0, r"^users = '2': must be an integer in \[1, 3\] with the partition dirichlet$"),
        ("iid", 4, None, "^users = 4: must be at most 3 with the partition iid: user 3 would hold no sample$"),
        ("dirichlet", 10**6, 1.0, "^users = 1000000: must be at most 3 with the partition dirichlet"),
        ("dirichlet", 2, "1", r"alpha = '1': must be a number in"),
        ("iid", 2, 1.0, "left out with the partition iid"),
        ("dirichlet", 2, None, "given with the partition dirichlet"),
        ("writers", 2, None, "names no writers"),
    ],
)
def test_what_fits_no_partition_is_refused(kind: str, users: int, alpha: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        partitions.split(dataset([0, 1, 2]), kind, users, np.random.default_rng(0), alpha)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf"), 1e-4, 1e7, True])
def test_alpha_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(OutOfRange, match=r"^alpha"):
        partitions.split(dataset([0, 1, 2]), "dirichlet", 2, np.random.default_rng(0), alpha)


@pytest.mark.parametrize("classes", [2**21, 2**40, 2**70])
def test_more_classes_than_any_data_set_has_are_refused(classes: int) -> None:
    with pytest.raises(ParameterError, match=r"^classes = .*: must be an integer in \[1, 1048576\]$"):
        partitions.label_counts(np.zeros(1, np.int64), [np.array([0])], classes)


def test_more_counts_than_fit_into_memory_are_refused() -> None:
    part = np.zeros(1, np.int64)
    with pytest.raises(ParameterError, match=r"^len\(parts\) \* classes = 5242880000: must be an integer in \[0, 268"):
        partitions.label_counts(part, [part] * 5000, 2**20)


@pytest.mark.parametrize("kind", partitions.PARTITIONS)
def test_there_is_nothing_to_divide_without_samples(kind: str) -> None:
    with pytest.raises(LengthMismatch, match=r"^len\(dataset\.train\) = 0: must be one sample or more$"):
        partitions.split(dataset([], []), kind, 1, np.random.default_rng(0), alpha_of(kind))


def test_more_cuts_of_classes_than_take_seconds_are_refused() -> None:
    found = dataset([0] * 64)
    many = Dataset("many", "Many", 2**14 + 1, found.train, found.test)
    with pytest.raises(
        ParameterError, match=r"^users = 64: must be at most 63 .*: there are 64 samples and 16385 classes$"
    ):
        partitions.split(many, "dirichlet", 64, np.random.default_rng(0), 1.0)
