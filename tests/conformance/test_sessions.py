"""Sessions of an adapter, rounds that several implementations play together, and where a fault is found in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.shamir import element_bytes
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, Answer, Request, pack
from secagg_spec.conformance.checks import sessions
from secagg_spec.conformance.checks.playing import SESSIONS
from secagg_spec.conformance.running.runner import Settings, run
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES, Adapter
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.steps import SERVER
from tests.conformance import narrow

Answerer = Callable[[Any], dict[str, Any]]
ID = "000102030405060708090a0b0c0d0e0f"


# ----------------------------------------------------------------------------------------------------------- inputs


def secagg_values(label: str, t: int) -> dict[str, str]:
    """The sampled values of a user of SecAgg."""
    source = SeededSource(b"sessions", label)
    keys = {name: source.take(32).hex() for name in ("sealing_key", "masking_key", "self_seed")}
    names = ("key_coefficients", "seed_coefficients")
    return {**keys, **{name: b"".join(map(element_bytes, draw_coefficients(source, t - 1))).hex() for name in names}}


def secagg_deal() -> SessionInputs:
    """A round of SecAgg at tiny."""
    numbers = {"R": "8", "N": 5, "D": 1, "T": 1, "t": 3, "k": 4, "d": 3}
    order = [3, 0, 4, 1, 2]
    setups: dict[int, Any] = {SERVER: {"order": order}}
    rands = {}
    for user in range(5):
        setups[user] = {"user": user, "order": order, "update": pack(np.array([user, 1, 7], np.uint64))}
        rands[user] = secagg_values(str(user), 3)
    return SessionInputs("secagg", numbers, bytes.fromhex(ID), 9, setups, rands)


def signed_deal() -> SessionInputs:
    """A round of SecAgg's active profile at tiny."""
    numbers = {"R": "8", "N": 5, "D": 1, "T": 1, "t": 4, "k": 4, "d": 3}
    verification = [verification_key(bytes([user + 1]) * 32).hex() for user in range(5)]
    setups: dict[int, Any] = {SERVER: {"verification": verification}}
    rands = {}
    for user in range(5):
        own = {"signing": f"{user + 1:02x}" * 32, "verification": verification}
        setups[user] = {"user": user, **own, "update": pack(np.array([user, 1, 7], np.uint64))}
        rands[user] = secagg_values(str(user), 4)
    return SessionInputs("secagg-active", numbers, bytes.fromhex(ID), 9, setups, rands)


def light_deal(active: bool = False) -> SessionInputs:
    """A round of LightSecAgg at tiny."""
    numbers = {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, **({"W": 4} if active else {})}
    roster = [public_key(bytes([user + 1]) * 32).hex() for user in range(5)]
    verification = [verification_key(bytes([user + 1]) * 32).hex() for user in range(5)]
    setups: dict[int, Any] = {SERVER: {"roster": roster, "verification": verification} if active else {}}
    rands = {}
    for user in range(5):
        key = f"{user + 1:02x}" * 32
        own: dict[str, Any] = {"channel": {"private": key, "roster": roster}}
        if active:
            own = {"private": key, "signing": key, "roster": roster, "verification": verification}
        setups[user] = {"user": user, "update": pack(np.array([user, 1, 6], np.uint64)), **own}
        rands[user] = {
            "mask": pack(np.array([1, user, 3], np.uint64)),
            "noise": pack(np.array([user, 5], np.uint64)),
        }
    return SessionInputs(
        "lightsecagg-active" if active else "lightsecagg", numbers, bytes.fromhex(ID), 9, setups, rands
    )


INPUTS = {
    "lightsecagg": light_deal(),
    "lightsecagg-active": light_deal(active=True),
    "secagg": secagg_deal(),
    "secagg-active": signed_deal(),
}
FIRST = {
    **dict.fromkeys(("lightsecagg", "lightsecagg-active"), "share"),
    **dict.fromkeys(("secagg", "secagg-active"), "advertise_keys"),
}


