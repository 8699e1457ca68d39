"""The page of benchmarks: the stored figures, which have to be those of the benchmarks in the code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from tests.benchmarks import catalogue, stored
from tests.benchmarks.record import met
from tests.benchmarks.words import cost, found, number, ratio, wanted

from docs.pages import growth
from docs.pages.common import BENCHMARKS, SiteError, write
from docs.pages.markup import link, stacked

TITLES = {
    "encoding": "Encoding masks",
    "secagg": "SecAgg",
    "rounds": "Whole rounds of a thousand users",
    "basecagg": "BASecAgg",
    "basa": "BASA",
    "heterosag": "HeteroSAg",
    "selection": "Choosing users",
    "participation": "Audits of participation",
    "privacy": "Verdicts on privacy",
    "training": "Training many users",
    "kit": "The kit",
}
PAGES = {"basa": "explanation/basa-costs.md", "heterosag": "explanation/heterosag-costs.md"}
"""Pages that say more on the figures of a group."""
BADGES = {True: "confirmed", False: "refuted"}
INTRODUCTION = """\
What the reference costs, always as a ratio: two pieces of work, mostly the same one done in two
ways, are done in one run and take turns, and a figure is
how many times as much the first costs as the second. Below 1 the first is the cheaper one.

**What these figures are worth.** They are of one machine with two cores and little else to do. On a busy one many
medians come out more than a tenth away, elapsed times of the kit most of all. So a ratio carries over to other
machines roughly, and seconds do not: they stand in small print alone. Each ratio is the median of the turns, followed
by the least and the greatest of them: where these lie far apart, trust it less. The small print has the median of
each side by itself, so that their quotient may be another one. The picture below it shows the three on a logarithmic
scale: a dot for the median, a bar from the least to the greatest, and a stroke where an aim is. Bits and masks are
counted, and come out the same everywhere. An aim is what the project had wanted before it measured; it is judged by
the median. An aim that measuring showed to be wrong is withdrawn, with the reason. The reference is written to be
read, and none of this is a test.
"""
COLUMNS = ("compared", "work", "how many times as much", "aim")


def write_benchmarks(out: Path) -> None:
    """Write the page of benchmarks.

    Raises
    ------
    SiteError
        The stored figures are not those of the benchmarks in the code.
    """
    write(out / BENCHMARKS, page(known()))


def known() -> Mapping[str, Any]:
    """Return the stored figures.

    Raises
    ------
    SiteError
        They are not those of the benchmarks in the code.
    """
    try:
        return stored.load()
    except stored.OutOfDate as error:
        raise SiteError(str(error)) from None


def page(content: Mapping[str, Any]) -> str:
    """Return the page, in Markdown."""
    records = {record["id"]: record for record in content["records"]}
    parts = ["# Benchmarks\n", INTRODUCTION, _summary(list(records.values())), _machine(content), _again()]
    for name, benchmarks in catalogue.GROUPS.items():
        parts += _group(name, [records[one.id] for one in benchmarks])
    parts += growth.section(records)
    return "\n".join(parts)


def _summary(records: Sequence[Mapping[str, Any]]) -> str:
    judged = [record for record in records if met(record) is not None]
    missed = ", ".join(f"[{record['id']}](#{record['id']})" for record in judged if not met(record))
    summary = f"Of {len(judged)} benchmarks with an aim, {sum(map(bool, map(met, judged)))} meet it"
    gone = sum("withdrawn" in record for record in records)
    return f"{summary}{f'; missed: {missed}' if missed else ''}. The aims of {gone} more were withdrawn.\n"


def _machine(content: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in content["environment"].items())
    return f"Measured with secagg-spec {content['version']} ({versions}).\n"


def _again() -> str:
    return (
        "## Measure again\n\n```sh\nmake bench\n.venv/bin/python -m tests.benchmarks encoding secagg-masking\n```\n\n"
        "The first line runs all and stores what this page shows, in `docs/benchmarks/records.json`; the second runs "
        "one module and one benchmark, and stores nothing. The name of a benchmark stands below what it compares. A "
        "stored file that lacks a benchmark, or tells of another size or version, stops the build of this page.\n"
    )


def _group(name: str, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the section of one module."""
    yield f"## {TITLES[name]} {{ #{name} }}\n"
    if name in PAGES:
        yield f"<p>{link(PAGES[name], BENCHMARKS, 'What these costs are made of.')}</p>\n"
    scale = Scale.of(records)
    rows = "\n".join(_row(record, scale) for record in records)
    yield f'<div class="benchmarks">\n{stacked(COLUMNS, rows)}\n</div>\n'


