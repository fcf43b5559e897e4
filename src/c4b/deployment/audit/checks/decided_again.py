"""Repeat a recorded decision on the fast path, from the replayed state."""

from __future__ import annotations

import numpy as np

from c4b.deployment.audit.audit_report import Finding
from c4b.deployment.audit.checks.decision_checks import RecordedDecision, described
from c4b.deployment.transactions.decision_entry import recorded_round
from c4b.policies.gate import Gate
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.policies.rounds.held_round import decide_for_baseline, decide_uncharged

NEAR = 1e-6
"""Largest relative difference between two versions of the fast path."""


def decided_again(gate: Gate, decision: RecordedDecision, id_: str) -> Decision:
    """What the gate decides; its ledger is charged."""
    arrays = {name: array.copy() for name, array in decision.arrays.items()}
    round_, held = recorded_round(decision.fields, arrays), decision.fields.get("held")
    if held is None:
        return gate.decide(round_, id_)
    decide = decide_for_baseline if decision.charged else decide_uncharged
    return decide(gate, round_, id_, held)


def check_numbers_again(gate: Gate, decision: RecordedDecision) -> None:
    """Check that the numbers are those of the fast path, the only code with its allowance for rounding.

    Raises ``Finding`` if they are not. The gate is not changed.
    """
    mark = gate.mark()
    again = decided_again(gate, decision, "again")
    gate.undo(mark)
    details, computed = decision.arrays["details"], again.computed
    sizes = 1.0 + np.abs(computed[CandidateField.UCB])
    for row in CandidateField:
        if row is CandidateField.SCORE and not decision.complete:
            continue  # what a candidate competed with is not there
        both = np.isfinite(details[row]) & np.isfinite(computed[row])
        apart = np.abs(details[row] - computed[row])[both]
        if not (apart <= NEAR * (sizes + np.abs(computed[row]))[both]).all():
            raise Finding(f"{row.name.lower()} of candidates: not what the recorded set gives again")
    if not decision.complete:
        return
    chosen = again.action if again.held is None else again.proposed
    if chosen != decision.chosen:
        raise Finding(f"chooses {described(decision.chosen)}, decided again it is {described(chosen)}")
    for name, number in decision.numbers._asdict().items():
        expected = getattr(again.numbers, name)
        is_number = np.isfinite(number) or (np.isneginf(number) and np.isfinite(expected))
        if is_number and not abs(number - expected) <= NEAR * (1.0 + abs(expected)):
            raise Finding(f"{name}: recorded {number!r}, decided again {expected!r}")
