"""Draws docs/images/write_a_set.png: how wide the interval of one arm is, by set.

python benchmarks/pictures/write_a_set.py
"""

from __future__ import annotations

import sys

import numpy as np
from drawing import BENCHMARKS, CERTIFIED, PLAIN, UNSAFE, new, save

from c4b import Evidence, LinearModel

sys.path.insert(0, str(BENCHMARKS.parent / "examples"))
import my_set  # noqa: F401 (registers the set "arms")

DIM, SIGMA = 3, 0.1
SETS = {"self-normalized": PLAIN, "several-ridges": CERTIFIED, "arms": UNSAFE}


def main() -> None:
    seen = np.unique(np.geomspace(1, 3000, 40).astype(int))
    arms, means = np.eye(DIM), np.array([0.5, 0.4, 0.7])
    figure, axes = new(height=4.0)
    for (name, colour), style in zip(SETS.items(), (":", "-", "--"), strict=True):
        rng = np.random.default_rng(0)
        evidence = Evidence(LinearModel(DIM, noise=SIGMA, norm_bound=1.0, confidence=name))
        widths, before = [], 0
        for count in seen:
            rows = np.tile(arms, (count - before, 1))
            evidence.learn(rows, rows @ means + SIGMA * rng.normal(size=len(rows)))
            before = count
            widths.append(evidence.upper(arms[0]) - evidence.lower(arms[0]))
        axes.plot(seen, widths, style, color=colour, lw=2, label=name)
    axes.set(xscale="log", yscale="log", xlabel="times that each of three arms was played")
    axes.set_ylabel("width of the interval of one arm")
    axes.grid(alpha=0.25, which="both")
    axes.legend(frameon=False)
    save(figure, "write_a_set")


if __name__ == "__main__":
    main()
