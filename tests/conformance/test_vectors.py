"""The test vectors: their files, their ids, their inputs, and the command that runs them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from secagg_spec import cli, resources, schemas
from secagg_spec.conformance.checks import REGISTRY as CHECKS
from secagg_spec.conformance.mutants.catalogue import load as load_mutants
from secagg_spec.conformance.mutants.catalogue import planted
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.conformance.vectors import base, store
from secagg_spec.conformance.vectors.base import BUG_TYPES, EDGE_CASE, Vector, VectorFile, ask, read_renewed, renewed
from secagg_spec.errors import UsageError
from tests.conformance.shipped import VECTOR_FILES, VECTORS
from tests.quick import part

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
RIGHT = "from secagg_spec.conformance.targets.reference import adapter; adapter.build().run()"
SCHEMA = schemas.load(store.folder() / "schema.json")
FILES = sorted(path for path in store.folder().glob("*.json") if path.name != "schema.json")


# --------------------------------------------------------------------------------------------------------- files


@pytest.mark.slow
def test_the_files_hold_the_results_of_the_reference_and_the_words_of_the_mutants(tmp_path: Path) -> None:
    shutil.copytree(store.folder(), tmp_path / "vectors")
    written = store.write(store.regenerated(store.folder()), tmp_path / "vectors")
    assert [path.name for path in written] == [*(path.name for path in FILES), store.INDEX]
    for path in written:
        assert path.read_bytes() == (store.folder() / path.name).read_bytes(), f"{path.name}: run make vectors"


@pytest.mark.parametrize(
    ("id", "mutant", "said"),
    part(
        3,
        [
            ("mds-encode-example", "noise-first", "changed its request or its outcome"),
            ("aggregate-small-set", "small-set-accepted", "demands .* and the reference answers {'result'"),
            ("user-upload-round", "round-unchecked", "demands .* and the reference answers {'outbox'"),
        ],
    ),
)
def test_with_a_bug_in_the_reference_no_file_is_written(tmp_path: Path, id: str, mutant: str, said: str) -> None:
    [file] = [file for file in VECTOR_FILES if VECTORS[id] in file.vectors]
    place = tmp_path / "vectors"
    place.mkdir()
    store.write([replace(file, vectors=[VECTORS[id]])], place)
    before = {path: path.read_bytes() for path in place.iterdir()}
    store.write(store.regenerated(place), place)
    with planted(mutant), pytest.raises(UsageError, match=said):
        store.write(store.regenerated(place), place)
    assert {path: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_fit_the_schema(path: Path) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(json.loads(path.read_text(encoding="utf-8")))
    assert store.load(path).vectors


def test_the_schema_names_the_bug_types_and_the_licence() -> None:
    flag = SCHEMA["properties"]["flags"]["additionalProperties"]["properties"]
    assert flag["bug_type"]["enum"] == list(BUG_TYPES)
    assert SCHEMA["properties"]["license"]["const"] == store.LICENSE
    assert store.LICENSE in (store.folder() / "LICENSE").read_text(encoding="utf-8")


def test_no_id_disappears_or_changes_its_meaning() -> None:
    index = store.read_index(store.folder())
    assert list(store.index_faults(VECTORS.values(), index)) == []
    assert set(index) >= set(VECTORS)


def answering(change: Callable[[list[dict[str, Any]]], object]) -> Callable[..., dict[str, Any]]:
    """The reference's answers to scripts, with entries that are changed."""

    def answer(*request: Any) -> dict[str, Any]:
        given = ask(*request)
        change(given["result"]["steps"])
        return given

    return answer


@pytest.mark.parametrize(
    ("id", "change", "said"),
    [
        ("server-bad-share-first", lambda steps: steps[2]["reject"]["blamed"].pop(), "are blamed, and the reference"),
        ("server-bad-share-first", lambda steps: steps.pop(), "has 4 entries, and the reference answers 3"),
        ("user-upload-round", lambda steps: steps.__setitem__(0, steps[1]), "a step that the reference refuses"),
        ("script-tiny-user-0", lambda steps: steps[0]["outbox"].pop(), "which lists its steps: withdraw it"),
    ],
)
def test_a_script_that_changed_in_another_way_is_not_regenerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id: str, change: Any, said: str
) -> None:
    [file] = [file for file in VECTOR_FILES if VECTORS[id] in file.vectors]
    store.write([replace(file, vectors=[VECTORS[id]])], tmp_path)
    monkeypatch.setattr(base, "ask", answering(change))
    with pytest.raises(UsageError, match=said):
        store.regenerated(tmp_path)


