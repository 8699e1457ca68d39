"""The server of a round, which is one sequence of phases: packets to the users, and their replies or none.

The steps are those of the reference. A user that gives no reply in a phase, or one that is refused, dropped out before
its step of that phase (FLW-13).

Source: spec/flower.md, section 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, prod
from typing import Any

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, MAX_MODULUS
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.crypto.entropy import Source, SystemSource, taken
from secagg_spec.crypto.keys import SESSION_BYTES, refuse_weak
from secagg_spec.crypto.signatures import verify
from secagg_spec.flower import plan as plans
from secagg_spec.flower import weights
from secagg_spec.flower.batches import Batches
from secagg_spec.flower.client import JOIN, read_messages, write_messages
from secagg_spec.flower.kinds import KINDS, Kind
from secagg_spec.flower.plan import VERSION, Packet, Plan, of_this_version, other_version, sealing_key_fields
from secagg_spec.protocols import codec, steps
from secagg_spec.protocols.secagg.graph import draw_order

Exchange = Callable[[str, dict[int, Packet]], Iterable[tuple[int, Packet | None]]]
"""Sends a packet to each node in a phase, and gives each node's reply as it comes; None, or none, if none came in time.

It may take the packets out of the mapping, so that what was sent needs no room any more.
"""
Report = Callable[[str], None]
Record = Callable[[Sequence[int]], None]
"""Writes down the nodes whose models the sum of a round will have."""
_LACKING = "its batch lacks another"
_ENDS = (errors.TooFewSurvivors, errors.BadShare)
"""Outcomes that end the round, also where users are blamed."""


@dataclass(frozen=True)
class Settings(validate.Plain):
    """How the server makes the plans of its rounds.

    Parameters
    ----------
    protocol : str
        One of `plan.PROTOCOLS`.
    threshold : int or float
        t of SecAgg, U of LightSecAgg; W as well in its active profile. A number below 1 is a part of the holders.
    holders : int or float, optional
        k + 1 of SecAgg: a user and its neighbours. A number up to 1.0 is a part of the users, rounded up to one for
        which there is a graph; all when left out.
    colluding : int, optional
        T; the largest that the threshold allows in SecAgg, and half the threshold in LightSecAgg, when left out.
    most : int
        The largest number of examples of one user.
    largest : float
        The largest magnitude of a parameter of the model, at least 2^-64; a user with a larger one refuses the round.
    level : int, optional
        The level of the quantiser; the largest power of two at which `largest` fits when left out.
    """

    protocol: str
    threshold: int | float
    holders: int | float | None = None
    colluding: int | None = None
    most: int = 1000
    largest: float = 8.0
    level: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("protocol", self.protocol, plans.PROTOCOLS)
        for name, value, least in (("threshold", self.threshold, self._least), ("holders", self.holders, 3)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            part = isinstance(value, float) and 0 < value <= 1
            if not whole and not part and (name, value) != ("holders", None):
                raise errors.ParameterError(name, value, f"an integer >= {least}, or a part in (0, 1], 1.0 for all")
        if isinstance(self.threshold, int) and isinstance(self.holders, int) and self.threshold > self.holders:
            raise errors.ParameterError("threshold", self.threshold, f"at most {self.holders}, the number of holders")
        validate.integer("most", self.most, 1)
        for name, optional in (("colluding", self.colluding), ("level", self.level)):
            if optional is not None:
                validate.integer(name, optional, 1)
        if not validate.finite(self.largest) or self.largest < 2.0**-64:
            raise errors.ParameterError("largest", self.largest, "a finite number of at least 2^-64")

    @property
    def _least(self) -> int:
        """The smallest threshold: that for one colluding user."""
        return 3 if self.protocol in (plans.SECAGG, plans.SECAGG_ACTIVE) else 2

    def numbers(self, N: int, sampled: int, d: int) -> dict[str, int]:
        """Return the parameters for N users, of whom `sampled` were asked: parts are parts of these.

        What else is not allowed is refused by the parameters of the protocol.
        """
        for name, value in (("N", N), ("sampled", sampled), ("d", d)):
            validate.integer(name, value, 0, validate.MAX_COUNT)
        holders = sampled if self.holders is None else _part(self.holders, sampled, 3)
        if holders > sampled:
            raise errors.ParameterError("holders", holders, f"at most {sampled}, the number of users that are asked")
        if holders < N and (holders - 1) * N % 2:  # there is no such graph
            if sampled == N and isinstance(self.holders, int):
                raise errors.ParameterError("holders", holders, f"such that (holders - 1) * {N} is even: {holders + 1}")
            holders += 1
        holders = min(holders, N)
        of = sampled if holders >= N else holders
        t = _part(self.threshold, of, self._least)
        signs = KINDS[self.protocol].signs
        if self.protocol in (plans.SECAGG, plans.SECAGG_ACTIVE):
            T = min(t - 2, 2 * t - N - 1) if signs else t - 2
            T = max(1, T) if self.colluding is None else self.colluding
            return {"R": MAX_MODULUS, "N": N, "D": max(0, N - max(t, T + 2)), "T": T, "t": t, "k": holders - 1, "d": d}
        T = max(1, min(t // 2, 2 * t - N - 1) if signs else t // 2) if self.colluding is None else self.colluding
        numbers = {"q": DEFAULT_PRIME, "N": N, "D": max(0, N - max(t, T + 2)), "U": t, "T": T, "d": d}
        return {**numbers, "W": t} if signs else numbers


def _part(value: int | float, of: int, least: int) -> int:
    """Return a number itself, and a part of another one rounded up, as its decimal digits say it."""
    return value if isinstance(value, int) else max(least, ceil(Fraction(repr(float(value))) * of))


class _EngineFault(errors.ParameterError):
    """The engine gave what no engine gives."""


@dataclass(frozen=True)
class Result:
    """The end of a round: the weighted mean of the arrays over `contributors` (nodes), and their total weight."""

    arrays: list[RealArray]
    weight: int
    contributors: tuple[int, ...]
    plan: Plan
    total: UintArray


def run(
    settings: Settings,
    nodes: Sequence[int],
    arrays: weights.Arrays,
    round: int,
    exchange: Exchange,
    report: Report,
    source: Source | None = None,
    record: Record = lambda nodes: None,
    batches: Batches | None = None,
) -> Result | None:
    """Run a round, and return its result, or None if it ends without a sum.

    Parameters
    ----------
    settings : Settings
    nodes : sequence of int
        The nodes that are asked to take part.
    arrays : sequence of arrays
        A model; only its shapes count.
    round : int
        The number of the round.
    exchange, report : callable
        How packets travel, and where a line about what went wrong goes: at most one for each phase, and one if the
        round ends without a sum.
    source : Source, optional
        The source of the nonce and of the order of the users.
    record : callable, optional
        Is called once, with the survivors before any user learns them; with none where the round ends before (FLW-17).
        If it raises, no user learns them, and the error goes through, whatever it is.
    batches : Batches, optional
        The batches of Multi-RoundSecAgg, whole or not at all in a sum (FLW-23).

    Raises
    ------
    DuplicateUser, ParameterError
        A node is listed twice, or the round is not in ``[0, 2**32)``.

    Settings that do not fit so many users end the round without a sum, since the next one may have others. So does an
    exchange that gives a second reply of a node, or one of a node that was not asked.
    """
    if len(set(validate.user_numbers("nodes", nodes))) < len(nodes):
        raise errors.DuplicateUser("nodes", nodes, "each node once")
    round = validate.integer("round", round, 0, steps.SERVER)
    recorded, failed = list[Sequence[int]](), list[Exception]()

    def announce(survivors: Sequence[int]) -> None:
        recorded.append(survivors)
        try:
            record(survivors)
        except Exception as error:
            failed.append(error)
            raise

    try:
        shapes = weights.shapes_of(arrays)
        opened = _open(
            settings, nodes, shapes, round, exchange, report, SystemSource() if source is None else source, batches
        )
        return _Server(*opened, exchange, report, announce, batches).run()
    except (errors.ProtocolError, errors.ParameterError) as error:
        if failed:
            raise
        report(f"round {round} ends without a sum: {type(error).__name__}: {error}")
        if not recorded:
            record(())
        return None


def _open(
    settings: Settings,
    nodes: Sequence[int],
    shapes: tuple[tuple[int, ...], ...],
    round: int,
    exchange: Exchange,
    report: Report,
    source: Source,
    batches: Batches | None,
) -> tuple[Plan, tuple[int, ...]]:
    """Return the plan of a round and its users' nodes; where the protocol has keys, they are those that sent theirs."""
    kind, nonce = KINDS[settings.protocol], taken(source, SESSION_BYTES)
    nodes = nodes if batches is None else batches.whole(nodes)
    present, sent = tuple(nodes), dict[int, dict[str, bytes]]()
    if kind.joining:
        packet: Packet = {"version": VERSION, "phase": JOIN, "protocol": settings.protocol, "nonce": nonce}
        sent = _joined(
            kind, nonce, dict(_replies(exchange, JOIN, dict.fromkeys(nodes, packet))), nodes, report, batches
        )
        present = tuple(sent)
    keys = {name: tuple(sent[node][name] for node in present) for name in kind.joining}
    N, d = len(present), sum(map(prod, shapes)) + 1
    numbers = settings.numbers(N, len(nodes), d)
    if batches is not None and settings.colluding is None:
        fewer = replace(settings, colluding=min(numbers["T"], batches.parameters.T - 2))
        numbers = fewer.numbers(N, len(nodes), d)
    enough = max(numbers.get("t", 0), numbers.get("U", 0), numbers["T"] + 2)
    if enough > N:
        raise errors.TooFewSurvivors(f"{N} users are there and {enough} are needed")
    level = settings.level or weights.level_for(numbers.get("R", numbers.get("q", 0)), N, settings.largest)
    order: tuple[int, ...] = ()
    if "k" in numbers:
        order = draw_order(source, N) if numbers["k"] < N - 1 else tuple(range(N))
    most, largest = settings.most, settings.largest.as_integer_ratio()
    plan = Plan(settings.protocol, numbers, round, order, shapes, level, most, largest, nonce, **keys)
    if batches is not None:
        batches.check(present, kind.parameters(plan))
    return plan, present


