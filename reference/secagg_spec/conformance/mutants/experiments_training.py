"""Planted bugs of training and of rounds, which their tests find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.conformance.mutants import mutant

Function = Callable[..., Any]
_TRAINING, _RUNS = "secagg_spec.learning.training", "secagg_spec.experiments.runs"
_OF_TRAINING, _OF_RUNS = "tests/learning/test_training.py::", "tests/experiments/test_runs.py::"
_STEPS = _OF_TRAINING + "test_training_takes_the_steps_of_the_text"


def _trained(engine: str, sizes: Sequence[int] = (3, 5)) -> list[float]:
    """Return what users reach with batches of two samples in two epochs."""
    training, models = import_module(_TRAINING), import_module("secagg_spec.learning.models")
    rng = np.random.default_rng(0)
    samples = SimpleNamespace(x=rng.random((8, 1, 2, 2)).astype(np.float32), y=rng.integers(0, 3, 8))
    model = models.build("logistic", SimpleNamespace(train=samples, classes=3))
    trainer = training.Trainer(model, samples, training.LocalSGD(2, 2, 0.5, decay=0.1), engine)
    parts = [np.arange(size) for size in sizes]
    rngs = [np.random.default_rng(user) for user in range(len(sizes))]
    found: list[float] = trainer.train(np.zeros((len(sizes), model.d)), parts, rngs).round(4).ravel().tolist()
    return found


def _alone() -> object:
    return _trained("loop")


def _together() -> object:
    return _trained("stacked")


def _asked_twice() -> object:
    """Return whether a stream is the same the second time."""
    stream = import_module("secagg_spec.learning.streams").stream
    return stream(1, 2).random() == stream(1, 2).random()


class _Model:
    """A model of one parameter, whose accuracy and loss it is."""

    d = 1

    def __init__(self) -> None:
        self.seen: list[float] = []

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Return a number."""
        return rng.random(1)

    def evaluate(self, vector: np.ndarray, samples: object, device: str) -> tuple[float, float]:
        """Return the parameter twice."""
        self.seen.append(float(vector[0]))
        return float(vector[0]), float(vector[0])


class _Trainer:
    """Moves each user to what its generator draws, in the third call to infinity if that is wanted."""

    device = "cpu"

    def __init__(self, spoilt: bool) -> None:
        self.calls, self.spoilt = 0, spoilt

    def train(self, starts: np.ndarray, parts: Sequence[Any], rngs: Sequence[Any], rate: object) -> np.ndarray:
        """Return the trained models."""
        self.calls += 1
        moves = np.array([[rng.random()] for rng in rngs])
        far = np.inf if self.spoilt and self.calls == 3 else 1.0
        return np.asarray((starts / 2 + moves) * far)


class _Mean:
    """The weighted mean."""

    name = "mean"

    def aggregate(self, updates: np.ndarray, weights: Sequence[float], **of_round: object) -> object:
        """Return the mean."""
        mean = np.asarray(weights, np.float64) @ updates / sum(weights)
        return SimpleNamespace(mean=mean, bound=1 / 64, by="shortcut", moved=0, error=0.0)


def _task(spoilt: bool = False) -> Any:
    """Return a task of three users."""
    parts = tuple(np.arange(size) for size in (1, 2, 4))
    runs = import_module(_RUNS)
    return runs.Task(SimpleNamespace(train=range(7), test=None), parts, _Model(), _Trainer(spoilt), 1)


def _synchronous(spoilt: bool = False, evaluate: int = 1) -> Callable[[], object]:
    """Return a function that runs five rounds of FedAvg, and says how that ends."""

    def witness() -> object:
        runs, task = import_module(_RUNS), _task(spoilt)
        found = runs.run_synchronous(task, _Mean(), rounds=5, choose=lambda number: [0, 1, 2], evaluate=evaluate)
        return found["rounds"], found["diverged"], [round(one, 6) for one in found["accuracy"]]

    return witness


def _buffered() -> object:
    """Return the models of ten rounds of FedBuff."""
    runs, task = import_module(_RUNS), _task()
    runs.run_buffered(
        task, _Mean(), rounds=10, buffer=2, tau_max=3, staleness=Staleness.polynomial(1), c_g=64, server_rate=1.0
    )
    return [round(one, 6) for one in task.model.seen]


def _fedasync() -> object:
    """Return the models of ten uploads."""
    runs, task = import_module(_RUNS), _task()
    runs.run_fedasync(task, rounds=10, tau_max=3, staleness=Staleness.polynomial(1), mixing=0.6)
    return [round(one, 6) for one in task.model.seen]


# ------------------------------------------------------------------------------------------------------------- training


