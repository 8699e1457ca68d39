"""The data files that training reads: the files of each data set, and the hash that each file must have.

Source: spec/experiments.md, section 2 (EXP-01).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from secagg_spec import system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError

MNIST = (
    "mnist/train-images-idx3-ubyte.gz",
    "mnist/train-labels-idx1-ubyte.gz",
    "mnist/t10k-images-idx3-ubyte.gz",
    "mnist/t10k-labels-idx1-ubyte.gz",
)
WRITERS = "mnist_writers.npz"
CIFAR10 = "cifar10_jpeg_whole.npz"
BUNDLED = "scikit-learn's digits"

SHA256: Mapping[str, str] = MappingProxyType(
    {
        BUNDLED: "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826",
        MNIST[0]: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        MNIST[1]: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        MNIST[2]: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        MNIST[3]: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        WRITERS: "81c045fccd7c601e56847eb7b5e44ce232c22dd44bf3abc79c00b06df1f4983f",
        CIFAR10: "2d637b615c2c0875b0638024e47a86276436dbdfa6966c8456f44b0f00f8dfcf",
    }
)
"""The table of files: the hash of each file's content; for the bundled digits, of their pixels and labels as bytes."""

SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"digits": (BUNDLED,), "mnist": MNIST, "mnist-writers": (*MNIST, WRITERS), "cifar10": (CIFAR10,)}
)
"""The files of each data set."""


def hashes(dataset: str) -> dict[str, str]:
    """Return the hash of each file of a data set, by file name; `dataset` is a key of `SETS`.

    Raises `ParameterError` for a name that is none.
    """
    return {name: SHA256[name] for name in SETS[validate.one_of("dataset", dataset, [*SETS])]}


def read(folder: Path, name: str) -> bytes:
    """Return the content of a data file in a folder (EXP-01).

    Raises
    ------
    ParameterError
        The file cannot be read, its hash is not the one in the table, the table has no such name, or the folder is no
        path.
    """
    validate.one_of("name", name, [*SHA256])
    folder = validate.path_of("folder", folder)
    try:
        data = system.regular(folder / name).read_bytes()
    except OSError as error:
        raise _refused(name, folder, f"it cannot be read: {error.strerror}") from None
    return checked(name, data, folder)


def checked(name: str, data: bytes, where: Path | str) -> bytes:
    """Return the content of a data file when its hash is the one in the table (EXP-01).

    Raises
    ------
    ParameterError
        The hash differs, and the error names the file and both hashes; or the table has no such name, or the data is
        no bytes.
    """
    validate.one_of("name", name, [*SHA256])
    found = hashlib.sha256(validate.octets("data", data)).hexdigest()
    if found != SHA256[name]:
        raise _refused(name, where, f"what is there has {found}")
    return data


def _refused(name: str, where: Path | str, why: str) -> ParameterError:
    return ParameterError("data file", name, f"in {where} with the SHA-256 {SHA256[name]}; {why}")


guard(__name__)
