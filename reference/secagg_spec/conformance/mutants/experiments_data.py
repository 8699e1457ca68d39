"""Planted bugs of the data that is trained on and of its partitions, which their tests find."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.errors import ParameterError
from secagg_spec.learning import files, partitions
from secagg_spec.learning.datasets import Dataset, IntArray, Samples
from secagg_spec.learning.partitions import Parts

Function = Callable[..., Any]
_FILES, _SETS = "secagg_spec.learning.files:", "secagg_spec.learning.datasets:"
_PARTITIONS = "secagg_spec.learning.partitions:"
_OF_SETS, _OF_PARTITIONS = "tests/learning/test_datasets.py::", "tests/learning/test_partitions.py::"


def _told(run: Callable[[], object]) -> object:
    """Return what a call gives, or says."""
    try:
        return run()
    except ParameterError as error:
        return str(error)


def _damaged() -> object:
    return _told(lambda: files.checked(files.WRITERS, b"other bytes", "some folder"))


def _read(data: bytes | None) -> Callable[[], object]:
    """Return a function that reads a file with this in it, or one that is missing."""

    def witness() -> object:
        with tempfile.TemporaryDirectory() as folder:
            if data is not None:
                (Path(folder) / files.WRITERS).write_bytes(data)
            return str(_told(lambda: files.read(Path(folder), files.WRITERS))).replace(folder, "the folder")

    return witness


def _set(labels: tuple[int, ...] = (2, 0, 1, 1, 0, 2, 0), test: tuple[int, ...] = (0,)) -> Dataset:
    writers = np.array((30, 4, 200, 4, 30, 4, 200)[: len(labels)], np.int64)
    return Dataset("some", "Some", 3, _samples(labels), _samples(test), writers)


def _samples(labels: tuple[int, ...]) -> Samples:
    return Samples(np.zeros((len(labels), 1, 2, 2), np.float32), np.array(labels, np.int64))


def _labels(*labels: int, test: tuple[int, ...] = (0,)) -> Callable[[], object]:
    def witness() -> object:
        return _told(lambda: [*_set(labels, test).train.y])

    return witness


def _split(kind: str, users: int = 2, alpha: float | None = None) -> Callable[[], object]:
    """Return a function that divides a small data set, and says who holds what."""

    def run() -> object:
        return [part.tolist() for part in partitions.split(_set(), kind, users, np.random.default_rng(1), alpha)]

    return lambda: _told(run)


# ------------------------------------------------------------------------------------------------------ the data


@mutant(
    "data-files-are-not-hashed",
    "EXP-01",
    "a damaged file is trained on, and its results pass for those of the data that is named",
    f"{_FILES}checked",
    _damaged,
    _OF_SETS + "test_one_changed_byte_anywhere_is_found",
    kind="acceptance",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    return lambda name, data, where: data


@mutant(
    "damaged-files-are-refused-without-what-was-found",
    "EXP-01",
    "who has another file is not told which one",
    f"{_FILES}_refused",
    _damaged,
    _OF_SETS + "test_a_damaged_file_is_refused_by_name_with_both_hashes",
    kind="refusal",
    source="clause in part",
)
def _without_found(right: Function) -> Function:
    return lambda name, where, why: right(name, where, "what is there has another")


@mutant(
    "missing-files-are-refused-without-their-name",
    "EXP-01",
    "who has three of four files is not told which one is missing",
    f"{_FILES}_refused",
    _read(None),
    _OF_SETS + "test_a_missing_file_is_refused_by_name_with_its_hash",
    kind="refusal",
    source="clause in part",
)
def _without_name(right: Function) -> Function:
    return lambda name, where, why: ParameterError("data files", str(where), f"all there; {why}")


@mutant(
    "files-are-read-past-their-hash",
    "EXP-01",
    "the table of files is there, and no file is compared with it",
    f"{_FILES}read",
    _read(b"other bytes"),
    _OF_SETS + "test_a_damaged_file_is_refused_by_name_with_both_hashes",
    kind="acceptance",
    source="clause left out",
)
def _past(right: Function) -> Function:
    return lambda folder, name: (folder / name).read_bytes()


@mutant(
    "labels-are-not-looked-at",
    "EXP-02",
    "a class that the model does not have is trained on, or ends in an error of another place",
    f"{_SETS}check_labels",
    _labels(0, 3),
    _OF_SETS + "test_labels_outside_the_classes_are_refused",
    kind="acceptance",
    source="clause left out",
)
def _no_labels(right: Function) -> Function:
    return lambda name, labels, classes: None


@mutant(
    "the-number-of-classes-is-a-label",
    "EXP-02",
    "a class that the model does not have is trained on",
    f"{_SETS}check_labels",
    _labels(0, 3),
    _OF_SETS + "test_labels_outside_the_classes_are_refused",
    kind="acceptance",
    source="off by one",
)
def _one_more(right: Function) -> Function:
    return lambda name, labels, classes: right(name, labels, classes + 1)


@mutant(
    "negative-labels-are-taken",
    "EXP-02",
    "a label of -1 counts as the last class",
    f"{_SETS}check_labels",
    _labels(0, -1),
    _OF_SETS + "test_labels_outside_the_classes_are_refused",
    kind="acceptance",
    source="clause in part",
)
def _negative(right: Function) -> Function:
    return lambda name, labels, classes: right(name, np.abs(labels), classes)


@mutant(
    "labels-of-test-images-are-not-looked-at",
    "EXP-02",
    "a test image that no model can get right lowers all accuracies",
    f"{_SETS}check_labels",
    _labels(0, 1, test=(3,)),
    _OF_SETS + "test_labels_outside_the_classes_are_refused",
    kind="acceptance",
    source="clause in part",
)
def _training_only(right: Function) -> Function:
    return lambda name, labels, classes: None if name.startswith("test") else right(name, labels, classes)


# ------------------------------------------------------------------------------------------------ the partitions


@mutant(
    "users-have-samples-in-common",
    "EXP-03",
    "the first sample of each user is the next one's too, and counts twice",
    f"{_PARTITIONS}_iid",
    _split("iid"),
    _OF_PARTITIONS + "test_each_sample_has_one_user_and_each_user_one_sample_or_more",
    kind="sum",
    source="off by one",
)
def _common(right: Function) -> Function:
    def iid(*arguments: Any) -> Parts:
        parts = right(*arguments)
        return tuple(
            np.append(part, following[:1]) for part, following in zip(parts, (*parts[1:], parts[0]), strict=True)
        )

    return iid


@mutant(
    "the-rest-of-a-division-is-dropped",
    "EXP-03",
    "samples that do not divide equally are nobody's",
    f"{_PARTITIONS}_iid",
    _split("iid"),
    _OF_PARTITIONS + "test_each_sample_has_one_user_and_each_user_one_sample_or_more",
    also=("EXP-05",),
    kind="sum",
    source="wrong term",
)
def _no_rest(right: Function) -> Function:
    def iid(*arguments: Any) -> Parts:
        parts = right(*arguments)
        return tuple(part[: len(parts[-1])] for part in parts)

    return iid


@mutant(
    "samples-of-the-writers-beyond-are-not-counted",
    "EXP-03",
    "a run on some of the writers passes for one on all the data",
    f"{_PARTITIONS}left_out",
    lambda: partitions.left_out(_set(), partitions.split(_set(), "writers", 2, np.random.default_rng(0))),
    _OF_PARTITIONS + "test_users_are_writers_by_ascending_number",
    kind="form",
    source="clause in part",
)
def _none_left(right: Function) -> Function:
    return lambda dataset, parts: 0


@mutant(
    "writers-beyond-go-to-the-last-user",
    "EXP-03",
    "the last user holds the samples of many writers, and weighs most",
    f"{_PARTITIONS}_writers",
    _split("writers"),
    _OF_PARTITIONS + "test_users_are_writers_by_ascending_number",
    also=("EXP-05",),
    kind="sum",
    source="silent repair",
)
def _beyond(right: Function) -> Function:
    def writers(dataset: Dataset, users: int) -> Parts:
        parts = right(dataset, users)
        others = np.setdiff1d(np.arange(len(dataset.train)), np.concatenate(parts))
        return (*parts[:-1], np.append(parts[-1], others))

    return writers


@mutant(
    "users-without-samples-are-kept",
    "EXP-04",
    "a user without samples takes part, with an update of zeros or of no number",
    f"{_PARTITIONS}split",
    _split("iid", 9),
    _OF_PARTITIONS + "test_a_user_without_samples_is_named",
    kind="acceptance",
    source="clause left out",
)
def _kept(right: Function) -> Function:
    def split(dataset: Dataset, kind: str, users: int, rng: np.random.Generator, alpha: float | None = None) -> Parts:
        parts = partitions._divided(dataset, kind, users, rng, alpha or 0.0)
        return tuple(part.astype(np.int64) for part in parts)

    return split


@mutant(
    "users-without-samples-are-left-out",
    "EXP-04",
    "an experiment with N users is run with fewer",
    f"{_PARTITIONS}split",
    _split("writers", 5),
    _OF_PARTITIONS + "test_a_user_without_samples_is_named",
    kind="acceptance",
    source="silent repair",
)
def _fewer(right: Function) -> Function:
    def split(dataset: Dataset, kind: str, users: int, rng: np.random.Generator, alpha: float | None = None) -> Parts:
        parts = partitions._divided(dataset, kind, users, rng, alpha or 0.0)
        return tuple(part for part in parts if part.size)

    return split


@mutant(
    "a-user-without-samples-is-counted-from-one",
    "EXP-04",
    "the refusal names another user",
    f"{_PARTITIONS}split",
    _split("iid", 9),
    _OF_PARTITIONS + "test_a_user_without_samples_is_named",
    kind="refusal",
    source="off by one",
)
def _from_one(right: Function) -> Function:
    def split(*arguments: Any) -> Parts:
        try:
            return right(*arguments)  # type: ignore[no-any-return]
        except ParameterError as error:
            before, _, user = error.allowed.partition(": user ")
            if not user:
                raise
            number = int(user.split()[0])
            said = f"{before}: user {number + 1} would hold no sample"
            raise ParameterError(error.parameter, error.value, said) from None

    return split


@mutant(
    "iid-parts-keep-the-order-of-the-data",
    "EXP-05",
    "data that lie sorted by class come to users by class, and pass for IID",
    f"{_PARTITIONS}_iid",
    _split("iid"),
    _OF_PARTITIONS + "test_the_order_of_iid_is_random_and_that_by_class_is_sorted",
    kind="sum",
    source="wrong term",
)
def _ordered(right: Function) -> Function:
    return lambda dataset, users, *rest: tuple(np.array_split(np.arange(len(dataset.train)), users))


@mutant(
    "iid-parts-are-drawn-each-sample-alone",
    "EXP-05",
    "users hold numbers of samples that differ, and weigh unequally",
    f"{_PARTITIONS}_iid",
    _split("iid", 1),
    _OF_PARTITIONS + "test_parts_are_as_equal_as_they_can_be_and_the_longer_ones_first",
    kind="sum",
    source="other rule: each sample goes to a random user",
)
def _alone(right: Function) -> Function:
    def iid(dataset: Dataset, users: int, rng: np.random.Generator) -> Parts:
        owner = np.append(np.arange(users), rng.integers(users, size=len(dataset.train)))[: len(dataset.train)]
        return tuple(np.flatnonzero(owner == user) for user in range(users))

    return iid


@mutant(
    "longer-parts-come-last",
    "EXP-05",
    "whoever follows the text gives other users the further samples",
    f"{_PARTITIONS}_iid",
    _split("iid"),
    _OF_PARTITIONS + "test_parts_are_as_equal_as_they_can_be_and_the_longer_ones_first",
    kind="form",
    source="order",
)
def _last(right: Function) -> Function:
    return lambda *arguments: right(*arguments)[::-1]


@mutant(
    "users-take-samples-by-class-in-turn",
    "EXP-05",
    "each user holds all classes, and results pass for those of users with one class",
    f"{_PARTITIONS}_by_class",
    _split("by-class"),
    _OF_PARTITIONS + "test_the_order_of_iid_is_random_and_that_by_class_is_sorted",
    kind="sum",
    source="other rule: the data are dealt out as they lie",
)
def _in_turn(right: Function) -> Function:
    return lambda dataset, users, *rest: tuple(np.array_split(np.arange(len(dataset.train)), users))


@mutant(
    "samples-of-a-class-are-not-in-order",
    "EXP-05",
    "whoever follows the text gives other samples to users",
    f"{_PARTITIONS}_by_class",
    _split("by-class"),
    _OF_PARTITIONS + "test_the_order_of_iid_is_random_and_that_by_class_is_sorted",
    kind="form",
    source="order",
)
def _unstable(right: Function) -> Function:
    def by_class(dataset: Dataset, users: int) -> Parts:
        order = np.argsort(dataset.train.y[::-1], kind="stable")
        return tuple(np.array_split(len(order) - 1 - order, users))

    return by_class


Shares = Callable[[np.random.Generator, int, float], Any]


def _right_shares(rng: np.random.Generator, users: int, alpha: float) -> Any:
    return rng.dirichlet(np.full(users, alpha))


def _cutting(shares: Shares = _right_shares, rounded: Function = np.rint, random: bool = True) -> Function:
    """Return another way to cut a class."""

    def cut(members: IntArray, users: int, rng: np.random.Generator, alpha: float) -> list[IntArray]:
        ends = rounded(np.cumsum(shares(rng, users, alpha))[:-1] * len(members)).astype(np.int64)
        return np.split(rng.permutation(members) if random else members, ends)

    return cut


@mutant(
    "dirichlet-has-alpha-over-users",
    "EXP-05",
    "labels are less equal than alpha says, the more so the more users there are",
    f"{_PARTITIONS}_cut",
    _split("dirichlet", 3, 5.0),
    _OF_PARTITIONS + "test_shares_have_the_mean_and_the_variance_of_dirichlet",
    kind="sum",
    source="other rule: a concentration of alpha in all",
)
def _over_users(right: Function) -> Function:
    return _cutting(lambda rng, users, alpha: rng.dirichlet(np.full(users, alpha / users)))


@mutant(
    "dirichlet-shares-do-not-depend-on-alpha",
    "EXP-05",
    "all alphas give the same unequal labels",
    f"{_PARTITIONS}_cut",
    _split("dirichlet", 2, 10.0),
    _OF_PARTITIONS + "test_shares_have_the_mean_and_the_variance_of_dirichlet",
    kind="sum",
    source="wrong term",
)
def _no_alpha(right: Function) -> Function:
    return _cutting(lambda rng, users, alpha: rng.dirichlet(np.ones(users)))


@mutant(
    "sums-of-shares-are-rounded-down",
    "EXP-05",
    "the last user gets what is left of each class",
    f"{_PARTITIONS}_cut",
    lambda: [_split("dirichlet", 3, alpha)() for alpha in (5.0, 10.0, 20.0)],
    _OF_PARTITIONS + "test_classes_are_cut_at_the_rounded_sums_of_shares",
    kind="form",
    source="arithmetic: rounding",
)
def _down(right: Function) -> Function:
    return _cutting(rounded=np.floor)


@mutant(
    "samples-of-a-class-are-cut-as-they-lie",
    "EXP-05",
    "samples that lie side by side, such as those of one writer, come to one user",
    f"{_PARTITIONS}_cut",
    _split("dirichlet", 2, 10.0),
    _OF_PARTITIONS + "test_classes_are_cut_at_the_rounded_sums_of_shares",
    kind="sum",
    source="clause in part",
)
def _as_they_lie(right: Function) -> Function:
    return _cutting(random=False)


@mutant(
    "writers-come-as-they-first-appear",
    "EXP-05",
    "whoever follows the text has other writers in his first N",
    f"{_PARTITIONS}_writers",
    _split("writers"),
    _OF_PARTITIONS + "test_users_are_writers_by_ascending_number",
    kind="form",
    source="order",
)
def _first_seen(right: Function) -> Function:
    def writers(dataset: Dataset, users: int) -> Parts:
        assert dataset.writers is not None
        known = list(dict.fromkeys(dataset.writers.tolist()))[:users]
        return tuple(np.flatnonzero(dataset.writers == writer) for writer in known)

    return writers
