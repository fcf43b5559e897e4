"""What travels over the wire, for service and client alike. Numbers are in units of reward."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

Vector = list[float]
Matrix = list[list[float]]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_plain)]
"""A number, or null where there is none (no gate, or not certifiable)."""

_CANDIDATES = [[1.0, 0.1], [1.0, -0.3]]
_BASELINE = [1.0, 0.0]


class Told(BaseModel):
    """A request: every key known, every value of its type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """A response; clients ignore keys that they do not know."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


# -- deployments -----------------------------------------------------------------------------------


class Model(Told):
    """What is assumed about rewards; see ``c4b.LinearModel``."""

    dim: int = Field(ge=1, description="Number of features.", examples=[2])
    noise: float = Field(gt=0, description="Sub-Gaussian scale of the reward noise.", examples=[0.1])
    norm_bound: float = Field(gt=0, description="Upper bound on the norm of theta.", examples=[1.0])
    ridge: float = Field(0.1, gt=0, description="Regularisation lambda.")
    delta: float = Field(0.05, gt=0, lt=1, description="Probability with which the promise may fail.")
    confidence: str | None = Field(None, description="Confidence set; null: the policy's own.")
    misspecification: float = Field(0.0, ge=0, description="How far means may be from linear.")


class Creation(Told):
    """A new deployment."""

    model: Model
    policy: str = Field("refresh", examples=["reserve-c4b+"], description="See `c4b policies`.")
    alpha: float = Field(0.05, gt=0, le=1, description="Fraction of the incumbent that may be risked.")
    reserve: float = Field(0.0, ge=0, description="Credit R0 given at the start.")
    baseline_nonnegative: bool = True
    absorb: str = Field("in-order", description="in-order or on-arrival.")
    outcome_timeout: float | None = Field(None, gt=0, description="Seconds; null: wait for ever.")
    timeout_reward: float | None = Field(None, description="What silence means; null: lost.")


class Configuration(Answer):
    """What was fixed when a deployment was created."""

    model: dict[str, JsonValue]
    policy: str
    alpha: float
    reserve: float
    baseline_nonnegative: bool
    absorb: str
    outcome_timeout: float | None
    timeout_reward: float | None


class State(Answer):
    """Where a deployment stands after journal entry ``seq``."""

    name: str
    policy: str
    alpha: float
    reserve: float
    bank: Number = Field(description="Certified lower bound of R0 + cumulative contrast; null: no gate.")
    rounds: int
    fallbacks: int
    observations: int = Field(description="Rewards absorbed, history included.")
    pending: int = Field(description="Decisions whose outcome is not known.")
    waiting: int = Field(description="Known outcomes that wait for an earlier one.")
    oldest_pending: str | None
    oldest_pending_age: float | None = Field(description="Seconds since that decision.")
    radius: Number
    alarm: str | None
    seq: int
    hash: str = Field(description="Of the last entry: keep it elsewhere, and the past cannot change.")
    at: datetime
    health: Literal["ok", "idle", "attention", "alarm"]
    reasons: list[str] = Field(description="Why the light is not green, and what to do.")


class Deployment(Answer):
    """A deployment's state and its configuration."""

    state: State
    configuration: Configuration


class Deployments(Answer):
    """Those that the token may see; ``broken`` tells of those that cannot be read."""

    deployments: list[State]
    broken: dict[str, str] = Field(description="Name and reason.")


# -- the protocol ----------------------------------------------------------------------------------


class History(Told):
    """Historical rows and their rewards, before the first decision."""

    features: Matrix = Field(examples=[[[1.0, 0.0], [1.0, 0.2]]])
    rewards: Vector = Field(examples=[[0.50, 0.55]])


class Round(Told):
    """One question: which of these, or the baseline?"""

    candidates: Matrix = Field(description="K rows of d features.", examples=[_CANDIDATES])
    baseline: Vector = Field(description="d features of the incumbent's action.", examples=[_BASELINE])
    context: JsonValue = Field(None, description="Kept for whoever asks why.", examples=[{"user": "u-1"}])


class NamedRound(Round):
    """A round of a batch."""

    request_id: str | None = Field(None, description="Makes repeating the batch safe.", examples=["r-1"])


class Rounds(Told):
    """Several rounds in one commit: all are decided or none."""

    rounds: list[NamedRound]


