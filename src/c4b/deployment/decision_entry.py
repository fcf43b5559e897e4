"""A decision as a journal entry: its id, what is written of it, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.policies.decision import Decision, DecisionNumbers
from c4b.policies.gate import Played
from c4b.policies.round import Round

Fields = dict[str, Any]
Arrays = dict[str, Array]


class BankNumbers(NamedTuple):
    """Numbers of an ``executed`` entry in their order."""

    before: float
    after: float


def decision_id(deployment: str, seq: int) -> str:
    """The id of the decision in entry ``seq``."""
    return f"{deployment}-{seq}"


def entry_number(given: object, deployment: str) -> int | None:
    """The entry's number in an id that ``decision_id`` made; None if it is no such id."""
    if isinstance(given, str):
        prefix, _, digits = given.rpartition("-")
        if prefix == deployment and digits.isdecimal() and len(digits) < 19:
            seq = int(digits)
            return seq if str(seq) == digits else None
    return None


def contents(
    round_: Round,
    made: Decision,
    numbers: DecisionNumbers,
    knowledge: Fields,
    explanation: Mapping[str, Array],
) -> tuple[Fields, Arrays]:
    """What is written of a decision. ``knowledge`` names the confidence set that it used."""
    fields = {"action": made.action, "context": round_.context, "alarm": made.alarm, **knowledge}
    if made.propensity is not None:
        fields["propensity"] = made.propensity
    if round_.baseline_mean is not None:
        fields["baseline_mean"] = round_.baseline_mean
    if round_.labels is not None:
        fields["labels"] = list(round_.labels)
    arrays = {
        "candidates": round_.candidates,
        "baseline": round_.baseline,
        "details": made.details,
        "numbers": np.array(numbers),
    }
    if not arrays.keys().isdisjoint(explanation):
        remedy = f"must not hold arrays named {', '.join(arrays)}: the decision's own are"
        raise InvalidInput("explanation", sorted(explanation), remedy)
    arrays.update(explanation)
    return fields, arrays


def recorded_round(fields: Fields, arrays: Arrays, request_id: str | None = None) -> Round:
    """The round that was decided; its context is JSON text."""
    labels = fields.get("labels")
    return Round(
        arrays["candidates"],
        arrays["baseline"],
        fields.get("baseline_mean"),
        None if labels is None else tuple(labels),
        request_id,
        fields["context"],
    )


def recorded_numbers(arrays: Arrays) -> DecisionNumbers:
    return DecisionNumbers(*arrays["numbers"].tolist())


def recorded_play(fields: Fields, arrays: Arrays) -> Played:
    """What the decision chose to execute; arrays of its own."""
    action, baseline = fields["action"], arrays["baseline"]
    features = baseline if action is None else arrays["candidates"][action]
    return Played(features.copy(), baseline, action is None, fields.get("baseline_mean"))


def recorded_decision(id_: str, policy: str, fields: Fields, arrays: Arrays) -> Decision:
    """The decision as it was returned when it was made."""
    numbers = recorded_numbers(arrays)
    return Decision(
        id_,
        fields["action"],
        numbers.bank,
        numbers.certificate,
        numbers.ucb,
        numbers.radius,
        numbers.bank_before,
        policy,
        fields["alarm"],
        arrays["details"],
        fields.get("propensity"),
    )


def same_round(given: Round, recorded: Round) -> bool:
    """Whether a repeated request asks for the same decision. Labels and context do not decide it."""
    return (
        np.array_equal(given.candidates, recorded.candidates)
        and np.array_equal(given.baseline, recorded.baseline)
        and given.baseline_mean == recorded.baseline_mean
    )
