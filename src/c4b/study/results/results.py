"""The results of a finished study, read from its folder.

A folder holds ``study.json`` (the plan and how it was run), ``results.parquet`` and
``trajectories.parquet``. All other files in it can be made again from these three.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from c4b._validate import Array
from c4b.errors import C4BError, UnknownName
from c4b.study.engine.episode_metrics import Metric
from c4b.study.results.parquet_files import setting_cell, setting_columns
from c4b.study.spec.plan import Study

KEPT_BYTES = 4_000_000
"""Columns up to this size stay in memory once they were read."""


class NoResults(C4BError):
    """The folder holds no finished study."""


@dataclass(frozen=True)
class Results:
    """The plan of a finished study and its rows, which are read on first use."""

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
        """Number of the only setting with these values.

        Raises ``NoResults`` unless exactly one matches.
        """
        matches = [
            s
            for s, setting in enumerate(self.study.settings)
            if all(getattr(setting, field) == value for field, value in fields.items())
        ]
        if len(matches) != 1:
            raise NoResults(f"{self.folder}: {len(matches)} settings match {fields}; expected one")
        return matches[0]

    def players(self, setting: int) -> list[str]:
        """Labels of the methods that play in a setting, in the study's order."""
        labels = (method.label for method in self.study.methods)
        return [label for label in labels if self.study.plays(setting, label)]

    def settings_of(self, method: str) -> list[int]:
        """Numbers of the settings in which a method plays."""
        return [s for s in range(len(self.study.settings)) if self.study.plays(s, method)]

    def values(self, setting: int, method: str, metric: Metric) -> Array:
        """One metric for each episode, shape (episodes,).

        NaN if the metric is not defined for the method, or if the method does not play in this setting.
        """
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

    def _repr_html_(self) -> str:
        """For notebooks."""
        from c4b.study.report import notebook_tables  # noqa: PLC0415 (only there)

        return notebook_tables.results_table(self)

    def describe(self, setting: int) -> str:
        """The values that distinguish a setting from the others, for example "rho=0.4, sigma=0.3"."""
        fields = setting_columns(self.study)
        return ", ".join(f"{f}={setting_cell(self.study.settings[setting], f)}" for f in fields)


def read(folder: str | Path) -> Results:
    """Read the results of a finished study. Raises ``NoResults``, which says what is missing."""
    folder = Path(folder)
    needed = ("study.json", "results.parquet", "trajectories.parquet")
    for name in needed:
        if not (folder / name).is_file():
            raise NoResults(f"{folder}: {name} is missing; run `c4b study run` with --out {folder}")
    try:
        document = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        study = Study.from_dict(document["study"])
        rows = pl.scan_parquet(folder / "results.parquet", glob=False).select(pl.len()).collect().item()
        trajectories = pl.read_parquet(folder / "trajectories.parquet", glob=False)
        results = Results(folder, study, document["run"], trajectories)
    except (C4BError, OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        other_set = isinstance(error, UnknownName) and error.argument == "confidence"
        remedy = "install the package that offers this set" if other_set else "run the study again"
        raise NoResults(f"{folder}: cannot be read ({error}); {remedy}") from error
    if rows != study.episodes * len(study.settings) * len(study.methods):
        raise NoResults(f"{folder}: results.parquet does not belong to study.json; run the study again")
    return results
