"""Training with an aggregator: rounds of FedAvg, of FedBuff or of FedAsync, and their stored results.

====================  ==========================================================================
spec                  here
====================  ==========================================================================
eta_g                 `server_rate`
n_i                   the samples of a user, if `weighted`
K                     `buffer`
t, tau                `number`, and `taus` of the updates in a buffer
c_g                   `c_g`: the level of whole weights; without it the weights are the numbers s(tau)
alpha                 `mixing`
====================  ==========================================================================

Rounds are numbered from 0 while they run, as t in the papers. In a result, the number of a round is how many rounds are
done after it, so round 0 is the first model.

Source: spec/experiments.md, sections 3 and 4 (EXP-08 to EXP-13, EXP-24).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.staleness import Staleness, realised_weight
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.experiments.experiment import Context, Data
from secagg_spec.learning.streams import BATCHES, CHOICE, MODEL, PARTITION, STALENESS, WEIGHTS, stream
from secagg_spec.protocols.fedbuff import round as fedbuff

if TYPE_CHECKING:
    from secagg_spec.experiments.aggregators import Aggregate, Aggregator
    from secagg_spec.learning.datasets import Dataset
    from secagg_spec.learning.models import Model
    from secagg_spec.learning.training import IntArray, Trainer

_DRAWS = 2**53
Tell = Callable[[float], None]
Arrivals = Callable[[int], tuple[Sequence[int], Sequence[int]]]
Step = Callable[[int, RealArray], RealArray]
"""Takes the number of a round and the model; returns the next model."""


class Diverged(Exception):
    """A number is not finite, or outside the range of a quantiser; the message names it."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is learnt, by whom and how; the same for all schemes with one seed."""

    dataset: Dataset
    parts: tuple[IntArray, ...]
    model: Model
    trainer: Trainer
    seed: int

    @property
    def left_out(self) -> int:
        """The number of training samples that no user holds (EXP-03)."""
        from secagg_spec.learning import partitions  # noqa: PLC0415

        return partitions.left_out(self.dataset, self.parts)

    def first(self) -> RealArray:
        """Return the first model (d,)."""
        return self.model.initial(stream(self.seed, MODEL))

    def updates(
        self, users: Sequence[int], starts: RealArray, number: int, work: Work, rate: float | None = None
    ) -> RealArray:
        """Return users' updates in a round: the models (U, d) that they start from minus the trained ones (EXP-06).

        Raises
        ------
        Diverged
            A number is not finite.
        ParameterError
            The users are no sequence of different users of the task.
        """
        users = validate.users("users", users, len(self.parts))
        rngs = [stream(self.seed, BATCHES, number, user) for user in users]
        with work.training():
            trained = self.trainer.train(starts, [self.parts[user] for user in users], rngs, rate)
        if not np.isfinite(trained).all():
            raise Diverged("a user's training gave a number that is not finite")
        updates: RealArray = starts - trained
        return updates


def task(cell: Data, context: Context) -> Task:
    """Return the task of a cell.

    Parameters
    ----------
    cell : mapping
        With the members ``seed``, ``data``, ``partition`` and ``users``, ``model``, ``epochs``, ``batch`` and ``rate``,
        and optionally ``alpha`` of the partition, ``momentum`` and ``decay``.
    context : Context
        The location of the data, and the device that trains.

    Raises
    ------
    ParameterError
        A member is missing or out of its range, or the data are missing.
    """
    for name in ("seed", "data", "partition", "users", "model", "epochs", "batch", "rate"):
        if name not in validate.mapping("cell", cell):
            raise ParameterError("cell", name, "with this member, which is missing")
    from secagg_spec.learning import datasets, models, partitions, training  # noqa: PLC0415

    dataset, seed = datasets.load(cell["data"], context.data), cell["seed"]
    parts = partitions.split(dataset, cell["partition"], cell["users"], stream(seed, PARTITION), cell.get("alpha"))
    sgd = training.LocalSGD(
        cell["epochs"], cell["batch"], cell["rate"], cell.get("momentum", 0.0), cell.get("decay", 0.0)
    )
    model = models.build(cell["model"], dataset)
    return Task(dataset, parts, model, training.Trainer(model, dataset.train, sgd, device=context.device), seed)


# -------------------------------------------------------------------------------------------------------- measurements


