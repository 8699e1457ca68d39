"""The file of stored records: what it says of the machine, and whether it tells what the code would measure now."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.catalogue import BENCHMARKS
from tests.benchmarks.record import Benchmark

from secagg_spec import __version__, schemas

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
FILE = FOLDER / "records.json"
SCHEMA = FOLDER / "records.schema.json"
VERSION = "secagg-spec-benchmarks/1"
PACKAGES = ("numpy", "cryptography", "py_arkworks_bls12381", "torch")


class OutOfDate(Exception):
    """The stored records are not those of this code; the message is one line that says what differs."""


def document(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is stored of the records of a run."""
    return {"schema": VERSION, "version": __version__, "environment": environment(), "records": [*records]}


def environment() -> dict[str, str]:
    """Return versions, and what the machine is."""
    found = {name: _version(name) for name in PACKAGES}
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "not limited")
    machine = {"processor": processor(), "cores": str(os.cpu_count()), "threads of BLAS": threads}
    return {"python": platform.python_version(), **found, **machine}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model name of the processor; its architecture where that cannot be read."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def store(content: Mapping[str, Any], path: Path) -> None:
    """Write the records in the place of the old ones."""
    _demand_form(content, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path = FILE, known: Mapping[str, Benchmark] = BENCHMARKS) -> dict[str, Any]:
    """Return the stored records.

    Raises
    ------
    OutOfDate
        The file is missing or has another form, or tells of another version, of other benchmarks, or of other sizes
        than the code.
    """
    if not path.is_file():
        raise OutOfDate(f"{path.name} is missing: make bench stores it")
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OutOfDate(f"{path.name} is no JSON: {error}") from None
    _demand_form(content, path)
    if content["version"] != __version__:
        raise OutOfDate(f"{path.name} tells of version {content['version']}, and this is {__version__}: make bench")
    _demand_same([record["id"] for record in content["records"]], known, path)
    for record in content["records"]:
        _demand_declared(record, known[record["id"]], path)
    return content


def _demand_form(content: object, path: Path) -> None:
    for where, what in schemas.faults(content, schemas.load(SCHEMA)):
        raise OutOfDate(f"{path.name}: {'.'.join(map(str, where)) or 'the file'} {what}")


def _demand_same(stored: Sequence[str], known: Mapping[str, Benchmark], path: Path) -> None:
    for name in known:
        if stored.count(name) != 1:
            raise OutOfDate(f"{path.name} has {stored.count(name)} records of {name}, and not one: make bench")
    for name in stored:
        if name not in known:
            raise OutOfDate(f"{path.name} has a record of {name}, which is no benchmark: make bench")


def _demand_declared(record: Mapping[str, Any], benchmark: Benchmark, path: Path) -> None:
    declared = benchmark.declared()
    for name in sorted({*declared, *record} - {"ratio", "cost"}):
        stored, now = record.get(name), declared.get(name)
        if stored != now:
            raise OutOfDate(f"{path.name}: {name} of {benchmark.id} is {stored}, and in the code {now}: make bench")
