"""BASA: one party step by step (spec/adapter.md, section 4), with the encryption per position.

As in BASecAgg, a party takes its steps as often as its state allows, and its sampled values come in lists. A user has
its next update ready when it asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.basa import read_parameters
from secagg_spec.conformance.targets.reference.scripts import Call, Party, RepeatingParty, recovered_end
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.prg import KEY_BYTES, check_key
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.protocols import buffers
from secagg_spec.protocols.basa import round as basa
from secagg_spec.protocols.basa.authority import authority_start
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.server import server_start
from secagg_spec.protocols.basa.user import user_start, user_trained
from secagg_spec.protocols.steps import Randomness, Role, Table


@dataclass(eq=False)
class PositionParty(RepeatingParty):
    """A party of BASA. A user has its next update ready when it asks."""

    def take(self, call: Call) -> dict[str, Any]:
        """Take a step and return its entry; if the step raises, the party is unchanged."""
        before = self.state
        try:
            self.state = self.prepared()
            return super().take(call)
        except Exception:
            self.state = before
            raise

    def prepared(self) -> Any:
        """Return the state for the party's next step: a user has an update ready, if any is left."""
        at = self.used["upload"]
        updates: Sequence[UintArray] = self.sampled.get("update", ())
        if self.role is not Role.USER or self.state.update is not None or at >= len(updates):
            return self.state
        return user_trained(self.state, updates[at], self.sampled["stamp"][at])


@dataclass(frozen=True)
class Positioned:
    """The interface of BASA for sessions and scripts."""

    @property
    def table(self) -> Table:
        """The protocol's table of phases."""
        return basa.TABLE

    def open(
        self,
        role: Role,
        numbers: Mapping[str, Any],
        session: bytes,
        round: int,
        setup: Mapping[str, Any],
        rand: Mapping[str, Any] | None,
    ) -> Party:
        """Return a party before its first step."""
        parameters, given = read_parameters(**numbers), rand or {}
        opened = {Role.USER: _user, Role.SERVER: _server, Role.AUTHORITY: _authority}[role]
        state, sampled = opened(parameters, session, round, setup, given)
        return PositionParty(self.table, role, state, sampled, recovered_end)


def _user(
    parameters: Parameters, session: bytes, round: int, setup: Mapping[str, Any], rand: Mapping[str, Any]
) -> tuple[Any, Randomness]:
    state = user_start(
        parameters,
        session,
        setup["user"],
        signing=_key("signing", setup["signing"]),
        verification=_roster(setup["verification"]),
        authority=_key("authority", setup["authority"]),
    )
    texts, shape = enumerate(setup["updates"]), (parameters.d,)
    rows = [parameters.ring.check(f"updates[{at}]", readers.vector("updates", text), shape) for at, text in texts]
    stamps = readers.words("stamps", setup["stamps"])
    if len(stamps) != len(rows):
        raise LengthMismatch("len(stamps)", len(stamps), f"{len(rows)}: one for each update")
    draws = readers.reals("roundings", rand["roundings"])
    sampled = {
        "update": rows,
        "stamp": stamps,
        "seeds": _pieces(parameters, "seeds", rand["seeds"]),
        "box_key": [_key("box_keys", text) for text in rand["box_keys"]],
        "rounding": [float(draw) for draw in buffers.check_rounding("roundings", draws, len(draws))],
    }
    return state, sampled


def _server(
    parameters: Parameters, session: bytes, round: int, setup: Mapping[str, Any], rand: Mapping[str, Any]
) -> tuple[Any, Randomness]:
    verification, authority = _roster(setup["verification"]), _key("authority", setup["authority"])
    return server_start(parameters, session, round, verification=verification, authority=authority), {}


def _authority(
    parameters: Parameters, session: bytes, round: int, setup: Mapping[str, Any], rand: Mapping[str, Any]
) -> tuple[Any, Randomness]:
    signing, verification = _key("signing", setup["signing"]), _roster(setup["verification"])
    pairs = _pieces(parameters, "pair_keys", rand["pair_keys"])
    own = _pieces(parameters, "self_keys", rand["self_keys"])
    if not parameters.settle and own:
        raise ParameterError("self_keys", f"{len(own)} entries", 'none with the timeouts "void"')
    sampled = {"pair_keys": pairs, "self_keys": own if parameters.settle else [b""] * len(pairs)}
    return authority_start(parameters, session, round, signing=signing, verification=verification), sampled


def _key(name: str, text: str) -> bytes:
    """Return a key of 32 bytes."""
    key = readers.octets(name, text)
    check_key(name, key)
    return key


def _roster(texts: Sequence[str]) -> Roster:
    return Roster(tuple(readers.octets("verification", text) for text in texts))


def _pieces(parameters: Parameters, name: str, texts: Sequence[str]) -> list[bytes]:
    """Return entries of 32 bytes for each position."""
    entries = [readers.octets(name, text) for text in texts]
    for at, entry in enumerate(entries):
        if len(entry) != KEY_BYTES * parameters.positions:
            raise LengthMismatch(f"len({name}[{at}])", len(entry), f"{KEY_BYTES} bytes for each position")
    return entries
