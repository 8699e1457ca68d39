"""The section on growth says what is stored, and explains each exponent that is far from the text's."""

from __future__ import annotations

import re
from html import unescape

import pytest
from docs.pages import growth
from tests.benchmarks import stored

from secagg_spec.planning.choices import PROTOCOLS

RECORDS = {one["id"]: one for one in stored.load()["records"]}


def text() -> str:
    """The section."""
    return unescape("\n".join(growth.section(RECORDS)))


def test_every_party_has_its_exponents_and_its_memory() -> None:
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>', text())
    parties = [growth._name(*party) for party in growth._parties()]
    assert rows == [*parties, *parties, *(PROTOCOLS[kind].title for kind in growth.TEXT)]
    assert {kind for kind, _ in growth._parties()} == {*growth.TEXT, "multi-round"} == set(PROTOCOLS)


def test_every_exponent_that_is_far_from_the_text_is_explained() -> None:
    found = text()
    assert growth.outliers()
    for outlier in growth.outliers():
        assert f"*: {growth.EXPLAINED[outlier]}" in found


def test_an_exponent_is_the_slope_of_what_is_stored() -> None:
    assert growth.exponent(((1, 5.0), (2, 3.0), (4, 6.0), (8, 12.0))) == pytest.approx(1.0)
    assert growth.Exponent(1.4, 2).outlier
    assert not growth.Exponent(1.6, 2).outlier


def test_the_picture_has_a_line_for_each_protocol_and_party() -> None:
    picture = growth.picture()
    assert picture.count("<polyline") == 2 * len(growth.TEXT)
    for kind in growth.TEXT:
        assert picture.count(f">{PROTOCOLS[kind].title}</text>") == 1
    heights = [float(y) for points in re.findall(r'points="(.*?)"', picture) for y in re.findall(r",([\d.]+)", points)]
    assert all(0 <= y <= growth.HEIGHT for y in heights)


def test_a_large_server_is_told_in_seconds_and_bytes_or_ruled_out() -> None:
    beyond = text().partition("### Beyond one machine")[2]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', beyond)
    assert len(rows) == len(growth.TEXT)
    assert all(re.search(r">[\d,]+<.*B, .*B<", row) or "no choice: " in row for _, row in rows)
    assert any("no choice" not in row for _, row in rows)
