"""The audit of rounds that play what brings the best-scored candidate nearer: which forgeries it finds,
and what it leaves to rounding."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b._validate import Array
from c4b.deployment.audit.recomputed.recomputed_approach import Approach, nearest
from c4b.deployment.audit.recomputed.recomputed_belief import Belief
from c4b.policies.rounds.candidate_fields import MARGIN, SCORE
from support.forgeries import play
from support.shop_world import forge

BASELINE = np.array([1.0, 0.0, 0.0])


class Ball:
    """The set ||theta|| <= 1."""

    def bounds(self, rows: Array) -> tuple[Array, Array]:
        size = np.linalg.norm(rows, axis=1)
        return -size, size


def seen(pool: list[list[float]], blur: float = 1e-12) -> Approach:
    """After as many observations in every direction, and a prefix along the second feature."""
    belief = Belief(np.zeros(3), np.array([1.0, 0.3, 0.3]), 0.5 * np.eye(3), 1.0, blur, blur)
    return Approach(belief, Ball(), np.array([0.0, 2.0, 0.0]), 0.1, np.array(pool), BASELINE, 1e-10)


def taken(
    pool: list[list[float]],
    made: int | None,
    margins: tuple[float, ...] = (-1.0, 0.1, 0.1),
    blur: float = 1e-12,
) -> tuple[int | None, bool]:
    none = np.zeros(len(pool))
    found = nearest(
        np.arange(len(pool), 0.0, -1.0),
        none + 1e-9,
        np.array(margins),
        lambda _: (1.0, 1e-9),
        seen(pool, blur),
        (none, none),
        made,
    )
    return found.candidate, found.is_sure


BEST, BACK, ON, BESIDE = [1.0, 1.0, 0.0], [1.0, -0.5, 0.0], [1.0, 0.5, 0.0], [1.0, 0.0, 0.5]


def test_what_undoes_the_prefix_is_nearer_than_what_goes_on() -> None:
    for made in (None, 1, 2):
        assert taken([BEST, ON, BACK], made) == (2, True)
        assert taken([BEST, BACK, ON], made) == (1, True)


def test_what_is_not_admissible_or_the_baseline_itself_brings_nothing_nearer() -> None:
    assert taken([BEST, BACK, ON], None, margins=(-1.0, -0.1, -0.1)) == (None, True)
    assert taken([BEST, [1.0, 0.0, 0.0], ON], 1, margins=(-1.0, 0.1, -0.1)) == (None, True)


def test_where_rounding_decides_only_those_that_it_could_choose_are_right() -> None:
    pool = [BEST, BACK, [1.0, -0.5, 1e-13]]
    assert taken(pool, 1) == (1, True)
    assert taken(pool, 2) == (2, True)
    found = nearest(
        np.array([3.0, 2.0, 1.0]),
        np.full(3, 1e-9),
        np.array([-1.0, 0.1, -0.1]),
        lambda _: (1.0, 1e-9),
        seen([BEST, [1.0, 0.0, 1e-14], BESIDE], blur=1e-6),
        (np.zeros(3), np.zeros(3)),
        1,
    )
    assert not found.is_sure  # the rule may have gone on to its later steps
    assert found.possible is not None
    assert found.possible.tolist() == [False, True, False]


@pytest.fixture(scope="module")
def saving(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A deployment that is often short of bank, and an entry in which it saved up although another
    candidate was admissible and had a higher score."""
    path = tmp_path_factory.mktemp("saving") / "shop.db"
    model, rng, entry = LinearModel(3, 0.3, 1.6), np.random.default_rng(5), -1
    theta = np.array([1.0, 0.4, -0.3])
    with Deployment.create(f"sqlite:///{path}", "shop", model, alpha=0.1, reserve=0.5) as dep:
        dep.learn(np.tile(BASELINE, (20, 1)), 1.0 + 0.3 * rng.normal(size=20))
        for _ in range(60):
            pool = np.c_[np.ones(12), 0.6 * rng.normal(size=(12, 2))]
            made = dep.decide(pool, BASELINE)
            scores, margins = made.details[SCORE], made.details[MARGIN]
            if made.action is not None and np.isfinite(scores).all() and margins[scores.argmax()] < 0.0:
                higher = (margins >= 0.0) & (scores > scores[made.action])
                assert made.receipt is not None
                entry = made.receipt.seq if higher.any() else entry
            x = BASELINE if made.action is None else pool[made.action]
            dep.observe(made.id, float(x @ theta + 0.3 * rng.normal()))
    assert entry > 0
    return path, entry


