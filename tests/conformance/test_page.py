"""The report as a page, as a summary and as a badge: whole, self-contained, and harmless whatever an adapter wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import cli
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import document, page, page_content, page_difference, summaries
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running import chart
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import Settings, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, pack_reals
from tests.conformance import narrow
from tests.conformance.test_document import FAKE
from tests.quick import part

HOSTILE = str(Path(__file__).with_name("hostile_adapter.py"))
EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>|*`[a](javascript:x)"
VOID = {"meta", "input", "br", "img", "link"}


class Structure(HTMLParser):
    """Reads a page: its tags in order, whether they are balanced, its ids, its links and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def named(self, attribute: str) -> list[str]:
        """Return the values of an attribute."""
        return [
            value for _, attributes in self.tags for name, value in attributes.items() if name == attribute and value
        ]


def judged(folder: Path, fault: str = "wrong-value", adapter: str = FAKE) -> dict[str, Any]:
    """Return the report of a run on a fake adapter."""
    path = folder / "report.json"
    arguments = ["conform", "--fuzz", "5", "-k", "field.add", "--repro", str(folder / "repro"), "--json", str(path)]
    cli.main([*arguments, "--", sys.executable, adapter, fault])
    body: dict[str, Any] = json.loads(path.read_text())
    return body


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return judged(tmp_path_factory.mktemp("report"))


@pytest.mark.slow
def test_the_page_is_balanced_needs_nothing_else_and_says_what_failed(report: dict[str, Any]) -> None:
    text = page.html(report)
    structure = Structure(text)
    assert structure.open == []
    ids = structure.named("id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in structure.named("href")} <= set(ids)
    assert not structure.named("src")
    assert "http" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)
    said = " ".join(structure.text)
    for check in report["targets"][0]["checks"]:
        if check["failure"]:
            assert check["check"] in said
            assert check["failure"]["repro"] in said
    assert report["footer"]["digest"] in said


@pytest.mark.slow
def test_marks_have_words_and_tables_have_headers(report: dict[str, Any]) -> None:
    tags = Structure(page.html(report)).tags
    images = [attributes for tag, attributes in tags if tag == "span" and attributes.get("role") == "img"]
    assert images
    assert all(attributes.get("aria-label") for attributes in images)
    assert all(attributes.get("scope") for tag, attributes in tags if tag == "th")
    assert ("html", {"lang": "en"}) in tags
    assert any(attributes.get("name") == "viewport" for _, attributes in tags)


@pytest.mark.slow
def test_a_run_that_was_ended_says_so_everywhere(report: dict[str, Any]) -> None:
    cut = {name: value for name, value in report.items() if name != "footer"}
    assert "ended before it was complete" in page.html(cut)
    assert "ended before it was complete" in summaries.markdown(cut)
    assert summaries.badge(cut)["isError"]


