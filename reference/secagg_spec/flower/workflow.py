"""The workflows of a Flower server app, each in the place of Flower's ``SecAggPlusWorkflow``.

Source: spec/flower.md, section 5.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.common import Code, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.common import recorddict_compat
from flwr.server import Grid, LegacyContext
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.errors import ParameterError
from secagg_spec.flower import plan as plans
from secagg_spec.flower import records, server, weights
from secagg_spec.flower.kinds import KINDS
from secagg_spec.flower.manager import BatchClientManager
from secagg_spec.flower.participation import ParticipationLog
from secagg_spec.flower.plan import Packet
from secagg_spec.flower.tracing import traced
from secagg_spec.traces.files import Recorder

_LOG = logging.getLogger("flwr")
Participation: TypeAlias = str | Path | ParticipationLog | None
TIMEOUT = 600.0
"""Seconds that a phase waits for replies, training included, when nothing is said."""
_TOGETHER = 4
"""The most replies that are asked for at a time, so that the server holds no more of them."""


class _Workflow:
    """A workflow that takes the place of a round of training: settings, the seconds of a phase, the file of a trace."""

    def __init__(
        self,
        settings: server.Settings,
        timeout: float,
        trace: str | Path | None = None,
        participation: Participation = None,
    ) -> None:
        seconds = validate.number(timeout)
        if seconds is None or not validate.finite(seconds) or not seconds > 0:
            raise ParameterError("timeout", timeout, "a finite number of seconds above 0, so that no round hangs")
        self.settings, self.timeout = settings, float(seconds)
        self.trace = None if trace is None else validate.path_of("trace", trace)
        if self.trace is not None:
            Recorder(self.trace).close()
        self.participation = None if participation is None else ParticipationLog.at(participation)

    def _record(self, manager: BatchClientManager | None) -> server.Record:
        """Return what writes a line of the participation log, which is the manager's if it has one (FLW-17)."""
        log = self.participation
        if manager is not None:
            if log not in (None, manager.participation):
                raise ParameterError("participation", str(log.path), "given to the client manager, which counts by it")
            log = manager.participation
        return (lambda nodes: None) if log is None else log.add

    def __call__(self, grid: Grid, context: Context) -> None:
        """Run the round; what it gives goes to the strategy, and nothing if it ends without a sum."""
        if not isinstance(context, LegacyContext):
            raise TypeError(f"context: a {type(context).__name__}, and must be a LegacyContext")
        number = int(context.state.config_records[MAIN_CONFIGS_RECORD][Key.CURRENT_ROUND])
        record = context.state.array_records[MAIN_PARAMS_RECORD]
        parameters = recorddict_compat.arrayrecord_to_parameters(record, keep_input=True)
        asked = context.strategy.configure_fit(number, parameters, context.client_manager)
        manager = context.client_manager if isinstance(context.client_manager, BatchClientManager) else None
        write = self._record(manager)
        if not asked:
            write(())
            _LOG.info("secure aggregation: no client was chosen in round %s", number)
            return
        proxies = {proxy.node_id: proxy for proxy, _ in asked}
        instructions = {proxy.node_id: ins for proxy, ins in asked}
        masking = KINDS[self.settings.protocol].masking

        def message(phase: str, node: int, packet: Packet) -> Message:
            fit = phase == masking
            content = recorddict_compat.fitins_to_recorddict(instructions[node], True) if fit else RecordDict()
            return Message(records.put(packet, content), dst_node_id=node, message_type="train", group_id=str(number))

        def exchange(phase: str, packets: dict[int, Packet]) -> Iterator[tuple[int, Packet | None]]:
            asked = ((node, message(phase, node, packets.pop(node))) for node in list(packets))
            return _replies(grid, asked, self.timeout)

        # Only shapes and types count: nothing keeps the numbers for the time of the round.
        arrays = [np.broadcast_to(np.zeros((), one.dtype), one.shape) for one in parameters_to_ndarrays(parameters)]
        batches, nodes = manager and manager.batches, list(proxies)
        with ExitStack() as stack:
            carried = traced(exchange, self.trace, stack, batches.parameters.T if batches else 0)
            result = server.run(self.settings, nodes, arrays, number, carried, _warn, record=write, batches=batches)
        if result is None:
            return
        # A strategy such as FedAvg adds multiples of the results: of integers it would make zeros.
        types = [one.dtype for one in arrays]
        fractions = [kind if kind.kind == "f" else np.dtype(np.float64) for kind in types]
        try:
            mean = ndarrays_to_parameters(weights.like(result.arrays, fractions))
        except ParameterError as error:
            _warn(f"round {number} has a mean that is no model of the same types: {error}")
            return
        share, more = divmod(result.weight, len(result.contributors))
        results = [
            (proxies[node], FitRes(Status(Code.OK, ""), mean, share + (at < more), {}))
            for at, node in enumerate(result.contributors)
        ]
        lost: list[BaseException] = [
            RuntimeError(f"node {n} dropped out") for n in proxies if n not in result.contributors
        ]
        _LOG.info("secure aggregation: round %s has the sum of %s of %s clients", number, len(results), len(proxies))
        aggregated, metrics = context.strategy.aggregate_fit(number, results, lost)
        if aggregated is not None:
            try:
                aggregated = _whole(aggregated, types)
            except ParameterError as error:
                _warn(f"round {number} leaves the model as it was: the new one does not fit its types: {error}")
                return
            new = recorddict_compat.parameters_to_arrayrecord(aggregated, True)
            context.state.array_records[MAIN_PARAMS_RECORD] = new
            context.history.add_metrics_distributed_fit(server_round=number, metrics=metrics)