def _joined(
    kind: Kind,
    nonce: bytes,
    replies: Mapping[int, Packet | None],
    nodes: Sequence[int],
    report: Report,
    batches: Batches | None,
) -> dict[int, dict[str, bytes]]:
    """Return the keys of the nodes that sent them; of nodes that sent one key, none counts."""
    found: dict[int, dict[str, bytes]] = {}
    left: dict[int, str] = {}
    for node in nodes:
        try:
            found[node] = _keys(kind, nonce, replies.get(node))
        except errors.ProtocolError as error:
            left[node] = str(error)
    sent = Counter(keys[name] for keys in found.values() for name in keys)
    for node in [node for node, keys in found.items() if any(sent[key] > 1 for key in keys.values())]:
        del found[node]
        left[node] = "another node sent the same key"
    for node in set(found).difference(found if batches is None else batches.whole(found)):
        del found[node]
        left[node] = _LACKING
    _report_left(report, JOIN, left, len(nodes))
    return found


def _keys(kind: Kind, nonce: bytes, reply: Packet | None) -> dict[str, bytes]:
    """Return the keys of a reply, by their names in the plan, if all clients will accept them."""
    reply = _counted(reply, JOIN)
    if reply.get("nonce") != nonce:
        raise errors.WrongPhase("keys of another round")
    keys: dict[str, bytes] = {}
    for name, size in kind.joining.items():
        value = reply.get(name)
        if not isinstance(value, bytes) or len(value) != size:
            raise errors.Malformed(f"{name} is not {size} bytes")
        keys[name] = value
    if kind.seals:
        refuse_weak(keys["sealing"])
    if kind.seals and kind.signs:
        verify(keys["verification"], sealing_key_fields(nonce, keys["sealing"]), keys["signature"])
    return keys


