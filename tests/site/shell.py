"""Runs commands in the folder of the project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(
    *command: str | Path, cwd: Path = ROOT, input: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command, and return what it wrote; it has ten minutes."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | environment,
        input=input,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
