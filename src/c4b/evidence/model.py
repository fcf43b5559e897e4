"""The assumptions about rewards, fixed before any data are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.ellipsoids import Terms
from c4b.evidence.sets import table
from c4b.evidence.sets.confidence_set import ConfidenceSet

DEFAULT_CONFIDENCE = "self-normalized"
"""The paper's; used where neither the model nor the policy says otherwise."""


LEAST, MOST = 1e-30, 1e30
"""Of noise, norm bound and ridge: beyond, products of them underflow in float64, and no bound of rounding
errors covers that (docs/theory.md, section "Rounding")."""
MOST_FEATURES = 10_000_000
"""Of them one matrix of a set takes 800 TB; NumPy cannot even say how large one of far more would be."""


def _scale(argument: str, value: object, remedy: str) -> float:
    """A positive number between LEAST and MOST."""
    result = _validate.positive(argument, value, remedy)
    if not LEAST <= result <= MOST:
        remedy = f"must lie between {LEAST:g} and {MOST:g}; measure rewards or features in other units"
        raise InvalidInput(argument, value, remedy)
    return result


def _checked_dim(value: object) -> int:
    """A number of features that some machine could have the memory for."""
    dim = _validate.count("dim", value, 1, "must be a whole number of at least 1")
    if dim > MOST_FEATURES:
        remedy = (
            f"must be at most {MOST_FEATURES}, the number of features; the memory that sets need grows "
            "with its square"
        )
        raise InvalidInput("dim", value, remedy)
    return dim