class Decided(Answer):
    """What to do now. It is on disk and charged."""

    id: str = Field(examples=["homepage-3"])
    action: int | None = Field(description="Index into the candidates; null: play the baseline.")
    bank_before: Number
    bank: Number = Field(description="What is certified once this is executed.")
    certificate: Number = Field(description="Lower bound of this round's contrast.")
    ucb: Number = Field(description="Optimistic reward of what is executed.")
    radius: Number
    policy: str
    alarm: str | None = Field(description="What speaks against the model; certificates are void then.")

    @property
    def is_baseline(self) -> bool:
        return self.action is None


class Decisions(Answer):
    decisions: list[Decided]


class Outcome(Told):
    """A decision's reward; or ``lost``, which asserts that the loss is independent of the reward."""

    reward: float | None = Field(None, examples=[0.58])
    lost: bool = False


class NamedOutcome(Told):
    id: str = Field(examples=["homepage-3"])
    reward: float = Field(examples=[0.58])


class Outcomes(Told):
    """Several rewards in one commit: all are taken or none."""

    outcomes: list[NamedOutcome]


class Executed(Told):
    """What was executed instead of what was decided."""

    features: Vector | None = Field(description="d features; null: the baseline.", examples=[[1.0, 0.2]])


class Done(Answer):
    """It is on disk."""

    done: Literal[True] = True


# -- questions -------------------------------------------------------------------------------------


class Line(Decided):
    """A decision as one line of a table."""

    at: datetime
    candidates: int = Field(description="How many there were.")
    admissible: int = Field(description="How many of them could be certified.")
    request_id: str | None
    outcome: str = Field(description="pending, observed, timeout or forgotten.")
    reward: float | None
    executed: Vector | None = Field(description="What was executed instead, if that was reported.")


class Page(Answer):
    """Decisions in the order asked for; ``next`` continues, null at the end."""

    decisions: list[Line]
    next: str | None


class Candidate(Answer):
    """One candidate's case."""

    candidate: int
    ucb: Number
    margin: Number = Field(description="Bank after playing it; admissible when >= 0. Null: no number.")
    admissible: bool
    joint: Number = Field(description="Lower bound of its contrast, one set for both rewards.")
    separate: Number = Field(description="The same with the two rewards bounded apart.")
    penalty: Number = Field(description="joint - separate: what bounding apart would have cost.")
    chosen: bool
    estimate: Number = Field(description="Estimated contrast; null in journals of early versions.")
    upper: Number = Field(description="Upper bound of the contrast, of which joint is the lower one.")
    features: Vector


class Why(Answer):
    """Everything about one decision."""

    id: str
    policy: str
    action: int | None
    bank_before: Number
    bank: Number
    certificate: Number
    ucb: Number
    radius: Number
    alarm: str | None
    summary: str = Field(description="One sentence.")
    candidates: list[Candidate]
    baseline: Vector
    at: datetime
    request_id: str | None
    context: JsonValue
    outcome: str
    reward: float | None
    executed: Vector | None


class Audited(Answer):
    """An audit's verdict; see ``c4b.deployment.audit.audit_report.Report``."""

    clean: bool
    name: str
    level: str = Field(description="recomputed by independent arithmetic, or replayed (a Python gate).")
    entries: int
    decisions: int
    fallbacks: int
    outcomes: int
    observations: int
    precise: int
    snapshots: int
    replay_differences: int
    largest_error: float
    hash: str
    finding: str | None
    entry: int | None


class Problem(BaseModel):
    """What went wrong, as application/problem+json (RFC 9457)."""

    type: str = Field(examples=["urn:c4b:problem:invalid-input"])
    title: str
    status: int
    detail: str = Field(description="For people: what is wrong and what to do.")


class Series(Answer):
    """The course of a deployment at some of its decisions; one column each, oldest first."""

    round: list[int]
    at: list[datetime]
    bank: list[Number]
    fallbacks: list[int] = Field(description="Decisions for the baseline so far.")
    pending: list[int] = Field(description="Outcomes unknown at that moment.")
    certificate: list[Number] = Field(description="Lower bound of the contrast of what was played.")
    estimate: list[Number] = Field(description="Estimate of the same contrast at that moment.")
    radius: list[Number]


class Pending(Answer):
    """A decision that waits for its outcome."""

    id: str
    at: datetime
    age: float = Field(description="Seconds since the decision.")
    request_id: str | None
    context: JsonValue
    action: int | None


class Waiting(Answer):
    """Decisions that wait for their outcomes, oldest first."""

    pending: list[Pending]
