"""Draws docs/images/replay.png: a randomised trial, replayed round by round.

    python benchmarks/pictures/replay.py [--seeds 10] [--first-seed 100]

Lines are means over orders of the rows, bands reach from the worst to the best.
"""

from __future__ import annotations

import argparse

import numpy as np
from drawing import CERTIFIED, KNOWN, PLAIN, UNSAFE, new, save, thousands
from realdata.trials import ALPHA, HISTORY, NOISE, NORM_BOUND, incentives

from c4b import LinearModel, Policy
from c4b._validate import Array
from c4b.replay import replay_queues

ROUNDS = 400
LINES = {
    "linucb": ("LinUCB, no gate", UNSAFE, "--"),
    "reserve-c4b+": ("reserve-c4b+", CERTIFIED, "-"),
}


def shares(seed: int) -> dict[str, Array]:
    """Share of people who came so far, in percent, after each round."""
    actions, came = incentives()
    order = np.random.default_rng([seed, 3]).permutation(len(actions))
    actions, came = actions[order], came[order]
    features = np.column_stack([np.ones(4), np.eye(4)[:, 1:]])
    past = np.flatnonzero(actions == 0)[:HISTORY]
    rest = np.setdiff1d(np.arange(len(actions)), past)
    found = {}
    for name in LINES:
        policy = Policy(name, LinearModel(4, noise=NOISE, norm_bound=NORM_BOUND), alpha=ALPHA)
        policy.learn(features[actions[past]], came[past])
        earned = replay_queues(policy, features, 0, actions[rest], came[rest]).rewards[:ROUNDS]
        found[name] = 100.0 * np.cumsum(earned) / np.arange(1, len(earned) + 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    asked = parser.parse_args()
    runs = [shares(seed) for seed in range(asked.first_seed, asked.first_seed + asked.seeds)]
    figure, axes = new()
    for name, (label, colour, style) in LINES.items():
        length = min(len(run[name]) for run in runs)
        every = np.array([run[name][:length] for run in runs])
        x = np.arange(1, length + 1)
        axes.fill_between(x, every.min(axis=0), every.max(axis=0), color=colour, alpha=0.13, lw=0)
        axes.plot(x, every.mean(axis=0), style, color=colour, label=label, lw=2)
    actions, came = incentives()
    usual, best = (100.0 * came[actions == n].mean() for n in (0, 2))
    for height, colour, words in (
        (usual, PLAIN, "no incentive: the incumbent"),
        (best, KNOWN, "2 dollars, always"),
    ):
        axes.axhline(height, color=colour, lw=1)
        axes.text(ROUNDS, height + 1, words, ha="right", color=colour)
    axes.set_xlim(10, ROUNDS)
    axes.set_ylim(20, 100)
    thousands(axes)
    axes.set_xlabel("people so far")
    axes.set_ylabel("came to learn their result, % so far")
    axes.set_title("A randomised trial replayed: 2834 people, four incentives", loc="left")
    axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.68))
    save(figure, "replay")


if __name__ == "__main__":
    main()
