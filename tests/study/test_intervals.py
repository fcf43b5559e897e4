"""Intervals against SciPy's own tests."""

import numpy as np
import pytest
from scipy import stats

from c4b.study.results.intervals import binomial_upper, paired, student, student_from_sums

RNG = np.random.default_rng(3)
FIRST, SECOND = RNG.normal(1.0, 2.0, 40), RNG.normal(0.8, 1.0, 40)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_student_is_scipys_interval(level: float) -> None:
    found = student(FIRST, level)
    known = stats.ttest_1samp(FIRST, 0.0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((known.low, known.high), rel=1e-12)
    assert found.se == pytest.approx(stats.sem(FIRST), rel=1e-12)
    assert (found.mean, found.n) == (pytest.approx(FIRST.mean()), 40)


def test_student_by_hand() -> None:
    """1, 2, 3: mean 2, standard deviation 1, t_2(0.975) = 4.302653."""
    found = student(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2.0
    assert found.high - 2.0 == pytest.approx(4.302653 / np.sqrt(3.0), rel=1e-6)


def test_paired_is_scipys_paired_test() -> None:
    found = paired(FIRST, SECOND)
    known = stats.ttest_rel(FIRST, SECOND).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((known.low, known.high), rel=1e-12)


def test_sums_give_the_same_interval_as_values() -> None:
    counts = RNG.integers(0, 200, (50, 3, 7)).astype(float)
    mean, half = student_from_sums(counts.sum(0), (counts**2).sum(0), 50)
    for index in np.ndindex(3, 7):
        found = student(counts[:, *index])
        assert mean[index] == pytest.approx(found.mean, rel=1e-12)
        assert half[index] == pytest.approx(found.high - found.mean, rel=1e-9)


def test_sums_of_equal_values_have_no_width() -> None:
    """Rounding must not make a variance negative."""
    mean, half = student_from_sums(np.array([0.1 * 3]), np.array([0.1**2 * 3]), 3)
    assert mean[0] == pytest.approx(0.1)
    assert 0.0 <= half[0] < 1e-7


@pytest.mark.parametrize(("failures", "n"), [(0, 256), (1, 256), (42, 256), (9, 10), (10, 10), (0, 2)])
def test_binomial_bound_is_clopper_pearson(failures: int, n: int) -> None:
    test = stats.binomtest(failures, n, alternative="less")
    known = test.proportion_ci(0.95, method="exact").high
    assert binomial_upper(failures, n) == pytest.approx(known, rel=1e-9)


def test_the_papers_bound_for_zero_failures() -> None:
    assert round(100 * binomial_upper(0, 256), 2) == 1.16
    assert binomial_upper(0, 256) == pytest.approx(1.0 - 0.05 ** (1 / 256), rel=1e-12)
