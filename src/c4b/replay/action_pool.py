"""The actions of a log and their features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.errors import InvalidInput, InvalidLog, LogCannotAnswer
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
            self.labels = tuple(log.labels(columns.candidates or columns.action))
        if len(self.labels) < 2:
            raise LogCannotAnswer(
                f"the log always took {self.labels[0]!r} and knows nothing about another action. Log a "
                "small share of random actions first"
            )
        if baseline not in self.labels:
            raise InvalidInput("baseline", baseline, f"must be one of {list(self.labels)[:20]}")
        self.place = {label: n for n, label in enumerate(self.labels)}
        self.baseline = self.place[baseline]
        if columns.candidates is not None:
            _require_everywhere(log, columns.candidates, baseline)

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

    def rounds(self, log: Log, builder: FeatureBuilder) -> Iterator[Choices]:
        """What could be chosen in each row: all actions, or those that the row lists."""
        if log.columns.candidates is not None:
            for listed in self.listed(log, builder):
                yield from listed.rows()
            return
        taken = [NONE] * len(log) if log.columns.action is None else self.taken(log).tolist()
        pools = (x for block in self.blocks(log, builder) for x in block)
        for x, action in zip(pools, taken, strict=True):
            yield Choices(x, self.baseline, action)

    def listed(self, log: Log, builder: FeatureBuilder) -> Iterator[Listed]:
        """The same for a log whose rows list their candidates, some rows at a time."""
        column, action = log.columns.candidates, log.columns.action
        assert column is not None
        assert action is not None
        texts = log.frame.with_columns(
            pl.col(column).cast(pl.List(pl.String)), pl.col(action).cast(pl.String)
        )
        most = texts.select(pl.col(column).list.len().max()).item() or 1
        for rows in texts.iter_slices(max(1, AT_ONCE // most)):
            every = rows.select(column, *log.columns.context).explode(column)
            yield Listed(
                builder.transform(every.rename({column: self.action_column})),
                rows[column].list.len().to_numpy().astype(np.int64),
                _place(rows, column, pl.lit(self.labels[self.baseline])),
                _place(rows, column, pl.col(action)),
            )


NONE = -1
"""In the place of an index: no action."""


class Choices(NamedTuple):
    """One row: features of what could be chosen (K, d), and which of them the incumbent's action and the
    logged one are."""

    features: Array
    baseline: int
    taken: int


class Listed(NamedTuple):
    """Rows of different sizes."""

    features: Array
    """Of all candidates of all rows, one row after the other."""
    sizes: NDArray[np.int64]
    baselines: NDArray[np.int64]
    """Index of the incumbent's action in each row."""
    taken: NDArray[np.int64]

    def rows(self) -> Iterator[Choices]:
        """Row by row."""
        end = 0
        for n, size in enumerate(self.sizes.tolist()):
            x = self.features[end : end + size]
            yield Choices(x, int(self.baselines[n]), int(self.taken[n]))
            end += size


def _require_everywhere(log: Log | StreamedLog, column: str, label: str) -> None:
    """Raise ``InvalidLog`` for the first row whose candidates lack the incumbent's action."""
    before = 0
    for batch in log.batches():
        lists = batch.frame[column].cast(pl.List(pl.String))
        missing = (~lists.list.contains(label)).arg_max()
        if missing is not None and label not in lists[missing].to_list():
            raise InvalidLog(
                f"{log.name}, column {column!r}, row {before + missing + 1}",
                lists[missing].to_list(),
                f"must hold the incumbent's action {label!r}: it can always be played",
            )
        before += len(batch)


def _place(rows: pl.DataFrame, column: str, label: pl.Expr) -> NDArray[np.int64]:
    """The index of a label in each row's list, NONE where it is missing."""
    numbered = rows.select(pl.col(column), label.alias("wanted")).with_row_index("row")
    found = (
        numbered.with_columns(pl.int_ranges(pl.col(column).list.len()).alias("at"))
        .explode(column, "at")
        .filter(pl.col(column) == pl.col("wanted"))
        .group_by("row", maintain_order=True)
        .agg(pl.col("at").first())
    )
    places = np.full(len(rows), NONE, dtype=np.int64)
    places[found["row"].to_numpy()] = found["at"].to_numpy()
    return places


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