def planted(report: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a report in which an adapter wrote a text wherever it can."""
    body: dict[str, Any] = json.loads(json.dumps(report))
    [target] = body["targets"]
    target["implementation"].update(name=text, version=text, language=text)
    for check in target["checks"]:
        if check["failure"]:
            check["failure"]["message"] = text
            check["failure"]["answers"] = [{"reject": {"code": "other", "message": text}}]
            check["failure"]["expected"] = text
    target["stale"] = [text]
    return body


@pytest.mark.slow
@pytest.mark.requirement("CNF-06")
@given(st.just(EVIL) | st.text(max_size=40))
def test_what_an_adapter_wrote_is_never_markup(report: dict[str, Any], text: str) -> None:
    body = planted(report, text)
    made = Structure(page.html(body))
    assert made.open == []
    plain = Structure(page.html(planted(report, "x")))
    assert [tag for tag, _ in made.tags] == [tag for tag, _ in plain.tags]
    assert [set(attributes) for _, attributes in made.tags] == [set(attributes) for _, attributes in plain.tags]
    rows = [line for line in summaries.markdown(body).splitlines() if line.startswith("| adapter")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 8
    assert not re.search(r"(?<!\\)[<`\[]", rows[0])


def test_files_are_written_and_a_summary_is_added(tmp_path: Path) -> None:
    summary, badge, html = tmp_path / "summary.md", tmp_path / "badge.json", tmp_path / "report.html"
    summary.write_text("before\n")
    arguments = ["conform", "--fuzz", "3", "-k", "field.add/exact", "--repro", str(tmp_path / "repro")]
    files = ["--html", str(html), "--markdown", str(summary), "--badge", str(badge)]
    assert cli.main([*arguments, *files, "--", sys.executable, FAKE, "none"]) == 0
    assert summary.read_text().startswith("before\n## Conformance: No unexpected failure")
    found = json.loads(badge.read_text())
    assert (found["schemaVersion"], found["message"], found["color"]) == (1, "1/1, mutation score 0 %", "brightgreen")
    assert html.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("option", ["--html", "--markdown", "--badge"])
def test_a_file_that_cannot_be_written_is_said_before_anything_runs(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["conform", option, str(tmp_path / "no" / "file"), "--", "./nothing"]) == 2
    assert f"{option} {tmp_path / 'no' / 'file'}: there is no folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.requirement("CNF-06")
@pytest.mark.parametrize("fault", part(2, ["evil-text", "hang", "hello-evil-text"]))
def test_a_hostile_adapter_has_a_page_as_well(tmp_path: Path, fault: str) -> None:
    command = [
        sys.executable,
        "-m",
        "secagg_spec.cli",
        "conform",
        "--timeout",
        "0.3",
        "--fuzz",
        "2",
        "-k",
        "field.add/",
    ]
    html = tmp_path / "report.html"
    subprocess.run(
        [*command, "--repro", str(tmp_path / "r"), "--html", str(html), "--", sys.executable, HOSTILE, fault],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert Structure(html.read_text(encoding="utf-8")).open == []


def test_the_entries_around_the_first_difference_are_shown() -> None:
    import numpy as np

    right = np.arange(10, dtype=np.uint64)
    got = right.copy()
    got[6] = 99
    for expected in (pack(right), right.tolist()):
        window = page_difference.window({"value": pack(got)}, expected)
        assert window is not None
        assert window.at == 6
        assert [entry for entry in window.entries if entry[3]] == [(6, "99", "6", True)]
        assert [entry[0] for entry in window.entries] == [3, 4, 5, 6, 7, 8, 9]
    assert page_difference.window({"value": pack(right)}, pack(right)) is None
    assert page_difference.window({"value": pack(right)}, pack(right[:-1])) is None
    assert page_difference.window({"value": "xyz"}, "xyz") is None


def test_numbers_of_binary32_are_compared_as_numbers() -> None:
    window = page_difference.window({"x": "0000803f00000040"}, [1.0, 3.0], "binary32")
    assert window is not None
    assert window.entries == ((0, "1.0", "1.0", False), (1, "2.0", "3.0", True))


def test_the_page_compares_numbers_of_binary32_as_numbers() -> None:
    adapter = Adapter("x", "1")

    @adapter.operation("quantizer.dequantize", ranges={"format": {"values": ["binary32"]}})
    def dequantize(q: str, level: str, format: str, value: str) -> dict[str, str]:
        return {"x": pack_reals([7.0] * (len(value) // 8), "binary32")}

    caps, check = narrow.understood(adapter.hello), REGISTRY["quantizer.dequantize/quotient"]
    outcome = run_check(DirectConnection(adapter.answer), caps, check, Settings(cases=4))
    made = TargetReport("made", caps=caps, judged=[Judged(outcome, None)])
    [target] = page_content.page(document.document([made], Settings()))["targets"]
    window = target["findings"][0]["alike"][0]["failure"]["window"]
    assert window.entries[window.at][1] == "7.0"


def test_a_script_is_a_chart_with_its_wrong_step() -> None:
    steps = [{"phase": "share", "inbox": []}, {"phase": "upload", "inbox": ["00"]}]
    answer = {"result": {"steps": [{"outbox": []}, {"reject": {"code": "replay", "message": ""}}]}}
    request = {"op": "lightsecagg.user", "params": {"steps": steps}}
    rows = chart.rows([(request, answer)], chart.place([(request, answer)], 1))
    assert [(row.given, row.answered, row.wrong) for row in rows] == [
        ("share", "takes it", False),
        ("upload, given bytes that are no message", "refuses: replay", True),
    ]


def test_a_session_is_a_chart_of_its_parties() -> None:
    new = {"op": "session.new", "params": {"handle": "a", "protocol": "secagg", "role": "user"}}
    step = {"op": "session.step", "params": {"handle": "a", "phase": "advertise", "inbox": []}}
    again = {"op": "session.again", "params": {"handle": "a", "round": "8", "setup": {}}}
    exchanges: list[tuple[Any, Any]] = [(new, {"result": {}}), (again, {"result": {}}), (step, None)]
    rows = chart.rows(exchanges, chart.place(exchanges, None))
    assert [(row.party, row.answered, row.wrong) for row in rows] == [
        ("secagg.user (a)", "takes it", False),
        ("secagg.user (a)", "takes it", False),
        ("secagg.user (a)", "no answer", True),
    ]
    assert rows[1].given == "goes on to round 8"


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.sampled_from(["00", "0101"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["steps", "outbox", "reject", "error", "result", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    JSON,
    st.none() | st.fixed_dictionaries({"result": st.dictionaries(st.sampled_from(["steps", "x"]), JSON)}),
    JSON,
    st.none() | st.integers(0, 3),
)
def test_any_answer_has_a_chart(params: Any, answer: Any, expected: Any, number: int | None) -> None:
    request = {"op": "lightsecagg.user", "params": {"steps": [{"phase": "share", "inbox": params}] * 2}}
    assert len(chart.rows([(request, answer)], chart.place([(request, answer)], number))) == 2
    step = {"op": "session.step", "params": {"handle": "a", "phase": "share", "inbox": params}}
    exchanges = [(step, answer), ("a line", answer)]
    assert len(chart.rows(exchanges, chart.place(exchanges, number))) == 2
    page_difference.window({"x": "00000000"}, expected)


@given(st.recursive(st.integers() | st.text(max_size=3), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_pretty_data_is_the_same_data(value: Any) -> None:
    assert json.loads(page.pretty(value)) == value


def test_options_behind_the_adapter_are_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["conform", "--fuzz", "1", "-k", "field.add/exact", "--repro", str(tmp_path), "--"]
    assert cli.main([*arguments, sys.executable, FAKE, "none", "--html", "report.html"]) == 0
    assert "note: arguments after -- go to the adapter: --html" in capsys.readouterr().err
