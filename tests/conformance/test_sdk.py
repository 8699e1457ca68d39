"""The helper for adapters in Python: its own file, in about 20 lines of adapter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from secagg_spec.conformance.sdk import secagg_adapter

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


def test_an_adapter_of_twenty_lines_passes_every_check_that_it_declares(tmp_path: Path) -> None:
    path = tmp_path / "adapter.py"
    path.write_text(ADAPTER.format(folder=str(Path(secagg_adapter.__file__).parent)))
    command = [sys.executable, "-m", "secagg_spec.cli", "conform", "--fuzz", "20", "--", sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
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


def test_an_exception_becomes_an_error_and_a_reject_a_reject() -> None:
    adapter = secagg_adapter.Adapter("x", "1")

    @adapter.operation("echo")
    def echo(data: object) -> dict[str, object]:
        if data == 1:
            raise secagg_adapter.Reject("out_of_range", "one")
        raise KeyError("two")

    assert adapter.answer({"id": 1, "op": "echo", "params": {"data": 1}})["reject"]["code"] == "out_of_range"
    assert adapter.answer({"id": 2, "op": "echo", "params": {"data": 2}})["error"]["message"] == "KeyError: 'two'"
    assert adapter.answer({"id": 3, "op": "nothing", "params": {}}) == {"id": 3, "unsupported": True}
    assert adapter.answer({"id": 4, "op": "echo", "params": {}})["reject"]["code"] == "malformed"
