"""The client manager of a Flower server app that chooses whole batches, in the place of ``SimpleClientManager``.

Source: spec/flower.md, section 7.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from flwr.server import SimpleClientManager
from flwr.server.criterion import Criterion

from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError
from secagg_spec.flower.batches import Batches
from secagg_spec.flower.participation import ParticipationLog
from secagg_spec.selection.batches import Parameters

_LOG = logging.getLogger("flwr")


class BatchClientManager(SimpleClientManager):  # type: ignore[misc, unused-ignore]
    """Chooses whole batches of clients, so that the sums of all rounds together show sums over batches alone.

    A round has `per_round` clients, whatever number the strategy asks for, or none when too few batches are complete.

    Parameters
    ----------
    clients : int
        N, the number of clients of the whole session; later ones have no seat and are never chosen.
    per_round : int
        K, the number of clients of a round.
    batch : int
        T, the number of clients of a batch, at least 3; it divides `clients` and `per_round`.
    seats : path, optional
        The file that says which client is in which batch; a restart needs it.
    participation : path or ParticipationLog, optional
        The participation log that the workflow writes, from which the choice counts; a restart needs it.
    strategy : str
        The rule of spec/multi-round.md, section 3: ``least``, ``fair`` or ``uniform``.

    Raises
    ------
    OSError
        A file cannot be read or written.
    ParameterError
        A number is out of range, or a file is of another session.
    """

    def __init__(
        self,
        clients: int,
        per_round: int,
        batch: int,
        *,
        seats: str | Path | None = None,
        participation: str | Path | ParticipationLog | None = None,
        strategy: str = "least",
    ) -> None:
        super().__init__()
        place = None if seats is None else validate.path_of("seats", seats)
        self.batches = Batches(Parameters(clients, per_round, batch), place, strategy)
        log = participation.path if isinstance(participation, ParticipationLog) else participation
        path = None if log is None else validate.path_of("participation", log)
        if path and self.batches.path and path.resolve() == self.batches.path.resolve():
            raise ParameterError("seats", str(seats), "another file than the participation log")
        self.participation = ParticipationLog.at(participation)
        self.batches.frequencies(self.participation.counts)

    def sample(
        self, num_clients: int, min_num_clients: int | None = None, criterion: Criterion | None = None
    ) -> list[Any]:
        """Return the clients of a round, or none; it waits for `per_round` clients, or `min_num_clients` if more."""
        self.wait_for(max(min_num_clients or 0, self.batches.parameters.K))
        there = {
            client.node_id: client
            for client in list(self.clients.values())
            if criterion is None or criterion.select(client)
        }
        chosen = self.batches.choose(there, self.participation.counts)
        if not chosen:
            _LOG.info("no round: too few batches are complete among %s clients", len(there))
        return [there[node] for node in chosen]
