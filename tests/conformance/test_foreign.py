"""Implementations with conventions of their own pass; their wrong twins fail, each at the right check."""

from __future__ import annotations

import re
import secrets
import struct
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import shake_hands
from secagg_spec.conformance.adapter.connection import DirectConnection, declaration
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Answer
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks import sums as checked_sums
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import Outcome, Settings, run
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Reject, element_bytes, pack, unpack
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference import wide
from tests.conformance import narrow
from tests.conformance.foreign import (
    FOREIGN,
    NOBODY_MAY_LEAVE,
    Foreign,
    Played,
    availability,
    every_pair,
    pairwise,
    reject,
    ring,
    summing,
)
from tests.quick import WHOLE, exhaustive, one_in, part

pytestmark = pytest.mark.usefixtures("unshrunk")


def outcomes(adapter: Adapter, pattern: str | None = None, cases: int = 40 if WHOLE else 16) -> dict[str, Outcome]:
    """Judge an adapter in this process, by vectors too, and return what ran."""
    _, found = run(DirectConnection(adapter.answer), Settings(cases=cases, seed=1, pattern=pattern, vectors=True))
    return {outcome.check.id: outcome for outcome in found if outcome.verdict != "unsupported"}


def failing(found: dict[str, Outcome]) -> dict[str, str]:
    """Return the messages of the failures."""
    return {id: outcome.failure.message for id, outcome in found.items() if outcome.failure}


@pytest.mark.slow
@pytest.mark.requirement(
    "ADP-41",
    "ADP-42",
    "ADP-43",
    "ADP-44",
    "ADP-45",
    "ADP-46",
    "ADP-47",
    "ADP-48",
    "MDS-05",
    "PRG-05",
    "QNT-02",
    "SEA-05",
    "SHM-08",
)
@pytest.mark.parametrize("foreign", one_in(2, part(8, FOREIGN)), ids=lambda foreign: foreign.name)
def test_a_right_implementation_with_other_conventions_has_no_failure(foreign: Foreign) -> None:
    found = outcomes(foreign.build(False))
    assert failing(found) == {}
    assert found[foreign.found].verdict == "pass"
    assert sum(outcome.cases for outcome in found.values()) > 100


@pytest.mark.slow
@pytest.mark.requirement(
    "ADP-41",
    "ADP-42",
    "ADP-43",
    "ADP-44",
    "ADP-45",
    "ADP-46",
    "ADP-47",
    "ADP-48",
    "MDS-10",
    "PRG-05",
    "QNT-02",
    "QNT-12",
    "SEA-02",
    "SHM-13",
)
@pytest.mark.parametrize("foreign", one_in(2, part(8, FOREIGN)), ids=lambda foreign: foreign.name)
def test_its_wrong_twin_is_found(foreign: Foreign) -> None:
    operations = REGISTRY[foreign.found].operations
    found = failing(outcomes(foreign.build(True)))
    assert foreign.found in found
    assert all(set(REGISTRY[id].operations) & set(operations) for id in found), "nothing else is charged"


@pytest.mark.requirement("ADP-43")
@pytest.mark.parametrize(
    ("masked", "viewer", "part"), [(lambda R: 2**32, "server", "vectors[2]"), (lambda R: R, 0, "vectors[1]")]
)
def test_what_is_seen_is_compared_at_each_end_of_the_moduli_and_for_users(
    masked: Callable[[int], int], viewer: str | int, part: str
) -> None:
    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        total, users, seen = pairwise(every_pair, masked=masked)(R, rows, drop)
        return total, users, {**seen, 0: rows if viewer == 0 else []}

    ranges = {"R": {"values": [str(2**32), str(2**64)]}}
    adapter = summing("two rings", play, ranges=ranges, **NOBODY_MAY_LEAVE)
    failure = outcomes(adapter, "privacy/secagg.view/contrast")["privacy/secagg.view/contrast"].failure
    assert failure is not None
    assert failure.verdict == "leaked"
    assert part in failure.message
    assert "tells the update of user 1 from that of user 2 in" in failure.message


