"""Convert the library's values to response bodies."""

from __future__ import annotations

from pydantic_core import to_json

from c4b.deployment import Deployment, Record, Status
from c4b.policies import state_file
from c4b.policies.rounds.candidate_fields import CandidateField
from c4b.policies.rounds.decision import Decision
from c4b.service import schemas
from c4b.service.monitoring.health import health_of


def deployment(dep: Deployment) -> schemas.Deployment:
    fixed = dep.configuration
    configuration = schemas.Configuration(
        model=state_file.fields(fixed.model),
        policy=fixed.spec.name,
        alpha=fixed.alpha,
        reserve=fixed.reserve,
        baseline_nonnegative=fixed.baseline_nonnegative,
        absorb=fixed.absorb,
        outcome_timeout=fixed.outcome_timeout,
        timeout_reward=fixed.timeout_reward,
        baseline_floor=fixed.baseline_floor,
        horizon=fixed.horizon,
        seed=fixed.seed,
        mode=fixed.mode,
        records=fixed.records,
        compress=fixed.compress,
        predecessor=fixed.predecessor,
    )
    return schemas.Deployment(
        state=state(dep.state(), fixed.outcome_timeout), configuration=configuration
    )


def state(status: Status, outcome_timeout: float | None) -> schemas.State:
    health, reasons = health_of(status, outcome_timeout)
    return schemas.State(**status.to_dict(), health=health, reasons=reasons)


def decided(decision: Decision) -> schemas.Decided:
    return schemas.Decided.model_validate(decision)


def decided_json(decision: Decision) -> bytes:
    """What ``decided`` becomes in a response, without a model in between: every round needs one."""
    values = {}
    for name, may_be_absent in _DECIDED:
        value = getattr(decision, name)
        if value is not None or not may_be_absent:
            values[name] = value
    if decision.receipt is not None:
        values["receipt"] = decision.receipt._asdict()
    return to_json(values, inf_nan_mode="null")


_DECIDED = [(name, field.exclude_if is not None) for name, field in schemas.Decided.model_fields.items()]
"""Names of a decision's values in their order, and whether they are left out where they are None."""


def decision_row(record: Record) -> schemas.DecisionRow:
    decision = record.decision
    return schemas.DecisionRow(
        **dict(decided(decision)),
        at=record.at,
        candidates=len(record.candidates),
        admissible=(
            None
            if record.kept is not None or record.evaluated is not None
            else int((decision.details[CandidateField.MARGIN] >= 0.0).sum())
        ),
        request_id=record.request_id,
        outcome=record.outcome,
        reward=record.reward,
        item_rewards=None if record.item_rewards is None else list(record.item_rewards),
        executed=None if record.executed is None else record.executed.tolist(),
        because=record.because,
        alarm_later=record.alarm_later,
    )
