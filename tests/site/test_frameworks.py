"""The pages of the frameworks: each finding once, at its own address, and no word that the results do not bear out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docs.pages import frameworks
from docs.pages.common import ROOT, SiteError, escaped
from tests.site.shell import run

from secagg_spec.conformance.reports import results
from secagg_spec.conformance.targets import TARGETS, environments

STORED = results.load(ROOT / "docs" / "results")


@pytest.fixture(scope="module")
def framework_pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The page of each framework."""
    out = tmp_path_factory.mktemp("pages")
    frameworks.write_frameworks(out)
    return {name: (out / frameworks.page(name)).read_text(encoding="utf-8") for name in frameworks.words()}


def failures(name: str) -> list[Mapping[str, Any]]:
    """All that fails with a framework, in any configuration and release."""
    mine = (result for target, result in STORED.items() if re.split("[-@]", target)[0] == name)
    return [check for result in mine for check in result["checks"] if check["failure"]]


@pytest.mark.parametrize("name", frameworks.words())
def test_each_failure_stands_once_with_its_reason_clauses_and_releases(
    name: str, framework_pages: Mapping[str, str]
) -> None:
    page = framework_pages[name]
    anchors = re.findall(r"^### .* \{ #(\S+) \}$", page, re.MULTILINE)
    assert len(set(anchors)) == len(anchors)
    sections = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    verdicts = {(frameworks.kind(check), check["expected_failure"]) for check in failures(name)}
    assert len(sections) == len(verdicts)
    for check in failures(name):
        here = [section for section in sections if f"`{check['check']}`" in section.split("- In: ")[0]]
        assert any(all(clause in section for clause in check["clauses"]) for section in here)
    for result in STORED.values():
        if re.split("[-@]", result["target"])[0] == name and any(check["failure"] for check in result["checks"]):
            assert f"{result['implementation']['version']} ({result['released']})" in page
    assert not re.search(r"/(?:home|root|tmp|work|usr)/", page)


@pytest.mark.parametrize("name", frameworks.words())
def test_gravest_findings_come_first_and_advice_covers_all_of_them(
    name: str, framework_pages: Mapping[str, str]
) -> None:
    headings = [heading for heading, *_ in frameworks.KINDS.values()]
    found = [line[3:] for line in framework_pages[name].splitlines() if line.startswith("## ")]
    assert [one for one in headings if one in found] == [one for one in found if one in headings]
    advised = {check for row in frameworks.words()[name]["advice"] for check in row["checks"]}
    grave = {check["check"] for check in failures(name) if frameworks.kind(check) in ("leaked", "wrong")}
    assert grave <= advised
    assert framework_pages[name].index("## What to do") < min(
        framework_pages[name].index(f"## {one}") for one in headings if one in found
    )


@pytest.mark.parametrize("name", frameworks.words())
def test_what_gives_data_away_and_is_not_public_is_summarised(name: str, framework_pages: Mapping[str, str]) -> None:
    """SECURITY.md promises this, and that the page says whether a finding is public."""
    public = {check for row in frameworks.words()[name].get("public", ()) for check in row["checks"]}
    for section in re.split(r"^### ", framework_pages[name], flags=re.MULTILINE)[1:]:
        assert "- Its maintainers: " in section
    hidden = {
        check["expected_failure"]
        for check in failures(name)
        if check["verdict"] == "leaked" and check["check"] not in public
    }
    for check in failures(name):
        message = escaped(check["failure"]["message"][:60])
        assert check["expected_failure"] not in hidden or message not in framework_pages[name]


def test_each_clause_leads_to_the_gravest_finding_of_who_fails_it() -> None:
    worst: dict[str, dict[str, int]] = {}
    for name in frameworks.words():
        for check in failures(name):
            grade = [*frameworks.KINDS].index(frameworks.kind(check))
            for clause in check["clauses"]:
                grades = worst.setdefault(clause, {})
                grades[name] = min(grade, grades.get(name, grade))
    found = {
        clause: {name: [*frameworks.KINDS].index(one.kind) for name, one in table.items()}
        for clause, table in frameworks.failing().items()
    }
    assert found == worst


