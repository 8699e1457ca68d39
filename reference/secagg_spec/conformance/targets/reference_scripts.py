"""Scripts: one party of a round, step by step, over the reference's table of phases (spec/adapter.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.codes import reject_code
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.targets import readers
from secagg_spec.conformance.targets.reference_crypto import channel, session_parameters
from secagg_spec.conformance.targets.reference_messages import named, parse
from secagg_spec.conformance.wire import pack
from secagg_spec.crypto.channels import Channel, PlainChannel
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import lightsecagg
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.shape import Outbox, Randomness, Role, Table

End = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """One step of a script: its phase, and the bytes of the messages in its inbox."""

    phase: str
    inbox: tuple[bytes, ...] = ()


def play(table: Table, role: Role, state: Any, calls: Sequence[Call], sampled: Randomness, end: End) -> list[Any]:
    """Return one entry for each step that a party takes, in order; a refused one leaves the state as it was.

    Parameters
    ----------
    table, role
        The protocol's phases, and who the party is.
    state
        The party before its first step.
    calls : sequence of Call
        The steps.
    sampled : mapping from name to array
        The values that the steps take by name.
    end : function
        The members beside ``outbox`` that a state gives to the entry of the step that led to it.
    """
    rows = {step.phase: step for step in table if step.role is role}
    entries: list[Any] = []
    for call in calls:
        step = rows[call.phase]
        try:
            inbox = tuple(parse(data) for data in call.inbox)
            state, outbox = step.run(state, inbox, randomness={name: sampled[name] for name in step.randomness})
        except (ParameterError, ProtocolError) as error:
            entries.append({"reject": _rejection(error)})
        else:
            entries.append({"outbox": _written(outbox), **end(state)})
    return entries


def _written(outbox: Outbox) -> list[str]:
    return [encode(message).hex() for message in outbox]


def _rejection(error: ParameterError | ProtocolError) -> dict[str, Any]:
    blamed = sorted(error.blamed) if isinstance(error, ProtocolError) else []
    return {"code": reject_code(error), "message": str(error), "blamed": [named(party) for party in blamed]}


def read_calls(table: Table, role: Role, steps: Any) -> list[Call]:
    """Return the steps of a request."""
    phases = [step.phase for step in table if step.role is role]
    calls = []
    for at, value in enumerate(readers.formed("steps", steps, "list")):
        phase, inbox = readers.members(f"steps[{at}]", value, "phase", "inbox")
        if phase not in phases:
            raise Reject("malformed", f"steps[{at}].phase is {phase!r}; it must be one of {', '.join(phases)}")
        texts = readers.formed(f"steps[{at}].inbox", inbox, "bytes list")
        calls.append(Call(phase, tuple(readers.octets(f"steps[{at}].inbox", text) for text in texts)))
    return calls


def _channel(parameters: lightsecagg.Parameters, session: Any, round: Any, value: Any) -> Channel:
    if value == "plain":
        return PlainChannel()
    private, roster = readers.members("channel", value, "private", "roster")
    readers.formed("channel.private", private, "bytes")
    readers.formed("channel.roster", roster, "bytes list")
    sealed: Channel = channel(parameters, session, round, lightsecagg.MaskShare.TYPE, private, roster)
    return sealed


def read_sampled(parameters: lightsecagg.Parameters, rand: Mapping[str, Any]) -> Randomness:
    """Return the mask and the noise of a request."""
    shape = (parameters.T, parameters.share_length)
    mask = parameters.field.check("mask", readers.vector("mask", rand["mask"]), (parameters.d,))
    noise = parameters.field.check("noise", readers.shaped("noise", rand["noise"], *shape), shape)
    return {"mask": mask, "noise": noise}


def _user(
    q: Any, N: Any, D: Any, U: Any, T: Any, d: Any,
    session: Any, round: Any, user: Any, channel: Any, update: Any, steps: Any, rand: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    parameters = session_parameters(q, N, D, U, T, d)
    state = lightsecagg.user_start(
        parameters,
        readers.octets("session", session),
        readers.u32("round", round),
        readers.integer("user", user),
        readers.vector("update", update),
        _channel(parameters, session, round, channel),
    )
    calls = read_calls(lightsecagg.TABLE, Role.USER, steps)
    sampled = read_sampled(parameters, rand)
    return {"steps": play(lightsecagg.TABLE, Role.USER, state, calls, sampled, lambda state: {})}


def _server(
    q: Any, N: Any, D: Any, U: Any, T: Any, d: Any, session: Any, round: Any, steps: Any
) -> dict[str, Any]:  # fmt: skip
    parameters = session_parameters(q, N, D, U, T, d)
    state = lightsecagg.server_start(parameters, readers.octets("session", session), readers.u32("round", round))
    calls = read_calls(lightsecagg.TABLE, Role.SERVER, steps)
    return {"steps": play(lightsecagg.TABLE, Role.SERVER, state, calls, {}, server_end)}


def server_end(state: lightsecagg.ServerState) -> dict[str, Any]:
    """Return what the entry of the server's last step holds beside its outbox."""
    return {} if state.aggregate is None else {"aggregate": pack(state.aggregate)}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"lightsecagg.user": _user, "lightsecagg.server": _server}
