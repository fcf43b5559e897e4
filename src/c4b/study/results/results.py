"""What a study leaves on disk, and how it is read back.

A folder holds ``study.json`` (the plan and what was run), ``results.parquet`` (one row per episode,
setting and method, in that order) and ``trajectories.parquet`` (one row per setting, method and
round). Everything else in it can be made again from these three.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from c4b._validate import Array, Counts
from c4b.errors import C4BError
from c4b.study.engine.chunk import Chunk
from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.statistics import student_from_sums
from c4b.study.spec.plan import Setting, Study

ROW_GROUP = 65_536
"""Rows of a Parquet row group; fixed, so that the file's bytes depend on nothing but its rows."""
KEPT_BYTES = 4_000_000
"""Columns up to this size stay in memory once they were read."""
FLAGS = (Metric.VIOLATION, Metric.COVERED)
"""Metrics that are stored as true or false."""


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
    flat = chunk.metrics.reshape(rows, len(Metric))
    for metric in Metric:
        column = pl.Series(np.ascontiguousarray(flat[:, metric]), nan_to_null=True)
        data[metric.column] = column != 0.0 if metric in FLAGS else column
    return pl.DataFrame(data)


def write_results(frames: list[Path], target: Path) -> None:
    """Concatenate chunk files, in order, without holding them in memory."""
    draft = target.with_suffix(".part")
    pl.scan_parquet(frames, glob=False).sink_parquet(
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
                        "fallback_sum": total[s, m, : setting.rounds],
                        "fallback_square_sum": squares[s, m, : setting.rounds],
                        "fallback_share": mean[s, m, : setting.rounds] / rounds,
                        "half_width_95": half[s, m, : setting.rounds] / rounds,
                    }
                )
            )
    draft = target.with_suffix(".part")
    pl.concat(parts).write_parquet(draft, compression="zstd")
    draft.replace(target)


def trajectory_sums(found: Results) -> tuple[Counts, Counts]:
    """Sums and sums of squares of cumulative fallback counts, each (S, M, T), as they were written."""
    study = found.study
    sums = np.zeros((2, len(study.settings), len(study.methods), study.rounds), dtype=np.int64)
    at = 0
    for s, setting in enumerate(study.settings):
        for m in range(len(study.methods)):
            part = found.trajectories.slice(at, setting.rounds)
            at += setting.rounds
            sums[0, s, m, : setting.rounds] = part["fallback_sum"].to_numpy()
            sums[1, s, m, : setting.rounds] = part["fallback_square_sum"].to_numpy()
    return sums[0], sums[1]


@dataclass(frozen=True)
class Results:
    """A finished study, read back; rows are read when they are asked for."""

    folder: Path
    study: Study
    run: dict[str, Any]
    trajectories: pl.DataFrame
    _columns: dict[Metric, Array] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def frame(self) -> pl.DataFrame:
        """All rows; large for many episodes."""
        return pl.read_parquet(self.folder / "results.parquet", glob=False)

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

    def values(self, setting: int, method: str, metric: Metric) -> Array:
        """One metric by episode, shape (episodes,)."""
        labels = [known.label for known in self.study.methods]
        if method not in labels or not 0 <= setting < len(self.study.settings):
            raise NoResults(f"{self.folder}: no rows for setting {setting}, method {method!r}")
        return self._column(metric)[:, setting, labels.index(method)]

    def _column(self, metric: Metric) -> Array:
        """(episodes, settings, methods), the order of the rows."""
        if metric in self._columns:
            return self._columns[metric]
        read = pl.read_parquet(self.folder / "results.parquet", columns=[metric.column], glob=False)
        shape = (self.study.episodes, len(self.study.settings), len(self.study.methods))
        column: Array = read[metric.column].cast(pl.Float64).to_numpy().reshape(shape)
        if column.nbytes <= KEPT_BYTES:  # a very long study is read again rather than kept
            self._columns[metric] = column
        return column

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
        told = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        study = Study.from_dict(told["study"])
        rows = pl.scan_parquet(folder / "results.parquet", glob=False).select(pl.len()).collect().item()
        trajectories = pl.read_parquet(folder / "trajectories.parquet", glob=False)
        found = Results(folder, study, told["run"], trajectories)
    except (C4BError, OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise NoResults(f"{folder}: cannot be read ({error}); run the study again") from error
    if rows != study.episodes * len(study.settings) * len(study.methods):
        raise NoResults(f"{folder}: results.parquet does not belong to study.json; run the study again")
    return found
