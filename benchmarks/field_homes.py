"""Home worlds of the field that are no worlds of a study: 100,000 rounds of arms, slates, and a log.

``benchmarks/field.py`` runs them. On the log of the off-policy gate, 4000 rows, the logging policy earns
what the baseline does. A gate that deploys at row n earns the evaluated policy's value from there on, so
the log has a reward ratio like any other world, and 'fallback' is the share of rows before n.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import slates

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from c4b.offpolicy import evaluate
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.log_world import MAX_WEIGHT, greedy_value, log_world

TITLES = ("arms", "long arms", "slates", "regression", "log")
"""Columns of the field's table that are homes."""
LONG_ARMS = Setting(
    generator="one-hot",
    history_size=0,
    sigma=0.3,
    alpha=0.2,
    count=4,
    rounds=100_000,
    theta=(0.5, 0.6, 0.5, 0.4, 0.2),
    baseline=(1.0, 0.0, 0.0, 0.0, 0.0),
)
ROUND_NUMBERS = np.arange(1, LONG_ARMS.rounds + 1)
LONG_EPISODES = 4
"""Of 100,000 rounds each; how long budget-first-arms saves depends on no draw."""
LOGS = 48
ROWS, BASELINE = 4000, 0.5
"""Of the log: its length and the mean reward of the baseline, and of the logging policy."""


def measured(values: Any) -> list[float]:
    """[mean, standard error]."""
    return [round(float(np.mean(values)), 4), round(float(np.std(values) / np.sqrt(len(values))), 4)]


def apart(got: list[float], target: float, unit: float) -> float:
    """Standard errors between a mean and a target that is rounded to ``unit``; both may be rounded."""
    gap = max(abs(got[0] - target) - unit / 2.0, 0.0)
    return round(gap / got[1], 2) if got[1] else (0.0 if gap < 1e-4 else float("inf"))


def long_arms(seed: int) -> tuple[int, dict[str, Any]]:
    """Rounds that budget-first-arms saves before its first play; reward ratio and fallback of all."""
    names = ("budget-first-arms", "cucb", "refresh", "reserve-c4b+")
    study = Study("long", "", tuple(Method(n, n) for n in names), (LONG_ARMS,), (), LONG_EPISODES, seed)
    chunk = simulate(study, 0, LONG_EPISODES)
    metrics, saving = chunk.metrics[:, 0], chunk.fallback_sum[0, 0] == LONG_EPISODES * ROUND_NUMBERS
    return int(saving.argmin()), {
        name: {
            "ratio": measured(metrics[:, m, Metric.REWARD_RATIO]),
            "fallback": measured(100.0 * metrics[:, m, Metric.FALLBACK]),
            "violations": int(metrics[:, m, Metric.VIOLATION].sum()),
        }
        for m, name in enumerate(names)
    }


def log(seed: int, episodes: int = LOGS) -> dict[str, Any]:
    """The off-policy gate on logs of a better policy, and of policies that must not be deployed."""
    seeds = range(1000 * seed, 1000 * seed + episodes)
    better = [evaluate(*log_world(s, ROWS), max_weight=MAX_WEIGHT) for s in seeds]
    rows = np.array([ROWS if r.deployed_at_row is None else r.deployed_at_row for r in better])
    value = greedy_value() / BASELINE
    worse = [evaluate(*log_world(s, ROWS, True), max_weight=MAX_WEIGHT).deploy for s in seeds]
    edge = [evaluate(*log_world(s, ROWS), max_weight=MAX_WEIGHT, fraction=value).deploy for s in seeds]
    return {
        "off-policy gate": {
            "ratio": measured((rows + (ROWS - rows) * value) / ROWS),
            "fallback": measured(100.0 * rows / ROWS),
            "violations": 0,
        },
        "deployed": [int(sum(r.deploy for r in better)), episodes],
        "median_row": float(np.median(rows)),
        "false_deployments": {"worse": [sum(worse), episodes], "at the edge": [sum(edge), episodes]},
    }


def homes(episodes: int, seed: int) -> dict[str, Any]:
    """``worlds``: rows like those of the study; ``slates`` and ``log`` in full."""
    saved, long = long_arms(seed)
    by_way, logged = slates.home(("refresh", "reserve-c4b+"), episodes, seed), log(seed)
    return {
        "worlds": {
            "long arms": long,
            "slates": {policy: ways["items"] for policy, ways in by_way.items()},
            "log": {"off-policy gate": logged.pop("off-policy gate")},
        },
        "long_arms_rounds_saved": saved,
        "slates": by_way,
        "log": logged,
    }
