"""``c4b offpolicy`` and ``c4b replay``: what a log of past decisions says about another policy."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from c4b.cli.console.output import print_paragraph, print_table, shown_progress
from c4b.cli.console.stop_signals import goes_on
from c4b.features import FeatureBuilder
from c4b.logs import Columns, open_log
from c4b.offpolicy import OffPolicyGate, OffPolicyReport
from c4b.replay import LogReplay, Terms, replay_log
from c4b.study.engine.cluster import connect

LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="One decision per row: .parquet, .csv, .arrow or .jsonl.")
]
RewardColumn = Annotated[str, typer.Option("--reward", help="Column: what the executed action earned.")]
PropensityColumn = Annotated[
    str, typer.Option("--propensity", help="Column: the probability with which it was executed.")
]
LowestReward = Annotated[float, typer.Option("--lowest", help="The smallest possible reward.")]
HighestReward = Annotated[float, typer.Option("--highest", help="The largest possible reward.")]
Delta = Annotated[float, typer.Option(help="Probability of a wrong answer.")]
PolicyName = Annotated[str, typer.Option(help="See c4b policies.")]
Alpha = Annotated[float, typer.Option(help="Fraction of the incumbent's reward to risk.")]
Reserve = Annotated[float, typer.Option(help="Deficit allowed in addition, in units of reward.")]
Context = Annotated[
    list[str] | None, typer.Option(help="Column that the policy may use; repeat it for several.")
]
Candidates = Annotated[
    str | None,
    typer.Option(help="Column: a list of the labels that could be chosen (default: all labels)."),
]
Vectors = Annotated[
    str | None,
    typer.Option(help="Column: a list of vectors, the features of each candidate, if you have them."),
]
Incumbent = Annotated[
    str | None,
    typer.Option(help="Column: the incumbent's action in each row, if it is not always the same."),
]
TimeColumn = Annotated[
    str | None,
    typer.Option("--time", help="Column: time; an error if a row is earlier than the one before."),
]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="Column: the row's id; an error if two rows have the same.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler, e.g. tcp://host:8786 (extra: cluster)."),
]
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
        str | None, typer.Option(help="Column: the quotient of these two, if the log has it.")
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
    time: TimeColumn = None,
    row_id: IdColumn = None,
    as_json: AsJson = False,
) -> None:
    """Decide from a log whether a new policy may replace the incumbent that wrote it.

    Each row needs the reward, the probability with which the incumbent took its action, and the
    probability with which the new policy would have taken the same action. The bounds hold at every
    row at once: look as often as you like, and stop when you like. Choose the options before you look
    at the rows.

    Example: [bold]c4b offpolicy log.parquet --reward click --fraction 0.98 --max-weight 10[/bold]

    Exit code 1: the rows contradict what was declared, and no answer is valid.
    """
    columns = Columns(reward=reward, weight=weight, time=time, id=row_id)
    if weight is None:
        columns = replace(columns, propensity=propensity, policy_probability=policy_probability)
    top = math.inf if max_weight is None else max_weight
    gate = OffPolicyGate(fraction=fraction, delta=delta, reward_range=(lowest, highest), max_weight=top)
    rows = open_log(log, columns, reward_range=(lowest, highest))
    with shown_progress("offpolicy", unit="rows") as progress:
        for batch in rows.batches():
            gate.extend(batch.weights(), batch.numbers("reward"))
            progress(gate.rows, len(rows))
    report = gate.report()
    if wants_json(as_json):
        print_json({"log": str(log), **report.as_dict()})
    else:
        _show(report)
    if report.alarm is not None:
        raise typer.Exit(1)


def replay(
    log: LogFile,
    baseline: Annotated[str, typer.Option(help="The incumbent's action: a label of the log.")] = "",
    reward: RewardColumn = "reward",
    action: Annotated[str, typer.Option(help="Column: the executed action's label.")] = "action",
    propensity: Annotated[
        str | None, typer.Option(help="Column: the probability with which it was executed.")
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="All actions were equally likely; needs no propensities.")
    ] = False,
    context: Context = None,
    full: Annotated[
        list[str] | None,
        typer.Option(
            help="Column: what one action earned or would have earned; repeat it for each action."
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="A saved FeatureBuilder (default: action, and action times context)."),
    ] = None,
    past: Annotated[float, typer.Option(help="Share of rows to learn from before the replay.")] = 0.2,
    policy: PolicyName = "reserve-c4b+",
    alpha: Alpha = 0.05,
    reserve: Reserve = 0.0,
    delta: Delta = 0.05,
    lowest: LowestReward = 0.0,
    highest: HighestReward = 1.0,
    norm_bound: Annotated[
        float | None, typer.Option(help="Bound on the norm of theta (default: the largest reward).")
    ] = None,
    max_weight: Annotated[
        float | None, typer.Option(help="One divided by the smallest possible propensity.")
    ] = None,
    candidates: Candidates = None,
    vectors: Vectors = None,
    incumbent: Incumbent = None,
    time: TimeColumn = None,
    row_id: IdColumn = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Folder for the state: the same command continues where it was interrupted."),
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Replay a log: what would the gate have decided on this traffic, and what would it have earned?

    With the reward of every action (--full, once for each), nothing is estimated. With actions that
    were drawn uniformly (--uniform, or equal propensities), rows in which the policy agrees with the
    log count as its rounds. With any known propensities, the best policy that the past rows suggest is
    also evaluated on the other rows, with bounds that hold at every row. A log that always took the same
    action cannot answer; the command says so.

    Example: [bold]c4b replay log.parquet --baseline home --action page --reward click --uniform[/bold]
    """
    if full:
        columns = Columns(rewards=tuple(full))
    else:
        columns = Columns(
            reward=reward, action=action, propensity=propensity, candidates=candidates, vectors=vectors
        )
    columns = replace(columns, baseline=incumbent, time=time, id=row_id, context=tuple(context or ()))
    terms = Terms(
        baseline=baseline,
        past=past,
        policy=policy,
        alpha=alpha,
        reserve=reserve,
        delta=delta,
        reward_range=(lowest, highest),
        norm_bound=norm_bound,
        uniform=uniform,
        max_weight=math.inf if max_weight is None else max_weight,
    )
    builder = None if features is None else FeatureBuilder.load(features)
    rows = open_log(log, columns, reward_range=(lowest, highest))
    with (
        workers(cluster) as executor,
        shown_progress("replay", unit="rows") as progress,
        goes_on(resume),
    ):
        found = replay_log(rows, terms, builder, resume=resume, progress=progress, executor=executor)
    if wants_json(as_json):
        print_json({"log": str(log), **found.as_dict()})
    else:
        _show_replay(found)


