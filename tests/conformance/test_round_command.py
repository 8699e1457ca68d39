"""The command round: implementations that play with one another, and the first fault with its place."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.commands import round as command
from secagg_spec.commands.parsers import PROTOCOLS, REFERENCE, joined
from secagg_spec.commands.round import Pair, Table, pairs
from secagg_spec.conformance.adapter.capabilities import HELLO
from secagg_spec.conformance.adapter.plain import counted
from secagg_spec.conformance.adapter.wire import Answer, Request
from tests.quick import WHOLE, part

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
PLAYER = f"{sys.executable} -m secagg_spec.conformance.targets.reference"
BAD = f"{PLAYER} --mutant sign-of-the-mask"


def play(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of the command."""
    capsys.readouterr()
    place = [] if "--repro" in arguments else ["--repro", str(folder)]
    code = cli.main(["round", *place, *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.slow
@pytest.mark.requirement("CNF-40", "CNF-74")
@pytest.mark.parametrize("side", ["user", "form"])
def test_a_fault_is_located_at_its_party_phase_message_field_and_element(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, side: str
) -> None:
    users = ["--user", BAD] if side == "user" else ["--user", "--", *BAD.split()]
    folder = tmp_path / "my faults"
    code, out, _ = play(capsys, folder, "-p", "secagg", "--rounds", "10", "--server", REFERENCE, *users)
    assert code == 1
    lines = [line.strip() for line in out.splitlines()]
    assert "phase:    masked_input" in lines
    assert "message:  0 (MaskedInput), field masked, element 0" in lines
    [party] = [line for line in lines if line.startswith("party:")]
    assert "user " in party
    assert "--mutant sign-of-the-mask" in party
    [requests] = folder.glob("*.jsonl")
    assert [shlex.split(line)[1:] for line in lines if line.startswith("replay:")] == [
        [*BAD.split(), "<", str(requests)]
    ]
    asked = [json.loads(line)["op"] for line in requests.read_text().splitlines()]
    assert asked[:2] == ["hello", "session.new"]
    assert "session.step" in asked
    body = json.loads((folder / "round-secagg-1.round.json").read_text())
    assert (body["phase"], body["where"]["field"], body["where"]["element"]) == ("masked_input", "masked", "0")
    assert len(body["answers_seen"]) == len(asked) - 1


@pytest.mark.slow
@pytest.mark.requirement("CNF-69")
def test_no_link_in_the_folder_of_faults_is_followed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder, outside = tmp_path / "repro", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("theirs")
    links = [folder / "round-secagg-1.jsonl", folder / "round-secagg-1.round.json"]
    for link in links:
        link.symlink_to(outside)
    code, _, _ = play(capsys, folder, "-p", "secagg", "--rounds", "1", "--user", BAD)
    assert (code, outside.read_text()) == (1, "theirs")
    assert [path for path in sorted(folder.iterdir()) if not path.is_symlink()] == links


@pytest.mark.requirement("CNF-40")
@pytest.mark.slow
def test_of_several_users_the_one_at_fault_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sides = ["--server", REFERENCE, "--user", PLAYER, "--user", BAD]
    code, out, _ = play(capsys, tmp_path, "-p", "secagg", "--rounds", "6", *sides)
    assert code == 1
    results = [line.split()[-1] for line in out.splitlines() if line.startswith("secagg ")]
    assert results == ["ok", "FAIL", "FAIL"]
    blamed = [line for line in out.splitlines() if line.strip().startswith("party:")]
    assert len(blamed) == 2
    assert all("sign-of-the-mask" in line for line in blamed)


_COUNTED = """import pathlib, sys
from secagg_spec.conformance.targets.reference import adapter
reference, log = adapter.build(), pathlib.Path(sys.argv[1])
answer = reference.answer
def counted(request):
    with log.open("a") as lines:
        print(request["op"], request["params"].get("handle"), file=lines)
    given = answer(request)
    if request["op"] == "session.step" and request["params"]["phase"] == "share_keys":
        given["result"]["outbox"] = given["result"]["outbox"][:-1]
    return given
reference.answer = counted
reference.run()
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-40")
def test_only_rounds_that_were_played_are_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program, log = tmp_path / "counted.py", tmp_path / "log"
    program.write_text(_COUNTED)
    user = f"{sys.executable} {program} {log}"
    code, out, _ = play(capsys, tmp_path, "-p", "secagg", "--rounds", "1", "--user", user)
    news = [line for line in log.read_text().splitlines() if line.startswith("session.new")]
    rounds = len(set(news)) // 3  # a fresh process gets the requests of the fault again
    assert "3 users" in out
    assert (code, out.splitlines()[-1]) == (1, f"{counted(rounds, 'round')} played, 1 of 1 pair with a fault")


_OTHER_UPDATE = """from secagg_spec.conformance.targets.reference import adapter, drawing
drawn = drawing.in_sessions(adapter.build(), "secagg.user", drawing.secrets)
opened = drawn._handlers["session.new"]
def changed(setup, **given):
    update = f"{int(setup['update'][:2], 16) ^ 1:02x}{setup['update'][2:]}"
    return opened(setup={**setup, "update": update}, **given)
drawn._handlers["session.new"] = changed
drawn.run()
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-40", "CNF-74")
def test_of_a_sum_that_is_wrong_the_requests_to_each_implementation_of_the_round_are_kept_with_its_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "wrong.py").write_text(_OTHER_UPDATE)
    wrong = f"{sys.executable} {tmp_path / 'wrong.py'}"
    folder = tmp_path / "repro"
    code, out, _ = play(capsys, folder, "-p", "secagg", "--rounds", "1", "--user", PLAYER, "--user", wrong)
    assert code == 1
    assert out.count("the reference plays this party") == 2
    replays = [line.split("replay:")[1].strip() for line in out.splitlines() if "replay:" in line]
    alone, *both = (f"{folder}/round-secagg-{name}.jsonl" for name in ["2", "3-1", "3-2"])
    assert replays == [f"{wrong} < {alone}", f"{PLAYER} < {both[0]}", f"{wrong} < {both[1]}"]
    assert sorted(map(str, folder.glob("*.jsonl"))) == [alone, *both]


_ENDING = """import itertools, os, pathlib, sys
from secagg_spec.conformance.targets.reference import adapter
gone, steps = pathlib.Path(sys.argv[1]), itertools.count(1)
if gone.exists():
    sys.exit("licence used up")
reference = adapter.build()
answer = reference.answer
def some(request):
    if request["op"] == "session.step" and next(steps) > 5:
        gone.touch()
        os._exit(1)
    return answer(request)
reference.answer = some
reference.run()
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-03", "CNF-04", "CNF-40")
def test_what_was_found_before_an_implementation_could_not_be_started_again_is_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ending.py").write_text(_ENDING)
    ending = f"{sys.executable} {tmp_path / 'ending.py'} {tmp_path / 'gone'}"
    code, out, _ = play(capsys, tmp_path / "repro", "-p", "secagg", "--rounds", "3", "--user", BAD, "--user", ending)
    assert code == 3
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("secagg ")] == ["FAIL", "FAIL", "played"]
    assert (tmp_path / "repro" / "round-secagg-1.jsonl").exists()
    assert out.splitlines()[-1].startswith(f"cannot be used: {ending}: no answer to hello (crash)")


@pytest.mark.slow
@pytest.mark.parametrize(("users", "code", "said"), [((BAD, PLAYER), 1, "FAIL"), ((PLAYER, BAD), 130, "not played")])
def test_what_was_found_before_an_interrupt_is_kept(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    users: tuple[str, str],
    code: int,
    said: str,
) -> None:
    whole = command.play

    def until(pair: Pair, *given: Any) -> None:
        if pair.users == (PLAYER,):
            raise KeyboardInterrupt
        whole(pair, *given)

    monkeypatch.setattr(command, "play", until)
    found, out, _ = play(capsys, tmp_path, "-p", "secagg", "--rounds", "3", "--user", users[0], "--user", users[1])
    assert found == code
    assert out.splitlines()[1].endswith(said)
    assert (tmp_path / "round-secagg-1.jsonl").exists() == (code == 1)


@pytest.mark.parametrize(
    "protocol", part(3, ["lightsecagg", *(pytest.param(p, marks=pytest.mark.slow) for p in PROTOCOLS[1:])])
)
def test_right_implementations_play_without_a_fault(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, protocol: str
) -> None:
    other = "node" if shutil.which("node") else PLAYER
    sides = ["--server", PLAYER, "--user", other, "--user", REFERENCE]
    rounds = 3 if WHOLE else 1
    code, out, _ = play(capsys, tmp_path, "-p", protocol, "--rounds", str(rounds), *sides)
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert out.splitlines()[-1] == f"{3 * rounds} rounds played, 0 of 3 pairs with a fault"


@pytest.mark.slow
def test_the_authority_of_basa_can_be_played(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = play(capsys, tmp_path, "-p", "basa", "--rounds", "1", "--authority", PLAYER)
    assert (code, out.splitlines()[-1]) == (0, "1 round played, 0 of 1 pair with a fault")


@pytest.mark.slow
def test_the_same_seed_plays_the_same_rounds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["-p", "secagg", "--rounds", "5", "--seed", "3", "--user", BAD]
    outs = [play(capsys, tmp_path / str(at), *arguments)[1].replace(str(tmp_path / str(at)), "") for at in range(2)]
    assert outs[0] == outs[1]


def test_what_an_implementation_does_not_declare_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fake = f"{sys.executable} {FAKE} none"
    code, out, _ = play(capsys, tmp_path, "--server", fake)
    assert code == 4
    assert "does not declare the party secagg.server" in out
    code, _, err = play(capsys, tmp_path, "-p", "secagg", "--server", fake)
    assert code == 2
    assert "does not declare the party secagg.server" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "name an implementation other than the reference with --server, --user or --authority"),
        (["--server", REFERENCE, "--user", REFERENCE], 2, "name an implementation"),
        (["--user", "a 'b"], 2, "is not a command line"),
        (["--user", ""], 2, "is neither"),
        (["--user", "node", "-p", "fedavg"], 2, "the protocols with rounds are"),
        (["--user", "node", "--repro", "/dev/null/x"], 2, "is not a folder"),
        (["--user", "/nowhere/adapter"], 3, "cannot be used: /nowhere/adapter"),
        (["--user", "sleep 9", "--start-timeout", "0.01"], 3, "no answer within 0.01 s"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    found, out, err = play(capsys, tmp_path, *arguments)
    assert found == code
    assert said in (out if code == 3 else err)
    assert len((out + err).splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("round --server -- ./a -x --user -- ./b", ["round", "--server", "./a -x", "--user", "./b"]),
        (
            "round --rounds 3 --user -- node b.js --server 1",
            ["round", "--rounds", "3", "--user", "node b.js --server 1"],
        ),
        ("round --server a --user b", ["round", "--server", "a", "--user", "b"]),
        ("conform --server -- ./a", ["conform", "--server", "--", "./a"]),
        ("round --server --", ["round", "--server", ""]),
        ("round", ["round"]),
        ("", []),
    ],
)
def test_command_lines_behind_two_dashes_become_one_word(given: str, meant: list[str]) -> None:
    assert joined(given.split()) == meant


def test_each_server_meets_each_user_and_all_of_them() -> None:
    found = pairs(["secagg"], ["a", "b"], ["c", "d"], REFERENCE)
    assert [(pair.server, pair.users) for pair in found] == [
        *(("a", users) for users in [("c",), ("d",), ("c", "d")]),
        *(("b", users) for users in [("c",), ("d",), ("c", "d")]),
    ]
    assert Pair("secagg", "a", ("b",), "c").names == {"a", "b"}
    assert Pair("basa", "a", ("b",), "c").names == {"a", "b", "c"}


@pytest.mark.requirement("CNF-40")
def test_a_request_goes_to_the_adapter_that_plays_its_session() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def ask(self, request: Request) -> Answer:
            return Answer("result", value={"by": self.name})

    connections: dict[str, Any] = {"a": Named("a"), "b": Named("b")}
    table = Table(connections, {"1": "a", "2": "b"})
    assert [table.ask(Request("session.step", {"handle": h})).value["by"] for h in "121"] == ["a", "b", "a"]
    assert HELLO.op == "hello"
    assert table.ask(HELLO).value["by"] == "b"
