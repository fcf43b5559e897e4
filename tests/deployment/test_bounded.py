"""Deployments whose rewards lie in a declared range: durable, audited, and closed to other rewards."""

from __future__ import annotations

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.errors import InvalidInput

BASELINE = np.array([1.0, 0.0, 0.0])
THETA = np.array([0.5, 0.2, -0.1])


@pytest.mark.parametrize("misspecification", [0.0, 0.001])
@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+"])
def test_a_clean_verdict(sqlite_url: str, policy: str, misspecification: float) -> None:
    rng = np.random.default_rng(2)
    model = LinearModel.bounded(3, 1.0, (0, 2), misspecification=misspecification)
    with Deployment.create(
        sqlite_url, "shop", model, policy, alpha=0.1, reserve=2.0, snapshot_every=20
    ) as dep:
        history = BASELINE + 0.3 * rng.normal(size=(60, 3))
        dep.learn(history, 2.0 * (rng.random(60) < history @ THETA / 2.0))
        waiting: list[tuple[str, float]] = []
        for n in range(60):
            candidates = BASELINE + 0.3 * rng.normal(size=(int(rng.integers(1, 5)), 3))
            made = dep.decide(candidates, BASELINE)
            played = BASELINE if made.action is None else candidates[made.action]
            waiting.append((made.id, 2.0 * float(rng.random() < played @ THETA / 2.0)))
            if n % 13 == 5:
                dep.executed(made.id, None if n % 2 else BASELINE + 0.05)
            if n % 3:
                id_, reward = waiting.pop(int(rng.integers(len(waiting))))
                dep.forget(id_, independent=True) if n % 17 == 4 else dep.observe(id_, reward)
        report = dep.audit(sample=5)
        assert report.clean, report
        assert report.level == "recomputed"
        assert report.precise >= 5
        assert report.largest_error < 1e-6
        state = dep.state()
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state() == state
        assert dep.configuration.model.rewards == (0.0, 2.0)


def test_rewards_out_of_range_write_nothing(sqlite_url: str) -> None:
    model = LinearModel.bounded(3, 1.0)
    with pytest.raises(InvalidInput, match="timeout_reward"):
        Deployment.create(sqlite_url, "shop", model, outcome_timeout=60.0, timeout_reward=-1.0)
    with Deployment.create(sqlite_url, "shop", model) as dep:
        with pytest.raises(InvalidInput, match=r"rewards\[1\]"):
            dep.learn([BASELINE, BASELINE], [1.0, 1.01])
        ids = [dep.decide([BASELINE + 0.1], BASELINE).id for _ in range(2)]
        state = dep.state()
        with pytest.raises(InvalidInput, match="0 to 1"):
            dep.observe(ids[0], 2.0)
        with pytest.raises(InvalidInput, match=r"outcomes\[1\]"):
            dep.observe_many([(ids[0], 1.0), (ids[1], -0.1)])
        assert dep.state() == state
        dep.observe_many([(ids[0], 1.0), (ids[1], 0.0)])
