"""Hypothesis profiles: `HYPOTHESIS_PROFILE` is ``quick``, ``default`` or ``thorough``."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

EXAMPLES = {"quick": 10, "default": 60, "thorough": 1000}
_DATABASE = Path(__file__).parents[1] / ".hypothesis" / "examples"

for _name, _count in EXAMPLES.items():
    settings.register_profile(
        _name,
        max_examples=_count,
        deadline=None,
        print_blob=True,
        derandomize=False,
        database=DirectoryBasedExampleDatabase(_DATABASE),
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
