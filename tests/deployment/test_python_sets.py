"""A deployment over a confidence set in plain Python: decided, reopened, and audited by replay."""

from __future__ import annotations

import numpy as np

from c4b import Deployment, LinearModel
from c4b.evidence import PythonSet, SetView, register_set


def _rebuild(view: SetView) -> None:
    """The norm ball alone: it learns nothing, and is right."""
    view.inverse[0] = np.eye(view.model.dim)
    view.estimate[0] = 0.0
    view.radius[0] = view.model.norm_bound


BALL = PythonSet(
    "ball-of-a-test", "the norm ball", lambda model: np.array([model.ridge]), rebuild=_rebuild
)


def test_it_is_audited_by_replay(sqlite_url: str) -> None:
    register_set(BALL)
    model = LinearModel(dim=2, noise=0.1, norm_bound=1.0, confidence=BALL.name)
    with Deployment.create(sqlite_url, "shop", model, reserve=1.0) as dep:
        dep.learn([[1.0, 0.0]], [0.5])
        for n in range(5):
            decision = dep.decide([[1.0, 0.1 * n]], [1.0, 0.0])
            dep.observe(decision.id, 0.5)
    with Deployment.open(sqlite_url, "shop") as dep:
        report = dep.audit()
        assert report.clean, report
        assert (report.level, report.decisions) == ("replayed", 5)
