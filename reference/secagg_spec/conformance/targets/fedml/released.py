"""Code shared by the adapters of FedML 0.9.6: load its files one by one, seed its generators, and pack its results.

The files are loaded without the package's ``__init__``, which imports far more than they need. They import torch, which
only their tensor helpers use; without torch, a placeholder replaces it. `begin` runs ``fedml.init``, with placeholders
for all that ``fedml/__init__.py`` imports, but for its constants and numpy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import random
import sys
import types
from importlib import abc, machinery, metadata
from pathlib import Path
from typing import Any

import bare
import numpy as np
from secagg_adapter import pack

VERSION = metadata.version("fedml")
HAS_TORCH = importlib.util.find_spec("torch") is not None


def load(path: str, name: str = "") -> Any:
    """Return the module in a file of the release, without running ``fedml/__init__.py``; with a name, register it."""
    if not HAS_TORCH and not name:
        sys.modules["torch"] = types.ModuleType("torch")
    package = next(file for file in metadata.files("fedml") or () if str(file) == path)
    spec = importlib.util.spec_from_file_location(name or Path(path).stem, Path(str(package.locate())))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if name:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def begin() -> None:
    """Run ``fedml.init`` as a client of ``cross_silo`` does; the arguments name no ``random_seed``."""
    sys.meta_path.insert(0, _Placeholders())
    for name in ("torch.cuda", "torch.backends.cudnn"):
        importlib.import_module(name)
    known = {"training_type": "cross_silo", "backend": "GRPC", "rank": 1, "sys_perf_profiling": False}
    with contextlib.redirect_stdout(sys.stderr):
        load("fedml/__init__.py", "fedml").init(types.SimpleNamespace(**known), check_env=False)


class _Placeholders(abc.MetaPathFinder, abc.Loader):
    """Finds a placeholder for each module that ``fedml/__init__.py`` imports."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> machinery.ModuleSpec | None:
        """Return where a placeholder comes from, for a module that is to be one."""
        top, _, inner = fullname.partition(".")
        wanted = top in ("torch", "dotenv", "multiprocess") or (top == "fedml" and inner not in ("", "constants"))
        return importlib.util.spec_from_loader(fullname, self, is_package=True) if wanted else None

    def create_module(self, spec: machinery.ModuleSpec) -> Any:
        """Return the placeholder."""
        return bare.Placeholder(spec.name)

    def exec_module(self, module: Any) -> None:
        """Do nothing."""


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
    """Seed the global generators that the released functions draw from, where a seed is given."""
    if not rand:
        return
    random.seed(rand["seed"])
    np.random.seed(np.frombuffer(bytes.fromhex(rand["seed"]), "<u4"))  # noqa: NPY002 - upstream draws from it
