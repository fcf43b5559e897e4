"""The paper's protocol with 64 of its 256 episodes."""

import math

import numpy as np

from c4b.study.engine.episode_metrics import Metric
from c4b.study.results import published_numbers as published
from c4b.study.results import safety_summary as safety
from c4b.study.results.results import Results
from support.oracle_comparison import GATED

TOLERANCE = 4.5
"""87 standard normal numbers exceed 3.5 in 4 % of runs and 4.5 in 0.06 %. With 64 episodes the spread
is itself uncertain and some shares are skewed (a 0.5 % fallback comes from few episodes), so the
tails are heavier than normal; the full study, `make reproduce`, is held to 3.5."""


def test_all_published_numbers_are_near(paper: Results) -> None:
    far = [c for c in published.compare(paper) if not abs(c.z) <= TOLERANCE]
    assert not far


def test_most_published_numbers_are_very_near(paper: Results) -> None:
    """A bias of two standard errors in one direction would pass the test above."""
    scores = np.array([c.z for c in published.compare(paper)])
    assert np.mean(np.abs(scores) <= 2.0) >= 0.9
    assert abs(scores.mean()) < 0.5


def test_no_gated_method_violates_and_every_set_covers(paper: Results) -> None:
    rows = {row.method: row for row in safety.safety(paper)}
    for name in GATED:
        row = rows[name]
        assert (row.episodes, row.violations, row.uncovered, row.on_covered) == (36 * 64, 0, 0, 0)
        assert row.gated
        assert row.min_slack is not None
        assert row.bound == safety.binomial_upper(0, 64)


def test_the_ledger_methods_never_certify_more_than_the_truth(paper: Results) -> None:
    """Theorem 1 on covered paths: D_t >= B_t >= 0, to rounding, and a bank that is never negative."""
    for s in range(36):
        for name in ("separate", "contrast", "refresh"):
            assert paper.values(s, name, Metric.MIN_SLACK).min() >= -1e-12
            assert paper.values(s, name, Metric.FINAL_BANK).min() >= 0.0


def test_without_a_gate_the_guarantee_is_broken(paper: Results) -> None:
    """Otherwise zero violations would say nothing about the gate."""
    row = next(row for row in safety.safety(paper) if row.method == "linucb")
    assert row.violations > 0
    assert not row.gated
    assert row.min_slack is None
    setting = published.central_setting(paper, "baseline")
    assert math.isnan(paper.values(setting, "linucb", Metric.RMIN_JOINT)[0])


def test_proposition_2_holds_in_every_episode(paper: Results) -> None:
    rows = safety.reserve_cost(paper)
    assert len(rows) == 12 * 5  # settings without reserve, gated methods
    assert all(row.holds for row in rows)
    assert all(-1e-12 <= row.separate - row.joint <= row.penalty + 1e-12 for row in rows)
    assert max(row.separate - row.joint for row in rows) > 1.0


def test_a_larger_reserve_never_lowers_the_reward_of_a_frozen_bank(paper: Results) -> None:
    """Means over shared draws; strict in the settings where the gate binds."""
    means = {
        reserve: paper.values(
            paper.find(history="baseline", rho=0.4, sigma=0.3, reserve=reserve),
            "refresh",
            Metric.REWARD_RATIO,
        ).mean()
        for reserve in (0.0, 0.5, 2.0)
    }
    assert means[0.0] < means[0.5] < means[2.0]
