"""Images of digits: what is read is what stands in the files, and files that are none are refused."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.learning import digits, files

IMAGES = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 15


def idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes((0, 0, 8, array.ndim)) + lengths + array.tobytes()


def folder(tmp_path: Path, images: bytes, labels: bytes) -> Path:
    (tmp_path / "mnist").mkdir()
    for name, data in (("images-idx3", images), ("labels-idx1", labels)):
        (tmp_path / "mnist" / f"train-{name}-ubyte.gz").write_bytes(gzip.compress(data))
    return tmp_path


def test_the_files_of_mnist_are_read(tmp_path: Path) -> None:
    where = folder(tmp_path, idx(IMAGES), idx(np.array([7, 2], dtype=np.uint8)))
    assert digits.holds_mnist(where)
    found = digits.mnist(where)
    assert (found.side, found.labels.tolist()) == (3, [7, 2])
    assert np.array_equal(found.images(np.array([1])), IMAGES[1:] / 255)
    assert np.allclose(found.mean(), IMAGES.mean(axis=0) / 255)


@pytest.mark.parametrize("label", [10, 200, 255])
def test_a_label_that_is_no_digit_is_named(label: int, tmp_path: Path) -> None:
    where = folder(tmp_path, idx(IMAGES), idx(np.array([9, label], dtype=np.uint8)))
    with pytest.raises(OutOfRange, match=rf"^training labels\[1\] = {label}: must be in \[0, 10\)$"):
        digits.mnist(where)


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (idx(IMAGES)[:-1], b"\0\0\x08\x01\0\0\0\x02\0\0"),
        (idx(IMAGES), idx(np.array([7], dtype=np.uint8))),
        (idx(IMAGES[:, :2]), idx(np.array([7, 2], dtype=np.uint8))),
        (b"", idx(np.array([7, 2], dtype=np.uint8))),
        (b"\0\0\x0d\x03" + idx(IMAGES)[4:], idx(np.array([7, 2], dtype=np.uint8))),
        (idx(IMAGES[:0])[:8] + b"\xff" * 8, idx(np.empty(0, dtype=np.uint8))),
        (idx(IMAGES[:0]), idx(np.empty(0, dtype=np.uint8))),
    ],
)
def test_other_files_are_refused(images: bytes, labels: bytes, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"^data = "):
        digits.mnist(folder(tmp_path, images, labels))


def test_files_that_are_missing_or_no_gzip_are_refused(tmp_path: Path) -> None:
    assert not digits.holds_mnist(tmp_path)
    with pytest.raises(ParameterError, match="a gzip file that can be read"):
        digits.mnist(tmp_path)
    where = folder(tmp_path, idx(IMAGES), b"")
    (where / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"no gzip")
    with pytest.raises(ParameterError, match="a gzip file that can be read"):
        digits.mnist(where)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_head_that_was_cut_is_refused(axes: int) -> None:
    head = bytes((0, 0, 8, axes)) + (5).to_bytes(4, "big") * (axes - 1)
    for more in range(4):
        with pytest.raises(ParameterError, match=rf"of bytes with {axes} {'axis' if axes == 1 else 'axes'}, and"):
            digits.bytes_of_idx(gzip.compress(head + bytes(more)), axes, "cut")
    assert digits.bytes_of_idx(gzip.compress(head + bytes(4)), axes, "whole").size == 0


@pytest.mark.parametrize(
    "lengths",
    [(2, 3, 3), (1 << 20, 1 << 10, 1 << 10), (2**32 - 1, 2**32 - 1, 2**32 - 1)],
    ids=["more than the header says", "a header of 2^40 bytes", "a header of 2^96 bytes"],
)
def test_no_more_is_unpacked_than_the_header_says(lengths: tuple[int, ...]) -> None:
    """64 MiB of zeros in 64 KiB: memory stays below a megabyte or so, whatever follows."""
    head = bytes((0, 0, 8, 3)) + b"".join(length.to_bytes(4, "big") for length in lengths)
    packed = gzip.compress(head + bytes(1 << 26), 6)
    tracemalloc.start()
    try:
        with pytest.raises(ParameterError, match=r"an IDX file of bytes with 3 axes, and \d+ bytes"):
            digits.bytes_of_idx(packed, 3, "bomb")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("axes", [0, 256, -1, True, 3.0, "3", None])
def test_axes_that_no_file_has_are_refused(axes: Any) -> None:
    with pytest.raises(ParameterError, match=r"^axes = .*: must be an integer in \[1, 64\]$"):
        digits.bytes_of_idx(idx(IMAGES), axes, "some")
    with pytest.raises(ParameterError, match=r"^packed = 'str': must be bytes$"):
        digits.bytes_of_idx("some", 3, "some")  # type: ignore[arg-type]


def test_folders_are_paths_or_text(tmp_path: Path) -> None:
    where: Any = folder(tmp_path, idx(IMAGES), idx(np.array([7, 2], np.uint8)))
    text: Any = str(where)
    assert digits.holds_mnist(text)
    assert np.array_equal(digits.mnist(text).raw, IMAGES)
    for where in (3, None, "", b"\0"):
        for call in (digits.holds_mnist, digits.mnist, lambda one: files.read(one, files.WRITERS)):
            with pytest.raises(ParameterError, match=r"^folder = .*: must be a path of the file system"):
                call(where)
    assert not digits.holds_mnist(tmp_path / ("a" * 5000))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"raw": None}, "raw = 'NoneType': "),
        ({"raw": IMAGES.astype(object)}, r"raw\.dtype = 'object': must be a type of integers or real numbers"),
        ({"raw": IMAGES[0]}, r"raw\.shape = \(3, 3\): must be \(any, 3, 3\)"),
        ({"raw": IMAGES[:, :2]}, r"raw\.shape = \(2, 2, 3\): "),
        ({"raw": np.zeros((), np.uint8)}, r"raw\.shape = \(\): "),
        ({"raw": IMAGES[:0], "labels": np.array([], np.int64)}, r"len\(raw\) = 0: "),
        ({"raw": IMAGES - 1.0}, "raw = -1.0: must be between 0 and 255.0"),
        ({"raw": IMAGES * np.nan}, "raw = nan: "),
        ({"largest": 50.0}, "raw = .*: must be between 0 and 50.0"),
        ({"largest": 0.0}, r"largest = 0.0: must be a number above 0 and at most 1e\+150$"),
        ({"largest": 1e151}, r"largest = 1e\+151: "),
        ({"raw": np.full((2, 3, 3), 2**53 + 1, np.uint64), "largest": 2.0**53}, "raw = 9007199254740993: "),
        ({"largest": np.inf}, "largest = inf: "),
        ({"largest": "1"}, "largest = '1': "),
        ({"name": None}, "name = 'NoneType': must be of the class str$"),
        ({"labels": np.array([7])}, r"labels\.shape = \(1,\): must be \(2\)"),
        ({"labels": np.array([7, 10])}, r"labels\[1\] = 10: "),
        ({"labels": [7, 2]}, "labels = 'list': "),
    ],
)
def test_images_and_labels_that_do_not_fit_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        digits.Digits(**{"name": "some", "raw": IMAGES, "largest": 255.0, "labels": np.array([7, 2]), **changed})


@pytest.mark.parametrize("count", [-1, 2.0, "2", None])
def test_a_count_of_samples_is_an_integer(count: Any) -> None:
    with pytest.raises(ParameterError, match=r"^count = .*: must be an integer >= 0$"):
        digits.numbers_of_samples("chosen", np.array([0]), count)


def test_images_are_chosen_by_their_numbers() -> None:
    data, image = digits.Digits("some", IMAGES, 255.0, np.array([7, 2])), np.linspace(0, 1, 9).reshape(3, 3)
    wrong: Any
    for wrong in (np.array([-1]), np.array([2]), np.array([0.0]), np.array([True, False]), [0], None):
        with pytest.raises(ParameterError, match=r"^chosen"):
            data.images(wrong)
    for wrong in (
        image.tolist(),
        image[:2],
        image.ravel(),
        image.astype(np.float32),
        image + np.inf,
        image + 1e200,
        None,
    ):
        with pytest.raises(ParameterError, match=r"^image"):
            data.squares(wrong)


def test_squares_are_those_of_the_differences() -> None:
    data = digits.Digits("some", IMAGES, 255.0, np.array([7, 2]))
    image = np.linspace(0, 1, 9).reshape(3, 3)
    assert np.allclose(data.squares(image), np.square(IMAGES / 255 - image).sum(axis=(1, 2)))
    assert np.allclose(np.diag([data.squares(own) for own in IMAGES / 255]), 0, atol=1e-12)


def test_the_images_of_scikit_learn_are_there() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")
    found = digits.bundled()
    assert (len(found.labels), found.side, found.mean().shape) == (1797, 8, (8, 8))
    assert 0 <= found.images(np.arange(9)).min() <= found.images(np.arange(9)).max() == 1


def test_an_array_has_64_axes_at_most() -> None:
    with pytest.raises(ParameterError, match=r"^axes = 65: must be an integer in \[1, 64\]$"):
        digits.bytes_of_idx(b"", 65, "there")


@pytest.mark.parametrize(("value", "largest"), [(0.1, 1.0), (3e38, 3.1e38)])
def test_the_mean_of_many_images_of_binary32_is_that_of_their_values(value: float, largest: float) -> None:
    raw = np.full((20_000, 1, 1), value, np.float32)  # added in binary32 they are off by 6e-7, or infinite
    mean = digits.Digits("some", raw, largest, np.zeros(20_000, np.int64)).mean()
    assert mean[0, 0] == pytest.approx(float(raw[0, 0, 0]) / largest, rel=1e-12)
