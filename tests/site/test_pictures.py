"""What the site and the ledger take from runs is stored whole, or not at all."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.experiments import toy

from secagg_spec.cli import main
from secagg_spec.experiments import catalogue, results

SCRIPT = Path(__file__).parents[2] / "docs" / "pictures.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("pictures", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run of the toy."""
    monkeypatch.setattr(catalogue, "MODULES", toy.MODULES)
    assert main(["reproduce", "toy", "--jobs", "1", "--out", str(tmp_path / "reproduced")]) == 0
    return tmp_path / "reproduced"


@pytest.mark.slow
def test_statements_and_pictures_are_stored(script: Any, reproduced: Path, tmp_path: Path) -> None:
    assets = tmp_path / "docs" / "assets" / "experiments"
    assets.mkdir(parents=True)
    for name in ("toy.old.svg", "toy-fails.old.svg"):
        (assets / name).touch()
    assert script.main([str(reproduced)], tmp_path) == 0
    stored = results.read(tmp_path / "spec" / "experiments" / "toy.json")
    whole = results.read(reproduced / "toy" / "results.json")
    assert stored == {**whole, "results": []}
    assert sorted(path.name for path in assets.iterdir()) == ["toy-fails.old.svg", "toy.accuracy.svg"]
    assert (assets / "toy.accuracy.svg").read_bytes() == (reproduced / "toy" / "accuracy.svg").read_bytes()


def test_the_preset_is_in_the_name_unless_it_is_the_default(script: Any) -> None:
    names = [script.name({"experiment": "toy", "preset": preset}) for preset in ("default", "paper")]
    assert names == ["toy", "toy-paper"]


@pytest.mark.slow
def test_nothing_is_stored_when_a_verdict_does_not_follow(
    script: Any, reproduced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reproduced / "toy" / "results.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["statements"][0]["numbers"][0] = -1.0
    path.write_text(json.dumps(content), encoding="utf-8")
    assert script.main([str(reproduced)], tmp_path) == 2
    assert "what its numbers give" in capsys.readouterr().err
    assert not (tmp_path / "spec").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"preset": "../x"}, "preset of heterosag-fig10 = '../x': must be one of "),
        ({"experiment": "nope"}, "experiment = 'nope': must be one of "),
        ({"pictures": False}, "must be a folder with the pictures of its results, as SVG"),
        ({"twice": True}, ": must be no second heterosag-fig10 beside "),
    ],
)
def test_results_that_the_site_cannot_take_are_refused(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str
) -> None:
    content = json.loads((SCRIPT.parents[1] / "spec" / "experiments" / "heterosag-fig10.json").read_text("utf-8"))
    content |= {part: change[part] for part in ("preset", "experiment") if part in change}
    for folder in ("a", "b") if "twice" in change else ("a",):
        (tmp_path / "run" / folder).mkdir(parents=True)
        (tmp_path / "run" / folder / "results.json").write_text(json.dumps(content), encoding="utf-8")
        if change.get("pictures", True):
            (tmp_path / "run" / folder / "x.svg").touch()
    assert script.main([str(tmp_path / "run")], tmp_path / "site") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_a_folder_without_results_is_refused(script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([str(tmp_path)], tmp_path) == 2
    assert script.main([], tmp_path) == 2
    assert "there is no result in" in capsys.readouterr().err


def stored() -> list[Path]:
    """The results that are stored."""
    return sorted((SCRIPT.parents[1] / "spec" / "experiments").glob("*.json"))


@pytest.mark.slow
@pytest.mark.requirement("EXP-27", "EXP-28")
@pytest.mark.parametrize("path", stored(), ids=lambda path: path.stem)
def test_stored_results_are_those_of_experiments_and_have_their_pictures(script: Any, path: Path) -> None:
    content = results.read(path)
    experiment = catalogue.load(content["experiment"])
    assert path.stem == script.name(content)
    assert tuple(content["figures"]) == experiment.figures
    preset = catalogue.settings(experiment, content["preset"])
    assert content["asked"] == preset["seeds"]
    assert content["settings"] == json.loads(json.dumps(dict(preset)))
    parts = ("name", "claim", "measure", "relation", "bound")
    given = {tuple(getattr(one, part) for part in parts) for one in experiment.statements(preset)}
    assert {tuple(one[part] for part in parts) for one in content["statements"]} == given
    pictures = list((SCRIPT.parent / "assets" / "experiments").glob(f"{path.stem}.*.svg"))
    assert pictures or content["preset"] != "default"
