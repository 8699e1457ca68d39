"""A session of Multi-RoundSecAgg among honest parties: choose, run the round, log the survivors.

Source: Multi-RoundSecAgg, sections 3.3 and 4; spec/multi-round.md, sections 3 and 6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import entropy
from secagg_spec.protocols.begun import session_id
from secagg_spec.protocols.multi_round.round import (
    Parameters,
    ServerState,
    UserState,
    draw_randomness,
    server_again,
    server_start,
    user_again,
    user_start,
)
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Network, check_dropouts, run_synchronous
from secagg_spec.selection import batches, strategies


@dataclass(frozen=True, eq=False)
class Turn(validate.Plain):
    """The input and the events of one round of a session; users have their numbers in the session.

    `updates` are the inputs of all users, (N, d). `available` are the users that can be chosen. `dropouts` are the
    users that drop out just before their step in a phase, if they were chosen.
    """

    updates: UintArray = field(repr=False)
    available: Sequence[int]
    dropouts: Mapping[str, Collection[int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome(validate.Plain):
    """The end of a round of a session: the chosen users, the announced survivors, and the sum.

    `chosen` is empty if there was no round, and `survivors` is empty if the server announced none. `aggregate` is None
    if the round ended without a sum.
    """

    chosen: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    aggregate: UintArray | None = None


def run_session(
    parameters: Parameters,
    turns: Sequence[Turn],
    *,
    strategy: str,
    source: entropy.Source,
    session: bytes,
) -> tuple[Outcome, ...]:
    """Run the rounds 0, 1, … of a session among honest parties; a strategy chooses the users of each round.

    Parameters
    ----------
    parameters : Parameters
    turns : sequence of Turn
        The turn of each round.
    strategy : str
        A name of `strategies.STRATEGIES`.
    source : Source
        The source of all sampled values: the draws of the choices, and the sampled values of the users.
    session : bytes
        The session id, 16 bytes.

    Returns
    -------
    tuple of Outcome
        One for each turn; their survivors, in order, are the log of the session (MRA-27). A round that failed after
        the announcement has survivors too.

    Raises
    ------
    ParameterError
        The strategy, the source, the session id or a turn does not fit; then no round was run.
    """
    hall = _Hall(parameters, session_id(session), source)
    nobody = np.zeros(parameters.selection.N, dtype=np.bool_)
    strategies.ranges(parameters.selection, strategy, hall.frequencies, nobody)  # refuses a wrong strategy
    entropy.check_source(source)
    for number, turn in enumerate(validate.sequence("turns", turns, "turns")):
        _check(parameters, f"turns[{number}]", turn)
    outcomes: list[Outcome] = []
    for number, turn in enumerate(turns):
        chosen = _choose(parameters.selection, strategy, hall.frequencies, turn, source)
        outcomes.append(hall.round(number, chosen, turn) if chosen else Outcome())
    return tuple(outcomes)


def _check(parameters: Parameters, name: str, turn: Turn) -> None:
    """Refuse a turn that does not fit the parameters."""
    validate.instance(name, turn, Turn)
    N, base = parameters.selection.N, parameters.round
    ring = base.ring if isinstance(base, secagg.Parameters) else base.field
    validate.array_shape(f"{name}.updates", validate.array(f"{name}.updates", turn.updates, np.uint64), (N, base.d))
    for user, update in enumerate(turn.updates):
        ring.check(f"{name}.updates[{user}]", update, (base.d,))
    validate.users(f"{name}.available", turn.available, N)
    check_dropouts(parameters.base.table, range(N), turn.dropouts, f"{name}.dropouts")


def _choose(
    parameters: batches.Parameters, strategy: str, frequencies: strategies.Counts, turn: Turn, source: entropy.Source
) -> tuple[int, ...]:
    """Return the users of a round; empty if there is no choice."""
    available = np.zeros(parameters.N, dtype=np.bool_)
    available[list(turn.available)] = True
    ranges = strategies.ranges(parameters, strategy, frequencies, available)
    draws = entropy.draw_below(source, ranges or ())
    return strategies.choose(parameters, strategy, frequencies, available, draws) or ()


@dataclass(eq=False)
class _Hall:
    """The parties of a session: the states of the server and of the users that were chosen before."""

    parameters: Parameters
    session: bytes
    source: entropy.Source
    states: dict[int, Any] = field(default_factory=dict)

    @property
    def frequencies(self) -> strategies.Counts:
        """The frequencies of all users, (N,), according to the server's log (MRA-28)."""
        if SERVER in self.states:
            counts: strategies.Counts = self.states[SERVER].frequencies
            return counts
        return np.zeros(self.parameters.selection.N, dtype=np.int64)

    def round(self, number: int, chosen: tuple[int, ...], turn: Turn) -> Outcome:
        """Run one round among the users that were chosen."""
        network = Network(self.parameters.base.table, self._seated(number, chosen, turn.updates))
        randomness = draw_randomness(self.parameters, dict.fromkeys(range(len(chosen)), self.source))
        with suppress(errors.TooFewSurvivors):
            run_synchronous(network, _dropouts_of(turn, chosen), randomness)
        server = network.states[SERVER]
        self.states |= {chosen[place]: state for place, state in network.states.items() if place != SERVER}
        self.states[SERVER] = server
        return Outcome(chosen, server.survivors, server.aggregate)

    def _seated(self, number: int, chosen: tuple[int, ...], updates: UintArray) -> dict[int, Any]:
        """Return the states of the parties of a round before its first step, by number in the round."""
        users = enumerate(chosen)
        return {SERVER: self._server(number, chosen)} | {
            place: self._user(number, user, chosen, updates[user]) for place, user in users
        }

    def _server(self, number: int, chosen: tuple[int, ...]) -> ServerState:
        if SERVER in self.states:
            return server_again(self.states[SERVER], number, chosen)
        return server_start(self.parameters, self.session, number, chosen)

    def _user(self, number: int, user: int, chosen: tuple[int, ...], update: UintArray) -> UserState:
        if user in self.states:
            return user_again(self.states[user], number, chosen, update)
        return user_start(self.parameters, self.session, number, user, chosen, update)


def _dropouts_of(turn: Turn, chosen: tuple[int, ...]) -> dict[str, list[int]]:
    """Return the dropouts of a round by phase, with numbers in the round."""
    places = {user: place for place, user in enumerate(chosen)}
    return {phase: [places[user] for user in users if user in places] for phase, users in turn.dropouts.items()}


guard(__name__)
