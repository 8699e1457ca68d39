"""KaTeX, which renders the formulas: its style, scripts and fonts."""

from __future__ import annotations

import shutil
from pathlib import Path

from docs.pages import npm
from docs.pages.common import ROOT, SiteError

KATEX = npm.Package(
    name="katex",
    version="0.16.47",
    sha512="Eeo8Ys1doU1z+x8AZsPpQu+p/QcZBI5PeOo7QGQdy2x2m0MU/hYagBbGOmXwr5KVbEfVuWv9LpnQWeehogurjg==",
    purpose="which renders the formulas (or give --katex-from DIR)",
    kept=("dist/", "LICENSE"),
)
KATEX_FILES = ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js")


def found(given: Path | None) -> Path:
    """Return the folder with the files of KaTeX: in the package that is given, else in ``build/``, else from npm.

    Raises
    ------
    SiteError
        The package is none of KaTeX, or npm cannot fetch it.
    """
    package = given or npm.fetch(KATEX, ROOT / "build")
    source = package / "dist" if (package / "dist").is_dir() else package
    missing = [name for name in (*KATEX_FILES, "fonts") if not (source / name).exists()]
    if missing:
        raise SiteError(f"{package} is not an unpacked KaTeX package: {missing[0]} is missing")
    return source


def write_katex(out: Path, source: Path) -> None:
    """Copy the style, the scripts and the fonts of KaTeX into the assets."""
    target = out / "assets" / "katex"
    for name in KATEX_FILES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
    shutil.copytree(source / "fonts", target / "fonts", dirs_exist_ok=True)
