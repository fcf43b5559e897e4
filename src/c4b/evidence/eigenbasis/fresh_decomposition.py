"""The decomposition of A from A itself: what rank-one updates have added to its errors is gone after it.

It begins from the basis that there is, which after a few updates is nearly right: then one step makes it
orthogonal, and the eigenvalues follow. Otherwise Jacobi's rotations find the basis.
"""

import math

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.row_sums import add_four_rows, add_product, add_rows
from c4b.evidence.eigenbasis.spectrum import RESIDUAL, SKEW, TINY, Spectrum, sort_by_value

POLISH_EVERY = 32
"""Updates between two fresh decompositions."""
SWEEPS = 30
"""A limit that is never reached on finite numbers; what is left over is measured anyway."""


@called
def polish(basis: Array, spectrum: Spectrum, gram: Array, count: float) -> None:
    """Decompose the Gram matrix of ``count`` observations, from the basis that there is, and measure."""
    dim, values, errors = len(gram), spectrum.values, spectrum.errors
    trace, frobenius = 0.0, 0.0
    for i in range(dim):
        trace += gram[i, i]
        for j in range(dim):
            frobenius += gram[i, j] * gram[i, j]
    frobenius = math.sqrt(frobenius)
    if not _skewness(basis, spectrum) < 0.1:  # NaN is not
        for i in range(dim):
            for j in range(dim):
                basis[i, j] = 1.0 if i == j else 0.0
        _skewness(basis, spectrum)
    _straighten(basis, spectrum)
    rest = _rayleigh(basis, spectrum, gram)
    if not rest <= 64.0 * dim * UNIT * trace:
        _diagonalise(basis, spectrum)
        _skewness(basis, spectrum)
        _straighten(basis, spectrum)
        rest = _rayleigh(basis, spectrum, gram)
    negative = 0.0
    for i in range(dim):
        if values[i] < 0.0:
            negative, values[i] = max(negative, -values[i]), 0.0
    errors[SKEW] = 1.01 * _skewness(basis, spectrum) + 1.2 * dim * dim * UNIT
    rounding = 1.2 * (dim + 2) * math.sqrt(float(dim)) * UNIT * frobenius
    rounding += 1.1 * (count + 1.0) * UNIT * trace  # of the sums themselves
    errors[RESIDUAL] = 1.02 * (rest + negative) + rounding + TINY
    sort_by_value(basis, values)


@inlined
def _skewness(basis: Array, spectrum: Spectrum) -> float:
    """||Q Q^T - I|| (Frobenius); leaves Q Q^T - I in ``rotation`` and Q^T in ``copied``."""
    dim, products = basis.shape[0], spectrum.rotation
    for i in range(dim):
        for n in range(dim):
            spectrum.copied[n, i] = basis[i, n]
    for i in range(dim):
        for n in range(dim):
            products[i, n] = 0.0
    fours = dim - dim % 4
    for i in range(0, fours, 4):  # what is above the diagonal is written again
        a, b, c, d = products[i], products[i + 1], products[i + 2], products[i + 3]
        add_four_rows(basis, i, spectrum.copied, dim, a, b, c, d, i + 4)
    for i in range(fours, dim):
        add_rows(basis[i], spectrum.copied, dim, products[i], i + 1)
    for i in range(dim):
        products[i, i] -= 1.0
    total = 0.0
    for i in range(dim):
        for n in range(i + 1, dim):
            products[i, n] = products[n, i]  # the same products in the same order, to the bit
        for n in range(dim):
            total += products[i, n] * products[i, n]
    return math.sqrt(total)


@inlined
def _straighten(basis: Array, spectrum: Spectrum) -> None:
    """One Newton step towards the nearest orthogonal matrix: Q -= (Q Q^T - I) Q / 2, after
    ``_skewness``."""
    dim = basis.shape[0]
    for i in range(dim):
        for n in range(dim):
            spectrum.rotation[i, n] *= -0.5
            spectrum.copied[i, n] = basis[i, n]
    add_product(spectrum.rotation, spectrum.copied, basis)


@inlined
def _rayleigh(basis: Array, spectrum: Spectrum, gram: Array) -> float:
    """values_i = q_i A q_i; returns ||Q A - diag(values) Q|| (Frobenius), leaves Q A in ``copied``."""
    dim, images = basis.shape[0], spectrum.copied
    total = 0.0
    for i in range(dim):
        for n in range(dim):
            images[i, n] = 0.0
    add_product(basis, gram, images)
    for i in range(dim):
        value = 0.0
        for n in range(dim):
            value += images[i, n] * basis[i, n]
        spectrum.values[i] = value
        for n in range(dim):
            gap = images[i, n] - value * basis[i, n]
            total += gap * gap
    return math.sqrt(total)


@inlined
def _diagonalise(basis: Array, spectrum: Spectrum) -> None:
    """Rotate the basis until Q A Q^T is diagonal, from Q A in ``copied``."""
    dim = basis.shape[0]
    images, fours = spectrum.copied, dim - dim % 4
    for i in range(dim):
        for j in range(0, fours, 4):  # four sums, each of which alone would wait for its last step
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for n in range(dim):
                a += images[i, n] * basis[j, n]
                b += images[i, n] * basis[j + 1, n]
                c += images[i, n] * basis[j + 2, n]
                d += images[i, n] * basis[j + 3, n]
            spectrum.rotation[i, j], spectrum.rotation[i, j + 1] = a, b
            spectrum.rotation[i, j + 2], spectrum.rotation[i, j + 3] = c, d
        for j in range(fours, dim):
            total = 0.0
            for n in range(dim):
                total += images[i, n] * basis[j, n]
            spectrum.rotation[i, j] = total
    _jacobi(basis, spectrum.rotation)


@inlined
def _jacobi(basis: Array, matrix: Array) -> None:
    """Rotate ``matrix`` to a diagonal one, and the rows of the basis with it (cyclic Jacobi)."""
    dim = basis.shape[0]
    for _ in range(SWEEPS):
        rotated = False
        for p in range(dim - 1):
            for q in range(p + 1, dim):
                apart = abs(matrix[p, q])
                if not apart > 0.5 * UNIT * math.sqrt(abs(matrix[p, p] * matrix[q, q])):
                    continue
                ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
                t = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(ratio, 1.0))
                if not abs(t) > 0.0:
                    continue
                rotated = True
                c = 1.0 / math.hypot(t, 1.0)
                s = t * c
                for n in range(dim):
                    first, second = matrix[n, p], matrix[n, q]
                    matrix[n, p] = c * first - s * second
                    matrix[n, q] = s * first + c * second
                for n in range(dim):
                    first, second = matrix[p, n], matrix[q, n]
                    matrix[p, n] = c * first - s * second
                    matrix[q, n] = s * first + c * second
                for n in range(dim):
                    first, second = basis[p, n], basis[q, n]
                    basis[p, n] = c * first - s * second
                    basis[q, n] = s * first + c * second
        if not rotated:
            break
