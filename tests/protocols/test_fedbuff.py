"""FedBuff against rational numbers: the step, what is refused, and a server that is stopped and started again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, PrimeField
from secagg_spec.arithmetic.quantizer import dequantize, quantize, stochastic_round
from secagg_spec.arithmetic.staleness import Staleness, admissible_weights, realised_weight
from secagg_spec.crypto.entropy import SeededSource, draw_rounding
from secagg_spec.errors import (
    LengthMismatch,
    OutOfRange,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    UnknownUser,
    WrongPhase,
)
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.fedbuff.round import EXACT, PRESETS, Parameters, ServerState, Update, receive, start, step
from tests.test_text import page, rows

TINY = PRESETS["tiny"]
QUANTISED = replace(TINY, c_l=8)
CONSTANT = replace(QUANTISED, staleness=Staleness.constant())
finite = st.floats(-(2.0**60), 2.0**60)
modest = st.floats(-100, 100)


def reals(*values: float) -> Any:
    """A vector of binary64 numbers."""
    return np.array(values, dtype=np.float64)


def integers(*values: int) -> Any:
    """A vector of 64-bit integers."""
    return np.array(values, dtype=np.int64)


def halves(count: int = 2) -> Any:
    """As many draws of 1/2."""
    return np.full(count, 0.5)


def values_of(parameters: Parameters, *numbers: int) -> Any:
    """An update of the kind that the parameters ask for."""
    return reals(*numbers) if parameters.c_l is None else integers(*numbers)


def server(parameters: Parameters, round: int = 0, *updates: tuple[int, int]) -> ServerState:
    """A server in some round, with updates (user, stamp) in its buffer."""
    state = replace(start(parameters, np.zeros(parameters.d)), round=round)
    for user, stamp in updates:
        state = receive(state, user, stamp, values_of(parameters, user + 1, stamp, -user))
    return state


def same(one: ServerState, other: ServerState) -> bool:
    """Whether two servers are the same bit for bit."""
    return fedbuff.store(one) == fedbuff.store(other)


def refused(state: ServerState, error: type[Exception], user: Any, stamp: Any, values: Any) -> Exception:
    """The failure of an update that must be refused, without a trace."""
    before = fedbuff.store(state)
    with pytest.raises(error) as caught:
        receive(state, user, stamp, values)
    assert fedbuff.store(state) == before
    return caught.value


@st.composite
def parameter_sets(draw: st.DrawFn, quantised: bool | None = None) -> Parameters:
    """Parameters of a few users."""
    N = draw(st.integers(1, 5))
    kinds = st.one_of(
        st.just(Staleness.constant()),
        st.sampled_from(("0", "1/2", "1", "3/2", "2")).map(Staleness.polynomial),
        st.builds(Staleness.hinge, st.sampled_from(("1/3", "2")), st.integers(0, 2)),
    )
    c_l = draw(st.sampled_from((1, 8, 10, 2**16)))
    real = not draw(st.booleans()) if quantised is None else not quantised
    return Parameters(
        N=N,
        d=draw(st.integers(1, 3)),
        K=draw(st.integers(1, N)),
        tau_max=draw(st.integers(0, 4)),
        eta_g=draw(st.sampled_from((1.0, 0.1, 0.5, 3.0))),
        staleness=draw(kinds),
        c_g=draw(st.sampled_from((1, 3, 64, 1000))),
        c_l=None if real else c_l,
    )


@st.composite
def buffers(draw: st.DrawFn, parameters: Parameters) -> ServerState:
    """A server with a full buffer, in some round."""
    p = parameters
    t = draw(st.integers(0, 9))
    state = replace(start(p, np.array(draw(st.lists(modest, min_size=p.d, max_size=p.d)))), round=t)
    for user in draw(st.permutations(range(p.N)))[: p.K]:
        stamp = draw(st.integers(max(t - p.tau_max, 0), t))
        kind = st.integers(-(2**20), 2**20) if p.c_l else modest
        numbers = draw(st.lists(kind, min_size=p.d, max_size=p.d))
        state = receive(state, user, stamp, np.array(numbers, dtype=np.int64 if p.c_l else np.float64))
    return state


full_buffers = parameter_sets().flatmap(buffers)


def draws_of(state: ServerState, seed: int = 1) -> Any:
    """Draws of a step."""
    return draw_rounding(SeededSource(seed.to_bytes(4, "little"), "rounding"), len(state.buffer))


# ----------------------------------------------------------------------------------------------------------- the step


def exact_weights(state: ServerState, rounding: Any) -> dict[int, int]:
    """The weights by user."""
    p = state.parameters
    stamps = {update.user: update.stamp for update in state.buffer}
    return {
        user: realised_weight(p.staleness, p.c_g, state.round - stamps[user], float(rounding[place]))
        for place, user in enumerate(sorted(stamps))
    }


def nearest(value: Fraction) -> float:
    """A rational number rounded once to binary64: what Python does with a quotient of integers."""
    return value.numerator / value.denominator


def by_hand(state: ServerState, weights: dict[int, int]) -> list[float]:
    """The next model, with every operation exact and then rounded once."""
    p, model = state.parameters, []
    for place in range(p.d):
        terms = {u.user: Fraction(u.values[place].item()) for u in state.buffer}
        total = Fraction(0)
        for user in sorted(terms):
            term = weights[user] * terms[user]
            total = total + term if p.c_l else Fraction(nearest(total + Fraction(nearest(term))))
        average = Fraction(nearest(total / ((p.c_l or 1) * sum(weights.values()))))
        product = Fraction(nearest(Fraction(p.eta_g) * average))
        model.append(nearest(Fraction(state.model[place].item()) - product))
    return model


@pytest.mark.requirement("FBF-09", "FBF-10", "FBF-11", "FBF-12", "FBF-13")
@given(full_buffers, st.integers(0, 100))
def test_a_step_is_the_formula_with_each_operation_rounded_once(state: ServerState, seed: int) -> None:
    rounding = draws_of(state, seed)
    weights = exact_weights(state, rounding)
    assert fedbuff.weights(state, rounding) == tuple(weights[user] for user in sorted(weights))
    if not any(weights.values()):
        with pytest.raises(TooFewSurvivors):
            step(state, rounding=rounding)
        return
    after = step(state, rounding=rounding)
    assert after.model.tolist() == by_hand(state, weights)
    assert (after.round, after.buffer, after.full) == (state.round + 1, (), False)


@pytest.mark.requirement("FBF-09", "FBF-10", "FBF-11", "FBF-12", "FBF-13")
@pytest.mark.parametrize("eta_g", [1.0, 0.5])
@pytest.mark.parametrize("c_l", [None, 1])
def test_the_example_of_the_text(c_l: int | None, eta_g: float) -> None:
    p = replace(TINY, c_l=c_l, eta_g=eta_g)
    state = replace(start(p, np.full(3, 5.0)), round=2)
    state = receive(receive(state, 4, 2, values_of(p, 3, 0, 6)), 1, 1, values_of(p, 6, 3, 0))
    assert fedbuff.weights(state, halves()) == (2, 4)
    after = step(state, rounding=halves())
    assert after.model.tolist() == [5 - eta_g * mean for mean in (4, 1, 4)]
    assert (after.round, after.buffer) == (3, ())


@pytest.mark.requirement("FBF-09")
def test_each_weight_has_a_draw_of_its_own() -> None:
    state = server(replace(TINY, c_g=3), 2, (3, 1), (0, 1))
    assert fedbuff.weights(state, reals(0.25, 0.75)) == (2, 1)
    assert fedbuff.weights(state, reals(0.75, 0.25)) == (1, 2)


@pytest.mark.requirement("FBF-10")
def test_the_order_of_a_real_sum_is_that_of_the_users() -> None:
    p = replace(TINY, K=3, d=1, staleness=Staleness.constant(), c_g=1)
    numbers = {0: 2.0**53, 1: 1.0, 2: -(2.0**53)}
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        state = start(p, np.zeros(1))
        for user in order:
            state = receive(state, user, 0, reals(numbers[user]))
        assert step(state, rounding=halves(3)).model.tolist() == [0.0]
    swapped = start(p, np.zeros(1))
    for user, number in ((0, 2.0**53), (1, -(2.0**53)), (2, 1.0)):
        swapped = receive(swapped, user, 0, reals(number))
    assert step(swapped, rounding=halves(3)).model.tolist() == [-1 / 3]


@pytest.mark.requirement("FBF-11")
def test_the_sum_of_quantised_updates_is_exact_up_to_the_bound() -> None:
    p = replace(QUANTISED, d=1, K=2, staleness=Staleness.constant(), c_g=1, c_l=2**32)
    state = receive(receive(start(p, np.zeros(1)), 0, 0, integers(p.bound)), 1, 0, integers(p.bound - 1))
    assert p.bound == 2**52
    assert step(state, rounding=halves()).model.tolist() == [-(2**53 - 1) / 2**33]


@pytest.mark.requirement("FBF-11")
def test_quantised_updates_are_summed_before_they_are_divided() -> None:
    p = replace(CONSTANT, d=1, c_g=1, c_l=10)
    state = receive(receive(start(p, np.zeros(1)), 0, 0, integers(1)), 1, 0, integers(2))
    assert step(state, rounding=halves()).model.tolist() == [-0.15]
    assert (0.1 + 0.2) / 2 != 0.15


@pytest.mark.requirement("FBF-12")
def test_the_product_is_rounded_before_the_difference() -> None:
    p = replace(TINY, d=1, K=1, eta_g=1 + 2.0**-30, staleness=Staleness.constant(), c_g=1)
    state = receive(start(p, reals(1 + 2.0**-29)), 0, 0, reals(1 + 2.0**-30))
    fused = nearest(1 + Fraction(1, 2**29) - (1 + Fraction(1, 2**30)) ** 2)
    assert fused == -(2.0**-60)
    assert step(state, rounding=halves(1)).model.tolist() == [0.0]


@pytest.mark.requirement("FBF-11", "FBF-12")
@given(buffers(CONSTANT))
def test_a_constant_function_gives_equation_16(state: ServerState) -> None:
    p = state.parameters
    assert p.c_l is not None
    total = [sum(u.values[place].item() for u in state.buffer) for place in range(p.d)]
    mean = np.array([number / (p.K * p.c_l) for number in total])
    assert (step(state, rounding=draws_of(state)).model == state.model - p.eta_g * mean).all()


@pytest.mark.requirement("FBF-10", "FBF-12")
@given(buffers(replace(TINY, c_g=12, K=3)))
def test_with_whole_weights_a_step_is_equation_4(state: ServerState) -> None:
    """12 / (1 + tau) is an integer for tau up to 3, so that the weights are 12 s(tau); binary64 is off by little."""
    p = state.parameters
    s = {u.user: Fraction(1, 1 + state.round - u.stamp) for u in state.buffer}
    after = step(state, rounding=draws_of(state))
    for place in range(p.d):
        total = sum(s[u.user] * Fraction(u.values[place].item()) for u in state.buffer)
        exact = Fraction(state.model[place].item()) - Fraction(p.eta_g) * total / sum(s.values())
        assert abs(Fraction(after.model[place].item()) - exact) < Fraction(1, 2**40)


@pytest.mark.requirement("FBF-11")
@given(buffers(replace(TINY, c_l=2**10, K=3, c_g=64)), st.integers(0, 50))
def test_a_sum_modulo_a_prime_gives_the_same_model(state: ServerState, seed: int) -> None:
    p, field = state.parameters, PrimeField(DEFAULT_PRIME)
    assert p.c_l is not None
    small = replace(state, buffer=tuple(replace(u, values=u.values // 2**7) for u in state.buffer))
    rounding = draws_of(small, seed)
    weights = fedbuff.weights(small, rounding)
    total = field.zeros(p.d)
    for weight, update in zip(weights, fedbuff.by_user(small), strict=True):
        total = field.add(total, field.multiply(field.encode_signed(update.values), np.full(p.d, weight, np.uint64)))
    average = field.decode_signed(total) / np.float64(p.c_l * sum(weights))
    assert (step(small, rounding=rounding).model == fedbuff.moved(small.model, average, p.eta_g)).all()


@pytest.mark.requirement("FBF-02")
@given(st.lists(st.tuples(modest, modest), min_size=1, max_size=4))
def test_an_update_is_what_training_took_away(pairs: list[tuple[float, float]]) -> None:
    downloaded, trained = (np.array(column) for column in zip(*pairs, strict=True))
    update = fedbuff.local_update(downloaded, trained)
    assert update.tolist() == [a - b for a, b in pairs]
    one = replace(TINY, d=len(pairs), K=1, N=1)
    after = step(receive(start(one, downloaded), 0, 0, update), rounding=halves(1))
    assert np.allclose(after.model, trained, atol=1e-12)


@pytest.mark.requirement("FBF-09", "FBF-14")
@pytest.mark.parametrize("quantised", [False, True])
def test_a_step_without_weight_is_refused_and_may_be_drawn_again(quantised: bool) -> None:
    p = replace(QUANTISED if quantised else TINY, c_g=1, staleness=Staleness.polynomial(2))
    state = server(p, 2, (0, 1), (1, 1))
    before = fedbuff.store(state)
    with pytest.raises(TooFewSurvivors, match="weights of all 2 updates are 0"):
        step(state, rounding=reals(0.25, 0.25))
    assert fedbuff.store(state) == before
    assert fedbuff.weights(state, reals(0.25, 0.25 - 2.0**-53)) == (0, 1)
    assert step(state, rounding=reals(0.25, 0.0)).round == 3


@pytest.mark.requirement("FBF-14")
def test_with_the_parameters_of_the_paper_no_weight_is_zero() -> None:
    p = PRESETS["paper"]
    assert min(admissible_weights(p.staleness, p.c_g, p.tau_max)) == 5


@pytest.mark.requirement("FBF-15")
@pytest.mark.parametrize(
    ("numbers", "eta_g"), [((1e308, 1e308), 1.0), ((-1e308, -1e308), 1e10), ((1e300, 1e300), 1e10)]
)
def test_a_step_that_overflows_is_refused(numbers: tuple[float, float], eta_g: float) -> None:
    p = replace(TINY, d=1, eta_g=eta_g)
    state = start(p, np.zeros(1))
    for user, number in enumerate(numbers):
        state = receive(state, user, 0, reals(number))
    before = fedbuff.store(state)
    with pytest.raises(OutOfRange, match="must be finite"):
        step(state, rounding=halves())
    assert fedbuff.store(state) == before


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("FBF-04")
@pytest.mark.parametrize("stamp", [3, 4, 2**32 - 1])
def test_an_update_of_a_round_to_come_is_refused(stamp: int) -> None:
    error = refused(server(TINY, 2), WrongPhase, 1, stamp, reals(1, 2, 3))
    assert isinstance(error, ProtocolError)
    assert error.blamed == {1}
    assert len(receive(server(TINY, 2), 1, 2, reals(1, 2, 3)).buffer) == 1


@pytest.mark.requirement("FBF-05")
@given(st.integers(0, 10), st.integers(0, 10))
def test_an_update_that_is_too_late_is_refused(t: int, stamp: int) -> None:
    state = server(TINY, t)
    if stamp <= t and t - stamp > TINY.tau_max:
        assert "above tau_max = 3" in str(refused(state, WrongPhase, 0, stamp, reals(1, 2, 3)))
    elif stamp <= t:
        assert receive(state, 0, stamp, reals(1, 2, 3)).buffer[0].stamp == stamp


@pytest.mark.requirement("FBF-06")
def test_an_update_comes_once_also_after_it_was_averaged() -> None:
    state = server(TINY, 2, (0, 1))
    error = refused(state, Replay, 0, 1, reals(1, 2, 3))
    assert isinstance(error, ProtocolError)
    assert error.blamed == {0}
    after = step(receive(state, 3, 2, reals(1, 2, 3)), rounding=halves())
    for user, stamp in ((0, 1), (3, 2)):
        refused(after, Replay, user, stamp, reals(1, 2, 3))
        restored = fedbuff.restore(json.loads(json.dumps(fedbuff.store(after))))
        refused(restored, Replay, user, stamp, reals(1, 2, 3))
    assert len(receive(after, 0, 2, reals(1, 2, 3)).buffer) == 1


@pytest.mark.requirement("FBF-06")
@given(st.data())
def test_what_is_forgotten_is_refused_anyway(data: st.DataObject) -> None:
    state, accepted = server(TINY), set()
    for _ in range(data.draw(st.integers(1, 8))):
        while not state.full:
            free = [u for u in range(TINY.N) if u not in {w.user for w in state.buffer}]
            user, stamp = data.draw(st.sampled_from(free)), state.round
            stamp = data.draw(st.integers(max(stamp - TINY.tau_max, 0), stamp))
            if (user, stamp) in accepted:
                refused(state, Replay, user, stamp, reals(1, 2, 3))
                user, stamp = next((u, state.round) for u in free if (u, state.round) not in accepted)
            state = receive(state, user, stamp, reals(1, 2, 3))
            accepted.add((user, stamp))
        state = step(state, rounding=np.zeros(TINY.K))
        assert len(state.accepted) <= TINY.N * (TINY.tau_max + 1)
        for user, stamp in accepted:
            refused(state, ProtocolError, user, stamp, reals(1, 2, 3))


@pytest.mark.requirement("FBF-07")
def test_one_update_of_a_user_waits_at_a_time() -> None:
    state = server(replace(TINY, K=3), 2, (0, 1))
    error = refused(state, Replay, 0, 2, reals(1, 2, 3))
    assert "waits in the buffer" in str(error)
    assert isinstance(error, ProtocolError)
    assert error.blamed == {0}


@pytest.mark.requirement("FBF-08")
def test_a_step_comes_exactly_when_the_buffer_is_full() -> None:
    state = server(TINY)
    for user in range(TINY.K):
        with pytest.raises(WrongPhase, match=f"holds {user} of K = 2"):
            step(state, rounding=halves(user))
        state = receive(state, user, 0, reals(1, 2, 3))
    refused(state, WrongPhase, 4, 0, reals(1, 2, 3))
    assert step(state, rounding=halves()).round == 1


WRONG: list[tuple[Any, type[ParameterError]]] = [
    (reals(1, 2), LengthMismatch),
    (reals(1, 2, 3, 4), LengthMismatch),
    (reals(1, 2, math.nan), OutOfRange),
    (reals(1, -math.inf, 2), OutOfRange),
    (integers(1, 2, 3), ParameterError),
    ([1.0, 2.0, 3.0], ParameterError),
    (np.zeros((3, 1)), LengthMismatch),
    (reals(1, 2, 3).astype(np.float32), ParameterError),
    (None, ParameterError),
]


@pytest.mark.requirement("FBF-03")
@pytest.mark.parametrize(("values", "error"), WRONG)
def test_an_update_of_another_form_is_refused(values: Any, error: type[ParameterError]) -> None:
    refused(server(TINY), error, 0, 0, values)


@pytest.mark.requirement("FBF-03")
def test_a_quantised_update_is_refused_beyond_its_bound() -> None:
    assert QUANTISED.bound == EXACT // (2 * 4) == 2**50
    for sign in (1, -1):
        assert receive(server(QUANTISED), 0, 0, integers(0, sign * 2**50, 0)).buffer
        refused(server(QUANTISED), OutOfRange, 0, 0, integers(0, sign * (2**50 + 1), 0))
    refused(server(QUANTISED), OutOfRange, 0, 0, integers(-(2**63), 0, 0))
    for values in (reals(1, 2, 3), integers(1, 2), np.array([1, 2, 3], dtype=np.uint64)):
        refused(server(QUANTISED), ParameterError, 0, 0, values)


@pytest.mark.requirement("FBF-17")
@pytest.mark.parametrize("user", [5, -1, 2**32 - 1])
def test_a_user_outside_the_roster_is_refused(user: int) -> None:
    refused(server(TINY), UnknownUser, user, 0, reals(1, 2, 3))


@pytest.mark.requirement("FBF-09")
@pytest.mark.parametrize(
    ("rounding", "error", "named"),
    [
        (halves(1), LengthMismatch, "rounding.shape = "),
        (halves(3), LengthMismatch, "rounding.shape = "),
        (reals(0.5, 1.0), OutOfRange, "rounding[1] = 1.0: must be a multiple of 2**-53 in [0, 1)"),
        (reals(2.0**-54, 1.0), OutOfRange, "rounding[0] = "),
    ],
)
def test_there_is_one_draw_for_each_update(rounding: Any, error: type[ParameterError], named: str) -> None:
    state = server(TINY, 2, (0, 1), (1, 2))
    with pytest.raises(error, match=f"^{re.escape(named)}"):
        step(state, rounding=rounding)


@pytest.mark.requirement("FBF-01")
@pytest.mark.parametrize(
    "changed",
    [
        {"N": 0},
        {"d": 0},
        {"K": 0},
        {"K": 6},
        {"tau_max": -1},
        {"tau_max": 2**32},
        {"eta_g": 0.0},
        {"eta_g": -1.0},
        {"eta_g": math.nan},
        {"eta_g": math.inf},
        {"eta_g": 1},
        {"c_g": 0},
        {"c_g": 2**32 + 1},
        {"N": 2**22, "K": 2**22, "c_g": 2**32},
        {"c_l": 0},
        {"c_l": 2**32 + 1},
        {"c_g": 2**21, "c_l": 2**32},
        {"c_l": True},
        {"staleness": 1},
    ],
)
def test_parameters_out_of_range_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as refused:
        replace(TINY, **changed)
    assert refused.value.parameter == list(changed)[-1]
    assert replace(TINY, c_l=2**32, c_g=2**20).bound == 2**32


@pytest.mark.requirement("FBF-01")
def test_the_table_of_parameters_is_that_of_the_presets() -> None:
    table = rows(page("fedbuff.md"), "symbol", "meaning", *PRESETS)
    names = {"τ_max": "tau_max", "η_g": "eta_g"}
    for column, name in enumerate(PRESETS, start=2):
        stated = {names.get(row[0], row[0]): int(row[column]) for row in table}
        fields = asdict(PRESETS[name])
        assert PRESETS[name].staleness == Staleness.polynomial(stated.pop("s"))
        assert stated == {name: fields[name] for name in stated}
        assert set(fields) - set(stated) == {"staleness", "c_l"}


# ------------------------------------------------------------------------------------------------ stop and start again


def through_text(state: ServerState) -> ServerState:
    """The state that a server has that was stopped and started again: through a file of JSON."""
    return fedbuff.restore(json.loads(json.dumps(fedbuff.store(state), allow_nan=False)))


@pytest.mark.requirement("FBF-16")
@given(parameter_sets(), st.integers(0, 1000), st.data())
def test_a_server_that_is_stopped_at_every_step_goes_on_as_another(
    p: Parameters, seed: int, data: st.DataObject
) -> None:
    one = other = start(p, np.array(data.draw(st.lists(modest, min_size=p.d, max_size=p.d))))
    source = SeededSource(seed.to_bytes(4, "little"), "updates")
    for number in range(12):
        user = data.draw(st.integers(0, p.N - 1))
        stamp = data.draw(st.integers(max(one.round - p.tau_max - 1, 0), one.round + 1))
        values = 8 * draw_rounding(source, p.d) - 4
        update = stochastic_round(values * p.c_l, draw_rounding(source, p.d)) if p.c_l else values
        rounding = draws_of(one, number)
        one = acted(one, user, stamp, update, rounding)
        other = acted(through_text(other), user, stamp, update, rounding)
        assert same(one, other)
    assert same(through_text(one), one)
    assert through_text(one).parameters == p


def acted(state: ServerState, user: int, stamp: int, values: Any, rounding: Any) -> ServerState:
    """The server after a step when it is due, and else after an update; what is refused changes nothing."""
    try:
        return step(state, rounding=rounding) if state.full else receive(state, user, stamp, values)
    except ProtocolError:
        return state


@pytest.mark.requirement("FBF-16")
def test_every_bit_of_a_number_is_kept() -> None:
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 + 2.0**-52]
    p = replace(TINY, d=5, eta_g=0.1)
    state = receive(start(p, np.array(numbers)), 0, 0, -np.array(numbers))
    back = through_text(state)
    assert [str(v) for v in back.model.tolist()] == [str(v) for v in numbers]
    assert [str(v) for v in back.buffer[0].values.tolist()] == [str(-v) for v in numbers]
    assert back.parameters.eta_g == 0.1


def broken(data: dict[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    """Stored data with something else at one place, or, with the value `broken` itself, without it."""
    copy = json.loads(json.dumps(data))
    holder = copy
    for place in path[:-1]:
        holder = holder[place]
    if value is broken:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return dict(copy)


@pytest.mark.requirement("FBF-16")
@pytest.mark.parametrize("pair", [[-1, 0], [TINY.N, 0], [0, -1], [0, 1000], [0, 0, 0]])
def test_what_was_accepted_before_is_of_users_and_rounds_that_there_are(pair: list[int]) -> None:
    good = fedbuff.store(server(TINY, 2, (0, 1)))
    with pytest.raises(ParameterError) as refused:
        fedbuff.restore({**good, "accepted": [*good["accepted"], pair]})
    assert refused.value.parameter == "accepted"
    assert "a past round" in str(refused.value)


@pytest.mark.requirement("FBF-16")
@pytest.mark.parametrize("pairs", [[[0, 9]], [[0, 5]], [[user, 9] for user in range(5)]])
def test_what_no_server_has_accepted_is_refused(pairs: list[list[int]]) -> None:
    good = fedbuff.store(server(TINY, 9))
    assert fedbuff.restore({**good, "accepted": [[0, 6], [0, 8]]}).accepted == {(0, 6), (0, 8)}
    with pytest.raises(ParameterError, match=r"^accepted = "):
        fedbuff.restore({**good, "accepted": pairs})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model",), broken),
        (("more",), 1),
        (("model",), "00"),
        (("model",), 3),
        (("model",), "zz" * 8),
        (("model",), "000000000000f07f" * 3),
        (("round",), -1),
        (("round",), 1.0),
        (("buffer",), {}),
        (("buffer", 0), 3),
        (("buffer", 0, "user"), 9),
        (("buffer", 0, "values"), "00" * 16),
        (("buffer", 0, "stamp"), 3),
        (("buffer", 0, "stamp"), -1),
        (("round",), 2**31),
        (("accepted",), []),
        (("accepted",), 7),
        (("accepted", 0), [0]),
        (("accepted", 0), [0, 99]),
        (("accepted", 0), ["0", 1]),
        (("parameters", "K"), 0),
        (("parameters", "eta_g"), 1.0),
        (("parameters", "eta_g"), "00"),
        (("parameters", "staleness", "kind"), "no"),
        (("parameters", "staleness"), None),
    ],
)
def test_what_is_no_stored_state_is_refused(path: Sequence[Any], value: Any) -> None:
    good = fedbuff.store(server(TINY, 2, (0, 1)))
    assert same(fedbuff.restore(good), server(TINY, 2, (0, 1)))
    with pytest.raises(ParameterError, match="buffer"):
        fedbuff.restore({**good, "buffer": good["buffer"] * 2})
    with pytest.raises(ParameterError):
        fedbuff.restore(broken(good, path, value))


@pytest.mark.requirement("FBF-16")
@pytest.mark.parametrize("write", [str.upper, lambda text: f" {text}", lambda text: f"{text[:2]} {text[2:]}"])
@pytest.mark.parametrize("path", [("model",), ("buffer", 0, "values"), ("parameters", "eta_g")])
def test_vectors_are_restored_from_the_digits_that_were_stored_only(path: Sequence[Any], write: Any) -> None:
    good = json.loads(json.dumps(fedbuff.store(server(TINY, 2, (0, 1)))))
    value = good
    for place in path:
        value = value[place]
    if "f" not in value:
        value = "000000000000f03f" * (len(value) // 16)
    assert fedbuff.restore(broken(good, path, value)).round == 2
    with pytest.raises(ParameterError, match=f"{path[-1]} = .*must be a string of hex digits|bytes as pairs of hex"):
        fedbuff.restore(broken(good, path, write(value)))


@pytest.mark.requirement("FBF-16")
def test_pairs_of_user_and_stamp_are_restored_as_they_are_stored_only() -> None:
    good = json.loads(json.dumps(fedbuff.store(server(TINY, 2, (0, 1), (1, 2)))))
    assert good["accepted"] == [[0, 1], [1, 2]]
    for pairs in (good["accepted"] * 2, good["accepted"][::-1], [*good["accepted"], good["accepted"][0]]):
        with pytest.raises(ParameterError, match=r"accepted.*not as they are stored"):
            fedbuff.restore({**good, "accepted": pairs})


@pytest.mark.requirement("ERR-01")
def test_the_arrays_of_a_caller_are_not_kept() -> None:
    model, values = np.zeros(3), reals(1, 2, 3)
    state = receive(start(TINY, model), 0, 0, values)
    model[0] = values[0] = 7.0
    assert (state.model[0], state.buffer[0].values[0]) == (0.0, 1.0)
    assert isinstance(state.buffer[0], Update)
    with pytest.raises(ValueError, match="read-only"):
        state.model[0] = 1.0


def test_the_quantiser_makes_the_integers_of_an_update() -> None:
    p = replace(QUANTISED, c_l=1000)
    x, draws = reals(0.1, -0.2, 3.7), draw_rounding(SeededSource(b"x", "rounding"), 3)
    field = PrimeField(DEFAULT_PRIME)
    elements = quantize(x, level=1000, ring=field, weight=p.K * p.c_g, rounding=draws)
    update = field.decode_signed(elements)
    assert receive(server(p), 0, 0, update).buffer
    assert (update / 1000 == dequantize(elements, level=1000, ring=field)).all()


def test_the_page_is_one_of_the_text() -> None:
    assert "fedbuff.md" in resources.PAGES


@pytest.mark.requirement("FBF-11")
def test_an_integer_average_never_wraps() -> None:
    with pytest.raises(OutOfRange, match="updates"):
        fedbuff.average_integers([2**40], [np.array([2**40])], 1)
    assert fedbuff.average_integers([2], [np.array([2**52])], 1).tolist() == [2.0**52]
    small, large = np.array([1]), np.array([2**52 + 1])
    for updates in ([small, large], [large, small], [small, -large], [-large, small]):
        with pytest.raises(OutOfRange, match=f"^updates = {2**52 + 1}: must be at most"):
            fedbuff.average_integers([1, 1], updates, 1)


EDGES = st.one_of(
    *(st.integers(edge - 2, edge + 2) for edge in (0, 2**52, -(2**52), 2**53, -(2**53), 2**61))
) | st.sampled_from([-(2**63), 2**63 - 1, -(2**62), 2**62])


@pytest.mark.requirement("FBF-11")
@given(
    st.lists(st.tuples(st.integers(-2, 3) | EDGES, EDGES), min_size=1, max_size=4),
    st.integers(1, 9) | EDGES.filter(lambda level: level > 0),
)
@example([(1, 1)], 2**53 + 1)
@example([(1, 1), (2, 1)], 2**52 + 1)
@example([(2, -(2**63))], 1)
@example([(-(2**62), 5), (2**62 + 1, 1)], 1)
def test_an_integer_average_is_that_of_exact_numbers_or_refused(terms: list[tuple[int, int]], c_l: int) -> None:
    weights, updates = [weight for weight, _ in terms], [np.array([value, 0]) for _, value in terms]
    try:
        found = fedbuff.average_integers(weights, updates, c_l)
    except ParameterError:
        assert min(weights) < 0 or sum(weights) < 1 or max(abs(v) for _, v in terms) * sum(weights) > 2**53
        return
    assert min(weights) >= 0
    assert found.tolist() == [sum(weight * value for weight, value in terms) / (c_l * sum(weights)), 0]


REALS, INTEGERS = np.ones(2), np.ones(2, np.int64)
AVERAGES: tuple[tuple[Any, Any, tuple[int, ...]], ...] = (
    (fedbuff.average_reals, REALS, ()),
    (fedbuff.average_integers, INTEGERS, (1,)),
)


@pytest.mark.requirement("FBF-10", "FBF-11", "ERR-02")
@pytest.mark.parametrize("weights", [*([no, 1] for no in (1.5, "1", None, np.nan, -1, True)), [1], [1, 1, 1], 3, None])
def test_what_is_no_weight_has_no_average(weights: Any) -> None:
    for average, update, level in AVERAGES:
        assert average([1, 1], [update, update], *level).tolist() == [1.0, 1.0]
        with pytest.raises(ParameterError):
            average(weights, [update, update], *level)


@pytest.mark.requirement("ERR-03")
def test_a_weight_of_another_class_is_not_shown() -> None:
    wrong: Any = "a5" * 32
    for average, update, level in AVERAGES:
        with pytest.raises(ParameterError, match=r"^weights = 'str': must be an integer >= 0$"):
            average([wrong], [update], *level)


@pytest.mark.requirement("FBF-10", "FBF-11", "ERR-02")
@pytest.mark.parametrize(
    "spoil",
    [
        np.ndarray.tolist,
        np.ma.masked_array,
        lambda x: x.astype(bool),
        lambda x: x.astype(np.float32),
        lambda x: x[:, None],
        len,
    ],
)
def test_what_is_no_update_has_no_average(spoil: Callable[[Any], Any]) -> None:
    for (average, update, level), other in zip(AVERAGES, (INTEGERS, REALS), strict=True):
        for bad in (spoil(update), other, None):
            with pytest.raises(ParameterError):
                average([1], [bad], *level)
        with pytest.raises(ParameterError):
            average([1], None, *level)


@pytest.mark.requirement("FBF-12", "ERR-02")
@pytest.mark.parametrize(
    "given", [(REALS, REALS, None), (REALS, REALS, "3"), (REALS, [1.0, 1.0], 1.0), ([1.0], REALS, 1.0)]
)
def test_what_is_no_model_average_or_rate_moves_nothing(given: Any) -> None:
    with pytest.raises(ParameterError):
        fedbuff.moved(*given)


@pytest.mark.requirement("FBF-14")
@pytest.mark.parametrize("weights", [[], [0], [0, 0]])
def test_weights_without_a_sum_have_no_average(weights: list[int]) -> None:
    with pytest.raises(ParameterError, match="sum"):
        fedbuff.average_reals(weights, [np.ones(2)] * len(weights))
    with pytest.raises(ParameterError, match="sum"):
        fedbuff.average_integers(weights, [np.ones(2, dtype=np.int64)] * len(weights), 1)
