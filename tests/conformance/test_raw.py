"""Raw values: what an adapter repairs is the implementation's failure, and a raw value that is none the adapter's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import rawable
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.checks import repairs
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import Outcome, Settings, run
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, element_bytes, pack, repaired, unpack
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.conformance import narrow

Spoil = Callable[[Any, int], Any]
"""Returns what the implementation gives, of the right value and the modulus."""


def adapter_of(operation: str, spoil: Spoil) -> Adapter:
    """Return the reference behind an adapter that repairs one operation, whose implementation gives spoilt values."""
    adapter = reference.build()
    (member, type), *_ = rawable(operation).items()
    right = adapter._handlers[operation]
    declared = adapter.hello["operations"].get(operation, {})
    adapter.hello["operations"] = {name: {} for name in ("mds.decode", "shamir.share")}
    adapter.hello["operations"][operation] = {**declared, "raw": [member]}

    def call(**given: Any) -> dict[str, Any]:
        R = int(given.get("q", given.get("R", 2)))

        def one(text: str) -> str:
            value = bytes.fromhex(text) if type.endswith(("bytes", "bytes]")) else unpack(text, element_bytes(R))
            return repaired(text, spoil(value, R))

        result = right(**given)
        whole = result[member]
        return {**result, member: [one(text) for text in whole] if isinstance(whole, list) else one(whole)}

    adapter._handlers[operation] = call
    return adapter


def judged(adapter: Adapter, pattern: str, cases: int = 8, seed: int = 1) -> list[Outcome]:
    """Judge an adapter, and return what ran."""
    settings = Settings(cases=cases, seed=seed, pattern=pattern, vectors=False)
    _, found = run(DirectConnection(adapter.answer), settings)
    return [outcome for outcome in found if outcome.verdict != "unsupported"]


def only(adapter: Adapter, operation: str, **settings: int) -> Outcome:
    """Return the outcome of the check of raw values of an operation."""
    (outcome,) = judged(adapter, f"{operation}/raw", **settings)
    return outcome


def unchanged(value: Any, R: int) -> Any:
    """Return what is right."""
    return value


def larger(value: list[int], R: int) -> list[int]:
    """Return numbers that are not reduced."""
    return [number + R for number in value]


SPOILT: list[tuple[str, Spoil, str, str]] = [
    ("field.add", larger, "MOD-03", "which is not reduced modulo"),
    ("field.subtract", lambda value, R: [number - R for number in value], "MOD-03", "= -"),
    ("field.matmul", lambda value, R: [*value, 0], "MOD-04", "the adapter cuts it to"),
    ("field.matmul", lambda value, R: [R, R + 1, *value], "MOD-04", "the adapter cuts it to"),
    ("field.matmul", lambda value, R: value[1:] if not value[0] else value, "MOD-04", "fills it up with zeros to"),
    ("mds.encode", larger, "MDS-03", "the implementation gives shares[0][0] = "),
    ("quantizer.quantize", lambda value, R: [n - R if n > R // 2 else n for n in value], "QNT-05", "not reduced"),
    ("lightsecagg.round", larger, "LSA-13", "gives aggregate[0] = "),
    ("secagg.sum", larger, "ADP-41", "gives sum[0] = "),
    ("prg.expand", lambda value, R: value + value[:1], "PRG-01", "the adapter cuts it to"),
    ("shamir.reconstruct", lambda value, R: value[:-1] if not value[-1] else value, "SHM-08", "fills it up with zeros"),
    ("shamir.reconstruct", lambda value, R: value.lstrip(b"\0"), "SHM-08", "fills it up with zeros to 32"),
    ("key.agree", lambda value, R: value + value, "KEY-02", "with 64 bytes; the adapter cuts it to 32"),
    ("basecagg.mask", larger, "BSA-04", "which is not reduced modulo"),
]


@pytest.mark.requirement("CNF-92", "ADP-56")
@pytest.mark.parametrize(("operation", "spoil", "clause", "said"), SPOILT)
@pytest.mark.parametrize("seed", range(2))
def test_what_the_adapter_repairs_is_a_failure_of_the_implementation(
    operation: str, spoil: Spoil, clause: str, said: str, seed: int
) -> None:
    failure = only(adapter_of(operation, spoil), operation, seed=seed).failure
    assert failure is not None
    assert failure.verdict == "wrong_value"
    assert said in failure.message
    assert clause in failure.clauses
    assert {"ADP-55", "ADP-56"}.isdisjoint(failure.clauses)
    assert len(failure.transcript) == 1, "the smallest case is one request"
    assert failure.transcript[0].request.raw


@pytest.mark.requirement("CNF-92")
@pytest.mark.parametrize("operation", sorted({operation for operation, *_ in SPOILT}))
def test_an_implementation_whose_values_need_no_repair_passes(operation: str) -> None:
    outcome = only(adapter_of(operation, unchanged), operation)
    assert outcome.verdict == "pass", outcome.failure
    assert outcome.cases


@pytest.mark.requirement("CNF-92")
@pytest.mark.parametrize("seed", range(4))
def test_one_value_that_is_not_reduced_is_found_in_a_short_run(seed: int) -> None:
    adapter = adapter_of("field.add", lambda value, R: [number or R for number in value])
    failure = only(adapter, "field.add", seed=seed).failure
    assert failure is not None
    assert failure.clauses == ("MOD-03",)
    assert "which is not reduced modulo" in failure.message
    assert failure.message.endswith("; the adapter reduces it to 0")


@pytest.mark.requirement("ADP-56")
@pytest.mark.parametrize(
    ("operation", "spoil"),
    [
        ("field.add", lambda value, R: [number + 1 for number in value]),
        ("field.add", lambda value, R: [number * 2 + 1 for number in value]),
        ("field.matmul", lambda value, R: [1, *value, 1]),
        ("mds.encode", lambda value, R: [number + R + 1 for number in value]),
        ("shamir.reconstruct", lambda value, R: bytes(byte ^ 1 for byte in value)),
        ("shamir.reconstruct", lambda value, R: bytes([value[0] ^ 1]) + value + b"\1"),
        ("key.agree", lambda value, R: value[:16]),
    ],
)
def test_a_raw_value_of_which_the_answer_is_not_made_is_the_fault_of_the_adapter(operation: str, spoil: Spoil) -> None:
    failure = only(adapter_of(operation, spoil), operation).failure
    assert failure is not None
    assert failure.clauses == ("ADP-56",)
    assert "is not the raw value reduced, cut or filled up, as the adapter declares: " in failure.message


@pytest.mark.requirement("CNF-58", "ADP-56")
@pytest.mark.parametrize("operation", ["field.add", "quantizer.quantize", "mds.encode", "seal.open", "sample.field"])
def test_a_raw_value_that_is_always_empty_is_the_fault_of_the_adapter(operation: str) -> None:
    for seed in range(2):
        failure = only(adapter_of(operation, lambda value, R: value[:0]), operation, seed=seed).failure
        assert failure is not None
        assert failure.clauses == ("ADP-56",)


@pytest.mark.requirement("CNF-92")
@pytest.mark.parametrize("operation", ["field.add", "mds.decode"])
def test_an_implementation_that_gives_nothing_for_zeros_is_at_fault(operation: str) -> None:
    adapter = adapter_of(operation, lambda value, R: value if any(value) else value[:0])
    failure = only(adapter, operation, cases=15).failure
    assert failure is not None
    assert failure.message.endswith("with 0 elements; the adapter fills it up with zeros to 1")
    assert len(failure.transcript) == 1


_MEMBERS = "must have the member 'raw', with value"
_FORM = "the raw value of value does not have its form"
RAWS: list[tuple[Any, str]] = [
    (None, _MEMBERS), ({}, _MEMBERS), ([], _MEMBERS), ("0", _MEMBERS),
    *(({"other": ["1"], **more}, f"{_MEMBERS} and no others; it has 'other'") for more in ({}, {"value": ["1"]})),
    *(({"value": raw}, _FORM) for raw in (1, "01000000", [1], [None], ["1.0"], ["+1"], [""], ["00"], ["-01"])),
    *(({"value": [sign + "9" * 4301]}, "holds an integer of more than 4,300 digits") for sign in ("", "-")),
]  # fmt: skip


@pytest.mark.requirement("ADP-55", "CNF-50")
@pytest.mark.parametrize(("raw", "named"), RAWS)
def test_a_raw_value_has_its_form(raw: Any, named: str) -> None:
    adapter = adapter_of("field.add", unchanged)

    def answer(request: Any) -> dict[str, Any]:
        said = adapter.answer(request)
        if isinstance(request, dict) and request.get("raw"):
            del said["result"]["raw"]
            said["result"] |= {} if raw is None else {"raw": raw}
        return said

    _, (outcome,) = run(DirectConnection(answer), Settings(cases=4, seed=1, pattern="field.add/raw", vectors=False))
    assert outcome.failure is not None
    assert (outcome.verdict, outcome.failure.clauses) == ("protocol", ("ADP-55",))
    assert outcome.failure.message.endswith(named)


def answering(instead: Callable[[dict[str, Any]], dict[str, Any]], always: bool = False) -> Adapter:
    """Return an adapter of field.add that answers requests for raw values, or all of them, otherwise."""
    adapter = adapter_of("field.add", unchanged)
    answer = adapter.answer

    def changed(request: Any) -> dict[str, Any]:
        said = answer(request)
        given = isinstance(request, dict) and request.get("op") == "field.add" and (always or request.get("raw"))
        return {"id": request["id"], **instead(said)} if given and "result" in said else said

    adapter.answer = changed  # type: ignore[method-assign]
    return adapter


def wrong(said: dict[str, Any]) -> dict[str, Any]:
    """Return another result, which is its own raw value."""
    numbers = [number ^ 1 for number in unpack(said["result"]["value"])]
    return {"result": {"value": pack(numbers), "raw": {"value": [*map(str, numbers)]}}}


@pytest.mark.requirement("CNF-01", "CNF-92", "ADP-55")
@pytest.mark.parametrize(
    ("instead", "verdict", "broken"),
    [
        (lambda said: {"error": {"message": "raw broke"}}, "error", ()),
        (lambda said: {"reject": {"code": "malformed", "message": "raw?"}}, "rejected_valid", ()),
        (lambda said: {"unsupported": True}, "rejected_valid", ()),
        (wrong, "wrong_value", ("MOD-03",)),
        (lambda said: 1 / 0, "crash", ()),
    ],
)
def test_a_request_for_raw_values_is_answered_as_any_other(
    instead: Callable[[dict[str, Any]], dict[str, Any]], verdict: str, broken: tuple[str, ...]
) -> None:
    found = judged(answering(instead), "field.add/exact,field.add/raw")
    assert [outcome.verdict for outcome in found] == ["pass", verdict]
    failure = found[1].failure
    assert failure is not None
    assert failure.clauses == broken
    assert failure.message.startswith("only where raw values are asked for: field.add") == (verdict != "crash")
    made = report.TargetReport("made", caps=narrow.understood(answering(instead).hello), judged=[*map(Judged, found)])
    assert "whose fault" not in report.failures(made, expected=False)


@pytest.mark.requirement("CNF-01", "CNF-58")
def test_an_implementation_that_breaks_has_no_raw_values_to_judge() -> None:
    adapter = answering(lambda said: {"error": {"message": "broke"}}, always=True)
    settings = Settings(cases=8, seed=1, pattern="field.add/exact,field.add/raw", vectors=False)
    _, (exact, raw) = run(DirectConnection(adapter.answer), settings)
    assert (exact.verdict, raw.verdict) == ("error", "unsupported"), "raw values are not to blame"
    assert raw.note == "not run: no raw value came, since each case fails without them as well"


@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize(("breaks", "verdict"), [(lambda asked: True, "pass"), (lambda asked: "raw" in asked, "error")])
def test_a_case_in_which_the_implementation_breaks_is_that_of_the_check_without_raw_values(
    breaks: Callable[[dict[str, Any]], bool], verdict: str
) -> None:
    adapter = adapter_of("field.add", unchanged)
    right = adapter.answer

    def answer(asked: Any) -> dict[str, Any]:
        if asked.get("op") == "field.add" and len(asked["params"].get("a", "")) == 8 and breaks(asked):
            return {"id": asked["id"], "error": {"message": "numbers of one element broke"}}
        return right(asked)

    adapter.answer = answer  # type: ignore[method-assign, assignment]
    exact, raw = judged(adapter, "field.add/exact,field.add/raw", cases=40)
    assert (exact.verdict, raw.verdict) == ("error" if verdict == "pass" else "pass", verdict)


@pytest.mark.requirement("ADP-56")
@given(
    raw=st.lists(st.integers(-(2**70), 2**70), max_size=5),
    R=st.integers(2, 2**66),
    size=st.integers(0, 7),
    front=st.booleans(),
    data=st.data(),
)
def test_a_vector_is_known_from_its_raw_value(raw: list[int], R: int, size: int, front: bool, data: Any) -> None:
    reduced, zeros = [number % R for number in raw], [0] * size
    ends = (reduced + zeros)[:size], [*zeros, *reduced][len(raw) :]
    made = ends[front]
    given, width = [*map(str, raw)], element_bytes(R)
    found = [*repairs._compared("vector", "value", given, pack(made, width), R)]
    assert bool(found) == (raw != made)
    if made:
        at = data.draw(st.integers(0, size - 1))
        other = data.draw(st.integers(0, R - 1).filter(lambda value: value != made[at]))
        changed = [*made[:at], other, *made[at + 1 :]]
        if changed not in ends:
            with pytest.raises(repairs._Untrue):
                [*repairs._compared("vector", "value", given, pack(changed, width), R)]


@pytest.mark.requirement("ADP-56")
@given(kept=st.binary(max_size=6), rest=st.binary(min_size=1, max_size=4), zeros=st.integers(1, 4), front=st.booleans())
def test_bytes_are_known_from_their_raw_value(kept: bytes, rest: bytes, zeros: int, front: bool) -> None:
    def found(raw: bytes, answer: bytes) -> list[str]:
        return [*repairs._compared("bytes", "secret", raw.hex(), answer.hex(), 2)]

    def joined(more: bytes) -> bytes:
        return more + kept if front else kept + more

    assert found(kept, kept) == []
    assert "cuts it to" in found(joined(rest), kept)[0]
    assert "fills it up with zeros to" in found(kept, joined(bytes(zeros)))[0]
    if any(rest) and not (rest + kept).endswith(bytes(len(rest))) and not joined(rest).startswith(bytes(len(rest))):
        with pytest.raises(repairs._Untrue):
            found(kept, joined(rest))
    with pytest.raises(repairs._Untrue):
        found(rest, bytes([rest[0] ^ 1]) + rest[1:])


@pytest.mark.slow
@pytest.mark.requirement("ADP-11", "ADP-55")
def test_no_adapter_is_asked_for_raw_values_that_it_does_not_declare() -> None:
    asked = list[Any]()
    adapter = reference.build()

    def answer(request: Any) -> dict[str, Any]:
        asked.append(request)
        return adapter.answer(request)

    _, found = run(DirectConnection(answer), Settings(cases=2, seed=1, pattern="field.*", vectors=False))
    assert not [outcome for outcome in found if outcome.failure]
    assert asked
    assert not any("raw" in request for request in asked if isinstance(request, dict))
    params = {"q": "5", "a": "01000000", "b": "01000000"}
    request = {"id": 1, "op": "field.add", "params": params, "raw": True}
    assert adapter.answer(request)["reject"]["code"] == "malformed"


@pytest.mark.requirement("ADP-11", "ADP-55")
@pytest.mark.parametrize(
    ("raw", "result"),
    [
        (True, {"value": "01000000", "raw": {"value": ["6"]}}),
        (False, None),
        (1, None),
        ({}, None),
    ],
)
def test_the_sdk_answers_with_what_was_repaired_where_it_is_asked(raw: Any, result: Any) -> None:
    adapter = Adapter("lazy", "1")
    adapter.operation("field.add", raw=["value"])(lambda q, a, b: {"value": repaired("01000000", [6])})
    request = {"id": 1, "op": "field.add", "params": {"q": "5", "a": "03000000", "b": "03000000"}}
    assert adapter.answer(request)["result"] == {"value": "01000000"}
    said = adapter.answer({**request, "raw": raw})
    assert said.get("result") == result
    assert result or said["reject"]["code"] == "malformed"


@pytest.mark.requirement("ADP-55")
def test_an_adapter_that_declares_raw_values_and_gives_none_is_told_how() -> None:
    adapter = Adapter("lazy", "1")
    adapter.operation("field.add", raw=["value"])(lambda q, a, b: {"value": "01000000"})
    params = {"q": "5", "a": "03000000", "b": "03000000"}
    said = adapter.answer({"id": 1, "op": "field.add", "params": params, "raw": True})
    assert "value is declared as raw: return repaired(...)" in said["error"]["message"]


@pytest.mark.requirement("ADP-07")
@pytest.mark.parametrize(
    ("operation", "raw", "said"),
    [
        ("field.add", "value", "'raw' of 'field.add' is 'value'; it is a list with some of value"),
        ("field.add", True, "it is a list with some of value"),
        ("field.add", ["sum"], "it is a list with some of value"),
        ("field.add", [1], "it is a list with some of value"),
        ("lightsecagg.round", ["contributors"], "it is a list with some of aggregate"),
        ("secagg.view", ["vectors"], "it has to be absent here"),
    ],
)
def test_a_declaration_of_raw_values_that_cannot_be_is_refused(operation: str, raw: Any, said: str) -> None:
    adapter = Adapter("lazy", "1")
    adapter.operation(operation, raw=raw)(lambda **given: {})
    with pytest.raises(AdapterUnusable, match=said):
        narrow.understood(adapter.hello)


@pytest.mark.requirement("CNF-92")
@pytest.mark.parametrize(
    ("spoil", "broken", "said"),
    [
        (larger, ["MOD-03"], "the implementation's: the adapter repairs it"),
        (lambda value, R: [number + 1 for number in value], ["ADP-56"], "the adapter's: its raw value is not one"),
        (None, ["MOD-03"], "the implementation's: of field.add the adapter repairs nothing"),
    ],
)
def test_a_report_says_whose_fault_it_is(spoil: Spoil | None, broken: list[str], said: str) -> None:
    adapter = adapter_of("field.add", spoil or unchanged)
    if not spoil:
        right = adapter._handlers["field.add"]
        adapter._handlers["field.add"] = lambda **given: right(**{**given, "b": given["a"]})
    found = judged(adapter, "field.add/exact,field.add/raw")
    made = report.TargetReport("made", caps=narrow.understood(adapter.hello), judged=[*map(Judged, found)])
    assert f"whose fault:   {said}" in report.failures(made, expected=False)
    assert [clause for clause, cell in report.clause_cells(made).items() if cell.startswith(report.FAILED)] == broken
    assert "composed by the adapter" not in report.summary(made), "raw values were given"
