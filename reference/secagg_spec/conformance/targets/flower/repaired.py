"""An adapter for `secagg_spec.flower`: its workflow and its mod in the places of Flower's, judged by the same checks.

It runs in Flower's environment. Rounds over real numbers go through Flower's messages, contexts and strategy; the
network is ours. A refusal is that of a client, or the line with which a round ends without a sum.

===================  ===============================================================================================
operation            what answers
===================  ===============================================================================================
secagg.average       SecAggPlusWorkflow with secaggplus_mod in every client (composed: the network is ours)
secagg.recovery      the same
secagg.sum           the server and the clients below them, without Flower's messages: the inputs are elements already,
                     and 1 follows as the weight (composed)
secagg.view          the same: the packets that come to a party. Masked vectors, with the masked weight last, are
                     vectors; all else is a string (composed)
secagg.unmasking     the same. The server draws the order of the graph: the user at place i of the roster is the one at
                     place i of that order (composed)
the others           what the steps call, one by one
===================  ===============================================================================================

N users, t and k are the users that are asked, ``reconstruction_threshold`` and ``num_shares`` - 1. clip is
``clipping_range``, R is ``modulus_range``, and weights are numbers of examples, at most ``max_weight``.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[4]))  # the last one: an installed kit has packages of its own there

import numpy as np
from flower.released import FLOWER_LOGGER
from flower.round import Halted, Network, Settings, run_round

from flower import released
from secagg_spec import __version__, errors
from secagg_spec.conformance.adapter.codes import REJECT_CODES, reject_code
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.sdk.secagg_adapter import ROUND_PHASES, SUM_PHASES, Adapter, Reject, check_drop
from secagg_spec.conformance.targets.reference import arithmetic, crypto, neighbours, pairs, readers, shamir
from secagg_spec.flower import plan as plans
from secagg_spec.flower import server
from secagg_spec.flower.client import Client, Memory, Policy, read_messages
from secagg_spec.flower.journal import MemoryJournal
from secagg_spec.flower.mod import secaggplus_mod
from secagg_spec.flower.plan import Packet
from secagg_spec.flower.records import RECORD
from secagg_spec.flower.workflow import SecAggPlusWorkflow
from secagg_spec.protocols import codec
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER

POLICY = Policy((plans.SECAGG,))
R = 2**32
SAID = re.compile(r"(?:refused '\w+'|ends without a sum): (\w+): (.*)", re.DOTALL)
LAST = ROUND_PHASES[-1]
FLOWER_LOGGER.setLevel(logging.WARNING)
FLOWER_LOGGER.propagate = False
for handler in list(FLOWER_LOGGER.handlers):
    FLOWER_LOGGER.removeHandler(handler)


def refuse(error: Exception) -> NoReturn:
    """Turn an error of the package into a rejection."""
    raise Reject(reject_code(error), str(error)) from error


def refusing(handler: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Turn the package's two error classes into rejections."""

    def call(**given: Any) -> dict[str, Any]:
        try:
            return handler(**given)
        except (errors.ParameterError, errors.ProtocolError) as error:
            refuse(error)

    return call


def ended(lines: Sequence[str]) -> Reject:
    """Return the rejection that the first line with a reason stands for."""
    for found in filter(None, map(SAID.search, lines)):
        return Reject(REJECT_CODES[getattr(errors, found[1])], found[0])
    raise ValueError("no line says why the round ended: " + "; ".join(lines))


# ---------------------------------------------------------------------------------------- through Flower's messages


class Engine(Network):  # type: ignore[misc, unused-ignore]
    """The network of the package's workflow and mod."""

    workflow, mod, record, stages = SecAggPlusWorkflow, secaggplus_mod, RECORD, ROUND_PHASES
    level, shaped = logging.WARNING, True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pushed = dict[str, Any]()

    def push_messages(self, messages: Iterable[Any]) -> list[str]:
        """Keep messages until their replies are asked for, and return their ids."""
        new = {str(number): message for number, message in enumerate(messages, len(self.pushed))}
        for number, message in new.items():
            message.metadata.__dict__["_message_id"] = number
        self.pushed |= new
        return list(new)

    def pull_messages(self, message_ids: Iterable[str]) -> list[Any]:
        """Return the replies to messages; one that says so of a user that has dropped out."""
        asked = [self.pushed[number] for number in message_ids]
        lost = released.Error(0, "the user dropped out")
        return [reply for one in asked for reply in self.send_and_receive([one]) or [released.reply(lost, one)]]

    def stage_of(self, message: Any) -> str:
        """Return the phase of a packet."""
        return str(released.configs(message.content)[RECORD]["phase"])


def average(**given: Any) -> dict[str, Any]:
    """SecAggPlusWorkflow, from the first phase to the strategy."""
    return played(lambda user, record: None, **given)


