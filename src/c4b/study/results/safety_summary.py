"""Safety and reserve cost of a finished study, as rows for the report and the terminal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import binomial_upper, student
from c4b.study.results.results import Results


class SafetyRow(NamedTuple):
    """One method over all settings. None: the method's gate does not say whether its set covers theta."""

    method: str
    gated: bool
    episodes: int  # over all settings
    violations: int  # episodes with some D_t < 0
    on_covered: int | None  # of those, episodes in which the confidence event held
    uncovered: int | None  # episodes in which it did not
    bound: float  # one-sided 95 % bound on the violation probability, worst single setting
    min_slack: float | None  # smallest D_t - B_t on a covered path; None without a gate, too


class ReserveRow(NamedTuple):
    """Proposition 2 along executed paths of one method and setting, means over episodes.

    None: the method's gate does not say these certificates.
    """

    method: str
    setting: int
    joint: float | None
    separate: float | None
    penalty: float | None
    holds: bool | None  # 0 <= separate - joint <= penalty in every episode


def safety(results: Results) -> list[SafetyRow]:
    """One row for each method."""
    return [_safety_row(results, method.label, method.gated) for method in results.study.methods]


def _safety_row(results: Results, label: str, gated: bool) -> SafetyRow:
    violations, on_covered, uncovered, bound = 0, 0, 0, 0.0
    slacks, unknown = [], False
    settings = results.settings_of(label)
    for s in settings:
        failed = results.values(s, label, Metric.VIOLATION) != 0.0
        coverage = results.values(s, label, Metric.COVERED)
        covered = coverage == 1.0
        unknown |= bool(np.isnan(coverage).any())
        violations += int(failed.sum())
        on_covered += int((failed & covered).sum())
        uncovered += int((coverage == 0.0).sum())
        bound = max(bound, binomial_upper(int(failed.sum()), len(failed)))
        if gated and covered.any():
            slacks.append(float(results.values(s, label, Metric.MIN_SLACK)[covered].min()))
    return SafetyRow(
        label,
        gated,
        len(settings) * results.study.episodes,
        violations,
        None if unknown else on_covered,
        None if unknown else uncovered,
        bound,
        min(slacks) if slacks and not unknown else None,
    )


def reserve_cost(results: Results) -> list[ReserveRow]:
    """Gated methods in settings without reserve (or in all, when there are none such).

    Proposition 2 compares two intervals with one set; a method that is told the mean has neither.
    """
    zero = [s for s, setting in enumerate(results.study.settings) if setting.reserve == 0.0]
    return [
        _reserve_row(results, s, method.label)
        for s in zero or range(len(results.study.settings))
        for method in results.study.methods
        if method.gated and not method.is_told and results.study.plays(s, method.label)
    ]


def _reserve_row(results: Results, setting: int, label: str) -> ReserveRow:
    joint = results.values(setting, label, Metric.RMIN_JOINT)
    separate = results.values(setting, label, Metric.RMIN_SEPARATE)
    penalty = results.values(setting, label, Metric.SUM_PENALTY)
    gap, slack = separate - joint, 1e-9 * (1.0 + np.abs(separate))
    unknown = bool(np.isnan(gap).any() or np.isnan(penalty).any())
    holds = bool(np.all((gap >= -slack) & (gap <= penalty + slack)))
    return ReserveRow(
        label, setting, _mean(joint), _mean(separate), _mean(penalty), None if unknown else holds
    )


def _mean(values: Array) -> float | None:
    return None if np.isnan(values).any() else student(values).mean
