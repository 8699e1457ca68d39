"""The list of figures, tables and theorems: complete, and what it names is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from secagg_spec.cli import parser
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import catalogue, figures
from secagg_spec.ledger import entries
from tests.quick import one_in

PAPERS = Path(__file__).parents[3] / "shared" / "papers"
FILES = MappingProxyType(
    {
        "basecagg": "basecagg.txt",
        "basa": "basa.txt",
        "heterosag": "heterosag.txt",
        "multi-round": "multi-roundsecagg.txt",
    }
)
NUMBERED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"basecagg": (2, 0), "basa": (4, 1), "heterosag": (13, 6), "multi-round": (6, 1)}
)
"""How many figures and tables each paper has."""
_NAMED = re.compile(r"\b(fig(?:ure)?s?|table)\.?\s?(\d{1,2})(?=\D)", re.IGNORECASE)
_ALL = figures.load()


def numbered(paper: str) -> set[str]:
    """The numbers of the figures and tables of a paper in the list, without theorems and what is only an appendix."""
    return {one.number for one in _ALL if one.paper == paper and one.number.startswith(("figure", "table"))}


def named_in(text: str) -> set[str]:
    """The figures and tables that a text names."""
    return {f"{'table' if kind.lower() == 'table' else 'figure'} {int(at)}" for kind, at in _NAMED.findall(text)}


@pytest.mark.requirement("EXP-30")
@pytest.mark.parametrize("paper", list(figures.PAPERS))
def test_each_number_is_in_the_list(paper: str) -> None:
    pictures, tables = NUMBERED[paper]
    expected = {f"figure {at + 1}" for at in range(pictures)} | {f"table {at + 1}" for at in range(tables)}
    assert numbered(paper) == expected


@pytest.mark.requirement("EXP-30")
@pytest.mark.parametrize("paper", list(figures.PAPERS))
def test_what_the_paper_names_is_in_the_list(paper: str) -> None:
    if not PAPERS.is_dir():
        pytest.skip("the papers are not beside the project")
    assert numbered(paper) == named_in((PAPERS / FILES[paper]).read_text(encoding="utf-8"))


def test_names_are_found_in_a_text() -> None:
    text = "Figure 1: x. In Fig. 2, Fig.3, figure 4(a) and TABLE 12, in table\n5.\n"
    assert named_in(text) == {"figure 1", "figure 2", "figure 3", "figure 4", "table 12", "table 5"}


@pytest.mark.requirement("EXP-30")
def test_every_experiment_in_the_list_is_there_and_every_one_stands_for_a_figure() -> None:
    assert {one.experiment for one in _ALL} - {""} == set(catalogue.MODULES)


@pytest.mark.requirement("EXP-30")
def test_a_theorem_is_in_the_list_for_the_experiment_that_stands_for_it() -> None:
    theorems = {one.name: one.experiment for one in _ALL if one.number.startswith("theorem")}
    assert theorems == {
        "BASecAgg, theorem 1": "basecagg-theorem1",
        "HeteroSAg, theorem 2": "heterosag-theorem2",
        "Multi-RoundSecAgg, theorem 2": "multi-round-theorem2",
    }


def test_what_runs_a_claim_can_be_typed() -> None:
    figure = figures.Figure("basa", "figure 1", "boxes", claims=("ONE", "TWO", "THREE"))
    assert figure.stands == "secagg-spec claims ONE --verify, likewise TWO, THREE"


def test_an_experiment_has_the_short_name_of_a_figure_that_it_stands_for() -> None:
    assert {one.short for one in _ALL if one.short == one.experiment} == set(catalogue.MODULES)


@pytest.mark.requirement("EXP-30")
@pytest.mark.parametrize("figure", one_in(6, _ALL), ids=lambda figure: figure.name)
def test_what_stands_for_a_figure_is_there(figure: figures.Figure) -> None:
    claims = entries.load().claims
    assert all(claims[id].paper == figure.paper for id in figure.claims)
    assert all(claims[id].proof or claims[id].no_proof for id in figure.claims)
    if figure.command:
        options = parser().parse_args(figure.command.split()[1:])
        assert callable(options.run)
    assert figure.stands
    assert "\n" not in figure.shows


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('paper = "basa"\nnumber = "figure 9"\nshows = "x"', "exactly one of"),
        ('paper = "basa"\nnumber = "figure 9"\nshows = "x"\nreason = "y"\ncommand = "secagg-spec x"', "exactly one of"),
        ('paper = "basb"\nnumber = "figure 9"\nshows = "x"\nreason = "y"', "figure: 0: paper: 'basb' is not one of"),
        ('paper = "basa"\nnumber = "fig. 9"\nshows = "x"\nreason = "y"', "does not fit"),
        ('paper = "basa"\nnumber = "figure 9"\nreason = "y"', "is missing"),
        ('paper = "basa"\nnumber = "figure 9"\nshows = "x"\nreason = "y"\nwhy = "z"', "no such field"),
        ("paper =", "a TOML file"),
    ],
)
def test_a_list_that_breaks_its_form_is_refused(tmp_path: Path, entry: str, fault: str) -> None:
    path = tmp_path / "figures.toml"
    path.write_text(f"[[figure]]\n{entry}\n", encoding="utf-8")
    with pytest.raises(ParameterError, match=fault):
        figures.load(path)


def test_a_figure_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "figures.toml"
    path.write_text(
        '[[figure]]\npaper = "basa"\nnumber = "figure 1"\nshows = "x"\nreason = "y"\n' * 2, encoding="utf-8"
    )
    with pytest.raises(ParameterError, match=r"BASA, figure 1.*once"):
        figures.load(path)
