"""Sessions: parties that persist between requests, by the reference's tables of phases (spec/adapter.md, section 4).

A protocol provides its parameters, the initial states of its two parties, and a reader for its sampled values; the
rest is shared code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.sdk.secagg_adapter import NUMBERS, PARTIES, Reject
from secagg_spec.conformance.targets.reference import active, basecagg_scripts, readers, scripts
from secagg_spec.conformance.targets.reference.basa_scripts import Positioned
from secagg_spec.conformance.targets.reference.basecagg_scripts import Stamped
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.conformance.targets.reference.heterosag_round import read_past
from secagg_spec.crypto.prg import check_key
from secagg_spec.errors import LengthMismatch
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Randomness, Role, Table


@dataclass(frozen=True)
class Protocol:
    """What the sessions of one protocol need in addition to its table of phases.

    `starts` creates the state of a party before its first step, from the parameters, the session, the round and the
    members of ``setup``. `later` creates the state for a later round, from the party's final state, the round number
    and the members of ``setup``. `sampled` reads the values of ``rand``. `read` creates the parameters from
    ``numbers``, if these are not the members of the module's parameters.
    """

    module: ModuleType
    starts: Mapping[Role, Callable[..., Any]]
    later: Mapping[Role, Callable[..., Any]]
    sampled: Callable[[Any, Mapping[str, Any]], Randomness]
    read: Callable[..., Any] | None = None

    @property
    def table(self) -> Table:
        """The protocol's table of phases."""
        table: Table = self.module.TABLE
        return table

    def open(
        self, role: Role, numbers: Mapping[str, Any], session: bytes, round: int, setup: Mapping[str, Any], rand: Any
    ) -> Member:
        """Return a party before its first step."""
        parameters = (self.read or partial(readers.parameters, self.module.Parameters))(**numbers)
        state = self.starts[role](parameters, session, round, **setup)
        if role is Role.SERVER:
            return Member(self.table, role, state, {}, scripts.server_end, self, parameters)
        return Member(self.table, role, state, self.sampled(parameters, rand), lambda state: {}, self, parameters)


@dataclass(eq=False)
class Member(scripts.Party):
    """A party that can continue in further rounds of its session, with the same parameters."""

    protocol: Protocol
    parameters: Any

    def again(self, round: int, setup: Mapping[str, Any], rand: Any) -> None:
        """Continue in another round; if this is refused, the party is unchanged (SES-01, ERR-01)."""
        state = self.protocol.later[self.role](self.state, round, **setup)
        if self.role is Role.USER:
            self.sampled = self.protocol.sampled(self.parameters, rand)
        self.state = state


def _light_user(parameters: Any, session: bytes, round: int, user: Any, channel: Any, update: Any) -> Any:
    shown = scripts.read_channel(parameters, session.hex(), str(round), channel)
    return lightsecagg.user_start(parameters, session, round, user, readers.vector("update", update), shown)


def _light_user_again(state: Any, round: int, channel: Any, update: Any) -> Any:
    shown = scripts.read_channel(state.parameters, state.session.hex(), str(round), channel)
    return lightsecagg.user_again(state, round, readers.vector("update", update), shown)


def _by(begin: Callable[..., Any], read: Callable[..., list[Any]]) -> Callable[..., Any]:
    """Return what creates a state as the reference does, from the members of ``setup`` as it takes them."""
    return lambda *before, user=None, **setup: begin(*before, *([] if user is None else [user]), *read(**setup))


def _update(update: Any) -> list[Any]:
    return [readers.vector("update", update)]


def _ordered(update: Any, order: Any) -> list[Any]:
    return [*_update(update), order]


def _own(update: Any, **keys: Any) -> list[Any]:
    return [*_update(update), *active.keys_of(**keys)]


def _keys(**keys: Any) -> list[Any]:
    return [active.public_keys(**keys)]


