"""Planted bugs that leave a refusal out: what must be refused is cut, wrapped, replaced or let through in silence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import mds, modular, quantizer, sampling, validate
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, Adapter
from secagg_spec.conformance.targets import readers, reference
from secagg_spec.errors import ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols import lightsecagg, shape

Function = Callable[..., Any]
_RING = "secagg_spec.arithmetic.modular:Ring"
_CODE = "secagg_spec.arithmetic.mds:MaskCode"
_QUANTIZER = "secagg_spec.arithmetic.quantizer"
_LSA = "secagg_spec.protocols.lightsecagg"
_ARGUMENTS = "secagg_spec.conformance.sdk.secagg_adapter:Adapter._arguments"


def _vector(*values: int) -> UintArray:
    return np.array(values, dtype=np.uint64)


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails, as something that can be compared."""
    try:
        result = call()
    except (ParameterError, ProtocolError, ArithmeticError) as error:
        return type(error).__name__
    return result.tolist() if isinstance(result, np.ndarray) else result


def _answered(op: str, params: dict[str, Any], rand: dict[str, Any]) -> object:
    answer = reference.build().answer({"id": 1, "op": op, "params": params, "rand": rand})
    return answer.get("result") or answer["reject"]["code"]


_FIELD7 = modular.PrimeField(7)


# ----------------------------------------------------------------------------------------- integers modulo R


@mutant(
    "any-modulus",
    "MOD-01",
    "acceptance: a modulus below 2 or above 2**32 passes, and elements no longer fit their four bytes",
    f"{_RING}.__init__",
    lambda: _outcome(lambda: modular.Ring(1).modulus),
    kind="acceptance",
    source="seen in FedML 0.9.6: lightsecagg.mask/modulus",
)
def _modulus(right: Function) -> Function:
    def wrong(self: modular.Ring, modulus: int) -> None:
        if 0 <= modulus < 2**63:
            self.modulus, self._m = max(modulus, 1), np.uint64(max(modulus, 1))
        else:
            right(self, modulus)

    return wrong


