"""Draws docs/images/choose_the_numbers.png: what happens when a declared number is too large.

    python benchmarks/pictures/choose_the_numbers.py [--seeds 10] [--first-seed 300]

The randomised trial of Thornton (2008), replayed: who came to learn a test's result, by incentive. The
incumbent is no incentive; 100 of its rows are history. Lines are medians over orders of the rows, bands
reach from the best to the worst.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from drawing import CERTIFIED, new, save
from realdata.trials import incentives

from c4b import LinearModel, Policy
from c4b.replay import replay_queues

HISTORY = 100
DECLARED = {"noise": 0.5, "norm_bound": 1.0, "alpha": 0.05, "reserve": 0.0}
PANELS: dict[str, tuple[str, Sequence[float]]] = {
    "norm_bound": ("norm bound S", (0.75, 1.0, 2.0, 4.0, 8.0)),
    "alpha": ("share at risk, alpha", (0.02, 0.05, 0.1, 0.2)),
    "reserve": ("reserve, in people who come", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
}


def opened(seed: int, **declared: float) -> int:
    """The first round with an incentive."""
    actions, came = incentives()
    order = np.random.default_rng([seed, 3]).permutation(len(actions))
    actions, came = actions[order], came[order]
    features = np.column_stack([np.ones(4), np.eye(4)[:, 1:]])
    past = np.flatnonzero(actions == 0)[:HISTORY]
    rest = np.setdiff1d(np.arange(len(actions)), past)
    model = LinearModel(4, noise=declared["noise"], norm_bound=declared["norm_bound"])
    policy = Policy(model=model, alpha=declared["alpha"], reserve=declared["reserve"])
    policy.learn(features[actions[past]], came[past])
    found = replay_queues(policy, features, 0, actions[rest], came[rest])
    return found.opened_at or found.rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=300)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    figure, panels = new(columns=len(PANELS), width=10.0, height=3.6, sharey=True)
    for axes, (name, (label, values)) in zip(panels, PANELS.items(), strict=True):
        rounds = np.array([[opened(seed, **{**DECLARED, name: v}) for seed in seeds] for v in values])
        axes.fill_between(
            values, rounds.min(axis=1), rounds.max(axis=1), color=CERTIFIED, alpha=0.13, lw=0
        )
        axes.plot(values, np.median(rounds, axis=1), "o-", color=CERTIFIED, lw=2)
        axes.axvline(DECLARED[name], color="black", lw=0.8, ls=":")
        axes.set_xlabel(label)
        axes.grid(alpha=0.25)
        print(name, dict(zip(values, np.median(rounds, axis=1), strict=True)))
    panels[0].set_ylabel("first round with an incentive")
    panels[0].set_ylim(0, None)
    figure.suptitle(
        "When the gate opens, by what was declared (dotted: as in the other panels)", x=0.01, ha="left"
    )
    save(figure, "choose_the_numbers")


if __name__ == "__main__":
    main()
