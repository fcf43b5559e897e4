"""``c4b deploy``: JSON in and out for shell scripts, tables on a terminal."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from c4b.cli import deploy_questions, history_file
from c4b.cli.console.answers import AsJson, answer
from c4b.cli.console.output import console, shown_progress
from c4b.cli.console.stop_signals import goes_on
from c4b.deployment import Deployment
from c4b.deployment.questions import export
from c4b.errors import InvalidInput
from c4b.evidence import LinearModel, set_names
from c4b.journal.sql import sql_migration
from c4b.policies import DEFAULT_POLICY, Round

app = typer.Typer(no_args_is_help=True, help="Create, use, audit and export durable deployments.")
for _question in (deploy_questions.earnings, deploy_questions.items, deploy_questions.find):
    app.command()(_question)

Url = Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")]
Name = Annotated[str, typer.Argument(help="Name of the deployment.")]
Request = Annotated[str, typer.Argument(help="JSON, or - to read it from standard input.")]
Independent = Annotated[
    bool,
    typer.Option(
        "--independent", help="Assert that this depends on no reward of these decisions or of later ones."
    ),
]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, allow_nan=False))


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as a dictionary; of a key that is there twice JSON would forget the first value."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice!r} is there twice")
    return made


def _parsed(text: str) -> dict[str, Any]:
    """Parse a request, which must be a JSON object."""
    try:
        given = sys.stdin.read() if text == "-" else text
        request = json.loads(given, object_pairs_hook=_each_once)
    except ValueError as error:
        raise InvalidInput("request", text, f"must be JSON ({error})") from error
    except RecursionError:
        raise InvalidInput("request", text, "must be JSON that is less deep") from None
    if not isinstance(request, dict):
        raise InvalidInput("request", request, "must be a JSON object")
    return request


def _with_keys(text: str, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    """Parse a request in which missing and unknown keys are errors."""
    request = _parsed(text)
    for key in required:
        if key not in request:
            raise InvalidInput("request", request, f"needs {key!r}")
    for key in request:
        if key not in required + optional:
            raise InvalidInput("request", request, f"{key!r} is none of {', '.join(required + optional)}")
    return request


@app.command()
def create(
    url: Url,
    name: Name,
    dim: Annotated[int, typer.Option(help="Number of features.")],
    norm_bound: Annotated[float, typer.Option(help="Upper bound on the norm of theta.")],
    noise: Annotated[
        float | None, typer.Option(help="Sub-Gaussian scale of the reward noise; or --rewards.")
    ] = None,
    rewards: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Lowest and highest reward, such as 0 1: their variance is learned."),
    ] = None,
    ridge: Annotated[float, typer.Option(help="Regularisation of the estimate, > 0.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Allowed probability that the promise fails.")] = 0.05,
    confidence: Annotated[
        str | None, typer.Option(help=f"{', '.join(set_names())}; if not given, the policy's own.")
    ] = None,
    misspecification: Annotated[
        float, typer.Option(help="Largest deviation of a mean reward from linearity.")
    ] = 0.0,
    policy: Annotated[str, typer.Option(help="See `c4b policies`.")] = DEFAULT_POLICY,
    alpha: Annotated[
        float, typer.Option(help="Share of the baseline's reward that may be given up.")
    ] = 0.05,
    reserve: Annotated[
        float, typer.Option(help="Deficit allowed in addition, in units of reward.")
    ] = 0.0,
    signed_baseline: Annotated[
        bool, typer.Option("--signed-baseline", help="Baseline means may be negative.")
    ] = False,
    absorb: Annotated[
        str,
        typer.Option(help="in-order, or on-arrival if the order of outcomes is independent of them."),
    ] = "in-order",
    outcome_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds to wait for an outcome; if not given, there is no limit."),
    ] = None,
    timeout_reward: Annotated[
        float | None,
        typer.Option(help="Reward recorded after that; if not given, the outcome counts as lost."),
    ] = None,
    baseline_floor: Annotated[
        float | None, typer.Option(help="Smallest mean reward that the baseline is known to have.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Largest number of rounds, for policies that need to know it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a policy that randomises.")] = None,
    records: Annotated[
        str, typer.Option(help="everything; or executed: only the executed candidate.")
    ] = "everything",
    compress: Annotated[bool, typer.Option("--compress", help="Compress entries with zlib.")] = False,
    mode: Annotated[
        str, typer.Option(help="live; or shadow, which executes the incumbent until `go-live`.")
    ] = "live",
    as_json: AsJson = False,
) -> None:
    """Create a deployment."""
    if (
        noise is None
        and rewards is not None
        and confidence in (None, "bounded", "bounded-2", "bounded-3")
    ):
        model = LinearModel.bounded(dim, norm_bound, rewards, ridge, delta, misspecification)
        model = dataclasses.replace(model, confidence=confidence or model.confidence)
    elif noise is None:
        raise InvalidInput("noise", None, "is needed; or declare the range by --rewards 0 1")
    else:
        model = LinearModel(dim, noise, norm_bound, ridge, delta, confidence, misspecification, rewards)
    with Deployment.create(
        url,
        name,
        model,
        policy,
        alpha,
        reserve,
        not signed_baseline,
        absorb,
        outcome_timeout,
        timeout_reward,
        baseline_floor=baseline_floor,
        horizon=horizon,
        seed=seed,
        mode=mode,
        records=records,
        compress=compress,
    ) as dep:
        answer(dep.state().to_dict(), as_json)


@app.command("list")
def list_names(url: Url, as_json: AsJson = False) -> None:
    """List the deployments of a store."""
    answer(Deployment.names(url), as_json)


@app.command()
def migrate(url: Url, as_json: AsJson = False) -> None:
    """Upgrade the tables of an earlier version. Make a backup first. Prints both versions."""
    before, after = sql_migration.migrate(url)
    answer({"before": before, "after": after}, as_json)


@app.command()
def status(url: Url, name: Name, as_json: AsJson = False) -> None:
    """Show the state of a deployment: bank, rounds, fallbacks, pending outcomes, last hash."""
    with Deployment.open(url, name) as dep:
        answer(dep.state().to_dict(), as_json)


@app.command()
def learn(
    url: Url,
    name: Name,
    request: Annotated[
        str, typer.Argument(help="A .parquet or .csv file, JSON, or - to read JSON from standard input.")
    ],
    reward: Annotated[str, typer.Option(help="The file's column of rewards.")] = "reward",
    features: Annotated[
        str | None,
        typer.Option(
            help="The file's columns of features, separated by commas; if not given, all others."
        ),
    ] = None,
    request_id: Annotated[
        str | None, typer.Option(help="With it, giving the same file again is harmless.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give history: a file, or {"features": [[...]], "rewards": [...], "request_id": "..."}."""
    with Deployment.open(url, name) as dep:
        if history_file.is_file_of_history(request):
            rows, rewards = history_file.read(request, reward, features, dep.model.dim)
            dep.learn(rows, rewards, request_id)
        else:
            dep.learn(**_with_keys(request, ("features", "rewards"), ("request_id",)))
        answer(dep.state().to_dict(), as_json)