def recovery(user: int, owner: int, kind: str, **given: Any) -> dict[str, Any]:
    """Play the same round, with one bit changed in a share."""

    def change(sender: int, record: Any) -> None:
        if sender == user and "messages" in record:
            sent = [codec.decode(secagg.UnmaskShares, data) for data in record["messages"]]
            record["messages"] = [codec.encode(message) for message in neighbours.alter(sent, user, owner, kind)]

    return played(change, **given)


def played(
    change: Callable[[int, Any], None], *, R: str, N: int, t: int, k: int, clip: int, level: str, max_weight: int,
    weights: list[int], x: list[str], drop: dict[str, list[int]], rand: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of a round; a refusal of a client is the answer, also where the others have a sum."""
    check_drop(drop, N)
    if len(x) != N or len(weights) != N:
        raise Reject("length_mismatch", f"{len(x)} inputs and {len(weights)} weights of {N} users")
    settings = Settings(1.0 if k == N - 1 else k + 1, t, max_weight, clip, 2 * clip * int(level), int(R))
    rows = [readers.reals(f"x[{at}]", row).tolist() for at, row in enumerate(x)]
    with TemporaryDirectory() as folder:
        os.environ["SECAGG_SPEC_HOME"] = folder
        try:
            outcome = run_round(rows, weights, drop, settings, change, engine=Engine)
        except Halted as halted:
            raise ended(halted.logged) from halted
    stay = [user for user in range(N) if all(user not in drop[phase] for phase in ROUND_PHASES[:-1])]
    if outcome.contributors != stay:
        raise ended(outcome.logged)
    return {"average": pack_reals(np.array(outcome.average)), "contributors": outcome.contributors}


# ---------------------------------------------------------------------------------------------- without them


class Reached(Exception):
    """The last packets are there, and were not delivered."""


class Round:
    """Clients of a round, and in `packets` what came to each of them and to the server.

    With `placed`, the users that drop out are places on the order of the graph, and the last packets are not delivered.
    """

    def __init__(self, updates: Sequence[Any], drop: Mapping[str, Sequence[int]], placed: bool = False) -> None:
        self.updates, self.drop, self.placed = updates, drop, placed
        self.clients = [Client(POLICY, MemoryJournal()) for _ in updates]
        self.memories: list[Memory] = [[] for _ in updates]
        self.order: tuple[int, ...] = tuple(range(len(updates)))
        self.packets: dict[int, list[Packet]] = {party: [] for party in (*range(len(updates)), SERVER)}
        self.gone: set[int] = set()
        self.lines: list[str] = []

    def run(self, settings: server.Settings) -> server.Result:
        """Return the result of the round."""
        shape = [np.zeros(max((len(update) for update in self.updates[:1]), default=0))]
        result = server.run(settings, range(len(self.updates)), shape, 0, self.exchange, self.lines.append)
        if result is None:
            raise ended(self.lines)
        return result

    def exchange(self, phase: str, packets: Mapping[int, Packet]) -> Iterable[tuple[int, Packet]]:
        """Deliver packets; what a client refuses ends the round."""
        if self.placed and phase == ROUND_PHASES[0]:
            self.order = plans.read(next(iter(packets.values()))["plan"]).order
        self.gone |= {self.order[place] for place in self.drop.get(phase, ())}
        asked = {user: packet for user, packet in packets.items() if user not in self.gone}
        for user, packet in asked.items():
            self.packets[user].append(packet)
        if self.placed and phase == LAST:
            raise Reached
        replies = {user: self.handle(user, packet) for user, packet in asked.items()}
        self.packets[SERVER] += replies.values()
        return replies.items()

    def handle(self, user: int, packet: Packet) -> Packet:
        """Return the reply of a client; raise what it refuses."""
        weighted = np.append(self.updates[user], np.uint64(1)).astype(np.uint64)
        handled = self.clients[user].handle(packet, self.memories[user], lambda plan: weighted)
        self.memories[user] = handled.memory
        if handled.refused is not None:
            raise handled.refused
        return handled.reply


def summed(*, R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> tuple[Round, server.Result]:
    """Play a round that sums integers."""
    check_drop(drop, N)
    if readers.number("R", R) != 2**32:
        raise errors.ParameterError("R", R, str(2**32))
    if len(updates) != N:
        raise errors.LengthMismatch("len(updates)", len(updates), f"N = {N}")
    phases = dict(zip(SUM_PHASES, (ROUND_PHASES[0], ROUND_PHASES[2], LAST), strict=True))
    rows = [readers.vector(f"updates[{at}]", text) for at, text in enumerate(updates)]
    if not all(row.size for row in rows):
        raise errors.LengthMismatch("updates", "one without elements", "at least one element each")
    played = Round(rows, {phases[name]: users for name, users in drop.items()})
    return played, played.run(server.Settings(plans.SECAGG, t, most=1, largest=1.0))


def total(**given: Any) -> dict[str, Any]:
    """Return the sum of a round."""
    _, result = summed(**given)
    return {"sum": pack(result.total[:-1]), "contributors": list(result.contributors)}


def view(viewer: int | str, **given: Any) -> dict[str, Any]:
    """Return what comes to a party in such a round."""
    stay = set(range(given["N"])) - {user for users in given["drop"].values() for user in users}
    if viewer not in {*stay, "server"} or isinstance(viewer, bool):
        raise errors.UnknownUser("viewer", viewer, '"server" or a user that stays to the end')
    played, _ = summed(**given)
    vectors, strings = list[str](), list[str]()
    for packet in played.packets[SERVER if viewer == "server" else int(viewer)]:
        for data in packet.get("messages", []):
            if int.from_bytes(data[:2], "little") == secagg.MaskedInput.TYPE:
                vectors.append(pack(codec.decode(secagg.MaskedInput, data).masked))
            else:
                strings.append(data.hex())
        strings += [packet["plan"].hex()] if "plan" in packet else []
    return {"vectors": vectors, "strings": strings}


def unmasking(
    N: int, t: int, k: int, drop: dict[str, list[int]], user: int, requests: list[dict[str, list[int]]]
) -> dict[str, Any]:
    """Play a round up to the last packets, and give a client these requests in place of its own."""
    check_drop(drop, N)
    if user not in range(N) or any(user in users for users in drop.values()):
        raise errors.UnknownUser("user", user, "a user that sends a masked input")
    played = Round([np.zeros(1)] * N, drop, placed=True)
    with suppress(Reached):
        played.run(server.Settings(plans.SECAGG, t, None if k == N - 1 else k + 1))
    here = played.order[user]
    packet = played.packets[here][-1]
    (own,) = read_messages((secagg.UnmaskRequest,), packet, SERVER)
    places, answers = {node: place for place, node in enumerate(played.order)}, list[dict[str, Any]]()
    for asked in requests:
        there = {name: sorted(played.order[u] if u in range(N) else u for u in users) for name, users in asked.items()}
        try:
            message = replace(own, **{name: tuple(users) for name, users in there.items()})  # type: ignore[arg-type]
            reply = played.handle(here, {**packet, "messages": [codec.encode(message)]})
        except (errors.ParameterError, errors.ProtocolError) as error:
            answers.append({"reject": {"code": reject_code(error), "message": str(error)}})
            continue
        shares = codec.decode(secagg.UnmaskShares, reply["messages"][0])
        found = {"seeds": shares.survivors, "keys": shares.dropped}
        answers.append({name: sorted(places[u] for u in users) for name, users in found.items()})
    return {"answers": answers}


# ---------------------------------------------------------------------------------------------- what is declared


def allowed(N: int, t: int, k: int) -> bool:
    """Return whether a workflow with these numbers has these numbers, and they are allowed."""
    try:
        numbers = server.Settings(plans.SECAGG, t, None if k == N - 1 else k + 1).numbers(N, N, 1)
        secagg.Parameters(**numbers)
    except errors.ParameterError:
        return False
    return numbers["k"] == k and numbers["t"] == t


SETS = [{"N": N, "t": t, "k": k} for N in range(3, 8) for k in range(2, N) for t in range(2, k + 2) if allowed(N, t, k)]
COMPLETE = [{"N": numbers["N"], "t": numbers["t"]} for numbers in SETS if numbers["k"] == numbers["N"] - 1]
RING = {"R": {"values": [str(R)]}}
SCALED: dict[str, Any] = {"ranges": RING, "parameter_sets": SETS, "composed": True, "randomness": "none"}
STEPS = ("prg.expand", "key.agree", "key.derive", "quantizer.quantize", "quantizer.dequantize", "shamir.", "pair.")
"""What the steps of a round call."""


def build() -> Adapter:
    """Return the adapter."""
    adapter = Adapter(
        "secagg-spec in Flower", f"{__version__} in {metadata.version('flwr')}", policy={"average.weights": "quantised"}
    )
    adapter.operation("echo")(lambda data: {"data": data})
    adapter.operation("secagg.average", **SCALED)(refusing(average))
    adapter.operation("secagg.recovery", **SCALED)(refusing(recovery))
    adapter.operation("secagg.sum", composed=True, ranges=RING, parameter_sets=COMPLETE)(refusing(total))
    adapter.operation("secagg.view", composed=True, ranges=RING, parameter_sets=COMPLETE)(refusing(view))
    adapter.operation("secagg.unmasking", parameter_sets=SETS, composed=True)(refusing(unmasking))
    for module in (arithmetic, crypto, pairs, shamir):
        for name, handler in module.HANDLERS.items():
            if name.startswith(STEPS):
                adapter.operation(name)(refusing(handler))
    return adapter


if __name__ == "__main__":
    build().run()
