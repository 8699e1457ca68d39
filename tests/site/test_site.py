"""The site builds without a warning, renders every formula, loads nothing from elsewhere, and its tutorial holds."""

from __future__ import annotations

import functools
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from docs import build_site
from docs.pages import frameworks, katex, requirements, targets
from docs.pages.common import SiteError
from tests import kit
from tests.site.shell import ROOT, run

from secagg_spec import history
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.reports import published, results
from secagg_spec.conformance.vectors import store
from secagg_spec.ledger import proofs
from secagg_spec.resources import PAGES, clauses

TUTORIAL = ROOT / "docs" / "tutorials" / "first-adapter.md"
Deciding: TypeAlias = Mapping[str, requirements.Table]
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
LOADING = {"src", "href", "srcset", "poster", "data", "action", "formaction", "xlink:href"}

SCRIPT_LOADS = re.compile(
    r"(?:\bfrom\s*|\bimport\s*\(?\s*|\b(?:importScripts|fetch|Worker)\s*\(\s*|\bsrc\s*=\s*|\.open\([^,()]*,\s*)"
    r"[\"'`]([^\"'`]+)"
)
RENDER = """
const katex = require(process.argv[1]);
const failures = [];
for (const [tex, displayMode] of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  try { katex.renderToString(tex, {displayMode, throwOnError: true, strict: "error"}); }
  catch (error) { failures.push(`${tex}: ${error.message}`); }
}
console.log(JSON.stringify(failures));
"""


class Page(HTMLParser):
    """What a page loads, and its formulas."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.formulas: list[tuple[str, bool]] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag != "a":
            self.loads += [value for name, value in given.items() if name in LOADING]
        self.loads += re.findall(r"url\(([^)]*)\)", given.get("style", ""))
        formula = "arithmatex" in given.get("class", "").split()
        if tag not in VOID:
            self._open.append((tag, formula))
        if formula:
            self.formulas.append(("", tag == "div"))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][1]:
            text, display = self.formulas[-1]
            self.formulas[-1] = (text + data, display)


@functools.cache
def read(path: Path) -> Page:
    """A page of the site, which is parsed once."""
    return Page(path)


def formulas_of(site: Path) -> Iterator[tuple[str, bool]]:
    for path in sorted(site.rglob("*.html")):
        for text, display in read(path).formulas:
            body = text.strip()
            assert (body[:2], body[-2:]) == (("\\[", "\\]") if display else ("\\(", "\\)")), f"{path}: {body}"
            yield body[2:-2], display


@pytest.mark.slow
def test_the_site_builds_without_a_warning(site: Path) -> None:
    assert (site / "index.html").is_file()
    assert (site / "assets" / "katex" / "katex.min.js").is_file()


def test_make_docs_is_strict() -> None:
    """With --quiet, mkdocs hears no warning, and so none ends the build."""
    recipe = re.search(r"mkdocs build(.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert recipe is not None
    assert recipe[1].split() == ["--strict"]


@pytest.mark.slow
def test_every_formula_renders(site: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    formulas = list(formulas_of(site))
    katex = site / "assets" / "katex" / "katex.min.js"
    done = run(node, "-e", RENDER, katex, input=json.dumps(formulas))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


@pytest.mark.slow
def test_every_formula_of_the_text_is_found(site: Path) -> None:
    """A dollar sign that is left over on a page was meant as a formula."""
    for path in sorted((ROOT / "spec").glob("*.md")):
        text = re.sub(r"`[^`\n]*`", "", path.read_text(encoding="utf-8"))
        display = re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)
        inline = re.findall(r"\$(.+?)\$", re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL), re.DOTALL)
        found = read(site / "spec" / path.stem / "index.html").formulas
        assert sum(shown for _, shown in found) == len(display), path
        assert sum(not shown for _, shown in found) == len(inline), path


@pytest.mark.slow
def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loads = [(path, target) for path in site.rglob("*.html") for target in read(path).loads]
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        loads += [
            (path, target)
            for target in re.findall(r"@import\s+[\"']?([^\"';)]+)|url\(([^)]*)\)", text)
            for target in target
        ]
    for path in site.rglob("*.js"):
        loads += [(path, target) for target in SCRIPT_LOADS.findall(path.read_text(encoding="utf-8"))]
    assert len(loads) > 100
    elsewhere = [(path.name, target) for path, target in loads if re.match(r"\s*[\"']?(?:https?:)?//", target)]
    assert elsewhere == []


@pytest.mark.slow
def test_each_clause_and_each_check_is_on_the_pages_of_requirements(pages: Path) -> None:
    page = (pages / "reference" / "requirements.md").read_text(encoding="utf-8")
    assert re.findall(r"\[([A-Z]+-\d\d)\]\(requirements/[\w-]+\.md#\S+\)\{", page) == list(clauses())
    assert re.findall(r"^### ([A-Z]+-\d\d)$", page, re.MULTILINE) == sorted(history.load().withdrawn())
    details = [(pages / requirements.FOLDER / name).read_text(encoding="utf-8") for name in PAGES]
    assert re.findall(r"^## ([A-Z]+-\d\d)$", "".join(details), re.MULTILINE) == list(clauses())
    vectors = [vector.id for book in store.load_all() for vector in book.vectors]
    named = set(re.findall(r"`([^`\n]+)`", "".join(details)))
    assert {*REGISTRY, *mutants.load(), *vectors} <= named


@pytest.fixture(scope="module")
def deciding() -> Deciding:
    """What decides each clause, read from the vectors and from the tests once."""
    return requirements.deciding()


@pytest.mark.slow
def test_there_are_no_orphans(deciding: Deciding) -> None:
    assert list(requirements.orphans(deciding)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "clause", "entries", "said"),
    [
        ("Test vectors", "XXX-01", ["`a-vector`"], "names the clause XXX-01"),
        ("Mutants", "XXX-01", ["`a-bug`"], "names the clause XXX-01"),
        ("Tests", "RND-01", None, "RND-01 is decided by no check and no test"),
        ("Mutants", "LSA-09", None, "LSA-09 has no mutant"),
    ],
)
def test_an_orphan_stops_the_build(
    deciding: Deciding,
    kind: str,
    clause: str,
    entries: list[str] | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = {name: dict(table) for name, table in deciding.items()}
    if entries:
        tables[kind][clause] = entries
    else:
        del tables[kind][clause]
    monkeypatch.setattr(requirements, "deciding", lambda: tables)
    with pytest.raises(SiteError, match=said):
        requirements.write_requirements(tmp_path)


def now(stored: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the results without those of other releases of a target."""
    return {name: result for name, result in stored.items() if "@" not in name}


