"""Draws docs/images/rolling_out.png: a deployment in shadow, on a ramp, live, frozen and thawed.

python benchmarks/pictures/rolling_out.py
"""

from __future__ import annotations

import tempfile

import numpy as np
from drawing import save
from matplotlib.figure import Figure

from c4b import Deployment, LinearModel

ROUNDS = 250
"""Of each step."""
WINDOW = 50
STEPS = ("shadow", "ramp: 20 %", "live", "frozen", "thawed")


def main() -> None:
    rng = np.random.default_rng(0)
    theta, baseline = np.array([1.0, 0.6, 0.0]), np.array([1.0, 0.0, 0.0])
    model = LinearModel(dim=3, noise=0.2, norm_bound=1.5)
    left, proposed, banks = [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        Deployment.create(
            f"sqlite:///{folder}/shop.db", "shop", model, reserve=2.0, mode="shadow"
        ) as dep,
    ):
        for step in STEPS:
            if step == "ramp: 20 %":
                dep.go_live("the shadow looks right")
                dep.ramp(0.2, "the first week")
            elif step == "live":
                dep.ramp(1.0, "no complaints")
            elif step == "frozen":
                dep.freeze("checkout is down")
            elif step == "thawed":
                dep.thaw("checkout is up")
            for _ in range(ROUNDS):
                around = rng.normal(size=(8, 2))
                around *= 0.4 / np.linalg.norm(around, axis=1, keepdims=True)
                made = dep.decide(np.column_stack([np.ones(8), around]), baseline)
                x = baseline if made.action is None else np.array([1.0, *around[made.action]])
                dep.observe(made.id, float(x @ theta + 0.2 * rng.normal()))
                left.append(made.action is not None)
                proposed.append(made.action is not None or made.proposed is not None)
                banks.append(made.bank)
    figure = Figure(figsize=(8.5, 4.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, 1.0])
    rounds = np.arange(1, len(left) + 1)
    upper.plot(rounds, _share(proposed), color="#888888", linestyle="--", label="what the gate would do")
    upper.plot(rounds, _share(left), color="#0072B2", label="what was done")
    upper.set_ylabel(f"% of the last {WINDOW} rounds\nthat leave the incumbent")
    upper.set_ylim(-4, 112)
    upper.legend(frameon=False, loc="center left", fontsize=9)
    lower.plot(rounds, banks, color="#0072B2")
    lower.set_ylabel("bank,\nunits of reward")
    lower.set_xlabel("decision")
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        for n in range(1, len(STEPS)):
            axes.axvline(n * ROUNDS, color="#bbbbbb", linewidth=0.8)
    for n, step in enumerate(STEPS):
        upper.text((n + 0.5) * ROUNDS, 105, step, ha="center", va="center", fontsize=10)
    save(figure, "rolling_out")


def _share(values: list[bool]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    n = np.arange(1, len(values) + 1)
    start = np.maximum(n - WINDOW, 0)
    return 100.0 * (sums[n] - sums[start]) / (n - start)


if __name__ == "__main__":
    main()
