"""Stores what the site and the ledger take from runs of experiments: ``python docs/pictures.py build/reproduced``.

Of each result below the folder, ``spec/experiments/`` gets the statements with the numbers of each seed, without the
cells, and ``docs/assets/experiments/`` the pictures as SVG. A result whose verdicts do not follow from its numbers, of
an unknown experiment or preset, without a picture, or of the same run as another is refused; nothing is stored then.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec.errors import ParameterError
from secagg_spec.experiments import catalogue, results

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Store the results in the folder that is named; 0 when done, 2 when there are none, or one cannot be used."""
    if len(arguments) != 1:
        print("usage: python docs/pictures.py FOLDER, which secagg-spec reproduce --out FOLDER wrote", file=sys.stderr)
        return 2
    paths = sorted(Path(arguments[0]).glob("*/results.json"))
    if not paths:
        print(f"docs/pictures.py: there is no result in {arguments[0]}", file=sys.stderr)
        return 2
    try:
        found = [(path.parent, results.read(path)) for path in paths]
        check(found)
    except ParameterError as error:
        print(f"docs/pictures.py: {error}", file=sys.stderr)
        return 2
    for folder, content in found:
        print(f"{name(content)}: {store(folder, content, root)} pictures")
    return 0


def check(found: Sequence[tuple[Path, Mapping[str, Any]]]) -> None:
    """Refuse results, each with its folder, that the site cannot take.

    Raises
    ------
    ParameterError
        There is no such experiment or preset, a folder has no picture, or two have results with one name.
    """
    seen: dict[str, Path] = {}
    for folder, content in found:
        catalogue.settings(catalogue.load(content["experiment"]), content["preset"])
        if not any(folder.glob("*.svg")):
            raise ParameterError("pictures", str(folder), "a folder with the pictures of its results, as SVG")
        if (other := seen.setdefault(name(content), folder)) != folder:
            raise ParameterError("results", str(folder), f"no second {name(content)} beside {other}")


def name(content: Mapping[str, Any]) -> str:
    """Return the name of a stored result: that of the experiment, and of the preset where it is not the default."""
    preset = content["preset"]
    return str(content["experiment"]) + ("" if preset == "default" else f"-{preset}")


def store(folder: Path, content: Mapping[str, Any], root: Path) -> int:
    """Store one result and its pictures in the place of the old ones; return how many pictures there are."""
    whole = root / "spec" / "experiments" / f"{name(content)}.json"
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_text(json.dumps({**content, "results": []}, indent=1) + "\n", encoding="utf-8")
    assets = root / "docs" / "assets" / "experiments"
    assets.mkdir(parents=True, exist_ok=True)
    for old in assets.glob(f"{name(content)}.*.svg"):
        old.unlink()
    pictures = sorted(folder.glob("*.svg"))
    for picture in pictures:
        shutil.copyfile(picture, assets / f"{name(content)}.{picture.name}")
    return len(pictures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
