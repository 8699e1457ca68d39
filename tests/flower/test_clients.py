"""A client takes part in what it accepts, once, whatever the server asks and whatever state it is given back."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg_spec.flower
from secagg_spec import errors
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.flower import plan as plans
from secagg_spec.flower.client import JOIN, Client, Policy
from secagg_spec.flower.journal import FileJournal, Journal, MemoryJournal
from secagg_spec.flower.kinds import KINDS
from secagg_spec.flower.packing import pack, unpack
from secagg_spec.flower.plan import Packet, Plan
from secagg_spec.protocols import codec
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from tests.flower.parties import SETTINGS, Engine, Node, signing_key
from tests.flower.test_rounds import FAULTS, changed, engine_phase

NAMES = sorted(SETTINGS)
ASKED = [fault for fault in FAULTS if fault not in ("lost", "refused", "twice")]


def refuses(node: Node, packet: Packet, *kinds: type[Exception]) -> None:
    """A packet is refused: the memory and the journal stay, and the reply says the code alone."""
    taken, memory = set(node.journal.taken), list(node.kept[-1])
    handled = node.handle(packet)
    assert isinstance(handled.refused, kinds or (errors.ProtocolError, errors.ParameterError))
    assert set(handled.reply) == {"version", "refused"}
    assert (list(handled.memory), node.journal.taken) == (memory, taken)


class Stop(Exception):
    """The round stands where a test wants it."""


def up_to(name: str, phase: str, at: int = 3) -> tuple[Engine, Node, Packet]:
    """An engine in the middle of a round, and a node with the packet that it is about to answer."""
    found: list[Packet] = []

    def stop(packet: Packet) -> Packet:
        found.append(packet)
        raise Stop

    engine = Engine(name, 6, asked={(phase, at): stop})
    with pytest.raises(Stop):
        engine.run()
    return engine, list(engine.nodes.values())[at], found[0]


def all_phases() -> list[tuple[str, str]]:
    """Each protocol with each of its phases."""
    return [(name, phase) for name in NAMES for phase in Engine(name, 6).phases]


@pytest.mark.requirement("FLW-03", "FLW-08", "ERR-01", "MSG-02", "MSG-03")
@pytest.mark.parametrize(("name", "phase"), all_phases())
def test_bad_packets_are_refused_and_the_right_one_is_still_answered(name: str, phase: str) -> None:
    _, node, packet = up_to(name, phase)
    for fault in ASKED:
        bad = FAULTS[fault](packet)
        assert bad is not None
        refuses(node, bad)
    assert node.handle(packet).refused is None


@pytest.mark.requirement("FLW-09", "FLW-03")
@pytest.mark.parametrize(
    "packet", [{}, {"version": 2}, {"version": 2, "phase": None}, {"version": 2, "phase": []}, {"version": 2.0}]
)
def test_a_packet_that_is_none_gets_no_training(packet: Packet) -> None:
    _, node, _ = up_to("secagg", "masked_input")
    refuses(node, packet)
    assert node.inputs == []


@pytest.mark.requirement("FLW-06", "FLW-07", "SES-01", "SES-02", "SES-03")
@pytest.mark.parametrize("name", NAMES)
def test_no_step_is_taken_twice_on_any_copy_of_the_state(name: str) -> None:
    engine = Engine(name, 6)
    assert engine.run() is not None
    node = engine.nodes[121]
    for packet in [packet for _, number, packet in engine.packets if number == node.number]:
        for memory in node.kept:
            handled = node.handle(packet, memory)
            assert isinstance(handled.refused, errors.Replay)
            assert handled.memory is memory
    assert len(node.inputs) == 1


@pytest.mark.requirement("FLW-07", "SES-03")
@pytest.mark.parametrize(("name", "phase"), all_phases())
def test_a_client_that_is_killed_before_its_state_is_kept_finishes_nothing_of_that_step(name: str, phase: str) -> None:
    _, node, packet = up_to(name, phase)
    first = node.handle(packet)
    assert first.refused is None
    again = node.handle(packet)  # on the old copy: the engine lost the new one
    assert isinstance(again.refused, errors.Replay)
    assert again.reply == {"version": 2, "refused": "replay"}


@pytest.mark.parametrize(("name", "phase"), all_phases())
def test_a_client_that_lost_its_state_goes_no_further(name: str, phase: str) -> None:
    engine, node, packet = up_to(name, phase)
    if phase == engine.phases[0]:
        return
    assert isinstance(node.handle(packet, []).refused, errors.WrongPhase)


def damages(memory: Sequence[bytes]) -> Iterator[list[bytes]]:
    """What is kept, with a part gone, doubled, cut or longer, or with one bit changed; and what was never kept."""
    yield from ([b""], [b"{}"], [bytes(32), b"{}"], [b"\xff" * 40, b"[1]", b""])
    for at, part in enumerate(memory):
        middle = len(part) // 2
        bit = [part[:middle] + bytes([part[middle] ^ 1]) + part[middle + 1 :]] if part else []
        for parts in ([], [part, part], [part[:-1]] if part else [], [part + b"\0"], bit):
            if parts or at:
                yield [*memory[:at], *parts, *memory[at + 1 :]]


def layouts(memory: Sequence[bytes]) -> Iterator[list[bytes]]:
    """What another version may have kept: another tree, or one without a name."""
    yield from map(pack, (None, [1], "x", {}))
    known = unpack(memory) if memory else {}
    state = known.get("state", {})
    yield from (pack({name: known[name] for name in known if name != left_out}) for left_out in known)
    for left_out in state:
        yield pack({**known, "state": {name: state[name] for name in state if name != left_out}})


@pytest.mark.requirement("FLW-26")
@pytest.mark.parametrize(("name", "phase"), all_phases())
def test_a_damaged_state_is_a_lost_one(name: str, phase: str) -> None:
    _, node, packet = up_to(name, phase)

    def ends(memory: Sequence[bytes]) -> tuple[type, str, tuple[str, ...]]:
        handled = replace(node, journal=MemoryJournal(set(node.journal.taken)), inputs=[]).handle(packet, memory)
        return type(handled.refused), repr(handled.refused), tuple(handled.reply)

    lost = ends([])
    assert {ends(memory) for changed in (damages, layouts) for memory in changed(node.kept[-1])} == {lost}
    assert (lost == ends(node.kept[-1])) == (node.kept[-1] == [] or phase == "join")


def asked(packet: Packet, kind: Any, **entries: Any) -> Packet:
    """A request with other sets of users."""
    message = codec.decode(kind, packet["messages"][0])
    return {**packet, "messages": [codec.encode(replace(message, **entries))]}


REQUESTS: Mapping[str, tuple[dict[str, tuple[int, ...]], type[Exception]]] = {
    "both secrets of a user": ({"survivors": (0, 1, 2, 3, 4, 5), "dropped": (5,)}, errors.InconsistentSets),
    "too few survivors": ({"survivors": (2, 3), "dropped": (0, 1, 4, 5)}, errors.TooFewSurvivors),
    "a user left out": ({"survivors": (0, 1, 2, 3, 4), "dropped": ()}, errors.InconsistentSets),
    "a user twice": ({"survivors": (0, 1, 2, 3, 3, 4, 5), "dropped": ()}, errors.InconsistentSets),
    "not the user itself": ({"survivors": (0, 1, 2, 4, 5), "dropped": (3,)}, errors.InconsistentSets),
    "a stranger": ({"survivors": (0, 1, 2, 3, 4, 5, 9), "dropped": ()}, errors.InconsistentSets),
}


@pytest.mark.requirement("SAG-19", "SAG-20", "SAG-21", "SAG-22", "SAG-23")
@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("name", ["secagg", "secagg-active"])
def test_a_client_refuses_requests_for_what_the_server_must_not_have(name: str, request_: str) -> None:
    _, node, packet = up_to(name, "unmasking" if name == "secagg" else "consistency_check")
    entries, kind = REQUESTS[request_]
    refuses(node, asked(packet, secagg.UnmaskRequest, **entries), kind)
    assert node.handle(packet).refused is None


@pytest.mark.requirement("SAG-25", "LSA-12", "FLW-07")
@pytest.mark.parametrize(
    ("name", "phase", "kind", "entries"),
    [
        ("secagg", "unmasking", secagg.UnmaskRequest, {"survivors": (0, 1, 2, 3, 4), "dropped": (5,)}),
        ("secagg-active", "consistency_check", secagg.UnmaskRequest, {"survivors": (0, 1, 2, 3, 4), "dropped": (5,)}),
        ("lightsecagg", "recover", lightsecagg.SurvivingSet, {"users": (0, 1, 2, 3, 4)}),
        ("lightsecagg-active", "confirm", lightsecagg.SurvivingSet, {"users": (0, 1, 2, 3, 4)}),
    ],
)
def test_a_client_answers_one_request_of_a_round(name: str, phase: str, kind: Any, entries: dict[str, Any]) -> None:
    _, node, packet = up_to(name, phase)
    other = asked(packet, kind, **entries)
    assert replace(node, journal=MemoryJournal()).handle(other).refused is None  # either one would be answered
    assert node.answer(packet)["phase"] == phase
    for memory in node.kept:
        assert isinstance(node.handle(other, memory).refused, errors.Replay)


@pytest.mark.requirement("LSA-09", "LSA-10", "LSA-11")
@pytest.mark.parametrize("users", [(3,), (0, 1, 2, 3, 3), (0, 1, 2, 3, 6)])
@pytest.mark.parametrize("name", ["lightsecagg", "lightsecagg-active"])
def test_a_client_refuses_sets_that_are_too_small_or_cannot_be(name: str, users: tuple[int, ...]) -> None:
    _, node, packet = up_to(name, "recover" if name == "lightsecagg" else "confirm")
    refuses(node, asked(packet, lightsecagg.SurvivingSet, users=users))


@pytest.mark.requirement("FLW-01", "FLW-02")
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_stands_for_its_session(name: str) -> None:
    engine, node, packet = up_to(name, next(phase for phase in Engine(name, 6).phases if phase != "join"))
    plan = plans.read(packet["plan"])
    assert plans.read(plan.octets) == plan
    other = replace(plan, level=plan.level // 2)
    assert other.session != plan.session == packet["session"]
    refuses(node, {**packet, "plan": other.octets}, errors.InconsistentSets)
    refuses(node, {**packet, "session": other.session}, errors.InconsistentSets)
    refuses(node, {**packet, "plan": plan.octets + b" "}, errors.Malformed)
    refuses(node, {**packet, "plan": b'{"a":1}'}, errors.Malformed)
    refuses(node, {**packet, "user": 6}, errors.ParameterError)
    if plan.sealing or plan.verification:
        refuses(node, {**packet, "user": 2}, errors.ParameterError)
    assert engine.nodes[node.number].handle(packet).refused is None


@pytest.mark.requirement("FLW-01")
def test_the_session_id_is_the_one_of_the_text() -> None:
    numbers = {"R": 2**32, "N": 3, "D": 0, "T": 1, "t": 3, "k": 2, "d": 3}
    plan = Plan(plans.SECAGG, numbers, 1, (0, 1, 2), ((2,),), 4, 10, (17, 2), bytes(range(16)))
    assert plan.octets == (
        b'{"largest":[17,2],"level":4,"most":10,"nonce":"000102030405060708090a0b0c0d0e0f",'
        b'"numbers":{"D":0,"N":3,"R":4294967296,"T":1,"d":3,"k":2,"t":3},"order":[0,1,2],"protocol":"secagg",'
        b'"round":1,"sealing":[],"shapes":[[2]],"signature":[],"verification":[]}'
    )
    label, version = b"secagg-spec/flower", (2).to_bytes(4, "little")
    fields = b"".join(len(each).to_bytes(4, "little") + each for each in (label, version, plan.octets))
    assert plan.session == hashlib.sha256(fields).digest()[:16]


PLANS: Mapping[str, dict[str, Any]] = {
    "another protocol": {"protocol": "sum"},
    "wrapping weights": {"most": 2**30},
    "a fraction not in lowest terms": {"largest": (16, 2)},
    "a magnitude of 0": {"largest": (0, 1)},
    "a magnitude of one integer": {"largest": (8,)},
    "no arrays": {"shapes": ()},
    "another length": {"shapes": ((2, 3), (), (5,))},
    "a level of 0": {"level": 0},
    "no order": {"order": ()},
    "a short nonce": {"nonce": b"1234"},
    "keys that are none": {"verification": (1,)},
    "an order that is none": {"order": 5},
    "shapes that are none": {"shapes": (3, 3)},
    "a magnitude that is none": {"largest": 8},
    "a threshold above the users": {"numbers": {"t": 7}},
    "unknown parameters": {"numbers": {"U": 3}},
    "keys that have no place": {"sealing": (bytes(32),)},
}


@pytest.mark.requirement("FLW-02", "FLW-04", "SAG-01", "SAG-02")
@pytest.mark.parametrize("change", PLANS)
def test_a_client_refuses_plans_that_are_not_allowed(change: str) -> None:
    _, node, packet = up_to("secagg", "advertise_keys")
    plan = plans.read(packet["plan"])
    entries = {"numbers": {**plan.numbers, **PLANS[change].get("numbers", {})}}
    tree = {**vars(plan), **PLANS[change], **entries}
    forged = object.__new__(Plan)
    for name in Plan.__dataclass_fields__:
        object.__setattr__(forged, name, tree[name])
    refuses(node, {**packet, "plan": forged.octets, "session": forged.session})


@pytest.mark.requirement("FLW-04")
def test_a_client_demands_what_its_policy_says() -> None:
    _, node, packet = up_to("secagg", "advertise_keys")
    for policy in (
        Policy((plans.LIGHTSECAGG,)),
        Policy((plans.SECAGG,), least=4),
        Policy((plans.SECAGG,), colluding=2),
    ):
        refuses(replace(node, policy=policy), packet, errors.ParameterError)
    assert replace(node, policy=Policy((plans.SECAGG,), least=3, colluding=1)).handle(packet).refused is None


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("protocols", [5, "", "secagg", None, (), ("secagg", "sekagg"), (5,)])
def test_a_policy_names_protocols_that_there_are(protocols: Any) -> None:
    with pytest.raises(errors.ParameterError, match="protocols"):
        Policy(protocols)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("signing", [b"", bytes(31), "a" * 32, None])
def test_a_policy_names_the_signing_key_that_is_none(signing: Any) -> None:
    with pytest.raises(errors.ParameterError, match="signing"):
        Policy(("secagg-active",), signing=signing)


@pytest.mark.requirement("FLW-27")
@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
def test_a_client_computes_nothing_for_plans_that_are_too_large(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, node, packet = up_to(name, KINDS[name].phases[0])
    plan = plans.read(packet["plan"])
    shares = plan.N * ceil(plan.d / (plan.numbers["U"] - plan.numbers["T"])) if "U" in plan.numbers else 0
    most = max(plan.d, shares)
    assert most > plan.d or name == "secagg"
    changes: tuple[dict[str, Any], ...] = ({"most_users": plan.N - 1}, {"most_elements": most - 1})
    fits = replace(node.policy, most_users=plan.N, most_elements=most)
    with monkeypatch.context() as patch:
        patch.setattr(type(KINDS[name]), "parameters", Mock(side_effect=AssertionError))
        for change in changes:
            refuses(replace(node, policy=replace(fits, **change)), packet, errors.ParameterError)
    assert replace(node, policy=fits).handle(packet).refused is None


@pytest.mark.requirement("FLW-27")
def test_a_plan_with_shapes_of_long_numbers_is_refused_at_once() -> None:
    _, node, packet = up_to("lightsecagg", "share")
    plan = plans.read(packet["plan"])
    shapes = str([list(shape) for shape in plan.shapes]).replace(" ", "").encode()
    many = b"[[" + b",".join([b"1" + 2400 * b"0"] * 400) + b",0]]"
    for wrong, said in ((many, "axes"), (b"[[4294967296,0]]", "4294967295"), (b"[[" + 64 * b"9," + b"1]]", "axes")):
        octets = packet["plan"].replace(b'"shapes":' + shapes, b'"shapes":' + wrong)
        assert octets != packet["plan"]
        assert said in str(node.handle({**packet, "plan": octets}).refused)


@pytest.mark.requirement("FLW-04")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("least", {"least": 10, "most_users": 5}),
        ("colluding", {"colluding": 999}),
        ("batch", {"batch": 50, "most_users": 20}),
        ("protocols", {"protocols": ["lightsecagg-active"], "batch": 3}),
    ],
)
def test_a_policy_that_no_plan_can_meet_is_refused(name: str, given: dict[str, Any]) -> None:
    key = signing_key(1)
    known = {"protocols": ["secagg"], "signing": key, "trusted": [verification_key(key)], **given}
    with pytest.raises(errors.ParameterError, match=name):
        Policy(**known)


def test_a_join_that_the_protocol_does_not_have_is_refused_and_ends_no_round() -> None:
    _, node, packet = up_to("secagg", "masked_input")
    join = {"version": plans.VERSION, "phase": "join", "protocol": "secagg", "nonce": bytes(16)}
    assert node.answer(join)["refused"] == "wrong_phase"
    assert "refused" not in node.answer(packet)


@pytest.mark.parametrize("change", [{"version": 10**5000}, {"phase": 10**5000}, {"phase": "x" * 5000}])
def test_a_refusal_is_short_whatever_the_packet_holds(change: dict[str, Any]) -> None:
    _, node, packet = up_to("secagg", "masked_input")
    handled = node.handle({**packet, **change})
    assert len(str(handled.refused)) < 200


@pytest.mark.requirement("ERR-02", "FLW-04")
@pytest.mark.parametrize("trusted", [5, None, "a" * 32, bytes(32), [bytes(31)], [bytearray(32)], [5]])
def test_a_policy_trusts_keys(trusted: Any) -> None:
    assert Policy(["secagg"], trusted=[bytes(32)]).trusted == frozenset([bytes(32)])  # type: ignore[arg-type]
    with pytest.raises(errors.ParameterError, match="trusted"):
        Policy(["secagg"], trusted=trusted)


@pytest.mark.requirement("ERR-02", "FLW-06")
def test_a_journal_takes_a_folder_as_text_or_path_and_nothing_else(tmp_path: Path) -> None:
    FileJournal(str(tmp_path / "a")).take(bytes(16), "share")  # type: ignore[arg-type]
    with pytest.raises(errors.Replay):
        FileJournal(tmp_path / "a").take(bytes(16), "share")
    for folder in (5, "", "\ud800", "a\0b", None):
        with pytest.raises(errors.ParameterError, match="folder"):
            FileJournal(folder)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(errors.ParameterError, match="folder"):
        FileJournal(tmp_path / "file").take(bytes(16), "share")


@pytest.mark.requirement("ERR-02", "FLW-06")
@pytest.mark.parametrize(
    "step", [(bytes(1), "share"), ("a" * 16, "share"), *((bytes(16), no) for no in (None, "", "a/b", "A"))]
)
@pytest.mark.parametrize("act", ["refuse", "take"])
def test_a_journal_takes_a_session_and_a_phase_alone(tmp_path: Path, act: str, step: tuple[Any, Any]) -> None:
    for journal in (MemoryJournal(), FileJournal(tmp_path / "a")):
        with pytest.raises(errors.ParameterError, match=r"session|phase"):
            getattr(journal, act)(*step)
    assert not (tmp_path / "a").exists()


@pytest.mark.requirement("FLW-04")
@pytest.mark.parametrize("name", ["secagg-active", "lightsecagg-active"])
def test_a_client_refuses_the_key_of_a_stranger(name: str) -> None:
    _, node, packet = up_to(name, Engine(name, 6).phases[1])
    trusted = node.policy.trusted - {verification_key(signing_key(100))}
    refuses(replace(node, policy=replace(node.policy, trusted=trusted)), packet, errors.ParameterError)
    with pytest.raises(errors.ParameterError, match="trusted"):
        Policy((plans.PROTOCOLS[1],), signing=signing_key(1), trusted=trusted)


@pytest.mark.requirement("FLW-05")
def test_a_client_refuses_a_sealing_key_that_its_owner_did_not_sign() -> None:
    _, node, packet = up_to("lightsecagg-active", "share")
    plan = plans.read(packet["plan"])
    forged = replace(plan, sealing=(bytes(31) + b"\x07", *plan.sealing[1:]))
    refuses(node, {**packet, "plan": forged.octets, "session": forged.session}, errors.BadSignature)


@pytest.mark.requirement("FLW-05", "LSA-35")
@pytest.mark.parametrize("name", ["lightsecagg", "lightsecagg-active"])
def test_sealing_keys_are_drawn_for_each_round(name: str) -> None:
    engine = Engine(name, 6)
    first, second = engine.run(1), engine.run(2)
    assert first is not None
    assert second is not None
    assert not set(first.plan.sealing) & set(second.plan.sealing)


JOINING: Mapping[str, Any] = {
    "another nonce": changed(nonce=bytes(16)),
    "no key": changed(sealing=None),
    "a short key": changed(sealing=bytes(31)),
    "a key of low order": changed(sealing=bytes(32)),
    "a wrong signature": changed(signature=bytes(64)),
}


@pytest.mark.requirement("FLW-05", "FLW-13")
@pytest.mark.parametrize("fault", JOINING)
def test_keys_that_no_client_would_accept_do_not_come_into_the_plan(fault: str) -> None:
    engine = Engine("lightsecagg-active", 6, replied={("join", 3): JOINING[fault]})
    result = engine.run()
    assert result is not None
    assert result.contributors == (100, 107, 114, 128, 135)
    assert engine.lines[0].startswith("join: 1 of 6 dropped out: node 121")


def test_of_nodes_that_send_one_key_none_comes_into_the_plan() -> None:
    sent: list[Packet] = []

    def copy(packet: Packet) -> Packet:
        return sent[0]

    def keep(packet: Packet) -> Packet:
        sent.append(packet)
        return packet

    engine = Engine("lightsecagg", 7, replied={("join", 0): keep, ("join", 1): copy})
    result = engine.run()
    assert result is not None
    assert result.contributors == (114, 121, 128, 135, 142)


@pytest.mark.requirement("FLW-06", "FLW-07")
def test_of_many_processes_one_takes_a_step(tmp_path: Path) -> None:
    won: list[int] = []

    def take(number: int) -> None:
        try:
            FileJournal(tmp_path / "node").take(bytes(16), "share")
        except errors.Replay:
            return
        won.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


@pytest.mark.requirement("FLW-06", "FLW-07")
@given(st.lists(st.tuples(st.sampled_from((bytes(16), b"\x01" * 16)), st.sampled_from(("join", "share"))), max_size=8))
def test_a_journal_of_files_is_one_in_memory_that_outlives_the_process(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bytes, str]]
) -> None:
    folder, model = tmp_path_factory.mktemp("journal"), MemoryJournal()

    def outcome(journal: Journal, act: str, session: bytes, phase: str) -> bool:
        try:
            getattr(journal, act)(session, phase)
        except errors.Replay:
            return False
        return True

    for session, phase in steps:
        for act in ("refuse", "take"):
            assert outcome(FileJournal(folder / "a"), act, session, phase) == outcome(model, act, session, phase)


TREES = st.recursive(
    st.none() | st.integers(-(2**600), 2**600) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)


@given(TREES)
def test_a_tree_that_is_packed_is_unpacked_the_same(tree: Any) -> None:
    packed = pack(tree)
    assert all(isinstance(each, bytes) for each in packed)
    assert unpack(packed) == tree


NOT_PACKED: tuple[Any, ...] = ([], [b""], [b"{}"], ["text"], None, b"1", [bytes(32), b"{}"], [b"{}", 2])


@pytest.mark.parametrize("packed", NOT_PACKED)
def test_what_was_not_packed_is_refused(packed: Any) -> None:
    with pytest.raises(errors.ParameterError, match="packed"):
        unpack(packed)


@pytest.mark.parametrize(
    "parts",
    [
        *[(head,) for head in (b"text", b"\xff", b"[" * 5000, b'{"bytes":1}')],
        *[(b'{"bytes":' + number + b"}", b"a") for number in (b"0", b"-1", b"2", b"true", b"1.0", b'"1"')],
        *[(head,) for head in (b"NaN", b"Infinity", b"1.5", b"true", b" 1", b'{"a":1,"a":2}', b'"\\u0061"')],
        (b"[]", b"a"),
        (b'[{"bytes":1},{"bytes":1}]', b"a"),
        (b'[{"bytes":2},{"bytes":1}]', b"a", b"b"),
    ],
)
def test_what_has_a_right_hash_and_was_not_packed_is_refused(parts: tuple[bytes, ...]) -> None:
    whole = hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
    with pytest.raises(errors.ParameterError, match=r"^packed = .*: must be as `pack` writes them$"):
        unpack([whole, *parts])


@given(TREES)
def test_what_was_changed_since_it_was_packed_is_refused(tree: Any) -> None:
    for other in damages(pack(tree)):
        with pytest.raises(errors.ParameterError, match="packed"):
            unpack(other)


def nested(levels: int) -> Any:
    return bytes(1) if not levels else [nested(levels - 1)]


@pytest.mark.parametrize(
    "tree",
    [{"a": np.zeros(1)}, np.int64(1), {1: 2}, [(1, 2)], 1.5, True, {"bytes": 1}, nested(128), 10**4300],
    ids=lambda tree: type(tree).__name__,
)
def test_what_cannot_be_packed_is_refused(tree: Any) -> None:
    assert unpack(pack(nested(127))) == nested(127)
    assert unpack(pack(10**4300 - 1)) == 10**4300 - 1
    with pytest.raises(errors.ParameterError, match="tree"):
        pack(tree)


def test_without_flower_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'flwr'", name="flwr.app")

    monkeypatch.setattr(secagg_spec.flower, "import_module", missing)
    with pytest.raises(ImportError, match=r"secaggplus_mod needs Flower: pip install"):
        _ = secagg_spec.flower.secaggplus_mod
    with pytest.raises(AttributeError, match="it has SecAggWorkflow"):
        _ = secagg_spec.flower.secagg_plus_mod


@pytest.mark.requirement("FLW-08")
@pytest.mark.parametrize("name", NAMES)
def test_training_that_fails_is_told_by_a_code(name: str) -> None:
    engine = Engine(name, 6)
    node = engine.nodes[121]

    def fails(plan: Plan) -> Any:
        raise errors.ParameterError("the app", "x[3] = 0.25", "able to train")

    node.produce = fails  # type: ignore[method-assign]
    result = engine.run()
    assert result is not None
    assert 121 not in result.contributors
    assert f"{engine_phase(name)}: 1 of 6 dropped out: node 121 (refused: bad_param)" in engine.lines


@pytest.mark.requirement("FLW-04", "ERR-02")
def test_protocols_of_a_policy_do_not_change() -> None:
    given = {plans.SECAGG}
    policy = Policy(given)
    given.add(plans.SECAGG_ACTIVE)
    assert policy.protocols == (plans.SECAGG,)
    assert Policy(np.array([plans.SECAGG, plans.LIGHTSECAGG])).kind(plans.LIGHTSECAGG) is KINDS[plans.LIGHTSECAGG]


@pytest.mark.requirement("RND-03", "FLW-05")
@pytest.mark.parametrize("given", [b"", bytes(31), bytes(33), None, bytearray(32)])
def test_a_source_that_runs_out_gives_no_sealing_key(given: Any) -> None:
    client = Client(Policy((plans.LIGHTSECAGG,)), MemoryJournal(), Mock(take=Mock(return_value=given)))
    packet = {"version": 2, "phase": JOIN, "protocol": plans.LIGHTSECAGG, "nonce": bytes(16)}
    handled = client.handle(packet, [], Mock())
    assert handled.reply == {"version": 2, "refused": "bad_param"}
    assert str(handled.refused).startswith("take(32) of the source = ")
