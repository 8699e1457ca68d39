"""The command ``secagg-spec round``: whole rounds in which different implementations play the parties."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from secagg_spec import __version__, signals, system
from secagg_spec.commands.parsers import PROTOCOLS, REFERENCE
from secagg_spec.conformance.adapter import generators, values
from secagg_spec.conformance.adapter.capabilities import HELLO, Capabilities, greet
from secagg_spec.conformance.adapter.connection import Connection, ProcessConnection
from secagg_spec.conformance.adapter.plain import clip, counted, fit_for_json, for_encoding, pasted, shown
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, Answer, Request
from secagg_spec.conformance.cases import basa_sessions, basecagg_sessions, drawn_rounds
from secagg_spec.conformance.checks import Check, playing
from secagg_spec.conformance.checks.base import Caller, Exchange
from secagg_spec.conformance.running.runner import Failure, Settings, run_check
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.basa_stage import PositionStage
from secagg_spec.conformance.sessions.basecagg_stage import Stage
from secagg_spec.conformance.sessions.inputs import NOBODY, Dropouts, SessionInputs, called
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.targets import TARGETS, TargetAbsent
from secagg_spec.errors import TooFewSurvivors, UsageError
from secagg_spec.protocols.steps import AUTHORITY, SERVER

SCHEMA = "secagg-spec-round/1"
_VALUE = 200
_WITH_AUTHORITY = "basa"
Act = Callable[[Mapping[int, Player]], object]


# ------------------------------------------------------------------------------------------------------------ playing


@dataclass
class Table:
    """The adapters of a round as one connection: each request goes to the adapter that plays its party."""

    connections: dict[str, Connection]
    seats: dict[str, str] = field(default_factory=dict)
    """The adapter of each session, by the session's handle."""

    def ask(self, request: Request) -> Answer:
        """Return the answer of the adapter that owns the session; a `hello` greets all adapters."""
        if request.op == HELLO.op:
            return [self._asked(name, request) for name in self.connections][-1]
        return self._asked(self.owner(request), request)

    def _asked(self, name: str, request: Request) -> Answer:
        """Return the answer of an adapter; name the adapter that cannot be used."""
        try:
            return self.connections[name].ask(request)
        except AdapterUnusable as unusable:
            raise AdapterUnusable(f"{name}: {unusable}") from None

    def owner(self, request: Request) -> str:
        """Return the name of the adapter that a request goes to."""
        return self.seats[request.params["handle"]]

    def ask_raw(self, line: bytes, id: int | None) -> Answer:
        """Refuse: a round sends requests only."""
        raise NotImplementedError

    def restart(self) -> None:
        """Start fresh adapters."""
        for connection in self.connections.values():
            connection.restart()

    def close(self) -> None:
        """Stop the adapters."""
        for connection in self.connections.values():
            connection.close()

    def expect_hang(self, hanging: bool) -> None:
        """Pass the setting on."""
        for connection in self.connections.values():
            connection.expect_hang(hanging)


@dataclass(frozen=True)
class _Through:
    """One adapter in a round; records its requests and answers."""

    table: Table
    name: str
    call: Caller

    def ask(self, request: Request) -> Answer:
        """Return the answer, and record it; the player handles an adapter that breaks."""
        self.table.seats[request.params["handle"]] = self.name
        self.call.asked += 1
        try:
            answer = self.table.ask(request)
        except AdapterBroken:
            self.call.transcript.append(Exchange(request, None))
            raise
        self.call.transcript.append(Exchange(request, answer))
        return answer


@dataclass(frozen=True)
class Fault:
    """The first fault of a round: the difference, the round, the adapter of each party, and the requests so far."""

    difference: Difference
    inputs: SessionInputs
    dropouts: Dropouts
    seating: Mapping[int, str]

    @property
    def adapter(self) -> str:
        """The implementation of the party at fault."""
        return self.seating[self.difference.party]

    def as_json(self) -> dict[str, Any]:
        """Return the fault as data: party, phase, message, field and element (CNF-40)."""
        spot = self.difference.spot
        where = {} if spot is None else {name: shown(str(value), _VALUE) for name, value in vars(spot).items()}
        return {
            "protocol": self.inputs.protocol,
            "numbers": dict(self.inputs.numbers),
            "dropouts": {phase: list(users) for phase, users in self.dropouts.items() if users},
            "seating": {called(party): name for party, name in self.seating.items()},
            "verdict": self.difference.verdict,
            "party": called(self.difference.party),
            "played_by": self.adapter,
            "phase": self.difference.phase,
            "where": where,
            "message": clip(str(self.difference), 2000),
        }


