"""The page of benchmarks shows the stored figures, and the build stops where these are not those of the code."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docs.pages import benchmarks as page
from docs.pages.common import BENCHMARKS, SiteError
from tests.benchmarks import catalogue, stored
from tests.benchmarks.record import met
from tests.quick import part

RECORDS: Mapping[str, Mapping[str, Any]] = {one["id"]: one for one in stored.load()["records"]}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Let the page find a changed file."""

    def change(edit: Callable[[dict[str, Any]], object]) -> Path:
        content = json.loads(stored.FILE.read_text(encoding="utf-8"))
        edit(content)
        path = tmp_path / "benchmarks.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        load = stored.load
        monkeypatch.setattr(stored, "load", lambda: load(path))
        return tmp_path

    return change


def text() -> str:
    """The page."""
    return page.page(page.known())


def row(whole: str, name: str) -> str:
    """The row of a benchmark."""
    found = re.search(rf'<tr id="{name}">.*?</tr>', whole)
    assert found is not None, name
    return found.group()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda content: content["records"].pop(), "has 0 records of"),
        (
            lambda content: content["records"].append({**content["records"][0], "id": "new"}),
            "new, which is no benchmark",
        ),
        (lambda content: content.update(version="0.0.1"), "tells of version 0.0.1"),
        (lambda content: content["records"][0]["sizes"].update(d=7), "sizes of encoding-time is"),
        (lambda content: content["records"][0].update(ratio={}), "is missing"),
    ],
)
def test_a_file_that_is_out_of_date_stops_the_build(
    planted: Callable[..., Path], edit: Callable[[dict[str, Any]], object], said: str
) -> None:
    out = planted(edit)
    with pytest.raises(SiteError, match=said):
        page.write_benchmarks(out)
    assert not (out / BENCHMARKS).exists()


def test_every_module_has_a_title() -> None:
    assert list(page.TITLES) == list(catalogue.GROUPS)


@pytest.mark.parametrize("name", part(4, RECORDS))
def test_a_row_tells_what_is_compared_on_which_work_and_what_came_out(name: str) -> None:
    record, report = RECORDS[name], unescape(row(text(), name)).replace("\N{NO-BREAK SPACE}", " ")
    assert record["what"] in report
    assert record["beside"] in report
    for size, value in record["sizes"].items():
        assert (
            f"<code>{size} = {value:,}</code>" in report if isinstance(value, int) else f"{size} = {value}<" in report
        )
    assert ("met" if met(record) else "missed") in report if "aim" in record else '"aim">' in report
    assert ("withdrawn: " in report) == ("withdrawn" in record)
    assert record.get("withdrawn", "") in report
    assert f"{record['turns']} turn" in report


def test_a_missed_aim_is_shown_as_missed_and_named_above(planted: Callable[..., Path]) -> None:
    def slower(content: dict[str, Any]) -> None:
        content["records"][0]["ratio"] = {"median": 3.9, "low": 1.25, "high": 4.5}

    planted(slower)
    report = text()
    first = row(report, "encoding-time")
    assert "<strong>3.9 (1.25 to 4.5)</strong>" in first
    assert 'at least 4 <span class="verdict refuted">missed</span>' in first
    assert "[encoding-time](#encoding-time)" in report


def test_a_picture_puts_ratios_and_aim_on_a_logarithmic_scale() -> None:
    record = {"ratio": {"median": 10.0, "low": 1.0, "high": 100.0}, "measures": "count"}
    aimed = {**record, "aim": {"relation": "at least", "bound": 1000.0, "of": "ratio"}}
    scale = page.Scale.of([aimed])
    assert (scale.low, scale.high) == (0, 3)
    places = [scale.at(value) for value in (1, 10, 100, 1000)]
    assert places == sorted(places)
    assert all(math.isclose(after - before, places[1] - places[0], abs_tol=0.2) for before, after in pairwise(places))
    picture = scale.picture(aimed)
    assert 'aria-label="median 10, from 1 to 100, aim at least 1,000"' in picture
    assert f'cx="{places[1]}"' in picture
    assert f'd="M{places[0]} 9H{places[2]}"' in picture
    assert f'd="M{places[3]} 2V16"' in picture
    assert 'class="aim"' not in scale.picture(record)


def test_a_scale_has_the_one_and_few_marks() -> None:
    for low, high in ((0.01, 0.5), (3.0, 8.0), (1e-3, 1e6), (1.0, 1.0)):
        scale = page.Scale.of([{"ratio": {"median": low, "low": low, "high": high}}])
        assert scale.low <= 0 <= scale.high
        assert 0 in scale._powers()
        assert 2 <= len(scale._powers()) <= 7
        assert scale.low <= min(scale._powers())


def test_the_page_says_what_it_was_measured_with() -> None:
    content = stored.load()
    report = text()
    for name, value in content["environment"].items():
        assert f"{name} {value}" in report
    assert f"secagg-spec {content['version']}" in report


def test_each_table_has_the_head_of_its_columns() -> None:
    groups = text().partition("## Growth")[0]
    found = re.findall(r'<th scope="col">(.*?)</th>', groups)
    assert found == list(page.COLUMNS) * (len(found) // len(page.COLUMNS))
    assert len(found) == len(page.COLUMNS) * groups.count("<table>")
