"""``c4b deploy freeze``, ``thaw``, ``ramp``, ``go-live``, ``close``: roll out and back."""

from __future__ import annotations

from typing import Annotated

import typer

from c4b.cli.answers import AsJson, answer
from c4b.cli.deploy_commands import Name, Url, app
from c4b.deployment import Deployment, Status

Reason = Annotated[str, typer.Argument(help="Why; the journal keeps it.")]
By = Annotated[str | None, typer.Option(help="Who orders it; if not given, the user of this machine.")]


def _say(state: Status, as_json: bool) -> None:
    """Where the deployment stands now, in one sentence for people."""
    in_force = "; ".join(f"{each.action} by {each.by}: {each.why}" for each in state.orders)
    answer(
        state.to_dict(), as_json, f"{state.name} is {state.mode}" + (f" ({in_force})" if in_force else "")
    )


@app.command()
def freeze(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """Play the incumbent only, from the next decision on. Repeating it is harmless."""
    with Deployment.open(url, name) as dep:
        _say(dep.freeze(reason, by), as_json)


@app.command()
def thaw(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """End a freeze."""
    with Deployment.open(url, name) as dep:
        _say(dep.thaw(reason, by), as_json)


@app.command()
def ramp(
    url: Url,
    name: Name,
    share: Annotated[float, typer.Argument(help="The most of all rounds, in (0, 1]; 1 ends the ramp.")],
    reason: Reason,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Let at most a share of the rounds leave the incumbent, from the next decision on."""
    with Deployment.open(url, name) as dep:
        _say(dep.ramp(share, reason, by), as_json)


@app.command()
def go_live(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """End shadow mode for good. What was learned is kept; the budget begins with the reserve."""
    with Deployment.open(url, name) as dep:
        _say(dep.go_live(reason, by), as_json)


@app.command()
def close(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """Make no more decisions, for good. Outcomes are still taken, and everything can be read."""
    with Deployment.open(url, name) as dep:
        _say(dep.close_decisions(reason, by), as_json)
