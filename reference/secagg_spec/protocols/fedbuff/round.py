"""FedBuff: the server averages the updates in a buffer, with less weight for late ones, and updates the model.

Nothing is hidden from the server: this is the baseline for the protocols that hide the updates.

Notation of the paper: x^(t) is `model` and t is `round` of a `ServerState`; S^(t) are the users in its `buffer`; t_i is
the `stamp` of an `Update`, tau_i = t - t_i; K, eta_g and s are parameters. c_g and c_l are the levels of the weights
and of the updates; `values` of an update is Delta_i, or c_l Q_{c_l}(Delta_i) if there is a c_l.

Source: BASecAgg eq. (2), (4) and (16); spec/fedbuff.md, sections 2 to 5 (FBF-01 to FBF-17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.staleness import MAX_TAU, Staleness, realised_weight
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import (
    LengthMismatch,
    OutOfRange,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    WrongPhase,
)
from secagg_spec.protocols.buffers import check_rounding

IntArray: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[Any]
EXACT = 2**53
"""The bound up to which every integer is a binary64 number."""
_FLOAT_BITS = 1023


@dataclass(frozen=True)
class Parameters(validate.Plain):
    """The parameters that all parties agree on.

    Parameters
    ----------
    N : int
        The number of users on the roster.
    d : int
        The number of elements of the model.
    K : int
        The number of updates in a full buffer.
    tau_max : int
        The largest accepted staleness.
    eta_g : float
        The server's learning rate.
    staleness : Staleness
        The function that gives the weight of a late update.
    c_g : int
        The level of the weights.
    c_l : int, optional
        The level of quantised updates; without it, updates are real numbers.

    Raises
    ------
    ParameterError
        They break FBF-01.
    """

    N: int
    d: int
    K: int
    tau_max: int
    eta_g: float
    staleness: Staleness
    c_g: int
    c_l: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.staleness, Staleness):
            raise ParameterError("staleness", self.staleness, "a Staleness")
        if not isinstance(self.eta_g, float) or not 0 < self.eta_g < np.inf:
            raise OutOfRange("eta_g", self.eta_g, "a finite float above 0")
        validate.integer("N", self.N, 1, validate.MAX_COUNT)
        validate.integer("d", self.d, 1, validate.MAX_COUNT)
        validate.integer("K", self.K, 1, self.N)
        validate.integer("tau_max", self.tau_max, 0, MAX_TAU)
        validate.integer("c_g", self.c_g, 1, min(MAX_LEVEL, EXACT // self.K))
        if self.c_l is not None:
            validate.integer("c_l", self.c_l, 1, min(MAX_LEVEL, self.bound))

    @property
    def bound(self) -> int:
        """The largest magnitude of a quantised number (FBF-03)."""
        return EXACT // (self.K * self.c_g)


@dataclass(frozen=True, eq=False)
class Update(validate.Plain):
    """The update of a user: float64, or int64 if quantised. `stamp` is the round of the model that it started from."""

    user: int
    stamp: int
    values: Values = field(repr=False)


@dataclass(frozen=True, eq=False)
class ServerState(validate.Plain):
    """The state of the server between two messages.

    `accepted` are the users and stamps of accepted updates that could still be sent again.
    """

    parameters: Parameters
    model: RealArray
    round: int = 0
    buffer: tuple[Update, ...] = ()
    accepted: frozenset[tuple[int, int]] = frozenset()

    @property
    def full(self) -> bool:
        """Whether the buffer holds K updates."""
        return len(self.buffer) == self.parameters.K


# -------------------------------------------------------------------------------------------------------- pure cores


def local_update(downloaded: RealArray, trained: RealArray) -> RealArray:
    """Return the update of a user: the downloaded model minus the trained model.

    Raises
    ------
    ParameterError
        The models are not two float64 vectors of the same length with finite entries.
    OutOfRange
        A difference is too large for a float64.

    Source: BASecAgg eq. (2); FBF-02.
    """
    downloaded = validate.reals("downloaded", downloaded, (None,))
    trained = validate.reals("trained", trained, downloaded.shape)
    with np.errstate(over="ignore"):
        return validate.reals("downloaded - trained", downloaded - trained, downloaded.shape)


def average_reals(weights: Sequence[int], updates: Sequence[RealArray]) -> RealArray:
    """Return the weighted average: products, sums in order, and one quotient, with one rounding per operation.

    Raises
    ------
    ParameterError
        A weight is no integer of at least 0, their sum is not in [1, 2^53], or there is not one float64 array for each,
        all of one length.
    OutOfRange
        A number of an update is not finite, or a product or a sum is too large for a float64.

    Source: BASecAgg eq. (4); FBF-10.
    """
    total_weight = _total(weights, updates, np.float64)
    for at, update in enumerate(updates):
        validate.reals(f"updates[{at}]", update, (None,))
    with np.errstate(over="ignore", invalid="ignore"):
        products = [np.float64(weight) * update for weight, update in zip(weights, updates, strict=True)]
        total: RealArray = reduce(np.add, products)
    return validate.reals("average", total / np.float64(total_weight), (None,))


def average_integers(weights: Sequence[int], updates: Sequence[IntArray], c_l: int) -> RealArray:
    """Return the exact integer sum of weighted updates divided by c_l times the sum of the weights, rounded once.

    Raises
    ------
    ParameterError
        A weight is no integer of at least 0, their sum is not in [1, 2^53], c_l is below 1, or there is not one int64
        array for each, all of one length.
    OutOfRange
        A weighted sum could leave the integers that a float64 holds, or c_l times the sum of the weights its range.

    Source: BASecAgg eq. (15) and (16); FBF-11.
    """
    total_weight, c_l = _total(weights, updates, np.int64), validate.integer("c_l", c_l, 1)
    if (c_l * total_weight).bit_length() > _FLOAT_BITS:
        raise OutOfRange("c_l", c_l, f"below 2**{_FLOAT_BITS} / {total_weight}, to divide by in float64")
    largest = max(max(int(update.max(initial=0)), -int(update.min(initial=0))) for update in updates)
    if largest * total_weight > EXACT:
        raise OutOfRange("updates", largest, f"at most 2**53 / {total_weight} in magnitude, for these weights")
    rows = [np.int64(weight) * update for weight, update in zip(weights, updates, strict=True)]
    total: IntArray = np.add.reduce(np.stack(rows), axis=0)
    divisor = c_l * total_weight
    if divisor <= EXACT:
        return total.astype(np.float64) / divisor
    return np.array([number / divisor for number in total.tolist()])  # a quotient of Python's integers is rounded once


def _total(weights: Sequence[int], updates: Sequence[NDArray[Any]], dtype: type) -> int:
    """Return the sum of weights, in [1, 2^53]; refuse updates that are not one for each weight, of one length."""
    given = [
        validate.integer("weights", validate.secret_integer("weights", weight, "an integer >= 0"), 0)
        for weight in validate.sequence("weights", weights, "integers")
    ]
    if len(given) != len(validate.sequence("updates", updates, "arrays")):
        raise LengthMismatch("updates", len(updates), f"one for each of {len(given)} weights")
    for at, update in enumerate(updates):
        validate.array_shape(f"updates[{at}]", validate.array(f"updates[{at}]", update, dtype), (updates[0].size,))
        if dtype is np.float64:
            validate.reals(f"updates[{at}]", update, update.shape)
    return validate.integer("sum(weights)", sum(given), 1, EXACT)


def moved(model: RealArray, average: RealArray, eta_g: float) -> RealArray:
    """Return the model minus eta_g times the average: one rounded product, one rounded difference.

    Raises
    ------
    LengthMismatch
        The average has another length than the model.
    ParameterError
        One of both is no float64 array, or eta_g is no float.

    The result may be infinite or NaN: `step` refuses such a model (FBF-15).

    Source: BASecAgg eq. (4); FBF-12.
    """
    validate.array_shape("average", validate.binary64("average", average), validate.binary64("model", model).shape)
    if not isinstance(validate.number(eta_g), float):
        raise ParameterError("eta_g", eta_g, "a float")
    with np.errstate(over="ignore", invalid="ignore"):
        return model - np.float64(eta_g) * average


# ------------------------------------------------------------------------------------------------------ state machine


def start(parameters: Parameters, model: RealArray) -> ServerState:
    """Return the server in round 0 with an empty buffer.

    Raises
    ------
    ParameterError
        The model is not a float64 vector of d finite numbers.
    """
    return ServerState(parameters, validate.frozen(validate.reals("model", model, (parameters.d,))))


def receive(state: ServerState, user: int, stamp: int, values: Values) -> ServerState:
    """Return the server with one more update in its buffer.

    Parameters
    ----------
    state : ServerState
        The server.
    user, stamp : int
        The sender, and the round of the model that it started training from.
    values : array (d,)
        The update: float64, or int64 if there is a c_l.

    Raises
    ------
    UnknownUser
        The user is not on the roster (FBF-17).
    WrongPhase
        The stamp is a future round (FBF-04) or too old (FBF-05), or the buffer is full (FBF-08).
    Replay
        The same update was accepted before (FBF-06), or the buffer already has an update of the user (FBF-07).
    ParameterError
        The values break FBF-03, or `user` or `stamp` is not a valid number.
    """
    (user,) = validate.users("user", (user,), state.parameters.N)
    stamp = validate.integer("stamp", stamp, 0, MAX_TAU)
    _check_stamp(state, user, stamp)
    update = Update(user, stamp, validate.frozen(_checked(state.parameters, values)))
    accepted = state.accepted | {(user, stamp)}
    return replace(state, buffer=(*state.buffer, update), accepted=accepted)


def weights(state: ServerState, rounding: RealArray) -> tuple[int, ...]:
    """Return the weights of the updates in the buffer, by ascending user, with one draw for each (FBF-09).

    Raises
    ------
    LengthMismatch
        There is not one draw for each update.
    OutOfRange
        A draw is not a valid draw (STL-07).
    """
    draws = check_rounding("rounding", rounding, len(state.buffer))
    function, c_g = state.parameters.staleness, state.parameters.c_g
    taus = [state.round - update.stamp for update in by_user(state)]
    return tuple(realised_weight(function, c_g, tau, float(draw)) for tau, draw in zip(taus, draws, strict=True))


def step(state: ServerState, *, rounding: RealArray) -> ServerState:
    """Return the server in the next round, with the model moved by the average of the full buffer.

    Parameters
    ----------
    state : ServerState
        The server with a full buffer.
    rounding : array (K,) of float64
        Draws of the weights, by ascending user: multiples of 2**-53, uniform in ``[0, 1)``.

    Raises
    ------
    WrongPhase
        The buffer is not full (FBF-08).
    TooFewSurvivors
        All weights are 0 (FBF-14).
    OutOfRange
        A number of the new model would not be finite (FBF-15), or a draw is not valid.
    ParameterError
        The round is the last one that fits 32 bits, or the draws are not a float64 vector.

    Source: BASecAgg eq. (4); FBF-09 to FBF-15.
    """
    if not state.full:
        raise WrongPhase(f"the buffer holds {len(state.buffer)} of K = {state.parameters.K} updates")
    realised = weights(state, rounding)
    if not any(realised):
        raise TooFewSurvivors(f"the weights of all {len(realised)} updates are 0: there is nothing to average")
    model = validate.reals("model", _next_model(state, realised), state.model.shape)
    following = validate.integer("round", state.round + 1, 1, MAX_TAU)
    return replace(state, model=validate.frozen(model), round=following, buffer=(), accepted=_recent(state, following))


def by_user(state: ServerState) -> tuple[Update, ...]:
    """Return the updates in the buffer by ascending user, the order of every sum."""
    return tuple(sorted(state.buffer, key=lambda update: update.user))


def _next_model(state: ServerState, realised: Sequence[int]) -> RealArray:
    values = [update.values for update in by_user(state)]
    p = state.parameters
    average = average_reals(realised, values) if p.c_l is None else average_integers(realised, values, p.c_l)
    return moved(state.model, average, p.eta_g)


def _recent(state: ServerState, following: int) -> frozenset[tuple[int, int]]:
    """Return the accepted updates that are not too old for the next round; FBF-05 refuses older ones anyway."""
    return frozenset(pair for pair in state.accepted if following - pair[1] <= state.parameters.tau_max)


def _check_stamp(state: ServerState, user: int, stamp: int) -> None:
    """Refuse an update whose user or stamp breaks FBF-04 to FBF-08."""
    if state.full:
        raise WrongPhase(f"the buffer is full with K = {state.parameters.K} updates: a step comes first")
    if stamp > state.round:
        raise WrongPhase(f"user {user} has trained the model of round {stamp}, and this is round {state.round}", {user})
    if state.round - stamp > state.parameters.tau_max:
        late = f"{state.round - stamp} rounds old, above tau_max = {state.parameters.tau_max}"
        raise WrongPhase(f"the update of user {user} is {late}")
    if (user, stamp) in state.accepted:
        raise Replay(f"user {user} has sent an update with the stamp {stamp} before", {user})
    if any(update.user == user for update in state.buffer):
        raise Replay(f"another update of user {user} waits in the buffer", {user})


def _checked(parameters: Parameters, values: Values) -> Values:
    """Return the values of an update if they satisfy FBF-03."""
    if parameters.c_l is None:
        return validate.reals("values", values, (parameters.d,))
    numbers = validate.signed("values", values)
    validate.array_shape("values", numbers, (parameters.d,))
    large = (numbers > parameters.bound) | (numbers < -parameters.bound)
    if large.any():
        at = int(np.argmax(large))
        raise OutOfRange(
            f"values[{at}]", int(numbers[at]), f"at most 2**53 / (K c_g) = {parameters.bound} in magnitude"
        )
    return numbers


# ------------------------------------------------------------------------------------------------- stop and start again


def store(state: ServerState) -> dict[str, Any]:
    """Return the whole state as JSON data: numbers, strings, lists and objects (FBF-16).

    Vectors are strings of hex digits, 16 for each number, little-endian.
    """
    return {
        "parameters": {**asdict(state.parameters), "eta_g": _packed(np.array([state.parameters.eta_g]))},
        "model": _packed(state.model),
        "round": state.round,
        "buffer": [{"user": u.user, "stamp": u.stamp, "values": _packed(u.values)} for u in state.buffer],
        "accepted": sorted([user, stamp] for user, stamp in state.accepted),
    }


def restore(data: Mapping[str, Any]) -> ServerState:
    """Return the state that `store` wrote.

    Raises
    ------
    ParameterError
        A member is missing, or differs from what `store` writes.
    """
    members = validate.members("data", data, ("parameters", "model", "round", "buffer", "accepted"))
    parameters = _parameters(members["parameters"])
    state = start(parameters, _unpacked("model", members["model"], "<f8"))
    state = replace(state, round=validate.integer("round", members["round"], 0, MAX_TAU))
    for entry in validate.sequence("buffer", members["buffer"], "updates"):
        update = validate.members("buffer", entry, ("user", "stamp", "values"))
        values = _unpacked("values", update["values"], "<f8" if parameters.c_l is None else "<i8")
        try:
            state = receive(state, update["user"], update["stamp"], values)
        except ProtocolError as error:  # which would blame a user for a damaged file
            raise ParameterError("buffer", str(error), "updates that a server receives") from None
    state = replace(state, accepted=_accepted(state, members["accepted"]))
    validate.stored(members, store(state))
    return state


def _parameters(data: Any) -> Parameters:
    members = validate.members("parameters", data, ("N", "d", "K", "tau_max", "eta_g", "staleness", "c_g", "c_l"))
    function = validate.members("staleness", members["staleness"], ("kind", "numerator", "denominator", "start"))
    (eta_g,) = validate.reals("eta_g", _unpacked("eta_g", members["eta_g"], "<f8"), (1,)).tolist()
    return Parameters(**{**members, "eta_g": eta_g, "staleness": Staleness(**function)})


def _accepted(state: ServerState, data: Any) -> frozenset[tuple[int, int]]:
    """Return the accepted pairs of user and stamp; those of the present round are those of the buffer."""
    pairs = [validate.user_numbers("accepted", pair) for pair in validate.sequence("accepted", data, "pairs")]
    oldest = max(0, state.round - state.parameters.tau_max)
    for pair in pairs:
        if len(pair) != 2 or not 0 <= pair[0] < state.parameters.N or not oldest <= pair[1] <= state.round:
            wanted = f"a user on the roster and the number of a past round that is not too old, from {oldest} on"
            raise ParameterError("accepted", list(pair), wanted)
    accepted = frozenset((user, stamp) for user, stamp in pairs)
    if not state.accepted <= accepted or any(stamp == state.round for _, stamp in accepted - state.accepted):
        raise ParameterError("accepted", data, "all users and stamps of the buffer, and others of rounds before this")
    return accepted


def _packed(values: Values) -> str:
    return values.astype(values.dtype.newbyteorder("<")).tobytes().hex()


def _unpacked(name: str, text: Any, dtype: str) -> Values:
    try:
        return np.frombuffer(validate.from_hex(name, text), dtype=dtype).astype(dtype[1:])
    except ValueError:
        raise ParameterError(name, validate.class_of(text), "a string of hex digits, 16 for each number") from None


PRESETS = {
    "tiny": Parameters(N=5, d=3, K=2, tau_max=3, eta_g=1.0, staleness=Staleness.polynomial(1), c_g=4),
    "default": Parameters(N=10, d=16, K=4, tau_max=10, eta_g=1.0, staleness=Staleness.polynomial(1), c_g=64),
    "paper": Parameters(N=100, d=1000, K=10, tau_max=10, eta_g=1.0, staleness=Staleness.polynomial(1), c_g=64),
}
"""Parameters with real updates; `tiny` is small enough to be checked by enumeration."""


guard(__name__)
