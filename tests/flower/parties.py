"""The nodes of a round without an engine: each keeps what an engine keeps, and forgets everything else in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.flower import plan as plans
from secagg_spec.flower import server, weights
from secagg_spec.flower.client import Client, Handled, Memory, Policy
from secagg_spec.flower.journal import MemoryJournal
from secagg_spec.flower.kinds import KINDS
from secagg_spec.flower.plan import Packet, Plan
from secagg_spec.protocols import steps
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg

MOST = 50
SHAPES = ((2, 3), (), (4,))
SETTINGS = {
    "secagg": server.Settings(plans.SECAGG, 3, most=MOST),
    "secagg+": server.Settings(plans.SECAGG, 3, 5, most=MOST),
    "secagg-active": server.Settings(plans.SECAGG_ACTIVE, 0.7, most=MOST),
    "lightsecagg": server.Settings(plans.LIGHTSECAGG, 4, most=MOST),
    "lightsecagg-active": server.Settings(plans.LIGHTSECAGG_ACTIVE, 0.7, most=MOST),
}
Change = Callable[[Packet], Packet | None]


def same(packet: Packet) -> Packet:
    """Leave a packet as it is."""
    return packet


def signing_key(node: int) -> bytes:
    """The private signing key of a node."""
    return node.to_bytes(32, "big")


@dataclass
class Node:
    """A node: its client's journal, the memories that its engine ever kept, and what it trained."""

    number: int
    policy: Policy
    arrays: list[Any]
    weight: int
    source: SeededSource
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    kept: list[Memory] = field(default_factory=lambda: [[]])
    inputs: list[UintArray] = field(default_factory=list)
    refused: list[Exception] = field(default_factory=list)

    def produce(self, plan: Plan) -> UintArray:
        """Train."""
        self.inputs.append(weights.encode(plan, self.arrays, self.weight, self.source))
        return self.inputs[-1]

    def handle(self, packet: Packet, memory: Memory | None = None) -> Handled:
        """Answer with a client made anew, on a memory that was packed; the last one if none is given."""
        client = Client(self.policy, self.journal, self.source)
        return client.handle(packet, self.kept[-1] if memory is None else memory, self.produce)

    def answer(self, packet: Packet) -> Packet:
        """Answer, and keep the memory."""
        handled = self.handle(packet)
        self.kept.append(list(handled.memory))
        if handled.refused is not None:
            self.refused.append(handled.refused)
        return handled.reply


@dataclass
class Engine:
    """An engine that loses the replies of nodes from a phase on, and changes packets on their way."""

    name: str
    N: int
    lost: Mapping[str, Collection[int]] = field(default_factory=dict)
    asked: Mapping[tuple[str, int], Change] = field(default_factory=dict)
    replied: Mapping[tuple[str, int], Change] = field(default_factory=dict)
    seed: int = 0
    nodes: dict[int, Node] = field(init=False)
    lines: list[str] = field(default_factory=list)
    packets: list[tuple[str, int, Packet]] = field(default_factory=list)
    dead: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        rng, numbers = np.random.default_rng(self.seed), [100 + 7 * at for at in range(self.N)]
        trusted = frozenset(verification_key(signing_key(number)) for number in numbers)
        self.nodes = {
            number: Node(
                number,
                Policy((self.settings.protocol,), signing=signing_key(number), trusted=trusted),
                [rng.normal(size=shape).astype(np.float32) for shape in SHAPES],
                int(rng.integers(1, MOST + 1)),
                SeededSource(self.seed.to_bytes(8, "big"), f"node {number}"),
            )
            for number in numbers
        }

    @property
    def settings(self) -> server.Settings:
        """The settings of the round."""
        return SETTINGS[self.name]

    def exchange(self, phase: str, packets: Mapping[int, Packet]) -> Iterator[tuple[int, Packet | None]]:
        """Deliver packets, and bring back the replies."""
        self.dead |= {list(self.nodes)[at] for at in self.lost.get(phase, ())}
        self.packets += [(phase, number, packet) for number, packet in packets.items()]
        for number, packet in packets.items():
            if number in self.dead:
                continue
            at = list(self.nodes).index(number)
            asked = self.asked.get((phase, at), same)(packet)
            reply = None if asked is None else self.nodes[number].answer(asked)
            yield number, None if reply is None else self.replied.get((phase, at), same)(reply)

    def run(self, round: int = 1, asked: Sequence[int] | None = None, **options: Any) -> server.Result | None:
        """Run a round, among all nodes or those that are asked; the options are those of `server.run`."""
        source = SeededSource(self.seed.to_bytes(8, "big"), f"server {round}")
        arrays = next(iter(self.nodes.values())).arrays
        nodes = list(self.nodes) if asked is None else asked
        return server.run(self.settings, nodes, arrays, round, self.exchange, self.lines.append, source, **options)

    @property
    def phases(self) -> tuple[str, ...]:
        """All phases in which nodes are asked."""
        kind = KINDS[self.settings.protocol]
        return (*(("join",) if kind.joining else ()), *kind.phases)

    @property
    def begun(self) -> tuple[Plan, tuple[int, ...]] | None:
        """The plan of the last round, and the nodes of its users."""
        found: dict[int, tuple[int, bytes]] = {}
        for phase, number, packet in self.packets:
            if "plan" in packet:
                found = {**({} if packet["user"] == 0 else found), packet["user"]: (number, packet["plan"])}
            elif phase == "join":
                found = {}
        if not found:
            return None
        return plans.read(found[0][1]), tuple(found[user][0] for user in sorted(found))


def expected(engine: Engine, dropouts: Mapping[str, Collection[int]]) -> steps.RoundResult | None:
    """What the reference makes of the inputs of the engine's last round; None where too few are left.

    `dropouts` names nodes by their place among all nodes.
    """
    begun = engine.begun
    assert begun is not None
    plan, numbers = begun
    places = [list(engine.nodes).index(number) for number in numbers]
    gone = {
        phase: [places.index(at) for at in dropped if at in places]
        for phase, dropped in dropouts.items()
        if phase != "join"
    }
    blank = np.zeros(plan.d, dtype=np.uint64)
    nodes = [engine.nodes[number] for number in numbers]
    updates = np.stack([node.inputs[-1] if node.inputs else blank for node in nodes])
    sources = {user: SeededSource(b"expected", str(user)) for user in range(plan.N)}
    facts: dict[str, Any] = {"session": plan.session, "round": plan.round, "dropouts": gone}
    signing = {user: node.policy.signing for user, node in enumerate(nodes)}
    parameters = KINDS[plan.protocol].parameters(plan)
    try:
        match plan.protocol:
            case plans.SECAGG:
                drawn = secagg.draw_randomness(parameters, sources)
                return secagg.run_round(parameters, updates, randomness=drawn, order=plan.order, **facts)
            case plans.SECAGG_ACTIVE:
                drawn = secagg.draw_randomness(parameters, sources)
                return secagg_active.run_round(parameters, updates, randomness=drawn, signing=signing, **facts)
            case plans.LIGHTSECAGG:
                drawn = lightsecagg.draw_randomness(parameters, sources)
                return lightsecagg.run_round(parameters, updates, randomness=drawn, **facts)
            case _:
                drawn = lightsecagg.draw_randomness(parameters, sources)
                keys = {user: lightsecagg_active.PrivateKeys(signing[user], signing[user]) for user in signing}
                return lightsecagg_active.run_round(parameters, updates, randomness=drawn, keys=keys, **facts)
    except TooFewSurvivors:
        return None
