"""The state of a BASecAgg server between two steps as JSON data: how to store it and how to restore the server.

A vector is stored as the hex digits of its bytes as a field of a message.

Source: spec/basecagg.md, section 9 (BSA-35).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import RealArray, UintArray, frozen
from secagg_spec.errors import InconsistentSets, ParameterError
from secagg_spec.protocols.basecagg.round import (
    LAST_ROUND,
    Entry,
    Parameters,
    Record,
    Recovered,
    ServerState,
    check_entries,
    server_start,
)
from secagg_spec.protocols.buffers import average
from secagg_spec.protocols.codec import stored_vector, vector_bytes

FORMAT = "basecagg-server-1"
_MEMBERS = ("format", "parameters", "session", "round", "records", "buffer", "entries", "recovered")
_USER = re.compile("0|[1-9][0-9]{0,15}")
_Value = TypeVar("_Value")


def store(state: ServerState) -> dict[str, Any]:
    """Return the state of a server as JSON data (BSA-35)."""
    return {
        "format": FORMAT,
        "parameters": asdict(state.parameters),
        "session": state.session.hex(),
        "round": state.round,
        "records": {str(user): asdict(record) for user, record in state.records.items()},
        "buffer": {str(user): vector_bytes(masked).hex() for user, masked in state.buffer.items()},
        "entries": [asdict(entry) for entry in state.entries],
        "recovered": None if state.recovered is None else _stored(state.recovered),
    }


def _stored(recovered: Recovered) -> dict[str, Any]:
    """Return a recovered buffer without its average, which follows from the rest."""
    entries = [asdict(entry) for entry in recovered.entries]
    return {"round": recovered.round, "entries": entries, "sum": vector_bytes(recovered.sum).hex()}


def restore(data: Mapping[str, Any], kind: type[Parameters] = Parameters) -> ServerState:
    """Return the server that resumes from the data of `store`, with parameters of class `kind` (BSA-35).

    Raises
    ------
    ParameterError
        The data is not what `store` returns.
    """
    given = validate.mapping("data", data).get("format")
    if not isinstance(given, str) or given != FORMAT:
        raise ParameterError("format", given, FORMAT)
    if not issubclass(kind, Parameters):
        raise ParameterError("kind", kind.__name__, "a class of parameters of BASecAgg")
    data = validate.members("data", data, _MEMBERS)
    parameters = _parameters(kind, data["parameters"])
    start = server_start(parameters, validate.from_hex("session", data["session"]), data["round"])
    records = _by_user(parameters, "records", data["records"], lambda value: _record(start.round, value))
    buffer = _by_user(parameters, "buffer", data["buffer"], lambda value: _vector(parameters, "buffer", value))
    entries = _entries(parameters, data["entries"])
    recovered = None if data["recovered"] is None else _recovered(parameters, data["recovered"])
    state = ServerState(parameters, start.session, start.round, records, buffer, entries, recovered)
    _check(state)
    validate.stored(data, store(state))
    return state


def _check(state: ServerState) -> None:
    """Refuse an unreachable state: updates without a record, or entries that do not belong to the buffer."""
    taken = {user for user in state.buffer if user in state.records and state.records[user].taken}
    if taken != set(state.buffer) or len(taken) > state.parameters.K:
        raise ParameterError("buffer", sorted(state.buffer), "users whose updates were taken, at most K")
    named = {entry.user: entry.stamp for entry in state.entries}
    if state.entries and named != {user: state.records[user].stamp for user in state.buffer}:
        raise ParameterError("entries", sorted(named.items()), "those of the buffer, with their stamps")
    _check_announced(state)
    _check_records(state)


def _check_announced(state: ServerState) -> None:
    """Refuse entries that no user would answer for (BSA-20 to BSA-23)."""
    if not state.entries:
        return
    if state.round >= LAST_ROUND:
        raise ParameterError("round", state.round, f"below {LAST_ROUND} while a buffer is recovered")
    _accepted("entries", state.parameters, state.round, state.entries)


def _accepted(name: str, parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
    """Refuse entries that users refuse in a round."""
    try:
        check_entries(parameters, round, entries)
    except InconsistentSets as refused:
        raise ParameterError(name, str(refused), "a buffer that users accept") from refused


def _check_records(state: ServerState) -> None:
    """Refuse updates accepted before their shares were relayed, old ones that wait, new ones that do not, lost ones."""
    for user, record in state.records.items():
        if record.taken and not record.relayed:
            raise ParameterError("records", user, "a user whose shares were relayed before its update was taken")
        if record.taken and record.stamp == state.round and user not in state.buffer:
            raise ParameterError("records", user, "a user whose update of this round waits in the buffer")
    old = [user for user in state.buffer if state.round - state.records[user].stamp > state.parameters.tau_max]
    if old:
        raise ParameterError("buffer", old, f"updates at most tau_max = {state.parameters.tau_max} rounds old")
    if state.recovered is None:
        return
    if state.recovered.round != state.round - 1:
        raise ParameterError("recovered", state.recovered.round, f"the round before {state.round}")
    for entry in state.recovered.entries:
        known = state.records.get(entry.user)
        if known is None or (known.stamp, known.taken) < (entry.stamp, True):
            raise ParameterError("recovered", entry.user, "users whose records have the stamp, taken, or a newer one")
        if entry.user in state.buffer and known.stamp == entry.stamp:
            raise ParameterError("buffer", entry.user, "updates that are not in the sum that was recovered")
    kept = set(state.buffer) | {entry.user for entry in state.recovered.entries}
    for user, record in state.records.items():
        if record.taken and record.stamp == state.recovered.round and user not in kept:
            raise ParameterError("records", user, "a user whose update waits, or is in the sum that was recovered")


def _parameters(kind: type[Parameters], value: object) -> Parameters:
    numbers = validate.members("parameters", value, kind)
    return kind(**{**numbers, "staleness": Staleness(**validate.members("staleness", numbers["staleness"], Staleness))})


def _by_user(parameters: Parameters, name: str, values: object, read: Callable[[Any], _Value]) -> dict[int, _Value]:
    given = validate.mapping(name, values)
    for user in given:
        if not isinstance(user, str) or not _USER.fullmatch(user):
            allowed = f"the digits of a user, without a needless zero or space, as each name in {name}"
            raise ParameterError("user", validate.class_of(user), allowed)
    return {validate.integer("user", int(user), 0, parameters.N - 1): read(value) for user, value in given.items()}


def _record(round: int, value: object) -> Record:
    record = Record(**validate.members("records", value, Record))
    validate.integer("stamp", record.stamp, 0, round)
    for name in ("relayed", "taken"):
        if not isinstance(getattr(record, name), bool):
            raise ParameterError(name, validate.class_of(getattr(record, name)), "true or false")
    return record


def _entries(parameters: Parameters, values: object) -> tuple[Entry, ...]:
    listed = validate.sequence("entries", values, "entries of a buffer")
    entries = tuple(Entry(**validate.members("entries", value, Entry)) for value in listed)
    for entry in entries:
        validate.integer("user", entry.user, 0, parameters.N - 1)
        validate.integer("stamp", entry.stamp, 0, validate.MAX_COUNT)
        validate.integer("weight", entry.weight, 1, parameters.c_g)
    if entries and len(entries) != parameters.K:
        raise ParameterError("entries", len(entries), f"K = {parameters.K} or none")
    return entries


def _vector(parameters: Parameters, name: str, value: object) -> UintArray:
    return frozen(parameters.field.check(name, stored_vector(name, value), (parameters.d,)))


def _recovered(parameters: Parameters, given: object) -> Recovered:
    value = validate.members("recovered", given, ("round", "entries", "sum"))
    entries, total = _entries(parameters, value["entries"]), _vector(parameters, "sum", value["sum"])
    round = validate.integer("round", value["round"], 0, validate.MAX_COUNT)
    _accepted("recovered", parameters, round, entries)
    weights = np.array([entry.weight for entry in entries], dtype=np.uint64)
    mean: RealArray = frozen(average(parameters.field, parameters.c_l, weights, total))
    return Recovered(round, entries, total, mean)


guard(__name__)
