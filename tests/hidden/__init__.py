"""Runs commands as if nothing were installed but the project and what its locks have for some extras."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TypedDict

from packaging.utils import canonicalize_name

from tests import locks


class Environment(TypedDict):
    """What a command is started with: the names that are hidden, and where what hides them is found."""

    HIDDEN: str
    PYTHONPATH: str


@cache
def without(*extras: str) -> Environment:
    """Return the environment in which a command sees the core and these extras alone; see ``sitecustomize.py``."""
    names = [locks.CORE, *extras, *((locks.CPU, locks.CUDA) if locks.TRAIN in extras else ())]
    pinned = {package for name in names for package in locks.blocks((locks.LOCKS / f"{name}.txt").read_text())}
    seen = {"secagg-spec", "pip", *pinned}
    given = packages_distributions()
    modules = [module for module, owners in given.items() if not seen & set(map(canonicalize_name, owners))]
    owners = {owner for owners in given.values() for owner in owners if canonicalize_name(owner) not in seen}
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"HIDDEN": json.dumps([sorted(modules), sorted(owners)]), "PYTHONPATH": path}
