"""What a deployment is, fixed at its creation and kept in the journal's first entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from c4b import _validate
from c4b.errors import JournalCorrupt
from c4b.evidence.model import LinearModel
from c4b.policies import state_file
from c4b.policies.composition import Composition
from c4b.policies.policy import Policy

FORMAT = 1
SNAPSHOT_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Configuration:
    """A policy's configuration and the deployment's own."""

    name: str
    composition: Composition
    model: LinearModel
    alpha: float
    reserve: float
    baseline_nonnegative: bool
    absorb: str
    outcome_timeout: float | None
    timeout_reward: float | None

    @classmethod
    def of(
        cls, name: str, policy: Policy, outcome_timeout: object, timeout_reward: object
    ) -> Configuration:
        """Check the reward window and take the rest from a policy, which checked it already."""
        window, reward = None, None
        if outcome_timeout is not None:
            remedy = "must be a positive number of seconds, or None to wait for ever"
            window = _validate.positive("outcome_timeout", outcome_timeout, remedy)
        if timeout_reward is not None:
            reward = _validate.reward("timeout_reward", timeout_reward)
        return cls(
            name,
            policy.composition,
            policy.model,
            policy.alpha,
            policy.reserve,
            policy.baseline_nonnegative,
            policy.absorb,
            window,
            reward,
        )

    def policy(self) -> Policy:
        return Policy(
            self.composition,
            self.model,
            self.alpha,
            self.reserve,
            self.baseline_nonnegative,
            self.absorb,
        )

    def fields(self) -> dict[str, Any]:
        """For the journal: plain JSON that ``from_fields`` takes back."""
        return {"format": FORMAT, **state_file.fields(self)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Configuration:
        told = dict(fields)
        if told.pop("format", None) != FORMAT:
            raise JournalCorrupt(f"journal format {fields.get('format')}: this package reads {FORMAT}")
        composition, model = told.pop("composition"), told.pop("model")
        return cls(composition=Composition(**composition), model=LinearModel(**model), **told)
