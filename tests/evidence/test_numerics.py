"""The arithmetic of evidence: traps seen in public bandit code, bad conditioning, long runs."""

import numpy as np
import pytest

import c4b
from c4b.evidence import ellipsoids as statistics
from c4b.evidence.arithmetic.ridge_inverses import REFACTOR_EVERY
from support.evidence_internals import inside
from support.oracle_comparison import CONFIDENCES, history
from support.oracle_sets import OracleSet


def test_trap_inverse_started_at_lambda_identity() -> None:
    """The inverse of lambda I is I / lambda: wrong for every lambda but 1."""
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.1, 1.0, ridge=0.01))
    np.testing.assert_array_equal(inside(evidence).inverse[0], np.eye(3) / 0.01)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_trap_width_zero_before_data(confidence: str) -> None:
    """Before data every theta of norm <= S is possible, so the interval must hold [-S|x|, S|x|]."""
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, norm_bound=3.0, confidence=confidence))
    assert evidence.lower([2.0, 0.0]) <= -6.0
    assert evidence.upper([2.0, 0.0]) >= 6.0


def test_trap_nan_width_mapped_to_zero() -> None:
    """A width that is not a number bounds nothing: what is left is the norm ball, not the estimate."""
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0))
    evidence.learn([[1.0, 0.0]], [0.5])
    inside(evidence).inverse[0, 0, 0] = np.nan
    assert -1.0 - 1e-12 < evidence.lower([1.0, 0.0]) <= -1.0
    assert 1.0 <= evidence.upper([1.0, 0.0]) < 1.0 + 1e-12


def test_lost_positive_definiteness_is_not_a_width_of_zero() -> None:
    """A truly negative square is NaN inside, so only the norm ball bounds outside."""
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0))
    inside(evidence).inverse[0] = [[1.0, 2.0], [2.0, 1.0]]  # eigenvalues 3 and -1
    assert evidence.lower([1.0, -1.0]) <= -np.sqrt(2.0)
    inside(evidence).inverse[0] *= 1e130
    assert evidence.lower([1e100, -1e100]) <= -np.sqrt(2.0) * 1e100  # nor where the square overflows


def test_trap_endless_rank_one_updates_never_refactored() -> None:
    """A small error in the inverse is gone after at most REFACTOR_EVERY more observations."""
    rng = np.random.default_rng(0)
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.1, 1.0))
    features, rewards = history(rng, np.ones(3) / 2, REFACTOR_EVERY, 0.1)
    inside(evidence).inverse[0] *= 1.0 + 1e-10  # too small for the residual check to see
    evidence.learn(features, rewards)
    fresh = np.linalg.inv(0.1 * np.eye(3) + features.T @ features)
    np.testing.assert_allclose(inside(evidence).inverse[0], fresh, rtol=1e-12, atol=1e-15)
    assert inside(evidence).tally[statistics.SINCE_FACTORED] == 0.0


def test_a_visible_residual_refactors_at_once() -> None:
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0))
    evidence.learn([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    inside(evidence).inverse[0] *= 1.001
    evidence.learn([[1.0, 1.0]], [1.0])
    fresh = np.linalg.inv(0.1 * np.eye(2) + np.array([[2.0, 1.0], [1.0, 2.0]]))
    np.testing.assert_allclose(inside(evidence).inverse[0], fresh, rtol=1e-13)


def test_two_hundred_thousand_updates_do_not_drift() -> None:
    """Against a fresh factorisation of the same Gram matrix, summed by NumPy."""
    rng = np.random.default_rng(1)
    dim, total = 6, 200_000
    features = rng.normal(size=(total, dim)) * [1.0, 1.0, 1.0, 0.3, 0.1, 0.01]
    rewards = features @ np.full(dim, 0.3) + rng.normal(size=total)
    evidence = c4b.Evidence(c4b.LinearModel(dim, 1.0, 1.0))
    evidence.learn(features, rewards)
    V = 0.1 * np.eye(dim) + features.T @ features
    inverse = np.linalg.inv(V)
    np.testing.assert_allclose(inside(evidence).inverse[0] @ V, np.eye(dim), atol=1e-9)
    np.testing.assert_allclose(evidence.estimate, inverse @ (features.T @ rewards), rtol=1e-9)
    log_det = np.linalg.slogdet(V)[1] - dim * np.log(0.1)
    np.testing.assert_allclose(inside(evidence).tally[statistics.LOG_DET], log_det, rtol=1e-10)


@pytest.mark.parametrize("dim", [2, 8, 30])
def test_condition_of_ten_billion(dim: int) -> None:
    """Directions seen 1e10 times more strongly than others: bounds equal a fresh solve but for a small
    allowance for rounding, which is in the safe direction."""
    rng = np.random.default_rng(dim)
    basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    scales = np.logspace(0, -5, dim)  # singular values; squares span 1e10
    features = np.repeat(1e3 * scales[:, None] * basis, 40, axis=0)
    rewards = features @ basis[0] + rng.normal(size=len(features))
    evidence = c4b.Evidence(c4b.LinearModel(dim, 1.0, 1.0, ridge=1e-6))
    reference = OracleSet(dim, 1.0, 1.0, 1e-6, 0.05)
    evidence.learn(features, rewards)
    for x, y in zip(features, rewards, strict=True):
        reference.add(x, y)
    V = reference.estimate().V
    assert np.linalg.cond(V) > 0.9e10
    np.testing.assert_allclose(inside(evidence).inverse[0] @ V, np.eye(dim), atol=1e-6)
    for v in (*basis[[0, -1]], *rng.normal(size=(3, dim))):
        bound = reference.lower(v)
        assert bound - 0.03 * abs(bound) <= evidence.lower(v) <= bound + 1e-6 * abs(bound)


def test_history_that_float64_cannot_hold_is_refused_and_changes_nothing() -> None:
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0))
    before = evidence.flat.copy()
    with pytest.raises(c4b.errors.InvalidInput, match="scaled"):
        evidence.learn([[1e60, 1e60]] * 3, [1.0] * 3)
    np.testing.assert_array_equal(evidence.flat, before)


def test_estimate_is_recomputed_not_accumulated() -> None:
    """After any number of updates theta_hat is V^-1 times the moment, to the last bits."""
    rng = np.random.default_rng(2)
    evidence = c4b.Evidence(c4b.LinearModel(4, 0.1, 1.0))
    evidence.learn(*history(rng, np.ones(4) / 2, 1000, 0.1))
    stats = inside(evidence)
    np.testing.assert_allclose(evidence.estimate, stats.inverse[0] @ stats.moment, rtol=1e-13)


def test_a_bound_that_overflows_is_no_evidence() -> None:
    """+inf would be a lower bound that pays for anything. With a damaged estimate the bound overflows,
    and must still be that of the norm ball."""
    damaged = c4b.Evidence(c4b.LinearModel(1, 0.1, 1.0))
    inside(damaged).estimate[:] = 1e300
    assert damaged.lower([1e100]) == pytest.approx(-1e100)
    assert damaged.upper([-1e100]) == pytest.approx(1e100)
