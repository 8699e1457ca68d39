"""Bugs that show at the sizes of real models alone are found, and slow implementations lose nothing (CNF-85)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.running.runner import Outcome, Settings, run
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.conformance.foreign import pairwise, ring, summing
from tests.quick import part

pytestmark = pytest.mark.usefixtures("unshrunk")

Answer = Callable[..., dict[str, Any]]


def judged(adapter: Adapter, pattern: str, seconds: float = 10.0) -> Outcome:
    """Judge an adapter of the reference's functions by one check."""
    connection = DirectConnection(adapter.answer)
    connection.timeout = seconds  # type: ignore[attr-defined]
    _, [outcome] = run(connection, Settings(cases=100, seed=1, pattern=pattern))
    return outcome


def changed(operation: str, wrong: Callable[[dict[str, Any]], dict[str, Any]], **policy: str) -> Adapter:
    """Return the reference with one operation, of which results are changed."""
    whole, adapter = reference.build(), Adapter("changed", "1", policy=policy)
    handler = whole._handlers[operation]
    adapter.operation(operation)(lambda **given: wrong(handler(**given)))
    return adapter


def beyond(at: int, member: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what makes element `at` of a result wrong, where there is one."""

    def wrong(result: dict[str, Any]) -> dict[str, Any]:
        values = np.frombuffer(bytes.fromhex(result[member]), "<u4").copy()
        values[at:] ^= 1
        return {**result, member: values.tobytes().hex()}

    return wrong


@pytest.mark.slow
@pytest.mark.requirement("CNF-85")
@pytest.mark.parametrize(
    ("operation", "member"),
    [("field.add", "value"), ("field.multiply", "value"), ("lightsecagg.mask", "masked")],
)
def test_a_bug_beyond_a_hundred_thousand_elements_is_found(operation: str, member: str) -> None:
    outcome = judged(changed(operation, beyond(2**17, member)), f"{operation}/size")
    assert outcome.verdict == "wrong_value"
    assert outcome.failure is not None
    assert f"first difference at element {2**17}" in outcome.failure.message
    assert judged(changed(operation, dict), f"{operation}/size").verdict == "pass"


@pytest.mark.requirement("CNF-85")
def test_numbers_that_are_off_by_more_than_one_beyond_a_block_are_found() -> None:
    def wrong(result: dict[str, Any]) -> dict[str, Any]:
        values = np.frombuffer(bytes.fromhex(result["value"]), "<u4").copy()
        values[2**16 :] = 0
        return {"value": (values + 2 * (np.arange(values.size) >= 2**16).astype("<u4")).tobytes().hex()}

    assert judged(changed("quantizer.quantize", wrong), "quantizer.quantize/size").verdict == "wrong_value"


@pytest.mark.requirement("CNF-85")
def test_a_slow_implementation_is_asked_for_less_and_that_is_said() -> None:
    def late(result: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.1)
        return result

    outcome = judged(changed("field.add", late), "field.add/size", seconds=1.0)
    assert outcome.verdict == "pass"
    assert "more than 10,000 elements were left out" in outcome.note


@pytest.mark.slow
@pytest.mark.requirement("CNF-85", "ADP-41")
@pytest.mark.parametrize("most", part(2, [300, 1000]))
def test_as_many_users_as_are_declared_are_asked_for(most: int) -> None:
    asked: list[int] = []
    right = pairwise(ring, masked=lambda R: R)

    def play(R: int, rows: Any, drop: Any) -> Any:
        asked.append(len(rows))
        total, users, seen = right(R, rows, drop)
        return ([value + (len(rows) > 255) for value in total] if wrong else total), users, seen

    for wrong in (False, True):
        adapter = summing("many", play, ranges={"N": {"max": most}, "R": {"max": str(2**31)}, "t": {"min": 1}})
        outcome = judged(adapter, "secagg.sum/size")
        assert outcome.verdict == ("wrong_value" if wrong else "pass")
        assert max(asked) == most


@pytest.mark.slow
@pytest.mark.requirement("CNF-85")
def test_no_more_users_than_a_thousand_are_asked_for() -> None:
    counted: list[int] = []

    def play(R: int, rows: Any, drop: Any) -> Any:
        counted.append(len(rows))
        return [sum(column) % R for column in zip(*rows, strict=True)], list(range(len(rows))), {}

    sets = [{"N": N, "t": N} for N in (3, 700, 5000)]
    adapter = summing("huge", play, parameter_sets=sets, ranges={"R": {"values": [str(2**16)]}})
    assert judged(adapter, "secagg.sum/size").verdict == "pass"
    assert max(counted) == 700
