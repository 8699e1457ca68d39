"""Drawn cases lie inside what the text allows and inside what an adapter declares, whatever it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.conformance.adapter.capabilities import Capabilities, Range, greet, shake_hands
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Answer
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.base import Caller, CheckFailed
from secagg_spec.conformance.checks.ends import blocks, narrowings
from secagg_spec.conformance.running.runner import Settings, run_check
from secagg_spec.conformance.targets.reference import adapter as reference

NUMBERS = st.integers(0, 45)


def ranges(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of declared ranges of one parameter, sensible or not."""
    values = st.lists(NUMBERS, min_size=1, max_size=4)
    moduli = st.lists(st.sampled_from(["2", "3", "4", "7", "31", "32749", "4294967291"]), min_size=1, max_size=3)
    bounds = st.tuples(NUMBERS, NUMBERS).map(lambda ends: {"min": min(ends), "max": max(ends)})
    return (moduli if name == "q" else values).map(lambda drawn: {"values": drawn}) | bounds


def declared(operation: str, names: tuple[str, ...]) -> st.SearchStrategy[Capabilities]:
    """Return a strategy of capabilities with one operation."""
    drawn = st.fixed_dictionaries({}, optional={name: ranges(name) for name in names})
    hello = {"protocol": [1, 0], "implementation": {"name": "x", "version": "1", "language": "c"}, "randomness": "none"}
    return drawn.map(lambda r: shake_hands(Answer("result", {**hello, "operations": {operation: {"ranges": r}}})))


def possible(caps: Capabilities) -> bool:
    """Return whether the kit accepts the declaration."""
    try:
        strategies.refuse_impossible(caps)
    except AdapterUnusable:
        return False
    return True


def inside(caps: Capabilities, operation: str, drawn: dict[str, int]) -> bool:
    """Return whether drawn parameters lie in the declared ranges."""
    return caps.declares(operation, strategies.decimal(drawn))


@pytest.mark.requirement("ADP-06", "MDS-01")
@given(declared("mds.encode", ("q", "N", "U", "T")), st.sampled_from([0, 1]), st.data())
def test_codes_are_inside_the_text_and_the_ranges(caps: Capabilities, spare: int, data: st.DataObject) -> None:
    if not possible(caps) or not strategies.possible(caps, "mds.encode", spare):
        return
    drawn = strategies.code(data.draw, caps, "mds.encode", spare)
    assert 1 <= drawn["T"] < drawn["U"] <= drawn["N"] - spare < drawn["q"]
    assert inside(caps, "mds.encode", drawn)


@pytest.mark.requirement("ADP-06", "LSA-01")
@given(declared("lightsecagg.round", ("q", "N", "D", "U", "T")), st.sampled_from([0, 1]), st.data())
def test_sessions_are_inside_the_text_and_the_ranges(caps: Capabilities, spare: int, data: st.DataObject) -> None:
    if not possible(caps) or not strategies.possible(caps, "lightsecagg.round", spare):
        return
    drawn = strategies.session(data.draw, caps, "lightsecagg.round", spare)
    kept = drawn["N"] - drawn["D"]
    assert drawn["T"] >= 1
    assert drawn["U"] > drawn["T"]
    assert drawn["D"] >= 0
    assert kept >= max(drawn["U"], drawn["T"] + 2)
    assert drawn["U"] <= drawn["N"] - spare
    assert drawn["q"] > drawn["N"]
    assert inside(caps, "lightsecagg.round", drawn)


def test_ranges_that_exclude_everything_are_refused_with_the_operation() -> None:
    for declaration in ({"q": {"values": ["4"]}}, {"N": {"max": 1}}, {"T": {"min": 5}, "U": {"max": 5}}):
        hello = {"protocol": [1, 0], "implementation": {"name": "x", "version": "1", "language": "c"}}
        body = {**hello, "randomness": "none", "operations": {"mds.encode": {"ranges": declaration}}}
        with pytest.raises(AdapterUnusable, match=r"mds\.encode"):
            strategies.refuse_impossible(shake_hands(Answer("result", body)))


@pytest.mark.requirement("ADP-06")
@given(st.integers(0, 2**32 + 10), st.integers(0, 3000), st.booleans())
def test_a_modulus_is_found_wherever_there_is_one(low: int, width: int, prime: bool) -> None:
    found = strategies.moduli(Range(low, low + width), prime=prime)
    inside = range(max(low, 2), min(low + width, 2**32) + 1)
    assert all(q in inside and (is_prime(q) or not prime) for q in found)
    assert found or not any(is_prime(q) or not prime for q in inside)


