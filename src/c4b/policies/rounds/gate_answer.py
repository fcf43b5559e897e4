"""What a gate in plain Python answers, checked before anybody executes, charges or records it.

Compiled gates are tested here and need no check. Others are somebody else's code: an action that no
candidate has, or a bank that is not a number, must not become a decision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from c4b.errors import GateFailed
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.gate import Gate
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision, same_content
from c4b.policies.rounds.round import Round


def answered(gate: Gate, round_: Round, decision_id: str) -> Decision:
    """What the gate decides, checked if it is in Python."""
    if isinstance(gate, CompiledGate):
        return gate.decide(round_, decision_id)
    answer = gate.decide(_own_copy(round_), decision_id)
    return checked_answer(answer, len(round_.candidates))._replace(id=decision_id)


def _own_copy(round_: Round) -> Round:
    """The same round in arrays that the gate may overwrite without changing the caller's."""
    items = round_.items
    if items is not None:
        items = items._replace(candidates=items.candidates.copy(), baseline=items.baseline.copy())
    return round_._replace(
        candidates=round_.candidates.copy(), baseline=round_.baseline.copy(), items=items
    )


def checked_answer(answer: Any, count: int) -> Decision:
    """The decision among ``count`` candidates that a gate answered, with plain numbers, or
    ``GateFailed``."""
    if not isinstance(answer, Decision):
        raise GateFailed(f"decide() returned {type(answer).__name__}, not a c4b.Decision")
    details, propensity = answer.computed, answer.propensity
    wanted = (len(CandidateField), count)
    if not isinstance(details, np.ndarray) or details.shape != wanted or details.dtype != np.float64:
        raise GateFailed(f"details must be an array of float64 of shape {wanted}, NaN where unknown")
    if answer.alarm is not None and not isinstance(answer.alarm, str):
        raise GateFailed(f"the alarm is {answer.alarm!r}, neither None nor a text")
    if propensity is not None and not (_is_number(propensity) and 0.0 < propensity <= 1.0):
        raise GateFailed(f"the propensity is {propensity!r}, neither None nor in (0, 1]")
    for name, number in answer.numbers._asdict().items():
        if not _is_number(number):
            raise GateFailed(f"{name} is {number!r}, not a number (NaN where there is none)")
    return answer._replace(
        action=_index(answer.action, count),
        proposed=_index(answer.proposed, count),
        propensity=None if propensity is None else float(propensity),
        bank_before=float(answer.bank_before),
        bank=float(answer.bank),
        certificate=float(answer.certificate),
        ucb=float(answer.ucb),
        radius=float(answer.radius),
    )


def check_charge(gate: Gate, made: Decision, rounds: int, gated: bool) -> None:
    """Refuse a decision that the gate has not charged as it says; it must have charged ``rounds``."""
    if not same_content(made.bank, gate.bank):
        raise GateFailed(f"the decision's bank is {made.bank!r}, the gate's is {gate.bank!r}")
    if gate.rounds != rounds:
        raise GateFailed(f"the gate counts {gate.rounds} rounds after {rounds} decisions")
    if gated and made.action is not None and not made.bank >= 0.0:
        raise GateFailed(
            f"candidate {made.action} was played and leaves the bank {made.bank!r}; a gate plays "
            "only what leaves it certified to be at least 0"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _index(action: Any, count: int) -> int | None:
    """The index of a candidate, None for the baseline."""
    if action is None:
        return None
    if isinstance(action, bool) or not isinstance(action, int | np.integer):
        raise GateFailed(f"the action is {action!r}, neither None nor the index of a candidate")
    if not 0 <= action < count:
        raise GateFailed(f"the action is {action} of {count} candidates")
    return int(action)
