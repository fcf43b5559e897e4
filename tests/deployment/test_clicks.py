"""Deployments of the policy `clicks`: recomputed by independent arithmetic, free plays and all."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.deployment.audit.recomputed.recomputed_counterweight import counterweight
from c4b.policies import CandidateField
from support.forgeries import Forgery, another, only_one
from support.shop_world import forge

BASELINE = np.array([1.0, 0.0, 0.0])
ARMS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
THETA = np.array([0.3, 0.2, -0.2])


def test_a_caller_who_lets_numpy_raise_is_told_no_finding(sqlite_url: str) -> None:
    with (
        np.errstate(all="raise"),
        Deployment.create(sqlite_url, "shop", LinearModel.bounded(3, 1.0), "clicks") as dep,
    ):
        dep.observe(dep.decide(ARMS, BASELINE), 1.0)
        dep.decide(ARMS, BASELINE)
        assert dep.audit().clean


@pytest.mark.parametrize(
    ("rows", "changing", "confidence", "highest"),
    [
        (0, False, "bounded-3", 2.0),
        (200, False, "bounded-3", 0.5),
        (200, True, "bounded-3", 2.0),
        (200, False, "bounded-2", 2.0),
    ],
)
def test_a_clean_verdict(
    sqlite_url: str, rows: int, changing: bool, confidence: str, highest: float
) -> None:
    rng = np.random.default_rng(4)
    model = LinearModel(3, 0.5 * highest, 1.0, confidence=confidence, rewards=(0, highest))
    with Deployment.create(sqlite_url, "shop", model, "clicks", alpha=0.2, snapshot_every=30) as dep:
        if rows:
            dep.learn(np.tile(BASELINE, (rows, 1)), highest * (rng.random(rows) < 0.3 / highest))
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
            waiting.append((made.id, highest * float(rng.random() < played @ THETA / highest)))
            while len(waiting) > n % 4:
                dep.observe(*waiting.pop(0))
        report = dep.audit(sample=7)
        assert report.clean, report
        assert report.level == "recomputed"
        assert plays >= 5
        state = dep.state()
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state() == state


@pytest.fixture(scope="module")
def counterweights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A pool around the baseline: where one direction has used up its credit the opposite is played.
    The store, and the entry of a counterweight that was not the only candidate in question."""
    path = tmp_path_factory.mktemp("counterweights") / "shop.db"
    rng, contested, weights = np.random.default_rng(5), None, 0
    directions = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.6, 0.8], [-0.6, -0.8]])
    model = LinearModel.bounded(3, 1.0)
    with Deployment.create(
        f"sqlite:///{path}", "shop", model, "clicks", alpha=0.1, snapshot_every=60
    ) as dep:
        dep.learn(np.tile(BASELINE, (1500, 1)), 1.0 * (rng.random(1500) < 0.5))
        for _ in range(120):
            pool = np.c_[np.ones(6), directions * rng.uniform(0.01, 0.5, size=(6, 1))]
            made = dep.decide(pool, BASELINE)
            played = BASELINE if made.action is None else pool[made.action]
            dep.observe(made.id, float(rng.random() < 0.5 + 0.25 * played[1]))
            scores, margins = made.details[CandidateField.SCORE], made.details[CandidateField.MARGIN]
            if made.action is not None and margins[np.argmax(scores)] < 0.0:
                weights += 1
                if (margins >= 0.0).sum() > 1:
                    assert made.receipt is not None
                    contested = made.receipt.seq
    assert weights > 10
    assert contested is not None
    return path, contested


def test_counterweights_are_audited(counterweights: tuple[Path, int]) -> None:
    with Deployment.open(f"sqlite:///{counterweights[0]}", "shop") as dep:
        report = dep.audit(sample=50)
        assert report.clean, report


@pytest.mark.parametrize("forgery", [another, only_one])
def test_a_forged_counterweight_is_found(
    counterweights: tuple[Path, int], tmp_path: Path, forgery: Forgery
) -> None:
    path, contested = counterweights
    shutil.copy(path, tmp_path)
    with Deployment.open(f"sqlite:///{tmp_path}/shop.db", "shop") as dep:
        forge(dep, contested, forgery)
        assert dep.audit(sample=0).entry == contested


def test_what_counterweight_the_rule_takes() -> None:
    pool, near = np.zeros((4, 2)), 1e-9

    def taken(
        scores: list[float],
        margins: list[float],
        promise: float = 1.0,
        rival: float = 0.5,
        lowest: bool = True,
        doubt: float = near,
        doubts: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0),
    ) -> object:
        found = counterweight(
            np.array(scores),
            near + np.array(doubts),
            np.array(margins),
            pool,
            lambda _: (promise, doubt),
            rival,
            near,
            lowest,
        )
        return found.candidate if found.is_sure else "rounding decides"

    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.9, 0.6, 0.4]) == 2
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.4, 0.9, 0.6], lowest=False) == 2
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.5, 0.9, 0.6], lowest=False) == "rounding decides"
    assert taken([4.0, 3.0, 2.0, 1.0], [0.1, 0.9, 0.6, 0.4]) is None
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.9, 0.6, 0.4], promise=-1.0) is None
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.4, 0.3, 0.4]) is None
    assert taken([np.inf, 3.0, 2.0, 1.0], [-np.inf, 0.9, 0.6, 0.4]) is None
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.9, 0.5, 0.4]) == "rounding decides"
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.9, 0.6, 0.4], promise=0.0) == "rounding decides"
    assert taken([4.0, 4.0, 2.0, 1.0], [-0.1, 0.9, 0.6, 0.4]) == "rounding decides"
    assert taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.9, 0.6, 0.4], doubt=2.0) == "rounding decides"
    assert (
        taken([4.0, 3.0, 2.0, 1.0], [-0.1, 0.9, 0.6, 0.4], doubts=(0.0, 1.5, 0.0, 0.0))
        == "rounding decides"
    )
