"""Separate environments for released Python software, created once from lock files, outside the project.

They are in ``.secagg-spec/`` of the current folder, or in the folder that the variable SECAGG_SPEC_HOME names.
"""

import os
import subprocess
import sys
import venv
from datetime import date
from pathlib import Path
from typing import NamedTuple

LOCKS = Path(__file__).parent / "locks"


class Environment(NamedTuple):
    """An environment: the software with its day of release, installed without dependencies, and those that it needs."""

    name: str
    software: str
    released: date
    needs: tuple[str, ...]

    @property
    def lock(self) -> Path:
        """The lock file: all packages of the environment, with their hashes."""
        return LOCKS / f"{self.name}.txt"


FEDML = Environment("fedml-0.9.6", "fedml==0.9.6", date(2025, 2, 24), ("numpy==1.26.4",))
"""FedML with the newest numpy that its own pin ``numpy<2.0.0`` allows."""
_FLOWER_ALWAYS = ("pycryptodome==3.24.1", "iterators==0.0.2")
_FLOWER_NOW = (
    "numpy==2.4.6",
    "cryptography==50.0.2",
    "protobuf==6.33.6",
    "grpcio==1.85.1",
    "httpx==0.28.1",
    "typer==0.20.1",
    "rich==14.3.4",
    "click==8.5.1",
)
_FLOWERS = {
    "1.8.0": (
        date(2024, 4, 3),
        ("numpy==1.26.4", "cryptography==42.0.8", "protobuf==4.25.9", "grpcio==1.69.0", "typer==0.9.4", "click==8.1.8"),
    ),
    "1.18.0": (
        date(2025, 4, 23),
        (
            "numpy==2.2.6",
            "cryptography==44.0.3",
            "protobuf==4.25.9",
            "grpcio==1.69.0",
            "typer==0.12.5",
            "rich==13.9.4",
            "click==8.1.8",
            "pyyaml==6.0.4",
            "tomli==2.5.0",
            "requests==2.34.2",
        ),
    ),
    "1.41.0": (date(2026, 10, 20), _FLOWER_NOW),
    "1.42.0": (date(2026, 10, 22), _FLOWER_NOW),
}
FLOWER_NOW = "1.41.0"
"""The release that the other pages speak of."""
FLOWER = {
    version: Environment(f"flower-{version}", f"flwr=={version}", day, (*needs, *_FLOWER_ALWAYS))
    for version, (day, needs) in _FLOWERS.items()
}
"""The judged releases of Flower, with the imports of their secure aggregation in versions that their pins allow.

1.8.0 is the first one with ``SecAggPlusWorkflow``.
"""
OPENFL = Environment(
    "openfl-1.9",
    "openfl==1.9",
    date(2025, 6, 10),
    ("numpy==2.2.6", "pandas==2.3.3", "pycryptodome==3.23.0", "protobuf==5.29.6", "dynaconf==3.2.11", "tqdm==4.67.1"),
)
"""OpenFL with the imports of its secure aggregation; newer releases of numpy lack a keyword that it uses."""
DECLEARN = Environment(
    "declearn-2.9.1",
    "declearn==2.9.1",
    date(2026, 8, 26),
    ("numpy==2.4.6", "cryptography==50.0.2", "gmpy2==2.3.2", "msgpack==1.2.4"),
)
"""declearn with the imports of its secure aggregation."""
FEDBIOMED = Environment(
    "fedbiomed-6.4.1",
    "fedbiomed==6.4.1",
    date(2026, 8, 6),
    ("numpy==1.26.4", "cryptography==40.0.2", "gmpy2==2.1.5", "packaging==24.2"),
)
"""Fed-BioMed, for Python 3.11 alone, with the imports of its secure aggregation."""
ALL = (FEDML, *FLOWER.values(), OPENFL, DECLEARN, FEDBIOMED)


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
