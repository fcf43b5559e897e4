"""The price of safety: reward that a method gives up against the same learner without a gate.

There are two yardsticks, recognised by their labels: LinUCB that plays any candidate from the first round
on, and LinUCB that first plays the baseline for as long as any gate certified over the whole set must.
"""

from __future__ import annotations

from typing import NamedTuple

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import Estimate, paired, student
from c4b.study.results.published_numbers import is_papers_study
from c4b.study.results.results import Results

UNGATED, LATE = "linucb", "linucb, late"
HEADING = (
    "setting",
    "method",
    "reward ratio",
    "fallback %",
    "x floor",
    "violations",
    f"- {UNGATED}",
    f"- {LATE}",
)


class Price(NamedTuple):
    """One method in one setting."""

    setting: int
    method: str
    reward: Estimate
    fallback: float  # share of rounds
    floor: float  # the share that no set-certified gate can avoid; 0 where nothing is claimed
    violations: int  # episodes
    gain: Estimate  # paired difference to ``UNGATED``; the price is its negative
    gain_late: Estimate | None  # to ``LATE``, where the study has it

    @property
    def times_floor(self) -> float | None:
        return self.fallback / self.floor if self.floor else None


class Tally(NamedTuple):
    """One gated method over all settings."""

    method: str
    settings: int
    not_below: int  # settings where the paired interval of the gain reaches 0
    not_below_late: int | None
    times_floor: list[float]  # by setting, where there is a floor
    violations: int


def is_priced(results: Results) -> bool:
    """Whether the study has the yardstick and something to measure; the paper has tables of its own."""
    methods = results.study.methods
    labels = [method.label for method in methods]
    gated = any(method.gated for method in methods)
    return UNGATED in labels and gated and not is_papers_study(results)


def prices(results: Results) -> list[Price]:
    """By setting and method, in the study's order, where the yardstick plays."""
    rows = []
    for s, setting in enumerate(results.study.settings):
        labels = results.players(s)
        if UNGATED not in labels:
            continue
        rewards = {label: results.values(s, label, Metric.REWARD_RATIO) for label in labels}
        for label in labels:
            late = paired(rewards[label], rewards[LATE]) if LATE in labels else None
            rows.append(
                Price(
                    s,
                    label,
                    student(rewards[label]),
                    float(results.values(s, label, Metric.FALLBACK).mean()),
                    min(setting.forced_rounds / setting.rounds, 1.0),
                    int(results.values(s, label, Metric.VIOLATION).sum()),
                    paired(rewards[label], rewards[UNGATED]),
                    late,
                )
            )
    return rows


def tallies(results: Results) -> list[Tally]:
    """Gated methods, in the study's order."""
    every = prices(results)
    tallied = []
    for method in results.study.methods:
        if not method.gated:
            continue
        mine = [price for price in every if price.method == method.label]
        late = [p.gain_late.high >= 0.0 for p in mine if p.gain_late is not None]
        tallied.append(
            Tally(
                method.label,
                len(mine),
                sum(p.gain.high >= 0.0 for p in mine),
                sum(late) if late else None,
                [p.times_floor for p in mine if p.times_floor is not None],
                sum(p.violations for p in mine),
            )
        )
    return tallied


def table_rows(results: Results, methods: tuple[str, ...] | None = None) -> list[list[str]]:
    """Cells under ``HEADING``; an interval is written mean ± half of its width."""
    return [
        [
            results.describe(price.setting),
            price.method,
            f"{price.reward.mean:.4f} ± {price.reward.high - price.reward.mean:.4f}",
            f"{100.0 * price.fallback:.1f}",
            "-" if price.times_floor is None else f"{price.times_floor:.2f}",
            str(price.violations),
            _gain(price.gain),
            _gain(price.gain_late),
        ]
        for price in prices(results)
        if methods is None or price.method in methods
    ]


def compact_table(
    results: Results, methods: tuple[str, ...] | None = None
) -> tuple[list[str], list[list[str]]]:
    """``HEADING`` and rows without the columns in which nothing has a value."""
    rows = table_rows(results, methods)
    kept = [n for n in range(len(HEADING)) if n < 2 or any(row[n] != "-" for row in rows)]
    return [HEADING[n] for n in kept], [[row[n] for n in kept] for row in rows]


def legend(results: Results) -> str:
    """What the words of the table mean, as far as they are used."""
    text = f"Yardsticks: {UNGATED} plays without a gate, and is not safe"
    if LATE in [method.label for method in results.study.methods]:
        text += f"; {LATE!r} is the same after the forced baseline rounds"
    if any(setting.forced_rounds for setting in results.study.settings):
        text += ". Floor: the fallback that no gate certified over the whole set can avoid"
    return f"{text}."


def _gain(gain: Estimate | None) -> str:
    if gain is None or gain.se == 0.0:  # no yardstick, or the method plays as the yardstick does
        return "-" if gain is None else f"{gain.mean:+.4f}"
    return f"{gain.mean:+.4f} ± {gain.high - gain.mean:.4f}"


def sentence(tally: Tally) -> str:
    """What a tally says, in words."""
    text = f"{tally.method}: not below {UNGATED} in {tally.not_below} of {tally.settings} settings"
    if tally.not_below_late is not None:
        text += f", not below {LATE} in {tally.not_below_late}"
    if tally.times_floor:
        ends = [f"{end(tally.times_floor):.2f}" for end in (min, max)]
        text += f"; fallback {' to '.join(dict.fromkeys(ends))} x the floor"
    return f"{text}; {tally.violations} violations"
