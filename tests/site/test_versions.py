"""The versions of the text on the site: each page names its own, no address of a clause dies, and a fault stops it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from docs import build_site
from docs.pages import additions, common, copies, katex, requirements, versions
from docs.pages.common import REQUIREMENTS, VERSIONS, SiteError

from secagg_spec import history, resources
from secagg_spec.conformance.reports import document
from secagg_spec.conformance.running.runner import Settings
from secagg_spec.conformance.sdk.secagg_adapter import PROTOCOL
from secagg_spec.conformance.vectors import store
from secagg_spec.history import History, State, Text, words

NOW = history.text()
CACHED = (versions.book, common.named, common.names)


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    """Let no test see what another one planted."""
    yield
    for function in CACHED:
        function.cache_clear()


def plant(monkeypatch: pytest.MonkeyPatch, book: History, now: Text) -> None:
    """Put a history and a text in the place of those that are there."""
    monkeypatch.setattr(history, "load", lambda: book)
    monkeypatch.setattr(history, "text", lambda: now)
    for function in CACHED:
        function.cache_clear()


def first() -> History:
    """The first version as it was released: with one clause more, with one in other words, with one on another page."""
    then = dict(NOW.clauses)
    del then["LSA-04"]
    then["LSA-90"] = State(NOW.number, "lightsecagg.md", words("A user MUST wait."))
    then["LSA-02"] = replace(then["LSA-02"], words=words("other words"))
    then["LSA-03"] = replace(then["LSA-03"], page="secagg.md")
    around = {**NOW.pages, "fedbuff.md": words("other words")}
    old = History((replace(history.load().versions[0], released="2030-01-31"),), {})
    return history.renewed(old, Text(NOW.number, then, around, "ab" * 32))


def later() -> tuple[History, Text]:
    """A version after it, with the words of today."""
    now = replace(NOW, number="0.2.0", clauses={id: replace(at, since="0.2.0") for id, at in NOW.clauses.items()})
    book = history.opened(first(), "0.2.0")
    end = State("0.2.0", "lightsecagg.md", withdrawn="It says what LSA-01 says.", instead=("LSA-01",))
    ended = {**book.clauses, "LSA-90": (*book.clauses["LSA-90"], end)}
    return history.renewed(replace(book, clauses=ended), now), now


# ---------------------------------------------------------------------------------------------- the pages today


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the text as they stand on the site, and that of the versions."""
    folder = tmp_path_factory.mktemp("versions")
    copies.write_copies(folder)
    additions.write(folder)
    versions.write_versions(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", resources.PAGES)
def test_each_page_names_the_version_and_the_digest_of_a_report(out: Path, name: str) -> None:
    head = (out / "spec" / name).read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    [line] = [line for line in head if line.startswith("Version ")]
    assert line.startswith(f"Version {NOW.number} of the text, {history.load().present.standing}.")
    named = re.search(r"digest `([0-9a-f]{16})…`", line)
    assert named is not None
    assert document.header(Settings(1, 0))["text"].startswith(named[1])


@pytest.mark.slow
def test_the_page_of_versions_names_each_clause_and_the_whole_digest(out: Path) -> None:
    page = (out / VERSIONS).read_text(encoding="utf-8")
    listed = re.findall(r"\[([A-Z]+-\d\d)\]\(([\w-]+\.md)#\1\)", page)
    assert len(listed) == len(NOW.clauses)
    assert dict(listed) == {id: state.page for id, state in NOW.clauses.items()}
    assert f"`{document.header(Settings(1, 0))['text']}`" in page


def test_the_formats_are_those_that_programs_write() -> None:
    found = set(versions.formats().values())
    assert {f"`{document.SCHEMA}`", f"`{store.SCHEMA}`", f"{PROTOCOL[0]}.{PROTOCOL[1]}"} <= found
    adapter = (common.ROOT / "spec" / "adapter.md").read_text(encoding="utf-8")
    assert f"version: {PROTOCOL[0]}.{PROTOCOL[1]}." in adapter


def test_the_history_that_the_text_points_to_is_the_page_of_versions() -> None:
    page = copies.convert(
        (common.ROOT / "spec" / "conventions.md").read_text(encoding="utf-8"),
        "spec/conventions.md",
        "spec/conventions.md",
    )
    assert "[history.toml](versions.md)" in page


@pytest.mark.slow
def test_each_clause_has_an_address_that_stays(site: Path) -> None:
    page = (site / "reference" / "requirements" / "index.html").read_text(encoding="utf-8")
    moved = dict(re.findall(r'<a class="moved" href="([^"]+)" id="([^"]+)"', page))
    assert [*moved.values()] == [id.lower() for id in resources.clauses()]
    for target, id in moved.items():
        there, _, anchor = target.partition("#")
        assert anchor == id
        entries = (site / "reference" / "requirements" / there / "index.html").read_text(encoding="utf-8")
        assert f'<h2 id="{id}"' in entries
    assert {id.lower() for id in history.load().withdrawn()} <= set(re.findall(r'<h3 id="([^"]+)"', page))


# ----------------------------------------------------------------------------------------------- a later version


def test_the_page_of_versions_tells_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    book, now = later()
    plant(monkeypatch, book, now)
    page = "\n".join(versions.rendered(book, now))
    new, old = page.split("\n## ")[1:3]
    assert new.startswith("0.2.0, not released { #version-0-2-0 }")
    report = dict(re.findall(r'\?\?\?\+ note "(1 requirement [^"]*)"\n\n((?:    .*\n)+)', new))
    assert {kind: re.findall(r"\[([A-Z]+-\d\d)\]", rows) for kind, rows in report.items()} == {
        "1 requirement added": ["LSA-04"],
        "1 requirement with other words": ["LSA-02"],
        "1 requirement moved to another page": ["LSA-03"],
        "1 requirement withdrawn": ["LSA-90", "LSA-01"],
    }
    assert "[LSA-90](lightsecagg.md#LSA-90)" in new
    assert "Other words changed on: [FedBuff](fedbuff.md)." in new
    assert old.startswith(f"{NOW.number}, released on 2030-01-31")
    assert f"`{'ab' * 32}`" in old


def test_no_address_of_a_clause_dies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant(monkeypatch, *later())
    assert versions.withdrawn_lines(versions.book(), "basa.md") == []
    left, ended = (versions.withdrawn_lines(versions.book(), name)[-1] for name in ("secagg.md", "lightsecagg.md"))
    assert left == (
        "- [](){ #LSA-03 tabindex=-1 aria-hidden=true }LSA-03: No longer here: see "
        "[LSA-03](lightsecagg.md#LSA-03){ .mention }."
    )
    assert ended == (
        "- [](){ #LSA-90 tabindex=-1 aria-hidden=true }LSA-90: withdrawn in 0.2.0. It says what LSA-01 says. Instead: "
        "[LSA-01](#LSA-01){ .mention }."
    )
    monkeypatch.setattr(requirements, "deciding", lambda: {kind: {} for kind in requirements.KINDS})
    monkeypatch.setattr(requirements, "orphans", lambda tables: [])
    requirements.write_requirements(tmp_path)
    page = (tmp_path / REQUIREMENTS).read_text(encoding="utf-8")
    assert page.count("### LSA-90\n\nThis requirement was withdrawn in 0.2.0. It says") == 1


def test_a_clause_says_in_which_later_version_it_came_or_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, *later())
    found = {id: versions.since(versions.book(), id) for id in NOW.clauses}
    assert {id: said for id, said in found.items() if said} == {"LSA-02": "changed in 0.2.0", "LSA-04": "new in 0.2.0"}
    none: dict[str, requirements.Table] = {kind: {} for kind in requirements.KINDS}
    assert additions.decided("LSA-02", none, "spec/lightsecagg.md")[0].startswith('??? decided "changed in 0.2.0; no ')
    assert additions.decided("LSA-03", none, "spec/secagg.md")[0].startswith('??? decided "no ')


