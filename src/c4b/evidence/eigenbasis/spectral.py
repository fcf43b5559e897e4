"""Ellipsoids in the eigenbasis: what the spectral sets share.

docs/theory.md, section "Rounding": with B the matrix that the computed decomposition stands for,
||A - B|| <= ``distance``, and n the moment that it stands for, every theta of the exact set satisfies

    ||n - B theta||_{(B + l I)^-1} <= sqrt(1 + q) R + (distance S + ||m - n||) / sqrt(least + l),

q = distance / (least + l), least the smallest eigenvalue of B. So rounding enlarges R, and from there on
everything is diagonal and positive.
"""

import math

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array
from c4b.evidence.alarms import EMPTY_SET, root_or_alarm
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.spectrum import distance, misturn
from c4b.evidence.ellipsoids import ALARM, COUNT, SQUARES_SUM, Data, Region, Terms


@inlined
def turned_moment(region: Region, data: Data) -> tuple[float, float]:
    """Write Q m; returns ``distance`` and a bound of the moment's error."""
    dim, spectrum = len(data.moment), data.spectrum
    square, trace = 0.0, 0.0
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total += region.basis[i, j] * data.moment[j]
        spectrum.moment[i] = total
        square += data.moment[i] * data.moment[i]
        trace += data.gram[i, i]
    error = 1.1 * misturn(spectrum) * math.sqrt(square)
    error += (
        1.1 * (data.tally[COUNT] + 2.0) * UNIT * math.sqrt(trace) * math.sqrt(data.tally[SQUARES_SUM])
    )
    return distance(spectrum), error


@inlined
def log_det(data: Data, ridge: float, far: float) -> float:
    """At least log det(A / ridge + I); ``far`` is ``distance``."""
    total, values = 0.0, data.spectrum.values
    for i in range(len(values)):
        total += math.log1p((values[i] + far) / ridge)
    return total * (1.0 + 8.0 * (len(values) + 2) * UNIT)


@inlined
def perturbed(
    data: Data, terms: Terms, ridge: float, radius: float, far: float, moment_error: float
) -> float:
    """The radius R of the noise, enlarged by what rounding can have done to A and m."""
    least = data.spectrum.values[0] + ridge
    more = (far * terms.norm_bound + moment_error) / math.sqrt(least)
    return (math.sqrt(1.0 + far / least) * radius + more) * (1.0 + 16.0 * UNIT)


@inlined
def explained_at_most(data: Data, ridge: float, square: float, far: float, moment_error: float) -> float:
    """At least m (A + ridge I)^-1 m, from its computed value; inf if rounding leaves no bound."""
    least = data.spectrum.values[0] + ridge
    if not far <= 0.5 * least:
        return np.inf
    size = math.sqrt(square / (1.0 - far / least)) + moment_error / math.sqrt(least)
    return size * size * (1.0 + 8.0 * (len(data.moment) + 4) * UNIT)


@inlined
def write_radius(region: Region, data: Data, g: int, level: float, less: float) -> None:
    """radius_g^2 = level - less for an ellipsoid whose factors and centre are written."""
    dim = len(data.moment)
    rounding = 8.0 * (dim + 12) * UNIT * (level + less)
    region.radius[g], radius = root_or_alarm(data, level - less, rounding)
    region.reach[g] = radius * (1.0 + 2.0 * (dim + 12) * UNIT)


@inlined
def write_radii(region: Region, data: Data) -> None:
    """``write_radius`` for all ellipsoids, from ``level`` in radius_g and ``less`` in reach_g: a root of
    several numbers at once takes hardly longer than one."""
    dim, empty = len(data.moment), 0
    for g in range(len(region.radius)):
        level, less = region.radius[g], region.reach[g]
        square, largest = level - less, level - less + 8.0 * (dim + 12) * UNIT * (level + less)
        empty += largest < 0.0
        region.radius[g] = np.nan if largest < 0.0 else math.sqrt(max(square, 0.0))
        reach = math.sqrt(largest) * (1.0 + 2.0 * (dim + 12) * UNIT)
        region.reach[g] = np.nan if largest < 0.0 else reach
    if empty > 0:
        data.tally[ALARM] = EMPTY_SET


@inlined
def write_slack(region: Region, data: Data, terms: Terms) -> None:
    """What an inexact basis and inexact centres add to a bound of v @ theta, over ||v||."""
    stack, dim = region.estimate.shape
    longest = 0.0
    for g in range(stack):
        square = 0.0
        for i in range(dim):
            square += region.estimate[g, i] * region.estimate[g, i]
        longest = max(longest, square)
    lost = 1.2 * misturn(data.spectrum) * terms.norm_bound
    region.slack[0] = lost + 1.2 * (dim + 12) * UNIT * math.sqrt(longest)


@inlined
def lose(region: Region) -> None:
    """No ellipsoid says anything: the decomposition is unknown."""
    region.radius[:] = np.nan
    region.reach[:] = np.inf
    region.factors[:] = 0.0
    region.estimate[:] = 0.0
    region.slack[:] = 0.0


def theta_hat(region: Region) -> Array:
    """The first centre in the coordinates of the features, shape (d,)."""
    centre: Array = region.estimate[0]
    return centre.dot(region.basis) if region.spectral else centre.copy()
