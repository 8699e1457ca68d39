"""The implementation of SecAgg in JavaScript against the reference: whole rounds, message by message.

It was written from the text alone. The reference plays a round; each party's inboxes are then given to the other
implementation, which starts with the same sampled values, and must send the same bytes. What one of them refuses, the
other must refuse too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.conformance import targets
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import Malformed, ParameterError, ProtocolError
from secagg_spec.protocols.codec import Message, decode, encode
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.graph import draw_order
from secagg_spec.protocols.secagg.round import PHASES, PRESETS, Parameters
from secagg_spec.protocols.steps import SERVER, Event, Network, Randomness, Role, run_synchronous

NODE = shutil.which("node")
HERE = Path(__file__).parent
MODULE = Path(targets.__file__).parent / "node" / "secagg.js"
SHAPES = {
    "tiny": PRESETS["tiny"],
    "default": PRESETS["default"],
    "even": Parameters(R=97, N=8, D=2, T=1, t=3, k=4, d=5),
    "odd": Parameters(R=2**31 + 11, N=8, D=3, T=2, t=2, k=3, d=2),
}
Spoil = Callable[[list[bytes], int, int], list[bytes]]
KINDS = {kind.TYPE: kind for step in secagg.TABLE for kind in step.sends}
SENDERS = {"unknown_peer", "inconsistent_sets", "malformed", "wrong_phase"}  # what MSG-02 and MSG-03 leave open

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


@dataclass(frozen=True)
class Party:
    """What a party starts with, as the JavaScript takes it."""

    role: Role
    start: Mapping[str, Any]


class Twin:
    """A process that plays parties of the other implementation."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def play(self, party: Party, steps: Sequence[tuple[str, Sequence[bytes]]]) -> list[dict[str, Any]]:
        """Return the entries of the steps of a party."""
        entries = self.ask(party, [(phase, [data.hex() for data in inbox]) for phase, inbox in steps])
        assert isinstance(entries, list), entries
        return entries

    def starts(self, party: Party) -> bool:
        """Return whether a party may start so."""
        answer = self.ask(party, [])
        assert answer == [] or answer["code"] == "bad_param", answer
        return not answer

    def ask(self, party: Party, steps: Sequence[tuple[str, Sequence[str]]]) -> Any:
        """Return the answer to a script."""
        script = {"module": str(MODULE), party.role.value: party.start, "steps": steps}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(script) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    """The other implementation, running."""
    assert NODE is not None
    command = [NODE, str(HERE / "secagg_party.js")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Twin(process)
        assert process.stdin is not None
        process.stdin.close()


@dataclass(frozen=True, eq=False)
class Played:
    """A round as the reference played it, up to its end or its refusal."""

    network: Network
    parties: Mapping[int, Party]
    sampled: Mapping[int, Randomness]
    starts: Mapping[int, object]
    refusal: ProtocolError | None

    def before(self, party: int, taken: int) -> object:
        """Return the state of a party after some of its steps."""
        return self.events(party)[taken - 1].state if taken else self.starts[party]

    def events(self, party: int) -> list[Event]:
        """Return the steps that a party took."""
        return [event for event in self.network.transcript if event.party == party]


@dataclass(frozen=True)
class Case:
    """A round to play."""

    parameters: Parameters
    order: tuple[int, ...]
    seed: bytes
    dropouts: Mapping[str, frozenset[int]]


@st.composite
def cases(draw: st.DrawFn, shapes: Sequence[str] = tuple(SHAPES)) -> Case:
    """Rounds of some shapes, in any order of the users, in which any of them drop out."""
    parameters = SHAPES[draw(st.sampled_from(shapes))]
    seed = draw(st.binary(min_size=4, max_size=4))
    dropped = draw(
        st.dictionaries(st.integers(0, parameters.N - 1), st.sampled_from(PHASES), max_size=parameters.N - 1)
    )
    dropouts = {phase: frozenset(user for user, at in dropped.items() if at == phase) for phase in PHASES}
    order = draw_order(SeededSource(seed, "order"), parameters.N)
    return Case(parameters, order, seed, dropouts)


def inputs(case: Case) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the inputs of the users."""
    p = case.parameters
    rng = np.random.default_rng(int.from_bytes(case.seed, "big"))
    return rng.integers(0, p.R, size=(p.N, p.d), dtype=np.uint64)


def play(case: Case) -> Played:
    """Let the reference play a round."""
    session, number = case.seed * 4, int.from_bytes(case.seed, "big")
    sampled = secagg.draw_randomness(
        case.parameters, {user: SeededSource(case.seed, f"user {user}") for user in range(case.parameters.N)}
    )
    network = secagg.open_round(case.parameters, inputs(case), order=case.order, session=session, round=number)
    starts = dict(network.states)
    refusal = None
    try:
        run_synchronous(network, case.dropouts, sampled)
    except ProtocolError as error:
        refusal = error
    agreed = {**asdict(case.parameters), "order": case.order, "session": session.hex(), "round": number}
    parties = {SERVER: Party(Role.SERVER, agreed)}
    for user, update in enumerate(inputs(case)):
        start = {**agreed, "user": user, "update": update.tolist(), "rand": values(sampled[user])}
        parties[user] = Party(Role.USER, start)
    return Played(network, parties, sampled, starts, refusal)


def values(sampled: Randomness) -> dict[str, Any]:
    """Return sampled values as JSON."""
    return {
        name: value.hex() if isinstance(value, bytes) else [str(number) for number in value]
        for name, value in sampled.items()
    }


def octets(messages: Sequence[Message]) -> list[bytes]:
    """Return the bytes of messages."""
    return [encode(message) for message in messages]


def steps(events: Sequence[Event]) -> list[tuple[str, list[bytes]]]:
    """Return the steps of a party with their inboxes."""
    return [(event.step.phase, octets(event.received)) for event in events]


@pytest.mark.slow
@given(case=cases())
def test_every_party_sends_the_same_bytes(twin: Twin, case: Case) -> None:
    """Replay all parties of a round, whoever drops out."""
    played = play(case)
    for number, party in played.parties.items():
        events = played.events(number)
        for event, entry in zip(events, twin.play(party, steps(events)), strict=True):
            sent = sorted(bytes.fromhex(message) for message in entry.get("outbox", ()))
            assert sent == sorted(octets(event.sent)), (number, event.step.phase, entry)


@given(case=cases())
def test_the_same_rounds_end_with_the_same_sum(twin: Twin, case: Case) -> None:
    """Compare how the server's part ends, in a sum or in too few survivors."""
    played = play(case)
    script = steps(played.events(SERVER))
    if played.refusal is not None:
        script.append((PHASES[len(script)], octets(played.network.waiting.get(SERVER, []))))
    last = twin.play(played.parties[SERVER], script)[-1]
    if played.refusal is not None:
        assert last["reject"] == reject_code(played.refusal)
        return
    state = played.network.states[SERVER]
    assert last["contributors"] == list(state.survivors)
    assert last["aggregate"] == state.aggregate.tolist()
    survivors = inputs(case)[list(state.survivors)]
    assert last["aggregate"] == (survivors.sum(axis=0, dtype=object) % case.parameters.R).tolist()


@pytest.mark.slow
def test_a_sparse_round_of_a_hundred_users(twin: Twin) -> None:
    """Replay the server and two users at the preset, with dropouts in each phase."""
    p = PRESETS["sparse"]
    dropped = {"advertise_keys": {1}, "share_keys": {20, 21}, "masked_input": set(range(40, 46)), "unmasking": {70, 99}}
    order = draw_order(SeededSource(b"sparse", "order"), p.N)
    case = Case(p, order, b"spar", {phase: frozenset(users) for phase, users in dropped.items()})
    played = play(case)
    assert played.refusal is None
    for number in (SERVER, 0, 98):
        events = played.events(number)
        entries = twin.play(played.parties[number], steps(events))
        assert [sorted(map(bytes.fromhex, entry["outbox"])) for entry in entries] == [
            sorted(octets(event.sent)) for event in events
        ]
    assert (
        played.network.states[SERVER].aggregate.tolist()
        == twin.play(played.parties[SERVER], steps(played.events(SERVER)))[-1]["aggregate"]
    )


def lost(inbox: list[bytes], at: int, bit: int) -> list[bytes]:
    """Leave a message out, or all but a few."""
    return inbox[:at] + inbox[at + 1 :] if bit % 2 else inbox[: bit % 4]


def doubled(inbox: list[bytes], at: int, bit: int) -> list[bytes]:
    """Bring a message twice."""
    return [*inbox, inbox[at]]


def cut(inbox: list[bytes], at: int, bit: int) -> list[bytes]:
    """Cut a message off."""
    return [*inbox[:at], inbox[at][: bit % len(inbox[at])], *inbox[at + 1 :]]


def longer(inbox: list[bytes], at: int, bit: int) -> list[bytes]:
    """Let a byte follow a message."""
    return [*inbox[:at], inbox[at] + bytes([bit]), *inbox[at + 1 :]]


def header(inbox: list[bytes], at: int, bit: int) -> list[bytes]:
    """Flip a bit of a header."""
    return [*inbox[:at], flipped(inbox[at], bit % 240), *inbox[at + 1 :]]


def last(inbox: list[bytes], at: int, bit: int) -> list[bytes]:
    """Flip a bit of the last byte of a message."""
    return [*inbox[:at], flipped(inbox[at], 8 * len(inbox[at]) - 8 + bit % 8), *inbox[at + 1 :]]


def flipped(data: bytes, bit: int) -> bytes:
    """Return bytes with one bit changed."""
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def parse(data: bytes) -> Message:
    """Return the message in some bytes."""
    kind = KINDS.get(int.from_bytes(data[:2], "little"))
    if kind is None:
        raise Malformed("no message of SecAgg")
    return decode(kind, data)


def taken(event: Event, before: object, inbox: Sequence[bytes], sampled: Randomness) -> dict[str, Any]:
    """Return what the reference makes of a step."""
    randomness = {name: sampled[name] for name in event.step.randomness}
    try:
        _, sent = event.step.take(before, tuple(parse(data) for data in inbox), randomness=randomness)
    except (ParameterError, ProtocolError) as error:
        return {"reject": reject_code(error)}
    return {"outbox": octets(sent)}


@given(
    case=cases(),
    spoil=st.sampled_from([lost, doubled, cut, longer, header, last]),
    which=st.integers(0, 2**32),
    bit=st.integers(0, 239),
)
def test_both_refuse_the_same_inboxes(twin: Twin, case: Case, spoil: Spoil, which: int, bit: int) -> None:
    """Spoil an inbox of a round; a step that is refused can still be taken on the right one."""
    played = play(case)
    number = sorted(played.parties)[which % len(played.parties)]
    events = [event for event in played.events(number) if event.received]
    if not events:
        return
    event = events[which % len(events)]
    done = played.events(number).index(event)
    right = octets(event.received)
    wrong = spoil(right, which % len(right), bit)
    before = played.before(number, done)
    expected = taken(event, before, wrong, played.sampled.get(number, {}))
    script = [*steps(played.events(number)[:done]), (event.step.phase, wrong), (event.step.phase, right)]
    entry, again = twin.play(played.parties[number], script)[done:]
    if "reject" in expected:
        codes = {expected["reject"], entry.get("reject", "accepted")}
        assert len(codes) == 1 or codes <= SENDERS, (event.step.phase, expected, entry)
        assert sorted(map(bytes.fromhex, again["outbox"])) == sorted(octets(event.sent))
    else:
        assert sorted(map(bytes.fromhex, entry["outbox"])) == sorted(expected["outbox"])
        assert again["reject"] == "replay"


def test_what_one_party_starts_with(twin: Twin) -> None:
    """Refuse the parameters that the reference refuses."""
    agreed = {"order": [0, 1, 2, 3, 4], "session": "00" * 16, "round": 0}
    for changes in (
        {},
        {"t": 2},
        {"t": 5},
        {"D": 3},
        {"T": 0},
        {"k": 3},
        {"k": 2},
        {"R": 1},
        {"R": 2**32 + 1},
        {"d": 0},
    ):
        numbers = {**asdict(PRESETS["tiny"]), **changes}
        allowed = True
        try:
            Parameters(**numbers)
        except ParameterError:
            allowed = False
        assert twin.starts(Party(Role.SERVER, {**agreed, **numbers})) == allowed, changes
