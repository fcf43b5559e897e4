"""Arithmetic that breaks must never open the gate."""

import numpy as np
import pytest

import c4b
from support.evidence_internals import inside
from support.oracle_comparison import GATED, METHODS, close, history
from support.oracle_sets import Array


def seasoned(name: str, **kwargs: float) -> c4b.Policy:
    """d = 2, everything well known: normally any good candidate is admitted."""
    policy = c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0), alpha=0.2, **kwargs)
    policy.learn(*history(np.random.default_rng(0), np.array([0.6, 0.2]), 400, 0.1))
    return policy


POOL, BASELINE = np.array([[1.2, 0.1], [1.0, 0.5]]), np.array([1.0, 0.0])


@pytest.mark.parametrize("name", METHODS)
def test_the_seasoned_policy_does_play(name: str) -> None:
    """Without this the tests below could pass for the wrong reason."""
    assert not seasoned(name).decide(POOL, BASELINE).is_baseline


def test_trap_noisy_rewards_added_to_the_ledger() -> None:
    """No reward, however large, moves bank or prefix; a carried bank moves only when deciding."""
    for name in METHODS:
        policy = seasoned(name)
        decision = policy.decide(POOL, BASELINE)
        before = policy.gate.ledger.tobytes()
        policy.observe(decision.id, 1e6)
        assert policy.gate.ledger.tobytes() == before


@pytest.mark.parametrize("name", GATED)
def test_trap_baseline_compared_by_point_estimate(name: str) -> None:
    """The point estimates say 1.19 against 0.99; nothing certifies it. Ungated, it is played."""
    model = c4b.LinearModel(2, 0.1, 1.0, ridge=1.0)
    for policy, action in ((c4b.Policy(name, model), None), (c4b.Policy("linucb", model), 0)):
        policy.learn([[1.0, 0.0]] * 99, [1.0] * 99)
        candidate = np.array([1.2, 1.0])
        assert candidate @ policy.estimate > [1.0, 0.0] @ policy.estimate
        assert policy.decide([candidate], [1.0, 0.0]).action == action


@pytest.mark.parametrize("name", GATED)
def test_trap_never_played_arms_called_safe(name: str) -> None:
    """However long the baseline's history, an unseen direction stays uncertified without reserve."""
    policy = c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0))
    policy.learn([[1.0, 0.0]] * 5000, [0.5] * 5000)
    assert policy.decide([[0.0, 1.0], [1.0, 0.3]], [1.0, 0.0]).is_baseline


@pytest.mark.parametrize("name", GATED)
def test_trap_nothing_is_admitted_before_data_without_reserve(name: str) -> None:
    policy = c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0))
    decision = policy.decide([[1.0, 0.0], [5.0, 0.0], [1.0, 0.001]], [1.0, 0.0])
    assert decision.is_baseline
    assert decision.bank == 0.0 or name.startswith("revalue")


@pytest.mark.parametrize("name", METHODS)
def test_trap_nan_width_is_never_admitted(name: str) -> None:
    policy = seasoned(name, reserve=100.0)
    inside(policy.evidence).inverse[...] = np.nan
    assert policy.decide(POOL, BASELINE).is_baseline


@pytest.mark.parametrize("name", METHODS)
def test_lost_positive_definiteness_is_never_admitted(name: str) -> None:
    """Every candidate and contrast lies where the broken form is negative."""
    policy = seasoned(name, reserve=100.0)
    inside(policy.evidence).inverse[0] = [[-1e-3, 0.0], [0.0, 1e-4]]
    decision = policy.decide(POOL, BASELINE)
    assert decision.is_baseline
    assert not any(c.admissible for c in decision.explain()) or name == "linucb"


@pytest.mark.parametrize("size", [1e120, 1e200, 1e300])
@pytest.mark.parametrize("name", METHODS)
def test_overflowing_candidates_are_never_admitted(name: str, size: float) -> None:
    """Alone they mean the baseline; among others they change nothing for the others."""
    huge = np.array([[size, 0.0], [-size, size], [0.0, size]])
    policy = seasoned(name, reserve=10.0)
    assert policy.decide(huge, BASELINE).is_baseline
    mixed, plain = seasoned(name, reserve=10.0), seasoned(name, reserve=10.0)
    decision = mixed.decide(np.vstack([huge[:2], POOL, huge[2:]]), BASELINE)
    expected = plain.decide(POOL, BASELINE)
    if name == "revalue":  # an unusable proposal is passed over, never tested and never counted
        assert decision.action in (None, 2 + expected.action)
    else:
        assert decision.action == 2 + expected.action
        assert repr(decision.bank) == repr(expected.bank)
    mixed.observe(decision.id, 0.5)
    assert np.all(np.isfinite(mixed.evidence.flat))
    assert np.all(np.isfinite(mixed.prefix))


@pytest.mark.parametrize("name", METHODS)
def test_features_at_the_limit_never_open_the_gate(name: str) -> None:
    """1e100 is the largest accepted magnitude. Its square swamps the ridge: learning may end there,
    but what follows is the baseline, never a candidate on a broken set."""
    policy = seasoned(name)
    decision = policy.decide([], [1e100, 1e100])
    policy.observe(decision.id, 1e100)
    for _ in range(3):
        after = policy.decide([[1e99, -1e99], [1.0, -1.0]], BASELINE)
        assert after.is_baseline or np.all(np.isfinite(policy.evidence.flat))
        policy.observe(after.id, 0.5)
    if not np.all(np.isfinite(policy.evidence.flat)):
        assert policy.decide(POOL, BASELINE).is_baseline


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-4])
def test_cancellation_guard_near_c_times_the_baseline(gap: float) -> None:
    """x - c b is tiny beside x: the expanded square would be off by 1e-16, its root by 1e-8."""
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.1, 1.0))
    evidence.learn(*history(np.random.default_rng(1), np.array([0.5, 0.1, 0.1]), 50, 0.1))
    alpha, baseline = 0.25, np.array([3.0, -2.0, 1.0])  # c b is exact in binary
    x = 0.75 * baseline + gap * np.array([0.3, 1.0, -0.5])
    z = x - 0.75 * baseline
    found = c4b.joint_certificate(evidence, [x], baseline, alpha)[0]
    assert found == pytest.approx(_direct(evidence, z), rel=1e-9, abs=1e-10)


def test_cancellation_guard_of_the_recertified_prefix() -> None:
    """Z + z nearly 0 after a long detour: the margin is the direct bound of the small remainder."""
    policy = seasoned("refresh", reserve=50.0)
    theta_free = np.array([0.25, 4.0])
    for _ in range(8):
        policy.decide([theta_free], [1.0, 0.0])
    z_back = -policy.prefix + np.array([1e-9, 2e-9])
    decision = policy.decide([z_back + 0.8 * BASELINE], BASELINE)
    expected = 50.0 + _direct(policy.evidence, policy.prefix)
    assert decision.action == 0
    assert close(decision.bank, expected)


def _direct(evidence: c4b.Evidence, v: Array) -> float:
    shape = inside(evidence).gram + evidence.model.ridge * np.eye(len(v))
    width = np.sqrt(v @ np.linalg.solve(shape, v))
    return float(v @ evidence.estimate - evidence.radius * width)