def _whole(aggregated: Parameters, types: Sequence[np.dtype[Any]]) -> Parameters:
    """Return what a strategy gave with integers where the model has integers."""
    model = parameters_to_ndarrays(aggregated)
    if len(model) != len(types) or all(kind.kind == "f" for kind in types):
        return aggregated
    wanted = [one.dtype if kind.kind == "f" else kind for one, kind in zip(model, types, strict=True)]
    return ndarrays_to_parameters(weights.like(model, wanted))


def _replies(grid: Grid, asked: Iterable[tuple[int, Message]], timeout: float) -> Iterator[tuple[int, Packet | None]]:
    """Send each node its message, and yield the replies that come in time, each once it is there.

    Messages go and come a few at a time. `Grid.send_and_receive` would hold all replies of a phase at once.
    """
    waiting = {number: node for node, message in asked for number in grid.push_messages([message]) if number}
    start = time.monotonic()
    while True:
        for at in range(0, len(numbers := list(waiting)), _TOGETHER):
            for reply in grid.pull_messages(numbers[at : at + _TOGETHER]):
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                if node is not None:
                    yield node, None if reply.has_error() else records.take(reply.content)
        waited = time.monotonic() - start
        if not waiting or waited >= timeout:
            return
        time.sleep(min(timeout - waited, 3.0, max(0.1, waited / 50)))  # 3 s and 0.1 s are the pauses of Flower's grids


def _flag(active: object) -> bool:
    if not isinstance(active, bool):
        raise ParameterError("active", active, "True or False")
    return active


def _warn(line: str) -> None:
    _LOG.warning("secure aggregation: %s", line)


_NAMES = {"threshold": "reconstruction_threshold", "holders": "num_shares", "largest": "clipping_range"}
"""The names of settings in Flower."""