# --------------------------------------------------------------------------------------------------------- faults


def _other_words(book: History) -> tuple[History, Text]:
    return book, replace(NOW, clauses={**NOW.clauses, "MOD-01": replace(NOW.clauses["MOD-01"], words=words("x"))})


def _lost(book: History) -> tuple[History, Text]:
    return book, replace(NOW, clauses={id: state for id, state in NOW.clauses.items() if id != "MOD-01"})


def _new(book: History) -> tuple[History, Text]:
    return replace(book, clauses={id: states for id, states in book.clauses.items() if id != "MOD-01"}), NOW


def _used_again(book: History) -> tuple[History, Text]:
    end = replace(NOW.clauses["MOD-01"], words="", withdrawn="why")
    return replace(book, clauses={**book.clauses, "MOD-01": (end,)}), NOW


def _sealed(book: History) -> tuple[History, Text]:
    day = replace(book.present, released="2030-01-31")
    return history.renewed(replace(book, versions=(*book.versions[:-1], day)), NOW), _other_words(book)[1]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_other_words, "is out of date for MOD-01: run secagg-spec text --regenerate"),
        (_new, "is out of date for MOD-01: run secagg-spec text --regenerate"),
        (_lost, "MOD-01 vanished from the text"),
        (_used_again, "MOD-01 was withdrawn in 0.1.0, and an id is never used again"),
        (_sealed, "the text changed after 0.1.0 was released: raise the version"),
    ],
)
def test_a_history_that_the_text_contradicts_stops_the_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: object, said: str
) -> None:
    assert callable(fault)
    plant(monkeypatch, *fault(history.load()))
    with pytest.raises(SiteError, match=re.escape(said)):
        versions.write_versions(tmp_path)


def test_a_history_that_cannot_be_used_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> History:
        return history.read(tmp_path / history.FILE)

    monkeypatch.setattr(history, "load", broken)
    monkeypatch.setattr(build_site, "WRITERS", (versions.write_versions,))
    monkeypatch.setattr(build_site, "ALONE", ())
    monkeypatch.setattr(katex, "found", lambda given: tmp_path)
    monkeypatch.setattr(katex, "write_katex", lambda out, source: None)
    versions.book.cache_clear()
    assert build_site.main(["--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("build_site: history.toml: cannot be used: ")
    assert said.count("\n") == 1