@mutant(
    "the-short-batch-is-dropped",
    "EXP-06",
    "samples that are left over in an epoch are never learnt from",
    f"{_TRAINING}:batches",
    _alone,
    _STEPS,
    kind="sum",
    source="other rule: drop_last of data loaders",
)
def _short_batch(right: Function) -> Function:
    def batches(part: Any, sgd: Any, rng: Any) -> Iterator[Any]:
        return (batch for batch in right(part, sgd, rng) if len(batch) == min(sgd.batch, len(part)))

    return batches


@mutant(
    "each-epoch-has-the-same-order",
    "EXP-06",
    "the batches of all epochs are those of the first one",
    f"{_TRAINING}:batches",
    _alone,
    _STEPS,
    kind="sum",
    source="used twice",
)
def _same_order(right: Function) -> Function:
    def batches(part: Any, sgd: Any, rng: Any) -> Iterator[Any]:
        return iter(list(right(part, _one_epoch(sgd), rng)) * sgd.epochs)

    return batches


@mutant(
    "one-epoch-is-trained",
    "EXP-06",
    "users take one epoch, whatever E is",
    f"{_TRAINING}:batches",
    _alone,
    _STEPS,
    kind="sum",
    source="clause in part",
)
def _one(right: Function) -> Function:
    def batches(part: Any, sgd: Any, rng: Any) -> Iterator[Any]:
        found: Iterator[Any] = right(part, _one_epoch(sgd), rng)
        return found

    return batches


def _one_epoch(sgd: Any) -> Any:
    return type(sgd)(1, sgd.batch, sgd.rate, sgd.momentum, sgd.decay)


@mutant(
    "users-train-without-weight-decay",
    "EXP-06",
    "the decay is left out when a user trains alone",
    f"{_TRAINING}:Trainer._move",
    _alone,
    _STEPS,
    also=("EXP-07",),
    kind="sum",
    source="wrong term",
)
def _no_decay(right: Function) -> Function:
    def move(self: Any, parameters: Any, gradients: Any, velocities: Any, rate: float) -> None:
        sgd = type(self.sgd)(self.sgd.epochs, self.sgd.batch, self.sgd.rate, self.sgd.momentum)
        right(SimpleNamespace(sgd=sgd), parameters, gradients, velocities, rate)

    return move


@mutant(
    "samples-that-fill-up-count",
    "EXP-07",
    "shorter batches are filled up with the first sample of all, which counts like the others",
    f"{_TRAINING}:Trainer._batch",
    _together,
    _OF_TRAINING + "test_users_reach_together_what_each_reaches_alone",
    also=("EXP-06",),
    kind="sum",
    source="wrong term",
)
def _padding(right: Function) -> Function:
    def batch(self: Any, chosen: Any) -> Any:
        images, labels, weights = right(self, chosen)
        return images, labels, weights * 0 + 1 / weights.shape[1]

    return batch


@mutant(
    "streams-are-new-in-each-run",
    "EXP-08",
    "schemes with one seed have other batches, users and staleness",
    "secagg_spec.learning.streams:stream",
    _asked_twice,
    "tests/learning/test_streams.py::test_a_stream_is_the_same_whenever_it_is_asked_for",
    kind="sum",
    source="clause left out",
)
def _new_streams(right: Function) -> Function:
    def stream(seed: int, which: int, *numbers: int) -> np.random.Generator:
        return np.random.default_rng()

    return stream


@mutant(
    "late-batches-have-streams-of-their-own",
    "EXP-08",
    "a scheme with staleness trains on other batches than one without",
    f"{_RUNS}:Task.updates",
    _buffered,
    _OF_RUNS + "test_schemes_with_one_seed_see_the_same_users_staleness_and_batches",
    kind="sum",
    source="clause in part",
)
def _late_batches(right: Function) -> Function:
    def updates(self: Any, users: Any, starts: Any, number: int, *rest: Any) -> Any:
        same = bool((starts == starts[0]).all())
        return right(self, users, starts, number if same else number + 10**6, *rest)

    return updates


# --------------------------------------------------------------------------------------------------------------- rounds


@mutant(
    "training-that-diverged-goes-on",
    "EXP-09",
    "numbers that are not finite go into the sum",
    f"{_RUNS}:Task.updates",
    _synchronous(spoilt=True),
    _OF_RUNS + "test_a_run_stops_where_training_diverges",
    kind="acceptance",
    source="silent repair",
)
def _goes_on(right: Function) -> Function:
    def updates(self: Any, users: Any, starts: Any, number: int, work: Any, rate: Any = None) -> Any:
        runs = import_module(_RUNS)
        try:
            return right(self, users, starts, number, work, rate)
        except runs.Diverged:
            return np.zeros_like(starts)

    return updates


