"""Draws docs/images/scale_out.png: decisions a second, one by one and in batches, on SQLite.

    python benchmarks/pictures/scale_out.py

Absolute numbers are this machine's; read the shape.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np
from drawing import CERTIFIED, new, save

from c4b import Deployment, LinearModel

BATCHES, SECONDS = (1, 2, 4, 8, 16, 32, 64, 128, 256), 1.5


def rate(dep: Deployment, batch: int, rng: np.random.Generator) -> float:
    """Durable decisions a second, each with 32 candidates of 5 features; the best of three portions."""
    rounds = [(np.c_[np.ones(32), rng.normal(size=(32, 4)) / 4], np.eye(5)[0]) for _ in range(batch)]
    best = 0.0
    for _ in range(3):
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < SECONDS / 3:
            made = dep.decide_many(rounds)
            dep.observe_many({each.id: 0.5 for each in made})
            count += batch
        best = max(best, count / (time.perf_counter() - began))
    return best


def main() -> None:
    rng = np.random.default_rng(0)
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for policy in ("reserve-c4b+", "refresh"):
            model = LinearModel(dim=5, noise=0.3, norm_bound=1.0)
            with Deployment.create(
                f"sqlite:///{folder}/{policy}.db", "shop", model, policy=policy
            ) as dep:
                rate(dep, 1, rng)  # warm
                rates[policy] = [rate(dep, batch, rng) for batch in BATCHES]
                print(policy, np.round(rates[policy]))
    figure, axes = new(height=3.9)
    for (policy, found), style in zip(rates.items(), ("o-", "s--"), strict=True):
        axes.plot(
            BATCHES,
            found,
            style,
            lw=2,
            color=CERTIFIED if policy == "reserve-c4b+" else "#777777",
            label=policy,
        )
    axes.set(xlabel="decisions that share one commit", ylabel="decided and observed, a second")
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, [str(batch) for batch in BATCHES])
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    axes.set_title("One process, one SQLite file, K = 32, d = 5", loc="left")
    save(figure, "scale_out")


if __name__ == "__main__":
    main()
