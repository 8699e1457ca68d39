"""KaTeX, which renders the formulas: its style, scripts and fonts."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import posixpath
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from docs.pages.common import ROOT, SiteError

KATEX_VERSION = "0.16.47"
KATEX_SHA512 = "Eeo8Ys1doU1z+x8AZsPpQu+p/QcZBI5PeOo7QGQdy2x2m0MU/hYagBbGOmXwr5KVbEfVuWv9LpnQWeehogurjg=="
KATEX_FILES = ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js")


def write_katex(out: Path, given: Path | None) -> None:
    """Copy the style, the scripts and the fonts of KaTeX into the assets."""
    package = given or fetch_katex(ROOT / "build" / f"katex-{KATEX_VERSION}")
    source = package / "dist" if (package / "dist").is_dir() else package
    missing = [name for name in (*KATEX_FILES, "fonts") if not (source / name).exists()]
    if missing:
        raise SiteError(f"{package} is not an unpacked KaTeX package: {missing[0]} is missing")
    target = out / "assets" / "katex"
    for name in KATEX_FILES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)
    shutil.copytree(source / "fonts", target / "fonts", dirs_exist_ok=True)


def fetch_katex(folder: Path) -> Path:
    """Return `folder` with the pinned package unpacked in it; it is fetched by npm when it is not there."""
    if folder.is_dir():
        return folder
    archive = _npm_pack(f"katex@{KATEX_VERSION}")
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != KATEX_SHA512:
        raise SiteError(f"the package that npm gave for katex@{KATEX_VERSION} is not the pinned one (SHA-512 differs)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        unpacked = Path(scratch, "katex")
        _unpack(archive, unpacked)
        with contextlib.suppress(OSError):  # another run has put it there in the meantime
            unpacked.rename(folder)
    return folder


def _npm_pack(package: str) -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise SiteError(f"npm is missing: it fetches {package}, which renders the formulas (or give --katex-from DIR)")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", "--loglevel=error", "--fetch-retries=1", "--pack-destination", scratch, package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        archives = list(Path(scratch).glob("*.tgz"))
        if done.returncode or not archives:
            reason = next((line for line in done.stderr.splitlines() if "error" in line.lower()), "no reason given")
            raise SiteError(f"npm could not fetch {package}: {reason.strip()}")
        return archives[0].read_bytes()


def _unpack(archive: bytes, folder: Path) -> None:
    """Write the files of ``package/dist`` and the licence; nothing is taken that would stand elsewhere."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar.getmembers():
            name = posixpath.normpath(member.name).removeprefix("package/")
            if member.isfile() and (name.startswith("dist/") or name == "LICENSE"):
                content = tar.extractfile(member)
                assert content is not None
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())
