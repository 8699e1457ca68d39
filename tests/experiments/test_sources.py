"""A kept cell is used only while the source that computes it is unchanged, in whichever module it stands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from secagg_spec.experiments import catalogue, sources, sweeps
from secagg_spec.experiments.experiment import Context
from secagg_spec.experiments.sweeps import Sweep
from tests.experiments.test_sweeps import Ear
from tests.quick import part

CELL = {"seed": 0}
SOURCES = {
    "__init__.py": "",
    "study.py": "from changing.parts import near\nfrom tests.experiments import toy\n\n\n"
    "def run(cell, context):\n    from changing.parts.late import FACTOR\n    return {'x': near.BASE * FACTOR}\n\n\n"
    "EXPERIMENTS = (toy.experiment(name='changes', run=run),)\n",
    "other.py": "X = 1\n",
    "parts/__init__.py": "",
    "parts/near.py": "import changing.parts.far\n\nBASE = changing.parts.far.BASE\n",
    "parts/far.py": "BASE = 2\n",
    "parts/late.py": "FACTOR = 3\n",
}
"""A package with an experiment, by file; nothing in it imports `other`."""
MODULE = "changing.study"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the package, which can be imported."""
    folder = tmp_path / "changing"
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "changing"]:
        del sys.modules[name]


def kept(folder: Path) -> tuple[int, float]:
    """How many cells of a sweep were kept before it, and what its cell gives."""
    ear = Ear()
    found = sweeps.run(Sweep(MODULE, "changes", [CELL], {}, Context(), folder / "cells"), ear, jobs=1)
    return ear.report[0][1], found.results[0].found["x"]


@pytest.mark.requirement("EXP-33")
@pytest.mark.parametrize("name", [name for name in SOURCES if name != "other.py"])
def test_a_cell_of_a_source_that_was_changed_is_not_used(package: Path, tmp_path: Path, name: str) -> None:
    assert [kept(tmp_path), kept(tmp_path)] == [(0, 6), (1, 6)]
    path = package / name
    path.write_text(path.read_text(encoding="utf-8") + "# mended\n", encoding="utf-8")
    assert [kept(tmp_path), kept(tmp_path)] == [(0, 6), (1, 6)]


@pytest.mark.requirement("EXP-33")
def test_a_cell_is_used_after_a_change_of_what_does_not_compute_it(package: Path, tmp_path: Path) -> None:
    assert kept(tmp_path) == (0, 6)
    (package / "other.py").write_text("X = 2\n", encoding="utf-8")
    (package / "new.py").write_text("X = 2\n", encoding="utf-8")
    assert kept(tmp_path) == (1, 6)


@pytest.mark.requirement("EXP-33")
def test_a_module_that_takes_the_name_of_another_is_a_change(package: Path) -> None:
    before = sources.digest(MODULE)
    near, far = package / "parts/near.py", package / "parts/far.py"
    texts = near.read_text(encoding="utf-8"), far.read_text(encoding="utf-8")
    near.write_text(texts[1], encoding="utf-8")
    far.write_text(texts[0], encoding="utf-8")
    assert sources.digest(MODULE) != before


@pytest.mark.slow
@pytest.mark.requirement("EXP-33")
@pytest.mark.parametrize("module", part(3, sorted(set(catalogue.MODULES.values()))))
def test_whatever_an_experiment_imports_counts(module: str) -> None:
    asked = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('secagg_spec')))"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert module in said.split()
    assert set(said.split()) <= set(sources.files(module))
