"""The figures of a record in words, as the runner prints them and the site shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.benchmarks.record import UNITS, met

_TIMES = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))


def number(value: float) -> str:
    """Return a number with three digits, and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(record: Mapping[str, Any]) -> str:
    """Return the median ratio, and its range where there is one: ``11.3 (10.1 to 12)``."""
    spread = record["ratio"]
    ends = f" ({number(spread['low'])} to {number(spread['high'])})" if spread["low"] < spread["high"] else ""
    return number(spread["median"]) + ends


def cost(record: Mapping[str, Any], side: str) -> str:
    """Return what one side cost, with its unit."""
    return amount(record["cost"][side], UNITS[record["measures"]])


def amount(value: float, unit: str) -> str:
    """Return an amount in the largest unit of which there is one."""
    units = _TIMES if unit == "s" else _BYTES if unit == "bytes" else ((1, unit),)
    scale, name = next((pair for pair in units if value >= 0.9995 * pair[0]), units[-1])
    return f"{number(value / scale)} {name}".strip()


def wanted(record: Mapping[str, Any]) -> str:
    """Return the aim of a record: ``at least 4``."""
    aim = record["aim"]
    bound = number(aim["bound"]) if aim["of"] == "ratio" else amount(aim["bound"], UNITS[record["measures"]])
    return f"{aim['relation']} {bound}"


def found(record: Mapping[str, Any]) -> str:
    """Return whether the aim of a record is met."""
    return "met" if met(record) else "missed"