@app.command()
def decide(url: Url, name: Name, request: Request, as_json: AsJson = False) -> None:
    """Decide: {"candidates": [[...]], "baseline": [...], "request_id": "...", "context": ...}.

    Further keys: "labels", names of the candidates; "baseline_mean", for policies that need it. A
    slate is a list of rows, one for each item.
    """
    optional = ("request_id", "context", "labels", "baseline_mean")
    round_ = Round(**_with_keys(request, ("candidates", "baseline"), optional))
    with Deployment.open(url, name) as dep:
        why = dep.explain(dep.decide(round_).id)
        answer(why.to_dict(), as_json, f"{why.decision.id}\n{why}")


@app.command()
def observe(
    url: Url, name: Name, request: Request, independent: Independent = False, as_json: AsJson = False
) -> None:
    """Report outcomes: {"ID": reward, ...}; a list for the items of a slate; null for a lost outcome.

    Rewards are recorded first. After the outcome of a later decision, a loss needs --independent.
    """
    outcomes = _parsed(request)
    with Deployment.open(url, name) as dep:
        dep.observe_many({id_: reward for id_, reward in outcomes.items() if reward is not None})
        for id_, reward in outcomes.items():
            if reward is None:
                dep.forget(id_, independent=independent)
        answer(dep.state().to_dict(), as_json)


