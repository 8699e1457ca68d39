"""The aggregators by name: the plain one, and five that quantise and run a protocol of this standard.

Source: spec/experiments.md, section 4 (EXP-13 to EXP-16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import OutOfRange
from secagg_spec.experiments import aggregates
from secagg_spec.experiments.aggregates import PLAIN, Aggregate, Aggregator, Disagreement
from secagg_spec.experiments.aggregators_cells import HeteroSAg
from secagg_spec.experiments.aggregators_sums import BASA, BASecAgg, LightSecAgg, SecAgg

__all__ = ["NAMES", "Aggregate", "Aggregator", "Disagreement", "Plain", "build"]


class Plain:
    """The weighted mean of the updates themselves, without any protection."""

    name = "plain"

    def __init__(self, settings: Mapping[str, Any], users: int, d: int, seed: int) -> None:
        self._shape = (validate.integer("users", users, 1), validate.integer("d", d, 1))

    def aggregate(
        self,
        updates: RealArray,
        weights: Sequence[float | int],
        *,
        users: Sequence[int],
        round: int,
        taus: Sequence[int] | None = None,
        draws: RealArray | None = None,
    ) -> Aggregate:
        """Return the aggregate of a round; see `aggregates.Aggregator`."""
        given = aggregates.checked(updates, weights, users, round, taus, draws, shape=self._shape, whole=False)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = aggregates.weighted_mean(given.updates, given.weights)
        if not np.isfinite(mean).all():
            raise OutOfRange("updates", float(np.abs(given.updates).max()), "such that their weighted mean is finite")
        return Aggregate(mean, 0.0, PLAIN)


_KINDS: Mapping[str, Callable[[Mapping[str, Any], int, int, int], Aggregator]] = MappingProxyType(
    {kind.name: kind for kind in (Plain, SecAgg, LightSecAgg, BASecAgg, BASA, HeteroSAg)}
)
NAMES = tuple(_KINDS)


def build(settings: Mapping[str, Any], users: int, d: int, seed: int) -> Aggregator:
    """Return the aggregator that the settings name.

    Parameters
    ----------
    settings : mapping
        ``aggregator`` is one of `NAMES`. For all but the plain one, ``every`` says in which rounds the whole protocol
        runs (n: in rounds 0, n, 2n, …; 1, the default: in each; 0: in none), and ``clip`` whether numbers outside the
        range are clipped to its bounds (false). For sums, ``level`` is c_l (2**16), and ``q`` the modulus (2**32 for
        secagg and basa, 2**32 - 5 for the others); for buffers, ``c_g`` is the level of the weights (64), ``tau_max``
        the largest staleness (10), and ``staleness`` a function as text, such as ``polynomial:1`` (constant). For
        those of heterosag see `HeteroSAg`. Other members are ignored.
    users, d, seed : int
        N, the length of an update, and the seed of draws, keys and masks.

    Raises
    ------
    ParameterError
        The aggregator is unknown, and the error names similar ones (EXP-29), or a setting is not as described.
    """
    name = validate.one_of("aggregator", settings.get("aggregator", ""), NAMES)
    return _KINDS[name](settings, users, d, seed)
