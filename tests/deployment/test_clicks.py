"""Deployments of the policy `clicks`: recomputed by independent arithmetic, free plays and all."""

from __future__ import annotations

import numpy as np
import pytest

from c4b import Deployment, LinearModel

BASELINE = np.array([1.0, 0.0, 0.0])
ARMS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
THETA = np.array([0.3, 0.2, -0.2])


@pytest.mark.parametrize(("rows", "changing"), [(0, False), (200, False), (200, True)])
def test_a_clean_verdict(sqlite_url: str, rows: int, changing: bool) -> None:
    rng = np.random.default_rng(4)
    model = LinearModel.bounded(3, 1.0, (0, 2))
    with Deployment.create(sqlite_url, "shop", model, "clicks", alpha=0.2, snapshot_every=30) as dep:
        if rows:
            dep.learn(np.tile(BASELINE, (rows, 1)), 2.0 * (rng.random(rows) < 0.15))
        waiting: list[tuple[str, float]] = []
        plays = 0
        for n in range(120):
            baseline = BASELINE + np.array([0.0, 0.1 * (changing and n > 60), 0.0])
            made = dep.decide(ARMS, baseline)
            plays += made.action is not None
            played = baseline if made.action is None else ARMS[made.action]
            if n % 29 == 7:
                played = ARMS[0] if made.action is None else baseline
                dep.executed(made.id, played)
            waiting.append((made.id, 2.0 * float(rng.random() < played @ THETA / 2.0)))
            while len(waiting) > n % 4:
                dep.observe(*waiting.pop(0))
        report = dep.audit(sample=7)
        assert report.clean, report
        assert report.level == "recomputed"
        assert plays >= 5
        state = dep.state()
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state() == state
