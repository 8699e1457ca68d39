"""FedML's managers and its secret sharing, and OpenFL's secure aggregation, asked in their own environments."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from secagg_spec.conformance.targets import TARGETS, TargetAbsent

pytestmark = pytest.mark.slow
SEED = {"seed": "07" * 32}
SECRET = bytes(range(32)).hex()
NOBODY: dict[str, list[int]] = {"share": [], "upload": [], "recover": []}
HALF = {name: list[int]() for name in ("advertise_keys", "share_keys", "masked_input", "unmasking")}
ONE, ZERO = "000000000000f03f", "00" * 8


def answers(target: str, *requests: tuple[str, dict[str, Any], bool]) -> list[dict[str, Any]]:
    """Return the answers of a target to requests, or skip where its environment cannot be made."""
    try:
        command = TARGETS[target].command()
    except TargetAbsent as absent:
        pytest.skip(str(absent))
    lines = [{"id": at, "op": op, "params": params, "rand": SEED if seeded else {}}
             for at, (op, params, seeded) in enumerate(requests)]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def light(drop: dict[str, list[int]]) -> tuple[str, dict[str, Any], bool]:
    """Return a request for a round of LightSecAgg with three users and three elements."""
    updates = ["010000000200000003000000", "0a0000001400000000000000", "ec7f0000ec7f000000000000"]
    numbers = {"q": "32749", "N": 3, "D": 0, "U": 3, "T": 1, "d": 3}
    return "lightsecagg.round", {**numbers, "updates": updates, "drop": {**NOBODY, **drop}}, True


def test_the_managers_of_fedml_give_the_sum_of_everybody_or_wait() -> None:
    everybody, *waiting = answers(
        "fedml-managers", light({}), light({"share": [1]}), light({"upload": [2]}), light({"recover": [0]})
    )
    assert everybody["result"] == {"aggregate": "0a0000001500000003000000", "contributors": [0, 1, 2]}
    report = [answer["error"]["message"].partition("waits without end for ")[2] for answer in waiting]
    assert report == ["masked models", "the masked models of users [2]", "the aggregate encoded masks of users [0]"]


def test_a_client_of_fedml_that_says_twice_that_it_is_online_changes_the_sum() -> None:
    (answer,) = answers("fedml-managers-twice", light({}))
    assert "error" in answer or answer["result"]["aggregate"] != "0a0000001500000003000000"


def encoding(mask: str, *, seeded: bool) -> tuple[str, dict[str, Any], bool]:
    """Return a request for shares of a mask that three users hold, of which one may collude."""
    return "mds.encode", {"q": "32749", "N": 3, "U": 3, "T": 1, "mask": mask}, seeded


def test_the_codes_of_fedml_as_shipped_draw_no_noise_and_do_not_pad() -> None:
    two, three = answers("fedml-secagg", encoding("00" * 8, seeded=True), encoding("00" * 12, seeded=True))
    assert two["result"] == {"shares": ["00" * 4] * 3}
    assert "cannot reshape array" in three["error"]["message"]
    (one,) = answers("fedml-secagg-lcc", encoding("07000000", seeded=True))
    assert one["result"] == {"shares": [""] * 3}


def test_the_clients_of_fedml_all_draw_the_same() -> None:
    first, second = (answers("fedml-clients", encoding("00" * 8, seeded=False)) for _ in range(2))
    assert first == second
    assert first[0]["result"]["shares"] != ["00" * 4] * 3


def sharing(target: str, t: int, n: int, users: Sequence[int]) -> str:
    """Return what the shares of some users of a target's own sharing give."""
    (made,) = answers(target, ("shamir.share", {"t": t, "n": n, "secret": SECRET}, target != "openfl"))
    shares = made["result"]["shares"]
    params = {"t": t, "users": list(users), "shares": [shares[user] for user in users]}
    (back,) = answers(target, ("shamir.reconstruct", params, False))
    return str(back["result"]["secret"])


def test_the_secret_sharing_of_fedml_overflows_from_some_threshold_on() -> None:
    assert sharing("fedml-secagg", 3, 5, [4, 0, 2]) == SECRET
    assert sharing("fedml-secagg-large", 12, 24, range(12)) == SECRET
    assert sharing("fedml-secagg-large", 12, 24, range(12, 24)) != SECRET


def average(weights: Sequence[int], **drop: list[int]) -> tuple[str, dict[str, Any], bool]:
    """Return a request for the average of 1, 0 and 0."""
    scale = {"R": "4294967296", "clip": 1, "level": "1024", "max_weight": 10, "weights": list(weights)}
    return "secagg.average", {"N": 3, "t": 3, "k": 2, **scale, "x": [ONE, ZERO, ZERO], "drop": {**HALF, **drop}}, False


def test_openfl_averages_equal_weights_and_waits_for_everybody() -> None:
    same, other, dropped, late = answers(
        "openfl", average([1, 1, 1]), average([1, 1, 6]), average([1, 1, 1], share_keys=[1]),
        average([1, 1, 1], masked_input=[1]),
    )  # fmt: skip
    assert number(same) == pytest.approx(1 / 3, abs=1e-6)
    assert number(other) != pytest.approx(1 / 8, abs=1e-6)
    assert dropped["error"]["message"] == "Halted: all that are left wait for the tensor ciphertexts"
    assert late["error"]["message"] == "Halted: the aggregator waits until all collaborators have sent their results"


def number(answer: dict[str, Any]) -> float:
    """Return the first number of an average."""
    (value,) = struct.unpack("<d", bytes.fromhex(answer["result"]["average"])[:8])
    return float(value)


def test_openfl_shares_and_seals() -> None:
    assert sharing("openfl", 3, 5, [4, 0, 2]) == SECRET
    params = {"plaintext": SECRET, "sender": 0, "receiver": 1}
    opened, altered, agreed = answers(
        "openfl", ("pair.seal", {**params, "alter": None}, False),
        ("pair.seal", {**params, "alter": {"byte": 50, "mask": 1}}, False), ("pair.agree", {}, False),
    )  # fmt: skip
    assert opened["result"]["opened"] == SECRET
    assert altered["reject"] == {"code": "bad_ciphertext", "message": "MAC check failed"}
    assert agreed["result"]["first"] == agreed["result"]["second"]


@pytest.mark.parametrize(
    ("target", "pattern"),
    [
        ("fedml-managers", "lightsecagg.round"),
        ("fedml-managers", "secagg.sum"),
        ("fedml-managers", "secagg.view"),
        ("fedml-managers-twice", "lightsecagg.round/sum"),
        ("fedml-secagg", "shamir"),
        ("openfl", "secagg.average"),
    ],
)
def test_what_is_known_is_found_and_nothing_else(target: str, pattern: str, tmp_path: Path) -> None:
    assert answers(target, ("echo", {"data": 1}, False))
    command = [sys.executable, "-m", "secagg_spec.cli", "conform", "--target", target, "-k", pattern]
    done = subprocess.run([*command, "--repro", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
