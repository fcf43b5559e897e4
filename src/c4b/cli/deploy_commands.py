"""``c4b deploy``: JSON in and out, so that a shell script can drive a deployment."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from c4b.cli.output import console
from c4b.deployment import Deployment, export
from c4b.errors import InvalidInput
from c4b.evidence.model import LinearModel
from c4b.evidence.sets.table import CONFIDENCES
from c4b.journal import sql_migration as migration

app = typer.Typer(no_args_is_help=True, help="Create, drive, audit and export durable deployments.")

Url = Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")]
Name = Annotated[str, typer.Argument(help="Name of the deployment.")]
Request = Annotated[str, typer.Argument(help="JSON, or - to read it from standard input.")]


def _say(answer: Any) -> None:
    typer.echo(json.dumps(answer, allow_nan=False))


def _told(text: str) -> dict[str, Any]:
    try:
        told = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise InvalidInput("request", text, f"must be JSON ({error})") from error
    if not isinstance(told, dict):
        raise InvalidInput("request", told, "must be a JSON object")
    return told


def _take(told: dict[str, Any], required: tuple[str, ...], optional: tuple[str, ...] = ()) -> list[Any]:
    """The values of a request, in order; a missing or unknown key is an error."""
    for key in required:
        if key not in told:
            raise InvalidInput("request", told, f"needs {key!r}")
    for key in told:
        if key not in required + optional:
            raise InvalidInput("request", told, f"{key!r} is none of {', '.join(required + optional)}")
    return [told.get(key) for key in required + optional]


@app.command()
def create(
    url: Url,
    name: Name,
    dim: Annotated[int, typer.Option(help="Number of features.")],
    noise: Annotated[float, typer.Option(help="Sub-Gaussian scale of the reward noise.")],
    norm_bound: Annotated[float, typer.Option(help="Upper bound on the norm of theta.")],
    ridge: Annotated[float, typer.Option(help="Regularisation of the estimate, > 0.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Allowed probability that the promise fails.")] = 0.05,
    confidence: Annotated[
        str | None, typer.Option(help=f"{', '.join(CONFIDENCES)}; if not given, the policy's own.")
    ] = None,
    misspecification: Annotated[
        float, typer.Option(help="Largest deviation of a mean reward from linearity.")
    ] = 0.0,
    policy: Annotated[
        str, typer.Option(help="See `c4b policies`; reserve-c4b+ is recommended.")
    ] = "refresh",
    alpha: Annotated[
        float, typer.Option(help="Share of the baseline's reward that may be given up.")
    ] = 0.05,
    reserve: Annotated[float, typer.Option(help="Deficit allowed on top, in units of reward.")] = 0.0,
    signed_baseline: Annotated[
        bool, typer.Option("--signed-baseline", help="Baseline means may be negative.")
    ] = False,
    absorb: Annotated[
        str,
        typer.Option(help="in-order, or on-arrival if the order of outcomes is independent of them."),
    ] = "in-order",
    outcome_timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for an outcome; if not given, for ever.")
    ] = None,
    timeout_reward: Annotated[
        float | None,
        typer.Option(help="What silence means after that; if not given, the outcome counts as lost."),
    ] = None,
) -> None:
    """Create a deployment."""
    model = LinearModel(dim, noise, norm_bound, ridge, delta, confidence, misspecification)
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
    ) as made:
        _say(made.state().to_dict())


@app.command("list")
def list_names(url: Url) -> None:
    """List the deployments of a store."""
    _say(Deployment.names(url))


@app.command()
def migrate(url: Url) -> None:
    """Bring the tables of an earlier version up to date, after a backup; says the versions."""
    before, after = migration.migrate(url)
    _say({"before": before, "after": after})


@app.command()
def status(url: Url, name: Name) -> None:
    """Say where a deployment stands: bank, rounds, fallbacks, pending outcomes, last hash."""
    with Deployment.open(url, name) as dep:
        _say(dep.state().to_dict())


@app.command()
def learn(url: Url, name: Name, request: Request) -> None:
    """Give history: {"features": [[...]], "rewards": [...], "request_id": "..."}."""
    features, rewards, asked = _take(_told(request), ("features", "rewards"), ("request_id",))
    with Deployment.open(url, name) as dep:
        dep.learn(features, rewards, asked)
        _say(dep.state().to_dict())


@app.command()
def decide(url: Url, name: Name, request: Request) -> None:
    """Decide: {"candidates": [[...]], "baseline": [...], "request_id": "...", "context": ...}."""
    values = _take(_told(request), ("candidates", "baseline"), ("request_id", "context"))
    with Deployment.open(url, name) as dep:
        _say(dep.explain(dep.decide(*values).id).to_dict())


@app.command()
def observe(url: Url, name: Name, request: Request) -> None:
    """Report outcomes: {"ID": reward, ...}; null declares an outcome lost."""
    told = _told(request)
    with Deployment.open(url, name) as dep:
        dep.observe_many({id_: reward for id_, reward in told.items() if reward is not None})
        for id_, reward in told.items():
            if reward is None:
                dep.forget(id_)
        _say(dep.state().to_dict())


@app.command()
def executed(url: Url, name: Name, request: Request) -> None:
    """Report that another action was executed: {"ID": features, ...}; null for the baseline."""
    told = _told(request)
    with Deployment.open(url, name) as dep:
        for id_, features in told.items():
            dep.executed(id_, features)
        _say(dep.state().to_dict())


@app.command()
def explain(url: Url, name: Name, decision_id: str) -> None:
    """Say why a decision was made and what became of it."""
    with Deployment.open(url, name) as dep:
        _say(dep.record(decision_id).to_dict())


@app.command()
def audit(
    url: Url,
    name: Name,
    sample: Annotated[
        int, typer.Option(help="About so many decisions are recomputed in 50 digits.")
    ] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Recompute the whole journal with independent code; exit code 1 if something does not hold."""
    with Deployment.open(url, name) as dep:
        report = dep.audit(sample)
    if as_json:
        _say(report.to_dict())
    else:
        console.print(str(report), soft_wrap=True, markup=False)
    if not report.clean:
        raise typer.Exit(1)


@app.command("export")
def export_table(
    url: Url, name: Name, path: Annotated[Path, typer.Argument(help="Parquet file.")]
) -> None:
    """Write all decisions with their outcomes to a Parquet file."""
    with Deployment.open(url, name) as dep:
        _say({"path": str(path), "rows": export.write(dep, path)})


@app.command()
def plot(url: Url, name: Name, path: Annotated[Path, typer.Argument(help="PNG, PDF or SVG.")]) -> None:
    """Draw bank, fallback and pending outcomes, decision by decision."""
    with Deployment.open(url, name) as dep:
        export.plot(dep, path)
    _say({"path": str(path)})
