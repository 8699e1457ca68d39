"""A number rises with what changed: planted changes of vectors, operations, clauses and functions are found."""

from __future__ import annotations

import inspect
import json
from copy import deepcopy
from typing import Any

import pytest

from secagg_spec import history
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.resources import root
from tests import versions
from tests.versions import faults, least, takes_the_same

LINES = ["a-01 00ff", "a-02 11ff"]
DEFINITIONS = json.loads((root("spec") / "operations.json").read_text(encoding="utf-8"))["$defs"]


def test_every_number_has_risen_as_far_as_it_has_to() -> None:
    record = versions.stored()
    assert versions.now(record) == []
    assert versions.main([]) == 0


def test_the_record_is_that_of_the_last_released_version() -> None:
    released = [one.number for one in history.load().versions if one.released]
    record = versions.stored()
    assert ("clauses" in record) == ("functions" in record) == bool(released)
    assert record["version"] == (released[-1] if released else history.load().present.number)


def _record(version: str = "0.1.0", adapter: str = "1.1") -> Any:
    return {
        "version": version,
        "adapter": adapter,
        "vectors": {"count": len(LINES), "digest": versions._digest(LINES)},
        "operations": versions.operations(DEFINITIONS),
        "clauses": {"AAA-01": "00", "AAA-02": "11"},
        "functions": {"f": "a b=", "g": "a * c"},
    }


def _planted(change: str) -> tuple[Any, list[str]]:
    """What comes after a record with one change."""
    new, lines, schemas = _record(), list(LINES), deepcopy(DEFINITIONS)
    params = schemas["field.add.request"]["properties"]["params"]
    match change:
        case "a vector changes":
            lines[0] = "a-01 0000"
        case "a vector is withdrawn":
            lines[1] = "a-02 withdrawn"
        case "a vector is lost":
            del lines[0]
        case "a vector comes":
            lines.append("a-03 22ff")
        case "an operation is lost":
            del schemas["field.add.request"]
        case "a member is renamed":
            params["properties"]["p"] = params["properties"].pop("q")
            params["required"][0] = "p"
        case "a member changes":
            params["properties"]["a"] = {"type": "number"}
        case "a member has to be given":
            params["properties"]["c"] = {"type": "number"}
            params["required"].append("c")
        case "a member may be given":
            params["properties"]["c"] = {"type": "number"}
        case "a member may be left out":
            params["required"].remove("a")
        case "an operation comes":
            schemas["field.divide.request"] = schemas["field.add.request"]
        case "a clause changes":
            new["clauses"]["AAA-01"] = "22"
        case "a clause is lost":
            del new["clauses"]["AAA-02"]
        case "a clause comes":
            new["clauses"]["AAA-03"] = "33"
        case "a function is lost":
            del new["functions"]["f"]
        case "a function takes less":
            new["functions"]["f"] = "a"
        case "a function asks for more":
            new["functions"]["g"] = "a * c d"
        case "a function takes more":
            new["functions"]["g"] = "a * c d="
        case "a function comes":
            new["functions"]["h"] = ""
        case _:
            raise AssertionError(change)
    new["operations"] = versions.operations(schemas)
    return new, lines


BREAKING = (
    *("a vector changes", "a vector is withdrawn", "a vector is lost", "an operation is lost", "a member is renamed"),
    *("a member changes", "a member has to be given", "a member may be left out", "a clause changes"),
    *("a clause is lost", "a function is lost", "a function takes less", "a function asks for more"),
)
ADDING = (
    *("a vector comes", "an operation comes", "a member may be given", "a clause comes", "a function takes more"),
    "a function comes",
)


@pytest.mark.parametrize("change", [*BREAKING, *ADDING])
def test_a_planted_change_needs_a_higher_number(change: str) -> None:
    new, lines = _planted(change)
    which = "adapter" if "member" in change or "operation" in change else "version"
    breaks = change in BREAKING
    needed = {"adapter": "2.0" if breaks else "1.2", "version": "0.2.0" if breaks else "0.1.1"}[which]
    found = faults(_record(), new, lines)
    assert found
    assert all(f"{needed} or a later one is needed" in one for one in found), found
    assert faults(_record(), {**new, which: needed}, lines) == []
    if breaks:
        too_low = {"adapter": "1.9", "version": "0.1.9"}[which]
        assert faults(_record(), {**new, which: too_low}, lines) == found_with(found, new[which], too_low)


def found_with(found: list[str], old: str, new: str) -> list[str]:
    return [one.replace(f"version {old}:", f"version {new}:") for one in found]


def test_from_1_0_on_the_first_number_rises() -> None:
    assert [least("0.1.0", breaks=True), least("0.1.0", breaks=False)] == ["0.2.0", "0.1.1"]
    assert [least("1.4.2", breaks=True), least("1.4.2", breaks=False)] == ["2.0.0", "1.4.3"]
    assert [least("1.1", breaks=True), least("1.1", breaks=False)] == ["2.0", "1.2"]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("a b", "a b", True),
        ("a b", "b a", False),
        ("a b", "a c", False),
        ("a", "a b", False),
        ("a", "a b=", True),
        ("a", "a= b=", True),
        ("a=", "a", False),
        ("a * c", "a c", False),
        ("a * c", "a c=", True),
        ("a * c", "a", False),
        ("a * c d=", "a * d= c", True),
        ("a", "a *more", True),
        ("a **more", "a", False),
    ],
)
def test_a_function_takes_every_call_that_it_took(old: str, new: str, same: bool) -> None:
    assert takes_the_same(old, new) is same


def test_functions_classes_and_methods_are_recorded() -> None:
    found = versions.functions()
    assert len(found) > 600
    assert found["protocols.lightsecagg.round.recover"] == "parameters masked_sum users shares"
    assert found["protocols.lightsecagg.round.run_round"].startswith(
        "parameters updates * randomness dropouts= session"
    )
    assert found["protocols.lightsecagg.round.Parameters"] == "q N D U T d"
    assert found["arithmetic.modular.Ring.encode_signed"].startswith("self ")
    assert found["flower.plan.read"]
    assert not [name for name in found if name.rpartition(".")[2].startswith("_")]


def test_a_function_that_lost_an_argument_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {**versions.present(released=True), "version": "0.1.0"}

    def recover(parameters: Any, masked_sum: Any, users: Any) -> Any:
        """Has one argument less."""

    recover.__module__ = lightsecagg.__name__
    monkeypatch.setattr(lightsecagg, "recover", recover)
    assert inspect.signature(lightsecagg.recover)
    found = faults(old, versions.present(released=True), versions._lines())
    said = "functions: protocols.lightsecagg.round.recover changed, and the text still has the version 0.1.0"
    assert found == [f"{said}: 0.2.0 or a later one is needed"]
