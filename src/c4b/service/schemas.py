"""Request and response bodies of the API, used by service and client. Rewards and banks are in units
of reward."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    SkipValidation,
    Strict,
    Tag,
    model_validator,
)
from pydantic_core import InitErrorDetails, ValidationError

from c4b import policies

# a list of millions of wrong elements is refused at the first of them
Vector = Annotated[list[float], Field(fail_fast=True)]
Matrix = Annotated[list[Vector], Field(fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]


PLAIN, SLATE = "(plain)", "(slate)"
"""What a value was taken for: parts of an error's place that are no part of the request."""


def _slate_at(depth: int) -> Discriminator:
    """A list that is so deep, judged by its first elements, belongs to a slate."""

    def kind(value: Any) -> str:
        found = 0
        while isinstance(value, list) and found < depth:
            found, value = found + 1, value[0] if value else None
        return SLATE if found == depth else PLAIN

    return Discriminator(kind)


Actions = Annotated[
    Annotated[Matrix, Tag(PLAIN)] | Annotated[list[Matrix], Field(fail_fast=True), Tag(SLATE)],
    _slate_at(3),
]
Action = Annotated[Annotated[Vector, Tag(PLAIN)] | Annotated[Matrix, Tag(SLATE)], _slate_at(2)]
Reward = Annotated[Annotated[float, Tag(PLAIN)] | Annotated[Vector, Tag(SLATE)], _slate_at(1)]


def _is_none(value: Any) -> bool:
    return value is None


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite_or_none)]
"""A finite number; null where the library has NaN or infinity (no gate, or not certifiable)."""

_CANDIDATES = [[1.0, 0.1], [1.0, -0.3]]
_BASELINE = [1.0, 0.0]
_INDEPENDENT = (
    "Asserts that the report depends on no reward of this decision or of a later one. Needed once an "
    "outcome of a later decision was reported."
)


class RequestBody(BaseModel):
    """Base of request bodies. Unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _first_unknown_key(cls, value: Any) -> Any:
        """Refuse the first unknown key at once; ``extra`` alone would list a million of them."""
        if isinstance(value, dict):
            known = cls.__pydantic_fields__
            for key, given in value.items():
                if key not in known:
                    error = InitErrorDetails(type="extra_forbidden", loc=(key,), input=given)
                    raise ValidationError.from_exception_data(cls.__name__, [error])
        return value


class ResponseBody(BaseModel):
    """Base of response bodies. A client ignores keys that it does not know."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


# -- deployments -----------------------------------------------------------------------------------


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
    seed: int | None = Field(None, ge=0, description="Of a policy that randomises.")
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
    baseline_floor: float | None = Field(None, exclude_if=_is_none)
    horizon: int | None = Field(None, exclude_if=_is_none)
    seed: int | None = Field(None, exclude_if=_is_none)
    mode: str = Field("live", description="How it began: live or shadow.")
    records: str = Field("everything", description="How much of a decision is kept.")
    compress: bool = False
    predecessor: str | None = Field(
        None, exclude_if=_is_none, description="Name, and number and hash of the entry that closed it."
    )


class OrderInForce(ResponseBody):
    """An order that is in force, with who and why."""

    action: str = Field(description="freeze, ramp, go-live, close or succeed.")
    by: str
    why: str
    at: datetime
    share: float | None = Field(None, exclude_if=_is_none, description="Of a ramp.")


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
    alarm_since: datetime | None = Field(None, description="When the first alarm was raised.")
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
        default=None, exclude_if=_is_none, description="What the request's token may do with it."
    )


class Deployments(ResponseBody):
    """The deployments that the token may read; ``broken`` lists those that cannot be read."""

    deployments: list[State]
    broken: dict[str, str] = Field(description="Name and reason.")


# -- decisions and outcomes ------------------------------------------------------------------------


class History(RequestBody):
    """Historical rows and their rewards, before the first decision."""

    features: Matrix = Field(examples=[[[1.0, 0.0], [1.0, 0.2]]])
    rewards: Vector = Field(examples=[[0.50, 0.55]])


class Round(RequestBody):
    """One round: the candidates and the baseline among which the service decides."""

    candidates: Actions = Field(
        description="K rows of d features; or K slates of m rows each.", examples=[_CANDIDATES]
    )
    baseline: Action = Field(
        description="d features of the incumbent's action; or the rows of a slate.", examples=[_BASELINE]
    )
    baseline_mean: float | None = Field(
        None, description="The known mean reward of the baseline, for policies that need it."
    )
    labels: Texts | None = Field(
        None,
        description="Names of the candidates, one each: shown to people, and counted by `items`.",
        examples=[["red", "blue"]],
    )
    context: Annotated[JsonValue, SkipValidation] = Field(
        None,
        description="Stored with the decision and shown when it is explained.",
        examples=[{"user": "u-1"}],
    )

    def to_round(self, request_id: str | None) -> policies.Round:
        """The library's value for this body."""
        return policies.Round(
            self.candidates, self.baseline, self.baseline_mean, self.labels, request_id, self.context
        )


