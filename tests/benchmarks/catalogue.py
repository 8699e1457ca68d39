"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.benchmarks import (
    basa,
    basecagg,
    encoding,
    heterosag,
    kit,
    participation,
    privacy,
    rounds,
    secagg,
    selection,
    training,
)
from tests.benchmarks.record import Benchmark

GROUPS: Mapping[str, tuple[Benchmark, ...]] = {
    "encoding": encoding.BENCHMARKS,
    "secagg": secagg.BENCHMARKS,
    "rounds": rounds.BENCHMARKS,
    "basecagg": basecagg.BENCHMARKS,
    "basa": basa.BENCHMARKS,
    "heterosag": heterosag.BENCHMARKS,
    "selection": selection.BENCHMARKS,
    "participation": participation.BENCHMARKS,
    "privacy": privacy.BENCHMARKS,
    "training": training.BENCHMARKS,
    "kit": kit.BENCHMARKS,
}
"""The benchmarks of each module, in the order in which they are shown."""
BENCHMARKS: Mapping[str, Benchmark] = {one.id: one for group in GROUPS.values() for one in group}


class UnknownName(Exception):
    """There is no benchmark and no module of that name; the message says which there are."""


def chosen(names: Iterable[str]) -> list[Benchmark]:
    """Return the benchmarks that are named, by their id or by their module; all where none is named.

    Raises
    ------
    UnknownName
        A name is neither.
    """
    wanted = set(names) or set(GROUPS)
    unknown = sorted(wanted - {*GROUPS, *BENCHMARKS})
    if unknown:
        raise UnknownName(
            f"there is no benchmark {unknown[0]}; there are the modules {', '.join(GROUPS)}, "
            f"and of each the benchmarks that --list shows"
        )
    return [one for module, group in GROUPS.items() for one in group if wanted & {module, one.id}]
