"""``adaptive``: unbounded rewards whose noise scale is known only loosely; the true spread is learned.

``LinearModel.noise`` is a loose sub-Gaussian bound sigma_0 here. Derived in docs/theory.md, section
"A loose bound of the noise": with weights s_t as in ``_update`` and W = l I + sum s_t x x^T, on one event
of probability 1 - delta, for each of the prior scales l at once,

    ||m - A theta||_{W^-1} <= R,   R^2 + 2 log Q_d(R, c) = log det(W / l) + 2 log(J / delta) + 2 tau.

The ellipsoids are those of ``bounded``. It is written in plain Python: a round costs about a millisecond.
Shapes: J = SCALES prior scales, G = ELLIPSOIDS, d features.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from c4b._validate import Array
from c4b.evidence.sets.confidence_set import PythonSet, SetView

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel

POWERS = (30.0, 1000.0, 30000.0)
"""Prior scales l in units of lambda sigma_0^2. A large one suits many rows."""
SCALES = len(POWERS)
REACHES = (5.0, 10.0, 21.0)
"""c^2 - 3 d of each scale."""
STEEPEST = 0.95
"""Largest b for which a squared residual bounds the noise of a row."""
DOUBT = 4.0
"""Rows of variance sigma_0^2 that the first guess of the variance counts for."""
TAIL = 0.05
"""tau: what all residuals beyond their limits B_t can add to the logarithm of the martingale."""
RENEW = 0.0625
"""Share by which the observations grow before leverages and the centre are computed afresh."""
ELLIPSOIDS = 10
"""G: multipliers of the norm constraint."""
SAFE = 1.0 + 1e-7
"""Covers the rounding of numbers that do not cancel."""

_PHI = (np.arange(ELLIPSOIDS) + 0.5) * np.pi / ELLIPSOIDS
MULTIPLIERS: Array = np.tan(0.5 * _PHI) ** 2
"""a S^2 / R^2 of each ellipsoid, as in ``several_ridges``."""
MULTIPLIERS[0] = 0.004


class Learned(NamedTuple):
    """Views of ``SetView.extra``."""

    shapes: Array  # (J, d, d) sum s_t x x^T
    inverses: Array  # (J, d, d) of an earlier W
    centre: Array  # (d,) an earlier estimate: residuals are taken around it
    sums: Array  # (2,) sum of squared residuals; observations when the arrays above were renewed


def _size(dim: int) -> int:
    return 2 * SCALES * dim * dim + dim + 2


def learned_of(extra: Array, dim: int) -> Learned:
    """``SetView.extra`` by names; writing to them writes to it."""
    square = SCALES * dim * dim
    shape = (SCALES, dim, dim)
    return Learned(
        extra[:square].reshape(shape),
        extra[square : 2 * square].reshape(shape),
        extra[2 * square : 2 * square + dim],
        extra[2 * square + dim :],
    )


def steepness(b: float) -> float:
    """g(b) = 2 (-log(1 - b) - b) / b^2, for 0 <= b < 1."""
    if b < 1e-3:
        return 1.0 + b
    return 2.0 * (-math.log1p(-b) - b) / (b * b)


def residual_limit(noise: float, row: int) -> float:
    """B_t of row t = 1, 2, ...: beyond it lies a share of at most tau / (2 t (t + 1)) on either side."""
    return noise * math.sqrt(2.0 * math.log(2.0 * row * (row + 1.0) / TAIL))


def _update(view: SetView, x: Array, y: float) -> None:
    """One observation into every sum s_t x x^T. The weight's kind is decided before y is looked at."""
    model, row = view.model, view.count
    learned = learned_of(view.extra, model.dim)
    sums = learned.sums
    if row == 1:
        learned.inverses[:] = np.eye(model.dim) / _scales(model)[:, None, None]
    length, square = float(np.linalg.norm(x)), model.noise**2
    reach = model.norm_bound * length
    centre = float(np.clip(x @ learned.centre, -reach, reach))
    span = reach + abs(centre) + model.misspecification + residual_limit(model.noise, row)
    guess = (DOUBT * square + sums[0]) / (DOUBT + row - 1.0)
    for j in range(SCALES):
        leverage = math.sqrt(max(float(x @ learned.inverses[j] @ x), 0.0))
        b = math.sqrt(REACHES[j] + 3.0 * model.dim) * leverage * span * SAFE
        weight = square * SAFE
        if b <= STEEPEST and steepness(b) * guess < square:
            weight = steepness(b) * (y - centre) ** 2 * SAFE
        learned.shapes[j] += weight * np.outer(x, x)
    sums[0] += (y - centre) ** 2
    if row >= (1.0 + RENEW) * sums[1]:
        eye = np.eye(model.dim)
        for j, scale in enumerate(_scales(model)):
            learned.inverses[j] = np.linalg.inv(learned.shapes[j] + scale * eye)
        learned.centre[:] = np.linalg.solve(view.gram + model.ridge * eye, view.moment)
        sums[1] = row


