"""``c4b deploy freeze``, ``thaw``, ``ramp``, ``go-live``, ``close``: roll out and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from c4b.cli.console.answers import AsJson, answer
from c4b.cli.deploy_commands import Name, Url, app
from c4b.deployment import Deployment, Status

Reason = Annotated[str, typer.Argument(help="Why; recorded in the journal.")]
By = Annotated[str | None, typer.Option(help="Who orders it; if not given, the user of this machine.")]


def _order(url: str, name: str, as_json: bool, give: Callable[[Deployment], Status]) -> None:
    """Give an order, and say in a sentence for people where the deployment stands now."""
    with Deployment.open(url, name) as dep:
        before = dep.state().seq
        state = give(dep)
    in_force = "; ".join(f"{each.action} by {each.by}: {each.why}" for each in state.orders)
    said = f"{state.name} is {state.mode}" + (f" ({in_force})" if in_force else "")
    if state.seq == before:
        said += ". It was so before: the order changed nothing, and its reason was not recorded"
    answer(state.to_dict(), as_json, said)


@app.command()
def freeze(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """Play the incumbent only, from the next decision on. Repeating it is harmless."""
    _order(url, name, as_json, lambda dep: dep.freeze(reason, by))


@app.command()
def thaw(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """End a freeze."""
    _order(url, name, as_json, lambda dep: dep.thaw(reason, by))


@app.command()
def ramp(
    url: Url,
    name: Name,
    share: Annotated[
        float, typer.Argument(help="Largest share of all rounds, in (0, 1]; 1 ends the ramp.")
    ],
    reason: Reason,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Let at most a share of the rounds play a candidate, from the next decision on."""
    _order(url, name, as_json, lambda dep: dep.ramp(share, reason, by))


@app.command()
def go_live(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """End shadow mode for good. What was learned is kept; the budget starts with the reserve."""
    _order(url, name, as_json, lambda dep: dep.go_live(reason, by))


@app.command()
def close(url: Url, name: Name, reason: Reason, by: By = None, as_json: AsJson = False) -> None:
    """Make no more decisions, for good. Outcomes are still accepted, and everything can be read."""
    _order(url, name, as_json, lambda dep: dep.close_decisions(reason, by))
