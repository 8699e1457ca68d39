"""Every lock fits what it is for, has a hash for each package, and says nothing of where packages come from."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from secagg_spec.conformance.targets import environments
from tests import locks

FILES = [*sorted(locks.LOCKS.glob("*.txt")), *(one.lock for one in environments.ALL)]
HASHES = r"(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+"
LINES = re.compile(rf"# Written by `make locks`\.\n(?:[a-z0-9-]+==[0-9][a-z0-9.+]* (?:; .+ )?\\\n{HASHES})+")


def pins(*paths: Path) -> dict[str, Requirement]:
    """Return what some locks pin, by name."""
    found = (
        Requirement(block.partition("\\")[0]) for path in paths for block in locks.blocks(path.read_text()).values()
    )
    return {canonicalize_name(pin.name): pin for pin in found}


def of(name: str) -> dict[str, Requirement]:
    """Return what is pinned beside and in the core for an extra."""
    beside = [locks.CPU, locks.CUDA] if name == locks.TRAIN else []
    return pins(*(locks.LOCKS / f"{one}.txt" for one in (locks.CORE, name, *beside)))


def meets(pinned: dict[str, Requirement], requirement: str) -> bool:
    """Return whether a requirement, where it applies, is pinned to a version that it allows."""
    wanted = Requirement(requirement)
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return True
    pin = pinned.get(canonicalize_name(wanted.name))
    return pin is not None and wanted.specifier.contains(next(iter(pin.specifier)).version, prereleases=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_lock_has_names_versions_and_hashes_and_nothing_else(path: Path) -> None:
    assert LINES.fullmatch(path.read_text())


def test_there_is_a_lock_for_the_core_and_for_each_extra() -> None:
    assert {path.stem for path in locks.LOCKS.iterdir()} == {*locks.wanted(), locks.CPU, locks.CUDA}


@pytest.mark.parametrize("name", locks.wanted())
def test_a_lock_pins_what_pyproject_asks_for(name: str) -> None:
    assert [one for one in locks.wanted()[name] if not meets(of(name), one)] == []


@pytest.mark.parametrize("name", locks.wanted())
def test_a_lock_has_what_its_packages_need(name: str) -> None:
    pinned = of(name)
    for package in pinned:
        try:
            needed = requires(package) or []
        except PackageNotFoundError:
            continue
        assert [one for one in needed if not meets(pinned, one)] == [], package


@pytest.mark.parametrize("chosen", environments.ALL, ids=lambda chosen: chosen.name)
def test_an_environment_has_the_software_and_what_it_needs(chosen: environments.Environment) -> None:
    pinned = pins(chosen.lock)
    assert [one for one in (chosen.software, *chosen.needs) if not meets(pinned, one)] == []


def test_the_build_for_cpus_is_of_the_version_that_is_asked_for() -> None:
    [torch] = [one for one in locks.wanted()[locks.TRAIN] if one.startswith("torch==")]
    assert {torch.partition("==")[2]} == set(locks.CPU_BUILDS)


def test_make_installs_nothing_but_locks_and_the_project() -> None:
    lines = (locks.ROOT / "Makefile").read_text().splitlines()
    assert [line for line in lines if re.search(r"\binstall -", line)] == [
        "LOCKED := $(PIP) install --no-deps --only-binary=:all: --require-hashes",
        "\t$(PIP) install --no-deps --no-build-isolation -e .",
    ]