def test_the_page_of_released_implementations_tells_in_which_releases_a_finding_is(tmp_path: Path) -> None:
    targets.write_released(tmp_path)
    page = (tmp_path / "reference" / "targets.md").read_text(encoding="utf-8")
    table = page.split("## flower, release by release")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    stored = results.load(ROOT / "docs" / "results")
    found = [stored[name] for name in ("flower@1.8.0", "flower@1.18.0", "flower", "flower@1.42.0")]
    assert rows[0] == ["check", *(f"{one['implementation']['version']} ({one['released']})" for one in found)]
    failed = [{check["check"]: check["verdict"] for check in one["checks"] if check["failure"]} for one in found]
    assert {row[0].strip("`") for row in rows[2:]} == set().union(*failed)
    for row in rows[2:]:
        verdicts = [each.get(row[0].strip("`")) for each in failed]
        assert [None if cell in ("passes", "not asked") else cell for cell in row[1:]] == verdicts


@pytest.mark.requirement("CNF-90")
def test_reports_of_others_are_shown_apart_with_all_that_says_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {
        "url": "https://example.org/r.json?a=1&b", "sha256": "ab" * 32, "kit": "0.1.0", "text": "cd" * 32,
        "name": "<b>x</b> | y", "version": "1", "verdicts": {"pass": 7, "leaked": 1, "crash": 2},
    }  # fmt: skip
    monkeypatch.setattr(published, "load", lambda folder: [one])
    targets.write_released(tmp_path)
    page = (tmp_path / "reference" / "targets.md").read_text(encoding="utf-8")
    own, _, others = page.partition("## Published by others")
    row = others.split("\n## ")[0].rstrip().splitlines()[-3]
    assert "example.org" not in own
    assert '<a href="https://example.org/r.json?a=1&amp;b">report</a>' in row
    assert "<b>" not in page
    assert [cell.strip() for cell in row.split("|")[2:-2]] == ["0.1.0", f"`{'cd' * 6}`", "10", "7", "1", "0", "0", "2"]
    assert "ab" * 32 in row