@mutant(
    "models-that-are-not-finite-are-kept",
    "EXP-09",
    "a model with an infinite parameter is trained on",
    f"{_RUNS}:Course._checked",
    lambda: _kept_model(),  # noqa: PLW0108
    _OF_RUNS + "test_a_run_stops_where_the_model_is_not_finite",
    kind="acceptance",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    def checked(self: Any, done: int, model: Any) -> Any:
        return model

    return checked


def _kept_model() -> object:
    runs = import_module(_RUNS)
    course = runs.Course(_task(), 5, 5, lambda share: None, runs.Work())
    try:
        return float(course._checked(1, np.array([np.inf]))[0])
    except runs.Diverged as error:
        return str(error)


@mutant(
    "all-users-count-the-same",
    "EXP-10",
    "FedAvg weights users with many samples like those with few",
    f"{_RUNS}:Work.aggregate",
    _synchronous(),
    _OF_RUNS + "test_fedavg_moves_the_model_against_the_weighted_mean",
    kind="sum",
    source="clause in part",
)
def _equal_weights(right: Function) -> Function:
    def aggregate(self: Any, aggregator: Any, updates: Any, weights: Any, **of_round: Any) -> Any:
        return right(self, aggregator, updates, [1] * len(weights), **of_round)

    return aggregate


@mutant(
    "the-model-moves-with-the-updates",
    "EXP-10",
    "the server adds what users subtracted",
    f"{_RUNS}:_moved",
    _synchronous(),
    _OF_RUNS + "test_fedavg_moves_the_model_against_the_weighted_mean",
    also=("EXP-11",),
    kind="sum",
    source="sign",
)
def _with_updates(right: Function) -> Function:
    def moved(model: Any, mean: Any, server_rate: float) -> Any:
        return right(model, -mean, server_rate)

    return moved


@mutant(
    "staleness-is-never-the-largest",
    "EXP-11",
    "the staleness is below tau_max",
    f"{_RUNS}:drawn_taus",
    _buffered,
    _OF_RUNS + "test_staleness_is_uniform_up_to_the_bound_and_the_round",
    kind="sum",
    source="off by one",
)
def _below(right: Function) -> Function:
    def drawn(seed: int, number: int, tau_max: int, count: int) -> Any:
        return right(seed, number, max(0, tau_max - 1), count)

    return drawn


@mutant(
    "late-users-begin-with-the-newest-model",
    "EXP-11",
    "staleness changes the weight of an update, and not what it began with",
    f"{_RUNS}:Past.models",
    _buffered,
    _OF_RUNS + "test_late_updates_begin_with_the_model_of_that_round",
    also=("EXP-12",),
    kind="sum",
    source="wrong term",
)
def _newest(right: Function) -> Function:
    def models(self: Any, taus: Sequence[int]) -> Any:
        return right(self, [0] * len(taus))

    return models


@mutant(
    "fedasync-keeps-what-it-should-replace",
    "EXP-12",
    "the shares of the model and of what the user trained change places",
    f"{_RUNS}:mixed",
    _fedasync,
    _OF_RUNS + "test_fedasync_mixes_what_a_user_trained_into_the_model",
    kind="sum",
    source="order",
)
def _swapped(right: Function) -> Function:
    def mixed(model: Any, trained: Any, share: float) -> Any:
        return right(model, trained, 1 - share)

    return mixed


@mutant(
    "the-last-round-before-the-end-is-forgotten",
    "EXP-24",
    "a run that diverged counts with the last evaluation, which may lie many rounds back",
    f"{_RUNS}:Course._keep",
    _synchronous(spoilt=True, evaluate=5),
    _OF_RUNS + "test_a_run_that_diverged_counts_with_its_last_round",
    also=("EXP-09",),
    kind="sum",
    source="forgotten",
)
def _forgotten(right: Function) -> Function:
    def keep(self: Any, done: int, model: Any) -> None:
        """Keep nothing."""

    return keep


@mutant(
    "a-run-that-diverged-counts-with-its-best-rounds",
    "EXP-24",
    "a seed that diverged counts with the mean of rounds before",
    "secagg_spec.experiments.experiment:accuracy",
    lambda: import_module("secagg_spec.experiments.experiment").accuracy(
        {"accuracy": [float(one) for one in range(30)], "diverged": 31}
    ),
    _OF_RUNS + "test_a_run_that_diverged_is_not_averaged_over_its_last_tenth",
    kind="sum",
    source="clause left out",
)
def _tenth(right: Function) -> Function:
    def accuracy(found: Any) -> float:
        value: float = right({**found, "diverged": None})
        return value

    return accuracy