@dataclass
class Work:
    """The processor time of training and aggregation in seconds, and the reports of the aggregator."""

    seconds: dict[str, float] = field(default_factory=lambda: {"training": 0.0, "aggregation": 0.0})
    account: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def training(self) -> Iterator[None]:
        """Count the time inside this context as training."""
        with self._counted("training"):
            yield

    @contextmanager
    def _counted(self, what: str) -> Iterator[None]:
        begun = time.process_time()
        yield
        self.seconds[what] += time.process_time() - begun

    def aggregate(
        self, aggregator: Aggregator, updates: RealArray, weights: Sequence[int] | Sequence[float], **of_round: Any
    ) -> RealArray:
        """Return the aggregate of a round.

        Raises
        ------
        Diverged
            A number is outside the range of the quantiser.
        Disagreement
            The aggregate is too far from the plain one (EXP-13), or differs from that of the protocol (EXP-14).
        """
        try:
            with self._counted("aggregation"), np.errstate(over="ignore", invalid="ignore"):
                found = aggregator.aggregate(updates, weights, **of_round)
        except OutOfRange as error:
            raise Diverged(str(error)) from error
        self._tell(aggregator.name, found)
        mean: RealArray = found.mean
        return mean

    def _tell(self, name: str, found: Aggregate) -> None:
        """Count a round of the aggregator (EXP-15, EXP-16)."""
        if not self.account:
            self.account = begun(name)
        self.account["moved"] += found.moved
        self.account["largest_error"] = max(self.account["largest_error"], found.error)
        self.account["bound"] = max(self.account["bound"], found.bound if math.isfinite(found.bound) else 0.0)
        if found.by != "plain":
            self.account[found.by] += 1


def begun(name: str) -> dict[str, Any]:
    """Return the entry of a result for an aggregator that has done nothing yet.

    ``protocol`` and ``shortcut`` are numbers of rounds; ``largest_error`` is the largest difference from the plain
    aggregate, and ``bound`` the largest bound, or 0 if there is none.
    """
    return {
        "name": name,
        "protocol": 0,
        "shortcut": 0,
        "moved": 0,
        "largest_error": 0.0,
        "bound": 0.0,
    }


# ---------------------------------------------------------------------------------------------------------- the course


@dataclass
class Course:
    """Runs rounds, evaluates some of them, and stops when numbers are no longer finite (EXP-09).

    The model is evaluated every `evaluate` rounds; the first and the last model are always evaluated.
    """

    task: Task
    rounds: int
    evaluate: int
    tell: Tell
    work: Work
    found: dict[str, Any] = field(default_factory=lambda: {"rounds": [], "accuracy": [], "loss": []})

    def __post_init__(self) -> None:
        validate.integer("rounds", self.rounds, 1)
        validate.integer("evaluate", self.evaluate, 1)

    def run(self, step: Step) -> dict[str, Any]:
        """Run the rounds from the first model, and return the course."""
        model, diverged, why = self.task.first(), None, None
        self._note(0, model)
        for number in range(self.rounds):
            try:
                following = self._checked(number + 1, step(number, model))
            except Diverged as error:
                diverged, why = number + 1, str(error)
                self._keep(number, model)
                break
            model = following
            self.tell((number + 1) / self.rounds)
        ended = {"diverged": diverged, "why": why, "seconds": self.work.seconds, "left_out": self.task.left_out}
        return self.found | ended | self._aggregator()

    def _aggregator(self) -> dict[str, Any]:
        return {"aggregator": self.work.account or begun("none")}

    def _checked(self, done: int, model: RealArray) -> RealArray:
        """Return a model of finite numbers, evaluated if an evaluation is due.

        Raises
        ------
        Diverged
            A parameter, or the mean loss, is not finite.
        """
        if not np.isfinite(model).all():
            raise Diverged("a parameter of the model is not a finite number")
        if not divmod(done, self.evaluate)[1] or done == self.rounds:
            self._note(done, model)
        return model

    def _note(self, done: int, model: RealArray) -> None:
        """Evaluate a model.

        Raises
        ------
        Diverged
            The mean loss is not finite.
        """
        accuracy, loss = self.task.model.evaluate(model, self.task.dataset.test, self.task.trainer.device)
        if not math.isfinite(loss):
            raise Diverged("the mean loss is not a finite number")
        for name, value in (("rounds", done), ("accuracy", accuracy), ("loss", loss)):
            self.found[name].append(value)

    def _keep(self, done: int, model: RealArray) -> None:
        """Evaluate the last stored model, unless it is evaluated already or its loss is not finite either (EXP-24)."""
        if self.found["rounds"][-1] != done:
            try:
                self._note(done, model)
            except Diverged:
                return


