"""Hides from this process, and from all that it starts, the modules and distributions that `HIDDEN` names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from types import ModuleType

MODULES, DISTRIBUTIONS = map(frozenset, json.loads(os.environ["HIDDEN"]))


class Finder(PathFinder):
    """Finds what Python finds, save what is hidden."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, if it is not hidden."""
        return None if fullname.partition(".")[0] in MODULES else super().find_spec(fullname, path, target)

    @staticmethod
    def find_distributions(context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:  # type: ignore[override]
        """Return the distributions that are not hidden."""
        found = MetadataPathFinder.find_distributions(context or DistributionFinder.Context())
        return (one for one in found if one.metadata["Name"] not in DISTRIBUTIONS)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