@pytest.mark.slow
def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(store.folder(), tmp_path / "vectors")
    before = {path: path.read_bytes() for path in (tmp_path / "vectors").iterdir()}
    [file] = [file for file in VECTOR_FILES if file.name == "adapter"]
    flags = {f"{name}s": flag for name, flag in file.flags.items()}
    monkeypatch.setattr(base, "flags_of", lambda name: flags if name == "adapter" else {})
    with pytest.raises(UsageError, match=r"adapter\.json: vector '[a-z0-9-]+': there is no flag 'Echo'"):
        store.write(store.regenerated(tmp_path / "vectors"), tmp_path / "vectors")
    assert {path: path.read_bytes() for path in (tmp_path / "vectors").iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({"no-such-vector": "0"}, "disappeared"),
        ({"mds-encode-example": "0"}, "changed its request or its outcome"),
        ({"mds-encode-example": "withdrawn"}, "never used again"),
    ],
)
def test_what_breaks_the_index_is_not_written(tmp_path: Path, index: dict[str, str], said: str) -> None:
    (tmp_path / store.INDEX).write_text("".join(f"{id} {digest}\n" for id, digest in index.items()))
    with pytest.raises(UsageError, match=said):
        store.write(VECTOR_FILES, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [store.INDEX]


def test_a_renewed_vector_has_a_new_id_and_the_old_one_is_withdrawn() -> None:
    index = store.read_index(store.folder())
    assert len(renewed()) > 300
    for made, now in renewed().items():
        assert now.startswith(f"{made}-")
        assert (index[made], now in VECTORS) == (store.WITHDRAWN, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"# head\nfoo three words\n", "line 2 is 'foo three words', and must have two words"),
        (b"foo\n", "line 1 is 'foo', and must have two words"),
        (b"foo 1\n\xff 2\n", "it is not UTF-8 in line 2"),
        (None, "it is missing, and has every id that was given: put it back"),
    ],
)
def test_an_index_that_cannot_be_used_is_one_line(tmp_path: Path, content: bytes | None, said: str) -> None:
    (tmp_path / "code.json").touch()
    if content is not None:
        (tmp_path / store.INDEX).write_bytes(content)
    with pytest.raises(UsageError, match=f"{store.INDEX}: {said}$"):
        store.read_index(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[x", "flags.toml: cannot be used: Expected"),
        (b"\xff", "flags.toml: cannot be used: is not UTF-8 in line 1"),
        (b'[code]\nFoo = "BASIC"\n', "flags.toml: Foo is 'BASIC', and must be a kind (BASIC, "),
        (b'[code]\nFoo = "BAD MDS-01"\n', "flags.toml: Foo is 'BAD MDS-01', and must be a kind"),
        (b'[code]\nFoo = "BASIC MDS-01 nope"\n', "flags.toml: Foo is 'BASIC MDS-01 nope', and must be a kind"),
    ],
)
def test_flags_that_cannot_be_used_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    (tmp_path / base.FLAGS).write_bytes(content)
    monkeypatch.setattr(base, "folder", lambda: tmp_path)
    monkeypatch.setattr(base, "_flags", base._flags.__wrapped__)
    with pytest.raises(UsageError, match=re.escape(said)):
        base.flags_of("code")


def test_a_vector_that_changed_is_renewed_again_and_again(tmp_path: Path) -> None:
    right, still = VECTORS["mds-encode-example"], VECTORS["mds-encode-small"]
    [of] = [file for file in VECTOR_FILES if right in file.vectors]
    store.write([replace(of, vectors=[right, still])], tmp_path)
    for number in (2, 3):
        file = replace(of, vectors=[replace(right, result={"shares": [f"0{number}"]}), still])
        if number > 2:
            file.vectors[0] = replace(file.vectors[0], id=f"{right.id}-{number - 1}")
        was = file.vectors[0].id
        changed = store.renew([file], tmp_path)
        assert changed == {was: f"{right.id}-{number}"}
        assert [vector.id for vector in file.vectors] == [f"{right.id}-{number}", still.id]
        assert store.read_index(tmp_path)[was] != store.WITHDRAWN
        store.write([file], tmp_path, changed)
        assert store.read_index(tmp_path)[was] == store.WITHDRAWN
        assert read_renewed(tmp_path) == {right.id: f"{right.id}-{number}"}
        assert store.renew([file], tmp_path) == {}


