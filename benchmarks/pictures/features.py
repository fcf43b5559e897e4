"""Draws docs/images/features.png: what features earn on MovieLens.

    python benchmarks/pictures/features.py [--seeds 5] [--first-seed 200] [--rounds 5000]

Dots are seeds, bars their means.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl
from drawing import CERTIFIED, PLAIN, new, save
from realdata.film_log import GENRES, POOL, past_and_rounds

from c4b import LinearModel, Policy
from c4b.features import FeatureBuilder, Interaction, Intercept, Number, OneHot, Part
from c4b.replay import FullRound, replay_full

HISTORY = 1000
GENRE: list[Part] = [Number(name, scale="none") for name in GENRES]
GENDER = OneHot("gender", labels=("F",))
PARTS: dict[str, list[Part]] = {
    "popularity": [Number("log_popularity")],
    "and genres": [Number("log_popularity"), *GENRE],
    "and past average": [Number("log_popularity"), *GENRE, Number("average")],
    "and genre by gender, age": [
        Number("log_popularity"),
        *GENRE,
        Number("average"),
        *(Interaction(genre, part) for genre in GENRE for part in (GENDER, Number("age"))),
    ],
}


def uplift(parts: list[Part], past: pl.DataFrame, rounds: pl.DataFrame) -> tuple[int, float]:
    """(number of features, films liked beyond the incumbent's, in percent) for the certified policy."""
    builder = FeatureBuilder([Intercept(), *parts]).fit(past)
    pools = builder.transform(rounds).reshape(-1, POOL, builder.dim)
    liked = rounds["liked"].to_numpy().reshape(-1, POOL)
    popular = rounds["log_popularity"].to_numpy().reshape(-1, POOL).argmax(axis=1)
    policy = Policy(model=LinearModel(builder.dim, noise=0.5, norm_bound=1.0), alpha=0.05)
    every = np.arange(HISTORY)
    policy.learn(pools[every, popular[every]], liked[every, popular[every]])
    live = range(HISTORY, len(pools))
    found = replay_full(policy, (FullRound(pools[n], int(popular[n]), liked[n]) for n in live))
    assert found.baseline_rewards is not None
    return builder.dim, 100.0 * (found.reward / float(found.baseline_rewards.mean()) - 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5000)
    asked = parser.parse_args()
    figure, axes = new(height=3.6)
    tables = [
        past_and_rounds(seed, HISTORY + asked.rounds)
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds)
    ]
    labels = []
    for at, (name, parts) in enumerate(PARTS.items()):
        found = [uplift(parts, *table) for table in tables]
        gains = [gain for _, gain in found]
        axes.barh(at, np.mean(gains), color=PLAIN if at == 0 else CERTIFIED, alpha=0.75, height=0.55)
        axes.plot(gains, [at] * len(gains), "o", color="black", markersize=4)
        axes.text(max(*gains, 0.0) + 0.4, at, f"{np.mean(gains):+.1f} %", va="center")
        print(name, found[0][0], np.round(gains, 1))
        labels.append(f"{name}\n{found[0][0]} features")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", lw=0.8)
    axes.set_xlabel("films liked beyond the incumbent's, %")
    axes.set_title(f"What features earn: {asked.rounds:,} recommendations on MovieLens", loc="left")
    save(figure, "features")


if __name__ == "__main__":
    main()