def whispering(operation: str, heard: Callable[[dict[str, Any]], list[str]], **declared: Any) -> Adapter:
    """Return an adapter of right rounds of which one operation shows some strings more."""
    adapter = summing("whispering", pairwise(every_pair, masked=lambda R: R), lambda N: N - 2, **declared)
    right = adapter._handlers[operation]
    adapter._handlers[operation] = lambda **given: {**right(**given), "strings": heard(given)}
    return adapter


@pytest.mark.requirement("ADP-43", "CNF-59")
@pytest.mark.parametrize(("viewer", "user"), [("server", 0), ("server", 1), ("server", 2), (0, 2), (1, 0), (2, 1)])
@pytest.mark.parametrize("seed", range(2))
def test_the_update_of_each_user_is_found_in_what_each_party_reads(viewer: str | int, user: int, seed: int) -> None:
    adapter = whispering(
        "secagg.view",
        lambda given: given["updates"][user : user + 1] * (given["viewer"] == viewer),
        ranges={"R": {"values": ["251"]}},
        **NOBODY_MAY_LEAVE,
    )
    given = Settings(cases=7, seed=seed, pattern="privacy/secagg.view/contrast", vectors=False)
    _, (found,) = run(DirectConnection(adapter.answer), given)
    assert found.failure is not None
    assert "strings[0]" in found.failure.message
    assert f"user {user} " in found.failure.message


@pytest.mark.requirement("ADP-43")
@pytest.mark.parametrize("viewer", [1, 2])
def test_each_user_who_receives_the_update_of_another_is_found(viewer: int) -> None:
    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        total, users, seen = pairwise(every_pair, masked=lambda R: R)(R, rows, drop)
        return total, users, {**seen, viewer: rows[:1]}

    adapter = summing("chain", play, ranges={"R": {"values": ["251"]}}, **NOBODY_MAY_LEAVE)
    message = failing(outcomes(adapter, "privacy/secagg.view", cases=2))["privacy/secagg.view"]
    assert message.startswith(f"user {viewer} learns updates[0][")


@pytest.mark.requirement("ADP-48", "CNF-59")
@pytest.mark.parametrize("N", [3, 5])
def test_an_update_among_the_strings_of_a_coalition_is_found(N: int) -> None:
    def heard(given: dict[str, Any]) -> list[str]:
        return [text for user, text in enumerate(given["updates"]) if user not in given["viewers"]]

    sets: dict[str, Any] = {"parameter_sets": [{"N": N, "t": N}]}
    adapter = whispering("secagg.coalition", heard, ranges={"R": {"values": ["251"]}}, **sets)
    message = failing(outcomes(adapter, "privacy/secagg.coalition", cases=7))["privacy/secagg.coalition"]
    assert message.startswith("secagg.coalition: strings[")


