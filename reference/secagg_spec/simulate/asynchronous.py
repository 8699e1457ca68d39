"""Training without common rounds, small enough to follow: who trains when, on what, and how far the model gets.

Each user pulls the model towards its own point, so the best model is the mean of these points. A seed determines when
a user begins, how long it trains, and who is away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.crypto.entropy import Source, draw_rounding

_PULL = 0.4


@dataclass(frozen=True, eq=False)
class Training:
    """The users' task: `points` (N, d) in [-1, 1], and the slowness of each user, a factor in [1, 4]."""

    points: RealArray
    slowness: RealArray
    source: Source

    @classmethod
    def draw(cls, source: Source, N: int, d: int) -> Training:
        """Draw the task of N users with a model of d elements."""
        points = np.round(draw_rounding(source, N * d) * 2 - 1, 3).reshape(N, d)
        return cls(points, 1 + 3 * draw_rounding(source, N) ** 2, source)

    def trained(self, user: int, model: RealArray) -> RealArray:
        """Return the model that a user trains from the model that it downloaded."""
        result: RealArray = model - _PULL * (model - self.points[user])
        return result

    def delay(self, user: int) -> float:
        """Return the duration of this training: exponential, with a larger mean for slow users."""
        return -math.log1p(-float(draw_rounding(self.source, 1)[0])) * float(self.slowness[user])

    def distance(self, model: RealArray) -> float:
        """Return the distance of a model from the best one."""
        return math.dist(model, self.points.mean(axis=0))