@pytest.mark.parametrize(
    ("ranges", "N"),
    [
        ({"N": {"values": [100]}}, 100),
        ({"D": {"min": 50}}, 53),
        ({"T": {"min": 60}}, 62),
        ({"U": {"values": [70]}}, 70),
        ({"N": {"min": 500}}, 500),
    ],
)
def test_numbers_above_what_is_drawn_by_default_are_met(ranges: dict[str, Any], N: int) -> None:
    hello = {"protocol": [1, 0], "implementation": {"name": "x", "version": "1", "language": "c"}}
    body = {**hello, "randomness": "none", "operations": {"lightsecagg.recover": {"ranges": ranges}}}
    space = strategies.Space(shake_hands(Answer("result", body)), ("lightsecagg.recover",), bearable=False)
    assert space.possible()
    assert min(space.rosters()) == N


@pytest.mark.requirement("CNF-61")
def test_the_messages_of_an_inbox_come_in_an_order_of_the_kits_own() -> None:
    connection = DirectConnection(reference.build().answer)
    caller, inbox = Caller(connection, greet(connection.ask)), [f"{number:02x}" for number in range(20)]
    for order in (inbox, inbox[::-1]):
        caller.ask("session.step", {"handle": "h", "phase": "share", "inbox": order})
        caller.ask("lightsecagg.server", {"steps": [{"phase": "share", "inbox": order}]})
    asked = [exchange.request.params for exchange in caller.transcript]
    came = [params.get("inbox") or params["steps"][0]["inbox"] for params in asked]
    assert all(each == came[0] for each in came)
    assert sorted(came[0]) == inbox
    assert came[0] not in (inbox, inbox[::-1])


@pytest.mark.requirement("CNF-62")
@pytest.mark.parametrize(
    ("check", "ends"),
    [
        ("mds.encode/exact", {("q", 2**32 - 5), ("N", 256), ("N", 257)}),
        ("quantizer.quantize/exact", {("q", 2), ("q", 2**32), ("level", 1), ("level", 2**32), ("weight", 1)}),
        ("shamir.share/exact", {("n", 256), ("n", 257), ("t", 2)}),
        ("lightsecagg.user/exact", {("N", 257)}),
    ],
)
def test_the_ends_of_each_range_are_drawn_and_more_than_255_users(check: str, ends: set[tuple[str, int]]) -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    assert ends <= {(name, end) for name, end, _ in narrowings(caps, REGISTRY[check])}
    assert f"{check}/ends" in REGISTRY


@pytest.mark.requirement("CNF-89")
@pytest.mark.parametrize(
    "check", ["mds/any-shares", "lightsecagg.round/sum", "basecagg.rounds/sums", "secagg.sum/exact"]
)
def test_all_lengths_around_blocks_are_asked_for(check: str) -> None:
    connection = DirectConnection(reference.build().answer)
    caps, again = greet(connection.ask), REGISTRY[f"{check}/blocks"]
    asked: list[int] = []

    def answer(request: Any) -> dict[str, Any]:
        params = request["params"]
        if request["op"] == again.operations[0]:
            asked.append(len(params.get("mask") or params["updates"][0]) // 8)
        return reference.build().answer(request)

    found = run_check(DirectConnection(answer), caps, again, Settings(cases=1))
    assert found.verdict == "pass"
    for count, _ in blocks(caps, REGISTRY[check]):
        assert count > 1
        assert set(range(1, 2 * count + 2)) <= set(asked)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda texts: [*texts[:2], texts[2][:8]],
        lambda texts: [texts[0], texts[1][:8], texts[2] + texts[1][8:]],
        lambda texts: [*texts[:2], texts[2].upper()],
        lambda texts: [*texts[:2], "ffffffff" * 2],
        lambda texts: [*texts[:2], None],
        lambda texts: [*texts[:2], 5],
        lambda texts: [texts[0][:-1], "a" + texts[1], texts[2]],
    ],
)
def test_vectors_that_are_read_together_are_refused_as_one_by_one(spoil: Callable[[list[Any]], list[Any]]) -> None:
    connection = DirectConnection(reference.build().answer)
    caller, texts = Caller(connection, greet(connection.ask)), [f"{at:02x}0000ab" * 2 for at in range(3)]
    assert caller.read_all("op", texts, "shares", 2, 2**32 - 5).tolist() == [[0xAB000000 + at] * 2 for at in range(3)]
    said = []
    for read in (
        lambda given: caller.read_all("op", given, "shares", 2, 2**32 - 5),
        lambda given: [caller.read("op", text, f"shares[{at}]", 2, 2**32 - 5) for at, text in enumerate(given)],
    ):
        with pytest.raises(CheckFailed) as raised:
            read(spoil(texts))
        said.append((raised.value.verdict, str(raised.value)))
    assert said[0] == said[1]
