"""Planted bugs of FedBuff. No operation of the adapter protocol comes near it, so that each names its test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.staleness import Staleness, floor_weight
from secagg_spec.conformance.mutants import mutant
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import fedbuff
from secagg_spec.protocols.fedbuff import PRESETS, Parameters, ServerState

Function = Callable[..., Any]
_MODULE = "secagg_spec.protocols.fedbuff"
_TESTS = "tests/protocols/test_fedbuff.py::"
_TINY = PRESETS["tiny"]
_QUANTISED = replace(_TINY, c_l=8)
_CONSTANT = replace(_TINY, staleness=Staleness.constant(), c_g=1)


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or the name of its failure."""
    try:
        return call()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


def _run(parameters: Parameters, *updates: tuple[int, int, Any], at: int = 2, steps: int = 1) -> object:
    """Return what is left of a server in round `at` after these updates and, when its buffer is full, a step."""
    return _outcome(lambda: _ran(parameters, updates, at, steps))


def _ran(parameters: Parameters, updates: Sequence[tuple[int, int, Any]], at: int, steps: int) -> object:
    state = replace(fedbuff.start(parameters, np.full(parameters.d, 0.1)), round=at)
    for user, stamp, values in updates:
        if state.full and steps:
            state = fedbuff.step(state, rounding=np.full(parameters.K, 0.5))
        state = fedbuff.receive(state, user, stamp, _values(parameters, values))
    if state.full and steps:
        state = fedbuff.step(state, rounding=np.arange(parameters.K) / 8 + 0.25)
    return fedbuff.store(state)


def _values(parameters: Parameters, numbers: Sequence[Any]) -> Any:
    return np.array(numbers, dtype=np.float64 if parameters.c_l is None else np.int64)


_TWO = ((1, 1, (0.1, 0.2, 0.3)), (0, 2, (3.3, 2.2, 1.1)))
_WHOLE = ((1, 1, (1, 2, 4)), (0, 2, (7, 2, 1)))


# --------------------------------------------------------------------------------------------------------- the step


@mutant(
    "update-has-the-other-sign",
    "FBF-02",
    "wrong model: a user sends what it added, and the server takes it away",
    f"{_MODULE}:local_update",
    lambda: fedbuff.local_update(np.array([1.0]), np.array([3.0])).tolist(),
    _TESTS + "test_an_update_is_what_training_took_away",
    kind="sum",
    source="sign",
)
def _sign(right: Function) -> Function:
    return lambda downloaded, trained: right(trained, downloaded)


@mutant(
    "buffer-weighs-all-alike",
    "FBF-09",
    "wrong model: late updates count as much as others",
    f"{_MODULE}:weights",
    lambda: _run(_TINY, *_TWO),
    _TESTS + "test_the_example_of_the_text",
    kind="sum",
    source="wrong term",
)
def _alike(right: Function) -> Function:
    return lambda state, rounding: tuple(state.parameters.c_g for _ in right(state, rounding))


@mutant(
    "buffer-shares-a-draw",
    "FBF-09",
    "bias of the average: the weights of a buffer go up and down together",
    f"{_MODULE}:weights",
    lambda: fedbuff.weights(_full(replace(_TINY, c_g=3)), np.array([0.25, 0.75])),
    _TESTS + "test_each_weight_has_a_draw_of_its_own",
    kind="sum",
    source="weak draw: one draw for all",
)
def _one_draw(right: Function) -> Function:
    return lambda state, rounding: right(state, np.full_like(rounding, rounding[0]))


def _full(parameters: Parameters) -> ServerState:
    """Return a server in round 2 with two updates that are one round late."""
    state = replace(fedbuff.start(parameters, np.zeros(3)), round=2)
    for user in (0, 1):
        state = fedbuff.receive(state, user, 1, _values(parameters, (1, 2, 3)))
    return state


@mutant(
    "buffer-floors-weights",
    "FBF-09",
    "bias: the weights are rounded down",
    f"{_MODULE}:realised_weight",
    lambda: fedbuff.weights(_full(replace(_TINY, c_g=3)), np.array([0.25, 0.75])),
    _TESTS + "test_a_step_without_weight_is_refused_and_may_be_drawn_again",
    kind="sum",
    source="weak draw: always rounded down",
)
def _floors(right: Function) -> Function:
    return lambda function, c_g, tau, draw: floor_weight(function, c_g, tau)


