"""The eigenbasis of the Gram matrix A = sum x x^T, kept through rank-one updates, its error bounded.

Every ellipsoid of a stack has the eigenvectors of A. In their coordinates each one is diagonal, so one
decomposition serves the whole stack. ``turn`` adds an observation: the eigenvalues of
diag(values) + z z^T are the roots of the secular equation 1 + sum z_i^2 / (values_i - root) = 0, one
between each two poles, and its eigenvectors follow from the roots (Gu and Eisenstat 1994). ``polish``
decomposes afresh.

Two numbers bound all rounding, measured or proved in docs/theory.md, section "Rounding":

- ``errors[RESIDUAL]`` >= ||A Q^T - Q^T diag(values)||, A the exact sum, rows of Q the eigenvectors;
- ``errors[SKEW]`` >= ||Q Q^T - I||.
"""

import math
from typing import NamedTuple

import numpy as np

from c4b._jit import Four, called, inlined, quotients
from c4b._validate import Array
from c4b.evidence.rounding import UNIT

RESIDUAL, SKEW = 0, 1
"""Entries of ``Spectrum.errors``."""
POLISH_EVERY = 32
"""Updates between two decompositions from the Gram matrix."""
TINY = 1e-280
"""Squared lengths below it are not added but bounded: their parts would underflow."""
ITERATIONS, SWEEPS = 60, 30
"""Limits that are never reached on finite numbers; what is left over is measured anyway."""


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


# -- one observation ---------------------------------------------------------------------------


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
    _write_roots(spectrum, m)
    residual, skew = _eigenvectors(spectrum, m)
    product = 1.1 * m * UNIT * math.sqrt(float(m * dim))  # rounding in U Q
    residual += (2.0 * m + 12.0) * UNIT * size + 3.0 * m * UNIT * top
    residual += 2.2 * dim * math.sqrt(float(dim)) * UNIT * size + errors[SKEW] * size + lost
    errors[RESIDUAL] = errors[RESIDUAL] * (1.0 + skew) + 1.05 * residual + 2.5 * product * top
    errors[SKEW] = errors[SKEW] * (1.0 + skew) + skew + 2.2 * product
    _rotate(basis, spectrum, m)
    _sort(basis, values)


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
def _write_roots(spectrum: Spectrum, m: int) -> None:
    """The roots of the secular equation: rotation[k, i] = poles_i - root k, and the roots among
    ``values``.

    Root k lies between pole k and the next one. It is found as a distance from the nearer of the two by
    a rational interpolation that both poles fit, within a bracket that each step narrows. All roots take
    their steps in turn: every operation of a step waits for the one before it, but not for those of
    other roots. Each has its ``shift`` from a pole in ``fitted``, its bracket on the diagonals of
    ``rotation`` and ``copied``, and the number of that pole in ``image``, less m once it is found.
    """
    for k in range(m):
        _open_bracket(spectrum, m, k)
    for _ in range(ITERATIONS):
        found = 0
        for k in range(m):
            if spectrum.image[k] < 0.0 or not _narrow_bracket(spectrum, m, k):
                found += 1
        if found == m:
            break
    for k in range(m):
        poles, at = spectrum.poles, spectrum.image[k]
        origin, shift = int(at if at >= 0.0 else at + m), spectrum.fitted[k]
        for i in range(m):
            spectrum.rotation[k, i] = (poles[i] - poles[origin]) - shift
        spectrum.values[int(spectrum.active[k])] = poles[origin] + shift


@inlined
def _open_bracket(spectrum: Spectrum, m: int, k: int) -> None:
    poles, weights = spectrum.poles, spectrum.weights
    origin, low, high = k, 0.0, 0.0
    if k == m - 1:
        for i in range(m):
            high += weights[i] * weights[i]
        high *= 1.0 + 8.0 * m * UNIT
        shift = min(weights[k] * weights[k], high)
    else:
        half = 0.5 * (poles[k + 1] - poles[k])
        value = 1.0
        for i in range(m):
            value += weights[i] * (weights[i] / ((poles[i] - poles[k]) - half))
        if value >= 0.0:
            high, shift = 2.0 * half, half
        else:
            origin, low, shift = k + 1, -2.0 * half, -half
    spectrum.fitted[k], spectrum.image[k] = shift, origin
    spectrum.rotation[k, k], spectrum.copied[k, k] = low, high


@inlined
def _narrow_bracket(spectrum: Spectrum, m: int, k: int) -> bool:
    """One step of root k; False if it was the last."""
    poles, weights = spectrum.poles, spectrum.weights
    origin, shift = int(spectrum.image[k]), spectrum.fitted[k]
    low, high = spectrum.rotation[k, k], spectrum.copied[k, k]
    sums, at, fours = (0.0, 0.0, 0.0, 0.0), poles[origin], m // 4 * 4
    for i in range(0, fours, 4):
        a, b, c, d = poles[i] - at, poles[i + 1] - at, poles[i + 2] - at, poles[i + 3] - at
        four = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        a, b, c, d = quotients(four, (a - shift, b - shift, c - shift, d - shift))
        sums = _with_pole(sums, i <= k, weights[i], a)
        sums = _with_pole(sums, i + 1 <= k, weights[i + 1], b)
        sums = _with_pole(sums, i + 2 <= k, weights[i + 2], c)
        sums = _with_pole(sums, i + 3 <= k, weights[i + 3], d)
    for i in range(fours, m):
        sums = _with_pole(sums, i <= k, weights[i], weights[i] / ((poles[i] - at) - shift))
    below, above, slope_below, slope_above = sums
    value = 1.0 + below + above
    more = not abs(value) <= 4.0 * UNIT * (1.0 - below + above)
    if more:
        if value < 0.0:
            low = shift
        else:
            high = shift
        near = (poles[k] - poles[origin]) - shift
        if k == m - 1:
            rest = value - near * slope_below
            step = near + near * near * slope_below / rest
        else:
            far = (poles[k + 1] - poles[origin]) - shift
            a = (near + far) * value - near * far * (slope_below + slope_above)
            b = near * far * value
            c = value - near * slope_below - far * slope_above
            spread = math.sqrt(max(a * a - 4.0 * b * c, 0.0))
            step = (a - spread) / (2.0 * c) if a <= 0.0 else 2.0 * b / (a + spread)
        trial = shift + step
        if not (low < trial < high):
            trial = 0.5 * (low + high)
        more = trial != shift and low < trial < high
        if more:
            spectrum.fitted[k] = trial
            spectrum.rotation[k, k], spectrum.copied[k, k] = low, high
    if not more:
        spectrum.image[k] -= m
    return more


