"""The decomposition of A + x x^T from that of A: one more observation.

In the eigenbasis of A the sum is diag(values) + z z^T with z = Q x. Its eigenvalues are the roots of the
secular equation, and its eigenvectors follow from the roots (Gu and Eisenstat 1994). What rounding adds
to the errors of ``Spectrum`` is measured or bounded on the way.
"""

import math

from c4b._compilation.jit import called, inlined
from c4b._validate import Array
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.row_sums import add_four_rows, add_rows
from c4b.evidence.eigenbasis.secular_equation import write_roots
from c4b.evidence.eigenbasis.spectrum import RESIDUAL, SKEW, TINY, Spectrum, sort_by_value


@called
def turn(basis: Array, spectrum: Spectrum, x: Array) -> None:
    """The decomposition of A + x x^T from that of A; basis (d, d)."""
    dim, values, errors = len(x), spectrum.values, spectrum.errors
    size = 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += basis[i, j] * x[j]
        spectrum.image[i] = total
        size += x[i] * x[i]
    if size < TINY:
        errors[RESIDUAL] += 1.1 * size + TINY
        return
    top = values[dim - 1] + size
    m, lost = _deflate(basis, spectrum, math.sqrt(size), top)
    write_roots(spectrum, m)
    residual, skew = _eigenvectors(spectrum, m)
    product = 1.1 * m * UNIT * math.sqrt(float(m * dim))  # rounding in U Q
    residual += (2.0 * m + 12.0) * UNIT * size + 3.0 * m * UNIT * top
    residual += 2.2 * dim * math.sqrt(float(dim)) * UNIT * size + errors[SKEW] * size + lost
    errors[RESIDUAL] = errors[RESIDUAL] * (1.0 + skew) + 1.05 * residual + 2.5 * product * top
    errors[SKEW] = errors[SKEW] * (1.0 + skew) + skew + 2.2 * product
    _rotate(basis, spectrum, m)
    sort_by_value(basis, values)


@inlined
def _deflate(basis: Array, spectrum: Spectrum, length: float, top: float) -> tuple[int, float]:
    """Choose the eigenvalues that x moves: those with a part of x, one of each group of equal ones.

    Returns how many they are and a bound of what was neglected.
    """
    dim, values, z = len(spectrum.values), spectrum.values, spectrum.image
    m, lost = 0, 0.0
    for i in range(dim):
        if abs(z[i]) <= UNIT * length:
            lost += 2.1 * length * abs(z[i])
            continue
        if m > 0:
            j = int(spectrum.active[m - 1])
            gap = values[i] - values[j]
            if gap <= 4.0 * UNIT * top:  # rotate within the two, so that only one of them is moved
                both = math.hypot(z[i], z[j])
                c, s = z[i] / both, z[j] / both
                for n in range(dim):
                    first, second = basis[j, n], basis[i, n]
                    basis[j, n] = c * first - s * second
                    basis[i, n] = s * first + c * second
                z[i], z[j] = both, 0.0
                lost += 2.0 * gap + 40.0 * UNIT * top
                spectrum.errors[SKEW] += 12.0 * UNIT * math.sqrt(float(dim))
                m -= 1
        spectrum.active[m] = float(i)
        m += 1
    for k in range(m):
        i = int(spectrum.active[k])
        spectrum.poles[k], spectrum.weights[k] = values[i], z[i]
    return m, lost


@inlined
def _eigenvectors(spectrum: Spectrum, m: int) -> tuple[float, float]:
    """Unit eigenvectors as rows of ``rotation``; returns their residual and skewness, as measured.

    The weights are replaced by those for which the computed roots are exact, so that the vectors are
    orthogonal however close two roots lie.
    """
    poles, fitted, rotation = spectrum.poles, spectrum.fitted, spectrum.rotation
    transposed = spectrum.copied
    for i in range(m):
        fitted[i] = -rotation[m - 1, i]
    for k in range(m - 1):
        for i in range(m):
            other = poles[k] if k < i else poles[k + 1]
            fitted[i] *= rotation[k, i] / (poles[i] - other)
    for i in range(m):
        fitted[i] = math.copysign(math.sqrt(abs(fitted[i])), spectrum.weights[i])
    residual = 0.0
    for k in range(m):
        square = 0.0
        for i in range(m):
            rotation[k, i] = fitted[i] / rotation[k, i]
            square += rotation[k, i] * rotation[k, i]
        shrink = 1.0 / math.sqrt(square)
        along = 0.0
        for i in range(m):
            rotation[k, i] *= shrink
            along += spectrum.weights[i] * rotation[k, i]
        for i in range(m):
            gap = fitted[i] * shrink + spectrum.weights[i] * along
            residual += gap * gap
    for k in range(m):
        for i in range(m):
            transposed[i, k] = rotation[k, i]
    skew, row = 0.0, spectrum.image
    for k in range(m):
        for n in range(k + 1):
            row[n] = 0.0
        add_rows(rotation[k], transposed, m, row, k + 1)
        for n in range(k):
            skew += 2.0 * row[n] * row[n]
        skew += (row[k] - 1.0) ** 2
    return 1.01 * math.sqrt(residual), 1.01 * math.sqrt(skew) + 1.2 * m * m * UNIT


@inlined
def _rotate(basis: Array, spectrum: Spectrum, m: int) -> None:
    """Rows of the basis that x moves, multiplied by the eigenvectors."""
    dim = basis.shape[0]
    for k in range(m):
        i = int(spectrum.active[k])
        for n in range(dim):
            spectrum.copied[k, n] = basis[i, n]
    for k in range(m):
        i = int(spectrum.active[k])
        for n in range(dim):
            basis[i, n] = 0.0
    fours, active = m - m % 4, spectrum.active
    for k in range(0, fours, 4):
        a, b = basis[int(active[k])], basis[int(active[k + 1])]
        c, d = basis[int(active[k + 2])], basis[int(active[k + 3])]
        add_four_rows(spectrum.rotation, k, spectrum.copied, m, a, b, c, d, dim)
    for k in range(fours, m):
        add_rows(spectrum.rotation[k], spectrum.copied, m, basis[int(active[k])], dim)