def _scales(model: LinearModel) -> Array:
    return np.array(POWERS) * model.ridge * model.noise**2


def solved_radius(level: float, dim: int, reach_square: float) -> float:
    """At least the R with R^2 + 2 log Q_d(R, c) = level; inf where it cannot be found."""
    from scipy.special import chndtr  # noqa: PLC0415 (slow to import, and few policies need it)

    low, high = 0.0, 4.0 * level + 4.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = float(chndtr(reach_square, dim, middle))
        if inside > 0.0 and middle + 2.0 * math.log(inside) > level:
            high = middle
        else:
            low = middle
    inside = float(chndtr(reach_square, dim, high))
    found = inside > 0.0 and high + 2.0 * math.log(inside) >= level
    return math.sqrt(high) * SAFE if found else math.inf


def _rebuild(view: SetView) -> None:
    """The ellipsoids of the scale whose set has the least volume."""
    model, dim = view.model, view.model.dim
    learned = learned_of(view.extra, dim)
    best, chosen, radius = math.inf, np.eye(dim), math.inf
    for j, scale in enumerate(_scales(model)):
        shape = learned.shapes[j] + scale * np.eye(dim)
        log_det = float(np.linalg.slogdet(shape / scale)[1])
        level = log_det + 2.0 * math.log(SCALES / model.delta) + 2.0 * TAIL
        found = solved_radius(level, dim, REACHES[j] + 3.0 * dim)
        volume = dim * math.log(found * found * scale) + log_det
        if volume < best:
            best, chosen, radius = volume, shape, found
    if not radius < math.inf:
        view.inverse[:], view.estimate[:], view.radius[:] = np.eye(dim), 0.0, math.nan
        return
    root = np.linalg.cholesky(chosen)
    half, whitened = np.linalg.solve(root, view.gram), np.linalg.solve(root, view.moment)
    if model.misspecification > 0.0:
        share = float(np.linalg.norm(np.linalg.solve(root, half.T), 2))
        radius += model.misspecification * math.sqrt(view.count * share) * SAFE
    for g, multiplier in enumerate(MULTIPLIERS):
        a = multiplier * (radius / model.norm_bound) ** 2
        view.inverse[g] = np.linalg.inv(half.T @ half + a * np.eye(dim))
        view.estimate[g] = view.inverse[g] @ (half.T @ whitened)
        rest = whitened - half @ view.estimate[g]
        square = radius**2 + a * (model.norm_bound**2 - float(view.estimate[g] @ view.estimate[g]))
        square += 1e-9 * (radius**2 + float(whitened @ whitened)) - float(rest @ rest)
        if square < 0.0:
            view.refute()
        view.radius[g] = math.sqrt(square) * SAFE if square >= 0.0 else math.nan


def _ridges(model: LinearModel) -> Array:
    return np.full(ELLIPSOIDS, model.ridge)


SET = PythonSet(
    "adaptive",
    "unbounded rewards with a loose bound of the noise, whose true spread is learned",
    _ridges,
    extra_size=_size,
    rebuild=_rebuild,
    update=_update,
)
