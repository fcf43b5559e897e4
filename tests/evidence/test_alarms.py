"""Alarms against the model: seldom false at the edge of the assumptions, soon true beyond it."""

import numpy as np
import pytest
from scipy import stats

import c4b
from c4b.evidence import ellipsoids as statistics
from c4b.evidence.absorption import absorb, empty
from c4b.evidence.alarms import ALARM_LEVEL, EMPTY_SET, RESIDUALS
from support.evidence_internals import inside
from support.oracle_sets import Array

NOISES = ("gaussian", "rademacher")


def unit(rng: np.random.Generator, noise: str, shape: tuple[int, ...]) -> Array:
    draw = rng.normal(size=shape) if noise == "gaussian" else rng.choice([-1.0, 1.0], size=shape)
    return np.asarray(draw, dtype=np.float64)


def alarms(
    noise: str,
    runs: int,
    rows: int,
    scale: float = 1.0,
    delta: float = 0.2,
    epsilon: float = 0.0,
    confidence: str = "constrained",
) -> Array:
    """The code that latched in each run; theta on the edge of its ball, noise ``scale`` x declared.

    ``epsilon``: every mean is that much higher where the last noise was, the worst for residuals.
    """
    rng = np.random.default_rng([NOISES.index(noise), runs, rows])
    model = c4b.LinearModel(2, 0.3, 1.0, 0.5, delta, confidence, epsilon)
    start = empty(model)
    found = np.empty(runs)
    for n in range(runs):
        flat = start.copy()
        angle = rng.uniform(0.0, 2.0 * np.pi)
        theta = np.array([np.cos(angle), np.sin(angle)])
        features = rng.normal(size=(rows, 2)) * rng.choice([0.1, 1.0, 3.0])
        error = scale * 0.3 * unit(rng, noise, (rows,))
        means = features @ theta + epsilon * rng.choice([-1.0, 1.0], size=rows)
        for x, y in zip(features, means + error, strict=True):
            absorb(flat, x, y)
        found[n] = statistics.views(flat)[1].tally[statistics.ALARM]
    return found


@pytest.mark.parametrize("confidence", ["constrained", "unbiased"])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("noise", NOISES)
def test_false_alarms_are_no_more_frequent_than_stated(
    noise: str, epsilon: float, confidence: str
) -> None:
    """Limits that a rate equal to the level would pass in all but one of a thousand."""
    runs, delta = 3000, 0.2
    found = alarms(noise, runs, 60, delta=delta, epsilon=epsilon, confidence=confidence)
    assert np.sum(found == EMPTY_SET) <= stats.binom.ppf(0.999, runs, delta)
    assert np.sum(found == RESIDUALS) <= stats.binom.ppf(0.999, runs, ALARM_LEVEL)


@pytest.mark.parametrize("confidence", ["constrained", "unbiased"])
@pytest.mark.parametrize(("scale", "at_least"), [(1.5, 0.3), (2.0, 0.95), (3.0, 0.99)])
def test_too_much_noise_is_noticed_within_sixty_rows(
    scale: float, at_least: float, confidence: str
) -> None:
    """The same worlds, so that the limits above mean something."""
    found = alarms("gaussian", 200, 60, scale, confidence=confidence)
    assert np.mean(found != 0.0) >= at_least


@pytest.mark.parametrize("confidence", ["constrained", "unbiased"])
@pytest.mark.parametrize("norm", [1.5, 3.0])
def test_a_theta_far_beyond_the_norm_bound_empties_the_set(norm: float, confidence: str) -> None:
    """S = 1; the residuals alone say nothing: the mean is linear and the noise is as declared."""
    rng = np.random.default_rng(7)
    theta = norm * np.array([0.6, 0.8, 0.0])
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.1, 1.0, confidence=confidence))
    while evidence.alarm is None and evidence.count < 200:
        x = rng.normal(size=3)
        evidence.learn([x], [float(x @ theta + 0.1 * rng.normal())])
    assert evidence.alarm == "no theta within the norm bound explains the data"
    assert evidence.count <= 40


@pytest.mark.parametrize("confidence", ["constrained", "unbiased"])
def test_the_largest_norm_allowed_does_not(confidence: str) -> None:
    rng = np.random.default_rng(8)
    theta = np.array([0.6, 0.8, 0.0])
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.1, 1.0, confidence=confidence))
    features = rng.normal(size=(2000, 3))
    evidence.learn(features, features @ theta + 0.1 * rng.normal(size=2000))
    assert evidence.alarm is None


@pytest.mark.parametrize("confidence", c4b.evidence.CONFIDENCES)
def test_drift_is_noticed(confidence: str) -> None:
    """theta changes sign after 50 rows: no linear mean fits both halves."""
    rng = np.random.default_rng(9)
    theta = np.array([0.6, 0.5, 0.0])
    evidence = c4b.Evidence(c4b.LinearModel(3, 0.2, 1.0, confidence=confidence))
    delay = None
    for n in range(120):
        x = rng.normal(size=3)
        evidence.learn([x], [float(x @ theta * (1.0 if n < 50 else -1.0) + 0.2 * rng.normal())])
        assert n >= 50 or evidence.alarm is None
        if evidence.alarm and delay is None:
            delay = n - 50
    assert delay is not None
    assert delay <= 10


def test_a_nonlinear_mean_is_noticed_unless_it_is_declared() -> None:
    """Reward x + .5 sin(9 x): far from every line; with epsilon = .5 declared that is no news."""
    rng = np.random.default_rng(10)
    x = rng.uniform(-1.0, 1.0, size=(400, 1))
    y = 0.5 * x[:, 0] + 0.5 * np.sin(9.0 * x[:, 0]) + 0.2 * rng.normal(size=400)
    found = []
    for epsilon in (0.0, 0.5):
        evidence = c4b.Evidence(c4b.LinearModel(1, 0.2, 1.0, misspecification=epsilon))
        evidence.learn(x, y)
        found.append(evidence.alarm is not None)
    assert found == [True, False]


def test_an_alarm_stays() -> None:
    """However much later data agree with the model."""
    evidence = c4b.Evidence(c4b.LinearModel(1, 0.1, 1.0))
    evidence.learn([[1.0]] * 4, [3.0, -3.0, 3.0, -3.0])
    assert inside(evidence).tally[statistics.ALARM] == RESIDUALS
    evidence.learn([[1.0]] * 5000, [0.0] * 5000)
    assert evidence.alarm is not None