def test_a_refused_renewal_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    place = tmp_path / "spec" / "vectors"
    place.mkdir(parents=True)
    right, still = VECTORS["mds-encode-example"], VECTORS["mds-encode-small"]
    [file] = [file for file in VECTOR_FILES if right in file.vectors]
    store.write([replace(file, vectors=[right, still])], place)
    before = {path: path.read_bytes() for path in place.iterdir()}
    monkeypatch.setattr(store, "folder", lambda: place)
    monkeypatch.setattr(store, "regenerated", lambda place: [replace(file, vectors=[replace(right, rand={"x": "1"})])])
    assert cli.main(["vectors", "--regenerate", "--renew"]) == 2
    said = f"secagg-spec vectors: the vector '{still.id}' disappeared; an id is permanent\n"
    assert capsys.readouterr() == ("", said)
    assert {path: path.read_bytes() for path in place.iterdir()} == before


def test_an_id_may_be_withdrawn_and_comments_may_change() -> None:
    known = VECTORS["mds-encode-example"]
    assert list(store.index_faults([], {known.id: store.WITHDRAWN})) == []
    other = Vector(**{**vars(known), "comment": "better", "flags": ("Padding",)})
    assert store.digest(other) == store.digest(known)
    assert store.digest(Vector(**{**vars(known), "params": {}})) != store.digest(known)


# ------------------------------------------------------------------------------------------------------ coverage


WITHOUT = (
    *("session.new", "session.step", "session.again", "session.free"),
    *("pair.agree", "pair.seal"),
    *("secagg.average", "secagg.unmasking", "secagg.recovery", "secagg.sum", "secagg.view", "secagg.coalition"),
)
"""A session has no vector, since a vector is one request; the others draw keys in every call."""


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in WITHOUT])
def test_every_operation_has_vectors(operation: str) -> None:
    kinds = {vector.result is not None for vector in VECTORS.values() if vector.operation == operation}
    assert kinds == ({True} if operation == "echo" else {True, False})


