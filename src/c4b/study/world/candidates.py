"""Features of candidates, of baselines and of historical rows, for one episode."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from c4b._compilation.cache_lines import new_space
from c4b._validate import Array
from c4b.study.spec.setting import SHUFFLED, Setting
from c4b.study.world import candidate_sources, draws


def raw_pools(setting: Setting, seed: int, episode: int) -> Array:
    """What settings that differ in rho share: directions (T, d-1, K), or whole features (T, d, K)."""
    rng = draws.stream(seed, episode, draws.CANDIDATES)
    rounds, count, dim = setting.rounds, setting.count, setting.dim
    if setting.generator == "sphere":
        features = draws.directions(rng, (rounds, count, dim - 1))
        if setting.correlation > 0.0:
            features = _towards_a_common_direction(features, setting.correlation, seed, episode)
    elif setting.generator in ("one-hot", "items"):
        arms = _in_order(setting, rng.random((rounds, dim - 1)).argsort(axis=1)[:, :count], seed, episode)
        features = np.eye(dim)[1 + arms]
        features[:, :, 0] = setting.generator == "items"
    elif setting.generator == "gaussian":
        features = rng.standard_normal((rounds, count, dim - 1)) / np.sqrt(max(dim - 1, 1))
    elif setting.generator == "file":
        assert setting.source is not None
        table = candidate_sources.read_table(setting.source, dim)
        order = rng.random((rounds, len(table))).argsort(axis=1)[:, :count]
        features = table[np.sort(order, axis=1)]
    else:
        features = candidate_sources.call_function(setting, rng, rounds)
    return np.ascontiguousarray(features.transpose(0, 2, 1))


def pools(setting: Setting, raw: Array) -> Array:
    """Candidates of every round, (T, d, K), from ``raw_pools``."""
    if setting.generator in ("one-hot", "items", "file", "python"):
        return raw
    shape = (setting.rounds, setting.dim, setting.count)
    full = new_space(math.prod(shape)).reshape(shape)
    full[:, 0] = 1.0
    np.multiply(raw, setting.rho, out=full[:, 1:])
    return full


def _in_order(setting: Setting, arms: NDArray[np.intp], seed: int, episode: int) -> NDArray[np.intp]:
    """The arms (T, K) of each round, by number or in the order of this episode."""
    listed = np.arange(setting.dim - 1)
    if setting.listing == SHUFFLED:
        listed = draws.stream(seed, episode, draws.LISTING).permutation(setting.dim - 1)
    in_order: NDArray[np.intp] = listed[np.sort(listed.argsort()[arms], axis=1)]
    return in_order


def _towards_a_common_direction(features: Array, share: float, seed: int, episode: int) -> Array:
    """Directions (T, K, d-1) mixed with one direction a round, which all candidates share."""
    rng = draws.stream(seed, episode, draws.COMMON_DIRECTIONS)
    common = draws.directions(rng, (features.shape[0], 1, features.shape[2]))
    mixed = np.sqrt(1.0 - share) * features + np.sqrt(share) * common
    length = np.sqrt(np.einsum("...i,...i->...", mixed, mixed))[..., None]
    scaled: Array = mixed / length if features.shape[2] else mixed
    return scaled


def baselines(setting: Setting, seed: int, episode: int) -> Array:
    """Features of the baseline in every round, (T, d)."""
    rng = draws.stream(seed, episode, draws.BASELINES)
    return _baseline_rows(setting, rng, setting.rounds)


def _baseline_rows(setting: Setting, rng: np.random.Generator, size: int) -> Array:
    """(size, d): the incumbent, drawn around it, or the rows of a file from its first one on."""
    if setting.baselines is not None:
        table = candidate_sources.read_table(setting.baselines, setting.dim)
        return table[np.arange(size) % len(table)]
    rows = np.tile(np.array(setting.baseline), (size, 1))
    if setting.baseline_spread > 0.0:
        rows[:, 1:] += setting.baseline_spread * draws.directions(rng, (size, setting.dim - 1))
    return rows


def history(setting: Setting, seed: int, episode: int, pools: Array) -> Array:
    """Features of historical rows (n, d); ``pools`` (T, d, K) are the candidates of the deployment."""
    size, dim = setting.history_size, setting.dim
    if setting.history == "baseline":
        return _baseline_rows(setting, draws.stream(seed, episode, draws.HISTORY_FEATURES), size)
    if setting.history == "candidates":
        return np.ascontiguousarray(np.resize(pools[:, :, 0], (size, dim)))
    rng = draws.stream(seed, episode, draws.HISTORY_FEATURES)
    if setting.history == "logged":
        chosen = rng.integers(pools.shape[2], size=size)
        return np.ascontiguousarray(pools[np.arange(size) % len(pools), :, chosen])
    features = np.ones((size, dim))
    features[:, 1:] = draws.directions(rng, (size, dim - 1))
    return features