def _replies(exchange: Exchange, phase: str, packets: dict[int, Packet]) -> Iterator[tuple[int, Packet | None]]:
    """Yield the replies to some packets, at most one of each node that was asked; else the engine is at fault."""
    waiting, found = set(packets), exchange(phase, packets)
    wanted = "a function that gives pairs of a node and its reply, or None for the reply"
    if not isinstance(found, Iterable):
        raise _EngineFault("exchange", f"one that gives {validate.class_of(found)}", wanted)
    for pair in found:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], Hashable):
            raise _EngineFault("exchange", f"one that gives {validate.class_of(pair)}s", wanted)
        node, reply = pair
        if node not in waiting:
            raise _EngineFault("node", node, f"one that was asked in {phase!r} and has not replied yet")
        waiting.remove(node)
        yield node, reply


def _counted(reply: Packet | None, phase: str) -> Packet:
    """Return a reply that counts in a phase (FLW-03, FLW-13)."""
    if reply is None:
        raise errors.WrongPhase("no reply")
    if not of_this_version(reply):
        raise errors.Malformed(other_version(reply))
    if "refused" in reply:
        code = reply["refused"]
        raise errors.WrongPhase(f"refused: {code if isinstance(code, str) and code in ALL_CODES else 'without a code'}")
    if reply.get("phase") != phase:
        raise errors.WrongPhase("a reply to another phase")
    return reply


def _report_left(report: Report, phase: str, left: Mapping[int, str], asked: int) -> None:
    if left:
        who = ", ".join(f"node {node} ({why})" for node, why in sorted(left.items()))
        report(f"{phase}: {len(left)} of {asked} dropped out: {who}")


