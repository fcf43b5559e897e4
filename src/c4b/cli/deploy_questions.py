"""``c4b deploy earnings``, ``items`` and ``find``: what people ask about a deployment's past."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from c4b.cli.console.answers import AsJson, answer
from c4b.deployment import Deployment
from c4b.deployment.questions.views import plain_fields
from c4b.errors import InvalidInput

Url = Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE")]
Name = Annotated[str, typer.Argument(help="Name of the deployment.")]
Moment = Annotated[
    str | None, typer.Option(help="A time such as 2026-01-31T08:00, by this machine's clock.")
]


def earnings(
    url: Url,
    name: Name,
    seconds: Annotated[float | None, typer.Option(help="Only the last N seconds.")] = None,
    last: Annotated[int | None, typer.Option(help="Only about the last N decisions.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what was earned and the uplift over the incumbent, estimated and certified."""
    with Deployment.open(url, name) as dep:
        answer(dep.earnings(seconds, last).to_dict(), as_json)


def items(url: Url, name: Name, as_json: AsJson = False) -> None:
    """Show how often each label was offered, admissible and played, and its mean reward."""
    with Deployment.open(url, name) as dep:
        listed = [{**plain_fields(each), "mean": _known(each.mean)} for each in dep.items()]
    answer(listed, as_json)


def find(
    url: Url,
    name: Name,
    request_id: Annotated[str | None, typer.Option(help="The caller's id of the request.")] = None,
    label: Annotated[str | None, typer.Option(help="Label of what was played.")] = None,
    outcome: Annotated[str | None, typer.Option(help="pending, observed, timeout or forgotten.")] = None,
    played: Annotated[str | None, typer.Option(help="baseline or candidate.")] = None,
    since: Moment = None,
    until: Moment = None,
    limit: Annotated[int, typer.Option(help="Largest number of decisions to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Find decisions by request id, label, outcome and time, newest first."""
    times = _moment("since", since), _moment("until", until)
    with Deployment.open(url, name) as dep:
        found = dep.find(request_id, label, outcome, played, *times, limit=limit)
    answer([_line(each) for each in found.records], as_json)


def _line(record: Any) -> dict[str, Any]:
    made = record.decision
    return {
        "id": made.id,
        "at": record.at.astimezone().isoformat(timespec="seconds"),
        "request_id": record.request_id,
        "played": "baseline" if made.action is None else made.label or f"candidate {made.action}",
        "outcome": record.outcome,
        "reward": record.reward,
    }


def _moment(argument: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise InvalidInput(argument, text, "must be a time such as 2026-01-31T08:00") from error


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
