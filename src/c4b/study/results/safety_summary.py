"""Safety and reserve cost of a finished study, as rows for the report and the terminal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import binomial_upper, student
from c4b.study.results.results import Results


class SafetyRow(NamedTuple):
    """One method over all settings."""

    method: str
    gated: bool
    episodes: int  # over all settings
    violations: int  # episodes with some D_t < 0
    on_covered: int  # of those, episodes in which the confidence event held
    uncovered: int  # episodes in which it did not
    bound: float  # one-sided 95 % bound on the violation probability, worst single setting
    min_slack: float | None  # smallest D_t - B_t on a covered path; None without a gate


class ReserveRow(NamedTuple):
    """Proposition 2 along executed paths of one method and setting, means over episodes."""

    method: str
    setting: int
    joint: float
    separate: float
    penalty: float
    holds: bool  # 0 <= separate - joint <= penalty in every episode


def safety(results: Results) -> list[SafetyRow]:
    rows = []
    settings = range(len(results.study.settings))
    for method in results.study.methods:
        gated = method.composition.gated
        violations, on_covered, uncovered, bound = 0, 0, 0, 0.0
        slacks = []
        for s in settings:
            failed = results.values(s, method.label, Metric.VIOLATION) != 0.0
            covered = results.values(s, method.label, Metric.COVERED) != 0.0
            violations += int(failed.sum())
            on_covered += int((failed & covered).sum())
            uncovered += int((~covered).sum())
            bound = max(bound, binomial_upper(int(failed.sum()), len(failed)))
            if gated and covered.any():
                slacks.append(float(results.values(s, method.label, Metric.MIN_SLACK)[covered].min()))
        rows.append(
            SafetyRow(
                method.label,
                gated,
                len(settings) * results.study.episodes,
                violations,
                on_covered,
                uncovered,
                bound,
                min(slacks) if slacks else None,
            )
        )
    return rows


def reserve_cost(results: Results) -> list[ReserveRow]:
    """Gated methods in settings without reserve (or in all, when there are none such)."""
    zero = [s for s, setting in enumerate(results.study.settings) if setting.reserve == 0.0]
    rows = []
    for s in zero or range(len(results.study.settings)):
        for method in results.study.methods:
            if not method.composition.gated:
                continue
            joint = results.values(s, method.label, Metric.RMIN_JOINT)
            separate = results.values(s, method.label, Metric.RMIN_SEPARATE)
            penalty = results.values(s, method.label, Metric.SUM_PENALTY)
            slack = 1e-9 * (1.0 + np.abs(separate))
            gap = separate - joint
            holds = bool(np.all((gap >= -slack) & (gap <= penalty + slack)))
            rows.append(
                ReserveRow(
                    method.label,
                    s,
                    student(joint).mean,
                    student(separate).mean,
                    student(penalty).mean,
                    holds,
                )
            )
    return rows
