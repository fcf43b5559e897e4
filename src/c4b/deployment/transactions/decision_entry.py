"""A decision as a journal entry: its id, what is written of it, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.deployment.configuration import Configuration
from c4b.deployment.transactions.recording import position, same_pool
from c4b.errors import InvalidInput
from c4b.journal.entries import Entry
from c4b.journal.seal import SEAL
from c4b.policies.gate import Played
from c4b.policies.rounds.decision import Decision, DecisionNumbers, Receipt
from c4b.policies.rounds.round import Round
from c4b.policies.rounds.slates import Outcome, Slates

Fields = dict[str, Any]
Arrays = dict[str, Array]


class BankNumbers(NamedTuple):
    """Numbers of an ``executed`` entry in their order."""

    before: float
    after: float


TAG_BYTES = 6


class IdParts(NamedTuple):
    """What an id says."""

    seq: int
    tag: str
    """See ``id_tag``; empty in the ids of early journals."""


def id_tag(hash_: bytes) -> str:
    """The part of an entry's hash that its decision's id holds."""
    return hash_[:TAG_BYTES].hex()


def decision_id(configuration: Configuration, seq: int, tag: str) -> str:
    """The id of the decision in entry ``seq``: name, number and tag.

    The tag keeps ids from being used again: after an old backup was restored, another decision gets the
    same number, but has another hash. Ids of early journals are without.
    """
    plain = f"{configuration.name}-{seq}"
    return f"{plain}-{tag}" if configuration.ids_hold_hashes else plain


def id_parts(given: object, configuration: Configuration) -> IdParts | None:
    """The parts of an id that ``decision_id`` made; None if it is no such id."""
    if not isinstance(given, str):
        return None
    plain, tag = given, ""
    if configuration.ids_hold_hashes:
        plain, _, tag = given.rpartition("-")
    prefix, _, digits = plain.rpartition("-")
    if prefix == configuration.name and digits.isdecimal() and len(digits) < 19:
        seq = int(digits)
        return IdParts(seq, tag) if str(seq) == digits else None
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
    if made.held is not None:
        fields |= {"held": made.held, "proposed": made.proposed}
    if made.propensity is not None:
        fields["propensity"] = made.propensity
    if round_.baseline_mean is not None:
        fields["baseline_mean"] = round_.baseline_mean
    if round_.labels is not None:
        fields["labels"] = list(round_.labels)
    arrays = {
        "candidates": round_.candidates,
        "baseline": round_.baseline,
        "details": made.computed,
        "numbers": np.array(numbers),
    }
    if round_.items is not None:
        arrays["items"], arrays["baseline_items"] = round_.items
    if not (arrays.keys().isdisjoint(explanation) and SEAL not in explanation):
        remedy = f"must not hold arrays named {', '.join([*arrays, SEAL])}: the decision's own are"
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
        items=Slates(arrays["items"], arrays["baseline_items"]) if "items" in arrays else None,
    )


def recorded_numbers(arrays: Arrays) -> DecisionNumbers:
    return DecisionNumbers(*arrays["numbers"].tolist())


def recorded_play(fields: Fields, arrays: Arrays) -> Played:
    """What the decision chose to execute; arrays of its own."""
    action, baseline = fields["action"], arrays["baseline"]
    features = baseline if action is None else arrays["candidates"][position(fields, action)]
    played = Played(features.copy(), baseline, action is None, fields.get("baseline_mean"))
    if "items" not in arrays:
        return played
    incumbent = arrays["baseline_items"]
    items = incumbent if action is None else arrays["items"][position(fields, action)]
    return played._replace(items=items.copy(), baseline_items=incumbent.copy())


def recorded_outcome(arrays: Arrays) -> Outcome:
    """What was reported of a decision."""
    numbers = arrays["numbers"].tolist()
    return float(numbers[0]) if len(numbers) == 1 else tuple(numbers)


def recorded_decision(
    configuration: Configuration, entry: Entry, fields: Fields, arrays: Arrays
) -> Decision:
    """The decision in ``entry`` as it was returned when it was made."""
    numbers, hash_, labels = recorded_numbers(arrays), entry.hash(), fields.get("labels")
    return Decision(
        decision_id(configuration, entry.seq, id_tag(hash_)),
        fields["action"],
        numbers.bank,
        numbers.certificate,
        numbers.ucb,
        numbers.radius,
        numbers.bank_before,
        configuration.spec.name,
        fields["alarm"],
        arrays["details"],
        fields.get("propensity"),
        Receipt(entry.seq, hash_.hex()),
        None if labels is None else tuple(labels),
        fields.get("held"),
        fields.get("proposed"),
    )


def same_round(given: Round, fields: Fields, arrays: Arrays) -> bool:
    """Whether a repeated request asks for the same decision. Labels and context do not decide it."""
    return (
        same_pool(given, fields, arrays)
        and np.array_equal(given.baseline, arrays["baseline"])
        and given.baseline_mean == fields.get("baseline_mean")
    )
