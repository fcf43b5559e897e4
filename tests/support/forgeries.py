"""What somebody with access to the store could write into entries; see ``shop_world.forge``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from c4b import Deployment
from c4b.policies import CandidateField, Decision
from support.shop_world import entries_of, forge

Forgery = Callable[[dict[str, Any], dict[str, Any]], None]


def numbers_of(entries: list[Any], kind: str) -> list[int]:
    return [entry.seq for entry in entries if entry.kind == kind]


def forge_decision(dep: Deployment, made: Decision, forgery: Forgery) -> int:
    """Forge a decision whose entry lists the numbers of all candidates; returns the entry's number."""

    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        fields.pop("evaluated", None)
        arrays["details"] = made.details.copy()
        forgery(fields, arrays)

    assert made.receipt is not None
    forge(dep, made.receipt.seq, change)
    return made.receipt.seq


def another(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Another admissible candidate, with the highest score of all."""
    details = arrays["details"]
    fit = np.flatnonzero(details[CandidateField.MARGIN] >= 0.0)
    other = int(next(k for k in fit if k != fields["action"]))
    details[CandidateField.SCORE, other] = details[CandidateField.SCORE].max() + 0.01
    play(other, fields, arrays)


def only_one(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Another admissible candidate, because all others have no score."""
    details = arrays["details"]
    fit = np.flatnonzero(details[CandidateField.MARGIN] >= 0.0)
    other = int(next(k for k in fit if k != fields["action"]))
    others = np.arange(details.shape[1]) != other
    details[CandidateField.SCORE, others] = -np.inf
    play(other, fields, arrays)


def barred(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Another admissible candidate, because the margins of all better ones are said to be -inf."""
    details = arrays["details"]
    margins, scores = details[CandidateField.MARGIN], details[CandidateField.SCORE]
    other = int(next(k for k in np.flatnonzero(margins >= 0.0) if k != fields["action"]))
    margins[(scores >= scores[other]) & (np.arange(len(scores)) != other)] = -np.inf
    play(other, fields, arrays)


def barred_elsewhere(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The same, with a set that nobody had, which no replay would reproduce."""
    barred(fields, arrays)
    fields["set"] = "0" * 32


def barred_unsaid(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    barred(fields, arrays)
    del fields["set"]


def fallen_back(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The baseline, because no margin is a number."""
    fields["action"] = None
    arrays["details"][CandidateField.MARGIN] = -np.inf
    arrays["numbers"][1:3] = -np.inf


def nothing_possible(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """No upper bound is a number, and the candidate was played nevertheless."""
    arrays["details"][CandidateField.UCB] = -np.inf
    arrays["numbers"][3] = -np.inf


def no_radius(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["numbers"][4] = -np.inf


def negative_radius(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["numbers"][4] *= -1.0


def play(action: int, fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    details, fields["action"] = arrays["details"], action
    arrays["numbers"][1] = details[CandidateField.MARGIN, action]
    arrays["numbers"][2] = details[CandidateField.JOINT, action]
    arrays["numbers"][3] = details[CandidateField.UCB, action]


def follow_banks(dep: Deployment, factor: float) -> None:
    """Every bank of every decision a little larger, consistently."""
    bank = dep.configuration.reserve
    for number in numbers_of(entries_of(dep), "decided"):

        def change(fields: dict[str, Any], arrays: dict[str, Any], before: float = bank) -> None:
            numbers, details = arrays["numbers"], arrays["details"]
            numbers[0] = before
            numbers[1] = numbers[1] + factor * (1.0 + abs(numbers[1]))
            if fields["action"] is not None:
                some = fields.get("evaluated", range(details.shape[1]))
                details[CandidateField.MARGIN, some.index(fields["action"])] = numbers[1]

        forge(dep, number, change)
        bank = float(entries_of(dep)[number].unpack()[1]["numbers"][1])
