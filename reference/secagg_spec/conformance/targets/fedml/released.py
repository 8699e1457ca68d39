"""Code shared by the adapters of FedML 0.9.6: load its files one by one, seed its generators, and pack its results.

The files are loaded without the package's ``__init__``, which imports far more than they need. They import torch, which
only their tensor helpers use; without torch, a placeholder replaces it.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import types
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from secagg_adapter import pack

VERSION = metadata.version("fedml")
HAS_TORCH = importlib.util.find_spec("torch") is not None


def load(path: str) -> Any:
    """Return the module in a file of the release, without running ``fedml/__init__.py``."""
    if not HAS_TORCH:
        sys.modules["torch"] = types.ModuleType("torch")
    package = next(file for file in metadata.files("fedml") or () if str(file) == path)
    spec = importlib.util.spec_from_file_location(Path(path).stem, Path(str(package.locate())))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packed(values: Any) -> str:
    """Pack the result of a function; a number that is not an element is passed on if 4 bytes can hold it."""
    numbers = [int(value) for value in np.ravel(list(values))]
    if any(not 0 <= number < 2**32 for number in numbers):
        raise Unpackable(f"the result {numbers[:4]} holds a number outside [0, 2**32)")
    text: str = pack(numbers)
    return text


class Unpackable(Exception):
    """A result that does not fit into a vector of elements."""


def seed(rand: dict[str, Any]) -> None:
    """Seed the global generators that the released functions draw from."""
    random.seed(rand["seed"])
    np.random.seed(np.frombuffer(bytes.fromhex(rand["seed"]), "<u4"))  # noqa: NPY002 - upstream draws from it
