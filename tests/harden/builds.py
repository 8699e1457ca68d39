"""Wheel and source archive: built twice they are the same bytes, and in an empty environment the wheel is enough."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.harden.killed import ROOT, copied

KINDS = ("wheel", "sdist")
WITHOUT_EXTRAS = (
    ("vectors", "--target", "reference"),
    ("conform", "-k", "shamir", "--", "python", "-m", "secagg_spec.conformance.targets.reference"),
    ("simulate", "secagg"),
    ("privacy", "lightsecagg", "--preset", "tiny"),
    ("claims", "HET-THM1"),
    ("explain", "LSA-09"),
    ("plan", "--users", "100", "--dimension", "1e4"),
    ("selection", "--users", "12", "--per-round", "4", "--privacy", "2"),
    ("segments", "--groups", "5"),
)
"""Commands that the core dependencies are enough for; where a picture needs another package, the numbers come."""


def built(tree: Path, kind: str, out: Path) -> Path:
    """Build an archive from a tree, without an environment of its own, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (found,) = out.iterdir()
    return found


def same_bytes() -> Iterator[str]:
    """Yield what differs between two builds in two folders, with files of two ages."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (copied(Path(folder) / name / "tree") for name in ("a", "b b"))
        for path in second.rglob("*"):
            os.utime(path, (0, time.time() - 10**6))
        for kind in KINDS:
            digests = {
                hashlib.sha256(built(tree, kind, tree.parent / kind).read_bytes()).hexdigest()
                for tree in (first, second)
            }
            if len(digests) > 1:
                yield f"two builds of the {kind} differ"


def alone() -> Iterator[str]:
    """Yield which commands fail where only the wheel and the core dependencies are installed."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        wheel = built(copied(here / "tree"), "wheel", here / "dist")
        python = here / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(here / "env")], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps"]
        locked = ["--only-binary=:all:", "--require-hashes", "-r", str(ROOT / "locks" / "core.txt")]
        subprocess.run([*pip, *locked], check=True)
        subprocess.run([*pip, str(wheel)], check=True)
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = clean | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
        for words in WITHOUT_EXTRAS:
            done = subprocess.run(
                ["secagg-spec", *words], cwd=here, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                yield f"secagg-spec {' '.join(words)}: code {done.returncode}, {done.stderr.strip()[-200:]}"
        asked = subprocess.run(
            ["secagg-spec", "reproduce", "basecagg-fig1", "--preset", "tiny"],
            cwd=here, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if asked.returncode != 2 or "secagg-spec[train]" not in asked.stderr:
            yield f"training without its packages: code {asked.returncode}, {asked.stderr.strip()[-200:]}"
