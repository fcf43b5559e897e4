"""The 87 numbers that the paper prints beside the measured ones, each with a z score.

z divides the difference by the standard error of both sides (the paper's from the same spread at its
256 episodes) and allows half a unit of the last printed digit for rounding.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from importlib import resources
from typing import Any, NamedTuple

import scipy

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import Estimate, binomial_upper, paired, student
from c4b.study.results.results import Results
from c4b.study.spec.study_file import load

PUBLISHED_EPISODES = 256
ACCEPTED = 3.5
"""Largest |z| of 87 numbers that counts as reproduced."""
METHODS = ("separate", "contrast", "refresh", "revalue", "revalue-f", "linucb")


class Comparison(NamedTuple):
    name: str
    published: float
    measured: float
    se: float  # of the measured value
    z: float


def published() -> dict[str, Any]:
    """The content of ``published_numbers.json``."""
    file = resources.files("c4b.study.results") / "published_numbers.json"
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def is_papers_study(results: Results) -> bool:
    """Whether the results hold every setting and method that the paper prints."""
    paper = load("paper")
    return results.study.settings == paper.settings and {*paper.methods} <= {*results.study.methods}


def central_setting(results: Results, history: str) -> int:
    """Number of the setting that the paper's Table 1 shows for this history."""
    return results.find(history=history, rho=0.15, sigma=0.3, reserve=0.0)


def macros(results: Results) -> dict[str, tuple[float, float]]:
    """The paper's macros: name -> (value, standard error)."""
    diverse, baseline = central_setting(results, "diverse"), central_setting(results, "baseline")

    def share(setting: int, method: str, metric: Metric = Metric.FALLBACK) -> tuple[float, float]:
        estimate = student(100.0 * results.values(setting, method, metric))
        return estimate.mean, estimate.se

    def gain(setting: int, first: str, second: str) -> Estimate:
        return paired(
            results.values(setting, first, Metric.REWARD_RATIO),
            results.values(setting, second, Metric.REWARD_RATIO),
        )

    def ratio(setting: int, method: str) -> tuple[float, float]:
        estimate = student(results.values(setting, method, Metric.REWARD_RATIO))
        return estimate.mean, estimate.se

    contrast = gain(diverse, "contrast", "separate")
    refresh = gain(baseline, "refresh", "revalue-f")
    return {
        "SepFallback": share(diverse, "separate"),
        "ContrastFallback": share(diverse, "contrast"),
        "RefreshFallback": share(diverse, "refresh"),
        "ContrastGain": (contrast.mean, contrast.se),
        "ContrastGainLow": (contrast.low, _end_se(contrast)),
        "ContrastGainHigh": (contrast.high, _end_se(contrast)),
        "BaselineContrastFallback": share(baseline, "contrast"),
        "BaselineRefreshFallback": share(baseline, "refresh"),
        "BaselineRefreshReward": ratio(baseline, "refresh"),
        "BaselineRevalueFilterReward": ratio(baseline, "revalue-f"),
        "RefreshVsRevalueGain": (refresh.mean, refresh.se),
        "RefreshVsRevalueLow": (refresh.low, _end_se(refresh)),
        "RefreshVsRevalueHigh": (refresh.high, _end_se(refresh)),
        "LinBaselineViolations": share(baseline, "linucb", Metric.VIOLATION),
        # for zero failures at the paper's number of episodes: arithmetic, not a measurement
        "FailureUpper": (100.0 * binomial_upper(0, PUBLISHED_EPISODES), 0.0),
    }


def _end_se(estimate: Estimate) -> float:
    """Standard error of an interval's end: that of the mean and that of the half-width."""
    half = float(scipy.stats.t.ppf(0.975, estimate.n - 1)) * estimate.se
    return math.hypot(estimate.se, half / math.sqrt(2.0 * (estimate.n - 1)))


def compare(results: Results) -> list[Comparison]:
    """All published numbers, in the order of the paper: macros, central table, grid."""
    return list(_compare(results))


def _compare(results: Results) -> Iterator[Comparison]:
    printed, episodes = published(), results.study.episodes
    measured = macros(results)
    for name, value in printed["macros"].items():
        digits = 4 if "Gain" in name or "VsRevalue" in name or "Reward" in name else 1
        if name == "FailureUpper":
            digits = 2
        yield _scored(f"macro {name}", value, *measured[name], digits, episodes)
    for history in ("diverse", "baseline"):
        for method in METHODS:
            ratio, fallback = printed["central"][history][method]
            setting = central_setting(results, history)
            reward = student(results.values(setting, method, Metric.REWARD_RATIO))
            name = f"central {history} {method}"
            yield _scored(f"{name} reward ratio", ratio, reward.mean, reward.se, 4, episodes)
            share = student(100.0 * results.values(setting, method, Metric.FALLBACK))
            yield _scored(f"{name} fallback %", fallback, share.mean, share.se, 1, episodes)
    for history in ("diverse", "baseline"):
        for rho, sigma, *values in printed["zero_reserve"][history]:
            setting = results.find(history=history, rho=rho, sigma=sigma, reserve=0.0)
            for method, value in zip(printed["zero_reserve"]["columns"][2:], values, strict=True):
                reward = student(results.values(setting, method, Metric.REWARD_RATIO))
                name = f"grid {history} rho={rho} sigma={sigma} {method}"
                yield _scored(name, value, reward.mean, reward.se, 3, episodes)


def _scored(
    name: str, value: float, measured: float, se: float, digits: int, episodes: int
) -> Comparison:
    spread = se * math.sqrt(1.0 + episodes / PUBLISHED_EPISODES)
    gap = measured - value
    beyond = max(0.0, abs(gap) - 0.5 * 10.0**-digits * (1.0 + 1e-9))
    if beyond == 0.0:
        return Comparison(name, value, measured, se, 0.0)
    size = beyond / spread if spread > 0.0 else math.inf
    return Comparison(name, value, measured, se, math.copysign(size, gap))


def to_json(comparisons: list[Comparison]) -> dict[str, Any]:
    """The content of ``comparison.json``; an infinite z, which JSON cannot hold, becomes null."""
    scores = [abs(c.z) for c in comparisons]
    return {
        "numbers": [{**c._asdict(), "z": c.z if math.isfinite(c.z) else None} for c in comparisons],
        "max_abs_z": max(scores) if math.isfinite(max(scores)) else None,
        "within_3": sum(score <= 3.0 for score in scores),
        "count": len(comparisons),
    }
