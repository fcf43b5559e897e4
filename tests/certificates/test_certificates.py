"""Joint, separate and their difference: hand-computed, against the oracle, and refused input."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import c4b
from c4b import errors
from support.oracle_comparison import CONFIDENCES, history
from support.oracle_sets import Array, OracleSet

Certificate = Callable[..., Array]
FUNCTIONS: tuple[Certificate, ...] = (
    c4b.joint_certificate,
    c4b.separate_certificate,
    c4b.decoupling_penalty,
)


def test_two_features_by_hand() -> None:
    # lambda = 1, x = (1, 0) seen 3 times with y = 1: V = diag(4, 1), theta_hat = (3/4, 0),
    # beta = 0.1 sqrt(log 4 + 2 log 20) + 1. Candidate (1, 1), baseline (1, 0), alpha = 1/2:
    # z = (1/2, 1), z theta_hat = 3/8, ||z|| = sqrt(1/16 + 1) = sqrt(17)/4,
    # ||x|| = sqrt(1/4 + 1) = sqrt(5)/2, ||b|| = 1/2
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0, ridge=1.0))
    evidence.learn([[1.0, 0.0]] * 3, [1.0] * 3)
    beta = 0.1 * math.sqrt(math.log(4.0) + 2.0 * math.log(20.0)) + 1.0
    joint, separate, penalty = (f(evidence, [[1.0, 1.0]], [1.0, 0.0], 0.5)[0] for f in FUNCTIONS)
    assert joint == pytest.approx(3 / 8 - beta * math.sqrt(17) / 4, rel=1e-14)
    assert separate == pytest.approx(3 / 8 - beta * (math.sqrt(5) / 2 + 1 / 4), rel=1e-14)
    assert penalty == pytest.approx(beta * (math.sqrt(5) / 2 + 1 / 4 - math.sqrt(17) / 4), rel=1e-13)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("dim", [1, 3, 40])
def test_certificates_equal_the_oracle(dim: int, confidence: str) -> None:
    rng = np.random.default_rng(dim)
    evidence = c4b.Evidence(c4b.LinearModel(dim, 0.2, 1.0, 0.3, 0.1, confidence))
    reference = OracleSet(dim, 0.2, 1.0, 0.3, 0.1, confidence)
    features, rewards = history(rng, rng.normal(size=dim), 3 * dim, 0.2)
    evidence.learn(features, rewards)
    for x, y in zip(features, rewards, strict=True):
        reference.add(x, y)
    pool, baseline = rng.normal(size=(300, dim)), rng.normal(size=dim)
    joint, separate, penalty = (f(evidence, pool, baseline, 0.1) for f in FUNCTIONS)
    for k in (0, 1, 150, 255, 256, 299):
        assert joint[k] == pytest.approx(reference.lower(pool[k] - 0.9 * baseline), abs=1e-6)
        apart = reference.lower(pool[k]) - 0.9 * reference.upper(baseline)
        assert separate[k] == pytest.approx(apart, abs=1e-6)
    np.testing.assert_array_equal(penalty, joint - separate)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_candidates_give_no_certificates(function: Certificate) -> None:
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0))
    assert function(evidence, [], [1.0, 0.0], 0.1).shape == (0,)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("evidence", {"evidence": None}),
        ("candidates", {"candidates": [[1.0]]}),
        ("candidates[0, 1]", {"candidates": [[1.0, math.nan]]}),
        ("candidates[0, 0]", {"candidates": [[1e101, 0.0]]}),
        ("baseline", {"baseline": [1.0]}),
        ("baseline[0]", {"baseline": [math.inf, 0.0]}),
        ("alpha", {"alpha": 0.0}),
        ("alpha", {"alpha": 1.0}),
        ("alpha", {"alpha": math.nan}),
    ],
)
def test_bad_input(function: Certificate, argument: str, change: dict[str, object]) -> None:
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0))
    good = {"evidence": evidence, "candidates": [[1.0, 0.0]], "baseline": [1.0, 0.0], "alpha": 0.1}
    before = evidence.flat.tobytes()
    with pytest.raises(errors.InvalidInput) as caught:
        function(**(good | change))
    assert caught.value.argument == argument
    assert evidence.flat.tobytes() == before
