"""What an adapter may declare, and how a faulty declaration is refused."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from secagg_spec.conformance.adapter.capabilities import EVERYTHING, shake_hands
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Answer
from secagg_spec.conformance.checks.base import Caller, CheckFailed, NotExpressible
from secagg_spec.conformance.running.runner import Settings, run
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Unsupported
from secagg_spec.conformance.targets.reference import adapter as reference

HELLO: dict[str, Any] = {
    "protocol": [1, 0],
    "implementation": {"name": "x", "version": "1", "language": "c"},
    "randomness": "none",
    "operations": {
        "mds.encode": {"ranges": {"q": {"values": ["7"]}, "N": {"min": 3, "max": 5}}, "randomness": "seeded"}
    },
    "policy": {"mds.code": "other"},
}


def caps(**changes: Any) -> Any:
    """Return the capabilities of a hello with changes."""
    return shake_hands(Answer("result", {**HELLO, **changes}))


@pytest.mark.requirement("ADP-07")
def test_a_hello_is_understood() -> None:
    found = caps()
    assert found.offers("mds.encode")
    assert not found.offers("mds.encode", "echo")
    assert found.grade("mds.encode") == "seeded"
    assert found.policy("mds.code") == "other"
    assert found.policy("quantizer.middle") == "positive"
    assert 7 in found.range("mds.encode", "q")
    assert 5 not in found.range("mds.encode", "q")
    assert [N for N in range(9) if N in found.range("mds.encode", "N")] == [3, 4, 5]
    assert found.range("mds.encode", "T") == EVERYTHING


@pytest.mark.requirement("ADP-07")
@pytest.mark.parametrize(
    ("operation", "ranges", "said"),
    [
        ("mds.encode", {"q": {"values": ["7", str(2**522)]}}, [f"q = {2**522} of mds.encode", "2**521"]),
        ("mds.encode", {"q": {"min": "3", "max": str(2**522)}}, [f"q up to {2**522} of mds.encode", "2**521"]),
        ("prg.expand", {"q": {"max": str(2**33)}}, [f"q up to {2**33} of prg.expand", "2**32"]),
        ("secagg.sum", {"R": {"values": [str(2**521), str(2**522)]}}, [f"R = {2**522} of secagg.sum", "2**521"]),
        ("secagg.average", {"R": {"values": [2**32, 2**64]}}, [f"R = {2**64} of secagg.average", "2**32"]),
        ("secagg.recovery", {"R": {"max": str(2**33)}}, [f"R up to {2**33} of secagg.recovery", "2**32"]),
        ("staleness.weight", {"level": {"max": str(2**33)}}, [f"level up to {2**33} of staleness.weight", "2**32"]),
        ("quantize.levels", {"levels": {"max": 2**32}}, [f"levels up to {2**32} of quantize.levels", "2**31"]),
        ("secagg.average", {"R": {"max": 2**32}}, []),
        ("mds.encode", {"q": {"values": [str(2**521 - 1)]}}, []),
        ("secagg.sum", {"R": {"max": str(2**521)}}, []),
    ],
)
def test_a_modulus_larger_than_all_that_are_allowed_is_named(
    operation: str, ranges: dict[str, Any], said: list[str]
) -> None:
    left_out = caps(operations={operation: {"ranges": ranges}}, policy={}).left_out
    assert len(left_out) == bool(said)
    assert all(part in "".join(left_out) for part in said)


@pytest.mark.requirement("ADP-07")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"protocol": [2, 0]}, "protocol"),
        ({"protocol": None}, "protocol"),
        *(
            ({"protocol": wrong}, "two integers from 0 on")
            for wrong in ([], [1], [1, "1"], [1, -5], [1, 1.0], [1, 1, 9], [True, 1], [1.0, 1], ["1", 1])
        ),
        ({"operations": {"session.new": {"parties": ["secagg.user"] * 2}}}, "it names a party twice$"),
        ({"implementation": {"name": "x"}}, "version"),
        ({"randomness": "lots"}, "randomness"),
        ({"operations": {"make.coffee": {}}}, "make.coffee"),
        ({"operations": {"echo": []}}, "echo"),
        ({"operations": {"echo": {"colour": 1}}}, "colour"),
        ({"operations": {"echo": {"ranges": {"q": {"min": 2}}}}}, "q"),
        ({"operations": {"mds.encode": {"ranges": {"q": {}}}}}, "q"),
        ({"operations": {"mds.encode": {"ranges": {"q": {"min": "x"}}}}}, "decimal strings"),
        ({"operations": {"mds.encode": {"ranges": {"N": {"values": [3.0]}}}}}, "has 3.0; it may have integers$"),
        ({"operations": {"mds.encode": {"ranges": {"N": {"min": True}}}}}, "integers"),
        ({"operations": {"mds.encode": {"ranges": {"q": {"values": ["07"]}}}}}, "decimal strings"),
        ({"operations": {"mds.encode": {"ranges": {"N": {"values": [3], "max": 5}}}}}, "beside"),
        (
            {"operations": {"quantizer.dequantize": {"ranges": {"format": {"min": 3}}}}},
            "has 'min'; it may have values$",
        ),
        (
            {"operations": {"quantizer.dequantize": {"ranges": {"format": {"values": [3]}}}}},
            "has 3; it may have binary64",
        ),
        (
            {"operations": {"quantizer.quantize": {"ranges": {"x": {"values": ["binary32", "float32"]}}}}},
            "'x' of 'quantizer.quantize' has 'float32'; it may have binary64, binary32$",
        ),
        (
            {"operations": {"select.batch": {"ranges": {"strategy": {"values": ["fair", "fare"]}}}}},
            "'strategy' of 'select.batch' has 'fare'; it may have random, weighted, partition, uniform, fair, least$",
        ),
        ({"policy": {"mds.code": "mine"}}, "mds.code"),
        ({"policy": []}, "policy"),
        ({"reject_map": 5}, "reject_map"),
        ({"reject_map": {"no": "because"}}, "because"),
        ({"reject_map": {"": "malformed"}}, "reject_map has an empty text"),
        ({"operations": {"mds.encode": {"ranges": 5}}}, "'ranges' of 'mds.encode' is 5; it must be a JSON object$"),
        ({"operations": {"mds.encode": {"randomness": "x"}}}, "randomness of 'mds.encode' = 'x'; it must be one of"),
        (
            {"operations": {"mds.encode": {"ranges": {"N": {"min": 5, "step": 2}}}}},
            "has 'step'; it may have min, max or values$",
        ),
        ({"operations": {"mds.encode": {"ranges": {"N": {}}}}}, "of 'mds.encode' needs min, max or values$"),
        ({"implementation": {"name": 5, "version": "1", "language": "c"}}, "'name' is 5; it must be a JSON string$"),
        ({"operations": {"field.add": {"raw": ["value", "value"]}}}, "it names a member twice$"),
        ({"operations": {"mds.encode": {"ranges": {"q": {"values": []}}}}}, "at least one"),
        ({"operations": {"mds.encode": {"ranges": {"N": {"min": 5, "max": 4}}}}}, "empty"),
        ({"operations": {"mds.encode": {"parameter_sets": []}}}, "at least one"),
        ({"operations": {"mds.encode": {"parameter_sets": None}}}, "at least one"),
        ({"operations": {"mds.encode": {"parameter_sets": "x"}}}, "at least one"),
        ({"operations": {"mds.encode": {"parameter_sets": [{"N": 3}]}}}, "as integers"),
        (
            {"operations": {"mds.encode": {"parameter_sets": [{"N": 3, "U": 4, "T": 1}]}}},
            "allows no parameter set of 'mds.encode' .MDS-01.",
        ),
        ({"operations": {"secagg.user": {"parameter_sets": [{"N": 5}]}}}, "has no parameter_sets"),
        *(
            ({"operations": {name: {"parameter_sets": [{}]}}}, "'[a-z.]*' has no parameter_sets: a set has N or n, and")
            for name in ("lightsecagg.mask", "field.add", "quantizer.quantize", "shamir.reconstruct")
        ),
        ({"operations": {"field.add": {"raw": ["value"], "composed": False}}}, "'field.add' is false beside 'raw'"),
        ({"operations": {"secagg.server": {"ranges": {"N": {"min": 5}}}}}, "no ranged parameter"),
        ({"policies": {"mds.code": "other"}}, "^hello has the unknown member 'policies'; it may have .*, policy, "),
        ({"protocol": [1, 9], "later": {}}, "^hello has the unknown member 'later'"),
        (
            {"implementation": {"name": "x", "version": "1", "language": "c", "url": "u"}},
            "'implementation' has the unknown member 'url'; it may have language, name, version$",
        ),
        *(
            ({"implementation": {"name": name, "version": "1", "language": "c"}}, "'name' is .*; it must be the name")
            for name in ("", " \t")
        ),
        ({"operations": {"field.add": {"raw": []}}}, r"'raw' of 'field.add' is \[\]; it is a list with some of value$"),
        ({"operations": {"session.step": {"raw": []}}}, r"'raw' of 'session.step' is \[\]; it has to be absent here$"),
        ({"operations": {"echo": {"parties": ["secagg.user"]}}}, "'parties'; it may have composed, parameter_sets"),
    ],
)
def test_a_faulty_hello_is_refused_and_the_fault_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AdapterUnusable, match=said):
        caps(**changes)


@pytest.mark.requirement("ADP-07")
@pytest.mark.parametrize("version", [[1, 0], [1, 1], [1, 9]])
def test_a_higher_second_number_is_no_fault(version: list[int]) -> None:
    assert caps(protocol=version).name == "x"


@pytest.mark.parametrize("missing", ["session.new", "session.step", "session.free"])
def test_sessions_are_asked_for_where_all_three_operations_are_declared(missing: str) -> None:
    mine = reference.build()
    mine.hello["operations"] = {
        name: declared for name, declared in mine.hello["operations"].items() if name.startswith("session.")
    }
    settings = Settings(cases=1, pattern="session.step/no-session,session.new/in-use")
    assert [outcome.verdict for outcome in run(DirectConnection(mine.answer), settings)[1]] == ["pass", "pass"]
    del mine.hello["operations"][missing]
    assert {outcome.verdict for outcome in run(DirectConnection(mine.answer), settings)[1]} == {"unsupported"}


def test_a_hello_that_is_rejected_is_refused() -> None:
    with pytest.raises(AdapterUnusable, match="reject"):
        shake_hands(Answer("reject", code="other", message="no"))


_MAP = {"wrong": "malformed", "length: wrong": "length_mismatch", "range": "noncanonical", "ranks": "bad_param"}


@pytest.mark.requirement("ADP-09")
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("code", "message", "judged"),
    [
        ("other", "range: length: wrong", "length_mismatch"),
        ("other", "ranks: range", "bad_param"),
        ("other", "no", "other"),
        ("bad_param", "wrong", "bad_param"),
        ("inexpressible", "wrong", "inexpressible"),
    ],
)
def test_a_rejection_without_a_code_has_that_of_the_longest_text(
    order: int, code: str, message: str, judged: str
) -> None:
    declared = caps(reject_map=dict([*_MAP.items()][::order]))
    call = Caller(DirectConnection(lambda request: {}), declared)
    expected = {"other": None, "inexpressible": NotExpressible}.get(judged, CheckFailed)
    with pytest.raises(expected, match=f"as {judged};|^$") if expected else nullcontext():
        call.fits("echo", Answer("reject", code=code, message=message), frozenset(), "")
    assert call.reason_unchecked == (judged == "other")


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
def test_outside_its_range_an_adapter_may_call_a_forbidden_case_unsupported() -> None:
    adapter = Adapter("narrow", "1")

    @adapter.operation("lightsecagg.mask", ranges={"q": {"values": ["4294967291"]}})
    def mask(q: str, update: str, mask: str) -> dict[str, Any]:
        if q != "4294967291":
            raise Unsupported
        request = {"id": 1, "op": "lightsecagg.mask", "params": {"q": q, "update": update, "mask": mask}}
        result: dict[str, Any] = reference.build().answer(request)["result"]
        return result

    _, outcomes = run(DirectConnection(adapter.answer), Settings(cases=20, pattern="lightsecagg.mask/*"))
    by_id = {outcome.check.id: outcome.verdict for outcome in outcomes}
    assert by_id["lightsecagg.mask/modulus"] == by_id["lightsecagg.mask/composite"] == "pass"
    assert by_id["lightsecagg.mask/exact"] == "pass"


def test_what_a_request_declares_is_compared_with_the_ranges() -> None:
    found = caps()
    assert found.declares("mds.encode", {"q": "7", "N": 3})
    assert not found.declares("mds.encode", {"q": "5", "N": 3})
    assert not found.declares("mds.encode", {"q": 7, "N": 9})
    others: tuple[object, ...] = (None, True, "x", 3.0, [])
    for wrong in others:
        assert not found.declares("mds.encode", {"q": "7", "N": wrong})
        assert not found.declares("mds.encode", {"q": wrong, "N": 3})
        assert found.declares("mds.encode", {"q": "7", "N": 3, "T": wrong}), "T has no declared range"
    tied = caps(operations={"mds.encode": {"parameter_sets": [{"N": 3, "U": 2, "T": 1}]}})
    assert tied.declares("mds.encode", {"N": 3, "U": 2, "T": 1, "q": 5})
    assert not tied.declares("mds.encode", {"N": 3, "U": 3})


@pytest.mark.requirement("ADP-07")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"protocol": [True, 0]}, "it must be two integers from 0 on"),
        ({"operations": {"field.add": {"composed": "false"}}}, "must be true or false"),
        ({"operations": {"field.add": {"ranges": {"q": {"values": ["7"] * 1001}}}}}, "more than 1000 values"),
        (
            {"operations": {"mds.encode": {"parameter_sets": [{"N": 5, "U": 3, "T": 1}] * 1001}}},
            "more than 1000 entries",
        ),
        ({"protocol": ["x" * 10**6]}, "'protocol' is .*xx … xx.*; it must be two integers"),
        (
            {"operations": {"field.add": {"ranges": {"q": {"x" * 10**6: 1}}}}},
            "it may have min, max or values$",
        ),
    ],
)
def test_a_declaration_of_another_type_or_without_end_is_refused(changes: dict[str, object], said: str) -> None:
    hello = {**reference.build().hello, **changes}
    with pytest.raises(AdapterUnusable, match=said) as refused:
        shake_hands(Answer("result", value=hello))
    assert len(str(refused.value)) <= 1000
