"""One fixed policy on a log with propensities: weighted and doubly robust, with anytime bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.offpolicy import OffPolicyGate, OffPolicyReport

FEWEST_EFFECTIVE_ROWS = 2.0


@dataclass(frozen=True)
class Judgement:
    """V(π) - fraction·V(h) for a fixed policy π and the policy h that wrote the log."""

    weighted: OffPolicyReport
    """Importance-weighted, hedged by the weights."""
    doubly_robust: OffPolicyReport | None
    """With predictions of the reward; None if there were none."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        robust = None if self.doubly_robust is None else self.doubly_robust.as_dict()
        return {"weighted": self.weighted.as_dict(), "doubly_robust": robust}


def judge(
    policy_probabilities: object,
    propensities: object,
    rewards: object,
    *,
    predicted: object = None,
    predicted_value: object = None,
    fraction: float = 0.95,
    delta: float = 0.05,
    reward_range: tuple[float, float] = (0.0, 1.0),
    max_weight: float = math.inf,
) -> Judgement:
    """Judge π by rows of h. π must not have been learned from these rows: split the log before.

    policy_probabilities: π's probability of each logged action. propensities: h's.
    predicted, predicted_value: predictions of each logged action's reward and of π's, from other rows.
    Refuses with ``LogCannotAnswer`` where the log holds no answer.
    """
    p = _validate.series("propensities", propensities)
    pi = _validate.series("policy_probabilities", policy_probabilities, len(p))
    wrong = np.flatnonzero(~((p > 0.0) & (p <= 1.0)))
    if len(wrong):
        row = int(wrong[0])
        raise InvalidInput(f"propensities[{row}]", float(p[row]), "must be a probability in (0, 1]")
    wrong = np.flatnonzero(~((pi >= 0.0) & (pi <= 1.0)))
    if len(wrong):
        row = int(wrong[0])
        raise InvalidInput(f"policy_probabilities[{row}]", float(pi[row]), "must lie in [0, 1]")
    weights = pi / p
    _refuse_if_empty(p, weights)
    settings: dict[str, Any] = {
        "fraction": fraction, "delta": delta, "reward_range": reward_range, "max_weight": max_weight,
    }  # fmt: skip
    plain = OffPolicyGate(**settings)
    plain.extend(weights, rewards)
    robust = None
    if predicted is not None:
        gate = OffPolicyGate(**settings, predictions=True)
        gate.extend(weights, rewards, predicted, predicted_value)
        robust = gate.report()
    return Judgement(plain.report(), robust)


def _refuse_if_empty(propensities: Array, weights: Array) -> None:
    if np.all(propensities == 1.0):
        raise LogCannotAnswer(
            "every propensity is 1: the log always did the same in the same situation and knows nothing "
            "about anything else. Log a small share of random actions first"
        )
    total, squares = float(weights.sum()), float(np.square(weights).sum())
    effective = total * total / squares if squares > 0.0 else 0.0
    if effective < FEWEST_EFFECTIVE_ROWS:
        raise LogCannotAnswer(
            f"no overlap: {len(weights)} rows of the log are worth {effective:.1f} of the new policy, "
            "which takes actions that the log hardly ever took"
        )
