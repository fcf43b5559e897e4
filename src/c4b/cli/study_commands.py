"""``c4b reproduce`` and ``c4b study``: run, report and compare simulation studies."""

from __future__ import annotations

import logging
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from c4b.cli.console.output import print_line, print_paragraph, print_table, shown_progress
from c4b.errors import InvalidInput
from c4b.study.engine import run
from c4b.study.engine.episode_metrics import Metric
from c4b.study.report.html_page import central_rows, verdict
from c4b.study.report.write_report import write_report
from c4b.study.results import price_of_safety, results, world_summary
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
    measured = _run(files.load("paper"), out, episodes, seed, jobs, cluster)
    heading, rows = central_rows(measured)
    print_table(
        "Measured (published) at rho 0.15, sigma 0.3, no reserve",
        heading,
        rows,
    )
    _print_verdict(measured)


@app.command("run")
def run_file(
    study: Annotated[
        str, typer.Argument(help=f"A study file, or a shipped study: {', '.join(files.shipped())}.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for results (default: results/NAME).")] = None,
    episodes: Episodes = None,
    seed: Seed = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
) -> None:
    """Run a study file (see [bold]c4b study init[/bold]) or a shipped one such as [bold]paper[/bold]."""
    plan = files.load(study, seed)
    measured = _run(plan, out or Path("results") / plan.name, episodes, seed, jobs, cluster)
    if not world_summary.is_of_worlds(measured):
        _print_overview(measured)
    _print_verdict(measured)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write the example.")] = Path("study.toml"),
) -> None:
    """Write a commented example of a study file."""
    if path.exists():
        raise InvalidInput("path", str(path), "exists already; choose another name")
    path.write_text(files.example())
    print_line(f"Wrote {path}. Edit it, then: c4b study run {shlex.quote(str(path))}")


@app.command("report")
def rebuild(
    folder: Annotated[Path, typer.Argument(help="A folder with results.")],
) -> None:
    """Rebuild tables, figures and page from saved results; nothing is simulated."""
    measured = results.read(folder)
    write_report(measured)
    _print_verdict(measured)


@app.command("compare")
def compare_folders(
    first: Annotated[Path, typer.Argument(help="A folder with results.")],
    second: Annotated[Path, typer.Argument(help="Another, run with the same seed.")],
) -> None:
    """Print paired differences FIRST - SECOND, with 95 % intervals over episodes."""
    one, other = results.read(first), results.read(second)
    rows = [
        [d.setting, d.method, _interval(d.reward_ratio, 4), _interval(d.fallback, 1)]
        for d in differences(one, other)
    ]
    heading = ["setting", "method", "reward ratio", "fallback (percentage points)"]
    print_table(f"{first} - {second}: difference [95 % interval]", heading, rows, left=2)
    for line in describe_comparison(one, other):
        print_paragraph(line)


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
    run.threads(jobs)  # checks the number, also where nothing is left to simulate
    changes = {"episodes": episodes, "seed": seed}
    study = study.with_(**{key: value for key, value in changes.items() if value is not None})
    if is_complete(study, out):
        unused = "" if cluster is None else f" (so {cluster} was not asked)"
        print_line(f"{out} holds this study already; nothing to simulate{unused}.")
        measured = results.read(out)
    else:
        notice = unusable_rows(study, out)
        if notice is not None:
            print_line(notice)
        command = shlex.join(["c4b", *sys.argv[1:]])
        logging.getLogger("distributed").setLevel(
            logging.CRITICAL
        )  # its failures are reported in one line
        try:
            compiling = cluster is None and run.must_compile(study)
            with shown_progress(study.name, compiling) as progress:
                measured = run.run(
                    study, out, jobs=jobs, cluster=cluster, progress=progress, command=command
                )
        except KeyboardInterrupt as interrupt:
            interrupt.add_note("the same command goes on from here")
            raise
    write_report(measured)
    return measured


def _print_overview(measured: results.Results) -> None:
    labels = [method.label for method in measured.study.methods]
    rows = []
    for s in range(len(measured.study.settings)):
        cells = [measured.describe(s)]
        for label in labels:
            ratio = student(measured.values(s, label, Metric.REWARD_RATIO)).mean
            share = 100.0 * student(measured.values(s, label, Metric.FALLBACK)).mean
            cells.append(f"{ratio:.4f} / {share:.1f}")
        rows.append(cells)
    print_table("Mean reward ratio / fallback %", ["setting", *labels], rows)


def _print_price(measured: results.Results) -> None:
    """Print the last gated method setting by setting, then one line for each method."""
    tallies = price_of_safety.tallies(measured)
    label = tallies[-1].method
    heading, rows = price_of_safety.compact_table(measured, (label,))
    shown = [[row[0], *row[2:]] for row in rows]
    print_table(
        f"{label} beside its yardsticks: mean ± half a 95 % interval, paired",
        [heading[0], *heading[2:]],
        shown,
    )
    print_paragraph(price_of_safety.legend(measured))
    for tally in tallies:
        print_paragraph(price_of_safety.sentence(tally))


def _print_worlds(measured: results.Results) -> None:
    """Print one line for each world, then how often the method is below its yardsticks."""
    rows = [world_summary.cells(row) for row in world_summary.world_rows(measured)]
    title = f"{world_summary.judged(measured)}, {measured.study.episodes} episodes a world"
    print_table(title, list(world_summary.HEADING), rows)
    print_paragraph(world_summary.UNITS)
    print_paragraph(world_summary.sentence(measured))


def _print_verdict(measured: results.Results) -> None:
    if world_summary.is_of_worlds(measured):
        _print_worlds(measured)
    elif price_of_safety.is_priced(measured):
        _print_price(measured)
    good, line = verdict(measured)
    print_line(f"Report: {measured.folder / 'report.html'}")
    print_paragraph(line, style="bold green" if good else "bold red")
    if is_papers_study(measured) and not good:
        raise typer.Exit(1)