NO_VECTOR = {
    "QNT-11": "it is about what an implementation draws itself, which a vector gives",
    "SEA-10": "it is about many payloads together, and a vector is one",
    "SEA-11": "it is about an implementation's own payloads, which no vector foretells",
    "SHM-13": "it is about shares that an implementation draws itself, which no vector foretells",
    **dict.fromkeys(
        ("ADP-41", "ADP-42", "ADP-45", "ADP-47"),
        "any implementation may offer it, with any R, N and t that a vector would fix",
    ),
    **dict.fromkeys(("ADP-43", "ADP-46", "ADP-48"), "it is about many rounds, and a vector is one request"),
    "ADP-02": "a line of 64 MiB does not belong into a file of vectors",
    "ADP-03": "it is about several requests, and a vector is one",
    "ADP-04": "which operations an adapter does not declare is not the same for any two of them",
    "ADP-06": "it is about what an adapter declares, which a vector does not know",
    "ADP-07": "it is about the answer to hello, which is different for each adapter",
    "ADP-08": "it is about two requests, and about the grade seeded, whose results are the implementation's own",
    "ADP-09": "it is about every rejection: that the code is one of the list is judged whenever there is one",
    "ADP-10": "the line is no request, so that it has no operation and no params",
    "ADP-11": "the fault is in the request around params and rand, and a vector has these two alone",
    **dict.fromkeys(
        ("ADP-22", "ADP-23", "ADP-24", "ADP-25", "ADP-26", "ADP-27", "ADP-28", "ADP-29"),
        "it is about sessions, which are several requests",
    ),
    **dict.fromkeys(
        ("ADP-30", "ADP-31", "ADP-32", "ADP-33", "ADP-34"),
        "it is about operations that draw keys in every call, and about results that are right within a bound",
    ),
    **dict.fromkeys(
        ("KEY-05", "KEY-06", "SEA-05", "SEA-06", "SEA-07"),
        "it is about operations that draw keys in every call",
    ),
    "MRA-07": "it is about how often sets are chosen, by an implementation that draws on its own",
    "PRG-04": "it is about how the elements of a stream are distributed, and a vector holds one stream",
    "PRG-05": "it is about the streams of two keys, and a vector holds one",
    "PRG-06": "it is about asking twice, and a vector is asked once",
    "QNT-12": "it is about adapters that take binary32 alone; numbers that binary32 holds stand in vectors of QNT-02",
    "MDS-10": "it is about how the shares of many encodings are distributed, and a vector is one",
    "SHM-12": "it is about how the shares of many sharings are distributed, and a vector is one",
    **dict.fromkeys(
        ("ADP-22", "ADP-23", "ADP-24", "ADP-25", "ADP-26", "ADP-27", "ADP-28", "ADP-29"),
        "it is about sessions, which take several requests, and a vector is one",
    ),
    **dict.fromkeys(
        ("ADP-51", "ADP-52", "ADP-53", "ADP-54", "HSA-29", "LSA-35", "SES-01"),
        "it is about several rounds of a session, which take several requests, and a vector is one",
    ),
    **dict.fromkeys(
        ("ADP-55", "ADP-56"), "it is about values that an adapter gives raw, and a vector holds what the text asks"
    ),
    **dict.fromkeys(
        ("ADP-30", "ADP-31", "ADP-32", "ADP-33", "ADP-34"),
        "it is about rounds whose keys, seeds and order are the implementation's own, so that no result is fixed",
    ),
    **dict.fromkeys(
        ("KEY-05", "KEY-06", "SEA-05", "SEA-06", "SEA-07"),
        "it is about key pairs that are drawn in every call, so that no result is fixed",
    ),
}
"""Clauses that no vector can decide, each with the reason: a vector is one operation, its params and its rand."""


def test_every_clause_that_checks_reach_has_a_vector() -> None:
    reached = {clause for check in CHECKS.values() for clause in check.clauses}
    covered = {clause for vector in VECTORS.values() for clause in vector.clauses}
    assert reached - covered == set(NO_VECTOR)
    assert covered <= set(resources.clauses())


def test_every_flag_and_mutant_is_used_and_known() -> None:
    for file in VECTOR_FILES:
        used = {flag for vector in file.vectors for flag in vector.flags}
        assert used == set(file.flags)
        assert {name for flag in file.flags.values() for name in flag.mutants} <= set(load_mutants())


@pytest.mark.parametrize(
    ("id", "member", "value"),
    [
        ("mds-encode-example", "shares", "0500000003000000"),
        ("field-add-encoding", "value", "0100000002010000"),
        ("dequantize-once", "x", "0100003f"),
        ("sample-field-limit-3", "value", "0200000001000000"),
    ],
)
def test_the_examples_of_the_text_are_among_them(id: str, member: str, value: str) -> None:
    result = VECTORS[id].result
    assert result is not None
    got = result[member]
    assert (got[2] if isinstance(got, list) else got) == value


def test_the_steps_of_a_round_are_listed() -> None:
    steps = VECTORS["round-before-recover"].operations
    assert [step["actor"] for step in steps if step["step"] == "recover"] == [
        "user 0",
        "user 2",
        "user 3",
        "user 4",
        "server",
    ]
    assert all(step["success"] for step in steps)
    failed = VECTORS["round-few-answers"].operations
    assert (failed[-1]["actor"], failed[-1]["step"], failed[-1]["success"]) == ("server", "recover", False)
    assert all(step["success"] for step in failed[:-1])


# -------------------------------------------------------------------------------------------------------- inputs

INPUTS = (
    "a",
    "b",
    "bytes",
    "mask",
    "update",
    "updates",
    "x",
    "value",
    "noise",
    "noises",
    "masks",
    "rounding",
    "held",
    "masked",
    "key",
    "private",
    "secret",
    "sender_key",
    "receiver_key",
    "session",
    "payload",
    "plaintexts",
    "coefficients",
)


