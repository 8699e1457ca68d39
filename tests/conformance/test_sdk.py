"""The helper for adapters in Python: its own file, in about 20 lines of adapter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.sdk.secagg_adapter import pack, pack_reals, repaired, unpack
from tests import kit

ADAPTER = """
import sys
sys.path.insert(0, {folder!r})
from secagg_adapter import Adapter, Reject, pack, unpack

adapter = Adapter("tiny", "1")

@adapter.operation("echo")
def echo(data):
    print("this goes to standard error")
    return {{"data": data}}

@adapter.operation("field.add")
def add(q, a, b):
    modulus, x, y = int(q), unpack(a), unpack(b)
    if not 2 <= modulus <= 2**32:
        raise Reject("bad_param", "modulus")
    if len(x) != len(y):
        raise Reject("length_mismatch")
    if any(v >= modulus for v in x + y):
        raise Reject("noncanonical")
    return {{"value": pack([(v + w) % modulus for v, w in zip(x, y)])}}

adapter.run()
"""


@pytest.mark.slow
def test_an_adapter_of_twenty_lines_passes_every_check_that_it_declares(tmp_path: Path) -> None:
    path = tmp_path / "adapter.py"
    path.write_text(ADAPTER.format(folder=str(Path(secagg_adapter.__file__).parent)))
    done = kit.run(["conform", "--fuzz", "20", "--", sys.executable, str(path)], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 fail," in done.stdout


def test_the_helper_is_one_file_that_imports_the_standard_library_alone() -> None:
    source = Path(secagg_adapter.__file__).read_text()
    assert "secagg_spec" not in source.replace("secagg_spec.", "")
    code = "import sys, runpy; runpy.run_path(sys.argv[1]); print(any('numpy' in m for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, secagg_adapter.__file__], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_an_unknown_operation_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match=r"make\.coffee"):
        secagg_adapter.Adapter("x", "1").operation("make.coffee")


class Unsaid(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise ValueError


def test_an_exception_becomes_an_error_and_a_reject_a_reject() -> None:
    adapter = secagg_adapter.Adapter("x", "1")

    @adapter.operation("echo")
    def echo(data: object) -> dict[str, object]:
        if data == 1:
            raise secagg_adapter.Reject("out_of_range", "one")
        raise errors[data]

    errors: dict[object, BaseException] = {
        2: KeyError("two"),
        3: SystemExit("three"),
        4: Unsaid(),
        5: KeyboardInterrupt(),
    }
    assert adapter.answer({"id": 1, "op": "echo", "params": {"data": 1}})["reject"]["code"] == "out_of_range"
    for data, said in ((2, "KeyError: 'two'"), (3, "SystemExit: three"), (4, "Unsaid")):
        assert adapter.answer({"id": 2, "op": "echo", "params": {"data": data}})["error"]["message"] == said
    with pytest.raises(KeyboardInterrupt):
        adapter.answer({"id": 2, "op": "echo", "params": {"data": 5}})
    assert adapter.answer({"id": 3, "op": "nothing", "params": {}}) == {"id": 3, "unsupported": True}
    assert adapter.answer({"id": 4, "op": "echo", "params": {}})["reject"]["code"] == "malformed"


NO_JSON = """
from secagg_adapter import Adapter

adapter = Adapter("tiny", "1")
values = [{1, 2}, b"x", 1j, float("nan"), float("inf"), 10**5000, Adapter]
values.append(values)

@adapter.operation("echo")
def echo(data):
    return {"data": values[data] if data < len(values) else data}

