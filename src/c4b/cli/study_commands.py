"""``c4b reproduce`` and ``c4b study``."""

from __future__ import annotations

import logging
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from c4b.cli.output import episodes_bar, say, table, tell
from c4b.errors import InvalidInput
from c4b.study.engine import run
from c4b.study.engine.episode_metrics import Metric
from c4b.study.report.html_page import central_rows, verdict
from c4b.study.report.write_report import write_report
from c4b.study.results import price_of_safety, results
from c4b.study.results.compare_results import describe_comparison, differences
from c4b.study.results.intervals import Estimate, student
from c4b.study.results.published_numbers import is_papers_study
from c4b.study.results.results_folder import is_complete, unusable_rows
from c4b.study.spec import study_file as files
from c4b.study.spec.plan import Study

app = typer.Typer(no_args_is_help=True, help="Run, report and compare simulation studies.")

Out = Annotated[Path, typer.Option(help="Folder for results; an unfinished run in it is resumed.")]
Episodes = Annotated[int | None, typer.Option(help="Episodes per setting (default: as in the study).")]
Seed = Annotated[int | None, typer.Option(help="Seed of all draws (default: as in the study).")]
Jobs = Annotated[
    int | None, typer.Option(help="Threads (default: all cores). Results do not depend on it.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler, e.g. tcp://host:8786 (extra: cluster)."),
]


def reproduce(
    out: Out = Path("results/paper"),
    episodes: Episodes = None,
    seed: Seed = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
) -> None:
    """Run the paper's complete study and show every number beside the published one.

    Writes results.parquet, trajectories.parquet, tables/, figures/, comparison.json and report.html.
    """
    found = _run(files.load("paper"), out, episodes, seed, jobs, cluster)
    heading, rows = central_rows(found)
    table(
        "Measured (published) at rho 0.15, sigma 0.3, no reserve",
        heading,
        rows,
    )
    _close(found)


@app.command("run")
def run_file(
    study: Annotated[str, typer.Argument(help="A study file, or the name of a shipped study.")],
    out: Annotated[Path | None, typer.Option(help="Folder for results (default: results/NAME).")] = None,
    episodes: Episodes = None,
    seed: Seed = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
) -> None:
    """Run a study file (see [bold]c4b study init[/bold]) or a shipped one such as [bold]paper[/bold]."""
    plan = files.load(study)
    found = _run(plan, out or Path("results") / plan.name, episodes, seed, jobs, cluster)
    _overview(found)
    _close(found)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write the example.")] = Path("study.toml"),
) -> None:
    """Write a commented example of a study file."""
    if path.exists():
        raise InvalidInput("path", str(path), "exists already; choose another name")
    path.write_text(files.example())
    say(f"Wrote {path}. Edit it, then: c4b study run {shlex.quote(str(path))}")


@app.command("report")
def rebuild(
    folder: Annotated[Path, typer.Argument(help="A folder with results.")],
) -> None:
    """Rebuild tables, figures and page from saved results; nothing is simulated."""
    found = results.read(folder)
    write_report(found)
    _close(found)


@app.command("compare")
def compare_folders(
    first: Annotated[Path, typer.Argument(help="A folder with results.")],
    second: Annotated[Path, typer.Argument(help="Another, run with the same seed.")],
) -> None:
    """Paired differences FIRST - SECOND, with 95 % intervals over episodes."""
    one, other = results.read(first), results.read(second)
    rows = [
        [d.setting, d.method, _interval(d.reward_ratio, 4), _interval(d.fallback, 1)]
        for d in differences(one, other)
    ]
    heading = ["setting", "method", "reward ratio", "fallback (percentage points)"]
    table(f"{first} - {second}: difference [95 % interval]", heading, rows, left=2)
    for line in describe_comparison(one, other):
        tell(line)


def _interval(estimate: Estimate, digits: int) -> str:
    mean, low, high = (f"{v:+.{digits}f}" for v in (estimate.mean, estimate.low, estimate.high))
    return f"{mean} [{low}, {high}]"


def _run(
    study: Study,
    out: Path,
    episodes: int | None,
    seed: int | None,
    jobs: int | None,
    cluster: str | None,
) -> results.Results:
    run.threads(jobs)  # a wrong number is an error even where nothing is left to do
    changes = {"episodes": episodes, "seed": seed}
    study = study.with_(**{key: value for key, value in changes.items() if value is not None})
    if is_complete(study, out):
        unused = "" if cluster is None else f" (so {cluster} was not asked)"
        say(f"{out} holds this study already; nothing to simulate{unused}.")
        found = results.read(out)
    else:
        notice = unusable_rows(study, out)
        if notice is not None:
            say(notice)
        command = shlex.join(["c4b", *sys.argv[1:]])
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its failures are told in one line
        try:
            compiling = cluster is None and run.must_compile(study)
            with episodes_bar(study.name, compiling) as progress:
                found = run.run(
                    study, out, jobs=jobs, cluster=cluster, progress=progress, command=command
                )
        except KeyboardInterrupt as interrupt:
            typer.echo("c4b: interrupted; the same command goes on from here", err=True)
            raise typer.Exit(130) from interrupt
    write_report(found)
    return found


def _overview(found: results.Results) -> None:
    labels = [method.label for method in found.study.methods]
    rows = []
    for s in range(len(found.study.settings)):
        cells = [found.describe(s)]
        for label in labels:
            ratio = student(found.values(s, label, Metric.REWARD_RATIO)).mean
            share = 100.0 * student(found.values(s, label, Metric.FALLBACK)).mean
            cells.append(f"{ratio:.4f} / {share:.1f}")
        rows.append(cells)
    table("Mean reward ratio / fallback %", ["setting", *labels], rows)


def _price(found: results.Results) -> None:
    """The last gated method setting by setting, then one line for each."""
    tallies = price_of_safety.tallies(found)
    label = tallies[-1].method
    heading, rows = price_of_safety.compact_table(found, (label,))
    shown = [[row[0], *row[2:]] for row in rows]
    table(
        f"{label} beside its yardsticks: mean ± half a 95 % interval, paired",
        [heading[0], *heading[2:]],
        shown,
    )
    tell(price_of_safety.legend(found))
    for tally in tallies:
        tell(price_of_safety.sentence(tally))


def _close(found: results.Results) -> None:
    if price_of_safety.is_priced(found):
        _price(found)
    good, line = verdict(found)
    say(f"Report: {found.folder / 'report.html'}")
    tell(line, style="bold green" if good else "bold red")
    if is_papers_study(found) and not good:
        raise typer.Exit(1)
