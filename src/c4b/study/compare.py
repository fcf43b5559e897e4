"""Two result folders side by side: paired differences, episode by episode."""

from __future__ import annotations

from typing import NamedTuple

from c4b.study.results import NoResults, Results
from c4b.study.statistics import Estimate, paired


class Difference(NamedTuple):
    """First minus second, over the episodes that both folders hold."""

    setting: str
    method: str
    reward_ratio: Estimate
    fallback: Estimate  # in percentage points


def differences(first: Results, second: Results) -> list[Difference]:
    """Every setting and method label that both folders hold.

    Pairing needs common draws, so both must have been run with the same seed.
    """
    if first.study.seed != second.study.seed:
        raise NoResults(
            f"{first.folder} has seed {first.study.seed}, {second.folder} has {second.study.seed}: "
            "episodes cannot be paired; run one again with the other's seed"
        )
    labels = [m.label for m in first.study.methods if m.label in {o.label for o in second.study.methods}]
    episodes = min(first.study.episodes, second.study.episodes)
    rows = []
    for s in range(len(first.study.settings)):
        matching = [o for o in range(len(second.study.settings)) if _alike(first, s, second, o)]
        for o in matching:
            for label in labels:
                pair = [
                    paired(
                        scale * first.values(s, label, metric)[:episodes],
                        scale * second.values(o, label, metric)[:episodes],
                    )
                    for metric, scale in (("reward_ratio", 1.0), ("fallback", 100.0))
                ]
                rows.append(Difference(first.describe(s), label, *pair))
    if not rows:
        raise NoResults(f"{first.folder} and {second.folder} have no setting and method in common")
    return rows


def _alike(first: Results, s: int, second: Results, o: int) -> bool:
    """Equal in every field that either study sweeps."""
    fields = {*first.study.swept, *second.study.swept}
    a, b = first.study.settings[s], second.study.settings[o]
    return all(getattr(a, f) == getattr(b, f) for f in fields)
