"""The proposed numbers of a deployment, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proposal:
    """The numbers to declare, and how each of them was chosen."""

    policy: str
    noise: float
    norm_bound: float
    dim: int
    confidence: str
    alpha: float
    reserve: float
    history: int
    """Number of rows to learn from before the first decision."""
    baseline_reward: float
    """Estimated mean reward of the incumbent."""
    rounds_a_week: float
    origins: dict[str, str]
    """For each number, its origin and whether it may be chosen from data."""

    @property
    def at_risk_a_week(self) -> float:
        """The reward that alpha puts at risk in a week."""
        return self.alpha * self.baseline_reward * self.rounds_a_week

    @property
    def risk(self) -> str:
        """The amounts at risk as a sentence."""
        return (
            f"{100 * self.alpha:g} % of {self.baseline_reward * self.rounds_a_week:,.0f} a week: at most "
            f"{self.at_risk_a_week:,.0f} a week at risk, and {self.reserve:,.0f} once"
        )


ORIGINS = {
    "noise": "half the declared range of rewards: valid for every distribution, needs no data",
    "confidence": "the policy's own choice; must not depend on data",
    "alpha": "your decision; must not depend on the rows that are evidence",
    "reserve": "your decision; must not depend on the rows that are evidence",
}
