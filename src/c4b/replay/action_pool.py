"""The actions of a log and their features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from c4b._validate import Array
from c4b.errors import InvalidInput, InvalidLog, LogCannotAnswer
from c4b.features import FeatureBuilder, Interaction, Intercept, Number, OneHot, Part, Vector
from c4b.logs import Log, StreamedLog
from c4b.logs.log import BATCH_OF_VECTORS

AT_ONCE = 20_000
"""Rows of candidates whose features are in memory at once."""
FITTED_ON = 200_000
"""Rows at most, the first ones, from which scales and labels of features are fixed."""


class ActionPool:
    """The actions of a log: one column of rewards each, or the labels of its column of actions.

    baseline: the label of the incumbent's action, empty if a column of the log says it row by row.
    """

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
        self.place = {label: n for n, label in enumerate(self.labels)}
        self.baseline_column = columns.baseline
        self.always = None if columns.baseline is not None else baseline
        """The incumbent's label, if it is the same in all rows."""
        if columns.baseline is not None:
            if baseline:
                remedy = f"is named by the column {columns.baseline!r} already; give one of the two"
                raise InvalidInput("baseline", baseline, remedy)
            if columns.candidates is None:
                _require_known(log, columns.baseline, self.labels)
        elif baseline not in self.labels:
            remedy = f"must be the incumbent's action, one of {list(self.labels)[:20]}"
            if not baseline:
                remedy += ", unless a column names it in each row"
            raise InvalidInput("baseline", baseline, remedy)
        elif columns.candidates is not None:
            _require_everywhere(log, columns.candidates, baseline)

        self.listed_by_row = columns.candidates is not None

    def most_choices(self, log: Log | StreamedLog) -> int:
        """How many actions a row offers, at most, as far as its first rows say."""
        if log.columns.candidates is None:
            return len(self.labels)
        return int(log.head(AT_ONCE).frame[log.columns.candidates].list.len().to_numpy().max())

    def taken(self, log: Log) -> NDArray[np.int64]:
        """The index of each row's action."""
        assert log.columns.action is not None
        return self._places(log.frame[log.columns.action])

    def incumbents(self, log: Log) -> NDArray[np.int64]:
        """The index of the incumbent's action in each row."""
        if self.always is not None:
            return np.full(len(log), self.place[self.always], dtype=np.int64)
        return self._places(log.frame.select(self._incumbent()).to_series())

    def plays_incumbent(self, log: Log) -> NDArray[np.bool_]:
        """Whether each row's action is the incumbent's."""
        return np.equal(self.taken(log), self.incumbents(log))

    def incumbent_features(self, log: Log, builder: FeatureBuilder) -> Array:
        """The features of the incumbent's action in each row, shape (rows, d)."""
        return builder.transform(played_frame(log, self._incumbent()))

    def _incumbent(self) -> pl.Expr:
        """The incumbent's label."""
        return pl.col(self.baseline_column or "") if self.always is None else pl.lit(self.always)

    def _places(self, labels: pl.Series) -> NDArray[np.int64]:
        return np.array([self.place[str(label)] for label in labels.to_list()], dtype=np.int64)

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
        for x, base, action in zip(pools, self.incumbents(log).tolist(), taken, strict=True):
            yield Choices(x, base, action)

    def listed(self, log: Log, builder: FeatureBuilder) -> Iterator[Listed]:
        """The same for a log whose rows list their candidates, some rows at a time."""
        column, action, vectors = log.columns.candidates, log.columns.action, log.columns.vectors
        assert column is not None
        assert action is not None
        texts = log.frame.with_columns(pl.col(column).cast(pl.List(pl.String)))
        lists = [column] if vectors is None else [column, vectors]
        most = texts.select(pl.col(column).list.len().max()).item() or 1
        for rows in texts.iter_slices(max(1, AT_ONCE // most)):
            every = rows.select(*lists, *log.columns.context).explode(lists)
            yield Listed(
                builder.transform(every.rename({column: self.action_column})),
                rows[column].list.len().to_numpy().astype(np.int64),
                place_in_list(rows, column, self._incumbent()),
                place_in_list(rows, column, pl.col(action)),
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


def _require_known(log: Log | StreamedLog, column: str, labels: Sequence[str]) -> None:
    """Raise ``InvalidLog`` for the first row whose incumbent's action is none of the labels."""
    before = 0
    for batch in log.batches():
        known = batch.frame[column].cast(pl.String).is_in(list(labels))
        if not known.all():
            row = int((~known).arg_max() or 0)
            where = f"{log.name}, column {column!r}, row {before + row + 1}"
            raise InvalidLog(where, batch.frame[column][row], f"must be one of {list(labels)[:20]}")
        before += len(batch)


def place_in_list(rows: pl.DataFrame, column: str, label: pl.Expr) -> NDArray[np.int64]:
    """The index of a label in each row's list of texts, NONE where it is missing."""
    wanted = label.cast(pl.String).alias("wanted")
    numbered = rows.select(pl.col(column), wanted).with_row_index("row")
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


def played_frame(log: Log, label: pl.Expr) -> pl.DataFrame:
    """The rows as if this action had been executed in each: its label and its vector in their columns."""
    columns = log.columns
    assert columns.action is not None
    if columns.vectors is None:
        return log.frame.with_columns(label.alias(columns.action))
    assert columns.candidates is not None
    rows = log.frame.with_columns(pl.col(columns.candidates).cast(pl.List(pl.String)))
    places = pl.Series("place", place_in_list(rows, columns.candidates, label))
    return rows.with_columns(
        label.alias(columns.action), pl.col(columns.vectors).list.get(pl.lit(places))
    )


def executed_frame(log: Log) -> pl.DataFrame:
    """The rows, with the executed action's vector in the column of vectors."""
    assert log.columns.action is not None
    return log.frame if log.columns.vectors is None else played_frame(log, pl.col(log.columns.action))


def fitted(builder: FeatureBuilder | None, past: Log | StreamedLog, pool: ActionPool) -> FeatureBuilder:
    """A builder whose scales and labels are fixed, from past rows where they were not yet."""
    if builder is not None and builder.fitted:
        return builder
    head = past.head(FITTED_ON if past.columns.vectors is None else BATCH_OF_VECTORS)
    frame = head.frame if head.columns.rewards else executed_frame(head)
    if builder is not None:
        return builder.fit(frame)
    if past.columns.vectors is not None:
        return FeatureBuilder([Vector(past.columns.vectors)]).fit(frame)
    return default_features(frame, pool.action_column, past.columns.context, pool.labels)


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
    """The features of the executed action in each row, shape (rows, d), and their names."""
    if log.columns.action is None:
        raise InvalidInput("action", None, "name the column of the executed action")
    frame = executed_frame(log)
    if builder is None and log.columns.vectors is not None:
        builder = FeatureBuilder([Vector(log.columns.vectors)])
    if builder is None:
        labels = log.labels(log.columns.action)
        builder = default_features(frame, log.columns.action, log.columns.context, labels)
    elif not builder.fitted:
        builder = builder.fit(frame)
    return builder.transform(frame), builder.names