class SecAggPlusWorkflow(_Workflow):
    """SecAgg+ with the arguments of Flower's workflow of this name.

    Parameters
    ----------
    num_shares : int or float
        The number of holders of a user's secrets, itself included: an integer, or a part of the clients up to 1.0.
    reconstruction_threshold : int or float
        The number of shares that recover a secret: a number, or a part of the holders.
    max_weight : float
        The largest number of examples of one client, a whole number. A client with more of them refuses the round.
    clipping_range : float
        The largest magnitude of a parameter. Nothing is clipped: a client whose model has a larger one refuses the
        round.
    quantization_range : int, optional
        The number of steps of the quantiser in ``[-clipping_range, clipping_range]``, at least one for each 1.0 of it
        and at most 2**32; what is above a multiple of its length does not count. As many as fit when left out. Where
        sums of the clients of a round could wrap with so many steps, the round ends without a sum.
    modulus_range : int
        2**32, the only one.
    timeout : float
        The seconds that each phase waits for replies.
    trace : path, optional
        A file to whose end the messages of each round are written, for ``secagg-spec trace``.
    participation : path or ParticipationLog, optional
        The participation log; a line for each round. A restart continues it.

    Raises
    ------
    ParameterError
        A value is out of range, or the file of the participation log, or of the trace, is another one.
    OSError
        The participation log or the trace cannot be read or written.
    """

    def __init__(
        self,
        num_shares: int | float,
        reconstruction_threshold: int | float,
        *,
        max_weight: float = 1000.0,
        clipping_range: float = 8.0,
        quantization_range: int | None = None,
        modulus_range: int = 2**32,
        timeout: float | None = TIMEOUT,
        trace: str | Path | None = None,
        participation: Participation = None,
    ) -> None:
        if modulus_range != 2**32:
            raise ParameterError("modulus_range", modulus_range, "2**32 = 4294967296")
        weight = validate.number(max_weight)
        if isinstance(weight, float) and weight.is_integer():
            max_weight = int(weight)
        most = validate.integer("max_weight", max_weight, 1)
        try:
            settings = server.Settings(
                plans.SECAGG, reconstruction_threshold, num_shares, most=most, largest=clipping_range
            )
        except ParameterError as error:
            raise ParameterError(_NAMES.get(error.parameter, error.parameter), error.value, error.allowed) from None
        if quantization_range is not None:
            length = 2 * Fraction(settings.largest)
            most = min(MAX_MODULUS, floor(length * MAX_LEVEL))
            steps = validate.integer("quantization_range", quantization_range, ceil(length), most)
            settings = replace(settings, level=floor(steps / length))
        super().__init__(settings, TIMEOUT if timeout is None else timeout, trace, participation)


class SecAggWorkflow(_Workflow):
    """SecAgg: every client is a neighbour of every other one.

    Parameters
    ----------
    threshold : int or float
        t, the number of shares that recover a secret: a number of clients, or a part of those that are asked.
    active : bool
        Whether the round is that of the active profile.
    most, largest, timeout, trace, participation
        The largest number of examples of one client, the largest magnitude of a parameter, the seconds of a phase, the
        file of a trace, and the participation log, if any.
    """

    def __init__(
        self,
        threshold: int | float,
        *,
        active: bool = False,
        most: int = 1000,
        largest: float = 8.0,
        timeout: float = TIMEOUT,
        trace: str | Path | None = None,
        participation: Participation = None,
    ) -> None:
        protocol = plans.SECAGG_ACTIVE if _flag(active) else plans.SECAGG
        settings = server.Settings(protocol, threshold, most=most, largest=largest)
        super().__init__(settings, timeout, trace, participation)


class LightSecAggWorkflow(_Workflow):
    """LightSecAgg; the arguments are those of `SecAggWorkflow`, with U, and W in the active profile, as threshold.

    Parameters
    ----------
    colluding : int, optional
        T: so many clients may pool what they know with the server; half the threshold when left out.
    """

    def __init__(
        self,
        threshold: int | float,
        *,
        active: bool = False,
        colluding: int | None = None,
        most: int = 1000,
        largest: float = 8.0,
        timeout: float = TIMEOUT,
        trace: str | Path | None = None,
        participation: Participation = None,
    ) -> None:
        protocol = plans.LIGHTSECAGG_ACTIVE if _flag(active) else plans.LIGHTSECAGG
        settings = server.Settings(protocol, threshold, None, colluding, most, largest)
        super().__init__(settings, timeout, trace, participation)
