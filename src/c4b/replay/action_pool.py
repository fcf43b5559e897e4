"""The actions of a log and their features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.errors import InvalidInput, LogCannotAnswer
from c4b.features import FeatureBuilder, Interaction, Intercept, Number, OneHot, Part
from c4b.logs import Log, StreamedLog

AT_ONCE = 20_000
"""Rows of candidates whose features are in memory at once."""
FITTED_ON = 200_000
"""Rows at most, the first ones, from which scales and labels of features are fixed."""


class ActionPool:
    """The actions of a log: one column of rewards each, or the labels of its column of actions."""

    def __init__(self, log: Log | StreamedLog, baseline: str) -> None:
        columns = log.columns
        self.action_column = columns.action or "action"
        if columns.rewards:
            self.labels: tuple[str, ...] = columns.rewards
        elif columns.action is None:
            raise InvalidInput("action", None, "name the column of the executed action")
        else:
            self.labels = tuple(log.labels(columns.action))
        if len(self.labels) < 2:
            raise LogCannotAnswer(
                f"the log always took {self.labels[0]!r} and knows nothing about another action. Log a "
                "small share of random actions first"
            )
        if baseline not in self.labels:
            raise InvalidInput("baseline", baseline, f"must be one of {list(self.labels)[:20]}")
        self.place = {label: n for n, label in enumerate(self.labels)}
        self.baseline = self.place[baseline]

    def taken(self, log: Log) -> NDArray[np.int64]:
        """The index of each row's action."""
        assert log.columns.action is not None
        return np.array(
            [self.place[str(label)] for label in log.frame[log.columns.action].to_list()], dtype=np.int64
        )

    def blocks(self, log: Log, builder: FeatureBuilder) -> Iterator[Array]:
        """The features of all actions, some rows at a time: shape (rows, K, d) each."""
        k = len(self.labels)
        every = pl.Series(self.action_column, self.labels)
        context = log.frame.select(log.columns.context) if log.columns.context else None
        step = max(1, AT_ONCE // k)
        for start in range(0, len(log), step):
            n = min(step, len(log) - start)
            rows = pl.DataFrame({self.action_column: pl.concat([every] * n)})
            if context is not None:
                repeated = np.repeat(np.arange(start, start + n), k)
                rows = rows.hstack(context[repeated])
            yield builder.transform(rows).reshape(n, k, -1)

    def pools(self, log: Log, builder: FeatureBuilder) -> Iterator[Array]:
        """The features of all actions, row by row: shape (K, d) each."""
        for block in self.blocks(log, builder):
            yield from block


def fitted(builder: FeatureBuilder | None, past: Log | StreamedLog, pool: ActionPool) -> FeatureBuilder:
    """A builder whose scales and labels are fixed, from past rows where they were not yet."""
    if builder is None:
        frame = past.head(FITTED_ON).frame
        return default_features(frame, pool.action_column, past.columns.context, pool.labels)
    return builder if builder.fitted else builder.fit(past.head(FITTED_ON).frame)


def default_features(
    past: pl.DataFrame, action: str, context: Sequence[str], labels: Sequence[str]
) -> FeatureBuilder:
    """An intercept, one feature for each action, and their products with each column of the context."""
    each_action = OneHot(action, labels=tuple(labels))
    parts: list[Part] = [Intercept(), each_action]
    for column in context:
        number = past[column].dtype.is_numeric()
        parts.append(Interaction(each_action, Number(column) if number else OneHot(column, at_most=20)))
    return FeatureBuilder(parts).fit(past)


def executed_features(log: Log, builder: FeatureBuilder | None = None) -> tuple[Array, list[str]]:
    """The features of what was executed in each row, shape (rows, d), and their names."""
    if log.columns.action is None:
        raise InvalidInput("action", None, "name the column of the executed action")
    if builder is None:
        labels = log.labels(log.columns.action)
        builder = default_features(log.frame, log.columns.action, log.columns.context, labels)
    elif not builder.fitted:
        builder = builder.fit(log.frame)
    return builder.transform(log.frame), builder.names
