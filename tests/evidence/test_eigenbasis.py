"""The decomposition and the bounds of its error, against exact sums in ball arithmetic."""

from typing import Any

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from c4b.evidence.eigenbasis.fresh_decomposition import POLISH_EVERY, polish
from c4b.evidence.eigenbasis.rank_one_update import turn
from c4b.evidence.eigenbasis.spectrum import RESIDUAL, SKEW, TINY, Spectrum, distance, misturn
from support.oracle_sets import Array

KINDS = ("gaussian", "collinear", "one-hot", "scaled", "repeated", "jumps", "huge", "tiny", "zero")


def nothing_yet(dim: int) -> tuple[Array, Spectrum]:
    vectors = [np.zeros(dim) for _ in range(5)]
    arrays = (np.zeros(dim), np.zeros(dim), np.array([TINY, 0.0]), *vectors)
    return np.eye(dim), Spectrum(*arrays, np.zeros((dim, dim)), np.zeros((dim, dim)))


def rows(kind: str, rng: np.random.Generator, count: int, dim: int) -> Array:
    x = rng.normal(size=(count, dim))
    made = {
        "gaussian": x,
        "collinear": 1e4 * np.ones(dim) + 0.1 * x,
        "one-hot": np.eye(dim)[rng.integers(dim, size=count)],
        "scaled": x * np.logspace(0.0, -8.0, dim),
        "repeated": np.tile(x[:1], (count, 1)),
        "jumps": x * 10.0 ** rng.uniform(-8.0, 8.0, size=(count, 1)),
        "huge": 1e60 * x,
        "tiny": 1e-150 * x,
        "zero": np.where(rng.random((count, 1)) < 0.5, x, 0.0),
    }
    return np.ascontiguousarray(made[kind])


def frobenius(matrix: Any) -> Any:
    return sum((entry * entry for entry in matrix.entries()), arb(0)).sqrt()


def exact_errors(basis: Array, values: Array, x: Array) -> tuple[Any, Any]:
    """Frobenius norms of A Q^T - Q^T diag(values) and of Q Q^T - I, with no rounding that matters."""
    ctx.prec = 2600
    dim = len(values)
    data, q = arb_mat(*x.shape, x.ravel().tolist()), arb_mat(dim, dim, basis.ravel().tolist())
    diagonal = arb_mat(dim, dim)
    for i in range(dim):
        diagonal[i, i] = arb(float(values[i]))
    residual = data.transpose() * data * q.transpose() - q.transpose() * diagonal
    unit = arb_mat(dim, dim)
    for i in range(dim):
        unit[i, i] = arb(1)
    return frobenius(residual), frobenius(q * q.transpose() - unit)


@pytest.mark.parametrize("polished", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 2, 5, 13])
def test_the_errors_are_within_their_bounds(dim: int, kind: str, polished: bool) -> None:
    rng = np.random.default_rng([dim, KINDS.index(kind)])
    x = rows(kind, rng, 100, dim)
    basis, spectrum = nothing_yet(dim)
    for n in range(100):
        turn(basis, spectrum, x[n])
        if polished and n % POLISH_EVERY == 0:
            polish(basis, spectrum, x[: n + 1].T @ x[: n + 1], n + 1.0)
    residual, skew = exact_errors(basis, spectrum.values, x)
    assert residual <= arb(float(spectrum.errors[RESIDUAL]))
    assert skew <= arb(float(spectrum.errors[SKEW]))
    assert np.all(np.diff(spectrum.values) >= 0.0)
    assert spectrum.values[0] >= 0.0
    if kind != "tiny":
        top = float(spectrum.values[-1])
        assert spectrum.errors[RESIDUAL] < 1e-9 * top
        assert distance(spectrum) < 1e-9 * top
        assert misturn(spectrum) < 1e-10
        np.testing.assert_allclose(spectrum.values, np.linalg.eigvalsh(x.T @ x), atol=1e-12 * top)


def test_a_broken_basis_is_rebuilt_from_the_sums() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    basis, spectrum = nothing_yet(4)
    basis[:] = np.nan
    polish(basis, spectrum, x.T @ x, 50.0)
    np.testing.assert_allclose(spectrum.values, np.linalg.eigvalsh(x.T @ x), rtol=1e-12)
    assert spectrum.errors[SKEW] < 1e-13


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_numbers_that_are_none_leave_no_bound(broken: float) -> None:
    basis, spectrum = nothing_yet(3)
    turn(basis, spectrum, np.array([1.0, broken, 0.0]))
    assert distance(spectrum) == np.inf