@mutant(
    "reals-in-order-of-arrival",
    "FBF-10",
    "disagreement: the last bits of the model depend on which update came first",
    f"{_MODULE}:by_user",
    lambda: _run(replace(_CONSTANT, K=3, d=1), (2, 2, [-(2.0**53)]), (1, 2, [1.0]), (0, 2, [2.0**53])),
    _TESTS + "test_the_order_of_a_real_sum_is_that_of_the_users",
    kind="sum",
    source="order",
)
def _arrival(right: Function) -> Function:
    return lambda state: state.buffer


@mutant(
    "integers-summed-in-binary64",
    "FBF-11",
    "disagreement: each quantised update is divided by its level before the sum, so that last bits are lost",
    f"{_MODULE}:average_integers",
    lambda: _run(replace(_QUANTISED, c_l=10), *_WHOLE),
    _TESTS + "test_quantised_updates_are_summed_before_they_are_divided",
    kind="sum",
    source="arithmetic: divided before it is summed",
)
def _in_binary64(right: Function) -> Function:
    def wrong(weights: Sequence[int], updates: Sequence[Any], c_l: int) -> Any:
        return fedbuff.average_reals(weights, [update / np.float64(c_l) for update in updates])

    return wrong


@mutant(
    "average-forgets-the-level",
    "FBF-11",
    "wrong model: the sum is divided by K, and not by the weights",
    f"{_MODULE}:average_integers",
    lambda: _run(_QUANTISED, *_WHOLE),
    _TESTS + "test_a_constant_function_gives_equation_16",
    kind="sum",
    source="wrong term",
)
def _by_count(right: Function) -> Function:
    return lambda weights, updates, c_l: right(weights, updates, c_l) * sum(weights) / len(weights)


@mutant(
    "model-moved-by-a-fused-operation",
    "FBF-12",
    "disagreement: product and difference are rounded once together, so that last bits are other ones",
    f"{_MODULE}:moved",
    lambda: fedbuff.moved(np.array([1 + 2.0**-29]), np.array([1 + 2.0**-30]), 1 + 2.0**-30).tolist(),
    _TESTS + "test_the_product_is_rounded_before_the_difference",
    kind="sum",
    source="arithmetic: rounded once in place of twice",
)
def _fused(right: Function) -> Function:
    def wrong(model: Any, average: Any, eta_g: float) -> Any:
        right(model, average, eta_g)
        return (model.astype(np.longdouble) - np.longdouble(eta_g) * average.astype(np.longdouble)).astype(np.float64)

    return wrong


@mutant(
    "rate-is-left-out",
    "FBF-12",
    "wrong model: the server's learning rate is 1, whatever was agreed on",
    f"{_MODULE}:moved",
    lambda: fedbuff.moved(np.array([1.0]), np.array([1.0]), 0.5).tolist(),
    _TESTS + "test_the_example_of_the_text",
    kind="sum",
    source="wrong term",
)
def _rate(right: Function) -> Function:
    return lambda model, average, eta_g: right(model, average, 1.0)


@mutant(
    "round-stands-still",
    "FBF-13",
    "wrong weights: the round is not counted on, so that no update is ever late",
    f"{_MODULE}:step",
    lambda: _run(_TINY, *_TWO),
    _TESTS + "test_the_example_of_the_text",
    kind="sum",
    source="kept too long",
)
def _still(right: Function) -> Function:
    return lambda state, rounding: replace(right(state, rounding=rounding), round=state.round)