def test_saving_up_is_audited(saving: tuple[Path, int]) -> None:
    with Deployment.open(f"sqlite:///{saving[0]}", "shop") as dep:
        report = dep.audit(sample=5)
        assert report.clean, report


def best_admissible(fields: dict[str, Any], arrays: dict[str, Array]) -> None:
    details = arrays["details"]
    scores = np.where(details[MARGIN] >= 0.0, details[SCORE], -np.inf)
    assert scores.argmax() != fields["action"]
    play(int(scores.argmax()), fields, arrays)


def test_another_candidate_than_the_nearest_is_found(saving: tuple[Path, int], tmp_path: Path) -> None:
    path, entry = saving
    shutil.copy(path, tmp_path)
    with Deployment.open(f"sqlite:///{tmp_path}/shop.db", "shop") as dep:
        forge(dep, entry, best_admissible)
        assert dep.audit(sample=0).entry == entry


@pytest.mark.parametrize("rows", [1, 2, 5, 10])
def test_an_honest_journal_is_clean_where_two_directions_were_observed_alike(rows: int) -> None:
    """Any basis of their plane is an eigenbasis: nothing may hang on which one is taken."""
    arms = np.eye(3)
    for noise, mean in itertools.product((0.3, 1.0), (0.3, 0.6, 0.9)):
        url, model = f"memory://alike-{rows}-{noise}-{mean}", LinearModel(3, noise, 1.2 * mean)
        with Deployment.create(url, "shop", model, alpha=0.1, reserve=10.0) as dep:
            dep.learn(np.repeat(arms[:2], rows, axis=0), [mean] * rows + [0.0] * rows)
            dep.decide(arms[1:], arms[0])
            assert dep.audit(sample=0).clean


@pytest.mark.parametrize("size", [1e60, 1e90, 1e99])
def test_an_audit_goes_on_after_something_huge_was_executed(size: float) -> None:
    with Deployment.create(f"memory://huge-{size}", "shop", LinearModel(2, 0.1, 1.0), reserve=1.0) as dep:
        dep.learn([[1.0, 0.0]] * 5, [0.5] * 5)
        made = dep.decide([[1.0, 0.1]], [1.0, 0.0])
        dep.executed(made.id, [size, size / 3.0])
        dep.observe(made.id, 0.5 * size)
        dep.decide([[1.0, 0.0], [1.0, 0.1]], [1.0, 0.0])
        assert dep.audit(sample=0).clean


def test_words_of_the_rule_say_what_the_set_allows() -> None:
    """With rewards in a declared range nothing is believed: scores are by intervals."""
    rules = {}
    for name, model in (
        ("noise", LinearModel(2, 0.1, 1.0)),
        ("range", LinearModel.bounded(2, 1.0)),
    ):
        with Deployment.create(f"memory://words-{name}", "shop", model, "reserve-c4b+") as dep:
            rules[name] = dep.record(dep.decide([[1.0, 0.1]], [1.0, 0.0])).rule
    assert "posterior expectation" in rules["noise"]
    assert "brings it nearest" in rules["noise"]
    assert "posterior expectation" not in rules["range"]
    assert "nearest" not in rules["range"]
    assert "leave more in the bank" in rules["range"]
