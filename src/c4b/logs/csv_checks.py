"""Checks of CSV files for cells that the reader drops or merges silently."""

from __future__ import annotations

import os
from glob import escape

import polars as pl

from c4b.errors import InvalidInput, InvalidLog
from c4b.logs.columns import Columns


def check_csv(path: str, schema: pl.Schema, columns: Columns) -> None:
    """Raise ``InvalidLog`` for rows with more cells than the header, in which columns may be shifted, for
    declared columns that occur twice, and for labels that differ as text but not as numbers."""
    texts = texts_of(path)
    try:
        texts.select(pl.all().null_count()).collect(engine="streaming")
    except pl.exceptions.ComputeError as error:
        if "more fields" not in str(error):
            raise
        remedy = "are more in some row than in the header; put cells with commas in quotes"
        raise InvalidLog(path, "cells", remedy) from error
    for column in columns.names():
        if f"{column}_duplicated_0" in schema:  # as Polars calls the second one
            raise InvalidLog(f"{path}, column", column, "occurs twice; rename or drop one of them")
    for label in (columns.action, columns.baseline):
        if label is not None:
            _check_labels(texts.select(label), path, label, schema[label])


def literal_path(path: str) -> str:
    """A file's name as Polars takes it: in UTF-8 whatever the locale is, and no pattern, because [1] in a
    name would read another file."""
    try:
        return escape(os.fsencode(path).decode())
    except UnicodeDecodeError as error:
        raise InvalidInput("log", ascii(path), "must have a name in UTF-8; rename it") from error


def texts_of(path: str) -> pl.LazyFrame:
    """Every cell as text."""
    return pl.scan_csv(literal_path(path), infer_schema=False, encoding="utf8-lossy")


def _check_labels(texts: pl.LazyFrame, path: str, column: str, kind: pl.DataType) -> None:
    if kind.is_numeric():
        value = pl.col(column).cast(kind, strict=False)
    elif kind == pl.Boolean:
        value = pl.col(column).str.to_lowercase()
    else:
        return
    found = texts.unique().collect(engine="streaming").sort(column).with_columns(value=value)
    same = found.filter(pl.col("value").is_duplicated() & pl.col("value").is_not_null()).sort("value")
    if len(same):
        first, second = same[column][:2]
        remedy = f"would be the same as {first!r}; use Parquet, or labels that are no numbers"
        raise InvalidLog(f"{path}, column {column!r}", second, remedy)