@inlined
def _with_pole(sums: Four, is_below: bool, weight: float, ratio: float) -> Four:
    """The secular equation's sums over poles below and above a root, and their slopes, with one more."""
    below, above, slope_below, slope_above = sums
    if is_below:
        return below + weight * ratio, above, slope_below + ratio * ratio, slope_above
    return below, above + weight * ratio, slope_below, slope_above + ratio * ratio


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


@inlined
def add_rows(factors: Array, rows: Array, count: int, out: Array, size: int) -> None:
    """out[n] += sum over j < count of factors[j] rows[j, n], for n < size."""
    fours = count - count % 4
    for j in range(0, fours, 4):
        f0, f1, f2, f3 = factors[j], factors[j + 1], factors[j + 2], factors[j + 3]
        for n in range(size):
            fresh = (f0 * rows[j, n] + f1 * rows[j + 1, n]) + (f2 * rows[j + 2, n] + f3 * rows[j + 3, n])
            out[n] += fresh
    for j in range(fours, count):
        f0 = factors[j]
        for n in range(size):
            out[n] += f0 * rows[j, n]


@called
def add_four_rows(
    factors: Array, k: int, rows: Array, count: int, a: Array, b: Array, c: Array, d: Array, size: int
) -> None:
    """``add_rows`` with the factors in rows k to k + 3, into four vectors: what is loaded serves all."""
    fours = count - count % 4
    for j in range(0, fours, 4):
        a0, a1, a2, a3 = factors[k, j], factors[k, j + 1], factors[k, j + 2], factors[k, j + 3]
        b0, b1 = factors[k + 1, j], factors[k + 1, j + 1]
        b2, b3 = factors[k + 1, j + 2], factors[k + 1, j + 3]
        c0, c1 = factors[k + 2, j], factors[k + 2, j + 1]
        c2, c3 = factors[k + 2, j + 2], factors[k + 2, j + 3]
        d0, d1 = factors[k + 3, j], factors[k + 3, j + 1]
        d2, d3 = factors[k + 3, j + 2], factors[k + 3, j + 3]
        for n in range(size):
            r0, r1, r2, r3 = rows[j, n], rows[j + 1, n], rows[j + 2, n], rows[j + 3, n]
            a[n] += (a0 * r0 + a1 * r1) + (a2 * r2 + a3 * r3)
            b[n] += (b0 * r0 + b1 * r1) + (b2 * r2 + b3 * r3)
            c[n] += (c0 * r0 + c1 * r1) + (c2 * r2 + c3 * r3)
            d[n] += (d0 * r0 + d1 * r1) + (d2 * r2 + d3 * r3)
    for j in range(fours, count):
        a0, b0, c0, d0 = factors[k, j], factors[k + 1, j], factors[k + 2, j], factors[k + 3, j]
        for n in range(size):
            row = rows[j, n]
            a[n] += a0 * row
            b[n] += b0 * row
            c[n] += c0 * row
            d[n] += d0 * row


@inlined
def _add_product(factors: Array, rows: Array, out: Array) -> None:
    """out += factors @ rows, all (d, d)."""
    dim = rows.shape[0]
    fours = dim - dim % 4
    for i in range(0, fours, 4):
        add_four_rows(factors, i, rows, dim, out[i], out[i + 1], out[i + 2], out[i + 3], dim)
    for i in range(fours, dim):
        add_rows(factors[i], rows, dim, out[i], dim)


@inlined
def _sort(basis: Array, values: Array) -> None:
    """Eigenvalues ascending, rows of the basis with them; they are nearly sorted already."""
    dim = len(values)
    for i in range(1, dim):
        j = i
        while j > 0 and values[j] < values[j - 1]:
            values[j], values[j - 1] = values[j - 1], values[j]
            for n in range(dim):
                basis[j, n], basis[j - 1, n] = basis[j - 1, n], basis[j, n]
            j -= 1


# -- all observations at once ------------------------------------------------------------------


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
    _sort(basis, values)


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
    _add_product(spectrum.rotation, spectrum.copied, basis)


@inlined
def _rayleigh(basis: Array, spectrum: Spectrum, gram: Array) -> float:
    """values_i = q_i A q_i; returns ||Q A - diag(values) Q|| (Frobenius), leaves Q A in ``copied``."""
    dim, images = basis.shape[0], spectrum.copied
    total = 0.0
    for i in range(dim):
        for n in range(dim):
            images[i, n] = 0.0
    _add_product(basis, gram, images)
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


# -- what the errors mean ----------------------------------------------------------------------


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