@dataclass
class Pair:
    """A server, the users that it plays with, one protocol, and the results."""

    protocol: str
    server: str
    users: tuple[str, ...]
    authority: str = REFERENCE
    missing: str = ""
    rounds: int = 0
    whole: bool = False
    fault: Fault | None = None
    failure: Failure | None = None

    @property
    def names(self) -> set[str]:
        """The names of the implementations that play."""
        return {self.server, *self.users, *([self.authority] if self.protocol == _WITH_AUTHORITY else [])}

    def seating(self, inputs: SessionInputs) -> dict[int, str]:
        """Return the implementation of each party: user implementations alternate."""
        keys = {AUTHORITY: self.authority} if self.protocol == _WITH_AUTHORITY else {}
        return {SERVER: self.server, **keys, **dict(zip(inputs.users, cycle(self.users), strict=False))}


def play(pair: Pair, table: Table, caps: Mapping[str, Capabilities], settings: Settings) -> None:
    """Play rounds of one pair until the first fault, and shrink that fault; store the results in the pair.

    Raises
    ------
    AdapterUnusable
        An adapter could not be restarted.
    """

    def judge(draw: Any, call: Caller) -> None:
        inputs, dropouts, act = drawn_round(draw, pair.protocol)
        seating = pair.seating(inputs)
        players = {
            party: Player(_Through(table, name, call), caps[name])
            for party, name in seating.items()
            if name != REFERENCE
        }
        try:
            with contextlib.suppress(TooFewSurvivors):
                act(players)
            pair.rounds += 1
        except Difference as difference:
            pair.rounds += 1
            pair.fault = Fault(difference, inputs, dropouts, seating)
            raise playing.failed(difference) from None

    check = Check(f"round/{pair.protocol}", ("CNF-40",), (), judge, lambda caps: True, "")
    anybody = next(iter(caps.values()))
    outcome = run_check(table, anybody, check, settings)
    pair.whole, pair.failure = True, outcome.failure


def drawn_round(draw: Any, protocol: str) -> tuple[SessionInputs, Dropouts, Act]:
    """Draw a round of a protocol: its inputs, its dropouts, and the function that plays it."""
    if protocol.startswith("basecagg"):
        played = basecagg_sessions.played(draw, active=protocol != "basecagg")
        trimmed = basecagg_sessions.trimmed(draw, played)
        return trimmed, NOBODY, lambda players: Stage.played(trimmed, players, played.turns)
    if protocol == _WITH_AUTHORITY:
        visited = basa_sessions.session(draw).stage
        return visited.inputs, NOBODY, lambda players: PositionStage.played(visited.inputs, players, visited.turns)
    inputs = drawn_rounds.inputs(draw, protocol)
    dropouts = drawn_rounds.dropouts(draw, inputs, draw(st.integers(0, 2)))
    return inputs, dropouts, lambda players: mixed.play(inputs, players, dropouts)


def pairs(protocols: Sequence[str], servers: Sequence[str], users: Sequence[str], authority: str) -> list[Pair]:
    """Return each server with each user implementation, and with all of them alternating if there are several."""
    groups = [(user,) for user in users] + ([tuple(users)] if len(users) > 1 else [])
    return [
        Pair(protocol, server, group, authority) for protocol in protocols for server in servers for group in groups
    ]


