"""HeteroSAg, one function at a time, by the reference (spec/heterosag.md, sections 3, 4, 7 and 8)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import averages, segments, validate
from secagg_spec.arithmetic import levels as quantiser
from secagg_spec.arithmetic.levels import Range
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.targets.reference import neighbours, readers
from secagg_spec.errors import LengthMismatch, ParameterError, ProtocolError
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg.round import UnmaskRequest
from secagg_spec.protocols.steps import SERVER, Network, run_synchronous

_LISTS = ("sizes", "subgroups", "levels")
_MATRICES = ("cyclic", "perfect")
_BOUNDS = 2
_SESSION = b"secagg-spec kit."


def read_range(text: str) -> Range:
    """Return the range r1, r2 in a binary64 vector."""
    bounds = readers.reals("range", text).tolist()
    if len(bounds) != _BOUNDS:
        raise LengthMismatch("len(range)", len(bounds), "2: r1 and r2")
    return Range(*bounds)


def read_parameters(*, range: str, matrix: str, **numbers: Any) -> Parameters:
    """Return the parameters of a session from its separate numbers."""
    if matrix not in _MATRICES:
        raise ParameterError("matrix", matrix, " or ".join(map(repr, _MATRICES)))
    lists: dict[str, Any] = {name: tuple(numbers.pop(name)) for name in _LISTS}
    return Parameters(**numbers, **lists, range=read_range(range), matrix=matrix)


def _quantize(*, levels: str, range: str, clip: bool, x: str, rand: Mapping[str, Any]) -> dict[str, Any]:
    bounds, numbers = read_range(range), readers.reals("x", x)
    value = quantiser.quantize_levels(
        bounds.clip(numbers) if clip else numbers,
        levels=readers.number("levels", levels),
        range=bounds,
        rounding=readers.reals("rounding", rand["rounding"]),
    )
    return {"value": pack(value)}


def _plan(**numbers: Any) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    moduli = _table(parameters, lambda cell: cell.ring.modulus)
    return {
        "members": [list(users) for users in parameters.members],
        "lengths": list(parameters.lengths),
        "matrix": segments.entries(parameters.plan),
        "levels": _table(parameters, lambda cell: cell.levels),
        "moduli": [[str(modulus) for modulus in row] for row in moduli],
    }


def _table(parameters: Parameters, entry: Callable[[Any], int]) -> list[list[int]]:
    """Return a row for each segment, with an entry for the cell of each subgroup."""
    rows = [[0] * parameters.count for _ in range(parameters.count)]
    for cell in parameters.parts:
        for subgroup in cell.subgroups:
            rows[cell.segment][subgroup] = entry(cell)
    return rows


def _average(*, range: str, levels: Any, counts: Any, sums: Any, method: str, trim: int) -> dict[str, Any]:
    bounds = read_range(range)
    if not len(levels) == len(counts) == len(sums):
        raise LengthMismatch("levels, counts, sums", [len(levels), len(counts), len(sums)], "equally many")
    validate.integer("cells", len(sums), 1)
    totals = readers.rows("sums", sums, len(sums), readers.vector("sums", sums[0]).size)
    cells = zip(totals, levels, counts, strict=True)
    means = [quantiser.cell_mean(total, count=count, levels=K, range=bounds) for total, K, count in cells]
    return {"segment": pack_reals(averages.combined(np.array(means), counts, method, trim))}


def _request(*, requests: Sequence[Sequence[int]], **numbers: Any) -> dict[str, Any]:
    """Answer as the smallest user that survives in all requests; until the unmasking, all rounds are equal."""
    parameters = read_parameters(**numbers)
    common = set(range(parameters.N)).intersection(*map(set, requests))
    if not common:
        raise ParameterError("requests", list(requests), "such that some user survives in all of them")
    user = min(common)
    short = replace(parameters, d=parameters.count)  # no answer depends on d
    ready, past, answers = before_unmasking(short).states[user], tuple[frozenset[int], ...](), []
    for survivors in requests:
        past, entry = asked(replace(ready, past=past), _unmask_request(parameters, user, survivors))
        answers.append(entry)
    return {"answers": answers}


def _unmask_request(parameters: Parameters, user: int, survivors: Sequence[int]) -> UnmaskRequest:
    dropped = tuple(other for other in range(parameters.N) if other not in set(survivors))
    return UnmaskRequest(_SESSION, 0, SERVER, user, tuple(survivors), dropped)


def asked(state: heterosag.UserState, request: UnmaskRequest) -> tuple[tuple[frozenset[int], ...], dict[str, Any]]:
    """Return the requests that the user has answered after this one, and its answer or its refusal."""
    try:
        after, _ = heterosag.user_unmasking.take(state, (request,), randomness={})
    except (ParameterError, ProtocolError) as error:
        return state.past, {"reject": {"code": reject_code(error), "message": str(error)}}
    return after.past, {}


def before_unmasking(parameters: Parameters) -> Network:
    """Return the network of an all-zero round without dropouts, after the masked inputs were sent."""
    whole = heterosag.open_round(
        parameters, np.zeros((parameters.N, parameters.d), np.uint64), session=_SESSION, round=0
    )
    early = Network(tuple(step for step in heterosag.TABLE if step.phase != "unmasking"), whole.states)
    run_synchronous(early, {}, neighbours.sampled(parameters, "heterosag"))
    return early


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "quantize.levels": _quantize,
    "segment.plan": _plan,
    "heterosag.average": _average,
    "heterosag.request": _request,
}
