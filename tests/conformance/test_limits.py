"""What no adapter and no file may do to a kit: lines and files of any content, and what is kept of many cases."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import greet, shake_hands
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, Answer, parse_answer
from secagg_spec.conformance.checks.base import Caller, Check
from secagg_spec.conformance.reports import document
from secagg_spec.conformance.running import expectations, repros
from secagg_spec.conformance.running.runner import Settings, run, run_check
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import store
from secagg_spec.errors import UsageError
from tests.conformance.test_hostile import JSON

KIT = ("secagg_spec.conformance", "secagg_spec.protocols", "secagg_spec.crypto", "secagg_spec.arithmetic")
FOLDER: Any = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}
"""One folder for all cases of a test: each case writes the same file again."""


def answered(inner: str, number: int | None = 1) -> Answer | str:
    """Return the answer with this text as the result's only value, or what it is told."""
    try:
        return parse_answer(f'{{"id": {json.dumps(number)}, "result": {{"value": {inner}}}}}\n'.encode(), number)
    except AdapterBroken as broken:
        return f"{broken.verdict}: {broken}"


# --------------------------------------------------------------------------------------------------------- limits


@pytest.mark.requirement("CNF-50")
@pytest.mark.parametrize("number", [1, None])
@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("9" * 4300, ""),
        ("-" + "9" * 4300, ""),
        ("9" * 4301, "holds an integer of more than 4,300 digits"),
        ("-" + "9" * 4301, "holds an integer of more than 4,300 digits"),
        ("[" * 98 + "]" * 98, ""),
        ("[" * 99 + "]" * 99, "deeper than 100 levels"),
        ("[" * 200_000 + "]" * 200_000, "deeper than 100 levels"),
        ("1e308", ""),
        ("1e309", "holds a number beyond binary64, 1e309"),
        ("-1e999999999999", "holds a number beyond binary64"),
        ("NaN", "not JSON"),
        ("-Infinity", "not JSON"),
        ("1e-999", ""),
        (r'"\ud800"', ""),
    ],
)
def test_what_is_beyond_a_limit_is_named(inner: str, said: str, number: int | None) -> None:
    answer = answered(inner, number)
    if not said:
        assert isinstance(answer, Answer)
        return
    assert str(answer).startswith("protocol: ")
    assert said in str(answer)


@pytest.mark.requirement("CNF-51")
@pytest.mark.parametrize("inner", ['{"a": 1, "b": 2, "a": 1}', '[[{"a": 1, "\\u0061": 2}]]'])
def test_an_object_with_a_member_twice_is_refused(inner: str) -> None:
    assert "holds an object with two members 'a'" in str(answered(inner))
    assert isinstance(answered('[{"a": 1}, {"a": 1, "A": 1}]'), Answer)


@pytest.mark.requirement("CNF-51")
def test_the_id_stands_in_an_answer_once() -> None:
    with pytest.raises(AdapterBroken, match="two members 'id'"):
        parse_answer(b'{"id": 2, "unsupported": true, "id": 1}\n', 1)


def test_a_message_that_is_missing_is_an_empty_one() -> None:
    for content in ('"error": {%s}', '"reject": {"code": "malformed"%s}'):
        comma = ", " * ("code" in content)
        given = (content % text for text in ("", f'{comma}"message": ""'))
        one, other = (parse_answer(f'{{"id": 1, {text}}}\n'.encode(), 1) for text in given)
        assert one == other
        assert one.message == ""


@pytest.mark.requirement("CNF-52")
def test_a_carriage_return_is_white_space_and_a_byte_order_mark_is_not() -> None:
    assert parse_answer(b' {"id":\t1, "unsupported": true} \r\n', 1).kind == "unsupported"
    with pytest.raises(AdapterBroken, match="begins with a byte order mark"):
        parse_answer(b'\xef\xbb\xbf{"id": 1, "unsupported": true}\n', 1)


# --------------------------------------------------------------------------------------------- what hello declares


HELLO: dict[str, Any] = reference.build().hello


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all values inside a value, itself first."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for name, member in members for path in paths(member, (*here, name)))]


