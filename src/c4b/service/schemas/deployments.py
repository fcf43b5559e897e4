"""Request and response bodies about a deployment: its model, its configuration, its state."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, Strict

from c4b import policies
from c4b.service.schemas.bodies import Number, RequestBody, ResponseBody, is_none


class Model(RequestBody):
    """Assumptions about rewards; see ``c4b.LinearModel``."""

    dim: int = Field(ge=1, description="Number of features.", examples=[2])
    noise: float = Field(gt=0, description="Sub-Gaussian scale of the reward noise.", examples=[0.1])
    norm_bound: float = Field(gt=0, description="Upper bound on the norm of theta.", examples=[1.0])
    ridge: float = Field(0.1, gt=0, description="Regularisation lambda.")
    delta: float = Field(0.05, gt=0, lt=1, description="Probability with which the promise may fail.")
    confidence: str | None = Field(None, description="Confidence set; null: the policy's own.")
    misspecification: float = Field(0.0, ge=0, description="Largest deviation of a mean from linearity.")
    rewards: Annotated[tuple[float, float], Strict(False)] | None = Field(
        None,
        description="Lowest and highest reward; the sets `bounded-3`, `bounded-2` and `bounded` need it.",
        examples=[None],
    )


class Creation(RequestBody):
    """A new deployment."""

    model: Model
    policy: str = Field(
        policies.DEFAULT_POLICY, examples=[policies.DEFAULT_POLICY], description="See `c4b policies`."
    )
    alpha: float = Field(
        0.05, gt=0, lt=1, description="Fraction of the incumbent's reward that may be given up."
    )
    reserve: float = Field(0.0, ge=0, description="Credit R0 given at the start.")
    baseline_nonnegative: bool = True
    absorb: str = Field("in-order", description="in-order or on-arrival.")
    outcome_timeout: float | None = Field(None, gt=0, description="Seconds; null: no time limit.")
    timeout_reward: float | None = Field(
        None, description="Reward recorded after the timeout; null: the outcome counts as lost."
    )
    baseline_floor: float | None = Field(
        None, description="Smallest mean reward that the baseline is known to have; null: 0, or none."
    )
    horizon: int | None = Field(None, ge=1, description="Most rounds, for policies that need it.")
    seed: int | None = Field(None, ge=0, description="Seed of a policy that randomises.")
    mode: Literal["live", "shadow"] = Field(
        "live", description="shadow: decide and record, but execute the incumbent until `go-live`."
    )

    records: Literal["everything", "executed"] = Field(
        "everything", description="executed: of the candidates, keep only what was executed."
    )
    compress: bool = Field(False, description="Compress entries with zlib.")


class Configuration(ResponseBody):
    """The configuration of a deployment, fixed when it was created."""

    model: dict[str, JsonValue]
    policy: str
    alpha: float
    reserve: float
    baseline_nonnegative: bool
    absorb: str
    outcome_timeout: float | None
    timeout_reward: float | None
    baseline_floor: float | None = Field(None, exclude_if=is_none)
    horizon: int | None = Field(None, exclude_if=is_none)
    seed: int | None = Field(None, exclude_if=is_none)
    mode: str = Field("live", description="How it began: live or shadow.")
    records: str = Field("everything", description="How much of a decision is kept.")
    compress: bool = False
    predecessor: str | None = Field(
        None, exclude_if=is_none, description="Name, and number and hash of the entry that closed it."
    )


class OrderInForce(ResponseBody):
    """An order that is in force, with who and why."""

    action: str = Field(description="freeze, ramp, go-live, close or succeed.")
    by: str
    why: str
    at: datetime
    share: float | None = Field(None, exclude_if=is_none, description="Of a ramp.")


class State(ResponseBody):
    """The state of a deployment after journal entry ``seq``."""

    name: str
    policy: str
    alpha: float
    reserve: float
    bank: Number = Field(description="Certified lower bound of R0 + cumulative contrast; null: no gate.")
    rounds: int
    fallbacks: int
    observations: int = Field(description="Rewards absorbed, including history.")
    pending: int = Field(description="Decisions whose outcome is not known.")
    waiting: int = Field(description="Known outcomes that wait for the outcome of an earlier decision.")
    oldest_pending: str | None
    oldest_pending_age: float | None = Field(description="Seconds since that decision.")
    clock_ahead: float = Field(
        0.0, description="Seconds by which the journal's times are ahead of the clock: one was wrong."
    )
    radius: Number
    alarm: str | None
    alarm_since: datetime | None = Field(None, description="When it was raised.")
    alarm_after: str | None = Field(None, description="Id of the last decision made before it.")
    alarm_decisions: int | None = Field(None, description="Number of decisions made before it.")
    seq: int
    hash: str = Field(
        description="Hash of the last entry. A copy kept elsewhere reveals any later change of the past."
    )
    at: datetime
    mode: str = Field("live", description="live, shadow, ramp, frozen, closed, or waiting for history.")
    held: int = Field(
        0, description="Decisions for the baseline although the gate chose a candidate: held by an order."
    )
    orders: list[OrderInForce] = Field([], description="What is in force.")
    archived: int = Field(0, description="Entries 1 up to this one are in archive files.")
    health: Literal["ok", "idle", "attention", "alarm"]
    reasons: list[str] = Field(description="Why health is not ok, and what to do.")


class Deployment(ResponseBody):
    """A deployment's state and its configuration."""

    state: State
    configuration: Configuration
    scope: str | None = Field(
        default=None, exclude_if=is_none, description="What the request's token may do with it."
    )


class Deployments(ResponseBody):
    """The deployments that the token may read; ``broken`` lists those that cannot be read."""

    deployments: list[State]
    broken: dict[str, str] = Field(description="Name and reason.")
