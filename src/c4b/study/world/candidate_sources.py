"""Candidates and baselines that a user provides: rows of a table, or a function in Python."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from c4b import _validate
from c4b._validate import Array
from c4b.errors import InvalidInput
from c4b.study.spec.setting import Setting
from c4b.study.world import draws


def read_table(path: str, dim: int) -> Array:
    """Features, shape (N, dim), from a CSV file with a heading, a Parquet or an NPY file."""
    status = _existing(path).stat()
    return _read_table(path, dim, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _read_table(path: str, dim: int, *_time_and_size: int) -> Array:
    """The file is read once for all episodes, and again after it has changed."""
    file = Path(path)
    try:
        if file.suffix == ".npy":
            content: Any = np.load(file, allow_pickle=False)
        elif file.suffix == ".csv":
            content = _read_csv(file)
        elif file.suffix == ".parquet":
            content = pl.read_parquet(file, glob=False).to_numpy()
        else:
            raise InvalidInput("source", path, "must end in .csv, .parquet or .npy")
    except (ValueError, OSError, EOFError, pl.exceptions.PolarsError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("source", path, f"cannot be read: {_first_line(error)}") from error
    try:
        table = _validate.table("source", content, dim)
    except InvalidInput as error:
        raise InvalidInput(
            "source",
            path,
            f"must hold {dim} finite numbers in each row; {_what_is_wrong(content)}",
        ) from error
    if not len(table):
        raise InvalidInput("source", path, "holds no rows")
    return table


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise InvalidInput("source", path, "there is no such file; give its path from the study file")
    return Path(path)


def _read_csv(file: Path) -> Any:
    table = pl.read_csv(file, glob=False)
    if all(_is_number(name) for name in table.columns):
        raise InvalidInput("source", str(file), "its first line must be a heading, not numbers")
    return table.to_numpy()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _what_is_wrong(content: Any) -> str:
    if content.ndim != 2:
        return f"it has {content.ndim} axes"
    if content.dtype.kind not in "buif":
        return "some of it is not numbers"
    return f"it has {content.shape[1]} columns" if np.isfinite(content).all() else "some is not finite"


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


@lru_cache(maxsize=8)
def load_function(source: str) -> draws.Generator:
    """``module:function`` -> a callable (rng, rounds, count, dim) -> features (rounds, count, dim)."""
    module, _, function = source.partition(":")
    try:
        generator: draws.Generator = getattr(importlib.import_module(module), function)
    except Exception as error:  # the user's module may fail in any way
        raise InvalidInput(
            "source", source, f"cannot be imported as module:function ({_first_line(error)})"
        ) from error
    if not callable(generator):
        raise InvalidInput("source", source, "is not a function")
    return generator


def content_digest(generator: str, source: str) -> bytes:
    """Digest of the file, or of the module with the function, that candidates come from."""
    if generator == "file":
        return hashlib.sha256(_existing(source).read_bytes()).digest()
    if generator == "python":
        module = inspect.getmodule(load_function(source))
        file = getattr(module, "__file__", None)
        return hashlib.sha256(Path(file).read_bytes()).digest() if file else b""
    return b""


def check(setting: Setting) -> None:
    """Raise ``InvalidInput`` now if candidates or baselines could not be made during the study, or if the
    baselines are worse than the learner is told."""
    least = setting.least_baseline_mean
    if setting.baselines is not None:
        means = read_table(setting.baselines, setting.dim) @ np.array(setting.theta)
        if not means.min() > 0.0:
            row = int(means.argmin())
            remedy = f"the mean reward of row {row} is {means[row]:.6g}; every one must be positive"
            raise InvalidInput("baselines", setting.baselines, remedy)
        least = float(means.min())
    if setting.baseline_floor > least * (1.0 + 1e-12):
        remedy = f"must be at most {least:.6g}: the baseline's true mean may be as low as that"
        raise InvalidInput("baseline_floor", setting.baseline_floor, remedy)
    if setting.generator == "file":
        assert setting.source is not None
        table = read_table(setting.source, setting.dim)
        if setting.count > len(table):
            raise InvalidInput(
                "count", setting.count, f"the file {setting.source} holds only {len(table)} rows"
            )
    elif setting.generator == "python":
        call_function(setting, draws.stream(0, 0, draws.CANDIDATES), rounds=1)


def call_function(setting: Setting, rng: np.random.Generator, rounds: int) -> Array:
    """Features (rounds, count, dim) from the setting's own function."""
    assert setting.source is not None
    shape = (rounds, setting.count, setting.dim)
    function = load_function(setting.source)
    try:
        features = np.asarray(function(rng, *shape), dtype=np.float64)
    except Exception as error:  # the user's function may fail in any way
        raise InvalidInput(
            "source",
            setting.source,
            "called as f(rng, rounds, count, dim) it raised "
            f"{type(error).__name__}: {_first_line(error)}",
        ) from error
    if features.shape != shape or not np.all(np.abs(features) <= _validate.LARGEST):
        raise InvalidInput(
            "source",
            setting.source,
            f"must return finite features of shape {shape}; got shape {features.shape}",
        )
    return features
