"""``c4b diagnose``: is a log what a linear model assumes?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from c4b import _validate, diagnostics
from c4b.cli.console.output import print_line, print_paragraph, print_table
from c4b.cli.log_commands import (
    AsJson,
    Candidates,
    Delta,
    HighestReward,
    IdColumn,
    LogFile,
    LowestReward,
    RewardColumn,
    TimeColumn,
    Vectors,
    print_json,
    wants_json,
)
from c4b.features import FeatureBuilder
from c4b.logs import Columns, read_log
from c4b.replay import executed_features


def diagnose(
    log: LogFile,
    reward: RewardColumn = "reward",
    action: Annotated[str, typer.Option(help="Column: the executed action's label.")] = "action",
    context: Annotated[
        list[str] | None, typer.Option(help="Column that the model may use; repeat it for several.")
    ] = None,
    candidates: Candidates = None,
    vectors: Vectors = None,
    time: TimeColumn = None,
    row_id: IdColumn = None,
    period: Annotated[
        str | None,
        typer.Option(help="Column: the week or month (default: eight equal parts of the log)."),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="A saved FeatureBuilder (default: action, and action times context)."),
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Scale of the noise to declare (default: half the range).")
    ] = None,
    delta: Delta = 0.05,
    lowest: LowestReward = 0.0,
    highest: HighestReward = 1.0,
    figure: Annotated[
        Path | None, typer.Option(help="Write a calibration plot: .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check on a log whether a linear model fits: linear means, noise within scale, no drift.

    A model of one half of the rows predicts the other half. Each answer names its remedy. Rows must be
    in the order of time. Do not use rows as evidence that were used to choose the features.

    Example: [bold]c4b diagnose log.parquet --action page --reward click --context age[/bold]
    """
    if figure is not None:
        _validate.picture_path("figure", figure)
    extra = () if period is None else (period,)
    columns = Columns(
        reward=reward, action=action, candidates=candidates, vectors=vectors, time=time, id=row_id,
        context=(*(context or ()), *extra),
    )  # fmt: skip
    rows = read_log(log, columns, reward_range=(lowest, highest))
    labels = None if period is None else [str(label) for label in rows.frame[period].to_list()]
    used = replace(rows, columns=replace(columns, context=tuple(context or ())))
    x, names = executed_features(used, None if features is None else FeatureBuilder.load(features))
    scale = (highest - lowest) / 2.0 if noise is None else noise
    found = diagnostics.diagnose(
        x, rows.numbers("reward"), noise=scale, names=names, period_labels=labels, delta=delta
    )
    if figure is not None:
        _draw(found, figure)
    if wants_json(as_json):
        print_json({"log": str(log), **found.as_dict()})
        return
    for finding in found.findings:
        print_line(finding.question, style="bold")
        answer = "nothing speaks against it" if finding.good else "No"
        print_paragraph(f"{answer}: {finding.said}. {finding.remedy}".strip())
    shown = [[e.feature, f"{e.effect:+.4f}", f"{e.ratio:+.1f}"] for e in found.effects[:10]]
    print_table("What matters most", ["feature", "effect of one sd", "in standard errors"], shown)


def _draw(found: diagnostics.Diagnosis, path: Path) -> None:
    """Observed against predicted means of the groups by prediction."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    bins = [group for group in found.groups if group.by == "prediction"]
    drawn = Figure(figsize=(4.5, 4.2), layout="constrained")
    axes = drawn.subplots()
    x, y = [group.predicted for group in bins], [group.observed for group in bins]
    axes.errorbar(x, y, yerr=[group.half_width for group in bins], fmt="o", capsize=3)
    ends = [min([*x, *y], default=0.0), max([*x, *y], default=1.0)]
    axes.plot(ends, ends, color="0.6", lw=1)
    axes.set(xlabel="predicted mean", ylabel="observed mean", title="Held-out rows")
    drawn.savefig(path)
