"""Separate environments for released Python software, created once from lock files, outside the project.

They are in ``.secagg-spec/`` of the current folder, or in the folder that the variable SECAGG_SPEC_HOME names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

LOCKS = Path(__file__).parent / "locks"


class Environment(NamedTuple):
    """An environment: the software, installed without its dependencies, and the dependencies that it needs here."""

    name: str
    software: str
    needs: tuple[str, ...]

    @property
    def lock(self) -> Path:
        """The lock file: all packages of the environment, with their hashes."""
        return LOCKS / f"{self.name}.txt"


FEDML = Environment("fedml-0.9.6", "fedml==0.9.6", ("numpy==1.26.4",))
"""FedML with the newest numpy that its own pin ``numpy<2.0.0`` allows."""
FLOWER = Environment(
    "flower-1.41.0",
    "flwr==1.41.0",
    (
        "numpy==2.4.6",
        "cryptography==50.0.2",
        "pycryptodome==3.24.1",
        "protobuf==6.33.6",
        "grpcio==1.85.1",
        "iterators==0.0.2",
        "httpx==0.28.1",
        "typer==0.20.1",
        "rich==14.3.4",
        "click==8.5.1",
    ),
)
"""Flower with the imports of its secure aggregation, in versions that Flower's pins allow."""
OPENFL = Environment(
    "openfl-1.9",
    "openfl==1.9",
    (
        "numpy==2.2.6",
        "pandas==2.3.3",
        "pycryptodome==3.23.0",
        "protobuf==5.29.6",
        "dynaconf==3.2.11",
        "tqdm==4.67.1",
    ),
)
"""OpenFL with the imports of its secure aggregation; newer releases of numpy lack a keyword that it uses."""
ALL = (FEDML, FLOWER, OPENFL)


class SetupFailed(Exception):
    """An environment could not be created; the message ends with pip's output."""


def home() -> Path:
    """Return the folder of the environments."""
    return Path(os.environ.get("SECAGG_SPEC_HOME", ".secagg-spec")).absolute()


def ready(chosen: Environment) -> Path:
    """Return the Python of an environment; create the environment first if it is absent or incomplete.

    Raises
    ------
    SetupFailed
        The environment could not be created.
    """
    folder = home() / chosen.name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done, lock = folder / "complete", chosen.lock.read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == lock:
        return python
    print(f"setting up {chosen.name} in {os.path.relpath(folder)} …", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = [*pip, "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(chosen.lock)]
    result = subprocess.run(locked, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise SetupFailed(f"{chosen.name}: pip install failed: {last}")
    done.write_text(lock, encoding="utf-8")
    return python