adapter.run()
"""


def test_a_result_that_is_no_json_is_an_error_and_the_next_request_is_answered() -> None:
    lines = [json.dumps({"id": id, "op": "echo", "params": {"data": id}}) for id in range(9)]
    folder = Path(secagg_adapter.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", NO_JSON], cwd=folder, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    *wrong, right = map(json.loads, done.stdout.splitlines())
    assert [answer["id"] for answer in wrong] == list(range(8))
    for answer in wrong:
        assert answer["error"]["message"].startswith("the answer cannot be written as JSON: ")
    assert right == {"id": 8, "result": {"data": 8}}


@pytest.mark.parametrize("takes", [True, False])
def test_a_session_of_an_adapter_that_draws_itself_needs_no_rand(takes: bool) -> None:
    adapter, seen = secagg_adapter.Adapter("x", "1", randomness="none"), list[object]()

    def opened(handle: str, protocol: str, role: str, numbers: object, session: str, round: str, setup: object) -> Any:
        seen.append({})
        return {}

    def opened_with(rand: object, **members: object) -> dict[str, object]:
        seen.append(rand)
        return {}

    adapter.operation("session.new", parties=["lightsecagg.user"])(opened_with if takes else opened)
    numbers = {"q": "4294967291", "N": 4, "D": 1, "U": 3, "T": 1, "d": 0}
    setup = {"user": 0, "channel": "plain", "update": ""}
    params = {"handle": "h", "protocol": "lightsecagg", "role": "user", "session": 32 * "0", "round": "0"}
    answer = adapter.answer({"id": 1, "op": "session.new", "params": {**params, "numbers": numbers, "setup": setup}})
    assert answer == {"id": 1, "result": {}}
    assert seen == [{}]


def asked(**members: object) -> object:
    """Return the code of the rejection of a request to an adapter with one operation, or its answer."""
    adapter = secagg_adapter.Adapter("x", "1")

    @adapter.operation("lightsecagg.aggregate_shares")
    def aggregate(q: str, N: int, T: int, surviving: list[int], held: list[object]) -> dict[str, object]:
        return {"share": ""}

    params = {"q": "7", "N": 4, "T": 1, "surviving": [0, 1, 2], "held": [[0, "01000000"]], **members}
    answer = adapter.answer({"id": 1, "op": "lightsecagg.aggregate_shares", "params": params})
    return answer["reject"]["code"] if "reject" in answer else answer["result"]


@pytest.mark.requirement("ADP-12", "ADP-13", "ADP-14")
@pytest.mark.parametrize(
    "wrong",
    [
        {"q": 7},
        {"q": "07"},
        {"q": "+7"},
        {"q": "\u0667"},
        {"q": "--7"},
        {"N": True},
        {"N": 4.0},
        {"N": "4"},
        {"surviving": [0, 1, True]},
        {"surviving": {}},
        {"held": [[0, "0A000000"]]},
        {"held": [[0, "01 000000"]]},
        {"held": [[0, "010000"]]},
        {"held": [[0, "01000000", 0]]},
        {"held": [["0", "01000000"]]},
        {"held": [[0, "01000000\n"]]},
    ],
    ids=str,
)
def test_a_member_of_another_form_is_malformed_before_the_handler_sees_it(wrong: dict[str, object]) -> None:
    assert asked() == {"share": ""}
    assert asked(**wrong) == "malformed"


@pytest.mark.requirement("ADP-14")
def test_a_modulus_of_thousands_of_digits_is_a_bad_parameter() -> None:
    assert asked(q="1" + 5000 * "0") == "bad_param"


@pytest.mark.requirement("ADP-10", "ADP-11")
@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b"", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
        (b'{"id": 1.0, "op": "hello", "params": {}}', None),
        (b'{"id": 1, "op": "hello", "params": {"x": NaN}}', None),
        (b'{"id": 1, "op": "hello", "params": {"x": 1e400}}', None),
        (b'{"id": 1, "op": "hello", "params": {"x": [-1e400]}}', None),
        (b'{"id": 1, "op": "hello"}', 1),
        (b'{"id": 1, "op": ["hello"], "params": {}}', 1),
        (b'{"id": 1, "op": "hello", "params": {}, "rand": null}', 1),
        (b'{"id": 1, "op": "hello", "params": {}, "more": 1}', 1),
        (b'{"id": 1, "op": "hello", "params": {}, "raw": true}', 1),
        (b'{"id": 1, "op": "field.add", "params": {}, "raw": true}', 1),
    ],
)
def test_a_line_that_is_no_request_is_malformed(line: bytes, id: int | None) -> None:
    answer = secagg_adapter.Adapter("x", "1").answer(secagg_adapter._parse(line))
    assert answer["id"] == id
    assert answer["reject"]["code"] == "malformed"


@pytest.mark.requirement("ADP-16")
@pytest.mark.parametrize(
    ("users", "code"), [([0, 1, 1], "duplicate_id"), ([0, 4], "unknown_peer"), ([-1], "unknown_peer")]
)
def test_a_user_is_named_once_and_is_on_the_roster(users: list[int], code: str) -> None:
    with pytest.raises(secagg_adapter.Reject) as caught:
        secagg_adapter.check_users("users", users, 4)
    assert caught.value.code == code
    with pytest.raises(secagg_adapter.Reject):
        secagg_adapter.check_drop({"share": [0], "upload": [0], "recover": []}, 4)
    secagg_adapter.check_drop({"share": [0], "upload": [3], "recover": []}, 4)


def test_reals_are_packed_in_a_known_format_alone() -> None:
    assert [secagg_adapter.pack_reals([1.0], format) for format in ("binary64", "binary32")] == [
        "000000000000f03f",
        "0000803f",
    ]
    with pytest.raises(ValueError, match=r"^format = 'binary16': must be binary64 or binary32$"):
        secagg_adapter.pack_reals([1.0], "binary16")


@pytest.mark.parametrize(
    ("call", "values", "said"),
    [
        (pack, [1, -1], "values[1] = -1: must be an integer in [0, 2**32)"),
        (pack, [2**32], "values[0] = 4294967296: must be an integer in [0, 2**32)"),
        (pack, [1.5], "values[0] = 1.5: must be an integer in [0, 2**32)"),
        (pack, [10**5000], "values[0] = int: must be an integer in [0, 2**32)"),
        (pack, None, "values = None: must be a list, each entry of it an integer in [0, 2**32)"),
        (partial(pack, width=8), [0, 2**64], "values[1] = 18446744073709551616: must be an integer in [0, 2**64)"),
        (partial(pack, width=8), ["1"], "values[0] = '1': must be an integer in [0, 2**64)"),
        (partial(pack, width=0), [0], "width = 0: must be an integer, at least 1"),
        (lambda values: pack(values, width=cast(Any, 4.0)), [0], "width = 4.0: must be an integer, at least 1"),
        (partial(unpack, width=-1), "01", "width = -1: must be an integer, at least 1"),
        (partial(unpack, width=0), "01000000", "width = 0: must be an integer, at least 1"),
        (pack_reals, [0.0, 10**400], f"values[1] = {10**39}: must be a number that binary64 can hold"),
        (pack_reals, ["1"], "values[0] = '1': must be a number that binary64 can hold"),
        (partial(pack_reals, format="binary32"), [1e39], "values[0] = 1e+39: must be a number that binary32 can hold"),
        (partial(repaired, raw=[1]), b"01", "answer = b'01': must be the hex digits of a vector or of bytes"),
        (partial(repaired, "01"), None, "raw = None: must be a list of integers, or bytes"),
    ],
)
def test_what_cannot_be_packed_is_named_with_what_can_be(call: Any, values: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(said)}$"):
        call(values)


def test_integers_of_other_classes_are_packed() -> None:
    assert pack(list(np.array([1, 2], np.uint64))) == "0100000002000000"
    assert pack(list(np.array([1, 2], np.uint64)), 5) == "01000000000200000000"
    assert pack_reals(list(np.array([1.0]))) == "000000000000f03f"


def test_a_type_says_in_words_what_it_takes() -> None:
    for type, right, wrong, words in (
        (
            "[(integer,vector)]",
            [[0, "00000001"], [1, ""]],
            [[0, "1"]],
            "a list, each entry of it [a JSON integer; lower",
        ),
        ("(decimal,decimal)", ["1", "-20"], ["1"], "[a decimal string; a decimal string]"),
        ("{a:[integer],b:text}", {"a": [1], "b": ""}, {"a": [1]}, "an object with a (a list, each entry of it a JSON"),
        ("[integer]?", None, [None], "a list, each entry of it a JSON integer; or null"),
        ("[[integer]]", [[], [7]], [7], "a list, each entry of it a list, each entry of it a JSON integer"),
        ("[elements8]", ["00" * 16], ["00" * 12], "a list, each entry of it lowercase hex digits, 16 for each element"),
    ):
        assert secagg_adapter.has_form(right, type)
        assert not secagg_adapter.has_form(wrong, type)
        assert secagg_adapter.said(type).startswith(words)
    assert secagg_adapter.has_form("1" * 41, "decimal", digits=None)
    assert not secagg_adapter.has_form("1" * 41, "decimal")


ADDING = {"id": 1, "op": "field.add", "params": {"q": "5", "a": "01000000", "b": "01000000"}}


@pytest.mark.parametrize("given", [None, [1], "value", 5])
def test_a_handler_that_returns_no_members_is_named(given: Any) -> None:
    mine = secagg_adapter.Adapter("x", "1")
    mine.operation("field.add")(lambda q, a, b: given)
    said = "the handler of field.add returns the members of a result by name, not "
    assert said + repr(given) in mine.answer(ADDING)["error"]["message"]


@pytest.mark.requirement("ADP-55")
@pytest.mark.parametrize("raw", [[1.5], "12", [1, -0.25], [None], ["x"], [float("nan")], [float("inf")]])
def test_a_raw_value_that_is_no_integer_is_not_cut_to_one(raw: Any) -> None:
    mine = secagg_adapter.Adapter("x", "1")
    mine.operation("field.add", raw=["value"])(lambda q, a, b: {"value": secagg_adapter.repaired(a, raw)})
    assert " is no integer: the raw values of a vector are" in mine.answer({**ADDING, "raw": True})["error"]["message"]


@pytest.mark.requirement("ADP-55")
@pytest.mark.parametrize(
    ("raw", "shown"),
    [([5.0, 2**60, -3], ["5", str(2**60), "-3"]), (b"ab", "6162"), (bytearray(b"ab"), "6162"), ([], [])],
)
def test_a_raw_value_is_given_as_it_is(raw: Any, shown: Any) -> None:
    mine = secagg_adapter.Adapter("x", "1")
    mine.operation("field.add", raw=["value"])(lambda q, a, b: {"value": secagg_adapter.repaired(a, raw)})
    assert mine.answer({**ADDING, "raw": True})["result"]["raw"] == {"value": shown}


@pytest.mark.requirement("ADP-55")
def test_a_declared_member_that_is_not_returned_is_named() -> None:
    mine = secagg_adapter.Adapter("x", "1")
    mine.operation("field.add", raw=["value"])(lambda q, a, b: {})
    assert "TypeError: value is declared as raw" in mine.answer({**ADDING, "raw": True})["error"]["message"]
