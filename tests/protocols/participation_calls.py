"""One valid call of every public function that reads a log of participation, or is exact on its rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from secagg_spec.selection import participation
from secagg_spec.selection.participation import Roster, of_sets

CALLS: Mapping[str, tuple[Any, ...]] = {
    "of_sets": (of_sets, {"rounds": [[0, 1], [1, 2]], "first": 3}, {"roster": Roster(3)}),
    "whole_number": (participation.whole_number, {"text": "17"}),
    "Roster.named": (Roster.named, {"names": ["Ann", "Bob"]}),
    "Roster.name": (Roster.named(["Ann", "Bob"]).name, {"user": 1}),
    "Roster.number": (Roster.named(["Ann", "Bob"]).number, {"name": "Bob"}),
}
MODULES: tuple[ModuleType, ...] = (participation,)
