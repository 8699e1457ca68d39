"""The batches of Multi-RoundSecAgg among the nodes of a deployment: who sits where, and who is chosen.

====================  ==========================================
paper                 here
====================  ==========================================
N, K, T               `parameters`
users 0, 1, …         `seats`, the nodes in the order of their seats
f(t)                  the `counts` that `choose` is given
====================  ==========================================

Source: spec/flower.md, section 7 (FLW-21 to FLW-24); spec/multi-round.md, sections 2, 3 and 6.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec import documents, system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.entropy import Source, SystemSource, draw_below
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg.graph import draw_order
from secagg_spec.selection import batches, strategies


class Batches:
    """Seats for N nodes, in batches of T; a node keeps its seat, and a seat its node.

    Parameters
    ----------
    parameters : batches.Parameters
        N, K and T, with T at least 3: one user of a batch may collude with the server (MRA-17).
    path : path, optional
        The file of the seats, which a restart needs; without one they last as long as the process. One process alone
        writes it.
    strategy : str
        A name of `strategies.STRATEGIES` that takes this T.
    source : Source, optional
        The source of seats and choices.

    Raises
    ------
    OSError
        The file cannot be read.
    ParameterError
        An argument is out of range; or the file is not one of seats, or is of another N, K or T (MRA-22).
    """

    def __init__(
        self,
        parameters: batches.Parameters,
        path: str | Path | None = None,
        strategy: str = "least",
        source: Source | None = None,
    ) -> None:
        validate.integer("T", validate.instance("parameters", parameters, batches.Parameters).T, 3)
        validate.one_of("strategy", strategy, [*strategies.STRATEGIES])
        strategies.STRATEGIES[strategy].check(parameters)
        self.parameters, self.strategy = parameters, strategy
        self.path = None if path is None else validate.path_of("seats", path)
        self.source = SystemSource() if source is None else source
        self.seats: tuple[int, ...] = ()
        if self.path is not None and self.path.exists():
            self.seats = self._read(self.path)

    def _read(self, path: Path) -> tuple[int, ...]:
        try:
            tree = documents.read_json(path)
            seats = tuple(validate.integer("nodes", node, 0) for node in tree["nodes"])
            same = json.dumps(tree) == json.dumps(self._tree(seats))
        except (ValueError, TypeError, KeyError):
            same = False
        if not same or len(seats) > self.parameters.N or len(set(seats)) < len(seats):
            allowed = f"seats of distinct nodes for {self._tree(())}, as they were when the session began"
            raise ParameterError(path.name, "another content", allowed)
        return seats

    def _tree(self, seats: Collection[int]) -> dict[str, Any]:
        return {**asdict(self.parameters), "nodes": list(seats)}

    def sit(self, nodes: Collection[int]) -> None:
        """Give nodes that have no seat free ones in random order, and write it down; some may find none (FLW-21).

        Raises
        ------
        OSError
            The file cannot be read or written.
        ParameterError
            Another process wrote into it, or the nodes are no collection of integers of at least 0.
        """
        validate.collection("nodes", nodes, "nodes")
        new = sorted({validate.integer("nodes", node, 0) for node in nodes} - set(self.seats))
        order = draw_order(self.source, len(new))
        taken = [new[at] for at in order][: self.parameters.N - len(self.seats)]
        if taken and self.path is not None:
            if (self._read(self.path) if self.path.exists() else ()) != self.seats:
                raise ParameterError(self.path.name, "changed", "written by one process alone while rounds run")
            system.write_whole(self.path, json.dumps(self._tree([*self.seats, *taken])) + "\n")
            system.on_disk(self.path, self.path.parent)
        self.seats += tuple(taken)

    def frequencies(self, counts: Mapping[int, int]) -> strategies.Counts:
        """Return the frequency of each seat, (N,), for the counts of nodes.

        Raises
        ------
        ParameterError
            The counts are no mapping, or not those of rounds of whole batches of these seats.
        """
        counted = {validate.integer("counts", node, 0) for node in validate.mapping("counts", counts)}
        strangers = sorted(counted - set(self.seats))
        if strangers:
            raise ParameterError("counts", strangers[:5], "of nodes with a seat: the log is of other seats")
        frequencies = np.zeros(self.parameters.N, dtype=np.int64)
        seen = [validate.integer("counts", counts.get(node, 0), 0, validate.MAX_COUNT) for node in self.seats]
        frequencies[: len(seen)] = seen
        rows = frequencies.reshape(-1, self.parameters.T)
        if (rows != rows[:, :1]).any():
            raise ParameterError("counts", rows.tolist(), "equal in a batch: the log has a sum over a part of one")
        return frequencies

    def choose(self, available: Collection[int], counts: Mapping[int, int]) -> tuple[int, ...]:
        """Return the nodes of a round in the order of their seats; none if too few batches are complete (FLW-22).

        Parameters
        ----------
        available : collection of int
            The nodes that are there. Those that have no seat are given one.
        counts : mapping from int to int
            For each node, the number of earlier rounds in which it was announced as a survivor (MRA-28).

        Raises
        ------
        ParameterError
            The nodes or the counts do not fit, as in `sit` and `frequencies`.
        """
        self.sit(available)
        frequencies = self.frequencies(counts)
        there = np.zeros(self.parameters.N, dtype=bool)
        present = set(available)
        there[: len(self.seats)] = [node in present for node in self.seats]
        bounds = strategies.ranges(self.parameters, self.strategy, frequencies, there)
        draws = draw_below(self.source, bounds or ())
        users = strategies.choose(self.parameters, self.strategy, frequencies, there, draws)
        return tuple(self.seats[user] for user in users or ())

    def whole(self, nodes: Collection[int]) -> tuple[int, ...]:
        """Return, in the order of their seats, the nodes whose whole batch is among the given ones (MRA-18)."""
        here = [user for user, node in enumerate(self.seats) if node in nodes]
        return tuple(self.seats[user] for user in batches.whole_batches(self.parameters, here))

    def check(self, nodes: Collection[int], base: Any) -> None:
        """Refuse the parameters of a round among some batches, unless they are those of a session (FLW-24, MRA-17).

        Raises
        ------
        ParameterError
            The round is not SecAgg on the complete graph or LightSecAgg, semi-honest, or its T is above that of the
            batches less 2.
        """
        numbers = self.parameters
        multi_round.Parameters(batches.Parameters(numbers.N, len(nodes), numbers.T), base)


guard(__name__)