@mutant(
    "no-weight-moves-nothing",
    "FBF-14",
    "loss without a sign: updates whose weights are all 0 are thrown away, and the round goes on",
    f"{_MODULE}:step",
    lambda: _run(replace(_TINY, c_g=1, staleness=Staleness.polynomial(3)), *((u, 0, (1, 2, 3)) for u in (0, 1))),
    _TESTS + "test_a_step_without_weight_is_refused_and_may_be_drawn_again",
    kind="acceptance",
    source="paper: fedbuff, all weights 0",
)
def _nothing(right: Function) -> Function:
    def wrong(state: ServerState, *, rounding: Any) -> ServerState:
        if state.full and not any(fedbuff.weights(state, rounding)):
            return replace(state, round=state.round + 1, buffer=())
        moved: ServerState = right(state, rounding=rounding)
        return moved

    return wrong


@mutant(
    "overflow-is-kept",
    "FBF-15",
    "failure: a number of the model overflows and stays infinite in all rounds to come",
    f"{_MODULE}:_next_model",
    lambda: _run(replace(_CONSTANT, d=1), (0, 2, [1e308]), (1, 2, [1e308])),
    _TESTS + "test_a_step_that_overflows_is_refused",
    kind="acceptance",
    source="silent repair",
)
def _kept(right: Function) -> Function:
    return lambda state, realised: np.nan_to_num(right(state, realised))


# --------------------------------------------------------------------------------------------------------- refusals


@mutant(
    "values-of-any-form",
    "FBF-03",
    "wrong model: an update of one number counts for all, and NaN for 0",
    f"{_MODULE}:_checked",
    lambda: _run(_TINY, (0, 2, [1.0])),
    _TESTS + "test_an_update_of_another_form_is_refused",
    kind="acceptance",
    source="silent repair",
)
def _any_form(right: Function) -> Function:
    def wrong(parameters: Parameters, values: Any) -> Any:
        if isinstance(values, np.ndarray) and parameters.c_l is None:
            values = np.resize(np.nan_to_num(values.astype(np.float64)), parameters.d)
        return right(parameters, values)

    return wrong


@mutant(
    "integers-of-any-size",
    "FBF-03",
    "wrong model: an integer that the sum cannot hold is clipped",
    f"{_MODULE}:_checked",
    lambda: _run(_QUANTISED, (0, 2, (2**60, 0, 0))),
    _TESTS + "test_a_quantised_update_is_refused_beyond_its_bound",
    kind="acceptance",
    source="silent repair",
)
def _any_size(right: Function) -> Function:
    def wrong(parameters: Parameters, values: Any) -> Any:
        fits = isinstance(values, np.ndarray) and values.dtype == np.int64 and parameters.c_l is not None
        return right(parameters, np.clip(values, -parameters.bound, parameters.bound) if fits else values)

    return wrong


def _forgiving(pattern: str) -> Callable[[Function], Function]:
    """Return what makes a check of stamps that lets pass what is refused in these words."""

    def build(right: Function) -> Function:
        def wrong(state: ServerState, user: int, stamp: int) -> None:
            try:
                right(state, user, stamp)
            except ProtocolError as error:
                if pattern not in str(error):
                    raise

        return wrong

    return build


_CHECK = f"{_MODULE}:_check_stamp"

mutant(
    "updates-from-the-future",
    "FBF-04",
    "wrong weights: an update of a round to come is taken, and its staleness is below 0",
    _CHECK,
    lambda: _run(_TINY, (0, 3, (1, 2, 3))),
    _TESTS + "test_an_update_of_a_round_to_come_is_refused",
    kind="acceptance",
    source="clause left out",
)(_forgiving("has trained the model"))

mutant(
    "late-updates-are-taken",
    "FBF-05",
    "no bound on staleness: an update counts however old it is",
    _CHECK,
    lambda: _run(_TINY, (0, 2, (1, 2, 3)), at=9),
    _TESTS + "test_an_update_that_is_too_late_is_refused",
    kind="acceptance",
    source="paper: fedbuff, late updates",
)(_forgiving("above tau_max"))

mutant(
    "updates-come-twice",
    "FBF-06",
    "wrong model: an update that is sent again after a step counts again",
    _CHECK,
    lambda: _run(_TINY, *_TWO, _TWO[0]),
    _TESTS + "test_an_update_comes_once_also_after_it_was_averaged",
    kind="acceptance",
    source="clause left out",
)(_forgiving("before"))

