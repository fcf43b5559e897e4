"""Draws docs/images/clicks.png: clicks won over the incumbent as time passes, safe and unsafe.

    python benchmarks/clicks_figure.py [--episodes 8] [--rounds 20000] [--rate 0.1] [--seed 50000]

Four items: 30 % better than the incumbent, as good, 15 % and 30 % worse. 2000 rounds of the incumbent are
known beforehand. Lines are averages over episodes, bands reach from the worst to the best episode.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import c4b
from c4b._validate import Array
from c4b.study.world.logistic_thompson import LogisticThompson

ALPHA, DIM = 0.05, 5
BASELINE, ITEMS = np.eye(DIM)[0], np.c_[np.ones(4), np.eye(4)]
LINES = {
    "clicks": ("certified: policy `clicks`", "#0072B2", "-"),
    "logistic-thompson": ("Thompson sampling, promises nothing", "#D55E00", "--"),
    "linucb": ("LinUCB, promises nothing", "#777777", ":"),
}
c4b.register_gate("logistic-thompson", summary="a yardstick", gated=False)(LogisticThompson)


def cumulative_uplift(policy: str, rate: float, rounds: int, seed: int) -> Array:
    """Mean reward so far over the incumbent's, minus 1, after each round."""
    rng, theta = np.random.default_rng(seed), rate * np.array([1.0, 0.3, 0.0, -0.15, -0.3])
    sound = policy == "clicks"
    model = c4b.LinearModel.bounded(DIM, 1.0) if sound else c4b.LinearModel(DIM, 0.5, 1.0)
    made = c4b.Policy(policy, model, alpha=ALPHA)
    made.learn(np.tile(BASELINE, (2000, 1)), (rng.random(2000) < rate).astype(float))
    means, coins = np.empty(rounds), rng.random(rounds)
    for t in range(rounds):
        decision = made.decide(ITEMS, BASELINE)
        played = BASELINE if decision.action is None else ITEMS[decision.action]
        means[t] = played @ theta
        made.observe(decision.id, float(coins[t] < means[t]))
    total: Array = np.cumsum(means) / (rate * np.arange(1, rounds + 1)) - 1.0
    return total


def draw(rate: float, rounds: int, episodes: int, seed: int, file: Path) -> None:
    plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(8.5, 4.6), layout="constrained")
    x = np.arange(1, rounds + 1)
    for policy, (label, colour, style) in LINES.items():
        runs = 100.0 * np.array(
            [cumulative_uplift(policy, rate, rounds, seed + n) for n in range(episodes)]
        )
        axes.fill_between(x, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.13, lw=0)
        axes.plot(x, runs.mean(axis=0), style, color=colour, label=label, lw=2)
    axes.axhline(-100.0 * ALPHA, color="black", lw=1)
    axes.text(rounds, -100.0 * ALPHA - 0.6, "promised: never below this line", ha="right", va="top")
    axes.axhline(0.0, color="black", lw=0.6, alpha=0.5)
    axes.text(rounds, 0.4, "the incumbent", ha="right", va="bottom", alpha=0.7)
    axes.set_ylim(-32, 32)
    axes.set_xlim(0, rounds)
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("visitors so far")
    axes.set_ylabel("clicks won so far, % of the incumbent's")
    axes.set_title(f"Four items, the incumbent is clicked by {100 * rate:g} % of visitors", loc="left")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.06))
    figure.savefig(file, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=50_000)
    parser.add_argument("--file", type=Path, default=Path("docs/images/clicks.png"))
    asked = parser.parse_args()
    draw(asked.rate, asked.rounds, asked.episodes, asked.seed, asked.file)
    print(asked.file)


if __name__ == "__main__":
    main()
