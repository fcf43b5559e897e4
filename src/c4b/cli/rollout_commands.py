"""``c4b deploy freeze``, ``thaw``, ``ramp``, ``go-live``, ``close``: roll out and back."""

from __future__ import annotations

from typing import Annotated

import typer

from c4b.cli.deploy_commands import Name, Url, app, print_json
from c4b.deployment import Deployment

Reason = Annotated[str, typer.Argument(help="Why; the journal keeps it.")]
By = Annotated[str | None, typer.Option(help="Who orders it; if not given, the user of this machine.")]


@app.command()
def freeze(url: Url, name: Name, reason: Reason, by: By = None) -> None:
    """Play the incumbent only, from the next decision on. Repeating it is harmless."""
    with Deployment.open(url, name) as dep:
        print_json(dep.freeze(reason, by).to_dict())


@app.command()
def thaw(url: Url, name: Name, reason: Reason, by: By = None) -> None:
    """End a freeze."""
    with Deployment.open(url, name) as dep:
        print_json(dep.thaw(reason, by).to_dict())


@app.command()
def ramp(
    url: Url,
    name: Name,
    share: Annotated[float, typer.Argument(help="The most of all rounds, in (0, 1]; 1 ends the ramp.")],
    reason: Reason,
    by: By = None,
) -> None:
    """Let at most a share of the rounds leave the incumbent, from the next decision on."""
    with Deployment.open(url, name) as dep:
        print_json(dep.ramp(share, reason, by).to_dict())


@app.command()
def go_live(url: Url, name: Name, reason: Reason, by: By = None) -> None:
    """End shadow mode for good. What was learned is kept; the budget begins with the reserve."""
    with Deployment.open(url, name) as dep:
        print_json(dep.go_live(reason, by).to_dict())


@app.command()
def close(url: Url, name: Name, reason: Reason, by: By = None) -> None:
    """Make no more decisions, for good. Outcomes are still taken, and everything can be read."""
    with Deployment.open(url, name) as dep:
        print_json(dep.close_decisions(reason, by).to_dict())
