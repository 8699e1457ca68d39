"""Data sets: which files are read, which are refused, and what the samples are."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning import datasets, files
from secagg_spec.learning.datasets import Dataset, Samples

RNG = np.random.default_rng(0)
PIXELS = {"train": RNG.integers(0, 256, (7, 4, 4), dtype=np.uint8), "t10k": RNG.integers(0, 256, (3, 4, 4), np.uint8)}
LABELS = {"train": np.array([0, 9, 3, 3, 1, 2, 5], np.uint8), "t10k": np.array([4, 0, 9], np.uint8)}
WRITER = np.array([12, 7, 7, 12, 12, 30, 7])
COLOURS = RNG.integers(0, 256, (2, 3), dtype=np.uint8)


def idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return gzip.compress(bytes((0, 0, 8, array.ndim)) + lengths + array.tobytes())


def jpeg(colour: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    image = pytest.importorskip("PIL.Image", reason="pillow is in the extra `train`")
    held = io.BytesIO()
    image.fromarray(np.full((32, 32, 3), colour, np.uint8)).save(held, "jpeg", quality=95)
    return held.getvalue()


def cifar10() -> bytes:
    packed = [jpeg(colour) for colour in COLOURS]
    members: dict[str, Any] = {}
    for part, images in (("train", packed), ("test", packed[:1])):
        members[f"{part}_jpeg"] = np.frombuffer(b"".join(images), np.uint8)
        members[f"{part}_offset"] = np.cumsum([0, *map(len, images)])
        members[f"{part}_label"] = np.array([8, 1][: len(images)], np.uint8)
    held = io.BytesIO()
    np.savez(held, **members)
    return held.getvalue()


def writers(labels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = LABELS["train"]) -> bytes:
    held = io.BytesIO()
    np.savez(held, train_writer=WRITER, train_label=labels)
    return held.getvalue()


def contents() -> dict[str, bytes]:
    images, labels, tests, test_labels = files.MNIST
    return {
        images: idx(PIXELS["train"]),
        labels: idx(LABELS["train"]),
        tests: idx(PIXELS["t10k"]),
        test_labels: idx(LABELS["t10k"]),
        files.WRITERS: writers(),
    }


def put(folder: Path, held: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files, and a table of files with their hashes."""
    (folder / "mnist").mkdir(exist_ok=True)
    for name, data in held.items():
        (folder / name).write_bytes(data)
    table = {name: hashlib.sha256(data).hexdigest() for name, data in held.items()}
    monkeypatch.setattr(files, "SHA256", {**files.SHA256, **table})
    return folder


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return put(tmp_path, contents(), monkeypatch)


@pytest.fixture(autouse=True)
def read_again() -> Iterator[None]:
    yield
    datasets._loaded.cache_clear()


# ----------------------------------------------------------------------------------------------------- the files


@pytest.mark.requirement("EXP-01")
@pytest.mark.parametrize("name", [*files.MNIST, files.WRITERS])
def test_a_damaged_file_is_refused_by_name_with_both_hashes(name: str, small: Path) -> None:
    data = bytearray((small / name).read_bytes())
    data[-1] ^= 1
    (small / name).write_bytes(data)
    with pytest.raises(ParameterError) as caught:
        datasets.load("mnist-writers", small)
    for said in (name, files.SHA256[name], hashlib.sha256(data).hexdigest()):
        assert said in str(caught.value)


@pytest.mark.requirement("EXP-01")
@given(st.data())
def test_one_changed_byte_anywhere_is_found(data: st.DataObject) -> None:
    right = contents()[files.MNIST[1]]
    where, by = data.draw(st.integers(0, len(right) - 1)), data.draw(st.integers(1, 255))
    damaged = bytearray(right)
    damaged[where] ^= by
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "SHA256", {"some": hashlib.sha256(right).hexdigest()})
        assert files.checked("some", right, "it") == right
        with pytest.raises(ParameterError, match="must be in it with the SHA-256"):
            files.checked("some", bytes(damaged), "it")


def test_a_file_that_the_table_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"^name = 'train\.gz': must be one of "):
        files.checked("train.gz", b"", tmp_path)
    with pytest.raises(ParameterError, match=r"^name = 'train\.gz': must be one of "):
        files.read(tmp_path, "train.gz")
    with pytest.raises(ParameterError, match=r"^dataset = 'MNIST': must be one of .*; mnist is close$"):
        files.hashes("MNIST")


