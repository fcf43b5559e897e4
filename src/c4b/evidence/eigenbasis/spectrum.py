"""The eigenvalues of the Gram matrix A = sum x x^T, and how far off the computed decomposition may be.

Every ellipsoid of a stack has the eigenvectors of A. In their coordinates each one is diagonal, so one
decomposition serves the whole stack. ``rank_one_update`` beside this file keeps it from observation to
observation, ``fresh_decomposition`` computes it from A. Two numbers bound all rounding in either,
measured or proved in docs/theory.md, section "Rounding":

- ``errors[RESIDUAL]`` >= ||A Q^T - Q^T diag(values)||, A the exact sum, rows of Q the eigenvectors;
- ``errors[SKEW]`` >= ||Q Q^T - I||.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT

RESIDUAL, SKEW = 0, 1
"""Entries of ``Spectrum.errors``."""
TINY = 1e-280
"""Squared lengths below it are not added but bounded: their parts would underflow."""


class Spectrum(NamedTuple):
    """The decomposition but for Q itself, which is ``Region.basis``, and working space."""

    values: Array  # (d,) eigenvalues of A, ascending, none negative
    moment: Array  # (d,) Q m
    errors: Array  # (2,)
    image: Array  # (d,) z = Q x
    poles: Array  # (d,) eigenvalues that x moves
    weights: Array  # (d,) the parts of z that belong to them
    fitted: Array  # (d,) weights for which the computed roots are exact
    active: Array  # (d,) their positions
    rotation: Array  # (d, d) differences of poles and roots, then eigenvectors as rows
    copied: Array  # (d, d)


def spectrum_size(dim: int) -> int:
    """Numbers in the arrays of a ``Spectrum``."""
    return 7 * dim + 2 + 2 * dim * dim


@inlined
def distance(spectrum: Spectrum) -> float:
    """At least ||A - B||, B the matrix with the computed eigenvalues and the orthogonal basis nearest to
    the computed one; inf if that is unknown."""
    errors, top = spectrum.errors, spectrum.values[len(spectrum.values) - 1]
    known = errors[SKEW] <= 0.01 and errors[RESIDUAL] < np.inf and top < np.inf
    return 1.02 * errors[RESIDUAL] + 2.1 * errors[SKEW] * top if known else np.inf


@inlined
def misturn(spectrum: Spectrum) -> float:
    """At least ||computed Q v - exact Q v|| / ||v||, Q exactly orthogonal."""
    dim = len(spectrum.values)
    return float(spectrum.errors[SKEW] + 1.2 * dim * math.sqrt(float(dim)) * UNIT)


@inlined
def sort_by_value(basis: Array, values: Array) -> None:
    """Eigenvalues ascending, rows of the basis with them; they are nearly sorted already."""
    dim = len(values)
    for i in range(1, dim):
        j = i
        while j > 0 and values[j] < values[j - 1]:
            values[j], values[j - 1] = values[j - 1], values[j]
            for n in range(dim):
                basis[j, n], basis[j - 1, n] = basis[j - 1, n], basis[j, n]
            j -= 1