def _secagg_round(parameters: Any, session: bytes, round: int, order: Any) -> secagg.Round:
    return secagg.Round(parameters, parameters.graph(order), session, round)


def _secagg_user(parameters: Any, session: bytes, round: int, user: Any, order: Any, update: Any) -> Any:
    agreed = _secagg_round(parameters, session, round, order)
    return secagg.user_start(agreed, user, readers.vector("update", update))


def _secagg_server(parameters: Any, session: bytes, round: int, order: Any) -> Any:
    return secagg.server_start(_secagg_round(parameters, session, round, order))


def _signed_user(
    parameters: Any, session: bytes, round: int, user: Any, signing: Any, verification: Any, update: Any
) -> Any:
    agreed = secagg_active.agreed(parameters, session, round)
    return _signed_start(agreed, user, signing, verification, readers.vector("update", update))


def _signed_start(agreed: Any, user: int, signing: Any, verification: Any, update: UintArray) -> Any:
    private, roster = readers.octets("signing", signing), active.public_roster("verification", verification)
    return secagg_active.user_start(agreed, user, update, private, roster)


def _signed_server(parameters: Any, session: bytes, round: int, verification: Any) -> Any:
    agreed = secagg_active.agreed(parameters, session, round)
    return secagg_active.server_start(agreed, active.public_roster("verification", verification))


def _signed_user_again(state: Any, round: int, signing: Any, verification: Any, update: Any) -> Any:
    vector = readers.vector("update", update)
    later = secagg_active.user_again(state, round, vector).base
    return _signed_start(later.round, later.user, signing, verification, vector)


def _signed_server_again(state: Any, round: int, verification: Any) -> Any:
    later: Any = secagg_active.server_again(state, round).base.round
    return secagg_active.server_start(later, active.public_roster("verification", verification))


def _secagg_sampled(parameters: Any, rand: Mapping[str, Any]) -> Randomness:
    """Return the keys, the self seed and the coefficients of a request."""
    keys = {name: readers.octets(name, rand[name]) for name in ("sealing_key", "masking_key", "self_seed")}
    for name, key in keys.items():
        check_key(name, key)
    coefficients = ("key_coefficients", "seed_coefficients")
    return {**keys, **{name: _elements(name, rand[name], parameters.t - 1) for name in coefficients}}


def _elements(name: str, text: str, count: int) -> tuple[int, ...]:
    """Return numbers below 2**521 - 1, `shamir.ELEMENT_BYTES` bytes each."""
    data, size = readers.octets(name, text), shamir.ELEMENT_BYTES
    if len(data) != count * size:
        raise LengthMismatch(name, f"{len(data)} bytes", f"t - 1 = {count} elements of {size} bytes")
    return tuple(shamir.element_from_bytes(name, data[at : at + size]) for at in range(0, len(data), size))


def _heterosag_user(parameters: Any, session: bytes, round: int, user: Any, past: Any, update: Any) -> Any:
    state = heterosag.user_start(parameters, session, round, user, readers.vector("update", update))
    return replace(state, past=read_past(parameters, past, user))


def _heterosag_server(parameters: Any, session: bytes, round: int, past: Any) -> Any:
    return heterosag.server_start(parameters, session, round, read_past(parameters, past))


