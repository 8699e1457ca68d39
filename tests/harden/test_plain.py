"""Whatever comes in, numbers are Python's, arrays are plain, and members are not the caller's lists (ERR-02)."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic import averages, validate
from secagg_spec.errors import LengthMismatch, Malformed, OutOfRange, ParameterError
from secagg_spec.protocols.codec import vector_bytes
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import graph
from tests.harden import public
from tests.harden.narrow import SIGNED, UNSIGNED, differences, members, narrowed, rebuilt, subclassed
from tests.protocols.test_refusals import CALLS
from tests.quick import one_in, part

LARGE = np.array([1.7e308, -1.7e308, 1.7e308])
PASSED_ON = {
    "take_randomness", "check_randomness", "check_inbox", "accept", "check_surviving_set", "check_buffer",
    "run_round", "run_synchronous",
}  # fmt: skip
"""Calls that read not every array: they pass it on, or it belongs to a user that has dropped out."""
CONVERTED = {"MasterKey"}
"""A key whose members `scalar` converts."""


def classes() -> Iterator[Any]:
    """Yield the public frozen data classes of the layers that hold integers or sequences."""
    for layer in public.LAYERS:
        package = importlib.import_module(f"secagg_spec.{layer}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module: dict[str, Any] = vars(importlib.import_module(info.name))
            for name, kind in module.items():
                own = inspect.isclass(kind) and kind.__module__ == info.name and not name.startswith("_")
                data = own and is_dataclass(kind) and getattr(kind, "__dataclass_params__").frozen  # noqa: B009
                if data and any(map(_counts, fields(kind))):
                    yield kind


def _counts(member: Any) -> bool:
    text = str(member.type)
    return text in {"int", "int | None", "U32"} or text.startswith(("tuple[int", "tuple[bytes", "Sequence[int"))


@cache
def instances() -> dict[type, Any]:
    """Return one object of each class that the right calls of CALLS hold or return."""
    found: dict[type, Any] = {}

    def look(value: Any) -> None:
        if isinstance(value, list | tuple):
            for one in value[:3]:
                look(one)
        elif isinstance(value, dict):
            for one in list(value.values())[:3]:
                look(one)
        elif is_dataclass(value) and not isinstance(value, type) and type(value) not in found:
            found[type(value)] = value
            for name in members(value):
                look(getattr(value, name))

    for call in CALLS.values():
        look([*call.arguments.values(), *call.fixed.values(), call()])
    return found


@pytest.mark.requirement("ERR-02")
def test_every_class_of_integers_or_sequences_stores_plain_values() -> None:
    assert {kind.__name__ for kind in classes() if not issubclass(kind, validate.Plain)} <= CONVERTED
    seen = 0
    for kind, value in instances().items():
        if not issubclass(kind, validate.Plain) or not rebuilt(value):
            continue
        given = {name: getattr(value, name) for name in members(value)}
        lists = {name: list(one) if type(one) is tuple else one for name, one in given.items()}
        for types in (SIGNED, UNSIGNED):
            kept = replace(value, **narrowed(lists, types))
            for name, one in given.items():
                got = getattr(kept, name)
                assert type(got) is type(one), (kind, name)
                assert type(one) is not tuple or [type(e) for e in got] == [type(e) for e in one], (kind, name)
        seen += 1
    assert seen > 40


@pytest.mark.requirement("ERR-02", "LSA-01")
def test_parameters_of_lightsecagg_do_not_wrap() -> None:
    with pytest.raises(ParameterError, match="N - D = 127"):
        lightsecagg.Parameters(q=2**32 - 5, N=130, D=3, U=127, T=np.int8(126), d=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="D = 6"):
        lightsecagg.Parameters(q=2**32 - 5, N=np.uint64(5), D=np.uint64(6), U=np.uint64(3), T=np.uint64(1), d=3)  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", one_in(3, CALLS))
def test_a_call_is_the_same_with_integers_of_numpy(name: str) -> None:
    call = CALLS[name]
    assert not list(differences(call, call.arguments, call.sizes))


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", one_in(3, sorted(CALLS.keys() - PASSED_ON)))
def test_an_array_of_a_subclass_is_refused(name: str) -> None:
    call = CALLS[name]
    for argument, old in call.arguments.items():
        for other in subclassed(old):
            with pytest.raises((ParameterError, Malformed), match="of no subclass"):
                call(**{argument: other})


@pytest.mark.slow
@pytest.mark.requirement("ERR-02")
def test_recorded_calls_are_the_same_with_integers_of_numpy() -> None:
    found: dict[str, list[str]] = {}
    for call in part(3, public.right_calls(5)):
        skipped = tuple(public.BY_PROGRAM.get(call.name.rpartition(".")[2], ()))
        if said := list(differences(call.again, call.arguments, skipped)):
            found[call.name] = said
    assert not found


@pytest.mark.requirement("ERR-02")
def test_a_mapped_array_is_taken_and_a_masked_one_is_no_vector(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "numbers", np.uint64, "w+", shape=(2,))
    assert vector_bytes(mapped) == vector_bytes(np.zeros(2, np.uint64))
    masked = np.ma.MaskedArray(np.zeros(2, np.uint64), mask=[True, False])
    with pytest.raises(ParameterError, match="of no subclass"):
        vector_bytes(masked)


@pytest.mark.requirement("SAG-04")
def test_a_graph_keeps_no_list_of_its_caller() -> None:
    order = [0, 1, 2, 3]
    ring = graph.Graph(order, 2)  # type: ignore[arg-type]
    order.clear()
    assert ring == graph.Graph((0, 1, 2, 3), 2)
    assert ring.neighbours(1) == {0, 2}


@pytest.mark.requirement("FBF-02", "FBF-15")
def test_models_too_far_apart_are_refused() -> None:
    with pytest.raises(OutOfRange, match=r"^downloaded - trained\[0\] = inf: must be finite$"):
        fedbuff.local_update(LARGE, -LARGE)
    with pytest.raises(OutOfRange, match="average"):
        fedbuff.average_reals([2, 1], [LARGE, LARGE])
    assert np.isinf(fedbuff.moved(LARGE, LARGE, -1.0)).all()  # without a warning; `step` refuses it


@pytest.mark.requirement("HSA-24", "HSA-25", "HSA-26")
@pytest.mark.parametrize(("method", "trim"), [("mean", 0), ("median", 0), ("trimmed", 1)])
def test_there_is_one_count_for_each_cell_in_every_method(method: str, trim: int) -> None:
    means = np.ones((3, 2))
    with pytest.raises(ParameterError, match="counts"):
        averages.combined(means, object(), method, trim)  # type: ignore[arg-type]
    with pytest.raises(LengthMismatch, match="counts"):
        averages.combined(means, [1, 1], method, trim)
    if method == "mean":
        with pytest.raises(ParameterError, match=r"counts\[1\] = 0"):
            averages.combined(means, [1, 0, 1], method, trim)


class Strange:
    """A value whose text is what a test says."""

    def __init__(self, text: str | Exception) -> None:
        self.text = text

    def __repr__(self) -> str:
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


@pytest.mark.requirement("ERR-01")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\x1b]0;owned\x07\x1b[31m", r"\x1b]0;owned\x07\x1b[31m"),
        ("a\u202eb\ud800", r"a\u202eb\ud800"),
        (RuntimeError("no"), "a Strange that cannot be written"),
        (RecursionError("no"), "a Strange that cannot be written"),
    ],
)
def test_a_refusal_writes_a_value_whose_text_is_hostile(text: str | Exception, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        validate.integer("count", Strange(text), 0)
    assert str(caught.value) == f"count = {said}: must be an integer >= 0"


@pytest.mark.requirement("ERR-01")
def test_a_message_is_shown_whatever_its_session_is() -> None:
    session: Any = "abc"
    assert repr(lightsecagg.MaskShare(session, 0, 0, 1, b"s")).startswith("MaskShare(session=str, ")
