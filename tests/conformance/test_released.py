"""FedML's managers and its secret sharing, OpenFL, declearn and Fed-BioMed, asked in their own environments."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES
from secagg_spec.conformance.targets import TARGETS, TargetAbsent
from tests import kit
from tests.quick import WHOLE, exhaustive

pytestmark = pytest.mark.slow
SEED = {"seed": "07" * 32}
SECRET = bytes(range(32)).hex()
NOBODY: dict[str, list[int]] = {"share": [], "upload": [], "recover": []}
HALF = {name: list[int]() for name in ("advertise_keys", "share_keys", "masked_input", "unmasking")}
DRAW_THEMSELVES = ("openfl", "declearn", "flower@1.8.0")
STARTED: dict[str, subprocess.Popen[str]] = {}
"""The targets that answer already."""
ONE, ZERO = "000000000000f03f", "00" * 8


def answers(target: str, *requests: tuple[str, dict[str, Any], bool]) -> list[dict[str, Any]]:
    """Return the answers of a target to requests, or skip where its environment cannot be made.

    One process of a target answers all tests: to import a framework takes most of their time.
    """
    if target not in STARTED:
        STARTED[target] = started(target)
    process = STARTED[target]
    assert process.stdin is not None
    assert process.stdout is not None
    found = []
    for at, (op, params, seeded) in enumerate(requests):
        line = {"id": at, "op": op, "params": params, "rand": SEED if seeded else {}}
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        found.append(json.loads(process.stdout.readline()))
    return found


def started(target: str) -> subprocess.Popen[str]:
    """Start a target."""
    try:
        command = TARGETS[target].command()
    except TargetAbsent as absent:
        pytest.skip(str(absent))
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


@pytest.fixture(scope="module", autouse=True)
def _ended() -> Iterator[None]:
    """End what was started, and see that it ends well."""
    yield
    for process in STARTED.values():
        process.communicate()
        assert process.returncode == 0
    STARTED.clear()


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
    first = answers("fedml-clients", encoding("00" * 8, seeded=False))
    STARTED.pop("fedml-clients").communicate()
    assert first == answers("fedml-clients", encoding("00" * 8, seeded=False))
    assert first[0]["result"]["shares"] != ["00" * 4] * 3


def sharing(target: str, t: int, n: int, users: Sequence[int]) -> str:
    """Return what the shares of some users of a target's own sharing give."""
    (made,) = answers(target, ("shamir.share", {"t": t, "n": n, "secret": SECRET}, target not in DRAW_THEMSELVES))
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


@exhaustive
def test_openfl_averages_equal_weights_and_waits_for_everybody() -> None:
    same, other, dropped, late = answers(
        "openfl", average([1, 1, 1]), average([1, 1, 6]), average([1, 1, 1], share_keys=[1]),
        average([1, 1, 1], masked_input=[1]),
    )  # fmt: skip
    assert number(same) == pytest.approx(1 / 3, abs=1e-6)
    assert number(other) != pytest.approx(1 / 8, abs=1e-6)
    assert dropped["error"]["message"] == "Halted: all that are left wait for the tensor ciphertexts"
    assert late["error"]["message"] == "Halted: the aggregator waits until all collaborators have sent their results"


def batched(values: Sequence[int]) -> list[tuple[int, int]]:
    """Return the values in pairs."""
    return list(zip(values[::2], values[1::2], strict=True))


def number(answer: dict[str, Any]) -> float:
    """Return the first number of an average."""
    (value,) = struct.unpack("<d", bytes.fromhex(answer["result"]["average"])[:8])
    return float(value)


@exhaustive
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


def summed(R: int, *updates: str, viewer: str = "", **drop: list[int]) -> tuple[str, dict[str, Any], bool]:
    """Return a request for a sum of integers, or for what a viewer sees."""
    nobody = {phase: list[int]() for phase in SUM_PHASES}
    params = {"R": str(R), "N": len(updates), "t": len(updates), "updates": list(updates), "drop": {**nobody, **drop}}
    return ("secagg.view", {**params, "viewer": viewer}, False) if viewer else ("secagg.sum", params, False)


@exhaustive
def test_declearn_sums_and_waits_for_everybody() -> None:
    half, beyond = "0080000005000000", "0100010005000000"
    two, wide, above, longer, early, late = answers(
        "declearn", summed(2**16, half, half), summed(2**64, "ff" * 8, "ff" * 8, "03" + "00" * 7),
        summed(2**16, half, beyond), summed(2**16, half, half[:8]), summed(2**16, half, half, setup=[0]),
        summed(2**16, half, half, input=[1]),
    )  # fmt: skip
    assert two["result"] == {"sum": "000000000a000000", "contributors": [0, 1]}
    assert wide["result"]["sum"] == "01" + "00" * 7
    assert above["result"]["sum"] == "018000000a000000"
    assert longer["reject"]["code"] == "length_mismatch"
    for answer, name in ((early, "client000"), (late, "client001")):
        assert answer["error"]["message"] == f"Halted: the server waits without end for ['{name}']"


