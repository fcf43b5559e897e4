"""Paired differences between two folders."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.run import run
from c4b.study.results.compare_results import describe_comparison, differences
from c4b.study.results.results import NoResults, Results
from support.small_studies import small_study

STUDY = small_study(("contrast", "refresh"), episodes=20)


def changed(results: Results, folder: Path, episodes: int = 20, **fields: object) -> Results:
    settings = tuple(replace(s, **fields) for s in results.study.settings)  # type: ignore[arg-type]
    return run(results.study.with_(settings=settings, episodes=episodes), folder)


def test_differences_are_paired_by_episode(tmp_path: Path) -> None:
    first = run(STUDY, tmp_path / "a")
    second = changed(first, tmp_path / "b", reserve=1.0)
    rows = differences(first, second)
    assert [(d.setting, d.method) for d in rows] == [
        (f"history={history}", method)
        for history in ("diverse", "baseline")
        for method in ("contrast", "refresh")
    ]
    a, b = (r.values(1, "contrast", Metric.REWARD_RATIO) for r in (first, second))
    known = stats.ttest_rel(a, b).confidence_interval(0.95)
    found = rows[2].reward_ratio
    assert (found.low, found.high) == pytest.approx((known.low, known.high), rel=1e-9)
    assert found.mean == pytest.approx(np.mean(a - b))
    falls = [100.0 * r.values(1, "contrast", Metric.FALLBACK).mean() for r in (first, second)]
    assert rows[2].fallback.mean == pytest.approx(falls[0] - falls[1])


def test_a_folder_equals_itself(tmp_path: Path) -> None:
    first = run(STUDY, tmp_path)
    for d in differences(first, first):
        assert (d.reward_ratio.mean, d.reward_ratio.low, d.reward_ratio.high) == (0.0, 0.0, 0.0)


def test_only_common_episodes_are_paired(tmp_path: Path) -> None:
    first = run(STUDY, tmp_path / "a")
    second = changed(first, tmp_path / "b", episodes=9)
    for d in differences(first, second):
        assert (d.reward_ratio.n, d.reward_ratio.mean) == (9, 0.0)


def test_settings_are_matched_in_everything_that_either_sweeps(tmp_path: Path) -> None:
    """A sweeps history and sigma, B history only: A's other sigma has no partner."""
    more = tuple(replace(s, sigma=sigma) for sigma in (0.1, 0.2) for s in STUDY.settings)
    wide = run(STUDY.with_(settings=more, swept=("sigma", "history")), tmp_path / "wide")
    narrow = run(STUDY, tmp_path / "narrow")
    rows = differences(wide, narrow)
    assert {d.setting for d in rows} == {"sigma=0.2, history=diverse", "sigma=0.2, history=baseline"}
    assert all(d.reward_ratio.mean == 0.0 for d in rows)


def test_different_seeds_cannot_be_paired(tmp_path: Path) -> None:
    first, second = (run(STUDY.with_(seed=s), tmp_path / str(s)) for s in (7, 8))
    with pytest.raises(NoResults, match="cannot be paired; run one again"):
        differences(first, second)


def test_nothing_in_common(tmp_path: Path) -> None:
    first = run(STUDY.with_(methods=STUDY.methods[:1]), tmp_path / "a")
    second = run(STUDY.with_(methods=STUDY.methods[1:]), tmp_path / "b")
    with pytest.raises(NoResults, match="no setting and method in common"):
        differences(first, second)


def test_it_says_what_was_compared_and_what_differs(tmp_path: Path) -> None:
    first = run(STUDY, tmp_path / "a")
    assert describe_comparison(first, first) == [
        "Paired over 20 episodes.",
        "What differs: nothing in the plans of what was paired.",
    ]
    methods = (STUDY.methods[0], replace(STUDY.methods[1], confidence="mixture"))
    settings = tuple(replace(s, alpha=0.1, delta=0.01) for s in STUDY.settings)
    second = run(STUDY.with_(methods=methods, settings=settings, episodes=9), tmp_path / "b")
    assert describe_comparison(first, second) == [
        "Paired over 9 episodes (of 20 and 9).",
        "What differs: alpha 0.05 against 0.1; delta 0.05 against 0.01; "
        "refresh: confidence None against mixture.",
    ]


def test_settings_and_methods_without_partner_are_named(tmp_path: Path) -> None:
    sigmas = (0.1, 0.2, 0.3)
    more = tuple(replace(s, sigma=sigma) for sigma in sigmas for s in STUDY.settings)
    wide = run(STUDY.with_(settings=more, swept=("sigma", "history")), tmp_path / "wide")
    narrow = run(STUDY.with_(methods=STUDY.methods[:1]), tmp_path / "narrow")
    (line,) = (line for line in describe_comparison(wide, narrow) if line.startswith("Only in "))
    assert line == (
        f"Only in {wide.folder}, left out: 4 settings (sigma=0.1, history=diverse | sigma=0.1, "
        "history=baseline | sigma=0.3, history=diverse and 1 more); 1 method (refresh)."
    )
