"""The smallest reserve of a path of certificates, (14)."""

import math
from itertools import accumulate

import numpy as np
import pytest

import c4b
from c4b import errors


@pytest.mark.parametrize(
    ("certificates", "needed"),
    [
        ([], 0.0),
        ([0.5, 0.1], 0.0),
        ([-1.0], 1.0),
        ([1.0, -0.5, -1.0], 0.5),  # sums 1, 0.5, -0.5
        ([-1.0, 0.5, -0.75, 2.0], 1.25),  # sums -1, -0.5, -1.25, 0.75
        ([0.25, -0.25], 0.0),  # exactly enough
    ],
)
def test_by_hand(certificates: list[float], needed: float) -> None:
    assert c4b.minimum_reserve(certificates) == needed


def test_a_policy_needs_exactly_that_reserve() -> None:
    """Contrast without data: the least reserve admits the candidate, the float below it does not."""
    model = c4b.LinearModel(1, 0.1, 1.0)
    evidence = c4b.Evidence(model)
    certificate = c4b.joint_certificate(evidence, [[2.0]], [1.0], 0.1)
    needed = c4b.minimum_reserve(certificate)
    assert needed > 0.0
    for reserve, action in ((needed, 0), (math.nextafter(needed, 0.0), None)):
        assert c4b.Policy("contrast", model, 0.1, reserve).decide([[2.0]], [1.0]).action == action


@pytest.mark.parametrize("bad", [None, 1.0, [[1.0]], [math.nan], [math.inf], ["a"], [1e101]])
def test_bad_input(bad: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^certificates"):
        c4b.minimum_reserve(bad)


def test_a_bank_that_starts_with_it_never_falls_below_0() -> None:
    """Certificates are added to the bank one after the other, and each sum is rounded."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        path = rng.normal(size=60) * 10.0 ** rng.integers(-12, 13, size=60 if seed % 2 else 1)
        needed = bank = c4b.minimum_reserve(path)
        assert needed == pytest.approx(max(0.0, -min(accumulate(path))), abs=1e-13 * np.abs(path).sum())
        for certificate in path:
            bank += float(certificate)
            assert bank >= 0.0