def test_the_page_of_released_implementations_says_in_words_how_they_fare(tmp_path: Path) -> None:
    targets.write_released(tmp_path)
    page = (tmp_path / "reference" / "targets.md").read_text(encoding="utf-8")
    stored = now(results.load(ROOT / "docs" / "results"))
    lead = page.split("\n\n")[1]
    checks = [check for result in stored.values() for check in result["checks"]]
    verdicts = Counter(check["verdict"] for check in checks if check["failure"])
    assert f"Of {len(checks)} checks {len(checks) - verdicts.total()} pass" in lead
    assert f"in {verdicts['accepted_invalid']} an input or a message is taken that has to be refused" in lead
    assert f"in {verdicts['wrong_value']} a value is wrong" in lead
    for name, version in (
        ("FedML", "0.9.6"), ("Flower", "1.41.0"), ("OpenFL", "1.9"), ("declearn", "2.9.1"), ("Fed-BioMed", "6.4.1"),
    ):  # fmt: skip
        assert f"{name} {version}" in lead
    for name, result in stored.items():
        row = re.search(rf'<th scope="row"><a href="[^"]*">{name}</a>.*', page)
        assert row is not None
        *numbers, sums = re.findall(r"<td[^>]*>([^<]*)</td>", row.group())
        assert ("not asked" in numbers) is not any(one["check"].startswith("privacy/") for one in result["checks"])
        assert len(result["checks"]) == int(numbers[0]) == sum(int(one) for one in numbers[1:] if one != "not asked")
        report = {"passes": True, "fails": False, "not asked": None}
        assert report[sums] is targets.sums_right(result)


@pytest.mark.parametrize(
    ("failures", "right"), [([], None), ([None], True), ([None, {"message": ""}], False), ([{"message": ""}], False)]
)
def test_sums_are_right_when_each_check_of_them_passes(failures: list[object], right: bool | None) -> None:
    asked = zip(targets.SUMS, failures, strict=False)
    checks = [{"check": name, "failure": failure} for name, failure in asked]
    other = {"check": "lightsecagg.round/parameters", "failure": {"message": ""}}
    assert targets.sums_right({"checks": [other, *checks]}) is right


def test_what_passes_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"check": "secagg.average/mean", "verdict": "pass", "failure": None}
    bad = {"check": "secagg.average/mean", "verdict": "timeout", "failure": {"message": ""}}
    about = {"name": "Some (thing)", "version": "1"}
    known: dict[str, dict[str, Any]] = {
        "a": {"implementation": about, "checks": [one]},
        "b": {"implementation": about, "checks": [one, bad]},
    }
    said = targets.in_words(known)
    assert "Some 1 were asked in 2 configurations. Every check that fits is passed by [a](../frameworks/a.md)." in said
    assert "Of 3 checks 2 pass; in 1 the software breaks off where it has to refuse, or to go on." in said
    assert "passes with [a](../frameworks/a.md), and fails with [b](../frameworks/b.md)." in said


def test_a_site_without_results_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "ROOT", tmp_path)
    monkeypatch.setattr(targets, "stored", frameworks.stored.__wrapped__)
    with pytest.raises(SiteError, match=r"fedml\.json is missing"):
        targets.write_released(tmp_path)


@pytest.mark.slow
def test_each_clause_has_an_anchor_on_its_page(site: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (site / "spec").rglob("*.html")]
    anchors = [name for text in texts for name in re.findall(r'<a[^>]* id="([A-Z]+-\d\d)"', text)]
    left = [clause for clause, pages in history.load().moved().items() for _ in pages]
    assert sorted(anchors) == sorted([*clauses(), *left, *history.load().withdrawn()])