def _row(record: Mapping[str, Any], scale: Scale) -> str:
    cells = (_work(record), _found(record, scale), _aim(record))
    rest = "".join(f'<td data-of="{name}">{cell}</td>' for name, cell in zip(COLUMNS[1:], cells, strict=True))
    return f'<tr id="{record["id"]}"><th scope="row">{_compared(record)}</th>{rest}</tr>'


def _compared(record: Mapping[str, Any]) -> str:
    what, beside = (escape(record[side], quote=False) for side in ("what", "beside"))
    return f"{what} <em>beside:</em> {beside} <code>{record['id']}</code>"


def _work(record: Mapping[str, Any]) -> str:
    sizes = (f"{name}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{_size(value)}" for name, value in record["sizes"].items())
    return " ".join(f"<code>{escape(size, quote=False)}</code>" for size in sizes)


def _size(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _found(record: Mapping[str, Any], scale: Scale) -> str:
    costs = f"{record['measures']}: {cost(record, 'what')} beside {cost(record, 'beside')}"
    return f"<strong>{ratio(record)}</strong> {scale.picture(record)} <small>{costs}; {_turns(record)}</small>"


def _turns(record: Mapping[str, Any]) -> str:
    return f"{record['turns']} turns" if record["turns"] > 1 else "1 turn"


def _aim(record: Mapping[str, Any]) -> str:
    judged = met(record)
    if judged is None:
        gone = record.get("withdrawn", "")
        return f"withdrawn: <small>{escape(gone, quote=False)}</small>" if gone else "none"
    side = record["aim"]["of"]
    words = wanted(record) if side == "ratio" else f"{wanted(record)} for the {'first' if side == 'what' else 'second'}"
    return f'{words} <span class="verdict {BADGES[judged]}">{found(record)}</span>'


# ----------------------------------------------------------------------------------------------------------- pictures

WIDTH, EDGE, HEIGHT = 200, 12, 30


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale from one power of ten to another, with 1 on it."""

    low: int
    high: int

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> Scale:
        """Return the scale on which all ratios, and aims of ratios, have a place."""
        numbers = [value for record in records for value in (*record["ratio"].values(), *_bounds(record))]
        lowest, highest = (math.log10(end(1.0, *numbers)) for end in (min, max))
        return cls(math.floor(lowest), max(math.ceil(highest), math.floor(lowest) + 1))

    def at(self, value: float) -> float:
        """Return where a ratio stands, from the left."""
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(EDGE + part * (WIDTH - 2 * EDGE), 1)

    def picture(self, record: Mapping[str, Any]) -> str:
        """Return the picture of a record, in which a reader of the screen finds the same in words."""
        spread = record["ratio"]
        low, dot, high = (self.at(spread[name]) for name in ("low", "median", "high"))
        drawn = (
            f'<path class="axis" d="M{EDGE} 14H{WIDTH - EDGE}"/>{"".join(map(self._tick, self._powers()))}'
            f'<path class="range" d="M{low} 9H{high}"/><circle cx="{dot}" cy="9" r="3.5"/>'
            + "".join(f'<path class="aim" d="M{self.at(bound)} 2V16"/>' for bound in _bounds(record))
        )
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
        return f'<svg role="img" aria-label="{_told(record)}" {size}>{drawn}</svg>'

    def _powers(self) -> range:
        """Return the powers of ten that are marked, 1 among them."""
        step = math.ceil((self.high - self.low) / 5)
        return range(-step * (-self.low // step), self.high + 1, step)

    def _tick(self, power: int) -> str:
        at = self.at(10.0**power)
        return f'<path class="axis" d="M{at} 11V17"/><text x="{at}" y="28">{_power(power)}</text>'


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:.{-power}f}"


def _bounds(record: Mapping[str, Any]) -> list[float]:
    """Return the aim of the ratio, where there is one."""
    return [record["aim"]["bound"]] if record.get("aim", {}).get("of") == "ratio" else []


def _told(record: Mapping[str, Any]) -> str:
    """Return what the picture of a record shows, in words."""
    ends = [number(record["ratio"][name]) for name in ("low", "high")]
    aim = "".join(f", aim {wanted(record)}" for _ in _bounds(record))
    return f"median {number(record['ratio']['median'])}, from {ends[0]} to {ends[1]}{aim}"
