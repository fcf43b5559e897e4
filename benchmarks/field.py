"""The systems of the field in every world of theirs: one table, one figure, and the targets.

    python benchmarks/field.py [--seed 4242] [--episodes 128] [--regression 16] [--out results/field]

Runs the study ``comparators``, its slow world of regression over fewer episodes, and the homes that are
no worlds of a study (``field_homes.py``). Writes ``field.json``, ``field.md`` and ``field.png``. In the
JSON, ``worlds`` has the reward ratio and the fallback in percent with standard errors, and in how many
episodes a system's own promise was broken; ``acceptance`` puts them beside the targets and beside
independent NumPy versions on the same draws (``--numpy 0`` leaves these out); ``round_times`` is a round
of clucb over one of refresh (``--times 0`` leaves it out). The study goes on where an interrupted run
stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import field_figure
import field_homes
import numpy as np
from field_homes import apart, measured

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import c4b
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.results.results import Results
from c4b.study.spec import study_file
from c4b.study.spec.plan import Method, Study
from support.field_scenes import SETTINGS, oracle_story, scene

PAPER = {
    "diverse .15/.3": {"history": "diverse", "rho": 0.15, "sigma": 0.3},
    "diverse .8/.3": {"history": "diverse", "rho": 0.8, "sigma": 0.3},
    "baseline .15/.3": {"history": "baseline", "rho": 0.15, "sigma": 0.3},
    "baseline .8/.3": {"history": "baseline", "rho": 0.8, "sigma": 0.3},
}
NAMED = {
    "trap: worse": "trap: all candidates worth .93",
    "trap: worse arms": "trap: all arms worth .93",
    "trap: equal": "trap: all candidates equal",
    "arms": "home: arms",
    "log": "home: log",
}
REGRESSION = "home: regression"
"""Played by gates in Python for 10,000 rounds, so over fewer episodes.
"""
"""Columns of the table that are worlds of the study, and their names there."""
COLUMNS = (*PAPER, "trap: worse", "trap: worse arms", "trap: equal", *field_homes.TITLES)
KNOWS_FLOOR = ("clucb2t",)
"""Told that the baseline's mean is at least 1, in the paper's settings."""

TARGETS: dict[str, tuple[str, dict[str, Any], list[tuple[float, float]]]] = {
    "clucb": ("clucb", {}, [(1.037, 45.5), (1.009, 58.9), (1.169, 47.0)]),
    "clucb-plays": (
        "clucb", {"learns_plays_only": True}, [(1.019, 72.2), (1.005, 71.7), (1.175, 45.8)],
    ),
    "clucb2": ("clucb2", {}, [(1.043, 35.0), (1.010, 49.8), (1.191, 40.7)]),
    "clucb2t": ("clucb2t", {"floor": 1.0}, [(1.045, 32.0), (1.012, 47.4), (1.198, 39.1)]),
    "lcbce": ("lcbce", {}, [(1.024, 67.2), (1.001, 92.0), (1.000, 99.0)]),
    "maximin": ("maximin", {}, [(1.029, 61.1), (1.0, 100.0), (1.0, 100.0)]),
    "budget-first": ("", {}, [(1.0, 100.0)] * 3),
}  # fmt: skip
"""System -> its NumPy version and options, and target (ratio, fallback %) in each of ``SETTINGS``."""


def world(results: Results, setting: int, labels: list[str]) -> dict[str, Any]:
    """What each system earns in one setting of the study."""
    out = {}
    for label in labels:
        ratio = results.values(setting, label, Metric.REWARD_RATIO)
        out[label] = {
            "ratio": measured(ratio),
            "fallback": measured(100.0 * results.values(setting, label, Metric.FALLBACK)),
            "violations": int(results.values(setting, label, Metric.VIOLATION).sum()),
        }
    return out


def worlds(results: Results) -> dict[str, Any]:
    """Every column that is a world of the study."""
    out = {}
    for title, fields in PAPER.items():
        plain, floored = (results.find(world=_paper_name(fields, floor)) for floor in (0.0, 1.0))
        labels = results.players(plain)
        out[title] = world(results, plain, [name for name in labels if name not in KNOWS_FLOOR])
        out[title] |= world(results, floored, [name for name in labels if name in KNOWS_FLOOR])
    for title, name in NAMED.items():
        setting = results.find(world=name)
        out[title] = world(results, setting, results.players(setting))
    return out


def _paper_name(fields: dict[str, Any], floor: float) -> str:
    values = {**fields, "baseline_floor": floor}
    return ", ".join(["paper", *(f"{key} {value}" for key, value in values.items())])


def budget_first(episodes: int, seed: int) -> dict[str, Any]:
    """In the settings that have a target."""
    study = Study(
        "first", "", (Method("budget-first", "budget-first"),), (*SETTINGS.values(),), (), episodes, seed
    )
    metrics = simulate(study, 0, episodes).metrics[:, :, 0]
    return {
        column: {
            "ratio": measured(metrics[:, s, Metric.REWARD_RATIO]),
            "fallback": measured(100.0 * metrics[:, s, Metric.FALLBACK]),
            "violations": int(metrics[:, s, Metric.VIOLATION].sum()),
        }
        for s, column in enumerate(SETTINGS)
    }


def acceptance(found: dict[str, Any], results: Results, numpy_versions: bool) -> dict[str, Any]:
    """Standard errors between each target, rounded as it is published, and what was measured."""
    study = results.study
    out: dict[str, Any] = {}
    for system, (_, _, targets) in TARGETS.items():
        for (column, setting), (ratio, fallback) in zip(SETTINGS.items(), targets, strict=True):
            got = found[column][system]
            row = {
                "target": [ratio, fallback],
                "measured": [got["ratio"][0], got["fallback"][0]],
                "standard_errors_apart": [
                    apart(got["ratio"], ratio, 1e-3), apart(got["fallback"], fallback, 0.1),
                ],
            }  # fmt: skip
            if numpy_versions:
                row |= _numpy(system, setting, study.episodes, study.seed)
            out.setdefault(system, {})[column] = row
    return out


def _numpy(name: str, setting: Any, episodes: int, seed: int) -> dict[str, Any]:
    system, options, _ = TARGETS[name]
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
    for timed in (simulated, online):
        timed("clucb"), timed("refresh")
        for _ in range(pairs):
            ratios[timed.__name__].append(timed("clucb") / timed("refresh"))
    return {name: round(float(np.median(found)), 3) for name, found in ratios.items()}


def markdown(result: dict[str, Any]) -> str:
    """Reward ratios of every system in every column; * marks a broken promise."""
    found = result["worlds"]
    systems = dict.fromkeys(system for column in COLUMNS for system in found[column])
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for system in systems:
        cells = []
        for column in COLUMNS:
            got = found[column].get(system)
            broken = "" if got is None or not got["violations"] else "*"
            cells.append("" if got is None else f"{got['ratio'][0]:.3f}{broken}")
        lines.append(f"| `{system}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument("--regression", type=int, default=16, help="episodes of that world")
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--out", type=Path, default=Path("results/field"))
    parser.add_argument("--jobs", type=int, default=None, help="threads of the study")
    parser.add_argument("--numpy", type=int, default=1, help="0: without the NumPy versions")
    parser.add_argument("--times", type=int, default=21, help="pairs of runs that are timed")
    given = parser.parse_args()
    study = study_file.load("comparators", given.seed).with_(episodes=given.episodes)
    slow = tuple(setting for setting in study.settings if setting.world == REGRESSION)
    rest = tuple(setting for setting in study.settings if setting.world != REGRESSION)
    results = run(study.with_(settings=rest), given.out / "comparators", jobs=given.jobs)
    found = worlds(results)
    regression = study.with_(settings=slow, episodes=given.regression)
    slow_results = run(regression, given.out / "regression", jobs=given.jobs)
    found["regression"] = world(slow_results, 0, slow_results.players(0))
    for column, first in budget_first(given.episodes, given.seed).items():
        found[column]["budget-first"] = first
    homes = field_homes.homes(given.episodes, given.seed)
    for title, systems in homes.pop("worlds").items():
        found[title] = {**found.get(title, {}), **systems}
    result: dict[str, Any] = {
        "episodes": given.episodes,
        "seed": given.seed,
        "regression_episodes": given.regression,
    }
    result |= {"worlds": found, **homes}
    result["acceptance"] = acceptance(found, results, bool(given.numpy))
    if given.times:
        result["round_times"] = round_times(given.times, given.seed)
    text = json.dumps(result, indent=1)
    (given.out / "field.json").write_text(text + "\n", encoding="utf-8")
    (given.out / "field.md").write_text(markdown(result), encoding="utf-8")
    field_figure.draw(result, given.out / "field.png")
    print(text)


if __name__ == "__main__":
    main()
