"""History in a Parquet or CSV file: a row for each past play, columns for its features and its reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput

ENDINGS = (".parquet", ".csv")


def is_file_of_history(text: str) -> bool:
    """Whether an argument names such a file; else it is JSON."""
    return text.lower().endswith(ENDINGS)


def read(text: str, reward: str, features: str | None, dim: int) -> tuple[Array, Array]:
    """Features (n, dim) and rewards (n,) of a file.

    reward: the column of rewards. features: columns with commas between, or one column of lists; if not
    given, all other columns in their order.
    """
    import polars as pl  # noqa: PLC0415 (slow to import)

    path = Path(text)
    if not path.is_file():
        raise InvalidInput("request", text, "is no file")
    try:
        reader = pl.read_csv if path.suffix.lower() == ".csv" else pl.read_parquet
        frame = reader(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InvalidInput("request", text, f"cannot be read ({error})") from error
    if reward not in frame.columns:
        remedy = f"is no column of {path.name}; it has {', '.join(frame.columns)}"
        raise InvalidInput("reward", reward, remedy)
    names = [name for name in frame.columns if name != reward]
    if features is not None:
        names = [name.strip() for name in features.split(",")]
        for name in names:
            if name not in frame.columns:
                remedy = f"{name!r} is no column of {path.name}; it has {', '.join(frame.columns)}"
                raise InvalidInput("features", features, remedy)
    table = _numbers(frame, names)
    if table.ndim != 2 or table.shape[1] != dim:
        found = table.shape[1] if table.ndim == 2 else 0
        remedy = f"there are {found} features in each row, the deployment has {dim}; name their columns"
        raise InvalidInput("features", ",".join(names), remedy)
    return table, _validate.converted("reward", frame[reward].to_numpy(), f"{reward} must be numbers")


def _numbers(frame: Any, names: list[str]) -> Array:
    """The columns as an array; one column of lists is the rows themselves."""
    remedy = f"must be columns of numbers: {', '.join(names)}"
    if len(names) == 1 and frame[names[0]].dtype.is_nested():
        return _validate.converted("features", frame[names[0]].to_list(), remedy)
    return _validate.converted("features", frame.select(names).to_numpy(), remedy)
