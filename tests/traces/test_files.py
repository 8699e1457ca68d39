"""The files of traces: what is refused, and what a recorder writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.traces import files, rounds
from secagg_spec.traces.files import Closed, Head, Recorder, Sent
from tests.traces.recorded import PARAMETERS, Line, Recorded, entries, recorded, run

HEAD = run("secagg").lines[0]
NUMBERS = {**HEAD["numbers"], "R": int(HEAD["numbers"]["R"])}
GOOD = Head.of("secagg", NUMBERS, HEAD["setup"], bytes(16), 1)


def refused(path: Path) -> str:
    """Why a file is no trace, without its name."""
    with pytest.raises(UsageError) as error:
        list(rounds.check(files.read(path, rounds.PROTOCOLS)))
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty; a trace begins with a head"),
    "binary": (b"\x7fELF\x02\x01\xff\n", "line 1: a trace is ASCII, and this line is not"),
    "text": (b"round,users\n1,0 1\n", "not a trace: line 1: this is not JSON"),
    "other JSON": (b'{"id": 1}\n', "not a trace: line 1: its members are id;"),
    "a list": (b"[1]\n", "not a trace: line 1: a line is a JSON object"),
    "deep": (b"[" * 500 + b"]" * 500 + b"\n", "not a trace: line 1: a line is a JSON object of at most 100 levels"),
    "deeper": (b"[" * 9**6 + b"\n", "not a trace: line 1: a line is a JSON object of at most 100 levels"),
    "no head": (b'{"phase": "unmasking", "closed": []}\n', "not a trace: line 1: the first line must be a head"),
    "one line without its end": (
        json.dumps(HEAD).encode(),
        "line 1: the file ends in the middle of this line; it is the only one, so none can be checked",
    ),
    "byte order mark": (
        b"\xef\xbb\xbf" + json.dumps(HEAD).encode() + b"\n",
        "line 1: it begins with a byte order mark",
    ),
    "empty line": (json.dumps(HEAD).encode() + b"\n\n", "line 2: this is not JSON"),
}


@pytest.mark.requirement("TRC-01")
@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, case: str) -> None:
    data, why = BAD[case]
    path = tmp_path / "trace"
    path.write_bytes(data)
    assert refused(path).startswith(why)


CHANGES: dict[str, tuple[Line, str]] = {
    "version": ({"trace": 2}, "a trace of version 2, and 1 is read"),
    "a number as text": ({"trace": "1"}, "a trace of version '1', and 1 is read"),
    "no number": ({"trace": True}, "a trace of version True, and 1 is read"),
    "protocol": ({"protocol": "basa"}, "protocol = 'basa': must be one of lightsecagg, lightsecagg-active, secagg,"),
    "protocol of another type": ({"protocol": []}, "protocol = []: must be one of"),
    "numbers": ({"numbers": {}}, "numbers must have the members R, N, D, T, t, k, d, and no others"),
    "numbers of another type": ({"numbers": {**HEAD["numbers"], "N": "5"}}, "N does not have its form"),
    "many users": ({"numbers": {**HEAD["numbers"], "N": 2**31 - 1}}, "N = 2147483647: must be 3 to 4096"),
    "threshold": ({"numbers": {**HEAD["numbers"], "t": 2}}, "t = 2: must be an integer in [3, 3]"),
    "setup": ({"setup": []}, "setup must have the members order, and no others"),
    "order": ({"setup": {"order": [0, 0, 1, 2, 3]}}, "order = [0, 0, 1, 2, 3]: must be a permutation"),
    "session": ({"session": "00"}, "len(session) = 1: must be 16 bytes"),
    "session of another type": ({"session": 7}, "session does not have its form"),
    "round": ({"round": 1}, "round is a decimal string"),
    "large round": ({"round": "4294967296"}, "round = 4294967296"),
    "round below 0": ({"round": "-3"}, "round = -3: must be 0 to 4294967295"),
    "more": ({"more": 1}, "its members are "),
}


@pytest.mark.requirement("TRC-01", "TRC-05")
@pytest.mark.parametrize("case", CHANGES)
def test_a_head_that_no_round_has_is_refused(tmp_path: Path, case: str) -> None:
    change, why = CHANGES[case]
    path = tmp_path / "trace"
    path.write_text(json.dumps(HEAD | change) + "\n", encoding="ascii")
    text = refused_by_check(path)
    assert why in text
    assert "line 1" in text


def refused_by_check(path: Path) -> str:
    """Why a file is no trace, whichever reader says it."""
    with pytest.raises(UsageError) as error:
        list(rounds.check(files.read(path, rounds.PROTOCOLS)))
    return str(error.value)


ENTRIES: dict[str, tuple[Any, str]] = {
    "phase": ({"phase": "advertise", "from": 0, "message": ""}, "phase = 'advertise': must be one of advertise_keys,"),
    "phase of another type": ({"phase": 1, "from": 0, "message": ""}, "phase does not have its form"),
    "user": ({"phase": "unmasking", "from": "0", "message": ""}, "from does not have its form"),
    "message": ({"phase": "unmasking", "from": 0, "message": "0G"}, "message does not have its form"),
    "odd digits": ({"phase": "unmasking", "from": 0, "message": "0"}, "message does not have its form"),
    "both": ({"phase": "unmasking", "from": 0, "to": 1, "message": ""}, "its members are from, message, phase, to;"),
    "closed": ({"phase": "unmasking", "closed": [True]}, "closed does not have its form"),
    "no members": ({}, "its members are none;"),
    "number": (7, "a line is a JSON object"),
}


@pytest.mark.requirement("TRC-01")
@pytest.mark.parametrize("case", ENTRIES)
def test_a_line_that_is_no_entry_is_refused(tmp_path: Path, case: str) -> None:
    line, why = ENTRIES[case]
    path = tmp_path / "trace"
    path.write_text("".join(json.dumps(each) + "\n" for each in (HEAD, line)), encoding="ascii")
    assert f"line 2: {why}" in refused_by_check(path)


@pytest.mark.requirement("TRC-05")
def test_what_is_too_long_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace"
    lines = [json.dumps(line) + "\n" for line in run("secagg").lines]
    path.write_text("".join(lines), encoding="ascii")
    longest, whole = max(map(len, lines)), sum(map(len, lines))
    monkeypatch.setattr(files, "MOST_LINE", longest)
    monkeypatch.setattr(files, "MOST_ROUND", whole)
    assert len(list(files.read(path, rounds.PROTOCOLS))) == len(lines)
    path.write_text("".join(lines * 2), encoding="ascii")
    assert len(list(files.read(path, rounds.PROTOCOLS))) == 2 * len(lines)
    monkeypatch.setattr(files, "MOST_ROUND", whole - 1)
    assert f"line {len(lines)}: a round of more than {whole - 1} characters" in refused(path)
    monkeypatch.setattr(files, "MOST_LINE", longest - 1)
    assert f"longer than {longest - 1} characters" in refused(path)


@pytest.mark.requirement("TRC-01", "TRC-05")
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_a_trace_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "trace"
    path.write_bytes(data)
    assert refused(path)


@pytest.mark.requirement("TRC-01")
@given(recorded(), st.data())
def test_a_file_that_is_cut_anywhere_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, each: Recorded, data: st.DataObject
) -> None:
    whole = "".join(json.dumps(line) + "\n" for line in each.lines)
    path = tmp_path_factory.mktemp("cut") / "trace"
    cut = whole[: data.draw(st.integers(1, len(whole)))]
    path.write_text(cut, encoding="ascii")
    if cut.endswith("\n"):
        assert len(list(files.read(path, rounds.PROTOCOLS))) == cut.count("\n")
    else:
        at = cut.count("\n") + 1
        assert refused(path).startswith(f"line {at}: the file ends in the middle of this line")


# ------------------------------------------------------------------------------------------------------ writing


@pytest.mark.requirement("TRC-02", "TRC-04")
def test_a_recorder_writes_whole_lines_at_once(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    recorder, found = Recorder(path), list[Any]()
    head = entries(run("lightsecagg").lines)[0]
    assert isinstance(head, Head)
    recorder.begin(head)
    recorder.came("share", 3, b"\x01\xff")
    recorder.went("upload", 2, b"\x02")
    recorder.closed("share", {4, 1})
    found = list(files.read(path, rounds.PROTOCOLS))
    recorder.close()
    assert found[0] == head
    sent = [Sent(2, "share", 3, True, b"\x01\xff"), Sent(3, "upload", 2, False, b"\x02")]
    assert found[1:] == [*sent, Closed(4, "share", (1, 4))]


@pytest.mark.requirement("TRC-01", "ERR-02")
def test_a_recorder_takes_integers_of_numpy_and_refuses_what_no_reader_takes(tmp_path: Path) -> None:
    recorder, other = Recorder(tmp_path / "trace"), Recorder(tmp_path / "other")
    given = {name: int(value) for name, value in HEAD["numbers"].items()}
    for numbers, to, user in (({k: np.int64(n) for k, n in given.items()}, recorder, np.uint32(1)), (given, other, 1)):
        to.begin(Head.of("secagg", numbers, HEAD["setup"], bytes(16), 0))
        to.came("share_keys", user, b"a")  # type: ignore[arg-type]
        to.went("share_keys", user, b"a")  # type: ignore[arg-type]
        to.closed("share_keys", np.array([2, user]))
    for wrong in (-1, 1.0, "1", 2**32):
        for call in (recorder.came, recorder.went):
            with pytest.raises(ParameterError, match="user = "):
                call("share_keys", wrong, b"")  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="missing = "):
            recorder.closed("share_keys", [wrong])  # type: ignore[list-item]
    for text in ("a", None, 1.5, bytearray(b"a")):
        for call in (recorder.came, recorder.went):
            with pytest.raises(ParameterError, match=r"^message = .*must be bytes$"):
                call("share_keys", 1, text)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="phase = "):
        recorder.came(None, 1, b"")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="phase = "):
        recorder.closed(None)  # type: ignore[arg-type]
    recorder.close()
    other.close()
    assert (tmp_path / "trace").read_bytes() == (tmp_path / "other").read_bytes()
    assert len(list(files.read(tmp_path / "trace", rounds.PROTOCOLS))) == 4


@pytest.mark.requirement("ERR-02")
def test_the_path_of_a_trace_may_be_text(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(json.dumps(HEAD) + "\n")
    assert list(files.read(str(tmp_path / "trace"), rounds.PROTOCOLS)) == list(  # type: ignore[arg-type]
        files.read(path=tmp_path / "trace", protocols=rounds.PROTOCOLS)
    )
    with pytest.raises(UsageError, match=r"absent: No such file"):
        list(files.read(path=str(tmp_path / "absent"), protocols=rounds.PROTOCOLS))  # type: ignore[arg-type]


@pytest.mark.requirement("TRC-01", "ERR-02")
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"protocol": "other"}, r"^protocol = 'other': must be one of "),
        ({"protocol": ["secagg"]}, r"^protocol = \['secagg'\]: must be one of "),
        ({"numbers": {}}, r"^R = 'nothing': must be a member of what the server of secagg starts with$"),
        ({"numbers": {**NUMBERS, "N": "5"}}, r"^N = '5': must be a JSON integer$"),
        ({"numbers": {**NUMBERS, "R": 1.5}}, r"^R = 1.5: must be an integer$"),
        *(
            ({"numbers": {**NUMBERS, "N": wrong}}, rf"^N = {wrong}: must be 3 to 4096, the most that are checked$")
            for wrong in (2, 4097)
        ),
        ({"numbers": None}, r"^numbers = 'NoneType': must be a mapping$"),
        ({"setup": {"order": "abc"}}, r"^order = 'abc': must be a list, each entry of it a JSON integer$"),
        ({"session": b""}, r"^len\(session\) = 0: must be 16 bytes$"),
        ({"round": -1}, r"^round = -1: must be an integer in \[0, 4294967295\]$"),
        ({"round": True}, r"^round = True: must be an integer"),
    ],
)
def test_a_head_that_no_reader_takes_is_refused(changed: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {
        "protocol": "secagg",
        "numbers": NUMBERS,
        "setup": HEAD["setup"],
        "session": bytes(16),
        "round": 0,
    }
    assert Head.of(**good).round == 0
    more = {part: {**good[part], "of a user": b"1"} for part in ("numbers", "setup")}
    assert Head.of(**{**good, **more}) == Head.of(**good)
    with pytest.raises(ParameterError, match=text):
        Head.of(**{**good, **changed})


@pytest.mark.requirement("TRC-04")
@pytest.mark.parametrize("left", ["", '{"phase": "unmasking", "fr', "x" * 200_000])
@pytest.mark.parametrize("more", ["", "second\n", "y" * 70_000 + "\n"])
def test_a_recorder_goes_on_behind_the_last_whole_line(tmp_path: Path, more: str, left: str) -> None:
    path, before = tmp_path / "trace", json.dumps(HEAD) + "\n" + more
    path.write_text(before + left, encoding="ascii")
    recorder = Recorder(path)
    recorder.closed("unmasking")
    recorder.close()
    assert path.read_text(encoding="ascii") == before + '{"phase":"unmasking","closed":[]}\n'


@pytest.mark.requirement("TRC-04", "ERR-02")
def test_a_recorder_that_is_closed_writes_no_more(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "trace")
    recorder.close()
    recorder.close()
    with pytest.raises(ParameterError, match=r"^recorder = 'closed': must be used before `close`$"):
        recorder.closed("unmasking")


@pytest.mark.requirement("TRC-04")
@pytest.mark.parametrize("left", ["", "{", '{"trac', '{"trace":', '{"trace":1,"protocol":"sec'])
def test_a_recorder_begins_anew_where_the_first_head_was_cut(tmp_path: Path, left: str) -> None:
    path = tmp_path / "trace"
    path.write_text(left, encoding="ascii")
    recorder = Recorder(path)
    with pytest.raises(ParameterError, match=r"^recorder = 'empty': must be begun with the head of a round$"):
        recorder.closed("unmasking")
    assert not path.read_bytes()
    recorder.begin(GOOD)
    recorder.closed("unmasking")
    recorder.close()
    assert [*files.read(path, ["secagg"])] == [replace(GOOD, line=1), Closed(2, "unmasking", ())]


@pytest.mark.requirement("TRC-04", "ERR-02")
@pytest.mark.parametrize(
    "content",
    [
        b"notes without an end",
        b"notes\n",
        b"\n",
        b"{}\n",
        b'{"trace":2}\n',
        b'{"trace":1.0}\n',
        b'{"trace":true}\n',
        b'{"trace":2,"protocol":"secagg","numbers":{"R":"42949',
        b'{"trace":"notes","more":1',
        b'{"a":1}',
        b"\xff\x00",
        b"[1]\n",
    ],
)
def test_a_recorder_leaves_a_file_alone_that_is_no_trace(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"notes\.txt"):
        Recorder(path)
    for none in (5, None, "", "a\0b"):
        with pytest.raises(ParameterError, match="path"):
            Recorder(none)  # type: ignore[arg-type]
    assert path.read_bytes() == content


@pytest.mark.requirement("TRC-03")
@given(recorded())
def test_a_trace_holds_no_secret_of_a_user(each: Recorded) -> None:
    text = json.dumps(each.lines)
    octets = b"".join(bytes.fromhex(line["message"]) for line in each.lines if "message" in line)
    sought = {what: secret for what, secret in each.secrets.items() if len(secret) >= 12}
    most = getattr(PARAMETERS[each.name], "q", 0) or getattr(PARAMETERS[each.name], "R", 2)
    assert sought
    assert all(len(secret) == 32 or most ** (len(secret) // 4) > 2**90 for secret in sought.values())  # none by chance
    assert [what for what, secret in sought.items() if secret.hex() in text or secret in octets] == []


def test_the_protocols_are_those_that_run_phase_by_phase() -> None:
    assert set(rounds.PROTOCOLS) == {name.rstrip("+") for name in PARAMETERS}


@pytest.mark.requirement("TRC-01", "ERR-02")
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"protocol": "other"}, r"^protocol = 'other': must be one of "),
        ({"numbers": {}}, r"^R = 'nothing': "),
        *(
            ({"numbers": {**NUMBERS, "R": wrong}}, "^R = .*: must be an integer$")
            for wrong in ({1}, float("nan"), b"x")
        ),
        ({"setup": {}}, r"^order = 'nothing': "),
        ({"numbers": {**NUMBERS, "N": 4097}}, r"^N = 4097: must be 3 to 4096, the most that are checked$"),
        ({"session": bytes(15)}, r"^len\(session\) = 15: "),
        ({"round": -1}, r"^round = -1: "),
    ],
)
def test_a_head_that_no_reader_takes_is_not_written(tmp_path: Path, changed: dict[str, Any], text: str) -> None:
    recorder = Recorder(tmp_path / "trace")
    with pytest.raises(ParameterError, match=text):
        recorder.begin(replace(GOOD, **changed))
    assert not (tmp_path / "trace").read_bytes()
    recorder.begin(GOOD)
    recorder.close()
    assert [*files.read(tmp_path / "trace", ["secagg"])] == [replace(GOOD, line=1)]
