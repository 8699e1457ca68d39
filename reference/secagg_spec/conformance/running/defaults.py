"""The defaults of a run: time limits, and the folder for Hypothesis's tables."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

from secagg_spec.conformance.adapter.connection import START_SECONDS

SECONDS = 10.0


def waits(timeout: float, start_timeout: float) -> list[str]:
    """Return the time-outs that are not the defaults as options; a replay with them waits as long."""
    words = ["--timeout", f"{timeout:g}"] if timeout != SECONDS else []
    return words + (["--start-timeout", f"{start_timeout:g}"] if start_timeout != START_SECONDS else [])


def leave_the_folder_alone() -> None:
    """Make Hypothesis store its tables of characters in the user's cache instead of the current folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with contextlib.suppress(OSError, RuntimeError):
        set_hypothesis_home_dir(cache / "secagg-spec")
