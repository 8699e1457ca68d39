"""BASecAgg: one party step by step, and whole sessions by a schedule (spec/adapter.md, section 4).

A party takes its steps as often as its state allows. Its sampled values therefore come in lists, from which it takes
them in order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType, ModuleType
from typing import Any

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.active import keys_of, public_keys
from secagg_spec.conformance.targets.reference.scripts import Party, RepeatingParty, recovered_end
from secagg_spec.crypto.channels import PlainStampedChannel, StampedChannel
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import SealedStampedChannel
from secagg_spec.errors import LengthMismatch
from secagg_spec.protocols import buffers
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.basecagg.round import Parameters, Recovered
from secagg_spec.protocols.basecagg.runs import Abandon, Recover, Start, Turn, Upload
from secagg_spec.protocols.steps import Inbox, Outbox, Randomness, Role, Step, Table

_LISTS = MappingProxyType({"mask": "masks", "noise": "noises", "update": "updates", "rounding": "roundings"})
"""The list of a request from which a step takes each of its values."""


def _trained(profile: ModuleType, step: Step[Any]) -> Step[Any]:
    def take(state: Any, inbox: Inbox, *, randomness: Randomness) -> tuple[Any, Outbox]:
        return step.take(profile.user_trained(state, randomness["update"]), inbox, randomness={})

    return replace(step, randomness=("update",)).taken_by(take)


@dataclass(frozen=True)
class Stamped:
    """The interface of BASecAgg for sessions; `sessions.Protocol` is the interface of other protocols.

    `starts` creates the state of a party before its first step, from the numbers, the session, the round and the
    members of ``setup`` but the updates.
    """

    profile: ModuleType
    starts: Mapping[Role, Callable[..., Any]]

    @property
    def table(self) -> Table:
        """The profile's table of phases, in which a user's `upload` takes its update as a sampled value."""
        rows: Table = self.profile.TABLE
        return tuple(
            _trained(self.profile, row) if (row.phase, row.role) == ("upload", Role.USER) else row for row in rows
        )

    def open(
        self, role: Role, numbers: Mapping[str, Any], session: bytes, round: int, setup: Mapping[str, Any], rand: Any
    ) -> Party:
        """Return a party before its first step."""
        given = {name: value for name, value in setup.items() if name != "updates"}
        state = self.starts[role](numbers, session, round, **given)
        parameters = getattr(state, "base", state).parameters
        user = role is Role.USER
        values = _user_values(parameters, setup["updates"], rand) if user else _server_values(parameters, rand)
        return RepeatingParty(self.table, role, state, values, recovered_end)


def _user(numbers: Mapping[str, Any], session: bytes, round: int, user: Any, channel: Any) -> basecagg.UserState:
    parameters = read_parameters(**numbers)
    return basecagg.user_start(parameters, session, round, user, _channel(parameters, session, channel))


def _signed_parameters(numbers: Mapping[str, Any]) -> basecagg_active.Parameters:
    given = {name: value for name, value in numbers.items() if name != "W"}
    return basecagg_active.with_signatures(read_parameters(**given), numbers["W"])


def _signed_user(numbers: Any, session: bytes, round: int, user: Any, **keys: Any) -> basecagg_active.UserState:
    return basecagg_active.user_start(_signed_parameters(numbers), session, round, user, *keys_of(**keys))


def _signed_server(numbers: Any, session: bytes, round: int, **keys: Any) -> basecagg_active.ServerState:
    return basecagg_active.server_start(_signed_parameters(numbers), session, round, public_keys(**keys))


def _server(numbers: Any, session: bytes, round: int) -> basecagg.ServerState:
    return basecagg.server_start(read_parameters(**numbers), session, round)


SEMI_HONEST = Stamped(basecagg, {Role.USER: _user, Role.SERVER: _server})
ACTIVE = Stamped(basecagg_active, {Role.USER: _signed_user, Role.SERVER: _signed_server})


def read_parameters(
    *, q: Any, c_l: Any, c_g: Any, kind: Any, numerator: Any, denominator: Any, start: Any, **counts: Any
) -> Parameters:
    """Return the parameters of a request."""
    staleness = Staleness(kind, numerator, denominator, readers.number("start", start))
    levels = {"c_l": readers.number("c_l", c_l), "c_g": readers.number("c_g", c_g)}
    return Parameters(q=readers.number("q", q), **counts, **levels, staleness=staleness)


def _channel(parameters: Parameters, session: bytes, value: Any) -> StampedChannel:
    """Return the channel of a user, plain or sealed."""
    if value == "plain":
        return PlainStampedChannel()
    private, roster = readers.members("channel", value, "private", "roster")
    keys = readers.formed("channel.roster", roster, "[bytes]")
    key = readers.octets("channel.private", readers.formed("channel.private", private, "bytes"))
    context = basecagg.sealing_context(parameters, session)
    public = Roster(tuple(readers.octets("channel.roster", text) for text in keys))
    if len(keys) != parameters.N:
        raise LengthMismatch("len(channel.roster)", len(keys), f"N = {parameters.N}")
    return SealedStampedChannel(context, key, public)


def _vectors(parameters: Parameters, name: str, texts: Sequence[str], *shape: int) -> list[UintArray]:
    """Return vectors of elements, or matrices, of a given shape."""
    check = parameters.field.check
    if len(shape) == 1:
        return [check(f"{name}[{at}]", readers.vector(name, text), shape) for at, text in enumerate(texts)]
    return [check(f"{name}[{at}]", readers.shaped(name, text, *shape), shape) for at, text in enumerate(texts)]


def _drawn(parameters: Parameters, rand: Mapping[str, Any]) -> dict[str, list[UintArray]]:
    masks = _vectors(parameters, "masks", rand["masks"], parameters.d)
    shape = parameters.T, parameters.share_length
    return {"mask": masks, "noise": _vectors(parameters, "noises", rand["noises"], *shape)}


def _user_values(parameters: Parameters, updates: Sequence[str], rand: Mapping[str, Any]) -> Randomness:
    return {**_drawn(parameters, rand), "update": _vectors(parameters, "updates", updates, parameters.d)}


def _server_values(parameters: Parameters, rand: Mapping[str, Any]) -> Randomness:
    rows = enumerate(readers.reals("roundings", text) for text in rand["roundings"])
    return {"rounding": [buffers.check_rounding(f"roundings[{at}]", row, parameters.K) for at, row in rows]}


def _rounds(round: Any, updates: Any, schedule: Any, rand: Mapping[str, Any], **numbers: Any) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    values = {**_drawn(parameters, rand), **_server_values(parameters, rand)}
    result = basecagg_runs.run_schedule(
        parameters,
        _vectors(parameters, "updates", updates, parameters.d),
        [_turn(event) for event in schedule],
        randomness={_LISTS[name]: rows for name, rows in values.items()},
        round=readers.u32("round", round),
        session=bytes(16),
    )
    return {"buffers": [_buffer(recovered) for recovered in result.buffers]}


def _turn(event: Mapping[str, Any]) -> Turn:
    if event["event"] == "recover":
        return Recover(tuple(event["users"]))
    kinds: dict[str, Callable[[int], Turn]] = {"start": Start, "upload": Upload, "abandon": Abandon}
    return kinds[event["event"]](event["user"])


def _buffer(recovered: Recovered) -> dict[str, Any]:
    """Return a recovered buffer in the form of a result."""
    entries = recovered.entries
    return {
        "round": str(recovered.round),
        "users": [entry.user for entry in entries],
        "stamps": words([entry.stamp for entry in entries]),
        "weights": words([entry.weight for entry in entries]),
        "sum": pack(recovered.sum),
    }


def words(values: Sequence[int]) -> str:
    """Return integers below 2**32 as a vector in the form of a request."""
    return b"".join(value.to_bytes(4, "little") for value in values).hex()


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"basecagg.rounds": _rounds}