class NamedRound(Round):
    """A round of a batch."""

    request_id: str | None = Field(
        None, description="With it, repeating the batch is safe.", examples=["r-1"]
    )


class Rounds(RequestBody):
    """Several rounds in one commit: all are decided or none."""

    rounds: Annotated[list[NamedRound], Field(fail_fast=True)]


class Receipt(ResponseBody):
    """Where a decision is in the journal. Keep it: an audit can be given receipts."""

    seq: int = Field(description="Number of the journal's entry.")
    hash: str = Field(description="Its hash, which covers every entry before it.")


class Decided(ResponseBody):
    """A decision. It is on disk, and its cost is charged to the bank."""

    id: str = Field(examples=["homepage-3-5be3c1a20f47"])
    action: int | None = Field(description="Index into the candidates; null: play the baseline.")
    label: str | None = Field(
        None, exclude_if=_is_none, description="Name of the candidate, if the round had names."
    )
    bank_before: Number
    bank: Number = Field(description="Certified bank once this decision is executed.")
    certificate: Number = Field(description="Lower bound of this round's contrast.")
    ucb: Number = Field(description="Upper confidence bound of the reward of the decided action.")
    radius: Number
    policy: str
    alarm: str | None = Field(
        description="Evidence against the model, if there is any; certificates are void then."
    )
    propensity: float | None = Field(
        None,
        exclude_if=_is_none,
        description="Probability of the action, from policies that randomise; left out by others.",
    )
    receipt: Receipt | None = Field(None, description="Proof that the journal holds this decision.")
    held: str | None = Field(
        None,
        exclude_if=_is_none,
        description="shadow, frozen or ramp: the baseline is played whatever the gate chose.",
    )
    proposed: int | None = Field(
        None, exclude_if=_is_none, description="What the gate chose in a round that was held."
    )

    @property
    def is_baseline(self) -> bool:
        return self.action is None


class Decisions(ResponseBody):
    """The decisions of a batch, in the order of its rounds."""

    decisions: list[Decided]


class Outcome(RequestBody):
    """A decision's reward; or ``lost``, which asserts that the loss depends on no reward of this decision
    or of a later one."""

    reward: Reward | None = Field(
        None, description="Of a slate also one number for each item.", examples=[0.58]
    )
    lost: bool = False
    independent: bool = Field(False, description=_INDEPENDENT)


class NamedOutcome(RequestBody):
    """The reward of one decision of a batch."""

    id: str = Field(examples=["homepage-3-5be3c1a20f47"])
    reward: Reward = Field(examples=[0.58])


class Outcomes(RequestBody):
    """Several rewards in one commit: all are recorded or none."""

    outcomes: Annotated[list[NamedOutcome], Field(fail_fast=True)]


class Executed(RequestBody):
    """The action that was executed instead of the decided one."""

    features: Action | None = Field(
        description="d features, or the rows of a slate; null: the baseline.", examples=[[1.0, 0.2]]
    )
    independent: bool = Field(False, description=_INDEPENDENT)


class Done(ResponseBody):
    """The change is on disk."""

    done: Literal[True] = True


# -- queries ---------------------------------------------------------------------------------------


class RecordedDecision(Decided):
    """A decision with its outcome so far."""

    at: datetime
    request_id: str | None
    outcome: str = Field(description="pending, observed, timeout or forgotten.")
    reward: float | None
    item_rewards: Vector | None = Field(
        None,
        exclude_if=_is_none,
        description="Of a slate whose outcomes were reported by item; `reward` is their sum.",
    )
    executed: Vector | None = Field(
        description="Features of the action that was executed instead, if that was reported."
    )
    because: str = Field("", description="Why this action; empty where the summary says it all.")
    alarm_later: datetime | None = Field(
        None, description="When an alarm was raised after this decision, which voids its certificates."
    )


class DecisionRow(RecordedDecision):
    """A decision as one row of a table."""

    candidates: int = Field(description="Number of candidates.")
    admissible: int | None = Field(
        description="Number of admissible candidates; null: the choice did not depend on all margins, or "
        "only what was executed is on record."
    )


class Page(ResponseBody):
    """Decisions in the requested order. ``next`` continues; null at the end."""

    decisions: list[DecisionRow]
    next: str | None
    read: int | None = Field(None, description="Decisions that a search has read.")


class Earnings(ResponseBody):
    """What the decisions of a window have earned; see ``c4b.deployment.Earnings``."""

    since: datetime | None = Field(description="Last decision before the window; null: all time.")
    decisions: int
    fallbacks: int = Field(description="Decisions for the baseline.")
    outcomes: int = Field(description="Decisions whose reward is known.")
    earned: float = Field(description="Sum of these rewards.")
    incumbent: Number = Field(description="Estimate of what the incumbent would have earned.")
    uplift: Number = Field(description="Estimate of what was earned beyond that.")
    uplift_share: Number = Field(description="As a share of the incumbent's.")
    certified: Number = Field(description="The uplift is at least this; null: nothing is certified.")
    certified_share: Number = Field(
        description="A lower bound of its share; null while the incumbent may have earned nothing."
    )
    void: str | None = Field(description="The alarm that voids certificates, if there is one.")


