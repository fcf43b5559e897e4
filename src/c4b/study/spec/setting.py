"""One point of a study's grid: true parameters, history, candidates and the learner's assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.model import DEFAULT_CONFIDENCE, LinearModel
from c4b.evidence.sets.table import checked_name
from c4b.study.world.draws import CLICKS, NOISES

HISTORIES = ("diverse", "baseline", "candidates", "logged")
"""``diverse``: features (1, u), u uniform on the sphere; ``baseline``: the incumbent's only;
``candidates``: drawn like the first candidate of a round; ``logged``: like a random one."""
GENERATORS = ("sphere", "gaussian", "one-hot", "items", "file", "python")
"""``sphere``: (1, rho u); ``gaussian``: (1, rho g / sqrt(d-1)); ``one-hot``: arms, unit vectors of other
coordinates than the first, as many of them as ``count`` says; ``items``: the same arms with an intercept,
(1, e_k); ``file``: rows of a table; ``python``: a
function named ``module:function``."""

NUMBERED, SHUFFLED = "numbered", "shuffled"
LISTINGS = (NUMBERED, SHUFFLED)
"""The order in which arms are offered: by number, or in an order that is drawn for each episode. A method
that takes the first of equals then tries each arm first equally often."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid. Every field may be swept in a study file."""

    history: str = "diverse"
    history_size: int = 20
    rho: float = 0.15
    sigma: float = 0.3
    reserve: float = 0.0
    alpha: float = 0.05
    delta: float = 0.05
    ridge: float = 0.1
    norm_bound: float = 1.5
    confidence: str | None = None
    assumed_sigma: float | None = None
    misspecification: float = 0.0
    noise: str = "gaussian"
    generator: str = "sphere"
    source: str | None = None
    count: int = 32
    rounds: int = 200
    theta: tuple[float, ...] = (1.0, 0.6, 0.0, 0.0, 0.0)
    baseline: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0)
    correlation: float = 0.0
    """Similarity of the candidates of a round: the share of one direction that all of them have in
    common."""
    listing: str = NUMBERED
    """With the generators ``one-hot`` and ``items``: one of ``LISTINGS``."""
    baseline_spread: float = 0.0
    """Length of a vector of random direction that is added in each round to all but the first feature of
    the baseline."""
    baselines: str | None = None
    """File with the baseline's features in each round; after its last row it starts again from the
    first."""
    told_mean_error: float = 0.0
    """Amount by which the baseline mean that is given to methods is too large, in units of reward."""
    baseline_floor: float = 0.0
    """r_l, the known lower bound of the baseline's mean reward."""
    world: str = ""
    """Name of the setting, in studies that list their settings one by one."""
    methods: tuple[str, ...] = ()
    """Labels of the methods that play in this setting; empty: all methods of the study."""

    def __post_init__(self) -> None:
        _validate.name("history", self.history, HISTORIES)
        _validate.name("noise", self.noise, (*NOISES, CLICKS))
        _validate.name("generator", self.generator, GENERATORS)
        if self.confidence is not None:
            checked_name("confidence", self.confidence)
        least_zero = "must be a whole number of at least 0"
        _validate.count("history_size", self.history_size, 0, least_zero)
        _validate.count("count", self.count, 1, "must be a whole number of at least 1")
        _validate.count("rounds", self.rounds, 1, "must be a whole number of at least 1")
        _validate.nonnegative("rho", self.rho, "must be a number >= 0")
        _validate.positive("sigma", self.sigma, "must be a positive number")
        if self.assumed_sigma is not None:
            _validate.positive("assumed_sigma", self.assumed_sigma, "must be a positive number")
        _validate.nonnegative("reserve", self.reserve, "must be a number >= 0")
        _validate.fraction("alpha", self.alpha, "must lie strictly between 0 and 1")
        _validate.number("told_mean_error", self.told_mean_error, "must be a finite number")
        _validate.nonnegative("baseline_floor", self.baseline_floor, "must be a number >= 0")
        _validate.nonnegative("baseline_spread", self.baseline_spread, "must be a number >= 0")
        if not 0.0 <= self.correlation < 1.0:
            raise InvalidInput("correlation", self.correlation, "must be at least 0 and below 1")
        if self.correlation > 0.0 and self.generator != "sphere":
            raise InvalidInput("correlation", self.correlation, "needs the generator 'sphere'")
        _validate.name("listing", self.listing, LISTINGS)
        if self.listing == SHUFFLED and self.generator not in ("one-hot", "items"):
            raise InvalidInput("listing", self.listing, "needs the generator 'one-hot' or 'items'")
        if self.generator in ("one-hot", "items") and self.count >= len(self.theta):
            remedy = f"{len(self.theta)} coordinates give {len(self.theta) - 1} arms beside the first"
            raise InvalidInput("count", self.count, remedy)
        if self.baselines is not None and self.baseline_spread > 0.0:
            remedy = "give a file of baselines or a spread around one, not both"
            raise InvalidInput("baseline_spread", self.baseline_spread, remedy)
        needs_source = self.generator in ("file", "python")
        if needs_source and not self.source:
            what = "a CSV, Parquet or NPY file" if self.generator == "file" else "'module:function'"
            raise InvalidInput("source", self.source, f"generator {self.generator!r} needs {what}")
        if not needs_source and self.source is not None:
            raise InvalidInput("source", self.source, f"generator {self.generator!r} takes none")
        _validate.series("theta", self.theta)
        _validate.vector("baseline", self.baseline, len(self.theta))
        self.model(self.confidence or DEFAULT_CONFIDENCE)
        norm = float(np.linalg.norm(self.theta))
        if norm > self.norm_bound * (1.0 + 1e-12):
            raise InvalidInput(
                "norm_bound", self.norm_bound, f"must be at least the norm of theta, {norm:.6g}"
            )
        if not self.baseline_mean > 0.0:
            raise InvalidInput(
                "baseline",
                self.baseline,
                f"its mean reward baseline @ theta = {self.baseline_mean:.6g} must be positive: the "
                "guarantee assumes a nonnegative incumbent and the reward ratio divides by it",
            )
        least = self.least_baseline_mean
        if not least > 0.0:
            raise InvalidInput(
                "baseline_spread",
                self.baseline_spread,
                f"the baseline's mean could be {least:.6g}; every round's must be positive",
            )

    @property
    def dim(self) -> int:
        return len(self.theta)

    @property
    def baseline_mean(self) -> float:
        return float(np.dot(self.baseline, self.theta))

    @property
    def least_baseline_mean(self) -> float:
        """Below it lies no mean of a baseline that is drawn; ``baselines`` are not read."""
        return self.baseline_mean - self.baseline_spread * float(np.linalg.norm(self.theta[1:]))

    @property
    def fixed_baseline(self) -> bool:
        """Whether every round has the same baseline."""
        return self.baselines is None and self.baseline_spread == 0.0

    @property
    def forced_rounds(self) -> int:
        """Rounds in which any gate certified over the whole set must play the baseline.

        Baseline-only data contain no information about directions orthogonal to x(b) = (s, 0, ..., 0). A
        candidate is (f, r u) with u of length 1: f = 1 and r = rho, or f = 0 and r = 1 for arms, both 1
        for items. It cannot be certified until reserve and baseline credit cover a theta opposite to u,
        even with the baseline's mean m known: R0 + n alpha m + (f/s - c) m >= r sqrt(S^2 - (m/s)^2). The
        result is 0 where history, generator or baseline contain more information than that, and for
        clicks, because no mean is below 0.
        """
        rest = self.baseline[1:]
        uninformed = self.history == "baseline" or self.history_size == 0
        unit = self.generator in ("sphere", "one-hot", "items")
        unknowing = self.fixed_baseline and uninformed and unit and self.noise != CLICKS
        if not unknowing or any(rest):
            return 0
        known = 0.0 if self.generator == "one-hot" else 1.0
        unknown = self.rho if self.generator == "sphere" else 1.0
        mean, first = self.baseline_mean, self.theta[0]
        worst = unknown * math.sqrt(max(self.norm_bound**2 - first**2, 0.0))
        gain = (
            known * first - (1.0 - self.alpha) * mean
        )  # what a candidate with u orthogonal to theta adds
        return max(0, math.ceil((worst - self.reserve - gain) / (self.alpha * mean) - 1e-12))

    def model(self, confidence: str | None) -> LinearModel:
        """The model that the learner assumes."""
        clicks = self.noise == CLICKS
        scale = 0.5 if clicks else self.sigma
        return LinearModel(
            dim=self.dim,
            noise=scale if self.assumed_sigma is None else self.assumed_sigma,
            norm_bound=self.norm_bound,
            ridge=self.ridge,
            delta=self.delta,
            confidence=confidence,
            misspecification=self.misspecification,
            rewards=(0.0, 1.0) if clicks else None,
        )

    def vectors(self) -> tuple[Array, Array]:
        return np.array(self.theta), np.array(self.baseline)
