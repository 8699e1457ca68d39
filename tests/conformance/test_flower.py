"""The driver of Flower's secure aggregation: released clients and the released workflow, without a network."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from secagg_spec.conformance import targets
from secagg_spec.conformance.targets import environments

pytestmark = pytest.mark.slow
FOLDER = Path(targets.__file__).parent
UPDATES, WEIGHTS = [[0.5, -1.0], [1.5, 1.0], [0.25, -7.0], [-0.5, 7.0]], [10, 20, 30, 40]
STEP = 16 / 2**22 * 100 / 10
"""An update's quantiser moves by less than 16 / 2**22, and a weight of 10 of 100 makes that ten times as much."""


_PROGRAM = f"""import contextlib, io, json, sys; sys.path.append({str(FOLDER)!r})
from flower.client import STAGES, Client, user_of
from flower.round import Halted, Settings, run_round
for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(json.loads(line), dict(globals()))
    print(json.dumps(said.getvalue()), flush=True)
"""
"""Runs the programs that it is given, each with names of its own: to import Flower takes seconds."""


@pytest.fixture(scope="module")
def flower() -> Iterator[subprocess.Popen[str]]:
    """A process in Flower's environment that runs programs; skips where the environment cannot be made."""
    try:
        python = environments.ready(environments.FLOWER[environments.FLOWER_NOW])
    except environments.SetupFailed as failed:
        pytest.skip(str(failed))
    with subprocess.Popen([python, "-c", _PROGRAM], text=True, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        yield process
        process.communicate()
    assert process.returncode == 0


def run(flower: subprocess.Popen[str], *lines: str) -> object:
    """Return what the program of these lines, in Flower's environment, prints as JSON."""
    assert flower.stdin is not None
    assert flower.stdout is not None
    flower.stdin.write(json.dumps("\n".join(lines)) + "\n")
    flower.stdin.flush()
    return json.loads(json.loads(flower.stdout.readline()))


def run_round(flower: subprocess.Popen[str], drop: dict[str, list[int]]) -> object:
    """Return the average and the contributors of a round with threshold 2, or the text of its failure."""
    return run(
        flower,
        f"try: found = vars(run_round({UPDATES}, {WEIGHTS}, {drop}, Settings(1.0, 2, max_weight=100.0)))",
        "except Halted as halted: print(json.dumps(str(halted)))",
        'else: print(json.dumps({name: found[name] for name in ("average", "contributors")}))',
    )


def average(users: list[int]) -> list[float]:
    """Return the weighted average of the users' updates."""
    total = sum(WEIGHTS[user] for user in users)
    return [sum(WEIGHTS[user] * UPDATES[user][entry] for user in users) / total for entry in range(2)]


@pytest.mark.parametrize(
    ("drop", "users"),
    [
        ({}, [0, 1, 2, 3]),
        ({"collect_masked_vectors": [1]}, [0, 2, 3]),
        ({"collect_masked_vectors": [0, 3]}, [1, 2]),
        ({"unmask": [2, 3]}, [0, 1, 2, 3]),
        ({"collect_masked_vectors": [1], "unmask": [2]}, [0, 2, 3]),
    ],
)
def test_a_round_gives_the_average_of_those_who_uploaded(
    flower: subprocess.Popen[str], drop: dict[str, list[int]], users: list[int]
) -> None:
    outcome = run_round(flower, drop)
    assert isinstance(outcome, dict)
    assert outcome["contributors"] == users
    assert outcome["average"] == pytest.approx(average(users), abs=4 * STEP)


def test_a_round_that_halts_says_what_was_logged_and_who_raised_what(flower: subprocess.Popen[str]) -> None:
    assert run_round(flower, {"unmask": [0, 1, 2]}) == "Not enough shares to recover secret in unmask vectors stage"
    assert "user 0 in unmask: KeyError" in str(run_round(flower, {"share_keys": [1]}))


def test_a_client_is_asked_stage_by_stage(flower: subprocess.Popen[str]) -> None:
    asked = run(
        flower,
        "users = [Client(user, [1.0], 10) for user in range(3)]",
        "sizes = dict(sample_num=3, share_num=3, threshold=2, clipping_range=8.0, max_weight=100.0)",
        "keys = [user.ask(STAGES[0], **sizes, target_range=16, mod_range=256) for user in users]",
        "roster = {str(user.node): [key['pk1'], key['pk2']] for user, key in zip(users, keys)}",
        "sealed = [user.ask(STAGES[1], **roster) for user in users]",
        "inbox = [(user.node, text) for user, sent in zip(users, sealed)",
        "         for node, text in zip(sent['dsts'], sent['ctxts']) if node == users[0].node]",
        "srcs, ctxts = zip(*inbox)",
        "masked = users[0].ask(STAGES[2], srcs=list(srcs), ctxts=list(ctxts))",
        "shares = users[0].ask(STAGES[3], active_nids=[users[0].node, users[1].node], dead_nids=[users[2].node])",
        "answers = [sorted(answer) for answer in (keys[0], sealed[0], masked, shares)]",
        "print(json.dumps([answers, [user_of(node) for node in shares['nids']]]))",
    )
    assert asked == [[["pk1", "pk2"], ["ctxts", "dsts"], ["masked_params"], ["nids", "shares"]], [0, 1, 2]]
