"""Draws docs/images/first_deployment.png: what `c4b deploy plot` shows of a simulated shop.

python benchmarks/pictures/first_deployment.py
"""

from __future__ import annotations

import numpy as np
from drawing import IMAGES

from c4b import Deployment, LinearModel
from c4b.deployment.questions import export

ROUNDS, LATE = 2000, 40


def main() -> None:
    rng, truth = np.random.default_rng(3), np.array([0.5, 0.15])
    model = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    with Deployment.create("memory://picture", "homepage", model, reserve=0.5) as dep:
        waiting: list[tuple[str, float]] = []
        for _ in range(ROUNDS):
            offers = np.c_[np.ones(5), rng.uniform(-1, 1, 5)]
            made = dep.decide(offers, [1.0, 0.0])
            shown = np.array([1.0, 0.0]) if made.action is None else offers[made.action]
            waiting.append((made.id, float(shown @ truth + 0.1 * rng.normal())))
            if rng.random() < len(waiting) / (2 * LATE):
                dep.observe_many(dict(waiting))
                waiting.clear()
        export.plot(dep, IMAGES / "first_deployment.png")
    print("docs/images/first_deployment.png")


if __name__ == "__main__":
    main()