class _Server:
    """The server in a round that has a plan."""

    def __init__(
        self,
        plan: Plan,
        nodes: tuple[int, ...],
        exchange: Exchange,
        report: Report,
        announce: Record,
        batches: Batches | None,
    ) -> None:
        self.plan, self.nodes, self.exchange, self.report = plan, nodes, exchange, report
        self.announce, self.batches = announce, batches
        self.kind = KINDS[plan.protocol]
        self.state = self.kind.server(plan)

    def run(self) -> Result:
        """Run all phases."""
        mail: dict[int, list[codec.Message]] = {user: [] for user in range(len(self.nodes))}
        for phase in self.kind.phases:
            mail = self._phase(phase, mail)
            if phase == self.kind.masking:
                self.announce([self.nodes[user] for user in self.kind.total(self.state)[1]])
        total, users = self.kind.total(self.state)
        arrays, weight = weights.decode(self.plan, total, len(users))
        return Result(arrays, weight, tuple(self.nodes[user] for user in users), self.plan, total)

    def _phase(self, phase: str, mail: dict[int, list[codec.Message]]) -> dict[int, list[codec.Message]]:
        """Carry one phase: the step of the users that have mail, and then that of the server; `mail` is empty then."""
        users = {self.nodes[user]: user for user in mail}
        packets = {self.nodes[user]: self._packet(phase, user, mail.pop(user)) for user in list(mail)}
        step = self.kind.step(phase, steps.Role.SERVER)
        left = dict.fromkeys(users, "no reply")
        inbox: dict[int, list[codec.Message]] = {}
        try:
            for node, reply in _replies(self.exchange, phase, packets):
                user = users[node]
                try:
                    inbox[user] = self._read(step, phase, user, reply)
                    del left[node]
                except errors.ProtocolError as error:
                    left[node] = str(error)
                if step.part is not None:
                    self._add(step, inbox, left)
            outbox = self._take(step, {user: inbox[user] for user in users.values() if user in inbox}, left)
        except _EngineFault:
            left = {}  # nobody waited for the others
            raise
        finally:
            _report_left(self.report, phase, left, len(users))
        addressed: dict[int, list[codec.Message]] = {}
        for message in outbox:
            addressed.setdefault(message.receiver, []).append(message)
        return addressed

    def _packet(self, phase: str, user: int, messages: Sequence[codec.Message]) -> Packet:
        """Return what a user gets in a phase."""
        began = {"plan": self.plan.octets, "user": user} if phase == self.kind.phases[0] else {}
        return {"version": VERSION, "phase": phase, **write_messages(self.plan.session, messages), **began}

    def _read(self, step: steps.Step[Any], phase: str, user: int, reply: Packet | None) -> list[codec.Message]:
        """Return the messages of a reply; refuse any that is not from the user behind the node (FLW-14)."""
        counted = _counted(reply, phase)
        if counted.get("session") != self.plan.session:
            raise errors.WrongPhase("a reply of another session")
        messages = read_messages(step.receives, counted, user)
        if any(message.sender != user for message in messages):
            raise errors.Malformed("a message in another user's name", (user,))
        return messages

    def _add(self, step: steps.Step[Any], inbox: dict[int, list[codec.Message]], left: dict[int, str]) -> None:
        """Add the masked inputs that came, and keep none but those whose batch lacks another (FLW-23)."""
        while ready := self._whole(inbox):
            try:
                self.state = step.take_part(self.state, [message for user in ready for message in inbox[user]])
            except errors.ProtocolError as error:
                self._leave(error, inbox, left)
            else:
                for user in ready:
                    del inbox[user]

    def _whole(self, inbox: Mapping[int, Sequence[codec.Message]]) -> list[int]:
        """Return the users who sent something, and whose whole batch did."""
        sent = [user for user, messages in inbox.items() if messages]
        if self.batches is None:
            return sent
        whole = self.batches.whole([self.nodes[user] for user in sent])
        return [user for user in sent if self.nodes[user] in whole]

    def _take(
        self, step: steps.Step[Any], inbox: dict[int, list[codec.Message]], left: dict[int, str]
    ) -> Sequence[codec.Message]:
        """Take the step of the server, without the users whose messages it refuses (FLW-15)."""
        if step.part is not None:
            left.update((self.nodes[user], _LACKING if sent else "no masked input") for user, sent in inbox.items())
            inbox = {}
        while True:
            messages = [message for sent in inbox.values() for message in sent]
            try:
                self.state, outbox = step.take(self.state, messages, randomness={})
            except errors.ProtocolError as error:
                self._leave(error, inbox, left)
            else:
                return outbox

    def _leave(self, error: errors.ProtocolError, inbox: dict[int, Any], left: dict[int, str]) -> None:
        """Leave out the users that a refusal blames; raise it if it blames none, or ends the round (FLW-15)."""
        blamed = error.blamed & set(inbox)
        if isinstance(error, _ENDS) or not blamed:
            raise error
        for user in blamed:
            del inbox[user]
            left[self.nodes[user]] = str(error)


guard(__name__)
