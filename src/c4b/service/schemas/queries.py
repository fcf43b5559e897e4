"""Response bodies of questions about decisions, and of errors."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field, JsonValue

from c4b.service.schemas.bodies import Number, ResponseBody, Vector, is_none
from c4b.service.schemas.decisions import Decided


class RecordedDecision(Decided):
    """A decision with its outcome so far."""

    at: datetime
    request_id: str | None
    outcome: str = Field(description="pending, observed, timeout or forgotten.")
    reward: float | None
    item_rewards: Vector | None = Field(
        None,
        exclude_if=is_none,
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
    baseline_mean: float | None = Field(None, exclude_if=is_none, description="If the round had it.")
    labels: list[str] | None = Field(None, exclude_if=is_none, description="If the round had them.")
    items: list[Vector] | None = Field(
        None, exclude_if=is_none, description="Features of the items of an executed slate."
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
