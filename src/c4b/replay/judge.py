"""Evaluation of one fixed policy on a log with propensities, with anytime bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.offpolicy import OffPolicyGate, OffPolicyReport

FEWEST_EFFECTIVE_ROWS = 2.0


@dataclass(frozen=True)
class Judgement:
    """Bounds of V(π) - fraction·V(h) for a fixed policy π and the policy h that wrote the log."""

    weighted: OffPolicyReport
    """Importance-weighted, with a hedge by the weights."""
    doubly_robust: OffPolicyReport | None
    """With predictions of the reward; None if no predictions were given."""

    def as_dict(self) -> dict[str, Any]:
        """The judgement as plain data for JSON."""
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
    """Evaluate a fixed policy π on rows that the policy h wrote.

    π must not have been learned from these rows: split the log first. Raises ``LogCannotAnswer`` if the
    log cannot answer the question.

    Parameters
    ----------
    policy_probabilities: π's probability of each logged action.
    propensities: h's probability of each logged action.
    predicted, predicted_value: predictions of each logged action's reward and of π's reward, from other
        rows.
    """
    judging = Judging(predicted is not None, fraction, delta, reward_range, max_weight)
    judging.extend(policy_probabilities, propensities, rewards, predicted, predicted_value)
    return judging.judgement()


class Judging:
    """Judges π by rows that come some at a time."""

    def __init__(
        self,
        predictions: bool,
        fraction: float,
        delta: float,
        reward_range: tuple[float, float],
        max_weight: float,
    ) -> None:
        settings: dict[str, Any] = {
            "fraction": fraction,
            "delta": delta,
            "reward_range": reward_range,
            "max_weight": max_weight,
        }
        self._plain = OffPolicyGate(**settings)
        self._robust = OffPolicyGate(**settings, predictions=True) if predictions else None
        self._rows = 0
        self._is_certain = True

    def extend(
        self,
        policy_probabilities: object,
        propensities: object,
        rewards: object,
        predicted: object = None,
        predicted_value: object = None,
    ) -> None:
        """Further rows in the order of the log; the arguments are those of ``judge``."""
        p = _validate.series("propensities", propensities)
        pi = _validate.series("policy_probabilities", policy_probabilities, len(p))
        self._check("propensities", p, (p > 0.0) & (p <= 1.0), "must be a probability in (0, 1]")
        self._check("policy_probabilities", pi, (pi >= 0.0) & (pi <= 1.0), "must lie in [0, 1]")
        self._plain.extend(pi / p, rewards)
        if self._robust is not None:
            self._robust.extend(pi / p, rewards, predicted, predicted_value)
        self._rows += len(p)
        self._is_certain &= bool(np.all(p == 1.0))

    def _check(self, argument: str, given: Array, right: NDArray[np.bool_], remedy: str) -> None:
        wrong = np.flatnonzero(~right)
        if len(wrong):
            row = int(wrong[0])
            raise InvalidInput(f"{argument}[{self._rows + row}]", float(given[row]), remedy)

    def judgement(self) -> Judgement:
        """What all rows say; ``LogCannotAnswer`` where they say nothing."""
        if self._is_certain:
            raise LogCannotAnswer(
                "every propensity is 1: the log always did the same in the same situation and knows "
                "nothing about anything else. Log a small share of random actions first"
            )
        plain = self._plain.report()
        if plain.effective_rows < FEWEST_EFFECTIVE_ROWS:
            raise LogCannotAnswer(
                f"no overlap: {self._rows} rows of the log are worth {plain.effective_rows:.1f} of the "
                "new policy, which takes actions that the log hardly ever took"
            )
        return Judgement(plain, None if self._robust is None else self._robust.report())
