"""Parties of an adapter that go on from round to round of their session, and how the kit judges that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable, pack
from secagg_spec.conformance.cases import drawn_rounds
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.running.runner import Settings, first_failure, run
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES, WITHOUT_ROUNDS, Adapter
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.heterosag_numbers import members
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Player
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.secagg.round import UnmaskRequest
from secagg_spec.protocols.steps import SERVER
from tests.conformance.node import NODE, Node, running
from tests.conformance.test_sessions import INPUTS, secagg_values
from tests.quick import part

AGAIN = [id for id in REGISTRY if id.startswith("session.again/")]
PROTOCOLS = ("lightsecagg", "lightsecagg-active", "secagg", "secagg-active", "heterosag")


def heterosag_deal() -> SessionInputs:
    """A round of HeteroSAg at tiny, the inputs zero."""
    p = heterosag_plan.PRESETS["tiny"]
    users = range(p.N)
    setups: dict[int, Any] = {SERVER: {"past": []}}
    setups.update({user: {"user": user, "past": [], "update": "00000000" * p.d} for user in users})
    rands = {user: secagg_values(f"cells {user}", p.t) for user in users}
    return SessionInputs("heterosag", members(p), bytes(16), 9, setups, rands)


def deal_of(protocol: str) -> SessionInputs:
    return heterosag_deal() if protocol == "heterosag" else INPUTS[protocol]


def later(inputs: SessionInputs, number: int) -> SessionInputs:
    """Another round, in which each user has the input, the sampled values and the sealing key of the next one."""
    users = inputs.users
    turned = dict(zip(users, [*users[1:], users[0]], strict=True))
    setups = {SERVER: {**inputs.setups[SERVER], **_sealing(inputs, SERVER)}}
    for user, other in turned.items():
        update = inputs.setups[user if inputs.protocol == "heterosag" else other]["update"]
        setups[user] = {**inputs.setups[user], "update": update, **_sealing(inputs, other)}
    rands = {user: inputs.rands[other] for user, other in turned.items()}
    return replace(inputs, round=number, setups=setups, rands=rands)


def _sealing(inputs: SessionInputs, other: int) -> dict[str, Any]:
    """In the active profile the sealing key of another user, and the roster of the round (LSA-35)."""
    if inputs.protocol != "lightsecagg-active":
        return {}
    setup = inputs.setups[other]
    roster = {"roster": [*setup["roster"][1:], setup["roster"][0]]}
    return roster if other == SERVER else {**roster, "private": setup["private"]}


Ask = Callable[..., dict[str, Any]]


def ask_reference() -> Ask:
    """What asks a reference of its own."""
    adapter = reference.build()

    def ask(op: str, params: Any, rand: Any = None) -> dict[str, Any]:
        return adapter.answer({"id": 1, "op": op, "params": params, **({"rand": rand} if rand else {})})

    return ask


@pytest.fixture(params=["reference", pytest.param("node", marks=pytest.mark.skipif(NODE is None, reason="no node"))])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """What asks an adapter, the reference or the one in Node."""
    if request.param == "reference":
        yield ask_reference()
        return
    with running() as node:
        yield partial(_plain, node)


def _plain(node: Node, op: str, params: Any, rand: Any = None) -> dict[str, Any]:
    return dict(node.ask(op, params, rand))


def opened(ask: Ask, inputs: SessionInputs, party: int) -> None:
    assert ask("session.new", {"handle": "a", **inputs.opening(party)}, inputs.rand(party))["result"] == {}


def goes_on(ask: Ask, inputs: SessionInputs, party: int, **changes: Any) -> dict[str, Any]:
    """The answer when the party is asked to go on to the round of other inputs."""
    return ask("session.again", {"handle": "a", **inputs.going_on(party), **changes}, inputs.rand(party))


def takes(ask: Ask, inputs: SessionInputs, party: int, calls: list[Call], wanted: list[Any]) -> None:
    """Let the party take steps; what it sends is what the reference sends."""
    for call, entry in zip(calls, wanted, strict=True):
        params = {"handle": "a", "phase": call.phase, "inbox": [data.hex() for data in call.inbox]}
        result = ask("session.step", params)["result"]
        assert sorted(result["outbox"]) == sorted(entry["outbox"]), call.phase
        assert result.get("aggregate") == entry.get("aggregate")


def steps(inputs: SessionInputs, party: int) -> tuple[list[Call], list[Any]]:
    """The steps of a party in the whole round, and what comes of them."""
    network = inputs.played()
    events = [event for event in network.transcript if event.party == party]
    calls = [Call(event.step.phase, tuple(encode(message) for message in event.received)) for event in events]
    walker = inputs.open(party)
    return calls, [walker.take(call) for call in calls]


# --------------------------------------------------------------------------------------------------- going on


@pytest.mark.requirement("SES-01", "ERR-01", "ADP-54")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("party", part(2, [0, SERVER]))
def test_a_party_goes_on_wherever_it_left_the_round_and_to_later_rounds_only(
    ask: Ask, protocol: str, party: int
) -> None:
    inputs = deal_of(protocol)
    calls, entries = steps(inputs, party)
    for taken in range(len(calls) + 1):
        opened(ask, inputs, party)
        takes(ask, inputs, party, calls[:taken], entries[:taken])
        for number in (9, 8, 0):
            reject = goes_on(ask, later(inputs, number), party)["reject"]
            assert reject["code"] in ("bad_param", "out_of_range", "replay")
        takes(ask, inputs, party, calls[taken:], entries[taken:])
        for number in (9, 2):
            assert "reject" in goes_on(ask, later(inputs, number), party)
        second = later(inputs, 11)
        if protocol == "heterosag":
            past = {one: [*setup["past"], list(second.users)] for one, setup in second.setups.items()}
            second = replace(second, setups={u: {**s, "past": past[u]} for u, s in second.setups.items()})
        assert goes_on(ask, second, party)["result"] == {}
        takes(ask, second, party, *steps(second, party))
        assert "reject" in goes_on(ask, later(inputs, 10), party), "10 is above the first round, and below the last"
        assert ask("session.free", {"handle": "a"})["result"] == {}


@pytest.mark.requirement("HSA-27", "HSA-28", "ADP-54")
@pytest.mark.parametrize("party", [0, SERVER])
def test_what_was_asked_before_is_remembered_in_the_next_round(ask: Ask, party: int) -> None:
    inputs = heterosag_deal()
    opened(ask, inputs, party)
    takes(ask, inputs, party, *steps(inputs, party))
    second = later(inputs, 10)
    lost = [users[-1] for users in heterosag_plan.PRESETS["tiny"].members if party not in users][:1]
    network = second.played({"masked_input": lost})
    assert goes_on(ask, second, party)["result"] == {}
    events = [event for event in network.transcript if event.party == party]
    sends = [any(isinstance(message, UnmaskRequest) for message in (*e.sent, *e.received)) for e in events]
    at = sends.index(True)
    walker = second.open(party)
    calls = [Call(e.step.phase, tuple(encode(message) for message in e.received)) for e in events[: at + 1]]
    takes(ask, second, party, calls[:at], [walker.take(call) for call in calls[:at]])
    last = {"handle": "a", "phase": calls[at].phase, "inbox": [data.hex() for data in calls[at].inbox]}
    assert ask("session.step", last)["reject"]["code"] == "below_threshold"


@pytest.mark.requirement("ERR-01", "RND-04")
def test_a_later_round_that_is_refused_for_its_values_may_be_asked_for_again(ask: Ask) -> None:
    inputs = INPUTS["lightsecagg"]
    second = later(inputs, 10)
    opened(ask, inputs, 0)
    right = second.going_on(0)["setup"]
    for wrong in ({"update": right["update"] + "00000000"}, {"update": "07000000" * 3}, {"channel": "none"}):
        assert "reject" in goes_on(ask, second, 0, setup={**right, **wrong})
    params = {"handle": "a", **second.going_on(0)}
    rand = second.rand(0)
    for values in ({"mask": rand["mask"]}, {**rand, "mask": rand["mask"][8:]}, {**rand, "zq": ""}):
        assert "reject" in ask("session.again", params, values)
    assert "reject" in goes_on(ask, second, 0, round=str(2**32))
    calls, entries = steps(inputs, 0)
    takes(ask, inputs, 0, calls[:1], entries[:1])
    assert goes_on(ask, second, 0)["result"] == {}


# ----------------------------------------------------------------------------------------------- handles and members


@pytest.mark.requirement("ADP-51")
def test_no_session_goes_on_that_is_not_open(ask: Ask) -> None:
    inputs = INPUTS["secagg"]
    assert goes_on(ask, later(inputs, 10), SERVER)["reject"]["code"] == "bad_param"
    opened(ask, inputs, SERVER)
    assert goes_on(ask, later(inputs, 10), SERVER)["result"] == {}
    assert ask("session.free", {"handle": "a"})["result"] == {}
    assert goes_on(ask, later(inputs, 11), SERVER)["reject"]["code"] == "bad_param"


@pytest.mark.requirement("ADP-53")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("party", [0, SERVER])
def test_a_party_is_not_given_again_what_it_remembers(ask: Ask, protocol: str, party: int) -> None:
    inputs = deal_of(protocol)
    second = later(inputs, 10)
    setup = second.going_on(party)["setup"]
    assert set(setup) == set(PARTIES[inputs.named(party)][0]) - {"user", "past"}
    opened(ask, inputs, party)
    more: list[dict[str, Any]] = [{"zq": 1}, {"user": 0}, {"past": []}]
    for wrong in more:
        assert goes_on(ask, second, party, setup={**setup, **wrong})["reject"]["code"] == "malformed"
    for name in setup:
        less = {other: value for other, value in setup.items() if other != name}
        assert goes_on(ask, second, party, setup=less)["reject"]["code"] == "malformed"
    assert goes_on(ask, second, party)["result"] == {}


@pytest.mark.requirement("ADP-52")
@given(st.data())
def test_a_party_without_common_rounds_goes_on_to_none(data: st.DataObject) -> None:
    ask, protocol = ask_reference(), data.draw(st.sampled_from(WITHOUT_ROUNDS))
    inputs = drawn_rounds.inputs(data.draw, protocol)
    party = data.draw(st.sampled_from(sorted(inputs.setups)))
    opened(ask, inputs, party)
    answer = goes_on(ask, replace(inputs, round=inputs.round + 1 if inputs.round < 2**32 - 1 else inputs.round), party)
    assert answer == {"id": 1, "unsupported": True}


@pytest.mark.requirement("ADP-52")
@pytest.mark.skipif(NODE is None, reason="no node")
def test_the_implementation_in_node_has_no_later_rounds_where_the_text_has_none() -> None:
    numbers = {"q": "32749", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "K": 3, "c_l": "1", "c_g": "1", "tau_max": 2}
    numbers |= {"kind": "constant", "numerator": 0, "denominator": 1, "start": "0"}
    new = {"protocol": "basecagg", "role": "server", "numbers": numbers, "session": "00" * 16}
    with running() as node:
        node.result("session.new", {"handle": "a", **new, "round": "0", "setup": {}}, {"roundings": []})
        params = {"handle": "a", "round": "1", "setup": {}}
        assert node.ask("session.again", params, {"roundings": []}) == {"id": 1, "unsupported": True}


# ----------------------------------------------------------------------------------------------- versions and grades


def test_an_adapter_of_the_first_version_is_judged_as_before() -> None:
    adapter = reference.build()
    adapter.hello["protocol"] = [1, 0]
    del adapter.hello["operations"]["session.again"]
    del adapter._handlers["session.again"]
    _, outcomes = run(DirectConnection(adapter.answer), Settings(cases=2, pattern="session.[as]*"))
    verdicts = {outcome.check.id: outcome.verdict for outcome in outcomes}
    assert {verdicts.pop(id) for id in AGAIN} == {"unsupported"}
    assert set(verdicts.values()) == {"pass"}


@pytest.mark.parametrize("declared", [{"randomness": "none"}, {"parties": ["secagg.user"]}, {"ranges": {"N": {}}}])
def test_a_later_round_has_no_grade_or_range_of_its_own(declared: dict[str, Any]) -> None:
    adapter = reference.build()
    adapter.hello["operations"]["session.again"] = declared
    with pytest.raises(AdapterUnusable, match=r"session\.again"):
        greet(DirectConnection(adapter.answer).ask)


def test_the_grade_of_a_later_round_is_that_of_the_first() -> None:
    adapter = reference.build()
    adapter.hello["operations"]["session.new"] = {"parties": ["lightsecagg.user"], "randomness": "none"}
    caps = greet(DirectConnection(adapter.answer).ask)
    assert caps.grade("session.again") == caps.grade("session.new") == "none"
    assert caps.grade("mds.encode") == "explicit"


class Drawing:
    """The reference with sampled values of its own."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter, self._explicit, self._asked = adapter, reference.build(), 0

    def answer(self, request: Any) -> dict[str, Any]:
        """The answer; a request that opens a round of a user comes without sampled values."""
        if request["op"] in ("session.new", "session.again") and "rand" not in request:
            self._asked += 1
            params = request["params"]
            if params.get("role") == "user":
                self._t = params["numbers"]["t"]
            if "update" in params["setup"]:
                return self._explicit.answer({**request, "rand": secagg_values(str(self._asked), self._t)})
        return self._adapter.answer(request) if request["op"] == "hello" else self._explicit.answer(request)