@pytest.mark.requirement("ADP-43", "CNF-59")
@pytest.mark.parametrize("cases", [3, 16])
def test_a_message_more_for_some_updates_is_seen(cases: int) -> None:
    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        total, users, seen = pairwise(every_pair, masked=lambda R: R)(R, rows, drop)
        uniform = [[secrets.randbelow(R)]] * (rows[0][0] > R // 4)
        return total, users, {"server": [*seen["server"], *uniform]}

    adapter = summing("talkative", play, ranges={"R": {"values": [str(2**32)]}}, **NOBODY_MAY_LEAVE)
    failure = outcomes(adapter, "privacy/secagg.view/contrast", cases)["privacy/secagg.view/contrast"].failure
    assert failure is not None
    assert "the lengths of all parts" in failure.message


@pytest.mark.requirement("CNF-59")
@pytest.mark.parametrize(("cases", "answers"), [(7, 48), (8, 128)])
def test_a_pass_says_of_how_many_answers(cases: int, answers: int) -> None:
    adapter = summing("pairs", pairwise(every_pair, masked=lambda R: R), ranges={"R": {"values": ["97"]}})
    found = outcomes(adapter, "privacy/secagg.view/contrast", cases)["privacy/secagg.view/contrast"]
    assert found.verdict == "pass"
    assert f"of {answers} answers about each of two secrets" in found.note


@pytest.mark.slow
@pytest.mark.requirement("ADP-43")
def test_of_a_large_view_it_is_said_what_was_compared() -> None:
    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        total, users, _ = pairwise(every_pair, masked=lambda R: R)(R, rows, drop)
        return total, users, {"server": [[secrets.randbelow(R) for _ in range(230)]], 0: []}

    adapter = summing("much", play, ranges={"R": {"values": ["251"]}}, **NOBODY_MAY_LEAVE)
    found = outcomes(adapter, "privacy/secagg.view", cases=2)["privacy/secagg.view"]
    assert found.verdict == "pass"
    assert "of views of 230 to 230 elements, the first 200 were compared" in found.note


@pytest.mark.requirement("ADP-48")
@pytest.mark.parametrize("bears", [1, 2])
def test_as_many_users_are_joined_with_the_server_as_are_declared(bears: int) -> None:
    play = pairwise(ring, masked=lambda R: R)
    sets: dict[str, Any] = {"parameter_sets": [{"N": 5, "t": 5}]}
    adapter = summing("ring", play, lambda N: bears, ranges={"R": {"values": ["251"]}}, **sets)
    found = outcomes(adapter, "secagg.coalition")
    if bears == 1:
        assert failing(found) == {}
        assert found["privacy/secagg.coalition"].verdict == "pass"
    else:
        assert list(failing(found)) == ["privacy/secagg.coalition"]
        assert "the server with users 0 and 2 learns updates[1][0]" in failing(found)["privacy/secagg.coalition"]


@pytest.mark.requirement("ADP-48")
@pytest.mark.parametrize(("through", "R"), [(0, "251"), (3, str(2**32)), (2, str(2**64))])
def test_a_user_who_sees_all_masks_is_found_whoever_it_is(through: int, R: str) -> None:
    play = pairwise(every_pair, masked=lambda modulus: modulus, through=through)
    sets: dict[str, Any] = {"parameter_sets": [{"N": 4, "t": 4}]}
    adapter = summing("dealt", play, lambda N: 1, ranges={"R": {"values": [R]}}, **sets)
    message = failing(outcomes(adapter, "privacy/secagg.coalition"))["privacy/secagg.coalition"]
    assert message.startswith(f"the server with user {through} learns ")


@pytest.mark.requirement("ADP-41", "ADP-46")
def test_a_round_that_is_counted_in_a_byte_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    number = count()

    def play(R: int, rows: list[list[int]], drop: Mapping[str, list[int]]) -> Played:
        reject(next(number) > 255, "the number of the round does not fit into a byte")
        played: Played = pairwise(every_pair, masked=lambda R: R)(R, rows, drop)
        return played

    adapter = summing("counting", play, ranges={"R": {"values": ["251"]}}, **NOBODY_MAY_LEAVE)
    message = failing(outcomes(adapter, "secagg.sum/rounds"))["secagg.sum/rounds"]
    assert re.match(r"round \d+ in one process: secagg.sum rejected this", message)
    right = summing("right", pairwise(every_pair, masked=lambda R: R), **NOBODY_MAY_LEAVE)
    monkeypatch.setattr(checked_sums, "_SECONDS", 0.0)
    found = outcomes(right, "secagg.sum/rounds")["secagg.sum/rounds"]
    assert found.verdict == "pass"
    assert found.note.startswith("only 2 rounds of 300 were played")


@pytest.mark.slow
@pytest.mark.requirement("ADP-44")
def test_what_cannot_be_said_is_counted_apart() -> None:
    found = outcomes(availability(False))
    unsaid = {id: outcome.inexpressible for id, outcome in found.items() if outcome.inexpressible}
    assert unsaid == {}, "nothing ran that could not be said in all cases"
    _, every = run(DirectConnection(availability(False).answer), Settings(cases=40, seed=1))
    unsaid = {outcome.check.id: outcome.inexpressible for outcome in every if outcome.inexpressible}
    assert unsaid == {"select.batch/frequencies": 40, "select.batch/available": 40}
    notes = {outcome.note for outcome in every if outcome.inexpressible}
    assert notes == {"cannot be expressed: the interface of the implementation cannot say what is asked"}


@pytest.mark.requirement("ADP-44")
def test_a_valid_request_can_be_expressed() -> None:
    adapter = Adapter("mute", "1")

    @adapter.operation("field.add")
    def add(q: str, a: str, b: str) -> dict[str, Any]:
        raise Reject("inexpressible", "there is no addition")

    found = outcomes(adapter, "field.add/exact")["field.add/exact"]
    assert found.verdict == "rejected_valid"
    assert found.failure is not None
    assert "rejected this as inexpressible" in found.failure.message


# ------------------------------------------------------------------------------------------------- declarations


@pytest.mark.requirement("ADP-07")
@pytest.mark.parametrize(
    ("operation", "declared", "policy", "said"),
    [
        ("prg.expand", {"ranges": {"key": {"values": [16]}}}, {}, "prg.stream is not 'other'"),
        ("shamir.share", {"ranges": {"secret": {"values": [16]}}}, {}, "shamir.field is not 'other'"),
        ("prg.expand", {"ranges": {"n": {"multiple": 0}}}, {}, "must be a number from 1 on"),
        ("shamir.share", {"ranges": {"n": {"multiple": 2}}}, {}, "has 'multiple'; it may have min, max or values"),
        ("prg.expand", {"ranges": {"q": {"multiple": 2}}}, {}, "has 'multiple'; it may have min, max or values"),
        ("prg.expand", {"ranges": {"n": {"multiple": 2, "values": [4]}}}, {}, "has multiple beside values"),
        ("prg.expand", {"ranges": {"n": {"step": 2}}}, {}, "has 'step'; it may have min, max, multiple or values"),
        (
            "shamir.share",
            {"parameter_sets": [{"t": 4, "n": 3}]},
            {},
            "allows no parameter set of 'shamir.share' (SHM-01)",
        ),
        ("shamir.share", {"parameter_sets": [{"t": 3}]}, {}, "must give ['n', 't']"),
        ("secagg.sum", {"parameter_sets": [{"N": 3, "t": 4}]}, {}, "allows no parameter set of 'secagg.sum' (ADP-42)"),
        ("secagg.sum", {"ranges": {"R": {"min": str(2**522)}}}, {}, "leave no parameters"),
        ("prg.expand", {"ranges": {"n": {"values": [2**19 + 1, 2**40]}}}, {}, "allows and a kit asks for"),
        ("prg.expand", {"ranges": {"n": {"min": 2**19 + 1}}}, {}, "allows and a kit asks for"),
        ("shamir.share", {"ranges": {"secret": {"min": 2**30}}}, {"shamir.field": "other"}, "a kit asks for"),
        ("select.batch", {"ranges": {"strategy": {"min": 1}}}, {}, "has 'min'; it may have values"),
        ("select.batch", {"ranges": {"strategy": {"values": ["best"]}}}, {}, "has 'best'; it may have random"),
        ("prg.expand", {"ranges": {"n": {"min": 5, "max": 7, "multiple": 8}}}, {}, "leave no parameters"),
        *(
            (
                operation,
                {"ranges": {name: wrong}},
                {policy: "other"},
                f"of '{name}' of '{operation}' has {said}; lengths begin at 1",
            )
            for operation, name, policy in (
                ("prg.expand", "key", "prg.stream"),
                ("shamir.share", "secret", "shamir.field"),
            )
            for said, wrong in ((-1, {"max": -1}), (-1, {"values": [32, -1]}), (0, {"values": [0]}), (0, {"min": 0}))
        ),
        ("quantizer.quantize", {"ranges": {"x": {"values": ["binary16"]}}}, {}, "has 'binary16'; it may have binary64"),
        ("quantizer.quantize", {"ranges": {"x": {"min": 1}}}, {}, "has 'min'; it may have values"),
        ("basecagg.encode", {"ranges": {"x": {"values": ["binary32"]}}}, {}, "no ranged parameter 'x'"),
        ("audit.privacy", {"ranges": {"N": {"min": 1}}}, {}, "no ranged parameter 'N'"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(
    operation: str, declared: dict[str, Any], policy: dict[str, str], said: str
) -> None:
    adapter = Adapter("x", "1", policy=policy)
    adapter.operation(operation, **declared)(lambda **given: {})
    with pytest.raises(AdapterUnusable) as refused:
        run(DirectConnection(adapter.answer), Settings(cases=1))
    assert said in str(refused.value)


@pytest.mark.requirement("ADP-06")
def test_numbers_of_elements_that_a_kit_does_not_ask_for_are_left_out_of_a_declaration() -> None:
    adapter = Adapter("x", "1")
    adapter.operation("prg.expand", ranges={"n": {"values": [2**40, 64, 2**19]}})(lambda **given: {})
    assert narrow.understood(adapter.hello).range("prg.expand", "n").values == (64, 2**19)


@pytest.mark.requirement("QNT-12", "ADP-06")
def test_numbers_that_binary32_does_not_hold_are_outside_its_declaration() -> None:
    caps = narrow.understood(next(one for one in FOREIGN if one.name == "binary32").build(False).hello)
    asked = {"q": "7", "level": "1", "weight": 1}
    for x, inside in ((0.25, True), (-1.5, True), (float("nan"), True), (0.1, False), (1e300, False)):
        assert caps.declares("quantizer.quantize", {**asked, "x": struct.pack("<d", x).hex()}) == inside
    assert not caps.declares("quantizer.quantize", {**asked, "x": "zz"})


@pytest.mark.requirement("ADP-41")
@pytest.mark.parametrize(("R", "width"), [(2, 4), (2**32, 4), (2**32 + 1, 5), (2**64, 8), (2**64 + 1, 9), (2**521, 66)])
def test_elements_have_as_few_bytes_as_hold_them_and_four_at_least(R: int, width: int) -> None:
    assert element_bytes(R) == width
    assert unpack(pack([0, R - 1], width), width) == [0, R - 1]


def test_an_adapter_that_draws_itself_needs_no_parameter_for_what_is_drawn() -> None:
    adapter = Adapter("own", "1", randomness="none")
    seen: list[Any] = []
    adapter.operation("staleness.weight")(lambda kind, numerator, denominator, start, level, tau: {"weight": "1"})

    @adapter.operation("select.batch")
    def batch(rand: Any, **given: Any) -> dict[str, Any]:
        seen.append(rand)
        return {"chosen": None}

    given = {"kind": "constant", "numerator": 1, "denominator": 1, "start": "0", "level": "1", "tau": "0"}
    assert adapter.answer({"id": 1, "op": "staleness.weight", "params": given})["result"] == {"weight": "1"}
    given = {"N": 1, "K": 1, "T": 1, "strategy": "random", "frequencies": [0], "available": []}
    assert adapter.answer({"id": 1, "op": "select.batch", "params": given})["result"] == {"chosen": None}
    assert seen == [{}]


def test_the_line_of_counts_says_how_much_cannot_be_expressed() -> None:
    adapter = availability(False)
    caps = narrow.understood(adapter.hello)
    _, found = run(DirectConnection(adapter.answer), Settings(cases=5, seed=1, pattern="select.batch/available"))
    target = report.TargetReport("availability", caps=caps, judged=[Judged(outcome, None) for outcome in found])
    assert ", 5 cases cannot be expressed" in report.summary(target)


@pytest.mark.slow
@pytest.mark.requirement("ADP-07")
def test_a_set_that_the_text_forbids_is_left_out_and_the_others_are_judged() -> None:
    adapter = Adapter("wide", "1")
    sets = [{"N": 4, "t": 4}, {"N": 4, "t": 5}, {"N": 1, "t": 1}, {"N": 5, "t": 5}]
    whole = next(one for one in FOREIGN if one.name == "modulo-2-64").build(False)
    declared = {"ranges": {"R": {"values": [str(2**64)]}}, "parameter_sets": sets}
    adapter.operation("secagg.sum", **declared)(whole._handlers["secagg.sum"])
    caps = narrow.understood(adapter.hello)
    assert caps.parameter_sets("secagg.sum") == ({"N": 4, "t": 4}, {"N": 5, "t": 5})
    assert caps.left_out == (
        "the parameter set {'N': 4, 't': 5} of secagg.sum, which ADP-42 forbids",
        "the parameter set {'N': 1, 't': 1} of secagg.sum, which ADP-42 forbids",
    )
    assert failing(outcomes(adapter, "secagg.sum*")) == {}
    target = report.TargetReport("wide", caps=caps)
    assert "\n  not judged: the parameter set {'N': 4, 't': 5} of secagg.sum, which ADP-42 forbids" in report.summary(
        target
    )


@pytest.mark.requirement("ADP-07")
@given(st.permutations([{"N": 3, "t": 3}, {"N": 4, "t": 4}, {"N": 5, "t": 4}]), st.permutations(["7", "11", "13"]))
def test_sets_in_another_order_are_the_same_sets(sets: list[Any], values: list[str]) -> None:
    def hello(sets: list[Any], values: list[str]) -> dict[str, Any]:
        adapter = Adapter("x", "1")
        adapter.operation("secagg.sum", parameter_sets=sets, ranges={"R": {"values": values}})(lambda **given: {})
        return adapter.hello

    first = declaration(hello(sorted(sets, key=str), sorted(values)))
    assert declaration(hello(sets, values)) == first
    assert declaration(hello(sets[1:], values)) != first


@pytest.mark.requirement("SAG-24")
def test_keys_that_come_out_although_nobody_dropped_are_told() -> None:
    adapter = next(one for one in FOREIGN if one.name == "own-share").build(False)
    right = adapter._handlers["secagg.unmasking"]

    def wrong(**given: Any) -> dict[str, Any]:
        answers = right(**given)["answers"]
        return {"answers": [{**one, "keys": sorted({*one["keys"], 0})} if "keys" in one else one for one in answers]}

    adapter._handlers["secagg.unmasking"] = wrong
    message = failing(outcomes(adapter, "secagg.unmasking/shares"))["secagg.unmasking/shares"]
    assert "shares of the seeds of [1, 2, 3] and the keys of [0] were released" in message
    assert message.endswith("the keys of [], and nobody had dropped out")


WIDE = ("field.add", "field.multiply", "field.matmul", "mds.encode", "quantizer.quantize", "prg.expand")


@pytest.mark.slow
@pytest.mark.requirement("MOD-01", "MOD-03", "MOD-04", "MOD-05", "MDS-04", "MDS-05", "QNT-03", "QNT-06", "PRG-04")
@exhaustive
def test_the_reference_with_large_moduli_has_no_failure() -> None:
    found = outcomes(wide.build(), cases=8 if WHOLE else 4)
    assert failing(found) == {}
    judged = {name for outcome in found.values() for name in outcome.check.operations}
    assert judged >= set(wide.build().hello["operations"])


@pytest.mark.slow
@pytest.mark.requirement("MOD-03", "MOD-04", "MDS-04", "QNT-05", "PRG-04")
@pytest.mark.parametrize("operation", WIDE)
@pytest.mark.parametrize("seed", part(2, [1, 2]))
def test_an_implementation_that_cuts_elements_to_64_bits_is_found(operation: str, seed: int) -> None:
    whole = wide.build()

    def cut(request: Any) -> dict[str, Any]:
        answer = whole.answer(request)
        if request["op"] == operation and "result" in answer and int(request["params"]["q"]) > 2**64:
            width = element_bytes(int(request["params"]["q"]))
            name, value = next(iter(answer["result"].items()))
            texts = [value] if isinstance(value, str) else value
            changed = [pack([element % 2**64 for element in unpack(text, width)], width) for text in texts]
            answer["result"] = {name: changed if isinstance(value, list) else changed[0]}
        return answer

    settings = Settings(cases=8, seed=seed, pattern=operation)
    _, found = run(DirectConnection(cut), settings)
    failed = {outcome.check.id for outcome in found if outcome.failure}
    assert any(id.startswith((f"{operation}/", "mds/")) for id in failed), failed


@pytest.mark.requirement("ADP-06", "ADP-07")
def test_moduli_above_32_bits_count_only_where_they_are_declared() -> None:
    declared = {"prg.expand": {"ranges": {"q": {"values": [str(2**61 - 1), "7"]}}}, "field.add": {}}
    hello = {**wide.build().hello, "operations": declared}
    assert 2**61 - 1 in shake_hands(Answer("result", value=hello)).range("prg.expand", "q")
    streams = shake_hands(Answer("result", value={**hello, "policy": {}}))
    assert streams.range("prg.expand", "q").values == (7,)
    assert max(strategies.Space(streams, ("field.add",)).moduli(prime=False)) == 2**32
    assert streams.narrow is streams


TOO_MANY = (65537, 10**6 + 3, 2**31)


@pytest.mark.slow
@pytest.mark.requirement("HSA-08", "ADP-06")
@pytest.mark.parametrize(("allowed", "right"), [({"values": ["16", "256"]}, True), ({"max": "300"}, True), ({}, False)])
def test_a_quantiser_of_few_levels_is_judged_within_them(allowed: dict[str, Any], right: bool) -> None:
    whole = reference.build()
    declaration = {"ranges": {"levels": allowed}} if allowed else {}
    hello = {**whole.hello, "operations": {"quantize.levels": declaration}}

    def answer(request: Any) -> dict[str, Any]:
        if request["op"] == "hello":
            return {"id": request["id"], "result": hello}
        if request["op"] == "quantize.levels" and request["params"].get("levels") in map(str, TOO_MANY):
            return {"id": request["id"], "unsupported": True}
        return (
            whole.answer(request)
            if request["op"] in ("hello", "quantize.levels")
            else {"id": request["id"], "unsupported": True}
        )

    _, found = run(DirectConnection(answer), Settings(cases=8, seed=1, pattern="quantize.levels"))
    failed = [outcome.check.id for outcome in found if outcome.failure]
    assert (failed == []) == right, failed


@pytest.mark.requirement("SAG-24")
def test_a_user_who_refuses_every_request_is_not_taken_for_one_who_refuses_wrong_ones() -> None:
    adapter = next(one for one in FOREIGN if one.name == "own-share").build(False)

    def refuse(**given: Any) -> dict[str, Any]:
        entry = {"reject": {"code": "inconsistent_sets", "message": "no"}}
        return {"answers": [entry] * len(given["requests"])}

    adapter._handlers["secagg.unmasking"] = refuse
    found = outcomes(adapter, "secagg.unmasking/both-sets")["secagg.unmasking/both-sets"]
    assert found.verdict == "rejected_valid"
    assert found.failure is not None
    assert "the right request was refused as inconsistent_sets, so that refusals say nothing" in found.failure.message


@pytest.mark.requirement("ADP-07")
def test_a_summary_and_each_failure_name_what_the_adapter_composes() -> None:
    adapter = Adapter("made", "1")
    adapter.operation("field.add", composed=True)(lambda **given: {})
    adapter.operation("field.subtract")(lambda **given: {})
    made = report.TargetReport("made", caps=narrow.understood(adapter.hello))
    said = report.summary(made)
    assert "\n  composed by the adapter: field.add; what passes or fails there may be the adapter's own" in said
    for name, asks in (("field.add/exact", True), ("field.subtract/exact", False)):
        made.judged = [Judged(outcomes(adapter, name)[name])]
        said = report.failures(made, expected=False)
        assert ("whose fault:   the adapter composes field.add: call the library alone" in said) == asks


@pytest.mark.requirement("ADP-42", "ADP-44")
@pytest.mark.parametrize("seed", range(4))
def test_what_cannot_be_said_hides_no_other_wrong_request(seed: int) -> None:
    adapter = Adapter("careless", "1", randomness="none")

    @adapter.operation("secagg.sum", ranges={"R": {"values": ["251"]}})
    def total(R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> dict[str, Any]:
        if R != "251":
            raise Reject("inexpressible", "the modulus is fixed")
        return {"sum": updates[0], "contributors": [0]}

    given = Settings(cases=1, seed=seed, pattern="secagg.sum/wrong", vectors=False)
    _, (found,) = run(DirectConnection(adapter.answer), given)
    assert found.verdict == "accepted_invalid"
