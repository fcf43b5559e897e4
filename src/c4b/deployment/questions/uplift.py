"""What was earned beyond what the incumbent would have earned: an estimate, and what is certified.

Let W be the sum of x(executed) - x(baseline) over some rounds and B the sum of x(baseline). The uplift
is W @ theta, the incumbent's total is B @ theta. Wherever theta lies in the confidence set of this
moment,

- the uplift is at least L(W), and
- what was executed has earned at least (1 + r) times the incumbent's total for every r with L(W - r B)
  >= 0.

Both hold for all rounds and all windows at once, on the event on which the policy's own promise holds,
because L bounds every vector over one set. Over all rounds the bank adds a second bound: reserve + the
sum of contrasts is at least the bank. The larger one counts. `docs/theory.md` has the proofs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from c4b._validate import Array
from c4b.deployment.summary.added_decisions import Sum
from c4b.deployment.summary.running_totals import blocks
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.bounds import lower
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import Gate

STEPS = 50
"""Halvings of the interval in which the certified share lies."""


class Uplift(NamedTuple):
    """In units of reward, and as a share of the incumbent's total; NaN where nothing is known."""

    incumbent: float
    """Estimate of what the incumbent would have earned."""
    estimate: float
    estimate_share: float
    certified: float
    """The uplift is at least this, unless the confidence set has failed (probability at most delta)."""
    certified_share: float
    """What was executed earned at least (1 + this) times what the incumbent would have."""


def uplift(gate: Gate, until: Array, since: Array | None = None, shares: bool = True) -> Uplift:
    """Of the decisions between two rows of ``RunningTotals``; without ``since``, of all until then.

    Without ``shares`` these are NaN, which is faster.
    """
    row = until if since is None else until - since
    features = blocks(row)
    told = not math.isnan(row.item(Sum.TOLD))
    incumbent, gain = math.nan, math.nan
    if gate.estimate is not None:
        played, instead, others = (features @ gate.estimate).tolist()
        incumbent = row.item(Sum.TOLD) if told else instead + others
        gain = played - (row.item(Sum.TOLD_PLAYED) if told else instead)
    if row.item(Sum.PLAYED) == 0.0:
        return Uplift(incumbent, 0.0, 0.0, 0.0, 0.0)  # the incumbent itself, in every round
    certified, share = math.nan, math.nan
    if gate.alarm is None:
        bounds = None
        if isinstance(gate, CompiledGate):
            bounds = _Bounds(gate, row, until, told)
            certified, share = bounds.lower(1.0, 0.0), _share(bounds) if shares else math.nan
            gain = min(max(gain, certified), -bounds.lower(-1.0, 0.0))
        if since is None:
            beside = _from_bank(gate, until.item(Sum.BANK), bounds)
            certified, share = _larger(certified, beside[0]), _larger(share, beside[1])
            gain = gain if math.isnan(gain) else _larger(gain, certified)
    if not shares:
        return Uplift(incumbent, gain, math.nan, certified, math.nan)
    estimated = gain / incumbent if incumbent > 0.0 else math.nan
    if not math.isnan(estimated):
        estimated = _larger(estimated, share)
    return Uplift(incumbent, gain, estimated, certified, share)


class _Bounds:
    """Lower bounds of u * uplift - r * incumbent's total over the set of this moment."""

    def __init__(self, gate: CompiledGate, row: Array, until: Array, told: bool) -> None:
        self._region, self._told = gate.evidence.region, told
        self._played, self._instead, self._others = blocks(row)
        self._counts = row.item(Sum.PLAYED), row.item(Sum.DECISIONS) - row.item(Sum.PLAYED)
        self._means = row.item(Sum.TOLD_PLAYED), row.item(Sum.TOLD)
        model = gate.terms.model
        self._tolerance = model.misspecification
        roundings = 8.0 * (1.0 + until.item(Sum.AMENDED)) + (
            2.0 * until.item(Sum.DECISIONS) if told else 0.0
        )
        self._rounding = roundings * UNIT * until.item(Sum.SIZE) * max(model.norm_bound, 1.0)

    def lower(self, u: float, r: float) -> float:
        """At most u * uplift - r * incumbent's total, for every theta of the set; NaN if unknown.

        A mean may be ``misspecification`` away from linear, and the sums may have been rounded.
        """
        plays, rest = self._counts
        size = abs(u) + abs(u + r) + abs(r)
        if self._told:
            bound = lower(self._region, u * self._played) - u * self._means[0] - r * self._means[1]
            slack = abs(u) * plays * self._tolerance
        else:
            v = u * self._played - (u + r) * self._instead - r * self._others
            bound = lower(self._region, v)
            slack = ((abs(u) + abs(u + r)) * plays + abs(r) * rest) * self._tolerance
        return bound - slack - size * self._rounding


def _share(bounds: _Bounds) -> float:
    """The largest r, to within rounding, with L(W - r B) >= 0; NaN if none is found.

    L is superadditive, so L(W - r B) falls by at least L(B) for each unit of r: where L(B) > 0 the
    zero lies between 0 and L(W) / L(B). Any r at which the bound is not negative is sound, found or not.
    """
    at_zero, least = bounds.lower(1.0, 0.0), bounds.lower(0.0, -1.0)
    if not least > 0.0:
        return 0.0 if at_zero >= 0.0 else math.nan
    low, high = sorted((0.0, at_zero / least))
    if not bounds.lower(1.0, low) >= 0.0:
        low -= 1e-9 * (1.0 + abs(low))  # the bracket's end may be missed by rounding
        if not bounds.lower(1.0, low) >= 0.0:
            return math.nan
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if bounds.lower(1.0, middle) >= 0.0:
            low = middle
        else:
            high = middle
    return low


def _from_bank(gate: Gate, bank: float, bounds: _Bounds | None) -> tuple[float, float]:
    """Bounds of the uplift and of its share from the bank, which certifies total(executed) - (1 - alpha)
    total(incumbent) >= bank - reserve, less what it counts on later rounds."""
    alpha, credit = gate.terms.alpha, bank - gate.counts_on - gate.terms.reserve
    if math.isnan(credit):
        return math.nan, math.nan
    if bounds is None:
        return math.nan, -alpha if credit >= 0.0 else math.nan
    least, most = bounds.lower(0.0, -1.0), -bounds.lower(0.0, 1.0)
    divisor = most if credit >= 0.0 else least
    share = -alpha + credit / divisor if divisor > 0.0 else (-alpha if credit >= 0.0 else math.nan)
    return credit - alpha * most, share


def _larger(one: float, other: float) -> float:
    """The larger of two numbers; one that is none does not count."""
    return other if math.isnan(one) or other > one else one
