"""Environments of their own for released Python software: made once, with upstream's own pins, beside the project.

They lie in ``.secagg-spec/`` of the current folder, or in the folder that the variable SECAGG_SPEC_HOME names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

Install = tuple[str, ...]
FEDML: Sequence[Install] = (("--no-deps", "fedml==0.9.6"), ("numpy==1.26.4",))
"""FedML without its dependencies, and the newest numpy that its own pin ``numpy<2.0.0`` allows."""
FLOWER: Sequence[Install] = (
    ("--no-deps", "flwr==1.41.0"),
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
"""Flower with what its secure aggregation imports, in versions that its own pins allow."""

OPENFL: Sequence[Install] = (
    ("--no-deps", "openfl==1.9"),
    (
        "numpy==2.2.6",
        "pandas==2.3.3",
        "pycryptodome==3.23.0",
        "protobuf==5.29.6",
        "dynaconf==3.2.11",
        "tqdm==4.67.1",
    ),
)
"""OpenFL with what its secure aggregation imports; newer releases of numpy lack a keyword that it uses."""


class SetupFailed(Exception):
    """An environment could not be made; the message ends with what pip said."""


def home() -> Path:
    """Return the folder of the environments."""
    return Path(os.environ.get("SECAGG_SPEC_HOME", ".secagg-spec")).absolute()


def ready(name: str, installs: Sequence[Install]) -> Path:
    """Return the Python of the environment `name`; make the environment first where it is absent or incomplete.

    Raises
    ------
    SetupFailed
        The environment could not be made.
    """
    folder = home() / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "complete"
    wanted = "\n".join(" ".join(install) for install in installs)
    if done.exists() and done.read_text() == wanted:
        return python
    print(f"setting up {name} in {os.path.relpath(folder)} …", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    for install in installs:
        _pip(python, name, install)
    done.write_text(wanted)
    return python


def _pip(python: Path, name: str, install: Install) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *install]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise SetupFailed(f"{name}: pip install {' '.join(install)} failed: {last}")
