"""Packages that npm fetches once: a pinned version, whose archive is checked."""

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
from typing import NamedTuple

from docs.pages.common import SiteError


class Package(NamedTuple):
    """A package of npm: its name, its version, the SHA-512 of its archive, what it is for, and what is kept of it."""

    name: str
    version: str
    sha512: str
    purpose: str
    kept: tuple[str, ...]


def fetch(package: Package, build: Path) -> Path:
    """Return the folder below `build` with the package unpacked in it; npm fetches it when it is not there.

    Raises
    ------
    SiteError
        There is no npm, it cannot fetch the package, or what it gives is not the pinned one.
    """
    folder = build / f"{package.name}-{package.version}"
    if folder.is_dir():
        return folder
    wanted = f"{package.name}@{package.version}"
    archive = _pack(wanted, package.purpose)
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != package.sha512:
        raise SiteError(f"the package that npm gave for {wanted} is not the pinned one (SHA-512 differs)")
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as scratch:
        unpacked = Path(scratch, package.name)
        _unpack(archive, unpacked, package.kept)
        with contextlib.suppress(OSError):  # another run has put it there in the meantime
            unpacked.rename(folder)
    return folder


def _pack(wanted: str, purpose: str) -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise SiteError(f"npm is missing: it fetches {wanted}, {purpose}")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", "--loglevel=error", "--fetch-retries=1", "--pack-destination", scratch, wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        archives = list(Path(scratch).glob("*.tgz"))
        if done.returncode or not archives:
            reason = next((line for line in done.stderr.splitlines() if "error" in line.lower()), "no reason given")
            raise SiteError(f"npm could not fetch {wanted}: {reason.strip()}")
        return archives[0].read_bytes()


def _unpack(archive: bytes, folder: Path, kept: tuple[str, ...]) -> None:
    """Write the files whose names begin as asked; nothing is taken that would stand elsewhere."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar.getmembers():
            name = posixpath.normpath(member.name).removeprefix("package/")
            if member.isfile() and name.startswith(kept):
                content = tar.extractfile(member)
                assert content is not None
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())
