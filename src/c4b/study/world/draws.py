"""Randomness: one counter-based stream for each (seed, episode, role).

A stream depends on nothing else, so results do not depend on chunking, on the number of workers or
on which methods run; methods and settings of one episode share their draws. All draws fill arrays
round by round: a longer study begins with the same rounds.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from c4b._validate import Array

HISTORY_FEATURES, HISTORY_NOISE, CANDIDATES, NOISE, BASELINES, COMMON_DIRECTIONS, LISTING = range(7)
"""Roles of streams."""

NOISES = ("gaussian", "uniform", "rademacher", "student-t", "heteroscedastic", "skewed")
"""Unit noise, multiplied by sigma. ``heteroscedastic``: normal with a scale of its own in each round and
action, between 0.1 and 1. ``skewed``: 1.8 with probability 0.1, else -0.2. All but student-t are
1-sub-Gaussian, so sigma is a valid scale for the learner; student-t (3 degrees of freedom, unit
variance) has no sub-Gaussian scale and breaks the learner's assumption."""
CLICKS = "clicks"
"""Instead of noise: rewards are 1 with the action's mean as probability, else 0; sigma has no meaning."""


def stream(seed: int, episode: int, role: int) -> np.random.Generator:
    """The random numbers of one role in one episode."""
    key = np.array([seed, (episode << 8) | role], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def unit_noise(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Noise of one of ``NOISES``, before it is multiplied by sigma."""
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "uniform":
        return rng.uniform(-1.0, 1.0, shape)
    if kind == "rademacher":
        signs: Array = np.where(rng.integers(0, 2, shape) == 0, -1.0, 1.0)
        return signs
    if kind == "heteroscedastic":
        pairs = rng.standard_normal((*shape, 2))
        varied: Array = pairs[..., 0] * (0.1 + 0.9 * np.exp(-(pairs[..., 1] ** 2)))
        return varied
    if kind == "skewed":
        two_points: Array = np.where(rng.random(shape) < 0.1, 1.8, -0.2)
        return two_points
    scaled: Array = rng.standard_t(3.0, shape) / np.sqrt(3.0)  # variance of t_3 is 3
    return scaled


def clicks_minus_means(uniform: Array, means: Array) -> Array:
    """What makes ``means`` (...), between 0 and 1, rewards of exactly 0 or 1 when it is added to them.

    The sum has no rounding error: 1 - m is within 2^-54 of the truth, and what then lies within 2^-54 of
    1 is rounded to 1.
    """
    noise: Array = np.where(uniform < means, 1.0 - means, -means)
    return noise


def directions(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Uniform on the unit sphere of the last axis; an empty last axis stays empty."""
    raw = rng.standard_normal(shape)
    length = np.sqrt(np.einsum("...i,...i->...", raw, raw))
    scaled: Array = raw / length[..., None] if shape[-1] else raw
    return scaled


class Generator(Protocol):
    """A candidate generator: features (rounds, count, dim) for one episode."""

    def __call__(self, rng: np.random.Generator, rounds: int, count: int, dim: int) -> Array: ...