# ---------------------------------------------------------------------------------------------------------- the schemes


def run_synchronous(
    task: Task,
    aggregator: Aggregator,
    *,
    rounds: int,
    choose: Callable[[int], Sequence[int]],
    server_rate: float = 1.0,
    weighted: bool = True,
    rate_of: Callable[[int], float] | None = None,
    evaluate: int = 1,
    tell: Tell = lambda share: None,
) -> dict[str, Any]:
    """Return the course of FedAvg (EXP-10).

    Parameters
    ----------
    task : Task
        The learning task.
    aggregator : Aggregator
        The aggregator of each round.
    rounds : int
        The number of rounds.
    choose : callable
        Returns the users in the sum of a round; a round without users changes nothing.
    server_rate : float
        eta_g.
    weighted : bool
        Whether a user is weighted by its number of samples; else all users count the same.
    rate_of : callable, optional
        Returns the users' learning rate in a round.
    evaluate : int
        The number of rounds between evaluations.
    tell : callable
        Receives the finished share.

    Returns
    -------
    dict
        ``rounds``, ``accuracy`` and ``loss`` of the evaluated rounds; ``diverged``, the round that failed, with
        ``why``, or None; ``seconds`` of training and aggregation; ``left_out``, the samples that no user holds;
        and the entry of `begun` for the aggregator.

    Raises
    ------
    ParameterError
        A number is out of its range, `weighted` is no truth value, or the users of a round are none of the task.
    """
    validate.instance("weighted", weighted, bool)
    _check_rate(server_rate)
    work = Work()

    def step(number: int, model: RealArray) -> RealArray:
        users = list(validate.collection("users", choose(number), "users"))
        if not users:
            return model
        rate = None if rate_of is None else rate_of(number)
        updates = task.updates(users, np.tile(model, (len(users), 1)), number, work, rate)
        weights = [len(task.parts[user]) if weighted else 1 for user in users]
        return _moved(model, work.aggregate(aggregator, updates, weights, users=users, round=number), server_rate)

    return Course(task, rounds, evaluate, tell, work).run(step)


def run_buffered(
    task: Task,
    aggregator: Aggregator,
    *,
    rounds: int,
    buffer: int,
    tau_max: int,
    staleness: Staleness,
    c_g: int | None,
    server_rate: float = 1.0,
    evaluate: int = 1,
    tell: Tell = lambda share: None,
    arrivals: Arrivals | None = None,
) -> dict[str, Any]:
    """Return the course of FedBuff, with K updates of different users in each buffer (EXP-11).

    Parameters
    ----------
    task, aggregator, rounds, server_rate, evaluate, tell
        As in `run_synchronous`.
    buffer : int
        K.
    tau_max : int
        The largest staleness.
    staleness : Staleness
        s.
    c_g : int or None
        The level of whole weights, drawn as in STL-05; without it the weights are s(tau).
    arrivals : callable, optional
        Returns the users of a round and the staleness of each, at most tau_max, if a clock simulated them; by default
        both are drawn.

    Returns
    -------
    dict
        As for `run_synchronous`.

    Raises
    ------
    ParameterError
        A number is out of its range, or a round does not have a staleness for each of its users.
    """
    validate.integer("buffer", buffer, 1, len(task.parts))
    _check_rate(server_rate)
    work, past = Work(), Past(tau_max)

    def drawn(number: int) -> tuple[Sequence[int], Sequence[int]]:
        return _choice(task, number, buffer), drawn_taus(task.seed, number, tau_max, buffer)

    def step(number: int, model: RealArray) -> RealArray:
        past.add(model)
        users, taus = (arrivals or drawn)(number)
        if len(taus) != len(users):
            raise LengthMismatch("len(taus)", len(taus), f"{len(users)}, one for each user")
        updates = task.updates(users, past.models(taus), number, work)
        weights, draws = _weights(task.seed, number, taus, staleness, c_g)
        mean = work.aggregate(aggregator, updates, weights, users=users, round=number, taus=taus, draws=draws)
        return _moved(model, mean, server_rate)

    return Course(task, rounds, evaluate, tell, work).run(step)


