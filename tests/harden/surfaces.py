"""Every place where the project reads what others wrote: right inputs to spoil, and the errors that it documents."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec import cli, events, history
from secagg_spec.arithmetic import staleness
from secagg_spec.conformance.adapter import wire
from secagg_spec.conformance.adapter.capabilities import shake_hands
from secagg_spec.conformance.reports import document
from secagg_spec.conformance.running import expectations, repros
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference import messages
from secagg_spec.conformance.vectors import store
from secagg_spec.crypto import access_tree
from secagg_spec.crypto.attribute_keys import MasterKey, PublicKey, SecretKey, issue, setup
from secagg_spec.crypto.reader import Reader
from secagg_spec.errors import ParameterError, ProtocolError, UsageError
from secagg_spec.experiments import figures, results
from secagg_spec.learning import digits
from secagg_spec.protocols import begun, codec
from secagg_spec.protocols.basa import store as basa_store
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import store as basecagg_store
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.steps import SERVER
from secagg_spec.resources import root
from secagg_spec.selection import logs
from secagg_spec.traces import files, rounds
from tests.experiments.test_results import document as document_of_toy
from tests.protocols.basa_calls import stored_parts
from tests.protocols.test_basecagg_active import ROSTER
from tests.protocols.test_basecagg_active import announced as announced_active
from tests.protocols.test_basecagg_store import announced
from tests.protocols.test_fedbuff import TINY as AVERAGED
from tests.protocols.test_fedbuff import server as averaging
from tests.traces import recorded

DOCUMENTED = (ParameterError, ProtocolError, UsageError)


@dataclass(frozen=True)
class Surface:
    """A place that reads from outside.

    `read` raises one of `errors` for an input that it refuses; what else it raises is a defect. `seeds` are right
    inputs.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    errors: tuple[type[Exception], ...] = DOCUMENTED


def _checked_trace(path: Path) -> object:
    return [each.finding for each in rounds.check(files.read(path, rounds.PROTOCOLS))]