@pytest.mark.slow
def test_each_decision_is_in_the_list(pages: Path) -> None:
    index = (pages / "decisions" / "index.md").read_text(encoding="utf-8")
    files = [path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")]
    assert [name for name in files if f"]({name})" not in index] == []


@pytest.mark.slow
def test_a_missing_npm_is_one_line(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys; sys.path.insert(0, '.'); from docs import build_site; from docs.pages import katex\n"
        "katex.ROOT = pathlib.Path(sys.argv[1])\n"
        "sys.exit(build_site.main(['--out', sys.argv[1] + '/out']))"
    )
    done = run(sys.executable, "-c", program, tmp_path, PATH=str(tmp_path))
    assert done.returncode == 2
    assert re.fullmatch(r"build_site: npm is missing: .*\n", done.stderr)


@pytest.mark.slow
def test_a_folder_that_is_not_katex_is_refused(tmp_path: Path) -> None:
    done = run(sys.executable, "docs/build_site.py", "--katex-from", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert re.fullmatch(r"build_site: .* is not an unpacked KaTeX package: .*\n", done.stderr)


def test_only_what_a_build_wrote_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_site, "WRITERS", ())
    monkeypatch.setattr(build_site, "ALONE", ())
    monkeypatch.setattr(katex, "write_katex", lambda out, source: (out / "page.md").touch())

    def built(out: Path) -> int:
        return build_site.main(["--katex-from", str(tmp_path / "katex"), "--out", str(out)])

    new, mine, link = tmp_path / "new", tmp_path / "mine", tmp_path / "link"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    monkeypatch.setattr(katex, "found", lambda given: given)
    for out, reason in ((mine, "it would be emptied; "), (mine / "thesis.txt", "Not a directory")):
        assert built(out) == 2
        assert capsys.readouterr().err.startswith(f"build_site: --out {out}: {reason}")
    assert (mine / "thesis.txt").read_text() == "mine"
    link.symlink_to(new, target_is_directory=True)
    assert built(new) == 0
    (new / "old.md").touch()
    assert built(link) == 0
    assert sorted(path.name for path in new.iterdir()) == [build_site.MARK, "page.md"]
    monkeypatch.undo()
    assert built(new) == 2
    assert "is not an unpacked KaTeX package" in capsys.readouterr().err
    assert (new / "page.md").exists()


def blocks(language: str, page: Path = TUTORIAL) -> list[str]:
    pattern = rf"^```{language}\b[^\n]*\n(.*?)^```$"
    return re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_on_asynchronous_rounds_shows_what_the_proof_says() -> None:
    shown = blocks("text", ROOT / "docs" / "explanation" / "why-secagg-fails-asynchronously.md")
    lines: list[str] = []
    proofs.run(proofs.load_proof("asynchronous_secagg"), lines.append)
    numbers, streams, command = shown
    assert numbers + streams == "".join(f"{line}\n" for line in lines[:12])
    assert command == "secagg-spec claims UNI-ROUNDS --verify\n"


def test_the_adapter_of_the_tutorial_answers_as_shown(tmp_path: Path) -> None:
    requests, answers = blocks("json")
    (tmp_path / "adapter.py").write_text(blocks("python")[0], encoding="utf-8")
    done = run(sys.executable, "adapter.py", cwd=tmp_path, input=requests)
    assert done.stderr == ""
    assert done.stdout == answers


def conform(folder: Path, adapter: str, *options: str) -> kit.Done:
    (folder / "adapter.py").write_text(adapter, encoding="utf-8")
    return kit.run(["conform", *options, "--", sys.executable, "adapter.py"], folder)


@pytest.mark.slow
def test_the_kit_says_of_the_tutorial_what_is_shown(tmp_path: Path) -> None:
    first, mended = blocks("python")
    failed = conform(tmp_path, first, "-k", "LSA-0")
    assert failed.returncode == 1, failed.stderr
    for shown in blocks("text"):
        assert shown in failed.stdout.replace(sys.executable, "python")
    passed = conform(tmp_path, mended, "--fuzz", "3")
    assert passed.returncode == 0, passed.stdout


@pytest.mark.slow
def test_each_mutant_is_on_one_page_of_at_most_200(pages: Path) -> None:
    folder = pages / "reference" / "mutants"
    named = {
        path.stem: re.findall(r"^## (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in folder.iterdir()
    }
    assert sorted(name for names in named.values() for name in names) == sorted(mutants.load())
    assert max(map(len, named.values())) <= 200
    leads = re.findall(r"\]\(([\w-]+)\.md\)", (folder / "conventions.md").read_text(encoding="utf-8"))
    assert leads == sorted(name for name in named if name.startswith("conventions-"))