def run_fedasync(
    task: Task,
    *,
    rounds: int,
    tau_max: int,
    staleness: Staleness,
    mixing: float,
    evaluate: int = 1,
    tell: Tell = lambda share: None,
) -> dict[str, Any]:
    """Return the course of FedAsync: each round is one upload, and nothing is hidden (EXP-12).

    Parameters
    ----------
    task, rounds, tau_max, staleness, evaluate, tell
        As in `run_buffered`.
    mixing : float
        alpha in (0, 1]: the share of the model that an upload without staleness replaces.

    Returns
    -------
    dict
        As for `run_synchronous`; the aggregator is called ``none``.
    """
    if not validate.finite(mixing) or not 0 < mixing <= 1:
        raise OutOfRange("mixing", mixing, "in (0, 1]")
    work, past = Work(), Past(tau_max)

    def step(number: int, model: RealArray) -> RealArray:
        past.add(model)
        taus = drawn_taus(task.seed, number, tau_max, 1)
        starts = past.models(taus)
        trained = starts[0] - task.updates(_choice(task, number, 1), starts, number, work)[0]
        return mixed(model, trained, mixing * real_weight(staleness, taus[0]))

    return Course(task, rounds, evaluate, tell, work).run(step)


class Past:
    """The last tau_max + 1 models."""

    def __init__(self, tau_max: int) -> None:
        self._kept: deque[RealArray] = deque(maxlen=validate.integer("tau_max", tau_max, 0) + 1)

    def add(self, model: RealArray) -> None:
        """Store the model of a round that begins."""
        self._kept.append(model)

    def models(self, taus: Sequence[int]) -> RealArray:
        """Return the model of tau rounds ago for each tau: (n, d).

        Raises
        ------
        ParameterError
            There are no taus, or one of them is not the age of a stored model.
        """
        most = len(self._kept) - 1
        taus = [validate.integer("taus", tau, 0, most) for tau in validate.sequence("taus", taus, "integers")]
        if not taus:
            raise LengthMismatch("len(taus)", 0, "1 or more")
        return np.stack([self._kept[-1 - tau] for tau in taus])


def drawn_taus(seed: int, number: int, tau_max: int, count: int) -> list[int]:
    """Return the staleness of each update in a round: uniform from 0 to min(tau_max, t) (EXP-11)."""
    most = min(tau_max, number)
    return [int(tau) for tau in stream(seed, STALENESS, number).integers(0, most + 1, count)]


def real_weight(staleness: Staleness, tau: int) -> float:
    """Return s(tau)."""
    n, d, r = staleness.power(tau)
    return float((n / d) ** (1 / r))


def mixed(model: RealArray, trained: RealArray, share: float) -> RealArray:
    """Return (1 - a) x + a x_i (EXP-12)."""
    return (1 - share) * model + share * trained


def _weights(
    seed: int, number: int, taus: Sequence[int], staleness: Staleness, c_g: int | None
) -> tuple[list[int] | list[float], RealArray]:
    """Return the weights of the updates in a buffer, and the draws that round them."""
    draws = stream(seed, WEIGHTS, number).integers(0, _DRAWS, len(taus)) / _DRAWS
    if c_g is None:
        return [real_weight(staleness, tau) for tau in taus], draws
    pairs = zip(taus, draws, strict=True)
    return [realised_weight(staleness, c_g, tau, float(draw)) for tau, draw in pairs], draws


def _choice(task: Task, number: int, count: int) -> list[int]:
    """Return different users, in the order in which their updates arrive."""
    return [int(user) for user in stream(task.seed, CHOICE, number).choice(len(task.parts), count, replace=False)]


def _check_rate(server_rate: float) -> None:
    if not isinstance(server_rate, float) or not math.isfinite(server_rate):
        raise OutOfRange("server_rate", server_rate, "a finite float")


def _moved(model: RealArray, mean: RealArray, server_rate: float) -> RealArray:
    """Return the model moved against the mean of the updates; the result may be infinite or NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return fedbuff.moved(model, mean, server_rate)


def uniform(task: Task, count: int) -> Callable[[int], Sequence[int]]:
    """Return a function that chooses `count` of all users in each round, uniformly at random."""
    validate.integer("count", count, 1, len(task.parts))
    return lambda number: _choice(task, number, count)
