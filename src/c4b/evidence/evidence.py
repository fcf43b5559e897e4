"""The confidence set as an object: holds the statistics, validates, answers ``lower`` and ``upper``."""

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
    """What the data say about theta. It knows no budget, no baseline and no time.

    Any number of threads may ask at once, but not while one absorbs or learns.

    With the sets ``constrained``, ``unbiased`` and ``several-ridges`` each question to ``lower`` and
    ``upper`` gets an ellipsoid of its own, and the answer is all but exact. With ``refined=False`` the
    set's list of ellipsoids answers, as in policies, which ask about whole pools: for a gate of your own
    that asks often, or whose journals were written before answers were refined.

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
        """Without the kernel: one that comes with a pickle is compiled anew in every process."""
        return {name: part for name, part in vars(self).items() if name not in ("absorber", "_viewed")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.absorber = absorption.absorber(self.model)
        self._viewed = views(self.flat)

    def __copy__(self) -> Evidence:
        """Also a shallow copy has numbers of its own: what one learns is not known to the other."""
        return copy.deepcopy(self)

    def learn(self, features: ArrayLike, rewards: ArrayLike) -> None:
        """Absorb rows of ``features`` (n, d) with ``rewards`` (n,), in the order in which they arose.

        The set stays valid only if the rows were not picked by looking at their rewards.
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

        Unlike ``learn`` it takes an observation that 64-bit arithmetic cannot hold together with the
        others, because what was executed cannot be undone; nothing is certified then.
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
        """Smallest value of ``v @ theta`` that the set allows."""
        return self._lower(_validate.vector("v", v, self.model.dim))

    def upper(self, v: ArrayLike) -> float:
        """Largest value of ``v @ theta`` that the set allows."""
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
        """The confidence set as kernels read it: views, not for writing."""
        return self._views()[0]

    @property
    def estimate(self) -> Array:
        """theta_hat (5), shape (d,); a copy."""
        return theta_hat(self.region)

    @property
    def radius(self) -> float:
        """Radius of the first ellipsoid: beta (6) or its mixture form."""
        return self.flat.item(self._radius_at)

    @property
    def alarm(self) -> str | None:
        """What speaks against the model, or None; ``c4b.evidence.alarms`` says how often it is wrong."""
        code = self.flat.item(self._alarm_at)
        if code:
            return alarms.MESSAGES.get(code, "unknown alarm")
        if math.isnan(self.flat.item(HEADING)):
            return "the data are too badly scaled for 64-bit arithmetic; nothing can be certified"
        return None

    @property
    def count(self) -> int:
        """Observations absorbed so far."""
        return int(self._views()[1].tally[COUNT])

    def __repr__(self) -> str:
        return f"Evidence({self.model}, count={self.count}, radius={self.radius:.4g})"
