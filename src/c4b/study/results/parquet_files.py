"""The two Parquet files of a finished study.

``results.parquet`` has one row for each episode, setting and method, in that order;
``trajectories.parquet`` has one row for each setting, method and round.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from c4b._validate import Counts
from c4b._whole_files import written_whole
from c4b.study.engine.chunk import Chunk
from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.intervals import student_from_sums
from c4b.study.spec.plan import Study
from c4b.study.spec.setting import Setting

ROW_GROUP = 65_536
"""Rows of a Parquet row group; fixed, so that the file's bytes depend on nothing but its rows."""
FLAGS = (Metric.VIOLATION, Metric.COVERED)
"""Metrics that are stored as true or false."""


def setting_columns(study: Study) -> list[str]:
    """Fields of ``Setting`` that tell the study's settings apart; at least one."""
    return list(study.swept) or ["history"]


def setting_cell(setting: Setting, field: str) -> Any:
    """The field's value as a table shows it."""
    value = getattr(setting, field)
    return str(list(value)) if isinstance(value, tuple) else value


def chunk_frame(study: Study, chunk: Chunk) -> pl.DataFrame:
    """Rows of a chunk: episode, setting number, swept values, method, metrics (null for NaN)."""
    episodes, settings, methods = chunk.metrics.shape[:3]
    each, rows = settings * methods, episodes * settings * methods
    data: dict[str, Any] = {
        "episode": pl.Series(np.repeat(np.arange(chunk.start, chunk.stop), each), dtype=pl.Int64),
        "setting": pl.Series(np.tile(np.repeat(np.arange(settings), methods), episodes), dtype=pl.Int32),
    }
    for field in setting_columns(study):
        values = pl.Series([setting_cell(setting, field) for setting in study.settings])
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


def write_results(chunk_files: list[Path], target: Path) -> None:
    """Concatenate the rows of chunks, in order, without holding them in memory."""
    rows = pl.scan_parquet(chunk_files, glob=False)
    with written_whole(target) as draft:
        rows.sink_parquet(draft, row_group_size=ROW_GROUP, maintain_order=True, compression="zstd")


def write_trajectories(study: Study, total: Counts, squares: Counts, target: Path) -> None:
    """Cumulative fallback by round: mean share of rounds so far and its 95 % half-width.

    ``total`` and ``squares`` are sums over episodes of the cumulative count and its square, (S, M, T).
    """
    mean, half = student_from_sums(total.astype(np.float64), squares.astype(np.float64), study.episodes)
    fields, frames = setting_columns(study), []
    for s, setting in enumerate(study.settings):
        rounds = np.arange(1, setting.rounds + 1)
        for m, method in enumerate(study.methods):
            if not study.plays(s, method.label):
                continue
            frames.append(
                pl.DataFrame(
                    {
                        "setting": pl.Series([s] * setting.rounds, dtype=pl.Int32),
                        **{f: [setting_cell(setting, f)] * setting.rounds for f in fields},
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
    with written_whole(target) as draft:
        pl.concat(frames).write_parquet(draft, compression="zstd")


def trajectory_sums(study: Study, trajectories: pl.DataFrame) -> tuple[Counts, Counts]:
    """``total`` and ``squares`` of ``write_trajectories``, from the file it wrote."""
    sums = np.zeros((2, len(study.settings), len(study.methods), study.rounds), dtype=np.int64)
    start = 0
    for s, setting in enumerate(study.settings):
        for m, method in enumerate(study.methods):
            if not study.plays(s, method.label):
                continue
            part = trajectories.slice(start, setting.rounds)
            start += setting.rounds
            sums[0, s, m, : setting.rounds] = part["fallback_sum"].to_numpy()
            sums[1, s, m, : setting.rounds] = part["fallback_square_sum"].to_numpy()
    return sums[0], sums[1]
