"""Draws docs/images/shadow_then_live.png: MovieLens in shadow, on a ramp and live, without any history.

python benchmarks/pictures/shadow_then_live.py
"""

from __future__ import annotations

import tempfile

import numpy as np
from drawing import CERTIFIED, PLAIN, save
from matplotlib.figure import Figure
from realdata import movielens

from c4b import Deployment
from c4b._validate import Array

STEPS = {"shadow": 1000, "ramp: 20 %": 1000, "live": 2000}
WINDOW = 400
SEED, RESERVE = 100, 1.0


def main() -> None:
    world = movielens.world(SEED, sum(STEPS.values()) - movielens.HISTORY)
    left, proposed, liked, usual = [], [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        Deployment.create(
            f"sqlite:///{folder}/films.db",
            "films",
            world.model,
            alpha=movielens.ALPHA,
            reserve=RESERVE,
            mode="shadow",
        ) as dep,
    ):
        visitors = iter(range(len(world.rewards)))
        for step, count in STEPS.items():
            if step == "ramp: 20 %":
                dep.go_live("the proposals look right")
                dep.ramp(0.2, "the first week")
            elif step == "live":
                dep.ramp(1.0, "no complaints")
            for _ in range(count):
                n = next(visitors)
                films, base = world.features[n], int(world.popular[n])
                made = dep.decide(films, films[base])
                shown = base if made.action is None else made.action
                dep.observe(made, float(world.rewards[n, shown]))
                left.append(made.action is not None)
                proposed.append(made.action is not None or made.proposed is not None)
                liked.append(world.rewards[n, shown])
                usual.append(world.rewards[n, base])
    draw(_recent(left), _recent(proposed), _recent(liked), _recent(usual))


def draw(left: Array, proposed: Array, liked: Array, usual: Array) -> None:
    figure = Figure(figsize=(8.5, 5.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    rounds = np.arange(1, len(left) + 1)
    upper.plot(rounds, proposed, color=PLAIN, linestyle="--", label="what the gate would do")
    upper.plot(rounds, left, color=CERTIFIED, label="what was done")
    upper.set_ylabel("% of rounds that\nleave the incumbent")
    upper.set_ylim(-4, 112)
    upper.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.35), fontsize=9)
    late = rounds >= WINDOW // 2  # shares of fewer rounds are noise
    lower.plot(
        rounds[late], usual[late], color=PLAIN, linestyle="--", label="the incumbent, same visitors"
    )
    lower.plot(rounds[late], liked[late], color=CERTIFIED, label="what was shown")
    lower.set_ylabel("films liked, %")
    lower.set_ylim(60, 90)
    lower.set_xlabel("visitors")
    lower.legend(frameon=False, loc="upper left", fontsize=9)
    ends = np.cumsum(list(STEPS.values()))
    for axes in (upper, lower):
        for end in ends[:-1]:
            axes.axvline(end, color="#bbbbbb", linewidth=0.8)
    for step, end in zip(STEPS, ends, strict=True):
        upper.text(end - STEPS[step] / 2, 105, step, ha="center", va="center", fontsize=10)
    save(figure, "shadow_then_live")


def _recent(values: list[bool] | list[float]) -> Array:
    """Percent of the last WINDOW rounds."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    n = np.arange(1, len(values) + 1)
    start = np.maximum(n - WINDOW, 0)
    shares: Array = 100.0 * (sums[n] - sums[start]) / (n - start)
    return shares


if __name__ == "__main__":
    main()
