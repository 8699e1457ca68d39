"""The shipped targets: FedML behind our adapter, in its own environment."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pytest

from secagg_spec.conformance.targets import TARGETS, Target, TargetAbsent, environments
from tests import kit
from tests.conformance.test_released import _ended, answers  # noqa: F401 - a fixture of this module, too
from tests.quick import WHOLE, exhaustive

PART = {
    "fedml": "mds.",
    "flower": "secagg.sum/*dropouts,secagg.sum/wrong,secagg.sum/exact",
    "flower-any": "shamir.",
    "flower-repaired": "secagg.average/*dropouts,secagg.average/out-of-range,secagg.unmasking/both-sets",
}
"""The checks that `make test` takes of those on a released target, by what their ids hold."""


@pytest.fixture(scope="session")
def fedml() -> list[str]:
    """Return the command of the FedML adapter, or skip where its environment cannot be made."""
    try:
        return TARGETS["fedml-any"].command()
    except TargetAbsent as absent:
        pytest.skip(str(absent))


def ask(target: str, op: str, params: dict[str, object]) -> dict[str, object]:
    """Return the answer to one request."""
    (answer,) = answers(target, (op, params, False))
    return answer


def judged(target: str, folder: Path) -> kit.Done:
    """Judge a target, by a part of the checks; its failures are written into a folder."""
    part = [] if WHOLE else ["--fuzz", "8", "-k", PART[target]]
    return kit.run(["conform", "--target", target, "--repro", str(folder), *part])


@pytest.mark.slow
def test_the_adapter_calls_the_released_functions() -> None:
    assert ask("fedml-any", "field.inverse", {"q": "32749", "a": "02000000"})["result"] == {"value": "f73f0000"}
    assert (0x3FF7 * 2) % 32749 == 1
    hello = ask("fedml-any", "hello", {})["result"]
    assert isinstance(hello, dict)
    assert hello["implementation"]["version"] == "0.9.6"


@pytest.mark.slow
@exhaustive
def test_what_is_known_of_fedml_is_found_and_nothing_else(fedml: list[str], tmp_path: Path) -> None:
    assert fedml
    done = judged("fedml", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "fedml (FedML 0.9.6)" in done.stdout
    assert list(tmp_path.glob("fedml-*.jsonl"))


@pytest.fixture(scope="session")
def flower() -> list[str]:
    """Return the command of the Flower adapter, or skip where its environment cannot be made."""
    try:
        return TARGETS["flower"].command()
    except TargetAbsent as absent:
        pytest.skip(str(absent))


NOBODY: dict[str, list[int]] = {"advertise_keys": [], "share_keys": [], "masked_input": []}


@pytest.mark.slow
def test_a_released_client_of_flower_says_whose_shares_it_releases() -> None:
    right, both = {"survivors": [0, 1, 2], "dropped": [3]}, {"survivors": [0, 1, 2, 3], "dropped": [3]}
    few = {"survivors": [0], "dropped": [1, 2, 3]}
    params = {
        "N": 4,
        "t": 3,
        "k": 3,
        "drop": {**NOBODY, "masked_input": [3]},
        "user": 0,
        "requests": [few, right, both],
    }
    result = ask("flower", "secagg.unmasking", params)["result"]
    assert isinstance(result, dict)
    first, second, third = result["answers"]
    assert first["reject"]["code"] == "below_threshold"
    assert second == {"seeds": [0, 1, 2], "keys": [3]}
    assert third["reject"]["code"] == "wrong_phase"


@pytest.mark.slow
def test_a_refusal_of_flower_is_a_reject_and_a_crash_is_an_error() -> None:
    zero = "00" * 8
    scale = {"R": str(2**32), "clip": 8, "level": str(2**18), "max_weight": 1000, "weights": [10] * 4, "x": [zero] * 4}
    params = {"N": 4, "t": 3, "k": 3, **scale, "drop": {**NOBODY, "unmasking": [0, 1]}}
    answer = ask("flower", "secagg.average", params)
    assert answer["reject"] == {
        "code": "below_threshold",
        "message": "Not enough shares to recover secret in unmask vectors stage",
    }
    params["drop"] = {**NOBODY, "share_keys": [0], "unmasking": []}
    assert "KeyError" in str(ask("flower", "secagg.average", params)["error"])
    params["drop"] = {**NOBODY, "masked_input": [0], "unmasking": []}
    result = ask("flower", "secagg.average", params)["result"]
    assert isinstance(result, dict)
    assert result["contributors"] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["flower", pytest.param("flower-any", marks=exhaustive)])
def test_what_is_known_of_flower_is_found_and_nothing_else(flower: list[str], target: str, tmp_path: Path) -> None:
    assert flower
    done = judged(target, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert f"{target} (Flower" in done.stdout


@pytest.mark.slow
def test_what_stands_in_the_place_of_flowers_has_no_failure(flower: list[str], tmp_path: Path) -> None:
    assert flower
    done = judged("flower-repaired", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert ", 0 fail, 0 fail as expected" in done.stdout


def test_a_target_that_is_slow_is_given_its_time() -> None:
    """Flower once took more than the usual 10 s to share among 255 users, and was said to hang."""
    silent = Target("silent", "", lambda: [sys.executable, "-c", "input()"], seconds=60.0)
    for asked, waited in ((10.0, 60.0), (90.0, 90.0)):
        connection = silent.connect(asked)
        connection.close()
        assert connection.timeout == waited
    assert TARGETS["flower"].seconds == TARGETS["flower-any"].seconds == 60.0


@pytest.mark.slow
def test_an_environment_that_cannot_be_made_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECAGG_SPEC_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(environments, "LOCKS", tmp_path)
    (tmp_path / "nothing.txt").write_text(f"no-such-package-here==1 --hash=sha256:{'0' * 64}")
    with pytest.raises(environments.SetupFailed, match="no-such-package-here"):
        environments.ready(environments.Environment("nothing", "no-such-package-here==1", date(2026, 1, 1), ()))


@pytest.mark.slow
def test_a_package_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small-1-py3-none-any.whl").write_bytes(b"not what was locked")
    (tmp_path / "small-1.txt").write_text(f"small==1 --hash=sha256:{'0' * 64}")
    for name, value in {"SECAGG_SPEC_HOME": tmp_path, "PIP_NO_INDEX": 1, "PIP_FIND_LINKS": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(environments, "LOCKS", tmp_path)
    with pytest.raises(environments.SetupFailed, match="Got "):
        environments.ready(environments.Environment("small-1", "small==1", date(2026, 1, 1), ()))


def test_a_target_without_its_program_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(TargetAbsent, match="node is not installed"):
        TARGETS["node"].command()