NOT_COMPARED = {
    "prg-zero-key": "its key is that of published test cases",
    "script-tiny-user-0": "its noise is two numbers modulo 7, with which other vectors modulo 7 begin",
}
"""Vectors whose inputs need not be different from all others, each with the reason."""


def texts(value: Any) -> Iterator[str]:
    """The strings in a member; of an entry that begins with a user, the last one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value[-1:] if value and isinstance(value[0], int) else value:
            yield from texts(item)


LAST_DRAWN = "quantize-half"
"""The last id of a vector whose inputs were drawn; later ones are the smallest cases that show a bug."""


def random_inputs() -> list[tuple[str, str]]:
    """The inputs that are meant to be random: those that were drawn, of vectors without a flag of edge values."""
    ids = list(store.read_index(store.folder()))
    first = {now: made for made, now in renewed().items()}
    drawn = set(ids[: ids.index(LAST_DRAWN) + 1])
    edge = {
        (file.name, name) for file in VECTOR_FILES for name, flag in file.flags.items() if flag.bug_type == EDGE_CASE
    }
    found = []
    for file in VECTOR_FILES:
        for vector in file.vectors:
            if (
                vector.id in NOT_COMPARED
                or first.get(vector.id, vector.id) not in drawn
                or any((file.name, flag) in edge for flag in vector.flags)
            ):
                continue
            members = {**vector.params, **vector.rand}
            found += [(vector.id, text) for name in INPUTS for text in texts(members.get(name)) if text]
    return found


def run_of(id: str) -> str:
    """The round of a vector that is one party of it, whose session is that of the others; else the id itself."""
    made = {now: first for first, now in renewed().items()}.get(id, id)
    return re.sub("^((?:script|basecagg|basa)-.*)-(user-[0-9]+|server|authority)$", r"\1", made)


def test_no_random_input_is_constant() -> None:
    for id, text in random_inputs():
        entries = {text[at : at + 8] for at in range(0, len(text), 8)}
        assert len(text) <= 8 or len(entries) > 1, f"{id}: {text}"


def test_no_random_input_begins_another() -> None:
    found = sorted({(text, run_of(id)) for id, text in random_inputs()})
    assert len(found) > 600
    for (text, id), (after, other) in pairwise(found):
        assert not after.startswith(text), f"{id} and {other} share an input"


# ------------------------------------------------------------------------------------------------------- command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of a command."""
    code = cli.main(["vectors", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.slow
@pytest.mark.parametrize("target", ["reference", "node"])
def test_independent_implementations_pass_every_vector(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    if target == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    code, out, _ = run(capsys, "--target", target)
    assert code == 0, out
    assert f"{len(VECTORS)} vectors: {len(VECTORS)} passed, 0 failed, 0 not declared" in out


@pytest.mark.slow
def test_the_files_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert all(f"{file.name}.json" in out for file in VECTOR_FILES)
    assert f"{len(VECTORS)} vectors for" in out


def test_a_byte_order_mark_before_a_file_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = store.folder() / "secagg.json"
    marked = tmp_path / "secagg.json"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert run(capsys, "--file", str(marked)) == run(capsys, "--file", str(plain))


@pytest.mark.slow
def test_a_failure_says_what_bug_it_suggests(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with planted("small-set-accepted"):
        wrong = {id: ask(VECTORS[id].operation, VECTORS[id].params) for id in ("aggregate-small-set",)}
    assert "result" in wrong["aggregate-small-set"]
    command = [sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant", "small-set-accepted"]
    code, out, _ = run(capsys, "-k", "aggregate-", "--", *command)
    assert code == 1
    for said in (
        "FAIL     aggregate-small-set   accepted_invalid   [LSA-09]",
        "suggests:  SmallSet (MISSING_STEP): A user helps to recover the sum of T + 1 users, of which T may collude.",
        'answer:    {"result"',
        "expected:  reject with below_threshold or inconsistent_sets",
        "again:     secagg-spec vectors -k aggregate-small-set",
    ):
        assert said in out


@pytest.mark.requirement("CNF-70", "CNF-74")
@pytest.mark.parametrize("which", [["--target", "reference"], ["--", sys.executable, "-c", RIGHT]])
def test_a_failure_of_another_file_is_judged_again_from_this_file(
    which: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = body()
    mine["covers"] = mine["vectors"][0]["comment"] = "a\x1b[31m\nb"
    mine["vectors"][0]["reject"] = ["malformed"]
    path = tmp_path / "my file.json"
    path.write_text(json.dumps(mine), encoding="utf-8")
    code, out, _ = run(capsys, "--file", str(path), "--timeout", "7", *which)
    assert (code, "case:      a\\x1b[31m\\nb\n" in out) == (1, True)
    [line] = re.findall("again: +secagg-spec vectors (.*)", out)
    assert run(capsys, *shlex.split(line)) == (code, out, "")
    assert "a\\x1b[31m\\nb" in run(capsys, "--file", str(path))[1]


@pytest.mark.requirement("ADP-12")
@pytest.mark.parametrize("number", [7, 7.0, True])
def test_a_number_of_a_file_of_vectors_is_sent_as_it_is_written(
    number: object, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = body()
    [vector] = mine["vectors"] = [one for one in mine["vectors"] if "q" in one["params"]][:1]
    vector["params"]["q"], vector["reject"] = number, ["malformed"]
    vector.pop("result", None)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(mine), encoding="utf-8")
    code, out, _ = run(capsys, "--file", str(path), "--target", "reference")
    assert code == 0, out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "verdict"), [("crash", "crash"), ("hang", "timeout"), ("wrong-value", "wrong_value")]
)
def test_an_adapter_that_breaks_fails(capsys: pytest.CaptureFixture[str], fault: str, verdict: str) -> None:
    arguments = ["-k", "field-add-2147483647", "--timeout", "1", "--", sys.executable, FAKE, fault]
    code, out, _ = run(capsys, *arguments)
    assert code == 1
    assert verdict in out


HOSTILE = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    about = {"name": "n\\x1b[2J", "version": "1", "language": "x"}
    hello = {"protocol": [1, 0], "implementation": about, "randomness": "none", "operations": {"field.add": {}}}
    said = {"reject": {"code": "other", "message": "a\\x1b[31m\\r\\nFIXED"}}
    answer = {"result": hello} if request["op"] == "hello" else said
    print(json.dumps({"id": request["id"], **answer}), flush=True)
"""


@pytest.mark.slow
def test_what_an_adapter_says_is_printed_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "-k", "field-add-7", "--", sys.executable, "-c", HOSTILE)
    assert code == 1
    assert all(character.isprintable() or character == "\n" for character in out)
    assert not any(line.startswith("FIXED") for line in out.splitlines())


def test_what_is_not_declared_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "-k", "mds.decode", "--", sys.executable, FAKE, "none")
    assert code == 4
    assert "0 passed, 0 failed" in out


@pytest.mark.slow
def test_several_targets_are_named_by_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "-k", "LSA-02", "--target", "[rn]*e", "--target", "node")
    assert [line.partition(":")[0] for line in out.splitlines() if " passed" in line and line[0] != " "] == [
        "reference",
        "node",
    ]


@pytest.mark.slow
def test_an_adapter_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--", "/nowhere/adapter")[0] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-k", "nothing-like-it"], "no vector has this"),
        (["--target", "nobody"], "the targets are"),
        (["--target", "node", "--", "x"], "not both"),
        (["--regenerate", "-k", "x"], "--regenerate goes with no other option but --renew, and -k is given"),
        (["--timeout", "5"], "--timeout needs --target or the command of an adapter after --"),
        (["--start-timeout", "5", "-k", "x"], "--start-timeout needs --target or the command"),
        (["--renew"], "needs --regenerate"),
    ],
)
def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1


def body(id: str = "aggregate-small-set") -> dict[str, Any]:
    """A small file of vectors."""
    known = VECTORS[id]
    [file] = [file for file in VECTOR_FILES if known in file.vectors]
    small = VectorFile("small", "a small file", {name: file.flags[name] for name in known.flags}, [known])
    parsed: dict[str, Any] = json.loads(store.text_of(small))
    return parsed


def changed(path: str, value: Any, id: str = "aggregate-small-set") -> dict[str, Any]:
    """The small file with one member changed, or taken out."""
    file = body(id)
    *places, last = (int(part) if part.isdecimal() else part for part in path.split("/"))
    inner: Any = file
    for place in places:
        inner = inner[place]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return file


_SCRIPT, _REFUSED = "script-tiny-user-0", "user-upload-first"
BAD = [
    (changed("schema", "secagg-spec-vectors/9"), "vectors/9"),
    (changed("vectors", None), "vectors: is missing"),
    (changed("vectors/0/params", None), "vector 'aggregate-small-set': params: is missing"),
    (changed("vectors/0/extra", 1), "vector 'aggregate-small-set': extra: there is no such field"),
    (changed("vectors/0/id", "Not An Id"), "does not fit the pattern"),
    (changed("vectors/0/operation", "field.divide"), "no operation 'field.divide'"),
    (changed("vectors/0/clauses", ["LSA-99"]), "no clause 'LSA-99'"),
    (changed("vectors/0/flags", ["Nothing"]), "no flag 'Nothing'"),
    (changed("vectors/0/reject", ["no_reason"]), "no reject code 'no_reason'"),
    (changed("vectors/0/reject", None), "must have"),
    (changed("vectors/0/result", {}), "must have"),
    (changed("flags/SmallSet/clause", "XXX-01"), "no clause 'XXX-01'"),
    (changed("vectors", [*body()["vectors"], *body()["vectors"]]), "given to two vectors"),
    (changed("vectors", [3]), "vector number 1: must be of type object"),
    (changed("vectors/0/policy", {"mds.code": "other one"}), "'mds.code' = 'other one': policies are mds.code: "),
    (changed("vectors/0/policy", {"nosuch": "x"}, "form-result"), "policy 'nosuch' = 'x': policies are mds.code: "),
    (changed("vectors/0/result", {}, "form-result"), "vector 'form-result': the result['value']: is missing"),
    (changed("vectors/0/result/zq", 1, "form-result"), "the result['zq']: there is no such field"),
    (changed("vectors/0/result/segment", "xyz", "average-cell-unit"), "the result['segment']: 'xyz' does not fit"),
    (changed("vectors/0/result/steps", None, _SCRIPT), "the result['steps']: is missing"),
    (changed("vectors/0/result/steps/0", [None], _SCRIPT), "the result['steps'][0]: must be of type object"),
    (changed("vectors/0/result/steps/0", {}, _SCRIPT), "the result['steps'][0]: is missing"),
    (changed("vectors/0/result/steps/0/outbox", [0], _SCRIPT), "the result['steps'][0]: "),
    (changed("vectors/0/result/steps/0/reject", [], _REFUSED), "['steps'][0]['reject'] must not be empty"),
    (changed("vectors/0/result/steps/0/reject", ["no"], _REFUSED), "['reject'][0] 'no' is not one of bad_ciphertext, "),
    ([1], "it holds no object; this kit reads objects with the schema 'secagg-spec-vectors/"),
]


@pytest.mark.requirement("CNF-53")
@pytest.mark.parametrize(("content", "said"), BAD, ids=[said for _, said in BAD])
def test_a_bad_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: Any, said: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    code, _, err = run(capsys, "--file", str(path))
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ["{", None, "[" * 100_000])
def test_a_file_that_is_absent_or_no_json_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "bad.json"
    if text:
        path.write_text(text, encoding="utf-8")
    code, _, err = run(capsys, "--file", str(path))
    assert code == 2
    assert len(err.strip().splitlines()) == 1


@pytest.mark.slow
def test_another_file_is_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(body()), encoding="utf-8")
    code, out, _ = run(capsys, "--file", str(path), "--target", "reference")
    assert code == 0
    assert "1 vector: 1 passed" in out


@pytest.mark.parametrize("lost", ["operation", "clauses", "comment"])
def test_a_file_of_the_kit_that_cannot_be_read_is_held_to_the_schema(tmp_path: Path, lost: str) -> None:
    broken = body()
    del broken["vectors"][0][lost]
    path = tmp_path / "own.json"
    path.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(UsageError, match=lost):
        store.load(path, validated=False)


def test_one_id_in_two_files_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(body()), encoding="utf-8")
    with pytest.raises(UsageError, match=r"stands in one\.json too"):
        store.load_all(tmp_path)