def _changed(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    said = deepcopy(dict(frameworks.words()))
    if change == "unknown framework":
        said["pysyft"] = {"name": "PySyft", "answer": "", "advice": []}
    elif change == "a framework less":
        del said["flower"]
    else:
        said["flower"]["advice"][0]["checks"] = ["secagg.sum/exact"]
    monkeypatch.setattr(frameworks, "words", lambda: said)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("unknown framework", "differ in pysyft"),
        ("a framework less", "differ in flower"),
        ("advice on what passes", r"names the check secagg\.sum/exact, which does not fail with flower"),
    ],
)
def test_words_that_the_results_do_not_bear_out_are_refused(
    change: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _changed(monkeypatch, change)
    with pytest.raises(SiteError, match=message):
        frameworks.write_frameworks(tmp_path)


def test_the_home_page_says_how_to_get_the_code_also_without_an_address() -> None:
    frame = pytest.importorskip("docs.frame")
    assert (ROOT / "docs" / "index.md").read_text(encoding="utf-8").count("<!-- copy -->") == 1
    assert "://" not in frame._NO_ADDRESS


def quantised(value: float, weight: float, settings: Mapping[str, float]) -> int:
    """What Flower makes of a number that needs no rounding: its mod scales by the weight, clips and quantises."""
    clip, largest = settings["clipping_range"], settings["quantization_range"]
    number = (min(max(value * weight, -clip), clip) + clip) * largest / (2 * clip)
    assert number == int(number)
    return int(number)


def test_the_page_says_how_many_clients_of_flower_never_wrap(framework_pages: Mapping[str, str]) -> None:
    """Sums of the largest integers and of zeros are added up, client by client, until one wraps."""
    settings = frameworks.defaults("flower")
    modulus = int(settings["modulus_range"])
    first = {}
    for value in (settings["clipping_range"], 0.0):
        element, total, clients = quantised(value, 1.0, settings), 0, 0
        while total < modulus:
            total, clients = total + element, clients + 1
        first[value] = clients
    page = framework_pages["flower"]
    assert f"**Not with up to {first[8.0] - 1:,} clients.** From {first[8.0]:,} clients on they can" in page
    assert f"so with {first[0.0]:,} clients or more also sums of small elements wrap" in page
    assert (first[8.0], first[0.0]) == (1024, 2048)
    assert frameworks.never_wraps(settings) == first[8.0] - 1
    assert not any("Can sums wrap" in framework_pages[name] for name in framework_pages if name != "flower")


@pytest.mark.slow
def test_the_defaults_are_those_of_the_release_where_it_is_installed() -> None:
    environment = TARGETS["flower"].environment
    assert environment is not None
    python = environments.home() / environment.name / "bin" / "python"
    if not python.is_file():
        pytest.skip("the release of Flower is not installed here")
    asked = (
        "import inspect, json\nfrom flwr.server.workflow import SecAggPlusWorkflow as W\n"
        "found = inspect.signature(W.__init__).parameters.values()\n"
        "print(json.dumps({p.name: p.default for p in found if isinstance(p.default, int | float)}))"
    )
    done = run(python, "-c", asked)
    stated = json.loads(done.stdout.splitlines()[-1])
    settings = frameworks.defaults("flower")
    assert {name: stated[name] for name in settings} == settings


@pytest.mark.slow
def test_the_search_is_small_and_leads_to_pages_first(site: Path) -> None:
    index = site / "search" / "search_index.json"
    entries = json.loads(index.read_text(encoding="utf-8"))["docs"]
    assert index.stat().st_size <= 1_500_000
    assert not [one["location"] for one in entries if one["location"].startswith("reference/api/secagg_spec")]
    [flower] = [one for one in entries if one["location"] == "frameworks/flower/"]
    assert (flower["title"], flower["boost"]) == ("Is Flower's secure aggregation safe?", 2)


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("index.md", "docs/index.md"),
        ("spec/secagg.md", "spec/secagg.md"),
        ("changelog.md", "CHANGELOG.md"),
        ("reference/errata/index.md", None),
    ],
)
@pytest.mark.parametrize("address", ["", "https://example.org/x/"])
def test_a_page_leads_to_its_source_where_the_project_has_an_address(
    page: str, source: str | None, address: str
) -> None:
    frame = pytest.importorskip("docs.frame")
    shown = SimpleNamespace(file=SimpleNamespace(src_uri=page), edit_url="before")
    assert frame.on_page_markdown("text", page=shown, config=SimpleNamespace(repo_url=address)) == "text"
    told = frame.on_page_markdown("Here <!-- copy -->", page=shown, config=SimpleNamespace(repo_url=address))
    assert told == (f"Here [Get the project]({address})." if address else f"Here {frame._NO_ADDRESS}")
    assert shown.edit_url == (f"https://example.org/x/edit/main/{source}" if address and source else None)
