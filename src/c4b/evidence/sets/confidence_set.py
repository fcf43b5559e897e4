"""The interface of confidence sets, and the contract for a set written in plain Python.

A confidence set is a stack of G ellipsoids ``||theta - estimate_g||_{V_g} <= radius_g``. With probability
at least 1 - delta all of them contain theta, at every moment at once. Bounds, certificates, ledgers and
policies read only the stack, so any set works in all of them.

Contract of every set:

- Its numbers are fixed before the data: ridges, mixing and size depend on the model alone.
- The state is one flat vector (``c4b.evidence.ellipsoids``). It holds everything that a set remembers:
  the sums in their arrays, the set's own statistics in ``extra``. Then copies, state files and replays
  work.
- The same observations in the same order give the same bits.
- NaN certifies nothing: a set whose numbers are no longer valid writes NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from c4b._validate import Array
from c4b.evidence.alarms import EMPTY_SET
from c4b.evidence.ellipsoids import ALARM, COUNT, OUTSIDE, SQUARES_SUM, Data, Region, views

if TYPE_CHECKING:
    from c4b.evidence.model import LinearModel


def one_ridge(model: LinearModel) -> Array:
    """Lambda alone, for a set of one ellipsoid."""
    return np.array([model.ridge])


def _no_mixing(model: LinearModel) -> float:
    return 0.0


def _no_extra(dim: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class ConfidenceSet:
    """An entry of the table of sets.

    Parameters
    ----------
    name: the value of ``LinearModel.confidence`` that chooses it.
    summary: what it is, in a few words.
    ridges: regularisers a_g of the stacked ellipsoids for a model, shape (G,); the first is that of the
        estimate.
    code: which kernels are its own (``c4b.evidence.ellipsoids``).
    stored_code: what a flat vector stores, if it is not the code.
    mixing: one number more for a model, kept in ``Data.mixing``.
    extra_size: length of ``Data.extra`` for d features.
    needs_range: whether the model must declare the range of rewards.
    one_hot: whether features must be unit vectors and all means nonnegative; it has no allowance for
        misspecification.
    """

    name: str
    summary: str
    ridges: Callable[[LinearModel], Array]
    code: int = OUTSIDE
    _: KW_ONLY
    stored_code: int | None = None
    mixing: Callable[[LinearModel], float] = _no_mixing
    extra_size: Callable[[int], int] = _no_extra
    needs_range: bool = False
    one_hot: bool = False

    @property
    def is_compiled(self) -> bool:
        """Whether observations are absorbed by compiled code. A study runs other sets in a slow loop."""
        return self.code != OUTSIDE


@dataclass(frozen=True, slots=True)
class SetView:
    """What a set written in Python reads and writes. Every array is a view of the evidence itself."""

    model: LinearModel
    region: Region
    data: Data

    @property
    def inverse(self) -> Array:
        """V_g^-1, shape (G, d, d), to be written by the set."""
        return self.region.inverse

    @property
    def estimate(self) -> Array:
        """Centres of the ellipsoids, shape (G, d), to be written by the set."""
        return self.region.estimate

    @property
    def radius(self) -> Array:
        """Radii of the ellipsoids, shape (G,), to be written by the set."""
        return self.region.radius

    @property
    def extra(self) -> Array:
        """The set's own statistics, zero before the first observation."""
        return self.data.extra

    @property
    def ridges(self) -> Array:
        """Regularisers (G,) that the set gave for this model."""
        return self.data.ridges

    @property
    def gram(self) -> Array:
        """Sum of x x^T over all observations, shape (d, d). Do not write to it."""
        return self.data.gram

    @property
    def moment(self) -> Array:
        """Sum of x y over all observations, shape (d,). Do not write to it."""
        return self.data.moment

    @property
    def count(self) -> int:
        """Number of observations."""
        return int(self.data.tally[COUNT])

    @property
    def squares_sum(self) -> float:
        """Sum of y^2 over all observations."""
        return float(self.data.tally[SQUARES_SUM])

    def refute(self) -> None:
        """Raise the permanent alarm that no theta within the norm bound explains the data."""
        self.data.tally[ALARM] = EMPTY_SET


@dataclass(frozen=True, slots=True)
class PythonSet(ConfidenceSet):
    """A confidence set written outside of this package, in plain Python.

    The library maintains the sums ``gram``, ``moment``, ``count`` and ``squares_sum``. Before any data
    the inverses are I / a_g, everything else is zero and ``rebuild`` is called once.

    Parameters
    ----------
    rebuild: writes ``inverse``, ``estimate`` and ``radius`` from the content of the view. It is called
        after every batch of observations.
    update: called for every observation (x (d,), y) in order, after it was added to the sums and before
        ``rebuild``; for statistics in ``extra`` that depend on the order.
    """

    _: KW_ONLY
    rebuild: Callable[[SetView], None]
    update: Callable[[SetView, Array, float], None] | None = None

    def absorb_many(self, model: LinearModel, flat: Array, features: Array, rewards: Array) -> None:
        """Rows of ``features`` (n, d) with ``rewards`` (n,) into a flat vector, in order.

        If the set raises an error, the flat vector is as it was.
        """
        before = flat.copy()
        region, data, _ = views(flat)
        view = SetView(model, region, data)
        try:
            for x, y in zip(features, rewards.tolist(), strict=True):
                data.gram[...] += x[:, None] * x
                data.moment[...] += x * y
                data.tally[COUNT] += 1.0
                data.tally[SQUARES_SUM] += y * y
                if self.update is not None:
                    self.update(view, x, y)
            self.rebuild(view)
            region.radius[region.radius < 0.0] = np.nan  # an empty ellipsoid certifies nothing
            region.reach[:] = region.radius  # rounding is the set's own concern
        except BaseException:
            flat[:] = before
            raise
