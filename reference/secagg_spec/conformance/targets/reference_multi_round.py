"""Multi-RoundSecAgg, one function at a time, over the reference (spec/multi-round.md, sections 2, 3 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.conformance.targets import readers
from secagg_spec.errors import OutOfRange
from secagg_spec.protocols import multi_round
from secagg_spec.selection import batches, strategies
from secagg_spec.selection.batches import Parameters

_LISTED = 1000
"""The most sets of a family that is listed."""


def _family(*, N: int, K: int, T: int) -> dict[str, Any]:
    parameters = Parameters(N, K, T)
    size = batches.family_size(parameters)
    sets = None if size > _LISTED else [list(users) for users in batches.family(parameters)]
    return {"size": str(size), "sets": sets}


def _batch(
    *,
    N: int,
    K: int,
    T: int,
    strategy: str,
    frequencies: Sequence[int],
    available: Sequence[int],
    rand: Mapping[str, Sequence[int]],
) -> dict[str, Any]:
    parameters = Parameters(N, K, T)
    here = np.zeros(N, dtype=np.bool_)
    here[list(validate.users("available", list(available), N))] = True
    chosen = strategies.choose(parameters, strategy, counts(frequencies), here, rand["draws"])
    return {"chosen": None if chosen is None else list(chosen)}


def counts(frequencies: Sequence[int]) -> strategies.Counts:
    """Return frequencies as the reference takes them; those that no machine word holds are refused here."""
    for at, often in enumerate(frequencies):
        if not -(2**63) <= often < 2**63:
            raise OutOfRange(f"frequencies[{at}]", often, f"in [0, {strategies.MAX_FREQUENCY})")
    return np.array(frequencies, dtype=np.int64)


def _session(*, N: int, K: int, T: int, session: str, round: str, chosen: Sequence[int]) -> dict[str, Any]:
    octets, number = readers.octets("session", session), readers.u32("round", round)
    return {"session": multi_round.round_session(Parameters(N, K, T), octets, number, chosen).hex()}


def _complete(*, N: int, K: int, T: int, c: int, arrived: Sequence[int]) -> dict[str, Any]:
    return {"survivors": list(multi_round.whole_inputs(multi_round.Numbers(N, K, T, c), arrived))}


def _request(
    *, N: int, K: int, T: int, c: int, user: int, chosen: Sequence[int], survivors: Sequence[int]
) -> dict[str, Any]:
    numbers = multi_round.Numbers(N, K, T, c)
    multi_round.check_choice(numbers, user, chosen)
    multi_round.check_survivors(numbers, survivors)
    return {}


HANDLERS: Mapping[str, Callable[..., dict[str, Any]]] = MappingProxyType(
    {
        "select.family": _family,
        "select.batch": _batch,
        "select.session": _session,
        "select.complete": _complete,
        "select.request": _request,
    }
)
