"""Width of the set for rewards in a range, over that of `unbiased` at sigma = 1/2. Prints JSON lines.

    python benchmarks/bounded_width.py [--confidence bounded-3] [--seeds 3] [--seed 40]

Features (1, u), u uniform on the unit sphere, and clicks of rate p (1 + .35 u_1). For each rate,
dimension and norm bound: the largest ratio of widths over numbers of rows from 5 to 20,000, the number of
rows where it is, and the ratio at 20,000 rows; of a contrast, x(a) - .95 x(b). Averages over seeds.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import c4b

ROWS = (5, 10, 20, 40, 80, 150, 300, 600, 1200, 2500, 5000, 20_000)
RATES = (0.005, 0.03, 0.1, 0.3, 0.7)


def ratios(confidence: str, dim: int, rate: float, norm_bound: float, seed: int) -> list[float]:
    """Width over that of `unbiased`, for each number of rows."""
    rng = np.random.default_rng([seed, dim])
    u = rng.normal(size=(ROWS[-1], max(dim - 1, 1)))
    u /= np.linalg.norm(u, axis=1)[:, None]
    features = np.c_[np.ones(len(u)), u][:, :dim]
    rewards = (rng.random(len(u)) < rate * (1.0 + 0.35 * u[:, 0] * (dim > 1))).astype(float)
    contrast = features[0] - 0.95 * np.eye(dim)[0]
    models = (
        c4b.LinearModel(dim, 0.5, norm_bound, confidence=confidence, rewards=(0.0, 1.0)),
        c4b.LinearModel(dim, 0.5, norm_bound, confidence="unbiased"),
    )
    sets, out, done = [c4b.Evidence(model) for model in models], [], 0
    for rows in ROWS:
        widths = []
        for each in sets:
            each.learn(features[done:rows], rewards[done:rows])
            widths.append(each.upper(contrast) - each.lower(contrast))
        out.append(widths[0] / widths[1])
        done = rows
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--confidence", default="bounded-3")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=40)
    asked = parser.parse_args()
    for dim in (1, 2, 5, 10, 20):
        for rate in RATES:
            for norm_bound in (1.0, 4.0):
                seeds = range(asked.seed, asked.seed + asked.seeds)
                each = [ratios(asked.confidence, dim, rate, norm_bound, seed) for seed in seeds]
                means = np.mean(each, axis=0)
                worst = int(np.argmax(means))
                row = {"dim": dim, "rate": rate, "norm_bound": norm_bound, "rows": ROWS[worst]}
                largest = {
                    "largest": round(float(means[worst]), 3),
                    "at_20000": round(float(means[-1]), 3),
                }
                print(json.dumps({**row, **largest}), flush=True)


if __name__ == "__main__":
    main()
