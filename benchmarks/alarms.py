"""How soon alarms tell that the model is wrong. Prints JSON lines.

    python benchmarks/alarms.py [--episodes 100]

``reserve-c4b+`` in the paper's world (d = 5, 32 candidates of radius .8, 20 diverse historical rows,
declared sigma .3), which breaks one assumption. Delay: rounds from the break to the first decision with
an alarm, at most 1000 rounds; quantiles count an episode without alarm as later than that (null).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import c4b

Array = NDArray[np.float64]
THETA, BASELINE = np.array([1.0, 0.6, 0.0, 0.0, 0.0]), np.eye(5)[0]
SIGMA, RHO, SIZE, ROUNDS = 0.3, 0.8, 32, 1000


def linear(x: Array, t: int) -> float:
    return float(x @ THETA)


def drift(after: int) -> Callable[[Array, int], float]:
    """All but the baseline's mean changes sign after so many rounds."""
    other = np.where(BASELINE == 1.0, THETA, -THETA)
    return lambda x, t: float(x @ (THETA if t < after else other))


def bent(height: float) -> Callable[[Array, int], float]:
    """A wave of this height along the second feature; 0 for the baseline."""
    return lambda x, t: float(x @ THETA + height * np.sin(3.0 * np.pi * x[1] / RHO))


class World(NamedTuple):
    what: str
    mean: Callable[[Array, int], float]
    sigma: float = SIGMA
    broken_at: int = 0


WORLDS = (
    World("none: the model holds", linear),
    *(World(f"noise {k} x sigma", linear, k * SIGMA) for k in (1.5, 2.0, 3.0)),
    *(World(f"drift after {n} rounds", drift(n), SIGMA, n) for n in (20, 100, 400)),
    *(World(f"nonlinear, wave of {h}", bent(h)) for h in (0.3, 0.6, 1.0)),
)


def features(rng: np.random.Generator, size: int, radius: float) -> Array:
    u = rng.normal(size=(size, 4))
    return np.c_[np.ones(size), radius * u / np.linalg.norm(u, axis=1, keepdims=True)]


def delay(world: World, seed: int) -> tuple[int | None, str | None, bool]:
    """(rounds until the alarm, which one, whether D was below 0 at any time before)."""
    rng = np.random.default_rng(seed)
    policy = c4b.Policy("reserve-c4b+", c4b.LinearModel(dim=5, noise=SIGMA, norm_bound=1.5))
    rows = features(rng, 20, RHO)
    policy.learn(rows, [world.mean(x, 0) + world.sigma * rng.normal() for x in rows])
    truth, below = 0.0, False
    for t in range(ROUNDS):
        pool = features(rng, SIZE, RHO)
        decision = policy.decide(pool, BASELINE)
        if decision.alarm:
            return max(t - world.broken_at, 0), decision.alarm, below
        x = BASELINE if decision.action is None else pool[decision.action]
        truth += world.mean(x, t) - 0.95 * world.mean(BASELINE, t)
        below |= truth < 0.0
        policy.observe(decision.id, world.mean(x, t) + world.sigma * rng.normal())
    return None, None, below


def summary(world: World, episodes: int) -> dict[str, object]:
    runs = [delay(world, seed) for seed in range(episodes)]
    times = sorted(np.inf if d is None else float(d) for d, _, _ in runs)
    quantiles = {
        f"delay_{int(100 * q)}": times[min(int(q * episodes), episodes - 1)] for q in (0.1, 0.5, 0.9)
    }
    return {
        "broken": world.what,
        "episodes": episodes,
        "alarmed": sum(d is not None for d, _, _ in runs) / episodes,
        **{key: None if np.isinf(value) else int(value) for key, value in quantiles.items()},
        "empty_set": sum("norm bound" in (why or "") for _, why, _ in runs),
        "residuals": sum("residuals" in (why or "") for _, why, _ in runs),
        "below_before_alarm": sum(below for *_, below in runs) / episodes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    episodes = parser.parse_args().episodes
    for world in WORLDS:
        print(json.dumps(summary(world, episodes)), flush=True)


if __name__ == "__main__":
    main()
