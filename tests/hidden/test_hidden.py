"""What `make setup` installs is enough for the command; ``tests/site`` tries so what `make docs` installs."""

from __future__ import annotations

import sys

import pytest

from tests import hidden
from tests.site.shell import run

HELP = """
import contextlib, io
from secagg_spec import cli
for name in cli.COMMANDS:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        cli.main([name, "--help"])
    assert out.getvalue().startswith(f"usage: secagg-spec {name}"), name
"""
FOUND = """
import sys
from importlib.util import find_spec
print(*(name for name in sys.argv[1:] if find_spec(name)))
"""


@pytest.mark.slow
def test_what_is_hidden_is_not_found_and_all_else_is() -> None:
    names = ("json", "numpy", "flint", "pytest", "xdist", "secagg_spec")
    command = (sys.executable, "-c", FOUND, *names)
    assert run(*command, **hidden.without()).stdout.split() == ["json", "numpy", "flint", "secagg_spec"]
    assert run(*command, **hidden.without("test")).stdout.split() == [*names]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("-c", HELP),
        ("-m", "secagg_spec.cli", "vectors"),
        ("-m", "secagg_spec.cli", "conform", "--target", "reference", "-k", "field.add", "--fuzz", "1"),
        ("-m", "secagg_spec.conformance.reports.results", "--help"),
        ("-m", "secagg_spec.cli", "plan", "--users", "100", "--dimension", "1e4"),
        ("-m", "tests.stories", "--stories", "1", "--jobs", "1"),
    ],
    ids=["help", "vectors", "conform", "results", "plan", "stories"],
)
def test_the_core_alone_is_enough(command: tuple[str, ...]) -> None:
    done = run(sys.executable, *command, **hidden.without())
    assert done.returncode == 0, done.stderr