def missing(pair: Pair, caps: Mapping[str, Capabilities]) -> str:
    """Return why a pair cannot be played; empty if it can."""
    needed = [(pair.server, f"{pair.protocol}.server"), *((user, f"{pair.protocol}.user") for user in pair.users)]
    needed += [(pair.authority, f"{pair.protocol}.authority")] if pair.protocol == _WITH_AUTHORITY else []
    for name, party in needed:
        if name != REFERENCE and party not in caps[name].parties:
            listed = ", ".join(caps[name].parties) or "none"
            return f"{name} does not declare the party {party} (session.new, parties: {listed})"
    own = [name for name in sorted(pair.names - {REFERENCE}) if _own_code(pair.protocol, caps[name])]
    if own and len(pair.names) > 1:
        return f"{own[0]} shares masks with its own code (policy mds.code), which others cannot decode"
    own = [name for name in sorted(pair.names - {REFERENCE}) if generators.own(caps[name])]
    if own and len(pair.names) > 1 and pair.protocol in generators.STREAMED:
        return f"{own[0]} draws masks from its own generator (policy prg.stream), which others do not have"
    return ""


def _own_code(protocol: str, caps: Capabilities) -> bool:
    return protocol.startswith(mixed.CODED) and caps.policy("mds.code") != "vandermonde"


# ------------------------------------------------------------------------------------------------------------ command


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    protocols = _protocols(given.protocol)
    servers, users = given.server or [REFERENCE], given.user or [REFERENCE]
    names = [name for name in dict.fromkeys([*servers, *users, given.authority]) if name != REFERENCE]
    if given.authority != REFERENCE and protocols and "basa" not in protocols:
        raise UsageError("--authority needs --protocol basa: no other protocol has an authority")
    if not names:
        raise UsageError("name an implementation other than the reference with --server, --user or --authority")
    values.writable_folder("--repro", given.repro)
    connections = {name: _connection(name, given) for name in names}
    table, played, unusable, interrupted = Table({**connections}), list[Pair](), "", None
    try:
        caps = {name: _greeted(name, connection) for name, connection in connections.items()}
        sides = list(dict.fromkeys(servers)), list(dict.fromkeys(users))
        played = pairs(protocols or PROTOCOLS, *sides, given.authority)
        _refuse_missing(played, caps, chosen=bool(protocols))
        for pair in played:
            if not pair.missing and pair.names != {REFERENCE}:
                play(pair, table, caps, Settings(cases=given.rounds, seed=given.seed))
    except AdapterUnusable as error:
        unusable = f"cannot be used: {shown(str(error))}"
    except KeyboardInterrupt as end:
        interrupted = end
        signals.heed()
    finally:
        table.close()
    written = {number: _write(pair, table, given.repro, number) for number, pair in enumerate(played, 1)}
    lines = [*(_report(played, written) if played else ()), *([unusable] if unusable else ())]
    print(for_encoding("\n".join(lines), sys.stdout.encoding or "utf-8"))
    if unusable:
        return 3
    if any(pair.fault for pair in played):
        return 1
    if interrupted is not None:
        raise interrupted
    return 0 if any(pair.rounds for pair in played) else 4


def _protocols(named: Sequence[str]) -> list[str]:
    unknown = [name for name in named if name not in PROTOCOLS]
    if unknown:
        raise UsageError(f"--protocol {unknown[0]}: the protocols with rounds are {', '.join(PROTOCOLS)}")
    return list(dict.fromkeys(named))


def _connection(name: str, given: argparse.Namespace) -> ProcessConnection:
    if name in TARGETS:
        try:
            connection = TARGETS[name].connect(given.timeout)
        except TargetAbsent as absent:
            raise UsageError(f"{name}: not on this machine: {absent}") from None
        connection.start_timeout = given.start_timeout
        return connection
    try:
        command = shlex.split(name)
    except ValueError as error:
        raise UsageError(f"{name!r} is not a command line: {error}") from None
    if not command:
        raise UsageError(f"{name!r} is neither one of {', '.join(TARGETS)}, nor a command line")
    return ProcessConnection(command, given.timeout, given.start_timeout)


def _greeted(name: str, connection: ProcessConnection) -> Capabilities:
    try:
        return greet(connection.ask)
    except AdapterUnusable as unusable:
        raise AdapterUnusable(f"{name}: {unusable}") from None


def _refuse_missing(played: Sequence[Pair], caps: Mapping[str, Capabilities], *, chosen: bool) -> None:
    """Record why pairs cannot be played; an error for a protocol that was asked for."""
    for pair in played:
        pair.missing = missing(pair, caps)
        if pair.missing and chosen:
            raise UsageError(f"--protocol {pair.protocol}: {shown(pair.missing)}")


