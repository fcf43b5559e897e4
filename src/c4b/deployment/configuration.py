"""What a deployment is, fixed at its creation and kept in the journal's first entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput, SchemaVersion
from c4b.evidence import alarms
from c4b.evidence.model import LinearModel
from c4b.policies import state_file
from c4b.policies.compiled_round import CUSHION
from c4b.policies.composition import Composition
from c4b.policies.policy import Policy

FORMAT = 1
SNAPSHOT_EVERY = 1000
"""Entries between two snapshots: at most so many are replayed on opening."""


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
            if window is None:
                remedy = "needs outcome_timeout, the seconds after which silence means that"
                raise InvalidInput("timeout_reward", timeout_reward, remedy)
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

    def constants(self) -> dict[str, Array]:
        """What the journal's numbers depend on besides the configuration, to be recorded with it."""
        composition = self.composition
        rule = [*composition.rule, composition.checkpoints, CUSHION]
        return {
            "ridges": self.model.ridges,
            "rule": np.array(rule, dtype=np.float64),
            "alarms": np.array([alarms.ALARM_LEVEL, *(s for s, _ in alarms.BETS)]),
        }

    def fields(self) -> dict[str, Any]:
        """For the journal: plain JSON that ``recorded`` takes back."""
        return {"format": FORMAT, **state_file.fields(self)}

    @classmethod
    def recorded(cls, fields: dict[str, Any], arrays: dict[str, Array]) -> Configuration:
        """The configuration in a journal's first entry."""
        told = dict(fields)
        if told.pop("format", None) != FORMAT:
            raise SchemaVersion(
                f"the journal has format {fields.get('format')}, this package reads {FORMAT}"
            )
        try:
            composition, model = told.pop("composition"), told.pop("model")
            found = cls(composition=Composition(**composition), model=LinearModel(**model), **told)
        except (KeyError, TypeError, InvalidInput) as error:
            raise SchemaVersion(
                f"the deployment's configuration is not of this version of reserve-c4b ({error})"
            ) from error
        if any(not np.array_equal(arrays[key], value) for key, value in found.constants().items()):
            raise SchemaVersion(
                f"{found.name!r} was created by a version of reserve-c4b in which "
                f"{found.composition.name!r} has other constants; open it with that version"
            )
        return found