@pytest.mark.requirement("EXP-01")
def test_a_missing_file_is_refused_by_name_with_its_hash(small: Path) -> None:
    name = files.MNIST[2]
    (small / name).unlink()
    with pytest.raises(
        ParameterError, match=f"^data file = '{name}'.*{files.SHA256[name]}; it cannot be read: No such"
    ):
        datasets.load("mnist", small)


@pytest.mark.requirement("EXP-01")
def test_the_table_has_the_hash_of_each_file_of_each_set() -> None:
    assert set(files.SHA256) == {name for names in files.SETS.values() for name in names}
    assert all(len(bytes.fromhex(digest)) == 32 for digest in files.SHA256.values())


@pytest.mark.requirement("EXP-01")
def test_the_text_has_the_same_table() -> None:
    text = (resources.root("spec") / "experiments.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `([^`]+)` \| `([0-9a-f]{64})` \|", text, re.MULTILINE)) == dict(files.SHA256)


@pytest.mark.requirement("EXP-01")
def test_bundled_digits_that_changed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")
    monkeypatch.setattr(files, "SHA256", {**files.SHA256, files.BUNDLED: "00"})
    with pytest.raises(ParameterError, match="scikit-learn's digits"):
        datasets._digits.__wrapped__()


def test_a_set_is_read_once(small: Path) -> None:
    first = datasets.load("mnist", small)
    (small / files.MNIST[0]).unlink()
    assert datasets.load("mnist", small) is first


# ---------------------------------------------------------------------------------------------------- the labels


@pytest.mark.requirement("EXP-02")
@given(st.lists(st.integers(-3, 12), max_size=8), st.lists(st.integers(-3, 12), max_size=8), st.integers(1, 10))
def test_labels_outside_the_classes_are_refused(train: list[int], test: list[int], classes: int) -> None:
    first, second = (Samples(np.zeros((len(y), 1, 2, 2), np.float32), np.array(y, np.int64)) for y in (train, test))
    if all(0 <= label < classes for label in train + test):
        assert Dataset("some", "Some", classes, first, second).classes == classes
    else:
        with pytest.raises(OutOfRange, match=rf"^(training|test) labels\[\d+\] = -?\d+: must be in \[0, {classes}\)"):
            Dataset("some", "Some", classes, first, second)


