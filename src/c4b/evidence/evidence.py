"""The confidence set as an object: holds the statistics, validates, answers ``lower`` and ``upper``."""

from __future__ import annotations

import math

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence import bounds
from c4b.evidence import ellipsoids as statistics
from c4b.evidence.model import LinearModel

ALARMS = {
    statistics.EMPTY_SET: "no theta within the norm bound explains the data",
    statistics.RESIDUALS: "residuals are too large for the declared noise around any linear mean",
}


class Evidence:
    """What the data say about theta. It knows no budget, no baseline and no time.

    >>> evidence = Evidence(LinearModel(dim=2, noise=0.1, norm_bound=1.0))
    >>> evidence.learn([[1.0, 0.0], [1.0, 0.0]], [0.5, 0.7])
    >>> evidence.lower([1.0, 0.0]) < 0.6 < evidence.upper([1.0, 0.0])
    True
    """

    def __init__(self, model: LinearModel) -> None:
        if not isinstance(model, LinearModel):
            raise InvalidInput("model", model, "must be a c4b.LinearModel")
        self.model = model.resolved()
        self.flat = statistics.empty(self.model)
        self._radius_at = statistics.radius_index(self.model)

    def learn(self, features: object, rewards: object) -> None:
        """Absorb rows of ``features`` (n, d) with ``rewards`` (n,), in the order in which they arose.

        The set stays valid only if the rows were not picked by looking at their rewards.
        """
        x = _validate.table("features", features, self.model.dim)
        y = _validate.series("rewards", rewards, len(x))
        before = self.flat.copy()
        statistics.absorb_many(self.flat, x, y)
        if not np.all(np.isfinite(self._numbers())):
            self.flat[:] = before
            raise InvalidInput(
                "features",
                features,
                "too badly scaled for 64-bit arithmetic; bring features to comparable units "
                "(for example divide each by its standard deviation)",
            )

    def _numbers(self) -> Array:
        """All that must be finite: an empty set has no radius, which is an alarm, not bad scaling."""
        region, data, _ = statistics.views(self.flat)
        if data.tally[statistics.ALARM] != statistics.EMPTY_SET:
            return self.flat
        return np.delete(self.flat, self._radius_at + np.arange(1, len(region.radius)))

    def lower(self, v: object) -> float:
        """Smallest value of ``v @ theta`` that the set allows."""
        return bounds.lower(self.region, _validate.vector("v", v, self.model.dim))

    def upper(self, v: object) -> float:
        """Largest value of ``v @ theta`` that the set allows."""
        return bounds.upper(self.region, _validate.vector("v", v, self.model.dim))

    @property
    def region(self) -> statistics.Region:
        """The confidence set as kernels read it: views, not for writing."""
        return statistics.views(self.flat)[0]

    @property
    def estimate(self) -> Array:
        """theta_hat (5), shape (d,); a copy."""
        estimate: Array = self.region.estimate[0].copy()
        return estimate

    @property
    def radius(self) -> float:
        """beta (6) or its mixture form."""
        return self.flat.item(self._radius_at)

    @property
    def alarm(self) -> str | None:
        """What speaks against the model, or None; see ``statistics.watch`` for how often it is wrong."""
        code = self.flat.item(-statistics.TALLY + statistics.ALARM)
        if code:
            return ALARMS.get(code, "unknown alarm")
        if math.isnan(self.flat.item(statistics.HEADING)):
            return "the data are too badly scaled for 64-bit arithmetic; nothing can be certified"
        return None

    @property
    def count(self) -> int:
        """Observations absorbed so far."""
        return int(statistics.views(self.flat)[1].tally[statistics.COUNT])

    def __repr__(self) -> str:
        return f"Evidence({self.model}, count={self.count}, radius={self.radius:.4g})"
