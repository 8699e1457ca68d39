"""``secagg-spec trace``: what it says of a trace, what it writes, and one clear line for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import resources, schemas
from secagg_spec.cli import main
from secagg_spec.protocols.secagg.round import UnmaskRequest
from tests.traces.recorded import Line, changed, places, run

ZEROS = "000102030405060708090a0b0c0d0e0f"


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["trace", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def written(path: Path, lines: Any) -> Path:
    """A file with lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    return path


def document(path: Path) -> dict[str, Any]:
    """What the command wrote, which fits its schema."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert not list(schemas.faults(found, schemas.load(resources.root("spec") / "trace.schema.json")))
    return found


def lying() -> tuple[int, list[Line]]:
    """A round whose server names another surviving set to one user, and the line of that request."""
    each = run("secagg", {"masked_input": [1]})
    at = next(n for n in places(each.lines, "to") if isinstance(each.decoded(each.lines[n]), UnmaskRequest))
    other = changed(each, each.lines[at], survivors=(0, 2, 3), dropped=(1, 4))
    return at + 1, [*each.lines[:at], other, *each.lines[at + 1 :]]


def test_an_honest_round(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    each = run("secagg", {"masked_input": [1]})
    code, out, err = call(capsys, written(tmp_path / "trace", each.lines), "--json", tmp_path / "found.json")
    assert (code, err) == (0, "")
    assert out.splitlines()[:5] == [
        f"round 3 of session {ZEROS}: secagg, 5 users",
        "  each message is one that a conforming party may send",
        "  complete: the server has the sum",
        "  the server learned the sum of users 0, 2 to 4 and nothing else (rank 1 of 5)",
        "  it can compute the self masks of users 0, 2 to 4, and the masks of 4 pairs of users",
    ]
    (found,) = document(tmp_path / "found.json")["rounds"]
    assert (found["complete"], found["finding"], found["late"]) == (True, None, [])
    assert found["learned"]["sums"] == [
        {"users": [0, 2, 3, 4], "factors": {"0": 1, "2": 1, "3": 1, "4": 1}, "where": ""}
    ]
    assert found["learned"]["pairwise_masks"] == [[0, 1], [1, 2], [1, 3], [1, 4]]


@pytest.mark.requirement("TRC-14")
def test_a_finding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line, lines = lying()
    code, out, _ = call(capsys, written(tmp_path / "trace", lines), "--json", tmp_path / "found.json")
    assert code == 1
    assert out.splitlines()[1:5] == [
        f"  FAIL     line {line}, unmasking: UnmaskRequest to user 0: survivors is [0, 2, 3], must be [0, 2, 3, 4]",
        "           party:   the server",
        "           clauses: TRC-08, SAG-17; reject code inconsistent_sets",
        "           the rest of the round was not checked",
    ]
    (found,) = document(tmp_path / "found.json")["rounds"]
    assert found["finding"] == {
        "line": line,
        "phase": "unmasking",
        "party": "server",
        "blamed": ["server"],
        "clauses": ["TRC-08", "SAG-17"],
        "code": "inconsistent_sets",
        "what": "UnmaskRequest to user 0: survivors is [0, 2, 3], must be [0, 2, 3, 4]",
    }


def test_a_round_that_ends_with_too_few_users_ends_in_its_phase(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    each = run("secagg", {"advertise_keys": [2, 3, 4]})
    closed = {"phase": "advertise_keys", "closed": [2, 3, 4]}
    code, out, _ = call(capsys, written(tmp_path / "trace", [*each.lines, closed]))
    assert code == 0
    [said] = [line for line in out.splitlines() if "incomplete" in line]
    assert said == "  incomplete: it ends in advertise_keys: 2 users advertised keys and max(t, T + 2) = 3 are needed"
    code, out, _ = call(capsys, written(tmp_path / "trace", [*each.lines, closed, closed]))
    assert code == 1
    assert "advertise_keys is closed, and the round ended in advertise_keys" in out


def test_two_rounds_and_a_cut_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    each, (_, lines) = run("lightsecagg", {"upload": [0, 1, 2]}), lying()
    code, out, _ = call(capsys, written(tmp_path / "trace", [*each.lines, *lines]))
    assert code == 1
    assert "  incomplete: it ends in upload: 2 masked updates arrived and max(U, T + 2) = 3 are needed" in out
    assert "  the server learned nothing of the inputs" in out
    assert "masked_input" not in out
    assert f"  FAIL     line {len(each.lines) + 1}, advertise_keys: round 3 begins, after round 3 of its session" in out
    assert out.splitlines()[-1] == "2 rounds, 1 with a message that no conforming party sends"


def test_users_that_pool_with_the_server(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path / "trace", run("lightsecagg").lines)
    _, out, _ = call(capsys, path, "--colluders", "4")
    assert "the server with user 4 learned the sum of users 0 to 3 and nothing else (rank 3 of 12)" in out
    _, out, _ = call(capsys, path, "--colluders", "0,1,2")
    assert "    the model of user 3 alone" in out
    assert "    the model of user 4 alone" in out


def test_colluders_that_a_later_round_does_not_have(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = run("secagg+").lines
    path = written(tmp_path / "trace", [*first, *run("secagg").lines])
    code, out, err = call(capsys, path, "--colluders", "6")
    assert code == 2
    assert "the server with user 6 learned" in out
    said = f"line {len(first) + 1}, round 3: --colluders = 6: must be a user in [0, 5)"
    assert err == f"secagg-spec trace: {path}: {said}\n"


def test_late_messages_and_parts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    without, whole = run("heterosag", {"masked_input": [1]}), run("heterosag")
    late = next(line for line in whole.lines if line.get("from") == 1 and line["phase"] == "masked_input")
    code, out, _ = call(capsys, written(tmp_path / "trace", [*without.lines, late]))
    assert code == 0
    assert "  each message is one that a conforming party may send; 1 came too late to count" in out
    assert "    the sum of users 4 to 6 in segment 1" in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["no/such/file"], "no/such/file: No such file or directory"),
        (["{}", "--colluders", "5"], "--colluders = 5: must be a user in [0, 5)"),
        (["{}", "--colluders", "1,1"], "--colluders = "),
        (["{}", "--colluders", ""], "--colluders = '': must be users, as in 0,3"),
        (["{}", "--colluders", " "], "--colluders = ' ': must be users, as in 0,3"),
        (["{}", "--colluders", "x"], "--colluders = 'x': must be whole numbers with commas between"),
        (["{}", "--json", "no/such/folder/x"], "there is no folder"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], why: str
) -> None:
    path = written(tmp_path / "trace", run("secagg").lines)
    code, _, err = call(capsys, *(argument.replace("{}", str(path)) for argument in arguments))
    assert code == 2
    assert err.startswith("secagg-spec trace: ")
    assert why in err
    assert err.count("\n") == 1


@pytest.mark.requirement("TRC-01")
def test_a_line_that_cannot_be_used_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path / "trace", [*run("secagg").lines[:3], {"phase": "x\n", "closed": []}])
    code, _, err = call(capsys, path)
    assert code == 2
    assert err == (
        f"secagg-spec trace: {path}: line 4: phase = 'x\\n': must be one of advertise_keys, share_keys, masked_input,"
        " unmasking\n"
    )


def test_what_is_too_large_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secagg_spec.traces.learned.MOST_SYMBOLS", 4)
    path = written(tmp_path / "trace", run("secagg").lines)
    code, out, _ = call(capsys, path, "--json", tmp_path / "found.json")
    assert code == 0
    assert "  what the server learned is not computed: the round is too large" in out
    assert document(tmp_path / "found.json")["rounds"][0]["learned"] is None


ASSETS = Path(__file__).parents[2] / "docs" / "assets"


def shown_traces() -> dict[str, list[Line]]:
    """The traces that the pages show: of an honest round, and of a server that asks for both secrets of user 2."""
    each = run("secagg", {"masked_input": [1]})
    asked = [line for line in each.lines if "to" in line and line["phase"] == "unmasking"]
    answers = [line for line in each.lines if "from" in line and line["phase"] == "unmasking"]
    sets = {"survivors": (0, 3, 4), "dropped": (1, 2)}
    shares = {"survivors": (0, 3, 4), "seed_shares": bytes(3 * 66), "dropped": (1, 2), "key_shares": bytes(2 * 66)}
    again = [changed(each, line, **sets) for line in asked] + [changed(each, line, **shares) for line in answers]
    ended = each.lines[-1]
    return {"trace.jsonl": [*each.lines], "trace-asked-twice.jsonl": [*each.lines[:-1], *again, ended]}


def test_the_traces_of_the_pages_are_those_of_the_reference() -> None:
    """To renew them: ``python -m tests.traces.test_command``."""
    for name, lines in shown_traces().items():
        assert [json.loads(line) for line in (ASSETS / name).read_text(encoding="ascii").splitlines()] == lines


if __name__ == "__main__":
    for file, content in shown_traces().items():
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in content)
        (ASSETS / file).write_text(text, encoding="ascii")