def _traces() -> list[bytes]:
    """Return an honest round of each protocol."""
    each = (recorded.run(name).lines for name in recorded.PARAMETERS)
    return ["".join(json.dumps(line) + "\n" for line in lines).encode("ascii") for lines in each]


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="harden-"))


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Return a reader of bytes from one of files: the bytes are written to a file first."""

    def through(data: bytes) -> object:
        path = _folder() / name
        path.write_bytes(data)
        return read(path)

    return through


def _load_repro(path: Path) -> object:
    """Load what is expected of a stored failure, beside no requests, with the seal of both where it holds an object."""
    path.with_name("repro.jsonl").write_bytes(b"")
    with contextlib.suppress(ValueError, RecursionError):
        body = json.loads(path.read_bytes())
        if isinstance(body, dict) and isinstance(body.get("seal"), str):
            path.write_text(json.dumps({**body, "seal": repros.seal(b"", body)}))
    return repros.load(path)


def _json(restore: Callable[[Any], object]) -> Callable[[bytes], object]:
    """Return a reader of bytes from one of data that was stored as JSON; text that is no JSON never reaches it."""

    def through(data: bytes) -> object:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"no JSON: {error}") from None
        return restore(value)

    return through


def _same(write: Callable[[Any], bytes], read: Callable[[bytes], Any]) -> Callable[[bytes], object]:
    """Return a reader that also holds: what was read is written as the same bytes."""

    def through(data: bytes) -> object:
        value = read(data)
        assert write(value) == data, "what was read is written as other bytes"
        return value

    return through


# -------------------------------------------------------------------------------------------------------- seeds


@cache
def vectors() -> Sequence[Any]:
    """The vectors of the text."""
    return [vector for file in store.load_all() for vector in file.vectors]


def _requests(at_most: int = 3000) -> Sequence[bytes]:
    """The requests of the vectors, those of few bytes."""
    lines = [
        json.dumps({"id": 1, "op": one.operation, "params": one.params, "rand": one.rand}).encode() for one in vectors()
    ]
    return [line for line in lines if len(line) <= at_most]


def _messages() -> Sequence[bytes]:
    return [bytes.fromhex(one.params["bytes"]) for one in vectors() if one.operation == "message.decode" and one.result]


def _text(*names: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [(root("spec") / name).read_bytes() for name in names]


def _cut(name: str, at: int) -> Callable[[], Sequence[bytes]]:
    """A vector file with its first vectors only, so that an input is read within a millisecond."""

    def seeds() -> Sequence[bytes]:
        content = json.loads((store.folder() / name).read_text(encoding="utf-8"))
        return [json.dumps({**content, "vectors": content["vectors"][:at]}).encode()]

    return seeds


def _as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _stored(name: str) -> Callable[[], Sequence[bytes]]:
    """The stored state of a party of BASA in the middle of an epoch."""
    return lambda: [_as_json(arguments["data"]) for one, (_, arguments, _, _) in stored_parts() if one == name]


def _buffered_active() -> Sequence[bytes]:
    return [_as_json(basecagg_active.store(scene.network.states[SERVER])) for scene in (announced_active(),)]


def _buffered() -> Sequence[bytes]:
    return [_as_json(fedbuff.store(averaging(AVERAGED, 2, (0, 1))))]


@cache
def _keys() -> tuple[bytes, bytes, bytes]:
    """A public key, a master key and a secret key of encryption by attributes."""
    public, master = setup(alpha=3**150, beta=5**100)
    key = issue(master, [b"a", b"b"], key_blinding=7, attribute_blindings={b"a": 11, b"b": 13})
    return public.to_bytes(), master.to_bytes(), key.to_bytes()


def _trees() -> Sequence[bytes]:
    tree = access_tree.all_of(b"a", access_tree.any_of(b"b", b"c"))
    return [access_tree.tree_bytes(tree), access_tree.tree_bytes(access_tree.Leaf(b"a"))]


def _hello() -> Sequence[bytes]:
    return [_as_json(reference.build().hello), _as_json({**reference.build().hello, "operations": {"echo": {}}})]


def _repros() -> Sequence[bytes]:
    stored = {"schema": repros.SCHEMA, "check": "field.add/exact", "message": "m", "draws": [{"bytes": "00"}, 1]}
    return [_as_json({**stored, "seal": ""})]


def _expectations() -> Sequence[bytes]:
    return [b'[[expect]]\ntarget = "node"\nchecks = "field.add/*"\nverdict = "crash"\nreason = "known"\n']


def _history() -> Sequence[bytes]:
    lines = (root("spec") / "history.toml").read_text(encoding="utf-8").splitlines()
    return ["\n".join([*lines[:12], *lines[-2:]]).encode()]


@cache
def _report() -> Sequence[bytes]:
    path = _folder() / "of-reference.json"
    run_command(["conform", "--target", "reference", "-k", "field.add", "--budget", "60", "--json", str(path)])
    return [path.read_bytes()]


def _results_of_experiments() -> Sequence[bytes]:
    return [_as_json(document_of_toy())]


def _idx() -> Sequence[bytes]:
    shapes = ((2, 3, 3), (1, 2, 2))
    return [
        gzip.compress(bytes((0, 0, 8, 3)) + np.array(shape, ">u4").tobytes() + bytes(int(np.prod(shape))))
        for shape in shapes
    ]


def _logs() -> Sequence[bytes]:
    return (
        b"round,users\n0,0 1 2\n1,1 2 3\n2,0 3\n",
        b"round,user\n0,anna\n0,bert\n1,anna\n",
        b"round,segment,users\n0,0,0 1\n0,1,2 3\n1,0,0 2\n1,1,1 3\n",
        _as_json({"users": 4, "rounds": [[0, 1, 2], [1, 2, 3]]}),
    )


def _answers() -> Sequence[bytes]:
    lines = [
        {"id": 1, "result": {"sum": "0100000002000000"}},
        {"id": 1, "error": {"code": "malformed", "message": "no"}},
        {"id": 1, "reject": {"code": "replay", "message": "again", "blamed": [1, 2]}},
        {"id": 1, "unsupported": True},
    ]
    return [json.dumps(line).encode() + b"\n" for line in lines]


# ------------------------------------------------------------------------------------------------------- readers


def _answer_request() -> Callable[[bytes], object]:
    """Return the reference as an adapter: whatever the line, it answers with one of the four kinds (ADP-10)."""
    adapter = reference.build()

    def through(line: bytes) -> object:
        answer = adapter.answer(secagg_adapter._parse(line))
        json.dumps(answer, allow_nan=False)
        assert len({"result", "reject", "error", "unsupported"} & set(answer)) == 1, f"no answer: {answer}"
        assert "internal" not in str(answer.get("error", "")), f"an internal error: {answer}"
        return answer

    return through


def _hands(data: bytes) -> object:
    """Read the answer to hello, as from an adapter's line."""
    return shake_hands(wire.parse_answer(b'{"id": 1, "result": ' + data + b"}\n", 1))


def _reader(read: Callable[[Reader], object]) -> Callable[[bytes], object]:
    def through(data: bytes) -> object:
        reader = Reader("data", data)
        value = read(reader)
        reader.end()
        return value

    return through


