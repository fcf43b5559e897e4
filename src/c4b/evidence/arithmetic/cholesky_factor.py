"""Cholesky's factor of a small matrix, and the inverse from it, in place."""

import math

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array

LEAST_PIVOT = 1e-15
"""Share of a diagonal entry below which a Cholesky pivot is nothing but rounding."""


@inlined
def cholesky(matrix: Array, g: int) -> None:
    """Lower Cholesky factor of matrix[g] in its lower triangle; NaN if it is not positive definite.

    By hand because the library routine allocates, and raises in the middle of an update.
    """
    dim = matrix.shape[1]
    for i in range(dim):
        own = matrix[g, i, i]
        for j in range(i + 1):
            total = matrix[g, i, j]
            for k in range(j):
                total -= matrix[g, i, k] * matrix[g, j, k]
            if i > j:
                matrix[g, i, j] = total / matrix[g, j, j]
            elif total > LEAST_PIVOT * own:  # NaN compares false
                matrix[g, i, i] = math.sqrt(total)
            else:
                matrix[g, i, i] = np.nan


@inlined
def invert_from_cholesky(matrix: Array, g: int) -> None:
    """(L L^T)^-1 from L in the lower triangle of matrix[g]: invert L in place, then L^-T L^-1."""
    dim = matrix.shape[1]
    for j in range(dim):
        matrix[g, j, j] = 1.0 / matrix[g, j, j]
        for i in range(j + 1, dim):
            total = 0.0
            for k in range(j, i):
                total += matrix[g, i, k] * matrix[g, k, j]
            matrix[g, i, j] = -total / matrix[g, i, i]
    for i in range(dim):  # the upper triangle is free until the end
        for j in range(i + 1):
            total = 0.0
            for k in range(i, dim):
                total += matrix[g, k, i] * matrix[g, k, j]
            matrix[g, j, i] = total
    for i in range(dim):
        for j in range(i):
            matrix[g, i, j] = matrix[g, j, i]
