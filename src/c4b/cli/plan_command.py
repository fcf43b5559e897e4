"""``c4b plan``: which numbers to put in, and what to expect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from c4b.cli.console.output import print_line, print_paragraph, print_table, shown_progress
from c4b.cli.console.stop_signals import goes_on
from c4b.cli.log_commands import (
    Alpha,
    AsJson,
    Candidates,
    Cluster,
    Context,
    Delta,
    HighestReward,
    IdColumn,
    Incumbent,
    LowestReward,
    PolicyName,
    Reserve,
    RewardColumn,
    TimeColumn,
    Vectors,
    print_json,
    wants_json,
    workers,
)
from c4b.errors import InvalidInput
from c4b.features import FeatureBuilder
from c4b.logs import Columns, open_log
from c4b.planning import Plan, plan_log, plan_rates
from c4b.planning.forecast import Progress
from c4b.planning.in_words import columns_to_expect, numbers_to_declare, what_to_expect
from c4b.planning.page import write_page
from c4b.replay import Terms

_OF_LOGS = (
    "baseline", "reward", "action", "context", "candidates", "vectors", "incumbent", "time", "row_id",
    "features", "lowest", "highest", "norm_bound",
)  # fmt: skip
"""Options that say what a log contains, or how to read it."""


def plan(
    ctx: typer.Context,
    log: Annotated[
        Path | None,
        typer.Argument(metavar="LOG", help="A randomised log; without it, give --rate at least twice."),
    ] = None,
    rounds_a_day: Annotated[float, typer.Option(help="Decisions to expect in a day.")] = 1000.0,
    baseline: Annotated[str, typer.Option(help="The incumbent's action: a label of the log.")] = "",
    reward: RewardColumn = "reward",
    action: Annotated[str, typer.Option(help="Column: the executed action's label.")] = "action",
    context: Context = None,
    candidates: Candidates = None,
    vectors: Vectors = None,
    incumbent: Incumbent = None,
    time: TimeColumn = None,
    row_id: IdColumn = None,
    features: Annotated[Path | None, typer.Option(help="A saved FeatureBuilder.")] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="Without a log: success rates, the incumbent's first; repeat it."),
    ] = None,
    history: Annotated[
        int | None,
        typer.Option(help="Past rows of the incumbent alone (default: 2,000 rows of all actions)."),
    ] = None,
    alpha: Alpha = 0.05,
    reserve: Reserve = 0.0,
    policy: PolicyName = "reserve-c4b+",
    delta: Delta = 0.05,
    lowest: LowestReward = 0.0,
    highest: HighestReward = 1.0,
    norm_bound: Annotated[
        float | None, typer.Option(help="Bound on the norm of theta (default: chosen on the first half).")
    ] = None,
    simulations: Annotated[int, typer.Option(help="Simulated deployments.")] = 20,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of each (default: twelve weeks, 2,000 to 10,000).")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page with pictures, e.g. plan.html.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Folder for finished parts: the same command continues where it was interrupted."
        ),
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Propose the numbers of a deployment and forecast their effect, before going live.

    The first half of the log chooses the norm bound, the set and the scales of features. The second half,
    with its uncertainty, is simulated: when does the gate open, what does it earn, and from how many
    rounds a day on is it worth it? The log must have taken every action at random. It is read some rows
    at a time, so it may have millions of them.

    Examples: [bold]c4b plan log.parquet --action page --reward click --baseline home[/bold] and
    [bold]c4b plan --rate 0.30 --rate 0.36 --history 500 --rounds-a-day 2000[/bold]
    """
    if (log is None) == (rate is None):
        raise InvalidInput("log", str(log), "give either a log or --rate, at least twice")
    if resume is not None and rate is not None:
        raise InvalidInput("resume", str(resume), "needs a log; a plan of rates is soon made again")
    if rate is not None:
        _refuse_options_of_logs(ctx)
    with workers(cluster) as executor, _shown() as progress, goes_on(resume):
        if rate is not None:
            made = plan_rates(
                rate[0], rate[1:], rounds_a_day=rounds_a_day, alpha=alpha, reserve=reserve,
                history=history or 0, policy=policy, delta=delta, simulations=simulations, rounds=rounds,
                executor=executor, progress=progress,
            )  # fmt: skip
        else:
            terms = Terms(
                baseline, policy=policy, alpha=alpha, reserve=reserve, delta=delta,
                reward_range=(lowest, highest), norm_bound=norm_bound,
            )  # fmt: skip
            columns = Columns(
                reward=reward, action=action, candidates=candidates, vectors=vectors, baseline=incumbent,
                time=time, id=row_id,
                context=tuple(context or ()),
            )  # fmt: skip
            rows = open_log(log, columns, reward_range=(lowest, highest))
            builder = None if features is None else FeatureBuilder.load(features)
            made = plan_log(
                rows,
                terms,
                rounds_a_day=rounds_a_day,
                builder=builder,
                simulations=simulations,
                rounds=rounds,
                history=history,
                executor=executor,
                resume=resume,
                progress=progress,
            )
    if wants_json(as_json):
        print_json(made.as_dict())
    else:
        _show(made)
    if page is not None:  # last: a page that cannot be written shall not cost the answer
        write_page(made, page)


def _refuse_options_of_logs(ctx: typer.Context) -> None:
    """Beside --rate they would be ignored."""
    for name in _OF_LOGS:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            remedy = "needs a log; beside --rate leave it out: rewards are then 0 or 1, at these rates"
            raise InvalidInput(name, ctx.params[name], remedy)


@contextmanager
def _shown() -> Iterator[Progress]:
    """One bar for the rows, and then one for the simulations."""
    with ExitStack() as open_bar:
        bars = {}

        def report(unit: str, done: int, total: int) -> None:
            if unit not in bars:
                open_bar.close()
                bars[unit] = open_bar.enter_context(shown_progress("plan", unit=unit))
            bars[unit](done, total)

        yield report


def _show(made: Plan) -> None:
    heading = ["number", "value", "where it comes from"]
    print_table("Numbers to declare", heading, numbers_to_declare(made.proposal), left=3)
    forecast = made.forecast
    title = f"What to expect ({forecast.simulations} simulations of {forecast.rounds:,} rounds)"
    print_table(title, columns_to_expect(forecast), what_to_expect(forecast))
    print_line(f"Alarms in {100 * forecast.alarms:.0f} % of simulations.")
    print_paragraph(made.verdict, style="bold")
