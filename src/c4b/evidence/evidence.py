"""The confidence set as an object: absorbs observations, answers ``lower`` and ``upper``."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence import absorption, alarms, bounds
from c4b.evidence.eigenbasis.spectral import theta_hat
from c4b.evidence.ellipsoids import (
    ALARM,
    COUNT,
    HEADING,
    Data,
    Region,
    Terms,
    alarm_index,
    estimates,
    radius_index,
    views,
)
from c4b.evidence.model import LinearModel
from c4b.evidence.refinement.question import PAIR, space_size
from c4b.evidence.refinement.refined_lower import REFINED, refined_lower
from c4b.evidence.sets.box import check_arm, check_arms


class Evidence:
    """The confidence set for theta, built from observations.

    It does not depend on budget, baseline or time.

    Several threads may call ``lower`` and ``upper`` at the same time, but not while a thread calls
    ``absorb`` or ``learn``.

    With the sets ``constrained``, ``unbiased`` and ``several-ridges``, each call of ``lower`` and
    ``upper`` computes its own ellipsoid, so the answer is almost exact. With ``refined=False`` these
    calls use the set's list of ellipsoids, as policies do for whole pools of candidates. Use
    ``refined=False`` in a gate of your own that asks often, or whose journals were written before answers
    were refined.

    >>> evidence = Evidence(LinearModel(dim=2, noise=0.1, norm_bound=1.0))
    >>> evidence.learn([[1.0, 0.0], [1.0, 0.0]], [0.5, 0.7])
    >>> evidence.absorb([1.0, 0.0], 0.6)
    >>> evidence.lower([1.0, 0.0]) < 0.6 < evidence.upper([1.0, 0.0])
    True
    """

    def __init__(self, model: LinearModel, *, refined: bool = True) -> None:
        if not isinstance(model, LinearModel):
            raise InvalidInput("model", model, "must be a c4b.LinearModel")
        self.model = model.resolved()
        self.flat = absorption.empty(self.model)
        self.absorber: Callable[[Array, Array, float], None] = absorption.absorber(self.model)
        """Absorbs one observation (``flat``, x (d,), y) that was checked before."""
        self._radius_at = radius_index(self.flat)
        self._alarm_at = alarm_index(self.flat)
        self._viewed = views(self.flat)
        self._refines = refined and self._viewed[1].code in REFINED

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the kernel: a pickled kernel would be compiled again in every process."""
        return {name: part for name, part in vars(self).items() if name not in ("absorber", "_viewed")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.absorber = absorption.absorber(self.model)
        self._viewed = views(self.flat)

    def __copy__(self) -> Evidence:
        """Return a deep copy, also for ``copy.copy``: the copy and the original learn independently."""
        return copy.deepcopy(self)

    def learn(self, features: ArrayLike, rewards: ArrayLike) -> None:
        """Absorb rows of ``features`` (n, d) with ``rewards`` (n,), in the order of observation.

        The set stays valid only if the rows were not selected by their rewards.
        """
        x = _validate.table("features", features, self.model.dim)
        if self.model.confidence_set.one_hot:
            check_arms("features", x)
        y = self.model.check_rewards("rewards", _validate.series("rewards", rewards, len(x)))
        before = self.flat.copy()
        absorption.many_absorber(self.model)(self.flat, x, y)
        if not np.all(np.isfinite(self._numbers())):
            self.flat[:] = before
            raise InvalidInput(
                "features",
                features,
                "too badly scaled for 64-bit arithmetic; bring features to comparable units "
                "(for example divide each by its standard deviation)",
            )

    def absorb(self, x: ArrayLike, y: float) -> None:
        """Absorb one observation: features ``x`` (d,) with the reward ``y``.

        Unlike ``learn``, it accepts an observation that 64-bit arithmetic cannot represent together with
        the others, because an executed action cannot be undone. Nothing is certified after that.
        """
        reward = self.model.check_reward("y", _validate.reward("y", y))
        row = _validate.vector("x", x, self.model.dim)
        if self.model.confidence_set.one_hot:
            check_arm("x", row)
        self.absorber(self.flat, row, reward)

    def _views(self) -> tuple[Region, Data, Terms]:
        """``views``, made once for an array: they cost more than what is asked of them."""
        if self._viewed[0].radius.base is not self.flat:
            self._viewed = views(self.flat)
        return self._viewed

    def _numbers(self) -> Array:
        """All that must be finite: an empty set has no radius, which is an alarm, not bad scaling."""
        region, data, _ = self._views()
        if data.tally[ALARM] != alarms.EMPTY_SET:
            return estimates(self.flat)
        return np.delete(estimates(self.flat), self._radius_at + np.arange(len(region.radius)))

    def lower(self, v: ArrayLike) -> float:
        """Return the smallest value of ``v @ theta`` over the confidence set."""
        return self._lower(_validate.vector("v", v, self.model.dim))

    def upper(self, v: ArrayLike) -> float:
        """Return the largest value of ``v @ theta`` over the confidence set."""
        return -self._lower(-_validate.vector("v", v, self.model.dim))

    def _lower(self, v: Array) -> float:
        if self._refines:
            return refined_lower(self.flat, v, np.empty(PAIR), np.zeros(space_size(len(v))))
        return bounds.lower(self.region, v)

    def contains(self, theta: ArrayLike) -> bool:
        """Whether ``theta`` (d,) lies in every ellipsoid of the set: the event (7) at this moment."""
        point = _validate.vector("theta", theta, self.model.dim)
        region, data, _ = self._views()
        if self.model.confidence_set.is_compiled:
            return bounds.contains(region, data, point)
        gaps = point - region.estimate
        squares = np.einsum("gi,gi->g", gaps, np.linalg.solve(region.inverse, gaps[:, :, None])[:, :, 0])
        return bool(np.all(squares <= region.radius**2))

    @property
    def region(self) -> Region:
        """The confidence set in the form that kernels read.

        The arrays are views; do not write to them.
        """
        return self._views()[0]

    @property
    def estimate(self) -> Array:
        """The estimate theta_hat (5), shape (d,), as a copy."""
        return theta_hat(self.region)

    @property
    def radius(self) -> float:
        """Radius of the first ellipsoid: beta (6) or its mixture form."""
        return self.flat.item(self._radius_at)

    @property
    def alarm(self) -> str | None:
        """Why the data contradict the model, or None.

        ``c4b.evidence.alarms`` states the rate of false alarms.
        """
        code = self.flat.item(self._alarm_at)
        if code:
            return alarms.MESSAGES.get(code, "unknown alarm")
        if math.isnan(self.flat.item(HEADING)):
            return "the data are too badly scaled for 64-bit arithmetic; nothing can be certified"
        return None

    @property
    def count(self) -> int:
        """Number of observations absorbed so far."""
        return int(self._views()[1].tally[COUNT])

    def __repr__(self) -> str:
        return f"Evidence({self.model}, count={self.count}, radius={self.radius:.4g})"
