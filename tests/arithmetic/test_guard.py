"""Arguments of another class than the annotation says: `guard` refuses them, and each module calls it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np
import pytest

import secagg_spec
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.crypto.boxes import Address
from secagg_spec.crypto.entropy import draw_elements
from secagg_spec.errors import ParameterError
from secagg_spec.learning import problems
from secagg_spec.privacy import lies
from secagg_spec.protocols import codec, steps
from secagg_spec.protocols.heterosag import averages
from secagg_spec.protocols.heterosag.plan import PRESETS as PLANS
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.selection.participation import Roster

LAYERS = (
    "arithmetic", "crypto", "events", "learning", "planning", "privacy", "protocols", "recording", "selection",
    "traces",
)  # fmt: skip
FLOWER = ("batches", "client", "journal", "participation", "plan", "server", "weights")
CHECK_THEMSELVES = {f"secagg_spec.arithmetic.{name}" for name in ("guard", "validate", "numerals")}
"""What `guard` is made of, and what takes text alone and is loaded without numpy."""
FIELD = PrimeField(7)


MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(secagg_spec.__path__, "secagg_spec.", onerror=print)
    if not info.ispkg and info.name.split(".")[1] in LAYERS and info.name not in CHECK_THEMSELVES
)
MODULES += [f"secagg_spec.flower.{name}" for name in FLOWER]
"""The modules of the layers, but those of packages, which hold what is read; and those for Flower that need it not."""


def functions(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """Yield the public functions of a module and of its public classes."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield value
        elif inspect.isclass(value):
            public = (each for key, each in vars(value).items() if not key.startswith("_"))
            yield from filter(inspect.isfunction, (getattr(each, "__func__", each) for each in public))


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_library_is_guarded_in_its_last_line(name: str) -> None:
    module = importlib.import_module(name)
    lines = inspect.getsource(module).splitlines()
    assert lines[-1] == "guard(__name__)" or not list(functions(module))


@pytest.mark.parametrize("name", MODULES)
def test_the_annotations_of_what_is_guarded_can_be_read(name: str) -> None:
    for function in functions(importlib.import_module(name)):
        if hasattr(function, "__wrapped__"):
            get_type_hints(inspect.unwrap(function))


REFUSED: tuple[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str], ...] = (
    (lightsecagg.run_round, (None, []), {}, "parameters = 'NoneType': must be of the class Parameters"),
    (lightsecagg.run_round, (), {"parameters": 5, "updates": []},
     "parameters = 'int': must be of the class Parameters"),
    (lightsecagg.run_round, (secagg.PRESETS["tiny"], []), {},
     f"parameters = 'Parameters of {secagg.__name__}': must be of the class Parameters of {lightsecagg.__name__}"),
    (draw_elements, (7, FIELD, (1,)), {}, "source = 'int': must be an object with what Source has: take"),
    (draw_elements, (np.zeros(99, np.int64), FIELD, (1,)), {},
     "source = 'ndarray of dtype int64': must be an object with what Source has: take"),
    (draw_elements, (np.uint64(3), FIELD, (1,)), {}, "source = 'uint64': must be an object with what Source has: take"),
    (codec.decode, (None, b""), {}, "kind = 'NoneType': must be a class"),
    (lightsecagg.draw_randomness, (lightsecagg.PRESETS["tiny"], [1]), {}, "sources = 'list': must be a mapping"),
    (averages.combine, (PLANS["tiny"], "ab"), {}, "sums = 'str': must be a list or another sequence of CellSum"),
    (steps.Network(lightsecagg.TABLE, {}).mail, ("step",), {"party": 0}, "step = 'str': must be of the class Step"),
    (Roster.named, (5,), {}, "names = 'int': must be a list or another sequence of text"),
    (Address, (None, "self", 0, 1, 1), {}, "epoch = 'NoneType': must be of the class Epoch"),
    (secagg_active.user_again, (None, 1, np.zeros(1)), {}, "state = 'NoneType': must be of the class UserState"),
    (lies.least_sum, (9, 5, 1), {"withheld": 1}, "withheld = 'int': must be of the class bool"),
    (problems.Regression(3, 2, 0.1).initial, (7,), {}, "rng = 'int': must be of the class Generator"),
    (Roster.named, (np.array("ab"),), {},
     "names = 'ndarray of dtype <U2': must be a list or another sequence of text"),
)  # fmt: skip


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(("function", "given", "named", "said"), REFUSED)
def test_an_argument_of_another_class_is_refused_by_its_name(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError) as refusal:
        function(*given, **named)
    assert str(refusal.value) == said


def test_a_list_of_names_is_no_text_and_a_list_of_users_may_be_none() -> None:
    assert Roster(2, None).names is None
    with pytest.raises(ParameterError, match=r"^names = 'str': must be a list"):
        Roster.named("ab")


@pytest.mark.requirement("ERR-02")
def test_an_array_without_axes_is_refused_after_one_with_an_axis_too() -> None:
    names: Any = np.array(["ann", "bob"])
    one: Any = np.array("ann")
    for given, wanted in ((names, "a sequence of names"), (one, "a list or another sequence of text")):
        with pytest.raises(ParameterError) as refusal:
            Roster.named(given)
        assert str(refusal.value) == f"names = 'ndarray of dtype <U3': must be {wanted}"
