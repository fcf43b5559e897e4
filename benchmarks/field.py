"""The systems of the field beside independent NumPy versions; prints JSON.

    python benchmarks/field.py [--episodes 128] [--seed 0] [--arms 16] [--oracle 4] [--slates 128]

``table``: reward ratio and fallback in percent with standard errors, of the package and of the NumPy
version on the same draws, and how many standard errors the package is from the published target.
``violations`` counts episodes in which the system's own promise was broken. ``arms``: one-hot, means .5
(baseline) | .6 .5 .4 .2, alpha .1, T 5000. ``oracle``: rewards x @ theta with uniform noise of +-.2, 8
candidates (1, u), alpha .1. ``long_arms``: the rounds that budget-first-arms saves at alpha .2, T 1e5.
``slates``: benchmarks/slates.py; the home world of logs is in benchmarks/offpolicy.py. ``round_times``: a
simulated round of clucb over one of refresh, median of alternating runs; --times 0 leaves it out.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import slates

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import c4b
from c4b.policies.field.budget_first import BudgetFirstArms
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.field_scenes import SETTINGS, oracle_story, scene

ROWS: dict[str, tuple[str, dict[str, Any], list[tuple[float, float]]]] = {
    "clucb": ("clucb", {}, [(1.037, 45.5), (1.009, 58.9), (1.169, 47.0)]),
    "clucb-plays": (
        "clucb", {"learns_plays_only": True}, [(1.019, 72.2), (1.005, 71.7), (1.175, 45.8)],
    ),
    "clucb2": ("clucb2", {}, [(1.043, 35.0), (1.010, 49.8), (1.191, 40.7)]),
    "clucb2t": ("clucb2t", {"floor": 1.0}, [(1.045, 32.0), (1.012, 47.4), (1.198, 39.1)]),
    "lcbce": ("lcbce", {}, [(1.024, 67.2), (1.001, 92.0), (1.000, 99.0)]),
    "maximin": ("maximin", {}, [(1.029, 61.1), (1.0, 100.0), (1.0, 100.0)]),
    "budget-first": ("", {}, [(1.0, 100.0)] * 3),
    "clucb-unknown": ("", {}, []),
    "refresh": ("", {}, []),
    "reserve-c4b+": ("", {}, []),
}  # fmt: skip
"""System -> its NumPy version and options, and target (ratio, fallback %) in each of ``SETTINGS``."""
ARMS = Setting(
    generator="one-hot",
    history_size=0,
    sigma=0.3,
    alpha=0.1,
    count=4,
    rounds=5000,
    theta=(0.5, 0.6, 0.5, 0.4, 0.2),
    baseline=(1.0, 0.0, 0.0, 0.0, 0.0),
)
ORACLE = Setting(
    rho=1.0,
    history_size=0,
    sigma=0.2,
    noise="uniform",
    alpha=0.1,
    count=8,
    theta=(0.5, 0.3, 0.0, 0.0, 0.0),
    norm_bound=0.6,
)


def measured(values: Any) -> list[float]:
    """[mean, standard error]."""
    return [round(float(np.mean(values)), 4), round(float(np.std(values) / np.sqrt(len(values))), 4)]


def apart(values: Any, target: float, unit: float) -> float:
    """Standard errors between a mean and a target that is rounded to ``unit``."""
    gap = max(abs(float(np.mean(values)) - target) - unit / 2.0, 0.0)
    error = float(np.std(values) / np.sqrt(len(values)))
    return round(gap / error, 2) if error else (0.0 if gap < 1e-9 else float("inf"))


def summary(metrics: Any) -> dict[str, Any]:
    """Metrics (episodes, len(Metric)) of one method in one setting."""
    return {
        "ratio": measured(metrics[:, Metric.REWARD_RATIO]),
        "fallback": measured(100.0 * metrics[:, Metric.FALLBACK]),
        "violations": int(metrics[:, Metric.VIOLATION].sum()),
    }


def table(episodes: int, seed: int) -> dict[str, Any]:
    methods = tuple(Method(name, name) for name in ROWS)
    out: dict[str, Any] = {}
    for number, (column, setting) in enumerate(SETTINGS.items()):
        for floor in (0.0, 1.0):
            told = tuple(m for m in methods if (m.label == "clucb2t") == (floor == 1.0))
            played = replace(setting, baseline_floor=floor)
            chunk = simulate(Study("field", "", told, (played,), (), episodes, seed), 0, episodes)
            for m, method in enumerate(told):
                found = chunk.metrics[:, 0, m]
                out.setdefault(method.label, {})[column] = {
                    **summary(found),
                    **_against_target(found, ROWS[method.label][2][number : number + 1]),
                    **_numpy(method.label, setting, episodes, seed),
                }
    return out


def _against_target(found: Any, targets: list[tuple[float, float]]) -> dict[str, Any]:
    """Metrics (episodes, len(Metric)) beside the target, if there is one."""
    if not targets:
        return {}
    ratio, fallback = targets[0]
    return {
        "target": [ratio, fallback],
        "standard_errors_apart": [
            apart(found[:, Metric.REWARD_RATIO], ratio, 1e-3),
            apart(100.0 * found[:, Metric.FALLBACK], fallback, 0.1),
        ],
    }


def _numpy(name: str, setting: Setting, episodes: int, seed: int) -> dict[str, Any]:
    system, options, _ = ROWS[name]
    if not system:
        return {}
    stories = [
        oracle_story(system, setting, scene(setting, seed, episode), **options)
        for episode in range(episodes)
    ]
    return {
        "numpy_ratio": measured([story.ratio for story in stories]),
        "numpy_fallback": measured([100.0 * story.fallback for story in stories]),
    }


def home(names: tuple[str, ...], setting: Setting, episodes: int, seed: int) -> dict[str, Any]:
    methods = tuple(Method(name, name) for name in names)
    chunk = simulate(Study("home", "", methods, (setting,), (), max(episodes, 2), seed), 0, episodes)
    return {name: summary(chunk.metrics[:, 0, m]) for m, name in enumerate(names)}


def long_arms(horizon: int = 100_000, alpha: float = 0.2, mean: float = 0.5) -> int:
    """Rounds of the baseline until budget-first-arms may play, five arms, sigma .3."""
    model = c4b.LinearModel(5, 0.3, 1.5)
    policy = c4b.Policy("budget-first-arms", model, alpha=alpha, horizon=horizon)
    assert isinstance(policy.gate, BudgetFirstArms)
    return math.ceil(policy.gate.regret(np.eye(5)) / (alpha * mean))


def round_times(pairs: int, seed: int, episodes: int = 64) -> dict[str, float]:
    """A round of clucb over a round of refresh: compiled in a study, and online with its outcome."""
    setting = next(iter(SETTINGS.values()))

    def simulated(name: str) -> float:
        study = Study("times", "", (Method(name, name),), (setting,), (), episodes, seed)
        began = time.process_time()
        simulate(study, 0, episodes)
        return time.process_time() - began

    made = scene(setting, seed, 0)

    def online(name: str) -> float:
        policy = c4b.Policy(name, setting.model(None), alpha=setting.alpha)
        told = {"baseline_mean": 1.0} if name == "clucb" else {}
        began = time.process_time()
        for pool, baseline in zip(made.pools, made.baselines, strict=True):
            policy.observe(policy.decide(pool, baseline, **told).id, 1.0)
        return time.process_time() - began

    ratios: dict[str, list[float]] = {"simulated": [], "online": []}
    for run in (simulated, online):
        run("clucb"), run("refresh")
        for _ in range(pairs):
            ratios[run.__name__].append(run("clucb") / run("refresh"))
    return {name: round(float(np.median(found)), 3) for name, found in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", type=int, default=16, help="episodes of the world of arms")
    parser.add_argument("--oracle", type=int, default=4, help="episodes of the oracle's world")
    parser.add_argument("--oracle-rounds", type=int, default=10_000)
    parser.add_argument("--slates", type=int, default=128, help="episodes of the world of slates")
    parser.add_argument("--times", type=int, default=21, help="pairs of runs that are timed")
    given = parser.parse_args()
    result: dict[str, Any] = {"episodes": given.episodes, "seed": given.seed}
    if given.episodes:
        result["table"] = table(given.episodes, given.seed)
    if given.arms:
        names = ("cucb", "cucb-unknown", "reserve-c4b+")
        result["arms"] = home(names, ARMS, given.arms, given.seed)
    if given.oracle:
        setting = replace(ORACLE, rounds=given.oracle_rounds)
        result["oracle"] = home(("c-squarecb", "c-fastcb"), setting, given.oracle, given.seed)
    if given.slates:
        result["slates"] = slates.home(("refresh", "reserve-c4b+"), given.slates, given.seed)
    result["long_arms"] = long_arms()
    if given.times:
        result["round_times"] = round_times(given.times, given.seed)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
