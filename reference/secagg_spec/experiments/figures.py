"""The list of all figures, tables and tested theorems of the papers, and what reproduces each.

Source: spec/experiments.md, section 8 (EXP-30); spec/figures.toml, spec/figures.schema.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from secagg_spec import documents, resources, schemas
from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError

PAPERS = {
    "basecagg": "BASecAgg",
    "basa": "BASA",
    "heterosag": "HeteroSAg",
    "multi-round": "Multi-RoundSecAgg",
}
"""The name of each paper, by its file name in spec/claims."""


@dataclass(frozen=True)
class Figure:
    """A figure, table or theorem, with exactly one of the fields that say what reproduces it."""

    paper: str
    number: str
    shows: str
    experiment: str = ""
    command: str = ""
    claims: tuple[str, ...] = ()
    reason: str = ""

    @property
    def name(self) -> str:
        """Paper and number, as an experiment writes them."""
        return f"{PAPERS[self.paper]}, {self.number}"

    @property
    def short(self) -> str:
        """The name that its own experiment has, or would have, such as basecagg-fig1."""
        return f"{self.paper}-{self.number.replace('figure ', 'fig').replace(' ', '')}"

    @property
    def stands(self) -> str:
        """What reproduces it: a command, or the reason why there is none."""
        if self.experiment:
            return f"secagg-spec reproduce {self.experiment}"
        return self.command or self.reason or _verified(*self.claims)


def _verified(first: str, *others: str) -> str:
    """Return a command to type, and the claims that have a similar one."""
    return f"secagg-spec claims {first} --verify" + (f", likewise {', '.join(others)}" if others else "")


def load(path: Path | None = None) -> tuple[Figure, ...]:
    """Return all figures, tables and theorems, in the order of the list.

    Raises
    ------
    ParameterError
        The list breaks its schema, or names a figure twice.
    """
    path = validate.path_of("path", resources.root("spec") / "figures.toml" if path is None else path)
    try:
        content = documents.read_toml(path)
    except (OSError, ValueError) as error:
        raise ParameterError("figures", path.name, f"a TOML file: {' '.join(str(error).split())}") from None
    for where, fault in schemas.faults(content, schemas.load(resources.root("spec") / "figures.schema.json")):
        place = "".join(f"{part}: " for part in where)
        raise ParameterError(path.name, "another content", f"as in figures.schema.json; {place}{fault}")
    figures = tuple(_figure(entry) for entry in content["figure"])
    names = [one.name for one in figures]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ParameterError(path.name, twice[0], "named once")
    return figures


def _figure(entry: dict[str, object]) -> Figure:
    texts = {name: " ".join(str(value).split()) for name, value in entry.items() if name != "claims"}
    claims = entry.get("claims", [])
    assert isinstance(claims, list)
    return Figure(**texts, claims=tuple(claims))