def _show_replay(found: LogReplay) -> None:
    print_paragraph(f"{found.method}; the first {found.past_rows} rows are the past", style="bold")
    if found.results:
        heading = ["policy", "rounds", "reward a round", "incumbent", "fallback %", "opened at", "bank"]
        rows = []
        for each in found.results:
            own = found.baseline_reward
            rows.append(
                [
                    each.policy,
                    f"{each.rounds}",
                    f"{each.reward:.4f}",
                    "-" if own is None else f"{own:.4f}",
                    f"{100 * each.fallback:.1f}",
                    "never" if each.opened_at is None else f"{each.opened_at}",
                    "-" if not math.isfinite(each.banks[-1]) else f"{each.banks[-1]:.2f}",
                ]
            )
        print_table("", heading, rows)
    if found.judgement is not None:
        reports = {"weighted": found.judgement.weighted, "doubly robust": found.judgement.doubly_robust}
        rows = [
            [name, f"{r.effective_rows:.0f}", f"{r.estimate:+.4f}", f"{r.lower:+.4f}", f"{r.upper:+.4f}"]
            for name, r in reports.items()
            if r is not None
        ]
        share = found.judgement.weighted.fraction
        print_table(
            f"The greedy policy of the past rows, less {share:g} of the logging policy",
            ["", "effective rows", "estimate", "at least", "at most"],
            rows,
        )


@contextmanager
def workers(cluster: str | None) -> Iterator[Executor | None]:
    """The cluster at an address, or nothing: then the work is done here."""
    if cluster is None:
        yield None
        return
    with connect(cluster) as executor:
        yield executor


def wants_json(asked: bool) -> bool:
    """Programs read pipes and files; people read terminals."""
    return asked or not sys.stdout.isatty()


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; a number that is none is null."""
    typer.echo(json.dumps(_finite(value), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