def checked_range(value: object) -> tuple[float, float]:
    """``value`` as a pair (low, high) of finite numbers, low < high."""
    remedy = "must be the lowest and the highest possible reward, such as (0, 1)"
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput("rewards", value, remedy)
    low, high = (_validate.reward("rewards", end) for end in value)
    if not low < high or not math.isfinite(high - low):
        raise InvalidInput("rewards", value, remedy)
    return low, high


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Linear rewards with sub-Gaussian noise, and the confidence set that learns about them.

    The guarantee needs all of these assumptions: rewards are ``Y = x @ theta + noise`` with one fixed
    ``theta`` and ``||theta|| <= norm_bound``; the noise has mean zero and is ``noise``-sub-Gaussian given
    everything before it; every number here was chosen before the data were seen.

    Parameters
    ----------
    dim: number of features.
    noise: sub-Gaussian scale sigma of the reward noise. For rewards in [l, u], (u - l)/2 is valid.
    norm_bound: S, an upper bound on the Euclidean norm of theta.
    ridge: lambda of the regularised estimator (4). ``"several-ridges"`` uses it only as a unit: a value
        that is wrong by three decades costs little there.
    delta: probability with which the confidence set, and therefore the guarantee, may fail.
    confidence: name of the confidence set. ``"self-normalized"`` is the paper's radius (6). ``"mixture"``
        is never larger, under the same assumptions. ``"constrained"`` also uses ``||theta|| <=
        norm_bound`` and is smaller still. ``"unbiased"`` bounds only the noise, without the ridge's bias,
        and uses ``||theta|| <= norm_bound`` directly; it is the smallest set when data are few.
        ``"several-ridges"`` does the same with fifteen ridges at once; it is the smallest set from some
        hundred observations on. ``"adaptive"`` treats ``noise`` as a bound that may be far too large and
        learns the noise level; use it for revenue and other rewards without a range. ``"box"`` has one
        interval for each arm; use it for features that are unit vectors and means that are not negative.
        ``"bounded-3"`` is for rewards in a range; see ``rewards``. With None the policy chooses: the
        paper's policies choose the paper's set, ``reserve-c4b+`` chooses ``"several-ridges"``.
    misspecification: epsilon >= 0, the largest distance of any mean from a linear function. The set grows
        by ``epsilon sqrt(n)`` and the ledger is charged for epsilon in each round. 0, the default, is the
        paper's model. With epsilon > 0 the constrained set keeps only the ellipsoid that this argument
        covers; the unbiased set and several-ridges keep all of theirs.
    rewards: (lowest, highest) possible reward, or None. A reward outside this range is an error. The sets
        ``"bounded-3"`` and its earlier versions ``"bounded-2"`` and ``"bounded"`` need it and learn the
        variance instead of using a declared noise scale; ``LinearModel.bounded`` sets the other fields.

    >>> LinearModel(dim=5, noise=0.3, norm_bound=1.5).delta
    0.05
    """

    dim: int
    noise: float
    norm_bound: float
    ridge: float = 0.1
    delta: float = 0.05
    confidence: str | None = None
    misspecification: float = 0.0
    rewards: tuple[float, float] | None = None

    @classmethod
    def bounded(
        cls,
        dim: int,
        norm_bound: float,
        rewards: tuple[float, float] = (0.0, 1.0),
        ridge: float = 0.1,
        delta: float = 0.05,
        misspecification: float = 0.0,
    ) -> LinearModel:
        """A model for rewards in a range, such as clicks, conversions and ratings.

        It needs no noise scale.

        >>> LinearModel.bounded(dim=5, norm_bound=1.0).confidence
        'bounded-3'
        """
        low, high = checked_range(rewards)
        noise = 0.5 * (high - low)
        return cls(dim, noise, norm_bound, ridge, delta, "bounded-3", misspecification, (low, high))

    def __post_init__(self) -> None:
        check: dict[str, object] = {
            "dim": _checked_dim(self.dim),
            "noise": _scale(
                "noise",
                self.noise,
                "must be a positive number: the sub-Gaussian scale of the reward noise "
                "((u - l)/2 for rewards in [l, u])",
            ),
            "norm_bound": _scale(
                "norm_bound",
                self.norm_bound,
                "must be a positive number: an upper bound on the norm of theta",
            ),
            "ridge": _scale("ridge", self.ridge, "must be a positive number"),
            "delta": _validate.fraction(
                "delta", self.delta, "must lie strictly between 0 and 1, for example 0.05"
            ),
            "confidence": None
            if self.confidence is None
            else table.checked_name("confidence", self.confidence),
        }
        check["misspecification"] = _validate.nonnegative(
            "misspecification",
            self.misspecification,
            "must be a number >= 0: how far a mean reward may be from linear, in units of reward",
        )
        check["rewards"] = None if self.rewards is None else checked_range(self.rewards)
        for field, value in check.items():
            object.__setattr__(self, field, value)
        if self.confidence is not None and self.confidence_set.needs_range:
            self._check_range_is_used()
        if self.confidence is not None and self.confidence_set.one_hot and self.misspecification > 0.0:
            remedy = f"confidence={self.confidence!r} has no allowance for it; use 0 or another set"
            raise InvalidInput("misspecification", self.misspecification, remedy)

    def _check_range_is_used(self) -> None:
        if self.rewards is None:
            remedy = f"is needed for confidence={self.confidence!r}: the range of rewards, such as (0, 1)"
            raise InvalidInput("rewards", None, remedy)
        half = 0.5 * (self.rewards[1] - self.rewards[0])
        if self.noise != half:
            remedy = f"must be {half:g}, half the range of rewards, or use LinearModel.bounded"
            raise InvalidInput("noise", self.noise, remedy)

    def check_reward(self, argument: str, value: float) -> float:
        """Return ``value`` if it lies in the declared range of rewards, else raise ``InvalidInput``."""
        if self.rewards is not None and not self.rewards[0] <= value <= self.rewards[1]:
            raise InvalidInput(argument, value, self._range_remedy())
        return value

    def check_rewards(self, argument: str, values: Array) -> Array:
        """Return ``values`` (n,) if all lie in the declared range, else raise ``InvalidInput``."""
        if self.rewards is not None and len(values):
            outside = ~((values >= self.rewards[0]) & (values <= self.rewards[1]))
            if outside.any():
                n = int(np.argmax(outside))
                raise InvalidInput(f"{argument}[{n}]", float(values[n]), self._range_remedy())
        return values

    def _range_remedy(self) -> str:
        low, high = self.rewards or (-math.inf, math.inf)
        return f"must lie in the declared range of rewards, {low:g} to {high:g}"

    @property
    def sums_rewards(self) -> bool:
        """Whether the set also bounds sums of rewards directly (``c4b.evidence.sums.totals``).

        This needs 0 as the lowest reward. Every action's mean is then >= 0, too.
        """
        return self.confidence_set.needs_range and self.rewards is not None and self.rewards[0] == 0.0

    def resolved(self, preferred: str | None = None) -> LinearModel:
        """Return the model with a chosen set: its own, else ``preferred``, else the paper's."""
        return replace(self, confidence=self.confidence or preferred or DEFAULT_CONFIDENCE)

    @property
    def confidence_set(self) -> ConfidenceSet:
        """The confidence set that the field ``confidence`` names."""
        return table.get_set(self.confidence or DEFAULT_CONFIDENCE)

    @property
    def terms(self) -> Terms:
        log_term = -2.0 * math.log(self.delta)
        return Terms(self.noise, self.norm_bound, log_term, self.misspecification)

    @property
    def mixing(self) -> float:
        """The ridge l of the unbiased set; 0 for sets that do not have one."""
        return self.confidence_set.mixing(self)

    @property
    def ridges(self) -> Array:
        """Regularisers (G,) of the stacked ellipsoids; the first is the ridge of the estimator itself."""
        return np.asarray(self.confidence_set.ridges(self), dtype=np.float64)
