"""What a run does without an option: how long it waits, and where Hypothesis keeps its tables."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

from secagg_spec.conformance.adapter.connection import START_SECONDS

SECONDS = 10.0


def waits(timeout: float, start_timeout: float) -> list[str]:
    """Return the time-outs as options, those that are not the defaults, so that a replay waits as long."""
    words = ["--timeout", f"{timeout:g}"] if timeout != SECONDS else []
    return words + (["--start-timeout", f"{start_timeout:g}"] if start_timeout != START_SECONDS else [])


def leave_the_folder_alone() -> None:
    """Let Hypothesis keep its tables of characters in the user's cache, and not in the current folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with contextlib.suppress(OSError, RuntimeError):
        set_hypothesis_home_dir(cache / "secagg-spec")
