"""Which play brings the best-scored candidate nearer while that is not admissible, recomputed.

The rule is that of docs/theory.md, section "Choice", *Saving up*. Where rounding could decide, every
candidate that could be the nearest one counts as right.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from c4b._validate import LARGEST, Array
from c4b.deployment.audit.recomputed.recomputed_belief import Belief
from c4b.deployment.audit.recomputed.recomputed_counterweight import Counterweight, Promise, awaited


class Approach(NamedTuple):
    """What a play is judged by that is to bring another candidate nearer."""

    belief: Belief
    region: Any  # the confidence set
    prefix: Array  # (d,) Z
    alpha: float
    candidates: Array  # (K, d)
    baseline: Array  # (d,)
    tolerance: float  # relative difference of two arithmetics

    def gains(self, target: int) -> tuple[Array, Array]:
        """By how much (K,) each candidate brings ``target`` nearer than the baseline does, and what
        rounding can change in it."""
        saved = self.prefix + self.alpha * self.baseline
        whole = saved + self.candidates[target] - (1.0 - self.alpha) * self.baseline
        low, high = self.region.bounds(whole[None, :])
        reach = np.abs(low[0]) + np.abs(high[0])
        spread = self.belief.view(whole[None, :], 1.0)[1][0]
        with np.errstate(all="ignore"):
            widths = 0.5 * (high[0] - low[0]) / spread
            doubt = (self.tolerance * (1.0 + reach) + self.belief.mean_blur) / spread
            plays = np.vstack([self.baseline, self.candidates])
            ahead, near = self._ahead(whole, plays, widths, doubt)
        return ahead[1:] - ahead[0], near[1:] + near[0]

    def _ahead(self, whole: Array, plays: Array, widths: float, doubt: float) -> tuple[Array, Array]:
        """What will be certified of the prefix, with the target in it, once each play was observed."""
        belief, onward = self.belief, whole + (plays - self.baseline)
        u, x = onward @ belief.root, plays @ belief.root
        square, cross = np.sum(x * x, axis=1), np.sum(u * x, axis=1)
        along = np.sum(u * u, axis=1)
        learned = cross**2 / (1.0 + square)
        left = np.maximum(along - learned, 0.0)
        blurred = self.tolerance * (along + learned)
        deviations = belief.noise * np.sqrt(left)
        most = belief.noise * np.sqrt(left + blurred)
        least = belief.noise * np.sqrt(np.maximum(left - blurred, 0.0))
        means = onward @ belief.mean
        sizes = np.linalg.norm(onward, axis=1)
        near = (most - least) * (widths + doubt) + doubt * most
        near += belief.mean_blur * sizes + self.tolerance * (1.0 + np.abs(means) + widths * deviations)
        return means - widths * deviations, near


def nearest(
    scores: Array,
    doubts: Array,
    margins: Array,
    promise: Promise,
    approach: Approach,
    dues: tuple[Array, Array],
    made: int | None,
) -> Counterweight:
    """Where the best-scored candidate is ``awaited``: who brings it nearest, less what is due.

    dues (K,): the least and the most, as rounding can make it. made: the candidate that was chosen.
    """
    targets, is_sure = awaited(scores, doubts, margins, promise)
    if not is_sure or not len(targets):
        return Counterweight(None, is_sure)
    able = (margins >= 0.0) & (np.abs(scores) < np.inf)
    able &= np.abs(approach.candidates).max(axis=1, initial=0.0) <= LARGEST
    able &= (approach.candidates != approach.baseline).any(axis=1)  # the baseline brings nothing nearer
    possible, surely, first = np.zeros(len(scores), bool), True, -1
    for target in targets.tolist():
        gains, near = approach.gains(target)
        if np.isnan(gains).any() or not np.isfinite(near).all():
            return Counterweight(None, False)
        most = np.where(able, gains + near - dues[0], -np.inf)
        least = np.where(able, gains - near - dues[1], -np.inf)
        possible |= (most > 0.0) & (most >= least.max(initial=-np.inf))
        surely &= bool(least.max(initial=-np.inf) > 0.0)
        first = int(least.argmax())
    if not surely:
        return Counterweight(None, not possible.any(), possible)
    return Counterweight(made if made is not None and possible[made] else first, True)
