"""What a study leaves on disk, and how it is read back.

A folder holds ``study.json`` (the plan and what was run), ``results.parquet`` (one row per episode,
setting and method, in that order) and ``trajectories.parquet`` (one row per setting, method and
round). Everything else in it can be made again from these three.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from c4b._validate import Array, Counts
from c4b.errors import C4BError
from c4b.study.engine import METRICS
from c4b.study.plan import Setting, Study
from c4b.study.simulate import Chunk
from c4b.study.statistics import student_from_sums

ROW_GROUP = 65_536
"""Rows of a Parquet row group; fixed, so that the file's bytes depend on nothing but its rows."""
FLAGS = ("violation", "covered")


class NoResults(C4BError):
    """A folder without a finished study."""


def columns(study: Study) -> list[str]:
    """Columns that tell settings apart; at least one."""
    return list(study.swept) or ["history"]


def _cell(setting: Setting, field: str) -> Any:
    value = getattr(setting, field)
    return str(list(value)) if isinstance(value, tuple) else value


def chunk_frame(study: Study, chunk: Chunk) -> pl.DataFrame:
    """Rows of a chunk: episode, setting number, swept values, method, metrics."""
    episodes, settings, methods = chunk.metrics.shape[:3]
    each, rows = settings * methods, episodes * settings * methods
    data: dict[str, Any] = {
        "episode": pl.Series(np.repeat(np.arange(chunk.start, chunk.stop), each), dtype=pl.Int64),
        "setting": pl.Series(np.tile(np.repeat(np.arange(settings), methods), episodes), dtype=pl.Int32),
    }
    for field in columns(study):
        values = pl.Series([_cell(setting, field) for setting in study.settings])
        data[field] = values.gather(data["setting"].cast(pl.UInt32))
    labels = pl.Series([method.label for method in study.methods])
    data["method"] = labels.gather(
        pl.Series(np.tile(np.arange(methods), episodes * settings), dtype=pl.UInt32)
    )
    flat = chunk.metrics.reshape(rows, len(METRICS))
    for n, name in enumerate(METRICS):
        column = np.ascontiguousarray(flat[:, n])
        if name in FLAGS:
            data[name] = pl.Series(column != 0.0)
        else:
            data[name] = pl.Series(column, nan_to_null=True)
    return pl.DataFrame(data)


def write_results(frames: list[Path], target: Path) -> None:
    """Concatenate chunk files, in order, without holding them in memory."""
    draft = target.with_suffix(".part")
    pl.scan_parquet(frames).sink_parquet(
        draft, row_group_size=ROW_GROUP, maintain_order=True, compression="zstd"
    )
    draft.replace(target)


def write_trajectories(study: Study, total: Counts, squares: Counts, target: Path) -> None:
    """Cumulative fallback by round: mean share of rounds so far and its 95 % half-width."""
    mean, half = student_from_sums(total.astype(np.float64), squares.astype(np.float64), study.episodes)
    parts = []
    for s, setting in enumerate(study.settings):
        rounds = np.arange(1, setting.rounds + 1)
        for m, method in enumerate(study.methods):
            parts.append(
                pl.DataFrame(
                    {
                        "setting": pl.Series([s] * setting.rounds, dtype=pl.Int32),
                        **{f: [_cell(setting, f)] * setting.rounds for f in columns(study)},
                        "method": [method.label] * setting.rounds,
                        "round": rounds,
                        "fallback_count": mean[s, m, : setting.rounds],
                        "fallback_share": mean[s, m, : setting.rounds] / rounds,
                        "half_width_95": half[s, m, : setting.rounds] / rounds,
                    }
                )
            )
    pl.concat(parts).write_parquet(target, compression="zstd")


@dataclass(frozen=True)
class Results:
    """A finished study, read back."""

    folder: Path
    study: Study
    run: dict[str, Any]
    frame: pl.DataFrame
    trajectories: pl.DataFrame

    def find(self, **fields: Any) -> int:
        """Number of the one setting with these values."""
        matches = [
            s
            for s, setting in enumerate(self.study.settings)
            if all(getattr(setting, field) == value for field, value in fields.items())
        ]
        if len(matches) != 1:
            raise NoResults(f"{self.folder}: {len(matches)} settings match {fields}; expected one")
        return matches[0]

    def values(self, setting: int, method: str, metric: str) -> Array:
        """One metric by episode, shape (episodes,)."""
        rows = self.frame.filter((pl.col("setting") == setting) & (pl.col("method") == method))
        if rows.is_empty():
            raise NoResults(f"{self.folder}: no rows for setting {setting}, method {method!r}")
        return rows[metric].cast(pl.Float64).to_numpy()

    def describe(self, setting: int) -> str:
        fields = columns(self.study)
        return ", ".join(f"{f}={_cell(self.study.settings[setting], f)}" for f in fields)


def read(folder: str | Path) -> Results:
    """Results of a finished study; the error says what is missing."""
    folder = Path(folder)
    needed = ("study.json", "results.parquet", "trajectories.parquet")
    for name in needed:
        if not (folder / name).is_file():
            raise NoResults(f"{folder}: {name} is missing; run `c4b study run` with --out {folder}")
    try:
        told = json.loads((folder / "study.json").read_text())
        return Results(
            folder,
            Study.from_dict(told["study"]),
            told["run"],
            pl.read_parquet(folder / "results.parquet"),
            pl.read_parquet(folder / "trajectories.parquet"),
        )
    except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise NoResults(f"{folder}: cannot be read ({error}); run the study again") from error
