"""What the site adds to the pages of the text: code, pictures, evidence, errata, differences; nothing may go astray."""

from __future__ import annotations

import ast
import dataclasses
import html
import importlib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType

import pytest
from docs.pages import (
    additions,
    copies,
    differences,
    errata,
    excerpts,
    first_figures,
    requirements,
    selected,
    sparse,
)
from docs.pages.common import CLAUSE_LINE, SiteError, api_name, escaped, is_public
from tests.site.browser import Browser
from tests.site.shell import ROOT
from tests.site.writing import assert_written_large

from secagg_spec.ledger import entries, promises
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Table
from secagg_spec.resources import PAGES, clauses

MODULES = {
    "lightsecagg.md": ("lightsecagg", "lightsecagg_active"),
    "secagg.md": ("secagg", "secagg_active"),
    "basecagg.md": ("basecagg", "basecagg_active"),
    "basa.md": ("basa",),
    "heterosag.md": ("heterosag",),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the text with what is added to them."""
    out = tmp_path_factory.mktemp("annotated")
    copies.write_copies(out)
    additions.write(out)
    return out


def page_of(written: Path, name: str) -> str:
    return (written / "spec" / name).read_text(encoding="utf-8")


def small(name: str = "lightsecagg.md", text: str = "") -> additions.Text:
    return additions.Text(text or copies.convert((ROOT / "spec" / name).read_text(), f"spec/{name}", name), name)


# ------------------------------------------------------------------------------------------------------ excerpts


def steps(tables: Sequence[Table]) -> Iterator[str]:
    """The bodies of steps, each where it is defined: a step that a profile takes over is shown with its base."""
    for table in tables:
        for step in table:
            module = step.body.__module__.removeprefix("secagg_spec.")
            yield f"{module}:{step.body.__qualname__.partition('.<locals>')[0]}"


@pytest.mark.parametrize("name", [*MODULES, "multi-round.md"])
def test_each_step_of_a_protocol_stands_on_its_page(name: str) -> None:
    modules = [differences.module(module) for module in MODULES.get(name, ())]
    tables = [module.TABLE for module in modules] or [base.table for base in multi_round.BASES.values()]
    pages = [name, *(["secagg.md"] if name == "heterosag.md" else [])]
    if name == "multi-round.md":
        pages += ["secagg.md", "lightsecagg.md"]
    shown = {one for page in pages for names in excerpts.places()[page].values() for one in names}
    assert set(steps(tables)) <= shown


@pytest.mark.slow
def test_each_excerpt_is_the_code_of_the_reference(written: Path) -> None:
    for name, places in excerpts.places().items():
        page = re.sub(r"^ +", "", page_of(written, name), flags=re.MULTILINE)
        for one in (one for names in places.values() for one in names):
            report = re.sub(r"^ +", "", excerpts.source(one), flags=re.MULTILINE)
            assert report in page, one


@pytest.mark.parametrize(
    "name", sorted({one for at in excerpts.places().values() for names in at.values() for one in names})
)
def test_an_excerpt_differs_from_the_reference_in_its_docstring_alone(name: str) -> None:
    def bare(node: ast.AST) -> str:
        for one in ast.walk(node):
            if isinstance(one, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one):
                one.body = one.body[1:] or [ast.Pass()]
        return ast.dump(node)

    excerpt = ast.parse(excerpts.source(name)).body
    assert len(excerpt) == 1
    module, _, path = name.partition(":")
    loaded = importlib.import_module(f"secagg_spec.{module}")
    file = Path(str(loaded.__file__)).read_text(encoding="utf-8")
    found = [node for node in ast.walk(ast.parse(file)) if getattr(node, "name", "") == path.rpartition(".")[2]]
    assert bare(excerpt[0]) in map(bare, found)


def test_the_docstring_of_an_excerpt_is_one_line() -> None:
    shown = excerpts.source("protocols.lightsecagg.round:aggregate_shares")
    docstring = ast.get_docstring(ast.parse(shown).body[0])  # type: ignore[arg-type]
    assert docstring is not None
    assert "\n" not in docstring
    assert docstring == "Return the sum of one user's shares over the surviving set, L elements (LSA-08)."


@pytest.mark.parametrize(
    "name", ["protocols.lightsecagg.round:gone", "protocols.gone:user_share", "protocols.secagg.graph:Graph.gone"]
)
def test_a_name_that_the_reference_does_not_have_stops_the_build(name: str) -> None:
    with pytest.raises(SiteError, match=r"excerpts\.toml names .*gone"):
        excerpts.excerpt([name], "spec/lightsecagg.md")


@pytest.mark.parametrize(("start", "found"), [("9. **no such step**", 0), ("LSA-99", 0), ("## ", 9)])
def test_a_place_that_the_text_does_not_have_once_stops_the_build(start: str, found: int) -> None:
    with pytest.raises(SiteError, match=f"has {found} places that begin with"):
        small().only(start)


@pytest.mark.slow
def test_a_place_that_is_gone_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies.write_copies(tmp_path)
    places = MappingProxyType({"lightsecagg.md": {"9. **no such step**": ["protocols.lightsecagg.round:user_share"]}})
    monkeypatch.setattr(excerpts, "places", lambda: places)
    with pytest.raises(SiteError, match="no such step"):
        additions.write(tmp_path)


# -------------------------------------------------------------------------------------------------- first figures


def test_each_protocol_has_a_figure() -> None:
    assert {*first_figures.FIGURES} == {*(f"{name}.md" for name in promises.PAGES), "fedbuff.md"}


@pytest.mark.slow
@pytest.mark.parametrize("name", first_figures.FIGURES)
def test_a_figure_stands_open_at_the_head_of_its_page(name: str, written: Path) -> None:
    """Behind what the protocol does, before the rest: its messages, the code and what it leaves out, the edition."""
    figure, page = first_figures.FIGURES[name], page_of(written, name)
    text = (ROOT / "spec" / name).read_text(encoding="utf-8").split("\n\n")
    head = page[: page.index(f"\n{text[2]}\n")]
    title, does, *_ = head.split("\n\n")
    assert (title, does.split()[0]) == (text[0], copies.convert(text[1], f"spec/{name}", f"spec/{name}").split()[0])
    opening = f'???+ example code "{figure.of} as one function"'
    places = [head.find(part) for part in ('<figure class="flow">', opening, "\nVersion ")]
    assert sorted(places[1:]) == places[1:]
    assert places[0] < places[1]
    assert (places[0] >= 0) == (name != "fedbuff.md")
    code = re.sub(r"^ {4}", "", re.split(r"^ {4}```(?:python)?\n", head, flags=re.MULTILINE)[1], flags=re.MULTILINE)
    module, function = figure.name.split(":")
    shown, whole = (ast.parse(text).body for text in (code, Path(str(loaded(module).__file__)).read_text("utf-8")))
    assert ast.dump(shown[0]) == ast.dump(whole[-1])
    assert getattr(shown[0], "name", "") == function
    assert f"It leaves out {figure.without}." in re.sub(r"\s+", " ", head)
    assert "checks and refusals" in figure.without


@pytest.mark.parametrize("name", first_figures.FIGURES)
def test_a_figure_names_the_run_that_it_equals(name: str) -> None:
    module, _, run = first_figures.FIGURES[name].run.rpartition(".")
    assert callable(getattr(loaded(module), run))


def loaded(module: str) -> ModuleType:
    """A module of the reference, by its name below the package."""
    return importlib.import_module(f"secagg_spec.{module}")


def test_a_protocol_may_be_a_package_whose_definitions_have_a_page() -> None:
    assert is_public(Path("protocols/secagg/__init__.py"))
    assert not is_public(Path("protocols/__init__.py"))
    assert not is_public(Path("conformance/checks/__init__.py"))
    assert api_name(Path("protocols/secagg/__init__.py")) == "secagg_spec.protocols.secagg"
    [where, *_] = excerpts.definition_lines("conformance.mutants.catalogue:unbreakable", "spec/secagg.md")
    assert where.startswith("    [`unbreakable`, in `conformance/mutants/catalogue.py`]")


# -------------------------------------------------------------------------------------------------- where it goes


@pytest.mark.slow
def test_additions_stand_behind_their_place_and_change_nothing_else(written: Path) -> None:
    """Every line of the text is there, in its order, and nothing between two lines of a paragraph or table."""
    for name in PAGES:
        before = copies.convert((ROOT / "spec" / name).read_text(encoding="utf-8"), f"spec/{name}", f"spec/{name}")
        after = page_of(written, name).splitlines()
        at = 0
        for line in before.splitlines():
            at = after.index(line, at) + 1
        for paragraph in re.split(r"\n\n+", before):
            if not re.match(r"- |\d+\. |#", paragraph):
                assert paragraph.strip("\n") in "\n".join(after), (name, paragraph)


def test_a_list_whose_numbers_jump_begins_anew() -> None:
    text = small(text="1. one\n2. two\n   more\n5. five\n6. six\n\nText.\n\n7. seven\n- [](){ #LSA-01 }x")
    text.add(0, ["block"])
    assert text.joined().splitlines()[:5] == ["1. one", "", "    block", "", "2. two"]
    assert text.joined().count("<!-- -->") == 1
    assert "<!-- -->\n\n5. five" in text.joined()


@pytest.mark.slow
def test_the_picture_of_the_messages_stands_on_each_page_of_a_protocol(written: Path) -> None:
    for name in (*MODULES, "multi-round.md"):
        assert page_of(written, name).count('<figure class="flow">') == (2 if name == "secagg.md" else 1)


# ----------------------------------------------------------------------------------------- evidence and errata


@pytest.mark.slow
def test_each_clause_has_what_decides_it(written: Path) -> None:
    tables = requirements.deciding()
    for name in PAGES:
        page = page_of(written, name)
        report = re.split(r"^- \[\]\(\)\{ #([A-Z]+-\d\d)[^}]*\}", page, flags=re.MULTILINE)
        assert page.count("??? decided") == len(report) // 2
        for clause, rest in zip(report[1::2], report[2::2], strict=True):
            block = rest[rest.index("??? decided") :].partition("[What each of them is]")
            assert block[2].startswith(f"(../reference/requirements/{name}#{clause.lower()})")
            for table in tables.values():
                assert all(entry.split("`")[1] in block[0] for entry in table.get(clause, ())), clause
    assert sum(page_of(written, name).count("??? decided") for name in PAGES) == len(clauses())


@pytest.mark.slow
def test_each_erratum_that_names_clauses_stands_in_their_sections(written: Path) -> None:
    book = entries.load()
    claims = [one for paper in book.papers if paper != entries.OURS for one in errata.wrong(book, paper) if one.clauses]
    assert claims
    for name in PAGES:
        for section in re.split(r"^## ", page_of(written, name), flags=re.MULTILINE)[1:]:
            here = set(re.findall(r"^- \[\]\(\)\{ #([A-Z]+-\d\d)[^}]*\}", section, re.MULTILINE))
            due = {claim.id for claim in claims if here & set(claim.clauses)}
            report = set(
                re.findall(r"^    - \[([\w-]+)\]\(\.\./reference/errata/[a-z-]+\.md#\1\)", section, re.MULTILINE)
            )
            assert report == due, (name, section.partition("\n")[0])


def test_what_a_claim_says_is_no_markup() -> None:
    words = r"N^2 \\ a_b * <b> ~x~ $y$ [z] `c` | #"
    assert not set("^\\_*<>~$[]`|") & set(escaped(words))
    assert html.unescape(escaped(words)) == words


# --------------------------------------------------------------------------------------------------- differences


@pytest.mark.parametrize("change", differences.changes(), ids=lambda change: f"{change.old}-{change.new}")
def test_a_comparison_has_each_row_of_both_tables_once(change: differences.Change) -> None:
    old, new = (differences.module(name) for name in (change.old, change.new))
    for part, of in (("Phases", differences.phases), ("Messages", differences.messages)):
        rows = differences.tables(change)[part]
        before = [row.name.partition(" → ")[0] for row in rows if row.kind != "added"]
        after = [row.name.rpartition(" → ")[2] for row in rows if row.kind != "removed"]
        assert before == list(of(old.TABLE))
        assert after == list(of(new.TABLE))
        for row in rows:
            kept = row.kind in ("same", "changed")
            assert (row.kind == "same") == (kept and row.old == row.new and " → " not in row.name)


@pytest.mark.parametrize("change", differences.changes(), ids=lambda change: f"{change.old}-{change.new}")
def test_each_parameter_of_a_comparison_has_a_meaning(change: differences.Change) -> None:
    old, new = (differences.module(name) for name in (change.old, change.new))
    rows = differences.tables(change)["Parameters"]
    for module, names in (
        (old, [row.name.partition(" → ")[0] for row in rows if row.kind != "added"]),
        (new, [row.name.rpartition(" → ")[2] for row in rows if row.kind != "removed"]),
    ):
        kept = (
            importlib.import_module("secagg_spec.protocols.basa.cores")
            if module.__name__.endswith(".basa.round")
            else module
        )
        assert sorted(names) == sorted(one.name for one in dataclasses.fields(kept.Parameters) if one.init)
    assert all(text for row in rows for side in (row.old, row.new) for text in side)


@pytest.mark.parametrize("change", differences.changes(), ids=lambda change: f"{change.old}-{change.new}")
def test_a_comparison_is_marked_by_signs_and_names_what_is_the_same(change: differences.Change) -> None:
    block = differences.block(change)
    for rows in differences.tables(change).values():
        for row in rows:
            assert row.name in block
            if row.kind != "same":
                assert f'>{differences.SIGNS[row.kind]} {row.kind}</td><th scope="row"><code>{row.name}<' in block
    assert "\n\n\n" not in block


def test_a_comparison_finds_what_is_added_removed_changed_and_moved() -> None:
    old = {"a, user": ("sends A",), "b, user": (), "c, user": ("sends C",)}
    new = {"c, user": ("sends C",), "x, user": ("sends A",), "d, user": ("sends D",)}
    kinds = {(row.kind, row.name) for row in differences.compared(old, new, {"a": "x"}, ordered=False)}
    assert kinds == {
        ("changed", "a, user → x, user"),
        ("removed", "b, user"),
        ("same", "c, user"),
        ("added", "d, user"),
    }
    kinds = {(row.kind, row.name) for row in differences.compared({"a": (), "b": ()}, {"b": (), "a": ()}, {})}
    assert len(kinds) == 3
    dropped = differences.compared({"b": (), "a": (), "c": ()}, {"c": ()}, {}, ordered=False)
    assert [row.name for row in dropped] == ["b", "a", "c"]


@pytest.mark.parametrize(("before", "after"), [("gone", "share"), ("share_keys", "gone")])
def test_a_name_of_no_protocol_stops_the_comparison(before: str, after: str) -> None:
    change = dataclasses.replace(differences.changes()[0], same={before: after})
    with pytest.raises(SiteError, match="are not names of secagg and lightsecagg"):
        differences._check_names(change)


@pytest.mark.slow
def test_a_sparse_graph_is_compared_by_a_round_on_each() -> None:
    rows = {row.name: row for row in sparse.rows()}
    assert (rows["neighbours of a user"].old, rows["neighbours of a user"].new) == (("19",), ("6",))
    for given, cell in ((sparse.COMPLETE, 0), (sparse.SPARSE, 1)):
        least, most = sparse.thresholds(given)
        bounds = (given.T + 2, given.N - given.D) if given.complete else (2, min(given.k + 1, given.N - given.D))
        assert (least, most) == bounds, cell
        number, size = sparse.traffic(given)["share_keys, all users"]
        assert number == given.N * (given.k + 1)
        assert size == given.N * (given.k * (30 + 4 + 160) + 30 + 4 + 32)
    assert {name.partition(",")[0] for name in rows} >= set(secagg.PHASES)


@pytest.mark.slow
def test_each_page_of_a_protocol_is_compared_with_its_neighbour(written: Path) -> None:
    """SecAgg is the first; on its page stand SecAgg+ and the active profile."""
    neighbours = {
        "lightsecagg.md": "from-secagg-to-lightsecagg",
        "secagg.md": "from-secagg-to-secagg-plus",
        "basecagg.md": "from-lightsecagg-to-basecagg",
        "basa.md": "from-basecagg-to-basa",
        "heterosag.md": "from-secagg-to-heterosag",
        "multi-round.md": "from-random-selection-to-multi-round",
    }
    assert set(neighbours) == {*MODULES, "multi-round.md"}
    for name, anchor in neighbours.items():
        assert page_of(written, name).count(f'<details class="info difference" id="{anchor}">') == 1


def test_batches_are_compared_with_users_drawn_one_by_one_by_rounds_of_each() -> None:
    rows = {row.name: row for row in selected.rows()}
    both = (selected.ALONE, selected.BATCHES)
    sets = tuple((str(math.comb(one.N // one.T, one.K // one.T)),) for one in both)
    report = {name: (row.old, row.new) for name, row in rows.items() if row.kind == "changed"}
    assert report == {
        "sets of users that may be chosen": sets,
        "users that no combination of all these sums parts": (("1",), (str(selected.BATCHES.T),)),
        "users in the sum when the last one drops out before its input": (
            (str(selected.ROUND.N - 1),),
            (str(selected.ROUND.N - selected.BATCHES.T),),
        ),
    }
    same = {name for name, row in rows.items() if row.kind == "same"}
    assert {name.partition(",")[0] for name in same} == {f"messages and bytes in {phase}" for phase in secagg.PHASES}
    assert set(rows) == same | set(report)


# -------------------------------------------------------------------------------------------------- in a browser


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MODULES, "multi-round.md"])
def test_pictures_can_be_read_on_a_phone_and_opened_blocks_do_not_widen_a_page(
    address: str, window: Browser, name: str
) -> None:
    """A page is opened once, since that is what takes long; its width depends on that of the window alone."""
    window.show(390, 900, "dark")
    window.open(f"{address}/spec/{name.removesuffix('.md')}/")
    assert_written_large(window, "figure.flow svg", 2 if name == "secagg.md" else 1)
    assert window.run("document.querySelector('figure.flow').scrollWidth") <= 390
    opened = window.run(
        "(() => { const all = document.querySelectorAll('.md-content details');"
        "all.forEach((one) => { one.open = true; }); return all.length; })()"
    )
    assert opened > 30
    for width in (390, 1280):
        window.show(width, 900, "light")
        assert window.width() <= width


@pytest.mark.slow
def test_no_mention_is_linked_inside_code(site: Path) -> None:
    """Where a block of code is indented and not fenced, the site takes a mention in it for one of the text."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 300
    assert [page.relative_to(site).as_posix() for page in pages if "{ .mention }" in page.read_text("utf-8")] == []


@pytest.mark.slow
def test_the_anchor_of_each_clause_stays(site: Path) -> None:
    for name in PAGES:
        page = (site / "spec" / name.removesuffix(".md") / "index.html").read_text(encoding="utf-8")
        for clause in CLAUSE_LINE.findall((ROOT / "spec" / name).read_text(encoding="utf-8")):
            assert page.count(f'id="{clause}"') == 1, clause


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lightsecagg.md", "secagg.md"])
def test_steps_keep_their_numbers(site: Path, name: str) -> None:
    """The numbers of the lists are those of the text, also where they begin above one or jump."""
    page = (site / "spec" / name.removesuffix(".md") / "index.html").read_text(encoding="utf-8")
    written = [int(number) for number in re.findall(r"^(\d+)\. ", (ROOT / "spec" / name).read_text(), re.MULTILINE)]
    shown: list[int] = []
    for start, body in re.findall(r'<ol(?: start="(\d+)")?>(.*?)</ol>', page, re.DOTALL):
        shown += [int(start or 1) + at for at in range(len(re.findall(r"^<li>", body, re.MULTILINE)))]
    assert shown == written
