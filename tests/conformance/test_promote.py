"""A stored failure becomes a vector, or is refused in one line."""

from __future__ import annotations

import json
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.commands import promote as promoting
from secagg_spec.conformance.running import repros, suite
from secagg_spec.conformance.vectors import store
from secagg_spec.errors import UsageError
from tests.conformance.shipped import VECTOR_FILES
from tests.kit import sealed
from tests.quick import part

SCHEMA = store.folder() / "schema.json"
MUTANT = [sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant"]


@pytest.fixture(autouse=True)
def kept() -> None:
    """Read the vectors of the kit, which are kept, before a test lets another folder be theirs."""
    suite.vector_checks()


@cache
def written(mutant: str, check: str) -> dict[str, str]:
    """The files that the failure of one check on the reference with a bug planted leaves, by name."""
    with TemporaryDirectory() as folder:
        assert cli.main(["conform", "--repro", folder, "-k", check, "--", *MUTANT, mutant]) == 1
        return {path.name: path.read_text(encoding="utf-8") for path in Path(folder).iterdir()}


def failure(folder: Path, mutant: str, check: str) -> Path:
    """The file of the failure of one check on the reference with a bug planted."""
    folder.mkdir()
    for name, text in written(mutant, check).items():
        (folder / name).write_text(text, encoding="utf-8")
    [path] = folder.glob("*.jsonl")
    return path


def promote(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of the command."""
    capsys.readouterr()
    code = cli.main(["promote", str(path), *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "check", "clause", "kind"),
    part(
        3,
        [
            ("small-set-accepted", "lightsecagg.aggregate_shares/small-set", "LSA-09", "reject"),
            ("mask-is-subtracted", "lightsecagg.mask/exact", "LSA-02", "result"),
            ("noise-first", "mds.encode/exact", "MDS-04", "result"),
        ],
    ),
)
def test_a_failure_becomes_a_vector_that_finds_the_bug(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, mutant: str, check: str, clause: str, kind: str
) -> None:
    path, into = failure(tmp_path / "repro", mutant, check), tmp_path / "mine.json"
    code, out, err = promote(capsys, path, "--id", "found-01", "--clause", clause, "--into", str(into))
    assert (code, err) == (0, "")
    assert "added found-01" in out
    [vector] = store.load(into).vectors
    assert (vector.id, vector.clauses, kind in vector.as_json()) == ("found-01", (clause,), True)
    assert ("gave a result although" in vector.comment, vector.comment != "") == (False, True)
    assert cli.main(["vectors", "--file", str(into), "--target", "reference"]) == 0
    assert cli.main(["vectors", "--file", str(into), "--", *MUTANT, mutant]) == 1
    again = promote(capsys, path, "--id", "found-02", "--clause", clause, "--into", str(into))
    assert again[0] == 2
    assert "'found-01' asks the same" in again[2]
    assert len(store.load(into).vectors) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--id", "round-tiny", "--clause", "LSA-02"], "in use"),
        (["--id", "Found 1", "--clause", "LSA-02"], "lowercase"),
        (["--id", "found-1", "--clause", "LSA-99"], "no such clause"),
        (
            ["--id", "found-1", "--clause", "BAA-26"],
            "--clause BAA-26: nothing that is asked of lightsecagg.mask decides",
        ),
        (["--id", "found-1", "--clause", "LSA-02", "--clause", "SEA-01"], "lightsecagg.mask/exact decides LSA-02"),
        (["--id", "found-1", "--clause", "LSA-02", "--comment", ""], "--comment: the text is empty"),
    ],
)
def test_names_that_cannot_be_used_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    path = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact")
    code, _, err = promote(capsys, path, *arguments, "--into", str(tmp_path / "mine.json"))
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "mine.json").exists()


@pytest.mark.slow
def test_a_comment_that_is_not_utf_8_is_read_again_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, into = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact"), tmp_path / "mine.json"
    names = ("--id", "found-1", "--clause", "LSA-02", "--into", str(into))
    code, out, err = promote(capsys, path, *names, "--comment", "x\udcff\ud800 é")
    assert (code, err) == (0, "")
    assert len(out) < 1500
    [vector] = store.load(into).vectors
    assert vector.comment == "x\udcff\ud800 é"
    assert "é" in into.read_text(encoding="utf-8")


@pytest.mark.slow
def test_several_requests_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = failure(tmp_path / "repro", "extra-shares-ignored", "mds.decode/extra")
    code, _, err = promote(capsys, path, "--id", "found-1", "--clause", "MDS-09", "--into", str(tmp_path / "x.json"))
    assert code == 2
    assert "2 requests" in err


@pytest.mark.slow
def test_what_has_no_explicit_randomness_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = failure(tmp_path / "repro", "noise-first", "mds.encode/exact")
    hello, request = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    for rand in ({}, {"seed": "00" * 32}):
        path.write_text("".join(json.dumps(line) + "\n" for line in (hello, {**request, "rand": rand})))
        sealed(path)
        into = ["--into", str(tmp_path / "x.json")]
        code, _, err = promote(capsys, path, "--id", "found-1", "--clause", "MDS-04", *into)
        assert code == 2
        assert "without explicit randomness" in err


@pytest.mark.slow
def test_an_expectation_that_the_reference_does_not_share_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact")
    beside = path.with_suffix(".expected.json")
    stored = json.loads(beside.read_text(encoding="utf-8"))
    beside.write_text(json.dumps({**stored, "expected_of_the_last_answer": {"reject": ["bad_param"]}}))
    sealed(path)
    code, _, err = promote(capsys, path, "--id", "found-1", "--clause", "LSA-02", "--into", str(tmp_path / "x.json"))
    assert code == 2
    assert "the reference answers" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "change", "said"),
    [
        ("request", {"op": None}, "wrong type"),
        ("request", {"op": ["a"]}, "wrong type"),
        ("request", {"rand": [1]}, "wrong type"),
        ("request", {"rand": "x"}, "wrong type"),
        ("request", {"raw": True}, "a request has the member 'raw', which no vector carries"),
        ("stored", {"expected_of_the_last_answer": {"reject": 5}}, "must be a list of codes"),
        ("stored", {"message": 5}, "comment: must be of type string"),
        ("stored", {"message": ""}, "comment: must not be empty"),
    ],
)
def test_a_stored_failure_that_is_none_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, where: str, change: dict[str, Any], said: str
) -> None:
    path = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact")
    beside = path.with_suffix(".expected.json")
    stored = json.loads(beside.read_text(encoding="utf-8"))
    hello, request = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    request, stored = ({**request, **change}, stored) if where == "request" else (request, {**stored, **change})
    beside.write_text(json.dumps(stored))
    path.write_text("".join(json.dumps(line) + "\n" for line in (hello, request)))
    sealed(path)
    into = tmp_path / "x.json"
    code, _, err = promote(capsys, path, "--id", "found-1", "--clause", "LSA-02", "--into", str(into))
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not into.exists()


@pytest.mark.parametrize("name", [".", "v.json", "my.case.json", "adapter.txt"])
def test_a_folder_and_other_names_are_no_stored_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    for stored in (name, "my.jsonl", "v.jsonl"):
        (tmp_path / stored).exists() or (tmp_path / stored).write_text("{}")
    for given in (["promote", "--id", "found-1", "--clause", "LSA-02"], ["replay"]):
        command = [given[0], str(tmp_path / name), *given[1:], *(["--", "false"] if given == ["replay"] else [])]
        assert cli.main(command) == 2
        assert capsys.readouterr().err.endswith("a stored failure is a .jsonl file, or its .expected.json\n")


def case(folder: Path) -> Path:
    """A stored failure, as a run writes it, with one request."""
    params = {"q": "7", "N": 3, "D": 0, "U": 2, "T": 1, "d": 1, "update": "00", "mask": "00"}
    lines = json.dumps({"id": 1, "op": "lightsecagg.mask", "params": params}) + "\n"
    stored = {"schema": repros.SCHEMA, "check": "lightsecagg.mask/exact", "message": "wrong", "draws": []}
    (folder / "case.jsonl").write_text(lines)
    (folder / "case.expected.json").write_text(json.dumps(stored))
    return sealed(folder / "case.jsonl")


def text_in(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder be that of the text's vectors, with one vector."""
    place.mkdir()
    monkeypatch.setattr(store, "folder", lambda: place)
    shutil.copy(SCHEMA, place)
    [file] = [file for file in VECTOR_FILES if file.name == "code"]
    store.write([file], place)


def test_a_link_into_the_text_takes_the_index_of_the_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text_in(tmp_path / "vectors", monkeypatch)
    (tmp_path / store.INDEX).write_text("alice 1\n")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "vectors" / "findings.json")
    code, _, err = promote(capsys, case(tmp_path), "--id", "zz-1", "--clause", "LSA-02", "--into", str(link))
    assert (code, err) == (0, "")
    assert "zz-1" in store.read_index(tmp_path / "vectors")
    assert (tmp_path / store.INDEX).read_text() == "alice 1\n"


@pytest.mark.parametrize("name", ["foo.txt", "findings.JSON", "foo"])
def test_a_file_of_the_text_has_a_name_that_is_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text_in(tmp_path / "vectors", monkeypatch)
    into = tmp_path / "vectors" / name
    before = {path: path.read_bytes() for path in into.parent.iterdir()}
    code, _, err = promote(capsys, case(tmp_path), "--id", "zz-1", "--clause", "LSA-02", "--into", str(into))
    assert (code, err) == (
        2,
        f"secagg-spec promote: --into {into}: a file of vectors in this folder has a name that ends in .json\n",
    )
    assert {path: path.read_bytes() for path in into.parent.iterdir()} == before


@pytest.mark.slow
def test_the_findings_of_the_text_take_it_with_its_id(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact")
    place = tmp_path / "vectors"
    place.mkdir()
    for file in store.folder().iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(store, "folder", lambda: place)
    assert promote(capsys, path, "--id", "found-1", "--clause", "LSA-02", "--comment", "a comment")[0] == 0
    [vector] = [vector for vector in store.load(place / "findings.json").vectors if vector.id == "found-1"]
    assert vector.comment == "a comment"
    assert store.read_index(place)["found-1"] == store.digest(vector)


@pytest.mark.slow
def test_a_file_of_the_text_takes_it_with_a_flag_that_stands_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact")
    place = tmp_path / "vectors"
    shutil.copytree(store.folder(), place)
    monkeypatch.setattr(store, "folder", lambda: place)
    into = place / "lightsecagg.json"
    before, given = into.read_bytes(), ("--id", "mask-7", "--clause", "LSA-02", "--into", str(into))
    for flags, said in (((), "--flag is missing"), (("--flag", "Nothing"), "--flag Nothing: there is no such flag")):
        code, _, err = promote(capsys, path, *given, *flags)
        assert code == 2
        assert f"{said}; lightsecagg.json has the flags of spec/vectors/flags.toml: Basic, MaskLength, " in err
    assert into.read_bytes() == before
    elsewhere = (*given[:-1], str(tmp_path / "mine.json"))
    assert "only files that spec/vectors/flags.toml lists" in promote(capsys, path, *elsewhere, "--flag", "Basic")[2]
    assert promote(capsys, path, *given, "--flag", "Basic")[0] == 0
    [vector] = [vector for vector in store.load(into).vectors if vector.id == "mask-7"]
    assert vector.flags == ("Basic",)
    after = into.read_bytes()
    store.write(store.regenerated(place), place)
    assert into.read_bytes() == after


@pytest.mark.slow
def test_a_new_file_of_the_text_says_what_it_is_about(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = failure(tmp_path / "repro", "mask-is-subtracted", "lightsecagg.mask/exact")
    place = tmp_path / "vectors"
    place.mkdir()
    monkeypatch.setattr(store, "folder", lambda: place)
    into = place / "lightsecagg.json"
    given = ("--id", "mask-7", "--clause", "LSA-02", "--into", str(into), "--flag", "Basic")
    code, _, err = promote(capsys, path, *given)
    assert (code, "--covers says what it is about" in err, into.exists()) == (2, True, False)
    assert promote(capsys, path, *given, "--covers", "Masked updates.")[0] == 0
    assert store.load(into).covers == "Masked updates."
    again = promote(capsys, path, *given, "--covers", "Other things.")
    assert (again[0], "--covers is for a new file" in again[2]) == (2, True)


# ------------------------------------------------------------------------------------------------------- sessions


def opening(**changed: object) -> dict[str, Any]:
    """The opening of a session of LightSecAgg's server."""
    numbers = {"q": "7", "N": 3, "D": 0, "U": 2, "T": 1, "d": 1}
    given = {"protocol": "lightsecagg", "role": "server", "numbers": numbers, "session": "00" * 16, "round": "1"}
    return {"op": "session.new", "params": {"handle": "a", **given, "setup": {}, **changed}}


def step(handle: str = "a") -> dict[str, Any]:
    """A step of a session."""
    return {"op": "session.step", "params": {"handle": handle, "phase": "relay", "inbox": []}}


FREE = {"op": "session.free", "params": {"handle": "a"}}
AGAIN = {"op": "session.again", "params": {"handle": "a", "round": "2", "setup": {}}}


def test_the_steps_of_a_session_become_a_script() -> None:
    request = promoting.script([opening(), step(), step(), FREE])
    assert request["op"] == "lightsecagg.server"
    assert request["params"]["steps"] == [{"phase": "relay", "inbox": []}] * 2
    assert set(request["params"]) == {*("q", "N", "D", "U", "T", "d", "session", "round"), "steps"}


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([opening(), step("b")], "not those of one session"),
        ([opening(), opening()], "not those of one session"),
        ([opening(), FREE, step()], "after its end"),
        ([opening(), step(), AGAIN, step()], "several rounds"),
        ([opening(past=1), step()], "session.new has the member 'past', which no script carries"),
        (
            [opening(), {**step(), "params": {**step()["params"], "zq": 1}}],
            "session.step has the member 'zq', which no script carries",
        ),
        ([opening(protocol="heterosag"), step()], "sessions of heterosag.server have no script"),
        ([opening(setup={"zq": 1}), step()], "have no script"),
        ([opening(numbers=None), step()], "have no script"),
    ],
)
def test_a_session_that_is_no_script_is_refused(requests: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        promoting.script(requests)


@pytest.mark.slow
def test_the_failure_of_a_session_becomes_a_vector_that_finds_the_bug(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mutant = "sign-of-the-mask"
    path, into = failure(tmp_path / "repro", mutant, "session.new/secagg-mixed"), tmp_path / "mine.json"
    code, out, err = promote(capsys, path, "--id", "found-01", "--clause", "SAG-12", "--into", str(into))
    assert (code, err) == (0, "")
    assert "added found-01 (secagg.user)" in out
    assert cli.main(["vectors", "--file", str(into), "--target", "reference"]) == 0
    assert cli.main(["vectors", "--file", str(into), "--", *MUTANT, mutant]) == 1
