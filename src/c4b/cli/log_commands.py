"""``c4b offpolicy``: what a log of past decisions proves about another policy."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from c4b.cli.output import print_paragraph, print_table
from c4b.logs import Columns, read_log
from c4b.offpolicy import OffPolicyGate, OffPolicyReport

LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="One decision a row: .parquet, .csv, .arrow or .jsonl.")
]
RewardColumn = Annotated[str, typer.Option("--reward", help="Column: what the executed action earned.")]
PropensityColumn = Annotated[
    str, typer.Option("--propensity", help="Column: the probability with which it was executed.")
]
LowestReward = Annotated[float, typer.Option("--lowest", help="The smallest possible reward.")]
HighestReward = Annotated[float, typer.Option("--highest", help="The largest possible reward.")]
Delta = Annotated[float, typer.Option(help="Probability of a wrong answer.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON; without it only if the output is a pipe or a file.")
]


def offpolicy(
    log: LogFile,
    reward: RewardColumn = "reward",
    propensity: PropensityColumn = "propensity",
    policy_probability: Annotated[
        str, typer.Option(help="Column: the probability with which the new policy would execute it.")
    ] = "policy_probability",
    weight: Annotated[
        str | None, typer.Option(help="Column: the quotient of these two, where the log holds that.")
    ] = None,
    fraction: Annotated[
        float, typer.Option(help="The fraction of the incumbent's value to ask for; 0: no comparison.")
    ] = 0.95,
    delta: Delta = 0.05,
    lowest: LowestReward = 0.0,
    highest: HighestReward = 1.0,
    max_weight: Annotated[
        float | None,
        typer.Option(
            help="The largest possible weight, e.g. 10 for ten equally likely actions; saves rows."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide from a log whether a new policy may replace the incumbent that wrote it.

    Each row needs the reward, the probability with which the incumbent did what it did, and the
    probability with which the new policy would have done the same. The bounds hold at every row at
    once: look as often as you like, and stop when you like. State the options before you look at the
    rows.

    Example: [bold]c4b offpolicy log.parquet --reward click --fraction 0.98 --max-weight 10[/bold]

    Exit code 1: the rows contradict what was declared, and no answer is valid.
    """
    columns = Columns(reward=reward, propensity=propensity, policy_probability=policy_probability)
    if weight is not None:
        columns = Columns(reward=reward, weight=weight)
    top = math.inf if max_weight is None else max_weight
    gate = OffPolicyGate(fraction=fraction, delta=delta, reward_range=(lowest, highest), max_weight=top)
    rows = read_log(log, columns, reward_range=(lowest, highest))
    gate.extend(rows.weights(), rows.numbers("reward"))
    report = gate.report()
    if wants_json(as_json):
        print_json({"log": str(log), **report.as_dict()})
    else:
        _show(report)
    if report.alarm is not None:
        raise typer.Exit(1)


def wants_json(asked: bool) -> bool:
    """Programs read pipes and files; people read terminals."""
    return asked or not sys.stdout.isatty()


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; a number that is none is null."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in value.items()}
    typer.echo(json.dumps(finite, allow_nan=False))


def _show(report: OffPolicyReport) -> None:
    level = f"{100 * (1 - report.delta):g} %"
    rows = [
        ["rows", f"{report.rows}"],
        ["rows of the new policy they are worth", f"{report.effective_rows:.0f}"],
        ["mean weight (1 if propensities are right)", f"{report.mean_weight:.3f}"],
        ["value of the incumbent, estimated", f"{report.logging_value:.4g}"],
        ["value of the new policy, estimated", f"{report.value:.4g}"],
        [f"new - {report.fraction:g} of the incumbent, estimated", f"{report.estimate:+.4g}"],
        [f"at least, with probability {level}", f"{report.lower:+.4g}"],
        [f"at most, with probability {level}", f"{report.upper:+.4g}"],
    ]
    print_table("", ["", ""], rows)
    good, sentence = verdict(report)
    print_paragraph(sentence, style="bold green" if good else "bold")


def verdict(report: OffPolicyReport) -> tuple[bool, str]:
    """Whether to deploy, and one sentence that says so."""
    share = f"{report.fraction:g} of the incumbent's value"
    if report.alarm is not None:
        return False, f"No answer: {report.alarm}."
    if report.deploy:
        return True, f"Deploy: row {report.deployed_at_row} proved that it earns at least {share}."
    if report.refused_at_row is not None:
        return False, f"Do not deploy: row {report.refused_at_row} proved less than {share}."
    return False, f"Not yet: these rows prove neither at least {share} nor less."
