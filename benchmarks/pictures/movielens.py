"""Draws docs/images/movielens.png: real users, films liked beyond what the incumbent would have got.

    python benchmarks/pictures/movielens.py [--seeds 10] [--first-seed 100] [--rounds 20000]

Lines are means over the seeds, bands reach from the worst to the best seed. Features and constants were
chosen on seeds below 10 and from 300 to 311.
"""

from __future__ import annotations

import argparse

import numpy as np
from drawing import CERTIFIED, KNOWN, UNSAFE, new, save, thousands
from realdata import movielens as ml

from c4b._validate import Array

FIRST = 100
"""Shares of fewer rounds are noise."""
LINES = {
    "linucb": ("LinUCB: learns, promises nothing", UNSAFE, "--"),
    "best past average": ("best past average: never learns, promises nothing", KNOWN, ":"),
    "reserve-c4b+": ("reserve-c4b+: learns, keeps its promise", CERTIFIED, "-"),
}


def gains(seed: int, rounds: int) -> dict[str, Array]:
    """Films liked beyond the incumbent's in the same rounds, in percent, from round FIRST on."""
    world = ml.world(seed, rounds)
    earned = {name: world.replay(name).rewards for name in ("reserve-c4b+", "linucb")}
    earned["best past average"] = world.earned(world.best_average)
    incumbent = np.cumsum(world.earned(world.popular))[FIRST - 1 :]
    return {
        name: 100.0 * (np.cumsum(rewards)[FIRST - 1 :] / incumbent - 1.0)
        for name, rewards in earned.items()
    }


def _last_below(gain: Array, level: float) -> int | None:
    below = np.flatnonzero(gain < level)
    return int(below[-1]) + FIRST if len(below) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20_000)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    runs = [gains(seed, asked.rounds) for seed in seeds]
    figure, axes = new(height=4.8)
    x = np.arange(FIRST, asked.rounds + 1)
    for name, (label, colour, style) in LINES.items():
        all_runs = np.array([run[name] for run in runs])
        axes.fill_between(x, all_runs.min(axis=0), all_runs.max(axis=0), color=colour, alpha=0.13, lw=0)
        axes.plot(x, all_runs.mean(axis=0), style, color=colour, label=label, lw=2)
        print(f"{name}: worst {all_runs.min():.1f} %, at the end {all_runs[:, -1].mean():.1f} %")
        for level in (-100.0 * ml.ALPHA, 0.0):
            print(f"  mean below {level:g} % up to round {_last_below(all_runs.mean(axis=0), level)}")
        last = _last_below(all_runs.min(axis=0), -100.0 * ml.ALPHA)
        print(f"  some seed below the promise up to round {last}")
    axes.axhline(-100.0 * ml.ALPHA, color="black", lw=1)
    axes.text(
        asked.rounds, -100.0 * ml.ALPHA - 0.5, "promised: never below this line", ha="right", va="top"
    )
    axes.axhline(0.0, color="black", lw=0.6, alpha=0.5)
    axes.text(400, 0.4, "the incumbent: the most popular film", va="bottom", alpha=0.7)
    axes.set_xscale("log")
    axes.set_xlim(FIRST, asked.rounds)
    axes.set_xticks([100, 300, 1000, 3000, 10_000, 20_000])
    axes.minorticks_off()
    axes.set_ylim(-32, 45)
    thousands(axes)
    axes.set_xlabel("recommendations so far")
    axes.set_ylabel("films liked so far beyond the incumbent's, %")
    axes.set_title("MovieLens: 643 real users, one of ten films recommended each time", loc="left")
    axes.legend(frameon=False, loc="lower right")
    save(figure, "movielens")


if __name__ == "__main__":
    main()