@pytest.mark.slow
def test_users_that_draw_by_themselves_are_judged_by_the_sum_in_later_rounds() -> None:
    adapter = reference.build()
    adapter.hello["randomness"] = "none"
    adapter.hello["operations"]["session.new"] = {"parties": ["secagg.user"]}
    settings = Settings(cases=20, pattern="session.again/secagg")
    _, [right] = run(DirectConnection(Drawing(adapter).answer), settings)
    assert (right.verdict, right.by_relation) == ("pass", True)
    with mutants.planted("number-of-a-round-that-failed-is-free"):
        connection = DirectConnection(Drawing(adapter).answer)
        assert first_failure(connection, greet(connection.ask), REGISTRY["session.again/secagg"], settings)


def test_several_parties_of_one_adapter_play_two_rounds_of_one_session() -> None:
    connection = DirectConnection(reference.build().answer)
    player, inputs = Player(connection, greet(connection.ask)), INPUTS["secagg"]
    remotes = {party: player.open(inputs, party) for party in (*inputs.users, SERVER)}
    for one in (inputs, later(inputs, 10)):
        network = mixed.seated(one, remotes, {"unmasking": [3]})
        mixed.run_seated(one, network, {"unmasking": [3]})
        if one is inputs:
            assert {remote.again(later(inputs, 10)).kind for remote in remotes.values()} == {"result"}
    assert network.states[SERVER].aggregate == pack(inputs.total(inputs.users))