def _write(pair: Pair, table: Table, folder: Path, number: int) -> dict[Path, str]:
    """Write the requests to each adapter at fault, and the fault as JSON; return the adapter of each file of requests.

    If the fault shows at a party of the reference, these are all adapters of the round. The files replace files of an
    earlier run with the same name, and links in their place (CNF-69).
    """
    if pair.fault is None or pair.failure is None:
        return {}
    playing = [name for name in table.connections if name in pair.fault.seating.values()]
    adapters = [pair.fault.adapter] if pair.fault.adapter != REFERENCE else playing
    paths = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for at, adapter in enumerate(adapters, 1):
            path = folder / f"round-{pair.protocol}-{number}{f'-{at}' if adapters[1:] else ''}.jsonl"
            asked = [e for e in pair.failure.transcript if _owner(table, e.request) == adapter]
            lines = [request.line(at) for at, request in enumerate([HELLO, *(e.request for e in asked)])]
            system.write_whole(path, "".join(lines), follow=False)
            body = {"schema": SCHEMA, "kit": __version__, "adapter": adapter, **pair.fault.as_json()}
            body["answers_seen"] = [e.answer.as_json() if e.answer else None for e in asked]
            text = json.dumps(fit_for_json(body), indent=2, allow_nan=False) + "\n"
            system.write_whole(path.with_suffix(".round.json"), text, follow=False)
            paths[path] = adapter
    except OSError as error:
        raise UsageError(f"--repro {folder}: {error.strerror}") from None
    return paths


def _owner(table: Table, request: Request) -> str:
    return table.seats.get(str(request.params.get("handle")), "")


def _report(played: Sequence[Pair], written: Mapping[int, Mapping[Path, str]]) -> Iterator[str]:
    rows = [("protocol", "server", "users", "rounds", "result"), *map(_row, played)]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
    for number, pair in enumerate(played, 1):
        if pair.fault is not None:
            yield from ("", *_fault(pair, pair.fault, written[number]))
    for reason in dict.fromkeys(pair.missing for pair in played if pair.missing):
        yield f"not played: {shown(reason)}"
    faults, total = sum(pair.fault is not None for pair in played), sum(pair.rounds for pair in played)
    yield f"{counted(total, 'round')} played, {faults} of {counted(len(played), 'pair')} with a fault"


def _row(pair: Pair) -> tuple[str, ...]:
    played = ("ok" if pair.whole else "ended early") if pair.rounds else "not played"
    result = "not declared" if pair.missing else "FAIL" if pair.fault else played
    users = " + ".join(shown(user, 40) for user in pair.users)
    return pair.protocol, shown(pair.server, 40), users, str(pair.rounds), result


def _fault(pair: Pair, fault: Fault, paths: Mapping[Path, str]) -> Iterator[str]:
    """Yield the lines about a fault: party, phase, message, field, element (CNF-40)."""
    difference, spot = fault.difference, fault.difference.spot
    verdict = pair.failure.verdict if pair.failure else difference.verdict
    users = shown(" + ".join(pair.users), 100)
    yield f"FAIL     {pair.protocol}   server {shown(pair.server, 60)}, users {users}   {verdict}"
    yield f"         party:    {called(difference.party)}, played by {shown(fault.adapter)}"
    yield f"         phase:    {difference.phase}"
    if spot is not None:
        element = "" if spot.element is None else f", element {spot.element}"
        yield f"         message:  {spot.number} ({spot.type}), field {spot.field}{element}"
        yield f"         got:      {shown(str(spot.got), _VALUE)}"
        yield f"         must be:  {shown(str(spot.wanted), _VALUE)}"
    else:
        yield f"         what:     {shown(pair.failure.message if pair.failure else str(difference), 400)}"
    dropouts = "; ".join(f"{phase}: {', '.join(map(str, users))}" for phase, users in fault.dropouts.items() if users)
    yield f"         round:    {len(fault.inputs.users)} users, dropouts {dropouts or 'none'}"
    if fault.adapter == REFERENCE:
        yield "         the reference plays this party: the fault is in what it received from another party"
    for path, adapter in paths.items():
        command = "./adapter" if adapter in TARGETS else pasted(shlex.split(adapter))
        yield f"         replay:   {command} < {pasted([str(path)])}"
