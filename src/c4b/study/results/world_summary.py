"""A study of named worlds at a glance: one method beside LinUCB after the forced phase and refresh."""

from __future__ import annotations

from typing import NamedTuple

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import Estimate, paired, student
from c4b.study.results.price_of_safety import LATE
from c4b.study.results.results import Results

REFRESH = "refresh"
TOLERATED = 0.01
"""A price against ``LATE`` up to this counts as small."""
HEADING = ("world", "reward ratio", "fallback %", f"- {LATE}", f"- {REFRESH}", "violations")


class WorldRow(NamedTuple):
    """One method in one world; differences are paired by episode."""

    world: str
    reward: Estimate
    fallback: float  # share of rounds
    gain_late: Estimate
    gain_refresh: Estimate
    violations: int  # episodes


def is_of_worlds(results: Results) -> bool:
    """Whether the study lists worlds by name and has both yardsticks."""
    labels = [method.label for method in results.study.methods]
    return results.study.swept == ("world",) and LATE in labels and REFRESH in labels


def judged(results: Results) -> str:
    """The method that the table is about: the last one with a gate."""
    return [method.label for method in results.study.methods if method.gated][-1]


def world_rows(results: Results) -> list[WorldRow]:
    """In the study's order."""
    label, rows = judged(results), []
    for s, setting in enumerate(results.study.settings):
        reward = results.values(s, label, Metric.REWARD_RATIO)
        rows.append(
            WorldRow(
                setting.world,
                student(reward),
                float(results.values(s, label, Metric.FALLBACK).mean()),
                paired(reward, results.values(s, LATE, Metric.REWARD_RATIO)),
                paired(reward, results.values(s, REFRESH, Metric.REWARD_RATIO)),
                int(results.values(s, label, Metric.VIOLATION).sum()),
            )
        )
    return rows


def cells(row: WorldRow) -> list[str]:
    """Under ``HEADING``; an interval is written mean ± half of its width."""
    return [
        row.world,
        f"{row.reward.mean:.4f}",
        f"{100.0 * row.fallback:.1f}",
        *(
            f"{gain.mean:+.4f} ± {gain.high - gain.mean:.4f}"
            for gain in (row.gain_late, row.gain_refresh)
        ),
        str(row.violations),
    ]


def sentence(results: Results) -> str:
    """How often the method is significantly below its yardsticks."""
    rows = world_rows(results)
    below = sum(row.gain_refresh.high < 0.0 for row in rows)
    late = sum(row.gain_late.mean < -TOLERATED and row.gain_late.high < 0.0 for row in rows)
    violations = sum(row.violations for row in rows)
    return (
        f"{judged(results)} in {len(rows)} worlds: significantly below {REFRESH} in {below}, "
        f"below {LATE} by more than {TOLERATED:g} in {late} (paired 95 % intervals); "
        f"{violations} violations"
    )
