"""How the actions of a log were drawn, and what can be replayed on it therefore."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import scipy

from c4b._validate import Array
from c4b.errors import LogCannotAnswer
from c4b.logs import Log, StreamedLog
from c4b.replay.action_pool import ActionPool

NOT_UNIFORM = 1e-6
"""Counts less probable than this under equal chances are not believed to come from them."""

Rows = Log | StreamedLog


def how_to_replay(past: Rows, rest: Rows, pool: ActionPool, uniform: bool) -> str:
    """ "matching" or "queues" (without context) where actions were equally likely, else "weights".

    ``uniform``: that is declared, though the log has no propensities. Raises ``LogCannotAnswer`` where
    nothing can be replayed.
    """
    columns = rest.columns
    if columns.propensity is None and not uniform:
        raise LogCannotAnswer(
            "the log does not say how actions were drawn: name a column of propensities, or say that all "
            "actions were equally likely (uniform)"
        )
    if columns.propensity is None:
        _require_equal_counts(past, rest, pool)
    elif not all(_is_uniform(batch, pool) for batch in _batches(past, rest)):
        return "weights"
    return "matching" if columns.context or columns.candidates or columns.baseline else "queues"


def _batches(*logs: Rows) -> Iterator[Log]:
    for log in logs:
        yield from log.batches()


def _sizes(batch: Log, pool: ActionPool) -> Array:
    """Candidates in each row."""
    column = batch.columns.candidates
    if column is None:
        return np.full(len(batch), float(len(pool.labels)))
    return batch.frame[column].list.len().to_numpy().astype(np.float64)


def _is_uniform(batch: Log, pool: ActionPool) -> bool:
    return bool(np.allclose(batch.numbers("propensity"), 1.0 / _sizes(batch, pool), rtol=1e-6))


def _require_equal_counts(past: Rows, rest: Rows, pool: ActionPool) -> None:
    """Each action was taken about as often as equal chances say."""
    k = len(pool.labels)
    counts, expected = np.zeros(k, dtype=np.int64), np.zeros(k)
    for batch in _batches(past, rest):
        counts += np.bincount(pool.taken(batch), minlength=k)
        column = batch.columns.candidates
        if column is None:
            expected += len(batch) / k
            continue
        sizes = _sizes(batch, pool)
        offered = batch.frame[column].explode().cast(pl.String).to_list()
        places = [pool.place[label] for label in offered]
        expected += np.bincount(places, np.repeat(1.0 / sizes, sizes.astype(np.int64)), minlength=k)
    offered_ever = expected > 0.0
    if scipy.stats.chisquare(counts[offered_ever], expected[offered_ever]).pvalue < NOT_UNIFORM:
        shown = dict(zip(pool.labels, counts.tolist(), strict=True))
        raise LogCannotAnswer(f"actions were declared equally likely, but were taken so often: {shown}")