@exhaustive
def test_declearn_shares_and_agrees() -> None:
    assert sharing("declearn", 3, 5, [4, 0, 2]) == SECRET
    assert sharing("declearn", 3, 5, [4, 0]) != SECRET
    (agreed,) = answers("declearn", ("pair.agree", {}, False))
    assert agreed["result"]["first"] == agreed["result"]["second"]
    assert [len(text) for text in agreed["result"]["public"]] == [320, 248]


@exhaustive
def test_fedbiomed_sums_and_ends_a_round_without_everybody() -> None:
    updates = ("01000000ff1f0000", "02000000ff1f0000", "00000000ff1f0000")
    for target in ("fedbiomed", "fedbiomed-unvalidated"):
        right, late, longer = answers(
            target, summed(2**13, *updates), summed(2**13, *updates, input=[1]),
            summed(2**13, *updates[:2], updates[2][:8]),
        )  # fmt: skip
        assert right["result"] == {"sum": "03000000fd1f0000", "contributors": [0, 1, 2]}
        assert late["reject"]["code"] == "below_threshold"
        assert longer["reject"]["code"] == "length_mismatch"


@exhaustive
def test_fedbiomed_hides_the_number_for_its_validation_behind_the_mask_of_the_first_parameter() -> None:
    updates = ("0500000007000000", "0600000008000000")
    (seen,) = answers("fedbiomed", summed(2**13, *updates, viewer="server"))
    known, *masked = (int(text[2:4] + text[:2], 16) for text in seen["result"]["vectors"])
    assert [(update - factor + known) % 2**13 for update, factor in batched(masked)] == [5, 6]
    (seen,) = answers("fedbiomed-unvalidated", summed(2**13, *updates, viewer="server"))
    assert [len(text) for text in seen["result"]["vectors"]] == [16, 16]


def test_fedbiomed_cuts_an_average_down_to_a_step_of_its_quantiser() -> None:
    scale = {"R": "4294967296", "clip": 3, "level": "1365", "max_weight": 131071, "weights": [1, 1, 1]}
    params = {"N": 3, "t": 3, "k": 2, **scale, "x": [ONE, ONE, ZERO], "drop": HALF}
    (answer,) = answers("fedbiomed", ("secagg.average", params, False))
    assert number(answer) == pytest.approx(-3 + 6 / 8191 * ((2 * 5461 + 4096) // 3), abs=1e-12)


@exhaustive
def test_the_first_release_of_flower_with_the_workflow_runs_behind_the_same_adapter() -> None:
    assert sharing("flower@1.8.0", 3, 5, [4, 0, 2]) == SECRET
    right, view = answers(
        "flower@1.8.0", summed(2**16, "01000000", "02000000", "ffff0000", input=[]),
        summed(2**16, "01000000", "02000000", "ffff0000", viewer="server"),
    )  # fmt: skip
    assert right["result"] == {"sum": "02000000", "contributors": [0, 1, 2]}
    assert len(view["result"]["vectors"]) == 6


FEW = 8
"""So many cases of each check find what is known, but for the targets that say more; ``make whole`` takes 100."""


@pytest.mark.parametrize(
    ("target", "pattern", "cases"),
    [
        pytest.param("declearn", "secagg.", FEW, marks=exhaustive),
        pytest.param("declearn", "shamir", FEW, marks=exhaustive),
        pytest.param("fedbiomed", "secagg.", FEW, marks=exhaustive),
        pytest.param("fedbiomed-unvalidated", "secagg.", FEW, marks=exhaustive),
        ("fedml-managers", "lightsecagg.round", 40),
        ("fedml-managers", "secagg.sum", FEW),
        pytest.param("fedml-managers", "secagg.view", FEW, marks=exhaustive),
        ("fedml-managers-twice", "lightsecagg.round/sum", FEW),
        pytest.param("fedml-secagg", "shamir", FEW, marks=exhaustive),
        pytest.param("openfl", "secagg.average", FEW, marks=exhaustive),
    ],
)
def test_what_is_known_is_found_and_nothing_else(target: str, pattern: str, cases: int, tmp_path: Path) -> None:
    try:
        TARGETS[target].command()
    except TargetAbsent as absent:
        pytest.skip(str(absent))
    options = ["--fuzz", str(100 if WHOLE else cases), "--repro", str(tmp_path)]
    done = kit.run(["conform", "--target", target, "-k", pattern, *options])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