@app.command()
def executed(
    url: Url, name: Name, request: Request, independent: Independent = False, as_json: AsJson = False
) -> None:
    """Report that another action was executed: {"ID": features, ...}; null for the baseline.

    After the outcome of a later decision, this needs --independent.
    """
    actions = _parsed(request)
    with Deployment.open(url, name) as dep:
        for id_, features in actions.items():
            dep.executed(id_, features, independent=independent)
        answer(dep.state().to_dict(), as_json)


def _shown(reward: float | tuple[float, ...]) -> str:
    """One reward, or those of a slate's items."""
    return f"{reward:g}" if isinstance(reward, float) else ", ".join(f"{each:g}" for each in reward)


@app.command()
def explain(
    url: Url,
    name: Name,
    decision_id: Annotated[str, typer.Argument(help="Id of the decision.")],
    as_json: AsJson = False,
) -> None:
    """Explain a decision and show its outcome."""
    with Deployment.open(url, name) as dep:
        record = dep.record(decision_id)
    reward = "" if record.reward is None else f", reward {_shown(record.reward)}"
    answer(record.to_dict(), as_json, f"{record.explain()}\nOutcome: {record.outcome}{reward}")


@app.command()
def audit(
    url: Url,
    name: Name,
    sample: Annotated[
        int, typer.Option(help="Number of decisions to recompute in 50 digits, about.")
    ] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes that share the work; 0: one for each core.")] = 1,
    resume: Annotated[
        Path | None,
        typer.Option(help="File that stores how far an audit came; the next audit continues from there."),
    ] = None,
    witness: Annotated[
        str | None, typer.Option(help="File or http(s) address that `c4b deploy witness` wrote.")
    ] = None,
    receipts: Annotated[
        str | None, typer.Option(help="File of answers with receipts, one JSON object in each line.")
    ] = None,
    sealed: Annotated[
        bool, typer.Option("--sealed", help="Require that every entry is sealed with a known key.")
    ] = False,
    archive: Annotated[
        list[Path] | None, typer.Option(help="File that `c4b deploy archive` wrote; repeat it for each.")
    ] = None,
) -> None:
    """Recompute the whole journal with independent code; exit code 1 if something does not hold.

    Progress and the time left are shown on standard error.
    """
    processes = jobs if jobs else os.cpu_count() or 1
    with (
        Deployment.open(url, name) as dep,
        shown_progress(f"audit of {name}", unit="entries") as progress,
        goes_on(resume),
    ):
        report = dep.audit(sample, progress, processes, resume, witness, receipts, sealed, archive or ())
    if as_json:
        print_json(report.to_dict())
    else:
        console.print(str(report), soft_wrap=True, markup=False)
    if not report.clean:
        raise typer.Exit(1)


@app.command()
def witness(
    url: Url,
    name: Name,
    path: Annotated[Path, typer.Argument(help="The file to add a line to.")],
    as_json: AsJson = False,
) -> None:
    """Write the number and the hash of the last entry to a file, to be kept elsewhere.

    `c4b deploy audit --witness` then finds that the journal was rewritten, or its end removed. Writes
    nothing, and fails, if that is the case already.
    """
    with Deployment.open(url, name) as dep:
        answer(dep.witness(path)._asdict(), as_json)


@app.command("export")
def export_table(
    url: Url,
    name: Name,
    path: Annotated[Path, typer.Argument(help="The Parquet file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write all decisions with their outcomes to a Parquet file."""
    with Deployment.open(url, name) as dep:
        answer({"path": str(path), "rows": export.write(dep, path)}, as_json)


@app.command()
def plot(
    url: Url,
    name: Name,
    path: Annotated[Path, typer.Argument(help="The PNG, PDF or SVG file to write.")],
    as_json: AsJson = False,
) -> None:
    """Plot bank, fallbacks and pending outcomes over the decisions."""
    with Deployment.open(url, name) as dep:
        export.plot(dep, path)
    answer({"path": str(path)}, as_json)
