"""Writes the locks: what `make` installs, each package with its version and the SHA-256 of all files of the release.

    python -m tests.locks [--upgrade]

uv resolves for every Python that the project takes, and for every system, at once. A version that is locked stays as
long as ``pyproject.toml`` allows it; with ``--upgrade`` the newest is taken. No address of an index is written.

``locks/core.txt`` has what the project needs, and what builds it; the lock of an extra has what the extra needs beside
that. Each environment of a released implementation has a lock of its own, in the package.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec.conformance.targets import environments

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "locks"
CORE, TRAIN, CPU, CUDA, APART = "core", "train", "cpu", "cuda", "flower"
"""Locks with a part of their own; the last is resolved apart, since Flower needs an older uv than `make locks`."""
OF_CUDA = ("torch", "nvidia-", "cuda-", "triton")
"""PyTorch as the public index has it, and what it needs on Linux, but PyTorch's own build for CPUs does not."""
CPU_BUILDS = {
    "2.13.0": (
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",  # Python 3.11, Linux, x86_64
        "84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7",  # Python 3.11, Linux, aarch64
        "4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2",  # Python 3.12, Linux, x86_64
        "6f307c2c32d764ffc6ff6893b801fad6d4752f3e67966cb8abf1843427c02604",  # Python 3.12, Linux, aarch64
        "3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6",  # Python 3.13, Linux, x86_64
        "0b8f7d0423027ae8b90c7977c627f3379f325363a08224dffad9b4b2d684a83d",  # Python 3.13, Linux, aarch64
    )
}
"""The files of PyTorch's own builds for CPUs by version: they stand in PyTorch's index, not in the public one."""


def project() -> dict[str, Any]:
    """Return what ``pyproject.toml`` says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def wanted() -> dict[str, list[str]]:
    """Return what each lock of the project is for: the requirements of the core, and of each extra."""
    said = project()
    core = [*said["project"]["dependencies"], *said["build-system"]["requires"]]
    return {CORE: core, **said["project"]["optional-dependencies"]}


def blocks(text: str) -> dict[str, str]:
    """Return the packages of a lock by name, each with its lines."""
    lines = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    found = re.split(r"^(?=\S)", lines, flags=re.MULTILINE)
    return {block.partition("==")[0]: block for block in found if block.strip()}


def compiled(requirements: Sequence[str], locked: Mapping[str, str], *options: str) -> dict[str, str]:
    """Return the lock of some requirements, which keeps what is locked already."""
    with tempfile.TemporaryDirectory() as scratch:
        given, out = Path(scratch, "given.in"), Path(scratch, "out.txt")
        given.write_text("\n".join(requirements))
        out.write_text("".join(locked.values()))
        uv = [sys.executable, "-m", "uv", "pip", "compile", "--no-config", "--quiet", "--universal"]
        shape = ["--python-version", oldest(), "--fork-strategy", "fewest", "--generate-hashes"]
        plain = ["--no-header", "--no-annotate", "--output-file", str(out), str(given)]
        subprocess.run([*uv, *shape, *options, *plain], check=True, stdout=subprocess.DEVNULL)
        return blocks(out.read_text())


def oldest() -> str:
    """Return the oldest Python that the project takes."""
    return str(project()["project"]["requires-python"]).removeprefix(">=")


def on_cpus(block: str) -> str:
    """Return the lines of PyTorch that take the build for CPUs on Linux; elsewhere there is no other."""
    pin, hashes = block.split(maxsplit=1)
    builds = " \\\n".join(f"    --hash=sha256:{digest}" for digest in CPU_BUILDS[pin.partition("==")[2]])
    return f"{pin}+cpu ; sys_platform == 'linux' \\\n{builds}\n{pin} ; sys_platform != 'linux' {hashes}"


def of_project(*options: str) -> dict[str, dict[str, str]]:
    """Return all locks of the project: one resolution of everything, and of it what each lock has."""
    files = [path for path in LOCKS.glob("*.txt") if path.stem != APART]
    locked = {name: block for path in files for name, block in blocks(path.read_text()).items()}
    everything = [one for name, requirements in wanted().items() for one in requirements if name != APART]
    whole = compiled(everything, locked, *options)
    apart = LOCKS / f"{APART}.txt"
    older = {**whole, **(blocks(apart.read_text()) if apart.exists() else {})}
    known = dict.fromkeys(wanted(), whole) | {APART: {name: older[name] for name in older if name != "uv"}}
    locks = {name: compiled([*wanted()[CORE], *more], known[name]) for name, more in wanted().items()}
    train = locks[TRAIN]
    locks[CUDA] = {name: train.pop(name) for name in list(train) if name.startswith(OF_CUDA)}
    locks[CPU] = {"torch": on_cpus(locks[CUDA]["torch"])}
    beside = {name: dict(lock.items() - locks[CORE].items()) for name, lock in locks.items()}
    return {**beside, CORE: locks[CORE]}


def of_environment(chosen: environments.Environment, *options: str) -> dict[str, str]:
    """Return the lock of an environment: the software without its dependencies, and what is needed of them."""
    locked = blocks(chosen.lock.read_text()) if chosen.lock.exists() else {}
    software = compiled([chosen.software], locked, "--no-deps", *options)
    return software | compiled(chosen.needs, locked, *options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.locks", description="Write the locks.")
    parser.add_argument("--upgrade", action="store_const", const=["--upgrade"], default=[])
    options = parser.parse_args(arguments).upgrade
    files = {LOCKS / f"{name}.txt": lock for name, lock in of_project(*options).items()}
    files |= {one.lock: of_environment(one, *options) for one in environments.ALL}
    for path, lock in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text("# Written by `make locks`.\n" + "".join(lock[name] for name in sorted(lock)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
