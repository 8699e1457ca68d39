"""The page on which a protocol joins the kit: what it says comes true, and each of its bugs is found."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from secagg_spec.conformance.checks import joining
from secagg_spec.conformance.checks.joining import join
from secagg_spec.conformance.targets.reference.sessions import PROTOCOLS
from secagg_spec.errors import ParameterError
from tests.quick import part

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "join-the-kit.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
SAID = dict(re.findall(r"^```console\n\$ python judge\.py ([^\n]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
MUTANTS = tomllib.loads(FILES["mutants.toml"])


def judged(folder: Path, edited: str, *pattern: str) -> str:
    """Return what the page's command prints for the edited protocol, judged by the right one."""
    other = folder / "edited"
    other.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
        (other / name).write_text(edited if name == "additive.py" else text, encoding="utf-8")
    command = [sys.executable, "judge.py", "edited/adapter.py", *pattern]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert not done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_protocol_of_the_page_passes_what_is_derived_for_it(tmp_path: Path) -> None:
    assert judged(tmp_path, FILES["additive.py"]) == SAID["adapter.py"]


@pytest.mark.slow
@pytest.mark.parametrize("name", part(4, MUTANTS))
def test_each_bug_of_the_page_is_found_by_the_check_that_it_names(name: str, tmp_path: Path) -> None:
    mutant, right = MUTANTS[name], FILES["additive.py"]
    assert right.count(mutant["old"]) == 1
    edited = right.replace(mutant["old"], mutant["new"])
    if name == "wrapped-silently":
        assert judged(tmp_path, edited) == SAID["edited/adapter.py"]
    else:
        said = judged(tmp_path, edited, mutant["killed"])
        assert said.startswith("0 of 1 checks pass\n")
        assert f"  {mutant['killed']}: " in said


def test_the_protocol_has_about_forty_lines_beside_its_imports() -> None:
    code = FILES["additive.py"].partition("USERS =")[2].splitlines()
    assert sum(bool(line.strip()) for line in code) <= 44


TABLE = "| party | `numbers` | `setup` | rand |\n| --- | --- | --- | --- |\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no table", r"text = \[\]: must be a page with a table of the parties \.server, \.user"),
        (f"{TABLE}| `a.user` | `N` | `user` | |\n\n", r"text = \['a.user'\]: must be a page .* a.server, a.user"),
        (
            f"{TABLE}| `secagg.user` | `N` | `user`, `update`: `[vektor]` | |\n\n",
            r"type of update = 'vektor': must be made of alteration, .* words$",
        ),
        (
            f"{TABLE}| `secagg.user` | `N` | `update`: vector | |\n\n",
            "row = '`update`: vector': must be a member whose ",
        ),
        (
            f"{TABLE}| `secagg.user` | `N` | `user` |\n\n",
            "row = '`secagg.user`': must be followed by 3 cells, and ",
        ),
        (
            f"{TABLE}| `secagg.user` | `N` | `user` | |\n| `secagg.server` | `N` | | |\n",
            "clauses = 'ADD-01': must be a clause of the page",
        ),
        (
            f"[ADD-01]\n{TABLE}| `secagg.user` | `N` | `user` | |\n| `secagg.server` | `N` | | |\n\n",
            "text = 'secagg': must be the page of a protocol that has not joined yet",
        ),
    ],
)
def test_a_page_that_does_not_fit_is_refused(text: str, said: str) -> None:
    known = PROTOCOLS["secagg"]
    with pytest.raises(ParameterError, match=said):
        join(text, known, lambda draw, numbers: None, "ADD-01")  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("error", "broken"),
    [("KeyError: 'N'", lambda draw, numbers: dict[str, int]()["N"]), ("returns int", lambda draw, numbers: 7)],
)
def test_a_function_of_inputs_that_breaks_is_named(error: str, broken: Any) -> None:
    broken.__qualname__ = "my_inputs"
    with pytest.raises(ParameterError, match=f"my_inputs, which .*{error}"):
        joining._inputs(broken, None, None)