mutant(
    "accepted-is-forgotten",
    "FBF-06",
    "wrong model: with each step the server forgets what it accepted",
    f"{_MODULE}:_recent",
    lambda: _run(_TINY, *_TWO, _TWO[0]),
    _TESTS + "test_what_is_forgotten_is_refused_anyway",
    kind="acceptance",
    source="forgotten",
)(lambda right: lambda state, following: frozenset())

mutant(
    "users-wait-twice",
    "FBF-07",
    "disagreement: two updates of one user are in a buffer whose members are told by their users",
    _CHECK,
    lambda: _run(replace(_TINY, K=3), (0, 1, (1, 2, 3)), (0, 2, (1, 2, 3))),
    _TESTS + "test_one_update_of_a_user_waits_at_a_time",
    kind="acceptance",
    source="paper: fedbuff, several updates of one user in a buffer",
)(_forgiving("waits in the buffer"))

mutant(
    "full-buffer-takes-more",
    "FBF-08",
    "wrong model: an update beyond the K-th changes the step",
    _CHECK,
    lambda: _run(_TINY, *_TWO, (3, 2, (1, 2, 3)), steps=0),
    _TESTS + "test_a_step_comes_exactly_when_the_buffer_is_full",
    kind="acceptance",
    source="clause in part",
)(_forgiving("the buffer is full"))


@mutant(
    "parameters-of-fedbuff-unchecked",
    "FBF-01",
    "wrong model: sums of weights, and denominators, that binary64 does not hold",
    f"{_MODULE}:Parameters._set",
    lambda: _outcome(lambda: replace(_TINY, K=6).K),
    _TESTS + "test_parameters_out_of_range_are_refused",
    kind="acceptance",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    return lambda self, name, low, high: None


@mutant(
    "users-of-fedbuff-unknown",
    "FBF-17",
    "Sybils: whoever calls itself a user is one",
    f"{_MODULE}:receive",
    lambda: _run(_TINY, (9, 2, (1, 2, 3))),
    _TESTS + "test_a_user_outside_the_roster_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _unknown(right: Function) -> Function:
    def wrong(state: ServerState, user: int, stamp: int, values: Any) -> ServerState:
        wider = replace(state, parameters=replace(state.parameters, N=validate.MAX_COUNT))
        taken: ServerState = right(wider, abs(user), stamp, values)
        return replace(taken, parameters=state.parameters)

    return wrong


@mutant(
    "buffer-is-not-stored",
    "FBF-16",
    "loss: updates that wait are lost when the server is started again",
    f"{_MODULE}:store",
    lambda: _run(_TINY, _TWO[0]),
    _TESTS + "test_a_server_that_is_stopped_at_every_step_goes_on_as_another",
    kind="sum",
    source="forgotten",
)
def _lost(right: Function) -> Function:
    return lambda state: {**right(state), "buffer": []}


@mutant(
    "accepted-is-not-stored",
    "FBF-16",
    "wrong model: after a start an update that was averaged before counts again",
    f"{_MODULE}:restore",
    lambda: fedbuff.store(fedbuff.restore(fedbuff.store(_stepped()))),
    _TESTS + "test_an_update_comes_once_also_after_it_was_averaged",
    kind="acceptance",
    source="forgotten",
)
def _amnesia(right: Function) -> Function:
    return lambda data: replace(right(data), accepted=frozenset())


def _stepped() -> ServerState:
    return fedbuff.step(_full(_TINY), rounding=np.zeros(2))


@mutant(
    "model-stored-in-fewer-bits",
    "FBF-16",
    "disagreement: the model is stored in decimal digits that do not give all bits back",
    f"{_MODULE}:_packed",
    lambda: fedbuff.store(fedbuff.start(_TINY, np.full(3, 0.1 + 0.2))),
    _TESTS + "test_every_bit_of_a_number_is_kept",
    kind="sum",
    source="arithmetic: decimal digits that do not give all bits back",
)
def _fewer_bits(right: Function) -> Function:
    def wrong(values: Any) -> Any:
        kept = np.array([float(f"{value:.15g}") for value in values.tolist()])
        return right(kept if values.dtype == np.float64 else values)

    return wrong