def run_command(words: Sequence[str]) -> object:
    """Run a command: its code is 0, 1 or 2, and with 2 it says why in one line and prints nothing else."""
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            code = cli.main(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    assert code in (0, 1, 2), f"code {code}"
    lines = said.getvalue().splitlines()
    assert code != 2 or len(lines) == 1, f"{len(lines)} lines for a refusal"
    assert "Traceback" not in said.getvalue()
    return code


def _command(data: bytes) -> object:
    """Run a command of words that blanks part; what would write, run for minutes or start others is left out."""
    words = data.decode("utf-8", "surrogateescape").replace("\0", "").split(" ")
    if words[0] not in _SAFE or any(word.startswith(_WRITES) for word in words):
        return None
    return run_command(words)


_WRITES = (
    "--out", "--log", "--write", "--store", "--regenerate", "--trace", "--csv", "--save", "--record",
    "--svg", "--json", "--html", "--junit", "--repro",
)  # fmt: skip
COMMANDS = (
    "simulate lightsecagg --users 6 --seed 1",
    "simulate secagg --drop masked_input:2 --seed 3",
    "simulate heterosag --preset tiny",
    "simulate basecagg --rounds 1",
    "simulate basa --buffer 6",
    "segments --groups 5",
    "explain LSA-09",
    "claims HET-THM1",
    "plan --users 100 --dimension 1e4 --dropout 0.1 --colluders 0.2",
    "privacy lightsecagg --preset tiny",
    "selection --users 12 --per-round 4 --privacy 2 --rounds 5",
)
_SAFE = {command.split(" ")[0] for command in COMMANDS}

SURFACES = {
    surface.name: surface
    for surface in (
        Surface("message", _same(codec.encode, messages.parse), _messages),
        Surface(
            "vector in a message",
            _same(codec.vector_bytes, codec.vector_from_bytes),
            lambda: [codec.vector_bytes(np.arange(n, dtype=np.uint64)) for n in (0, 3)],
        ),
        Surface("request to an adapter", _answer_request(), _requests),
        Surface(
            "answer of an adapter",
            lambda line: wire.parse_answer(line.rstrip(b"\n") + b"\n", 1),
            _answers,
            (wire.AdapterBroken,),
        ),
        Surface("hello", _hands, _hello, (wire.AdapterUnusable, wire.AdapterBroken)),
        Surface("vector file", _file("vectors.json", store.load), _cut("shamir.json", 2)),
        Surface("repro", _file("repro.expected.json", _load_repro), _repros),
        Surface("expectations", _file("expectations.toml", expectations.load), _expectations),
        Surface("report", _file("report.json", document.load), _report),
        Surface("history", _file("history.toml", history.read), _history, (*DOCUMENTED, history.HistoryError)),
        Surface("participation log", _file("log", logs.read), _logs),
        Surface("trace", _file("trace", _checked_trace), _traces),
        Surface("roster", _file("roster.txt", logs.read_roster), lambda: [b"anna\nbert\n\ncarl\n"]),
        Surface(
            "schedule",
            lambda data: events.from_csv(data.decode("utf-8", "replace"), 3),
            lambda: [b"time,kind,user\n0.5,download,0\n1.5,upload,0\n"],
        ),
        Surface(
            "staleness",
            lambda data: staleness.read("s", data.decode("utf-8", "replace")),
            lambda: [b"constant", b"polynomial:1/2", b"hinge:1/2,4"],
        ),
        Surface("images", lambda data: digits.bytes_of_idx(data, 3, "images"), _idx),
        Surface("server of BASA", _json(basa_store.restore_server), _stored("restore_server")),
        Surface("authority of BASA", _json(basa_store.restore_authority), _stored("restore_authority")),
        Surface("user of BASA", _json(basa_store.restore_user), _stored("restore_user")),
        Surface("server of BASecAgg", _json(basecagg_store.restore), lambda: [_as_json(announced())]),
        Surface(
            "server of BASecAgg, active", _json(lambda data: basecagg_active.restore(data, ROSTER)), _buffered_active
        ),
        Surface("server of FedBuff", _json(fedbuff.restore), _buffered),
        Surface("rounds begun", _json(begun.restore), lambda: [_as_json({"00" * 16: 3, "ff" * 16: 0})]),
        Surface("public key of ABE", _same(PublicKey.to_bytes, PublicKey.from_bytes), lambda: [_keys()[0]]),
        Surface("master key of ABE", _same(MasterKey.to_bytes, MasterKey.from_bytes), lambda: [_keys()[1]]),
        Surface("secret key of ABE", _same(SecretKey.to_bytes, SecretKey.from_bytes), lambda: [_keys()[2]]),
        Surface("access tree", _same(access_tree.tree_bytes, _reader(access_tree.read_tree)), _trees),
        Surface("results of experiments", _file("results.json", results.read), _results_of_experiments),
        Surface("figures", _file("figures.toml", figures.load), _text("figures.toml")),
        Surface("command line", _command, lambda: [command.encode() for command in COMMANDS]),
    )
}