class EarningsCourse(ResponseBody):
    """The uplift of all decisions up to some of them, by what is known now; a list for each quantity."""

    round: list[int]
    seq: list[int]
    at: list[datetime]
    uplift: list[Number]
    certified: list[Number]


class Item(ResponseBody):
    """The counts of one label; see ``c4b.deployment.Item`` for the interval."""

    label: str = Field(description="Empty: all labels after the first 1000.")
    offered: int
    admissible: int = Field(description="How often it was found to be; not every choice asks.")
    played: int
    outcomes: int = Field(description="Plays whose reward is known.")
    earned: float = Field(description="Sum of these rewards.")
    mean: Number
    low: Number = Field(description="Lower end of a 95 % interval of the mean reward, valid at any time.")
    high: Number


class Items(ResponseBody):
    """Labels, the most played first."""

    items: list[Item]


class Candidate(ResponseBody):
    """The bounds of one candidate."""

    candidate: int = Field(description="Index into the candidates.")
    ucb: Number
    margin: Number = Field(description="Bank after playing it; admissible when >= 0. Null: no number.")
    admissible: bool
    joint: Number = Field(description="Lower bound of its contrast, one set for both rewards.")
    separate: Number = Field(description="Lower bound with the two rewards bounded separately.")
    penalty: Number = Field(description="joint - separate: the cost of separate bounds.")
    chosen: bool
    estimate: Number = Field(description="Estimated contrast; null in journals of early versions.")
    upper: Number = Field(description="Upper bound of the contrast; joint is its lower bound.")
    reason: str = Field(description="Why it was not played although admissible; empty: no reason known.")
    score: Number = Field(description="What ordered the admissible candidates; null: passed over.")
    label: str | None
    features: Vector


class ExplainedDecision(RecordedDecision):
    """A decision with the bounds of every candidate, its context and its outcome."""

    summary: str = Field(description="One sentence.")
    rule: str = Field("", description="How the policy orders admissible candidates, in words.")
    candidates: list[Candidate]
    baseline: Vector
    baseline_mean: float | None = Field(None, exclude_if=_is_none, description="If the round had it.")
    labels: list[str] | None = Field(None, exclude_if=_is_none, description="If the round had them.")
    items: list[Vector] | None = Field(
        None, exclude_if=_is_none, description="Features of the items of an executed slate."
    )
    context: JsonValue
    context_erased: bool = Field(False, description="Whether there was a context that was erased.")


class Audited(ResponseBody):
    """The result of an audit; see ``c4b.deployment.Report``."""

    clean: bool
    name: str
    level: str = Field(description="recomputed by independent arithmetic, or replayed (a Python gate).")
    entries: int
    decisions: int
    fallbacks: int
    held: int = Field(0, description="Fallbacks by order where the gate chose a candidate.")
    orders: int = Field(0, description="Freeze, thaw, ramp, go-live and close.")
    unchecked_choices: int = Field(
        0, description="Decisions of which only what was executed is on record."
    )
    outcomes: int
    observations: int
    precise: int = Field(description="Decisions recomputed in 50 digits.")
    snapshots: int
    replay_differences: int
    largest_error: float
    sealed: bool = Field(False, description="Whether the seal of every entry was checked with the key.")
    attested: int = Field(0, description="Entries that the service's witness attests.")
    hash: str
    finding: str | None
    entry: int | None


class Problem(BaseModel):
    """An error, as application/problem+json (RFC 9457)."""

    type: str = Field(examples=["urn:c4b:problem:invalid-input"])
    title: str
    status: int
    detail: str = Field(description="For people: what is wrong and what to do.")


class Series(ResponseBody):
    """A deployment at some of its decisions, oldest first; one list for each quantity."""

    round: list[int]
    at: list[datetime]
    bank: list[Number]
    fallbacks: list[int] = Field(description="Decisions for the baseline so far.")
    pending: list[int] = Field(description="Outcomes unknown at that moment.")
    certificate: list[Number] = Field(description="Lower bound of the contrast of the decided action.")
    estimate: list[Number] = Field(description="Estimate of the same contrast at that moment.")
    radius: list[Number]
    seq: list[int] = Field(description="Number of the decision's entry, which its id holds.")


class PendingDecision(ResponseBody):
    """A decision whose outcome is not known."""

    id: str
    at: datetime
    age: float = Field(description="Seconds since the decision.")
    request_id: str | None
    context: JsonValue
    action: int | None
    label: str | None = None


class PendingDecisions(ResponseBody):
    """Decisions whose outcome is not known, oldest first."""

    pending: list[PendingDecision]