def asked(adapter: Adapter, op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer to a request."""
    return adapter.answer({"id": 1, "op": op, "params": params, **({"rand": rand} if rand else {})})


def opened(adapter: Adapter, handle: str, inputs: SessionInputs, party: int, **changes: Any) -> dict[str, Any]:
    """The answer to the opening of a party."""
    return asked(adapter, "session.new", {"handle": handle, **inputs.opening(party), **changes}, inputs.rand(party))


# --------------------------------------------------------------------------------------------------------- handles


@pytest.mark.requirement("ADP-22", "ADP-23")
def test_a_handle_names_one_session_until_it_is_freed() -> None:
    adapter, inputs = reference.build(), secagg_deal()
    step = {"handle": "a", "phase": "advertise_keys", "inbox": []}
    assert asked(adapter, "session.step", step)["reject"]["code"] == "bad_param"
    assert opened(adapter, "a", inputs, 0)["result"] == {}
    first = asked(adapter, "session.step", step)["result"]
    assert len(first["outbox"]) == 1
    assert opened(adapter, "a", inputs, 1)["reject"]["code"] == "duplicate_id"
    assert asked(adapter, "session.step", step)["reject"]["code"] == "replay"
    assert asked(adapter, "session.free", {"handle": "a"})["result"] == {}
    assert asked(adapter, "session.free", {"handle": "a"})["reject"]["code"] == "bad_param"
    assert opened(adapter, "a", inputs, 0, session=ID[2:])["reject"]["code"] == "length_mismatch"
    assert asked(adapter, "session.step", step)["reject"]["code"] == "bad_param"
    assert opened(adapter, "a", inputs, 0)["result"] == {}
    assert asked(adapter, "session.step", step)["result"] == first


@pytest.mark.requirement("ADP-24", "ADP-25")
def test_many_sessions_are_kept_apart() -> None:
    adapter, inputs = reference.build(), secagg_deal()
    handles = [str(number) for number in range(256)]
    for handle in handles:
        assert opened(adapter, handle, inputs, int(handle) % 5)["result"] == {}
    sent = [
        asked(adapter, "session.step", {"handle": handle, "phase": "advertise_keys", "inbox": []})["result"]["outbox"]
        for handle in handles
    ]
    assert [parse(bytes.fromhex(outbox[0])).sender for outbox in sent] == [int(handle) % 5 for handle in handles]
    assert len({outbox[0] for outbox in sent}) == 5


@pytest.mark.requirement("ADP-26", "ADP-27", "RND-04")
@pytest.mark.parametrize("protocol", list(FIRST))
@pytest.mark.parametrize("party", [0, SERVER])
def test_what_opens_a_session_has_exactly_its_members(protocol: str, party: int) -> None:
    adapter, inputs = reference.build(), INPUTS[protocol]
    opening = inputs.opening(party)
    for part in ("numbers", "setup"):
        less = dict(list(opening[part].items())[1:])
        for wrong in ({**opening[part], "zq": 1}, *([less] if opening[part] else [])):
            assert opened(adapter, "a", inputs, party, **{part: wrong})["reject"]["code"] == "malformed"
    for changes in ({"protocol": "x"}, {"role": "x"}):
        assert opened(adapter, "a", inputs, party, **changes)["reject"]["code"] == "bad_param"
    more = {**inputs.rand(party), "zq": "00"}
    assert asked(adapter, "session.new", {"handle": "a", **opening}, more)["reject"]["code"] == "malformed"
    assert opened(adapter, "a", inputs, party)["result"] == {}
    sleep = {"handle": "a", "phase": "sleep", "inbox": []}
    assert asked(adapter, "session.step", sleep)["reject"]["code"] == "bad_param"


@pytest.mark.requirement("ADP-28")
def test_a_party_that_is_not_declared_is_unsupported() -> None:
    adapter = Adapter("servers only", "1")
    whole = reference.build()
    for name in ("session.new", "session.step", "session.free"):
        declared = {"parties": ["secagg.server"]} if name == "session.new" else {}
        adapter.operation(name, **declared)(whole._handlers[name])
    assert opened(adapter, "a", secagg_deal(), 0) == {"id": 1, "unsupported": True}
    assert opened(adapter, "a", secagg_deal(), SERVER)["result"] == {}
    _, outcomes = run(DirectConnection(adapter.answer), Settings(cases=6, pattern="session.new/*"))
    verdicts = {outcome.check.id: outcome.verdict for outcome in outcomes}
    assert verdicts["session.new/undeclared"] == "pass"
    assert verdicts["session.new/secagg-mixed"] == "pass"
    assert verdicts["session.new/lightsecagg-mixed"] == "unsupported"


@pytest.mark.parametrize("parties", [None, [], "secagg.user", ["secagg"], [5], ["secagg.nobody"]])
def test_a_hello_without_known_parties_is_refused(parties: Any) -> None:
    adapter = reference.build()
    adapter.hello["operations"]["session.new"] = {} if parties is None else {"parties": parties}
    with pytest.raises(AdapterUnusable, match="parties"):
        greet(DirectConnection(adapter.answer).ask)


@pytest.mark.requirement("ADP-29")
def test_a_refused_step_says_who_is_to_blame() -> None:
    adapter, inputs = reference.build(), secagg_deal()
    network = inputs.played()
    events = [event for event in network.transcript if event.party == SERVER]
    assert opened(adapter, "a", inputs, SERVER)["result"] == {}
    for event in events:
        inbox = [encode(message).hex() for message in event.received]
        step = {"handle": "a", "phase": event.step.phase, "inbox": inbox}
        if event.step.phase == "unmasking":
            cut = event.received[0]
            wrong = encode(type(cut)(**{**vars(cut), "survivors": ()})).hex()
            reject = asked(adapter, "session.step", {**step, "inbox": [wrong, *inbox[1:]]})["reject"]
            assert (reject["code"], reject["blamed"]) == ("malformed", [cut.sender])
        result = asked(adapter, "session.step", step)["result"]
    assert result["aggregate"] == pack(inputs.total(range(5)))


def test_the_parties_of_the_helper_are_those_of_the_text() -> None:
    assert set(secagg_adapter.NUMBERS) == {party.partition(".")[0] for party in PARTIES}


# ---------------------------------------------------------------------------------------------------- mixed rounds


class Tampering:
    """The reference as an adapter, whose answers to steps are changed before they are given."""

    def __init__(self, change: Callable[[str, Answer], Answer], **hello: Any) -> None:
        adapter = reference.build()
        adapter.hello.update(hello)
        self._connection = DirectConnection(self._drawing(adapter) if hello.get("randomness") else adapter.answer)
        self._change = change
        self.caps = greet(self._connection.ask)

    def ask(self, request: Request) -> Answer:
        """The answer, perhaps another one than the right one."""
        answer = self._connection.ask(request)
        if request.op != "session.step" or answer.kind != "result":
            return answer
        return self._change(request.params["phase"], answer)

    def _drawing(self, adapter: Adapter) -> Answerer:
        """The adapter with sampled values of its own."""
        explicit, own = reference.build(), secagg_deal().rand(1)

        def answer(request: Any) -> dict[str, Any]:
            if request["op"] == "session.new" and request["params"]["role"] == "user":
                seeds = {**own, "self_seed": f"{request['params']['setup']['user']:02x}" * 32}
                key = f"{request['params']['setup']['user'] + 50:02x}"
                seeds.update(sealing_key=key * 32, masking_key="77" + key * 31)
                return explicit.answer({**request, "rand": seeds})
            return adapter.answer(request) if request["op"] == "hello" else explicit.answer(request)

        return answer

    def player(self) -> Player:
        """The adapter as a player."""
        return Player(self, self.caps)


def honest(phase: str, answer: Answer) -> Answer:
    """The answer as it is."""
    return answer


def spelt(answer: Answer, spelling: Callable[[str], str]) -> Answer:
    """The answer with another spelling of each message."""
    return Answer("result", value={"outbox": [spelling(text) for text in answer.value["outbox"]]})


def tampered(phase: str, changed: Callable[[Any], Any], at: int = 0, **hello: Any) -> Tampering:
    """An adapter that changes a message of its outbox in one phase."""

    def change(taken: str, answer: Answer) -> Answer:
        if taken != phase:
            return answer
        outbox = list(answer.value["outbox"])
        outbox[at] = encode(changed(parse(bytes.fromhex(outbox[at])))).hex()
        return Answer("result", value={**answer.value, "outbox": outbox})

    return Tampering(change, **hello)


LEAVING = {
    "lightsecagg": [{}, {"share": [2]}, {"upload": [2]}, {"recover": [0]}, {"upload": [1], "recover": [4]}],
    "lightsecagg-active": [{}, {"share": [2]}, {"upload": [2]}, {"recover": [0]}],
    "secagg": [{}, {"advertise_keys": [1]}, {"share_keys": [1]}, {"masked_input": [1]}, {"unmasking": [1]},
               {"advertise_keys": [0], "masked_input": [4]}],
    "secagg-active": [{}, {"advertise_keys": [1]}, {"masked_input": [1]}, {"consistency_check": [0]},
                      {"unmasking": [2]}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("protocol", "dropouts"),
    [(protocol, dropouts) for protocol, schedules in LEAVING.items() for dropouts in schedules],
)
@pytest.mark.parametrize("parties", [(SERVER,), (1, 3), (0, 1, 2, 3, 4, SERVER)])
def test_a_round_of_two_implementations_ends_with_the_sum(
    protocol: str, dropouts: Any, parties: tuple[int, ...]
) -> None:
    first, second = Tampering(honest).player(), Tampering(honest).player()
    players = {party: second if party == SERVER else first for party in parties}
    network = mixed.play(INPUTS[protocol], players, dropouts)
    assert network.states[SERVER].aggregate is not None


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_reference_and_the_node_implementation_play_rounds_together() -> None:
    connection = TARGETS["node"].connect(20)
    try:
        node = Player(connection, greet(connection.ask))
        for protocol, schedules in LEAVING.items():
            for dropouts in schedules:
                for parties in ((SERVER,), (0, 2), (0, 1, 2, 3, 4, SERVER)):
                    network = mixed.play(INPUTS[protocol], dict.fromkeys(parties, node), dropouts)
                    assert network.states[SERVER].aggregate is not None
    finally:
        connection.close()


@pytest.mark.parametrize("op", ["session.new", "session.step", "session.free"])
def test_an_adapter_that_breaks_is_a_fault_of_its_party(op: str) -> None:
    class Breaking(Tampering):
        def ask(self, request: Request) -> Answer:
            if request.op == op:
                raise AdapterBroken("crash", "it ended")
            return super().ask(request)

    with pytest.raises(Difference, match="it ended") as caught:
        mixed.play(secagg_deal(), {1: Breaking(honest).player()})
    assert (caught.value.verdict, caught.value.party) == ("crash", 1)


def test_a_round_that_must_end_is_ended_by_the_one_that_plays_the_server() -> None:
    dropouts = {"masked_input": [0, 1, 2]}
    with pytest.raises(TooFewSurvivors):
        mixed.play(secagg_deal(), {SERVER: Tampering(honest).player()}, dropouts)

    def goes_on(request: Request) -> Answer:
        answer = adapter._connection.ask(request)
        return Answer("result", value={"outbox": []}) if answer.kind == "reject" else answer

    adapter = Tampering(honest)
    adapter.ask = goes_on  # type: ignore[method-assign]
    with pytest.raises(Difference) as caught:
        mixed.play(secagg_deal(), {SERVER: adapter.player()}, dropouts)
    assert (caught.value.verdict, caught.value.phase) == ("accepted_invalid", "masked_input")


def other_element(message: Any) -> Any:
    """A masked vector with another second element."""
    masked = message.masked.copy()
    masked[1] = masked[1] ^ np.uint64(1)
    return type(message)(**{**vars(message), "masked": masked})


@pytest.mark.parametrize(
    ("protocol", "phase", "party", "change", "where"),
    [
        ("secagg", "masked_input", 2, other_element, (0, "MaskedInput", "masked", 1)),
        ("lightsecagg", "upload", 2, other_element, (0, "MaskedUpdate", "masked", 1)),
        (
            "secagg",
            "masked_input",
            SERVER,
            lambda m: type(m)(**{**vars(m), "survivors": m.survivors[:-1]}),
            (0, "UnmaskRequest", "survivors", None),
        ),
        (
            "secagg",
            "share_keys",
            1,
            lambda m: type(m)(**{**vars(m), "payload": m.payload[:5] + b"\0" + m.payload[6:]}),
            (0, "SecretShares", "payload", 5),
        ),
        (
            "lightsecagg-active",
            "confirm",
            1,
            lambda m: type(m)(**{**vars(m), "signature": bytes(64)}),
            (0, "SignedSet", "signature", 0),
        ),
        (
            "secagg-active",
            "consistency_check",
            1,
            lambda m: type(m)(**{**vars(m), "signature": bytes(64)}),
            (0, "SignedSurvivors", "signature", 0),
        ),
        (
            "secagg",
            "advertise_keys",
            1,
            lambda m: type(m)(**{**vars(m), "round": 8}),
            (0, "AdvertisedKeys", "round", None),
        ),
    ],
)
def test_a_fault_is_located(protocol: str, phase: str, party: int, change: Any, where: tuple[Any, ...]) -> None:
    adapter = tampered(phase, change)
    with pytest.raises(Difference) as caught:
        mixed.play(INPUTS[protocol], {party: adapter.player()})
    found = caught.value
    assert (found.verdict, found.party, found.phase) == ("wrong_value", party, phase)
    assert found.spot is not None
    assert (found.spot.number, found.spot.type, found.spot.field, found.spot.element) == where
    assert f"step {phase}" in str(found)
    assert found.spot.got != found.spot.wanted


@pytest.mark.parametrize(
    ("value", "verdict", "said"),
    [
        (lambda answer: Answer("reject", code="malformed", message="no"), "rejected_valid", "no"),
        (lambda answer: Answer("error", message="broke"), "error", "broke"),
        (lambda answer: Answer("result", value={}), "protocol", "outbox"),
        (lambda answer: Answer("result", value={"outbox": ["00"]}), "wrong_value", "no message"),
        (lambda answer: spelt(answer, str.upper), "protocol", "is not a lowercase hex digit"),
        (lambda answer: spelt(answer, lambda text: f"{text[:2]} {text[2:]}"), "protocol", "' ' at position 2"),
        (lambda answer: Answer("result", value={"outbox": [None]}), "protocol", "NoneType is not a string"),
        (lambda answer: Answer("result", value={"outbox": []}), "wrong_value", "no such message"),
        (
            lambda answer: Answer("result", value={"outbox": answer.value["outbox"] * 2}),
            "wrong_value",
            "no such message",
        ),
    ],
)
def test_a_right_step_that_is_not_taken_is_a_fault(value: Any, verdict: str, said: str) -> None:
    adapter = Tampering(lambda phase, answer: value(answer) if phase == "share_keys" else answer)
    with pytest.raises(Difference, match=said) as caught:
        mixed.play(secagg_deal(), {3: adapter.player()})
    assert (caught.value.verdict, caught.value.party, caught.value.phase) == (verdict, 3, "share_keys")


@pytest.mark.parametrize("players", [(SERVER,), (SERVER, 1)])
def test_a_wrong_sum_is_the_servers(players: tuple[int, ...]) -> None:
    adapter = Tampering(
        lambda phase, answer: (
            Answer("result", value={"outbox": [], "aggregate": "00" * 12})
            if phase == "unmasking" and "aggregate" in answer.value
            else answer
        )
    )
    with pytest.raises(Difference, match="aggregate") as caught:
        mixed.play(secagg_deal(), dict.fromkeys(players, adapter.player()))
    assert (caught.value.party, caught.value.phase) == (SERVER, "unmasking")


def test_users_that_draw_by_themselves_are_judged_by_the_others_and_the_sum() -> None:
    users = dict.fromkeys((0, 2), Tampering(honest, randomness="none").player())
    network = mixed.play(secagg_deal(), users, {"masked_input": [1]})
    assert network.states[SERVER].aggregate == pack(secagg_deal().total([0, 2, 3, 4]))


def test_users_that_draw_by_themselves_and_are_wrong_are_found_by_the_sum() -> None:
    def change(phase: str, answer: Answer) -> Answer:
        if phase != "masked_input":
            return answer
        outbox = [encode(other_element(parse(bytes.fromhex(text)))).hex() for text in answer.value["outbox"]]
        return Answer("result", value={**answer.value, "outbox": outbox})

    with pytest.raises(Difference, match="aggregate") as caught:
        mixed.play(secagg_deal(), {2: Tampering(change, randomness="none").player()})
    assert caught.value.party == SERVER


def with_header(**changes: Any) -> Callable[[list[str]], list[str]]:
    """Return a function that changes the header of each message."""
    return lambda outbox: [encode(replace(parse(bytes.fromhex(text)), **changes)).hex() for text in outbox]


@pytest.mark.requirement("CNF-06", "ADP-15")
@pytest.mark.parametrize("phase", ["advertise_keys", "share_keys", "masked_input", "unmasking"])
@pytest.mark.parametrize(
    ("sent", "more", "said"),
    [
        (lambda outbox: [], {}, r"message 0 .*, receiver: got no such message"),
        (lambda outbox: outbox[:-1], {}, r"receiver: got no such message"),
        (lambda outbox: [*outbox, outbox[0]], {}, r"receiver: got .*, must be no such message"),
        (with_header(session=bytes(16)), {}, r"message 0 .*, session\[\d+\]: got"),
        (with_header(round=7), {}, r"message 0 .*, round: got 7"),
        (with_header(sender=3), {}, r"message 0 .*, receiver: got no such message"),
        (list, {"aggregate": ""}, "aggregate: got , must be None"),
    ],
    ids=["nothing", "one less", "twice", "session", "round", "sender", "aggregate"],
)
def test_a_user_that_draws_by_itself_sends_the_messages_of_its_step(
    phase: str, sent: Callable[[list[str]], list[str]], more: dict[str, str], said: str
) -> None:
    def change(taken: str, answer: Answer) -> Answer:
        outbox = answer.value["outbox"]
        return Answer("result", value={"outbox": sent(outbox), **more}) if taken == phase else answer

    with pytest.raises(Difference, match=said) as caught:
        mixed.play(secagg_deal(), {1: Tampering(change, randomness="none").player()})
    assert (caught.value.verdict, caught.value.party, caught.value.phase) == ("wrong_value", 1, phase)


@pytest.mark.slow
@pytest.mark.requirement("ADP-29")
@pytest.mark.parametrize("party", [party for party in PARTIES if party.startswith("lightsecagg")])
def test_a_refused_step_of_lightsecagg_that_blames_nobody_is_found(party: str) -> None:
    adapter = reference.build()
    adapter.hello["operations"] = {name: adapter.hello["operations"][name] for name in SESSIONS}

    def answer(request: Any) -> dict[str, Any]:
        said = adapter.answer(request)
        if request["op"] == "session.step":
            said.get("reject", {}).pop("blamed", None)
        return said

    settings = Settings(cases=24, seed=1, pattern=f"session.new/{party}")
    for asked, verdict in ((adapter.answer, "pass"), (answer, "wrong_value")):
        _, (outcome,) = run(DirectConnection(asked), settings)
        assert outcome.verdict == verdict
    assert outcome.failure
    assert "ADP-29" in outcome.check.clauses
    assert "; blamed is None, must be [" in outcome.failure.message


@pytest.mark.requirement("CNF-40", "CNF-58")
@pytest.mark.parametrize(
    ("protocol", "phase", "policy"),
    [("secagg", "share_keys", {"prg.stream": "other"}), ("lightsecagg", "share", {"mds.code": "other"})],
)
@pytest.mark.parametrize("payload", [b"", b"None", bytes(200)])
def test_a_server_that_changes_what_it_passes_on_is_at_fault_itself(
    protocol: str, phase: str, policy: dict[str, str], payload: bytes
) -> None:
    policies = {**reference.build().hello["policy"], **policy}
    adapter = tampered(phase, lambda message: replace(message, payload=payload), policy=policies)
    with pytest.raises(Difference, match=r"message 0 \(\w+\), payload") as caught:
        mixed.play(INPUTS[protocol], {SERVER: adapter.player()})
    assert (caught.value.verdict, caught.value.party, caught.value.phase) == ("wrong_value", SERVER, phase)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_server_with_a_stream_of_its_own_ends_a_round_that_must_end(goes_on: bool) -> None:
    adapter = Tampering(honest, policy={**reference.build().hello["policy"], "prg.stream": "other"})
    ask = adapter.ask
    if goes_on:
        adapter.ask = lambda request: (  # type: ignore[method-assign]
            Answer("result", value={"outbox": []}) if (answer := ask(request)).kind == "reject" else answer
        )
    with pytest.raises(Difference if goes_on else TooFewSurvivors) as caught:
        mixed.play(secagg_deal(), {SERVER: adapter.player()}, {"unmasking": [0, 1, 2, 3]})
    assert not goes_on or "it must be refused" in str(caught.value)


@pytest.mark.slow
@pytest.mark.requirement("CNF-58")
def test_an_authority_that_draws_by_itself_and_is_wrong_is_not_called_inconsistent() -> None:
    offered: dict[str, Any] = {operation: {} for operation in SESSIONS} | {
        "session.new": {"parties": ["basa.authority"]}
    }
    adapter = narrow.adapter({**reference.build().hello, "operations": offered, "randomness": "none"})

    def answer(request: Any) -> dict[str, Any]:
        given = adapter(request)
        if request["op"] == "session.step" and "result" in given:
            given["result"]["outbox"] *= 2
        return given

    _, [outcome] = run(DirectConnection(answer), Settings(cases=4, pattern="session.new/basa-mixed"))
    assert outcome.failure is not None
    assert outcome.verdict == "wrong_value"
    assert outcome.failure.message.endswith("message 1 (EpochKeys), receiver: got server, must be no such message")


@pytest.mark.slow
def test_a_user_that_draws_by_itself_and_is_wrong_is_not_called_inconsistent() -> None:
    own, numbers = reference.build(), count()
    own.hello["randomness"] = "none"
    explicit = reference.build()

    def answer(request: Any) -> dict[str, Any]:
        if request["op"] == "session.new" and request["params"]["role"] == "user" and "rand" not in request:
            drawn = secagg_values(f"{next(numbers)}", request["params"]["numbers"]["t"])
            return explicit.answer({**request, "rand": drawn})
        given = own.answer(request) if request["op"] == "hello" else explicit.answer(request)
        if request["params"].get("phase") == "masked_input" and "result" in given:
            outbox = given["result"]["outbox"]
            given["result"]["outbox"] = [text[:-2] + f"{1 ^ int(text[-2:], 16):02x}" for text in outbox]
        return given

    own.hello["operations"]["session.new"] = {"parties": ["secagg.user"]}
    _, [outcome] = run(DirectConnection(answer), Settings(cases=30, pattern="session.new/secagg-mixed"))
    assert outcome.verdict == "wrong_value"
    assert outcome.by_relation


VALUES = st.sampled_from(["", "0a000000"]) | st.lists(st.just("0a000000"), max_size=2)


@pytest.mark.requirement("RND-04")
@given(st.data(), st.dictionaries(st.sampled_from(["mask", "noises", "seed"]), VALUES, max_size=3))
def test_sampled_values_are_spoiled_also_where_all_of_them_are_empty(
    data: st.DataObject, rand: dict[str, str | list[str]]
) -> None:
    spoiled, why = sessions._spoiled(data.draw, rand)
    assert spoiled != rand
    assert why


@pytest.mark.requirement("ADP-25")
@pytest.mark.parametrize("party", ["lightsecagg.user", "secagg.server", "basa.user"])
def test_an_adapter_that_takes_steps_in_the_newest_sessions_alone_is_found(party: str) -> None:
    built, opened = reference.build(), list[str]()
    built.hello["operations"] = {
        name: {"parties": [party]} if name == "session.new" else {}
        for name in ("session.new", "session.step", "session.free")
    }

    def answer(request: Any) -> dict[str, Any]:
        handle = request["params"].get("handle")
        if request["op"] == "session.new":
            opened.append(handle)
        if request["op"] == "session.step" and handle not in opened[-8:]:
            return {"id": request["id"], "reject": {"code": "bad_param", "message": "it is gone"}}
        return built.answer(request)

    _, (found,) = run(DirectConnection(answer), Settings(cases=1, seed=1, pattern="session.new/many", vectors=False))
    assert found.failure is not None
    assert "the first step of session 248 of 256 that were opened alike is answered by 'bad_param it is gone'" in str(
        found.failure.message
    )