@mutant(
    "longer-vector-is-cut",
    "MOD-07",
    "wrong sum: of two vectors of different lengths the longer one is cut",
    f"{_RING}._pair",
    lambda: _outcome(lambda: _FIELD7.add(_vector(1, 2), _vector(3))),
    also=("LSA-03", "ERR-02"),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    def wrong(self: modular.Ring, a: UintArray, b: UintArray) -> tuple[UintArray, UintArray]:
        size = min(a.size, b.size)
        cut: tuple[UintArray, UintArray] = right(self, a[:size], b[:size])
        return cut

    return wrong


@mutant(
    "rows-are-repeated",
    "MOD-07",
    "wrong product: a matrix or a list of vectors with too few numbers is filled by repetition",
    "secagg_spec.conformance.targets.readers:shaped",
    lambda: _outcome(lambda: readers.shaped("a", "01000000", 2, 1)),
    also=("ERR-02",),
    kind="acceptance",
    source="silent repair",
)
def _repeated(right: Function) -> Function:
    def wrong(name: str, text: str, rows: int, columns: int) -> UintArray:
        return np.resize(readers.vector(name, text), (rows, columns))

    return wrong


@mutant(
    "sampler-fills-with-zeros",
    "RND-03",
    "privacy: where the bytes run out, the rest of a mask is zero",
    "secagg_spec.arithmetic.sampling:elements_from_bytes",
    lambda: _outcome(lambda: sampling.elements_from_bytes(_FIELD7, bytes(3), 1)),
    kind="privacy",
    source="weak draw: zeros",
)
def _fills(right: Function) -> Function:
    def wrong(ring: modular.Ring, data: bytes, n: int) -> UintArray:
        usable = min(n, sampling.usable_words(ring, data))
        padding = np.zeros(n - usable, dtype=np.uint64)
        return np.concatenate([right(ring, data, usable), padding])

    return wrong


@mutant(
    "sampled-values-unchecked",
    "RND-04",
    "acceptance: a sampled value under a name that nobody uses is dropped, a missing one is taken as empty",
    _ARGUMENTS,
    lambda: _answered("quantizer.quantize", {"q": "7", "level": "1", "weight": 1, "x": ""}, {}),
    kind="acceptance",
    source="silent repair",
)
def _unchecked(right: Function) -> Function:
    def wrong(self: Adapter, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        rand = request.get("rand") or {}
        given = {name: rand.get(name, "") for name in OPERATIONS[operation][1]}
        arguments: dict[str, Any] = right(self, operation, {**request, "rand": given})
        return arguments

    return wrong


@mutant(
    "unknown-members-dropped",
    "ADP-05",
    "acceptance: a member that the operation does not know is dropped, so that a misspelt option has no effect",
    _ARGUMENTS,
    lambda: _answered("field.add", {"q": "7", "a": "", "b": "", "c": ""}, {}),
    kind="form",
    source="silent repair",
)
def _dropped(right: Function) -> Function:
    def wrong(self: Adapter, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in request["params"].items() if name in OPERATIONS[operation][0]}
        arguments: dict[str, Any] = right(self, operation, {**request, "params": known})
        return arguments

    return wrong


@mutant(
    "missing-members-empty",
    "ADP-05",
    "acceptance: a vector that is missing is taken as empty",
    _ARGUMENTS,
    lambda: _answered("field.add", {"q": "7", "a": ""}, {}),
    kind="form",
    source="silent repair",
)
def _defaults(right: Function) -> Function:
    def wrong(self: Adapter, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        filled = {**dict.fromkeys(OPERATIONS[operation][0], ""), **request["params"]}
        arguments: dict[str, Any] = right(self, operation, {**request, "params": filled})
        return arguments

    return wrong


# -------------------------------------------------------------------------------------------------- the code


@mutant(
    "code-numbers-unchecked",
    "MDS-01",
    "privacy: T = 0 gives shares that are not masked; other numbers give a code that does not decode",
    f"{_CODE}.__init__",
    lambda: _outcome(lambda: mds.MaskCode(_FIELD7, 5, 3, 0).T),
    kind="privacy",
    source="seen in FedML 0.9.6: mds.encode/parameters",
)
def _numbers(right: Function) -> Function:
    def wrong(self: mds.MaskCode, field: modular.PrimeField, N: int, U: int, T: int, points: Any = None) -> None:
        self.field, self.N, self.U, self.T = field, N, U, T
        given = mds.default_points(N) if points is None else points
        self.points = np.array([int(point) for point in given], dtype=np.uint64) % np.uint64(field.modulus)
        self.columns = field.powers(self.points, U)

    return wrong


@mutant(
    "empty-vector-is-shared",
    "MDS-01",
    "acceptance: an empty vector is shared among the users, although there is nothing to protect",
    f"{_CODE}.share_length",
    lambda: _outcome(lambda: mds.MaskCode(_FIELD7, 5, 3, 1).share_length(0)),
    kind="acceptance",
    source="seen in FedML 0.9.6: mds.encode/empty",
)
def _empty(right: Function) -> Function:
    return lambda self, d: 0 if d == 0 else right(self, d)


@mutant(
    "points-unchecked",
    "MDS-02",
    "privacy: the point 0 is taken, whose share is the first sub-mask in clear; equal points do not decode",
    f"{_CODE}._check_points",
    lambda: _outcome(lambda: mds.MaskCode(_FIELD7, 5, 3, 1, (0, 1, 2, 3, 4)).points),
    reach="tests/arithmetic/test_mds.py::test_points_that_are_0_or_equal_or_no_elements_are_refused",
    kind="privacy",
    source="paper: lightsecagg, evaluation points",
)
def _points(right: Function) -> Function:
    def wrong(self: mds.MaskCode, points: Sequence[int]) -> UintArray:
        return np.array([point % self.field.modulus for point in points], dtype=np.uint64)

    return wrong


@mutant(
    "absent-shares-are-zero",
    "MDS-07",
    "wrong sum: a share that is missing is taken as zero",
    f"{_CODE}.decode",
    lambda: _decodes((0, 1)),
    also=("LSA-14",),
    kind="acceptance",
    source="silent repair",
)
def _absent(right: Function) -> Function:
    def wrong(self: mds.MaskCode, users: Sequence[int], shares: UintArray, d: int) -> UintArray:
        spare = [user for user in range(self.N) if user not in users][: max(0, self.U - len(users))]
        zeros = np.zeros((len(spare), shares.shape[1]), dtype=np.uint64)
        return right(self, [*users, *spare], np.concatenate([shares, zeros]), d)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "users-repeat-unseen",
    "MDS-08",
    "acceptance: no list of users is searched for a user that is named twice",
    "secagg_spec.arithmetic.validate:users",
    lambda: _outcome(lambda: validate.users("users", (1, 1), 5)),
    kind="acceptance",
    source="seen in FedML 0.9.6: mds.decode/twice",
)
def _unseen(right: Function) -> Function:
    def wrong(name: str, value: object, count: int) -> tuple[int, ...]:
        entries = validate.user_numbers(name, value)
        right(name, sorted(set(entries)), count)
        return entries

    return wrong


@mutant(
    "users-wrap-around",
    "MDS-08",
    "acceptance: user N is taken for user 0, and user -1 for the last one",
    "secagg_spec.arithmetic.validate:users",
    lambda: _outcome(lambda: validate.users("users", (7,), 5)),
    kind="acceptance",
    source="silent repair",
)
def _wrap(right: Function) -> Function:
    def wrong(name: str, value: object, count: int) -> tuple[int, ...]:
        wrapped = [user % count for user in validate.user_numbers(name, value)]
        return right(name, wrapped, count)  # type: ignore[no-any-return]

    return wrong


def _decodes(users: Sequence[int]) -> object:
    code = mds.MaskCode(_FIELD7, 5, 3, 1)
    shares = code.encode(_vector(4, 0, 6), _vector(2, 5).reshape(1, 2))
    return _outcome(lambda: code.decode(users, shares[list(users)], 3))


# --------------------------------------------------------------------------------------------- the quantiser


@mutant(
    "not-finite-becomes-zero",
    "QNT-01",
    "wrong sum: NaN, infinities and what overflows once scaled count as 0",
    f"{_QUANTIZER}:quantize",
    lambda: _quantized(np.nan),
    also=("ERR-02",),
    kind="acceptance",
    source="silent repair",
)
def _not_finite(right: Function) -> Function:
    def wrong(x: Any, *, level: int, ring: modular.Ring, weight: int, rounding: Any) -> Any:
        with np.errstate(all="ignore"):
            x = np.where(np.isfinite(x * level), x, 0.0)
        return right(x, level=level, ring=ring, weight=weight, rounding=rounding)

    return wrong


@mutant(
    "level-and-weight-clamped",
    "QNT-08",
    "wrong scale: a level or a total weight that is not allowed is replaced by the nearest one that is",
    f"{_QUANTIZER}:quantize",
    lambda: _quantized(1.0, level=0),
    kind="acceptance",
    source="silent repair",
)
def _clamped(right: Function) -> Function:
    def wrong(x: Any, *, level: int, ring: modular.Ring, weight: int, rounding: Any) -> Any:
        level = min(max(level, 1), quantizer.MAX_LEVEL)
        return right(x, level=level, ring=ring, weight=max(weight, 1), rounding=rounding)

    return wrong


@mutant(
    "level-clamped-back",
    "QNT-08",
    "wrong scale: the decoder replaces a level that is not allowed by the nearest one that is",
    f"{_QUANTIZER}:dequantize",
    lambda: _outcome(lambda: quantizer.dequantize(_vector(1), level=0, ring=_FIELD7)),
    kind="acceptance",
    source="silent repair",
)
def _clamped_back(right: Function) -> Function:
    def wrong(values: UintArray, *, level: int, ring: modular.Ring, format: Any = "binary64") -> Any:
        return right(values, level=min(max(level, 1), quantizer.MAX_LEVEL), ring=ring, format=format)

    return wrong


@mutant(
    "draw-clipped",
    "QNT-09",
    "bias: a draw outside [0, 1) is moved to its nearest end",
    f"{_QUANTIZER}:quantize",
    lambda: _quantized(0.5, draw=1.5),
    kind="acceptance",
    source="silent repair",
)
def _draw(right: Function) -> Function:
    def wrong(x: Any, *, level: int, ring: modular.Ring, weight: int, rounding: Any) -> Any:
        inside = np.clip(np.nan_to_num(rounding), 0.0, 1 - 2.0**-53)
        return right(x, level=level, ring=ring, weight=weight, rounding=inside)

    return wrong


@mutant(
    "finer-draws-are-taken",
    "QNT-10",
    "disagreement: with a draw that is no multiple of 2**-53 one input is rounded up by one party and down by another",
    f"{_QUANTIZER}:_refuse_finer",
    lambda: _quantized(0.5, draw=2.0**-54),
    kind="acceptance",
    source="clause left out",
)
def _finer(right: Function) -> Function:
    return lambda rounding: None


def _quantized(x: float, *, level: int = 1, draw: float = 0.5) -> object:
    ring = modular.Ring(101)
    draws = np.array([draw])
    return _outcome(lambda: quantizer.quantize(np.array([x]), level=level, ring=ring, weight=1, rounding=draws))


# ------------------------------------------------------------------------------------------------ LightSecAgg


@mutant(
    "parameters-unchecked",
    "LSA-01",
    "privacy: no number of a session is checked but those of the code",
    f"{_LSA}:Parameters.__post_init__",
    lambda: _outcome(lambda: lightsecagg.Parameters(q=7, N=5, D=-1, U=3, T=1, d=1).D),
    kind="privacy",
    source="seen in FedML 0.9.6: lightsecagg.round/parameters",
)
def _parameters(right: Function) -> Function:
    return lambda self: None


@mutant(
    "strangers-are-left-out",
    "LSA-10",
    "acceptance: users outside the roster are taken out of the surviving set in silence",
    f"{_LSA}:aggregate_shares",
    lambda: _outcome(lambda: _aggregated((0, 1, 2, 9))),
    kind="acceptance",
    source="silent repair",
)
def _strangers(right: Function) -> Function:
    def wrong(field: Any, N: int, T: int, surviving: Sequence[int], held: Any) -> UintArray:
        return right(field, N, T, [user for user in surviving if 0 <= user < N], held)  # type: ignore[no-any-return]

    return wrong


def _aggregated(surviving: Sequence[int]) -> UintArray:
    return lightsecagg.aggregate_shares(_FIELD7, 5, 1, surviving, {user: _vector(user) for user in range(5)})


@mutant(
    "outsider-answers",
    "LSA-16",
    "acceptance: an answer counts whoever gives it, in the surviving set or not",
    f"{_LSA}:server_recover",
    lambda: _outcome(_answer_of_an_outsider),
    kind="acceptance",
    source="clause left out",
)
def _outsider(right: Function) -> Function:
    def wrong(state: lightsecagg.ServerState, inbox: Any, *, randomness: Any) -> Any:
        everyone = replace(state, surviving=tuple(range(state.parameters.N)))
        after, outbox = right(everyone, inbox, randomness=randomness)
        return replace(after, surviving=state.surviving), outbox

    return wrong


def _answer_of_an_outsider() -> str:
    total = np.zeros(3, dtype=np.uint64)
    tiny = lightsecagg.PRESETS["tiny"]
    state = lightsecagg.ServerState(tiny, bytes(16), 0, phase="recover", surviving=(0, 1, 2, 3), masked_sum=total)
    share = np.zeros(tiny.share_length, dtype=np.uint64)
    inbox = [lightsecagg.AggregatedShare(bytes(16), 0, user, shape.SERVER, share) for user in (0, 1, 4)]
    return str(lightsecagg.server_recover(state, inbox, randomness={})[0].phase)


@mutant(
    "no-sharer-ends-the-step",
    "LSA-40",
    "failure: a server that has no sharers refuses its step, so that two servers end a round in different steps",
    f"{_LSA}:server_share",
    lambda: _outcome(_relay_of_nothing),
    kind="refusal",
    source="clause too strict",
)
def _no_sharer(right: Function) -> Function:
    def wrong(state: lightsecagg.ServerState, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        if not after.sharers:
            raise TooFewSurvivors("no user shared its mask")
        return after, outbox

    return wrong


def _relay_of_nothing() -> str:
    state = lightsecagg.server_start(lightsecagg.PRESETS["tiny"], bytes(16), 0)
    return str(lightsecagg.server_share(state, (), randomness={})[0].phase)


@mutant(
    "binding-forgets-d",
    "LSA-18",
    "acceptance: a share that was sealed for a session with other parameters opens",
    f"{_LSA}:sealing_context",
    lambda: lightsecagg.sealing_context(replace(lightsecagg.PRESETS["tiny"], d=4), bytes(16), 0).parameters,
    reach=("tests/protocols/test_sealed_round.py::test_a_share_for_another_session_round_or_parameters_does_not_open"),
    kind="acceptance",
    source="field not bound: d",
)
def _binding(right: Function) -> Function:
    return lambda parameters, *of_the_round: right(replace(parameters, d=1), *of_the_round)


def _waiting() -> int:
    tiny = lightsecagg.PRESETS["tiny"]
    network = lightsecagg.open_round(tiny, np.zeros((5, 3), dtype=np.uint64), session=bytes(16), round=0)
    network.waiting[0] = [lightsecagg.SurvivingSet(bytes(16), 0, shape.SERVER, 0, (0, 1, 2))]
    _outcome(lambda: network.take(lightsecagg.TABLE[4], 0))
    return len(network.waiting.get(0, ()))


@mutant(
    "mail-is-lost",
    "ERR-01",
    "state: the messages that wait for a step are gone when the step refuses them",
    "secagg_spec.protocols.shape:Network.take",
    _waiting,
    reach="tests/protocols/test_shape.py::test_a_refused_step_leaves_the_network_as_it_was",
    kind="refusal",
    source="trace of a refusal",
)
def _lost(right: Function) -> Function:
    def wrong(self: shape.Network, step: Any, party: int, randomness: Any = None) -> Any:
        try:
            return right(self, step, party, randomness)
        except (ParameterError, ProtocolError):
            self.waiting.pop(party, None)
            raise

    return wrong
