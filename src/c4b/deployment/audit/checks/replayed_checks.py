"""Repeat the decisions of a gate or a confidence set in plain Python with a fresh gate, bit for bit.

There is no independent arithmetic for a gate or a set that was written outside of this package. So this
check shows that the journal records what the gate does. It does not show that the gate is right: use the
conformance kit for that.
"""

from __future__ import annotations

import numpy as np

from c4b._validate import Array
from c4b.deployment.audit.audit_report import Finding
from c4b.deployment.audit.checks.decided_again import decided_again
from c4b.deployment.audit.checks.decision_checks import RecordedDecision, described, same
from c4b.deployment.configuration import Configuration
from c4b.deployment.transactions.decision_entry import recorded_round
from c4b.policies.gate import Played


class ReplayedChecks:
    """``DecisionChecks`` by deciding again."""

    level = "replayed"

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.gate = configuration.run().gate

    @property
    def bank(self) -> float:
        return self.gate.bank

    @property
    def observations(self) -> int:
        return self.gate.observations

    def learn(self, features: Array, rewards: Array) -> None:
        self.gate.learn(features.copy(), rewards.copy())

    def absorb(self, played: Played, reward: float | tuple[float, ...], charged: bool) -> None:
        if not charged:
            self.gate.absorb_uncharged(played, reward)
        elif played.items is not None:
            self.gate.absorb_slate(played, reward)
        elif not isinstance(reward, tuple):
            self.gate.absorb_outcome(played, reward)

    def decided(self, decision: RecordedDecision) -> None:
        explanation = self.gate.explanation(recorded_round(decision.fields, decision.arrays))
        again = decided_again(self.gate, decision, f"{self.configuration.name}-{decision.seq}")
        chosen = again.action if again.held is None else again.proposed
        if chosen != decision.chosen:
            recorded, replayed = described(decision.chosen), described(chosen)
            raise Finding(f"chooses {recorded}, decided again it is {replayed}")
        for name, number in decision.numbers._asdict().items():
            replayed = getattr(again.numbers, name)
            if not same(number, replayed):
                raise Finding(f"{name}: recorded {number!r}, decided again {replayed!r}")
        recorded_alarm = decision.fields["alarm"]
        if again.alarm != recorded_alarm:
            raise Finding(f"says {recorded_alarm!r} of the model, decided again {again.alarm!r}")
        if again.propensity != decision.fields.get("propensity"):
            raise Finding(f"gives another propensity than decided again ({again.propensity!r})")
        for name, array in {"details": again.details, **explanation}.items():
            if not np.array_equal(decision.arrays[name], array, equal_nan=True):
                raise Finding(f"{name}: recorded and decided again differ")
        if self.configuration.spec.gated and decision.action is not None and not again.bank >= 0.0:
            raise Finding(f"executes candidate {decision.action} with bank {again.bank!r}")

    def needs_replay(self, decision: RecordedDecision) -> bool:
        return False  # it was decided again

    def executed(self, round_: int, decided: Played, executed: Played, bank: float) -> None:
        self.gate.amend(round_, decided, executed)
        if not same(bank, self.gate.bank):
            raise Finding(f"bank: recorded {bank!r}, amended again {self.gate.bank!r}")
