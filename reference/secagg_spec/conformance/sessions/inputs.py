"""The inputs of every party of one round before it begins, in the form of requests (spec/adapter.md, 4)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import unpack
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES, REMEMBERED
from secagg_spec.conformance.sessions.heterosag_numbers import totals
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.conformance.targets.reference.scripts import Party
from secagg_spec.conformance.targets.reference.sessions import PROTOCOLS
from secagg_spec.protocols.steps import SERVER, Network, Randomness, Role, Table, role_of, run_synchronous

Dropouts = Mapping[str, Collection[int]]
NOBODY: Dropouts = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class SessionInputs:
    """What each party of one round is given before it begins: numbers, session, setup, and sampled values.

    Parameters
    ----------
    protocol : str
        A protocol that has sessions.
    numbers : mapping
        Its parameters, with the modulus as a decimal string.
    session : bytes
        The session id.
    round : int
        The round number.
    setups : mapping from party to mapping
        The members of ``setup`` of each user, and of the server.
    rands : mapping from party to mapping
        The sampled values of each party that has any, by name, in the form of a request.
    rounds : mapping from party to int
        The round numbers of parties whose round number differs.
    """

    protocol: str
    numbers: Mapping[str, Any]
    session: bytes
    round: int
    setups: Mapping[int, Mapping[str, Any]]
    rands: Mapping[int, Mapping[str, Any]]
    rounds: Mapping[int, int] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The protocol's table of phases."""
        return PROTOCOLS[self.protocol].table

    @property
    def users(self) -> list[int]:
        """The users, ascending."""
        return sorted(party for party in self.setups if role_of(party) is Role.USER)

    def round_of(self, party: int) -> int:
        """Return the round number of a party."""
        return self.rounds.get(party, self.round)

    def named(self, party: int) -> str:
        """Return the name of a party in declarations."""
        return f"{self.protocol}.{role_of(party).value}"

    def opening(self, party: int) -> dict[str, Any]:
        """Return the ``params`` of a party's `session.new`, without the handle."""
        return {
            "protocol": self.protocol,
            "role": role_of(party).value,
            "numbers": dict(self.numbers),
            "session": self.session.hex(),
            "round": str(self.round_of(party)),
            "setup": dict(self.setups[party]),
        }

    def going_on(self, party: int) -> dict[str, Any]:
        """Return the ``params`` of the `session.again` that takes a party to this round, without the handle."""
        setup = {name: value for name, value in self.setups[party].items() if name not in REMEMBERED}
        return {"round": str(self.round_of(party)), "setup": setup}

    def rand(self, party: int) -> dict[str, Any]:
        """Return the sampled values of a party by name."""
        return dict(self.rands.get(party, {}))

    def open(self, party: int) -> Party:
        """Return a party of the reference before its first step."""
        protocol = PROTOCOLS[self.protocol]
        setup, rand = self.setups[party], self.rand(party)
        return protocol.open(role_of(party), self.numbers, self.session, self.round_of(party), setup, rand)

    def randomness(self) -> dict[int, Randomness]:
        """Return the sampled values of each user, in the form that the reference takes."""
        return {user: self.open(user).sampled for user in self.users}

    def network(self) -> Network:
        """Return the network of the round before its first step, with only reference parties."""
        return Network(self.table, {party: self.open(party).state for party in (*self.users, SERVER)})

    def played(self, dropouts: Dropouts = NOBODY) -> Network:
        """Return the network of the round after its last step; an aborted round raises `ProtocolError`."""
        network = self.network()
        run_synchronous(network, dropouts, self.randomness())
        return network

    def total(self, users: Collection[int]) -> UintArray:
        """Return the sum of the updates of some users; for HeteroSAg, the concatenated sums of all cells."""
        rows = {user: unpack(self.setups[user]["update"]).astype(np.uint64) for user in sorted(users)}
        if self.protocol == "heterosag":
            return np.concatenate(totals(read_parameters(**self.numbers), rows))
        return Ring(int(self.numbers.get("q", self.numbers.get("R")))).sum(np.stack(list(rows.values())))


def called(party: int) -> str:
    """Return the name of a party in messages."""
    role = role_of(party)
    return f"user {party}" if role is Role.USER else f"the {role.value}"


assert {f"{name}.{step.role.value}" for name, known in PROTOCOLS.items() for step in known.table} == set(PARTIES)
