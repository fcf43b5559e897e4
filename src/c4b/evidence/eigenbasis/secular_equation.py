"""The roots of the secular equation 1 + sum_i weights_i^2 / (poles_i - root) = 0.

They are the eigenvalues of diag(poles) + weights weights^T. Poles ascend and no two are equal, so one
root lies between each pole and the next one, and the last lies above all poles. A root may be much nearer
to a pole than float64 tells apart, so it is kept as a distance from the nearer of its two poles.
"""

import math

from c4b._compilation.jit import Four, inlined, quotients
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.spectrum import Spectrum

ITERATIONS = 60
"""A limit that is never reached on finite numbers; what is left over is measured by whoever asked."""


@inlined
def write_roots(spectrum: Spectrum, m: int) -> None:
    """The roots for the first m ``poles`` and ``weights``, at the positions ``active`` of ``values``; and
    rotation[k, i] = poles_i - root k.

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
    """Where root k begins: the pole that is nearer, a bracket, and a first shift within it."""
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
