"""A deployment's decisions as a table (Parquet) and as a figure. Needs the extra ``study``."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c4b import _validate
from c4b._whole_files import written_whole
from c4b.deployment.deployment import Deployment
from c4b.deployment.questions.views import Point, Record
from c4b.errors import InvalidInput

if TYPE_CHECKING:
    import polars

PAGE = 1000
OTHER_TABLES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".xlsx", ".arrow", ".feather")
FEW = 60
"""Up to so many decisions are drawn as points, too: a line through one point is invisible."""


def records(deployment: Deployment) -> Iterator[Record]:
    """All decisions, oldest first, a page at a time."""
    after: str | None = None
    while page := deployment.decisions(after=after, limit=PAGE):
        yield from page
        after = page[-1].decision.id


def table(deployment: Deployment) -> polars.DataFrame:
    """One row a decision: what was chosen, certified and observed."""
    import polars as pl  # noqa: PLC0415 (slow to import)

    schema: dict[str, Any] = {
        "id": pl.String,
        "at": pl.Datetime("us", "UTC"),
        "request_id": pl.String,
        "context": pl.String,
        "candidates": pl.Int64,
        "action": pl.Int64,
        "label": pl.String,
        "held": pl.String,
        "proposed": pl.Int64,
        "bank_before": pl.Float64,
        "bank": pl.Float64,
        "certificate": pl.Float64,
        "ucb": pl.Float64,
        "radius": pl.Float64,
        "outcome": pl.String,
        "reward": pl.Float64,
        "executed_otherwise": pl.Boolean,
        "features": pl.List(pl.Float64),
        "baseline": pl.List(pl.Float64),
        "items": pl.List(pl.List(pl.Float64)),
        "item_rewards": pl.List(pl.Float64),
    }
    return pl.DataFrame([_row(record) for record in records(deployment)], schema=schema)


def _row(record: Record) -> dict[str, Any]:
    made = record.decision
    decided = record.baseline if made.action is None else record.candidates[made.action]
    return {
        "id": made.id,
        "at": record.at,
        "request_id": record.request_id,
        "context": record.context_json,
        "candidates": len(record.candidates),
        "action": made.action,
        "label": made.label,
        "held": made.held,
        "proposed": made.proposed,
        "bank_before": made.bank_before,
        "bank": made.bank,
        "certificate": made.certificate,
        "ucb": made.ucb,
        "radius": made.radius,
        "outcome": record.outcome,
        "reward": record.reward,
        "executed_otherwise": record.executed is not None,
        "features": (decided if record.executed is None else record.executed).tolist(),
        "baseline": record.baseline.tolist(),
        "items": None if record.items is None else record.items.tolist(),
        "item_rewards": None if record.item_rewards is None else list(record.item_rewards),
    }


def write(deployment: Deployment, path: str | os.PathLike[str]) -> int:
    """Write the table to a Parquet file; returns the number of rows."""
    if Path(path).suffix.lower() in OTHER_TABLES:
        raise InvalidInput("path", os.fspath(path), "must be a Parquet file; let it end in .parquet")
    frame = table(deployment)
    with written_whole(Path(path)) as draft:
        frame.write_parquet(draft)
    return frame.height


def shares(points: Sequence[Point], last: int = 100) -> list[float]:
    """Share of fallbacks in about the ``last`` decisions at each point."""
    rounds, fallbacks = [0, *(p.round for p in points)], [0, *(p.fallbacks for p in points)]
    result = []
    for n in range(1, len(rounds)):
        start = max(bisect_right(rounds, max(rounds[n] - last, 0)) - 1, 0)
        result.append((fallbacks[n] - fallbacks[start]) / (rounds[n] - rounds[start]))
    return result


def plot(deployment: Deployment, path: str | os.PathLike[str]) -> None:
    """Bank, share of fallbacks and pending outcomes over the decisions; PNG, PDF or SVG by ``path``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (slow)
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow)
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (slow)

    _validate.picture_path("path", path)
    points = deployment.series(points=1000)
    if not points:
        raise InvalidInput("name", deployment.name, "has no decisions yet: there is nothing to draw")
    figure = Figure(figsize=(7.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    rounds = [point.round for point in points]
    panels: Any = figure.subplots(3, 1, sharex=True)
    for panel, values, label in (
        (panels[0], [point.bank for point in points], "certified bank"),
        (panels[1], shares(points), "fallback, last 100"),
        (panels[2], [point.pending for point in points], "outcomes pending\nwhen it was made"),
    ):
        panel.plot(rounds, values, linewidth=1.0, marker="o" if len(points) <= FEW else "", markersize=3)
        panel.set_ylabel(label)
        panel.grid(alpha=0.3)
    panels[0].axhline(0.0, color="0.5", linewidth=0.8)
    panels[1].set_ylim(-0.05, 1.05)
    panels[2].set_ylim(0, 1.1 * max(point.pending for point in points))
    panels[2].yaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    panels[2].xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
    panels[2].set_xlim(0, rounds[-1] + 1)
    panels[2].set_xlabel("decision")
    panels[0].set_title(f"{deployment.name} ({deployment.configuration.spec.name})")
    figure.savefig(path, dpi=150)
