"""Scripts and the operations of keys, sealing and messages: what the reference's adapter makes of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.checks import REGISTRY, scripts
from secagg_spec.conformance.checks.base import CheckFailed
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.running.runner import Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, Adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.crypto import keys
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import WeakKey
from secagg_spec.protocols.lightsecagg.round import PRESETS
from tests.quick import WHOLE, one_in, part

pytestmark = pytest.mark.usefixtures("unshrunk")

TINY = {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3}
SESSION = {**TINY, "session": "00" * 16, "round": "4294967295"}
PRIVATE = [bytes([user + 1]) * 32 for user in range(5)]
ROSTER = [keys.public_key(private).hex() for private in PRIVATE]
OPERATION_PREFIXES = (
    "prg.",
    "key.",
    "seal.",
    "message.",
    "lightsecagg.user",
    "lightsecagg.server",
    "signature.",
    "lightsecagg_active.",
)
NEW = [check for check in REGISTRY.values() if check.operations and check.operations[0].startswith(OPERATION_PREFIXES)]


def ask(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer of the reference's adapter."""
    return reference.build().answer({"id": 1, "op": op, "params": params, "rand": rand or {}})


def steps(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the entries of a script."""
    entries: list[dict[str, Any]] = ask(op, params, rand)["result"]["steps"]
    return entries


def step(phase: str, inbox: list[str]) -> dict[str, Any]:
    """Return a step as it stands in a request."""
    return {"phase": phase, "inbox": inbox}


def update(user: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the update of a user."""
    return np.array([user, 2 * user, 6], dtype=np.uint64) % np.uint64(7)


def user_script(user: int, script: list[dict[str, Any]], *, sealed: bool = True) -> list[dict[str, Any]]:
    """Return the entries of a user whose mask and noise its number determines."""
    channel = {"private": PRIVATE[user].hex(), "roster": ROSTER} if sealed else "plain"
    params = {**SESSION, "user": user, "channel": channel, "update": pack(update(user)), "steps": script}
    source = SeededSource(b"test", str(user))
    field = PRESETS["tiny"].field
    rand = {name: pack(draw_elements(source, field, (n,))) for name, n in (("mask", 3), ("noise", 2))}
    return steps("lightsecagg.user", params, rand)


def addressed(message: str, user: int) -> bool:
    """Return whether a message has a user as its receiver."""
    return int.from_bytes(bytes.fromhex(message)[26:30], "little") == user


@pytest.mark.requirement("LSA-05", "LSA-06", "LSA-13", "LSA-18", "MSG-01", "ADP-20")
@pytest.mark.parametrize("sealed", [True, False])
def test_scripts_of_all_parties_make_a_round(sealed: bool) -> None:
    shared = [m for user in range(5) for m in user_script(user, [step("share", [])], sealed=sealed)[0]["outbox"]]
    relayed = steps("lightsecagg.server", {**SESSION, "steps": [step("share", shared)]})[0]["outbox"]
    assert sorted(relayed) == sorted(shared)
    scripts = [[step("share", []), step("upload", [m for m in relayed if addressed(m, user)])] for user in range(5)]
    uploads = [user_script(user, scripts[user], sealed=sealed)[1]["outbox"][0] for user in (0, 1, 3, 4)]
    server = [step("share", shared), step("upload", uploads)]
    announced = steps("lightsecagg.server", {**SESSION, "steps": server})[1]["outbox"]
    assert len(announced) == 4
    answers = []
    for user in (1, 3, 4):
        script = [*scripts[user], step("recover", [m for m in announced if addressed(m, user)])]
        answers += user_script(user, script, sealed=sealed)[2]["outbox"]
    entries = steps("lightsecagg.server", {**SESSION, "steps": [*server, step("recover", answers)]})
    want = PRESETS["tiny"].field.sum(np.stack([update(user) for user in (0, 1, 3, 4)]))
    assert entries[2] == {"outbox": [], "aggregate": pack(want)}


SIGNING = [bytes([user + 101]) * 32 for user in range(5)]
VERIFICATION = [verification_key(private).hex() for private in SIGNING]
ACTIVE = {**SESSION, "W": 4}


def active_script(user: int, script: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a user of the active profile."""
    keys_of_user = {"private": PRIVATE[user].hex(), "signing": SIGNING[user].hex()}
    rosters = {"roster": ROSTER, "verification": VERIFICATION}
    params = {**ACTIVE, **keys_of_user, **rosters, "user": user, "update": pack(update(user)), "steps": script}
    source = SeededSource(b"test", str(user))
    field = PRESETS["tiny"].field
    rand = {name: pack(draw_elements(source, field, (n,))) for name, n in (("mask", 3), ("noise", 2))}
    return steps("lightsecagg_active.user", params, rand)


def active_server(script: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of the server of the active profile."""
    return steps(
        "lightsecagg_active.server", {**ACTIVE, "roster": ROSTER, "verification": VERIFICATION, "steps": script}
    )


@pytest.mark.requirement("LSA-21", "LSA-25", "LSA-26", "LSA-30", "LSA-31", "ADP-20")
def test_scripts_of_the_active_profile_make_a_round() -> None:
    """User 2 leaves before its upload, and user 0 before its answer."""
    shared = [m for user in range(5) for m in active_script(user, [step("share", [])])[0]["outbox"]]
    server = [step("share", shared)]
    scripts = {user: [step("share", [])] for user in range(5)}
    for phase, present in (("upload", (0, 1, 3, 4)), ("confirm", (0, 1, 3, 4)), ("recover", (1, 3, 4))):
        relayed = active_server(server)[-1]["outbox"]
        sent = []
        for user in present:
            scripts[user].append(step(phase, [m for m in relayed if addressed(m, user)]))
            sent += active_script(user, scripts[user])[-1]["outbox"]
        server.append(step(phase, sent))
    want = PRESETS["tiny"].field.sum(np.stack([update(user) for user in (0, 1, 3, 4)]))
    assert active_server(server)[3] == {"outbox": [], "aggregate": pack(want)}


@pytest.mark.requirement("SIG-01", "SIG-02")
def test_what_is_signed_verifies_and_nothing_else_does() -> None:
    fields = {
        "protocol": "lightsecagg-active",
        "parameters": [["q", "7"]],
        "session": "00" * 16,
        "round": "1",
        "purpose": "surviving-set",
        "type": 261,
        "signer": 2,
        "content": ["00000000"],
    }
    signed = ask("signature.sign", {**fields, "private": SIGNING[2].hex()})["result"]
    request = {**fields, "public": VERIFICATION[2], "signature": signed["signature"]}
    assert ask("signature.verify", request)["result"] == {}
    assert ask("signature.verify", {**request, "signer": 1})["reject"]["code"] == "bad_signature"
    assert ask("signature.verify", {**request, "session": "00"})["reject"]["code"] == "length_mismatch"


@pytest.mark.requirement("SEA-02", "ADP-21", "ERR-01")
def test_a_refused_step_names_the_parties_and_leaves_no_trace() -> None:
    shares = [user_script(user, [step("share", [])])[0]["outbox"] for user in range(5)]
    right = step("upload", [m for sent in shares[1:] for m in sent if addressed(m, 0)])
    altered = right["inbox"][0][:-2] + ("00" if right["inbox"][0][-2:] != "00" else "01")
    wrong = step("upload", [altered, *right["inbox"][1:]])
    entries = user_script(0, [step("share", []), wrong, right, right])
    assert entries[1]["reject"]["code"] == "bad_ciphertext"
    assert entries[1]["reject"]["blamed"] == [1, "server"]
    assert entries[2] == user_script(0, [step("share", []), right])[1]
    assert entries[3]["reject"]["code"] == "replay"


@pytest.mark.requirement("ERR-01", "KEY-01")
def test_a_weak_key_of_the_last_user_leaves_no_payload_sealed() -> None:
    context = Context("lightsecagg", bytes(32), bytes(16), 0, 257)
    public = [bytes.fromhex(key) for key in ROSTER[:2]]
    own = SealedChannel(context, PRIVATE[0], keys.Roster((*public, bytes(32))))
    for _ in range(2):
        with pytest.raises(WeakKey):
            own.close(0, 1, b"a share")


VALID: dict[str, dict[str, Any]] = {
    "prg.expand": {"q": "7", "key": "00" * 32, "n": 3},
    "key.agree": {"private": "01" * 32, "public": ROSTER[1]},
    "key.derive": {
        "protocol": "lightsecagg",
        "parameters": [["q", "7"]],
        "secret": "01" * 32,
        "session": "00" * 16,
        "round": "0",
        "sender": 0,
        "receiver": 1,
        "sender_key": ROSTER[0],
        "receiver_key": ROSTER[1],
    },
    "seal.close": {
        **SESSION,
        "sender": 0,
        "private": PRIVATE[0].hex(),
        "roster": ROSTER,
        "type": 257,
        "plaintexts": [[1, "00"]],
    },
    "message.encode": {
        "type": 259,
        "session": "00" * 16,
        "round": "0",
        "sender": "server",
        "receiver": 0,
        "fields": {"users": [0, 1]},
    },
    "message.decode": {"type": 259, "bytes": "0301" + "00" * 28 + "00000000"},
    "lightsecagg.server": {**SESSION, "steps": [step("share", [])]},
}


@pytest.mark.parametrize("op", VALID)
def test_the_requests_that_are_changed_below_are_valid(op: str) -> None:
    assert "result" in ask(op, VALID[op])


@pytest.mark.requirement("ADP-05")
@pytest.mark.parametrize(
    ("op", "changed", "code"),
    [
        ("prg.expand", {"n": "3"}, "malformed"),
        ("prg.expand", {"n": -1}, "bad_param"),
        ("prg.expand", {"key": 5}, "malformed"),
        ("key.derive", {"parameters": {"q": "7"}}, "malformed"),
        ("key.derive", {"protocol": "é"}, "malformed"),
        ("key.derive", {"round": "4294967296"}, "out_of_range"),
        ("key.derive", {"round": 1}, "malformed"),
        ("seal.close", {"plaintexts": [1]}, "malformed"),
        ("seal.close", {"roster": ROSTER[:4]}, "length_mismatch"),
        ("seal.close", {"type": 65536}, "bad_param"),
        ("message.encode", {"type": 1}, "bad_param"),
        ("message.encode", {"sender": "nobody"}, "malformed"),
        ("message.encode", {"fields": {"users": "00"}}, "malformed"),
        ("message.decode", {"bytes": "03"}, "malformed"),
        ("message.decode", {"bytes": "0301" + "00" * 20 + "000000f0" + "00" * 8}, "malformed"),
        ("lightsecagg.server", {"steps": {}}, "malformed"),
        ("lightsecagg.server", {"steps": [{"phase": "share"}]}, "malformed"),
        ("lightsecagg.server", {"steps": [step("sleep", [])]}, "malformed"),
        ("lightsecagg.server", {"steps": [step("share", ["zz"])]}, "malformed"),
        ("lightsecagg.server", {"session": "00"}, "length_mismatch"),
    ],
)
def test_a_request_of_another_form_is_refused(op: str, changed: dict[str, Any], code: str) -> None:
    assert ask(op, {**VALID[op], **changed})["reject"]["code"] == code


# ------------------------------------------------------------------------------------------------ other grades


@pytest.mark.parametrize("text", ["AB", "a b ", "abc", None])
def test_a_message_of_a_step_is_bytes_as_the_text_writes_them(text: Any) -> None:
    with pytest.raises(CheckFailed, match="a message of the step upload is not bytes") as failed:
        scripts.taken("lightsecagg.user", {"outbox": [text]}, "upload")
    assert failed.value.verdict == "protocol"


def with_own_randomness(grade: str) -> Adapter:
    """Return the reference as an adapter that draws by itself what users sample."""
    explicit = reference.build()
    adapter = Adapter("draws by itself", "1", randomness=grade)
    for name in (name for name in OPERATIONS if name.startswith(OPERATION_PREFIXES)):
        adapter.operation(name)(_drawing(explicit, name) if OPERATIONS[name][1] else explicit._handlers[name])
    return adapter


def _drawing(explicit: Adapter, name: str) -> Callable[..., dict[str, Any]]:
    own = (number.to_bytes(8, "little") for number in count())

    def call(rand: dict[str, str], **params: Any) -> dict[str, Any]:
        source = SeededSource(bytes.fromhex(rand["seed"]) if rand else next(own), "user")
        numbers = {key: int(params[key]) for key in ("q", "N", "D", "U", "T", "d")}
        if min(numbers.values()) < 0 or numbers["U"] <= numbers["T"] or numbers["q"] < 2:
            return explicit._handlers[name](**params, rand={"mask": "", "noise": ""})
        field = PRESETS["tiny"].field if numbers["q"] == 7 else Ring(min(numbers["q"], 2**32))
        count = numbers["T"] * -(-numbers["d"] // (numbers["U"] - numbers["T"]))
        drawn = {"mask": draw_elements(source, field, (numbers["d"],)), "noise": draw_elements(source, field, (count,))}
        return explicit._handlers[name](**params, rand={key: pack(value) for key, value in drawn.items()})

    return call


@pytest.mark.slow
@pytest.mark.parametrize("grade", part(2, ["seeded", "none"]))
def test_a_user_that_draws_by_itself_passes_by_relation(grade: str) -> None:
    settings = Settings(cases=12 if WHOLE else 3, seed=5, pattern=None if WHOLE else "lightsecagg*.user")
    _, outcomes = run(DirectConnection(with_own_randomness(grade).answer), settings)
    assert [f"{o.check.id}: {o.failure.message}" for o in outcomes if o.failure] == []
    by_relation = {outcome.check.id for outcome in outcomes if outcome.by_relation}
    assert {"lightsecagg.user/exact", "lightsecagg.user/sealed", "lightsecagg.user/refused-step"} <= by_relation
    assert {"lightsecagg_active.user/exact", "lightsecagg_active.user/left-out"} <= by_relation


RELATIONS = [
    ("mask-is-subtracted", "lightsecagg.user/exact"),
    ("sums-all-shares", "lightsecagg.user/exact"),
    ("second-share-released", "lightsecagg.user/another-set"),
    ("refused-upload-counts", "lightsecagg.user/refused-step"),
    ("sealing-without-length", "lightsecagg.user/sealed"),
    ("mask-is-subtracted", "lightsecagg_active.user/exact"),
    ("signs-twice", "lightsecagg_active.user/another-set"),
    ("quorum-one-short", "lightsecagg_active.user/few-signers"),
]


@pytest.mark.parametrize("planted", one_in(3, RELATIONS), ids=" ".join)
def test_relations_find_planted_bugs(planted: tuple[str, str]) -> None:
    name, check = planted
    adapter = with_own_randomness("seeded")

    def answer(request: Any) -> dict[str, Any]:
        """Answer as the mutant; what the check compares with is the reference."""
        with mutants.planted(name):
            return adapter.answer(request)

    connection = DirectConnection(answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    assert run_check(connection, caps, REGISTRY[check], Settings(cases=60)).failure


@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize("right", [True, False])
def test_the_generator_is_held_to_its_stream_outside_the_declared_range(right: bool) -> None:
    adapter = Adapter("narrow", "1")
    handler = reference.build()._handlers["prg.expand"] if right else lambda q, key, n: {"value": "00000000" * n}
    adapter.operation("prg.expand", ranges={"q": {"values": ["7"]}})(handler)
    settings = Settings(cases=20, pattern="prg.expand/outside-range")
    _, [outcome] = run(DirectConnection(adapter.answer), settings)
    assert outcome.verdict == ("pass" if right else "wrong_value")