def spoiled(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value in one place."""
    if not path:
        return value
    whole = inside = copy.deepcopy(body)
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    return whole


@pytest.mark.requirement("CNF-06")
@given(st.sampled_from(paths(HELLO)), JSON)
@example(("reject_map",), {"a": []})
@example(("randomness",), [])
@example(("policy",), {"mds.code": []})
@example(("operations", "session.new", "parties"), [[]])
def test_a_hello_that_is_nearly_right_is_understood_or_refused(path: tuple[Any, ...], value: Any) -> None:
    hello = spoiled(HELLO, path, value)
    if not isinstance(hello, dict):
        return
    try:
        caps = shake_hands(Answer("result", value=hello))
    except AdapterUnusable as unusable:
        lines = str(unusable).splitlines()
    else:
        lines = [] if caps.hello == hello else ["another hello"]
    assert len(lines) <= 1
    assert lines != ["another hello"]


# ---------------------------------------------------------------------------------------------------------- files


BYTES = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())
BROKEN = (
    b"",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"[" * 100_000,
    b"a=" + b"[" * 100_000,
    b"a=" + b"9" * 5000,
    b'{"a": 1, "a": 2}',
    b"9" * 5000,
    b"1e999",
    b'{"schema": ' + b"[" * 500 + b"]" * 500 + b"}",
)
REPRO: dict[str, Any] = {
    "schema": repros.SCHEMA,
    "check": "field.add/exact",
    "message": "m",
    "draws": [{"bytes": "00"}, 1],
    "seal": "",
}


def written(folder: Path, data: bytes) -> Path:
    """Write a file, with the name that what reads a stored failure takes, beside no requests, and return its path."""
    (folder / "file.jsonl").write_bytes(b"")
    path = folder / "file.expected.json"
    path.write_bytes(data)
    return path


def report(load: Callable[[Path], object], path: Path) -> str:
    """Return what is told of a file that cannot be used, in one line; nothing of one that can."""
    before = sorted(path.parent.iterdir())
    try:
        load(path)
    except UsageError as error:
        message = str(error)
        assert path.name in message
        assert len(message.splitlines()) == 1
        assert message.isprintable()
        return message
    finally:
        assert sorted(path.parent.iterdir()) == before
    return ""


LOADERS: dict[str, Callable[[Path], object]] = {
    "repro": repros.load,
    "expectations": expectations.load,
    "vectors": store.load,
    "report": document.load,
}


@pytest.mark.requirement("CNF-53")
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("data", BROKEN, ids=lambda data: repr(data[:12]))
def test_a_file_that_cannot_be_used_is_told_in_one_line(loader: str, data: bytes, tmp_path: Path) -> None:
    message = report(LOADERS[loader], written(tmp_path, data))
    assert message or (loader == "expectations" and not data)


@pytest.mark.requirement("CNF-53")
@pytest.mark.parametrize("loader", LOADERS)
@settings(**FOLDER)
@given(data=BYTES)
def test_no_bytes_of_a_file_end_the_kit(loader: str, tmp_path: Path, data: bytes) -> None:
    report(LOADERS[loader], written(tmp_path, data))


@pytest.mark.requirement("CNF-53")
@settings(**FOLDER)
@given(path=st.sampled_from(paths(REPRO)), value=JSON)
@example(path=("check",), value=[])
@example(path=("draws",), value=5)
@example(path=("draws",), value=[{"bytes": 5}])
@example(path=("draws",), value=[{"map": [[[], 1]]}])
def test_a_repro_that_is_nearly_right_is_read_or_refused(tmp_path: Path, path: tuple[Any, ...], value: Any) -> None:
    body = spoiled(REPRO, path, value)
    if isinstance(body, dict) and path[:1] != ("seal",):
        body["seal"] = repros.seal(b"", body)
    data = json.dumps(body).encode()
    if report(repros.load, written(tmp_path, data)):
        return
    stored = repros.load(tmp_path / "file.expected.json")
    with suppress(UsageError):
        repros.judge(DirectConnection(reference.build().answer), "field.add/exact", stored["draws"])


VECTORS: dict[str, Any] = json.loads((store.folder() / "shamir.json").read_text(encoding="utf-8"))
VECTORS["vectors"] = VECTORS["vectors"][:2]


@pytest.mark.requirement("CNF-53")
@settings(**FOLDER)
@given(path=st.sampled_from(paths(VECTORS)), value=JSON)
def test_vectors_that_are_nearly_right_are_read_or_refused(tmp_path: Path, path: tuple[Any, ...], value: Any) -> None:
    report(store.load, written(tmp_path, json.dumps(spoiled(VECTORS, path, value)).encode()))


TOML = st.sampled_from(["target", "checks", "verdict", "message", "reason", "other", "expect"])
VALUES = st.sampled_from(['"node"', '"*"', '["crash"]', "1", "nan", "[[]]", "{}", "1979-05-27", '"\\u0000"', "'\x0b'"])


@pytest.mark.requirement("CNF-53")
@settings(**FOLDER)
@given(entries=st.lists(st.dictionaries(TOML, VALUES)))
def test_expectations_that_are_nearly_right_are_read_or_refused(tmp_path: Path, entries: list[dict[str, str]]) -> None:
    lines = [f"{key} = {value}" for entry in entries for key, value in {"[[expect]] #": "", **entry}.items()]
    text = "\n".join(lines).replace("[[expect]] # = ", "[[expect]]")
    report(expectations.load, written(tmp_path, text.encode()))


# --------------------------------------------------------------------------------------------------------- memory


def new_strategy(draw: Any, call: Caller) -> None:
    """Draw from a strategy that no case drew from before."""
    call.ask("hello", {"protocol": [1, 0]})
    draw(st.integers(0, 2**64))
    draw(st.sampled_from((next(NUMBERS), 0)))


NUMBERS = count(1)
FRESH = Check("any/check", (), (), new_strategy, lambda caps: True, "")


def objects(seed: int) -> int:
    """Return how many objects there are after some checks were judged once more."""
    connection = DirectConnection(reference.build().answer)
    run_check(connection, greet(connection.ask), FRESH, Settings(cases=20, seed=seed))
    for pattern in ("field.add/exact", "lightsecagg.mask/exact"):
        run(DirectConnection(reference.build().answer), Settings(cases=20, seed=seed, pattern=pattern))
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.slow
@pytest.mark.requirement("CNF-55")
def test_what_is_kept_does_not_grow_with_the_cases() -> None:
    counts = [objects(seed) for seed in range(10)]
    assert counts[9] - counts[3] < 60, counts


@pytest.mark.requirement("CNF-55")
def test_no_cache_is_without_a_bound() -> None:
    found = {
        f"{entry.__module__}.{entry.__qualname__}"
        for entry in gc.get_objects()
        if isinstance(entry, functools._lru_cache_wrapper) and entry.__module__.startswith(KIT)
        if entry.cache_parameters()["maxsize"] is None and inspect.signature(entry).parameters
    }
    assert found == set()


@pytest.mark.requirement("ADP-09")
@pytest.mark.parametrize(
    ("reject", "said"),
    [
        ({}, "the reject has no code (ADP-09)"),
        ({"code": None}, "reject code None is not one of the protocol's (ADP-09)"),
        ({"code": 5}, "reject code 5 is not one of the protocol's (ADP-09)"),
        ({"code": "5"}, "reject code '5' is not one of the protocol's (ADP-09)"),
    ],
)
def test_an_error_tells_a_missing_code_and_a_number_from_text(reject: dict[str, Any], said: str) -> None:
    with pytest.raises(AdapterBroken, match=re.escape(said)):
        parse_answer(json.dumps({"id": 1, "reject": reject}).encode() + b"\n", 1)


@pytest.mark.requirement("CNF-58", "ADP-15")
@pytest.mark.parametrize(
    ("operation", "check", "member", "value", "verdict", "said"),
    [
        ("mds.encode", "mds.encode/exact", "shares", "00", "protocol", "shares is '00', no list of 2 entries"),
        ("mds.encode", "mds.encode/exact", "shares", None, "protocol", "shares is missing, no list of 2 entries"),
        ("mds.encode", "mds.encode/exact", "shares", [], "wrong_value", "shares has 0 entries; it must have 2"),
        ("select.family", "select.family/sets", "size", 1, "protocol", "size is 1, no decimal string"),
        ("select.family", "select.family/sets", "sets", [0], "protocol", "is [0], must be a list of 1 lists of users"),
        ("select.family", "select.family/sets", "size", "0", "wrong_value", "has 0 sets, must have 1"),
        ("key.agree", "key.agree/exact", "secret", "AA" * 32, "protocol", "does not fit the pattern ^([0-9a-f]{2})*$"),
        ("key.derive", "key.derive/exact", "key", None, "protocol", "must be of type string, and is None"),
        ("heterosag.unmask", "heterosag.unmask/exact", "sums", {}, "protocol", "must be of type array, and is {}"),
        ("secagg.user", "secagg.user/script", "steps", [], "wrong_value", "steps has 0 entries; it must have"),
        ("secagg.user", "secagg.user/script", "steps", {}, "protocol", "steps is {}, no list of"),
    ],
)
def test_a_member_of_another_form_is_no_wrong_value(
    operation: str, check: str, member: str, value: object, verdict: str, said: str
) -> None:
    adapter = reference.build()

    def answer(request: Any) -> dict[str, Any]:
        given = adapter.answer(request)
        if request.get("op") == operation and "result" in given:
            given["result"][member] = value
        return given

    _, [outcome] = run(DirectConnection(answer), Settings(cases=3, pattern=check))
    assert outcome.verdict == verdict
    assert outcome.failure
    assert said in outcome.failure.message
