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
HEADING = (
    "world", "verdict", "reward ratio", "fallback %", f"- {LATE}", "of it fallback", f"- {REFRESH}",
    "violations",
)  # fmt: skip
UNITS = (
    "Reward ratio: mean reward / the baseline's mean reward. Its differences are paired by episode, "
    "± half a 95 % interval; of it fallback: what the rounds on the baseline cost. The most troubled "
    "world comes first."
)


class WorldRow(NamedTuple):
    """One method in one world; differences are paired by episode."""

    world: str
    reward: Estimate
    fallback: float  # share of rounds
    gain_late: Estimate
    gate: float  # the part of ``gain_late`` that rounds on the baseline explain, <= 0
    gain_refresh: Estimate
    violations: int  # episodes
    covered_violations: int  # episodes in which the confidence set held

    @property
    def below_refresh(self) -> bool:
        return self.gain_refresh.high < 0.0

    @property
    def costly(self) -> bool:
        """Significantly below ``LATE``, and by more than is tolerated."""
        return self.gain_late.mean < -TOLERATED and self.gain_late.high < 0.0

    @property
    def verdict(self) -> str:
        if self.covered_violations:
            return "VIOLATED"
        if self.below_refresh:
            return f"below {REFRESH}"
        if self.costly:
            return "price: the gate" if self.gate <= 0.5 * self.gain_late.mean else "price: the choice"
        return "good"


def is_of_worlds(results: Results) -> bool:
    """Whether the study lists worlds by name and has both yardsticks."""
    labels = [method.label for method in results.study.methods]
    return results.study.swept == ("world",) and LATE in labels and REFRESH in labels


def judged(results: Results) -> str:
    """The method that the table is about: the last one with a gate."""
    return [method.label for method in results.study.methods if method.gated][-1]


def world_rows(results: Results) -> list[WorldRow]:
    """The most troubled first: violations, then below refresh, then by the price against ``LATE``."""
    label, rows = judged(results), []
    for s, setting in enumerate(results.study.settings):
        if not {label, LATE, REFRESH} <= {*results.players(s)}:
            continue
        reward = results.values(s, label, Metric.REWARD_RATIO)
        late = results.values(s, LATE, Metric.REWARD_RATIO)
        fallback = float(results.values(s, label, Metric.FALLBACK).mean())
        late_fallback = float(results.values(s, LATE, Metric.FALLBACK).mean())
        gain_of_a_play = max(float(late.mean()) - 1.0, 0.0) / max(1.0 - late_fallback, 1e-9)
        violated = results.values(s, label, Metric.VIOLATION) != 0.0
        covered = results.values(s, label, Metric.COVERED) != 0.0
        rows.append(
            WorldRow(
                setting.world,
                student(reward),
                fallback,
                paired(reward, late),
                min(0.0, (late_fallback - fallback) * gain_of_a_play),
                paired(reward, results.values(s, REFRESH, Metric.REWARD_RATIO)),
                int(violated.sum()),
                int((violated & covered).sum()),
            )
        )
    return sorted(
        rows, key=lambda row: (-row.covered_violations, not row.below_refresh, row.gain_late.mean)
    )


def cells(row: WorldRow) -> list[str]:
    """Under ``HEADING``; an interval is written mean ± half of its width."""
    late, refresh = (
        f"{gain.mean:+.4f} ± {gain.high - gain.mean:.4f}" for gain in (row.gain_late, row.gain_refresh)
    )
    explained = f"{row.gate:+.4f}" if row.costly else ""
    return [
        row.world,
        row.verdict,
        f"{row.reward.mean:.4f}",
        f"{100.0 * row.fallback:.1f}",
        late,
        explained,
        refresh,
        str(row.violations),
    ]


def sentence(results: Results) -> str:
    """How often the method is significantly below its yardsticks."""
    rows = world_rows(results)
    costly = [row for row in rows if row.costly]
    gate = sum(row.verdict == "price: the gate" for row in costly)
    violations = sum(row.violations for row in rows)
    covered = sum(row.covered_violations for row in rows)
    return (
        f"{judged(results)} in {len(rows)} worlds: significantly below {REFRESH} in "
        f"{sum(row.below_refresh for row in rows)}, below {LATE} by more than {TOLERATED:g} in "
        f"{len(costly)} (in {gate} of them mostly because the gate gave rounds to the baseline); "
        f"{violations} violations, {covered} where the confidence set held (paired 95 % intervals)"
    )