@pytest.mark.requirement("EXP-02")
@pytest.mark.parametrize("part", [1, 3])
def test_labels_outside_the_classes_are_refused_in_files(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = contents()
    held[files.MNIST[part]] = idx(np.full((7, 0, 3)[part - 1], 10, np.uint8))
    with pytest.raises(OutOfRange, match=r"labels\[0\] = 10"):
        datasets.load("mnist", put(tmp_path, held, monkeypatch))


# --------------------------------------------------------------------------------------------------- the samples


def test_every_fifth_bundled_digit_is_a_test_image() -> None:
    sklearn = pytest.importorskip("sklearn.datasets", reason="scikit-learn is in the extra `train`")
    found, right = datasets.load("digits", None), sklearn.load_digits()
    assert (len(found.train), len(found.test), found.classes) == (1437, 360, 10)
    assert np.array_equal(found.test.x[:, 0], (right.images[::5] / 16).astype(np.float32))
    assert np.array_equal(found.test.y, right.target[::5])
    assert np.array_equal(found.train.x[:5, 0], (right.images[[1, 2, 3, 4, 6]] / 16).astype(np.float32))
    assert np.array_equal(found.train.y, np.delete(right.target, np.s_[::5]))
    assert found.train.x.max() == 1
    refuse_changes(found)


def refuse_changes(dataset: Dataset) -> None:
    """Check that nobody can change what later loads return."""
    arrays = [array for samples in (dataset.train, dataset.test) for array in (samples.x, samples.y)]
    assert not any(array.flags.writeable for array in [*arrays, dataset.writers] if array is not None)


def test_mnist_has_the_images_and_labels_of_its_files(small: Path) -> None:
    found = datasets.load("mnist", small)
    for samples, part in ((found.train, "train"), (found.test, "t10k")):
        assert samples.x.dtype == np.float32
        assert np.array_equal(samples.x, PIXELS[part][:, np.newaxis] / np.float32(255))
        assert np.array_equal(samples.y, LABELS[part])
    assert found.writers is None
    assert found.hashes == {name: files.SHA256[name] for name in files.MNIST}
    refuse_changes(found)


def test_mnist_by_writer_is_mnist_with_writers(small: Path) -> None:
    found = datasets.load("mnist-writers", small)
    assert found.train is datasets.load("mnist", small).train
    assert found.writers is not None
    assert np.array_equal(found.writers, WRITER)
    refuse_changes(found)
    assert set(found.hashes) == {*files.MNIST, files.WRITERS}


def test_writers_in_another_order_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = contents() | {files.WRITERS: writers(LABELS["train"][::-1])}
    with pytest.raises(ParameterError, match="in the order of the images"):
        datasets.load("mnist-writers", put(tmp_path, held, monkeypatch))


def test_images_of_cifar10_have_their_channels_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = datasets.load("cifar10", put(tmp_path, {files.CIFAR10: cifar10()}, monkeypatch))
    assert (found.train.x.shape, found.test.x.shape) == ((2, 3, 32, 32), (1, 3, 32, 32))
    assert np.allclose(found.train.x.mean(axis=(2, 3)), COLOURS / 255, atol=0.03)
    assert (found.train.y.tolist(), found.test.y.tolist()) == ([8, 1], [8])


def test_a_set_without_a_folder_and_an_unknown_set_are_refused() -> None:
    with pytest.raises(ParameterError, match="--data-dir or SECAGG_SPEC_DATA"):
        datasets.load("mnist", None)
    with pytest.raises(ParameterError, match="one of digits, mnist, mnist-writers, cifar10; cifar10 is close"):
        datasets.load("Cifar-10", None)


@pytest.mark.parametrize(
    ("x", "y"),
    [((2, 1, 4, 4), (3,)), ((2, 1, 4, 3), (2,)), ((2, 16), (2,)), ((), (2,)), ((2, 1, 4, 4), (2, 1))],
)
def test_samples_that_do_not_fit_are_refused(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    with pytest.raises(LengthMismatch):
        Samples(np.zeros(x, np.float32), np.zeros(y, np.int64))


def test_samples_and_writers_of_other_kinds_are_refused() -> None:
    pixels, labels = np.zeros((2, 1, 4, 4), np.float32), np.zeros(2, np.int64)
    for wrong in (pixels.astype(np.float64), np.ma.masked_array(pixels), pixels.tolist(), None):
        with pytest.raises(ParameterError, match=r"^x = .*: must be a numpy array of dtype float32"):
            Samples(wrong, labels)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="int64"):
        Samples(pixels, labels.astype(np.int32))
    one = Samples(pixels, labels)
    with pytest.raises(LengthMismatch):
        Dataset("some", "Some", 10, one, one, np.zeros(3, np.int64))
    with pytest.raises(ParameterError, match=r"^name = 'NoneType': must be of the class str$"):
        Dataset(None, "Some", 10, one, one)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^title = 'int': must be of the class str$"):
        Dataset("some", 3, 10, one, one)  # type: ignore[arg-type]


@pytest.mark.parametrize("pixel", [np.nan, np.inf, -1e-45, 1.0000001, 255])
def test_a_pixel_is_between_0_and_1(pixel: float) -> None:
    x = np.linspace(0, 1, 32, dtype=np.float32).reshape(2, 1, 4, 4)
    x[1, 0, 0, 3] = pixel
    with pytest.raises(OutOfRange, match=r"^x\[1\]\[0\]\[0\]\[3\] = .*: must be in \[0, 1\]$"):
        Samples(x, np.zeros(2, np.int64))


def test_the_hashes_of_a_data_set_stay_as_they_are() -> None:
    one, hashes = Samples(np.zeros((2, 1, 4, 4), np.float32), np.zeros(2, np.int64)), {"file": "00"}
    found = Dataset("some", "Some", 10, one, one, None, hashes)
    hashes["file"] = "01"
    assert found.hashes == {"file": "00"}
    with pytest.raises(TypeError):
        found.hashes["file"] = "01"  # type: ignore[index]


def test_a_data_file_is_bytes() -> None:
    data: Any = "x"
    with pytest.raises(ParameterError, match=r"^data = 'str': must be bytes$"):
        files.checked("mnist_writers.npz", data, "there")
