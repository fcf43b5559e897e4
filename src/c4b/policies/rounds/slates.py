"""Slates: actions that consist of several items, each with features of its own.

The reward of a slate is the sum of its items' rewards, so its features are the sum of theirs, which is
what certificates, ledgers and selection see. What differs is learning. An outcome by item is one
observation for each item, and the model's ``noise`` is the scale of one item's outcome, given everything
before it, the earlier items of the slate among that. The sum of m outcomes then has the scale
``noise sqrt(m)``. One outcome Y for the slate is absorbed as the row ``x / sqrt(m)`` with the reward
``Y / sqrt(m)``, whose noise has the scale ``noise`` again. Where only sums are ever observed, offer the
sums as plain rows and declare their noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from c4b import _array_likes, _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.evidence.model import LinearModel

Outcome = float | tuple[float, ...]
"""What is reported of a decision: one reward, or one for each item of its slate."""


Reward = float | Sequence[float]
"""The same as callers may write it."""


class Slates(NamedTuple):
    """Items of a round's actions."""

    candidates: Array  # (K, m, d)
    baseline: Array  # (n, d)


def has_items(candidates: object, baseline: object) -> bool:
    """Whether a round offers slates, or, if it offers nothing, has a slate as its baseline."""
    depth = _depth(candidates)
    return depth >= 3 or (depth == 1 and _is_empty(candidates) and _depth(baseline) == 2)


def _is_empty(value: Any) -> bool:
    """Whether a list or an array has no element; a sparse one knows its shape but not its length."""
    return not (value.shape[0] if hasattr(value, "shape") else len(value))


def _depth(value: Any) -> int:
    """How deep a nested sequence is, judged by its first elements."""
    depth: int = getattr(value, "ndim", -1)
    if depth >= 0:
        return depth
    depth = 0
    while depth < 4 and isinstance(value, list | tuple):
        depth += 1
        value = value[0] if value else None
    return depth + (getattr(value, "ndim", 0) if depth else 0)


def checked_slates(prefix: str, candidates: Any, baseline: Any, dim: int) -> Slates:
    """Both sides as arrays of finite numbers, or ``InvalidInput``."""
    remedy = f"must be K slates of m >= 1 items with {dim} features each, shape (K, m, {dim})"
    if isinstance(candidates, list | tuple) and not candidates:
        candidates = np.empty((0, 1, dim))
    pool = _checked(f"{prefix}candidates", candidates, 3, dim, remedy)
    return Slates(pool, checked_slate(f"{prefix}baseline", baseline, dim))


def checked_slate(argument: str, value: Any, dim: int) -> Array:
    """One slate, shape (m, d) with m >= 1."""
    remedy = f"must be a slate of m >= 1 items with {dim} features each, shape (m, {dim})"
    return _checked(argument, value, 2, dim, remedy)


def _checked(argument: str, value: Any, ndim: int, dim: int, remedy: str) -> Array:
    try:
        raw = np.asanyarray(value)  # keeps a mask, which the next check refuses
    except ValueError as error:
        raise InvalidInput(argument, value, remedy) from error
    if raw.ndim != ndim or raw.shape[-1] != dim or raw.shape[-2] < 1:
        raise InvalidInput(argument, value, f"{remedy}; got shape {raw.shape}")
    return _validate.table(argument, raw.reshape(-1, dim), dim).reshape(raw.shape)


def checked_execution(argument: str, value: object, dim: int) -> tuple[Array, Array | None]:
    """Features (d,) of what was executed and, if it is a slate, its items (m, d)."""
    value = _array_likes.dense_row(value)
    if _depth(value) < 2:
        return _validate.vector(argument, value, dim), None
    items = checked_slate(argument, value, dim)
    return features_of(items), items


def features_of(items: Array) -> Array:
    """The features of slates (..., m, d): the sums of their items', added one after another."""
    total = items[..., 0, :].copy()
    for j in range(1, items.shape[-2]):
        total += items[..., j, :]
    return total


def checked_outcome(model: LinearModel, argument: str, value: object) -> Outcome:
    """One reward, or the rewards of the items of a slate."""
    if type(value) is float and model.rewards is None and abs(value) <= _validate.LARGEST:
        return value  # in most calls
    if type(value) is float or not _is_listed(value):
        return _checked_reward(model, argument, value)
    each: Any = value
    rewards = tuple(_checked_reward(model, f"{argument}[{n}]", one) for n, one in enumerate(each))
    if not rewards:
        raise InvalidInput(argument, value, "must be a number, or one for each item of the slate")
    return rewards


def _is_listed(value: object) -> bool:
    return value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, list | tuple)


def _checked_reward(model: LinearModel, argument: str, value: object) -> float:
    return model.check_reward(argument, _validate.reward(argument, _array_likes.reward(value)))


def plain(outcome: Outcome) -> Outcome:
    """The outcome as it is kept: the reward of a slate of one item is one number."""
    return outcome[0] if isinstance(outcome, tuple) and len(outcome) == 1 else outcome


def total(outcome: Outcome) -> float:
    """The reward of the whole slate."""
    return math.fsum(outcome) if isinstance(outcome, tuple) else outcome


def rows(items: Array, outcome: Outcome) -> Iterator[tuple[Array, float]]:
    """The observations that an outcome of items (m, d) is: features (d,) and reward."""
    if isinstance(outcome, tuple):
        yield from zip(items, outcome, strict=True)
    else:
        root = math.sqrt(len(items))
        yield features_of(items) / root, outcome / root
