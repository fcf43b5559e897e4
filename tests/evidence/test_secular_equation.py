"""The roots of the secular equation: between their poles, and exact however near to one of them."""

import numpy as np
import pytest

from c4b.evidence.eigenbasis.secular_equation import write_roots
from c4b.evidence.eigenbasis.spectrum import Spectrum
from support.oracle_sets import Array


def roots(poles: Array, weights: Array) -> tuple[Array, Array]:
    """The roots, and poles_i - root k in row k."""
    dim = len(poles)
    active = np.arange(dim, dtype=np.float64)
    spectrum = Spectrum(
        poles.copy(), np.zeros(dim), np.zeros(2), np.zeros(dim), poles, weights, np.zeros(dim), active,
        np.zeros((dim, dim)), np.zeros((dim, dim)),
    )  # fmt: skip
    write_roots(spectrum, dim)
    return spectrum.values, spectrum.rotation


@pytest.mark.parametrize("spread", [0.0, 4.0, 12.0])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 30])
def test_the_roots_are_eigenvalues(dim: int, spread: float) -> None:
    rng = np.random.default_rng([dim, int(spread)])
    for _ in range(20):
        poles = np.cumsum(0.1 + rng.random(dim)) * 10.0 ** rng.uniform(-3.0, 3.0)
        weights = rng.normal(size=dim) * 10.0 ** rng.uniform(-spread, 0.0, size=dim)
        found, gaps = roots(poles, weights)
        expected = np.linalg.eigvalsh(np.diag(poles) + np.outer(weights, weights))
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13 * expected[-1])
        np.testing.assert_allclose(gaps, poles - found[:, None], rtol=0.0, atol=1e-13 * expected[-1])
        below = np.tri(dim, dtype=bool)
        assert np.all(gaps[below] < 0.0)
        assert np.all(gaps[~below] > 0.0)


def test_a_root_is_as_near_to_its_pole_as_it_should_be() -> None:
    poles, weights = np.array([1.0, 2.0, 3.0]), np.array([0.3, 1e-30, 0.4])
    found, gaps = roots(poles, weights)
    assert found[1] == poles[1]  # float64 tells no difference, but the distance has all its digits
    others = 1.0 + 0.3**2 / (1.0 - 2.0) + 0.4**2 / (3.0 - 2.0)
    assert gaps[1, 1] == pytest.approx(-(1e-30**2) / others, rel=1e-12)
