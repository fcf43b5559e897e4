"""Sources of a log: files, Polars, Arrow, pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from c4b.errors import InvalidInput, InvalidLog
from c4b.logs.csv_checks import literal_path, texts_of

READERS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": pl.scan_parquet,
    ".csv": partial(pl.scan_csv, try_parse_dates=True, infer_schema_length=10_000),
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".ipc": pl.scan_ipc,
    ".jsonl": pl.scan_ndjson,
    ".ndjson": pl.scan_ndjson,
}
WHAT = "a file ending in " + ", ".join(READERS) + ", or a Polars, pandas or Arrow table"


def scan(source: object) -> tuple[pl.LazyFrame, str]:
    """The log as a lazy frame, and its name in errors. Only the schema of a file is read."""
    if isinstance(source, str | Path):
        return _scan_file(Path(source)), str(source)
    if isinstance(source, pl.LazyFrame):
        return source, "log"
    if isinstance(source, pl.DataFrame):
        return source.lazy(), "log"
    if hasattr(source, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(source).lazy(), "log"
        except ImportError:  # pandas offers Arrow but needs pyarrow for it
            pass
        except ValueError as error:  # column names that are there twice
            raise InvalidInput("log", type(source).__name__, _first_line(error)) from error
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):  # pandas without pyarrow
        return _from_columns(source).lazy(), "log"
    raise InvalidInput("log", source, f"must be {WHAT}")


def _scan_file(path: Path) -> pl.LazyFrame:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput("log", str(path), f"must be {WHAT}")
    if not path.is_file():
        raise InvalidInput("log", str(path), "is no file; check the path")
    try:
        frame = reader(literal_path(str(path)))
        frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidLog(str(path), path.suffix, f"cannot be read: {_first_line(error)}") from error
    return frame


def _from_columns(source: Any) -> pl.DataFrame:
    try:
        return pl.DataFrame({str(name): _from_column(source[name]) for name in source.columns})
    except (pl.exceptions.PolarsError, AttributeError, TypeError, ValueError) as error:
        remedy = f"must be {WHAT}: {_first_line(error)}"
        raise InvalidInput("log", type(source).__name__, remedy) from error


def _from_column(column: Any) -> pl.Series:
    """Objects as values of one kind, if they are, and what is missing as missing."""
    values = column.to_numpy()
    if values.dtype != object:
        return pl.Series(values)
    missing = column.isna() if hasattr(column, "isna") else [False] * len(values)
    listed = [None if no else each for each, no in zip(values.tolist(), missing, strict=True)]
    try:
        return pl.Series(listed)
    except TypeError:
        return pl.Series(listed, dtype=pl.Object)


def collect(frame: pl.LazyFrame, name: str) -> pl.DataFrame:
    """Read the rows.

    Raises ``InvalidLog`` for a truncated file, and for a cell that does not fit its column.
    """
    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(frame, name, error) from error


def in_batches(frame: pl.LazyFrame, size: int, name: str) -> Iterator[pl.DataFrame]:
    """Yield the rows in order, ``size`` at a time; each batch is read when it is requested."""
    waiting: list[pl.DataFrame] = []
    try:
        for part in frame.collect_batches(chunk_size=size, maintain_order=True):
            waiting.append(part)
            while sum(map(len, waiting)) >= size:
                together = pl.concat(waiting)
                yield together.head(size)
                waiting = [together.slice(size)]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(frame, name, error) from error
    if any(map(len, waiting)):
        yield pl.concat(waiting)


def _unreadable(frame: pl.LazyFrame, name: str, error: Exception) -> InvalidLog:
    """Of a CSV file the first cell that is no number, unlike those above; else what Polars says."""
    if name.lower().endswith(".csv"):
        schema = frame.collect_schema()
        texts = texts_of(name).select(schema.names()).with_row_index("row")
        for column, kind in schema.items():
            text = pl.col(column)
            wrong = text.is_not_null() & text.cast(kind, strict=False).is_null()
            found = texts.filter(wrong).head(1).collect() if kind.is_numeric() else pl.DataFrame()
            if len(found):
                where = f"{name}, column {column!r}, row {found['row'][0] + 1}"
                return InvalidLog(where, found[column][0], "is no number, unlike the rows before it")
    return InvalidLog(name, "rows", f"cannot be read: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
