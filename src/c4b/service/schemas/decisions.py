"""Request and response bodies of decisions and outcomes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, SkipValidation

from c4b import policies
from c4b.service.schemas.bodies import (
    Action,
    Actions,
    Matrix,
    Number,
    RequestBody,
    ResponseBody,
    Reward,
    Texts,
    Vector,
    is_none,
)

_CANDIDATES = [[1.0, 0.1], [1.0, -0.3]]
_BASELINE = [1.0, 0.0]
_INDEPENDENT = (
    "Asserts that the report depends on no reward of this decision or of a later one. Needed once an "
    "outcome of a later decision was reported."
)


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


class NamedOutcome(RequestBody):
    """The reward of one decision of a batch."""

    id: str = Field(examples=["homepage-3-5be3c1a20f47"])
    reward: Reward = Field(examples=[0.58])


class Rounds(RequestBody):
    """Several rounds in one commit: all are decided or none."""

    rounds: Annotated[list[NamedRound], Field(fail_fast=True)]
    outcomes: Annotated[list[NamedOutcome], Field(fail_fast=True)] = Field(
        [], description="Rewards of earlier decisions; recorded first, in the same commit."
    )


class Receipt(ResponseBody):
    """Where a decision is in the journal. Keep it: an audit can be given receipts."""

    seq: int = Field(description="Number of the journal's entry.")
    hash: str = Field(description="Its hash, which covers every entry before it.")


class Decided(ResponseBody):
    """A decision. It is on disk, and its cost is charged to the bank."""

    id: str = Field(examples=["homepage-3-5be3c1a20f47"])
    action: int | None = Field(description="Index into the candidates; null: play the baseline.")
    label: str | None = Field(
        None, exclude_if=is_none, description="Name of the candidate, if the round had names."
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
        exclude_if=is_none,
        description="Probability of the action, from policies that randomise; left out by others.",
    )
    receipt: Receipt | None = Field(None, description="Proof that the journal holds this decision.")
    held: str | None = Field(
        None,
        exclude_if=is_none,
        description="shadow, frozen or ramp: the baseline is played whatever the gate chose.",
    )
    proposed: int | None = Field(
        None, exclude_if=is_none, description="What the gate chose in a round that was held."
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
