"""The helpers of Flower's secure aggregation behind the adapter protocol, asked one by one in Flower's environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from secagg_spec.conformance import targets
from secagg_spec.conformance.targets import environments

pytestmark = pytest.mark.slow
FOLDER = Path(targets.__file__).parent
START = """
import json, sys, warnings
sys.path[:0] = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
from flower.primitives import DECLARED, HANDLERS, POLICY
from secagg_adapter import Adapter
adapter = Adapter("Flower", "1.41.0", randomness="none", policy=POLICY)
for name, handler in HANDLERS.items():
    adapter.operation(name, **DECLARED[name])(handler)
for line in sys.stdin:
    print(json.dumps([adapter.answer(request) for request in json.loads(line)]), flush=True)
"""
SEED = {"seed": "07" * 32}
SECRET = bytes(range(32)).hex()
KEY = "01" + "00" * 31
TURNED = "00" * 4 + "01" + "00" * 27


@pytest.fixture(scope="module")
def flower() -> Iterator[subprocess.Popen[str]]:
    """A process in Flower's environment that answers all tests; skips where the environment cannot be made."""
    try:
        python = environments.ready(environments.FLOWER[environments.FLOWER_NOW])
    except environments.SetupFailed as failed:
        pytest.skip(str(failed))
    command = [str(python), "-c", START, json.dumps([str(FOLDER.parent / "sdk"), str(FOLDER)])]
    with subprocess.Popen(command, text=True, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        yield process
        process.communicate()
    assert process.returncode == 0


def ask(flower: subprocess.Popen[str], *requests: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the answers to requests: an operation, its parameters, and its randomness where it takes any."""
    lines = [dict(zip(("op", "params", "rand"), request, strict=False), id=at) for at, request in enumerate(requests)]
    assert flower.stdin is not None
    assert flower.stdout is not None
    flower.stdin.write(json.dumps(lines) + "\n")
    flower.stdin.flush()
    answers: list[dict[str, Any]] = json.loads(flower.stdout.readline())
    return answers


def stream(q: int, key: str, n: int) -> tuple[str, dict[str, Any]]:
    """Return a request for a stream."""
    return "prg.expand", {"q": str(q), "key": key, "n": n}


def seal(**alter: int) -> tuple[str, dict[str, Any]]:
    """Return a request to seal 32 bytes from user 0 to user 1."""
    return "pair.seal", {"plaintext": SECRET, "sender": 0, "receiver": 1, "alter": alter or None}


def test_streams_have_32_bits_of_key_and_lack_their_upper_end(flower: subprocess.Popen[str]) -> None:
    one, other, zeros, broken, outside = ask(
        flower,
        stream(2**32, KEY, 8),
        stream(2**32, TURNED, 8),
        stream(2, KEY, 8),
        stream(2, "00", 1),
        stream(3, KEY, 1),
    )
    assert one["result"] == other["result"]
    assert zeros["result"] == {"value": "00" * 32}
    assert broken["error"]["message"].startswith("AssertionError")
    assert outside["unsupported"]


def test_a_number_comes_back_from_the_quantiser_and_a_large_one_is_clipped(flower: subprocess.Popen[str]) -> None:
    numbers = {"q": str(2**32), "level": str(2**18)}
    x = "000000000000e0bf" + "000000000000f03f" + "0000000000002440"  # -0.5, 1, 10
    (answer,) = ask(flower, ("quantizer.quantize", {**numbers, "weight": 1024, "x": x}, SEED))
    assert answer["result"] == {"value": "0000feff" + "00000400" + "00002000"}
    params = {**numbers, "format": "binary64", **answer["result"]}
    (back,) = ask(flower, ("quantizer.dequantize", params))
    assert back["result"] == {"x": x[:32] + "0000000000002040"}


def test_shares_give_the_secret_and_one_of_them_does_not(flower: subprocess.Popen[str]) -> None:
    (made,) = ask(flower, ("shamir.share", {"t": 2, "n": 3, "secret": SECRET}))
    shares = made["result"]["shares"]
    params = {"t": 2, "users": [2, 0], "shares": [shares[2], shares[0]]}
    right, twice, none = ask(
        flower,
        ("shamir.reconstruct", params),
        ("shamir.reconstruct", {**params, "shares": [shares[2]] * 2}),
        ("shamir.reconstruct", {"t": 2, "users": [], "shares": []}),
    )
    assert right["result"] == {"secret": SECRET}
    assert twice["reject"]["code"] == "duplicate_id"
    assert "IndexError" in none["error"]["message"]


def test_pairs_agree_and_the_third_stage_refuses_other_users(flower: subprocess.Popen[str]) -> None:
    agreed, opened, *refused = ask(
        flower, ("pair.agree", {}), seal(), seal(byte=9, mask=1), seal(sender=2), seal(receiver=2), seal(sender=1)
    )
    assert agreed["result"]["first"] == agreed["result"]["second"]
    assert opened["result"]["opened"] == SECRET
    assert {answer["reject"]["code"] for answer in refused} == {"bad_ciphertext"}
