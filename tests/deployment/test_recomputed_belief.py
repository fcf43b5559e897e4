"""What the audit takes for the direction that the actions of a round have in common."""

from __future__ import annotations

import numpy as np
import pytest

from c4b.deployment.audit.recomputed.recomputed_belief import NOTHING, _common, _level


def test_the_baseline_and_the_mean_candidate_are_worth_the_same_along_it() -> None:
    rng, between = np.random.default_rng(4), 0
    for _ in range(200):
        candidates, baseline = rng.normal(0.5, 1.0, (7, 3)), rng.normal(0.5, 1.0, 3)
        mean, (unit, doubt) = candidates.mean(axis=0), _level(candidates, baseline)
        assert np.linalg.norm(unit) == pytest.approx(1.0)
        assert doubt < 1e-6
        worth = unit @ baseline, unit @ mean
        if baseline @ (baseline - mean) > 0.0 and mean @ (mean - baseline) > 0.0:
            between += 1
            assert worth[0] == pytest.approx(worth[1])
        else:  # the nearer one is the point itself
            nearer = min((baseline, mean), key=np.linalg.norm)
            np.testing.assert_allclose(unit, nearer / np.linalg.norm(nearer))
    assert between > 20


def test_arms_and_the_incumbent_are_alike() -> None:
    arms = np.eye(5)
    np.testing.assert_allclose(_level(arms[1:], arms[0])[0], np.ones(5) / np.sqrt(5.0))
    np.testing.assert_allclose(_common(arms[1:], arms[0])[0], np.ones(5) / np.sqrt(5.0))


def test_opposite_actions_have_nothing_in_common() -> None:
    unit, doubt = _level(np.array([[-2.0, 0.0]]), np.array([1.0, 0.0]))
    assert not unit.any()
    assert doubt == 0.0


@pytest.mark.parametrize("side", [0.999, 1.001])
def test_where_rounding_decides_whether_there_is_anything_in_common_all_is_in_doubt(side: float) -> None:
    """The point is so long as the limit says, up to a thousandth, on either side of it."""
    rows = np.array([[-1.0, 2.0 * side * NOTHING], [-1.0, 2.0 * side * NOTHING]])
    unit, doubt = _level(rows, np.array([1.0, 2.0 * side * NOTHING]))
    assert unit.any() == (side > 1.0)
    assert doubt == 1.0
    unit, doubt = _common(rows[:1], np.array([1.0, 0.0]))
    assert unit.any() == (side > 1.0)
    assert doubt == 1.0