PROTOCOLS: dict[str, Protocol | Stamped | Positioned] = {
    "lightsecagg": Protocol(
        lightsecagg,
        {Role.USER: _light_user, Role.SERVER: lightsecagg.server_start},
        {Role.USER: _light_user_again, Role.SERVER: lightsecagg.server_again},
        scripts.read_sampled,
    ),
    "lightsecagg-active": Protocol(
        lightsecagg_active,
        {Role.USER: _by(lightsecagg_active.user_start, _own), Role.SERVER: _by(lightsecagg_active.server_start, _keys)},
        {Role.USER: _by(lightsecagg_active.user_again, _own), Role.SERVER: _by(lightsecagg_active.server_again, _keys)},
        scripts.read_sampled,
    ),
    "secagg": Protocol(
        secagg,
        {Role.USER: _secagg_user, Role.SERVER: _secagg_server},
        {Role.USER: _by(secagg.user_again, _ordered), Role.SERVER: secagg.server_again},
        _secagg_sampled,
    ),
    "secagg-active": Protocol(
        secagg_active,
        {Role.USER: _signed_user, Role.SERVER: _signed_server},
        {Role.USER: _signed_user_again, Role.SERVER: _signed_server_again},
        _secagg_sampled,
    ),
    "basecagg": basecagg_scripts.SEMI_HONEST,
    "basecagg-active": basecagg_scripts.ACTIVE,
    "basa": Positioned(),
    "heterosag": Protocol(
        heterosag,
        {Role.USER: _heterosag_user, Role.SERVER: _heterosag_server},
        {Role.USER: _by(heterosag.user_again, _update), Role.SERVER: heterosag.server_again},
        _secagg_sampled,
        read_parameters,
    ),
}
assert set(PROTOCOLS) == set(NUMBERS)


@dataclass(eq=False)
class Sessions:
    """The open sessions, by handle."""

    open: dict[str, scripts.Party] = field(default_factory=dict)

    def new(
        self, handle: Any, protocol: Any, role: Any, numbers: Any, session: Any, round: Any, setup: Any, rand: Any
    ) -> dict[str, Any]:
        """Open a session (ADP-22)."""
        if handle in self.open:
            raise Reject("duplicate_id", f"the session {handle!r} is open")
        party = PROTOCOLS[protocol].open(
            Role(role), numbers, readers.octets("session", session), readers.u32("round", round), setup, rand
        )
        self.open[handle] = party
        return {}

    def step(self, handle: Any, phase: Any, inbox: Any) -> dict[str, Any]:
        """Let the party of a session take a step; a refused step leaves it unchanged (ERR-01)."""
        party = self._found(handle)
        phases = [step.phase for step in party.table if step.role is party.role]
        if phase not in phases:
            raise Reject("bad_param", f"phase is {phase!r}; it must be one of {', '.join(phases)}")
        return party.take(scripts.Call(phase, tuple(readers.octets("inbox", text) for text in inbox)))

    def again(self, handle: Any, round: Any, setup: Any, rand: Any) -> dict[str, Any]:
        """Let the party of a session continue in another round (ADP-51, SES-01)."""
        party = self._found(handle)
        assert isinstance(party, Member), "the helper answers for protocols without rounds (ADP-52)"
        party.again(readers.u32("round", round), setup, rand)
        return {}

    def free(self, handle: Any) -> dict[str, Any]:
        """Delete a session (ADP-23)."""
        self._found(handle)
        del self.open[handle]
        return {}

    def _found(self, handle: str) -> scripts.Party:
        if handle not in self.open:
            raise Reject("bad_param", f"no session {handle!r} is open")
        return self.open[handle]


def handlers() -> dict[str, Callable[..., dict[str, Any]]]:
    """Return the four session operations, with their own set of sessions."""
    sessions = Sessions()
    return {f"session.{name}": getattr(sessions, name) for name in ("new", "step", "again", "free")}


def _script(party: str, session: Any, round: Any, steps: Any, rand: Any = None, **given: Any) -> dict[str, Any]:
    """Play a script of a party, which starts as in a session."""
    protocol, _, role = party.partition(".")
    setup = {name: given.pop(name) for name in PARTIES[party][0]}
    agreed = (readers.octets("session", session), readers.u32("round", round))
    opened = PROTOCOLS[protocol].open(Role(role), given, *agreed, setup, rand)
    return {"steps": scripts.entries_of(opened, scripts.read_calls(opened.table, opened.role, steps))}


def handler(party: str) -> Callable[..., dict[str, Any]]:
    """Return the operation that plays the scripts of a party."""
    return partial(_script, party)


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {party.replace("-", "_"): handler(party) for party in PARTIES}
